/* test_core_indirect.c - indirect views of Trainium3: what instructions read and write through them, what is refused.
 * SPDX-License-Identifier: MIT
 *
 * Every instruction that takes such views runs a second time on rows that plain loops of this file have gathered, and
 * that they scatter afterwards.
 */
#include <stdio.h>

#include "unit/core_steps.h"

static uint64_t seed = 1;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- views and elements, plainly ---- */

static char *at(trn_tensor t, int64_t p, int64_t f)
{
    const int64_t bytes = (int64_t)trn_format_bytes(t.format);
    const int64_t row = t.stride[0] ? t.stride[0] : t.shape[1];
    return (char *)t.data + (p * row + f * (t.stride[1] ? t.stride[1] : 1)) * bytes;
}

static float number(trn_tensor t, int64_t p, int64_t f)
{
    float x;
    uint16_t half;
    uint32_t word;
    if (t.format == TRN_F32) return memcpy(&x, at(t, p, f), sizeof x), x;
    memcpy(&half, at(t, p, f), sizeof half);
    word = (uint32_t)half << 16;
    return memcpy(&x, &word, sizeof x), x;
}

static void put(trn_tensor t, int64_t p, int64_t f, float x)
{
    uint32_t word;
    uint16_t half;
    memcpy(&word, &x, sizeof word);
    half = (uint16_t)(word >> 16);
    if (t.format == TRN_F32)
        memcpy(at(t, p, f), &x, sizeof x);
    else
        memcpy(at(t, p, f), &half, sizeof half);
}

/* A tile of small whole numbers, which every format here holds. */
static trn_tensor numbers(trn_space space, const char *name, trn_format format, int partitions, int elements)
{
    const trn_tensor t = space == TRN_SPACE_PSUM ? trn_core_psum(&core, name, format, partitions, elements)
                                                 : trn_core_sbuf(&core, name, format, partitions, elements);
    for (int p = 0; p < partitions; p++)
        for (int f = 0; f < elements; f++) put(t, p, f, (float)(below(17) - 8));
    trn_core_written(&core, t);
    return t;
}

static int64_t offset_of(trn_tensor index, int64_t p, int64_t i, int group)
{
    const char *const place = at(index, p / group * group + i % group, i / group);
    uint16_t half;
    uint32_t word;
    if (index.format == TRN_U16) return memcpy(&half, place, sizeof half), half;
    return memcpy(&word, place, sizeof word), word;
}

static void name_offset(trn_tensor index, int64_t p, int64_t c, int offset)
{
    const uint16_t half = (uint16_t)offset;
    const uint32_t word = (uint32_t)offset;
    if (index.format == TRN_U16)
        memcpy(at(index, p, c), &half, sizeof half);
    else
        memcpy(at(index, p, c), &word, sizeof word);
}

/* Offsets below `most`; with `apart` no group names one twice. */
static trn_tensor offsets(trn_format format, int partitions, int columns, int most, bool apart, int group)
{
    const trn_tensor t = trn_core_sbuf(&core, "index", format, partitions, columns);
    static int pool[4096];
    for (int g = 0; g < partitions; g += group) {
        for (int i = 0; i < most; i++) pool[i] = i;
        for (int i = 0; i < group * columns && g + i % group < partitions; i++) {
            const int k = apart ? i + below(most - i) : below(most), taken = pool[k];
            if (apart) pool[k] = pool[i];
            if (apart) pool[i] = taken;
            name_offset(t, g + i % group, i / group, taken);
        }
    }
    trn_core_written(&core, t);
    return t;
}

static trn_tensor view(trn_tensor data, trn_tensor index, int64_t count)
{
    const trn_indirect_args args = { .data = data, .index = index, .count = count };
    return trn_core_indirect(&core, &args);
}

/* The twin: packed rows of the test's own. */
typedef struct packed {
    float number[128][512];
    float all[128][1024]; /* of the whole tile */
    trn_tensor rows;
} packed;

static packed in, out;

static void gather(packed *to, trn_tensor data, trn_tensor index, int count, int group)
{
    for (int p = 0; p < data.shape[0]; p++) {
        for (int f = 0; f < data.shape[1]; f++) to->all[p][f] = number(data, p, f);
        for (int i = 0; i < count; i++) to->number[p][i] = number(data, p, offset_of(index, p, i, group));
    }
    to->rows = trn_tensor_slice(trn_tensor_2d(TRN_F32, to->number, 128, 512), 0, 0, data.shape[0]);
    to->rows = trn_tensor_slice(to->rows, 1, 0, count);
}

/* What was gathered before, now changed in its packed rows, is what the tile holds, and nothing else changed. */
static void scattered(packed *now, trn_tensor data, trn_tensor index, int count, int group)
{
    for (int p = 0; p < data.shape[0]; p++) {
        for (int i = 0; i < count; i++) now->all[p][offset_of(index, p, i, group)] = now->number[p][i];
        for (int f = 0; f < data.shape[1]; f++)
            if (number(data, p, f) != now->all[p][f])
                fail_msg("[%d, %d] is %g, not %g", p, f, (double)number(data, p, f), (double)now->all[p][f]);
    }
}

/* ---- what instructions do through them ---- */

enum { F = 300 };

typedef struct shapes {
    int partitions, columns, count;
    trn_tensor src, src_index, dst, dst_index, from, to;
} shapes;

/* A gathered src, a scattered dst, both or neither. */
static void prepare(shapes *s, trn_format format, trn_space space, bool gathers, bool scatters, int outputs)
{
    static const int sizes[] = { 16, 32, 48, 64, 128, 9, 40 };
    begin(TRN_TRAINIUM3);
    s->partitions = sizes[below(7)];
    s->columns = 1 + below(4);
    s->count = s->partitions % 16 ? 1 + below(s->partitions % 16) : 1 + below(16 * s->columns);
    const int written = outputs ? outputs : s->count;
    s->src = numbers(space, "src", format, s->partitions, gathers ? F : s->count);
    s->dst = numbers(TRN_SPACE_SBUF, "dst", format, s->partitions, scatters ? F : written);
    s->src_index = offsets(below(2) ? TRN_U16 : TRN_U32, s->partitions, s->columns, F, false, 16);
    s->dst_index = offsets(below(2) ? TRN_U16 : TRN_I32, s->partitions, s->columns, F, below(2), 16);
    s->from = gathers ? view(s->src, s->src_index, s->count) : s->src;
    s->to = scatters ? view(s->dst, s->dst_index, written) : s->dst;
    if (gathers) {
        gather(&in, s->src, s->src_index, s->count, 16);
    } else {
        for (int p = 0; p < s->partitions; p++)
            for (int i = 0; i < s->count; i++) in.number[p][i] = number(s->src, p, i);
        in.rows = trn_tensor_slice(trn_tensor_2d(TRN_F32, in.number, 128, 512), 0, 0, s->partitions);
        in.rows = trn_tensor_slice(in.rows, 1, 0, s->count);
    }
    if (scatters)
        gather(&out, s->dst, s->dst_index, written, 16);
    else
        out.rows = trn_tensor_slice(trn_tensor_slice(trn_tensor_2d(TRN_F32, out.number, 128, 512), 0, 0, s->partitions),
                                    1, 0, written);
    if (!scatters)
        for (int p = 0; p < s->partitions; p++)
            for (int i = 0; i < written; i++) out.number[p][i] = number(s->dst, p, i);
}

static void settle(const shapes *s, bool scatters)
{
    fine();
    if (scatters) {
        scattered(&out, s->dst, s->dst_index, (int)s->to.shape[1], 16);
        return;
    }
    for (int p = 0; p < s->partitions; p++)
        for (int i = 0; i < s->dst.shape[1]; i++)
            if (number(s->dst, p, i) != out.number[p][i]) fail_msg("[%d, %d] differs", p, i);
}

/* Runs it twice: on the core through views, without one on packed rows. */
#define BOTH(name, ...)                                                                                                \
    do {                                                                                                               \
        trn_##name##_args a = { __VA_ARGS__ };                                                                         \
        a.generation = TRN_TRAINIUM3;                                                                                  \
        trn_##name##_args b = a;                                                                                       \
        trn_core_##name(&core, &a);                                                                                    \
        b.dst = out.rows;                                                                                              \
        b.SOURCE = in.rows;                                                                                            \
        assert_int_equal(trn_##name(&b), TRN_OK);                                                                      \
        settle(&s, scatters);                                                                                          \
    } while (0)

static void elementwise(void **state)
{
    (void)state;
    shapes s;
    for (int round = 0; round < 240; round++) {
        const bool gathers = round & 1, scatters = round & 2;
        const trn_format format = round & 4 ? TRN_BF16 : TRN_F32;
        const trn_space space = round & 8 ? TRN_SPACE_PSUM : TRN_SPACE_SBUF;
        const trn_engine engine = round & 16 ? TRN_ENGINE_SCALAR : TRN_ENGINE_VECTOR;
        prepare(&s, format, space, gathers, scatters, 0);
#define SOURCE src
        BOTH(tensor_copy, .dst = s.to, .src = s.from, .engine = engine);
        prepare(&s, format, space, gathers, scatters, 0);
        BOTH(activation, .dst = s.to, .src = s.from, .op = TRN_ACT_RELU);
        prepare(&s, format, space, gathers, scatters, 0);
        BOTH(exponential, .dst = s.to, .src = s.from, .max_value = 200);
        prepare(&s, format, space, gathers, scatters, 0);
        BOTH(activate2, .dst = s.to, .src = s.from, .op = TRN_ACT_RELU, .op0 = TRN_ALU_MULTIPLY, .imm0 = 1,
             .op1 = TRN_ALU_ADD, .imm1 = 1);
        prepare(&s, format, space, gathers, scatters, 0);
        BOTH(tensor_scalar_cumulative, .dst = s.to, .src = s.from, .op0 = TRN_ALU_MULTIPLY, .imm0 = 0,
             .op1 = TRN_ALU_ADD);
#undef SOURCE
#define SOURCE data
        prepare(&s, format, space, gathers, scatters, 0);
        BOTH(tensor_scalar, .dst = s.to, .data = s.from, .op0 = TRN_ALU_ADD, .operand0 = 3, .engine = engine);
        prepare(&s, format, TRN_SPACE_SBUF, gathers, scatters, 0);
        BOTH(tensor_scalar, .dst = s.to, .data = s.from, .op0 = TRN_ALU_ADD, .operand0 = 3,
             .engine = TRN_ENGINE_GPSIMD);
        prepare(&s, TRN_F32, space, gathers, scatters, 1);
        BOTH(tensor_reduce, .dst = s.to, .data = s.from, .op = TRN_ALU_ADD, .axes = 1);
#undef SOURCE
    }
}

static void two_inputs_and_predicates(void **state)
{
    (void)state;
    shapes s;
    for (int round = 0; round < 160; round++) {
        const bool gathers = round & 1, scatters = round & 2;
        prepare(&s, TRN_F32, TRN_SPACE_SBUF, gathers, scatters, 0);
        const trn_tensor other = numbers(TRN_SPACE_SBUF, "other", TRN_F32, s.partitions, s.count);
        const trn_tensor_tensor_args sum = { .dst = s.to,
                                             .data1 = s.from,
                                             .data2 = other,
                                             .op = TRN_ALU_SUBTRACT,
                                             .engine = round & 4 ? TRN_ENGINE_GPSIMD : TRN_ENGINE_VECTOR };
        trn_core_tensor_tensor(&core, &sum);
        for (int p = 0; p < s.partitions; p++)
            for (int i = 0; i < s.count; i++) out.number[p][i] = in.number[p][i] - number(other, p, i);
        settle(&s, scatters);

        prepare(&s, TRN_F32, TRN_SPACE_SBUF, false, scatters, 0);
        const trn_tensor mask = trn_core_sbuf(&core, "mask", TRN_U8, s.partitions, F);
        for (int p = 0; p < s.partitions; p++)
            for (int f = 0; f < F; f++) *at(mask, p, f) = (char)below(2);
        trn_core_written(&core, mask);
        const trn_tensor chooses = gathers ? view(mask, s.src_index, s.count) : trn_tensor_slice(mask, 1, 0, s.count);
        const trn_tensor_copy_predicated_args copy = {
            .dst = s.to, .src = s.src, .predicate = chooses, .reverse_pred = round & 4
        };
        trn_core_tensor_copy_predicated(&core, &copy);
        fine();
        for (int p = 0; p < s.partitions; p++)
            for (int i = 0; i < s.count; i++) {
                const int64_t f = gathers ? offset_of(s.src_index, p, i, 16) : i;
                if ((*at(mask, p, f) != 0) == ((round & 4) != 0)) continue;
                if (scatters)
                    out.all[p][offset_of(s.dst_index, p, i, 16)] = number(s.src, p, i);
                else
                    out.number[p][i] = number(s.src, p, i);
            }
        for (int p = 0; p < s.partitions; p++)
            for (int f = 0; f < s.dst.shape[1]; f++)
                assert_true(number(s.dst, p, f) == (scatters ? out.all[p][f] : out.number[p][f]));
    }
}

/* Groups of 32: K of the operands, M of dst. */
static void products(void **state)
{
    (void)state;
    for (int round = 0; round < 64; round++) {
        const int k = 32 * (1 + below(4)), m = 32 * (1 + below(4)), n = 1 + below(64);
        begin(TRN_TRAINIUM3);
        const trn_tensor a = numbers(TRN_SPACE_SBUF, "a", TRN_BF16, k, round & 1 ? F : m);
        const trn_tensor b = numbers(TRN_SPACE_SBUF, "b", TRN_BF16, k, round & 2 ? F : n);
        const trn_tensor c = numbers(TRN_SPACE_PSUM, "c", TRN_F32, m, round & 4 ? F : n);
        const trn_tensor ai = offsets(TRN_U16, k, 4, F, false, 32), bi = offsets(TRN_U16, k, 2, F, false, 32);
        const trn_tensor ci = offsets(TRN_U16, m, 2, F, true, 32);
        const bool add = round & 8;
        for (int p = 0; p < m; p++)
            for (int f = 0; f < c.shape[1]; f++) out.all[p][f] = number(c, p, f);
        const trn_nc_matmul_args args = { .dst = round & 4 ? view(c, ci, n) : c,
                                          .stationary = round & 1 ? view(a, ai, m) : a,
                                          .moving = round & 2 ? view(b, bi, n) : b,
                                          .accumulate = add };
        trn_core_nc_matmul(&core, &args);
        fine();
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                const int64_t f = round & 4 ? offset_of(ci, i, j, 32) : j;
                float sum = add ? out.all[i][f] : 0;
                for (int p = 0; p < k; p++)
                    sum += number(a, p, round & 1 ? offset_of(ai, p, i, 32) : i) *
                           number(b, p, round & 2 ? offset_of(bi, p, j, 32) : j);
                out.all[i][f] = sum;
            }
        for (int i = 0; i < m; i++)
            for (int f = 0; f < c.shape[1]; f++) assert_true(number(c, i, f) == out.all[i][f]);
    }
}

/* x4 words of 64 partitions and their scales in a tile, at an offset of 4: by one index, and gathered by hand. */
static void mx_products(void **state)
{
    (void)state;
    enum { P = 64, W = 40, N = 24 };
    begin(TRN_TRAINIUM3);
    const trn_tensor codes = trn_core_sbuf(&core, "codes", TRN_F8_E4M3FN, P, 4 * W);
    const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, P, W);
    const trn_tensor index = offsets(TRN_U16, P, 1, W, false, 32), sums = trn_core_psum(&core, "sums", TRN_F32, N, N);
    const trn_tensor whole = trn_core_psum(&core, "whole", TRN_F32, N, N);
    const trn_tensor picked = trn_core_sbuf(&core, "picked", TRN_F8_E4M3FN, P, 4 * N);
    const trn_tensor picked_scales = trn_core_sbuf(&core, "picked_scales", TRN_F8_E8M0, P, N);
    for (int p = 0; p < P; p++) {
        for (int f = 0; f < 4 * W; f++) *at(codes, p, f) = (char)(below(2) * 128 + below(100));
        for (int f = 0; f < W && p % 32 >= 4 && p % 32 < 8; f++) *at(scales, p, f) = (char)(120 + below(14));
        for (int i = 0; i < N; i++) {
            memcpy(at(picked, p, 4 * i), at(codes, p, 4 * offset_of(index, p, i, 32)), 4);
            *at(picked_scales, p, i) = *at(scales, p, offset_of(index, p, i, 32));
        }
    }
    trn_core_written(&core, codes);
    trn_core_written(&core, picked);
    for (int q = 4; q < P; q += 32) {
        trn_core_written(&core, trn_tensor_slice(scales, 0, q, 4));
        trn_core_written(&core, trn_tensor_slice(picked_scales, 0, q, 4));
    }
    const trn_indirect_args words = { .data = trn_tensor_split(codes, 1, 4), .index = index, .count = N, .inner = 4 };
    const trn_tensor x = trn_core_indirect(&core, &words);
    const trn_tensor s = view(trn_tensor_slice(scales, 0, 4, P - 4), index, N);
    const trn_nc_matmul_mx_args args = {
        .dst = sums, .stationary = x, .moving = x, .stationary_scale = s, .moving_scale = s
    };
    trn_core_nc_matmul_mx(&core, &args);
    trn_nc_matmul_mx_args plain = args;
    plain.dst = whole;
    plain.stationary = plain.moving = trn_tensor_split(picked, 1, 4);
    plain.stationary_scale = plain.moving_scale = trn_tensor_slice(picked_scales, 0, 4, P - 4);
    trn_core_nc_matmul_mx(&core, &plain);
    fine();
    for (int i = 0; i < N; i++) assert_memory_equal(at(sums, i, 0), at(whole, i, 0), N * sizeof(float));
    trn_nc_matmul_mx_args one = plain; /* moving alone by an index: the same sums */
    one.dst = sums;
    one.moving = x;
    one.moving_scale = s;
    trn_core_nc_matmul_mx(&core, &one);
    fine();
    for (int i = 0; i < N; i++) assert_memory_equal(at(sums, i, 0), at(whole, i, 0), N * sizeof(float));
    trn_nc_matmul_mx_args half = args;
    half.moving_scale = plain.moving_scale;
    trn_core_nc_matmul_mx(&core, &half);
    told("instruction 3, nc_matmul_mx: moving and moving_scale are one tensor: both are indirect views by the same "
         "index, or neither is");
}

/* ---- defaults ---- */

static void as_many_as_the_index_has(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM3);
    const trn_tensor data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 128, F);
    assert_int_equal(view(data, offsets(TRN_U16, 128, 3, F, false, 16), 0).shape[1], 48);
    assert_int_equal(view(trn_tensor_slice(data, 0, 0, 8), offsets(TRN_U16, 8, 3, F, false, 16), 0).shape[1], 24);
    fine();
    /* Free axes of data count as one. */
    const trn_tensor index = offsets(TRN_U16, 128, 1, F, false, 16);
    const trn_tensor dst = trn_core_sbuf(&core, "dst", TRN_F32, 128, 16);
    const trn_tensor turned = trn_tensor_split(data, 1, 100);
    const int axis[] = { 0, 2, 1 };
    const trn_tensor_copy_args args = { .dst = dst, .src = view(trn_tensor_permuted(turned, axis), index, 16) };
    trn_core_tensor_copy(&core, &args);
    fine();
    for (int p = 0; p < 128; p++)
        for (int i = 0; i < 16; i++) {
            const int64_t f = offset_of(index, p, i, 16);
            assert_true(number(dst, p, i) == number(data, p, f % 3 * 100 + f / 3));
        }
}

/* ---- what is written, what has to be ---- */

static trn_tensor row_of(int from)
{
    const trn_tensor index = trn_core_sbuf(&core, "index", TRN_U16, 16, 1);
    for (int p = 0; p < 16; p++) name_offset(index, p, 0, from + p);
    trn_core_written(&core, index);
    return index;
}

static void unwritten_elements(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM3);
    trn_tensor data = tile("data", 16, 64), dst = tile("dst", 16, 16);
    trn_core_written(&core, trn_tensor_slice(data, 1, 16, 32));
    copy(dst, view(data, row_of(16), 16), TRN_ENGINE_VECTOR); /* those alone that the index names */
    fine();
    copy(dst, view(data, row_of(40), 16), TRN_ENGINE_VECTOR);
    told("instruction 1, tensor_copy: src reads partition 0, element 48 of 'data', which nothing has written");

    data = tile("data", 16, 64), dst = tile("dst", 16, 64);
    trn_core_written(&core, data);
    copy(view(dst, row_of(8), 16), trn_tensor_slice(data, 1, 0, 16), TRN_ENGINE_VECTOR);
    static float host[16 * 64];
    const trn_tensor hbm = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_F32, host, 16, 64));
    const trn_dma_copy_args inside = { .dst = trn_tensor_slice(hbm, 1, 0, 16), .src = trn_tensor_slice(dst, 1, 8, 16) };
    trn_core_dma_copy(&core, &inside);
    fine();
    const trn_dma_copy_args beyond = { .dst = trn_tensor_slice(hbm, 1, 0, 16), .src = trn_tensor_slice(dst, 1, 9, 16) };
    trn_core_dma_copy(&core, &beyond);
    told("instruction 2, dma_copy: src reads partition 0, element 24 of 'dst', which nothing has written");

    data = tile("data", 16, 64), dst = tile("dst", 16, 16);
    trn_core_written(&core, data);
    copy(dst, view(data, trn_core_sbuf(&core, "empty", TRN_U16, 16, 1), 16), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: index reads partition 0, element 0 of 'empty', which nothing has written");

    /* Strict: nothing unwritten is carried into an indirect dst. */
    dst = tile("dst", 16, 64);
    copy(view(dst, row_of(0), 16), tile("nothing", 16, 16), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: src reads partition 0, element 0 of 'nothing', which nothing has written");
}

/* ---- refusals ---- */

static void views_that_cannot_be(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor data = tile("data", 16, 64), index = row_of(0);
    trn_tensor v = view(data, index, 16);
    assert_int_equal(v.rank, 0);
    expect("trn_core_indirect: Trainium2 has no indirect views; Trainium3 does");
    begin(TRN_TRAINIUM3);
    data = tile("data", 16, 64), index = row_of(0);
    view(data, index, 33);
    told("trn_core_indirect: count is 33; an index of 1 columns has 1 to 32");
    data = tile("data", 16, 64);
    v = view(data, data, 16);
    assert_int_equal(v.shape[1], 16); /* there is memory behind it */
    memset(v.data, 0, 16 * 16 * sizeof(float));
    told("trn_core_indirect: index is float32; it is uint16, uint32 or int32");
    view(trn_core_sbuf(&core, "wide", TRN_F32, 32, 4), row_of(0), 1);
    told("trn_core_indirect: data has 32 partitions, index 16");
    data = tile("data", 16, 64), index = row_of(0);
    view(view(data, index, 16), index, 16);
    told("trn_core_indirect: data is an indirect view itself");
    index = trn_core_sbuf(&core, "long", TRN_U16, 128, 2000);
    view(trn_core_sbuf(&core, "data", TRN_F32, 128, 64), index, 8193);
    told("trn_core_indirect: 8193 elements of 128 partitions; there is room for 4194304 bytes");
    const trn_indirect_args odd = { .data = tile("data", 16, 64), .index = row_of(0), .count = 1, .inner = 4 };
    trn_core_indirect(&core, &odd);
    told("trn_core_indirect: data is [P, F ...], or [P, F ..., inner] with an inner of 2 to 4; inner is 4");
}

static void operands_that_cannot_be(void **state)
{
    (void)state;
    static float host[16 * 64];
    begin(TRN_TRAINIUM3);
    trn_tensor data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16), v;
    copy(dst, view(data, row_of(0), 16), TRN_ENGINE_GPSIMD);
    told("instruction 0, tensor_copy: src is an indirect view, which engine gpsimd does not follow here");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16);
    const trn_tensor_tensor_args sum = {
        .dst = dst, .data1 = dst, .data2 = view(data, row_of(0), 16), .op = TRN_ALU_ADD
    };
    trn_core_tensor_tensor(&core, &sum);
    told("instruction 0, tensor_tensor: data2 is an indirect view, which this operand cannot be");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64);
    const trn_tensor hbm = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_F32, host, 16, 16));
    const trn_dma_copy_args move = { .dst = hbm, .src = view(data, row_of(0), 16) };
    trn_core_dma_copy(&core, &move);
    told("instruction 0, dma_copy: src is an indirect view, which this operand cannot be");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16);
    copy(dst, view(data, row_of(50), 16), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: index [14, 0] of src is 64, beyond its 64 elements");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 20);
    copy(dst, view(data, row_of(0), 20), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: src takes 20 elements; an index of 1 columns has 16 on vector");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 8);
    copy(dst, trn_tensor_slice(view(data, row_of(0), 16), 1, 0, 8), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: src is cut from an indirect view; such a view is taken as it is");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16);
    const trn_tensor index = row_of(0), first = view(data, index, 16);
    for (int i = 0; i < 1023; i++) view(data, index, 16);
    copy(dst, first, TRN_ENGINE_VECTOR);
    fine();
    view(data, index, 16);
    copy(dst, first, TRN_ENGINE_VECTOR);
    told("instruction 1, tensor_copy: src is an indirect view that is forgotten: 1024 others were made since");

    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16);
    const trn_tensor last = row_of(0);
    for (int i = 0; i < 1025; i++) v = view(data, last, 16);
    copy(dst, trn_tensor_2d(TRN_F32, v.data, 16, 16), TRN_ENGINE_VECTOR); /* its memory without its number */
    told("instruction 0, tensor_copy: src is cut from an indirect view; such a view is taken as it is");

    const trn_tensor wide = offsets(TRN_U16, 128, 512, 64, false, 16);
    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 128, 64), dst = trn_core_sbuf(&core, "dst", TRN_F32, 128, 64);
    copy(view(dst, wide, 4096), view(data, wide, 4096), TRN_ENGINE_VECTOR); /* two halves of the room */
    fine();
    copy(view(dst, wide, 4097), view(data, wide, 4097), TRN_ENGINE_VECTOR);
    told("instruction 1, tensor_copy: src: the indirect views of one instruction have room for 4194304 bytes");

    data = numbers(TRN_SPACE_PSUM, "data", TRN_F32, 16, 64), dst = numbers(TRN_SPACE_SBUF, "dst", TRN_F32, 16, 16);
    copy(view(data, row_of(0), 16), dst, TRN_ENGINE_SCALAR);
    told("instruction 0, tensor_copy: dst is an indirect view of PSUM, where ScalarE cannot scatter");

    const trn_core_tile_args lower = {
        .name = "lower", .format = TRN_U16, .rank = 2, .shape = { 16, 1 }, .start_partition = 32
    };
    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 64), dst = tile("dst", 16, 16);
    copy(dst, view(data, trn_core_tile(&core, &lower), 16), TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: the index of src begins at partition 32; it begins where src does, at 0");
    data = numbers(TRN_SPACE_SBUF, "data", TRN_F32, 16, 16), dst = tile("dst", 16, 64);
    copy(view(dst, trn_core_tile(&core, &lower), 16), data, TRN_ENGINE_VECTOR);
    told("instruction 0, tensor_copy: the index of dst begins at partition 32; it begins where src does, at 0");

    data = trn_core_sbuf(&core, "data", TRN_I32, 16, 64), dst = trn_core_sbuf(&core, "dst", TRN_I32, 16, 16);
    const trn_tensor_scalar_args address = { .dst = dst, .data = view(data, row_of(0), 16), .op0 = TRN_ALU_ADD };
    trn_core_tensor_scalar(&core, &address);
    told("instruction 0, tensor_scalar: data and dst are 32-bit integers, and one of them is an indirect view: "
         "addresses are not computed through one");
}

static void products_that_cannot_be(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM3);
    for (int i = 0; i < 3; i++) {
        const trn_format format = i == 2 ? TRN_F32 : TRN_BF16;
        const trn_tensor a = numbers(TRN_SPACE_SBUF, "a", format, 32, 64);
        const trn_tensor index = offsets(TRN_U16, 32, 1, 64, false, 32), v = view(a, index, 32);
        const trn_tensor whole = trn_tensor_slice(a, 1, 0, 32);
        trn_nc_matmul_args args = { .dst = trn_core_psum(&core, "sum", format, 32, 32),
                                    .stationary = whole,
                                    .moving = v };
        args.is_transpose = i == 0;
        args.tile_size.row = args.tile_size.column = args.tile_position.column = i == 1 ? 32 : 0;
        trn_core_nc_matmul(&core, &args);
        static const char *const sentence[] = {
            "instruction 0, nc_matmul: moving is an indirect view; with is_transpose it cannot be",
            "instruction 0, nc_matmul: tile_position is 0, 32; with an indirect view it is 0, 0",
            "instruction 0, nc_matmul: moving is an indirect view of float32; through one TensorE takes float16, "
            "bfloat16, float8_e4m3, float8_e4m3fn and float8_e5m2"
        };
        told(sentence[i]);
    }
}

/* ---- time ---- */

static void they_cost_their_index(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM3);
    const trn_tensor data = numbers(TRN_SPACE_SBUF, "data", TRN_BF16, 128, 1024);
    const trn_tensor dst = trn_core_sbuf(&core, "dst", TRN_BF16, 128, 512);
    trn_core_report report;
    copy(dst, view(data, offsets(TRN_U16, 128, 32, 1024, false, 16), 512), TRN_ENGINE_VECTOR);
    fine();
    trn_core_report_of(&core, &report);
    assert_true(report.engine[TRN_ENGINE_VECTOR].cycles == 512 / 2 + 64); /* scattered: half of the fast mode */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),
        cmocka_unit_test(two_inputs_and_predicates),
        cmocka_unit_test(products),
        cmocka_unit_test(mx_products),
        cmocka_unit_test(as_many_as_the_index_has),
        cmocka_unit_test(unwritten_elements),
        cmocka_unit_test(views_that_cannot_be),
        cmocka_unit_test(operands_that_cannot_be),
        cmocka_unit_test(products_that_cannot_be),
        cmocka_unit_test(they_cost_their_index),
    };
    return cmocka_run_group_tests_name("core_indirect", tests, NULL, NULL);
}

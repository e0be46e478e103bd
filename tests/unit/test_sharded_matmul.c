/* test_sharded_matmul.c - products of sharded matrices, device by device: every element against the product of the
 * wholes, or against local products that go through trn_collective_run whole; what moves; times; every refusal.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "trnmath/trn_reshard.h"
#include "twin/cases.h"
#include "twin/host.h"

enum { DEVICES = 24, ROOM = 1 << 14, MOST = 64 };

static uint64_t rng;

#include "twin/shard_cases.h"

static unsigned char memory[3][DEVICES][ROOM], before[DEVICES][ROOM];
static trn_tensor part[3][DEVICES];
static unsigned char whole[2][4 * MOST * MOST]; /* a, b */

static int wild = 1 << 20; /* one number in so many is any number */

/* ---- random products ---- */

typedef struct product {
    twin_sharding twin[3]; /* a [m, k], b [k, n], dst [m, n] */
    int64_t m, n, k;
    trn_format format[3], wire;
    trn_sharded_matmul_args args;
    trn_sharded_matmul_plan plan;
    trn_cost cost;
} product;

static float value_of(trn_format format, bool small)
{
    if (small) return (float)(below(5) - 2);
    const uint32_t safe = cases_u32(&rng) % 0x02000000u + 0x3e800000u + (one_in(2) ? 0x80000000u : 0);
    const uint32_t u = one_in(wild) ? cases_float(&rng) : safe;
    return trn_decode(format, trn_encode(format, cases_float_of(u), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
}

static void fill_whole(const product *p, int which, bool small)
{
    const trn_format f = p->format[which];
    for (int64_t i = 0; i < MOST * MOST; i++) {
        const uint32_t code = trn_encode(f, value_of(f, small), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        memcpy(whole[which] + (size_t)i * bytes_of(f), &code, bytes_of(f));
    }
}

static void fill_part(const product *p, int which)
{
    const twin_sharding *t = &p->twin[which];
    int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
    random_parts(t, p->format[which], memory[which], part[which]);
    if (t->shape[0] == 0 || t->shape[1] == 0) return;
    do
        for (int i = 0; which < 2 && i < mesh.devices; i++)
            if (twin_holds(t, i, index, local))
                memcpy((unsigned char *)part[which][i].data + place(&part[which][i], local),
                       whole[which] + (size_t)(index[0] * t->shape[1] + index[1]) * bytes_of(p->format[which]),
                       bytes_of(p->format[which]));
    while (twin_next(2, t->shape, index));
}

static int random_size(void) { return one_in(15) ? 0 : 1 + below(one_in(2) ? MOST : 12); }

static void random_product(product *p, bool small, bool sums)
{
    static const trn_format in[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3 }, out[] = { TRN_F32, TRN_BF16, TRN_F16 };
    twin_sharding base;
    memset(p, 0, sizeof *p);
    random_mesh(&base);
    base.rank = 2;
    p->m = random_size(), p->n = random_size(), p->k = random_size();
    for (int w = 0; w < 3; w++) {
        p->twin[w] = base;
        random_roles(&p->twin[w], w == 2 && sums && one_in(3));
        p->twin[w].shape[0] = w == 1 ? p->k : p->m;
        p->twin[w].shape[1] = w == 0 ? p->k : p->n;
    }
    if (!one_in(3)) /* K is cut alike, as a rule */
        for (int a = 0; a < base.axes; a++)
            if (p->twin[0].role[a] == 1 || p->twin[1].role[a] == 0) {
                const bool cut = p->twin[0].role[a] == 1;
                p->twin[0].role[a] = cut ? 1 : TWIN_WHOLE;
                p->twin[1].role[a] = cut ? 0 : TWIN_WHOLE;
            }
    for (int w = 0; w < 2; w++) /* depths anew, in the mesh's order */
        for (int d = 0; d < 2; d++)
            for (int a = 0, depth = 0; a < base.axes; a++)
                if (p->twin[w].role[a] == d) p->twin[w].depth[a] = depth++;
    p->format[0] = in[below(4)];
    p->format[1] = p->format[0] == TRN_F32 ? TRN_F32 : in[1 + below(3)];
    p->format[2] = small ? out[below(2)] : out[below(3)];
    p->wire = one_in(2) ? TRN_FORMAT_UNSET : small ? TRN_F32 : out[below(3)];
    fill_whole(p, 0, small), fill_whole(p, 1, small);
    for (int w = 0; w < 3; w++) fill_part(p, w);

    trn_sharded_matmul_args *a = &p->args;
    a->mesh = &mesh;
    a->m = p->m, a->n = p->n, a->k = p->k;
    a->a_spec = spec_of(&p->twin[0]), a->b_spec = spec_of(&p->twin[1]), a->dst_spec = spec_of(&p->twin[2]);
    a->a = part[0], a->b = part[1], a->dst = part[2];
    a->wire = p->wire;
    a->cost = &p->cost;
    a->plan = &p->plan;
}

static void run(product *p)
{
    trn_error error;
    p->args.error = &error;
    if (trn_sharded_matmul(&p->args)) fail_msg("%s", error.text);
    p->args.error = NULL;
}

static uint32_t code_at(const trn_tensor *t, const int64_t *index)
{
    uint32_t code = 0;
    memcpy(&code, (const unsigned char *)t->data + place(t, index), bytes_of(t->format));
    return code;
}

/* ---- whole numbers: every way to sum them is exact ---- */

static float exact(const product *p, const int64_t *index)
{
    float sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        uint32_t x = 0, y = 0;
        memcpy(&x, whole[0] + (size_t)(index[0] * p->k + k) * bytes_of(p->format[0]), bytes_of(p->format[0]));
        memcpy(&y, whole[1] + (size_t)(k * p->n + index[1]) * bytes_of(p->format[1]), bytes_of(p->format[1]));
        sum += trn_decode(p->format[0], x) * trn_decode(p->format[1], y);
    }
    return sum;
}

static float held(const product *p, const int64_t *index)
{
    const twin_sharding *t = &p->twin[2];
    int64_t local[TWIN_DIMS];
    float sum = 0;
    for (int i = 0; i < mesh.devices; i++) {
        bool counts = twin_holds(t, i, index, local);
        for (int a = 0; a < t->axes; a++)
            if (t->role[a] == TWIN_WHOLE && twin_coordinate(t, i, a)) counts = false;
        if (counts) sum += trn_decode(p->format[2], code_at(&part[2][i], local));
    }
    return sum;
}

static void test_whole_numbers(void **state)
{
    (void)state;
    static product p;
    rng = 21;
    for (int round = cases_rounds(300, 10000); round > 0; round--) {
        random_product(&p, true, true);
        run(&p);
        int64_t index[TWIN_DIMS] = { 0 };
        const int64_t shape[2] = { p.m, p.n };
        if (p.m && p.n) do
                if (held(&p, index) != exact(&p, index))
                    fail_msg("element %d %d is %g, not %g", (int)index[0], (int)index[1], (double)held(&p, index),
                             (double)exact(&p, index));
            while (twin_next(2, shape, index));
        trn_replicas replicas = { 0 };
        trn_shard_args parts = { .mesh = &mesh, .spec = p.args.dst_spec, .parts = part[2] };
        parts.global = trn_tensor_2d(p.format[2], NULL, p.m, p.n);
        assert_int_equal(trn_shard_replicas_equal(&parts, &replicas), TRN_OK);
        assert_true(replicas.equal);
        assert_true(p.cost.time_s == p.plan.time_s && p.cost.lower_bound_s <= p.cost.time_s * (1 + 1e-9));
    }
}

/* ---- any numbers: the bits ---- */

/* Into `out` [m, n] binary32: one product of the wholes, or the sums of a collective over whole partial products. */
static float out[MOST * MOST], partial[DEVICES][MOST * MOST], sums[DEVICES][MOST * MOST];
static uint32_t codes[MOST * MOST];

static trn_tensor whole_view(const product *p, int which)
{
    return trn_tensor_2d(p->format[which], whole[which], which == 1 ? p->k : p->m, which == 1 ? p->n : p->k);
}

/* The local product of a device, over the rows and columns of a box. */
static void local_product(const product *p, int device, const trn_box *box, float *to)
{
    const trn_tensor ak = trn_tensor_2d(TRN_F32, NULL, p->m, p->k);
    const trn_box k = trn_shard_box(&mesh, &p->plan.a_at, &ak, device);
    trn_matmul_args m = p->args.matmul;
    m.a = trn_tensor_slice(trn_tensor_slice(whole_view(p, 0), 0, box->first[0], box->count[0]), 1, k.first[1],
                           k.count[1]);
    m.b = trn_tensor_slice(trn_tensor_slice(whole_view(p, 1), 0, k.first[1], k.count[1]), 1, box->first[1],
                           box->count[1]);
    m.dst = trn_tensor_2d(TRN_F32, to, box->count[0], box->count[1]);
    m.rounding = TRN_NEAREST_EVEN;
    assert_int_equal(trn_matmul(&m), TRN_OK);
}

/* Sums over one group of the step, of a buffer as `ahead` cuts it, by an all-reduce whose chunks are the step's. */
static void group_sums(const product *p, const trn_reshard_step *step, const trn_pspec *ahead, const int *device,
                       int members, int group)
{
    const trn_tensor c = trn_tensor_2d(TRN_F32, NULL, p->m, p->n);
    const trn_box box = trn_shard_box(&mesh, ahead, &c, device[0]);
    trn_tensor src[DEVICES], dst[DEVICES];
    int chip[DEVICES];
    const int cut = step->to_dim;
    if (!box.count[0] || !box.count[1]) return;
    for (int i = 0; i < members; i++) {
        local_product(p, device[i], &box, partial[i]);
        src[i] = trn_tensor_2d(TRN_F32, partial[i], box.count[0], box.count[1]);
        dst[i] = trn_tensor_2d(TRN_F32, sums[i], box.count[0], box.count[1]);
        if (cut == 1) src[i] = trn_tensor_transposed(src[i]), dst[i] = trn_tensor_transposed(dst[i]);
        chip[i] = trn_mesh_chip(&mesh, device[i]);
    }
    trn_collective_args a = {
        .net = &net, .op = TRN_ALL_REDUCE, .algorithm = step->algorithm, .single_step = step->cost.single_step
    };
    a.chips = chip, a.count = members, a.src = src, a.dst = dst;
    a.wire = p->wire ? p->wire : p->format[2];
    a.rounding = p->args.matmul.rounding;
    a.overflow = p->args.matmul.overflow;
    a.seed = p->args.matmul.seed;
    a.stream = p->args.matmul.stream + ((uint64_t)group << 32);
    if (cut >= 0) {
        const int64_t size = cut ? p->n : p->m, parts = trn_pspec_parts(&step->after, &mesh, cut);
        a.granule = (size + parts - 1) / parts * box.count[1 - cut];
    }
    assert_int_equal(trn_collective_run(&a), TRN_OK);
    for (int64_t r = 0; r < box.count[0]; r++)
        for (int64_t c2 = 0; c2 < box.count[1]; c2++)
            out[(box.first[0] + r) * p->n + box.first[1] + c2] = sums[0][r * box.count[1] + c2];
}

/* False where the plan closes its sum in more than one step, or leaves some of it open. */
static bool expected_product(const product *p)
{
    const trn_reshard_step *step = NULL;
    int device[DEVICES], sums_closed = 0;
    if (!p->plan.product.sum) {
        trn_matmul_args m = p->args.matmul;
        m.a = whole_view(p, 0), m.b = whole_view(p, 1);
        m.dst = trn_tensor_2d(p->format[2], codes, p->m, p->n);
        assert_int_equal(trn_matmul(&m), TRN_OK);
        for (int64_t i = 0; i < p->m * p->n; i++) {
            uint32_t code = 0;
            memcpy(&code, (unsigned char *)codes + (size_t)i * bytes_of(p->format[2]), bytes_of(p->format[2]));
            out[i] = trn_decode(p->format[2], code);
        }
        return true;
    }
    for (int i = 0; i < p->plan.result.steps; i++) {
        const trn_reshard_step *s = &p->plan.result.step[i];
        if (s->kind != TRN_RESHARD_COLLECTIVE || (s->op != TRN_ALL_REDUCE && s->op != TRN_REDUCE_SCATTER)) continue;
        step = s;
        sums_closed++;
    }
    if (sums_closed != 1 || (step->after.sum & p->plan.product.sum)) return false;
    const trn_pspec *ahead = step == p->plan.result.step ? &p->plan.product : &(step - 1)->after;
    const int members = trn_mesh_group_size(&mesh, step->axis, step->axes), groups = mesh.devices / members;
    for (int g = groups - 1; g >= 0; g--) { /* of several groups with the same sums, the first one's words count */
        int base = 0, rest = g;
        for (int a = mesh.axes - 1; a >= 0; a--) {
            bool inner = false;
            for (int i = 0; i < step->axes; i++) inner = inner || step->axis[i] == a;
            if (inner) continue;
            base += rest % mesh.axis[a].size * mesh.axis[a].stride;
            rest /= mesh.axis[a].size;
        }
        for (int i = 0; i < members; i++) {
            int at = i;
            device[i] = base;
            for (int a = step->axes - 1; a >= 0; a--) {
                device[i] += at % mesh.axis[step->axis[a]].size * mesh.axis[step->axis[a]].stride;
                at /= mesh.axis[step->axis[a]].size;
            }
        }
        group_sums(p, step, ahead, device, members, g);
    }
    return true;
}

/* Every element of every device; -0 where a new sum is opened. */
static void check_bits(const product *p)
{
    const twin_sharding *t = &p->twin[2];
    int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
    if (!p->m || !p->n) return;
    do
        for (int i = 0; i < mesh.devices; i++) {
            if (!twin_holds(t, i, index, local)) continue;
            const float x = twin_leads_sum(t, i) ? out[index[0] * p->n + index[1]] : -0.0f;
            const uint32_t want = trn_encode(p->format[2], x, TRN_NEAREST_EVEN, p->args.matmul.overflow, 0);
            if (code_at(&part[2][i], local) != want)
                fail_msg("device %d, element %d %d: %x, not %x", i, (int)index[0], (int)index[1],
                         (unsigned)code_at(&part[2][i], local), (unsigned)want);
        }
    while (twin_next(2, t->shape, index));
}

static void test_bits(void **state)
{
    (void)state;
    static const char *const texts[] = { "chains=1", "k_tile=16,chains=2", "exact" };
    static const trn_algorithm ways[] = { TRN_ALGORITHM_AUTO, TRN_ALGORITHM_AUTO, TRN_RING, TRN_MESH,
                                          TRN_BIDIRECTIONAL_RING };
    static product p;
    int one = 0, summed = 0;
    rng = 22;
    for (int round = cases_rounds(500, 15000); round > 0; round--) {
        wild = one_in(3) ? 200 : 1 << 20;
        random_product(&p, false, one_in(4));
        p.args.algorithm = ways[below(5)];
        p.args.matmul.overflow = one_in(4) ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
        p.args.matmul.rounding = one_in(4) ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN;
        if (p.args.matmul.rounding && p.wire && p.wire != p.format[2]) p.wire = p.args.wire = TRN_FORMAT_UNSET;
        trn_numerics numerics = trn_numerics_default(TRN_TRAINIUM2);
        if (one_in(5)) { /* orders that kernels know, and one that they do not */
            assert_int_equal(trn_numerics_parse(&numerics, texts[below(3)]), TRN_OK);
            p.args.matmul.numerics = &numerics;
        }
        run(&p);
        if (!expected_product(&p)) continue;
        check_bits(&p);
        one += p.plan.product.sum == 0;
        summed += p.plan.product.sum != 0;
    }
    assert_true(one > 20 && summed > 20);
}

/* Stochastic rounding draws what trn_matmul and trn_collective_run would draw. */
static void test_stochastic(void **state)
{
    (void)state;
    static product p;
    rng = 23;
    for (int round = cases_rounds(120, 5000); round > 0; round--) {
        random_product(&p, false, false);
        p.wire = p.args.wire = TRN_FORMAT_UNSET;
        p.args.matmul.rounding = TRN_STOCHASTIC;
        p.args.matmul.seed = cases_next(&rng);
        p.args.matmul.stream = cases_next(&rng);
        run(&p);
        if (expected_product(&p)) check_bits(&p);
    }
}

/* ---- products of several tiles, blocks and tasks ---- */

static void test_large(void **state)
{
    (void)state;
    enum { M = 210, N = 1100, K = 900, D = 6 };
    static const trn_algorithm ways[] = { TRN_SWITCH_DIRECT, TRN_RING, TRN_BIDIRECTIONAL_RING, TRN_MESH,
                                          TRN_MULTI_RING };
    static const int torus[] = { 2, 3 }; /* the last: in two channels */
    static const char *const specs[] = { "()", "(x, *)", "(*, x)" };
    static uint16_t a[M * K], b[K * N], c[D][M * N], want[D][M * N];
    static float all[D][M * N];
    rng = 26;
    for (int i = 0; i < M * K; i++) a[i] = (uint16_t)(0x3f00 + below(0x100) + (one_in(2) ? 0x8000 : 0));
    for (int i = 0; i < K * N; i++) b[i] = (uint16_t)(0x3f00 + below(0x100) + (one_in(2) ? 0x8000 : 0));
    const trn_tensor wa = trn_tensor_2d(TRN_BF16, a, M, K), wb = trn_tensor_2d(TRN_BF16, b, K, N);
    for (int i = 0; i < 5 * 3; i++) {
        net = i < 4 * 3 ? trn_topology_switch(D, 1e9, 1e-6) : trn_topology_torus(2, torus, 1e9, 1e-6);
        assert_int_equal(trn_mesh_init(&mesh, &net, "x=6"), TRN_OK);
        trn_tensor v[3][D], src[D], dst[D];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = M, .n = N, .k = K, .a = v[0], .b = v[1], .dst = v[2] };
        trn_collective_args sum = { .net = &net, .op = TRN_ALL_REDUCE, .src = src, .dst = dst, .wire = TRN_BF16 };
        const int cut = i % 3 - 1;
        s.algorithm = sum.algorithm = ways[i / 3];
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(*, x)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, specs[i % 3]), TRN_OK);
        const trn_tensor wc = trn_tensor_2d(TRN_BF16, NULL, M, N);
        for (int d = 0; d < D; d++) {
            const trn_box box = trn_shard_box(&mesh, &s.dst_spec, &wc, d);
            v[0][d] = trn_shard_part(&mesh, &s.a_spec, &wa, d);
            v[1][d] = trn_shard_part(&mesh, &s.b_spec, &wb, d);
            v[2][d] = trn_tensor_nd(TRN_BF16, c[d], 2, box.count);
            const trn_matmul_args m = { .dst = trn_tensor_2d(TRN_F32, all[d], M, N), .a = v[0][d], .b = v[1][d] };
            assert_int_equal(trn_matmul(&m), TRN_OK);
            src[d] = m.dst;
            dst[d] = trn_tensor_2d(TRN_BF16, want[d], M, N);
            if (cut == 1) src[d] = trn_tensor_transposed(src[d]), dst[d] = trn_tensor_transposed(dst[d]);
        }
        sum.granule = cut < 0 ? 0 : cut ? (N + D - 1) / D * M : (M + D - 1) / D * N;
        assert_int_equal(trn_collective_run(&sum), TRN_OK);
        assert_int_equal(trn_sharded_matmul(&s), TRN_OK);
        const trn_tensor done = trn_tensor_2d(TRN_BF16, want[0], M, N);
        for (int d = 0; d < D; d++) {
            const trn_tensor part_of = trn_shard_part(&mesh, &s.dst_spec, &done, d);
            int64_t index[TWIN_DIMS] = { 0 };
            do
                if (code_at(&v[2][d], index) != code_at(&part_of, index))
                    fail_msg("%s to %s: device %d, element %d %d", trn_algorithm_name(s.algorithm), specs[i % 3], d,
                             (int)index[0], (int)index[1]);
            while (twin_next(2, v[2][d].shape, index));
        }
    }
}

/* More members than the DMA engines add at once, and parts of K that end in half a pair of double rows. */
static void test_many_members(void **state)
{
    (void)state;
    enum { M = 97, N = 1030, K = 20 * 7, D = 20 };
    static unsigned char a[M * K], b[K * N];
    static float all[D][M * N];
    static uint16_t want[D][M * N], c[D][M * N];
    rng = 27;
    for (int i = 0; i < M * K; i++) a[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    for (int i = 0; i < K * N; i++) b[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    net = trn_topology_switch(D, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=20"), TRN_OK);
    const trn_tensor wa = trn_tensor_2d(TRN_F8_E4M3, a, M, K), wb = trn_tensor_2d(TRN_F8_E4M3, b, K, N);
    for (int pairs = 0; pairs < 2; pairs++) {
        trn_tensor v[3][D], src[D], dst[D];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = M, .n = N, .k = K, .a = v[0], .b = v[1], .dst = v[2] };
        trn_collective_args sum = { .net = &net, .op = TRN_ALL_REDUCE, .src = src, .dst = dst, .wire = TRN_BF16 };
        s.algorithm = sum.algorithm = TRN_SWITCH_DIRECT;
        s.matmul.double_row = pairs;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(*, x)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, "(x, *)"), TRN_OK);
        for (int d = 0; d < D; d++) {
            v[0][d] = trn_shard_part(&mesh, &s.a_spec, &wa, d);
            v[1][d] = trn_shard_part(&mesh, &s.b_spec, &wb, d);
            v[2][d] = trn_tensor_2d(TRN_BF16, c[d], M, N);
            trn_matmul_args m = { .dst = trn_tensor_2d(TRN_F32, all[d], M, N), .a = v[0][d], .b = v[1][d] };
            m.double_row = pairs;
            assert_int_equal(trn_matmul(&m), TRN_OK);
            src[d] = m.dst;
            dst[d] = trn_tensor_2d(TRN_BF16, want[d], M, N);
        }
        assert_int_equal(trn_collective_run(&sum), TRN_OK);
        assert_int_equal(trn_sharded_matmul(&s), TRN_OK);
        for (int d = 0; d < D; d++) assert_memory_equal(c[d], want[d], sizeof c[d]);
    }
}

/* ---- MX ---- */

static void test_mx(void **state)
{
    (void)state;
    enum { M = 24, N = 20, K = 256 };
    static unsigned char a[M * K], b[K * N], a_scale[M * K / 32], b_scale[N * K / 32];
    static float c[2][M * N], parts_c[4][M * N];
    rng = 24;
    for (int i = 0; i < M * K; i++) a[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    for (int i = 0; i < K * N; i++) b[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    for (int i = 0; i < M * K / 32; i++) a_scale[i] = (unsigned char)(120 + below(10));
    for (int i = 0; i < N * K / 32; i++) b_scale[i] = (unsigned char)(120 + below(10));
    net = trn_topology_switch(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=4"), TRN_OK);
    const trn_tensor wa = trn_tensor_2d(TRN_F8_E4M3FN, a, M, K), wb = trn_tensor_2d(TRN_F8_E4M3FN, b, K, N);
    const trn_tensor sa = trn_tensor_2d(TRN_F8_E8M0, a_scale, M, K / 32),
                     sb = trn_tensor_2d(TRN_F8_E8M0, b_scale, N, K / 32);
    for (int way = 0; way < 2; way++) { /* rows of a; K of both */
        trn_tensor v[5][4];
        trn_error error;
        trn_pspec sas, sbs;
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = M, .n = N, .k = K, .error = &error };
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, way ? "(*, x)" : "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, way ? "(x, *)" : "()"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, way ? "()" : "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&sas, &mesh, way ? "(*, x)" : "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&sbs, &mesh, way ? "(*, x)" : "()"), TRN_OK);
        for (int i = 0; i < 4; i++) {
            v[0][i] = trn_shard_part(&mesh, &s.a_spec, &wa, i);
            v[1][i] = trn_shard_part(&mesh, &s.b_spec, &wb, i);
            v[2][i] = trn_shard_part(&mesh, &sas, &sa, i);
            v[3][i] = trn_shard_part(&mesh, &sbs, &sb, i);
            v[4][i] = trn_tensor_2d(TRN_F32, parts_c[i], way ? M : M / 4, N);
        }
        s.a = v[0], s.b = v[1], s.a_scale = v[2], s.b_scale = v[3], s.dst = v[4];
        if (trn_sharded_matmul(&s)) fail_msg("%s", error.text);
        memset(c, 0, sizeof c);
        for (int i = 0; i < (way ? 4 : 1); i++) {
            trn_matmul_args m = { .a = way ? v[0][i] : wa,
                                  .b = way ? v[1][i] : wb,
                                  .a_scale = way ? v[2][i] : sa,
                                  .b_scale = way ? v[3][i] : sb };
            m.dst = trn_tensor_2d(TRN_F32, c[1], M, N);
            assert_int_equal(trn_matmul(&m), TRN_OK);
            for (int k = 0; k < M * N; k++) c[0][k] = i ? c[0][k] + c[1][k] : c[1][k];
        }
        for (int i = 0; i < 4; i++)
            assert_memory_equal(parts_c[i], way ? c[0] : c[0] + i * M / 4 * N,
                                sizeof(float) * (size_t)(way ? M * N : M / 4 * N));
        if (!way) continue;
        s.k = K - 32;
        assert_int_equal(trn_sharded_matmul(&s), TRN_ESHAPE);
        s.k = K;
        s.b_scale = NULL;
        assert_int_equal(trn_sharded_matmul(&s), TRN_EINVAL);
        assert_string_equal(error.text, "MX needs the scales of both operands; b_scale is null");
        s.b_scale = v[3];
        s.matmul.a_scale = sa;
        assert_int_equal(trn_sharded_matmul(&s), TRN_EINVAL);
    }
}

/* ---- what moves ---- */

static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *dst, *a_at, *b_at, *product;
        int steps[3];
    } row[] = {
        { "(x, *)", "(*, y)", "(x, y)", "(x, *)", "(*, y)", "(x, y)", { 0, 0, 0 } },          /* nothing moves */
        { "(x, y)", "(y, *)", "(x, *)", "(x, y)", "(y, *)", "(x, *) + sum(y)", { 0, 0, 1 } }, /* all_reduce */
        { "(x, y)", "(y, *)", "(x, y)", "(x, y)", "(y, *)", "(x, *) + sum(y)", { 0, 0, 1 } }, /* reduce_scatter */
        { "(x, y)", "(*, *)", "(x, *)", "(x, *)", "(*, *)", "(x, *)", { 1, 0, 0 } },          /* a is gathered */
        { "(*, *)", "(y, x)", "(*, x)", "(*, *)", "(*, x)", "(*, x)", { 0, 1, 0 } },          /* b is gathered */
        { "(x, *)", "(*, x)", "(x, *)", "(x, *)", "(*, *)", "(x, *)", { 0, 1, 0 } },          /* dst has rows */
        { "(x, *)", "(*, x)", "(*, x)", "(*, *)", "(*, x)", "(*, x)", { 1, 0, 0 } },          /* dst has columns */
        { "(x, *)", "(*, x)", "(*, *)", "(*, *)", "(*, x)", "(*, x)", { 1, 0, 1 } },          /* b is larger */
        { "(*, *)", "(*, *)", "(x, y)", "(x, *)", "(*, y)", "(x, y)", { 1, 1, 0 } },          /* cut where they are */
        { "(*, (x, y))",
          "(x, *)",
          "(*, *)",
          "(*, x)",
          "(x, *)",
          "(*, *) + sum(x)",
          { 1, 0, 3 } }, /* as far as they agree */
        { "(*, (x, y))", "((x, y), *)", "(*, *)", "(*, (x, y))", "((x, y), *)", "(*, *) + sum(x, y)", { 0, 0, 1 } },
        { "(x, y)", "(y, *)", "(x, *) + sum(y)", "(x, y)", "(y, *)", "(x, *) + sum(y)", { 0, 0, 0 } }, /* left open */
    };
    net = trn_topology_switch(16, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=4,y=4"), TRN_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        static trn_sharded_matmul_plan plan;
        trn_error error;
        trn_cost cost = { 0 };
        char text[64];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = 512, .n = 2048, .k = 1024, .error = &error, .cost = &cost };
        s.matmul.a.format = s.matmul.b.format = s.matmul.dst.format = TRN_BF16;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, row[i].a), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, row[i].b), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, row[i].dst), TRN_OK);
        if (trn_sharded_matmul_plan_of(&s, &plan)) fail_msg("%s", error.text);
        trn_pspec_format(&plan.a_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].a_at);
        trn_pspec_format(&plan.b_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].b_at);
        trn_pspec_format(&plan.product, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].product);
        const trn_reshard_plan *const move[3] = { &plan.a, &plan.b, &plan.result };
        for (int w = 0; w < 3; w++)
            if (move[w]->steps != row[i].steps[w]) {
                char step[200] = "nothing";
                if (move[w]->steps) trn_reshard_step_format(&move[w]->step[0], &mesh, step, sizeof step);
                fail_msg("%s times %s: move %d has %d steps, first %s", row[i].a, row[i].b, w, move[w]->steps, step);
            }
        const double moves = plan.a.time_s + plan.b.time_s + plan.result.time_s;
        assert_true(plan.time_s == plan.a.time_s + plan.b.time_s + plan.compute.time_s + plan.result.time_s);
        assert_true(cost.time_s == plan.time_s && cost.lower_bound_s > 0 && cost.lower_bound_s <= cost.time_s &&
                    moves >= 0);
        s.cost_only = true;
        s.plan = &plan;
        assert_int_equal(trn_sharded_matmul(&s), TRN_OK); /* the same, without views */
        assert_true(cost.time_s == plan.time_s);
    }
}

/* What the rules leave to sizes: the smaller operand gives way unless dst says; parts that do not nest are not cut. */
static void test_rules_of_sizes(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n;
        const char *a, *b, *dst, *a_at, *b_at;
    } row[] = {
        { 64, 512, "(x, *)", "(*, x)", "(*, *)", "(*, *)", "(*, x)" },
        { 512, 64, "(x, *)", "(*, x)", "(*, *)", "(x, *)", "(*, *)" },
        { 512, 64, "(x, *)", "(*, x)", "(*, x)", "(*, *)", "(*, x)" },
        { 64, 512, "(x, *)", "(*, x)", "(x, *)", "(x, *)", "(*, *)" },
        { 8, 64, "(x, *)", "(*, *)", "((x, y), *)", "((x, y), *)", "(*, *)" },
        { 5, 64, "(x, *)", "(*, *)", "((x, y), *)", "(x, *)", "(*, *)" },
    };
    net = trn_topology_switch(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=2,y=2"), TRN_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        static trn_sharded_matmul_plan plan;
        char text[64];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = row[i].m, .n = row[i].n, .k = 256 };
        s.matmul.a.format = s.matmul.b.format = s.matmul.dst.format = TRN_BF16;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, row[i].a), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, row[i].b), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, row[i].dst), TRN_OK);
        assert_int_equal(trn_sharded_matmul_plan_of(&s, &plan), TRN_OK);
        trn_pspec_format(&plan.a_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].a_at);
        trn_pspec_format(&plan.b_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].b_at);
    }
}

/* One chip's engines at their share: twice the chips take half of the time, nearly. */
static void test_compute_time(void **state)
{
    (void)state;
    static trn_sharded_matmul_plan plan[2];
    const trn_topology trn2 = trn_topology_of(TRN_TRN2_ULTRASERVER);
    for (int i = 0; i < 2; i++) {
        trn_mesh_args make = { .mesh = &mesh, .net = &trn2, .axes = i ? "x=64" : "x=16", .count = i ? 64 : 16 };
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = 65536, .n = 8192, .k = 8192 };
        assert_int_equal(trn_mesh_make(&make), TRN_OK);
        s.matmul.a.format = s.matmul.b.format = s.matmul.dst.format = TRN_BF16;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, "(x, *)"), TRN_OK);
        assert_int_equal(trn_sharded_matmul_plan_of(&s, &plan[i]), TRN_OK);
        assert_int_equal(plan[i].m, i ? 1024 : 4096);
    }
    const double faster = plan[0].time_s / plan[1].time_s;
    assert_true(faster > 3.5 && faster < 4.05);
    assert_true(plan[0].compute.tflops > 0.8 * 629 && plan[0].compute.tflops <= 629.2); /* of eight cores */
}

/* The product of one device is asked as trn_matmul would run it: formats, mode, and what its results are stored in. */
static void test_compute_time_of_formats(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_system system;
        trn_format a, dst, wire;
        bool double_row, scaled, sum;
        trn_matmul_mode mode;
    } row[] = {
        { TRN_TRAINIUM2, TRN_TRN2_48XLARGE, TRN_BF16, TRN_BF16, TRN_FORMAT_UNSET, false, false, false, TRN_MODE_PLAIN },
        { TRN_TRAINIUM2, TRN_TRN2_48XLARGE, TRN_BF16, TRN_BF16, TRN_F32, false, false, true, TRN_MODE_PLAIN },
        { TRN_TRAINIUM2, TRN_TRN2_48XLARGE, TRN_BF16, TRN_BF16, TRN_F32, false, false, false, TRN_MODE_PLAIN },
        { TRN_TRAINIUM2, TRN_TRN2_48XLARGE, TRN_F8_E4M3, TRN_BF16, TRN_FORMAT_UNSET, false, false, false,
          TRN_MODE_PLAIN },
        { TRN_TRAINIUM2, TRN_TRN2_48XLARGE, TRN_F8_E4M3, TRN_BF16, TRN_FORMAT_UNSET, true, false, false,
          TRN_MODE_DOUBLE_ROW },
        { TRN_TRAINIUM1, TRN_TRN1_32XLARGE, TRN_I8, TRN_I32, TRN_FORMAT_UNSET, false, false, false, TRN_MODE_INT8 },
        { TRN_TRAINIUM1, TRN_TRN1_32XLARGE, TRN_BF16, TRN_F32, TRN_FORMAT_UNSET, false, false, false, TRN_MODE_PLAIN },
        { TRN_TRAINIUM3, TRN_TRN3_GEN2_ULTRASERVER, TRN_F8_E4M3FN, TRN_BF16, TRN_FORMAT_UNSET, false, true, false,
          TRN_MODE_MX },
        { TRN_TRAINIUM3, TRN_TRN3_GEN2_ULTRASERVER, TRN_BF16, TRN_BF16, TRN_FORMAT_UNSET, false, false, false,
          TRN_MODE_PLAIN },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        static trn_sharded_matmul_plan plan;
        static const trn_tensor none[4];
        trn_error error;
        trn_sharded_matmul_args s = {
            .mesh = &mesh, .m = 4096, .n = 2048, .k = 4096, .wire = row[i].wire, .error = &error
        };
        net = trn_topology_switch(4, 1e9, 1e-6); /* of no system: chips of the generation */
        assert_int_equal(trn_mesh_init(&mesh, &net, "x=4"), TRN_OK);
        s.matmul.generation = row[i].generation;
        s.matmul.a.format = s.matmul.b.format = row[i].a;
        s.matmul.dst.format = row[i].dst;
        s.matmul.double_row = row[i].double_row;
        if (row[i].scaled) s.a_scale = s.b_scale = none;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, row[i].sum ? "(*, x)" : "(x, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, row[i].sum ? "(x, *)" : "(*, *)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, row[i].sum ? "(*, *)" : "(x, *)"), TRN_OK);
        if (trn_sharded_matmul_plan_of(&s, &plan)) fail_msg("row %zu: %s", i, error.text);
        trn_system_spec one = *trn_system_spec_of(row[i].system);
        trn_server_spec server = *one.server;
        server.chips = one.servers = 1;
        one.server = &server;
        const trn_matmul_cost_args c = { .system = &one,
                                         .m = row[i].sum ? 4096 : 1024,
                                         .n = 2048,
                                         .k = row[i].sum ? 1024 : 4096,
                                         .a_format = row[i].a,
                                         .b_format = row[i].a,
                                         .dst_format = row[i].sum ? row[i].wire : row[i].dst,
                                         .mode = row[i].mode };
        trn_system_cost cost;
        assert_int_equal(trn_matmul_system_cost(&c, &cost), TRN_OK);
        if (plan.compute.time_s != cost.time_s) fail_msg("row %zu: %g, not %g", i, plan.compute.time_s, cost.time_s);
    }
}

/* An order of dst that does not go on from the operand's is not followed. */
static void test_rules_of_orders(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *dst, *a_at, *b_at;
    } row[] = {
        { "(x, *)", "(*, *)", "((x, z), *)", "((x, z), *)", "(*, *)" },
        { "(x, *)", "(*, *)", "((y, z), *)", "(x, *)", "(*, *)" },
        { "(*, *)", "(*, x)", "(*, (x, y))", "(*, *)", "(*, (x, y))" },
        { "(*, *)", "(*, x)", "(*, (y, z))", "(*, *)", "(*, x)" },
        { "(*, z)", "(z, *)", "((x, z), *)", "(x, z)", "(z, *)" }, /* z is K's already */
    };
    net = trn_topology_switch(8, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=2,y=2,z=2"), TRN_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        static trn_sharded_matmul_plan plan;
        char text[64];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = 64, .n = 64, .k = 256 };
        s.matmul.a.format = s.matmul.b.format = s.matmul.dst.format = TRN_BF16;
        assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, row[i].a), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, row[i].b), TRN_OK);
        assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, row[i].dst), TRN_OK);
        assert_int_equal(trn_sharded_matmul_plan_of(&s, &plan), TRN_OK);
        trn_pspec_format(&plan.a_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].a_at);
        trn_pspec_format(&plan.b_at, &mesh, text, sizeof text);
        assert_string_equal(text, row[i].b_at);
    }
}

/* ---- threads ---- */

static void test_threads(void **state)
{
    (void)state;
    enum { N = 500, D = 6 };
    static uint16_t a[N * N], b[N * N], c[2][N * N];
    static const char *const algorithm[] = { "switch_direct", "ring" };
    rng = 25;
    for (int i = 0; i < N * N; i++) {
        a[i] = (uint16_t)(0x3f00 + below(0x100) + (one_in(2) ? 0x8000 : 0));
        b[i] = (uint16_t)(0x3f00 + below(0x100) + (one_in(2) ? 0x8000 : 0));
    }
    net = trn_topology_switch(D, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=6"), TRN_OK);
    const trn_tensor wa = trn_tensor_2d(TRN_BF16, a, N, N), wb = trn_tensor_2d(TRN_BF16, b, N, N);
    for (int way = 0; way < 2; way++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            trn_tensor v[3][D];
            const trn_tensor wc = trn_tensor_2d(TRN_BF16, c[threads > 1], N, N);
            trn_sharded_matmul_args s = { .mesh = &mesh, .m = N, .n = N, .k = N, .a = v[0], .b = v[1], .dst = v[2] };
            s.algorithm = trn_algorithm_from_name(algorithm[way]);
            assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(*, x)"), TRN_OK);
            assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, "(x, *)"), TRN_OK);
            assert_int_equal(trn_pspec_parse(&s.dst_spec, &mesh, "(x, *)"), TRN_OK);
            for (int i = 0; i < D; i++) {
                v[0][i] = trn_shard_part(&mesh, &s.a_spec, &wa, i);
                v[1][i] = trn_shard_part(&mesh, &s.b_spec, &wb, i);
                v[2][i] = trn_shard_part(&mesh, &s.dst_spec, &wc, i);
            }
            with_threads(threads);
            assert_int_equal(trn_sharded_matmul(&s), TRN_OK);
        }
        assert_memory_equal(c[0], c[1], sizeof c[0]);
    }
    with_threads(2);
}

/* ---- refusals ---- */

static void refused(trn_sharded_matmul_args args, trn_status status, const char *text)
{
    static trn_sharded_matmul_plan plan, old;
    trn_error error = { TRN_OK, "" };
    trn_cost cost, old_cost;
    memset(&plan, 0x5a, sizeof plan);
    memset(&cost, 0x5a, sizeof cost);
    old = plan, old_cost = cost;
    memcpy(before, memory[2], sizeof before);
    args.error = &error;
    args.plan = &plan;
    args.cost = &cost;
    if (trn_sharded_matmul(&args) != status || error.status != status || strcmp(error.text, text))
        fail_msg("'%s', not '%s'", error.text, text);
    args.error = NULL;
    assert_int_equal(trn_sharded_matmul(&args), status);
    assert_memory_equal(before, memory[2], sizeof before);
    assert_memory_equal(&plan, &old, sizeof plan);
    assert_memory_equal(&cost, &old_cost, sizeof cost);
}

static void test_refusals(void **state)
{
    (void)state;
    net = trn_topology_ring(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=4"), TRN_OK);
    trn_sharded_matmul_args base = {
        .mesh = &mesh, .m = 8, .n = 6, .k = 8, .a = part[0], .b = part[1], .dst = part[2]
    };
    assert_int_equal(trn_pspec_parse(&base.a_spec, &mesh, "(*, x)"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&base.b_spec, &mesh, "(x, *)"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&base.dst_spec, &mesh, "(x, *)"), TRN_OK);
    for (int i = 0; i < 4; i++) {
        part[0][i] = trn_tensor_2d(TRN_F32, memory[0][i], 8, 2);
        part[1][i] = trn_tensor_2d(TRN_F32, memory[1][i], 2, 6);
        part[2][i] = trn_tensor_2d(TRN_F32, memory[2][i], 2, 6);
    }
    assert_int_equal(trn_sharded_matmul(&base), TRN_OK);
    const trn_mesh none = { 0 };
#define REFUSED_PRODUCT(change, status, sentence)                                                                      \
    do {                                                                                                               \
        trn_sharded_matmul_args args = base;                                                                           \
        change;                                                                                                        \
        refused(args, status, sentence);                                                                               \
    } while (0)
    REFUSED_PRODUCT(args.mesh = NULL, TRN_EINVAL, "a_spec: mesh is null");
    REFUSED_PRODUCT(args.mesh = &none, TRN_EINVAL, "a_spec: mesh has 0 axes: it is no mesh");
    REFUSED_PRODUCT(args.m = -1, TRN_ESHAPE, "m, n, k = -1, 6, 8 must not be negative");
    REFUSED_PRODUCT(args.b_spec.rank = 3, TRN_EINVAL, "b_spec: the sharding has 3 dimensions but the tensor has 2");
    REFUSED_PRODUCT((args.a_spec = base.dst_spec, args.a_spec.dim[0].axes = 0, args.a_spec.sum = 1), TRN_EUNSUPPORTED,
                    "a_spec has a sum over x; trn_redistribute can close it first");
    REFUSED_PRODUCT((args.even_only = true, args.m = 9), TRN_ESHAPE,
                    "dst_spec: even_only: dimension 0 has 9 elements, which 4 devices do not share evenly");
    REFUSED_PRODUCT(args.a = NULL, TRN_EFORMAT, "a has no valid format (0): give the views, or matmul.a.format");
    REFUSED_PRODUCT((args.a = NULL, args.matmul.a.format = TRN_F32), TRN_EINVAL, "a is null");
    REFUSED_PRODUCT((args.dst = NULL, args.matmul.dst.format = TRN_F32), TRN_EINVAL, "dst is null");
    REFUSED_PRODUCT(args.wire = TRN_CFP8, TRN_EFORMAT, "wire = 19 is no format that travels");
    REFUSED_PRODUCT(args.algorithm = (trn_algorithm)-1, TRN_EINVAL, "algorithm = -1 is not one");
    REFUSED_PRODUCT(
        args.algorithm = TRN_SWITCH_DIRECT, TRN_EUNSUPPORTED,
        "dst: no way from one sharding to the other: switch_direct needs one switch that all chips of the group "
        "share; ring has none for these 4 chips");
    REFUSED_PRODUCT(args.matmul.accumulate = true, TRN_EUNSUPPORTED,
                    "matmul.accumulate: a sharded product overwrites dst");
    REFUSED_PRODUCT(args.ranks_per_chip = 2, TRN_EUNSUPPORTED,
                    "ranks_per_chip = 2 is for costs; values are computed with one rank per chip");
    part[1][3].format = TRN_BF16;
    refused(base, TRN_EFORMAT, "b[3] is bfloat16 but b[0] is float32");
    part[1][3].format = TRN_F32;
    part[0][2].shape[1] = 3;
    refused(base, TRN_ESHAPE, "a[2] has size 3 on axis 1; its device holds 2 of 8");
    part[0][2].shape[1] = 2;
    part[2][1].data = memory[0][3];
    refused(base, TRN_EINVAL, "dst[1] overlaps a[3]");
    part[2][1].data = memory[2][0] + 4;
    refused(base, TRN_EINVAL, "dst[1] overlaps dst[0]");
    part[2][1].data = memory[2][1];
    for (int i = 0; i < 4; i++) part[0][i].format = TRN_I32;
    trn_error error;
    base.error = &error;
    assert_int_equal(trn_sharded_matmul(&base), TRN_EFORMAT); /* trn_matmul's own words */
    assert_string_equal(error.text, "a is int32, which no matrix instruction multiplies");
    assert_int_equal(trn_sharded_matmul(NULL), TRN_EINVAL);
    assert_int_equal(trn_sharded_matmul_plan_of(NULL, NULL), TRN_EINVAL);
    assert_int_equal(trn_sharded_matmul_plan_of(&base, NULL), TRN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_stochastic),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_rules_of_sizes),
        cmocka_unit_test(test_mx),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_compute_time),
        cmocka_unit_test(test_compute_time_of_formats),
        cmocka_unit_test(test_rules_of_orders),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_shard.c - shardings as text, as structs and as placements; who holds which element, against a twin that asks for
 * each element and each device; whole to parts to whole; every refusal.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "twin/cases.h"
#include "twin/host.h"

enum { DEVICES = 36, ROOM = 1 << 14, WHOLE = 1 << 14 }; /* bytes of a part, of the whole */

static uint64_t rng;

#include "twin/shard_cases.h"

static twin_sharding twin;
static unsigned char whole[WHOLE], other[WHOLE], memory[DEVICES][ROOM], want[DEVICES][ROOM];
static trn_tensor part[DEVICES];

static trn_shard_args args_of(trn_tensor global, trn_error *error)
{
    trn_shard_args args = { .mesh = &mesh, .spec = spec_of(&twin), .global = global, .parts = part, .error = error };
    return args;
}

/* ---- boxes ---- */

static void test_boxes(void **state)
{
    (void)state;
    rng = 1;
    for (int round = cases_rounds(3000, 30000); round > 0; round--) {
        random_mesh(&twin);
        random_shape(&twin, 1 + below(6));
        random_roles(&twin, true);
        const trn_pspec spec = spec_of(&twin);
        const trn_tensor global = trn_tensor_nd(TRN_BF16, NULL, twin.rank, twin.shape);
        int64_t most = 0;
        bool even = true;
        for (int i = 0; i < mesh.devices; i++) {
            const trn_box box = trn_shard_box(&mesh, &spec, &global, i);
            int64_t n = 1;
            assert_int_equal(box.rank, twin.rank);
            for (int d = 0; d < twin.rank; d++) {
                int parts;
                const int64_t at = twin_part(&twin, d, i, &parts), step = twin_step(twin.shape[d], parts);
                assert_int_equal(box.count[d], twin_count(&twin, i, d));
                assert_int_equal(box.first[d], at * step < twin.shape[d] ? at * step : twin.shape[d]);
                assert_int_equal(trn_pspec_parts(&spec, &mesh, d), parts);
                even = even && twin.shape[d] % parts == 0;
                n *= box.count[d];
            }
            if (n > most) most = n;
        }
        const trn_tensor local = trn_shard_local(&mesh, &spec, &global);
        assert_int_equal(trn_tensor_elements(local), most);
        assert_int_equal(trn_shard_bytes(&mesh, &spec, &global), 2 * most);
        assert_int_equal(trn_shard_even(&mesh, &spec, &global), even);
    }
    const trn_tensor odd = trn_tensor_1d(TRN_F4_E2M1, NULL, 4 * 33);
    net = trn_topology_ring(4, 1e9, 1e-6);
    trn_pspec spec;
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=4"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&spec, &mesh, "(a)"), TRN_OK);
    assert_int_equal(trn_shard_bytes(&mesh, &spec, &odd), 17); /* 33 codes of four bits */
    assert_int_equal(trn_shard_box(&mesh, &spec, &odd, 4).rank, 0);
    assert_int_equal(trn_shard_part(&mesh, &spec, &odd, -1).rank, 0);
}

/* ---- whole to parts to whole ---- */

/* Every element by hand into every part that holds it. */
static void twin_shard(const trn_tensor *global, const unsigned char *zero)
{
    int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
    const size_t bytes = bytes_of(global->format);
    if (trn_tensor_elements(*global) == 0) return;
    do
        for (int i = 0; i < mesh.devices; i++) {
            if (!twin_holds(&twin, i, index, local)) continue;
            const unsigned char *from = (const unsigned char *)global->data + place(global, index);
            memcpy((unsigned char *)part[i].data + place(&part[i], local), twin_leads_sum(&twin, i) ? from : zero,
                   bytes);
        }
    while (twin_next(twin.rank, twin.shape, index));
}

static void test_there_and_back(void **state)
{
    (void)state;
    static const struct {
        trn_format format;
        unsigned char zero[4]; /* the bytes of -0 */
    } row[] = { { TRN_F32, { 0, 0, 0, 0x80 } }, { TRN_BF16, { 0, 0x80 } }, { TRN_F8_E4M3, { 0x80 } }, { TRN_U8, { 0 } },
                { TRN_I32, { 0, 0, 0, 0 } },    { TRN_F16, { 0, 0x80 } },  { TRN_F8_E8M0, { 0 } } };
    rng = 2;
    for (int round = cases_rounds(2500, 60000); round > 0; round--) {
        trn_error error;
        random_mesh(&twin);
        random_shape(&twin, 1 + below(6));
        const int kind = below(7);
        random_roles(&twin, one_in(3) && row[kind].format != TRN_F8_E8M0);
        scramble(whole, WHOLE);
        scramble(other, WHOLE);
        trn_tensor global = view_in(whole, WHOLE, row[kind].format, twin.rank, twin.shape);
        for (int i = 0; i < mesh.devices; i++) {
            scramble(want[i], ROOM);
            memcpy(memory[i], want[i], ROOM);
        }
        random_parts(&twin, row[kind].format, want, part);
        twin_shard(&global, row[kind].zero);
        for (int i = 0; i < mesh.devices; i++) part[i].data = memory[i] + ((unsigned char *)part[i].data - want[i]);
        trn_shard_args args = args_of(global, &error);
        if (trn_shard(&args)) fail_msg("%s", error.text);
        assert_memory_equal(memory, want, sizeof want[0] * (size_t)mesh.devices);

        trn_replicas replicas = { 0 };
        assert_int_equal(trn_shard_replicas_equal(&args, &replicas), TRN_OK);
        assert_true(replicas.equal);
        if (args.spec.sum) continue; /* its sums are below */
        args.global = view_in(other, WHOLE, row[kind].format, twin.rank, twin.shape);
        if (trn_unshard(&args)) fail_msg("%s", error.text);
        int64_t index[TWIN_DIMS] = { 0 };
        if (trn_tensor_elements(global)) do
                assert_memory_equal((unsigned char *)args.global.data + place(&args.global, index),
                                    (unsigned char *)global.data + place(&global, index), bytes_of(global.format));
            while (twin_next(twin.rank, twin.shape, index));
    }
}

static float read_number(trn_format format, const unsigned char *at)
{
    uint32_t code = 0;
    memcpy(&code, at, bytes_of(format));
    return cases_float_of(format == TRN_BF16 ? code << 16 : code);
}

/* Nearest even, and one NaN. */
static uint32_t round_number(trn_format format, float x)
{
    uint32_t u = cases_bits_of(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return format == TRN_BF16 ? 0x7fc0u : 0x7fc00000u;
    return format == TRN_BF16 ? (u + 0x7fffu + (u >> 16 & 1u)) >> 16 : u;
}

/* Parts of a sum, in one format, into a whole of another: ascending, in binary32, one rounding. */
static void test_sums(void **state)
{
    (void)state;
    rng = 3;
    for (int round = cases_rounds(2000, 30000); round > 0; round--) {
        static const trn_format format[] = { TRN_F32, TRN_BF16 };
        trn_error error;
        random_mesh(&twin);
        random_shape(&twin, 1 + below(6));
        if (one_in(20)) twin.rank = 1, twin.shape[0] = 3000; /* more than one piece */
        random_roles(&twin, true);
        int members = 1;
        for (int a = 0; a < twin.axes; a++) members *= twin.role[a] == TWIN_SUM ? twin.size[a] : 1;
        if (members == 1) continue;
        const trn_format from = format[below(2)], to = format[below(2)];
        for (int i = 0; i < mesh.devices; i++)
            for (size_t k = 0; k < ROOM / 4; k++) {
                const uint32_t x = one_in(50) ? cases_float(&rng) : cases_u32(&rng) % 0x05000000u + 0x3d000000u;
                memcpy(memory[i] + 4 * k, &x, 4);
            }
        random_parts(&twin, from, memory, part);
        trn_tensor global = view_in(other, WHOLE, to, twin.rank, twin.shape);
        scramble(other, WHOLE);
        memcpy(whole, other, WHOLE);
        trn_shard_args args = args_of(global, &error);
        if (trn_unshard(&args)) fail_msg("%s", error.text);

        int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
        if (trn_tensor_elements(global) == 0) continue;
        do {
            float sum = 0;
            int first = -1;
            for (int i = 0; i < mesh.devices; i++) {
                if (!twin_holds(&twin, i, index, local)) continue;
                if (first < 0) first = i;
                bool like_first = true; /* of several copies of a summand, the first */
                for (int a = 0; a < twin.axes; a++)
                    if (twin.role[a] == TWIN_WHOLE && twin_coordinate(&twin, i, a)) like_first = false;
                if (!like_first) continue;
                const float x = read_number(from, (unsigned char *)part[i].data + place(&part[i], local));
                sum = i == first ? x : sum + x;
            }
            const uint32_t code = round_number(to, sum);
            memcpy(whole + ((unsigned char *)global.data - other) + place(&global, index), &code, bytes_of(to));
        } while (twin_next(twin.rank, twin.shape, index));
        assert_memory_equal(whole, other, WHOLE);
    }
}

/* The same bits from any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    enum { N = 700, M = 600 };
    float *big = (float *)malloc(sizeof(float) * N * M * 9);
    uint16_t *out = (uint16_t *)malloc(sizeof(uint16_t) * N * M * 2);
    assert_true(big && out);
    rng = 4;
    for (size_t i = 0; i < (size_t)N * M * 8; i++) big[i] = cases_float_of(cases_u32(&rng) % 0x05000000u + 0x3d000000u);
    net = trn_topology_ring(8, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=8"), TRN_OK);
    for (int i = 0; i < 8; i++) part[i] = trn_tensor_2d(TRN_F32, big + (size_t)i * N * M, N, M);
    for (int threads = 1; threads <= 3; threads += 2) {
        trn_shard_args args = { .mesh = &mesh, .parts = part };
        args.global = trn_tensor_2d(TRN_BF16, out + (threads > 1) * N * M, N, M);
        assert_int_equal(trn_pspec_parse(&args.spec, &mesh, "sum(a)"), TRN_OK);
        with_threads(threads);
        assert_int_equal(trn_unshard(&args), TRN_OK);
    }
    with_threads(2);
    assert_memory_equal(out, out + N * M, sizeof(uint16_t) * N * M);
    trn_shard_args args = { .mesh = &mesh, .parts = part }; /* threads take a device each */
    args.global = trn_tensor_2d(TRN_BF16, out, N, M);
    assert_int_equal(trn_pspec_parse(&args.spec, &mesh, "(*, a)"), TRN_OK);
    for (int i = 0; i < 8; i++) part[i] = trn_tensor_2d(TRN_BF16, big + (size_t)i * N * M, N, M / 8);
    assert_int_equal(trn_shard(&args), TRN_OK);
    args.global.data = out + N * M;
    memset(out + N * M, 0, sizeof(uint16_t) * N * M);
    assert_int_equal(trn_unshard(&args), TRN_OK);
    assert_memory_equal(out, out + N * M, sizeof(uint16_t) * N * M);
    free(big);
    free(out);
}

/* ---- memory that is shared on purpose ---- */

static void test_shared_memory(void **state)
{
    (void)state;
    float all[12 * 4], before[12 * 4], copy[12 * 4];
    trn_error error;
    net = trn_topology_ring(6, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=3,b=2"), TRN_OK);
    for (int i = 0; i < 48; i++) before[i] = all[i] = (float)i;
    trn_shard_args args = {
        .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, all, 12, 4), .parts = part, .error = &error
    };
    assert_int_equal(trn_pspec_parse(&args.spec, &mesh, "(a)"), TRN_OK);
    for (int i = 0; i < 6; i++) part[i] = trn_shard_part(&mesh, &args.spec, &args.global, i);
    assert_int_equal(part[3].shape[0], 4);
    assert_ptr_equal(part[3].data, all + 16);
    assert_int_equal(trn_shard(&args), TRN_OK); /* each part is its place in the whole */
    assert_int_equal(trn_unshard(&args), TRN_OK);
    assert_memory_equal(all, before, sizeof all);
    for (int i = 0; i < 6; i++) part[i].data = copy + i / 2 * 16; /* equal parts in one memory */
    assert_int_equal(trn_shard(&args), TRN_OK);
    assert_memory_equal(copy, before, sizeof all);
    part[5].data = copy;
    assert_int_equal(trn_shard(&args), TRN_EINVAL);
    assert_string_equal(error.text, "parts[5] overlaps parts[0]");
    part[5].data = all + 1;
    assert_int_equal(trn_unshard(&args), TRN_EINVAL);
    assert_string_equal(error.text, "parts[5] overlaps global and is not its own place in it");
}

static void test_replicas(void **state)
{
    (void)state;
    uint16_t copy[6][8];
    trn_error error;
    trn_replicas found = { 0 };
    net = trn_topology_ring(6, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=3,b=2"), TRN_OK);
    trn_shard_args args = {
        .mesh = &mesh, .global = trn_tensor_2d(TRN_BF16, NULL, 4, 6), .parts = part, .error = &error
    };
    assert_int_equal(trn_pspec_parse(&args.spec, &mesh, "(*, a)"), TRN_OK);
    for (int i = 0; i < 6; i++) {
        part[i] = trn_tensor_2d(TRN_BF16, copy[i], 4, 2);
        for (int k = 0; k < 8; k++) copy[i][k] = (uint16_t)(i / 2 * 100 + k);
    }
    assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_OK);
    assert_true(found.equal);
    copy[3][5] ^= 1; /* row 2, column 1 */
    assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_OK);
    assert_false(found.equal);
    assert_true(found.device == 3 && found.like == 2 && found.index[0] == 2 && found.index[1] == 1);
    copy[3][5] ^= 1;
    for (int k = 0; k < 8; k++) { /* each element counts, the last one, too */
        copy[5][k] ^= 0x8000;
        assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_OK);
        assert_true(!found.equal && found.device == 5 && found.like == 4);
        assert_true(found.index[0] == k / 2 && found.index[1] == k % 2);
        copy[5][k] ^= 0x8000;
    }
    part[1].format = TRN_F16;
    assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_EFORMAT);
    assert_string_equal(error.text, "parts[1] is float16 but parts[0], of which it is a copy, is bfloat16");
    assert_int_equal(trn_shard_replicas_equal(&args, NULL), TRN_EINVAL);
    assert_int_equal(trn_shard_replicas_equal(NULL, &found), TRN_EINVAL);
}

/* ---- text and placements ---- */

static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shortest;
    } row[] = {
        { "(data, tensor)", "(data, tensor)" },
        { "(tensor,*)", "(tensor, *)" },
        { "((data, tensor), *)", "((data, tensor), *)" },
        { "( ( tensor,data ) , None )", "((tensor, data), *)" },
        { "(*, *) + sum(tensor)", "(*, *) + sum(tensor)" },
        { "((data), ())+sum( pipe , tensor )", "(data, *) + sum(tensor, pipe)" },
        { "sum(data, tensor)", "sum(data, tensor)" },
        { "()", "()" },
        { "() + sum(data)", "sum(data)" },
        { " (\tNone,\n*, None, *, *, pipe) ", "(*, *, *, *, *, pipe)" },
        { "((pipe, data, tensor))", "((pipe, data, tensor))" },
    };
    net = trn_topology_ring(64, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "data=2,tensor=8,pipe=4"), TRN_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_pspec spec, back;
        trn_error error;
        char text[128], cut[16];
        if (trn_pspec_read(&spec, &mesh, row[i].text, &error)) fail_msg("%s: %s", row[i].text, error.text);
        assert_int_equal(trn_pspec_format(&spec, &mesh, text, sizeof text), strlen(row[i].shortest));
        assert_string_equal(text, row[i].shortest);
        assert_int_equal(trn_pspec_parse(&back, &mesh, text), TRN_OK);
        assert_memory_equal(&spec, &back, sizeof spec);
        memset(cut, 'x', sizeof cut);
        trn_pspec_format(&spec, &mesh, cut, 2);
        assert_true(cut[0] == text[0] && cut[1] == 0 && cut[2] == 'x');
        assert_int_equal(trn_pspec_format(&spec, &mesh, NULL, 0), strlen(text));
    }
}

static void test_text_refusals(void **state)
{
    (void)state;
    static const char *const row[][2] = {
        { "", "sharding \"\": expected \"(\" or \"sum\" at character 1, found the end" },
        { "data", "sharding \"data\": expected \"(\" or \"sum\" at character 1, found \"d\"" },
        { "(data", "sharding \"(data\": expected a comma or \")\" at character 6, found the end" },
        { "(data tensor)", "sharding \"(data tensor)\": expected a comma or \")\" at character 7, found \"t\"" },
        { "(data,)", "sharding \"(data,)\": expected the name of an axis at character 7, found \")\"" },
        { "((data, *))", "sharding \"((data, *))\": expected the name of an axis at character 9, found \"*\"" },
        { "((data, None))", "the mesh has no axis None (it has data=2,tensor=8,pipe=4)" },
        { "((data tensor))", "sharding \"((data tensor))\": expected a comma or \")\" at character 8, found \"t\"" },
        { "(batch, *)", "the mesh has no axis batch (it has data=2,tensor=8,pipe=4)" },
        { "(data, data)", "the sharding uses axis data twice; an axis cuts one dimension, once" },
        { "(data) + sum(data)", "the sharding uses axis data twice; an axis cuts one dimension, once" },
        { "sum(pipe, pipe)", "the sharding uses axis pipe twice; an axis cuts one dimension, once" },
        { "(*, *, *, *, *, *, *)", "the sharding \"(*, *, *, *, *, *, *)\" has more than 6 dimensions" },
        { "(data) +", "sharding \"(data) +\": expected \"sum\" at character 9, found the end" },
        { "(data) + max(pipe)", "sharding \"(data) + max(pipe)\": expected \"sum\" at character 10, found \"m\"" },
        { "(data) + sum pipe", "sharding \"(data) + sum pipe\": expected \"(\" at character 14, found \"p\"" },
        { "sum()", "sharding \"sum()\": expected the name of an axis at character 5, found \")\"" },
        { "sum(pipe", "sharding \"sum(pipe\": expected a comma or \")\" at character 9, found the end" },
        { "(data) pipe", "sharding \"(data) pipe\": expected \"+\" or the end at character 8, found \"p\"" },
        { "sum(data) + sum(pipe)",
          "sharding \"sum(data) + sum(pipe)\": expected the end at character 11, found \"+\"" },
    };
    net = trn_topology_ring(64, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "data=2,tensor=8,pipe=4"), TRN_OK);
    trn_pspec spec, before;
    memset(&spec, 0x5a, sizeof spec);
    before = spec;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_error error = { TRN_OK, "" };
        if (trn_pspec_read(&spec, &mesh, row[i][0], &error) != TRN_EINVAL || strcmp(error.text, row[i][1]))
            fail_msg("%s: '%s', not '%s'", row[i][0], error.text, row[i][1]);
        assert_int_equal(error.status, TRN_EINVAL);
        assert_int_equal(trn_pspec_parse(&spec, &mesh, row[i][0]), TRN_EINVAL);
        assert_memory_equal(&spec, &before, sizeof spec);
    }
    const trn_mesh none = { 0 };
    assert_int_equal(trn_pspec_parse(&spec, &none, "()"), TRN_EINVAL);
    assert_int_equal(trn_pspec_parse(&spec, NULL, "()"), TRN_EINVAL);
    assert_int_equal(trn_pspec_parse(&spec, &mesh, NULL), TRN_EINVAL);
    assert_int_equal(trn_pspec_parse(NULL, &mesh, "()"), TRN_EINVAL);
}

/* Struct to text to struct, struct to placements to struct, and what an axis says about itself. */
static void test_round_trips(void **state)
{
    (void)state;
    rng = 5;
    for (int round = cases_rounds(5000, 100000); round > 0; round--) {
        random_mesh(&twin);
        random_shape(&twin, 1 + below(6));
        random_roles(&twin, true);
        const trn_pspec spec = spec_of(&twin);
        trn_pspec back;
        trn_placement placement[TRN_MAX_AXES];
        char text[256];
        assert_int_equal(trn_pspec_check(&spec, &mesh, twin.rank, NULL), TRN_OK);
        assert_true(trn_pspec_format(&spec, &mesh, text, sizeof text) < sizeof text);
        assert_int_equal(trn_pspec_parse(&back, &mesh, text), TRN_OK);
        assert_memory_equal(&back, &spec, sizeof spec);
        trn_pspec_placements(&spec, &mesh, placement);
        bool natural = true; /* in the order that DTensor means */
        for (int a = 0; a < twin.axes; a++) {
            const trn_placing is = twin.role[a] == TWIN_SUM ? TRN_PARTIAL
                                   : twin.role[a] >= 0      ? TRN_SHARD
                                                            : TRN_REPLICATE;
            assert_int_equal(placement[a].is, is);
            assert_int_equal(trn_pspec_is_sum(&spec, a), is == TRN_PARTIAL);
            assert_int_equal(trn_pspec_axis_dim(&spec, a), is == TRN_SHARD ? twin.role[a] : -1);
            if (is == TRN_SHARD) assert_int_equal(placement[a].dim, twin.role[a]);
            for (int b = 0; b < a; b++)
                if (is == TRN_SHARD && twin.role[b] == twin.role[a] && twin.depth[b] > twin.depth[a]) natural = false;
        }
        assert_int_equal(trn_pspec_of_placements(&back, &mesh, placement, NULL), TRN_OK);
        assert_true(trn_pspec_same(&back, &spec));
        for (int a = 0; a < twin.axes; a++) placement[a].order = 0;
        assert_int_equal(trn_pspec_of_placements(&back, &mesh, placement, NULL), TRN_OK);
        assert_int_equal(trn_pspec_same(&back, &spec), natural);
        const int a = below(twin.axes); /* any other sharding is not the same */
        back = spec;
        back.sum ^= 1u << a;
        assert_false(trn_pspec_same(&back, &spec));
        back = spec;
        if (back.rank < TRN_MAX_RANK) back.rank++;
        assert_true(trn_pspec_same(&back, &spec));
    }
}

static void test_struct_refusals(void **state)
{
    (void)state;
    net = trn_topology_ring(8, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=4"), TRN_OK);
    trn_pspec base = { 0 };
    base.rank = 2;
#define SPEC_REFUSED(change, rank, sentence)                                                                           \
    do {                                                                                                               \
        trn_pspec spec = base;                                                                                         \
        trn_error error = { TRN_OK, "" };                                                                              \
        change;                                                                                                        \
        assert_int_equal(trn_pspec_check(&spec, &mesh, rank, &error), TRN_EINVAL);                                     \
        assert_string_equal(error.text, sentence);                                                                     \
    } while (0)
    SPEC_REFUSED(spec.rank = 7, 0, "the sharding has 7 dimensions; tensors have 1 to 6");
    SPEC_REFUSED(spec.rank = -1, 0, "the sharding has -1 dimensions; tensors have 1 to 6");
    SPEC_REFUSED((void)0, 1, "the sharding has 2 dimensions but the tensor has 1");
    SPEC_REFUSED(spec.dim[1].axes = 11, 2, "dimension 1 of the sharding has 11 axes");
    SPEC_REFUSED((spec.dim[1].axes = 1, spec.dim[1].axis[0] = 2), 2, "the sharding names axis 2 of a mesh with 2 axes");
    SPEC_REFUSED((spec.dim[1].axes = 1, spec.dim[1].axis[0] = -1), 2,
                 "the sharding names axis -1 of a mesh with 2 axes");
    SPEC_REFUSED(spec.dim[1].axes = 2, 2, "the sharding uses axis a twice; an axis cuts one dimension, once");
    SPEC_REFUSED(spec.sum = 4, 2, "sum = 0x4 has bits beyond the mesh's 2 axes");
    SPEC_REFUSED(spec.op = (trn_reduction)1, 2, "op = 1 is no reduction");
    SPEC_REFUSED((spec.dim[0].axes = 1, spec.sum = 1), 2, "the sharding uses axis a both to cut and to sum");

    trn_placement placement[2] = { { TRN_REPLICATE, 0, 0, TRN_REDUCE_SUM }, { TRN_SHARD, 6, 0, TRN_REDUCE_SUM } };
    trn_error error;
    trn_pspec spec;
    assert_int_equal(trn_pspec_of_placements(&spec, &mesh, placement, &error), TRN_EINVAL);
    assert_string_equal(error.text, "placement[1] cuts dimension 6; tensors have 0 to 5");
    placement[1].is = (trn_placing)3;
    assert_int_equal(trn_pspec_of_placements(&spec, &mesh, placement, &error), TRN_EINVAL);
    assert_string_equal(error.text, "placement[1] = 3 is neither TRN_REPLICATE, TRN_SHARD nor TRN_PARTIAL");
    placement[1].is = TRN_PARTIAL;
    placement[1].op = (trn_reduction)2;
    assert_int_equal(trn_pspec_of_placements(&spec, &mesh, placement, &error), TRN_EINVAL);
    assert_string_equal(error.text, "placement[1] has op 2, which is no reduction");
    assert_int_equal(trn_pspec_of_placements(&spec, &mesh, NULL, &error), TRN_EINVAL);
    assert_int_equal(trn_pspec_of_placements(NULL, &mesh, placement, &error), TRN_EINVAL);
}

/* ---- what trn_shard and trn_unshard refuse ---- */

static void refused(const trn_shard_args *base, trn_status status, const char *text)
{
    trn_error error;
    unsigned char before[sizeof memory[0]];
    trn_shard_args args = *base;
    static trn_status (*const call[2])(const trn_shard_args *) = { trn_shard, trn_unshard };
    for (int i = 0; i < 2; i++) {
        error.text[0] = 0;
        args.error = &error;
        memcpy(before, memory[0], sizeof before);
        memcpy(want[0], whole, WHOLE);
        if (call[i](&args) != status || error.status != status || strcmp(error.text, text))
            fail_msg("%d: '%s', not '%s'", i, error.text, text);
        args.error = NULL;
        assert_int_equal(call[i](&args), status);
        assert_memory_equal(before, memory[0], sizeof before);
        assert_memory_equal(want[0], whole, WHOLE);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    net = trn_topology_ring(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=4"), TRN_OK);
    trn_shard_args base = { .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, whole, 10, 6), .parts = part };
    assert_int_equal(trn_pspec_parse(&base.spec, &mesh, "(a, *)"), TRN_OK);
    for (int i = 0; i < 4; i++) part[i] = trn_tensor_2d(TRN_F32, memory[0] + 100 * i, i == 3 ? 1 : 3, 6);
    assert_int_equal(trn_shard(&base), TRN_OK);

    trn_shard_args args = base;
    args.mesh = NULL;
    refused(&args, TRN_EINVAL, "mesh is null");
    args = base;
    args.parts = NULL;
    refused(&args, TRN_EINVAL, "parts is null");
    args = base;
    const trn_mesh none = { 0 };
    args.mesh = &none;
    refused(&args, TRN_EINVAL, "mesh has 0 axes: it is no mesh");
    args = base;
    args.even_only = true;
    refused(&args, TRN_ESHAPE, "even_only: dimension 0 has 10 elements, which 4 devices do not share evenly");
    args = base;
    args.spec.rank = 3;
    refused(&args, TRN_EINVAL, "the sharding has 3 dimensions but the tensor has 2");
    args = base;
    args.global.rank = 0;
    refused(&args, TRN_ESHAPE, "global has rank 0, expected 1 to 6");
    args = base;
    args.global.data = NULL;
    refused(&args, TRN_EINVAL, "global has elements but its data is null");
    args = base;
    args.overflow = (trn_overflow)2;
    refused(&args, TRN_EINVAL, "overflow 2 is neither TRN_OVERFLOW_DEFAULT nor TRN_SATURATE");
    args = base;
    part[3].shape[0] = 3;
    refused(&args, TRN_ESHAPE, "parts[3] has size 3 on axis 0; its device holds 1 of 10");
    part[3].shape[0] = 1;
    part[2].rank = 1;
    refused(&args, TRN_ESHAPE, "parts[2] has rank 1, expected 2");
    part[2].rank = 2;
    part[1].data = NULL;
    refused(&args, TRN_EINVAL, "parts[1] has elements but its data is null");
    part[1].data = memory[0] + 100;
    part[0].format = TRN_FORMAT_UNSET;
    refused(&args, TRN_EFORMAT, "parts[0] has no valid format (0)");
    part[0].data = whole + 4;
    part[0].format = TRN_F32;
    refused(&args, TRN_EINVAL, "parts[0] overlaps global and is not its own place in it");
    part[0].data = memory[0];
    part[0].stride[0] = -6;
    refused(&args, TRN_ESHAPE, "parts[0] has negative stride -6 on axis 0");
    part[0].stride[0] = 0;
    assert_int_equal(trn_pspec_parse(&args.spec, &mesh, "sum(a)"), TRN_OK);
    for (int i = 0; i < 4; i++) part[i] = trn_tensor_2d(TRN_F8_E8M0, memory[0] + 100 * i, 10, 6);
    refused(&args, TRN_EFORMAT, "parts[0] is float8_e8m0fnu, which has no zero, and the sharding has a sum");
    args.global = trn_tensor_2d(TRN_F32, NULL, -1, 6);
    trn_replicas found = { 0 };
    trn_error error;
    args.error = &error;
    assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_ESHAPE);
    assert_string_equal(error.text, "global has negative size -1 on axis 0");
    args.global = trn_tensor_2d(TRN_F32, NULL, INT64_MAX, 6);
    assert_int_equal(trn_shard_replicas_equal(&args, &found), TRN_ESHAPE);
    assert_string_equal(error.text, "global has more than 2^60 elements");
    assert_int_equal(trn_shard(NULL), TRN_EINVAL);
    assert_int_equal(trn_unshard(NULL), TRN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),         cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_sums),          cmocka_unit_test(test_threads),
        cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_text),          cmocka_unit_test(test_text_refusals),
        cmocka_unit_test(test_round_trips),   cmocka_unit_test(test_struct_refusals),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

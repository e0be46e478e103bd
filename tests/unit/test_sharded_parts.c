/* test_sharded_parts.c - the pieces of a sharded product, one by one: lines that go together, MX of numbers that no
 * kernel takes, formats, what processes compare; and what a search for a redistribution counts.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "trnmath/sharded/sharded_signature.h"
#include "trnmath/trn_reshard.h"
#include "twin/cases.h"

static uint64_t rng;
static trn_topology net;
static trn_mesh mesh;
static trn_error error;

static void near(double found, double expected, const char *what)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%s: %.15g, expected %.15g", what, found, expected);
}

/* ---- lines that are multiplied together ---- */

static void note(trni_partial_job *j, int region, int64_t key, int64_t line, int64_t from, int64_t end)
{
    assert_int_equal(trni_partial_note(j, region, key, line, from, end), TRN_OK);
}

static void lines_join(void **state)
{
    (void)state;
    trni_partial_region region[2] = { { .lines = 9, .n = 20, .band = 3 }, { .lines = 9, .n = 20, .band = 4 } };
    trni_partial_job j = { .region = region, .regions = 2, .most_lines = 4 };
    for (int64_t line = 0; line < 6; line++) note(&j, 0, 7, line, 0, 20); /* four, and two that are too many */
    note(&j, 0, 8, 6, 0, 20);                                             /* another class, */
    note(&j, 1, 8, 7, 0, 20);                                             /* another region, */
    note(&j, 0, 8, 7, 4, 20);                                             /* other places: none of these join */
    note(&j, 0, 9, 8, 0, 5);
    note(&j, 0, 9, 8, 9, 20); /* the same line again */
    note(&j, 0, 7, 6, 0, 20); /* behind the two, with others between */
    const trni_partial_entry expected[] = { { 3, 7, 0, 4, 0, 20, 0 }, { 3, 7, 4, 3, 0, 20, 0 },
                                            { 3, 8, 6, 1, 0, 20, 0 }, { 4, 8, 7, 1, 0, 20, 1 },
                                            { 3, 8, 7, 1, 4, 20, 0 }, { 3, 9, 8, 1, 0, 20, 0 } };
    assert_int_equal(j.entries, 6);
    for (int i = 0; i < 6; i++) {
        const trni_partial_entry *a = &j.entry[i], *b = &expected[i];
        assert_true(a->band == b->band && a->key == b->key && a->line == b->line && a->lines == b->lines);
        assert_true(a->from == b->from && a->end == b->end && a->region == b->region);
    }
    for (int64_t k = 100; k < 100 + 64; k++)
        note(&j, 0, k, 0, 0, 20); /* one that is 64 back is seen, one that is 65 not */
    note(&j, 0, 100, 1, 0, 20);
    assert_true(j.entries == 70 && j.entry[6].lines == 2);
    note(&j, 0, 200, 0, 0, 20);
    note(&j, 0, 100, 2, 0, 20);
    assert_true(j.entries == 72 && j.entry[6].lines == 2);
    free(j.entry);
}

/* By band, then class, then line, whatever comes first. */
static void entries_in_order(void **state)
{
    (void)state;
    trni_partial_entry e[3 * 3 * 3];
    for (int i = 0; i < 27; i++)
        e[i] = (trni_partial_entry){ .band = i * 7 % 3, .key = i / 3 * 5 % 3, .line = 2 - i / 9 };
    qsort(e, 27, sizeof *e, trni_partial_order);
    for (int i = 0; i < 27; i++) assert_true(e[i].band == i / 9 && e[i].key == i / 3 % 3 && e[i].line == i % 3);
    assert_int_equal(trni_partial_order(&e[5], &e[5]), 0);
}

/* ---- products ---- */

/* MX whose scales make numbers that binary32 rounds one by one, in lines that are not the first: no kernel may take
 * them. Against products of the parts of K, added in the mesh's order. */
static void mx_beyond_the_kernels(void **state)
{
    (void)state;
    enum { M = 6, N = 270, K = 256, D = 4 }; /* a second tile of columns */
    static unsigned char a[M * K], b[K * N], a_scale[M * K / 32], b_scale[N * K / 32];
    static float c[D][M * N], expected[M * N], one[M * N];
    rng = 5;
    for (int i = 0; i < M * K; i++) a[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    for (int i = 0; i < K * N; i++) b[i] = (unsigned char)(cases_u32(&rng) & 0xbf);
    memset(b_scale, 120, sizeof b_scale);
    for (int i = 0; i < M * K / 32; i++) /* another in each block, and small ones in all lines but the first */
        a_scale[i] = (unsigned char)(i < K / 32 ? 120 : 1 + cases_below(&rng, 6));
    for (int i = 0; i < N * K / 32; i++) b_scale[i] = (unsigned char)(118 + i % (K / 32));
    net = trn_topology_switch(D, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=4"), TRN_OK);
    const trn_tensor wa = trn_tensor_2d(TRN_F8_E4M3FN, a, M, K), wb = trn_tensor_2d(TRN_F8_E4M3FN, b, K, N);
    const trn_tensor sa = trn_tensor_2d(TRN_F8_E8M0, a_scale, M, K / 32),
                     sb = trn_tensor_2d(TRN_F8_E8M0, b_scale, N, K / 32);
    trn_tensor v[5][D];
    trn_pspec sas;
    trn_sharded_matmul_args s = { .mesh = &mesh, .m = M, .n = N, .k = K, .error = &error, .a = v[0], .b = v[1] };
    s.a_scale = v[2], s.b_scale = v[3], s.dst = v[4];
    s.algorithm = TRN_SWITCH_DIRECT;
    assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(*, x)"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, "(x, *)"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&sas, &mesh, "(*, x)"), TRN_OK);
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < D; i++) {
        v[0][i] = trn_shard_part(&mesh, &s.a_spec, &wa, i);
        v[1][i] = trn_shard_part(&mesh, &s.b_spec, &wb, i);
        v[2][i] = trn_shard_part(&mesh, &sas, &sa, i);
        v[3][i] = trn_shard_part(&mesh, &sas, &sb, i);
        v[4][i] = trn_tensor_2d(TRN_F32, c[i], M, N);
        const trn_matmul_args m = {
            .a = v[0][i], .b = v[1][i], .a_scale = v[2][i], .b_scale = v[3][i], .dst = trn_tensor_2d(TRN_F32, one, M, N)
        };
        assert_int_equal(trn_matmul(&m), TRN_OK);
        for (int k = 0; k < M * N; k++) expected[k] = i ? expected[k] + one[k] : one[k];
    }
    if (trn_sharded_matmul(&s)) fail_msg("%s", error.text);
    for (int i = 0; i < D; i++) assert_memory_equal(c[i], expected, sizeof expected);
}

/* int8 is summed in int32: whole products must be int32, sums over devices need not. */
static void formats_of_sums(void **state)
{
    (void)state;
    static signed char a[2][4 * 8], b[2][8 * 4];
    static uint16_t c[2][4 * 4];
    net = trn_topology_switch(2, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=2"), TRN_OK);
    for (int i = 0; i < 32; i++) a[0][i] = a[1][i] = (signed char)(i % 5 - 2), b[0][i] = b[1][i] = (signed char)(i % 3);
    for (int cut = 0; cut < 2; cut++) {
        trn_tensor v[3][2];
        trn_sharded_matmul_args s = { .mesh = &mesh, .m = 4, .n = 4, .k = cut ? 16 : 8, .error = &error };
        s.a = v[0], s.b = v[1], s.dst = v[2];
        if (cut) assert_int_equal(trn_pspec_parse(&s.a_spec, &mesh, "(*, x)"), TRN_OK);
        if (cut) assert_int_equal(trn_pspec_parse(&s.b_spec, &mesh, "(x, *)"), TRN_OK);
        for (int i = 0; i < 2; i++) {
            v[0][i] = trn_tensor_2d(TRN_I8, a[i], 4, 8);
            v[1][i] = trn_tensor_2d(TRN_I8, b[i], 8, 4);
            v[2][i] = trn_tensor_2d(TRN_BF16, c[i], 4, 4);
        }
        s.matmul.generation = TRN_TRAINIUM1;
        assert_int_equal(trn_sharded_matmul(&s), cut ? TRN_OK : TRN_EFORMAT);
        if (!cut) assert_non_null(strstr(error.text, "int8 products are summed in int32"));
    }
    for (int r = 0; r < 4; r++)
        for (int n = 0; n < 4; n++) {
            int sum = 0;
            for (int k = 0; k < 8; k++) sum += 2 * a[0][8 * r + k] * b[0][4 * k + n];
            assert_true(trn_decode(TRN_BF16, c[1][4 * r + n]) == (float)sum);
        }
}

/* ---- what processes compare of a sharding ---- */

static uint64_t said_of(const char *spec, int words, int which)
{
    static trni_signature b;
    trn_pspec s;
    assert_int_equal(trn_pspec_parse(&s, &mesh, spec), TRN_OK);
    trni_signature_begin(&b, TRNI_CALL_COLLECTIVE);
    const int before = b.words;
    trni_signature_dims(&b, "a_spec.", &s);
    assert_int_equal(b.words - before, words);
    return b.word[before + which];
}

static void shardings_are_compared(void **state)
{
    (void)state;
    enum { WORDS = 2 };
    net = trn_topology_switch(8, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "x=2,y=2,z=2"), TRN_OK);
    for (int i = 0; i < WORDS; i++) { /* a dimension that is not there is a whole one */
        assert_true(said_of("(x)", WORDS, i) == said_of("(x, *)", WORDS, i));
        assert_true(said_of("(*)", WORDS, i) == said_of("(*, *)", WORDS, i));
    }
    static const char *const others[] = { "(x, *)",      "(*, x)", "(y, *)", "((x, y), *)",
                                          "((y, x), *)", "(x, y)", "(y, x)", "(*, (x, y))" };
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) {
            bool differ = false;
            for (int w = 0; w < WORDS; w++)
                differ = differ || said_of(others[i], WORDS, w) != said_of(others[k], WORDS, w);
            if (!differ) fail_msg("%s and %s are one", others[i], others[k]);
        }
}

/* ---- what a search counts ---- */

static trni_search searched(const trn_redistribute_args *args)
{
    trni_search s;
    trni_search_start(&s, args);
    assert_non_null(s.chip);
    return s;
}

static trni_transit over(trn_collective op, int axes)
{
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, op);
    m.axes = axes;
    for (int i = 0; i < axes; i++) m.axis[i] = i;
    m.bytes = 1 << 20;
    return m;
}

/* A ring of 64: two links a chip; a chip is 1024 / 63 hops from another. */
static void work_of_a_price(void **state)
{
    (void)state;
    trn_redistribute_args args = { .mesh = &mesh };
    net = trn_topology_ring(64, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=2,c=2,d=2,e=2,f=2"), TRN_OK);
    trni_search s = searched(&args);
    const double route = 60 + 10 * 1024.0 / 63, links = 128;
    trni_transit m = over(TRN_ALL_REDUCE, 2);
    near(trni_direct_work(&s, &m), route * 64 * 3 * 2, "two phases of three messages");
    near(trni_price_work(&s, &m), (4 * links + route * 64) * (4 + 2 * 2) + route * 64 * 3 * 2, "a sum over two axes");
    m = over(TRN_ALL_GATHER, 5);
    near(trni_price_work(&s, &m), (4 * links + route * 64) * (4 + 2 * 5) + route * 64 * 31, "a gather over five");
    m = over(TRN_PERMUTE, 3);
    near(trni_price_work(&s, &m), 4 * links + route * 64 + route * 64, "one message of each");
    trni_search_free(&s);
}

/* 32 rings of 32 behind a switch: what sends directly or in a hierarchy is better, and too dear to look at with many
 * axes. */
static void dear_ways_are_left_out(void **state)
{
    (void)state;
    trn_cost cost;
    trn_level level[2];
    trn_redistribute_args args = { .mesh = &mesh };
    memset(level, 0, sizeof level);
    for (int l = 0; l < 2; l++) {
        level[l].name = l ? "outer" : "inner";
        level[l].wiring = l ? TRN_WIRING_SWITCH : TRN_WIRING_RING;
        level[l].size = 32;
        level[l].bytes_per_s = l ? 1e9 : 5e10;
        level[l].latency_s = 1e-6;
    }
    net = trn_topology_hierarchy("rings", 2, level);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2,j=2"), TRN_OK);
    trni_search s = searched(&args);
    trni_transit m = over(TRN_ALL_REDUCE, 10), few = over(TRN_ALL_REDUCE, 1), permute = over(TRN_PERMUTE, 10);
    m.bytes = 1024;
    near(trni_direct_work(&s, &m), (60 + 10 * s.mean_hops) * 1024 * 1023 * 2 * 2, "work of the direct way");
    assert_true(trni_is_dear(&s, &m) && !trni_is_dear(&s, &few) && !trni_is_dear(&s, &permute));
    near(trni_price_work(&s, &m), (4.0 * 1024 * trn_topology_slots(&net) + (60 + 10 * s.mean_hops) * 1024) * 24,
         "work of the others");
    assert_int_equal(trni_transit_cost(&s, &m, &cost, &error), TRN_OK);
    assert_int_equal(cost.algorithm, TRN_DIMENSION_WISE);
    s.big_axes = TRNI_SURE_AXES; /* with few axes all are looked at */
    assert_false(trni_is_dear(&s, &m));
    assert_int_equal(trni_transit_cost(&s, &m, &cost, &error), TRN_OK);
    assert_int_equal(cost.algorithm, TRN_SWITCH_DIRECT);
    trni_search_free(&s);
}

/* Does a step of the search from `from` to the whole come to this sharding? */
static bool is_tried(trni_breadth breadth, const char *from, const char *to)
{
    const int64_t shape[] = { 64, 64, 64 };
    trn_redistribute_args args = { .mesh = &mesh, .global = trn_tensor_nd(TRN_BF16, NULL, 3, shape), .error = &error };
    trn_pspec at, there;
    assert_int_equal(trn_pspec_parse(&at, &mesh, from), TRN_OK);
    assert_int_equal(trn_pspec_parse(&there, &mesh, to), TRN_OK);
    trni_search s = searched(&args);
    s.to.rank = 3;
    s.goal_s = -1;
    s.most_work = 1e12;
    s.closes = at.sum;
    s.goal = trni_state_key(&s.to);
    assert_int_equal(trni_search_begin_at(&s, &at, breadth), TRN_OK);
    s.most_work = 1e12;
    assert_int_equal(trni_try_all(&s, 0), TRN_OK);
    const bool found = trni_node_find(&s, trni_state_key(&there)) >= 0;
    trni_search_free(&s);
    return found;
}

/* Where many axes are, the first searches take only what the goal suggests; a wider one gathers, exchanges and sums in
 * every way; the widest shares out and changes places, too. */
static void breadths_of_a_search(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        trni_breadth least;
    } row[] = {
        { "(a, b, c)", "(*, b, c)", TRNI_PLAIN_GUESS },
        { "(a, b, c)", "(*, *, *)", TRNI_PLAIN_GUESS },
        { "(a, b, c)", "(*, *, c)", TRNI_SOME_MOVES },
        { "(a, b, c)", "(*, (b, a), c)", TRNI_SOME_MOVES },
        { "(a, b, c)", "((a, e), b, c)", TRNI_ALL_MOVES },
        { "(a, *, *) + sum(b, c)", "(a, *, *)", TRNI_PLAIN_GUESS },
        { "(a, *, *) + sum(b, c)", "(a, *, *) + sum(c)", TRNI_SOME_MOVES },
        { "(a, *, *) + sum(b, c)", "(a, c, *) + sum(b)", TRNI_ALL_MOVES },
    };
    net = trn_topology_ring(64, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=2,c=2,d=2,e=2,f=2"), TRN_OK);
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int breadth = TRNI_PLAIN_GUESS; breadth <= TRNI_ALL_MOVES; breadth++)
            if (is_tried((trni_breadth)breadth, row[i].from, row[i].to) != (breadth >= (int)row[i].least))
                fail_msg("%s to %s, breadth %d", row[i].from, row[i].to, breadth);
}

static void no_more_nodes(void **state)
{
    (void)state;
    int at;
    trn_redistribute_args args = { .mesh = &mesh };
    net = trn_topology_ring(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=2"), TRN_OK);
    trni_search s = searched(&args);
    trn_pspec spec;
    memset(&spec, 0, sizeof spec);
    s.nodes = TRNI_MOST_STATES;
    assert_int_equal(trni_node_of(&s, 5, &spec, &at), TRN_ELIMIT);
    assert_true(s.over && s.nodes == TRNI_MOST_STATES);
    s.nodes = 0;
    trni_search_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_join),
        cmocka_unit_test(entries_in_order),
        cmocka_unit_test(mx_beyond_the_kernels),
        cmocka_unit_test(formats_of_sums),
        cmocka_unit_test(shardings_are_compared),
        cmocka_unit_test(work_of_a_price),
        cmocka_unit_test(dear_ways_are_left_out),
        cmocka_unit_test(breadths_of_a_search),
        cmocka_unit_test(no_more_nodes),
    };
    return cmocka_run_group_tests_name("sharded_parts", tests, NULL, NULL);
}

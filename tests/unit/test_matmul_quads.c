/* test_matmul_quads.c - MXFP4 by dot products of bytes: shapes, orders and scales around its edges, bit for bit.
 * SPDX-License-Identifier: MIT
 *
 * Where the host has no such dot products the same products go another way, and have the same bits. Nor is anything
 * read behind an operand.
 */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "twin/problem.h"

static uint64_t rng = 29;

/* Scales of one operand, [lanes, blocks]: `spread` binades from `base` on, some NaN; and blocks of zeros, whose scale
 * may be any. */
static void draw_scales(bridge_matrix *scale, const bridge_matrix *codes, int lanes, int blocks, bool turned, int base,
                        int spread)
{
    const bool zeros = cases_one_in(&rng, 2), nan = cases_one_in(&rng, 4);
    for (int lane = 0; lane < lanes; lane++)
        for (int block = 0; block < blocks; block++) {
            uint32_t byte = (uint32_t)(base + cases_below(&rng, spread));
            if (nan && cases_one_in(&rng, 20)) byte = 255;
            if (zeros && cases_one_in(&rng, 6)) {
                if (cases_one_in(&rng, 2)) byte = (uint32_t)cases_below(&rng, 256);
                for (int k = 32 * block; k < 32 * block + 32; k++)
                    bridge_put(codes, turned ? k : lane, turned ? lane : k, cases_one_in(&rng, 2) ? 8 : 0);
            }
            bridge_put(scale, lane, block, byte);
        }
}

static uint32_t *read_again(const uint32_t *old, const bridge_matrix *m, int rows, int columns)
{
    free((void *)(uintptr_t)old);
    return bridge_codes(m, rows, columns);
}

static void draw(problem *p)
{
    twin_problem *t = &p->twin;
    static const int spread[] = { 1, 4, 12, 40, 105 };
    for (int i = 0; i < 2; i++) {
        const int s = spread[cases_below(&rng, 5)], base = 69 + cases_below(&rng, 174 - 69 - s + 1);
        if (i)
            draw_scales(&p->b_scale, &p->b, t->n, t->k / 32, true, base, s);
        else
            draw_scales(&p->a_scale, &p->a, t->m, t->k / 32, false, base, s);
    }
    t->a = read_again(t->a, &p->a, t->m, t->k);
    t->b = read_again(t->b, &p->b, t->k, t->n);
    t->a_scale = read_again(t->a_scale, &p->a_scale, t->m, t->k / 32);
    t->b_scale = read_again(t->b_scale, &p->b_scale, t->n, t->k / 32);
}

static trn_numerics order(void)
{
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
    if (cases_one_in(&rng, 3)) return n;
    n.chains = 1 << cases_below(&rng, 5);
    n.chain_layout = (trn_chain_layout)cases_below(&rng, 2);
    n.merge = cases_one_in(&rng, 6) ? TRN_MERGE_PAIRWISE : TRN_MERGE_ASCENDING;
    if (cases_one_in(&rng, 2)) n.k_tile = 8 * (1 + cases_below(&rng, 16));
    if (cases_one_in(&rng, 6)) n.k_tile = 1 + cases_below(&rng, 128);
    return n;
}

static void ask(int m, int n, int k, problem_reference *reference)
{
    static const int dst[] = { TWIN_F32, TWIN_F32, TWIN_F32, TWIN_BF16 };
    problem p;
    memset(&p, 0, sizeof p);
    p.twin.m = m;
    p.twin.n = n;
    p.twin.k = k;
    p.twin.group = 4;
    p.twin.a_format = p.twin.b_format = TWIN_E2M1;
    p.twin.dst_format = dst[cases_below(&rng, 4)];
    p.twin.accumulate = cases_one_in(&rng, 3);
    p.twin.rounding = TWIN_NEAREST_EVEN;
    p.numerics = order();
    const bridge_layout layout[3] = { (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS),
                                      (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS),
                                      (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS) };
    problem_build(&p, layout, cases_one_in(&rng, 4) ? BRIDGE_NEAR_ONE : BRIDGE_ANYTHING, &rng);
    p.args.generation = TRN_TRAINIUM3;
    draw(&p);
    problem_expect(&p, reference);
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        problem_threads(cases_one_in(&rng, 8) ? 2 : 1);
        problem_ask(&p, (trn_isa)isa);
    }
    problem_threads(1);
    problem_free(&p);
}

/* Strips of six rows and what is left of them, panels of 32 columns, tiles of 512 and their tails. */
static void small_products_equal_the_twins(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(120, 4000); round++)
        ask(3 + cases_below(&rng, 18), 1 + cases_below(&rng, 40), 32 * (1 + cases_below(&rng, 9)), twin_matmul);
}

static void products_of_many_tiles(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(60, 3000); round++)
        ask(3 + cases_below(&rng, 60), 1 + cases_below(&rng, 100), 32 * (1 + cases_below(&rng, 50)), scalar_matmul);
}

/* More rows than are packed at a time, and more than few of them: other cuts. */
static void products_of_several_slabs(void **state)
{
    (void)state;
    static const int shape[][3] = { { 200, 70, 1120 }, { 300, 40, 544 }, { 5, 1100, 96 }, { 97, 33, 1024 } };
    for (int round = 0; round < cases_rounds(2, 60); round++)
        for (int s = 0; s < 4; s++) ask(shape[s][0], shape[s][1], shape[s][2], scalar_matmul);
}

/* One row, or a few, whose scales are read in blocks: tiles that end within one, and beside one. */
static void single_rows_equal_the_twins(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(60, 1000); round++)
        ask(1 + cases_below(&rng, 4) / 3, 1 + cases_below(&rng, 140), 32 * (1 + cases_below(&rng, 34)), scalar_matmul);
}

/* ---- memory that ends where an operand does ---- */

enum { WALL = 65536 }; /* at least a page */

typedef struct walled {
    unsigned char *pages, *at;
    size_t length;
} walled;

static walled walled_of(trn_tensor *t, uint32_t least, int spread)
{
    const size_t bytes = (size_t)(t->shape[0] * t->shape[1]) * trn_format_bytes(t->format);
    walled w;
    w.length = (bytes + WALL - 1) / WALL * WALL;
    w.pages = (unsigned char *)mmap(NULL, w.length + WALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(w.pages != MAP_FAILED);
    assert_int_equal(mprotect(w.pages + w.length, WALL, PROT_NONE), 0);
    w.at = w.pages + w.length - bytes;
    for (size_t i = 0; i < bytes; i++) w.at[i] = (unsigned char)(least + (uint32_t)cases_below(&rng, spread));
    t->data = w.at;
    return w;
}

static void nothing_behind_an_operand_is_read(void **state)
{
    (void)state;
    static const int shape[][3] = { { 1, 64, 96 },  { 1, 37, 32 }, { 1, 100, 512 },
                                    { 1, 64, 544 }, { 2, 40, 96 }, { 17, 64, 96 } };
    for (int i = 0; i < 12; i++) {
        const int64_t m = shape[i / 2][0], n = shape[i / 2][1], k = shape[i / 2][2];
        const trn_format format = i % 2 ? TRN_F4_E2M1 : TRN_F8_E4M3FN;
        trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, NULL, m, n), .generation = TRN_TRAINIUM3 };
        trn_tensor *const view[] = { &args.a, &args.b, &args.a_scale, &args.b_scale, &args.dst };
        walled wall[5];
        args.a = trn_tensor_2d(format, NULL, m, k);
        args.b = trn_tensor_2d(format, NULL, k, n);
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, NULL, m, k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, NULL, n, k / 32);
        for (int j = 0; j < 5; j++) wall[j] = walled_of(view[j], j / 2 == 1 ? 120 : 0, 16);
        const size_t bytes = (size_t)(m * n) * sizeof(float);
        float *const want = (float *)malloc(bytes);
        for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
            if (!trn_isa_supported((trn_isa)isa)) continue;
            args.isa = (trn_isa)isa;
            assert_int_equal(trn_matmul(&args), TRN_OK);
            if (isa == TRN_ISA_PORTABLE) memcpy(want, args.dst.data, bytes);
            assert_memory_equal(args.dst.data, want, bytes);
        }
        for (int j = 0; j < 5; j++) munmap(wall[j].pages, wall[j].length + WALL);
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_products_equal_the_twins),    cmocka_unit_test(products_of_many_tiles),
        cmocka_unit_test(products_of_several_slabs),         cmocka_unit_test(single_rows_equal_the_twins),
        cmocka_unit_test(nothing_behind_an_operand_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

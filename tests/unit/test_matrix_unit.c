/* test_matrix_unit.c - matrix units: the emulator's tiles against the twin, and products around the edge of what units
 * may do, against loops of fmaf.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "trnmath/array/matmul_pairs.h"
#include "twin/unit_cases.h"

static uint64_t rng = 18;

/* ---- tiles ---- */

enum { BLOCKS = 2, ROWS = 16, WORDS = 16, WIDTH = 32 };

static uint32_t a[BLOCKS][ROWS][WORDS], b[BLOCKS][WORDS][WIDTH];

/* A subnormal of binary32 is a zero of its sign. */
static twin_number flushed(twin_number x)
{
    const uint32_t u = twin_to_f32(&x);
    return twin_from_f32((u & 0x7f800000u) ? u : u & 0x80000000u);
}

static twin_number step(uint32_t x, uint32_t w, twin_number s)
{
    const twin_number p = flushed(twin_from_f32(x << 16)), q = flushed(twin_from_f32(w << 16));
    return flushed(twin_fma(&p, &q, &s, 24, twin_plain(TWIN_NEAREST_EVEN)));
}

static twin_number plus(twin_number x, twin_number y)
{
    const twin_number one = twin_from_f32(0x3f800000);
    return flushed(twin_fma(&x, &one, &y, 24, twin_plain(TWIN_NEAREST_EVEN)));
}

/* TDPBF16PS, block after block: even slots, odd slots, both together, and what was there. */
static uint32_t tile_of(int m, int n, int blocks)
{
    twin_number sum = twin_from_f32(0);
    for (int block = 0; block < blocks; block++) {
        twin_number even = twin_from_f32(0), odd = even;
        for (int k = 0; k < WORDS; k++) {
            even = step(a[block][m][k] & 0xffffu, b[block][k][n] & 0xffffu, even);
            odd = step(a[block][m][k] >> 16, b[block][k][n] >> 16, odd);
        }
        sum = plus(plus(even, odd), sum);
    }
    return twin_to_f32(&sum);
}

static void fill_tiles(void)
{
    const int kind = cases_below(&rng, 4);
    uint32_t *const word[2] = { a[0][0], b[0][0] };
    const int count[2] = { sizeof a / sizeof a[0][0][0], sizeof b / sizeof b[0][0][0] };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < count[i]; k++) {
            const uint32_t r = cases_u32(&rng);
            word[i][k] = kind == 0   ? r & 0xbfffbfffu                 /* below 2, subnormals among them */
                         : kind == 1 ? (r & 0x83ff83ffu) | 0x1c001c00u /* products about 2^-126 */
                         : kind == 2 ? (r & 0x83ff83ffu) | 0x3e003e00u
                                     : (r & 0x80ff80ffu) | 0x3f003f00u;
        }
}

static void the_emulator_computes_what_tiles_do(void **state)
{
    (void)state;
    float got[ROWS][WIDTH];
    for (int round = 0; round < cases_rounds(8, 400); round++) {
        const int blocks = 1 + cases_below(&rng, BLOCKS);
        fill_tiles();
        for (int isa = TRN_ISA_PORTABLE; isa <= TRN_ISA_AVX2; isa++) {
            if (!trn_isa_supported((trn_isa)isa)) continue;
            trni_unit_bf16_emulated_for((trn_isa)isa)(got[0], a[0][0], b[0][0], blocks, WIDTH);
            for (int m = 0; m < ROWS; m++)
                for (int n = 0; n < WIDTH; n++) {
                    const uint32_t want = tile_of(m, n, blocks), found = cases_bits_of(got[m][n]);
                    if (want != found) fail_msg("[%d, %d]: %08x, not %08x", m, n, (unsigned)found, (unsigned)want);
                }
        }
    }
}

static void the_emulator_sums_bytes(void **state)
{
    (void)state;
    int32_t got[ROWS][WIDTH];
    for (int round = 0; round < 4; round++) {
        uint32_t *const x = &a[0][0][0], *const w = &b[0][0][0];
        for (size_t i = 0; i < sizeof a / sizeof *x; i++) x[i] = cases_u32(&rng);
        for (size_t i = 0; i < sizeof b / sizeof *w; i++) w[i] = cases_u32(&rng);
        trni_unit_int8_emulated_for(TRN_ISA_PORTABLE)(got[0], a[0][0], b[0][0], BLOCKS, WIDTH);
        for (int m = 0; m < ROWS; m++)
            for (int n = 0; n < WIDTH; n++) {
                int32_t want = 0;
                for (int k = 0; k < BLOCKS * 64; k++)
                    want += (int8_t)(a[k / 64][m][k / 4 % 16] >> k % 4 * 8) *
                            (uint8_t)(b[k / 64][k / 4 % 16][n] >> k % 4 * 8);
                assert_int_equal(want, got[m][n]);
            }
    }
}

/* The host's tiles must pass the test that they are put to; so must the emulator, and nothing else does. */
static void wrong_tiles(TRNI_UNIT_PARAMS(float))
{
    trni_unit_bf16_emulated_for(TRN_ISA_PORTABLE)(out, a, b, blocks, width);
    out[511] = trni_float(trni_bits(out[511]) ^ 1u);
}

static void flushing_tiles(TRNI_UNIT_PARAMS(float)) /* one chain of 32 in the place of two of 16 */
{
    for (int i = 0; i < ROWS * width; i++) out[i] = 0;
    for (; blocks > 0; blocks--, a += 256, b += 16 * width)
        for (int m = 0; m < ROWS; m++)
            for (int k = 0; k < 32; k++)
                for (int n = 0; n < width; n++)
                    out[m * width + n] = fmaf(trni_float(a[m * 16 + k / 2] >> k % 2 * 16 << 16),
                                              trni_float(b[k / 2 * width + n] >> k % 2 * 16 << 16), out[m * width + n]);
}

static void only_the_right_tiles_pass(void **state)
{
    (void)state;
    trni_unit_int8_fn *const bytes = trni_unit_int8_emulated_for(TRN_ISA_PORTABLE);
    assert_true(trni_unit_passes(trni_unit_bf16_emulated_for(TRN_ISA_PORTABLE), bytes));
    assert_false(trni_unit_passes(wrong_tiles, bytes));
    assert_false(trni_unit_passes(flushing_tiles, bytes));
    if (trn_isa_supported(TRN_ISA_AMX))
        assert_non_null(trni_unit_of(TRN_ISA_AMX, TRN_ISA_AVX512).bf16);
    else
        assert_null(trni_unit_of(TRN_ISA_AVX512, TRN_ISA_AVX512).bf16);
}

/* ---- products ---- */

static void units_return_the_bits_of_chains(void **state)
{
    (void)state;
    trn_matmul_units counts[UNIT_ISAS];
    memset(counts, 0, sizeof counts);
    for (int round = 0; round < cases_rounds(60, 3000); round++) {
        problem p;
        const bool thin = round % 10 == 0; /* a b of which few rows have panels made when their turn comes */
        unit_problem(&p, thin ? 16 : 50, thin ? 700 : 70, thin ? 700 : round % 8 ? 300 : 1200, &rng);
        unit_ask(&p, counts, &rng);
        problem_free(&p);
    }
    assert_true(counts[0].vectors && counts[0].half && counts[0].chains && counts[0].whole);
    assert_true(counts[1].vectors && counts[1].pairs);
}

/* [m, k] times [k, n] of one value each, and one number more; what the emulated unit did. */
static trn_matmul_units asked(trn_isa isa, trn_format format, uint32_t code, uint32_t other, bool packed)
{
    enum { M = 32, N = 64, K = 256 };
    static unsigned char x[M * K * 2], w[K * N * 2], room[1 << 20];
    static float sums[2][M * N];
    const size_t bytes = trn_format_bytes(format);
    trn_matmul_units units = { 0, 0, 0, 0, 0 };
    for (size_t i = 0; i < (size_t)M * K; i++) memcpy(x + i * bytes, i % 7 ? &code : &other, bytes);
    for (size_t i = 0; i < (size_t)N * K; i++) memcpy(w + i * bytes, i % 5 ? &code : &other, bytes);
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, sums[0], M, N),
                             .a = trn_tensor_2d(format, x, M, K),
                             .b = trn_tensor_2d(format, w, K, N),
                             .isa = isa };
    if (packed) {
        assert_true(trn_matmul_pack_bytes(&args) <= sizeof room);
        assert_int_equal(trn_matmul_pack(&args, room, sizeof room), TRN_OK);
        args.packed = room;
    }
    args.units = &units;
    assert_int_equal(trn_matmul(&args), TRN_OK);
    args.dst.data = sums[1];
    args.isa = TRN_ISA_PORTABLE;
    args.packed = NULL;
    args.units = NULL;
    assert_int_equal(trn_matmul(&args), TRN_OK);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    return units;
}

/* Which way each kind of numbers goes: 32 rows are two strips, 64 columns two panels or four, K two tiles. */
static void units_do_what_can_be_proven(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        const trn_isa tiles = TRN_ISA_AMX_EMULATED;
        trn_matmul_units u = asked(tiles, TRN_BF16, 0x3f80, 0xc0e0, packed); /* 1 and -7 */
        assert_true(u.whole >= 8 && !u.chains && !u.half && !u.vectors);
        u = asked(tiles, TRN_BF16, 0x3f81, 0x42ff, packed); /* 129/128 and 127.5 */
        assert_true(u.half >= 8 && !u.chains && !u.whole && !u.vectors);
        u = asked(tiles, TRN_BF16, 0x3f80, 0x0040, packed); /* a subnormal */
        assert_true(u.vectors >= 8 && !u.chains && !u.whole && !u.half);
        u = asked(tiles, TRN_F8_E3M4, 0x31, 0xef, packed);
        assert_true(u.whole + u.chains >= 8 && !u.half && !u.vectors);
    }
}

/* A product that is large enough for a host's unit or not; the emulator asks for 16 rows only. */
static void units_apply_where_they_pay(void **state)
{
    (void)state;
    const struct {
        trn_isa unit;
        int64_t rows, columns, depth;
        bool tiles, pairs;
    } edge[] = {
        { TRN_ISA_AVX512_BF16, 2, 64, 128, false, true },  { TRN_ISA_AVX512_BF16, 1, 512, 512, false, false },
        { TRN_ISA_AVX512_BF16, 2, 64, 127, false, false }, { TRN_ISA_AUTO, 64, 64, 64, false, false },
        { TRN_ISA_PAIRS_EMULATED, 2, 1, 1, false, true },  { TRN_ISA_PAIRS_EMULATED, 1, 512, 512, false, false },
        { TRN_ISA_AMX, 64, 64, 64, true, false },          { TRN_ISA_AMX, 63, 128, 128, false, false },
        { TRN_ISA_AMX_EMULATED, 16, 1, 1, true, false },   { TRN_ISA_AMX_EMULATED, 15, 512, 512, false, false },
    };
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
        if (edge[i].unit == TRN_ISA_AMX && !trn_isa_supported(TRN_ISA_AMX)) continue;
        if (edge[i].unit == TRN_ISA_AVX512_BF16 && !trni_pairs_usable(TRN_ISA_AVX512_BF16)) continue;
        trni_product p;
        memset(&p, 0, sizeof p);
        p.unit = edge[i].unit;
        p.isa = TRN_ISA_AVX512;
        p.numerics = trn_numerics_default(TRN_TRAINIUM2);
        p.a.format = p.b.format = TRN_BF16;
        p.a.info = p.b.info = *trn_format_info_of(TRN_BF16);
        p.a.lanes = edge[i].rows;
        p.b.lanes = edge[i].columns;
        p.a.depth = p.b.depth = edge[i].depth;
        assert_int_equal(trni_unit_applies(&p), edge[i].tiles);
        assert_int_equal(trni_pairs_apply(&p), edge[i].pairs);
        p.a.format = TRN_F32;
        p.a.info = *trn_format_info_of(TRN_F32);
        assert_false(trni_unit_applies(&p) || trni_pairs_apply(&p));
    }
}

/* Pairs: 32 rows are four strips. */
static void pairs_do_what_can_be_proven(void **state)
{
    (void)state;
    static const uint32_t code[][2] = {
        { 0x3f80, 0xc0e0 }, { 0x3f81, 0x42ff }, { 0x8000, 0x7f80 }, { 0xffc1, 0x7f7f }, { 0x0080, 0x7f00 }
    };
    for (int i = 0; i < 5; i++) {
        const trn_matmul_units u = asked(TRN_ISA_PAIRS_EMULATED, TRN_BF16, code[i][0], code[i][1], false);
        assert_int_equal(i < 4 ? u.vectors : u.pairs, 0);
        assert_true((i < 4 ? u.pairs : u.vectors) >= 8 && !u.half && !u.chains && !u.whole);
    }
    trn_matmul_units u = asked(TRN_ISA_PAIRS_EMULATED, TRN_BF16, 0x3f80, 0x0040, false); /* a subnormal */
    assert_true(u.vectors >= 8 && !u.pairs);
    u = asked(TRN_ISA_PAIRS_EMULATED, TRN_F8_E5M2, 0x01, 0xfb, false); /* 2^-16, which BF16 has, and -57344 */
    assert_true(u.pairs >= 16 && !u.vectors);
    u = asked(TRN_ISA_PAIRS_EMULATED, TRN_F16, 0x3c00, 0x3c01, false); /* F16 has more bits */
    assert_true(!u.pairs && !u.vectors);
}

/* Panels side by side go together, but for the one that has a subnormal. */
static void pairs_leave_out_one_panel(void **state)
{
    (void)state;
    enum { M = 100, N = 40 * 32 + 7, K = 256, STRIPS = 12 + 1, PANELS = 41, TILES = 2 };
    static uint16_t x[M * K], w[K * N];
    static float sum[2][M * N];
    for (int i = 0; i < M * K; i++) x[i] = (uint16_t)(0x3f80 + i % 61);
    for (int hurt = 0; hurt < PANELS; hurt += 5) {
        for (int i = 0; i < K * N; i++) w[i] = (uint16_t)(0xbf80 + i % 53);
        w[(K - 1) * N + hurt * 32 + hurt % 7] = 0x0040;
        trn_matmul_units units = { 0, 0, 0, 0, 0 };
        trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, sum[0], M, N),
                                 .units = &units,
                                 .a = trn_tensor_2d(TRN_BF16, x, M, K),
                                 .isa = TRN_ISA_PAIRS_EMULATED,
                                 .b = trn_tensor_2d(TRN_BF16, w, K, N) };
        assert_int_equal(trn_matmul(&args), TRN_OK);
        assert_int_equal(units.vectors, STRIPS);
        assert_int_equal(units.pairs, STRIPS * (PANELS * TILES - 1));
        args.dst.data = sum[1];
        args.isa = TRN_ISA_PORTABLE;
        assert_int_equal(trn_matmul(&args), TRN_OK);
        assert_memory_equal(sum[0], sum[1], sizeof sum[0]);
    }
}

/* 129 * 129 - 128 * 130 = 1: sums of two products that are 2^-126, or below it, where a pair would flush them. The two
 * stand in one word, or in two. */
static void pairs_stop_where_sums_are_subnormal(void **state)
{
    (void)state;
    enum { M = 8, N = 32, K = 16 };
    uint16_t x[M * K], w[K * N];
    float sum[M * N];
    for (int together = -113; together <= -111; together++)
        for (int ex = together + 120; ex >= -120; ex -= 30)
            for (int k = 0; k < 8; k += 4) {
                const int ew = together - ex;
                trn_matmul_units units = { 0, 0, 0, 0, 0 };
                memset(x, 0, sizeof x);
                memset(w, 0, sizeof w);
                for (int i = 0; i < M; i++) {
                    x[i * K + k] = trn_bf16_from_f32(ldexpf(129, ex - 7));
                    x[i * K + k + 4] = trn_bf16_from_f32(ldexpf(128, ex - 7));
                }
                for (int j = 0; j < N; j++) {
                    w[k * N + j] = trn_bf16_from_f32(ldexpf(129, ew - 7));
                    w[(k + 4) * N + j] = trn_bf16_from_f32(ldexpf(-130, ew - 7));
                }
                const trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, sum, M, N),
                                               .units = &units,
                                               .a = trn_tensor_2d(TRN_BF16, x, M, K),
                                               .isa = TRN_ISA_PAIRS_EMULATED,
                                               .b = trn_tensor_2d(TRN_BF16, w, K, N) };
                assert_int_equal(trn_matmul(&args), TRN_OK);
                for (int i = 0; i < M * N; i++) assert_true(sum[i] == ldexpf(1, together - 14));
                assert_int_equal(units.pairs > 0, together >= -112);
                assert_int_equal(units.vectors > 0, together < -112);
            }
}

/* Four rows of a's words times b's, in chains of odd lengths. */
static trni_pairs_map odd_chains(void)
{
    trni_pairs_map map;
    memset(&map, 0, sizeof map);
    map.chains = 3;
    map.words = 16;
    map.group = 1;
    map.count[0] = 5;
    map.count[1] = 8;
    map.count[2] = 3;
    return map;
}

static trni_pairs_call four_rows(const uint32_t *x, const uint32_t *y, float *out)
{
    trni_pairs_call call;
    memset(&call, 0, sizeof call);
    call.a = x;
    call.b = y;
    call.rows = 4;
    call.width = WIDTH;
    call.tiles = 1;
    call.panels = 2;
    call.b_panel = 16 * WIDTH;
    call.out = out;
    call.out_step = 2 * WIDTH;
    call.ahead = (uintptr_t)y;
    return call;
}

/* One word times 32, twice: the emulator, and the processor's pairs where it has them, against the twin. */
static void pairs_are_two_steps(void **state)
{
    (void)state;
    enum { rows = 4 };
    const trni_pairs_map map = odd_chains();
    float got[rows][2 * WIDTH], host[rows][2 * WIDTH];
    for (int round = 0; round < cases_rounds(8, 400); round++) {
        fill_tiles();
        const trni_pairs_call call = four_rows(a[0][0], b[0][0], got[0]);
        trni_pairs_emulated(&map, &call);
        for (int m = 0; m < rows; m++)
            for (int n = 0; n < 2 * WIDTH; n++) {
                twin_number chain[3];
                int k = 0;
                for (int c = 0; c < 3; c++) {
                    chain[c] = twin_from_f32(0);
                    for (int end = k + map.count[c]; k < end; k++)
                        chain[c] = step(a[0][m][k] & 0xffffu, b[n / WIDTH][k][n % WIDTH] & 0xffffu,
                                        step(a[0][m][k] >> 16, b[n / WIDTH][k][n % WIDTH] >> 16, chain[c]));
                }
                float want = trni_float(twin_to_f32(&chain[0]));
                for (int c = 1; c < 3; c++) want = want + trni_float(twin_to_f32(&chain[c]));
                const uint32_t u = cases_bits_of(want), v = cases_bits_of(got[m][n]);
                if (u != v) fail_msg("[%d, %d]: %08x, not %08x", m, n, (unsigned)v, (unsigned)u);
            }
#if TRNI_PAIRS_SIMD
        if (!trn_isa_supported(TRN_ISA_AVX512_BF16)) continue;
        const trni_pairs_call simd = four_rows(a[0][0], b[0][0], host[0]);
        trni_simd_pairs_4x1(&map, &simd);
        assert_memory_equal(got, host, sizeof got);
#endif
    }
    (void)host;
}

static void wrong_pairs(const trni_pairs_map *map, const trni_pairs_call *call)
{
    trni_pairs_emulated(map, call);
    call->out[77] = trni_float(trni_bits(call->out[77]) ^ 1u);
}

static void turned_pairs(const trni_pairs_map *map, const trni_pairs_call *call) /* the low half first */
{
    uint32_t x[64], y[16 * WIDTH];
    for (int i = 0; i < 64; i++) x[i] = call->a[i] << 16 | call->a[i] >> 16;
    for (int i = 0; i < 16 * WIDTH; i++) y[i] = call->b[i] << 16 | call->b[i] >> 16;
    trni_pairs_call turned = *call;
    turned.a = x;
    turned.b = y;
    trni_pairs_emulated(map, &turned);
}

static void only_the_right_pairs_pass(void **state)
{
    (void)state;
    assert_true(trni_pairs_pass(trni_pairs_emulated));
    assert_false(trni_pairs_pass(wrong_pairs));
    assert_false(trni_pairs_pass(turned_pairs));
    assert_int_equal(trni_pairs_usable(TRN_ISA_AVX512_BF16), TRNI_PAIRS_SIMD && trn_isa_supported(TRN_ISA_AVX512_BF16));
    assert_false(trni_pairs_usable(TRN_ISA_AMX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_emulator_computes_what_tiles_do), cmocka_unit_test(the_emulator_sums_bytes),
        cmocka_unit_test(only_the_right_tiles_pass),           cmocka_unit_test(units_return_the_bits_of_chains),
        cmocka_unit_test(units_do_what_can_be_proven),         cmocka_unit_test(units_apply_where_they_pay),
        cmocka_unit_test(pairs_do_what_can_be_proven),         cmocka_unit_test(pairs_leave_out_one_panel),
        cmocka_unit_test(pairs_stop_where_sums_are_subnormal), cmocka_unit_test(pairs_are_two_steps),
        cmocka_unit_test(only_the_right_pairs_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

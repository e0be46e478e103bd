/* test_cost.c - the cost of a matmul, against hand calculations and against a machine that is walked step by step.
 * SPDX-License-Identifier: MIT
 *
 * Numbers in the tables were worked out by hand from the vendor's pages, with the steps beside them. The walk
 * issues every instruction and fetches every panel in integer loops; it shares no formula with trn_cost.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "trnmath/trn_cost.h"
#include "twin/cases.h"

static trn_error failure;

static trn_matmul_cost_args question(trn_generation generation, trn_format format, int64_t m, int64_t n, int64_t k)
{
    return (trn_matmul_cost_args){
        .generation = generation, .a_format = format, .m = m, .n = n, .k = k, .error = &failure
    };
}

static trn_core_cost answer(const trn_matmul_cost_args *args)
{
    trn_core_cost cost;
    memset(&cost, 0x55, sizeof cost);
    if (trn_matmul_cost(args, &cost) != TRN_OK) fail_msg("%s", failure.text);
    return cost;
}

static trn_core_cost ask(trn_generation generation, trn_format format, int64_t m, int64_t n, int64_t k)
{
    const trn_matmul_cost_args args = question(generation, format, m, n, k);
    return answer(&args);
}

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.9g, expected %.9g", what, found, expected);
}

/* ---- TensorE by hand ---- */

static void one_instruction(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        int m, n, k, cycles;
        double clock_ghz;
    } row[] = {
        { TRN_TRAINIUM1, TRN_BF16, 128, 512, 128, 512, 2.8 },
        { TRN_TRAINIUM2, TRN_BF16, 128, 512, 128, 512, 2.4 },
        { TRN_TRAINIUM2, TRN_F16, 128, 512, 128, 512, 2.4 },
        { TRN_TRAINIUM2, TRN_TF32, 128, 512, 128, 512, 2.4 },
        { TRN_TRAINIUM2, TRN_F32, 128, 512, 128, 2048, 2.4 },      /* a quarter of the rate */
        { TRN_TRAINIUM2, TRN_F8_E4M3, 128, 512, 256, 512, 2.4 },   /* double rows: K of 256 at once */
        { TRN_TRAINIUM2, TRN_F8_E4M3, 128, 512, 128, 512, 2.4 },   /* half of them empty */
        { TRN_TRAINIUM1, TRN_F8_E4M3, 128, 512, 256, 1024, 2.8 },  /* no double rows there */
        { TRN_TRAINIUM3, TRN_F8_E4M3FN, 128, 512, 512, 512, 2.4 }, /* MX: K of 512 at once */
        { TRN_TRAINIUM3, TRN_F4_E2M1, 128, 512, 512, 512, 2.4 },
        { TRN_TRAINIUM3, TRN_BF16, 128, 4096, 128, 4096, 2.4 },
        { TRN_TRAINIUM2, TRN_BF16, 1, 1, 1, 64, 2.4 }, /* the shortest instruction */
        { TRN_TRAINIUM2, TRN_F32, 1, 1, 1, 256, 2.4 },
        { TRN_TRAINIUM2, TRN_BF16, 64, 64, 64, 64, 2.4 },
        { TRN_TRAINIUM2, TRN_BF16, 128, 128, 129, 256, 2.4 }, /* one row more is one tile more */
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_core_cost cost = ask(row[i].generation, row[i].format, row[i].m, row[i].n, row[i].k);
        near(cost.tensor_cycles, row[i].cycles, 0, trn_format_name(row[i].format));
        near(cost.tensor_s, row[i].cycles / (row[i].clock_ghz * 1e9), 1e-12, "seconds");
        near(cost.flops, 2.0 * row[i].m * row[i].n * row[i].k, 0, "flops");
    }
}

static void instruction_counts(void **state)
{
    (void)state;
    near(ask(TRN_TRAINIUM2, TRN_BF16, 128, 512, 128).instructions, 1, 0, "one");
    near(ask(TRN_TRAINIUM2, TRN_BF16, 128, 513, 128).instructions, 2, 0, "513 columns on Trainium2");
    near(ask(TRN_TRAINIUM3, TRN_BF16, 128, 4096, 128).instructions, 1, 0, "4096 columns on Trainium3");
    near(ask(TRN_TRAINIUM2, TRN_BF16, 4096, 4096, 4096).instructions, 32 * 32 * 8, 0, "a square");
}

/* Each is issued as one walks it: for every stationary tile, for every moving piece. */
static int64_t walked_cycles(int64_t held, int64_t moved, int64_t k, int64_t tile_k, int64_t longest, int passes)
{
    int64_t cycles = 0;
    const int64_t pieces = moved / longest + (moved % longest > 0);
    for (int64_t k0 = 0; k0 < k; k0 += tile_k)
        for (int64_t c0 = 0; c0 < held; c0 += 128)
            for (int64_t p = 0, left = moved; p < pieces; p++) {
                const int64_t piece = left / (pieces - p); /* equal to within one column */
                cycles += (piece < 64 ? 64 : piece) * passes;
                left -= piece;
            }
    return cycles;
}

static void tensor_against_a_walk(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        int tile_k, longest, passes;
    } kind[] = {
        { TRN_TRAINIUM1, TRN_BF16, 128, 512, 1 },       { TRN_TRAINIUM1, TRN_F32, 128, 512, 4 },
        { TRN_TRAINIUM1, TRN_CFP8, 128, 512, 1 },       { TRN_TRAINIUM2, TRN_BF16, 128, 512, 1 },
        { TRN_TRAINIUM2, TRN_F32, 128, 512, 4 },        { TRN_TRAINIUM2, TRN_F8_E5M2, 256, 512, 1 },
        { TRN_TRAINIUM2, TRN_F8_E3M4, 128, 512, 1 },    { TRN_TRAINIUM3, TRN_F16, 128, 4096, 1 },
        { TRN_TRAINIUM3, TRN_F8_E4M3FN, 512, 4096, 1 }, { TRN_TRAINIUM3, TRN_F4_E2M1, 512, 4096, 1 },
    };
    uint64_t seed = 20;
    for (int round = 0; round < 400; round++) {
        const int i = cases_below(&seed, (int)(sizeof kind / sizeof kind[0]));
        const int64_t m = 1 + cases_below(&seed, round % 2 ? 40 : 3000), n = 1 + cases_below(&seed, 3000);
        const int64_t k = 1 + cases_below(&seed, 3000);
        trn_matmul_cost_args args = question(kind[i].generation, kind[i].format, m, n, k);
        const int64_t a_held = walked_cycles(m, n, k, kind[i].tile_k, kind[i].longest, kind[i].passes);
        const int64_t b_held = walked_cycles(n, m, k, kind[i].tile_k, kind[i].longest, kind[i].passes);

        const trn_core_cost free_choice = answer(&args);
        near(free_choice.tensor_cycles, (double)(a_held < b_held ? a_held : b_held), 0, "the cheaper operand");
        near(free_choice.rival_cycles, (double)(a_held < b_held ? b_held : a_held), 0, "the other operand");
        assert_int_equal(free_choice.stationary, b_held < a_held ? TRN_OPERAND_B : TRN_OPERAND_A);
        args.stationary = TRN_OPERAND_A;
        near(answer(&args).tensor_cycles, (double)a_held, 0, "a stationary");
        args.stationary = TRN_OPERAND_B;
        near(answer(&args).tensor_cycles, (double)b_held, 0, "b stationary");
        assert_int_equal(answer(&args).stationary, TRN_OPERAND_B);
    }
}

/* Only the first load has nothing to hide behind: 128 columns at 4 per cycle, four times that for F32. */
static void load_stationary(void **state)
{
    (void)state;
    near(ask(TRN_TRAINIUM2, TRN_BF16, 4096, 4096, 4096).load_stationary_s, 32 / 2.4e9, 1e-12, "BF16");
    near(ask(TRN_TRAINIUM1, TRN_BF16, 1, 1, 1).load_stationary_s, 32 / 2.8e9, 1e-12, "one column");
    near(ask(TRN_TRAINIUM2, TRN_F32, 4096, 4096, 4096).load_stationary_s, 128 / 2.4e9, 1e-12, "F32");
    near(ask(TRN_TRAINIUM2, TRN_BF16, 16, 16, 0).load_stationary_s, 0, 0, "no K");
}

static void utilisation(void **state)
{
    (void)state;
    near(ask(TRN_TRAINIUM2, TRN_BF16, 128, 512, 128).utilisation, 1, 1e-12, "full tiles");
    near(ask(TRN_TRAINIUM2, TRN_BF16, 128, 512, 64).utilisation, 0.5, 1e-12, "half of the rows");
    near(ask(TRN_TRAINIUM2, TRN_F32, 128, 512, 128).utilisation, 1, 1e-12, "F32 at its own rate");
    near(ask(TRN_TRAINIUM2, TRN_BF16, 16, 4096, 4096).utilisation, 0.25, 1e-12, "16 of 64 cycles");
    near(ask(TRN_TRAINIUM2, TRN_F8_E4M3, 128, 512, 128).utilisation, 0.5, 1e-12, "one of two rows");
    near(ask(TRN_TRAINIUM3, TRN_F8_E4M3FN, 128, 512, 512).utilisation, 1, 1e-12, "MX");
    /* 96 of 128 columns on a third tile: 352 / 384; the other operand has 448 = 3.5 tiles, 448/512, so a is held */
    near(ask(TRN_TRAINIUM2, TRN_BF16, 352, 448, 128).utilisation, 352.0 / 384, 1e-12, "a short third tile");
}

/* ---- memory by hand ---- */

static void decode_on_trainium2(void **state)
{
    (void)state;
    const trn_core_cost cost = ask(TRN_TRAINIUM2, TRN_BF16, 1, 4096, 4096);
    /* Weights stationary: 32 x 32 tiles of 64 cycles. Activations stationary: 32 tiles that sweep 4096 columns. */
    near(cost.tensor_cycles, 65536, 0, "weights stationary");
    near(cost.rival_cycles, 131072, 0, "activations stationary");
    assert_int_equal(cost.stationary, TRN_OPERAND_B);
    near(cost.bytes, 8192 + 33554432 + 8192, 0, "each operand once");
    near(cost.hbm_s, 33570816 / 362.5e9, 1e-12, "2.9 TB/s over 8 cores");
    near(cost.dma_s, 33570816 / 368e9, 1e-12, "16 engines of 23 GB/s");
    near(cost.startup_s, 1.3e-6, 1e-12, "start-up");
    near(cost.time_s, 33570816 / 362.5e9 + 1.3e-6, 1e-12, "time");
    assert_int_equal(cost.limit, TRN_LIMIT_HBM);
    assert_string_equal(cost.limit_name, "HBM");
    assert_non_null(strstr(cost.text, "b is stationary in 65536 cycles (a would be in 131072)"));
    near(cost.fraction_of_spec, 2.0 * 4096 * 4096 / (33570816 / 362.5e9 + 1.3e-6) / (667e12 / 8), 1e-9, "of spec");
}

static void decode_on_the_others(void **state)
{
    (void)state;
    const trn_core_cost one = ask(TRN_TRAINIUM1, TRN_BF16, 1, 4096, 4096);
    near(one.time_s, 33570816 / 272e9 + 1.3e-6, 1e-12, "Trainium1: 16 engines of 17 GB/s, HBM has 410");
    assert_int_equal(one.limit, TRN_LIMIT_DMA);
    const trn_core_cost three = ask(TRN_TRAINIUM3, TRN_BF16, 1, 4096, 4096);
    near(three.time_s, 33570816 / 528e9 + 1.3e-6, 1e-12, "Trainium3: 16 engines of 33 GB/s, HBM has 612.5");
    assert_int_equal(three.limit, TRN_LIMIT_DMA);
    const trn_core_cost mx = ask(TRN_TRAINIUM3, TRN_F4_E2M1, 1, 4096, 4096);
    near(mx.bytes, 4097.0 * 4096 / 2 + 4097.0 * 128 + 8192, 0, "packed FP4, one scale byte for 32, BF16 out");
}

/* 4096^3 in BF16 on Trainium2: 32 x 32 tiles sweep 4096 columns = 4,194,304 cycles = 1.747627 ms. Rows of 8 KiB: 3/4 of
 * 28 MiB holds 2688, so a is in two panels and b comes twice: 3 x 32 MiB + 32 MiB of results = 128 MiB. */
static void large_square(void **state)
{
    (void)state;
    const trn_core_cost cost = ask(TRN_TRAINIUM2, TRN_BF16, 4096, 4096, 4096);
    near(cost.tensor_cycles, 4194304, 0, "cycles");
    near(cost.time_s, 1.74894e-3, 1e-5, "time");
    near(cost.bytes, 134217728, 0, "bytes");
    near(cost.a_reads + cost.b_reads, 3, 0, "reads");
    near(cost.tflops, 78.58, 1e-4, "TFLOPS");
    near(cost.spec_tflops, 83.375, 1e-9, "667 over 8");
    near(cost.tensor_peak_tflops, 78.6432, 1e-9, "the array");
    near(cost.fraction_of_spec, 0.9425, 1e-3, "of spec");
    near(cost.fraction_of_peak, 0.9992, 1e-3, "of the array");
    assert_int_equal(cost.limit, TRN_LIMIT_TENSOR);
    assert_true(cost.fits_hbm);
}

static void near_the_peak(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        double peak, of_spec;
    } row[] = {
        { TRN_TRAINIUM1, TRN_BF16, 91.75, 0.9658 },       { TRN_TRAINIUM1, TRN_F32, 22.94, 0.9658 },
        { TRN_TRAINIUM2, TRN_BF16, 78.643, 0.9432 },      { TRN_TRAINIUM2, TRN_F8_E4M3, 157.29, 0.9686 },
        { TRN_TRAINIUM2, TRN_F32, 19.661, 0.8690 },       { TRN_TRAINIUM3, TRN_BF16, 78.643, 0.9376 },
        { TRN_TRAINIUM3, TRN_F8_E4M3FN, 314.57, 0.9998 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_core_cost cost = ask(row[i].generation, row[i].format, 16384, 16384, 16384);
        near(cost.tensor_peak_tflops, row[i].peak, 1e-3, "the array's peak");
        near(cost.tflops, row[i].peak, 2e-3, "reached");
        near(cost.fraction_of_spec, row[i].of_spec, 2e-3, "share of the published figure");
        assert_true(cost.fraction_of_spec < 1 && cost.fraction_of_peak < 1);
        assert_int_equal(cost.limit, TRN_LIMIT_TENSOR);
    }
}

/* ---- traffic, fetched panel by panel ---- */

/* One operand sits in SBUF panel by panel, the other streams past each of them. */
static double fetched_by_panels(int64_t held_rows, int64_t other_rows, int64_t row_bytes, int64_t room)
{
    double bytes = 0;
    int64_t most = 0;
    while ((most + 1) * row_bytes <= room && most < held_rows) most++;
    if (most < held_rows) most -= most % 128;
    if (most == 0) return INFINITY;
    for (int64_t r = 0; r < held_rows; r += most) {
        const int64_t rows = held_rows - r < most ? held_rows - r : most;
        bytes += (double)(rows * row_bytes) + (double)(other_rows * row_bytes);
    }
    return bytes;
}

static double fetched_by_blocks(int64_t m, int64_t n, int64_t row_bytes)
{
    double best = INFINITY;
    for (int64_t rows = 128; rows <= 2048; rows *= 2) {
        const int64_t columns = 128 * 2048 / rows;
        double bytes = 0;
        for (int64_t i = 0; i < m; i += rows)
            for (int64_t j = 0; j < n; j += columns) {
                const int64_t r = m - i < rows ? m - i : rows, c = n - j < columns ? n - j : columns;
                bytes += (double)((r + c) * row_bytes);
            }
        if (bytes < best) best = bytes;
    }
    return best;
}

static void traffic_against_a_walk(void **state)
{
    (void)state;
    static const int64_t sbuf_mib[] = { 24, 28, 32 };
    uint64_t seed = 21;
    int by_panel_of_a = 0, by_panel_of_b = 0, by_block = 0;
    for (int round = 0; round < 300; round++) {
        const int g = cases_below(&seed, 3);
        const bool f32 = cases_one_in(&seed, 3);
        const int64_t m = 1 + cases_below(&seed, 20000), n = 1 + cases_below(&seed, 20000);
        const int64_t k = 1 + cases_below(&seed, round % 3 ? 8000 : 150000), room = sbuf_mib[g] * 1048576 / 4 * 3;
        trn_matmul_cost_args args = question((trn_generation)(TRN_TRAINIUM1 + g), f32 ? TRN_F32 : TRN_BF16, m, n, k);
        const int64_t row_bytes = k * (f32 ? 4 : 2);
        const double a = fetched_by_panels(m, n, row_bytes, room), b = fetched_by_panels(n, m, row_bytes, room);
        const double blocks = fetched_by_blocks(m, n, row_bytes), dst = (double)(m * n * (f32 ? 4 : 2));
        const double fewest = fmin(blocks, fmin(a, b));
        by_panel_of_a += a < b && a < blocks;
        by_panel_of_b += b < a && b < blocks;
        by_block += blocks < a && blocks < b;

        const trn_core_cost cost = answer(&args);
        near(cost.bytes, fewest + dst, 1e-12, "bytes");
        near(cost.a_reads * (double)(m * row_bytes) + cost.b_reads * (double)(n * row_bytes), fewest, 1e-12, "reads");
        args.accumulate = true;
        near(answer(&args).bytes, fewest + 2 * dst, 1e-12, "bytes with accumulate");
    }
    assert_true(by_panel_of_a > 20 && by_panel_of_b > 20 && by_block > 5); /* each way was seen to be the best one */
}

/* ---- properties ---- */

static int64_t some_size(uint64_t *seed)
{
    const int top = cases_below(seed, 17);
    return cases_below(seed, (1 << top) + 1);
}

static void monotone_and_bounded(void **state)
{
    (void)state;
    static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F8_E4M3 };
    uint64_t seed = 22;
    for (int round = 0; round < 3000; round++) {
        const trn_generation g = (trn_generation)(TRN_TRAINIUM1 + cases_below(&seed, 3));
        trn_matmul_cost_args args =
            question(g, formats[cases_below(&seed, 3)], some_size(&seed), some_size(&seed), some_size(&seed));
        args.accumulate = cases_one_in(&seed, 3);
        const trn_core_cost cost = answer(&args);
        assert_true(cost.time_s >= cost.tensor_s + cost.load_stationary_s);
        assert_true(cost.time_s >= cost.dma_s && cost.time_s >= cost.hbm_s && cost.time_s >= cost.startup_s);
        assert_true(cost.fraction_of_peak >= 0 && cost.fraction_of_peak <= 1);
        assert_true(cost.utilisation >= 0 && cost.utilisation <= 1);
        assert_true(cost.tensor_cycles <= cost.rival_cycles);
        assert_true(cost.time_s >= cost.flops / (cost.tensor_peak_tflops * 1e12));

        int64_t *const size[] = { &args.m, &args.n, &args.k };
        *size[cases_below(&seed, 3)] += 1 + cases_below(&seed, 200);
        const trn_core_cost more = answer(&args);
        if (more.time_s < cost.time_s || more.bytes < cost.bytes || more.tensor_cycles < cost.tensor_cycles)
            fail_msg("%lldx%lldx%lld is cheaper than something smaller", (long long)args.m, (long long)args.n,
                     (long long)args.k);
    }
}

static void transposing_changes_nothing(void **state)
{
    (void)state;
    uint64_t seed = 23;
    for (int round = 0; round < 200; round++) {
        const int64_t m = some_size(&seed), n = some_size(&seed), k = some_size(&seed);
        const trn_core_cost ab = ask(TRN_TRAINIUM2, TRN_BF16, m, n, k), ba = ask(TRN_TRAINIUM2, TRN_BF16, n, m, k);
        near(ab.time_s, ba.time_s, 1e-12, "dst against its transpose");
        near(ab.bytes, ba.bytes, 1e-12, "bytes");
    }
}

static void nothing_to_do(void **state)
{
    (void)state;
    static const int64_t empty[][3] = { { 0, 5, 5 }, { 5, 0, 5 }, { 0, 0, 5 }, { 0, 5, 0 }, { 0, 0, 0 } };
    for (unsigned i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        const trn_core_cost cost = ask(TRN_TRAINIUM2, TRN_BF16, empty[i][0], empty[i][1], empty[i][2]);
        assert_true(cost.time_s <= 0 && cost.flops <= 0 && cost.tflops <= 0 && cost.bytes <= 0);
        assert_true(cost.fraction_of_spec <= 0 && cost.utilisation <= 0);
        assert_int_equal(cost.limit, TRN_LIMIT_NONE);
        assert_string_equal(cost.text, "nothing to do");
    }
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 100, 200, 0); /* dst = 0 is still written */
    const trn_core_cost zeros = answer(&args);
    near(zeros.bytes, 40000, 0, "zeros");
    assert_true(zeros.time_s > 0 && zeros.flops <= 0 && zeros.tflops <= 0);
    args.accumulate = true; /* dst += 0 is not */
    assert_true(answer(&args).time_s <= 0);
}

static void operands_in_sbuf(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 1024, 1024, 1024);
    args.operands_in_sbuf = true;
    const trn_core_cost cost = answer(&args);
    assert_true(cost.bytes <= 0 && cost.dma_s <= 0 && cost.hbm_s <= 0 && cost.startup_s <= 0);
    near(cost.time_s, (8 * 8 * 1024 + 32) / 2.4e9, 1e-12, "TensorE and the first load");
    assert_int_equal(cost.limit, TRN_LIMIT_TENSOR);

    args.m = args.n = args.k = 2048; /* 24 MiB fit in 28 */
    assert_int_equal(trn_matmul_cost(&args, &(trn_core_cost){ 0 }), TRN_OK);
    args.generation = TRN_TRAINIUM1; /* and in 24, to the byte */
    assert_int_equal(trn_matmul_cost(&args, &(trn_core_cost){ 0 }), TRN_OK);
    args.m = 2049;
    assert_int_equal(trn_matmul_cost(&args, &(trn_core_cost){ 0 }), TRN_ELIMIT);
    assert_non_null(strstr(failure.text, "25174016")); /* 24 MiB, one row of a and one of dst */
    assert_non_null(strstr(failure.text, "25165824"));
}

static void limits(void **state)
{
    (void)state;
    assert_int_equal(ask(TRN_TRAINIUM2, TRN_BF16, 1, 1, 1).limit, TRN_LIMIT_STARTUP);
    assert_int_equal(ask(TRN_TRAINIUM2, TRN_BF16, 16, 8192, 8192).limit, TRN_LIMIT_HBM);
    assert_int_equal(ask(TRN_TRAINIUM3, TRN_BF16, 16, 8192, 8192).limit, TRN_LIMIT_DMA);
    assert_int_equal(ask(TRN_TRAINIUM3, TRN_BF16, 4096, 8192, 8192).limit, TRN_LIMIT_TENSOR);
    /* Loads of what is held and the time that the cold engine loses are the Tensor engine's, too. */
    trn_core_cost cost = { .tensor_s = 4, .load_stationary_s = 2, .throttle_s = 1, .time_s = 9, .hbm_s = 7 };
    assert_int_equal(trni_cost_limit(&cost), TRN_LIMIT_TENSOR);
    cost.hbm_s = 7.01;
    assert_int_equal(trni_cost_limit(&cost), TRN_LIMIT_HBM);
    cost.dma_s = 7.02;
    assert_int_equal(trni_cost_limit(&cost), TRN_LIMIT_DMA);
    cost.startup_s = 7.03;
    assert_int_equal(trni_cost_limit(&cost), TRN_LIMIT_STARTUP);
    cost.time_s = 0;
    assert_int_equal(trni_cost_limit(&cost), TRN_LIMIT_NONE);
    /* Of two formats with one peak on a core the first one's published rate counts. */
    trn_chip_spec chip = *trn_chip_spec_of(TRN_TRAINIUM1);
    const trni_speed speed = { .mode = TRN_MODE_PLAIN, .published = true };
    chip.bf16_flops_per_s = 1e14;
    chip.f8_flops_per_s = 3e14;
    near(trni_cost_spec(&chip, &speed, TRN_BF16, TRN_F8_E4M3), 1e14 / chip.cores, 1e-12, "BF16 first");
    near(trni_cost_spec(&chip, &speed, TRN_F8_E4M3, TRN_BF16), 3e14 / chip.cores, 1e-12, "FP8 first");
    near(trni_cost_spec(&chip, &speed, TRN_F32, TRN_BF16), chip.f32_flops_per_s / chip.cores, 1e-12, "F32 is slower");
    near(trni_cost_spec(&chip, &speed, TRN_BF16, TRN_F32), chip.f32_flops_per_s / chip.cores, 1e-12, "F32 is slower");
    for (int i = TRN_LIMIT_NONE; i <= TRN_LIMIT_STARTUP; i++) assert_true(strlen(trn_limit_name((trn_limit)i)) > 2);
    assert_string_equal(trn_limit_name((trn_limit)9), "unknown");
    assert_string_equal(trn_operand_name(TRN_OPERAND_B), "b");
    assert_string_equal(trn_matmul_mode_name(TRN_MODE_DOUBLE_ROW), "double_row");
}

/* ---- formats, modes, defaults ---- */

static void modes(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_F8_E4M3, 1024, 1024, 1024);
    assert_int_equal(answer(&args).mode, TRN_MODE_DOUBLE_ROW);
    const double fast = answer(&args).tensor_cycles;
    args.b_format = TRN_F8_E5M2; /* FP8 formats may be mixed */
    assert_int_equal(answer(&args).mode, TRN_MODE_DOUBLE_ROW);
    args.mode = TRN_MODE_PLAIN;
    near(answer(&args).tensor_cycles, 2 * fast, 0, "FP8 without double rows");
    args.mode = TRN_MODE_FASTEST;
    args.b_format = TRN_BF16; /* narrow formats too, at the rate of the wider */
    assert_int_equal(answer(&args).mode, TRN_MODE_PLAIN);
    near(answer(&args).spec_tflops, 667.0 / 8, 1e-12, "BF16's figure");
    near(answer(&args).bytes, 1048576 * (1 + 2 + 2), 0, "FP8 and BF16 in, BF16 out");

    args = question(TRN_TRAINIUM2, TRN_TF32, 1024, 1024, 1024);
    const double tf32 = answer(&args).tensor_cycles;
    args.b_format = TRN_F32; /* TF32 may meet F32, at the rate of F32 */
    near(answer(&args).tensor_cycles, 4 * tf32, 0, "TF32 and F32");
    near(answer(&args).spec_tflops, 181.0 / 8, 1e-12, "F32's figure");

    args = question(TRN_TRAINIUM3, TRN_F8_E4M3FN, 1024, 1024, 1024);
    args.b_format = TRN_F4_E2M1;
    assert_int_equal(answer(&args).mode, TRN_MODE_MX);
    args.b_format = TRN_F8_E5M2;
    assert_int_equal(answer(&args).mode, TRN_MODE_MX);
    args.mode = TRN_MODE_DOUBLE_ROW;
    near(answer(&args).tensor_peak_tflops, 157.2864, 1e-9, "double rows on Trainium3");

    const trn_core_cost f8 = ask(TRN_TRAINIUM3, TRN_F8_E4M3, 1024, 1024, 1024);
    assert_int_equal(f8.mode, TRN_MODE_DOUBLE_ROW);
    near(f8.spec_tflops, 2517.0 / 8, 1e-12, "FP8's figure on Trainium3, which is that of MXFP8");
    assert_true(f8.fraction_of_spec > 0 && f8.fraction_of_spec <= 0.5);
}

static void defaults(void **state)
{
    (void)state;
    const trn_core_cost two = ask(TRN_GENERATION_DEFAULT, TRN_BF16, 64, 64, 64);
    near(two.spec_tflops, 667.0 / 8, 1e-12, "Trainium2");
    near(ask(TRN_GENERATION_DEFAULT, TRN_F8_E4M3FN, 64, 64, 64).spec_tflops, 2517.0 / 8, 1e-12, "Trainium3 for E4M3FN");
    near(ask(TRN_GENERATION_DEFAULT, TRN_F4_E2M1, 64, 64, 64).spec_tflops, 2517.0 / 8, 1e-12, "Trainium3 for E2M1");
    near(ask(TRN_TRAINIUM2, TRN_F32, 64, 64, 0).bytes, 16384, 0, "F32 in, F32 out");
    near(ask(TRN_TRAINIUM2, TRN_TF32, 64, 64, 0).bytes, 16384, 0, "TF32 in, F32 out");
    near(ask(TRN_TRAINIUM2, TRN_F8_E4M3, 64, 64, 0).bytes, 8192, 0, "FP8 in, BF16 out");
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 64, 64, 0);
    args.dst_format = TRN_F32;
    near(answer(&args).bytes, 16384, 0, "BF16 in, F32 out");
}

/* ---- the Tensor engine's other modes ---- */

static void sparse_by_hand(void **state)
{
    (void)state;
    static const struct {
        int m, n, tile_k;
        double peak;
    } row[] = { { 4, 16, 512, 314.5728 }, { 4, 12, 384, 235.9296 }, { 4, 8, 256, 157.2864 }, { 2, 8, 512, 314.5728 },
                { 2, 4, 256, 157.2864 },  { 1, 4, 512, 314.5728 },  { 1, 2, 256, 157.2864 } };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 1024, 768, 12288);
        args.sparse_m = row[i].m;
        args.sparse_n = row[i].n;
        const trn_core_cost cost = answer(&args);
        const double stored = 12288.0 * row[i].m / row[i].n;
        assert_int_equal(cost.mode, TRN_MODE_SPARSE);
        assert_int_equal(cost.stationary, TRN_OPERAND_A);
        near(cost.tensor_cycles, 12288 / row[i].tile_k * 8 * 768, 0, "cycles");
        near(cost.tensor_peak_tflops, row[i].peak, 1e-12, "peak");
        near(cost.flops, 2.0 * 1024 * 768 * 12288, 0, "flops of the dense product");
        near(cost.a_reads * 1024 * stored * 2.5 + cost.b_reads * 768 * 12288 * 2 + 1024 * 768 * 2, cost.bytes, 1e-12,
             "values with tags of 4 bits, dense b, dst");
        near(cost.utilisation, 1, 1e-12, "full tiles");
        if (i == 0) near(cost.spec_tflops, 2563.0 / 8, 1e-12, "published for 4:16");
        if (i > 0) assert_true(isnan(cost.spec_tflops));
        assert_int_equal(cost.speed.known, i == 0 ? TRN_DOCUMENTED : TRN_ASSUMED);
    }
    trn_matmul_cost_args args = question(TRN_TRAINIUM3, TRN_F8_E4M3FN, 512, 512, 4096);
    args.sparse_m = 4, args.sparse_n = 16;
    near(answer(&args).tensor_cycles, 8 * 4 * 512, 0, "FP8 on Trainium3: as BF16");
    assert_true(isnan(answer(&args).spec_tflops)); /* the chip page lists 16-bit formats */
    args = question(TRN_TRAINIUM2, TRN_BF16, 512, 512, 4096);
    args.b_format = TRN_F8_E4M3;
    args.sparse_m = 4, args.sparse_n = 16;
    near(answer(&args).tensor_cycles, 8 * 4 * 512, 0, "mixed");
}

static void f32_in_fewer_passes(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_F32, 1024, 1024, 1024);
    const double full = answer(&args).tensor_cycles, bytes = answer(&args).bytes;
    args.is_b_onezero = true;
    near(answer(&args).tensor_cycles, full / 2, 0, "b is zeros and ones");
    assert_true(isnan(answer(&args).spec_tflops));
    args.is_a_onezero = true;
    near(answer(&args).tensor_cycles, full / 2, 0, "both are");
    args.a_format = TRN_TF32, args.b_format = TRN_F32, args.is_b_onezero = false;
    near(answer(&args).tensor_cycles, full, 0, "a hint about TF32 does not help F32");
    args.a_format = args.b_format = TRN_BF16, args.is_b_onezero = true;
    near(answer(&args).tensor_cycles, full / 4, 0, "nor does BF16 need one");
    near(answer(&args).spec_tflops, 667.0 / 8, 1e-12, "its rate is published");
    args = question(TRN_TRAINIUM2, TRN_F32, 1024, 1024, 1024);
    args.fp32r = true;
    near(answer(&args).tensor_cycles, full / 4, 0, "FP32R");
    near(answer(&args).bytes, bytes, 0, "in containers of 4 bytes");
    assert_int_equal(answer(&args).speed.known, TRN_ASSUMED);
    assert_true(isnan(answer(&args).fraction_of_spec));
}

static void int8_on_trainium1(void **state)
{
    (void)state;
    const trn_core_cost cost = ask(TRN_TRAINIUM1, TRN_I8, 4096, 4096, 4096);
    const trn_core_cost bf16 = ask(TRN_TRAINIUM1, TRN_BF16, 4096, 4096, 4096);
    assert_int_equal(cost.mode, TRN_MODE_INT8);
    near(cost.tensor_cycles, bf16.tensor_cycles / 2, 0, "half of BF16");
    near(cost.spec_tflops, 190, 1e-12, "380 over two cores");
    near(cost.tensor_peak_tflops, 183.5008, 1e-12, "the array");
    near(cost.fraction_of_spec, 0.9658, 2e-3, "of spec");
    near(ask(TRN_TRAINIUM1, TRN_I8, 64, 64, 0).bytes, 16384, 0, "I32 out");
    near(ask(TRN_TRAINIUM1, TRN_I8, 1, 1, 1).tensor_cycles, 64, 0, "the shortest instruction");
    assert_int_equal(cost.speed.known, TRN_DERIVED);
}

/* Tile after tile: max(P, min(64, F)) cycles, twice that for F32 (Trainium1: four times). */
static void transposes_against_a_walk(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        int passes, bytes, dst_bytes;
    } kind[] = { { TRN_TRAINIUM2, TRN_BF16, 1, 2, 2 },
                 { TRN_TRAINIUM2, TRN_F32, 2, 4, 4 },
                 { TRN_TRAINIUM1, TRN_F32, 4, 4, 4 },
                 { TRN_TRAINIUM3, TRN_F8_E4M3FN, 1, 1, 2 } };
    uint64_t seed = 25;
    for (int round = 0; round < 200; round++) {
        const int i = cases_below(&seed, 4);
        const int64_t rows = 1 + cases_below(&seed, 700), columns = 1 + cases_below(&seed, 700);
        double cycles = 0;
        for (int64_t r = 0; r < rows; r += 128)
            for (int64_t c = 0; c < columns; c += 128) {
                const int64_t p = rows - r < 128 ? rows - r : 128, f = columns - c < 128 ? columns - c : 128;
                cycles += (double)((p > 64 || p > f ? p : f < 64 ? f : 64) * kind[i].passes);
            }
        trn_matmul_cost_args args = question(kind[i].generation, kind[i].format, columns, 0, rows);
        args.mode = TRN_MODE_TRANSPOSE;
        const trn_core_cost cost = answer(&args);
        near(cost.tensor_cycles, cycles, 0, "cycles");
        near(cost.bytes, (double)(rows * columns * (kind[i].bytes + kind[i].dst_bytes)), 0, "bytes");
        assert_true(cost.flops <= 0 && cost.tflops <= 0 && isnan(cost.spec_tflops));
        assert_true(cost.utilisation > 0 && cost.utilisation <= 1 && cost.fraction_of_peak < cost.utilisation);
        if (rows % 128 == 0 && columns % 128 == 0) near(cost.utilisation, 1, 1e-12, "full tiles");
    }
    trn_matmul_cost_args args = question(TRN_GENERATION_DEFAULT, TRN_BF16, 8192, 0, 8192);
    args.mode = TRN_MODE_TRANSPOSE;
    args.system = trn_system_spec_of(TRN_TRN2_48XLARGE);
    trn_system_cost all;
    assert_int_equal(trn_matmul_system_cost(&args, &all), TRN_OK);
    near(all.core.tensor_cycles, 64 * 64 * 128 / 128.0, 0, "an even share of tiles");
    near(all.core.bytes, 8192.0 * 8192 * 4 / 128, 0, "and of bytes");
    assert_true(all.flops <= 0 && all.tflops <= 0 && all.time_s > 0);
}

/* Up to four places along each axis of the array; the moving operand is cut where tiles are too few. */
static void packs_by_hand(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format format;
        int64_t m, n, k;
        int at_once;
        double alone, packed;
    } row[] = {
        { TRN_TRAINIUM2, TRN_BF16, 512, 2048, 32, 4, 4 * 2048, 2048 }, /* four tiles beside each other */
        { TRN_TRAINIUM2, TRN_BF16, 128, 2048, 32, 4, 2048, 512 },      /* one tile, four pieces */
        { TRN_TRAINIUM2, TRN_BF16, 128, 2048, 33, 2, 2048, 1024 },     /* parts of 64 rows */
        { TRN_TRAINIUM2, TRN_BF16, 32, 2048, 32, 16, 2048, 128 },      /* both axes */
        { TRN_TRAINIUM2, TRN_BF16, 128, 128, 32, 4, 128, 64 },         /* no piece below 64 cycles */
        { TRN_TRAINIUM2, TRN_BF16, 640, 2048, 65, 1, 5 * 2048, 5 * 2048 },
        { TRN_TRAINIUM1, TRN_BF16, 64, 2048, 64, 4, 2048, 512 },
        { TRN_TRAINIUM1, TRN_BF16, 128, 2048, 32, 2, 2048, 1024 },
        { TRN_TRAINIUM2, TRN_F8_E4M3, 32, 2048, 64, 4, 2048, 512 }, /* double rows: 32 rows of PEs, no columns */
        { TRN_TRAINIUM3, TRN_F4_E2M1, 32, 2048, 256, 2, 2048, 1024 },
        { TRN_TRAINIUM2, TRN_F32, 384, 4096, 32, 4, 3 * 4 * 4096, 3 * 4096 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_matmul_cost_args args = question(row[i].generation, row[i].format, row[i].m, row[i].n, row[i].k);
        args.stationary = TRN_OPERAND_A;
        near(answer(&args).tensor_cycles, row[i].alone, 0, "alone");
        assert_int_equal(answer(&args).tiles_at_once, 1);
        args.pack_tiles = true;
        const trn_core_cost cost = answer(&args);
        near(cost.tensor_cycles, row[i].packed, 0, "packed");
        assert_int_equal(cost.tiles_at_once, row[i].at_once);
        assert_true(cost.utilisation <= 1);
    }
    trn_matmul_cost_args sparse = question(TRN_TRAINIUM3, TRN_BF16, 32, 2048, 32); /* which has the array to itself */
    sparse.sparse_m = 4, sparse.sparse_n = 16;
    sparse.pack_tiles = true;
    assert_int_equal(answer(&sparse).tiles_at_once, 1);
}

static void a_cold_tensor_engine(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 4096, 4096, 4096);
    const double warm = answer(&args).time_s;
    args.throttle = true;
    near(answer(&args).throttle_s, 0.75e-6, 1e-9, "3 us at three quarters of the rate on average");
    near(answer(&args).time_s, warm + 0.75e-6, 1e-12, "time");
    args.generation = TRN_TRAINIUM1;
    near(answer(&args).throttle_s, 0, 0, "Trainium1");
    args = question(TRN_TRAINIUM2, TRN_BF16, 1, 4096, 4096); /* bound by HBM: TensorE may be cold */
    const double slow = answer(&args).time_s;
    args.throttle = true;
    near(answer(&args).time_s, slow, 0, "nothing is lost behind HBM");
}

static void bf16_in_psum(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_TRAINIUM3, TRN_BF16, 128, 8192, 128);
    args.stationary = TRN_OPERAND_A;
    near(answer(&args).instructions, 2, 0, "4096 columns each");
    args.psum_format = TRN_BF16;
    near(answer(&args).instructions, 1, 0, "8192 columns");
    args = question(TRN_TRAINIUM3, TRN_BF16, 100000, 100000, 100000); /* blocks of PSUM */
    const double f32 = answer(&args).bytes;
    args.psum_format = TRN_BF16;
    near(answer(&args).bytes, 0.75 * f32, 0.01, "blocks of 512 x 1024 where there were 512 x 512");
}

/* What must hold for any mode, any option and any size. */
static void modes_are_bounded(void **state)
{
    (void)state;
    static const trn_matmul_cost_args kind[] = {
        { .generation = TRN_TRAINIUM1, .a_format = TRN_I8 },
        { .generation = TRN_TRAINIUM2, .a_format = TRN_F32, .fp32r = true },
        { .generation = TRN_TRAINIUM2, .a_format = TRN_F32, .is_a_onezero = true },
        { .generation = TRN_TRAINIUM2, .a_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16 },
        { .generation = TRN_TRAINIUM3, .a_format = TRN_F16, .sparse_m = 2, .sparse_n = 4 },
        { .generation = TRN_TRAINIUM3, .a_format = TRN_F4_E2M1, .b_format = TRN_F8_E5M2 },
        { .generation = TRN_TRAINIUM2, .a_format = TRN_BF16, .mode = TRN_MODE_TRANSPOSE },
        { .generation = TRN_TRAINIUM1, .a_format = TRN_BF16 },
    };
    uint64_t seed = 26;
    for (int round = 0; round < 3000; round++) {
        trn_matmul_cost_args args = kind[cases_below(&seed, (int)(sizeof kind / sizeof kind[0]))];
        const bool transpose = args.mode == TRN_MODE_TRANSPOSE;
        args.m = some_size(&seed);
        args.k = cases_one_in(&seed, 3) ? cases_below(&seed, 130) : some_size(&seed);
        args.n = transpose ? 0 : cases_one_in(&seed, 3) ? cases_below(&seed, 130) : some_size(&seed);
        args.error = &failure;
        const trn_core_cost plain = answer(&args);
        args.pack_tiles = true;
        const trn_core_cost packed = answer(&args);
        args.throttle = true;
        const trn_core_cost cold = answer(&args);
        assert_true(plain.utilisation >= 0 && plain.utilisation <= 1 && packed.utilisation <= 1);
        assert_true(plain.fraction_of_peak >= 0 && plain.fraction_of_peak <= plain.utilisation);
        assert_true(packed.tensor_cycles <= plain.tensor_cycles && packed.time_s <= plain.time_s);
        assert_true(packed.tensor_cycles * 16 >= plain.tensor_cycles);
        assert_true(cold.time_s >= packed.time_s && cold.time_s <= packed.time_s + 0.75e-6 * (1 + 1e-9));
        if (!transpose) assert_true(plain.time_s >= plain.flops / (plain.tensor_peak_tflops * 1e12));
        args.m += 1 + cases_below(&seed, 200);
        assert_true(answer(&args).time_s >= cold.time_s);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        trn_matmul_cost_args args;
        trn_status status;
        const char *text;
    } row[] = {
        { { .a_format = TRN_BF16, .m = -1, .n = 1, .k = 1 }, TRN_ESHAPE, "m is -1" },
        { { .a_format = TRN_BF16, .m = 1, .n = -2, .k = 1 }, TRN_ESHAPE, "n is -2" },
        { { .a_format = TRN_BF16, .m = 1, .n = 1, .k = INT64_MIN }, TRN_ESHAPE, "k is -9223372036854775808" },
        { { .m = 1, .n = 1, .k = 1 }, TRN_EFORMAT, "a_format" },
        { { .a_format = TRN_BF16, .b_format = (trn_format)99 }, TRN_EFORMAT, "b_format" },
        { { .a_format = TRN_BF16, .dst_format = (trn_format)99 }, TRN_EFORMAT, "dst_format" },
        { { .a_format = TRN_BF16, .generation = (trn_generation)7 }, TRN_EINVAL, "generation is 7" },
        { { .a_format = TRN_BF16, .mode = (trn_matmul_mode)9 }, TRN_EINVAL, "mode is 9" },
        { { .a_format = TRN_BF16, .generation = TRN_TRAINIUM3, .m = 1, .n = 1, .k = 64, .sparse_m = 4 },
          TRN_EINVAL,
          "sparse pattern 4:0 is not 4:16" },
        { { .a_format = TRN_BF16, .generation = TRN_TRAINIUM3, .m = 1, .n = 1, .k = 64, .sparse_n = 4 },
          TRN_EINVAL,
          "sparse pattern 0:4 is not 4:16" },
        { { .a_format = TRN_BF16, .stationary = (trn_operand)4 }, TRN_EINVAL, "stationary is 4" },
        { { .a_format = TRN_I8 }, TRN_EUNSUPPORTED, "int8" },
        { { .a_format = TRN_F6_E2M3 }, TRN_EUNSUPPORTED, "float6_e2m3fn" },
        { { .a_format = TRN_F8_E8M0 }, TRN_EUNSUPPORTED, "float8_e8m0fnu" },
        { { .a_format = TRN_F8_E4M3FN, .generation = TRN_TRAINIUM2 }, TRN_EUNSUPPORTED, "Trainium2" },
        { { .a_format = TRN_F4_E2M1, .generation = TRN_TRAINIUM1 }, TRN_EUNSUPPORTED, "Trainium1" },
        { { .a_format = TRN_F8_E3M4, .generation = TRN_TRAINIUM3 }, TRN_EUNSUPPORTED, "Trainium3" },
        { { .a_format = TRN_F32, .b_format = TRN_BF16 }, TRN_EFORMAT, "float32" },
        { { .a_format = TRN_BF16, .b_format = TRN_TF32 }, TRN_EFORMAT, "tfloat32" },
        { { .a_format = TRN_F8_E4M3, .b_format = TRN_F8_E4M3FN }, TRN_EFORMAT, "cannot meet" },
        { { .a_format = TRN_F8_E4M3FN, .b_format = TRN_F8_E4M3 }, TRN_EFORMAT, "cannot meet" },
        { { .a_format = TRN_F4_E2M1, .b_format = TRN_BF16 }, TRN_EFORMAT, "MX only" },
        { { .a_format = TRN_BF16, .mode = TRN_MODE_DOUBLE_ROW }, TRN_EFORMAT, "double_row" },
        { { .a_format = TRN_BF16, .mode = TRN_MODE_MX }, TRN_EFORMAT, "mx" },
        { { .a_format = TRN_F8_E4M3, .mode = TRN_MODE_MX, .generation = TRN_TRAINIUM2 }, TRN_EUNSUPPORTED, "mx" },
        { { .a_format = TRN_F8_E4M3, .mode = TRN_MODE_DOUBLE_ROW, .generation = TRN_TRAINIUM1 },
          TRN_EUNSUPPORTED,
          "double_row" },
        { { .a_format = TRN_I8, .b_format = TRN_BF16, .generation = TRN_TRAINIUM1 }, TRN_EFORMAT, "cannot meet" },
        { { .a_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16, .generation = TRN_TRAINIUM1 },
          TRN_EUNSUPPORTED,
          "sparse" },
        { { .a_format = TRN_F32, .sparse_m = 4, .sparse_n = 16 }, TRN_EFORMAT, "sparse" },
        { { .a_format = TRN_BF16, .sparse_m = 8, .sparse_n = 16 }, TRN_EINVAL, "8:16" },
        { { .a_format = TRN_BF16, .sparse_n = 16 }, TRN_EINVAL, "0:16" },
        { { .a_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16, .stationary = TRN_OPERAND_B }, TRN_EINVAL, "is a" },
        { { .a_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16, .mode = TRN_MODE_PLAIN }, TRN_EINVAL, "plain" },
        { { .a_format = TRN_BF16, .mode = TRN_MODE_TRANSPOSE, .k = 5, .n = 4 }, TRN_ESHAPE, "n is 4" },
        { { .a_format = TRN_BF16, .mode = TRN_MODE_TRANSPOSE, .accumulate = true }, TRN_EINVAL, "accumulate" },
        { { .a_format = TRN_BF16, .psum_format = TRN_F16 }, TRN_EFORMAT, "psum_format" },
        { { .a_format = TRN_BF16, .psum_format = TRN_BF16 }, TRN_EUNSUPPORTED, "psum_format" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_matmul_cost_args args = row[i].args;
        trn_core_cost cost, before;
        memset(&cost, 0x5a, sizeof cost);
        memset(&before, 0x5a, sizeof before);
        memset(&failure, 0, sizeof failure);
        args.error = &failure;
        const trn_status status = trn_matmul_cost(&args, &cost);
        if (status != row[i].status || failure.status != status || !strstr(failure.text, row[i].text))
            fail_msg("row %u: status %d, \"%s\"; expected %d with \"%s\"", i, (int)status, failure.text,
                     (int)row[i].status, row[i].text);
        assert_memory_equal(&cost, &before, sizeof cost); /* nothing is written on failure */
        args.error = NULL;
        assert_int_equal(trn_matmul_cost(&args, &cost), row[i].status);
    }
    assert_int_equal(trn_matmul_cost(NULL, NULL), TRN_EINVAL);
    assert_int_equal(trn_matmul_cost(&(trn_matmul_cost_args){ .a_format = TRN_BF16 }, NULL), TRN_EINVAL);
}

static void absurd_sizes(void **state)
{
    (void)state;
    const trn_core_cost cost = ask(TRN_TRAINIUM2, TRN_BF16, INT64_MAX, INT64_MAX, INT64_MAX);
    assert_true(isfinite(cost.time_s) && isfinite(cost.bytes) && cost.time_s > 1e30 && !cost.fits_hbm);
    assert_true(strlen(cost.text) < sizeof cost.text);
}

/* ---- systems ---- */

static trn_system_cost ask_system(const trn_matmul_cost_args *args)
{
    trn_system_cost cost;
    memset(&cost, 0x55, sizeof cost);
    if (trn_matmul_system_cost(args, &cost) != TRN_OK) fail_msg("%s", failure.text);
    return cost;
}

static void each_core_its_own(void **state)
{
    (void)state;
    static const double cores[] = { 2, 32, 32, 128, 128, 512, 512, 1152, 60000, 3200000 };
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)i);
        trn_matmul_cost_args args = question(TRN_GENERATION_DEFAULT, TRN_BF16, 2048, 2048, 2048);
        args.system = spec;
        args.split = TRN_SPLIT_PER_CORE;
        const trn_system_cost all = ask_system(&args);
        const trn_core_cost one = answer(&args);
        near(all.cores, cores[i], 0, spec->name);
        near(all.time_s, one.time_s, 0, "no communication");
        near(all.tflops, one.tflops * cores[i], 1e-12, "total");
        near(all.spec_tflops, trn_spec_tflops(spec, TRN_BF16, false), 1e-12, "spec");
        near(all.fraction_of_spec, one.fraction_of_spec, 1e-12, "share");
        near(all.cores_busy, cores[i], 0, "all at work");
    }
}

/* 8192^3 over the 128 cores of a trn2.48xlarge, by hand. Grids whose blocks are whole tiles all take the same TensorE
 * time, so the least traffic decides: the squarest grid, 8 x 16, with blocks of 1024 x 512. */
static void evenly_by_hand(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_GENERATION_DEFAULT, TRN_BF16, 8192, 8192, 8192);
    args.system = trn_system_spec_of(TRN_TRN2_48XLARGE);
    const trn_system_cost cost = ask_system(&args);
    near(cost.cores_m * cost.cores_n, 128, 0, "cores");
    assert_true((cost.core_m == 1024 && cost.core_n == 512) || (cost.core_m == 512 && cost.core_n == 1024));
    assert_int_equal(cost.core_k, 8192);
    near(cost.core.tensor_cycles, 262144, 0, "64 tiles of K x 8 of M x 512 columns");
    near(cost.time_s, (262144 + 32) / 2.4e9 + 1.3e-6, 1e-12, "time");
    near(cost.flops, 1099511627776.0, 0, "2 x 8192^3");
    near(cost.fraction_of_spec, 1099511627776.0 / ((262144 + 32) / 2.4e9 + 1.3e-6) / 10672e12, 1e-9, "of spec");
}

static void evenly_covers_everything(void **state)
{
    (void)state;
    uint64_t seed = 24;
    for (int round = 0; round < 200; round++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)cases_below(&seed, TRN_SYSTEM_COUNT));
        trn_matmul_cost_args args =
            question(TRN_GENERATION_DEFAULT, TRN_BF16, some_size(&seed), some_size(&seed), some_size(&seed));
        args.system = spec;
        const trn_system_cost cost = ask_system(&args);
        near(cost.cores_m * cost.cores_n, cost.cores, 0, "a grid of all cores");
        assert_true((double)cost.core_m * cost.cores_m >= (double)args.m);
        assert_true((double)cost.core_n * cost.cores_n >= (double)args.n);
        assert_true(cost.cores_busy <= cost.cores);
        near(cost.flops, 2.0 * (double)args.m * (double)args.n * (double)args.k, 0, "flops");
        assert_true(cost.tflops <= cost.core.tensor_peak_tflops * cost.cores);
        if (cost.time_s > 0) near(cost.tflops, cost.flops / cost.time_s / 1e12, 1e-12, "TFLOPS");

        /* No grid of one's own choosing is faster. */
        trn_matmul_cost_args slice = args;
        slice.n = args.n;
        slice.m = (args.m + (int64_t)cost.cores - 1) / (int64_t)cost.cores;
        assert_true(cost.time_s <= answer(&slice).time_s);
        slice.m = args.m;
        slice.n = (args.n + (int64_t)cost.cores - 1) / (int64_t)cost.cores;
        assert_true(cost.time_s <= answer(&slice).time_s);
    }
}

static void more_cores_than_work(void **state)
{
    (void)state;
    trn_matmul_cost_args args = question(TRN_GENERATION_DEFAULT, TRN_BF16, 1, 4096, 4096);
    args.system = trn_system_spec_of(TRN_TRN2_48XLARGE);
    const trn_system_cost cost = ask_system(&args);
    near(cost.cores_busy, 128, 0, "a row vector is shared along N");
    near(cost.cores_n, 128, 0, "the grid");
    args.n = 1;
    near(ask_system(&args).cores_busy, 1, 0, "one number has one core");
    args.n = 0;
    const trn_system_cost none = ask_system(&args);
    assert_true(none.time_s <= 0 && none.tflops <= 0 && none.cores_busy <= 0);
}

/* A trial: Trainium2 with twice its HBM bandwidth, through rows of one's own. */
static void another_machine(void **state)
{
    (void)state;
    trn_system_spec spec = *trn_system_spec_of(TRN_TRN2_48XLARGE);
    trn_server_spec server = *spec.server;
    trn_chip_spec chip = *server.chip;
    server.chip = &chip;
    spec.server = &server;
    trn_matmul_cost_args args = question(TRN_TRAINIUM2, TRN_BF16, 1, 8192, 8192);
    args.system = &spec;
    const trn_core_cost before = answer(&args);
    chip.hbm_bytes_per_s *= 2;
    const trn_core_cost after = answer(&args);
    near(after.hbm_s, before.hbm_s / 2, 1e-12, "HBM time");
    assert_int_equal(before.limit, TRN_LIMIT_HBM);
    assert_int_equal(after.limit, TRN_LIMIT_DMA);
}

static void systems_refused(void **state)
{
    (void)state;
    trn_system_cost cost, before;
    memset(&cost, 0x5a, sizeof cost);
    memset(&before, 0x5a, sizeof before);
    trn_matmul_cost_args args = question(TRN_GENERATION_DEFAULT, TRN_BF16, 64, 64, 64);
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_EINVAL);
    assert_non_null(strstr(failure.text, "system is null"));
    args.system = trn_system_spec_of(TRN_TRN1_32XLARGE);
    args.generation = TRN_TRAINIUM3;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_EINVAL);
    assert_non_null(strstr(failure.text, "trn1.32xlarge is made of Trainium1"));
    args.generation = TRN_GENERATION_DEFAULT;
    args.split = (trn_split)5;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_EINVAL);
    args.split = TRN_SPLIT_EVENLY;
    args.m = -4;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_ESHAPE);
    args.m = 1 << 20;
    args.k = 1 << 20;
    args.operands_in_sbuf = true;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_ELIMIT);
    args.split = TRN_SPLIT_PER_CORE;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_ELIMIT);
    args.a_format = TRN_F8_E4M3FN;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_EUNSUPPORTED);
    assert_int_equal(trn_matmul_system_cost(&args, NULL), TRN_EINVAL);
    assert_int_equal(trn_matmul_system_cost(NULL, &cost), TRN_EINVAL);
    assert_memory_equal(&cost, &before, sizeof cost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_instruction),
        cmocka_unit_test(instruction_counts),
        cmocka_unit_test(tensor_against_a_walk),
        cmocka_unit_test(load_stationary),
        cmocka_unit_test(utilisation),
        cmocka_unit_test(decode_on_trainium2),
        cmocka_unit_test(decode_on_the_others),
        cmocka_unit_test(large_square),
        cmocka_unit_test(near_the_peak),
        cmocka_unit_test(traffic_against_a_walk),
        cmocka_unit_test(monotone_and_bounded),
        cmocka_unit_test(transposing_changes_nothing),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(operands_in_sbuf),
        cmocka_unit_test(limits),
        cmocka_unit_test(modes),
        cmocka_unit_test(defaults),
        cmocka_unit_test(sparse_by_hand),
        cmocka_unit_test(f32_in_fewer_passes),
        cmocka_unit_test(int8_on_trainium1),
        cmocka_unit_test(transposes_against_a_walk),
        cmocka_unit_test(packs_by_hand),
        cmocka_unit_test(a_cold_tensor_engine),
        cmocka_unit_test(bf16_in_psum),
        cmocka_unit_test(modes_are_bounded),
        cmocka_unit_test(refused),
        cmocka_unit_test(absurd_sizes),
        cmocka_unit_test(each_core_its_own),
        cmocka_unit_test(evenly_by_hand),
        cmocka_unit_test(evenly_covers_everything),
        cmocka_unit_test(more_cores_than_work),
        cmocka_unit_test(another_machine),
        cmocka_unit_test(systems_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

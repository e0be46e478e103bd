/* tiles.c - the inputs: each answers one question, and its output depends on few fields.
 * SPDX-License-Identifier: MIT
 *
 * Most tiles are built from a large number B, its negative and a small number t. B + t is B again in every accumulator
 * of at most 53 bits, so t survives -B only where t was not yet added to B (or -B): whether the small term is in the
 * output says which numbers met first. Operands are powers of two of about the root of B and t, so that the same tile
 * works in every format down to E5M2, and no product has a second significant bit.
 * Columns with all signs turned are there to catch what trn_numerics does not know: adders that round toward one side.
 *
 * Outputs are normal numbers: reading PSUM through another engine cannot flush them.
 */
#include "probe.h"

#include <math.h>
#include <string.h>

/* ---- filling ---- */

static void put_a(const probe_tile *t, probe_inputs *in, int k, int slot, int m, double x)
{
    in->a[(k * probe_slots(t) + slot) * t->m + m] = (float)x;
}

static void put_b(const probe_tile *t, probe_inputs *in, int k, int slot, int n, double x)
{
    in->b[(k * probe_slots(t) + slot) * t->n + n] = (float)x;
}

/* Row k of the stationary operand: x in the first half of the columns, -x in the second. */
static void put_both_signs(const probe_tile *t, probe_inputs *in, int k, int slot, double x)
{
    for (int m = 0; m < t->m; m++) put_a(t, in, k, slot, m, m < t->m / 2 ? x : -x);
}

static void put_row_b(const probe_tile *t, probe_inputs *in, int k, int slot, double x)
{
    for (int n = 0; n < t->n; n++) put_b(t, in, k, slot, n, x);
}

#define ROOT_B 0x1p15  /* B = 2^30 */
#define ROOT_T 0x1p-14 /* t = 2^-28: 58 bits below B */

/* ---- width and rounding of an addition ---- */

/* Row 0 is B, another row adds 1.5 B 2^-j for j = 23..54, a third takes B away. An adder of b bits leaves all 1.5 units
 * for j < b - 1, then 2 or 1 (nearest even, toward zero), 1 or 0, and nothing. */
static void fill_bits(const probe_tile *t, probe_inputs *in)
{
    /* Rows 1 2: small, -B. Rows 3 4: -B, small; with two interleaved chains only this pair's small adds to B first. */
    static const struct {
        int small, minus;
    } rows[2] = { { 1, 2 }, { 4, 3 } };
    for (int m = 0; m < t->m; m++) {
        const int pair = m % 2, sixteenth = m / 2 % 2;
        const double sign = m < t->m / 2 ? 1 : -1;
        put_a(t, in, 0, 0, m, sign * ROOT_B);
        put_a(t, in, rows[pair].minus, 0, m, -sign * ROOT_B);
        put_a(t, in, rows[pair].small, 0, m, sign * ldexp(1.5, 5 - 16 * sixteenth));
    }
    put_row_b(t, in, 0, 0, ROOT_B);
    for (int pair = 0; pair < 2; pair++) {
        put_row_b(t, in, rows[pair].minus, 0, ROOT_B);
        for (int n = 0; n < t->n; n++) put_b(t, in, rows[pair].small, 0, n, ldexp(1, 2 - n));
    }
}

/* ---- chains, layout, merge order ---- */

/* One column each: B in row 0, -B in row `minus`, t in row `small`.
 * Columns 0-3: t is 16 rows below -B, in its chain whatever the interleaving: it survives if -B met B first, that is if
 *     row `minus` is in row 0's chain: 1 for one chain, 2 for at most two, 4 for at most four, 8 for at most eight.
 * Columns 4-7: the same for blocks: t is 4 rows below -B, in its block; rows 8, 16, 32, 64 leave row 0's block in turn.
 * Columns 8-11: three chains, of which pairwise merging adds the last two first: rows 0 2 3, then chains 0 2 3 of 4, 8
 *     and 16 blocks. */
static const struct {
    int minus, small;
} order_column[] = {
    { 1, 17 },  { 2, 18 },  { 4, 20 }, { 8, 24 },  { 8, 12 },  { 16, 20 },
    { 32, 36 }, { 64, 68 }, { 2, 3 },  { 64, 96 }, { 32, 48 }, { 16, 24 },
};
enum { ORDER_COLUMNS = sizeof order_column / sizeof order_column[0] };

static void fill_order(const probe_tile *t, probe_inputs *in)
{
    put_both_signs(t, in, 0, 0, ROOT_B);
    put_row_b(t, in, 0, 0, ROOT_B);
    for (int n = 0; n < ORDER_COLUMNS;
         n++) { /* no row is -B in one column and t in another, so rows keep one magnitude */
        put_both_signs(t, in, order_column[n].minus, 0, ROOT_B);
        put_b(t, in, order_column[n].minus, 0, n, -ROOT_B);
        put_both_signs(t, in, order_column[n].small, 0, ROOT_T);
        put_b(t, in, order_column[n].small, 0, n, ROOT_T);
    }
}

/* ---- products ---- */

/* (1 + 2^-7)(1 + 2^-7) and (1 + 2^-7)(1 + 3 2^-7) have 15 significant bits; rounded to bfloat16 they keep 8.
 * One product, so no order; eight-bit operands, so no format and no split changes them. */
static void fill_product(const probe_tile *t, probe_inputs *in)
{
    put_both_signs(t, in, 0, 0, 1 + 0x1p-7);
    put_b(t, in, 0, 0, 0, 1 + 0x1p-7);
    put_b(t, in, 0, 0, 1, 1 + 3 * 0x1p-7);
}

/* ---- below the normal range ---- */

/* A subnormal of the operand's own format times a large number is a normal product, or 0 if the operand was flushed.
 * [0, 0] has it in the stationary operand, [1, 1] in the moving one. */
static void fill_subnormal_input(const probe_tile *t, probe_inputs *in)
{
    static const struct {
        trn_format format;
        double subnormal, large;
    } example[] = {
        { TRN_BF16, 0x1p-130, 0x1p20 },  { TRN_F32, 0x1p-130, 0x1p20 },  { TRN_F16, 0x1p-24, 0x1p10 },
        { TRN_F8_E5M2, 0x1p-16, 0x1p8 }, { TRN_F8_E4M3, 0x1p-9, 0x1p5 },
    };
    for (size_t i = 0; i < sizeof example / sizeof example[0]; i++) {
        if (example[i].format != t->format) continue;
        put_a(t, in, 0, 0, 0, example[i].subnormal);
        put_a(t, in, 0, 0, 1, example[i].large);
        put_b(t, in, 0, 0, 0, example[i].large);
        put_b(t, in, 0, 0, 1, example[i].subnormal);
    }
}

/* 2^-120 + 2^-130: the sum is exact and normal, the second product is not normal. In one chain only the product can be
 * flushed; alone in its chain 2^-130 is a sum too. Rows 0 1 share a chain if blocked, rows 0 16 if interleaved. */
static void fill_subnormal_product(const probe_tile *t, probe_inputs *in)
{
    put_both_signs(t, in, 0, 0, 0x1p-60);
    put_both_signs(t, in, 1, 0, 0x1p-65);
    put_both_signs(t, in, 16, 0, 0x1p-65);
    put_row_b(t, in, 0, 0, 0x1p-60);
    put_b(t, in, 1, 0, 0, 0x1p-65);
    put_b(t, in, 16, 0, 1, 0x1p-65);
}

/* Two instructions into one PSUM tile: 1.5 2^-126 - 2^-126 is a subnormal sum of normal products; adding 2^-126 makes
 * the output normal. Both products are exact in every mode, so only the flushing of sums can matter. */
static void fill_subnormal_sum(const probe_tile *t, probe_inputs *in)
{
    static const double x[4] = { 1.5 * 0x1p-63, -0x1p-63, 0x1p-63, 0 };
    for (int k = 0; k < 4; k++) {
        put_both_signs(t, in, k, 0, x[k]);
        put_row_b(t, in, k, 0, k < 3 ? 0x1p-63 : 0);
    }
}

/* The same sum in rows 0 and 1 of one instruction, made normal by row 32: an adder of blocks that reads PSUM as it
 * reads operands flushes what an instruction left, but not what a block left. */
static void fill_subnormal_partial(const probe_tile *t, probe_inputs *in)
{
    static const struct {
        int row;
        double x;
    } term[3] = { { 0, 1.5 * 0x1p-63 }, { 1, -0x1p-63 }, { 32, 0x1p-63 } };
    for (int i = 0; i < 3; i++) {
        put_both_signs(t, in, term[i].row, 0, term[i].x);
        put_row_b(t, in, term[i].row, 0, 0x1p-63);
    }
}

/* ---- 32-bit operands ---- */

/* 1 + 3/4, 1 + 3/2 and 1 + 1/2 units of TF32: up, to even, to even; or cut. The last column shows the same difference
 * when products are rounded to bfloat16: rounded up it becomes a tie, and goes up again. */
static void fill_tf32(const probe_tile *t, probe_inputs *in)
{
    put_both_signs(t, in, 0, 0, 1);
    put_b(t, in, 0, 0, 0, 1 + 0.75 * 0x1p-10);
    put_b(t, in, 0, 0, 1, 1 + 1.5 * 0x1p-10);
    put_b(t, in, 0, 0, 2, 1 + 0.5 * 0x1p-10);
    put_b(t, in, 0, 0, 3, 1 + 0x1p-7 + 0x1p-8 - 0x1p-12);
}

/* Columns 0 1: one product with 1: all 24 bits arrive (native, split) or TF32's 11 do; column 1 shows it after
 * bfloat16, column 5 in the 13 bits that are all some adders of blocks keep.
 * Columns 2-4: 2^60, -2^60, 1 + 2^-20 in one chain: native adds the last row last; split adds its low half 2^-20 in an
 * earlier pass, and 2^60 swallows it. Rows 0 16 32 are one chain if interleaved, 0 1 2 if blocked; 0 3 4 is between. */
static void fill_fp32(const probe_tile *t, probe_inputs *in)
{
    static const struct {
        int minus, last;
    } rows[] = { { 16, 32 }, { 1, 2 }, { 3, 4 } };
    put_both_signs(t, in, 0, 0, 0x1p30);
    for (int i = 0; i < 3; i++) {
        put_both_signs(t, in, rows[i].minus, 0, 0x1p30);
        put_both_signs(t, in, rows[i].last, 0, 1);
        put_b(t, in, 0, 0, 2 + i, 0x1p30);
        put_b(t, in, rows[i].minus, 0, 2 + i, -0x1p30);
        put_b(t, in, rows[i].last, 0, 2 + i, 1 + 0x1p-20);
    }
    put_b(t, in, 32, 0, 0, 1 + 0x1p-20);
    put_b(t, in, 32, 0, 1, 1 + 0x1p-8 + 0x1p-20);
    put_b(t, in, 32, 0, 5, 1 + 0.75 * 0x1p-10);
}

/* ---- 8-bit operands, pairs, quads ---- */

/* The code of 1.0 in the format's own bias, squared: any other bias b scales it by 4^(own - b). */
static void fill_bias(const probe_tile *t, probe_inputs *in)
{
    put_a(t, in, 0, 0, 0, 1);
    put_b(t, in, 0, 0, 0, 1);
}

/* Row 0 is t, a later row of its chain the pair (B, -B): summed first, the pair is 0 and t stays; one after the other,
 * B swallows t. Sequential and exact pair sums are the same: a product and a fused multiply-add round once. */
static void fill_pair(const probe_tile *t, probe_inputs *in)
{
    static const int row[2] = { 1, 16 };
    put_both_signs(t, in, 0, 0, ROOT_T);
    put_row_b(t, in, 0, 0, ROOT_T);
    for (int i = 0; i < 2; i++)
        for (int slot = 0; slot < 2; slot++) {
            put_both_signs(t, in, row[i], slot, slot ? -ROOT_B : ROOT_B);
            put_b(t, in, row[i], slot, i, ROOT_B);
        }
}

/* One row's quad: (B, t, -B, 0), (t, 0, B, -B), (B, -B, t, 0) with B = 2^15, t = 2^-14. In sequence only the last keeps
 * t, in pairs the last two, an exact sum all three. */
static void fill_quad(const probe_tile *t, probe_inputs *in)
{
    static const double quad[3][4] = { { 0x1p15, 0x1p-14, -0x1p15, 0 },
                                       { 0x1p-14, 0, 0x1p15, -0x1p15 },
                                       { 0x1p15, -0x1p15, 0x1p-14, 0 } };
    for (int slot = 0; slot < 4; slot++) {
        put_both_signs(t, in, 0, slot, 1);
        for (int n = 0; n < 3; n++) put_b(t, in, 0, slot, n, quad[n][slot]);
    }
}

/* ---- PSUM ---- */

/* Two instructions: 1, then 3/4, 1/2 and 1/4 units of float32 on top. No field but the adder of blocks: PSUM adds
 * in float32, nearest even, or this tile says so. */
static void fill_psum_add(const probe_tile *t, probe_inputs *in)
{
    put_both_signs(t, in, 0, 0, 1);
    put_row_b(t, in, 0, 0, 1);
    put_both_signs(t, in, 1, 0, 0x1p-24);
    put_b(t, in, 1, 0, 0, 1.5);
    put_b(t, in, 1, 0, 1, 1);
    put_b(t, in, 1, 0, 2, 0.5);
}

/* Three instructions, in units of bfloat16 (2^-7). Row 0 of the output: 1 + 3/8 + 3/8 is 1 + 1 unit if float32 holds
 * the sum, 1 if bfloat16 does. Rows 1-6: 1 + 2^-j never goes up, or, stochastically, once in 2^j; n random bits do
 * not see 2^-j for j > n. The 512 columns are all the same: they are the sample. No sum has more than 14 bits. */
static void fill_psum_bf16(const probe_tile *t, probe_inputs *in)
{
    for (int k = 0; k < 3; k++) put_row_b(t, in, k, 0, 1);
    for (int m = 0; m < t->m; m++) {
        put_a(t, in, 0, 0, m, 1);
        put_a(t, in, 1, 0, m, m ? ldexp(0x1p-7, -m) : 0.375 * 0x1p-7);
        put_a(t, in, 2, 0, m, m ? 0 : 0.375 * 0x1p-7);
    }
}

/* 128 rows of (-128)^2 are 2^21; 1024 times that is 2^31, one more than int32 holds. */
static void fill_int32(const probe_tile *t, probe_inputs *in)
{
    for (int k = 0; k < t->k; k++) {
        put_a(t, in, k, 0, 0, -128);
        put_b(t, in, k, 0, 0, -128);
    }
}

/* ---- the table ---- */

#define ADDER PROBE_BIT(PROBE_ACCUMULATOR)
#define WIDTH (ADDER | PROBE_BIT(PROBE_BITS))
#define ROWS (PROBE_BIT(PROBE_CHAINS) | PROBE_BIT(PROBE_LAYOUT))
#define ORDER (WIDTH | ROWS | PROBE_BIT(PROBE_MERGE))
#define BIAS PROBE_BIT(PROBE_BIAS)
#define FLUSH_IN (ADDER | PROBE_BIT(PROBE_FLUSH_INPUTS))
#define FLUSH_SUM (FLUSH_IN | PROBE_BIT(PROBE_FLUSH_SUMS)) /* adders of blocks read PSUM as an input */
#define FLUSH_PRODUCT (ADDER | ROWS | PROBE_BIT(PROBE_FLUSH_PRODUCTS) | PROBE_BIT(PROBE_FLUSH_SUMS))
#define FP32 (ORDER | PROBE_BIT(PROBE_PRODUCT) | PROBE_BIT(PROBE_TF32) | PROBE_BIT(PROBE_FP32))
#define TF32 (ADDER | PROBE_BIT(PROBE_TF32) | PROBE_BIT(PROBE_PRODUCT))
#define PSUM (PROBE_BIT(PROBE_PSUM) | PROBE_BIT(PROBE_PSUM_ROUNDING) | PROBE_BIT(PROBE_SR_BITS))
enum { NEWER = PROBE_TRN2 | PROBE_TRN3 };

const probe_tile probe_tiles[] = {
    { "bits_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 5, 8, 16, 0, 0, PROBE_ANY, WIDTH | ROWS, fill_bits,
      "how wide the adder is and how it rounds" },
    { "bits_f32", "float32", TRN_F32, PROBE_PLAIN, 5, 8, 16, 0, 0, PROBE_ANY, WIDTH | ROWS, fill_bits,
      "how wide the adder is and how it rounds" },
    { "bits_f8", "float8", TRN_F8_E5M2, PROBE_PLAIN, 5, 8, 16, 0, 0, PROBE_ANY, WIDTH | ROWS | BIAS, fill_bits,
      "how wide the adder is and how it rounds" },
    { "order_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 128, 2, ORDER_COLUMNS, 0, 0, PROBE_ANY, ORDER, fill_order,
      "which rows form a chain, and in which order chains merge" },
    { "order_f32", "float32", TRN_F32, PROBE_PLAIN, 128, 2, ORDER_COLUMNS, 0, 0, PROBE_ANY, ORDER, fill_order,
      "which rows form a chain, and in which order chains merge" },
    { "order_f8", "float8", TRN_F8_E5M2, PROBE_PLAIN, 128, 2, ORDER_COLUMNS, 0, 0, PROBE_ANY, ORDER | BIAS, fill_order,
      "which rows form a chain, and in which order chains merge" },
    { "order_pairs", "float8 double_row", TRN_F8_E5M2, PROBE_DOUBLE_ROW, 128, 2, ORDER_COLUMNS, 0, 0, NEWER,
      ORDER | BIAS, fill_order, "which rows form a chain, and in which order chains merge" },
    { "order_mx", "mx", TRN_F8_E5M2, PROBE_MX, 128, 2, ORDER_COLUMNS, 0, 0, PROBE_TRN3, ORDER, fill_order,
      "which rows form a chain, and in which order chains merge" },
    { "product_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, ADDER | PROBE_BIT(PROBE_PRODUCT),
      fill_product, "are products rounded before they are added" },
    { "product_f16", "float16", TRN_F16, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, ADDER | PROBE_BIT(PROBE_PRODUCT),
      fill_product, "are products rounded before they are added" },
    { "product_f32", "float32", TRN_F32, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, ADDER | PROBE_BIT(PROBE_PRODUCT),
      fill_product, "are products rounded before they are added" },
    { "subnormal_input_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, FLUSH_IN,
      fill_subnormal_input, "do subnormal operands count" },
    { "subnormal_input_f16", "float16", TRN_F16, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, FLUSH_IN, fill_subnormal_input,
      "do subnormal operands count" },
    { "subnormal_input_f32", "float32", TRN_F32, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, FLUSH_IN, fill_subnormal_input,
      "do subnormal operands count" },
    { "subnormal_input_e5m2", "float8", TRN_F8_E5M2, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, FLUSH_IN | BIAS,
      fill_subnormal_input, "do subnormal operands count" },
    { "subnormal_input_e4m3", "float8", TRN_F8_E4M3, PROBE_PLAIN, 1, 2, 2, 0, 0, PROBE_ANY, FLUSH_IN | BIAS,
      fill_subnormal_input, "do subnormal operands count" },
    { "subnormal_product_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 17, 2, 2, 0, 0, PROBE_ANY, FLUSH_PRODUCT,
      fill_subnormal_product, "do products below 2^-126 count" },
    { "subnormal_product_f32", "float32", TRN_F32, PROBE_PLAIN, 17, 2, 2, 0, 0, PROBE_ANY, FLUSH_PRODUCT,
      fill_subnormal_product, "do products below 2^-126 count" },
    { "subnormal_sum_bf16", "bfloat16", TRN_BF16, PROBE_ROWS, 4, 2, 1, 2, 1, PROBE_ANY, FLUSH_SUM, fill_subnormal_sum,
      "do sums below 2^-126 count" },
    { "subnormal_sum_f32", "float32", TRN_F32, PROBE_ROWS, 4, 2, 1, 2, 1, PROBE_ANY, FLUSH_SUM, fill_subnormal_sum,
      "do sums below 2^-126 count" },
    { "subnormal_partial_bf16", "bfloat16", TRN_BF16, PROBE_PLAIN, 33, 2, 1, 0, 0, PROBE_ANY,
      ADDER | ROWS | PROBE_BIT(PROBE_FLUSH_SUMS), fill_subnormal_partial,
      "do sums below 2^-126 count within one instruction" },
    { "tf32_input", "tfloat32", TRN_TF32, PROBE_PLAIN, 1, 2, 4, 0, 0, PROBE_ANY, TF32, fill_tf32,
      "are the low 13 bits of tfloat32 rounded or cut" },
    { "fp32_mode", "float32", TRN_F32, PROBE_PLAIN, 33, 2, 6, 0, 0, PROBE_ANY, FP32, fill_fp32,
      "float32 operands: whole, in two halves, or as tfloat32" },
    { "bias_e5m2", "float8", TRN_F8_E5M2, PROBE_PLAIN, 1, 1, 1, 0, 0, PROBE_ANY, BIAS, fill_bias,
      "the exponent bias of float8_e5m2" },
    { "bias_e4m3", "float8", TRN_F8_E4M3, PROBE_PLAIN, 1, 1, 1, 0, 0, PROBE_ANY, BIAS, fill_bias,
      "the exponent bias of float8_e4m3" },
    { "pair", "float8 double_row", TRN_F8_E5M2, PROBE_DOUBLE_ROW, 17, 2, 2, 0, 0, NEWER, ADDER | BIAS, fill_pair,
      "is a pair summed before it enters the chain" },
    { "quad", "mx", TRN_F8_E5M2, PROBE_MX, 32, 2, 3, 0, 0, PROBE_TRN3, ADDER | PROBE_BIT(PROBE_GROUP), fill_quad,
      "in which order the four products of an MX row are added" },
    { "psum_add", "bfloat16", TRN_BF16, PROBE_ROWS, 2, 2, 3, 1, 1, PROBE_ANY, ADDER, fill_psum_add,
      "does PSUM add in float32, nearest even" },
    { "psum_bf16", "bfloat16 PSUM", TRN_BF16, PROBE_PSUM_BF16, 3, 7, 512, 1, 1, PROBE_TRN3, PSUM, fill_psum_bf16,
      "what a PSUM tile declared bfloat16 holds, and how it rounds" },
    { "int32_overflow", "int8", TRN_I8, PROBE_ROWS, 128, 1, 1, 128, 1024, PROBE_TRN1, PROBE_BIT(PROBE_INT32),
      fill_int32, "does an int32 sum wrap or saturate" },
};
const int probe_tile_count = sizeof probe_tiles / sizeof probe_tiles[0];

/* ---- sizes, bytes ---- */

int probe_slots(const probe_tile *tile) { return tile->mode == PROBE_MX ? 4 : tile->mode == PROBE_DOUBLE_ROW ? 2 : 1; }
int probe_outputs(const probe_tile *tile) { return tile->m * tile->n; }

int probe_generation_bit(trn_generation generation)
{
    return generation == TRN_TRAINIUM1 ? PROBE_TRN1 : generation == TRN_TRAINIUM3 ? PROBE_TRN3 : PROBE_TRN2;
}

/* A tfloat32 container keeps its low bits: what becomes of them is a question. */
static uint32_t code_of(trn_format format, float x)
{
    uint32_t word;
    if (format == TRN_I8) return (uint8_t)(int8_t)x;
    if (format != TRN_F32 && format != TRN_TF32)
        return trn_encode(format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    memcpy(&word, &x, sizeof word);
    return word;
}

size_t probe_operand(const probe_tile *t, bool moving, unsigned char *bytes)
{
    static probe_inputs in;
    const int slots = probe_slots(t), lanes = moving ? t->n : t->m, size = trn_format_bits(t->format) / 8;
    memset(&in, 0, sizeof in);
    t->fill(t, &in);
    for (int k = 0; k < t->k; k++)
        for (int slot = 0; slot < slots; slot++)
            for (int lane = 0; lane < lanes; lane++) {
                const uint32_t code = code_of(t->format, (moving ? in.b : in.a)[(k * slots + slot) * lanes + lane]);
                const int at =
                    t->mode == PROBE_MX ? (k * lanes + lane) * slots + slot : (k * slots + slot) * lanes + lane;
                memcpy(bytes + at * size, &code, (size_t)size); /* little endian */
            }
    return (size_t)(t->k * slots * lanes * size);
}

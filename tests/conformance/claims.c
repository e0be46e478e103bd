/* claims.c - what has been concluded from prints of devices, tried with each hypothesis about the array.
 * SPDX-License-Identifier: MIT
 *
 * Claim A: BF16 products are rounded to BF16, hence results do not depend on the tiles of K (nki-samples PR 105). The
 * device's prints follow from the cast of the output alone: partial sums differ, casts of them do not, with rounded
 * products or without.
 *
 * Claim B: splitting operands in high and low parts cannot help, because products are rounded (trnsci, 2026-04-30: a
 * DFT of 64 points, 1.5e-3 plain and 1.7e-3 split on both chips). Rounded products would let it help by 1.6; what shows
 * no gain at all is low parts that are lost before they are multiplied.
 */
#include "conformance.h"
#include "normal.h"
#include "published/devices.h"

/* ---- claim A ---- */

enum { SIDE = 512, EVERY = 3 };

typedef struct tiles {
    int64_t differ, after_cast;
    double largest;
    bool good;
} tiles;

static bool multiply(float *out, const trn_tensor *a, const trn_tensor *b, const char *preset, int k_tile)
{
    trn_numerics n;
    trn_matmul_args args = {
        .dst = trn_tensor_2d(TRN_F32, out, SIDE, SIDE), .a = trn_tensor_transposed(*a), .b = *b, .numerics = &n
    };
    if (trn_numerics_parse(&n, preset) != TRN_OK) return false;
    n.k_tile = k_tile;
    return trn_matmul(&args) == TRN_OK;
}

static tiles compare_tiles(trn_format format, const char *preset)
{
    static float out[2][SIDE * SIDE];
    tiles t = { 0, 0, 0, true };
    trn_tensor a = ktile_operand(format, SIDE, SIDE, linspace_numpy),
               b = ktile_operand(format, SIDE, SIDE, linspace_numpy);
    for (int i = 0; i < 2; i++) t.good = t.good && multiply(out[i], &a, &b, preset, i ? 64 : 128);
    for (int r = 0; r < SIDE; r += EVERY)
        for (int c = 0; c < SIDE; c += EVERY) {
            const float x = out[0][r * SIDE + c], y = out[1][r * SIDE + c];
            t.differ += x != y;
            t.after_cast += trn_bf16_from_f32(x) != trn_bf16_from_f32(y);
            t.largest = fmax(t.largest, fabs((double)x - (double)y));
        }
    free(a.data);
    free(b.data);
    return t;
}

typedef enum claim_a { DIFFER, LARGEST, AFTER_CAST } claim_a;

/* .about the numerics, .of the format, .at what is asked. */
static void tiles_of_k(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const tiles t = compare_tiles((trn_format)v->of, v->about);
    const double part[] = { (double)t.differ, t.largest, (double)t.after_cast };
    (void)o;
    if (!t.good)
        cf_fail(a, "trn_matmul refuses");
    else
        a->got = part[v->at];
    a->cases = ((SIDE + EVERY - 1) / EVERY) * ((SIDE + EVERY - 1) / EVERY);
}

/* ---- claim B ---- */

enum { POINTS = 64, SIGNALS = 512 };

typedef struct dft {
    double matrix[2][POINTS * POINTS]; /* cosines, sines */
    float signal[2][POINTS * SIGNALS]; /* real, imaginary */
} dft;

/* How a complex product is made of real ones. */
typedef struct way {
    const char *numerics;
    bool split, lost; /* high and low parts; the low ones become zero before they are multiplied */
    trn_format out;   /* of each real product, and of the result; sums between them are binary32 */
} way;

static float rounded(float x, trn_format format)
{
    return format == TRN_F32 ? x : trn_bf16_to_f32(trn_bf16_from_f32(x));
}

/* High and low part: two BF16 numbers whose sum is nearly x. */
static void split(const float *x, size_t n, uint16_t *high, uint16_t *low)
{
    for (size_t i = 0; i < n; i++) {
        high[i] = trn_bf16_from_f32(x[i]);
        const float rest = x[i] - trn_bf16_to_f32(high[i]);
        low[i] = trn_bf16_from_f32(rest);
    }
}

/* sum += sign * a b, [POINTS, SIGNALS], one product of the engine. */
static bool add_product(float *sum, uint16_t *a, uint16_t *b, float sign, const way *w)
{
    static uint32_t out[POINTS * SIGNALS];
    trn_numerics n;
    trn_matmul_args args = { .dst = trn_tensor_2d(w->out, out, POINTS, SIGNALS),
                             .a = trn_tensor_2d(TRN_BF16, a, POINTS, POINTS),
                             .b = trn_tensor_2d(TRN_BF16, b, POINTS, SIGNALS),
                             .numerics = &n };
    if (trn_numerics_parse(&n, w->numerics) != TRN_OK || trn_matmul(&args) != TRN_OK) return false;
    for (size_t i = 0; i < POINTS * SIGNALS; i++) {
        float product;
        if (w->out == TRN_F32)
            memcpy(&product, &out[i], sizeof product);
        else
            product = trn_bf16_to_f32(((const uint16_t *)(const void *)out)[i]);
        sum[i] += sign * product;
    }
    return true;
}

/* One real product, or the three of its parts. */
static bool add_real_product(float *sum, const float *a, const float *b, float sign, const way *w)
{
    static uint16_t part[4][POINTS * SIGNALS]; /* high and low of a, of b */
    split(a, POINTS * POINTS, part[0], part[1]);
    split(b, POINTS * SIGNALS, part[2], part[3]);
    bool good = add_product(sum, part[0], part[2], sign, w);
    if (!w->split || w->lost) return good;
    good = good && add_product(sum, part[0], part[3], sign, w);
    return good && add_product(sum, part[1], part[2], sign, w);
}

static void make_dft(dft *d)
{
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < POINTS; k++) {
            const double angle = 6.283185307179586 * (double)(i * k % POINTS) / POINTS;
            d->matrix[0][i * POINTS + k] = cos(angle);
            d->matrix[1][i * POINTS + k] = -sin(angle);
        }
    cf_normal(d->signal[0], POINTS * SIGNALS, 17);
    cf_normal(d->signal[1], POINTS * SIGNALS, 18);
}

static void exact_dft(const dft *d, double *real, double *imaginary)
{
    for (int i = 0; i < POINTS; i++)
        for (int s = 0; s < SIGNALS; s++) {
            double re = 0, im = 0;
            for (int k = 0; k < POINTS; k++) {
                const double c = d->matrix[0][i * POINTS + k], m = d->matrix[1][i * POINTS + k];
                const double x = (double)d->signal[0][k * SIGNALS + s], y = (double)d->signal[1][k * SIGNALS + s];
                re += c * x - m * y;
                im += c * y + m * x;
            }
            real[i * SIGNALS + s] = re;
            imaginary[i * SIGNALS + s] = im;
        }
}

/* ||ours - exact|| / ||exact|| of all signals. */
static void dft_error(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static dft d;
    static double exact[2][POINTS * SIGNALS];
    static float matrix[2][POINTS * POINTS], sum[2][POINTS * SIGNALS];
    static bool made;
    const way *w = v->about;
    double off = 0, size = 0;
    (void)o;
    if (!made) {
        make_dft(&d);
        exact_dft(&d, exact[0], exact[1]);
        for (int m = 0; m < 2; m++)
            for (int i = 0; i < POINTS * POINTS; i++) matrix[m][i] = (float)d.matrix[m][i];
        made = true;
    }
    memset(sum, 0, sizeof sum);
    const bool good = add_real_product(sum[0], matrix[0], d.signal[0], 1, w) &&
                      add_real_product(sum[0], matrix[1], d.signal[1], -1, w) &&
                      add_real_product(sum[1], matrix[0], d.signal[1], 1, w) &&
                      add_real_product(sum[1], matrix[1], d.signal[0], 1, w);
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < POINTS * SIGNALS; i++) {
            sum[m][i] = rounded(sum[m][i], w->out);
            off += ((double)sum[m][i] - exact[m][i]) * ((double)sum[m][i] - exact[m][i]);
            size += exact[m][i] * exact[m][i];
        }
    if (!good)
        cf_fail(a, "trn_matmul refuses");
    else
        a->got = sqrt(off / size);
    a->cases = 2 * POINTS * SIGNALS;
}

/* ---- the vectors ---- */

static const way plain = { "", false, false, TRN_F32 }, parts = { "", true, false, TRN_F32 },
                 rounded_plain = { "product=bf16", false, false, TRN_F32 },
                 rounded_parts = { "product=bf16", true, false, TRN_F32 }, cast_plain = { "", false, false, TRN_BF16 },
                 cast_parts = { "", true, false, TRN_BF16 }, lost_parts = { "", true, true, TRN_F32 };

static const char tiling[] = "nki-samples PR 105: inputs as published, re-computed",
                  ozaki[] = "trnsci, 2026-04-30: N = 64 DFT, re-computed on Gaussian signals";

static const cf_vector vectors[] = {
    { .id = "claim.tiles.bf16.differ",
      .what = "BF16 in, FP32 out: sampled sums that depend on the tiles of K",
      CF_EXACTLY(8655),
      .kind = CF_CALCULATED,
      .source = tiling,
      .test = tiles_of_k,
      .about = "single_chain",
      .of = TRN_BF16,
      .at = DIFFER },
    { .id = "claim.tiles.bf16.largest",
      .what = "by how much at most",
      CF_ABOUT(3.1e-5, 0.05e-5),
      .kind = CF_CALCULATED,
      .source = tiling,
      .test = tiles_of_k,
      .about = "single_chain",
      .of = TRN_BF16,
      .at = LARGEST },
    { .id = "claim.tiles.bf16.after_cast",
      .what = "sums that still do once they are cast to BF16",
      CF_EXACTLY(0),
      .kind = CF_MEASURED,
      .source = tiling,
      .test = tiles_of_k,
      .about = "single_chain",
      .of = TRN_BF16,
      .at = AFTER_CAST },
    { .id = "claim.tiles.bf16.after_cast.default",
      .what = "the same with four chains, the default",
      CF_EXACTLY(0),
      .kind = CF_MEASURED,
      .source = tiling,
      .test = tiles_of_k,
      .about = "",
      .of = TRN_BF16,
      .at = AFTER_CAST },
    { .id = "claim.tiles.bf16.after_cast.rounded_products",
      .what = "the same with products rounded to BF16",
      CF_EXACTLY(0),
      .kind = CF_MEASURED,
      .source = tiling,
      .test = tiles_of_k,
      .about = "single_chain,product=bf16",
      .of = TRN_BF16,
      .at = AFTER_CAST },
    { .id = "claim.split.plain",
      .what = "DFT in BF16: relative error",
      CF_ABOUT(1.99e-3, 0.1e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &plain },
    { .id = "claim.split.parts",
      .what = "operands in high and low parts, exact products",
      CF_ABOUT(3.3e-6, 0.3e-6),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &parts },
    { .id = "claim.split.rounded.plain",
      .what = "products rounded to BF16",
      CF_ABOUT(2.46e-3, 0.12e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &rounded_plain },
    { .id = "claim.split.rounded.parts",
      .what = "products rounded to BF16, parts: it would have helped",
      CF_ABOUT(1.52e-3, 0.1e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &rounded_parts },
    { .id = "claim.split.cast.plain",
      .what = "results cast to BF16",
      CF_ABOUT(3.1e-3, 0.15e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &cast_plain },
    { .id = "claim.split.cast.parts",
      .what = "results cast to BF16, parts",
      CF_ABOUT(2.4e-3, 0.15e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &cast_parts },
    { .id = "claim.split.lost.parts",
      .what = "low parts lost before they are multiplied: no gain, as reported",
      CF_ABOUT(1.97e-3, 0.1e-3),
      .kind = CF_CALCULATED,
      .source = ozaki,
      .test = dft_error,
      .about = &lost_parts },
};

void cf_fill_claims(cf_list *list) { cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]); }

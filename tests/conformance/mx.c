/* mx.c - block scaling: scales as pages have them, signal to quantisation noise as published.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "normal.h"
#include "trnmath/trn_mx.h"

/* The scale's exponent for blocks whose largest magnitude is 1; .of the format, .at the rule. */
static void scale_of_one(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = (double)trn_mx_scale_code((trn_format)v->of, (trn_mx_scale)v->at, 1.0f) - 127;
}

/* ---- noise ---- */

/* Relative errors of significands that are uniform in an octave, where all of them are normal: .of the format. The
 * bound takes errors to be independent of significands, which costs 0.11 dB with one mantissa bit and a quarter of
 * that with each further one. */
static void ceiling(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { STEPS = 1 << 16 };
    double squares = 0;
    (void)o;
    for (int i = 0; i < STEPS; i++) {
        const float x = (float)(1 + (i + 0.5) / STEPS);
        const uint32_t code = trn_encode((trn_format)v->of, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        const double off = (double)trn_decode((trn_format)v->of, code) / (double)x - 1;
        squares += off * off / STEPS;
    }
    a->got = -10 * log10(squares);
    a->cases = STEPS;
}

/* Gaussian values there and back: .of the elements' format, .at the rule. */
static void gaussian(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { VALUES = 1 << 22 };
    static float x[VALUES], back[VALUES];
    static uint8_t code[VALUES], scale[VALUES / TRN_MX_BLOCK];
    double signal = 0, noise = 0;
    (void)o;
    cf_normal(x, VALUES, 3);
    const trn_mx_quantize_args there = { .dst = trn_tensor_1d((trn_format)v->of, code, VALUES),
                                         .dst_scale = trn_tensor_1d(TRN_F8_E8M0, scale, VALUES / TRN_MX_BLOCK),
                                         .src = trn_tensor_1d(TRN_F32, x, VALUES),
                                         .scale = (trn_mx_scale)v->at };
    const trn_mx_dequantize_args again = { .dst = trn_tensor_1d(TRN_F32, back, VALUES),
                                           .src = there.dst,
                                           .src_scale = there.dst_scale };
    if (trn_mx_quantize(&there) != TRN_OK || trn_mx_dequantize(&again) != TRN_OK) {
        cf_fail(a, "trn_mx_quantize or trn_mx_dequantize refuses");
        return;
    }
    for (int i = 0; i < VALUES; i++) {
        const double off = (double)back[i] - (double)x[i];
        signal += (double)x[i] * (double)x[i];
        noise += off * off;
    }
    a->got = 10 * log10(signal / noise);
    a->cases = VALUES;
}

/* ---- the vectors ---- */

static const char page[] = "NKI, quantize_mx: X = 2^(floor(log2 amax) - (emax - 1))", ocp[] = "OCP MX 1.0, section 6.3",
                  bound[] = "INT v.s. FP, arXiv 2510.25602: bound of a float with M mantissa bits, 13.80 + 6.02 M dB",
                  drawn[] = "independent draws of Gaussian blocks; the paper's rule is round-up";

static const cf_vector vectors[] = {
    { .id = "mx.scale.neuron.e4m3fn",
      .what = "exponent of the scale of a block whose largest is 1",
      CF_EXACTLY(-7),
      .kind = CF_DOCUMENTED,
      .source = page,
      .test = scale_of_one,
      .of = TRN_F8_E4M3FN,
      .at = TRN_MX_SCALE_NEURON },
    { .id = "mx.scale.neuron.e5m2",
      .what = "the same for E5M2",
      CF_EXACTLY(-14),
      .kind = CF_DOCUMENTED,
      .source = page,
      .test = scale_of_one,
      .of = TRN_F8_E5M2,
      .at = TRN_MX_SCALE_NEURON },
    { .id = "mx.scale.ocp.e4m3fn",
      .what = "by OCP's rule",
      CF_EXACTLY(-8),
      .kind = CF_DOCUMENTED,
      .source = ocp,
      .test = scale_of_one,
      .of = TRN_F8_E4M3FN,
      .at = TRN_MX_SCALE_OCP_FLOOR },
    { .id = "mx.scale.ocp.e5m2",
      .what = "by OCP's rule, E5M2",
      CF_EXACTLY(-15),
      .kind = CF_DOCUMENTED,
      .source = ocp,
      .test = scale_of_one,
      .of = TRN_F8_E5M2,
      .at = TRN_MX_SCALE_OCP_FLOOR },
    { .id = "mx.scale.ocp.e2m1fn",
      .what = "by OCP's rule, E2M1",
      CF_EXACTLY(-2),
      .kind = CF_DOCUMENTED,
      .source = ocp,
      .test = scale_of_one,
      .of = TRN_F4_E2M1,
      .at = TRN_MX_SCALE_OCP_FLOOR },
    { .id = "qsnr.gaussian.mxfp8.round_up",
      .what = "MXFP8 (E4M3FN), Gaussian values, scales rounded up",
      .unit = "dB",
      CF_ABOUT(31.52, 0.05),
      .kind = CF_CALCULATED,
      .source = drawn,
      .test = gaussian,
      .of = TRN_F8_E4M3FN,
      .at = TRN_MX_SCALE_ROUND_UP },
    { .id = "qsnr.gaussian.mxfp8.floor",
      .what = "the same with OCP's rule, under which the largest may saturate",
      .unit = "dB",
      CF_ABOUT(30.65, 0.05),
      .kind = CF_CALCULATED,
      .source = drawn,
      .test = gaussian,
      .of = TRN_F8_E4M3FN,
      .at = TRN_MX_SCALE_OCP_FLOOR },
};

void cf_fill_mx(cf_list *list)
{
    static const struct {
        trn_format format;
        int mantissa;
    } of[] = { { TRN_F4_E2M1, 1 }, { TRN_F8_E5M2, 2 }, { TRN_F6_E3M2, 2 }, { TRN_F6_E2M3, 3 }, { TRN_F8_E4M3FN, 3 },
               { TRN_F8_E4M3, 3 }, { TRN_F8_E3M4, 4 }, { TRN_BF16, 7 },    { TRN_F16, 10 },    { TRN_TF32, 10 } };
    cf_fill_golden_blocks(list);
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "qsnr.bound.%s", trn_format_name(of[i].format)),
                                  .what = cf_text(list, "%s, %d mantissa bits, uniform significands",
                                                  trn_format_name(of[i].format), of[i].mantissa),
                                  .unit = "dB",
                                  CF_ABOUT(13.80 + 6.02 * of[i].mantissa, ldexp(0.44, -2 * of[i].mantissa) + 0.01),
                                  .kind = CF_PAPER,
                                  .source = bound,
                                  .test = ceiling,
                                  .of = (int)of[i].format });
}

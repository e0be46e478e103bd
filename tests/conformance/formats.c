/* formats.c - limits as the standards print them, names, the two FP8 formats that share one, integers through binary32.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "normal.h"
#include "published/formats.h"
#include "trnmath/trn_vector_engine.h"

/* ---- limits, names ---- */

static void limits(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    const format_facts *k = v->about;
    const trn_format_limits l = trn_format_limits_of(k->format);
    const struct {
        const char *what;
        double ours, published;
    } pair[] = {
        { "bits", trn_format_bits(k->format), k->bits },
        { "largest", l.max, k->max },
        { "lowest", l.lowest, k->lowest },
        { "least normal", l.min_normal, k->min_normal },
        { "least", l.min_subnormal, k->min_subnormal },
        { "step after 1", l.epsilon, k->epsilon },
        { "infinity", l.infinity_code, k->infinity },
        { "first NaN", l.nan_first, k->nan_first },
        { "last NaN", l.nan_last, k->nan_last },
    };
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++)
        cf_count(a, pair[i].ours == pair[i].published, "%s: %g, published %g", pair[i].what, pair[i].ours,
                 pair[i].published);
}

static void names(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int i = 0; i < FORMAT_NAMES; i++) {
        const trn_format f = format_names[i].format;
        cf_count(a, trn_format_from_name(format_names[i].name) == f, "%s", format_names[i].name);
        if (*format_names[i].safetensors)
            cf_count(a, trn_format_from_name(format_names[i].safetensors) == f, "%s", format_names[i].safetensors);
    }
}

static void largest(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = trn_format_limits_of((trn_format)v->of).max;
}

/* ---- the two FP8 formats ---- */

enum { CODES = 256, GAUSSIANS = 1 << 18 };

static float e4m3fn(int code) { return trn_decode(TRN_F8_E4M3FN, (uint32_t)code); }
static bool finite_e4m3fn(int code) { return (code & 0x7f) != 0x7f; }

static float through_e4m3(float x) /* to nearest, as a converter does */
{
    return trn_decode(TRN_F8_E4M3, trn_encode(TRN_F8_E4M3, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
}

/* A value scaled down, stored as E4M3, and scaled up again: by 2, or by the vendor's 448/240. */
static float halved(float x) { return 2 * through_e4m3(x / 2); }
static float by_ratio(float x)
{
    static const float ratio = 448.0f / 240.0f;
    return through_e4m3(x / ratio) * ratio;
}

static void same_in_both(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int c = 0; c < CODES; c++)
        if (finite_e4m3fn(c)) a->got += e4m3fn(c) == trn_decode(TRN_F8_E4M3, (uint32_t)c), a->cases++;
}

static void beyond_240(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int c = 0; c < CODES; c++)
        if (finite_e4m3fn(c)) a->got += fabsf(e4m3fn(c)) > 240, a->cases++;
}

/* 78 reads as infinity, 79 to 7e as NaN. */
static void relabelled(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (uint32_t c = 0x78; c <= 0x7e; c++)
        for (uint32_t sign = 0; sign <= 0x80; sign += 0x80) {
            const float x = trn_decode(TRN_F8_E4M3, c | sign);
            cf_count(a, c == 0x78 ? isinf(x) != 0 : isnan(x) != 0, "code %02x is %g", (unsigned)(c | sign), (double)x);
        }
}

/* .of: 0 halved, 1 by the ratio. .at: 1 only codes from 2^-5 up. The ratio's way back is exact to binary32's digits. */
static void exact_codes(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    for (int c = 0; c < CODES; c++) {
        const float x = e4m3fn(c);
        if (!finite_e4m3fn(c) || (v->at && fabsf(x) < 0x1p-5f)) continue;
        const float y = v->of ? by_ratio(x) : halved(x);
        a->got += fabsf(y - x) <= 1e-6f * fabsf(x);
        a->cases++;
    }
}

static void worst_by_ratio(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int c = 1; c < CODES; c++) {
        const float x = e4m3fn(c);
        if (!finite_e4m3fn(c) || fabsf(x) < 0x1p-5f) continue;
        a->got = fmax(a->got, 100 * fabs((double)(by_ratio(x) - x) / (double)x));
        a->cases++;
    }
}

/* What the ratio adds: Gaussian weights, quantised so that the largest is 448, against the same after a round trip. */
static void ratio_noise(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    static float x[GAUSSIANS];
    double signal = 0, noise = 0, most = 0;
    cf_normal(x, GAUSSIANS, 11);
    for (int i = 0; i < GAUSSIANS; i++) most = fmax(most, fabs((double)x[i]));
    for (int i = 0; i < GAUSSIANS; i++) {
        const float scaled = (float)((double)x[i] * 448 / most);
        const float w = trn_decode(TRN_F8_E4M3FN, trn_encode(TRN_F8_E4M3FN, scaled, TRN_NEAREST_EVEN, TRN_SATURATE, 0));
        const double off = (double)by_ratio(w) - (double)w;
        signal += (double)w * (double)w;
        noise += off * off;
    }
    a->got = 10 * log10(signal / noise);
    a->cases = GAUSSIANS;
}

/* ---- integers ---- */

static void through_binary32(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int i = 0; i < FORMAT_INTEGERS; i++) {
        const double got = (double)trn_decode(format_integers[i].format, format_integers[i].code);
        cf_count(a, got == format_integers[i].value, "%s %08x: %.0f, expected %.0f",
                 trn_format_name(format_integers[i].format), (unsigned)format_integers[i].code, got,
                 format_integers[i].value);
    }
}

/* An instruction on one uint32: .of is the engine, .at what is added. */
static void integer_sum(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    uint32_t x = *(const uint32_t *)v->about, y = (uint32_t)v->at, sum = 0;
    trn_tensor_tensor_args args = { .dst = trn_tensor_2d(TRN_U32, &sum, 1, 1),
                                    .data1 = trn_tensor_2d(TRN_U32, &x, 1, 1),
                                    .data2 = trn_tensor_2d(TRN_U32, &y, 1, 1),
                                    .op = TRN_ALU_ADD };
    args.engine = (trn_engine)v->of;
    if (trn_tensor_tensor(&args) != TRN_OK)
        cf_fail(a, "tensor_tensor is refused");
    else
        a->got = sum;
}

static const uint32_t philox_word = 0x69288fa8, above_24_bits = 16777217;

/* ---- the vectors ---- */

static const char users_note[] = "exhaustive, from the two code tables",
                  thread[] = "github.com/aws-neuron/aws-neuron-sdk/issues/1308",
                  rescaling[] = "neuronx-distributed, README_rescaling_fp8_for_neuron.md; exhaustive",
                  native[] = "NKI, tensor_tensor: int32 goes through FP32 on VectorE, is exact on GpSimd";

static const cf_vector vectors[] = {
    { .id = "format.max.float8_e4m3",
      .what = "largest E4M3 of Trainium1 and 2",
      CF_EXACTLY(240),
      .kind = CF_DOCUMENTED,
      .source = "nki-library kernel_helpers.py; ml_dtypes",
      .test = largest,
      .of = TRN_F8_E4M3 },
    { .id = "format.max.float8_e4m3fn",
      .what = "largest E4M3FN, OCP's E4M3",
      CF_EXACTLY(448),
      .kind = CF_DOCUMENTED,
      .source = "OCP OFP8; nki-library kernel_helpers.py",
      .test = largest,
      .of = TRN_F8_E4M3FN },
    { .id = "format.max.float8_e5m2",
      .what = "largest E5M2",
      CF_EXACTLY(57344),
      .kind = CF_DOCUMENTED,
      .source = "OCP OFP8; nki-library kernel_helpers.py",
      .test = largest,
      .of = TRN_F8_E5M2 },
    { .id = "format.max.float4_e2m1fn",
      .what = "largest E2M1",
      CF_EXACTLY(6),
      .kind = CF_DOCUMENTED,
      .source = "OCP MX 1.0; nki-library mx_torch_common.py",
      .test = largest,
      .of = TRN_F4_E2M1 },
    { .id = "format.names",
      .what = "names of NKI, ml_dtypes and safetensors",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = "NKI data types; ml_dtypes; safetensors; OCP",
      .test = names },
    { .id = "fp8.codes.same",
      .what = "codes that mean the same in E4M3 (240) and E4M3FN (448), of 254 finite ones",
      CF_EXACTLY(240),
      .kind = CF_CALCULATED,
      .source = users_note,
      .test = same_in_both },
    { .id = "fp8.codes.beyond_240",
      .what = "finite codes of E4M3FN beyond 240",
      CF_EXACTLY(14),
      .kind = CF_CALCULATED,
      .source = users_note,
      .test = beyond_240 },
    { .id = "fp8.codes.relabelled",
      .what = "78 to 7e of a 448 checkpoint read as infinity and NaN",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = rescaling,
      .test = relabelled },
    { .id = "fp8.halve.exact",
      .what = "codes that survive / 2, times 2, of 254",
      CF_EXACTLY(238),
      .kind = CF_CALCULATED,
      .source = users_note,
      .test = exact_codes },
    { .id = "fp8.halve.exact_normal",
      .what = "the same of the 222 from 2^-5 up",
      CF_EXACTLY(222),
      .kind = CF_CALCULATED,
      .source = users_note,
      .test = exact_codes,
      .at = 1 },
    { .id = "fp8.ratio.exact",
      .what = "codes that survive / (448/240), times 448/240, of 254",
      CF_EXACTLY(30),
      .kind = CF_CALCULATED,
      .source = rescaling,
      .test = exact_codes,
      .of = 1 },
    { .id = "fp8.ratio.exact_normal",
      .what = "the same of the 222 from 2^-5 up",
      CF_EXACTLY(28),
      .kind = CF_CALCULATED,
      .source = rescaling,
      .test = exact_codes,
      .of = 1,
      .at = 1 },
    { .id = "fp8.ratio.worst",
      .what = "largest relative error of the ratio from 2^-5 up",
      .unit = "%",
      CF_ABOUT(5.0, 0.05),
      .kind = CF_CALCULATED,
      .source = rescaling,
      .test = worst_by_ratio },
    { .id = "fp8.ratio.noise",
      .what = "signal to what the ratio adds, Gaussian weights",
      .unit = "dB",
      CF_ABOUT(31.5, 0.5),
      .kind = CF_CALCULATED,
      .source = rescaling,
      .test = ratio_noise },
    { .id = "integer.binary32",
      .what = "integers around ties and edges, decoded through binary32",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = "Neuron data types: integers beyond 2^24 round",
      .test = through_binary32 },
    { .id = "integer.device.1764265896",
      .what = "uint32 1764265896 + 0 on the Vector engine",
      CF_EXACTLY(1764265856),
      .kind = CF_MEASURED,
      .source = thread,
      .test = integer_sum,
      .about = &philox_word,
      .of = TRN_ENGINE_VECTOR },
    { .id = "integer.gpsimd.1764265896",
      .what = "uint32 1764265896 + 0 on GpSimd",
      CF_EXACTLY(1764265896),
      .kind = CF_DOCUMENTED,
      .source = native,
      .test = integer_sum,
      .about = &philox_word,
      .of = TRN_ENGINE_GPSIMD },
    { .id = "integer.vector.2_24",
      .what = "16777217 + 1 on the Vector engine",
      CF_EXACTLY(16777216),
      .kind = CF_DOCUMENTED,
      .source = native,
      .test = integer_sum,
      .about = &above_24_bits,
      .of = TRN_ENGINE_VECTOR,
      .at = 1 },
    { .id = "integer.gpsimd.2_24",
      .what = "16777217 + 1 on GpSimd",
      CF_EXACTLY(16777218),
      .kind = CF_DOCUMENTED,
      .source = native,
      .test = integer_sum,
      .about = &above_24_bits,
      .of = TRN_ENGINE_GPSIMD,
      .at = 1 },
};

void cf_fill_formats(cf_list *list)
{
    for (int i = 0; i < FORMAT_KNOWN; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "format.limits.%s", trn_format_name(format_known[i].format)),
                                  .what = cf_text(list, "%s: bits, range, steps, infinity, NaN codes",
                                                  trn_format_name(format_known[i].format)),
                                  .source = "IEEE 754, OCP OFP8, OCP MX 1.0, ml_dtypes, Neuron data types",
                                  .kind = CF_DOCUMENTED,
                                  CF_NONE_WRONG,
                                  .test = limits,
                                  .about = &format_known[i] });
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
    cf_fill_golden(list);
}

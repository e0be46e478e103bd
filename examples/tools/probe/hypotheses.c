/* hypotheses.c - field by field, what the array might do; and which differences no input can show.
 * SPDX-License-Identifier: MIT
 */
#include "probe.h"

#include <string.h>

/* Of the adders that align a block of products, those of the units that trn_numerics has presets for. nv_ampere stands
 * for nv_ada, too, and for nv_turing, which differs only where all products of a block are below 2^-124; nv_hopper
 * stands for nv_blackwell. */
static const char *const accumulator[] = { "nearest_even", "toward_zero", "exact",         "nv_volta",
                                           "nv_ampere",    "nv_ada_fp8",  "nv_hopper",     "nv_hopper_fp8",
                                           "amd_cdna2",    "amd_cdna3",   "amd_cdna3_fp8", NULL };
#define ALIGNED(settings) ("accumulator=aligned," settings ",aligned_rounding=toward_zero")
static const char *const accumulator_text[] = {
    "accumulator=nearest_even",
    "accumulator=toward_zero",
    "accumulator=exact",
    ALIGNED("aligned_bytes=8,aligned_bits=23"),
    ALIGNED("aligned_floor=132"),
    ALIGNED("aligned_bits=13,aligned_result_bits=14,aligned_floor=132"),
    ALIGNED("aligned_bytes=32,aligned_bits=25,aligned_floor=133"),
    ALIGNED("aligned_bytes=32,aligned_bits=13,aligned_result_bits=14,aligned_floor=133"),
    "accumulator=pairwise,aligned_bytes=8",
    "accumulator=aligned_late",
    "accumulator=aligned_halves",
};
static const char *const chains[] = { "1", "2", "4", "8", "16", NULL };
static const char *const layout[] = { "interleaved", "blocked", NULL };
static const char *const merge[] = { "ascending", "pairwise", NULL };
static const char *const product[] = { "exact", "bf16", NULL };
static const char *const off_on[] = { "off", "on", NULL };
static const char *const group[] = { "sequential", "exact", NULL };
static const char *const tf32[] = { "nearest_even", "truncate", NULL };
static const char *const fp32[] = { "native", "split", "fp32r", NULL };
static const char *const psum[] = { "float32", "bfloat16", NULL };
static const char *const rounding[] = { "nearest_even", "stochastic", NULL };
static const char *const overflow[] = { "wrap", "saturate", NULL };

const probe_hypothesis probe_hypotheses[PROBE_FIELDS] = {
    [PROBE_ACCUMULATOR] = { "accumulator", accumulator, 0, 0, 0, accumulator_text },
    [PROBE_BITS] = { "accumulator_bits", NULL, 24, 53, 0, NULL },
    [PROBE_CHAINS] = { "chains", chains, 0, 0, 2, NULL },
    [PROBE_LAYOUT] = { "chain_layout", layout, 0, 0, 0, NULL },
    [PROBE_MERGE] = { "merge", merge, 0, 0, 0, NULL },
    [PROBE_PRODUCT] = { "product", product, 0, 0, 0, NULL },
    [PROBE_FLUSH_INPUTS] = { "flush_inputs", off_on, 0, 0, 0, NULL },
    [PROBE_FLUSH_PRODUCTS] = { "flush_products", off_on, 0, 0, 0, NULL },
    [PROBE_FLUSH_SUMS] = { "flush_sums", off_on, 0, 0, 0, NULL },
    [PROBE_GROUP] = { "group", group, 0, 0, 0, NULL },
    [PROBE_TF32] = { "tf32_input", tf32, 0, 0, 0, NULL },
    [PROBE_FP32] = { "fp32_mode", fp32, 0, 0, 0, NULL },
    [PROBE_BIAS] = { "fp8_bias", NULL, 0, 30, 0, NULL },
    [PROBE_PSUM] = { "psum_format", psum, 0, 0, 0, NULL },
    [PROBE_PSUM_ROUNDING] = { "psum_rounding", rounding, 0, 0, 0, NULL },
    [PROBE_SR_BITS] = { "sr_bits", NULL, 1, 32, 31, NULL },
    [PROBE_INT32] = { "int32_overflow", overflow, 0, 0, 0, NULL },
};

const char *const probe_not_probed[][2] = {
    { "aligned_bytes", "tried as the units behind `accumulator` set it, not one value after the other" },
    { "aligned_bits", "the same" },
    { "aligned_result_bits", "the same" },
    { "aligned_floor", "the same; it shows only where all products of a block are below 2^-124" },
    { "aligned_rounding", "the same" },
    { "k_tile", "how many rows an instruction takes is the kernel's choice, not the chip's" },
    { "mx_scale_rule", "a rule of quantize_mx, which is not a matmul" },
    { "sr_where", "it tells engine writes from DMA writes; a matmul is neither a DMA nor free to choose" },
    { "activation_fused", "the Scalar engine's" },
    { "reduce_order", "the Vector engine's" },
    { "rsqrt_buckets", "the Scalar engine's" },
    { NULL, NULL },
};

/* ---- what no input can show ---- */

#define ALL UINT64_MAX
#define ONE(value) (UINT64_C(1) << (value))
enum { NEAREST, TOWARD_ZERO, EXACT };
#define BLOCKS (ALL << 3) /* the adders of blocks */

const probe_rule probe_rules[] = {
    { PROBE_BITS, ALL, 0, PROBE_ACCUMULATOR, ONE(EXACT), "an exact accumulator has no width of its own" },
    { PROBE_CHAINS, ALL, 2, PROBE_ACCUMULATOR, ONE(EXACT), "an exact sum does not depend on its order" },
    { PROBE_LAYOUT, ALL, 0, PROBE_ACCUMULATOR, ONE(EXACT), "an exact sum does not depend on its order" },
    { PROBE_MERGE, ALL, 0, PROBE_ACCUMULATOR, ONE(EXACT), "an exact sum does not depend on its order" },
    { PROBE_GROUP, ALL, 0, PROBE_ACCUMULATOR, ONE(EXACT), "an exact sum does not depend on its order" },
    { PROBE_FP32, ONE(0) | ONE(1), 0, PROBE_ACCUMULATOR, ONE(EXACT),
      "split or whole, the products add up to the same exact sum" },
    { PROBE_BITS, ALL, 0, PROBE_ACCUMULATOR, BLOCKS, "an adder of blocks has the width of its unit" },
    { PROBE_CHAINS, ALL, 2, PROBE_ACCUMULATOR, BLOCKS, "blocks enter PSUM one after the other, without chains" },
    { PROBE_LAYOUT, ALL, 0, PROBE_ACCUMULATOR, BLOCKS, "blocks enter PSUM one after the other, without chains" },
    { PROBE_MERGE, ALL, 0, PROBE_ACCUMULATOR, BLOCKS, "blocks enter PSUM one after the other, without chains" },
    { PROBE_PRODUCT, ALL, 0, PROBE_ACCUMULATOR, BLOCKS, "an adder of blocks has products of its own" },
    { PROBE_GROUP, ALL, 0, PROBE_ACCUMULATOR, BLOCKS, "the products of a row are part of a block" },
    { PROBE_FP32, ONE(0) | ONE(1), 0, PROBE_ACCUMULATOR, BLOCKS, "an adder of blocks takes float32 whole" },
    { PROBE_LAYOUT, ALL, 0, PROBE_CHAINS, ONE(0), "one chain takes every row" },
    { PROBE_MERGE, ALL, 0, PROBE_CHAINS, ONE(0) | ONE(1), "two sums are added in one way only" },
    { PROBE_PSUM_ROUNDING, ALL, 0, PROBE_PSUM, ONE(0), "nothing is rounded into a float32 PSUM but the sum itself" },
    { PROBE_SR_BITS, ALL, 31, PROBE_PSUM, ONE(0), "nothing is rounded stochastically" },
    { PROBE_SR_BITS, ALL, 31, PROBE_PSUM_ROUNDING, ONE(0), "nothing is rounded stochastically" },
    { PROBE_SR_BITS, ALL << 15, 31, PROBE_PSUM_ROUNDING, ONE(1),
      "bfloat16 drops 16 bits of a normal float32: more random bits round up no more and no less often" },
};
const int probe_rule_count = sizeof probe_rules / sizeof probe_rules[0];

const probe_rule *probe_rule_for(const probe_setting *s, int field, int value)
{
    for (int i = 0; i < probe_rule_count; i++) {
        const probe_rule *r = &probe_rules[i];
        const int when = s->value[r->when];
        if ((int)r->field == field && (r->merged >> value & 1u) && when >= 0 && (r->when_values >> when & 1u)) return r;
    }
    return NULL;
}

probe_setting probe_canonical(probe_setting s)
{
    for (int f = 0; f < PROBE_FIELDS; f++) {
        const probe_rule *r = s.value[f] < 0 ? NULL : probe_rule_for(&s, f, s.value[f]);
        if (r) s.value[f] = (int8_t)r->becomes;
    }
    return s;
}

/* ---- values, names ---- */

int probe_values(int field)
{
    const probe_hypothesis *h = &probe_hypotheses[field];
    int n = 0;
    if (!h->value) return h->high - h->low + 1;
    while (h->value[n]) n++;
    return n;
}

const char *probe_value_name(int field, int value, char text[16])
{
    const probe_hypothesis *h = &probe_hypotheses[field];
    if (h->value) return h->value[value];
    if (field == PROBE_BIAS && value == 0) return "own"; /* the format's own */
    snprintf(text, 16, "%d", h->low + value);
    return text;
}

probe_setting probe_standard(void)
{
    probe_setting s;
    for (int f = 0; f < PROBE_FIELDS; f++) s.value[f] = (int8_t)probe_hypotheses[f].standard;
    return s;
}

probe_setting probe_undecided(void)
{
    probe_setting s;
    memset(&s, -1, sizeof s);
    return s;
}

const char *probe_text(const probe_setting *s, uint32_t fields, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int f = 0; f < PROBE_FIELDS; f++) {
        char number[16];
        if (!(fields & PROBE_BIT(f)) || s->value[f] < 0 || s->value[f] == probe_hypotheses[f].standard) continue;
        const char *const *whole = probe_hypotheses[f].text;
        const int n = whole ? snprintf(text + at, size - at, "%s%s", at ? "," : "", whole[s->value[f]])
                            : snprintf(text + at, size - at, "%s%s=%s", at ? "," : "", probe_hypotheses[f].name,
                                       probe_value_name(f, s->value[f], number));
        if (n < 0 || (size_t)n >= size - at) break;
        at += (size_t)n;
    }
    return text;
}

bool probe_numerics(const probe_setting *s, trn_numerics *n)
{
    char text[1024];
    return trn_numerics_parse(n, probe_text(s, UINT32_MAX, text, sizeof text)) == TRN_OK;
}

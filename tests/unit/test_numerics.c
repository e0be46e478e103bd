/* test_numerics.c - the registry: defaults, presets, text in and out, illegal values; and every order against the twin.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/problem.h"

/* Every field, as architecture.md names it, with the value that a zero stands for. */
static const struct {
    const char *name, *fallback;
} fields[] = {
    { "chains", "4" },
    { "k_tile", "128" },
    { "chain_layout", "interleaved" },
    { "merge", "ascending" },
    { "product", "exact" },
    { "group", "sequential" },
    { "accumulator", "nearest_even" },
    { "accumulator_bits", "24" },
    { "aligned_bytes", "16" },
    { "aligned_bits", "24" },
    { "aligned_result_bits", "24" },
    { "aligned_floor", "126" },
    { "aligned_rounding", "nearest_even" },
    { "fp32_mode", "native" },
    { "tf32_input", "nearest_even" },
    { "int32_overflow", "wrap" },
    { "flush_inputs", "off" },
    { "flush_products", "off" },
    { "flush_sums", "off" },
    { "psum_format", "float32" },
    { "psum_rounding", "nearest_even" },
    { "mx_scale_rule", "neuron" },
    { "fp8_bias", "the format's own" },
    { "sr_bits", "32" },
    { "sr_where", "engine_writes" },
    { "activation_fused", "off" },
    { "reduce_order", "sequential" },
    { "rsqrt_buckets", "4" },
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- explain ---- */

typedef struct page {
    char line[64][600];
    int lines;
} page;

static void collect(void *user, const char *text)
{
    page *p = (page *)user;
    assert_true(p->lines < 64);
    snprintf(p->line[p->lines++], sizeof p->line[0], "%s", text);
}

static const char *value_of(const page *p, const char *name)
{
    static char value[64];
    const char *found = NULL;
    for (int i = 0; i < p->lines; i++) {
        const size_t length = strlen(name);
        if (strncmp(p->line[i], name, length) != 0 || strncmp(p->line[i] + length, " = ", 3) != 0) continue;
        assert_null(found); /* once */
        found = p->line[i] + length + 3;
        const char *end = strstr(found, " (default ");
        assert_non_null(end);
        snprintf(value, sizeof value, "%.*s", (int)(end - found), found);
    }
    if (!found) fail_msg("explain leaves out %s", name);
    return value;
}

static void explain_names_every_field_once(void **state)
{
    (void)state;
    static page p;
    p.lines = 0;
    trn_numerics_explain(NULL, collect, &p);
    assert_int_equal(FIELDS, p.lines);
    for (int i = 0; i < FIELDS; i++) {
        assert_string_equal(fields[i].fallback, value_of(&p, fields[i].name));
        const char *known[] = { ") - documented", ") - measured", ") - assumed" };
        bool sourced = false;
        for (int k = 0; k < 3; k++) sourced = sourced || strstr(p.line[i], known[k]);
        if (!sourced) fail_msg("no provenance: %s", p.line[i]);
    }
}

static void explain_shows_what_is_set(void **state)
{
    (void)state;
    static page p;
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
    n.chains = 16;
    n.psum_format = TRN_BF16;
    n.flush_sums = true;
    n.accumulator_bits = 53;
    p.lines = 0;
    trn_numerics_explain(&n, collect, &p);
    assert_string_equal("16", value_of(&p, "chains"));
    assert_string_equal("bfloat16", value_of(&p, "psum_format"));
    assert_string_equal("on", value_of(&p, "flush_sums"));
    assert_string_equal("53", value_of(&p, "accumulator_bits"));
    assert_string_equal("off", value_of(&p, "flush_inputs"));
}

/* ---- defaults ---- */

static void defaults(void **state)
{
    (void)state;
    static const trn_generation generations[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    for (int g = 0; g < 4; g++) {
        const trn_numerics n = trn_numerics_default(generations[g]);
        assert_int_equal(4, n.chains);
        assert_int_equal(128, n.k_tile);
        assert_int_equal(TRN_CHAINS_INTERLEAVED, n.chain_layout);
        assert_int_equal(TRN_MERGE_ASCENDING, n.merge);
        assert_int_equal(TRN_PRODUCT_EXACT, n.product);
        assert_int_equal(TRN_GROUP_SEQUENTIAL, n.group);
        assert_int_equal(TRN_ACCUMULATOR_NEAREST_EVEN, n.accumulator);
        assert_int_equal(24, n.accumulator_bits);
        assert_int_equal(TRN_FP32_NATIVE, n.fp32_mode);
        assert_int_equal(TRN_TF32_NEAREST_EVEN, n.tf32_input);
        assert_false(n.flush_inputs || n.flush_products || n.flush_sums || n.activation_fused);
        assert_int_equal(TRN_F32, n.psum_format);
        assert_int_equal(TRN_NEAREST_EVEN, n.psum_rounding);
        assert_int_equal(TRN_MX_SCALE_NEURON, n.mx_scale_rule);
        assert_int_equal(0, n.fp8_bias);
        assert_int_equal(32, n.sr_bits);
        assert_int_equal(TRN_OK, trn_numerics_check(&n, NULL));
    }
    trn_numerics zero;
    memset(&zero, 0, sizeof zero);
    assert_int_equal(TRN_OK, trn_numerics_check(&zero, NULL));
}

/* ---- parse ---- */

static trn_numerics parsed(const char *text)
{
    trn_numerics n;
    memset(&n, 0x5a, sizeof n);
    if (trn_numerics_parse(&n, text) != TRN_OK) fail_msg("\"%s\" is refused", text);
    assert_int_equal(TRN_OK, trn_numerics_check(&n, NULL));
    return n;
}

static void parse_good_texts(void **state)
{
    (void)state;
    trn_numerics n = parsed("chains=1,product=bf16");
    assert_int_equal(1, n.chains);
    assert_int_equal(TRN_PRODUCT_BF16, n.product);
    assert_int_equal(128, n.k_tile);

    n = parsed("");
    assert_int_equal(4, n.chains);

    n = parsed("chains=16,chain_layout=blocked,merge=pairwise,k_tile=64,accumulator=toward_zero,accumulator_bits=53");
    assert_int_equal(16, n.chains);
    assert_int_equal(TRN_CHAINS_BLOCKED, n.chain_layout);
    assert_int_equal(TRN_MERGE_PAIRWISE, n.merge);
    assert_int_equal(64, n.k_tile);
    assert_int_equal(TRN_ACCUMULATOR_TOWARD_ZERO, n.accumulator);
    assert_int_equal(53, n.accumulator_bits);

    n = parsed("fp32_mode=split,tf32_input=truncate,flush_inputs=on,flush_products=on,flush_sums=on");
    assert_int_equal(TRN_FP32_SPLIT, n.fp32_mode);
    assert_int_equal(TRN_TF32_TRUNCATE, n.tf32_input);
    assert_true(n.flush_inputs && n.flush_products && n.flush_sums);

    n = parsed("psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8,flush_sums=off");
    assert_int_equal(TRN_BF16, n.psum_format);
    assert_int_equal(TRN_STOCHASTIC, n.psum_rounding);
    assert_int_equal(8, n.sr_bits);
    assert_false(n.flush_sums);

    n = parsed("chains=8,chains=2"); /* left to right */
    assert_int_equal(2, n.chains);
}

static void parse_presets(void **state)
{
    (void)state;
    static const char *const plain[] = { "trn1", "trn2", "trn3" };
    static const trn_generation generation[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    for (int i = 0; i < 3; i++) {
        const trn_numerics n = parsed(plain[i]), expected = trn_numerics_default(generation[i]);
        assert_memory_equal(&n, &expected, sizeof n);
    }
    assert_int_equal(1, parsed("single_chain").chains);
    assert_int_equal(TRN_PRODUCT_EXACT, parsed("single_chain").product);
    assert_int_equal(TRN_PRODUCT_BF16, parsed("bf16_products").product);
    assert_int_equal(4, parsed("bf16_products").chains);
    assert_int_equal(TRN_ACCUMULATOR_EXACT, parsed("exact").accumulator);
    assert_int_equal(8, parsed("bf16_products,chains=8").chains);
    assert_int_equal(TRN_PRODUCT_BF16, parsed("bf16_products,chains=8").product);
}

static void parse_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "chains",
        "chains=",
        "chains=3",
        "chains=0",
        "chains=32",
        "chains=-1",
        "chains=4x",
        "chains= 4",
        " chains=4",
        "chains =4",
        "Chains=4",
        "k_tile=0",
        "k_tile=129",
        "k_tile=99999",
        "merge=sideways",
        "product=bf",
        "product=bf16x",
        "=4",
        "=",
        ",",
        "chains=4,",
        ",chains=4",
        "chains=4,,merge=pairwise",
        "unknown=1",
        "trn4",
        "TRN2",
        "exact=on",
        "accumulator_bits=23",
        "accumulator_bits=54",
        "sr_bits=33",
        "sr_bits=0",
        "psum_format=float16",
        "psum_rounding=to_odd",
        "flush_sums=yes",
        "flush_sums=1",
        "flush_sums=",
        "k_tile=4294967300",
        "k_tile=0x40",
        "single_chain=1",
        "chains==4",
        "chains=4;merge=pairwise",
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        trn_numerics n, before;
        memset(&n, 0x5a, sizeof n);
        before = n;
        if (trn_numerics_parse(&n, bad[i]) != TRN_EINVAL) fail_msg("\"%s\" is not refused", bad[i]);
        assert_memory_equal(&n, &before, sizeof n); /* nothing is half done */
    }
    trn_numerics n;
    assert_int_equal(TRN_EINVAL, trn_numerics_parse(NULL, "trn2"));
    assert_int_equal(TRN_EINVAL, trn_numerics_parse(&n, NULL));
}

/* A refusal says what would have been taken; on success the sentence is left alone. */
static void refusals_say_what_is_legal(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } row[] = { { "chains=32", "chains takes 1, 2, 4, 8, 16, not '32'" },
                { "product=bf16,chains", "chains takes 1, 2, 4, 8, 16, not ''" },
                { "k_tile=129", "k_tile takes 1 to 128, not '129'" },
                { "k_tile=", "k_tile takes 1 to 128, not ''" },
                { "flush_sums=yes", "flush_sums takes off, on, not 'yes'" },
                { "accumulator=exactly,chains=1", "accumulator takes nearest_even, toward_zero, exact, aligned, "
                                                  "aligned_late, aligned_halves, pairwise, not 'exactly'" },
                { "chains=1,", "nothing stands at a comma, where a setting should be" },
                { "chain=1", "'chain=1' is no setting: there is no such field; settings are field=value, such as "
                             "chains=1 or product=bf16 (trn_numerics_explain lists all), presets trn2, single_chain, "
                             "exact, nv_hopper and others" },
                { NULL, "there is no text" } };
    trn_error error;
    trn_numerics n;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(TRN_EINVAL, trn_numerics_read(&n, row[i].text, &error));
        assert_int_equal(TRN_EINVAL, error.status);
        assert_string_equal(row[i].sentence, error.text);
    }
    strcpy(error.text, "as it was");
    assert_int_equal(TRN_OK, trn_numerics_read(&n, "single_chain,k_tile=64", &error));
    assert_string_equal("as it was", error.text);
    n.chains = 3;
    assert_int_equal(TRN_EINVAL, trn_numerics_check(&n, &error));
    assert_string_equal("numerics.chains = 3 is not a legal value: it takes 1, 2, 4, 8, 16", error.text);
}

/* Every preset is listed once, with a source, and what it is said to set is what parse sets. */
static void presets_are_listed(void **state)
{
    (void)state;
    static const char *const names[] = { "trn1",       "trn2",         "trn3",          "single_chain", "bf16_products",
                                         "exact",      "nv_volta",     "nv_turing",     "nv_ampere",    "nv_ada",
                                         "nv_ada_fp8", "nv_hopper",    "nv_hopper_fp8", "nv_blackwell", "amd_cdna2",
                                         "amd_cdna3",  "amd_cdna3_fp8" };
    int found[sizeof names / sizeof names[0]] = { 0 }, count = 0;
    const char *name, *setting, *source;
    for (; (name = trn_numerics_preset(count, &setting, &source)) != NULL; count++) {
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) found[i] += strcmp(name, names[i]) == 0;
        const trn_numerics n = parsed(name), same = parsed(setting);
        assert_memory_equal(&n, &same, sizeof n);
        assert_true(strlen(source) > 5);
        assert_ptr_equal(name, trn_numerics_preset(count, NULL, NULL));
    }
    assert_int_equal(sizeof names / sizeof names[0], count);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (found[i] != 1) fail_msg("%s is listed %d times", names[i], found[i]);
    assert_null(trn_numerics_preset(-1, NULL, NULL));
    assert_null(trn_numerics_preset(1 << 30, NULL, NULL));
    assert_int_equal(32, parsed("nv_hopper").aligned_bytes);
    assert_int_equal(14, parsed("nv_hopper_fp8").aligned_result_bits);
    assert_int_equal(TRN_ACCUMULATOR_PAIRWISE, parsed("amd_cdna2").accumulator);
    assert_int_equal(4, parsed("amd_cdna2,aligned_bytes=4").aligned_bytes);
    assert_int_equal(TRN_ACCUMULATOR_NEAREST_EVEN, parsed("amd_cdna2,trn2").accumulator); /* a preset starts over */
}

/* ---- format ---- */

static const char *formatted(const trn_numerics *n)
{
    static char text[TRN_NUMERICS_TEXT];
    memset(text, 0x5a, sizeof text);
    assert_int_equal(TRN_OK, trn_numerics_format(n, text, sizeof text));
    return text;
}

static void format_of_known_settings(void **state)
{
    (void)state;
    static const char *const text[][2] = {
        { "", "trn2" },
        { "trn3", "trn2" },
        { "single_chain", "chains=1" },
        { "chains=1,product=bf16", "chains=1,product=bf16" },
        { "product=bf16,chains=1", "chains=1,product=bf16" },
        { "accumulator=exact", "exact" },
        { "exact,flush_sums=on", "exact,flush_sums=on" },
        { "nv_ampere", "nv_ada" }, /* one and the same, and this is shorter */
        { "nv_volta,k_tile=64", "nv_volta,k_tile=64" },
        { "nv_hopper,aligned_bits=13,aligned_result_bits=14,tf32_input=nearest_even", "nv_hopper_fp8" },
        { "psum_format=bfloat16,psum_rounding=stochastic", "psum_format=bfloat16,psum_rounding=stochastic" },
        { "chains=1,chains=4", "trn2" },
        { "fp8_bias=8", "fp8_bias=8" },
        { "fp32_mode=fp32r,int32_overflow=saturate", "fp32_mode=fp32r,int32_overflow=saturate" },
    };
    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
        const trn_numerics n = parsed(text[i][0]);
        assert_string_equal(text[i][1], formatted(&n));
    }
    assert_string_equal("trn2", formatted(NULL));
    trn_numerics zero;
    memset(&zero, 0, sizeof zero);
    assert_string_equal("trn2", formatted(&zero)); /* zeros are the defaults */
    zero.chains = 2;
    assert_string_equal("chains=2", formatted(&zero));

    trn_numerics halves = parsed("amd_cdna3_fp8"); /* back to the format's own bias: no text says so after that name */
    halves.fp8_bias = 0;
    assert_string_equal("accumulator=aligned_halves", formatted(&halves));
}

static void format_that_fails(void **state)
{
    (void)state;
    char text[32];
    const trn_numerics n = parsed("chains=1,product=bf16");
    memset(text, 0x5a, sizeof text);
    for (size_t size = 0; size <= strlen("chains=1,product=bf16"); size++) {
        assert_int_equal(TRN_ENOSPC, trn_numerics_format(&n, text, size));
        assert_int_equal(0x5a, text[0]);
    }
    assert_int_equal(TRN_OK, trn_numerics_format(&n, text, strlen("chains=1,product=bf16") + 1));
    assert_string_equal("chains=1,product=bf16", text);
    trn_numerics bad = n;
    bad.chains = 3;
    assert_int_equal(TRN_EINVAL, trn_numerics_format(&bad, text, sizeof text));
    assert_string_equal("chains=1,product=bf16", text);
    assert_int_equal(TRN_EINVAL, trn_numerics_format(&n, NULL, 10));
}

/* Any field at any legal value, through the table that the library itself reads. */
static trn_numerics any_settings(uint64_t *rng)
{
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
    int count, presets = 0;
    const trni_field *f = trni_numerics_fields(&count);
    while (trn_numerics_preset(presets, NULL, NULL)) presets++;
    if (cases_one_in(rng, 2)) n = parsed(trn_numerics_preset(cases_below(rng, presets), NULL, NULL));
    const int rate = 1 + cases_below(rng, 8);
    for (int i = 0; i < count; i++) {
        if (!cases_one_in(rng, rate)) continue;
        int choices = 0;
        while (f[i].choice && f[i].choice[choices].name) choices++;
        trni_field_set(&n, &f[i],
                       choices ? f[i].choice[cases_below(rng, choices)].value
                               : f[i].low + cases_below(rng, f[i].high - f[i].low + 1));
    }
    return n;
}

/* Text both ways; the text is the shortest of those that name a preset or none. */
static void format_and_parse_agree(void **state)
{
    (void)state;
    uint64_t rng = 26;
    const int rounds = cases_rounds(4000, 200000);
    size_t longest = 0;
    for (int round = 0; round < rounds; round++) {
        const trn_numerics n = any_settings(&rng);
        const char *text = formatted(&n);
        const trn_numerics again = parsed(text);
        if (memcmp(&n, &again, sizeof n) != 0) fail_msg("\"%s\" is not what was meant", text);
        if (strlen(text) > longest) longest = strlen(text);
        for (const char *at = text; (at = strchr(at, ',')) != NULL; at++) { /* no setting is idle */
            char without[TRN_NUMERICS_TEXT];
            const char *end = strchr(at + 1, ',');
            snprintf(without, sizeof without, "%.*s%s", (int)(at - text), text, end ? end : "");
            const trn_numerics less = parsed(without);
            if (memcmp(&n, &less, sizeof n) == 0) fail_msg("\"%s\" would do for \"%s\"", without, text);
        }
    }
    assert_true(longest > 300 && longest < TRN_NUMERICS_TEXT - 100);
}

/* What explain prints, parse reads: every field at every value it lists. */
static void explain_and_parse_agree(void **state)
{
    (void)state;
    static page p;
    p.lines = 0;
    trn_numerics_explain(NULL, collect, &p);
    int tried = 0;
    for (int i = 0; i < p.lines; i++) {
        char name[64], list[256];
        assert_int_equal(1, sscanf(p.line[i], "%63[a-z0-9_] =", name));
        const char *from = strchr(p.line[i], ';');
        assert_non_null(from);
        snprintf(list, sizeof list, "%.*s", (int)(strstr(from, ") - ") - from - 2), from + 2);
        if (strstr(list, " to ")) continue; /* a range of numbers */
        for (char *value = strtok(list, ", "); value; value = strtok(NULL, ", "), tried++) {
            char text[128];
            static page again;
            snprintf(text, sizeof text, "%s=%s", name, value);
            const trn_numerics n = parsed(text);
            again.lines = 0;
            trn_numerics_explain(&n, collect, &again);
            assert_string_equal(value, value_of(&again, name));
        }
    }
    assert_int_equal(57, tried); /* all the values of the fields that have names for them */
}

/* ---- illegal values ---- */

static void illegal(const trn_numerics *n, const char *field)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    assert_int_equal(TRN_EINVAL, trn_numerics_check(n, &error));
    assert_int_equal(TRN_EINVAL, error.status);
    if (!strstr(error.text, field)) fail_msg("\"%s\" does not name %s", error.text, field);
}

static void illegal_values_are_named(void **state)
{
    (void)state;
    static const int chains[] = { -4, 3, 5, 6, 7, 12, 15, 17, 32, 128, 1 << 30 };
    for (unsigned i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
        n.chains = chains[i];
        illegal(&n, "chains");
    }
#define ILLEGAL(field, value)                                                                                          \
    do {                                                                                                               \
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);                                                          \
        n.field = value;                                                                                               \
        illegal(&n, #field);                                                                                           \
    } while (0)
    ILLEGAL(k_tile, -1);
    ILLEGAL(k_tile, 129);
    ILLEGAL(chain_layout, (trn_chain_layout)2);
    ILLEGAL(merge, (trn_merge)2);
    ILLEGAL(product, (trn_product)7);
    ILLEGAL(group, (trn_group)2);
    ILLEGAL(accumulator, (trn_accumulator)7);
    ILLEGAL(accumulator, (trn_accumulator)-1);
    ILLEGAL(aligned_bytes, 1);
    ILLEGAL(aligned_bytes, 12);
    ILLEGAL(aligned_bytes, 128);
    ILLEGAL(aligned_bits, 9);
    ILLEGAL(aligned_bits, 41);
    ILLEGAL(aligned_result_bits, 7);
    ILLEGAL(aligned_result_bits, 25);
    ILLEGAL(aligned_floor, -126);
    ILLEGAL(aligned_floor, 301);
    ILLEGAL(aligned_rounding, TRN_STOCHASTIC);
    ILLEGAL(int32_overflow, (trn_int32_overflow)2);
    ILLEGAL(accumulator_bits, 23);
    ILLEGAL(accumulator_bits, 54);
    ILLEGAL(fp32_mode, (trn_fp32_mode)3);
    ILLEGAL(tf32_input, (trn_tf32_input)2);
    ILLEGAL(psum_format, TRN_F16);
    ILLEGAL(psum_format, (trn_format)99);
    ILLEGAL(psum_rounding, TRN_TO_ODD);
    ILLEGAL(mx_scale_rule, (trn_mx_scale)TRN_MX_SCALE_COUNT);
    ILLEGAL(fp8_bias, 31);
    ILLEGAL(sr_bits, 33);
    ILLEGAL(sr_bits, -8);
    ILLEGAL(sr_where, (trn_sr_where)2);
    ILLEGAL(reduce_order, (trn_reduce_order)2);
    ILLEGAL(rsqrt_buckets, 5);
#undef ILLEGAL
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
    memset(&n.flush_sums, 2, 1); /* a bool that is neither */
    illegal(&n, "flush_sums");
}

/* ---- what the fields do: every order against the twin ---- */

/* Each kind of field takes part in about every other problem, so that they meet each other too. */
static trn_numerics any_order(uint64_t *rng)
{
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
    n.chains = 1 << cases_below(rng, 5);
    n.chain_layout = (trn_chain_layout)cases_below(rng, 2);
    n.merge = (trn_merge)cases_below(rng, 2);
    if (cases_one_in(rng, 3)) n.k_tile = 1 + cases_below(rng, 128);
    if (cases_one_in(rng, 3)) n.product = TRN_PRODUCT_BF16;
    n.group = (trn_group)cases_below(rng, 2);
    n.accumulator = (trn_accumulator)cases_below(rng, 3);
    if (cases_one_in(rng, 2)) n.accumulator_bits = 24 + cases_below(rng, 30);
    if (cases_one_in(rng, 2)) n.fp32_mode = (trn_fp32_mode)(1 + cases_below(rng, 2));
    if (cases_one_in(rng, 4)) n.fp8_bias = 1 + cases_below(rng, 30);
    n.tf32_input = (trn_tf32_input)cases_below(rng, 2);
    n.flush_inputs = cases_one_in(rng, 3);
    n.flush_products = cases_one_in(rng, 3);
    n.flush_sums = cases_one_in(rng, 3);
    if (cases_one_in(rng, 3)) n.psum_format = TRN_BF16;
    if (cases_one_in(rng, 2)) n.psum_rounding = TRN_STOCHASTIC;
    if (cases_one_in(rng, 3)) n.sr_bits = 1 + cases_below(rng, 32);
    return n;
}

/* Every pair of formats in every mode that some generation has. BF16 PSUM is Trainium3's alone. */
static trn_generation any_formats(problem *p, uint64_t *rng)
{
    problem_mode mode;
    trn_generation generation;
    do {
        problem_legal_case(&mode, &generation, &p->twin.a_format, &p->twin.b_format, rng);
    } while (p->twin.a_format == TWIN_I8 || (p->numerics.psum_format == TRN_BF16 && generation != TRN_TRAINIUM3));
    p->twin.group = mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 1;
    if (p->twin.group == 4) p->twin.k = 32 * (1 + cases_below(rng, 6));
    return generation;
}

/* The same product as one instruction: a's transpose is the stationary operand. */
static void ask_instruction(problem *p)
{
    const trn_tensor *a = &p->a.view;
    trn_error error;
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = p->args.generation;
    args.dst = p->dst.view;
    args.stationary = *a;
    for (int axis = 0; axis < 2; axis++) args.stationary.shape[axis] = a->shape[1 - axis];
    args.stationary.stride[0] = p->a.column;
    args.stationary.stride[1] = p->a.row;
    args.moving = p->b.view;
    args.accumulate = p->twin.accumulate;
    args.numerics = &p->numerics;
    args.error = &error;
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    if (trn_nc_matmul(&args) != TRN_OK) {
        problem_print(p, "refused");
        fail_msg("%s", error.text);
    }
    problem_compare(p, "trn_nc_matmul");
}

/* One random product in the given order, its values of the given kind. */
static void ask_order(const trn_numerics *n, bridge_values values, uint64_t *rng)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.numerics = *n;
    p.twin.m = 1 + cases_below(rng, 4);
    p.twin.n = 1 + cases_below(rng, 4);
    p.twin.k = cases_one_in(rng, 3) ? 129 + cases_below(rng, 140) : 1 + cases_below(rng, 70);
    problem_formats(&p.twin, rng);
    const trn_generation generation = cases_one_in(rng, 2) ? any_formats(&p, rng) : TRN_TRAINIUM3;
    p.twin.accumulate = cases_one_in(rng, 2);
    p.twin.rounding = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    p.twin.seed = cases_next(rng);
    p.twin.stream = cases_next(rng);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(&p, layout, values, rng);
    p.args.generation = generation;
    problem_expect(&p, twin_matmul);
    problem_threads(1 + cases_below(rng, 3));
    problem_ask(&p, TRN_ISA_AUTO);
    if (p.twin.dst_format == TWIN_F32 && p.twin.group <= 1 && p.twin.k <= n->k_tile && n->psum_format == TRN_F32)
        ask_instruction(&p);
    problem_free(&p);
}

/* One field at a time, so that a failure names its culprit. */
static void each_field_alone(void **state)
{
    (void)state;
    static const char *const text[] = {
        "chains=1",
        "chains=16,chain_layout=blocked",
        "merge=pairwise,chains=8",
        "k_tile=64",
        "k_tile=1",
        "k_tile=100,chain_layout=blocked",
        "product=bf16",
        "product=bf16,flush_products=on",
        "accumulator=toward_zero",
        "accumulator=exact",
        "accumulator=exact,product=bf16",
        "accumulator=exact,fp32_mode=split",
        "accumulator_bits=25",
        "accumulator_bits=26,chains=1",
        "accumulator_bits=53",
        "accumulator_bits=40,accumulator=toward_zero",
        "fp32_mode=split",
        "fp32_mode=split,chains=1",
        "fp32_mode=split,product=bf16",
        "fp32_mode=fp32r",
        "fp32_mode=fp32r,tf32_input=truncate",
        "group=exact",
        "group=exact,flush_sums=on,accumulator_bits=40",
        "fp8_bias=8",
        "fp8_bias=20,flush_inputs=on",
        "tf32_input=truncate",
        "flush_inputs=on",
        "flush_products=on",
        "flush_sums=on",
        "flush_sums=on,accumulator=exact",
        "flush_sums=on,accumulator_bits=30",
        "flush_inputs=on,flush_products=on,flush_sums=on",
        "psum_format=bfloat16",
        "psum_format=bfloat16,psum_rounding=stochastic",
        "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8",
        "psum_format=bfloat16,flush_sums=on,k_tile=16",
        "sr_bits=16",
        "single_chain",
        "bf16_products",
        "exact",
    };
    uint64_t rng = 21;
    const int rounds = cases_rounds(3, 60);
    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
        const trn_numerics n = parsed(text[i]);
        for (int round = 0; round < rounds; round++)
            for (int values = 0; values < BRIDGE_VALUES; values++) ask_order(&n, (bridge_values)values, &rng);
    }
}

static void all_fields_together(void **state)
{
    (void)state;
    uint64_t rng = 22;
    const int count = cases_rounds(1500, 50000);
    for (int i = 0; i < count; i++) {
        const trn_numerics n = any_order(&rng);
        ask_order(&n, (bridge_values)(i % BRIDGE_VALUES), &rng);
    }
}

/* The passes lo*hi and hi*lo have sums of the same size, and in ordinary numbers their order is lost in the roundings
 * of hi*hi. Here it shows: lo*hi and hi*lo are small multiples of 2^-150, half of the last place, so that each addition
 * is a tie or exact and the result of a tie depends on what came before. */
static void the_order_of_the_split_passes(void **state)
{
    (void)state;
    uint64_t rng = 25;
    const trn_numerics n = parsed("fp32_mode=split,chains=1");
    for (int round = 0; round < 10; round++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = 4;
        p.twin.n = 5;
        p.twin.k = 40;
        p.twin.a_format = p.twin.b_format = p.twin.dst_format = TWIN_F32;
        p.numerics = n;
        static const bridge_layout packed[3] = { BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED };
        problem_build(&p, packed, BRIDGE_INTEGERS, &rng);
        for (int side = 0; side < 2; side++) { /* a around 2^-69, b around 2^-68; the low parts 2^13 times smaller */
            const bridge_matrix *m = side ? &p.b : &p.a;
            uint32_t *codes = (uint32_t *)(uintptr_t)(side ? p.twin.b : p.twin.a);
            const int rows = side ? p.twin.k : p.twin.m, columns = side ? p.twin.n : p.twin.k;
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++) {
                    const float unit = side ? 0x1p-68f : 0x1p-69f, high = (float)(1 + cases_below(&rng, 3)),
                                low = (float)cases_below(&rng, 4);
                    const uint32_t sign = cases_u32(&rng) & 0x80000000u;
                    float *at = (float *)bridge_at(m, i, j);
                    *at = cases_float_of(sign | cases_bits_of(high * unit + low * unit * 0x1p-13f));
                    codes[i * columns + j] = cases_bits_of(*at);
                }
        }
        problem_expect(&p, twin_matmul);
        problem_ask(&p, TRN_ISA_AUTO);
        problem_free(&p);
    }
}

/* An infinity or a NaN has no halves: its row takes part once, whole, so that a subnormal partner (whose high half is
 * zero) does not turn an infinity into a NaN. */
static void the_split_of_what_is_not_finite(void **state)
{
    (void)state;
    const trn_numerics n = parsed("fp32_mode=split");
    static const struct {
        uint32_t x, w, expected;
    } row[] = {
        { 0x00000001, 0xff800000, 0xff800000 }, { 0x7f800000, 0x80000fff, 0xff800000 },
        { 0x7f800000, 0x3f800001, 0x7f800000 }, { 0x7f800000, 0x00000000, 0x7fc00000 },
        { 0x7f800001, 0x3f800000, 0x7fc00000 }, { 0xff800000, 0xff800000, 0x7f800000 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint32_t x = row[i].x, w = row[i].w, out = 0, twins = 0;
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.dst = trn_tensor_2d(TRN_F32, &out, 1, 1);
        args.a = trn_tensor_2d(TRN_F32, &x, 1, 1);
        args.b = trn_tensor_2d(TRN_F32, &w, 1, 1);
        args.numerics = &n;
        assert_int_equal(TRN_OK, trn_matmul(&args));
        CASES_EQUAL(row[i].expected, out, "%08x times %08x", (unsigned)row[i].x, (unsigned)row[i].w);
        twin_problem t;
        memset(&t, 0, sizeof t);
        t.m = t.n = t.k = 1;
        t.a = &x;
        t.b = &w;
        t.dst = &twins;
        t.numerics = bridge_numerics(&n);
        twin_matmul(&t);
        CASES_EQUAL(row[i].expected, twins, "the twin's %08x times %08x", (unsigned)row[i].x, (unsigned)row[i].w);
    }
}

/* The orders do differ: a test that compares with the twin would also pass if every field were ignored by both. */
typedef struct effect {
    const char *text, *against; /* the field, and what it is compared with */
    int format;
    bridge_values values;
    int k;
    int group; /* 1, 2: double rows, 4: MX, all scales 1 */
} effect;

static void effect_ask(const effect *e, const char *text, const bridge_matrix *a, const bridge_matrix *b, float *out)
{
    const trn_numerics n = parsed(text);
    trn_error error;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = TRN_TRAINIUM3;
    args.dst = trn_tensor_2d(TRN_F32, out, a->view.shape[0], b->view.shape[1]);
    args.a = a->view;
    args.b = b->view;
    args.double_row = e->group == 2;
    static uint8_t scale[16 * 32];
    memset(scale, 127, sizeof scale);
    if (e->group == 4) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, scale, a->view.shape[0], e->k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, scale, b->view.shape[1], e->k / 32);
    }
    args.numerics = &n;
    args.error = &error;
    if (trn_matmul(&args) != TRN_OK) fail_msg("%s: %s", text, error.text);
}

static void effect_show(const effect *e, uint64_t *rng)
{
    enum { M = 16, N = 16 };
    static float out[2][M * N];
    bridge_matrix a = bridge_make(e->format, M, e->k, BRIDGE_PACKED, rng),
                  b = bridge_make(e->format, e->k, N, BRIDGE_PACKED, rng);
    bridge_fill(&a, e->format, M, e->k, e->values, rng);
    bridge_fill(&b, e->format, e->k, N, e->values, rng);
    if (e->format == TWIN_TF32) bridge_dirty_tf32(&a, M, e->k, rng);
    effect_ask(e, e->against, &a, &b, out[0]);
    effect_ask(e, e->text, &a, &b, out[1]);
    if (memcmp(out[0], out[1], sizeof out[0]) == 0) fail_msg("%s changes nothing", e->text);
    free(a.memory);
    free(b.memory);
}

static void every_field_matters(void **state)
{
    (void)state;
    static const effect field[] = {
        { "chains=1", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "chains=8", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "chain_layout=blocked", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "merge=pairwise", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "k_tile=64", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "product=bf16", "", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "group=exact", "", TWIN_E5M2, BRIDGE_WIDE, 320, 4 }, /* a pair has one sum, exact or not */
        { "accumulator=toward_zero", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=exact", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned", "exact", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned_late", "accumulator=aligned", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned_halves", "accumulator=aligned_late", TWIN_BF16, BRIDGE_WIDE, 300, 1 },
        { "accumulator=pairwise", "", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned,aligned_bytes=32", "accumulator=aligned", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned,aligned_bits=23", "accumulator=aligned", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned,aligned_result_bits=14", "accumulator=aligned", TWIN_BF16, BRIDGE_NEAR_ONE, 300, 1 },
        { "accumulator=aligned,aligned_floor=100", "accumulator=aligned", TWIN_F32, BRIDGE_TINY, 30, 1 },
        { "accumulator=aligned,aligned_rounding=toward_zero", "accumulator=aligned", TWIN_BF16, BRIDGE_NEAR_ONE, 300,
          1 },
        { "accumulator_bits=25", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "fp32_mode=split", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "fp32_mode=fp32r", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "fp32_mode=fp32r,tf32_input=truncate", "fp32_mode=fp32r", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "tf32_input=truncate", "", TWIN_TF32, BRIDGE_NEAR_ONE, 300, 1 },
        { "flush_inputs=on", "", TWIN_F16, BRIDGE_TINY, 300, 1 },
        { "flush_inputs=on", "", TWIN_E5M2, BRIDGE_TINY, 300, 2 },
        { "flush_products=on", "", TWIN_F32, BRIDGE_TINY, 300, 1 },
        { "flush_sums=on", "", TWIN_F32, BRIDGE_TINY, 3, 1 },
        { "psum_format=bfloat16", "", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "psum_format=bfloat16,psum_rounding=stochastic", "psum_format=bfloat16", TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8", "psum_format=bfloat16,psum_rounding=stochastic",
          TWIN_F32, BRIDGE_NEAR_ONE, 300, 1 },
        { "fp8_bias=8", "", TWIN_E4M3, BRIDGE_NEAR_ONE, 30, 1 },
    };
    uint64_t rng = 23;
    for (unsigned i = 0; i < sizeof field / sizeof field[0]; i++) effect_show(&field[i], &rng);
}

/* int8 on Trainium1: 2^31 - 1 and one more. */
static void the_overflow_of_int32(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int8_t x, w;
        int32_t before, after;
    } row[] = {
        { "int32_overflow=wrap", 1, 1, INT32_MAX, INT32_MIN },
        { "int32_overflow=saturate", 1, 1, INT32_MAX, INT32_MAX },
        { "int32_overflow=wrap", -128, 127, INT32_MIN, INT32_MAX - 128 * 127 + 1 },
        { "int32_overflow=saturate", -128, 127, INT32_MIN, INT32_MIN },
        { "int32_overflow=saturate", -128, -128, 5, 16389 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int level = 0; level < 2; level++) {
            int8_t x = row[i].x, w = row[i].w;
            int32_t dst = row[i].before;
            const trn_numerics n = parsed(row[i].text);
            trn_matmul_args any;
            trn_nc_matmul_args one;
            memset(&any, 0, sizeof any);
            memset(&one, 0, sizeof one);
            any.generation = one.generation = TRN_TRAINIUM1;
            any.dst = one.dst = trn_tensor_2d(TRN_I32, &dst, 1, 1);
            any.a = one.stationary = trn_tensor_2d(TRN_I8, &x, 1, 1);
            any.b = one.moving = trn_tensor_2d(TRN_I8, &w, 1, 1);
            any.accumulate = one.accumulate = true;
            any.numerics = one.numerics = &n;
            assert_int_equal(TRN_OK, level ? trn_matmul(&any) : trn_nc_matmul(&one));
            assert_int_equal(row[i].after, dst);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_names_every_field_once),
        cmocka_unit_test(explain_shows_what_is_set),
        cmocka_unit_test(defaults),
        cmocka_unit_test(parse_good_texts),
        cmocka_unit_test(parse_presets),
        cmocka_unit_test(parse_bad_texts),
        cmocka_unit_test(refusals_say_what_is_legal),
        cmocka_unit_test(presets_are_listed),
        cmocka_unit_test(format_of_known_settings),
        cmocka_unit_test(format_that_fails),
        cmocka_unit_test(format_and_parse_agree),
        cmocka_unit_test(explain_and_parse_agree),
        cmocka_unit_test(illegal_values_are_named),
        cmocka_unit_test(each_field_alone),
        cmocka_unit_test(all_fields_together),
        cmocka_unit_test(the_order_of_the_split_passes),
        cmocka_unit_test(the_split_of_what_is_not_finite),
        cmocka_unit_test(every_field_matters),
        cmocka_unit_test(the_overflow_of_int32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

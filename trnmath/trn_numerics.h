/* trn_numerics.h - the registry of every behaviour that the public record leaves open, with its default and its source.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_numerics.h>
 *     #include <stdio.h>
 *     static void line(void *user, const char *text) { fprintf((FILE *)user, "%s\n", text); }
 *     int main(void) {
 *         trn_numerics n;
 *         if (trn_numerics_parse(&n, "chains=1,product=bf16") != TRN_OK) return 1;
 *         trn_numerics_explain(&n, line, stdout);
 *         return 0;
 *     }
 *
 * DOES: names each assumption, so that a user who doubts one changes a field and not the code. A zero in any field
 *     means its default: `trn_numerics n = { .chains = 1 }` is complete.
 * DOES NOT: compute. The engines read it; an engine that has no use for a field ignores it.
 *
 * CONTENTS
 *     trn_numerics            the fields
 *     trn_chain_layout, trn_merge, trn_product, trn_group, trn_accumulator, trn_fp32_mode, trn_tf32_input   values
 *     trn_mx_scale, trn_sr_where, trn_reduce_order   values, too
 *     trn_numerics_default    the defaults of a generation
 *     trn_numerics_parse      from text: "chains=1,product=bf16", or a preset's name
 *     trn_numerics_explain    every field: value, default, source, alternatives
 *     trn_numerics_check      are all values legal?
 *
 * Presets: trn1 trn2 trn3 (the defaults), single_chain, bf16_products, exact.
 *
 * KNOWN FROM: each row of the table below says it: `documented`, `measured` (by whom) or `assumed` (why).
 */
#ifndef TRN_NUMERICS_H
#define TRN_NUMERICS_H

#include "trn_format.h"
#include "trn_spec.h"

typedef enum trn_chain_layout {
    TRN_CHAINS_INTERLEAVED = 0, /* row p of the array belongs to chain p mod chains */
    TRN_CHAINS_BLOCKED          /* row p belongs to chain p div (128 / chains) */
} trn_chain_layout;

typedef enum trn_merge {
    TRN_MERGE_ASCENDING = 0, /* ((s0 + s1) + s2) + s3 */
    TRN_MERGE_PAIRWISE       /* (s0 + s1) + (s2 + s3) */
} trn_merge;

typedef enum trn_product {
    TRN_PRODUCT_EXACT = 0, /* fused: the product enters the sum unrounded */
    TRN_PRODUCT_BF16       /* rounded to bfloat16, nearest even, before the sum */
} trn_product;

typedef enum trn_group {
    TRN_GROUP_SEQUENTIAL = 0, /* several products of one row: one fused multiply-add after the other */
    TRN_GROUP_EXACT           /* their exact sum, rounded once */
} trn_group;

typedef enum trn_accumulator {
    TRN_ACCUMULATOR_NEAREST_EVEN = 0,
    TRN_ACCUMULATOR_TOWARD_ZERO, /* chain and merge additions truncate; the addition into PSUM does not */
    TRN_ACCUMULATOR_EXACT        /* no chains: the exact sum of the tile, rounded once to binary32 */
} trn_accumulator;

typedef enum trn_fp32_mode {
    TRN_FP32_NATIVE = 0, /* fused multiply-add of 24-bit significands */
    TRN_FP32_SPLIT,      /* hi = the top 12 bits, lo = the rest; passes lo*lo, lo*hi, hi*lo, hi*hi in each chain */
    TRN_FP32_R           /* FP32R: operands are read as TF32 is, one pass (assumed: only the name is public) */
} trn_fp32_mode;

typedef enum trn_tf32_input {
    TRN_TF32_NEAREST_EVEN = 0, /* a container whose low 13 bits are not zero is rounded */
    TRN_TF32_TRUNCATE          /* or cut */
} trn_tf32_input;

typedef enum trn_mx_scale {
    TRN_MX_SCALE_NEURON = 0, /* twice OCP's: the QuantizeMX instruction */
    TRN_MX_SCALE_OCP_FLOOR,
    TRN_MX_SCALE_ROUND_UP
} trn_mx_scale;

typedef enum trn_sr_where {
    TRN_SR_ENGINE_WRITES = 0, /* every narrowing write of the four engines, but not of the DMA */
    TRN_SR_ALL_WRITES         /* of the DMA too */
} trn_sr_where;

typedef enum trn_reduce_order {
    TRN_REDUCE_SEQUENTIAL = 0, /* along the free axis, ascending, one accumulator per partition */
    TRN_REDUCE_PAIRWISE
} trn_reduce_order;

typedef struct trn_numerics {
    int chains;                    /* partial-sum chains of a column: 1, 2, 4, 8, 16; 0 = 4 */
    int k_tile;                    /* rows of one tile, 1..128; 0 = 128 */
    trn_chain_layout chain_layout;
    trn_merge merge;
    trn_product product;
    trn_group group;
    trn_accumulator accumulator;
    int accumulator_bits;          /* significand bits of chain and merge additions, 24..53; 0 = 24 */
    trn_fp32_mode fp32_mode;
    trn_tf32_input tf32_input;
    bool flush_inputs;             /* an operand that is subnormal in its own format becomes a zero of its sign */
    bool flush_products;           /* an exact product below 2^-126 becomes a zero of its sign */
    bool flush_sums;               /* a sum below 2^-126 becomes a zero of its sign */
    trn_format psum_format;        /* TRN_F32 or TRN_BF16 (Trainium3): PSUM after every tile; 0 = TRN_F32 */
    trn_rounding psum_rounding;    /* TRN_NEAREST_EVEN or TRN_STOCHASTIC, for TRN_BF16 */
    trn_mx_scale mx_scale_rule;
    int fp8_bias;                  /* exponent bias of FP8 operands; 0 = the format's own */
    int sr_bits;                   /* random bits that stochastic rounding compares, 1..32; 0 = 32 */
    trn_sr_where sr_where;
    bool activation_fused;         /* x*scale + bias with one rounding instead of two */
    trn_reduce_order reduce_order;
} trn_numerics;

/* ---- the table: one row a field ---- */

typedef struct trni_choice {
    const char *name;
    int value;
} trni_choice;

typedef struct trni_field {
    const char *name;
    size_t offset, size;
    const trni_choice *choice; /* the legal values, closed by a null name; null: any of low..high */
    int low, high, fallback;   /* fallback: what a zero stands for */
    const char *source;        /* where the default comes from, and what speaks against it */
} trni_field;

TRNI_FN const trni_field *trni_numerics_fields(int *count)
{
    static const trni_choice chains[] = { { "1", 1 }, { "2", 2 }, { "4", 4 }, { "8", 8 }, { "16", 16 }, { NULL, 0 } };
    static const trni_choice layout[] = { { "interleaved", TRN_CHAINS_INTERLEAVED }, { "blocked", TRN_CHAINS_BLOCKED }, { NULL, 0 } };
    static const trni_choice merge[] = { { "ascending", TRN_MERGE_ASCENDING }, { "pairwise", TRN_MERGE_PAIRWISE }, { NULL, 0 } };
    static const trni_choice product[] = { { "exact", TRN_PRODUCT_EXACT }, { "bf16", TRN_PRODUCT_BF16 }, { NULL, 0 } };
    static const trni_choice group[] = { { "sequential", TRN_GROUP_SEQUENTIAL }, { "exact", TRN_GROUP_EXACT }, { NULL, 0 } };
    static const trni_choice accumulator[] = { { "nearest_even", TRN_ACCUMULATOR_NEAREST_EVEN },
                                               { "toward_zero", TRN_ACCUMULATOR_TOWARD_ZERO },
                                               { "exact", TRN_ACCUMULATOR_EXACT },
                                               { NULL, 0 } };
    static const trni_choice fp32[] = { { "native", TRN_FP32_NATIVE }, { "split", TRN_FP32_SPLIT }, { "fp32r", TRN_FP32_R }, { NULL, 0 } };
    static const trni_choice tf32[] = { { "nearest_even", TRN_TF32_NEAREST_EVEN }, { "truncate", TRN_TF32_TRUNCATE }, { NULL, 0 } };
    static const trni_choice onoff[] = { { "off", 0 }, { "on", 1 }, { NULL, 0 } };
    static const trni_choice psum[] = { { "float32", TRN_F32 }, { "bfloat16", TRN_BF16 }, { NULL, 0 } };
    static const trni_choice rounding[] = { { "nearest_even", TRN_NEAREST_EVEN }, { "stochastic", TRN_STOCHASTIC }, { NULL, 0 } };
    static const trni_choice scale[] = { { "neuron", TRN_MX_SCALE_NEURON },
                                         { "ocp_floor", TRN_MX_SCALE_OCP_FLOOR },
                                         { "round_up", TRN_MX_SCALE_ROUND_UP },
                                         { NULL, 0 } };
    static const trni_choice where[] = { { "engine_writes", TRN_SR_ENGINE_WRITES }, { "all_writes", TRN_SR_ALL_WRITES }, { NULL, 0 } };
    static const trni_choice reduce[] = { { "sequential", TRN_REDUCE_SEQUENTIAL }, { "pairwise", TRN_REDUCE_PAIRWISE }, { NULL, 0 } };

#define TRNI_FIELD(f, choices, low, high, fallback, source) \
    { #f, offsetof(trn_numerics, f), sizeof(((trn_numerics *)0)->f), choices, low, high, fallback, source }
    static const trni_field field[] = {
        TRNI_FIELD(chains, chains, 0, 0, 4,
                   "assumed: four is the smallest count that reproduces the K-tiling differences published for Inf2 and Trn2; "
                   "one chain misses them by 2.5 to 3 times"),
        TRNI_FIELD(k_tile, NULL, 1, 128, 128, "documented: the array has 128 rows (NKI, nc_matmul); fewer rows per tile is a kernel's choice"),
        TRNI_FIELD(chain_layout, layout, 0, 0, 0,
                   "assumed: patents show odd and even rows on separate busses; blocks of consecutive rows miss the published figures"),
        TRNI_FIELD(merge, merge, 0, 0, 0, "assumed: the record does not tell the orders apart"),
        TRNI_FIELD(product, product, 0, 0, 0,
                   "documented: accumulation in FP32 (Neuron guides); third parties inferred rounded products from data that the "
                   "output cast explains as well"),
        TRNI_FIELD(group, group, 0, 0, 0, "assumed: only 'two (four) products and their sum per cycle' is public"),
        TRNI_FIELD(accumulator, accumulator, 0, 0, 0,
                   "assumed: truncating adders are contradicted by the published figures (24 units against 4), one exact sum too (2)"),
        TRNI_FIELD(accumulator_bits, NULL, 24, 53, 24, "assumed: FP32 is documented; a 26-bit single chain fits some published figures"),
        TRNI_FIELD(fp32_mode, fp32, 0, 0, 0,
                   "assumed: FP32 matmuls run as two instructions of high and low halves; a measured Trn1 error shows that all 24 bits take part"),
        TRNI_FIELD(tf32_input, tf32, 0, 0, 0, "assumed: not public whether the low 13 bits are rounded or ignored"),
        TRNI_FIELD(flush_inputs, onoff, 0, 0, 0, "assumed: a patent normalises subnormal operands; the guides are silent"),
        TRNI_FIELD(flush_products, onoff, 0, 0, 0, "assumed: the guides are silent"),
        TRNI_FIELD(flush_sums, onoff, 0, 0, 0, "assumed: the guides are silent"),
        TRNI_FIELD(psum_format, psum, 0, 0, TRN_F32, "documented: FP32; Trainium3 may keep BF16 (upcast, FP32 add, one rounding)"),
        TRNI_FIELD(psum_rounding, rounding, 0, 0, 0,
                   "documented: nearest even or stochastic on Trainium3; 71 of 72 printed device results are nearest even"),
        TRNI_FIELD(mx_scale_rule, scale, 0, 0, 0, "documented: NKI quantize_mx; older goldens use OCP's floor rule"),
        TRNI_FIELD(fp8_bias, NULL, 1, 30, 0, "documented: an adjustable bias exists (NeuronCore-v3 page); assumed: 7, 15 and 3 by default"),
        TRNI_FIELD(sr_bits, NULL, 1, 32, 32, "assumed: the number of random bits that are compared is not public"),
        TRNI_FIELD(sr_where, where, 0, 0, 0, "assumed: the guides speak of every narrowing conversion and leave the DMA open"),
        TRNI_FIELD(activation_fused, onoff, 0, 0, 0,
                   "measured: an error published for Trn1's exp needs x*scale + bias rounded before the table"),
        TRNI_FIELD(reduce_order, reduce, 0, 0, 0, "measured: one FP32 chain agrees with a published Trn2 figure, others do not"),
    };
#undef TRNI_FIELD
    *count = (int)(sizeof field / sizeof field[0]);
    return field;
}

TRNI_FN int trni_field_get(const trn_numerics *n, const trni_field *f)
{
    const char *at = (const char *)n + f->offset;
    if (f->size == sizeof(bool)) {
        unsigned char byte; /* not a bool: an invalid one may not be read */
        memcpy(&byte, at, 1);
        return byte;
    }
    int value;
    memcpy(&value, at, sizeof value);
    return value;
}

TRNI_FN void trni_field_set(trn_numerics *n, const trni_field *f, int value)
{
    char *at = (char *)n + f->offset;
    if (f->size == sizeof(bool)) {
        const bool flag = value != 0;
        memcpy(at, &flag, sizeof flag);
    } else {
        memcpy(at, &value, sizeof value);
    }
}

TRNI_FN bool trni_field_legal(const trni_field *f, int value)
{
    if (value == f->fallback) return true;
    if (!f->choice) return value >= f->low && value <= f->high;
    for (const trni_choice *c = f->choice; c->name; c++)
        if (c->value == value) return true;
    return false;
}

/* ---- the calls ---- */

/* Every field at its default. The three generations differ in what they can do, not in what is assumed of them. */
TRNI_FN trn_numerics trn_numerics_default(trn_generation generation)
{
    trn_numerics n;
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    (void)generation;
    memset(&n, 0, sizeof n);
    for (int i = 0; i < count; i++) trni_field_set(&n, &f[i], f[i].fallback);
    return n;
}

/* Copies `from` (null: the defaults) to `to` with every zero replaced by the default it stands for; an illegal value
 * is TRN_EINVAL with a sentence, and `to` is left alone. */
TRNI_FN trn_status trni_numerics_resolve(const trn_numerics *from, trn_generation generation, trn_numerics *to, trn_error *error)
{
    trn_numerics n = trn_numerics_default(generation);
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    for (int i = 0; from && i < count; i++) {
        const int value = trni_field_get(from, &f[i]);
        if (value == 0) continue;
        if (!trni_field_legal(&f[i], value))
            return trni_fail(error, TRN_EINVAL, "numerics.%s = %d is not a legal value", f[i].name, value);
        trni_field_set(&n, &f[i], value);
    }
    *to = n;
    return TRN_OK;
}

TRNI_FN trn_status trn_numerics_check(const trn_numerics *n, trn_error *error)
{
    trn_numerics resolved;
    return trni_numerics_resolve(n, TRN_GENERATION_DEFAULT, &resolved, error);
}

/* One "field=value" of `length` characters. */
TRNI_FN trn_status trni_numerics_setting(trn_numerics *n, const char *text, size_t length)
{
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    const char *equals = (const char *)memchr(text, '=', length);
    if (!equals) return TRN_EINVAL;
    const size_t name_length = (size_t)(equals - text), value_length = length - name_length - 1;
    const char *value = equals + 1;
    for (int i = 0; i < count; i++) {
        if (strlen(f[i].name) != name_length || memcmp(f[i].name, text, name_length) != 0) continue;
        for (const trni_choice *c = f[i].choice; c && c->name; c++)
            if (strlen(c->name) == value_length && memcmp(c->name, value, value_length) == 0) {
                trni_field_set(n, &f[i], c->value);
                return TRN_OK;
            }
        if (f[i].choice || value_length == 0 || value_length > 3) return TRN_EINVAL;
        int number = 0;
        for (size_t k = 0; k < value_length; k++) {
            if (value[k] < '0' || value[k] > '9') return TRN_EINVAL;
            number = 10 * number + (value[k] - '0');
        }
        if (!trni_field_legal(&f[i], number)) return TRN_EINVAL;
        trni_field_set(n, &f[i], number);
        return TRN_OK;
    }
    return TRN_EINVAL;
}

/* Fills *n from text: settings "field=value" and preset names, separated by commas, applied left to right to the
 * defaults, so that the text alone says what *n is; a preset starts over. TRN_EINVAL leaves *n alone. */
TRNI_FN trn_status trn_numerics_parse(trn_numerics *n, const char *text)
{
    static const struct { const char *name, *setting; } preset[] = {
        { "trn1", NULL },
        { "trn2", NULL },
        { "trn3", NULL },
        { "single_chain", "chains=1" },
        { "bf16_products", "product=bf16" },
        { "exact", "accumulator=exact" },
    };
    if (!n || !text) return TRN_EINVAL;
    trn_numerics result = trn_numerics_default(TRN_GENERATION_DEFAULT);
    while (*text) {
        const size_t length = strcspn(text, ",");
        const char *setting = text;
        size_t setting_length = length;
        for (unsigned i = 0; i < sizeof preset / sizeof preset[0]; i++) {
            if (strlen(preset[i].name) != length || memcmp(preset[i].name, text, length) != 0) continue;
            result = trn_numerics_default(TRN_GENERATION_DEFAULT);
            setting = preset[i].setting;
            setting_length = setting ? strlen(setting) : 0;
        }
        if (setting && trni_numerics_setting(&result, setting, setting_length) != TRN_OK) return TRN_EINVAL;
        text += length;
        if (*text == ',' && *++text == '\0') return TRN_EINVAL; /* a comma promises one more setting */
    }
    *n = result;
    return TRN_OK;
}

/* Appends at most what fits; `at` never passes the end. */
__attribute__((unused, format(printf, 4, 5))) static void trni_append(char *text, size_t size, size_t *at, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int wrote = vsnprintf(text + *at, size - *at, format, list);
    va_end(list);
    if (wrote > 0) *at += (size_t)wrote < size - *at ? (size_t)wrote : size - *at - 1;
}

TRNI_FN void trni_append_value(char *text, size_t size, size_t *at, const trni_field *f, int value)
{
    for (const trni_choice *c = f->choice; c && c->name; c++)
        if (c->value == value) {
            trni_append(text, size, at, "%s", c->name);
            return;
        }
    if (value == 0) trni_append(text, size, at, "the format's own"); /* fp8_bias */
    else trni_append(text, size, at, "%d", value);
}

/* Calls line(user, text) once per field: "chains = 4 (default 4; 1, 2, 4, 8, 16) - assumed: …". Null n: the defaults. */
TRNI_FN void trn_numerics_explain(const trn_numerics *n, void (*line)(void *user, const char *text), void *user)
{
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    for (int i = 0; i < count; i++) {
        char text[512];
        size_t at = 0;
        int value = n ? trni_field_get(n, &f[i]) : 0;
        if (value == 0) value = f[i].fallback;
        trni_append(text, sizeof text, &at, "%s = ", f[i].name);
        trni_append_value(text, sizeof text, &at, &f[i], value);
        trni_append(text, sizeof text, &at, " (default ");
        trni_append_value(text, sizeof text, &at, &f[i], f[i].fallback);
        if (f[i].choice)
            for (const trni_choice *c = f[i].choice; c->name; c++)
                trni_append(text, sizeof text, &at, "%s%s", c == f[i].choice ? "; " : ", ", c->name);
        else
            trni_append(text, sizeof text, &at, "; %d to %d", f[i].low, f[i].high);
        trni_append(text, sizeof text, &at, ") - %s", f[i].source);
        line(user, text);
    }
}

#endif /* TRN_NUMERICS_H */

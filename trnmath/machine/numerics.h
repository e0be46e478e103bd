/* machine/numerics.h - every behaviour that the public record leaves open: fields, defaults, sources.
 * A part of trn_numerics.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_NUMERICS_H
#define TRNI_MACHINE_NUMERICS_H

#include "spec_physical.h"

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
    TRN_ACCUMULATOR_EXACT,       /* no chains: the exact sum of the tile, rounded once to binary32 */
    /* The matrix units of other makers (array/systolic_aligned.h): no chains, but blocks of products that enter PSUM
     * one block after the other. Chains, merge, product, group, accumulator_bits and fp32_mode=split have no part in
     * them. */
    TRN_ACCUMULATOR_ALIGNED,        /* products and PSUM cut at one place below the largest, summed, rounded once */
    TRN_ACCUMULATOR_ALIGNED_LATE,   /* the products alone; their sum meets PSUM in a second alignment, rounding down */
    TRN_ACCUMULATOR_ALIGNED_HALVES, /* even and odd products apart, then as ALIGNED_LATE */
    TRN_ACCUMULATOR_PAIRWISE /* binary32 all along: neighbours are added, their sums, …, and the last to PSUM */
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

typedef enum trn_int32_overflow {
    TRN_INT32_WRAP = 0, /* the sum of I8 products modulo 2^32 */
    TRN_INT32_SATURATE  /* it stops at the largest and the smallest int32 */
} trn_int32_overflow;

typedef enum trn_mx_scale {
    TRN_MX_SCALE_NEURON = 0, /* twice OCP's: the QuantizeMX instruction */
    TRN_MX_SCALE_OCP_FLOOR,
    TRN_MX_SCALE_ROUND_UP,
    TRN_MX_SCALE_EVEN,
    TRN_MX_SCALE_CEIL
} trn_mx_scale;
enum { TRN_MX_SCALE_COUNT = TRN_MX_SCALE_CEIL + 1 };

typedef enum trn_sr_where {
    TRN_SR_ENGINE_WRITES = 0, /* every narrowing write of the four engines, but not of the DMA */
    TRN_SR_ALL_WRITES         /* of the DMA too */
} trn_sr_where;

typedef enum trn_reduce_order {
    TRN_REDUCE_SEQUENTIAL = 0, /* along the free axis, ascending, one accumulator per partition */
    TRN_REDUCE_PAIRWISE
} trn_reduce_order;

typedef struct trn_numerics {
    int chains; /* partial-sum chains of a column: 1, 2, 4, 8, 16; 0 = 4 */
    int k_tile; /* rows of one tile, 1..128; 0 = 128 */
    trn_chain_layout chain_layout;
    trn_merge merge;
    trn_product product;
    trn_group group;
    trn_accumulator accumulator;
    int accumulator_bits;    /* significand bits of chain and merge additions, 24..53; 0 = 24 */
    int aligned_bytes;       /* bytes of each operand in one block: 4, 8, 16, 32, 64; 0 = 16, i.e. 8 products of F16 */
    int aligned_bits;        /* fraction bits kept below the largest exponent of a block, 10..40; 0 = 24 */
    int aligned_result_bits; /* significand bits of PSUM after a block, 8..24; 0 = 24 */
    int aligned_floor;       /* a block's largest exponent counts as at least -aligned_floor, 1..300; 0 = 126 */
    trn_rounding aligned_rounding; /* of a block's sum: TRN_NEAREST_EVEN or TRN_TOWARD_ZERO */
    trn_fp32_mode fp32_mode;
    trn_tf32_input tf32_input;
    trn_int32_overflow int32_overflow;
    bool flush_inputs;          /* an operand that is subnormal in its own format becomes a zero of its sign */
    bool flush_products;        /* an exact product below 2^-126 becomes a zero of its sign */
    bool flush_sums;            /* a sum below 2^-126 becomes a zero of its sign */
    trn_format psum_format;     /* TRN_F32 or TRN_BF16 (Trainium3): PSUM after every tile; 0 = TRN_F32 */
    trn_rounding psum_rounding; /* TRN_NEAREST_EVEN or TRN_STOCHASTIC, for TRN_BF16: tile t of a product draws from
                                      stream + t, element [m, n] takes index m * N + n */
    trn_mx_scale mx_scale_rule;
    int fp8_bias; /* exponent bias of FP8 operands, double rows too; 0 = the format's own. Not of MX
                                      elements, and not of a cFP8, whose view has its own */
    int sr_bits;  /* random bits that stochastic rounding compares, 1..32; 0 = 32 */
    trn_sr_where sr_where;
    bool activation_fused; /* x*scale + bias with one rounding instead of two */
    trn_reduce_order reduce_order;
    int rsqrt_buckets; /* of ScalarE's rsqrt, an octave: 4 or 8; 0 = 4 */
} trn_numerics;

/* ---- the calls ---- */

/* Every field at its default. The three generations differ in what they can do, not in what is assumed of them. */
TRN_API trn_numerics trn_numerics_default(trn_generation generation);

/* TRN_EINVAL names the first field whose value is not legal. 0, the default, always is; so is a null n. */
TRN_API trn_status trn_numerics_check(const trn_numerics *n, trn_error *error);

/* ---- presets ---- */

/* The name of preset `index`, what it sets and where that comes from (either may be null); null beyond the last. */
TRN_API const char *trn_numerics_preset(int index, const char **setting, const char **source);

/* ---- text ---- */

/* Fills *n from text: settings "field=value" and preset names, separated by commas, applied left to right to the
 * defaults, so that the text alone says what *n is; a preset starts over. TRN_EINVAL leaves *n alone. */
TRN_API trn_status trn_numerics_parse(trn_numerics *n, const char *text);

/* The same, and a refusal says what would have been taken: "chains takes 1, 2, 4, 8, 16, not '32'". */
TRN_API trn_status trn_numerics_read(trn_numerics *n, const char *text, trn_error *error);

enum { TRN_NUMERICS_TEXT = 1024 }; /* characters: more than the longest text of trn_numerics_format */

/* Writes the shortest text that trn_numerics_parse reads back to the same: settings, or a preset's name and settings.
 * Null n: the defaults, whose text is "trn2". TRN_EINVAL: an illegal value; TRN_ENOSPC: more than `size` characters
 * with the closing zero (TRN_NUMERICS_TEXT are enough); either leaves `text` alone. */
TRN_API trn_status trn_numerics_format(const trn_numerics *n, char *text, size_t size);

/* Calls line(user, text) once per field: "chains = 4 (default 4; 1, 2, 4, 8, 16) - assumed: …". Null n: the
 * defaults. */
TRN_API void trn_numerics_explain(const trn_numerics *n, void (*line)(void *user, const char *text), void *user);

#if TRNI_BODIES

/* ---- which orders are fast ----
 * Affects: the time of products in orders that few programs use: rounded or flushed products, sums toward zero, exact
 * or of other widths, FP32 in halves; and of MX with scales below 2^-58 or above 2^46. Default (0): a file of the
 * program has the kernels that make them fast if it reads numerics from text (trn_numerics_parse, trn_numerics_read);
 * one that only sets such fields by hand does without, and compiles a fifth sooner. Enabled (1): it always has them, as
 * in C++ and where TRN_SPLIT has all bodies. Symptom of their absence: such a product is computed as it is defined, at
 * 12 to 70 ns for each multiplication, up to 1200 times as long (MX: 25 times), and has the same bits. */
#ifndef TRN_ALL_ORDERS
#if defined(TRN_SPLIT) || defined(__cplusplus)
#define TRN_ALL_ORDERS 1
#else
#define TRN_ALL_ORDERS 0
#endif
#endif

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
} trni_field;

/* One row a field: its name, its values (or the lowest and highest number), its default, and where that comes from and
 * what speaks against it. */
#define TRNI_NUMERICS_LIST(X)                                                                                          \
    X(chains, chains, 0, 0, 4,                                                                                         \
      "assumed: four is the smallest count that reproduces the K-tiling differences published for Inf2 and "           \
      "Trn2; one chain misses them by 2.5 to 3 times")                                                                 \
    X(k_tile, NULL, 1, 128, 128,                                                                                       \
      "documented: the array has 128 rows (NKI, nc_matmul); fewer rows per tile is a kernel's choice")                 \
    X(chain_layout, layout, 0, 0, 0,                                                                                   \
      "assumed: patents show odd and even rows on separate busses; blocks of consecutive rows miss the "               \
      "published figures")                                                                                             \
    X(merge, merge, 0, 0, 0, "assumed: the record does not tell the orders apart")                                     \
    X(product, product, 0, 0, 0,                                                                                       \
      "documented: accumulation in FP32 (Neuron guides); third parties inferred rounded products from data that "      \
      "the output cast explains as well")                                                                              \
    X(group, group, 0, 0, 0, "assumed: only 'two (four) products and their sum per cycle' is public")                  \
    X(accumulator, accumulator, 0, 0, 0,                                                                               \
      "assumed: truncating adders are contradicted by the published figures (24 units against 4), one exact sum "      \
      "too (2); aligned sums and pairwise ones are other makers'")                                                     \
    X(accumulator_bits, NULL, 24, 53, 24,                                                                              \
      "assumed: FP32 is documented; a 26-bit single chain fits some published figures")                                \
    X(aligned_bytes, bytes, 0, 0, 16,                                                                                  \
      "measured: 8 bytes on V100, 16 on A100, Ada and MI300, 32 on H100 and B200 (Khattak and Mikaitis 2025, "         \
      "MMA-Sim 2025)")                                                                                                 \
    X(aligned_bits, NULL, 10, 40, 24,                                                                                  \
      "measured: 23 on V100, 24 on T4, A100, Ada and MI300, 25 on H100 and B200, 13 for FP8 on Ada and H100 "          \
      "(same sources)")                                                                                                \
    X(aligned_result_bits, NULL, 8, 24, 24, "measured: 24, but 14 for FP8 on Ada and H100 (same sources)")             \
    X(aligned_floor, NULL, 1, 300, 126,                                                                                \
      "measured: 132 on A100 and 133 on H100 and B200 (Khattak and Mikaitis 2025); MMA-Sim has 126 for all")           \
    X(aligned_rounding, down, 0, 0, 0,                                                                                 \
      "measured: toward zero on NVIDIA's units, nearest even on AMD's (same sources)")                                 \
    X(fp32_mode, fp32, 0, 0, 0,                                                                                        \
      "assumed: FP32 matmuls run as two instructions of high and low halves; a measured Trn1 error shows that "        \
      "all 24 bits take part; of FP32R only the name is public")                                                       \
    X(tf32_input, tf32, 0, 0, 0, "assumed: not public whether the low 13 bits are rounded or ignored")                 \
    X(int32_overflow, int32, 0, 0, 0,                                                                                  \
      "assumed: INT8 matmuls are listed for Trainium1 without a word on sums beyond 32 bits")                          \
    X(flush_inputs, onoff, 0, 0, 0, "assumed: a patent normalises subnormal operands; the guides are silent")          \
    X(flush_products, onoff, 0, 0, 0, "assumed: the guides are silent")                                                \
    X(flush_sums, onoff, 0, 0, 0, "assumed: the guides are silent")                                                    \
    X(psum_format, psum, 0, 0, TRN_F32, "documented: FP32; Trainium3 may keep BF16 (upcast, FP32 add, one rounding)")  \
    X(psum_rounding, rounding, 0, 0, 0,                                                                                \
      "documented: nearest even or stochastic on Trainium3; 71 of 72 printed device results are nearest even")         \
    X(mx_scale_rule, scale, 0, 0, 0, "documented: NKI quantize_mx; older goldens use OCP's floor rule")                \
    X(fp8_bias, NULL, 1, 30, 0,                                                                                        \
      "documented: an adjustable bias exists (NeuronCore-v3 page); assumed: 7, 15 and 3 by default")                   \
    X(sr_bits, NULL, 1, 32, 32, "assumed: the number of random bits that are compared is not public")                  \
    X(sr_where, where, 0, 0, 0, "assumed: the guides speak of every narrowing conversion and leave the DMA open")      \
    X(activation_fused, onoff, 0, 0, 0,                                                                                \
      "measured: an error published for Trn1's exp needs x*scale + bias rounded before the table")                     \
    X(reduce_order, reduce, 0, 0, 0, "measured: one FP32 chain agrees with a published Trn2 figure, others do not")    \
    X(rsqrt_buckets, buckets, 0, 0, 4,                                                                                 \
      "measured: 4 give 1.4799e-5 and 1.463e-5 where two kernels on Trn2 had 1.4799e-5 and 1.4635e-5 "                 \
      "(matmul_add_rmsnorm and add_rmsnorm_matmul of NKIBench, seed 42), 8, which reciprocal has, give 8e-7")

TRNI_FN const trni_field *trni_numerics_fields(int *count)
{
    static const trni_choice chains[] = { { "1", 1 }, { "2", 2 }, { "4", 4 }, { "8", 8 }, { "16", 16 }, { NULL, 0 } };
    static const trni_choice layout[] = { { "interleaved", TRN_CHAINS_INTERLEAVED },
                                          { "blocked", TRN_CHAINS_BLOCKED },
                                          { NULL, 0 } };
    static const trni_choice merge[] = { { "ascending", TRN_MERGE_ASCENDING },
                                         { "pairwise", TRN_MERGE_PAIRWISE },
                                         { NULL, 0 } };
    static const trni_choice product[] = { { "exact", TRN_PRODUCT_EXACT }, { "bf16", TRN_PRODUCT_BF16 }, { NULL, 0 } };
    static const trni_choice group[] = { { "sequential", TRN_GROUP_SEQUENTIAL },
                                         { "exact", TRN_GROUP_EXACT },
                                         { NULL, 0 } };
    static const trni_choice accumulator[] = { { "nearest_even", TRN_ACCUMULATOR_NEAREST_EVEN },
                                               { "toward_zero", TRN_ACCUMULATOR_TOWARD_ZERO },
                                               { "exact", TRN_ACCUMULATOR_EXACT },
                                               { "aligned", TRN_ACCUMULATOR_ALIGNED },
                                               { "aligned_late", TRN_ACCUMULATOR_ALIGNED_LATE },
                                               { "aligned_halves", TRN_ACCUMULATOR_ALIGNED_HALVES },
                                               { "pairwise", TRN_ACCUMULATOR_PAIRWISE },
                                               { NULL, 0 } };
    static const trni_choice bytes[] = {
        { "4", 4 }, { "8", 8 }, { "16", 16 }, { "32", 32 }, { "64", 64 }, { NULL, 0 }
    };
    static const trni_choice down[] = { { "nearest_even", TRN_NEAREST_EVEN },
                                        { "toward_zero", TRN_TOWARD_ZERO },
                                        { NULL, 0 } };
    static const trni_choice int32[] = { { "wrap", TRN_INT32_WRAP }, { "saturate", TRN_INT32_SATURATE }, { NULL, 0 } };
    static const trni_choice fp32[] = {
        { "native", TRN_FP32_NATIVE }, { "split", TRN_FP32_SPLIT }, { "fp32r", TRN_FP32_R }, { NULL, 0 }
    };
    static const trni_choice tf32[] = { { "nearest_even", TRN_TF32_NEAREST_EVEN },
                                        { "truncate", TRN_TF32_TRUNCATE },
                                        { NULL, 0 } };
    static const trni_choice buckets[] = { { "4", 4 }, { "8", 8 }, { NULL, 0 } };
    static const trni_choice onoff[] = { { "off", 0 }, { "on", 1 }, { NULL, 0 } };
    static const trni_choice psum[] = { { "float32", TRN_F32 }, { "bfloat16", TRN_BF16 }, { NULL, 0 } };
    static const trni_choice rounding[] = { { "nearest_even", TRN_NEAREST_EVEN },
                                            { "stochastic", TRN_STOCHASTIC },
                                            { NULL, 0 } };
    static const trni_choice scale[] = { { "neuron", TRN_MX_SCALE_NEURON },     { "ocp_floor", TRN_MX_SCALE_OCP_FLOOR },
                                         { "round_up", TRN_MX_SCALE_ROUND_UP }, { "even", TRN_MX_SCALE_EVEN },
                                         { "ceil", TRN_MX_SCALE_CEIL },         { NULL, 0 } };
    static const trni_choice where[] = { { "engine_writes", TRN_SR_ENGINE_WRITES },
                                         { "all_writes", TRN_SR_ALL_WRITES },
                                         { NULL, 0 } };
    static const trni_choice reduce[] = { { "sequential", TRN_REDUCE_SEQUENTIAL },
                                          { "pairwise", TRN_REDUCE_PAIRWISE },
                                          { NULL, 0 } };

#define TRNI_X(f, choices, low, high, fallback, source)                                                                \
    { #f, offsetof(trn_numerics, f), sizeof(((trn_numerics *)0)->f), choices, low, high, fallback },
    static const trni_field field[] = { TRNI_NUMERICS_LIST(TRNI_X) };
#undef TRNI_X
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

/* ---- words ---- */

/* Appends at most what fits; `at` never passes the end. */
__attribute__((unused, format(TRNI_PRINTF, 4, 5))) static void trni_append(char *text, size_t size, size_t *at,
                                                                           const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int wrote = trni_vprint(text + *at, size - *at, format, list);
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
    if (value == 0)
        trni_append(text, size, at, "the format's own"); /* fp8_bias */
    else
        trni_append(text, size, at, "%d", value);
}

/* What a field takes: "1, 2, 4, 8, 16" or "1 to 128". */
TRNI_COLD void trni_append_legal(char *text, size_t size, size_t *at, const trni_field *f)
{
    for (const trni_choice *c = f->choice; c && c->name; c++)
        trni_append(text, size, at, "%s%s", c == f->choice ? "" : ", ", c->name);
    if (!f->choice) trni_append(text, size, at, "%d to %d", f->low, f->high);
}

/* ---- the calls ---- */

TRN_API trn_numerics trn_numerics_default(trn_generation generation)
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
TRNI_FN trn_status trni_numerics_resolve(const trn_numerics *from, trn_generation generation, trn_numerics *to,
                                         trn_error *error)
{
    trn_numerics n = trn_numerics_default(generation);
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    for (int i = 0; from && i < count; i++) {
        const int value = trni_field_get(from, &f[i]);
        if (value == 0) continue;
        if (!trni_field_legal(&f[i], value)) {
            char legal[200];
            size_t at = 0;
            trni_append_legal(legal, sizeof legal, &at, &f[i]);
            return trni_fail(error, TRN_EINVAL, "numerics.%s = %d is not a legal value: it takes %s", f[i].name, value,
                             legal);
        }
        trni_field_set(&n, &f[i], value);
    }
    *to = n;
    return TRN_OK;
}

TRN_API trn_status trn_numerics_check(const trn_numerics *n, trn_error *error)
{
    trn_numerics resolved;
    return trni_numerics_resolve(n, TRN_GENERATION_DEFAULT, &resolved, error);
}

/* The value that a field has by this text of `length` characters; false: it takes none of that name. */
TRNI_FN bool trni_field_read(const trni_field *f, const char *value, size_t length, int *number)
{
    for (const trni_choice *c = f->choice; c && c->name; c++)
        if (strlen(c->name) == length && memcmp(c->name, value, length) == 0) {
            *number = c->value;
            return true;
        }
    if (f->choice || length == 0 || length > 3) return false;
    *number = 0;
    for (size_t k = 0; k < length; k++) {
        if (value[k] < '0' || value[k] > '9') return false;
        *number = 10 * *number + (value[k] - '0');
    }
    return trni_field_legal(f, *number);
}

/* One "field=value" of `length` characters. */
TRNI_FN trn_status trni_numerics_setting(trn_numerics *n, const char *text, size_t length, trn_error *error)
{
    int count, number;
    const trni_field *f = trni_numerics_fields(&count);
    const char *equals = (const char *)memchr(text, '=', length);
    const size_t named = equals ? (size_t)(equals - text) : length;
    const int shown = length > 60 ? 60 : (int)length;
    for (int i = 0; i < count; i++) {
        char legal[200];
        size_t at = 0;
        if (strlen(f[i].name) != named || memcmp(f[i].name, text, named) != 0) continue;
        if (equals && trni_field_read(&f[i], equals + 1, length - named - 1, &number)) {
            trni_field_set(n, &f[i], number);
            return TRN_OK;
        }
        trni_append_legal(legal, sizeof legal, &at, &f[i]);
        const size_t value = named + (equals != NULL);
        return trni_fail(error, TRN_EINVAL, "%s takes %s, not '%.*s'", f[i].name, legal,
                         length - value > 40 ? 40 : (int)(length - value), text + value);
    }
    if (!length) return trni_fail(error, TRN_EINVAL, "nothing stands at a comma, where a setting should be");
    return trni_fail(error, TRN_EINVAL,
                     "'%.*s' is %s; settings are field=value, such as chains=1 or product=bf16 "
                     "(trn_numerics_explain lists all), presets trn2, single_chain, exact, nv_hopper and others",
                     shown, text, equals ? "no setting: there is no such field" : "neither a preset nor a field");
}

/* ---- presets ---- */

typedef struct trni_preset {
    const char *name, *setting, *source;
} trni_preset;

/* A device that multiplies FP8 by other rules than wider formats has two rows. AMD's CDNA1 has none: the two published
 * models of it contradict each other. */
TRNI_FN const trni_preset *trni_numerics_presets(int *count)
{
    static const trni_preset preset[] = {
        { "trn2", "", "the default of every field" },
        { "trn1", "", "as trn2: the generations differ in what they can do, not in what is assumed of them" },
        { "trn3", "", "as trn2" },
        { "single_chain", "chains=1", "assumed: the plainest array; published device figures contradict it" },
        { "bf16_products", "product=bf16",
          "assumed: third parties' reading of errors that the output cast explains as well" },
        { "exact", "accumulator=exact", "no machine: the reference that errors are measured against" },
        { "nv_volta", "accumulator=aligned,aligned_bytes=8,aligned_bits=23,aligned_rounding=toward_zero",
          "measured: V100, F16 (Fasi et al. 2021; Khattak and Mikaitis 2025: their 5000 results, reproduced)" },
        { "nv_turing", "accumulator=aligned,aligned_rounding=toward_zero",
          "measured: T4, F16 (Fasi et al. 2021 for the bits, MMA-Sim 2025 for the size of a block)" },
        { "nv_ampere", "accumulator=aligned,aligned_floor=132,aligned_rounding=toward_zero,tf32_input=truncate",
          "measured: A100 and A2, F16, BF16 and TF32 (Khattak and Mikaitis 2025: their 30000 results, reproduced)" },
        { "nv_ada", "accumulator=aligned,aligned_floor=132,aligned_rounding=toward_zero,tf32_input=truncate",
          "measured: RTX 1000 Ada, F16, BF16 and TF32 (same source: 15000 results, reproduced; those of the L40S are "
          "equal)" },
        { "nv_ada_fp8",
          "accumulator=aligned,aligned_bits=13,aligned_result_bits=14,aligned_floor=132,aligned_rounding=toward_zero",
          "measured: RTX 1000 Ada, E4M3FN and E5M2 (same source: 10000 results, reproduced; those of the L40S are "
          "equal)" },
        { "nv_hopper",
          "accumulator=aligned,aligned_bytes=32,aligned_bits=25,aligned_floor=133,aligned_rounding=toward_zero,"
          "tf32_input=truncate",
          "measured: H100 and H200, F16, BF16 and TF32 (same source: 30000 results, reproduced)" },
        { "nv_hopper_fp8",
          "accumulator=aligned,aligned_bytes=32,aligned_bits=13,aligned_result_bits=14,aligned_floor=133,"
          "aligned_rounding=toward_zero",
          "measured: H100, E4M3FN and E5M2 into a fresh PSUM (same source: 10000 results, reproduced; those of the "
          "H200 are equal)" },
        { "nv_blackwell",
          "accumulator=aligned,aligned_bytes=32,aligned_bits=25,aligned_floor=133,aligned_rounding=toward_zero,"
          "tf32_input=truncate",
          "measured: B200, F16, BF16 and TF32 (same source: 15000 results, reproduced); FP8 and MX as in MMA-Sim "
          "2025" },
        { "amd_cdna2", "accumulator=pairwise,aligned_bytes=8,flush_inputs=on,flush_products=on,flush_sums=on",
          "measured: MI210 and MI250, F16 and BF16 (MMA-Sim 2025 and Khattak and Mikaitis 2026 agree); BF16 "
          "instructions "
          "without _1k: aligned_bytes=4" },
        { "amd_cdna3", "accumulator=aligned_late,tf32_input=truncate",
          "measured: MI300, F16, BF16 and XF32 (same sources, which agree)" },
        { "amd_cdna3_fp8", "accumulator=aligned_halves,fp8_bias=8",
          "measured: MI300, FP8 (same sources); its E4M3FNUZ is E4M3FN with bias 8, but for the codes 7f, 80 and ff" },
    };
    *count = (int)(sizeof preset / sizeof preset[0]);
    return preset;
}

TRN_API const char *trn_numerics_preset(int index, const char **setting, const char **source)
{
    int count;
    const trni_preset *preset = trni_numerics_presets(&count);
    if (index < 0 || index >= count) return NULL;
    if (setting) *setting = preset[index].setting;
    if (source) *source = preset[index].source;
    return preset[index].name;
}

/* ---- text ---- */

/* The preset of that name; null: there is none. */
TRNI_FN const trni_preset *trni_numerics_find_preset(const char *name, size_t length)
{
    int count;
    const trni_preset *preset = trni_numerics_presets(&count);
    for (int i = 0; i < count; i++)
        if (strlen(preset[i].name) == length && memcmp(preset[i].name, name, length) == 0) return &preset[i];
    return NULL;
}

/* A text may name any order, and a Tensor engine defines this pointer to what makes them fast. (A tentative definition,
 * which C++ does not have.) */
#if !TRN_ALL_ORDERS
typedef void trni_opener(void);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wc++-compat"
static trni_opener *const trni_open_by_text __attribute__((unused));
#pragma GCC diagnostic pop
#endif

/* Settings, separated by commas; with `presets`, names of those too. */
TRNI_FN trn_status trni_numerics_settings(trn_numerics *n, const char *text, bool presets, trn_error *error)
{
    for (bool more = *text; more;) { /* a comma promises one more setting */
        const size_t length = strcspn(text, ",");
        const trni_preset *preset = presets ? trni_numerics_find_preset(text, length) : NULL;
        if (preset) *n = trn_numerics_default(TRN_GENERATION_DEFAULT);
        const trn_status status = preset ? trni_numerics_settings(n, preset->setting, false, error)
                                         : trni_numerics_setting(n, text, length, error);
        if (status != TRN_OK) return status;
        more = text[length] == ',';
        text += length + more;
    }
    return TRN_OK;
}

TRN_API trn_status trn_numerics_read(trn_numerics *n, const char *text, trn_error *error)
{
    if (!n || !text) return trni_fail(error, TRN_EINVAL, "there is no %s", n ? "text" : "place for numerics");
    trn_numerics result = trn_numerics_default(TRN_GENERATION_DEFAULT);
    const trn_status status = trni_numerics_settings(&result, text, true, error);
    if (status == TRN_OK) *n = result;
#if !TRN_ALL_ORDERS
    if (trni_open_by_text) trni_open_by_text();
#endif
    return status;
}

TRN_API trn_status trn_numerics_parse(trn_numerics *n, const char *text) { return trn_numerics_read(n, text, NULL); }

/* "start,field=value,…" for every field in which n is not `from`; false: a value that text cannot say. */
TRNI_FN bool trni_numerics_differences(const trn_numerics *n, const trn_numerics *from, const char *start, char *text)
{
    int count;
    size_t at = 0;
    const trni_field *f = trni_numerics_fields(&count);
    text[0] = '\0';
    trni_append(text, TRN_NUMERICS_TEXT, &at, "%s", start);
    for (int i = 0; i < count; i++) {
        const int value = trni_field_get(n, &f[i]);
        if (value == trni_field_get(from, &f[i])) continue;
        if (value == 0 && !f[i].choice) return false; /* fp8_bias: the format's own again */
        trni_append(text, TRN_NUMERICS_TEXT, &at, "%s%s=", at ? "," : "", f[i].name);
        trni_append_value(text, TRN_NUMERICS_TEXT, &at, &f[i], value);
    }
    return true;
}

TRN_API trn_status trn_numerics_format(const trn_numerics *n, char *text, size_t size)
{
    char best[TRN_NUMERICS_TEXT], trial[TRN_NUMERICS_TEXT];
    trn_numerics resolved, from = trn_numerics_default(TRN_GENERATION_DEFAULT);
    int count;
    const trni_preset *preset = trni_numerics_presets(&count);
    if (!text || trni_numerics_resolve(n, TRN_GENERATION_DEFAULT, &resolved, NULL) != TRN_OK) return TRN_EINVAL;
    (void)trni_numerics_differences(&resolved, &from, "", best); /* from the defaults text can say everything */
    for (int i = 0; i < count; i++) {
        if (trn_numerics_parse(&from, preset[i].name) != TRN_OK) return TRN_EINVAL;
        if (!trni_numerics_differences(&resolved, &from, preset[i].name, trial)) continue;
        if (!best[0] || strlen(trial) < strlen(best)) memcpy(best, trial, sizeof best);
    }
    const size_t length = strlen(best) + 1;
    if (length > size) return TRN_ENOSPC;
    memcpy(text, best, length);
    return TRN_OK;
}

TRN_API void trn_numerics_explain(const trn_numerics *n, void (*line)(void *user, const char *text), void *user)
{
#define TRNI_X(f, choices, low, high, fallback, source) source,
    static const char *const source[] = { TRNI_NUMERICS_LIST(TRNI_X) };
#undef TRNI_X
    TRNI_FLOATS;
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
        trni_append(text, sizeof text, &at, "; ");
        trni_append_legal(text, sizeof text, &at, &f[i]);
        trni_append(text, sizeof text, &at, ") - %s", source[i]);
        line(user, text);
    }
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_NUMERICS_H */

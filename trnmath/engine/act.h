/* engine/act.h - activation functions: names, tables of buckets, evaluation.
 * A part of trn_act.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_ACT_H
#define TRNI_ENGINE_ACT_H

#include "../base/cpu.h"

/* X(function, name, formula, low, high, at -0, at +inf, at -inf, what is outside, source); values as bits. */
#define TRNI_ACT_LIST(X)                                                                                               \
    X(COPY, "copy", "x", -INFINITY, INFINITY, 0x80000000u, 0x7f800000u, 0xff800000u, "nothing", EXACT)                 \
    X(SQUARE, "square", "x x", -INFINITY, INFINITY, 0u, 0x7f800000u, 0x7f800000u, "nothing", EXACT)                    \
    X(SIGMOID, "sigmoid", "1 / (1 + exp(-x))", -INFINITY, INFINITY, 0x3f000000u, 0x3f800000u, 0u, "nothing", UNIFORM)  \
    X(RELU, "relu", "x > 0 ? x : +0", -INFINITY, INFINITY, 0u, 0x7f800000u, 0u, "nothing", EXACT)                      \
    X(PRELU, "prelu", "x >= 0 ? x : param x", -INFINITY, INFINITY, 0x80000000u, 0x7f800000u, 0x7fc00000u, "nothing",   \
      EXACT)                                                                                                           \
    X(GELU, "gelu", "x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2", -INFINITY, INFINITY, 0u, 0x7f800000u, 0x80000000u, \
      "nothing", UNIFORM)                                                                                              \
    X(GELU_DX, "gelu_dx", "Phi(x) + x phi(x), phi(x) = exp(-x x / 2) / sqrt(2 pi)", -INFINITY, INFINITY, 0x3f000000u,  \
      0x3f800000u, 0x80000000u, "nothing", UNIFORM)                                                                    \
    X(GELU_APPRX_TANH, "gelu_apprx_tanh", "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x x x)))", -INFINITY, INFINITY,  \
      0u, 0x7f800000u, 0x80000000u, "nothing", UNIFORM)                                                                \
    X(GELU_APPRX_SIGMOID, "gelu_apprx_sigmoid", "x sigmoid(1.702 x)", -INFINITY, INFINITY, 0u, 0x7f800000u,            \
      0x80000000u, "nothing", UNIFORM)                                                                                 \
    X(GELU_APPRX_SIGMOID_DX, "gelu_apprx_sigmoid_dx", "s (1 + 1.702 x (1 - s)), s = sigmoid(1.702 x)", -INFINITY,      \
      INFINITY, 0x3f000000u, 0x3f800000u, 0x80000000u, "nothing", UNIFORM)                                             \
    X(SILU, "silu", "x sigmoid(x)", -INFINITY, INFINITY, 0u, 0x7f800000u, 0x80000000u, "nothing", UNIFORM)             \
    X(SILU_DX, "silu_dx", "s (1 + x (1 - s)), s = sigmoid(x)", -INFINITY, INFINITY, 0x3f000000u, 0x3f800000u,          \
      0x80000000u, "nothing", UNIFORM)                                                                                 \
    X(TANH, "tanh", "tanh(x)", -INFINITY, INFINITY, 0x80000000u, 0x3f800000u, 0xbf800000u, "nothing", UNIFORM)         \
    X(SOFTPLUS, "softplus", "log(1 + exp(x))", -INFINITY, INFINITY, 0x3f317218u, 0x7f800000u, 0u, "nothing", UNIFORM)  \
    X(MISH, "mish", "x tanh(softplus(x))", -INFINITY, INFINITY, 0u, 0x7f800000u, 0x80000000u, "nothing", UNIFORM)      \
    X(ERF, "erf", "erf(x)", -INFINITY, INFINITY, 0x80000000u, 0x3f800000u, 0xbf800000u, "nothing", UNIFORM)            \
    X(ERF_DX, "erf_dx", "2 / sqrt(pi) exp(-x x)", -INFINITY, INFINITY, 0x3f906ebbu, 0u, 0u, "nothing", UNIFORM)        \
    X(EXP, "exp", "exp(x)", -INFINITY, INFINITY, 0x3f800000u, 0x7f800000u, 0u, "nothing", MEASURED)                    \
    X(LOG, "log", "log(x)", 0x1p-64, 0x1p64, 0xff800000u, 0x7f800000u, 0x7fc00000u,                                    \
      "the same buckets, scaled; 0 gives -infinity, x < 0 NaN", POWER)                                                 \
    X(SIN, "sin", "sin(x)", -3.14159265358979323846, 3.14159265358979323846, 0x80000000u, 0x7f800000u, 0xff800000u,    \
      "the last bucket's cubic, [3, 3.25), of |x|, with the sign of x", EXTENDED)                                      \
    X(ARCTAN, "arctan", "atan(x)", -1.57079632679489661923, 1.57079632679489661923, 0x80000000u, 0x7f800000u,          \
      0xff800000u, "the last bucket's cubic, [1.5, 1.75), of |x|, with the sign of x", EXTENDED)                       \
    X(SQRT, "sqrt", "sqrt(x)", 0x1p-116, 0x1p118, 0u, 0x7f800000u, 0x7fc00000u,                                        \
      "the same buckets, scaled; 0 gives +0, x < 0 NaN", POWER)                                                        \
    X(RSQRT, "rsqrt", "1 / sqrt(x)", 0x1p-87, 0x1p97, 0x7f800000u, 0u, 0x7fc00000u,                                    \
      "the same buckets, scaled; 0 gives +infinity, x < 0 NaN", POWER)                                                 \
    X(RECIPROCAL, "reciprocal", "1 / x", 0x1p-42, 0x1p42, 0xff800000u, 0u, 0x80000000u,                                \
      "(the range is that of |x|) the same buckets, scaled; 0 gives infinity, both with the sign of x", POWER)         \
    X(SIGN, "sign", "1, -1, or +0 for zeros", -INFINITY, INFINITY, 0u, 0x3f800000u, 0xbf800000u, "nothing", EXACT)     \
    X(ABS, "abs", "|x|", -INFINITY, INFINITY, 0u, 0x7f800000u, 0x7f800000u, "nothing", EXACT)

typedef enum trn_act {
#define TRNI_X(op, ...) TRN_ACT_##op,
    TRNI_ACT_LIST(TRNI_X)
#undef TRNI_X
        TRN_ACT_COUNT
} trn_act;

/* Of every function: NaN gives 7fc00000, and so does whatever else is NaN. Subnormal arguments count as the numbers
 * that they are, and results may be subnormal (assumed). */
typedef struct trn_act_info {
    trn_act op;
    const char *name;    /* NKI's */
    const char *formula; /* assumed: NKI names functions without defining them */
    double low, high;    /* the valid range (documented), both ends included; reciprocal: of |x| */
    uint32_t at_minus_zero, at_infinity, at_minus_infinity; /* of the engine model, as bits; prelu: for param = 0 */
    const char *outside;                                    /* of the valid range (documented for sin, else assumed) */
    const char *source;
} trn_act_info;

/* NULL for what is no function. */
TRN_API const trn_act_info *trn_act_info_of(trn_act op);

/* NKI's name, such as "gelu"; "no function" for what is none. */
TRN_API const char *trn_act_name(trn_act op);

/* TRN_ACT_COUNT when there is none of that name. */
TRN_API trn_act trn_act_from_name(const char *name);

/* ---- tables ---- */

/* f(x) = c0 + c1 d + c2 d d + c3 d d d, d = x - centre of the bucket. */
typedef struct trn_act_bucket {
    float c[4];
} trn_act_bucket;

typedef enum trn_act_beyond {
    TRN_ACT_BEYOND_CUBIC = 0, /* that of the last bucket */
    TRN_ACT_BEYOND_VALUE,
    TRN_ACT_BEYOND_ARGUMENT
} trn_act_beyond;

typedef enum trn_act_symmetry {
    TRN_ACT_SYMMETRY_NONE = 0,
    TRN_ACT_SYMMETRY_ODD, /* f(-x) = -f(x), -0 included: the negative side is not looked at */
    TRN_ACT_SYMMETRY_EVEN
} trn_act_symmetry;

/* How other octaves follow from the table's own. With m = 2^-k x in [1, 2) or [1, 4): */
typedef enum trn_act_scaling {
    TRN_ACT_SCALING_NONE = 0,
    TRN_ACT_SCALING_RECIPROCAL, /* f(x) = 2^-k f(m), k any */
    TRN_ACT_SCALING_SQRT,       /* f(x) = 2^(k/2) f(m), k even */
    TRN_ACT_SCALING_RSQRT,      /* f(x) = 2^(-k/2) f(m), k even */
    TRN_ACT_SCALING_LOG         /* c0 becomes c0 + k log 2, rounded to binary32 */
} trn_act_scaling;

/* The arguments of one sign, in buckets from zero outwards: first the one about zero, then those of the octaves. */
typedef struct trn_act_side {
    float end; /* |x| >= end lies beyond the last bucket, which is the one that holds the largest number below it */
    trn_act_beyond beyond;
    float value;
    int first; /* its bucket about zero */
    int joint; /* buckets from this one on, counted from the one about zero, … */
    int at;    /* … stand from here on in the list: tails that functions share. joint 0: all stand together */
} trn_act_side;

enum { TRN_ACT_OCTAVES = 15, TRN_ACT_MOST_LOG2_BUCKETS = 10 };

typedef struct trn_act_table {
    const trn_act_bucket *bucket; /* the list, and how many there are in it */
    int buckets;
    trn_act_symmetry symmetry;
    trn_act_scaling scaling;
    int lowest_exponent;                   /* the first octave is [2^lowest, 2^(lowest+1)): -126..127; scaling: 0 */
    int octaves;                           /* 1..TRN_ACT_OCTAVES; with scaling 1, or 2 for the roots */
    uint8_t log2_buckets[TRN_ACT_OCTAVES]; /* octave i has 2^log2_buckets[i] of them, equally wide; with scaling all
                                               octaves have those of the first */
    trn_act_side positive, negative;       /* scaling: only positive.first counts, there being no bucket about zero */
    float at_zero, at_infinity;            /* scaling only: f(0), f(infinity), with the sign of x where f is odd */
} trn_act_table;

/* The library's own table; one without buckets for the functions that are exact and have none (and for no function). */
TRN_API trn_act_table trn_act_table_of(trn_act op);

/* ---- checking one ---- */

/* TRN_OK when every binary32 number finds its bucket inside the list. */
TRN_API trn_status trn_act_table_check(const trn_act_table *t, trn_error *error);

#if TRNI_BODIES

#include <math.h>

#include "act_data.h"

TRN_API const trn_act_info *trn_act_info_of(trn_act op)
{
    static const char EXACT[] = "assumed: one exact operation, no table";
    static const char UNIFORM[] = "assumed: buckets as those of exp, up to where the function is its limit in binary32";
    static const char MEASURED[] =
        "measured: buckets of 0.25 give the error published for Trainium2; documented: exp(0) is "
        "1, exp(-infinity) 0, nothing above 1 for x <= 0; assumed: one bucket an octave below 0.25";
    static const char EXTENDED[] = "documented: no reduction, no clamping; the width is that of exp's buckets";
    static const char POWER[] =
        "measured for reciprocal: eight buckets an octave give the error published for Trainium2; "
        "assumed for others, and that octaves are scaled exactly (binary32 coefficients of x itself "
        "would overflow inside the documented ranges)";
#define TRNI_X(op, name, formula, low, high, minus_zero, inf, minus_inf, outside, source)                              \
    { TRN_ACT_##op, name, formula, (double)(low), (double)(high), minus_zero, inf, minus_inf, outside, source },
    static const trn_act_info table[TRN_ACT_COUNT] = { TRNI_ACT_LIST(TRNI_X) };
#undef TRNI_X
    return (unsigned)op < TRN_ACT_COUNT ? &table[(unsigned)op] : NULL;
}

TRN_API const char *trn_act_name(trn_act op)
{
    const trn_act_info *info = trn_act_info_of(op);
    return info ? info->name : "no function";
}

TRN_API trn_act trn_act_from_name(const char *name)
{
    for (int i = 0; i < TRN_ACT_COUNT; i++)
        if (strcmp(name, trn_act_name((trn_act)i)) == 0) return (trn_act)i;
    return TRN_ACT_COUNT;
}

/* ---- tables ---- */

TRNI_FN trn_act_table trni_act_table_empty(void)
{
    trn_act_table t;
    memset(&t, 0, sizeof t);
    t.bucket = (const trn_act_bucket *)(const void *)trni_act_words;
    t.buckets = TRNI_ACT_ROWS;
    return t;
}

typedef struct trni_act_layout {
    trn_act op;
    trn_act_symmetry symmetry;
    trn_act_side positive, negative; /* value: see bits */
    uint32_t bits[2];
} trni_act_layout;

TRNI_FN trn_act_table trni_act_uniform(const trni_act_layout *l)
{
    trn_act_table t = trni_act_table_empty();
    t.symmetry = l->symmetry;
    t.positive = l->positive;
    t.negative = l->negative;
    t.positive.value = trni_float(l->bits[0]);
    t.negative.value = trni_float(l->bits[1]);
    t.lowest_exponent = TRNI_ACT_LOWEST;
    t.octaves = TRNI_ACT_OCTAVES;
    for (int i = 0; i < t.octaves; i++) /* a width of 0.25 from 0.25 on */
        t.log2_buckets[i] = (uint8_t)(TRNI_ACT_LOWEST + i + 2 > 0 ? TRNI_ACT_LOWEST + i + 2 : 0);
    return t;
}

TRNI_FN trn_act_table trni_act_power(trn_act op, int octaves, int first, int log2_buckets)
{
    const bool reciprocal = op == TRN_ACT_RECIPROCAL, root = op == TRN_ACT_SQRT;
    trn_act_table t = trni_act_table_empty();
    t.symmetry = reciprocal ? TRN_ACT_SYMMETRY_ODD : TRN_ACT_SYMMETRY_NONE;
    t.scaling = reciprocal            ? TRN_ACT_SCALING_RECIPROCAL
                : root                ? TRN_ACT_SCALING_SQRT
                : op == TRN_ACT_RSQRT ? TRN_ACT_SCALING_RSQRT
                                      : TRN_ACT_SCALING_LOG;
    t.octaves = octaves;
    t.log2_buckets[0] = t.log2_buckets[1] = (uint8_t)log2_buckets;
    t.positive.first = first;
    t.at_zero = trni_float(root ? 0 : op == TRN_ACT_LOG ? TRNI_F32_SIGN | TRNI_F32_INF : TRNI_F32_INF);
    t.at_infinity = trni_float(root || op == TRN_ACT_LOG ? TRNI_F32_INF : 0);
    return t;
}

/* Power laws by 2^log2_buckets an octave, 0: as many as the function has by default. Without buckets: none has. */
TRNI_FN trn_act_table trni_act_power_of(trn_act op, int log2_buckets)
{
#define TRNI_X(op, octaves, first, log2_buckets) { TRN_ACT_##op, octaves, first, log2_buckets },
    static const struct {
        trn_act op;
        int octaves, first, log2_buckets;
    } power[] = { TRNI_ACT_POWERS(TRNI_X) };
#undef TRNI_X
    for (size_t i = 0; i < sizeof power / sizeof *power; i++)
        if (power[i].op == op && (!log2_buckets || power[i].log2_buckets == log2_buckets))
            return trni_act_power(op, power[i].octaves, power[i].first, power[i].log2_buckets);
    trn_act_table none = trni_act_table_empty();
    none.bucket = NULL;
    none.buckets = 0;
    return none;
}

TRN_API trn_act_table trn_act_table_of(trn_act op)
{
#define TRNI_X(op, symmetry, end0, beyond0, value0, first0, joint0, at0, end1, beyond1, value1, first1, joint1, at1)   \
    { TRN_ACT_##op,                                                                                                    \
      TRN_ACT_SYMMETRY_##symmetry,                                                                                     \
      { end0, TRN_ACT_BEYOND_##beyond0, 0.0f, first0, joint0, at0 },                                                   \
      { end1, TRN_ACT_BEYOND_##beyond1, 0.0f, first1, joint1, at1 },                                                   \
      { value0, value1 } },
    static const trni_act_layout layout[] = { TRNI_ACT_LAYOUTS(TRNI_X) };
#undef TRNI_X
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++)
        if (layout[i].op == op) return trni_act_uniform(&layout[i]);
    return trni_act_power_of(op, 0);
}

/* ---- checking one ---- */

/* Which bucket of a side, counted from the one about zero, holds |x| = `magnitude` (bits, below the end). */
TRNI_FN int64_t trni_act_position(const trn_act_table *t, uint32_t magnitude)
{
    const int exponent = (int)(magnitude >> 23) - 127 - t->lowest_exponent;
    if (exponent < 0) return 0;
    int64_t position = 1;
    for (int i = 0; i < exponent; i++) position += (int64_t)1 << t->log2_buckets[i];
    return position + ((magnitude & 0x7fffff) >> (23 - t->log2_buckets[exponent]));
}

TRNI_DRIVER trn_status trni_act_check_side(const trn_act_table *t, const trn_act_side *side, const char *name,
                                           trn_error *error)
{
    const uint32_t end = trni_bits(side->end);
    const int top = t->lowest_exponent + t->octaves; /* buckets end at 2^top at the latest */
    if (end == 0 || end > TRNI_F32_INF)
        return trni_fail(error, TRN_EINVAL, "table: the %s side ends at %g; it takes a number above 0", name,
                         (double)side->end);
    if (top <= 127 && end > (uint32_t)(127 + top) << 23)
        return trni_fail(error, TRN_EINVAL, "table: the %s side ends at %g but its %d octaves end at 2^%d", name,
                         (double)side->end, t->octaves, top);
    if ((unsigned)side->beyond > TRN_ACT_BEYOND_ARGUMENT)
        return trni_fail(error, TRN_EINVAL, "table: beyond the %s side is %d, not one of trn_act_beyond", name,
                         (int)side->beyond);
    const int64_t count = trni_act_position(t, end - 1) + 1,
                  own = side->joint > 0 && side->joint < count ? side->joint : count;
    if (side->joint < 0 || side->first < 0 || side->first > t->buckets - own)
        return trni_fail(error, TRN_EINVAL, "table: the %s side needs %lld buckets from %d on (joint %d), there are %d",
                         name, (long long)own, side->first, side->joint, t->buckets);
    if (own < count && (side->at < 0 || side->at > t->buckets - (count - own)))
        return trni_fail(error, TRN_EINVAL, "table: the %s side's last %lld buckets stand from %d on, there are %d",
                         name, (long long)(count - own), side->at, t->buckets);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_act_check_scaling(const trn_act_table *t, trn_error *error)
{
    const bool root = t->scaling == TRN_ACT_SCALING_SQRT || t->scaling == TRN_ACT_SCALING_RSQRT;
    const int octaves = root ? 2 : 1, count = octaves << t->log2_buckets[0];
    if (t->octaves != octaves || t->lowest_exponent != 0)
        return trni_fail(error, TRN_EINVAL, "table: %d octaves from 2^%d on; with scaling %d it takes %d from 2^0 on",
                         t->octaves, t->lowest_exponent, (int)t->scaling, octaves);
    if (t->positive.first < 0 || t->positive.first > t->buckets - count)
        return trni_fail(error, TRN_EINVAL, "table: %d buckets from %d on, there are %d", count, t->positive.first,
                         t->buckets);
    if (t->symmetry == TRN_ACT_SYMMETRY_EVEN)
        return trni_fail(error, TRN_EINVAL, "table: an even function has no scaling here");
    return TRN_OK;
}

TRN_API trn_status trn_act_table_check(const trn_act_table *t, trn_error *error)
{
    TRNI_FLOATS;
    if (!t->bucket || t->buckets < 1) return trni_fail(error, TRN_EINVAL, "table: it has no buckets (%d)", t->buckets);
    if ((unsigned)t->symmetry > TRN_ACT_SYMMETRY_EVEN || (unsigned)t->scaling > TRN_ACT_SCALING_LOG)
        return trni_fail(error, TRN_EINVAL, "table: symmetry %d or scaling %d is none that there is", (int)t->symmetry,
                         (int)t->scaling);
    if (t->octaves < 1 || t->octaves > TRN_ACT_OCTAVES)
        return trni_fail(error, TRN_EINVAL, "table: octaves is %d; it takes 1 to %d", t->octaves, (int)TRN_ACT_OCTAVES);
    if (t->lowest_exponent < -126 || t->lowest_exponent + t->octaves > 128)
        return trni_fail(error, TRN_EINVAL, "table: %d octaves from 2^%d on are not all normal numbers", t->octaves,
                         t->lowest_exponent);
    for (int i = 0; i < t->octaves; i++)
        if (t->log2_buckets[i] > TRN_ACT_MOST_LOG2_BUCKETS)
            return trni_fail(error, TRN_EINVAL, "table: octave %d has 2^%d buckets, at most 2^%d are possible", i,
                             (int)t->log2_buckets[i], (int)TRN_ACT_MOST_LOG2_BUCKETS);
    if (t->scaling != TRN_ACT_SCALING_NONE) return trni_act_check_scaling(t, error);
    trn_status status = trni_act_check_side(t, &t->positive, "positive", error);
    if (!status && t->symmetry == TRN_ACT_SYMMETRY_NONE)
        status = trni_act_check_side(t, &t->negative, "negative", error);
    return status;
}

/* ---- a table, ready to be evaluated ---- */

enum { TRNI_ACT_SLOTS = 16 }; /* octaves, and before them what is below: what one permutation of AVX-512 looks up */

/* Rows for registers. Of scalings only `low`, by the bits of x that ask. */
enum { TRNI_ACT_QUARTERS = 32 };

typedef struct trni_act_near {
    float row[2][4][TRNI_ACT_QUARTERS], centre[TRNI_ACT_QUARTERS]; /* by side: |x| from 1/4 to 8 */
    float low[4][16], low_centre[16];                              /* by side, 8 each: octaves below 1/4 */
} trni_act_near;

typedef struct trni_act_plan {
    uint32_t shift[TRNI_ACT_SLOTS]; /* of the pattern, so that octave and bucket are left; 31 below the first octave */
    uint32_t keep[TRNI_ACT_SLOTS];  /* the bits that a bucket's numbers share; 0 below the first octave */
    uint32_t half[TRNI_ACT_SLOTS];  /* what is between a bucket's lower end and its centre */
    int32_t base[TRNI_ACT_SLOTS];   /* a bucket's position less its shifted pattern */
    const trn_act_bucket *bucket;
    int32_t slot_exponent; /* biased, of slot 0 */
    /* By the sign of x: */
    int32_t first[2], joint[2], jump[2];          /* buckets from `joint` on are `jump` further */
    uint32_t last[2];                             /* pattern of the last bucket's last number */
    uint32_t end[2];                              /* of what lies beyond: a NaN where nothing does */
    uint32_t beyond_argument[2], beyond_value[2]; /* beyond: (x and the one) or the other */
    uint32_t look, flip; /* symmetry: bits of x that are looked at; bits of it that the result takes */
    /* Scaling: */
    trn_act_scaling scaling;
    int32_t period_mask; /* 1: k is even */
    uint32_t scale_shift, at_zero, at_infinity, at_negative;
    int32_t scale_sign;
    trn_act op; /* TRN_ACT_COUNT where a table is evaluated */
    float param;
    trn_isa isa;
    bool has_near;
    trni_act_near near_rows; /* if has_near */
} trni_act_plan;

TRNI_FN void trni_act_plan_side(trni_act_plan *p, int sign, const trn_act_side *side)
{
    const uint32_t end = trni_bits(side->end), value = trni_bits(side->value);
    p->first[sign] = side->first;
    p->joint[sign] = side->joint ? side->joint : INT32_MAX;
    p->jump[sign] = side->joint ? side->at - side->joint - side->first : 0;
    p->last[sign] = end - 1;
    p->end[sign] = side->beyond == TRN_ACT_BEYOND_CUBIC ? TRNI_F32_NAN : end;
    p->beyond_argument[sign] = side->beyond == TRN_ACT_BEYOND_ARGUMENT ? 0xffffffffu : 0;
    p->beyond_value[sign] = side->beyond == TRN_ACT_BEYOND_VALUE ? value : 0;
}

TRNI_FN void trni_act_plan_octaves(trni_act_plan *p, const trn_act_table *t)
{
    p->slot_exponent = 127 + t->lowest_exponent - 1;
    p->shift[0] = 31;
    for (int i = 0, position = 1; i < t->octaves; i++) {
        const int buckets = 1 << t->log2_buckets[i], shift = 23 - t->log2_buckets[i];
        p->shift[i + 1] = (uint32_t)shift;
        p->keep[i + 1] = ~0u << shift;
        p->half[i + 1] = 1u << (shift - 1);
        p->base[i + 1] = position - (127 + t->lowest_exponent + i) * buckets;
        position += buckets;
    }
}

TRNI_FN void trni_act_plan_scaling(trni_act_plan *p, const trn_act_table *t)
{
    const bool root = t->scaling == TRN_ACT_SCALING_SQRT || t->scaling == TRN_ACT_SCALING_RSQRT;
    p->period_mask = root ? 1 : 0;
    p->scale_shift = root ? 1 : 0;
    p->scale_sign = t->scaling == TRN_ACT_SCALING_LOG ? 0 : t->scaling == TRN_ACT_SCALING_SQRT ? 1 : -1;
    p->shift[0] = 23u - t->log2_buckets[0];
    p->half[0] = 1u << (p->shift[0] - 1);
    p->first[0] = t->positive.first;
    p->at_zero = trni_bits(t->at_zero);
    p->at_infinity = trni_bits(t->at_infinity);
    p->at_negative = t->symmetry == TRN_ACT_SYMMETRY_ODD ? 0 : TRNI_F32_NAN;
}

/* `table` (checked) replaces the library's own of `op`; `param` is prelu's slope. */
TRNI_FN void trni_act_plan_init(trni_act_plan *p, trn_act op, float param, const trn_act_table *table, trn_isa isa)
{
    const trn_act_table own = trn_act_table_of(op), *t = table ? table : &own;
    memset(p, 0, offsetof(trni_act_plan, near_rows));
    p->param = param;
    p->isa = isa;
    p->op = t->buckets ? TRN_ACT_COUNT : op;
    if (!t->buckets) return;
    p->bucket = t->bucket;
    p->scaling = t->scaling;
    p->look = t->symmetry == TRN_ACT_SYMMETRY_NONE ? 0xffffffffu : ~TRNI_F32_SIGN;
    p->flip = t->symmetry == TRN_ACT_SYMMETRY_ODD ? TRNI_F32_SIGN : 0;
    if (t->scaling != TRN_ACT_SCALING_NONE) {
        trni_act_plan_scaling(p, t);
        return;
    }
    trni_act_plan_octaves(p, t);
    trni_act_plan_side(p, 0, &t->positive);
    trni_act_plan_side(p, 1, t->symmetry == TRN_ACT_SYMMETRY_NONE ? &t->negative : &t->positive);
}

/* ---- rows that most arguments ask for, for kernels that hold them in registers ----
 *
 * Of buckets as the library's own (one an octave from 2^-8 to 1/4, then a quarter wide) those of |x| < 8, by quarters
 * and by octaves. What lies beyond an end below 8 is a row like the others: a constant, x itself, or the last cubic
 * with its centre. Of scalings all, by the four bits of x that ask for them. Not every table is such (a user's may be
 * anything): then the list is read. */

/* The row of a magnitude on one side, as if it were looked up in the list. */
TRNI_FN void trni_act_near_row(const trni_act_plan *p, int side, uint32_t magnitude, float c[4], float *centre)
{
    const uint32_t inside = magnitude < p->last[side] ? magnitude : p->last[side];
    const int32_t octave = (int32_t)(inside >> 23) - p->slot_exponent, slot = octave > 0 ? octave : 0;
    const int32_t position = p->base[slot] + (int32_t)(inside >> p->shift[slot]);
    const int32_t row = position + p->first[side] + (position >= p->joint[side] ? p->jump[side] : 0);
    memcpy(c, &p->bucket[row], 4 * sizeof(float));
    *centre = trni_float((inside & p->keep[slot]) | p->half[slot]);
    if (magnitude < p->end[side] || p->end[side] > TRNI_F32_INF) return;
    *centre = trni_float(magnitude) + 0.125f;
    c[0] = trni_float(p->beyond_value[side]);
    c[1] = c[2] = c[3] = 0.0f;
    if (!p->beyond_argument[side]) return;
    c[0] = side ? -*centre : *centre; /* c0 + (x - c0), which is exact */
    c[1] = 1.0f;
}

/* Can this end be among the rows? Between quarters, and with something else than a zero, whose sign a sum would lose;
 * and both sides have one list of centres. */
TRNI_FN bool trni_act_near_ends(const trni_act_plan *p, int side)
{
    const bool cubic = p->end[side] > TRNI_F32_INF;
    const uint32_t end = p->last[side] + 1;
    const float quarters = 4.0f * trni_float(end);
    if (end >= 0x41000000u) return true; /* 8 */
    if (quarters < 1.0f || (float)(int32_t)quarters < quarters) return false;
    return cubic ? p->look != 0xffffffffu : p->beyond_argument[side] || p->beyond_value[side] << 1;
}

TRNI_FN bool trni_act_near_fits(const trni_act_plan *p)
{
    static const unsigned char shift[12] = { 31, 23, 23, 23, 23, 23, 23, 23, 22, 21, 20, 19 };
    if (p->slot_exponent != 118) return false;
    for (int i = 0; i < 12; i++)
        if (p->shift[i] != shift[i]) return false;
    return trni_act_near_ends(p, 0) && trni_act_near_ends(p, 1);
}

/* Octaves stand where the last three bits of their exponents say, which are all different from 118 to 124. */
TRNI_FN bool trni_act_near_rows(trni_act_near *near_rows, const trni_act_plan *p)
{
    uint32_t most = 0;
    for (int i = 0; i < 2 * (TRNI_ACT_QUARTERS + 8); i++) {
        const int side = i & 1, at = i >> 1, octave = at - TRNI_ACT_QUARTERS;
        const uint32_t below = (uint32_t)(octave < 5 ? 120 + octave : 112 + octave) << 23; /* 117 is never asked for */
        float c[4], centre;
        trni_act_near_row(p, side, octave < 0 ? trni_bits(0.25f * (float)at) : below, c, &centre);
        if (octave < 0)
            near_rows->centre[at] = centre;
        else
            near_rows->low_centre[8 * side + octave] = centre;
        for (int j = 0; j < 4; j++) {
            const uint32_t magnitude = trni_bits(c[j]) & ~TRNI_F32_SIGN;
            most = magnitude > most ? magnitude : most;
            if (octave < 0)
                near_rows->row[side][j][at] = c[j];
            else
                near_rows->low[j][8 * side + octave] = c[j];
        }
    }
    return most < 0x70000000u; /* 2^97: no cubic of |d| < 8 is a NaN */
}

/* Scalings. The four bits from `shift` on choose a row: of two octaves it is the exponent's last bit that tells them
 * apart, and then m is taken in [1/2, 2): m 2^-2 with coefficients 4, 16 and 64 times as large, and a result scaled by
 * 2^±1 for k + 2. All of it is exact, because coefficients are 0 or from 2^-40 on. */
TRNI_FN void trni_act_near_scaling_row(const trni_act_plan *p, int at, float c[4])
{
    const int rows = 1 << (p->period_mask + 23 - (int)p->shift[0]), half = rows >> 1, row = at & (rows - 1);
    const bool upper = p->period_mask && row < half; /* the exponent is even */
    const int from = !p->period_mask ? row : upper ? row + half : row - half;
    float by = !upper ? 1.0f : p->scale_sign > 0 ? 0.5f : 2.0f;
    memcpy(c, &p->bucket[p->first[0] + from], 4 * sizeof(float));
    for (int j = 0; j < 4; j++, by *= upper ? 4.0f : 1.0f) c[j] *= by;
}

TRNI_FN float trni_act_near_size(float c) { return trni_float(trni_bits(c) & ~TRNI_F32_SIGN); }

/* Is every cubic near its c0, and that near 1, so that scaling it moves its exponent alone? (A logarithm's is never
 * scaled.) */
TRNI_FN bool trni_act_near_scaling(trni_act_near *near_rows, const trni_act_plan *p)
{
    const uint32_t least = 0x2b800000u, most = 0x4b800000u; /* 2^-40, 2^24 */
    bool fits = p->period_mask + 23 - (int)p->shift[0] <= 4 && (!p->flip || p->scaling == TRN_ACT_SCALING_RECIPROCAL);
    for (int at = 0; at < 16 && fits; at++) {
        float c[4];
        trni_act_near_scaling_row(p, at, c);
        for (int j = 0; j < 4; j++) {
            const uint32_t magnitude = trni_bits(c[j]) & ~TRNI_F32_SIGN;
            if (magnitude && (magnitude < least || magnitude > most)) fits = false;
            near_rows->low[j][at] = c[j];
        }
        const float d = trni_float((uint32_t)(104 + p->shift[0]) << 23); /* half a bucket */
        const float rest =
            trni_act_near_size(c[1]) * d + trni_act_near_size(c[2]) * (d * d) + trni_act_near_size(c[3]) * (d * d * d);
        const float size = trni_act_near_size(c[0]);
        if (p->scale_sign && !(size > 0.125f && size < 8.0f && rest < 0.25f * size)) fits = false;
    }
    return fits;
}

/* Lays them out, which takes a microsecond: from how many numbers on it pays (measured). */
enum { TRNI_ACT_NEAR_FROM = 4096 };

TRNI_FN void trni_act_plan_near(trni_act_plan *p)
{
    if (p->op != TRN_ACT_COUNT || !TRNI_X86 || !TRNI_INTRINSICS || p->isa == TRN_ISA_PORTABLE) return;
    if (p->scaling != TRN_ACT_SCALING_NONE)
        p->has_near = trni_act_near_scaling(&p->near_rows, p);
    else if (p->isa == TRN_ISA_AVX512)
        p->has_near = trni_act_near_fits(p) && trni_act_near_rows(&p->near_rows, p);
}

/* ---- evaluation, plain C ---- */

TRNI_INLINE float trni_act_canonical(float y) { return trni_is_nan_bits(trni_bits(y)) ? trni_float(TRNI_F32_NAN) : y; }

TRNI_INLINE float trni_act_cubic(const float c[4], float c0, float d)
{
    return __builtin_fmaf(__builtin_fmaf(__builtin_fmaf(c[3], d, c[2]), d, c[1]), d, c0);
}

TRNI_INLINE float trni_act_bucketed(const trni_act_plan *p, float argument)
{
    const uint32_t u = trni_bits(argument), x = u & p->look, magnitude = u & ~TRNI_F32_SIGN, sign = x >> 31;
    const uint32_t inside = magnitude < p->last[sign] ? magnitude : p->last[sign];
    const int32_t octave = (int32_t)(inside >> 23) - p->slot_exponent, slot = octave > 0 ? octave : 0;
    const int32_t position = p->base[slot] + (int32_t)(inside >> p->shift[slot]);
    const int32_t row = position + p->first[sign] + (position >= p->joint[sign] ? p->jump[sign] : 0);
    const uint32_t centre = (inside & p->keep[slot]) | p->half[slot] | (x & TRNI_F32_SIGN);
    float c[4];
    memcpy(c, &p->bucket[row], sizeof c);
    uint32_t y = trni_bits(trni_act_cubic(c, c[0], trni_float(x) - trni_float(centre)));
    if (magnitude >= p->end[sign] && magnitude <= TRNI_F32_INF)
        y = (x & p->beyond_argument[sign]) | p->beyond_value[sign];
    return trni_act_canonical(trni_float(y ^ (u & p->flip)));
}

TRNI_INLINE void trni_act_buckets_body(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = trni_act_bucketed(p, src[i]);
}
TRNI_DISPATCH_BESIDE(trni_act_buckets, (const trni_act_plan *p, float *dst, const float *src, size_t n),
                     (p, dst, src, n))

/* log 2 to 44 bits: its products with exponents are exact in binary64, so that no compiler's fusing changes the sum. */
#define TRNI_ACT_LOG2 0x1.62e42fefa3ap-1

TRNI_INLINE float trni_act_octave(uint32_t exponent) { return trni_float((exponent + 127) << 23); }

TRNI_INLINE float trni_act_scaled(const trni_act_plan *p, float argument)
{
    const uint32_t u = trni_bits(argument), magnitude = u & ~TRNI_F32_SIGN;
    const bool small = magnitude < 0x00800000;
    const uint32_t normal = small ? trni_bits(trni_float(magnitude) * 0x1p32f) : magnitude;
    const int32_t exponent = (int32_t)(normal >> 23) - 127 - (small ? 32 : 0), odd = exponent & p->period_mask;
    const uint32_t m = (normal & 0x7fffff) | (uint32_t)(127 + odd) << 23, shift = p->shift[0];
    const int32_t k = exponent - odd, row = (int32_t)((m - 0x3f800000) >> shift) + p->first[0];
    float c[4];
    memcpy(c, &p->bucket[row], sizeof c);
    const float d = trni_float(m) - trni_float((m >> shift << shift) + p->half[0]);
    const float base = p->scale_sign ? c[0] : (float)((double)k * TRNI_ACT_LOG2 + (double)c[0]);
    const int32_t scale = (k >> p->scale_shift) * p->scale_sign, most = scale >> 1; /* in two steps: it may be 2^149 */
    uint32_t y = trni_bits(trni_act_cubic(c, base, d) * trni_act_octave((uint32_t)most) *
                           trni_act_octave((uint32_t)(scale - most)));
    if (magnitude == TRNI_F32_INF) y = p->at_infinity;
    if (u >> 31) y |= p->at_negative;
    if (magnitude == 0) y = p->at_zero;
    y ^= u & p->flip;
    return trni_float(magnitude > TRNI_F32_INF || trni_is_nan_bits(y) ? TRNI_F32_NAN : y);
}

TRNI_INLINE void trni_act_scalings_body(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = trni_act_scaled(p, src[i]);
}
TRNI_DISPATCH_BESIDE(trni_act_scalings, (const trni_act_plan *p, float *dst, const float *src, size_t n),
                     (p, dst, src, n))

/* The functions without a table. */
TRNI_INLINE float trni_act_simple(trn_act op, float param, float x)
{
    switch (op) {
    case TRN_ACT_SQUARE: return trni_act_canonical(x * x);
    case TRN_ACT_RELU: return trni_act_canonical(x <= 0.0f ? 0.0f : x);
    case TRN_ACT_PRELU: {
        const float sloped = x * param;                   /* always, or loops are not vectors */
        const uint32_t below = 0u - (uint32_t)(x < 0.0f); /* a choice that gcc makes a vector of in AVX2, too */
        return trni_act_canonical(trni_float((trni_bits(sloped) & below) | (trni_bits(x) & ~below)));
    }
    case TRN_ACT_SIGN: return trni_act_canonical(x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x);
    case TRN_ACT_ABS: return trni_act_canonical(trni_float(trni_bits(x) & ~TRNI_F32_SIGN));
    case TRN_ACT_COPY:
    default: return trni_act_canonical(x);
    }
}

TRNI_INLINE void trni_act_exact_body(trn_act op, float param, float *dst, const float *src, size_t n)
{
#define TRNI_ACT_LOOP(name)                                                                                            \
    if (op == TRN_ACT_##name) {                                                                                        \
        for (size_t i = 0; i < n; i++) dst[i] = trni_act_simple(TRN_ACT_##name, param, src[i]);                        \
    }
    TRNI_ACT_LOOP(COPY)
    TRNI_ACT_LOOP(SQUARE)
    TRNI_ACT_LOOP(RELU)
    TRNI_ACT_LOOP(PRELU)
    TRNI_ACT_LOOP(SIGN)
    TRNI_ACT_LOOP(ABS)
#undef TRNI_ACT_LOOP
}
TRNI_DISPATCH(trni_act_exact, (trn_act op, float param, float *dst, const float *src, size_t n),
              (op, param, dst, src, n))

#if TRNI_X86 && TRNI_INTRINSICS

TRNI_SIMD_BEGIN
#include "../simd/act_avx2.h"
#include "../simd/act_avx512.h"
TRNI_SIMD_END
#endif
#if TRNI_AARCH64 && TRNI_INTRINSICS
#include "../simd/act_neon.h"
#endif

/* dst[i] = f(src[i]), i < n. dst may be src; other overlaps are not legal. */
TRNI_FN void trni_act_run(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    if (p->op != TRN_ACT_COUNT) {
        trni_act_exact_for(p->isa)(p->op, p->param, dst, src, n);
        return;
    }
    const bool scaled = p->scaling != TRN_ACT_SCALING_NONE;
#if TRNI_X86 && TRNI_INTRINSICS
    if (p->isa == TRN_ISA_AVX512)
        (scaled ? trni_simd_act_scalings_avx512 : trni_simd_act_buckets_avx512)(p, dst, src, n);
    else if (p->isa == TRN_ISA_AVX2)
        (scaled ? trni_simd_act_scalings_avx2 : trni_simd_act_buckets_avx2)(p, dst, src, n);
    else
#endif
#if TRNI_AARCH64 && TRNI_INTRINSICS
        (scaled ? trni_simd_act_scalings_neon : trni_simd_act_buckets_neon)(p, dst, src, n);
#else
    (scaled ? trni_act_scalings_for(p->isa) : trni_act_buckets_for(p->isa))(p, dst, src, n);
#endif
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_ACT_H */

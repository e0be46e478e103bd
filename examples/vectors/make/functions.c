/* functions.c - the Scalar engine's functions, and the tables of buckets that they are made of.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <math.h>
#include <stdio.h>

#include <trnmath/trn_scalar_engine.h>

/* ---- tables ---- */

static const char *beyond_text(const trn_act_side *side)
{
    static const char *const text[] = { "the cubic of the last bucket", "value", "x itself" };
    return text[side->beyond];
}

static void head_side(vec_file *f, const char *name, const trn_act_side *side)
{
    char key[32];
    snprintf(key, sizeof key, "%s.end", name);
    vec_head(f, key, "%08lx", (unsigned long)vec_bits(side->end));
    snprintf(key, sizeof key, "%s.beyond", name);
    vec_head(f, key, "%s", beyond_text(side));
    snprintf(key, sizeof key, "%s.value", name);
    if (side->beyond == TRN_ACT_BEYOND_VALUE) vec_head(f, key, "%08lx", (unsigned long)vec_bits(side->value));
}

static const char *const scalings[] = {
    "none",
    "reciprocal: |x| = m 2^k, m in [1, 2): f(x) = 2^-k f(m)",
    "sqrt: x = m 2^k, m in [1, 4), k even: f(x) = 2^(k / 2) f(m)",
    "rsqrt: x = m 2^k, m in [1, 4), k even: f(x) = 2^(-k / 2) f(m)",
    "log: x = m 2^k, m in [1, 2): c0 becomes c0 + k * 0x1.62e42fefa3ap-1, exact but for one rounding to binary32",
};

static void head_table(vec_file *f, const trn_act_table *t)
{
    static const char *const symmetry[] = { "none", "odd: f(-x) = -f(x)", "even: f(-x) = f(x)" };
    vec_head(f, "symmetry", "%s", symmetry[t->symmetry]);
    vec_head(f, "scaling", "%s", scalings[t->scaling]);
    if (t->scaling) {
        vec_head(f, "at_zero", "%08lx", (unsigned long)vec_bits(t->at_zero));
        vec_head(f, "at_infinity", "%08lx", (unsigned long)vec_bits(t->at_infinity));
        return;
    }
    head_side(f, "positive", &t->positive);
    if (t->symmetry == TRN_ACT_SYMMETRY_NONE) head_side(f, "negative", &t->negative);
}

/* One bucket: its side, number, lower end, centre, coefficients. */
typedef struct bucket {
    uint32_t side, number, low, centre;
    const trn_act_bucket *c;
} bucket;

static void put_bucket(vec_file *f, const bucket *b)
{
    vec_begin(f, b->side ? "negative arguments" : "positive arguments");
    vec_word(f, 1, b->side);
    vec_word(f, 3, b->number);
    vec_arrow(f);
    vec_word(f, 8, b->low);
    vec_word(f, 8, b->centre);
    for (int i = 0; i < 4; i++) vec_word(f, 8, vec_bits(b->c->c[i]));
    vec_end(f);
}

static const trn_act_bucket *row_of(const trn_act_table *t, const trn_act_side *side, int number)
{
    const bool shared = side->joint && number >= side->joint;
    return &t->bucket[shared ? side->at + number - side->joint : side->first + number];
}

/* Buckets of one sign, from zero outwards: one about zero, then those of the octaves, equally wide in each. */
static void put_side(vec_file *f, const trn_act_table *t, const trn_act_side *side, uint32_t sign)
{
    uint32_t number = 0;
    bucket b = { sign, number++, 0, 0, row_of(t, side, 0) };
    put_bucket(f, &b);
    for (int octave = 0; octave < t->octaves; octave++) {
        const uint32_t first = (uint32_t)(t->lowest_exponent + octave + 127) << 23;
        const uint32_t width = (uint32_t)1 << (23 - t->log2_buckets[octave]);
        for (uint32_t low = first; low < first + 0x800000u && low < vec_bits(side->end); low += width, number++) {
            b = (bucket){ sign, number, low, low + width / 2, row_of(t, side, (int)number) };
            put_bucket(f, &b);
        }
    }
}

static void put_scaled(vec_file *f, const trn_act_table *t)
{
    const uint32_t width = (uint32_t)1 << (23 - t->log2_buckets[0]), octaves = (uint32_t)t->octaves;
    for (uint32_t low = 0, number = 0; low < octaves << 23; low += width, number++) {
        const bucket b = { 0, number, 0x3f800000u + low, 0x3f800000u + low + width / 2,
                           &t->bucket[t->positive.first + (int)number] };
        put_bucket(f, &b);
    }
}

static void make_table(const trn_act_info *info)
{
    const trn_act_table t = trn_act_table_of(info->op);
    if (!t.buckets) return;
    vec_file f = vec_open("activation_bucket", "function/%s.table", info->name);
    vec_head(&f, "function", "%s", info->name);
    vec_head(&f, "formula", "%s", info->formula);
    head_table(&f, &t);
    vec_columns(&f, "side/1 bucket/3", "low/8 centre/8 c[4]/8");
    vec_head(&f, "nan", "none");
    vec_head(&f, "rule",
             "a bucket has the |x| from low to the next one's low, the last one to the side's end; side 1: x < 0; "
             "low and centre are magnitudes and get the sign of x");
    vec_head(&f, "rule",
             "d = x - centre; f(x) = fma(fma(fma(c[3], d, c[2]), d, c[1]), d, c[0]) in binary32, each step "
             "rounded once; beyond the end what 'beyond' says; every NaN is 7fc00000");
    if (t.scaling)
        vec_head(&f, "rule",
                 "scaled results are rounded to binary32 once more only where they are subnormal, in two "
                 "multiplications by 2^s with s = scale >> 1 and the rest; negative numbers that an odd "
                 "function does not have give NaN, zero and infinity the values above");
    vec_known(&f, strncmp(info->source, "measured", 8) == 0 ? "measured" : "assumed", info->source);
    if (t.scaling) {
        put_scaled(&f, &t);
    } else {
        put_side(&f, &t, &t.positive, 0);
        if (t.symmetry == TRN_ACT_SYMMETRY_NONE) put_side(&f, &t, &t.negative, 1);
    }
    vec_close(&f);
}

/* ---- values ---- */

static void put_value(vec_file *f, const trn_act_info *info, const char *kind, uint32_t bits)
{
    float x = vec_float(bits), y = 0.0f;
    trn_error error;
    trn_activation_args args = { .dst = trn_tensor_2d(TRN_F32, &y, 1, 1), .op = info->op };
    args.src = trn_tensor_2d(TRN_F32, &x, 1, 1);
    args.error = &error;
    args.param = 0.25f;
    if (trn_activation(&args) != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    vec_begin(f, kind);
    vec_word(f, 8, bits);
    vec_arrow(f);
    vec_word(f, 8, vec_bits(y));
    vec_end(f);
}

/* The last number below an end, the end, the next: of both signs. */
static void put_ends(vec_file *f, const trn_act_info *info)
{
    const trn_act_table t = trn_act_table_of(info->op);
    const float ends[] = { t.positive.end, t.negative.end, 0.25f, 1.0f, 0x1p-8f, (float)info->high };
    for (int i = 0; i < 6; i++) {
        if (!(ends[i] > 0 && ends[i] < INFINITY)) continue;
        for (int step = -1; step <= 1; step++) {
            const uint32_t bits = vec_bits(ends[i]) + (uint32_t)step;
            put_value(f, info, "the ends of buckets and ranges", bits);
            put_value(f, info, "the ends of buckets and ranges", bits | 0x80000000u);
        }
    }
}

static void make_function(const trn_act_info *info)
{
    const uint32_t *edge;
    const int edges = vec_edges(&edge);
    vec_file f = vec_open("activation", "function/%s", info->name);
    vec_random r = { 45, (uint64_t)info->op, 0 };
    vec_head(&f, "function", "%s", info->name);
    vec_head(&f, "formula", "%s", info->formula);
    if (info->op == TRN_ACT_PRELU) vec_head(&f, "param", "3e800000");
    if (trn_act_table_of(info->op).buckets) vec_head(&f, "table", "function/%s.table", info->name);
    vec_columns(&f, "x/8", "y/8");
    vec_head(&f, "nan", "7f800001-7fffffff ff800001-ffffffff");
    vec_head(&f, "rule", "outside of its valid range, %g to %g: %s; every NaN is 7fc00000", info->low, info->high,
             info->outside);
    vec_known(&f, strncmp(info->source, "measured", 8) == 0 ? "measured" : "assumed", info->source);
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < edges; i++) put_value(&f, info, "zeros, limits, subnormals, infinities, NaN", edge[i]);
    put_ends(&f, info);
    for (int i = 0; i < 160; i++) put_value(&f, info, "normal distribution", vec_bits(vec_normal(&r) * 3));
    for (int i = 0; i < 96; i++) put_value(&f, info, "any bits", vec_draw(&r));
    vec_close(&f);
}

void vec_make_functions(void)
{
    for (int op = 0; op < TRN_ACT_COUNT; op++) {
        make_function(trn_act_info_of((trn_act)op));
        make_table(trn_act_info_of((trn_act)op));
    }
}

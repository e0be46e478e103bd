/* problem.h - one matrix product, asked of trn_matmul and of a reference, bits compared over the whole memory of dst.
 * SPDX-License-Identifier: MIT
 *
 * References: the twin (any numerics, exact fixed point, slow), and scalar_matmul below (fmaf loops, for the orders
 * whose steps are plain fused multiply-adds; itself held against the twin in test_matmul.c).
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "trnmath/trn_matmul.h"
#include "twin/bridge.h"

typedef struct problem {
    twin_problem twin;
    bridge_matrix a, b, dst, a_scale, b_scale;
    trn_numerics numerics;
    trn_matmul_args args;
    unsigned char *before, *expected; /* all of dst's memory */
    bridge_layout layout[3];
    bridge_values values;
} problem;

/* What to draw from; a zero bound or an empty mask means "all". */
typedef struct problem_choice {
    const int *m, *n, *k;
    int m_count, n_count, k_count;
    int64_t volume; /* m*n*k stays below */
} problem_choice;

static inline int problem_size(const int *list, int count, uint64_t *rng) { return list[cases_below(rng, count)]; }

/* ---- what meets what, on which generation: NKI's pages on nc_matmul, nc_matmul_mx and data types ---- */

typedef enum problem_mode { PROBLEM_PLAIN, PROBLEM_DOUBLE_ROW, PROBLEM_MX, PROBLEM_MODES } problem_mode;

static inline bool problem_is_fp8(int f)
{
    return f == TWIN_E4M3 || f == TWIN_E4M3FN || f == TWIN_E5M2 || f == TWIN_E3M4 || f == TWIN_CFP8;
}

/* Does the tensor engine of this generation know the format at all? */
static inline bool problem_known(trn_generation generation, int f)
{
    switch (f) {
    case TWIN_F32:
    case TWIN_TF32:
    case TWIN_BF16:
    case TWIN_F16:
    case TWIN_E4M3:
    case TWIN_E5M2: return true;
    case TWIN_E4M3FN:
    case TWIN_E2M1: return generation == TRN_TRAINIUM3;
    case TWIN_E3M4:
    case TWIN_CFP8: return generation != TRN_TRAINIUM3;
    case TWIN_I8: return generation == TRN_TRAINIUM1;
    default: return false;
    }
}

/* 0: multiplied by no mode but MX, or by none; else only equal classes meet. */
static inline int problem_class(int f)
{
    if (f == TWIN_F32 || f == TWIN_TF32) return 1;
    if (f == TWIN_BF16 || f == TWIN_F16 || problem_is_fp8(f)) return 2;
    return f == TWIN_I8 ? 3 : 0;
}

static inline bool problem_is_mx(int f) { return f == TWIN_E4M3FN || f == TWIN_E5M2 || f == TWIN_E2M1; }

static inline bool problem_legal(problem_mode mode, trn_generation generation, int a, int b)
{
    if (!problem_known(generation, a) || !problem_known(generation, b)) return false;
    if (mode == PROBLEM_MX) return generation == TRN_TRAINIUM3 && problem_is_mx(a) && problem_is_mx(b);
    if ((a == TWIN_E4M3 && b == TWIN_E4M3FN) || (a == TWIN_E4M3FN && b == TWIN_E4M3)) return false;
    if (mode == PROBLEM_DOUBLE_ROW) return generation != TRN_TRAINIUM1 && problem_is_fp8(a) && problem_is_fp8(b);
    return problem_class(a) && problem_class(a) == problem_class(b);
}

static const trn_generation problem_generations[3] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };

/* A mode, a generation and a pair that go together. */
static inline void problem_legal_case(problem_mode *mode, trn_generation *generation, int *a, int *b, uint64_t *rng)
{
    *mode = (problem_mode)cases_below(rng, PROBLEM_MODES);
    do {
        *generation = problem_generations[cases_below(rng, 3)];
        *a = cases_below(rng, TWIN_FORMATS + 1);
        *b = cases_below(rng, TWIN_FORMATS + 1);
    } while (!problem_legal(*mode, *generation, *a, *b));
}

/* Half of the configurable formats are what the name alone means, the others anything that the codec takes: biases
 * around the middle, and those at which the smallest code is 2^-126 and the largest 2^127. */
static inline twin_format problem_cfp8(uint64_t *rng)
{
    const twin_format unset = { NULL, TWIN_SORT_FLOAT, 0, 0, 0, TWIN_HAS_INFINITY, 0, 0, false };
    if (cases_one_in(rng, 2)) return unset;
    const int e = 2 + cases_below(rng, 4), most = 127 - (7 - e), least = (1 << e) - 2 - 127 + 1;
    int bias = (1 << (e - 1)) - 9 + cases_below(rng, 18);
    if (cases_one_in(rng, 3)) bias = cases_one_in(rng, 2) ? most - cases_below(rng, 3) : least + cases_below(rng, 3);
    return bridge_cfp8(e, bias, cases_one_in(rng, 2));
}

/* F32 and TF32 go together, BF16 and F16 go together. */
static inline void problem_formats(twin_problem *t, uint64_t *rng)
{
    static const int dst[3] = { TWIN_F32, TWIN_BF16, TWIN_F16 };
    const int wide = cases_below(rng, 2);
    t->a_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    t->b_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    t->dst_format = dst[cases_below(rng, 3)];
}

/* Any mode and pair of the default generation, which is Trainium3 where that is the only one to have it. Block scales
 * want K in 32s. */
static inline void problem_mode_formats(twin_problem *t, uint64_t *rng)
{
    static const int dst[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2 };
    const problem_mode mode = (problem_mode)cases_below(rng, PROBLEM_MODES);
    trn_generation generation;
    do {
        t->a_format = cases_below(rng, TWIN_FORMATS + 1);
        t->b_format = cases_below(rng, TWIN_FORMATS + 1);
        const bool newest = mode == PROBLEM_MX || t->a_format == TWIN_E4M3FN || t->b_format == TWIN_E4M3FN;
        generation = newest ? TRN_TRAINIUM3 : TRN_TRAINIUM2;
    } while (!problem_legal(mode, generation, t->a_format, t->b_format));
    t->group = mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 1;
    if (mode == PROBLEM_MX) t->k = (t->k + 31) / 32 * 32;
    t->dst_format = dst[cases_below(rng, 6)];
    t->saturate = cases_one_in(rng, 4);
}

/* A random order among those that run at full speed. */
static inline trn_numerics problem_fast_order(uint64_t *rng)
{
    trn_numerics n;
    memset(&n, 0, sizeof n);
    if (cases_one_in(rng, 2)) return n; /* zeros: the defaults */
    n = trn_numerics_default(TRN_TRAINIUM2);
    n.chains = 1 << cases_below(rng, 5);
    n.chain_layout = (trn_chain_layout)cases_below(rng, 2);
    n.merge = (trn_merge)cases_below(rng, 2);
    if (cases_one_in(rng, 3)) n.k_tile = 1 + cases_below(rng, 128);
    n.tf32_input = (trn_tf32_input)cases_below(rng, 2);
    return n;
}

/* A power of two for each 32 of K, of every row of a and every column of b. */
static inline void problem_scales(problem *p, bridge_values values, uint64_t *rng)
{
    twin_problem *t = &p->twin;
    const int blocks = t->k / 32;
    p->a_scale = bridge_make(TWIN_E8M0, t->m, blocks, (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS), rng);
    p->b_scale = bridge_make(TWIN_E8M0, t->n, blocks, (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS), rng);
    bridge_fill(&p->a_scale, TWIN_E8M0, t->m, blocks, values, rng);
    bridge_fill(&p->b_scale, TWIN_E8M0, t->n, blocks, values, rng);
    t->a_scale = bridge_codes(&p->a_scale, t->m, blocks);
    t->b_scale = bridge_codes(&p->b_scale, t->n, blocks);
}

/* Memory and arguments for the shape, formats and numerics that p->twin and p->numerics already have. */
static inline void problem_build(problem *p, const bridge_layout layout[3], bridge_values values, uint64_t *rng)
{
    twin_problem *t = &p->twin;
    p->values = values;
    memcpy(p->layout, layout, sizeof p->layout);
    p->a = bridge_make(t->a_format, t->m, t->k, layout[0], rng);
    p->b = bridge_make(t->b_format, t->k, t->n, layout[1], rng);
    p->dst = bridge_make(t->dst_format, t->m, t->n, layout[2], rng);
    bridge_fill(&p->a, t->a_format, t->m, t->k, values, rng);
    bridge_fill(&p->b, t->b_format, t->k, t->n, values, rng);
    bridge_fill(&p->dst, t->dst_format, t->m, t->n, values, rng);
    p->a.view.cfp8 = bridge_descriptor(&t->cfp8[TWIN_A]);
    p->b.view.cfp8 = bridge_descriptor(&t->cfp8[TWIN_B]);
    p->dst.view.cfp8 = bridge_descriptor(&t->cfp8[TWIN_DST]);
    if (t->group == 4) problem_scales(p, values, rng);
    if (t->a_format == TWIN_TF32 && cases_one_in(rng, 2)) bridge_dirty_tf32(&p->a, t->m, t->k, rng);
    if (t->b_format == TWIN_TF32 && cases_one_in(rng, 2)) bridge_dirty_tf32(&p->b, t->k, t->n, rng);
    t->numerics = bridge_numerics(&p->numerics);
    t->a = bridge_codes(&p->a, t->m, t->k);
    t->b = bridge_codes(&p->b, t->k, t->n);
    t->dst = bridge_codes(&p->dst, t->m, t->n);
    p->before = bridge_copy(p->dst.memory, p->dst.bytes);
    p->expected = NULL;

    memset(&p->args, 0, sizeof p->args);
    p->args.dst = p->dst.view;
    p->args.a = p->a.view;
    p->args.b = p->b.view;
    if (t->group == 4) {
        p->args.a_scale = p->a_scale.view;
        p->args.b_scale = p->b_scale.view;
    }
    p->args.double_row = t->group == 2;
    p->args.accumulate = t->accumulate;
    p->args.rounding = bridge_rounding(t->rounding);
    p->args.overflow = t->saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    p->args.seed = t->seed;
    p->args.stream = t->stream;
    p->args.numerics = &p->numerics;
}

typedef void problem_draw(twin_problem *t, uint64_t *rng);

static inline void problem_random_of(problem *p, const problem_choice *choice, problem_draw *formats, uint64_t *rng)
{
    twin_problem *t = &p->twin;
    memset(p, 0, sizeof *p);
    do {
        t->m = problem_size(choice->m, choice->m_count, rng);
        t->n = problem_size(choice->n, choice->n_count, rng);
        t->k = problem_size(choice->k, choice->k_count, rng);
    } while ((int64_t)t->m * t->n * t->k > choice->volume);
    formats(t, rng);
    t->accumulate = cases_one_in(rng, 2);
    t->rounding = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    t->seed = cases_next(rng);
    t->stream = cases_one_in(rng, 2) ? 0 : cases_next(rng);
    p->numerics = problem_fast_order(rng);
    if (cases_one_in(rng, 4)) p->numerics.sr_bits = 1 + cases_below(rng, 32);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(p, layout, (bridge_values)cases_below(rng, BRIDGE_VALUES), rng);
}

static inline void problem_random(problem *p, const problem_choice *choice, uint64_t *rng)
{
    problem_random_of(p, choice, problem_formats, rng);
}

static inline void problem_free(problem *p)
{
    free(p->a.memory);
    free(p->b.memory);
    free(p->dst.memory);
    free(p->a_scale.memory);
    free(p->b_scale.memory);
    free((void *)(uintptr_t)p->twin.a);
    free((void *)(uintptr_t)p->twin.b);
    free((void *)(uintptr_t)p->twin.a_scale);
    free((void *)(uintptr_t)p->twin.b_scale);
    free(p->twin.dst);
    free(p->before);
    free(p->expected);
    memset(p, 0, sizeof *p);
}

/* ---- the faster reference ---- */

/* A code's value as a float. BF16 and F32 by their bits, 16 bits and less from a table that the twin fills. */
typedef struct scalar_decoder {
    int format;
    float *table; /* null: no table */
    const twin_numerics *numerics;
} scalar_decoder;

static inline scalar_decoder scalar_decoder_of(const twin_problem *p, int which)
{
    static float half[65536];
    static bool known;
    const int format = which == TWIN_A ? p->a_format : p->b_format;
    scalar_decoder d = { format, NULL, &p->numerics };
    const twin_format f = twin_format_of(p, which);
    twin_numerics n = p->numerics;
    if (p->a_scale) n.fp8_bias = 0; /* OCP fixes the elements of MX */
    if (format == TWIN_F16) {
        for (uint32_t c = 0; c < 65536 && !known; c++) {
            const twin_number x = twin_decode(&twin_formats[TWIN_F16], c);
            half[c] = cases_float_of(twin_to_f32(&x));
        }
        known = true;
        d.table = half;
    } else if (f.bits <= 8) {
        d.table = (float *)malloc(sizeof(float) << f.bits);
        if (!d.table) abort();
        for (uint32_t c = 0; c < 1u << f.bits; c++) {
            const twin_number x = twin_operand_of(f, format, c, &n);
            d.table[c] = cases_float_of(twin_to_f32(&x));
        }
    }
    return d;
}

static inline float scalar_operand(const scalar_decoder *d, uint32_t code)
{
    if (d->table) return d->table[code];
    if (d->format == TWIN_BF16) return cases_float_of(code << 16);
    if ((d->format == TWIN_TF32 || d->numerics->fp32r) && code & 0x1fffu) {
        const twin_number x = twin_operand(d->format, code, d->numerics);
        return cases_float_of(twin_to_f32(&x));
    }
    return cases_float_of(code);
}

static inline float *scalar_operands(const twin_problem *p, int which)
{
    const uint32_t *code = which == TWIN_A ? p->a : p->b;
    const size_t count = (size_t)(which == TWIN_A ? p->m : p->n) * (size_t)p->k;
    const scalar_decoder d = scalar_decoder_of(p, which);
    float *x = (float *)malloc(sizeof(float) * (count + 1));
    if (!x) abort();
    for (size_t i = 0; i < count; i++) x[i] = scalar_operand(&d, code[i]);
    if (d.table && d.format != TWIN_F16) free(d.table);
    return x;
}

/* s + 2^e * q, one rounding: a fused multiply-add where binary32 has such a power, else the twin's numbers. */
static inline float scalar_add_scaled(float s, float q, int e)
{
    if (e >= -149 && e <= 127) return fmaf(q, ldexpf(1, e), s);
    const twin_number power = twin_make(false, 1, e), x = twin_from_f32(cases_bits_of(q)),
                      old = twin_from_f32(cases_bits_of(s));
    const twin_number sum = twin_fma(&x, &power, &old, 24, twin_plain(TWIN_NEAREST_EVEN));
    return cases_float_of(twin_to_f32(&sum));
}

/* What row r of a tile does to its chain; x and w are the tile's operands, w in steps of w_step. */
static inline float scalar_row(float s, const twin_problem *p, const float *x, const float *w, int r, int depth,
                               const uint32_t *scale[2])
{
    const int group = p->group > 1 ? p->group : 1, last = twin_k_of(r, group - 1, group, depth);
    const size_t step = (size_t)p->n;
    if (group == 1) return fmaf(x[r], w[(size_t)r * step], s);
    float q = 0;
    for (int i = 0; i < group; i++) {
        const int k = twin_k_of(r, i, group, depth);
        if (k >= 0) q = i ? fmaf(x[k], w[(size_t)k * step], q) : x[k] * w[(size_t)k * step];
    }
    if (group == 2) return s + (last < 0 ? q + 0.0f : q);
    if (*scale[0] == 0xff || *scale[1] == 0xff) return cases_float_of(0x7fc00000);
    return scalar_add_scaled(s, q, (int)*scale[0] + (int)*scale[1] - 254);
}

static inline float scalar_merge(const float *s, int count, bool pairwise)
{
    if (count == 1) return s[0];
    if (pairwise) return scalar_merge(s, count / 2, true) + scalar_merge(s + count / 2, count / 2, true);
    float t = s[0];
    for (int c = 1; c < count; c++) t = t + s[c];
    return t;
}

/* One tile: rows in ascending order, each into its chain. */
static inline float scalar_tile(const twin_problem *p, const float *x, const float *w, size_t i, size_t j, int k0)
{
    const twin_numerics *num = &p->numerics;
    const int group = p->group > 1 ? p->group : 1, deepest = num->k_tile * group;
    const int depth = p->k - k0 < deepest ? p->k - k0 : deepest;
    const size_t k = (size_t)p->k, n = (size_t)p->n;
    float s[16] = { 0 };
    for (int r = 0; r < (depth + group - 1) / group; r++) {
        const int c = twin_chain_of(p->first_row + r, num);
        const size_t block = (size_t)(k0 + group * r) / 32;
        const uint32_t *scale[2] = { NULL, NULL };
        if (group == 4) scale[0] = p->a_scale + i * (k / 32) + block, scale[1] = p->b_scale + j * (k / 32) + block;
        s[c] = scalar_row(s[c], p, x + i * k + (size_t)k0, w + (size_t)k0 * n + j, r, depth, scale);
    }
    return scalar_merge(s, num->chains, num->pairwise);
}

/* The default arithmetic with any chains, layout, merge and k_tile: nothing but fmaf and +. Products of FP8 must be
 * numbers of binary32, as they are with every bias but some of the configurable ones. */
static inline void scalar_matmul(const twin_problem *p)
{
    const twin_numerics *num = &p->numerics;
    const int deepest = num->k_tile * (p->group > 1 ? p->group : 1);
    const twin_format dst = twin_format_of(p, TWIN_DST);
    float *x = scalar_operands(p, TWIN_A), *w = scalar_operands(p, TWIN_B);
    for (size_t i = 0; i < (size_t)p->m; i++)
        for (size_t j = 0; j < (size_t)p->n; j++) {
            const size_t index = i * (size_t)p->n + j;
            const twin_number old = twin_decode(&dst, p->dst[index]);
            float psum = p->accumulate ? cases_float_of(twin_to_f32(&old)) : 0.0f;
            if (p->k == 0 && p->accumulate) continue;
            for (int k0 = 0; k0 < p->k; k0 += deepest) {
                const float t = scalar_tile(p, x, w, i, j, k0);
                psum = k0 == 0 && !p->accumulate ? t : psum + t;
            }
            twin_way way = twin_plain(p->rounding);
            way.random_bits = num->sr_bits;
            way.random = twin_random_bits(p->seed, p->stream, index, num->sr_bits);
            way.saturate = p->saturate;
            const twin_number result = psum != psum ? twin_nan() : twin_from_f32(cases_bits_of(psum));
            p->dst[index] = twin_encode(&dst, &result, way);
        }
    free(x);
    free(w);
}

/* ---- asking and comparing ---- */

typedef void problem_reference(const twin_problem *p);

/* What dst's memory must be afterwards, byte for byte. */
static inline void problem_expect(problem *p, problem_reference *reference)
{
    twin_problem *t = &p->twin;
    reference(t);
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++) bridge_put(&p->dst, i, j, t->dst[(size_t)i * (size_t)t->n + (size_t)j]);
    p->expected = bridge_copy(p->dst.memory, p->dst.bytes);
    memcpy(p->dst.memory, p->before, p->dst.bytes);
}

static inline void problem_print(const problem *p, const char *what)
{
    static const char *const layout[BRIDGE_LAYOUTS] = { "packed",         "rows",    "padded",  "transposed",
                                                        "transposed+gap", "strided", "one row", "one column" };
    const twin_problem *t = &p->twin;
    const twin_numerics *n = &t->numerics;
    static const char *const mode[5] = { "", "", "double rows, ", "", "MX, " };
    print_error("%s: %s%dx%dx%d, %s %s times %s %s to %s %s%s%s, rounding %d, values %d, isa %d, Trainium%d\n", what,
                mode[t->group], t->m, t->n, t->k, twin_formats[t->a_format].name, layout[p->layout[0]],
                twin_formats[t->b_format].name, layout[p->layout[1]], twin_formats[t->dst_format].name,
                layout[p->layout[2]], t->accumulate ? ", accumulating" : "", t->saturate ? ", saturating" : "",
                (int)t->rounding, (int)p->values, (int)p->args.isa, (int)p->args.generation - 1);
    print_error(
        "    chains %d%s%s, k_tile %d, product %d, adder %d with %d bits, group exact %d, split %d, fp32r %d, tf32 %d, "
        "flush %d%d%d, psum %d%d, sr_bits %d, fp8_bias %d, int32 %d, first row %d\n",
        n->chains, n->blocked ? " blocked" : "", n->pairwise ? " pairwise" : "", n->k_tile, n->product_bf16,
        (int)n->adder, n->adder_bits, n->group_exact, n->split, n->fp32r, n->tf32_truncate, n->flush_inputs,
        n->flush_products, n->flush_sums, n->psum_bf16, n->psum_stochastic, n->sr_bits, n->fp8_bias, n->int32_saturates,
        t->first_row);
}

/* The memory of dst against what was expected; names the first element that differs. */
static inline void problem_compare(const problem *p, const char *what)
{
    const twin_problem *t = &p->twin;
    if (memcmp(p->dst.memory, p->expected, p->dst.bytes) == 0) return;
    problem_print(p, what);
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++) {
            const uint32_t expected = t->dst[(size_t)i * (size_t)t->n + (size_t)j], got = bridge_get(&p->dst, i, j);
            if (expected == got) continue;
            fail_msg("element [%d, %d]: expected %08x, got %08x", i, j, (unsigned)expected, (unsigned)got);
        }
    fail_msg("bytes outside the elements of dst were written");
}

static inline void problem_threads(int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

static inline void problem_ask(problem *p, trn_isa isa)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    p->args.isa = isa;
    p->args.error = &error;
    const trn_status status = trn_matmul(&p->args);
    p->args.error = NULL;
    if (status != TRN_OK) {
        problem_print(p, "refused");
        fail_msg("status %d: %s", (int)status, error.text);
    }
    problem_compare(p, "trn_matmul");
}

/* Every instruction set of this host, each with another number of threads. */
static inline void problem_ask_all(problem *p, uint64_t *rng)
{
    static const int threads[4] = { 1, 2, 3, 7 };
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        problem_threads(threads[cases_below(rng, 4)]);
        problem_ask(p, (trn_isa)isa);
    }
}

#endif /* PROBLEM_H */

/* problem.h - one matrix product, asked of trn_matmul and of a reference, bits compared over the whole memory of dst.
 * SPDX-License-Identifier: MIT
 *
 * References: the twin (any numerics, exact fixed point, slow), and scalar_matmul below (fmaf loops, for the orders whose
 * steps are plain fused multiply-adds; itself held against the twin in test_matmul.c).
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
    bridge_matrix a, b, dst;
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

/* F32 and TF32 go together, BF16 and F16 go together. */
static inline void problem_formats(twin_problem *t, uint64_t *rng)
{
    static const int dst[3] = { TWIN_F32, TWIN_BF16, TWIN_F16 };
    const int wide = cases_below(rng, 2);
    t->a_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    t->b_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    t->dst_format = dst[cases_below(rng, 3)];
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
    p->args.accumulate = t->accumulate;
    p->args.rounding = bridge_rounding(t->rounding);
    p->args.seed = t->seed;
    p->args.stream = t->stream;
    p->args.numerics = &p->numerics;
}

static inline void problem_random(problem *p, const problem_choice *choice, uint64_t *rng)
{
    twin_problem *t = &p->twin;
    memset(p, 0, sizeof *p);
    do {
        t->m = problem_size(choice->m, choice->m_count, rng);
        t->n = problem_size(choice->n, choice->n_count, rng);
        t->k = problem_size(choice->k, choice->k_count, rng);
    } while ((int64_t)t->m * t->n * t->k > choice->volume);
    problem_formats(t, rng);
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

static inline void problem_free(problem *p)
{
    free(p->a.memory);
    free(p->b.memory);
    free(p->dst.memory);
    free((void *)(uintptr_t)p->twin.a);
    free((void *)(uintptr_t)p->twin.b);
    free(p->twin.dst);
    free(p->before);
    free(p->expected);
    memset(p, 0, sizeof *p);
}

/* ---- the faster reference ---- */

/* A code's value as a float; F16 and TF32 by way of the twin, BF16 and F32 by their bits. */
static inline float scalar_operand(int format, uint32_t code, const twin_numerics *n)
{
    static float half[65536];
    static bool known;
    if (!known) {
        for (uint32_t c = 0; c < 65536; c++) {
            const twin_number x = twin_decode(&twin_formats[TWIN_F16], c);
            half[c] = cases_float_of(twin_to_f32(&x));
        }
        known = true;
    }
    if (format == TWIN_F16) return half[code];
    if (format == TWIN_BF16) return cases_float_of(code << 16);
    if (format == TWIN_TF32 && code & 0x1fffu) {
        const twin_number x = twin_operand(format, code, n);
        return cases_float_of(twin_to_f32(&x));
    }
    return cases_float_of(code);
}

static inline float scalar_merge(const float *s, int count, bool pairwise)
{
    if (count == 1) return s[0];
    if (pairwise) return scalar_merge(s, count / 2, true) + scalar_merge(s + count / 2, count / 2, true);
    float t = s[0];
    for (int c = 1; c < count; c++) t = t + s[c];
    return t;
}

/* The default arithmetic with any chains, layout, merge and k_tile: nothing but fmaf and +. */
static inline void scalar_matmul(const twin_problem *p)
{
    const twin_numerics *num = &p->numerics;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    float *x = (float *)malloc(sizeof(float) * (m * k + 1)), *w = (float *)malloc(sizeof(float) * (k * n + 1));
    if (!x || !w) abort();
    for (size_t i = 0; i < m * k; i++) x[i] = scalar_operand(p->a_format, p->a[i], num);
    for (size_t i = 0; i < k * n; i++) w[i] = scalar_operand(p->b_format, p->b[i], num);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            uint32_t *out = &p->dst[i * n + j];
            const twin_number old = twin_decode(&twin_formats[p->dst_format], *out);
            float psum = p->accumulate ? cases_float_of(twin_to_f32(&old)) : 0.0f;
            if (k == 0 && p->accumulate) continue;
            for (size_t k0 = 0; k0 < k; k0 += (size_t)num->k_tile) {
                float s[16] = { 0 };
                for (size_t r = 0; r < (size_t)num->k_tile && k0 + r < k; r++) {
                    const int c = twin_chain_of((int)r, num);
                    s[c] = fmaf(x[i * k + k0 + r], w[(k0 + r) * n + j], s[c]);
                }
                const float t = scalar_merge(s, num->chains, num->pairwise);
                psum = k0 == 0 && !p->accumulate ? t : psum + t;
            }
            twin_way way = twin_plain(p->rounding);
            way.random_bits = num->sr_bits;
            way.random = twin_random_bits(p->seed, p->stream, i * n + j, num->sr_bits);
            const twin_number result = psum != psum ? twin_nan() : twin_from_f32(cases_bits_of(psum));
            *out = twin_encode(&twin_formats[p->dst_format], &result, way);
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
    print_error("%s: %dx%dx%d, %s %s times %s %s to %s %s%s, rounding %d, values %d, isa %d\n", what, t->m, t->n, t->k,
                twin_formats[t->a_format].name, layout[p->layout[0]], twin_formats[t->b_format].name,
                layout[p->layout[1]], twin_formats[t->dst_format].name, layout[p->layout[2]],
                t->accumulate ? ", accumulating" : "", (int)t->rounding, (int)p->values, (int)p->args.isa);
    print_error("    chains %d%s%s, k_tile %d, product %d, adder %d with %d bits, split %d, tf32 %d, flush %d%d%d, "
                "psum %d%d, sr_bits %d\n",
                n->chains, n->blocked ? " blocked" : "", n->pairwise ? " pairwise" : "", n->k_tile, n->product_bf16,
                (int)n->adder, n->adder_bits, n->split, n->tf32_truncate, n->flush_inputs, n->flush_products,
                n->flush_sums, n->psum_bf16, n->psum_stochastic, n->sr_bits);
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

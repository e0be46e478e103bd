/* unit_cases.h - products around the edge of what a matrix unit may do: sums that just are, or are not, exact.
 * SPDX-License-Identifier: MIT
 *
 * Numbers are whole multiples of a lowest bit whose exponent differs from row to row, and are as large as makes a
 * chain's sums some 24 bits long. Some rows have lowest bits around 2^-55; some have zeros, subnormals, infinities or
 * NaN.
 */
#ifndef UNIT_CASES_H
#define UNIT_CASES_H

#include "twin/problem.h"

/* How the numbers of one operand are drawn. */
typedef struct unit_draw {
    int top;    /* binades above the lowest bit */
    int base;   /* the lowest bit's exponent */
    int spread; /* of base, from row to row */
    int zeros;  /* one in so many is a zero; 0: none */
    int odd;    /* one in so many has the lowest bit; others have what 8 bits leave */
    bool special;
} unit_draw;

static inline uint32_t unit_value(const unit_draw *d, int base, uint64_t *rng)
{
    static const uint32_t special[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0x00010000, 0x80010000, 0x7f7f0000 };
    if (d->special && cases_one_in(rng, 300)) return special[cases_below(rng, 6)];
    if (d->zeros && cases_one_in(rng, d->zeros)) return cases_one_in(rng, 2) ? 0x80000000u : 0;
    const int high = cases_one_in(rng, 4) ? cases_below(rng, d->top + 1) : d->top;
    const int most = high < 8 ? high : 8; /* bits of the significand */
    const int whole = cases_one_in(rng, d->odd) ? 1 + 2 * cases_below(rng, 1 << (most > 1 ? most - 1 : 0))
                                                : (1 << most) - 1 - cases_below(rng, most ? 1 << (most - 1) : 1);
    const bool low = cases_one_in(rng, d->odd);
    const float x = ldexpf((float)whole, base + (low || high < 8 ? 0 : high - 8));
    return cases_bits_of(cases_one_in(rng, 2) ? -x : x);
}

/* Rows of a, or columns of b (`turned`). */
static inline void unit_fill(const bridge_matrix *m, const twin_format *f, int format, int lanes, int depth,
                             bool turned, const unit_draw *d, uint64_t *rng)
{
    for (int i = 0; i < lanes; i++) {
        const int base = d->base + (d->spread ? cases_below(rng, d->spread) : 0);
        for (int k = 0; k < depth; k++) {
            const uint32_t u = unit_value(d, base, rng);
            const twin_number x = twin_from_f32(u);
            const uint32_t code = format == TWIN_BF16 ? u >> 16 : twin_encode(f, &x, twin_plain(TWIN_NEAREST_EVEN));
            bridge_put(m, turned ? k : i, turned ? i : k, code);
        }
    }
}

/* Two operands whose chains' sums are about 24 bits long. */
static inline void unit_draws(unit_draw d[2], bool bf16, uint64_t *rng)
{
    const int bits = 17 + cases_below(rng, 8), first = bits / 2 - 3 + cases_below(rng, 7);
    d[0].top = first < 1 ? 1 : first;
    d[1].top = bits - d[0].top;
    for (int i = 0; i < 2; i++) {
        d[i].base = bf16 ? -cases_below(rng, 20) : -d[i].top + cases_below(rng, 4);
        if (bf16 && cases_one_in(rng, 4)) d[i].base = -58 + cases_below(rng, 6);
        if (bf16 && cases_one_in(rng, 12)) d[i].base = 40 + cases_below(rng, 60);
        d[i].spread = bf16 ? cases_below(rng, 6) : cases_below(rng, 2);
        d[i].zeros = cases_one_in(rng, 2) ? 0 : 1 + cases_below(rng, 8);
        d[i].odd = 1 + cases_below(rng, 20);
        d[i].special = cases_one_in(rng, 6);
    }
    if (bf16 && cases_one_in(rng, 4)) { /* products about 2^-112, wherever that is divided */
        d[0].base = 8 - cases_below(rng, 128);
        d[1].base = -114 - d[0].base + cases_below(rng, 5);
    }
}

static inline void unit_format(twin_problem *t, problem_mode mode, uint64_t *rng)
{
    static const int plain[] = { TWIN_BF16, TWIN_BF16, TWIN_E4M3, TWIN_E4M3, TWIN_E5M2, TWIN_E3M4 },
                     pairs[] = { TWIN_E4M3, TWIN_E5M2, TWIN_E3M4 }, quads[] = { TWIN_E4M3FN, TWIN_E5M2, TWIN_E2M1 };
    int *const format[2] = { &t->a_format, &t->b_format };
    for (int i = 0; i < 2; i++)
        *format[i] = mode == PROBLEM_PLAIN        ? plain[cases_below(rng, 6)]
                     : mode == PROBLEM_DOUBLE_ROW ? pairs[cases_below(rng, 3)]
                                                  : quads[cases_below(rng, 3)];
    t->group = mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 1;
}

/* The operands of a problem that is built already, once more. */
static inline void unit_refill(problem *p, uint64_t *rng)
{
    twin_problem *t = &p->twin;
    unit_draw d[2];
    const bool repeats = p->layout[0] >= BRIDGE_OUTPUTS || p->layout[1] >= BRIDGE_OUTPUTS;
    const twin_format a = twin_format_of(t, TWIN_A), b = twin_format_of(t, TWIN_B);
    if (repeats || cases_one_in(rng, 8)) return;
    unit_draws(d, t->a_format == TWIN_BF16 && t->b_format == TWIN_BF16, rng);
    unit_fill(&p->a, &a, t->a_format, t->m, t->k, false, &d[0], rng);
    unit_fill(&p->b, &b, t->b_format, t->n, t->k, true, &d[1], rng);
    free((void *)(uintptr_t)t->a);
    free((void *)(uintptr_t)t->b);
    t->a = bridge_codes(&p->a, t->m, t->k);
    t->b = bridge_codes(&p->b, t->k, t->n);
}

/* One product: `most` bounds M, N and K. */
static inline void unit_problem(problem *p, int most_m, int most_n, int most_k, uint64_t *rng)
{
    static const int dst[] = { TWIN_F32, TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16 };
    twin_problem *t = &p->twin;
    memset(p, 0, sizeof *p);
    unit_format(t, (problem_mode)(cases_one_in(rng, 2) ? (int)PROBLEM_PLAIN : cases_below(rng, PROBLEM_MODES)), rng);
    t->m = (cases_one_in(rng, 4) ? 1 : 16) + cases_below(rng, most_m);
    t->n = 1 + cases_below(rng, most_n);
    t->k = 1 + cases_below(rng, most_k);
    if (t->group == 4) t->k = 32 * (1 + t->k / 32);
    t->dst_format = dst[cases_below(rng, 5)];
    t->accumulate = cases_one_in(rng, 3);
    t->rounding = TWIN_NEAREST_EVEN;
    t->seed = cases_next(rng);
    p->numerics = cases_one_in(rng, 2) ? problem_fast_order(rng) : trn_numerics_default(TRN_TRAINIUM3);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(p, layout, (bridge_values)cases_below(rng, BRIDGE_VALUES), rng);
    unit_refill(p, rng);
    if (t->group == 4) p->args.generation = TRN_TRAINIUM3;
}

static const trn_isa unit_isas[] = { TRN_ISA_AMX_EMULATED, TRN_ISA_PAIRS_EMULATED, TRN_ISA_AMX,
                                     TRN_ISA_AVX512_BF16,  TRN_ISA_AVX512,         TRN_ISA_AUTO };
enum { UNIT_ISAS = sizeof unit_isas / sizeof unit_isas[0] };

/* Every matrix unit that this host has; what they did is added to counts[]. */
static inline void unit_ask(problem *p, trn_matmul_units counts[UNIT_ISAS], uint64_t *rng)
{
    problem_expect(p, scalar_matmul);
    for (int i = 0; i < UNIT_ISAS; i++) {
        if (unit_isas[i] != TRN_ISA_AUTO && !trn_isa_supported(unit_isas[i])) continue;
        problem_threads(cases_one_in(rng, 8) ? 2 : 1);
        p->args.units = &counts[i];
        problem_ask(p, unit_isas[i]);
    }
    problem_threads(1);
}

#endif /* UNIT_CASES_H */

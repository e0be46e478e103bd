/* plan/plan_mixer.h - linear layers: what a state of fixed size costs, in place of keys and values.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: the time of Mamba-2's and a gated delta rule's recurrence, by chunks of 128 tokens or, in decode, one by one.
 * DOES NOT: the projections (products with weights: plan_products.h).
 *
 * KNOWN FROM: Dao and Gu 2024 (state space duality: inside a chunk attention without softmax, between chunks a state),
 *     Yang et al. 2024 (the same for the delta rule: as many scores once more, for what a chunk's keys say of each
 *     other).
 *     Assumed: chunks of one tile, decays in F32 on ScalarE and VectorE like a softmax, states in F32 as the reference
 *     implementations keep them; on cp ranks, every rank gathers the states of the others.
 */
#ifndef TRNI_PLAN_PLAN_MIXER_H
#define TRNI_PLAN_PLAN_MIXER_H

#include "plan_memory.h"

enum { TRNI_PLAN_CHUNK = 128 };

/* Decode: states are read and written once; VectorE lets them decay, adds to them, reads them, a delta rule twice. */
TRNI_FN double trni_plan_state_step(const trni_plan_work *w, double sequences, int64_t t)
{
    const trn_chip_spec *chip = &w->chip;
    const double elements = sequences * trni_plan_state_elements(&w->m, t), passes = w->m.state_space ? 3 : 4;
    const double rate = chip->core->vector_elements * chip->core->vector_clock_hz * chip->cores;
    return fmax(2.0 * (double)TRNI_PLAN_STATE_BYTES * elements / chip->hbm_bytes_per_s, passes * elements / rate);
}

/* A linear layer's recurrence on one rank, for so many tokens of so many sequences. */
TRNI_FN double trni_plan_linear_time(trni_plan_work *w, const trni_plan_slice *s, double sequences, trn_job job,
                                     bool backward)
{
    const trn_model *m = &w->m;
    const trn_chip_spec *chip = &w->chip;
    const trn_core_spec *core = chip->core;
    const trn_plan_assumptions *a = &w->a.assumptions;
    if (!m->linear_layers) return 0;
    if (job == TRN_JOB_DECODE) return trni_plan_state_step(w, sequences, s->shares);
    const double heads = trni_plan_ceil_share(m->linear_heads, s->shares), each = ceil(s->tokens / sequences);
    const int64_t chunk = each < (double)TRNI_PLAN_CHUNK ? (int64_t)each : (int64_t)TRNI_PLAN_CHUNK;
    const double chunks = sequences * heads * ceil(each / (double)chunk), elements = chunks * (double)(chunk * chunk);
    const double inside = (m->state_space ? 1 : 2) *
                          trni_plan_work_scores(w, chunk, chunk, m->linear_key_dim, m->linear_value_dim).ideal_s;
    const double between =
        trni_plan_product_time(w, m->linear_key_dim, m->linear_value_dim, chunk, TRNI_PLAN_ON_CORE).time_s +
        trni_plan_product_time(w, chunk, m->linear_value_dim, m->linear_key_dim, TRNI_PLAN_ON_CORE).time_s;
    const double tensor = (backward ? 2.5 : 1) * chunks * (inside + between) / chip->cores;
    const double scalar = elements * a->scalar_passes / (core->scalar_elements * core->scalar_clock_hz) / chip->cores;
    const double convolved = s->tokens * trni_plan_linear_convolved(m, s->shares) * (double)m->linear_kernel;
    const double vector = (backward ? 2 : 1) * (elements * a->vector_passes + convolved) /
                          (core->vector_elements * core->vector_clock_hz) / chip->cores;
    const double bytes = (backward ? 2 : 1) * a->inner_passes * s->tokens * trni_plan_linear_inputs(m, s->shares) *
                         trni_plan_bytes_of(w->a.formats.activations);
    return fmax(fmax(tensor, scalar), fmax(vector, bytes / chip->hbm_bytes_per_s));
}

#endif /* TRNI_PLAN_PLAN_MIXER_H */

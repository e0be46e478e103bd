/* plan/plan_tables.h - recommenders: tables of embeddings spread over ep, MLPs repeated on every chip.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: places whole tables on the chips of an ep group, counts what the fullest chip holds, and adds up a step: rows
 *     looked up, the all_to_all of their sums and of the gradients, the MLPs, gradients over dp.
 * DOES NOT: cut a table by rows or columns, keep rows in the memory of the host, or look up rows of the next batch
 *     beside this one.
 *
 * KNOWN FROM: Naumov et al. 2019 and Mudigere et al. 2022 (tables are spread, MLPs repeated; an all_to_all each way),
 *     torchrec's table-wise sharding. Assumed: HBM moves at least 64 bytes for a row; indices are 8 bytes and travel to
 *     the tables' chips; sums, their gradients and what travels have the format of activations.
 *
 * A sample is a token, `microbatch` those of a chip. A chip of ep looks up its tables' rows for all samples of its
 *     group. Tables are placed one by one, those that are looked up most first, each where fewest rows are looked up;
 *     by rows instead where that does not fit. Each part is that of the chip that has most of it.
 * Tables are trained in place, as the fused kernels of FBGEMM do: no gradient of a table is kept, no copy, and of the
 *     optimizer one number for each row (row-wise Adagrad). Where dp repeats tables, every replica is sent the others'
 *     gradients of sums and indices, and works them in, too. The MLPs have the gradients and optimizer that other
 *     models have, all_reduced and not shared out.
 */
#ifndef TRNI_PLAN_PLAN_TABLES_H
#define TRNI_PLAN_PLAN_TABLES_H

#include "plan_time.h"

enum { TRNI_PLAN_LINE_BYTES = 64, TRNI_PLAN_INDEX_BYTES = 8 };

/* ---- which chip has which table ---- */

typedef struct trni_plan_load {
    double tables, rows, lookups; /* of the chip that has most of each */
} trni_plan_load;

/* Tables in the order of this measure, the largest first. */
TRNI_FN void trni_plan_tables_sorted(const trn_model *m, const int64_t *measure, int order[TRN_MODEL_TABLES])
{
    for (int i = 0; i < (int)m->tables; i++) {
        int at = i;
        for (; at > 0 && measure[order[at - 1]] < measure[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Each table goes where the measure is least, and of those where there are fewest tables. */
TRNI_FN trni_plan_load trni_plan_tables_place(const trn_model *m, int chips, const int64_t *measure)
{
    trni_plan_load on[TRN_MODEL_TABLES], most = { 0, 0, 0 };
    double held[TRN_MODEL_TABLES];
    int order[TRN_MODEL_TABLES];
    memset(on, 0, sizeof on);
    memset(held, 0, sizeof held);
    trni_plan_tables_sorted(m, measure, order);
    for (int i = 0; i < (int)m->tables; i++) {
        int to = 0;
        for (int c = 1; c < chips; c++)
            if (held[c] < held[to] || (held[c] <= held[to] && on[c].tables < on[to].tables)) to = c;
        held[to] += (double)measure[order[i]];
        on[to].tables++;
        on[to].rows += (double)m->table_rows[order[i]];
        on[to].lookups += (double)m->table_lookups[order[i]];
    }
    for (int c = 0; c < chips; c++) {
        most.tables = fmax(most.tables, on[c].tables);
        most.rows = fmax(most.rows, on[c].rows);
        most.lookups = fmax(most.lookups, on[c].lookups);
    }
    return most;
}

/* ---- memory ---- */

/* Rows that one sample looks up in all tables. */
TRNI_FN double trni_plan_tables_lookups(const trn_model *m)
{
    double sum = 0;
    for (int i = 0; i < (int)m->tables; i++) sum += (double)m->table_lookups[i];
    return sum;
}

/* Sums that the fullest chip of ep has to send for one microbatch of its group, in elements. */
TRNI_FN double trni_plan_tables_sums(const trni_plan_work *w, const trn_plan *p, const trni_plan_load *load)
{
    return (double)p->microbatch * p->ep * load->tables * (double)w->m.hidden;
}

TRNI_FN trn_plan_memory trni_plan_tables_memory_with(const trni_plan_work *w, const trn_plan *p,
                                                     const trni_plan_load *load)
{
    const trn_model *m = &w->m;
    const trn_plan_formats *f = &w->a.formats;
    const double repeated = w->size.dense_mlp, kept = trni_plan_bytes_of(f->activations);
    const double sums = trni_plan_tables_sums(w, p, load) * kept, samples = (double)p->microbatch;
    trn_plan_memory b;
    memset(&b, 0, sizeof b);
    b.weights = (load->rows * (double)m->hidden + repeated) * f->weights_bits / 8;
    if (w->a.job == TRN_JOB_TRAIN) {
        b.gradients = repeated * trni_plan_bytes_of(f->gradients);
        b.optimizer = load->rows * trni_plan_bytes_of(f->optimizer) + repeated * trni_plan_optimizer_bytes(w);
    }
    b.activations =
        samples * (trni_plan_repeated(m).outputs + trni_plan_joined(m) + (double)m->dense_inputs) * kept + sums;
    b.buffers = w->a.assumptions.reserve_bytes + 2 * sums +
                samples * trni_plan_tables_lookups(m) * (double)TRNI_PLAN_INDEX_BYTES;
    b.total = b.weights + b.gradients + b.optimizer + b.activations + b.buffers;
    b.capacity = w->whole->hbm_bytes;
    return b;
}

TRNI_FN trni_plan_load trni_plan_tables_load(const trni_plan_work *w, const trn_plan *p)
{
    const trni_plan_load even = trni_plan_tables_place(&w->m, p->ep, w->m.table_lookups);
    const trn_plan_memory b = trni_plan_tables_memory_with(w, p, &even);
    return b.total <= b.capacity ? even : trni_plan_tables_place(&w->m, p->ep, w->m.table_rows);
}

TRNI_FN trn_plan_memory trni_plan_tables_memory(const trni_plan_work *w, const trn_plan *p)
{
    const trni_plan_load load = trni_plan_tables_load(w, p);
    return trni_plan_tables_memory_with(w, p, &load);
}

/* ---- time ---- */

/* Forward, and backward as far as the gradient of what came in is wanted. */
TRNI_FN void trni_plan_tables_product(const trni_plan_run *r, trni_plan_pass pass[2], double n, double k, double count,
                                      bool first)
{
    const int64_t rows = (int64_t)r->tokens, columns = (int64_t)n, inner = (int64_t)k;
    trni_plan_pass_product(r, &pass[0], rows, columns, inner, count, false);
    if (!first) trni_plan_pass_product(r, &pass[1], rows, inner, columns, count, false);
    trni_plan_pass_product(r, &pass[1], inner, columns, rows, count, true);
}

TRNI_FN void trni_plan_tables_mlp(const trni_plan_run *r, trni_plan_pass pass[2], double inputs,
                                  const int64_t width[TRN_MODEL_WIDTHS], bool first)
{
    for (int i = 0; i < trni_plan_widths(width); i++) {
        trni_plan_tables_product(r, pass, (double)width[i], inputs, 1, first && i == 0);
        inputs = (double)width[i];
    }
}

/* What joins dense numbers and embeddings: layers of products, or on every core one small product a sample. */
TRNI_FN void trni_plan_tables_join(const trni_plan_run *r, trni_plan_pass pass[2])
{
    const trn_model *m = &r->w->m;
    const double wide = trni_plan_joined(m), layers = (double)m->cross_layers;
    if (m->cross_layers) {
        trni_plan_tables_product(r, pass, (double)m->cross_rank, wide, layers, false);
        trni_plan_tables_product(r, pass, wide, (double)m->cross_rank, layers, false);
        return;
    }
    const trni_plan_work_time t =
        trni_plan_product_time(r->w, m->tables + 1, m->tables + 1, m->hidden, TRNI_PLAN_ON_CORE);
    const double each = r->expected ? t.expected_s : t.time_s, all = r->tokens * each / r->w->chip.cores;
    pass[0].products_s += all;
    pass[1].products_s += 2 * all;
}

/* A row and a number of the optimizer, as HBM moves them. */
TRNI_FN double trni_plan_line_bytes(double bytes)
{
    return ceil(bytes / (double)TRNI_PLAN_LINE_BYTES) * (double)TRNI_PLAN_LINE_BYTES;
}

/* Forward: rows are read, sums written. Backward: sums' gradients are read, rows and states read and written. */
TRNI_FN void trni_plan_tables_rows(const trni_plan_run *r, trni_plan_pass pass[2], const trni_plan_load *load)
{
    const trn_plan_formats *f = &r->w->a.formats;
    const double row = trni_plan_line_bytes((double)r->w->m.hidden * f->weights_bits / 8);
    const double state = trni_plan_line_bytes(trni_plan_bytes_of(f->optimizer)), rate = trni_plan_run_hbm(r);
    const double group = r->tokens * r->p->ep, lookups = group * load->lookups;
    const double sums = group * load->tables * (double)r->w->m.hidden * trni_plan_bytes_of(f->activations);
    pass[0].lookups_s = (lookups * row + sums) / rate + trni_plan_run_floor(r, 1);
    pass[1].lookups_s = r->p->dp * (lookups * 2 * (row + state) + sums) / rate + trni_plan_run_floor(r, 1);
}

TRNI_FN void trni_plan_tables_travel(const trni_plan_run *r, trni_plan_pass pass[2], const trni_plan_load *load)
{
    const double sums = r->tokens * r->p->ep * load->tables * (double)r->w->m.hidden * r->kept_bytes;
    const double asked = r->tokens * trni_plan_tables_lookups(&r->w->m) * (double)TRNI_PLAN_INDEX_BYTES;
    const double known = r->tokens * r->p->ep * load->lookups * (double)TRNI_PLAN_INDEX_BYTES;
    const double across = trni_plan_run_collective(r, TRNI_PLAN_AXIS(EP), TRN_ALL_TO_ALL, sums, 1, NULL);
    pass[0].ep_s = across + trni_plan_run_collective(r, TRNI_PLAN_AXIS(EP), TRN_ALL_TO_ALL, asked, 1, NULL);
    pass[1].ep_s = across;
    pass[1].dp_s = pass[1].dp_waits_s = trni_plan_run_collective(r, TRNI_PLAN_AXIS(DP), TRN_ALL_GATHER,
                                                                 r->p->dp * (sums + known), 1, &r->p->dp_algorithm);
}

/* One microbatch, forward and backward. */
TRNI_FN void trni_plan_tables_passes(const trni_plan_run *r, trni_plan_pass pass[2])
{
    const trn_model *m = &r->w->m;
    const trn_plan_assumptions *a = &r->w->a.assumptions;
    const trni_plan_load load = trni_plan_tables_load(r->w, r->p);
    const double elements = a->inner_passes * r->tokens * trni_plan_repeated(m).outputs;
    memset(pass, 0, 2 * sizeof *pass);
    trni_plan_tables_mlp(r, pass, (double)m->dense_inputs, m->dense_widths, true);
    trni_plan_tables_join(r, pass);
    trni_plan_tables_mlp(r, pass, trni_plan_over_inputs(m), m->over_widths, false);
    pass[0].elementwise_s = elements * trni_plan_bytes_of(r->w->a.formats.activations) / trni_plan_run_hbm(r) +
                            trni_plan_run_floor(r, a->layer_kernels);
    pass[1].elementwise_s = 2 * pass[0].elementwise_s;
    trni_plan_tables_rows(r, pass, &load);
    trni_plan_tables_travel(r, pass, &load);
}

/* The MLPs' gradients go over all chips beside the last backward pass, then their optimizer runs. */
TRNI_FN double trni_plan_tables_train_time(const trni_plan_run *r, trni_plan_pass pass[2])
{
    trn_plan_time *t = &r->p->time;
    const trn_plan_formats *f = &r->w->a.formats;
    const double n = (double)r->p->microbatches, repeated = r->w->size.dense_mlp;
    const double each =
        2 * trni_plan_optimizer_bytes(r->w) + trni_plan_bytes_of(f->gradients) + trni_plan_bytes_of(f->weights);
    trni_plan_sync all = { 0, 0 };
    trni_plan_sync_add(r, &all, TRNI_PLAN_AXIS(DP) | TRNI_PLAN_AXIS(EP), TRN_ALL_REDUCE,
                       repeated * trni_plan_bytes_of(f->wire ? f->wire : f->gradients));
    t->forward_s = trni_plan_phase(r, &pass[0], n);
    t->backward_s = trni_plan_phase(r, &pass[1], n - 1);
    trni_plan_pass_sync(&pass[1], &all);
    const double last = trni_plan_phase(r, &pass[1], 1);
    t->update_s = repeated * each / trni_plan_run_hbm(r);
    return n * t->forward_s + (n - 1) * t->backward_s + last + t->update_s;
}

/* A step, or a batch of samples; *first_s: one sample in each chip's batch, with nothing else going on. */
TRNI_FN double trni_plan_tables_time(trni_plan_run *r, double *first_s)
{
    trni_plan_pass pass[2];
    trn_plan alone = *r->p;
    trni_plan_run one = *r;
    *first_s = 0;
    trni_plan_tables_passes(r, pass);
    if (r->job == TRN_JOB_TRAIN) return trni_plan_tables_train_time(r, pass);
    r->p->time.forward_s = trni_plan_phase(r, &pass[0], (double)r->p->microbatches);
    one.p = &alone;
    alone.microbatch = alone.microbatches = 1;
    one.tokens = 1;
    trni_plan_tables_passes(&one, pass);
    *first_s = trni_plan_phase(&one, &pass[0], 1);
    return (double)r->p->microbatches * r->p->time.forward_s;
}

#endif /* TRNI_PLAN_PLAN_TABLES_H */

/* core/core_run.h - one NeuronCore at work: every instruction, checked against the machine's memory, run, and timed.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: for every instruction: fills in what its args leave open from the core (generation, numerics, rounding, random
 *     stream, instruction set, registers), finds its operands, refuses what the machine cannot do, runs it, keeps which
 *     bytes are written, and gives it a place in time. trn_core.h is the guide.
 * DOES NOT: compute; the engines' headers do. Row and column tiles of TensorE run after each other here, and VectorE
 *     and GpSimdE of Trainium2 and 3 do not slow each other on their shared bus.
 *
 * KNOWN FROM: engines run in parallel and wait for each other's results; VectorE and GpSimdE of Trainium1 cannot use
 *     SBUF at the same time, nor VectorE and ScalarE PSUM; DMA's latency and rates (documented). That transfers overlap
 *     their latencies and use all DMA engines, and that semaphores cost nothing: assumed.
 */
#ifndef TRNI_CORE_CORE_RUN_H
#define TRNI_CORE_CORE_RUN_H

#include "core_carry.h"
#include "core_indirect.h"
#include "core_joined.h"

/* ---- operands ---- */

/* Pointers to the engines' registers that the args leave null become the core's. */
TRNI_FN void trni_issue_state(trni_issue *issue, size_t offset, void *state)
{
    void *given;
    if (!offset) return;
    memcpy(&given, (char *)issue->args + offset, sizeof given);
    if (!given) memcpy((char *)issue->args + offset, &state, sizeof state);
}

TRNI_FN trn_status trni_issue_gather(trni_issue *issue)
{
    const trni_order *order = issue->order;
    trn_core *core = issue->core;
    for (int i = 0; i < TRNI_PARTS && order->part[i].name; i++)
        trni_issue_add(issue, order->part[i].name,
                       (const trn_tensor *)(const void *)((char *)issue->args + order->part[i].offset),
                       order->part[i].role);
    if (order->more) order->more(issue);
    trni_issue_state(issue, order->vector_state, &core->vector_state);
    trni_issue_state(issue, order->scalar_state, &core->scalar_state);
    trni_issue_state(issue, order->gpsimd_state, &core->gpsimd_state);
    if (core->indirect) trni_indirect_find(issue);
    for (int i = 0; i < issue->count && !core->failure.status; i++)
        trni_core_operand_locate(core, &issue->operand[i], order->engine != TRN_ENGINE_DMA);
    return core->failure.status;
}

/* ---- legality ---- */

/* Elements of a partition that ScalarE takes at once: documented, Trainium1's guide. */
enum { TRNI_SCALAR_SBUF = 65536, TRNI_SCALAR_PSUM = 4096 };

TRNI_FN double trni_scalar_longest(const trni_core_operand *s)
{
    return s->space == TRN_SPACE_PSUM ? TRNI_SCALAR_PSUM : TRNI_SCALAR_SBUF;
}

TRNI_DRIVER trn_status trni_issue_check_place(const trni_issue *issue, const trni_core_operand *s)
{
    trn_error *error = &issue->core->failure;
    const trn_engine e = issue->engine;
    const bool psum = s->space == TRN_SPACE_PSUM;
    const int64_t bank = issue->core->memory[TRN_SPACE_PSUM].bank_bytes;
    if (psum && (e == TRN_ENGINE_GPSIMD || e == TRN_ENGINE_DMA))
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in PSUM, which %s does not reach", s->name,
                         s->allocation->name, e == TRN_ENGINE_DMA ? "DMA" : "GpSimdE");
    if (e == TRN_ENGINE_SCALAR && s->elements > trni_scalar_longest(s))
        return trni_fail(error, TRN_ELIMIT, "%s has %.0f elements per partition; ScalarE takes %.0f from %s", s->name,
                         s->elements, trni_scalar_longest(s), trn_space_name(s->space));
    if ((s->role & TRNI_ROLE_SBUF) && s->space != TRN_SPACE_SBUF)
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in %s; it has to be in SBUF", s->name, s->allocation->name,
                         trn_space_name(s->space));
    if (!(s->role & TRNI_ROLE_PSUM)) return TRN_OK;
    if (!psum)
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in %s; TensorE writes to PSUM only", s->name,
                         s->allocation->name, trn_space_name(s->space));
    if (issue->core->spec->generation < TRN_TRAINIUM3 && s->at.b / bank != (s->at.b_end - 1) / bank)
        return trni_fail(error, TRN_ELIMIT,
                         "%s takes bytes %lld to %lld of a partition; on %s it stays in one bank of %lld", s->name,
                         (long long)s->at.b, (long long)(s->at.b_end - 1),
                         trn_generation_name(issue->core->spec->generation), (long long)bank);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_issue_check_pair(const trni_issue *issue)
{
    const trni_core_operand *first = NULL;
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!s->allocation || !(s->role & TRNI_ROLE_EITHER) || s->space != TRN_SPACE_PSUM) continue;
        if (first)
            return trni_fail(&issue->core->failure, TRN_ELIMIT, "%s '%s' and %s '%s' both lie in PSUM; one of them may",
                             first->name, first->allocation->name, s->name, s->allocation->name);
        first = s;
    }
    return TRN_OK;
}

/* The index that chooses rows of this operand; null: none does. */
TRNI_FN const trn_tensor *trni_issue_rows(const trni_issue *issue, const trni_core_operand *s)
{
    const trn_dma_copy_args *copy = (const trn_dma_copy_args *)issue->args;
    if (!(s->role & (TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED))) return NULL;
    if (issue->order == trni_order_of(TRNI_ORDER_dma_copy))
        return s->role & TRNI_ROLE_GATHERED ? &copy->src_index : &copy->dst_index;
    if (issue->order == trni_order_of(TRNI_ORDER_dma_compute))
        return &((const trn_dma_compute_args *)issue->args)->index;
    return &((const trn_dma_transpose_args *)issue->args)->index;
}

/* Somebody watches who of several cores uses what of HBM. Of rows by an index each is a use of its own. */
TRNI_DRIVER trn_status trni_issue_watch(const trni_issue *issue, bool after)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < issue->count && !status; i++) {
        const trni_core_operand *s = &issue->operand[i];
        const trni_hbm *h = (const trni_hbm *)(const void *)s->allocation; /* its first member */
        if (!h || s->memory || !h->watched) continue;
        const trn_tensor *const index = trni_issue_rows(issue, s);
        for (int write = 0; write < 2 && !status; write++) {
            if (!(s->role & (write ? TRNI_ROLE_WRITE : TRNI_ROLE_READ))) continue;
            if (!index) {
                status = issue->core->watch(issue->core, h, s->view, write, after);
                continue;
            }
            trni_hbm_rows rows;
            for (trni_hbm_rows_begin(&rows, index, s->view); !status && trni_hbm_rows_next(&rows);)
                status = issue->core->watch(issue->core, h, &rows.row, write, after);
        }
    }
    return status;
}

TRNI_DRIVER trn_status trni_issue_check_read(trni_issue *issue, const trni_core_operand *s)
{
    const bool data_decide = (s->role & (TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED)) != 0;
    if (!(s->role & TRNI_ROLE_READ)) return TRN_OK;
    if (!s->memory && !trni_issue_of_table(issue))
        return TRN_OK; /* others may write it before they come: cores_run.h */
    if (!s->memory) return trni_hbm_check_read(issue->core, s, trni_issue_rows(issue, s));
    if (data_decide && trni_carry_in(issue) != TRNI_CARRY_SHUFFLED) return TRN_OK;
    const trn_status status = trni_core_operand_unsure(s) ? trni_poison_check(issue, s) : TRN_OK;
    return status ? status : trni_core_operand_check_matmul(issue->core, s);
}

TRNI_DRIVER trn_status trni_issue_check(trni_issue *issue)
{
    trn_status status = trni_issue_check_pair(issue);
    if (!status && trni_indirect_operands(issue)) status = trni_indirect_check(issue);
    for (int i = 0; i < issue->count && !status; i++) {
        if (!issue->operand[i].allocation) continue;
        issue->core->culprit = issue->operand[i].allocation;
        status = trni_issue_check_place(issue, &issue->operand[i]);
        if (!status) status = trni_issue_check_read(issue, &issue->operand[i]);
    }
    if (!status) issue->core->culprit = NULL;
    if (!status && trni_indirect_operands(issue)) status = trni_indirect_gather(issue);
    return status;
}

/* ---- what it wrote ---- */

TRNI_FN void trni_issue_wrote(trni_issue *issue)
{
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!(s->role & TRNI_ROLE_WRITE) || !s->allocation) continue;
        if (!s->memory) {
            if (!trni_hbm_unsure(s)) continue;
            if (s->role & TRNI_ROLE_SCATTERED)
                issue->order->scatter(issue, s);
            else
                trni_hbm_wrote((const trni_hbm *)(const void *)s->allocation, s->view);
            continue;
        }
        if (s->allocation->unwritten > 0) trni_poison_wrote(issue, s);
        if (trni_indirect_of(issue, i) || trni_core_operand_adds(s)) continue; /* sums: all bits are there */
        if (!(s->role & TRNI_ROLE_SCATTERED))
            trni_core_operand_write(issue->core, s, issue->engine == TRN_ENGINE_TENSOR);
        else if (s->allocation->unwritten > 0)
            issue->order->scatter(issue, s);
    }
}

/* ---- cost ---- */

/* Device profiles go before the pages. */
TRNI_FN bool trni_issue_measured(const trni_issue *issue) { return issue->core->args.pace == TRN_PACE_MEASURED; }

TRNI_FN bool trni_is_16bit_float(trn_format f) { return f == TRN_BF16 || f == TRN_F16; }
TRNI_FN bool trni_is_fast_fp8(trn_format f) { return trni_is_fp8(f) && f != TRN_CFP8; }

TRNI_FN void trni_work_add(trn_engine_work *work, const trni_core_operand *s)
{
    const trn_format f = s->view->format;
    work->elements = fmax(work->elements, s->elements);
    work->all_16bit = work->all_16bit && trni_is_16bit_float(f);
    work->all_fast = work->all_fast && (trni_is_16bit_float(f) || trni_is_fast_fp8(f));
    work->all_bf16 = work->all_bf16 && f == TRN_BF16;
    work->scattered = work->scattered || (s->step && s->step != (int64_t)trn_format_bytes(f));
    work->far_stride = work->far_stride || (double)s->step > trni_fact(TRN_FACT_FAR_STRIDE);
    work->psum_inputs += s->space == TRN_SPACE_PSUM && (s->role & TRNI_ROLE_READ);
    work->psum_outputs += s->space == TRN_SPACE_PSUM && (s->role & TRNI_ROLE_WRITE);
}

TRNI_FN void trni_issue_work(const trni_issue *issue, trn_engine_work *work)
{
    memset(work, 0, sizeof *work);
    work->generation = issue->core->spec->generation;
    work->rule = trni_issue_rule(issue);
    work->all_16bit = work->all_fast = work->all_bf16 = true;
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].allocation && !(issue->operand[i].role & TRNI_ROLE_COLUMN))
            trni_work_add(work, &issue->operand[i]);
    if (issue->order->tune) issue->order->tune(issue, work);
    work->scattered = work->scattered || trni_indirect_operands(issue) > 0;
    work->more_cycles += trni_indirect_operands(issue) * trni_fact(TRN_FACT_INDIRECT);
    work->joined = trni_joined_columns(issue->operand, issue->count) > 0;
}

/* The instruction begins right after the one before it on its engine: does the pipeline show? */
TRNI_FN bool trni_issue_dependent(const trni_issue *issue, const trn_engine_work *work)
{
    const trni_lane *lane = &issue->core->lane[issue->engine];
    if (lane->instructions == 0 || issue->start_s > lane->free_s) return false;
    if (lane->brief && work->elements < trni_fact(TRN_FACT_SHORT)) return true;
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (s->allocation && (s->role & TRNI_ROLE_READ) && trni_lane_follows(lane, s->allocation, &s->at)) return true;
    }
    return false;
}

TRNI_FN trn_status trni_issue_cost_engine(trni_issue *issue)
{
    trni_lane *lane = &issue->core->lane[issue->engine];
    trn_engine_work work;
    trn_engine_cost cost;
    trni_issue_work(issue, &work);
    work.dependent = trni_issue_dependent(issue, &work);
    work.measured = trni_issue_measured(issue);
    if (trn_engine_cycles(&work, &cost))
        return trni_fail(&issue->core->failure, TRN_EINVAL, "it has no cost on engine %s",
                         trn_engine_name(issue->engine));
    lane->brief = work.elements < trni_fact(TRN_FACT_SHORT);
    issue->cycles = cost.cycles;
    issue->seconds = cost.seconds;
    trni_joined_wrote(issue->operand, issue->count,
                      work.joined ? trni_joined_columns(issue->operand, issue->count) : 0);
    return TRN_OK;
}

/* ---- who ---- */

/* Of VectorE and ScalarE the one that will have worked less, as a compiler shares between them what both take
 * (measured: device.md). ScalarE takes no long rows. */
TRNI_FN trn_engine trni_issue_less_busy(trni_issue *issue)
{
    static const trn_engine both[2] = { TRN_ENGINE_VECTOR, TRN_ENGINE_SCALAR };
    double busy_s[2];
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].elements > trni_scalar_longest(&issue->operand[i])) return TRN_ENGINE_VECTOR;
    for (int i = 0; i < 2; i++) {
        trn_engine_work work;
        trn_engine_cost cost;
        issue->engine = both[i];
        trni_issue_work(issue, &work);
        work.measured = true;
        if (trn_engine_cycles(&work, &cost)) return TRN_ENGINE_VECTOR;
        busy_s[i] = issue->core->lane[both[i]].busy_s + cost.seconds;
    }
    return busy_s[1] < busy_s[0] ? TRN_ENGINE_SCALAR : TRN_ENGINE_VECTOR;
}

/* Who executes: as the args say, else as the row chooses. */
TRNI_FN void trni_issue_engine(trni_issue *issue)
{
    const trni_order *order = issue->order;
    issue->engine = order->engine;
    if (order->engine == TRN_ENGINE_TENSOR || order->engine == TRN_ENGINE_DMA) return;
    trn_instruction *how = trni_issue_how(issue);
    if (how->engine == TRN_ENGINE_UNKNOWN && order->choose) {
        how->engine = order->choose(issue);
        if (how->engine == TRN_ENGINE_UNKNOWN && trni_issue_measured(issue)) how->engine = trni_issue_less_busy(issue);
    }
    const bool computes = how->engine >= TRN_ENGINE_VECTOR && how->engine <= TRN_ENGINE_GPSIMD;
    issue->engine = computes ? how->engine : order->engine; /* of others the instruction itself will speak */
}

/* ---- the Tensor engine ---- */

/* Seconds of an engine that warms up, and was idle before. */
TRNI_FN double trni_issue_warmed(trn_core *core, double waited_s, double seconds, double rows)
{
    trni_throttle_wait(core->spec, &core->throttle, waited_s);
    const double begin_s = trni_throttle_s(&core->throttle);
    trni_throttle_work(core->spec, &core->throttle, seconds, rows);
    return trni_throttle_s(&core->throttle) - begin_s;
}

/* The load hides behind the multiplication before it, and behind the time that the engine waits. */
TRNI_FN trn_status trni_issue_cost_tensor(trni_issue *issue)
{
    trn_core *core = issue->core;
    const double waited_s = issue->start_s - core->lane[TRN_ENGINE_TENSOR].free_s;
    trn_tensor_instruction i;
    trn_tensor_cost cost;
    memset(&i, 0, sizeof i);
    memset(&cost, 0, sizeof cost);
    i.generation = core->spec->generation;
    i.before_cycles = core->multiply_cycles + waited_s * core->spec->tensor_clock_hz;
    i.error = &core->failure;
    issue->order->tensor(issue, &i);
    issue->cycles = issue->seconds = 0;
    trni_joined_wrote(issue->operand, issue->count, 0);
    if (i.k == 0 || i.m == 0) return TRN_OK; /* nothing to do */
    const trn_status status = trn_tensor_instruction_cost(&i, &cost);
    if (status) return status;
    core->multiply_cycles = cost.multiply_cycles;
    const double more_cycles = trni_indirect_operands(issue) * trni_fact(TRN_FACT_INDIRECT);
    issue->cycles = cost.cycles + more_cycles;
    issue->seconds = cost.seconds + more_cycles / core->spec->tensor_clock_hz;
    if (trni_issue_measured(issue))
        issue->seconds = trni_issue_warmed(core, waited_s, issue->seconds, cost.rows_at_work);
    return TRN_OK;
}

/* ---- time ---- */

TRNI_FN double trni_issue_ready(const trni_issue *issue)
{
    double ready_s = issue->core->flow_s[issue->engine];
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!s->allocation) continue;
        ready_s = fmax(ready_s, trni_history_ready(&issue->core->history, s->allocation, &s->at,
                                                   (s->role & TRNI_ROLE_WRITE) != 0));
    }
    return ready_s;
}

/* Only whole rectangles count: of others, and of rows that data choose, it is not known which bytes they are. */
TRNI_FN void trni_issue_touch(const trni_issue *issue, const trni_core_operand *s)
{
    const trni_hbm *h = (const trni_hbm *)(const void *)s->allocation; /* its first member */
    trni_touches *all = issue->core->touches;
    trni_touch t;
    memset(&t, 0, sizeof t);
    t.at = h->base + s->at.p * h->pitch + s->at.b;
    t.rows = s->at.p_end - s->at.p;
    t.bytes = s->at.b_end - s->at.b;
    t.pitch = h->pitch;
    t.write = (s->role & TRNI_ROLE_WRITE) != 0;
    if (s->elements * (double)trn_format_bytes(s->view->format) < (double)t.rows * (double)t.bytes) return;
    for (int i = 0; i < all->count; i++) {
        const trni_touch *o = &all->touch[i];
        if (o->at == t.at && o->rows == t.rows && o->bytes == t.bytes && o->pitch == t.pitch && o->write >= t.write)
            return;
    }
    if (all->count == TRNI_TOUCHES) return;
    t.instruction = issue->core->instructions;
    memcpy(t.name, h->tensor.name, sizeof t.name);
    all->touch[all->count++] = t;
}

TRNI_FN void trni_issue_note(const trni_issue *issue)
{
    trn_core *core = issue->core;
    for (int pass = 0; pass < 2; pass++) /* reads, then writes, which take their places */
        for (int i = 0; i < issue->count; i++) {
            const trni_core_operand *s = &issue->operand[i];
            const bool write = (s->role & TRNI_ROLE_WRITE) != 0;
            if (s->allocation && write == (pass == 1))
                trni_history_note(&core->history, s->allocation, &s->at, write, issue->end_s);
            const bool data_decide = (s->role & (TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED)) != 0;
            if (core->touches && s->allocation && !s->memory && pass && !data_decide) trni_issue_touch(issue, s);
        }
    core->time_s = fmax(core->time_s, issue->end_s);
}

TRNI_FN void trni_issue_event(const trni_issue *issue, trn_engine engine, const char *name, double start_s,
                              double seconds)
{
    char text[TRN_TRACE_TEXT] = "";
    trn_trace *trace = issue->core->args.trace;
    if (!trace) return;
    int used = 0;
    for (int i = 0; i < issue->count && i < 3 && used < (int)sizeof text - 1; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!s->allocation) continue;
        used += trni_print(text + used, sizeof text - (size_t)used, "%s%s: %s, %lld x %.0f %s", used ? "; " : "",
                           s->name, s->allocation->name, (long long)s->view->shape[0],
                           s->memory && issue->engine != TRN_ENGINE_DMA ? s->elements
                                                                        : s->elements / (double)s->view->shape[0],
                           trn_format_name(s->view->format));
    }
    trn_trace_add(trace, (int)engine - 1, name, start_s, seconds, text);
}

TRNI_FN void trni_lane_ran(trni_lane *lane, const trni_issue *issue)
{
    lane->instructions++;
    lane->cycles += issue->cycles;
    lane->busy_s += issue->seconds;
    if (issue->engine == TRN_ENGINE_DMA || issue->end_s > lane->free_s) lane->free_s = issue->end_s;
    lane->writes = 0;
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].allocation && (issue->operand[i].role & TRNI_ROLE_WRITE))
            trni_lane_wrote(lane, issue->operand[i].allocation, &issue->operand[i].at);
}

/* Ports that two engines of Trainium1 take turns at; null where there are none. */
TRNI_FN double *trni_issue_port(const trni_issue *issue, trn_space space)
{
    trn_core *core = issue->core;
    const trn_engine other = space == TRN_SPACE_SBUF ? TRN_ENGINE_GPSIMD : TRN_ENGINE_SCALAR;
    if (core->spec->generation != TRN_TRAINIUM1) return NULL;
    if (issue->engine != TRN_ENGINE_VECTOR && issue->engine != other) return NULL;
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].allocation && issue->operand[i].space == space)
            return space == TRN_SPACE_SBUF ? &core->sbuf_port_s : &core->psum_port_s;
    return NULL;
}

TRNI_DRIVER trn_status trni_issue_time_engine(trni_issue *issue)
{
    trni_lane *lane = &issue->core->lane[issue->engine];
    double *port[2] = { trni_issue_port(issue, TRN_SPACE_SBUF), trni_issue_port(issue, TRN_SPACE_PSUM) };
    double ready_s = trni_issue_ready(issue);
    for (int i = 0; i < 2; i++)
        if (port[i]) ready_s = fmax(ready_s, *port[i]);
    issue->ready_s = ready_s;
    issue->start_s = fmax(lane->free_s, ready_s);
    const trn_status status =
        issue->engine == TRN_ENGINE_TENSOR ? trni_issue_cost_tensor(issue) : trni_issue_cost_engine(issue);
    if (status) return status;
    if (trni_issue_measured(issue)) issue->start_s = trni_channel_place(&lane->order, ready_s, issue->seconds);
    issue->end_s = issue->start_s + issue->seconds;
    for (int i = 0; i < 2; i++)
        if (port[i]) *port[i] = issue->end_s;
    trni_lane_ran(lane, issue);
    trni_issue_event(issue, issue->engine, issue->order->name, issue->start_s, issue->seconds);
    return TRN_OK;
}

/* Descriptors: GpSimd's software makes them, or one of the generators in hardware, or they lie ready. Returns when. */
TRNI_FN double trni_issue_descriptors(trni_issue *issue, const trn_dma_cost *cost, double ready_s)
{
    trn_core *core = issue->core;
    if (cost->gpsimd_s > 0) {
        trni_lane *lane = &core->lane[TRN_ENGINE_GPSIMD];
        const double start_s = trni_issue_measured(issue) ? trni_channel_place(&lane->order, ready_s, cost->gpsimd_s)
                                                          : fmax(lane->free_s, ready_s);
        lane->free_s = fmax(lane->free_s, start_s + cost->gpsimd_s);
        lane->busy_s += cost->gpsimd_s;
        lane->cycles += cost->gpsimd_s * core->spec->gpsimd_clock_hz;
        trni_issue_event(issue, TRN_ENGINE_GPSIMD, "descriptors", start_s, cost->gpsimd_s);
        return start_s + cost->gpsimd_s;
    }
    if (cost->issue_s <= 0) return ready_s;
    double *dge = core->dge_free_s[1] < core->dge_free_s[0] ? &core->dge_free_s[1] : &core->dge_free_s[0];
    *dge = fmax(*dge, ready_s) + cost->issue_s;
    return *dge;
}

/* The most partitions of SBUF that an operand has; 0 where none lies there. */
TRNI_FN double trni_issue_partitions(const trni_issue *issue)
{
    int64_t most = 0;
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (s->memory && s->at.p_end - s->at.p > most) most = s->at.p_end - s->at.p;
    }
    return (double)most;
}

/* Bytes of a row that the transfers before brought, which this one continues. */
TRNI_FN double trni_issue_continues(trni_issue *issue)
{
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!s->allocation || s->memory) continue;
        const int64_t before = trni_joined_bytes((trni_hbm *)(void *)s->allocation, &s->at); /* its first member */
        trni_joined_wrote(issue->operand, issue->count, before / (int64_t)trn_format_bytes(s->view->format));
        return (double)before;
    }
    trni_joined_wrote(issue->operand, issue->count, 0);
    return 0;
}

/* A piece at a time, where transfers share the engines, or all at once. */
TRNI_FN void trni_issue_transfer(trni_issue *issue, double ready_s)
{
    trni_channel *channel = &issue->core->channel;
    double left_s = issue->seconds, from_s, piece_s;
    if (!trni_issue_measured(issue) || left_s <= 0) {
        issue->start_s = trni_channel_place(channel, ready_s, left_s);
        issue->end_s = issue->start_s + left_s;
        trni_issue_event(issue, TRN_ENGINE_DMA, issue->order->name, issue->start_s, left_s);
        return;
    }
    issue->start_s = -1;
    for (; left_s > 0; left_s -= piece_s) {
        piece_s = trni_channel_piece(channel, ready_s, left_s, &from_s);
        if (issue->start_s < 0) issue->start_s = from_s;
        issue->end_s = from_s + piece_s;
        trni_issue_event(issue, TRN_ENGINE_DMA, issue->order->name, from_s, piece_s);
    }
}

TRNI_DRIVER trn_status trni_issue_time_dma(trni_issue *issue)
{
    trn_core *core = issue->core;
    trn_dma_work work;
    trn_dma_cost cost;
    memset(&work, 0, sizeof work);
    work.generation = core->spec->generation;
    for (int i = 0; i < issue->count; i++)
        if (!issue->operand[i].allocation) return TRN_OK; /* an empty operand: nothing moves */
    issue->order->dma(issue, &work);
    work.measured = trni_issue_measured(issue);
    work.partitions = trni_issue_partitions(issue);
    work.before_bytes = work.measured ? trni_issue_continues(issue) : 0;
    if (trn_dma_seconds(&work, &cost))
        return trni_fail(&core->failure, TRN_EINVAL, "compression is %g; no transfer takes that long", work.wire);
    issue->ready_s = trni_issue_ready(issue);
    const double ready_s = trni_issue_descriptors(issue, &cost, issue->ready_s);
    issue->seconds = cost.transfer_s;
    trni_issue_transfer(issue, ready_s + cost.latency_s);
    core->dma_bytes += work.bytes;
    trni_lane_ran(&core->lane[TRN_ENGINE_DMA], issue);
    return TRN_OK;
}

TRNI_FN void trni_issue_step(const trni_issue *issue)
{
    trn_core_steps *all = issue->core->args.steps;
    if (!all || all->count >= all->capacity) return;
    trn_core_step *s = &all->step[all->count++];
    s->ready_s = issue->ready_s;
    s->start_s = issue->start_s;
    s->end_s = issue->end_s;
    s->mark = issue->core->mark;
    s->engine = issue->engine;
}

/* ---- one instruction ---- */

TRNI_COLD trn_status trni_issue_failed(const trni_issue *issue, trn_status status, trn_error *error)
{
    trn_core *core = issue->core;
    char why[sizeof core->failure.text];
    memcpy(why, core->failure.text, sizeof why);
    why[sizeof why - 1] = 0;
    trni_fail(&core->failure, status, "instruction %lld, %s: %.200s", (long long)core->instructions, issue->order->name,
              why);
    trni_core_fail(core, status);
    if (error) *error = core->failure;
    return status;
}

/* run: the instruction itself. args: a copy that may be changed, whose error is the core's. */
TRNI_FN trn_status trni_core_issue(trn_core *core, int order, trn_status (*run)(const void *args), void *args,
                                   trn_error *error)
{
    trni_issue issue;
    issue.core = core;
    issue.order = trni_order_of(order);
    issue.args = args;
    issue.count = issue.parts = 0;
    issue.poisoned = false;
    issue.ready_s = issue.start_s = issue.end_s = issue.cycles = issue.seconds = 0;
    trn_status status = trni_issue_gather(&issue);
    if (!status) {
        trni_issue_engine(&issue);
        status = trni_issue_check(&issue);
    }
    if (!status && core->watch) status = trni_issue_watch(&issue, false);
    if (!status) status = run(args);
    if (!status && core->watch) status = trni_issue_watch(&issue, true);
    if (status) return trni_issue_failed(&issue, status, error);
    if (trni_indirect_operands(&issue)) trni_indirect_scatter(&issue);
    if (issue.poisoned)
        trni_poison_carry(&issue);
    else
        trni_issue_wrote(&issue);
    status = issue.engine == TRN_ENGINE_DMA ? trni_issue_time_dma(&issue) : trni_issue_time_engine(&issue);
    if (status) return trni_issue_failed(&issue, status, error);
    trni_issue_note(&issue);
    trni_issue_step(&issue);
    core->instructions++;
    return TRN_OK;
}

/* ---- every instruction by its name ---- */

TRNI_FN trn_status trni_core_generation(trn_core *core, const char *name, trn_generation *generation)
{
    if (core->failure.status) return core->failure.status;
    if (*generation == TRN_GENERATION_DEFAULT) *generation = core->spec->generation;
    if (*generation == core->spec->generation) return TRN_OK;
    return trni_core_fail(core, trni_fail(&core->failure, TRN_EINVAL,
                                          "instruction %lld, %s: it is for generation %s, the core is %s",
                                          (long long)core->instructions, name, trn_generation_name(*generation),
                                          trn_generation_name(core->spec->generation)));
}

#define TRNI_CORE_COMMON(name)                                                                                         \
    TRNI_FLOATS;                                                                                                       \
    trn_##name##_args copy = *args;                                                                                    \
    const trn_status status = trni_core_generation(core, #name, &copy.generation);                                     \
    if (status) return status;                                                                                         \
    if (copy.isa == TRN_ISA_AUTO) copy.isa = core->args.isa;                                                           \
    copy.error = &core->failure

#define TRNI_CORE_RUN(name)                                                                                            \
    TRNI_FN trn_status trni_run_##name(const void *args) { return trn_##name((const trn_##name##_args *)args); }

#endif /* TRNI_CORE_CORE_RUN_H */

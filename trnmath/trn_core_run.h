/* trn_core_run.h - one NeuronCore at work: every instruction, checked against the machine's memory, run, and timed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core_run.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static float x[128 * 64];
 *         trn_core core;
 *         const trn_core_args args = { .generation = TRN_TRAINIUM2 };
 *         if (trn_core_begin(&core, &args)) return 1;
 *         trn_tensor hbm = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 64));
 *         trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 128, 64);
 *         const trn_dma_copy_args load = { .dst = tile, .src = hbm };
 *         trn_core_dma_copy(&core, &load);
 *         const char *text;
 *         const trn_status status = trn_core_status(&core, &text);
 *         if (status) fprintf(stderr, "%s\n", text);
 *         trn_core_end(&core);
 *         return status;
 *     }
 *
 * DOES: for every instruction: fills in what its args leave open from the core (generation, numerics, rounding, random
 *     stream, instruction set, registers), finds its operands, refuses what the machine cannot do, runs it, keeps which
 *     bytes are written, and gives it a place in time. trn_core.h is the guide.
 * DOES NOT: compute; the engines' headers do. Row and column tiles of TensorE run after each other here, a cold TensorE
 *     is as fast as a warm one, and VectorE and GpSimdE of Trainium2 and 3 do not slow each other on their shared bus.
 *
 * CONTENTS
 *     trn_core_<instruction>         all of nki.isa that exists here, with the same args
 *     trn_core_engine_report, trn_core_report, trn_core_report_of   how long, how full, what bounds it
 *
 * KNOWN FROM: engines run in parallel and wait for each other's results; VectorE and GpSimdE of Trainium1 cannot use
 *     SBUF at the same time, nor VectorE and ScalarE PSUM; DMA's latency and rates (documented). That transfers overlap
 *     their latencies and use all DMA engines, and that semaphores cost nothing: assumed.
 */
#ifndef TRN_CORE_RUN_H
#define TRN_CORE_RUN_H

#include "trn_core_table.h"

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
    for (int i = 0; i < issue->count && !core->failure.status; i++)
        trni_seen_locate(core, &issue->seen[i], order->engine != TRN_ENGINE_DMA);
    return core->failure.status;
}

/* Who executes: as the args say, else as the row chooses. */
TRNI_FN void trni_issue_engine(trni_issue *issue)
{
    const trni_order *order = issue->order;
    issue->engine = order->engine;
    if (order->engine == TRN_ENGINE_TENSOR || order->engine == TRN_ENGINE_DMA) return;
    trn_instruction *how = trni_issue_how(issue);
    if (how->engine == TRN_ENGINE_UNKNOWN && order->choose) how->engine = order->choose(issue);
    const bool computes = how->engine >= TRN_ENGINE_VECTOR && how->engine <= TRN_ENGINE_GPSIMD;
    if (computes) issue->engine = how->engine; /* of others the instruction itself will speak */
}

/* ---- legality ---- */

/* Elements of a partition that ScalarE takes at once: documented, Trainium1's guide. */
enum { TRNI_SCALAR_SBUF = 65536, TRNI_SCALAR_PSUM = 4096 };

TRNI_COLD trn_status trni_issue_check_place(const trni_issue *issue, const trni_seen *s)
{
    trn_error *error = &issue->core->failure;
    const trn_engine e = issue->engine;
    const bool psum = s->space == TRN_SPACE_PSUM;
    const int64_t bank = issue->core->memory[TRN_SPACE_PSUM].bank_bytes;
    if (psum && (e == TRN_ENGINE_GPSIMD || e == TRN_ENGINE_DMA))
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in PSUM, which %s does not reach", s->name, s->tenant->name,
                         e == TRN_ENGINE_DMA ? "DMA" : "GpSimdE");
    const double longest = psum ? TRNI_SCALAR_PSUM : TRNI_SCALAR_SBUF;
    if (e == TRN_ENGINE_SCALAR && s->elements > longest)
        return trni_fail(error, TRN_ELIMIT, "%s has %.0f elements per partition; ScalarE takes %.0f from %s", s->name,
                         s->elements, longest, trn_space_name(s->space));
    if ((s->role & TRNI_ROLE_SBUF) && s->space != TRN_SPACE_SBUF)
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in %s; it has to be in SBUF", s->name, s->tenant->name,
                         trn_space_name(s->space));
    if (!(s->role & TRNI_ROLE_PSUM)) return TRN_OK;
    if (!psum)
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in %s; TensorE writes to PSUM only", s->name, s->tenant->name,
                         trn_space_name(s->space));
    if (issue->core->spec->generation < TRN_TRAINIUM3 && s->at.b / bank != (s->at.b_end - 1) / bank)
        return trni_fail(error, TRN_ELIMIT,
                         "%s takes bytes %lld to %lld of a partition; on %s it stays in one bank of %lld", s->name,
                         (long long)s->at.b, (long long)(s->at.b_end - 1),
                         trn_generation_name(issue->core->spec->generation), (long long)bank);
    return TRN_OK;
}

TRNI_COLD trn_status trni_issue_check_pair(const trni_issue *issue)
{
    const trni_seen *first = NULL;
    for (int i = 0; i < issue->count; i++) {
        const trni_seen *s = &issue->seen[i];
        if (!s->tenant || !(s->role & TRNI_ROLE_EITHER) || s->space != TRN_SPACE_PSUM) continue;
        if (first)
            return trni_fail(&issue->core->failure, TRN_ELIMIT, "%s '%s' and %s '%s' both lie in PSUM; one of them may",
                             first->name, first->tenant->name, s->name, s->tenant->name);
        first = s;
    }
    return TRN_OK;
}

TRNI_COLD trn_status trni_issue_check_read(const trni_issue *issue, const trni_seen *s)
{
    const bool data_decide = (s->role & (TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED)) != 0;
    if (!(s->role & TRNI_ROLE_READ) || data_decide) return TRN_OK;
    const trn_status status = trni_seen_check_written(issue->core, s);
    return status || !(s->role & TRNI_ROLE_PSUM) ? status : trni_seen_check_matmul(issue->core, s);
}

TRNI_COLD trn_status trni_issue_check(const trni_issue *issue)
{
    trn_status status = trni_issue_check_pair(issue);
    for (int i = 0; i < issue->count && !status; i++) {
        if (!issue->seen[i].tenant) continue;
        status = trni_issue_check_place(issue, &issue->seen[i]);
        if (!status) status = trni_issue_check_read(issue, &issue->seen[i]);
    }
    return status;
}

/* ---- what it wrote ---- */

TRNI_FN void trni_issue_wrote(trni_issue *issue)
{
    for (int i = 0; i < issue->count; i++) {
        const trni_seen *s = &issue->seen[i];
        if (!(s->role & TRNI_ROLE_WRITE) || !s->tenant || !s->memory) continue;
        if (!(s->role & TRNI_ROLE_SCATTERED)) trni_seen_write(issue->core, s, issue->engine == TRN_ENGINE_TENSOR);
        else if (s->tenant->unwritten > 0) issue->order->scatter(issue, s);
    }
}

/* ---- cost ---- */

TRNI_FN bool trni_is_16bit_float(trn_format f) { return f == TRN_BF16 || f == TRN_F16; }
TRNI_FN bool trni_is_f8(trn_format f)
{
    return f == TRN_F8_E4M3 || f == TRN_F8_E4M3FN || f == TRN_F8_E5M2 || f == TRN_F8_E3M4;
}

TRNI_FN void trni_work_add(trn_engine_work *work, const trni_seen *s)
{
    const trn_format f = s->view->format;
    work->elements = fmax(work->elements, s->elements);
    work->all_16bit = work->all_16bit && trni_is_16bit_float(f);
    work->all_fast = work->all_fast && (trni_is_16bit_float(f) || trni_is_f8(f));
    work->all_bf16 = work->all_bf16 && f == TRN_BF16;
    work->scattered = work->scattered || (s->step && s->step != (int64_t)trn_format_bytes(f));
    work->far_stride = work->far_stride || (double)s->step > trni_fact(TRN_FACT_FAR_STRIDE);
    work->psum_inputs += s->space == TRN_SPACE_PSUM && (s->role & TRNI_ROLE_READ);
    work->psum_outputs += s->space == TRN_SPACE_PSUM && (s->role & TRNI_ROLE_WRITE);
}

TRNI_FN void trni_issue_work(const trni_issue *issue, trn_engine_work *work)
{
    static const int place[TRN_ENGINE_COUNT] = { -1, -1, 0, 1, 2, -1 }; /* of trni_order.rule */
    memset(work, 0, sizeof *work);
    work->generation = issue->core->spec->generation;
    work->rule = issue->order->rule[place[issue->engine]];
    work->all_16bit = work->all_fast = work->all_bf16 = true;
    for (int i = 0; i < issue->count; i++)
        if (issue->seen[i].tenant && !(issue->seen[i].role & TRNI_ROLE_COLUMN)) trni_work_add(work, &issue->seen[i]);
    if (issue->order->tune) issue->order->tune(issue, work);
}

/* The instruction begins right after the one before it on its engine: does the pipeline show? */
TRNI_FN bool trni_issue_dependent(const trni_issue *issue, const trn_engine_work *work)
{
    const trni_lane *lane = &issue->core->lane[issue->engine];
    if (lane->instructions == 0 || issue->start_s > lane->free_s) return false;
    if (lane->brief && work->elements < trni_fact(TRN_FACT_SHORT)) return true;
    for (int i = 0; i < issue->count; i++) {
        const trni_seen *s = &issue->seen[i];
        if (s->tenant && (s->role & TRNI_ROLE_READ) && trni_lane_follows(lane, s->tenant, &s->at)) return true;
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
    if (trn_engine_cycles(&work, &cost))
        return trni_fail(&issue->core->failure, TRN_EINVAL, "it has no cost on engine %s",
                         trn_engine_name(issue->engine));
    lane->brief = work.elements < trni_fact(TRN_FACT_SHORT);
    issue->cycles = cost.cycles;
    issue->seconds = cost.seconds;
    return TRN_OK;
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
    if (i.k == 0 || i.m == 0) return TRN_OK; /* nothing to do */
    const trn_status status = trn_tensor_instruction_cost(&i, &cost);
    if (status) return status;
    core->multiply_cycles = cost.multiply_cycles;
    issue->cycles = cost.cycles;
    issue->seconds = cost.seconds;
    return TRN_OK;
}

/* ---- time ---- */

TRNI_FN double trni_issue_ready(const trni_issue *issue)
{
    double ready_s = 0;
    for (int i = 0; i < issue->count; i++) {
        const trni_seen *s = &issue->seen[i];
        if (!s->tenant) continue;
        ready_s = fmax(ready_s, trni_history_ready(&issue->core->history, s->tenant, &s->at,
                                                   (s->role & TRNI_ROLE_WRITE) != 0));
    }
    return ready_s;
}

TRNI_FN void trni_issue_note(const trni_issue *issue)
{
    trn_core *core = issue->core;
    for (int pass = 0; pass < 2; pass++) /* reads, then writes, which take their places */
        for (int i = 0; i < issue->count; i++) {
            const trni_seen *s = &issue->seen[i];
            const bool write = (s->role & TRNI_ROLE_WRITE) != 0;
            if (s->tenant && write == (pass == 1))
                trni_history_note(&core->history, s->tenant, &s->at, write, issue->end_s);
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
        const trni_seen *s = &issue->seen[i];
        if (!s->tenant) continue;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s: %s, %lld x %.0f %s", used ? "; " : "", s->name,
                         s->tenant->name, (long long)s->view->shape[0],
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
    lane->free_s = issue->end_s;
    lane->writes = 0;
    for (int i = 0; i < issue->count; i++)
        if (issue->seen[i].tenant && (issue->seen[i].role & TRNI_ROLE_WRITE))
            trni_lane_wrote(lane, issue->seen[i].tenant, &issue->seen[i].at);
}

/* Ports that two engines of Trainium1 take turns at; null where there are none. */
TRNI_FN double *trni_issue_port(const trni_issue *issue, trn_space space)
{
    trn_core *core = issue->core;
    const trn_engine other = space == TRN_SPACE_SBUF ? TRN_ENGINE_GPSIMD : TRN_ENGINE_SCALAR;
    if (core->spec->generation != TRN_TRAINIUM1) return NULL;
    if (issue->engine != TRN_ENGINE_VECTOR && issue->engine != other) return NULL;
    for (int i = 0; i < issue->count; i++)
        if (issue->seen[i].tenant && issue->seen[i].space == space)
            return space == TRN_SPACE_SBUF ? &core->sbuf_port_s : &core->psum_port_s;
    return NULL;
}

TRNI_FN trn_status trni_issue_time_engine(trni_issue *issue)
{
    trni_lane *lane = &issue->core->lane[issue->engine];
    double *port[2] = { trni_issue_port(issue, TRN_SPACE_SBUF), trni_issue_port(issue, TRN_SPACE_PSUM) };
    issue->start_s = fmax(lane->free_s, trni_issue_ready(issue));
    for (int i = 0; i < 2; i++)
        if (port[i]) issue->start_s = fmax(issue->start_s, *port[i]);
    const trn_status status = issue->engine == TRN_ENGINE_TENSOR ? trni_issue_cost_tensor(issue)
                                                                 : trni_issue_cost_engine(issue);
    if (status) return status;
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
        const double start_s = fmax(lane->free_s, ready_s);
        lane->free_s = start_s + cost->gpsimd_s;
        lane->busy_s += cost->gpsimd_s;
        lane->cycles += cost->gpsimd_s * core->spec->gpsimd_clock_hz;
        trni_issue_event(issue, TRN_ENGINE_GPSIMD, "descriptors", start_s, cost->gpsimd_s);
        return lane->free_s;
    }
    if (cost->issue_s <= 0) return ready_s;
    double *dge = core->dge_free_s[1] < core->dge_free_s[0] ? &core->dge_free_s[1] : &core->dge_free_s[0];
    *dge = fmax(*dge, ready_s) + cost->issue_s;
    return *dge;
}

TRNI_FN trn_status trni_issue_time_dma(trni_issue *issue)
{
    trn_core *core = issue->core;
    trn_dma_work work;
    trn_dma_cost cost;
    memset(&work, 0, sizeof work);
    work.generation = core->spec->generation;
    for (int i = 0; i < issue->count; i++)
        if (!issue->seen[i].tenant) return TRN_OK; /* an empty operand: nothing moves */
    issue->order->dma(issue, &work);
    if (trn_dma_seconds(&work, &cost))
        return trni_fail(&core->failure, TRN_EINVAL, "compression is %g; no transfer takes that long", work.wire);
    const double ready_s = trni_issue_descriptors(issue, &cost, trni_issue_ready(issue));
    issue->seconds = cost.transfer_s;
    issue->start_s = trni_channel_place(&core->channel, ready_s + cost.latency_s, cost.transfer_s);
    issue->end_s = issue->start_s + cost.transfer_s;
    core->dma_bytes += work.bytes;
    trni_lane_ran(&core->lane[TRN_ENGINE_DMA], issue);
    trni_issue_event(issue, TRN_ENGINE_DMA, issue->order->name, issue->start_s, cost.transfer_s);
    return TRN_OK;
}

/* ---- one instruction ---- */

TRNI_FN trn_status trni_issue_failed(const trni_issue *issue, trn_status status, trn_error *error)
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
    issue.count = 0;
    issue.start_s = issue.end_s = issue.cycles = issue.seconds = 0;
    trn_status status = trni_issue_gather(&issue);
    if (!status) {
        trni_issue_engine(&issue);
        status = trni_issue_check(&issue);
    }
    if (!status) status = run(args);
    if (status) return trni_issue_failed(&issue, status, error);
    trni_issue_wrote(&issue);
    status = issue.engine == TRN_ENGINE_DMA ? trni_issue_time_dma(&issue) : trni_issue_time_engine(&issue);
    if (status) return trni_issue_failed(&issue, status, error);
    trni_issue_note(&issue);
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

#define TRNI_CORE_COMMON(name)                                                                            \
    trn_##name##_args copy = *args;                                                                       \
    const trn_status status = trni_core_generation(core, #name, &copy.generation);                        \
    if (status) return status;                                                                            \
    if (copy.isa == TRN_ISA_AUTO) copy.isa = core->args.isa;                                              \
    copy.error = &core->failure

#define TRNI_CORE_RUN(name) \
    TRNI_FN trn_status trni_run_##name(const void *args) { return trn_##name((const trn_##name##_args *)args); }

/* What the args leave open is the core's: generation, numerics, rounding, random stream, registers. The first failure
 * is kept (trn_core_status), and nothing happens after it. */
#define TRNI_CORE_INSTRUCTION(name)                                                                       \
    TRNI_CORE_RUN(name)                                                                                   \
    TRNI_FN trn_status trn_core_##name(trn_core *core, const trn_##name##_args *args)                     \
    {                                                                                                     \
        TRNI_CORE_COMMON(name);                                                                           \
        if (!copy.numerics) copy.numerics = &core->numerics;                                              \
        if (copy.rounding == TRN_NEAREST_EVEN) copy.rounding = core->args.rounding;                       \
        if (!copy.seed && !copy.stream) {                                                                 \
            copy.seed = core->args.seed;                                                                  \
            copy.stream = (uint64_t)core->instructions;                                                   \
        }                                                                                                 \
        return trni_core_issue(core, TRNI_ORDER_##name, trni_run_##name, &copy, args->error);         \
    }

TRNI_CORE_INSTRUCTION(nc_matmul)
TRNI_CORE_INSTRUCTION(nc_matmul_mx)
TRNI_CORE_INSTRUCTION(nc_matmul_sparse)
TRNI_CORE_INSTRUCTION(tensor_tensor)
TRNI_CORE_INSTRUCTION(tensor_scalar)
TRNI_CORE_INSTRUCTION(scalar_tensor_tensor)
TRNI_CORE_INSTRUCTION(tensor_copy)
TRNI_CORE_INSTRUCTION(tensor_copy_predicated)
TRNI_CORE_INSTRUCTION(memset)
TRNI_CORE_INSTRUCTION(reciprocal)
TRNI_CORE_INSTRUCTION(tensor_reduce)
TRNI_CORE_INSTRUCTION(tensor_scalar_reduce)
TRNI_CORE_INSTRUCTION(tensor_scalar_cumulative)
TRNI_CORE_INSTRUCTION(tensor_tensor_scan)
TRNI_CORE_INSTRUCTION(exponential)
TRNI_CORE_INSTRUCTION(range_select)
TRNI_CORE_INSTRUCTION(select_reduce)
TRNI_CORE_INSTRUCTION(bn_stats)
TRNI_CORE_INSTRUCTION(bn_aggr)
TRNI_CORE_INSTRUCTION(max8)
TRNI_CORE_INSTRUCTION(nc_find_index8)
TRNI_CORE_INSTRUCTION(nc_match_replace8)
TRNI_CORE_INSTRUCTION(nc_stream_shuffle)
TRNI_CORE_INSTRUCTION(vector_transpose)
TRNI_CORE_INSTRUCTION(quantize_mx)
TRNI_CORE_INSTRUCTION(rng)
TRNI_CORE_INSTRUCTION(rand2)
TRNI_CORE_INSTRUCTION(dropout)
TRNI_CORE_INSTRUCTION(set_rng_seed)
TRNI_CORE_INSTRUCTION(rand_set_state)
TRNI_CORE_INSTRUCTION(rand_get_state)
TRNI_CORE_INSTRUCTION(activation)
TRNI_CORE_INSTRUCTION(activation_reduce)
TRNI_CORE_INSTRUCTION(activate2)
TRNI_CORE_INSTRUCTION(iota)
TRNI_CORE_INSTRUCTION(affine_select)
TRNI_CORE_INSTRUCTION(local_gather)
TRNI_CORE_INSTRUCTION(nc_n_gather)
TRNI_CORE_INSTRUCTION(tensor_partition_reduce)
TRNI_CORE_INSTRUCTION(nonzero_with_count)
TRNI_CORE_INSTRUCTION(sequence_bounds)
TRNI_CORE_INSTRUCTION(topk)
TRNI_CORE_INSTRUCTION(gpsimd_custom)
TRNI_CORE_INSTRUCTION(dma_copy)
TRNI_CORE_INSTRUCTION(dma_transpose)
TRNI_CORE_INSTRUCTION(dma_compute)

TRNI_CORE_RUN(nc_transpose)

/* TensorE's; VectorE's is trn_core_vector_transpose. */
TRNI_FN trn_status trn_core_nc_transpose(trn_core *core, const trn_nc_transpose_args *args)
{
    TRNI_CORE_COMMON(nc_transpose);
    return trni_core_issue(core, TRNI_ORDER_nc_transpose, trni_run_nc_transpose, &copy, args->error);
}

/* ---- the report ---- */

typedef struct trn_core_engine_report {
    const char *name;
    int64_t instructions;
    double cycles;        /* of the engine's own clock; 0 for DMA */
    double busy_s, share; /* of time_s */
} trn_core_engine_report;

typedef struct trn_core_report {
    double time_s; /* until the last engine is done */
    int64_t instructions;
    trn_core_engine_report engine[TRN_ENGINE_COUNT];    /* by trn_engine; the first is empty */
    int64_t sbuf_high_water, sbuf_high_water_partition; /* bytes: of all partitions, of the fullest one */
    int64_t psum_high_water, psum_high_water_partition;
    int64_t sbuf_bytes, psum_bytes;                     /* what there is */
    double dma_bytes;
    trn_engine bound;    /* the busiest engine */
    char bound_text[96]; /* "VectorE is busy 83 % of 41.2 us" */
} trn_core_report;

TRNI_FN void trni_report_memory(const trni_memory *m, int64_t *all, int64_t *partition, int64_t *bytes)
{
    *all = m->high_total;
    *partition = m->high_partition;
    *bytes = m->partition_bytes * TRN_PARTITIONS;
}

TRNI_FN void trn_core_report_of(const trn_core *core, trn_core_report *out)
{
    static const char *const name[TRN_ENGINE_COUNT] = { "", "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA" };
    memset(out, 0, sizeof *out);
    out->time_s = core->time_s;
    out->instructions = core->instructions;
    out->dma_bytes = core->dma_bytes;
    trni_report_memory(&core->memory[TRN_SPACE_SBUF], &out->sbuf_high_water, &out->sbuf_high_water_partition,
                       &out->sbuf_bytes);
    trni_report_memory(&core->memory[TRN_SPACE_PSUM], &out->psum_high_water, &out->psum_high_water_partition,
                       &out->psum_bytes);
    out->bound = TRN_ENGINE_TENSOR;
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) {
        const trni_lane *lane = &core->lane[e];
        trn_core_engine_report *r = &out->engine[e];
        r->name = name[e];
        r->instructions = lane->instructions;
        r->cycles = lane->cycles;
        r->busy_s = lane->busy_s;
        r->share = core->time_s > 0 ? lane->busy_s / core->time_s : 0;
        if (r->busy_s > out->engine[out->bound].busy_s) out->bound = (trn_engine)e;
    }
    const trn_core_engine_report *b = &out->engine[out->bound];
    if (core->time_s <= 0) snprintf(out->bound_text, sizeof out->bound_text, "nothing has run");
    else snprintf(out->bound_text, sizeof out->bound_text, "%s is busy %.0f %% of %.1f us%s", b->name, 100 * b->share,
                  1e6 * core->time_s, b->share < 0.5 ? "; engines wait for each other" : "");
}

#endif /* TRN_CORE_RUN_H */

/* core/core_instructions.h - every instruction on a core, what the caller says of his own tensors, and the report.
 * A part of trn_core.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_CORE_CORE_INSTRUCTIONS_H
#define TRNI_CORE_CORE_INSTRUCTIONS_H

#include "core_rows.h"
#include "core_state.h"
#include "../machine/cost.h"
#include "../engine/dma.h"
#include "../engine/gpsimd_engine.h"
#include "../array/sparse.h"
#include "../array/tensor_engine.h"
#include "../engine/vector_elementwise.h"
#include "../engine/vector_reduce.h"
#include "../engine/vector_search.h"
#include "../engine/vector_statistics.h"
#include "../engine/vector_move.h"
#include "../engine/vector_random.h"

/* The caller himself has written these elements of a tile, or of a tensor in HBM, by its pointer. Takes no time. */
TRN_API trn_status trn_core_written(trn_core *core, trn_tensor view);

/* The caller takes these elements for a result, of a tensor in HBM (trn_core_hbm_empty) or of a tile: where a part of
 * them was never written that is a failure, whose sentence says how much of it, and where. */
TRN_API trn_status trn_core_result(trn_core *core, trn_tensor view);

/* ---- indirect views ---- */

/* A view [P, count], or [P, count, inner], that operands of some instructions take (Trainium3): gathered where it is
 * read, scattered where it is written. It cannot be cut further, is known to this core alone, and until 1024 others
 * were made. The index is read when the instruction runs; one that leaves data is refused, and nothing is written. Of
 * elements that are written twice the last one stays (assumed). Which operands: dst and the first input of
 * tensor_copy, tensor_tensor, tensor_scalar, tensor_reduce, tensor_scalar_reduce, tensor_scalar_cumulative,
 * exponential, activation, activation_reduce, activate2; dst and predicate of tensor_copy_predicated; all of nc_matmul
 * and, a scale with its data, of nc_matmul_mx (documented). After a failure: as trn_core_tile.
 * KNOWN FROM: NKI, NkiTensor.indirect and the pages of these instructions (documented); that each group reads its own
 * rows of the index, its formats, and the cost (TRN_FACT_INDIRECT, and no faster modes): assumed. */
TRN_API trn_tensor trn_core_indirect(trn_core *core, const trn_indirect_args *args);

/* ---- instructions ---- */

/* trn_status trn_core_<instruction>(trn_core *core, const trn_<instruction>_args *args), for each row of core_rows.h.
 * What the args leave open is the core's: generation, numerics, rounding, random stream, registers. The first failure
 * is kept (trn_core_status), and nothing happens after it. nc_transpose is TensorE's; VectorE's is vector_transpose. */
#define TRNI_CORE_PROTOTYPE(name, ...)                                                                                 \
    TRN_API trn_status trn_core_##name(trn_core *core, const trn_##name##_args *args);
TRNI_INSTRUCTIONS(TRNI_CORE_PROTOTYPE)
#undef TRNI_CORE_PROTOTYPE

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
    int64_t sbuf_bytes, psum_bytes; /* what there is */
    double dma_bytes;
    trn_engine bound;    /* the busiest engine */
    char bound_text[96]; /* "VectorE is busy 83 % of 41.2 us" */
} trn_core_report;

/* What the core has done so far; may be asked at any time. */
TRN_API void trn_core_report_of(const trn_core *core, trn_core_report *out);

#if TRNI_BODIES

#include "core_run.h"

TRN_API trn_status trn_core_written(trn_core *core, trn_tensor view)
{
    TRNI_FLOATS;
    trni_core_operand s;
    if (core->failure.status) return core->failure.status;
    trni_core_operand_begin(&s, "trn_core_written: the view", &view, TRNI_ROLE_WRITE);
    const trn_status status = trni_core_operand_locate(core, &s, false);
    if (status) return trni_core_fail(core, status);
    if (trni_hbm_unsure(&s))
        trni_hbm_wrote((const trni_hbm *)(const void *)s.allocation, s.view);
    else
        trni_core_operand_write(core, &s, false);
    return TRN_OK;
}

TRN_API trn_status trn_core_result(trn_core *core, trn_tensor view)
{
    TRNI_FLOATS;
    trni_core_operand s;
    if (core->failure.status) return core->failure.status;
    trni_core_operand_begin(&s, "trn_core_result: the view", &view, TRNI_ROLE_READ);
    trn_status status = trni_core_operand_locate(core, &s, false);
    const trni_hbm *const h = status ? NULL : trni_hbm_unsure(&s);
    if (h && trni_hbm_missing(h, &view) >= 0) status = trni_hbm_incomplete(core, &s, h);
    if (!status && s.memory) status = trni_poison_decides(core, &s);
    return status ? trni_core_fail(core, status) : TRN_OK;
}

/* ---- indirect views ---- */

TRN_API trn_tensor trn_core_indirect(trn_core *core, const trn_indirect_args *args)
{
    const int64_t inner = args->inner ? args->inner : 1, rows = args->data.rank ? args->data.shape[0] : 0;
    const int64_t columns = args->index.rank == 2 && args->index.shape[1] < 1 << 20 ? args->index.shape[1] : 0;
    const int64_t count = args->count ? args->count : trni_min64(rows, TRNI_INDIRECT_GROUP) * columns;
    if (!core->failure.status) {
        const trn_status status = trni_indirect_refuse(core, args, count, inner);
        if (status) trni_core_fail(core, status);
    }
    if (core->failure.status) return trni_indirect_dummy(core, args, count, inner);
    trni_indirect *const in = core->indirect;
    trn_tensor t = trni_indirect_rows(&args->data, in->room, count, inner);
    trni_indirect_view *const view = &in->view[++in->made % TRNI_INDIRECT_VIEWS];
    view->data = args->data;
    view->index = args->index;
    view->count = count;
    view->inner = inner;
    view->number = t.stride[TRNI_INDIRECT_TAG] = in->made;
    return t;
}

/* ---- the report ---- */

TRNI_FN void trni_report_memory(const trni_memory *m, int64_t *all, int64_t *partition, int64_t *bytes)
{
    *all = m->high_total;
    *partition = m->high_partition;
    *bytes = m->partition_bytes * TRN_PARTITIONS;
}

TRN_API void trn_core_report_of(const trn_core *core, trn_core_report *out)
{
    TRNI_FLOATS;
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
    if (core->time_s <= 0)
        snprintf(out->bound_text, sizeof out->bound_text, "nothing has run");
    else
        trni_print(out->bound_text, sizeof out->bound_text, "%s is busy %.0f %% of %.1f us%s", b->name, 100 * b->share,
                   1e6 * core->time_s, b->share < 0.5 ? "; engines wait for each other" : "");
}

/* ---- instructions ---- */

#define TRNI_CORE_FILL_BARE(core, copy)
#define TRNI_CORE_FILL_FULL(core, copy)                                                                                \
    if (!copy.numerics) copy.numerics = &core->numerics;                                                               \
    if (copy.rounding == TRN_NEAREST_EVEN) copy.rounding = core->args.rounding;                                        \
    if (!copy.seed && !copy.stream) {                                                                                  \
        copy.seed = core->args.seed;                                                                                   \
        copy.stream = (uint64_t)core->instructions;                                                                    \
    }

#define TRNI_CORE_INSTRUCTION(name, fill, ...)                                                                         \
    TRNI_CORE_RUN(name)                                                                                                \
    TRN_API trn_status trn_core_##name(trn_core *core, const trn_##name##_args *args)                                  \
    {                                                                                                                  \
        TRNI_CORE_COMMON(name);                                                                                        \
        TRNI_CORE_FILL_##fill(core, copy);                                                                             \
        return trni_core_issue(core, TRNI_ORDER_##name, trni_run_##name, &copy, args->error);                          \
    }

TRNI_INSTRUCTIONS(TRNI_CORE_INSTRUCTION)

#endif /* TRNI_BODIES */

#endif /* TRNI_CORE_CORE_INSTRUCTIONS_H */

/* core/core_state.h - one NeuronCore: its memory and tiles, its clocks, and the first thing that went wrong.
 * A part of trn_core.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_core core;
 *         const trn_core_args args = { .generation = TRN_TRAINIUM2 };
 *         if (trn_core_begin(&core, &args)) return 1;
 *         const size_t mark = trn_core_mark(&core);
 *         for (int i = 0; i < 100; i++) {                                     // would not fit a hundred times
 *             trn_core_sbuf(&core, "scores", TRN_F32, 128, 4096);
 *             trn_core_release(&core, mark);
 *         }
 *         const char *text;
 *         if (trn_core_status(&core, &text)) fprintf(stderr, "%s\n", text);
 *         trn_core_end(&core);
 *         return core.failure.status;
 *     }
 *
 * DOES: begins and ends a core in the caller's memory (or its own), allocates and frees tiles, registers tensors in
 *     HBM. Failures stick: after the first one nothing more happens, and trn_core_status tells it. Views still have
 *     memory behind them, so that a kernel's own loops over a tile run on to where it asks for the status.
 * DOES NOT: run instructions (core/core_run.h).
 *
 * KNOWN FROM: NKI's architecture guides (documented): sizes, and which partitions a tile may begin at.
 */
#ifndef TRNI_CORE_CORE_STATE_H
#define TRNI_CORE_CORE_STATE_H

#include "core_types.h"
#include "../engine/engine_state.h"
#include "../engine/scalar_engine.h"
#include "../machine/trace.h"

/* What the clock believes. Documented: the pages' costs, each transfer in one piece, TensorE always warm, tiles where
 * there is room. Measured: what profiles of devices say goes before (the rows of trn_cost.h that are measured), an
 * instruction pays for its start, transfers share the DMA engines, TensorE warms up, VectorE and ScalarE share what
 * both take, and memory that is ready first is taken first, as by a compiler that gives a loop several buffers. Numbers
 * never differ. */
typedef enum trn_pace { TRN_PACE_DOCUMENTED, TRN_PACE_MEASURED, TRN_PACE_COUNT } trn_pace;

/* When an instruction had what it reads and writes, began and was done; mark: the core's, at that time. */
typedef struct trn_core_step {
    double ready_s, start_s, end_s;
    int64_t mark;
    trn_engine engine;
} trn_core_step;

/* The caller's room. Steps after the last one that there is room for are left out. */
typedef struct trn_core_steps {
    trn_core_step *step; /* [capacity] */
    int64_t capacity, count;
} trn_core_steps;

typedef struct trn_core_args {
    trn_generation generation;
    void *memory; /* trn_core_memory_bytes(generation) of them; null = allocated here, and freed by trn_core_end */
    size_t memory_bytes;
    const trn_numerics *numerics; /* of instructions that name none; null = the generation's default */
    trn_rounding rounding;        /* of instructions that name none (nearest even counts as none) */
    uint64_t seed;                /* of instructions with neither seed nor stream: number i draws from stream i */
    trn_trace *trace;             /* optional: gets an event per instruction; tracks are named here */
    trn_core_steps *steps;        /* optional: gets a step per instruction, in program order */
    bool no_poison;               /* new tiles hold anything, and reads of what nothing has written pass */
    trn_pace pace;
    trn_isa isa;
    trn_error *error; /* optional: gets the first failure */
} trn_core_args;

/* Of a tensor in HBM that begins with nothing in it: which bytes were written. One for all cores that see the tensor,
 * which one thread of the host runs at a time; the memory is the caller's (trn_hbm_written_begin). */
typedef struct trn_hbm_written {
    uint64_t *bit;     /* one per byte from the tensor's first on */
    int64_t unwritten; /* bytes; 0 = nothing to look for */
} trn_hbm_written;

enum { TRNI_HBM_TENSORS = 512, TRNI_CORE_DGES = 2, TRNI_CORE_PARTS = 8 /* the quadrants of two scale tiles */ };

typedef struct trni_hbm {
    trni_allocation tensor; /* .at: rows x bytes */
    char *base;
    int64_t bytes, pitch;     /* of a row */
    trn_hbm_written *written; /* null: all of it */
    void *watched;            /* the watch's own */
    trni_rect last;           /* of the last transfer, and how much of a row it and those that it continued brought */
    int64_t brought;
} trni_hbm;

struct trn_core;

/* Asked before a transfer touches a tensor in HBM whose .watched is set, and told after it has: a status refuses it. */
typedef trn_status trni_hbm_watch(struct trn_core *core, const trni_hbm *h, const trn_tensor *view, bool write,
                                  bool after);

typedef struct trn_core {
    trn_core_args args;
    const trn_core_spec *spec;
    trn_numerics numerics;
    trn_error failure;    /* the first one */
    int64_t instructions; /* issued so far */
    int64_t mark;         /* the caller's: where his program is, for steps */
    trn_vector_state vector_state;
    trn_scalar_state scalar_state;
    trn_gpsimd_state gpsimd_state;

    void *allocated;
    trni_memory memory[2]; /* by trn_space: SBUF, PSUM */
    uint64_t serial;       /* of allocations */
    trni_hbm *hbm;         /* [TRNI_HBM_TENSORS] */
    int hbm_tensors;
    trni_cells *cells;          /* room for one view */
    trni_poison_entry *journal; /* [TRNI_JOURNAL], the last ones: core/core_poison.h */
    int64_t journalled;         /* entries ever made */
    trn_tensor *part;           /* [TRNI_CORE_PARTS]: parts of operands that are operands of their own */
    trni_indirect *indirect;    /* Trainium3; else null */

    trni_history history;
    trni_lane lane[TRN_ENGINE_COUNT]; /* by trn_engine */
    trni_channel channel;
    double dge_free_s[TRNI_CORE_DGES];
    double flow_s[TRN_ENGINE_COUNT]; /* when each knows the registers that its next instructions depend on */
    double sbuf_port_s, psum_port_s; /* Trainium1: shared by VectorE with GpSimdE, and with ScalarE */
    double multiply_cycles;          /* of TensorE's last instruction: the next load hides behind it */
    trni_throttle throttle;          /* TensorE's, where the pace is measured */
    double time_s, dma_bytes;
    trni_touches *touches;          /* null = nobody asks */
    trni_hbm_watch *watch;          /* null = nobody asks */
    const trni_allocation *culprit; /* the operand that the failure is about, or null */
} trn_core;

/* ---- failures ---- */

/* TRN_OK, or the first failure, after which nothing more happens: a kernel need not look at every line. */
TRN_API trn_status trn_core_status(const trn_core *core, const char **text);

/* ---- begin, end ---- */

/* SBUF, PSUM, and what is remembered of them; 0 for a generation that does not exist. */
TRN_API size_t trn_core_memory_bytes(trn_generation generation);

/* TRN_EINVAL, TRN_ENOSPC: the core cannot be used, and need not be ended. */
TRN_API trn_status trn_core_begin(trn_core *core, const trn_core_args *args);

/* Gives the core's memory back, and with it every tile; the caller's HBM tensors stay as they are. */
TRN_API void trn_core_end(trn_core *core);

/* ---- tiles ---- */

typedef struct trn_core_tile_args {
    trn_space space;  /* SBUF (default) or PSUM */
    const char *name; /* copied; up to 23 characters of it */
    trn_format format;
    int rank; /* 1 to 5: partitions, and up to four axes within each */
    int64_t shape[TRN_MAX_RANK];
    int start_partition; /* 0, 32, 64 or 96; 33 to 64 partitions begin at 0 or 64, more at 0 */
    bool no_poison;      /* it holds anything, and reads of what nothing has written pass, of this tile alone */
} trn_core_tile_args;

/* Nothing is in the tile (see no_poison). Empty tiles take no memory. From the first failure on no tile is taken: where
 * the memory could hold the shape, the view has it, and shows what the memory begins with: other tiles, or bytes that
 * nothing has written. It may be read and written until trn_core_end, and is nobody's tile. Where the shape does not
 * fit, or the core could not begin, the view has rank 0. */
TRN_API trn_tensor trn_core_tile(trn_core *core, const trn_core_tile_args *args);

/* A tile [partitions, elements] of SBUF, from partition 0 on. */
TRN_API trn_tensor trn_core_sbuf(trn_core *core, const char *name, trn_format format, int64_t partitions,
                                 int64_t elements);

/* The same in PSUM: with 2 KiB of a partition or less it stays within one bank. */
TRN_API trn_tensor trn_core_psum(trn_core *core, const char *name, trn_format format, int64_t partitions,
                                 int64_t elements);

/* ---- indirect views: trn_core_indirect, of trn_core.h ---- */

typedef struct trn_indirect_args {
    trn_tensor data;  /* [P, F ...], of a tile: what is read, or written */
    trn_tensor index; /* [P, C] in SBUF: U16, U32 or I32. Element i of a partition is data's free element number
                       * index[G g + i % G, i / G], where g is the partition's group of G partitions: 16 for the Vector,
                       * Scalar and GpSimd engines, 32 for TensorE */
    int64_t count;    /* elements per partition, up to G C; 0 = 16 C, and P C where P is below 16 */
    int64_t inner;    /* so many elements count as one, data's last axis: 4 for operands of nc_matmul_mx; 0 = 1 */
} trn_indirect_args;

/* ---- tiles back ---- */

/* Whoever takes this memory next waits until all instructions are done that use the tile. */
TRN_API void trn_core_free(trn_core *core, trn_tensor tile);

/* Stack discipline for loops: trn_core_release frees all tiles that were allocated since the mark. */
TRN_API size_t trn_core_mark(trn_core *core);

/* Nothing after a failure. */
TRN_API void trn_core_release(trn_core *core, size_t mark);

/* ---- HBM ---- */

/* Makes the caller's memory known as a tensor in HBM, by name (copied): DMA reads and writes it, and transfers wait for
 * each other where they touch the same part. Part of a tensor that is known needs no registration. Returns the view,
 * also after a failure; one of rank 0 where it is no legal input. */
TRN_API trn_tensor trn_core_hbm(trn_core *core, const char *name, trn_tensor view);

/* The same with nothing in it: a transfer that reads what none has written is refused, as is a result of which a part
 * was never written (trn_core_result). trn_core_written says what the caller has filled himself. `written` lives as
 * long as the core. Nothing is looked for where the core has .no_poison.
 *
 *     static uint64_t room[1 << 16];                       // trn_hbm_written_bytes(t) of them or more
 *     trn_hbm_written written;
 *     trn_hbm_written_begin(&written, t, room);
 *     trn_tensor out = trn_core_hbm_empty(&core, "out", t, &written);
 */
TRN_API trn_tensor trn_core_hbm_empty(trn_core *core, const char *name, trn_tensor view, trn_hbm_written *written);

/* What trn_hbm_written_begin takes for this view; 0 where it is no legal input. */
TRN_API size_t trn_hbm_written_bytes(trn_tensor view);

/* Of the whole view nothing was written yet. room: begins where a uint64_t may. */
TRN_API void trn_hbm_written_begin(trn_hbm_written *written, trn_tensor view, void *room);

#if TRNI_BODIES

#include <stdlib.h>

#include "core_clock.h"
#include "../engine/span.h"

/* ---- failures ---- */

/* Keeps the first failure, also for the caller's error. */
TRNI_FN trn_status trni_core_fail(trn_core *core, trn_status status)
{
    core->failure.status = status;
    if (core->args.error) *core->args.error = core->failure;
    return status;
}

TRN_API trn_status trn_core_status(const trn_core *core, const char **text)
{
    if (text) *text = core->failure.status ? core->failure.text : "ok";
    return core->failure.status;
}

/* ---- begin, end ---- */

/* What indirect views take. */
TRNI_FN size_t trni_core_indirect_bytes(const trn_core_spec *spec)
{
    return spec->generation < TRN_TRAINIUM3 ? 0 : sizeof(trni_indirect) + TRNI_TILE_ALIGN + TRNI_INDIRECT_ROOM;
}

TRN_API size_t trn_core_memory_bytes(trn_generation generation)
{
    const trn_core_spec *spec = trn_core_spec_of(generation);
    if (!spec) return 0;
    return trni_memory_bytes(spec, TRN_SPACE_SBUF) + trni_memory_bytes(spec, TRN_SPACE_PSUM) + TRNI_TILE_ALIGN +
           TRNI_ACCESSES * sizeof(trni_access) + TRNI_HBM_TENSORS * sizeof(trni_hbm) +
           TRNI_CORE_PARTS * sizeof(trn_tensor) + sizeof(trni_cells) + TRNI_JOURNAL * sizeof(trni_poison_entry) +
           trni_core_indirect_bytes(spec);
}

TRNI_FN void trni_core_buffers(trn_core *core, char *at)
{
    for (int i = 0; i < 2; i++) {
        trni_memory_begin(&core->memory[i], core->spec, (trn_space)i, at, !core->args.no_poison);
        core->memory[i].rotates = core->args.pace == TRN_PACE_MEASURED;
        at += trni_memory_bytes(core->spec, (trn_space)i);
    }
    at += (size_t)(-(uintptr_t)at % TRNI_TILE_ALIGN);
    core->cells = (trni_cells *)(void *)at;
    at += sizeof(trni_cells);
    core->journal = (trni_poison_entry *)(void *)at;
    at += TRNI_JOURNAL * sizeof(trni_poison_entry);
    core->part = (trn_tensor *)(void *)at;
    at += TRNI_CORE_PARTS * sizeof(trn_tensor);
    core->hbm = (trni_hbm *)(void *)at;
    at += TRNI_HBM_TENSORS * sizeof(trni_hbm);
    trni_history_begin(&core->history, (trni_access *)(void *)at);
    at += TRNI_ACCESSES * sizeof(trni_access);
    if (!trni_core_indirect_bytes(core->spec)) return;
    core->indirect = (trni_indirect *)(void *)at;
    core->indirect->made = core->indirect->operands = 0;
    at += sizeof(trni_indirect);
    core->indirect->room = at + (size_t)(-(uintptr_t)at % TRNI_TILE_ALIGN);
}

TRNI_FN void trni_core_tracks(trn_trace *trace)
{
    static const char *const name[] = { "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA" };
    if (!trace) return;
    trace->tracks = (int)(sizeof name / sizeof name[0]);
    for (int i = 0; i < trace->tracks; i++) trace->track[i] = name[i];
}

TRNI_DRIVER trn_status trni_core_check(trn_core *core)
{
    const trn_core_args *a = &core->args;
    trn_error *error = &core->failure;
    if (!core->spec) return trni_fail(error, TRN_EINVAL, "generation is %d, not a generation", (int)a->generation);
    if ((unsigned)a->pace >= TRN_PACE_COUNT)
        return trni_fail(error, TRN_EINVAL, "pace is %d, not a pace", (int)a->pace);
    const size_t bytes = trn_core_memory_bytes(a->generation);
    if (a->memory && a->memory_bytes < bytes)
        return trni_fail(error, TRN_ENOSPC, "memory_bytes is %zu; a core of %s takes %zu", a->memory_bytes,
                         trn_generation_name(core->spec->generation), bytes);
    trn_status status = trni_numerics_resolve(a->numerics, core->spec->generation, &core->numerics, error);
    if (!status) status = trni_check_rounding(a->rounding, core->numerics.sr_bits, error);
    return status;
}

TRN_API trn_status trn_core_begin(trn_core *core, const trn_core_args *args)
{
    TRNI_FLOATS;
    memset(core, 0, sizeof *core);
    core->args = *args;
    core->spec = trn_core_spec_of(args->generation);
    const trn_status status = trni_core_check(core);
    if (status) return trni_core_fail(core, status);
    core->args.generation = core->spec->generation;
    const size_t bytes = trn_core_memory_bytes(args->generation);
    if (!args->memory) core->allocated = malloc(bytes);
    if (!args->memory && !core->allocated)
        return trni_core_fail(core,
                              trni_fail(&core->failure, TRN_ENOSPC, "could not allocate %zu bytes for a core", bytes));
    trni_core_buffers(core, (char *)(args->memory ? args->memory : core->allocated));
    trni_core_tracks(args->trace);
    trn_vector_state_init(&core->vector_state, args->seed);
    trn_gpsimd_state_init(&core->gpsimd_state, args->seed);
    return TRN_OK;
}

TRN_API void trn_core_end(trn_core *core)
{
    free(core->allocated);
    core->allocated = NULL;
    for (int i = 0; i < 2; i++) core->memory[i].base = NULL;
}

/* ---- tiles ---- */

/* NULL when `count` partitions may begin at `start`, else the rule that they break. */
TRNI_FN const char *trni_partition_rule(int64_t start, int64_t count)
{
    if (start % TRNI_QUADRANT) return "tiles begin at partition 0, 32, 64 or 96";
    if (count > 64 && start != 0) return "more than 64 partitions begin at 0";
    if (count > 32 && start % 64 != 0) return "more than 32 partitions begin at 0 or 64";
    return start + count > TRN_PARTITIONS ? "there are 128" : NULL;
}

/* May the memory hold this shape? */
TRNI_DRIVER trn_status trni_tile_check_shape(const trn_core *core, const trn_core_tile_args *a, trn_error *error)
{
    const char *name = a->name ? a->name : "";
    if (a->space != TRN_SPACE_SBUF && a->space != TRN_SPACE_PSUM)
        return trni_fail(error, TRN_EINVAL, "tile '%.40s': space is neither SBUF nor PSUM", name);
    if (!trni_format_valid(a->format))
        return trni_fail(error, TRN_EFORMAT, "tile '%.40s' has no valid format (%d)", name, (int)a->format);
    if (a->rank < 1 || a->rank > 5)
        return trni_fail(error, TRN_ESHAPE, "tile '%.40s' has rank %d; tiles have partitions and up to four more axes",
                         name, a->rank);
    int64_t elements = 1;
    for (int i = 0; i < a->rank; i++) {
        if (a->shape[i] < 0 || a->shape[i] > (1 << 20))
            return trni_fail(error, TRN_ESHAPE, "tile '%.40s' has size %lld on axis %d", name, (long long)a->shape[i],
                             i);
        if (i) elements = trni_min64(elements * a->shape[i], (int64_t)1 << 40);
    }
    const int64_t bytes = elements * (int64_t)trn_format_bytes(a->format);
    const int64_t most = core->memory[a->space].partition_bytes;
    if (a->shape[0] > TRN_PARTITIONS)
        return trni_fail(error, TRN_ELIMIT, "tile '%.40s' has %lld partitions; there are %d", name,
                         (long long)a->shape[0], TRN_PARTITIONS);
    if (bytes > most)
        return trni_fail(error, TRN_ELIMIT, "tile '%.40s' has %lld bytes per partition; %s of %s has %lld", name,
                         (long long)bytes, trn_space_name(a->space), trn_generation_name(core->spec->generation),
                         (long long)most);
    return TRN_OK;
}

TRNI_FN trn_status trni_tile_check(const trn_core *core, const trn_core_tile_args *a, trn_error *error)
{
    const trn_status status = trni_tile_check_shape(core, a, error);
    if (status) return status;
    const char *rule =
        a->start_partition < 0 ? "partitions count from 0" : trni_partition_rule(a->start_partition, a->shape[0]);
    if (rule)
        return trni_fail(error, TRN_ELIMIT, "tile '%.40s' would take %lld partitions from %d; %s",
                         a->name ? a->name : "", (long long)a->shape[0], a->start_partition, rule);
    return TRN_OK;
}

/* The view of a tile: partitions lie a row of the memory apart. */
TRNI_FN trn_tensor trni_tile_view(const trni_memory *m, const trn_core_tile_args *a)
{
    trn_tensor t = trn_tensor_nd(a->format, NULL, a->rank, a->shape);
    int64_t step = 1;
    for (int i = a->rank - 1; i > 0; i--) {
        t.stride[i] = step;
        step *= t.shape[i] > 0 ? t.shape[i] : 1;
    }
    t.stride[0] = m->pitch / (int64_t)trn_format_bytes(a->format);
    return t;
}

/* What a kernel gets in place of a tile after a failure: wherever a shape fits, it fits at the memory's beginning. */
TRNI_FN trn_tensor trni_tile_lost(const trn_core *core, const trn_core_tile_args *a)
{
    if (!core->memory[0].base || trni_tile_check_shape(core, a, NULL)) return trni_no_tensor();
    trn_tensor t = trni_tile_view(&core->memory[a->space], a);
    if (trn_tensor_elements(t)) t.data = core->memory[a->space].base;
    return t;
}

TRN_API trn_tensor trn_core_tile(trn_core *core, const trn_core_tile_args *args)
{
    if (core->failure.status) return trni_tile_lost(core, args);
    trn_status status = trni_tile_check(core, args, &core->failure);
    if (status) {
        trni_core_fail(core, status);
        return trni_tile_lost(core, args);
    }
    trni_memory *m = &core->memory[args->space];
    trn_tensor t = trni_tile_view(m, args);
    const int64_t elements = trn_tensor_elements(t);
    int tile = -1;
    if (elements == 0) return t;
    const trni_memory_request ask = { args->name ? args->name : "", args->start_partition, (int)t.shape[0],
                                      elements / t.shape[0] * (int64_t)trn_format_bytes(args->format),
                                      args->no_poison };
    m->serial = core->serial++;
    status = trni_memory_take(m, &ask, &tile, &core->failure);
    if (status) {
        trni_core_fail(core, status);
        return trni_tile_lost(core, args);
    }
    t.data = m->base + m->tile[tile].at.p * m->pitch + m->tile[tile].at.b;
    return t;
}

TRNI_FN trn_tensor trni_tile_2d(trn_core *core, trn_space space, const char *name, trn_format format,
                                int64_t partitions, int64_t elements)
{
    trn_core_tile_args args;
    memset(&args, 0, sizeof args);
    args.space = space;
    args.name = name;
    args.format = format;
    args.rank = 2;
    args.shape[0] = partitions;
    args.shape[1] = elements;
    return trn_core_tile(core, &args);
}

TRN_API trn_tensor trn_core_sbuf(trn_core *core, const char *name, trn_format format, int64_t partitions,
                                 int64_t elements)
{
    return trni_tile_2d(core, TRN_SPACE_SBUF, name, format, partitions, elements);
}

TRN_API trn_tensor trn_core_psum(trn_core *core, const char *name, trn_format format, int64_t partitions,
                                 int64_t elements)
{
    return trni_tile_2d(core, TRN_SPACE_PSUM, name, format, partitions, elements);
}

/* ---- tiles back ---- */

TRNI_FN void trni_core_give(trn_core *core, trni_memory *m, int tile)
{
    trni_allocation *t = &m->tile[tile];
    for (int e = 0; e < TRN_ENGINE_COUNT; e++)
        for (int i = 0; i < core->lane[e].writes; i++)
            if (core->lane[e].written[i] == t) core->lane[e].written[i] = NULL;
    trni_memory_give(m, tile, trni_history_end(&core->history, t));
}

TRN_API void trn_core_free(trn_core *core, trn_tensor tile)
{
    if (core->failure.status || tile.rank == 0) return;
    const trn_status status = trn_tensor_check(&tile, "trn_core_free: the tile", TRNI_INPUT, 0, &core->failure);
    if (status) trni_core_fail(core, status);
    if (status || trn_tensor_elements(tile) == 0) return;
    for (int i = 0; i < 2; i++) {
        trni_memory *m = &core->memory[i];
        if (!trni_memory_owns(m, tile.data)) continue;
        const int64_t at = (int64_t)((char *)tile.data - m->base), p = at / m->pitch, b = at % m->pitch;
        const trni_segment *s = b < m->partition_bytes ? trni_memory_find(m, p, b) : NULL;
        if (s && s->tile >= 0 && m->tile[s->tile].at.p == p && s->b == b) {
            trni_core_give(core, m, s->tile);
            return;
        }
        if (s && s->tile < 0) trni_fail(&core->failure, TRN_EINVAL, "trn_core_free: '%s' was freed before", s->name);
    }
    if (!core->failure.text[0]) trni_fail(&core->failure, TRN_EINVAL, "trn_core_free: this is not a tile");
    trni_core_fail(core, TRN_EINVAL);
}

TRN_API size_t trn_core_mark(trn_core *core) { return (size_t)core->serial; }

TRN_API void trn_core_release(trn_core *core, size_t mark)
{
    if (core->failure.status) return;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < core->memory[i].tiles; k++)
            if (core->memory[i].tile[k].live && core->memory[i].tile[k].serial >= mark)
                trni_core_give(core, &core->memory[i], k);
}

/* ---- HBM ---- */

/* The row that rectangles of a tensor are made of: its innermost axis, where all others lie whole rows apart. */
TRNI_FN int64_t trni_hbm_pitch(const trn_tensor *t, int64_t bytes)
{
    int64_t stride[TRN_MAX_RANK];
    trni_strides(t, stride);
    const int64_t size = (int64_t)trn_format_bytes(t->format);
    if (t->rank < 2 || t->shape[t->rank - 2] == 1) return bytes; /* a stride that is never taken may be any number */
    const int64_t row = stride[t->rank - 2] * size;
    if (row < ((t->shape[t->rank - 1] - 1) * stride[t->rank - 1] + 1) * size) return bytes;
    for (int i = 0; i < t->rank - 2; i++)
        if (t->shape[i] > 1 && (stride[i] * size) % row) return bytes;
    return row;
}

TRNI_FN trni_hbm *trni_hbm_find(const trn_core *core, const void *data, int64_t bytes)
{
    for (int i = 0; i < core->hbm_tensors; i++) {
        trni_hbm *h = &core->hbm[i];
        if ((uintptr_t)data >= (uintptr_t)h->base && (uintptr_t)data - (uintptr_t)h->base <= (uintptr_t)h->bytes &&
            bytes <= h->bytes - ((const char *)data - h->base))
            return h;
    }
    return NULL;
}

TRNI_DRIVER trn_status trni_hbm_check(trn_core *core, const char *name, const trn_tensor *view, size_t *bytes)
{
    trn_error *error = &core->failure;
    trni_view v;
    const trn_status status = trni_view_open(&v, view, name, TRNI_INPUT, 0, error);
    *bytes = v.extent;
    if (status) return status;
    for (int i = 0; i < 2; i++)
        if (*bytes && trni_memory_owns(&core->memory[i], view->data))
            return trni_fail(error, TRN_EINVAL, "HBM tensor '%.40s' lies in %s", name, trn_space_name((trn_space)i));
    if (core->hbm_tensors == TRNI_HBM_TENSORS)
        return trni_fail(error, TRN_ELIMIT, "'%.40s' would be tensor number %d in HBM", name, TRNI_HBM_TENSORS + 1);
    for (int i = 0; i < core->hbm_tensors; i++) {
        const trni_hbm *h = &core->hbm[i];
        const uintptr_t a = (uintptr_t)h->base, b = (uintptr_t)view->data;
        if (a < b + *bytes && b < a + (uintptr_t)h->bytes)
            return trni_fail(error, TRN_EINVAL, "HBM tensor '%.40s' overlaps '%s'; register all of it, once", name,
                             h->tensor.name);
    }
    return TRN_OK;
}

TRN_API trn_tensor trn_core_hbm(trn_core *core, const char *name, trn_tensor view)
{
    size_t bytes = 0;
    if (core->failure.status) return trn_tensor_check(&view, "", TRNI_INPUT, 0, NULL) ? trni_no_tensor() : view;
    if (!name) name = "";
    if (view.rank > 0 && view.rank <= TRN_MAX_RANK && trni_format_valid(view.format) && trni_extent(&view, &bytes) &&
        bytes && trni_hbm_find(core, view.data, (int64_t)bytes))
        return view;
    const trn_status status = trni_hbm_check(core, name, &view, &bytes);
    if (status) {
        trni_core_fail(core, status);
        return trn_core_hbm(core, name, view);
    }
    if (!bytes) return view;
    trni_hbm *h = &core->hbm[core->hbm_tensors++];
    memset(h, 0, sizeof *h);
    trni_copy_text(h->tensor.name, sizeof h->tensor.name, name);
    h->base = (char *)view.data;
    h->bytes = (int64_t)bytes;
    h->pitch = trni_hbm_pitch(&view, h->bytes);
    h->tensor.at.p_end = (h->bytes + h->pitch - 1) / h->pitch;
    h->tensor.at.b_end = h->pitch;
    h->tensor.access = -1;
    h->tensor.live = true;
    return view;
}

TRN_API trn_tensor trn_core_hbm_empty(trn_core *core, const char *name, trn_tensor view, trn_hbm_written *written)
{
    const int before = core->hbm_tensors;
    view = trn_core_hbm(core, name, view);
    if (core->hbm_tensors > before && !core->args.no_poison) core->hbm[before].written = written;
    return view;
}

TRN_API size_t trn_hbm_written_bytes(trn_tensor view)
{
    trni_view v;
    if (trni_view_open(&v, &view, "", TRNI_INPUT, 0, NULL)) return 0;
    return (v.extent + 63) / 64 * sizeof(uint64_t);
}

TRN_API void trn_hbm_written_begin(trn_hbm_written *written, trn_tensor view, void *room)
{
    size_t bytes = 0;
    const size_t most = trn_hbm_written_bytes(view);
    if (most) trni_extent(&view, &bytes);
    if (most) memset(room, 0, most);
    written->bit = (uint64_t *)room;
    written->unwritten = (int64_t)bytes;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_CORE_CORE_STATE_H */

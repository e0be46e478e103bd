/* engine/span.h - partitions of any format as runs of binary32: what Vector, Scalar, GpSimd engines and DMA stand on.
 * A room of the instructions of the Vector, Scalar, GpSimd engines and DMA. SPDX-License-Identifier: MIT
 *
 * DOES: sees a view [P, free axes ...] as P partitions of F elements each, the free axes flattened in row-major order;
 *     reads a chunk of a partition into binary32 (in place where it is binary32 already), writes one with the output
 *     cast (any rounding; random bits by (seed, stream, p F + f)); moves bits; holds the checks that all instructions
 *     make; shares chunks out among threads.
 * DOES NOT: compute.
 *
 * KNOWN FROM: NKI's instruction pages (documented): inputs are cast to float32, results to dst's type; tiles have at
 *     most 128 partitions and no more elements than a partition of SBUF holds. The random bits of an output cast:
 *     assumed, as in trn_convert.h.
 */
#ifndef TRNI_ENGINE_SPAN_H
#define TRNI_ENGINE_SPAN_H

#include "../data/cast.h"
#include "instruction.h"
#include "../machine/numerics.h"
#include "../number/random.h"
#include "../base/workspace.h"
#include "../data/tensor.h"

/* ---- who executes ---- */

/* From the args of any instruction, which lie in memory as these fields do to begin with. */
TRNI_FN trn_instruction trni_instruction_of(const void *args)
{
    trn_instruction how;
    memcpy(&how, args, sizeof how);
    return how;
}

/* ---- a view, opened ---- */

enum {
    TRNI_SPAN_CHUNK = 1024,       /* elements per pass: the buffers of four operands stay in the first cache */
    TRNI_SPAN_PARALLEL = 1 << 17, /* elements from which threads pay for being woken */
    TRNI_SPAN_STREAM = 8 << 20    /* bytes of dst from which stores bypass the caches */
};

typedef struct trni_span_axis {
    int64_t size, step; /* step in bytes */
} trni_span_axis;

typedef struct trni_span {
    char *data;
    trn_format format;
    trn_isa isa;
    size_t bytes;                 /* of one element */
    int64_t partitions, elements; /* P, F */
    int64_t partition_step;       /* bytes */
    bool direct;                  /* chunks are runs of binary32 in memory */
    bool stream;                  /* stores bypass the caches */
    int rank;                     /* free axes after merging; the innermost is the last */
    trni_span_axis axis[TRN_MAX_RANK];
    trni_decoder decoder; /* of inputs */
    trni_encoder encoder; /* of outputs: trni_span_round */
    trn_rounding rounding;
    uint64_t seed, stream_number;
    int sr_bits;
} trni_span;

/* One more axis within the others; one that continues its neighbour joins it. A stride that is never taken may be any
 * number. */
TRNI_DRIVER void trni_span_axis_add(trni_span *v, int64_t size, int64_t stride)
{
    if (size == 1) return;
    const trni_span_axis one = { size, stride * (int64_t)v->bytes };
    trni_span_axis *outer = v->rank ? &v->axis[v->rank - 1] : NULL;
    if (outer && outer->step == one.step * one.size) {
        outer->size *= one.size;
        outer->step = one.step;
    } else {
        v->axis[v->rank++] = one;
    }
}

/* A single element is an axis, too. */
TRNI_FN void trni_span_axes_end(trni_span *v)
{
    if (v->rank) return;
    v->axis[0].size = 1;
    v->axis[0].step = (int64_t)v->bytes;
    v->rank = 1;
}

TRNI_FN void trni_span_axes(trni_span *v, const trni_view *view)
{
    const trn_tensor *t = &view->t;
    v->partition_step = 0;
    v->rank = 0;
    v->elements = view->width;
    for (int i = 1; i < t->rank && v->elements; i++) trni_span_axis_add(v, t->shape[i], t->stride[i]);
    if (t->shape[0] > 1 && v->elements) v->partition_step = t->stride[0] * (int64_t)v->bytes; /* else never taken */
    trni_span_axes_end(v);
}

/* Elements of one partition that follow each other in memory are one axis. */
TRNI_DRIVER void trni_span_init(trni_span *v, const trni_view *view, trn_isa isa)
{
    v->data = (char *)view->t.data;
    v->format = view->t.format;
    v->isa = isa;
    v->bytes = view->size;
    v->partitions = view->t.shape[0];
    v->stream = false;
    v->rounding = TRN_NEAREST_EVEN;
    v->seed = v->stream_number = 0;
    v->sr_bits = 0;
    trni_span_axes(v, view);
    const bool aligned = ((uintptr_t)v->data | (uintptr_t)v->partition_step) % sizeof(float) == 0;
    v->direct = v->format == TRN_F32 && aligned && v->rank == 1 && v->axis[0].step == (int64_t)v->bytes;
    trni_decoder_init(&v->decoder, &view->info, isa);
}

/* Of an operand that its instruction has checked. */
TRNI_FN void trni_span_known(trni_span *v, const trn_tensor *t, trn_isa isa)
{
    trni_view view;
    trni_view_known(&view, t);
    trni_span_init(v, &view, isa);
}

/* The output cast; TRNI_SPAN_STREAM decides about the caches where results are larger than they are. */
TRNI_DRIVER void trni_span_round(trni_span *v, const trni_view *view, const trn_instruction *how, int sr_bits)
{
    const trni_encoding encoding = { { how->rounding, 0, sr_bits }, TRN_OVERFLOW_DEFAULT, false };
    trni_encoder_init(&v->encoder, &view->info, encoding, v->isa);
    v->rounding = how->rounding;
    v->seed = how->seed;
    v->stream_number = how->stream;
    v->sr_bits = sr_bits;
    v->stream = how->unlimited && v->rank == 1 && v->axis[0].step == (int64_t)v->bytes &&
                trni_stream_available(v->isa) && v->partitions * v->elements >= TRNI_SPAN_STREAM / (int64_t)v->bytes;
}

/* Where element f of partition p is, and how many follow it at a constant step. */
typedef struct trni_span_piece {
    char *at;
    int64_t step, count;
} trni_span_piece;

TRNI_FN trni_span_piece trni_span_run(const trni_span *v, int64_t p, int64_t f)
{
    const trni_span_axis *inner = &v->axis[v->rank - 1];
    const int64_t column = v->rank == 1 ? f : f % inner->size;
    trni_span_piece r = { v->data + p * v->partition_step + column * inner->step, inner->step, inner->size - column };
    int64_t rest = v->rank == 1 ? 0 : f / inner->size;
    for (int i = v->rank - 2; i >= 0; i--) {
        r.at += rest % v->axis[i].size * v->axis[i].step;
        rest /= v->axis[i].size;
    }
    return r;
}

/* ---- chunks as codes ---- */

/* n codes of partition p from element f on: where they are, or copied to the buffer (n * bytes) when they do not follow
 * each other. */
TRNI_FN const void *trni_span_bits(const trni_span *v, int64_t p, int64_t f, int64_t n, void *buffer)
{
    trni_span_piece r = trni_span_run(v, p, f);
    if (r.count >= n && (r.step == (int64_t)v->bytes || n == 1)) return r.at;
    char *to = (char *)buffer;
    for (int64_t i = 0, take; i < n; i += take) {
        if (i) r = trni_span_run(v, p, f + i);
        take = trni_min64(r.count, n - i);
        trni_move(to + i * (int64_t)v->bytes, (int64_t)v->bytes, r.at, r.step, v->bytes, (size_t)take);
    }
    return buffer;
}

TRNI_FN void trni_span_put(const trni_span *v, int64_t p, int64_t f, int64_t n, const void *codes)
{
    const char *from = (const char *)codes;
    for (int64_t i = 0, take; i < n; i += take) {
        const trni_span_piece r = trni_span_run(v, p, f + i);
        take = trni_min64(r.count, n - i);
        const char *src = from + i * (int64_t)v->bytes;
        if (r.step == (int64_t)v->bytes && r.at != src)
            memmove(r.at, src, (size_t)take * v->bytes);
        else if (r.at != src)
            trni_move(r.at, r.step, src, (int64_t)v->bytes, v->bytes, (size_t)take);
    }
}

/* ---- chunks as binary32; n <= TRNI_SPAN_CHUNK, buffers hold as many floats ---- */

TRNI_FN const float *trni_span_read(const trni_span *v, int64_t p, int64_t f, int64_t n, float *buffer)
{
    if (v->direct) return (const float *)(const void *)(v->data + p * v->partition_step + f * (int64_t)sizeof(float));
    uint32_t codes[TRNI_SPAN_CHUNK];
    const void *bits = trni_span_bits(v, p, f, n, codes);
    trni_decoder_run(&v->decoder, buffer, bits, (size_t)n);
    return buffer;
}

/* Where the results of a chunk may be made: in place, or in the buffer. trni_span_write takes them from there. */
TRNI_FN float *trni_span_buffer(const trni_span *v, int64_t p, int64_t f, float *buffer)
{
    if (!v->direct || v->stream) return buffer;
    return (float *)(void *)(v->data + p * v->partition_step + f * (int64_t)sizeof(float));
}

/* The codes of n results, in the buffer: n elements of v->bytes. */
TRNI_FN void trni_span_encode(const trni_span *v, int64_t p, int64_t f, int64_t n, const float *value, void *codes)
{
    uint32_t field[TRNI_SPAN_CHUNK];
    const bool stochastic = v->rounding == TRN_STOCHASTIC && v->format != TRN_F32;
    const uint64_t index = (uint64_t)p * (uint64_t)v->elements + (uint64_t)f;
    if (stochastic)
        trn_random_fields(field, (size_t)n, v->sr_bits ? v->sr_bits : 32, v->seed, v->stream_number, index, v->isa);
    trni_encoder_run(&v->encoder, codes, value, stochastic ? field : NULL, (size_t)n);
}

/* n codes to where they belong, a memory line at a time past the caches where that pays. */
TRNI_FN void trni_span_store(const trni_span *v, int64_t p, int64_t f, int64_t n, const void *codes)
{
    char *at = v->data + p * v->partition_step + f * (int64_t)v->bytes;
    if (v->stream)
        trni_stream(at, codes, (size_t)n * v->bytes, at, 0);
    else
        trni_span_put(v, p, f, n, codes);
}

/* The output cast of n results. */
TRNI_FN void trni_span_write(const trni_span *v, int64_t p, int64_t f, int64_t n, const float *value)
{
    uint32_t codes[TRNI_SPAN_CHUNK];
    char *const at = v->data + p * v->partition_step + f * (int64_t)v->bytes;
    const bool straight = v->rank == 1 && v->axis[0].step == (int64_t)v->bytes;
    const bool in_place = at == (const char *)value; /* four bytes, read where they are; kernels do not alias */
    if (v->format == TRN_F32) {
        trni_span_store(v, p, f, n, value);
    } else if (straight && !v->stream && !in_place) {
        trni_span_encode(v, p, f, n, value, at);
    } else {
        trni_span_encode(v, p, f, n, value, codes);
        trni_span_store(v, p, f, n, codes);
    }
}

/* ---- one number for all elements of an output ---- */

typedef struct trni_constant {
    bool same; /* all codes are equal: no random bits */
    float value[TRNI_SPAN_CHUNK];
    uint32_t codes[TRNI_SPAN_CHUNK];
} trni_constant;

/* `dst` knows its rounding. */
TRNI_FN void trni_constant_init(trni_constant *c, const trni_span *dst, float value)
{
    for (int i = 0; i < TRNI_SPAN_CHUNK; i++) c->value[i] = value;
    c->same = dst->rounding != TRN_STOCHASTIC || dst->format == TRN_F32;
    if (c->same) trni_span_encode(dst, 0, 0, TRNI_SPAN_CHUNK, c->value, c->codes);
}

/* The codes of elements [f, f + n) of partition p: made once, or in the buffer. */
TRNI_FN const void *trni_constant_codes(const trni_constant *c, const trni_span *dst, int64_t p, int64_t f, int64_t n,
                                        void *buffer)
{
    if (c->same) return c->codes;
    trni_span_encode(dst, p, f, n, c->value, buffer);
    return buffer;
}

/* ---- one number per partition ---- */

/* An operand that is a tile [P] or [P, 1 ...], or one number for all. */
typedef struct trni_column {
    bool varies;
    float value;
    trni_span lanes;
} trni_column;

TRNI_FN float trni_column_at(const trni_column *c, int64_t p)
{
    float buffer[TRNI_SPAN_CHUNK];
    return c->varies ? trni_span_read(&c->lanes, p, 0, 1, buffer)[0] : c->value;
}

/* ---- the checks that all instructions make ---- */

/* An instruction as it is checked: begin with trni_frame_begin, then each operand under its own name, which opens it
 * for all that comes later; the first thing that is wrong stays in .status, and later checks do and open nothing. */
typedef struct trni_frame {
    trn_instruction how;
    const trn_core_spec *core;
    trn_numerics numerics;
    trn_isa isa;
    trni_view dst;
    int64_t partitions, elements; /* of dst */
    trn_status status;
} trni_frame;

/* `fallback`: the generation that 0 stands for; `since`: the first one that has the instruction; `what`: its name. */
TRNI_DRIVER trn_status trni_frame_begin(trni_frame *f, const trn_instruction *how, trn_generation fallback,
                                        trn_generation since, const char *what)
{
    f->how = *how;
    f->isa = how->isa;
    f->partitions = f->elements = 0;
    f->core = trn_core_spec_of(how->generation == TRN_GENERATION_DEFAULT ? fallback : how->generation);
    if (!f->core)
        return f->status =
                   trni_fail(how->error, TRN_EINVAL, "generation is %d, not a generation", (int)how->generation);
    if (f->core->generation < since)
        return f->status = trni_fail(how->error, TRN_EUNSUPPORTED, "%s is not available on %s", what,
                                     trn_generation_name(f->core->generation));
    if ((unsigned)how->engine >= TRN_ENGINE_COUNT && how->engine != TRN_ENGINE_SYNC)
        return f->status = trni_fail(how->error, TRN_EINVAL, "engine is %d, not an engine", (int)how->engine);
    f->status = trni_numerics_resolve(how->numerics, f->core->generation, &f->numerics, how->error);
    if (!f->status) f->status = trni_check_rounding(how->rounding, f->numerics.sr_bits, how->error);
    if (!f->status) f->status = trni_isa_resolve(&f->isa, how->error);
    return f->status;
}

/* Who executes: `own`, also by default, or `other`; TRN_ENGINE_UNKNOWN there: nobody else. */
TRNI_FN trn_engine trni_frame_engine(trni_frame *f, trn_engine own, trn_engine other, const char *what)
{
    const trn_engine asked = f->how.engine;
    if (asked == TRN_ENGINE_UNKNOWN || asked == own) return own;
    if (asked != other && !f->status)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "engine is %s, which does not execute %s",
                              trn_engine_name(asked), what);
    return asked;
}

/* F of a view [P, free axes ...]; `fallback` where there is no partition. */
TRNI_FN int64_t trni_partition_elements(const trni_view *v, int64_t fallback)
{
    return v->t.shape[0] ? v->width : fallback;
}

/* Is it of a format that the generation has? Where none is asked for, one that only Trainium3 has selects that. */
TRNI_DRIVER void trni_frame_format(trni_frame *f, const trni_view *v)
{
    const trn_format format = v->t.format;
    if (f->how.generation == TRN_GENERATION_DEFAULT && trni_holds_newly(format))
        f->core = trn_core_spec_of(TRN_TRAINIUM3);
    if (trni_holds_never(format))
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "%s is %s, which the engines of no generation hold",
                              v->name, v->info.name);
    else if (!trni_holds(f->core->generation, format))
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "%s is %s, which %s does not have", v->name, v->info.name,
                              trn_generation_name(f->core->generation));
}

/* Within a tile's limits? */
TRNI_DRIVER void trni_frame_limits(trni_frame *f, const trni_view *v)
{
    if (v->t.shape[0] > TRN_PARTITIONS)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "%s has %lld partitions; a tile has at most %d", v->name,
                              (long long)v->t.shape[0], TRN_PARTITIONS);
    else if ((double)v->width * (double)v->size > f->core->sbuf_partition_bytes)
        f->status =
            trni_fail(f->how.error, TRN_ELIMIT, "%s has %lld elements per partition; %s holds %.0f bytes", v->name,
                      (long long)v->width, trn_generation_name(f->core->generation), f->core->sbuf_partition_bytes);
}

/* Every view: valid, of a format that the generation has, and within a tile's limits. */
TRNI_DRIVER void trni_frame_view(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name, trni_use use)
{
    if (f->status) return;
    if (t->rank == 0)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "%s is missing", name);
    else
        f->status = trni_view_open(v, t, name, use, 0, f->how.error);
    if (!f->status) trni_frame_format(f, v);
    if (!f->status && !f->how.unlimited) trni_frame_limits(f, v);
}

/* dst decides about P and F. Call it first. A free axis may have step 0: its results go to one place, one after the
 * other, and the last one stays (NKI's kernels give such a dst to instructions whose reduce_res is what they want). */
TRNI_DRIVER void trni_frame_dst(trni_frame *f, const trn_tensor *dst)
{
    trni_frame_view(f, &f->dst, dst, "dst", TRNI_INPUT);
    if (f->status) return;
    if (f->dst.t.stride[0] == 0 && f->dst.t.shape[0] > 1)
        f->status = trni_view_fail_broadcast(&f->dst, 0, f->how.error);
    else
        f->status = trni_view_check_places(&f->dst, f->how.error);
    if (f->status) return;
    f->partitions = f->dst.t.shape[0];
    f->elements = f->dst.width;
}

/* An output that `v` may not meet, where it is there at all. */
TRNI_DRIVER void trni_frame_apart(trni_frame *f, const trni_view *out, const trni_view *v)
{
    if (!f->status && v->t.rank && trni_views_overlap(out, v))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s overlaps %s", out->name, v->name);
}

/* An input that may be dst itself, but share no other part of it. */
TRNI_DRIVER void trni_frame_beside(trni_frame *f, const trni_view *v)
{
    if (!f->status && v->t.rank && !trni_same_place(&f->dst, v)) trni_frame_apart(f, &f->dst, v);
}

/* An opened source has dst's P and F (the free axes may be cut differently); in place is legal, other overlaps are
 * not. */
TRNI_DRIVER void trni_frame_fits(trni_frame *f, const trni_view *v)
{
    if (f->status) return;
    if (v->t.shape[0] != f->partitions || v->width != f->elements)
        f->status = trni_fail(
            f->how.error, TRN_ESHAPE, "%s has %lld partitions of %lld elements but dst has %lld of %lld", v->name,
            (long long)v->t.shape[0], (long long)v->width, (long long)f->partitions, (long long)f->elements);
    trni_frame_beside(f, v);
}

TRNI_DRIVER void trni_frame_src(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name)
{
    trni_frame_view(f, v, t, name, TRNI_INPUT);
    trni_frame_fits(f, v);
}

/* An opened view with its own number of elements in each of `partitions`. */
TRNI_DRIVER void trni_frame_sizes(trni_frame *f, const trni_view *v, int64_t partitions, int64_t elements)
{
    if (f->status) return;
    const int64_t has = trni_partition_elements(v, elements);
    if (v->t.shape[0] != partitions || has != elements)
        f->status =
            trni_fail(f->how.error, TRN_ESHAPE, "%s has %lld partitions of %lld elements; it takes %lld of %lld",
                      v->name, (long long)v->t.shape[0], (long long)has, (long long)partitions, (long long)elements);
}

TRNI_DRIVER void trni_frame_tile(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name, trni_use use,
                                 int64_t partitions, int64_t elements)
{
    trni_frame_view(f, v, t, name, use);
    trni_frame_sizes(f, v, partitions, elements);
}

/* One number per partition of dst, in a tile or for all; the tile has P partitions of one element. */
TRNI_DRIVER void trni_frame_column(trni_frame *f, trni_view *v, const trn_tensor *tile, const char *name,
                                   int64_t partitions)
{
    v->t.rank = 0;
    if (f->status || tile->rank == 0) return;
    trni_frame_view(f, v, tile, name, TRNI_INPUT);
    if (!f->status && (v->t.shape[0] != partitions || v->elements != partitions))
        f->status = trni_fail(f->how.error, TRN_ESHAPE,
                              "%s has %lld partitions of %lld elements; it takes one for each of %lld", name,
                              (long long)v->t.shape[0], (long long)v->width, (long long)partitions);
}

/* `v`: what trni_frame_column opened; NULL: a number for all. */
TRNI_FN void trni_column_init(trni_column *c, const trni_view *v, float value, trn_isa isa)
{
    c->varies = v && v->t.rank != 0;
    c->value = value;
    if (c->varies && v->elements) trni_span_init(&c->lanes, v, isa);
}

/* An output of a frame, with the cast that its args ask for. */
TRNI_DRIVER void trni_span_output(trni_span *v, const trni_view *view, const trni_frame *f)
{
    trni_span_init(v, view, f->isa);
    trni_span_round(v, view, &f->how, f->numerics.sr_bits);
}

TRNI_DRIVER bool trni_frame_empty(const trni_frame *f) { return f->partitions == 0 || f->elements == 0; }

/* ---- chunk after chunk ---- */

/* Work on elements [f, f + n) of partition p, n <= TRNI_SPAN_CHUNK, or what was asked for. */
typedef void trni_span_work(const void *plan, int64_t p, int64_t f, int64_t n);

/* How many threads pay. For one no region is opened: that takes 0.4 us (measured), more than all else of a small
 * call. */
TRNI_FN int trni_span_threads(int64_t partitions, int64_t elements)
{
    return partitions * elements >= TRNI_SPAN_PARALLEL ? trni_threads() : 1;
}

/* Chunk i of all. */
TRNI_FN void trni_span_nth(int64_t i, int64_t elements, int64_t chunk, trni_span_work *work, const void *plan)
{
    const int64_t chunks = trni_ceil_div(elements, chunk), p = i / chunks, f = i % chunks * chunk;
    work(plan, p, f, trni_min64(chunk, elements - f));
}

/* All chunks of P partitions of F elements, shared out among threads where there is enough of it. Every chunk has its
 * own place, so that threads change nothing. Work that needs no buffers may ask for larger chunks. */
TRNI_FN void trni_span_each_of(int64_t partitions, int64_t elements, int64_t chunk, trni_span_work *work,
                               const void *plan)
{
    const int64_t all = partitions * trni_ceil_div(elements, chunk);
    trni_team team = trni_team_begin(trni_span_threads(partitions, elements));
    if (team.threads == 1) {
        for (int64_t i = 0; i < all; i++) trni_span_nth(i, elements, chunk, work, plan);
        trni_stream_end();
        return;
    }
    TRNI_PARALLEL(num_threads(team.threads))
    {
        TRNI_FLOATS;
        TRNI_FOR(schedule(static) nowait)
        for (int64_t i = 0; i < all; i++) trni_span_nth(i, elements, chunk, work, plan);
        trni_stream_end(); /* by each thread, for what it sent past the caches */
        trni_team_worked(&team);
    }
    trni_team_end(&team);
}

TRNI_FN void trni_span_each(int64_t partitions, int64_t elements, trni_span_work *work, const void *plan)
{
    trni_span_each_of(partitions, elements, TRNI_SPAN_CHUNK, work, plan);
}

/* The same for work that goes along whole partitions: [p, p + n) at a time, in ascending order within each. `room` is
 * what the thread may work in, of as many bytes as were asked for. */
typedef void trni_partitions_work(const void *plan, int64_t p, int64_t n, void *room);

TRNI_FN void trni_partitions_share(int64_t partitions, int64_t elements, int64_t group, const trni_workspace *rooms,
                                   trni_partitions_work *work, const void *plan)
{
    const int64_t all = trni_ceil_div(partitions, group);
    trni_team team = trni_team_begin(trni_span_threads(partitions, elements));
    if (team.threads == 1) {
        void *const room = rooms ? trni_workspace_of(rooms, 0) : NULL;
        for (int64_t i = 0; i < all; i++) work(plan, i * group, trni_min64(group, partitions - i * group), room);
        trni_stream_end();
        return;
    }
    TRNI_PARALLEL(num_threads(team.threads))
    {
        TRNI_FLOATS;
        void *const room = rooms ? trni_workspace_of(rooms, trni_thread()) : NULL;
        TRNI_FOR(schedule(static) nowait)
        for (int64_t i = 0; i < all; i++) work(plan, i * group, trni_min64(group, partitions - i * group), room);
        trni_stream_end(); /* by each thread, as above */
        trni_team_worked(&team);
    }
    trni_team_end(&team);
}

TRNI_FN void trni_partitions_each(int64_t partitions, int64_t elements, int64_t group, trni_partitions_work *work,
                                  const void *plan)
{
    trni_partitions_share(partitions, elements, group, NULL, work, plan);
}

TRNI_FN trn_status trni_partitions_each_in(size_t bytes, const trni_frame *f, int64_t group, trni_partitions_work *work,
                                           const void *plan)
{
    trni_workspace rooms;
    const int threads = trni_span_threads(f->partitions, f->elements);
    const trn_status status = trni_workspace_open(&rooms, bytes, threads, f->how.error);
    if (status != TRN_OK) return status;
    trni_partitions_share(f->partitions, f->elements, group, &rooms, work, plan);
    trni_workspace_close(&rooms);
    return TRN_OK;
}

/* Views whose partitions follow each other in memory are one partition of P F elements: fewer, longer chunks. Random
 * bits stay, since they go by p F + f. */
TRNI_FN bool trni_span_flat(const trni_span *v)
{
    return v->rank == 1 && v->axis[0].step == (int64_t)v->bytes &&
           (v->partitions == 1 || v->partition_step == v->elements * (int64_t)v->bytes);
}

TRNI_FN void trni_span_flatten(trni_span *v)
{
    v->elements *= v->partitions;
    v->partitions = 1;
    v->axis[0].size = v->elements;
}

#endif /* TRNI_ENGINE_SPAN_H */

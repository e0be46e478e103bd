/* engine/dma.h - what the DMA engines do with numbers.
 * A part of trn_dma.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_DMA_H
#define TRNI_ENGINE_DMA_H

#include "alu.h"
#include "../data/convert.h"
#include "instruction.h"

typedef enum trn_oob_mode {
    TRN_OOB_ERROR = 0, /* an index out of bounds is refused */
    TRN_OOB_SKIP       /* its row is left out, and what dst holds there stays; an offset's whole transfer */
} trn_oob_mode;

/* Who makes the descriptors. */
typedef enum trn_dge_mode {
    TRN_DGE_UNKNOWN = 0, /* whoever can */
    TRN_DGE_SWDGE,       /* GpSimd's software: casts, gathers, scatters */
    TRN_DGE_HWDGE,       /* hardware, from Trainium2 on: no casts, no indices */
    TRN_DGE_NONE,        /* the runtime, beforehand: no indices, no offsets */
    TRN_DGE_COUNT
} trn_dge_mode;

/* ---- dma_copy ---- */

typedef struct trn_dma_copy_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;  /* as many elements, in any shapes */
    trn_tensor src_index; /* [P] or [P, 1], U32 or I32: dst row i = src row src_index[i], rows being axis 0; or */
    trn_tensor dst_index; /* dst row dst_index[i] = src row i, ascending: of two the later one stays. Rank 0: none */
    trn_dma_offset src_offset, dst_offset; /* each in place of that side's index: src, dst begin further on */
    trn_oob_mode oob_mode;
    trn_dge_mode dge_mode;
    int priority;       /* 0..3, 0 is the highest; Trainium3 has them */
    bool accumulate;    /* dst += src, both BF16 or both F32, one rounding */
    double compression; /* Trainium1: bytes on the wire per byte, 0 = off. Cost alone; whether and how: unknown */
} trn_dma_copy_args;

/* dst = src, or dst += src, element by element or row by row. */
TRN_API trn_status trn_dma_copy(const trn_dma_copy_args *args);

/* ---- dma_transpose ---- */

typedef struct trn_dma_transpose_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* axis k is axis axes[k] of src */
    trn_tensor src; /* 2 to 4 axes, 2 or 4 bytes, dst's format */
    int axes[4];    /* 1 0; 2 1 0; 3 1 2 0. All 0 = the rank's own */
    trn_tensor
        index; /* [I, N], U32: the rows of src that are taken, column by column, as many as dst's last axis has */
    trn_oob_mode oob_mode; /* skip goes with an index */
    trn_dge_mode dge_mode; /* hwdge: 2 bytes and more rules, see below; swdge goes with an index */
    int priority;          /* 0..3, 0 is the highest; Trainium3 has them */
} trn_dma_transpose_args;

/* dst = src with its axes in the order of `axes`, bit for bit. With an index, rows of src (axis 0) are gathered first:
 * src may have more of them than dst takes. From Trainium2 on. The rules of hwdge and of an index are the page's. */
TRN_API trn_status trn_dma_transpose(const trn_dma_transpose_args *args);

/* ---- dma_compute ---- */

typedef struct trn_dma_compute_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    const trn_tensor *srcs; /* as many elements as dst, in any shapes */
    int count;              /* 1..16; 2 with an index */
    const float *scales;    /* null, or all 1 */
    trn_alu reduce_op;      /* add, also what 0 means */
    trn_tensor index;       /* [P] or [P, 1], U32 or I32: read-modify-write of rows. Rank 0: none */
    bool scatter; /* dst row index[i] += row i of a source; else dst row i += row index[i] of a source. The other */
                  /* source is dst itself */
    trn_oob_mode oob_mode;
    bool unique_indices; /* a promise that no row is scattered to twice, checked; NKI always makes it */
} trn_dma_compute_args;

/* dst = srcs[0] + srcs[1] + ..., in binary32, in that order, each sum rounded, and one cast at the end. With an index
 * rows are read, modified and written, ascending: an index that comes twice adds twice, where nobody has promised that
 * none does. (NKI 0.6.0 takes unique_indices=True only: on the chip two sums of one row would race.) */
TRN_API trn_status trn_dma_compute(const trn_dma_compute_args *args);

#if TRNI_BODIES

#include "alu_kernels.h"
#include "dma_offset.h"

/* ---- what they share ---- */

TRNI_FN const char *trni_dge_name(trn_dge_mode mode)
{
    static const char *const name[TRN_DGE_COUNT] = { "unknown", "swdge", "hwdge", "none" };
    return (unsigned)mode < TRN_DGE_COUNT ? name[(unsigned)mode] : "no mode";
}

TRNI_FN void trni_dma_begin(trni_frame *f, const void *args, trn_generation since, const char *what)
{
    trn_instruction how = trni_instruction_of(args);
    how.unlimited = true;
    if (trni_frame_begin(f, &how, TRN_TRAINIUM2, since, what)) return;
    if (f->how.rounding == TRN_STOCHASTIC && f->numerics.sr_where != TRN_SR_ALL_WRITES)
        f->how.rounding = TRN_NEAREST_EVEN;
}

TRNI_FN void trni_dma_modes(trni_frame *f, trn_dge_mode dge, trn_oob_mode oob, const char *what)
{
    if (f->status) return;
    if ((unsigned)dge >= TRN_DGE_COUNT)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "dge_mode is %d, not a mode", (int)dge);
    else if ((unsigned)oob > TRN_OOB_SKIP)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "oob_mode is %d, not a mode", (int)oob);
    else if (dge == TRN_DGE_HWDGE && f->core->generation < TRN_TRAINIUM2)
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "dge_mode hwdge is not available on %s",
                              trn_generation_name(f->core->generation));
    else if (dge != TRN_DGE_HWDGE || f->how.engine != TRN_ENGINE_SYNC)
        trni_frame_engine(f, TRN_ENGINE_DMA, dge == TRN_DGE_HWDGE ? TRN_ENGINE_SCALAR : TRN_ENGINE_DMA, what);
}

TRNI_FN void trni_dma_priority(trni_frame *f, int priority)
{
    if (f->status) return;
    if (priority < 0 || priority > 3)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "priority is %d, not 0 to 3", priority);
    else if (priority && f->core->generation < TRN_TRAINIUM3)
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "priority %d: %s has one class of DMA", priority,
                              trn_generation_name(f->core->generation));
}

/* All axes of a view as one run of elements, in row-major order. */
TRNI_FN void trni_dma_flat_span(trni_span *v, const trni_view *view, trn_isa isa)
{
    trni_span_init(v, view, isa);
    v->partitions = 1;
    v->partition_step = 0;
    v->elements = view->elements;
    v->rank = 0;
    for (int i = 0; i < view->t.rank; i++) trni_span_axis_add(v, view->t.shape[i], view->t.stride[i]);
    trni_span_axes_end(v);
    v->direct = v->format == TRN_F32 && (uintptr_t)v->data % sizeof(float) == 0 && trni_span_flat(v);
}

/* ---- rows by index ---- */

typedef struct trni_dma_index {
    trni_view view; /* rank 0: none */
    int64_t rows;   /* of the tensor that it points into */
    trni_span span;
} trni_dma_index;

/* What the index says of row i. */
TRNI_FN int64_t trni_dma_number(const trni_dma_index *x, int64_t i)
{
    return trni_integer_at(x->span.format, trni_span_run(&x->span, 0, i).at);
}

/* Which row is number i? -1: none. */
TRNI_FN int64_t trni_dma_row(const trni_dma_index *x, int64_t i)
{
    const int64_t row = trni_dma_number(x, i);
    return row >= 0 && row < x->rows ? row : -1;
}

/* One index for each row of `of`, in bounds of the tensor `into` or to be skipped. */
TRNI_FN void trni_dma_index_init(trni_frame *f, trni_dma_index *x, const trn_tensor *index, const char *name,
                                 const trni_view *of, const trni_view *into, trn_oob_mode oob)
{
    const int64_t count = of->t.shape[0];
    x->rows = into->t.shape[0];
    trni_frame_view(f, &x->view, index, name, TRNI_INPUT);
    if (f->status) return;
    if (index->format != TRN_U32 && index->format != TRN_I32) {
        f->status =
            trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; it takes uint32 and int32", name, x->view.info.name);
        return;
    }
    if (x->view.elements != count) {
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "%s has %lld elements for %lld rows", name,
                              (long long)x->view.elements, (long long)count);
        return;
    }
    if (count == 0) return;
    trni_dma_flat_span(&x->span, &x->view, f->isa);
    for (int64_t i = 0; i < count && oob == TRN_OOB_ERROR; i++)
        if (trni_dma_row(x, i) < 0) {
            f->status = trni_fail(f->how.error, TRN_EINVAL, "%s[%lld] is %lld but %s has %lld rows", name, (long long)i,
                                  (long long)trni_dma_number(x, i), into->name, (long long)x->rows);
            return;
        }
}

/* ---- moving elements ---- */

typedef struct trni_dma_plan {
    trni_span dst, src;
    trni_dma_index index;
    bool scatter; /* the index is dst's */
    bool copies;  /* one format: bits move */
    bool adds;    /* dst += src */
    trni_alu_kernel add;
} trni_dma_plan;

/* Elements [f, f + n) of row `from` of src to row `to` of dst. */
TRNI_FN void trni_dma_move(const trni_dma_plan *my, int64_t to, int64_t from, int64_t f, int64_t n)
{
    float a[TRNI_SPAN_CHUNK], b[TRNI_SPAN_CHUNK];
    if (my->copies && !my->adds) {
        trni_span_put(&my->dst, to, f, n, trni_span_bits(&my->src, from, f, n, a));
        return;
    }
    const float *x = trni_span_read(&my->src, from, f, n, a);
    if (!my->adds) {
        trni_span_write(&my->dst, to, f, n, x);
        return;
    }
    float *sum = trni_span_buffer(&my->dst, to, f, b);
    trni_alu_run(my->add, sum, trni_span_read(&my->dst, to, f, n, b), x, (size_t)n);
    trni_span_write(&my->dst, to, f, n, sum);
}

TRNI_FN void trni_dma_work(const void *plan, int64_t row, int64_t f, int64_t n)
{
    const trni_dma_plan *const my = (const trni_dma_plan *)plan;
    const int64_t other = my->index.view.t.rank ? trni_dma_row(&my->index, row) : row;
    if (other >= 0) trni_dma_move(my, my->scatter ? other : row, my->scatter ? row : other, f, n);
}

/* Rows to rows. Two rows may be scattered to one place, so that these go one after the other. */
TRNI_FN void trni_dma_run(const trni_dma_plan *my, int64_t rows)
{
    const int64_t elements = my->dst.elements;
    if (!my->scatter) {
        trni_span_each(rows, elements, trni_dma_work, my);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t f = 0; f < elements; f += TRNI_SPAN_CHUNK)
            trni_dma_work(my, i, f, trni_min64(TRNI_SPAN_CHUNK, elements - f));
}

/* Rows of dst and of src have as many elements, where both have rows at all. */
TRNI_DRIVER void trni_dma_check_rows(trni_frame *f, const trni_view *src)
{
    if (!f->status && f->dst.t.shape[0] && src->t.shape[0] && f->dst.width != src->width)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "a row of %s has %lld elements but one of dst has %lld",
                              src->name, (long long)src->width, (long long)f->dst.width);
}

TRNI_DRIVER void trni_dma_check_elements(trni_frame *f, const trni_view *src)
{
    if (!f->status && f->dst.elements != src->elements)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "%s has %lld elements but dst has %lld", src->name,
                              (long long)src->elements, (long long)f->dst.elements);
}

/* The spans of a gather or scatter (rows), or of everything in a row. */
TRNI_FN void trni_dma_plan_init(trni_dma_plan *p, const trni_frame *f, const trni_view *src, bool rows)
{
    if (rows) {
        trni_span_init(&p->dst, &f->dst, f->isa);
        trni_span_init(&p->src, src, f->isa);
    } else {
        trni_dma_flat_span(&p->dst, &f->dst, f->isa);
        trni_dma_flat_span(&p->src, src, f->isa);
    }
    trni_span_round(&p->dst, &f->dst, &f->how, f->numerics.sr_bits);
    p->dst.stream = false;
    p->copies = trni_same_format(&f->dst.t, &src->t);
}

/* ---- dma_copy ---- */

/* A view that is one run of memory, as a tensor of one axis. */
TRNI_FN bool trni_dma_run_of(const trn_tensor *t, trn_tensor *run)
{
    int64_t stride[TRN_MAX_RANK], next = 1;
    trni_strides(t, stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] == 1) continue;
        if (stride[i] != next) return false;
        next *= t->shape[i];
    }
    *run = *t;
    run->rank = 1;
    run->shape[0] = trn_tensor_elements(*t);
    memset(run->stride, 0, sizeof run->stride);
    return true;
}

/* One shape, or two runs: trn_convert. False where it cannot be asked. */
TRNI_FN bool trni_dma_convert(trni_frame *f, const trn_tensor *dst, const trn_tensor *src)
{
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = *dst;
    args.src = *src;
    if (trni_check_same_shape(dst, "dst", src, "src", NULL) &&
        !(trni_dma_run_of(dst, &args.dst) && trni_dma_run_of(src, &args.src)))
        return false;
    args.rounding = f->how.rounding;
    args.seed = f->how.seed;
    args.stream = f->how.stream;
    args.sr_bits = f->numerics.sr_bits;
    args.isa = f->isa;
    args.error = f->how.error;
    f->status = trn_convert(&args);
    return true;
}

TRNI_FN void trni_dma_copy_modes(trni_frame *f, const trn_dma_copy_args *a)
{
    trn_error *const error = f->how.error;
    const bool indexed = a->src_index.rank || a->dst_index.rank;
    const bool placed = a->src_offset.value.rank || a->dst_offset.value.rank;
    trni_dma_modes(f, a->dge_mode, a->oob_mode, "dma_copy");
    trni_dma_priority(f, a->priority);
    if (f->status) return;
    if (!(a->compression >= 0 && a->compression <= 1))
        f->status = trni_fail(error, TRN_EINVAL, "compression is %g, not 0 to 1", a->compression);
    else if (a->compression > 0 && f->core->generation != TRN_TRAINIUM1)
        f->status = trni_fail(error, TRN_EUNSUPPORTED, "compression is not available on %s",
                              trn_generation_name(f->core->generation));
    else if (a->src_index.rank && a->dst_index.rank)
        f->status = trni_fail(error, TRN_EINVAL, "src_index and dst_index are both given");
    else if (indexed && a->dge_mode != TRN_DGE_UNKNOWN && a->dge_mode != TRN_DGE_SWDGE)
        f->status = trni_fail(error, TRN_EINVAL, "dge_mode is %s, which takes no indices", trni_dge_name(a->dge_mode));
    else if ((a->src_index.rank && a->src_offset.value.rank) || (a->dst_index.rank && a->dst_offset.value.rank))
        f->status = trni_fail(error, TRN_EINVAL, "%s has an index and an offset; one of them may be given",
                              a->src_index.rank ? "src" : "dst");
    else if (placed && a->dge_mode == TRN_DGE_NONE)
        f->status = trni_fail(error, TRN_EINVAL, "dge_mode is none, which takes no offsets");
}

TRNI_FN void trni_dma_copy_formats(trni_frame *f, const trn_dma_copy_args *a)
{
    trn_error *const error = f->how.error;
    if (f->status) return;
    const char *const to = trn_format_name(a->dst.format), *const from = trn_format_name(a->src.format);
    const bool same = trni_same_format(&a->dst, &a->src);
    if (a->accumulate && (!same || (a->dst.format != TRN_BF16 && a->dst.format != TRN_F32)))
        f->status = trni_fail(error, TRN_EFORMAT,
                              "dst is %s and src is %s; accumulate takes bfloat16 or float32 for both", to, from);
    else if (!same && a->dge_mode == TRN_DGE_HWDGE)
        f->status = trni_fail(error, TRN_EFORMAT, "dst is %s and src is %s; dge_mode hwdge does not cast", to, from);
    else if (!same && (trni_operand_kind_of(a->dst.format) == TRNI_OPERAND_TINY ||
                       trni_operand_kind_of(a->src.format) == TRNI_OPERAND_TINY))
        f->status =
            trni_fail(error, TRN_EFORMAT, "dst is %s and src is %s; a DMA does not cast MX's numbers", to, from);
}

TRNI_FN void trni_dma_copy_shapes(trni_frame *f, const trn_dma_copy_args *a, const trni_view *src, trni_dma_plan *plan)
{
    plan->scatter = a->dst_index.rank != 0;
    plan->index.view.t.rank = 0;
    if (f->status) return;
    if (a->src_index.rank == 0 && a->dst_index.rank == 0) {
        trni_dma_check_elements(f, src);
        trni_frame_beside(f, src);
        return;
    }
    trni_dma_check_rows(f, src);
    trni_frame_apart(f, &f->dst, src);
    if (f->status) return;
    if (plan->scatter)
        trni_dma_index_init(f, &plan->index, &a->dst_index, "dst_index", src, &f->dst, a->oob_mode);
    else
        trni_dma_index_init(f, &plan->index, &a->src_index, "src_index", &f->dst, src, a->oob_mode);
    trni_frame_apart(f, &f->dst, &plan->index.view);
}

/* A number that says where a side begins stays out of dst. */
TRNI_FN void trni_dma_offset_apart(trni_frame *f, const trn_dma_offset *o, const char *name)
{
    trni_view value;
    if (f->status || o->value.rank == 0) return;
    (void)trni_view_known(&value, &o->value);
    value.name = name;
    trni_frame_apart(f, &f->dst, &value);
}

/* Both sides where they begin. False: out of bounds, and skipped. */
TRNI_FN bool trni_dma_copy_place(trni_frame *f, trn_dma_copy_args *a)
{
    static const trni_dma_side dst = { "dst", "dst_offset" }, src = { "src", "src_offset" };
    const bool skips = a->oob_mode == TRN_OOB_SKIP;
    bool moves = true;
    if (!f->status && a->dst_offset.value.rank)
        f->status = trni_dma_offset_place(&a->dst_offset, &a->dst, dst, skips, &moves, f->how.error);
    if (!f->status && a->src_offset.value.rank)
        f->status = trni_dma_offset_place(&a->src_offset, &a->src, src, skips, &moves, f->how.error);
    f->dst.t.data = a->dst.data;
    trni_dma_offset_apart(f, &a->dst_offset, "dst_offset.value");
    trni_dma_offset_apart(f, &a->src_offset, "src_offset.value");
    return moves;
}

/* `a` says where both sides begin, and the frame has dst; `moves`: it is not out of bounds. */
TRNI_DRIVER trn_status trni_dma_copy(trni_frame *f, const trn_dma_copy_args *a, bool moves)
{
    trni_view src;
    trni_dma_plan plan;
    trni_frame_view(f, &src, &a->src, "src", TRNI_INPUT);
    trni_dma_copy_formats(f, a);
    trni_dma_copy_shapes(f, a, &src, &plan);
    if (f->status || !moves || f->dst.elements == 0 || src.elements == 0) return f->status;
    const bool rows = plan.index.view.t.rank != 0;
    if (!rows && !a->accumulate && trni_dma_convert(f, &a->dst, &a->src)) return f->status;
    trni_dma_plan_init(&plan, f, &src, rows);
    plan.adds = a->accumulate;
    plan.add = trni_alu_kernel_of(TRN_ALU_ADD, f->isa);
    trni_dma_run(&plan, !rows ? 1 : plan.scatter ? plan.src.partitions : plan.dst.partitions);
    return TRN_OK;
}

TRN_API trn_status trn_dma_copy(const trn_dma_copy_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_dma_begin(&f, args, TRN_TRAINIUM1, "dma_copy");
    trni_dma_copy_modes(&f, args);
    trni_frame_view(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT);
    if (!args->src_offset.value.rank && !args->dst_offset.value.rank) return trni_dma_copy(&f, args, true);
    trn_dma_copy_args at = *args;
    const bool moves = trni_dma_copy_place(&f, &at);
    return trni_dma_copy(&f, &at, moves);
}

/* ---- dma_transpose ---- */

TRNI_FN const int *trni_dma_axes(int rank)
{
    static const int axes[3][4] = { { 1, 0, 0, 0 }, { 2, 1, 0, 0 }, { 3, 1, 2, 0 } };
    return axes[rank - 2];
}

/* src's axes in dst's order. */
TRNI_FN trn_tensor trni_dma_permuted(const trn_tensor *src)
{
    return trn_tensor_permuted(*src, trni_dma_axes(src->rank));
}

TRNI_FN void trni_dma_transpose_views(trni_frame *f, const trn_dma_transpose_args *a)
{
    trn_error *const error = f->how.error;
    if (f->status) return;
    const size_t bytes = trn_format_bytes(a->src.format);
    if (a->src.rank < 2 || a->src.rank > 4) {
        f->status = trni_fail(error, TRN_ESHAPE, "src has rank %d; a DMA transposes 2 to 4 axes", a->src.rank);
        return;
    }
    const int *const axes = trni_dma_axes(a->src.rank);
    bool given = false, right = true;
    for (int k = 0; k < 4; k++) {
        given = given || a->axes[k] != 0;
        right = right && a->axes[k] == axes[k];
    }
    if (given && !right)
        f->status =
            trni_fail(error, TRN_EINVAL, "axes are not those of rank %d: (1, 0), (2, 1, 0), (3, 1, 2, 0)", a->src.rank);
    else if (!trni_same_format(&a->dst, &a->src))
        f->status = trni_fail(error, TRN_EFORMAT, "dst is %s and src is %s; a transpose does not cast",
                              trn_format_name(a->dst.format), trn_format_name(a->src.format));
    else if (bytes != 2 && bytes != 4)
        f->status = trni_fail(error, TRN_EFORMAT, "src is %s; a DMA transposes elements of 2 and 4 bytes",
                              trn_format_name(a->src.format));
    if (f->status) return;
    trn_tensor expected = trni_dma_permuted(&a->src);
    if (a->index.rank && a->dst.rank == a->src.rank) expected.shape[a->src.rank - 1] = a->dst.shape[a->dst.rank - 1];
    f->status = trni_check_same_shape(&a->dst, "dst", &expected, "src, transposed,", error);
}

/* The rules of a hardware DGE, and of the software one's gather. */
TRNI_FN void trni_dma_transpose_hwdge(trni_frame *f, const trn_tensor *src)
{
    trn_error *const error = f->how.error;
    const long long rows = (long long)src->shape[0], columns = (long long)src->shape[src->rank - 1];
    const long long next = (long long)src->shape[src->rank - 2];
    if (src->rank == 2 && rows != 16)
        f->status = trni_fail(error, TRN_EINVAL, "src has %lld rows; dge_mode hwdge transposes 16", rows);
    else if (src->rank > 2 && rows != 1 && rows != 2 && rows != 4 && rows != 8 && rows != 16)
        f->status = trni_fail(error, TRN_EINVAL, "src has %lld rows; dge_mode hwdge transposes 1, 2, 4, 8 or 16", rows);
    else if (src->rank > 2 && rows * next % 16)
        f->status = trni_fail(error, TRN_EINVAL,
                              "src has %lld rows of %lld; dge_mode hwdge needs a multiple of 16 in all", rows, next);
    else if (columns > 128)
        f->status =
            trni_fail(error, TRN_EINVAL, "src has a last axis of %lld; dge_mode hwdge transposes at most 128", columns);
    else if (trn_format_bytes(src->format) != 2)
        f->status = trni_fail(error, TRN_EFORMAT, "src is %s; dge_mode hwdge transposes elements of 2 bytes",
                              trn_format_name(src->format));
}

TRNI_FN void trni_dma_transpose_swdge(trni_frame *f, const trn_dma_transpose_args *a, trni_view *opened)
{
    trn_error *const error = f->how.error;
    const trn_tensor *const src = &a->src, *const index = &a->index;
    trni_frame_view(f, opened, index, "index", TRNI_INPUT);
    if (f->status) return;
    const long long taken = (long long)a->dst.shape[a->dst.rank - 1], rows = (long long)index->shape[0];
    const long long columns = index->rank == 2 ? (long long)index->shape[1] : 0,
                    last = (long long)src->shape[src->rank - 1];
    if (index->rank != 2)
        f->status = trni_fail(error, TRN_ESHAPE, "index has rank %d, not 2", index->rank);
    else if (index->format != TRN_U32)
        f->status = trni_fail(error, TRN_EFORMAT, "index is %s; it takes uint32", trn_format_name(index->format));
    else if (rows < 16 || rows > 128 || rows % 16)
        f->status = trni_fail(error, TRN_EINVAL, "index has %lld rows, not a multiple of 16 up to 128", rows);
    else if (columns > 1 && rows != 128)
        f->status =
            trni_fail(error, TRN_EINVAL, "index has %lld rows and %lld columns; more than one column needs 128 rows",
                      rows, columns);
    else if (taken % 16 || rows * columns < taken)
        f->status =
            trni_fail(error, TRN_EINVAL, "dst takes %lld rows: not a multiple of 16, or more than the %lld of index",
                      taken, rows * columns);
    else if (src->rank == 4 && src->shape[1] != 1 && src->shape[2] != 1)
        f->status = trni_fail(error, TRN_EINVAL, "src has %lld by %lld inner axes; with an index one of them is 1",
                              (long long)src->shape[1], (long long)src->shape[2]);
    else if (last > 128)
        f->status = trni_fail(error, TRN_EINVAL, "src has a last axis of %lld; with an index it is at most 128", last);
    else if (trn_format_bytes(src->format) != 2)
        f->status = trni_fail(error, TRN_EFORMAT, "src is %s; with an index elements have 2 bytes",
                              trn_format_name(src->format));
}

/* `index`: opened where it is given. */
TRNI_FN void trni_dma_transpose_modes(trni_frame *f, const trn_dma_transpose_args *a, trni_view *index)
{
    const bool indexed = a->index.rank != 0;
    index->t.rank = 0;
    if (f->status) return;
    const bool made_before = !indexed && a->dge_mode == TRN_DGE_NONE; /* descriptors that the host has written */
    if (a->dge_mode != TRN_DGE_UNKNOWN && !made_before && a->dge_mode != (indexed ? TRN_DGE_SWDGE : TRN_DGE_HWDGE))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "dge_mode is %s; a transpose %s takes unknown and %s",
                              trni_dge_name(a->dge_mode), indexed ? "with an index" : "without an index",
                              indexed ? "swdge" : "hwdge, and none");
    else if (!indexed && a->oob_mode == TRN_OOB_SKIP)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "oob_mode is skip, but there is no index");
    else if (indexed)
        trni_dma_transpose_swdge(f, a, index);
    else if (a->dge_mode == TRN_DGE_HWDGE)
        trni_dma_transpose_hwdge(f, &a->src);
}

/* dst's last axis, element i, is row index.T[i] of src. */
TRNI_FN void trni_dma_gather_transpose(trni_frame *f, const trn_dma_transpose_args *a)
{
    const int last = a->dst.rank - 1;
    const int64_t taken = a->dst.shape[last];
    const trn_tensor transposed = trn_tensor_transposed(a->index); /* column by column */
    trni_dma_index index;
    (void)trni_view_known(&index.view, &transposed);
    trni_dma_flat_span(&index.span, &index.view, f->isa);
    index.rows = a->src.shape[0];
    for (int64_t i = 0; i < taken && a->oob_mode == TRN_OOB_ERROR; i++)
        if (trni_dma_row(&index, i) < 0) {
            f->status = trni_fail(f->how.error, TRN_EINVAL, "index[%lld, %lld] is %lld but src has %lld rows",
                                  (long long)(i % a->index.shape[0]), (long long)(i / a->index.shape[0]),
                                  (long long)trni_dma_number(&index, i), (long long)index.rows);
            return;
        }
    const trn_tensor src = trni_dma_permuted(&a->src);
    for (int64_t i = 0; i < taken && !f->status; i++) {
        const int64_t row = trni_dma_row(&index, i);
        if (row < 0) continue;
        const trn_tensor to = trn_tensor_slice(a->dst, last, i, 1), from = trn_tensor_slice(src, last, row, 1);
        trni_dma_convert(f, &to, &from);
    }
}

TRN_API trn_status trn_dma_transpose(const trn_dma_transpose_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view src, index;
    trni_dma_begin(&f, args, TRN_TRAINIUM2, "dma_transpose");
    trni_dma_modes(&f, args->dge_mode, args->oob_mode, "dma_transpose");
    trni_dma_priority(&f, args->priority);
    trni_frame_view(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT);
    trni_frame_view(&f, &src, &args->src, "src", TRNI_INPUT);
    trni_dma_transpose_views(&f, args);
    trni_dma_transpose_modes(&f, args, &index);
    trni_frame_apart(&f, &f.dst, &src);
    trni_frame_apart(&f, &f.dst, &index);
    if (f.status || f.dst.elements == 0) return f.status;
    if (args->index.rank) {
        trni_dma_gather_transpose(&f, args);
        return f.status;
    }
    const trn_tensor permuted = trni_dma_permuted(&args->src);
    trni_dma_convert(&f, &args->dst, &permuted);
    return f.status;
}

/* ---- dma_compute ---- */

enum { TRNI_DMA_SOURCES = 16 };

typedef struct trni_dma_sum {
    trni_span dst, src[TRNI_DMA_SOURCES];
    int count;
    trni_alu_kernel add;
    float nothing[TRNI_SPAN_CHUNK]; /* -0: what is added to it stays what it is */
} trni_dma_sum;

TRNI_FN void trni_dma_sum_work(const void *plan, int64_t zero, int64_t f, int64_t n)
{
    const trni_dma_sum *const my = (const trni_dma_sum *)plan;
    float sum[TRNI_SPAN_CHUNK], buffer[TRNI_SPAN_CHUNK];
    for (int s = 0; s < my->count; s++)
        trni_alu_run(my->add, sum, s ? sum : my->nothing, trni_span_read(&my->src[s], zero, f, n, buffer), (size_t)n);
    trni_span_write(&my->dst, zero, f, n, sum);
}

TRNI_FN void trni_dma_compute_modes(trni_frame *f, const trn_dma_compute_args *a)
{
    trn_error *const error = f->how.error;
    trni_dma_modes(f, TRN_DGE_UNKNOWN, a->oob_mode, "dma_compute");
    if (f->status) return;
    if (a->count < 1 || a->count > TRNI_DMA_SOURCES || !a->srcs)
        f->status = trni_fail(error, TRN_EINVAL, "count is %d and srcs is %s; dma_compute takes 1 to %d sources",
                              a->count, a->srcs ? "there" : "null", TRNI_DMA_SOURCES);
    else if (a->reduce_op != TRN_ALU_BYPASS && a->reduce_op != TRN_ALU_ADD)
        f->status = trni_fail(error, TRN_EINVAL, "reduce_op is %s; DMA engines only add", trn_alu_name(a->reduce_op));
    else if (a->index.rank && a->count != 2)
        f->status = trni_fail(error, TRN_EINVAL, "count is %d; with an index there are 2 sources", a->count);
    else if (!a->index.rank && a->scatter)
        f->status = trni_fail(error, TRN_EINVAL, "scatter is set, but there is no index");
    for (int i = 0; !f->status && a->scales && i < a->count; i++)
        if (a->scales[i] != 1.0f)
            f->status =
                trni_fail(error, TRN_EINVAL, "scales[%d] is %g; DMA engines scale by 1 only", i, (double)a->scales[i]);
}

enum { TRNI_DMA_WINDOW = 1 << 15 }; /* rows that are looked at together */

/* The first row from `from` on that the index names; the end of the rows when there is none. */
TRNI_FN int64_t trni_dma_row_from(const trni_dma_index *x, int64_t count, int64_t from)
{
    int64_t first = x->rows;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = trni_dma_row(x, i);
        if (row >= from && row < first) first = row;
    }
    return first;
}

/* Was the promise kept? Rows that are skipped count for nothing. */
TRNI_DRIVER trn_status trni_dma_check_unique(const trni_dma_index *x, int64_t count, trn_error *error)
{
    uint64_t seen[TRNI_DMA_WINDOW / 64];
    for (int64_t from = 0; (from = trni_dma_row_from(x, count, from)) < x->rows; from += TRNI_DMA_WINDOW) {
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = trni_dma_row(x, i), at = row - from;
            if (row < from || at >= TRNI_DMA_WINDOW) continue;
            if (seen[at / 64] >> at % 64 & 1)
                return trni_fail(error, TRN_EINVAL, "index[%lld] is %lld, as one before it; unique_indices is set",
                                 (long long)i, (long long)row);
            seen[at / 64] |= (uint64_t)1 << at % 64;
        }
    }
    return TRN_OK;
}

/* One of the two sources is dst, and the other is not. */
TRNI_FN trn_status trni_dma_modify(trni_frame *f, const trn_dma_compute_args *a, const trni_view src[2])
{
    trni_dma_plan plan;
    bool is_dst[2];
    for (int i = 0; i < 2; i++) is_dst[i] = trni_same_place(&f->dst, &src[i]) && trni_same_format(&f->dst.t, &src[i].t);
    const trni_view *const data = &src[is_dst[0] ? 1 : 0];
    if (!is_dst[0] && !is_dst[1])
        return trni_fail(f->how.error, TRN_EINVAL, "neither of the 2 sources is dst; with an index one of them is");
    trni_frame_apart(f, &f->dst, data);
    trni_dma_check_rows(f, data);
    if (f->status) return f->status;
    trni_dma_index_init(f, &plan.index, &a->index, "index", a->scatter ? data : &f->dst, a->scatter ? &f->dst : data,
                        a->oob_mode);
    trni_frame_apart(f, &f->dst, &plan.index.view);
    if (f->status || f->dst.elements == 0 || data->elements == 0) return f->status;
    if (a->unique_indices && a->scatter) f->status = trni_dma_check_unique(&plan.index, data->t.shape[0], f->how.error);
    if (f->status) return f->status;
    trni_dma_plan_init(&plan, f, data, true);
    plan.scatter = a->scatter;
    plan.adds = true;
    plan.add = trni_alu_kernel_of(TRN_ALU_ADD, f->isa);
    trni_dma_run(&plan, a->scatter ? plan.src.partitions : plan.dst.partitions);
    return TRN_OK;
}

TRN_API trn_status trn_dma_compute(const trn_dma_compute_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_dma_sum plan;
    trni_view src[TRNI_DMA_SOURCES];
    char name[TRNI_DMA_SOURCES][24]; /* gcc counts the digits of any int */
    trni_dma_begin(&f, args, TRN_TRAINIUM1, "dma_compute");
    trni_dma_compute_modes(&f, args);
    trni_frame_view(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT);
    for (int i = 0; !f.status && i < args->count; i++) {
        snprintf(name[i], sizeof name[i], "srcs[%d]", i);
        trni_frame_view(&f, &src[i], &args->srcs[i], name[i], TRNI_INPUT);
        if (args->index.rank) continue;
        trni_dma_check_elements(&f, &src[i]);
        trni_frame_beside(&f, &src[i]);
    }
    if (f.status) return f.status;
    if (args->index.rank) return trni_dma_modify(&f, args, src);
    if (f.dst.elements == 0) return TRN_OK;
    trni_dma_flat_span(&plan.dst, &f.dst, f.isa);
    trni_span_round(&plan.dst, &f.dst, &f.how, f.numerics.sr_bits);
    plan.dst.stream = false;
    for (int i = 0; i < args->count; i++) trni_dma_flat_span(&plan.src[i], &src[i], f.isa);
    for (int i = 0; i < TRNI_SPAN_CHUNK; i++) plan.nothing[i] = -0.0f;
    plan.count = args->count;
    plan.add = trni_alu_kernel_of(TRN_ALU_ADD, f.isa);
    trni_span_each(1, plan.dst.elements, trni_dma_sum_work, &plan);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_DMA_H */

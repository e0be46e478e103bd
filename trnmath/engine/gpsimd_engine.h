/* engine/gpsimd_engine.h - the instructions of GpSimd.
 * A part of trn_gpsimd_engine.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_GPSIMD_ENGINE_H
#define TRNI_ENGINE_GPSIMD_ENGINE_H

#include "alu.h"
#include "engine_state.h"
#include "gpsimd_custom.h"

/* ---- patterns ---- */

/* element (w, z, y, x) of partition p is offset + p channel_multiplier + w step_w + z step_z + y step_y + x step_x */
typedef struct trn_pattern {
    int rank; /* 0..4; 0 = one element */
    struct {
        int32_t step, num;
    } axis[4]; /* outermost first */
} trn_pattern;

/* ---- iota ---- */

typedef struct trn_iota_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, F]; F is the product of the pattern's sizes */
    trn_pattern pattern;
    int32_t offset, channel_multiplier;
} trn_iota_args;

/* The pattern's values, computed in 32-bit integers (that they wrap: assumed) and cast to dst. */
TRN_API trn_status trn_iota(const trn_iota_args *args);

/* ---- affine_select ---- */

typedef struct trn_affine_select_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, F] */
    trn_pattern pattern;
    int32_t channel_multiplier, offset;
    trn_tensor on_true_tile; /* [P, F] */
    float on_false_value;
    trn_alu cmp_op; /* equal (also what 0 means), not_equal, greater, greater_equal, less, less_equal */
} trn_affine_select_args;

/* on_true_tile where the pattern's value (as iota has it) compares true with 0, else on_false_value. Within one format
 * bits move. May work in place. */
TRN_API trn_status trn_affine_select(const trn_affine_select_args *args);

/* ---- gathers ---- */

typedef struct trn_nc_n_gather_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;     /* [P, F] */
    trn_tensor data;    /* [P, any width], dst's format */
    trn_tensor indices; /* [P, F], U32 */
} trn_nc_n_gather_args;

/* dst[p, f] = data[p, indices[p, f]], bit for bit. TRN_EINVAL names the first index that is out of bounds. */
TRN_API trn_status trn_nc_n_gather(const trn_nc_n_gather_args *args);

typedef struct trn_local_gather_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;            /* [P, num_valid_indices num_elem_per_idx] */
    trn_tensor src_buffer;     /* [P, any width], dst's format; P is a multiple of 16 */
    trn_tensor index;          /* [P, I], U16: elements of a partition */
    int num_elem_per_idx;      /* 1, 2, 4, 8, 16, 32; 0 = 1 */
    int64_t num_valid_indices; /* per processor; 0 = all 16 I */
} trn_local_gather_args;

/* Index i of a processor, i = 0 .. num_valid_indices - 1, down its 16 partitions and then the next column, picks
 * num_elem_per_idx elements of each of them, which follow each other in dst. An index counts elements, not runs of them
 * (documented by NKI's test of local_gather). Out of bounds is undefined on the chip; here it is TRN_EINVAL. */
TRN_API trn_status trn_local_gather(const trn_local_gather_args *args);

/* ---- tensor_partition_reduce ---- */

typedef struct trn_tensor_partition_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [1, F] */
    trn_tensor data; /* [P, F] */
    trn_alu op;      /* add, average, maximum, bitwise_or, bitwise_and */
} trn_tensor_partition_reduce_args;

/* dst[0, f] = data[0, f] op data[1, f] op ..., ascending (assumed), from the operator's identity on, each step rounded
 * to binary32. average: the sum, divided by P (assumed: one more rounding). Operators on bits take integers of one
 * width. */
TRN_API trn_status trn_tensor_partition_reduce(const trn_tensor_partition_reduce_args *args);

/* ---- nonzero_with_count ---- */

typedef struct trn_nonzero_with_count_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, T + 1], I32 */
    trn_tensor src; /* [P, T], F32 or I32 */
    int32_t index_offset;
    int32_t padding_val; /* as given; NKI's default is -1 */
} trn_nonzero_with_count_args;

/* Partitions 0, 16, 32, ...: where src is not zero (NaN is not), counted from index_offset on (wraps: assumed), then
 * padding_val, and last how many there are. The other partitions of dst stay as they are. From Trainium2 on. */
TRN_API trn_status trn_nonzero_with_count(const trn_nonzero_with_count_args *args);

/* ---- sequence_bounds ---- */

typedef struct trn_sequence_bounds_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;         /* [1, 2, n], F32 or I32 */
    trn_tensor segment_ids; /* [1, n], F32 or I32 */
} trn_sequence_bounds_args;

/* Runs of equal IDs: dst[0, 0, i] is where the run of element i begins, dst[0, 1, i] where it has ended (one past its
 * last). ID 0 is padding, with n and -1. TRN_EINVAL for an ID that is negative or not whole. */
TRN_API trn_status trn_sequence_bounds(const trn_sequence_bounds_args *args);

/* ---- topk ---- */

typedef struct trn_topk_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor val_dst; /* [P, K], BF16 */
    trn_tensor idx_dst; /* [P, K], U32 */
    trn_tensor src;     /* [P, X], BF16; P is a multiple of 16, X >= n / 16 */
    int64_t n;          /* elements of each snake */
} trn_topk_args;

/* Each 16 partitions are a snake: element i of it is column i / 16 of partition i % 16. The K largest of its first n
 * elements go to the first K places of the same snake in val_dst and idx_dst, ascending; all else there stays as it is
 * (that the results are a snake too: documented by the kernels of NKI's library, whose golden result also settles equal
 * values: lower indices are chosen, and read backwards they ascend). NaN counts as less than everything (assumed). */
TRN_API trn_status trn_topk(const trn_topk_args *args);

#if TRNI_BODIES

#include "alu_kernels.h"
#include "gpsimd_math.h"

enum { TRNI_GPSIMD_GROUP = 16 /* partitions of one processor */ };

TRNI_FN void trni_gpsimd_begin(trni_frame *f, const void *args, trn_generation since, const char *what)
{
    const trn_instruction how = trni_instruction_of(args);
    if (trni_frame_begin(f, &how, TRN_TRAINIUM2, since, what)) return;
    trni_frame_engine(f, TRN_ENGINE_GPSIMD, TRN_ENGINE_GPSIMD, what);
}

TRNI_FN trn_status trni_gpsimd_fail_format(trni_frame *f, const char *name, trn_format format, const char *takes)
{
    return f->status =
               trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; it takes %s", name, trn_format_name(format), takes);
}

/* One of two formats; TRN_FORMAT_UNSET: there is no second one. */
TRNI_FN void trni_gpsimd_format(trni_frame *f, const trni_view *v, trn_format one, trn_format two, const char *takes)
{
    if (!f->status && v->t.format != one && v->t.format != two) trni_gpsimd_fail_format(f, v->name, v->t.format, takes);
}

/* What is gathered keeps its bits, so that dst and source have one format. */
TRNI_FN void trni_gpsimd_moves(trni_frame *f, const trni_view *src)
{
    if (!f->status && !trni_same_format(&f->dst.t, &src->t))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "dst is %s and %s is %s; a gather does not cast",
                              f->dst.info.name, src->name, src->info.name);
}

/* How many elements a partition of the view has; 0 when the view or anything before it is wrong. */
TRNI_FN int64_t trni_gpsimd_width(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name, trni_use use)
{
    trni_frame_view(f, v, t, name, use);
    return f->status ? 0 : v->width;
}

/* ---- patterns ---- */

/* The same as whole loops of unsigned numbers, which wrap. */
typedef struct trni_affine {
    int64_t num[4];
    uint32_t step[4], offset, channel;
} trni_affine;

TRNI_INLINE void trni_affine_run_body(uint32_t *value, uint32_t first, uint32_t step, size_t n)
{
    for (size_t i = 0; i < n; i++) value[i] = first + (uint32_t)i * step;
}

TRNI_DISPATCH(trni_affine_run, (uint32_t * value, uint32_t first, uint32_t step, size_t n), (value, first, step, n))

TRNI_INLINE void trni_affine_float_body(float *x, const uint32_t *value, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(int32_t)value[i];
}

TRNI_DISPATCH(trni_affine_float, (float *x, const uint32_t *value, size_t n), (x, value, n))

/* dst's width against the pattern's, and what the pattern says. */
TRNI_FN void trni_affine_init(trni_affine *a, trni_frame *f, const trn_pattern *pattern, int32_t offset,
                              int32_t channel)
{
    int64_t elements = 1;
    a->offset = (uint32_t)offset;
    a->channel = (uint32_t)channel;
    if (!f->status && (pattern->rank < 0 || pattern->rank > 4))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "pattern.rank is %d, not 0 to 4", pattern->rank);
    if (f->status) return;
    for (int i = 0; i < 4; i++) {
        const int at = i - (4 - pattern->rank);
        a->num[i] = at < 0 ? 1 : pattern->axis[at].num;
        a->step[i] = at < 0 ? 0u : (uint32_t)pattern->axis[at].step;
        if (a->num[i] < 0 || (elements && a->num[i] > INT64_MAX / elements)) {
            f->status = trni_fail(f->how.error, TRN_EINVAL, "pattern.axis[%d].num is %lld", at, (long long)a->num[i]);
            return;
        }
        elements *= a->num[i];
    }
    if (elements != f->elements && f->partitions)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "pattern has %lld elements but a partition of dst has %lld",
                              (long long)elements, (long long)f->elements);
}

/* Elements [f, f + n) of partition p. */
TRNI_FN void trni_affine_values(const trni_affine *a, uint32_t *value, int64_t p, int64_t f, int64_t n, trn_isa isa)
{
    int64_t at[4], rest = f;
    for (int i = 3; i >= 0; i--) {
        at[i] = rest % a->num[i];
        rest /= a->num[i];
    }
    while (n > 0) {
        const int64_t take = trni_min64(a->num[3] - at[3], n);
        uint32_t first = a->offset + (uint32_t)p * a->channel;
        for (int i = 0; i < 4; i++) first += (uint32_t)at[i] * a->step[i];
        trni_affine_run_for(isa)(value, first, a->step[3], (size_t)take);
        value += take;
        n -= take;
        at[3] = 0;
        for (int i = 2; i >= 0 && ++at[i] == a->num[i]; i--) at[i] = 0;
    }
}

/* ---- iota ---- */

typedef struct trni_iota_plan {
    trni_affine affine;
    trni_span dst;
} trni_iota_plan;

/* 32-bit integers as they are, but below 0 an U32 stays at 0; all else through binary32. */
TRNI_FN void trni_iota_work(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_iota_plan *const my = (const trni_iota_plan *)plan;
    const trni_span *const dst = &my->dst;
    uint32_t value[TRNI_SPAN_CHUNK];
    float buffer[TRNI_SPAN_CHUNK];
    trni_affine_values(&my->affine, value, p, f, n, dst->isa);
    if (dst->format == TRN_U32)
        for (int64_t i = 0; i < n; i++) value[i] = value[i] >> 31 ? 0u : value[i];
    if (dst->format == TRN_U32 || dst->format == TRN_I32) {
        trni_span_put(dst, p, f, n, value);
        return;
    }
    float *const x = trni_span_buffer(dst, p, f, buffer);
    trni_affine_float_for(dst->isa)(x, value, (size_t)n);
    trni_span_write(dst, p, f, n, x);
}

TRN_API trn_status trn_iota(const trn_iota_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_iota_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "iota");
    trni_frame_dst(&f, &args->dst);
    trni_affine_init(&plan.affine, &f, &args->pattern, args->offset, args->channel_multiplier);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_output(&plan.dst, &f.dst, &f);
    trni_span_each(f.partitions, f.elements, trni_iota_work, &plan);
    return TRN_OK;
}

/* ---- affine_select ---- */

/* The sign of a value, -1, 0 or 1, picks a bit of `want`: 1, 2, 4. The bits may be those of floats. */
#define TRNI_AFFINE_PICK(bits)                                                                                         \
    typedef uint##bits##_t __attribute__((may_alias)) trni_any##bits;                                                  \
    TRNI_INLINE void trni_affine_pick##bits##_body(trni_any##bits *r, const trni_any##bits *a,                         \
                                                   const trni_any##bits *b, const uint32_t *value, unsigned want,      \
                                                   size_t n)                                                           \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const int32_t v = (int32_t)value[i];                                                                       \
            const uint##bits##_t keep = (uint##bits##_t)(0u - (want >> ((v > 0) + (v >= 0)) & 1u));                    \
            r[i] = (uint##bits##_t)((a[i] & keep) | (b[i] & (uint##bits##_t) ~keep));                                  \
        }                                                                                                              \
    }                                                                                                                  \
    TRNI_DISPATCH(trni_affine_pick##bits,                                                                              \
                  (trni_any##bits * r, const trni_any##bits *a, const trni_any##bits *b, const uint32_t *value,        \
                   unsigned want, size_t n),                                                                           \
                  (r, a, b, value, want, n))

TRNI_AFFINE_PICK(8)
TRNI_AFFINE_PICK(16)
TRNI_AFFINE_PICK(32)
#undef TRNI_AFFINE_PICK

typedef struct trni_affine_plan {
    trni_affine affine;
    trni_span dst, on_true;
    trni_constant on_false;
    unsigned want;
    bool copies; /* one format: bits move */
} trni_affine_plan;

TRNI_FN void trni_affine_move(const trni_affine_plan *my, const uint32_t *value, int64_t p, int64_t f, int64_t n)
{
    uint32_t a[TRNI_SPAN_CHUNK], b[TRNI_SPAN_CHUNK], r[TRNI_SPAN_CHUNK];
    const void *x = trni_span_bits(&my->on_true, p, f, n, a),
               *y = trni_constant_codes(&my->on_false, &my->dst, p, f, n, b);
    const trn_isa isa = my->dst.isa;
    if ((uintptr_t)x % my->dst.bytes) x = memcpy(a, x, (size_t)n * my->dst.bytes);
    switch (my->dst.bytes) {
    case 1:
        trni_affine_pick8_for(isa)((trni_any8 *)r, (const trni_any8 *)x, (const trni_any8 *)y, value, my->want,
                                   (size_t)n);
        break;
    case 2:
        trni_affine_pick16_for(isa)((trni_any16 *)r, (const trni_any16 *)x, (const trni_any16 *)y, value, my->want,
                                    (size_t)n);
        break;
    default: trni_affine_pick32_for(isa)(r, (const trni_any32 *)x, (const trni_any32 *)y, value, my->want, (size_t)n);
    }
    trni_span_put(&my->dst, p, f, n, r);
}

TRNI_FN void trni_affine_work(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_affine_plan *const my = (const trni_affine_plan *)plan;
    uint32_t value[TRNI_SPAN_CHUNK];
    float a[TRNI_SPAN_CHUNK], r[TRNI_SPAN_CHUNK];
    trni_affine_values(&my->affine, value, p, f, n, my->dst.isa);
    if (my->copies) {
        trni_affine_move(my, value, p, f, n);
        return;
    }
    const float *x = trni_span_read(&my->on_true, p, f, n, a);
    trni_affine_pick32_for(my->dst.isa)((trni_any32 *)r, (const trni_any32 *)x, (const trni_any32 *)my->on_false.value,
                                        value, my->want, (size_t)n);
    trni_span_write(&my->dst, p, f, n, r);
}

TRNI_FN unsigned trni_affine_want(trni_frame *f, trn_alu op)
{
    static const struct {
        trn_alu op;
        unsigned want;
    } table[] = {
        { TRN_ALU_BYPASS, 2 },     { TRN_ALU_EQUAL, 2 },         { TRN_ALU_NOT_EQUAL, 5 }, { TRN_ALU_LESS, 1 },
        { TRN_ALU_LESS_EQUAL, 3 }, { TRN_ALU_GREATER_EQUAL, 6 }, { TRN_ALU_GREATER, 4 },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op) return table[i].want;
    if (!f->status)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "cmp_op is %s, which does not compare", trn_alu_name(op));
    return 0;
}

TRN_API trn_status trn_affine_select(const trn_affine_select_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view on_true;
    trni_affine_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "affine_select");
    trni_frame_dst(&f, &args->dst);
    trni_affine_init(&plan.affine, &f, &args->pattern, args->offset, args->channel_multiplier);
    trni_frame_src(&f, &on_true, &args->on_true_tile, "on_true_tile");
    plan.want = trni_affine_want(&f, args->cmp_op);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_output(&plan.dst, &f.dst, &f);
    trni_span_init(&plan.on_true, &on_true, f.isa);
    trni_constant_init(&plan.on_false, &plan.dst, args->on_false_value);
    plan.copies = trni_same_format(&args->dst, &args->on_true_tile);
    trni_span_each(f.partitions, f.elements, trni_affine_work, &plan);
    return TRN_OK;
}

/* ---- gathers ---- */

/* n elements of partition p of src, from element f on, to `to`: codes one after the other. */
TRNI_FN void trni_gather_run(const trni_span *src, int64_t p, int64_t f, int64_t n, char *to)
{
    const void *at = trni_span_bits(src, p, f, n, to);
    if (at != to) memcpy(to, at, (size_t)n * src->bytes);
}

/* Element f of partition p. */
TRNI_FN uint32_t trni_gather_code(const trni_span *v, int64_t p, int64_t f)
{
    uint32_t code = 0;
    memcpy(&code, trni_span_run(v, p, f).at, v->bytes);
    return code;
}

typedef struct trni_gather_plan {
    trni_span dst, src, index;
    int64_t run;   /* elements per index */
    int64_t valid; /* indices per processor */
} trni_gather_plan;

/* Elements index[0 .. n - 1] of partition p of src: codes one after the other. */
TRNI_FN void trni_gather_pick(const trni_span *src, int64_t p, const uint32_t *index, int64_t n, void *codes)
{
    const trni_span_piece row = trni_span_run(src, p, 0);
    char *const to = (char *)codes;
#define TRNI_PICK(size)                                                                                                \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * size, row.at + index[i] * row.step, size)
    if (src->rank > 1)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * (int64_t)src->bytes, trni_span_run(src, p, index[i]).at, src->bytes);
    else if (src->bytes == 4)
        TRNI_PICK(4);
    else if (src->bytes == 2)
        TRNI_PICK(2);
    else
        TRNI_PICK(1);
#undef TRNI_PICK
}

TRNI_FN void trni_n_gather_work(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_gather_plan *const my = (const trni_gather_plan *)plan;
    uint32_t index[TRNI_SPAN_CHUNK], codes[TRNI_SPAN_CHUNK];
    trni_gather_run(&my->index, p, f, n, (char *)index);
    trni_gather_pick(&my->src, p, index, n, codes);
    trni_span_put(&my->dst, p, f, n, codes);
}

/* Before anything is written: does every index have its element? */
TRNI_FN void trni_n_gather_bounds(trni_frame *f, const trni_gather_plan *my)
{
    uint32_t buffer[TRNI_SPAN_CHUNK];
    for (int64_t p = 0; p < f->partitions; p++)
        for (int64_t at = 0, n; at < f->elements; at += n) {
            n = trni_min64(TRNI_SPAN_CHUNK, f->elements - at);
            const char *index = (const char *)trni_span_bits(&my->index, p, at, n, buffer);
            for (int64_t i = 0; i < n; i++) {
                uint32_t value;
                memcpy(&value, index + i * 4, sizeof value);
                if ((int64_t)value < my->src.elements) continue;
                f->status = trni_fail(f->how.error, TRN_EINVAL,
                                      "indices[%lld, %lld] is %u but a partition of data has %lld elements",
                                      (long long)p, (long long)(at + i), (unsigned)value, (long long)my->src.elements);
                return;
            }
        }
}

TRN_API trn_status trn_nc_n_gather(const trn_nc_n_gather_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view data, indices;
    trni_gather_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "nc_n_gather");
    trni_frame_dst(&f, &args->dst);
    const int64_t width = trni_gpsimd_width(&f, &data, &args->data, "data", TRNI_INPUT);
    trni_frame_sizes(&f, &data, f.partitions, width);
    trni_frame_tile(&f, &indices, &args->indices, "indices", TRNI_INPUT, f.partitions, f.elements);
    trni_gpsimd_format(&f, &indices, TRN_U32, TRN_FORMAT_UNSET, "uint32");
    trni_gpsimd_moves(&f, &data);
    trni_frame_apart(&f, &f.dst, &data);
    trni_frame_apart(&f, &f.dst, &indices);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.src, &data, f.isa);
    trni_span_init(&plan.index, &indices, f.isa);
    trni_n_gather_bounds(&f, &plan);
    if (f.status) return f.status;
    trni_span_each(f.partitions, f.elements, trni_n_gather_work, &plan);
    return TRN_OK;
}

enum { TRNI_LOCAL_GATHER_MOST = 4096 };

/* Index i of the processor whose first partition is p: down its 16 partitions, then the next column. */
TRNI_FN uint32_t trni_local_index(const trni_gather_plan *my, int64_t p, int64_t i)
{
    return trni_gather_code(&my->index, p + i % TRNI_GPSIMD_GROUP, i / TRNI_GPSIMD_GROUP);
}

TRNI_FN void trni_local_gather_work(const void *plan, int64_t first, int64_t partitions, void *room)
{
    (void)room;
    const trni_gather_plan *const my = (const trni_gather_plan *)plan;
    const int64_t most = TRNI_SPAN_CHUNK / my->run; /* indices whose elements fill a chunk */
    uint32_t index[TRNI_SPAN_CHUNK], codes[TRNI_SPAN_CHUNK];
    for (int64_t at = 0, n; at < my->valid; at += n) {
        n = trni_min64(most, my->valid - at);
        for (int64_t i = 0; i < n; i++) index[i] = trni_local_index(my, first, at + i);
        for (int64_t p = first; p < first + partitions; p++) {
            if (my->run == 1) trni_gather_pick(&my->src, p, index, n, codes);
            for (int64_t i = 0; i < n && my->run > 1; i++)
                trni_gather_run(&my->src, p, index[i], my->run, (char *)codes + i * my->run * (int64_t)my->src.bytes);
            trni_span_put(&my->dst, p, at * my->run, n * my->run, codes);
        }
    }
}

TRNI_FN void trni_local_gather_bounds(trni_frame *f, const trni_gather_plan *my)
{
    for (int64_t p = 0; p < f->partitions; p += TRNI_GPSIMD_GROUP)
        for (int64_t i = 0; i < my->valid; i++) {
            const uint32_t value = trni_local_index(my, p, i);
            if (value + my->run <= my->src.elements) continue;
            f->status = trni_fail(f->how.error, TRN_EINVAL,
                                  "index[%lld, %lld] is %u: %lld elements from there on pass the %lld of src_buffer",
                                  (long long)(p + i % TRNI_GPSIMD_GROUP), (long long)(i / TRNI_GPSIMD_GROUP),
                                  (unsigned)value, (long long)my->run, (long long)my->src.elements);
            return;
        }
}

/* How many elements per index, and how many indices. */
TRNI_FN void trni_local_gather_sizes(trni_frame *f, const trn_local_gather_args *args, trni_gather_plan *plan,
                                     int64_t width)
{
    const int64_t all = width * TRNI_GPSIMD_GROUP;
    plan->run = args->num_elem_per_idx ? args->num_elem_per_idx : 1;
    plan->valid = args->num_valid_indices ? args->num_valid_indices : all;
    if (f->status) return;
    if (args->src_buffer.shape[0] % TRNI_GPSIMD_GROUP)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "src_buffer has %lld partitions, not a multiple of %d",
                              (long long)args->src_buffer.shape[0], TRNI_GPSIMD_GROUP);
    else if (plan->run < 1 || plan->run > 32 || (plan->run & (plan->run - 1)))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "num_elem_per_idx is %lld, not 1, 2, 4, 8, 16 or 32",
                              (long long)plan->run);
    else if (plan->valid < 0 || plan->valid > all)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "num_valid_indices is %lld but 16 partitions of index have %lld",
                      (long long)plan->valid, (long long)all);
    else if (all > TRNI_LOCAL_GATHER_MOST && !f->how.unlimited)
        f->status =
            trni_fail(f->how.error, TRN_ELIMIT, "16 partitions of index have %lld elements; at most %d are legal",
                      (long long)all, TRNI_LOCAL_GATHER_MOST);
}

TRN_API trn_status trn_local_gather(const trn_local_gather_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view src, index;
    trni_gather_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "local_gather");
    trni_frame_view(&f, &src, &args->src_buffer, "src_buffer", TRNI_INPUT);
    const int64_t width = trni_gpsimd_width(&f, &index, &args->index, "index", TRNI_INPUT);
    trni_gpsimd_format(&f, &index, TRN_U16, TRN_FORMAT_UNSET, "uint16");
    trni_local_gather_sizes(&f, args, &plan, width);
    f.partitions = args->src_buffer.shape[0];
    trni_frame_sizes(&f, &index, f.partitions, width);
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, f.partitions, plan.valid * plan.run);
    trni_gpsimd_moves(&f, &src);
    trni_frame_apart(&f, &f.dst, &src);
    trni_frame_apart(&f, &f.dst, &index);
    if (f.status || f.partitions * plan.valid == 0) return f.status;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.src, &src, f.isa);
    trni_span_init(&plan.index, &index, f.isa);
    trni_local_gather_bounds(&f, &plan);
    if (f.status) return f.status;
    trni_partitions_each(f.partitions, plan.valid * plan.run, TRNI_GPSIMD_GROUP, trni_local_gather_work, &plan);
    return TRN_OK;
}

/* ---- tensor_partition_reduce ---- */

typedef struct trni_partition_reduce_plan {
    trni_span dst, data;
    trn_alu op;
    trni_alu_kernel kernel;    /* numbers; or */
    const trni_bits_row *bits; /* bits */
    uint32_t identity;
} trni_partition_reduce_plan;

TRNI_FN void trni_partition_reduce_bits(const trni_partition_reduce_plan *my, int64_t f, int64_t n)
{
    uint32_t sum[TRNI_SPAN_CHUNK], x[TRNI_SPAN_CHUNK];
    const size_t bytes = my->data.bytes;
    for (int64_t i = 0; i < n; i++) sum[i] = my->identity;
    for (int64_t p = 0; p < my->data.partitions; p++) {
        trni_gather_run(&my->data, p, f, n, (char *)x);
        trni_bits_run(my->bits, my->data.isa, bytes, sum, sum, x, (size_t)n);
    }
    trni_span_put(&my->dst, 0, f, n, sum);
}

TRNI_FN void trni_partition_reduce_work(const void *plan, int64_t zero, int64_t f, int64_t n)
{
    const trni_partition_reduce_plan *const my = (const trni_partition_reduce_plan *)plan;
    float sum[TRNI_SPAN_CHUNK], buffer[TRNI_SPAN_CHUNK];
    if (my->bits) {
        trni_partition_reduce_bits(my, f, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) sum[i] = trni_float(my->identity);
    for (int64_t p = 0; p < my->data.partitions; p++)
        trni_alu_run(my->kernel, sum, sum, trni_span_read(&my->data, p, f, n, buffer), (size_t)n);
    if (my->op == TRN_ALU_AVERAGE) {
        const float count = (float)my->data.partitions;
        for (int64_t i = 0; i < n; i++) sum[i] = trni_alu_number(sum[i] / count);
    }
    trni_span_write(&my->dst, zero, f, n, sum);
}

TRNI_FN void trni_partition_reduce_op(trni_frame *f, const trn_tensor_partition_reduce_args *args,
                                      trni_partition_reduce_plan *plan)
{
    const bool bits = args->op == TRN_ALU_BITWISE_OR || args->op == TRN_ALU_BITWISE_AND;
    if (f->status) return;
    if (args->op != TRN_ALU_ADD && args->op != TRN_ALU_AVERAGE && args->op != TRN_ALU_MAXIMUM && !bits) {
        f->status = trni_fail(f->how.error, TRN_EINVAL,
                              "op is %s; partitions reduce by add, average, maximum, bitwise_or and bitwise_and",
                              trn_alu_name(args->op));
        return;
    }
    const size_t bytes = trn_format_bytes(args->data.format);
    plan->op = args->op;
    plan->bits = bits ? trni_bits_kernel_of(args->op, bytes) : NULL;
    plan->kernel = trni_alu_kernel_of(args->op == TRN_ALU_MAXIMUM ? args->op : TRN_ALU_ADD, f->isa);
    plan->identity = trn_alu_info_of(args->op)->identity;
    if (!bits) return;
    const trn_tensor *const both[2] = { &args->data, &args->dst };
    for (int i = 0; i < 2; i++)
        if (!trn_format_is_integer(both[i]->format)) {
            trni_gpsimd_fail_format(f, i ? "dst" : "data", both[i]->format,
                                    "integers where the operator works on bits");
            return;
        }
    if (trn_format_bytes(args->dst.format) != bytes)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "dst is %s and data is %s; bits need one width",
                              trn_format_name(args->dst.format), trn_format_name(args->data.format));
}

TRN_API trn_status trn_tensor_partition_reduce(const trn_tensor_partition_reduce_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view data;
    trni_partition_reduce_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "tensor_partition_reduce");
    const int64_t elements = trni_gpsimd_width(&f, &data, &args->data, "data", TRNI_INPUT);
    const int64_t width = trni_gpsimd_width(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT); /* of no partitions, any */
    trni_frame_sizes(&f, &f.dst, 1, args->data.shape[0] ? elements : width);
    trni_partition_reduce_op(&f, args, &plan);
    trni_frame_apart(&f, &f.dst, &data);
    if (f.status || f.dst.elements == 0) return f.status;
    trni_span_output(&plan.dst, &f.dst, &f);
    trni_span_init(&plan.data, &data, f.isa);
    trni_span_each(1, plan.dst.elements, trni_partition_reduce_work, &plan);
    return TRN_OK;
}

/* ---- nonzero_with_count ---- */

TRNI_FN void trni_put_int(const trni_span *dst, int64_t p, int64_t f, uint32_t code)
{
    memcpy(trni_span_run(dst, p, f).at, &code, sizeof code);
}

TRNI_FN void trni_nonzero_row(const trn_nonzero_with_count_args *args, const trni_span *dst, const trni_span *src,
                              int64_t p)
{
    const uint32_t care = src->format == TRN_F32 ? ~TRNI_F32_SIGN : ~0u; /* -0 is 0 */
    int64_t found = 0;
    for (int64_t f = 0; f < src->elements; f++)
        if (trni_gather_code(src, p, f) & care)
            trni_put_int(dst, p, found++, (uint32_t)f + (uint32_t)args->index_offset);
    for (int64_t f = found; f < src->elements; f++) trni_put_int(dst, p, f, (uint32_t)args->padding_val);
    trni_put_int(dst, p, src->elements, (uint32_t)found);
}

TRN_API trn_status trn_nonzero_with_count(const trn_nonzero_with_count_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view source;
    trni_span dst, src;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM2, "nonzero_with_count");
    const int64_t width = trni_gpsimd_width(&f, &source, &args->src, "src", TRNI_INPUT);
    trni_gpsimd_format(&f, &source, TRN_F32, TRN_I32, "float32 and int32");
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, args->src.shape[0], width + 1);
    trni_gpsimd_format(&f, &f.dst, TRN_I32, TRN_FORMAT_UNSET, "int32");
    trni_frame_apart(&f, &f.dst, &source);
    if (f.status || args->src.shape[0] == 0) return f.status;
    trni_span_init(&dst, &f.dst, f.isa);
    trni_span_init(&src, &source, f.isa);
    for (int64_t p = 0; p < src.partitions; p += TRNI_GPSIMD_GROUP) trni_nonzero_row(args, &dst, &src, p);
    return TRN_OK;
}

/* ---- sequence_bounds ---- */

/* The ID of element i: a whole number that is not negative. */
TRNI_FN double trni_segment_id(const trni_span *id, int64_t i)
{
    const uint32_t code = trni_gather_code(id, 0, i);
    return id->format == TRN_I32 ? (double)(int32_t)code : (double)trni_float(code);
}

TRNI_FN void trni_bounds_put(const trni_span *dst, int64_t at, int64_t value)
{
    trni_put_int(dst, 0, at, dst->format == TRN_I32 ? (uint32_t)value : trni_bits((float)value));
}

TRNI_DRIVER void trni_segment_check(trni_frame *f, const trni_span *id)
{
    for (int64_t i = 0; i < id->elements && !f->status; i++) {
        const double x = trni_segment_id(id, i);
        if (!(x >= 0 && floor(x) == x)) /* an infinity is as whole as it is large */
            f->status = trni_fail(f->how.error, TRN_EINVAL, "segment_ids[%lld] is %g, not a whole number from 0 on",
                                  (long long)i, x);
    }
}

TRN_API trn_status trn_sequence_bounds(const trn_sequence_bounds_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view ids;
    trni_span dst, id;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "sequence_bounds");
    const int64_t n = trni_gpsimd_width(&f, &ids, &args->segment_ids, "segment_ids", TRNI_INPUT);
    trni_frame_sizes(&f, &ids, 1, n);
    trni_gpsimd_format(&f, &ids, TRN_F32, TRN_I32, "float32 and int32");
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, 1, 2 * n);
    trni_gpsimd_format(&f, &f.dst, TRN_F32, TRN_I32, "float32 and int32");
    trni_frame_apart(&f, &f.dst, &ids);
    if (f.status || f.dst.elements == 0) return f.status;
    trni_span_init(&dst, &f.dst, f.isa);
    trni_span_init(&id, &ids, f.isa);
    trni_segment_check(&f, &id);
    if (f.status) return f.status;
    for (int64_t i = 0, end; i < n; i = end) {
        const double own = trni_segment_id(&id, i);
        for (end = i + 1; end < n && trni_segment_id(&id, end) == own;) end++;
        for (int64_t j = i; j < end; j++) {
            trni_bounds_put(&dst, j, own == 0 ? n : i);
            trni_bounds_put(&dst, n + j, own == 0 ? -1 : end);
        }
    }
    return TRN_OK;
}

/* ---- topk ---- */

enum { TRNI_TOPK_MOST = 32768, TRNI_TOPK_SNAKE = 65536 };

typedef struct trni_topk_plan {
    trni_span values, indices, src;
    int64_t n, k;
} trni_topk_plan;

/* Element i of the snake whose first partition is p: down 16 partitions, then the next column. */
TRNI_FN char *trni_snake(const trni_span *v, int64_t p, int64_t i)
{
    return trni_span_run(v, p + i % TRNI_GPSIMD_GROUP, i / TRNI_GPSIMD_GROUP).at;
}

/* One number in which value and place are ordered as they are wanted: a larger value first, of equal ones the lower
 * index; +0 above -0, NaN below all. */
TRNI_FN uint32_t trni_topk_key(uint32_t code, uint32_t index)
{
    const uint32_t magnitude = code & 0x7fffu;
    const uint32_t order = magnitude > 0x7f80u ? 0u : code & 0x8000u ? 0x7fffu - magnitude : 0x8000u + magnitude;
    return order << 16 | (0xffffu - index);
}

/* A heap with its smallest key on top: the key that stands at `hole` sinks to its place. */
TRNI_FN void trni_topk_sink(uint32_t *heap, int64_t size, int64_t hole, uint32_t key)
{
    for (int64_t child; (child = 2 * hole + 1) < size; hole = child) {
        child += child + 1 < size && heap[child + 1] < heap[child];
        if (key <= heap[child]) break;
        heap[hole] = heap[child];
    }
    heap[hole] = key;
}

TRNI_FN void trni_topk_work(const void *plan, int64_t p, int64_t partitions, void *room)
{
    const trni_topk_plan *const my = (const trni_topk_plan *)plan;
    uint32_t *__restrict const heap = (uint32_t *)room; /* [k] */
    (void)partitions;
    for (int64_t i = 0; i < my->n; i++) {
        uint16_t code;
        memcpy(&code, trni_snake(&my->src, p, i), sizeof code);
        const uint32_t key = trni_topk_key(code, (uint32_t)i);
        if (i < my->k) heap[i] = key;
        if (i == my->k - 1)
            for (int64_t at = my->k / 2; at-- > 0;) trni_topk_sink(heap, my->k, at, heap[at]);
        if (i >= my->k && key > heap[0]) trni_topk_sink(heap, my->k, 0, key);
    }
    for (int64_t j = 0, size = my->k; size > 0; j++) { /* the smallest leaves first */
        const uint32_t index = 0xffffu - (heap[0] & 0xffffu);
        memcpy(trni_snake(&my->values, p, j), trni_snake(&my->src, p, index), sizeof(uint16_t));
        memcpy(trni_snake(&my->indices, p, j), &index, sizeof index);
        size--;
        if (size) trni_topk_sink(heap, size, 0, heap[size]);
    }
}

TRNI_FN void trni_topk_sizes(trni_frame *f, const trn_topk_args *args, int64_t k, int64_t x)
{
    trn_error *const error = f->how.error;
    const int64_t partitions = args->src.shape[0];
    if (f->status) return;
    if (partitions % TRNI_GPSIMD_GROUP)
        f->status = trni_fail(error, TRN_ESHAPE, "src has %lld partitions, not a multiple of %d", (long long)partitions,
                              TRNI_GPSIMD_GROUP);
    else if (args->n < 8 || args->n >= TRNI_TOPK_SNAKE)
        f->status = trni_fail(error, TRN_ELIMIT, "n is %lld, not 8 to %d", (long long)args->n, TRNI_TOPK_SNAKE - 1);
    else if (k < 1 || k >= TRNI_TOPK_MOST || k > args->n)
        f->status = trni_fail(error, TRN_ELIMIT, "val_dst has %lld elements per partition, not 1 to %lld", (long long)k,
                              (long long)trni_min64(args->n, TRNI_TOPK_MOST - 1));
    else if (x < trni_ceil_div(args->n, TRNI_GPSIMD_GROUP))
        f->status = trni_fail(error, TRN_ESHAPE, "src has %lld elements per partition; %lld need %lld in each of %d",
                              (long long)x, (long long)args->n, (long long)trni_ceil_div(args->n, TRNI_GPSIMD_GROUP),
                              TRNI_GPSIMD_GROUP);
}

TRN_API trn_status trn_topk(const trn_topk_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view src, values, indices;
    trni_topk_plan plan;
    trni_gpsimd_begin(&f, args, TRN_TRAINIUM1, "topk");
    const int64_t x = trni_gpsimd_width(&f, &src, &args->src, "src", TRNI_INPUT), partitions = args->src.shape[0];
    const int64_t k = trni_gpsimd_width(&f, &values, &args->val_dst, "val_dst", TRNI_OUTPUT);
    trni_gpsimd_format(&f, &src, TRN_BF16, TRN_FORMAT_UNSET, "bfloat16");
    trni_gpsimd_format(&f, &values, TRN_BF16, TRN_FORMAT_UNSET, "bfloat16");
    trni_frame_sizes(&f, &values, partitions, k);
    trni_frame_tile(&f, &indices, &args->idx_dst, "idx_dst", TRNI_OUTPUT, partitions, k);
    trni_gpsimd_format(&f, &indices, TRN_U32, TRN_FORMAT_UNSET, "uint32");
    if (!f.status && partitions == 0) return TRN_OK;
    trni_topk_sizes(&f, args, k, x);
    trni_frame_apart(&f, &values, &src);
    trni_frame_apart(&f, &indices, &src);
    trni_frame_apart(&f, &values, &indices);
    if (f.status) return f.status;
    trni_span_init(&plan.values, &values, f.isa);
    trni_span_init(&plan.indices, &indices, f.isa);
    trni_span_init(&plan.src, &src, f.isa);
    plan.n = args->n;
    plan.k = k;
    f.partitions = partitions;
    f.elements = args->n / TRNI_GPSIMD_GROUP;
    return trni_partitions_each_in(sizeof(uint32_t) * (size_t)k, &f, TRNI_GPSIMD_GROUP, trni_topk_work, &plan);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_GPSIMD_ENGINE_H */

/* engine/vector_search.h - the eight largest of a partition, where they are, others in their place.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         static float x[1 * 9] = { 3, 1, 4, 1, 5, 9, 2, 6, 5 }, top[8];
 *         static uint32_t where[8];
 *         trn_max8_args max = { .dst = trn_tensor_2d(TRN_F32, top, 1, 8), .src = trn_tensor_2d(TRN_F32, x, 1, 9) };
 *         trn_nc_find_index8_args find = { .dst = trn_tensor_2d(TRN_U32, where, 1, 8), .data = max.src,
 *                                          .vals = max.dst };
 *         if (trn_max8(&max) || trn_nc_find_index8(&find)) return 1;
 *         return top[0] == 9 && where[0] == 5 && where[2] == 4 && where[3] == 8 ? 0 : 1;   // 9 6 5 5 4 ...
 *     }
 *
 * DOES: max8, nc_find_index8, nc_match_replace8 on tiles of 8 to 16384 elements per partition, of any formats. Rounds
 *     of the three make an exact top-k, in descending order, lower positions first among equals.
 * DOES NOT: mask data.
 *
 * Values are compared as binary32 numbers (integers beyond 2^24 are rounded first, as everywhere in the engine):
 *     order     -infinity < ... < -0 < +0 < ... < +infinity, and NaN below all: it comes last, as 7fc00000
 *     equality  +0 and -0 are equal; NaN equals nothing, so it is never found
 *
 * Equal values among vals each take an element of their own: in nc_find_index8 the first of them takes the first
 * position, in nc_match_replace8 the last of them does. What is not found gets all ones, in dst_idx too. The elements
 * that nc_match_replace8 leaves are moved: bit for bit within one format, by the cast rule between two.
 *
 * KNOWN FROM: NKI, max8, nc_find_index8, nc_match_replace8 (documented: limits, duplicates, all ones in
 *     nc_find_index8); that Trainium1 does not compile dst_idx: measured by a third party; NaN, zeros,
 *     nc_match_replace8's limits and what it has for a missing value: assumed.
 */
#ifndef TRNI_ENGINE_VECTOR_SEARCH_H
#define TRNI_ENGINE_VECTOR_SEARCH_H

#include "alu.h"

typedef struct trn_max8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, 8] */
    trn_tensor src; /* [P, 8..16384] */
} trn_max8_args;

typedef struct trn_nc_find_index8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 8] U16 or U32 */
    trn_tensor data; /* [P, 8..16384] */
    trn_tensor vals; /* [P, 8] */
} trn_nc_find_index8_args;

typedef struct trn_nc_match_replace8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data; /* [P, 8..16384]; dst may be data */
    trn_tensor vals;      /* [P, 8] */
    float imm;            /* what replaces them */
    trn_tensor dst_idx;   /* optional [P, 8] U16 or U32; not on Trainium1 */
} trn_nc_match_replace8_args;

/* ---- max8 ---- */

/* TRN_ELIMIT: fewer than 8 elements per partition, or more than 16384 (2^31 - 1 with .unlimited); TRN_ESHAPE: dst is
 * not [P, 8]; TRN_EINVAL: overlap. */
TRN_API trn_status trn_max8(const trn_max8_args *args);

/* ---- nc_find_index8, nc_match_replace8 ---- */

/* dst[p, i] = the position of vals[p, i] in data[p]. Errors as of trn_max8, and TRN_EFORMAT: dst is not U16 or U32. */
TRN_API trn_status trn_nc_find_index8(const trn_nc_find_index8_args *args);

/* dst = data, but imm, cast to dst, in place of each of vals. Errors as of trn_nc_find_index8; TRN_EUNSUPPORTED:
 * dst_idx on Trainium1. */
TRN_API trn_status trn_nc_match_replace8(const trn_nc_match_replace8_args *args);

#if TRNI_BODIES

#include "vector_transpose.h"

enum { TRNI_TOP = 8, TRNI_SEARCH_MAX = 16384 };

/* ---- kernels: sixteen partitions at once, without branches ---- */

/* Integers in the order of the numbers. */
TRNI_INLINE int32_t trni_order_key(uint32_t u)
{
    const int32_t s = (int32_t)u, key = s ^ (int32_t)((uint32_t)(s >> 31) >> 1);
    return trni_is_nan_bits(u) ? INT32_MIN : key;
}

TRNI_FN float trni_order_value(int32_t key)
{
    const uint32_t u = (uint32_t)key ^ ((uint32_t)(key >> 31) >> 1);
    return trni_float(key == INT32_MIN ? TRNI_F32_NAN : u);
}

/* Every element goes down the ladder of the best, and what it pushes out goes on. The steps are written out inside the
 * loop over lanes: what goes down stays in a register (gcc: two to five times the speed). */
TRNI_INLINE void trni_max8_body(int32_t (*best)[TRNI_TRANSPOSED_LANES], const void *tile, size_t n)
{
    const trni_any32 *__restrict x = (const trni_any32 *)tile;
    int32_t m[TRNI_TOP][TRNI_TRANSPOSED_LANES];
    memcpy(m, best, sizeof m);
    for (size_t i = 0; i < n; i++, x += TRNI_TRANSPOSED_LANES)
        for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++) {
            int32_t t = trni_order_key(x[lane]), a;
#define TRNI_STEP(j) a = m[j][lane], m[j][lane] = a > t ? a : t, t = a > t ? t : a
            TRNI_STEP(0);
            TRNI_STEP(1);
            TRNI_STEP(2);
            TRNI_STEP(3);
            TRNI_STEP(4);
            TRNI_STEP(5);
            TRNI_STEP(6);
            TRNI_STEP(7);
#undef TRNI_STEP
        }
    memcpy(best, m, sizeof m);
}

TRNI_DISPATCH(trni_max8, (int32_t(*best)[TRNI_TRANSPOSED_LANES], const void *tile, size_t n), (best, tile, n))

/* Equal numbers have equal words. TRNI_MATCH_NAN is no word of the data, TRNI_MATCH_TAKEN none of the values. */
#define TRNI_MATCH_NAN 0xffffffffu

#define TRNI_MATCH_TAKEN TRNI_F32_NAN

TRNI_INLINE uint32_t trni_match_word(uint32_t u, uint32_t nan)
{
    const uint32_t number = u == TRNI_F32_SIGN ? 0 : u;
    return trni_is_nan_bits(u) ? nan : number;
}

/* vals that have no place yet, in the order in which they choose; where[j] = the element that vals[j] took. */
TRNI_INLINE void trni_match8_body(uint32_t (*where)[TRNI_TRANSPOSED_LANES], uint32_t (*vals)[TRNI_TRANSPOSED_LANES],
                                  const void *tile, uint32_t f, size_t n)
{
    const trni_any32 *__restrict x = (const trni_any32 *)tile;
    uint32_t w[TRNI_TOP][TRNI_TRANSPOSED_LANES], v[TRNI_TOP][TRNI_TRANSPOSED_LANES];
    memcpy(w, where, sizeof w);
    memcpy(v, vals, sizeof v);
    for (size_t i = 0; i < n; i++, f++, x += TRNI_TRANSPOSED_LANES)
        for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++) {
            uint32_t t = trni_match_word(x[lane], TRNI_MATCH_TAKEN), hit;
#define TRNI_STEP(j)                                                                                                   \
    hit = v[j][lane] == t ? 0xffffffffu : 0, w[j][lane] = (w[j][lane] & ~hit) | (f & hit), v[j][lane] |= hit,          \
    t = (t & ~hit) | (TRNI_MATCH_TAKEN & hit)
            TRNI_STEP(0);
            TRNI_STEP(1);
            TRNI_STEP(2);
            TRNI_STEP(3);
            TRNI_STEP(4);
            TRNI_STEP(5);
            TRNI_STEP(6);
            TRNI_STEP(7);
#undef TRNI_STEP
        }
    memcpy(where, w, sizeof w);
    memcpy(vals, v, sizeof v);
}

TRNI_DISPATCH(trni_match8,
              (uint32_t(*where)[TRNI_TRANSPOSED_LANES], uint32_t (*vals)[TRNI_TRANSPOSED_LANES], const void *tile,
               uint32_t f, size_t n),
              (where, vals, tile, f, n))

/* ---- the checks that all three make ---- */

TRNI_FN trn_status trni_search_begin(trni_frame *f, const void *args, trni_view *v, const trn_tensor *data,
                                     const char *name, const char *what)
{
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, what);
    (void)trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, what);
    trni_frame_view(f, v, data, name, TRNI_INPUT);
    if (f->status) return f->status;
    f->partitions = data->shape[0];
    f->elements = trni_partition_elements(v, TRNI_TOP);
    const int most = f->how.unlimited ? INT32_MAX : (int)TRNI_SEARCH_MAX;
    if (f->elements < TRNI_TOP || f->elements > most)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "%s has %lld elements per partition; %s takes %d to %d", name,
                              (long long)f->elements, what, (int)TRNI_TOP, most);
    return f->status;
}

/* [P, 8] of indices. */
TRNI_FN void trni_search_indices(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name)
{
    trni_frame_tile(f, v, t, name, TRNI_OUTPUT, f->partitions, TRNI_TOP);
    if (f->status) return;
    if (t->format != TRN_U16 && t->format != TRN_U32)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; indices are uint16 or uint32", name, v->info.name);
    else if (t->format == TRN_U16 && f->elements > UINT16_MAX)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "%s is uint16, and there are %lld elements per partition", name,
                              (long long)f->elements);
}

/* ---- max8 ---- */

typedef struct trni_search_plan {
    trni_span dst, data, vals, index;
    float imm;
    bool descending, replaces, indexes, same;
} trni_search_plan;

TRNI_FN void trni_max8_work(const void *plan, int64_t p, int64_t lanes, void *room)
{
    const trni_search_plan *s = (const trni_search_plan *)plan;
    trni_transposed *const t = (trni_transposed *)room;
    int32_t best[TRNI_TOP][TRNI_TRANSPOSED_LANES];
    for (int j = 0; j < (int)TRNI_TOP * TRNI_TRANSPOSED_LANES; j++)
        best[j / TRNI_TRANSPOSED_LANES][j % TRNI_TRANSPOSED_LANES] = INT32_MIN;
    for (int64_t f = 0; f < s->data.elements; f += TRNI_TRANSPOSED_CHUNK) {
        const int64_t n = trni_min64(TRNI_TRANSPOSED_CHUNK, s->data.elements - f);
        trni_transposed_read(&s->data, p, lanes, f, n, t);
        trni_max8_for(s->data.isa)(best, t->tile, (size_t)n);
    }
    for (int lane = 0; lane < lanes; lane++) {
        float top[TRNI_TOP];
        for (int j = 0; j < TRNI_TOP; j++) top[j] = trni_order_value(best[j][lane]);
        trni_span_write(&s->dst, p + lane, 0, TRNI_TOP, top);
    }
}

TRN_API trn_status trn_max8(const trn_max8_args *args)
{
    trni_frame f;
    trni_view src;
    trni_search_plan plan;
    TRNI_ENTER(args);
    if (trni_search_begin(&f, args, &src, &args->src, "src", "max8")) return f.status;
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, f.partitions, TRNI_TOP);
    trni_frame_apart(&f, &f.dst, &src);
    if (f.status || f.partitions == 0) return f.status;
    trni_span_init(&plan.data, &src, f.isa);
    trni_span_output(&plan.dst, &f.dst, &f);
    return trni_partitions_each_in(sizeof(trni_transposed), &f, TRNI_TRANSPOSED_LANES, trni_max8_work, &plan);
}

/* ---- nc_find_index8, nc_match_replace8 ---- */

/* Where the eight values of each lane are, all ones for what is not there. */
TRNI_FN void trni_match_find(const trni_search_plan *s, int64_t p, int64_t lanes,
                             uint32_t (*where)[TRNI_TRANSPOSED_LANES], trni_transposed *t)
{
    uint32_t vals[TRNI_TOP][TRNI_TRANSPOSED_LANES], found[TRNI_TOP][TRNI_TRANSPOSED_LANES];
    trni_transposed_read(&s->vals, p, lanes, 0, TRNI_TOP, t);
    for (int j = 0; j < TRNI_TOP; j++)
        for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++) {
            const int slot = s->descending ? TRNI_TOP - 1 - j : j;
            vals[j][lane] = trni_match_word(trni_bits(t->tile[slot * TRNI_TRANSPOSED_LANES + lane]), TRNI_MATCH_NAN);
        }
    memset(found, 0xff, sizeof found);
    for (int64_t f = 0; f < s->data.elements; f += TRNI_TRANSPOSED_CHUNK) {
        const int64_t n = trni_min64(TRNI_TRANSPOSED_CHUNK, s->data.elements - f);
        trni_transposed_read(&s->data, p, lanes, f, n, t);
        trni_match8_for(s->data.isa)(found, vals, t->tile, (uint32_t)f, (size_t)n);
    }
    for (int j = 0; j < TRNI_TOP; j++) memcpy(where[s->descending ? TRNI_TOP - 1 - j : j], found[j], sizeof found[j]);
}

/* dst's partition as data's, as a move. */
TRNI_FN void trni_match_copy(const trni_search_plan *s, int64_t p)
{
    float buffer[TRNI_SPAN_CHUNK];
    for (int64_t f = 0; f < s->data.elements; f += TRNI_SPAN_CHUNK) {
        const int64_t n = trni_min64(TRNI_SPAN_CHUNK, s->data.elements - f);
        if (s->same)
            trni_span_put(&s->dst, p, f, n, trni_span_bits(&s->data, p, f, n, buffer));
        else
            trni_span_write(&s->dst, p, f, n, trni_span_read(&s->data, p, f, n, buffer));
    }
}

TRNI_FN void trni_match_put_indices(const trni_search_plan *s, int64_t p, int lane,
                                    uint32_t (*where)[TRNI_TRANSPOSED_LANES])
{
    uint32_t wide[TRNI_TOP];
    uint16_t narrow[TRNI_TOP];
    for (int j = 0; j < TRNI_TOP; j++) {
        wide[j] = where[j][lane];
        narrow[j] = (uint16_t)wide[j];
    }
    if (s->index.bytes == sizeof narrow[0])
        trni_span_put(&s->index, p, 0, TRNI_TOP, narrow);
    else
        trni_span_put(&s->index, p, 0, TRNI_TOP, wide);
}

TRNI_FN void trni_match_work(const void *plan, int64_t p, int64_t lanes, void *room)
{
    const trni_search_plan *s = (const trni_search_plan *)plan;
    uint32_t where[TRNI_TOP][TRNI_TRANSPOSED_LANES];
    trni_match_find(s, p, lanes, where, (trni_transposed *)room);
    for (int lane = 0; lane < lanes; lane++) {
        if (s->indexes) trni_match_put_indices(s, p + lane, lane, where);
        if (!s->replaces) continue;
        trni_match_copy(s, p + lane);
        for (int j = 0; j < TRNI_TOP; j++)
            if (where[j][lane] != UINT32_MAX) trni_span_write(&s->dst, p + lane, where[j][lane], 1, &s->imm);
    }
}

TRN_API trn_status trn_nc_find_index8(const trn_nc_find_index8_args *args)
{
    trni_frame f;
    trni_view data, vals;
    trni_search_plan plan;
    TRNI_ENTER(args);
    if (trni_search_begin(&f, args, &data, &args->data, "data", "nc_find_index8")) return f.status;
    trni_frame_tile(&f, &vals, &args->vals, "vals", TRNI_INPUT, f.partitions, TRNI_TOP);
    trni_search_indices(&f, &f.dst, &args->dst, "dst");
    trni_frame_apart(&f, &f.dst, &data);
    trni_frame_apart(&f, &f.dst, &vals);
    if (f.status || f.partitions == 0) return f.status;
    plan.descending = plan.replaces = false;
    plan.indexes = true;
    trni_span_init(&plan.data, &data, f.isa);
    trni_span_init(&plan.vals, &vals, f.isa);
    trni_span_init(&plan.index, &f.dst, f.isa);
    return trni_partitions_each_in(sizeof(trni_transposed), &f, TRNI_TRANSPOSED_LANES, trni_match_work, &plan);
}

/* The operands of nc_match_replace8 but dst, which the frame has, opened. */
typedef struct trni_match_views {
    trni_view data, vals, index;
} trni_match_views;

TRNI_DRIVER trn_status trni_match_replace_check(trni_frame *f, const trn_nc_match_replace8_args *args,
                                                trni_match_views *v)
{
    const bool indexes = args->dst_idx.rank != 0;
    if (trni_search_begin(f, args, &v->data, &args->data, "data", "nc_match_replace8")) return f->status;
    if (indexes && f->core->generation == TRN_TRAINIUM1)
        return f->status =
                   trni_fail(args->error, TRN_EUNSUPPORTED, "dst_idx of nc_match_replace8 is not available on %s",
                             trn_generation_name(TRN_TRAINIUM1));
    trni_frame_tile(f, &v->vals, &args->vals, "vals", TRNI_INPUT, f->partitions, TRNI_TOP);
    trni_frame_dst(f, &args->dst);
    if (!f->status) trni_frame_format(f, &v->data); /* dst's may have selected another generation */
    trni_frame_fits(f, &v->data);
    trni_frame_apart(f, &f->dst, &v->vals);
    if (!indexes || f->status) return f->status;
    trni_search_indices(f, &v->index, &args->dst_idx, "dst_idx");
    trni_frame_apart(f, &v->index, &v->data);
    trni_frame_apart(f, &v->index, &v->vals);
    trni_frame_apart(f, &v->index, &f->dst);
    return f->status;
}

TRN_API trn_status trn_nc_match_replace8(const trn_nc_match_replace8_args *args)
{
    trni_frame f;
    trni_match_views v;
    trni_search_plan plan;
    TRNI_ENTER(args);
    if (trni_match_replace_check(&f, args, &v) || f.partitions == 0) return f.status;
    plan.descending = plan.replaces = true;
    plan.indexes = args->dst_idx.rank != 0;
    plan.imm = args->imm;
    plan.same = trni_same_format(&args->dst, &args->data);
    trni_span_init(&plan.data, &v.data, f.isa);
    trni_span_init(&plan.vals, &v.vals, f.isa);
    trni_span_output(&plan.dst, &f.dst, &f);
    if (plan.indexes) trni_span_init(&plan.index, &v.index, f.isa);
    return trni_partitions_each_in(sizeof(trni_transposed), &f, TRNI_TRANSPOSED_LANES, trni_match_work, &plan);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_SEARCH_H */

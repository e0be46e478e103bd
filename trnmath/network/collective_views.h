/* network/collective_views.h - the views of a collective: what each must hold, and their codes as they travel.
 * Behind trn_collective.h. SPDX-License-Identifier: MIT
 *
 * DOES: checks sizes, formats and overlaps of all views before anything is written; gives every rank's buffer as a
 *     packed run of wire codes: the caller's own memory where it is that already, else a copy, converted with one
 *     rounding.
 * DOES NOT: reduce or move anything between ranks.
 *
 * KNOWN FROM: the shapes of nccom-test and NCCL; the ceil split of DTensor for what does not divide.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_VIEWS_H
#define TRNI_NETWORK_COLLECTIVE_VIEWS_H

#include "collective_time.h"
#include "../data/convert.h"

typedef struct trni_views {
    const trn_collective_args *a;
    int ranks, groups;
    trn_format wire;
    int64_t elements; /* of the whole buffer of a rank */
    bool idle;        /* others are away, and nothing is to be sent or received here */
    trn_isa isa;
    const uint8_t *away; /* [groups * ranks] ranks whose views another process has; NULL = none */
    char **in, **out;    /* [groups * ranks] packed codes; NULL where a rank has none */
    char *memory;        /* what was allocated for them */
} trni_views;

/* Elements that rank r's source, or destination, must have; -1: it is not looked at. */
TRNI_FN int64_t trni_view_elements(const trni_views *v, int rank, bool output)
{
    const trn_collective_args *a = v->a;
    int64_t first, count, n = 0;
    trn_collective_chunk(v->elements, a->granule, v->ranks, rank, &first, &count);
    switch (a->op) {
    case TRN_ALL_GATHER: return output ? v->elements : count;
    case TRN_REDUCE_SCATTER: return output ? count : v->elements;
    case TRN_BROADCAST: return output || rank == a->root ? v->elements : -1;
    case TRN_SEND_RECV:
    case TRN_PERMUTE: return (output ? trni_source_of(a, rank) : trni_target_of(a, rank)) >= 0 ? v->elements : -1;
    case TRN_ALL_TO_ALL:
        for (int r = 0; a->counts && r < v->ranks; r++)
            n += a->counts[output ? (int64_t)r * v->ranks + rank : (int64_t)rank * v->ranks + r];
        return a->counts ? n : output ? count * v->ranks : v->elements;
    default: return v->elements;
    }
}

TRNI_FN int64_t trni_view_index(const trni_views *v, int group, int rank) { return (int64_t)group * v->ranks + rank; }

/* The same of view i; -1 also where it is away. */
TRNI_FN int64_t trni_view_size(const trni_views *v, int64_t i, bool output)
{
    return v->away && v->away[i] ? -1 : trni_view_elements(v, (int)(i % v->ranks), output);
}

/* The first view that is here and has to have all elements of the buffer; NULL: none is. */
TRNI_FN const trn_tensor *trni_views_whole(const trni_views *v, bool output)
{
    for (int64_t i = 0; i < (int64_t)v->ranks * v->groups; i++)
        if (trni_view_size(v, i, output) >= 0) return output ? &v->a->dst[i] : &v->a->src[i];
    return NULL;
}

/* Without counts, every rank of an all-to-all receives as many shares as there are ranks, the largest one of each. */
TRNI_DRIVER trn_status trni_views_check_shares(const trni_views *v)
{
    const trn_collective_args *a = v->a;
    int64_t first, count, all;
    trn_collective_chunk(v->elements, a->granule, v->ranks, 0, &first, &count);
    if (a->op != TRN_ALL_TO_ALL || a->counts || trni_multiply(count, v->ranks, &all)) return TRN_OK;
    return trni_fail(a->error, TRN_ESHAPE, "granule = %lld: %d shares of %lld elements are more than 2^%d",
                     (long long)a->granule, v->ranks, (long long)count, TRNI_ADDRESS_BITS);
}

/* Elements of the buffer, and the format of what travels. */
TRNI_FN trn_status trni_views_measure(trni_views *v)
{
    const trn_collective_args *a = v->a;
    if (!a->src || !a->dst)
        return trni_fail(a->error, TRN_EINVAL, "%s is null; a run needs a view for each rank", a->src ? "dst" : "src");
    const trn_tensor *src = trni_views_whole(v, false), *dst = trni_views_whole(v, true);
    const trn_tensor *whole = a->op == TRN_ALL_GATHER || !src ? dst : src;
    v->idle = !whole && v->away;
    v->wire = a->wire ? a->wire : TRN_F32;
    if (v->idle) return TRN_OK;
    if (!whole)
        return trni_fail(a->error, TRN_EINVAL, "no rank of this %s has anything to send or to receive here",
                         trn_collective_name(a->op));
    const trn_status status =
        trn_tensor_check(whole, whole == dst ? "the first dst" : "the first src", TRNI_INPUT, 0, a->error);
    if (status != TRN_OK) return status;
    v->elements = trn_tensor_elements(*whole);
    v->wire = a->wire ? a->wire : src ? src->format : dst->format;
    if (!trni_format_valid(v->wire) || v->wire == TRN_CFP8)
        return trni_fail(a->error, TRN_EFORMAT, "wire = %s cannot travel: a plain format is needed",
                         trn_format_name(v->wire));
    if (a->accumulate && (!trni_format_valid(a->accumulate) || a->accumulate == TRN_CFP8))
        return trni_fail(a->error, TRN_EFORMAT, "accumulate = %s cannot hold sums: a plain format is needed",
                         trn_format_name(a->accumulate));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_view_check(const trni_views *v, int group, int rank, bool output)
{
    char name[48];
    const int64_t i = trni_view_index(v, group, rank), expected = trni_view_size(v, i, output);
    const trn_tensor *view = output ? &v->a->dst[i] : &v->a->src[i];
    if (expected < 0) return TRN_OK;
    snprintf(name, sizeof name, "%s[%lld]", output ? "dst" : "src", (long long)i);
    const trn_status status = trn_tensor_check(view, name, output ? TRNI_OUTPUT : TRNI_INPUT, 0, v->a->error);
    if (status != TRN_OK) return status;
    if (trn_tensor_elements(*view) == expected) return TRN_OK;
    return trni_fail(v->a->error, TRN_ESHAPE, "%s has %lld elements, but rank %d of %d of this %s has %lld", name,
                     (long long)trn_tensor_elements(*view), rank, v->ranks, trn_collective_name(v->a->op),
                     (long long)expected);
}

/* ---- overlaps ---- */

/* The bytes between a view's first and last element. */
typedef struct trni_footprint {
    uintptr_t first, end;
    int64_t index;
    bool output;
} trni_footprint;

TRNI_FN int trni_footprint_order(const void *a, const void *b)
{
    const uintptr_t x = ((const trni_footprint *)a)->first, y = ((const trni_footprint *)b)->first;
    return x < y ? -1 : x > y;
}

TRNI_FN bool trni_pieces_meet(const trni_views *v, const trni_footprint *x, const trni_footprint *y)
{
    trni_view a, b;
    if (!x->output && !y->output) return false;
    if (!trni_view_known(&a, x->output ? &v->a->dst[x->index] : &v->a->src[x->index])) return false;
    if (!trni_view_known(&b, y->output ? &v->a->dst[y->index] : &v->a->src[y->index])) return false;
    if (x->index == y->index && x->output != y->output && trni_same_place(&a, &b)) return false; /* in place */
    return trni_views_overlap(&a, &b);
}

TRNI_FN trn_status trni_views_apart(const trni_views *v)
{
    const int64_t views = 2 * (int64_t)v->ranks * v->groups;
    trni_footprint *piece = (trni_footprint *)malloc(sizeof(trni_footprint) * (size_t)views);
    if (!piece)
        return trni_fail(v->a->error, TRN_ENOSPC, "could not allocate the extents of %lld views", (long long)views);
    int64_t pieces = 0;
    for (int64_t i = 0; i < views; i++) {
        const bool output = i % 2 != 0;
        const trn_tensor *t = output ? &v->a->dst[i / 2] : &v->a->src[i / 2];
        size_t bytes;
        if (trni_view_size(v, i / 2, output) < 1 || !trni_extent(t, &bytes) || !bytes) continue;
        const trni_footprint p = { (uintptr_t)t->data, (uintptr_t)t->data + bytes, i / 2, output };
        piece[pieces++] = p;
    }
    qsort(piece, (size_t)pieces, sizeof *piece, trni_footprint_order);
    int64_t a = -1, b = -1;
    for (int64_t i = 0; i < pieces && a < 0; i++)
        for (int64_t j = i + 1; j < pieces && piece[j].first < piece[i].end && a < 0; j++)
            if (trni_pieces_meet(v, &piece[i], &piece[j])) {
                a = i;
                b = j;
            }
    trn_status status = TRN_OK;
    if (a >= 0)
        status = trni_fail(v->a->error, TRN_EINVAL,
                           "%s[%lld] overlaps %s[%lld]; only a rank's own dst may lie where its src does, in place",
                           piece[a].output ? "dst" : "src", (long long)piece[a].index, piece[b].output ? "dst" : "src",
                           (long long)piece[b].index);
    free(piece);
    return status;
}

/* ---- all checks ---- */

TRNI_DRIVER trn_status trni_views_check_pairs(const trni_views *v)
{
    const trn_collective_args *a = v->a;
    if (a->op != TRN_PERMUTE || !a->targets) return TRN_OK;
    for (int i = 0; i < v->ranks; i++)
        for (int j = 0; j < i; j++)
            if (a->targets[i] >= 0 && a->targets[i] == a->targets[j])
                return trni_fail(a->error, TRN_EINVAL, "ranks %d and %d both send to rank %d", j, i, a->targets[i]);
    return TRN_OK;
}

/* Everything that can be wrong with the views and the rounding; the group must have been checked. v->away is kept. */
TRNI_DRIVER trn_status trni_views_check(trni_views *v, const trn_collective_args *a)
{
    const uint8_t *away = v->away;
    memset(v, 0, sizeof *v);
    v->away = away;
    v->a = a;
    v->ranks = trn_collective_ranks(a);
    v->groups = trni_group_count(a);
    v->isa = a->isa;
    if (a->granule < 0) return trni_fail(a->error, TRN_EINVAL, "granule = %lld is negative", (long long)a->granule);
    trn_status status = trni_check_overflow(a->overflow, a->error);
    if (status == TRN_OK) status = trni_views_measure(v);
    if (status == TRN_OK) status = trni_views_check_shares(v);
    if (status == TRN_OK) status = trni_views_check_pairs(v);
    if (status == TRN_OK) status = trni_check_rounding(a->rounding, a->sr_bits, a->error);
    if (status == TRN_OK) status = trni_isa_resolve(&v->isa, a->error);
    for (int64_t i = 0; status == TRN_OK && i < 2 * (int64_t)v->ranks * v->groups; i++)
        status = trni_view_check(v, (int)(i / 2 / v->ranks), (int)(i / 2 % v->ranks), i % 2 != 0);
    return status == TRN_OK ? trni_views_apart(v) : status;
}

/* ---- codes ---- */

/* Packed rows of wire codes are used where they lie. */
TRNI_FN bool trni_view_is_ready(const trni_views *v, const trn_tensor *t)
{
    const int64_t shape[1] = { trn_tensor_elements(*t) };
    const trn_tensor flat = trn_tensor_nd(t->format, t->data, 1, shape);
    trn_tensor run = *t;
    trni_view a, b;
    if (t->format != v->wire) return false;
    while (run.rank > 1) {
        run = trn_tensor_merge(run, run.rank - 2);
        if (!run.rank) return false;
    }
    return trni_view_known(&a, &run) && trni_view_known(&b, &flat) && trni_same_place(&a, &b);
}

TRNI_FN trn_status trni_view_convert(const trni_views *v, const trn_tensor *dst, const trn_tensor *src, uint64_t stream)
{
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.dst = *dst;
    c.src = *src;
    c.rounding = v->a->rounding;
    c.overflow = v->a->overflow;
    c.seed = v->a->seed;
    c.stream = stream;
    c.sr_bits = v->a->sr_bits;
    c.isa = v->isa;
    c.error = v->a->error;
    return trn_convert(&c);
}

/* The same shape, packed, in the wire's format. */
TRNI_FN trn_tensor trni_view_packed(const trni_views *v, const trn_tensor *t, char *codes)
{
    return trn_tensor_nd(v->wire, codes, t->rank, t->shape);
}

/* Group g draws its words from streams stream + g 2^32 on. */
TRNI_FN uint64_t trni_group_stream(const trn_collective_args *a, int group)
{
    return a->stream + ((uint64_t)group << 32);
}

/* Does this destination need codes of its own? In an all-to-all the blocks of others are still to be read from where
 * its own may be written in place. */
TRNI_FN bool trni_view_needs_copy(const trni_views *v, int64_t i, bool output)
{
    const trn_tensor *t = output ? &v->a->dst[i] : &v->a->src[i];
    if (!trni_view_is_ready(v, t)) return true;
    const bool moves = v->a->op == TRN_ALL_TO_ALL || v->a->op == TRN_PERMUTE || v->a->op == TRN_SEND_RECV;
    return !output && moves && v->a->dst[i].data == t->data;
}

/* Of one view's codes; a view has at most 2^60 elements, so that this is exact. */
TRNI_FN int64_t trni_codes_bytes(const trni_views *v, int64_t elements)
{
    return trni_round_up(elements * (int64_t)trn_format_bytes(v->wire), 64);
}

/* -1: more than any memory has. */
TRNI_FN int64_t trni_views_bytes(const trni_views *v)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < 2 * (int64_t)v->ranks * v->groups && bytes >= 0; i++) {
        const int64_t n = trni_view_size(v, i / 2, i % 2 != 0);
        if (n > 0 && trni_view_needs_copy(v, i / 2, i % 2 != 0)) bytes = trni_add_bytes(bytes, trni_codes_bytes(v, n));
    }
    return bytes;
}

/* Finds or makes the codes of every view; the sources are filled. memory is to be freed whatever is returned. */
TRNI_FN trn_status trni_stage_in(trni_views *v)
{
    const int64_t views = (int64_t)v->ranks * v->groups, bytes = trni_views_bytes(v);
    v->memory = bytes < 0 ? NULL : (char *)malloc((size_t)bytes + 2 * (size_t)views * sizeof(char *) + 64);
    if (bytes < 0)
        return trni_fail(v->a->error, TRN_ENOSPC, "the codes of %d ranks take more than 2^%d bytes", v->ranks,
                         TRNI_ADDRESS_BITS);
    if (!v->memory)
        return trni_fail(v->a->error, TRN_ENOSPC, "could not allocate %lld bytes of codes", (long long)bytes);
    v->in = (char **)(void *)v->memory;
    v->out = v->in + views;
    char *at = (char *)(v->out + views);
    trn_status status = TRN_OK;
    for (int64_t i = 0; i < 2 * views; i++) {
        const bool output = i % 2 != 0;
        const trn_tensor *t = output ? &v->a->dst[i / 2] : &v->a->src[i / 2];
        const int rank = (int)(i / 2 % v->ranks);
        const int64_t n = trni_view_size(v, i / 2, output);
        char **codes = output ? &v->out[i / 2] : &v->in[i / 2];
        *codes = n < 0 ? NULL : (char *)t->data;
        if (n <= 0 || !trni_view_needs_copy(v, i / 2, output)) continue;
        *codes = at;
        at += trni_codes_bytes(v, n);
        if (output) continue;
        const trn_tensor packed = trni_view_packed(v, t, *codes);
        const uint64_t stream = trni_group_stream(v->a, (int)(i / 2 / v->ranks)) + (uint64_t)rank;
        status = trni_view_convert(v, &packed, t, stream);
        if (status != TRN_OK) return status;
    }
    return TRN_OK;
}

/* The codes of the destinations become what their views hold; all ranks of a group round alike. */
TRNI_FN trn_status trni_stage_out(const trni_views *v)
{
    trn_status status = TRN_OK;
    for (int64_t i = 0; status == TRN_OK && i < (int64_t)v->ranks * v->groups; i++) {
        const trn_tensor *t = &v->a->dst[i];
        if (!v->out[i] || v->out[i] == (char *)t->data || trn_tensor_elements(*t) == 0) continue;
        const trn_tensor packed = trni_view_packed(v, t, v->out[i]);
        status = trni_view_convert(v, t, &packed, trni_group_stream(v->a, (int)(i / v->ranks)) + UINT32_MAX);
    }
    return status;
}

#endif /* TRNI_NETWORK_COLLECTIVE_VIEWS_H */

/* engine/dma_offset.h - where a transfer begins, when that is a number in a tile: NKI's scalar_offset and indirect_dim.
 * Behind trn_dma.h trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: reads the number, moves the view by it, and says whether the view still lies within the tensor that it is cut
 *     from.
 * DOES NOT: move elements (trn_dma.h does), or ask whether the number was written (core/core_table.h does).
 *
 * KNOWN FROM: NKI, page on access patterns: offset + number * prod(shape of the tensor right of indirect_dim)
 *     (documented); dma_copy: the transfer of an address out of bounds is refused or skipped (documented). That the
 *     number has to be an index of its axis, and that all of the view decides, not its first element: assumed.
 */
#ifndef TRNI_ENGINE_DMA_OFFSET_H
#define TRNI_ENGINE_DMA_OFFSET_H

#include "instruction.h"

/* One of a copy's two sides: names for its sentences. */
typedef struct trni_dma_side {
    const char *view, *offset;
} trni_dma_side;

/* The axes that elements lie along, the farthest steps last, so that each coordinate can be divided out. */
TRNI_DRIVER int trni_digits_sorted(const trn_tensor *t, trni_digit digit[TRN_MAX_RANK])
{
    const int digits = trni_digits_of(t, digit);
    for (int i = 1; i < digits; i++)
        for (int k = i; k > 0 && digit[k].stride < digit[k - 1].stride; k--) {
            const trni_digit other = digit[k];
            digit[k] = digit[k - 1];
            digit[k - 1] = other;
        }
    return digits;
}

/* Where element number `at` of memory lies in the axes; false when it is none of t's. */
TRNI_FN bool trni_digits_at(trni_digit *digit, int digits, int64_t at)
{
    for (int i = digits - 1; i >= 0; i--) {
        if (digit[i].stride == 0) continue;
        digit[i].used = at / digit[i].stride;
        if (digit[i].used >= digit[i].size) return false;
        at %= digit[i].stride;
    }
    return at == 0;
}

/* Do all elements of `view`, `ahead` elements further on, belong to t? Both have passed trn_tensor_check. */
TRNI_DRIVER bool trni_view_within(const trn_tensor *t, const trn_tensor *view, int64_t ahead)
{
    trni_digit digit[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
    const int64_t size = (int64_t)trn_format_bytes(t->format);
    if (trn_tensor_elements(*view) == 0) return true;
    if (trn_tensor_elements(*t) == 0 || (uintptr_t)view->data < (uintptr_t)t->data) return false;
    const uintptr_t bytes = (uintptr_t)view->data - (uintptr_t)t->data;
    if (bytes > (uintptr_t)TRNI_MOST_BYTES || bytes % (uintptr_t)size) return false;
    const int digits = trni_digits_sorted(t, digit);
    if (!trni_digits_at(digit, digits, (int64_t)bytes / size + ahead)) return false;
    trni_strides(view, stride);
    for (int k = 0; k < view->rank; k++) {
        int i = digits - 1;
        if (view->shape[k] < 2 || stride[k] == 0) continue;
        while (i > 0 && (digit[i].stride == 0 || stride[k] % digit[i].stride)) i--;
        if (digit[i].stride == 0 || stride[k] % digit[i].stride) return false;
        const int64_t places = stride[k] / digit[i].stride, more = view->shape[k] - 1;
        if (places > (digit[i].size - 1 - digit[i].used) / more) return false;
        digit[i].used += places * more;
    }
    return true;
}

TRNI_DRIVER trn_status trni_dma_offset_check(const trn_dma_offset *o, const trn_tensor *view, trni_dma_side side,
                                             trn_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%s.value", side.offset);
    trn_status status = trn_tensor_check(&o->value, name, TRNI_INPUT, 0, error);
    if (status) return status;
    if (o->value.format != TRN_U32 && o->value.format != TRN_I32)
        return trni_fail(error, TRN_EFORMAT, "%s is %s; it takes uint32 and int32", name,
                         trn_format_name(o->value.format));
    if (trn_tensor_elements(o->value) != 1)
        return trni_fail(error, TRN_ESHAPE, "%s has %lld elements; it is one number", name,
                         (long long)trn_tensor_elements(o->value));
    if (o->of.rank == 0)
        return trni_fail(error, TRN_EINVAL, "%s.of is missing: the tensor that %s is cut from", side.offset, side.view);
    snprintf(name, sizeof name, "%s.of", side.offset);
    status = trn_tensor_check(&o->of, name, TRNI_INPUT, 0, error);
    if (status) return status;
    if (o->dim < 0 || o->dim >= o->of.rank)
        return trni_fail(error, TRN_EINVAL, "%s.dim is %d; %s has axes 0 to %d", side.offset, o->dim, name,
                         o->of.rank - 1);
    if (trn_format_bytes(o->of.format) != trn_format_bytes(view->format))
        return trni_fail(error, TRN_EFORMAT, "%s is %s and %s is %s; their elements have one size", name,
                         trn_format_name(o->of.format), side.view, trn_format_name(view->format));
    if (!trni_view_within(&o->of, view, 0))
        return trni_fail(error, TRN_EINVAL, "%s is not cut from %s", side.view, name);
    return TRN_OK;
}

/* The view, moved; *moves becomes false where the number is out of bounds and such transfers are skipped: the view then
 * stays where it is. */
TRNI_DRIVER trn_status trni_dma_offset_place(const trn_dma_offset *o, trn_tensor *view, trni_dma_side side, bool skips,
                                             bool *moves, trn_error *error)
{
    int64_t stride[TRN_MAX_RANK];
    trn_status status = trn_tensor_check(view, side.view, TRNI_INPUT, 0, error);
    if (!status) status = trni_dma_offset_check(o, view, side, error);
    if (status) return status;
    const int64_t at = trni_integer_at(o->value.format, o->value.data), rows = o->of.shape[o->dim];
    trni_strides(&o->of, stride);
    const bool index = at >= 0 && at < rows;
    if (index && trni_view_within(&o->of, view, at * stride[o->dim])) {
        if (at && trn_tensor_elements(*view))
            view->data = (char *)view->data + at * stride[o->dim] * (int64_t)trn_format_bytes(view->format);
        return TRN_OK;
    }
    if (skips) {
        *moves = false;
        return TRN_OK;
    }
    if (!index)
        return trni_fail(error, TRN_EINVAL, "%s is %lld but axis %d of %s.of has %lld", side.offset, (long long)at,
                         o->dim, side.offset, (long long)rows);
    return trni_fail(error, TRN_EINVAL, "%s would leave %s.of: it begins %lld of axis %d further on", side.view,
                     side.offset, (long long)at, o->dim);
}

#endif /* TRNI_ENGINE_DMA_OFFSET_H */

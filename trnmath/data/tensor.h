/* data/tensor.h - views of memory: shape, strides, format.
 * A part of trn_tensor.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_DATA_TENSOR_H
#define TRNI_DATA_TENSOR_H

#include "../number/format.h"

#define TRN_MAX_RANK 6

typedef struct trn_tensor {
    void *data;
    trn_format format;
    int rank; /* 0 = no tensor */
    int64_t shape[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK]; /* in elements; all 0 = packed rows */
    trn_cfp8 cfp8;                /* TRN_CFP8 only */
} trn_tensor;

/* A view of packed rows: shape [rank], the last axis next to each other. Copies nothing, checks nothing. */
TRN_API trn_tensor trn_tensor_nd(trn_format format, void *data, int rank, const int64_t *shape);

TRNI_FN trn_tensor trn_tensor_1d(trn_format format, void *data, int64_t n)
{
    return trn_tensor_nd(format, data, 1, &n);
}

TRNI_FN trn_tensor trn_tensor_2d(trn_format format, void *data, int64_t rows, int64_t cols)
{
    const int64_t shape[2] = { rows, cols };
    return trn_tensor_nd(format, data, 2, shape);
}

/* No copy: the last two axes change places. A view of rank < 2 comes back unchanged. */
TRN_API trn_tensor trn_tensor_transposed(trn_tensor t);

/* No copy: axis i becomes what axis[i] was. No tensor when axis, of t.rank numbers, is not a permutation. */
TRN_API trn_tensor trn_tensor_permuted(trn_tensor t, const int *axis);

/* No copy: elements [first, first + count) of an axis; a range outside of it gives no tensor (rank 0). */
TRN_API trn_tensor trn_tensor_slice(trn_tensor t, int axis, int64_t first, int64_t count);

/* No copy: an axis of n elements becomes two, [n / inner, inner]. inner must divide n, else no tensor. */
TRN_API trn_tensor trn_tensor_split(trn_tensor t, int axis, int64_t inner);

/* No copy: axis and axis + 1 become one; no tensor when their elements do not follow each other at one step, or when no
 * axis would have a stride but those of size 1 had (strides that are all 0 mean packed rows). */
TRN_API trn_tensor trn_tensor_merge(trn_tensor t, int axis);

/* No copy: an axis of size 1 is seen n times (stride 0: inputs only). No tensor when it is larger, or when no other
 * axis has a stride, since strides that are all 0 mean packed rows. */
TRN_API trn_tensor trn_tensor_broadcast(trn_tensor t, int axis, int64_t n);

/* No copy: NKI's t.ap(pattern, offset) (documented: its page on access patterns). Element [i, j, ...] of the view is
 * element offset + i pattern[0][0] + j pattern[1][0] + ... of t, whose elements are numbered along its last axis first,
 * however they lie in memory; sizes are pattern[..][1]. So for a tile [P, F] steps of F count partitions. A step of 0
 * is seen again and again (inputs only). No tensor when a step or size is negative, when an element is not t's, when
 * steps run on from one partition into the next where these do not follow each other, or when all of them are 0. */
TRN_API trn_tensor trn_tensor_pattern(trn_tensor t, const int64_t (*pattern)[2], int rank, int64_t offset);

/* The product of its sizes; 0 for no tensor, INT64_MAX where no integer holds it. */
TRN_API int64_t trn_tensor_elements(trn_tensor t);

/* The row of the view's format, or of its own cFP8. */
TRN_API trn_format_info trn_tensor_format_info(const trn_tensor *t);

/* ---- checks ---- */

typedef enum trni_use { TRNI_INPUT, TRNI_OUTPUT } trni_use;

/* Both views must have passed trn_tensor_check. Empty views share nothing. */
TRN_API bool trn_tensor_overlap(trn_tensor a, trn_tensor b);

/* TRN_OK, or what is wrong with the view, under the name the caller knows it by. */
TRN_API trn_status trn_tensor_check(const trn_tensor *t, const char *name, trni_use use, int rank, trn_error *error);

#if TRNI_BODIES

TRN_API trn_tensor trn_tensor_nd(trn_format format, void *data, int rank, const int64_t *shape)
{
    trn_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.format = format;
    t.rank = rank;
    for (int i = 0; i < rank && i < TRN_MAX_RANK; i++) t.shape[i] = shape[i];
    return t;
}

TRNI_FN bool trni_strides_packed(const trn_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->stride[i] != 0) return false;
    return true;
}

/* The strides that are meant: what "all zero" stands for is filled in. The view must have passed trn_tensor_check. */
TRNI_FN void trni_strides(const trn_tensor *t, int64_t stride[TRN_MAX_RANK])
{
    const bool packed = trni_strides_packed(t);
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = packed ? step : t->stride[i];
        if (t->shape[i] > 1 && step <= INT64_MAX / t->shape[i])
            step *= t->shape[i]; /* beyond that a view is empty or refused */
    }
}

TRN_API trn_tensor trn_tensor_transposed(trn_tensor t)
{
    if (t.rank < 2 || t.rank > TRN_MAX_RANK) return t;
    if (trni_strides_packed(&t)) {
        int64_t stride[TRN_MAX_RANK];
        trni_strides(&t, stride);
        memcpy(t.stride, stride, sizeof(int64_t) * (size_t)t.rank);
    }
    const int i = t.rank - 2, j = t.rank - 1;
    const int64_t shape = t.shape[i], stride = t.stride[i];
    t.shape[i] = t.shape[j];
    t.stride[i] = t.stride[j];
    t.shape[j] = shape;
    t.stride[j] = stride;
    return t;
}

/* What a view becomes when it is cut in a way that has no meaning: no tensor, which every call refuses by name. */
TRNI_FN trn_tensor trni_no_tensor(void) { return trn_tensor_nd(TRN_FORMAT_UNSET, NULL, 0, NULL); }

/* a * b; the largest number where it is more than that: no view that passes trn_tensor_check comes there. */
TRNI_FN int64_t trni_capped(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Its strides written out. */
TRNI_FN trn_tensor trni_strided(trn_tensor t)
{
    int64_t stride[TRN_MAX_RANK];
    trni_strides(&t, stride);
    for (int i = 0; i < t.rank; i++) t.stride[i] = stride[i];
    return t;
}

TRN_API trn_tensor trn_tensor_slice(trn_tensor t, int axis, int64_t first, int64_t count)
{
    if (axis < 0 || axis >= t.rank || t.rank > TRN_MAX_RANK || first < 0 || count < 0 || first > t.shape[axis] - count)
        return trni_no_tensor();
    t = trni_strided(t);
    t.shape[axis] = count;
    if (t.data && first && trn_tensor_elements(t)) { /* (of an empty view strides may be any numbers) */
        const int64_t bytes = trni_capped(trni_capped(first, t.stride[axis]), (int64_t)trn_format_bytes(t.format));
        t.data = (void *)((uintptr_t)t.data + (uintptr_t)bytes);
    }
    return t;
}

TRN_API trn_tensor trn_tensor_split(trn_tensor t, int axis, int64_t inner)
{
    if (axis < 0 || axis >= t.rank || t.rank >= TRN_MAX_RANK || inner < 1 || t.shape[axis] % inner)
        return trni_no_tensor();
    t = trni_strided(t);
    for (int i = t.rank; i > axis; i--) {
        t.shape[i] = t.shape[i - 1];
        t.stride[i] = t.stride[i - 1];
    }
    t.rank++;
    t.shape[axis] /= inner;
    t.stride[axis] = trni_capped(t.stride[axis], inner);
    t.shape[axis + 1] = inner;
    return t;
}

TRN_API trn_tensor trn_tensor_merge(trn_tensor t, int axis)
{
    if (axis < 0 || axis >= t.rank - 1 || t.rank > TRN_MAX_RANK) return trni_no_tensor();
    t = trni_strided(t);
    const int64_t outer = t.shape[axis], inner = t.shape[axis + 1];
    if (outer > 1 && inner > 1 && t.stride[axis] != trni_capped(t.stride[axis + 1], inner)) return trni_no_tensor();
    if (inner > 1 || outer <= 1) t.stride[axis] = t.stride[axis + 1];
    t.shape[axis] = trni_capped(outer, inner);
    for (int i = axis + 1; i < t.rank - 1; i++) {
        t.shape[i] = t.shape[i + 1];
        t.stride[i] = t.stride[i + 1];
    }
    t.rank--;
    t.shape[t.rank] = t.stride[t.rank] = 0;
    for (int i = 0; i < t.rank; i++)
        if (t.shape[i] > 1 && trni_strides_packed(&t)) return trni_no_tensor();
    return t;
}

TRN_API trn_tensor trn_tensor_broadcast(trn_tensor t, int axis, int64_t n)
{
    if (axis < 0 || axis >= t.rank || t.rank > TRN_MAX_RANK || n < 0 || t.shape[axis] != 1) return trni_no_tensor();
    t = trni_strided(t);
    t.shape[axis] = n;
    t.stride[axis] = 0;
    return n > 1 && trni_strides_packed(&t) ? trni_no_tensor() : t;
}

TRN_API trn_tensor trn_tensor_permuted(trn_tensor t, const int *axis)
{
    unsigned seen = 0;
    if (t.rank < 1 || t.rank > TRN_MAX_RANK) return trni_no_tensor();
    trn_tensor turned = t = trni_strided(t);
    for (int i = 0; i < t.rank; i++) {
        if (axis[i] < 0 || axis[i] >= t.rank || seen >> axis[i] & 1) return trni_no_tensor();
        seen |= 1u << axis[i];
        turned.shape[i] = t.shape[axis[i]];
        turned.stride[i] = t.stride[axis[i]];
    }
    return turned;
}

TRN_API int64_t trn_tensor_elements(trn_tensor t)
{
    int64_t n = t.rank > 0;
    for (int i = 0; i < t.rank; i++)
        if (t.shape[i] == 0) return 0;
    for (int i = 0; i < t.rank; i++) n = trni_capped(n, t.shape[i]);
    return n;
}

TRN_API trn_format_info trn_tensor_format_info(const trn_tensor *t)
{
    return t->format == TRN_CFP8 ? trn_cfp8_info(t->cfp8) : *trn_format_info_of(t->format);
}

/* ---- two views as one ---- */

/* Codes of one mean what they mean in the other: they may be moved bit for bit. */
TRNI_FN bool trni_same_format(const trn_tensor *a, const trn_tensor *b)
{
    if (a->format != b->format || a->format != TRN_CFP8) return a->format == b->format;
    const trn_format_info x = trn_cfp8_info(a->cfp8), y = trn_cfp8_info(b->cfp8);
    return x.exponent_bits == y.exponent_bits && x.bias == y.bias && x.overflow_code == y.overflow_code;
}

/* ---- moving elements ---- */

/* Copies n elements between two constant steps. */
TRNI_DRIVER void trni_move(char *dst, int64_t dst_step, const char *src, int64_t src_step, size_t bytes, size_t n)
{
#define TRNI_MOVE(size)                                                                                                \
    for (size_t i = 0; i < n; i++) memcpy(dst + (int64_t)i * dst_step, src + (int64_t)i * src_step, size)
    if (dst_step == (int64_t)bytes && src_step == (int64_t)bytes)
        memcpy(dst, src, n * bytes);
    else if (bytes == 1)
        TRNI_MOVE(1);
    else if (bytes == 2)
        TRNI_MOVE(2);
    else
        TRNI_MOVE(4);
#undef TRNI_MOVE
}

/* ---- checks ---- */

enum { TRNI_ADDRESS_BITS = 60 }; /* no view spans more bytes, or names more elements, than 2^60 */
#define TRNI_MOST_BYTES (INT64_C(1) << TRNI_ADDRESS_BITS)

/* *product = a * b, both at least 0; false when that is more than any view has. */
TRNI_FN bool trni_multiply(int64_t a, int64_t b, int64_t *product)
{
    if (b && a > TRNI_MOST_BYTES / b) return false;
    *product = a * b;
    return true;
}

/* Their sum, both at least 0; -1 when that is more than any memory has. */
TRNI_FN int64_t trni_add_bytes(int64_t sum, int64_t more) { return more > TRNI_MOST_BYTES - sum ? -1 : sum + more; }

/* ---- a view, opened ---- */

/* What is asked of a view again and again, found out once: by trni_view_open, or by trni_view_known where it has been
 * checked before. */
typedef struct trni_view {
    trn_tensor t;     /* its strides written out; rank 0: an operand that is not there */
    const char *name; /* as the caller knows it */
    trn_format_info info;
    size_t size, extent;     /* bytes of an element; from the first to one past the last: 0 where it is empty */
    int64_t elements, width; /* all of them; those behind one place of the first axis, 0 where it is empty */
    bool packed;             /* row after row: no two elements in one place */
} trni_view;

TRNI_FN void trni_view_begin(trni_view *v, const trn_tensor *t, const char *name)
{
    v->t = *t;
    v->name = name;
    v->info = trn_tensor_format_info(t);
    v->size = ((size_t)v->info.bits + 7) / 8;
    v->extent = 0;
    v->elements = v->width = 0;
}

/* Sizes and strides are not negative. False when they are absurd. */
TRNI_DRIVER bool trni_view_measure(trni_view *v)
{
    const uint64_t limit = (uint64_t)1 << TRNI_ADDRESS_BITS;
    uint64_t last = 0, elements = 1, all; /* the first two stay <= limit */
    int64_t width = 1;
    v->packed = trni_strides_packed(&v->t);
    for (int i = 0; i < v->t.rank; i++)
        if (v->t.shape[i] == 0) {
            trni_strides(&v->t, v->t.stride); /* any numbers */
            return true;
        }
    for (int i = v->t.rank - 1; i >= 0; i--) {
        const uint64_t n = (uint64_t)v->t.shape[i], stride = v->packed ? elements : (uint64_t)v->t.stride[i];
        uint64_t reach; /* multiplying costs less than dividing */
        v->t.stride[i] = (int64_t)stride;
        width = (int64_t)elements;
        if (__builtin_mul_overflow(elements, n, &elements) || elements > limit) return false;
        if (__builtin_mul_overflow(n - 1, stride, &reach) || reach > limit - last) return false;
        last += reach;
    }
    if (__builtin_mul_overflow(last + 1, v->size, &all) || all > limit) return false;
    v->extent = (size_t)all;
    v->elements = v->t.rank ? (int64_t)elements : 0;
    v->width = width;
    return true;
}

/* A view that has passed trn_tensor_check; false when it has not and is absurd. */
TRNI_FN bool trni_view_known(trni_view *v, const trn_tensor *t)
{
    trni_view_begin(v, t, "");
    return trni_view_measure(v);
}

/* Bytes from the first to one past the last element; false when a size is absurd. */
TRNI_FN bool trni_extent(const trn_tensor *t, size_t *bytes)
{
    trni_view v;
    const bool sane = trni_view_known(&v, t);
    *bytes = v.extent;
    return sane;
}

/* Axes that follow each other at one step, as one: elements `weight` numbers apart are `stride` apart. */
typedef struct trni_digit {
    int64_t size, stride, weight, used; /* used: the largest place that is asked for */
} trni_digit;

/* The innermost first. */
TRNI_DRIVER int trni_digits_of(const trn_tensor *t, trni_digit digit[TRN_MAX_RANK])
{
    int64_t stride[TRN_MAX_RANK], weight = 1;
    int digits = 0;
    trni_strides(t, stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        trni_digit *last = &digit[digits ? digits - 1 : 0];
        if (t->shape[i] == 1) continue;
        if (digits && stride[i] == last->stride * last->size) {
            last->size *= t->shape[i];
        } else {
            const trni_digit next = { t->shape[i], stride[i], weight, 0 };
            digit[digits++] = next;
        }
        weight *= t->shape[i];
    }
    if (digits) return digits;
    const trni_digit one = { 1, 1, 1, 0 };
    digit[0] = one;
    return 1;
}

/* An axis of `count` elements, `step` numbers apart: its stride; -1 when that is no axis of t. */
TRNI_DRIVER int64_t trni_digit_axis(trni_digit *digit, int digits, int64_t step, int64_t count)
{
    int i = digits - 1;
    if (step < 0 || count < 0) return -1;
    if (count < 2 || step == 0) return step != 0;
    while (step % digit[i].weight) i--; /* the innermost weighs 1 */
    const int64_t places = step / digit[i].weight;
    if (places > (digit[i].size - 1 - digit[i].used) / (count - 1)) return -1;
    digit[i].used += places * (count - 1);
    return places * digit[i].stride;
}

TRN_API trn_tensor trn_tensor_pattern(trn_tensor t, const int64_t (*pattern)[2], int rank, int64_t offset)
{
    trni_digit digit[TRN_MAX_RANK];
    int64_t at = 0, largest = 1;
    size_t bytes;
    if (t.rank < 1 || t.rank > TRN_MAX_RANK || rank < 1 || rank > TRN_MAX_RANK || !trni_extent(&t, &bytes))
        return trni_no_tensor(); /* also where numbers of elements would overflow */
    if (offset < 0 || offset >= trn_tensor_elements(t)) return trni_no_tensor();
    const int digits = trni_digits_of(&t, digit);
    for (int i = 0; i < digits; i++) {
        digit[i].used = offset / digit[i].weight % digit[i].size;
        at += digit[i].used * digit[i].stride;
    }
    t.rank = rank;
    for (int i = 0; i < rank; i++) {
        t.shape[i] = pattern[i][1];
        t.stride[i] = trni_digit_axis(digit, digits, pattern[i][0], pattern[i][1]);
        if (t.stride[i] < 0) return trni_no_tensor();
        largest = t.shape[i] > largest ? t.shape[i] : largest;
    }
    if (t.data && at) t.data = (char *)t.data + at * (int64_t)trn_format_bytes(t.format);
    return largest > 1 && trni_strides_packed(&t) ? trni_no_tensor() : t;
}

/* One variable of the question "can these two views meet?": it takes values low..high and moves by step bytes. */
typedef struct trni_axis {
    int64_t step, low, high;
} trni_axis;

/* Is there a choice of the variables, not all zero when `nonzero`, with |distance + sum of step*value| < size?
 * Axes are sorted by falling step, so that ordinary layouts leave one or two values to try on each. */
TRNI_LEAN bool trni_meet(const trni_axis *axis, int n, int64_t distance, int64_t size, bool nonzero, int *budget)
{
    if (n == 0) return !nonzero && distance > -size && distance < size;
    int64_t below = 0, above = 0; /* what the later axes can add */
    for (int i = 1; i < n; i++) {
        below += axis[i].step * axis[i].low;
        above += axis[i].step * axis[i].high;
    }
    for (int64_t v = axis[0].low; v <= axis[0].high; v++) {
        const int64_t here = distance + axis[0].step * v;
        if (here + above <= -size) { /* too low: jump to the first value that is not */
            v += (-size - here - above) / axis[0].step;
            continue;
        }
        if (here + below >= size) break;
        if (--*budget < 0) return true; /* a layout nobody uses: the careful answer */
        if (trni_meet(axis + 1, n - 1, here, size, nonzero && v == 0, budget)) return true;
    }
    return false;
}

TRNI_DRIVER void trni_axis_add(trni_axis *axis, int *n, int64_t step, int64_t low, int64_t high)
{
    if (step == 0 || low == high) return;
    for (int i = 0; i < *n; i++)
        if (axis[i].step == step) { /* same step: one variable, wider range */
            axis[i].low += low;
            axis[i].high += high;
            return;
        }
    int i = (*n)++;
    for (; i > 0 && axis[i - 1].step < step; i--) axis[i] = axis[i - 1];
    axis[i].step = step;
    axis[i].low = low;
    axis[i].high = high;
}

enum { TRNI_MEET_BUDGET = 10000 };

/* Do a's bytes and b's, from the first to the last, meet? */
TRNI_FN bool trni_spans_meet(const trni_view *a, const trni_view *b)
{
    const uintptr_t pa = (uintptr_t)a->t.data, pb = (uintptr_t)b->t.data;
    return a->extent && b->extent && pa + a->extent > pb && pb + b->extent > pa;
}

TRNI_DRIVER bool trni_views_overlap(const trni_view *a, const trni_view *b)
{
    if (!trni_spans_meet(a, b)) return false;
    const uintptr_t pa = (uintptr_t)a->t.data, pb = (uintptr_t)b->t.data;
    const int64_t a_size = (int64_t)a->size, b_size = (int64_t)b->size;
    trni_axis axis[2 * TRN_MAX_RANK];
    int n = 0, budget = TRNI_MEET_BUDGET;
    /* Elements [d, d + a_size) and [0, b_size) meet iff -a_size < d < b_size; doubling makes that symmetric. */
    for (int i = 0; i < a->t.rank; i++) /* a stride that is never taken may be any number */
        if (a->t.shape[i] > 1) trni_axis_add(axis, &n, 2 * a->t.stride[i] * a_size, 0, a->t.shape[i] - 1);
    for (int i = 0; i < b->t.rank; i++)
        if (b->t.shape[i] > 1) trni_axis_add(axis, &n, 2 * b->t.stride[i] * b_size, 1 - b->t.shape[i], 0);
    const int64_t distance = pa >= pb ? (int64_t)(pa - pb) : -(int64_t)(pb - pa);
    return trni_meet(axis, n, 2 * distance + a_size - b_size, a_size + b_size, false, &budget);
}

TRN_API bool trn_tensor_overlap(trn_tensor a, trn_tensor b)
{
    trni_view x, y;
    return trni_view_known(&x, &a) && trni_view_known(&y, &b) && trni_views_overlap(&x, &y);
}

/* One format aside, the same elements in the same memory: what may be worked on in place. */
TRNI_DRIVER bool trni_same_place(const trni_view *a, const trni_view *b)
{
    if (a->t.data != b->t.data || a->t.rank != b->t.rank || a->size != b->size) return false;
    for (int i = 0; i < a->t.rank; i++)
        if (a->t.shape[i] != b->t.shape[i] || (a->t.shape[i] > 1 && a->t.stride[i] != b->t.stride[i])) return false;
    return true;
}

/* Do two indices share an element, axes aside that have stride 0 on purpose? */
TRNI_DRIVER bool trni_aliases_itself(const trni_view *v)
{
    const trn_tensor *t = &v->t;
    trni_axis axis[TRN_MAX_RANK];
    int n = 0, budget = TRNI_MEET_BUDGET;
    if (v->packed) return false;
    for (int i = 0; i < t->rank; i++) {
        for (int j = 0; j < i && t->stride[i]; j++)
            if (t->stride[i] == t->stride[j] && t->shape[i] > 1 && t->shape[j] > 1) return true;
        trni_axis_add(axis, &n, t->stride[i], 1 - t->shape[i], t->shape[i] - 1);
    }
    return trni_meet(axis, n, 0, 1, true, &budget);
}

TRNI_FN trn_status trni_view_fail_broadcast(const trni_view *v, int axis, trn_error *error)
{
    return trni_fail(error, TRN_ESHAPE, "%s has stride 0 on axis %d; only inputs may broadcast", v->name, axis);
}

/* Every index of an output has its own element. */
TRNI_FN trn_status trni_view_check_places(const trni_view *v, trn_error *error)
{
    if (v->elements == 0 || !trni_aliases_itself(v)) return TRN_OK;
    return trni_fail(error, TRN_ESHAPE, "%s has strides that give two elements the same memory", v->name);
}

/* Is there such a format? */
TRNI_FN trn_status trni_view_check_format(const trni_view *v, trn_error *error)
{
    if (v->info.kind != TRN_KIND_NONE) return TRN_OK;
    if (v->t.format != TRN_CFP8)
        return trni_fail(error, TRN_EFORMAT, "%s has no valid format (%d)", v->name, (int)v->t.format);
    return trni_fail(error, TRN_EFORMAT,
                     "%s is cfp8 with %d exponent bits, bias %d; it takes 2 to 5 bits, and values from 2^-126 to 2^127",
                     v->name, v->t.cfp8.exponent_bits, v->t.cfp8.bias);
}

TRNI_DRIVER trn_status trni_view_check_axes(const trni_view *v, trni_use use, trn_error *error)
{
    const trn_tensor *t = &v->t;
    const bool packed = trni_strides_packed(t);
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] < 0)
            return trni_fail(error, TRN_ESHAPE, "%s has negative size %lld on axis %d", v->name, (long long)t->shape[i],
                             i);
    for (int i = 0; i < t->rank; i++) {
        if (t->stride[i] < 0)
            return trni_fail(error, TRN_ESHAPE, "%s has negative stride %lld on axis %d", v->name,
                             (long long)t->stride[i], i);
        if (use == TRNI_OUTPUT && !packed && t->stride[i] == 0 && t->shape[i] > 1)
            return trni_view_fail_broadcast(v, i, error);
    }
    return TRN_OK;
}

/* trn_tensor_check, and the view opened. `name` lives as long as the view. */
TRNI_DRIVER trn_status trni_view_open(trni_view *v, const trn_tensor *t, const char *name, trni_use use, int rank,
                                      trn_error *error)
{
    trni_view_begin(v, t, name);
    trn_status status = trni_view_check_format(v, error);
    if (status) return status;
    if (rank && t->rank != rank)
        return trni_fail(error, TRN_ESHAPE, "%s has rank %d, expected %d", name, t->rank, rank);
    if (t->rank < 1 || t->rank > TRN_MAX_RANK)
        return trni_fail(error, TRN_ESHAPE, "%s has rank %d, expected 1 to %d", name, t->rank, TRN_MAX_RANK);
    if ((status = trni_view_check_axes(v, use, error)) != TRN_OK) return status;
    if (!trni_view_measure(v))
        return trni_fail(error, TRN_ESHAPE, "%s spans more than 2^%d bytes or elements", name, TRNI_ADDRESS_BITS);
    if (v->elements && !t->data) return trni_fail(error, TRN_EINVAL, "%s has elements but its data is null", name);
    if ((uintptr_t)t->data > UINTPTR_MAX - v->extent)
        return trni_fail(error, TRN_EINVAL, "%s runs past the end of memory", name);
    return use == TRNI_OUTPUT ? trni_view_check_places(v, error) : TRN_OK;
}

TRN_API trn_status trn_tensor_check(const trn_tensor *t, const char *name, trni_use use, int rank, trn_error *error)
{
    trni_view v;
    return trni_view_open(&v, t, name, use, rank, error);
}

/* TRN_OK when both have the same rank and sizes. */
TRNI_DRIVER trn_status trni_check_same_shape(const trn_tensor *a, const char *a_name, const trn_tensor *b,
                                             const char *b_name, trn_error *error)
{
    if (a->rank != b->rank)
        return trni_fail(error, TRN_ESHAPE, "%s has rank %d but %s has rank %d", a_name, a->rank, b_name, b->rank);
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return trni_fail(error, TRN_ESHAPE, "%s has size %lld on axis %d but %s has %lld", a_name,
                             (long long)a->shape[i], i, b_name, (long long)b->shape[i]);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_DATA_TENSOR_H */

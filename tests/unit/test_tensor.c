/* test_tensor.c - views: strides, transposes, refusals, and "do these share memory?" against counting every byte.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/trn_tensor.h"

enum { ARENA = 4096, MOST = 4 }; /* bytes; axes of a random view */

static uint64_t rng_state;

static uint32_t draw(uint32_t below)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % below;
}

/* ---- the slow side: visit every index ---- */

/* Steps the index like an odometer; false after the last one. */
static bool next_index(const trn_tensor *t, int64_t *index)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        if (++index[i] < t->shape[i]) return true;
        index[i] = 0;
    }
    return false;
}

static bool is_empty(const trn_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] == 0) return true;
    return false;
}

/* Offset in elements, from what the header says about strides. */
static int64_t offset_of(const trn_tensor *t, const int64_t *index)
{
    bool packed = true;
    int64_t offset = 0, row_major = 0;
    for (int i = 0; i < t->rank; i++) {
        packed = packed && t->stride[i] == 0;
        offset += index[i] * t->stride[i];
        row_major = row_major * t->shape[i] + index[i];
    }
    return packed ? row_major : offset;
}

/* Counts how often each byte of the arena is touched; returns the largest count. */
static int touch(const trn_tensor *t, const unsigned char *arena, int *count)
{
    int64_t index[TRN_MAX_RANK] = { 0 };
    const size_t size = trn_format_bytes(t->format);
    int largest = 0;
    if (is_empty(t)) return 0;
    do {
        const size_t at = (size_t)((const unsigned char *)t->data - arena) + (size_t)offset_of(t, index) * size;
        for (size_t b = 0; b < size; b++) {
            assert_true(at + b < ARENA);
            if (++count[at + b] > largest) largest = count[at + b];
        }
    } while (next_index(t, index));
    return largest;
}

static trn_tensor random_view(unsigned char *arena, bool may_broadcast, bool may_be_empty)
{
    static const trn_format sizes[3] = { TRN_I8, TRN_BF16, TRN_F32 };
    trn_tensor t;
    memset(&t, 0, sizeof t);
    t.format = sizes[draw(3)];
    t.rank = 1 + (int)draw(MOST);
    for (int i = 0; i < t.rank; i++) {
        t.shape[i] = may_be_empty && draw(20) == 0 ? 0 : 1 + (int64_t)draw(4);
        t.stride[i] = may_broadcast && draw(5) == 0 ? 0 : 1 + (int64_t)draw(draw(2) ? 4 : 24);
    }
    if (draw(4) == 0) memset(t.stride, 0, sizeof t.stride);
    t.data = arena + draw(500);
    return t;
}

/* ---- strides and transposes ---- */

static void packed_strides_are_row_major(void **state)
{
    (void)state;
    const int64_t shape[3] = { 2, 3, 4 };
    uint16_t data[24];
    const trn_tensor t = trn_tensor_nd(TRN_BF16, data, 3, shape);
    int64_t stride[TRN_MAX_RANK];
    trni_strides(&t, stride);
    assert_int_equal(stride[0], 12);
    assert_int_equal(stride[1], 4);
    assert_int_equal(stride[2], 1);
    assert_int_equal(trn_tensor_elements(t), 24);
    assert_int_equal(trn_tensor_elements(trn_tensor_2d(TRN_F32, data, 5, 0)), 0);
    const trn_tensor none = { 0 };
    assert_int_equal(trn_tensor_elements(none), 0);
}

static void constructors_fill_every_field(void **state)
{
    (void)state;
    float data[6];
    const trn_tensor one = trn_tensor_1d(TRN_F32, data, 6), two = trn_tensor_2d(TRN_TF32, data, 2, 3);
    assert_ptr_equal(one.data, data);
    assert_int_equal(one.format, TRN_F32);
    assert_int_equal(one.rank, 1);
    assert_int_equal(one.shape[0], 6);
    assert_int_equal(two.rank, 2);
    assert_int_equal(two.format, TRN_TF32);
    assert_int_equal(two.shape[0], 2);
    assert_int_equal(two.shape[1], 3);
    for (int i = 0; i < TRN_MAX_RANK; i++) assert_int_equal(two.stride[i], 0);
}

/* Element [.., i, j] of a view is element [.., j, i] of its transpose, and twice is the same as not at all. */
static void transposes_swap_the_last_two_axes(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    rng_state = 1;
    for (int k = 0; k < 2000; k++) {
        const trn_tensor t = random_view(arena, true, false);
        const trn_tensor s = trn_tensor_transposed(t), back = trn_tensor_transposed(s);
        int64_t index[TRN_MAX_RANK] = { 0 }, swapped[TRN_MAX_RANK];
        if (t.rank < 2) {
            assert_memory_equal(&s, &t, sizeof t);
            continue;
        }
        do {
            memcpy(swapped, index, sizeof index);
            swapped[t.rank - 2] = index[t.rank - 1];
            swapped[t.rank - 1] = index[t.rank - 2];
            /* an all-broadcast view stays one only while its strides are zero, which already means packed */
            assert_int_equal(offset_of(&s, swapped), offset_of(&t, index));
            assert_int_equal(offset_of(&back, index), offset_of(&t, index));
        } while (next_index(&t, index));
    }
}

/* ---- shared memory ---- */

static void overlap_is_what_counting_bytes_says(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    static int count_a[ARENA], count_b[ARENA];
    int met = 0, apart = 0, interleaved = 0;
    rng_state = 2;
    for (int k = 0; k < 20000; k++) {
        const trn_tensor a = random_view(arena, true, true), b = random_view(arena, true, true);
        memset(count_a, 0, sizeof count_a);
        memset(count_b, 0, sizeof count_b);
        touch(&a, arena, count_a);
        touch(&b, arena, count_b);
        bool both = false;
        int first[2] = { ARENA, ARENA }, last[2] = { -1, -1 };
        for (int i = 0; i < ARENA; i++) {
            both = both || (count_a[i] && count_b[i]);
            for (int side = 0; side < 2; side++)
                if (side ? count_b[i] : count_a[i]) {
                    if (i < first[side]) first[side] = i;
                    last[side] = i;
                }
        }
        if (trn_tensor_overlap(a, b) != both || trn_tensor_overlap(b, a) != both)
            fail_msg("case %d: overlap says %d and %d, the bytes say %d", k, (int)trn_tensor_overlap(a, b),
                     (int)trn_tensor_overlap(b, a), (int)both);
        met += both;
        apart += !both;
        interleaved += !both && first[0] <= last[1] && first[1] <= last[0];
    }
    assert_true(met > 1000 && apart > 1000 && interleaved > 300); /* all three kinds were really asked */
}

static void self_aliasing_is_what_counting_bytes_says(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    static int count[ARENA];
    int once = 0, twice = 0;
    rng_state = 3;
    for (int k = 0; k < 20000; k++) {
        const trn_tensor t = random_view(arena, false, false);
        memset(count, 0, sizeof count);
        const bool shared = touch(&t, arena, count) > 1;
        trn_error error = { TRN_OK, "" };
        const trn_status as_output = trn_tensor_check(&t, "t", TRNI_OUTPUT, 0, &error);
        trni_view view;
        assert_true(trni_view_known(&view, &t));
        if ((as_output != TRN_OK) != shared || trni_aliases_itself(&view) != shared)
            fail_msg("case %d: check says %d, aliases %d, the bytes say %d", k, (int)as_output,
                     (int)trni_aliases_itself(&view), (int)shared);
        if (shared) assert_int_equal(as_output, TRN_ESHAPE);
        assert_int_equal(trn_tensor_check(&t, "t", TRNI_INPUT, 0, &error), TRN_OK); /* an input may */
        once += !shared;
        twice += shared;
    }
    assert_true(once > 1000 && twice > 1000);
}

/* Two column blocks of one matrix lie between each other and share nothing; one column too many and they do. */
static void column_blocks_are_apart(void **state)
{
    (void)state;
    static float matrix[64 * 100];
    trn_tensor left = trn_tensor_2d(TRN_F32, matrix, 64, 40), right = trn_tensor_2d(TRN_F32, matrix + 40, 64, 60);
    left.stride[0] = right.stride[0] = 100;
    left.stride[1] = right.stride[1] = 1;
    assert_false(trn_tensor_overlap(left, right));
    left.shape[1] = 41;
    assert_true(trn_tensor_overlap(left, right));
    left.shape[1] = 40;
    assert_true(trn_tensor_overlap(trn_tensor_transposed(left), left));
    assert_false(trn_tensor_overlap(trn_tensor_transposed(left), right));
    /* the same bytes under another element size: column 40 as two 16-bit columns 80 and 81 */
    trn_tensor halves = trn_tensor_2d(TRN_F16, (uint16_t *)(void *)matrix + 80, 64, 2);
    halves.stride[0] = 200;
    halves.stride[1] = 1;
    assert_false(trn_tensor_overlap(halves, left));
    assert_true(trn_tensor_overlap(halves, right));
}

static void large_views_are_answered_exactly(void **state)
{
    (void)state;
    /* Addresses only: nothing is read. A 2^20 x 2^20 matrix and its neighbours by one column. */
    char *base = (char *)(uintptr_t)1 + ((size_t)1 << 45);
    trn_tensor even = trn_tensor_2d(TRN_BF16, base, (int64_t)1 << 20, (int64_t)1 << 19), odd = even;
    even.stride[0] = odd.stride[0] = (int64_t)1 << 20;
    even.stride[1] = odd.stride[1] = 2;
    odd.data = base + 2;
    assert_false(trn_tensor_overlap(even, odd));
    odd.data = base + 1; /* half an element off: every element meets two */
    assert_true(trn_tensor_overlap(even, odd));
    odd.data = base + ((size_t)2 << 40); /* behind the last row */
    assert_false(trn_tensor_overlap(even, odd));
}

/* ---- refusals ---- */

static void refuse(trn_tensor t, trni_use use, trn_status status, const char *words)
{
    trn_error error = { TRN_OK, "" };
    const trn_status found = trn_tensor_check(&t, "the view", use, 0, &error);
    if (found != status || error.status != status || !strstr(error.text, words) || !strstr(error.text, "the view"))
        fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, words, (int)found, error.text);
    assert_int_equal(trn_tensor_check(&t, "the view", use, 0, NULL), status);
}

static void accept(trn_tensor t, trni_use use)
{
    trn_error error = { TRN_OK, "untouched" };
    assert_int_equal(trn_tensor_check(&t, "t", use, 0, &error), TRN_OK);
    assert_string_equal(error.text, "untouched");
}

static trn_tensor strided(void *data, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    trn_tensor t = trn_tensor_2d(TRN_F32, data, rows, columns);
    t.stride[0] = row_step;
    t.stride[1] = column_step;
    return t;
}

static void wrong_views_are_refused(void **state)
{
    (void)state;
    static float x[64];
    trn_tensor t = trn_tensor_2d(TRN_F32, x, 4, 4);
    accept(t, TRNI_OUTPUT);
    t.format = TRN_FORMAT_UNSET;
    refuse(t, TRNI_INPUT, TRN_EFORMAT, "(0)");
    t.format = (trn_format)TRN_FORMAT_COUNT;
    refuse(t, TRNI_INPUT, TRN_EFORMAT, "format");
    t.format = (trn_format)-1;
    refuse(t, TRNI_INPUT, TRN_EFORMAT, "(-1)");
    t = trn_tensor_2d(TRN_F32, x, 4, 4);
    t.rank = 0;
    refuse(t, TRNI_INPUT, TRN_ESHAPE, "rank 0");
    t.rank = TRN_MAX_RANK + 1;
    refuse(t, TRNI_INPUT, TRN_ESHAPE, "rank 7");
    t.rank = -1;
    refuse(t, TRNI_INPUT, TRN_ESHAPE, "rank -1");
    t.rank = 2;
    trn_error error;
    assert_int_equal(trn_tensor_check(&t, "t", TRNI_INPUT, 3, &error), TRN_ESHAPE); /* the caller wanted three axes */
    assert_int_equal(trn_tensor_check(&t, "t", TRNI_INPUT, 2, &error), TRN_OK);
    refuse(trn_tensor_2d(TRN_F32, x, -1, 4), TRNI_INPUT, TRN_ESHAPE, "-1 on axis 0");
    refuse(trn_tensor_2d(TRN_F32, x, 4, INT64_MIN), TRNI_INPUT, TRN_ESHAPE, "on axis 1");
    refuse(trn_tensor_2d(TRN_F32, x, 0, -4), TRNI_INPUT, TRN_ESHAPE, "-4 on axis 1"); /* even when empty */
    refuse(trn_tensor_2d(TRN_F32, NULL, 1, 1), TRNI_INPUT, TRN_EINVAL, "null");
    accept(trn_tensor_2d(TRN_F32, NULL, 0, 4), TRNI_OUTPUT);
    accept(trn_tensor_2d(TRN_F32, NULL, 4, 0), TRNI_INPUT);
}

static void strides_are_positive_or_an_input_broadcasts(void **state)
{
    (void)state;
    static float x[64];
    refuse(strided(x, 4, 4, -4, 1), TRNI_INPUT, TRN_ESHAPE, "negative stride -4 on axis 0");
    refuse(strided(x, 4, 4, 4, -1), TRNI_OUTPUT, TRN_ESHAPE, "negative stride -1 on axis 1");
    refuse(strided(x, 4, 4, INT64_MIN, 1), TRNI_INPUT, TRN_ESHAPE, "on axis 0");
    refuse(strided(x, 1, 1, 1, -1), TRNI_INPUT, TRN_ESHAPE, "on axis 1"); /* even when it is never taken */
    accept(strided(x, 4, 4, 0, 1), TRNI_INPUT);
    accept(strided(x, 4, 4, 1, 0), TRNI_INPUT);
    refuse(strided(x, 4, 4, 0, 1), TRNI_OUTPUT, TRN_ESHAPE, "stride 0 on axis 0");
    refuse(strided(x, 4, 4, 1, 0), TRNI_OUTPUT, TRN_ESHAPE, "stride 0 on axis 1");
    accept(strided(x, 1, 4, 0, 1), TRNI_OUTPUT); /* one row is not repeated */
    accept(strided(x, 4, 4, 0, 0), TRNI_OUTPUT); /* all zero: packed */
    accept(strided(x, 4, 4, 1, 4), TRNI_OUTPUT);
    refuse(strided(x, 4, 4, 1, 3), TRNI_OUTPUT, TRN_ESHAPE, "same memory");
    refuse(strided(x, 4, 4, 2, 2), TRNI_OUTPUT, TRN_ESHAPE, "same memory");
    accept(strided(x, 4, 4, 2, 2), TRNI_INPUT);
}

static void absurd_sizes_are_refused_without_overflow(void **state)
{
    (void)state;
    static float x[4];
    const int64_t big = (int64_t)1 << 59, huge = INT64_MAX;
    refuse(trn_tensor_1d(TRN_F32, x, huge), TRNI_INPUT, TRN_ESHAPE, "spans more than 2^60");
    refuse(trn_tensor_2d(TRN_F32, x, huge, huge), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(trn_tensor_2d(TRN_F32, x, (int64_t)1 << 32, (int64_t)1 << 32), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(trn_tensor_2d(TRN_F32, x, (int64_t)1 << 31, (int64_t)1 << 31), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(strided(x, 2, 2, huge, 1), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(strided(x, huge, 2, huge, huge), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(strided(x, 3, 3, big, big), TRNI_INPUT, TRN_ESHAPE, "spans more");
    refuse(strided(x, big * 4, 2, 0, 1), TRNI_INPUT, TRN_ESHAPE, "spans more"); /* few bytes, too many elements */
    trn_tensor six = trn_tensor_1d(TRN_I8, x, 1);
    six.rank = TRN_MAX_RANK;
    for (int i = 0; i < TRN_MAX_RANK; i++) six.shape[i] = 1 << 11;
    refuse(six, TRNI_INPUT, TRN_ESHAPE, "spans more");
    /* strides that are never taken, and empty views, may say anything that is not negative */
    accept(strided(x, 1, 2, huge, 1), TRNI_OUTPUT);
    accept(strided(x, 0, huge, huge, huge), TRNI_INPUT);
    accept(trn_tensor_2d(TRN_F32, NULL, 0, huge), TRNI_OUTPUT);
}

/* The end of the address space: a view must fit in front of it. */
static void views_may_not_run_past_memory(void **state)
{
    (void)state;
    char *end = (char *)(UINTPTR_MAX - 63);
    refuse(trn_tensor_1d(TRN_F32, end, 17), TRNI_INPUT, TRN_EINVAL, "past the end of memory");
    accept(trn_tensor_1d(TRN_F32, end, 15), TRNI_INPUT);
}

/* Nothing about a stride that is never taken, nor about an empty view, may disturb the other questions. */
static void unused_numbers_do_no_harm(void **state)
{
    (void)state;
    static float x[8], y[8];
    const int64_t huge = INT64_MAX;
    const trn_tensor row = strided(x, 1, 8, huge, 1), other = strided(y, 1, 8, huge, 1);
    const trn_tensor none = strided(x, 0, huge, huge, huge), packed_none = trn_tensor_2d(TRN_F32, x, huge, 0);
    assert_true(trn_tensor_overlap(row, row));
    assert_false(trn_tensor_overlap(row, other));
    assert_false(trn_tensor_overlap(none, row));
    assert_false(trn_tensor_overlap(row, none));
    assert_false(trn_tensor_overlap(packed_none, packed_none));
    assert_int_equal(trn_tensor_elements(packed_none), 0);
    const int64_t wide[3] = { huge, huge, 0 };
    assert_int_equal(trn_tensor_elements(trn_tensor_nd(TRN_F32, NULL, 3, wide)), 0);
    assert_int_equal(trn_tensor_transposed(trn_tensor_nd(TRN_F32, NULL, 3, wide)).shape[1], 0);
}

/* ---- cutting: every element of the new view is where the old one has it ---- */

static trn_tensor any_view(unsigned char *arena)
{
    int64_t shape[MOST];
    const int rank = 1 + (int)draw(MOST);
    for (int i = 0; i < rank; i++) shape[i] = 1 + (int64_t)draw(5);
    trn_tensor t = trn_tensor_nd(draw(2) ? TRN_BF16 : TRN_F32, arena, rank, shape);
    if (draw(2) && rank > 1) t = trn_tensor_transposed(t);
    return t;
}

static const unsigned char *place(const trn_tensor *t, const int64_t *index)
{
    return (const unsigned char *)t->data + offset_of(t, index) * (int64_t)trn_format_bytes(t->format);
}

static void slices_are_ranges_of_an_axis(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    for (int round = 0; round < 2000; round++) {
        const trn_tensor t = any_view(arena);
        const int axis = (int)draw((uint32_t)t.rank);
        const int64_t first = draw((uint32_t)t.shape[axis]), count = 1 + draw((uint32_t)(t.shape[axis] - first));
        const trn_tensor s = trn_tensor_slice(t, axis, first, count);
        int64_t index[TRN_MAX_RANK] = { 0 };
        assert_int_equal(s.rank, t.rank);
        assert_int_equal(s.shape[axis], count);
        do {
            int64_t of[TRN_MAX_RANK];
            memcpy(of, index, sizeof of);
            of[axis] += first;
            assert_ptr_equal(place(&s, index), place(&t, of));
        } while (next_index(&s, index));
    }
    const trn_tensor t = trn_tensor_2d(TRN_F32, arena, 4, 6);
    assert_int_equal(trn_tensor_elements(trn_tensor_slice(t, 1, 6, 0)), 0);
    assert_int_equal(trn_tensor_slice(t, 1, 2, 5).rank, 0);
    assert_int_equal(trn_tensor_slice(t, 1, -1, 2).rank, 0);
    assert_int_equal(trn_tensor_slice(t, 1, 1, INT64_MAX).rank, 0);
    assert_int_equal(trn_tensor_slice(t, 2, 0, 1).rank, 0);
    assert_int_equal(trn_tensor_slice(t, -1, 0, 1).rank, 0);
    assert_null(trn_tensor_slice(trn_tensor_2d(TRN_F32, NULL, 0, 6), 1, 2, 2).data);
}

static void split_axes_merge_again(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    for (int round = 0; round < 2000; round++) {
        const trn_tensor t = any_view(arena);
        const int axis = (int)draw((uint32_t)t.rank);
        const int64_t inner = 1 + draw((uint32_t)t.shape[axis]);
        const trn_tensor s = trn_tensor_split(t, axis, inner);
        if (t.shape[axis] % inner) {
            assert_int_equal(s.rank, 0);
            continue;
        }
        int64_t index[TRN_MAX_RANK] = { 0 };
        assert_int_equal(s.rank, t.rank + 1);
        do {
            int64_t of[TRN_MAX_RANK] = { 0 };
            for (int i = 0; i < t.rank; i++) of[i] = index[i < axis ? i : i + 1];
            of[axis] += index[axis] * inner;
            assert_ptr_equal(place(&s, index), place(&t, of));
        } while (next_index(&s, index));
        const trn_tensor back = trn_tensor_merge(s, axis);
        assert_int_equal(back.rank, t.rank);
        memset(index, 0, sizeof index);
        do assert_ptr_equal(place(&back, index), place(&t, index));
        while (next_index(&t, index));
    }
    const trn_tensor t = trn_tensor_2d(TRN_F32, arena, 4, 6);
    assert_int_equal(trn_tensor_merge(trn_tensor_slice(t, 1, 0, 5), 0).rank, 0); /* rows do not touch */
    assert_int_equal(trn_tensor_merge(trn_tensor_slice(t, 1, 0, 1), 0).shape[0], 4);
    assert_int_equal(trn_tensor_merge(t, 1).rank, 0);
    assert_int_equal(trn_tensor_split(t, 1, 0).rank, 0);
    const int64_t six[] = { 1, 1, 1, 1, 1, 2 };
    assert_int_equal(trn_tensor_split(trn_tensor_nd(TRN_F32, arena, 6, six), 5, 1).rank, 0);
}

static void axes_in_every_order(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    for (int round = 0; round < 3000; round++) {
        const trn_tensor t = random_view(arena, true, true);
        int axis[TRN_MAX_RANK];
        for (int i = 0; i < t.rank; i++) {
            const int j = (int)draw((uint32_t)i + 1);
            axis[i] = axis[j];
            axis[j] = i;
        }
        const trn_tensor turned = trn_tensor_permuted(t, axis);
        int64_t stride[TRN_MAX_RANK], other[TRN_MAX_RANK];
        trni_strides(&t, stride);
        assert_int_equal(turned.rank, t.rank);
        assert_ptr_equal(turned.data, t.data);
        if (trn_tensor_elements(t) == 0) continue;
        trni_strides(&turned, other);
        for (int i = 0; i < t.rank; i++) {
            assert_int_equal(turned.shape[i], t.shape[axis[i]]);
            if (turned.shape[i] > 1) assert_int_equal(other[i], stride[axis[i]]);
        }
    }
    const trn_tensor t = trn_tensor_2d(TRN_F32, arena, 3, 4);
    assert_int_equal(trn_tensor_permuted(t, (const int[]){ 0, 0 }).rank, 0);
    assert_int_equal(trn_tensor_permuted(t, (const int[]){ 0, 2 }).rank, 0);
    assert_int_equal(trn_tensor_permuted(t, (const int[]){ -1, 1 }).rank, 0);
}

/* Where element `number` of a view is, in elements from its first; axes are counted from the last. */
static int64_t place_of(const trn_tensor *t, int64_t number)
{
    int64_t stride[TRN_MAX_RANK], at = 0;
    trni_strides(t, stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        at += number % t->shape[i] * stride[i];
        number /= t->shape[i];
    }
    return at;
}

/* NKI's access patterns against every element counted one by one. */
static void patterns_count_elements(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    int found = 0;
    for (int round = 0; round < 40000; round++) {
        trn_tensor t = random_view(arena, false, false);
        if (draw(3) == 0) memset(t.stride, 0, sizeof t.stride); /* dense */
        const bool dense = trni_strides_packed(&t);
        const int64_t elements = trn_tensor_elements(t), offset = draw(3) ? 0 : (int64_t)draw((uint32_t)elements + 2);
        const int rank = 1 + (int)draw(3);
        int64_t pattern[TRN_MAX_RANK][2], last = offset, count = 1;
        bool moves = false;
        for (int i = 0; i < rank; i++) {
            pattern[i][0] = draw(4) ? (int64_t)draw(6) : t.rank > 1 ? (int64_t)draw(3) * t.shape[t.rank - 1] : 1;
            pattern[i][1] = 1 + (int64_t)draw(4);
            last += pattern[i][0] * (pattern[i][1] - 1);
            count *= pattern[i][1];
            moves = moves || pattern[i][0];
        }
        const trn_tensor view = trn_tensor_pattern(t, (const int64_t(*)[2])pattern, rank, offset);
        if (view.rank == 0) { /* a dense tensor has all patterns whose elements it has */
            if (dense && last < elements && (moves || count == 1))
                fail_msg("round %d: no view of %d elements", round, (int)count);
            continue;
        }
        found++;
        if (last >= elements) fail_msg("round %d: element %d of %d", round, (int)last, (int)elements);
        assert_int_equal(trn_tensor_elements(view), count);
        const int64_t first = ((char *)view.data - (char *)t.data) / (int64_t)trn_format_bytes(t.format);
        for (int64_t n = 0; n < count; n++) {
            int64_t number = offset, rest = n;
            for (int i = rank - 1; i >= 0; i--) {
                number += rest % pattern[i][1] * pattern[i][0];
                rest /= pattern[i][1];
            }
            if (first + place_of(&view, n) != place_of(&t, number))
                fail_msg("round %d: element %d of the view is at %d, not %d", round, (int)n,
                         (int)(first + place_of(&view, n)), (int)place_of(&t, number));
        }
    }
    assert_true(found > 5000);

    /* A tile, whose partitions lie apart: t[0:16, 8:16], and half of it along the partitions. */
    trn_tensor tile = trn_tensor_2d(TRN_F32, arena, 16, 16);
    tile.stride[0] = 40;
    tile.stride[1] = 1;
    const int64_t half[2][2] = { { 16, 16 }, { 1, 8 } }, over[2][2] = { { 16, 16 }, { 1, 9 } },
                  every[2][2] = { { 32, 8 }, { 0, 5 } }, across[1][2] = { { 1, 17 } }, back[1][2] = { { -1, 2 } },
                  still[1][2] = { { 0, 4 } };
    const trn_tensor view = trn_tensor_pattern(tile, half, 2, 8);
    assert_true(view.rank == 2 && view.shape[0] == 16 && view.shape[1] == 8 && view.stride[0] == 40);
    assert_ptr_equal(view.data, (float *)tile.data + 8);
    assert_int_equal(trn_tensor_pattern(tile, half, 2, 9).rank, 0);
    assert_int_equal(trn_tensor_pattern(tile, over, 2, 8).rank, 0);
    assert_int_equal(trn_tensor_pattern(tile, every, 2, 3).stride[0], 80);
    assert_int_equal(trn_tensor_pattern(tile, across, 1, 0).rank, 0);
    assert_int_equal(trn_tensor_pattern(tile, back, 1, 4).rank, 0);
    assert_int_equal(trn_tensor_pattern(tile, still, 1, 0).rank, 0); /* would mean packed */
    assert_int_equal(trn_tensor_pattern(tile, half, 2, 256).rank, 0);
    assert_int_equal(trn_tensor_pattern(tile, half, 2, -1).rank, 0);
    tile.shape[0] = tile.shape[1] = (int64_t)1 << 40; /* absurd sizes, negative ones */
    assert_int_equal(trn_tensor_pattern(tile, half, 2, 0).rank, 0);
    tile.shape[0] = INT64_MAX;
    tile.shape[1] = 3;
    assert_int_equal(trn_tensor_pattern(tile, half, 2, 0).rank, 0);
    tile.shape[0] = -3;
    assert_int_equal(trn_tensor_pattern(tile, half, 2, 0).rank, 0);
}

static void broadcasts_repeat_one_element(void **state)
{
    (void)state;
    static unsigned char arena[ARENA];
    const trn_tensor column = trn_tensor_2d(TRN_F32, arena, 4, 1), row = trn_tensor_broadcast(column, 1, 7);
    int64_t index[TRN_MAX_RANK] = { 3, 5 }, of[TRN_MAX_RANK] = { 3, 0 };
    assert_int_equal(row.shape[1], 7);
    assert_ptr_equal(place(&row, index), place(&column, of));
    assert_int_equal(trn_tensor_broadcast(column, 0, 7).rank, 0);                           /* 4 elements */
    assert_int_equal(trn_tensor_broadcast(trn_tensor_1d(TRN_F32, arena, 1), 0, 7).rank, 0); /* would mean packed */
    assert_int_equal(trn_tensor_broadcast(column, 1, 0).shape[1], 0);
    assert_int_equal(trn_tensor_broadcast(column, 1, -1).rank, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_strides_are_row_major),
        cmocka_unit_test(constructors_fill_every_field),
        cmocka_unit_test(transposes_swap_the_last_two_axes),
        cmocka_unit_test(overlap_is_what_counting_bytes_says),
        cmocka_unit_test(self_aliasing_is_what_counting_bytes_says),
        cmocka_unit_test(column_blocks_are_apart),
        cmocka_unit_test(large_views_are_answered_exactly),
        cmocka_unit_test(wrong_views_are_refused),
        cmocka_unit_test(strides_are_positive_or_an_input_broadcasts),
        cmocka_unit_test(absurd_sizes_are_refused_without_overflow),
        cmocka_unit_test(views_may_not_run_past_memory),
        cmocka_unit_test(unused_numbers_do_no_harm),
        cmocka_unit_test(slices_are_ranges_of_an_axis),
        cmocka_unit_test(split_axes_merge_again),
        cmocka_unit_test(axes_in_every_order),
        cmocka_unit_test(patterns_count_elements),
        cmocka_unit_test(broadcasts_repeat_one_element),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}

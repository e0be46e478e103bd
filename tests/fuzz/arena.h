/* arena.h - what the fuzzers of argument structs share: guarded memory, views that are plausible and then are not.
 * SPDX-License-Identifier: MIT
 *
 * After a failure the arena must be as it was and the error must be filled; after a success only elements of what is
 * written may differ. One lie is impossible to catch and is therefore not told: a view that is legal but larger than
 * the memory behind it.
 *
 * A fuzzer defines _DEFAULT_SOURCE before anything is included.
 */
#ifndef ARENA_H
#define ARENA_H

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#include "fuzz/long.h"
#include "trnmath/trn_numerics.h"
#include "twin/views.h"
#include "trnmath/trn_tensor.h"
#include "twin/cases.h"

enum { ARENA = 16384, PAGE = 65536, MOST_WORK = 30000 };

#define HUGE_SIZE ((int64_t)1 << 50)

static unsigned char *arena;
static unsigned char snapshot[ARENA];
static uint64_t rng;

#if defined(TRN_LIBFUZZER) /* decisions are the bytes of an input; when they are used up, all are 0 */
static const unsigned char *decisions;
static size_t decisions_left;

static inline int below(int n)
{
    unsigned drawn = 0;
    for (int most = n - 1; most > 0 && decisions_left; most >>= 8, decisions_left--) drawn = drawn << 8 | *decisions++;
    return (int)(drawn % (unsigned)n);
}
#else
static inline int below(int n) { return cases_below(&rng, n); }
#endif
static inline bool one_in(int n) { return below(n) == 0; }

/* ---- when something goes wrong ---- */

static inline void say(const char *what)
{
    fprintf(stderr, "%s\n", what);
    fuzzing_last_words();
    exit(1);
}

/* ---- absurdities ---- */

static inline int64_t absurd_size(void)
{
    /* clang-format off */
    static const int64_t value[] = {
        0, 1, 2, -1, -2, 3, 127, 128, 129, 513, INT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX / 2, (int64_t)1 << 31,
        (int64_t)1 << 32, (int64_t)1 << 40, (int64_t)1 << 59, (int64_t)1 << 60, (int64_t)1 << 62
    };
    /* clang-format on */
    if (one_in(8)) return (int64_t)cases_next(&rng);
    return value[below((int)(sizeof value / sizeof value[0]))];
}

static inline int absurd_int(void)
{
    static const int value[] = { -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 19, 20, 100, 255, 256, INT_MAX, INT_MIN };
    return one_in(8) ? (int)cases_u32(&rng) : value[below((int)(sizeof value / sizeof value[0]))];
}

/* ---- views ---- */

/* Bytes that a legal view claims, or -1 when it is not legal (and so must be refused before its memory is touched). */
static inline int64_t claimed(const trn_tensor *t)
{
    const int bits = trn_format_bits(t->format);
    bool packed = true;
    if (bits == 0 || t->rank < 1 || t->rank > TRN_MAX_RANK) return -1;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0 || t->stride[i] < 0) return -1;
        if (t->stride[i]) packed = false;
    }
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] == 0) return 0;
    long double last = 0, elements = 1; /* wide enough for every product below 2^60, and no overflow above */
    for (int i = t->rank - 1; i >= 0; i--) {
        last += (long double)(t->shape[i] - 1) * (packed ? elements : (long double)t->stride[i]);
        elements *= (long double)t->shape[i];
    }
    if (elements > 0x1p61L || last > 0x1p61L) return -1;
    const long double bytes = (last + 1) * (long double)((bits + 7) / 8);
    return bytes > 0x1p61L ? -1 : (int64_t)bytes;
}

/* Keeps a legal view inside the arena. */
static inline void keep_inside(trn_tensor *t)
{
    int64_t bytes = claimed(t);
    if (bytes <= 0 || !t->data) return;
    if (bytes > ARENA) {
        for (int i = 0; i < t->rank; i++) {
            if (t->shape[i] > 3) t->shape[i] = 3;
            t->stride[i] = 0;
        }
        bytes = claimed(t);
    }
    const uintptr_t at = (uintptr_t)t->data, start = (uintptr_t)arena;
    if (at < start || at > start + ARENA || (int64_t)(start + ARENA - at) < bytes)
        t->data = arena + below(ARENA - (int)bytes + 1);
}

/* Gaps, transposition, broadcast: strides that make sense for this shape (if the shape itself does). */
static inline void plausible_strides(trn_tensor *t, bool input)
{
    int order[TRN_MAX_RANK];
    uint64_t step = one_in(4) ? 1 + (uint64_t)below(3) : 1;
    if (t->rank < 1 || one_in(2)) return;
    for (int i = 0; i < t->rank; i++) order[i] = t->rank - 1 - i;
    if (one_in(2) && t->rank > 1) {
        order[0] = t->rank - 2;
        order[1] = t->rank - 1;
    }
    for (int i = 0; i < t->rank; i++) {
        t->stride[order[i]] = (int64_t)step;
        step *= t->shape[order[i]] > 0 ? (uint64_t)t->shape[order[i]] : 1;
        if (one_in(3)) step += (uint64_t)below(5);
    }
    if (input && one_in(6)) t->stride[below(t->rank)] = 0;
}

static inline trn_tensor plausible_view(trn_format format, int rank, const int64_t *shape, int slot, bool input)
{
    trn_tensor t = trn_tensor_nd(format, arena + slot * (ARENA / 3) + 4 * below(8), rank, shape);
    plausible_strides(&t, input);
    for (int i = 0; input && i < rank && i < TRN_MAX_RANK; i++)
        if (shape[i] == HUGE_SIZE) /* such an operand can only be a broadcast */
            for (int j = 0; j < rank && j < TRN_MAX_RANK; j++) t.stride[j] = j != i;
    return t;
}

static inline void mutate_view(trn_tensor *t, const trn_tensor *other)
{
    switch (below(9)) {
    case 0: t->rank = absurd_int(); break;
    case 1: t->shape[below(TRN_MAX_RANK)] = absurd_size(); break;
    case 2: t->shape[below(2)] = absurd_size(); break;
    case 3: t->stride[below(2)] = absurd_size(); break;
    case 4: t->data = one_in(2) ? NULL : (void *)(UINTPTR_MAX - (uintptr_t)below(64)); break;
    case 5: t->data = other->data; break;
    case 6: t->data = (void *)((uintptr_t)t->data + (uintptr_t)below(5)); break;
    case 7: t->format = (trn_format)absurd_int(); break;
    default: *t = *other; break;
    }
}

/* An empty product may be as long as it likes in another direction: nothing is to do, and that must not take time. */
static inline void empty_but_huge(int64_t *m, int64_t *n, int64_t *k)
{
    int64_t *const size[3] = { m, n, k };
    const int zero = below(3), huge = (zero + 1 + below(2)) % 3;
    *size[zero] = 0;
    *size[huge] = HUGE_SIZE;
}

static inline void plausible_cfp8(trn_tensor *t)
{
    if (t->format != TRN_CFP8 || one_in(3)) return;
    t->cfp8.exponent_bits = 2 + below(4);
    t->cfp8.bias = one_in(2) ? below(20) : below(300) - 150;
    t->cfp8.no_infinity = one_in(2);
}

/* ---- numerics ---- */

/* Some field, whichever: most values are legal somewhere; a bool may become neither true nor false. */
static inline void mutate_numerics(trn_numerics *n)
{
    static const int plausible[] = { 0, 1, 2, 3, 4, 8, 16, 24, 32, 53, 64, 128 };
    enum { PLAUSIBLE = sizeof plausible / sizeof plausible[0] };
    const int value = one_in(8) ? absurd_int() : plausible[below(PLAUSIBLE)];
    const size_t at = 4 * (size_t)below((int)(sizeof *n / 4));
    memcpy((char *)n + at, &value, one_in(4) ? 1 : 4);
}

static inline trn_numerics plausible_numerics(void)
{
    trn_numerics n;
    memset(&n, 0, sizeof n);
    if (one_in(2)) n = trn_numerics_default(TRN_TRAINIUM2);
    for (int i = one_in(2) ? below(3) : 0; i > 0; i--) mutate_numerics(&n);
    return n;
}

/* ---- memory that a call may touch ----
 *
 * Under AddressSanitizer all of the arena but the span of these views is closed during the call: what is read beside
 * them shows, too. */

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>

static inline void close_arena(const trn_tensor *const *view, int views)
{
    __asan_poison_memory_region(arena, ARENA);
    for (int i = 0; i < views; i++) {
        const int64_t bytes = claimed(view[i]);
        const uintptr_t at = (uintptr_t)view[i]->data, start = (uintptr_t)arena;
        if (bytes > 0 && at >= start && at <= start + ARENA && (int64_t)(start + ARENA - at) >= bytes)
            __asan_unpoison_memory_region(view[i]->data, (size_t)bytes);
    }
}

static inline void open_arena(void) { __asan_unpoison_memory_region(arena, ARENA); }
#else
static inline void close_arena(const trn_tensor *const *view, int views) { (void)view, (void)views; }
static inline void open_arena(void) {}
#endif

/* ---- after the call ---- */

static inline void check_error(trn_status status, const trn_error *error)
{
    if (status == TRN_OK) {
        if (error->status != (trn_status)77 || error->text[0] != '~') say("the error was touched on success");
        return;
    }
    if (error->status != status) say("error.status is not the status");
    const size_t length = strnlen(error->text, sizeof error->text);
    if (length == sizeof error->text) say("error.text does not end");
    if (length < 8) say("error.text says nothing");
}

static inline trn_error fresh_error(void)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    error.status = (trn_status)77;
    error.text[0] = '~';
    return error;
}

/* Element number `at` of dst, in row order, as an offset into the arena. */
static inline size_t element_offset(const trn_tensor *t, int64_t at)
{
    int64_t stride[TRN_MAX_RANK], offset = 0;
    view_strides(t, stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        offset += at % t->shape[i] * stride[i];
        at /= t->shape[i];
    }
    return (size_t)((unsigned char *)t->data - arena) + (size_t)offset * trn_format_bytes(t->format);
}

/* Elements of dst may have become anything. */
static inline void forgive(const trn_tensor *dst)
{
    const int64_t elements = trn_tensor_elements(*dst);
    const size_t size = trn_format_bytes(dst->format);
    for (int64_t e = 0; e < elements; e++) {
        const size_t at = element_offset(dst, e);
        memcpy(snapshot + at, arena + at, size);
    }
}

static inline void compare_arena(trn_status status)
{
    if (memcmp(arena, snapshot, ARENA) != 0)
        say(status == TRN_OK ? "something outside dst was written" : "something was written on failure");
}

/* The arena against what it was: equal after a failure, equal outside dst's elements after a success. */
static inline void check_arena(trn_status status, const trn_tensor *dst)
{
    if (status == TRN_OK) forgive(dst);
    compare_arena(status);
}

/* ---- the tally and the loop ---- */

enum { STATUSES = TRN_EIO + 1, MOST_CALLS = 16 };
static long tally[MOST_CALLS][STATUSES];

static inline void count_status(int call, trn_status status)
{
    if ((unsigned)status >= STATUSES) say("a status that does not exist");
    tally[call][status]++;
}

static inline void *guarded(size_t bytes)
{
    unsigned char *all = (unsigned char *)mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + PAGE, bytes, PROT_READ | PROT_WRITE) != 0) {
        perror("fuzzer: mmap");
        exit(1);
    }
    return all + PAGE;
}

static inline void fill_arena(void)
{
    for (int i = 0; i < ARENA; i++) arena[i] = (unsigned char)cases_u32(&rng);
}

/* As many calls as long.h finds asked for, the kinds taking turns. Returns how many there were. */
static inline long fuzz(int argc, char **argv, void (*const *turn)(void), int turns)
{
    arena = (unsigned char *)guarded(ARENA);
    fuzzing_start(argc, argv, 20000, 1000000);
    while (fuzzing_next(&rng)) {
        if (fuzzing.number % 256 == 0) fill_arena(); /* results come back as operands: refresh, or all becomes NaN */
        turn[fuzzing.number % turns]();
    }
    return fuzzing_end();
}

/* A fuzzer that only sees refusals, or none, proves nothing. */
static inline void print_tally(const char *const *name, int calls, long count)
{
    static const char *const status_name[STATUSES] = { "OK",     "EINVAL", "ESHAPE",       "EFORMAT",
                                                       "ELIMIT", "ENOSPC", "EUNSUPPORTED", "EIO" };
    printf("%-20s", "");
    for (int s = 0; s < STATUSES; s++) printf(" %12s", status_name[s]);
    printf("\n");
    for (int c = 0; c < calls; c++) {
        printf("%-20s", name[c]);
        for (int s = 0; s < STATUSES; s++) printf(" %12ld", tally[c][s]);
        printf("\n");
    }
    for (int c = 0; c < calls && count >= 20000; c++) {
        if (tally[c][TRN_OK] == 0) say("a kind of call was never accepted");
        if (tally[c][TRN_EINVAL] == 0) say("a kind of call was never refused");
    }
}

#endif /* ARENA_H */

/* fuzz_args.c - random argument structs: no crash, no hang, no write on failure, none outside dst on success.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_args [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Every call starts as a plausible one (shapes that fit, formats that meet, views inside one arena between two pages
 * that may not be touched) and then suffers up to four mutations: absurd ranks, sizes and strides, null and aliasing
 * data, enums out of range, numerics out of range, scratch that is too small. After a failure the arena must be as it was and
 * the error must be filled; after a success only elements of dst may differ. Prints how often each status came.
 *
 * One lie is impossible to catch and is therefore not told: a view that is legal but larger than the memory behind it.
 */
#define _DEFAULT_SOURCE 1

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trnmath/trn_convert.h"
#include "trnmath/trn_matmul.h"
#include "twin/cases.h"

enum { ARENA = 16384, PAGE = 65536, SCRATCH = 1 << 21, MOST_WORK = 30000, WATCHDOG_S = 60 };

#define HUGE_SIZE ((int64_t)1 << 50)

static unsigned char *arena, *scratch;
static unsigned char snapshot[ARENA];
static uint64_t rng;
static volatile long call_number;

static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

/* ---- when something goes wrong ---- */

static void say(const char *what)
{
    fprintf(stderr, "call %ld: %s\n", call_number, what);
    exit(1);
}

/* A crash or a call that does not end: the number of the call, by means a signal handler may use. */
static void on_signal(int number)
{
    char text[] = "call 000000000: crashed or did not end\n";
    long n = call_number;
    for (int i = 13; i >= 5; i--, n /= 10) text[i] = (char)('0' + n % 10);
    if (write(2, text, sizeof text - 1) < 0) _exit(3);
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- absurdities ---- */

static int64_t absurd_size(void)
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

static int absurd_int(void)
{
    static const int value[] = { -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 19, 20, 100, 255, 256, INT_MAX, INT_MIN };
    return one_in(8) ? (int)cases_u32(&rng) : value[below((int)(sizeof value / sizeof value[0]))];
}

/* ---- views ---- */

/* Bytes that a legal view claims, or -1 when it is not legal (and so must be refused before its memory is touched). */
static int64_t claimed(const trn_tensor *t)
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
static void keep_inside(trn_tensor *t)
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
static void plausible_strides(trn_tensor *t, bool input)
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

static trn_tensor plausible_view(trn_format format, int rank, const int64_t *shape, int slot, bool input)
{
    trn_tensor t = trn_tensor_nd(format, arena + slot * (ARENA / 3) + 4 * below(8), rank, shape);
    plausible_strides(&t, input);
    for (int i = 0; input && i < rank && i < TRN_MAX_RANK; i++)
        if (shape[i] == HUGE_SIZE) /* such an operand can only be a broadcast */
            for (int j = 0; j < rank && j < TRN_MAX_RANK; j++) t.stride[j] = j != i;
    return t;
}

/* An empty product may be as long as it likes in another direction: there is nothing to do, and it must not take time. */
static void empty_but_huge(int64_t *m, int64_t *n, int64_t *k)
{
    int64_t *const size[3] = { m, n, k };
    const int zero = below(3), huge = (zero + 1 + below(2)) % 3;
    *size[zero] = 0;
    *size[huge] = HUGE_SIZE;
}

static void mutate_view(trn_tensor *t, const trn_tensor *other)
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

static void mutate_numerics(trn_numerics *n)
{
    int count;
    const trni_field *f = trni_numerics_fields(&count) + below(count);
    const int value = one_in(2)   ? absurd_int()
                      : f->choice ? f->choice[below(2)].value
                                  : f->low + below(f->high - f->low + 1);
    memcpy((char *)n + f->offset, &value, f->size); /* a bool may become neither true nor false */
}

/* ---- after the call ---- */

typedef enum call { MATMUL, NC_MATMUL, CONVERT, TENSOR_CHECK, NUMERICS_PARSE, NUMERICS_CHECK, CALLS } call;
enum { STATUSES = TRN_EIO + 1 };
static const char *const call_name[CALLS] = { "trn_matmul",       "trn_nc_matmul",      "trn_convert",
                                              "trn_tensor_check", "trn_numerics_parse", "trn_numerics_check" };
static const char *const status_name[STATUSES] = { "OK",     "EINVAL", "ESHAPE",       "EFORMAT",
                                                   "ELIMIT", "ENOSPC", "EUNSUPPORTED", "EIO" };
static long tally[CALLS][STATUSES];

static void count_status(call c, trn_status status)
{
    if ((unsigned)status >= STATUSES) say("a status that does not exist");
    tally[c][status]++;
}

static void check_error(trn_status status, const trn_error *error)
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

static trn_error fresh_error(void)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    error.status = (trn_status)77;
    error.text[0] = '~';
    return error;
}

/* Element number `at` of dst, in row order, as an offset into the arena. */
static size_t element_offset(const trn_tensor *t, int64_t at)
{
    int64_t stride[TRN_MAX_RANK], offset = 0;
    trni_strides(t, stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        offset += at % t->shape[i] * stride[i];
        at /= t->shape[i];
    }
    return (size_t)((unsigned char *)t->data - arena) + (size_t)offset * trn_format_bytes(t->format);
}

/* The arena against what it was: equal after a failure, equal outside dst's elements after a success. */
static void check_arena(trn_status status, const trn_tensor *dst)
{
    if (status == TRN_OK) {
        const int64_t elements = trn_tensor_elements(*dst);
        const size_t size = trn_format_bytes(dst->format);
        for (int64_t e = 0; e < elements; e++) {
            const size_t at = element_offset(dst, e);
            memcpy(snapshot + at, arena + at, size);
        }
    }
    if (memcmp(arena, snapshot, ARENA) != 0)
        say(status == TRN_OK ? "something outside dst was written" : "something was written on failure");
}

/* ---- matrix products ---- */

static trn_format some_format(bool wide)
{
    static const trn_format format[2][2] = { { TRN_BF16, TRN_F16 }, { TRN_F32, TRN_TF32 } };
    return format[wide][below(2)];
}

/* Bounds the work of what would be accepted: dst [m, n] from depth k. */
static void bound_work(trn_tensor *dst, trn_tensor *a, int a_lane, trn_tensor *b)
{
    const long double work =
        (long double)dst->shape[0] * (long double)dst->shape[1] * (long double)a->shape[1 - a_lane];
    if (work <= MOST_WORK) return;
    if (dst->shape[0] > 20) a->shape[a_lane] = dst->shape[0] = 20;
    if (dst->shape[1] > 20) b->shape[1] = dst->shape[1] = 20;
    if (a->shape[1 - a_lane] > 70) b->shape[0] = a->shape[1 - a_lane] = 70;
}

static int plausible_size(void) { return one_in(10) ? below(130) : below(14); }

static trn_numerics plausible_numerics(void)
{
    trn_numerics n;
    memset(&n, 0, sizeof n);
    if (one_in(2)) n = trn_numerics_default(TRN_TRAINIUM2);
    for (int i = one_in(2) ? below(3) : 0; i > 0; i--) mutate_numerics(&n);
    return n;
}

static void fuzz_matmul(void)
{
    int64_t m = plausible_size(), n = plausible_size(), k = one_in(5) ? below(300) : plausible_size();
    if (one_in(40)) empty_but_huge(&m, &n, &k);
    const int64_t dst_shape[2] = { m, n }, a_shape[2] = { m, k }, b_shape[2] = { k, n };
    static const trn_format result[3] = { TRN_F32, TRN_BF16, TRN_F16 };
    const bool wide = one_in(2);
    trn_numerics numerics = plausible_numerics();
    trn_error error = fresh_error();
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = plausible_view(result[below(3)], 2, dst_shape, 0, false);
    args.a = plausible_view(some_format(wide), 2, a_shape, 1, true);
    args.b = plausible_view(some_format(wide), 2, b_shape, 2, true);
    args.accumulate = one_in(2);
    args.rounding = (trn_rounding)below(6);
    args.seed = cases_next(&rng);
    args.stream = cases_next(&rng);
    args.numerics = one_in(2) ? &numerics : NULL;
    args.error = one_in(3) ? NULL : &error;
    if (one_in(4))
        args.scratch = scratch + below(64),
        args.scratch_bytes = one_in(2) ? (size_t)SCRATCH - 64 : cases_u32(&rng) % 32768;

    trn_tensor *const view[3] = { &args.dst, &args.a, &args.b };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(10)) {
        case 0: args.rounding = (trn_rounding)absurd_int(); break;
        case 1: args.generation = (trn_generation)absurd_int(); break;
        case 2: args.isa = (trn_isa)absurd_int(); break;
        case 3: args.double_row = true; break;
        case 4: (one_in(2) ? &args.a_scale : &args.b_scale)->rank = absurd_int(); break;
        default: mutate_view(view[below(3)], view[below(3)]); break;
        }
    for (int i = 0; i < 3; i++) keep_inside(view[i]);
    bound_work(&args.dst, &args.a, 0, &args.b);
    for (int i = 0; i < 3; i++) keep_inside(view[i]);

    memcpy(snapshot, arena, ARENA);
    const size_t needed = trn_matmul_scratch_bytes(&args);
    const trn_status status = trn_matmul(&args);
    count_status(MATMUL, status);
    if (status == TRN_OK && args.scratch && needed > args.scratch_bytes)
        say("scratch was too small and nobody said so");
    if (args.error) check_error(status, &error);
    check_arena(status, &args.dst);
}

static void fuzz_nc_matmul(void)
{
    const int64_t m = one_in(50) ? 129 : plausible_size(), n = one_in(50) ? 513 : plausible_size(),
                  k = one_in(50) ? 129 : plausible_size();
    const int64_t dst_shape[2] = { m, n }, a_shape[2] = { k, m }, b_shape[2] = { k, n };
    static const trn_generation generation[4] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    const bool wide = one_in(2);
    trn_numerics numerics = plausible_numerics();
    trn_error error = fresh_error();
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = generation[below(4)];
    args.dst =
        plausible_view(args.generation == TRN_TRAINIUM3 && one_in(2) ? TRN_BF16 : TRN_F32, 2, dst_shape, 0, false);
    args.stationary = plausible_view(some_format(wide), 2, a_shape, 1, true);
    args.moving = plausible_view(some_format(wide), 2, b_shape, 2, true);
    args.accumulate = one_in(2);
    args.rounding = (trn_rounding)below(6);
    args.seed = cases_next(&rng);
    args.numerics = one_in(2) ? &numerics : NULL;
    args.error = one_in(3) ? NULL : &error;

    trn_tensor *const view[3] = { &args.dst, &args.stationary, &args.moving };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(10)) {
        case 0: args.rounding = (trn_rounding)absurd_int(); break;
        case 1: args.generation = (trn_generation)absurd_int(); break;
        case 2: args.isa = (trn_isa)absurd_int(); break;
        case 3: args.double_row = true; break;
        case 4: args.is_transpose = true; break;
        default: mutate_view(view[below(3)], view[below(3)]); break;
        }
    for (int i = 0; i < 3; i++) keep_inside(view[i]);
    bound_work(&args.dst, &args.stationary, 1, &args.moving);
    for (int i = 0; i < 3; i++) keep_inside(view[i]);

    memcpy(snapshot, arena, ARENA);
    const trn_status status = trn_nc_matmul(&args);
    count_status(NC_MATMUL, status);
    if (args.error) check_error(status, &error);
    check_arena(status, &args.dst);
}

/* ---- conversions ---- */

static void fuzz_convert(void)
{
    int64_t shape[TRN_MAX_RANK];
    const int rank = 1 + below(TRN_MAX_RANK);
    for (int i = 0; i < rank; i++) shape[i] = rank == 1 ? below(300) : rank == 2 ? below(30) : below(4);
    if (rank >= 3 && one_in(20)) empty_but_huge(&shape[0], &shape[1], &shape[2]);
    trn_error error = fresh_error();
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = plausible_view((trn_format)(1 + below(TRN_CFP8 - 1)), rank, shape, 0, false);
    args.src = plausible_view((trn_format)(1 + below(TRN_CFP8 - 1)), rank, shape, 1, true);
    args.rounding = (trn_rounding)below(6);
    args.overflow = (trn_overflow)below(2);
    args.seed = cases_next(&rng);
    args.sr_bits = below(33);
    args.sr_carry_to_inf = one_in(2);
    args.error = one_in(3) ? NULL : &error;

    trn_tensor *const view[2] = { &args.dst, &args.src };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(10)) {
        case 0: args.rounding = (trn_rounding)absurd_int(); break;
        case 1: args.overflow = (trn_overflow)absurd_int(); break;
        case 2: args.isa = (trn_isa)absurd_int(); break;
        case 3: args.sr_bits = absurd_int(); break;
        case 4: args.src.cfp8.exponent_bits = args.dst.cfp8.exponent_bits = absurd_int(); break;
        default: mutate_view(view[below(2)], view[below(2)]); break;
        }
    for (int i = 0; i < 2; i++) keep_inside(view[i]);
    bool large = claimed(&args.src) > 0;
    long double elements = 1;
    for (int i = 0; large && i < args.src.rank; i++) elements *= (long double)args.src.shape[i];
    if (large && elements > MOST_WORK) /* a broadcast may be long without being large */
        for (int i = 0; i < args.src.rank; i++)
            if (args.src.shape[i] > 4) args.src.shape[i] = 4;

    memcpy(snapshot, arena, ARENA);
    const trn_status status = trn_convert(&args);
    count_status(CONVERT, status);
    if (args.error) check_error(status, &error);
    check_arena(status, &args.dst);
}

/* ---- views and texts ---- */

static void fuzz_tensor(void)
{
    trn_tensor t[2];
    trn_error error = fresh_error();
    trn_status status[2];
    const trni_use use = one_in(2) ? TRNI_INPUT : TRNI_OUTPUT;
    const int rank_wanted = one_in(2) ? 0 : below(4);
    for (int v = 0; v < 2; v++) {
        int64_t shape[TRN_MAX_RANK];
        for (int i = 0; i < TRN_MAX_RANK; i++) shape[i] = one_in(6) ? absurd_size() : below(9);
        const int format = one_in(8) ? absurd_int() : 1 + below(TRN_CFP8);
        t[v] = plausible_view((trn_format)format, below(TRN_MAX_RANK + 1), shape, v, true);
        for (int i = below(4); i > 0; i--) mutate_view(&t[v], &t[below(v + 1)]);
        status[v] = trn_tensor_check(&t[v], "view", use, rank_wanted, NULL);
        count_status(TENSOR_CHECK, status[v]);
        const trn_tensor turned = trn_tensor_transposed(t[v]);
        if (turned.rank != t[v].rank || turned.data != t[v].data) say("a transposed view is another view");
        if (status[v] == TRN_OK && trn_tensor_elements(t[v]) < 0) say("a legal view has a negative number of elements");
        if (status[v] == TRN_OK && claimed(&t[v]) < 0) say("an illegal view was accepted");
        if (status[v] == TRN_OK && trn_tensor_check(&turned, "turned", use, rank_wanted, NULL) != TRN_OK)
            say("transposing made a legal view illegal");
    }
    if (trn_tensor_check(&t[0], "view", use, rank_wanted, &error) != status[0]) say("the same view got another status");
    check_error(status[0], &error);
    if (status[0] == TRN_OK && status[1] == TRN_OK && trn_tensor_overlap(t[0], t[1]) != trn_tensor_overlap(t[1], t[0]))
        say("overlap is not symmetric");
}

static void ignore_line(void *user, const char *text)
{
    if (strlen(text) < 10) say("explain prints an empty line");
    ++*(int *)user;
}

static void fuzz_numerics(void)
{
    static const char *const word[] = { "chains",
                                        "=",
                                        ",",
                                        "1",
                                        "4",
                                        "16",
                                        "k_tile",
                                        "merge",
                                        "pairwise",
                                        "product",
                                        "bf16",
                                        "exact",
                                        "trn1",
                                        "trn3",
                                        "single_chain",
                                        "accumulator_bits",
                                        "53",
                                        "on",
                                        "off",
                                        "flush_sums",
                                        "psum_format",
                                        "bfloat16",
                                        "-",
                                        " ",
                                        "99999999999999999999",
                                        "chains=4",
                                        "merge=ascending",
                                        "sr_bits=8",
                                        "x" };
    char text[200];
    size_t at = 0;
    for (int i = below(9); i > 0; i--) {
        const char *piece = word[below((int)(sizeof word / sizeof word[0]))];
        if (at + strlen(piece) + 2 > sizeof text) break;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", piece, one_in(3) ? "," : "");
    }
    text[at] = '\0';
    if (at && one_in(3)) text[below((int)at)] = (char)below(256); /* may cut it short */

    trn_numerics n, before;
    memset(&n, 0x5a, sizeof n);
    before = n;
    const trn_status status = trn_numerics_parse(&n, text);
    count_status(NUMERICS_PARSE, status);
    if (status != TRN_OK && memcmp(&n, &before, sizeof n) != 0) say("a refused text changed the numerics");
    if (status == TRN_OK && trn_numerics_check(&n, NULL) != TRN_OK) say("an accepted text makes illegal numerics");

    n = plausible_numerics();
    for (int i = below(4); i > 0; i--) mutate_numerics(&n);
    trn_error error = fresh_error();
    const trn_status checked = trn_numerics_check(&n, &error);
    count_status(NUMERICS_CHECK, checked);
    check_error(checked, &error);
    int lines = 0, fields;
    trn_numerics_explain(&n, ignore_line, &lines);
    trni_numerics_fields(&fields);
    if (lines != fields) say("explain does not print every field once");
}

/* ---- the arena, the loop, the table ---- */

static void *guarded(size_t bytes)
{
    unsigned char *all = (unsigned char *)mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + PAGE, bytes, PROT_READ | PROT_WRITE) != 0) {
        perror("fuzz_args: mmap");
        exit(1);
    }
    return all + PAGE;
}

static long number_of(const char *text, const char *what, long fallback)
{
    if (!text) return fallback;
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 0);
    if (errno || *end || n < 0 || n > 999999999) {
        fprintf(stderr, "fuzz_args: %s %s is not a number from 0 to 999999999\n", what, text);
        exit(2);
    }
    return n;
}

static void print_tally(void)
{
    printf("%-20s", "");
    for (int s = 0; s < STATUSES; s++) printf(" %12s", status_name[s]);
    printf("\n");
    for (int c = 0; c < CALLS; c++) {
        printf("%-20s", call_name[c]);
        for (int s = 0; s < STATUSES; s++) printf(" %12ld", tally[c][s]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_matmul, fuzz_nc_matmul, fuzz_convert,
                                          fuzz_tensor, fuzz_matmul,    fuzz_numerics };
    const long count = number_of(argc > 1 ? argv[1] : NULL, "count", cases_level() == 1 ? 20000 : 1000000);
    rng = (uint64_t)number_of(argc > 2 ? argv[2] : NULL, "seed", 1);
    arena = (unsigned char *)guarded(ARENA);
    scratch = (unsigned char *)guarded(SCRATCH);
    for (int i = 0; i < ARENA; i++) arena[i] = (unsigned char)cases_u32(&rng);
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGALRM, on_signal);

    for (call_number = 0; call_number < count; call_number++) {
        if (call_number % 4096 == 0) alarm(WATCHDOG_S);
        if (call_number % 256 == 0) /* results come back as operands: refresh, or all becomes NaN */
            for (int i = 0; i < ARENA; i++) arena[i] = (unsigned char)cases_u32(&rng);
        turn[call_number % 6]();
    }
    print_tally();
    if (count < 20000) return 0;
    /* a fuzzer that only sees refusals, or none, proves nothing */
    for (int c = 0; c < CALLS; c++) {
        if (tally[c][TRN_OK] == 0) say("a kind of call was never accepted");
        if (tally[c][TRN_EINVAL] == 0) say("a kind of call was never refused");
    }
    if (tally[MATMUL][TRN_ENOSPC] == 0 || tally[MATMUL][TRN_EUNSUPPORTED] == 0 || tally[NC_MATMUL][TRN_ELIMIT] == 0)
        say("a status never came");
    return 0;
}

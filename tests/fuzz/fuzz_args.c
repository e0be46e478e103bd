/* fuzz_args.c - random argument structs: no crash, no hang, no write on failure, none outside dst on success.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_args [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Every call starts as a plausible one (shapes that fit, formats that meet, views inside one arena between two pages
 * that may not be touched) and then suffers up to four mutations: absurd ranks, sizes and strides, null and aliasing
 * data, enums out of range, numerics out of range, scratch that is too small. After a failure the arena must be as it
 * was and the error must be filled; after a success only elements of dst may differ. Prints how often each status came.
 *
 * One lie is impossible to catch and is therefore not told: a view that is legal but larger than the memory behind it.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_convert.h"
#include "trnmath/trn_matmul.h"

enum { SCRATCH = 1 << 21 };

static unsigned char *scratch;

/* An empty product may be as long as it likes in another direction: nothing is to do, and that must not take time. */
static void empty_but_huge(int64_t *m, int64_t *n, int64_t *k)
{
    int64_t *const size[3] = { m, n, k };
    const int zero = below(3), huge = (zero + 1 + below(2)) % 3;
    *size[zero] = 0;
    *size[huge] = HUGE_SIZE;
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

/* ---- the calls ---- */

typedef enum call { MATMUL, NC_MATMUL, CONVERT, TENSOR_CHECK, NUMERICS_PARSE, NUMERICS_CHECK, CALLS } call;
static const char *const call_name[CALLS] = { "trn_matmul",       "trn_nc_matmul",      "trn_convert",
                                              "trn_tensor_check", "trn_numerics_parse", "trn_numerics_check" };

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

static trn_xorwow_vector generator; /* as it was seeded: a state has no room for a lie that a call could see */

static void plausible_cfp8(trn_tensor *t)
{
    if (t->format != TRN_CFP8 || one_in(3)) return;
    t->cfp8.exponent_bits = 2 + below(4);
    t->cfp8.bias = one_in(2) ? below(20) : below(300) - 150;
    t->cfp8.no_infinity = one_in(2);
}

static void fuzz_convert(void)
{
    int64_t shape[TRN_MAX_RANK];
    const int rank = 1 + below(TRN_MAX_RANK);
    for (int i = 0; i < rank; i++) shape[i] = rank == 1 ? below(300) : rank == 2 ? below(30) : below(4);
    if (rank >= 3 && one_in(20)) empty_but_huge(&shape[0], &shape[1], &shape[2]);
    trn_error error = fresh_error();
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = plausible_view((trn_format)(1 + below(TRN_CFP8)), rank, shape, 0, false);
    args.src = plausible_view((trn_format)(1 + below(TRN_CFP8)), rank, shape, 1, true);
    plausible_cfp8(&args.dst);
    plausible_cfp8(&args.src);
    args.rounding = (trn_rounding)below(6);
    args.overflow = (trn_overflow)below(2);
    args.seed = cases_next(&rng);
    args.sr_bits = below(33);
    args.sr_carry_to_inf = one_in(2);
    args.xorwow = one_in(4) ? &generator : NULL;
    args.error = one_in(3) ? NULL : &error;

    trn_tensor *const view[2] = { &args.dst, &args.src };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(11)) {
        case 0: args.rounding = (trn_rounding)absurd_int(); break;
        case 1: args.overflow = (trn_overflow)absurd_int(); break;
        case 2: args.isa = (trn_isa)absurd_int(); break;
        case 3: args.sr_bits = absurd_int(); break;
        case 4: view[below(2)]->cfp8.exponent_bits = absurd_int(); break;
        case 5: view[below(2)]->cfp8.bias = absurd_int(); break;
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

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_matmul, fuzz_nc_matmul, fuzz_convert,
                                          fuzz_tensor, fuzz_matmul,    fuzz_numerics };
    scratch = (unsigned char *)guarded(SCRATCH);
    trn_xorwow_vector_seed(&generator, 1);
    const long count = fuzz(argc, argv, turn, 6);
    print_tally(call_name, CALLS, count);
    if (count >= 20000 &&
        (tally[MATMUL][TRN_ENOSPC] == 0 || tally[MATMUL][TRN_EUNSUPPORTED] == 0 || tally[NC_MATMUL][TRN_ELIMIT] == 0))
        say("a status never came");
    return 0;
}

/* fuzz_args.c - random views, conversions and numerics: no crash, no hang, no write where none should be.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_args [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Every call starts as a plausible one (shapes that fit, formats that meet, views inside one arena between two pages
 * that may not be touched) and then suffers up to four mutations: absurd ranks, sizes and strides, null and aliasing
 * data, enums out of range. After a failure the arena must be as it was and the error must be filled; after a success
 * only elements of dst may differ. Prints how often each status came.
 *
 * One lie is impossible to catch and is therefore not told: a view that is legal but larger than the memory behind it.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_convert.h"

/* ---- the calls ---- */

typedef enum call { CONVERT, TENSOR_CHECK, NUMERICS_PARSE, NUMERICS_CHECK, CALLS } call;
static const char *const call_name[CALLS] = { "trn_convert", "trn_tensor_check", "trn_numerics_parse",
                                              "trn_numerics_check" };

/* ---- conversions ---- */

static trn_xorwow_vector generator; /* as it was seeded: a state has no room for a lie that a call could see */

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
    args.integers_once = one_in(2);
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
    const trn_numerics ordinary = trn_numerics_default(TRN_TRAINIUM2);
    int lines = 0, fields = 0;
    trn_numerics_explain(&n, ignore_line, &lines);
    trn_numerics_explain(&ordinary, ignore_line, &fields);
    if (lines != fields || !lines) say("explain does not print every field once");
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_convert, fuzz_tensor, fuzz_numerics };
    trn_xorwow_vector_seed(&generator, 1);
    print_tally(call_name, CALLS, fuzz(argc, argv, turn, 3));
    return 0;
}

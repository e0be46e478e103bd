/* test_signature.c - signatures of processes, without processes: who differs in what, and what is said of it.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/network/collective_signature.h"

enum { MOST = 7 };

static trni_signature plain;
static uint64_t word[MOST][TRNI_SIGNATURE_WORDS];
static trn_error error;

/* Signatures of an all-reduce, all alike. */
static int prepare(void **state)
{
    static const trn_calibration ones = { .rdh = 1, .mesh = 1, .memory = 1 };
    static trn_topology net;
    static trn_collective_args a;
    static trni_views v;
    static trni_pick choice;
    (void)state;
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    memset(&a, 0, sizeof a);
    a.net = &net;
    a.op = TRN_ALL_REDUCE;
    v.a = &a;
    v.wire = TRN_F32;
    v.elements = 5;
    trni_signature_begin(&plain, TRNI_CALL_COLLECTIVE);
    trni_signature_collective(&plain, &v, &ones);
    trni_signature_choice(&plain, &v, &choice);
    trni_signature_close(&plain);
    trni_signature_fared(&plain, TRNI_CALL_BEGINS, TRN_OK, NULL);
    for (int p = 0; p < MOST; p++) memcpy(word[p], plain.word, sizeof plain.word);
    error.text[0] = 0;
    return 0;
}

static int at(const char *field)
{
    for (int i = 0; i < plain.words; i++)
        if (!plain.row[i].owner[0] && !strcmp(plain.row[i].field, field)) return i;
    fail_msg("no field %s", field);
    return 0;
}

static const char *read(int processes, trn_status expected)
{
    const trni_signatures all = { &plain, &word[0][0], processes, "all_reduce", &error };
    assert_int_equal(trni_signatures_read(&all), expected);
    return error.text;
}

static void the_odd_one_out_has_a_majority_against_it(void **state)
{
    (void)state;
    const int field = at("accumulate");
    read(MOST, TRN_OK);
    word[0][field] = TRN_BF16; /* the first is the odd one */
    assert_string_equal(read(3, TRN_EINVAL),
                        "all_reduce: process 0 has accumulate = bfloat16, 2 others have float32; nothing is written");
    word[4][field] = TRN_F16;
    assert_string_equal(read(MOST, TRN_EINVAL),
                        "all_reduce: process 0 has accumulate = bfloat16, 5 others have float32; nothing is written");
    word[0][at("seed")] = 7;
    assert_non_null(strstr(read(MOST, TRN_EINVAL), "; 1 more differs; nothing"));
}

static void without_a_majority_two_are_named(void **state)
{
    (void)state;
    word[1][at("seed")] = 7;
    assert_string_equal(read(2, TRN_EINVAL),
                        "all_reduce: process 1 has seed = 0x7, process 0 has 0x0; nothing is written");
    word[3][at("seed")] = 8;
    assert_string_equal(read(4, TRN_EINVAL),
                        "all_reduce: process 1 has seed = 0x7, process 0 has 0x0; nothing is written");
    word[2][at("seed")] = 9;
    assert_string_equal(read(4, TRN_EINVAL),
                        "all_reduce: process 1 has seed = 0x7, process 0 has 0x0; nothing is written");
}

static void who_abstains_has_no_say(void **state)
{
    (void)state;
    word[0][at("wire")] = word[2][at("wire")] = TRNI_ABSTAINS;
    read(MOST, TRN_OK);
    word[1][at("wire")] = TRN_BF16;
    assert_string_equal(read(4, TRN_EINVAL),
                        "all_reduce: process 3 has wire = float32, process 1 has bfloat16; nothing is written");
    word[1][at("wire")] = TRN_F32;
    word[1][at("seed")] = TRNI_ABSTAINS; /* a seed like any other */
    assert_non_null(strstr(read(4, TRN_EINVAL), "process 1 has seed = 0xffffffffffffffff"));
}

static void what_is_given_is_told_before_what_follows(void **state)
{
    (void)state;
    word[1][at("chips")]++;
    assert_string_equal(read(3, TRN_EINVAL),
                        "all_reduce: process 1 has something else in chips than 2 others; nothing is written");
    word[1][plain.derived]++;
    assert_non_null(strstr(read(3, TRN_EINVAL), "something else in chips than 2 others; 1 more"));
    word[1][at("count")] = 8;
    assert_non_null(strstr(read(3, TRN_EINVAL), "process 1 has count = 8, 2 others have 16; 2 more"));
}

/* Texts count to their last letter, and so does where one ends. */
static void texts_differ_in_each_letter(void **state)
{
    (void)state;
    static const char *const text[] = { "",         "a",        "b",         "abcdefg",   "abcdefh",
                                        "abcdefgh", "abcdefgi", "abcdefghi", "bbcdefghi", "abcdefghij" };
    enum { TEXTS = sizeof text / sizeof text[0] };
    for (int i = 0; i < TEXTS; i++)
        for (int j = 0; j < i; j++) assert_true(trni_hash_text(1, text[i]) != trni_hash_text(1, text[j]));
    assert_true(trni_hash_text(trni_hash_text(1, "ab"), "c") != trni_hash_text(trni_hash_text(1, "a"), "bc"));
    assert_true(trni_hash_text(1, "a") != trni_hash_text(2, "a"));
}

/* One word after the other: the first that differs is told, whatever stands behind it. */
static void each_shared_word_counts(void **state)
{
    (void)state;
    for (int i = TRNI_SIGNATURE_MAGIC; i < TRNI_SIGNATURE_STATUS; i++) {
        word[1][i]++;
        read(3, TRN_EINVAL);
        word[1][TRNI_SIGNATURE_STATUS] = TRN_EIO; /* of whom nothing else is to be believed */
        read(3, TRN_EINVAL);
        memcpy(word[1], plain.word, sizeof plain.word);
    }
    for (int i = TRNI_SIGNATURE_CALL; i < plain.words; i++) {
        word[2][i] ^= 1;
        read(3, TRN_EINVAL);
        memcpy(word[2], plain.word, sizeof plain.word);
        read(3, TRN_OK);
    }
}

/* Whatever another version sends, the words that all versions share are read first. */
static void versions_differ_in_a_sentence(void **state)
{
    (void)state;
    for (int i = TRNI_SIGNATURE_STATUS; i < TRNI_SIGNATURE_WORDS; i++) word[1][i] = UINT64_MAX;
    word[1][TRNI_SIGNATURE_LIBRARY] = (uint64_t)9 << 32 | 8 << 16 | 7;
    assert_non_null(strstr(read(3, TRN_EINVAL), "process 1 has trnmath's version = 9.8.7, 2 others have " TRN_VERSION));
    word[1][TRNI_SIGNATURE_LIBRARY] = plain.word[TRNI_SIGNATURE_LIBRARY];
    word[1][TRNI_SIGNATURE_RESULTS]++;
    assert_non_null(strstr(read(3, TRN_EINVAL), "the digest of trnmath's results"));
    memset(word[1], 0, sizeof word[1]);
    memcpy(word[1], "an older signature", 16);
    assert_non_null(strstr(read(3, TRN_EINVAL), "another version of trnmath?"));
}

static void who_fails_is_quoted(void **state)
{
    trni_signature failed = plain;
    const trn_error said = { TRN_ESHAPE, "dst[1] has 4 elements" };
    (void)state;
    trni_signature_fared(&failed, TRNI_CALL_BEGINS, TRN_ESHAPE, &said);
    memcpy(word[2], failed.word, sizeof failed.word);
    assert_string_equal(read(3, TRN_ESHAPE),
                        "all_reduce: process 2 cannot go on (dst[1] has 4 elements); nothing is written");
    memset(&word[2][TRNI_SIGNATURE_BODY], 'x', sizeof said.text); /* without an end */
    assert_non_null(strstr(read(3, TRN_ESHAPE), "xxxx); nothing is written"));
}

static void tables_leave_room(void **state)
{
    (void)state;
    assert_in_range(plain.words, 40, TRNI_SIGNATURE_WORDS / 3);
    assert_int_equal(trni_signature_bytes(&plain), 8 * plain.words);
    for (int i = 0; i < plain.words; i++)
        for (int j = 0; j < i; j++)
            assert_false(!strcmp(plain.row[i].owner, plain.row[j].owner) &&
                         !strcmp(plain.row[i].field, plain.row[j].field));
}

/* A permutation's targets, an all-to-all's counts: each of them counts, and those of another collective none. */
static void lists_of_a_collective(void **state)
{
    (void)state;
    static const trn_collective other[] = { TRN_ALL_REDUCE, TRN_BROADCAST };
    const trn_topology net = trn_topology_ring(4, 1e9, 1e-6);
    int target[4] = { 1, 2, 3, 0 };
    int64_t counts[16] = { 1, 2, 3 };
    trn_collective_args a = { .net = &net, .op = TRN_PERMUTE, .targets = target, .counts = counts };
    const uint64_t there = trni_hash_targets(&a);
    for (int i = 0; i < 4; i++) {
        const int kept = target[i];
        target[i] = -1;
        assert_true(trni_hash_targets(&a) != there);
        target[i] = kept;
    }
    assert_true(trni_hash_targets(&a) == there && trni_hash_counts(&a) == 0);
    a.op = TRN_ALL_TO_ALL;
    const uint64_t counted = trni_hash_counts(&a);
    for (int i = 0; i < 16; i++) {
        counts[i] ^= 1;
        assert_true(trni_hash_counts(&a) != counted);
        counts[i] ^= 1;
    }
    a.counts = NULL;
    assert_true(trni_hash_counts(&a) != counted && trni_hash_targets(&a) == 0);
    for (int i = 0; i < 2; i++) {
        a.op = other[i];
        assert_true(trni_hash_targets(&a) == 0 && trni_hash_counts(&a) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_odd_one_out_has_a_majority_against_it, prepare),
        cmocka_unit_test_setup(without_a_majority_two_are_named, prepare),
        cmocka_unit_test_setup(who_abstains_has_no_say, prepare),
        cmocka_unit_test_setup(what_is_given_is_told_before_what_follows, prepare),
        cmocka_unit_test_setup(versions_differ_in_a_sentence, prepare),
        cmocka_unit_test_setup(texts_differ_in_each_letter, prepare),
        cmocka_unit_test_setup(each_shared_word_counts, prepare),
        cmocka_unit_test_setup(who_fails_is_quoted, prepare),
        cmocka_unit_test_setup(tables_leave_room, prepare),
        cmocka_unit_test(lists_of_a_collective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

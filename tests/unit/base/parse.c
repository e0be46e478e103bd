/* base/parse.c - words, numbers and signs are read as they are spelled; texts are written as far as there is room.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: at the reader that texts of meshes and specs go through, before those give them a meaning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/base/parse.h"
#include "unit/base/groups.h"

static trni_reader reader_of(const char *text)
{
    const trni_reader r = { .name = "text", .text = text, .at = text };
    return r;
}

/* Every character, alone, before a letter and after one. */
static void words_are_letters_digits_and_underscores(void **state)
{
    (void)state;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digits[] = "0123456789";
    for (int c = 1; c < 256; c++) {
        const char text[] = { (char)c, 'q', (char)c, 0 };
        const bool letter = strchr(letters, (char)c) != NULL, digit = strchr(digits, (char)c) != NULL;
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        trni_reader first = reader_of(text), second = reader_of(text + 1);
        const trni_word a = trni_reader_word(&first), b = trni_reader_word(&second);
        assert_int_equal(a.length, letter ? 3 : blank ? 1 : 0);
        assert_ptr_equal(first.at, text + (letter ? 3 : blank ? 2 : 0));
        assert_int_equal(b.length, letter || digit ? 2 : 1);
        assert_ptr_equal(second.at, text + 1 + b.length);
        trni_reader taken = reader_of(text);
        assert_int_equal(trni_reader_take(&taken, 'q'), blank || c == 'q');
        assert_ptr_equal(taken.at, text + (blank ? 2 : c == 'q' ? 1 : 0));
    }
    trni_reader r = reader_of(" data=8");
    const trni_word word = trni_reader_word(&r);
    assert_true(trni_word_is(word, "data"));
    assert_false(trni_word_is(word, "dat") || trni_word_is(word, "data=") || trni_word_is(word, "date"));
}

static void numbers_fit_or_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int number, characters;
    } row[] = {
        { "1", 1, 1 },
        { " 42x", 42, 3 },
        { "007", 7, 3 },
        { "", 0, 0 },
        { "x", 0, 0 },
        { "-1", 0, 0 },
        { "2147483646", 2147483646, 10 },
        { "2147483647", INT_MAX, 10 },
        { "2147483648", 0, 10 },
        { "21474836470", 0, 11 },
        { "99999999999999999999999999", 0, 26 },
        { "1/2", 1, 1 },
        { "1:2", 1, 1 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trni_reader r = reader_of(row[i].text);
        assert_int_equal(trni_reader_number(&r), row[i].number);
        assert_int_equal(r.at - row[i].text, row[i].characters);
    }
}

static void what_was_expected_is_told_with_its_place(void **state)
{
    (void)state;
    trn_error error;
    trni_reader r = reader_of("ab cd");
    trni_reader_word(&r);
    trni_reader_skip(&r);
    assert_int_equal(trni_reader_expected(&r, "a number", &error), TRN_EINVAL);
    assert_string_equal(error.text, "text \"ab cd\": expected a number at character 4, found \"c\"");
    trni_reader_word(&r);
    assert_int_equal(trni_reader_expected(&r, "more", &error), TRN_EINVAL);
    assert_string_equal(error.text, "text \"ab cd\": expected more at character 6, found the end");
}

/* Into any room, in one piece and in three: what fits is there, the count is of all, nothing lies behind the room. */
static void texts_are_cut_where_the_room_ends(void **state)
{
    (void)state;
    static const char whole[] = "tensor=12@x";
    const size_t length = strlen(whole);
    for (size_t capacity = 0; capacity < length + 4; capacity++)
        for (int pieces = 0; pieces < 2; pieces++) {
            char room[32], expected[32];
            memset(room, '#', sizeof room);
            memset(expected, '#', sizeof expected);
            if (capacity) snprintf(expected, capacity, "%s", whole);
            trni_writer w = { room, capacity, 0 };
            if (pieces) {
                trni_write(&w, "tensor=");
                trni_write_number(&w, 12);
                trni_write(&w, "@x");
            } else {
                trni_write(&w, whole);
            }
            assert_int_equal(w.used, length);
            assert_memory_equal(room, expected, sizeof room);
        }
}

int base_parse(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_letters_digits_and_underscores),
        cmocka_unit_test(numbers_fit_or_are_none),
        cmocka_unit_test(what_was_expected_is_told_with_its_place),
        cmocka_unit_test(texts_are_cut_where_the_room_ends),
    };
    return cmocka_run_group_tests_name("base_parse", tests, NULL, NULL);
}

/* test_shown.c - text from files as people read it: on a terminal, in CSV, JSON and HTML, and in sentences; say.h's
 * printf against the C library's.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "app/cli.c"
#include "app/completion.c"
#include "app/suggest.c"
#include "app/table.c"
#include "app/colours.c"
#include "app/page.c"
#include "app/chart.c"
#include "app/chart_bars.c"
#include "app/chart_draw.c"
#include "app/chart_heat.c"
#include "twin/cases.h"

const char app_name[] = "test_shown";

/* What a text looks like everywhere. NULL: as it is. */
static const struct {
    const char *text, *terminal, *csv, *json, *html;
} row[] = {
    { "plain name", NULL, NULL, NULL, NULL },
    { "caf\xc3\xa9", NULL, NULL, NULL, NULL },
    { "a\x1b[31mred", "a\\x1b[31mred", "a\\x1b[31mred", "a\\u001b[31mred", "a\\x1b[31mred" },
    { "a\rb\tc", "a\\rb\\tc", "a\\rb\\tc", "a\\u000db\\u0009c", "a\\rb\\tc" },
    { "\x7f\x01", "\\x7f\\x01", "\\x7f\\x01", "\\u007f\\u0001", "\\x7f\\x01" },
    { "bad \xff\xc3 end", "bad \\xff\\xc3 end", "bad \\xff\\xc3 end", "bad \\\\xff\\\\xc3 end", "bad \\xff\\xc3 end" },
    { "x\xe2\x80\xaey", "x\\u202ey", "x\\u202ey", "x\\u202ey", "x\\u202ey" },
    { "x\xe2\x80\x8by", "x\\u200by", "x\\u200by", "x\\u200by", "x\\u200by" },
    { "c1 \xc2\x9b", "c1 \\u009b", "c1 \\u009b", "c1 \\u009b", "c1 \\u009b" },
    { "tag \xf3\xa0\x80\x81", "tag \\U0e0001", "tag \\U0e0001", "tag \\udb40\\udc01", "tag \\U0e0001" },
    { "=cmd()", NULL, "\"'=cmd()\"", NULL, NULL },
    { "+1+1", NULL, "\"'+1+1\"", NULL, NULL },
    { "@sum", NULL, "\"'@sum\"", NULL, NULL },
    { "-x", NULL, "\"'-x\"", NULL, NULL },
    { "\t=1", "\\t=1", "\"'\\t=1\"", "\\u0009=1", "\\t=1" },
    { "-1.5e3", NULL, NULL, NULL, NULL },
    { "-", NULL, NULL, NULL, NULL },
    { "a,b", NULL, "\"a,b\"", NULL, NULL },
    { "say \"hi\"", NULL, "\"say \"\"hi\"\"\"", "say \\\"hi\\\"", "say &quot;hi&quot;" },
    { "<script>&'", NULL, NULL, NULL, "&lt;script&gt;&amp;&#39;" },
};

static char *printed(void (*print)(FILE *, const char *), const char *text)
{
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    assert_non_null(out);
    print(out, text);
    fclose(out);
    return all;
}

static void as_table(FILE *out, const char *text, bool csv)
{
    static const app_column column = { "name", APP_TEXT, "", "" };
    app_table t;
    app_table_start(&t, &column, 1);
    app_row(&t);
    app_text(&t, "%s", text);
    if (csv)
        app_print_csv(out, &t);
    else
        app_print_table(out, &t);
    app_table_free(&t);
}

static void as_csv(FILE *out, const char *text) { as_table(out, text, true); }
static void as_terminal(FILE *out, const char *text) { as_table(out, text, false); }

static void is(void (*print)(FILE *, const char *), const char *before, const char *text, const char *want)
{
    char whole[500];
    char *got = printed(print, text);
    const bool quoted = print == app_print_json_string, line = print == as_csv || print == as_terminal;
    snprintf(whole, sizeof whole, "%s%s%s%s", before, want ? want : text, quoted ? "\"" : "", line ? "\n" : "");
    assert_string_equal(got, whole);
    free(got);
}

static void test_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        is(as_terminal, "  name\n  ", row[i].text, row[i].terminal);
        is(as_csv, "name\n", row[i].text, row[i].csv);
        is(app_print_json_string, "\"", row[i].text, row[i].json);
        is(app_escape, "", row[i].text, row[i].html);
    }
}

/* Cut between characters, with a mark, to any number of bytes. */
static void test_cut(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x1b z\xff";
    for (size_t room = 4; room < 40; room++) {
        char shown[40];
        memset(shown, 'X', sizeof shown);
        io_show_in(text, strlen(text), shown, room);
        const size_t n = strlen(shown);
        assert_true(n < room && io_utf8(shown, n));
        assert_true(strchr(shown, '\x1b') == NULL);
        assert_true(n >= 3 && (!memcmp(shown + n - 3, "\xe2\x80\xa6", 3) || !strcmp(shown + n - 4, "\\xff")));
    }
}

/* Any bytes at all: what is shown is UTF-8 without a character that nobody sees. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint64_t rng = 5;
    for (int round = cases_rounds(20000, 400000); round > 0; round--) {
        char text[24], shown[64], why[IO_WHY];
        const int size = cases_below(&rng, (int)sizeof text);
        for (int i = 0; i < size; i++) {
            const int high = cases_one_in(&rng, 2) ? 0xe2 : 0x80 + cases_below(&rng, 0x80);
            text[i] = (char)(cases_one_in(&rng, 2) ? high : 1 + cases_below(&rng, 0x7f));
        }
        io_show_in(text, (size_t)size, shown, sizeof shown);
        assert_true(io_utf8(shown, strlen(shown)));
        for (const char *at = shown; *at; at++) assert_true((unsigned char)*at >= ' ' && *at != 0x7f);
        io_fail(why, "a\nfile", "tensor '%.*s' is bad", size, text);
        assert_true(io_utf8(why, strlen(why)) && strncmp(why, "a\\nfile: ", 9) == 0);
    }
}

static void test_long_names(void **state)
{
    (void)state;
    char *name = malloc(5001), *got, why[IO_WHY];
    assert_non_null(name);
    memset(name, 'n', 5000);
    name[5000] = '\0';
    got = printed(as_csv, name);
    assert_int_equal(strlen(got), 5 + 5001); /* whole where a program reads it */
    free(got);
    got = printed(as_terminal, name);
    assert_true(strlen(got) < 420 && strstr(got, "nnn\xe2\x80\xa6\n"));
    free(got);
    io_fail(why, name, "tensor '%s' is bad", name);
    assert_true(strlen(why) < IO_WHY && strstr(why, "n\xe2\x80\xa6: tensor"));
    assert_string_equal(why + strlen(why) - 3, "\xe2\x80\xa6");
    free(name);
}

/* ---- io/say.h ---- */

/* Numbers, and texts that need nothing, are those of snprintf. */
#define AS_PRINTF(...)                                                                                                 \
    do {                                                                                                               \
        char want[200], got[200];                                                                                      \
        snprintf(want, sizeof want, __VA_ARGS__);                                                                      \
        assert_ptr_equal(io_say_in(got, sizeof got, 199, __VA_ARGS__), got);                                           \
        assert_string_equal(got, want);                                                                                \
    } while (0)

static void test_say_as_printf(void **state)
{
    (void)state;
    const long long most = INT64_MAX;
    AS_PRINTF("plain");
    AS_PRINTF("100 %%, %d of %i", -7, 8);
    AS_PRINTF("%5d|%-5d|%05d|%+d|% d|%x|%#X|%o", 42, 42, 42, 42, 42, 255u, 255u, 8u);
    AS_PRINTF("%lld %llu %ld %lu %zu", most, (unsigned long long)-1, -5L, 5UL, sizeof most);
    AS_PRINTF("%hd %hhu %jd %td", (short)-3, (unsigned char)200, (intmax_t)-9, (ptrdiff_t)9);
    AS_PRINTF("%g %.3f %12.4e %-9.1f| %a %G", 0.1, 2.5, 1e-300, 3.25, 1.5, 1e30);
    AS_PRINTF("%*d|%-*d|%.*f", 6, 1, 6, 2, 2, 3.14159);
    AS_PRINTF("%s|%8s|%-8s|%.3s|%.*s|%c", "text", "right", "left", "abc", 2, "cut here", 'x');
    AS_PRINTF("%p", (void *)&most);
}

static void says(const char *want, const char *format, ...)
{
    char got[64];
    va_list list;
    va_start(list, format);
    io_say_list(got, sizeof got, 20, format, list);
    va_end(list);
    assert_string_equal(got, want);
}

/* The format's own lines stay, those of a text do not; what is cut has a mark, and a width counts characters. */
static void test_say(void **state)
{
    (void)state;
    says("a\\nb: 3\n", "%s: %d\n", "a\nb", 3);
    says("'\\x1b]0;x\\x07'", "'%s'", "\x1b]0;x\a");
    says("\\u202e|\xc3\xa9", "%s|%s", "\xe2\x80\xae", "\xc3\xa9");
    says("<abcde\xe2\x80\xa6>", "<%.8s>", "abcdefghijk");
    says("<abcdefgh>", "<%.8s>", "abcdefgh");
    says("<\xc3\xa9\xc3\xa9\xe2\x80\xa6>", "<%.8s>", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    says("<aaaaaaaaaaaaaaaaa\xe2\x80\xa6>", "<%s>", "aaaaaaaaaaaaaaaaaaaaaaaaa");
    says("<abc>", "<%.*s>", 3, "abcdef");
    says("[\xc3\xa9  ][  \xc3\xa9]", "[%-3s][%3s]", "\xc3\xa9", "\xc3\xa9");
    says("(null)", "%s", (const char *)NULL);
    says("\\x1b", "%c", 27);
    says("\\xff", "%.*s", 1, "\xff\xff");
}

static void test_say_room(void **state)
{
    (void)state;
    const char *all = "a\xc3\xa9-b\xe2\x82\xac-12345";
    for (size_t room = 4; room < 24; room++) {
        char got[24];
        memset(got, 'X', sizeof got);
        io_say_in(got, room, 20, "a%s-b%s-%d", "\xc3\xa9", "\xe2\x82\xac", 12345);
        const size_t n = strlen(got);
        assert_true(n < room && io_utf8(got, n));
        if (room > strlen(all))
            assert_string_equal(got, all);
        else
            assert_true(strcmp(got + n - 3, IO_MARK) == 0 && strncmp(got, all, n - 3) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_say_as_printf), cmocka_unit_test(test_say), cmocka_unit_test(test_say_room),
        cmocka_unit_test(test_everywhere),    cmocka_unit_test(test_cut), cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

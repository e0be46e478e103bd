/* test_chart.c - the pictures of examples/tools/common/app/chart.h: well-formed XML whatever they are given, gaps,
 * ticks, escapes.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
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

const char app_name[] = "test_chart";

/* ---- what a reader of XML checks ---- */

static const char *after_name(const char *s)
{
    while (*s && !strchr(" />", *s)) s++;
    return s;
}

/* From behind "<name": attributes, each name="value", and the end; NULL when they are none. *closed: "/>". */
static const char *after_attributes(const char *s, bool *closed)
{
    while (*s == ' ') {
        s += strcspn(s, "=<>\"");
        if (s[0] != '=' || s[1] != '"') return NULL;
        s += 2 + strcspn(s + 2, "<\"");
        if (*s++ != '"') return NULL;
    }
    *closed = *s == '/';
    s += *closed;
    return *s == '>' ? s + 1 : NULL;
}

static bool entity(const char *s)
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strncmp(s, known[i], strlen(known[i]))) return true;
    return false;
}

static bool well_formed(const char *s)
{
    const char *open[16];
    int depth = 0;
    while (*s) {
        bool closed = false;
        const int n = app_utf8(s);
        if (n == 0 || (n == 1 && *s < ' ' && *s != '\n') || (*s == '&' && !entity(s))) return false;
        if (*s != '<') {
            s += n;
        } else if (s[1] == '/') {
            const size_t length = (size_t)(after_name(s + 2) - (s + 2));
            if (depth-- == 0 || strncmp(open[depth], s + 2, length) || s[2 + length] != '>') return false;
            s += length + 3;
        } else {
            if (depth == 16) return false;
            open[depth] = s + 1;
            s = after_attributes(after_name(s + 1), &closed);
            if (!s) return false;
            depth += !closed;
        }
    }
    return depth == 0;
}

/* ---- pictures as text ---- */

typedef struct picture {
    char *text;
    size_t size;
    FILE *out;
} picture;

static FILE *start(picture *p)
{
    p->out = open_memstream(&p->text, &p->size);
    assert_non_null(p->out);
    return p->out;
}

static const char *finish(picture *p)
{
    fclose(p->out);
    if (!well_formed(p->text)) fail_msg("not well-formed: %s", p->text);
    assert_null(strstr(p->text, "nan"));
    assert_null(strstr(p->text, "inf\""));
    return p->text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *s = text; (s = strstr(s, what)) != NULL; s += strlen(what)) n++;
    return n;
}

static char *lines(const chart *c)
{
    picture p;
    chart_lines(start(&p), c);
    finish(&p);
    return p.text;
}

/* The path of the only line. */
static char *path_of(const chart *c)
{
    char *text = lines(c);
    char *d = strstr(text, "d=\"M0 0");
    assert_non_null(d);
    d = strdup(d + 3);
    *strchr(d, '"') = 0;
    free(text);
    return d;
}

/* ---- tests ---- */

static void the_checker_finds_faults(void **state)
{
    static const char *const bad[] = { "<a>", "<a></b>", "</a>", "<a b=c/>", "<a b=\"<\"/>", "a & b", "\x01", "\xff" };
    (void)state;
    assert_true(well_formed("<a b=\"1\"><c/>x &amp; y</a>"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(well_formed(bad[i]));
}

static void what_does_not_show_breaks_a_line(void **state)
{
    const double x[] = { 1, 2, 3, 4, 5 }, whole[] = { 1, 2, 3, 4, 5 }, broken[] = { 1, 2, NAN, 4, 5 };
    const double endless[] = { 1, 2, INFINITY, -4, 5 }, below[] = { 1, 2, 0, -4, 5 };
    const struct {
        const double *y;
        bool log;
        int pieces;
    } row[] = { { whole, false, 1 },  { broken, false, 2 }, { endless, false, 2 },
                { endless, true, 2 }, { below, false, 1 },  { below, true, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const chart_line line = { .name = "y", .x = x, .y = row[i].y, .count = 5 };
        char *path = path_of(&(chart){ .line = &line, .lines = 1, .y_log = row[i].log, .alone = true });
        assert_int_equal(count(path, "M") - 1, row[i].pieces); /* but for the M0 0 of each */
        free(path);
    }
}

static void lines_are_clipped(void **state)
{
    const double x[] = { 0, 1, 2 }, y[] = { -10, 10, -10 };
    const chart_line line = { .x = x, .y = y, .count = 3 };
    (void)state;
    char *path = path_of(&(chart){ .line = &line, .lines = 1, .y_low = 0, .y_high = 5, .alone = true });
    assert_int_equal(count(path, "M") - 1, 2); /* up, and down again */
    for (char *s = path + 4; *s;) {
        char *end;
        const double at_x = strtod(s + 1, &end), at_y = strtod(end, &s);
        assert_true(at_x >= 0 && at_x <= CHART_WIDTH && at_y >= 0 && at_y <= HEIGHT);
    }
    free(path);
}

static void any_range_has_axes(void **state)
{
    static const double end[][2] = { { 0, 0 },          { 1, 1 },       { -5, -5 },           { 1e300, 1e300 },
                                     { -1e300, 1e300 }, { 0, 1e-310 },  { 1, 1 + 0x1p-52 },   { 1e-300, 1e300 },
                                     { 3, 4 },          { 1e-9, 2e-9 }, { NAN, NAN },         { 1e306, 1e307 },
                                     { 16, 65536 },     { 0.9, 1.1 },   { 123456, 123456.5 }, { -1e-4, 3e7 } };
    (void)state;
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
        for (int log = 0; log < 4; log++) {
            const chart_line line = { .name = "y", .x = end[i], .y = end[i], .count = 2, .dots = true };
            char *text = lines(&(chart){ .title = "t", .line = &line, .lines = 1, .x_log = log & 1, .y_log = log & 2 });
            const bool none = strstr(text, "nothing to show") != NULL;
            if (!none && count(text, "class=\"tick\"") < 3) fail_msg("%g %g: %s", end[i][0], end[i][1], text);
            free(text);
        }
}

static void ticks_are_read_as_people_write_them(void **state)
{
    static const struct {
        double value, step;
        const char *text;
    } row[] = {
        { 0, 1, "0" },
        { 5, 5, "5" },
        { 0.25, 0.05, "0.25" },
        { 20000, 10000, "20k" },
        { 1.5e6, 5e5, "1.5M" },
        { -3, 1, "-3" },
        { 1e-5, 1e-5, "10\xe2\x81\xbb\xe2\x81\xb5" },
        { 2e-5, 1e-5,
          "2\xc3\x97"
          "10\xe2\x81\xbb\xe2\x81\xb5" },
        { 1e20, 1e20, "10\xc2\xb2\xe2\x81\xb0" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char text[40];
        assert_string_equal(chart_number(text, sizeof text, row[i].value, row[i].step), row[i].text);
    }
}

static const char *const hostile[] = { "</text><script>alert(1)</script>",
                                       "a&b<c>\"d'",
                                       "\x01\x02\x1b[31m",
                                       "\xff\xfe broken \xc3",
                                       "\xed\xa0\x80\xef\xbf\xbf",
                                       "",
                                       "%s%n" };
enum { HOSTILES = sizeof hostile / sizeof hostile[0] };

static void names_are_text(void **state)
{
    char many[3000];
    (void)state;
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    for (int i = 0; i <= HOSTILES; i++) {
        const char *name = i < HOSTILES ? hostile[i] : many;
        const double at[] = { 1, 2 };
        const chart_line line = { .name = name, .x = at, .y = at, .count = 2, .colour = -7 };
        const chart_bar bar = { .name = name, .label = name, .value = 1, .colour = 99 };
        char *text = lines(&(chart){ .title = name, .x_title = name, .y_title = name, .line = &line, .lines = 1 });
        assert_null(strstr(text, "<script"));
        free(text);
        picture p;
        chart_bars(start(&p), name, &bar, 1, true);
        assert_null(strstr(finish(&p), "<script"));
        free(p.text);
        chart_heat(start(&p), name, at, 1, 2, true);
        finish(&p);
        free(p.text);
    }
}

static void many_points_stay_a_small_picture(void **state)
{
    enum { POINTS = 200000 };
    double *x = malloc(POINTS * sizeof *x), *y = malloc(POINTS * sizeof *y);
    (void)state;
    for (int i = 0; i < POINTS; i++) x[i] = i, y[i] = i % 2 ? 1 : i == 100000 ? -50 : -1;
    const chart_line line = { .x = x, .y = y, .count = POINTS, .dots = true };
    char *path = path_of(&(chart){ .line = &line, .lines = 1, .alone = true });
    assert_true(strlen(path) < 200000);
    assert_true(count(path, "M") == 2);
    double most = 0;
    for (char *s = path + 4; *s;) {
        char *end;
        strtod(s + 1, &end);
        most = fmax(most, strtod(end, &s));
    }
    assert_true(most > HEIGHT - 120); /* the one low point is there */
    free(path);
    free(x);
    free(y);
}

static void bars_may_be_anything(void **state)
{
    const chart_bar bar[] = { { "a", NULL, 3, 0 },
                              { "b", NULL, -2, 1 },
                              { NULL, NULL, NAN, 2 },
                              { "d", "", 1e308, 3 },
                              { "e", NULL, INFINITY, 4 } };
    picture p;
    (void)state;
    for (int n = 0; n <= 5; n++) {
        chart_bars(start(&p), n & 1 ? "bars" : NULL, bar, n, n & 2);
        /* what has no length has no bar; in a page, each bar is drawn in each width */
        assert_int_equal(count(finish(&p), "rx=\"3\""), (n < 3 ? n : 2) * (n & 2 ? 1 : SHEETS));
        free(p.text);
    }
}

static void heat_maps_may_be_anything(void **state)
{
    static double large[500 * 300];
    const double small[] = { 1, NAN, -INFINITY, 0, 0.5, -1 }, none[] = { NAN };
    picture p;
    (void)state;
    chart_heat(start(&p), "heat", small, 2, 3, true);
    assert_int_equal(count(finish(&p), "cell paper"), 2); /* the cell, and the legend's word for it */
    assert_true(count(p.text, "cell k1") > 2);
    free(p.text);
    chart_heat(start(&p), "heat", none, 1, 1, false);
    free((finish(&p), p.text));
    chart_heat(start(&p), NULL, none, 0, 0, false);
    assert_non_null(strstr(finish(&p), "nothing to show"));
    free(p.text);
    large[499 * 300 + 299] = 7; /* the last is seen, although cells stand for several */
    chart_heat(start(&p), "heat", large, 500, 300, true);
    assert_int_equal(count(finish(&p), "cell k2"), SHADES + 1);
    free(p.text);
}

/* Along the sides stand names, or round numbers of the data; the legend has a unit, and round ends of its range. */
static void heat_maps_have_sides(void **state)
{
    static const char *const setting[] = { "bf16", "<fp8>" };
    static double value[2 * 32];
    picture p;
    (void)state;
    for (int i = 0; i < 64; i++) value[i] = i < 32 ? 1e-3 : 0.2;
    value[5] = 0;
    chart_map map = { .title = "Error by layer",
                      .value = value,
                      .rows = 2,
                      .columns = 32,
                      .alone = true,
                      .row = { .title = "setting", .name = setting },
                      .column = { .title = "layer", .first = 100 },
                      .value_title = "relative error",
                      .unit = "%",
                      .log = true };
    chart_heat_map(start(&p), &map);
    finish(&p);
    static const char *const there[] = { ">bf16<",
                                         ">&lt;fp8&gt;<",
                                         ">setting<",
                                         ">layer<",
                                         ">100<",
                                         ">130<",
                                         ">relative error, %<",
                                         ">0.001<",
                                         "magnitude is 0.2<",
                                         ">1<",
                                         ">not above 0<",
                                         "<title>setting bf16, layer 103: 0.001 %</title>",
                                         ": no number</title>" };
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        if (!strstr(p.text, there[i])) fail_msg("no %s in %s", there[i], p.text);
    assert_null(strstr(p.text, ">5<")); /* no number of a column, but 105 is */
    free(p.text);
    map.column = (chart_side){ .first = 0, .each = 64 };
    map.log = false;
    chart_heat_map(start(&p), &map);
    assert_non_null(strstr(finish(&p), ">500<")); /* 32 columns of 64 each: numbers to 2047 */
    assert_non_null(strstr(p.text, ">2000<"));
    free(p.text);
    map.column = (chart_side){ .first = 2040, .each = 0.5 };
    chart_heat_map(start(&p), &map);
    assert_non_null(strstr(finish(&p), ">2050<"));
    assert_null(strstr(p.text, ">2042.5<"));
    free(p.text);
}

/* A part of a page is drawn in each width, from narrow to wide, and none of them says more than its name. */
static void pages_get_each_width(void **state)
{
    const chart_bar bar[] = { { "a long name of a bar", "and a label as long as that", 1, 0 }, { "b", "c", 2, 1 } };
    picture p;
    (void)state;
    chart_bars(start(&p), "a title that is too long for one line of the narrowest of the sheets", bar, 2, false);
    finish(&p);
    assert_int_equal(count(p.text, "<svg "), SHEETS);
    assert_int_equal(count(p.text, "class=\"figure\""), 1);
    assert_int_equal(count(p.text, "role=\"img\""), SHEETS);
    assert_int_equal(count(p.text, "<desc>"), SHEETS);
    assert_int_equal(count(p.text, "class=\"title\""), SHEETS + 2); /* it takes two lines on two of them */
    free(p.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_finds_faults),
        cmocka_unit_test(what_does_not_show_breaks_a_line),
        cmocka_unit_test(lines_are_clipped),
        cmocka_unit_test(any_range_has_axes),
        cmocka_unit_test(ticks_are_read_as_people_write_them),
        cmocka_unit_test(names_are_text),
        cmocka_unit_test(many_points_stay_a_small_picture),
        cmocka_unit_test(bars_may_be_anything),
        cmocka_unit_test(heat_maps_may_be_anything),
        cmocka_unit_test(heat_maps_have_sides),
        cmocka_unit_test(pages_get_each_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

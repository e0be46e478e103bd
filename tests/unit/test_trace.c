/* test_trace.c - traces as JSON, read back by cJSON, and as a picture, read back tag by tag.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(HAVE_CJSON)
#include <cjson/cJSON.h>
#endif

#include "trnmath/trn_trace.h"
#include "twin/cases.h"
#include "twin/paper.h"

static const char *const names[] = { "nc_matmul", "tensor_tensor", "activation",
                                     "iota",      "dma_copy",      "a \"name\" <&> \\ \t" };

/* Five tracks, each without overlaps, given in any order. */
static trn_trace made(int64_t count, uint64_t seed)
{
    trn_trace t;
    double at[5] = { 0 };
    memset(&t, 0, sizeof t);
    t.event = (trn_trace_event *)malloc((size_t)(count + 1) * sizeof *t.event);
    assert_non_null(t.event);
    t.capacity = count;
    t.track[0] = "TensorE";
    t.track[1] = "VectorE";
    t.track[2] = "ScalarE";
    t.track[3] = "GpSimdE";
    t.track[4] = "D<M>A \"x\"";
    t.tracks = 5;
    for (int64_t i = 0; i < count; i++) {
        const int k = cases_below(&seed, 5);
        const double gap = 1e-9 * cases_below(&seed, 300), length = 1e-9 * (1 + cases_below(&seed, 900));
        trn_trace_add(&t, k, names[cases_below(&seed, 6)], at[k] + gap, length,
                      i % 3 ? "dst: x, 128 x 512 float32" : "");
        at[k] += gap + length;
    }
    return t;
}

/* ---- JSON ---- */

static void json_is_what_perfetto_opens(void **state)
{
    (void)state;
#if defined(HAVE_CJSON)
    static const int64_t sizes[] = { 0, 1, 257, 100000 };
    for (unsigned s = 0; s < 4; s++) {
        trn_trace t = made(sizes[s], s);
        paper p = { NULL, 0, 0 };
        double after[6] = { 0 }, before = -1;
        int64_t events = 0, tracks = 0;
        trn_trace_json(&t, keep, &p);
        cJSON *json = cJSON_Parse(p.text);
        assert_non_null(json);
        cJSON *one;
        cJSON_ArrayForEach(one, cJSON_GetObjectItem(json, "traceEvents")) {
            const char *kind = cJSON_GetObjectItem(one, "ph")->valuestring,
                       *name = cJSON_GetObjectItem(one, "name")->valuestring;
            const int tid = cJSON_GetObjectItem(one, "tid")->valueint;
            if (strcmp(name, "thread_name") == 0) {
                assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(one, "args"), "name")->valuestring,
                                    t.track[tracks]);
                assert_int_equal(tid, ++tracks);
            }
            if (strcmp(kind, "X") != 0) continue;
            const double ts = cJSON_GetObjectItem(one, "ts")->valuedouble,
                         dur = cJSON_GetObjectItem(one, "dur")->valuedouble;
            const trn_trace_event *e = &t.event[events++];
            assert_string_equal(name, e->name);
            assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(one, "args"), "text")->valuestring, e->text);
            assert_true(fabs(ts - 1e6 * e->start_s) < 1e-6 && fabs(dur - 1e6 * e->duration_s) < 1e-6);
            assert_true(ts >= before && ts >= after[tid] - 2e-6);
            before = ts;
            after[tid] = ts + dur;
        }
        assert_int_equal(events, sizes[s]);
        assert_int_equal(tracks, 5);
        cJSON_Delete(json);
        free(p.text);
        free(t.event);
    }
#else
    puts("SKIP: cJSON is not there");
#endif
}

static void strange_names_are_escaped(void **state)
{
    (void)state;
    trn_trace_event event[3];
    trn_trace t;
    paper p = { NULL, 0, 0 };
    memset(&t, 0, sizeof t);
    t.event = event;
    t.capacity = 2;
    t.track[0] = "A";
    t.tracks = 1;
    t.title = "\x01\"\\\n\xc3\xa9\xff";
    trn_trace_add(&t, 0, "a name of more than thirty-one ch\xc3\xa4racters", 0, 1e-6, "\xc3");
    trn_trace_add(&t, 0, "0123456789012345678901234567890\xc3\xa4", 1e-6, 1e-6, "<b>");
    trn_trace_add(&t, 0, "lost", 2e-6, 1e-6, "");
    assert_int_equal(t.count, 2);
    assert_int_equal(t.lost, 1);
    trn_trace_json(&t, keep, &p);
    assert_non_null(strstr(p.text, "\"name\":\"\\u0001\\\"\\\\\\u000a\xc3\xa9?\""));
    assert_non_null(strstr(p.text, "\"name\":\"a name of more than thirty-one \""));
    assert_non_null(strstr(p.text, "\"text\":\"?\""));
#if defined(HAVE_CJSON)
    cJSON *json = cJSON_Parse(p.text);
    assert_non_null(json);
    cJSON_Delete(json);
#endif
    free(p.text);
}

/* What turns writing round or hides is shown; what is no UTF-8 by RFC 3629, or nothing XML has, is a mark. */
static void unseen_characters_are_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json, *xml;
    } row[] = { { "x\xe2\x80\xaey", "x\\u202ey", "x\\u202ey" },
                { "\xef\xbb\xbf\xc2\x85", "\\ufeff\\u0085", "\\ufeff\\u0085" },
                { "\xf3\xa0\x81\x81", "\\udb40\\udc41", "\\U0e0041" },
                { "\x1b]0;\x7f", "\\u001b]0;\\u007f", "\\u001b]0;\\u007f" },
                { "\xed\xa0\x80", "???", "???" },
                { "\xf4\x90\x80\x80", "????", "????" },
                { "\xc0\xaf\xe0\x9f\xbf", "?????", "?????" },
                { "\xef\xbf\xbf", "???", "???" },
                { "\xf0\x9f\x98\x80\xe2\x82\xac", NULL, NULL } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int xml = 0; xml < 2; xml++) {
            paper p = { NULL, 0, 0 };
            trni_text t = { .write = keep, .user = &p };
            const char *want = xml ? row[i].xml : row[i].json;
            trni_text_escaped(&t, row[i].text, xml);
            trni_text_flush(&t);
            assert_string_equal(p.text, want ? want : row[i].text);
            free(p.text);
        }
}

static void sorting_is_by_time(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 200; round++) {
        static trn_trace_event event[64];
        trn_trace t;
        double sum = 0, sorted = 0;
        memset(&t, 0, sizeof t);
        t.event = event;
        t.capacity = 64;
        const int n = cases_below(&seed, 65);
        for (int i = 0; i < n; i++) {
            const double start = cases_below(&seed, 20);
            trn_trace_add(&t, cases_below(&seed, 3), "x", start, 1 + i, "");
            sum += start * (1 + i);
        }
        trn_trace_sort(&t);
        for (int i = 0; i < n; i++) {
            sorted += event[i].start_s * event[i].duration_s;
            if (i)
                assert_true(event[i - 1].start_s < event[i].start_s ||
                            (event[i - 1].start_s == event[i].start_s && event[i - 1].track <= event[i].track));
        }
        assert_true(sum == sorted);
    }
}

/* Events that are in order stay as they are, equal ones too; what lies behind the last is not asked. */
static void sorted_events_stay(void **state)
{
    (void)state;
    static const char *const name[] = { "a", "b", "c", "d" };
    for (int n = 0; n <= 4; n++) {
        trn_trace_event event[5];
        trn_trace t;
        memset(&t, 0, sizeof t);
        memset(event, 0, sizeof event); /* the one behind them would be the first */
        t.event = event;
        t.capacity = 5;
        for (int i = 0; i < n; i++) trn_trace_add(&t, 0, name[i], 5, 1, "");
        trn_trace_sort(&t);
        assert_int_equal(t.count, n);
        for (int i = 0; i < n; i++) assert_string_equal(event[i].name, name[i]);
    }
}

/* ---- the picture ---- */

typedef struct tags {
    int64_t bars, texts;
    char name[64][16];
    int depth;
} tags;

/* Well formed: tags close in order, attributes are quoted, nothing is bare. Counts the bars. */
static void read_svg(const char *s, tags *t)
{
    memset(t, 0, sizeof *t);
    for (; *s; s++) {
        if (*s == '&') {
            assert_true(!strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) || !strncmp(s, "&gt;", 4) ||
                        !strncmp(s, "&quot;", 6));
            continue;
        }
        if (*s != '<') {
            assert_true(*s != '>' && ((unsigned char)*s >= 0x20 || *s == '\n'));
            continue;
        }
        if (s[1] == '/') {
            const char *name = t->name[--t->depth];
            assert_true(t->depth >= 0 && strncmp(s + 2, name, strlen(name)) == 0 && s[2 + strlen(name)] == '>');
            s = strchr(s, '>');
            continue;
        }
        const char *begin = ++s;
        while (*s != ' ' && *s != '>' && *s != '/') s++;
        assert_true(t->depth < 64 && s - begin < 16);
        snprintf(t->name[t->depth++], 16, "%.*s", (int)(s - begin), begin);
        t->bars += strncmp(begin, "rect class=\"c", 13) == 0;
        t->texts += strncmp(begin, "text", 4) == 0;
        for (bool quoted = false; quoted || *s != '>'; s++) {
            assert_true(*s && (quoted || *s != '<'));
            if (*s == '"') quoted = !quoted;
            if (!quoted && *s == '/' && s[1] == '>') t->depth--;
        }
    }
    assert_int_equal(t->depth, 0);
}

static void pictures_are_well_formed_and_small(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 0, 1, 40, 100000 };
    for (unsigned s = 0; s < 4; s++)
        for (int window = 0; window < 2; window++) {
            trn_trace t = made(sizes[s], s);
            paper p = { NULL, 0, 0 };
            tags found;
            t.title = "softmax <128 x 512> & \"co\"";
            const trn_trace_svg_args args = { .trace = &t,
                                              .write = keep,
                                              .user = &p,
                                              .start_s = window ? 2e-6 : 0,
                                              .end_s = window ? 3e-6 : 0,
                                              .width = window ? 0 : 800 };
            trn_trace_svg(&args);
            read_svg(p.text, &found);
            assert_true(found.bars <= 5 * 800 + 32); /* no more than there are pixels, and the legend */
            if (sizes[s] == 40 && !window) assert_int_equal(found.bars, 40 + 6);
            if (sizes[s] == 0) assert_int_equal(found.bars, 0);
            assert_true(strstr(p.text, "prefers-color-scheme: dark") && strstr(p.text, "VectorE"));
            assert_true(p.used < 1200000);
            free(p.text);
            free(t.event);
        }
}

/* Names of a file in a picture: what is not seen is shown, what is no UTF-8 a question mark. */
static void strange_names_in_pictures(void **state)
{
    (void)state;
    trn_trace_event event[2];
    trn_trace t = { .event = event, .capacity = 2, .track = { "A\002B" }, .tracks = 1 };
    paper p = { NULL, 0, 0 };
    t.title = "a\x01\t<\x7f>\xff";
    trn_trace_add(&t, 0, "long\x1b", 0, 1, "");
    trn_trace_add(&t, 0, "thin", 2, 1e-6, "");
    const trn_trace_svg_args args = { .trace = &t, .write = keep, .user = &p };
    trn_trace_svg(&args);
    assert_non_null(strstr(p.text, "a\\u0001\\u0009&lt;\\u007f&gt;?"));
    assert_non_null(strstr(p.text, ">A\\u0002B</text>"));
    assert_non_null(strstr(p.text, "<title>long\\u001b, "));
    for (int i = 0; i < 10; i++) { /* in either scheme */
        char colour[32];
        snprintf(colour, sizeof colour, ".c%d { fill: #", i);
        const char *first = strstr(p.text, colour);
        assert_non_null(first);
        assert_non_null(strstr(first + 1, colour));
    }
    assert_non_null(strstr(p.text, "width=\"0.70\"")); /* what is thin can still be seen */
    free(p.text);
}

/* Golden: hashes of pictures as this version draws them, so that no line moves unnoticed; what they are made of is
 * checked elsewhere in this file. When they are to change, these are what the test prints. */
static void pictures_are_what_they_were(void **state)
{
    (void)state;
    static const uint64_t golden[] = { 0x82bba4d43d0a3f08, 0x49213a4ecb2ac858, 0x0f173af2b540af5f, 0xbf56837e5f0c9fdd };
    bool same = true;
    for (unsigned i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        trn_trace t = made(i < 2 ? 40 : 3000, i);
        paper p = { NULL, 0, 0 };
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        t.title = "golden";
        const trn_trace_svg_args args = { .trace = &t,
                                          .write = keep,
                                          .user = &p,
                                          .start_s = i % 2 ? 1e-6 : 0,
                                          .end_s = i % 2 ? 4e-6 : 0,
                                          .width = i % 2 ? 640 : 0 };
        trn_trace_svg(&args);
        for (size_t k = 0; k < p.used; k++) hash = (hash ^ (unsigned char)p.text[k]) * 0x100000001b3u;
        if (hash != golden[i]) print_message("0x%016llx, ", (unsigned long long)hash);
        same = same && hash == golden[i];
        free(p.text);
        free(t.event);
    }
    assert_true(same);
}

/* Thin events of one pixel become one bar that says how many they are; the shares in front add up. */
static void thin_events_join_and_shares_are_right(void **state)
{
    (void)state;
    trn_trace_event event[1001];
    trn_trace t;
    paper p = { NULL, 0, 0 };
    memset(&t, 0, sizeof t);
    t.event = event;
    t.capacity = 1001;
    t.track[0] = "VectorE";
    t.track[1] = "DMA";
    t.tracks = 2;
    for (int i = 0; i < 100; i++)
        trn_trace_add(&t, 0, i == 50 ? "long" : "short", 1e-10 * i, i == 50 ? 9e-11 : 5e-11, "");
    trn_trace_add(&t, 1, "dma_copy", 50e-6, 50e-6, "");
    const trn_trace_svg_args args = { .trace = &t, .write = keep, .user = &p };
    trn_trace_svg(&args);
    assert_non_null(strstr(p.text, "<title>100 instructions, long, "));
    assert_non_null(
        strstr(p.text, ">DMA</text><text class=\"faint\" x=\"138\" y=\"122.0\" text-anchor=\"end\">50 %</text>"));
    assert_non_null(strstr(p.text, ">100 us</text>"));
    assert_non_null(strstr(p.text, "dma_copy <tspan class=\"faint\">50.00 us"));
    free(p.text);
}

/* It ends where the last event does, whichever of them that is. */
static void pictures_reach_the_last_end(void **state)
{
    (void)state;
    for (int longest = 0; longest < 3; longest++) {
        trn_trace_event event[3];
        trn_trace t;
        paper p = { NULL, 0, 0 };
        memset(&t, 0, sizeof t);
        t.event = event;
        t.capacity = 3;
        t.track[0] = "VectorE";
        t.tracks = 1;
        for (int i = 0; i < 3; i++) trn_trace_add(&t, 0, "work", 0, i == longest ? 100e-6 : 40e-6, "");
        const trn_trace_svg_args args = { .trace = &t, .write = keep, .user = &p };
        trn_trace_svg(&args);
        assert_non_null(strstr(p.text, ">100 us</text>"));
        free(p.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_what_perfetto_opens),
        cmocka_unit_test(strange_names_are_escaped),
        cmocka_unit_test(unseen_characters_are_shown),
        cmocka_unit_test(sorting_is_by_time),
        cmocka_unit_test(sorted_events_stay),
        cmocka_unit_test(pictures_reach_the_last_end),
        cmocka_unit_test(pictures_are_well_formed_and_small),
        cmocka_unit_test(thin_events_join_and_shares_are_right),
        cmocka_unit_test(strange_names_in_pictures),
        cmocka_unit_test(pictures_are_what_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_topology_svg.c - pictures of networks, read back tag by tag: all links are there, and all inside the frame.
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

#include "trnmath/trn_topology.h"
#include "twin/cases.h"
#include "twin/paper.h"

enum { MOST_TEXTS = 1200 };

/* ---- a reader of what is written: elements in order, each with its attributes and its own text ---- */

typedef struct label {
    double x0, x1, y0, y1;
} label;

typedef struct picture {
    double width, height;
    int wires, chips, hubs, labels, shades[16];
    uint64_t hash; /* of the whole text */
    label label[MOST_TEXTS];
} picture;

static uint64_t hashed(const char *text, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

/* An attribute's value; an empty string when the element has none of that name. */
static const char *attribute(const char *tag, const char *name)
{
    static char value[4][400];
    static int turn;
    char key[32];
    char *room = value[turn = (turn + 1) % 4];
    snprintf(key, sizeof key, " %s=\"", name);
    const char *end = strchr(tag, '>'), *at = strstr(tag, key);
    room[0] = 0;
    if (!at || at > end) return room;
    at += strlen(key);
    snprintf(room, 400, "%.*s", (int)strcspn(at, "\""), at);
    return room;
}

static double number(const char *tag, const char *name) { return atof(attribute(tag, name)); }

static void inside(const picture *p, double x, double y)
{
    if (!(x >= 0 && x <= p->width && y >= 0 && y <= p->height))
        fail_msg("%.1f, %.1f is outside of %.0f x %.0f", x, y, p->width, p->height);
}

static void path_is_inside(const picture *p, const char *d)
{
    char *end;
    while (*d) {
        assert_true(strchr("MLCZ ", *d));
        if (*d++ == 'Z') break;
        for (int pair = 0; pair < 3 && *d && !strchr("MLCZ", *d); pair++) {
            const double x = strtod(d, &end);
            assert_true(end > d);
            d = end;
            const double y = strtod(d, &end);
            assert_true(end > d);
            d = end;
            inside(p, x, y); /* a curve lies within its points */
        }
    }
}

/* About as wide as a plain font is. */
static void read_label(picture *p, const char *tag, const char *text)
{
    const char *style = attribute(tag, "class");
    const double size = strstr(style, "big") ? 17 : strstr(style, "tiny") || strstr(style, "small") ? 11 : 12;
    const char anchor = attribute(tag, "text-anchor")[0];
    double length = 0;
    for (const char *s = text; strncmp(s, "</text>", 7); s++) {
        if (*s == '<')
            s = strchr(s, '>'); /* a tspan */
        else if (*s == '&')
            s = strchr(s, ';'), length++;
        else if (((unsigned char)*s & 0xc0) != 0x80)
            length++;
    }
    label *l = &p->label[p->labels++];
    assert_true(p->labels < MOST_TEXTS);
    const double wide = 0.52 * size * length, x = number(tag, "x"), y = number(tag, "y");
    const double before = anchor == 'm' ? wide / 2 : anchor == 'e' ? wide : 0;
    l->x0 = x - before;
    l->x1 = l->x0 + wide;
    l->y0 = y - 0.75 * size;
    l->y1 = y + 0.05 * size;
    if (attribute(tag, "transform")[0]) { /* upright, about its middle */
        const double mid_x = x, mid_y = y - 4;
        l->x0 = mid_x - size / 2;
        l->x1 = mid_x + size / 2;
        l->y0 = mid_y - wide / 2;
        l->y1 = mid_y + wide / 2;
    }
    inside(p, l->x0, l->y0);
    inside(p, l->x1, l->y1);
}

static void labels_do_not_overlap(const picture *p)
{
    for (int i = 0; i < p->labels; i++)
        for (int j = 0; j < i; j++) {
            const label *a = &p->label[i], *b = &p->label[j];
            if (a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1)
                fail_msg("texts overlap near %.0f, %.0f and %.0f, %.0f", a->x0, a->y0, b->x0, b->y0);
        }
}

/* Tags close in order, attributes are quoted, nothing is bare; every place is inside the frame. */
static void read_picture(const char *s, picture *p)
{
    char open[32][16];
    int depth = 0;
    memset(p, 0, sizeof *p);
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
            assert_true(depth > 0);
            const char *name = open[--depth];
            assert_true(strncmp(s + 2, name, strlen(name)) == 0 && s[2 + strlen(name)] == '>');
            s = strchr(s, '>');
            continue;
        }
        const char *tag = s, *end = s;
        for (bool quoted = false; quoted || *end != '>'; end++) {
            assert_true(*end && (quoted || *end != '<' || end == s));
            if (*end == '"') quoted = !quoted;
        }
        assert_true(depth < 32);
        snprintf(open[depth], 16, "%.*s", (int)strcspn(s + 1, " >/"), s + 1);
        const char *name = open[depth];
        char style[40];
        snprintf(style, sizeof style, "%s", attribute(tag, "class"));
        if (end[-1] != '/') depth++;
        s = end;
        if (!strcmp(name, "svg")) {
            assert_int_equal(sscanf(attribute(tag, "viewBox"), "0 0 %lf %lf", &p->width, &p->height), 2);
            assert_true(p->width > 0 && p->height > 0);
        }
        if (!strcmp(name, "rect")) {
            const double x = number(tag, "x"), y = number(tag, "y");
            assert_true(number(tag, "width") > 0 && number(tag, "height") > 0);
            inside(p, x, y);
            inside(p, x + number(tag, "width"), y + number(tag, "height"));
            p->chips += !strcmp(style, "chip");
            p->hubs += !strcmp(style, "hub");
        }
        if (!strcmp(name, "path")) {
            path_is_inside(p, attribute(tag, "d"));
            const char *shade = strstr(style, " l");
            p->wires += strncmp(style, "wire", 4) == 0;
            if (shade) p->shades[shade[2] - '0']++;
        }
        if (!strcmp(name, "text")) read_label(p, tag, end + 1);
    }
    assert_int_equal(depth, 0);
    assert_true(p->labels > 1);
    labels_do_not_overlap(p);
}

static picture drawn(const trn_topology *net, const char *title, const double *load, size_t most_bytes)
{
    static picture found;
    paper p = { NULL, 0, 0 }, again = { NULL, 0, 0 };
    trn_error error;
    trn_topology_svg_args args;
    memset(&error, 0, sizeof error);
    memset(&args, 0, sizeof args);
    args.net = net;
    args.write = keep;
    args.user = &p;
    args.title = title;
    args.load = load;
    args.load_unit = "<B> & \"so on\"";
    args.error = &error;
    if (trn_topology_svg(&args) != TRN_OK) fail_msg("%s", error.text);
    args.user = &again;
    assert_int_equal(trn_topology_svg(&args), TRN_OK);
    assert_true(p.used == again.used && memcmp(p.text, again.text, p.used) == 0);
    assert_true(p.used < most_bytes);
    assert_non_null(strstr(p.text, "prefers-color-scheme: dark"));
    read_picture(p.text, &found);
    found.hash = hashed(p.text, p.used);
    free(p.text);
    free(again.text);
    return found;
}

/* ---- systems ---- */

/* Chips, switches and links that are drawn; the links of the legend are `kinds` more. */
static void systems_are_drawn_link_by_link(void **state)
{
    static const struct {
        trn_system system;
        const char *preset;
        int chips, hubs, links, kinds;
    } row[] = {
        { TRN_TRN1_2XLARGE, "sa", 1, 0, 0, 0 },
        { TRN_TRN1_32XLARGE, "sa", 16, 0, 32, 1 },
        { TRN_TRN1N_32XLARGE, "sa", 16, 0, 32, 1 },
        { TRN_TRN2_48XLARGE, "sa", 16, 0, 32, 1 },
        { TRN_TRN2U_48XLARGE, "sa", 16, 0, 32, 1 },
        { TRN_TRN2_ULTRASERVER, "sa", 64, 0, 192, 2 },
        { TRN_TRN3_GEN1_ULTRASERVER, "sa", 64, 2, 32 + 64 + 32, 3 },
        { TRN_TRN3_GEN1_ULTRASERVER, "sa/planes=2", 64, 4, 32 + 64 + 32, 3 },
        { TRN_TRN3_GEN2_ULTRASERVER, "sa", 144, 36 + 2, 144 + 144 + 72, 3 },
        { TRN_TRN3_GEN2_ULTRASERVER, "doc/planes=4", 144, 36 + 8, 144 + 144 + 72, 3 },
        { TRN_TRN1_ULTRACLUSTER, "sa", 16, 1, 32 + 16, 2 },
        { TRN_PROJECT_RAINIER, "sa", 64, 1, 192 + 64, 3 },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_topology net = trn_topology_preset(row[i].system, row[i].preset);
        const picture p = drawn(&net, NULL, NULL, 70000);
        assert_int_equal(p.chips, row[i].chips);
        assert_int_equal(p.hubs, row[i].hubs);
        assert_int_equal(p.wires, row[i].links + row[i].kinds);
        /* with loads: the two halves of each link, and a legend of seven shades */
        double *load = (double *)calloc((size_t)trn_topology_link_count(&net) + 1, sizeof *load);
        assert_non_null(load);
        const int64_t last = (int64_t)row[i].chips * trn_topology_slots(&net);
        for (int64_t k = 0; k < last; k++) load[k] = (double)k;
        const picture q = drawn(&net, "loads", load, 200000);
        assert_int_equal(q.wires, 2 * row[i].links + 7);
        int idle = 0, halves = 0;
        for (int s = 0; s < 7; s++) halves += q.shades[s];
        idle = q.shades[0];
        assert_int_equal(halves, 2 * row[i].links + 7);
        assert_int_equal(idle, 1 + (row[i].links > 0));
        for (int64_t k = 0; k < last; k++) load[k] = k == 3 ? 1e-9 : k % 2 ? NAN : -1;
        if (last > 3) assert_int_equal(drawn(&net, "one", load, 200000).shades[6], 2);
        free(load);
    }
}

/* Golden: hashes of these pictures as this version draws them, so that no line moves unnoticed. What the pictures are
 * made of is checked elsewhere in this file; when they are to change, these numbers are what the test prints. */
static void pictures_are_what_they_were(void **state)
{
    static const int torus[] = { 4, 3 }, cube[] = { 3, 4, 2 };
    static const uint64_t golden[][2] = {
        { 0x7de72082160e5b63, 0x0f3e1d9dd965c373 },
        { 0xc8150fb22e595f09, 0x1282855c752e83d1 },
        { 0x078b3983ff427096, 0xdef56c3de488869e },
        { 0x7c54674a2d06f27f, 0x838b28dc9d51ee61 },
        { 0x6fe9af1da725ce34, 0 },
        { 0x25a4a10ad1d1bcf7, 0 },
        { 0x2ce6a7c2bab01279, 0x8b5a266ad106deaf },
        { 0xf0a7b7d8e6496ebb, 0 },
        { 0xb8a2330032acf468, 0x7e43c78746197fdc },
        { 0x4ccc6c24b8cb1b9f, 0 },
        { 0xce3b0d6032eb6f2a, 0x9b24763abfad963d },
        { 0xfde697806164d884, 0 },
        { 0x832771f01c0cdb9c, 0xd882689bb8bca0b6 },
        { 0x2226c46d14a3c858, 0x96d038edf03a2f8f },
    };
    const trn_topology net[] = {
        trn_topology_preset(TRN_TRN2_48XLARGE, "sa"),
        trn_topology_preset(TRN_TRN2_ULTRASERVER, "sa"),
        trn_topology_preset(TRN_TRN3_GEN1_ULTRASERVER, "sa"),
        trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, "doc/planes=4"),
        trn_topology_preset(TRN_TRN1_ULTRACLUSTER, "sa"),
        trn_topology_preset(TRN_PROJECT_RAINIER, "sa"),
        trn_topology_ring(7, 1e9, 1e-6),
        trn_topology_ring(400000, 1e9, 0),
        trn_topology_switch(9, 1e9, 1e-6),
        trn_topology_switch(400000, 1e9, 0),
        trn_topology_fully_connected(6, 1e9, 1e-6),
        trn_topology_fully_connected(5000, 1e9, 0),
        trn_topology_torus(2, torus, 1e9, 0),
        trn_topology_torus(3, cube, 1e9, 0),
    };
    (void)state;
    bool same = sizeof net / sizeof net[0] == sizeof golden / sizeof golden[0];
    for (unsigned i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const int64_t links = trn_topology_link_count(&net[i]), kept = links < 20000 ? links : 0;
        double *load = (double *)calloc((size_t)kept + 1, sizeof *load);
        assert_non_null(load);
        for (int64_t k = 0; k < kept; k++) load[k] = (double)(k * 7919 % 1000);
        const uint64_t plain = drawn(&net[i], "golden", NULL, 200000).hash;
        const uint64_t loaded = kept ? drawn(&net[i], "golden", load, 200000).hash : 0;
        free(load);
        if (plain == golden[i][0] && loaded == golden[i][1]) continue;
        print_message("        { 0x%016llx, 0x%016llx },\n", (unsigned long long)plain, (unsigned long long)loaded);
        same = false;
    }
    assert_true(same);
}

static void one_level_is_a_circle(void **state)
{
    (void)state;
    for (int n = 1; n <= 64; n += n < 8 ? 1 : 7) {
        const trn_topology ring = trn_topology_ring(n, 1e9, 1e-6), hub = trn_topology_switch(n, 1e9, 1e-6);
        picture p = drawn(&ring, NULL, NULL, 30000);
        assert_int_equal(p.chips, n);
        assert_int_equal(p.wires, n == 1 ? 0 : n == 2 ? 2 : n + 1);
        p = drawn(&hub, NULL, NULL, 30000);
        assert_int_equal(p.chips, n);
        assert_int_equal(p.wires, n == 1 ? 0 : n + 1);
        assert_int_equal(p.hubs, n > 1);
        if (n > 32) continue;
        const trn_topology full = trn_topology_fully_connected(n, 1e9, 1e-6);
        p = drawn(&full, NULL, NULL, 60000);
        assert_int_equal(p.wires, n == 1 ? 0 : n * (n - 1) / 2 + 1);
    }
}

/* One level that counts: a size of 1 does not, a level that others wire does. */
static void what_is_a_circle(void **state)
{
    (void)state;
    static const struct {
        trn_wiring wiring[2];
        int size[2];
        bool circle;
    } row[] = {
        { { TRN_WIRING_RING, TRN_WIRING_RING }, { 6, 1 }, true },
        { { TRN_WIRING_RING, TRN_WIRING_RING }, { 1, 6 }, true },
        { { TRN_WIRING_RING, TRN_WIRING_RING }, { 6, 2 }, false },
        { { TRN_WIRING_NONE, TRN_WIRING_SWITCH }, { 3, 2 }, false },
        { { TRN_WIRING_NONE, TRN_WIRING_SWITCH }, { 1, 5 }, true },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_level level[2];
        static trni_canvas paper;
        trni_drawing n;
        memset(level, 0, sizeof level);
        memset(&paper, 0, sizeof paper);
        memset(&n, 0, sizeof n);
        for (int l = 0; l < 2; l++) {
            level[l].name = l ? "outer" : "inner";
            level[l].wiring = row[i].wiring[l];
            level[l].size = row[i].size[l];
            level[l].bytes_per_s = 1e9;
        }
        const trn_topology net = trn_topology_hierarchy("two levels", 2, level);
        assert_int_equal(net.chips, row[i].size[0] * row[i].size[1]);
        paper.net = &net;
        n.paper = &paper;
        n.levels = 2;
        n.chips = net.chips;
        if (trni_circle_fits(&n) != row[i].circle) fail_msg("row %u", i);
    }
}

static void far_too_many_chips_are_a_small_picture(void **state)
{
    const int huge[] = { 400, 1000 }, four[] = { 4, 4, 4, 4 };
    (void)state;
    const trn_topology net[] = { trn_topology_ring(400000, 1e9, 0), trn_topology_switch(400000, 1e9, 0),
                                 trn_topology_fully_connected(5000, 1e9, 0), trn_topology_torus(2, huge, 1e9, 0),
                                 trn_topology_torus(4, four, 1e9, 0) };
    for (int i = 0; i < 5; i++) assert_in_range(drawn(&net[i], NULL, NULL, 20000).chips, 4, 8);
    const trn_topology rainier = trn_topology_of(TRN_PROJECT_RAINIER);
    drawn(&rainier, NULL, NULL, 50000);
}

/* ---- any network, any names ---- */

static void any_network_is_well_formed(void **state)
{
    static const char *const name[] = {
        "x",
        "a <b> & \"c\"",
        "r\xc3\xa4t",
        "\xff\xfe",
        "",
        "tab\tand\nline",
        "a name that is much longer than any picture of a network has room for, and more"
    };
    static double load[40000];
    uint64_t seed = 5;
    (void)state;
    for (int round = 0; round < cases_rounds(400, 4000); round++) {
        trn_level level[TRN_MAX_LEVELS];
        const int levels = 1 + cases_below(&seed, 4);
        memset(level, 0, sizeof level);
        for (int l = 0; l < levels; l++) {
            level[l].name = name[cases_below(&seed, 7)];
            level[l].wiring = (trn_wiring)cases_below(&seed, 4);
            level[l].size = 1 + cases_below(&seed, l ? 6 : 10);
            level[l].bytes_per_s = 1e9 * (1 + cases_below(&seed, 3));
            if (cases_one_in(&seed, 3)) {
                level[l].rate.known = TRN_MEASURED;
                level[l].rate.where = name[6];
            }
            if (level[l].wiring == TRN_WIRING_SWITCH && l > 0) level[l].planes = cases_below(&seed, 3);
        }
        const trn_topology net = trn_topology_hierarchy(name[cases_below(&seed, 7)], levels, level);
        if (net.chips == 0 || trn_topology_link_count(&net) > 40000) continue;
        const bool loads = cases_one_in(&seed, 4);
        for (int64_t i = 0; i < trn_topology_link_count(&net); i++) load[i] = cases_below(&seed, 100);
        drawn(&net, cases_one_in(&seed, 2) ? name[cases_below(&seed, 7)] : NULL, loads ? load : NULL, 400000);
    }
}

/* A network made by hand, without names and sources. */
static void names_may_be_missing(void **state)
{
    trn_topology net;
    (void)state;
    memset(&net, 0, sizeof net);
    net.levels = 2;
    net.chips = 12;
    net.ranks_per_chip = 1;
    net.system = TRN_SYSTEM_COUNT;
    net.level[0].wiring = TRN_WIRING_RING;
    net.level[1].wiring = TRN_WIRING_SWITCH;
    net.level[0].size = 2;
    net.level[1].size = 6;
    net.level[0].bytes_per_s = net.level[1].bytes_per_s = 1e9;
    assert_int_equal(drawn(&net, NULL, NULL, 20000).chips, 12);
}

static void what_is_no_picture_is_refused(void **state)
{
    paper p = { NULL, 0, 0 };
    trn_error error;
    trn_topology_svg_args args;
    const trn_topology good = trn_topology_of(TRN_TRN2_48XLARGE), none = trn_topology_of(TRN_SYSTEM_COUNT);
    (void)state;
    memset(&args, 0, sizeof args);
    memset(&error, 0, sizeof error);
    args.error = &error;
    args.user = &p;
    args.net = &good;
    assert_int_equal(trn_topology_svg(&args), TRN_EINVAL);
    assert_non_null(strstr(error.text, "write"));
    args.write = keep;
    args.net = NULL;
    assert_int_equal(trn_topology_svg(&args), TRN_EINVAL);
    args.net = &none;
    assert_int_equal(trn_topology_svg(&args), TRN_EINVAL);
    assert_true(p.used == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems_are_drawn_link_by_link),
        cmocka_unit_test(pictures_are_what_they_were),
        cmocka_unit_test(one_level_is_a_circle),
        cmocka_unit_test(what_is_a_circle),
        cmocka_unit_test(far_too_many_chips_are_a_small_picture),
        cmocka_unit_test(any_network_is_well_formed),
        cmocka_unit_test(names_may_be_missing),
        cmocka_unit_test(what_is_no_picture_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

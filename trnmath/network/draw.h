/* network/draw.h - what pictures of networks are drawn with: links by kind or load, chips, switches, a legend.
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: writes SVG for light and dark backgrounds, through a function that the caller gives. Links of one rate, wiring
 *     and source share a colour; with loads, each half of a link has the colour and the width of what leaves by it.
 * DOES NOT: know where anything is: network/topology_svg.h lays networks out.
 *
 * KNOWN FROM: SVG 1.1; the media query prefers-color-scheme of CSS Media Queries 5.
 */
#ifndef TRNI_NETWORK_DRAW_H
#define TRNI_NETWORK_DRAW_H

#include <float.h>
#include <math.h>

#include "topology_systems.h"
#include "../machine/trace.h"

enum { TRNI_DRAW_MARGIN = 24, TRNI_DRAW_TOP = 76, TRNI_DRAW_ROW = 38, TRNI_DRAW_LINE = 14, TRNI_DRAW_SHADES = 7 };

typedef struct trni_canvas {
    trni_text text;
    trn_topology named; /* the network, its names and sources never NULL */
    const trn_topology *net;
    const double *load;
    double most; /* the largest load */
    int width, height;
    int kind[TRN_MAX_LEVELS]; /* colour of each level's links; -1: it has none */
    int kinds;
} trni_canvas;

/* ---- levels of one kind share a colour ---- */

TRNI_FN bool trni_same_kind(const trn_level *a, const trn_level *b)
{
    if (a->wiring == TRN_WIRING_GRAPH) return false; /* its links have rates of their own */
    return a->wiring == b->wiring && a->bytes_per_s >= b->bytes_per_s && a->bytes_per_s <= b->bytes_per_s &&
           a->latency_s >= b->latency_s && a->latency_s <= b->latency_s && a->rate.known == b->rate.known &&
           strcmp(a->rate.where, b->rate.where) == 0;
}

TRNI_FN void trni_draw_open(trni_canvas *p, const trn_topology *net, const double *load, trn_trace_write *write,
                            void *user)
{
    memset(p, 0, sizeof *p);
    p->named = *net;
    p->net = &p->named;
    p->load = load;
    p->text.write = write;
    p->text.user = user;
    for (int l = 0; l < net->levels; l++) {
        trn_level *own = &p->named.level[l];
        if (!own->name) own->name = "level";
        if (!own->rate.where) own->rate.where = "nobody says";
        p->kind[l] = -1;
        if (trni_level_slots(net, l) == 0) continue;
        for (int i = 0; i < l; i++)
            if (p->kind[i] >= 0 && trni_same_kind(&p->named.level[i], own)) p->kind[l] = p->kind[i];
        if (p->kind[l] < 0) p->kind[l] = p->kinds++;
    }
    for (int64_t i = 0; load && i < trn_topology_link_count(net); i++)
        if (load[i] > p->most && load[i] <= DBL_MAX) p->most = load[i];
}

/* ---- text ---- */

/* 1234567 as 1,234,567. */
TRNI_FN const char *trni_thousands(char buffer[32], int64_t n)
{
    char digit[24];
    const int length = snprintf(digit, sizeof digit, "%lld", (long long)n);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0 && digit[i - 1] != '-') buffer[used++] = ',';
        buffer[used++] = digit[i];
    }
    buffer[used] = 0;
    return buffer;
}

/* Bytes of the first characters, which as they are shown are at most so many. */
TRNI_FN int trni_draw_fit(const char *words, size_t most)
{
    size_t wide = 0;
    int at = 0, n = 0;
    while (words[at] && (wide += trni_text_wide((const unsigned char *)words + at, &n)) <= most) at += n;
    return at;
}

/* As much as there is room for, in pixels at about `each` per character; the rest becomes three dots. */
TRNI_FN void trni_draw_words(trni_canvas *p, const char *words, double capacity, double each)
{
    enum { MOST = 190 }; /* characters of up to four bytes */
    char part[4 * MOST + 4];
    size_t most = capacity > 4 * each ? (size_t)(capacity / each) : 4;
    if (most > (size_t)MOST) most = (size_t)MOST;
    if (!words[trni_draw_fit(words, most)]) {
        trni_text_escaped(&p->text, words, true);
        return;
    }
    snprintf(part, sizeof part, "%.*s...", trni_draw_fit(words, most - 3), words);
    trni_text_escaped(&p->text, part, true);
}

/* A unit of a level: the name, of which so many characters, and which one. */
TRNI_FN void trni_draw_unit(char *words, size_t size, const trn_level *level, size_t most, int number)
{
    const char *name = trn_level_name(level);
    snprintf(words, size, "%.*s %d", trni_draw_fit(name, most), name, number);
}

/* anchor: 0 begins at x, 1 is centred there, 2 ends there. What would leave the picture is cut. */
TRNI_FN void trni_draw_text(trni_canvas *p, const char *style, double x, double y, int anchor, const char *words)
{
    static const char *const how[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
    const double right = p->width - x, half = right < x ? right : x;
    trni_text_put(&p->text, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s>", style, x, y, how[anchor]);
    trni_draw_words(p, words, anchor == 0 ? right : anchor == 1 ? 2 * half : x, 6.6);
    trni_text_put(&p->text, "</text>\n");
}

/* ---- head ---- */

TRNI_FN void trni_draw_style(trni_canvas *p)
{
    static const char *const kind[] = { "#4e79a7", "#c96f0a", "#3f9950", "#b0569c",
                                        "#d6504f", "#1b9aa0", "#9a7b1f", "#8a6d5b" };
    static const char *const shade[TRNI_DRAW_SHADES] = { "#7d8896", "#3f8fd0", "#5f74d4", "#8a55c8",
                                                         "#b43fa8", "#d6336c", "#e8352b" };
    trni_text *t = &p->text;
    trni_text_put(
        t,
        "<style>\n.paper { fill: #ffffff } .ink { fill: #1f2933 } .faint { fill: #5f6b7a }\n"
        ".chip { fill: #ffffff; stroke: #6b7787; stroke-width: 1.2 } .hub { fill: #e3e8ef; stroke: #6b7787 }\n"
        ".group { fill: #f4f6f9; stroke: #cfd6df } .inner { fill: #e9edf3; stroke: #cfd6df }\n"
        "@media (prefers-color-scheme: dark) {\n.paper { fill: #14181d } .ink { fill: #e6e9ed } .faint { fill: #9aa5b1 "
        "}\n.chip { fill: #262e37; stroke: #8b98a8 } .hub { fill: #343e4a; stroke: #8b98a8 }\n"
        ".group { fill: #1a2027; stroke: #343c46 } .inner { fill: #222931; stroke: #3a434e }\n}\n"
        "text { font-size: 12px } .big { font-size: 17px; font-weight: 600 } .bold { font-weight: 600 }\n"
        ".small { font-size: 11px } .tiny { font-size: 11px } .wire { fill: none; stroke-linecap: round } .far { "
        "opacity: 0.6 }\n");
    for (int i = 0; i < TRN_MAX_LEVELS; i++) trni_text_put(t, ".k%d { stroke: %s; stroke-width: 1.8 }\n", i, kind[i]);
    for (int i = 0; p->load && i < TRNI_DRAW_SHADES; i++)
        trni_text_put(t, ".l%d { stroke: %s; stroke-width: %.1f }\n", i, shade[i], i ? 1.4 + 0.45 * i : 1.0);
    trni_text_put(t, "</style>\n");
}

/* Pairs of directions, and directions that stand alone. */
TRNI_FN int64_t trni_draw_links(const trn_topology *net)
{
    int64_t links = trn_topology_link_count(net) / 2;
    for (int l = 0; l < net->levels; l++) {
        const int64_t units = net->chips / net->level[l].size;
        if (net->level[l].wiring == TRN_WIRING_GRAPH)
            links += units * trni_graph_pairs(net, l) - (int64_t)net->chips * trni_level_slots(net, l) / 2;
    }
    return links;
}

TRNI_FN void trni_draw_head(trni_canvas *p, const char *title, int width, int height)
{
    const trn_topology *net = p->net;
    char chips[32], links[32], words[200];
    p->width = width;
    p->height = height;
    trni_text_put(&p->text,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                  "role=\"img\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n<title>",
                  width, height, width, height);
    trni_draw_words(p, title, width - 2 * TRNI_DRAW_MARGIN, 9.6);
    trni_text_put(&p->text, "</title>\n");
    trni_draw_style(p);
    trni_text_put(&p->text,
                  "<rect class=\"paper\" x=\"0\" y=\"0\" width=\"%d\" height=\"%d\"/>\n"
                  "<text class=\"ink big\" x=\"%d\" y=\"32\">",
                  width, height, TRNI_DRAW_MARGIN);
    trni_draw_words(p, title, width - 2 * TRNI_DRAW_MARGIN, 9.6);
    trni_text_put(&p->text, "</text>\n");
    const int count = snprintf(words, sizeof words, "%s chip%s, %s link%s", trni_thousands(chips, net->chips),
                               net->chips > 1 ? "s" : "", trni_thousands(links, trni_draw_links(net)),
                               trni_draw_links(net) == 1 ? "" : "s");
    if (net->chips > 1)
        trni_print(words + count, sizeof words - (size_t)count,
                   "; at most %d hops, %.3g on average; %.4g TB/s from half to half", trn_topology_diameter(net),
                   trn_topology_mean_hops(net), trn_topology_bisection_bytes_per_s(net) / 1e12);
    trni_draw_text(p, "faint", TRNI_DRAW_MARGIN, 52, 0, words);
}

TRNI_FN void trni_draw_close(trni_canvas *p)
{
    trni_text_put(&p->text, "</svg>\n");
    trni_text_flush(&p->text);
}

/* ---- links ---- */

/* The number of the link from a chip to the next digit of a ring, or up to a switch; [1] is the way back. */
typedef struct trni_both_ways {
    int64_t way[2];
} trni_both_ways;

TRNI_FN trni_both_ways trni_draw_pair(const trn_topology *net, int level, int chip)
{
    const trn_level *l = &net->level[level];
    const int slots = trn_topology_slots(net), base = trni_slot_base(net, level);
    trni_both_ways two;
    two.way[0] = (int64_t)chip * slots + base;
    two.way[1] = two.way[0] + 1;
    if (l->wiring == TRN_WIRING_SWITCH) return two;
    const int d = trn_topology_digit(net, chip, level);
    const int next = trni_with_digit(net, chip, level, (d + 1) % l->size);
    two.way[1] = (int64_t)next * slots + base + (l->size > 2);
    return two;
}

/* Between any two chips of a fully connected level, or of a graph. */
TRNI_FN trni_both_ways trni_draw_pair_full(const trn_topology *net, int level, int a, int b)
{
    const int slots = trn_topology_slots(net), base = trni_slot_base(net, level);
    const int d = trn_topology_digit(net, a, level), e = trn_topology_digit(net, b, level);
    trni_both_ways two;
    two.way[0] = (int64_t)a * slots + base + (e < d ? e : e - 1);
    two.way[1] = (int64_t)b * slots + base + (d < e ? d : d - 1);
    return two;
}

/* Shade 0: nothing; the others share the range up to the largest load. */
TRNI_FN int trni_draw_shade(const trni_canvas *p, int64_t link)
{
    const double load = p->load[link];
    if (!(load > 0) || !(p->most > 0)) return 0;
    const int shade = 1 + (int)((TRNI_DRAW_SHADES - 1) * (load / p->most));
    return load > p->most || shade >= TRNI_DRAW_SHADES ? TRNI_DRAW_SHADES - 1 : shade;
}

TRNI_FN void trni_draw_half(trni_canvas *p, int64_t link, const double x[4], const double y[4])
{
    trni_text_put(&p->text, "<path class=\"wire l%d\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"><title>",
                  trni_draw_shade(p, link), x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]);
    trn_link l;
    if (trn_topology_link(p->net, link, &l)) {
        char chip[32];
        if (l.from < p->net->chips)
            trni_text_put(&p->text, "%s", trni_thousands(chip, l.from));
        else
            trni_text_put(&p->text, "switch");
        if (l.to < p->net->chips)
            trni_text_put(&p->text, " to %s", trni_thousands(chip, l.to));
        else
            trni_text_put(&p->text, " to switch");
    }
    trni_text_put(&p->text, ": %.6g</title></path>\n", p->load[link]);
}

/* A link from one place to another, whose ends leave in the direction of the bend (0, 0: straight). With loads, the
 * half at each end shows what leaves there. */
TRNI_FN void trni_draw_link(trni_canvas *p, int level, trni_both_ways two, double x0, double y0, double x1, double y1,
                            double bend_x, double bend_y)
{
    const double px[4] = { x0, x0 + bend_x, x1 + bend_x, x1 }, py[4] = { y0, y0 + bend_y, y1 + bend_y, y1 };
    const bool straight = bend_x >= 0 && bend_x <= 0 && bend_y >= 0 && bend_y <= 0;
    if (!p->load && straight) {
        trni_text_put(&p->text, "<path class=\"wire k%d\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", p->kind[level], x0, y0, x1,
                      y1);
    } else if (!p->load) {
        trni_text_put(&p->text, "<path class=\"wire far k%d\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
                      p->kind[level], px[0], py[0], px[1], py[1], px[2], py[2], px[3], py[3]);
    } else { /* both halves by de Casteljau, each from its own end to the middle */
        const double mx = (px[1] + px[2]) / 2, my = (py[1] + py[2]) / 2;
        double hx[2][4], hy[2][4];
        for (int i = 0; i < 2; i++) {
            hx[i][0] = px[3 * i];
            hy[i][0] = py[3 * i];
            hx[i][1] = (px[3 * i] + px[1 + i]) / 2;
            hy[i][1] = (py[3 * i] + py[1 + i]) / 2;
            hx[i][2] = (hx[i][1] + mx) / 2;
            hy[i][2] = (hy[i][1] + my) / 2;
            hx[i][3] = (px[0] + 3 * px[1] + 3 * px[2] + px[3]) / 8;
            hy[i][3] = (py[0] + 3 * py[1] + 3 * py[2] + py[3]) / 8;
        }
        for (int i = 0; i < 2; i++)
            if (trni_link_exists(p->net, two.way[i])) trni_draw_half(p, two.way[i], hx[i], hy[i]);
    }
}

/* On a straight link that goes one way: a point, a little behind the middle. */
TRNI_FN void trni_draw_arrow(trni_canvas *p, int level, double x0, double y0, double x1, double y1)
{
    const double length = sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0));
    if (p->load || !(length > 0)) return; /* with loads, the half that nothing leaves by is not drawn */
    const double ux = (x1 - x0) / length, uy = (y1 - y0) / length, x = (2 * x0 + 3 * x1) / 5, y = (2 * y0 + 3 * y1) / 5;
    trni_text_put(&p->text, "<path class=\"wire k%d\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", p->kind[level],
                  x - 7 * ux - 4 * uy, y - 7 * uy + 4 * ux, x, y, x - 7 * ux + 4 * uy, y - 7 * uy - 4 * ux);
}

/* ---- boxes ---- */

TRNI_FN void trni_draw_group(trni_canvas *p, const char *style, double x, double y, double wide, double high)
{
    trni_text_put(&p->text, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n",
                  style, x, y, wide, high);
}

/* Centred at x, y; its digits under the mouse. */
TRNI_FN void trni_draw_chip(trni_canvas *p, int chip, double x, double y, double wide, double high)
{
    trni_text_put(&p->text, "<g><title>chip %d:", chip);
    for (int l = 0; l < p->net->levels; l++) {
        trni_text_put(&p->text, " ");
        trni_draw_words(p, trn_level_name(&p->net->level[l]), 120, 6);
        trni_text_put(&p->text, " %d", trn_topology_digit(p->net, chip, l));
    }
    trni_text_put(&p->text,
                  "</title><rect class=\"chip\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\"/>"
                  "<text class=\"ink %s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text></g>\n",
                  x - wide / 2, y - high / 2, wide, high, high < 20 ? "tiny" : "small", x, y + (high < 20 ? 3.6 : 4),
                  chip);
}

/* A switch: its words stand upright where it is higher than it is wide. */
TRNI_FN void trni_draw_switch(trni_canvas *p, double x, double y, double wide, double high, const char *words)
{
    const double cx = x + wide / 2, cy = y + high / 2;
    trni_text_put(&p->text, "<rect class=\"hub\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\"/>\n", x,
                  y, wide, high);
    if (!words) return;
    trni_text_put(&p->text, "<text class=\"ink small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\"", cx, cy + 4);
    if (high > wide) trni_text_put(&p->text, " transform=\"rotate(-90 %.1f %.1f)\"", cx, cy);
    trni_text_put(&p->text, ">");
    trni_draw_words(p, words, high > wide ? high : wide, 6.2);
    trni_text_put(&p->text, "</text>\n");
}

/* ---- legend ---- */

TRNI_FN const char *trni_wiring_words(const trn_level *l)
{
    switch (l->wiring) {
    case TRN_WIRING_RING: return l->size == 2 ? "pair" : "ring";
    case TRN_WIRING_FULL: return "all to all";
    case TRN_WIRING_SWITCH: return "switch";
    case TRN_WIRING_GRAPH: return "graph";
    default: return "no wires";
    }
}

TRNI_FN void trni_draw_range(char text[32], int digits, double least, double most)
{
    if (most > least)
        trni_print(text, 32, "%.*g to %.*g", digits, least, digits, most);
    else
        trni_print(text, 32, "%.*g", digits, least);
}

/* "20 GB/s one way", or from the least of a graph's links (parallel ones together) to the most; the same of times. */
TRNI_FN void trni_draw_amounts(const trn_topology *net, const trn_level *l, char rate[32], char time[32])
{
    double least[2] = { l->bytes_per_s, l->latency_s }, most[2] = { least[0], least[1] };
    bool first = l->wiring == TRN_WIRING_GRAPH;
    for (int i = 0; i < net->wires; i++) {
        const double of[2] = { trni_wire_rate(&net->wire[i]), net->wire[i].latency_s };
        if (&net->level[net->wire[i].level] != l) continue;
        for (int k = 0; k < 2; k++) {
            if (first || of[k] < least[k]) least[k] = of[k];
            if (first || of[k] > most[k]) most[k] = of[k];
        }
        first = false;
    }
    trni_draw_range(rate, 4, least[0] / 1e9, most[0] / 1e9);
    trni_draw_range(time, 3, 1e6 * least[1], 1e6 * most[1]);
}

/* The level of a kind that speaks for it: the one with most chips. */
TRNI_FN const trn_level *trni_draw_kind(const trni_canvas *p, int kind)
{
    const trn_level *most = NULL;
    for (int l = 0; l < p->net->levels; l++)
        if (p->kind[l] == kind && (!most || p->net->level[l].size > most->size)) most = &p->net->level[l];
    return most ? most : &p->net->level[0];
}

TRNI_FN double trni_draw_legend_x(const trni_canvas *p) { return TRNI_DRAW_MARGIN + (p->load ? 0 : 40); }

/* Where a source is broken into two lines; 0 when it fits into one. */
TRNI_FN int trni_draw_break(const trni_canvas *p, int kind, int width)
{
    const trn_level *l = trni_draw_kind(p, kind);
    const int capacity = (int)((width - trni_draw_legend_x(p) - (int)TRNI_DRAW_MARGIN) / 6.0) - 14;
    if ((int)strlen(l->rate.where) <= capacity) return 0;
    int at = capacity;
    while (at > 0 && l->rate.where[at] != ' ') at--;
    return at;
}

TRNI_FN int trni_draw_legend_height(const trni_canvas *p, int width)
{
    int high = p->load ? 46 : 0;
    for (int k = 0; k < p->kinds; k++) high += TRNI_DRAW_ROW + (trni_draw_break(p, k, width) ? TRNI_DRAW_LINE : 0);
    return high + 16;
}

TRNI_FN void trni_draw_loads(trni_canvas *p, double y, const char *unit)
{
    const double x = TRNI_DRAW_MARGIN, each = 26;
    for (int i = 0; i < TRNI_DRAW_SHADES; i++)
        trni_text_put(&p->text, "<path class=\"wire l%d\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", i, x + i * each, y,
                      x + (i + 0.7) * each, y);
    char words[160];
    trni_print(words, sizeof words, "load of a link at the end it leaves from: none ... %.6g %s", p->most,
               unit ? unit : "");
    trni_draw_text(p, "ink", x + (int)TRNI_DRAW_SHADES * each + 4, y + 4, 0, words);
}

/* Names of its levels, wiring, rate, latency. */
TRNI_FN void trni_draw_kind_words(trni_canvas *p, int kind, double x, double y)
{
    const trn_level *l = trni_draw_kind(p, kind);
    const bool joined = l->wiring == TRN_WIRING_SWITCH;
    const char *between = "";
    char rate[32], time[32];
    int names = 0;
    for (int i = 0; i < p->net->levels; i++) names += p->kind[i] == kind;
    trni_text_put(&p->text, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\"><tspan class=\"bold\">", x, y);
    for (int i = 0; i < p->net->levels; i++) {
        if (p->kind[i] != kind) continue;
        trni_text_put(&p->text, "%s", between);
        trni_draw_words(p, trn_level_name(&p->net->level[i]), 290.0 / names, 8);
        between = ", ";
    }
    trni_draw_amounts(p->net, l, rate, time);
    trni_text_put(&p->text, "</tspan>: %s; %s GB/s one way per %s; %s us%s</text>\n", trni_wiring_words(l), rate,
                  joined ? "port" : "link", time, joined ? " from port to port" : "");
}

/* One row per kind, and below it how the rate is known. */
TRNI_FN void trni_draw_legend(trni_canvas *p, double y, const char *unit)
{
    const double x = trni_draw_legend_x(p);
    if (p->load) trni_draw_loads(p, y + 16, unit);
    y += p->load ? 46 : 0;
    for (int k = 0; k < p->kinds; k++, y += (int)TRNI_DRAW_ROW) {
        const trn_source *rate = &trni_draw_kind(p, k)->rate;
        const int at = trni_draw_break(p, k, p->width);
        if (!p->load)
            trni_text_put(&p->text, "<path class=\"wire k%d\" d=\"M%d %.1fL%d %.1f\"/>\n", k, TRNI_DRAW_MARGIN, y + 12,
                          TRNI_DRAW_MARGIN + 28, y + 12);
        trni_draw_kind_words(p, k, x, y + 16);
        trni_text_put(&p->text, "<text class=\"faint small\" x=\"%.1f\" y=\"%.1f\">%s: ", x, y + 31,
                      trn_provenance_text(rate->known));
        char part[200];
        trni_copy_text(part, at && at < (int)sizeof part ? (size_t)at + 1 : sizeof part, rate->where);
        trni_draw_words(p, part, p->width, 6);
        trni_text_put(&p->text, "</text>\n");
        if (!at) continue;
        y += (int)TRNI_DRAW_LINE;
        trni_text_put(&p->text, "<text class=\"faint small\" x=\"%.1f\" y=\"%.1f\">", x, y + 31);
        trni_draw_words(p, rate->where + at + 1, p->width - x - (int)TRNI_DRAW_MARGIN, 6);
        trni_text_put(&p->text, "</text>\n");
    }
}

#endif /* TRNI_NETWORK_DRAW_H */

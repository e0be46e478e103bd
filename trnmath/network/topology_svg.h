/* network/topology_svg.h - a network as a picture: chips, switches, every link, and what each kind of link is.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology.h>
 *     #include <stdio.h>
 *     static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }
 *     int main(void) {
 *         trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
 *         trn_topology_svg_args args = { .net = &net, .write = keep, .user = stdout };
 *         return trn_topology_svg(&args) == TRN_OK ? 0 : 1;
 *     }
 *
 * DOES: draws tori of up to three dimensions, rings, fully connected chips, graphs of links, switches, racks of servers
 *     (Trainium3), and of a cluster one server with the network between all of them; anything else as boxes within
 *     boxes. With loads, one per directed link, the half of a link at each end shows what leaves there.
 * DOES NOT: draw more than 256 chips one by one, print, or allocate.
 *
 * KNOWN FROM: network/topology_graph.h; SVG 1.1.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_SVG_H
#define TRNI_NETWORK_TOPOLOGY_SVG_H

#include "topology_systems.h"
#include "../machine/trace.h"

typedef struct trn_topology_svg_args {
    const trn_topology *net;
    trn_trace_write *write;
    void *user;
    const char *title;     /* NULL: the network's name */
    const double *load;    /* optional, [trn_topology_link_count(net)]: of each directed link, in any unit */
    const char *load_unit; /* optional */
    trn_error *error;
} trn_topology_svg_args;

/* ---- which layout, and the frame around it ---- */

/* TRN_EINVAL when net is no network, or nobody takes the text. */
TRN_API trn_status trn_topology_svg(const trn_topology_svg_args *args);

#if TRNI_BODIES

#include <math.h>

#include "draw.h"

/* How the chips lie: each layout says how large it is, and draws itself at a place. */
typedef struct trni_drawing {
    trni_canvas *paper;
    int levels, chips; /* that are drawn; without the outermost level of a cluster */
    double left, top, wide, high;
    int dim[3], dims;                                  /* torus: levels with more than one chip */
    double step_x[3], step_y[3], bend_x[3], bend_y[3]; /* torus: to the next chip; of the links that close a ring */
    double chip_wide, chip_high;
    double radius;   /* circle */
    int rack_switch; /* racks: the level */
    int racks, rows, row_chips, group_rows;
    double row_high, row_step, row_wide, group_step, bars, gap, name_wide;
} trni_drawing;

enum { TRNI_DRAWN_CHIPS = 256, TRNI_CIRCLE_CHIPS = 64, TRNI_FULL_CHIPS = 32 };

/* ---- tori: one sheet, or one sheet above the other ---- */

TRNI_FN bool trni_torus_fits(trni_drawing *n)
{
    const trn_topology *net = n->paper->net;
    int size[3] = { 1, 1, 1 };
    n->dims = 0;
    for (int l = 0; l < n->levels; l++) {
        if (net->level[l].size < 2) continue;
        if (net->level[l].wiring != TRN_WIRING_RING || n->dims == 3) return false;
        size[n->dims] = net->level[l].size;
        n->dim[n->dims++] = l;
    }
    if (n->dims < 2 || n->chips > TRNI_DRAWN_CHIPS || size[0] > 16 || size[1] > 16) return false;
    const bool sheets = n->dims == 3;
    /* sheets lean, so that links down to the next one pass between the chips of their own */
    const double lean = sheets ? 36 : 0, dx = sheets ? (size[1] > 3 ? lean * size[1] : 108) : 116,
                 dy = sheets ? 46 : 104;
    const double sheet = dy * (size[1] - 1);
    n->chip_wide = sheets ? 28 : 52;
    n->chip_high = sheets ? 22 : 36;
    const double step_x[3] = { dx, lean, 0 }, step_y[3] = { 0, dy, sheet + 92 };
    const double bend_x[3] = { 0, sheets ? -42.0 : -66.0, 26 }, bend_y[3] = { sheets ? -28.0 : -50.0, 0, 0 };
    memcpy(n->step_x, step_x, sizeof step_x);
    memcpy(n->step_y, step_y, sizeof step_y);
    memcpy(n->bend_x, bend_x, sizeof bend_x);
    memcpy(n->bend_y, bend_y, sizeof bend_y);
    n->wide = dx * (size[0] - 1) + lean * (size[1] - 1) + n->chip_wide + 108;
    n->high = sheet + n->step_y[2] * (size[2] - 1) + n->chip_high + 64;
    return true;
}

TRNI_FN void trni_torus_at(const trni_drawing *n, int chip, double *x, double *y)
{
    *x = n->left + 60 + n->chip_wide / 2;
    *y = n->top + 44 + n->chip_high / 2;
    for (int i = 0; i < n->dims; i++) {
        const int d = trn_topology_digit(n->paper->net, chip, n->dim[i]);
        *x += d * n->step_x[i];
        *y += d * n->step_y[i];
    }
}

/* The slanted ground of one sheet, and which it is. */
TRNI_FN void trni_torus_sheet(const trni_drawing *n, int sheet)
{
    const trn_topology *net = n->paper->net;
    const trn_level *z = &net->level[n->dim[2]];
    const int last = trn_topology_stride(net, n->dim[2]) - 1, first_of_last = last - net->level[n->dim[0]].size + 1;
    const int up = sheet * trn_topology_stride(net, n->dim[2]);
    double x[4], y[4];
    char words[64];
    trni_torus_at(n, up, &x[0], &y[0]);
    trni_torus_at(n, up + net->level[n->dim[0]].size - 1, &x[1], &y[1]);
    trni_torus_at(n, up + last, &x[2], &y[2]);
    trni_torus_at(n, up + first_of_last, &x[3], &y[3]);
    trni_text_put(&n->paper->text, "<path class=\"group\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n",
                  x[0] - 48, y[0] - 30, x[1] + 26, y[1] - 30, x[2] + 40, y[2] + 22, x[3] - 44, y[3] + 22);
    trni_draw_unit(words, sizeof words, z, 24, sheet);
    trni_draw_text(n->paper, "faint small", x[0] - 48, y[0] + 4 + n->step_y[1], 2, words);
}

TRNI_FN void trni_torus_links(const trni_drawing *n, int dim)
{
    const trn_topology *net = n->paper->net;
    const int level = n->dim[dim], size = net->level[level].size;
    for (int chip = 0; chip < n->chips; chip++) {
        const int d = trn_topology_digit(net, chip, level), next = trni_with_digit(net, chip, level, (d + 1) % size);
        const bool closes = d == size - 1;
        double x0, y0, x1, y1;
        if (closes && size == 2) continue;
        trni_torus_at(n, chip, &x0, &y0);
        trni_torus_at(n, next, &x1, &y1);
        trni_draw_link(n->paper, level, trni_draw_pair(net, level, chip), x0, y0, x1, y1, closes ? n->bend_x[dim] : 0,
                       closes ? n->bend_y[dim] : 0);
    }
}

TRNI_FN void trni_torus_draw(const trni_drawing *n)
{
    if (n->dims == 3)
        for (int i = 0; i < n->paper->net->level[n->dim[2]].size; i++) trni_torus_sheet(n, i);
    for (int i = n->dims; i-- > 0;) trni_torus_links(n, i);
    for (int chip = 0; chip < n->chips; chip++) {
        double x, y;
        trni_torus_at(n, chip, &x, &y);
        trni_draw_chip(n->paper, chip, x, y, n->chip_wide, n->chip_high);
    }
}

/* ---- one level: a circle ---- */

TRNI_FN bool trni_circle_fits(trni_drawing *n)
{
    const trn_topology *net = n->paper->net;
    n->dims = 0;
    for (int l = 0; l < n->levels; l++)
        if (net->level[l].size > 1 || trni_level_slots(net, l)) {
            n->dim[0] = l;
            n->dims++;
        }
    if (n->dims > 1 || n->chips > TRNI_CIRCLE_CHIPS) return false;
    if (n->dims == 0) n->dim[0] = 0;
    if (net->level[n->dim[0]].wiring == TRN_WIRING_FULL && n->chips > TRNI_FULL_CHIPS) return false;
    n->chip_wide = 40;
    n->chip_high = 26;
    n->radius = n->chips == 1 ? 0 : n->chips < 9 ? 90 : n->chips * 58 / 6.2831853;
    n->wide = 2 * n->radius + n->chip_wide + 40;
    n->high = 2 * n->radius + n->chip_high + 30;
    return true;
}

TRNI_FN void trni_circle_at(const trni_drawing *n, int i, double *x, double *y)
{
    const double angle = 6.283185307179586 * i / n->chips + (n->chips == 2 ? 3.141592653589793 : -1.5707963267948966);
    *x = n->left + n->wide / 2 + n->radius * cos(angle);
    *y = n->top + n->high / 2 + n->radius * sin(angle);
}

TRNI_FN void trni_circle_links(const trni_drawing *n, int a)
{
    const trn_topology *net = n->paper->net;
    const int level = n->dim[0];
    const trn_level *l = &net->level[level];
    double x0, y0, x1, y1;
    trni_circle_at(n, a, &x0, &y0);
    if (l->wiring == TRN_WIRING_SWITCH) {
        trni_draw_link(n->paper, level, trni_draw_pair(net, level, a), x0, y0, n->left + n->wide / 2,
                       n->top + n->high / 2, 0, 0);
        return;
    }
    for (int b = 0; b < n->chips; b++) {
        const bool ring = l->wiring == TRN_WIRING_RING;
        if (ring ? b != (a + 1) % n->chips || (n->chips == 2 && a == 1) : b <= a) continue;
        const trni_both_ways two = ring ? trni_draw_pair(net, level, a) : trni_draw_pair_full(net, level, a, b);
        const bool there = trni_link_exists(net, two.way[0]), back = trni_link_exists(net, two.way[1]);
        if (!there && !back) continue; /* of a graph, not all are joined */
        trni_circle_at(n, b, &x1, &y1);
        trni_draw_link(n->paper, level, two, x0, y0, x1, y1, 0, 0);
        if (!back) trni_draw_arrow(n->paper, level, x0, y0, x1, y1);
        if (!there) trni_draw_arrow(n->paper, level, x1, y1, x0, y0);
    }
}

TRNI_FN void trni_circle_draw(const trni_drawing *n)
{
    const trn_topology *net = n->paper->net;
    const bool joined = net->level[n->dim[0]].wiring == TRN_WIRING_SWITCH;
    for (int i = 0; i < n->chips && (n->chips > 1 || joined) && trni_level_slots(net, n->dim[0]); i++)
        trni_circle_links(n, i);
    if (joined && n->chips > 1)
        trni_draw_switch(n->paper, n->left + n->wide / 2 - 36, n->top + n->high / 2 - 15, 72, 30, "switch");
    for (int i = 0; i < n->chips; i++) {
        double x, y;
        trni_circle_at(n, i, &x, &y);
        trni_draw_chip(n->paper, i, x, y, n->chip_wide, n->chip_high);
    }
}

/* ---- racks: rows of chips on a switch, and perhaps a second rack that mirrors the first ---- */

TRNI_FN bool trni_racks_fit(trni_drawing *n)
{
    const trn_topology *net = n->paper->net;
    int s = n->levels - 1;
    n->racks = 1;
    if (s > 0 && net->level[s].size == 2 &&
        (net->level[s].wiring == TRN_WIRING_RING || net->level[s].wiring == TRN_WIRING_FULL)) {
        n->racks = 2;
        s--;
    }
    if (s < 1 || net->level[s].wiring != TRN_WIRING_SWITCH || net->level[0].wiring == TRN_WIRING_GRAPH) return false;
    for (int l = 1; l < s; l++)
        if (net->level[l].wiring != TRN_WIRING_NONE) return false;
    n->rack_switch = s;
    n->row_chips = net->level[0].size;
    n->rows = n->chips / n->racks / n->row_chips;
    n->group_rows = s > 1 ? trn_topology_stride(net, s) / n->row_chips : n->rows;
    if (n->row_chips > 8 || n->rows > 36 || n->rows / n->group_rows > 8) return false;
    const bool below = net->level[0].wiring != TRN_WIRING_NONE && n->row_chips > 1 &&
                       !(net->level[0].wiring == TRN_WIRING_RING && n->row_chips == 2);
    n->chip_wide = 34;
    n->chip_high = 18;
    n->name_wide = 62;
    n->row_high = 26 + (below ? net->level[0].wiring == TRN_WIRING_SWITCH ? 10 : 16 : 0);
    n->row_step = n->row_high + 7;
    n->row_wide = n->name_wide + n->row_chips * 48.0 + 4;
    n->group_step = n->group_rows * n->row_step + (s > 1 ? 30 : 0);
    n->bars = trni_planes(&net->level[s]) * 36.0;
    n->gap = 150;
    n->wide = n->racks * (n->bars + 40 + n->row_wide) + (n->racks - 1) * n->gap + 16;
    n->high = 30 + n->rows / n->group_rows * n->group_step + 26;
    return true;
}

/* A row's upper left corner; the second rack mirrors the first. */
TRNI_FN void trni_rack_row(const trni_drawing *n, int rack, int row, double *x, double *y)
{
    const double near = n->left + 8 + n->bars + 40;
    *x = rack ? n->left + n->wide - 8 - n->bars - 40 - n->row_wide : near;
    *y = n->top + 30 + row / n->group_rows * n->group_step + row % n->group_rows * n->row_step +
         (n->rack_switch > 1 ? 24 : 0);
}

TRNI_FN double trni_rack_chip_x(const trni_drawing *n, int rack, double row_x, int i)
{
    return row_x + (rack ? 4 : n->name_wide) + 24 + 48.0 * i;
}

/* Where the line of chip i meets the side of its row. */
TRNI_FN double trni_rack_line_y(const trni_drawing *n, double row_y, int i)
{
    const double each = n->row_high / (n->row_chips + 1);
    return row_y + n->row_high / 2 + (i - (n->row_chips - 1) / 2.0) * (each < 7 ? each : 7);
}

TRNI_FN int trni_rack_first(const trni_drawing *n, int rack, int row) { return (rack * n->rows + row) * n->row_chips; }

/* To the switch on the outer side, and to the other rack. */
TRNI_FN void trni_rack_lines(const trni_drawing *n, int rack, int row)
{
    const trn_topology *net = n->paper->net;
    const int planes = trni_planes(&net->level[n->rack_switch]), first = trni_rack_first(n, rack, row);
    double x, y, other_x, other_y;
    trni_rack_row(n, rack, row, &x, &y);
    for (int i = 0; i < n->row_chips; i++) {
        const double at = trni_rack_line_y(n, y, i), out = 40 + 36.0 * (i % planes);
        trni_draw_link(n->paper, n->rack_switch, trni_draw_pair(net, n->rack_switch, first + i),
                       rack ? x + n->row_wide : x, at, rack ? x + n->row_wide + out : x - out, at, 0, 0);
        if (rack || n->racks == 1) continue;
        trni_rack_row(n, 1, row, &other_x, &other_y);
        trni_draw_link(n->paper, n->levels - 1,
                       net->level[n->levels - 1].wiring == TRN_WIRING_FULL
                           ? trni_draw_pair_full(net, n->levels - 1, first + i, first + i + n->rows * n->row_chips)
                           : trni_draw_pair(net, n->levels - 1, first + i),
                       x + n->row_wide, at, other_x, at, 0, 0);
    }
}

/* The wires of the innermost level, inside a row. */
TRNI_FN void trni_rack_inner(const trni_drawing *n, int rack, int row)
{
    const trn_topology *net = n->paper->net;
    const trn_level *inner = &net->level[0];
    const int first = trni_rack_first(n, rack, row);
    double x, y;
    trni_rack_row(n, rack, row, &x, &y);
    const double mid = y + 13;
    for (int i = 0; i < n->row_chips; i++) {
        const double at = trni_rack_chip_x(n, rack, x, i);
        if (inner->wiring == TRN_WIRING_SWITCH && n->row_chips > 1)
            trni_draw_link(n->paper, 0, trni_draw_pair(net, 0, first + i), at, mid + 9, at, mid + 15, 0, 0);
        for (int j = i + 1; j < n->row_chips; j++) {
            const double to = trni_rack_chip_x(n, rack, x, j);
            const bool next = j == i + 1, closes = i == 0 && j == n->row_chips - 1 && !next;
            if (inner->wiring == TRN_WIRING_FULL)
                trni_draw_link(n->paper, 0, trni_draw_pair_full(net, 0, first + i, first + j), at, mid, to, mid, 0,
                               next ? 0 : 14 + 2 * (j - i));
            else if (inner->wiring == TRN_WIRING_RING && (next || closes))
                trni_draw_link(n->paper, 0, trni_draw_pair(net, 0, next ? first + i : first + j), next ? at : to, mid,
                               next ? to : at, mid, 0, next ? 0 : 26);
        }
    }
    if (inner->wiring == TRN_WIRING_SWITCH && n->row_chips > 1)
        trni_draw_switch(n->paper, trni_rack_chip_x(n, rack, x, 0) - 17, mid + 14, 48.0 * (n->row_chips - 1) + 34, 6,
                         NULL);
}

TRNI_FN void trni_rack_boxes(const trni_drawing *n, int rack)
{
    const trn_topology *net = n->paper->net;
    const int s = n->rack_switch;
    char words[128];
    double x, y;
    for (int row = 0; row < n->rows; row++) {
        trni_rack_row(n, rack, row, &x, &y);
        if (s > 1 && row % n->group_rows == 0) {
            trni_draw_group(n->paper, "group", x - 8, y - 22, n->row_wide + 16, n->group_step - 6);
            trni_draw_unit(words, sizeof words, &net->level[s], 24,
                           rack * n->rows / n->group_rows + row / n->group_rows);
            trni_draw_text(n->paper, "faint small", rack ? x + n->row_wide : x, y - 7, rack ? 2 : 0, words);
        }
    }
}

TRNI_FN void trni_rack_row_box(const trni_drawing *n, int rack, int row)
{
    const trn_topology *net = n->paper->net;
    const int number = n->rack_switch > 1 ? row % n->group_rows : rack * n->rows + row;
    char words[128];
    double x, y;
    trni_rack_row(n, rack, row, &x, &y);
    trni_draw_group(n->paper, "inner", x, y, n->row_wide, n->row_high);
    trni_draw_unit(words, sizeof words, &net->level[1], 7, number);
    trni_draw_text(n->paper, "faint tiny", rack ? x + n->row_wide - 8 : x + 8, y + n->row_high / 2 + 4, rack ? 2 : 0,
                   words);
}

TRNI_FN void trni_rack_draw(const trni_drawing *n, int rack)
{
    const trn_topology *net = n->paper->net;
    const int planes = trni_planes(&net->level[n->rack_switch]);
    char words[128];
    double x, y;
    trni_rack_boxes(n, rack);
    for (int row = 0; row < n->rows; row++) trni_rack_row_box(n, rack, row);
    for (int row = 0; row < n->rows; row++) trni_rack_inner(n, rack, row);
    trni_rack_row(n, rack, 0, &x, &y);
    for (int i = 0; i < planes; i++) {
        snprintf(words, sizeof words, planes > 1 ? "switch, plane %d" : "switch", i);
        trni_draw_switch(n->paper, rack ? x + n->row_wide + 40 + 36 * i : x - 66 - 36 * i, n->top + 26, 26,
                         n->high - 52, words);
    }
    for (int row = 0; row < n->rows; row++)
        for (int i = 0; i < n->row_chips; i++) {
            trni_rack_row(n, rack, row, &x, &y);
            trni_draw_chip(n->paper, trni_rack_first(n, rack, row) + i, trni_rack_chip_x(n, rack, x, i), y + 13,
                           n->chip_wide, n->chip_high);
        }
    if (n->racks == 1) return;
    trni_rack_row(n, rack, 0, &x, &y);
    trni_draw_unit(words, sizeof words, &net->level[n->levels - 1], 24, rack);
    trni_draw_text(n->paper, "ink bold", x + n->row_wide / 2, n->top + 14, 1, words);
}

TRNI_FN void trni_racks_draw(const trni_drawing *n)
{
    for (int rack = 0; rack < n->racks; rack++)
        for (int row = 0; row < n->rows; row++) trni_rack_lines(n, rack, row);
    for (int rack = 0; rack < n->racks; rack++) trni_rack_draw(n, rack);
    trni_draw_text(n->paper, "faint small", n->left + n->wide / 2, n->top + n->high - 2, 1,
                   "Lines at the side of a row are those of its chips, in their order.");
}

/* ---- anything else: boxes within boxes ---- */

enum { TRNI_NEST_CHIPS = 8 };

TRNI_FN bool trni_nest_fits(trni_drawing *n)
{
    const int shown =
        n->paper->net->level[0].size < TRNI_NEST_CHIPS ? n->paper->net->level[0].size : TRNI_NEST_CHIPS + 1;
    n->chip_wide = 40;
    n->chip_high = 26;
    n->wide = 56.0 * shown + 44.0 * n->levels + 40;
    if (n->wide < 420) n->wide = 420;
    n->high = 46 + n->levels * 66.0;
    return true;
}

TRNI_FN void trni_nest_draw(const trni_drawing *n)
{
    const trn_topology *net = n->paper->net;
    char words[160], count[32], rate[32], time[32];
    for (int l = n->levels; l-- > 0;) {
        const trn_level *at = &net->level[l];
        const double in = 22.0 * (n->levels - 1 - l), x = n->left + in, y = n->top + 36.0 * (n->levels - 1 - l);
        const double wide = n->wide - 2 * in - 12, high = n->high - 66.0 * (n->levels - 1 - l) - 12;
        if (l < n->levels - 1 && net->level[l + 1].size > 1) {
            trni_draw_group(n->paper, "inner", x + 10, y + 10, wide, high);
            trni_draw_group(n->paper, "inner", x + 5, y + 5, wide, high);
        }
        trni_draw_group(n->paper, l % 2 ? "group" : "inner", x, y, wide, high);
        const int used =
            snprintf(words, sizeof words, "%.*s: %s %s", trni_draw_fit(trn_level_name(at), 24), trn_level_name(at),
                     trni_thousands(count, at->size), l ? "of the box within" : "chips");
        trni_draw_amounts(net, at, rate, time);
        if (at->wiring != TRN_WIRING_NONE)
            snprintf(words + used, sizeof words - (size_t)used, ", %s, %s GB/s", trni_wiring_words(at), rate);
        trni_draw_text(n->paper, "ink small", x + 12, y + 20, 0, words);
    }
    const double in = 22.0 * (n->levels - 1), y = n->top + 36.0 * (n->levels - 1) + 50;
    const int size = net->level[0].size;
    for (int i = 0; i < size && i < TRNI_NEST_CHIPS; i++)
        trni_draw_chip(n->paper, i, n->left + in + 36 + 56 * i, y, n->chip_wide, n->chip_high);
    if (size > TRNI_NEST_CHIPS)
        trni_draw_text(n->paper, "faint", n->left + in + 36 + 56 * TRNI_NEST_CHIPS, y + 4, 1, "...");
}

/* ---- which layout, and the frame around it ---- */

typedef struct trni_drawing_kind {
    bool (*fits)(trni_drawing *n);
    void (*draw)(const trni_drawing *n);
} trni_drawing_kind;

TRNI_FN const trni_drawing_kind *trni_drawing_choose(trni_drawing *n, int levels)
{
    static const trni_drawing_kind layout[] = {
        { trni_circle_fits, trni_circle_draw },
        { trni_torus_fits, trni_torus_draw },
        { trni_racks_fit, trni_racks_draw },
        { trni_nest_fits, trni_nest_draw },
    };
    n->levels = levels;
    n->chips = trn_topology_stride(n->paper->net, levels);
    unsigned i = 0;
    while (!layout[i].fits(n)) i++;
    return &layout[i];
}

/* One unit on a pile of them, and a line from each of its chips to the network that joins all units. */
TRNI_FN void trni_cluster_draw(const trni_drawing *n, double box_x, double box_wide)
{
    const trn_topology *net = n->paper->net;
    const int outer = net->levels - 1;
    const double box_y = n->top - 34, box_high = n->high + 42, fabric_y = box_y + box_high + 56;
    char words[160], count[32], rate[48];
    for (int i = 0; i < n->chips; i++) {
        const double x = box_x + box_wide * (i + 1) / (n->chips + 1);
        trni_draw_link(n->paper, outer, trni_draw_pair(net, outer, i), x, box_y + box_high, x, fabric_y, 0, 0);
    }
    for (int i = 3; i-- > 0;) trni_draw_group(n->paper, "inner", box_x + 6 * i, box_y + 6 * i, box_wide, box_high);
    snprintf(words, sizeof words, "one of %s groups of %d", trni_thousands(count, net->level[outer].size), n->chips);
    trni_draw_text(n->paper, "ink bold", box_x + 14, box_y + 22, 0, words);
    snprintf(words, sizeof words, "x %s", count);
    trni_draw_text(n->paper, "ink big", box_x + box_wide - 14, box_y + 26, 2, words);
    trni_print(rate, sizeof rate, "%.4g GB/s one way", net->level[outer].bytes_per_s / 1e9);
    const char *name = trn_level_name(&net->level[outer]);
    snprintf(words, sizeof words, "%.*s: %s ports of %s", trni_draw_fit(name, 24), name,
             trni_thousands(count, net->chips), rate);
    trni_draw_switch(n->paper, box_x, fabric_y, box_wide + 12, 30, words);
}

/* A system by the name that its vendor gives it, and what follows that name in the network's. */
TRNI_FN void trni_topology_title(const trn_topology *net, char title[96])
{
    const trn_system_spec *spec = trn_system_spec_of(net->system);
    const size_t known = spec ? strlen(spec->name) : 0;
    if (spec && strncmp(net->name, spec->name, known) == 0)
        snprintf(title, 96, "%.30s%.60s", spec->title, net->name + known);
    else
        trni_copy_text(title, 96, net->name);
}

TRN_API trn_status trn_topology_svg(const trn_topology_svg_args *args)
{
    TRNI_FLOATS;
    trni_canvas p;
    trni_drawing plan;
    if (!args->write) return trni_fail(args->error, TRN_EINVAL, "write is NULL: the picture has nowhere to go");
    const trn_status status = trn_topology_check(args->net, args->error);
    if (status != TRN_OK) return status;
    trni_draw_open(&p, args->net, args->load, args->write, args->user);
    const trn_topology *net = p.net;
    memset(&plan, 0, sizeof plan);
    plan.paper = &p;
    const trni_drawing_kind *layout = trni_drawing_choose(&plan, net->levels);
    const bool cluster = layout->fits == trni_nest_fits && net->levels > 1 &&
                         net->level[net->levels - 1].wiring == TRN_WIRING_SWITCH &&
                         trni_planes(&net->level[net->levels - 1]) == 1 && net->level[net->levels - 1].size > 1;
    if (cluster) {
        layout = trni_drawing_choose(&plan, net->levels - 1);
        if (layout->fits == trni_nest_fits) layout = trni_drawing_choose(&plan, net->levels);
    }
    const bool unit = plan.levels < net->levels;
    const double frame = unit ? plan.wide + 2 * TRNI_DRAW_MARGIN : plan.wide, inner = frame < 720 ? 720 : frame;
    const int width = (int)inner + 2 * TRNI_DRAW_MARGIN + 1;
    plan.left = (width - plan.wide) / 2;
    plan.top = TRNI_DRAW_TOP + (unit ? 34 : 0);
    const double drawn = plan.top + plan.high + (unit ? 8 + 56 + 30 + 16 : 8);
    char title[96];
    trni_topology_title(net, title);
    trni_draw_head(&p, args->title ? args->title : title, width, (int)drawn + trni_draw_legend_height(&p, width));
    if (unit) trni_cluster_draw(&plan, (width - frame) / 2, frame - 12);
    layout->draw(&plan);
    trni_draw_legend(&p, drawn, args->load_unit);
    trni_draw_close(&p);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_SVG_H */

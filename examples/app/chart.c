/* chart.c - lines on two axes, and bars.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>
#include <stdlib.h>

#include "chart_draw.h"

enum { HEIGHT = 420, RIGHT = CHART_WIDTH - CHART_MARGIN, LEGEND = 20, MANY = 2000, MANY_DOTS = 300 };

typedef struct frame {
    chart_axis x, y;
} frame;

static const char *text_of(const char *text) { return text ? text : ""; }

static bool point_shows(const frame *f, const chart_line *l, int64_t i)
{
    return chart_axis_shows(&f->x, l->x[i]) && chart_axis_shows(&f->y, l->y[i]);
}

/* ---- axes ---- */

static bool fit(const chart *c, frame *f)
{
    bool any = false;
    f->x = (chart_axis){ .log = c->x_log, .low = INFINITY, .high = -INFINITY };
    f->y = (chart_axis){ .log = c->y_log, .low = INFINITY, .high = -INFINITY };
    for (int l = 0; l < c->lines; l++)
        for (int64_t i = 0; i < c->line[l].count; i++) {
            if (!point_shows(f, &c->line[l], i)) continue;
            any = true;
            f->x.low = fmin(f->x.low, c->line[l].x[i]), f->x.high = fmax(f->x.high, c->line[l].x[i]);
            f->y.low = fmin(f->y.low, c->line[l].y[i]), f->y.high = fmax(f->y.high, c->line[l].y[i]);
        }
    const bool given = c->y_low < c->y_high && chart_axis_shows(&f->y, c->y_low) && chart_axis_shows(&f->y, c->y_high);
    if (given) f->y.low = c->y_low, f->y.high = c->y_high;
    chart_axis_widen(&f->x);
    chart_axis_widen(&f->y);
    return any;
}

static void draw_y(FILE *out, const frame *f, const chart_ticks *ticks)
{
    for (int i = 0; i < ticks->count; i++) {
        const double y = chart_axis_at(&f->y, ticks->at[i]);
        const bool zero = !f->y.log && fabs(ticks->at[i]) < 1e-9 * (f->y.high - f->y.low);
        fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero ? "axis" : "grid",
                f->x.from, f->x.to, y, y);
        chart_text(out, "tick", f->x.from - 8, y + 4, CHART_END, 100, ticks->text[i]);
    }
}

static void draw_x(FILE *out, const frame *f, const chart_ticks *ticks)
{
    const double bottom = f->y.from;
    for (int i = 0; i < ticks->count; i++) {
        const double x = chart_axis_at(&f->x, ticks->at[i]);
        fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, bottom,
                bottom + 4);
        chart_text(out, "tick", x, bottom + 18, CHART_MIDDLE, 100, ticks->text[i]);
    }
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", f->x.from, f->x.to, bottom,
            bottom);
}

static void draw_frame(FILE *out, const chart *c, frame *f, double top)
{
    chart_ticks x, y;
    double wide = 0;
    f->y.from = HEIGHT - 46, f->y.to = top + 26;
    chart_axis_ticks(&f->y, 6, !(c->y_low < c->y_high), &y);
    for (int i = 0; i < y.count; i++) wide = fmax(wide, chart_text_width(y.text[i]));
    f->x.from = CHART_MARGIN + wide + 8, f->x.to = RIGHT;
    chart_axis_ticks(&f->x, 8, false, &x);
    chart_text(out, "", CHART_MARGIN, top + 10, CHART_START, CHART_WIDTH - 2 * CHART_MARGIN, text_of(c->y_title));
    chart_text(out, "", (f->x.from + f->x.to) / 2, HEIGHT - 10, CHART_MIDDLE, f->x.to - f->x.from, text_of(c->x_title));
    draw_y(out, f, &y);
    draw_x(out, f, &x);
}

/* ---- legend ---- */

static void sample(FILE *out, const chart_line *l, double x, double y)
{
    const int colour = chart_colour(l->colour);
    fprintf(out, "<path class=\"line s%d%s\" d=\"M%.1f %.1fh20\"/>", colour, l->dashed ? " dash" : "", x, y);
    if (l->dots) fprintf(out, "<circle class=\"dot k%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/>", colour, x + 10, y);
}

/* Names side by side, in as many rows as they need; returns where the last one ends. */
static double draw_legend(FILE *out, const chart *c, double top)
{
    const double most = CHART_WIDTH - 2 * CHART_MARGIN;
    double x = CHART_MARGIN, y = top + 6;
    bool any = false;
    for (int i = 0; i < c->lines && y < HEIGHT / 2.0; i++) {
        const char *name = text_of(c->line[i].name);
        if (!*name) continue;
        const double wide = 26 + fmin(chart_text_width(name), most - 26);
        if (any && x + wide > CHART_WIDTH - CHART_MARGIN) x = CHART_MARGIN, y += LEGEND;
        any = true;
        sample(out, &c->line[i], x, y - 4);
        chart_text(out, "", x + 26, y, CHART_START, most - 26, name);
        x += wide + 16;
    }
    return any ? y + 14 : top;
}

/* ---- a line ---- */

typedef struct place {
    double x, y;
} place;

typedef struct pen {
    FILE *out;
    const frame *frame;
    bool open, down; /* the path is begun; there is a last place */
    place last, drawn;
} pen;

/* The part of a..b between two limits of one coordinate; false: none. */
static bool clip(place *a, place *b, double low, double high)
{
    if (fmin(a->y, b->y) > high || fmax(a->y, b->y) < low) return false;
    const place from = *a, to = *b;
    place *end[] = { a, b };
    for (int i = 0; i < 2; i++) {
        const double limit = fmax(low, fmin(end[i]->y, high));
        if (limit < end[i]->y || limit > end[i]->y) {
            end[i]->x = from.x + (to.x - from.x) * ((limit - from.y) / (to.y - from.y));
            end[i]->y = limit;
        }
    }
    return true;
}

static void pen_go(pen *p, place to)
{
    place a = p->down ? p->last : to, b = to;
    p->last = to;
    p->down = true;
    if (!clip(&a, &b, p->frame->y.to, p->frame->y.from)) return;
    const bool joined = p->open && hypot(a.x - p->drawn.x, a.y - p->drawn.y) < 1e-6;
    if (!joined) fprintf(p->out, "M%.1f %.1f", a.x, a.y);
    fprintf(p->out, "L%.1f %.1f", b.x, b.y);
    p->drawn = b;
    p->open = true;
}

/* Of many points in one column of pixels, the first, the lowest, the highest and the last tell all that one can see. */
typedef struct column {
    int64_t key;
    int count;
    place first, low, high, last;
    bool low_first;
} column;

static void column_end(column *c, pen *p)
{
    if (c->count) pen_go(p, c->first);
    if (c->count > 2) {
        pen_go(p, c->low_first ? c->low : c->high);
        pen_go(p, c->low_first ? c->high : c->low);
    }
    if (c->count > 1) pen_go(p, c->last);
    c->count = 0;
}

static void column_add(column *c, pen *p, place at)
{
    const int64_t key = (int64_t)floor(2 * at.x);
    if (c->count && key != c->key) column_end(c, p);
    if (!c->count) *c = (column){ .key = key, .first = at, .low = at, .high = at };
    if (at.y < c->low.y) c->low = at, c->low_first = false;
    if (at.y > c->high.y) c->high = at, c->low_first = true;
    c->last = at;
    c->count++;
}

static place place_of(const frame *f, const chart_line *l, int64_t i)
{
    return (place){ chart_axis_at(&f->x, l->x[i]), chart_axis_at(&f->y, l->y[i]) };
}

static void draw_path(FILE *out, const frame *f, const chart_line *l)
{
    pen p = { .out = out, .frame = f };
    column pixels = { 0 };
    fprintf(out, "<path class=\"line s%d%s\" d=\"M0 0", chart_colour(l->colour), l->dashed ? " dash" : "");
    for (int64_t i = 0; i < l->count; i++) {
        if (!point_shows(f, l, i)) {
            column_end(&pixels, &p);
            p.down = p.open = false;
        } else if (l->count > MANY) {
            column_add(&pixels, &p, place_of(f, l, i));
        } else {
            pen_go(&p, place_of(f, l, i));
        }
    }
    column_end(&pixels, &p);
    fputs("\"/>\n", out);
}

static void draw_dots(FILE *out, const frame *f, const chart_line *l)
{
    for (int64_t i = 0; i < l->count && l->count <= MANY_DOTS; i++) {
        if (!point_shows(f, l, i)) continue;
        const place at = place_of(f, l, i);
        if (at.y < f->y.to - 0.5 || at.y > f->y.from + 0.5) continue;
        char x[40], y[40];
        fprintf(out, "<circle class=\"dot k%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"><title>%s, %s</title></circle>\n",
                chart_colour(l->colour), at.x, at.y, app_human(x, sizeof x, l->x[i]), app_human(y, sizeof y, l->y[i]));
    }
}

void chart_lines(FILE *out, const chart *c)
{
    frame f;
    const bool any = fit(c, &f);
    chart_open(out, c->title, HEIGHT, c->alone);
    const double top = draw_legend(out, c, c->title ? CHART_TOP + 4 : CHART_MARGIN);
    if (any)
        draw_frame(out, c, &f, top);
    else
        chart_text(out, "", CHART_WIDTH / 2.0, HEIGHT / 2.0, CHART_MIDDLE, 200, "nothing to show");
    for (int i = 0; i < c->lines; i++) draw_path(out, &f, &c->line[i]);
    for (int i = 0; i < c->lines; i++)
        if (c->line[i].dots) draw_dots(out, &f, &c->line[i]);
    chart_close(out);
}

/* ---- horizontal bars with a name before and a label after each ---- */

enum { BAR = 17, EACH = 26, NAMES_AT_MOST = 260 };

static const char *label_of(const chart_bar *b, char *text, size_t size)
{
    return b->label ? b->label : isfinite(b->value) ? app_human(text, size, b->value) : "-";
}

typedef struct bars_frame {
    chart_axis axis;
    double names; /* where they end */
} bars_frame;

static bars_frame measure_bars(const chart_bar *bar, int bars)
{
    bars_frame f = { .axis = { .low = 0, .high = 0 } };
    double name = 40, label = 20;
    char text[64];
    for (int i = 0; i < bars; i++) {
        name = fmax(name, chart_text_width(bar[i].name ? bar[i].name : ""));
        label = fmax(label, chart_text_width(label_of(&bar[i], text, sizeof text)));
        if (!chart_axis_shows(&f.axis, bar[i].value)) continue;
        f.axis.low = fmin(f.axis.low, bar[i].value);
        f.axis.high = fmax(f.axis.high, bar[i].value);
    }
    label = fmin(label, NAMES_AT_MOST);
    if (!(f.axis.low < f.axis.high)) f.axis.high = 1;
    f.names = CHART_MARGIN + fmin(name, NAMES_AT_MOST);
    f.axis.from = f.names + 12 + (f.axis.low < 0 ? label : 0);
    f.axis.to = CHART_WIDTH - CHART_MARGIN - 8 - label;
    return f;
}

static void draw_bar(FILE *out, const bars_frame *f, const chart_bar *b, double y)
{
    char text[64];
    const bool shown = chart_axis_shows(&f->axis, b->value), left = shown && b->value < 0;
    const double zero = chart_axis_at(&f->axis, 0), end = shown ? chart_axis_at(&f->axis, b->value) : zero;
    const double label = left ? f->axis.from - f->names : CHART_WIDTH - CHART_MARGIN - f->axis.to;
    chart_text(out, "name", f->names, y + 13, CHART_END, NAMES_AT_MOST, b->name ? b->name : "");
    if (shown)
        fprintf(out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>\n",
                chart_colour(b->colour), fmin(zero, end), y, fmax(fabs(end - zero), 1.5), BAR);
    chart_text(out, "", end + (left ? -7 : 7), y + 13, left ? CHART_END : CHART_START, label,
               label_of(b, text, sizeof text));
}

void chart_bars(FILE *out, const char *title, const chart_bar *bar, int bars, bool alone)
{
    const double top = title ? CHART_TOP + 4 : CHART_MARGIN;
    const bars_frame f = measure_bars(bar, bars);
    chart_open(out, title, (int)top + EACH * bars + 12, alone);
    const double zero = chart_axis_at(&f.axis, 0);
    for (int i = 0; i < bars; i++) draw_bar(out, &f, &bar[i], top + EACH * i);
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero, zero, top - 4,
            top + EACH * bars - 4);
    chart_close(out);
}

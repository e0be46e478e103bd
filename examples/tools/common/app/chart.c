/* chart.c - lines on two axes.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>
#include <stdlib.h>

#include "chart_draw.h"

enum { HEIGHT = 420, LEGEND = 20, MANY = 2000, MANY_DOTS = 300 };

typedef struct frame {
    chart_axis x, y;
    double height;
} frame;

static double height_on(const chart_sheet *s) { return fmin(HEIGHT, 180 + 0.35 * s->width); }

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

static void draw_frame(const chart_sheet *s, const chart *c, frame *f, double top)
{
    FILE *out = s->out;
    chart_ticks x, y;
    double wide = 0;
    const double most = s->width - 2 * s->margin;
    const int above = chart_paragraph(out, "", s->margin, top + 10, CHART_START, most, chart_text_of(c->y_title));
    const int under = chart_paragraph(NULL, "", 0, 0, CHART_START, most, chart_text_of(c->x_title));
    f->y.from = f->height - 29 - CHART_LINE * under, f->y.to = top + 9 + CHART_LINE * above;
    chart_axis_ticks(&f->y, 6, !(c->y_low < c->y_high), &y);
    for (int i = 0; i < y.count; i++) wide = fmax(wide, chart_text_width(y.text[i]));
    f->x.from = s->margin + wide + 8, f->x.to = s->width - s->margin - 12;
    chart_axis_ticks(&f->x, s->width / 80, false, &x);
    chart_paragraph(out, "", s->width / 2.0, f->y.from + 38, CHART_MIDDLE, most, chart_text_of(c->x_title));
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

/* Names side by side, in as many rows as they need; with `draw`, drawn from `top` on. Returns how many rows. */
static int legend(const chart_sheet *s, const chart *c, double top, bool draw)
{
    enum { ROWS_AT_MOST = 9 };
    const double most = s->width - 2 * s->margin;
    double x = s->margin;
    int rows = 0;
    for (int i = 0; i < c->lines; i++) {
        const char *name = chart_text_of(c->line[i].name);
        if (!*name) continue;
        const double wide = 26 + fmin(chart_text_width(name), most - 26);
        const bool full = rows && x + wide > s->width - s->margin;
        if (full && rows == ROWS_AT_MOST) break;
        if (!rows || full) x = s->margin, rows++;
        const double y = top + 6 + LEGEND * (rows - 1);
        if (draw) {
            sample(s->out, &c->line[i], x, y - 4);
            chart_text(s->out, "", x + 26, y, CHART_START, most - 26, name);
        }
        x += wide + 16;
    }
    return rows;
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

/* For those who cannot see it. */
static void describe(char *text, size_t size, const chart *c)
{
    int used = snprintf(text, size, "%d line%s", c->lines, c->lines == 1 ? "" : "s");
    if (*chart_text_of(c->y_title)) used += snprintf(text + used, size - (size_t)used, " of %.100s", c->y_title);
    if (*chart_text_of(c->x_title)) snprintf(text + used, size - (size_t)used, " over %.100s", c->x_title);
}

static void draw_lines(const chart_sheet *s, const void *what)
{
    const chart *c = what;
    FILE *out = s->out;
    char about[300];
    frame f;
    const bool any = fit(c, &f);
    const double top = chart_top(s, c->title) + 4, key = LEGEND * legend(s, c, top, false);
    f.height = height_on(s) + fmax(0, key - LEGEND);
    describe(about, sizeof about, c);
    chart_open(s, c->title, about, f.height);
    legend(s, c, top, true);
    if (any)
        draw_frame(s, c, &f, top + key);
    else
        chart_text(out, "", s->width / 2.0, f.height / 2, CHART_MIDDLE, 200, "nothing to show");
    for (int i = 0; i < c->lines; i++) draw_path(out, &f, &c->line[i]);
    for (int i = 0; i < c->lines; i++)
        if (c->line[i].dots) draw_dots(out, &f, &c->line[i]);
    chart_close(s);
}

void chart_lines(FILE *out, const chart *c) { chart_figure(out, c->alone, draw_lines, c); }

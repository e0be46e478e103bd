/* chart.c - lines on two axes.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>
#include <stdlib.h>

#include "chart_paper.h"

enum { HEIGHT = 420, RIGHT = PAPER_WIDTH - PAPER_MARGIN, LEGEND = 20, MANY = 2000, MANY_DOTS = 300 };

typedef struct frame {
    paper_axis x, y;
} frame;

static const char *text_of(const char *text) { return text ? text : ""; }

static bool point_shows(const frame *f, const chart_line *l, int64_t i)
{
    return paper_shows(&f->x, l->x[i]) && paper_shows(&f->y, l->y[i]);
}

/* ---- axes ---- */

static bool fit(const chart *c, frame *f)
{
    bool any = false;
    f->x = (paper_axis){ .log = c->x_log, .low = INFINITY, .high = -INFINITY };
    f->y = (paper_axis){ .log = c->y_log, .low = INFINITY, .high = -INFINITY };
    for (int l = 0; l < c->lines; l++)
        for (int64_t i = 0; i < c->line[l].count; i++) {
            if (!point_shows(f, &c->line[l], i)) continue;
            any = true;
            f->x.low = fmin(f->x.low, c->line[l].x[i]), f->x.high = fmax(f->x.high, c->line[l].x[i]);
            f->y.low = fmin(f->y.low, c->line[l].y[i]), f->y.high = fmax(f->y.high, c->line[l].y[i]);
        }
    const bool given = c->y_low < c->y_high && paper_shows(&f->y, c->y_low) && paper_shows(&f->y, c->y_high);
    if (given) f->y.low = c->y_low, f->y.high = c->y_high;
    paper_widen(&f->x);
    paper_widen(&f->y);
    return any;
}

static void draw_y(FILE *out, const frame *f, const paper_ticks *ticks)
{
    for (int i = 0; i < ticks->count; i++) {
        const double y = paper_at(&f->y, ticks->at[i]);
        const bool zero = !f->y.log && fabs(ticks->at[i]) < 1e-9 * (f->y.high - f->y.low);
        fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero ? "axis" : "grid",
                f->x.from, f->x.to, y, y);
        paper_text(out, "tick", f->x.from - 8, y + 4, PAPER_END, 100, ticks->text[i]);
    }
}

static void draw_x(FILE *out, const frame *f, const paper_ticks *ticks)
{
    const double bottom = f->y.from;
    for (int i = 0; i < ticks->count; i++) {
        const double x = paper_at(&f->x, ticks->at[i]);
        fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, bottom,
                bottom + 4);
        paper_text(out, "tick", x, bottom + 18, PAPER_MIDDLE, 100, ticks->text[i]);
    }
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", f->x.from, f->x.to, bottom,
            bottom);
}

static void draw_frame(FILE *out, const chart *c, frame *f, double top)
{
    paper_ticks x, y;
    double wide = 0;
    f->y.from = HEIGHT - 46, f->y.to = top + 26;
    paper_mark(&f->y, 6, !(c->y_low < c->y_high), &y);
    for (int i = 0; i < y.count; i++) wide = fmax(wide, paper_text_width(y.text[i]));
    f->x.from = PAPER_MARGIN + wide + 8, f->x.to = RIGHT;
    paper_mark(&f->x, 8, false, &x);
    paper_text(out, "", PAPER_MARGIN, top + 10, PAPER_START, PAPER_WIDTH - 2 * PAPER_MARGIN, text_of(c->y_title));
    paper_text(out, "", (f->x.from + f->x.to) / 2, HEIGHT - 10, PAPER_MIDDLE, f->x.to - f->x.from, text_of(c->x_title));
    draw_y(out, f, &y);
    draw_x(out, f, &x);
}

/* ---- legend ---- */

static void sample(FILE *out, const chart_line *l, double x, double y)
{
    const int colour = paper_colour(l->colour);
    fprintf(out, "<path class=\"line s%d%s\" d=\"M%.1f %.1fh20\"/>", colour, l->dashed ? " dash" : "", x, y);
    if (l->dots) fprintf(out, "<circle class=\"dot k%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/>", colour, x + 10, y);
}

/* Names side by side, in as many rows as they need; returns where the last one ends. */
static double draw_legend(FILE *out, const chart *c, double top)
{
    const double most = PAPER_WIDTH - 2 * PAPER_MARGIN;
    double x = PAPER_MARGIN, y = top + 6;
    bool any = false;
    for (int i = 0; i < c->lines && y < HEIGHT / 2.0; i++) {
        const char *name = text_of(c->line[i].name);
        if (!*name) continue;
        const double wide = 26 + fmin(paper_text_width(name), most - 26);
        if (any && x + wide > PAPER_WIDTH - PAPER_MARGIN) x = PAPER_MARGIN, y += LEGEND;
        any = true;
        sample(out, &c->line[i], x, y - 4);
        paper_text(out, "", x + 26, y, PAPER_START, most - 26, name);
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
    return (place){ paper_at(&f->x, l->x[i]), paper_at(&f->y, l->y[i]) };
}

static void draw_path(FILE *out, const frame *f, const chart_line *l)
{
    pen p = { .out = out, .frame = f };
    column pixels = { 0 };
    fprintf(out, "<path class=\"line s%d%s\" d=\"M0 0", paper_colour(l->colour), l->dashed ? " dash" : "");
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
                paper_colour(l->colour), at.x, at.y, app_human(x, sizeof x, l->x[i]), app_human(y, sizeof y, l->y[i]));
    }
}

void chart_lines(FILE *out, const chart *c)
{
    frame f;
    const bool any = fit(c, &f);
    paper_open(out, c->title, HEIGHT, c->alone);
    const double top = draw_legend(out, c, c->title ? PAPER_TOP + 4 : PAPER_MARGIN);
    if (any)
        draw_frame(out, c, &f, top);
    else
        paper_text(out, "", PAPER_WIDTH / 2.0, HEIGHT / 2.0, PAPER_MIDDLE, 200, "nothing to show");
    for (int i = 0; i < c->lines; i++) draw_path(out, &f, &c->line[i]);
    for (int i = 0; i < c->lines; i++)
        if (c->line[i].dots) draw_dots(out, &f, &c->line[i]);
    paper_close(out);
}

/* chart_bars.c - horizontal bars with a name before and a label after each.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>

#include "chart_draw.h"

enum { BAR = 17, EACH = 26, ABOVE = 18 }; /* where names are long, they stand above their bars */

typedef struct bars_what {
    const char *title;
    const chart_bar *bar;
    int bars;
} bars_what;

static const char *label_of(const chart_bar *b, char *text, size_t size)
{
    return b->label ? b->label : isfinite(b->value) ? app_human(text, size, b->value) : "-";
}

typedef struct bars_frame {
    chart_axis axis;
    double names, label; /* where names end; the room of a label */
    bool above;
    double each, bar; /* pixels from one to the next; from there to its rectangle */
} bars_frame;

static bars_frame measure_bars(const chart_sheet *s, const chart_bar *bar, int bars)
{
    bars_frame f = { .axis = { .low = 0, .high = 0 } };
    double name = 40, label = 20;
    char text[64];
    for (int i = 0; i < bars; i++) {
        name = fmax(name, chart_text_width(chart_text_of(bar[i].name)));
        label = fmax(label, chart_text_width(label_of(&bar[i], text, sizeof text)));
        if (!chart_axis_shows(&f.axis, bar[i].value)) continue;
        f.axis.low = fmin(f.axis.low, bar[i].value);
        f.axis.high = fmax(f.axis.high, bar[i].value);
    }
    if (!(f.axis.low < f.axis.high)) f.axis.high = 1;
    f.above = name + label > 0.6 * s->width;
    f.label = fmin(label, 0.4 * s->width);
    f.names = s->margin + (f.above ? -12 : fmin(name, 0.4 * s->width));
    f.axis.from = f.names + 12 + (f.axis.low < 0 ? f.label + 8 : 0);
    f.axis.to = s->width - s->margin - 8 - f.label;
    f.bar = f.above ? ABOVE : 0;
    f.each = EACH + f.bar;
    return f;
}

static void draw_bar(const chart_sheet *s, const bars_frame *f, const chart_bar *b, double y)
{
    char text[64];
    FILE *out = s->out;
    const bool shown = chart_axis_shows(&f->axis, b->value), left = shown && b->value < 0;
    const double zero = chart_axis_at(&f->axis, 0), end = shown ? chart_axis_at(&f->axis, b->value) : zero;
    if (f->above)
        chart_text(out, "name", s->margin, y + 13, CHART_START, s->width - 2 * s->margin, chart_text_of(b->name));
    else
        chart_text(out, "name", f->names, y + 13, CHART_END, f->names - s->margin + 1, chart_text_of(b->name));
    y += f->bar;
    if (shown)
        fprintf(out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>\n",
                chart_colour(b->colour), fmin(zero, end), y, fmax(fabs(end - zero), 1.5), BAR);
    chart_text(out, "", end + (left ? -7 : 7), y + 13, left ? CHART_END : CHART_START, f->label + 1,
               label_of(b, text, sizeof text));
}

static void draw_bars(const chart_sheet *s, const void *what)
{
    const bars_what *w = what;
    const double top = chart_top(s, w->title);
    const bars_frame f = measure_bars(s, w->bar, w->bars);
    char about[80];
    snprintf(about, sizeof about, "%d bars, each with its name and value as text", w->bars);
    chart_open(s, w->title, about, top + f.each * w->bars + 4);
    const double zero = chart_axis_at(&f.axis, 0);
    for (int i = 0; i < w->bars; i++) draw_bar(s, &f, &w->bar[i], top + f.each * i);
    for (int i = 0; i < w->bars; i++) { /* the line of zero, which names above bars interrupt */
        const double y = top + f.each * i + f.bar - 4;
        fprintf(s->out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero, zero, y,
                y + EACH);
    }
    chart_close(s);
}

void chart_bars(FILE *out, const char *title, const chart_bar *bar, int bars, bool alone)
{
    chart_figure(out, alone, draw_bars, &(bars_what){ title, bar, bars });
}

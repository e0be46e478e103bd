/* chart_bars.c - horizontal bars with a name before and a label after each.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>

#include "chart_paper.h"

enum { BAR = 17, EACH = 26, NAMES_AT_MOST = 260 };

static const char *label_of(const chart_bar *b, char *room, size_t size)
{
    return b->label ? b->label : isfinite(b->value) ? app_human(room, size, b->value) : "-";
}

typedef struct bars_frame {
    paper_axis axis;
    double names; /* where they end */
} bars_frame;

static bars_frame measure_bars(const chart_bar *bar, int bars)
{
    bars_frame f = { .axis = { .low = 0, .high = 0 } };
    double name = 40, label = 20;
    char room[64];
    for (int i = 0; i < bars; i++) {
        name = fmax(name, paper_text_width(bar[i].name ? bar[i].name : ""));
        label = fmax(label, paper_text_width(label_of(&bar[i], room, sizeof room)));
        if (!paper_shows(&f.axis, bar[i].value)) continue;
        f.axis.low = fmin(f.axis.low, bar[i].value);
        f.axis.high = fmax(f.axis.high, bar[i].value);
    }
    label = fmin(label, NAMES_AT_MOST);
    if (!(f.axis.low < f.axis.high)) f.axis.high = 1;
    f.names = PAPER_MARGIN + fmin(name, NAMES_AT_MOST);
    f.axis.from = f.names + 12 + (f.axis.low < 0 ? label : 0);
    f.axis.to = PAPER_WIDTH - PAPER_MARGIN - 8 - label;
    return f;
}

static void draw_bar(FILE *out, const bars_frame *f, const chart_bar *b, double y)
{
    char room[64];
    const bool shown = paper_shows(&f->axis, b->value), left = shown && b->value < 0;
    const double zero = paper_at(&f->axis, 0), end = shown ? paper_at(&f->axis, b->value) : zero;
    const double label = left ? f->axis.from - f->names : PAPER_WIDTH - PAPER_MARGIN - f->axis.to;
    paper_text(out, "name", f->names, y + 13, PAPER_END, NAMES_AT_MOST, b->name ? b->name : "");
    if (shown)
        fprintf(out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>\n",
                paper_colour(b->colour), fmin(zero, end), y, fmax(fabs(end - zero), 1.5), BAR);
    paper_text(out, "", end + (left ? -7 : 7), y + 13, left ? PAPER_END : PAPER_START, label,
               label_of(b, room, sizeof room));
}

void chart_bars(FILE *out, const char *title, const chart_bar *bar, int bars, bool alone)
{
    const double top = title ? PAPER_TOP + 4 : PAPER_MARGIN;
    const bars_frame f = measure_bars(bar, bars);
    paper_open(out, title, (int)top + EACH * bars + 12, alone);
    const double zero = paper_at(&f.axis, 0);
    for (int i = 0; i < bars; i++) draw_bar(out, &f, &bar[i], top + EACH * i);
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero, zero, top - 4,
            top + EACH * bars - 4);
    paper_close(out);
}

/* chart_draw.h - what the pictures of chart.h are drawn with: a sheet with a title, text that fits, axes with ticks.
 * SPDX-License-Identifier: MIT
 */
#ifndef APP_CHART_DRAW_H
#define APP_CHART_DRAW_H

#include "chart.h"

enum { CHART_WIDTH = 720, CHART_MARGIN = 22, CHART_COLOURS = 6, CHART_TICKS = 24 };

enum { CHART_TOP = 44 }; /* below the title */
/* The SVG element, its colours, its title. */
void chart_open(FILE *out, const char *title, int height, bool alone);
void chart_close(FILE *out);

typedef enum chart_anchor { CHART_START, CHART_MIDDLE, CHART_END } chart_anchor;

/* Cut to `most` pixels; style: classes "name", "tick", "small", "title" or "". */
void chart_text(FILE *out, const char *style, double x, double y, chart_anchor anchor, double most, const char *text);
double chart_text_width(const char *text); /* about, at 12 px */
int chart_colour(int colour);              /* any number to 0 ... CHART_COLOURS - 1 */

/* A range of values along pixels from `from` to `to`. */
typedef struct chart_axis {
    bool log;
    double low, high;
    double from, to;
} chart_axis;

typedef struct chart_ticks {
    int count;
    double at[CHART_TICKS];
    char text[CHART_TICKS][40];
} chart_ticks;

bool chart_axis_shows(const chart_axis *axis, double value); /* finite, and above 0 where that matters */
void chart_axis_widen(chart_axis *axis);                     /* no range or an empty one becomes one around it */
double chart_axis_at(const chart_axis *axis, double value);
/* About `most` of them; with `round`, the range grows to the ticks next to its ends. */
void chart_axis_ticks(chart_axis *axis, int most, bool round, chart_ticks *ticks);
const char *chart_number(char *text, size_t size, double value, double step); /* as precise as the step asks for */

#endif /* APP_CHART_DRAW_H */

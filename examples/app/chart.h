/* chart.h - pictures of numbers as SVG: lines on two axes, bars, heat maps; for light and dark backgrounds.
 * SPDX-License-Identifier: MIT
 *
 *     const double x[] = { 16, 64, 256 }, y[] = { 1, 0.5, 0.25 };
 *     const chart_line line = { .name = "error", .x = x, .y = y, .count = 3, .dots = true };
 *     chart_lines(out, &(chart){ .title = "Error", .line = &line, .lines = 1, .x_log = true, .alone = true });
 *
 * Alone, a picture is a whole .svg file with colours of its own; else it is a part of a page.h page and has the page's.
 * Nothing here trusts its input: names are escaped and cut where they would not fit, and NaN, infinity and, on
 * logarithmic axes, what is not above 0 are gaps. Colours are numbers of app_colours' --f0 ... --f5, modulo 6.
 */
#ifndef APP_CHART_H
#define APP_CHART_H

#include "app.h"

typedef struct chart_line {
    const char *name; /* NULL or "": not in the legend */
    const double *x, *y;
    int64_t count;
    int colour;
    bool dashed, dots;
} chart_line;

typedef struct chart {
    const char *title, *x_title, *y_title;
    const chart_line *line;
    int lines;
    bool x_log, y_log;
    double y_low, y_high; /* both 0: fit */
    bool alone;
} chart;

void chart_lines(FILE *out, const chart *c);

typedef struct chart_bar {
    const char *name, *label; /* at its left; at its end, NULL: the value */
    double value;
    int colour;
} chart_bar;

void chart_bars(FILE *out, const char *title, const chart_bar *bar, int bars, bool alone);

/* [rows, columns]; NaN is an empty cell. Values below 0 have a colour of their own. Where there are more rows or
 * columns than fit, a cell shows the one of largest magnitude of those it stands for. */
void chart_heat(FILE *out, const char *title, const double *value, int rows, int columns, bool alone);

#endif /* APP_CHART_H */

/* chart.h - pictures of numbers as SVG: lines on two axes, bars, heat maps; for light and dark backgrounds.
 * SPDX-License-Identifier: MIT
 *
 *     const double x[] = { 16, 64, 256 }, y[] = { 1, 0.5, 0.25 };
 *     const chart_line line = { .name = "error", .x = x, .y = y, .count = 3, .dots = true };
 *     chart_lines(out, &(chart){ .title = "Error", .line = &line, .lines = 1, .x_log = true, .alone = true });
 *
 * Alone, a picture is a whole .svg file with colours of its own. Else it is a part of a page.h page, has the page's
 * colours, and is drawn in several widths, of which the page shows the one that fits: text is never scaled down.
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

/* What stands along one side of a heat map: names, or numbers, of which the round ones are shown. */
typedef struct chart_side {
    const char *title;       /* "layer"; NULL: none */
    const char *const *name; /* of each row or column; NULL: numbers */
    double first, each;      /* the number of the first one, and how many of them a row or column stands for; 0: 1 */
} chart_side;

/* A matrix as colours. Values below 0 have a colour of their own. Where there are more rows or columns than fit, a cell
 * shows the one of largest magnitude of those it stands for. */
typedef struct chart_map {
    const char *title;
    const double *value; /* [rows, columns]; NaN is an empty cell */
    int rows, columns;
    chart_side row, column;
    const char *value_title, *unit; /* of the legend of colours: "relative error", "%"; NULL: none */
    bool log;                       /* colours by the logarithm; what is not above 0 is as an empty cell */
    bool alone;
} chart_map;

void chart_heat_map(FILE *out, const chart_map *map);
/* The same with numbers from 0 on both sides, and nothing more. */
void chart_heat(FILE *out, const char *title, const double *value, int rows, int columns, bool alone);

#endif /* APP_CHART_H */

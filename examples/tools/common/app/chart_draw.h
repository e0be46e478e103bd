/* chart_draw.h - what the pictures of chart.h are drawn with: a sheet with a title, text that fits, axes with ticks.
 * SPDX-License-Identifier: MIT
 */
#ifndef APP_CHART_DRAW_H
#define APP_CHART_DRAW_H

#include "chart.h"

enum { CHART_NARROW = 336, CHART_MIDDLE_WIDTH = 520, CHART_WIDTH = 720, CHART_WIDE = 1060 };
enum { CHART_COLOURS = 6, CHART_TICKS = 24 };
enum { CHART_TOP = 44, CHART_LINE = 17 }; /* below a title of one line; from one line to the next */

/* What is drawn on: `width` pixels wide, with a margin at its left and right. */
typedef struct chart_sheet {
    FILE *out;
    int width, margin;
    bool alone;
} chart_sheet;

typedef void chart_drawing(const chart_sheet *sheet, const void *what);

/* Alone: one picture of CHART_WIDTH. In a page: one of each width. */
void chart_figure(FILE *out, bool alone, chart_drawing *draw, const void *what);
void chart_page_style(FILE *out); /* the rules of CSS that pictures in a page need, once */

/* The SVG element, its title, and a sentence about it for those who cannot see it. */
void chart_open(const chart_sheet *sheet, const char *title, const char *about, double height);
void chart_close(const chart_sheet *sheet);
double chart_top(const chart_sheet *sheet, const char *title); /* where what is below the title begins */

typedef enum chart_anchor { CHART_START, CHART_MIDDLE, CHART_END } chart_anchor;

/* Cut to `most` pixels, and whole in a tooltip then; style: classes "name", "tick", "small", "title" or "". */
void chart_text(FILE *out, const char *style, double x, double y, chart_anchor anchor, double most, const char *text);
void chart_text_up(FILE *out, const char *style, double x, double y, double most, const char *text); /* reads upwards */
/* In up to three lines, which end at blanks. Returns how many; `out` may be NULL. */
int chart_paragraph(FILE *out, const char *style, double x, double y, chart_anchor anchor, double most,
                    const char *text);
double chart_text_width(const char *text); /* about, at 12 px */
static inline const char *chart_text_of(const char *text) { return text ? text : ""; }
int chart_colour(int colour); /* any number to 0 ... CHART_COLOURS - 1 */

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

/* chart_paper.h - what the pictures of chart.h are drawn with: a sheet with a title, text that fits, axes with ticks.
 * SPDX-License-Identifier: MIT
 */
#ifndef APP_CHART_PAPER_H
#define APP_CHART_PAPER_H

#include "chart.h"

enum { PAPER_WIDTH = 720, PAPER_MARGIN = 22, PAPER_COLOURS = 6, PAPER_TICKS = 24 };

/* The SVG element, its colours, its title; *top is where the rest begins. */
void paper_open(FILE *out, const char *title, int height, bool alone);
void paper_close(FILE *out);
enum { PAPER_TOP = 44 }; /* below the title */

typedef enum paper_anchor { PAPER_START, PAPER_MIDDLE, PAPER_END } paper_anchor;

/* Cut to `room` pixels; style: classes "name", "tick", "small", "title" or "". */
void paper_text(FILE *out, const char *style, double x, double y, paper_anchor anchor, double room, const char *text);
double paper_text_width(const char *text); /* about, at 12 px */
int paper_colour(int colour);              /* any number to 0 ... PAPER_COLOURS - 1 */

/* A range of values along pixels from `from` to `to`. */
typedef struct paper_axis {
    bool log;
    double low, high;
    double from, to;
} paper_axis;

typedef struct paper_ticks {
    int count;
    double at[PAPER_TICKS];
    char text[PAPER_TICKS][40];
} paper_ticks;

bool paper_shows(const paper_axis *axis, double value); /* finite, and above 0 where that matters */
void paper_widen(paper_axis *axis);                     /* no range or an empty one becomes one around it */
double paper_at(const paper_axis *axis, double value);
/* About `most` of them; with `round`, the range grows to the ticks next to its ends. */
void paper_mark(paper_axis *axis, int most, bool round, paper_ticks *ticks);
const char *paper_number(char *text, size_t size, double value, double step); /* as precise as the step asks for */

#endif /* APP_CHART_PAPER_H */

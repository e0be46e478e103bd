/* chart_heat.c - a matrix as coloured cells: the stronger the colour, the larger the magnitude.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>

#include "chart_draw.h"

enum { LEFT = 64, KEY = 64, WIDE = CHART_WIDTH - LEFT - KEY - CHART_MARGIN, HIGH_AT_MOST = 420, CELL_AT_MOST = 36 };
enum { CELLS = 160, SHADES = 32, ABOVE = 2, BELOW = 3 }; /* colours of values above and below 0 */

/* Rows and columns of the picture, each of which stands for one or more of the matrix. */
typedef struct heat {
    const double *value;
    int rows, columns, down, across;
    double cell_wide, cell_high, top, most;
    bool negative;
} heat;

/* NaN only when both are. */
static double larger(double a, double b) { return isnan(a) || fabs(b) > fabs(a) ? b : a; }

static double value_at(const heat *h, int row, int column) { return h->value[(int64_t)row * h->columns + column]; }

static double cell_value(const heat *h, int row, int column)
{
    const int row_end = (int)((int64_t)(row + 1) * h->rows / h->down);
    const int column_end = (int)((int64_t)(column + 1) * h->columns / h->across);
    double v = NAN;
    for (int r = (int)((int64_t)row * h->rows / h->down); r < row_end; r++)
        for (int c = (int)((int64_t)column * h->columns / h->across); c < column_end; c++)
            v = larger(v, value_at(h, r, c));
    return v;
}

static void measure_heat(heat *h)
{
    h->down = h->rows < CELLS ? h->rows : CELLS;
    h->across = h->columns < CELLS ? h->columns : CELLS;
    h->cell_wide = fmin((double)WIDE / h->across, CELL_AT_MOST);
    h->cell_high = fmin(fmin((double)HIGH_AT_MOST / h->down, CELL_AT_MOST), 2 * h->cell_wide);
    for (int64_t i = 0; i < (int64_t)h->rows * h->columns; i++) {
        if (!isfinite(h->value[i])) continue;
        h->most = fmax(h->most, fabs(h->value[i]));
        h->negative = h->negative || h->value[i] < 0;
    }
}

enum { EMPTY = SHADES + 1, END }; /* what is no shade */

/* -SHADES ... SHADES; 0 is the background. What is not 0 is at least one shade away from it. */
static int shade_of(const heat *h, double v)
{
    if (isnan(v)) return EMPTY;
    if (!(fabs(v) > 0)) return 0;
    const double share = h->most > 0 ? fmin(fabs(v) / h->most, 1) : 1;
    const int shade = (int)fmax(1, rint(SHADES * share));
    return v < 0 ? -shade : shade;
}

static void shade(FILE *out, int n, double x, double y, double wide, double high)
{
    if (n == EMPTY) {
        fprintf(out, "<rect class=\"cell paper\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", x, y, wide,
                high);
        return;
    }
    fprintf(out,
            "<rect class=\"cell k%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill-opacity=\"%.2f\"/>\n",
            n < 0 ? BELOW : ABOVE, x, y, wide, high, fmin(0.03 + 0.97 * (n < 0 ? -n : n) / SHADES, 1));
}

/* Neighbours of one shade are one rectangle. */
static void draw_row(FILE *out, const heat *h, int row)
{
    for (int c = 0, from = 0, now = 0; c <= h->across; c++) {
        const int next = c < h->across ? shade_of(h, cell_value(h, row, c)) : END;
        if (next == now) continue;
        if (now)
            shade(out, now, LEFT + from * h->cell_wide, h->top + row * h->cell_high, (c - from) * h->cell_wide,
                  h->cell_high);
        from = c;
        now = next;
    }
}

/* About 8 indices along each side. */
static void draw_indices(FILE *out, const heat *h, bool rows)
{
    const int count = rows ? h->rows : h->columns;
    const double step = rows ? h->cell_high * h->down / count : h->cell_wide * h->across / count;
    chart_ticks ticks;
    chart_axis axis = { .low = 0, .high = count > 1 ? count - 1 : 1 };
    chart_axis_ticks(&axis, 8, false, &ticks);
    for (int i = 0; i < ticks.count; i++) {
        if (fabs(ticks.at[i] - rint(ticks.at[i])) > 1e-6 || ticks.at[i] > count - 1) continue;
        const double at = (ticks.at[i] + 0.5) * step;
        char text[24];
        snprintf(text, sizeof text, "%.0f", ticks.at[i]);
        if (rows)
            chart_text(out, "tick", LEFT - 8, h->top + at + 4, CHART_END, LEFT, text);
        else
            chart_text(out, "tick", LEFT + at, h->top + h->down * h->cell_high + 16, CHART_MIDDLE, 80, text);
    }
}

static void draw_key(FILE *out, const heat *h, double x)
{
    const double high = fmax(h->down * h->cell_high, 60);
    const int low = h->negative ? -SHADES : 0, shades = SHADES - low;
    char text[64];
    fprintf(out, "<rect class=\"cell track\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"%.1f\"/>\n", x, h->top, high);
    for (int s = low; s < SHADES; s++)
        shade(out, s < 0 ? s : s + 1, x, h->top + high * (SHADES - 1 - s) / shades, 12, high / shades);
    const double end[] = { h->most, 0, -h->most };
    for (int i = 0; i < (h->negative ? 3 : 2); i++)
        chart_text(out, "tick", x + 17, h->top + 9 + (high - 9) * i / (h->negative ? 2 : 1), CHART_START, KEY,
                   app_human(text, sizeof text, end[i]));
}

void chart_heat(FILE *out, const char *title, const double *value, int rows, int columns, bool alone)
{
    heat h = { .value = value, .rows = rows, .columns = columns, .top = title ? CHART_TOP + 4 : CHART_MARGIN };
    const bool any = rows > 0 && columns > 0;
    if (any) measure_heat(&h);
    chart_open(out, title, (int)(h.top + fmax(h.down * h.cell_high, 60) + 32), alone);
    if (any) {
        fprintf(out, "<rect class=\"cell track\" x=\"%d\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\"/>\n", LEFT, h.top,
                h.across * h.cell_wide, h.down * h.cell_high);
        for (int r = 0; r < h.down; r++) draw_row(out, &h, r);
        draw_indices(out, &h, true);
        draw_indices(out, &h, false);
        draw_key(out, &h, LEFT + h.across * h.cell_wide + 18);
    } else {
        chart_text(out, "", CHART_WIDTH / 2.0, h.top + 20, CHART_MIDDLE, 200, "nothing to show");
    }
    chart_close(out);
}

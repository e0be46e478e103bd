/* chart_heat.c - a matrix as coloured cells: the stronger the colour, the larger the magnitude.
 * SPDX-License-Identifier: MIT
 */
#include "chart.h"

#include <math.h>

#include "chart_draw.h"
#include "io/say.h"
#include "page.h"

enum { HIGH_AT_MOST = 420, CELL_AT_MOST = 36, CELLS = 160, FEW = 400, SHADES = 32 };
enum { MORE = 2, LESS = 1 }; /* colours of values above and below 0 */
enum {
    KEY_HIGH = 42,
    TITLE_HIGH = 20,
    NAME_HIGH = 16,
    COLUMN_NAME = 120
}; /* pixels: heights, and the longest name that reads up */

/* Rows and columns of the picture, each of which stands for one or more of the matrix. */
typedef struct heat {
    const chart_sheet *sheet;
    const chart_map *map;
    int down, across;
    double left, top, cell_wide, cell_high, under;
    double most, least; /* of the magnitudes that have a colour, least above 0; round numbers */
    double largest;     /* of them */
    bool negative, empty, names_up;
} heat;

/* ---- values ---- */

/* NaN only when both are. */
static double larger(double a, double b) { return isnan(a) || fabs(b) > fabs(a) ? b : a; }

static double value_at(const chart_map *m, int row, int column)
{
    const double v = m->value[(int64_t)row * m->columns + column];
    return m->log && !(v > 0) ? (double)NAN : v;
}

static double cell_value(const heat *h, int row, int column)
{
    const chart_map *m = h->map;
    const int row_end = (int)((int64_t)(row + 1) * m->rows / h->down);
    const int column_end = (int)((int64_t)(column + 1) * m->columns / h->across);
    double v = NAN;
    for (int r = (int)((int64_t)row * m->rows / h->down); r < row_end; r++)
        for (int c = (int)((int64_t)column * m->columns / h->across); c < column_end; c++)
            v = larger(v, value_at(m, r, c));
    return v;
}

static void measure_values(heat *h)
{
    const chart_map *m = h->map;
    h->least = INFINITY;
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) {
            const double v = value_at(m, r, c), size = fabs(v);
            h->empty = h->empty || isnan(v);
            if (!isfinite(v)) continue;
            h->most = fmax(h->most, size);
            if (size > 0) h->least = fmin(h->least, size);
            h->negative = h->negative || v < 0;
        }
    h->largest = h->most;
    if (!(h->most > 0)) return;
    if (m->log && h->least >= h->most) h->least = h->most / 10;
    chart_axis range = { .log = m->log, .low = m->log ? h->least : 0, .high = h->most };
    chart_ticks ticks;
    chart_axis_ticks(&range, h->negative ? 2 : 4, true, &ticks); /* the legend ends at round numbers */
    h->most = range.high;
    if (m->log) h->least = range.low;
}

enum { EMPTY = SHADES + 1 }; /* what is no shade */

/* -SHADES ... SHADES; 0 is the background. What is not 0 is at least one shade away from it. */
static int shade_of(const heat *h, double v)
{
    if (isnan(v)) return EMPTY;
    if (!(fabs(v) > 0)) return 0;
    double share = h->most > 0 ? fmin(fabs(v) / h->most, 1) : 1;
    if (h->map->log && h->most > 0) share = fmin(log(v / h->least) / log(h->most / h->least), 1);
    const int shade = (int)fmax(1, rint(SHADES * share));
    return v < 0 ? -shade : shade;
}

/* ---- cells ---- */

static void paint(const heat *h, int n)
{
    FILE *out = h->sheet->out;
    if (n == EMPTY || !n)
        fprintf(out, " class=\"cell %s\"", n ? "paper" : "track");
    else
        fprintf(out, " class=\"cell k%d\" fill-opacity=\"%.2f\"", n < 0 ? LESS : MORE,
                fmin(0.03 + 0.97 * (n < 0 ? -n : n) / SHADES, 1));
}

static void shade(const heat *h, int n, double x, double y, double wide, double high, bool open)
{
    fputs("<rect", h->sheet->out);
    paint(h, n);
    fprintf(h->sheet->out, " x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x, y, wide, high);
    fputs(open ? ">" : "/>\n", h->sheet->out);
}

static double number_of(const chart_side *side, int i) { return side->first + i * (side->each > 0 ? side->each : 1); }

static void print_place(FILE *out, const chart_side *side, int i)
{
    if (*chart_text_of(side->title)) app_escape(out, side->title), fputc(' ', out);
    if (side->name)
        app_escape(out, chart_text_of(side->name[i]));
    else
        fprintf(out, "%.6g", number_of(side, i));
}

/* Few cells say what they are to who points at them. */
static void draw_cell(const heat *h, int row, int column)
{
    FILE *out = h->sheet->out;
    const chart_map *m = h->map;
    const double v = value_at(m, row, column);
    char text[64];
    shade(h, shade_of(h, v), h->left + column * h->cell_wide, h->top + row * h->cell_high, h->cell_wide, h->cell_high,
          true);
    fputs("<title>", out);
    print_place(out, &m->row, row);
    fputs(", ", out);
    print_place(out, &m->column, column);
    fprintf(out, ": %s", isnan(v) ? "no number" : isinf(v) ? "infinite" : app_human(text, sizeof text, v));
    if (isfinite(v) && *chart_text_of(m->unit)) fputc(' ', out), app_escape(out, m->unit);
    fputs("</title></rect>\n", out);
}

/* The cells of one shade in a row: neighbours are one rectangle. */
static void draw_runs(const heat *h, const signed char *row, int shade, double y)
{
    for (int c = 0, end; c < h->across; c = end + 1) {
        for (end = c; end < h->across && row[end] == shade;) end++;
        if (end == c) continue;
        const double from = h->left + c * h->cell_wide, to = h->left + end * h->cell_wide;
        fprintf(h->sheet->out, "M%.1f %.1fH%.1fV%.1fH%.1fz", from, y, to, y + h->cell_high, from);
    }
}

/* All cells of one shade are one path: a large map stays a small picture. */
static void draw_shades(const heat *h)
{
    static signed char shade[CELLS][CELLS];
    bool there[2 * SHADES + 2] = { false };
    for (int r = 0; r < h->down; r++)
        for (int c = 0; c < h->across; c++) {
            shade[r][c] = (signed char)shade_of(h, cell_value(h, r, c));
            there[shade[r][c] + SHADES] = true;
        }
    for (int n = -SHADES; n <= EMPTY; n++) {
        if (!n || !there[n + SHADES]) continue;
        fputs("<path", h->sheet->out);
        paint(h, n);
        fputs(" d=\"", h->sheet->out);
        for (int r = 0; r < h->down; r++) draw_runs(h, shade[r], n, h->top + r * h->cell_high);
        fputs("\"/>\n", h->sheet->out);
    }
}

static void draw_cells(const heat *h)
{
    const chart_map *m = h->map;
    fprintf(h->sheet->out, "<rect class=\"cell track\" x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\"/>\n",
            h->left, h->top, h->across * h->cell_wide, h->down * h->cell_high);
    if (m->rows * (int64_t)m->columns > FEW) {
        draw_shades(h);
        return;
    }
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) draw_cell(h, r, c);
}

/* ---- what stands along the sides ---- */

/* The round numbers of a side, each where its row or column is: at[] are rows or columns, with fractions. */
static void round_numbers(const chart_side *side, int count, int most, chart_ticks *ticks)
{
    const double each = side->each > 0 ? side->each : 1;
    chart_axis axis = { .low = side->first, .high = side->first + each * count - 1 };
    int kept = 0;
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    chart_axis_ticks(&axis, most, false, ticks);
    for (int i = 0; i < ticks->count; i++) {
        const double number = ticks->at[i];
        if (fabs(number - rint(number)) > 1e-6 || number > side->first + each * count - 1 + 1e-6) continue;
        ticks->at[kept] = (number - side->first + 0.5) / each;
        snprintf(ticks->text[kept++], sizeof ticks->text[0], "%.0f", number);
    }
    ticks->count = kept;
}

static double longest_name(const chart_side *side, int count)
{
    double wide = 0;
    for (int i = 0; side->name && i < count; i++) wide = fmax(wide, chart_text_width(chart_text_of(side->name[i])));
    return wide;
}

/* How many names stand for one that is shown. */
static int every(double room, double need) { return room >= need ? 1 : (int)ceil(need / fmax(room, 1e-3)); }

static void draw_row_names(const heat *h)
{
    const chart_map *m = h->map;
    const double each = h->cell_high * h->down / m->rows;
    for (int i = 0; i < m->rows; i += every(each, NAME_HIGH))
        chart_text(h->sheet->out, "tick", h->left - 8, h->top + (i + 0.5) * each + 4, CHART_END,
                   h->left - 8 - h->sheet->margin + 1, chart_text_of(m->row.name[i]));
}

static void draw_column_names(const heat *h)
{
    const chart_map *m = h->map;
    const double each = h->cell_wide * h->across / m->columns, wide = longest_name(&m->column, m->columns);
    const double bottom = h->top + h->down * h->cell_high;
    for (int i = 0; i < m->columns; i += every(each, h->names_up ? NAME_HIGH : wide + 8)) {
        const double x = h->left + (i + 0.5) * each;
        if (h->names_up)
            chart_text_up(h->sheet->out, "tick", x + 4, bottom + 6, COLUMN_NAME, chart_text_of(m->column.name[i]));
        else
            chart_text(h->sheet->out, "tick", x, bottom + 16, CHART_MIDDLE, each + wide,
                       chart_text_of(m->column.name[i]));
    }
}

static void draw_numbers(const heat *h, bool rows)
{
    const chart_map *m = h->map;
    const int count = rows ? m->rows : m->columns;
    const double step = rows ? h->cell_high * h->down / count : h->cell_wide * h->across / count;
    const double room = step * count, bottom = h->top + h->down * h->cell_high;
    chart_ticks ticks;
    round_numbers(rows ? &m->row : &m->column, count, (int)fmax(1, fmin(8, room / (rows ? 24 : 56))), &ticks);
    for (int i = 0; i < ticks.count; i++) {
        const double at = ticks.at[i] * step;
        if (rows)
            chart_text(h->sheet->out, "tick", h->left - 8, h->top + at + 4, CHART_END, h->left, ticks.text[i]);
        else
            chart_text(h->sheet->out, "tick", h->left + at, bottom + 16, CHART_MIDDLE, 80, ticks.text[i]);
    }
}

static void draw_sides(const heat *h)
{
    const chart_map *m = h->map;
    const chart_sheet *s = h->sheet;
    if (m->row.name)
        draw_row_names(h);
    else
        draw_numbers(h, true);
    if (m->column.name)
        draw_column_names(h);
    else
        draw_numbers(h, false);
    if (*chart_text_of(m->row.title))
        chart_text(s->out, "", s->margin, h->top - 13, CHART_START, s->width - 2 * s->margin, m->row.title);
    if (*chart_text_of(m->column.title))
        chart_text(s->out, "", h->left + h->across * h->cell_wide / 2, h->top + h->down * h->cell_high + h->under,
                   CHART_MIDDLE, 2 * fmin(h->across * h->cell_wide / 2 + h->left - s->margin, s->width / 2.0),
                   m->column.title);
}

/* ---- the legend of the colours ---- */

static void draw_key_numbers(const heat *h, double from, double to, double y)
{
    chart_axis axis = {
        .log = h->map->log, .low = h->negative ? -h->most : 0, .high = h->most, .from = from, .to = to
    };
    chart_ticks ticks;
    if (axis.log) axis.low = h->least;
    chart_axis_widen(&axis);
    chart_axis_ticks(&axis, 4, false, &ticks);
    for (int i = 0; i < ticks.count; i++) {
        const double x = chart_axis_at(&axis, ticks.at[i]), half = chart_text_width(ticks.text[i]) / 2;
        const chart_anchor anchor = x - half < from - 2 ? CHART_START : x + half > to + 2 ? CHART_END : CHART_MIDDLE;
        fprintf(h->sheet->out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, y - 2,
                y + 2);
        chart_text(h->sheet->out, "tick", x, y + 14, anchor, 90, ticks.text[i]);
    }
}

/* What the colours are, with their unit, above the legend; returns how many lines it takes. `out` may be NULL. */
static int key_title(FILE *out, const chart_sheet *s, const chart_map *m, double y)
{
    char title[256];
    const bool both = *chart_text_of(m->value_title) && *chart_text_of(m->unit);
    io_say_in(title, sizeof title, IO_SAID, "%.180s%s%.40s", chart_text_of(m->value_title), both ? ", " : "",
              chart_text_of(m->unit));
    return chart_paragraph(out, "", s->margin, y + 10, CHART_START, s->width - 2 * s->margin, title);
}

static double key_height(const chart_sheet *s, const chart_map *m)
{
    return KEY_HIGH + CHART_LINE * key_title(NULL, s, m, 0);
}

static void draw_key(const heat *h, double top)
{
    const chart_sheet *s = h->sheet;
    const int low = h->negative ? -SHADES : 0, shades = SHADES - low;
    const double wide = fmin(240, s->width - 2 * s->margin - (h->empty ? 110 : 0)), x = s->margin;
    const double y = top + 4 + CHART_LINE * key_title(s->out, s, h->map, top);
    fprintf(s->out, "<rect class=\"cell track\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"/>\n", x, y, wide);
    for (int i = low; i < SHADES; i++)
        shade(h, i < 0 ? i : i + 1, x + wide * (i - low) / shades, y, wide / shades, 12, false);
    draw_key_numbers(h, x, x + wide, y + 12);
    if (!h->empty) return;
    fprintf(s->out, "<rect class=\"cell paper none\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\"/>\n",
            x + wide + 18, y);
    chart_text(s->out, "tick", x + wide + 35, y + 10, CHART_START, 90, h->map->log ? "not above 0" : "no number");
}

/* ---- the whole ---- */

static void measure(heat *h)
{
    const chart_map *m = h->map;
    const chart_sheet *s = h->sheet;
    chart_ticks ticks;
    double names = longest_name(&m->row, m->rows);
    if (!m->row.name) {
        round_numbers(&m->row, m->rows, 8, &ticks);
        for (int i = 0; i < ticks.count; i++) names = fmax(names, chart_text_width(ticks.text[i]));
    }
    h->left = s->margin + 8 + fmin(names, 0.4 * s->width);
    const double room = s->width - s->margin - 8 - h->left;
    const int fit = (int)fmin(CELLS, room / 3);
    h->down = m->rows < fit ? m->rows : fit;
    h->across = m->columns < fit ? m->columns : fit;
    h->cell_wide = fmin(room / h->across, CELL_AT_MOST);
    h->cell_high = fmin(fmin((double)HIGH_AT_MOST / h->down, CELL_AT_MOST), 2 * h->cell_wide);
    if (m->row.name) h->cell_high = fmax(h->cell_high, fmin(NAME_HIGH, (double)HIGH_AT_MOST / h->down));
    const double wide = longest_name(&m->column, m->columns);
    h->names_up = m->column.name && wide + 8 > h->cell_wide * h->across / m->columns;
    h->under = 18 + (h->names_up ? fmin(wide, COLUMN_NAME) + 4 : 16);
}

static void draw_heat(const chart_sheet *s, const void *what)
{
    const chart_map *m = what;
    const double top = chart_top(s, m->title) - 4;
    heat h = { .sheet = s, .map = m, .top = top + 24 };
    const bool any = m->rows > 0 && m->columns > 0;
    char about[120];
    if (any) {
        measure_values(&h);
        measure(&h);
        h.top = top + key_height(s, m) + (*chart_text_of(m->row.title) ? TITLE_HIGH : 0);
    }
    snprintf(about, sizeof about, "%d rows and %d columns of coloured cells; the largest magnitude is %.4g", m->rows,
             m->columns, h.largest);
    chart_open(s, m->title, about,
               h.top + h.down * h.cell_high + (*chart_text_of(m->column.title) ? h.under + 8 : fmax(h.under - 8, 24)));
    if (any) {
        draw_key(&h, top);
        draw_cells(&h);
        draw_sides(&h);
    } else {
        chart_text(s->out, "", s->width / 2.0, top + 20, CHART_MIDDLE, 200, "nothing to show");
    }
    chart_close(s);
}

void chart_heat_map(FILE *out, const chart_map *map) { chart_figure(out, map->alone, draw_heat, map); }

void chart_heat(FILE *out, const char *title, const double *value, int rows, int columns, bool alone)
{
    chart_heat_map(out,
                   &(chart_map){ .title = title, .value = value, .rows = rows, .columns = columns, .alone = alone });
}

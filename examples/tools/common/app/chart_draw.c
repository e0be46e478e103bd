/* chart_draw.c - the drawing under all pictures: the sheet with its colours, title and text; axes and their ticks.
 * SPDX-License-Identifier: MIT
 */
#include "chart_draw.h"

#include <math.h>
#include <string.h>

#include "colours.h"
#include "page.h"

/* ---- colours ---- */

/* One rule each: a page says what its variables are, a file of its own has them written out, because not every reader
 * of SVG knows variables. */
static const struct {
    const char *selector, *property, *colour;
} rule[] = {
    { "text", "fill", "soft" },     { ".name", "fill", "ink" },    { ".title", "fill", "ink" },
    { ".tick", "fill", "faint" },   { ".grid", "stroke", "line" }, { ".axis", "stroke", "faint" },
    { ".paper", "fill", "card" },   { ".track", "fill", "track" }, { ".dot", "stroke", "card" },
    { ".none", "stroke", "faint" }, { ".k0", "fill", "f0" },       { ".k1", "fill", "f1" },
    { ".k2", "fill", "f2" },        { ".k3", "fill", "f3" },       { ".k4", "fill", "f4" },
    { ".k5", "fill", "f5" },        { ".s0", "stroke", "f0" },     { ".s1", "stroke", "f1" },
    { ".s2", "stroke", "f2" },      { ".s3", "stroke", "f3" },     { ".s4", "stroke", "f4" },
    { ".s5", "stroke", "f5" },
};

static const char shapes[] = "svg.chart text{font-size:12px}svg.chart .title{font-size:15px;font-weight:600}"
                             "svg.chart .name{font-weight:400}svg.chart .cell{shape-rendering:crispEdges}"
                             "svg.chart .axis,svg.chart .grid{stroke-width:1;shape-rendering:crispEdges}"
                             "svg.chart .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
                             "svg.chart .dash{stroke-dasharray:6 6}svg.chart .dot{stroke-width:1}";

static void colour_rules(FILE *out, bool alone, bool dark)
{
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
        const app_colour_pair *c = app_colour_named(rule[i].colour);
        fprintf(out, "svg.chart %s{%s:", rule[i].selector, rule[i].property);
        if (alone)
            fprintf(out, "%s}", dark ? c->dark : c->light);
        else
            fprintf(out, "var(--%s)}", c->name);
    }
}

static void own_style(FILE *out)
{
    fputs("<style>", out);
    colour_rules(out, true, false);
    fputs("@media screen and (prefers-color-scheme:dark){", out);
    colour_rules(out, true, true);
    fprintf(out,
            "}svg.chart text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',"
            "Arial,sans-serif;font-variant-numeric:tabular-nums}%s</style>\n",
            shapes);
}

int chart_colour(int colour) { return (colour % CHART_COLOURS + CHART_COLOURS) % CHART_COLOURS; }

/* ---- the sheet ---- */

/* A picture shows from its own width on, and grows a little until the next one fits. */
static const struct {
    int width, most, margin;
} sheets[] = {
    { CHART_NARROW, 420, 4 }, { CHART_MIDDLE_WIDTH, 620, 10 }, { CHART_WIDTH, 860, 10 }, { CHART_WIDE, 1100, 10 }
};
enum { SHEETS = sizeof sheets / sizeof sheets[0], ALONE_MARGIN = 22 };

void chart_page_style(FILE *out)
{
    colour_rules(out, false, false);
    fprintf(out, "%s.figure{container-type:inline-size}.figure svg.chart{display:none}", shapes);
    for (int i = 0; i < SHEETS; i++) {
        if (i) fprintf(out, "@container (min-width:%dpx){.figure svg.w%d{display:none}", sheets[i].width, i - 1);
        fprintf(out, ".figure svg.w%d{display:block;max-width:%dpx}%s", i, sheets[i].most, i ? "}" : "");
    }
}

void chart_figure(FILE *out, bool alone, chart_drawing *draw, const void *what)
{
    chart_sheet sheet = { .out = out, .width = CHART_WIDTH, .margin = ALONE_MARGIN, .alone = alone };
    if (!alone) fputs("<div class=\"figure\">\n", out);
    for (int i = 0; i < SHEETS && !alone; i++) {
        sheet.width = sheets[i].width, sheet.margin = sheets[i].margin;
        draw(&sheet, what);
    }
    if (alone)
        draw(&sheet, what);
    else
        fputs("</div>\n", out);
}

static int size_of(const chart_sheet *sheet)
{
    for (int i = 0; i < SHEETS; i++)
        if (sheet->width == sheets[i].width) return i;
    return 0;
}

/* Titles are larger than what text is measured at. */
static double title_room(const chart_sheet *sheet) { return (sheet->width - 2 * sheet->margin) / 1.4; }

void chart_open(const chart_sheet *sheet, const char *title, const char *about, double height)
{
    FILE *out = sheet->out;
    const int high = (int)ceil(height);
    fputs("<svg class=\"chart", out);
    if (!sheet->alone) fprintf(out, " w%d", size_of(sheet));
    fprintf(out, "\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", sheet->width, high);
    if (sheet->alone) fprintf(out, " width=\"%d\" height=\"%d\"", sheet->width, high);
    fputs(" role=\"img\"><title>", out);
    app_escape(out, title ? title : "");
    fputs("</title><desc>", out);
    app_escape(out, about);
    fputs("</desc>\n", out);
    if (sheet->alone) {
        own_style(out);
        fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", sheet->width, high);
    }
    if (title) chart_paragraph(out, "title", sheet->margin, 24, CHART_START, title_room(sheet), title);
}

double chart_top(const chart_sheet *sheet, const char *title)
{
    return title ? CHART_TOP + CHART_LINE * (chart_paragraph(NULL, "", 0, 0, CHART_START, title_room(sheet), title) - 1)
                 : 14;
}

void chart_close(const chart_sheet *sheet) { fputs("</svg>\n", sheet->out); }

/* ---- text ---- */

/* Pixels of a character at 12 px: of the widest of the usual fonts, so that text fits in all of them. */
static double character_width(const char *at)
{
    static const struct {
        const char *characters;
        double wide;
    } row[] = { { "ijlI'.,:;|! ", 4 }, { "ftr()[]/-\\\"", 5 }, { "mwMW%@+=<>~", 11.2 }, { "_cksvxyz", 6.8 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strchr(row[i].characters, *at)) return row[i].wide;
    return (*at >= 'A' && *at <= 'Z') || (unsigned char)*at >= 0x80 ? 8.6 : 7.7;
}

static int step_of(const char *at) { return app_utf8(at) > 0 ? app_utf8(at) : 1; }

double chart_text_width(const char *text)
{
    double wide = 0;
    for (; *text; text += step_of(text)) wide += character_width(text);
    return wide;
}

#define ELLIPSIS "\xe2\x80\xa6"

/* What fits, with an ellipsis where that is not all; true: it is all. At least one character is there. */
static bool cut_text(char *part, size_t size, const char *text, double most)
{
    const bool all = chart_text_width(text) <= most;
    size_t used = 0;
    for (double wide = 12; *text; text += step_of(text)) {
        wide += character_width(text);
        const size_t bytes = (size_t)step_of(text);
        if ((!all && used && wide > most) || used + bytes + sizeof ELLIPSIS > size) break;
        memcpy(part + used, text, bytes);
        used += bytes;
    }
    strcpy(part + used, *text ? ELLIPSIS : "");
    return !*text;
}

/* Text that is cut is whole in a tooltip. */
static void text_body(FILE *out, double most, const char *text)
{
    char part[512];
    const bool all = cut_text(part, sizeof part, text, most);
    fputc('>', out);
    app_escape(out, part);
    if (!all) {
        fputs("<title>", out);
        app_escape(out, text);
        fputs("</title>", out);
    }
    fputs("</text>\n", out);
}

void chart_text(FILE *out, const char *style, double x, double y, chart_anchor anchor, double most, const char *text)
{
    static const char *const how[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s", style, x, y, how[anchor]);
    text_body(out, most, text);
}

void chart_text_up(FILE *out, const char *style, double x, double y, double most, const char *text)
{
    fprintf(out, "<text class=\"%s\" text-anchor=\"end\" transform=\"translate(%.1f %.1f)rotate(-90)\"", style, x, y);
    text_body(out, most, text);
}

/* The bytes of the first line: up to the last blank before `most` pixels; all, where there is none. */
static size_t line_length(const char *text, double most)
{
    size_t blank = 0;
    double wide = 0;
    for (const char *at = text; *at; at += step_of(at)) {
        wide += character_width(at);
        if (wide > most && blank) return blank;
        if (*at == ' ') blank = (size_t)(at - text);
    }
    return strlen(text);
}

int chart_paragraph(FILE *out, const char *style, double x, double y, chart_anchor anchor, double most,
                    const char *text)
{
    enum { LINES_AT_MOST = 3 };
    char line[512];
    int lines = 0;
    while (*text && lines < LINES_AT_MOST) {
        size_t n = lines + 1 < LINES_AT_MOST ? line_length(text, most) : strlen(text);
        if (n >= sizeof line)
            for (n = sizeof line - 1; ((unsigned char)text[n] & 0xc0) == 0x80;) n--; /* not inside a character */
        memcpy(line, text, n);
        line[n] = 0;
        if (out) chart_text(out, style, x, y + CHART_LINE * lines, anchor, most, line);
        text += n;
        while (*text == ' ') text++;
        lines++;
    }
    return lines;
}

/* ---- an axis: where a value lies on it ---- */

#define FARTHEST 1e300 /* so that no difference of two values overflows */
#define OFF_SHEET 1e6  /* pixels: as far outside as anything is drawn before it is clipped */

bool chart_axis_shows(const chart_axis *axis, double value)
{
    return fabs(value) <= FARTHEST && (!axis->log || value >= 1 / FARTHEST);
}

void chart_axis_widen(chart_axis *axis)
{
    if (!(axis->low <= axis->high)) axis->low = axis->high = axis->log ? 1 : 0;
    if (axis->log) {
        if (axis->high < 1.01 * axis->low) axis->low /= 3, axis->high *= 3;
        return;
    }
    const double most = fmax(fabs(axis->low), fabs(axis->high));
    if (axis->high - axis->low <= 1e-9 * most || axis->high - axis->low < 1e-290) {
        const double by = most > 1e-290 ? 0.1 * most : 1;
        axis->low -= by, axis->high += by;
    }
}

double chart_axis_at(const chart_axis *a, double value)
{
    const double share = a->log ? (log10(value) - log10(a->low)) / (log10(a->high) - log10(a->low))
                                : (value - a->low) / (a->high - a->low);
    return fmax(-OFF_SHEET, fmin(a->from + share * (a->to - a->from), OFF_SHEET));
}

/* ---- numbers ---- */

/* "10" and the exponent raised: 10⁻⁵. */
static void power_text(char *text, size_t size, int exponent)
{
    static const char *const raised[] = { "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",
                                          "\xe2\x81\xb4", "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7",
                                          "\xe2\x81\xb8", "\xe2\x81\xb9" };
    char digits[16];
    snprintf(digits, sizeof digits, "%d", exponent < 0 ? -exponent : exponent);
    snprintf(text, size, "10%s", exponent < 0 ? "\xe2\x81\xbb" : "");
    for (const char *d = digits; *d; d++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", raised[*d - '0']);
    }
}

static int decimals_of(double step) { return step >= 1 ? 0 : (int)fmin(9, ceil(-log10(step) - 1e-9)); }

/* Mantissa × power of ten. */
static void scientific(char *text, size_t size, double value, double step)
{
    char power[32];
    const int exponent = (int)floor(log10(fabs(value)) + 1e-9);
    const double unit = pow(10, exponent), mantissa = value / unit;
    power_text(power, sizeof power, exponent);
    if (fabs(mantissa - 1) < 1e-9)
        snprintf(text, size, "%s", power);
    else
        snprintf(text, size, "%.*f\xc3\x97%s", (int)fmin(3, decimals_of(step / unit)), mantissa, power);
}

const char *chart_number(char *text, size_t size, double value, double step)
{
    static const struct {
        double unit;
        const char *suffix;
    } row[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
    const double much = fabs(value);
    if (much < step * 1e-6) {
        snprintf(text, size, "0");
        return text;
    }
    if (much >= 1e15 || much < 1e-3) {
        scientific(text, size, value, step);
        return text;
    }
    for (size_t i = 0; i < sizeof row / sizeof row[0] && much >= 1e4; i++)
        if (much >= 0.9999 * row[i].unit) {
            snprintf(text, size, "%.*f%s", decimals_of(step / row[i].unit), value / row[i].unit, row[i].suffix);
            return text;
        }
    snprintf(text, size, "%.*f", decimals_of(step), value);
    return text;
}

/* ---- ticks ---- */

/* 1, 2 or 5 times a power of ten, for at most `most` steps. */
static double nice_step(double span, int most)
{
    const double power = pow(10, floor(log10(span / most)));
    static const double mantissa[] = { 1, 2, 5, 10 };
    for (int i = 0; i < 4; i++)
        if (mantissa[i] * power * most >= span * (1 - 1e-9)) return mantissa[i] * power;
    return 10 * power;
}

static void mark_linear(chart_axis *a, int most, bool round, chart_ticks *t)
{
    const double step = nice_step(a->high - a->low, most);
    if (round) {
        a->low = step * floor(a->low / step + 1e-6);
        a->high = step * ceil(a->high / step - 1e-6);
    }
    const double first = ceil(a->low / step - 1e-6);
    for (int i = 0; i < CHART_TICKS && (first + i) * step <= a->high + 1e-6 * step; i++) {
        t->at[t->count] = (first + i) * step;
        chart_number(t->text[t->count], sizeof t->text[0], t->at[t->count], step);
        t->count++;
    }
}

static void mark_at(const chart_axis *a, chart_ticks *t, double value, bool plain)
{
    const double edge = 1e-9 * value;
    if (value < a->low - edge || value > a->high + edge || t->count == CHART_TICKS) return;
    t->at[t->count] = value;
    if (plain)
        snprintf(t->text[t->count], sizeof t->text[0], "%.6g", value);
    else
        scientific(t->text[t->count], sizeof t->text[0], value, value);
    t->count++;
}

static void mark_log(chart_axis *a, int most, bool round, chart_ticks *t)
{
    if (round && a->high / a->low >= 10) {
        a->low = pow(10, floor(log10(a->low) + 1e-6));
        a->high = pow(10, ceil(log10(a->high) - 1e-6));
    }
    const double low = floor(log10(a->low) + 1e-6), high = log10(a->high);
    const bool plain = a->low > 0.99e-3 && a->high < 1.01e4, close = high - low <= 2.2;
    const int step = (int)fmax(1, ceil((high - low) / most));
    for (int d = (int)low; d <= high + 1e-6; d += step) {
        mark_at(a, t, pow(10, d), plain);
        if (close) mark_at(a, t, 2 * pow(10, d), plain), mark_at(a, t, 5 * pow(10, d), plain);
    }
    if (t->count < 2) { /* less than a step of 1, 2, 5 */
        t->count = 0;
        mark_linear(a, most, false, t);
    }
}

void chart_axis_ticks(chart_axis *axis, int most, bool round, chart_ticks *ticks)
{
    memset(ticks, 0, sizeof *ticks);
    if (axis->log)
        mark_log(axis, most, round, ticks);
    else
        mark_linear(axis, most, round, ticks);
}

/* chart_axis.c - a range of values on paper: where each lies, where its ticks are, what they are called.
 * SPDX-License-Identifier: MIT
 */
#include "chart_paper.h"

#include <math.h>
#include <string.h>

#define FARTHEST 1e300 /* so that no difference of two values overflows */
#define OFF_PAPER 1e6  /* pixels: as far outside as anything is drawn before it is clipped */

bool paper_shows(const paper_axis *axis, double value)
{
    return fabs(value) <= FARTHEST && (!axis->log || value >= 1 / FARTHEST);
}

void paper_widen(paper_axis *axis)
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

double paper_at(const paper_axis *a, double value)
{
    const double share = a->log ? (log10(value) - log10(a->low)) / (log10(a->high) - log10(a->low))
                                : (value - a->low) / (a->high - a->low);
    return fmax(-OFF_PAPER, fmin(a->from + share * (a->to - a->from), OFF_PAPER));
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

const char *paper_number(char *text, size_t size, double value, double step)
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

static void mark_linear(paper_axis *a, int most, bool round, paper_ticks *t)
{
    const double step = nice_step(a->high - a->low, most);
    if (round) {
        a->low = step * floor(a->low / step + 1e-6);
        a->high = step * ceil(a->high / step - 1e-6);
    }
    const double first = ceil(a->low / step - 1e-6);
    for (int i = 0; i < PAPER_TICKS && (first + i) * step <= a->high + 1e-6 * step; i++) {
        t->at[t->count] = (first + i) * step;
        paper_number(t->text[t->count], sizeof t->text[0], t->at[t->count], step);
        t->count++;
    }
}

static void mark_at(const paper_axis *a, paper_ticks *t, double value, bool plain)
{
    const double edge = 1e-9 * value;
    if (value < a->low - edge || value > a->high + edge || t->count == PAPER_TICKS) return;
    t->at[t->count] = value;
    if (plain)
        snprintf(t->text[t->count], sizeof t->text[0], "%.6g", value);
    else
        scientific(t->text[t->count], sizeof t->text[0], value, value);
    t->count++;
}

static void mark_log(paper_axis *a, int most, bool round, paper_ticks *t)
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

void paper_mark(paper_axis *axis, int most, bool round, paper_ticks *ticks)
{
    memset(ticks, 0, sizeof *ticks);
    if (axis->log)
        mark_log(axis, most, round, ticks);
    else
        mark_linear(axis, most, round, ticks);
}

/* codes.c - values of codes, the tables of 256 entries that convert them, and what each mode does to them (--codes).
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <math.h>
#include <string.h>

#include <trnmath/data/cast.h>

static const struct {
    const char *name;
    trn_format format;
    float limit;
} sides[] = { { "ocp", TRN_F8_E4M3FN, 448.0f }, { "neuron", TRN_F8_E4M3, 240.0f } };

static const char *const modes[FC_MODES] = { "halve", "ratio", "requant", "relabel" };

trn_format fc_format_of(fc_side side) { return sides[side].format; }
const char *fc_side_text(fc_side side) { return sides[side].name; }
float fc_limit(fc_side side) { return sides[side].limit; }
const char *fc_mode_text(fc_mode mode) { return modes[mode]; }

const float *fc_values(trn_format format)
{
    static float value[2][256];
    float *const of = value[format == TRN_F8_E4M3];
    if (of[1] == 0)
        for (uint32_t code = 0; code < 256; code++) of[code] = trn_decode(format, code);
    return of;
}

fc_factor fc_factor_of(fc_mode mode, fc_side to)
{
    static const fc_factor down[FC_MODES] = { { 2, 1 }, { 28, 15 }, { 28, 15 }, { 1, 1 } };
    const fc_factor f = down[mode];
    return to == FC_NEURON ? f : (fc_factor){ f.down, f.up };
}

/* The vendor's recipe holds the quotient in bfloat16 before it becomes FP8. */
static float ratio_of(float value, fc_factor f)
{
    return trn_bf16_to_f32(trn_bf16_from_f32(value / ((float)f.up / (float)f.down)));
}

void fc_table_of_mode(fc_mode mode, fc_side from, fc_side to, fc_table *table)
{
    const float *const value = fc_values(fc_format_of(from));
    const fc_factor f = fc_factor_of(mode, to);
    for (uint32_t code = 0; code < 256; code++) {
        const float x = mode == FC_RATIO ? ratio_of(value[code], f) : value[code] * (float)f.down / (float)f.up;
        const uint32_t rounded = trn_encode(fc_format_of(to), x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        table->to[code] = (uint16_t)(mode == FC_RELABEL ? code : rounded);
    }
}

/* On which side of the middle between a code and the next one: both products are exact in binary64, 24 bits of a scale
 * and at most 5 of a sum of two values. */
static int beside_middle(const float *value, uint32_t code, double target, double scale)
{
    const double middle = ((double)value[code] + (double)value[code + 1]) * scale, twice = 2 * target;
    return (twice > middle) - (twice < middle);
}

uint32_t fc_nearest(fc_side to, double target, double scale)
{
    const float *const value = fc_values(fc_format_of(to));
    uint32_t low = 0, high = trn_encode(fc_format_of(to), fc_limit(to), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    while (low < high) {
        const uint32_t code = (low + high) / 2;
        const int side = beside_middle(value, code, target, scale);
        if (side > 0 || (side == 0 && code % 2 == 1))
            low = code + 1;
        else
            high = code;
    }
    return low;
}

/* Dequantised with one scale, quantised with another, without a quotient in between; never beyond the limit. */
void fc_table_of_scales(fc_side from, fc_side to, float in_scale, float out_scale, fc_table *table)
{
    const float *const value = fc_values(fc_format_of(from));
    for (uint32_t code = 0; code < FC_MAGNITUDES; code++) {
        const float x = value[code];
        const uint32_t nearest = isfinite(x) ? fc_nearest(to, (double)x * (double)in_scale, (double)out_scale)
                                             : trn_encode(fc_format_of(to), x, TRN_NEAREST_EVEN, TRN_SATURATE, 0);
        table->to[code] = (uint16_t)nearest;
        table->to[code + FC_MAGNITUDES] = (uint16_t)(nearest | FC_MAGNITUDES);
    }
}

void fc_convert_codes(const fc_table *table, void *out, const void *in, size_t n)
{
    trni_lookup_pick(1, trni_isa_vectors(trn_isa_default()))(table->to, out, in, n);
}

/* ---- --codes: what each mode does to the 254 finite codes, before any checkpoint ---- */

/* A matrix of 4096 x 4096 Gaussian weights has its largest at about 5.3 standard deviations, and that becomes 448. */
static const double sigma = 448 / 5.3;

static const fc_mode shown[] = { FC_HALVE, FC_RATIO, FC_RELABEL };
enum { SHOWN = sizeof shown / sizeof shown[0] };

static double below(double x) { return 0.5 * erfc(-x / (sigma * sqrt(2))); }

/* How likely a Gaussian weight rounds to this code's value. */
static double chance(uint32_t code)
{
    const float *value = fc_values(TRN_F8_E4M3FN);
    const uint32_t magnitude = code & 0x7f;
    const double here = (double)value[magnitude];
    const double low = magnitude ? (here + (double)value[magnitude - 1]) / 2 : 0;
    const double high = magnitude < 0x7e ? (here + (double)value[magnitude + 1]) / 2 : INFINITY;
    return below(high) - below(low);
}

typedef struct summary {
    fc_tally all;
    double gaussian_db;
} summary;

static summary summarise(fc_mode mode)
{
    const float *in = fc_values(TRN_F8_E4M3FN), *out = fc_values(TRN_F8_E4M3);
    const fc_factor f = fc_factor_of(mode, FC_NEURON);
    const fc_judge judge = { in, out, out, f };
    fc_ledger ledger = { .judge = &judge };
    fc_table table;
    summary s = { 0 };
    double signal = 0, noise = 0;
    ledger.tally = &s.all;
    fc_table_of_mode(mode, FC_OCP, FC_NEURON, &table);
    for (uint32_t code = 0; code < 256; code++) {
        uint64_t count[FC_MAGNITUDES] = { 0 };
        const double after = (double)out[table.to[code]] * f.up / f.down, before = (double)in[code];
        count[code % FC_MAGNITUDES] = 1; /* each magnitude twice */
        fc_ledger_add(&ledger, count, &table, 1, (double)f.up / f.down);
        if (!isfinite(before)) continue;
        signal += chance(code) * before * before;
        noise += chance(code) * (after - before) * (after - before);
    }
    fc_ledger_flush(&ledger);
    s.gaussian_db = 10 * log10(signal / noise);
    return s;
}

static void print_summary(void)
{
    static const app_column column[] = {
        { "mode", APP_TEXT, "", "" },
        { "codes / by", APP_TEXT, "", "" },
        { "exact of 254", APP_INTEGER, "", "" },
        { "of 222 from 2^-5", APP_INTEGER, "", "" },
        { "worst error from 2^-5", APP_TEXT, "", "" },
        { "become inf", APP_INTEGER, "", "" },
        { "become NaN", APP_INTEGER, "", "" },
        { "SQNR, Gaussian", APP_TEXT, "", "" },
    };
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    for (int i = 0; i < SHOWN; i++) {
        const summary s = summarise(shown[i]);
        const fc_factor f = fc_factor_of(shown[i], FC_NEURON);
        const bool broken = s.all.not_finite > 0;
        app_row(&table);
        app_text(&table, "%s", fc_mode_text(shown[i]));
        app_text(&table, f.down == 1 ? "%d" : "%d/%d", f.up, f.down);
        app_integer(&table, 254 - s.all.inexact - s.all.not_finite);
        app_integer(&table, 222 - s.all.inexact_large - s.all.not_finite);
        app_text(&table, broken ? "infinite" : s.all.worst_large == 0 ? "0" : "%.1f %%", 100 * s.all.worst_large);
        app_integer(&table, broken ? s.all.to_inf : 0);
        app_integer(&table, broken ? s.all.to_nan : 0);
        app_text(&table, broken ? "none" : "%.1f dB", s.gaussian_db);
    }
    app_print_table(stdout, &table);
    app_table_free(&table);
}

/* ---- all codes ---- */

static void fill_codes(app_table *table)
{
    const float *in = fc_values(TRN_F8_E4M3FN), *out = fc_values(TRN_F8_E4M3);
    fc_table by[SHOWN];
    for (int i = 0; i < SHOWN; i++) fc_table_of_mode(shown[i], FC_OCP, FC_NEURON, &by[i]);
    for (int code = 0; code < 256; code++) {
        app_row(table);
        app_integer(table, code);
        app_real(table, (double)in[code]);
        app_real(table, (double)out[code]);
        for (int i = 0; i < 2; i++) {
            const fc_factor f = fc_factor_of(shown[i], FC_NEURON);
            const double after = (double)out[by[i].to[code]] * f.up / f.down;
            app_integer(table, by[i].to[code]);
            app_real(table, after);
            app_text(table, "%s", (double)out[by[i].to[code]] * f.up == (double)in[code] * f.down ? "yes" : "no");
        }
    }
}

static void write_csv(FILE *out, const void *table) { app_print_csv(out, table); }

static void write_json(FILE *out, const void *table)
{
    fputs("{\n  \"codes\": ", out);
    app_print_json_rows(out, table, 2);
    fputs("\n}\n", out);
}

int fc_about(const fc_options *o)
{
    static const app_column column[] = {
        { "code", APP_INTEGER, "", "the byte" },
        { "ocp", APP_REAL, "", "its value in OCP's E4M3" },
        { "neuron", APP_REAL, "", "its value in Trainium's E4M3" },
        { "halved", APP_INTEGER, "", "the code after --mode halve" },
        { "halved_value", APP_REAL, "", "its value in Trainium's E4M3, times 2" },
        { "halved_exact", APP_TEXT, "", "is that the same?" },
        { "ratio", APP_INTEGER, "", "the code after --mode ratio" },
        { "ratio_value", APP_REAL, "", "its value in Trainium's E4M3, times 448/240" },
        { "ratio_exact", APP_TEXT, "", "is that the same?" },
    };
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    fill_codes(&table);
    app_output output[] = { { .flag = "--csv", .path = o->csv, .write = write_csv },
                            { .flag = "--json", .path = o->json, .write = write_json } };
    int status = app_open_outputs(output, 2);
    if (status == APP_OK) status = app_write_outputs(output, 2, &table);
    app_table_free(&table);
    if (status != APP_OK || o->csv || o->json) return status;
    puts("OCP's E4M3 to Trainium's: the same bytes mean the same up to 240; 14 of the 254 finite codes lie beyond.\n");
    print_summary();
    puts("\nInexact when halved: the odd multiples of 2^-9 below 2^-5, 8 of either sign. Gaussian: weights whose\n"
         "largest, 5.3 standard deviations, is 448. relabel keeps the bytes. --csv FILE lists all codes.");
    return APP_OK;
}

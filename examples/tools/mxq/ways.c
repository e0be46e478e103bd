/* ways.c - every way to quantise: formats, scales, rounding, and what each is expected to cost.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <string.h>

const char *const mxq_grain_name[MXQ_GRAINS] = { "none", "tensor", "channel", "128x128" };
const char *const mxq_rule_name[TRN_MX_SCALE_COUNT] = { "NEURON", "OCP_FLOOR", "ROUND_UP", "EVEN", "CEIL" };

/* `word` is what --format calls it. */
static const struct {
    const char *word, *name, *meaning;
    mxq_kind kind;
    trn_format format;
} format_row[] = {
    { "tf32", "TF32", "a reference: 10 mantissa bits", MXQ_CAST, TRN_TF32 },
    { "float16", "FP16", "a reference: 10 mantissa bits, up to 65504", MXQ_CAST, TRN_F16 },
    { "bfloat16", "BF16", "a reference: 7 mantissa bits", MXQ_CAST, TRN_BF16 },
    { "mxint8", "MXINT8", "8-bit integers in 64ths, blocks of 32", MXQ_MX, TRN_I8 },
    { "mxfp8_e4m3", "MXFP8 E4M3", "elements up to 448, blocks of 32", MXQ_MX, TRN_F8_E4M3FN },
    { "mxfp8_e5m2", "MXFP8 E5M2", "elements up to 57344, blocks of 32", MXQ_MX, TRN_F8_E5M2 },
    { "int8", "INT8", "-127 ... 127 with float32 scales", MXQ_SCALED, TRN_I8 },
    { "fp8_e3m4", "FP8 E3M4", "up to 15.5, with float32 scales", MXQ_SCALED, TRN_F8_E3M4 },
    { "fp8_e4m3", "FP8 E4M3", "Trainium's, up to 240, with float32 scales", MXQ_SCALED, TRN_F8_E4M3 },
    { "fp8_e4m3fn", "FP8 E4M3FN", "OCP's, up to 448, with float32 scales", MXQ_SCALED, TRN_F8_E4M3FN },
    { "fp8_e5m2", "FP8 E5M2", "up to 57344, with float32 scales", MXQ_SCALED, TRN_F8_E5M2 },
    { "mxfp6_e2m3", "MXFP6 E2M3", "elements up to 7.5, blocks of 32", MXQ_MX, TRN_F6_E2M3 },
    { "mxfp6_e3m2", "MXFP6 E3M2", "elements up to 28, blocks of 32", MXQ_MX, TRN_F6_E3M2 },
    { "mxfp4", "MXFP4", "E2M1, elements up to 6, blocks of 32", MXQ_MX, TRN_F4_E2M1 },
};
enum { FORMATS = sizeof format_row / sizeof format_row[0] };

bool mxq_format_known(const char *word)
{
    for (int i = 0; i < FORMATS; i++)
        if (!strcmp(word, format_row[i].word)) return true;
    return false;
}

void mxq_list_formats(FILE *out)
{
    for (int i = 0; i < FORMATS; i++)
        fprintf(out, "  %-12s  %-10s  %s\n", format_row[i].word, format_row[i].name, format_row[i].meaning);
}

/* ---- one way ---- */

static mxq_model float_model(const trn_format_info *f, double max)
{
    const int M = f->mantissa_bits;
    const double normal = ldexp(1, 1 - f->bias);
    return (mxq_model){ .max = max,
                        .normal = normal,
                        .lost = ldexp(normal, -M - 1),
                        .step = ldexp(normal, -M),
                        .alpha = ldexp(1, -2 * M) / 24,
                        .twice = 1 };
}

/* MXINT8 counts in 64ths. */
static mxq_model integer_model(bool mx)
{
    const double step = mx ? 1.0 / 64 : 1;
    return (mxq_model){ .max = 127 * step, .normal = INFINITY, .step = step, .twice = 1, .integer = true };
}

static double largest(const trn_format_info *f, const mxq_way *way)
{
    if (way->format == TRN_CFP8) return (double)trn_cfp8_decode(way->cfp8, f->max_code);
    return trn_format_limits_of(way->format).max;
}

static void complete(mxq_way *way)
{
    const trn_format_info f = way->format == TRN_CFP8 ? trn_cfp8_info(way->cfp8) : *trn_format_info_of(way->format);
    way->bits = way->format == TRN_TF32 ? 19 : f.bits;
    way->model = way->format == TRN_I8 ? integer_model(way->kind == MXQ_MX) : float_model(&f, largest(&f, way));
    if (way->rounding == TRN_STOCHASTIC) way->model.twice = 2, way->model.lost = 0;
}

const char *mxq_scale_of(const mxq_way *way)
{
    if (way->kind == MXQ_MX) return mxq_rule_name[way->rule];
    return way->kind == MXQ_SCALED ? mxq_grain_name[way->grain] : "-";
}

mxq_way mxq_way_of(const char *name, mxq_kind kind, trn_format format)
{
    mxq_way w = { .kind = kind, .format = format, .rule = TRN_MX_SCALE_ROUND_UP, .grain = MXQ_TENSOR };
    snprintf(w.name, sizeof w.name, "%s", name);
    complete(&w);
    return w;
}

static double per_element(double count, const mxq_source *s) { return 32 * count / (double)mxq_elements(s); }
static double no_bits(const mxq_source *s) { return 0 * (double)s->rows; }
static double tensor_bits(const mxq_source *s) { return per_element(1, s); }
static double channel_bits(const mxq_source *s) { return per_element((double)s->rows, s); }

static double grid_bits(const mxq_source *s)
{
    return per_element(ceil((double)s->rows / MXQ_SQUARE) * ceil((double)s->columns / MXQ_SQUARE), s);
}

double mxq_bits(const mxq_way *way, const mxq_source *s)
{
    static double (*const grain[MXQ_GRAINS])(const mxq_source *) = { no_bits, tensor_bits, channel_bits, grid_bits };
    if (way->kind == MXQ_MX)
        return way->bits + 8 * (double)(mxq_padded(s) / TRN_MX_BLOCK) / (double)(s->columns ? s->columns : 1);
    return way->bits + (way->kind == MXQ_SCALED && mxq_elements(s) ? grain[way->grain](s) : 0);
}

/* ---- all ways that were asked for ---- */

typedef struct list {
    const mxq_choice *choice;
    mxq_way *way;
    int ways;
} list;

/* Once for each kind of rounding. */
static void add(list *l, mxq_way way)
{
    const bool stochastic = l->choice->stochastic, nearest = l->choice->nearest || !stochastic;
    for (int sr = 0; sr < 2; sr++) {
        if (!(sr ? stochastic : nearest) || l->ways == MXQ_WAYS) continue;
        way.rounding = sr ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        complete(&way);
        l->way[l->ways++] = way;
    }
}

/* Once for each scale. */
static void add_scales(list *l, mxq_way way)
{
    const mxq_choice *c = l->choice;
    if (way.kind == MXQ_CAST) add(l, way);
    for (int r = 0; way.kind == MXQ_MX && r < TRN_MX_SCALE_COUNT; r++) {
        const bool usual = r <= TRN_MX_SCALE_ROUND_UP; /* the others are asked for */
        way.rule = (trn_mx_scale)r;
        if (c->any_rule ? c->rule[r] : usual) add(l, way);
    }
    for (int g = 0; way.kind == MXQ_SCALED && g < MXQ_GRAINS; g++) {
        way.grain = (mxq_grain)g;
        if (g == MXQ_NO_SCALE && way.format == TRN_I8) continue; /* whole numbers have no range of their own */
        if (c->any_grain ? c->grain[g] : g == MXQ_TENSOR) add(l, way);
    }
}

static bool wanted(const mxq_choice *c, const char *word)
{
    bool found = c->format_count == 0;
    for (int i = 0; i < c->format_count; i++) found = found || !strcmp(c->formats[i], word);
    return found;
}

int mxq_ways(const mxq_choice *choice, mxq_way *way)
{
    list l = { choice, way, 0 };
    for (int i = 0; i < FORMATS; i++) {
        if (wanted(choice, format_row[i].word))
            add_scales(&l, mxq_way_of(format_row[i].name, format_row[i].kind, format_row[i].format));
    }
    for (int i = 0; i < choice->cfp8_count; i++) {
        mxq_way w = { .kind = MXQ_SCALED, .format = TRN_CFP8, .cfp8 = choice->cfp8[i] };
        snprintf(w.name, sizeof w.name, "cFP8 E%dM%d bias %d", w.cfp8.exponent_bits, 7 - w.cfp8.exponent_bits,
                 w.cfp8.bias);
        add_scales(&l, w);
    }
    return l.ways;
}

/* ---- the QSNR that is expected of Gaussian values, by crest factor, and where integers and floats meet ----
 *
 * After "INT v.s. FP: A Comprehensive Study of Fine-Grained Low-bit Quantization Formats" (arXiv:2510.25602),
 * theorems 1 and 2. The scale is `overhead` times the one that puts the largest value on the largest number; the crest
 * factor is the largest value over the root of the mean square.
 */

#define PI 3.14159265358979323846

static double density(double z) { return exp(-0.5 * z * z) / sqrt(2 * PI); }
static double below(double z) { return erf(z / sqrt(2)); }                     /* P(|x| < z) */
static double energy_below(double z) { return below(z) - 2 * z * density(z); } /* E(x^2; |x| < z) */

double mxq_theory_float(double crest, const mxq_model *m, double overhead)
{
    const double scale = overhead * crest / m->max, step = scale * m->step;
    const double lost = scale * m->lost, normal = scale * m->normal;
    return mxq_db(1, m->alpha * (1 - energy_below(normal)) + step * step / 12 * (below(normal) - below(lost)) +
                         energy_below(lost));
}

double mxq_theory_integer(double crest, int bits, double overhead)
{
    const double step = overhead * crest * ldexp(1, 1 - bits);
    return mxq_db(1, step * step / 12);
}

/* ---- crossovers ---- */

typedef struct meeting {
    const char *integer, *floating;
    int bits;
    trn_format format;
    double overhead;
    int block; /* 16: the largest value of each is exact, because its scale is finer than a power of two; else 0 */
    double published;
} meeting;

static const meeting meetings[] = {
    { "MXINT8", "MXFP8 E4M3", 8, TRN_F8_E4M3FN, 1.5, 0, 7.55 },
    { "MXINT6", "MXFP6 E2M3", 6, TRN_F6_E2M3, 1.5, 0, 1.96 },
    { "MXINT4", "MXFP4", 4, TRN_F4_E2M1, 1.5, 0, 2.04 },
    { "NVINT4", "NVFP4", 4, TRN_F4_E2M1, 1.05, 16, 2.39 },
};

/* Of both, at a crest factor. */
static void both(const meeting *m, double crest, double *integer, double *floating)
{
    const mxq_model model = mxq_way_of(m->floating, MXQ_MX, m->format).model;
    *integer = mxq_theory_integer(crest, m->bits, m->overhead);
    *floating = mxq_theory_float(crest, &model, m->overhead);
    if (!m->block) return;
    *integer += mxq_db(1, 1 - 1.0 / m->block);
    const double noise = pow(10, -*floating / 10) - model.alpha * crest * crest / m->block;
    *floating = mxq_db(1, fmax(noise, 1e-12));
}

static double crossover(const meeting *m, double *qsnr)
{
    double low = 1, high = 12, floating;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        both(m, middle, qsnr, &floating);
        if (*qsnr > floating)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void mxq_print_theory(FILE *out)
{
    static const char *const with[] = {
        "", "FP4 E2M1", "FP8 E5M2, FP6 E3M2", "FP8 E4M3, FP6 E2M3", "FP8 E3M4", "", "", "BF16", "", "", "FP16, TF32"
    };
    fputs(
        "SQNR of a float with M mantissa bits that saturates and loses nothing, in dB. Published, with 2 for the mean\n"
        "square of significands: 10 log10(24) + 20 M log10(2) = 13.80 + 6.02 M. Values of many binades, wherever\n"
        "their scale lies: 10 log10(32 ln 2) = 13.46 instead.\n\n"
        "   M  formats              published  many binades\n",
        out);
    for (int m = 0; m <= 10; m++)
        if (*with[m])
            fprintf(out, "  %2d  %-20s  %8.2f  %12.2f\n", m, with[m], mxq_db(1, ldexp(1, -2 * m) / 24),
                    mxq_db(1, ldexp(1, -2 * m) / (32 * log(2))));
    fputs("\nGaussian values: an integer is better than the float of its size below this crest factor\n\n"
          "  integer  float        crest factor  published  at dB\n",
          out);
    for (size_t i = 0; i < sizeof meetings / sizeof meetings[0]; i++) {
        double qsnr;
        const double crest = crossover(&meetings[i], &qsnr);
        fprintf(out, "  %-7s  %-10s   %12.2f  %9.2f  %5.2f\n", meetings[i].integer, meetings[i].floating, crest,
                meetings[i].published, qsnr);
    }
    fputs("\nScales are 1.5 times the best (powers of two), 1.05 times for NV. Published: arXiv:2510.25602, theorems 1 "
          "and 2, figure 3.\n",
          out);
}

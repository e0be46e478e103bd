/* theory.c - the QSNR that is expected of Gaussian values, by crest factor, and where integers and floats meet.
 * SPDX-License-Identifier: MIT
 *
 * After "INT v.s. FP: A Comprehensive Study of Fine-Grained Low-bit Quantization Formats" (arXiv:2510.25602),
 * theorems 1 and 2. The scale is `overhead` times the one that puts the largest value on the largest number; the crest
 * factor is the largest value over the root of the mean square.
 */
#include "mxq.h"

#include <math.h>

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

/* synthetic.c - distributions whose every value is a function of seed and position.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>

#include <trnmath/trn_random.h>

#define PI 3.14159265358979323846

static const char *const law_name[MXQ_LAWS] = { "gaussian", "laplace", "uniform", "student-t" };
const char *mxq_law_name(mxq_law law) { return law_name[law]; }

/* Inside 0 ... 1, never at the ends. */
static double unit(uint32_t word) { return ((double)word + 0.5) * 0x1p-32; }

static double gaussian(double u, double v, double freedom)
{
    (void)freedom;
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

static double laplace(double u, double v, double freedom)
{
    (void)freedom;
    return (v < 0.5 ? -1 : 1) * -log(u) / sqrt(2);
}

static double uniform(double u, double v, double freedom)
{
    (void)v;
    (void)freedom;
    return sqrt(3) * (2 * u - 1);
}

/* Bailey's polar form: for freedom -> infinity it is Box's and Muller's. */
static double student_t(double u, double v, double freedom)
{
    return sqrt(freedom * (pow(u, -2 / freedom) - 1)) * cos(2 * PI * v);
}

static double (*const law_of[MXQ_LAWS])(double, double, double) = { gaussian, laplace, uniform, student_t };

/* Element i takes words 2 i and 2 i + 1 of stream 0, and word i of stream 1 says whether it is an outlier. */
void mxq_draw(const mxq_synthetic *s, int64_t first, int64_t count, float *out)
{
    enum { AT_ONCE = 256 };
    uint32_t word[2 * AT_ONCE], out_word[AT_ONCE];
    for (int64_t i = 0, n; i < count; i += n) {
        n = count - i < AT_ONCE ? count - i : AT_ONCE;
        trn_random_fill(word, 2 * (size_t)n, s->seed, 0, 2 * (uint64_t)(first + i), TRN_ISA_AUTO);
        if (s->outlier_share > 0) trn_random_fill(out_word, (size_t)n, s->seed, 1, (uint64_t)(first + i), TRN_ISA_AUTO);
        for (int64_t j = 0; j < n; j++) {
            const double value = s->sigma * law_of[s->law](unit(word[2 * j]), unit(word[2 * j + 1]), s->freedom);
            const bool outlier = s->outlier_share > 0 && unit(out_word[j]) < s->outlier_share;
            out[i + j] = (float)(outlier ? s->outlier_factor * value : value);
        }
    }
}

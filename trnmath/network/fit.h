/* network/fit.h - a few positive numbers from many measured times: bounded least squares of logarithms.
 * A part of trn_calibration_fit.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_calibration_fit.h>
 *     static trn_status line(void *user, const double *number, double *predicted) { // launch + bytes / rate
 *         const double *bytes = (const double *)user;
 *         for (int i = 0; i < 3; i++) predicted[i] = number[0] + bytes[i] / number[1];
 *         return TRN_OK;
 *     }
 *     int main(void) {
 *         double bytes[] = { 1e3, 1e6, 1e9 }, measured[] = { 6.02e-6, 26e-6, 20006e-6 };
 *         const double low[] = { 1e-7, 1e9 }, high[] = { 1e-3, 1e12 };
 *         double number[] = { 1e-6, 100e9 }; // where to begin
 *         trn_fit_args args = { 0 };
 *         args.model = line;
 *         args.user = bytes;
 *         args.numbers = 2;
 *         args.samples = 3;
 *         args.measured = measured;
 *         args.low = low;
 *         args.high = high;
 *         if (trn_fit(&args, number) != TRN_OK) return 1;
 *         return number[0] > 5.9e-6 && number[0] < 6.1e-6 && number[1] > 49e9 && number[1] < 51e9 ? 0 : 1;
 *     }
 *
 * DOES: finds the numbers, each between its bounds, that make the sum over all samples of log(predicted / measured)^2
 *     least, so that a time that is 10 % too long counts the same at 5 us and at 5 s. Models may have kinks, as the
 *     longest of several times has. Of numbers that the samples do not tell apart it takes those nearest to the start
 *     (1e-4 of each squared logarithm is added); one that no sample depends on stays where it began.
 * DOES NOT: find the best of several valleys, or say how sure it is: fit again without a sample (leave_out) and see
 *     what it predicts.
 *
 * KNOWN FROM: Levenberg 1944, Marquardt 1963; then steps along each number by itself, which kinks do not mislead.
 */
#ifndef TRNI_NETWORK_FIT_H
#define TRNI_NETWORK_FIT_H

#include "../base/base.h"

enum { TRN_FIT_NUMBERS = 16 };

/* Writes predicted[samples], all positive; anything but TRN_OK ends the fit. */
typedef trn_status (*trn_fit_model)(void *user, const double *number, double *predicted);

typedef struct trn_fit_args {
    trn_fit_model model;
    void *user;
    int numbers, samples;
    const double *measured;   /* [samples] */
    const double *weight;     /* [samples]; NULL = 1 each */
    const double *low, *high; /* [numbers] 0 < low <= high */
    int leave_out;            /* 1 + the sample that does not count; 0 = all count */
    bool is_near;             /* the answer is known to be near the start, so that less is tried */
    trn_error *error;
} trn_fit_args;

/* number[numbers]: where to begin, and the answer. It is written only when TRN_OK is returned. */
TRN_API trn_status trn_fit(const trn_fit_args *args, double *number);

#if TRNI_BODIES

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct trni_fit {
    const trn_fit_args *a;
    double p[TRN_FIT_NUMBERS];  /* logarithms of the numbers, */
    double p0[TRN_FIT_NUMBERS]; /* and where they began */
    double *residual, *moved;   /* [samples] at p, and near it */
    double *slope;              /* [numbers][samples] */
    double sum;                 /* of squares at p */
    trn_status status;
} trni_fit;

#define TRNI_FIT_PULL 1e-4

/* The residuals of p into r; the sum of their squares. A model that fails, or predicts nothing, ends it. */
TRNI_FN double trni_fit_sum(trni_fit *f, const double *p, double *r)
{
    const trn_fit_args *a = f->a;
    double number[TRN_FIT_NUMBERS], sum = 0;
    for (int k = 0; k < a->numbers; k++) number[k] = exp(p[k]);
    if (f->status == TRN_OK) f->status = a->model(a->user, number, r);
    for (int i = 0; i < a->samples && f->status == TRN_OK; i++) {
        if (!(r[i] > 0 && r[i] <= DBL_MAX)) {
            f->status = trni_fail(a->error, TRN_EINVAL, "the model predicts %g for sample %d", r[i], i);
            return DBL_MAX;
        }
        const double weight = i + 1 == a->leave_out ? 0 : a->weight ? a->weight[i] : 1;
        r[i] = weight * log(r[i] / a->measured[i]);
        sum += r[i] * r[i];
    }
    for (int k = 0; k < a->numbers; k++) sum += TRNI_FIT_PULL * (p[k] - f->p0[k]) * (p[k] - f->p0[k]);
    return f->status == TRN_OK ? sum : DBL_MAX;
}

TRNI_FN double trni_fit_bounded(const trn_fit_args *a, int k, double p)
{
    return fmin(fmax(p, log(a->low[k])), log(a->high[k]));
}

/* Takes p if it is better; `moved` has its residuals. */
TRNI_FN bool trni_fit_take(trni_fit *f, const double *p, double sum)
{
    if (!(sum < f->sum * (1 - 1e-12))) return false;
    memcpy(f->p, p, sizeof f->p);
    double *other = f->residual;
    f->residual = f->moved;
    f->moved = other;
    f->sum = sum;
    return true;
}

TRNI_FN void trni_fit_slopes(trni_fit *f)
{
    const double step = 1e-4;
    for (int k = 0; k < f->a->numbers; k++) {
        double p[TRN_FIT_NUMBERS];
        memcpy(p, f->p, sizeof p);
        const double way = f->p[k] + step <= log(f->a->high[k]) ? step : -step;
        p[k] += way;
        trni_fit_sum(f, p, f->moved);
        double *slope = f->slope + (size_t)k * (size_t)f->a->samples;
        for (int i = 0; i < f->a->samples; i++) slope[i] = (f->moved[i] - f->residual[i]) / way;
    }
}

/* m x = v for the first n rows, by elimination with pivots; false when nothing is left to divide by. */
TRNI_FN bool trni_fit_solve(double m[TRN_FIT_NUMBERS][TRN_FIT_NUMBERS + 1], int n, double *x)
{
    for (int c = 0; c < n; c++) {
        int best = c;
        for (int r = c + 1; r < n; r++)
            if (fabs(m[r][c]) > fabs(m[best][c])) best = r;
        if (!(fabs(m[best][c]) > 1e-300)) return false;
        for (int k = 0; k <= n; k++) {
            const double t = m[c][k];
            m[c][k] = m[best][k];
            m[best][k] = t;
        }
        for (int r = c + 1; r < n; r++)
            for (int k = n; k >= c; k--) m[r][k] -= m[r][c] / m[c][c] * m[c][k];
    }
    for (int r = n - 1; r >= 0; r--) {
        x[r] = m[r][n];
        for (int k = r + 1; k < n; k++) x[r] -= m[r][k] * x[k];
        x[r] /= m[r][r];
    }
    return true;
}

/* One step of Levenberg and Marquardt, damped more until it helps; false when it does not. */
TRNI_FN bool trni_fit_step(trni_fit *f, double *damping)
{
    const int n = f->a->numbers, samples = f->a->samples;
    double normal[TRN_FIT_NUMBERS][TRN_FIT_NUMBERS + 1];
    trni_fit_slopes(f);
    for (int r = 0; r < n; r++)
        for (int c = 0; c <= n; c++) {
            const double *a = f->slope + (size_t)r * (size_t)samples;
            const double *b = c < n ? f->slope + (size_t)c * (size_t)samples : f->residual;
            normal[r][c] = 0;
            for (int i = 0; i < samples; i++) normal[r][c] += a[i] * b[i];
            if (c == r) normal[r][c] += TRNI_FIT_PULL;
            if (c == n) normal[r][c] += TRNI_FIT_PULL * (f->p[r] - f->p0[r]);
        }
    for (; *damping < 1e9 && f->status == TRN_OK; *damping *= 8) {
        double m[TRN_FIT_NUMBERS][TRN_FIT_NUMBERS + 1], step[TRN_FIT_NUMBERS], p[TRN_FIT_NUMBERS];
        memcpy(m, normal, sizeof m);
        for (int r = 0; r < n; r++) m[r][r] += *damping * m[r][r];
        if (!trni_fit_solve(m, n, step)) continue;
        memcpy(p, f->p, sizeof p);
        for (int k = 0; k < n; k++) p[k] = trni_fit_bounded(f->a, k, p[k] - fmin(fmax(step[k], -2), 2));
        if (!trni_fit_take(f, p, trni_fit_sum(f, p, f->moved))) continue;
        *damping = fmax(*damping / 16, 1e-9);
        return true;
    }
    return false;
}

/* Does any sample depend on this number where we are? */
TRNI_FN bool trni_fit_matters(const trni_fit *f, int k)
{
    const double *slope = f->slope + (size_t)k * (size_t)f->a->samples;
    for (int i = 0; i < f->a->samples; i++)
        if (fabs(slope[i]) > 1e-9) return true;
    return false;
}

/* Each number by itself, by ever smaller steps: over the kinks that slopes do not see. */
TRNI_FN bool trni_fit_walk(trni_fit *f)
{
    const double before = f->sum;
    bool matters[TRN_FIT_NUMBERS];
    trni_fit_slopes(f);
    for (int k = 0; k < f->a->numbers; k++) matters[k] = trni_fit_matters(f, k);
    const double least = f->a->is_near ? 1e-3 : 1e-5;
    for (double step = f->a->is_near ? 0.02 : 0.5; step > least && f->status == TRN_OK; step /= 4)
        for (int k = 0; k < f->a->numbers; k++)
            for (int way = -1; way <= 1 && matters[k]; way += 2) {
                double p[TRN_FIT_NUMBERS];
                do {
                    memcpy(p, f->p, sizeof p);
                    p[k] = trni_fit_bounded(f->a, k, p[k] + way * step);
                } while (trni_fit_take(f, p, trni_fit_sum(f, p, f->moved)));
            }
    return f->sum < before * (1 - 1e-6);
}

TRNI_DRIVER trn_status trni_fit_check(const trn_fit_args *a, const double *number)
{
    if (!a->model || !a->measured || !a->low || !a->high || !number)
        return trni_fail(a->error, TRN_EINVAL, "model, measured, low, high or number is null");
    if (a->numbers < 1 || a->numbers > TRN_FIT_NUMBERS || a->samples < 1 || a->samples > 1 << 24)
        return trni_fail(a->error, TRN_EINVAL, "%d numbers and %d samples: expected 1 to %d, and 1 to 2^24", a->numbers,
                         a->samples, (int)TRN_FIT_NUMBERS);
    if (a->leave_out < 0 || a->leave_out > a->samples)
        return trni_fail(a->error, TRN_EINVAL, "leave_out is %d, but there are %d samples", a->leave_out, a->samples);
    for (int k = 0; k < a->numbers; k++)
        if (!(a->low[k] > 0 && a->low[k] <= a->high[k] && a->high[k] <= DBL_MAX && number[k] >= a->low[k] &&
              number[k] <= a->high[k]))
            return trni_fail(a->error, TRN_EINVAL, "number %d begins at %g, and its bounds are %g and %g", k, number[k],
                             a->low[k], a->high[k]);
    for (int i = 0; i < a->samples; i++)
        if (!(a->measured[i] > 0 && a->measured[i] <= DBL_MAX) ||
            (a->weight && !(a->weight[i] >= 0 && a->weight[i] <= 1e6)))
            return trni_fail(a->error, TRN_EINVAL, "sample %d: measured %g, weight %g", i, a->measured[i],
                             a->weight ? a->weight[i] : 1);
    return TRN_OK;
}

TRNI_FN void trni_fit_search(trni_fit *f)
{
    f->sum = trni_fit_sum(f, f->p, f->residual);
    for (int round = 0; round < (f->a->is_near ? 2 : 8) && f->status == TRN_OK; round++) {
        double damping = 1e-3;
        for (int i = 0; i < 40 && f->sum > 1e-24 && trni_fit_step(f, &damping); i++) {}
        if (!trni_fit_walk(f)) return;
    }
}

TRN_API trn_status trn_fit(const trn_fit_args *args, double *number)
{
    trni_fit f;
    TRNI_ENTER(args);
    const trn_status status = trni_fit_check(args, number);
    if (status != TRN_OK) return status;
    const size_t samples = (size_t)args->samples;
    double *memory = (double *)malloc(sizeof(double) * samples * ((size_t)args->numbers + 2));
    if (!memory) return trni_fail(args->error, TRN_ENOSPC, "no memory for a fit to %d samples", args->samples);
    memset(&f, 0, sizeof f);
    f.a = args;
    f.residual = memory;
    f.moved = memory + samples;
    f.slope = memory + 2 * samples;
    for (int k = 0; k < args->numbers; k++) f.p[k] = f.p0[k] = log(number[k]);
    trni_fit_search(&f);
    for (int k = 0; k < args->numbers && f.status == TRN_OK; k++)
        number[k] = fmin(fmax(exp(f.p[k]), args->low[k]), args->high[k]);
    free(memory);
    return f.status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_FIT_H */

/* sweep.c - QSNR against sigma: the same values made smaller and larger, into formats with and without scales.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 15 }; /* elements */

static const struct {
    const char *name;
    mxq_kind kind;
    trn_format format;
} swept[MXQ_SWEEP_WAYS] = {
    { "MXFP8 E4M3", MXQ_MX, TRN_F8_E4M3FN }, { "FP8 E4M3FN", MXQ_CAST, TRN_F8_E4M3FN },
    { "FP8 E4M3", MXQ_CAST, TRN_F8_E4M3 },   { "FP8 E5M2", MXQ_CAST, TRN_F8_E5M2 },
    { "FP8 E3M4", MXQ_CAST, TRN_F8_E3M4 },   { "FP16", MXQ_CAST, TRN_F16 },
};

/* What the tensor begins with, brought to sigma 1. */
static bool sample_of(const mxq_source *s, float *x, int64_t *n, char *why)
{
    mxq_source line = *s;
    double energy = 0;
    int64_t not_finite = 0;
    line.rows = 1;
    line.columns = mxq_elements(s);
    *n = line.columns < SAMPLE ? line.columns : SAMPLE;
    for (int64_t i = 0, part; i < *n; i += part) {
        part = *n - i < MXQ_PIECE ? *n - i : MXQ_PIECE;
        if (!mxq_read(&line, &(mxq_place){ 0, i, 1, part }, x + i, &not_finite, why)) return false;
    }
    for (int64_t i = 0; i < *n; i++) energy += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < *n && energy > 0; i++) x[i] = (float)((double)x[i] / sqrt(energy / (double)*n));
    return true;
}

bool mxq_sweep_run(const mxq_source *s, mxq_sweep *sweep, char *why)
{
    mxq_job *job = calloc(1, sizeof *job);
    mxq_result *r = calloc(1, sizeof *r);
    mxq_pool *pool = calloc(1, sizeof *pool);
    float *x = malloc(sizeof(float) * SAMPLE), *y = malloc(sizeof(float) * SAMPLE);
    int64_t n = 0;
    bool ok = job && r && pool && x && y ? sample_of(s, x, &n, why) : app_refuse(why, "out of memory");
    if (ok) job->threads = 1, job->ways = MXQ_SWEEP_WAYS;
    for (int k = 0; ok && k < MXQ_SWEEP_WAYS; k++)
        sweep->way[k] = job->way[k] = mxq_way_of(swept[k].name, swept[k].kind, swept[k].format);
    for (int i = 0; ok && i < MXQ_SWEEP; i++) {
        sweep->sigma[i] = ldexp(1, i - MXQ_SWEEP / 2);
        for (int64_t j = 0; j < n; j++) y[j] = (float)((double)x[j] * sweep->sigma[i]);
        const mxq_source line = { .name = "sweep", .rows = 1, .columns = n, .values = y };
        ok = mxq_run(job, &line, r, pool, why);
        for (int k = 0; ok && k < MXQ_SWEEP_WAYS; k++) sweep->sqnr[k][i] = mxq_sqnr(r, k);
        if (ok) mxq_result_free(r);
    }
    free(job);
    free(r);
    free(pool);
    free(x);
    free(y);
    return ok;
}

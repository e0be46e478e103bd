/* run.c - all pieces of a tensor through all ways, in threads whose number the results do not depend on.
 * SPDX-License-Identifier: MIT
 *
 * Pieces are taken in waves; what a piece yields is added to the rest in the order of the pieces.
 */
#define _POSIX_C_SOURCE 200809L

#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { WAVE = 32 };

typedef struct piece_facts {
    int64_t nonzero, not_finite, blocks;
    double energy, sum;
    float amax[MXQ_BLOCKS];
    int64_t crest_blocks[MXQ_CRESTS];
    double crest_energy[MXQ_CRESTS], block_crest;
} piece_facts;

/* One wave: `count` pieces from `first` on. Everything a thread needs is allocated once. */
typedef struct wave {
    const mxq_job *job;
    const mxq_source *source;
    mxq_facts *facts;
    mxq_piece *piece;    /* one per thread */
    piece_facts *looked; /* [WAVE] */
    mxq_sums *measured;  /* [WAVE, ways] */
    mxq_bins *binned;    /* the same */
    int64_t first, count;
    char (*why)[APP_WHY]; /* [WAVE]; empty: it went well */
} wave;

/* ---- pieces ---- */

/* How much of each block is not what rows were filled up with. */
static void count_real(const mxq_source *s, const mxq_place *at, int *real)
{
    for (int64_t r = 0; r < at->rows; r++)
        for (int64_t c = 0; c < at->columns; c += TRN_MX_BLOCK) {
            const int64_t left = s->columns - at->column - c;
            *real++ = left < TRN_MX_BLOCK ? (int)left : TRN_MX_BLOCK;
        }
}

static bool load(const wave *w, int64_t i, mxq_piece *p, piece_facts *f)
{
    const mxq_place at = mxq_place_of(w->source, w->first + i);
    p->n = at.rows * at.columns;
    p->index = (uint64_t)(at.row * mxq_padded(w->source) + at.column);
    if (!mxq_read(w->source, &at, p->x, &f->not_finite, w->why[i])) return false;
    count_real(w->source, &at, p->real);
    mxq_look(p, &f->nonzero, &f->energy, &f->sum);
    return true;
}

static void look(const wave *w, int64_t i, mxq_piece *p)
{
    piece_facts *f = &w->looked[i];
    memset(f, 0, sizeof *f);
    if (!load(w, i, p, f)) return;
    memcpy(f->amax, p->amax, sizeof f->amax);
    for (int64_t b = 0; b < p->n / TRN_MX_BLOCK; b++) {
        if (p->crest[b] < 0) continue;
        const double unit = (double)p->unit[b], energy = (double)p->energy[b];
        f->blocks++;
        f->block_crest += (double)p->amax[b] * unit / sqrt(energy / p->real[b]);
        f->crest_blocks[p->crest[b]]++;
        f->crest_energy[p->crest[b]] += energy / (unit * unit);
    }
}

/* Of this thread alone: what else the machine does plays no part. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void quantise(const wave *w, int64_t i, mxq_piece *p)
{
    const mxq_job *job = w->job;
    const mxq_place at = mxq_place_of(w->source, w->first + i);
    piece_facts ignored = { 0 };
    mxq_sums *sums = &w->measured[i * job->ways];
    mxq_bins *bins = &w->binned[i * job->ways];
    memset(sums, 0, sizeof *sums * (size_t)job->ways);
    memset(bins, 0, sizeof *bins * (size_t)job->ways);
    if (!load(w, i, p, &ignored)) return;
    double now = thread_seconds();
    for (int k = 0; k < job->ways; k++) {
        mxq_scales(&job->way[k], w->source, &at, w->facts, p);
        mxq_quantise(&job->way[k], job, p);
        mxq_measure(&job->way[k], p, job->histogram, &sums[k], &bins[k]);
        const double then = thread_seconds();
        sums[k].seconds = then - now;
        now = then;
    }
}

static void run_wave(const wave *w, void (*step)(const wave *, int64_t, mxq_piece *))
{
#ifdef _OPENMP
#pragma omp parallel num_threads((int)(w->count < w->job->threads ? w->count : w->job->threads))
#endif
    {
        mxq_piece *own = w->piece;
#ifdef _OPENMP
        own += omp_get_thread_num();
#pragma omp for schedule(dynamic)
#endif
        for (int64_t i = 0; i < w->count; i++) step(w, i, own);
    }
}

/* ---- sums ---- */

static void fold_amax(mxq_facts *f, const mxq_source *s, const mxq_place *at, const float *amax)
{
    const int64_t across = (s->columns + MXQ_SQUARE - 1) / MXQ_SQUARE;
    for (int64_t r = 0; r < at->rows; r++)
        for (int64_t c = 0; c < at->columns; c += TRN_MX_BLOCK, amax++) {
            float *row = &f->row_amax[at->row + r];
            float *grid = &f->grid_amax[(at->row + r) / MXQ_SQUARE * across + (at->column + c) / MXQ_SQUARE];
            *row = fmaxf(*row, *amax);
            *grid = fmaxf(*grid, *amax);
            f->amax = fmax(f->amax, (double)*amax);
        }
}

static void fold_facts(const wave *w)
{
    mxq_facts *f = w->facts;
    for (int64_t i = 0; i < w->count; i++) {
        const piece_facts *p = &w->looked[i];
        const mxq_place at = mxq_place_of(w->source, w->first + i);
        fold_amax(f, w->source, &at, p->amax);
        f->nonzero += p->nonzero, f->not_finite += p->not_finite, f->blocks += p->blocks;
        f->energy += p->energy, f->sum += p->sum, f->block_crest += p->block_crest;
        for (int b = 0; b < MXQ_CRESTS; b++) {
            f->crest_blocks[b] += p->crest_blocks[b];
            f->crest_energy[b] += p->crest_energy[b];
        }
    }
}

static void add_sums(mxq_sums *to, const mxq_sums *s)
{
    to->noise += s->noise, to->theory += s->theory, to->ideal += s->ideal;
    to->relative += s->relative;
    to->relative_max = fmaxf(to->relative_max, s->relative_max);
    to->absolute_max = fmaxf(to->absolute_max, s->absolute_max);
    to->to_zero += s->to_zero, to->saturated += s->saturated;
    to->seconds += s->seconds;
}

static void add_bins(mxq_bins *to, const mxq_bins *s, double scale)
{
    for (int b = 0; b < MXQ_CRESTS; b++) to->crest_noise[b] += scale * s->crest_noise[b];
    for (int b = 0; b < MXQ_ERRORS; b++) to->errors[b] += s->errors[b];
}

static void add_facts(mxq_pool *to, const mxq_facts *f, double scale)
{
    to->nonzero += f->nonzero;
    for (int b = 0; b < MXQ_CRESTS; b++) {
        to->crest_blocks[b] += f->crest_blocks[b];
        to->crest_energy[b] += scale * f->crest_energy[b];
    }
}

/* ---- a tensor ---- */

static void wave_open(wave *w, const mxq_job *job, const mxq_source *s, mxq_result *r)
{
    const int64_t down = (s->rows + MXQ_SQUARE - 1) / MXQ_SQUARE, across = (s->columns + MXQ_SQUARE - 1) / MXQ_SQUARE;
    *w = (wave){ .job = job, .source = s, .facts = &r->facts };
    w->piece = app_memory((size_t)job->threads, sizeof *w->piece);
    w->looked = app_memory(WAVE, sizeof *w->looked);
    w->measured = app_memory((size_t)WAVE * (size_t)job->ways, sizeof *w->measured);
    w->binned = app_memory((size_t)WAVE * (size_t)job->ways, sizeof *w->binned);
    w->why = app_memory(WAVE, sizeof *w->why);
    r->facts.row_amax = app_memory((size_t)s->rows + 1, sizeof(float));
    r->facts.grid_amax = app_memory((size_t)(down * across) + 1, sizeof(float));
    r->sums = app_memory((size_t)job->ways, sizeof *r->sums);
}

static void wave_close(wave *w)
{
    free(w->piece);
    free(w->looked);
    free(w->measured);
    free(w->binned);
    free(w->why);
    free(w->facts->row_amax);
    free(w->facts->grid_amax);
    w->facts->row_amax = w->facts->grid_amax = NULL;
}

static bool next_wave(wave *w, void (*step)(const wave *, int64_t, mxq_piece *), char *why)
{
    const int64_t left = mxq_pieces(w->source) - w->first;
    w->count = left < WAVE ? left : WAVE;
    run_wave(w, step);
    mxq_release(w->source, w->first, w->count);
    for (int64_t i = 0; i < w->count; i++)
        if (w->why[i][0]) return app_refuse(why, w->why[i]);
    return true;
}

static void fold_sums(const wave *w, mxq_result *r, mxq_pool *pool)
{
    const double scale = r->facts.energy > 0 ? 1 / r->facts.energy : 0;
    for (int64_t i = 0; i < w->count * w->job->ways; i++) {
        add_sums(&r->sums[i % w->job->ways], &w->measured[i]);
        add_bins(&pool->way[i % w->job->ways], &w->binned[i], scale);
    }
}

static bool all_waves(wave *w, mxq_result *r, mxq_pool *pool, char *why)
{
    const int64_t pieces = mxq_pieces(w->source);
    for (w->first = 0; w->first < pieces; w->first += WAVE) {
        app_progress("%s: looked at %.0f %%", w->source->name, 100.0 * (double)w->first / (double)pieces);
        if (!next_wave(w, look, why)) return false;
        fold_facts(w);
    }
    add_facts(pool, &r->facts, r->facts.energy > 0 ? 1 / r->facts.energy : 0);
    for (w->first = 0; w->first < pieces; w->first += WAVE) {
        app_progress("%s: quantised %.0f %%", w->source->name, 100.0 * (double)w->first / (double)pieces);
        if (!next_wave(w, quantise, why)) return false;
        fold_sums(w, r, pool);
    }
    return true;
}

bool mxq_run(const mxq_job *job, const mxq_source *s, mxq_result *r, mxq_pool *pool, char *why)
{
    wave w;
    memset(r, 0, sizeof *r);
    r->source = s;
    r->facts.elements = mxq_elements(s);
    wave_open(&w, job, s, r);
    const bool ok = all_waves(&w, r, pool, why);
    wave_close(&w);
    if (!ok) mxq_result_free(r);
    return ok;
}

void mxq_result_free(mxq_result *r)
{
    free(r->sums);
    r->sums = NULL;
}

/* ---- what it means ---- */

double mxq_db(double signal, double noise)
{
    if (!(signal > 0)) return NAN;
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

double mxq_sqnr(const mxq_result *r, int way) { return mxq_db(r->facts.energy, r->sums[way].noise); }
double mxq_theory(const mxq_result *r, int way) { return mxq_db(r->facts.energy, r->sums[way].theory); }

double mxq_ceiling(const mxq_job *job, const mxq_result *r, int way)
{
    const mxq_model *m = &job->way[way].model;
    if (m->integer) return mxq_db(r->facts.energy, r->sums[way].ideal);
    return r->facts.energy > 0 ? mxq_db(1, m->twice * m->alpha) : NAN;
}

double mxq_sigma(const mxq_facts *f)
{
    const double n = (double)f->elements, mean = f->sum / n;
    return sqrt(fmax(0, f->energy / n - mean * mean));
}

double mxq_crest(const mxq_facts *f) { return f->amax / sqrt(f->energy / (double)f->elements); }

double mxq_crest_quantile(const mxq_facts *f, double share)
{
    double below = 0;
    const double wanted = share * (double)f->blocks;
    for (int b = 0; b < MXQ_CRESTS; b++) {
        const double here = (double)f->crest_blocks[b];
        if (below + here >= wanted && here > 0) return mxq_crest_of_bin(b + (wanted - below) / here);
        below += here;
    }
    return NAN;
}

/* Fewer bits win a tie, then the earlier way. */
int mxq_best(const mxq_job *job, const mxq_result *r, double budget)
{
    int best = -1;
    for (int k = 0; k < job->ways; k++) {
        const double bits = mxq_bits(&job->way[k], r->source), sqnr = mxq_sqnr(r, k);
        if (bits > budget + 1e-9 || isnan(sqnr)) continue;
        if (best < 0 || sqnr > mxq_sqnr(r, best) ||
            (sqnr >= mxq_sqnr(r, best) && bits < mxq_bits(&job->way[best], r->source)))
            best = k;
    }
    return best;
}

/* ---- QSNR against sigma: the same values made smaller and larger, into formats with and without scales ---- */

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
    mxq_job *job = app_memory(1, sizeof *job);
    mxq_result *r = app_memory(1, sizeof *r);
    mxq_pool *pool = app_memory(1, sizeof *pool);
    float *x = app_memory(SAMPLE, sizeof *x), *y = app_memory(SAMPLE, sizeof *y);
    int64_t n = 0;
    bool ok = sample_of(s, x, &n, why);
    job->threads = 1, job->ways = MXQ_SWEEP_WAYS;
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

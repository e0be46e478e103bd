/* compare.c - one pass over a pair of arrays: distances, errors, sums, where they lie.
 * SPDX-License-Identifier: MIT
 *
 * The elements are cut into chunks whose size follows from their number alone; threads take chunks, and chunks are
 * joined in order: the sums do not depend on how many threads there were.
 */
#include "ulpdiff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 64, CHUNK_LEAST = 1 << 18, GROUP = 8 }; /* GROUP: chunks that are held at once */

const char *const ud_bucket_name[UD_BUCKETS] = { "0", "1", "2", "3-10", "11-100", ">100" };

int ud_bucket(double u) { return (u > 0) + (u > 1) + (u > 2) + (u > 10) + (u > 100); }

double ud_fine_limit(int fine) { return fine == 0 ? 0 : ldexp(1, fine - 2); }

typedef struct ud_work { /* one block: what the stages hand on */
    int64_t first;
    int n, numbers;
    bool differs;
    double a[UD_BLOCK], b[UD_BLOCK], d[UD_BLOCK];
    double distance[UD_BLOCK]; /* in ulps; -1: both NaN, or the same infinity; -2: a mismatch */
    int64_t code[2][UD_BLOCK];
} ud_work;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

enum { EXPONENT = 0x7ff };
static int exponent_of(double x) { return (int)(bits_of(x) >> 52 & EXPONENT); }

/* ---- distances ---- */

static void measure_codes(const ud_pair *p, ud_work *w)
{
    ud_ordered(&p->a, &p->unit, w->first, w->n, w->a, w->code[0]);
    ud_ordered(&p->b, &p->unit, w->first, w->n, w->b, w->code[1]);
    if (p->unit.kind == UD_CODES) {
        for (int i = 0; i < w->n; i++) w->distance[i] = fabs((double)(w->code[0][i] - w->code[1][i]));
        return;
    }
    for (int i = 0; i < w->n; i++) { /* 64-bit codes: their difference may need all 64 */
        const int64_t x = w->code[0][i], y = w->code[1][i];
        w->distance[i] = (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
    }
}

static void measure_places(const ud_pair *p, ud_work *w)
{
    for (int i = 0; i < w->n; i++) w->distance[i] = fabs(w->b[i] - w->a[i]) / ud_last_place(&p->unit, w->a[i]);
}

double ud_distance(const ud_pair *p, int64_t i, double *a, double *b)
{
    ud_work *w = app_memory(1, sizeof *w);
    w->first = i;
    w->n = 1;
    ud_values(&p->a, i, 1, w->a);
    ud_values(&p->b, i, 1, w->b);
    (p->unit.places ? measure_places : measure_codes)(p, w);
    *a = w->a[0];
    *b = w->b[0];
    const double u = w->distance[0];
    free(w);
    if (isfinite(*a) && isfinite(*b)) return u;
    return (isnan(*a) && isnan(*b)) || *a == *b ? 0 : INFINITY;
}

/* ---- NaN and infinity: counted, and taken out of the sums ---- */

static void take_out(ud_sums *s, ud_work *w, int i)
{
    const double x[2] = { w->a[i], w->b[i] };
    for (int k = 0; k < 2; k++) {
        s->nan[k] += isnan(x[k]) != 0;
        s->infinite[k] += isinf(x[k]) != 0;
    }
    const bool same = isnan(x[0]) ? isnan(x[1]) != 0 : x[0] == x[1];
    w->distance[i] = same ? -1 : -2;
    w->differs |= !same;
    s->mismatches += !same;
    w->a[i] = w->b[i] = 0;
    w->numbers--;
}

static bool all_numbers(const ud_work *w)
{
    uint64_t odd = 0;
    for (int i = 0; i < w->n; i++)
        odd += (uint64_t)(exponent_of(w->a[i]) == EXPONENT) + (uint64_t)(exponent_of(w->b[i]) == EXPONENT);
    return odd == 0;
}

static void take_out_all(ud_sums *s, ud_work *w)
{
    for (int i = 0; i < w->n; i++)
        if (exponent_of(w->a[i]) == EXPONENT || exponent_of(w->b[i]) == EXPONENT) take_out(s, w, i);
}

/* ---- sums ---- */

/* Joins means and sums of squares about them (Chan, Golub and LeVeque 1979). */
static void join_moments(ud_sums *s, int64_t n, double mean_a, double mean_d, double aa, double dd, double ad)
{
    const int64_t all = s->numbers + n;
    if (!n) return;
    const double da = mean_a - s->mean_a, de = mean_d - s->mean_d;
    const double part = (double)n / (double)all, both = (double)s->numbers * part;
    s->mean_a += da * part;
    s->mean_d += de * part;
    s->aa += aa + da * da * both;
    s->dd += dd + de * de * both;
    s->ad += ad + da * de * both;
    s->numbers = all;
}

static void add_moments(ud_sums *s, const ud_work *w)
{
    double a = 0, d = 0, aa = 0, dd = 0, ad = 0;
    for (int i = 0; i < w->n; i++) {
        a += w->a[i];
        d += w->d[i];
    }
    if (!w->numbers) return;
    const double mean_a = a / w->numbers, mean_d = d / w->numbers;
    for (int i = 0; i < w->n; i++) {
        const double x = w->a[i] - mean_a, y = w->d[i] - mean_d;
        aa += x * x;
        dd += y * y;
        ad += x * y;
    }
    const double out = w->n - w->numbers; /* those taken out stand there as 0 */
    join_moments(s, w->numbers, mean_a, mean_d, fmax(aa - out * mean_a * mean_a, 0),
                 fmax(dd - out * mean_d * mean_d, 0), ad - out * mean_a * mean_d);
}

/* What values look like, whatever the other side is: octaves, and the bits of significands that are in use. */
static void add_side(ud_sums *s, int side, const double *x, int n)
{
    uint64_t used = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t bits = bits_of(x[i]);
        used |= bits;
        s->octave[side][bits >> 52 & EXPONENT]++;
    }
    s->significand[side] |= used & ((UINT64_C(1) << 52) - 1);
}

static void add_errors(ud_sums *s, const ud_work *w)
{
    double sum = 0, most = 0, relative = 0, most_relative = 0;
    int64_t relatives = 0;
    for (int i = 0; i < w->n; i++) {
        const double e = fabs(w->d[i]), a = fabs(w->a[i]);
        sum += e;
        most = e > most ? e : most;
        const double r = e / (a > 0 ? a : HUGE_VAL);
        relative += r;
        most_relative = r > most_relative ? r : most_relative;
        relatives += a > 0;
    }
    s->abs_sum += sum;
    s->rel_sum += relative;
    s->relatives += relatives;
    if (most > s->abs_max) s->abs_max = most;
    if (most_relative > s->rel_max) s->rel_max = most_relative;
}

/* ---- distances, one by one: buckets, places, the worst ---- */

static int fine_of(double u) /* the smallest limit that is not below u */
{
    const int e = (int)((bits_of(u) + ((UINT64_C(1) << 52) - 1)) >> 52) - 1023 + 2;
    return e < 1 ? 1 : e < UD_FINE ? e : UD_FINE - 1;
}

static void note_place(ud_sums *s, int64_t i, int64_t row, int64_t column)
{
    if (s->first < 0) {
        s->first = i;
        s->row[0] = s->row[1] = row;
        s->column[0] = s->column[1] = column;
    }
    if (row > s->row[1]) s->row[1] = row;
    if (column < s->column[0]) s->column[0] = column;
    if (column > s->column[1]) s->column[1] = column;
}

static void note_number(ud_sums *s, const ud_work *w, int i)
{
    const double u = w->distance[i];
    s->bucket[ud_bucket(u)]++;
    s->fine[fine_of(u)]++;
    s->ulp_sum += u;
    s->outward += fabs(w->b[i]) > fabs(w->a[i]);
    s->above += w->b[i] > w->a[i];
}

static void add_distances(ud_sums *s, const ud_pair *p, const ud_work *w)
{
    const int64_t columns = p->a.columns;
    const double rows_each = (double)p->heat_rows / (double)p->a.rows, columns_each = p->heat_columns / (double)columns;
    int64_t row = w->first / columns, column = w->first % columns - 1;
    for (int i = 0; i < w->n; i++) {
        if (++column == columns) {
            column = 0;
            row++;
        }
        const double u = w->distance[i], weight = u < 0 ? INFINITY : u;
        if (u == 0 || u == -1) continue;
        note_place(s, w->first + i, row, column);
        if (u > 0) note_number(s, w, i);
        if (weight > s->ulp_max) {
            s->ulp_max = weight;
            s->worst = w->first + i;
        }
        double *cell =
            &s->heat[(int)((double)row * rows_each) * UD_HEAT_COLUMNS + (int)((double)column * columns_each)];
        if (weight > *cell) *cell = weight;
    }
}

static void add_zeros(ud_sums *s, const ud_work *w, double least_normal)
{
    int64_t signs = 0, flushed = 0, subnormal = 0;
    for (int i = 0; i < w->n; i++) {
        const double a = fabs(w->a[i]);
        signs += w->a[i] == 0 && w->b[i] == 0 && bits_of(w->a[i]) != bits_of(w->b[i]);
        const bool small = a > 0 && a < least_normal;
        subnormal += small;
        flushed += small && w->b[i] == 0;
    }
    s->zero_signs += signs;
    s->subnormal += subnormal;
    s->flushed += flushed;
}

/* ---- blocks and chunks ---- */

static double least_normal_of(const ud_unit *unit)
{
    if (unit->kind == UD_F64) return 0x1p-1022;
    const trn_format_info *f = trn_format_info_of(unit->format);
    return unit->kind == UD_CODES && f->mantissa_bits > 0 ? ldexp(1, 1 - f->bias) : 0;
}

static bool same_bytes(const ud_pair *p, int64_t first, int64_t n)
{
    const size_t item = p->a.item;
    return item && memcmp(p->a.data + (size_t)first * item, p->b.data + (size_t)first * item, (size_t)n * item) == 0;
}

static bool same_kind(const ud_pair *p) { return strcmp(p->a.type, p->b.type) == 0 && p->a.format == p->b.format; }

static bool all_bytes_equal(const ud_pair *p)
{
    const int64_t n = p->a.elements;
    if (!same_kind(p)) return false;
    if (p->a.kind == UD_SUB_BYTE) return memcmp(p->a.data, p->b.data, (size_t)((n * p->a.source.bits + 7) / 8)) == 0;
    return n == 0 || same_bytes(p, 0, n);
}

static void run_block(const ud_pair *p, ud_sums *s, ud_work *w, int64_t first, int n)
{
    const bool same = p->bytes_equal || (same_kind(p) && same_bytes(p, first, n));
    w->first = first;
    w->n = w->numbers = n;
    w->differs = false;
    ud_values(&p->a, first, n, w->a);
    if (same) {
        memcpy(w->b, w->a, sizeof(double) * (size_t)n);
        memset(w->distance, 0, sizeof(double) * (size_t)n);
    } else {
        ud_values(&p->b, first, n, w->b);
        (p->unit.places ? measure_places : measure_codes)(p, w);
    }
    if (!all_numbers(w)) take_out_all(s, w);
    uint64_t differs = w->differs;
    for (int i = 0; i < n; i++) {
        w->d[i] = w->b[i] - w->a[i];
        differs |= w->distance[i] > 0;
    }
    s->pairs += n;
    add_moments(s, w);
    add_side(s, 0, w->a, n);
    add_side(s, 1, w->b, n);
    if (!same)
        add_errors(s, w);
    else
        for (int i = 0; i < n; i++) s->relatives += w->a[i] != 0;
    if (!same) add_zeros(s, w, least_normal_of(&p->unit));
    if (differs) add_distances(s, p, w);
}

static void run_chunk(const ud_pair *p, ud_sums *s, int64_t first, int64_t end)
{
    ud_work *w = app_memory(1, sizeof *w);
    memset(s, 0, sizeof *s);
    s->first = s->worst = -1;
    for (int64_t at = first; at < end; at += UD_BLOCK)
        run_block(p, s, w, at, end - at < UD_BLOCK ? (int)(end - at) : UD_BLOCK);
    free(w);
}

static void join_places(ud_sums *s, const ud_sums *c)
{
    if (c->first < 0) return;
    if (s->first < 0) {
        s->first = c->first;
        memcpy(s->row, c->row, sizeof s->row);
        memcpy(s->column, c->column, sizeof s->column);
    }
    if (c->row[1] > s->row[1]) s->row[1] = c->row[1];
    if (c->column[0] < s->column[0]) s->column[0] = c->column[0];
    if (c->column[1] > s->column[1]) s->column[1] = c->column[1];
    if (c->ulp_max > s->ulp_max) {
        s->ulp_max = c->ulp_max;
        s->worst = c->worst;
    }
    for (int i = 0; i < UD_HEAT_ROWS * UD_HEAT_COLUMNS; i++)
        if (c->heat[i] > s->heat[i]) s->heat[i] = c->heat[i];
}

static void join(ud_sums *s, const ud_sums *c)
{
    s->pairs += c->pairs;
    for (int i = 0; i < UD_BUCKETS; i++) s->bucket[i] += c->bucket[i];
    for (int i = 0; i < UD_FINE; i++) s->fine[i] += c->fine[i];
    for (int k = 0; k < 2; k++) {
        s->nan[k] += c->nan[k];
        s->infinite[k] += c->infinite[k];
        s->significand[k] |= c->significand[k];
        for (int i = 0; i < UD_OCTAVES; i++) s->octave[k][i] += c->octave[k][i];
    }
    s->mismatches += c->mismatches;
    s->zero_signs += c->zero_signs;
    s->relatives += c->relatives;
    s->outward += c->outward;
    s->above += c->above;
    s->flushed += c->flushed;
    s->subnormal += c->subnormal;
    join_moments(s, c->numbers, c->mean_a, c->mean_d, c->aa, c->dd, c->ad);
    s->abs_sum += c->abs_sum;
    s->rel_sum += c->rel_sum;
    s->ulp_sum += c->ulp_sum;
    s->abs_max = fmax(s->abs_max, c->abs_max);
    s->rel_max = fmax(s->rel_max, c->rel_max);
    join_places(s, c);
}

void ud_compare(ud_pair *p)
{
    const int64_t n = p->a.elements;
    int64_t chunk = (n + CHUNKS - 1) / CHUNKS;
    chunk = (chunk > CHUNK_LEAST ? chunk + UD_BLOCK - 1 : CHUNK_LEAST) / UD_BLOCK * UD_BLOCK;
    ud_sums *part = app_memory(GROUP, sizeof *part), *s = &p->sums;
    memset(s, 0, sizeof *s);
    s->first = s->worst = -1;
    p->bytes_equal = all_bytes_equal(p);
    p->heat_rows = p->a.rows < UD_HEAT_ROWS ? (int)p->a.rows : UD_HEAT_ROWS;
    p->heat_columns = p->a.columns < UD_HEAT_COLUMNS ? (int)p->a.columns : UD_HEAT_COLUMNS;
    for (int64_t at = 0; at < n; at += GROUP * chunk) {
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 1)
#endif
        for (int64_t k = 0; k < GROUP; k++)
            if (at + k * chunk < n)
                run_chunk(p, &part[k], at + k * chunk, at + (k + 1) * chunk < n ? at + (k + 1) * chunk : n);
        for (int64_t k = 0; k < GROUP && at + k * chunk < n; k++) join(s, &part[k]);
        app_progress("%s: %.0f %% of %.3g elements", p->name, 100.0 * (double)at / (double)n, (double)n);
    }
    free(part);
    s->bucket[0] = s->fine[0] = s->numbers;
    for (int i = 1; i < UD_BUCKETS; i++) s->bucket[0] -= s->bucket[i];
    s->fine[0] = s->bucket[0];
}

/* ---- what the sums say ---- */

const ud_pair *ud_worst_pair(const ud_job *job)
{
    const ud_pair *worst = &job->pair[0];
    for (int i = 1; i < job->pairs; i++)
        if (job->pair[i].sums.ulp_max > worst->sums.ulp_max) worst = &job->pair[i];
    return worst;
}

static double energy_a(const ud_sums *s) { return s->aa + (double)s->numbers * s->mean_a * s->mean_a; }
static double energy_d(const ud_sums *s) { return s->dd + (double)s->numbers * s->mean_d * s->mean_d; }
static double product_ad(const ud_sums *s) { return s->ad + (double)s->numbers * s->mean_a * s->mean_d; }

double ud_share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

double ud_sqnr(const ud_sums *s)
{
    const double noise = energy_d(s);
    return noise > 0 ? 10 * log10(energy_a(s) / noise) : INFINITY;
}

double ud_cosine(const ud_sums *s)
{
    const double a = energy_a(s), b = a + 2 * product_ad(s) + energy_d(s);
    if (energy_d(s) == 0) return a > 0 ? 1 : NAN;
    return fmax(-1, fmin(1, (a + product_ad(s)) / sqrt(a * b)));
}

double ud_pcc(const ud_sums *s)
{
    const double bb = s->aa + 2 * s->ad + s->dd;
    if (!(s->aa > 0) || !(bb > 0)) return NAN;
    return s->dd == 0 ? 1 : fmax(-1, fmin(1, (s->aa + s->ad) / sqrt(s->aa * bb)));
}

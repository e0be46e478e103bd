/* source.c - tensors, drawn or from files, as rows that are read in pieces.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_random.h>

#include "io/arrays.h"
#include "io/quant/values.h"

/* ---- distributions whose every value is a function of seed and position ---- */

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

/* ---- pieces ---- */

int64_t mxq_elements(const mxq_source *s) { return s->rows * s->columns; }

int64_t mxq_padded(const mxq_source *s) { return (s->columns + TRN_MX_BLOCK - 1) / TRN_MX_BLOCK * TRN_MX_BLOCK; }

static int64_t rows_at_once(const mxq_source *s)
{
    const int64_t padded = mxq_padded(s);
    return padded > 0 && padded < MXQ_PIECE ? MXQ_PIECE / padded : 1;
}

static int64_t parts_of_row(const mxq_source *s) { return (mxq_padded(s) + MXQ_PIECE - 1) / MXQ_PIECE; }

int64_t mxq_pieces(const mxq_source *s)
{
    const int64_t at_once = rows_at_once(s);
    return (s->rows + at_once - 1) / at_once * parts_of_row(s);
}

mxq_place mxq_place_of(const mxq_source *s, int64_t piece)
{
    const int64_t parts = parts_of_row(s), padded = mxq_padded(s);
    mxq_place p = { .row = piece / parts * rows_at_once(s), .column = piece % parts * MXQ_PIECE };
    p.rows = s->rows - p.row < rows_at_once(s) ? s->rows - p.row : rows_at_once(s);
    p.columns = padded - p.column < MXQ_PIECE ? padded - p.column : MXQ_PIECE;
    return p;
}

/* Elements of codes, row by row. */
static void fetch_codes(const mxq_source *s, int64_t first, int64_t count, float *x)
{
    for (int64_t n; count > 0; first += n, x += n, count -= n) {
        const int64_t left = s->columns - first % s->columns;
        n = left < count ? left : count;
        quant_run(s->codes, first / s->columns, first % s->columns, n, x, 1);
    }
}

static bool fetch(const mxq_source *s, int64_t first, int64_t count, float *x, char *why)
{
    if (s->codes) return fetch_codes(s, first, count, x), true;
    if (s->array) return io_array_f32(s->array, first, count, x, why);
    memcpy(x, s->values + first, sizeof(float) * (size_t)count);
    return true;
}

/* An exponent of ones. */
static int64_t tame(float *x, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        if ((io_bits(x[i]) & 0x7f800000u) == 0x7f800000u) x[i] = 0, found++;
    return found;
}

bool mxq_read(const mxq_source *s, const mxq_place *at, float *x, int64_t *not_finite, char *why)
{
    const int64_t end = at->column + at->columns, real = (end < s->columns ? end : s->columns) - at->column;
    if (real == at->columns && (at->rows == 1 || at->columns == s->columns)) {
        if (!fetch(s, at->row * s->columns + at->column, at->rows * at->columns, x, why)) return false;
    } else {
        for (int64_t r = 0; r < at->rows; r++) {
            float *row = x + r * at->columns;
            if (!fetch(s, (at->row + r) * s->columns + at->column, real, row, why)) return false;
            memset(row + real, 0, sizeof(float) * (size_t)(at->columns - real));
        }
    }
    *not_finite += tame(x, at->rows * at->columns);
    return true;
}

/* Where a piece begins, in elements that are no filling. */
static int64_t start_of(const mxq_source *s, int64_t piece)
{
    if (piece >= mxq_pieces(s)) return mxq_elements(s);
    const mxq_place at = mxq_place_of(s, piece);
    return at.row * s->columns + at.column;
}

void mxq_release(const mxq_source *s, int64_t first, int64_t count)
{
    const io_array *a = s->array;
    if (!a || (s->codes && a->elements != mxq_elements(s))) return;
    io_array_done(s->file, a, start_of(s, first), start_of(s, first + count));
}

/* ---- where they come from ---- */

mxq_source *mxq_new_source(mxq_sources *s)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->item = app_resize(s->item, (size_t)s->capacity, sizeof *s->item);
    }
    return memset(&s->item[s->count++], 0, sizeof *s->item);
}

/* As wide as a matrix where the count allows, so that scales of channels mean something. */
bool mxq_add_synthetic(mxq_sources *s, const mxq_synthetic *what, int64_t columns, char *why)
{
    enum { AT_ONCE = 1 << 14 };
    float *values = malloc(sizeof(float) * (size_t)(what->count ? what->count : 1));
    if (!values) return app_refuse(why, "there is no memory for so many values");
    const int64_t parts = (what->count + AT_ONCE - 1) / AT_ONCE;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (int64_t p = 0; p < parts; p++) {
        const int64_t first = p * AT_ONCE, left = what->count - first;
        mxq_draw(what, first, left < AT_ONCE ? left : AT_ONCE, values + first);
    }
    mxq_source *t = mxq_new_source(s);
    const bool matrix = columns > 0 && what->count % columns == 0;
    t->columns = matrix ? columns : what->count;
    t->rows = what->count / (t->columns ? t->columns : 1);
    t->values = values;
    t->name = mxq_law_name(what->law);
    snprintf(t->type, sizeof t->type, "%s", trn_format_name(TRN_F32));
    return true;
}

void mxq_close(mxq_sources *s)
{
    for (int i = 0; i < s->count; i++) free((void *)(uintptr_t)s->item[i].values);
    mxq_close_files(s);
    free(s->item);
}

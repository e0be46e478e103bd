/* pieces.c - a tensor in pieces: several threads convert while one writes what was converted before.
 * SPDX-License-Identifier: MIT
 *
 * The pieces do not depend on how many threads there are, and their tallies are added in order: nor does the report.
 */
#include "fp8conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

enum {
    PIECE = 1 << 19,      /* codes */
    LONGEST = 4 * PIECE,  /* where whole blocks fit, a piece holds whole blocks */
    NUMBERS = 1 << 16,    /* numbers in a piece: below what trn_convert itself would share out */
    ROOM = 8 << 20,       /* bytes that are converted before they are written */
    ABREAST = ROOM / NUMBERS,
    SMALL = 1 << 17       /* elements that are not worth waking a thread */
};

/* ---- geometry ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void measure(fc_work *w)
{
    const fc_item *item = w->item;
    const fc_grid *g = item->in.scales == 1 ? &item->out : &item->in;
    const bool flat = g->scales == 1;
    w->elements = fc_elements(&item->tensor);
    w->rows = flat ? 1 : g->batches * g->rows;
    w->columns = flat ? w->elements : g->columns;
}

static int64_t rows_of_piece(const fc_work *w)
{
    const int64_t most = w->item->role == FC_NUMBERS ? NUMBERS : PIECE;
    const int64_t block = w->item->in.scales > 1 ? w->item->in.block_rows : w->item->out.block_rows;
    const int64_t rows = most / w->columns > 0 ? most / w->columns : 1;
    if (w->item->role == FC_NUMBERS || block <= rows || block > LONGEST / w->columns) return rows;
    return block;
}

/* The piece that begins at this element. */
static fc_piece piece_at(const fc_work *w, int64_t first)
{
    const int64_t most = w->item->role == FC_NUMBERS ? NUMBERS : PIECE;
    fc_piece p = { first / w->columns, 1, first % w->columns, w->columns, first };
    if (w->columns > most) p.columns = least(most, w->columns - p.column);
    else p.rows = least(rows_of_piece(w), w->rows - p.row);
    return p;
}

bool fc_next_tile(const fc_work *w, const fc_piece *p, fc_tile *t)
{
    const fc_grid *in = &w->item->in, *out = &w->item->out;
    if (t->rows == 0) *t = (fc_tile){ .row = p->row, .column = p->column };
    else t->column += t->columns;
    if (t->column == p->column + p->columns) {
        t->row += t->rows;
        t->column = p->column;
    }
    if (t->row == p->row + p->rows) return false;
    t->rows = least(least(fc_grid_rows_left(in, t->row), fc_grid_rows_left(out, t->row)), p->row + p->rows - t->row);
    t->columns = least(least(fc_grid_columns_left(in, t->column), fc_grid_columns_left(out, t->column)),
                       p->column + p->columns - t->column);
    t->first = (t->row - p->row) * p->columns + t->column - p->column;
    t->in = fc_grid_group(in, t->row, t->column);
    t->out = fc_grid_group(out, t->row, t->column);
    return true;
}

/* ---- the stream ---- */

bool fc_stream_open(fc_stream *s, fc_sink *sink, void *user)
{
    memset(s, 0, sizeof *s);
    s->sink = sink;
    s->user = user;
    s->room = ROOM;
    s->buffer[0] = malloc(ROOM);
    s->buffer[1] = malloc(ROOM);
    return s->buffer[0] && s->buffer[1];
}

bool fc_stream_flush(fc_stream *s, char *why)
{
    const size_t n = s->waiting;
    s->waiting = 0;
    return n == 0 || !s->sink || s->sink(s->user, s->buffer[!s->turn], n, why);
}

void fc_stream_close(fc_stream *s)
{
    free(s->buffer[0]);
    free(s->buffer[1]);
}

/* Some pieces side by side, and what waits is written meanwhile. */
static bool run_chunk(const fc_work *w, const fc_piece *piece, int pieces, fc_stream *s, char *why)
{
    fc_tally tally[ABREAST];
    const int64_t first = piece[0].first, last = piece[pieces - 1].first;
    const int64_t n = last - first + piece[pieces - 1].rows * piece[pieces - 1].columns;
    unsigned char *const buffer = s->buffer[s->turn];
    bool ok = true;
    memset(tally, 0, (size_t)pieces * sizeof *tally);
#if defined(_OPENMP)
#pragma omp parallel if (pieces > 1 || n + (int64_t)s->waiting > SMALL)
#endif
    {
#if defined(_OPENMP)
#pragma omp single nowait
#endif
        ok = fc_stream_flush(s, why);
#if defined(_OPENMP)
#pragma omp for schedule(dynamic)
#endif
        for (int i = 0; i < pieces; i++) {
            unsigned char *out = buffer ? buffer + (piece[i].first - first) : NULL;
            w->run(w, &piece[i], out, &tally[i]);
        }
    }
    for (int i = 0; i < pieces; i++) fc_tally_add(&w->item->tally, &tally[i]);
    s->waiting = (size_t)n;
    s->turn = !s->turn;
    return ok;
}

bool fc_run_pieces(fc_catalogue *c, fc_work *w, fc_stream *stream, char *why)
{
    fc_piece piece[ABREAST];
    const int64_t item_bytes = (int64_t)st_type_of(w->item->tensor.type)->bits / 8;
    w->catalogue = c;
    w->bytes = fc_bytes(c, w->item, why);
    if (!w->bytes) return false;
    measure(w);
    for (int64_t at = 0, from = 0; at < w->elements; from = at) {
        int pieces = 0;
        for (; at < w->elements && pieces < ABREAST; pieces++) {
            piece[pieces] = piece_at(w, at);
            const int64_t n = piece[pieces].rows * piece[pieces].columns;
            if (at + n - from > ROOM) break;
            at += n;
        }
        if (!run_chunk(w, piece, pieces, stream, why)) return false;
        fc_done(c, w->item, (uint64_t)(from * item_bytes), (uint64_t)((at - from) * item_bytes));
        fc_progress(c, (uint64_t)((at - from) * item_bytes));
    }
    return true;
}

/* ---- codes to codes ---- */

static float scale_at(const float *scale, int64_t group) { return scale ? scale[group] : 1; }

static void convert_codes(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const fc_item *item = w->item;
    const fc_options *o = w->catalogue->options;
    const fc_judge judge = { fc_values(fc_format_of(item->side)), fc_values(fc_format_of(o->to)),
                             fc_values(fc_format_of(item->side == FC_OCP ? FC_NEURON : FC_OCP)),
                             w->table ? fc_factor_of(o->mode, o->to) : (fc_factor){ 0, 0 } };
    const unsigned char *in = w->bytes + p->first;
    fc_table own;
    uint64_t count[256];
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        const float in_scale = scale_at(item->in_scale, t.in), out_scale = item->out_scale[t.out];
        if (!w->table) fc_table_of_scales(item->side, o->to, in_scale, out_scale, &own);
        fc_count(in + t.first, p->columns, t.rows, t.columns, count);
        fc_tally_codes(tally, &judge, count, w->table ? w->table : &own, (double)in_scale, (double)out_scale);
        for (int64_t r = 0; r < t.rows && !w->table; r++)
            fc_convert_codes(&own, out + t.first + r * p->columns, in + t.first + r * p->columns, (size_t)t.columns);
    }
    if (w->table) fc_convert_codes(w->table, out, in, (size_t)(p->rows * p->columns));
}

/* ---- numbers to codes ---- */

/* A piece of numbers as binary32, in memory of its own. */
static float *numbers(const fc_work *w, const fc_piece *p, size_t extra)
{
    const size_t n = (size_t)(p->rows * p->columns), bytes = (size_t)w->item->tensor.bits / 8;
    float *x = malloc((n + extra + 1) * sizeof *x + n * bytes);
    if (!x) exit(app_complain(APP_USAGE, "%s: there is not enough memory for a piece of it", w->item->tensor.name));
    unsigned char *aligned = (unsigned char *)(x + n + extra);
    memcpy(aligned, w->bytes + p->first * (int64_t)bytes, n * bytes); /* a file need not align it */
    trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(TRN_F32, x, (int64_t)n),
                                     .src = trn_tensor_1d(w->item->tensor.format, aligned, (int64_t)n) });
    return x;
}

static void quantise(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const trn_format format = fc_format_of(w->catalogue->options->to);
    const int64_t n = p->rows * p->columns;
    float *x = numbers(w, p, (size_t)n), *y = x + n;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            const float scale = w->item->out_scale[t.out];
            for (int64_t i = at; i < at + t.columns; i++) y[i] = x[i] / scale;
        }
    trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(format, out, n), .src = trn_tensor_1d(TRN_F32, y, n),
                                     .overflow = TRN_SATURATE });
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            fc_tally_numbers(tally, x + at, out + at, fc_values(format), w->item->out_scale[t.out], t.columns);
        }
    free(x);
}

/* ---- the largest magnitude of each group ---- */

/* Several threads may meet in a group. */
static void raise_amax(float *amax, float value)
{
#if defined(_OPENMP)
#pragma omp critical(fc_amax)
#endif
    if (value > *amax) *amax = value;
}

static void amax_of_codes(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const float *value = fc_values(fc_format_of(w->item->side));
    uint64_t count[256];
    (void)out;
    (void)tally;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        float largest = 0;
        fc_count(w->bytes + p->first + t.first, p->columns, t.rows, t.columns, count);
        for (int i = 0; i < 256; i++)
            if (count[i] && isfinite(value[i]) && fabsf(value[i]) > largest) largest = fabsf(value[i]);
        raise_amax((float *)w->user + t.out, largest * scale_at(w->item->in_scale, t.in));
    }
}

/* Magnitudes of binary32 numbers are in the order of their bits. */
static float largest_number(const float *x, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        if (bits < 0x7f800000 && bits > largest) largest = bits;
    }
    float amax;
    memcpy(&amax, &largest, sizeof amax);
    return amax;
}

static void amax_of_numbers(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    float *x = numbers(w, p, 0);
    (void)out;
    (void)tally;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        float largest = 0;
        for (int64_t r = 0; r < t.rows; r++) largest = fmaxf(largest, largest_number(x + t.first + r * p->columns, t.columns));
        raise_amax((float *)w->user + t.out, largest);
    }
    free(x);
}

bool fc_find_amax(fc_catalogue *c, int item, float *amax, char *why)
{
    fc_stream nowhere = { 0 };
    fc_work work = { .item = &c->item[item], .user = amax };
    work.run = work.item->role == FC_NUMBERS ? amax_of_numbers : amax_of_codes;
    return fc_run_pieces(c, &work, &nowhere, why);
}

bool fc_convert(fc_catalogue *c, int item, fc_stream *stream, char *why)
{
    const fc_options *o = c->options;
    fc_work work = { .item = &c->item[item] };
    fc_table table;
    if (!fc_plan(c, item, why)) return false;
    memset(&work.item->tally, 0, sizeof work.item->tally);
    work.run = work.item->role == FC_NUMBERS ? quantise : convert_codes;
    if (o->mode != FC_REQUANT) {
        fc_table_of_mode(o->mode, work.item->side, o->to, &table);
        work.table = &table;
    }
    const bool ok = fc_run_pieces(c, &work, stream, why);
    fc_plan_release(c, item);
    return ok;
}

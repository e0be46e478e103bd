/* convert.c - codes to codes and numbers to codes, in pieces: while one is written, others are converted.
 * SPDX-License-Identifier: MIT
 *
 * The pieces do not depend on how many threads there are, and their tallies are added in order: nor does the report.
 */
#include "fp8conv.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

enum {
    PIECE = 1 << 19,     /* codes */
    LONGEST = 4 * PIECE, /* where whole blocks fit, a piece holds whole blocks */
    NUMBERS = 1 << 16,   /* numbers in a piece: below what trn_convert itself would give to threads */
    BAND = 32,           /* inputs that share a scale of MX, and stand together in a row before it is turned */
    SLOTS = 8,
    MOST_THREADS = 64
};

/* ---- geometry ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Numbers that stand behind codes: where an element is, its row and column say. */
static bool reads_matrices(const fc_item *item) { return item->role == FC_NUMBERS && item->kind != FC_IS_NUMBERS; }

static void measure(fc_work *w)
{
    const fc_item *item = w->item;
    const fc_grid *g = item->in.scales == 1 ? &item->out : &item->in;
    const bool flat = g->scales == 1 && !reads_matrices(item);
    const fc_grid rows = fc_grid_of_grain(&item->view, FC_PER_CHANNEL, NULL);
    if (flat || !reads_matrices(item))
        w->elements = item->tensor.elements;
    else
        w->elements = item->view.elements, g = &rows;
    w->rows = flat ? 1 : g->batches * g->rows;
    w->columns = flat ? w->elements : g->columns;
}

/* Whole rows, or parts of one. */
static void cut(fc_work *w)
{
    const bool numbers = w->item->role == FC_NUMBERS;
    const int64_t most = numbers ? NUMBERS : PIECE;
    const int64_t block = w->item->in.scales > 1 ? w->item->in.block_rows : w->item->out.block_rows;
    w->piece_columns = least(most, w->columns);
    w->piece_rows = w->columns <= most ? most / w->columns : 1;
    if (!numbers && w->columns <= most && block > w->piece_rows && block <= LONGEST / w->columns) w->piece_rows = block;
    if (w->item->transposed && w->piece_rows < BAND) w->piece_rows = BAND;
    if (w->item->form == FC_AS_MX) {
        w->piece_columns = w->columns;
        w->piece_rows = quant_parts(w->piece_rows, BAND) * BAND;
    }
    w->pieces = quant_parts(w->rows, w->piece_rows) * quant_parts(w->columns, w->piece_columns);
}

static fc_piece piece_at(const fc_work *w, int64_t number)
{
    const int64_t abreast = quant_parts(w->columns, w->piece_columns);
    const int64_t row = number / abreast * w->piece_rows, column = number % abreast * w->piece_columns;
    return (fc_piece){ row, least(w->piece_rows, w->rows - row), column, least(w->piece_columns, w->columns - column),
                       row * w->columns + column };
}

bool fc_next_tile(const fc_work *w, const fc_piece *p, fc_tile *t)
{
    const fc_grid *in = &w->item->in, *out = &w->item->out;
    if (t->rows == 0)
        *t = (fc_tile){ .row = p->row, .column = p->column };
    else
        t->column += t->columns;
    if (t->column == p->column + p->columns) {
        t->row += t->rows;
        t->column = p->column;
    }
    if (t->row == p->row + p->rows) return false;
    t->rows =
        least(least(quant_grid_rows_left(in, t->row), quant_grid_rows_left(out, t->row)), p->row + p->rows - t->row);
    t->columns = least(least(quant_grid_columns_left(in, t->column), quant_grid_columns_left(out, t->column)),
                       p->column + p->columns - t->column);
    t->first = (t->row - p->row) * p->columns + t->column - p->column;
    t->in = quant_grid_group(in, t->row, t->column);
    t->out = quant_grid_group(out, t->row, t->column);
    return true;
}

/* ---- one piece ---- */

float *fc_numbers(const fc_work *w, const fc_piece *p, size_t extra)
{
    const size_t n = (size_t)(p->rows * p->columns), bytes = (size_t)w->item->tensor.bits / 8;
    float *x = app_resize(NULL, (n + extra + 1) * sizeof *x + n * bytes, 1);
    if (reads_matrices(w->item)) return fc_decode(w, p, x), x;
    unsigned char *aligned = (unsigned char *)(x + n + extra);
    memcpy(aligned, w->bytes + p->first * (int64_t)bytes, n * bytes); /* a file need not align it */
    trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(TRN_F32, x, (int64_t)n),
                                     .src = trn_tensor_1d(w->item->tensor.format, aligned, (int64_t)n) });
    return x;
}

typedef struct slot { /* a piece on its way from conversion to the file */
    unsigned char *out;
    fc_piece piece;
    fc_tally tally;
    bool ready;
} slot;

static void convert_piece(const fc_work *w, int64_t number, slot *s)
{
    s->piece = piece_at(w, number);
    memset(&s->tally, 0, sizeof s->tally);
    w->run(w, &s->piece, s->out, &s->tally);
}

/* In order, by the thread that called. */
static bool finish_piece(fc_work *w, const slot *s, char *why)
{
    const uint64_t n = (uint64_t)(s->piece.rows * s->piece.columns), bytes = (uint64_t)w->item->tensor.bits / 8;
    const size_t size = (size_t)n * (size_t)w->out_bits / 8;
    fc_tally_add(&w->item->tally, &s->tally);
    if (w->sink && !w->sink->write(w->sink->user, s->out, size, why)) return false;
    if (reads_matrices(w->item)) return fc_progress(w->catalogue, n * bytes), true; /* its pieces are all over */
    fc_done(w->catalogue, w->item, (uint64_t)s->piece.first * bytes, n * bytes);
    fc_progress(w->catalogue, n * bytes);
    return true;
}

/* ---- all pieces: the caller writes what is ready, and converts when nothing is ---- */

typedef struct line {
    fc_work *work;
    slot slot[SLOTS]; /* piece i passes through slot i % SLOTS */
    int64_t taken, written, end;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} line;

/* With the lock held: converts the next piece, the lock let go meanwhile; false when there is none, or no free slot. */
static bool take_piece(line *l)
{
    if (l->taken == l->end || l->taken == l->written + SLOTS) return false;
    const int64_t number = l->taken++;
    slot *s = &l->slot[number % SLOTS];
    pthread_mutex_unlock(&l->lock);
    convert_piece(l->work, number, s);
    pthread_mutex_lock(&l->lock);
    s->ready = true;
    pthread_cond_broadcast(&l->moved);
    return true;
}

static void *work_along(void *user)
{
    line *l = user;
    pthread_mutex_lock(&l->lock);
    while (l->taken < l->end)
        if (!take_piece(l)) pthread_cond_wait(&l->moved, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static bool write_in_order(line *l, char *why)
{
    bool ok = true;
    pthread_mutex_lock(&l->lock);
    while (l->written < l->end) {
        slot *s = &l->slot[l->written % SLOTS];
        if (!s->ready) {
            if (!take_piece(l)) pthread_cond_wait(&l->moved, &l->lock);
            continue;
        }
        pthread_mutex_unlock(&l->lock);
        if (ok) ok = finish_piece(l->work, s, why);
        pthread_mutex_lock(&l->lock);
        s->ready = false;
        l->written++;
        if (!ok) l->end = l->taken; /* those under way are waited for */
        pthread_cond_broadcast(&l->moved);
    }
    pthread_mutex_unlock(&l->lock);
    return ok;
}

static bool run_line(line *l, int others, char *why)
{
    pthread_t thread[MOST_THREADS];
    int started = 0;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->moved, NULL);
    while (started < others && pthread_create(&thread[started], NULL, work_along, l) == 0) started++;
    const bool ok = write_in_order(l, why);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    pthread_cond_destroy(&l->moved);
    pthread_mutex_destroy(&l->lock);
    return ok;
}

bool fc_run_pieces(fc_catalogue *c, fc_work *w, char *why)
{
    w->catalogue = c;
    w->bytes = fc_bytes(c, w->item, why);
    if (!w->bytes) return false;
    measure(w);
    if (w->elements == 0) return true;
    cut(w);
    line l = { .work = w, .end = w->pieces };
    const int slots = w->pieces < SLOTS ? (int)w->pieces : SLOTS;
    if (!w->out_bits) w->out_bits = 8;
    const size_t size = (size_t)(w->piece_rows * w->piece_columns) * (size_t)w->out_bits / 8;
    unsigned char *buffers = app_resize(NULL, size, (size_t)slots);
    for (int i = 0; i < slots; i++) l.slot[i].out = buffers + size * (size_t)i;
    const int others = c->options->threads - 1;
    const bool ok = run_line(&l, w->pieces - 1 < others ? (int)w->pieces - 1 : others, why);
    free(buffers);
    return ok;
}

/* ---- codes to codes ---- */

static void convert_codes(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const fc_item *item = w->item;
    const fc_options *o = w->catalogue->options;
    const fc_judge judge = { fc_values(fc_format_of(item->side)), fc_values(fc_format_of(o->to)),
                             fc_values(fc_format_of(item->side == FC_OCP ? FC_NEURON : FC_OCP)),
                             w->table ? fc_factor_of(o->mode, o->to) : (fc_factor){ 0, 0 } };
    const unsigned char *in = w->bytes + p->first;
    fc_table own;
    fc_ledger ledger = { .tally = tally, .judge = &judge };
    uint64_t count[FC_MAGNITUDES];
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        const float in_scale = fc_scale_at(item->values.scale, t.in), out_scale = item->out_scale[t.out];
        if (!w->table) {
            fc_ledger_flush(&ledger);
            fc_table_of_scales(item->side, o->to, in_scale, out_scale, &own);
            ledger.table = NULL;
        }
        fc_count(in + t.first, p->columns, t.rows, t.columns, count);
        fc_ledger_add(&ledger, count, w->table ? w->table : &own, (double)in_scale, (double)out_scale);
        for (int64_t r = 0; r < t.rows && !w->table; r++)
            fc_convert_codes(&own, out + t.first + r * p->columns, in + t.first + r * p->columns, (size_t)t.columns);
    }
    fc_ledger_flush(&ledger);
    if (w->table) fc_convert_codes(w->table, out, in, (size_t)(p->rows * p->columns));
}

/* ---- numbers to codes ---- */

/* Codes of four bits are codes of eight. Beyond binary32 the product is what it was, too. */
static void widen(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const trn_format format = fc_format_of(w->catalogue->options->to);
    const float *value = fc_values(format);
    const int64_t n = p->rows * p->columns;
    float *x = fc_numbers(w, p, (size_t)n), *y = x + n;
    fc_decode_codes(w, p, y);
    trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(format, out, n), .src = trn_tensor_1d(TRN_F32, y, n) });
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            const double scale = (double)w->item->out_scale[t.out];
            for (int64_t i = at; i < at + t.columns; i++) {
                const double product = (double)value[out[i]] * scale;
                y[i] = fabs(product) > (double)FLT_MAX ? x[i] : (float)product;
            }
        }
    fc_tally_pairs(tally, x, y, n);
    free(x);
}

typedef struct row_part {       /* of a piece that was quantised with one scale */
    const quant_values *source; /* NULL: x is exact */
    bool transposed;
    int64_t row, column, n;
    const float *x, *quotient;
} row_part;

/* A quotient that was rounded to the middle between two codes, or near it where the number was cut before, no longer
 * tells on which side of it it was; a power of two does not round. */
static void settle_middles(fc_side to, float scale, const row_part *p, unsigned char *code)
{
    enum { NEAR = 8 }; /* units in the last place: three roundings make less */
    int exponent;
    if (frexpf(scale, &exponent) == 0.5f) return;
    for (int64_t i = 0; i < p->n; i++) {
        const bool middle = ((io_bits(p->quotient[i]) + NEAR) & 0x7ffff) < 2 * NEAR; /* or a code, which is found */
        if (!middle || p->quotient[i] == 0 || !isfinite(p->quotient[i])) continue;
        const double x = p->source ? fc_exact_at(p->source, p->transposed, p->row, p->column + i) : (double)p->x[i];
        code[i] = (unsigned char)((code[i] & 0x80) | fc_nearest(to, fabs(x), (double)scale));
    }
}

static void quantise(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const trn_format format = fc_format_of(w->catalogue->options->to);
    const int64_t n = p->rows * p->columns;
    if (fc_keeps_codes(w->item, w->catalogue->options)) {
        widen(w, p, out, tally);
        return;
    }
    float *x = fc_numbers(w, p, (size_t)n), *y = x + n;
    quant_values source;
    const bool packed = reads_matrices(w->item);
    if (packed) source = fc_source_of(w);
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            const float scale = w->item->out_scale[t.out];
            for (int64_t i = at; i < at + t.columns; i++) y[i] = scale > 0 ? x[i] / scale : 0;
        }
    trn_convert(&(trn_convert_args){
        .dst = trn_tensor_1d(format, out, n), .src = trn_tensor_1d(TRN_F32, y, n), .overflow = TRN_SATURATE });
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            const float scale = w->item->out_scale[t.out];
            const row_part part = {
                packed ? &source : NULL, w->item->transposed, t.row + r, t.column, t.columns, x + at, y + at
            };
            settle_middles(w->catalogue->options->to, scale, &part, out + at);
            fc_tally_numbers(tally, x + at, out + at, fc_values(format), scale, t.columns);
        }
    free(x);
}

bool fc_convert(fc_catalogue *c, int item, const fc_sink *sink, char *why)
{
    const fc_options *o = c->options;
    static fc_run *const run[FC_FORMS] = { quantise, quantise, fc_write_bf16, fc_write_mx };
    fc_work work = { .item = &c->item[item], .sink = sink };
    fc_table table;
    if (!fc_plan(c, item, why)) return false;
    memset(&work.item->tally, 0, sizeof work.item->tally);
    work.run = work.item->role == FC_NUMBERS ? run[work.item->form] : convert_codes;
    work.out_bits = work.item->form == FC_AS_BF16 ? 16 : work.item->form == FC_AS_MX && work.item->mx_fp4 ? 4 : 8;
    if (o->mode != FC_REQUANT) {
        fc_table_of_mode(o->mode, work.item->side, o->to, &table);
        work.table = &table;
    }
    const bool ok = fc_run_pieces(c, &work, why);
    fc_plan_release(c, item);
    return ok;
}

/* pieces.c - a tensor in pieces: while one is written, others are converted.
 * SPDX-License-Identifier: MIT
 *
 * The pieces do not depend on how many threads there are, and their tallies are added in order: nor does the report.
 */
#include "fp8conv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

enum {
    PIECE = 1 << 19,      /* codes */
    LONGEST = 4 * PIECE,  /* where whole blocks fit, a piece holds whole blocks */
    NUMBERS = 1 << 16,    /* numbers in a piece: below what trn_convert itself would share out */
    SLOTS = 8,
    MOST_THREADS = 64
};

/* ---- geometry ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void measure(fc_work *w)
{
    const fc_item *item = w->item;
    const fc_grid *g = item->in.scales == 1 ? &item->out : &item->in;
    const bool flat = g->scales == 1;
    w->elements = item->tensor.elements;
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
    w->pieces = fc_parts(w->rows, w->piece_rows) * fc_parts(w->columns, w->piece_columns);
}

static fc_piece piece_at(const fc_work *w, int64_t number)
{
    const int64_t abreast = fc_parts(w->columns, w->piece_columns);
    const int64_t row = number / abreast * w->piece_rows, column = number % abreast * w->piece_columns;
    return (fc_piece){ row, least(w->piece_rows, w->rows - row), column, least(w->piece_columns, w->columns - column),
                       row * w->columns + column };
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

/* ---- one piece ---- */

void fc_no_memory(const fc_work *w)
{
    exit(app_complain(APP_USAGE, "%s: there is not enough memory for a piece of it", w->item->tensor.name));
}

float *fc_numbers(const fc_work *w, const fc_piece *p, size_t extra)
{
    const size_t n = (size_t)(p->rows * p->columns), bytes = (size_t)w->item->tensor.bits / 8;
    float *x = malloc((n + extra + 1) * sizeof *x + n * bytes);
    if (!x) fc_no_memory(w);
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
    fc_tally_add(&w->item->tally, &s->tally);
    if (w->sink && !w->sink->write(w->sink->user, s->out, (size_t)n, why)) return false;
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

/* With the lock held: converts the next piece, the lock let go meanwhile; false when there is none, or no room. */
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
    const size_t room = (size_t)(w->piece_rows * w->piece_columns);
    unsigned char *buffers = malloc(room * (size_t)slots);
    if (!buffers) fc_no_memory(w);
    for (int i = 0; i < slots; i++) l.slot[i].out = buffers + room * (size_t)i;
    const int others = c->options->threads - 1;
    const bool ok = run_line(&l, w->pieces - 1 < others ? (int)w->pieces - 1 : others, why);
    free(buffers);
    return ok;
}

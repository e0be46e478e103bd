/* sharded/sharded_fold.h - products whose K is cut: the partial products of a group's members, summed where they arise.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: what local products, each rounded to the wire, and then trn_collective_run would give, without ever storing a
 *     partial product: lines whose elements are summed alike are taken together, and each member's part is multiplied
 *     when its turn in the sum comes. With stochastic rounding, whose words depend on the member and the place, all
 *     members' parts of a small tile are made first.
 * DOES NOT: check anything, or know who holds what (sharded/sharded_matmul.h).
 *
 * KNOWN FROM: network/collective_values.h (the sums); tests/unit/test_sharded_matmul.c, where whole partial products go
 *     through trn_collective_run.
 *
 * Lines are what a group's buffer runs along: rows of the product, or its columns where the columns are scattered; then
 * the operands change places, (a b)' = b' a', which changes no bit.
 */
#ifndef TRNI_SHARDED_SHARDED_FOLD_H
#define TRNI_SHARDED_SHARDED_FOLD_H

#include "../base/threads.h"
#include "sharded_pack.h"
#include "sharded_sums.h"

/* Lines [line, line + lines), places [from, from + n) of each. */
typedef struct trni_partial_region {
    int64_t line, lines, from, n;
    int64_t granule;
    uint64_t stream;
    int band; /* regions of one band have the same places */
} trni_partial_region;

/* Consecutive lines of a region with elements of one class; they are between the places from and end. */
typedef struct trni_partial_entry {
    int64_t band, key, line, lines, from, end;
    int region;
} trni_partial_entry;

/* Entries that are multiplied together. */
typedef struct trni_partial_task {
    int64_t first, count, lines;
} trni_partial_task;

typedef struct trni_partial_job {
    const trni_cut_product *p;
    const int *part; /* [members] of K */
    const trni_sum_arith *f;
    const trni_schedule *s;
    trni_partial_region *region;
    int regions, bands;
    bool agree;                      /* all chunks of a channel are summed alike */
    trn_tensor out;                  /* in the wire's format */
    int64_t line_step, place_step;   /* elements of out */
    int64_t most_lines, block, tile; /* lines of a task, places that are packed together, multiplied together */
    trni_partial_entry *entry;
    int64_t entries, entry_room;
    trni_partial_task *task;
    int64_t tasks, task_room;
    trni_packed_columns_of shared;
} trni_partial_job;

/* What a thread works with. */
typedef struct trni_partial_bench {
    trni_packed packed;
    trni_sum_list list;
    trni_arith arith; /* stochastic: with the stream of a region */
    trni_fold fold;
    void *fold_memory;
    float *buffer;             /* [buffers][room] */
    int64_t buffers, capacity; /* most_lines * tile */
    int64_t at;                /* in a member's buffer, where a run is */
    char *lines, *scales;      /* gathered */
} trni_partial_bench;

/* ---- which lines go together ---- */

TRNI_FN bool trni_partial_grow(void **array, int64_t used, int64_t *capacity, size_t size)
{
    if (used < *capacity) return true;
    const int64_t more = *capacity ? 2 * *capacity : 256;
    void *grown = realloc(*array, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

enum { TRNI_PARTIAL_LOOK_BACK = 64, TRNI_PARTIAL_MOST = 96 /* lines of a task */ };

/* A run of a line; lines that follow each other join, and so do runs of one line. */
TRNI_FN trn_status trni_partial_note(trni_partial_job *j, int region, int64_t key, int64_t line, int64_t from,
                                     int64_t end)
{
    for (int64_t i = j->entries - 1; i >= 0 && i >= j->entries - TRNI_PARTIAL_LOOK_BACK; i--) {
        trni_partial_entry *e = &j->entry[i];
        if (e->key != key || e->region != region) continue;
        if (e->line == line && e->lines == 1) {
            e->end = end;
            return TRN_OK;
        }
        if (e->line + e->lines != line || e->from != from || e->end != end || e->lines == j->most_lines) continue;
        e->lines++;
        return TRN_OK;
    }
    if (!trni_partial_grow((void **)&j->entry, j->entries, &j->entry_room, sizeof *j->entry)) return TRN_ENOSPC;
    const trni_partial_entry e = { j->region[region].band, key, line, 1, from, end, region };
    j->entry[j->entries++] = e;
    return TRN_OK;
}

/* The class of the run that begins at a place of a line, and its length, up to n. */
TRNI_FN int64_t trni_partial_class(const trni_partial_job *j, const trni_partial_region *g, int64_t line, int64_t place,
                                   int64_t n, int64_t *key)
{
    int owner, channel, part;
    *key = 0;
    if (j->agree && j->s->channels == 1) return n;
    const int64_t first = (line - g->line) * g->n + place - g->from;
    n = trni_sum_locate(j->s, g->lines * g->n, g->granule, first, n, &owner, &channel, &part);
    *key = trni_sum_key(j->s, j->agree, owner, channel, part);
    return n;
}

TRNI_FN trn_status trni_partial_note_line(trni_partial_job *j, int region, int64_t line)
{
    const trni_partial_region *g = &j->region[region];
    const int64_t end = g->from + g->n;
    if (j->f && j->f->arith.stochastic) return trni_partial_note(j, region, region, line, g->from, end);
    for (int64_t at = g->from, n; at < end; at += n) {
        int64_t key;
        n = trni_partial_class(j, g, line, at, end - at, &key);
        const trn_status status = trni_partial_note(j, region, key, line, at, at + n);
        if (status) return status;
    }
    return TRN_OK;
}

TRNI_FN int trni_partial_order(const void *a, const void *b)
{
    const trni_partial_entry *x = (const trni_partial_entry *)a, *y = (const trni_partial_entry *)b;
    if (x->band != y->band) return x->band < y->band ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

TRNI_FN void trni_partial_bands(trni_partial_job *j)
{
    j->bands = 0;
    for (int i = 0; i < j->regions; i++) {
        int k = 0;
        while (k < i && (j->region[k].from != j->region[i].from || j->region[k].n != j->region[i].n)) k++;
        j->region[i].band = k < i ? j->region[k].band : j->bands++;
    }
}

/* Entries in order, and tasks of entries of one class. What is allocated is the caller's to free. */
TRNI_FN trn_status trni_partial_classify(trni_partial_job *j)
{
    trni_partial_bands(j);
    for (int i = 0; i < j->regions; i++)
        for (int64_t line = j->region[i].line; line < j->region[i].line + j->region[i].lines; line++) {
            const trn_status status = trni_partial_note_line(j, i, line);
            if (status) return status;
        }
    if (j->entries) qsort(j->entry, (size_t)j->entries, sizeof *j->entry, trni_partial_order);
    for (int64_t i = 0; i < j->entries; i++) {
        const trni_partial_entry *e = &j->entry[i], *of = j->tasks ? &j->entry[j->task[j->tasks - 1].first] : NULL;
        const bool joins =
            of && of->band == e->band && of->key == e->key && j->task[j->tasks - 1].lines + e->lines <= j->most_lines;
        if (!joins) {
            if (!trni_partial_grow((void **)&j->task, j->tasks, &j->task_room, sizeof *j->task)) return TRN_ENOSPC;
            memset(&j->task[j->tasks], 0, sizeof *j->task);
            j->task[j->tasks++].first = i;
        }
        j->task[j->tasks - 1].count++;
        j->task[j->tasks - 1].lines += e->lines;
    }
    return TRN_OK;
}

/* ---- one task ---- */

TRNI_FN void trni_partial_copy(char *to, trn_tensor from)
{
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.src = from;
    c.dst = trn_tensor_nd(from.format, to, from.rank, from.shape);
    c.dst.cfp8 = from.cfp8;
    (void)trn_convert(&c); /* a copy within one format cannot fail */
}

/* The lines of a task as one view: where they lie when they follow each other, else a copy. */
TRNI_FN trn_tensor trni_partial_gather(const trni_partial_job *j, const trni_partial_task *t, trn_tensor whole,
                                       char *buffer)
{
    const trni_partial_entry *e = &j->entry[t->first];
    if (!whole.rank) return whole;
    if (t->count == 1) return trn_tensor_slice(whole, 0, e->line, e->lines);
    const int64_t bytes = whole.shape[1] * (int64_t)trn_format_bytes(whole.format);
    char *to = buffer;
    for (int64_t i = 0; i < t->count; i++, e++) {
        trni_partial_copy(to, trn_tensor_slice(whole, 0, e->line, e->lines));
        to += e->lines * bytes;
    }
    trn_tensor all = trn_tensor_2d(whole.format, buffer, t->lines, whole.shape[1]);
    all.cfp8 = whole.cfp8;
    return all;
}

TRNI_FN void trni_partial_store(const trni_partial_job *j, int64_t line, int64_t place, const float *x, int64_t n)
{
    const int64_t bytes = (int64_t)trn_format_bytes(j->out.format);
    char *to = (char *)j->out.data + (line * j->line_step + place * j->place_step) * bytes;
    uint32_t code[TRNI_FOLD_TILE];
    if (j->place_step == 1) {
        trni_encoder_run(&j->f->arith.exact.encoder, to, x, NULL, (size_t)n);
        return;
    }
    trni_encoder_run(&j->f->arith.exact.encoder, code, x, NULL, (size_t)n);
    trni_move(to, j->place_step * bytes, (const char *)code, bytes, (size_t)bytes, (size_t)n);
}

/* A block of lines, [lines][n], all of it, into columns of out: a row of `lines` codes at a time. */
TRNI_FN void trni_partial_store_turned(const trni_partial_job *j, const trni_partial_entry *e, int64_t place,
                                       const float *x, int64_t n)
{
    enum { SOME = 16 };
    const int64_t bytes = (int64_t)trn_format_bytes(j->out.format), step = SOME * bytes;
    unsigned char code[(int)SOME * TRNI_PARTIAL_MOST * 4];
    for (int64_t at = 0; at < n; at += SOME) {
        const int64_t count = trni_min64(SOME, n - at);
        for (int64_t l = 0; l < e->lines; l++)
            trni_encoder_run(&j->f->arith.exact.encoder, code + l * step, x + l * n + at, NULL, (size_t)count);
        for (int64_t i = 0; i < count; i++)
            trni_move((char *)j->out.data + (e->line + (place + at + i) * j->place_step) * bytes, bytes,
                      (const char *)code + i * bytes, step, (size_t)bytes, (size_t)e->lines);
    }
}

/* Are all elements of a line, in this tile, of the entry's class? */
TRNI_FN bool trni_partial_is_full(const trni_partial_job *j, const trni_partial_entry *e, int64_t line, int64_t place,
                                  int64_t n)
{
    int64_t key;
    return trni_partial_class(j, &j->region[e->region], line, place, n, &key) == n && key == e->key;
}

/* The runs of the task's class, of a tile [lines][n] that begins at a place. */
TRNI_FN void trni_partial_deliver(const trni_partial_job *j, const trni_partial_task *t, int64_t place, int64_t n,
                                  const float *x)
{
    for (int64_t i = 0; i < t->count; i++) {
        const trni_partial_entry *e = &j->entry[t->first + i];
        bool full = j->line_step == 1;
        for (int64_t l = 0; l < e->lines && full; l++) full = trni_partial_is_full(j, e, e->line + l, place, n);
        if (full) trni_partial_store_turned(j, e, place, x, n);
        for (int64_t l = 0; l < e->lines && !full; l++)
            for (int64_t at = 0, take; at < n; at += take) {
                int64_t key;
                take = trni_partial_class(j, &j->region[e->region], e->line + l, place + at, n - at, &key);
                if (key == e->key) trni_partial_store(j, e->line + l, place + at, x + l * n + at, take);
            }
        x += e->lines * n;
    }
}

TRNI_FN trn_status trni_partial_buffers(const trni_partial_job *j, trni_partial_bench *my, int64_t buffers)
{
    if (buffers <= my->buffers) return TRN_OK;
    free(my->buffer);
    my->buffer = (float *)malloc(sizeof(float) * (size_t)(buffers * j->most_lines * j->tile));
    my->buffers = my->buffer ? buffers : 0;
    return my->buffer ? TRN_OK : TRN_ENOSPC;
}

/* The list of sums over one tile: lines of the task, places [column, column + n) of the packed block. */
TRNI_FN trn_status trni_partial_tile_sums(const trni_partial_job *j, trni_partial_bench *my, int64_t column, int64_t n)
{
    const int64_t size = my->packed.lines * n, capacity = my->capacity;
    float *const next = my->buffer + my->list.buffers * capacity;
    trn_status status = TRN_OK;
    for (int i = 0; i < my->list.ops && !status; i++) {
        const trni_sum_op *op = &my->list.op[i];
        float *const to = my->buffer + op->buffer * capacity;
        if (op->what <= TRNI_SUM_TAKE_ADD)
            status =
                trni_packed_multiply(&my->packed, j->part[op->from], column, n, op->what == TRNI_SUM_TAKE ? to : next);
        if (op->what == TRNI_SUM_TAKE_ADD)
            trni_sum_add(j->f, to, next, size);
        else if (op->what == TRNI_SUM_ADD)
            trni_alu_run(j->f->arith.add, to, to, my->buffer + op->from * capacity, (size_t)size);
        else
            trni_sum_round(j->f, to, size);
    }
    return status;
}

/* ---- stochastic rounding: the words depend on the member and the place ---- */

TRNI_FN void trni_partial_from_buffer(void *user, int rank, int64_t first, int64_t n, float *value)
{
    const trni_partial_bench *my = (const trni_partial_bench *)user;
    memcpy(value, my->buffer + rank * my->capacity + my->at, sizeof(float) * (size_t)n);
    trni_round_in_place(&my->arith, &my->arith.wire, value, n, my->arith.stream + (uint64_t)rank, (uint64_t)first);
}

/* One line of a tile. */
TRNI_FN void trni_partial_drawn_line(const trni_partial_job *j, trni_partial_bench *my, const trni_partial_region *g,
                                     int64_t line, int64_t place, int64_t n)
{
    my->arith.stream = g->stream;
    for (int64_t done = 0, take; done < n; done += take, my->at += take) {
        const int64_t first = (line - g->line) * g->n + place + done - g->from;
        int owner, channel, part;
        take = trni_sum_locate(j->s, g->lines * g->n, g->granule, first, n - done, &owner, &channel, &part);
        trni_fold_aim(&my->fold, channel, owner);
        trni_partial_store(j, line, place + done, trni_fold_tile(&my->fold, part, first, take), take);
    }
}

TRNI_FN trn_status trni_partial_drawn(const trni_partial_job *j, trni_partial_bench *my, const trni_partial_task *t,
                                      int64_t place, int64_t n)
{
    trn_status status = trni_partial_buffers(j, my, j->s->ranks);
    for (int r = 0; r < j->s->ranks && !status; r++)
        status =
            trni_packed_multiply(&my->packed, j->part[r], place - my->packed.column, n, my->buffer + r * my->capacity);
    if (status) return status;
    my->at = 0;
    for (int64_t i = 0; i < t->count; i++) {
        const trni_partial_entry *e = &j->entry[t->first + i];
        for (int64_t line = e->line; line < e->line + e->lines; line++)
            trni_partial_drawn_line(j, my, &j->region[e->region], line, place, n);
    }
    return TRN_OK;
}

/* ---- all tasks ---- */

TRNI_FN trn_status trni_partial_tile_run(const trni_partial_job *j, trni_partial_bench *my, const trni_partial_task *t,
                                         int64_t place, int64_t n)
{
    if (j->f->arith.stochastic) return trni_partial_drawn(j, my, t, place, n);
    trn_status status = trni_partial_buffers(j, my, my->list.buffers + 1);
    if (!status) status = trni_partial_tile_sums(j, my, place - my->packed.column, n);
    if (!status) trni_partial_deliver(j, t, place, n, my->buffer);
    return status;
}

/* The task's lines, over the block of places that is packed. */
TRNI_FN trn_status trni_partial_task_run(const trni_partial_job *j, trni_partial_bench *my, const trni_partial_task *t)
{
    const trni_partial_entry *e = &j->entry[t->first];
    const int64_t low = my->packed.column, high = low + my->packed.columns;
    int64_t from = high, end = low;
    for (int64_t i = 0; i < t->count; i++) {
        from = trni_min64(from, e[i].from);
        end = e[i].end > end ? e[i].end : end;
    }
    if (end > high) end = high;
    if (from >= end) return TRN_OK;
    from = from < low ? low : from - (from - low) % TRNI_WEAVE; /* whole panels */
    if (!j->f->arith.stochastic) {
        const int channel = (int)(j->agree ? e->key : e->key / 2 % j->s->channels);
        const int owner = (int)(j->agree ? 0 : e->key / 2 / j->s->channels),
                  part = j->agree ? 1 : (int)(e->key % 2) + 1;
        trni_sum_compile(&my->list, j->s, channel, owner, part);
    }
    trni_packed_lines(&my->packed, trni_partial_gather(j, t, j->p->x, my->lines),
                      trni_partial_gather(j, t, j->p->x_scale, my->scales));
    trn_status status = TRN_OK;
    for (int64_t place = from; place < end && !status; place += j->tile)
        status = trni_partial_tile_run(j, my, t, place, trni_min64(j->tile, end - place));
    return status;
}

TRNI_FN trn_status trni_partial_bench_init(const trni_partial_job *j, trni_partial_bench *my)
{
    const trn_tensor *x = &j->p->x, *scale = &j->p->x_scale;
    memset(my, 0, sizeof *my);
    my->arith = j->f->arith;
    my->capacity = j->most_lines * j->tile;
    trn_status status = trni_packed_init(&my->packed, &j->shared, j->most_lines);
    if (!status) status = trni_sum_list_init(&my->list, j->s->ranks);
    my->lines = (char *)malloc((size_t)(j->most_lines * x->shape[1]) * trn_format_bytes(x->format) + 1);
    my->scales = (char *)malloc(scale->rank ? (size_t)(j->most_lines * scale->shape[1]) + 1 : 1);
    my->fold_memory = malloc(trni_fold_bytes(j->s->ranks));
    if (status || !my->lines || !my->scales || !my->fold_memory) return TRN_ENOSPC;
    trni_fold_init(&my->fold, j->s, &my->arith, my->fold_memory);
    my->fold.load = trni_partial_from_buffer;
    my->fold.user = my;
    return TRN_OK;
}

TRNI_FN void trni_partial_bench_free(trni_partial_bench *my)
{
    trni_packed_free(&my->packed);
    trni_sum_list_free(&my->list);
    free(my->lines);
    free(my->scales);
    free(my->fold_memory);
    free(my->buffer);
}

/* One block of places of a band, by all threads of a team: they pack it, then take the band's tasks. */
TRNI_FN trn_status trni_partial_block(const trni_partial_job *j, trni_partial_bench *my, int band, int64_t place,
                                      int64_t n, trn_status status)
{
    trni_packed_aim(&my->packed, place, n);
    TRNI_FOR(schedule(dynamic, 1))
    for (int i = 0; i < j->p->parts; i++)
        if (!status) trni_packed_columns(&my->packed, i);
    TRNI_FOR(schedule(dynamic, 1))
    for (int64_t i = 0; i < j->tasks; i++)
        if (!status && j->entry[j->task[i].first].band == band) status = trni_partial_task_run(j, my, &j->task[i]);
    return status;
}

TRNI_FN trn_status trni_partial_team(const trni_partial_job *j)
{
    int found = TRN_OK;
    TRNI_PARALLEL(num_threads(trni_threads()) reduction(max : found) if (j->tasks > 1))
    {
        TRNI_FLOATS;
        trni_partial_bench my;
        trn_status mine = trni_partial_bench_init(j, &my);
        for (int r = 0, band = 0; r < j->regions; r++) {
            const trni_partial_region *g = &j->region[r]; /* the first of its band says where the band is */
            if (g->band != band) continue;
            for (int64_t at = 0; at < g->n; at += j->block)
                mine = trni_partial_block(j, &my, band, g->from + at, trni_min64(j->block, g->n - at), mine);
            band++;
        }
        trni_partial_bench_free(&my);
        found = (int)mine;
    }
    return (trn_status)found;
}

enum {
    TRNI_PARTIAL_LINES = TRNI_PARTIAL_MOST, /* with TILE places: a few such tiles fit a second-level cache */
    TRNI_PARTIAL_PLACES = 256,
    TRNI_PARTIAL_BLOCK = 1024,     /* places packed together, */
    TRNI_PARTIAL_PACKED = 4 << 20, /* but no more floats than a third-level cache holds */
    TRNI_PARTIAL_PACKED_LINES = 1 << 19
};

/* j's operands, sums, regions and out are set, and nothing else. */
TRNI_FN trn_status trni_partial_run(trni_partial_job *j)
{
    const int64_t deep = j->p->x.shape[1] ? j->p->x.shape[1] : 1;
    j->agree = trni_sums_agree(j->s);
    j->tile = TRNI_PARTIAL_PLACES;
    j->block = trni_min64(TRNI_PARTIAL_BLOCK, TRNI_PARTIAL_PACKED / deep / TRNI_PARTIAL_PLACES * TRNI_PARTIAL_PLACES);
    if (j->block < TRNI_PARTIAL_PLACES) j->block = TRNI_PARTIAL_PLACES;
    j->most_lines = trni_min64(TRNI_PARTIAL_LINES, TRNI_PARTIAL_PACKED_LINES / deep);
    if (j->most_lines < 1) j->most_lines = 1;
    trn_status status = trni_partial_classify(j);
    if (!status) status = trni_packed_share(&j->shared, j->p, j->block);
    if (!status) status = trni_partial_team(j);
    free(j->entry);
    free(j->task);
    free(j->shared.b);
    return status;
}

#endif /* TRNI_SHARDED_SHARDED_FOLD_H */

/* trn_sharded_fold.h - products whose K is cut: the partial products of a group's members, summed where they arise.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_sharded_fold.h>
 *     int main(void) { // four members, added in one step, ascending: take 0, add 1, add 2, add 3, round
 *         trni_cc_channel one;
 *         trni_schedule s;
 *         trni_fold_op op[16];
 *         memset(&s, 0, sizeof s);
 *         s.ranks = s.block = 4;
 *         s.channels = 1;
 *         trni_add_stage(&s.channel[0], TRNI_DIRECT, 4, 1, 1);
 *         one = s.channel[0];
 *         trni_fold_list list = { op, 0, 0, &s, &one };
 *         return trni_fold_is_uniform(&s) && trni_fold_compile(&list) == 5 && list.buffers == 1 ? 0 : 1;
 *     }
 *
 * DOES: what local products, each rounded to the wire, and then trn_collective_run would give, tile by tile: partial
 *     products stay in the caches and only sums are stored. Where all elements are summed in one order (direct exchange
 *     in one or more stages), a partial product is added as soon as it is made; else those of all members are made and
 *     summed in the order of each element's chunk.
 * DOES NOT: check anything, or know who holds what (trn_sharded_matmul.h).
 *
 * CONTENTS (private to the product)
 *     trni_partial, trni_partial_tile     a tile of what one member multiplies
 *     trni_fold_op, trni_fold_compile     a uniform sum as a list
 *     trni_fold_uniform, trni_fold_chunks the two ways
 *
 * KNOWN FROM: trn_collective_values.h (the sums); tests/unit/test_sharded_matmul.c, where whole partial products go
 *     through trn_collective_run.
 */
#ifndef TRN_SHARDED_FOLD_H
#define TRN_SHARDED_FOLD_H

#include "trn_matmul.h"
#include "trn_reshard_values.h"

/* ---- what one member multiplies ---- */

typedef struct trni_partial {
    trn_tensor a, b;             /* the wholes: [m, k], [k, n] */
    trn_tensor a_scale, b_scale; /* MX: [m, k/32], [n, k/32]; rank 0 = none */
    const trn_matmul_args *options;
    int parts;       /* of K */
    const int *part; /* [members] which of them each member multiplies */
} trni_partial;

/* Rows [first[0], + count[0]) and columns [first[1], + count[1]) of the product. */
typedef struct trni_patch {
    int64_t first[2], count[2];
} trni_patch;

/* What a thread keeps between products. */
typedef struct trni_workbench {
    void *scratch;
    size_t bytes;
} trni_workbench;

TRNI_FN trn_tensor trni_rows_and_columns(trn_tensor t, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    return trn_tensor_slice(trn_tensor_slice(t, 0, row, rows), 1, column, columns);
}

/* dst, of the tile's shape, = rows of a times columns of b over part `part` of K. */
TRNI_FN trn_matmul_args trni_partial_args(const trni_partial *p, int part, const trni_patch *tile, trn_tensor dst)
{
    trn_matmul_args m = *p->options;
    int64_t k;
    const int64_t depth = trni_part_of(p->a.shape[1], p->parts, part, &k);
    m.a = trni_rows_and_columns(p->a, tile->first[0], tile->count[0], k, depth);
    m.b = trni_rows_and_columns(p->b, k, depth, tile->first[1], tile->count[1]);
    m.a_scale = m.b_scale = trni_no_tensor();
    if (p->a_scale.rank)
        m.a_scale = trni_rows_and_columns(p->a_scale, tile->first[0], tile->count[0], k / 32, depth / 32);
    if (p->b_scale.rank)
        m.b_scale = trni_rows_and_columns(p->b_scale, tile->first[1], tile->count[1], k / 32, depth / 32);
    m.dst = dst;
    m.accumulate = false;
    m.scratch = NULL;
    m.scratch_bytes = 0;
    return m;
}

/* The product as binary32, not rounded to anything; dst is F32. */
TRNI_FN trn_status trni_partial_tile(const trni_partial *p, int part, const trni_patch *tile, trn_tensor dst,
                                     trni_workbench *bench)
{
    const bool whole = p->a.format == TRN_I8; /* int8 gives int32, which becomes binary32 where it is */
    trn_tensor out = dst;
    if (whole) out.format = TRN_I32;
    trn_matmul_args m = trni_partial_args(p, part, tile, out);
    m.rounding = TRN_NEAREST_EVEN;
    const size_t bytes = trn_matmul_scratch_bytes(&m);
    if (bytes > bench->bytes) {
        free(bench->scratch);
        bench->scratch = malloc(bytes);
        bench->bytes = bench->scratch ? bytes : 0;
        if (!bench->scratch) return trni_fail(m.error, TRN_ENOSPC, "could not allocate %zu bytes of scratch", bytes);
    }
    m.scratch = bench->scratch;
    m.scratch_bytes = bench->bytes;
    const trn_status status = trn_matmul(&m);
    if (status || !whole) return status;
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.dst = dst;
    c.src = out;
    c.isa = m.isa;
    return trn_convert(&c);
}

/* ---- a sum that is the same for all elements, as a list ---- */

typedef enum trni_fold_what {
    TRNI_FOLD_TAKE = 0, /* buffer = what member `from` has, rounded */
    TRNI_FOLD_TAKE_ADD, /* buffer += what member `from` has, rounded */
    TRNI_FOLD_ADD,      /* buffer += buffer `from` */
    TRNI_FOLD_ROUND
} trni_fold_what;

typedef struct trni_fold_op {
    trni_fold_what what;
    int buffer, from;
} trni_fold_op;

typedef struct trni_fold_list {
    trni_fold_op *op; /* room for 4 members + 4 */
    int ops, buffers;
    const trni_schedule *s;
    const trni_cc_channel *c;
} trni_fold_list;

/* One channel whose stages add all members at once: whose chunk an element is does not matter then. */
TRNI_FN bool trni_fold_is_uniform(const trni_schedule *s)
{
    int64_t members = 1;
    if (s->channels != 1) return false;
    for (int i = 0; i < s->channel[0].stages; i++) {
        if (s->channel[0].stage[i].how != TRNI_DIRECT) return false;
        members *= s->channel[0].stage[i].size;
    }
    return s->single_step || members == s->ranks;
}

TRNI_FN void trni_fold_put(trni_fold_list *l, trni_fold_what what, int buffer, int from)
{
    const trni_fold_op op = { what, buffer, from };
    l->op[l->ops++] = op;
    if (buffer >= l->buffers) l->buffers = buffer + 1;
}

TRNI_FN void trni_fold_stage_list(trni_fold_list *l, int stage, int base, int buffer);

/* Members [first, first + 16^level) of a stage, `all` in all, 16 at a time; the result in a buffer. */
TRNI_FN void trni_fold_node(trni_fold_list *l, int stage, int base, int level, int first, int buffer)
{
    const int size = l->s->single_step ? l->s->ranks : l->c->stage[stage].size;
    const int stride = l->s->single_step ? 1 : l->c->stage[stage].stride;
    int span = 1, sources = 0; /* members of one source */
    for (int i = 1; i < level; i++) span *= TRNI_SUM_SOURCES;
    for (int i = first; i < size && sources < TRNI_SUM_SOURCES; i += span, sources++) {
        const int to = sources ? buffer + 1 : buffer;
        if (level > 1)
            trni_fold_node(l, stage, base, level - 1, i, to);
        else if (stage > 0 && !l->s->single_step)
            trni_fold_stage_list(l, stage - 1, base + i * stride, to);
        else {
            trni_fold_put(l, sources ? TRNI_FOLD_TAKE_ADD : TRNI_FOLD_TAKE, buffer,
                          trni_rank_at(l->s, l->c, base + i * stride));
            continue;
        }
        if (sources) trni_fold_put(l, TRNI_FOLD_ADD, buffer, to);
    }
    if (sources > 1) trni_fold_put(l, TRNI_FOLD_ROUND, buffer, 0);
}

/* Stage `stage` and all before it, over the members whose later digits are those of `base`. */
TRNI_FN void trni_fold_stage_list(trni_fold_list *l, int stage, int base, int buffer)
{
    const int size = l->s->single_step ? l->s->ranks : l->c->stage[stage].size;
    int level = 1;
    for (int64_t span = TRNI_SUM_SOURCES; span < size; span *= TRNI_SUM_SOURCES) level++;
    trni_fold_node(l, stage, base, level, 0, buffer);
}

/* The whole sum, in buffer 0. Returns the number of entries. */
TRNI_FN int trni_fold_compile(trni_fold_list *l)
{
    const int stages = l->c->stages;
    if (l->s->single_step || stages)
        trni_fold_stage_list(l, stages - 1, 0, 0);
    else
        trni_fold_put(l, TRNI_FOLD_TAKE, 0, 0);
    return l->ops;
}

/* ---- arithmetic on tiles ---- */

/* sum += x, x rounded to BF16 first. */
TRNI_INLINE void trni_add_bf16_body(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = trni_bits(x[i]), even = u + 0x7fffu + (u >> 16 & 1u);
        const float r = sum[i] + trni_float((trni_is_nan_bits(u) ? TRNI_F32_NAN : even) & 0xffff0000u);
        sum[i] = trni_float(trni_is_nan_bits(trni_bits(r)) ? TRNI_F32_NAN : trni_bits(r));
    }
}
TRNI_STAMP(trni_add_bf16, (float *sum, const float *x, size_t n), (sum, x, n))

TRNI_FN bool trni_is_plain_bf16(trn_format wire, const trn_matmul_args *how)
{
    return wire == TRN_BF16 && how->rounding == TRN_NEAREST_EVEN && how->overflow == TRN_OVERFLOW_DEFAULT;
}

typedef struct trni_fold_arith {
    trni_arith arith;
    bool bf16; /* nearest even: the fast way */
} trni_fold_arith;

TRNI_FN void trni_patch_round(const trni_fold_arith *f, float *x, int64_t n)
{
    if (f->bf16) {
        trni_round_bf16_for(f->arith.isa)(x, 0, 1, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n && !f->arith.wire.exact; i += TRNI_FOLD_TILE)
        trni_round_in_place(&f->arith, &f->arith.wire, x + i, trni_min64(n - i, TRNI_FOLD_TILE), 0, 0);
}

TRNI_FN void trni_patch_add(const trni_fold_arith *f, float *sum, float *x, int64_t n)
{
    if (f->bf16) {
        trni_add_bf16_for(f->arith.isa)(sum, x, (size_t)n);
        return;
    }
    trni_patch_round(f, x, n);
    f->arith.add(sum, sum, x, (size_t)n);
}

/* ---- one order for all ---- */

typedef struct trni_fold_task {
    const trni_partial *p;
    const trni_fold_arith *f;
    const trni_fold_list *list;
    trn_tensor out;        /* [m, n] in the wire's format, packed */
    int64_t rows, columns; /* of a tile */
} trni_fold_task;

TRNI_FN int64_t trni_task_tiles(const trni_fold_task *t)
{
    return trni_ceil_div(t->out.shape[0], t->rows) * trni_ceil_div(t->out.shape[1], t->columns);
}

TRNI_FN trni_patch trni_task_tile(const trni_fold_task *t, int64_t i)
{
    const int64_t across = trni_ceil_div(t->out.shape[1], t->columns);
    trni_patch tile;
    tile.first[0] = i / across * t->rows;
    tile.first[1] = i % across * t->columns;
    tile.count[0] = trni_min64(t->rows, t->out.shape[0] - tile.first[0]);
    tile.count[1] = trni_min64(t->columns, t->out.shape[1] - tile.first[1]);
    return tile;
}

/* buffer: [list->buffers + 1][rows * columns] */
TRNI_FN trn_status trni_fold_one_tile(const trni_fold_task *t, const trni_patch *tile, float *buffer,
                                      trni_workbench *bench)
{
    const int64_t n = tile->count[0] * tile->count[1], room = t->rows * t->columns;
    float *const next = buffer + t->list->buffers * room;
    for (int i = 0; i < t->list->ops; i++) {
        const trni_fold_op *op = &t->list->op[i];
        float *const to = buffer + op->buffer * room;
        float *const made = op->what == TRNI_FOLD_TAKE ? to : next;
        if (op->what <= TRNI_FOLD_TAKE_ADD) {
            const trn_tensor dst = trn_tensor_2d(TRN_F32, made, tile->count[0], tile->count[1]);
            const trn_status status = trni_partial_tile(t->p, t->p->part[op->from], tile, dst, bench);
            if (status) return status;
        }
        if (op->what == TRNI_FOLD_TAKE || op->what == TRNI_FOLD_ROUND)
            trni_patch_round(t->f, to, n);
        else if (op->what == TRNI_FOLD_TAKE_ADD)
            trni_patch_add(t->f, to, next, n);
        else
            t->f->arith.add(to, to, buffer + op->from * room, (size_t)n);
    }
    const int64_t bytes = (int64_t)trn_format_bytes(t->out.format);
    for (int64_t r = 0; r < tile->count[0]; r++)
        trni_encoder_run(&t->f->arith.exact.encoder,
                         (char *)t->out.data + ((tile->first[0] + r) * t->out.shape[1] + tile->first[1]) * bytes,
                         buffer + r * tile->count[1], NULL, (size_t)tile->count[1]);
    return TRN_OK;
}

enum {
    TRNI_FOLD_ROWS = 384,       /* as many as keep packing cheap (measured) */
    TRNI_FOLD_FLOATS = 1 << 17, /* of all buffers of a tile: half of a second-level cache */
    TRNI_FOLD_COLUMNS = 1024,
    TRNI_FOLD_LEAST = 128
};

TRNI_FN trn_status trni_fold_uniform(trni_fold_task *t)
{
    int found = TRN_OK;
    const int64_t room = TRNI_FOLD_FLOATS / (t->list->buffers + 1);
    t->rows = trni_min64(TRNI_FOLD_ROWS, t->out.shape[0]);
    t->columns = room / t->rows / 64 * 64;
    if (t->columns < TRNI_FOLD_LEAST) t->columns = TRNI_FOLD_LEAST;
    t->columns = trni_min64(trni_min64(t->columns, TRNI_FOLD_COLUMNS), t->out.shape[1]);
    const int64_t tiles = trni_task_tiles(t);
    const size_t floats = (size_t)((t->list->buffers + 1) * t->rows * t->columns);
#if defined(_OPENMP)
#pragma omp parallel reduction(max : found) if (tiles > 1)
#endif
    {
        trni_workbench bench = { NULL, 0 };
        float *buffer = (float *)malloc(floats * sizeof(float));
        trn_status mine = buffer ? TRN_OK : TRN_ENOSPC;
#if defined(_OPENMP)
#pragma omp for schedule(dynamic, 1)
#endif
        for (int64_t i = 0; i < tiles; i++) {
            const trni_patch tile = trni_task_tile(t, i);
            if (!mine) mine = trni_fold_one_tile(t, &tile, buffer, &bench);
        }
        free(buffer);
        free(bench.scratch);
        found = (int)mine;
    }
    return (trn_status)found;
}

/* ---- an order for each chunk ---- */

/* The part of the product that one group sums: in the order of its buffer, lines of one length, which are rows, or the
 * columns of a product that is cut along its columns. */
typedef struct trni_fold_region {
    trni_patch box;
    bool by_columns;
    int64_t granule;
    uint64_t stream;
} trni_fold_region;

typedef struct trni_chunks_task {
    const trni_partial *p;
    const trni_fold_arith *f;
    const trni_schedule *s;
    const trni_fold_region *region;
    int regions;
    trn_tensor out;
    int64_t lines, width, tiles; /* of a tile, in the order of the buffer; tiles of the largest region */
} trni_chunks_task;

/* What a thread works with. */
typedef struct trni_chunks_bench {
    trni_workbench bench;
    trni_arith arith; /* with the stream of the region */
    trni_fold fold;
    float *value;     /* [members][lines * width] */
    int64_t room, at; /* lines * width; where in it the run is */
} trni_chunks_bench;

TRNI_FN void trni_fold_from_patch(void *user, int rank, int64_t first, int64_t n, float *value)
{
    const trni_chunks_bench *my = (const trni_chunks_bench *)user;
    memcpy(value, my->value + rank * my->room + my->at, sizeof(float) * (size_t)n);
    trni_round_in_place(&my->arith, &my->arith.wire, value, n, my->arith.stream + (uint64_t)rank, (uint64_t)first);
}

/* Of elements [first, first + n) of a buffer of `elements`: how many belong together, and to what. */
TRNI_FN int64_t trni_fold_locate(const trni_schedule *s, int64_t elements, int64_t granule, int64_t first, int64_t n,
                                 int *owner, int *channel, int *part)
{
    int64_t chunk, count, low = 0, high = 0;
    trn_collective_chunk(elements, granule, s->ranks, 0, &chunk, &count);
    *owner = (int)(first / count);
    trn_collective_chunk(elements, granule, s->ranks, *owner, &chunk, &count);
    for (*channel = 0; *channel < s->channels; ++*channel) {
        trni_channel_range(s, *channel, count, &low, &high);
        if (first - chunk < high) break;
    }
    const int64_t middle = trni_channel_halves(&s->channel[*channel]) ? low + (high - low) / 2 : high;
    *part = first - chunk < middle ? 1 : 2;
    return trni_min64(n, chunk + (*part == 1 ? middle : high) - first);
}

/* The run of a line, summed piece by piece, into its place. */
TRNI_FN void trni_chunks_line(const trni_chunks_task *t, const trni_fold_region *g, trni_chunks_bench *my, int64_t line,
                              int64_t from, int64_t n)
{
    const int64_t length = g->box.count[g->by_columns ? 0 : 1], elements = g->box.count[0] * g->box.count[1];
    const int64_t bytes = (int64_t)trn_format_bytes(t->out.format), across = t->out.shape[1];
    const int64_t step = g->by_columns ? across : 1, line_step = g->by_columns ? 1 : across;
    for (int64_t done = 0, take; done < n; done += take, my->at += take) {
        uint32_t code[TRNI_FOLD_TILE];
        const int64_t first = line * length + from + done;
        int owner, channel, part;
        take = trni_min64(n - done, TRNI_FOLD_TILE);
        take = trni_fold_locate(t->s, elements, g->granule, first, take, &owner, &channel, &part);
        trni_fold_aim(&my->fold, channel, owner);
        const float *sum = trni_fold_tile(&my->fold, part, first, take);
        trni_encoder_run(&my->arith.exact.encoder, code, sum, NULL, (size_t)take);
        char *to = (char *)t->out.data +
                   (g->box.first[0] * across + g->box.first[1] + line * line_step + (from + done) * step) * bytes;
        trni_move(to, step * bytes, (const char *)code, bytes, (size_t)bytes, (size_t)take);
    }
}

TRNI_FN trn_status trni_chunks_tile(const trni_chunks_task *t, const trni_fold_region *g, trni_chunks_bench *my,
                                    int64_t tile)
{
    const int along = g->by_columns ? 0 : 1; /* the dimension that a line runs along */
    const int64_t across = trni_ceil_div(g->box.count[along], t->width);
    const int64_t line = tile / across * t->lines, from = tile % across * t->width;
    if (line >= g->box.count[1 - along]) return TRN_OK; /* a smaller region than the largest */
    trni_patch patch;
    patch.first[1 - along] = g->box.first[1 - along] + line;
    patch.count[1 - along] = trni_min64(t->lines, g->box.count[1 - along] - line);
    patch.first[along] = g->box.first[along] + from;
    patch.count[along] = trni_min64(t->width, g->box.count[along] - from);
    const int64_t lines = patch.count[1 - along], n = patch.count[along];
    for (int r = 0; r < t->s->ranks; r++) {
        trn_tensor dst = trn_tensor_2d(TRN_F32, my->value + r * my->room, lines, n);
        if (g->by_columns) dst = trn_tensor_transposed(dst);
        const trn_status status = trni_partial_tile(t->p, t->p->part[r], &patch, dst, &my->bench);
        if (status) return status;
    }
    my->arith.stream = g->stream;
    my->at = 0;
    for (int64_t i = 0; i < lines; i++) trni_chunks_line(t, g, my, line + i, from, n);
    return TRN_OK;
}

enum { TRNI_CHUNKS_FLOATS = 1 << 19, TRNI_CHUNKS_LEAST = 4096, TRNI_CHUNKS_WIDTH = 256 };

/* Tiles small enough that all members' parts of one fit a cache, not so small that packing costs more than products. */
TRNI_FN void trni_chunks_cut(trni_chunks_task *t)
{
    int64_t floats = TRNI_CHUNKS_FLOATS / t->s->ranks;
    if (floats < TRNI_CHUNKS_LEAST) floats = TRNI_CHUNKS_LEAST;
    t->width = TRNI_CHUNKS_WIDTH;
    t->lines = floats / t->width;
    for (int i = 0; i < t->regions; i++) {
        const trni_fold_region *g = &t->region[i];
        const int along = g->by_columns ? 0 : 1;
        const int64_t tiles =
            trni_ceil_div(g->box.count[along], t->width) * trni_ceil_div(g->box.count[1 - along], t->lines);
        if (tiles > t->tiles) t->tiles = tiles;
    }
}

TRNI_FN trn_status trni_fold_chunks(trni_chunks_task *t)
{
    int found = TRN_OK;
    t->tiles = 0;
    trni_chunks_cut(t);
    const int64_t room = t->lines * t->width, tasks = t->tiles * t->regions;
#if defined(_OPENMP)
#pragma omp parallel reduction(max : found) if (tasks > 1)
#endif
    {
        void *memory = malloc(trni_fold_bytes(t->s->ranks));
        trni_chunks_bench my;
        memset(&my.bench, 0, sizeof my.bench);
        my.arith = t->f->arith;
        my.room = room;
        my.value = (float *)malloc(sizeof(float) * (size_t)(room * t->s->ranks));
        trn_status mine = memory && my.value ? TRN_OK : TRN_ENOSPC;
        if (memory) trni_fold_init(&my.fold, t->s, &my.arith, memory);
        my.fold.load = trni_fold_from_patch;
        my.fold.user = &my;
#if defined(_OPENMP)
#pragma omp for schedule(dynamic, 1)
#endif
        for (int64_t i = 0; i < tasks; i++)
            if (!mine) mine = trni_chunks_tile(t, &t->region[i / t->tiles], &my, i % t->tiles);
        free(memory);
        free(my.value);
        free(my.bench.scratch);
        found = (int)mine;
    }
    return (trn_status)found;
}

#endif /* TRN_SHARDED_FOLD_H */

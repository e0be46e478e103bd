/* data/convert.h - whole arrays from any number format to any other.
 * A part of trn_convert.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_DATA_CONVERT_H
#define TRNI_DATA_CONVERT_H

#include "../number/random.h"
#include "tensor.h"

typedef struct trn_convert_args {
    trn_tensor dst; /* any shape; every index has its own element */
    trn_tensor src; /* the same shape; may broadcast with stride 0 */
    trn_rounding rounding;
    trn_overflow overflow;
    uint64_t seed, stream; /* TRN_STOCHASTIC: element i, in row-major order, takes */
    uint64_t index;        /* trn_random_field(seed, stream, index + i); 0, or where a part begins in its whole */
    int sr_bits;           /* random bits per element, 1..32; 0 means 32 */
    bool sr_carry_to_inf;  /* stochastic: may a value between the maximum and the next step become infinity? */
    bool integers_once;    /* I32 and U32: the exact integer is rounded once, to F32 too; other sources do not care */
    trn_xorwow_vector *xorwow; /* optional: stochastic rounding draws from here instead, see below */
    trn_isa isa;               /* 0 = the best of this host; the bits do not depend on it */
    trn_error *error;          /* optional */
} trn_convert_args;

/* ---- building the plan ---- */

/* dst[i] = src[i] in dst's format, for every index i. TRN_ESHAPE: ranks or sizes differ; TRN_EINVAL: an unknown mode,
 * sr_bits outside 1..32, dst overlaps src other than in place, or a generator that was never seeded; TRN_EUNSUPPORTED:
 * an isa this host lacks. */
TRN_API trn_status trn_convert(const trn_convert_args *args);

#if TRNI_BODIES

#include "../base/threads.h"
#include "integers.h"

/* ---- the plan: everything that is decided once per call ---- */

typedef enum trni_convert_limit {
    TRNI_CONVERT_CHUNK = 1024,       /* elements per pass through the stages: all buffers stay in the first cache */
    TRNI_CONVERT_DRAW = 512,         /* the same, when the generator is faster than the next values come from memory */
    TRNI_CONVERT_TILE = 16384,       /* elements per tile: the unit that threads share out; without threads, all */
    TRNI_CONVERT_SQUARE = 64,        /* tile edge when one side is transposed */
    TRNI_CONVERT_SHORT = 16,         /* an inner axis shorter than this gives way to a longer one */
    TRNI_CONVERT_PARALLEL = 1 << 17, /* elements from which threads pay for being woken */
    TRNI_CONVERT_STREAM = 8 << 20    /* bytes of dst from which stores bypass the caches */
} trni_convert_limit;

typedef struct trni_convert_axis {
    int64_t size;
    int64_t dst, src; /* steps in bytes */
    int64_t index;    /* step of the row-major position */
} trni_convert_axis;

/* Where a generator with a state stands: a word may hold several fields, and runs may end inside it. */
typedef struct trni_convert_draw {
    trn_xorwow_vector *from;
    uint32_t word; /* the last one drawn */
    size_t used;   /* its fields that are used up, 0: all of them */
} trni_convert_draw;

typedef struct trni_convert_plan {
    const trn_convert_args *args;
    trn_isa isa;
    char *dst;
    const char *src;
    size_t dst_bytes, src_bytes; /* per element */
    bool copy;                   /* same format: bits move, nothing is rounded */
    bool in_place;
    bool stream;
    bool stochastic;
    bool encodes, decodes;   /* one of the two does it all, and the other is not used */
    bool once;               /* integers pass by binary32: of the encoder, only its format and mode are used */
    trni_lookup *lookup;     /* a table does it all; or NULL */
    trni_convert_draw *draw; /* words come from a generator with a state: one thread, row-major; or NULL */
    int rank;                /* >= 2: the last two axes are the tile's rows and columns */
    trni_convert_axis axis[TRN_MAX_RANK + 1];
    int64_t elements, tile_rows, tile_columns, row_tiles, column_tiles, tiles;
    trni_encoder encoder; /* what follows is filled where it is used: clearing all of it would take as long as a */
    trni_decoder decoder; /* thousand elements */
    uint16_t table[256];
} trni_convert_plan;

/* The next n fields, cut from words as trn_random_field cuts them. */
TRNI_FN void trni_convert_draw_fields(trni_convert_draw *d, uint32_t *field, size_t n, int bits, trn_isa isa)
{
    const size_t share = bits == 8 ? 4 : bits == 16 ? 2 : 1; /* fields per word */
    uint32_t word[TRNI_CONVERT_CHUNK + 1];
    if (share == 1) {
        trn_xorwow_vector_words(d->from, field, n, isa);
        if (bits != 32) trni_random_top_for(isa)(field, n, bits);
        return;
    }
    const size_t old = d->used > 0, words = (d->used + n + share - 1) / share;
    word[0] = d->word;
    trn_xorwow_vector_words(d->from, word + old, words - old, isa);
    trni_random_split_for(isa)(field, word, d->used, n, bits);
    d->word = word[words - 1];
    d->used = (d->used + n) % share;
}

/* The random fields of elements index, index + step, … */
TRNI_FN void trni_convert_fields(const trni_convert_plan *p, uint32_t *field, size_t n, int64_t index, int64_t step)
{
    const trn_convert_args *a = p->args;
    const int bits = a->sr_bits ? a->sr_bits : 32;
    const uint64_t first = a->index + (uint64_t)index; /* the position may pass 2^64 and go on at 0 */
    if (p->draw)
        trni_convert_draw_fields(p->draw, field, n, bits, p->isa);
    else if (step == 1)
        trn_random_fields(field, n, bits, a->seed, a->stream, first, p->isa);
    else
        for (size_t i = 0; i < n; i++)
            field[i] = trn_random_field(a->seed, a->stream, first + (uint64_t)i * (uint64_t)step, bits);
}

/* ---- one run: n elements at constant steps ---- */

/* At most one chunk of contiguous elements, through binary32 or, once, past it. */
TRNI_FN void trni_convert_stages(const trni_convert_plan *p, char *dst, const char *src, size_t n, int64_t index,
                                 int64_t index_step)
{
    TRNI_LINES(uint32_t) value[TRNI_CONVERT_CHUNK], field[TRNI_CONVERT_CHUNK];
    if (p->stochastic) trni_convert_fields(p, field, n, index, index_step);
    if (p->once) {
        trni_encoder_integers(&p->encoder, p->args->src.format == TRN_I32, dst, src, p->stochastic ? field : NULL, n);
        return;
    }
    if (!p->decoder.copy) trni_decoder_run(&p->decoder, value, src, n);
    trni_encoder_run(&p->encoder, dst, p->decoder.copy ? src : (const char *)value, p->stochastic ? field : NULL, n);
}

/* Contiguous elements without a second stage; false where one is needed. */
TRNI_FN bool trni_convert_direct(const trni_convert_plan *p, char *dst, const char *src, size_t n)
{
    if (p->encodes)
        trni_encoder_run(&p->encoder, dst, src, NULL, n);
    else if (p->decodes)
        trni_decoder_run(&p->decoder, dst, src, n);
    else if (p->lookup)
        p->lookup(p->table, dst, src, n);
    else
        return false;
    return true;
}

TRNI_FN bool trni_convert_past(const trni_convert_plan *p, char *dst, const char *src, size_t n)
{
    if (p->encodes) return trni_encoder_run_past(&p->encoder, dst, src, n);
    return p->decodes && trni_decoder_run_past(&p->decoder, dst, src, n);
}

typedef struct trni_convert_run {
    char *dst;
    const char *src;
    int64_t n, dst_step, src_step, index, index_step;
} trni_convert_run;

TRNI_FN void trni_convert_run_chunks(const trni_convert_plan *p, const trni_convert_run *r)
{
    TRNI_LINES(uint32_t) in[TRNI_CONVERT_CHUNK], out[TRNI_CONVERT_CHUNK];
    const bool gather = r->src_step != (int64_t)p->src_bytes, scatter = r->dst_step != (int64_t)p->dst_bytes;
    const bool stream = p->stream && !scatter, apart = scatter || stream || p->in_place;
    for (int64_t i = 0, take; i < r->n; i += take) {
        char *dst = r->dst + i * r->dst_step;
        const char *src = r->src + i * r->src_step;
        take = p->draw ? (int64_t)TRNI_CONVERT_DRAW : (int64_t)TRNI_CONVERT_CHUNK;
        if (stream) take -= (int64_t)(((uintptr_t)dst & 63) / p->dst_bytes); /* the next chunk starts on a line */
        if (take > r->n - i) take = r->n - i;
        const size_t n = (size_t)take;
        const char *x = src;
        char *y = apart ? (char *)out : dst;
        if (gather) {
            trni_move((char *)in, (int64_t)p->src_bytes, src, r->src_step, p->src_bytes, n);
            x = (const char *)in;
        }
        if (!trni_convert_direct(p, y, x, n))
            trni_convert_stages(p, y, x, n, r->index + i * r->index_step, r->index_step);
        if (stream)
            trni_stream(dst, out, n * p->dst_bytes, src, 64 / p->dst_bytes * p->src_bytes);
        else if (apart)
            trni_move(dst, r->dst_step, (const char *)out, (int64_t)p->dst_bytes, p->dst_bytes, n);
    }
}

TRNI_FN void trni_convert_run_one(const trni_convert_plan *p, const trni_convert_run *r)
{
    const bool contiguous = r->src_step == (int64_t)p->src_bytes && r->dst_step == (int64_t)p->dst_bytes;
    const size_t n = (size_t)r->n;
    if (p->copy)
        trni_move(r->dst, r->dst_step, r->src, r->src_step, p->dst_bytes, n);
    else if (contiguous && !p->in_place &&
             (p->stream ? trni_convert_past(p, r->dst, r->src, n) : trni_convert_direct(p, r->dst, r->src, n)))
        return;
    else
        trni_convert_run_chunks(p, r);
}

TRNI_DRIVER void trni_convert_tile(const trni_convert_plan *p, int64_t tile)
{
    const trni_convert_axis *rows = &p->axis[p->rank - 2], *columns = &p->axis[p->rank - 1];
    const int64_t column = tile % p->column_tiles * p->tile_columns;
    tile /= p->column_tiles;
    const int64_t row = tile % p->row_tiles * p->tile_rows;
    tile /= p->row_tiles;
    const int64_t column_end = column + p->tile_columns < columns->size ? column + p->tile_columns : columns->size;
    const int64_t row_end = row + p->tile_rows < rows->size ? row + p->tile_rows : rows->size;

    trni_convert_run r = { p->dst, p->src, column_end - column, columns->dst, columns->src, 0, columns->index };
    for (int i = p->rank - 3; i >= -2; i--) { /* -1 and -2 stand for the tile's own corner */
        const trni_convert_axis *axis = i >= 0 ? &p->axis[i] : i == -1 ? rows : columns;
        const int64_t at = i >= 0 ? tile % axis->size : i == -1 ? row : column;
        if (i >= 0) tile /= axis->size;
        r.dst += at * axis->dst;
        r.src += at * axis->src;
        r.index += at * axis->index;
    }
    for (int64_t i = row; i < row_end; i++) {
        trni_convert_run_one(p, &r);
        r.dst += rows->dst;
        r.src += rows->src;
        r.index += rows->index;
    }
}

/* ---- building the plan ---- */

/* The axes that matter, longest dst step first, or in their own order where the order of elements matters; neighbours
 * that continue each other in dst, src and position merge. */
TRNI_DRIVER void trni_convert_axes(trni_convert_plan *p, const trn_tensor *dst, const trn_tensor *src)
{
    int64_t index = 1;
    trni_convert_axis *axis = p->axis;
    int n = 0;
    for (int i = dst->rank - 1; i >= 0; index *= dst->shape[i--]) {
        if (dst->shape[i] == 1) continue;
        const trni_convert_axis one = { dst->shape[i], dst->stride[i] * (int64_t)p->dst_bytes,
                                        src->stride[i] * (int64_t)p->src_bytes, index };
        int at = n++;
        for (; at > 0 && (p->draw || axis[at - 1].dst < one.dst); at--) axis[at] = axis[at - 1];
        axis[at] = one;
    }
    int kept = 0;
    for (int i = 1; i < n; i++) {
        trni_convert_axis *outer = &axis[kept], *inner = &axis[i];
        if (outer->dst == inner->dst * inner->size && outer->src == inner->src * inner->size &&
            outer->index == inner->index * inner->size) {
            inner->size *= outer->size;
            *outer = *inner;
        } else {
            axis[++kept] = *inner;
        }
    }
    p->rank = n ? kept + 1 : 0;
}

TRNI_FN void trni_convert_swap(trni_convert_axis *a, trni_convert_axis *b)
{
    const trni_convert_axis t = *a;
    *a = *b;
    *b = t;
}

/* Chooses columns (long, contiguous in dst) and rows (contiguous in src, when the columns are not), and cuts tiles. */
TRNI_DRIVER void trni_convert_tiles(trni_convert_plan *p)
{
    const trni_convert_axis unit = { 1, 0, 0, 0 };
    while (p->rank < 2) { /* in front, so that the columns stay last */
        p->axis[p->rank] = p->rank ? p->axis[0] : unit;
        if (p->rank) p->axis[0] = unit;
        p->rank++;
    }
    trni_convert_axis *rows = &p->axis[p->rank - 2], *columns = &p->axis[p->rank - 1];
    if (p->draw) { /* columns of one row at a time */
        p->tile_columns = columns->size < TRNI_CONVERT_TILE ? columns->size : (int64_t)TRNI_CONVERT_TILE;
        p->tile_rows = 1;
        return;
    }
    if (columns->size < TRNI_CONVERT_SHORT)
        for (int i = 0; i < p->rank - 1; i++)
            if (p->axis[i].size > columns->size) trni_convert_swap(&p->axis[i], columns);
    for (int i = 0; i < p->rank - 2; i++)
        if (p->axis[i].size > 1 && p->axis[i].src < rows->src) trni_convert_swap(&p->axis[i], rows);

    const bool transposed = rows->size > 1 && columns->src > rows->src && columns->src > (int64_t)p->src_bytes;
    const int64_t tile = p->elements < TRNI_CONVERT_PARALLEL ? p->elements : (int64_t)TRNI_CONVERT_TILE;
    const int64_t most = transposed ? (int64_t)TRNI_CONVERT_SQUARE : tile;
    p->tile_columns = columns->size < most ? columns->size : most;
    const int64_t rows_most = transposed ? most : tile / p->tile_columns;
    p->tile_rows = rows->size < rows_most ? rows->size : rows_most;
}

TRNI_DRIVER void trni_convert_count_tiles(trni_convert_plan *p)
{
    const trni_convert_axis *rows = &p->axis[p->rank - 2], *columns = &p->axis[p->rank - 1];
    p->column_tiles = (columns->size + p->tile_columns - 1) / p->tile_columns;
    p->row_tiles = (rows->size + p->tile_rows - 1) / p->tile_rows;
    p->tiles = p->column_tiles * p->row_tiles;
    for (int i = 0; i < p->rank - 2; i++) p->tiles *= p->axis[i].size;
}

/* From a byte to at most two, all codes are converted beforehand: it pays from as many elements as there are codes. */
TRNI_FN void trni_convert_tabulate(trni_convert_plan *p)
{
    unsigned char code[256];
    uint32_t value[256];
    uint16_t half[256];
    for (int i = 0; i < 256; i++) code[i] = (unsigned char)i;
    trni_decoder_run(&p->decoder, value, code, 256);
    trni_encoder_run(&p->encoder, p->dst_bytes == 1 ? (void *)code : (void *)half, value, NULL, 256);
    for (int i = 0; i < 256; i++) p->table[i] = p->dst_bytes == 1 ? code[i] : half[i];
    p->lookup = trni_lookup_pick(p->dst_bytes, p->isa);
}

/* Which kernels apply. */
TRNI_DRIVER void trni_convert_kernels(trni_convert_plan *p, const trn_format_info *to, const trn_format_info *from)
{
    const trn_convert_args *a = p->args;
    const trni_encoding how = { { a->rounding, 0, a->sr_bits }, a->overflow, a->sr_carry_to_inf };
    p->copy = trni_same_format(&a->dst, &a->src); /* bits move */
    p->stochastic = a->rounding == TRN_STOCHASTIC;
    p->encodes = a->src.format == TRN_F32 && !p->stochastic;
    p->once = a->integers_once && (a->src.format == TRN_I32 || a->src.format == TRN_U32);
    p->decodes = a->dst.format == TRN_F32 && !p->once;
    if (p->copy) return;
    if (!p->decodes) trni_encoder_init(&p->encoder, to, how, p->isa);
    if (!p->encodes && !p->once) trni_decoder_init(&p->decoder, from, p->isa);
    if (p->src_bytes == 1 && p->dst_bytes <= 2 && !p->stochastic && p->elements >= 256) trni_convert_tabulate(p);
}

TRNI_DRIVER trn_status trni_convert_open(const trn_convert_args *a, trni_view *dst, trni_view *src)
{
    trn_status status = trni_view_open(dst, &a->dst, "dst", TRNI_OUTPUT, 0, a->error);
    if (!status) status = trni_view_open(src, &a->src, "src", TRNI_INPUT, 0, a->error);
    return status ? status : trni_check_same_shape(&a->dst, "dst", &a->src, "src", a->error);
}

TRNI_DRIVER trn_status trni_convert_check_modes(const trn_convert_args *a)
{
    trn_status status = trni_check_overflow(a->overflow, a->error);
    if (status) return status;
    if (a->xorwow && trn_tensor_overlap(a->dst, trn_tensor_1d(TRN_U8, a->xorwow, (int64_t)sizeof *a->xorwow)))
        return trni_fail(a->error, TRN_EINVAL, "dst overlaps the generator that xorwow points to");
    if (a->xorwow) status = trni_check_xorwow(a->xorwow, "xorwow", a->error);
    return status ? status : trni_check_rounding(a->rounding, a->sr_bits, a->error);
}

TRN_API trn_status trn_convert(const trn_convert_args *args)
{
    TRNI_ENTER(args);
    trni_convert_plan plan;
    memset(&plan, 0, offsetof(trni_convert_plan, encoder));
    trni_convert_plan *const p = &plan;
    trni_view dst, src;
    p->args = args;
    p->isa = args->isa;
    trn_status status = trni_convert_open(args, &dst, &src);
    if (!status) status = trni_convert_check_modes(args);
    if (!status) status = trni_isa_resolve(&p->isa, args->error);
    if (status) return status;

    if (dst.elements == 0) return TRN_OK;
    p->dst = (char *)args->dst.data;
    p->src = (const char *)args->src.data;
    p->elements = dst.elements;
    p->dst_bytes = dst.size;
    p->src_bytes = src.size;
    p->in_place = trni_same_place(&dst, &src);
    if (!p->in_place && trni_views_overlap(&dst, &src))
        return trni_fail(args->error, TRN_EINVAL,
                         "dst overlaps src; in place needs the same data, element size and strides");
    trni_convert_kernels(p, &dst.info, &src.info);
    if (p->copy && p->in_place) return TRN_OK;
    trni_convert_draw draw = { args->xorwow, 0, 0 };
    if (args->xorwow && p->stochastic && !p->copy && !p->decodes) p->draw = &draw;
    trni_convert_axes(p, &dst.t, &src.t);
    trni_convert_tiles(p);
    trni_convert_count_tiles(p);

    p->stream = trni_stream_available(p->isa) && !p->copy && !p->in_place &&
                p->elements >= TRNI_CONVERT_STREAM / (int64_t)p->dst_bytes;
    trni_team team = trni_team_begin(p->elements < TRNI_CONVERT_PARALLEL || p->draw ? 1 : trni_threads());
    if (team.threads == 1) {
        for (int64_t tile = 0; tile < p->tiles; tile++) trni_convert_tile(p, tile);
        if (p->stream) trni_stream_end();
        return TRN_OK;
    }
    TRNI_PARALLEL(num_threads(team.threads))
    {
        TRNI_FLOATS;
        TRNI_FOR(schedule(static) nowait)
        for (int64_t tile = 0; tile < p->tiles; tile++) trni_convert_tile(p, tile);
        if (p->stream) trni_stream_end();
        trni_team_worked(&team);
    }
    trni_team_end(&team);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_DATA_CONVERT_H */

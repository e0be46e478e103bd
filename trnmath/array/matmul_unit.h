/* array/matmul_unit.h - strips times panels on a matrix unit, wherever that gives the bits of the chains.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: which products may use a unit; a thread's words and proofs beside its packed panels; one strip times one panel
 *     over one tile: all of it exact, each chain exact, half of each chain on the unit, or none of it.
 * DOES NOT: decide about bits: every way gives the same ones, and array/unit_words.h says why.
 *
 * Tiles (AMX) take strips of 16 rows; elsewhere the vectors' kernels do what they always do.
 *
 * KNOWN FROM: as array/unit_words.h.
 */
#ifndef TRNI_ARRAY_MATMUL_UNIT_H
#define TRNI_ARRAY_MATMUL_UNIT_H

#include "product_define.h"
#include "unit_words.h"

/* ---- which products ---- */

/* What a product has that is worth the words: with 16 rows they cost more than they bring (0.65 of the speed; 1.2 and
 * more with 128: measured). The emulator, which is for tests, does not ask. */
enum { TRNI_UNIT_LEAST = 1 << 18 /* multiply-adds */, TRNI_UNIT_LEAST_ROWS = 64 };

/* Are all its numbers BF16 numbers? */
TRNI_FN bool trni_unit_takes(const trni_operand *o) { return o->format == TRN_BF16 || o->info.bits <= 8; }

TRNI_DRIVER bool trni_unit_applies(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    if (p->unit != TRN_ISA_AMX && p->unit != TRN_ISA_AMX_EMULATED) return false;
    if (p->integer || !trni_unit_takes(&p->a) || !trni_unit_takes(&p->b)) return false;
    if (n->merge != TRN_MERGE_ASCENDING && n->chains >= 4) return false;
    if (p->unit == TRN_ISA_AMX_EMULATED) return p->a.lanes >= TRNI_UNIT_ROWS;
    if (p->a.lanes < TRNI_UNIT_LEAST_ROWS ||
        (double)p->a.lanes * (double)p->b.lanes * (double)p->a.depth < (double)TRNI_UNIT_LEAST)
        return false;
    return trni_unit_of(p->unit, p->isa).bf16 != NULL;
}

/* ---- a thread's words ---- */

typedef struct trni_unit_work {
    trni_unit tiles;
    trni_unit_kernels kernels;
    trni_unit_map whole, tail; /* of a full tile, and of the last one */
    int width, strips, panels; /* of the vectors' panels; for each tile of a slab, at most */
    size_t a_step, b_step;     /* words of a tile of the slab: of a, of b */
    size_t strip, panel;       /* words of a strip, of a panel; half words come after */
    uint32_t *a, *b, *spare;
    trni_unit_proof *a_proof, *b_proof; /* [tile][strip], [tile][panel] */
    int64_t *count;                     /* strips times panels by trni_unit_mode */
    bool hopeless;                      /* the first of them were not for the unit: no more words */
} trni_unit_work;

/* Words of 16 rows, or of a panel; half of them besides. */
TRNI_DRIVER size_t trni_unit_words_of(const trni_unit_map *map)
{
    return (size_t)map->rows + (map->half ? (size_t)(map->chains * TRNI_UNIT_WORDS) : 0);
}

TRNI_LEAN void trni_unit_work_maps(trni_unit_work *u, const trni_map *whole, const trni_map *tail)
{
    memset(u, 0, sizeof *u);
    if (whole->depth) u->whole = trni_unit_map_of(whole);
    if (tail->depth) u->tail = trni_unit_map_of(tail);
}

/* Steps from tile to tile; returns the bytes of everything. `rows` and `columns` of a slab, `tiles` along K. */
TRNI_DRIVER size_t trni_unit_work_lay(trni_unit_work *u, const trni_array *array, int64_t rows, int64_t columns,
                                      int64_t tiles)
{
    const size_t whole = trni_unit_words_of(&u->whole), tail = trni_unit_words_of(&u->tail),
                 each = whole > tail ? whole : tail;
    u->width = array->width;
    u->strips = (int)(rows / array->rows[0]) + (int)TRNI_KERNELS;
    u->panels = (int)trni_ceil_div(columns, array->width);
    u->strip = each * (size_t)array->rows[0];
    u->panel = each * (size_t)array->width;
    u->a_step = u->strip * (size_t)u->strips;
    u->b_step = u->panel * (size_t)u->panels;
    const size_t words = ((u->a_step + u->b_step) * (size_t)tiles + u->strip) * sizeof(uint32_t);
    return words + (size_t)(u->strips + u->panels) * (size_t)tiles * sizeof(trni_unit_proof) + sizeof(int64_t[8]);
}

TRNI_DRIVER void trni_unit_work_place(trni_unit_work *u, unsigned char *scratch, int64_t tiles)
{
    u->count = (int64_t *)(void *)scratch;
    memset(u->count, 0, sizeof(int64_t[8]));
    u->a = (uint32_t *)(void *)(scratch + sizeof(int64_t[8]));
    u->b = u->a + u->a_step * (size_t)tiles;
    u->spare = u->b + u->b_step * (size_t)tiles;
    u->a_proof = (trni_unit_proof *)(void *)(u->spare + u->strip);
    u->b_proof = u->a_proof + (int64_t)u->strips * tiles;
}

TRNI_LEAN void trni_unit_work_kernels(trni_unit_work *u, const trni_product *p)
{
    u->kernels = trni_unit_kernels_of(p->isa);
    u->tiles = trni_unit_of(p->unit, p->isa);
}

TRNI_FN const trni_unit_map *trni_unit_map_at(const trni_unit_work *u, const trni_map *map)
{
    return map->lines == u->whole.all ? &u->whole : &u->tail;
}

/* The tallest strip is the tiles'. */
TRNI_FN bool trni_unit_has(int kernel) { return kernel == 0; }

/* The strip that was packed at `strip`, `rows` wide. */
TRNI_DRIVER void trni_unit_pack_strip(const trni_unit_work *u, int64_t tile, int index, const trni_unit_map *map,
                                      const float *strip, int rows)
{
    uint32_t *word = u->a + (size_t)tile * u->a_step + (size_t)index * u->strip;
    trni_unit_proof *proof = u->a_proof + tile * u->strips + index;
    if (u->hopeless) return;
    *proof = trni_unit_no_proof();
    trni_unit_prove(proof, strip, (size_t)rows, rows, map, u->kernels.state);
    if (!proof->half) return;
    for (int half = 0; half <= (map->half ? 1 : 0); half++) {
        const int count = half ? map->chains * (int)TRNI_UNIT_WORDS : map->rows;
        u->kernels.words(u->spare, strip, (size_t)rows, map, half);
        u->kernels.turn(word, u->spare, count);
        word += count * rows;
    }
}

/* The panel that was packed at `panel`. */
TRNI_DRIVER void trni_unit_pack_panel(const trni_unit_work *u, int64_t tile, int64_t index, const trni_unit_map *map,
                                      const float *panel)
{
    uint32_t *word = u->b + (size_t)tile * u->b_step + (size_t)index * u->panel;
    trni_unit_proof *proof = u->b_proof + tile * u->panels + index;
    if (u->hopeless) return;
    *proof = trni_unit_no_proof();
    for (int lane = 0; lane < u->width; lane += TRNI_UNIT_LANES)
        trni_unit_prove(proof, panel + lane, (size_t)u->width, TRNI_UNIT_LANES, map, u->kernels.state);
    if (!proof->half) return;
    u->kernels.words(word, panel, (size_t)u->width, map, false);
    if (map->half) u->kernels.words(word + map->rows * u->width, panel, (size_t)u->width, map, true);
}

/* ---- one strip times one panel over one tile ---- */

typedef struct trni_unit_call {
    int64_t tile, strip, panel; /* where the words are */
    const float *a, *b;         /* the packed numbers */
    const trni_map *map;
    const float *in;
    ptrdiff_t in_step;
    float *out;
    ptrdiff_t out_step;
    uintptr_t ahead, ahead_step; /* cache lines that will be wanted, one for each line of the tile */
} trni_unit_call;

/* What the unit does of chain c. */
TRNI_DRIVER void trni_unit_chain(const trni_unit_work *u, const trni_unit_map *map, trni_unit_mode mode, int c,
                                 const uint32_t *a, const uint32_t *b, float *sum)
{
    const int row = mode == TRNI_UNIT_HALF ? map->rows + c * (int)TRNI_UNIT_WORDS : map->first[c];
    const int blocks = mode == TRNI_UNIT_HALF ? 1 : map->count[c] / (int)TRNI_UNIT_WORDS;
    if (mode == TRNI_UNIT_NEVER)
        memset(sum, 0, sizeof *sum * (size_t)(TRNI_UNIT_ROWS * u->width));
    else
        u->tiles.bf16(sum, a + row * TRNI_UNIT_ROWS, b + row * u->width, blocks, u->width);
}

/* Chain after chain; the unit is one ahead of the vectors, which go on where it ends. */
TRNI_DRIVER void trni_unit_chains(const trni_unit_work *u, const trni_unit_map *map, trni_unit_mode mode,
                                  const trni_unit_call *call, const uint32_t *a, const uint32_t *b, float *all)
{
    TRNI_LINES(float) sum[2][TRNI_UNIT_ROWS * TRNI_UNIT_WIDTH];
    const int done = mode == TRNI_UNIT_HALF ? TRNI_UNIT_WORDS : mode == TRNI_UNIT_NEVER ? 0 : (int)TRNI_MAX_DEPTH;
    const float *x = call->a, *w = call->b;
    trni_unit_chain(u, map, mode, 0, a, b, sum[0]);
    for (int c = 0; c < map->chains; c++) {
        float *s = sum[c & 1];
        const int lines = map->lines[c], left = lines > done ? lines - done : 0;
        if (c + 1 < map->chains) trni_unit_chain(u, map, mode, c + 1, a, b, sum[(c + 1) & 1]);
        if (left)
            u->kernels.go_on(s, x + (lines - left) * TRNI_UNIT_ROWS, w + (lines - left) * u->width, left,
                             call->map->group, u->width);
        u->kernels.sum(all, u->width, c ? all : NULL, u->width, s, u->width);
        x += lines * TRNI_UNIT_ROWS;
        w += lines * u->width;
    }
}

TRNI_LEAN void trni_unit_tiles(const trni_unit_work *u, const trni_unit_map *map, trni_unit_mode mode,
                               const trni_unit_call *call, const uint32_t *a, const uint32_t *b)
{
    TRNI_LINES(float) all[TRNI_UNIT_ROWS * TRNI_UNIT_WIDTH];
    for (int i = 0; i < call->map->lines; i++)
        __builtin_prefetch((const void *)(call->ahead + (uintptr_t)i * call->ahead_step), 0, 2);
    if (mode == TRNI_UNIT_WHOLE)
        u->tiles.bf16(all, a, b, map->rows / (int)TRNI_UNIT_WORDS, u->width);
    else
        trni_unit_chains(u, map, mode, call, a, b, all);
    u->kernels.sum(call->out, call->out_step, call->in, call->in_step, all, u->width);
}

TRNI_DRIVER trni_unit_mode trni_unit_mode_at(const trni_unit_work *u, const trni_unit_map *map, int64_t tile,
                                             int64_t strip, int64_t panel)
{
    if (u->hopeless) return TRNI_UNIT_NEVER;
    return trni_unit_mode_of(u->a_proof + tile * u->strips + strip, u->b_proof + tile * u->panels + panel, map);
}

/* False: the vectors' own kernel is to do it. */
TRNI_DRIVER bool trni_unit_strip(const trni_unit_work *u, int kernel, const trni_unit_call *call)
{
    if (!trni_unit_has(kernel)) return false;
    const trni_unit_map *map = trni_unit_map_at(u, call->map);
    const trni_unit_mode mode = trni_unit_mode_at(u, map, call->tile, call->strip, call->panel);
    const uint32_t *a = u->a + (size_t)call->tile * u->a_step + (size_t)call->strip * u->strip,
                   *b = u->b + (size_t)call->tile * u->b_step + (size_t)call->panel * u->panel;
    u->count[mode]++;
    trni_unit_tiles(u, map, mode, call, a, b);
    return true;
}

#endif /* TRNI_ARRAY_MATMUL_UNIT_H */

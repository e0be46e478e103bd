/* tiles.h - instructions of the engines that work on tiles, asked of trnmath and of the twin, in memory of every kind.
 * SPDX-License-Identifier: MIT
 *
 * A stage holds the memory of one call: views [P, free axes] with gaps, permuted axes, broadcasts, each between
 * canaries. The twin gets their codes, and what it makes is written into what the memory should become; after the call
 * all of the memory is compared, on every instruction set of the host, and put back.
 */
#ifndef TILES_H
#define TILES_H

#include "trnmath/trn_instruction.h"
#include "trnmath/trn_tensor.h"
#include "twin/bridge.h"
#include "twin/host.h"
#include "twin/twin_vector.h"
#include "twin/views.h"

enum { TILES_MOST = 32 };

typedef struct tiles_memory {
    unsigned char *at, *before, *want;
    size_t bytes;
} tiles_memory;

typedef struct tiles {
    tiles_memory memory[TILES_MOST];
    int count;
    bridge_values values;
    uint64_t *rng;
} tiles;

static inline tiles tiles_begin(uint64_t *rng)
{
    tiles s;
    memset(&s, 0, sizeof s);
    s.rng = rng;
    s.values = (bridge_values)cases_below(rng, BRIDGE_VALUES);
    return s;
}

static inline void tiles_end(tiles *s)
{
    for (int i = 0; i < s->count; i++) {
        free(s->memory[i].at);
        free(s->memory[i].before);
        free(s->memory[i].want);
    }
    s->count = 0;
}

/* ---- views ---- */

static inline int tiles_format_of(const trn_tensor *t)
{
    for (int f = 0; f <= TWIN_FORMATS; f++)
        if (bridge_format(f) == t->format) return f;
    abort();
}

static inline twin_format tiles_row(const trn_tensor *t)
{
    const int f = tiles_format_of(t);
    if (f != TWIN_CFP8 || !t->cfp8.exponent_bits) return twin_formats[f];
    return bridge_cfp8(t->cfp8.exponent_bits, t->cfp8.bias, t->cfp8.no_infinity);
}

static inline int tiles_elements(const trn_tensor *t)
{
    int64_t n = 1;
    for (int i = 1; i < t->rank; i++) n *= t->shape[i];
    return (int)n;
}

/* Element f of partition p, the free axes flattened in row-major order. */
static inline unsigned char *tiles_at(const trn_tensor *t, int p, int f)
{
    int64_t at = 0, step = 1, rest = f;
    bool packed = true;
    for (int i = 0; i < t->rank; i++) packed = packed && t->stride[i] == 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        const int64_t index = i ? rest % t->shape[i] : p;
        at += index * (packed ? step : t->stride[i]);
        step *= t->shape[i];
        if (i) rest /= t->shape[i];
    }
    return (unsigned char *)t->data + (size_t)at * bridge_bytes(tiles_format_of(t));
}

static inline tiles_memory *tiles_home(tiles *s, const trn_tensor *t)
{
    for (int i = 0; i < s->count; i++) {
        const uintptr_t at = (uintptr_t)t->data, from = (uintptr_t)s->memory[i].at;
        if (at >= from && at < from + s->memory[i].bytes) return &s->memory[i];
    }
    abort();
}

/* A code of special value in the format, or near a tie of the others, now and then. */
static inline uint32_t tiles_code(const tiles *s, int format)
{
    if (format == TWIN_CFP8) return cases_u32(s->rng) & 0xff;
    if (!cases_one_in(s->rng, 6)) return bridge_code(format, s->values, s->rng);
    const twin_format *f = &twin_formats[format];
    if (f->sort == TWIN_SORT_INTEGER || cases_one_in(s->rng, 4))
        return cases_u32(s->rng) >> (32 - f->bits) << f->low_zeros;
    const uint32_t any = cases_float(s->rng);
    const twin_number x = twin_from_f32(any);
    return twin_is_f32(f) ? any : twin_encode(f, &x, twin_plain(TWIN_NEAREST_EVEN));
}

/* The view's shape is there; strides, memory and elements are drawn. */
static inline void tiles_place(tiles *s, trn_tensor *t, bool input)
{
    if (s->count == TILES_MOST) abort();
    tiles_memory *m = &s->memory[s->count++];
    const int format = tiles_format_of(t);
    const size_t size = bridge_bytes(format);
    int64_t span = 1;
    for (int i = 0; i < t->rank; i++) span *= t->shape[i];
    if (span && !cases_one_in(s->rng, 3)) span = random_strides(t, input, false, s->rng);
    bool zero = true; /* strides that are all zero mean packed rows */
    for (int i = 0; i < t->rank; i++) zero = zero && t->stride[i] == 0;
    if (zero) span = (int64_t)t->shape[0] * tiles_elements(t);
    const size_t shift = (size_t)cases_below(s->rng, 8) * size;
    m->bytes = 2 * BRIDGE_MARGIN + shift + (size_t)span * size;
    m->at = (unsigned char *)malloc(m->bytes);
    if (!m->at) abort();
    memset(m->at, BRIDGE_FILL, m->bytes);
    t->data = m->at + BRIDGE_MARGIN + shift;
    for (int p = 0; p < t->shape[0]; p++)
        for (int f = 0; f < tiles_elements(t); f++) {
            const uint32_t code = tiles_code(s, format);
            memcpy(tiles_at(t, p, f), &code, size);
        }
    m->before = bridge_copy(m->at, m->bytes);
    m->want = bridge_copy(m->at, m->bytes);
}

/* F as a product of up to three free axes. */
static inline trn_tensor tiles_shape(tiles *s, int format, int partitions, int elements)
{
    int64_t shape[4] = { partitions, elements, 1, 1 };
    int rank = 2;
    for (; rank < 4 && elements > 1 && cases_one_in(s->rng, 3); rank++) {
        const int64_t whole = shape[rank - 1];
        int64_t outer = 1 + cases_below(s->rng, (int)(whole < 12 ? whole : 12));
        while (whole % outer) outer--;
        shape[rank - 1] = outer;
        shape[rank] = whole / outer;
    }
    if (elements == 1 && cases_one_in(s->rng, 3)) rank = 1;
    trn_tensor t = trn_tensor_nd(bridge_format(format), NULL, rank, shape);
    if (format == TWIN_CFP8 && cases_one_in(s->rng, 2)) {
        t.cfp8.exponent_bits = 2 + cases_below(s->rng, 4);
        t.cfp8.bias = 1 + cases_below(s->rng, 20);
        t.cfp8.no_infinity = cases_one_in(s->rng, 2);
    }
    return t;
}

static inline trn_tensor tiles_input(tiles *s, int format, int partitions, int elements)
{
    trn_tensor t = tiles_shape(s, format, partitions, elements);
    tiles_place(s, &t, true);
    return t;
}

static inline trn_tensor tiles_output(tiles *s, int format, int partitions, int elements)
{
    trn_tensor t = tiles_shape(s, format, partitions, elements);
    tiles_place(s, &t, false);
    return t;
}

/* dst may be in the place of a source, in a format of the same size: the source moves into dst's memory. */
static inline bool tiles_in_place(tiles *s, trn_tensor *src, const trn_tensor *dst)
{
    if (bridge_bytes(tiles_format_of(src)) != bridge_bytes(tiles_format_of(dst))) return false;
    const trn_format format = src->format;
    const trn_cfp8 cfp8 = src->cfp8;
    *src = *dst;
    src->format = format;
    src->cfp8 = cfp8;
    tiles_memory *m = tiles_home(s, dst);
    for (int p = 0; p < dst->shape[0]; p++)
        for (int f = 0; f < tiles_elements(dst); f++) {
            const uint32_t code = tiles_code(s, tiles_format_of(src));
            memcpy(tiles_at(src, p, f), &code, bridge_bytes(tiles_format_of(src)));
        }
    memcpy(m->before, m->at, m->bytes);
    memcpy(m->want, m->at, m->bytes);
    return true;
}

/* ---- values of the caller's own choice ---- */

static inline void tiles_put(tiles *s, const trn_tensor *t, int p, int f, uint32_t code)
{
    tiles_memory *m = tiles_home(s, t);
    unsigned char *at = tiles_at(t, p, f);
    const size_t size = bridge_bytes(tiles_format_of(t)), offset = (size_t)(at - m->at);
    memcpy(at, &code, size);
    memcpy(m->before + offset, &code, size);
    memcpy(m->want + offset, &code, size);
}

/* ---- the twin's side ---- */

static inline twin_grid tiles_load(tiles *s, const trn_tensor *t)
{
    if (t->rank == 0) return twin_no_grid();
    const twin_format row = tiles_row(t);
    const size_t size = bridge_bytes(tiles_format_of(t));
    const twin_grid tile = twin_grid_make(&row, (int)t->shape[0], tiles_elements(t));
    (void)s;
    for (int p = 0; p < tile.partitions; p++)
        for (int f = 0; f < tile.elements; f++) memcpy(twin_at(&tile, p, f), tiles_at(t, p, f), size);
    return tile;
}

/* What the call has to leave in t's memory. */
static inline void tiles_want(tiles *s, const trn_tensor *t, const twin_grid *tile)
{
    if (t->rank == 0) return;
    tiles_memory *m = tiles_home(s, t);
    const size_t size = bridge_bytes(tiles_format_of(t));
    for (int p = 0; p < tile->partitions; p++)
        for (int f = 0; f < tile->elements; f++)
            memcpy(m->want + (tiles_at(t, p, f) - m->at), twin_at(tile, p, f), size);
}

/* ---- after a call ---- */

static inline void tiles_restore(tiles *s)
{
    for (int i = 0; i < s->count; i++) memcpy(s->memory[i].at, s->memory[i].before, s->memory[i].bytes);
}

/* Which memory is not as it should be, and where; -1: none. */
static inline int tiles_wrong(const tiles *s, size_t *byte)
{
    for (int i = 0; i < s->count; i++) {
        const tiles_memory *m = &s->memory[i];
        if (memcmp(m->at, m->want, m->bytes) == 0) continue;
        for (*byte = 0; m->at[*byte] == m->want[*byte];) ++*byte;
        return i;
    }
    return -1;
}

/* Which element of t lies there, as p and f; false: none. */
static inline bool tiles_find(tiles *s, const trn_tensor *t, size_t byte, int *p, int *f)
{
    const tiles_memory *m = tiles_home(s, t);
    const size_t size = bridge_bytes(tiles_format_of(t));
    for (*p = 0; *p < t->shape[0]; ++*p)
        for (*f = 0; *f < tiles_elements(t); ++*f) {
            const size_t at = (size_t)(tiles_at(t, *p, *f) - m->at);
            if (byte >= at && byte < at + size) return true;
        }
    return false;
}

/* Fails with the element and its codes when memory is not what it should be. */
static inline void tiles_check(tiles *s, const trn_tensor *dst, const char *what, trn_isa isa, uint64_t seed)
{
    size_t byte = 0;
    const int wrong = tiles_wrong(s, &byte);
    if (wrong < 0) return;
    int p = -1, f = -1;
    uint32_t expected = 0, got = 0;
    if (dst && &s->memory[wrong] == tiles_home(s, dst) && tiles_find(s, dst, byte, &p, &f)) {
        const unsigned char *at = tiles_at(dst, p, f);
        memcpy(&got, at, bridge_bytes(tiles_format_of(dst)));
        memcpy(&expected, s->memory[wrong].want + (at - s->memory[wrong].at), bridge_bytes(tiles_format_of(dst)));
    }
    fail_msg("%s (seed %llu, isa %d): memory %d byte %zu, dst[%d, %d] of [%d, %d] %s: expected %08x, got %08x", what,
             (unsigned long long)seed, (int)isa, wrong, byte, p, f, dst ? (int)dst->shape[0] : -1,
             dst ? tiles_elements(dst) : -1, dst ? trn_format_name(dst->format) : "", (unsigned)expected,
             (unsigned)got);
}

/* ---- the fields that every instruction has ---- */

typedef struct tiles_how {
    twin_cast cast;
    trn_rounding rounding;
} tiles_how;

static inline tiles_how tiles_rounding(uint64_t *rng)
{
    tiles_how how;
    how.cast.mode = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    how.cast.seed = cases_next(rng);
    how.cast.stream = cases_one_in(rng, 2) ? 0 : cases_next(rng);
    how.cast.bits = 32;
    how.rounding = bridge_rounding(how.cast.mode);
    return how;
}

#define TILES_HOW(args, how)                                                                                           \
    do {                                                                                                               \
        (args).rounding = (how).rounding;                                                                              \
        (args).seed = (how).cast.seed;                                                                                 \
        (args).stream = (how).cast.stream;                                                                             \
    } while (0)

/* Sizes at which something changes: vectors, chunks, tiles. */
static inline int tiles_partitions(uint64_t *rng)
{
    static const int edge[] = { 0, 1, 2, 15, 16, 17, 31, 32, 33, 127, 128 };
    return cases_one_in(rng, 3) ? edge[cases_below(rng, 11)] : 1 + cases_below(rng, 6);
}

static inline int tiles_free(uint64_t *rng)
{
    static const int edge[] = { 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65 };
    if (cases_one_in(rng, 16)) return 1020 + cases_below(rng, 90);
    return cases_one_in(rng, 2) ? edge[cases_below(rng, 16)] : 1 + cases_below(rng, 40);
}

static inline void tiles_sizes(uint64_t *rng, int *partitions, int *elements)
{
    *partitions = tiles_partitions(rng);
    *elements = tiles_free(rng);
    while (*partitions * *elements > 3000 && *partitions > 1) *partitions /= 2;
}

/* Which formats may be drawn beside those that all generations have. */
typedef enum tiles_era {
    TILES_COMMON,
    TILES_OLD, /* E3M4 and configurable FP8: Trainium1 and 2 */
    TILES_NEW  /* E4M3FN, E8M0, E2M1: Trainium3 */
} tiles_era;
static tiles_era tiles_now;

static inline bool tiles_held(int format)
{
    if (format == TWIN_E2M3 || format == TWIN_E3M2) return false; /* by no engine */
    if (format == TWIN_E3M4 || format == TWIN_CFP8) return tiles_now == TILES_OLD;
    if (format == TWIN_E4M3FN || format == TWIN_E8M0 || format == TWIN_E2M1) return tiles_now == TILES_NEW;
    return true;
}

static inline int tiles_any_format(uint64_t *rng)
{
    for (;;) {
        const int format = cases_below(rng, TWIN_FORMATS + 1);
        if (tiles_held(format)) return format;
    }
}

static inline int tiles_float_format(uint64_t *rng)
{
    for (;;) {
        const int format = cases_below(rng, TWIN_I8);
        if (tiles_held(format)) return format;
    }
}

static inline int tiles_format(uint64_t *rng)
{
    static const int usual[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16 };
    return cases_one_in(rng, 2) ? usual[cases_below(rng, 4)] : tiles_any_format(rng);
}

#endif /* TILES_H */

/* array/matmul_pairs.h - numbers of BF16 two at a time: a dot product of pairs is two steps of a chain, in their order.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: which products go this way; words of two numbers in the places of packed strips and panels; one strip times
 *     one panel, by pairs where they give the bits of the chains, else by the vectors, from the same words.
 * DOES NOT: know an instruction: simd/matmul_pairs_avx512.h has VDPBF16PS, and here is what it computes in plain C.
 *
 * A pair adds the product of its high halves to the sum, which rounds, then that of its low halves: two fused
 * multiply-adds. It takes subnormal inputs for zeros and makes zeros of subnormal sums.
 *
 * Why it is exact. Let x and y be the least exponents of a strip's and a panel's numbers that are no zeros. Numbers
 * have 8 bits, so that all products are multiples of 2^(x + y - 14), and so are all sums, rounded or not. With x + y -
 * 14 >= -126 none of them is subnormal; where no number is, either, there is nothing to flush. Infinities and NaN come
 * out as they do of multiply-adds, but for the payload of NaN, which the end of a product replaces. A sum that starts
 * at +0 never becomes -0, whichever zero is added: so a pair of a double row may start at +0, too.
 *
 * In the places of a strip's floats: words, [row of a][word], then one more with x. Of a panel's: [word][column], then
 * a line whose first is y. Words are chain-major. A chain's earlier number is in the high half; the last of an odd
 * number of them has a zero beside it.
 *
 * KNOWN FROM: Intel SDM volume 2 (VDPBF16PS); its order of roundings from 64,000,000 sums (measured), the flush and the
 *     limit of exponents likewise, and proved (tests/proof/pairs.g).
 */
#ifndef TRNI_ARRAY_MATMUL_PAIRS_H
#define TRNI_ARRAY_MATMUL_PAIRS_H

#include "matrix_unit.h"
#include "product_define.h"

enum {
    TRNI_PAIRS_ROWS = 8,        /* of the tallest strip */
    TRNI_PAIRS_LEAST_ROWS = 2,  /* that are worth it */
    TRNI_PAIRS_LEAST = 1 << 14, /* multiply-adds, likewise */
    TRNI_PAIRS_DEPTH = 256,     /* numbers of a tile: of single rows, or of double ones */
    TRNI_PAIRS_WORDS = TRNI_PAIRS_DEPTH / 2,
    TRNI_PAIRS_CODES = 128,               /* of an 8-bit format, without signs */
    TRNI_PAIRS_TURNED = 16,               /* lanes that change places with words at a time */
    TRNI_PAIRS_ZERO = 0xffff,             /* in the place of a number along K: none */
    TRNI_PAIRS_EXPONENTS = 2 * 127 - 112, /* x + y, as their fields, at least */
    TRNI_PAIRS_WILD = (127 + 40) << 7     /* BF16 of 2^40: from there on, sums might overflow */
};

/* The words of one K tile. */
typedef struct trni_pairs_map {
    int chains, words, depth, group;
    int count[TRNI_MAX_CHAINS];                                      /* of each chain's words */
    uint16_t early[TRNI_PAIRS_WORDS], late[TRNI_PAIRS_WORDS];        /* number along K, or TRNI_PAIRS_ZERO */
    uint16_t from[TRNI_PAIRS_WORDS / 16][TRNI_PAIRS_DEPTH / 64][32]; /* of 16 words: which of 64 numbers are halves */
    uint32_t there[TRNI_PAIRS_WORDS / 16][TRNI_PAIRS_DEPTH / 64];    /* and whether they are among them at all */
    uint16_t four[32]; /* of 32 numbers: four words of each of four chains */
    bool is_four;      /* and 128 numbers are four times that */
} trni_pairs_map;

TRNI_FN int trni_pairs_words_of(const trni_map *map)
{
    int words = 0;
    for (int c = 0; c < map->chains.count; c++) words += (map->chains.length[c] * map->group + 1) / 2;
    return words;
}

/* Of 128 numbers, whether all are where 32 of them have theirs: word s of chain c has numbers 8 s + c and + 4. */
TRNI_FN bool trni_pairs_map_is_four(const trni_pairs_map *m)
{
    bool four = m->chains == 4 && m->depth == 128 && m->words == 64;
    for (int w = 0; w < m->words && four; w++) {
        const int number = w % 16 * 8 + w / 16;
        four = m->early[w] == number && m->late[w] == number + 4;
    }
    return four;
}

/* Number t is half `half` of word w: 0 the low one. */
TRNI_FN void trni_pairs_map_put(trni_pairs_map *m, int w, int half, int t)
{
    const int place = 2 * (w % 16) + half;
    if (t == TRNI_PAIRS_ZERO) return;
    m->from[w / 16][t / 64][place] = (uint16_t)(t % 64);
    m->there[w / 16][t / 64] |= 1u << place;
}

TRNI_LEAN void trni_pairs_map_halves(trni_pairs_map *m)
{
    memset(m->from, 0, sizeof m->from);
    memset(m->there, 0, sizeof m->there);
    for (int w = 0; w < m->words; w++) {
        trni_pairs_map_put(m, w, 1, m->early[w]);
        trni_pairs_map_put(m, w, 0, m->late[w]);
    }
}

TRNI_LEAN void trni_pairs_map_init(trni_pairs_map *m, const trni_map *map)
{
    uint16_t number[TRNI_MAX_DEPTH]; /* of a line */
    const uint16_t *line = number;
    m->chains = map->chains.count;
    m->depth = map->depth;
    m->group = map->group;
    m->words = 0;
    for (int i = 0; i < map->lines; i++) number[i] = TRNI_PAIRS_ZERO;
    for (int t = 0; t < map->depth; t++) number[map->line[t]] = (uint16_t)t;
    for (int c = 0; c < m->chains; c++) {
        const int lines = map->chains.length[c] * map->group;
        m->count[c] = (lines + 1) / 2;
        for (int i = 0; i < lines; i += 2, m->words++) {
            m->early[m->words] = line[i];
            m->late[m->words] = i + 1 < lines ? line[i + 1] : (uint16_t)TRNI_PAIRS_ZERO;
        }
        line += lines;
    }
    m->is_four = trni_pairs_map_is_four(m);
    for (int i = 0; i < 32 && m->is_four; i++) m->four[i] = (uint16_t)(i / 2 % 4 * 8 + i / 8 + (i % 2 ? 0 : 4));
    if (!m->is_four) trni_pairs_map_halves(m);
}

/* ---- packing ----
 *
 * seen[32] holds the least that was seen in each of 32 places: bits without sign, less one, so that zeros count as the
 * largest. */

enum {
    TRNI_PAIRS_SEEN = 32,
    TRNI_PAIRS_PANELS = 32 /* that are woven together, at most */
};

/* BF16 of n codes of 8 bits. */
#define TRNI_PAIRS_CODES_PARAMS uint16_t *dst, const unsigned char *src, int64_t n, const uint16_t *table
/* out[panel][word][width] of lanes that follow each other, numbers along K `line` apart, which are BF16, or codes of 8
 * bits where there is a table: panels are `panel` words apart, the last one has zeros beyond `lanes`. seen[panel][32];
 * *wild becomes true if any number is. */
#define TRNI_PAIRS_WEAVE_PARAMS                                                                                        \
    uint32_t *out, int64_t panel, int width, const void *src, int64_t line, const uint16_t *table, uintptr_t below,    \
        int64_t lanes, const trni_pairs_map *map, uint16_t *seen, bool *wild
/* out[lane][word] of lanes that are `line` apart, whose numbers follow each other. */
#define TRNI_PAIRS_JOIN_PARAMS                                                                                         \
    uint32_t *out, const uint16_t *src, int64_t line, int lanes, const trni_pairs_map *map, uint16_t *seen, bool *wild
/* out[word][lane] of 16 lanes that are `line` apart, whose numbers, or codes, follow each other, where map->is_four;
 * words are `width` apart. Memory is asked for what is `next` bytes on, unless that is 0. */
#define TRNI_PAIRS_TURN_PARAMS                                                                                         \
    uint32_t *out, int width, const void *src, int64_t line, const uint16_t *table, uintptr_t next,                    \
        const trni_pairs_map *map, uint16_t *seen, bool *wild
/* out[j][i] = in[i][j] of 16 x 16 words. */
#define TRNI_PAIRS_FLIP_PARAMS uint32_t *out, int out_step, const uint32_t *in, int in_step

TRNI_INLINE void trni_pairs_see(uint16_t *seen, bool *wild, uint32_t word)
{
    const uint32_t half[2] = { word >> 16 & 0x7fffu, word & 0x7fffu };
    for (int i = 0; i < 2; i++) {
        const uint16_t less = (uint16_t)(half[i] - 1);
        if (less < *seen) *seen = less;
        if (half[i] >= TRNI_PAIRS_WILD) *wild = true;
    }
}

/* BF16 of number i: of a code, if there is a table. */
TRNI_INLINE uint32_t trni_pairs_number(const void *src, int64_t i, const uint16_t *table)
{
    if (!table) return ((const uint16_t *)src)[i];
    const uint32_t code = ((const unsigned char *)src)[i];
    return table[code & 0x7f] | (code & 0x80) << 8;
}

TRNI_INLINE void trni_pairs_codes_body(TRNI_PAIRS_CODES_PARAMS)
{
    for (int64_t i = 0; i < n; i++) dst[i] = (uint16_t)trni_pairs_number(src, i, table);
}
TRNI_DISPATCH_ONE(trni_pairs_codes, (TRNI_PAIRS_CODES_PARAMS), (dst, src, n, table))

/* The numbers `early` and `late` of what is from the first on, `step` apart; the second may be none. */
TRNI_INLINE uint32_t trni_pairs_word(const void *src, int64_t first, int64_t step, const uint16_t *table,
                                     const trni_pairs_map *map, int w)
{
    const bool odd = map->late[w] == TRNI_PAIRS_ZERO;
    return trni_pairs_number(src, first + map->early[w] * step, table) << 16 |
           (odd ? 0 : trni_pairs_number(src, first + map->late[w] * step, table));
}

TRNI_INLINE void trni_pairs_weave_body(TRNI_PAIRS_WEAVE_PARAMS)
{
    (void)below;
    for (int64_t lane = 0; lane < lanes; lane += width, out += panel, seen += TRNI_PAIRS_SEEN)
        for (int w = 0; w < map->words; w++)
            for (int i = 0; i < width; i++) {
                out[w * width + i] = lane + i < lanes ? trni_pairs_word(src, lane + i, line, table, map, w) : 0;
                trni_pairs_see(seen, wild, out[w * width + i]);
            }
}
TRNI_DISPATCH_ONE(trni_pairs_weave, (TRNI_PAIRS_WEAVE_PARAMS),
                  (out, panel, width, src, line, table, below, lanes, map, seen, wild))

TRNI_INLINE void trni_pairs_join_body(TRNI_PAIRS_JOIN_PARAMS)
{
    for (; lanes > 0; lanes--, src += line, out += map->words)
        for (int w = 0; w < map->words; w++) {
            out[w] = trni_pairs_word(src, 0, 1, NULL, map, w);
            trni_pairs_see(seen, wild, out[w]);
        }
}
TRNI_DISPATCH_ONE(trni_pairs_join, (TRNI_PAIRS_JOIN_PARAMS), (out, src, line, lanes, map, seen, wild))

TRNI_COLD uint32_t trni_pairs_least_portable(const uint16_t *seen)
{
    uint32_t least = 0xffff;
    for (int i = 0; i < TRNI_PAIRS_SEEN; i++) least = seen[i] < least ? seen[i] : least;
    return least;
}

TRNI_INLINE void trni_pairs_flip_body(TRNI_PAIRS_FLIP_PARAMS)
{
    for (int i = 0; i < TRNI_PAIRS_TURNED; i++)
        for (int j = 0; j < TRNI_PAIRS_TURNED; j++) out[j * out_step + i] = in[i * in_step + j];
}
TRNI_DISPATCH_ONE(trni_pairs_flip, (TRNI_PAIRS_FLIP_PARAMS), (out, out_step, in, in_step))

typedef void trni_pairs_turn_fn(TRNI_PAIRS_TURN_PARAMS);
typedef uint32_t trni_pairs_least_fn(const uint16_t *seen);

/* What packs. */
typedef struct trni_pairs_packer {
    trni_pairs_codes_fn *codes;
    trni_pairs_weave_fn *weave;
    trni_pairs_join_fn *join;
    trni_pairs_turn_fn *turn; /* or NULL: joined, then flipped */
    trni_pairs_flip_fn *flip;
    trni_pairs_least_fn *least;
} trni_pairs_packer;

/* ---- one strip times one panel ---- */

/* A strip of `rows` times panels side by side: out[rows][width] = (in + : ) the sums of a's and b's words, chain after
 * chain, tile after tile; tiles' words are a_tile and b_tile apart, panels' b_panel. Of double rows each word's two
 * products are summed before they join their chain. */
typedef struct trni_pairs_call {
    const uint32_t *a, *b;
    const trni_map *map; /* of the numbers, for the vectors, which take one tile */
    int kernel, rows, width, tiles, panels;
    ptrdiff_t a_tile, b_tile, b_panel;
    trn_merge merge;
    const float *in;
    ptrdiff_t in_step;
    float *out;
    ptrdiff_t out_step;
    uintptr_t ahead, ahead_step; /* with each word a line is asked for, and the next is ahead_step on */
} trni_pairs_call;

typedef void trni_pairs_fn(const trni_pairs_map *m, const trni_pairs_call *call);

TRNI_INLINE float trni_pair_of(uint32_t a, uint32_t b, float sum)
{
    sum = trni_unit_flushed(__builtin_fmaf(trni_unit_flushed(trni_float(a & 0xffff0000u)),
                                           trni_unit_flushed(trni_float(b & 0xffff0000u)), sum));
    return trni_unit_flushed(
        __builtin_fmaf(trni_unit_flushed(trni_float(a << 16)), trni_unit_flushed(trni_float(b << 16)), sum));
}

TRNI_INLINE void trni_pairs_row(const trni_pairs_map *m, int width, const uint32_t *a, const uint32_t *b,
                                const float *in, float *out)
{
    float t[TRNI_MAX_WIDTH] = { 0 }, s[TRNI_MAX_WIDTH];
    for (int c = 0; c < m->chains; c++) {
        for (int j = 0; j < width; j++) s[j] = 0;
        for (int k = m->count[c]; k > 0; k--, a++, b += width)
            for (int j = 0; j < width; j++)
                s[j] = m->group == 1 ? trni_pair_of(*a, b[j], s[j]) : s[j] + trni_pair_of(*a, b[j], 0);
        for (int j = 0; j < width; j++) t[j] = c ? t[j] + s[j] : s[j];
    }
    for (int j = 0; j < width; j++) out[j] = in ? in[j] + t[j] : t[j];
}

/* The panel after this one. */
TRNI_INLINE void trni_pairs_call_on(trni_pairs_call *call)
{
    call->b += call->b_panel;
    call->out += call->width;
    if (call->in) call->in += call->width;
}

TRNI_COLD void trni_pairs_emulated_panel(const trni_pairs_map *m, const trni_pairs_call *call)
{
    const float *in = call->in;
    ptrdiff_t in_step = call->in_step;
    for (int t = 0; t < call->tiles; t++, in = call->out, in_step = call->out_step)
        for (int i = 0; i < call->rows; i++)
            trni_pairs_row(m, call->width, call->a + t * call->a_tile + i * m->words, call->b + t * call->b_tile,
                           in ? in + i * in_step : NULL, call->out + i * call->out_step);
}

/* By the emulator, which is for tests: any number of rows. */
TRNI_COLD void trni_pairs_emulated(const trni_pairs_map *m, const trni_pairs_call *call)
{
    trni_pairs_call panel = *call;
    for (int p = 0; p < call->panels; p++, trni_pairs_call_on(&panel)) trni_pairs_emulated_panel(m, &panel);
}

#define TRNI_PAIRS_SIMD TRNI_UNIT_SIMD
#if TRNI_PAIRS_SIMD
#include "../simd/matmul_pairs_avx512.h"
#endif

/* ---- the test ---- */

/* Does this host compute what the emulator does? One strip of four rows times a panel, in chains of odd lengths. */
TRNI_COLD bool trni_pairs_pass(trni_pairs_fn *multiply)
{
    enum { rows = 4, words = 16, width = 32 };
    TRNI_LINES(uint32_t) a[rows * words];
    TRNI_LINES(uint32_t) b[words * width];
    float got[rows * width], want[rows * width];
    trni_pairs_map map;
    trni_pairs_call call;
    memset(&map, 0, sizeof map);
    map.chains = 3;
    map.words = words;
    map.group = 1;
    map.count[0] = 5;
    map.count[1] = 8;
    map.count[2] = 3;
    memset(&call, 0, sizeof call);
    call.a = a;
    call.b = b;
    call.rows = rows;
    call.out_step = call.width = width;
    call.tiles = call.panels = 1;
    call.ahead = (uintptr_t)b;
    for (uint32_t round = 0; round < 4; round++) {
        trni_unit_fill(a, rows * words, 2 * round);
        trni_unit_fill(b, words * width, 2 * round + 1);
        call.out = got;
        multiply(&map, &call);
        call.out = want;
        trni_pairs_emulated(&map, &call);
        if (memcmp(got, want, sizeof want) != 0) return false;
    }
    return true;
}

/* Whoever asks first tries the processor's; the answer is kept beside that of trni_isa_known. */
TRNI_DRIVER bool trni_pairs_usable(trn_isa unit)
{
    if (unit == TRN_ISA_PAIRS_EMULATED) return true;
#if TRNI_PAIRS_SIMD
    if (unit != TRN_ISA_AVX512_BF16) return false;
    int known = trni_isa_known();
    if (!(known >> TRN_ISA_AVX512_BF16 & 1)) return false; /* not to be tried where it is no instruction */
    if (!(known & (TRNI_PAIRS_PASSES | TRNI_PAIRS_FAILS)))
        known = trni_isa_remember(trni_pairs_pass(trni_simd_pairs_4x1) ? TRNI_PAIRS_PASSES : TRNI_PAIRS_FAILS);
    return (known & TRNI_PAIRS_PASSES) != 0;
#else
    return false;
#endif
}

/* ---- a thread's pairs ---- */

typedef struct trni_pairs_work {
    bool on, emulated, asked; /* memory for b's next panels by the kernels: packing need not */
    trni_pairs_map whole, tail;
    trni_array vectors; /* where the proof fails */
    trni_pairs_fn *multiply[TRNI_KERNELS];
    uint16_t a_table[TRNI_PAIRS_CODES], b_table[TRNI_PAIRS_CODES];
    const uint16_t *a_codes, *b_codes; /* the tables, or NULL of BF16 */
    trni_pairs_packer pack;
    float *panel, *strip; /* opened, for the vectors */
} trni_pairs_work;

/* What 8 bits stand for, in BF16: false where that is not exact, signs are not the first bit, or 0 is not zero. */
TRNI_LEAN bool trni_pairs_table(uint16_t table[TRNI_PAIRS_CODES], const trni_operand *o)
{
    for (uint32_t code = 0; code < TRNI_PAIRS_CODES; code++) {
        const uint32_t x = trni_decode_row(&o->info, code), y = trni_decode_row(&o->info, code | 0x80);
        table[code] = (uint16_t)(x >> 16);
        if ((x & 0xffff) || (x && !code) || (!trni_is_nan_bits(x) && y != (x ^ TRNI_F32_SIGN)) ||
            trni_is_nan_bits(x) != trni_is_nan_bits(y))
            return false;
    }
    return true;
}

/* Are its numbers BF16's, or 8 bits wide? */
TRNI_FN bool trni_pairs_takes(const trni_operand *o) { return o->format == TRN_BF16 || o->info.bits == 8; }

/* And all of them numbers of BF16? Those need no table. */
TRNI_FN bool trni_pairs_codes_of(uint16_t table[TRNI_PAIRS_CODES], const trni_operand *o)
{
    return trni_pairs_takes(o) && (o->format == TRN_BF16 || trni_pairs_table(table, o));
}

/* The same, of who has no use for the table. */
TRNI_LEAN bool trni_pairs_made_of(const trni_operand *o)
{
    uint16_t table[TRNI_PAIRS_CODES];
    return trni_pairs_codes_of(table, o);
}

/* Lines that a lane of a packed tile takes, the one with the exponent among them; 0 of no tile. */
TRNI_FN int trni_pairs_lines(const trni_map *m) { return m->depth ? trni_pairs_words_of(m) + 1 : 0; }

/* Are words fewer than the floats in whose places they are? */
TRNI_FN bool trni_pairs_fit(const trni_map *whole, const trni_map *tail)
{
    const int w = trni_pairs_lines(whole), t = trni_pairs_lines(tail), lines = whole->depth ? whole->lines : 0;
    if (w > TRNI_PAIRS_WORDS + 1 || t > TRNI_PAIRS_WORDS + 1) return false;
    return w <= lines && w + t <= lines + (tail->depth ? tail->lines : 0);
}

/* Which orders and numbers of b: what a packed b depends on. */
TRNI_DRIVER bool trni_pairs_order(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    if (p->unit == TRN_ISA_AUTO || !trni_pairs_usable(p->unit)) return false;
    if (p->integer || p->spread == TRNI_QUADS || !trni_pairs_takes(&p->b)) return false;
    return n->merge == TRN_MERGE_ASCENDING || n->chains < 4;
}

/* Which products: what the emulator, which is for tests, does not ask is whether it pays. */
TRNI_DRIVER bool trni_pairs_apply(const trni_product *p)
{
    const double steps = (double)p->a.lanes * (double)p->b.lanes * (double)p->a.depth;
    if (p->a.lanes < TRNI_PAIRS_LEAST_ROWS || !trni_pairs_takes(&p->a) || !trni_pairs_order(p)) return false;
    return p->unit == TRN_ISA_PAIRS_EMULATED || steps >= (double)TRNI_PAIRS_LEAST;
}

TRNI_LEAN void trni_pairs_kernels(trni_pairs_work *s, int group)
{
    static const trni_pairs_packer plain = { trni_pairs_codes_portable, trni_pairs_weave_portable,
                                             trni_pairs_join_portable,  NULL,
                                             trni_pairs_flip_portable,  trni_pairs_least_portable };
    (void)group;
    s->pack = plain;
    for (int i = 0; i < TRNI_KERNELS; i++) s->multiply[i] = trni_pairs_emulated;
#if TRNI_PAIRS_SIMD
    static trni_pairs_fn *const kernel[2][TRNI_KERNELS] = {
        { trni_simd_pairs_8x1, trni_simd_pairs_4x1, trni_simd_pairs_1x1, NULL, NULL },
        { trni_simd_pairs_8x2, trni_simd_pairs_1x2, NULL, NULL, NULL }
    };
    static const trni_pairs_packer packer = { trni_simd_pairs_codes, trni_simd_pairs_weave, trni_simd_pairs_join,
                                              trni_simd_pairs_turn,  trni_simd_flip_avx512, trni_simd_pairs_least };
    if (s->emulated) return;
    memcpy(s->multiply, kernel[group - 1], sizeof s->multiply);
    s->pack = packer;
#endif
}

/* Off where this product's tiles, or formats, do not suit. `room` is trni_pairs_bytes. */
TRNI_LEAN void trni_pairs_init(trni_pairs_work *s, const trni_product *p, const trni_map *whole, const trni_map *tail,
                               void *room)
{
    s->whole.depth = s->tail.depth = 0;
    s->on =
        trni_pairs_fit(whole, tail) && trni_pairs_codes_of(s->a_table, &p->a) && trni_pairs_codes_of(s->b_table, &p->b);
    if (!s->on) return;
    if (whole->depth) trni_pairs_map_init(&s->whole, whole);
    if (tail->depth) trni_pairs_map_init(&s->tail, tail);
    s->emulated = p->unit == TRN_ISA_PAIRS_EMULATED || !TRNI_PAIRS_SIMD;
    s->a_codes = p->a.format == TRN_BF16 ? NULL : s->a_table;
    s->b_codes = p->b.format == TRN_BF16 ? NULL : s->b_table;
    s->vectors = trni_array_of(trni_spread_group(p->spread), p->isa);
    s->panel = (float *)room;
    s->strip = s->panel + (int)TRNI_PAIRS_DEPTH * TRNI_MAX_WIDTH;
    trni_pairs_kernels(s, trni_spread_group(p->spread));
}

/* For a panel and a strip that are opened. */
TRNI_FN size_t trni_pairs_bytes(void)
{
    return sizeof(float) * (size_t)TRNI_PAIRS_DEPTH * (size_t)((int)TRNI_MAX_WIDTH + (int)TRNI_PAIRS_ROWS);
}

TRNI_INLINE const trni_pairs_map *trni_pairs_map_at(const trni_pairs_work *s, const trni_map *map)
{
    return s->whole.depth == map->depth ? &s->whole : &s->tail;
}

/* ---- strips and panels ---- */

/* n codes that follow each other, as BF16. */
TRNI_FN void trni_pairs_numbers(const trni_pairs_work *s, const trni_operand *o, const uint16_t *codes, int64_t lane,
                                int64_t k, int64_t n, bool lanes, uint16_t *dst)
{
    const int64_t step = lanes ? o->lane_stride : o->depth_stride;
    const unsigned char *at = trni_operand_at(o, lane, k);
    unsigned char line[TRNI_PAIRS_DEPTH];
    if (codes && step == 1) s->pack.codes(dst, at, n, codes);
    if (codes && step != 1) {
        for (int64_t i = 0; i < n; i++) line[i] = at[i * step];
        s->pack.codes(dst, line, n, codes);
    }
    for (int64_t i = 0; i < n && !codes; i++) memcpy(dst + i, at + i * step * (int64_t)sizeof *dst, sizeof *dst);
}

/* May numbers be read where they are? */
TRNI_FN bool trni_pairs_direct(const trni_operand *o, const uint16_t *codes)
{
    return codes || (uintptr_t)o->data % sizeof(uint16_t) == 0;
}

/* out[lane][word] of at most 16 lanes, whatever their strides. */
TRNI_LEAN void trni_pairs_join_lanes(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                     const uint16_t *codes, int64_t lane, int lanes, int64_t k, uint32_t *out,
                                     uint16_t *seen, bool *wild)
{
    TRNI_LINES(uint16_t) room[TRNI_PAIRS_TURNED * TRNI_PAIRS_DEPTH];
    if (!codes && trni_pairs_direct(o, codes) && o->depth_stride == 1) {
        s->pack.join(out, (const uint16_t *)(const void *)trni_operand_at(o, lane, k), o->lane_stride, lanes, map, seen,
                     wild);
        return;
    }
    for (int i = 0; i < lanes; i++)
        trni_pairs_numbers(s, o, codes, lane + i, k, map->depth, false, room + i * map->depth);
    s->pack.join(out, room, map->depth, lanes, map, seen, wild);
}

/* out[panel][word][width] of lanes that follow each other. asked: memory was, for what comes next. */
TRNI_LEAN void trni_pairs_weave_lanes(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                      const uint16_t *codes, bool asked, int64_t lane, int64_t lanes, int64_t k,
                                      uint32_t *out, int64_t panel, int width, uint16_t *seen, bool *wild)
{
    enum { together = 32 }; /* a whole panel */
    TRNI_LINES(uint16_t) room[(int)TRNI_PAIRS_DEPTH * together];
    const bool last = k + map->depth >= o->depth;
    const uintptr_t below = asked || last ? 0 : (uintptr_t)(map->depth * o->depth_stride * o->bytes);
    if (trni_pairs_direct(o, codes)) {
        s->pack.weave(out, panel, width, trni_operand_at(o, lane, k), o->depth_stride, codes, below, lanes, map, seen,
                      wild);
        return;
    }
    for (int64_t from = 0; from < lanes; from += together) {
        const int64_t some = trni_min64(lanes - from, together);
        for (int t = 0; t < map->depth; t++)
            trni_pairs_numbers(s, o, NULL, lane + from, k + t, some, true, room + t * together);
        s->pack.weave(out + from / width * panel, panel, width, room, together, NULL, 0, some, map,
                      seen + from / width * TRNI_PAIRS_SEEN, wild);
    }
}

/* The exponent's field of what is least: 0 of subnormals, more than all others of zeros alone. */
TRNI_FN void trni_pairs_mark(const trni_pairs_work *s, uint32_t *line, int n, const uint16_t *seen)
{
    const uint32_t least = s->pack.least(seen), exponent = least == 0xffff ? 0x200 : (least + 1) >> 7;
    for (int i = 0; i < n; i++) line[i] = exponent;
}

/* A strip of a whose lanes follow each other: 16 of them are woven, or as many as there are, and turned. */
TRNI_LEAN void trni_pairs_strip_woven(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                      int64_t lane, int lanes, int64_t k, uint32_t *dst, uint16_t *seen, bool *wild)
{
    enum { side = TRNI_PAIRS_TURNED };
    TRNI_LINES(uint32_t) woven[((int)TRNI_PAIRS_WORDS + side) * side];
    TRNI_LINES(uint32_t) turned[side * side];
    trni_pairs_weave_lanes(s, o, map, s->a_codes, false, lane, lanes, k, woven, 0, side, seen, wild);
    for (int w = 0; w < map->words; w += side) {
        const int some = map->words - w < side ? map->words - w : (int)side;
        s->pack.flip(turned, side, woven + w * side, side);
        for (int i = 0; i < lanes; i++) memcpy(dst + i * map->words + w, turned + i * side, sizeof *dst * (size_t)some);
    }
}

/* Lanes of a whose first is `lane`: a strip. */
TRNI_DRIVER void trni_pairs_strip_of(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                     int64_t lane, int lanes, int64_t k, uint32_t *dst, bool *wild)
{
    uint16_t seen[TRNI_PAIRS_SEEN];
    const bool woven = o->lane_stride == 1 && o->depth_stride != 1 && lanes > 1;
    memset(seen, 0xff, sizeof seen);
    if (woven)
        trni_pairs_strip_woven(s, o, map, lane, lanes, k, dst, seen, wild);
    else
        trni_pairs_join_lanes(s, o, map, s->a_codes, lane, lanes, k, dst, seen, wild);
    trni_pairs_mark(s, dst + lanes * map->words, lanes, seen);
}

/* A panel of b whose columns do not follow each other: words of 16 columns are turned. */
TRNI_LEAN void trni_pairs_panel_turned(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                       int64_t lane, int lanes, int width, int64_t k, uint32_t *dst, uint16_t *seen,
                                       bool *wild)
{
    enum { side = TRNI_PAIRS_TURNED };
    TRNI_LINES(uint32_t) row[(int)TRNI_PAIRS_WORDS * side + side];
    TRNI_LINES(uint32_t) turned[side * side];
    const bool turns = s->pack.turn && map->is_four && o->depth_stride == 1 && trni_pairs_direct(o, s->b_codes);
    const uintptr_t next = s->asked ? 0 : (uintptr_t)(side * o->lane_stride * o->bytes);
    for (int i = 0; i < width; i += side) {
        const int some = lanes - i < side ? lanes - i : (int)side;
        if (some == side && turns) {
            s->pack.turn(dst + i, width, trni_operand_at(o, lane + i, k), o->lane_stride, s->b_codes, next, map, seen,
                         wild);
            continue;
        }
        if (some < side) memset(row, 0, sizeof *row * (size_t)(side * map->words));
        if (some > 0) trni_pairs_join_lanes(s, o, map, s->b_codes, lane + i, some, k, row, seen, wild);
        for (int w = 0; w < map->words; w += side) { /* (the last lines of a block may be words of the next lane) */
            const bool whole = w + side <= map->words;
            s->pack.flip(whole ? dst + w * width + i : turned, whole ? width : (int)side, row + w, map->words);
            for (int t = w; t < map->words && !whole; t++)
                memcpy(dst + t * width + i, turned + (t - w) * side, sizeof turned / side);
        }
    }
}

/* Columns [lane, lane + lanes) of b: panel after panel. */
TRNI_DRIVER void trni_pairs_panels_of(const trni_pairs_work *s, const trni_operand *o, const trni_pairs_map *map,
                                      int64_t lane, int64_t lanes, int width, int64_t k, uint32_t *dst, bool *wild)
{
    uint16_t seen[TRNI_PAIRS_PANELS][TRNI_PAIRS_SEEN];
    const int64_t panel = (int64_t)(map->words + 1) * width, together = (int64_t)TRNI_PAIRS_PANELS * width;
    for (int64_t from = 0; from < lanes; from += together) {
        const int64_t some = trni_min64(lanes - from, together);
        uint32_t *const at = dst + from / width * panel;
        memset(seen, 0xff, sizeof seen);
        if (o->lane_stride == 1)
            trni_pairs_weave_lanes(s, o, map, s->b_codes, s->asked, lane + from, some, k, at, panel, width, seen[0],
                                   wild);
        for (int64_t i = 0; i * width < some; i++) {
            const int left = (int)trni_min64(some - i * width, width);
            if (o->lane_stride != 1)
                trni_pairs_panel_turned(s, o, map, lane + from + i * width, left, width, k, at + i * panel, seen[i],
                                        wild);
            trni_pairs_mark(s, at + i * panel + (int64_t)map->words * width, width, seen[i]);
        }
    }
}

/* ---- the vectors, from words ---- */

/* The numbers of lanes [first, first + lanes) as [line][lanes]: words are at [lane][lane_step] [word][word_step]. */
TRNI_LEAN void trni_pairs_open(const trni_map *map, const trni_pairs_map *m, const uint32_t *word, int lane_step,
                               int word_step, int lanes, float *dst)
{
    for (int c = 0; c < m->chains; c++)
        for (int line = 0; line < map->chains.length[c] * map->group; line++, dst += lanes) {
            const uint32_t *at = word + line / 2 * word_step;
            for (int i = 0; i < lanes; i++)
                dst[i] = trni_float(line % 2 ? at[i * lane_step] << 16 : at[i * lane_step] & 0xffff0000u);
            if (line + 1 == map->chains.length[c] * map->group) word += (line / 2 + 1) * word_step;
        }
}

/* Do pairs give the chains' bits, of these least exponents' fields? */
TRNI_INLINE bool trni_pairs_exact(uint32_t a, uint32_t b) { return a && b && a + b >= (uint32_t)TRNI_PAIRS_EXPONENTS; }

/* Do they here? */
TRNI_INLINE bool trni_pairs_hold(const trni_pairs_map *m, const uint32_t *a, int rows, const uint32_t *b, int width)
{
    return trni_pairs_exact(a[rows * m->words], b[m->words * width]);
}

/* The least that tiles `step` apart have in a strip, or panel, of so many lanes. */
TRNI_INLINE uint32_t trni_pairs_least_of(const trni_pairs_map *m, const uint32_t *packed, int lanes, int tiles,
                                         ptrdiff_t step)
{
    uint32_t least = UINT32_MAX;
    for (const uint32_t *mark = packed + m->words * lanes; tiles > 0; tiles--, mark += step)
        if (*mark < least) least = *mark;
    return least;
}

TRNI_LEAN void trni_pairs_by_vectors(const trni_pairs_work *s, const trni_pairs_map *m, const trni_pairs_call *call,
                                     bool *opened)
{
    const trni_array *array = &s->vectors;
    if (!*opened) trni_pairs_open(call->map, m, call->b, 1, call->width, call->width, s->panel);
    *opened = true;
    for (int done = 0; done < call->rows;) {
        const int kernel = trni_strip_kernel(array, call->rows - done), rows = array->rows[kernel];
        trni_pairs_open(call->map, m, call->a + done * m->words, m->words, 1, rows, s->strip);
        trni_strip_times_panel(array, kernel, s->strip, s->panel, call->map, call->merge,
                               call->in ? call->in + done * call->in_step : NULL, call->in_step,
                               call->out + done * call->out_step, call->out_step, (uintptr_t)s->panel, 0);
        done += rows;
    }
}

/* One tile; returns whether pairs did it. *opened: the vectors have had this panel before. */
TRNI_DRIVER bool trni_pairs_multiply(const trni_pairs_work *s, const trni_pairs_call *call, bool *opened)
{
    const trni_pairs_map *m = trni_pairs_map_at(s, call->map);
    const bool hold = trni_pairs_hold(m, call->a, call->rows, call->b, call->width);
    if (hold)
        s->multiply[call->kernel](m, call);
    else
        trni_pairs_by_vectors(s, m, call, opened);
    return hold;
}

/* All tiles of one panel: as many at a time as are proven. count[2]: those that the vectors did, that pairs did. */
TRNI_DRIVER void trni_pairs_tiles(const trni_pairs_work *s, trni_pairs_call *call, int64_t *count)
{
    const trni_pairs_map *m = trni_pairs_map_at(s, call->map);
    for (int left = call->tiles, run; left > 0; left -= run) {
        for (run = 0; run < left && trni_pairs_hold(m, call->a + run * call->a_tile, call->rows,
                                                    call->b + run * call->b_tile, call->width);)
            run++;
        call->tiles = run;
        if (run) s->multiply[call->kernel](m, call);
        count[1] += run;
        if (!run) {
            bool opened = false;
            trni_pairs_by_vectors(s, m, call, &opened);
            count[0]++;
            run = 1;
        }
        call->a += run * call->a_tile;
        call->b += run * call->b_tile;
        call->in = call->out;
        call->in_step = call->out_step;
    }
}

/* All tiles of all panels, whose least exponent is known: of a strip in one call, where all of them are proven. */
TRNI_DRIVER void trni_pairs_panels(const trni_pairs_work *s, trni_pairs_call *call, uint32_t least, int64_t *count)
{
    const trni_pairs_map *m = trni_pairs_map_at(s, call->map);
    if (trni_pairs_exact(trni_pairs_least_of(m, call->a, call->rows, call->tiles, call->a_tile), least)) {
        s->multiply[call->kernel](m, call);
        count[1] += (int64_t)call->tiles * call->panels;
        return;
    }
    for (int left = call->panels; left > 0; left--, trni_pairs_call_on(call)) {
        trni_pairs_call panel = *call;
        panel.panels = 1;
        trni_pairs_tiles(s, &panel, count);
    }
}

#endif /* TRNI_ARRAY_MATMUL_PAIRS_H */

/* collective_memory.h - views of many ranks in one block of memory that is known to the last byte.
 * SPDX-License-Identifier: MIT
 *
 * A test lays out views, fills them, writes into `want` what each element should become, calls, and compares
 * everything. Defined before: rng.
 */
#ifndef COLLECTIVE_MEMORY_H
#define COLLECTIVE_MEMORY_H

#include "trnmath/trn_collective.h"
#include "twin/host.h"
#include "twin/twin_collective.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { ROOM = 1 << 20, VIEWS = COLL_RANKS };

static unsigned char memory[ROOM], want[ROOM];
static size_t used;

static inline int below(int n) { return cases_below(&rng, n); }
static inline bool one_in(int n) { return cases_one_in(&rng, n); }

/* ---- formats, on both sides ---- */

static const struct {
    trn_format format;
    int twin;
} formats[] = { { TRN_F32, TWIN_F32 },      { TRN_BF16, TWIN_BF16 },    { TRN_F16, TWIN_F16 },
                { TRN_F8_E4M3, TWIN_E4M3 }, { TRN_F8_E5M2, TWIN_E5M2 }, { TRN_F8_E4M3FN, TWIN_E4M3FN },
                { TRN_TF32, TWIN_TF32 },    { TRN_F8_E3M4, TWIN_E3M4 }, { TRN_F8_E8M0, TWIN_E8M0 },
                { TRN_F6_E2M3, TWIN_E2M3 }, { TRN_F6_E3M2, TWIN_E3M2 }, { TRN_F4_E2M1, TWIN_E2M1 },
                { TRN_I8, TWIN_I8 },        { TRN_U8, TWIN_U8 },        { TRN_I16, TWIN_I16 },
                { TRN_U16, TWIN_U16 },      { TRN_I32, TWIN_I32 },      { TRN_U32, TWIN_U32 },
                { TRN_CFP8, TWIN_CFP8 } };
enum { PLAIN_FORMATS = COUNT(formats) - 1 }; /* cFP8 is what a view makes of it: it cannot travel */

static inline const twin_format *twin_of(trn_format format)
{
    for (int i = 0; i < COUNT(formats); i++)
        if (formats[i].format == format) return &twin_formats[formats[i].twin];
    abort();
}

static inline size_t bytes_of(trn_format f) { return (size_t)(twin_of(f)->bits + 7) / 8; }

static inline trn_format any_format(void) { return formats[one_in(2) ? below(8) : below(PLAIN_FORMATS)].format; }

/* A cFP8 view's format is its own; `own` is written then. */
static inline const twin_format *twin_of_view(const trn_tensor *t, twin_format *own)
{
    const trn_cfp8 c = t->cfp8;
    if (t->format != TRN_CFP8) return twin_of(t->format);
    *own = twin_formats[TWIN_CFP8];
    if (c.exponent_bits) {
        own->e = c.exponent_bits;
        own->m = 7 - c.exponent_bits;
        own->bias = c.bias;
    }
    own->beyond = c.no_infinity ? TWIN_HAS_ONE_NAN : TWIN_HAS_INFINITY;
    return own;
}

static inline void draw_cfp8(trn_tensor *t)
{
    if (t->format != TRN_CFP8 || one_in(3)) return;
    t->cfp8.exponent_bits = 2 + below(4);
    t->cfp8.bias = below(20);
    t->cfp8.no_infinity = one_in(2);
}

/* ---- views ---- */

/* Strides for a view that must begin where `used` says; its place is taken. */
static inline void take_place(trn_tensor *t)
{
    const size_t span = view_bytes(t);
    used += 4 + 4 * (size_t)below(4);
    t->data = span || one_in(2) ? memory + used : NULL;
    used = (used + span + 3) / 4 * 4;
    if (used + 64 > ROOM) abort();
}

/* n elements in up to three axes, with gaps and permuted, behind all other views. */
static inline trn_tensor new_view(trn_format format, int64_t n, bool input)
{
    int64_t shape[3] = { n, 1, 1 };
    const int rank = 1 + below(3);
    for (int i = 1; i < rank; i++) {
        int64_t inner = 1 + below(5);
        while (n && shape[i - 1] % inner) inner--;
        shape[i] = inner;
        shape[i - 1] /= inner;
    }
    trn_tensor t = trn_tensor_nd(format, NULL, rank, shape);
    draw_cfp8(&t);
    if (n && one_in(2)) random_strides(&t, input, false, &rng);
    take_place(&t);
    return t;
}

static inline unsigned char *place(const trn_tensor *t, int64_t i)
{
    int64_t stride[TRN_MAX_RANK], at = 0;
    view_strides(t, stride);
    for (int k = t->rank - 1; k >= 0; k--) {
        at += i % t->shape[k] * stride[k];
        i /= t->shape[k];
    }
    return (unsigned char *)t->data + (size_t)at * bytes_of(t->format);
}

static inline uint32_t get(const trn_tensor *t, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, place(t, i), bytes_of(t->format));
    return code;
}

static inline void put(const trn_tensor *t, int64_t i, uint32_t code)
{
    memcpy(place(t, i), &code, bytes_of(t->format));
}

static inline void expect(const trn_tensor *t, int64_t i, uint32_t code)
{
    memcpy(want + (place(t, i) - memory), &code, bytes_of(t->format));
}

/* ---- contents ---- */

typedef enum content { PLAIN, TROUBLE, BYTES, CONTENTS } content;

static inline void fill(const trn_tensor *t, content what)
{
    const int64_t n = trn_tensor_elements(*t);
    twin_format own;
    for (int64_t i = 0; i < n && what != BYTES; i++) {
        const float x = (float)(below(2001) - 1000) * 0.0078125f * (one_in(9) ? 16.0f : 1.0f);
        const uint32_t bits = what == TROUBLE ? cases_float(&rng) : cases_bits_of(x);
        put(t, i, coll_encode(twin_of_view(t, &own), bits, twin_plain(TWIN_NEAREST_EVEN)));
    }
}

/* All views are laid out and may be filled. */
static inline void memory_begin(void)
{
    for (size_t i = 0; i < used + 64; i += 8) {
        const uint64_t word = cases_next(&rng);
        memcpy(memory + i, &word, sizeof word);
    }
}

/* All views are filled; what `want` says of them may change. */
static inline void memory_expect(void) { memcpy(want, memory, used + 64); }

static inline void memory_check(const char *what)
{
    for (size_t i = 0; i < used + 64; i++)
        if (memory[i] != want[i]) fail_msg("%s: byte %zu is %02x, not %02x", what, i, memory[i], want[i]);
}

/* ---- how it is called ---- */

/* Any instruction set and number of threads: the bits must be the same. */
static inline void any_host(trn_collective_args *a)
{
    static const int threads[] = { 1, 2, 3, 7 };
    do a->isa = one_in(3) ? TRN_ISA_AUTO : all_isas[below(COUNT(all_isas))];
    while (a->isa != TRN_ISA_AUTO && !trn_isa_supported(a->isa));
    with_threads(one_in(4) ? threads[below(COUNT(threads))] : 1);
}

/* How the arguments' wire is rounded, in the twin's words. */
static inline coll_arith arith_of(const trn_collective_args *a, trn_format wire, int group)
{
    static const twin_mode mode_of[] = {
        [TRN_NEAREST_EVEN] = TWIN_NEAREST_EVEN,       [TRN_STOCHASTIC] = TWIN_STOCHASTIC,
        [TRN_TOWARD_ZERO] = TWIN_TOWARD_ZERO,         [TRN_TOWARD_POSITIVE] = TWIN_TOWARD_POSITIVE,
        [TRN_TOWARD_NEGATIVE] = TWIN_TOWARD_NEGATIVE, [TRN_TO_ODD] = TWIN_TO_ODD
    };
    coll_arith m;
    memset(&m, 0, sizeof m);
    m.wire = twin_of(wire);
    m.accumulate = twin_of(a->accumulate ? a->accumulate : TRN_F32);
    m.way = twin_plain(mode_of[a->rounding]);
    m.way.random_bits = a->sr_bits ? a->sr_bits : 32;
    m.way.saturate = a->overflow == TRN_SATURATE;
    m.seed = a->seed;
    m.stream = a->stream + ((uint64_t)group << 32);
    return m;
}

/* The wire's code of element i of rank r's source, and what its code becomes in a destination. */
static inline uint32_t sent(const coll_arith *m, const trn_tensor *src, int rank, int64_t i)
{
    twin_format own;
    const twin_way way = coll_way(m, m->stream + (uint64_t)rank, (uint64_t)i);
    return coll_cast(m->wire, twin_of_view(src, &own), get(src, i), way);
}

static inline void expect_received(const coll_arith *m, const trn_tensor *dst, int64_t i, uint32_t code)
{
    twin_format own;
    const twin_way way = coll_way(m, m->stream + UINT32_MAX, (uint64_t)i);
    expect(dst, i, coll_cast(twin_of_view(dst, &own), m->wire, code, way));
}

static inline void draw_arithmetic(trn_collective_args *a)
{
    static const int bits[] = { 0, 8, 16, 32 };
    a->rounding = one_in(4) ? TRN_NEAREST_EVEN : one_in(2) ? TRN_STOCHASTIC : (trn_rounding)below(TRN_ROUNDING_COUNT);
    a->overflow = one_in(2) ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    a->sr_bits = one_in(2) ? bits[below(COUNT(bits))] : below(33);
    a->seed = cases_next(&rng);
    a->stream = one_in(2) ? cases_next(&rng) : (uint64_t)below(5);
    a->accumulate = one_in(3) ? any_format() : TRN_FORMAT_UNSET;
    a->granule = one_in(2) ? below(4) : 0;
}

#endif /* COLLECTIVE_MEMORY_H */

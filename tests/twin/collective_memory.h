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
                { TRN_TF32, TWIN_TF32 },    { TRN_F8_E3M4, TWIN_E3M4 } };

static inline const twin_format *twin_of(trn_format format)
{
    for (int i = 0; i < COUNT(formats); i++)
        if (formats[i].format == format) return &twin_formats[formats[i].twin];
    abort();
}

static inline size_t bytes_of(trn_format f) { return (size_t)twin_of(f)->bits / 8; }

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
    for (int64_t i = 0; i < n && what != BYTES; i++) {
        const float x = (float)(below(2001) - 1000) * 0.0078125f * (one_in(9) ? 16.0f : 1.0f);
        const uint32_t bits = what == TROUBLE ? cases_float(&rng) : cases_bits_of(x);
        put(t, i, coll_encode(twin_of(t->format), bits, twin_plain(TWIN_NEAREST_EVEN)));
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
    coll_arith m;
    memset(&m, 0, sizeof m);
    m.wire = twin_of(wire);
    m.accumulate = twin_of(a->accumulate ? a->accumulate : TRN_F32);
    m.way = twin_plain(a->rounding == TRN_STOCHASTIC    ? TWIN_STOCHASTIC
                       : a->rounding == TRN_TOWARD_ZERO ? TWIN_TOWARD_ZERO
                                                        : TWIN_NEAREST_EVEN);
    m.way.random_bits = a->sr_bits ? a->sr_bits : 32;
    m.way.saturate = a->overflow == TRN_SATURATE;
    m.seed = a->seed;
    m.stream = a->stream + ((uint64_t)group << 32);
    return m;
}

/* The wire's code of element i of rank r's source, and what its code becomes in a destination. */
static inline uint32_t sent(const coll_arith *m, const trn_tensor *src, int rank, int64_t i)
{
    return coll_cast(m->wire, twin_of(src->format), get(src, i), coll_way(m, m->stream + (uint64_t)rank, (uint64_t)i));
}

static inline void expect_received(const coll_arith *m, const trn_tensor *dst, int64_t i, uint32_t code)
{
    expect(dst, i, coll_cast(twin_of(dst->format), m->wire, code, coll_way(m, m->stream + UINT32_MAX, (uint64_t)i)));
}

static inline void draw_arithmetic(trn_collective_args *a)
{
    static const trn_rounding rounding[] = { TRN_NEAREST_EVEN, TRN_NEAREST_EVEN, TRN_STOCHASTIC, TRN_TOWARD_ZERO };
    static const int bits[] = { 0, 0, 8, 16, 11, 1, 32 };
    a->rounding = rounding[below(COUNT(rounding))];
    a->overflow = one_in(2) ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    a->sr_bits = bits[below(COUNT(bits))];
    a->seed = cases_next(&rng);
    a->stream = one_in(2) ? cases_next(&rng) : (uint64_t)below(5);
    a->accumulate = one_in(3) ? formats[below(COUNT(formats))].format : TRN_FORMAT_UNSET;
    a->granule = one_in(2) ? below(4) : 0;
}

#endif /* COLLECTIVE_MEMORY_H */

/* streams.c - what memory can do: loops that read and write as many bytes as a conversion, no more.
 * SPDX-License-Identifier: MIT
 *
 * For every `in` vectors that are read, `out` are written: all that is read is or-ed together, so that nothing can be
 * left out, and stored `out` times. Ordinary stores or stores past the caches, each with and without
 * fetching ahead, in the widest vectors of this host.
 */
#include "convert.h"

#include "bench/common/kernels.h"

#if TB_X86
#include <immintrin.h>
#endif

enum { AHEAD = 4096 }; /* bytes */

/* in, out: every ratio of 1, 2 and 4 bytes */
#define SHAPES(X) X(4, 1) X(2, 1) X(1, 1) X(1, 2) X(1, 4)
enum { SHAPE_COUNT = 5 };

typedef void stream_run(char *dst, const char *src, size_t blocks);

/* UNROLL times `in` vectors and `out` vectors make a block. The loops over them have constant counts; the compiler
 * unrolls them. (The formatter takes _Pragma for a word of the loop.) */
enum { UNROLL = 4 };
/* clang-format off */
#define STREAM(name, target, vector, load, join, store, in, out, past, ahead)                       \
    target static void name(char *dst, const char *src, size_t blocks)                              \
    {                                                                                               \
        enum { WIDTH = sizeof(vector), IN = (in) * WIDTH, OUT = (out) * WIDTH };                    \
        for (; blocks > 0; blocks--, src += UNROLL * IN, dst += UNROLL * OUT) {                     \
            if (ahead)                                                                              \
                _Pragma("GCC unroll 16")                                                            \
                for (int i = 0; i < UNROLL * IN; i += 64) __builtin_prefetch(src + AHEAD + i, 0, 3); \
            _Pragma("GCC unroll 4")                                                                 \
            for (int u = 0; u < UNROLL; u++) {                                                      \
                vector all = load(src + u * IN);                                                    \
                _Pragma("GCC unroll 4")                                                             \
                for (int i = WIDTH; i < IN; i += WIDTH) all = join(all, load(src + u * IN + i));    \
                _Pragma("GCC unroll 4")                                                             \
                for (int i = 0; i < OUT; i += WIDTH) store(dst + u * OUT + i, all, past);           \
            }                                                                                       \
        }                                                                                           \
        fence(past);                                                                                \
    }
/* clang-format on */

#define ROW(isa, in, out)                                                                                              \
    { isa##_##in##_##out##_plain, isa##_##in##_##out##_ahead, isa##_##in##_##out##_past,                               \
      isa##_##in##_##out##_past_ahead },

#if TB_X86

static inline void fence(bool past)
{
    if (past) _mm_sfence();
}

#define LOAD512(at) _mm512_loadu_si512(at)
#define STORE512(at, v, past) ((past) ? _mm512_stream_si512((__m512i *)(void *)(at), v) : _mm512_storeu_si512(at, v))
#define LOAD256(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define STORE256(at, v, past)                                                                                          \
    ((past) ? _mm256_stream_si256((__m256i *)(void *)(at), v) : _mm256_storeu_si256((__m256i *)(void *)(at), v))

#define FOUR(isa, target, vector, load, join, store, in, out)                                                          \
    STREAM(isa##_##in##_##out##_plain, target, vector, load, join, store, in, out, false, false)                       \
    STREAM(isa##_##in##_##out##_ahead, target, vector, load, join, store, in, out, false, true)                        \
    STREAM(isa##_##in##_##out##_past, target, vector, load, join, store, in, out, true, false)                         \
    STREAM(isa##_##in##_##out##_past_ahead, target, vector, load, join, store, in, out, true, true)

#define AVX512(in, out) FOUR(avx512, TB_AVX512, __m512i, LOAD512, _mm512_or_si512, STORE512, in, out)
#define AVX2(in, out) FOUR(avx2, TB_AVX2, __m256i, LOAD256, _mm256_or_si256, STORE256, in, out)
SHAPES(AVX512)
SHAPES(AVX2)

#define ROW_AVX512(in, out) ROW(avx512, in, out)
#define ROW_AVX2(in, out) ROW(avx2, in, out)
static stream_run *const avx512_rows[SHAPE_COUNT][TB_STREAMS] = { SHAPES(ROW_AVX512) };
static stream_run *const avx2_rows[SHAPE_COUNT][TB_STREAMS] = { SHAPES(ROW_AVX2) };

#else

static inline void fence(bool past) { (void)past; }

#endif

/* Plain C: two words at a time, which every compiler makes one vector. There are no stores past the caches. */
typedef struct pair {
    uint64_t low, high;
} pair;

static inline pair load_pair(const char *at)
{
    pair p;
    __builtin_memcpy(&p, at, sizeof p);
    return p;
}
static inline pair join_pairs(pair a, pair b) { return (pair){ a.low | b.low, a.high | b.high }; }
#define STORE_PAIR(at, v, past) __builtin_memcpy(at, &(v), sizeof(v))

#define PLAIN(in, out)                                                                                                 \
    STREAM(plain_##in##_##out, TB_KERNEL, pair, load_pair, join_pairs, STORE_PAIR, in, out, false, false)              \
    STREAM(plain_##in##_##out##_ahead, TB_KERNEL, pair, load_pair, join_pairs, STORE_PAIR, in, out, false, true)
SHAPES(PLAIN)
#define ROW_PLAIN(in, out) { plain_##in##_##out, plain_##in##_##out##_ahead, NULL, NULL },
static stream_run *const plain_rows[SHAPE_COUNT][TB_STREAMS] = { SHAPES(ROW_PLAIN) };

/* ---- the choice ---- */

static const struct family {
    trn_isa isa;
    size_t width;
    stream_run *const (*row)[TB_STREAMS];
} families[] = {
#if TB_X86
    { TRN_ISA_AVX512, 64, avx512_rows },
    { TRN_ISA_AVX2, 32, avx2_rows },
#endif
    { TRN_ISA_PORTABLE, sizeof(pair), plain_rows },
};

tb_stream tb_stream_for(size_t bytes_read, size_t bytes_written, int variant)
{
#define SHAPE(in, out) { in, out },
    static const size_t shape[SHAPE_COUNT][2] = { SHAPES(SHAPE) };
#undef SHAPE
    static const char *const name[TB_STREAMS] = { "ordinary stores", "ordinary stores, fetching ahead",
                                                  "stores past the caches", "stores past the caches, fetching ahead" };
    const struct family *f = families;
    while (!trn_isa_supported(f->isa)) f++;
    for (int i = 0; i < SHAPE_COUNT; i++)
        if (shape[i][0] * bytes_written == shape[i][1] * bytes_read)
            return (tb_stream){ name[variant], f->row[i][variant], UNROLL * shape[i][0] * f->width,
                                UNROLL * shape[i][1] * f->width };
    return (tb_stream){ NULL, NULL, 0, 0 };
}

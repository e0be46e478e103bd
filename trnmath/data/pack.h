/* data/pack.h - codes of 4, 6 and 8 bits, one to a byte or packed into words.
 * A part of trn_pack.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_DATA_PACK_H
#define TRNI_DATA_PACK_H

#include "../base/cpu.h"
#include "tensor.h"

/* ---- the forms ---- */

/* How many words n codes take, the last ones perhaps not full; -1 when there is no such form or n < 0. */
TRN_API int64_t trn_packed_words(trn_format code, trn_format word, int64_t n);

/* The same in bytes; -1 also when that many bytes have no number. */
TRN_API int64_t trn_packed_bytes(trn_format code, trn_format word, int64_t n);

typedef struct trn_pack_args {
    trn_tensor dst; /* [..., words] U8, U16 or U32: the table above, and trn_packed_words */
    trn_tensor src; /* [..., n] codes, one per byte; may broadcast with stride 0 */
    bool pad;       /* a last word that is not full gets zero codes; default: refused */
    trn_isa isa;    /* 0 = the best of this host; the bits do not depend on it */
    trn_error *error;
} trn_pack_args;

typedef struct trn_unpack_args {
    trn_tensor dst; /* [..., n] codes, one per byte, the bits above them 0 */
    trn_tensor src; /* [..., words] U8, U16 or U32; may broadcast with stride 0 */
    bool pad;       /* the last word may hold more codes than dst takes; default: refused */
    trn_isa isa;
    trn_error *error;
} trn_unpack_args;

/* ---- checks ---- */

/* dst = the words that hold src's codes. TRN_EFORMAT: no such form; TRN_ESHAPE: sizes that do not fit, or a tail
 * without .pad; TRN_EINVAL: overlap. */
TRN_API trn_status trn_pack(const trn_pack_args *args);

/* dst = the codes in src's words. Fails as trn_pack. */
TRN_API trn_status trn_unpack(const trn_unpack_args *args);

#if TRNI_BODIES

#include "../base/threads.h"
#include "iterate.h"

/* ---- the forms ---- */

typedef struct trni_packing {
    int code_bits;
    trn_format word;
    int codes, words; /* so many codes fill so many words */
} trni_packing;

TRNI_FN const trni_packing *trni_packing_find(trn_format code, trn_format word)
{
    static const trni_packing form[] = {
        { 4, TRN_U8, 2, 1 }, { 4, TRN_U16, 4, 1 }, { 6, TRN_U8, 4, 3 }, { 8, TRN_U32, 4, 1 }
    };
    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++)
        if (form[i].code_bits == trn_format_bits(code) && form[i].word == word) return &form[i];
    return NULL;
}

TRN_API int64_t trn_packed_words(trn_format code, trn_format word, int64_t n)
{
    const trni_packing *form = trni_packing_find(code, word);
    if (!form || n < 0) return -1;
    return (n / form->codes + (n % form->codes != 0)) * form->words;
}

TRN_API int64_t trn_packed_bytes(trn_format code, trn_format word, int64_t n)
{
    const int64_t words = trn_packed_words(code, word, n);
    const int64_t bytes = (int64_t)trn_format_bytes(word);
    return words < 0 || words > INT64_MAX / bytes ? -1 : words * bytes;
}

/* ---- kernels: contiguous codes to contiguous bytes; the words are little-endian, so bytes say it all ---- */

typedef uint16_t trni_pair __attribute__((may_alias, aligned(1)));

TRNI_INLINE void trni_pack4_body(void *__restrict bytes, const void *__restrict codes, size_t n)
{
    unsigned char *__restrict y = (unsigned char *)bytes;
    const trni_pair *__restrict x = (const trni_pair *)codes; /* element 0 is the low byte of a pair */
    for (size_t i = 0; i < n; i++) y[i] = (unsigned char)((x[i] & 0x0fu) | (x[i] >> 4 & 0xf0u));
}

TRNI_DISPATCH(trni_pack4, (void *__restrict bytes, const void *__restrict codes, size_t n), (bytes, codes, n))

TRNI_INLINE void trni_unpack4_body(void *__restrict codes, const void *__restrict bytes, size_t n)
{
    trni_pair *__restrict y = (trni_pair *)codes;
    const unsigned char *__restrict x = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++) y[i] = (uint16_t)((x[i] & 0x0fu) | (x[i] & 0xf0u) << 4);
}

TRNI_DISPATCH(trni_unpack4, (void *__restrict codes, const void *__restrict bytes, size_t n), (codes, bytes, n))

/* Eight codes of 6 bits, one in each byte, move together in three steps: pairs, fours, eight.
 *
 *     00aaaaaa 00bbbbbb 00cccccc 00dddddd ... -> 0000bbbbbbaaaaaa 0000ddddddcccccc ... -> 48 bits, a lowest
 */
TRNI_INLINE uint64_t trni_join6(uint64_t x)
{
    x = (x & 0x003f003f003f003fu) | (x & 0x3f003f003f003f00u) >> 2;
    x = (x & 0x00000fff00000fffu) | (x & 0x0fff00000fff0000u) >> 4;
    return (x & 0x0000000000ffffffu) | (x & 0x00ffffff00000000u) >> 8;
}

TRNI_INLINE uint64_t trni_split6(uint64_t x)
{
    x = (x & 0x0000000000ffffffu) | (x & 0x0000ffffff000000u) << 8;
    x = (x & 0x00000fff00000fffu) | (x & 0x00fff00000fff000u) << 4;
    return (x & 0x003f003f003f003fu) | (x & 0x0fc00fc00fc00fc0u) << 2;
}

/* fours: how many times four codes, three bytes. */
TRNI_FN void trni_pack6(char *bytes, const char *codes, size_t fours)
{
    uint64_t x = 0;
    for (; fours >= 2; fours -= 2, codes += 8, bytes += 6) {
        memcpy(&x, codes, 8);
        x = trni_join6(x);
        memcpy(bytes, &x, 6);
    }
    memcpy(&x, codes, 4 * fours); /* what is left in the other bytes ends up above */
    x = trni_join6(x);
    memcpy(bytes, &x, 3 * fours);
}

/* Six bytes are read as four and two: a copy of six into a word of eight would wait for its two parts to be stored. */
TRNI_FN void trni_unpack6(char *codes, const char *bytes, size_t fours)
{
    for (; fours >= 2; fours -= 2, codes += 8, bytes += 6) {
        uint32_t low;
        uint16_t high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 2);
        const uint64_t code = trni_split6(low | (uint64_t)high << 32);
        memcpy(codes, &code, 8);
    }
    uint64_t x = 0;
    memcpy(&x, bytes, 3 * fours);
    x = trni_split6(x);
    memcpy(codes, &x, 4 * fours);
}

/* n: a whole number of groups. */
TRNI_FN void trni_packing_codes(int code_bits, trn_isa isa, char *bytes, const char *codes, size_t n)
{
    if (code_bits == 4)
        trni_pack4_for(isa)(bytes, codes, n / 2);
    else if (code_bits == 6)
        trni_pack6(bytes, codes, n / 4);
    else
        memcpy(bytes, codes, n);
}

TRNI_FN void trni_unpack_codes(int code_bits, trn_isa isa, char *codes, const char *bytes, size_t n)
{
    if (code_bits == 4)
        trni_unpack4_for(isa)(codes, bytes, n / 2);
    else if (code_bits == 6)
        trni_unpack6(codes, bytes, n / 4);
    else
        memcpy(codes, bytes, n);
}

/* ---- both directions share the plan: rows, cut into pieces ---- */

typedef enum trni_packing_limit {
    TRNI_PACKING_PIECE = 4096,      /* codes at a time: a whole number of every group */
    TRNI_PACKING_SPAN = 16,         /* pieces that a thread takes at once */
    TRNI_PACKING_PARALLEL = 1 << 20 /* codes from which threads pay for being woken */
} trni_packing_limit;

typedef struct trni_packing_plan {
    const trni_packing *form;
    trn_isa isa;
    bool unpack;
    char *codes, *words;
    int64_t code_step, word_step; /* bytes */
    int64_t n;                    /* codes of a row */
    trni_iterator rows;           /* views: codes, words; in bytes */
    int64_t pieces;               /* of a row */
} trni_packing_plan;

TRNI_FN void trni_packing_piece(const trni_packing_plan *p, char *codes, char *words, size_t n)
{
    char code[TRNI_PACKING_PIECE], word[TRNI_PACKING_PIECE];
    const int bits = p->form->code_bits;
    const size_t groups = (n + (size_t)p->form->codes - 1) / (size_t)p->form->codes,
                 all = groups * (size_t)p->form->codes;
    const size_t word_bytes = trn_format_bytes(p->form->word), count = groups * (size_t)p->form->words;
    char *const x = p->code_step == 1 && all == n ? codes : code;
    char *const y = p->word_step == (int64_t)word_bytes ? words : word;
    if (p->unpack) {
        if (y == word) trni_move(word, (int64_t)word_bytes, words, p->word_step, word_bytes, count);
        trni_unpack_codes(bits, p->isa, x, y, all);
        if (x == code) trni_move(codes, p->code_step, code, 1, 1, n);
    } else {
        if (x == code) {
            trni_move(code, 1, codes, p->code_step, 1, n);
            memset(code + n, 0, all - n);
        }
        trni_packing_codes(bits, p->isa, y, x, all);
        if (y == word) trni_move(words, p->word_step, word, (int64_t)word_bytes, word_bytes, count);
    }
}

/* Pieces first … last-1, counted row by row. */
TRNI_FN void trni_packing_pieces(const trni_packing_plan *p, int64_t first, int64_t last)
{
    trni_iterator_place at = trni_iterator_start(&p->rows, first / p->pieces);
    const int64_t most = TRNI_PACKING_PIECE, words = most / p->form->codes * p->form->words; /* of one piece */
    for (int64_t piece = first % p->pieces; first < last; first++) {
        const int64_t left = p->n - piece * most;
        trni_packing_piece(p, p->codes + at.offset[0] + piece * most * p->code_step,
                           p->words + at.offset[1] + piece * words * p->word_step, (size_t)(left < most ? left : most));
        if (++piece < p->pieces) continue;
        piece = 0;
        trni_iterator_next(&p->rows, &at);
    }
}

TRNI_FN void trni_packing_run(const trni_packing_plan *p)
{
    const int64_t pieces = p->rows.places * p->pieces;
    if (p->rows.places * p->n < TRNI_PACKING_PARALLEL) {
        trni_packing_pieces(p, 0, pieces);
        return;
    }
    const int64_t spans = (pieces + TRNI_PACKING_SPAN - 1) / TRNI_PACKING_SPAN;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static))
    for (int64_t s = 0; s < spans; s++) {
        TRNI_FLOATS;
        const int64_t end = (s + 1) * TRNI_PACKING_SPAN;
        trni_packing_pieces(p, s * TRNI_PACKING_SPAN, end < pieces ? end : pieces);
    }
}

/* The axes outside the last, and the last one inside them: where rows continue each other in both views, they are one.
 */
TRNI_FN void trni_packing_rows(trni_packing_plan *p, const trn_tensor *codes, const trn_tensor *words)
{
    int64_t code_stride[TRN_MAX_RANK], word_stride[TRN_MAX_RANK];
    const int64_t word_bytes = (int64_t)trn_format_bytes(words->format), groups = p->n / p->form->codes;
    const int last = codes->rank - 1;
    trni_strides(codes, code_stride);
    trni_strides(words, word_stride);
    p->code_step = p->n > 1 ? code_stride[last] : 1;
    p->word_step = words->shape[last] > 1 ? word_stride[last] * word_bytes : word_bytes;
    for (int i = 0; i < last; i++) {
        if (codes->shape[i] == 1) continue; /* its strides may be any number */
        const trni_iterator_axis one = { codes->shape[i], { code_stride[i], word_stride[i] * word_bytes, 0, 0 } };
        trni_iterator_push(&p->rows, one);
    }
    const trni_iterator_axis row = { groups, { p->code_step * p->form->codes, p->word_step * p->form->words, 0, 0 } };
    const trni_iterator_axis *inner = p->rows.rank ? &p->rows.axis[p->rows.rank - 1] : NULL;
    if (inner && p->n % p->form->codes == 0 && trni_iterator_continues(inner, &row)) {
        p->n *= inner->size;
        p->rows.places /= inner->size;
        p->rows.rank--;
    }
    if (p->rows.rank == 0) p->rows.places = 1;
    p->pieces = (p->n + TRNI_PACKING_PIECE - 1) / TRNI_PACKING_PIECE;
}

/* ---- checks ---- */

TRNI_DRIVER trn_status trni_packing_check_sizes(const trn_tensor *codes, const char *codes_name,
                                                const trn_tensor *words, const char *words_name,
                                                const trni_packing *form, bool pad, trn_error *error)
{
    const int last = codes->rank - 1;
    if (words->rank != codes->rank)
        return trni_fail(error, TRN_ESHAPE, "%s has rank %d but %s has rank %d", words_name, words->rank, codes_name,
                         codes->rank);
    for (int i = 0; i < last; i++)
        if (words->shape[i] != codes->shape[i])
            return trni_fail(error, TRN_ESHAPE, "%s has size %lld on axis %d but %s has %lld", words_name,
                             (long long)words->shape[i], i, codes_name, (long long)codes->shape[i]);
    const int64_t n = codes->shape[last], count = trn_packed_words(codes->format, words->format, n);
    if (n % form->codes != 0 && !pad)
        return trni_fail(error, TRN_ESHAPE,
                         "%s has %lld codes on its last axis, no multiple of %d; .pad would take it all the same",
                         codes_name, (long long)n, form->codes);
    if (words->shape[last] != count)
        return trni_fail(error, TRN_ESHAPE, "%s has size %lld on its last axis; %lld codes of %s take %lld words of %s",
                         words_name, (long long)words->shape[last], (long long)n, trn_format_name(codes->format),
                         (long long)count, trn_format_name(words->format));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_packing_check(trni_packing_plan *p, const trn_tensor *dst, const trn_tensor *src, bool pad,
                                          trn_error *error)
{
    const trn_tensor *codes = p->unpack ? dst : src, *words = p->unpack ? src : dst;
    trn_status status = trn_tensor_check(dst, "dst", TRNI_OUTPUT, 0, error);
    if (!status) status = trn_tensor_check(src, "src", TRNI_INPUT, 0, error);
    if (status) return status;
    p->form = trni_packing_find(codes->format, words->format);
    if (!p->form)
        return trni_fail(
            error, TRN_EFORMAT,
            "%s is %s and %s is %s; there are float4 in uint8 or uint16, float6 in uint8, 8-bit codes in uint32",
            p->unpack ? "dst" : "src", trn_format_name(codes->format), p->unpack ? "src" : "dst",
            trn_format_name(words->format));
    status = trni_packing_check_sizes(codes, p->unpack ? "dst" : "src", words, p->unpack ? "src" : "dst", p->form, pad,
                                      error);
    if (!status) status = trni_isa_resolve(&p->isa, error);
    if (!status && trn_tensor_overlap(*dst, *src))
        status = trni_fail(error, TRN_EINVAL, "dst overlaps src; packing does not work in place");
    return status;
}

TRNI_FN trn_status trni_packing_views(const trn_tensor *dst, const trn_tensor *src, bool unpack, bool pad, trn_isa isa,
                                      trn_error *error)
{
    trni_packing_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.unpack = unpack;
    plan.isa = isa;
    const trn_status status = trni_packing_check(&plan, dst, src, pad, error);
    if (status || trn_tensor_elements(*dst) == 0) return status;
    const trn_tensor *codes = unpack ? dst : src, *words = unpack ? src : dst;
    plan.codes = (char *)codes->data;
    plan.words = (char *)words->data;
    plan.n = codes->shape[codes->rank - 1];
    trni_packing_rows(&plan, codes, words);
    trni_packing_run(&plan);
    return TRN_OK;
}

TRN_API trn_status trn_pack(const trn_pack_args *args)
{
    TRNI_ENTER(args);
    return trni_packing_views(&args->dst, &args->src, false, args->pad, args->isa, args->error);
}

TRN_API trn_status trn_unpack(const trn_unpack_args *args)
{
    TRNI_ENTER(args);
    return trni_packing_views(&args->dst, &args->src, true, args->pad, args->isa, args->error);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_DATA_PACK_H */

/* array/sparse_pack.h - structured sparsity in memory: m of every n elements along K, and where each of them stood.
 * A part of trn_sparse.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_sparse.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         float a[8] = { 0, 3, 0, -5, 0, 0, 7, 0 }, values[4];              // [1, 8], two of four
 *         uint8_t tags[4];
 *         trn_error error;
 *         trn_sparse_pack_args args = { .src = trn_tensor_2d(TRN_F32, a, 1, 8),
 *                                       .values = trn_tensor_2d(TRN_F32, values, 1, 4),
 *                                       .tags = trn_tensor_2d(TRN_U8, tags, 1, 4),
 *                                       .pattern = { 2, 4 }, .error = &error };
 *         if (trn_sparse_pack(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return tags[0] == 1 && tags[1] == 3 && tags[2] == 0 && tags[3] == 2 ? 0 : 1;   // 3 -5 | 0 7
 *     }
 *
 * DOES: a matrix [M, K] to its stored values [M, K·m/n] and their tags, with every code kept bit for bit, and back;
 *     prunes to the m largest magnitudes of a window when asked to. Any strides. Uses OpenMP when compiled with it.
 * DOES NOT: convert formats, or multiply (trn_sparse.h).
 *
 * A row is cut into windows of n elements, and m of each are stored, in ascending order of k. A tag is the logical
 * position of a stored element inside its window, 0 … n - 1:
 *
 *     row       . b . d | . . g .        n = 4, m = 2
 *     values      b   d | 0   g          a window of fewer than m nonzeros is filled up with its lowest zeros
 *     tags        1   3 | 0   2          always ascending inside a window
 *
 * K is a multiple of n: a window that is cut off has no documented form, so it is refused (pad the matrix with zeros).
 * A zero of either sign counts as zero; NaN is a magnitude above infinity. What is dropped loses the sign of its zero.
 *
 * KNOWN FROM: the seven ratios: NeuronCore-v3 and -v4 pages (documented). Tags of 4 bits, four in a uint16, name
 *     positions in a window: an unreleased section of the NKI Trainium2 guide; that the first is in the low nibble is
 *     `assumed`. The hardware remaps such logical tags to physical ones by a helper that is not public: the words made
 *     here are logical, and a real chip would not take them.
 */
#ifndef TRNI_ARRAY_SPARSE_PACK_H
#define TRNI_ARRAY_SPARSE_PACK_H

#include "../data/pack.h"

typedef struct trn_sparse_pattern {
    int m, n; /* m of every n consecutive elements are stored */
} trn_sparse_pattern;

typedef struct trn_sparse_pack_args {
    trn_tensor values; /* [M, K·m/n] the format of src */
    trn_tensor tags;   /* [M, K·m/n] U8 */
    trn_tensor src;    /* [M, K] any floating-point format; may broadcast with stride 0 */
    trn_sparse_pattern pattern;
    bool prune; /* keep the m largest magnitudes of a window (of equal ones, the lower k); default: a
                                   window with more than m nonzeros is refused */
    trn_error *error;
} trn_sparse_pack_args;

typedef struct trn_sparse_unpack_args {
    trn_tensor dst;    /* [M, K] the format of values */
    trn_tensor values; /* [M, K·m/n] any floating-point format; may broadcast */
    trn_tensor tags;   /* [M, K·m/n] U8; may broadcast */
    trn_sparse_pattern pattern;
    trn_error *error;
} trn_sparse_unpack_args;

/* Tags of either level: the operation's [M, S], or the instruction's [S, M], where four columns share a word. */
typedef struct trn_sparse_tags_pack_args {
    trn_tensor
        dst; /* packing: [rows, ceil(count/4)] U16, the missing tags of a last word 0; unpacking: [rows, count] U8 */
    trn_tensor src; /* packing: [rows, count] U8, each below 16; unpacking: [rows, ceil(count/4)] U16 */
    trn_isa isa;
    trn_error *error;
} trn_sparse_tags_pack_args;

/* ---- patterns and windows ---- */

/* Is it one of the seven of the documentation: 4:16, 4:12, 4:8, 2:8, 2:4, 1:4, 1:2? */
TRN_API bool trn_sparse_pattern_valid(trn_sparse_pattern p);

/* K·m/n; -1 when the pattern does not exist or K is no multiple of n. */
TRN_API int64_t trn_sparse_stored(trn_sparse_pattern p, int64_t k);

/* ---- pack and unpack ---- */

/* src [M, K] to its m of n and their tags. TRN_EINVAL names the row and window that holds too many nonzeros (without
 * .prune), a pattern that does not exist, or views that overlap; TRN_ESHAPE sizes that do not fit, K no multiple of n
 * among them; TRN_EFORMAT formats other than these. On failure nothing is written. */
TRN_API trn_status trn_sparse_pack(const trn_sparse_pack_args *args);

/* dst [M, K] = the stored values where their tags say, and +0 elsewhere. TRN_EINVAL names a tag outside its window or
 * not above the one before; the rest as trn_sparse_pack. On failure nothing is written. */
TRN_API trn_status trn_sparse_unpack(const trn_sparse_unpack_args *args);

/* ---- packed tags: a code of four bits is what trn_pack packs ---- */

/* Tags [rows, count] to words of four, the first in the low nibble (assumed). TRN_EINVAL names a tag above 15. */
TRN_API trn_status trn_sparse_tags_pack(const trn_sparse_tags_pack_args *args);

/* The way back: every nibble is a tag; whether it suits a pattern is asked where it is used. */
TRN_API trn_status trn_sparse_tags_unpack(const trn_sparse_tags_pack_args *args);

#if TRNI_BODIES

#include "../base/threads.h"

/* ---- patterns and windows ---- */

enum { TRNI_SPARSE_WINDOW = 16, TRNI_SPARSE_MOST = 4 }; /* the largest n and m */

TRN_API bool trn_sparse_pattern_valid(trn_sparse_pattern p)
{
    static const trn_sparse_pattern known[] = {
        { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 }
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].m == p.m && known[i].n == p.n) return true;
    return false;
}

TRN_API int64_t trn_sparse_stored(trn_sparse_pattern p, int64_t k)
{
    return !trn_sparse_pattern_valid(p) || k < 0 || k % p.n ? -1 : k / p.n * p.m;
}

TRNI_DRIVER trn_status trni_sparse_check_pattern(trn_sparse_pattern p, trn_error *error)
{
    if (trn_sparse_pattern_valid(p)) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "pattern %d:%d is none of 4:16, 4:12, 4:8, 2:8, 2:4, 1:4 and 1:2", p.m, p.n);
}

TRNI_DRIVER trn_status trni_sparse_check_depth(trn_sparse_pattern p, int64_t k, const char *name, int64_t stored,
                                               const char *stored_name, trn_error *error)
{
    if (k % p.n)
        return trni_fail(error, TRN_ESHAPE, "%s has K = %lld, which is no multiple of the %d of pattern %d:%d", name,
                         (long long)k, p.n, p.m, p.n);
    if (k / p.n * p.m == stored) return TRN_OK;
    return trni_fail(error, TRN_ESHAPE,
                     "%s holds %lld elements of a row, but pattern %d:%d stores %lld of the K = %lld of %s",
                     stored_name, (long long)stored, p.m, p.n, (long long)(k / p.n * p.m), (long long)k, name);
}

TRNI_DRIVER trn_status trni_sparse_check_tags_view(const trn_tensor *tags, const trn_tensor *values,
                                                   const char *values_name, trni_use use, trn_error *error)
{
    const trn_status status = trn_tensor_check(tags, "tags", use, 2, error);
    if (status != TRN_OK) return status;
    if (tags->format != TRN_U8)
        return trni_fail(error, TRN_EFORMAT, "tags is %s; tags are uint8", trn_format_name(tags->format));
    return trni_check_same_shape(tags, "tags", values, values_name, error);
}

/* ---- tags: ascending inside each window, and inside it ---- */

enum { TRNI_SPARSE_STRETCH = 512 }; /* tags that are looked at together: whole windows */

/* Nonzero if one of `count` tags from the start of a window is wrong. follows[i]: it is not the first of its window. */
TRNI_INLINE void trni_tags_wrong_body(unsigned char *wrong, const unsigned char *tag, const unsigned char *follows,
                                      unsigned char n, size_t count)
{
    unsigned char found = tag[0] >= n;
    for (size_t i = 1; i < count; i++) found |= (unsigned char)((tag[i] >= n) | (follows[i] & (tag[i] <= tag[i - 1])));
    *wrong = found;
}

TRNI_DISPATCH(trni_tags_wrong,
              (unsigned char *wrong, const unsigned char *tag, const unsigned char *follows, unsigned char n,
               size_t count),
              (wrong, tag, follows, n, count))

/* Names the first wrong tag of a stretch. `axis` holds the stored elements. */
TRNI_FN trn_status trni_sparse_blame(const unsigned char *tag, int count, trn_sparse_pattern p, int axis, int64_t lane,
                                     int64_t first, trn_error *error)
{
    int i = 0;
    while (i < count - 1 && tag[i] < p.n && (i % p.m == 0 || tag[i] > tag[i - 1])) i++;
    const long long at[2] = { (long long)(axis ? lane : first + i), (long long)(axis ? first + i : lane) };
    if (tag[i] >= p.n)
        return trni_fail(error, TRN_EINVAL, "tags[%lld, %lld] = %d lies outside the window of %d", at[0], at[1], tag[i],
                         p.n);
    return trni_fail(error, TRN_EINVAL, "tags[%lld, %lld] = %d does not exceed the tag before it in its window, %d",
                     at[0], at[1], tag[i], tag[i - 1]);
}

/* Looks at every tag of a checked view; `axis` is the one along which elements of a row are stored. */
TRNI_DRIVER trn_status trni_sparse_check_tags(const trn_tensor *tags, int axis, trn_sparse_pattern p, trn_isa isa,
                                              trn_error *error)
{
    unsigned char follows[TRNI_SPARSE_STRETCH], line[TRNI_SPARSE_STRETCH];
    int64_t stride[TRN_MAX_RANK];
    trni_strides(tags, stride);
    for (int i = 0; i < TRNI_SPARSE_STRETCH; i++) follows[i] = i % p.m != 0;
    for (int64_t lane = 0; lane < tags->shape[1 - axis]; lane++)
        for (int64_t first = 0; first < tags->shape[axis]; first += TRNI_SPARSE_STRETCH) {
            const int count = (int)trni_min64(tags->shape[axis] - first, TRNI_SPARSE_STRETCH);
            const char *at = (const char *)tags->data + lane * stride[1 - axis] + first * stride[axis];
            unsigned char wrong;
            trni_move((char *)line, 1, at, stride[axis], 1, (size_t)count);
            trni_tags_wrong_for(isa)(&wrong, line, follows, (unsigned char)p.n, (size_t)count);
            if (wrong) return trni_sparse_blame(line, count, p, axis, lane, first, error);
        }
    return TRN_OK;
}

/* ---- rows of codes ---- */

/* Codes along one row of a view, one at a time. */
typedef struct trni_sparse_row {
    unsigned char *at;
    int64_t step; /* bytes */
    size_t bytes; /* of a code */
} trni_sparse_row;

TRNI_FN trni_sparse_row trni_sparse_row_of(const trn_tensor *t, int64_t row)
{
    int64_t stride[TRN_MAX_RANK];
    trni_strides(t, stride);
    const int64_t bytes = (int64_t)trn_format_bytes(t->format);
    const trni_sparse_row r = { (unsigned char *)t->data + (t->shape[0] > 1 ? row * stride[0] * bytes : 0),
                                t->shape[1] > 1 ? stride[1] * bytes : bytes, (size_t)bytes };
    return r;
}

TRNI_FN uint32_t trni_sparse_get(const trni_sparse_row *r, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, r->at + i * r->step, r->bytes); /* little endian */
    return code;
}

TRNI_FN void trni_sparse_put(const trni_sparse_row *r, int64_t i, uint32_t code)
{
    memcpy(r->at + i * r->step, &code, r->bytes);
}

/* All bits of a code but its sign: in every format these ascend with the magnitude, and NaN stands above infinity. */
TRNI_FN uint32_t trni_sparse_magnitudes(const trn_tensor *t)
{
    const trn_format_info f = trn_tensor_format_info(t);
    return (((uint32_t)1 << (f.exponent_bits + f.mantissa_bits)) - 1) << f.low_zeros |
           (((uint32_t)1 << f.low_zeros) - 1);
}

/* A position is kept when fewer than m others of its window go before it: larger ones, and equal ones of lower k. With
 * m nonzeros or fewer these are the nonzeros and the lowest zeros. */
TRNI_FN int trni_sparse_choose(const uint32_t *magnitude, trn_sparse_pattern p, int *kept)
{
    int count = 0;
    for (int i = 0; i < p.n; i++) {
        int before = 0;
        for (int j = 0; j < p.n; j++) before += magnitude[j] > magnitude[i] || (j < i && magnitude[j] == magnitude[i]);
        if (before < p.m) kept[count++] = i;
    }
    return count;
}

/* The first window of a row with more nonzeros than fit; -1 when there is none. */
TRNI_FN int64_t trni_sparse_crowded(const trni_sparse_row *src, int64_t k, trn_sparse_pattern p, uint32_t mask)
{
    for (int64_t w = 0; w < k / p.n; w++) {
        int nonzeros = 0;
        for (int i = 0; i < p.n; i++) nonzeros += (trni_sparse_get(src, w * p.n + i) & mask) != 0;
        if (nonzeros > p.m) return w;
    }
    return -1;
}

TRNI_FN void trni_sparse_pack_row(const trn_sparse_pack_args *args, int64_t row, uint32_t mask)
{
    const trn_sparse_pattern p = args->pattern;
    const trni_sparse_row src = trni_sparse_row_of(&args->src, row), values = trni_sparse_row_of(&args->values, row),
                          tags = trni_sparse_row_of(&args->tags, row);
    for (int64_t w = 0; w < args->src.shape[1] / p.n; w++) {
        uint32_t code[TRNI_SPARSE_WINDOW] = { 0 }, magnitude[TRNI_SPARSE_WINDOW] = { 0 };
        int kept[TRNI_SPARSE_WINDOW];
        for (int i = 0; i < p.n; i++) magnitude[i] = (code[i] = trni_sparse_get(&src, w * p.n + i)) & mask;
        const int count = trni_sparse_choose(magnitude, p, kept);
        for (int s = 0; s < count; s++) {
            trni_sparse_put(&values, w * p.m + s, code[kept[s]]);
            trni_sparse_put(&tags, w * p.m + s, (uint32_t)kept[s]);
        }
    }
}

/* ---- pack and unpack ---- */

TRNI_DRIVER trn_status trni_sparse_check_float(const trn_tensor *t, const char *name, trn_error *error)
{
    if (trn_tensor_format_info(t).kind == TRN_KIND_FLOAT) return TRN_OK;
    return trni_fail(error, TRN_EFORMAT, "%s is %s; floating-point formats are pruned and packed here", name,
                     trn_format_name(t->format));
}

/* `full` [M, K] against values and tags; whichever is written must overlap nothing. */
TRNI_DRIVER trn_status trni_sparse_check_views(const trn_tensor *full, const char *full_name, trni_use full_use,
                                               const trn_tensor *values, const trn_tensor *tags, trn_sparse_pattern p,
                                               trn_error *error)
{
    const trni_use stored_use = full_use == TRNI_INPUT ? TRNI_OUTPUT : TRNI_INPUT;
    trn_status status;
    if ((status = trni_sparse_check_pattern(p, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(full, full_name, full_use, 2, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(values, "values", stored_use, 2, error)) != TRN_OK) return status;
    if ((status = trni_sparse_check_tags_view(tags, values, "values", stored_use, error)) != TRN_OK) return status;
    if ((status = trni_sparse_check_float(full, full_name, error)) != TRN_OK) return status;
    const bool same_cfp8 = full->cfp8.exponent_bits == values->cfp8.exponent_bits &&
                           full->cfp8.bias == values->cfp8.bias && full->cfp8.no_infinity == values->cfp8.no_infinity;
    if (values->format != full->format || (full->format == TRN_CFP8 && !same_cfp8))
        return trni_fail(error, TRN_EFORMAT, "values is %s but %s is %s; codes are moved, not converted",
                         trn_format_name(values->format), full_name, trn_format_name(full->format));
    if (values->shape[0] != full->shape[0])
        return trni_fail(error, TRN_ESHAPE, "values has %lld rows but %s has %lld", (long long)values->shape[0],
                         full_name, (long long)full->shape[0]);
    if ((status = trni_sparse_check_depth(p, full->shape[1], full_name, values->shape[1], "values", error)) != TRN_OK)
        return status;
    if (trn_tensor_overlap(*full, *values)) return trni_fail(error, TRN_EINVAL, "values overlaps %s", full_name);
    if (trn_tensor_overlap(*full, *tags)) return trni_fail(error, TRN_EINVAL, "tags overlaps %s", full_name);
    if (stored_use == TRNI_OUTPUT && trn_tensor_overlap(*values, *tags))
        return trni_fail(error, TRN_EINVAL, "values overlaps tags");
    return TRN_OK;
}

enum { TRNI_SPARSE_PARALLEL = 1 << 15 }; /* elements from which threads pay for being woken */

TRN_API trn_status trn_sparse_pack(const trn_sparse_pack_args *args)
{
    TRNI_ENTER(args);
    const trn_status status =
        trni_sparse_check_views(&args->src, "src", TRNI_INPUT, &args->values, &args->tags, args->pattern, args->error);
    if (status != TRN_OK) return status;
    const uint32_t mask = trni_sparse_magnitudes(&args->src);
    const int64_t rows = args->src.shape[0], k = args->src.shape[1];
    for (int64_t row = 0; row < rows && k && !args->prune; row++) {
        const trni_sparse_row src = trni_sparse_row_of(&args->src, row);
        const int64_t window = trni_sparse_crowded(&src, k, args->pattern, mask);
        if (window >= 0)
            return trni_fail(
                args->error, TRN_EINVAL,
                "src has more than %d nonzeros in row %lld, window %lld (k = %lld to %lld); .prune keeps the largest",
                args->pattern.m, (long long)row, (long long)window, (long long)(window * args->pattern.n),
                (long long)(window * args->pattern.n + args->pattern.n - 1));
    }
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static) if (k && rows > TRNI_SPARSE_PARALLEL / k))
    for (int64_t row = 0; row < (k ? rows : 0); row++) {
        TRNI_FLOATS;
        trni_sparse_pack_row(args, row, mask);
    }
    return TRN_OK;
}

TRNI_FN void trni_sparse_unpack_row(const trn_sparse_unpack_args *args, int64_t row)
{
    const trn_sparse_pattern p = args->pattern;
    const trni_sparse_row dst = trni_sparse_row_of(&args->dst, row), values = trni_sparse_row_of(&args->values, row),
                          tags = trni_sparse_row_of(&args->tags, row);
    for (int64_t k = 0; k < args->dst.shape[1]; k++) trni_sparse_put(&dst, k, 0);
    for (int64_t s = 0; s < args->values.shape[1]; s++)
        trni_sparse_put(&dst, s / p.m * p.n + trni_sparse_get(&tags, s), trni_sparse_get(&values, s));
}

TRN_API trn_status trn_sparse_unpack(const trn_sparse_unpack_args *args)
{
    trn_isa isa = TRN_ISA_AUTO;
    trn_status status;
    TRNI_ENTER(args);
    status =
        trni_sparse_check_views(&args->dst, "dst", TRNI_OUTPUT, &args->values, &args->tags, args->pattern, args->error);
    if (status != TRN_OK || (status = trni_isa_resolve(&isa, args->error)) != TRN_OK) return status;
    if (trn_tensor_elements(args->dst) == 0) return TRN_OK;
    if ((status = trni_sparse_check_tags(&args->tags, 1, args->pattern, isa, args->error)) != TRN_OK) return status;
    const int64_t rows = args->dst.shape[0];
    const bool apart = rows > TRNI_SPARSE_PARALLEL / args->dst.shape[1];
    (void)apart;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static) if (apart))
    for (int64_t row = 0; row < rows; row++) {
        TRNI_FLOATS;
        trni_sparse_unpack_row(args, row);
    }
    return TRN_OK;
}

/* ---- packed tags: a code of four bits is what trn_pack packs ---- */

TRNI_DRIVER trn_status trni_sparse_check_words(const trn_tensor *tags, const char *tags_name, trni_use tags_use,
                                               const trn_tensor *words, const char *words_name, trn_error *error)
{
    trn_status status;
    if ((status = trn_tensor_check(tags, tags_name, tags_use, 2, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(words, words_name, tags_use == TRNI_INPUT ? TRNI_OUTPUT : TRNI_INPUT, 2, error)) !=
        TRN_OK)
        return status;
    if (tags->format != TRN_U8)
        return trni_fail(error, TRN_EFORMAT, "%s is %s; tags are uint8", tags_name, trn_format_name(tags->format));
    if (words->format != TRN_U16)
        return trni_fail(error, TRN_EFORMAT, "%s is %s; four tags are a uint16", words_name,
                         trn_format_name(words->format));
    return TRN_OK;
}

/* The same memory, as codes of four bits. */
TRNI_FN trn_tensor trni_sparse_nibbles(trn_tensor tags)
{
    tags.format = TRN_F4_E2M1;
    return tags;
}

TRN_API trn_status trn_sparse_tags_pack(const trn_sparse_tags_pack_args *args)
{
    TRNI_ENTER(args);
    const trn_status status = trni_sparse_check_words(&args->src, "src", TRNI_INPUT, &args->dst, "dst", args->error);
    if (status != TRN_OK) return status;
    const int64_t count = args->src.shape[1],
                  rows = count ? args->src.shape[0] : 0; /* nothing in many rows is nothing */
    for (int64_t row = 0; row < rows; row++) {
        const trni_sparse_row tags = trni_sparse_row_of(&args->src, row);
        for (int64_t i = 0; i < count; i++)
            if (trni_sparse_get(&tags, i) >= TRNI_SPARSE_WINDOW)
                return trni_fail(args->error, TRN_EINVAL, "src[%lld, %lld] = %u is no tag; tags have 4 bits",
                                 (long long)row, (long long)i, (unsigned)trni_sparse_get(&tags, i));
    }
    const trn_pack_args pack = { args->dst, trni_sparse_nibbles(args->src), true, args->isa, args->error };
    return trn_pack(&pack);
}

TRN_API trn_status trn_sparse_tags_unpack(const trn_sparse_tags_pack_args *args)
{
    TRNI_ENTER(args);
    const trn_status status = trni_sparse_check_words(&args->dst, "dst", TRNI_OUTPUT, &args->src, "src", args->error);
    if (status != TRN_OK) return status;
    const trn_unpack_args unpack = { trni_sparse_nibbles(args->dst), args->src, true, args->isa, args->error };
    return trn_unpack(&unpack);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ARRAY_SPARSE_PACK_H */

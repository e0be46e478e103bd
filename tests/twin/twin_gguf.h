/* twin_gguf.h - GGUF files the other way round: a writer of the container, and blocks of each type made from their
 * numbers.
 * SPDX-License-Identifier: MIT
 *
 * Nothing here comes from trnmath/ or examples/: the layouts are those of ggml's documents.
 */
#ifndef TWIN_GGUF_H
#define TWIN_GGUF_H

#include "twin/twin_quant.h"

/* ---- the container: each number that is written is known by its place, for whoever wants to spoil it ---- */

enum { TWIN_GGUF_ROOM = 1 << 16, TWIN_GGUF_NUMBERS = 512 };

typedef struct twin_gguf {
    unsigned char bytes[TWIN_GGUF_ROOM];
    size_t size;
    int numbers;
    struct {
        size_t at;
        int width;
    } number[TWIN_GGUF_NUMBERS];
} twin_gguf;

static inline void twin_gguf_put(twin_gguf *f, uint64_t n, int width)
{
    if (f->size + 8 > TWIN_GGUF_ROOM) abort();
    if (f->numbers < TWIN_GGUF_NUMBERS) {
        f->number[f->numbers].at = f->size;
        f->number[f->numbers++].width = width;
    }
    for (int i = 0; i < width; i++) f->bytes[f->size++] = (unsigned char)(n >> 8 * i);
}

static inline void twin_gguf_raw(twin_gguf *f, const void *bytes, size_t size)
{
    if (f->size + size > TWIN_GGUF_ROOM) abort();
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static inline void twin_gguf_text(twin_gguf *f, const char *text)
{
    twin_gguf_put(f, strlen(text), 8);
    twin_gguf_raw(f, text, strlen(text));
}

static inline void twin_gguf_start(twin_gguf *f, uint32_t version, uint64_t tensors, uint64_t keys)
{
    f->size = 0;
    f->numbers = 0;
    twin_gguf_raw(f, "GGUF", 4);
    twin_gguf_put(f, version, 4);
    twin_gguf_put(f, tensors, 8);
    twin_gguf_put(f, keys, 8);
}

/* A number of one of the types 0 .. 12. */
static inline void twin_gguf_key(twin_gguf *f, const char *key, uint32_t type, uint64_t value, int width)
{
    twin_gguf_text(f, key);
    twin_gguf_put(f, type, 4);
    twin_gguf_put(f, value, width);
}

/* sizes with the one that runs fastest first. */
static inline void twin_gguf_tensor(twin_gguf *f, const char *name, int axes, const uint64_t *sizes, uint32_t type,
                                    uint64_t begin)
{
    twin_gguf_text(f, name);
    twin_gguf_put(f, (uint64_t)axes, 4);
    for (int i = 0; i < axes; i++) twin_gguf_put(f, sizes[i], 8);
    twin_gguf_put(f, type, 4);
    twin_gguf_put(f, begin, 8);
}

static inline void twin_gguf_pad(twin_gguf *f, size_t alignment)
{
    while (f->size % alignment) twin_gguf_raw(f, "", 1);
}

/* ---- blocks ---- */

typedef struct twin_block {
    int q[256];               /* as stored: no sign, but for Q8_0 */
    int scale[16], least[16]; /* as stored; with a sign for Q6_K */
    uint32_t d, m;            /* binary16; e of MXFP4 */
} twin_block;

typedef struct twin_block_type {
    const char *name;
    uint32_t number;
    int elements, bytes;
    int q_bits, scale_bits, share; /* elements of one scale; 0 bits: none */
    void (*pack)(const twin_block *k, unsigned char *b);
    double (*value)(const twin_block *k, int i);
} twin_block_type;

static inline double twin_half(uint32_t stored) { return twin_quant_float(stored, 2, 10); }

static inline void twin_put16(unsigned char *b, uint32_t n)
{
    b[0] = (unsigned char)n;
    b[1] = (unsigned char)(n >> 8);
}

static inline void twin_or(unsigned char *b, int bits) { *b = (unsigned char)(*b | bits); }

/* Low halves of 16 bytes, then their high halves. */
static inline void twin_pack_16(const int *q, unsigned char *b)
{
    for (int j = 0; j < 16; j++) b[j] = (unsigned char)((q[j] & 15) | (q[j + 16] & 15) << 4);
}

static inline void twin_pack_fifth(const int *q, unsigned char *b)
{
    uint32_t word = 0;
    for (int j = 0; j < 32; j++) word |= (uint32_t)(q[j] >> 4 & 1) << j;
    for (int j = 0; j < 4; j++) b[j] = (unsigned char)(word >> 8 * j);
}

static inline void twin_pack_q4_0(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    twin_pack_16(k->q, b + 2);
}

static inline void twin_pack_q4_1(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    twin_put16(b + 2, k->m);
    twin_pack_16(k->q, b + 4);
}

static inline void twin_pack_q5_0(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    twin_pack_fifth(k->q, b + 2);
    twin_pack_16(k->q, b + 6);
}

static inline void twin_pack_q5_1(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    twin_put16(b + 2, k->m);
    twin_pack_fifth(k->q, b + 4);
    twin_pack_16(k->q, b + 8);
}

static inline void twin_pack_q8_0(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    for (int j = 0; j < 32; j++) b[2 + j] = (unsigned char)k->q[j];
}

static inline void twin_pack_mxfp4(const twin_block *k, unsigned char *b)
{
    b[0] = (unsigned char)k->d;
    twin_pack_16(k->q, b + 1);
}

/* Twelve bytes of eight scales and eight least values, six bits each. */
static inline void twin_pack_scales(const twin_block *k, unsigned char *s)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (unsigned char)k->scale[j];
        s[j + 4] = (unsigned char)k->least[j];
    }
    for (int j = 4; j < 8; j++) {
        s[j + 4] = (unsigned char)((k->scale[j] & 15) | (k->least[j] & 15) << 4);
        twin_or(s + j - 4, k->scale[j] >> 4 << 6);
        twin_or(s + j, k->least[j] >> 4 << 6);
    }
}

static inline void twin_pack_64(const int *q, unsigned char *b)
{
    for (int chunk = 0; chunk < 4; chunk++)
        for (int l = 0; l < 32; l++)
            *b++ = (unsigned char)((q[64 * chunk + l] & 15) | (q[64 * chunk + 32 + l] & 15) << 4);
}

static inline void twin_pack_q4_k(const twin_block *k, unsigned char *b)
{
    twin_put16(b, k->d);
    twin_put16(b + 2, k->m);
    twin_pack_scales(k, b + 4);
    twin_pack_64(k->q, b + 16);
}

static inline void twin_pack_q5_k(const twin_block *k, unsigned char *b)
{
    twin_pack_q4_k(k, b);
    memset(b + 16, 0, 160);
    for (int chunk = 0; chunk < 4; chunk++)
        for (int l = 0; l < 32; l++) {
            twin_or(b + 16 + l, (k->q[64 * chunk + l] >> 4) << 2 * chunk);
            twin_or(b + 16 + l, (k->q[64 * chunk + 32 + l] >> 4) << (2 * chunk + 1));
        }
    twin_pack_64(k->q, b + 48);
}

/* Two bits of four elements, 32 apart, to a byte. */
static inline void twin_pack_quarters(const int *q, int shift, unsigned char *b)
{
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < 32; l++, b++) {
            *b = 0;
            for (int j = 0; j < 4; j++) twin_or(b, (q[128 * half + 32 * j + l] >> shift & 3) << 2 * j);
        }
}

static inline void twin_pack_q2_k(const twin_block *k, unsigned char *b)
{
    for (int j = 0; j < 16; j++) b[j] = (unsigned char)(k->scale[j] | k->least[j] << 4);
    twin_pack_quarters(k->q, 0, b + 16);
    twin_put16(b + 80, k->d);
    twin_put16(b + 82, k->m);
}

static inline void twin_pack_q3_k(const twin_block *k, unsigned char *b)
{
    memset(b, 0, 110);
    for (int i = 0; i < 256; i++) twin_or(b + i % 32, (k->q[i] >> 2) << i / 32);
    twin_pack_quarters(k->q, 0, b + 32);
    for (int j = 0; j < 16; j++) {
        twin_or(b + 96 + j % 8, (k->scale[j] & 15) << (j < 8 ? 0 : 4));
        twin_or(b + 104 + j % 4, (k->scale[j] >> 4) << 2 * (j / 4));
    }
    twin_put16(b + 108, k->d);
}

static inline void twin_pack_q6_k(const twin_block *k, unsigned char *b)
{
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < 64; l++)
            b[64 * half + l] = (unsigned char)((k->q[128 * half + l] & 15) | (k->q[128 * half + 64 + l] & 15) << 4);
    twin_pack_quarters(k->q, 4, b + 128);
    for (int j = 0; j < 16; j++) b[192 + j] = (unsigned char)k->scale[j];
    twin_put16(b + 208, k->d);
}

static inline void twin_pack_iq4_xs(const twin_block *k, unsigned char *b)
{
    uint32_t high = 0;
    memset(b, 0, 136);
    twin_put16(b, k->d);
    for (int j = 0; j < 8; j++) {
        high |= (uint32_t)(k->scale[j] >> 4) << 2 * j;
        twin_or(b + 4 + j / 2, (k->scale[j] & 15) << 4 * (j % 2));
        twin_pack_16(k->q + 32 * j, b + 8 + 16 * j);
    }
    twin_put16(b + 2, high);
}

static inline void twin_pack_tq2_0(const twin_block *k, unsigned char *b)
{
    twin_pack_quarters(k->q, 0, b);
    twin_put16(b + 64, k->d);
}

static inline double twin_value_q4_0(const twin_block *k, int i) { return (k->q[i] - 8) * twin_half(k->d); }
static inline double twin_value_q5_0(const twin_block *k, int i) { return (k->q[i] - 16) * twin_half(k->d); }
static inline double twin_value_least(const twin_block *k, int i)
{
    return k->q[i] * twin_half(k->d) + twin_half(k->m);
}
static inline double twin_value_q8_0(const twin_block *k, int i) { return (k->q[i] - 128) * twin_half(k->d); }
static inline double twin_value_tq2_0(const twin_block *k, int i) { return (k->q[i] - 1) * twin_half(k->d); }

static inline double twin_value_16(const twin_block *k, int i)
{
    return (double)(k->scale[i / 16] * k->q[i]) * twin_half(k->d) - k->least[i / 16] * twin_half(k->m);
}

static inline double twin_value_32(const twin_block *k, int i)
{
    return (double)(k->scale[i / 32] * k->q[i]) * twin_half(k->d) - k->least[i / 32] * twin_half(k->m);
}

static inline double twin_value_q3_k(const twin_block *k, int i)
{
    return twin_half(k->d) * (k->scale[i / 16] - 32) * (k->q[i] - 4);
}

static inline double twin_value_q6_k(const twin_block *k, int i)
{
    return twin_half(k->d) * k->scale[i / 16] * (k->q[i] - 32);
}

static const int twin_uneven[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

static inline double twin_value_iq4_nl(const twin_block *k, int i) { return twin_half(k->d) * twin_uneven[k->q[i]]; }

static inline double twin_value_iq4_xs(const twin_block *k, int i)
{
    return twin_half(k->d) * (k->scale[i / 32] - 32) * twin_uneven[k->q[i]];
}

static inline double twin_value_mxfp4(const twin_block *k, int i)
{
    static const double e2m1[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    const double v = ldexp(e2m1[k->q[i] & 7], (int)k->d - 127);
    if (k->d == 255) return NAN;
    if (v > 3.4028234663852886e38) return k->q[i] & 8 ? -HUGE_VAL : HUGE_VAL;
    return k->q[i] & 8 ? -v : v;
}

static const twin_block_type twin_block_types[] = {
    { "Q4_0", 2, 32, 18, 4, 0, 32, twin_pack_q4_0, twin_value_q4_0 },
    { "Q4_1", 3, 32, 20, 4, 0, 32, twin_pack_q4_1, twin_value_least },
    { "Q5_0", 6, 32, 22, 5, 0, 32, twin_pack_q5_0, twin_value_q5_0 },
    { "Q5_1", 7, 32, 24, 5, 0, 32, twin_pack_q5_1, twin_value_least },
    { "Q8_0", 8, 32, 34, 8, 0, 32, twin_pack_q8_0, twin_value_q8_0 },
    { "Q2_K", 10, 256, 84, 2, 4, 16, twin_pack_q2_k, twin_value_16 },
    { "Q3_K", 11, 256, 110, 3, 6, 16, twin_pack_q3_k, twin_value_q3_k },
    { "Q4_K", 12, 256, 144, 4, 6, 32, twin_pack_q4_k, twin_value_32 },
    { "Q5_K", 13, 256, 176, 5, 6, 32, twin_pack_q5_k, twin_value_32 },
    { "Q6_K", 14, 256, 210, 6, 8, 16, twin_pack_q6_k, twin_value_q6_k },
    { "IQ4_NL", 20, 32, 18, 4, 0, 32, twin_pack_q4_0, twin_value_iq4_nl },
    { "IQ4_XS", 23, 256, 136, 4, 6, 32, twin_pack_iq4_xs, twin_value_iq4_xs },
    { "TQ2_0", 35, 256, 66, 2, 0, 256, twin_pack_tq2_0, twin_value_tq2_0 },
    { "MXFP4", 39, 32, 17, 4, 0, 32, twin_pack_mxfp4, twin_value_mxfp4 },
};
enum { TWIN_BLOCK_TYPES = sizeof twin_block_types / sizeof twin_block_types[0] };

/* Numbers of all kinds; `ends`: largest and smallest ones alone. */
static inline void twin_block_draw(uint64_t *rng, const twin_block_type *t, twin_block *k, bool ends)
{
    const int top = 1 << t->q_bits, scales = 1 << t->scale_bits;
    const bool six = t->number == 14;
    for (int i = 0; i < 256; i++) k->q[i] = ends ? cases_below(rng, 2) * (top - 1) : cases_below(rng, top);
    for (int j = 0; j < 16; j++) {
        k->scale[j] = (ends ? cases_below(rng, 2) * (scales - 1) : cases_below(rng, scales)) - (six ? 128 : 0);
        k->least[j] = ends ? cases_below(rng, 2) * (scales - 1) : cases_below(rng, scales);
    }
    k->d = cases_u32(rng) >> 16;
    k->m = cases_u32(rng) >> 16;
    if (t->number == 39) k->d &= 255;
}

/* Q8_0's numbers have a sign: 128 more here. */
static inline void twin_block_pack(const twin_block_type *t, const twin_block *k, unsigned char *b)
{
    twin_block shifted = *k;
    for (int i = 0; i < 256 && t->number == 8; i++) shifted.q[i] -= 128;
    t->pack(&shifted, b);
}

#endif /* TWIN_GGUF_H */

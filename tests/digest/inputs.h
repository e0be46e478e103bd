/* inputs.h - the digest's hash, its generator, and numbers with every kind of trouble in them.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_INPUTS_H
#define DIGEST_INPUTS_H

#include <trnmath/trnmath.h>

/* ---- the hash: FNV-1a ---- */

static uint64_t hash;

static void hash_start(void) { hash = 0xcbf29ce484222325u; }

static void hash_bytes(const void *data, size_t size)
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
}

static void hash_int(int64_t value) { hash_bytes(&value, sizeof value); }

/* ---- inputs: xorshift64* ---- */

static uint64_t generator;

static uint32_t next(void)
{
    generator ^= generator >> 12;
    generator ^= generator << 25;
    generator ^= generator >> 27;
    return (uint32_t)(generator * 0x2545F4914F6CDD1Du >> 32);
}

static int below(int n) { return (int)(next() % (uint32_t)n); }

/* What numbers look like. All are built as binary32 bits: sign, exponent, 23 random mantissa bits. */
typedef enum flavour {
    ORDINARY, /* 2^-8 .. 2^8 */
    CANCEL,   /* one exponent, both signs: sums keep losing their leading bits */
    TINY,    /* products around 2^-126 and below: subnormal results, and products that fused and separate round apart */
    HUGE_,   /* sums that overflow */
    SPECIAL, /* ordinary, with zeros, subnormals, infinities and NaN among them */
    WILD,    /* any bits at all */
    FLAVOURS
} flavour;

static uint32_t number(flavour kind)
{
    static const uint32_t special[] = { 0,           0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x00400000u,
                                        0x00800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f800001u,
                                        0x7f7fffffu, 0xff7fffffu, 0x33800000u, 0x3f800000u };
    const uint32_t bits = next(), sign_and_mantissa = bits & 0x807fffffu;
    switch (kind) {
    case ORDINARY: return sign_and_mantissa | (uint32_t)(119 + below(17)) << 23;
    case CANCEL: return sign_and_mantissa | 127u << 23;
    case TINY: return sign_and_mantissa | (uint32_t)(52 + below(16)) << 23;
    case HUGE_: return sign_and_mantissa | (uint32_t)(184 + below(9)) << 23;
    case SPECIAL: return below(60) ? sign_and_mantissa | (uint32_t)(119 + below(17)) << 23 : special[below(16)];
    case WILD:
    case FLAVOURS:
    default: return bits;
    }
}

/* The code of such a number: cut, not rounded, so that nothing is tested with itself. */
static uint32_t code_of(trn_format format, flavour kind)
{
    const uint32_t bits = number(kind);
    if (format == TRN_BF16) return bits >> 16;
    if (format == TRN_TF32) return bits & 0xffffe000u;
    if (format != TRN_F16) return bits;
    if (kind == TINY) return next() & 0x87ffu; /* f16 has no such exponents: its subnormals and its smallest numbers */
    if (kind == HUGE_) return (next() & 0x83ffu) | (uint32_t)(28 + below(3)) << 10;
    if (kind == SPECIAL || kind == WILD) return next() & (below(60) ? 0xbfffu : 0xffffu);
    return (bits >> 16 & 0x8000u) | (uint32_t)(kind == CANCEL ? 15 : 12 + below(7)) << 10 | (bits & 0x3ffu);
}

static void fill(trn_format format, void *data, size_t count, flavour kind)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = code_of(format, kind);
        memcpy((char *)data + i * trn_format_bytes(format), &code, trn_format_bytes(format));
    }
}

static const trn_rounding all_modes[] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                          TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };

#endif /* DIGEST_INPUTS_H */

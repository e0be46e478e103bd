/* numbers.h - the digest's sections on numbers: codecs, conversions, random words, block scaling, packing.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_NUMBERS_H
#define DIGEST_NUMBERS_H

#include <tests/digest/inputs.h>

static const trn_format wide[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16 };

static bool codecs(void)
{
    for (int f = TRN_F32; f <= TRN_U32; f++) {
        const trn_format format = (trn_format)f;
        const int bits = trn_format_bits(format);
        for (uint32_t i = 0; i < 1024; i++) { /* all codes of narrow formats, some of wide ones */
            const uint32_t code = bits <= 8 ? i : next();
            const float value = trn_decode(format, code);
            hash_bytes(&value, sizeof value);
        }
        for (int i = 0; i < 4000; i++) {
            const uint32_t x = number((flavour)(i % FLAVOURS)), random = next();
            float value;
            memcpy(&value, &x, sizeof value);
            hash_int(trn_encode(format, value, all_modes[i % 6], i & 8 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT, random));
        }
    }
    return true;
}

enum { ROWS = 37, COLUMNS = 53, PITCH = 64 }; /* a view with gaps, and lengths that no vector width divides */

static void one_conversion(trn_format from, trn_format to, trn_rounding rounding, int variant)
{
    static uint32_t source[PITCH * PITCH], target[PITCH * PITCH];
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    memset(target, 0x5a, sizeof target);
    fill(from, source, PITCH * PITCH, (flavour)(variant % FLAVOURS));
    args.src = trn_tensor_2d(from, source, ROWS, COLUMNS);
    args.dst = trn_tensor_2d(to, target, ROWS, COLUMNS);
    args.rounding = rounding;
    args.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    args.seed = 7 + (uint64_t)variant;
    args.stream = 11;
    args.sr_bits = variant == 3 ? 8 : variant == 4 ? 16 : variant == 5 ? 13 : 0;
    args.sr_carry_to_inf = variant == 2;
    if (variant == 1) { /* columns of the target are contiguous */
        args.dst.stride[0] = 1;
        args.dst.stride[1] = PITCH;
    } else if (variant == 2) { /* gaps between the rows of both */
        args.src.stride[0] = args.dst.stride[0] = PITCH;
        args.src.stride[1] = args.dst.stride[1] = 1;
    } else if (variant == 3) { /* one row for all */
        args.src.stride[0] = 0;
        args.src.stride[1] = 1;
    }
    hash_int(trn_convert(&args));
    hash_bytes(target, sizeof target); /* what lies between must be untouched, and is part of the sum */
}

static bool conversions(void)
{
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            for (int mode = 0; mode < 6; mode++)
                for (int variant = 0; variant < (mode < 2 ? 6 : 2); variant++)
                    one_conversion(wide[from], wide[to], all_modes[mode], variant);

    /* Long enough for several threads. */
    enum { LONG = 150001 };
    static float x[LONG];
    static uint16_t y[LONG];
    fill(TRN_F32, x, LONG, WILD);
    for (int mode = 0; mode < 2; mode++) {
        trn_convert_args args;
        memset(&args, 0, sizeof args);
        args.src = trn_tensor_1d(TRN_F32, x, LONG);
        args.dst = trn_tensor_1d(mode ? TRN_BF16 : TRN_F16, y, LONG);
        args.rounding = all_modes[mode];
        hash_int(trn_convert(&args));
        hash_bytes(y, sizeof y);
    }
    return true;
}

/* Every format into every other, some cFP8 among them, in every mode. */
static const trn_cfp8 cfp8s[] = {
    { 2, 1, false }, { 3, 3, true }, { 5, 15, true }, { 4, -60, false }, { 5, 100, false }
};

static bool narrow_conversions(void)
{
    enum { N = 517 };
    static uint32_t source[N], target[N];
    int turn = 0;
    for (int from = TRN_F32; from <= TRN_CFP8; from++)
        for (int to = TRN_F32; to <= TRN_CFP8; to++)
            for (int mode = 0; mode < 6; mode++, turn++) {
                trn_convert_args args;
                memset(&args, 0, sizeof args);
                memset(target, 0x5a, sizeof target);
                fill((trn_format)from, source, N, (flavour)(turn % FLAVOURS));
                args.src = trn_tensor_1d((trn_format)from, source, N - turn % 7);
                args.dst = trn_tensor_1d((trn_format)to, target, N - turn % 7);
                args.src.cfp8 = cfp8s[turn % 5];
                args.dst.cfp8 = cfp8s[turn % 3];
                args.rounding = all_modes[mode];
                args.overflow = turn & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                args.seed = 3;
                args.stream = (uint64_t)turn;
                args.index = (uint64_t)turn;
                args.sr_bits = turn % 4 * 8 + (turn % 5 == 0);
                args.sr_carry_to_inf = turn % 3 == 0;
                hash_int(trn_convert(&args));
                hash_bytes(target, sizeof target);
            }
    return true;
}

static bool random_words(void)
{
    enum { N = 3001 };
    static uint32_t word[N];
    static trn_xorwow_vector xorwow;
    static trn_lfsr_vector lfsr;
    trn_random_fill(word, N, 5, 6, 0xfffffffffffffa00u, TRN_ISA_AUTO);
    hash_bytes(word, sizeof word);
    for (int bits = 1; bits <= 32; bits++) {
        trn_random_fields(word, N, bits, 5, 6, 7, TRN_ISA_AUTO);
        hash_bytes(word, sizeof word);
    }
    trn_xorwow_vector_seed(&xorwow, 8);
    trn_lfsr_vector_seed(&lfsr, 9);
    for (size_t n = 1; n < N; n = 3 * n + 1) {
        trn_xorwow_vector_words(&xorwow, word, n, TRN_ISA_AUTO);
        hash_bytes(word, n * sizeof word[0]);
        trn_lfsr_vector_words(&lfsr, word, n, TRN_ISA_AUTO);
        hash_bytes(word, n * sizeof word[0]);
    }
    return true;
}

/* Stochastic rounding by the Vector engine's own generator. */
static bool stochastic_xorwow(void)
{
    enum { N = 2049 };
    static const trn_format to[] = { TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F4_E2M1, TRN_I8, TRN_TF32 };
    static uint32_t source[N], target[N];
    static trn_xorwow_vector xorwow;
    trn_xorwow_vector_seed(&xorwow, 10);
    for (unsigned i = 0; i < sizeof to / sizeof to[0]; i++)
        for (int bits = 0; bits <= 32; bits += 8) {
            trn_convert_args args;
            memset(&args, 0, sizeof args);
            fill(TRN_F32, source, N, ORDINARY);
            args.src = trn_tensor_1d(TRN_F32, source, N);
            args.dst = trn_tensor_1d(to[i], target, N);
            args.rounding = TRN_STOCHASTIC;
            args.sr_bits = bits;
            args.xorwow = &xorwow;
            hash_int(trn_convert(&args));
            hash_bytes(target, N * trn_format_bytes(to[i]));
        }
    return true;
}

/* Block scaling along both axes, back again, and into the order that machines hold it in. */
static bool block_scaling(void)
{
    enum { R = 64, K = 96 };
    static const trn_format element[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F6_E2M3, TRN_F6_E3M2, TRN_F4_E2M1, TRN_I8 };
    static const trn_format from[] = { TRN_F32, TRN_BF16, TRN_F16 };
    static uint32_t source[R * K], back[R * K];
    static uint8_t code[R * K], scale[R * K / 32], packed[R * K];
    int turn = 0;
    for (int e = 0; e < 6; e++)
        for (int rule = 0; rule < 3; rule++)
            for (int mode = 0; mode < 6; mode++, turn++) {
                const int axis = turn & 1; /* 0: the last */
                trn_mx_quantize_args q;
                memset(&q, 0, sizeof q);
                memset(code, 0x5a, sizeof code);
                fill(from[turn % 3], source, R * K, (flavour)(turn / 2 % FLAVOURS));
                q.src = trn_tensor_2d(from[turn % 3], source, R, K);
                q.dst = trn_tensor_2d(element[e], code, R, K);
                q.dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale, axis ? R / 32 : R, axis ? K : K / 32);
                q.axis = axis ? -2 : 0;
                q.scale = (trn_mx_scale)rule;
                q.rounding = all_modes[mode];
                q.seed = 12;
                q.sr_bits = turn % 4 * 8;
                hash_int(trn_mx_quantize(&q));
                hash_bytes(code, sizeof code);
                hash_bytes(scale, sizeof scale);

                trn_mx_dequantize_args d;
                memset(&d, 0, sizeof d);
                memset(back, 0x5a, sizeof back);
                d.dst = trn_tensor_2d(from[turn / 3 % 3], back, R, K);
                d.src = q.dst;
                d.src_scale = q.dst_scale;
                d.axis = q.axis;
                hash_int(trn_mx_dequantize(&d));
                hash_bytes(back, sizeof back);

                if (e == 4 || e == 2) { /* two FP4 in a byte, four FP6 in three */
                    trn_pack_args p;
                    memset(&p, 0, sizeof p);
                    p.src = q.dst;
                    p.dst = trn_tensor_2d(TRN_U8, packed, R, e == 4 ? K / 2 : K / 4 * 3);
                    hash_int(trn_pack(&p));
                    hash_bytes(packed, sizeof packed);
                }
            }
    return true;
}

#endif /* DIGEST_NUMBERS_H */

/* random.c - random words, and rounding by them: Philox as a function, the engines' generators as states.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_random.h>

#define PHILOX                                                                                                         \
    "Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011; which words trnmath takes is "  \
    "its own choice: no chip has this generator"

static uint64_t draw64(vec_random *r)
{
    const uint64_t high = vec_draw(r);
    return high << 32 | vec_draw(r);
}

/* ---- Philox4x32-10 ---- */

static void make_philox(void)
{
    static const uint32_t known[3][6] = {
        { 0, 0, 0, 0, 0, 0 },
        { 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu },
        { 0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u }
    };
    vec_file f = vec_open("philox4x32_10", "random/philox4x32_10");
    vec_random r = { 40, 0, 0 };
    vec_columns(&f, "counter[4]/8 key[2]/8", "word[4]/8");
    vec_head(&f, "rule", "one block of Philox4x32 with ten rounds");
    vec_known(&f, "documented", "Salmon, Moraes, Dror, Shaw, SC 2011; the first three are known answers of Random123");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < 128; i++) {
        uint32_t in[6], out[4];
        for (int j = 0; j < 6; j++) in[j] = i < 3 ? known[i][j] : vec_draw(&r);
        trn_philox4x32_10(in, in + 4, out);
        vec_begin(&f, i < 3 ? "known answers" : "random");
        vec_words(&f, 8, in, 6);
        vec_arrow(&f);
        vec_words(&f, 8, out, 4);
        vec_end(&f);
    }
    vec_close(&f);
}

static void put_place(vec_file *f, const char *kind, const uint64_t place[3])
{
    vec_begin(f, kind);
    for (int i = 0; i < 3; i++) vec_word(f, 16, place[i]);
}

/* Seed, stream and index of vector i. */
static void place_of(uint64_t place[3], vec_random *r, int i)
{
    static const uint64_t edge[] = { 0, 1, 3, 4, 0xffffffffu, 0x100000000u, 0x3ffffffffu, UINT64_MAX - 3, UINT64_MAX };
    place[0] = i < 27 ? edge[i % 9] : draw64(r);
    place[1] = i < 27 ? edge[i / 9 * 2] : draw64(r);
    place[2] = i < 27 ? edge[i * 5 % 9] : i % 2 ? draw64(r) : vec_below(r, 1000);
}

static void make_fields(int bits)
{
    vec_file f = vec_open("random_field", "random/field.%d_bits", bits);
    vec_random r = { 41, (uint64_t)bits, 0 };
    vec_head(&f, "bits", "%d", bits);
    vec_columns(&f, "seed/16 stream/16 index/16", "field/8");
    vec_head(&f, "rule",
             "word i of a stream is word i mod 4 of the Philox4x32-10 block with key {seed low, seed high} and "
             "counter {i / 4 low, i / 4 high, stream low, stream high}");
    vec_head(&f, "rule",
             "8 and 16 bits: field i is field i mod (32 / bits), low ones first, of word i div (32 / bits); 32: "
             "word i; any other count: the top bits of word i");
    vec_known(&f, "documented", PHILOX);
    vec_head(&f, "seed_of_inputs", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < 128; i++) {
        uint64_t place[3];
        place_of(place, &r, i);
        put_place(&f, i < 27 ? "edges" : "random", place);
        vec_arrow(&f);
        vec_word(&f, 8, trn_random_field(place[0], place[1], place[2], bits));
        vec_end(&f);
    }
    vec_close(&f);
}

/* ---- rounding by those words ---- */

static void make_stream(const char *name, int bits)
{
    const vec_format *to = vec_format_named(name);
    vec_file f = vec_open("stochastic_stream", "random/stochastic.%s.%d_bits", name, bits);
    vec_random r = { 42, (uint64_t)bits << 8 | (uint64_t)to->format, 0 };
    vec_inputs hard = vec_hard(to, &r, false);
    char out[16];
    snprintf(out, sizeof out, "code/%d", vec_digits(to));
    vec_head(&f, "from", "float32");
    vec_head_format(&f, "to", to);
    vec_head(&f, "bits", "%d", bits);
    vec_columns(&f, "seed/16 stream/16 index/16 x/8", out);
    vec_head_nan(&f, to);
    vec_head(&f, "rule",
             "as encode with rounding stochastic, with the field of (seed, stream, index): away from zero if "
             "and only if floor(2^%d * p) + field >= 2^%d; overflow default",
             bits, bits);
    vec_known(&f, "assumed", PHILOX);
    vec_head(&f, "seed_of_inputs", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < 256; i++) {
        uint64_t place[3];
        uint32_t code = 0;
        place_of(place, &r, i);
        float x = vec_float(hard.x[vec_below(&r, (uint32_t)hard.count)]);
        trn_convert_args args = { .dst = trn_tensor_1d(to->format, &code, 1), .rounding = TRN_STOCHASTIC };
        args.src = trn_tensor_1d(TRN_F32, &x, 1);
        args.seed = place[0];
        args.stream = place[1];
        args.index = place[2];
        args.sr_bits = bits;
        if (trn_convert(&args) != TRN_OK) vec_fail("%s: it cannot be converted", f.name);
        put_place(&f, i < 27 ? "edges" : "random", place);
        vec_word(&f, 8, vec_bits(x));
        vec_arrow(&f);
        vec_word(&f, vec_digits(to), code);
        vec_end(&f);
    }
    vec_inputs_free(&hard);
    vec_close(&f);
}

/* ---- generators with a state ---- */

static void make_xorwow(void)
{
    vec_file f = vec_open("xorwow", "random/xorwow");
    vec_random r = { 43, 0, 0 };
    vec_columns(&f, "state[6]/8", "word/8 state[6]/8");
    vec_head(&f, "rule",
             "state x y z w v d: t = x ^ x >> 2; x = y, y = z, z = w, w = v; v = v ^ v << 4 ^ t ^ t << 1; d = d + "
             "362437; word = v + d");
    vec_known(&f, "assumed",
              "GpSimd, and the Vector engine of Trainium3, have XORWOW with six words: documented (NKI, "
              "rand_set_state); Marsaglia, Xorshift RNGs, 2003: its constants");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < 128; i++) {
        trn_xorwow g;
        for (int j = 0; j < 6; j++) g.state[j] = i < 5 ? (uint32_t)(j == i) : vec_draw(&r);
        vec_begin(&f, i < 5 ? "one bit" : "random");
        vec_words(&f, 8, g.state, 6);
        vec_arrow(&f);
        vec_word(&f, 8, trn_xorwow_next(&g));
        vec_words(&f, 8, g.state, 6);
        vec_end(&f);
    }
    vec_close(&f);
}

static void make_lfsr(void)
{
    vec_file f = vec_open("lfsr", "random/lfsr");
    vec_random r = { 44, 0, 0 };
    vec_columns(&f, "state[4]/8", "word/8 state[4]/8");
    vec_head(&f, "rule",
             "bit i of state[j] is step 32 j + i; the word has the next 32 steps, the first in bit 0; s[t] = "
             "s[t - 128] ^ s[t - 126] ^ s[t - 101] ^ s[t - 99]");
    vec_known(&f, "assumed",
              "that the Vector engines of Trainium1 and 2 have an LFSR: documented; everything else about "
              "it: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < 128; i++) {
        trn_lfsr g;
        for (int j = 0; j < 4; j++) g.state[j] = i < 4 ? (uint32_t)(j == i) : vec_draw(&r);
        vec_begin(&f, i < 4 ? "one bit" : "random");
        vec_words(&f, 8, g.state, 4);
        vec_arrow(&f);
        vec_word(&f, 8, trn_lfsr_next(&g));
        vec_words(&f, 8, g.state, 4);
        vec_end(&f);
    }
    vec_close(&f);
}

void vec_make_random(void)
{
    static const int bits[] = { 8, 11, 16, 32 };
    make_philox();
    for (int i = 0; i < 4; i++) make_fields(bits[i]);
    for (int i = 2; i < 4; i++) {
        make_stream("bfloat16", bits[i]);
        make_stream("float16", bits[i]);
        make_stream("float8_e4m3", bits[i]);
    }
    make_stream("float8_e4m3", 8);
    make_xorwow();
    make_lfsr();
}

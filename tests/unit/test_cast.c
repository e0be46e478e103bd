/* test_cast.c - every kernel of data/cast.h against the codec: formats, modes, lengths, addresses, environments.
 * SPDX-License-Identifier: MIT
 *
 * The codec (trni_encode_row, trni_decode_row) is held against the twin and the golden files elsewhere (test_format.c,
 * test_cfp8.c, test_sweep.c). Here it is the measure of the kernels, on every instruction set of this host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/data/cast.h"
#include "twin/cases.h"
#include "twin/host.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- what is cast: all formats, and configurable FP8 from one end of its biases to the other ---- */

enum { FORMATS = TRN_U32 - TRN_F32 + 1, CONFIGURED = 21, ROWS = FORMATS + CONFIGURED };

static const trn_cfp8 configured[CONFIGURED] = {
    { 4, 7, true },    { 5, 15, true },  { 5, 16, false },  { 2, 1, false },   { 2, 1, true },     { 3, 20, false },
    { 4, 60, false },  { 4, 61, true },  { 3, 59, true },   { 2, 122, false }, { 5, 125, true },   { 3, 90, false },
    { 2, 89, false },  { 2, 90, true },  { 5, 96, false },  { 4, -20, false }, { 4, -113, false }, { 5, -96, true },
    { 2, -124, true }, { 3, -60, true }, { 3, -92, false },
};

static trn_format_info row_of(int i)
{
    if (i < FORMATS) return *trn_format_info_of((trn_format)(TRN_F32 + i));
    const trn_format_info f = trn_cfp8_info(configured[i - FORMATS]);
    if (f.kind == TRN_KIND_NONE) fail_msg("descriptor %d of this test does not exist", i - FORMATS);
    return f;
}

static size_t bytes_of(const trn_format_info *f) { return ((size_t)f->bits + 7) / 8; }

static uint32_t load(const unsigned char *at, size_t bytes)
{
    uint32_t code = 0;
    for (size_t i = bytes; i-- > 0;) code = code << 8 | at[i];
    return code;
}

static void store(unsigned char *at, size_t bytes, uint32_t code)
{
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(code >> 8 * i);
}

/* ---- how ---- */

/* Numbers 0 .. ENCODINGS - 1: the five modes without random bits, saturating and not; then numbers of random bits. */
static const int bit_counts[] = { 1, 5, 8, 13, 16, 20, 24, 31, 32, 0 };
enum { PLAIN = 10, ENCODINGS = PLAIN + 3 * (int)(sizeof bit_counts / sizeof bit_counts[0]) };

static trni_encoding encoding_of(int i)
{
    static const trn_rounding plain[5] = { TRN_NEAREST_EVEN, TRN_TOWARD_ZERO, TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE,
                                           TRN_TO_ODD };
    trni_encoding how = { { TRN_STOCHASTIC, 0, 0 }, TRN_OVERFLOW_DEFAULT, false };
    if (i < PLAIN) {
        how.how.rounding = plain[i / 2];
        if (i % 2) how.overflow = TRN_SATURATE;
        return how;
    }
    how.how.bits = bit_counts[(i - PLAIN) / 3];
    if ((i - PLAIN) % 3 == 1) how.overflow = TRN_SATURATE;
    if ((i - PLAIN) % 3 == 2) how.sr_carry_to_inf = true;
    return how;
}

static uint32_t highest_field(trni_encoding how)
{
    return how.how.bits == 0 || how.how.bits == 32 ? 0xffffffffu : (1u << how.how.bits) - 1;
}

static uint32_t any_field(trni_encoding how, uint64_t *rng) /* all zeros and all ones often */
{
    return (cases_one_in(rng, 4) ? 0u - (cases_u32(rng) & 1u) : cases_u32(rng)) & highest_field(how);
}

static uint32_t codec(const trn_format_info *f, uint32_t x, trni_encoding how, uint32_t field)
{
    how.how.random = field;
    return trni_encode_row(f, x, how);
}

/* ---- encoders ---- */

enum { MOST = CASES_STRATIFIED };
static uint32_t input[MOST], field[MOST];
static unsigned char expected[4 * MOST], found[4 * MOST + 256];

static void expect_codes(const trn_format_info *f, trni_encoding how, size_t n)
{
    for (size_t i = 0; i < n; i++) store(expected + i * bytes_of(f), bytes_of(f), codec(f, input[i], how, field[i]));
}

static void compare_codes(const trn_format_info *f, trni_encoding how, trn_isa isa, const unsigned char *y, size_t n)
{
    const size_t bytes = bytes_of(f);
    if (memcmp(y, expected, n * bytes) == 0) return;
    for (size_t i = 0; i < n; i++)
        CASES_EQUAL(
            load(expected + i * bytes, bytes), load(y + i * bytes, bytes),
            "%08x to %s (%d bits, bias %d), %s, %d random bits %08x, saturate %d, carry %d, element %d of %d, %s",
            (unsigned)input[i], f->name, f->exponent_bits, f->bias, trn_round_text(how.how.rounding), how.how.bits,
            (unsigned)field[i], (int)how.overflow, how.sr_carry_to_inf, (int)i, (int)n, trn_isa_text(isa));
}

static const uint32_t *fields_for(trni_encoding how) { return how.how.rounding == TRN_STOCHASTIC ? field : NULL; }

static void check_encoders(const trn_format_info *f, trni_encoding how, size_t n)
{
    for (int k = 0; k < COUNT(all_isas); k++) {
        trni_encoder e;
        if (!trn_isa_supported(all_isas[k])) continue;
        trni_encoder_init(&e, f, how, all_isas[k]);
        memset(found, 0x5a, n * bytes_of(f));
        trni_encoder_run(&e, found, input, fields_for(how), n);
        compare_codes(f, how, all_isas[k], found, n);
    }
}

/* All exponents with the mantissas at which some rounding changes its mind, both signs, NaN and infinities among them;
 * in order, so that blocks with and without special numbers come, and shuffled, so that every lane sees every kind. */
static void encoders_equal_the_codec(void **state)
{
    (void)state;
    const int step = cases_rounds(3, 3) == 3 ? 1 : 3; /* less under the sanitizers */
    uint64_t rng = 60;
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < ENCODINGS; i++) {
            const trn_format_info f = row_of(row);
            const trni_encoding how = encoding_of(i);
            size_t n = 0;
            for (int j = cases_below(&rng, step); j < CASES_STRATIFIED; j += step) {
                input[n] = cases_stratified(j);
                field[n++] = any_field(how, &rng);
            }
            if (i % 2)
                for (size_t j = n - 1; j > 0; j--) {
                    const size_t other = (size_t)cases_below(&rng, (int)j + 1);
                    const uint32_t kept = input[j];
                    input[j] = input[other];
                    input[other] = kept;
                }
            expect_codes(&f, how, n);
            check_encoders(&f, how, n);
        }
}

/* The least field that takes x away from zero, by the codec: that one must, and the one before it must not. */
static void fields_at_their_thresholds(void **state)
{
    (void)state;
    uint64_t rng = 61;
    const int count = 4 * cases_rounds(300, 3000);
    for (int row = 1; row < ROWS; row++)
        for (int i = PLAIN; i < ENCODINGS; i++) {
            const trn_format_info f = row_of(row);
            const trni_encoding how = encoding_of(i);
            const int low = f.kind == TRN_KIND_FLOAT ? 127 - f.bias - 60 : 60, high = low + (1 << f.exponent_bits) + 70;
            for (int j = 0; j + 1 < count; j += 2) { /* exponents from far below the least code to a little above all */
                const int exponent = low + cases_below(&rng, high - low);
                const uint32_t most = highest_field(how), mantissa = cases_u32(&rng) >> (9 + cases_below(&rng, 20));
                const uint32_t x = (uint32_t)(exponent < 0     ? 0
                                              : exponent > 254 ? 254
                                                               : exponent)
                                       << 23 |
                                   mantissa | (cases_u32(&rng) & 0x80000000u);
                uint32_t least = 0, step = most / 2 + 1;
                const uint32_t toward = codec(&f, x, how, 0);
                for (; step > 0; step /= 2)
                    if (least + step <= most && codec(&f, x, how, least + step) == toward) least += step;
                input[j] = input[j + 1] = x;
                field[j] = least;
                field[j + 1] = least < most ? least + 1 : least;
            }
            expect_codes(&f, how, (size_t)count);
            check_encoders(&f, how, (size_t)count);
        }
}

/* ---- decoders ---- */

static uint32_t wide_code(int i, uint64_t *rng)
{
    if (i < 8) return cases_stratified(i);
    const int top = cases_below(rng, 32); /* around powers of two, and ties of what binary32 cannot hold */
    const uint32_t bit = 1u << top, tie = top > 24 ? bit | 1u << (top - 24) : bit;
    switch (cases_below(rng, 4)) {
    case 0: return bit - 1u + (uint32_t)cases_below(rng, 3);
    case 1: return tie + (uint32_t)cases_below(rng, 3) - 1u;
    case 2: return 0u - tie + (uint32_t)cases_below(rng, 3) - 1u;
    default: return cases_float(rng);
    }
}

static size_t fill_codes(const trn_format_info *f, unsigned char *codes, uint64_t *rng)
{
    const size_t bytes = bytes_of(f), n = bytes == 4 ? 50000 : (size_t)1 << 8 * bytes;
    for (size_t i = 0; i < n; i++) store(codes + i * bytes, bytes, bytes == 4 ? wide_code((int)i, rng) : (uint32_t)i);
    return n;
}

static void check_decoder(const trn_format_info *f, trn_isa isa, const unsigned char *codes, size_t n, const void *y)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = load(codes + i * bytes_of(f), bytes_of(f));
        CASES_EQUAL(trni_decode_row(f, code), load((const unsigned char *)y + 4 * i, 4),
                    "%s (%d bits, bias %d) code %08x, element %d of %d, %s", f->name, f->exponent_bits, f->bias,
                    (unsigned)code, (int)i, (int)n, trn_isa_text(isa));
    }
}

static void decoders_equal_the_codec(void **state)
{
    (void)state;
    uint64_t rng = 62;
    for (int row = 0; row < ROWS; row++) {
        const trn_format_info f = row_of(row);
        const size_t n = fill_codes(&f, expected, &rng);
        for (int k = 0; k < COUNT(all_isas); k++) {
            trni_decoder d;
            if (!trn_isa_supported(all_isas[k])) continue;
            trni_decoder_init(&d, &f, all_isas[k]);
            trni_decoder_run(&d, found, expected, n);
            check_decoder(&f, all_isas[k], expected, n, found);
        }
    }
}

/* ---- lengths and addresses ---- */

enum { SHORT = 200, GUARD = 0xee };

static void guarded(const unsigned char *y, size_t before, size_t bytes, const char *what)
{
    for (size_t i = 0; i < before; i++)
        if (y[i] != GUARD) fail_msg("%s: wrote before its first element", what);
    for (size_t i = before + bytes; i < before + bytes + 64; i++)
        if (y[i] != GUARD) fail_msg("%s: wrote behind its last element", what);
}

/* Every length, at odd addresses, with and without the caches: nothing else is written. */
static void lengths_and_addresses(void **state)
{
    (void)state;
    static unsigned char x[4 * SHORT + 8];
    uint64_t rng = 63;
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < COUNT(all_isas); k++)
            for (size_t n = 0; n <= SHORT; n += row % 4 == 0 ? 1 : 1 + (size_t)cases_below(&rng, 9)) {
                const trn_format_info f = row_of(row);
                const trni_encoding how = encoding_of(cases_below(&rng, 3) ? cases_below(&rng, ENCODINGS) : 0);
                const size_t bytes = bytes_of(&f), from = (size_t)cases_below(&rng, 8),
                             to = (size_t)cases_below(&rng, 128);
                trni_encoder e;
                trni_decoder d;
                if (!trn_isa_supported(all_isas[k])) continue;
                for (size_t i = 0; i < n; i++) {
                    input[i] = cases_float(&rng);
                    field[i] = any_field(how, &rng);
                    store(x + from + 4 * i, 4, input[i]);
                }
                expect_codes(&f, how, n);
                trni_encoder_init(&e, &f, how, all_isas[k]);
                for (int past = 0; past < 2; past++) {
                    memset(found, GUARD, to + 4 * SHORT + 64);
                    if (!past)
                        trni_encoder_run(&e, found + to, x + from, fields_for(how), n);
                    else if (!trni_encoder_run_past(&e, found + to, x + from, n))
                        continue;
                    else
                        trni_stream_end();
                    compare_codes(&f, how, all_isas[k], found + to, n);
                    guarded(found, to, n * bytes, f.name);
                }
                trni_decoder_init(&d, &f, all_isas[k]);
                for (int past = 0; past < 2; past++) {
                    memset(found, GUARD, to + 4 * SHORT + 64);
                    if (!past)
                        trni_decoder_run(&d, found + to, x + from, n);
                    else if (!trni_decoder_run_past(&d, found + to, x + from, n))
                        continue;
                    else
                        trni_stream_end();
                    check_decoder(&f, all_isas[k], x + from, n, found + to);
                    guarded(found, to, 4 * n, f.name);
                }
            }
}

/* ---- the floating-point environment ---- */

enum { SAMPLE = 6000 };

static void the_environment_does_not_matter(void **state)
{
    (void)state;
    uint64_t rng = 64;
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < COUNT(all_isas); k++)
            for (int environment = 1; environment < ENVIRONMENTS; environment++) {
                const trn_format_info f = row_of(row);
                trni_decoder d;
                if (!trn_isa_supported(all_isas[k])) continue;
                for (int i = 0; i < ENCODINGS; i += 1 + cases_below(&rng, 8)) {
                    const trni_encoding how = encoding_of(i);
                    trni_encoder e;
                    for (size_t j = 0; j < SAMPLE; j++) {
                        input[j] = cases_float(&rng);
                        field[j] = any_field(how, &rng);
                    }
                    expect_codes(&f, how, SAMPLE);
                    trni_encoder_init(&e, &f, how, all_isas[k]);
                    host_enter(environment);
                    trni_encoder_run(&e, found, input, fields_for(e.how), SAMPLE);
                    host_leave();
                    compare_codes(&f, how, all_isas[k], found, SAMPLE);
                }
                for (size_t j = 0; j < SAMPLE; j++)
                    store(expected + j * bytes_of(&f), bytes_of(&f), wide_code((int)j, &rng));
                trni_decoder_init(&d, &f, all_isas[k]);
                host_enter(environment);
                trni_decoder_run(&d, found, expected, SAMPLE);
                host_leave();
                check_decoder(&f, all_isas[k], expected, SAMPLE, found);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_equal_the_codec),        cmocka_unit_test(fields_at_their_thresholds),
        cmocka_unit_test(decoders_equal_the_codec),        cmocka_unit_test(lengths_and_addresses),
        cmocka_unit_test(the_environment_does_not_matter),
    };
    return cmocka_run_group_tests_name("cast", tests, NULL, NULL);
}

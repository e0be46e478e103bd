/* test_stochastic.c - stochastic rounding by counting: every random word of 8 to 16 bits, and what sums make of it.
 * SPDX-License-Identifier: MIT
 *
 * A value at a fraction f between two codes must move away from zero for exactly floor(2^n f) of the 2^n words of n
 * bits, for the largest of them: in the normal range, below it, and at the top, where the next code is infinity's. The
 * fractions come from tests/golden (made elsewhere, see its README), and for formats without such a file from exact
 * differences of decoded values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>
#include <cmocka.h>

#include "trnmath/data/cast.h"
#include "trnmath/trn_random.h"
#include "published/sums.h"
#include "twin/cases.h"

enum { FEWEST = 8, MOST = 16, CHUNK = 1 << 12 };

/* ---- one value, all words of n bits ---- */

typedef struct bracket {
    uint32_t x;         /* binary32 */
    uint32_t low, away; /* the codes on either side; the same: the value is exact */
    uint32_t fraction;  /* floor(2^32 f) */
} bracket;

static trni_encoding stochastic(uint32_t random, int bits, bool carry)
{
    const trni_encoding how = { { TRN_STOCHASTIC, random, bits }, TRN_OVERFLOW_DEFAULT, carry };
    return how;
}

/* The codec, word by word. */
static void count_codec(const trn_format_info *f, const bracket *b, int n, bool carry)
{
    const uint32_t all = 1u << n, want = b->away == b->low ? 0 : b->fraction >> (32 - n);
    uint32_t away = 0, low = 0;
    for (uint32_t r = 0; r < all; r++) {
        const uint32_t code = trni_encode_row(f, b->x, stochastic(r, n, carry));
        away += code == b->away;
        low += code == b->low;
    }
    if (b->away == b->low) away = 0;
    CASES_EQUAL(want, away, "%s: how many of all words of %d bits move %08x away", f->name, n, (unsigned)b->x);
    CASES_EQUAL(all - want, low, "%s: how many of all words of %d bits leave %08x", f->name, n, (unsigned)b->x);
}

/* n elements that are all `code`? The first is, and each is like the one before. */
static bool all_are(const unsigned char *at, size_t n, size_t bytes, uint32_t code)
{
    return n == 0 || (memcmp(at, &code, bytes) == 0 && memcmp(at, at + bytes, (n - 1) * bytes) == 0);
}

/* The kernels: the smallest words stay, the largest move. */
static void count_kernel(const trn_format_info *f, const bracket *b, int n, bool carry, trn_isa isa)
{
    static uint32_t value[CHUNK], field[1 << MOST], code[CHUNK];
    static int filled;
    for (; filled < 1 << MOST; filled++) field[filled] = (uint32_t)filled;
    const uint32_t all = 1u << n, stay = all - (b->away == b->low ? 0 : b->fraction >> (32 - n));
    const size_t bytes = (size_t)(f->bits + 7) / 8;
    trni_encoder e;
    trni_encoder_init(&e, f, stochastic(0, n, carry), isa);
    for (size_t i = 0; i < CHUNK && i < all; i++) value[i] = b->x;
    for (uint32_t r = 0; r < all; r += CHUNK) {
        const uint32_t take = all < CHUNK ? all : CHUNK, kept = stay < r ? 0 : stay - r < take ? stay - r : take;
        const unsigned char *at = (const unsigned char *)code;
        trni_encoder_run(&e, code, value, field + r, take);
        if (all_are(at, kept, bytes, b->low) && all_are(at + kept * bytes, take - kept, bytes, b->away)) continue;
        fail_msg("%s, isa %s: %08x with the words %x to %x of %d bits: %x of them should stay", f->name,
                 trn_isa_text(isa), (unsigned)b->x, (unsigned)r, (unsigned)(r + take - 1), n, (unsigned)kept);
    }
}

static const trn_isa isas[] = { TRN_ISA_PORTABLE, TRN_ISA_AVX2, TRN_ISA_AVX512, TRN_ISA_NEON };
enum { ISAS = sizeof isas / sizeof isas[0] };

/* Level 1 tries all words of up to 10 bits with every value, more bits with some of them, on one instruction set each
 * in turn; level 2 everything with everything. */
static void count(const trn_format_info *f, const bracket *b, bool carry, unsigned line)
{
    const bool thorough = cases_level() >= 2;
    const unsigned step = (unsigned)(97 - 96 * thorough) * (cases_rounds(3, 3) == 3 ? 1 : 5);
    for (int n = FEWEST; n <= MOST; n++) {
        const bool some = (line + (unsigned)n) % step == 0;
        if (n <= 9 || some) count_codec(f, b, n, carry);
        for (unsigned i = 0; i < ISAS; i++)
            if (trn_isa_supported(isas[i]) && (thorough || (n <= 10 ? (line + (unsigned)n) % ISAS == i : some)))
                count_kernel(f, b, n, carry, isas[i]);
    }
}

/* ---- the golden brackets ---- */

static bool read_bracket(FILE *file, bracket *b)
{
    char line[128], *at = line;
    uint32_t value[4];
    if (!fgets(line, sizeof line, file)) return false;
    for (int i = 0; i < 4; i++) value[i] = (uint32_t)strtoul(at, &at, 16);
    b->x = value[0], b->low = value[1], b->away = value[2], b->fraction = value[3];
    return true;
}

static bracket negative(bracket b, const trn_format_info *f)
{
    const uint32_t sign = 1u << (f->exponent_bits + f->mantissa_bits) << f->low_zeros;
    b.x |= 0x80000000u;
    b.low |= sign;
    b.away |= sign;
    return b;
}

/* Lines of the 16-bit formats and fewer. TF32's 19 bits are there too: its fractions have 13 bits. */
static void counts_equal_the_golden_fractions(void **state)
{
    (void)state;
    static const struct {
        trn_format format;
        const char *file;
        int lines;
    } golden[] = {
        { TRN_TF32, "tf32", 1760 },
        { TRN_BF16, "bfloat16", 1749 },
        { TRN_F16, "float16", 577 },
        { TRN_F8_E4M3, "float8_e4m3", 1559 },
        { TRN_F8_E4M3FN, "float8_e4m3fn", 1602 },
        { TRN_F8_E5M2, "float8_e5m2", 1549 },
        { TRN_F8_E3M4, "float8_e3m4", 1525 },
        { TRN_F6_E2M3, "float6_e2m3fn", 1057 },
        { TRN_F6_E3M2, "float6_e3m2fn", 1053 },
        { TRN_F4_E2M1, "float4_e2m1fn", 924 },
    };
    int tops = 0;
    for (size_t g = 0; g < sizeof golden / sizeof golden[0]; g++) {
        const trn_format_info *f = trn_format_info_of(golden[g].format);
        char path[512];
        snprintf(path, sizeof path, "%s/bracket_%s.txt", TRN_GOLDEN_DIR, golden[g].file);
        FILE *file = fopen(path, "r");
        if (!file) fail_msg("cannot open %s", path);
        int line = 0;
        for (bracket b; read_bracket(file, &b); line++) {
            const bool top = b.low == f->max_code && b.away != b.low;
            b.low <<= f->low_zeros, b.away <<= f->low_zeros;
            if (line % 2) b = negative(b, f);
            if (top) { /* between the maximum and the step after it: only where that is asked for */
                count(f, &b, true, (unsigned)line);
                b.away = b.low;
                tops++;
            }
            count(f, &b, line % 3 == 0 && !top, (unsigned)line);
        }
        fclose(file);
        assert_int_equal(line, golden[g].lines);
    }
    assert_int_equal(tops, 25);
}

/* ---- formats without a file: Trainium1's configurable FP8, scales, integers ---- */

static double value_of(const trn_format_info *f, uint32_t code)
{
    return (double)cases_float_of(trni_decode_row(f, code));
}

/* The neighbours by the directed modes; their difference is a power of two or 1, so the quotient is exact. Beyond the
 * maximum there is no second neighbour. */
static bool make_bracket(const trn_format_info *f, uint32_t x, bracket *b)
{
    trni_encoding how = { { TRN_TOWARD_ZERO, 0, 0 }, TRN_OVERFLOW_DEFAULT, false };
    b->x = x;
    b->low = trni_encode_row(f, x, how);
    how.how.rounding = x >> 31 ? TRN_TOWARD_NEGATIVE : TRN_TOWARD_POSITIVE;
    b->away = trni_encode_row(f, x, how);
    const double low = value_of(f, b->low), away = value_of(f, b->away), value = (double)cases_float_of(x);
    const double fraction = b->away == b->low ? 0 : (value - low) / (away - low);
    if (!isfinite(low) || !isfinite(away) || !isfinite(value)) return false;
    if (b->away != b->low && !(fraction > 0 && fraction < 1)) return false; /* a scale below the smallest */
    b->fraction = (uint32_t)(fraction * 0x1p32);
    return true;
}

/* Powers of two from above the maximum to below the smallest step. */
static int span_of(const trn_format_info *f)
{
    if (f->kind == TRN_KIND_SCALE) return 260;
    return f->kind == TRN_KIND_FLOAT ? (1 << f->exponent_bits) + 20 : f->bits + 4;
}

static int count_random_values(const trn_format_info *f, uint64_t *rng, int rounds)
{
    const bool has_sign = f->kind == TRN_KIND_FLOAT || f->kind == TRN_KIND_SIGNED;
    int exponent, made = 0;
    frexp(value_of(f, f->max_code), &exponent);
    for (int i = 0; i < rounds; i++) {
        const int e = exponent + 127 - cases_below(rng, span_of(f));
        const uint32_t sign = has_sign ? cases_u32(rng) & 0x80000000u : 0;
        const uint32_t exponent_bits = (uint32_t)(e < 0 ? 0 : e > 254 ? 254 : e) << 23;
        const uint32_t x = sign | exponent_bits | (cases_u32(rng) & 0x7fffffu);
        bracket b;
        if (!make_bracket(f, x, &b)) continue;
        count(f, &b, false, (unsigned)i);
        made++;
    }
    return made;
}

static void counts_equal_exact_fractions(void **state)
{
    (void)state;
    static const trn_format format[] = { TRN_F8_E8M0, TRN_I8,  TRN_U8,      TRN_I16,     TRN_U16,
                                         TRN_BF16,    TRN_F16, TRN_F6_E2M3, TRN_F6_E3M2, TRN_F4_E2M1 };
    uint64_t rng = 10;
    const int rounds = cases_rounds(120, 600);
    for (size_t i = 0; i < sizeof format / sizeof format[0]; i++)
        assert_true(count_random_values(trn_format_info_of(format[i]), &rng, rounds) > rounds / 2);
    for (int e = 2; e <= 5; e++)
        for (int bias = -40; bias <= 100; bias += 7)
            for (int no_infinity = 0; no_infinity < 2; no_infinity++) {
                const trn_cfp8 c = { e, bias, no_infinity };
                const trn_format_info f = trn_cfp8_info(c);
                assert_true(trn_cfp8_valid(c));
                assert_true(count_random_values(&f, &rng, rounds / 20) > rounds / 60);
            }
}

/* ---- FP16: 1024 + 2048 times 0.5 (published/sums.h) ---- */

static void check_spread(const char *what, const float *sum, int n)
{
    const spread s = spread_of(sum, n);
    print_message("%s: %d sums, mean %.3f, standard deviation %.3f\n", what, n, s.mean, s.deviation);
    assert_true(s.mean > 2047 && s.mean < 2049);
    assert_true(s.deviation > 22 && s.deviation < 24);
    assert_true(fabs(2056 - s.mean) < s.deviation);
}

/* All sums side by side, in arrays, with words of the engines' own kinds of generator. */
static void sum_by_kernels(float *sum, int n, int bits, void (*words)(void *g, uint32_t *word, size_t n), void *g)
{
    uint32_t *field = (uint32_t *)malloc((size_t)n * sizeof *field);
    uint16_t *code = (uint16_t *)malloc((size_t)n * sizeof *code);
    if (!field || !code) fail_msg("no memory");
    trn_isa isa = TRN_ISA_AUTO;
    assert_int_equal(trni_isa_resolve(&isa, NULL), TRN_OK);
    trni_encoder to;
    trni_decoder from;
    trni_encoder_init(&to, trn_format_info_of(TRN_F16), stochastic(0, bits, false), isa);
    trni_decoder_init(&from, trn_format_info_of(TRN_F16), isa);
    for (int k = 0; k < n; k++) sum[k] = 1024;
    for (int i = 0; i < HALVES; i++) {
        words(g, field, (size_t)n);
        for (int k = 0; k < n; k++) {
            field[k] >>= 32 - bits;
            sum[k] += 0.5f;
        }
        trni_encoder_run(&to, code, sum, field, (size_t)n);
        trni_decoder_run(&from, sum, code, (size_t)n);
    }
    free(code);
    free(field);
}

static void xorwow_words(void *g, uint32_t *word, size_t n)
{
    trn_xorwow_vector_words((trn_xorwow_vector *)g, word, n, TRN_ISA_AUTO);
}
static void lfsr_words(void *g, uint32_t *word, size_t n)
{
    trn_lfsr_vector_words((trn_lfsr_vector *)g, word, n, TRN_ISA_AUTO);
}

static void sums_of_halves_in_fp16(void **state)
{
    (void)state;
    const int n = cases_rounds(20000, 60000);
    float *sum = (float *)malloc((size_t)n * sizeof *sum);
    if (!sum) fail_msg("no memory");

    assert_true(halves_of(TRN_F16, TRN_NEAREST_EVEN, 0) == 1024);

    for (int seed = 0; seed < n; seed++) sum[seed] = halves_of(TRN_F16, TRN_STOCHASTIC, (uint64_t)seed);
    check_spread("Philox, 32 bits", sum, n);
    trn_xorwow_vector xorwow;
    trn_xorwow_vector_seed(&xorwow, 1);
    sum_by_kernels(sum, n, 16, xorwow_words, &xorwow);
    check_spread("XORWOW lanes, 16 bits", sum, n);
    trn_lfsr_vector lfsr;
    trn_lfsr_vector_seed(&lfsr, 1);
    sum_by_kernels(sum, n, 8, lfsr_words, &lfsr);
    check_spread("LFSR lanes, 8 bits", sum, n);
    free(sum);
}

/* ---- what rounding to nearest does to sums that stochastic rounding saves ---- */

static void harmonic_sums_stagnate(void **state)
{
    (void)state;
    for (int i = 0; i < HARMONIC_KNOWN; i++)
        for (int rounded_terms = 0; rounded_terms < 2; rounded_terms++) {
            const harmonic_sum h = harmonic_of(harmonic_known[i].format, rounded_terms);
            assert_int_equal(h.term, harmonic_known[i].term);
            assert_true((float)h.sum == (float)harmonic_known[i].sum);
        }
}

/* A device's answer: an int32 that passes through binary32 loses what lies below 24 bits, to nearest even. */
static void an_integer_through_binary32(void **state)
{
    (void)state;
    assert_true(trn_decode(TRN_I32, 0x69288FA8) == 1764265856.0f);
    const float x = trn_decode(TRN_I32, 0x69288FA8);
    CASES_EQUAL(1764265856, trn_encode(TRN_I32, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0), "through binary32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_equal_the_golden_fractions),
        cmocka_unit_test(counts_equal_exact_fractions),
        cmocka_unit_test(sums_of_halves_in_fp16),
        cmocka_unit_test(harmonic_sums_stagnate),
        cmocka_unit_test(an_integer_through_binary32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

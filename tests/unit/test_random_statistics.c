/* test_random_statistics.c - are the words of every generator what fair coins would give?
 * SPDX-License-Identifier: MIT
 *
 * Every statistic has a limit that fair coins would pass with a probability of 1e-9, from the exact distribution where
 * there is one (counts of ones: binomial) and from the limiting one elsewhere (chi-square, normal; the cells hold
 * enough words for that). Seeds are fixed, so a test that passes once passes always. Flawed generators of several kinds
 * go through the same judge, and each of them must be found out.
 *
 * None of this is a proof. An LFSR and a xorshift are linear, and tests made for linearity find that out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "trnmath/trn_random.h"
#include "twin/cases.h"

static const double false_alarm = 1e-9;

/* ---- distributions ---- */

/* The largest |ones - n/2| to accept of n fair bits: the two tails beyond it hold at most false_alarm. */
static double binomial_limit(double n)
{
    const double middle = floor(n / 2);
    double k = floor(fmin(n, n / 2 + 6 * sqrt(n))); /* twelve standard deviations out; beyond is nothing */
    double p = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2)), tail = 0;
    for (; k > middle && 2 * (tail + p) <= false_alarm; k--) {
        tail += p;
        p *= k / (n - k + 1);
    }
    return k - n / 2;
}

/* P(a, x), the regularised incomplete gamma function, from below and from above. */
static double gamma_below(double a, double x)
{
    double term = 1 / a, sum = term;
    for (double i = a + 1; term > sum * 1e-17; i++) sum += term *= x / i;
    return sum * exp(a * log(x) - x - lgamma(a));
}

static double gamma_above(double a, double x) /* Lentz's continued fraction, for x > a + 1 */
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
    for (int i = 1; i < 100000 && fabs(c * d - 1) > 1e-15; i++) {
        const double numerator = i * (a - i);
        b += 2;
        d = 1 / (numerator * d + b);
        c = b + numerator / c;
        product *= c * d;
    }
    return product * exp(a * log(x) - x - lgamma(a));
}

/* Where a chi-square variable is left with probability false_alarm: below `low`, and above `high`. */
static void chi_square_limits(double freedom, double *low, double *high)
{
    const double a = freedom / 2;
    double from = 0, to = a;
    for (int i = 0; i < 60; i++) {
        const double x = (from + to) / 2;
        if (x > 0 && gamma_below(a, x) > false_alarm)
            to = x;
        else
            from = x;
    }
    *low = 2 * from;
    for (from = a + 1, to = a + 20 + 10 * sqrt(freedom) + 40; to - from > 1e-9 * to;) {
        const double x = (from + to) / 2;
        if (gamma_above(a, x) < false_alarm)
            to = x;
        else
            from = x;
    }
    *high = 2 * to;
}

static double normal_limit(void)
{
    double from = 0, to = 10;
    for (int i = 0; i < 60; i++) {
        const double z = (from + to) / 2;
        if (erfc(z / sqrt(2)) < false_alarm)
            to = z;
        else
            from = z;
    }
    return to;
}

/* ---- the judge ---- */

typedef struct judge {
    const char *name; /* NULL: count the failures and say nothing */
    int checks, failures;
} judge;

static void check(judge *j, const char *what, int which, double value, double low, double high)
{
    j->checks++;
    if (value >= low && value <= high) return;
    j->failures++;
    if (j->name) print_error("%s: %s %d is %.6g, outside of %.6g to %.6g\n", j->name, what, which, value, low, high);
}

/* Each of the 32 bits, over n words: as many ones as zeros? Counters of four bits for eight places at a time. */
static void check_bits(judge *j, const char *what, const uint32_t *word, size_t n, uint32_t mask)
{
    uint64_t ones[32] = { 0 };
    for (size_t i = 0; i < n; i += 15) {
        uint32_t nibbles[4] = { 0 };
        for (size_t k = i; k < i + 15 && k < n; k++)
            for (int s = 0; s < 4; s++) nibbles[s] += word[k] >> s & 0x11111111u;
        for (int b = 0; b < 32; b++) ones[b] += nibbles[b % 4] >> (b & ~3) & 15u;
    }
    const double limit = binomial_limit((double)n);
    for (int b = 0; b < 32; b++)
        if (mask >> b & 1u) check(j, what, b, (double)ones[b] - (double)n / 2, -limit, limit);
}

static double centred(uint32_t word) { return word * 0x1p-32 - 0.5; } /* variance 1/12 */

/* Fair bits stay fair, and independent, when words at a distance are added without carry. */
static void check_lags(judge *j, const uint32_t *word, size_t n, uint32_t *scratch)
{
    static const int lags[] = { 1, 2, 3, 4, 5, 6, 127, 128, 129, 256, 512, 640, 2560 };
    for (size_t l = 0; l < sizeof lags / sizeof lags[0]; l++) {
        const size_t lag = (size_t)lags[l];
        char what[40];
        snprintf(what, sizeof what, "xor at distance %d, bit", lags[l]);
        for (size_t i = 0; i + lag < n; i++) scratch[i] = word[i] ^ word[i + lag];
        check_bits(j, what, scratch, n - lag, 0xffffffffu);
        double sum = 0;
        for (size_t i = 0; i + lag < n; i++) sum += centred(word[i]) * centred(word[i + lag]);
        const double z = sum * 12 / sqrt((double)(n - lag));
        check(j, "serial correlation at distance", lags[l], z, -normal_limit(), normal_limit());
    }
    for (size_t i = 0; i < n; i++) scratch[i] = word[i] ^ word[i] >> 1;
    check_bits(j, "xor of neighbours, bit", scratch, n, 0x7fffffffu);
}

/* count[0 .. cells-1] of `total` against the probabilities p (NULL: all the same). */
static void check_chi_square(judge *j, const char *what, int which, const uint32_t *count, int cells, double total,
                             const double *p)
{
    double chi = 0, low, high;
    for (int c = 0; c < cells; c++) {
        const double expected = p ? total * p[c] : total / cells, difference = count[c] - expected;
        chi += difference * difference / expected;
    }
    chi_square_limits(cells - 1, &low, &high);
    check(j, what, which, chi, low, high);
}

static void check_values(judge *j, const uint32_t *word, size_t n)
{
    static uint32_t count[65536];
    for (int shift = 0; shift < 32; shift += 4) {
        memset(count, 0, 16 * sizeof count[0]);
        for (size_t i = 0; i < n; i++) count[word[i] >> shift & 15u]++;
        check_chi_square(j, "nibbles at bit", shift, count, 16, (double)n, NULL);
    }
    for (int shift = 0; shift < 32; shift += 8) {
        memset(count, 0, 256 * sizeof count[0]);
        for (size_t i = 0; i < n; i++) count[word[i] >> shift & 255u]++;
        check_chi_square(j, "bytes at bit", shift, count, 256, (double)n, NULL);
    }
    for (int shift = 0; shift < 32; shift += 16) {
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < n; i++) count[word[i] >> shift & 65535u]++;
        check_chi_square(j, "halves at bit", shift, count, 65536, (double)n, NULL);
    }
    for (int shift = 0; shift < 32; shift += 28) { /* low and high nibbles of two words that follow each other */
        memset(count, 0, 256 * sizeof count[0]);
        for (size_t i = 0; i + 1 < n; i += 2) count[(word[i] >> shift & 15u) << 4 | (word[i + 1] >> shift & 15u)]++;
        check_chi_square(j, "pairs at bit", shift, count, 256, floor((double)n / 2), NULL);
    }
}

/* The words as one string of bits, low first: how often it turns, and how long it stays. */
static void check_runs(judge *j, const uint32_t *word, size_t n)
{
    enum { LONGEST = 20 };
    uint32_t count[LONGEST] = { 0 }, last = word[0] & 1u;
    double turns = 0, p[LONGEST];
    int length = 0;
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < 32; b++) {
            const uint32_t bit = word[i] >> b & 1u;
            if (bit != last) {
                count[(length < LONGEST ? length : LONGEST) - 1]++;
                turns++;
                length = 0;
                last = bit;
            }
            length++;
        }
    const double limit = binomial_limit(32 * (double)n - 1);
    check(j, "turns", 0, turns - (32 * (double)n - 1) / 2, -limit, limit);
    for (int i = 0; i < LONGEST; i++) p[i] = ldexp(1, -i - (i < LONGEST - 1));
    check_chi_square(j, "runs", 0, count, LONGEST, turns, p);
}

static int judge_words(const char *name, const uint32_t *word, size_t n, uint32_t *scratch)
{
    judge j = { name, 0, 0 };
    check_bits(&j, "bit", word, n, 0xffffffffu);
    check_lags(&j, word, n, scratch);
    check_values(&j, word, n);
    check_runs(&j, word, n);
    assert_true(j.checks > 500);
    return j.failures;
}

/* ---- the generators ---- */

typedef void filler(uint32_t *word, size_t n);

static void philox(uint32_t *word, size_t n) { trn_random_fill(word, n, 1, 0, 0, TRN_ISA_AUTO); }
static void philox_far(uint32_t *word, size_t n) { trn_random_fill(word, n, 0, 7, ~(uint64_t)0 - 1000, TRN_ISA_AUTO); }
static void philox_seeds(uint32_t *word, size_t n)
{
    for (size_t i = 0; i < n; i++) word[i] = trn_random_u32(i, 0, 0);
}
static void philox_streams(uint32_t *word, size_t n)
{
    for (size_t i = 0; i < n; i++) word[i] = trn_random_u32(0, i, 3);
}
static void philox_bytes(uint32_t *word, size_t n) /* fields of 8 bits, put together again */
{
    for (size_t i = 0; i < n; i++) {
        uint32_t field[4];
        trn_random_fields(field, 4, 8, 2, 0, 4 * i + 3, TRN_ISA_AUTO);
        word[i] = field[0] | field[1] << 8 | field[2] << 16 | field[3] << 24;
    }
}
static void xorwow(uint32_t *word, size_t n)
{
    trn_xorwow g;
    trn_xorwow_seed(&g, 1, 0);
    for (size_t i = 0; i < n; i++) word[i] = trn_xorwow_next(&g);
}
static void xorwow_vector(uint32_t *word, size_t n)
{
    trn_xorwow_vector g;
    trn_xorwow_vector_seed(&g, 0);
    trn_xorwow_vector_words(&g, word, n, TRN_ISA_AUTO);
}
static void xorwow_seeds(uint32_t *word, size_t n) /* the first word of neighbouring generators */
{
    for (size_t i = 0; i < n; i++) {
        trn_xorwow g;
        trn_xorwow_seed(&g, i / 128, i % 128);
        word[i] = trn_xorwow_next(&g);
    }
}
static void lfsr(uint32_t *word, size_t n)
{
    trn_lfsr g;
    trn_lfsr_seed(&g, 1, 0);
    for (size_t i = 0; i < n; i++) word[i] = trn_lfsr_next(&g);
}
static void lfsr_vector(uint32_t *word, size_t n)
{
    trn_lfsr_vector g;
    trn_lfsr_vector_seed(&g, 0);
    trn_lfsr_vector_words(&g, word, n, TRN_ISA_AUTO);
}

typedef struct candidate {
    const char *name;
    filler *fill;
} candidate;

static size_t words_to_judge(void) { return (size_t)cases_rounds(1 << 19, 1 << 25); }

static uint32_t *buffer(size_t n)
{
    uint32_t *word = (uint32_t *)malloc(n * sizeof word[0]);
    if (!word) fail_msg("no memory for %d words", (int)n);
    return word;
}

static void good_generators_pass(void **state)
{
    (void)state;
    static const candidate good[] = {
        { "Philox", philox },
        { "Philox past 2^64", philox_far },
        { "Philox by seed", philox_seeds },
        { "Philox by stream", philox_streams },
        { "Philox in bytes", philox_bytes },
        { "XORWOW", xorwow },
        { "XORWOW lanes", xorwow_vector },
        { "XORWOW by seed", xorwow_seeds },
        { "LFSR", lfsr },
        { "LFSR lanes", lfsr_vector },
    };
    const size_t n = words_to_judge();
    uint32_t *word = buffer(n), *scratch = buffer(n);
    int failures = 0;
    for (size_t g = 0; g < sizeof good / sizeof good[0]; g++) {
        good[g].fill(word, n);
        failures += judge_words(good[g].name, word, n, scratch);
    }
    free(scratch);
    free(word);
    assert_int_equal(failures, 0);
}

/* ---- flawed ones ---- */

static void counter(uint32_t *word, size_t n)
{
    for (size_t i = 0; i < n; i++) word[i] = (uint32_t)i;
}
static void weyl(uint32_t *word, size_t n) /* what remains of XORWOW in a state that no call here makes */
{
    trn_xorwow g = { { 0 } };
    for (size_t i = 0; i < n; i++) word[i] = trn_xorwow_next(&g);
}
static void linear_congruence(uint32_t *word, size_t n)
{
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) word[i] = x = x * 1664525u + 1013904223u;
}
static void stuck(uint32_t *word, size_t n)
{
    philox(word, n);
    for (size_t i = 0; i < n; i++) word[i] |= 0x00000100u;
}
static void biased(uint32_t *word, size_t n) /* bit 17 is set in one word of 32 whatever its coin says */
{
    philox(word, n);
    for (size_t i = 0; i < n; i += 32) word[i] |= 1u << 17;
}
static void repeating(uint32_t *word, size_t n) /* one word of 16 comes back 512 later: lanes with one seed */
{
    philox(word, n);
    for (size_t i = 512; i < n; i += 16) word[i] = word[i - 512];
}
static void entangled(uint32_t *word, size_t n) /* two neighbouring bits agree a little too often */
{
    philox(word, n);
    for (size_t i = 0; i < n; i += 32) word[i] = (word[i] & ~2u) | (word[i] & 1u) << 1;
}
static void too_even(uint32_t *word, size_t n) /* every value of the high half comes equally often */
{
    for (size_t i = 0; i < n; i++) word[i] = (uint32_t)i * 40503u << 16 | (trn_random_u32(1, 0, i) & 0xffffu);
}
static void sticky(uint32_t *word, size_t n) /* sixteen zero bits in a row, now and then */
{
    philox(word, n);
    for (size_t i = 0; i < n; i += 256) word[i] &= 0xffff0000u;
}

static void flawed_generators_fail(void **state)
{
    (void)state;
    static const candidate flawed[] = {
        { "counter", counter },     { "Weyl", weyl },         { "congruence", linear_congruence },
        { "stuck bit", stuck },     { "biased bit", biased }, { "repeating", repeating },
        { "entangled", entangled }, { "too even", too_even }, { "sticky", sticky },
    };
    const size_t n = words_to_judge();
    uint32_t *word = buffer(n), *scratch = buffer(n);
    for (size_t g = 0; g < sizeof flawed / sizeof flawed[0]; g++) {
        flawed[g].fill(word, n);
        if (judge_words(NULL, word, n, scratch) == 0) fail_msg("%s was not found out", flawed[g].name);
    }
    free(scratch);
    free(word);
}

/* ---- the limits themselves ---- */

static void limits_are_right(void **state)
{
    (void)state;
    /* of 32 fair bits none or all are ones with 2 / 2^32 = 4.7e-10, at most one is the odd one out with 1.5e-8 */
    assert_true(binomial_limit(32) == 15);
    assert_true(fabs(normal_limit() - 6.10941) < 1e-4);
    double low, high;
    chi_square_limits(2, &low, &high); /* an exponential distribution */
    assert_true(fabs(high - -2 * log(1e-9)) < 1e-4);
    assert_true(fabs(low / (-2 * log1p(-1e-9)) - 1) < 1e-4);
    chi_square_limits(255, &low, &high); /* two ways to the same probability */
    assert_true(fabs(gamma_above(127.5, high / 2) / 1e-9 - 1) < 1e-4);
    assert_true(fabs((1 - gamma_below(127.5, 160)) / gamma_above(127.5, 160) - 1) < 1e-9);
    assert_true(low > 130 && low < 160 && high > 400 && high < 430);
    /* the binomial's limit tends to the normal's */
    assert_true(fabs(binomial_limit(1 << 20) / 512 - normal_limit()) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_right),
        cmocka_unit_test(good_generators_pass),
        cmocka_unit_test(flawed_generators_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

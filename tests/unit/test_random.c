/* test_random.c - Philox4x32-10, XORWOW and the LFSR against published answers and the twin; portions, states, periods.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_random.h"
#include "published/random.h"
#include "twin/cases.h"
#include "twin/twin_random.h"

static void published_answers(void **state)
{
    (void)state;
    for (int v = 0; v < 3; v++) {
        uint32_t out[4], twin[4];
        trn_philox4x32_10(philox_known[v].counter, philox_known[v].key, out);
        twin_philox(philox_known[v].counter, philox_known[v].key, twin);
        for (int i = 0; i < 4; i++) {
            CASES_EQUAL(philox_known[v].answer[i], out[i], "vector %d word %d", v, i);
            CASES_EQUAL(philox_known[v].answer[i], twin[i], "the twin's vector %d word %d", v, i);
        }
    }
}

/* Key = seed, counter = { index / 4, stream }, lane = index mod 4: written out by hand for one call. */
static void words_are_laid_out_as_documented(void **state)
{
    (void)state;
    const uint32_t key[2] = { 0x89abcdef, 0x01234567 };
    const uint32_t counter[4] = { 0x1d950c84, 0x3b72ea61, 0x76543210, 0xfedcba98 }; /* index / 4, then the stream */
    uint32_t out[4];
    twin_philox(counter, key, out);
    for (unsigned lane = 0; lane < 4; lane++)
        CASES_EQUAL(out[lane], trn_random_u32(0x0123456789abcdef, 0xfedcba9876543210, 0xedcba98476543210u + lane),
                    "lane %u", lane);
}

static void words_equal_the_twins(void **state)
{
    (void)state;
    uint64_t rng = 1;
    for (int i = 0; i < 200000; i++) {
        const uint64_t seed = cases_next(&rng), stream = i % 3 ? cases_next(&rng) : 0,
                       index = cases_next(&rng) >> (i % 64);
        CASES_EQUAL(twin_random_word(seed, stream, index), trn_random_u32(seed, stream, index), "seed %llx index %llx",
                    (unsigned long long)seed, (unsigned long long)index);
    }
}

static void fields_equal_the_twins(void **state)
{
    (void)state;
    uint64_t rng = 2;
    for (int n = 1; n <= 32; n++)
        for (int i = 0; i < 4000; i++) {
            const uint64_t seed = cases_next(&rng), index = i < 64 ? (uint64_t)i : cases_next(&rng) >> (i % 64);
            const uint32_t r = trn_random_field(seed, 7, index, n);
            CASES_EQUAL(twin_random_bits(seed, 7, index, n), r, "%d bits, index %llx", n, (unsigned long long)index);
            if (n < 32) assert_true(r < 1u << n);
        }
}

/* Four elements share a word with 8 bits, two with 16; any other count takes the top of its own word. */
static void fields_share_words(void **state)
{
    (void)state;
    const uint32_t word0 = trn_random_u32(5, 6, 0), word1 = trn_random_u32(5, 6, 1);
    for (uint64_t i = 0; i < 4; i++)
        CASES_EQUAL(word0 >> (8 * i) & 0xffu, trn_random_field(5, 6, i, 8), "byte %d", (int)i);
    CASES_EQUAL(word1 & 0xffu, trn_random_field(5, 6, 4, 8), "the fifth element starts the second word");
    CASES_EQUAL(word0 & 0xffffu, trn_random_field(5, 6, 0, 16), "low half");
    CASES_EQUAL(word0 >> 16, trn_random_field(5, 6, 1, 16), "high half");
    CASES_EQUAL(word1 >> 16, trn_random_field(5, 6, 3, 16), "high half of the second word");
    CASES_EQUAL(word1 >> 20, trn_random_field(5, 6, 1, 12), "top twelve bits of word 1");
    CASES_EQUAL(word1, trn_random_field(5, 6, 1, 32), "all of word 1");
}

/* ---- many at once ---- */

enum { MOST = 2100, MARGIN = 16 };
static const trn_isa isas[] = { TRN_ISA_AUTO, TRN_ISA_PORTABLE, TRN_ISA_AVX2, TRN_ISA_AVX512, TRN_ISA_NEON };
enum { ISAS = sizeof isas / sizeof isas[0] };

/* A length below 70 or up to MOST, and an index that often lies where a block, 2^32 or 2^64 ends. */
static size_t some_length(uint64_t *rng) { return (size_t)cases_below(rng, cases_one_in(rng, 4) ? MOST : 70); }
static uint64_t some_index(uint64_t *rng)
{
    static const uint64_t near[] = { 0, (uint64_t)1 << 32, (uint64_t)1 << 33, (uint64_t)1 << 34, (uint64_t)1 << 63 };
    if (cases_one_in(rng, 3)) return cases_next(rng);
    return near[cases_below(rng, 5)] + (uint64_t)cases_below(rng, 300) - (cases_one_in(rng, 4) ? 0 : 200);
}

/* Any part of the stream, for any instruction set, is what the single calls say; nothing is written beside it. An
 * instruction set that this host lacks changes nothing either. */
static void filled_words_are_the_single_ones(void **state)
{
    (void)state;
    uint64_t rng = 3;
    static uint32_t word[MOST + 2 * MARGIN];
    for (int i = 0; i < cases_rounds(1500, 100000); i++) {
        const uint64_t seed = cases_next(&rng), stream = cases_one_in(&rng, 2) ? cases_next(&rng) : 0;
        const uint64_t index = some_index(&rng);
        const size_t n = some_length(&rng), at = MARGIN / 2 + (size_t)cases_below(&rng, MARGIN);
        memset(word, 0xa5, sizeof word);
        trn_random_fill(word + at, n, seed, stream, index, isas[i % ISAS]);
        for (size_t j = 0; j < MOST + 2 * MARGIN; j++) {
            const bool inside = j >= at && j < at + n;
            const uint32_t want = inside ? trn_random_u32(seed, stream, index + (j - at)) : 0xa5a5a5a5u;
            CASES_EQUAL(want, word[j], "isa %s, seed %llx stream %llx index %llx, %d words, word %d",
                        trn_isa_text(isas[i % ISAS]), (unsigned long long)seed, (unsigned long long)stream,
                        (unsigned long long)index, (int)n, (int)(j - at));
        }
    }
}

static void filled_fields_are_the_single_ones(void **state)
{
    (void)state;
    uint64_t rng = 4;
    static uint32_t field[MOST + 2 * MARGIN];
    for (int i = 0; i < cases_rounds(2000, 100000); i++) {
        const uint64_t seed = cases_next(&rng), stream = cases_next(&rng), index = some_index(&rng);
        const size_t n = some_length(&rng), at = MARGIN / 2 + (size_t)cases_below(&rng, MARGIN);
        const int bits = cases_one_in(&rng, 2) ? 8 << cases_below(&rng, 3) : 1 + cases_below(&rng, 32);
        memset(field, 0xa5, sizeof field);
        trn_random_fields(field + at, n, bits, seed, stream, index, isas[i % ISAS]);
        for (size_t j = 0; j < MOST + 2 * MARGIN; j++) {
            const bool inside = j >= at && j < at + n;
            const uint32_t want = inside ? trn_random_field(seed, stream, index + (j - at), bits) : 0xa5a5a5a5u;
            CASES_EQUAL(want, field[j], "isa %s, seed %llx stream %llx index %llx, %d fields of %d bits, field %d",
                        trn_isa_text(isas[i % ISAS]), (unsigned long long)seed, (unsigned long long)stream,
                        (unsigned long long)index, (int)n, bits, (int)(j - at));
        }
    }
}

/* ---- XORWOW and LFSR: one generator ---- */

static void published_xorwow(void **state)
{
    (void)state;
    trn_xorwow g, twin;
    memcpy(g.state, xorwow_start, sizeof g.state);
    twin = g;
    for (int i = 0; i < 10; i++) {
        CASES_EQUAL(xorwow_known[i], trn_xorwow_next(&g), "word %d", i);
        CASES_EQUAL(xorwow_known[i], twin_xorwow(twin.state), "the twin's word %d", i);
    }
}

/* An LFSR's words are its state: after a lone bit 0, the taps 128, 126, 101 and 99 bring it back at these places. */
static void lfsr_by_hand(void **state)
{
    (void)state;
    trn_lfsr g = { { 1, 0, 0, 0 } };
    CASES_EQUAL(0x00000001, trn_lfsr_next(&g), "128 clocks later: bit 0 again");
    g.state[0] = 0, g.state[1] = g.state[2] = 0, g.state[3] = 0x80000000;
    static const uint32_t answer[] = { 0, 0, 0, 0x80000000 | 0x20000000 | 0x00000010 | 0x00000004 };
    for (int i = 0; i < 4; i++) CASES_EQUAL(answer[i], trn_lfsr_next(&g), "word %d", i);
}

static void steps_equal_the_twins(void **state)
{
    (void)state;
    uint64_t rng = 7;
    for (int i = 0; i < 200; i++) {
        uint32_t x[6], l[4];
        const int sparse = i % 4; /* the first words of sparse states show single taps */
        for (int j = 0; j < 6; j++) x[j] = sparse ? cases_u32(&rng) : (uint32_t)(j == i % 6) << (i / 6 % 32);
        for (int j = 0; j < 4; j++) l[j] = sparse ? cases_u32(&rng) : (uint32_t)(j == i % 4) << (i / 4 % 32);
        trn_xorwow g;
        trn_lfsr h;
        memcpy(g.state, x, sizeof x);
        memcpy(h.state, l, sizeof l);
        for (int j = 0; j < 20; j++) {
            CASES_EQUAL(twin_xorwow(x), trn_xorwow_next(&g), "XORWOW, state %d, word %d", i, j);
            CASES_EQUAL(twin_lfsr(l), trn_lfsr_next(&h), "LFSR, state %d, word %d", i, j);
        }
        assert_memory_equal(x, g.state, sizeof x);
        assert_memory_equal(l, h.state, sizeof l);
    }
}

/* The rule that the header states, and no two generators of one seed alike, whatever engine they are in. */
static void seeds_become_states(void **state)
{
    (void)state;
    uint32_t first[64], different = 0;
    for (uint64_t i = 0; i < 64; i++) {
        const uint64_t seed = i % 8, number = i / 8 + (i % 3 ? 0 : (uint64_t)1 << 32);
        trn_xorwow g;
        trn_lfsr h;
        trn_xorwow_seed(&g, seed, number);
        trn_lfsr_seed(&h, seed, number);
        for (uint64_t j = 0; j < 6; j++)
            CASES_EQUAL(twin_random_word(seed, 0x574f57524f58u, 8 * number + j), g.state[j], "XORWOW, word %d", (int)j);
        for (uint64_t j = 0; j < 4; j++)
            CASES_EQUAL(twin_random_word(seed, 0x5253464cu, 4 * number + j), h.state[j], "LFSR, word %d", (int)j);
        first[i] = g.state[0];
        for (uint64_t j = 0; j < i; j++) different += first[i] != first[j];
    }
    assert_int_equal(different, 64 * 63 / 2);
}

/* ---- the period of a linear step, by linear algebra over GF(2) ----
 *
 * A step of n bits that keeps 0 is a matrix. If M^(2^n - 1) = I, and M^((2^n - 1) / p) is not I for any prime p that
 * divides 2^n - 1, the powers of M are 2^n - 1 different matrices. They and 0 are all the polynomials in M, of which
 * there are at most 2^n: so these form a field, M^k - I has an inverse unless it is 0, and no state but 0 comes back
 * before 2^n - 1 steps. */

enum { BITS = 160, WORDS = BITS / 32 };
typedef struct matrix {
    uint32_t column[BITS][WORDS]; /* what becomes of a lone bit */
} matrix;
typedef void step_function(uint32_t state[WORDS]);

static void step_lfsr(uint32_t state[WORDS])
{
    trn_lfsr g;
    memcpy(g.state, state, sizeof g.state);
    trn_lfsr_next(&g);
    memcpy(state, g.state, sizeof g.state);
}

static void step_xorshift(uint32_t state[WORDS])
{
    trn_xorwow g = { { 0 } };
    memcpy(g.state, state, 5 * sizeof state[0]);
    trn_xorwow_next(&g);
    memcpy(state, g.state, 5 * sizeof state[0]);
}

static void multiply(matrix *to, const matrix *a, const matrix *b, int n)
{
    matrix product;
    memset(&product, 0, sizeof product);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (b->column[j][i / 32] >> i % 32 & 1u)
                for (int w = 0; w < WORDS; w++) product.column[j][w] ^= a->column[i][w];
    *to = product;
}

static void identity(matrix *to)
{
    memset(to, 0, sizeof *to);
    for (int j = 0; j < BITS; j++) to->column[j][j / 32] = 1u << j % 32;
}

static bool is_identity_after(const matrix *step, const unsigned char exponent[BITS], int n)
{
    matrix power, one;
    identity(&power);
    identity(&one);
    for (int i = n - 1; i >= 0; i--) {
        multiply(&power, &power, &power, n);
        if (exponent[i]) multiply(&power, &power, step, n);
    }
    return memcmp(power.column, one.column, (size_t)n * sizeof one.column[0]) == 0;
}

/* A number of BITS bits divided by p < 2^63; the remainder is returned. */
static uint64_t divide_bits(unsigned char bits[BITS], uint64_t p)
{
    uint64_t rest = 0;
    for (int i = BITS - 1; i >= 0; i--) {
        rest = 2 * rest + bits[i];
        bits[i] = rest >= p;
        if (rest >= p) rest -= p;
    }
    return rest;
}

static bool is_prime(uint64_t p)
{
    for (uint64_t d = 3; d * d <= p; d += 2)
        if (p % d == 0) return false;
    return p > 2 && p % 2 == 1;
}

static void check_period(step_function *step, int n, const uint64_t *prime)
{
    matrix m;
    identity(&m);
    for (int j = 0; j < n; j++) step(m.column[j]);
    uint32_t sum[WORDS] = { 0 }, all[WORDS] = { 0 }; /* it is linear: one look at many bits together */
    for (int j = 0; j < n; j += 1 + j % 3) {
        all[j / 32] |= 1u << j % 32;
        for (int w = 0; w < WORDS; w++) sum[w] ^= m.column[j][w];
    }
    step(all);
    assert_memory_equal(all, sum, sizeof all);

    unsigned char full[BITS] = { 0 }, rest[BITS] = { 0 }, part[BITS];
    for (int i = 0; i < n; i++) full[i] = rest[i] = 1;
    assert_true(is_identity_after(&m, full, n));
    for (; *prime; prime++) {
        assert_true(is_prime(*prime));
        memcpy(part, full, sizeof part);
        assert_int_equal(divide_bits(part, *prime), 0);
        assert_false(is_identity_after(&m, part, n));
        do memcpy(part, rest, sizeof part);
        while (divide_bits(rest, *prime) == 0);
        memcpy(rest, part, sizeof part);
    }
    for (int i = 0; i < BITS; i++) assert_int_equal(rest[i], i == 0); /* there are no other primes */
}

static void periods_are_full(void **state)
{
    (void)state;
    static const uint64_t of_128[] = { 3, 5, 17, 257, 641, 65537, 274177, 6700417, 67280421310721u, 0 };
    static const uint64_t of_160[] = {
        3, 5, 11, 17, 31, 41, 257, 61681, 65537, 414721, 4278255361, 44479210368001u, 0
    };
    check_period(step_lfsr, 128, of_128);
    check_period(step_xorshift, 160, of_160); /* times 2^32 for d, which is odd each step: coprime, so the product */
}

/* ---- a vector of generators ---- */

/* What the tests need to know of both kinds. */
typedef struct vector_kind {
    const char *name;
    uint32_t all, words; /* generators; words of one's state */
    void (*seed)(void *g, uint64_t seed);
    void (*words_of)(void *g, uint32_t *word, size_t n, trn_isa isa);
    uint32_t (*get)(const void *g, uint32_t *state);
    trn_status (*set)(void *g, const uint32_t *state, uint32_t next, trn_error *error);
    uint32_t (*twin)(uint32_t *state);
    void (*seed_one)(uint32_t *state, uint64_t seed, uint32_t g);
} vector_kind;

enum { ALL = TRN_VECTOR_LANES * TRN_XORWOW_STATES, STATE = 6 * ALL };
typedef union vector {
    trn_xorwow_vector xorwow;
    trn_lfsr_vector lfsr;
} vector;

static void seed_xorwow(void *g, uint64_t seed) { trn_xorwow_vector_seed((trn_xorwow_vector *)g, seed); }
static void seed_lfsr(void *g, uint64_t seed) { trn_lfsr_vector_seed((trn_lfsr_vector *)g, seed); }
static void words_xorwow(void *g, uint32_t *word, size_t n, trn_isa isa)
{
    trn_xorwow_vector_words((trn_xorwow_vector *)g, word, n, isa);
}
static void words_lfsr(void *g, uint32_t *word, size_t n, trn_isa isa)
{
    trn_lfsr_vector_words((trn_lfsr_vector *)g, word, n, isa);
}
static uint32_t get_xorwow(const void *g, uint32_t *state)
{
    return trn_xorwow_vector_get_state((const trn_xorwow_vector *)g, state);
}
static uint32_t get_lfsr(const void *g, uint32_t *state)
{
    return trn_lfsr_vector_get_state((const trn_lfsr_vector *)g, state);
}
static trn_status set_xorwow(void *g, const uint32_t *state, uint32_t next, trn_error *error)
{
    return trn_xorwow_vector_set_state((trn_xorwow_vector *)g, state, next, error);
}
static trn_status set_lfsr(void *g, const uint32_t *state, uint32_t next, trn_error *error)
{
    return trn_lfsr_vector_set_state((trn_lfsr_vector *)g, state, next, error);
}
static void one_xorwow(uint32_t *state, uint64_t seed, uint32_t g)
{
    trn_xorwow one;
    trn_xorwow_seed(&one, seed, ((uint64_t)1 << 32) + g);
    memcpy(state, one.state, sizeof one.state);
}
static void one_lfsr(uint32_t *state, uint64_t seed, uint32_t g)
{
    trn_lfsr one;
    trn_lfsr_seed(&one, seed, g);
    memcpy(state, one.state, sizeof one.state);
}

static const vector_kind kinds[] = {
    { "XORWOW", ALL, 6, seed_xorwow, words_xorwow, get_xorwow, set_xorwow, twin_xorwow, one_xorwow },
    { "LFSR", TRN_VECTOR_LANES, 4, seed_lfsr, words_lfsr, get_lfsr, set_lfsr, twin_lfsr, one_lfsr },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Word i is the twin's for generator i mod G; after every portion the state is the twin's too, generator by generator
 * in the documented order. Portions of every size, each for another instruction set; nothing is written beside them. */
static void vectors_equal_the_twins(void **state)
{
    (void)state;
    static uint32_t twin[STATE], saved[STATE], word[MOST + 2 * MARGIN];
    for (const vector_kind *k = kinds; k < kinds + KINDS; k++) {
        uint64_t rng = 8;
        vector g;
        uint32_t next = 0;
        k->seed(&g, 99);
        for (uint32_t i = 0; i < k->all; i++) k->seed_one(twin + k->words * i, 99, i);
        for (int i = 0; i < cases_rounds(60, 2000); i++) {
            const size_t n = i % 5 ? some_length(&rng) : 512 * (size_t)cases_below(&rng, 4);
            const size_t at = MARGIN / 2 + (size_t)(i % 9);
            memset(word, 0xa5, sizeof word);
            k->words_of(&g, word + at, n, isas[i % ISAS]);
            for (size_t j = 0; j < MOST + 2 * MARGIN; j++) {
                uint32_t want = 0xa5a5a5a5u;
                if (j >= at && j < at + n) {
                    want = k->twin(twin + k->words * next);
                    next = (next + 1) % k->all;
                }
                CASES_EQUAL(want, word[j], "%s, isa %s, portion %d of %d words, word %d", k->name,
                            trn_isa_text(isas[i % ISAS]), i, (int)n, (int)(j - at));
            }
            CASES_EQUAL(next, k->get(&g, saved), "%s, portion %d: where it stands", k->name, i);
            for (uint32_t j = 0; j < k->words * k->all; j++)
                CASES_EQUAL(twin[j], saved[j], "%s, portion %d: state word %d", k->name, i, (int)j);
        }
    }
}

/* A state that is saved anywhere and set elsewhere goes on alike; and so does a copy of the struct. */
static void vectors_resume(void **state)
{
    (void)state;
    static uint32_t saved[STATE], a[MOST], b[MOST], c[MOST];
    for (const vector_kind *k = kinds; k < kinds + KINDS; k++) {
        uint64_t rng = 9;
        vector g, h;
        k->seed(&g, 1);
        k->seed(&h, 2);
        for (int i = 0; i < cases_rounds(60, 2000); i++) {
            const size_t n = some_length(&rng);
            k->words_of(&g, a, some_length(&rng), TRN_ISA_AUTO);
            const uint32_t next = k->get(&g, saved);
            assert_int_equal(k->set(&h, saved, next, NULL), TRN_OK);
            vector copy = g;
            k->words_of(&g, a, n, isas[i % ISAS]);
            k->words_of(&h, b, n, isas[(i + 1) % ISAS]);
            k->words_of(&copy, c, n, isas[(i + 2) % ISAS]);
            assert_memory_equal(a, b, n * sizeof a[0]);
            assert_memory_equal(a, c, n * sizeof a[0]);
        }
    }
}

/* One dead generator among the living, or a position that does not exist: refused with a sentence, nothing changed. */
static void bad_states_are_refused(void **state)
{
    (void)state;
    static uint32_t saved[STATE];
    static const char *const sentence[] = { "state: the first five words of lane 77, state 2 are all zero",
                                            "state: the words of lane 77 are all zero" };
    static const char *const beyond[] = { "next is 512, and a step has 512 words",
                                          "next is 128, and a step has 128 words" };
    for (uint32_t i = 0; i < KINDS; i++) {
        const vector_kind *k = &kinds[i];
        vector g, before;
        trn_error error;
        memset(&g, 0, sizeof g);
        k->seed(&g, 3);
        before = g;
        k->get(&g, saved);
        uint32_t *dead = saved + k->words * (i == 0 ? 4 * 77 + 2 : 77);
        memset(dead, 0, (i == 0 ? 5 : 4) * sizeof dead[0]); /* a living d does not help */
        assert_int_equal(k->set(&g, saved, 0, &error), TRN_EINVAL);
        assert_string_equal(error.text, sentence[i]);
        assert_int_equal(error.status, TRN_EINVAL);
        assert_int_equal(k->set(&g, saved, 0, NULL), TRN_EINVAL);
        dead[3] = 0x00010000;
        assert_int_equal(k->set(&g, saved, k->all, &error), TRN_EINVAL);
        assert_string_equal(error.text, beyond[i]);
        assert_memory_equal(&g, &before, sizeof g);
        assert_int_equal(k->set(&g, saved, k->all - 1, &error), TRN_OK);
    }
}

/* [P, 6] and [P, 4] are arrays of the structs, byte for byte. */
static void single_states_are_set_and_refused(void **state)
{
    (void)state;
    enum { P = 5 };
    uint32_t words[6 * P];
    trn_xorwow g[P];
    trn_lfsr h[P];
    trn_error error;
    for (uint32_t i = 0; i < 6 * P; i++) words[i] = i + 1;
    assert_int_equal(trn_xorwow_set_state(g, P, words, &error), TRN_OK);
    assert_memory_equal(g, words, sizeof g);
    assert_int_equal(trn_lfsr_set_state(h, P, words, &error), TRN_OK);
    assert_memory_equal(h, words, sizeof h);

    memset(words + 18, 0, 5 * sizeof words[0]);
    words[0] = 77;
    assert_int_equal(trn_xorwow_set_state(g, P, words, &error), TRN_EINVAL);
    assert_string_equal(error.text, "state: the first five words of partition 3 are all zero");
    assert_int_equal(g[0].state[0], 1);
    assert_int_equal(trn_lfsr_set_state(h, P, words, &error), TRN_OK);
    memset(words + 16, 0, 4 * sizeof words[0]);
    words[0] = 78;
    assert_int_equal(trn_lfsr_set_state(h, P, words, &error), TRN_EINVAL);
    assert_string_equal(error.text, "state: the words of lane 4 are all zero");
    assert_int_equal(h[0].state[0], 77);
    assert_int_equal(trn_xorwow_set_state(g, 0, NULL, NULL), TRN_OK);
}

/* One word that is not zero is enough, whichever it is; xorwow's sixth, a counter, is none of them. */
static void one_word_is_enough(void **state)
{
    (void)state;
    static uint32_t words[STATE];
    for (const vector_kind *k = kinds; k < kinds + KINDS; k++)
        for (uint32_t w = 0; w < k->words; w++) {
            const bool enough = w < 5;
            uint32_t alone[6] = { 0 };
            vector g;
            trn_xorwow one;
            trn_lfsr other;
            k->seed(&g, 7);
            k->get(&g, words);
            uint32_t *const last = words + k->words * (k->all - 1);
            memset(last, 0, k->words * sizeof *last);
            last[w] = alone[w] = 0x80000000u;
            assert_int_equal(k->set(&g, words, 0, NULL), enough ? TRN_OK : TRN_EINVAL);
            const trn_status status =
                k->words == 6 ? trn_xorwow_set_state(&one, 1, alone, NULL) : trn_lfsr_set_state(&other, 1, alone, NULL);
            assert_int_equal(status, enough ? TRN_OK : TRN_EINVAL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_answers),
        cmocka_unit_test(words_are_laid_out_as_documented),
        cmocka_unit_test(words_equal_the_twins),
        cmocka_unit_test(fields_equal_the_twins),
        cmocka_unit_test(fields_share_words),
        cmocka_unit_test(filled_words_are_the_single_ones),
        cmocka_unit_test(filled_fields_are_the_single_ones),
        cmocka_unit_test(published_xorwow),
        cmocka_unit_test(lfsr_by_hand),
        cmocka_unit_test(steps_equal_the_twins),
        cmocka_unit_test(seeds_become_states),
        cmocka_unit_test(periods_are_full),
        cmocka_unit_test(vectors_equal_the_twins),
        cmocka_unit_test(vectors_resume),
        cmocka_unit_test(bad_states_are_refused),
        cmocka_unit_test(single_states_are_set_and_refused),
        cmocka_unit_test(one_word_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

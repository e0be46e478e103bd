/* test_convert_integers.c - .integers_once: integers of 32 bits to every format, rounded once.
 * SPDX-License-Identifier: MIT
 *
 * The twin holds integers between the values of two neighbouring codes, in integer arithmetic. At level 2
 * (TRN_TEST_LEVEL=2) all 2^32 of them to BF16, F16, TF32 and F32.
 */
#include "twin/convert.h"

/* ---- the twin ---- */

enum { FAR = 40, FINE = 30 }; /* 2^FAR lies beyond all integers, all mantissas below 2^FINE */

/* The value of a code as mantissa · 2^exponent; the codes go on past the format's maximum as if it had more. */
static uint64_t parts(const kind *k, uint64_t code, int *exponent)
{
    const uint64_t field = code >> k->M, low = code & (((uint64_t)1 << k->M) - 1);
    const bool scale = k->sort == SCALE; /* no subnormals: code 0 is 2^-127 */
    *exponent = (int)field - k->bias - k->M + (field == 0 && !scale);
    return field || scale ? low | (uint64_t)1 << k->M : low;
}

/* Is the value of this code at most v? */
static bool at_most(const kind *k, uint64_t code, uint64_t v)
{
    int e;
    const uint64_t m = parts(k, code, &e);
    if (m == 0) return true;
    if (e >= FAR) return false;
    if (-e >= FINE) return v > 0;
    return e >= 0 ? m << e <= v : m <= v << -e;
}

/* The largest code at most v, from a hint: walked to where it is near, else by halves. */
static uint64_t code_below(const kind *k, uint64_t v, uint64_t hint)
{
    uint64_t low = at_most(k, hint, v) ? hint : 0, high = (uint64_t)(k->bias > 0 ? k->bias + 40 : 40) << k->M;
    for (int i = 0; i < 2; i++) {
        if (!at_most(k, low + 1, v)) return low;
        low++;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (at_most(k, middle, v))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Does v, `cut` above a code with `gap` = log2 of the distance to the next, go up to that one? */
static bool goes_up(const kind *k, uint64_t cut, int gap, bool odd, bool negative, way w)
{
    const uint64_t half = gap > FAR ? UINT64_MAX : (uint64_t)1 << (gap - 1);
    switch (w.rounding) {
    case TRN_TOWARD_ZERO: return false;
    case TRN_TOWARD_POSITIVE: return !negative;
    case TRN_TOWARD_NEGATIVE: return negative;
    case TRN_TO_ODD: return !odd;
    case TRN_STOCHASTIC: return (gap > 63 ? 0 : cut << w.n >> gap) + w.r >= (uint64_t)1 << w.n;
    case TRN_NEAREST_EVEN:
    default: return cut > half || (cut == half && (odd || k->sort == SCALE));
    }
}

static uint32_t twin_float(const kind *k, uint64_t v, bool negative, way w, uint64_t *hint)
{
    const uint32_t sign = (uint32_t)negative << (k->E + k->M);
    const uint64_t low = *hint = code_below(k, v, *hint);
    int e, gap;
    uint64_t m = parts(k, low, &e), code = low, cut = v;
    (void)parts(k, low + 1, &gap);
    if (k->sort == SCALE || e < gap) gap = e;           /* the distance is the lower one's step */
    if (m) cut = e >= 0 ? v - (m << e) : (v << -e) - m; /* below, integers are codes: 0 */
    if (cut != 0) code += goes_up(k, cut, gap, low & 1, negative, w);
    if (code > oracle_max(k))
        code = oracle_stops(negative, low <= oracle_max(k), w) ? oracle_max(k) : oracle_overflow(k);
    return ((uint32_t)code | sign) << k->shift;
}

static uint32_t twin_whole(const kind *k, uint64_t v, bool negative)
{
    const uint64_t all = (uint64_t)1 << 8 * k->bytes, half = all / 2;
    const uint64_t limit = k->sort == UNSIGNED ? (negative ? 0 : all - 1) : negative ? half : half - 1;
    const uint64_t kept = v < limit ? v : limit;
    return (uint32_t)(negative ? (all - kept) % all : kept);
}

static uint32_t twin_integer(const kind *to, const kind *from, uint32_t bits, way w, uint64_t *hint)
{
    const bool negative = from->sort == SIGNED && bits >= 0x80000000u;
    const uint64_t v = negative ? 0x100000000u - bits : bits;
    if (to->sort == SIGNED || to->sort == UNSIGNED) return twin_whole(to, v, negative);
    if (to->sort == SCALE && (v == 0 || negative)) return w.saturate ? 0x00 : 0xff;
    return twin_float(to, v, negative, w, hint);
}

/* ---- integers where some rounding changes its mind ---- */

enum { I32 = I8 + 4, U32 = I8 + 5, MOST = 12000 };
static unsigned char in[MOST * 4], out[MOST * 4];

/* Ends; then, for each width and each precision, halves between two codes and what lies a little beside them, where
 * binary32 would fall on the half or leave it; the rest at random, of every width. */
static int64_t fill(uint64_t *rng)
{
    static const uint32_t ends[] = { 0,          1,          2,          3,          0x00fffffe, 0x00ffffff, 0x01000000,
                                     0x01000001, 0x01000002, 0x01000003, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001,
                                     0xfffffffe, 0xffffffff, 0x7fffffbf, 0x7fffffc0, 0xffffff7f, 0xffffff80, 65504,
                                     65519,      65520,      65521,      57344,      61440,      240,        248,
                                     448,        464,        465,        15,         16 };
    static const int beside[] = { 0, 1, -1, 2, -2, 3, 63, -64, 127, -127, 128, -128, 129, 255 };
    int64_t n = 0;
    for (int i = 0; i < COUNT(ends); i++) store(in + 4 * n++, 4, ends[i]);
    for (int width = 3; width <= 32; width++)
        for (int precision = 1; precision < width && precision <= 24; precision++)
            for (int i = 0; i < COUNT(beside); i++) {
                const uint64_t kept = (uint64_t)1 << (precision - 1) | cases_next(rng) >> 1 >> (64 - precision);
                const uint64_t middle = (2 * kept + 1) << (width - precision - 1);
                const uint32_t v = (uint32_t)((int64_t)middle + beside[i]);
                if (n < MOST - 2000) store(in + 4 * n++, 4, cases_one_in(rng, 2) ? v : 0 - v);
            }
    while (n < MOST) store(in + 4 * n++, 4, cases_u32(rng) >> cases_below(rng, 32));
    return n;
}

static void check(const trn_convert_args *a, const kind *to, const kind *from, int64_t n)
{
    uint64_t hint = 0;
    must(*a);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = load(in + 4 * i, 4);
        const way w = way_of(a, (uint64_t)i);
        const uint32_t expected = to == from ? code : twin_integer(to, from, code, w, &hint);
        CASES_EQUAL(expected, load(out + i * to->bytes, to->bytes),
                    "%s %08x to %s (bias %d), once, %s, saturate %d, carry %d, %d bits %08x, isa %s", from->name,
                    (unsigned)code, to->name, to->bias, trn_round_text(w.rounding), w.saturate, w.carry, w.n,
                    (unsigned)w.r, trn_isa_text(a->isa));
    }
}

/* Every destination, mode, overflow and instruction set. */
static void integers_are_rounded_once(void **state)
{
    (void)state;
    uint64_t rng = 50;
    const int64_t n = fill(&rng);
    for (int t = 0; t < KINDS; t++)
        for (int from = I32; from <= U32; from++)
            for (int variant = 0; variant < 4 * (TRN_TO_ODD + 1); variant++) {
                trn_convert_args a = arguments(&kinds[t], out, &kinds[from], in, n);
                a.integers_once = true;
                a.rounding = (trn_rounding)(variant / 4);
                a.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                a.sr_carry_to_inf = variant & 2;
                a.sr_bits = cases_one_in(&rng, 2) ? 0 : cases_below(&rng, 33);
                a.seed = cases_next(&rng);
                a.isa = all_isas[cases_below(&rng, COUNT(all_isas))];
                if (!trn_isa_supported(a.isa)) a.isa = TRN_ISA_AUTO;
                if (variant & 2 && a.rounding != TRN_STOCHASTIC) continue;
                check(&a, &kinds[t], &kinds[from], n);
            }
}

/* Steps far above every integer and far below: any bias. */
static void to_configured_fp8(void **state)
{
    (void)state;
    uint64_t rng = 51;
    (void)fill(&rng);
    for (int number = 0; number < 400; number++) {
        kind to = { "cfp8", TRN_CFP8, cases_one_in(&rng, 2) ? IEEE : NAN_ON_TOP, 1, 2 + cases_below(&rng, 4), 0, 0, 0 };
        to.M = 7 - to.E;
        do to.bias = cases_below(&rng, 256) - 128;
        while (!trn_cfp8_valid(descriptor(&to)));
        trn_convert_args a = arguments(&to, out, &kinds[cases_one_in(&rng, 2) ? I32 : U32], in, 1000);
        set_modes(&a, &rng);
        a.integers_once = true;
        a.src.data = in + 4 * cases_below(&rng, MOST - 1000);
        unsigned char *const at = (unsigned char *)a.src.data;
        must(a);
        uint64_t hint = 0;
        for (int64_t i = 0; i < 1000; i++) {
            const uint32_t code = load(at + 4 * i, 4);
            const kind *const from = a.src.format == TRN_I32 ? &kinds[I32] : &kinds[U32];
            CASES_EQUAL(twin_integer(&to, from, code, way_of(&a, (uint64_t)i), &hint), out[i],
                        "%s %08x to e%dm%d, bias %d, once, %s", from->name, (unsigned)code, to.E, to.M, to.bias,
                        trn_round_text(a.rounding));
        }
    }
}

/* By hand: 2^24 + 2^16 + 1 lies above the half of BF16's step 2^17, and binary32's nearest is that half, which is even
 * below. F16 and integers likewise. The default goes both ways' first, as ever. */
static void by_hand(void **state)
{
    (void)state;
    static const struct {
        int to;
        int32_t v;
        trn_rounding rounding;
        uint32_t twice, once;
    } list[] = {
        { BF16, 0x01010001, TRN_NEAREST_EVEN, 0x4b80, 0x4b81 },
        { BF16, -0x01010001, TRN_NEAREST_EVEN, 0xcb80, 0xcb81 },
        { BF16, 0x7fbfffff, TRN_NEAREST_EVEN, 0x4f00, 0x4eff },
        { TF32, 0x01002001, TRN_NEAREST_EVEN, 0x4b800000, 0x4b802000 },
        { BF16, 0x7fffffff, TRN_TOWARD_ZERO, 0x4f00, 0x4eff },
        { F32, 0x01000003, TRN_TOWARD_ZERO, 0x4b800002, 0x4b800001 },
        { F32, 0x01000001, TRN_TO_ODD, 0x4b800000, 0x4b800001 },
        { F32, 0x01000001, TRN_TOWARD_POSITIVE, 0x4b800000, 0x4b800001 },
        { U32, 0x01000001, TRN_NEAREST_EVEN, 0x01000000, 0x01000001 },
        { E4M3, 0x7fffffff, TRN_TOWARD_ZERO, 0x77, 0x77 },
        { F16, 65519, TRN_NEAREST_EVEN, 0x7bff, 0x7bff },
    };
    for (int i = 0; i < COUNT(list); i++)
        for (int once = 0; once < 2; once++) {
            const kind *const to = &kinds[list[i].to];
            trn_convert_args a = arguments(to, out, &kinds[I32], in, 1);
            store(in, 4, (uint32_t)list[i].v);
            a.rounding = list[i].rounding;
            a.integers_once = once;
            must(a);
            CASES_EQUAL(once ? list[i].once : list[i].twice, load(out, to->bytes), "%d to %s, once %d", (int)list[i].v,
                        to->name, once);
        }
}

/* Floats and narrower integers are exact in binary32: the field changes nothing. */
static void other_sources_do_not_see_it(void **state)
{
    (void)state;
    static unsigned char plain[2000 * 4];
    uint64_t rng = 52;
    for (int f = 0; f < I32; f++)
        for (int t = 0; t < KINDS; t++) {
            trn_convert_args a = arguments(&kinds[t], plain, &kinds[f], in, 2000);
            fill_random(&kinds[f], in, 2000, &rng);
            set_modes(&a, &rng);
            must(a);
            a.integers_once = true;
            a.dst.data = out;
            must(a);
            assert_memory_equal(plain, out, (size_t)(2000 * kinds[t].bytes));
        }
}

/* Views, in place and with gaps; a generator's words. */
static void views_and_generators(void **state)
{
    (void)state;
    trn_xorwow_vector generator;
    uint64_t rng = 53;
    const int64_t n = fill(&rng);
    trn_convert_args a = arguments(&kinds[F32], out, &kinds[I32], in, n);
    a.integers_once = true;
    a.rounding = TRN_STOCHASTIC;
    trn_xorwow_vector_seed(&generator, 9);
    trn_xorwow_vector_words(&generator, drawn, (size_t)n, TRN_ISA_PORTABLE);
    trn_xorwow_vector_seed(&generator, 9);
    a.xorwow = &generator;
    check(&a, &kinds[F32], &kinds[I32], n);

    memcpy(out, in, sizeof in);
    a = arguments(&kinds[TF32], out, &kinds[I32], out, n);
    a.integers_once = true;
    check(&a, &kinds[TF32], &kinds[I32], n);

    static uint16_t wide[MOST * 2];
    a = arguments(&kinds[BF16], wide, &kinds[U32], in, n);
    a.dst.stride[0] = 2;
    a.integers_once = true;
    must(a);
    uint64_t hint = 0;
    for (int64_t i = 0; i < n; i++)
        CASES_EQUAL(twin_integer(&kinds[BF16], &kinds[U32], load(in + 4 * i, 4), way_of(&a, 0), &hint), wide[2 * i],
                    "with gaps, element %lld", (long long)i);
}

/* ---- level 2: all integers ---- */

static bool block_is_right(const kind *to, uint32_t first)
{
    enum { BLOCK = 1 << 16 };
    uint32_t from[BLOCK];
    unsigned char code[BLOCK * 4];
    uint64_t hint = 0;
    const way nearest = { TRN_NEAREST_EVEN, false, false, 0, 0 };
    for (uint32_t i = 0; i < BLOCK; i++) from[i] = first + i;
    trn_convert_args a = arguments(to, code, &kinds[U32], from, BLOCK);
    a.integers_once = true;
    if (trn_convert(&a)) return false;
    for (uint32_t i = 0; i < BLOCK; i++)
        if (twin_integer(to, &kinds[U32], first + i, nearest, &hint) != load(code + i * (uint32_t)to->bytes, to->bytes))
            return false;
    return true;
}

static void all_integers(void **state)
{
    (void)state;
    static const int targets[] = { BF16, F16, TF32, F32 };
    if (cases_level() < 2) {
        print_message("the sweep over all 2^32 integers runs at level 2 (TRN_TEST_LEVEL=2)\n");
        return;
    }
    for (int t = 0; t < COUNT(targets); t++) {
        int64_t wrong = -1;
        CASES_PRAGMA(omp parallel for schedule(dynamic, 64))
        for (int block = 0; block < 1 << 16; block++)
            if (!block_is_right(&kinds[targets[t]], (uint32_t)block << 16)) {
                CASES_PRAGMA(omp critical)
                wrong = block;
            }
        if (wrong >= 0)
            fail_msg("%s: wrong in the block of %04llx0000", kinds[targets[t]].name, (unsigned long long)wrong);
        print_message("all 2^32 integers to %s: rounded once\n", kinds[targets[t]].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_rounded_once),
        cmocka_unit_test(to_configured_fp8),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(other_sources_do_not_see_it),
        cmocka_unit_test(views_and_generators),
        cmocka_unit_test(all_integers),
    };
    return cmocka_run_group_tests_name("convert_integers", tests, NULL, NULL);
}

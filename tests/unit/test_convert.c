/* test_convert.c - trn_convert bit for bit: every 16-bit code, the golden files, strides, in place, configured FP8.
 * SPDX-License-Identifier: MIT
 *
 * At level 2 (TRN_TEST_LEVEL=2) a walk over all 2^32 floats.
 */
#include "twin/convert.h"

/* ---- values ---- */

enum { ALL16 = 65536 };
static unsigned char buffer_a[ALL16 * 4 + 64], buffer_b[ALL16 * 4 + 64];

/* Every BF16 and F16 code, and every code of the narrower formats, to every format, on every instruction set. */
static void every_narrow_code_to_every_format(void **state)
{
    (void)state;
    for (int f = 0; f < KINDS; f++) {
        const kind *from = &kinds[f];
        if (from->bytes == 4) continue;
        const int64_t n = from->sort == NO_SPECIALS ? 2 << (from->E + from->M) : (int64_t)1 << 8 * from->bytes;
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * from->bytes, from->bytes, (uint32_t)i);
        for (int t = 0; t < KINDS; t++)
            for (int i = 0; i < COUNT(all_isas); i++)
                for (int saturate = 0; saturate < 2; saturate++) {
                    trn_convert_args a = arguments(&kinds[t], buffer_b, from, buffer_a, n);
                    if (!trn_isa_supported(all_isas[i])) continue;
                    a.isa = all_isas[i];
                    a.overflow = saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                    must(a);
                    check_row(&a, &kinds[t], buffer_b, from, buffer_a, n, 1);
                }
    }
}

/* Floats around every place where some format's rounding changes its mind, in all modes. */
static void floats_at_the_edges_in_every_mode(void **state)
{
    (void)state;
    uint64_t rng = 20;
    for (int t = 1; t < KINDS; t++)
        for (int mode = 0; mode <= TRN_TO_ODD; mode++)
            for (int variant = 0; variant < 4; variant++) {
                const int64_t n = 12000;
                for (int64_t i = 0; i < n; i++) {
                    const uint32_t edge = cases_stratified(cases_below(&rng, CASES_STRATIFIED));
                    store(buffer_a + 4 * i, 4, cases_one_in(&rng, 3) ? cases_float(&rng) : edge);
                }
                trn_convert_args a = arguments(&kinds[t], buffer_b, &kinds[F32], buffer_a, n);
                a.rounding = (trn_rounding)mode;
                a.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                a.sr_carry_to_inf = variant & 2;
                a.seed = 7;
                if (mode != TRN_STOCHASTIC && variant > 1) continue;
                must(a);
                check_row(&a, &kinds[t], buffer_b, &kinds[F32], buffer_a, n, 1);
            }
}

/* The band between the maximum and the step after it is where the stochastic rules differ. */
static void stochastic_overflow(void **state)
{
    (void)state;
    for (int t = 1; t < KINDS; t++) {
        const kind *to = &kinds[t];
        if (to->sort != IEEE && to->sort != NAN_ON_TOP) continue;
        const double max = oracle_magnitude(to, oracle_max(to)), step = max - oracle_magnitude(to, oracle_max(to) - 1);
        const int64_t n = 4000;
        for (int64_t i = 0; i < n; i++) {
            const float x = (float)(max + step * ((double)i / 2000 - 0.5)) * (i % 2 ? 1.0f : -1.0f);
            store(buffer_a + 4 * i, 4, cases_bits_of(x));
        }
        for (int variant = 0; variant < 4; variant++)
            for (int bits = 0; bits <= 32; bits += 8) {
                trn_convert_args a = arguments(to, buffer_b, &kinds[F32], buffer_a, n);
                a.rounding = TRN_STOCHASTIC;
                a.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                a.sr_carry_to_inf = variant & 2;
                a.sr_bits = bits;
                must(a);
                check_row(&a, to, buffer_b, &kinds[F32], buffer_a, n, 1);
            }
    }
}

static void every_pair_at_random(void **state)
{
    (void)state;
    uint64_t rng = 21;
    for (int f = 0; f < KINDS; f++)
        for (int t = 0; t < KINDS; t++) {
            const int64_t n = 1500;
            fill_random(&kinds[f], buffer_a, n, &rng);
            trn_convert_args a = arguments(&kinds[t], buffer_b, &kinds[f], buffer_a, n);
            a.rounding = (trn_rounding)cases_below(&rng, 6);
            a.sr_bits = cases_below(&rng, 33);
            a.stream = cases_next(&rng);
            must(a);
            check_row(&a, &kinds[t], buffer_b, &kinds[f], buffer_a, n, 1);
        }
}

/* Junk above a 6- or 4-bit code is ignored by a cast; a copy keeps every bit, NaN payloads and junk included. */
static void copies_keep_every_bit(void **state)
{
    (void)state;
    uint64_t rng = 22;
    for (int f = 0; f < KINDS; f++) {
        const kind *k = &kinds[f];
        const int64_t n = 3000;
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * k->bytes, k->bytes, cases_u32(&rng));
        for (int mode = 0; mode <= TRN_TO_ODD; mode++) {
            trn_convert_args a = arguments(k, buffer_b, k, buffer_a, n);
            a.rounding = (trn_rounding)mode;
            a.overflow = TRN_SATURATE;
            must(a);
            assert_memory_equal(buffer_a, buffer_b, (size_t)(n * k->bytes));
        }
        if (k->sort == NO_SPECIALS) {
            trn_convert_args a = arguments(&kinds[BF16], buffer_b, k, buffer_a, n);
            must(a);
            for (int64_t i = 0; i < n; i++) {
                const uint32_t expected = oracle(&kinds[BF16], k, plain_code(k, buffer_a[i]), way_of(&a, 0));
                CASES_EQUAL(expected, load(buffer_b + 2 * i, 2), "%s with junk %02x", k->name, buffer_a[i]);
            }
        }
    }
}

/* ---- the golden files ---- */

enum { GOLDEN_MOST = 10000 };
static uint32_t golden[4][GOLDEN_MOST];

/* Reads the columns of one file; 0 lines when there is none. */
static int64_t read_golden(const char *prefix, const char *name, int columns)
{
    char path[1024], line[128];
    int64_t n = 0;
    snprintf(path, sizeof path, "%s/%s_%s.txt", TRN_GOLDEN_DIR, prefix, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        unsigned column[4] = { 0, 0, 0, 0 };
        const int found = sscanf(line, "%x %x %x %x", &column[0], &column[1], &column[2], &column[3]);
        if (found != columns || n == GOLDEN_MOST)
            fail_msg("%s: %d columns in line %lld", path, found, (long long)n + 1);
        for (int c = 0; c < 4; c++) golden[c][n] = column[c];
        n++;
    }
    fclose(file);
    return n;
}

static void check_golden(const trn_convert_args *a, const kind *to, const uint32_t *codes, const uint32_t *x, int64_t n)
{
    must(*a);
    for (int64_t i = 0; i < n; i++)
        CASES_EQUAL(codes[i] << to->shift, load(buffer_b + i * to->bytes, to->bytes), "golden %s, %s, input %08x",
                    to->name, trn_round_text(a->rounding), (unsigned)x[i]);
}

static void golden_files_agree_on(trn_isa isa)
{
    int files = 0;
    for (int t = 1; t < KINDS; t++) {
        const kind *to = &kinds[t];
        int64_t n;
        for (int saturate = 0; saturate < 2; saturate++) {
            n = read_golden(saturate ? "encode_sat" : "encode", to->name, 2);
            trn_convert_args a = arguments(to, buffer_b, &kinds[F32], golden[0], n);
            a.overflow = saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
            a.isa = isa;
            if (n) check_golden(&a, to, golden[1], golden[0], n);
            files += n > 0;
        }
        n = read_golden("decode", to->name, 2);
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * to->bytes, to->bytes, golden[0][i] << to->shift);
        trn_convert_args decode = arguments(&kinds[F32], buffer_b, to, buffer_a, n);
        decode.isa = isa;
        if (n) check_golden(&decode, &kinds[F32], golden[1], golden[0], n);
        files += n > 0;

        n = read_golden("bracket", to->name, 4);
        for (int mode = 0; n && mode <= TRN_TOWARD_NEGATIVE; mode++) {
            trn_convert_args a = arguments(to, buffer_b, &kinds[F32], golden[0], n);
            a.rounding = (trn_rounding)mode;
            a.sr_bits = 11;
            a.isa = isa;
            if (mode == TRN_NEAREST_EVEN) continue;
            for (int64_t i = 0; i < n; i++) { /* the third column becomes what this mode must give */
                const uint64_t r = twin_random_bits(0, 0, (uint64_t)i, 11);
                bool away = mode == TRN_TOWARD_POSITIVE;
                if (mode == TRN_STOCHASTIC)
                    away = (golden[3][i] >> 21) + r >= 1u << 11 && golden[2][i] <= oracle_max(to);
                buffer_a[i] = away;
            }
            static uint32_t expected[GOLDEN_MOST];
            for (int64_t i = 0; i < n; i++) expected[i] = golden[buffer_a[i] ? 2 : 1][i];
            check_golden(&a, to, expected, golden[0], n);
        }
        files += n > 0;
    }
    if (files != 4 * 11 - 1) fail_msg("%d golden files in %s, expected 43", files, TRN_GOLDEN_DIR);
}

static void golden_files_agree(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(all_isas); i++)
        if (trn_isa_supported(all_isas[i])) golden_files_agree_on(all_isas[i]);
}

/* ---- views ---- */

/* Any strides, any byte address, broadcast sources. */
static void random_views(void **state)
{
    (void)state;
    uint64_t rng = 30;
    for (int number = 0; number < 3000; number++) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        trn_convert_args a = arguments(to, target, from, source, 1);
        if (!random_call(&a, to, from, &rng)) continue;
        fill_random(&kinds[TRN_I8], target, ARENA / kinds[TRN_I8].bytes, &rng);
        check_view(&a, to, from, "view", number);
    }
}

/* The same data, element size and strides: the source is read before it is overwritten. */
static void random_views_in_place(void **state)
{
    (void)state;
    uint64_t rng = 31;
    int done = 0;
    while (done < 1500) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        if (to->bytes != from->bytes) continue;
        trn_convert_args a = arguments(to, target, from, target, 1);
        set_modes(&a, &rng);
        random_shape(&a.dst, &rng);
        random_strides(&a.dst, false, false, &rng);
        a.dst.data = target + cases_below(&rng, 130);
        if (span(&a.dst) * to->bytes > ARENA - 130) continue;
        a.src = a.dst;
        a.dst.format = to->format;
        a.src.format = from->format;
        for (int i = 0; i < a.src.rank; i++) /* a stride that is never taken need not be the same */
            if (a.src.shape[i] == 1 && a.src.stride[i] > 0) a.src.stride[i] += 5;
        fill_random(from, (unsigned char *)a.dst.data, span(&a.dst), &rng);
        check_view(&a, to, from, "in place", done++);
    }
}

/* Large transposes and odd tails: every tile edge, and rows longer than a chunk. */
static void tiles_and_tails(void **state)
{
    (void)state;
    enum { ROWS = 131, COLUMNS = 197 };
    static uint32_t in[ROWS * COLUMNS];
    static uint16_t out[ROWS * COLUMNS];
    uint64_t rng = 32;
    for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = cases_float(&rng);
    for (int mode = 0; mode < 2; mode++) {
        trn_convert_args a = arguments(&kinds[BF16], out, &kinds[F32], in, 1);
        a.rounding = mode ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        a.dst = trn_tensor_2d(TRN_BF16, out, COLUMNS, ROWS);
        a.src = trn_tensor_2d(TRN_F32, in, COLUMNS, ROWS);
        a.src.stride[0] = 1;
        a.src.stride[1] = COLUMNS;
        must(a);
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < ROWS; j++) {
                const way w = way_of(&a, (uint64_t)(i * ROWS + j));
                CASES_EQUAL(oracle(&kinds[BF16], &kinds[F32], in[j * COLUMNS + i], w), out[i * ROWS + j],
                            "transpose, mode %d, %d %d", mode, i, j);
            }
    }
    for (int64_t n = 0; n < 300; n++)
        for (int i = 0; i < COUNT(all_isas); i++) {
            trn_convert_args a = arguments(&kinds[BF16], out, &kinds[F32], in, n);
            if (!trn_isa_supported(all_isas[i])) continue;
            a.isa = all_isas[i];
            out[n] = 0x5a5a;
            must(a);
            check_row(&a, &kinds[BF16], (const unsigned char *)out, &kinds[F32], (const unsigned char *)in, n, 1);
            assert_int_equal(out[n], 0x5a5a);
        }
}

/* ---- configurable FP8 ---- */

static kind random_cfp8(uint64_t *rng)
{
    kind k = { "cfp8", TRN_CFP8, cases_one_in(rng, 2) ? IEEE : NAN_ON_TOP, 1, 2 + cases_below(rng, 4), 0, 0, 0 };
    k.M = 7 - k.E;
    do {
        k.bias = cases_one_in(rng, 2) ? cases_below(rng, 20) : cases_below(rng, 256) - 128;
    } while (!trn_cfp8_valid(descriptor(&k)));
    return k;
}

/* Any descriptor to any other and to and from any format; from bytes with a table and, when they are few, without. */
static void configured_fp8(void **state)
{
    (void)state;
    uint64_t rng = 36;
    for (int number = 0; number < 3000; number++) {
        const kind one = random_cfp8(&rng), two = random_cfp8(&rng), *other = random_kind(&rng);
        const kind *to = number % 3 ? &one : other, *from = number % 3 == 1 ? &two : number % 3 ? other : &one;
        const int64_t n = 1 + cases_below(&rng, cases_one_in(&rng, 2) ? 255 : 2000);
        trn_convert_args a = arguments(to, buffer_b, from, buffer_a, n);
        fill_random(from, buffer_a, n, &rng);
        set_modes(&a, &rng);
        const bool same = to->E == from->E && to->bias == from->bias && to->sort == from->sort;
        if (to->format == from->format && same) continue; /* a copy */
        must(a);
        check_row(&a, to, buffer_b, from, buffer_a, n, 1);
    }
}

/* A copy between two views of one descriptor keeps every bit, NaN payloads included; a descriptor that says nothing is
 * 4 bits and 7. */
static void one_configured_fp8(void **state)
{
    (void)state;
    const kind *cfp8 = &kinds[CFP8];
    for (int i = 0; i < 256; i++) buffer_a[i] = (unsigned char)i;
    trn_convert_args a = arguments(cfp8, buffer_b, cfp8, buffer_a, 256);
    memset(&a.dst.cfp8, 0, sizeof a.dst.cfp8);
    must(a);
    assert_memory_equal(buffer_a, buffer_b, 256);
    a.dst.cfp8.no_infinity = true; /* 78 was infinity, 79 a NaN, and 77 means the same */
    must(a);
    CASES_EQUAL(0x7f, buffer_b[0x78], "infinity where there is none");
    CASES_EQUAL(0x7f, buffer_b[0x79], "NaN");
    CASES_EQUAL(0x77, buffer_b[0x77], "240");
}

/* ---- level 2: all floats ---- */

/* Where, in exact arithmetic, nearest even gives code + 1 instead of code. The step after the maximum counts as the
 * value that the next code would have. */
static double midpoint(const kind *k, uint32_t code)
{
    return 0.5 * (oracle_magnitude(k, code) + oracle_magnitude(k, code + 1));
}

/* Walks up through the n floats from `first` (all of one sign) beside the codes; the index of a wrong one, or -1. */
static int64_t walk(const kind *k, uint32_t first, const unsigned char *found, int64_t n)
{
    const uint32_t sign = (first & 0x80000000u) >> (31 - k->E - k->M), max = oracle_max(k);
    const way nearest = { TRN_NEAREST_EVEN, false, false, 0, 0 };
    const number x = oracle_decode(&kinds[F32], first & 0x7fffffffu);
    uint32_t code = x.is == FINITE ? oracle_encode_float(k, x, nearest) >> k->shift : max + 1;
    double mid = midpoint(k, code);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t u = (first & 0x7fffffffu) + (uint32_t)i;
        const double v = u < 0x7f800000u ? (double)cases_float_of(u) : 0;
        while (code <= max && (v > mid || (v == mid && code % 2 == 1))) mid = midpoint(k, ++code);
        const uint32_t expected = u > 0x7f800000u ? oracle_nan(k) : u == 0x7f800000u ? oracle_overflow(k) : code;
        if (load(found + i * k->bytes, k->bytes) != (expected | sign) << k->shift) return i;
    }
    return -1;
}

/* One block of 2^16 floats to one format, on every instruction set; a wrong float, or -1. */
static int64_t sweep_block(const kind *k, int block)
{
    enum { BLOCK = 1 << 16 };
    uint32_t in[BLOCK];
    unsigned char out[BLOCK * 4], other[BLOCK * 4];
    const uint32_t first = (uint32_t)block << 16;
    for (uint32_t j = 0; j < BLOCK; j++) in[j] = first + j;
    trn_convert_args a = arguments(k, out, &kinds[F32], in, BLOCK);
    a.isa = TRN_ISA_PORTABLE;
    const int64_t at = trn_convert(&a) ? 0 : walk(k, first, out, BLOCK);
    if (at >= 0) return (int64_t)first + at;
    a.dst.data = other;
    for (int i = 0; i < COUNT(all_isas); i++) {
        a.isa = all_isas[i];
        if (!trn_isa_supported(a.isa)) continue;
        if (trn_convert(&a)) return first;
        for (int j = 0; j < BLOCK; j++)
            if (memcmp(out + j * k->bytes, other + j * k->bytes, (size_t)k->bytes) != 0) return (int64_t)first + j;
    }
    return -1;
}

static void all_floats(void **state)
{
    (void)state;
    static const int targets[] = { BF16, F16, TF32 };
    if (cases_level() < 2) {
        print_message("the sweep over all 2^32 floats runs at level 2 (TRN_TEST_LEVEL=2)\n");
        return;
    }
#if defined(_OPENMP)
    with_threads(omp_get_num_procs());
#endif
    for (int t = 0; t < COUNT(targets); t++) {
        int64_t wrong = -1;
        CASES_PRAGMA(omp parallel for schedule(dynamic, 64))
        for (int block = 0; block < 1 << 16; block++) {
            const int64_t at = sweep_block(&kinds[targets[t]], block);
            if (at >= 0) {
                CASES_PRAGMA(omp critical)
                wrong = at;
            }
        }
        if (wrong >= 0) fail_msg("%s: wrong at %08llx", kinds[targets[t]].name, (unsigned long long)wrong);
        print_message("all 2^32 floats to %s: right on every instruction set\n", kinds[targets[t]].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_narrow_code_to_every_format),
        cmocka_unit_test(floats_at_the_edges_in_every_mode),
        cmocka_unit_test(stochastic_overflow),
        cmocka_unit_test(every_pair_at_random),
        cmocka_unit_test(copies_keep_every_bit),
        cmocka_unit_test(golden_files_agree),
        cmocka_unit_test(random_views),
        cmocka_unit_test(random_views_in_place),
        cmocka_unit_test(tiles_and_tails),
        cmocka_unit_test(configured_fp8),
        cmocka_unit_test(one_configured_fp8),
        cmocka_unit_test(all_floats),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}

/* test_transpose.c - transposes on the tensor engine: every code comes through unchanged where the mode exists, and the
 * plain product by an identity, NaN and infinity spreading, where it does not.
 * SPDX-License-Identifier: MIT
 *
 * Sources: NKI's nc_matmul and nc_transpose pages and the Trainium2 guide (bit-exact data movement, dst in the data's
 * format, FP8 in the low bytes of 16-bit containers). On Trainium1 a transpose is a matmul by an identity: a third
 * party measured that finite FP32 comes through exactly; a NaN or infinity reaches all that its row of data meets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_tensor_engine.h"
#include "twin/instruction.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { P = 128, F = 128 };

static const int data_formats[] = { TWIN_F32,  TWIN_TF32,   TWIN_BF16, TWIN_F16, TWIN_E4M3,
                                    TWIN_E5M2, TWIN_E4M3FN, TWIN_E3M4, TWIN_CFP8 };

static int dst_format(trn_generation generation, int data)
{
    if (generation == TRN_TRAINIUM1) return TWIN_F32;
    return problem_is_fp8(data) ? TWIN_U16 : data;
}

static uint32_t code_of_one(int format)
{
    const twin_number one = twin_make(false, 1, 0);
    return twin_encode(&twin_formats[format], &one, twin_plain(TWIN_NEAREST_EVEN));
}

/* ---- a transpose, in memory of any kind ---- */

typedef struct move {
    trn_generation generation;
    int data_format, moving_format;
    int k, m, n;
    int source[512]; /* of column n: the row of the data, or -1 */
    array data, moving, dst;
} move;

static void move_build(move *t, uint64_t *rng)
{
    const int64_t data[3] = { t->k, t->m, 1 }, moving[3] = { t->k, t->n, 1 }, dst[3] = { t->m, t->n, 1 };
    const int to = dst_format(t->generation, t->data_format);
    t->data = array_make(t->data_format, &twin_formats[TWIN_CFP8], 2, data, false, BRIDGE_NEAR_ONE, rng);
    t->moving = array_make(t->moving_format, &twin_formats[TWIN_CFP8], 2, moving, false, BRIDGE_ZEROS, rng);
    t->dst = array_make(to, &twin_formats[TWIN_CFP8], 2, dst, false, BRIDGE_NEAR_ONE, rng);
    for (int k = 0; k < t->k; k++)
        for (int n = 0; n < t->n; n++)
            array_put(&t->moving, k, n, 0, t->source[n] == k ? code_of_one(t->moving_format) : 0);
}

static void move_free(move *t)
{
    free(t->data.memory);
    free(t->moving.memory);
    free(t->dst.memory);
}

static trn_nc_matmul_args move_args(const move *t, trn_isa isa, trn_error *error)
{
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    memset(error, 0, sizeof *error);
    args.generation = t->generation;
    args.dst = t->dst.view;
    args.stationary = t->data.view;
    args.moving = t->moving.view;
    args.is_transpose = true;
    args.isa = isa;
    args.error = error;
    return args;
}

/* What [m, n] must be: the code itself, or on Trainium1 what the twin multiplies and adds. */
static uint32_t *move_expected(const move *t)
{
    uint32_t *out = instruction_zeroed(t->m, t->n);
    if (t->generation != TRN_TRAINIUM1) {
        for (int e = 0; e < t->m * t->n; e++)
            if (t->source[e % t->n] >= 0) out[e] = array_get(&t->data, t->source[e % t->n], e / t->n, 0);
        return out;
    }
    uint32_t *a = instruction_zeroed(t->m, t->k), *b = instruction_zeroed(t->k, t->n);
    for (int k = 0; k < t->k; k++) {
        for (int m = 0; m < t->m; m++) a[m * t->k + k] = array_get(&t->data, k, m, 0);
        for (int n = 0; n < t->n; n++) b[k * t->n + n] = array_get(&t->moving, k, n, 0);
    }
    twin_problem p;
    memset(&p, 0, sizeof p);
    p.m = t->m;
    p.n = t->n;
    p.k = t->k;
    p.a_format = t->data_format;
    p.b_format = t->moving_format;
    p.dst_format = TWIN_F32;
    p.a = a;
    p.b = b;
    p.dst = out;
    p.numerics = twin_numerics_default();
    scalar_matmul(&p);
    free(a);
    free(b);
    return out;
}

static void move_ask(move *t, const char *what)
{
    unsigned char *before = bridge_copy(t->dst.memory, t->dst.bytes);
    uint32_t *expected = move_expected(t);
    for (int e = 0; e < t->m * t->n; e++) array_put(&t->dst, e / t->n, e % t->n, 0, expected[e]);
    unsigned char *after = bridge_copy(t->dst.memory, t->dst.bytes);
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        trn_error error;
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        memcpy(t->dst.memory, before, t->dst.bytes);
        const trn_nc_matmul_args args = move_args(t, (trn_isa)isa, &error);
        if (trn_nc_matmul(&args) != TRN_OK)
            fail_msg("%s, %s by %s on %s: %s", what, twin_formats[t->data_format].name,
                     twin_formats[t->moving_format].name, trn_generation_name(t->generation), error.text);
        for (int e = 0; e < t->m * t->n; e++)
            CASES_EQUAL(expected[e], array_get(&t->dst, e / t->n, e % t->n, 0), "%s, %s by %s on %s, [%d, %d], isa %d",
                        what, twin_formats[t->data_format].name, twin_formats[t->moving_format].name,
                        trn_generation_name(t->generation), e / t->n, e % t->n, isa);
        if (memcmp(after, t->dst.memory, t->dst.bytes) != 0) fail_msg("%s: bytes around dst were written", what);
    }
    free(before);
    free(after);
    free(expected);
}

static move move_of(trn_generation generation, int data, int moving, int k, int m, int n)
{
    move t;
    memset(&t, 0, sizeof t);
    t.generation = generation;
    t.data_format = data;
    t.moving_format = moving;
    t.k = k;
    t.m = m;
    t.n = n;
    for (int i = 0; i < n; i++) t.source[i] = i < k ? i : -1;
    return t;
}

/* ---- bit-exact ---- */

static const trn_generation with_mode[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM2, TRN_TRAINIUM3 };

/* All codes: 65536 of two bytes in four instructions, 256 of one byte in one. */
static void every_code_of_a_narrow_format(void **state)
{
    (void)state;
    uint64_t rng = 121;
    for (int g = 0; g < COUNT(with_mode); g++)
        for (int f = 2; f < COUNT(data_formats); f++) {
            const int format = data_formats[f];
            if (!problem_known(with_mode[g] ? with_mode[g] : TRN_TRAINIUM2, format)) continue;
            for (int first = 0; first < 1 << twin_formats[format].bits; first += P * F) {
                move t = move_of(with_mode[g], format, format, P, F, P);
                move_build(&t, &rng);
                for (int e = 0; e < P * F; e++)
                    array_put(&t.data, e / F, e % F, 0,
                              (uint32_t)(first + e * 77 % (P * F)) & twin_ones(twin_formats[format].bits));
                move_ask(&t, "every code");
                move_free(&t);
            }
        }
}

/* Every exponent and sign with the mantissas that matter: payloads of NaN, subnormals, low bits of TF32 containers. */
static void words_of_32_bits(void **state)
{
    (void)state;
    uint64_t rng = 122;
    const int step = cases_level() == 1 ? 5 : 1;
    for (int f = 0; f < 2; f++)
        for (int first = cases_below(&rng, step); first < CASES_STRATIFIED; first += step * P * F) {
            move t = move_of(with_mode[1 + f], data_formats[f], data_formats[f], P, F, P);
            move_build(&t, &rng);
            for (int e = 0; e < P * F; e++)
                array_put(&t.data, e / F, e % F, 0, cases_stratified((first + e * step) % CASES_STRATIFIED));
            move_ask(&t, "every exponent");
            move_free(&t);
        }
}

/* Any size, any permutation, columns that take nothing, formats of the ones that are not the data's. */
static void permutations(void **state)
{
    (void)state;
    static const int size[] = { 1, 2, 3, 17, 31, 32, 64, 100, 127, 128 };
    uint64_t rng = 123;
    const int count = cases_rounds(400, 8000);
    for (int i = 0; i < count; i++) {
        move t;
        int data, moving, order[P];
        trn_generation generation;
        do {
            generation = problem_generations[cases_below(&rng, 3)];
            data = data_formats[cases_below(&rng, COUNT(data_formats))];
            moving = data_formats[cases_below(&rng, COUNT(data_formats))];
        } while (!problem_legal(PROBLEM_PLAIN, generation, data, moving));
        t = move_of(generation, data, moving, problem_size(size, COUNT(size), &rng),
                    problem_size(size, COUNT(size), &rng), problem_size(size, COUNT(size), &rng));
        for (int k = 0; k < t.k; k++) {
            const int j = cases_below(&rng, k + 1);
            order[k] = order[j];
            order[j] = k;
        }
        for (int n = 0; n < t.n; n++) t.source[n] = n < t.k && !cases_one_in(&rng, 9) ? order[n] : -1;
        move_build(&t, &rng);
        const bridge_values kind = (bridge_values)cases_below(&rng, BRIDGE_VALUES);
        for (int e = 0; e < t.k * t.m; e++) array_put(&t.data, e / t.m, e % t.m, 0, bridge_code(data, kind, &rng));
        move_ask(&t, "a permutation");
        move_free(&t);
    }
}

/* ---- Trainium1: a matmul by an identity ---- */

/* engines.md's "bit exact on Trn1" for finite FP32; -0 is the one that is not: +0 + -0 * 1 is +0. */
static void finite_numbers_on_trainium1(void **state)
{
    (void)state;
    uint64_t rng = 124;
    move t = move_of(TRN_TRAINIUM1, TWIN_F32, TWIN_F32, P, F, P);
    move_build(&t, &rng);
    for (int e = 0; e < P * F; e++) {
        const uint32_t u = cases_u32(&rng);
        array_put(&t.data, e / F, e % F, 0, (u >> 23 & 0xff) == 0xff ? u & 0xff000000u : u);
    }
    move_ask(&t, "finite");
    for (int e = 0; e < P * F; e++)
        CASES_EQUAL(array_get(&t.data, e % F, e / F, 0), array_get(&t.dst, e / F, e % F, 0), "element %d", e);
    move_free(&t);
}

/* One infinity and one NaN: everything that meets them is NaN, 0 * inf being NaN; the infinity itself arrives. */
static void specials_spread_on_trainium1(void **state)
{
    (void)state;
    uint64_t rng = 125;
    move t = move_of(TRN_TRAINIUM1, TWIN_BF16, TWIN_BF16, 16, 8, 16);
    move_build(&t, &rng);
    array_put(&t.data, 5, 3, 0, 0xff80); /* -inf */
    array_put(&t.data, 9, 6, 0, 0x7fc1);
    move_ask(&t, "specials");
    for (int n = 0; n < 16; n++) {
        CASES_EQUAL(n == 5 ? 0xff800000u : 0x7fc00000u, array_get(&t.dst, 3, n, 0), "[3, %d] meets -inf", n);
        CASES_EQUAL(0x7fc00000u, array_get(&t.dst, 6, n, 0), "[6, %d] meets NaN", n);
        CASES_EQUAL(array_get(&t.data, n, 4, 0) << 16, array_get(&t.dst, 4, n, 0), "[4, %d] meets neither", n);
    }
    move_free(&t);
}

/* ---- refusals ---- */

static void expect_refusal(const trn_nc_matmul_args *args, move *t, trn_status expected, const char *word)
{
    unsigned char *before = bridge_copy(t->dst.memory, t->dst.bytes);
    const trn_status status = trn_nc_matmul(args);
    if (status != expected || !strstr(args->error->text, word))
        fail_msg("%s on %s: expected %s with \"%s\", got %s, \"%s\"", twin_formats[t->data_format].name,
                 trn_generation_name(t->generation), trn_status_text(expected), word, trn_status_text(status),
                 args->error->text);
    assert_memory_equal(before, t->dst.memory, t->dst.bytes);
    free(before);
}

/* The moving operand must be zeros with at most one 1 in a column; on Trainium1 it is an operand as any other. */
static void only_permutations(void **state)
{
    (void)state;
    uint64_t rng = 126;
    for (int g = 1; g < 3; g++)
        for (int f = 0; f < COUNT(data_formats); f++) {
            const int format = data_formats[f];
            if (!problem_known(problem_generations[g], format)) continue;
            static const float wrong[] = { 2.0f, 0.5f, -1.0f };
            move t = move_of(problem_generations[g], format, format, 20, 9, 30);
            trn_error error;
            move_build(&t, &rng);
            const trn_nc_matmul_args args = move_args(&t, TRN_ISA_AUTO, &error);
            array_put(&t.moving, 7, 3, 0, code_of_one(format));
            expect_refusal(&args, &t, TRN_EINVAL, "moving");
            array_put(&t.moving, 7, 3, 0, 0);
            array_put(&t.moving, 19, 29, 0, twin_max_code(&twin_formats[format]) + 1); /* infinity or NaN */
            expect_refusal(&args, &t, TRN_EINVAL, "moving");
            for (int i = 0; i < COUNT(wrong); i++) {
                const twin_number x = twin_from_f32(cases_bits_of(wrong[i]));
                array_put(&t.moving, 19, 29, 0, twin_encode(&twin_formats[format], &x, twin_plain(TWIN_NEAREST_EVEN)));
                expect_refusal(&args, &t, TRN_EINVAL, "moving");
            }
            array_put(&t.moving, 19, 29, 0, 0);
            assert_int_equal(TRN_OK, trn_nc_matmul(&args));
            move_free(&t);
        }
}

static void only_the_datas_own_format(void **state)
{
    (void)state;
    static const trn_format all[] = { TRN_F32,     TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3,
                                      TRN_F8_E5M2, TRN_U16,  TRN_U8,   TRN_I16 };
    uint64_t rng = 127;
    for (int g = 0; g < 3; g++)
        for (int f = 0; f < COUNT(data_formats); f++) {
            const trn_generation generation = problem_generations[g];
            if (!problem_known(generation, data_formats[f])) continue;
            move t = move_of(generation, data_formats[f], data_formats[f], 8, 8, 8);
            trn_error error;
            t.m = 8;
            move_build(&t, &rng);
            trn_nc_matmul_args args = move_args(&t, TRN_ISA_AUTO, &error);
            static uint32_t other[64];
            memset(other, 0x5a, sizeof other);
            for (int d = 0; d < COUNT(all); d++) {
                args.dst = trn_tensor_2d(all[d], other, 8, 8);
                if (all[d] == t.dst.view.format) continue;
                const trn_status status = trn_nc_matmul(&args);
                if (status != TRN_EFORMAT && status != TRN_EUNSUPPORTED)
                    fail_msg("%s into %s on %s: %s", twin_formats[data_formats[f]].name, trn_format_name(all[d]),
                             trn_generation_name(generation), trn_status_text(status));
                if (!strstr(error.text, trn_format_name(all[d]))) fail_msg("\"%s\"", error.text);
                CASES_EQUAL(0x5a5a5a5au, other[0], "nothing may be written");
            }
            move_free(&t);
        }
}

static void not_with_other_modes(void **state)
{
    (void)state;
    uint64_t rng = 128;
    move t = move_of(TRN_TRAINIUM2, TWIN_E4M3, TWIN_E4M3, 8, 8, 8);
    trn_error error;
    move_build(&t, &rng);
    trn_nc_matmul_args args = move_args(&t, TRN_ISA_AUTO, &error);
    args.accumulate = true;
    expect_refusal(&args, &t, TRN_EINVAL, "accumulate");
    args.accumulate = false;
    args.double_row = true;
    const int64_t shape[3] = { 4, 2, 8 };
    args.stationary = trn_tensor_nd(TRN_F8_E4M3, t.data.memory, 3, shape);
    args.moving = trn_tensor_nd(TRN_F8_E4M3, t.moving.memory, 3, shape);
    args.dst = t.dst.view;
    assert_int_not_equal(TRN_OK, trn_nc_matmul(&args));
    assert_non_null(strstr(error.text, "double_row"));
    assert_non_null(strstr(error.text, "transpose"));
    move_free(&t);
}

/* ---- nc_transpose ---- */

static void an_instruction_of_its_own(void **state)
{
    (void)state;
    static const int size[] = { 1, 2, 3, 17, 32, 64, 127, 128 };
    uint64_t rng = 129;
    const int count = cases_rounds(300, 5000);
    for (int i = 0; i < count; i++) {
        trn_generation generation;
        int data;
        do {
            generation = problem_generations[cases_below(&rng, 3)];
            data = data_formats[cases_below(&rng, COUNT(data_formats))];
        } while (!problem_known(generation, data));
        const int p = problem_size(size, COUNT(size), &rng), f = problem_size(size, COUNT(size), &rng);
        move t = move_of(generation, data, data, p, f, p);
        move_build(&t, &rng);
        const bridge_values kind = (bridge_values)cases_below(&rng, BRIDGE_VALUES);
        for (int e = 0; e < p * f; e++) array_put(&t.data, e / f, e % f, 0, bridge_code(data, kind, &rng));
        uint32_t *expected = move_expected(&t);
        for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
            trn_error error;
            trn_nc_transpose_args args;
            if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
            memset(&args, 0, sizeof args);
            args.generation = generation;
            args.dst = t.dst.view;
            args.data = t.data.view;
            args.isa = (trn_isa)isa;
            args.error = &error;
            if (trn_nc_transpose(&args) != TRN_OK) fail_msg("%s", error.text);
            for (int e = 0; e < p * f; e++)
                CASES_EQUAL(expected[e], array_get(&t.dst, e / p, e % p, 0), "%s, [%d, %d] on %s",
                            twin_formats[data].name, e / p, e % p, trn_generation_name(generation));
        }
        free(expected);
        move_free(&t);
    }
}

static void its_limits(void **state)
{
    (void)state;
    static uint16_t data[129 * 129], dst[129 * 129];
    static const struct {
        int p, f, dst_rows, dst_columns;
        trn_format data_format, dst_format;
        trn_generation generation;
        trn_status status;
        const char *word;
    } wrong[] = {
        { 129, 4, 4, 129, TRN_BF16, TRN_BF16, TRN_TRAINIUM2, TRN_ELIMIT, "129" },
        { 4, 129, 129, 4, TRN_BF16, TRN_BF16, TRN_TRAINIUM2, TRN_ELIMIT, "129" },
        { 4, 5, 4, 5, TRN_BF16, TRN_BF16, TRN_TRAINIUM2, TRN_ESHAPE, "dst" },
        { 4, 5, 5, 4, TRN_BF16, TRN_F16, TRN_TRAINIUM2, TRN_EFORMAT, "float16" },
        { 4, 5, 5, 4, TRN_BF16, TRN_BF16, TRN_TRAINIUM1, TRN_EUNSUPPORTED, "bfloat16" },
        { 4, 5, 5, 4, TRN_F8_E4M3, TRN_F8_E4M3, TRN_TRAINIUM2, TRN_EFORMAT, "float8_e4m3" },
        { 4, 5, 5, 4, TRN_F8_E4M3FN, TRN_U16, TRN_TRAINIUM2, TRN_EUNSUPPORTED, "Trainium2" },
        { 4, 5, 5, 4, TRN_BF16, TRN_BF16, (trn_generation)9, TRN_EINVAL, "generation" },
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        trn_error error;
        trn_nc_transpose_args args;
        memset(&args, 0, sizeof args);
        memset(&error, 0, sizeof error);
        args.generation = wrong[i].generation;
        args.dst = trn_tensor_2d(wrong[i].dst_format, dst, wrong[i].dst_rows, wrong[i].dst_columns);
        args.data = trn_tensor_2d(wrong[i].data_format, data, wrong[i].p, wrong[i].f);
        args.error = &error;
        const trn_status status = trn_nc_transpose(&args);
        if (status != wrong[i].status || !strstr(error.text, wrong[i].word))
            fail_msg("case %d: %s, \"%s\"", i, trn_status_text(status), error.text);
    }
    assert_int_equal(TRN_EINVAL, trn_nc_transpose(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_a_narrow_format),
        cmocka_unit_test(words_of_32_bits),
        cmocka_unit_test(permutations),
        cmocka_unit_test(finite_numbers_on_trainium1),
        cmocka_unit_test(specials_spread_on_trainium1),
        cmocka_unit_test(only_permutations),
        cmocka_unit_test(only_the_datas_own_format),
        cmocka_unit_test(not_with_other_modes),
        cmocka_unit_test(an_instruction_of_its_own),
        cmocka_unit_test(its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

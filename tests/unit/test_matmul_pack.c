/* test_matmul_pack.c - products with b packed once have the bits of products without; what does not fit is refused.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"
#include "twin/host.h"

static uint64_t rng = 3;
static trn_error error;

enum { M = 40, N = 90, K = 400 };
enum { TALL = 230, WIDE = 130, DEEP = 1100 }; /* of products that are cut into slabs */

typedef struct mode {
    const char *name, *numerics;
    trn_format format, dst;
    bool double_row, mx;
} mode;

static const mode modes[] = {
    { "bf16", "", TRN_BF16, TRN_F32, false, false },
    { "f32", "", TRN_F32, TRN_BF16, false, false },
    { "f32 as tf32", "fp32_mode=fp32r", TRN_F32, TRN_F32, false, false },
    { "f32 in halves", "fp32_mode=split", TRN_F32, TRN_F32, false, false },
    { "f16", "chains=8,merge=pairwise", TRN_F16, TRN_F32, false, false },
    { "e4m3", "chains=2,chain_layout=blocked", TRN_F8_E4M3, TRN_F32, false, false },
    { "pairs of e5m2", "", TRN_F8_E5M2, TRN_F32, true, false },
    { "mxfp8", "", TRN_F8_E4M3FN, TRN_F32, false, true },
    { "mxfp4", "", TRN_F4_E2M1, TRN_F32, false, true },
    { "truncating", "accumulator=toward_zero", TRN_BF16, TRN_F32, false, false },
    { "int8", "", TRN_I8, TRN_I32, false, false },
};
enum { MODES = sizeof modes / sizeof modes[0] };

/* Operands with room for the largest of them; the sizes of a round are smaller. */
static unsigned char a[TALL * DEEP * 2], b[WIDE * DEEP * 2], a_scale[M * K / 32 + M], b_scale[N * K / 32 + N];
static uint32_t plain[TALL * WIDE], packed_dst[TALL * WIDE];

static void fill(unsigned char *bytes, size_t count, trn_format format)
{
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)cases_u32(&rng);
    for (size_t i = 0; format == TRN_F4_E2M1 && i < count; i++) bytes[i] &= 15;
}

/* Scales about 1; far ones make products that are computed by definition. */
static void fill_scales(unsigned char *scale, size_t count, bool far)
{
    for (size_t i = 0; i < count; i++) scale[i] = (unsigned char)(120 + cases_below(&rng, 14));
    if (far) scale[0] = 3;
}

static trn_matmul_args ask_of(const mode *how, trn_numerics *numerics, int m, int n, int k, bool turned)
{
    trn_matmul_args args = { .generation = how->format == TRN_I8 ? TRN_TRAINIUM1 : TRN_GENERATION_DEFAULT,
                             .double_row = how->double_row,
                             .numerics = numerics,
                             .error = &error };
    args.dst = trn_tensor_2d(how->dst, plain, m, n);
    args.a = trn_tensor_2d(how->format, a, m, k);
    args.b = turned ? trn_tensor_transposed(trn_tensor_2d(how->format, b, n, k)) : trn_tensor_2d(how->format, b, k, n);
    if (how->mx) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, m, k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, n, k / 32);
    }
    if (trn_numerics_parse(numerics, how->numerics) != TRN_OK) fail_msg("%s is not numerics", how->numerics);
    return args;
}

/* With the packed bytes somewhere else, and b gone. */
static void ask_packed(trn_matmul_args args, const mode *how)
{
    const size_t bytes = trn_matmul_pack_bytes(&args);
    const size_t results = sizeof(uint32_t) * (size_t)args.dst.shape[0] * (size_t)args.dst.shape[1];
    assert_true(bytes > 0);
    unsigned char *first = malloc(bytes), *second = malloc(bytes);
    assert_true(first && second);
    if (trn_matmul_pack(&args, first, bytes) != TRN_OK) fail_msg("%s: %s", how->name, error.text);
    memcpy(second, first, bytes);
    free(first);
    if (trn_matmul(&args) != TRN_OK) fail_msg("%s: %s", how->name, error.text);
    args.packed = second;
    args.b.data = args.b_scale.data = NULL;
    args.dst.data = packed_dst;
    args.scratch_bytes = trn_matmul_scratch_bytes(&args);
    args.scratch = args.scratch_bytes ? malloc(args.scratch_bytes) : NULL;
    for (int threads = 1; threads <= 3; threads++) {
        with_threads(threads);
        args.scratch_bytes = trn_matmul_scratch_bytes(&args);
        args.scratch = realloc(args.scratch, args.scratch_bytes ? args.scratch_bytes : 1);
        memset(packed_dst, 0x5a, sizeof packed_dst);
        if (trn_matmul(&args) != TRN_OK) fail_msg("%s, packed: %s", how->name, error.text);
        if (memcmp(plain, packed_dst, args.dst.format == TRN_BF16 ? results / 2 : results) != 0)
            fail_msg("%s, %s: %d x %d x %d: other bits when packed", how->name, trn_isa_text(args.isa),
                     (int)args.dst.shape[0], (int)args.dst.shape[1], (int)args.a.shape[1]);
    }
    with_threads(1);
    free(args.scratch);
    free(second);
}

static void same_bits(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(12, 600); round++)
        for (int i = 0; i < MODES; i++) {
            trn_numerics numerics;
            const int m = cases_one_in(&rng, 4) ? 1 : 1 + cases_below(&rng, M - 1), n = 1 + cases_below(&rng, N - 1);
            const int k = modes[i].mx ? 32 * (1 + cases_below(&rng, 12)) : 1 + cases_below(&rng, K - 1);
            trn_matmul_args args = ask_of(&modes[i], &numerics, m, n, k, cases_one_in(&rng, 2));
            fill(a, M * K * 4, modes[i].format);
            fill(b, N * K * 4, modes[i].format);
            fill_scales(a_scale, sizeof a_scale, cases_one_in(&rng, 6));
            fill_scales(b_scale, sizeof b_scale, cases_one_in(&rng, 6));
            for (size_t isa = 0; isa < sizeof all_isas / sizeof all_isas[0]; isa++) {
                args.isa = all_isas[isa];
                if (trn_isa_supported(args.isa)) ask_packed(args, &modes[i]);
            }
        }
}

/* Numbers of BF16 between 1/16 and 2: pairs do all of it. */
static void fill_safe(unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t word = cases_u32(&rng);
        const uint16_t code = (uint16_t)((word >> 31 << 15) | (123 + (word >> 8) % 5) << 7 | (word & 127));
        memcpy(bytes + 2 * i, &code, sizeof code);
    }
}

/* Few rows take packed panels one by one, many in slabs of columns and of K: each from where it lies. */
static void words_of_every_cut(void **state)
{
    (void)state;
    static const mode how = { "bf16", "", TRN_BF16, TRN_F32, false, false };
    static const int rows[] = { 2, 33, 192, TALL }, columns[] = { 31, 96, WIDE }, depths[] = { 128, 300, DEEP };
    static const trn_isa units[] = { TRN_ISA_AVX512_BF16, TRN_ISA_PAIRS_EMULATED, TRN_ISA_AMX_EMULATED, TRN_ISA_AVX2 };
    fill_safe(a, TALL * DEEP);
    fill_safe(b, WIDE * DEEP);
    for (int i = 0; i < 4 * 3 * 3; i++)
        for (int u = 0; u < 4; u++) {
            trn_numerics numerics;
            const int m = rows[i % 4], n = columns[i / 4 % 3], k = depths[i / 12];
            trn_matmul_args args = ask_of(&how, &numerics, m, n, k, i % 2 == 0);
            trn_matmul_units count = { 0, 0, 0, 0, 0 };
            args.isa = units[u];
            args.units = &count;
            if (!trn_isa_supported(args.isa) || (u && m * n * k > 4000000)) continue; /* the emulators are slow */
            ask_packed(args, &how);
            assert_true((count.pairs > 0) == (u < 2));
        }
}

#define REFUSED(wanted, sentence)                                                                                      \
    do {                                                                                                               \
        assert_int_equal(trn_matmul(&args), wanted);                                                                   \
        if (!strstr(error.text, sentence)) fail_msg("%s", error.text);                                                 \
    } while (0)

static void refusals(void **state)
{
    (void)state;
    static int64_t memory[1 << 16];
    trn_numerics numerics;
    trn_matmul_args args = ask_of(&modes[0], &numerics, 8, 40, 130, false);
    const size_t bytes = trn_matmul_pack_bytes(&args);
    assert_true(bytes > 0 && bytes <= sizeof memory);
    memset(memory, 0x33, sizeof memory);
    assert_int_equal(trn_matmul_pack(&args, memory, bytes - 1), TRN_ENOSPC);
    assert_true(memory[0] == 0x3333333333333333);
    assert_int_equal(trn_matmul_pack(&args, NULL, bytes), TRN_EINVAL);
    assert_int_equal(trn_matmul_pack(&args, (char *)memory + 1, bytes), TRN_EINVAL);
    assert_int_equal(trn_matmul_pack(NULL, memory, bytes), TRN_EINVAL);
    assert_int_equal(trn_matmul_pack_bytes(NULL), 0);
    args.packed = memory;
    REFUSED(TRN_EINVAL, "these bytes are not from trn_matmul_pack");
    args.packed = NULL;
    assert_int_equal(trn_matmul_pack(&args, memory, bytes), TRN_OK);
    assert_true((unsigned char)((char *)memory)[bytes] == 0x33); /* nothing beyond */
    args.packed = memory;
    args.b = trn_tensor_2d(TRN_BF16, b, 130, 41);
    args.dst = trn_tensor_2d(TRN_F32, plain, 8, 41);
    REFUSED(TRN_ESHAPE, "packed holds bfloat16 [130, 40], but b is bfloat16 [130, 41]");
    args = ask_of(&modes[0], &numerics, 8, 40, 130, false);
    args.packed = memory;
    numerics.chains = 8;
    REFUSED(TRN_EINVAL, "other numerics");
    args.packed = (char *)memory + 4;
    REFUSED(TRN_EINVAL, "not aligned");
    args.packed = NULL;
    args.b.data = NULL;
    assert_int_equal(trn_matmul_pack(&args, memory, sizeof memory), TRN_EINVAL);
    args.b = trn_tensor_2d(TRN_U16, b, 130, 40);
    assert_int_equal(trn_matmul_pack(&args, memory, sizeof memory), TRN_EFORMAT);
    assert_int_equal(trn_matmul_pack_bytes(&args), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits), cmocka_unit_test(words_of_every_cut),
                                        cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

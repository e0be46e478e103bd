/* test_trnbench.c - the parts of bench/trnbench that have an answer: shapes, definition, cost layout, CSV and JSON.
 * SPDX-License-Identifier: MIT
 *
 * The program's files are compiled in here, so that a part can be asked without running the whole.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "app/cli.c"
#include "app/completion.c"
#include "app/suggest.c"
#include "app/files.c"
#include "app/table.c"
#include "bench/common/check.c"
#include "bench/trnbench/matmul/cost.c"
#include "bench/common/formats.c"
#include "bench/common/host.c"
#include "bench/trnbench/matmul/models.c"
#include "bench/common/peak.c"
#include "bench/common/measure.c"
#include "bench/peers/peers.c"
#include "bench/trnbench/matmul/rows.c"

#if HAVE_CJSON
#include <cjson/cJSON.h>

const char app_name[] = "trnbench";
#endif

/* ---- the models' shapes ---- */

/* All weights of the linear layers, whether a token wakes them or not. */
static double linear_weights(const char *name)
{
    tb_product product[TB_MAX_LAYERS];
    const int n = tb_model_products(tb_model_find(name), TB_PREFILL, 2048, product);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += product[i].weights;
    return sum;
}

/* Published parameter counts, less what is not a linear layer: the embedding (as large as lm_head), norms, biases.
 * Llama and Mixtral: the number of elements in the published checkpoints. gpt-oss: model card, 116.83 B. DeepSeek-V3:
 * technical report, 671 B. */
static void weights_add_up_to_the_published_counts(void **state)
{
    (void)state;
    const double llama_norms[3] = { 65 * 4096.0, 161 * 8192.0, 253 * 16384.0 };
    assert_true(linear_weights("llama3-8b") + 128256.0 * 4096 + llama_norms[0] == 8030261248.0);
    assert_true(linear_weights("llama3-70b") + 128256.0 * 8192 + llama_norms[1] == 70553706496.0);
    assert_true(linear_weights("llama3-405b") + 128256.0 * 16384 + llama_norms[2] == 405853388800.0);
    assert_true(linear_weights("mixtral-8x7b") + 32000.0 * 4096 + 65 * 4096.0 == 46702792704.0);

    const double attention_bias = 36.0 * (64 * 64 + 2 * 8 * 64 + 2880), sinks = 36.0 * 64, router_bias = 36.0 * 128;
    const double expert_bias = 36.0 * 128 * (5760 + 2880), norms = 73 * 2880.0;
    const double gpt_oss =
        linear_weights("gpt-oss-120b") + 201088.0 * 2880 + attention_bias + sinks + router_bias + expert_bias + norms;
    assert_true(gpt_oss > 116.825e9 && gpt_oss < 116.835e9);

    const double deepseek = linear_weights("deepseek-v3") + 129280.0 * 7168; /* norms and the router's bias: 1.5 M */
    assert_true(deepseek > 670.5e9 && deepseek < 671.5e9);
}

static const tb_product *layer_named(const tb_product *product, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(product[i].layer, name) == 0) return &product[i];
    fail_msg("there is no layer %s", name);
    return NULL;
}

static void tokens_are_routed_evenly(void **state)
{
    tb_product product[TB_MAX_LAYERS];
    (void)state;
    int n = tb_model_products(tb_model_find("mixtral-8x7b"), TB_PREFILL, 2048, product);
    const tb_product *expert = layer_named(product, n, "expert.gate_proj");
    assert_int_equal(expert->m, 512); /* 2048 tokens x 2 over 8 experts */
    assert_int_equal(expert->together, 8);
    assert_int_equal(expert->rounds, 32);
    assert_int_equal(layer_named(product, n, "lm_head")->m, 1);
    assert_int_equal(layer_named(product, n, "q_proj")->m, 2048);

    n = tb_model_products(tb_model_find("deepseek-v3"), TB_DECODE, 4, product);
    expert = layer_named(product, n, "expert.down_proj");
    assert_int_equal(expert->m, 1); /* 32 assignments wake 32 of 256 experts */
    assert_int_equal(expert->together, 32);
    assert_int_equal(layer_named(product, n, "lm_head")->m, 4);
    assert_int_equal(layer_named(product, n, "q_b_proj")->n, 24576);

    n = tb_model_products(tb_model_find("gpt-oss-120b"), TB_DECODE, 33, product);
    assert_int_equal(layer_named(product, n, "expert.gate_up_proj")->m, 2); /* 132 over 128: the busiest has two */
    assert_null(tb_model_find("gpt-2"));
}

/* ---- the slow definition ---- */

static const tb_format *format_named(const char *name)
{
    const tb_format *format = tb_format_find(name);
    if (!format) fail_msg("there is no format %s", name);
    return format;
}

static float defined(const trn_tensor *a, const trn_tensor *b, const trn_numerics *n)
{
    const trn_matmul_args args = { .a = *a, .b = *b, .numerics = n };
    uint32_t bits = 0;
    assert_true(tb_define(&args, 0, 0, &bits));
    return trn_decode(TRN_F32, bits);
}

static void the_definition_by_hand(void **state)
{
    float a[128], b[128];
    trn_numerics n = trn_numerics_default(TRN_GENERATION_DEFAULT);
    (void)state;
    for (int k = 0; k < 128; k++) a[k] = b[k] = 1;
    a[0] = 0x1p24f;
    const trn_tensor va = trn_tensor_2d(TRN_F32, a, 1, 128), vb = trn_tensor_2d(TRN_F32, b, 128, 1);
    assert_true(defined(&va, &vb, NULL) == 16777312.0f); /* chain 0 swallows its 31 ones, the other three hold 96 */
    n.chains = 1;
    assert_true(defined(&va, &vb, &n) == 16777216.0f);
    n.chains = 4;
    n.chain_layout = TRN_CHAINS_BLOCKED;
    assert_true(defined(&va, &vb, &n) == 16777312.0f);
    n.chain_layout = TRN_CHAINS_INTERLEAVED;
    n.k_tile = 64; /* first tile 2^24 + 48, then 64 more */
    assert_true(defined(&va, &vb, &n) == 16777328.0f);

    const trn_tensor none_a = trn_tensor_2d(TRN_F32, NULL, 1, 0), none_b = trn_tensor_2d(TRN_F32, NULL, 0, 1);
    const float none = defined(&none_a, &none_b, NULL);
    assert_true(none == 0 && !signbit(none));
}

/* Sums whose order or rounding shows: each by hand. */
static void the_definition_of_other_modes_by_hand(void **state)
{
    uint8_t x[256], w[256], scale_x[8], scale_w[8];
    float fx[2] = { 1.0f + 0x1p-23f, 0 }, fw[2] = { 1.0f + 0x1p-23f, 0 };
    trn_numerics n = trn_numerics_default(TRN_GENERATION_DEFAULT);
    uint32_t bits = 0;
    (void)state;
    /* Double rows, 256 deep: row 0 is numbers 0 and 128, 2^14 + 2^-8; row 4 takes the 2^14 away again. */
    for (int k = 0; k < 256; k++) x[k] = w[k] = 0;
    x[0] = w[0] = 0x70;       /* 128 */
    x[128] = w[128] = 0x18;   /* 2^-4 */
    x[4] = 0x70, w[4] = 0xf0; /* -2^14, in the same chain */
    trn_matmul_args pair = { .a = trn_tensor_2d(TRN_F8_E4M3, x, 1, 256),
                             .b = trn_tensor_2d(TRN_F8_E4M3, w, 256, 1),
                             .double_row = true };
    assert_true(tb_define(&pair, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 0x1p-8f);
    x[128] = w[128] = 0x03; /* 3 2^-9: 9 2^-18 beside 2^14 rounds to 0, pair by pair */
    assert_true(tb_define(&pair, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 0);
    x[128] = 0, x[1] = 0x03, w[1] = 0x03; /* number 1 is row 1, in a chain of its own */
    assert_true(tb_define(&pair, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 9 * 0x1p-18f);
    /* A short tail of 3: rows {0, 2}, {1, nothing}. */
    for (int k = 0; k < 3; k++) x[k] = w[k] = 0x38; /* 1 */
    pair.a = trn_tensor_2d(TRN_F8_E4M3, x, 1, 3), pair.b = trn_tensor_2d(TRN_F8_E4M3, w, 3, 1);
    assert_true(tb_define(&pair, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 3);

    /* MX: blocks of 32 ones under 2^3 x 2^-1 and 1 x 2^-127; a scale of ff is not a number. */
    for (int k = 0; k < 64; k++) x[k] = w[k] = 0x38;
    scale_x[0] = 130, scale_w[0] = 126, scale_x[1] = 127, scale_w[1] = 0;
    trn_matmul_args mx = { .a = trn_tensor_2d(TRN_F8_E4M3FN, x, 1, 64),
                           .b = trn_tensor_2d(TRN_F8_E4M3FN, w, 64, 1),
                           .a_scale = trn_tensor_2d(TRN_F8_E8M0, scale_x, 1, 2),
                           .b_scale = trn_tensor_2d(TRN_F8_E8M0, scale_w, 1, 2) };
    assert_true(tb_define(&mx, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 128);
    scale_x[0] = 0, scale_w[0] = 127; /* 32 + 32, times 2^-127 */
    assert_true(tb_define(&mx, 0, 0, &bits));
    assert_true(trn_decode(TRN_F32, bits) == 0x1p-121f);
    scale_x[1] = 255;
    assert_true(tb_define(&mx, 0, 0, &bits));
    assert_int_equal(bits, 0x7fc00000);

    /* F32 read as TF32 loses the last bit before the product; in halves nothing is lost but by the sums. */
    const trn_tensor a = trn_tensor_2d(TRN_F32, fx, 1, 1), b = trn_tensor_2d(TRN_F32, fw, 1, 1);
    n.fp32_mode = TRN_FP32_R;
    assert_true(defined(&a, &b, &n) == 1.0f);
    fx[0] = 1.0f + 0x1.8p-11f; /* above the tie between 1 and 1 + 2^-10 */
    assert_true(defined(&a, &b, &n) == 1.0f + 0x1p-10f);
    n.tf32_input = TRN_TF32_TRUNCATE;
    assert_true(defined(&a, &b, &n) == 1.0f);
    n.fp32_mode = TRN_FP32_SPLIT;
    fx[0] = fw[0] = 1.0f + 0x1p-23f;
    assert_true(defined(&a, &b, &n) == 1.0f + 0x1p-22f);

    /* BF16 PSUM: 256 + 1 rounds to 256 after the second tile, and again after the third. */
    n = trn_numerics_default(TRN_GENERATION_DEFAULT);
    n.psum_format = TRN_BF16;
    n.k_tile = 1;
    float steps[3] = { 256, 1, 1 }, ones[3] = { 1, 1, 1 };
    const trn_tensor sa = trn_tensor_2d(TRN_F32, steps, 1, 3), sb = trn_tensor_2d(TRN_F32, ones, 3, 1);
    assert_true(defined(&sa, &sb, &n) == 256);
    steps[1] = 1.5f, steps[2] = 0.5f; /* 257.5 to 258, which 258.5 is nearest to */
    assert_true(defined(&sa, &sb, &n) == 258);

    int8_t i8[256], j8[256];
    for (int k = 0; k < 256; k++) i8[k] = -128, j8[k] = 127;
    const trn_matmul_args int8 = { .a = trn_tensor_2d(TRN_I8, i8, 1, 256), .b = trn_tensor_2d(TRN_I8, j8, 256, 1) };
    assert_true(tb_define(&int8, 0, 0, &bits));
    assert_int_equal((int32_t)bits, -256 * 128 * 127);
}

/* 1 + 2^-8 times itself is 1 + 2^-7 + 2^-16: to BF16, a tie broken by the 2^-16. */
static void products_rounded_to_bf16(void **state)
{
    const struct {
        float x, w, product;
    } row[] = {
        { 1.5f, 1.5f, 2.25f },
        { 0x1.02p0f, 0x1.01p0f, 0x1.04p0f },
        { 0x1.01p0f, 0x1.02p0f, 0x1.04p0f },
        { 0x1.01p0f, 0x1.00p0f, 0x1.00p0f },
        { 0x1.03p0f, 0x1.00p0f, 0x1.04p0f },
        { -0x1.01p0f, 0x1.01p0f, -0x1.02p0f },
        { 0x1p-100f, 0x1p-33f, 0x1p-133f },
        { 0x1p-100f, 0x1.8p-34f, 0x1p-133f },
        { 0x1p-100f, 0x1p-34f, 0.0f },
        { 0x1.2p-67f, 0x1.ap-67f, 0x1p-133f },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (bf16_product(row[i].x, row[i].w) != row[i].product)
            fail_msg("%a * %a gave %a", (double)row[i].x, (double)row[i].w, (double)bf16_product(row[i].x, row[i].w));
}

enum { M = 11, N = 9, K = 300 };

static tb_check run_and_check(const char *format, const char *numerics, bool spoil)
{
    const bool mx = strncmp(format, "mx", 2) == 0;
    const int k = mx ? 1056 : K; /* two tiles of 512 and a block */
    float *x = malloc(sizeof *x * (size_t)(M * k)), *y = malloc(sizeof *y * (size_t)(k * N));
    uint32_t c[M * N];
    trn_numerics user, n;
    trn_error error;
    tb_operands made;
    tb_fill_wide(x, M * k, 5, 1);
    tb_fill_wide(y, k * N, 5, 2);
    const trn_tensor a = trn_tensor_2d(TRN_F32, x, M, k), b = trn_tensor_transposed(trn_tensor_2d(TRN_F32, y, N, k));
    assert_int_equal(trn_numerics_parse(&user, numerics), TRN_OK);
    assert_int_equal(tb_format_numerics(format_named(format), &user, &n), TRN_OK);
    if (!tb_operands_make(format_named(format), &a, &b, &made, &error)) fail_msg("%s", error.text);
    trn_matmul_args args = tb_operands_product(format_named(format), &made, c, &n);
    args.error = &error;
    if (trn_matmul(&args) != TRN_OK) fail_msg("%s: %s", format, error.text);
    if (spoil) c[5 * N + 7] ^= 1;
    const tb_check check = tb_check_product(&args, 1, 1000);
    tb_operands_free(&made);
    free(x);
    free(y);
    return check;
}

static void the_library_agrees_in_every_order(void **state)
{
    static const char *const numerics[] = { "trn2",
                                            "single_chain",
                                            "chains=2",
                                            "chains=8,merge=pairwise",
                                            "chains=16",
                                            "chains=4,chain_layout=blocked",
                                            "chains=8,chain_layout=blocked,k_tile=100",
                                            "k_tile=32,merge=pairwise" };
    (void)state;
    for (size_t i = 0; i < sizeof numerics / sizeof numerics[0]; i++)
        for (int f = 0; tb_format_at(f); f++) {
            const char *const name = tb_format_at(f)->name;
            if (strncmp(name, "mx", 2) == 0 && strstr(numerics[i], "k_tile=100")) continue; /* not whole blocks */
            const tb_check check = run_and_check(name, numerics[i], false);
            if (!check.defined) fail_msg("%s in %s is not covered", name, numerics[i]);
            assert_int_equal(check.compared, M * N);
            if (check.wrong) fail_msg("%s %s: %lld wrong", numerics[i], name, (long long)check.wrong);
        }
    assert_int_equal(run_and_check("bf16", "product=bf16", false).wrong, 0);
    assert_int_equal(run_and_check("f16", "product=bf16,chains=1", false).wrong, 0);
    assert_int_equal(run_and_check("fp32r", "tf32_input=truncate", false).wrong, 0);
}

/* One bit of one output, and the check must see it and say where. */
static void a_wrong_bit_is_found(void **state)
{
    (void)state;
    for (int f = 0; tb_format_at(f); f++) {
        const tb_check check = run_and_check(tb_format_at(f)->name, "trn2", true);
        assert_int_equal(check.wrong, 1);
        assert_int_equal(check.row, 5);
        assert_int_equal(check.column, 7);
        assert_int_equal(check.got ^ check.expected, 1);
    }
}

static void what_is_not_covered_is_said(void **state)
{
    (void)state;
    assert_false(run_and_check("bf16", "accumulator=exact", false).defined);
    assert_false(run_and_check("f32", "product=bf16", false).defined);
    assert_false(run_and_check("mxfp8", "group=exact", false).defined);
    assert_false(run_and_check("e4m3-double", "product=bf16", false).defined);
    assert_true(run_and_check("e4m3", "group=exact", false).defined);
    assert_int_equal(run_and_check("bf16", "flush_sums=on", false).compared, 0);
}

static void formats_by_name(void **state)
{
    static const struct {
        const char *asked, *found;
    } row[] = { { "bf16", "bf16" },
                { "bfloat16", "bf16" },
                { "BF16", "bf16" },
                { "fp32", "f32" },
                { "float32", "f32" },
                { "fp16", "f16" },
                { "float8_e4m3", "e4m3-double" },
                { "F8_E4M3", "mxfp8" },
                { "float8_e4m3fn", "mxfp8" },
                { "float8_e5m2", "mxfp8-e5m2" },
                { "float8_e3m4", "e3m4" },
                { "F4", "mxfp4" },
                { "int8", "int8" },
                { "cfp8", "cfp8" },
                { "fp32-split", "f32-split" } };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        assert_string_equal(format_named(row[i].asked)->name, row[i].found);
    assert_null(tb_format_find("fp12"));
    assert_null(tb_format_find("float8_e8m0fnu"));
    assert_null(tb_format_at(-1));
    for (int f = 0; tb_format_at(f); f++) {
        assert_int_equal(tb_format_index(tb_format_at(f)), f);
        assert_ptr_equal(tb_format_find(tb_format_at(f)->name), tb_format_at(f));
        assert_true(f < TB_MAX_FORMATS);
    }
}

static void random_numbers_are_a_function_of_their_place(void **state)
{
    float x[7], y[100];
    (void)state;
    tb_fill_random(x, 7, 3, 4);
    tb_fill_random(y, 100, 3, 4);
    assert_memory_equal(x, y, sizeof x);
    for (int i = 0; i < 100; i++) {
        assert_true(y[i] >= -1 && y[i] < 1);
        assert_true(y[i] == (float)(int32_t)(trn_random_u32(3, 4, (uint64_t)i) & 0xffffff00u) * 0x1p-31f);
    }
}

static void slices_stay_within_their_bounds(void **state)
{
    static const int64_t shape[][3] = { { 1, 128256, 4096 }, { 2048, 53248, 16384 }, { 16384, 16384, 16384 },
                                        { 1, 1, 1 },         { 1 << 20, 1, 64 },     { 1, 1, 1 << 30 },
                                        { 3, 5, 7 } };
    (void)state;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (double flops = 0x1p21; flops <= 0x1p38; flops *= 8) {
            const tb_slice s = tb_host_slice(shape[i][0], shape[i][1], shape[i][2], flops);
            const double elements = (double)(s.m > s.n ? s.m : s.n) * (double)s.k;
            assert_int_equal(s.k, shape[i][2]);
            assert_true(s.m >= 1 && s.m <= shape[i][0] && s.n >= 1 && s.n <= shape[i][1]);
            assert_true(s.m * s.n == 1 ||
                        (2.0 * (double)s.m * (double)s.n * (double)s.k <= flops && elements <= 0x1p26));
        }
    const tb_slice whole = tb_host_slice(300, 200, 100, 0x1p35);
    assert_true(whole.m == 300 && whole.n == 200);
}

/* ---- who works on what ---- */

/* The virtual chips of one core must cost what the real chips do. */
static void groups_cost_what_their_cores_do(void **state)
{
    const tb_product p = { "x", 4096, 4096, 4096, 1, 1, 4096.0 * 4096 };
    (void)state;
    for (int s = 0; s <= TRN_TRN3_GEN2_ULTRASERVER; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        const trn_matmul_cost_args args = { .system = spec, .m = p.m, .n = p.n, .k = p.k, .a_format = TRN_BF16 };
        trn_system_cost direct;
        const tb_cost ours = tb_cost_product(&p, format_named("bf16"), spec, TB_SHARE_SYSTEM);
        assert_int_equal(trn_matmul_system_cost(&args, &direct), TRN_OK);
        assert_true(fabs(ours.time_s / direct.time_s - 1) < 1e-12);
        assert_true(fabs(ours.tflops / direct.tflops - 1) < 1e-12);
        assert_true(fabs(ours.share_of_spec / direct.fraction_of_spec - 1) < 1e-12);
        assert_int_equal(ours.limit, direct.core.limit);
    }
}

static void shares_partition_the_system(void **state)
{
    const tb_product p = { "x", 2048, 8192, 8192, 3, 1, 8192.0 * 8192 };
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        for (int share = 0; share < TB_SHARES; share++) {
            const tb_cost c = tb_cost_product(&p, format_named("f32"), spec, (tb_share)share);
            assert_true(c.there);
            assert_true(c.groups * c.group_cores == trn_spec_totals_of(spec).cores);
            assert_true(c.flops == 3 * 2.0 * 2048 * 8192 * 8192);
            assert_true(c.share_of_spec > 0 && c.share_of_spec < 1);
        }
    }
    const tb_cost rainier =
        tb_cost_product(&p, format_named("bf16"), trn_system_spec_of(TRN_PROJECT_RAINIER), TB_SHARE_DOMAIN);
    assert_true(rainier.group_cores == 512 && rainier.groups == 6250);
}

static void experts_share_the_cores(void **state)
{
    const tb_product one = { "x", 64, 2048, 7168, 1, 1, 0 }, eight = { "x", 64, 2048, 7168, 1, 8, 0 };
    const tb_product many = { "x", 64, 2048, 7168, 1, 24, 0 };
    const trn_system_spec *chip = trn_system_spec_of(TRN_TRN2_48XLARGE);
    (void)state;
    const tb_cost alone = tb_cost_product(&one, format_named("bf16"), chip, TB_SHARE_CORE);
    const tb_cost each_a_core =
        tb_cost_product(&eight, format_named("bf16"), chip, TB_SHARE_CHIP); /* 8 cores, 8 experts */
    const tb_cost in_turn =
        tb_cost_product(&many, format_named("bf16"), chip, TB_SHARE_CHIP); /* 24 experts: three turns */
    assert_true(fabs(each_a_core.time_s / alone.time_s - 1) < 1e-12);
    assert_true(fabs(in_turn.time_s / (3 * alone.time_s) - 1) < 1e-12);
    assert_true(in_turn.flops == 24 * alone.flops);
}

static void a_total_is_the_sum_of_its_parts(void **state)
{
    tb_product product[TB_MAX_LAYERS];
    tb_cost part[TB_MAX_LAYERS];
    const trn_system_spec *spec = trn_system_spec_of(TRN_TRN2_48XLARGE);
    const int n = tb_model_products(tb_model_find("llama3-8b"), TB_PREFILL, 2048, product);
    double time = 0, flops = 0;
    (void)state;
    for (int i = 0; i < n; i++) {
        part[i] = tb_cost_product(&product[i], format_named("bf16"), spec, TB_SHARE_DOMAIN);
        time += part[i].time_s, flops += part[i].flops;
    }
    const tb_cost total = tb_cost_total(part, n, product, format_named("bf16"), spec, TB_SHARE_DOMAIN);
    assert_true(total.time_s == time && total.flops == flops);
    assert_true(fabs(total.tflops - flops / time / 1e12) < 1e-9 * total.tflops);
    assert_true(total.fits);
    assert_false(tb_cost_product(&product[0], format_named("mxfp8"), spec, TB_SHARE_DOMAIN).there);
    const int d = tb_model_products(tb_model_find("deepseek-v3"), TB_DECODE, 1, product);
    for (int i = 0; i < d; i++) part[i] = tb_cost_product(&product[i], format_named("bf16"), spec, TB_SHARE_CHIP);
    assert_false(
        tb_cost_total(part, d, product, format_named("bf16"), spec, TB_SHARE_CHIP).fits); /* 1.3 TB in 96 GiB */
}

/* ---- CSV and JSON ---- */

static char *printed(void (*print)(FILE *, const void *), const void *context)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(out, context);
    fclose(out);
    return text;
}

static const app_column some_columns[] = { { "name", APP_TEXT, "", "" },
                                           { "count", APP_INTEGER, "", "" },
                                           { "rate", APP_REAL, "", "" } };

static void fill_some(app_table *t)
{
    app_table_start(t, some_columns, 3);
    app_row(t), app_text(t, "plain"), app_integer(t, -7), app_real(t, 0.1);
    app_row(t), app_text(t, "a \"quoted\", one\n\t\x01"), app_integer(t, INT64_MAX), app_real(t, 1e300);
    app_row(t), app_text(t, "%s", ""), app_missing(t), app_real(t, NAN);
    app_row(t), app_text(t, "third"), app_integer(t, 0), app_real(t, 1.0 / 3);
}

static void csv_is_quoted(void **state)
{
    app_table t;
    (void)state;
    fill_some(&t);
    char *text = printed((void (*)(FILE *, const void *))(void (*)(void))app_print_csv, &t);
    assert_string_equal(text, "name,count,rate\n"
                              "plain,-7,0.1\n"
                              "\"a \"\"quoted\"\", one\\n\\t\\x01\",9223372036854775807,1e+300\n"
                              ",,\n"
                              "third,0,0.3333333333333333\n");
    free(text);
    app_table_free(&t);
}

static void people_read_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } row[] = {
        { 0, "0" },
        { 0.04217, "0.042" },
        { 1.234, "1.23" },
        { 12.34, "12.3" },
        { 123.4, "123" },
        { 1299, "1,299" },
        { 266800000, "266,800,000" },
        { -1234567, "-1,234,567" },
        { 0.0001, "1.0e-04" },
        { 999.9, "1,000" },
    };
    char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        assert_string_equal(app_human(text, sizeof text, row[i].value), row[i].text);
}

/* Two products, two formats, every system, nothing run on the host. */
static void plan_job(tb_job *job)
{
    memset(job, 0, sizeof *job);
    job->formats = 2, job->format[0] = format_named("bf16"), job->format[1] = format_named("mxfp8");
    job->works = 1;
    strcpy(job->work[0].name, "a \"name\", with marks");
    job->work[0].phase = "";
    job->work[0].products = 2;
    job->work[0].product[0] = (tb_product){ "x", 64, 128, 256, 1, 1, 128.0 * 256 };
    job->work[0].product[1] = (tb_product){ "y", 1, 128, 256, 2, 1, 128.0 * 256 };
    job->item = calloc(4, sizeof *job->item);
    for (int p = 0; p < 2; p++)
        for (int f = 0; f < 2; f++) {
            tb_item *item = &job->item[job->items++];
            item->product = p;
            item->format = job->format[f];
            for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
                job->system[s] = true;
                item->cost[s] = tb_cost_product(&job->work[0].product[p], item->format,
                                                trn_system_spec_of((trn_system)s), job->share);
            }
        }
}

static void csv_has_one_row_a_tuple(void **state)
{
    tb_job job;
    int lines = 0;
    (void)state;
    plan_job(&job);
    char *text = printed(tb_print_matmul_csv, &job);
    for (const char *at = text; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 1 + 2 * 2 * TRN_SYSTEM_COUNT);
    assert_true(strncmp(text, "work,phase,layer,m,n,k,", 23) == 0);
    free(text);
    free(job.item);
}

#if HAVE_CJSON
static void print_some_json(FILE *out, const void *table) { app_print_json_rows(out, table, 0); }

static void json_reads_back(void **state)
{
    app_table t;
    (void)state;
    fill_some(&t);
    char *text = printed(print_some_json, &t);
    cJSON *rows = cJSON_Parse(text);
    assert_non_null(rows);
    assert_int_equal(cJSON_GetArraySize(rows), 4);
    const cJSON *second = cJSON_GetArrayItem(rows, 1), *third = cJSON_GetArrayItem(rows, 2),
                *fourth = cJSON_GetArrayItem(rows, 3);
    assert_string_equal(cJSON_GetObjectItem(second, "name")->valuestring, "a \"quoted\", one\n\t\x01");
    assert_true(cJSON_GetObjectItem(second, "rate")->valuedouble == 1e300);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(third, "count")) && cJSON_IsNull(cJSON_GetObjectItem(third, "rate")));
    assert_true(cJSON_GetObjectItem(fourth, "rate")->valuedouble == 1.0 / 3);
    cJSON_Delete(rows);
    free(text);
    app_table_free(&t);
}

static void the_whole_json_reads_back(void **state)
{
    tb_job job;
    (void)state;
    plan_job(&job);
    char *text = printed(tb_print_matmul_json, &job);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    assert_string_equal(cJSON_GetObjectItem(root, "schema")->valuestring, "trnbench.matmul");
    const cJSON *results = cJSON_GetObjectItem(root, "results");
    assert_int_equal(cJSON_GetArraySize(results), 2 * 2 * TRN_SYSTEM_COUNT);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "totals")), 2 * TRN_SYSTEM_COUNT);
    const cJSON *row;
    cJSON_ArrayForEach(row, results) {
        const bool fp8 = !strcmp(cJSON_GetObjectItem(row, "format")->valuestring, "mxfp8");
        const bool trainium3 = !strncmp(cJSON_GetObjectItem(row, "system")->valuestring, "trn3", 4);
        assert_int_equal(cJSON_GetArraySize(row), sizeof tidy_columns / sizeof tidy_columns[0]);
        assert_string_equal(cJSON_GetObjectItem(row, "work")->valuestring, "a \"name\", with marks");
        assert_int_equal(cJSON_IsNull(cJSON_GetObjectItem(row, "model_tflops")), fp8 && !trainium3);
        assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "host_gflops")));
    }
    cJSON_Delete(root);
    free(text);
    free(job.item);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_add_up_to_the_published_counts),
        cmocka_unit_test(tokens_are_routed_evenly),
        cmocka_unit_test(the_definition_by_hand),
        cmocka_unit_test(the_definition_of_other_modes_by_hand),
        cmocka_unit_test(formats_by_name),
        cmocka_unit_test(products_rounded_to_bf16),
        cmocka_unit_test(the_library_agrees_in_every_order),
        cmocka_unit_test(a_wrong_bit_is_found),
        cmocka_unit_test(what_is_not_covered_is_said),
        cmocka_unit_test(random_numbers_are_a_function_of_their_place),
        cmocka_unit_test(slices_stay_within_their_bounds),
        cmocka_unit_test(groups_cost_what_their_cores_do),
        cmocka_unit_test(shares_partition_the_system),
        cmocka_unit_test(experts_share_the_cores),
        cmocka_unit_test(a_total_is_the_sum_of_its_parts),
        cmocka_unit_test(csv_is_quoted),
        cmocka_unit_test(people_read_numbers),
        cmocka_unit_test(csv_has_one_row_a_tuple),
#if HAVE_CJSON
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(the_whole_json_reads_back),
#else
        { "json: skipped, cJSON is not installed", NULL, NULL, NULL, NULL },
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

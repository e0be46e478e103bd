/* devices.c - what the tensor engines of real devices printed, with the default numerics.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/devices.h"

/* ---- K in tiles of 128 or of 64: .about the set-up, .of the format, .at the generator ---- */

static void ktile(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = ktile_difference(v->about, (trn_format)v->of, ktile_generators[v->at], NULL);
    a->cases = (int64_t)((const ktile_setup *)v->about)->rows * KTILE_N;
}

/* The same with a model that the devices contradict. */
static void ktile_single_chain(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = ktile_difference(v->about, TRN_F32, ktile_generators[v->at], "single_chain") * 0x1p16;
    a->cases = (int64_t)((const ktile_setup *)v->about)->rows * KTILE_N;
}

/* ---- 128 x 128 x 128: .about the numerics ---- */

static void error_of_128(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static float x[RANDN_SIDE * RANDN_SIDE], y[RANDN_SIDE * RANDN_SIDE];
    static bool drawn;
    twister t;
    (void)o;
    if (!drawn) {
        twister_seed(&t, 0);
        twister_normal(&t, x, RANDN_SIDE * RANDN_SIDE);
        twister_normal(&t, y, RANDN_SIDE * RANDN_SIDE);
        drawn = true;
    }
    a->got = randn_error(x, y, v->about);
    a->cases = RANDN_SIDE * RANDN_SIDE;
}

/* ---- the rest ---- */

static void e4m3(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    for (int i = 0; i < E4M3_ON_TRN2; i++) {
        const uint32_t got = e4m3_times_one(e4m3_on_trn2[i].code);
        cf_count(a, got == e4m3_on_trn2[i].bits, "%02x times 1 is %08x", e4m3_on_trn2[i].code, (unsigned)got);
    }
}

static void transpose(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    const int wrong = device_transpose_wrong(v->about);
    if (wrong < 0)
        cf_fail(a, "nc_transpose is refused");
    else
        a->got = wrong;
    a->cases = RANDN_SIDE * RANDN_SIDE;
}

static void halves(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { RUNS = 256 };
    static uint16_t sum[RUNS];
    (void)o;
    if (!device_halves(v->of ? TRN_STOCHASTIC : TRN_NEAREST_EVEN, sum, RUNS)) {
        cf_fail(a, "trn_matmul is refused");
        return;
    }
    for (int i = 0; i < RUNS; i++) a->got += (double)trn_f16_to_f32(sum[i]) / RUNS;
    a->cases = RUNS;
}

/* 2^24 and 127 ones, times ones, in BF16: what a sum keeps tells how many chains there are. */
static void ones_beyond_24_bits(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    uint16_t x[128], one[128];
    float sum = 0;
    trn_numerics n;
    (void)o;
    for (int k = 0; k < 128; k++) x[k] = one[k] = trn_bf16_from_f32(1.0f);
    x[0] = trn_bf16_from_f32(0x1p24f);
    const trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, &sum, 1, 1),
                                   .a = trn_tensor_2d(TRN_BF16, x, 1, 128),
                                   .b = trn_tensor_2d(TRN_BF16, one, 128, 1),
                                   .numerics = &n };
    if (trn_numerics_parse(&n, v->about) != TRN_OK || trn_matmul(&args) != TRN_OK)
        cf_fail(a, "trn_matmul is refused");
    else
        a->got = (double)sum;
}

/* ---- the vectors ---- */

static const char samples[] = "nki-samples, contributed/batch_invariance", third[] = "a third party, run on the device",
                  order[] = "by the order of additions (rejected by the devices)",
                  chains[] = "by the definition of chains";

static const cf_vector vectors[] = {
    { .id = "device.ktile.inf2.nc_matmul.float32",
      .what = "Inf2, K = 512 in tiles of 128 or 64, FP32: largest difference",
      CF_EXACTLY(0x1p-14),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_a,
      .of = TRN_F32 },
    { .id = "device.ktile.inf2.nc_matmul.float32.torch",
      .what = "the same with PyTorch's linspace",
      CF_EXACTLY(0x1p-14),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_a,
      .of = TRN_F32,
      .at = 1 },
    { .id = "device.ktile.inf2.nl_matmul.float32",
      .what = "Inf2, A row by row, FP32: largest difference",
      CF_EXACTLY(3 * 0x1p-16),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_b,
      .of = TRN_F32 },
    { .id = "device.ktile.inf2.nl_matmul.float32.torch",
      .what = "the same with PyTorch's linspace, which moves it a little",
      CF_WITHIN(3 * 0x1p-16, 3 * 0x1p-16, 3.25 * 0x1p-16),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_b,
      .of = TRN_F32,
      .at = 1 },
    { .id = "device.ktile.trn2.nc_matmul.float32",
      .what = "Trn2, M = N = K = 512, FP32: largest difference",
      CF_EXACTLY(0x1p-14),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_c,
      .of = TRN_F32 },
    { .id = "device.ktile.trn2.nc_matmul.float32.torch",
      .what = "the same with PyTorch's linspace",
      CF_EXACTLY(0x1p-14),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_c,
      .of = TRN_F32,
      .at = 1 },
    { .id = "device.ktile.inf2.nc_matmul.bfloat16",
      .what = "Inf2, BF16 in and out: largest difference",
      CF_EXACTLY(0),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_a,
      .of = TRN_BF16 },
    { .id = "device.ktile.inf2.nl_matmul.bfloat16",
      .what = "Inf2, A row by row, BF16 in and out",
      CF_EXACTLY(0.0078125),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_b,
      .of = TRN_BF16 },
    { .id = "device.ktile.trn2.nc_matmul.bfloat16",
      .what = "Trn2, BF16 in and out: largest difference",
      CF_EXACTLY(0),
      .kind = CF_MEASURED,
      .source = samples,
      .test = ktile,
      .about = &ktile_c,
      .of = TRN_BF16 },
    { .id = "device.ktile.single_chain.a",
      .what = "one long chain would give, in 2^-16 (the devices: 4)",
      CF_EXACTLY(11),
      .kind = CF_CALCULATED,
      .source = order,
      .test = ktile_single_chain,
      .about = &ktile_a },
    { .id = "device.ktile.single_chain.b",
      .what = "one long chain would give, in 2^-16 (the devices: 3)",
      CF_EXACTLY(5.25),
      .kind = CF_CALCULATED,
      .source = order,
      .test = ktile_single_chain,
      .about = &ktile_b },
    { .id = "device.ktile.single_chain.c",
      .what = "one long chain would give, in 2^-16 (the devices: 4)",
      CF_EXACTLY(12),
      .kind = CF_CALCULATED,
      .source = order,
      .test = ktile_single_chain,
      .about = &ktile_c },
    { .id = "device.error128.trn1",
      .what = "Trn1, 128x128x128 in FP32, torch.randn of seed 0: error over largest result",
      CF_WITHIN(1.6e-7, 1.4e-7, 1.8e-7),
      .kind = CF_MEASURED,
      .source = third,
      .test = error_of_128,
      .about = "" },
    { .id = "device.error128.split",
      .what = "the same with operands split into high and low halves",
      CF_WITHIN(1.6e-7, 1.4e-7, 1.8e-7),
      .kind = CF_MEASURED,
      .source = third,
      .test = error_of_128,
      .about = "fp32_mode=split" },
    { .id = "device.error128.single_chain",
      .what = "one long chain would give",
      CF_ABOUT(4.0e-7, 0.2e-7),
      .kind = CF_CALCULATED,
      .source = order,
      .test = error_of_128,
      .about = "single_chain" },
    { .id = "device.error128.two_chains",
      .what = "two chains would give",
      CF_ABOUT(2.4e-7, 0.2e-7),
      .kind = CF_CALCULATED,
      .source = order,
      .test = error_of_128,
      .about = "chains=2" },
    { .id = "device.e4m3.trn2",
      .what = "E4M3 codes 77, 78, 79 times 1: 240, infinity, NaN",
      CF_NONE_WRONG,
      .kind = CF_MEASURED,
      .source = third,
      .test = e4m3 },
    { .id = "device.halves.nearest",
      .what = "1024 + 2048 times 0.5 in FP16 by products, nearest even",
      CF_EXACTLY(1024),
      .kind = CF_MEASURED,
      .source = "Neuron, rounding modes",
      .test = halves },
    { .id = "device.halves.stochastic",
      .what = "the same, stochastic: mean of 256 runs",
      CF_ABOUT(2048, 6),
      .kind = CF_CALCULATED,
      .source = "fair coins",
      .test = halves,
      .of = 1 },
    { .id = "device.chains.four",
      .what = "2^24 and 127 ones in BF16: four chains keep 96 of them",
      CF_EXACTLY(16777312),
      .kind = CF_CALCULATED,
      .source = chains,
      .test = ones_beyond_24_bits,
      .about = "" },
    { .id = "device.chains.one",
      .what = "one chain keeps none",
      CF_EXACTLY(16777216),
      .kind = CF_CALCULATED,
      .source = chains,
      .test = ones_beyond_24_bits,
      .about = "single_chain" },
};

void cf_fill_devices(cf_list *list)
{
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
    for (int i = 0; i < DEVICE_TRANSPOSES; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "device.transpose.%s", device_transposes[i].name),
                                  .what = "128x128 transposed, exponents within 100 of 0: bits that change",
                                  CF_NONE_WRONG,
                                  .kind = CF_MEASURED,
                                  .source = "third parties' probes; Trainium2 guide for NKI",
                                  .test = transpose,
                                  .about = &device_transposes[i] });
    cf_fill_claims(list);
}

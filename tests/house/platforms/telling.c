/* telling.c - a small program whose answers would differ if a platform computed, printed or counted differently.
 * SPDX-License-Identifier: MIT
 *
 *     telling        prints "<what> <hash>" for each part, then "digest <hash>", then "ran <instruction set>"
 *
 * platforms.sh builds it for each platform and compares what it prints with what it prints here. All inputs are codes
 * made of integers. C11, C++17 and C++20. (tests/digest/digest.c asks for more, and takes longer.)
 */
#include <stdio.h>
#include <trnmath/trnmath.h>

/* ---- the hash: FNV-1a ---- */

static uint64_t hash, total = 0xcbf29ce484222325u;

static uint64_t hashed(uint64_t so_far, const void *data, size_t size)
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) so_far = (so_far ^ byte[i]) * 0x100000001b3u;
    return so_far;
}

static void add(const void *data, size_t size) { hash = hashed(hash, data, size); }
static void add_int(int64_t value) { add(&value, sizeof value); }
static void add_text(const char *text) { add(text, strlen(text)); }

static void start(void) { hash = 0xcbf29ce484222325u; }

static bool must(trn_status status, const trn_error *error)
{
    if (status != TRN_OK) fprintf(stderr, "telling: %s\n", error->text);
    return status == TRN_OK;
}

static void tell(const char *what)
{
    printf("%s %016llx\n", what, (unsigned long long)hash);
    total = hashed(total, &hash, sizeof hash);
}

/* ---- the parts ---- */

/* Every code of 8 and 16 bits, and 65536 floats, into every format and rounding mode. */
static bool conversions(void)
{
    static const trn_format formats[] = { TRN_F32,       TRN_TF32,    TRN_BF16,    TRN_F16,     TRN_F8_E4M3,
                                          TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4, TRN_F8_E8M0, TRN_F6_E2M3,
                                          TRN_F6_E3M2,   TRN_F4_E2M1, TRN_I8,      TRN_I16,     TRN_U32 };
    enum { FORMATS = sizeof formats / sizeof formats[0], CODES = 65536 };
    static uint32_t source[CODES], target[CODES];
    start();
    for (int s = 0; s < FORMATS; s++) {
        const size_t bytes = trn_format_bytes(formats[s]);
        const int bits = trn_format_bits(formats[s]), codes = bits < 16 ? 1 << bits : CODES;
        for (int i = 0; i < codes; i++) {
            uint32_t code = (uint32_t)i;
            if (bits > 16) code = code * 0x9e3779b1u & (formats[s] == TRN_TF32 ? 0xffffe000u : 0xffffffffu);
            memcpy((char *)source + (size_t)i * bytes, &code, bytes);
        }
        for (int d = 0; d < FORMATS; d++) {
            trn_convert_args a;
            trn_error error;
            memset(&a, 0, sizeof a);
            a.error = &error;
            a.src = trn_tensor_1d(formats[s], source, codes);
            a.dst = trn_tensor_1d(formats[d], target, codes);
            a.rounding = (trn_rounding)((s + d) % 6);
            a.overflow = d & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
            a.seed = 7;
            memset(target, 0, sizeof target);
            if (!must(trn_convert(&a), &error)) return false;
            add(target, (size_t)codes * trn_format_bytes(formats[d]));
        }
    }
    tell("conversions");
    return true;
}

enum { M = 33, N = 29, K = 421 };
static uint8_t codes_a[M * K], codes_b[K * N];
static float sums[M * N];

/* A product whose lengths no vector divides, in two orders of sums, which round apart; FP8 and BF16. */
static bool products(void)
{
    static uint16_t wide[K * N];
    trn_numerics one_chain = trn_numerics_default(TRN_TRAINIUM2);
    one_chain.chains = 1;
    start();
    for (int i = 0; i < M * K; i++) codes_a[i] = (uint8_t)((uint32_t)i * 2654435761u >> 13 & 0xbfu); /* both signs, */
    for (int i = 0; i < K * N; i++) codes_b[i] = (uint8_t)((uint32_t)i * 2246822519u >> 11 & 0xbfu); /* below 2 */
    for (int i = 0; i < K * N; i++) wide[i] = (uint16_t)(0x3c00u | ((uint32_t)i * 3266489917u >> 9 & 0x83ffu));
    for (int variant = 0; variant < 3; variant++) {
        trn_matmul_args a;
        trn_error error;
        memset(&a, 0, sizeof a);
        a.error = &error;
        a.a = trn_tensor_2d(TRN_F8_E4M3, codes_a, M, K);
        a.b = variant < 2 ? trn_tensor_2d(TRN_BF16, wide, K, N) : trn_tensor_2d(TRN_F8_E4M3, codes_b, K, N);
        a.dst = trn_tensor_2d(TRN_F32, sums, M, N);
        a.double_row = variant == 2;
        a.numerics = variant == 1 ? &one_chain : NULL;
        if (!must(trn_matmul(&a), &error)) return false;
        add(sums, sizeof sums);
    }
    tell("products");
    return true;
}

/* Every BF16 code through the Scalar engine's tables. */
static bool activations(void)
{
    static const trn_act functions[] = { TRN_ACT_EXP, TRN_ACT_GELU, TRN_ACT_TANH, TRN_ACT_SIN, TRN_ACT_RSQRT };
    static uint16_t x[65536];
    static float y[65536];
    start();
    for (int i = 0; i < 65536; i++) x[i] = (uint16_t)i;
    for (int f = 0; f < 5; f++) {
        trn_activation_args a;
        trn_error error;
        memset(&a, 0, sizeof a);
        a.error = &error;
        a.src = trn_tensor_2d(TRN_BF16, x, 128, 512);
        a.dst = trn_tensor_2d(TRN_F32, y, 128, 512);
        a.op = functions[f];
        a.scale = 0.75f;
        if (!must(trn_activation(&a), &error)) return false;
        add(y, sizeof y);
    }
    tell("activations");
    return true;
}

enum { RANKS = 16, LENGTH = 301 };

/* What 16 chips hold after an all-reduce by three algorithms, and what collectives cost, in picoseconds. */
static bool collectives(void)
{
    static uint16_t values[RANKS][LENGTH];
    static const trn_algorithm algorithms[] = { TRN_RING, TRN_RECURSIVE_DOUBLING, TRN_MESH };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE), large = trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER);
    trn_tensor view[RANKS];
    start();
    for (int i = 0; i < 3; i++) {
        trn_collective_args a;
        trn_error error;
        memset(&a, 0, sizeof a);
        a.error = &error;
        for (int r = 0; r < RANKS; r++) {
            for (int e = 0; e < LENGTH; e++)
                values[r][e] = (uint16_t)(0x3f00u | ((uint32_t)(r * LENGTH + e) * 2654435761u >> 9 & 0x80ffu));
            view[r] = trn_tensor_1d(TRN_BF16, values[r], LENGTH);
        }
        a.net = &net;
        a.op = TRN_ALL_REDUCE;
        a.algorithm = algorithms[i];
        a.src = a.dst = view;
        if (!must(trn_collective_run(&a), &error)) return false;
        add(values, sizeof values);
    }
    tell("collectives");

    start();
    for (int64_t bytes = 1; bytes <= (int64_t)1 << 30; bytes <<= 5) {
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++) {
            trn_collective_args a;
            trn_cost cost;
            memset(&a, 0, sizeof a);
            memset(&cost, 0, sizeof cost);
            a.net = op & 1 ? &net : &large;
            a.op = (trn_collective)op;
            a.bytes = bytes;
            add_int(trn_collective_cost(&a, &cost));
            add_int(cost.steps);
            add_int((int64_t)(cost.time_s * 1e12 + 0.5));
            add_text(cost.bottleneck);
        }
    }
    tell("costs");
    return true;
}

/* What is refused, in words: sizes, 64-bit numbers and floats as this platform's C library prints them. */
static bool sentences(void)
{
    char text[4096];
    trn_error error;
    trn_matmul_args a;
    trn_numerics numerics;
    memset(&a, 0, sizeof a);
    memset(&error, 0, sizeof error);
    start();
    a.error = &error;
    a.a = trn_tensor_2d(TRN_BF16, codes_a, 4, 8);
    a.b = trn_tensor_2d(TRN_BF16, codes_b, 9, 4);
    a.dst = trn_tensor_2d(TRN_F32, sums, 4, 4);
    add_int(trn_matmul(&a));
    add_text(error.text);
    a.b = trn_tensor_2d(TRN_BF16, codes_b, 8, 4);
    a.scratch = text;
    a.scratch_bytes = 7;
    add_int(trn_matmul(&a));
    add_text("scratch_bytes = 7"); /* how many it needs depends on the instruction set */
    if (!strstr(error.text, "scratch_bytes = 7 but this call needs ")) {
        fprintf(stderr, "telling: a size is printed wrongly: %s\n", error.text);
        return false;
    }
    numerics = trn_numerics_default(TRN_TRAINIUM3);
    numerics.chains = 8;
    add_int((int64_t)trn_numerics_format(&numerics, text, sizeof text));
    add_text(text);
    tell("sentences");
    return true;
}

int main(void)
{
    if (!conversions() || !products() || !activations() || !collectives() || !sentences()) return 1;
    printf("digest %016llx\nran %s\n", (unsigned long long)total, trn_isa_name());
    return 0;
}

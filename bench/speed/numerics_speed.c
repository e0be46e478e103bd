/* numerics_speed.c - trn_matmul in every kind of order, one thread: multiply-adds per second for each instruction set.
 * SPDX-License-Identifier: MIT
 *
 *     numerics_speed [--shape MxNxK] [--rounds N] [--isa NAME] [SETTINGS...]
 *
 * SETTINGS as trn_numerics_parse takes them, "chains=1,accumulator_bits=26" for one; without any, a list of all kinds.
 * Rounds go over all of them in turn, because a shared machine does not run at one speed; the time is the processor's,
 * and the best round is printed. Everything is timed: decoding, adding, writing.
 */
#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_matmul.h>

#include "bench/common/measure.h"

const char app_name[] = "numerics_speed";

typedef enum operands { BF16, F32, E4M3, DOUBLE_E4M3, DOUBLE_E5M2, MX_E4M3FN, MX_E2M1, OPERANDS } operands;

static const char *const operands_name[OPERANDS] = { "bf16",        "f32",   "e4m3", "e4m3 double",
                                                     "e5m2 double", "mxfp8", "mxfp4" };

typedef struct setting {
    const char *text;
    operands of;
} setting;

static const setting all[] = {
    { "", BF16 }, /* the packed kernels, to compare with */
    { "accumulator=toward_zero", BF16 },
    { "accumulator=toward_zero,chains=1", BF16 },
    { "accumulator=toward_zero,accumulator_bits=30", BF16 },
    { "accumulator_bits=25", BF16 },
    { "accumulator_bits=26,chains=1", BF16 },
    { "accumulator_bits=40,merge=pairwise,chains=16", BF16 },
    { "accumulator_bits=53", BF16 },
    { "accumulator=exact", BF16 },
    { "product=bf16", BF16 },
    { "product=bf16,accumulator_bits=30", BF16 },
    { "flush_inputs=on", BF16 },
    { "flush_sums=on", BF16 },
    { "flush_inputs=on,flush_products=on,flush_sums=on", BF16 },
    { "accumulator_bits=26", F32 },
    { "accumulator=toward_zero", F32 },
    { "accumulator=exact", F32 },
    { "product=bf16", F32 },
    { "fp32_mode=split", F32 },
    { "fp32_mode=split,accumulator_bits=26", F32 },
    { "accumulator_bits=26", E4M3 },
    { "accumulator_bits=26", DOUBLE_E4M3 },
    { "accumulator=toward_zero", DOUBLE_E4M3 },
    { "accumulator=exact", DOUBLE_E5M2 },
    { "accumulator_bits=26", MX_E4M3FN },
    { "accumulator=toward_zero", MX_E2M1 },
    { "group=exact", MX_E4M3FN },
    { "accumulator=exact", MX_E4M3FN },
};
enum { ROWS_MOST = sizeof all / sizeof all[0], SETTINGS_MOST = 64 };

typedef struct bench {
    int64_t m, n, k;
    int rounds;
    trn_isa only; /* TRN_ISA_AUTO: each that this host has */
    setting row[SETTINGS_MOST];
    int rows;
    trn_tensor a[OPERANDS], b[OPERANDS], a_scale, b_scale;
    float *dst;
    double best[SETTINGS_MOST][TRN_ISA_COUNT]; /* multiply-adds per second */
} bench;

static void quit(const char *text)
{
    fprintf(stderr, "numerics_speed: %s\n", text);
    exit(2);
}

static void *memory(size_t bytes) { return app_memory(bytes + 1, 1); }

/* Numbers around zero, as layers have them, cast to the format. */
static trn_tensor matrix(trn_format format, int64_t rows, int64_t columns, uint64_t seed)
{
    const size_t count = (size_t)(rows * columns);
    float *x = (float *)memory(count * sizeof(float));
    trn_error error;
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (uint64_t j = 0; j < 4; j++) sum += (double)trn_random_u32(seed, j, i) * 0x1p-32 - 0.5;
        x[i] = (float)sum;
    }
    args.src = trn_tensor_2d(TRN_F32, x, rows, columns);
    args.dst = trn_tensor_2d(format, memory(count * 4), rows, columns);
    args.error = &error;
    if (trn_convert(&args) != TRN_OK) quit(error.text);
    free(x);
    return args.dst;
}

static trn_tensor scales(int64_t lanes, int64_t blocks)
{
    const trn_tensor t = trn_tensor_2d(TRN_F8_E8M0, memory((size_t)(lanes * blocks)), lanes, blocks);
    for (int64_t i = 0; i < lanes * blocks; i++) ((unsigned char *)t.data)[i] = (unsigned char)(120 + i % 8);
    return t;
}

static void prepare(bench *b)
{
    static const trn_format format[OPERANDS] = { TRN_BF16,    TRN_F32,       TRN_F8_E4M3, TRN_F8_E4M3,
                                                 TRN_F8_E5M2, TRN_F8_E4M3FN, TRN_F4_E2M1 };
    for (int i = 0; i < OPERANDS; i++) {
        b->a[i] = matrix(format[i], b->m, b->k, 1);
        b->b[i] = matrix(format[i], b->k, b->n, 2);
    }
    b->a_scale = scales(b->m, b->k / 32);
    b->b_scale = scales(b->n, b->k / 32);
    b->dst = (float *)memory(sizeof(float) * (size_t)(b->m * b->n));
}

/* Multiply-adds per second of processor time. */
static double run(const bench *b, const setting *s, trn_isa isa)
{
    trn_error error;
    trn_numerics n;
    trn_matmul_args args;
    if (trn_numerics_parse(&n, s->text) != TRN_OK) quit("settings that trn_numerics_parse refuses");
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, b->dst, b->m, b->n);
    args.a = b->a[s->of];
    args.b = b->b[s->of];
    args.double_row = s->of == DOUBLE_E4M3 || s->of == DOUBLE_E5M2;
    if (s->of == MX_E4M3FN || s->of == MX_E2M1) {
        args.a_scale = b->a_scale;
        args.b_scale = b->b_scale;
    }
    args.numerics = &n;
    args.isa = isa;
    args.error = &error;
    const double start = tb_thread_seconds();
    if (trn_matmul(&args) != TRN_OK) quit(error.text);
    return (double)(b->m * b->n * b->k) / (tb_thread_seconds() - start);
}

static bool wanted(const bench *b, int isa)
{
    return trn_isa_supported((trn_isa)isa) && (!b->only || b->only == (trn_isa)isa);
}

static void measure(bench *b)
{
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < b->rows; i++)
            for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
                if (!wanted(b, isa)) continue;
                const double rate = run(b, &b->row[i], (trn_isa)isa);
                if (rate > b->best[i][isa]) b->best[i][isa] = rate;
            }
}

static void print(const bench *b)
{
    printf("%lldx%lldx%lld, one thread, GMAC/s\n%-12s %-50s", (long long)b->m, (long long)b->n, (long long)b->k,
           "operands", "order");
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++)
        if (wanted(b, isa)) printf(" %9s", trn_isa_text((trn_isa)isa));
    printf("\n");
    for (int i = 0; i < b->rows; i++) {
        printf("%-12s %-50s", operands_name[b->row[i].of], *b->row[i].text ? b->row[i].text : "(default)");
        for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++)
            if (wanted(b, isa)) printf(" %9.2f", b->best[i][isa] * 1e-9);
        printf("\n");
    }
}

static void read_arguments(bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        long long m, n, k;
        if (strcmp(argv[i], "--shape") == 0) {
            if (sscanf(value, "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 32 || k % 32)
                quit("--shape MxNxK, K a multiple of 32");
            b->m = m, b->n = n, b->k = k, i++;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            b->rounds = atoi(value), i++;
        } else if (strcmp(argv[i], "--isa") == 0) {
            b->only = trn_isa_from_name(value), i++;
            if (!trn_isa_supported(b->only)) quit("--isa names none that this host has");
        } else {
            if (argv[i][0] == '-')
                quit("usage: numerics_speed [--shape MxNxK] [--rounds N] [--isa NAME] [SETTINGS...]");
            if (b->rows + 2 > SETTINGS_MOST) quit("too many settings");
            for (int of = BF16; of <= F32; of++, b->rows++)
                b->row[b->rows].text = argv[i], b->row[b->rows].of = (operands)of;
        }
    }
    if (b->rows) return;
    memcpy(b->row, all, sizeof all);
    b->rows = ROWS_MOST;
}

int app_run(int argc, char **argv)
{
    static bench b;
    b.m = 64;
    b.n = b.k = 512;
    b.rounds = 3;
    read_arguments(&b, argc, argv);
    prepare(&b);
    measure(&b);
    print(&b);
    return 0;
}

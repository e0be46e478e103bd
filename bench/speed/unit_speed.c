/* unit_speed.c - products on the host's matrix unit beside the same on vectors alone, by what the numbers are like.
 * SPDX-License-Identifier: MIT
 *
 *     unit_speed [--threads N] [--rounds N] [--shape MxNxK]
 *
 * The bits are the same; whether a unit may be used depends on the numbers. Each round runs every product with and
 * without the unit; what is printed is the best rate of either, the median of their ratios, and what the unit did.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "../common/host.h"
#include "../common/measure.h"
#include "trnmath/trn_matmul.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

const char app_name[] = "unit_speed";

enum { MAX_ROUNDS = 64, VECTORS = 0, UNIT, WAYS };

/* Numbers of a normal distribution, or, with sigma 0, whole ones up to 7. */
typedef struct kind {
    const char *name;
    trn_format format;
    double sigma;
    bool mx;
    unsigned char spread; /* of the scales, in binades */
} kind;

static const kind kinds[] = {
    { "BF16, sigma 1", TRN_BF16, 1, false, 0 },
    { "BF16, whole numbers to 7", TRN_BF16, 0, false, 0 },
    { "E4M3, sigma 1", TRN_F8_E4M3, 1, false, 0 },
    { "E4M3, sigma 40", TRN_F8_E4M3, 40, false, 0 },
    { "E3M4, sigma 3", TRN_F8_E3M4, 3, false, 0 },
    { "E5M2, sigma 1", TRN_F8_E5M2, 1, false, 0 },
    { "MXFP4, scales over 8 binades", TRN_F4_E2M1, 2, true, 8 },
    { "MXFP4, scales over 40 binades", TRN_F4_E2M1, 2, true, 40 },
    { "MXFP8, scales over 8 binades", TRN_F8_E4M3FN, 60, true, 8 },
};

typedef struct options {
    int threads, rounds;
    int64_t m, n, k;
} options;

typedef struct bench {
    unsigned char *a, *b, *a_scale, *b_scale;
    float *dst;
    double rate[WAYS][MAX_ROUNDS];
} bench;

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static void fill(unsigned char *at, int64_t count, const kind *of, uint64_t *state)
{
    const size_t bytes = trn_format_bytes(of->format);
    for (int64_t i = 0; i < count; i++) {
        const double radius = sqrt(-2 * log(uniform(state))), angle = 6.283185307179586 * uniform(state);
        const double x = of->sigma > 0 ? of->sigma * radius * cos(angle) : floor(15 * uniform(state)) - 7;
        const uint32_t code = trn_encode(of->format, (float)x, TRN_NEAREST_EVEN, TRN_SATURATE, 0);
        memcpy(at + (size_t)i * bytes, &code, bytes);
    }
}

static void fill_scales(unsigned char *at, int64_t count, const kind *of, uint64_t *state)
{
    for (int64_t i = 0; i < count && of->mx; i++) at[i] = (unsigned char)(120 + (int)(of->spread * uniform(state)));
}

static trn_status multiply(const bench *b, const options *o, const kind *of, int way, trn_matmul_units *units)
{
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, b->dst, o->m, o->n),
                             .a = trn_tensor_2d(of->format, b->a, o->m, o->k),
                             .b = trn_tensor_2d(of->format, b->b, o->k, o->n),
                             .units = units };
    if (of->mx) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, b->a_scale, o->m, o->k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, b->b_scale, o->n, o->k / 32);
    }
    if (way == VECTORS) args.isa = tb_isa(TRN_ISA_AUTO);
    return trn_matmul(&args);
}

static bool run(bench *b, const options *o, const kind *of)
{
    const double flops = 2.0 * (double)o->m * (double)o->n * (double)o->k;
    const int repeats = 1 + (int)(4e8 / flops);
    trn_matmul_units units = { 0, 0, 0, 0, 0 };
    uint64_t state = 1;
    fill(b->a, o->m * o->k, of, &state);
    fill(b->b, o->k * o->n, of, &state);
    fill_scales(b->a_scale, o->m * o->k / 32, of, &state);
    fill_scales(b->b_scale, o->n * o->k / 32, of, &state);
    if (multiply(b, o, of, UNIT, &units) != TRN_OK) return false;
    for (int r = 0; r < o->rounds; r++)
        for (int way = 0; way < WAYS; way++) {
            const double start = app_now();
            for (int i = 0; i < repeats; i++) multiply(b, o, of, way, NULL);
            b->rate[way][r] = flops * repeats / (app_now() - start);
        }
    printf("%-30s %7.1f GF/s on vectors, %7.1f with the unit: %5.2fx   %3.0f %% exact, %3.0f %% half, %3.0f %% pairs\n",
           of->name, 1e-9 * tb_best(b->rate[VECTORS], o->rounds), 1e-9 * tb_best(b->rate[UNIT], o->rounds),
           tb_median_ratio(b->rate[UNIT], b->rate[VECTORS], o->rounds),
           units.whole + units.chains ? 100 * tb_unit_share(&units, units.whole + units.chains) : 0.0,
           units.half ? 100 * tb_unit_share(&units, units.half) : 0.0,
           units.pairs ? 100 * tb_unit_share(&units, units.pairs) : 0.0);
    fflush(stdout);
    return true;
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        long long m, n, k;
        if (strcmp(argv[i], "--threads") == 0)
            o->threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            o->rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--shape") == 0 && sscanf(argv[i + 1], "%lldx%lldx%lld", &m, &n, &k) == 3)
            o->m = m, o->n = n, o->k = k;
        else
            return false;
    }
    return argc % 2 && o->threads > 0 && o->rounds > 0 && o->rounds <= MAX_ROUNDS && o->m > 0 && o->n > 0 && o->k > 0 &&
           o->k % 32 == 0 && o->m < 100000 && o->n < 100000 && o->k < 100000;
}

int app_run(int argc, char **argv)
{
    static bench b;
    options o = { .threads = 1, .rounds = 9, .m = 512, .n = 512, .k = 512 };
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: unit_speed [--threads N] [--rounds N] [--shape MxNxK]   (K a multiple of 32)\n");
        return 2;
    }
#if defined(_OPENMP)
    omp_set_num_threads(o.threads);
#endif
    const trn_isa unit = trn_isa_unit(TRN_ISA_AUTO);
    fprintf(stderr, "# %s; isa %s; unit %s; compiler %s; %d thread%s; %lldx%lldx%lld\n", tb_host_processor(),
            trn_isa_text(tb_isa(TRN_ISA_AUTO)), unit == TRN_ISA_AUTO ? "none" : trn_isa_text(unit), TB_COMPILER,
            o.threads, o.threads == 1 ? "" : "s", (long long)o.m, (long long)o.n, (long long)o.k);
    b.a = malloc((size_t)(o.m * o.k) * 2);
    b.b = malloc((size_t)(o.k * o.n) * 2);
    b.a_scale = malloc((size_t)(o.m * o.k / 32));
    b.b_scale = malloc((size_t)(o.k * o.n / 32));
    b.dst = malloc(sizeof(float) * (size_t)(o.m * o.n));
    bool good = b.a && b.b && b.a_scale && b.b_scale && b.dst;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && good; i++) good = run(&b, &o, &kinds[i]);
    if (!good) fprintf(stderr, "unit_speed: not enough memory\n");
    free(b.a);
    free(b.b);
    free(b.a_scale);
    free(b.b_scale);
    free(b.dst);
    return good ? 0 : 2;
}

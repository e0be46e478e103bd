/* layout_speed.c - trn_matmul with operands as people have them: every layout of a and b, few rows and few columns,
 * weights packed once, int8.
 * SPDX-License-Identifier: MIT
 *
 *     layout_speed [--isa NAME] [--threads N] [--rounds N] [--shape MxNxK] [--format NAME]
 *
 * N: as its name says, [M, K] and [K, N]; T: turned in memory, [K, M] and [N, K], which for b is how PyTorch stores
 * weights. Each round reads the larger operand's bytes in a plain loop and runs every layout once; what is printed is
 * the best rate, the median of the ratios to NN in the same round, and, where a side is 1, of that to the plain read.
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

const char app_name[] = "layout_speed";

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    { 1, 4096, 4096 },  { 4096, 1, 4096 },  { 1, 768, 768 },     { 768, 1, 768 },   { 4, 4096, 4096 },
    { 16, 4096, 4096 }, { 4096, 16, 4096 }, { 128, 4096, 4096 }, { 256, 256, 256 }, { 1024, 1024, 1024 },
};
enum { NN, NT, TN, TT, PACKED, WAYS, MAX_ROUNDS = 64 };
static const char *const ways[WAYS] = { "NN", "NT", "TN", "TT", "packed" };

typedef struct options {
    trn_isa isa;
    trn_format format;
    int threads, rounds;
    shape only;
} options;

typedef struct bench {
    shape s;
    void *a, *b, *dst, *packed;
    int64_t bytes;
    double rate[WAYS][MAX_ROUNDS], read[MAX_ROUNDS];
} bench;

/* The rate that a plain read of the larger operand's bytes would allow. */
static double read_rate(const bench *b, const options *o)
{
    const bool of_a = b->s.m > b->s.n;
    const double bytes = (double)((of_a ? b->s.m : b->s.n) * b->s.k * b->bytes);
    const double flops = 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k;
    return tb_read_rate(of_a ? b->a : b->b, (size_t)bytes, o->threads, o->isa) / bytes * flops;
}

static trn_tensor view(trn_format format, void *data, int64_t rows, int64_t columns, bool turned)
{
    return turned ? trn_tensor_transposed(trn_tensor_2d(format, data, columns, rows))
                  : trn_tensor_2d(format, data, rows, columns);
}

static trn_matmul_args ask(const bench *b, const options *o, int way, trn_error *error)
{
    const bool integers = o->format == TRN_I8;
    trn_matmul_args args = { .generation = integers ? TRN_TRAINIUM1 : TRN_GENERATION_DEFAULT,
                             .isa = o->isa,
                             .error = error };
    args.dst = trn_tensor_2d(integers ? TRN_I32 : TRN_F32, b->dst, b->s.m, b->s.n);
    args.a = view(o->format, b->a, b->s.m, b->s.k, way == TN || way == TT);
    args.b = view(o->format, b->b, b->s.k, b->s.n, way == NT || way == TT);
    args.packed = way == PACKED ? b->packed : NULL;
    return args;
}

static double timed(const bench *b, const options *o, int way, int repeats)
{
    trn_error error = { TRN_OK, "" };
    const trn_matmul_args args = ask(b, o, way, &error);
    const double start = app_now();
    for (int i = 0; i < repeats; i++)
        if (trn_matmul(&args) != TRN_OK) exit(app_complain(APP_USAGE, "%s", error.text));
    return 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k * repeats / (app_now() - start);
}

/* Numbers between -3/4 and 3/4; of int8 any. */
static void fill(void *data, size_t count, trn_format format)
{
    trn_error error = { TRN_OK, "" };
    float *x = app_memory(count, sizeof *x);
    for (size_t i = 0; i < count; i++) x[i] = (float)((i * 2654435761u >> 7) % 97) / 64.0f - 0.75f;
    trn_convert_args convert = { .dst = trn_tensor_1d(format, data, (int64_t)count),
                                 .src = trn_tensor_1d(TRN_F32, x, (int64_t)count),
                                 .error = &error };
    if (format == TRN_I8)
        for (size_t i = 0; i < count; i++) ((signed char *)data)[i] = (signed char)(i * 2654435761u >> 9);
    else if (trn_convert(&convert) != TRN_OK)
        exit(app_complain(APP_USAGE, "%s", error.text));
    free(x);
}

static void prepare(bench *b, const options *o)
{
    trn_error error = { TRN_OK, "" };
    b->bytes = (int64_t)trn_format_bytes(o->format);
    b->a = app_memory((size_t)(b->s.m * b->s.k), (size_t)b->bytes);
    b->b = app_memory((size_t)(b->s.k * b->s.n), (size_t)b->bytes);
    b->dst = app_memory((size_t)(b->s.m * b->s.n), sizeof(float));
    fill(b->a, (size_t)(b->s.m * b->s.k), o->format);
    fill(b->b, (size_t)(b->s.k * b->s.n), o->format);
    const trn_matmul_args args = ask(b, o, NN, &error);
    const size_t bytes = trn_matmul_pack_bytes(&args);
    b->packed = app_memory(bytes + 1, 1);
    if (trn_matmul_pack(&args, b->packed, bytes) != TRN_OK) exit(app_complain(APP_USAGE, "%s", error.text));
}

static void run(const shape *s, const options *o)
{
    static bench b;
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const bool single = s->m == 1 || s->n == 1;
    int repeats = 1 + (int)(4e8 / flops);
    memset(&b, 0, sizeof b);
    b.s = *s;
    prepare(&b, o);
    for (int w = 0; w < WAYS; w++) timed(&b, o, w, 1); /* warm up */
    for (int r = 0; r < o->rounds; r++) {
        b.read[r] = single ? read_rate(&b, o) : 1;
        for (int w = 0; w < WAYS; w++) b.rate[w][r] = timed(&b, o, w, repeats);
    }
    for (int w = 0; w < WAYS; w++) {
        printf("%lldx%lldx%lld %s %-6s %8.1f GF/s  %5.2fx NN", (long long)s->m, (long long)s->n, (long long)s->k,
               trn_format_name(o->format), ways[w], 1e-9 * tb_best(b.rate[w], o->rounds),
               tb_median_ratio(b.rate[w], b.rate[NN], o->rounds));
        if (single) printf("  %5.1f %% of read", 100 * tb_median_ratio(b.rate[w], b.read, o->rounds));
        putchar('\n');
    }
    fflush(stdout);
    free(b.a);
    free(b.b);
    free(b.dst);
    free(b.packed);
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        long long m, n, k;
        if (strcmp(argv[i], "--isa") == 0)
            o->isa = trn_isa_from_name(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            o->rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--format") == 0)
            o->format = trn_format_from_name(argv[i + 1]);
        else if (strcmp(argv[i], "--shape") == 0 && sscanf(argv[i + 1], "%lldx%lldx%lld", &m, &n, &k) == 3)
            o->only = (shape){ m, n, k };
        else
            return false;
    }
    return argc % 2 && trn_isa_supported(o->isa) && o->threads > 0 && o->rounds > 0 && o->rounds <= MAX_ROUNDS &&
           o->format && o->only.m >= 0 && o->only.n >= 0 && o->only.k >= 0;
}

int app_run(int argc, char **argv)
{
    options o = { .isa = trn_isa_default(), .format = TRN_BF16, .threads = 1, .rounds = 9 };
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: layout_speed [--isa NAME] [--threads N] [--rounds N] [--shape MxNxK] "
                        "[--format NAME]\n");
        return 2;
    }
#if defined(_OPENMP)
    omp_set_num_threads(o.threads);
#endif
    fprintf(stderr, "# %s; isa %s; compiler %s; %d thread%s\n", tb_host_processor(), trn_isa_text(o.isa), TB_COMPILER,
            o.threads, o.threads == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !o.only.m; i++) run(&shapes[i], &o);
    if (o.only.m) run(&o.only, &o);
    return 0;
}

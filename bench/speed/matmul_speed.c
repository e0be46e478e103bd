/* matmul_speed.c - trn_matmul beside OpenBLAS and oneDNN: every shape, format and thread count in one interleaved run.
 * SPDX-License-Identifier: MIT
 *
 *     matmul_speed [--quick] [--alone] [--isa NAME] [--threads N] [--rounds N] [--shape MxNxK] [--format NAME]...
 *         [--csv FILE]
 *     matmul_speed --partition N
 *
 * A shared machine does not run at one speed, so each round runs a burst of multiply-adds and then every candidate
 * once; what is printed is the best rate and the median over the rounds of the ratios to the peers and to trnmath's own
 * BF16 in the same round. All of trnmath's work is timed: decoding, packing, multiplying, writing. Rows of packed
 * weights, ours (trn_matmul_pack) and oneDNN's, do not time packing b. Formats are those of trnbench matmul --format,
 * all of them with "all"; without --format: bf16, f16, tf32, f32. BF16 also adds to dst, takes b as [N, K], and a with
 * 4 of 16 stored, whose rate counts all M x N x K products; the peers do none of this meanwhile.
 *
 * --partition multiplies nothing: it prints how trn_matmul would cut each shape for so many threads.
 */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_matmul.h>
#include <trnmath/trn_sparse.h>

#include "bench/common/host.h"
#include "bench/common/kernels.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

const char app_name[] = "matmul_speed";

typedef struct shape {
    int64_t m, n, k;
    bool quick;
} shape;

static const shape shapes[] = {
    { 128, 128, 128, false },    { 256, 256, 256, true },     { 512, 512, 512, true },    { 1024, 1024, 1024, true },
    { 2048, 2048, 2048, false }, { 4096, 4096, 4096, false }, { 128, 512, 128, false },   { 128, 4096, 4096, true },
    { 128, 14336, 4096, false }, { 128, 4096, 14336, false }, { 512, 4096, 4096, false }, { 16, 4096, 4096, true },
    { 16, 14336, 4096, false },  { 1, 4096, 4096, true },     { 1, 14336, 4096, false },
};

/* Candidates: first the formats of this run, the first of them BF16; then other ways of BF16; then the peers. */
enum {
    PACKED = TB_MAX_FORMATS,
    ADDED,
    TURNED,
    SPARSE,
    PEERS_FROM,
    CANDIDATES = PEERS_FROM + TB_PEERS,
    MAX_ROUNDS = 64
};
static const tb_format *formats[TB_MAX_FORMATS];
static int ours;

static bool add_format(const char *name)
{
    const tb_format *format = tb_format_find(name);
    for (int i = 0; i < ours; i++)
        if (formats[i] == format) return true;
    if (format) formats[ours++] = format;
    return format != NULL;
}

static bool add_formats(const char *name)
{
    if (strcmp(name, "all") != 0) return add_format(name);
    for (int f = 0; tb_format_at(f); f++) add_format(tb_format_at(f)->name);
    return true;
}

typedef struct options {
    bool quick, alone;  /* alone: without peers */
    trn_isa asked, isa; /* what products are called with: AUTO takes the host's units, too; the vectors below them */
    int threads;        /* 0: 1 and 2 */
    int partition;      /* 0: measure */
    int rounds;
    shape only;
    app_output csv;
} options;

typedef struct bench {
    shape s;
    int threads, rounds, repeats;
    tb_operands x[TB_MAX_FORMATS];
    trn_numerics numerics[TB_MAX_FORMATS];
    bool there[TB_MAX_FORMATS];
    float *fa, *fb, *fc;
    void *packed;
    uint16_t *turned, *stored; /* b as [N, K]; a's stored values */
    uint8_t *tags;             /* NULL: K is no multiple of 16 */
    void *peer[TB_PEERS];
    double rate[CANDIDATES][MAX_ROUNDS], peak[MAX_ROUNDS], read[MAX_ROUNDS];
} bench;

static const trn_sparse_pattern pattern = { 4, 16 };

static trn_tensor of_stored(const bench *b, trn_format format, void *data)
{
    return trn_tensor_2d(format, data, b->s.m, b->s.k * pattern.m / pattern.n);
}

static trn_status run_sparse(const bench *b, trn_isa isa, trn_error *error)
{
    const trn_sparse_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, b->fc, b->s.m, b->s.n),
                                          .values = of_stored(b, TRN_BF16, b->stored),
                                          .tags = of_stored(b, TRN_U8, b->tags),
                                          .pattern = pattern,
                                          .b = b->x[0].b,
                                          .isa = isa,
                                          .error = error };
    return trn_sparse_matmul(&args);
}

static trn_status run_dense(const bench *b, int which, trn_isa isa, trn_error *error)
{
    const int format = which < PACKED ? which : 0;
    trn_matmul_args args = tb_operands_product(formats[format], &b->x[format], b->fc, &b->numerics[format]);
    args.isa = isa;
    args.error = error;
    args.accumulate = which == ADDED;
    if (which == PACKED) args.packed = b->packed;
    if (which == TURNED) args.b = trn_tensor_transposed(trn_tensor_2d(TRN_BF16, b->turned, b->s.n, b->s.k));
    return trn_matmul(&args);
}

static const char *candidate_name(int which)
{
    static const char *const ways[] = { "bf16 packed", "bf16 added to dst", "bf16, b [N, K]", "bf16 4:16" };
    if (which >= PEERS_FROM) return tb_peer_name((tb_peer_id)(which - PEERS_FROM));
    return which < PACKED ? formats[which]->name : ways[which - PACKED];
}

static void run_ours(const bench *b, int which, trn_isa isa)
{
    trn_error error;
    const trn_status status = which == SPARSE ? run_sparse(b, isa, &error) : run_dense(b, which, isa, &error);
    if (status != TRN_OK) exit(app_complain(app_refused(status), "%s: %s", candidate_name(which), error.text));
}

static bool takes_part(const bench *b, int which)
{
    if (which == PACKED) return b->packed != NULL;
    if (which == SPARSE) return b->tags != NULL;
    if (which == ADDED || which == TURNED) return true;
    return which < PACKED ? which < ours && b->there[which] : b->peer[which - PEERS_FROM] != NULL;
}

static void run_candidate(const bench *b, int which, trn_isa isa)
{
    if (which < PEERS_FROM)
        run_ours(b, which, isa);
    else
        tb_peer_run((tb_peer_id)(which - PEERS_FROM), b->peer[which - PEERS_FROM]);
}

static double timed(const bench *b, int which, trn_isa isa)
{
    const double start = app_now();
    for (int i = 0; i < b->repeats; i++) run_candidate(b, which, isa);
    return 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k * b->repeats / (app_now() - start);
}

static void set_threads(int threads)
{
#if defined(_OPENMP)
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

static void pack(bench *b, trn_isa isa)
{
    trn_matmul_args args = tb_operands_product(formats[0], &b->x[0], b->fc, &b->numerics[0]);
    args.isa = isa;
    const size_t bytes = trn_matmul_pack_bytes(&args);
    b->packed = bytes ? app_memory(bytes, 1) : NULL;
    if (b->packed && trn_matmul_pack(&args, b->packed, bytes) != TRN_OK) exit(app_complain(APP_FAILED, "packing b"));
}

static void turn_and_prune(bench *b)
{
    const shape s = b->s;
    const uint16_t *code = b->x[0].b.data;
    trn_error error;
    b->turned = app_memory((size_t)(s.k * s.n), sizeof *b->turned);
    for (int64_t k = 0; k < s.k; k++)
        for (int64_t n = 0; n < s.n; n++) b->turned[n * s.k + k] = code[k * s.n + n];
    if (s.k % pattern.n) return;
    b->stored = app_memory((size_t)(s.m * s.k / 4), sizeof *b->stored);
    b->tags = app_memory((size_t)(s.m * s.k / 4), 1);
    const trn_sparse_pack_args args = { .src = b->x[0].a,
                                        .values = of_stored(b, TRN_BF16, b->stored),
                                        .tags = of_stored(b, TRN_U8, b->tags),
                                        .pattern = pattern,
                                        .prune = true,
                                        .error = &error };
    if (trn_sparse_pack(&args) != TRN_OK) exit(app_complain(APP_FAILED, "pruning a: %s", error.text));
}

static void prepare(bench *b, trn_isa isa)
{
    const shape s = b->s;
    b->fa = app_memory((size_t)(s.m * s.k), sizeof(float));
    b->fb = app_memory((size_t)(s.k * s.n), sizeof(float));
    b->fc = app_memory((size_t)(s.m * s.n), sizeof(float));
    tb_fill_random(b->fa, s.m * s.k, 1, 0);
    tb_fill_random(b->fb, s.k * s.n, 1, 1);
    const trn_tensor a = trn_tensor_2d(TRN_F32, b->fa, s.m, s.k), w = trn_tensor_2d(TRN_F32, b->fb, s.k, s.n);
    for (int i = 0; i < ours; i++) { /* a shape that MX cannot cut into blocks is left out */
        trn_error error = { TRN_OK, "" };
        b->there[i] = tb_format_numerics(formats[i], NULL, &b->numerics[i]) == TRN_OK &&
                      tb_operands_make(formats[i], &a, &w, &b->x[i], &error);
        if (!b->there[i]) app_worked(error.status, &error);
    }
    pack(b, isa);
    turn_and_prune(b);
    const tb_peer_job job = { s.m, s.n, s.k, b->fa, b->fb, b->fc, b->threads };
    for (int i = 0; i < TB_PEERS; i++) b->peer[i] = tb_peer_prepare((tb_peer_id)i, &job);
}

static void release(bench *b)
{
    for (int i = 0; i < TB_PEERS; i++)
        if (b->peer[i]) tb_peer_release((tb_peer_id)i, b->peer[i]);
    for (int i = 0; i < ours; i++) tb_operands_free(&b->x[i]);
    free(b->packed);
    free(b->turned);
    free(b->stored);
    free(b->tags);
    free(b->fa);
    free(b->fb);
    free(b->fc);
}

static void measure(bench *b, const options *o)
{
    const double flops = 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k;
    b->repeats = 1 + (int)(2e9 * b->threads / flops);
    if (b->repeats > 400) b->repeats = 400;
    for (int c = 0; c < CANDIDATES; c++) /* warm up */
        if (takes_part(b, c)) run_candidate(b, c, o->asked);
    for (int r = 0; r < b->rounds; r++) {
        b->peak[r] = tb_peak_burst(o->isa, b->threads, 0.004).flops_per_s;
        b->read[r] = tb_read_rate(b->x[0].b.data, (size_t)(b->s.k * b->s.n) * 2, b->threads, o->isa);
        for (int c = 0; c < CANDIDATES; c++)
            if (takes_part(b, c)) b->rate[c][r] = timed(b, c, o->asked);
    }
}

static double ratio_to(const bench *b, int which, int other)
{
    return takes_part(b, other) ? tb_median_ratio(b->rate[which], b->rate[other], b->rounds) : NAN;
}

/* What a product with M = 1, which reads b once, does of the rate of reading alone: 2 flops an element. */
static double share_of_read(const bench *b, int which)
{
    const double bits = which < PACKED ? trn_format_bits(formats[which]->b) : which < PEERS_FROM ? 16 : 32;
    const double stored = bits < 8 ? 8 : bits; /* one code a byte */
    return tb_median_ratio(b->rate[which], b->read, b->rounds) * stored / 8 / 2;
}

static void print(const bench *b, const options *o)
{
    char name[48];
    FILE *csv = app_output_stream(&o->csv);
    snprintf(name, sizeof name, "%lldx%lldx%lld", (long long)b->s.m, (long long)b->s.n, (long long)b->s.k);
    for (int c = 0; c < CANDIDATES; c++) {
        if (!takes_part(b, c)) continue;
        const double top = tb_best(b->rate[c], b->rounds), share = tb_median_ratio(b->rate[c], b->peak, b->rounds);
        const double openblas = ratio_to(b, c, PEERS_FROM + TB_OPENBLAS), own = ratio_to(b, c, 0);
        const double f32 = ratio_to(b, c, PEERS_FROM + TB_ONEDNN_F32), read = share_of_read(b, c);
        const double prepacked = ratio_to(b, c, PEERS_FROM + TB_ONEDNN_F32_PACKED);
        const double onednn = ratio_to(b, c, PEERS_FROM + TB_ONEDNN_BF16);
        printf("%-18s %d  %-22s %8.1f GF/s %5.1f %% of peak  %5.2fx bf16  %5.2fx OpenBLAS  %5.2fx oneDNN f32  %5.2fx "
               "its packed  %5.2fx its bf16",
               name, b->threads, candidate_name(c), top * 1e-9, 100 * share, own, openblas, f32, prepacked, onednn);
        if (b->s.m == 1 && c < PEERS_FROM) printf("  %5.1f %% of read", 100 * read);
        putchar('\n');
        if (csv)
            fprintf(csv, "%s,%s,%d,%lld,%lld,%lld,%s,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g\n", trn_isa_text(o->asked),
                    TB_COMPILER, b->threads, (long long)b->s.m, (long long)b->s.n, (long long)b->s.k, candidate_name(c),
                    top * 1e-9, share, own, openblas, f32, prepacked, onednn, read);
    }
    fflush(stdout);
}

/* Geometric means over the shapes with M >= 128, of each format, of the ratios to two peers. */
typedef struct means {
    double log_sum[TB_MAX_FORMATS][2];
    int count[TB_MAX_FORMATS];
} means;

static const tb_peer_id mean_peer[2] = { TB_OPENBLAS, TB_ONEDNN_F32 };

static void means_add(means *sum, const bench *b)
{
    for (int i = 0; i < ours; i++) {
        if (!b->there[i]) continue;
        for (int p = 0; p < 2; p++) sum->log_sum[i][p] += log(ratio_to(b, i, PEERS_FROM + (int)mean_peer[p]));
        sum->count[i]++;
    }
}

static void means_print(const means *sum, int threads)
{
    for (int i = 0; i < ours; i++)
        if (sum->count[i])
            printf("geometric mean of %d shapes with M >= 128, %d thread(s), %s: %.3fx OpenBLAS, %.3fx oneDNN f32\n",
                   sum->count[i], threads, formats[i]->name, exp(sum->log_sum[i][0] / sum->count[i]),
                   exp(sum->log_sum[i][1] / sum->count[i]));
}

static void run(const shape *s, int threads, const options *o, means *sum)
{
    static bench b;
    memset(&b, 0, sizeof b);
    b.s = *s;
    b.threads = threads;
    b.rounds = o->rounds;
    set_threads(threads);
    prepare(&b, o->asked);
    measure(&b, o);
    print(&b, o);
    if (s->m >= 128 && b.peer[TB_OPENBLAS]) means_add(sum, &b);
    release(&b);
}

/* ---- how trn_matmul cuts products ---- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Largest share over the mean: how much longer the call takes than with even shares. */
static void print_partition(const shape *s, int threads, trn_isa isa)
{
    trni_cut cut;
    const trni_array array = trni_array_of(1, isa);
    set_threads(threads);
    trni_cut_threads(&cut, s->m, s->n, s->k, &array);
    const int blocks = cut.threads_m * cut.threads_n;
    const double mean = (double)s->m * (double)s->n / blocks, largest = (double)cut.rows * (double)cut.columns;
    const int64_t rows = s->m - (cut.threads_m - 1) * cut.rows, columns = s->n - (cut.threads_n - 1) * cut.columns;
    printf("%5lldx%5lldx%5lld  %3d of %3d threads: %2d x %2d blocks of %4lld x %5lld, the last %4lld x %5lld; "
           "largest / mean %.3f\n",
           (long long)s->m, (long long)s->n, (long long)s->k, blocks, threads, cut.threads_m, cut.threads_n,
           (long long)cut.rows, (long long)cut.columns, (long long)smaller(rows, cut.rows),
           (long long)smaller(columns, cut.columns), largest / mean);
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        long long m, n, k;
        const bool quick = strcmp(argv[i], "--quick") == 0, alone = strcmp(argv[i], "--alone") == 0;
        o->quick |= quick;
        o->alone |= alone;
        if (quick || alone) continue;
        if (strcmp(argv[i], "--isa") == 0)
            o->asked = trn_isa_from_name(value);
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = atoi(value);
        else if (strcmp(argv[i], "--rounds") == 0)
            o->rounds = atoi(value);
        else if (strcmp(argv[i], "--partition") == 0)
            o->partition = atoi(value);
        else if (strcmp(argv[i], "--csv") == 0)
            o->csv.path = value;
        else if (strcmp(argv[i], "--format") == 0 && add_formats(value)) {
            i++;
            continue;
        } else if (strcmp(argv[i], "--shape") == 0 && sscanf(value, "%lldx%lldx%lld", &m, &n, &k) == 3)
            o->only = (shape){ m, n, k, true };
        else
            return false;
        i++;
    }
    o->isa = tb_isa(o->asked);
    const bool known = (o->asked == TRN_ISA_AUTO || trn_isa_supported(o->asked)) && trn_isa_supported(o->isa);
    return known && o->threads >= 0 && o->partition >= 0 && o->rounds > 0 && o->rounds <= MAX_ROUNDS;
}

int app_run(int argc, char **argv)
{
    static const char *const usual[] = { "f16", "tf32", "f32" };
    options o = { .asked = TRN_ISA_AUTO, .rounds = 9 };
    add_format("bf16"); /* always the first: others are compared with it */
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: matmul_speed [--quick] [--alone] [--isa NAME] [--threads N] [--rounds N] "
                        "[--shape MxNxK] [--format NAME]... [--csv FILE] [--partition N]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && o.partition; i++)
        print_partition(o.only.m ? &o.only : &shapes[i], o.partition, o.isa);
    if (o.partition) return APP_OK;
    const bool none_asked = ours == 1;
    for (int i = 0; none_asked && i < 3; i++) add_format(usual[i]);
    if (!o.alone) tb_peers_load(o.isa, true);
    const trn_isa unit = trn_isa_unit(o.asked);
    fprintf(stderr, "# %s; isa %s; unit %s; compiler %s\n", tb_host_processor(), trn_isa_text(o.isa),
            unit == TRN_ISA_AUTO ? "none" : trn_isa_text(unit), TB_COMPILER);
    for (int i = 0; i < TB_PEERS; i++)
        if (tb_peer_version((tb_peer_id)i))
            fprintf(stderr, "# %s: %s\n", tb_peer_name((tb_peer_id)i), tb_peer_version((tb_peer_id)i));
    if (app_open_outputs(&o.csv, 1) != APP_OK) return APP_USAGE;
    FILE *csv = app_output_stream(&o.csv);
    if (csv)
        fprintf(csv, "isa,compiler,threads,m,n,k,candidate,best_gflops,share_of_peak,ratio_bf16,ratio_openblas,ratio_"
                     "onednn_f32,ratio_onednn_f32_packed,ratio_onednn_bf16,share_of_read\n");

    for (int threads = o.threads ? o.threads : 1; threads <= (o.threads ? o.threads : 2); threads++) {
        means sum;
        memset(&sum, 0, sizeof sum);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const shape *s = o.only.m ? &o.only : &shapes[i];
            if (o.quick && !s->quick) continue;
            run(s, threads, &o, &sum);
            if (o.only.m) break;
        }
        means_print(&sum, threads);
    }
    return app_write_outputs(&o.csv, 1, NULL);
}

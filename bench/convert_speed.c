/* convert_speed.c - how fast trn_convert is, beside oneDNN, libxsmm, a compiler's own loop, and memcpy.
 * SPDX-License-Identifier: MIT
 *
 *     convert_speed [--quick] [--only CONVERSION] [--csv FILE]
 *
 * All candidates of a case run interleaved in one process, round by round. Printed: the best speed of each, and the
 * median over the rounds of trnmath's speed divided by the candidate's. One element of f32 -> bf16 moves 6 bytes; the
 * memcpy row copies 3 bytes per element, so it moves as many. Peers without threads of their own are split over the
 * same OpenMP team. Every candidate's result is compared with trnmath's.
 *
 * HAVE_DNNL (oneDNN 2) and HAVE_LIBXSMM are set by the build when they are found; a peer that is missing is named as
 * skipped. convert_peer.c is the compiler's own loop.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <trnmath/trn_convert.h>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(HAVE_DNNL) && HAVE_DNNL + 0
#include <dnnl.h>
#if DNNL_VERSION_MAJOR == 2
#define BENCH_DNNL 1
#endif
#endif
#if defined(HAVE_LIBXSMM) && HAVE_LIBXSMM + 0
#include <libxsmm.h>
#define BENCH_LIBXSMM 1
#endif
#ifndef BENCH_DNNL
#define BENCH_DNNL 0
#endif
#ifndef BENCH_LIBXSMM
#define BENCH_LIBXSMM 0
#endif

void convert_peer_f32_bf16(uint16_t *restrict dst, const float *restrict src, size_t n);
const char *convert_peer_compiler(void);

enum { MOST_ROUNDS = 31, MOST_CANDIDATES = 6 };

typedef struct bench_case {
    const char *name;
    trn_format from, to;
    trn_rounding rounding;
    int sr_bits;
    bool peers; /* f32 -> bf16 nearest even: what the peers can do too */
} bench_case;

typedef struct job {
    const bench_case *what;
    void *dst;
    const void *src;
    size_t n;
    int threads;
} job;

typedef struct candidate {
    const char *name;
    void (*run)(const job *j);
    double best;                 /* elements per second */
    double speed[MOST_ROUNDS];
    bool same_bits;
} candidate;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *text, const char *what)
{
    fprintf(stderr, "convert_speed: %s %s\n", text, what);
    exit(2);
}

/* ---- candidates ---- */

static void run_trnmath(const job *j)
{
    trn_error error;
    const trn_convert_args args = { .dst = trn_tensor_1d(j->what->to, j->dst, (int64_t)j->n),
                                    .src = trn_tensor_1d(j->what->from, (void *)(uintptr_t)j->src, (int64_t)j->n),
                                    .rounding = j->what->rounding,
                                    .sr_bits = j->what->sr_bits,
                                    .seed = 1,
                                    .error = &error };
    if (trn_convert(&args)) die("trn_convert failed:", error.text);
}

/* Runs part(first, count) over equal shares of the elements, one per thread. */
static void split(const job *j, void (*part)(const job *j, size_t first, size_t count))
{
#if defined(_OPENMP)
#pragma omp parallel for schedule(static) num_threads(j->threads) if (j->threads > 1)
#endif
    for (int t = 0; t < j->threads; t++) {
        const size_t first = j->n * (size_t)t / (size_t)j->threads, last = j->n * (size_t)(t + 1) / (size_t)j->threads;
        part(j, first, last - first);
    }
}

/* Half of the bytes that the conversion moves is read, half written. */
static size_t bytes_moved(const bench_case *c) { return trn_format_bytes(c->from) + trn_format_bytes(c->to); }

static void part_memcpy(const job *j, size_t first, size_t count)
{
    const size_t both = bytes_moved(j->what);
    memcpy((char *)j->dst + first * both / 2, (const char *)j->src + first * both / 2, count * both / 2);
}

static void run_memcpy(const job *j) { split(j, part_memcpy); }

static void part_plain(const job *j, size_t first, size_t count)
{
    convert_peer_f32_bf16((uint16_t *)j->dst + first, (const float *)j->src + first, count);
}
static void run_plain(const job *j) { split(j, part_plain); }

#if BENCH_LIBXSMM
static void part_libxsmm(const job *j, size_t first, size_t count)
{
    libxsmm_rne_convert_fp32_bf16((const float *)j->src + first, (libxsmm_bfloat16 *)j->dst + first, (unsigned)count);
}
static void run_libxsmm(const job *j) { split(j, part_libxsmm); }
#endif

#if BENCH_DNNL
static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t src, dst;
    dnnl_primitive_t reorder;
    bool ready;
} peer;

static void check_dnnl(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) die("oneDNN failed in", what);
}

static void dnnl_close(void)
{
    if (!peer.ready) return;
    dnnl_primitive_destroy(peer.reorder);
    dnnl_memory_destroy(peer.src);
    dnnl_memory_destroy(peer.dst);
    dnnl_stream_destroy(peer.stream);
    dnnl_engine_destroy(peer.engine);
    peer.ready = false;
}

static void dnnl_open(const job *j)
{
    dnnl_memory_desc_t src, dst;
    dnnl_primitive_desc_t reorder;
    dnnl_dims_t dims = { (dnnl_dim_t)j->n };
    const char *implementation = "";
    dnnl_close();
    check_dnnl(dnnl_engine_create(&peer.engine, dnnl_cpu, 0), "dnnl_engine_create");
    check_dnnl(dnnl_stream_create(&peer.stream, peer.engine, dnnl_stream_default_flags), "dnnl_stream_create");
    check_dnnl(dnnl_memory_desc_init_by_tag(&src, 1, dims, dnnl_f32, dnnl_a), "dnnl_memory_desc_init_by_tag");
    check_dnnl(dnnl_memory_desc_init_by_tag(&dst, 1, dims, dnnl_bf16, dnnl_a), "dnnl_memory_desc_init_by_tag");
    check_dnnl(dnnl_reorder_primitive_desc_create(&reorder, &src, peer.engine, &dst, peer.engine, NULL),
               "dnnl_reorder_primitive_desc_create");
    dnnl_primitive_desc_query(reorder, dnnl_query_impl_info_str, 0, (void *)&implementation);
    fprintf(stderr, "oneDNN reorder, %zu elements, %d threads: %s\n", j->n, j->threads, implementation);
    check_dnnl(dnnl_primitive_create(&peer.reorder, reorder), "dnnl_primitive_create");
    dnnl_primitive_desc_destroy(reorder);
    check_dnnl(dnnl_memory_create(&peer.src, &src, peer.engine, (void *)(uintptr_t)j->src), "dnnl_memory_create");
    check_dnnl(dnnl_memory_create(&peer.dst, &dst, peer.engine, j->dst), "dnnl_memory_create");
    peer.ready = true;
}

static void run_dnnl(const job *j)
{
    const dnnl_exec_arg_t args[2] = { { DNNL_ARG_FROM, peer.src }, { DNNL_ARG_TO, peer.dst } };
    (void)j;
    check_dnnl(dnnl_primitive_execute(peer.reorder, peer.stream, 2, args), "dnnl_primitive_execute");
    check_dnnl(dnnl_stream_wait(peer.stream), "dnnl_stream_wait");
}
#endif

/* ---- measuring ---- */

static int list_candidates(const bench_case *c, candidate *list)
{
    int n = 0;
    memset(list, 0, MOST_CANDIDATES * sizeof *list);
    list[n].name = "trnmath";
    list[n++].run = run_trnmath;
    list[n].name = "memcpy";
    list[n++].run = run_memcpy;
    if (!c->peers) return n;
    list[n].name = "plain C";
    list[n++].run = run_plain;
#if BENCH_LIBXSMM
    list[n].name = "libxsmm";
    list[n++].run = run_libxsmm;
#endif
#if BENCH_DNNL
    list[n].name = "oneDNN";
    list[n++].run = run_dnnl;
#endif
    return n;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

static uint64_t digest(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, sizeof word);
        h = (h ^ word) * 1099511628211u;
        h ^= h >> 29;
    }
    return h;
}

/* Small arrays are converted many times per measurement, so that the clock's own cost does not count. */
static void measure(const job *j, candidate *list, int candidates, int rounds)
{
    const size_t out = j->n * trn_format_bytes(j->what->to), repeat = j->n < (1u << 20) ? (8u << 20) / j->n : 1;
    uint64_t expected = 0;
    for (int c = 0; c < candidates; c++) {
        memset(j->dst, 0, out);
        list[c].run(j);
        const uint64_t found = digest(j->dst, out);
        if (c == 0) expected = found;
        list[c].same_bits = found == expected;
    }
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < candidates; k++) {
            candidate *c = &list[(k + r) % candidates];
            c->run(j); /* twice: brings the caches into the state that this candidate leaves behind */
            c->run(j);
            const double start = now();
            for (size_t i = 0; i < repeat; i++) c->run(j);
            c->speed[r] = (double)(j->n * repeat) / (now() - start);
            if (c->speed[r] > c->best) c->best = c->speed[r];
        }
}

static void report(const job *j, candidate *list, int candidates, int rounds, FILE *csv)
{
    double peer_ratio = 0;
    const double bytes = (double)bytes_moved(j->what);
    for (int c = 0; c < candidates; c++) {
        double ratio[MOST_ROUNDS];
        for (int r = 0; r < rounds; r++) ratio[r] = list[0].speed[r] / list[c].speed[r];
        const double middle = median(ratio, rounds);
        const char *bits = list[c].same_bits ? "same" : "differ";
        if (c == 0) bits = "reference";
        if (list[c].run == run_memcpy) bits = "-";
        printf("%-18s %9zu %2d  %-9s %8.3f %8.1f %9.3f  %s\n", j->what->name, j->n, j->threads, list[c].name,
               list[c].best * 1e-9, list[c].best * bytes * 1e-9, middle, bits);
        if (csv)
            fprintf(csv, "%s,%zu,%d,%s,%.4f,%.2f,%.4f,%s\n", j->what->name, j->n, j->threads, list[c].name,
                    list[c].best * 1e-9, list[c].best * bytes * 1e-9, middle, bits);
        if (c > 1 && (peer_ratio == 0 || middle < peer_ratio)) peer_ratio = middle;
    }
    if (peer_ratio > 0)
        printf("%-18s %9zu %2d  against the fastest peer: %.3f\n", j->what->name, j->n, j->threads, peer_ratio);
}

/* ---- the program ---- */

/* Finite, normal, of both signs, over 16 binades, so that no candidate meets its slow path. */
static void fill(void *data, trn_format format, size_t n)
{
    float *f = data;
    uint16_t *h = data;
    for (size_t i = 0; i < n; i++) {
        const uint32_t r = (uint32_t)((i + 1) * 0x9E3779B97F4A7C15u >> 32);
        const uint32_t bits = (r & 0x807fffffu) | (119u + (r >> 23 & 15u)) << 23;
        if (format == TRN_F32 || format == TRN_TF32) memcpy(f + i, &bits, sizeof bits);
        else h[i] = (uint16_t)trn_encode(format, trni_float(bits), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    }
}

static void *page_aligned(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes)) die("not enough memory for", "the arrays");
    memset(p, 0, bytes);
    return p;
}

static void print_host(int most_threads)
{
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), last = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const char *compiler = TRNI_CLANG ? "" : "gcc "; /* clang's own text begins with its name */
    printf("trnmath %s, kernels %s, compiled by %s%s, up to %d threads\n", TRN_VERSION, trn_isa_name(), compiler,
           __VERSION__, most_threads);
    printf("L2 %ld KiB, last cache %ld KiB\n", l2 / 1024, last / 1024);
    printf("plain C: one loop, %s, -O3 -march=native\n", convert_peer_compiler());
#if BENCH_DNNL
    const dnnl_version_t *v = dnnl_version();
    printf("oneDNN %d.%d.%d\n", v->major, v->minor, v->patch);
#else
    printf("oneDNN 2 was not there at build time: skipped\n");
#endif
#if BENCH_LIBXSMM
    printf("libxsmm %s\n", LIBXSMM_VERSION);
#else
    printf("libxsmm was not there at build time: skipped\n");
#endif
    printf("\n%-18s %9s %2s  %-9s %8s %8s %9s  %s\n", "conversion", "elements", "T", "who", "Gelem/s", "GB/s",
           "trnmath/it", "bits");
}

static void set_threads(int n)
{
#if defined(_OPENMP)
    omp_set_num_threads(n);
#else
    (void)n;
#endif
}

static int host_threads(void)
{
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static void usage(FILE *to)
{
    fprintf(to, "usage: convert_speed [--quick] [--only CONVERSION] [--csv FILE]\n"
                "  --quick     fewer rounds, and no arrays beyond 16 Mi elements\n"
                "  --only X    one conversion, as the table names it: f32->bf16\n"
                "  --csv FILE  the table, machine-readable\n");
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        { "f32->bf16", TRN_F32, TRN_BF16, TRN_NEAREST_EVEN, 0, true },
        { "bf16->f32", TRN_BF16, TRN_F32, TRN_NEAREST_EVEN, 0, false },
        { "f32->f16", TRN_F32, TRN_F16, TRN_NEAREST_EVEN, 0, false },
        { "f16->f32", TRN_F16, TRN_F32, TRN_NEAREST_EVEN, 0, false },
        { "f32->tf32", TRN_F32, TRN_TF32, TRN_NEAREST_EVEN, 0, false },
        { "bf16->f16", TRN_BF16, TRN_F16, TRN_NEAREST_EVEN, 0, false },
        { "f16->bf16", TRN_F16, TRN_BF16, TRN_NEAREST_EVEN, 0, false },
        { "f32->bf16 SR32", TRN_F32, TRN_BF16, TRN_STOCHASTIC, 32, false },
        { "f32->bf16 SR16", TRN_F32, TRN_BF16, TRN_STOCHASTIC, 16, false },
    };
    static candidate list[MOST_CANDIDATES];
    bool quick = false;
    const char *only = NULL;
    FILE *csv = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) quick = true;
        else if (strcmp(argv[i], "--help") == 0) return usage(stdout), 0;
        else if (strcmp(argv[i], "--version") == 0) return puts("convert_speed " TRN_VERSION), 0;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
        else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc) {
            csv = fopen(argv[++i], "w");
            if (!csv) die("cannot write", argv[i]);
        } else {
            fprintf(stderr, "convert_speed: unknown or incomplete option %s\n", argv[i]);
            return usage(stderr), 2;
        }
    }

    /* 16 Mi elements of f32 -> bf16 move 96 MiB. Where the last cache holds that, a larger array shows memory. */
    const long last_cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t sizes[3] = { 32768, 16u << 20, 0 };
    int size_count = 2;
    if (!quick && last_cache > (48 << 20)) sizes[size_count++] = 96u << 20;
    const size_t most = sizes[size_count - 1];
    const int threads = host_threads(), rounds = quick ? 7 : 15;
    void *src = page_aligned(most * 4), *dst = page_aligned(most * 4);
    print_host(threads);
    if (csv) fprintf(csv, "conversion,elements,threads,who,gelem_per_s,gb_per_s,trnmath_over_it,bits\n");
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        if (only && strcmp(only, cases[c].name) != 0) continue;
        fill(src, cases[c].from, most);
        for (int s = 0; s < size_count; s++)
            for (int t = 1; t <= 2 && t <= threads; t++) {
                const job j = { &cases[c], dst, src, sizes[s], t };
                set_threads(t);
                fprintf(stderr, "%s, %zu elements, %d threads\n", cases[c].name, j.n, t);
                const int n = list_candidates(&cases[c], list);
#if BENCH_DNNL
                if (cases[c].peers) dnnl_open(&j);
#endif
                measure(&j, list, n, rounds);
                report(&j, list, n, rounds, csv);
                fflush(stdout);
            }
    }
#if BENCH_DNNL
    dnnl_close();
#endif
    if (csv && fclose(csv)) die("cannot finish", "the CSV file");
    free(src);
    free(dst);
    return 0;
}

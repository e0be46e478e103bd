/* host.c - runs a product through the engine model on this host and times it beside its peers.
 * SPDX-License-Identifier: MIT
 *
 * Method: one process, all candidates in turn, several rounds. A round opens with a burst of pure multiply-adds. What
 * is reported is the best round and the median of the ratios within a round, because machines are shared and their
 * clocks wander; ratios within a round repeat to a few percent where absolute rates do not.
 */
#define _POSIX_C_SOURCE 200809L

#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <trnmath/trn_random.h>

#define BURST_S 0.010 /* of multiply-adds */
#define CALLS_S 0.020 /* at least so long, or one call */
#define NAP_S 0.008   /* the last candidate's threads go to sleep: libgomp's spin for up to 5 ms (measured) */

/* ---- operands ---- */

void tb_fill_random(float *x, int64_t n, uint64_t seed, uint64_t stream)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
#if defined(_OPENMP)
#pragma omp parallel for schedule(static)
#endif
    for (int64_t i = 0; i < (n + 3) / 4; i++) { /* one block of four words: trn_random_u32(seed, stream, 4i ...) */
        const uint32_t counter[4] = { (uint32_t)i, (uint32_t)((uint64_t)i >> 32), (uint32_t)stream,
                                      (uint32_t)(stream >> 32) };
        uint32_t word[4];
        trn_philox4x32_10(counter, key, word);
        for (int64_t j = 4 * i; j < n && j < 4 * i + 4; j++)
            x[j] = (float)(int32_t)(word[j & 3] & 0xffffff00u) * 0x1p-31f;
    }
}

void tb_fill_wide(float *x, int64_t n, uint64_t seed, uint64_t stream)
{
    tb_fill_random(x, n, seed, stream);
    for (int64_t i = 0; i < n; i++) x[i] = ldexpf(x[i], (int)(((uint64_t)i * 0x9e3779b97f4a7c15u >> 32) % 12) - 8);
}

static void *room_for(int64_t rows, int64_t columns, size_t bytes)
{
    const size_t size = (size_t)rows * (size_t)columns * bytes;
    return aligned_alloc(64, (size + 127) / 64 * 64);
}

/* ---- how much of a product is run ---- */

tb_slice tb_host_slice(int64_t m, int64_t n, int64_t k, double flops)
{
    const double elements = 0x1p26; /* a quarter of a GiB of binary32 for the larger operand */
    tb_slice s = { m, n, k };
    while (s.m * s.n > 1 &&
           (2.0 * (double)s.m * (double)s.n * (double)k > flops || (double)s.m * (double)s.n > elements ||
            (double)(s.m > s.n ? s.m : s.n) * (double)k > elements)) {
        int64_t *larger = s.m > s.n ? &s.m : &s.n;
        *larger = *larger > 128 ? (*larger / 2 + 63) / 64 * 64 : (*larger + 1) / 2;
    }
    return s;
}

/* Tiers, so that a machine's mood does not change the slice and with it the digest. */
double tb_host_flops(double rate, bool of_many)
{
    static const struct {
        double rate, flops;
    } tier[] = { { 0.1e9, 0x1p28 }, { 0.01e9, 0x1p24 }, { 0.001e9, 0x1p21 } };
    if (rate >= 1e9) return of_many ? 0x1p35 : 0x1p38;
    for (size_t i = 0; i < sizeof tier / sizeof tier[0]; i++)
        if (rate >= tier[i].rate) return tier[i].flops;
    return 0x1p18;
}

/* ---- timing ---- */

static void nap(double seconds)
{
    const struct timespec t = { 0, (long)(seconds * 1e9) };
    nanosleep(&t, NULL);
}

typedef struct candidate {
    void (*run)(void *context);
    void *context;
    int64_t calls;
    double rate[TB_MAX_ROUNDS]; /* flop/s */
} candidate;

static double time_calls(const candidate *c, int64_t calls)
{
    const double start = app_now();
    for (int64_t i = 0; i < calls; i++) c->run(c->context);
    return app_now() - start;
}

/* The first call pays for page faults and thread creation; the second says how many make a measurement. `known`: what
 * a call took already, when that is long enough to do without. */
static void warm_up(candidate *c, double known)
{
    if (known < 10 * CALLS_S) c->run(c->context);
    const double once = known < 10 * CALLS_S ? time_calls(c, 1) : known;
    const double calls = CALLS_S / (once > 1e-7 ? once : 1e-7);
    c->calls = calls < 1 ? 1 : (int64_t)ceil(calls);
}

static void time_round(candidate *c, int round, double flops_per_call)
{
    nap(NAP_S);
    c->rate[round] = flops_per_call * (double)c->calls / time_calls(c, c->calls);
}

/* ---- the candidates ---- */

static void run_trnmath(void *context) { trn_matmul(context); }

typedef struct peer_call {
    tb_peer_id id;
    void *prepared;
} peer_call;

static void run_peer(void *context)
{
    const peer_call *call = context;
    tb_peer_run(call->id, call->prepared);
}

typedef struct bench {
    candidate burst, trnmath, bf16, peer[TB_PEERS]; /* burst: its rates only */
    peer_call call[TB_PEERS];
    tb_operands x, y; /* the product's, and in BF16 */
    trn_matmul_args product, product_bf16;
    trn_numerics numerics;
    trn_tensor a, b; /* binary32 copies for the peers */
    float *c;
    double attention; /* sum over the rounds */
} bench;

static bool any_peer(const tb_host_options *options)
{
    bool any = false;
    for (int i = 0; i < TB_PEERS; i++) any = any || (options->peer[i] && tb_peer_version((tb_peer_id)i));
    return any;
}

static void prepare_peers(bench *bench, const trn_tensor *a, const trn_tensor *b, const tb_host_options *options)
{
    const int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
    if (!any_peer(options)) return;
    bench->a = tb_cast(a, TRN_F32);
    bench->b = tb_cast(b, TRN_F32);
    if (!bench->c) bench->c = room_for(m, n, sizeof(float));
    if (!bench->a.data || !bench->b.data || !bench->c) return;
    const tb_peer_job job = { m, n, k, bench->a.data, bench->b.data, bench->c, options->threads };
    for (int i = 0; i < TB_PEERS; i++) {
        if (!options->peer[i]) continue;
        bench->call[i].id = (tb_peer_id)i;
        bench->call[i].prepared = tb_peer_prepare((tb_peer_id)i, &job);
        bench->peer[i].run = run_peer;
        bench->peer[i].context = &bench->call[i];
        if (bench->call[i].prepared) warm_up(&bench->peer[i], 0);
    }
}

static void prepare_bf16(bench *bench, const trn_tensor *a, const trn_tensor *b, const tb_host_options *options)
{
    const tb_format *format = tb_format_find("bf16");
    trn_error error;
    if (!bench->c) bench->c = room_for(a->shape[0], b->shape[1], sizeof(float));
    if (!bench->c || !tb_operands_make(format, a, b, &bench->y, &error)) return;
    bench->product_bf16 = tb_operands_product(format, &bench->y, bench->c, options->numerics);
    bench->product_bf16.isa = options->isa;
    bench->bf16.run = run_trnmath;
    bench->bf16.context = &bench->product_bf16;
    warm_up(&bench->bf16, 0);
}

static void release(bench *bench)
{
    for (int i = 0; i < TB_PEERS; i++)
        if (bench->call[i].prepared) tb_peer_release((tb_peer_id)i, bench->call[i].prepared);
    tb_operands_free(&bench->x);
    tb_operands_free(&bench->y);
    free(bench->product.dst.data);
    free(bench->a.data);
    free(bench->b.data);
    free(bench->c);
    free(bench);
}

static void one_round(bench *bench, const tb_host_options *options, trn_isa isa, int round, double flops)
{
    nap(NAP_S);
    const tb_peak peak = tb_peak_burst(isa, options->threads, BURST_S);
    bench->burst.rate[round] = peak.flops_per_s;
    bench->attention += peak.attention;
    time_round(&bench->trnmath, round, flops);
    if (bench->bf16.run) time_round(&bench->bf16, round, flops);
    for (int i = 0; i < TB_PEERS; i++)
        if (bench->call[i].prepared) time_round(&bench->peer[i], round, flops);
}

static void summarise(const bench *bench, tb_host *r)
{
    r->flops_per_s = tb_best(bench->trnmath.rate, r->rounds);
    r->peak_flops_per_s = tb_best(bench->burst.rate, r->rounds);
    r->attention = bench->attention / r->rounds;
    r->share_of_peak = tb_median_ratio(bench->trnmath.rate, bench->burst.rate, r->rounds);
    r->bf16.there = bench->bf16.run != NULL;
    if (r->bf16.there) {
        r->bf16.flops_per_s = tb_best(bench->bf16.rate, r->rounds);
        r->bf16.ratio = tb_median_ratio(bench->trnmath.rate, bench->bf16.rate, r->rounds);
    }
    for (int i = 0; i < TB_PEERS; i++) {
        r->peer[i].there = bench->call[i].prepared != NULL;
        if (!r->peer[i].there) continue;
        r->peer[i].flops_per_s = tb_best(bench->peer[i].rate, r->rounds);
        r->peer[i].ratio = tb_median_ratio(bench->trnmath.rate, bench->peer[i].rate, r->rounds);
    }
}

static void time_all(bench *bench, const tb_host_options *options, double flops, tb_host *r)
{
    const trn_isa isa = tb_isa(options->isa);
    const double start = app_now();
    const int most = options->rounds ? options->rounds : TB_AUTO_ROUNDS;
    do {
        tb_step("%s, round %d", options->label, r->rounds + 1);
        one_round(bench, options, isa, r->rounds, flops);
        r->rounds++;
    } while (r->rounds < most && r->rounds < TB_MAX_ROUNDS &&
             (options->rounds || app_now() - start < options->seconds));
}

/* What has to be there before the first call; false with the reason in *error. */
static bool prepare(bench *bench, const trn_tensor *a, const trn_tensor *b, const tb_format *format,
                    const tb_host_options *options, trn_error *error)
{
    void *dst = room_for(a->shape[0], b->shape[1], sizeof(float));
    error->status = TRN_ENOSPC;
    snprintf(error->text, sizeof error->text, "not enough memory for %lld x %lld outputs", (long long)a->shape[0],
             (long long)b->shape[1]);
    bench->product.dst.data = dst;
    if (!dst || !tb_operands_make(format, a, b, &bench->x, error)) return false;
    error->status = tb_format_numerics(format, options->numerics, &bench->numerics);
    bench->product = tb_operands_product(format, &bench->x, dst, &bench->numerics);
    bench->product.isa = options->isa;
    bench->product.error = error;
    return error->status == TRN_OK;
}

double tb_unit_share(const trn_matmul_units *units, int64_t count)
{
    const int64_t all = units->vectors + units->half + units->chains + units->whole + units->pairs;
    return all ? (double)count / (double)all : 1;
}

void tb_host_measure(const trn_tensor *a, const trn_tensor *b, const tb_format *format, const tb_host_options *options,
                     tb_host *result)
{
    const int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
    memset(result, 0, sizeof *result);
    result->m = m, result->n = n, result->k = k;
    bench *bench = calloc(1, sizeof *bench);
    if (!bench) {
        result->error.status = TRN_ENOSPC;
        snprintf(result->error.text, sizeof result->error.text, "not enough memory to measure it");
        return;
    }
    const bool ready = prepare(bench, a, b, format, options, &result->error);
    bench->product.units = &result->units;
    const double start = app_now();
    result->ran = ready && trn_matmul(&bench->product) == TRN_OK;
    const double took = app_now() - start;
    bench->product.units = NULL;
    if (result->ran) {
        if (tb_unit_share(&result->units, result->units.vectors) < 1) result->unit = trn_isa_unit(options->isa);
        result->check = tb_check_product(&bench->product, options->seed, TB_SAMPLES);
        result->digest = tb_digest(&bench->product.dst);
        bench->trnmath.run = run_trnmath;
        bench->trnmath.context = &bench->product;
        warm_up(&bench->trnmath, took);
        if (options->beside_bf16) prepare_bf16(bench, a, b, options);
        prepare_peers(bench, &bench->x.a, &bench->x.b, options);
        time_all(bench, options, 2.0 * (double)m * (double)n * (double)k, result);
        summarise(bench, result);
    }
    release(bench);
}

/* ---- what this host is ---- */

/* Small enough for one thread, and the best of several tries: on a busy machine any of them may be interrupted. */
static double pilot(const trn_matmul_args *args)
{
    const double flops = 2.0 * (double)args->a.shape[0] * (double)args->b.shape[1] * (double)args->a.shape[1];
    const double begin = app_now();
    double most = 0;
    for (int i = 0; i < 8 && app_now() - begin < 0.1; i++) {
        const double start = app_now();
        if (trn_matmul(args) != TRN_OK) return HUGE_VAL;
        most = fmax(most, flops / (app_now() - start));
    }
    return most;
}

double tb_host_pilot(const tb_format *format, const tb_host_options *options)
{
    enum { M = 16, N = 16, K = 1024 };
    float *x = room_for(M + N, K, sizeof *x), *c = room_for(M, N, sizeof *c);
    double rate = HUGE_VAL;
    trn_numerics numerics;
    trn_error error;
    tb_operands made;
    if (x && c) {
        tb_fill_random(x, (M + N) * K, 0, 0);
        const trn_tensor a = trn_tensor_2d(TRN_F32, x, M, K), b = trn_tensor_2d(TRN_F32, x + M * K, K, N);
        if (tb_operands_make(format, &a, &b, &made, &error)) {
            trn_matmul_args args = tb_operands_product(format, &made, c, &numerics);
            args.isa = options->isa;
            if (tb_format_numerics(format, options->numerics, &numerics) == TRN_OK) rate = pilot(&args);
            tb_operands_free(&made);
        }
    }
    free(x);
    free(c);
    return rate;
}

const char *tb_host_processor(void)
{
    static char name[128];
    char line[256];
    FILE *f = name[0] ? NULL : app_open("/proc/cpuinfo");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f) fclose(f);
    if (!name[0]) strcpy(name, "an unnamed processor");
    return name;
}

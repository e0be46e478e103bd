/* vector_speed.c - the Vector engine's instructions against plain loops that move the same bytes, one thread.
 * SPDX-License-Identifier: MIT
 *
 *     vector_speed [--shape PxF] [--rounds N] [--isa NAME] [NAMES...]
 *
 * Each row is one instruction on tensors of [P, F] (default 4096x16384: memory; 128x512: the second cache), its time
 * per call, elements per second, and its bytes per second over those of two loops: one with ordinary stores, one whose
 * stores bypass the caches (where the host has it and the row writes). Rounds go over the instruction and both loops
 * in turn, because a shared machine does not run at one speed; the time is the processor's, ratios and times are
 * medians.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>

#include <trnmath/trn_vector_engine.h>

#include "bench/common/kernels.h"
#include "bench/common/measure.h"

#if TB_X86
#include <immintrin.h>
#endif

const char app_name[] = "vector_speed";

enum { ROUNDS_MOST = 101, TILES = 4 };

typedef struct bench {
    int64_t p, f;
    int rounds;
    trn_isa isa;
    trn_tensor f32[TILES], bf16[TILES], column, predicate;
    trn_vector_state state;
} bench;

typedef trn_status work(bench *b);

typedef struct row {
    const char *name;
    work *run;
    int read, written; /* bytes per element */
} row;

static void quit(const char *text)
{
    fprintf(stderr, "vector_speed: %s\n", text);
    exit(2);
}

/* ---- the instructions ---- */

static trn_status tensor_tensor(bench *b, const trn_tensor *t, trn_alu op)
{
    trn_tensor_tensor_args a = {
        .unlimited = true, .isa = b->isa, .dst = t[0], .data1 = t[1], .data2 = t[2], .op = op
    };
    return trn_tensor_tensor(&a);
}

static trn_status tensor_scalar(bench *b, const trn_tensor *t)
{
    trn_tensor_scalar_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .data = t[1] };
    a.op0 = TRN_ALU_MULTIPLY, a.operand0_tile = b->column, a.op1 = TRN_ALU_ADD, a.operand1 = 1.0f;
    return trn_tensor_scalar(&a);
}

static trn_status scalar_tensor_tensor(bench *b, const trn_tensor *t)
{
    trn_scalar_tensor_tensor_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .data = t[1], .operand1 = t[2] };
    a.op0 = TRN_ALU_MULTIPLY, a.operand0 = 3.0f, a.op1 = TRN_ALU_ADD;
    return trn_scalar_tensor_tensor(&a);
}

static trn_status tensor_copy(bench *b, const trn_tensor *dst, const trn_tensor *src)
{
    trn_tensor_copy_args a = { .unlimited = true, .isa = b->isa, .dst = *dst, .src = *src };
    return trn_tensor_copy(&a);
}

static trn_status predicated(bench *b, const trn_tensor *t)
{
    trn_tensor_copy_predicated_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .src = t[1] };
    a.predicate = b->predicate;
    return trn_tensor_copy_predicated(&a);
}

static trn_status fill(bench *b, const trn_tensor *t)
{
    trn_memset_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .value = 1.5f };
    return trn_memset(&a);
}

static trn_status reciprocal(bench *b, const trn_tensor *t)
{
    trn_reciprocal_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .data = t[1] };
    return trn_reciprocal(&a);
}

static trn_status reduce(bench *b, const trn_tensor *t, trn_alu op)
{
    trn_tensor_reduce_args a = { .unlimited = true, .isa = b->isa, .dst = b->column, .data = t[1], .op = op };
    return trn_tensor_reduce(&a);
}

static trn_status scalar_reduce(bench *b, const trn_tensor *t, trn_alu op)
{
    trn_tensor_scalar_reduce_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .data = t[1] };
    a.op0 = TRN_ALU_ADD, a.operand0 = 1.0f, a.reduce_op = op, a.reduce_res = b->column;
    return trn_tensor_scalar_reduce(&a);
}

static trn_status cumulative(bench *b, const trn_tensor *t)
{
    trn_tensor_scalar_cumulative_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .src = t[1] };
    a.op0 = TRN_ALU_MULTIPLY, a.imm0 = 0.5f, a.op1 = TRN_ALU_ADD;
    return trn_tensor_scalar_cumulative(&a);
}

static trn_status scan(bench *b, const trn_tensor *t)
{
    trn_tensor_tensor_scan_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .data0 = t[1], .data1 = t[2] };
    a.op0 = TRN_ALU_MULTIPLY, a.op1 = TRN_ALU_ADD;
    return trn_tensor_tensor_scan(&a);
}

static trn_status exponential(bench *b, const trn_tensor *t)
{
    trn_exponential_args a = { .unlimited = true, .isa = b->isa, .dst = t[0], .src = t[1], .reduce_res = b->column };
    a.max_value = 2.0f, a.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE;
    return trn_exponential(&a);
}

static trn_status range(bench *b, const trn_tensor *t)
{
    trn_range_select_args a = {
        .unlimited = true, .isa = b->isa, .dst = t[0], .on_true_tile = t[1], .reduce_res = b->column
    };
    a.comp_op0 = TRN_ALU_GREATER_EQUAL, a.comp_op1 = TRN_ALU_LESS, a.bound0 = t[3], a.bound1 = t[3];
    a.bound0.format = a.bound1.format = TRN_F32; /* any numbers will do */
    a.bound0.shape[1] = a.bound1.shape[1] = 1;
    return trn_range_select(&a);
}

#define ON_BOTH(name, call)                                                                                            \
    static trn_status name##_f32(bench *b)                                                                             \
    {                                                                                                                  \
        const trn_tensor *t = b->f32;                                                                                  \
        return call;                                                                                                   \
    }                                                                                                                  \
    static trn_status name##_bf16(bench *b)                                                                            \
    {                                                                                                                  \
        const trn_tensor *t = b->bf16;                                                                                 \
        return call;                                                                                                   \
    }
ON_BOTH(add, tensor_tensor(b, t, TRN_ALU_ADD))
ON_BOTH(maximum, tensor_tensor(b, t, TRN_ALU_MAXIMUM))
ON_BOTH(scalar, tensor_scalar(b, t))
ON_BOTH(scalar_tensor, scalar_tensor_tensor(b, t))
ON_BOTH(copy, tensor_copy(b, &t[0], &t[1]))
ON_BOTH(predicate, predicated(b, t))
ON_BOTH(fill, fill(b, t))
ON_BOTH(reciprocal, reciprocal(b, t))
ON_BOTH(sum, reduce(b, t, TRN_ALU_ADD))
ON_BOTH(most, reduce(b, t, TRN_ALU_MAXIMUM))
ON_BOTH(scalar_sum, scalar_reduce(b, t, TRN_ALU_ADD))
ON_BOTH(cumulative, cumulative(b, t))
ON_BOTH(scan, scan(b, t))
ON_BOTH(exponential, exponential(b, t))
ON_BOTH(range, range(b, t))
static trn_status narrow(bench *b) { return tensor_copy(b, &b->bf16[0], &b->f32[1]); }
static trn_status widen(bench *b) { return tensor_copy(b, &b->f32[0], &b->bf16[1]); }

static const row all[] = {
    { "tensor_tensor add f32", add_f32, 8, 4 },
    { "tensor_tensor add bf16", add_bf16, 4, 2 },
    { "tensor_tensor maximum f32", maximum_f32, 8, 4 },
    { "tensor_tensor maximum bf16", maximum_bf16, 4, 2 },
    { "tensor_scalar multiply, add f32", scalar_f32, 4, 4 },
    { "tensor_scalar multiply, add bf16", scalar_bf16, 2, 2 },
    { "scalar_tensor_tensor f32", scalar_tensor_f32, 8, 4 },
    { "scalar_tensor_tensor bf16", scalar_tensor_bf16, 4, 2 },
    { "tensor_copy f32", copy_f32, 4, 4 },
    { "tensor_copy bf16", copy_bf16, 2, 2 },
    { "tensor_copy f32 to bf16", narrow, 4, 2 },
    { "tensor_copy bf16 to f32", widen, 2, 4 },
    { "tensor_copy_predicated f32", predicate_f32, 9, 4 },
    { "tensor_copy_predicated bf16", predicate_bf16, 5, 2 },
    { "memset f32", fill_f32, 0, 4 },
    { "memset bf16", fill_bf16, 0, 2 },
    { "reciprocal f32", reciprocal_f32, 4, 4 },
    { "reciprocal bf16", reciprocal_bf16, 2, 2 },
    { "tensor_reduce add f32", sum_f32, 4, 0 },
    { "tensor_reduce add bf16", sum_bf16, 2, 0 },
    { "tensor_reduce maximum f32", most_f32, 4, 0 },
    { "tensor_reduce maximum bf16", most_bf16, 2, 0 },
    { "tensor_scalar_reduce add f32", scalar_sum_f32, 4, 4 },
    { "tensor_scalar_reduce add bf16", scalar_sum_bf16, 2, 2 },
    { "tensor_scalar_cumulative f32", cumulative_f32, 4, 4 },
    { "tensor_scalar_cumulative bf16", cumulative_bf16, 2, 2 },
    { "tensor_tensor_scan f32", scan_f32, 8, 4 },
    { "tensor_tensor_scan bf16", scan_bf16, 4, 2 },
    { "exponential f32", exponential_f32, 4, 4 },
    { "exponential bf16", exponential_bf16, 2, 2 },
    { "range_select f32", range_f32, 4, 4 },
    { "range_select bf16", range_bf16, 2, 2 },
};

/* ---- the loops ---- */

typedef uint64_t line __attribute__((vector_size(64), may_alias));

/* Pages of dst, and for each of them the share of src that belongs to it. */
TB_BODY void plain_body(char *dst, int64_t written, const char *src, int64_t read, int64_t pages)
{
    enum { lines = 64 };
    line sum = { 0 };
    for (int64_t i = 0; i < pages; i++) {
        line *to = (line *)(void *)(dst + i * written * lines);
        const line *from = (const line *)(const void *)(src + i * read * lines);
        for (int64_t k = 0; k < written; k++) to[k] = sum; /* of `lines` bytes each */
        for (int64_t k = 0; k < read; k++) sum ^= from[k];
    }
    volatile uint64_t kept = sum[0];
    (void)kept;
}
TB_KERNELS(plain, (char *dst, int64_t written, const char *src, int64_t read, int64_t pages),
           (dst, written, src, read, pages))

/* The same amount per pass, its stores past the caches: of 64 bytes each, because only those are worth it. */
#if TB_X86
static bool can_bypass(trn_isa isa) { return isa == TRN_ISA_AVX512; }

TB_AVX512 static void bypass(char *dst, int64_t written, const char *src, int64_t read, int64_t pages)
{
    static char page[64 * 64] __attribute__((aligned(64)));
    for (int64_t i = 0; i < pages; i++) {
        if (read) plain_avx512(page, 0, src + i * read * 64, read, 1);
        char *to = dst + i * written * 64;
        for (int64_t k = 0; k < written * 64; k += 64)
            _mm512_stream_si512((__m512i *)(void *)(to + k), _mm512_load_si512(page + k));
    }
    _mm_sfence();
}
#else
static bool can_bypass(trn_isa isa) { return (void)isa, false; }

static void bypass(char *dst, int64_t written, const char *src, int64_t read, int64_t pages)
{
    (void)dst, (void)written, (void)src, (void)read, (void)pages;
}
#endif

/* ---- measuring ---- */

/* Seconds of one call; small tensors are worked on many times. */
static double instruction(bench *b, const row *r, int calls)
{
    const double start = tb_thread_seconds();
    for (int i = 0; i < calls; i++)
        if (!app_worked(r->run(b), NULL)) quit(r->name);
    return (tb_thread_seconds() - start) / calls;
}

static double loop(const bench *b, const row *r, int calls, bool past)
{
    const int64_t pages = b->p * b->f / 64;
    char *dst = (char *)b->f32[0].data;
    const char *src = (const char *)b->f32[1].data; /* f32[2] follows */
    const double start = tb_thread_seconds();
    for (int i = 0; i < calls; i++) {
        if (past)
            bypass(dst, r->written, src, r->read, pages);
        else
            plain_for(b->isa)(dst, r->written, src, r->read, pages);
    }
    return (tb_thread_seconds() - start) / calls;
}

static void measure(bench *b, const row *r)
{
    const double elements = (double)(b->p * b->f);
    const int calls = elements > 4e6 ? 1 : (int)(4e6 / elements) + 1;
    const bool past = can_bypass(b->isa) && r->written && elements > 4e6;
    double ours[ROUNDS_MOST], over_plain[ROUNDS_MOST], over_past[ROUNDS_MOST];
    for (int i = -1; i < b->rounds; i++) {
        const double t = instruction(b, r, calls), plain = loop(b, r, calls, false);
        const double bypassed = past ? loop(b, r, calls, true) : plain;
        if (i < 0) continue; /* the first touches the memory */
        ours[i] = t, over_plain[i] = plain / t, over_past[i] = bypassed / t;
    }
    const double t = tb_median(ours, b->rounds);
    printf("%-34s %10.1f us %7.2f Gelem/s %7.1f GB/s  %5.2f", r->name, t * 1e6, elements / t * 1e-9,
           elements * (r->read + r->written) / t * 1e-9, tb_median(over_plain, b->rounds));
    if (past) printf("  %5.2f", tb_median(over_past, b->rounds));
    printf("\n");
}

static void *memory(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes)) quit("no memory");
    return p;
}

/* Numbers around 1, so that sums stay numbers. */
static void prepare(bench *b)
{
    const size_t count = (size_t)(b->p * b->f);
    float *x = (float *)memory(count * sizeof(float) * TILES);
    uint16_t *y = (uint16_t *)memory(count * sizeof(uint16_t) * TILES);
    for (size_t i = 0; i < count * TILES; i++) {
        x[i] = 0.5f + (float)(i % 509) * 0x1p-9f;
        y[i] = (uint16_t)trn_encode(TRN_BF16, x[i], TRN_TOWARD_ZERO, TRN_OVERFLOW_DEFAULT, 0);
    }
    for (int i = 0; i < TILES; i++) {
        b->f32[i] = trn_tensor_2d(TRN_F32, x + (size_t)i * count, b->p, b->f);
        b->bf16[i] = trn_tensor_2d(TRN_BF16, y + (size_t)i * count, b->p, b->f);
    }
    b->column = trn_tensor_2d(TRN_F32, memory((size_t)b->p * sizeof(float)), b->p, 1);
    b->predicate = trn_tensor_2d(TRN_U8, memory(count), b->p, b->f);
    for (size_t i = 0; i < count; i++) ((uint8_t *)b->predicate.data)[i] = (uint8_t)(i % 3);
    for (int64_t p = 0; p < b->p; p++) ((float *)b->column.data)[p] = 1.0f;
}

static bool wanted(int names, char **name, const char *text)
{
    for (int i = 0; i < names; i++)
        if (strstr(text, name[i])) return true;
    return names == 0;
}

int app_run(int argc, char **argv)
{
    static bench b = { .p = 4096, .f = 16384, .rounds = 9 };
    int first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        long long p, f;
        if (strcmp(argv[first], "--shape") == 0 && sscanf(argv[first + 1], "%lldx%lld", &p, &f) == 2 && p * f >= 64)
            b.p = p, b.f = f;
        else if (strcmp(argv[first], "--rounds") == 0 && atoi(argv[first + 1]) > 0)
            b.rounds = atoi(argv[first + 1]) < ROUNDS_MOST ? atoi(argv[first + 1]) : ROUNDS_MOST;
        else if (strcmp(argv[first], "--isa") == 0 && trn_isa_supported(trn_isa_from_name(argv[first + 1])))
            b.isa = trn_isa_from_name(argv[first + 1]);
        else
            quit("usage: vector_speed [--shape PxF] [--rounds N] [--isa NAME] [NAMES...]");
    }
    b.isa = tb_isa(b.isa);
    prepare(&b);
    printf("[%lld, %lld], %s, one thread; over the loop with ordinary stores, and over the one past the caches\n",
           (long long)b.p, (long long)b.f, trn_isa_text(b.isa));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (wanted(argc - first, argv + first, all[i].name)) measure(&b, &all[i]);
    return 0;
}

/* fuzz_core.c - random programs on a core: legal ones compute what their instructions do one after the other, illegal
 * ones end at the first step that is none.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_core [count] [seed]        default: 400 programs, 20000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Tiles of many formats and sizes in SBUF and PSUM, parts of them, tiles that were freed, partitions where none may
 * begin, formats and sizes that do not fit. Each step is done a second time by the plain function on a copy of the
 * core's memory, and the memories are compared: after a success of both, they are the same; what the core refuses has
 * written nothing, has one sentence, and ends the program. Clocks are finite and never run backwards.
 */
#define _DEFAULT_SOURCE 1

#include <math.h>

#include "fuzz/long.h"
#include "trnmath/trn_core.h"

enum { TILES = 8, STEPS = 24, KINDS = 10 };

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

static trn_core core;
static char *memory, *shadow;
static size_t memory_bytes;
static trn_tensor tile[TILES], numbers; /* numbers: [1, 8], where transfers may begin */
static long done[KINDS], refused[KINDS];

static void say(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\n", what, detail);
    fuzzing_last_words();
    exit(1);
}

/* ---- memory ---- */

static trn_format some_format(void)
{
    static const trn_format of[] = { TRN_F32, TRN_F32, TRN_BF16, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_I32, TRN_U8 };
    return of[below((int)(sizeof of / sizeof of[0]))];
}

static void make_tiles(void)
{
    for (int i = 0; i < TILES; i++) {
        const bool psum = i >= TILES - 2;
        const int partitions = one_in(3) ? 128 : 32 * (1 + below(4)), elements = 1 + below(psum ? 512 : 300);
        tile[i] = psum ? trn_core_psum(&core, "p", TRN_F32, partitions, elements)
                       : trn_core_sbuf(&core, "s", some_format(), partitions, elements);
    }
}

/* The same place in the copy. */
static trn_tensor in_shadow(trn_tensor t)
{
    t.data = t.data ? shadow + ((char *)t.data - memory) : NULL;
    return t;
}

/* Most tiles hold something: any bits by DMA, or a number where DMA does not lead. Reading the others is refused. */
static void fill_tiles(void)
{
    static uint32_t noise[128 * 512];
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) noise[i] = (uint32_t)cases_next(&rng);
    static int32_t places[8] = { 0, 1, 2, 5, 30, 64, 500, -1 };
    trn_core_hbm(&core, "noise", trn_tensor_1d(TRN_U32, noise, sizeof noise / sizeof noise[0]));
    const trn_tensor known = trn_core_hbm(&core, "places", trn_tensor_2d(TRN_I32, places, 1, 8));
    numbers = trn_core_sbuf(&core, "numbers", TRN_I32, 1, 8);
    const trn_dma_copy_args load = { .dst = numbers, .src = known };
    if (trn_core_dma_copy(&core, &load) != TRN_OK) say("dma_copy", "the numbers cannot be loaded");
    for (int i = 0; i < TILES; i++) {
        if (one_in(12)) continue;
        const trn_memset_args zero = { .dst = tile[i], .value = 3 };
        const trn_tensor some = trn_tensor_2d(tile[i].format, noise, tile[i].shape[0], tile[i].shape[1]);
        const trn_dma_copy_args copy = { .dst = tile[i], .src = some };
        if ((i < TILES - 2 ? trn_core_dma_copy(&core, &copy) : trn_core_memset(&core, &zero)) != TRN_OK) {
            const char *text;
            trn_core_status(&core, &text);
            say("a tile cannot be filled", text);
        }
    }
}

/* All tiles (the core's own notes lie in the same memory). */
static void compare(const char *name)
{
    for (int i = 0; i < TILES; i++) {
        const trn_tensor other = in_shadow(tile[i]);
        const size_t size = trn_format_bytes(tile[i].format), row = (size_t)tile[i].shape[1] * size;
        for (int64_t p = 0; tile[i].data && p < tile[i].shape[0]; p++) {
            const ptrdiff_t at = (ptrdiff_t)(p * tile[i].stride[0]) * (ptrdiff_t)size;
            if (memcmp((char *)tile[i].data + at, (char *)other.data + at, row) != 0)
                say(name, "a tile is not what the plain instruction makes of it");
        }
    }
}

/* ---- operands: a part of a tile, mostly one that fits `like` ---- */

static trn_tensor part_of(trn_tensor t, int64_t partitions, int64_t elements)
{
    int64_t first = 0;
    if (one_in(40))
        first = 1 + below(100); /* where no instruction may begin, or past the end */
    else if (t.shape[0] > 32 && partitions <= 32 && one_in(2))
        first = 32 * below((int)(t.shape[0] / 32));
    const int64_t left = t.shape[0] - first;
    if (left > 0) t = trn_tensor_slice(t, 0, first, partitions < left ? partitions : left);
    if (elements < t.shape[1])
        t = trn_tensor_slice(t, 1, one_in(2) ? below((int)(t.shape[1] - elements)) : 0, elements);
    return t;
}

static trn_tensor some_tile(void) { return tile[below(TILES)]; }

static trn_tensor with_data(int64_t partitions, int64_t elements)
{
    trn_tensor t = some_tile();
    for (int tries = 0; tries < 6 && (t.shape[0] < partitions || t.shape[1] < elements); tries++) t = some_tile();
    return part_of(t, partitions, elements);
}

/* ---- steps: on the core, and plainly ---- */

#define STEP(kind, instruction, ...)                                                                                   \
    do {                                                                                                               \
        trn_##instruction##_args a = { __VA_ARGS__ };                                                                  \
        said = trn_core_##instruction(&core, &a);                                                                      \
        trn_##instruction##_args b = a;                                                                                \
        b.generation = core.spec->generation;                                                                          \
        MOVED(b)                                                                                                       \
        name = #instruction;                                                                                           \
        if (said == TRN_OK && trn_##instruction(&b) != TRN_OK) say(name, "only the core takes it");                    \
    } while (0)

/* A part of a tile that begins where a number says, or (of: rank 0) one that does not. */
static trn_dma_offset some_offset(trn_tensor *part, int64_t partitions, int64_t elements)
{
    trn_dma_offset o = { .of = some_tile(), .dim = below(2) };
    if (one_in(3)) return (trn_dma_offset){ .dim = 0 };
    o.value = trn_tensor_slice(numbers, 1, below(8), 1);
    if (o.of.shape[0] < partitions || o.of.shape[1] < elements)
        o.of = *part;
    else
        *part = trn_tensor_slice(trn_tensor_slice(o.of, 0, 0, partitions), 1, 0, elements);
    return o;
}

static void take_step(void)
{
    const int kind = below(KINDS);
    const int64_t partitions = one_in(2) ? 128 : 32 * (1 + below(3)), elements = 1 + below(64);
    const trn_tensor dst = with_data(partitions, elements), x = with_data(partitions, elements),
                     y = with_data(partitions, elements);
    const trn_alu op = (trn_alu)(1 + below(TRN_ALU_COUNT - 1));
    trn_status said = TRN_OK;
    const char *name = "", *text = "";
    switch (kind) {
#define MOVED(b) (b).dst = in_shadow((b).dst);
    case 0: STEP(kind, memset, .dst = dst, .value = (float)below(9) - 4); break;
#undef MOVED
#define MOVED(b) (b).dst = in_shadow((b).dst), (b).src = in_shadow((b).src);
    case 1: STEP(kind, tensor_copy, .dst = dst, .src = x); break;
    case 2:
        STEP(kind, activation, .dst = dst, .src = x, .op = one_in(2) ? TRN_ACT_SQUARE : TRN_ACT_EXP, .scale = 0.5f);
        break;
    case 3: STEP(kind, dma_copy, .dst = dst, .src = x); break;
#undef MOVED
#define MOVED(b)                                                                                                       \
    (b).dst = in_shadow((b).dst), (b).src = in_shadow((b).src);                                                        \
    if ((b).dst_offset.value.rank)                                                                                     \
        (b).dst_offset.of = in_shadow((b).dst_offset.of), (b).dst_offset.value = in_shadow((b).dst_offset.value);      \
    if ((b).src_offset.value.rank)                                                                                     \
        (b).src_offset.of = in_shadow((b).src_offset.of), (b).src_offset.value = in_shadow((b).src_offset.value);
    case 4: {
        trn_tensor to = dst, from = x;
        const trn_dma_offset dst_offset = some_offset(&to, partitions, elements),
                             src_offset = some_offset(&from, partitions, elements);
        STEP(kind, dma_copy, .dst = to, .src = from, .dst_offset = dst_offset, .src_offset = src_offset,
             .oob_mode = one_in(2) ? TRN_OOB_SKIP : TRN_OOB_ERROR);
        break;
    }
#undef MOVED
#define MOVED(b) (b).dst = in_shadow((b).dst), (b).src = in_shadow((b).src);
    case 5: STEP(kind, max8, .dst = with_data(partitions, 8), .src = x); break;
#undef MOVED
#define MOVED(b) (b).dst = in_shadow((b).dst), (b).data1 = in_shadow((b).data1), (b).data2 = in_shadow((b).data2);
    case 6: STEP(kind, tensor_tensor, .dst = dst, .data1 = x, .data2 = y, .op = op); break;
#undef MOVED
#define MOVED(b) (b).dst = in_shadow((b).dst), (b).data = in_shadow((b).data);
    case 7: STEP(kind, tensor_scalar, .dst = dst, .data = x, .op0 = op, .operand0 = 1.5f); break;
    case 8: STEP(kind, tensor_reduce, .dst = with_data(partitions, 1), .data = x, .op = op, .axes = 1); break;
#undef MOVED
    default: {
        bool there = false, here = false;
#define MOVED(b)                                                                                                       \
    (b).dst = in_shadow((b).dst), (b).stationary = in_shadow((b).stationary), (b).moving = in_shadow((b).moving);      \
    (b).psum_written = (b).psum_written ? &here : NULL;
        STEP(kind, nc_matmul, .dst = part_of(tile[TILES - 1], elements, elements), .stationary = x, .moving = y,
             .psum_written = one_in(2) ? &there : NULL);
#undef MOVED
    }
    }
    ++*(said == TRN_OK ? &done[kind] : &refused[kind]);
    if (said != trn_core_status(&core, &text)) say(name, "its status is not the core's");
    if (said != TRN_OK && strlen(text) < 10) say(name, "no sentence");
    compare(name);
}

static void run_program(void)
{
    static const trn_generation generation[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    const trn_core_args args = { .generation = generation[below(3)], .memory = memory, .memory_bytes = memory_bytes };
    double before = 0;
    trn_core_report report;
    memset(memory, 0, memory_bytes);
    if (trn_core_begin(&core, &args) != TRN_OK) say("trn_core_begin", "refused");
    make_tiles();
    fill_tiles();
    memcpy(shadow, memory, memory_bytes);
    for (int step = 0; step < STEPS && trn_core_status(&core, NULL) == TRN_OK; step++) {
        if (one_in(60)) trn_core_free(&core, tile[below(TILES)]); /* its next use is refused */
        take_step();
        trn_core_report_of(&core, &report);
        if (!isfinite(report.time_s) || report.time_s < before) say("trn_core_report_of", "time runs backwards");
        before = report.time_s;
    }
    trn_core_end(&core);
}

int main(int argc, char **argv)
{
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1))
        if (trn_core_memory_bytes(g) > memory_bytes) memory_bytes = trn_core_memory_bytes(g);
    memory = malloc(memory_bytes);
    shadow = malloc(memory_bytes);
    if (!memory || !shadow) return fprintf(stderr, "no memory for two cores\n"), 2;
    fuzzing_start(argc, argv, 400, 20000);
    while (fuzzing_next(&rng)) run_program();
    const long count = fuzzing_end();
    bool all = true;
    for (int k = 0; k < KINDS; k++) {
        printf("instruction %d: %ld done, %ld refused\n", k, done[k], refused[k]);
        all = all && done[k] && refused[k];
    }
    free(memory);
    free(shadow);
    return all || count < 200 ? 0 : 1; /* a core that takes everything, or nothing, is not being tested */
}

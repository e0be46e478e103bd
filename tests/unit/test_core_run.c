/* test_core_run.c - kernels on a core: what it refuses, in which words, when each instruction begins, and what adds up.
 * SPDX-License-Identifier: MIT
 *
 * Random programs are timed a second time by a simulator that shares nothing with trnmath/ but the durations: it keeps
 * a list of all instructions and looks through all of it, byte by byte of what they touch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_core.h"
#include "twin/cases.h"

static trn_core core;
static void *room;

static void begin(trn_generation generation)
{
    trn_core_args args;
    memset(&args, 0, sizeof args);
    args.generation = generation;
    args.memory_bytes = trn_core_memory_bytes(generation);
    args.memory = room = realloc(room, args.memory_bytes);
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
}

static void expect(const char *sentence)
{
    const char *text;
    if (trn_core_status(&core, &text) == TRN_OK) fail_msg("nothing failed; expected: %s", sentence);
    assert_string_equal(text, sentence);
}

static void fine(void)
{
    const char *text;
    if (trn_core_status(&core, &text) != TRN_OK) fail_msg("%s", text);
}

static void set(trn_tensor t, float value)
{
    const trn_memset_args args = { .dst = t, .value = value };
    trn_core_memset(&core, &args);
}

static void copy(trn_tensor dst, trn_tensor src, trn_engine engine)
{
    const trn_tensor_copy_args args = { .dst = dst, .src = src, .engine = engine };
    trn_core_tensor_copy(&core, &args);
}

static void move(trn_tensor dst, trn_tensor src)
{
    const trn_dma_copy_args args = { .dst = dst, .src = src };
    trn_core_dma_copy(&core, &args);
}

static trn_tensor tile(const char *name, int64_t p, int64_t f) { return trn_core_sbuf(&core, name, TRN_F32, p, f); }

/* What nothing has written may be copied, and not summed up. */
static void sum(trn_tensor data)
{
    const trn_tensor_reduce_args args = { .dst = tile("sum", data.shape[0], 1), .data = data, .op = TRN_ALU_ADD };
    trn_core_tensor_reduce(&core, &args);
}

/* To HBM, where what nothing has written counts; sums carry it that far. */
static trn_status store(trn_tensor data, trn_error *error)
{
    static float out[128 * 64];
    const trn_tensor to = trn_core_hbm(&core, "out", trn_tensor_nd(TRN_F32, out, data.rank, data.shape));
    const trn_dma_copy_args args = { .dst = to, .src = data, .error = error };
    return trn_core_dma_copy(&core, &args);
}

/* ---- begin, end ---- */

static void a_core_takes_the_memory_that_it_asks_for(void **state)
{
    (void)state;
    trn_error error;
    char small[64];
    trn_core_args args = {
        .generation = TRN_TRAINIUM1, .memory = small, .memory_bytes = sizeof small, .error = &error
    };
    assert_int_equal(trn_core_begin(&core, &args), TRN_ENOSPC);
    assert_non_null(strstr(error.text, "memory_bytes is 64; a core of Trainium1 takes "));
    args.memory = NULL;
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
    trn_core_end(&core);
    args.generation = (trn_generation)9;
    assert_int_equal(trn_core_begin(&core, &args), TRN_EINVAL);
    assert_string_equal(error.text, "generation is 9, not a generation");
    assert_int_equal(trn_core_memory_bytes((trn_generation)9), 0);
    args.generation = TRN_GENERATION_DEFAULT;
    args.rounding = (trn_rounding)77;
    assert_int_equal(trn_core_begin(&core, &args), TRN_EINVAL);
}

/* What a core keeps lies within the memory that it asks for, and no two parts of it share a byte. */
static void parts_of_a_core_lie_apart(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        const trni_memory *const m = core.memory;
        const struct { const void *at; size_t bytes; } part[] = {
            { m[0].base, (size_t)(128 * m[0].pitch) }, { m[0].written, (size_t)(128 * m[0].pitch / 8) },
            { m[0].tile, TRNI_TILES * sizeof(trni_tenant) },
            { m[0].segment[0], 4 * TRNI_SEGMENTS * sizeof(trni_segment) },
            { m[1].base, (size_t)(128 * m[1].pitch) }, { m[1].written, (size_t)(128 * m[1].pitch / 8) },
            { m[1].by_matmul, (size_t)(128 * m[1].pitch / 8) },
            { m[1].tile, TRNI_TILES * sizeof(trni_tenant) },
            { m[1].segment[0], 4 * TRNI_SEGMENTS * sizeof(trni_segment) },
            { core.cells, sizeof(trni_cells) }, { core.journal, TRNI_JOURNAL * sizeof(trni_poison_entry) },
            { core.part, TRNI_CORE_PARTS * sizeof(trn_tensor) }, { core.hbm, TRNI_HBM_TENSORS * sizeof(trni_hbm) },
            { core.history.access, TRNI_ACCESSES * sizeof(trni_access) },
            { core.indirect, sizeof(trni_indirect) },
            { core.indirect ? core.indirect->room : NULL, TRNI_INDIRECT_ROOM },
        };
        const char *const first = (const char *)room, *const end = first + trn_core_memory_bytes(g);
        for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
            const char *const at = (const char *)part[i].at;
            if (!at) continue;
            assert_true(at >= first && at + part[i].bytes <= end);
            for (size_t k = 0; k < i; k++) {
                const char *const other = (const char *)part[k].at;
                if (other && at < other + part[k].bytes && other < at + part[i].bytes)
                    fail_msg("%s: parts %zu and %zu meet", trn_generation_name(g), k, i);
            }
        }
        assert_int_equal(core.indirect != NULL, g >= TRN_TRAINIUM3);
    }
}

/* ---- what it refuses ---- */

static void tiles_that_no_machine_has_are_refused(void **state)
{
    (void)state;
    static const struct { trn_core_tile_args args; const char *sentence;
    } row[] = {
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 129, 4 } },
          "tile 'x' has 129 partitions; there are 128" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 1, 65536 } },
          "tile 'x' has 262144 bytes per partition; SBUF of Trainium2 has 229376" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 128, 4097 }, .space = TRN_SPACE_PSUM },
          "tile 'x' has 16388 bytes per partition; PSUM of Trainium2 has 16384" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 8, 4 }, .start_partition = 8 },
          "tile 'x' would take 8 partitions from 8; tiles begin at partition 0, 32, 64 or 96" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 33, 4 }, .start_partition = 32 },
          "tile 'x' would take 33 partitions from 32; more than 32 partitions begin at 0 or 64" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 65, 4 }, .start_partition = 64 },
          "tile 'x' would take 65 partitions from 64; more than 64 partitions begin at 0" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 1, 4 }, .start_partition = -32 },
          "tile 'x' would take 1 partitions from -32; partitions count from 0" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 1, 4 }, .start_partition = 128 },
          "tile 'x' would take 1 partitions from 128; there are 128" },
        { { .name = "x", .format = TRN_F32, .rank = 6, .shape = { 1, 1, 1, 1, 1, 1 } },
          "tile 'x' has rank 6; tiles have partitions and up to four more axes" },
        { { .name = "x", .format = TRN_F32, .rank = 2, .shape = { 1, -1 } }, "tile 'x' has size -1 on axis 1" },
        { { .name = "x", .rank = 1, .shape = { 1 } }, "tile 'x' has no valid format (0)" },
        { { .name = "x", .format = TRN_F32, .rank = 1, .shape = { 1 }, .space = TRN_SPACE_HBM },
          "tile 'x': space is neither SBUF nor PSUM" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor lost = trn_core_tile(&core, &row[i].args);
        const bool fits = strstr(row[i].sentence, "would take") != NULL; /* it would, at other partitions */
        assert_int_equal(lost.rank, fits ? row[i].args.rank : 0);
        if (fits) assert_ptr_equal(lost.data, core.memory[0].base);
        expect(row[i].sentence);
    }
}

static void failures_stick(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_error mine = { TRN_OK, "" };
    trn_tensor x = tile("x", 128, 8), y = tile("y", 128, 8);
    set(x, 1);
    assert_int_equal(store(y, &mine), TRN_EINVAL);
    assert_string_equal(mine.text,
                        "instruction 1, dma_copy: src reads partition 0, element 0 of 'y', which nothing has written");
    set(y, 1);
    copy(x, y, TRN_ENGINE_UNKNOWN);
    assert_int_equal(tile("z", 1, 1).rank, 2);
    expect(mine.text);
    assert_int_equal(core.instructions, 1);
    const trn_memset_args other = { .dst = x, .generation = TRN_TRAINIUM3 };
    begin(TRN_TRAINIUM2);
    trn_core_memset(&core, &other);
    expect("instruction 0, memset: it is for generation Trainium3, the core is Trainium2");
}

/* Every byte of every element that the shape names lies in the core's memory. */
static int64_t touch_all(trn_tensor t, const trn_core *of, trn_space space)
{
    const int64_t bytes = (int64_t)trn_format_bytes(t.format);
    const trni_memory *m = &of->memory[space];
    int64_t index[TRN_MAX_RANK] = { 0 }, touched = 0;
    for (;;) {
        volatile char *at = (char *)t.data;
        for (int i = 0; i < t.rank; i++) at += index[i] * t.stride[i] * bytes;
        for (int64_t k = 0; k < bytes; k++) {
            assert_true(at + k >= m->base && at + k < m->base + TRN_PARTITIONS * m->pitch);
            at[k] = at[k];
        }
        touched++;
        int i = t.rank - 1;
        for (; i >= 0 && ++index[i] == t.shape[i]; i--) index[i] = 0;
        if (i < 0) return touched;
    }
}

/* In a core's own memory, so that a sanitizer sees where it ends. */
static void fail_and_touch(trn_generation generation, trn_space space)
{
    const trn_core_args args = { .generation = generation };
    trn_core own;
    assert_int_equal(trn_core_begin(&own, &args), TRN_OK);
    const int64_t most = own.memory[space].partition_bytes;
    const trn_core_tile_args all = { .space = space, .name = "all", .format = TRN_U8, .rank = 2,
                                     .shape = { 128, most } };
    const trn_tensor first = trn_core_tile(&own, &all), lost = trn_core_tile(&own, &all); /* no room */
    const trn_error failure = own.failure;
    assert_int_equal(failure.status, TRN_ELIMIT);
    assert_ptr_equal(lost.data, first.data);
    assert_int_equal(touch_all(lost, &own, space), 128 * most);
    const trn_core_tile_args deep = { .space = space, .format = TRN_BF16, .rank = 5, .shape = { 97, 2, 3, 5, 7 },
                                      .start_partition = 32 };
    const trn_tensor five = trn_core_tile(&own, &deep);
    assert_int_equal(five.rank, 5);
    assert_int_equal(touch_all(five, &own, space), 97 * 210);
    const trn_core_tile_args empty = { .space = space, .format = TRN_F32, .rank = 2, .shape = { 128, 0 } };
    assert_int_equal(trn_core_tile(&own, &empty).rank, 2);
    assert_null(trn_core_tile(&own, &empty).data);
    const trn_core_tile_args large = { .space = space, .format = TRN_U8, .rank = 2, .shape = { 1, most + 1 } };
    assert_int_equal(trn_core_tile(&own, &large).rank, 0);

    const int64_t used = own.memory[space].used[0];
    trn_core_free(&own, lost); /* nobody's tile: nothing is freed, nothing else is said */
    trn_core_release(&own, 0);
    assert_int_equal(trn_core_written(&own, lost), TRN_ELIMIT);
    assert_int_equal(own.memory[space].used[0], used);
    assert_memory_equal(&own.failure, &failure, sizeof failure);
    trn_core_end(&own);
    assert_int_equal(trn_core_tile(&own, &deep).rank, 0);
}

static void tiles_have_memory_after_a_failure(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1))
        for (int space = 0; space < 2; space++) fail_and_touch(g, (trn_space)space);

    static float host[8];
    const trn_tensor here = trn_tensor_2d(TRN_F32, host, 2, 4);
    begin(TRN_TRAINIUM2);
    trn_core_hbm(&core, "a", here);
    const trn_tensor lost = trn_core_hbm(&core, "b", trn_tensor_1d(TRN_F32, host + 4, 8));
    expect("HBM tensor 'b' overlaps 'a'; register all of it, once");
    assert_ptr_equal(lost.data, host + 4);
    assert_int_equal(lost.shape[0], 8);
    const trn_tensor again = trn_core_hbm(&core, "c", here);
    assert_memory_equal(&again, &here, sizeof here);
    assert_int_equal(trn_core_hbm(&core, "d", trn_tensor_2d(TRN_F32, NULL, 2, 4)).rank, 0);
    assert_int_equal(core.hbm_tensors, 1);
    begin(TRN_TRAINIUM2);
    assert_int_equal(trn_core_hbm(&core, "d", trn_tensor_2d(TRN_F32, host, -1, 4)).rank, 0);
    expect("d has negative size -1 on axis 0");

    trn_core none; /* it could not begin: there is no memory */
    const trn_core_args wrong = { .generation = (trn_generation)9 };
    assert_int_equal(trn_core_begin(&none, &wrong), TRN_EINVAL);
    assert_int_equal(trn_core_sbuf(&none, "x", TRN_F32, 128, 4).rank, 0);
    assert_int_equal(trn_core_psum(&none, "x", TRN_F32, 128, 0).rank, 0);
    assert_ptr_equal(trn_core_hbm(&none, "x", here).data, host);
}

static void reads_of_what_nothing_has_written_are_told(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor x = tile("x", 128, 64), y;
    set(trn_tensor_slice(x, 1, 0, 32), 1);
    set(trn_tensor_slice(trn_tensor_slice(x, 0, 0, 32), 1, 32, 32), 2);
    sum(trn_tensor_slice(x, 1, 0, 32)); /* no false alarm */
    fine();
    store(x, NULL);
    expect("instruction 3, dma_copy: src reads partition 32, element 32 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* even elements only, then odd ones */
    x = tile("x", 128, 64);
    trn_tensor pairs = trn_tensor_split(x, 1, 2);
    set(trn_tensor_slice(pairs, 2, 0, 1), 1);
    sum(trn_tensor_slice(pairs, 2, 0, 1));
    fine();
    store(trn_tensor_slice(pairs, 2, 1, 1), NULL);
    expect("instruction 2, dma_copy: src reads partition 0, element 1 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* what the caller writes himself */
    x = tile("x", 2, 2);
    ((float *)x.data)[0] = 1;
    assert_int_equal(trn_core_written(&core, trn_tensor_slice(trn_tensor_slice(x, 0, 0, 1), 1, 0, 1)), TRN_OK);
    store(trn_tensor_slice(x, 1, 0, 1), NULL);
    expect("instruction 0, dma_copy: src reads partition 1, element 0 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* a predicate writes where it holds */
    x = tile("x", 1, 4);
    y = tile("y", 1, 4);
    set(y, 0);
    trn_tensor holds = trn_core_sbuf(&core, "holds", TRN_U8, 1, 4);
    set(holds, 0);
    set(trn_tensor_slice(holds, 1, 1, 2), 1);
    const trn_tensor_copy_predicated_args where = { .dst = x, .src = y, .predicate = holds };
    trn_core_tensor_copy_predicated(&core, &where);
    sum(trn_tensor_slice(x, 1, 1, 2));
    fine();
    store(x, NULL);
    expect("instruction 5, dma_copy: src reads partition 0, element 0 of 'x', which nothing has written");
}

/* A kernel that transposes a tile it has written in part, and leaves the rest alone afterwards. */
static void a_tile_may_hold_anything(void **state)
{
    (void)state;
    const trn_core_tile_args loose = { .name = "loose", .format = TRN_F32, .rank = 2, .shape = { 32, 32 },
                                       .no_poison = true };
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_tile(&core, &loose), y = tile("y", 32, 32);
    set(trn_tensor_slice(x, 0, 0, 8), 1);
    const trn_vector_transpose_args turn = { .dst = y, .data = x };
    trn_core_vector_transpose(&core, &turn);
    copy(x, y, TRN_ENGINE_UNKNOWN);
    fine();
    assert_true(((float *)y.data)[7] == 1.0f);
    store(tile("z", 32, 32), NULL); /* others are looked at as before */
    expect("instruction 3, dma_copy: src reads partition 0, element 0 of 'z', which nothing has written");

    begin(TRN_TRAINIUM2); /* and what a matmul adds to */
    trn_core_tile_args sums = loose;
    sums.space = TRN_SPACE_PSUM;
    const trn_tensor w = tile("w", 32, 32), acc = trn_core_tile(&core, &sums);
    set(w, 1);
    const trn_nc_matmul_args add = { .dst = acc, .stationary = w, .moving = w, .accumulate = true };
    trn_core_nc_matmul(&core, &add);
    fine();
}

static void scattered_rows_are_written_and_others_are_not(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    static float in[2 * 8], out[3 * 8];
    static uint32_t rows[2] = { 5, 3 };
    trn_tensor x = tile("x", 8, 8), y = tile("y", 8, 8), index = trn_core_sbuf(&core, "rows", TRN_U32, 2, 1);
    move(index, trn_core_hbm(&core, "rows", trn_tensor_2d(TRN_U32, rows, 2, 1)));
    const trn_dma_copy_args scatter = { .dst = x, .src = trn_core_hbm(&core, "in", trn_tensor_2d(TRN_F32, in, 2, 8)),
                                        .dst_index = index };
    trn_core_dma_copy(&core, &scatter);
    fine();
    move(trn_tensor_slice(y, 0, 3, 1), trn_tensor_slice(x, 0, 3, 1));
    move(trn_tensor_slice(y, 0, 5, 1), trn_tensor_slice(x, 0, 5, 1));
    fine();
    move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, 3, 8)), trn_tensor_slice(x, 0, 3, 3));
    expect("instruction 4, dma_copy: src reads partition 4, element 0 of 'x', which nothing has written");
}

/* nonzero_with_count writes partitions 0, 16, ... alone, and reads no others. */
static void the_first_of_16_partitions_are_counted(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 32, 4), n = trn_core_sbuf(&core, "n", TRN_I32, 32, 5);
    const trn_tensor y = trn_core_sbuf(&core, "y", TRN_I32, 32, 5);
    set(trn_tensor_slice(x, 0, 0, 1), 1);
    const trn_nonzero_with_count_args count = { .dst = n, .src = x, .padding_val = -1 };
    assert_int_equal(trn_core_nonzero_with_count(&core, &count), TRN_OK);
    copy(trn_tensor_slice(y, 0, 0, 1), trn_tensor_slice(n, 0, 0, 1), TRN_ENGINE_VECTOR);
    fine();
    static int32_t out[32 * 5];
    move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_I32, out, 32, 5)), n);
    expect("instruction 3, dma_copy: src reads partition 1, element 0 of 'n', which nothing has written");
}

/* A product with is_transpose turns what nothing has written; another one may not read it. */
static void a_transposing_product_carries_what_is_unwritten(void **state)
{
    (void)state;
    for (int turns = 1; turns >= 0; turns--) {
        begin(TRN_TRAINIUM2);
        const trn_tensor x = tile("x", 32, 32), one = tile("one", 32, 32), y = tile("y", 32, 32);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, 32, 32);
        static float identity[32 * 32];
        for (int i = 0; i < 32; i++) identity[i * 33] = 1;
        move(one, trn_core_hbm(&core, "identity", trn_tensor_2d(TRN_F32, identity, 32, 32)));
        set(trn_tensor_slice(x, 1, 0, 8), 3);
        const trn_nc_matmul_args a = { .dst = acc, .stationary = x, .moving = one, .is_transpose = turns != 0 };
        trn_core_nc_matmul(&core, &a);
        if (!turns) { /* a product's sums are of all rows: each has an element that nothing has written */
            copy(y, acc, TRN_ENGINE_VECTOR);
            fine();
            assert_int_equal(store(y, NULL), TRN_EINVAL);
            continue;
        }
        copy(trn_tensor_slice(y, 0, 0, 8), trn_tensor_slice(acc, 0, 0, 8), TRN_ENGINE_VECTOR);
        fine();
        static float out[32 * 32];
        move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, 8, 32)), trn_tensor_slice(y, 0, 0, 8));
        fine();
        assert_true(out[0] == 3 && out[255] == 3);
        copy(y, acc, TRN_ENGINE_VECTOR);
        fine();
        move(trn_core_hbm(&core, "more", trn_tensor_2d(TRN_F32, identity, 32, 32)), y);
        const char *text;
        assert_int_not_equal(trn_core_status(&core, &text), TRN_OK);
        assert_non_null(strstr(text, "dma_copy: src reads partition 8, element 0 of 'y', which nothing has written"));
    }
}

static void memory_that_is_not_there_is_told_by_name(void **state)
{
    (void)state;
    static float host[256];
    begin(TRN_TRAINIUM2);
    trn_tensor x = tile("x", 4, 4), y = tile("y", 4, 4);
    set(y, 1);
    trn_core_free(&core, x);
    copy(x, y, TRN_ENGINE_UNKNOWN);
    expect("instruction 1, tensor_copy: dst writes 'x', which was freed");

    begin(TRN_TRAINIUM2);
    x = tile("x", 4, 4);
    trn_core_free(&core, x);
    trn_core_free(&core, x);
    expect("trn_core_free: 'x' was freed before");

    begin(TRN_TRAINIUM2);
    x = tile("x", 4, 4);
    trn_core_free(&core, trn_tensor_slice(x, 0, 1, 1));
    expect("trn_core_free: this is not a tile");

    begin(TRN_TRAINIUM2);
    y = tile("y", 4, 4);
    set(y, 1);
    copy(y, trn_tensor_2d(TRN_F32, host, 4, 4), TRN_ENGINE_UNKNOWN);
    expect("instruction 1, tensor_copy: src is not in SBUF or PSUM; only DMA reaches other memory");

    begin(TRN_TRAINIUM2);
    y = tile("y", 4, 4);
    move(y, trn_tensor_2d(TRN_F32, host, 4, 4));
    expect("instruction 0, dma_copy: src lies neither in a tile nor in a tensor that trn_core_hbm has registered");

    begin(TRN_TRAINIUM2);
    y = tile("y", 4, 4);
    y.shape[1] = 5;
    set(y, 1);
    expect("instruction 0, memset: dst leaves tile 'y': partitions 0 to 3, bytes 0 to 19 of a tile of 4 x 16");

    begin(TRN_TRAINIUM2);
    y = tile("y", 4, 4);
    y.data = (char *)y.data + 4096;
    set(y, 1);
    expect("instruction 0, memset: dst lies in SBUF, partition 0, byte 4096, where there is no tile");

    begin(TRN_TRAINIUM2);
    trn_core_hbm(&core, "a", trn_tensor_1d(TRN_F32, host, 100));
    trn_core_hbm(&core, "part of a", trn_tensor_1d(TRN_F32, host + 10, 20));
    fine();
    assert_int_equal(core.hbm_tensors, 1);
    trn_core_hbm(&core, "b", trn_tensor_1d(TRN_F32, host + 90, 20));
    expect("HBM tensor 'b' overlaps 'a'; register all of it, once");

    begin(TRN_TRAINIUM2);
    trn_core_hbm(&core, "b", tile("y", 4, 4));
    expect("HBM tensor 'b' lies in SBUF");
}

static void patterns_that_no_engine_follows_are_refused(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor x = tile("x", 128, 256);
    set(trn_tensor_slice(x, 0, 32, 32), 1);
    set(trn_tensor_slice(x, 0, 64, 64), 1);
    fine();
    set(trn_tensor_slice(x, 0, 8, 8), 1);
    expect("instruction 2, memset: dst takes 8 partitions of 'x' from partition 8; tiles begin at partition 0, 32, 64 "
           "or 96");

    begin(TRN_TRAINIUM2);
    x = tile("x", 128, 256);
    set(trn_tensor_slice(x, 0, 32, 64), 1);
    expect("instruction 0, memset: dst takes 64 partitions of 'x' from partition 32; more than 32 partitions begin at "
           "0 or 64");

    begin(TRN_TRAINIUM2);
    x = tile("x", 128, 256);
    set(trn_tensor_transposed(trn_tensor_slice(x, 1, 0, 128)), 1);
    expect("instruction 0, memset: dst: axis 0 steps by 4 bytes; an engine reads one partition after the other");

    begin(TRN_TRAINIUM2);
    x = tile("x", 1, 64);
    set(x, 1);
    trn_tensor y = tile("y", 128, 64);
    copy(y, trn_tensor_broadcast(x, 0, 128), TRN_ENGINE_UNKNOWN);
    expect("instruction 1, tensor_copy: src: axis 0 steps by 0 bytes; an engine reads one partition after the other, "
           "and cannot "
           "broadcast along them");

    begin(TRN_TRAINIUM2);
    x = tile("x", 128, 4 * 4 * 4 * 4 * 4);
    trn_tensor five =
        trn_tensor_split(trn_tensor_split(trn_tensor_split(trn_tensor_split(x, 1, 256), 2, 64), 3, 16), 4, 4);
    assert_int_equal(five.rank, 6);
    set(five, 1); /* six axes that merge into two */
    for (int i = 1; i < 6; i++) five = trn_tensor_slice(five, i, 0, 3);
    fine();
    set(five, 1);
    expect("instruction 1, memset: dst has 5 axes within a partition that do not merge; access patterns have 4");
}

static void engines_reach_what_they_reach(void **state)
{
    (void)state;
    trn_tensor x, y, z;
    begin(TRN_TRAINIUM2);
    x = trn_core_psum(&core, "x", TRN_F32, 128, 8);
    const trn_iota_args iota = { .dst = x };
    trn_core_iota(&core, &iota);
    expect("instruction 0, iota: dst 'x' lies in PSUM, which GpSimdE does not reach");

    begin(TRN_TRAINIUM2);
    x = trn_core_psum(&core, "x", TRN_F32, 128, 8);
    y = tile("y", 128, 8);
    set(x, 1);
    move(y, x);
    expect("instruction 1, dma_copy: src 'x' lies in PSUM, which DMA does not reach");

    begin(TRN_TRAINIUM2);
    x = trn_core_psum(&core, "x", TRN_F32, 128, 8);
    y = trn_core_psum(&core, "y", TRN_F32, 128, 8);
    z = tile("z", 128, 8);
    set(x, 1);
    set(y, 1);
    const trn_tensor_tensor_args both = { .dst = z, .data1 = x, .data2 = y, .op = TRN_ALU_ADD };
    trn_core_tensor_tensor(&core, &both);
    expect("instruction 2, tensor_tensor: data1 'x' and data2 'y' both lie in PSUM; one of them may");

    begin(TRN_TRAINIUM2);
    x = tile("x", 128, 128);
    set(x, 1);
    y = tile("y", 128, 128);
    const trn_nc_matmul_args to_sbuf = { .dst = y, .stationary = x, .moving = x };
    trn_core_nc_matmul(&core, &to_sbuf);
    expect("instruction 1, nc_matmul: dst 'y' lies in SBUF; TensorE writes to PSUM only");

    begin(TRN_TRAINIUM2);
    x = trn_core_psum(&core, "x", TRN_F32, 128, 128);
    y = trn_core_psum(&core, "y", TRN_F32, 128, 128);
    set(x, 1);
    const trn_nc_matmul_args from_psum = { .dst = y, .stationary = x, .moving = x };
    trn_core_nc_matmul(&core, &from_psum);
    expect("instruction 1, nc_matmul: stationary 'x' lies in PSUM; it has to be in SBUF");

    static const int strange[] = { TRN_ENGINE_TENSOR, TRN_ENGINE_DMA, TRN_ENGINE_COUNT, 1000, -1 };
    for (unsigned i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        begin(TRN_TRAINIUM2);
        x = tile("x", 128, 8);
        const trn_memset_args odd = { .dst = x, .engine = (trn_engine)strange[i] };
        assert_int_equal(trn_core_memset(&core, &odd), TRN_EINVAL);
    }

    begin(TRN_TRAINIUM2);
    x = trn_core_psum(&core, "x", TRN_BF16, 128, 8192);
    set(x, 1);
    const trn_activation_args longer = { .dst = x, .src = x, .op = TRN_ACT_COPY };
    trn_core_activation(&core, &longer);
    expect("instruction 1, activation: dst has 8192 elements per partition; ScalarE takes 4096 from PSUM");

    begin(TRN_TRAINIUM2);
    static const trn_tensor none[2];
    trn_tensor list[2] = { none[0], none[1] };
    static float host[128 * 8];
    x = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_F32, host, 128, 8));
    list[0] = list[1] = tile("y", 128, 8);
    set(trn_tensor_slice(list[0], 1, 0, 4), 1);
    const trn_dma_compute_args sums = { .dst = x, .srcs = list, .count = 2 };
    trn_core_dma_compute(&core, &sums);
    expect("instruction 1, dma_compute: srcs[0] reads partition 0, element 4 of 'y', which nothing has written");

    begin(TRN_TRAINIUM2);
    x = tile("x", 128, 512);
    set(x, 1);
    y = trn_core_psum(&core, "y", TRN_F32, 128, 1024);
    const trn_nc_matmul_args across = { .dst = trn_tensor_slice(y, 1, 256, 512),
                                        .stationary = trn_tensor_slice(x, 1, 0, 128),
                                        .moving = x };
    trn_core_nc_matmul(&core, &across);
    expect("instruction 1, nc_matmul: dst takes bytes 1024 to 3071 of a partition; on Trainium2 it stays in one bank "
           "of 2048");
}

static void a_matmul_adds_to_what_a_matmul_wrote(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM2; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        trn_tensor x = tile("x", 128, 64), acc = trn_core_psum(&core, "acc", TRN_F32, 64, 64);
        trn_nc_matmul_args add = { .dst = acc, .stationary = x, .moving = x };
        set(x, 1);
        trn_core_nc_matmul(&core, &add);
        add.accumulate = true;
        trn_core_nc_matmul(&core, &add);
        fine();
        assert_true(((float *)acc.data)[0] == 256.0f);
        set(trn_tensor_slice(trn_tensor_slice(acc, 0, 32, 32), 1, 7, 2), 0);
        trn_core_nc_matmul(&core, &add);
        if (g == TRN_TRAINIUM3) fine();
        else
            expect("instruction 4, nc_matmul: dst adds to partition 32, element 7 of 'acc', which no matmul has "
                   "written: begin "
                   "with one that overwrites");
    }
    begin(TRN_TRAINIUM3);
    trn_tensor x = tile("x", 128, 64), acc = trn_core_psum(&core, "acc", TRN_F32, 64, 64);
    set(x, 1);
    const trn_nc_matmul_args first = { .dst = acc, .stationary = x, .moving = x, .accumulate = true };
    trn_core_nc_matmul(&core, &first);
    const trn_tensor y = tile("y", 64, 64);
    copy(y, acc, TRN_ENGINE_VECTOR);
    fine();
    assert_int_equal(store(y, NULL), TRN_EINVAL); /* it added to what nothing had written */
}

/* ---- scale tiles: four partitions of each quadrant, at an offset ---- */

enum { MX_P = 64, MX_F = 8 }; /* partitions and words of a data tile */

static trn_tensor scale_part(trn_tensor scales, int64_t offset)
{
    return trn_tensor_slice(scales, 0, offset, scales.shape[0] - offset); /* NKI's scales[offset:, :] */
}

static trn_tensor mx_codes(const char *name)
{
    return trn_tensor_split(trn_core_sbuf(&core, name, TRN_F8_E4M3FN, MX_P, 4 * MX_F), 1, 4);
}

static void quantize(trn_tensor dst, trn_tensor dst_scale, trn_tensor src)
{
    const trn_quantize_mx_args args = { .dst = dst, .src = src, .dst_scale = dst_scale };
    trn_core_quantize_mx(&core, &args);
}

static void multiply(trn_tensor dst, trn_tensor codes, trn_tensor stationary_scale, trn_tensor moving_scale)
{
    const trn_nc_matmul_mx_args args = { .dst = dst, .stationary = codes, .moving = codes,
                                         .stationary_scale = stationary_scale, .moving_scale = moving_scale };
    trn_core_nc_matmul_mx(&core, &args);
}

/* Two tensors' scales in one tile, as in the guide's kernel with packed scales; the sums of dense scales. */
static void a_scale_tile_holds_scales_of_several_tensors(void **state)
{
    (void)state;
    static float sums[2][MX_F * MX_F];
    static uint8_t dense[2][MX_P / 8 * MX_F], codes[MX_P * MX_F * 4];
    static uint16_t in[2][MX_P * 4 * MX_F];
    for (int i = 0; i < MX_P * 4 * MX_F; i++) {
        in[0][i] = (uint16_t)(0x3e00 + i * 37 % 0x280 + i % 2 * 0x8000);
        in[1][i] = (uint16_t)(0x3d00 + i * 53 % 0x380);
    }
    for (int offset = 0; offset < 16; offset += 4) {
        const int other = (offset + 4) % 16;
        begin(TRN_TRAINIUM3);
        const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
        for (int i = 0; i < 2; i++) {
            const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
            move(x, trn_core_hbm(&core, "in", trn_tensor_2d(TRN_BF16, in[i], MX_P, 4 * MX_F)));
            quantize(q, scale_part(scales, i ? other : offset), x);
            if (i) multiply(acc, q, scale_part(scales, offset), scale_part(scales, other));
        }
        fine();
        for (int i = 0; i < 2; i++) {
            const int64_t shape[3] = { MX_P, MX_F, 4 };
            const trn_quantize_mx_args args = { .dst = trn_tensor_nd(TRN_F8_E4M3FN, codes, 3, shape),
                                                .src = trn_tensor_2d(TRN_BF16, in[i], MX_P, 4 * MX_F),
                                                .dst_scale = trn_tensor_2d(TRN_F8_E8M0, dense[i], MX_P / 8, MX_F) };
            assert_int_equal(trn_quantize_mx(&args), TRN_OK);
            const trn_nc_matmul_mx_args mm = {
                .dst = trn_tensor_2d(TRN_F32, sums[1], MX_F, MX_F), .stationary = args.dst, .moving = args.dst,
                .stationary_scale = trn_tensor_2d(TRN_F8_E8M0, dense[0], MX_P / 8, MX_F),
                .moving_scale = args.dst_scale
            };
            if (i) assert_int_equal(trn_nc_matmul_mx(&mm), TRN_OK);
        }
        for (int p = 0; p < MX_P; p++) { /* what nothing has written is as it was */
            const uint8_t *row = (const uint8_t *)scales.data + p * scales.stride[0];
            const int i = p % 32 / 4 == offset / 4 ? 0 : p % 32 / 4 == other / 4 ? 1 : -1;
            for (int f = 0; f < MX_F; f++)
                assert_int_equal(row[f], i < 0 ? 0xff : dense[i][(p / 32 * 4 + p % 4) * MX_F + f]);
        }
        for (int m = 0; m < MX_F; m++)
            memcpy(sums[0] + m * MX_F, (const float *)acc.data + m * acc.stride[0], MX_F * sizeof(float));
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    }
}

/* What is read of a scale tile is four partitions of each quadrant; those are asked for, and no others. */
static void scales_that_nothing_wrote_are_told_and_others_are_not(void **state)
{
    (void)state;
    char sentence[160];
    for (int offset = 0; offset < 16; offset += 4)
        for (int without = -1; without < 8; without++) {
            begin(TRN_TRAINIUM3);
            const trn_tensor q = mx_codes("codes"), acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
            const trn_tensor ones = trn_core_sbuf(&core, "ones", TRN_F8_E8M0, MX_P, MX_F);
            const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
            set(q, 1);
            set(ones, 1);
            for (int g = 0; g < 8; g++) {
                const int64_t p = g / 4 * 32 + offset + g % 4;
                if (g != without) trn_core_written(&core, trn_tensor_slice(scales, 0, p, 1));
                memset((char *)scales.data + p * scales.stride[0], 127, MX_F);
            }
            multiply(acc, q, offset % 8 ? scale_part(scales, offset) : ones,
                     offset % 8 ? ones : scale_part(scales, offset));
            snprintf(sentence, sizeof sentence,
                     "instruction 2, nc_matmul_mx: %s reads partition %d, element 0 of 'scales', which nothing has "
                     "written",
                     offset % 8 ? "stationary_scale" : "moving_scale", without / 4 * 32 + offset + without % 4);
            if (without >= 0) expect(sentence);
            else fine();
            if (without < 0) assert_true(((const float *)acc.data)[0] == 4.0f * MX_P);
        }

    begin(TRN_TRAINIUM3); /* and so quantize_mx writes no others */
    static uint8_t host[32 * MX_F];
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), out =
        trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F8_E8M0, host, 32, MX_F));
    const trn_tensor q = mx_codes("codes"), scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
    set(x, 1);
    quantize(q, scale_part(scales, 8), x);
    move(trn_tensor_slice(out, 0, 0, 4), trn_tensor_slice(scales, 0, 32 + 8, 4));
    fine();
    move(trn_tensor_slice(out, 0, 0, 5), trn_tensor_slice(scales, 0, 32 + 8, 5));
    expect("instruction 3, dma_copy: src reads partition 44, element 0 of 'scales', which nothing has written");
}

static void scale_tiles_lie_where_tiles_can(void **state)
{
    (void)state;
    static const struct { int tile, first, rows; const char *rest; } row[] = {
        { 128, 0, 64, NULL }, { 128, 4, 60, NULL }, { 128, 12, 52, NULL }, { 128, 64, 64, NULL }, { 128, 72, 56, NULL },
        { 128, 4, 64, "takes 64 partitions of 'scales' from partition 4; tiles begin at partition 0, 32, 64 or 96" },
        { 128, 32, 64, "takes 64 partitions of 'scales' from partition 32; more than 32 partitions begin at 0 or 64" },
        { 128, 0, 60, "takes 64 partitions of 'scales' from partition -4; tiles begin at partition 0, 32, 64 or 96" },
        { 128, 8, 60, "takes 64 partitions of 'scales' from partition 4; tiles begin at partition 0, 32, 64 or 96" },
        { 63, 0, 64, "leaves tile 'scales': partitions 0 to 63, bytes 0 to 7 of a tile of 63 x 8" },
    };
    char sentence[200];
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM3);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
        trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, row[i].tile, MX_F);
        set(x, 1);
        scales.shape[0] = 128;
        quantize(q, trn_tensor_slice(scales, 0, row[i].first, row[i].rows), x);
        snprintf(sentence, sizeof sentence, "instruction 1, quantize_mx: dst_scale %s", row[i].rest ? row[i].rest : "");
        if (row[i].rest) expect(sentence);
        else fine();
    }
    begin(TRN_TRAINIUM3);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
    const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
    set(x, 1);
    trn_core_free(&core, scales);
    quantize(q, scales, x);
    expect("instruction 1, quantize_mx: dst_scale writes 'scales', which was freed");
    begin(TRN_TRAINIUM3);
    const trn_tensor y = trn_core_sbuf(&core, "y", TRN_BF16, MX_P, 4 * MX_F), codes = mx_codes("codes");
    set(y, 1);
    quantize(codes, trn_core_sbuf(&core, "scales", TRN_F8_E8M0, 63, MX_F), y);
    expect("instruction 1, quantize_mx: dst_scale has 63 partitions of 8 elements; it takes 8 of 8, or as a scale tile "
           "64");
}

/* A matmul waits for its own scales, not for those that another tensor is getting in the same tile. */
static void scales_of_others_are_not_waited_for(void **state)
{
    (void)state;
    for (int offset = 0; offset < 16; offset += 4) {
        begin(TRN_TRAINIUM3);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * 2000), q = mx_codes("codes");
        const trn_tensor wide = trn_core_sbuf(&core, "wide", TRN_F8_E4M3FN, MX_P, 4 * 2000);
        const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, 2000);
        const trn_tensor mine = trn_tensor_slice(scales, 1, 0, MX_F);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
        trn_core_report before, report;
        set(x, 1);
        quantize(q, mine, trn_tensor_slice(x, 1, 0, 4 * MX_F));
        trn_core_report_of(&core, &before);
        quantize(trn_tensor_split(wide, 1, 4), scale_part(scales, offset), x);
        multiply(acc, q, mine, mine);
        fine();
        trn_core_report_of(&core, &report);
        const double matmul_s = report.engine[TRN_ENGINE_TENSOR].busy_s, wide_s = report.time_s - before.time_s;
        assert_true(matmul_s > 0 && wide_s > 2 * matmul_s);
        assert_true((core.lane[TRN_ENGINE_TENSOR].free_s < core.lane[TRN_ENGINE_VECTOR].free_s) == (offset > 0));
    }
}

/* ---- numbers ---- */

static void a_core_computes_what_the_engines_compute(void **state)
{
    (void)state;
    static float x[128 * 96], y[128 * 96], sums[128], direct[128 * 96], direct_sums[128];
    for (int i = 0; i < 128 * 96; i++) x[i] = (float)(i % 977) / 300.0f - 1.5f;
    begin(TRN_TRAINIUM2);
    trn_tensor t = tile("t", 128, 96), s = tile("sum", 128, 1), b = trn_core_sbuf(&core, "b", TRN_BF16, 128, 96);
    move(t, trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 96)));
    const trn_activation_args act = { .dst = b, .src = t, .op = TRN_ACT_EXP, .reduce_res = s };
    trn_core_activation(&core, &act);
    copy(t, b, TRN_ENGINE_SCALAR);
    move(trn_core_hbm(&core, "y", trn_tensor_2d(TRN_F32, y, 128, 96)), t);
    move(trn_core_hbm(&core, "sums", trn_tensor_2d(TRN_F32, sums, 128, 1)), s);
    fine();
    static uint16_t narrow[128 * 96];
    const trn_activation_args alone = { .generation = TRN_TRAINIUM2,
                                        .dst = trn_tensor_2d(TRN_BF16, narrow, 128, 96),
                                        .src = trn_tensor_2d(TRN_F32, x, 128, 96),
                                        .op = TRN_ACT_EXP,
                                        .reduce = direct_sums };
    assert_int_equal(trn_activation(&alone), TRN_OK);
    for (int i = 0; i < 128 * 96; i++) direct[i] = trn_bf16_to_f32(narrow[i]);
    assert_memory_equal(y, direct, sizeof y);
    assert_memory_equal(sums, direct_sums, sizeof sums);
    float host[128];
    begin(TRN_TRAINIUM2);
    t = tile("t", 128, 4);
    set(t, 1);
    const trn_activation_args wrong = { .dst = t, .src = t, .op = TRN_ACT_EXP, .reduce = host };
    trn_core_activation(&core, &wrong);
    expect("instruction 1, activation: reduce is an array of the host; engines read tiles: see scale_tile, bias_tile, "
           "reduce_res");
}

/* ---- time ---- */

enum { STEPS = 400, TOUCHES = 4 };

typedef struct touch {
    int place; /* a tile, or 100 + a tensor in HBM */
    int64_t p, p_end, b, b_end;
    bool write;
} touch;

typedef struct step {
    int track; /* as in the trace */
    touch part[TOUCHES];
    int parts;
    bool sbuf, psum;
    double start, end, issued; /* issued: DMA waits for this, and its latency */
} step;

static step all[STEPS];

static bool same_bytes(const touch *x, const touch *y)
{
    return x->place == y->place && x->p < y->p_end && y->p < x->p_end && x->b < y->b_end && y->b < x->b_end &&
           (x->write || y->write);
}

static bool conflict(const step *x, const step *y)
{
    for (int i = 0; i < x->parts; i++)
        for (int k = 0; k < y->parts; k++)
            if (same_bytes(&x->part[i], &y->part[k])) return true;
    return false;
}

/* When step n starts, from all those before it. */
static double start_of(const step *all_steps, int n, trn_generation generation, double length)
{
    const step *s = &all_steps[n];
    double from = 0;
    for (int i = 0; i < n; i++) {
        const step *o = &all_steps[i];
        const bool in_order = s->track != 4 && o->track == s->track;
        const bool port =
            generation == TRN_TRAINIUM1 &&
            ((s->sbuf && o->sbuf && s->track + o->track == 1 + 3 && s->track != o->track && s->track % 2 == 1) ||
             (s->psum && o->psum && s->track + o->track == 1 + 2 && s->track != o->track && s->track > 0));
        if (in_order || port || conflict(s, o)) from = fmax(from, o->end);
    }
    if (s->track != 4) return from;
    from += 1.3e-6;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++)
            if (all_steps[i].track == 4 && all_steps[i].start < from + length && from < all_steps[i].end) {
                from = all_steps[i].end;
                moved = true;
            }
    }
    return from;
}

static trn_tensor places[12];

static void touched(step *s, int place, int64_t p, int64_t p_end, int64_t b, int64_t b_end, bool write)
{
    const touch t = { place, p, p_end, b, b_end, write };
    s->part[s->parts++] = t;
}

/* A random part of a tile: partitions that engines may take, and a run of elements. */
static trn_tensor random_part(step *s, int place, int64_t p, int64_t n, int64_t f, uint64_t *seed, bool write)
{
    const int64_t first = cases_below(seed, (int)(64 - f + 1));
    touched(s, place, p, p + n, first * 4, (first + f) * 4, write);
    if (place < 8) s->sbuf = true;
    else if (place < 100) s->psum = true;
    return trn_tensor_slice(trn_tensor_slice(places[place], 0, p, n), 1, first, f);
}

static float hbm[2][128 * 64];

static void random_step(step *s, uint64_t *seed)
{
    static const int64_t start[] = { 0, 32, 64, 96, 0, 64, 0 }, count[] = { 32, 32, 32, 32, 64, 64, 128 };
    const int kind = cases_below(seed, 7), what = cases_below(seed, 5);
    const int64_t p = start[kind], n = count[kind] - cases_below(seed, 20), f = 1 + cases_below(seed, 64);
    memset(s, 0, sizeof *s);
    const int from = cases_below(seed, 12), to = cases_below(seed, 12);
    if (what == 0) { /* DMA, to or from HBM */
        const int h = cases_below(seed, 2), t = cases_below(seed, 8);
        const int64_t row = cases_below(seed, (int)(128 - n + 1)), column = cases_below(seed, (int)(64 - f + 1));
        const bool load = cases_one_in(seed, 2);
        const trn_tensor outside =
            trn_tensor_slice(trn_tensor_slice(trn_tensor_2d(TRN_F32, hbm[h], 128, 64), 0, row, n), 1, column, f);
        const trn_tensor inside = random_part(s, t, p, n, f, seed, load);
        touched(s, 100 + h, row, row + n, column * 4, (column + f) * 4, !load);
        s->track = 4;
        move(load ? inside : outside, load ? outside : inside);
        return;
    }
    if (what == 4) { /* GpSimd, SBUF only */
        s->track = 3;
        copy(random_part(s, to % 8, p, n, f, seed, true), random_part(s, (to + 1) % 8, p, n, f, seed, false),
             TRN_ENGINE_GPSIMD);
        return;
    }
    if (what == 3) {
        s->track = 1;
        set(random_part(s, to, p, n, f, seed, true), 1);
        return;
    }
    const int other = to == from ? (to + 1) % 12 : to;
    s->track = what == 1 ? 1 : 2;
    const trn_tensor dst = random_part(s, other, p, n, f, seed, true);
    copy(dst, random_part(s, from, p, n, f, seed, false), what == 1 ? TRN_ENGINE_VECTOR : TRN_ENGINE_SCALAR);
}

static void random_program(trn_generation generation, uint64_t seed)
{
    static trn_trace_event event[STEPS];
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = STEPS;
    const trn_core_args args = { .generation = generation,
                                 .memory = room = realloc(room, trn_core_memory_bytes(generation)),
                                 .memory_bytes = trn_core_memory_bytes(generation),
                                 .trace = &trace,
                                 .no_poison = true };
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
    for (int i = 0; i < 12; i++) {
        places[i] = i < 8 ? tile("s", 128, 64) : trn_core_psum(&core, "p", TRN_F32, 128, 64);
        for (int p = 0; p < 128; p++) memset((char *)places[i].data + p * places[i].stride[0] * 4, 0, 256);
    }
    trn_core_hbm(&core, "h0", trn_tensor_2d(TRN_F32, hbm[0], 128, 64));
    trn_core_hbm(&core, "h1", trn_tensor_2d(TRN_F32, hbm[1], 128, 64));
    double busy[5] = { 0 }, last = 0;
    int64_t counts[5] = { 0 };
    int steps = 0;
    while (steps < STEPS) {
        step *s = &all[steps];
        random_step(s, &seed);
        if (generation == TRN_TRAINIUM1 && core.failure.status == TRN_EUNSUPPORTED) { /* no copies on ScalarE there */
            memset(&core.failure, 0, sizeof core.failure);
            continue;
        }
        fine();
        const trn_trace_event *e = &event[steps];
        assert_int_equal(trace.count, steps + 1);
        assert_int_equal(e->track, s->track);
        const double expected = start_of(all, steps, generation, e->duration_s);
        if (fabs(e->start_s - expected) > 1e-15)
            fail_msg("step %d of track %d starts at %.6f us, expected %.6f us", steps, s->track, 1e6 * e->start_s,
                     1e6 * expected);
        s->start = e->start_s;
        s->end = e->start_s + e->duration_s;
        busy[s->track] += e->duration_s;
        counts[s->track]++;
        last = fmax(last, s->end);
        steps++;
    }
    trn_core_report report;
    trn_core_report_of(&core, &report);
    assert_true(fabs(report.time_s - last) < 1e-15);
    assert_int_equal(report.instructions, STEPS);
    for (int i = 0; i < 5; i++) {
        assert_true(fabs(report.engine[i + 1].busy_s - busy[i]) < 1e-12);
        assert_int_equal(report.engine[i + 1].instructions, counts[i]);
        assert_true(report.engine[i + 1].busy_s <= report.engine[report.bound].busy_s);
        assert_true(fabs(report.engine[i + 1].share * report.time_s - busy[i]) < 1e-12);
    }
    trn_trace_sort(&trace);
    double end[5] = { 0 };
    for (int i = 0; i < STEPS; i++) { /* no two at once on one track */
        assert_true(event[i].start_s >= end[event[i].track] - 1e-15);
        end[event[i].track] = event[i].start_s + event[i].duration_s;
    }
}

static void random_programs_start_when_a_slow_simulator_says(void **state)
{
    (void)state;
    for (int i = 0; i < cases_rounds(24, 400); i++)
        random_program((trn_generation)(TRN_TRAINIUM1 + i % 3), (uint64_t)i + 1);
}

static void memory_of_a_freed_tile_is_ready_when_its_users_are_done(void **state)
{
    (void)state;
    static trn_trace_event event[8];
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = 8;
    const trn_core_args args = { .generation = TRN_TRAINIUM2, .trace = &trace };
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
    const size_t mark = trn_core_mark(&core);
    set(tile("a", 128, 512), 1); /* VectorE */
    trn_core_release(&core, mark);
    trn_tensor b = tile("b", 128, 512), c = tile("c", 128, 512);
    const trn_memset_args on_gpsimd = { .dst = c, .value = 1, .engine = TRN_ENGINE_GPSIMD };
    const trn_memset_args same_memory = { .dst = b, .value = 1, .engine = TRN_ENGINE_GPSIMD };
    trn_core_memset(&core, &on_gpsimd);
    trn_core_memset(&core, &same_memory);
    fine();
    assert_true(event[1].start_s == 0);
    assert_true(event[2].start_s == event[1].duration_s && event[2].start_s >= event[0].duration_s);
    trn_core_release(&core, mark);
    b = tile("b", 128, 512);
    const trn_activation_args act = { .dst = b, .src = b, .op = TRN_ACT_EXP };
    assert_int_equal(trn_core_written(&core, b), TRN_OK);
    trn_core_activation(&core, &act);
    fine();
    assert_true(event[3].start_s == event[2].start_s + event[2].duration_s);
    trn_core_report report;
    trn_core_report_of(&core, &report);
    assert_int_equal(report.sbuf_high_water, 2 * 128 * 2048);
    assert_int_equal(report.sbuf_high_water_partition, 2 * 2048);
    assert_int_equal(report.sbuf_bytes, 128 * 224 * 1024);
    assert_int_equal(report.psum_high_water, 0);
    trn_core_end(&core);
}

static void cycles_add_up_by_hand(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, 128, 512), y = tile("y", 128, 512);
    trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, 128, 512);
    set(x, 0); /* 256: zeros in a 16-bit format */
    set(y, 0); /* 512 */
    const trn_nc_matmul_args mm = { .dst = acc, .stationary = trn_tensor_slice(x, 1, 0, 128), .moving = x };
    trn_core_nc_matmul(&core, &mm); /* 512; the load hides behind the wait */
    trn_core_nc_matmul(&core, &mm); /* 512 */
    copy(y, acc, TRN_ENGINE_VECTOR);   /* 512 */
    copy(y, y, TRN_ENGINE_VECTOR);     /* 512 + 100: it reads what the one before wrote */
    const trn_tensor_tensor_args ints = { .dst = trn_core_sbuf(&core, "i", TRN_I32, 128, 8),
                                          .data1 = trn_core_sbuf(&core, "j", TRN_I32, 128, 8),
                                          .data2 = trn_core_sbuf(&core, "k", TRN_I32, 128, 8), .op = TRN_ALU_ADD };
    trn_core_written(&core, ints.data1);
    trn_core_written(&core, ints.data2);
    trn_core_tensor_tensor(&core, &ints); /* GpSimdE: 150 + 2 x 8 */
    const trn_activation_args act = { .dst = y, .src = y, .op = TRN_ACT_EXP, .reduce_res = tile("s", 128, 1) };
    trn_core_activation(&core, &act); /* 512 + 64 */
    fine();
    trn_core_report r;
    trn_core_report_of(&core, &r);
    assert_true(r.engine[TRN_ENGINE_TENSOR].cycles == 1024);
    assert_true(r.engine[TRN_ENGINE_VECTOR].cycles == 256 + 512 + 512 + 612);
    assert_true(r.engine[TRN_ENGINE_GPSIMD].cycles == 166);
    assert_true(r.engine[TRN_ENGINE_SCALAR].cycles == 576);
    assert_int_equal(r.bound, TRN_ENGINE_VECTOR);
    assert_true(fabs(r.engine[TRN_ENGINE_TENSOR].busy_s - 1024 / 2.4e9) < 1e-15);
    const trn_tensor pairs = trn_tensor_split(x, 1, 2);
    const double before = core.lane[TRN_ENGINE_VECTOR].cycles;
    copy(trn_tensor_slice(pairs, 2, 0, 1), trn_tensor_slice(pairs, 2, 1, 1), TRN_ENGINE_VECTOR); /* 256 at 2x */
    assert_true(core.lane[TRN_ENGINE_VECTOR].cycles - before == 128);
    fine();
    char text[96];
    snprintf(text, sizeof text, "VectorE is busy %.0f %% of %.1f us", 100 * r.engine[TRN_ENGINE_VECTOR].share,
             1e6 * r.time_s);
    assert_string_equal(r.bound_text, text);
    begin(TRN_TRAINIUM2); /* a tile in the place of a freed one is another tile: no pipeline shows */
    x = tile("x", 128, 512), y = tile("y", 128, 512);
    set(x, 1);
    trn_core_free(&core, x);
    x = tile("new", 128, 512);
    trn_core_written(&core, x);
    copy(y, x, TRN_ENGINE_VECTOR);
    fine();
    assert_true(core.lane[TRN_ENGINE_VECTOR].cycles == 512 + 512);
    begin(TRN_TRAINIUM2);
    trn_core_report_of(&core, &r);
    assert_string_equal(r.bound_text, "nothing has run");
}

/* A tile of 32 partitions that holds ones on its diagonal, or zeros. */
static trn_tensor diagonal(const char *name, trn_format format, int64_t f, bool ones)
{
    const trn_tensor t = trn_core_sbuf(&core, name, format, 32, f);
    const uint32_t one = trn_encode(format, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    const size_t bytes = trn_format_bytes(format);
    for (int64_t p = 0; p < 32; p++) {
        char *row = (char *)t.data + p * t.stride[0] * (int64_t)bytes;
        memset(row, 0, (size_t)f * bytes);
        if (ones) memcpy(row + p * (int64_t)bytes, &one, bytes);
    }
    trn_core_written(&core, t);
    return t;
}

static void matmul_both_ways(trn_generation g, trn_format a, trn_format b, int mode)
{
    const size_t mark = trn_core_mark(&core);
    const int64_t f = mode == 1 ? 64 : 32;
    trn_tensor x = diagonal("x", a, f, false), y = diagonal("y", b, f, mode == 2);
    const trn_tensor dst = trn_core_psum(&core, "dst",
                                         mode == 2 && g != TRN_TRAINIUM1 ? a
                                         : a == TRN_I8                   ? TRN_I32
                                                                         : TRN_F32,
                                         32, 32);
    trn_status alone, here;
    if (mode == 1) x = trn_tensor_split(x, 1, 32), y = trn_tensor_split(y, 1, 32);
    if (mode == 3) { /* 4 of 16: 32 stored rows of 128 */
        const trn_tensor tags = diagonal("tags", TRN_U8, 32, false), all = trn_core_sbuf(&core, "all", b, 128, 32);
        for (int64_t p = 0; p < 128; p++)
            memset((char *)all.data + p * core.memory[0].pitch, 0, 32 * trn_format_bytes(b));
        for (int64_t p = 0; p < 32; p++) memset((char *)tags.data + p * core.memory[0].pitch, (int)p % 4, 32);
        trn_core_written(&core, all);
        const trn_nc_matmul_sparse_args args = {
            .generation = g, .dst = dst, .stationary = x, .tags = tags, .moving = all, .pattern = { 4, 16 }
        };
        alone = trn_nc_matmul_sparse(&args);
        here = trn_core_nc_matmul_sparse(&core, &args);
    } else {
        const trn_nc_matmul_args args = { .generation = g,
                                          .dst = dst,
                                          .stationary = x,
                                          .moving = y,
                                          .double_row = mode == 1,
                                          .is_transpose = mode == 2 };
        alone = trn_nc_matmul(&args);
        here = trn_core_nc_matmul(&core, &args);
    }
    if (alone != here) fail_msg("%s x %s, mode %d: %d alone, %s", trn_format_name(a), trn_format_name(b), mode, alone,
                                core.failure.text);
    memset(&core.failure, 0, sizeof core.failure);
    trn_core_release(&core, mark);
}

/* Whatever runs has a cost: the table of costs and the engine agree about formats and modes. */
static void every_matmul_that_runs_has_a_cost(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        for (int a = TRN_F32; a < TRN_CFP8; a++)
            for (int b = TRN_F32; b < TRN_CFP8; b++)
                for (int mode = 0; mode < 4; mode++) matmul_both_ways(g, (trn_format)a, (trn_format)b, mode);
        assert_true(core.instructions > 40);
    }
}

/* Casts need software descriptors, which take GpSimd's time; hardware ones only delay. */
static void descriptors_take_the_time_of_whoever_makes_them(void **state)
{
    (void)state;
    static const struct { trn_dge_mode mode; trn_format format; double start_ns, gpsimd_ns; } row[] = {
        { TRN_DGE_UNKNOWN, TRN_F32, 1300, 0 }, { TRN_DGE_UNKNOWN, TRN_BF16, 1900, 600 },
        { TRN_DGE_HWDGE, TRN_F32, 1900, 0 },   { TRN_DGE_SWDGE, TRN_F32, 1900, 600 },
        { TRN_DGE_NONE, TRN_F32, 1300, 0 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_dma_copy_args load = { .dst = trn_core_sbuf(&core, "x", row[i].format, 128, 64),
                                         .dge_mode = row[i].mode,
                                         .src = trn_core_hbm(&core, "h", trn_tensor_2d(TRN_F32, hbm[0], 128, 64)) };
        trn_core_dma_copy(&core, &load);
        fine();
        trn_core_report r;
        trn_core_report_of(&core, &r);
        const double transfer_s = r.engine[TRN_ENGINE_DMA].busy_s; /* 128 descriptors of 256 bytes, as dear as 512 */
        assert_true(fabs(transfer_s - 8 * 512 / 23e9) < 1e-15);
        assert_true(fabs(r.time_s - transfer_s - 1e-9 * row[i].start_ns) < 1e-15);
        assert_true(fabs(r.engine[TRN_ENGINE_GPSIMD].busy_s - 1e-9 * row[i].gpsimd_ns) < 1e-15);
        assert_true(r.dma_bytes == 128 * 64 * 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_takes_the_memory_that_it_asks_for),
        cmocka_unit_test(parts_of_a_core_lie_apart),
        cmocka_unit_test(tiles_that_no_machine_has_are_refused),
        cmocka_unit_test(failures_stick),
        cmocka_unit_test(tiles_have_memory_after_a_failure),
        cmocka_unit_test(reads_of_what_nothing_has_written_are_told),
        cmocka_unit_test(a_tile_may_hold_anything),
        cmocka_unit_test(scattered_rows_are_written_and_others_are_not),
        cmocka_unit_test(the_first_of_16_partitions_are_counted),
        cmocka_unit_test(a_transposing_product_carries_what_is_unwritten),
        cmocka_unit_test(memory_that_is_not_there_is_told_by_name),
        cmocka_unit_test(patterns_that_no_engine_follows_are_refused),
        cmocka_unit_test(engines_reach_what_they_reach),
        cmocka_unit_test(a_matmul_adds_to_what_a_matmul_wrote),
        cmocka_unit_test(a_scale_tile_holds_scales_of_several_tensors),
        cmocka_unit_test(scales_that_nothing_wrote_are_told_and_others_are_not),
        cmocka_unit_test(scale_tiles_lie_where_tiles_can),
        cmocka_unit_test(scales_of_others_are_not_waited_for),
        cmocka_unit_test(a_core_computes_what_the_engines_compute),
        cmocka_unit_test(random_programs_start_when_a_slow_simulator_says),
        cmocka_unit_test(memory_of_a_freed_tile_is_ready_when_its_users_are_done),
        cmocka_unit_test(cycles_add_up_by_hand),
        cmocka_unit_test(every_matmul_that_runs_has_a_cost),
        cmocka_unit_test(descriptors_take_the_time_of_whoever_makes_them),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(room);
    return failed;
}

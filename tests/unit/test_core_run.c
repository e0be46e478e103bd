/* test_core_run.c - kernels on a core: what it refuses, in which words, when each instruction begins, and what adds up.
 * SPDX-License-Identifier: MIT
 *
 * Here: cores, tiles, views and engines that are refused, and what lies where afterwards; core_run/ has the rest.
 */
#include "unit/core_steps.h"

#include "unit/core_run/groups.h"

/* ---- begin ---- */

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

/* ---- what it refuses ---- */

static void tiles_that_no_machine_has_are_refused(void **state)
{
    (void)state;
    static const struct {
        trn_core_tile_args args;
        const char *sentence;
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
    const char *const first = of->memory[space].base, *const end = first + TRN_PARTITIONS * of->memory[space].pitch;
    int64_t index[TRN_MAX_RANK] = { 0 }, touched = 0;
    for (;;) {
        volatile char *at = (char *)t.data;
        for (int i = 0; i < t.rank; i++) at += index[i] * t.stride[i] * bytes;
        for (int64_t k = 0; k < bytes; k++) {
            assert_true(at + k >= first && at + k < end);
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
    const trn_core_tile_args all = {
        .space = space, .name = "all", .format = TRN_U8, .rank = 2, .shape = { 128, most }
    };
    const trn_tensor first = trn_core_tile(&own, &all), lost = trn_core_tile(&own, &all); /* no room */
    const trn_error failure = own.failure;
    assert_int_equal(failure.status, TRN_ELIMIT);
    assert_ptr_equal(lost.data, first.data);
    assert_int_equal(touch_all(lost, &own, space), 128 * most);
    const trn_core_tile_args deep = {
        .space = space, .format = TRN_BF16, .rank = 5, .shape = { 97, 2, 3, 5, 7 }, .start_partition = 32
    };
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

    begin(TRN_TRAINIUM2); /* an axis of one element steps nowhere, whatever its stride */
    x = tile("x", 32, 4);
    trn_tensor across = trn_tensor_slice(x, 1, 0, 1);
    across.stride[1] = x.stride[0];
    set(across, 1);
    fine();
    across.shape[0] = 16;
    across.shape[1] = 2;
    across.stride[1] = 16 * x.stride[0];
    set(across, 1);
    expect("instruction 1, memset: dst: axis 1 runs across partitions; only axis 0 can");

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_takes_the_memory_that_it_asks_for),
        cmocka_unit_test(tiles_that_no_machine_has_are_refused),
        cmocka_unit_test(failures_stick),
        cmocka_unit_test(tiles_have_memory_after_a_failure),
        cmocka_unit_test(memory_that_is_not_there_is_told_by_name),
        cmocka_unit_test(patterns_that_no_engine_follows_are_refused),
        cmocka_unit_test(engines_reach_what_they_reach),
    };
    const int failed = cmocka_run_group_tests_name("core_run", tests, NULL, NULL);
    return failed + core_run_layout() + core_run_unwritten() + core_run_scales() + core_run_clocks() +
           core_run_registers();
}

/* core_costs/transfers.c - what DMA is asked to move for each transfer, its seconds by what trn_cost.h says.
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "unit/core_costs/groups.h"
#include "unit/core_steps.h"

static float host[4][128 * 512];

static trn_tensor outside(int which, trn_format format, int64_t p, int64_t f)
{
    return trn_core_hbm(&core, "h", trn_tensor_2d(format, host[which], p, f));
}

/* The transfer that has run is the one that was asked about. */
static void moved(trn_dma_work work)
{
    trn_core_report report;
    trn_dma_cost cost;
    work.generation = core.spec->generation;
    assert_int_equal(trn_dma_seconds(&work, &cost), TRN_OK);
    fine();
    trn_core_report_of(&core, &report);
    assert_true(report.dma_bytes == work.bytes);
    assert_true(fabs(report.engine[TRN_ENGINE_DMA].busy_s - cost.transfer_s) < 1e-15);
    assert_true(fabs(report.engine[TRN_ENGINE_GPSIMD].busy_s - cost.gpsimd_s) < 1e-15);
    assert_true(fabs(report.time_s - (cost.issue_s + cost.gpsimd_s + cost.latency_s + cost.transfer_s)) < 1e-15);
}

static void copies_move_their_bytes(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2); /* both in HBM: all of it follows itself */
    const trn_dma_copy_args within = { .dst = outside(0, TRN_F32, 128, 512), .src = outside(1, TRN_F32, 128, 512) };
    trn_core_dma_copy(&core, &within);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 128 * 512 * 4 });
    begin(TRN_TRAINIUM2); /* rows of 256 bytes, which follow each other: not one short descriptor for each */
    const trn_dma_copy_args narrow = { .dst = outside(0, TRN_F32, 1024, 64), .src = outside(1, TRN_F32, 1024, 64) };
    trn_core_dma_copy(&core, &narrow);
    moved((trn_dma_work){ .bytes = 1024 * 64 * 4, .run_bytes = 1024 * 64 * 4 });
    begin(TRN_TRAINIUM2); /* rows of a tile are apart */
    const trn_dma_copy_args load = { .dst = sbuf(TRN_F32, 512), .src = outside(1, TRN_F32, 128, 512) };
    trn_core_dma_copy(&core, &load);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4 });
    begin(TRN_TRAINIUM2); /* a cast: the wider side counts, and software makes the descriptors */
    const trn_dma_copy_args cast = { .dst = outside(0, TRN_BF16, 128, 512), .src = sbuf(TRN_F32, 512) };
    trn_core_dma_copy(&core, &cast);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4, .software = true });
    for (trn_generation g = TRN_TRAINIUM2; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g); /* sums on the way cost a copy's time from Trainium3 on */
        const trn_dma_copy_args sum = { .dst = outside(0, TRN_F32, 128, 512),
                                        .src = outside(1, TRN_F32, 128, 512),
                                        .accumulate = true };
        trn_core_dma_copy(&core, &sum);
        moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 128 * 512 * 4, .compute = g == TRN_TRAINIUM2 });
    }
    begin(TRN_TRAINIUM1);
    const trn_dma_copy_args squeezed = { .dst = sbuf(TRN_F32, 512),
                                         .src = outside(1, TRN_F32, 128, 512),
                                         .compression = 0.25 };
    trn_core_dma_copy(&core, &squeezed);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4, .wire = 0.25 });
}

static void rows_by_an_index_move_one_by_one(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        begin(TRN_TRAINIUM2);
        trn_dma_copy_args a = { .dst = outside(0, TRN_F32, 64, 512), .src = outside(1, TRN_F32, 64, 512) };
        const trn_tensor index = zeros(TRN_SPACE_SBUF, TRN_U32, 64, 1);
        if (side)
            a.dst_index = index;
        else
            a.src_index = index;
        trn_core_dma_copy(&core, &a);
        moved((trn_dma_work){ .bytes = 64 * 512 * 4, .run_bytes = 512 * 4, .software = true });
    }
}

static void transposes_and_sums(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        begin(TRN_TRAINIUM2);
        const trn_dma_transpose_args a = { .dst = sbuf(TRN_BF16, 64),
                                           .src = inside ? zeros(TRN_SPACE_SBUF, TRN_BF16, 64, 128)
                                                         : outside(0, TRN_BF16, 64, 128) };
        trn_core_dma_transpose(&core, &a);
        moved((trn_dma_work){ .bytes = 64 * 128 * 2, .run_bytes = 2, .transpose = true, .from_sbuf = inside });
    }
    for (int order = 0; order < 2; order++) { /* the shortest run of all sources, and the bytes of each */
        begin(TRN_TRAINIUM2);
        const trn_tensor whole = outside(1, TRN_F32, 64, 512), rows = zeros(TRN_SPACE_SBUF, TRN_F32, 64, 512);
        const trn_tensor srcs[3] = { order ? rows : whole, order ? whole : rows, whole };
        const trn_dma_compute_args a = { .dst = outside(0, TRN_F32, 64, 512), .srcs = srcs, .count = 3 };
        trn_core_dma_compute(&core, &a);
        moved((trn_dma_work){ .bytes = 3 * 64 * 512 * 4, .run_bytes = 512 * 4, .compute = true });
    }
    for (int scatter = 0; scatter < 2; scatter++) { /* one row of dst at a time, or of the source */
        begin(TRN_TRAINIUM2);
        const trn_tensor dst = outside(0, TRN_F32, 64, 256), index = zeros(TRN_SPACE_SBUF, TRN_U32, 64, 1);
        const trn_tensor srcs[2] = { outside(1, TRN_F32, 64, 256), dst };
        const trn_dma_compute_args a = { .dst = dst, .srcs = srcs, .count = 2, .index = index, .scatter = scatter };
        trn_core_dma_compute(&core, &a);
        moved((trn_dma_work){ .bytes = 2 * 64 * 256 * 4, .run_bytes = 256 * 4, .compute = true, .software = true });
    }
}

int core_costs_transfers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_move_their_bytes),
        cmocka_unit_test(rows_by_an_index_move_one_by_one),
        cmocka_unit_test(transposes_and_sums),
    };
    return cmocka_run_group_tests_name("core_costs_transfers", tests, NULL, NULL);
}

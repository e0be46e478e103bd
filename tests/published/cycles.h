/* cycles.h - what instructions and transfers cost, by the documented formulas.
 * SPDX-License-Identifier: MIT
 *
 * Sources: the rows of trn_cost.h name the page of each rule.
 */
#ifndef PUBLISHED_CYCLES_H
#define PUBLISHED_CYCLES_H

#include "trnmath/trn_cost.h"

/* Instructions by the documented formulas: cycles of their engine, N elements per partition. Trainium2 where none is
 * named. */
/* The formatter takes the braces for a block. */
/* clang-format off */
#define PUBLISHED_WORK(id, n, ...) { .rule = TRN_RULE_##id, .elements = n, __VA_ARGS__ }
/* clang-format on */
static const struct published_work {
    trn_engine_work work;
    double expected;
} published_cycles[] = {
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .zero = false), 512 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 1, .zero = false), 64 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_16bit = true), 128 }, /* 4x within SBUF */
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_16bit = true, .scattered = true), 256 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_16bit = true, .psum_inputs = 1), 256 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_16bit = true, .psum_inputs = 1, .scattered = true), 512 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_fast = true), 512 }, /* FP8: Trainium3 */
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_fast = true, .generation = TRN_TRAINIUM3), 128 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .all_16bit = true, .generation = TRN_TRAINIUM1), 512 },
    { PUBLISHED_WORK(TENSOR_TENSOR, 512, .zero = false), 1024 },
    { PUBLISHED_WORK(TENSOR_TENSOR, 512, .psum_inputs = 1), 512 },
    { PUBLISHED_WORK(TENSOR_TENSOR, 512, .all_16bit = true), 512 },
    { PUBLISHED_WORK(TENSOR_TENSOR, 512, .all_16bit = true, .generation = TRN_TRAINIUM1), 1024 },
    { PUBLISHED_WORK(TENSOR_TENSOR, 512, .all_bf16 = true, .simple = true, .generation = TRN_TRAINIUM1), 512 },
    { PUBLISHED_WORK(SCALAR_TENSOR_TENSOR, 512, .all_bf16 = true, .simple = true), 512 },
    { PUBLISHED_WORK(SCALAR_TENSOR_TENSOR, 511, .all_bf16 = true, .simple = true), 1022 },
    { PUBLISHED_WORK(TENSOR_REDUCE, 512, .all_bf16 = true, .simple = true), 256 },
    { PUBLISHED_WORK(TENSOR_REDUCE, 512, .simple = true), 512 },
    { PUBLISHED_WORK(TENSOR_SCALAR_REDUCE, 512, .zero = false), 576 },
    { PUBLISHED_WORK(TENSOR_TENSOR_SCAN, 512, .zero = false), 1024 },
    { PUBLISHED_WORK(RECIPROCAL, 512, .zero = false), 4096 },
    { PUBLISHED_WORK(RECIPROCAL, 4, .zero = false), 64 },
    { PUBLISHED_WORK(BN_AGGR, 30, .zero = false), 130 },
    { PUBLISHED_WORK(EXPONENTIAL, 512, .generation = TRN_TRAINIUM3), 128 },
    { PUBLISHED_WORK(QUANTIZE_MX, 512, .generation = TRN_TRAINIUM3), 128 },
    { PUBLISHED_WORK(ACTIVATION, 512, .registers = true), 576 },
    { PUBLISHED_WORK(SCALAR_COPY, 512, .all_16bit = true), 512 },
    { PUBLISHED_WORK(SCALAR_COPY, 512, .all_16bit = true, .generation = TRN_TRAINIUM3), 256 },
    { PUBLISHED_WORK(MEMSET, 512, .zero = true, .all_16bit = true), 256 },
    { PUBLISHED_WORK(IOTA, 512, .zero = false), 662 },
    { PUBLISHED_WORK(TOPK, 1024, .more_cycles = 8), 4104 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .far_stride = true), 1024 },
    { PUBLISHED_WORK(TENSOR_SCALAR, 512, .dependent = true), 612 },
    { PUBLISHED_WORK(GPSIMD_CUSTOM, 512, .more_cycles = 77), 77 },
};
#undef PUBLISHED_WORK
enum { PUBLISHED_CYCLES = sizeof published_cycles / sizeof published_cycles[0] };

/* Transfers on one core's sixteen queues: descriptors, and the time from the first byte to the last. */
static const struct published_transfer {
    trn_dma_work work;
    double descriptors, transfer_ns;
} published_transfers[] = {
    { { .generation = TRN_TRAINIUM2, .bytes = 262144, .run_bytes = 2048 }, 128, 8 * 2048 / 23.0 },
    { { .generation = TRN_TRAINIUM1, .bytes = 262144, .run_bytes = 262144 }, 64, 4 * 4096 / 17.0 },
    { { .generation = TRN_TRAINIUM3, .bytes = 65536, .run_bytes = 4096 }, 16, 4096 / 33.0 },
    { { .generation = TRN_TRAINIUM2, .bytes = 512, .run_bytes = 4 }, 128, 8 * 512 / 23.0 }, /* as dear as 512 each */
    { { .generation = TRN_TRAINIUM2, .bytes = 4, .run_bytes = 4 }, 1, 512 / 23.0 },
    { { .generation = TRN_TRAINIUM2, .bytes = 65536, .run_bytes = 2, .transpose = true }, 16, 4096 / (23 * 0.9) },
    { { .generation = TRN_TRAINIUM2, .bytes = 65536, .transpose = true, .from_sbuf = true }, 16, 4096 / 11.5 },
    { { .generation = TRN_TRAINIUM2, .bytes = 65536, .run_bytes = 4096, .compute = true }, 16, 4096 / 11.5 },
    { { .generation = TRN_TRAINIUM1, .bytes = 65536, .run_bytes = 4096, .wire = 0.5 }, 16, 2048 / 17.0 },
};
enum { PUBLISHED_TRANSFERS = sizeof published_transfers / sizeof published_transfers[0] };

#endif /* PUBLISHED_CYCLES_H */

/* trn_core.h - one whole NeuronCore: memory with its limits, every instruction, a clock per engine. The guide to it.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static float x[128 * 512], y[128 * 512];
 *         trn_core core;
 *         const trn_core_args args = { .generation = TRN_TRAINIUM2 };
 *         if (trn_core_begin(&core, &args)) return 1;
 *         trn_tensor in = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 512));
 *         trn_tensor out = trn_core_hbm(&core, "y", trn_tensor_2d(TRN_F32, y, 128, 512));
 *         trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 128, 512);       // [P, F]
 *         trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = tile, .src = in });
 *         trn_core_activation(&core, &(trn_activation_args){ .dst = tile, .src = tile, .op = TRN_ACT_EXP });
 *         trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = out, .src = tile });
 *         const char *text;
 *         if (trn_core_status(&core, &text)) return puts(text), 1;
 *         trn_core_report report;
 *         trn_core_report_of(&core, &report);
 *         printf("%s; SBUF %lld bytes\n", report.bound_text, (long long)report.sbuf_high_water);
 *         trn_core_end(&core);
 *         return y[0] == 1.0f ? 0 : 1;
 *     }
 *
 * DOES: lets a kernel be written as it is in NKI, tile by tile and instruction by instruction, and says three things of
 *     it: the numbers, as the engines round them; whether it is legal and fits; how long each engine is busy.
 *     Memory      trn_core_sbuf, trn_core_psum, trn_core_tile give views [P, F ...]; trn_tensor_slice, _split, _merge,
 *                 _broadcast and _transposed cut them without copies. Tiles begin full of NaN, and what reads a byte
 *                 that nothing has written is told so. trn_core_hbm makes the caller's memory HBM, which only DMA
 *                 reaches.
 *     Instructions  trn_core_<instruction>(&core, &args), the same args as without a core, of which generation,
 *                 numerics, random streams and registers may stay empty.
 *     Failures    stick: the first one is kept with the number and the name of its instruction; after it nothing
 *                 happens.
 *     Time        engines run side by side, each in its own order; an instruction begins when its engine is free and
 *                 what it reads and overwrites is ready. To let DMA and engines overlap in a loop, let tiles take turns
 *                 (two of each), as on the machine. A trace (trn_trace.h) shows it.
 * DOES NOT: define anything, or schedule: instructions run in the order in which they are given.
 *
 * CONTENTS
 *     trn_core_<instruction>   and everything else, in its rooms:
 *     rooms      core/core_run.h (instructions, the report) trn_core_state.h (begin, end, tiles, HBM, failures)
 *                core/core_operand.h core/core_table.h core/core_memory.h core/core_clock.h
 *     costs      trn_engine_cycles.h trn_tensor_cost.h
 *
 * KNOWN FROM: each room's own lines. Costs, each with its source: trn_engine_cycles.h, trn_tensor_cost.h.
 */
#ifndef TRN_CORE_H
#define TRN_CORE_H

#include "core/core_clock.h"
#include "core/core_memory.h"
#include "core/core_operand.h"
#include "core/core_run.h"
#include "trn_core_state.h"
#include "core/core_table.h"
#include "trn_engine_cycles.h"
#include "trn_tensor_cost.h"

#endif /* TRN_CORE_H */

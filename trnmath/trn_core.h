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
 *                 _broadcast and _transposed cut them without copies. Tiles begin full of NaN. What nothing has written
 *                 may be copied and computed with elementwise; it is refused where it reaches HBM, a reduction, a
 *                 predicate or an index, and the sentence tells how it came there. trn_core_hbm makes
 *                 the caller's memory HBM, which only DMA reaches; one of trn_core_hbm_empty has nothing in it either.
 *     Instructions  trn_core_<instruction>(&core, &args), the same args as without a core, of which generation,
 *                 numerics, random streams and registers may stay empty.
 *     Failures    stick: the first one is kept with the number and the name of its instruction; after it nothing
 *                 happens.
 *     Time        engines run side by side, each in its own order; an instruction begins when its engine is free and
 *                 what it reads and overwrites is ready. To let DMA and engines overlap in a loop, let tiles take turns
 *                 (two of each), as on the machine. A trace (trn_trace.h) shows it.
 * DOES NOT: schedule: instructions run in the order in which they are given.
 *
 * CONTENTS
 *   core/core_state.h: one NeuronCore: its memory and tiles, its clocks, and the first thing that went wrong.
 *     trn_core, trn_core_args, trn_core_memory_bytes, trn_core_begin, trn_core_end
 *     trn_pace                         what its clock believes: pages, or profiles of devices
 *     trn_core_step, trn_core_steps    when each instruction was ready, began and was done
 *     trn_core_status                  the first failure
 *     trn_core_sbuf, trn_core_psum     a tile [P, F]
 *     trn_core_tile_args, trn_core_tile   any tile: more axes, other partitions
 *     trn_indirect_args                what trn_core_indirect takes
 *     trn_core_free, trn_core_mark, trn_core_release   tiles back, one, or all since a mark
 *     trn_core_hbm                     the caller's memory as a tensor in HBM
 *     trn_hbm_written, trn_hbm_written_bytes, trn_hbm_written_begin, trn_core_hbm_empty   one with nothing in it yet
 *   core/core_instructions.h: every instruction on a core, what the caller says of his own tensors, and the report.
 *     trn_core_<instruction>    all of nki.isa that exists here, with the same args as without a core: the rows of
 *                               core/core_rows.h
 *     trn_core_indirect         a view whose elements an index tile chooses (Trainium3)
 *     trn_core_written          the caller has filled a tile himself
 *     trn_core_result           the caller takes a tensor in HBM for a result: was all of it written?
 *     trn_core_engine_report, trn_core_report, trn_core_report_of   how long, how full, what bounds it
 *   core/core_register.h: registers of a core's sequencers: loops and addresses that depend on numbers in tiles.
 *     trn_register                                       a number, and when it is known
 *     trn_register_move_args, trn_core_register_move     from another register, or a constant
 *     trn_register_load_args, trn_core_register_load     from a tile or HBM
 *     trn_register_store_args, trn_core_register_store   to a tile or HBM
 *     trn_register_read_args, trn_core_register_read     by the program: loops, conditions, addresses
 *
 * KNOWN FROM: NKI's pages and architecture guides. Costs, each with its source: trn_cost.h.
 */
#ifndef TRN_CORE_H
#define TRN_CORE_H

#include "base/words_begin.h"

#include "core/core_state.h"
#include "core/core_instructions.h"
#include "core/core_register.h"

#include "base/words_end.h"

#endif /* TRN_CORE_H */

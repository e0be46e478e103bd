/* trn_cores.h - many NeuronCores run one kernel: barriers, sendrecv and collectives inside it, one time for all.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cores.h>
 *     #include <stdio.h>
 *     static trn_status kernel(trn_cores_rank *self, void *user) {              // runs once on each core
 *         trn_core *core = &self->core;
 *         float *sums = (float *)user;
 *         trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, 128, 512);
 *         trn_core_memset(core, &(trn_memset_args){ .dst = tile, .value = (float)self->rank_id });
 *         trn_cores_all_reduce(self, &(trn_cores_collective_args){ .dst = tile, .src = tile });
 *         if (!trn_core_status(core, NULL)) sums[self->rank_id] = *(float *)tile.data;
 *         return TRN_OK;
 *     }
 *     int main(void) {
 *         float sums[4];
 *         trn_cores cores;
 *         const trn_cores_args args = { .core = { .generation = TRN_TRAINIUM2 }, .ranks = 4 };
 *         if (trn_cores_begin(&cores, &args)) return puts(cores.failure.text), 1;
 *         if (trn_cores_run(&cores, kernel, sums)) return puts(cores.failure.text), 1;
 *         trn_cores_end(&cores);
 *         return sums[3] == 6.0f ? 0 : 1;                                       // 0 + 1 + 2 + 3
 *     }
 *
 * DOES: starts a kernel on each NeuronCore of a part of a system, as a C function that blocks where cores meet. Each
 *     has a trn_core of its own (trn_core.h). Rounds: every core runs until it waits or ends; when all do, the calls
 *     that belong together are matched in the order of ranks, get their values and their times, and go on.
 *     Values      trn_collective.h's: its schedules, its order of sums, its roundings.
 *     Time        a call begins when the last core has come to it and its data are ready, and takes what
 *                 trn_collective_cost.h expects; a sendrecv is a DMA from SBUF to SBUF. Engines that need none of its
 *                 tiles go on meanwhile.
 *     Failures    cores that wait for each other for ever, and calls that do not fit together, are told in a sentence:
 *                 who waits for whom, at which instruction. So is the first failure of any core. It ends the run.
 *     Threads     bits and times are the same for any number of threads.
 * DOES NOT: let a core have two of these calls under way at once, in another order than the others; share links between
 *     collectives of different rounds; slow down DMA while a collective runs.
 *
 * CONTENTS
 *   cores/cores.h: calls between the NeuronCores that run one kernel.
 *     trn_cores_args, trn_cores_begin, trn_cores_run, trn_cores_end   which cores; a kernel on all of them
 *     trn_cores_rank                 one core in its kernel: who it is
 *     trn_cores_report_of            how long, how full, who waits for whom
 *     trn_cores_barrier              nki.isa.core_barrier
 *     trn_cores_sendrecv             nki.isa.sendrecv
 *     trn_cores_hbm                  HBM that the cores of a logical core share
 *     trn_cores_all_reduce, trn_cores_all_gather, trn_cores_reduce_scatter, trn_cores_all_to_all   nki.collectives
 *     trn_cores_all_gather_v, trn_cores_all_to_all_v   how much each sends is known in the kernel only
 *     trn_cores_collective_permute, trn_cores_collective_permute_implicit,
 *     trn_cores_collective_permute_implicit_reduce     from one to one
 *     trn_cores_mesh_group           lists along axes of a mesh
 *     trn_cores_current_processing_rank_id             whose data have come round a ring
 *   cores/cores_args.h: what many NeuronCores that run one kernel are asked: which cores, and the calls between them.
 *     trn_cores_exchange             how processes that share out the chips tell each other
 *     trn_cores_args, trn_cores      which cores, and all of them
 *     trn_cores_rank, trn_cores_kernel   one core in its kernel
 *     trn_cores_report               how long, how full, who waits
 *     trn_cores_barrier_args         cores of a logical core wait for each other
 *     trn_dma_engine, trn_cores_sendrecv_args   they exchange tiles
 *     trn_replica_group, trn_cores_collective_args   collectives
 *
 * KNOWN FROM: NKI's pages on core_barrier, sendrecv and nki.collectives, release 2.33 (documented): who may take part,
 *     which memories and axes. What semaphores between cores cost: a step inside the chip (assumed).
 */
#ifndef TRN_CORES_H
#define TRN_CORES_H

#include "base/words_begin.h"

#include "cores/cores.h"
#include "cores/cores_args.h"

#include "base/words_end.h"

#endif /* TRN_CORES_H */

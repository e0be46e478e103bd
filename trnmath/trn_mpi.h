/* trn_mpi.h - the same collectives across processes: chips are shared out, every hop of the schedule is a message.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mpi.h> // cc -DTRN_USE_MPI $(pkg-config --cflags --libs ompi-c) ... -lm
 *     #include <stdio.h>
 *     int main(int argc, char **argv) { // mpirun -n 2 or 4: sixteen chips, each process has its share of them
 *         MPI_Init(&argc, &argv);
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_mpi mpi = trn_mpi_world();
 *         float x[16];
 *         trn_tensor view[16];
 *         for (int r = 0; r < 16; r++) x[r] = (float)r, view[r] = trn_tensor_1d(TRN_F32, &x[r], 1);
 *         trn_error error;
 *         trn_collective_args args = { 0 };
 *         args.net = &net;
 *         args.op = TRN_ALL_REDUCE;
 *         args.src = args.dst = view; // only those of this process' chips are looked at
 *         args.error = &error;
 *         const trn_status status = trn_mpi_collective_run(&mpi, &args);
 *         if (status != TRN_OK) fprintf(stderr, "%s\n", error.text);
 *         const int mine = trn_mpi_first_chip(&mpi, &net);
 *         const int right = status == TRN_OK && x[mine] == 120.0f;
 *         MPI_Finalize();
 *         return right ? 0 : 1;
 *     }
 *
 * DOES: runs the schedule of trn_schedule.h step by step; a process keeps the buffers of its own chips' ranks, and what
 *     a move takes from another process comes as one message. The sums are those of network/collective_values.h, so the
 *     bits are those of trn_collective_run in one process, for any number of processes. Everybody agrees before anybody
 *     writes: a process that is late, gone or was asked something else ends the call everywhere with a sentence, and no
 *     destination has been touched. Compared is every field that can change a bit, a byte or the course of messages:
 *     lists, networks and calibrations by their content, a zero as the default that it means, the owners of the chips,
 *     and which results this copy of the library computes (network/collective_signature.h,
 *     sharded/sharded_signature.h).
 * DOES NOT: start processes, use MPI's own reductions (their order is their own), or restart after a failure.
 *
 * CONTENTS
 *   mpi/mpi_collective.h: a collective whose ranks are in several processes: messages, agreement, and the same bits.
 *     trn_mpi, trn_mpi_world        who takes part, who has which chip, how long to wait
 *     trn_mpi_owner                 the process that has a chip
 *     trn_mpi_first_chip            the first chip of this process
 *     trn_mpi_collective_run        trn_collective_run, across processes
 *   mpi/mpi_sharded.h: a product of sharded matrices across processes: each multiplies for its own chips.
 *     trn_mpi_sharded_matmul     as trn_sharded_matmul; every process calls it with the same arguments but the views
 *   mpi/mpi_cores.h: a kernel on many NeuronCores across processes: each runs the ranks of its own chips.
 *     trn_mpi_cores_exchange     for trn_cores_args.exchange
 *
 * KNOWN FROM: the MPI standard, version 3.1 (messages between two processes arrive in the order they were sent).
 *
 * A process that is lost (killed, or ended without MPI_Finalize), as tried with Open MPI 4.1.4 on one machine: plain
 * mpirun notices it, kills the others and exits with a status of its own, so none of them gets to say anything. After
 * `mpirun --enable-recovery` the others go on: their call ends with TRN_EIO and a sentence that names the lost process,
 * at the latest timeout_s after it was missed, before the first step or between two. The same happens with any launcher
 * to those who wait for a process that hangs, is late or never calls. They may then call MPI_Abort; MPI_Finalize waits
 * for every process, and was seen to wait for a lost one without end.
 */
#ifndef TRN_MPI_H
#define TRN_MPI_H

#include "base/words_begin.h"

#include "mpi/mpi_collective.h"
#include "mpi/mpi_sharded.h"
#include "mpi/mpi_cores.h"

#include "base/words_end.h"

#endif /* TRN_MPI_H */

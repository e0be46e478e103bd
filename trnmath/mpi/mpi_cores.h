/* mpi/mpi_cores.h - a kernel on many NeuronCores across processes: each runs the ranks of its own chips.
 * A part of trn_mpi.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mpi.h> // cc -DTRN_USE_MPI $(pkg-config --cflags --libs ompi-c) ... -lm
 *     #include <stdio.h>
 *     static trn_status kernel(trn_cores_rank *self, void *user) {
 *         float *sum = (float *)user;
 *         const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_F32, 1, 1);
 *         const trn_memset_args set = { .dst = t, .value = 1 };
 *         trn_core_memset(&self->core, &set);
 *         const trn_cores_collective_args all = { .dst = t, .src = t };
 *         if (trn_cores_all_reduce(self, &all) == TRN_OK) sum[self->rank] = *(float *)t.data;
 *         return TRN_OK;
 *     }
 *     int main(int argc, char **argv) { // mpirun -n 1, 2 or 4: eight ranks on four chips, each process has its share
 *         float sum[8];
 *         trn_cores cores;
 *         MPI_Init(&argc, &argv);
 *         const trn_mpi mpi = trn_mpi_world();
 *         const trn_cores_exchange exchange = trn_mpi_cores_exchange(&mpi);
 *         trn_cores_args args = { .ranks = 8, .cores_per_chip = 2, .exchange = &exchange };
 *         trn_status status = trn_cores_begin(&cores, &args);
 *         if (!status) status = trn_cores_run(&cores, kernel, sum);
 *         if (status) fprintf(stderr, "%s\n", cores.failure.text);
 *         else if (cores.here && sum[cores.first] != 8) status = TRN_EINVAL;
 *         trn_cores_end(&cores);
 *         MPI_Finalize();
 *         return status;
 *     }
 *
 * DOES: carries what trn_cores_run's processes tell each other after each round: what their ranks wait for, then what
 *     calls across processes send. Bits and times are those of one process.
 * DOES NOT: start processes, or look at trn_mpi's .owner: process p has the p-th share of consecutive chips. A process
 *     waits for the others' rounds, so .timeout_s is to be longer than any of theirs takes.
 *
 * KNOWN FROM: trn_mpi.h, trn_cores.h.
 */
#ifndef TRNI_MPI_MPI_CORES_H
#define TRNI_MPI_MPI_CORES_H

#include "../cores/cores.h"
#include "mpi_collective.h"

#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0

/* mpi must live as long as the cores. A process that is late or gone ends the run of those who wait for it, with
 * TRN_EIO and a sentence that names it; the communicator is of no more use then. Its calls are made by the thread that
 * calls trn_cores_run. */
TRN_API trn_cores_exchange trn_mpi_cores_exchange(const trn_mpi *mpi);

#if TRNI_BODIES

/* Messages lie in memory of their own: where one does not come, it stays, as MPI may write to it at any time. */
TRNI_FN trn_status trni_mpi_cores_message(trni_mail *m, const void *mine, int64_t bytes, char *in,
                                          const int64_t *counts)
{
    trn_status status = TRN_OK;
    int64_t at = 0;
    char *out = in;
    for (int p = 0; p < m->processes; p++) out += counts[p];
    memcpy(out, mine, (size_t)bytes);
    for (int p = 0; p < m->processes && !status; p++) {
        if (p == m->me)
            memcpy(in + at, mine, (size_t)bytes);
        else if (counts[p])
            status = trni_mail_post(m, false, p, in + at, counts[p], false);
        if (p != m->me && bytes && !status) status = trni_mail_post(m, true, p, out, bytes, false);
        at += counts[p];
    }
    return status;
}

TRNI_FN trn_status trni_mpi_cores_wait(trni_mail *m)
{
    const double wait_s = trni_mail_patience(m);
    bool failed;
    const int i = trni_mail_await(m, MPI_Wtime() + wait_s, &failed);
    if (failed) return trni_fail(m->error, TRN_EIO, "the message with process %d failed", m->peer[i]);
    if (i < m->count) return trni_fail(m->error, TRN_EIO, "process %d has not answered for %g s", m->peer[i], wait_s);
    return TRN_OK;
}

TRNI_FN trn_status trni_mpi_cores_gather(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                                         trn_error *error)
{
    trni_mpi_call call;
    trni_mail mail;
    int64_t sum = 0;
    trni_mpi_enter(&call, &mail, (const trn_mpi *)user, "trn_cores_run", error);
    for (int p = 0; p < mail.processes; p++) sum += counts[p];
    char *memory = (char *)malloc((size_t)(sum + bytes) + 1);
    trn_status status = memory ? TRN_OK : trni_fail(error, TRN_ENOSPC, "no memory for %lld bytes", (long long)sum);
    if (!status) status = trni_mpi_cores_message(&mail, mine, bytes, memory, counts);
    if (!status) status = trni_mpi_cores_wait(&mail);
    if (!status) memcpy(all, memory, (size_t)sum);
    trni_mail_clear(&mail, !status);
    if (!status) free(memory);
    trni_mpi_leave(&call, &mail);
    return status;
}

TRN_API trn_cores_exchange trn_mpi_cores_exchange(const trn_mpi *mpi)
{
    trn_cores_exchange x;
    memset(&x, 0, sizeof x);
    MPI_Comm_rank(mpi->comm, &x.process);
    MPI_Comm_size(mpi->comm, &x.processes);
    x.gather = trni_mpi_cores_gather;
    x.user = (void *)(uintptr_t)mpi; /* it is only read */
    return x;
}

#endif /* TRNI_BODIES */

#endif /* TRN_USE_MPI */

#endif /* TRNI_MPI_MPI_CORES_H */

/* mpi_cores.c - a kernel on many cores across processes, held against the same in one process: bits and times.
 * SPDX-License-Identifier: MIT
 *
 *     mpirun -n 4 mpi_cores              prints one digest, the same for any number of processes
 *     mpirun -n 4 mpi_cores late         process 1 sleeps: the others end with a sentence, nothing is written
 *     mpirun -n 4 mpi_cores different    process 1 starts other ranks
 *     mpirun -n 4 mpi_cores killed       process 1 is lost in its kernel
 */
#define _POSIX_C_SOURCE 200809L
#include <trnmath/trn_mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 32, IDS = RANKS / 2, ELEMENTS = 8 * IDS };

typedef struct scene {
    float in[RANKS][ELEMENTS], out[RANKS][ELEMENTS];
    uint64_t digest[RANKS];
    bool dies;
} scene;

static int me, processes;

static void mix(uint64_t *digest, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) *digest = (*digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
}

static trn_status kernel(trn_cores_rank *self, void *user)
{
    scene *s = (scene *)user;
    trn_core *core = &self->core;
    const int r = self->rank;
    uint64_t digest = 0xcbf29ce484222325u;
    for (int i = 0; i < ELEMENTS; i++) s->in[r][i] = (float)(r * 5 + i) / 7;
    const trn_tensor in = trn_core_hbm(core, "in", trn_tensor_2d(TRN_F32, s->in[r], 4 * IDS, 2));
    const trn_tensor out = trn_core_hbm(core, "out", trn_tensor_2d(TRN_F32, s->out[r], 4 * IDS, 2));
    const trn_tensor x = trn_core_sbuf(core, "x", TRN_BF16, 16, 16), y = trn_core_sbuf(core, "y", TRN_BF16, 16, 16);
    const trn_memset_args set = { .dst = x, .value = 1.0f / (float)(r + 3) };
    const trn_cores_barrier_args all = { .all = true };
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k <= r % 4; k++) trn_core_memset(core, &set);
        trn_cores_collective_args a = { .dst = y, .src = x, .rounding = TRN_STOCHASTIC, .seed = (uint64_t)i };
        trn_cores_all_reduce(self, &a);
        if (s->dies && i == 1 && self->rank == self->cores->first) raise(SIGKILL);
        const trn_cores_sendrecv_args swap = {
            .dst = x, .src = y, .send_to_rank = 1 - self->program_id, .recv_from_rank = 1 - self->program_id
        };
        trn_cores_sendrecv(self, &swap);
        a.dst = out;
        a.src = in;
        a.rounding = TRN_NEAREST_EVEN;
        trn_cores_all_to_all(self, &a);
        trn_cores_collective_permute_implicit(self, &a);
        trn_cores_barrier(self, &all);
        if (trn_core_status(core, NULL)) return TRN_OK;
        mix(&digest, s->out[r], sizeof s->out[r]);
        for (int p = 0; p < 16; p++) mix(&digest, trn_tensor_slice(x, 0, p, 1).data, 32);
        mix(&digest, &core->time_s, sizeof core->time_s);
    }
    s->digest[r] = digest;
    return TRN_OK;
}

static trn_status run(scene *s, const trn_cores_exchange *exchange, int ranks, double *time_s, trn_error *error)
{
    trn_cores cores;
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = ranks;
    args.lnc = 2;
    args.cores_per_chip = 4;
    args.exchange = exchange;
    args.error = error;
    trn_status status = trn_cores_begin(&cores, &args);
    if (status) return status;
    status = trn_cores_run(&cores, kernel, s);
    *time_s = cores.time_s;
    trn_cores_end(&cores);
    return status;
}

static int together(const trn_mpi *mpi, scene *s)
{
    static scene alone;
    const trn_cores_exchange exchange = trn_mpi_cores_exchange(mpi);
    trn_error error = { TRN_OK, "" };
    double time_s = 0, alone_s = 0;
    uint64_t digest[RANKS], all = 0xcbf29ce484222325u;
    if (run(&alone, NULL, RANKS, &alone_s, &error)) return fprintf(stderr, "alone: %s\n", error.text), 1;
    if (run(s, &exchange, RANKS, &time_s, &error)) return fprintf(stderr, "%d: %s\n", me, error.text), 1;
    MPI_Allreduce(s->digest, digest, RANKS, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD); /* others are 0 here */
    mix(&all, digest, sizeof digest);
    if (me == 0) printf("%d processes, digest %016llx\n", processes, (unsigned long long)all);
    return memcmp(digest, alone.digest, sizeof digest) != 0 || time_s != alone_s;
}

static int misbehave(const char *how, trn_mpi *mpi, scene *s)
{
    const trn_cores_exchange exchange = trn_mpi_cores_exchange(mpi);
    trn_error error = { TRN_OK, "" };
    double time_s = 0;
    bool untouched = true;
    s->dies = me == 1 && !strcmp(how, "killed");
    if (me == 1 && !strcmp(how, "late")) sleep(4);
    memset(s->out, 0x55, sizeof s->out);
    const trn_status status =
        run(s, &exchange, me == 1 && !strcmp(how, "different") ? RANKS / 2 : RANKS, &time_s, &error);
    for (size_t i = 0; i < sizeof s->out; i++) untouched = untouched && ((const unsigned char *)s->out)[i] == 0x55;
    if (!strcmp(how, "killed")) untouched = s->digest[0] == 0; /* what was before it stays */
    printf("process %d: %s, %s\n", me, error.text, untouched ? "nothing written" : "WRITTEN");
    fflush(stdout);
    if (strcmp(how, "different")) MPI_Abort(MPI_COMM_WORLD, status != TRN_OK && untouched ? 0 : 1);
    return status == TRN_OK || !untouched;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--misbehaviours")) return puts("late different") < 0;
    if (argc > 1 && !strcmp(argv[1], "--losses")) return puts("killed") < 0;
    static scene s;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    trn_mpi mpi = trn_mpi_world();
    if (argc > 1) mpi.timeout_s = 2;
    const int bad = argc > 1 ? misbehave(argv[1], &mpi, &s) : together(&mpi, &s);
    MPI_Finalize();
    return bad != 0;
}

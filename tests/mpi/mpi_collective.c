/* mpi_collective.c - every collective across processes, held against the same in one process, bit for bit.
 * SPDX-License-Identifier: MIT
 *
 *     mpirun -n 4 mpi_collective            all cases; prints one digest, the same for any number of processes
 *     mpirun -n 4 mpi_collective late       process 1 sleeps: everybody else ends with a sentence, nothing is written
 *     mpirun -n 4 mpi_collective different  process 1 is asked for something else
 *     mpirun -n 4 mpi_collective wrong      process 1 has a view of the wrong size
 *     mpirun -n 4 mpi_collective killed     process 1 ends without a word; also `exits`, and `killed-midway` and
 *                                           `exits-midway` between two of the steps
 */
#define _POSIX_C_SOURCE 200809L
#include <trnmath/trn_mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_RANKS = 64, ELEMENTS = 300, ROOM = ELEMENTS + MOST_RANKS };

typedef struct buffers {
    float in[MOST_RANKS][ROOM], out[MOST_RANKS][ROOM], expected[MOST_RANKS][ROOM];
} buffers;

static int me, processes, failures;
static uint64_t digest = 0xcbf29ce484222325u;

static void mix(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
}

/* Numbers that round: sums of them depend on their order. */
static void fill(buffers *b, trn_format format, uint64_t seed)
{
    for (int r = 0; r < MOST_RANKS; r++)
        for (int i = 0; i < ELEMENTS; i++) {
            const uint32_t word = trn_random_u32(seed, (uint64_t)r, (uint64_t)i);
            const float x = ((float)(word >> 8) / 8388608.0f - 1.0f) * (float)(1 << word % 8);
            const uint32_t code = trn_encode(format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
            memcpy((char *)b->in[r] + (size_t)i * trn_format_bytes(format), &code, trn_format_bytes(format));
        }
}

/* Sizes of the views of a case; n is the buffer of a rank. */
static void views(trn_collective_args *a, buffers *b, trn_tensor *src, trn_tensor *dst, trn_format format, int64_t n,
                  bool twin)
{
    const int ranks = trn_collective_ranks(a);
    for (int r = 0; r < ranks * trni_group_count(a); r++) {
        int64_t first, chunk;
        trn_collective_chunk(n, 1, ranks, r % ranks, &first, &chunk);
        const int64_t in = a->op == TRN_ALL_GATHER ? chunk : n;
        const int64_t out = a->op == TRN_REDUCE_SCATTER ? chunk : a->op == TRN_ALL_TO_ALL ? chunk * ranks : n;
        src[r] = trn_tensor_1d(format, b->in[r], in);
        dst[r] = trn_tensor_1d(format, twin ? b->expected[r] : b->out[r], out);
    }
    a->src = src;
    a->dst = dst;
}

static void one(const trn_mpi *mpi, trn_collective_args a, buffers *b, trn_format format, int64_t n)
{
    static trn_tensor src[MOST_RANKS], dst[MOST_RANKS], twin_src[MOST_RANKS], twin_dst[MOST_RANKS];
    trn_collective_args twin = a;
    trn_error error, twin_error;
    memset(b->out, 0x55, sizeof b->out);
    memset(b->expected, 0x55, sizeof b->expected);
    views(&a, b, src, dst, format, n, false);
    views(&twin, b, twin_src, twin_dst, format, n, true);
    a.error = &error;
    twin.error = &twin_error;
    const trn_status expected = trn_collective_run(&twin), status = trn_mpi_collective_run(mpi, &a);
    bool right = status == expected;
    for (int r = 0; right && status == TRN_OK && r < trn_collective_ranks(&a) * trni_group_count(&a); r++) {
        const int chip = trni_chip_of_rank(&a, r / trn_collective_ranks(&a), r % trn_collective_ranks(&a));
        const bool here = trn_mpi_owner(mpi, a.net, chip) == me;
        right = here ? !memcmp(b->out[r], b->expected[r], sizeof b->out[r]) : b->out[r][0] == b->out[r][1];
        mix(b->expected[r], (size_t)trn_tensor_elements(dst[r]) * trn_format_bytes(format));
    }
    if (right) return;
    failures++;
    printf("process %d: %s by %s, wire %s, %lld elements, %d ranks: differs (%s)\n", me, trn_collective_name(a.op),
           trn_algorithm_name(a.algorithm), trn_format_name(format), (long long)n, trn_collective_ranks(&a),
           status == expected ? "values"
           : status           ? error.text
                              : twin_error.text);
}

static void on_net(const trn_mpi *mpi, const trn_topology *net, int cores, const int *chips, int count, int groups,
                   buffers *b)
{
    static const trn_format formats[] = { TRN_F32, TRN_BF16 };
    static const int64_t sizes[] = { ELEMENTS, 37, 5, 0 };
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        for (int f = 0; f < 2; f++)
            for (int s = 0; s < 4; s++) {
                trn_collective_args a = { .net = net,
                                          .op = (trn_collective)op,
                                          .chips = chips,
                                          .count = count,
                                          .groups = groups,
                                          .ranks_per_chip = cores };
                if (s > 1 && f) continue;
                if (op == TRN_BROADCAST || op == TRN_SEND_RECV) a.root = 1;
                a.rounding = s == 1 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
                a.seed = 7;
                fill(b, formats[f], (uint64_t)(op * 100 + s)); /* most of the time of a case: once for all algorithms */
                for (int algorithm = 0; algorithm < TRN_POINT_TO_POINT; algorithm++) {
                    a.algorithm = (trn_algorithm)algorithm;
                    a.single_step = false;
                    one(mpi, a, b, formats[f], sizes[s]);
                    if (op != TRN_ALL_REDUCE || algorithm != TRN_MESH) continue;
                    a.single_step = true;
                    one(mpi, a, b, formats[f], sizes[s]);
                }
            }
}

static void all(const trn_mpi *mpi, buffers *b)
{
    const trn_topology torus = trn_topology_of(TRN_TRN2_48XLARGE), ring = trn_topology_ring(7, 1e9, 1e-6),
                       net = trn_topology_switch(8, 1e9, 1e-6);
    static const int rows[2][4] = { { 0, 1, 2, 3 }, { 8, 9, 10, 11 } }, odd[3] = { 9, 2, 14 };
    on_net(mpi, &torus, 1, NULL, 0, 0, b);
    on_net(mpi, &torus, 4, NULL, 0, 0, b);
    on_net(mpi, &torus, 2, rows[0], 4, 2, b);
    on_net(mpi, &torus, 1, odd, 3, 1, b);
    on_net(mpi, &ring, 2, NULL, 0, 0, b);
    on_net(mpi, &net, 1, NULL, 0, 0, b);
}

/* ---- misbehaviour ---- */

static int sends_to_live = -1; /* of this process; -1: it lives on */
static bool by_signal;

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (sends_to_live == 0 && by_signal) raise(SIGKILL);
    if (sends_to_live == 0) _exit(0);
    if (sends_to_live > 0) sends_to_live--;
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

/* One process misbehaves; the others must end with a sentence, with their destinations untouched. */
static int misbehave(const char *how, buffers *b)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_mpi mpi = trn_mpi_world();
    static trn_tensor src[MOST_RANKS], dst[MOST_RANKS];
    trn_error error = { TRN_OK, "" };
    trn_collective_args a = { .net = &net, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING, .error = &error };
    mpi.timeout_s = !strcmp(how, "late") ? 1 : 3;
    fill(b, TRN_F32, 1);
    memset(b->out, 0x55, sizeof b->out);
    views(&a, b, src, dst, TRN_F32, ELEMENTS, false);
    if (me == 1 && !strcmp(how, "late")) sleep(4);
    if (me == 1 && !strcmp(how, "different")) a.algorithm = TRN_MESH;
    if (me == 1 && !strcmp(how, "wrong")) dst[trn_mpi_first_chip(&mpi, &net)].shape[0]--;
    const bool lost = !strncmp(how, "killed", 6) || !strncmp(how, "exits", 5);
    if (me == 1 && lost) sends_to_live = strstr(how, "midway") ? 20 : 0;
    by_signal = how[0] == 'k';
    const trn_status status = trn_mpi_collective_run(&mpi, &a);
    bool untouched = true;
    for (size_t i = 0; i < sizeof b->out; i++) untouched = untouched && ((const unsigned char *)b->out)[i] == 0x55;
    printf("process %d: %s: %s, %s\n", me, trn_status_text(status), error.text,
           untouched ? "nothing written" : "WRITTEN");
    fflush(stdout);
    if (!strcmp(how, "late")) MPI_Abort(MPI_COMM_WORLD, status != TRN_OK && untouched ? 0 : 1);
    if (lost) { /* MPI_Finalize may wait for the lost one for ever; the other survivor has its say first */
        sleep(3);
        _exit(status == TRN_OK || !untouched);
    }
    return status == TRN_OK || !untouched;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--misbehaviours")) return puts("late different wrong") < 0;
    if (argc > 1 && !strcmp(argv[1], "--losses")) return puts("killed exits killed-midway exits-midway") < 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    buffers *b = malloc(sizeof *b);
    if (!b) return 2;
    int bad = 0;
    if (argc > 1)
        bad = misbehave(argv[1], b);
    else {
        const trn_mpi mpi = trn_mpi_world();
        int owner[16];
        all(&mpi, b);
        for (int i = 0; i < 16; i++) owner[i] = i % processes; /* and with chips dealt out one by one */
        trn_mpi dealt = mpi;
        dealt.owner = owner;
        all(&dealt, b);
        if (me == 0) printf("%d processes, digest %016llx\n", processes, (unsigned long long)digest);
        bad = failures;
    }
    free(b);
    MPI_Finalize();
    return bad != 0;
}

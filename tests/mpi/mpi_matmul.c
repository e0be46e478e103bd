/* mpi_matmul.c - products of sharded matrices across processes, held against the same in one process, bit for bit.
 * SPDX-License-Identifier: MIT
 *
 *     mpirun -n 4 mpi_matmul         all cases; prints one digest, the same for any number of processes
 *     mpirun -n 4 mpi_matmul late    process 1 sleeps: the others end with a sentence, nothing is written
 *     mpirun -n 4 mpi_matmul different   process 1 is asked for another sharding
 */
#define _POSIX_C_SOURCE 200809L
#include <trnmath/trn_mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEVICES = 16, ROOM = 64 * 96 };

typedef struct buffers {
    float a[DEVICES][ROOM], b[DEVICES][ROOM], dst[DEVICES][ROOM], expected[DEVICES][ROOM];
} buffers;

typedef struct product {
    const char *axes, *a, *b, *dst;
    int64_t m, n, k;
    trn_format in, out;
    trn_rounding rounding;
    trn_algorithm algorithm;
} product;

static const product products[] = {
    { "data=4,tensor=4", "(data, *)", "(*, tensor)", "(data, tensor)", 48, 64, 64, TRN_BF16, TRN_BF16, TRN_NEAREST_EVEN,
      TRN_ALGORITHM_AUTO },
    { "data=4,tensor=4", "(data, tensor)", "(tensor, *)", "(data, *)", 37, 33, 64, TRN_BF16, TRN_BF16, TRN_NEAREST_EVEN,
      TRN_RING },
    { "data=4,tensor=4", "(data, tensor)", "(tensor, *)", "(data, tensor)", 40, 64, 61, TRN_F32, TRN_F32,
      TRN_NEAREST_EVEN, TRN_RECURSIVE_DOUBLING },
    { "data=2,tensor=8", "(data, tensor)", "(*, *)", "(*, *)", 31, 29, 64, TRN_F16, TRN_F32, TRN_NEAREST_EVEN,
      TRN_ALGORITHM_AUTO },
    { "tensor=16", "(tensor, *)", "(*, tensor)", "(tensor, *)", 48, 48, 64, TRN_BF16, TRN_BF16, TRN_STOCHASTIC,
      TRN_ALGORITHM_AUTO },
    { "tensor=16", "(*, tensor)", "(tensor, *)", "(*, tensor)", 24, 40, 96, TRN_BF16, TRN_BF16, TRN_STOCHASTIC,
      TRN_MESH },
    { "x=4,y=4", "(x, y)", "(y, x)", "(x, *)", 20, 20, 20, TRN_F8_E4M3, TRN_BF16, TRN_NEAREST_EVEN,
      TRN_ALGORITHM_AUTO },
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

static int me, processes;
static uint64_t digest = 0xcbf29ce484222325u;

static void mix(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
}

/* A device's part holds what the whole has there: replicas are equal. */
static void part(const trn_mesh *mesh, const char *text, trn_format format, int64_t rows, int64_t columns,
                 float (*room)[ROOM], uint64_t seed, trn_tensor *view)
{
    trn_pspec spec;
    const trn_tensor whole = trn_tensor_2d(format, NULL, rows, columns);
    trn_pspec_parse(&spec, mesh, text);
    for (int i = 0; i < DEVICES; i++) {
        const trn_box box = trn_shard_box(mesh, &spec, &whole, i);
        view[i] = trn_tensor_2d(format, room[i], box.count[0], box.count[1]);
        for (int64_t r = 0; seed && r < box.count[0]; r++)
            for (int64_t c = 0; c < box.count[1]; c++) {
                const uint32_t word =
                    trn_random_u32(seed, 0, (uint64_t)((box.first[0] + r) * columns + box.first[1] + c));
                const uint32_t code = trn_encode(format, (float)(word >> 8) / 8388608.0f - 1.0f, TRN_NEAREST_EVEN,
                                                 TRN_OVERFLOW_DEFAULT, 0);
                memcpy((char *)room[i] + (size_t)(r * box.count[1] + c) * trn_format_bytes(format), &code,
                       trn_format_bytes(format));
            }
    }
}

static trn_sharded_matmul_args ask(const product *p, const trn_mesh *mesh, buffers *b, bool twin,
                                   trn_tensor (*view)[DEVICES], trn_error *error)
{
    trn_sharded_matmul_args args = {
        .mesh = mesh, .m = p->m, .n = p->n, .k = p->k, .algorithm = p->algorithm, .error = error
    };
    part(mesh, p->a, p->in, p->m, p->k, b->a, 5, view[0]);
    part(mesh, p->b, p->in, p->k, p->n, b->b, 6, view[1]);
    part(mesh, p->dst, p->out, p->m, p->n, twin ? b->expected : b->dst, 0, view[2]);
    trn_pspec_parse(&args.a_spec, mesh, p->a);
    trn_pspec_parse(&args.b_spec, mesh, p->b);
    trn_pspec_parse(&args.dst_spec, mesh, p->dst);
    args.a = view[0];
    args.b = view[1];
    args.dst = view[2];
    args.matmul.rounding = p->rounding;
    args.matmul.seed = 9;
    return args;
}

static int one(const product *p, const trn_topology *net, buffers *b)
{
    static trn_tensor view[3][DEVICES], twin_view[3][DEVICES];
    const trn_mpi mpi = trn_mpi_world();
    trn_mesh mesh;
    trn_error error = { TRN_OK, "" }, twin_error = { TRN_OK, "" };
    if (trn_mesh_init(&mesh, net, p->axes) != TRN_OK) return 1;
    memset(b->dst, 0x55, sizeof b->dst);
    memset(b->expected, 0x55, sizeof b->expected);
    const trn_sharded_matmul_args twin = ask(p, &mesh, b, true, twin_view, &twin_error);
    const trn_status expected = trn_sharded_matmul(&twin);
    const trn_sharded_matmul_args args = ask(p, &mesh, b, false, view, &error);
    const trn_status status = trn_mpi_sharded_matmul(&mpi, &args);
    bool right = status == TRN_OK && expected == TRN_OK;
    for (int i = 0; i < DEVICES && right; i++) {
        const bool here = trn_mpi_owner(&mpi, net, trn_mesh_chip(&mesh, i)) == me;
        right = here ? !memcmp(b->dst[i], b->expected[i], sizeof b->dst[i]) : ((unsigned char *)b->dst[i])[0] == 0x55;
        mix(b->expected[i], (size_t)trn_tensor_elements(twin_view[2][i]) * trn_format_bytes(p->out));
    }
    if (!right)
        printf("process %d: %s x %s -> %s: differs (%s%s)\n", me, p->a, p->b, p->dst, error.text, twin_error.text);
    return !right;
}

static int misbehave(const char *how, const trn_topology *net, buffers *b)
{
    static trn_tensor view[3][DEVICES];
    trn_mpi mpi = trn_mpi_world();
    trn_mesh mesh;
    trn_error error = { TRN_OK, "" };
    mpi.timeout_s = 1;
    if (trn_mesh_init(&mesh, net, products[1].axes) != TRN_OK) return 1;
    memset(b->dst, 0x55, sizeof b->dst);
    const product *p = &products[me == 1 && !strcmp(how, "different") ? 0 : 1];
    const trn_sharded_matmul_args args = ask(p, &mesh, b, false, view, &error);
    if (me == 1 && !strcmp(how, "late")) sleep(4);
    const trn_status status = trn_mpi_sharded_matmul(&mpi, &args);
    bool untouched = true;
    for (size_t i = 0; i < sizeof b->dst; i++) untouched = untouched && ((const unsigned char *)b->dst)[i] == 0x55;
    printf("process %d: %s, %s\n", me, error.text, untouched ? "nothing written" : "WRITTEN");
    fflush(stdout);
    if (!strcmp(how, "late")) MPI_Abort(MPI_COMM_WORLD, status != TRN_OK && untouched ? 0 : 1);
    return status == TRN_OK || !untouched;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--misbehaviours")) return puts("late different") < 0;
    if (argc > 1 && !strcmp(argv[1], "--losses")) return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    buffers *b = malloc(sizeof *b);
    int bad = 0;
    if (!b) return 2;
    if (argc > 1) bad = misbehave(argv[1], &net, b);
    for (int i = 0; argc == 1 && i < PRODUCTS; i++) bad += one(&products[i], &net, b);
    if (argc == 1 && me == 0) printf("%d processes, digest %016llx\n", processes, (unsigned long long)digest);
    free(b);
    MPI_Finalize();
    return bad != 0;
}

/* mpi_signature.c - every field that processes must have been given alike: one process differs in it, all refuse.
 * SPDX-License-Identifier: MIT
 *
 *     mpirun -n 3 mpi_signature      each row of the tables, in a collective and in a sharded product
 *
 * A row of the tables without a case here is a failure, and so is a case without a row. Cases change what one process,
 * the last, is asked; those that no argument can reach change the word in its signature while it is sent.
 */
#include <trnmath/trnmath.h> /* all of it: names of the rooms must not meet */

#include <stdio.h>
#include <stdlib.h>

enum { VIEWS = 64, ROOM = 640, CHIPS = 16 };

typedef struct scene {
    trn_mpi mpi;
    trn_topology net;
    trn_calibration calibration;
    trn_collective_args args; /* a collective, */
    int64_t elements;
    trn_mesh_args mesh; /* or a product */
    trn_mesh made;
    trn_sharded_matmul_args product;
    trn_numerics numerics;
    const char *axes, *a, *b, *dst;
    trn_format in, out;
    trn_error error;
    int flight; /* word of the signature that changes on its way; -1: none does */
} scene;

static int me, processes, failures, refusals;
static int flight = -1; /* of the call that runs */
static float in[VIEWS][ROOM], in2[VIEWS][ROOM], out[VIEWS][ROOM];
static const int straight[CHIPS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static const int swapped[CHIPS] = { 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static int owners[CHIPS];
static int64_t counts[CHIPS][CHIPS];

/* What is sent from the buffer of a signature is also what the sender reads of itself. */
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (tag == TRNI_MPI_SIGNATURE && flight >= 0) {
        uint64_t *word = (uint64_t *)(uintptr_t)buffer;
        word[flight] ^= 1;
        flight = -1;
    }
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

/* ---- cases: row, what all are asked in place of the plain scene, what the last process is asked then ---- */

/* The first level is a graph of three links, and a fourth one would close the ring. */
static void as_graph(scene *s)
{
    s->net.level[0].wiring = TRN_WIRING_GRAPH;
    s->net.wires = 3;
    for (int i = 0; i < 4; i++) {
        s->net.wire[i].from = (uint8_t)i;
        s->net.wire[i].to = (uint8_t)((i + 1) % 4);
        s->net.wire[i].bytes_per_s = 1e9;
    }
}

#define PLAIN (void)s
#define IN_FLIGHT s->flight = at

#define CASES_OF_HEADS(X)                                                                                              \
    X("the sign of a signature (another version of trnmath?)", PLAIN, IN_FLIGHT)                                       \
    X("the signature's layout", PLAIN, IN_FLIGHT)                                                                      \
    X("trnmath's version", PLAIN, IN_FLIGHT)                                                                           \
    X("the digest of trnmath's results", PLAIN, IN_FLIGHT)                                                             \
    X("the call (1: a collective, 2: a product)", PLAIN, IN_FLIGHT)                                                    \
    X("the stage of the call (1: its beginning, 2: its end)", PLAIN, IN_FLIGHT)                                        \
    X("the number of fields", PLAIN, IN_FLIGHT)                                                                        \
    X("the names of the fields", PLAIN, IN_FLIGHT)

#define CASES_OF_NETS(X, net_)                                                                                         \
    X(net_ ".chips", PLAIN, (s->net.level[1].size = 8, s->net.chips = 32))                                             \
    X(net_ ".levels", PLAIN, (s->net.level[2].size = 1, s->net.levels = 3))                                            \
    X(net_ ".level.wiring", PLAIN, s->net.level[0].wiring = TRN_WIRING_FULL)                                           \
    X(net_ ".level.size", PLAIN, (s->net.level[0].size = 8, s->net.level[1].size = 2))                                 \
    X(net_ ".level.planes", s->net.level[1].wiring = TRN_WIRING_SWITCH, s->net.level[1].planes = 2)                    \
    X(net_ ".level.bytes_per_s", PLAIN, s->net.level[1].bytes_per_s *= 2)                                              \
    X(net_ ".level.latency_s", PLAIN, s->net.level[1].latency_s *= 2)                                                  \
    X(net_ ".level.half_duplex", PLAIN, s->net.level[1].half_duplex = true)                                            \
    X(net_ ".level.kind", PLAIN, s->net.level[1].kind = TRN_LINK_EFA)                                                  \
    X(net_ ".store_and_forward", PLAIN, s->net.store_and_forward = true)                                               \
    X(net_ ".faults", PLAIN, (s->net.fault[0].share = 0.5, s->net.faults = 1))                                         \
    X(net_ ".fault", (s->net.fault[0].share = 0.5, s->net.faults = 1), s->net.fault[0].at = 1)                         \
    X(net_ ".wires", as_graph(s), s->net.wires = 4)                                                                    \
    X(net_ ".wire", as_graph(s), s->net.wire[2].bytes_per_s *= 2)                                                      \
    X(net_ ".start_s", PLAIN, s->net.start_s *= 2)                                                                     \
    X(net_ ".local_latency_s", PLAIN, s->net.local_latency_s *= 2)                                                     \
    X(net_ ".hbm_bytes_per_s", PLAIN, s->net.hbm_bytes_per_s *= 2)                                                     \
    X(net_ ".dma_bytes_per_s", PLAIN, s->net.dma_bytes_per_s *= 2)                                                     \
    X(net_ ".reduce_pass", PLAIN, s->net.reduce_pass *= 2)                                                             \
    X(net_ ".ranks_per_chip", PLAIN, s->net.ranks_per_chip = 2)                                                        \
    X(net_ ".system", PLAIN, s->net.system = TRN_TRN1_32XLARGE)

/* Half of what it is, or one. */
#define CASE_OF_NUMBER(X, ask, number)                                                                                 \
    X("calibration." #number, PLAIN,                                                                                   \
      (s->calibration.number = s->calibration.number > 0 ? s->calibration.number / 2 : 1,                              \
       ask.calibration = &s->calibration))

#define CASES_OF_BOTH(X, ask)                                                                                          \
    X("algorithm", PLAIN, ask.algorithm = TRN_MESH)                                                                    \
    X("wire", PLAIN, ask.wire = TRN_BF16)                                                                              \
    X("uncalibrated", PLAIN, ask.uncalibrated = true)                                                                  \
    CASE_OF_NUMBER(X, ask, rdh)                                                                                        \
    CASE_OF_NUMBER(X, ask, mesh)                                                                                       \
    CASE_OF_NUMBER(X, ask, memory)                                                                                     \
    CASE_OF_NUMBER(X, ask, launch_s)                                                                                   \
    CASE_OF_NUMBER(X, ask, instance_s)                                                                                 \
    CASE_OF_NUMBER(X, ask, step_s)                                                                                     \
    CASE_OF_NUMBER(X, ask, graph_s)                                                                                    \
    CASE_OF_NUMBER(X, ask, torus)                                                                                      \
    CASE_OF_NUMBER(X, ask, peer)                                                                                       \
    CASE_OF_NUMBER(X, ask, switched)                                                                                   \
    CASE_OF_NUMBER(X, ask, efa)                                                                                        \
    CASE_OF_NUMBER(X, ask, hbm)                                                                                        \
    CASE_OF_NUMBER(X, ask, dma)                                                                                        \
    CASE_OF_NUMBER(X, ask, rings)                                                                                      \
    CASE_OF_NUMBER(X, ask, spread)                                                                                     \
    X("mpi.owner", PLAIN, s->mpi.owner = owners)

#define CASES_OF_COLLECTIVES(X)                                                                                        \
    CASES_OF_HEADS(X)                                                                                                  \
    CASES_OF_NETS(X, "net")                                                                                            \
    CASES_OF_BOTH(X, s->args)                                                                                          \
    X("op", PLAIN, s->args.op = TRN_BROADCAST)                                                                         \
    X("chips", PLAIN, (s->args.chips = swapped, s->args.count = CHIPS))                                                \
    X("count", (s->args.chips = straight, s->args.count = 16), s->args.count = 8)                                      \
    X("groups", (s->args.chips = straight, s->args.count = 8, s->args.groups = 2), s->args.groups = 1)                 \
    X("ranks_per_chip", PLAIN, s->args.ranks_per_chip = 2)                                                             \
    X("accumulate", PLAIN, s->args.accumulate = TRN_BF16)                                                              \
    X("rounding", PLAIN, s->args.rounding = TRN_STOCHASTIC)                                                            \
    X("overflow", PLAIN, s->args.overflow = TRN_SATURATE)                                                              \
    X("seed", s->args.rounding = TRN_STOCHASTIC, s->args.seed = UINT64_MAX)                                            \
    X("stream", s->args.rounding = TRN_STOCHASTIC, s->args.stream = 5)                                                 \
    X("sr_bits", s->args.rounding = TRN_STOCHASTIC, s->args.sr_bits = 16)                                              \
    X("single_step", s->args.algorithm = TRN_MESH, s->args.single_step = true)                                         \
    X("enforce_rules", PLAIN, s->args.enforce_rules = true)                                                            \
    X("root", s->args.op = TRN_BROADCAST, s->args.root = 3)                                                            \
    X("target", s->args.op = TRN_SEND_RECV, s->args.target = 3)                                                        \
    X("targets", s->args.op = TRN_PERMUTE, s->args.targets = swapped)                                                  \
    X("counts", (s->args.op = TRN_ALL_TO_ALL, s->args.counts = other_counts(0)), s->args.counts = other_counts(1))     \
    X("granule", PLAIN, s->args.granule = 4)                                                                           \
    X("views.elements", PLAIN, s->elements--)                                                                          \
    X("chosen.algorithm", PLAIN, IN_FLIGHT)                                                                            \
    X("chosen.variant", PLAIN, IN_FLIGHT)

#define CASES_OF_SPECS(X, spec, text, other, turned)                                                                   \
    X(#spec ".dim.axes", PLAIN, s->text = other)                                                                       \
    X(#spec ".dim.axis", PLAIN, s->text = turned)                                                                      \
    X(#spec ".sum", PLAIN, IN_FLIGHT)                                                                                  \
    X(#spec ".op", PLAIN, IN_FLIGHT)

#define CASES_OF_PRODUCTS(X)                                                                                           \
    CASES_OF_HEADS(X)                                                                                                  \
    CASES_OF_NETS(X, "mesh.net")                                                                                       \
    CASES_OF_BOTH(X, s->product)                                                                                       \
    X("mesh.devices", PLAIN, (s->axes = "data=2,tensor=4", s->mesh.order = straight, s->mesh.count = 8))               \
    X("mesh.axes", PLAIN, s->axes = "data=4,tensor=4,one=1")                                                           \
    X("mesh.axis.size", PLAIN, s->axes = "data=2,tensor=8")                                                            \
    X("mesh.axis.stride", PLAIN, IN_FLIGHT)                                                                            \
    X("mesh.order", PLAIN, s->mesh.order = swapped)                                                                    \
    X("m", PLAIN, s->product.m = 20)                                                                                   \
    X("n", PLAIN, s->product.n = 20)                                                                                   \
    X("k", PLAIN, s->product.k = 20)                                                                                   \
    CASES_OF_SPECS(X, a_spec, a, "(data, *)", "(tensor, data)")                                                        \
    CASES_OF_SPECS(X, b_spec, b, "(*, *)", "(data, *)")                                                                \
    CASES_OF_SPECS(X, dst_spec, dst, "(*, *)", "(tensor, *)")                                                          \
    X("a.format", PLAIN, IN_FLIGHT)                                                                                    \
    X("b.format", PLAIN, IN_FLIGHT)                                                                                    \
    X("dst.format", PLAIN, s->out = TRN_BF16)                                                                          \
    X("matmul.generation", PLAIN, s->product.matmul.generation = TRN_TRAINIUM3)                                        \
    X("matmul.accumulate", PLAIN, s->product.matmul.accumulate = true)                                                 \
    X("matmul.double_row", s->in = TRN_F8_E4M3, s->product.matmul.double_row = true)                                   \
    X("matmul.rounding", PLAIN, s->product.matmul.rounding = TRN_STOCHASTIC)                                           \
    X("matmul.overflow", PLAIN, s->product.matmul.overflow = TRN_SATURATE)                                             \
    X("matmul.seed", s->product.matmul.rounding = TRN_STOCHASTIC, s->product.matmul.seed = 5)                          \
    X("matmul.stream", s->product.matmul.rounding = TRN_STOCHASTIC, s->product.matmul.stream = 5)                      \
    X("even_only", PLAIN, s->product.even_only = true)

/* The same sums of rows and columns, so that all views fit. */
static const int64_t *other_counts(int more)
{
    for (int i = 0; i < CHIPS; i++)
        for (int j = 0; j < CHIPS; j++) counts[i][j] = 4 + more * ((i == j) - ((i ^ 1) == j));
    return &counts[0][0];
}

/* One of the settings of a case, `odd` or what all have; false when there is no case for the row. */
static bool numerics_case(scene *s, const char *row, bool odd)
{
    static const char owner[] = "matmul.numerics.";
    int count;
    const trni_field *f = trni_numerics_fields(&count);
    if (strncmp(row, owner, sizeof owner - 1)) return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(f[i].name, row + sizeof owner - 1)) continue;
        int value = f[i].choice ? f[i].choice[0].value : f[i].low;
        if (value == f[i].fallback) value = f[i].choice ? f[i].choice[1].value : f[i].high;
        if (odd) trni_field_set(&s->numerics, &f[i], value);
        s->product.matmul.numerics = &s->numerics;
        if (!strncmp(f[i].name, "psum", 4)) s->product.matmul.generation = TRN_TRAINIUM3;
        if (!strcmp(f[i].name, "psum_rounding")) s->numerics.psum_format = TRN_BF16;
        return true;
    }
    return false;
}

static bool collective_case(scene *s, const char *row, int at, bool odd)
{
    (void)at;
#define CASE(name, all, one)                                                                                           \
    if (!strcmp(row, name)) {                                                                                          \
        all;                                                                                                           \
        if (odd) one;                                                                                                  \
        return true;                                                                                                   \
    }
    CASES_OF_COLLECTIVES(CASE)
    return false;
}

/* A case whose row is gone: the field would no longer be compared. */
#define NAME(name, all, one) name,
static const char *const names[2][128] = { { CASES_OF_COLLECTIVES(NAME) NULL }, { CASES_OF_PRODUCTS(NAME) NULL } };

static void no_row_is_missing(const trni_signature *b, bool products)
{
    for (int i = 0; names[products][i]; i++) {
        bool there = false;
        for (int at = 0; at < b->words && !there; at++) {
            char row[96];
            snprintf(row, sizeof row, "%s%s", b->row[at].owner, b->row[at].field);
            there = !strcmp(row, names[products][i]);
        }
        failures += !there;
        if (!there) printf("%s: %s is not compared\n", products ? "product" : "collective", names[products][i]);
    }
}

static bool product_case(scene *s, const char *row, int at, bool odd)
{
    (void)at;
    CASES_OF_PRODUCTS(CASE)
    return numerics_case(s, row, odd);
}

/* ---- scenes ---- */

static void plain(scene *s)
{
    memset(s, 0, sizeof *s);
    s->mpi = trn_mpi_world();
    s->mpi.timeout_s = 20;
    s->net = trn_topology_of(TRN_TRN2_48XLARGE);
    s->calibration = trn_calibration_default();
    s->elements = 64;
    s->args.op = TRN_ALL_REDUCE;
    s->args.algorithm = s->product.algorithm = TRN_RING;
    s->product.m = s->product.n = s->product.k = 16;
    s->axes = "data=4,tensor=4";
    s->a = "(data, tensor)";
    s->b = "(tensor, *)";
    s->dst = "(data, *)";
    s->in = s->out = TRN_F32;
    s->numerics = trn_numerics_default(TRN_GENERATION_DEFAULT);
    s->flight = -1;
}

static void fill(void)
{
    for (int r = 0; r < VIEWS; r++)
        for (int i = 0; i < ROOM; i++) in[r][i] = in2[r][i] = 1.0f / (float)(7 * r + i + 3);
    memset(out, 0x55, sizeof out);
}

static trn_collective_args *collective(scene *s)
{
    static trn_tensor src[VIEWS], dst[VIEWS];
    for (int r = 0; r < VIEWS; r++) {
        src[r] = trn_tensor_1d(TRN_F32, in[r], s->elements);
        dst[r] = trn_tensor_1d(TRN_F32, out[r], s->elements);
    }
    s->args.net = &s->net;
    s->args.src = src;
    s->args.dst = dst;
    s->args.error = &s->error;
    return &s->args;
}

static void parts(const trn_mesh *mesh, const char *text, trn_format format, int64_t rows, int64_t columns,
                  float (*room)[ROOM], trn_tensor *view, trn_pspec *spec)
{
    const trn_tensor whole = trn_tensor_2d(format, NULL, rows, columns);
    trn_pspec_parse(spec, mesh, text);
    for (int i = 0; i < mesh->devices && i < VIEWS; i++) {
        const trn_box box = trn_shard_box(mesh, spec, &whole, i);
        view[i] = trn_tensor_2d(format, room[i], box.count[0], box.count[1]);
    }
}

static trn_sharded_matmul_args *product(scene *s)
{
    static trn_tensor view[3][VIEWS];
    trn_sharded_matmul_args *p = &s->product;
    s->mesh.mesh = &s->made;
    s->mesh.net = &s->net;
    s->mesh.axes = s->axes;
    s->mesh.error = &s->error;
    if (s->net.chips > CHIPS) {
        s->mesh.order = straight;
        s->mesh.count = CHIPS;
    }
    if (trn_mesh_make(&s->mesh) != TRN_OK) {
        printf("no mesh: %s\n", s->error.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    p->mesh = &s->made;
    p->matmul.a.format = p->matmul.b.format = s->in; /* for a process without a device */
    p->matmul.dst.format = s->out;
    parts(&s->made, s->a, s->in, p->m, p->k, in, view[0], &p->a_spec);
    parts(&s->made, s->b, s->in, p->k, p->n, in2, view[1], &p->b_spec);
    parts(&s->made, s->dst, s->out, p->m, p->n, out, view[2], &p->dst_spec);
    p->a = view[0];
    p->b = view[1];
    p->dst = view[2];
    p->error = &s->error;
    return p;
}

/* ---- one call ---- */

static trn_status call(scene *s, bool products)
{
    fill();
    flight = s->flight;
    s->error.text[0] = 0;
    const trn_status status =
        products ? trn_mpi_sharded_matmul(&s->mpi, product(s)) : trn_mpi_collective_run(&s->mpi, collective(s));
    flight = -1;
    return status;
}

static bool untouched(void)
{
    for (size_t i = 0; i < sizeof out; i++)
        if (((const unsigned char *)out)[i] != 0x55) return false;
    return true;
}

/* The last process differs: everybody says what in, and who, in the same words, and writes nothing. */
static void refused(scene *s, bool products, const char *row)
{
    const char *dot = strrchr(row, '.'), *field = dot ? dot + 1 : row;
    char who[32], first[256];
    const trn_status status = call(s, products);
    snprintf(who, sizeof who, "process %d ", processes - 1);
    const char *said = strchr(s->error.text, ':') ? strchr(s->error.text, ':') : s->error.text;
    memset(first, 0, sizeof first);
    trni_copy_text(first, sizeof first, said);
    MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    const bool own = !strstr(said, "process"); /* it found out by itself */
    const bool same = strstr(first, "go on") || !strcmp(said, first);
    const bool right = status != TRN_OK && strstr(s->error.text, field) && untouched() &&
                       (own ? me == processes - 1 : strstr(said, who) && same);
    refusals += right;
    if (right) return;
    failures++;
    printf("process %d: %s, %s: %s, '%s'%s\n", me, products ? "product" : "collective", row, trn_status_text(status),
           s->error.text, untouched() ? "" : ", WRITTEN");
}

static void alike(scene *s, bool products, const char *row)
{
    if (call(s, products) == TRN_OK) return;
    failures++;
    printf("process %d: %s, %s: all alike, but '%s'\n", me, products ? "product" : "collective", row, s->error.text);
}

/* ---- every row ---- */

/* The signature of the plain scene; its rows are in order the same whatever is asked. */
static void signature_of(trni_signature *b, bool products)
{
    scene s;
    trni_mpi_call handler;
    plain(&s);
    if (products) {
        trni_mpi_product *p = calloc(1, sizeof *p);
        if (!p) exit(2);
        trni_mpi_enter(&handler, &p->mail, &s.mpi, "signature", &s.error);
        p->mpi = &s.mpi;
        trni_signature_begin(&p->signature, TRNI_CALL_PRODUCT);
        if (trni_mpi_product_prepare(p, product(&s)) != TRN_OK) printf("%s\n", s.error.text);
        *b = p->signature;
        trni_mpi_leave(&handler, &p->mail);
        return; /* the process ends soon */
    }
    trni_mpi_job *j = calloc(1, sizeof *j);
    if (!j) exit(2);
    trni_mpi_enter(&handler, &j->mail, &s.mpi, "signature", &s.error);
    j->job.a = collective(&s);
    trni_signature_begin(&j->signature, TRNI_CALL_COLLECTIVE);
    if (trni_mpi_prepare(j) != TRN_OK) printf("%s\n", s.error.text);
    *b = j->signature;
    trni_mpi_leave(&handler, &j->mail);
}

static int every_row(bool products)
{
    static trni_signature b;
    bool (*const change)(scene *, const char *, int, bool) = products ? product_case : collective_case;
    signature_of(&b, products);
    no_row_is_missing(&b, products);
    for (int at = 0; at < b.words; at++) {
        char row[96];
        scene s;
        snprintf(row, sizeof row, "%s%s", b.row[at].owner, b.row[at].field);
        if (at == TRNI_SIGNATURE_STATUS) continue; /* differs in every refusal */
        plain(&s);
        if (!change(&s, row, at, false)) {
            failures++;
            printf("%s: row %s has no case\n", products ? "product" : "collective", row);
            continue;
        }
        alike(&s, products, row);
        if (processes == 1) continue;
        plain(&s);
        change(&s, row, at, me == processes - 1);
        refused(&s, products, row);
    }
    return b.words;
}

/* A process without a rank in the group has no views and no say in what follows from them, but in all else. */
static void idle(void)
{
    scene s;
    for (int odd = 0; odd < 2; odd++) {
        plain(&s);
        s.args.chips = straight;
        s.args.count = 1;
        if (odd && me == processes - 1) s.args.accumulate = TRN_BF16;
        if (!odd)
            alike(&s, false, "idle");
        else if (processes > 1)
            refused(&s, false, "accumulate");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--misbehaviours")) return 0;
    if (argc > 1 && !strcmp(argv[1], "--losses")) return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    for (int i = 0; i < CHIPS; i++) owners[i] = i * processes / CHIPS;
    owners[0] = processes - 1;
    const int collectives = every_row(false), products = every_row(true);
    idle();
    if (me == 0) {
        printf("%d words of a collective's signature, %d of a product's, %d refusals\n", collectives, products,
               refusals);
        printf("%d processes, digest %d.%d\n", processes, collectives, products);
    }
    MPI_Finalize();
    return failures != 0;
}

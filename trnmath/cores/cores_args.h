/* cores/cores_args.h - what many NeuronCores that run one kernel are asked: which cores, and the calls between them.
 * A part of trn_cores.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cores.h>
 *     int main(void) {
 *         const int row[] = { 0, 1, 2, 3, 4, 5, 6, 7 };                       // two lists of four ranks
 *         const trn_cores_args args = { .core = { .generation = TRN_TRAINIUM2 }, .ranks = 16, .lnc = 2 };
 *         const trn_replica_group group = { .rank = row, .count = 4, .groups = 2 };
 *         return args.ranks / args.lnc == group.count * group.groups ? 0 : 1;
 *     }
 *
 * DOES: holds the arguments.
 * DOES NOT: do anything with them; trn_cores.h does, and is the guide.
 *
 * KNOWN FROM: NKI's pages on core_barrier, sendrecv and nki.collectives, release 2.33 (documented).
 */
#ifndef TRNI_CORES_CORES_ARGS_H
#define TRNI_CORES_CORES_ARGS_H

#include "../network/collective.h"
#include "../core/core_register.h"
#include "../network/mesh.h"

/* ---- processes ---- */

/* How the processes that share out a run's chips tell each other what their ranks do. */
typedef struct trn_cores_exchange {
    int process, processes; /* this one, and how many: each has consecutive chips, as many as the others or one more */
    /* `bytes` of every process to every process: all = those of process 0, of process 1, ...; counts[p]: how many,
     * which everybody knows. Called by all of them as often. What is not TRN_OK ends this process' run; error: why */
    trn_status (*gather)(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error);
    void *user;
} trn_cores_exchange;

/* ---- which cores ---- */

/* Told when cores have met in a call, by name, and before any of them goes on; no kernel runs then. data: what a
 * barrier is about; of rank 0: all that they have done before is done. */
typedef void trn_cores_met(void *user, const char *call, const int *member, int members, const trn_tensor *data);

typedef struct trn_cores_args {
    trn_core_args core;      /* what every core begins with; .memory, .trace and .error are not looked at. Rank r
                                  draws from .seed + r */
    const trn_topology *net; /* copied; null = the smallest system of the generation that has all ranks */
    const int *chips;        /* chip of ranks 0 to cores_per_chip - 1, of the next ones, ...; null = 0, 1, ... */
    int ranks;               /* NeuronCores; 0 = all of the system */
    int cores_per_chip;      /* that take part; 0 = all that a chip has */
    int lnc;                 /* cores of a logical core, that share HBM; 0 = 1. NKI has 1 and 2 */
    int threads;             /* of the host, that run at once; 0 = OpenMP's number, without OpenMP 1 */
    size_t stack_bytes;      /* of a kernel; 0 = 512 KiB */
    trn_algorithm algorithm; /* of collectives; 0 = as the runtime chooses */
    const trn_calibration *calibration; /* null = trn_calibration_default() */
    bool uncalibrated; /* collectives take what their links, HBM and DMA take, and nothing is expected beyond */
    bool no_races;     /* unordered uses of the same HBM by cores of a chip pass */
    trn_trace *trace;  /* optional: gets the events of all ranks; its tracks are named here, by names that live
                                  until trn_cores_end. What a rank does between two calls and does not fit into its
                                  share of the capacity is lost */
    const trn_cores_exchange *exchange; /* optional: other processes have other chips, and are asked the same */
    trn_cores_met *met;                 /* optional */
    void *met_user;
    trn_error *error; /* optional: gets the first failure */
} trn_cores_args;

enum { TRN_CORES_TRACKS = 6, TRN_CORES_TRACK = 24 }; /* "r3 TensorE" to "r3 DMA", and "r3 CC" for collectives */

typedef struct trn_cores {
    trn_cores_args args;
    trn_error failure; /* the first one */
    trn_topology net;
    int ranks, lnc, cores_per_chip;
    int first, here;             /* ranks [first, first + here) run in this process: all of them, but for .exchange */
    struct trn_cores_rank *rank; /* [ranks] */
    struct trni_cores *work;
    double time_s;  /* until the last engine of the last core is done */
    int64_t rounds; /* how often all of them waited */
} trn_cores;

/* One core in its kernel. */
typedef struct trn_cores_rank {
    trn_core core;
    trn_cores *cores;
    int rank;                 /* 0 to cores->ranks - 1 */
    int rank_id, rank_ids;    /* its logical core, and how many there are: what NKI's collectives count */
    int program_id, programs; /* which of its logical core's cores it is, and how many there are */
    int chip;                 /* of the topology */
    struct trni_cores_message *message;
    struct trni_cores_call *call;
} trn_cores_rank;

/* What is not TRN_OK ends the run. */
typedef trn_status trn_cores_kernel(trn_cores_rank *self, void *user);

/* ---- the report ---- */

typedef struct trn_cores_report {
    double time_s;
    int64_t instructions, rounds;
    double share[TRN_ENGINE_COUNT]; /* by trn_engine: busy, of time_s, on average over ranks; the first is empty */
    double most[TRN_ENGINE_COUNT];  /* and on the rank where it is busiest */
    double collective_share;        /* the same of collectives under way */
    double waited_s;                /* in calls for other ranks, on average; engines may work meanwhile */
    double late_s;                  /* what others have waited for the rank for which they waited most, */
    int late_rank;                  /* which is this one */
    int64_t sbuf_high_water, psum_high_water; /* bytes, of the fullest rank */
    double dma_bytes;                         /* of all ranks; collectives do not count */
    char bound_text[128];                     /* "VectorE is busy 83 % of 41.2 us on rank 3; collectives run 20 %" */
} trn_cores_report;

/* ---- cores of a logical core ---- */

typedef struct trn_cores_barrier_args {
    trn_tensor data;  /* shared HBM that all of them have registered: whoever uses it waits. Rank 0: everything */
    const int *cores; /* [count] program_id of those who take part; null = all of the logical core */
    int count;
    bool all;          /* every core of the run instead; NKI has no such barrier */
    trn_engine engine; /* that waits; 0 = GpSimdE */
    trn_error *error;  /* optional */
} trn_cores_barrier_args;

typedef enum trn_dma_engine {
    TRN_DMA_ENGINE_DMA = 0, /* the cores' DMA engines */
    TRN_DMA_ENGINE_GPSIMD   /* GpSimd's own; it costs as the others (assumed: nothing is published) */
} trn_dma_engine;

typedef struct trn_cores_sendrecv_args {
    trn_tensor dst, src;              /* tiles of SBUF, of the same shape and format on all sides */
    int send_to_rank, recv_from_rank; /* program_id of cores of this logical core */
    int pipe_id;                      /* calls meet those of the same pipe */
    trn_dma_engine dma_engine;
    trn_error *error; /* optional */
} trn_cores_sendrecv_args;

/* ---- collectives ---- */

/* Lists of rank_id, each of which works for itself. Cores with the same program_id make a group. */
typedef struct trn_replica_group {
    const int *rank;   /* [groups][count]; null = one list of all */
    int count, groups; /* groups: 0 = 1 */
} trn_replica_group;

enum { TRN_CORES_TENSORS = 8 };

/* Every member gives the same, but for the memory behind the views, and metadata. */
typedef struct trn_cores_collective_args {
    trn_tensor dst, src;
    trn_tensor src1;                       /* collective_permute_implicit_reduce: the right operand */
    const trn_tensor *dsts, *srcs, *srcs1; /* [count], in place of dst, src and src1: several at once, in HBM */
    int count;                             /* up to TRN_CORES_TENSORS */
    trn_replica_group replica_group;
    int collective_dim; /* all_gather, reduce_scatter, all_to_all: along which views are joined or cut */
    trn_alu op;         /* 0 = add; all_reduce and reduce_scatter also maximum and minimum */
    const int (*source_target_pairs)[2]; /* [pairs] collective_permute: rank_id of who sends, and to whom */
    int pairs;
    const int *channel_ids;  /* collective_permute_implicit: [count], of each tensor; null = 0, 1, ... */
    trn_tensor metadata;     /* _v: U32 [2, 3 or 4, members]: counts to send to each, and where in src they
                                         begin; counts to receive from each; where in dst they go */
    bool recv_counts_known;  /* _v: row 2 is there, and must be what the others send */
    bool has_rdispls;        /* _v: row 3 is there; else dst is cut into as many slots as there are members */
    trn_algorithm algorithm; /* 0 = the run's */
    trn_format accumulate;   /* sums are rounded to it on the way; 0 = F32 */
    trn_rounding rounding;   /* to the format, of every sum that travels */
    uint64_t seed, stream;   /* stochastic rounding, as in trn_collective.h; group g adds g 2^32 */
    int sr_bits;
    trn_error *error; /* optional */
} trn_cores_collective_args;

#endif /* TRNI_CORES_CORES_ARGS_H */

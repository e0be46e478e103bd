/* cores/cores_types.h - what many cores consist of: what each asks of the others, and where it is.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: holds a call as the others need to know it (a message: plain numbers, which may travel), and as its own core
 *     does (its operands).
 * DOES NOT: do anything.
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_TYPES_H
#define TRNI_CORES_CORES_TYPES_H

#include "../core/core_run.h"
#include "cores_args.h"
#include "cores_rows.h"

typedef enum trni_cores_op {
    TRNI_CORES_BARRIER,
    TRNI_CORES_SENDRECV,
#define TRNI_X(name, id, ...) TRNI_CORES_##id,
    TRNI_CORES_COLLECTIVES(TRNI_X)
#undef TRNI_X
        TRNI_CORES_OPS
} trni_cores_op;

typedef enum trni_cores_state {
    TRNI_CORES_READY, /* to run in this round */
    TRNI_CORES_WAITS, /* in a call */
    TRNI_CORES_ENDED
} trni_cores_state;

/* What all who take part in a call have to say alike. */
typedef struct trni_cores_terms {
    int op, tensors, dim, alu, algorithm, accumulate, rounding, sr_bits, recv_counts_known, has_rdispls;
    int channel[TRN_CORES_TENSORS];
    uint64_t seed, stream;
    int format[TRN_CORES_TENSORS], rank[TRN_CORES_TENSORS];
    int64_t shape[TRN_CORES_TENSORS][TRN_MAX_RANK]; /* of the sources */
} trni_cores_terms;

/* A core's call, for all to see. */
typedef struct trni_cores_message {
    int state;
    int64_t instruction; /* of its core; where it has ended: how many there were */
    double ready_s;      /* its data, and who executes; where it has ended: its core's time */
    trni_cores_terms terms;
    int list;               /* of the replica group */
    int members;            /* of that list, in member[]: ranks in its order */
    int to, from, pipe;     /* sendrecv: ranks; permute: rank_ids, -1 = none */
    int64_t elements, room; /* _v: of src and of dst */
    int *member;            /* [ranks] */
    uint32_t *table;        /* [4][ranks] _v: metadata by member */
} trni_cores_message;

typedef union trni_cores_ask {
    trn_cores_barrier_args barrier;
    trn_cores_sendrecv_args sendrecv;
    trn_cores_collective_args collective;
} trni_cores_ask;

/* The same call, for its own core. */
typedef struct trni_cores_call {
    const struct trni_cores_kind *kind;
    trni_cores_ask ask;
    trni_issue issue;
    int tensors;
    trn_tensor src[TRN_CORES_TENSORS], dst[TRN_CORES_TENSORS]; /* as trn_collective.h takes them */
    trn_tensor src1[TRN_CORES_TENSORS];
    trni_lane lane;  /* collectives of a core follow each other */
    double waited_s; /* in calls, for others, */
    double late_s;   /* and others for this core, each counted */
    trn_trace trace; /* of this round */
    uint8_t *mark;   /* [ranks] room for checks */
    struct trni_cores_seat *seat;
} trni_cores_call;

/* What a collective takes, as asked before. */
typedef struct trni_cores_cost {
    uint64_t key;
    bool known;
    trn_algorithm algorithm;
    bool single_step;
    double seconds;
} trni_cores_cost;

enum { TRNI_CORES_COSTS = 251 };

typedef struct trni_cores {
    trni_cores_cost cost[TRNI_CORES_COSTS];
    trn_cores_kernel *kernel;
    void *user;
    bool over;                    /* all have ended, or all know of a failure */
    char *data;                   /* what came from other processes in this round */
    trni_cores_message *message;  /* [ranks] */
    trni_cores_call *call;        /* [ranks] */
    int *member;                  /* [ranks][ranks] */
    uint32_t *table;              /* [ranks][4][ranks] */
    uint8_t *mark;                /* [ranks][ranks] */
    bool *matched;                /* [ranks] */
    int *chip;                    /* [ranks] room for one list, */
    int *target;                  /* [ranks] and whom each sends to */
    struct trni_cores_race *race; /* [chips]; null: no two cores share HBM */
    trni_touches *touches;
    trn_trace_event *event;
    const char **names;               /* of the trace's tracks, and */
    char (*text)[TRN_CORES_TRACK];    /* where they stand */
    struct trni_cores_shared *shared; /* tensors of logical cores */
    struct trni_cores_scheduler *scheduler;
} trni_cores;

/* How a call is checked on its own core, matched, and carried out. */
typedef struct trni_cores_kind {
    trni_order order;
    int sbuf_dim; /* collectives: the largest axis in SBUF; -1 = not in SBUF */
    trn_status (*check)(trn_cores_rank *self, trni_cores_call *call);
    void (*ready)(trn_cores_rank *self, trni_cores_call *call);
    trn_status (*run)(trn_cores *cores, int first); /* all messages of its list are there, and alike */
} trni_cores_kind;

/* A tensor that a logical core's cores share. */
typedef struct trni_cores_shared {
    struct trni_cores_shared *next;
    char name[TRNI_TILE_NAME];
    int rank_id, rank; /* rank: the lowest that asked for it */
    trn_tensor tensor;
} trni_cores_shared;

/* In a ring of n, whose data member `at` has after so many steps. */
TRNI_FN int64_t trni_ring_source(int64_t at, int64_t steps, int64_t n, int channel)
{
    const int64_t back = channel % 2 ? -(steps % n) : steps % n;
    return ((at - back) % n + n) % n;
}

/* The rank of a core of self's logical core. */
TRNI_FN int trni_cores_sibling(const trn_cores_rank *self, int program_id)
{
    return self->rank_id * self->programs + program_id;
}

TRNI_FN int trni_cores_chip(const trn_cores *cores, int rank)
{
    const int at = rank / cores->cores_per_chip;
    return cores->args.chips ? cores->args.chips[at] : at;
}

#endif /* TRNI_CORES_CORES_TYPES_H */

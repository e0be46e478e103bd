/* traces.h - all ranks' execution traces as one list of operations, what each takes, and when it runs.
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARDPLAN_TRACES_H
#define SHARDPLAN_TRACES_H

#include "io/chakra.h"
#include "shardplan.h"

typedef struct sp_group {
    char *name; /* "" is all ranks */
    int *rank;  /* [count] */
    int count;
} sp_group;

/* One operation of the whole machine: work of a rank, a collective of a group, or what goes from one rank to another. A
 * receive is an operation of its own, without time, that waits for its send. */
typedef struct sp_operation {
    chakra_type type;
    chakra_collective collective;
    int rank;       /* whose trace names it: the first of a collective */
    int group;      /* of a collective */
    int peer;       /* of a send and a receive */
    int64_t node;   /* in that trace */
    uint64_t bytes; /* of a collective, of a send */
    int64_t before; /* a receive: the send; -1: none */
    bool host;
} sp_operation;

enum { SP_IDEAL, SP_LOW, SP_EXPECTED, SP_HIGH, SP_TIMES };

typedef struct sp_traces {
    chakra_trace *rank;
    int ranks;
    sp_group *group; /* the first is all ranks */
    int groups;
    int64_t **operation_of; /* [ranks][nodes] the number of the operation that a node is */
    sp_operation *operation;
    int64_t operations, capacity;
    double (*takes)[SP_TIMES];
    int64_t silent; /* work that says neither what it does nor how long it takes */
} sp_traces;

/* When each operation runs, with one of the times. */
typedef struct sp_run {
    double *start;  /* [operations] */
    int64_t *after; /* [operations] what it waited for last; -1: nothing */
    int64_t last;   /* the operation that ends last */
    double end_s;
    double work_s, talk_s, both_s; /* of the rank that ends last: at work, in communication, in both */
} sp_run;

bool sp_traces_read(const sp_chakra_ask *ask, sp_traces *t, char *why);
void sp_traces_free(sp_traces *t);
bool sp_traces_price(sp_job *job, sp_traces *t, char *why);
bool sp_traces_run(const sp_traces *t, int which, sp_run *run, char *why);
void sp_run_free(sp_run *run);
/* "work", "all_reduce", "send", ... */
const char *sp_operation_name(const sp_traces *t, int64_t operation);

#endif /* SHARDPLAN_TRACES_H */

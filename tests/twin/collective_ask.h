/* collective_ask.h - what the tests of costs ask, and that they are answered.
 * SPDX-License-Identifier: MIT
 */
#ifndef COLLECTIVE_ASK_H
#define COLLECTIVE_ASK_H

#include "trnmath/trn_collective_cost.h"
#include "twin/cases.h"
#include "twin/collective_nets.h"

static const int64_t ask_sizes[] = { 0, 1, 4096, 1000000, 64 << 20, (int64_t)16000000000 };

static inline trn_collective_args args_of(const trn_topology *net, trn_algorithm algorithm, trn_collective op,
                                          int cores)
{
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = net;
    a.op = op;
    a.algorithm = algorithm;
    a.ranks_per_chip = cores;
    a.bytes = 1000000;
    return a;
}

static inline trn_cost cost_of(const trn_collective_args *args)
{
    trn_cost c;
    trn_error error;
    trn_collective_args a = *args;
    memset(&c, 0, sizeof c);
    a.error = &error;
    if (trn_collective_cost(&a, &c) != TRN_OK)
        fail_msg("%s by %s: %s", trn_collective_name(a.op), trn_algorithm_name(a.algorithm), error.text);
    return c;
}

static inline bool close_to(double x, double y, double relative) { return fabs(x - y) <= relative * fabs(y); }

#endif /* COLLECTIVE_ASK_H */

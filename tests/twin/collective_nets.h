/* collective_nets.h - networks and groups of chips that the tests of schedules and of their cost go through.
 * SPDX-License-Identifier: MIT
 */
#ifndef COLLECTIVE_NETS_H
#define COLLECTIVE_NETS_H

#include "trnmath/network/collective_layout.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* Up to three levels, the innermost first; those of size 1 at the end are left out. No two rates are alike. */
static inline trn_topology made(trn_wiring inner, int a, trn_wiring middle, int b, trn_wiring outer, int c)
{
    const int size[] = { a, b, c };
    const trn_wiring wiring[] = { inner, middle, outer };
    trn_level level[3];
    memset(level, 0, sizeof level);
    for (int i = 0; i < 3; i++) {
        level[i].wiring = wiring[i];
        level[i].size = size[i];
        level[i].bytes_per_s = 1e9 * (3 - i);
        level[i].latency_s = 1e-6 * (1 + i);
    }
    return trn_topology_hierarchy(NULL, c > 1 ? 3 : b > 1 ? 2 : 1, level);
}

enum { NETS = 26 };

static inline trn_topology net_number(int i)
{
    enum { N = TRN_WIRING_NONE, R = TRN_WIRING_RING, F = TRN_WIRING_FULL, S = TRN_WIRING_SWITCH };
    static const int row[NETS][6] = {
        { R, 1, R, 1, R, 1 },  { R, 2, R, 1, R, 1 }, { R, 3, R, 1, R, 1 }, { R, 5, R, 1, R, 1 }, { R, 8, R, 1, R, 1 },
        { R, 6, R, 1, R, 1 },  { R, 2, R, 2, R, 1 }, { R, 4, R, 4, R, 1 }, { R, 3, R, 3, R, 1 }, { R, 3, R, 5, R, 1 },
        { R, 4, R, 2, R, 1 },  { R, 3, R, 4, R, 1 }, { R, 2, R, 3, R, 4 }, { R, 4, R, 4, R, 4 }, { S, 7, R, 1, R, 1 },
        { S, 20, R, 1, R, 1 }, { F, 6, R, 1, R, 1 }, { R, 4, S, 3, R, 1 }, { R, 3, R, 2, S, 4 }, { R, 2, N, 3, S, 2 },
        { N, 2, S, 3, R, 2 },  { S, 3, S, 4, R, 2 }, { F, 3, F, 4, F, 2 }, { S, 4, R, 5, F, 2 }, { R, 4, R, 2, S, 8 },
        { R, 6, R, 2, S, 3 },
    };
    const int *r = row[i];
    return made((trn_wiring)r[0], r[1], (trn_wiring)r[2], r[3], (trn_wiring)r[4], r[5]);
}

/* ---- parts of systems ---- */

typedef struct net_group {
    const char *name;
    trn_system system;
    int count, groups;
    int chips[16];
} net_group;

static const net_group net_groups[] = {
    { "one chip", TRN_TRN2_48XLARGE, 1, 1, { 5 } },
    { "rows", TRN_TRN2_48XLARGE, 4, 4, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
    { "columns", TRN_TRN2_48XLARGE, 4, 4, { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 } },
    { "rows 0 and 3", TRN_TRN2_48XLARGE, 8, 2, { 0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11 } },
    { "no box", TRN_TRN2_48XLARGE, 5, 1, { 0, 1, 2, 4, 9 } },
    { "permuted", TRN_TRN2_48XLARGE, 8, 1, { 7, 3, 1, 2, 0, 6, 5, 4 } },
    { "box with gaps", TRN_TRN2_48XLARGE, 6, 1, { 0, 2, 3, 8, 10, 11 } },
    { "columns first", TRN_TRN2_48XLARGE, 4, 1, { 0, 4, 1, 5 } },
    { "one chip of each server", TRN_TRN2_ULTRASERVER, 4, 2, { 0, 16, 32, 48, 1, 17, 33, 49 } },
    { "a row of two servers", TRN_TRN2_ULTRASERVER, 8, 1, { 0, 1, 2, 3, 32, 33, 34, 35 } },
    { "x and z", TRN_TRN2_ULTRASERVER, 16, 1, { 4, 5, 6, 7, 20, 21, 22, 23, 36, 37, 38, 39, 52, 53, 54, 55 } },
    { "y and z", TRN_TRN2_ULTRASERVER, 8, 1, { 1, 5, 9, 13, 17, 21, 25, 29 } },
    { "a tray of each rack", TRN_TRN3_GEN1_ULTRASERVER, 4, 1, { 2, 3, 34, 35 } },
    { "one chip of each tray", TRN_TRN3_GEN1_ULTRASERVER, 8, 1, { 0, 2, 4, 6, 8, 10, 12, 14 } },
    { "a server of each rack", TRN_TRN3_GEN2_ULTRASERVER, 8, 1, { 4, 5, 6, 7, 76, 77, 78, 79 } },
    { "odd chips", TRN_TRN3_GEN2_ULTRASERVER, 7, 1, { 1, 3, 5, 70, 99, 143, 2 } },
    { "groups unlike each other", TRN_TRN3_GEN2_ULTRASERVER, 3, 2, { 0, 1, 2, 4, 90, 12 } },
};
enum { NET_GROUPS = sizeof net_groups / sizeof net_groups[0] };

static inline trn_collective_args net_args(const trn_topology *net, const net_group *group, int cores)
{
    trn_collective_args args;
    memset(&args, 0, sizeof args);
    args.net = net;
    args.op = TRN_ALL_REDUCE;
    args.ranks_per_chip = cores;
    if (!group) return args;
    args.chips = group->chips;
    args.count = group->count;
    args.groups = group->groups;
    return args;
}

#endif /* COLLECTIVE_NETS_H */

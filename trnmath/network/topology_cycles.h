/* network/topology_cycles.h - rings through all chips of a torus that share no link.
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: writes down edge-disjoint Hamiltonian cycles: two of a plane whose sides are both even or both odd, three of
 *     4 x 4 x 4, one wherever a side is even, one of a ring. Levels with one chip do not count.
 * DOES NOT: know cycles of switches or of fully connected levels (any order is one there), nor find all that exist: a
 *     torus of D dimensions with sides above 2 has D of them.
 *
 * KNOWN FROM: for two cycles of a plane, the Gray codes of Bose, Broeg, Kwon and Ashir, "Lee distance and topological
 *     properties of k-ary n-cubes" (1995), widened here; for 4 x 4 x 4 a search, which the tests check again.
 *
 * The plane: one cycle goes along each ring of n chips for n - 1 steps, up or down, and then one step across to the
 * next of the m >= n rings. It closes when ups less downs is a multiple of n, say w n. What it leaves over are n - 1
 * strands across the rings, each of which is moved over by the one link that every ring has left: together a rotation
 * by w strands, one single cycle when w and n - 1 have no common divisor. Here n rings go up and the others up and down
 * in turn, so w = 1; that needs m - n to be even.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_CYCLES_H
#define TRNI_NETWORK_TOPOLOGY_CYCLES_H

#include "topology_graph.h"

/* Rings of more than one chip each, with every combination of their digits. */
typedef struct trni_torus {
    int chips, dims;
    int size[TRN_MAX_LEVELS], stride[TRN_MAX_LEVELS];
} trni_torus;

/* The levels with more than one chip, when all of them are rings; otherwise 0 of them. */
TRNI_FN trni_torus trni_torus_of(const trn_topology *net)
{
    trni_torus t;
    memset(&t, 0, sizeof t);
    t.chips = net->chips;
    for (int l = 0; l < net->levels; l++) {
        if (net->level[l].size < 2) continue;
        t.size[t.dims] = net->level[l].size;
        t.stride[t.dims++] = trn_topology_stride(net, l);
        if (net->level[l].wiring != TRN_WIRING_RING) return (void)(t.dims = 0), t;
    }
    return t;
}

/* ---- one cycle: counting with digits that go up and down in turn, an even one outermost ---- */

TRNI_FN void trni_cycle_snake(const trni_torus *torus, int even, int *order)
{
    for (int t = 0; t < torus->chips; t++) {
        int rest = t, chip = 0, turns = torus->chips; /* turns: of the digit at hand and all inside it */
        for (int i = torus->dims; i-- > 0;) {
            /* the even dimension first, then the others from the outermost */
            const int l = i == torus->dims - 1 ? even : i < even ? i : i + 1;
            turns /= torus->size[l];
            const int d = rest / turns;
            rest -= d * turns;
            if (d % 2) rest = turns - 1 - rest;
            chip += d * torus->stride[l];
        }
        order[t] = chip;
    }
}

/* ---- two cycles of a plane: m rings of n chips ---- */

/* Rings that the first cycle goes along upwards, and where it enters them. */
TRNI_FN bool trni_plane_up(int r, int n) { return r < n || (r - n) % 2 == 0; }
TRNI_FN int trni_plane_column(int r, int n) { return r <= n ? (n - r % n) % n : trni_plane_up(r, n) ? 0 : n - 1; }

TRNI_FN void trni_cycle_along(int m, int n, int stride_m, int stride_n, int *order)
{
    for (int r = 0; r < m; r++) {
        const int c = trni_plane_column(r, n);
        for (int i = 0; i < n; i++) *order++ = r * stride_m + (c + (trni_plane_up(r, n) ? i : n - i)) % n * stride_n;
    }
}

TRNI_FN void trni_cycle_across(int m, int n, int stride_m, int stride_n, int *order)
{
    int r = 0, c = 0;
    for (int t = 0; t < m * n; t++) {
        order[t] = r * stride_m + c * stride_n;
        if (c == trni_plane_column(r + 1, n))
            c = trni_plane_column(r, n); /* the link that the first cycle left over */
        else
            r = (r + 1) % m;
    }
}

/* ---- three cycles of 4 x 4 x 4: steps from chip 0; a capital goes down ---- */

TRNI_FN void trni_cycle_steps(const char *steps, const int stride[3], int *order)
{
    int digit[3] = { 0, 0, 0 };
    for (int t = 0; t < 64; t++) {
        order[t] = digit[0] * stride[0] + digit[1] * stride[1] + digit[2] * stride[2];
        const int down = steps[t] < 'a', axis = (steps[t] | 0x20) - 'x';
        digit[axis] = (digit[axis] + (down ? 3 : 1)) % 4;
    }
}

TRNI_FN void trni_cycles_cube(const int stride[3], int *order, int capacity)
{
    static const char *const steps[] = {
        "xZYZZZXZZyzyzzzyxZYZZZYZXYYZZxzxzzzyzzzyzzzyzzzxzzzyzzzyzzzyzzzx",
        "ZXYYZYXYZYYXZYYYZXYYZYXYZYYXZYYYZXYYZYXYZYYXZYYYZXYYZYXYZYYXZYYY",
        "zzxxxyxxxyxxzXXYXXXYXXXYXXXYZyxxxZXXXYXXXYXXXYXXZxxyxxxyxxxyxxxy",
    };
    for (int i = 0; i < 3 && i < capacity; i++) trni_cycle_steps(steps[i], stride, order + 64 * i);
}

/* ---- all of it ---- */

/* How many cycles this torus has that are known here; the first `room` of them are written, chips entries each,
 * beginning at chip 0. Neighbours in the order, and the last and the first, are joined by a link, which no other of
 * the cycles uses. 0 for anything that is no torus, and for two chips, whose one link is no cycle. */
TRNI_FN int trni_torus_cycles(const trni_torus *torus, int *order, int capacity)
{
    const int levels = torus->dims, *size = torus->size, *stride = torus->stride;
    int even = -1;
    for (int i = 0; i < levels; i++)
        if (size[i] % 2 == 0) even = i;
    if (!order) capacity = 0;
    if (levels == 0 || torus->chips == 2) return 0;
    if (levels == 3 && size[0] == 4 && size[1] == 4 && size[2] == 4) {
        trni_cycles_cube(stride, order, capacity);
        return 3;
    }
    if (levels == 2 && size[0] > 2 && size[1] > 2 && (size[0] - size[1]) % 2 == 0) {
        const int m = size[1] >= size[0]; /* the longer side */
        if (capacity > 0) trni_cycle_along(size[m], size[!m], stride[m], stride[!m], order);
        if (capacity > 1) trni_cycle_across(size[m], size[!m], stride[m], stride[!m], order + torus->chips);
        return 2;
    }
    if (levels > 1 && even < 0) return 0;
    if (capacity > 0) trni_cycle_snake(torus, even < 0 ? 0 : even, order);
    return 1;
}

#endif /* TRNI_NETWORK_TOPOLOGY_CYCLES_H */

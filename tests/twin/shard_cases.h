/* shard_cases.h - random meshes, shardings and views of their parts, for the tests of sharding.
 * SPDX-License-Identifier: MIT
 *
 * Defined before: DEVICES, the most that a mesh has; ROOM, the bytes of a part; rng.
 */
#ifndef SHARD_CASES_H
#define SHARD_CASES_H

#include "trnmath/trn_shard.h"
#include "twin/cases.h"
#include "twin/twin_shard.h"
#include "twin/views.h"

static trn_topology net;
static trn_mesh mesh;

static inline int below(int n) { return cases_below(&rng, n); }
static inline bool one_in(int n) { return cases_one_in(&rng, n); }

/* A ring, a switch, all to all, or one network of one kind inside one of another. */
static inline trn_topology random_net(int chips)
{
    trn_level level[2];
    const int inner = chips % 2 == 0 ? 2 : chips % 3 == 0 ? 3 : 1;
    switch (below(4)) {
    case 0: return trn_topology_ring(chips, 1e9, 1e-6);
    case 1: return trn_topology_switch(chips, 1e9, 1e-6);
    case 2: return trn_topology_fully_connected(chips, 1e9, 1e-6);
    default: break;
    }
    memset(level, 0, sizeof level);
    for (int l = 0; l < 2; l++) {
        level[l].name = l ? "outer" : "inner";
        level[l].wiring = (trn_wiring)(TRN_WIRING_RING + below(3));
        level[l].size = l ? chips / inner : inner;
        level[l].bytes_per_s = l ? 1e9 : 5e9;
        level[l].latency_s = 1e-6;
    }
    return trn_topology_hierarchy("two levels", 2, level);
}

/* Up to four axes; `mesh` lies on `net`, and the twin has its sizes. */
static inline void random_mesh(twin_sharding *twin)
{
    char text[64] = "", one[16];
    const int axes = 1 + below(4);
    int devices = 1;
    memset(twin, 0, sizeof *twin);
    for (; twin->axes < axes; twin->axes++) {
        const int size = 1 + below(5);
        if (devices * size > DEVICES) break;
        snprintf(one, sizeof one, "%s%c=%d", twin->axes ? "," : "", 'a' + twin->axes, size);
        strcat(text, one);
        twin->size[twin->axes] = size;
        devices *= size;
    }
    net = random_net(devices);
    assert_int_equal(trn_mesh_init(&mesh, &net, text), TRN_OK);
}

static inline void random_roles(twin_sharding *twin, bool sums)
{
    int depth[TWIN_DIMS] = { 0 }, order[TWIN_AXES];
    for (int i = 0; i < twin->axes; i++) { /* the axes are laid on in any order */
        const int j = below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < twin->axes; i++) {
        int role = one_in(3) ? TWIN_WHOLE : below(twin->rank);
        if (sums && one_in(3)) role = TWIN_SUM;
        twin->role[order[i]] = role;
        twin->depth[order[i]] = role >= 0 ? depth[role]++ : 0;
    }
}

static inline void random_shape(twin_sharding *twin, int rank)
{
    int64_t elements = 1;
    twin->rank = rank;
    for (int d = 0; d < rank; d++) {
        twin->shape[d] = one_in(12) ? 0 : 1 + below(one_in(3) ? 40 : 6);
        if (elements * twin->shape[d] > 800) twin->shape[d] = 1;
        if (twin->shape[d]) elements *= twin->shape[d];
    }
}

static inline trn_pspec spec_of(const twin_sharding *twin)
{
    trn_pspec s;
    memset(&s, 0, sizeof s);
    s.rank = twin->rank;
    for (int a = 0; a < twin->axes; a++) {
        if (twin->role[a] == TWIN_SUM) s.sum |= 1u << a;
        if (twin->role[a] < 0) continue;
        s.dim[twin->role[a]].axes++;
        s.dim[twin->role[a]].axis[twin->depth[a]] = a;
    }
    return s;
}

static inline size_t bytes_of(trn_format f) { return (size_t)trn_format_bits(f) / 8; }

/* A view of this shape somewhere in `room` bytes, with any strides. */
static inline trn_tensor view_in(unsigned char *at, size_t room, trn_format format, int rank, const int64_t *shape)
{
    for (;;) {
        trn_tensor t = trn_tensor_nd(format, at + (size_t)below(3) * bytes_of(format), rank, shape);
        const int64_t n = trn_tensor_elements(t), span = n && one_in(2) ? random_strides(&t, false, false, &rng) : n;
        if ((size_t)(span + 3) * bytes_of(format) <= room) return t;
    }
}

/* The element of a view, in bytes from its data: by hand. */
static inline int64_t place(const trn_tensor *t, const int64_t *index)
{
    int64_t at = 0, step = 1;
    bool packed = true;
    for (int d = 0; d < t->rank; d++) packed = packed && t->stride[d] == 0;
    for (int d = t->rank - 1; d >= 0; step *= t->shape[d--]) at += index[d] * (packed ? step : t->stride[d]);
    return at * (int64_t)bytes_of(t->format);
}

static inline void scramble(unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t word = cases_next(&rng);
        memcpy(at + i, &word, 8);
    }
}

/* A view in at[i] for each device's part. */
static inline void random_parts(const twin_sharding *twin, trn_format format, unsigned char (*at)[ROOM],
                                trn_tensor *part)
{
    for (int i = 0; i < mesh.devices; i++) {
        int64_t shape[TWIN_DIMS] = { 0 };
        for (int d = 0; d < twin->rank; d++) shape[d] = twin_count(twin, i, d);
        part[i] = view_in(at[i], ROOM, format, twin->rank, shape);
    }
}

#endif /* SHARD_CASES_H */

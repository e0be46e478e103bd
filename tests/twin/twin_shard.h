/* twin_shard.h - who holds which element of a sharded tensor, one element and one device at a time.
 * SPDX-License-Identifier: MIT
 *
 * Nothing here comes from trnmath/. A sharding is described by plain numbers: for each axis of the mesh the dimension
 * it cuts and how many axes cut that dimension outside of it.
 */
#ifndef TWIN_SHARD_H
#define TWIN_SHARD_H

#include <stdbool.h>
#include <stdint.h>

enum { TWIN_AXES = 8, TWIN_DIMS = 6, TWIN_WHOLE = -1, TWIN_SUM = -2 };

typedef struct twin_sharding {
    int axes, size[TWIN_AXES]; /* of the mesh, the outermost first */
    int role[TWIN_AXES];       /* a dimension, TWIN_WHOLE or TWIN_SUM */
    int depth[TWIN_AXES];      /* how many axes cut the same dimension outside of this one */
    int rank;
    int64_t shape[TWIN_DIMS];
} twin_sharding;

static inline int twin_devices(const twin_sharding *s)
{
    int n = 1;
    for (int a = 0; a < s->axes; a++) n *= s->size[a];
    return n;
}

static inline int twin_coordinate(const twin_sharding *s, int device, int axis)
{
    for (int a = s->axes - 1; a > axis; a--) device /= s->size[a];
    return device % s->size[axis];
}

/* Into how many parts a dimension is cut, and which of them a device has. */
static inline int twin_part(const twin_sharding *s, int dim, int device, int *parts)
{
    int index = 0;
    *parts = 1;
    for (int depth = 0; depth < s->axes; depth++)
        for (int a = 0; a < s->axes; a++)
            if (s->role[a] == dim && s->depth[a] == depth) {
                index = index * s->size[a] + twin_coordinate(s, device, a);
                *parts *= s->size[a];
            }
    return index;
}

/* The smallest step with which that many parts reach the end. */
static inline int64_t twin_step(int64_t size, int parts)
{
    int64_t step = 0;
    while (step * parts < size) step++;
    return step;
}

/* Does the device hold this element, and where in its part? */
static inline bool twin_holds(const twin_sharding *s, int device, const int64_t *index, int64_t *local)
{
    for (int d = 0; d < s->rank; d++) {
        int parts;
        const int part = twin_part(s, d, device, &parts);
        const int64_t step = twin_step(s->shape[d], parts);
        if (index[d] / step != part) return false;
        local[d] = index[d] % step;
    }
    return true;
}

/* The size of its part along a dimension: by counting. */
static inline int64_t twin_count(const twin_sharding *s, int device, int dim)
{
    int parts;
    const int part = twin_part(s, dim, device, &parts);
    int64_t n = 0;
    for (int64_t i = 0; i < s->shape[dim]; i++)
        if (i / twin_step(s->shape[dim], parts) == part) n++;
    return n;
}

/* Is it at 0 along every axis of the sum? */
static inline bool twin_leads_sum(const twin_sharding *s, int device)
{
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] == TWIN_SUM && twin_coordinate(s, device, a)) return false;
    return true;
}

/* Do two devices hold parts of the same elements, and the same summand of them? */
static inline bool twin_same(const twin_sharding *s, int x, int y)
{
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] != TWIN_WHOLE && twin_coordinate(s, x, a) != twin_coordinate(s, y, a)) return false;
    return true;
}

/* The next index of a shape; false after the last. Start with zeros, and only if the shape is not empty. */
static inline bool twin_next(int rank, const int64_t *shape, int64_t *index)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

#endif /* TWIN_SHARD_H */

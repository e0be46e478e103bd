/* network/mesh.h - devices under names: axes over the chips of a topology.
 * A part of trn_mesh.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_MESH_H
#define TRNI_NETWORK_MESH_H

#include "topology_file.h"
#include "topology_svg.h"

enum { TRN_MAX_AXES = 10, TRN_AXIS_NAME = 24 };

typedef struct trn_mesh_axis {
    char name[TRN_AXIS_NAME];
    int size;
    int stride;                /* devices between neighbours along it */
    int levels;                /* of the topology on which "@" lays it; 0 = not said */
    int level[TRN_MAX_LEVELS]; /* the outermost first */
} trn_mesh_axis;

typedef struct trn_mesh {
    const trn_topology *net;
    int devices;
    int axes;                         /* 0 = no mesh */
    trn_mesh_axis axis[TRN_MAX_AXES]; /* the outermost first */
    const int *order;                 /* [devices] chips; NULL = as below */
    bool placed;                      /* some axis names its levels; the others, in order, count what levels remain */
    int rests;                        /* these, */
    int rest[TRN_MAX_LEVELS];         /* the outermost first */
} trn_mesh;

typedef struct trn_mesh_args {
    trn_mesh *mesh; /* out */
    const trn_topology *net;
    const char *axes; /* "data=2,tensor=8"; blanks are free */
    const int *order; /* optional: the chip of each device, in mesh order */
    int count;        /* devices; 0 = all chips of net, or as many as the axes make of `order` */
    trn_error *error; /* optional */
} trn_mesh_args;

/* ---- making a mesh ---- */

/* On failure (TRN_EINVAL; TRN_ELIMIT for a topology that is too large) *args->mesh is as it was. */
TRN_API trn_status trn_mesh_make(const trn_mesh_args *args);

/* trn_mesh_make over all chips of net, in their own order. */
TRN_API trn_status trn_mesh_init(trn_mesh *mesh, const trn_topology *net, const char *axes);

/* "data=4@z,tensor=16@y*x". Writes at most `room` bytes, the end included; returns the length of the whole text. */
TRN_API size_t trn_mesh_format(const trn_mesh *mesh, char *text, size_t capacity);

/* ---- devices and chips ---- */

/* The axis of this name, or -1. */
TRN_API int trn_mesh_axis_named(const trn_mesh *mesh, const char *name);

/* Where a device stands along one axis; both must exist. */
TRN_API int trn_mesh_coordinate(const trn_mesh *mesh, int device, int axis);

/* coordinate: [axes] */
TRN_API void trn_mesh_coordinates(const trn_mesh *mesh, int device, int *coordinate);

/* -1 when a coordinate is outside of its axis. */
TRN_API int trn_mesh_device_at(const trn_mesh *mesh, const int *coordinate);

/* -1 when there is no such device. */
TRN_API int trn_mesh_chip(const trn_mesh *mesh, int device);

/* The chip of the device with these coordinates, [axes]; -1 when one is outside of its axis. */
TRN_API int trn_mesh_chip_at(const trn_mesh *mesh, const int *coordinate);

/* -1 when the chip is not in the mesh. */
TRN_API int trn_mesh_device_of_chip(const trn_mesh *mesh, int chip);

/* ---- groups ---- */

/* Devices in a group along these axes; 0 when one of them does not exist or is there twice. */
TRN_API int trn_mesh_group_size(const trn_mesh *mesh, const int *axis, int axes);

/* chip: [groups][group size], mesh->devices in all; may be NULL. Members count along the axes as listed, the first one
 * outermost. Returns the number of groups; 0 as above. */
TRN_API int trn_mesh_groups(const trn_mesh *mesh, const int *axis, int axes, int *chip);

/* ---- are neighbours neighbours? ---- */

typedef struct trn_mesh_reach {
    bool contiguous;  /* in every group each step to the next member is one link, or one crossing of a switch */
    bool ring;        /* and so is the step from the last member to the first */
    int hops;         /* most segments of a step (link 1; switch 2: chip to switch, switch to chip) */
    int closing_hops; /* most segments from a last to a first member */
} trn_mesh_reach;

/* What reach->contiguous says, for the groups that trn_mesh_groups lists; false when an axis does not exist. */
TRN_API bool trn_mesh_contiguous(const trn_mesh *mesh, const int *axis, int axes, trn_mesh_reach *reach);

/* The same for the groups along one axis. */
TRN_API bool trn_mesh_axis_contiguous(const trn_mesh *mesh, int axis, trn_mesh_reach *reach);

#if TRNI_BODIES

#include "../base/parse.h"

/* ---- making a mesh ---- */

TRNI_FN int trni_level_named(const trn_topology *net, trni_word w)
{
    for (int i = 0; i < net->levels; i++)
        if (trni_word_is(w, trn_level_name(&net->level[i]))) return i;
    return -1;
}

TRNI_FN int trni_axis_of(const trn_mesh *mesh, trni_word w)
{
    for (int i = 0; i < mesh->axes; i++)
        if (trni_word_is(w, mesh->axis[i].name)) return i;
    return -1;
}

/* "z*y": the levels on which an axis lies. */
TRNI_FN trn_status trni_mesh_read_levels(trni_reader *r, trn_mesh *m, trn_mesh_axis *axis, unsigned *taken,
                                         trn_error *error)
{
    int64_t chips = 1;
    do {
        const trni_word w = trni_reader_word(r);
        const int level = trni_level_named(m->net, w);
        if (!w.length) return trni_reader_expected(r, "the name of a level", error);
        if (level < 0)
            return trni_fail(error, TRN_EINVAL, "axis %s lies on level %.*s, which %s does not have", axis->name,
                             w.length < TRN_AXIS_NAME ? w.length : TRN_AXIS_NAME, w.at, m->net->name);
        if (*taken >> level & 1u)
            return trni_fail(error, TRN_EINVAL, "level %s is taken twice, the second time by axis %s",
                             trn_level_name(&m->net->level[level]), axis->name);
        *taken |= 1u << level;
        axis->level[axis->levels++] = level;
        chips *= m->net->level[level].size;
    } while (trni_reader_take(r, '*'));
    if (chips != axis->size)
        return trni_fail(error, TRN_EINVAL, "axis %s has size %d but its levels hold %lld chips", axis->name,
                         axis->size, (long long)chips);
    m->placed = true;
    return TRN_OK;
}

/* "tensor=8", or "tensor=8@y*x". */
TRNI_FN trn_status trni_mesh_read_axis(trni_reader *r, trn_mesh *m, unsigned *taken, trn_error *error)
{
    if (m->axes == TRN_MAX_AXES)
        return trni_fail(error, TRN_EINVAL, "%s names more than %d axes", r->name, TRN_MAX_AXES);
    trn_mesh_axis *const axis = &m->axis[m->axes];
    const trni_word w = trni_reader_word(r);
    if (!w.length) return trni_reader_expected(r, "the name of an axis", error);
    if (w.length >= TRN_AXIS_NAME)
        return trni_fail(error, TRN_EINVAL, "axis %.*s has a name of more than %d characters", TRN_AXIS_NAME, w.at,
                         TRN_AXIS_NAME - 1);
    if (trni_word_is(w, "None") || trni_word_is(w, "sum"))
        return trni_fail(error, TRN_EINVAL, "an axis may not be called %.*s, a word of shardings", w.length, w.at);
    if (trni_axis_of(m, w) >= 0) return trni_fail(error, TRN_EINVAL, "axis %.*s is there twice", w.length, w.at);
    memcpy(axis->name, w.at, (size_t)w.length);
    if (!trni_reader_take(r, '=')) return trni_reader_expected(r, "\"=\"", error);
    axis->size = trni_reader_number(r);
    if (axis->size < 1)
        return trni_fail(error, TRN_EINVAL, "axis %s needs a size from 1 to %d after its \"=\"", axis->name, INT_MAX);
    if (axis->size > INT_MAX / m->devices)
        return trni_fail(error, TRN_EINVAL, "the axes up to %s make more than %d devices", axis->name, INT_MAX);
    m->devices *= axis->size;
    m->axes++;
    return trni_reader_take(r, '@') ? trni_mesh_read_levels(r, m, axis, taken, error) : TRN_OK;
}

TRNI_FN trn_status trni_mesh_read(trn_mesh *m, const trn_mesh_args *args)
{
    trni_reader r = { "axes", args->axes, args->axes };
    unsigned taken = 0;
    do {
        const trn_status status = trni_mesh_read_axis(&r, m, &taken, args->error);
        if (status) return status;
    } while (trni_reader_take(&r, ','));
    trni_reader_skip(&r);
    if (*r.at) return trni_reader_expected(&r, "a comma or the end", args->error);
    int stride = 1;
    for (int i = m->axes - 1; i >= 0; stride *= m->axis[i--].size) m->axis[i].stride = stride;
    for (int i = m->net->levels - 1; i >= 0; i--)
        if (!(taken >> i & 1u)) m->rest[m->rests++] = i;
    return TRN_OK;
}

enum { TRNI_ORDER_WINDOW = 65536 }; /* chips whose presence is noted at once: 8 KiB of bits */

/* Each chip of the list exists, and none is there twice. */
TRNI_DRIVER trn_status trni_mesh_check_order(const trn_mesh *m, trn_error *error)
{
    const int *order = m->order, chips = m->net->chips;
    for (int i = 0; i < m->devices; i++)
        if (order[i] < 0 || order[i] >= chips)
            return trni_fail(error, TRN_EINVAL, "order[%d] = %d, but the chips of %s are 0 to %d", i, order[i],
                             m->net->name, chips - 1);
    for (int64_t low = 0; low < chips; low += TRNI_ORDER_WINDOW) {
        uint64_t seen[TRNI_ORDER_WINDOW / 64];
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < m->devices; i++) {
            const int64_t at = order[i] - low;
            if (at < 0 || at >= TRNI_ORDER_WINDOW) continue;
            if (seen[at / 64] >> at % 64 & 1u)
                return trni_fail(error, TRN_EINVAL, "order[%d] = %d: this chip is there twice", i, order[i]);
            seen[at / 64] |= (uint64_t)1 << at % 64;
        }
    }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mesh_check_count(const trn_mesh *m, const trn_mesh_args *args)
{
    const int chips = m->net->chips, wanted = args->count ? args->count : args->order ? m->devices : chips;
    if (args->count < 0 || args->count > chips)
        return trni_fail(args->error, TRN_EINVAL, "count = %d, but %s has %d chips", args->count, m->net->name, chips);
    if (m->devices != wanted && !args->count && !args->order)
        return trni_fail(args->error, TRN_EINVAL,
                         "axes %.80s make %d devices, but %s has %d chips; count or order can name some of them",
                         args->axes, m->devices, m->net->name, chips);
    if (m->devices != wanted)
        return trni_fail(args->error, TRN_EINVAL, "axes %.80s make %d devices, but count = %d", args->axes, m->devices,
                         wanted);
    if (m->devices > chips)
        return trni_fail(args->error, TRN_EINVAL, "axes %.80s make %d devices, but %s has %d chips", args->axes,
                         m->devices, m->net->name, chips);
    if (m->placed && (args->order || m->devices != chips))
        return trni_fail(args->error, TRN_EINVAL,
                         "axes on levels (\"@\") take all %d chips of %s, in the order of the levels: %s", chips,
                         m->net->name, args->order ? "order says another" : "count says fewer");
    return args->order ? trni_mesh_check_order(m, args->error) : TRN_OK;
}

TRN_API trn_status trn_mesh_make(const trn_mesh_args *args)
{
    trn_mesh m;
    TRNI_ENTER(args);
    if (!args->mesh || !args->net || !args->axes)
        return trni_fail(args->error, TRN_EINVAL, "%s is null", !args->mesh ? "mesh" : !args->net ? "net" : "axes");
    memset(&m, 0, sizeof m);
    m.net = args->net;
    m.devices = 1;
    m.order = args->order;
    trn_status status = trn_topology_check(args->net, args->error);
    if (!status) status = trni_mesh_read(&m, args);
    if (!status) status = trni_mesh_check_count(&m, args);
    if (!status) *args->mesh = m;
    return status;
}

TRN_API trn_status trn_mesh_init(trn_mesh *mesh, const trn_topology *net, const char *axes)
{
    trn_mesh_args args;
    memset(&args, 0, sizeof args);
    args.mesh = mesh;
    args.net = net;
    args.axes = axes;
    return trn_mesh_make(&args);
}

TRN_API size_t trn_mesh_format(const trn_mesh *mesh, char *text, size_t capacity)
{
    trni_writer w = { text, capacity, 0 };
    trni_write(&w, "");
    for (int i = 0; i < mesh->axes; i++) {
        const trn_mesh_axis *axis = &mesh->axis[i];
        trni_write(&w, i ? "," : "");
        trni_write(&w, axis->name);
        trni_write(&w, "=");
        trni_write_number(&w, axis->size);
        for (int j = 0; j < axis->levels; j++) {
            trni_write(&w, j ? "*" : "@");
            trni_write(&w, trn_level_name(&mesh->net->level[axis->level[j]]));
        }
    }
    return w.used;
}

/* ---- devices and chips ---- */

TRN_API int trn_mesh_axis_named(const trn_mesh *mesh, const char *name)
{
    for (int i = 0; i < mesh->axes; i++)
        if (strcmp(mesh->axis[i].name, name) == 0) return i;
    return -1;
}

TRN_API int trn_mesh_coordinate(const trn_mesh *mesh, int device, int axis)
{
    return device / mesh->axis[axis].stride % mesh->axis[axis].size;
}

TRN_API void trn_mesh_coordinates(const trn_mesh *mesh, int device, int *coordinate)
{
    for (int i = 0; i < mesh->axes; i++) coordinate[i] = trn_mesh_coordinate(mesh, device, i);
}

TRN_API int trn_mesh_device_at(const trn_mesh *mesh, const int *coordinate)
{
    int device = 0;
    for (int i = 0; i < mesh->axes; i++) {
        if (coordinate[i] < 0 || coordinate[i] >= mesh->axis[i].size) return -1;
        device += coordinate[i] * mesh->axis[i].stride;
    }
    return device;
}

/* The digits of `index`, counted over these levels with the outermost first, as a chip with all other digits 0. */
TRNI_FN int trni_levels_chip(const trn_topology *net, const int *level, int levels, int index)
{
    int chip = 0;
    for (int i = levels - 1; i >= 0; i--) {
        const int size = net->level[level[i]].size;
        chip += index % size * trn_topology_stride(net, level[i]);
        index /= size;
    }
    return chip;
}

TRNI_FN int trni_levels_index(const trn_topology *net, const int *level, int levels, int chip)
{
    int index = 0;
    for (int i = 0; i < levels; i++)
        index = index * net->level[level[i]].size + trn_topology_digit(net, chip, level[i]);
    return index;
}

TRN_API int trn_mesh_chip(const trn_mesh *mesh, int device)
{
    if (device < 0 || device >= mesh->devices) return -1;
    if (mesh->order) return mesh->order[device];
    if (!mesh->placed) return device;
    int chip = 0, rest = 0;
    for (int i = 0; i < mesh->axes; i++) {
        const trn_mesh_axis *axis = &mesh->axis[i];
        const int at = trn_mesh_coordinate(mesh, device, i);
        if (axis->levels)
            chip += trni_levels_chip(mesh->net, axis->level, axis->levels, at);
        else
            rest = rest * axis->size + at;
    }
    return chip + trni_levels_chip(mesh->net, mesh->rest, mesh->rests, rest);
}

TRN_API int trn_mesh_chip_at(const trn_mesh *mesh, const int *coordinate)
{
    return trn_mesh_chip(mesh, trn_mesh_device_at(mesh, coordinate));
}

TRN_API int trn_mesh_device_of_chip(const trn_mesh *mesh, int chip)
{
    if (chip < 0 || chip >= mesh->net->chips) return -1;
    for (int i = 0; mesh->order && i < mesh->devices; i++)
        if (mesh->order[i] == chip) return i;
    if (mesh->order) return -1;
    if (!mesh->placed) return chip < mesh->devices ? chip : -1;
    int device = 0, rest = trni_levels_index(mesh->net, mesh->rest, mesh->rests, chip);
    for (int i = mesh->axes - 1; i >= 0; i--) {
        const trn_mesh_axis *axis = &mesh->axis[i];
        const int at = axis->levels ? trni_levels_index(mesh->net, axis->level, axis->levels, chip) : rest % axis->size;
        if (!axis->levels) rest /= axis->size;
        device += at * axis->stride;
    }
    return device;
}

/* ---- groups ---- */

/* The devices as [groups][members]: members differ along the named axes only, counted with the first of them outermost;
 * groups are counted along the other axes, as the mesh has them. */
typedef struct trni_mesh_split {
    const trn_mesh *mesh;
    int inner[TRN_MAX_AXES], inners, outer[TRN_MAX_AXES], outers;
    int members, groups;
} trni_mesh_split;

/* False when an axis does not exist or is there twice. */
TRNI_FN bool trni_split_of(trni_mesh_split *s, const trn_mesh *mesh, const int *axis, int axes)
{
    unsigned taken = 0;
    memset(s, 0, sizeof *s);
    s->mesh = mesh;
    s->members = s->groups = 1;
    for (int i = 0; i < axes; i++) {
        if (axis[i] < 0 || axis[i] >= mesh->axes || taken >> axis[i] & 1u) return false;
        taken |= 1u << axis[i];
        s->inner[s->inners++] = axis[i];
        s->members *= mesh->axis[axis[i]].size;
    }
    for (int i = 0; i < mesh->axes; i++) {
        if (taken >> i & 1u) continue;
        s->outer[s->outers++] = i;
        s->groups *= mesh->axis[i].size;
    }
    return true;
}

TRNI_FN int trni_along(const trn_mesh *mesh, const int *axis, int axes, int index)
{
    int device = 0;
    for (int i = axes - 1; i >= 0; i--) {
        device += index % mesh->axis[axis[i]].size * mesh->axis[axis[i]].stride;
        index /= mesh->axis[axis[i]].size;
    }
    return device;
}

TRNI_FN int trni_split_device(const trni_mesh_split *s, int group, int member)
{
    return trni_along(s->mesh, s->outer, s->outers, group) + trni_along(s->mesh, s->inner, s->inners, member);
}

TRN_API int trn_mesh_group_size(const trn_mesh *mesh, const int *axis, int axes)
{
    trni_mesh_split s;
    return trni_split_of(&s, mesh, axis, axes) ? s.members : 0;
}

TRN_API int trn_mesh_groups(const trn_mesh *mesh, const int *axis, int axes, int *chip)
{
    trni_mesh_split s;
    if (!trni_split_of(&s, mesh, axis, axes)) return 0;
    for (int g = 0; chip && g < s.groups; g++)
        for (int i = 0; i < s.members; i++) *chip++ = trn_mesh_chip(mesh, trni_split_device(&s, g, i));
    return s.groups;
}

/* ---- are neighbours neighbours? ---- */

TRNI_FN bool trni_is_neighbour(const trn_topology *net, int from, int to, int *most)
{
    int64_t index[2];
    trn_link link[2];
    const int hops = trn_topology_route(net, from, to, index, 2);
    if (hops > *most) *most = hops;
    if (hops != 2) return hops <= 1;
    return trn_topology_link(net, index[0], &link[0]) && trn_topology_link(net, index[1], &link[1]) &&
           link[0].wiring == TRN_WIRING_SWITCH && link[1].wiring == TRN_WIRING_SWITCH;
}

TRN_API bool trn_mesh_contiguous(const trn_mesh *mesh, const int *axis, int axes, trn_mesh_reach *reach)
{
    trn_mesh_reach found;
    trni_mesh_split s;
    memset(&found, 0, sizeof found);
    if (trni_split_of(&s, mesh, axis, axes)) {
        found.contiguous = found.ring = true;
        for (int g = 0; g < s.groups; g++) {
            const int first = trn_mesh_chip(mesh, trni_split_device(&s, g, 0));
            int at = first;
            for (int i = 1; i < s.members; i++) {
                const int next = trn_mesh_chip(mesh, trni_split_device(&s, g, i));
                if (!trni_is_neighbour(mesh->net, at, next, &found.hops)) found.contiguous = false;
                at = next;
            }
            if (!trni_is_neighbour(mesh->net, at, first, &found.closing_hops)) found.ring = false;
        }
        found.ring = found.ring && found.contiguous;
    }
    if (reach) *reach = found;
    return found.contiguous;
}

TRN_API bool trn_mesh_axis_contiguous(const trn_mesh *mesh, int axis, trn_mesh_reach *reach)
{
    return trn_mesh_contiguous(mesh, &axis, 1, reach);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_MESH_H */

/* fuzz_reshard.c - random shardings of random tensors on random meshes, planned and moved, against brute force.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_reshard [count] [seed]        default: 6000 cases, 200000 with TRN_TEST_LEVEL=2; seed 1 (fuzz/long.h)
 *
 * Values: every element is followed from the devices that hold it to those that want it, one at a time; moves keep
 * every bit, sums are of small whole numbers, which no order rounds, and nothing else is written. Plans: bytes of every
 * step are counted from the elements, and so is the bound, which no plan may beat. On small meshes every sharding there
 * is and every move between two of them is tried, as sharded/reshard_moves.h describes moves in words: no sequence may
 * be cheaper than the plan, and none may be missing that the plan takes. What is illegal is refused with a sentence,
 * and nothing is written.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "trnmath/trn_reshard.h"
#include "twin/cases.h"
#include "fuzz/long.h"

#define assert_int_equal(a, b) assert((a) == (b))

enum { DEVICES = 24, ROOM = 1 << 13 };

static uint64_t rng;

#include "twin/shard_cases.h"

static unsigned char source[DEVICES][ROOM], target[DEVICES][ROOM], want[DEVICES][ROOM];
static trn_tensor src[DEVICES], dst[DEVICES];
static bool numbers; /* the elements are small whole numbers, as a sum is somewhere; else any bits */
static long compared, refusals;

static void say(const char *what, const trn_redistribute_args *args)
{
    char axes[100], from[100], to[100];
    trn_mesh_format(args->mesh, axes, sizeof axes);
    trn_pspec_format(&args->from, args->mesh, from, sizeof from);
    trn_pspec_format(&args->to, args->mesh, to, sizeof to);
    fprintf(stderr, "%s: %s on %s, %s to %s, %s [", what, args->mesh->net->name, axes, from, to,
            trn_format_name(args->global.format));
    for (int d = 0; d < args->global.rank; d++)
        fprintf(stderr, "%s%lld", d ? ", " : "", (long long)args->global.shape[d]);
    fprintf(stderr, "]\n");
    abort();
}

static trn_redistribute_args args_of(const twin_sharding *from, const twin_sharding *to, trn_format format,
                                     trn_error *error)
{
    trn_redistribute_args args;
    memset(&args, 0, sizeof args);
    memset(error, 0, sizeof *error);
    args.mesh = &mesh;
    args.from = spec_of(from);
    args.to = spec_of(to);
    args.global = trn_tensor_nd(format, NULL, from->rank, from->shape);
    args.src = src;
    args.dst = dst;
    args.error = error;
    return args;
}

static bool near(double a, double b) { return a <= b * (1 + 1e-8) && b <= a * (1 + 1e-8); }

/* ---- values ---- */

/* What a device gives to an element: its bits, or a small whole number where there is a sum. */
static uint32_t given(const twin_sharding *from, const int64_t *index, int device, trn_format format)
{
    uint64_t state = 77;
    for (int d = 0; d < from->rank; d++) state = state * 1000003u + (uint64_t)index[d];
    for (int a = 0; a < from->axes; a++)
        if (from->role[a] == TWIN_SUM) state = state * 31 + (uint64_t)twin_coordinate(from, device, a);
    if (!numbers) return cases_u32(&state);
    const uint32_t bits = cases_bits_of((float)(cases_below(&state, 7) - 3));
    return format == TRN_BF16 ? bits >> 16 : bits;
}

static float number_of(uint32_t code, trn_format format)
{
    return cases_float_of(format == TRN_BF16 ? code << 16 : code);
}

static uint32_t read_code(trn_format format, const unsigned char *at)
{
    uint32_t code = 0;
    memcpy(&code, at, bytes_of(format));
    return code;
}

/* Of devices that hold the same summand, one counts. */
static bool counts(const twin_sharding *s, int device)
{
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] == TWIN_WHOLE && twin_coordinate(s, device, a)) return false;
    return true;
}

static bool has_sum(const twin_sharding *s)
{
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] == TWIN_SUM && s->size[a] > 1) return true; /* of one summand there is no sum */
    return false;
}

static float total(const twin_sharding *from, const int64_t *index, trn_format format)
{
    int64_t local[TWIN_DIMS];
    float sum = 0;
    for (int i = 0; i < mesh.devices; i++)
        if (counts(from, i) && twin_holds(from, i, index, local))
            sum += number_of(given(from, index, i, format), format);
    return sum;
}

/* The element at every device that wants it: the bits, or, of an open sum, what all summands are together. */
static void check_element(const trn_redistribute_args *args, const twin_sharding *from, const twin_sharding *to,
                          const int64_t *index)
{
    const trn_format format = args->global.format;
    int64_t local[TWIN_DIMS];
    float open = 0;
    for (int i = 0; i < mesh.devices; i++) {
        if (!twin_holds(to, i, index, local)) continue;
        unsigned char *at = (unsigned char *)dst[i].data + place(&dst[i], local);
        const uint32_t code = read_code(format, at);
        if (!numbers &&
            code != (given(from, index, 0, format) & (uint32_t)(0xffffffffu >> (32 - 8 * bytes_of(format)))))
            say("a bit was lost", args);
        if (numbers && counts(to, i)) open += number_of(code, format);
        if (numbers && !has_sum(to) && number_of(code, format) != total(from, index, format))
            say("a device has a wrong sum", args);
        memcpy(want[i] + (at - target[i]), at, bytes_of(format)); /* elements may have changed, and nothing else */
    }
    if (numbers && has_sum(to) && open != total(from, index, format)) say("the summands do not make the sum", args);
}

static void fill_sources(const trn_redistribute_args *args, const twin_sharding *from)
{
    int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
    if (trn_tensor_elements(args->global)) do
            for (int i = 0; i < mesh.devices; i++)
                if (twin_holds(from, i, index, local)) {
                    const uint32_t code = given(from, index, i, args->global.format);
                    memcpy((unsigned char *)src[i].data + place(&src[i], local), &code, bytes_of(args->global.format));
                }
        while (twin_next(from->rank, from->shape, index));
}

static void check_untouched(const trn_redistribute_args *args)
{
    if (memcmp(target, want, sizeof target[0] * (size_t)mesh.devices)) say("something else was written", args);
}

static void check_values(trn_redistribute_args *args, const twin_sharding *from, const twin_sharding *to)
{
    int64_t index[TWIN_DIMS] = { 0 };
    fill_sources(args, from);
    if (trn_redistribute(args)) say(args->error->text, args);
    if (trn_tensor_elements(args->global)) do
            check_element(args, from, to, index);
        while (twin_next(from->rank, from->shape, index));
    check_untouched(args);
}

/* ---- bytes, counted ---- */

/* A library's sharding in the twin's words. */
static twin_sharding twin_of(const twin_sharding *like, const trn_pspec *spec)
{
    twin_sharding s = *like;
    for (int a = 0; a < s.axes; a++) {
        s.role[a] = spec->sum >> a & 1u ? TWIN_SUM : TWIN_WHOLE;
        s.depth[a] = 0;
        for (int d = 0; d < spec->rank; d++)
            for (int i = 0; i < spec->dim[d].axes; i++)
                if (spec->dim[d].axis[i] == a) s.role[a] = d, s.depth[a] = i;
    }
    return s;
}

static int64_t held(const twin_sharding *s, int device)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) n *= twin_count(s, device, d);
    return n;
}

/* Elements that one device has and another wants. */
static int64_t shared(const twin_sharding *has, int device, const twin_sharding *wants, int other)
{
    int64_t n = 1;
    for (int d = 0; d < has->rank; d++) {
        int parts, parts_wanted;
        const int part = twin_part(has, d, device, &parts), wanted = twin_part(wants, d, other, &parts_wanted);
        int64_t both = 0;
        for (int64_t i = 0; i < has->shape[d]; i++)
            both += i / twin_step(has->shape[d], parts) == part && i / twin_step(has->shape[d], parts_wanted) == wanted;
        n *= both;
    }
    return n;
}

static int64_t most_held(const twin_sharding *s)
{
    int64_t most = 0;
    for (int i = 0; i < mesh.devices; i++)
        if (held(s, i) > most) most = held(s, i);
    return most;
}

static int64_t most_shared(const twin_sharding *has, const twin_sharding *wants, unsigned axes)
{
    int64_t most = 0;
    for (int i = 0; i < mesh.devices; i++)
        for (int j = 0; j < mesh.devices; j++) {
            bool group = true;
            for (int a = 0; a < has->axes; a++)
                group = group && (axes >> a & 1u || twin_coordinate(has, i, a) == twin_coordinate(has, j, a));
            const int64_t n = group ? shared(has, i, wants, j) : 0;
            if (n > most) most = n;
        }
    return most;
}

/* As trn_reshard_step has it: the larger buffer of a chip, all parts as large as the largest. */
static int64_t counted_bytes(const trn_redistribute_args *args, const trn_reshard_step *step,
                             const twin_sharding *before, const twin_sharding *after)
{
    const int64_t bytes = (int64_t)bytes_of(args->global.format);
    int64_t members = 1;
    unsigned axes = 0;
    for (int i = 0; i < step->axes; i++) {
        members *= before->size[step->axis[i]];
        axes |= 1u << step->axis[i];
    }
    if (step->kind == TRN_RESHARD_SLICE) return 0;
    if (step->kind == TRN_RESHARD_ZERO_FILL) return bytes * most_held(after);
    switch (step->op) {
    case TRN_ALL_GATHER: return bytes * members * most_held(before);
    case TRN_REDUCE_SCATTER: return bytes * members * most_held(after);
    case TRN_ALL_TO_ALL: return bytes * members * most_shared(before, after, axes);
    default: return bytes * most_held(before);
    }
}

static void check_bound(const trn_redistribute_args *args, const trn_reshard_plan *plan, const twin_sharding *from,
                        const twin_sharding *to)
{
    const double rate = trn_topology_injection_bytes_per_s(&net);
    int64_t most = 0;
    for (int i = 0; i < mesh.devices; i++) {
        if (!twin_leads_sum(to, i) || has_sum(to)) continue;
        const int64_t lacks = held(to, i) - (has_sum(from) ? 0 : shared(from, i, to, i));
        if (lacks > most) most = lacks;
    }
    const double bound = rate > 0 ? (double)most * (double)bytes_of(args->global.format) / rate : 0;
    if (!near(bound + 1e-30, plan->lower_bound_s + 1e-30)) say("the bound is not what was counted", args);
    if (plan->time_s < bound * (1 - 1e-9)) say("a plan is faster than its bound", args);
}

static void check_steps(const trn_redistribute_args *args, const trn_reshard_plan *plan, const twin_sharding *from)
{
    twin_sharding before = *from;
    double time_s = 0;
    for (int i = 0; i < plan->steps; i++) {
        const trn_reshard_step *step = &plan->step[i];
        const twin_sharding after = twin_of(from, &step->after);
        if (step->bytes != counted_bytes(args, step, &before, &after)) say("a step has other bytes", args);
        if (step->cost.time_s < step->cost.lower_bound_s * (1 - 1e-9)) say("a step is faster than its bound", args);
        time_s += step->cost.time_s;
        before = after;
    }
    if (!near(time_s + 1e-30, plan->time_s + 1e-30)) say("the steps do not take the time of the plan", args);
}

/* ---- every sharding, every move ---- */

enum { STATES = 400, SMALL_AXES = 3, SMALL_RANK = 2 };

typedef struct small {
    int axes, list[TWIN_DIMS][TWIN_AXES], length[TWIN_DIMS]; /* which axes cut a dimension, the outermost first */
    unsigned sum, cut;
} small;

static small small_of(const twin_sharding *s)
{
    small m;
    memset(&m, 0, sizeof m);
    m.axes = s->axes;
    for (int d = 0; d < s->rank; d++)
        for (int depth = 0; depth < s->axes; depth++)
            for (int a = 0; a < s->axes; a++)
                if (s->role[a] == d && s->depth[a] == depth && s->size[a] > 1) {
                    m.list[d][m.length[d]++] = a;
                    m.cut |= 1u << a;
                }
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] == TWIN_SUM && s->size[a] > 1) m.sum |= 1u << a;
    return m;
}

typedef struct graph {
    const trn_redistribute_args *args;
    twin_sharding like;
    unsigned opens, closes, stays;
    int states;
    small state[STATES];
    double time_s[STATES]; /* negative: not reached */
    bool done[STATES];
} graph;

/* Every way to lay the axes from `axis` on: whole, sum, or at any place of any dimension's list. */
static void all_states(graph *g, small so_far, int axis)
{
    if (g->states == STATES) return;
    if (axis == g->like.axes) {
        g->time_s[g->states] = -1;
        g->state[g->states++] = so_far;
        return;
    }
    const unsigned bit = 1u << axis;
    if (g->like.size[axis] == 1) {
        all_states(g, so_far, axis + 1);
        return;
    }
    if ((g->opens | g->closes | g->stays) & bit) {
        small summed = so_far;
        summed.sum |= bit;
        all_states(g, summed, axis + 1);
    }
    if (g->stays & bit) return;
    all_states(g, so_far, axis + 1);
    for (int d = 0; d < g->like.rank; d++)
        for (int at = 0; at <= so_far.length[d]; at++) {
            small laid = so_far;
            for (int i = laid.length[d]++; i > at; i--) laid.list[d][i] = laid.list[d][i - 1];
            laid.list[d][at] = axis;
            laid.cut |= bit;
            all_states(g, laid, axis + 1);
        }
}

static int parts_of(const graph *g, const int *list, int length)
{
    int parts = 1;
    for (int i = 0; i < length; i++) parts *= g->like.size[list[i]];
    return parts;
}

/* Is each of the finer parts inside one of the coarser ones? By elements. */
static bool nests(const graph *g, int dim, int coarse, int fine)
{
    const int64_t n = g->like.shape[dim], wide = twin_step(n, coarse), narrow = twin_step(n, fine);
    for (int64_t i = 0; i < n; i++) {
        if (i / narrow / (fine / coarse) != i / wide) return false;
    }
    return true;
}

static bool starts(const int *list, int length, const int *with, int most)
{
    return length >= most && memcmp(list, with, sizeof list[0] * (size_t)most) == 0;
}

static twin_sharding twin_of_small(const graph *g, const small *m)
{
    twin_sharding s = g->like;
    for (int a = 0; a < s.axes; a++) {
        s.role[a] = m->sum >> a & 1u ? TWIN_SUM : TWIN_WHOLE;
        s.depth[a] = 0;
    }
    for (int d = 0; d < s.rank; d++)
        for (int i = 0; i < m->length[d]; i++) s.role[m->list[d][i]] = d, s.depth[m->list[d][i]] = i;
    return s;
}

/* Groups of the devices that differ along these axes only, in their order. Returns the members of one. */
static int groups_along(const graph *g, const int *axis, int axes, int *chips)
{
    const int members = parts_of(g, axis, axes);
    int count = 0;
    for (int first = 0; first < mesh.devices; first++) {
        bool leads = true;
        for (int i = 0; i < axes; i++) leads = leads && twin_coordinate(&g->like, first, axis[i]) == 0;
        for (int m = 0; leads && m < members; m++) {
            int device = first, rest = m;
            for (int i = axes - 1; i >= 0; i--) {
                int stride = 1;
                for (int a = axis[i] + 1; a < g->like.axes; a++) stride *= g->like.size[a];
                device += rest % g->like.size[axis[i]] * stride;
                rest /= g->like.size[axis[i]];
            }
            chips[count++] = trn_mesh_chip(&mesh, device);
        }
    }
    return members;
}

/* To whom each device sends: of several that hold the same part, the i-th to the i-th that wants it. */
static void permutation(const graph *g, const twin_sharding *x, const twin_sharding *y, int *to)
{
    for (int i = 0; i < mesh.devices; i++) {
        int turn = 0, seen = 0;
        for (int way = 0; way < 2; way++)
            for (int j = 0; j < (way ? mesh.devices : i); j++) {
                bool same = true;
                for (int d = 0; d < x->rank; d++) {
                    int parts;
                    same = same && twin_part(way ? y : x, d, j, &parts) == twin_part(x, d, i, &parts);
                }
                for (int a = 0; a < x->axes; a++)
                    if (x->role[a] == TWIN_SUM && twin_coordinate(x, i, a) != twin_coordinate(x, j, a)) same = false;
                if (!same) continue;
                if (!way)
                    turn++;
                else if (seen++ == turn)
                    to[i] = j == i ? -1 : j;
            }
    }
    (void)g;
}

static double price(const graph *g, trn_collective op, int64_t bytes, const int *axis, int axes, const int *targets)
{
    int chips[DEVICES];
    trn_cost cost;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = &net;
    a.op = op;
    a.bytes = bytes;
    a.chips = chips;
    if (bytes == 0) return 0;
    if (targets)
        for (int i = 0; i < mesh.devices; i++) chips[i] = trn_mesh_chip(&mesh, i);
    a.count = targets ? mesh.devices : groups_along(g, axis, axes, chips);
    a.groups = mesh.devices / a.count;
    a.targets = targets;
    return trn_collective_cost(&a, &cost) ? -1 : cost.time_s;
}

/* Sums differ, or dimensions lose or gain axes at their inner ends: what one move may do. */
typedef struct change {
    int loses[TWIN_DIMS], gains[TWIN_DIMS]; /* so many axes */
    int losing, gaining, from_dim, to_dim;
    int axis[TWIN_AXES], axes; /* that are taken off, dimension by dimension */
    bool inner;                /* every list is the other's beginning */
} change;

static change change_of(const graph *g, const small *x, const small *y)
{
    change c;
    memset(&c, 0, sizeof c);
    c.inner = true;
    for (int d = 0; d < g->like.rank; d++) {
        const int common = x->length[d] < y->length[d] ? x->length[d] : y->length[d];
        if (!starts(x->list[d], x->length[d], y->list[d], common)) c.inner = false;
        const int coarse = parts_of(g, x->list[d], common);
        if (!c.inner || !nests(g, d, coarse, parts_of(g, x->list[d], x->length[d])) ||
            !nests(g, d, coarse, parts_of(g, y->list[d], y->length[d])))
            c.inner = false;
        c.loses[d] = x->length[d] - common;
        c.gains[d] = y->length[d] - common;
        if (c.loses[d]) c.losing++, c.from_dim = d;
        if (c.gains[d]) c.gaining++, c.to_dim = d;
        for (int i = common; i < x->length[d]; i++) c.axis[c.axes++] = x->list[d][i];
    }
    return c;
}

static bool same_lists(const small *x, const small *y, int rank)
{
    for (int d = 0; d < rank; d++)
        if (x->length[d] != y->length[d] || !starts(x->list[d], x->length[d], y->list[d], y->length[d])) return false;
    return true;
}

static bool same_parts(const graph *g, const small *x, const small *y)
{
    for (int d = 0; d < g->like.rank; d++)
        if (parts_of(g, x->list[d], x->length[d]) != parts_of(g, y->list[d], y->length[d])) return false;
    return true;
}

static void cheaper(double *best, double time_s)
{
    if (time_s >= 0 && (*best < 0 || time_s < *best)) *best = time_s;
}

/* Sums stay as they are. */
static double move_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding a = twin_of_small(g, x), b = twin_of_small(g, y);
    const change c = change_of(g, x, y);
    const int64_t members = parts_of(g, c.axis, c.axes);
    double best = -1;
    if (c.inner && !c.losing && c.gaining == 1) cheaper(&best, 0);
    if (c.inner && c.losing && !c.gaining)
        cheaper(&best, price(g, TRN_ALL_GATHER, bytes * members * most_held(&a), c.axis, c.axes, NULL));
    if (c.inner && c.losing == 1 && c.gaining == 1 && c.from_dim != c.to_dim && c.gains[c.to_dim] == c.axes &&
        memcmp(y->list[c.to_dim] + y->length[c.to_dim] - c.axes, c.axis, sizeof c.axis[0] * (size_t)c.axes) == 0) {
        unsigned set = 0;
        for (int i = 0; i < c.axes; i++) set |= 1u << c.axis[i];
        cheaper(&best, price(g, TRN_ALL_TO_ALL, bytes * members * most_shared(&a, &b, set), c.axis, c.axes, NULL));
    }
    if (same_parts(g, x, y)) {
        int to[DEVICES] = { 0 };
        permutation(g, &a, &b, to);
        cheaper(&best, price(g, TRN_PERMUTE, bytes * most_held(&a), NULL, 0, to));
    }
    return best;
}

static double close_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding a = twin_of_small(g, x), b = twin_of_small(g, y);
    const unsigned closed = x->sum & ~y->sum;
    const change c = change_of(g, x, y);
    int axis[TWIN_AXES], axes = 0;
    for (int i = 0; i < g->like.axes; i++)
        if (closed >> i & 1u) axis[axes++] = i;
    if (closed & ~g->closes) return -1;
    if (same_lists(x, y, g->like.rank)) return price(g, TRN_ALL_REDUCE, bytes * most_held(&a), axis, axes, NULL);
    if (!c.inner || c.losing || c.gaining != 1 || c.gains[c.to_dim] != axes) return -1;
    const int *put = y->list[c.to_dim] + y->length[c.to_dim] - axes;
    for (int i = 0; i < axes; i++)
        if (!(closed >> put[i] & 1u)) return -1;
    return price(g, TRN_REDUCE_SCATTER, bytes * parts_of(g, put, axes) * most_held(&b), put, axes, NULL);
}

/* One axis: everywhere the same before, or the innermost of a dimension. */
static double open_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding b = twin_of_small(g, y);
    const unsigned opened = y->sum & ~x->sum;
    const change c = change_of(g, x, y);
    if ((opened & (opened - 1)) || (opened & ~g->opens) || !c.inner || c.gaining || c.axes > 1) return -1;
    if (c.axes == 1 && opened != 1u << c.axis[0]) return -1;
    if (c.axes == 0 && (opened & x->cut)) return -1;
    return net.hbm_bytes_per_s > 0 ? (double)(bytes * most_held(&b)) / net.hbm_bytes_per_s : 0;
}

static double edge(const graph *g, const small *x, const small *y)
{
    const int64_t bytes = (int64_t)bytes_of(g->args->global.format);
    if (x->sum == y->sum) return move_time(g, x, y, bytes);
    if ((x->sum & y->sum) == y->sum) return close_time(g, x, y, bytes);
    if ((x->sum & y->sum) == x->sum) return open_time(g, x, y, bytes);
    return -1;
}

static int nearest(const graph *g)
{
    int best = -1;
    for (int i = 0; i < g->states; i++)
        if (!g->done[i] && g->time_s[i] >= 0 && (best < 0 || g->time_s[i] < g->time_s[best])) best = i;
    return best;
}

static bool same_state(const small *x, const small *y, int rank) { return x->sum == y->sum && same_lists(x, y, rank); }

static double least_time(graph *g, const small *from, const small *to)
{
    for (int i = 0; i < g->states; i++)
        if (same_state(&g->state[i], from, g->like.rank)) g->time_s[i] = 0;
    for (int at; (at = nearest(g)) >= 0;) {
        if (same_state(&g->state[at], to, g->like.rank)) return g->time_s[at];
        g->done[at] = true;
        for (int i = 0; i < g->states; i++) {
            const double more = g->done[i] ? -1 : edge(g, &g->state[at], &g->state[i]);
            if (more >= 0) cheaper(&g->time_s[i], g->time_s[at] + more);
        }
    }
    return -1;
}

static void check_least(const trn_redistribute_args *args, const trn_reshard_plan *plan, const twin_sharding *from,
                        const twin_sharding *to)
{
    static graph g;
    small none;
    const small x = small_of(from), y = small_of(to);
    int big = 0;
    for (int a = 0; a < from->axes; a++) big += from->size[a] > 1;
    if (big > SMALL_AXES || from->rank > SMALL_RANK) return;
    memset(&g, 0, sizeof g);
    memset(&none, 0, sizeof none);
    none.axes = from->axes;
    g.args = args;
    g.like = *from;
    g.opens = y.sum & ~x.sum;
    g.closes = x.sum & ~y.sum;
    g.stays = x.sum & y.sum;
    all_states(&g, none, 0);
    assert(g.states < STATES);
    const double least = least_time(&g, &x, &y);
    compared++;
    if (least < 0) say("a plan was found where there is no way", args);
    if (plan->time_s > least * (1 + 1e-7) + 1e-30) say("there is a cheaper way than the plan's", args);
    if (plan->time_s < least * (1 - 1e-7)) say("the plan's way is none, or costs more", args);
}

/* ---- what is illegal ---- */

static void spoil(trn_redistribute_args *args)
{
    trn_tensor *const view = one_in(2) ? &src[below(mesh.devices)] : &dst[below(mesh.devices)];
    trn_pspec *const spec = one_in(2) ? &args->from : &args->to;
    static const int64_t absurd[] = { -1, INT64_MIN, INT64_MAX, (int64_t)1 << 61, (int64_t)1 << 62 };
    switch (below(12)) {
    case 0: args->global.format = (trn_format)(one_in(2) ? 0 : 77); break;
    case 1: args->global.shape[below(args->global.rank)] = absurd[below(5)]; break;
    case 2: args->global.rank = one_in(2) ? 0 : 7; break;
    case 3: args->algorithm = (trn_algorithm)99; break;
    case 4: args->wire = (trn_format)(one_in(2) ? -3 : (int)TRN_CFP8); break;
    case 5: spec->rank = 1, spec->dim[0].axes = 2, spec->dim[0].axis[0] = spec->dim[0].axis[1] = 0; break;
    case 6: spec->sum |= 1u << 20; break;
    case 7: view->shape[below(args->global.rank)] += 1 + below(3); break;
    case 8: view->format = (trn_format)(view->format == TRN_F16 ? TRN_I16 : TRN_F16); break;
    case 9: args->src = args->dst; break;
    case 10: *(one_in(2) ? &args->src : &args->dst) = NULL; break;
    default: args->rounding = (trn_rounding)44; break;
    }
}

static void check_refusal(trn_redistribute_args *args)
{
    trn_redistribute_args bad = *args;
    const bool empty = trn_tensor_elements(args->global) == 0;
    trn_tensor kept[2][DEVICES];
    trn_reshard_plan plan, untouched;
    memcpy(kept[0], src, sizeof src);
    memcpy(kept[1], dst, sizeof dst);
    memset(&plan, 0x5a, sizeof plan);
    untouched = plan;
    spoil(&bad);
    if (empty && bad.src == bad.dst) bad.dst = NULL; /* empty views share nothing */
    const trn_status status = trn_redistribute(&bad);
    if (status == TRN_OK) say("what is illegal was done", args);
    if (args->error->status != status || strlen(args->error->text) < 8) say("a refusal says nothing", args);
    check_untouched(args);
    args->error->text[0] = 0;
    if (trn_redistribute_plan(&bad, &plan) != TRN_OK &&
        (memcmp(&plan, &untouched, sizeof plan) || strlen(args->error->text) < 8))
        say("a refused plan was written, or says nothing", args);
    memcpy(src, kept[0], sizeof src);
    memcpy(dst, kept[1], sizeof dst);
    refusals++;
}

/* ---- a case ---- */

static void try_case(void)
{
    static const trn_format plain[] = { TRN_F32, TRN_BF16, TRN_F8_E5M2, TRN_I32 }, summed[] = { TRN_F32, TRN_BF16 };
    twin_sharding from, to;
    trn_error error;
    trn_reshard_plan plan;
    const bool sums = one_in(2);
    random_mesh(&from);
    random_shape(&from, 1 + below(one_in(5) ? 5 : 2));
    random_roles(&from, sums);
    to = from;
    random_roles(&to, sums && one_in(2));
    numbers = sums;
    const trn_format format = sums ? summed[below(2)] : plain[below(4)];
    trn_redistribute_args args = args_of(&from, &to, format, &error);
    random_parts(&from, format, source, src);
    random_parts(&to, format, target, dst);
    for (int i = 0; i < mesh.devices; i++) {
        scramble(target[i], ROOM);
        memcpy(want[i], target[i], ROOM);
    }
    if (one_in(3)) check_refusal(&args);
    if (trn_redistribute_plan(&args, &plan)) say(error.text, &args);
    check_steps(&args, &plan, &from);
    check_bound(&args, &plan, &from, &to);
    if (one_in(8)) check_least(&args, &plan, &from, &to);
    check_values(&args, &from, &to);
}

int main(int argc, char **argv)
{
    fuzzing_start(argc, argv, cases_rounds(6000, 200000));
    while (fuzzing_next(&rng)) try_case();
    const long cases = fuzzing_end();
    printf("%ld plans were the cheapest of every way there is; %ld refusals\n", compared, refusals);
    return cases < 1000 || (compared > cases / 50 && refusals > cases / 6) ? 0 : 1;
}

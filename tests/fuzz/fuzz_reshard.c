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
#include "fuzz/reshard_ways.h"

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

/* ---- every way ---- */

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
    fuzzing_start(argc, argv, 6000, 200000);
    while (fuzzing_next(&rng)) try_case();
    const long cases = fuzzing_end();
    printf("%ld plans were the cheapest of every way there is; %ld refusals\n", compared, refusals);
    return cases < 1000 || (compared > cases / 50 && refusals > cases / 6) ? 0 : 1;
}

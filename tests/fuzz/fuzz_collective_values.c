/* fuzz_collective_values.c - collectives that compute, against messages between one buffer for each rank.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_collective_values [count] [seed]   default: 600 collectives, 100000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Networks of all kinds, groups that are boxes or any chips in any order, all operations, algorithms, formats of views,
 * wire and sums, all roundings, any number of random bits, granules, counts, roots and targets; views with gaps,
 * permuted, in place, and sources that lie on each other. Every byte of memory must be what collective_messages.h says:
 * destinations their values, all else what it was; with one thread and with two, whatever the instruction set and the
 * floating-point modes of the caller. What is spoilt in one place must be refused with the right status, and then
 * nothing is written.
 */
#include "fuzz/fail.h"

static uint64_t rng;

#include "fuzz/collective_answer.h"
#include "twin/float_modes.h"

static problem now;
static unsigned char before[ROOM], result[ROOM];

/* ---- the tally ---- */

enum { STATUSES = TRN_EIO + 1 };
static long done[TRN_COLLECTIVE_COUNT][TRN_ALGORITHM_COUNT], refused[STATUSES];

static void print_tally(long cases)
{
    bool all = true;
    printf("%-16s", "");
    for (int k = 0; k < TRN_ALGORITHM_COUNT; k++) printf(" %7.7s", trn_algorithm_name((trn_algorithm)k));
    printf("\n");
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++) {
        printf("%-16s", trn_collective_name((trn_collective)op));
        for (int k = 0; k < TRN_ALGORITHM_COUNT; k++) {
            const bool never = op < TRN_PERMUTE && (k == TRN_POINT_TO_POINT || (k == TRN_KANGARING && op > 2));
            printf(" %7ld", done[op][k]);
            all = all && (done[op][k] > 0) == !never;
        }
        printf("\n");
    }
    printf("refused");
    for (int s = 1; s < STATUSES; s++) printf(" %ld", refused[s]);
    printf("\n");
    const bool every = refused[TRN_EINVAL] && refused[TRN_ESHAPE] && refused[TRN_EFORMAT] && refused[TRN_EUNSUPPORTED];
    if (cases >= 20000 && !(all && every)) fail_msg("not all that is asked here ever came");
}

/* ---- what went wrong ---- */

static void print_group(const problem *p)
{
    static const char wiring[] = "NRFS";
    print_error("levels");
    for (int l = 0; l < p->net.levels; l++)
        print_error(" %c%d", wiring[p->net.level[l].wiring & 3], p->net.level[l].size);
    print_error(", %d chips (", p->count);
    for (int i = 0; i < p->count * p->groups; i++) print_error(i ? i % p->count ? " %d" : "; %d" : "%d", p->chips[i]);
    print_error("), %d ranks each, dimensions", p->cores);
    for (int d = 0; d < p->box.dims; d++) print_error(" %c%d", p->box.dim[d].wired, p->box.dim[d].size);
    print_error("\n");
}

static void describe(const problem *p)
{
    const trn_collective_args *a = &p->a;
    print_error("%s by %s%s of %lld elements, granule %lld, wire %s, sums in %s, rounding %d, overflow %d, %d bits\n",
                trn_collective_name(a->op), trn_algorithm_name(a->algorithm), a->single_step ? " in one step" : "",
                (long long)p->elements, (long long)a->granule, trn_format_name(p->wire), trn_format_name(a->accumulate),
                (int)a->rounding, (int)a->overflow, a->sr_bits);
    print_group(p);
}

/* Whose element the first byte is that is not as it should be. */
static void blame(const problem *p, const char *what)
{
    size_t at = 0;
    while (memory[at] == want[at]) at++;
    describe(p);
    for (int i = 0; i < p->ranks * p->groups; i++) {
        const int64_t n = received(p, i % p->ranks);
        for (int64_t e = 0; e < n; e++) {
            const size_t first = (size_t)(place(&p->dst[i], e) - memory);
            if (at < first || at >= first + bytes_of(p->dst[i].format)) continue;
            fail_msg("%s: dst[%d], %s, element %lld of %lld: byte %02x, expected %02x", what, i,
                     trn_format_name(p->dst[i].format), (long long)e, (long long)n, memory[at], want[at]);
        }
    }
    fail_msg("%s: byte %zu of %zu, which is no destination's: %02x, expected %02x", what, at, used, memory[at],
             want[at]);
}

/* ---- calls ---- */

static trn_status run(problem *p, int threads)
{
    do p->a.isa = one_in(3) ? TRN_ISA_AUTO : all_isas[below(COUNT(all_isas))];
    while (p->a.isa != TRN_ISA_AUTO && !trn_isa_supported(p->a.isa));
    memset(&p->error, 0, sizeof p->error);
    with_threads(threads);
    if (one_in(4)) float_modes_set_all(&float_modes_all[below(FLOAT_MODES)]);
    const trn_status status = trn_collective_run(&p->a);
    float_modes_set_all(NULL);
    return status;
}

static void expect_done(problem *p, int threads)
{
    if (run(p, threads) == TRN_OK) return;
    describe(p);
    fail_msg("refused: %s", p->error.text);
}

static void expect_refusal(problem *p, trn_status expected, const char *what)
{
    const trn_status status = run(p, 1 + below(2));
    if (status != expected) {
        describe(p);
        fail_msg("%s: status %d, expected %d: %s", what, (int)status, (int)expected, p->error.text);
    }
    if (p->error.status != status || strlen(p->error.text) < 8) fail_msg("%s: '%s'", what, p->error.text);
    memcpy(want, before, used + 64);
    if (memcmp(memory, want, used + 64) != 0) blame(p, what);
    refused[status]++;
}

/* ---- one thing spoilt ---- */

/* A view that is looked at; NULL if the one drawn is not. */
static trn_tensor *some_view(problem *p)
{
    const int i = below(p->ranks * p->groups);
    const bool output = one_in(2);
    return (output ? received(p, i % p->ranks) : given(p, i % p->ranks)) < 0 ? NULL : output ? &p->dst[i] : &p->src[i];
}

static trn_status spoil_number(problem *p)
{
    trn_collective_args *a = &p->a;
    switch (below(14)) {
    case 0: return a->wire = TRN_CFP8, TRN_EFORMAT;
    case 1: return a->accumulate = one_in(2) ? TRN_CFP8 : (trn_format)99, TRN_EFORMAT;
    case 2: return a->rounding = (trn_rounding)TRN_ROUNDING_COUNT, TRN_EINVAL;
    case 3: return a->sr_bits = one_in(2) ? 33 : -1, TRN_EINVAL;
    case 4: return a->overflow = (trn_overflow)2, TRN_EINVAL;
    case 5: return a->granule = -1 - below(9), TRN_EINVAL;
    case 6: return a->op = one_in(2) ? TRN_COLLECTIVE_COUNT : (trn_collective)-1, TRN_EINVAL;
    case 7: return a->algorithm = TRN_ALGORITHM_COUNT, TRN_EINVAL;
    case 8: return a->root = one_in(2) ? p->ranks : -1, TRN_EINVAL;
    case 9: return a->target = one_in(2) ? p->ranks : -1, TRN_EINVAL;
    case 10: return a->net = NULL, TRN_EINVAL;
    case 11: return a->ranks_per_chip = one_in(2) ? 65 : -1, TRN_EINVAL;
    case 12: return a->bytes = -1, TRN_EINVAL;
    default: return a->algorithm = TRN_RING, a->single_step = true, TRN_EINVAL;
    }
}

static trn_status spoil_roles(problem *p)
{
    trn_collective_args *a = &p->a;
    const int i = below(p->ranks), j = below(p->ranks);
    if (a->chips && one_in(2)) return p->chips[below(p->count)] = one_in(2) ? p->net.chips : -1, TRN_EINVAL;
    if (a->chips && p->count > 1) return p->chips[0] = p->chips[p->count * p->groups - 1], TRN_EINVAL;
    if (a->op == TRN_ALL_TO_ALL && a->counts) return p->counts[i * p->ranks + j] = -1, TRN_EINVAL;
    if (a->op != TRN_PERMUTE || !a->targets) return TRN_OK;
    if (i == j || p->targets[i] < 0 || one_in(2)) return p->targets[j] = p->ranks, TRN_EINVAL;
    return p->targets[j] = p->targets[i], TRN_EINVAL;
}

static trn_status spoil_views(problem *p)
{
    trn_tensor *t = some_view(p), *other = some_view(p);
    if (one_in(8)) return *(one_in(2) ? &p->a.src : &p->a.dst) = NULL, TRN_EINVAL;
    if (!t) return TRN_OK;
    switch (below(5)) {
    case 0: return t->format = one_in(2) ? TRN_FORMAT_UNSET : (trn_format)99, TRN_EFORMAT;
    case 1: return t->rank = one_in(2) ? 0 : TRN_MAX_RANK + 1, TRN_ESHAPE;
    case 2: return t->stride[0] = -1, TRN_ESHAPE;
    case 3: {
        const int64_t n = trn_tensor_elements(*t);
        t->shape[0]++;
        return t->data && trn_tensor_elements(*t) != n ? TRN_ESHAPE : TRN_OK;
    }
    default: break;
    }
    const bool meet = other && t != other && t->data && other->data && t - p->dst != other - p->src &&
                      trn_tensor_elements(*t) > 0 && trn_tensor_elements(*other) > 0 && t >= p->dst &&
                      t < p->dst + VIEWS;
    return meet ? (t->data = other->data, TRN_EINVAL) : TRN_OK;
}

/* Nothing else is wrong with it. */
static void try_spoilt(const problem *p)
{
    static problem bad;
    static const char *const kind[] = { "a spoilt number", "a spoilt role", "a spoilt view" };
    static trn_status (*const spoil[])(problem *) = { spoil_number, spoil_roles, spoil_views };
    const int k = below(3);
    bad = *p;
    bad.a.net = &bad.net;
    bad.a.error = &bad.error;
    bad.a.src = bad.src;
    bad.a.dst = bad.dst;
    if (bad.a.chips) bad.a.chips = bad.chips;
    if (bad.a.targets) bad.a.targets = bad.targets;
    if (bad.a.counts) bad.a.counts = bad.counts;
    const trn_status expected = spoil[k](&bad);
    if (expected != TRN_OK) expect_refusal(&bad, expected, kind[k]);
}

/* ---- one collective ---- */

/* Is the result what one of the schedules makes of what memory was, and still is? */
static void check_values(const problem *p)
{
    static coll_plan plan[MOST_PLANS];
    const int plans = plans_of(p, plan);
    for (int k = 0; k < plans; k++) {
        memcpy(want, before, used + 64);
        answer(p, &plan[k]);
        if (memcmp(result, want, used + 64) == 0) return;
    }
    memcpy(memory, result, used + 64);
    blame(p, plans > 1 ? "the last of the schedules" : "values");
}

static void one_case(problem *p)
{
    draw_problem(p);
    lay_out(p);
    memcpy(before, memory, used + 64);
    const bool named = p->a.op < TRN_PERMUTE && p->a.algorithm != TRN_ALGORITHM_AUTO;
    if (given(p, first_sender(p)) < 0) {
        expect_refusal(p, TRN_EINVAL, "nobody sends");
        return;
    }
    if (named && !fits(p, p->a.algorithm)) {
        expect_refusal(p, TRN_EUNSUPPORTED, "an algorithm that does not fit");
        return;
    }
    if (one_in(3)) try_spoilt(p);
    expect_done(p, 1);
    memcpy(result, memory, used + 64);
    memcpy(memory, before, used + 64);
    check_values(p);
    memcpy(want, result, used + 64);
    expect_done(p, 2);
    if (memcmp(memory, want, used + 64) != 0) blame(p, "two threads");
    done[p->a.op][p->a.algorithm]++;
}

int main(int argc, char **argv)
{
    fuzzing_start(argc, argv, 600, 100000);
    while (fuzzing_next(&rng)) one_case(&now);
    print_tally(fuzzing_end());
    return 0;
}

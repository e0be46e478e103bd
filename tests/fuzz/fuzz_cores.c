/* fuzz_cores.c - random programs on many cores: legal ones give what loops over all ranks give, whatever the host's
 * threads; illegal ones end, with one sentence, the same each time.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_cores [count] [seed]        default: 150 programs, 5000 with TRN_TEST_LEVEL=2; seed 1
 *
 * A program is a list of steps that all ranks take: work of different length, barriers, sendrecvs, collectives of whole
 * numbers (whose sums are exact in any order) over random lists. Its twin keeps the values of every rank in plain
 * arrays. Some programs break a rule: a rank leaves, leaves a step out, asks something else, gives another shape or
 * other lists, or uses shared memory out of order. A second run with another number of threads has the same bits, times
 * and sentences.
 */
#define _DEFAULT_SOURCE 1

#include <math.h>

#include "fuzz/fail.h"
#include "trnmath/trn_cores.h"

enum { MOST = 24, STEPS = 10, WIDE = 8, KINDS = 12 };

enum kind {
    WORK,
    BARRIER,
    SENDRECV,
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    GATHER_V,
    TO_ALL_V,
    PERMUTE,
    RING,
    SHARED
};

/* What one rank does wrong, at one step. */
enum wrong { RIGHT, LEAVES, SKIPS, OTHER_KIND, OTHER_SHAPE, OTHER_LIST, UNWRITTEN, UNORDERED, WRONGS };

typedef struct step {
    enum kind kind;
    trn_alu op;
    int lists[MOST], count, groups;
    int pairs[MOST][2], pair_count;
    int channel, work[MOST];
    uint32_t table[MOST][2][MOST];
} step;

static struct program {
    int ranks, lnc, per_chip, steps;
    trn_generation generation;
    enum wrong wrong;
    int culprit, when;
    step step[STEPS];
} now;

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }
static long done[KINDS], refused[WRONGS];

/* Of each rank: `value` in HBM, of ids x WIDE numbers, which steps replace. */
typedef struct memory {
    float value[MOST * WIDE], got[MOST * WIDE];
    uint32_t table[2][MOST];
} memory;

typedef struct outcome {
    memory rank[MOST];
    double time_s[MOST];
    trn_status status;
    char text[256];
} outcome;

static outcome first, second;
static float twin[MOST][MOST * WIDE];

/* ---- a program ---- */

static void some_lists(step *s, int ids)
{
    int order[MOST];
    for (int i = 0; i < ids; i++) order[i] = i;
    const int each = now.per_chip / now.lnc, chips = ids / each;
    int size = 1 + below(ids), whole = one_in(2);
    while (ids % size || (whole && size % each)) size = 1 + below(ids);
    if (!whole) size = 1 + below(chips); /* one core of each chip */
    while (!whole && chips % size) size = 1 + below(chips);
    s->count = size;
    s->groups = ids / size;
    for (int g = 0; g < s->groups; g++)
        for (int i = 0; i < size; i++)
            s->lists[g * size + i] = whole ? g * size + i : (g / each * size + i) * each + g % each;
    if (one_in(4)) s->groups = 1, s->count = ids, memcpy(s->lists, order, sizeof order);
}

static void some_step(step *s)
{
    const int ids = now.ranks / now.lnc;
    memset(s, 0, sizeof *s);
    s->kind = (enum kind)below(KINDS);
    if (now.lnc == 1 && s->kind == SENDRECV) s->kind = ALL_REDUCE;
    s->op = one_in(2) ? TRN_ALU_ADD : one_in(2) ? TRN_ALU_MAXIMUM : TRN_ALU_MINIMUM;
    some_lists(s, ids);
    if (s->kind == PERMUTE) {
        const int shift = below(ids);
        s->pair_count = 1 + below(ids);
        for (int i = 0; i < s->pair_count; i++)
            s->pairs[i][0] = i, s->pairs[i][1] = (i * (ids > 1 ? 1 : 0) + shift) % ids;
    }
    s->channel = below(4);
    for (int r = 0; r < now.ranks; r++) {
        s->work[r] = below(6);
        for (int i = 0; i < ids; i++)
            s->table[r][0][i] = (uint32_t)below(WIDE + 1), s->table[r][1][i] = (uint32_t)below(WIDE);
    }
}

static void some_program(void)
{
    static const int per_chip[] = { 1, 2, 4, 8 };
    memset(&now, 0, sizeof now);
    now.lnc = 1 + below(2);
    now.per_chip = per_chip[below(4)];
    if (now.per_chip < now.lnc) now.per_chip = now.lnc;
    now.ranks = now.per_chip * (1 + below(MOST / now.per_chip));
    now.generation = one_in(2) ? TRN_TRAINIUM2 : TRN_TRAINIUM3;
    now.steps = 1 + below(STEPS);
    for (int i = 0; i < now.steps; i++) some_step(&now.step[i]);
    now.wrong = one_in(2) ? (enum wrong)below(WRONGS) : RIGHT;
    now.culprit = below(now.ranks);
    now.when = below(now.steps);
    if (now.wrong >= UNWRITTEN && now.lnc == 1) now.wrong = LEAVES;
    if (now.wrong == UNWRITTEN) now.step[now.when].kind = SENDRECV;
    if (now.wrong == UNORDERED) now.step[now.when].kind = SHARED;
}

/* ---- on the cores ---- */

static trn_tensor hbm(trn_core *core, const char *name, float *at, int64_t rows)
{
    return trn_core_hbm(core, name, trn_tensor_2d(TRN_F32, at, rows, WIDE));
}

static void do_work(trn_cores_rank *self, int times, trn_tensor tile)
{
    const trn_memset_args set = { .dst = tile, .value = 1 };
    for (int i = 0; i < times; i++) trn_core_memset(&self->core, &set);
}

static void do_sendrecv(trn_cores_rank *self, const step *s, trn_tensor value, bool raw)
{
    trn_core *core = &self->core;
    const size_t mark = trn_core_mark(core);
    const trn_tensor mine = trn_core_sbuf(core, "mine", TRN_F32, 1, WIDE);
    const trn_tensor theirs = trn_core_sbuf(core, "theirs", TRN_F32, 1, WIDE), row = trn_tensor_slice(value, 0, 0, 1);
    const trn_dma_copy_args load = { .dst = mine, .src = row }, store = { .dst = row, .src = theirs };
    trn_cores_sendrecv_args a = { .dst = theirs,
                                  .src = mine,
                                  .send_to_rank = 1 - self->program_id,
                                  .recv_from_rank = 1 - self->program_id,
                                  .pipe_id = s->channel };
    if (!raw) trn_core_dma_copy(core, &load);
    trn_cores_sendrecv(self, &a);
    trn_core_dma_copy(core, &store);
    trn_core_release(core, mark);
}

/* Each core of a logical core writes its row of a shared tensor, and takes the other's. */
static void do_shared(trn_cores_rank *self, trn_tensor value, bool ordered)
{
    const int64_t shape[] = { 2, WIDE };
    trn_core *core = &self->core;
    const trn_tensor both = trn_cores_hbm(self, "both", TRN_F32, 2, shape);
    const trn_tensor row = trn_tensor_slice(value, 0, 0, 1);
    const trn_dma_copy_args put = { .dst = trn_tensor_slice(both, 0, self->program_id, 1), .src = row };
    const trn_dma_copy_args take = { .dst = row,
                                     .src = trn_tensor_slice(both, 0, self->programs - 1 - self->program_id, 1) };
    const trn_cores_barrier_args wait = { .data = both };
    if (!both.rank) return;
    trn_core_dma_copy(core, &put);
    if (ordered) trn_cores_barrier(self, &wait);
    trn_core_dma_copy(core, &take);
    if (ordered) trn_cores_barrier(self, &wait); /* or the next one to write it would not wait */
}

typedef trn_status collective(trn_cores_rank *, const trn_cores_collective_args *);

static void do_collective(trn_cores_rank *self, const step *s, memory *m, enum wrong wrong)
{
    static collective *const call[KINDS] = {
        [ALL_REDUCE] = trn_cores_all_reduce,         [ALL_GATHER] = trn_cores_all_gather,
        [REDUCE_SCATTER] = trn_cores_reduce_scatter, [ALL_TO_ALL] = trn_cores_all_to_all,
        [GATHER_V] = trn_cores_all_gather_v,         [TO_ALL_V] = trn_cores_all_to_all_v,
        [PERMUTE] = trn_cores_collective_permute,    [RING] = trn_cores_collective_permute_implicit,
    };
    trn_core *core = &self->core;
    const trn_tensor value = hbm(core, "value", m->value, self->rank_ids),
                     got = hbm(core, "got", m->got, self->rank_ids);
    const int n = s->count;
    const bool small_src = s->kind == ALL_GATHER, small_dst = s->kind == REDUCE_SCATTER;
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.replica_group.rank = s->lists;
    a.replica_group.count = n;
    a.replica_group.groups = s->groups;
    a.src = trn_tensor_slice(value, 0, 0, small_src ? 1 : n);
    a.dst = trn_tensor_slice(got, 0, 0, small_dst ? 1 : n);
    a.op = s->kind == ALL_REDUCE || s->kind == REDUCE_SCATTER ? s->op : TRN_ALU_BYPASS;
    if (s->kind >= ALL_TO_ALL) a.op = TRN_ALU_ADD;
    if (s->kind == ALL_GATHER) a.op = TRN_ALU_ADD;
    if (s->kind == GATHER_V || s->kind == TO_ALL_V) {
        memcpy(m->table, s->table[self->rank], sizeof m->table);
        const trn_tensor table = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, m->table, 2, MOST));
        a.metadata = trn_tensor_slice(table, 1, 0, n);
        if (s->kind == TO_ALL_V && n == 1) m->table[1][0] = 0;
        for (int i = 0; i < n; i++) /* within src */
            if (m->table[0][i] + m->table[1][i] > (uint32_t)(n * WIDE)) m->table[1][i] = 0;
    }
    a.source_target_pairs = s->kind == PERMUTE ? s->pairs : NULL;
    a.pairs = s->pair_count;
    a.channel_ids = s->kind == RING ? &s->channel : NULL;
    if (wrong == OTHER_SHAPE) {
        a.src = trn_tensor_slice(a.src, 1, 0, WIDE - 1);
        a.dst = trn_tensor_slice(a.dst, 1, 0, WIDE - 1);
    }
    if (wrong == OTHER_LIST) a.replica_group.rank = NULL;
    if (wrong == OTHER_LIST && s->count == self->rank_ids) a.replica_group.count = -1, a.replica_group.rank = s->lists;
    for (int i = 0; i < MOST * WIDE; i++) m->got[i] = -1;
    if (call[s->kind](self, &a)) return;
    const trn_dma_copy_args keep = { .dst = value, .src = got };
    trn_core_dma_copy(core, &keep);
}

static trn_status kernel(trn_cores_rank *self, void *user)
{
    outcome *o = (outcome *)user;
    memory *m = &o->rank[self->rank];
    trn_core *core = &self->core;
    const trn_tensor value = hbm(core, "value", m->value, self->rank_ids);
    const trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, 128, 64);
    for (int i = 0; i < now.steps; i++) {
        const step *s = &now.step[i];
        enum wrong wrong = self->rank == now.culprit && i == now.when ? now.wrong : RIGHT;
        enum kind kind = s->kind;
        const trn_cores_barrier_args all = { .all = true };
        if (wrong == LEAVES) return TRN_OK;
        if (wrong == SKIPS) continue;
        if (wrong == OTHER_KIND) kind = kind == BARRIER ? ALL_REDUCE : BARRIER;
        do_work(self, s->work[self->rank], tile);
        step other = *s;
        other.kind = kind;
        if (kind == BARRIER)
            trn_cores_barrier(self, &all);
        else if (kind == SENDRECV)
            do_sendrecv(self, s, value, wrong == UNWRITTEN);
        else if (kind == SHARED)
            do_shared(self, value, now.wrong != UNORDERED || i != now.when);
        else if (kind != WORK)
            do_collective(self, &other, m, wrong);
    }
    return TRN_OK;
}

static void run(outcome *o, int threads)
{
    static trn_cores cores;
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = now.generation;
    args.ranks = now.ranks;
    args.lnc = now.lnc;
    args.cores_per_chip = now.per_chip;
    args.threads = threads;
    memset(o, 0, sizeof *o);
    for (int r = 0; r < now.ranks; r++)
        for (int i = 0; i < MOST * WIDE; i++) o->rank[r].value[i] = (float)((r * 37 + i * 11) % 64);
    if (trn_cores_begin(&cores, &args)) fail_msg("begin: %s", cores.failure.text);
    o->status = trn_cores_run(&cores, kernel, o);
    memcpy(o->text, cores.failure.text, sizeof o->text);
    for (int r = 0; r < now.ranks; r++) o->time_s[r] = cores.rank[r].core.time_s;
    trn_cores_end(&cores);
}

/* ---- the twin ---- */

static int place_in(const step *s, int id)
{
    int at = 0;
    while (at < s->count * s->groups && s->lists[at] != id) at++;
    return at;
}

/* What member `from` sends to member `to` of a list. */
static uint32_t table_of(const step *s, int rank, int row, int to, int n)
{
    const int column = s->kind == GATHER_V ? 0 : to;
    uint32_t count = s->table[rank][0][column], at = s->table[rank][1][column];
    if (s->kind == TO_ALL_V && n == 1) at = 0;
    if (count + at > (uint32_t)(n * WIDE)) at = 0;
    return row ? at : count;
}

static float one_of(const step *s, float old[MOST][MOST * WIDE], int rank, int i)
{
    const int ids = now.ranks / now.lnc, id = rank / now.lnc, program = rank % now.lnc, at = place_in(s, id);
    const int n = s->count, list = at / n * n, me = at % n;
#define OF(member) old[s->lists[list + (member)] * now.lnc + program]
    float sum = 0;
    const int from_i = s->kind == REDUCE_SCATTER ? me * WIDE + i : i;
    switch (s->kind) {
    case ALL_REDUCE:
    case REDUCE_SCATTER:
        if (i >= (s->kind == ALL_REDUCE ? n : 1) * WIDE) return -1;
        for (int k = 0; k < n; k++) {
            const float x = OF(k)[from_i];
            sum = !k ? x : s->op == TRN_ALU_ADD ? sum + x : s->op == TRN_ALU_MAXIMUM ? fmaxf(sum, x) : fminf(sum, x);
        }
        return sum;
    case ALL_GATHER: return i < n * WIDE ? OF(i / WIDE)[i % WIDE] : -1;
    case ALL_TO_ALL: return i < n * WIDE ? OF(i / WIDE)[me * WIDE + i % WIDE] : -1;
    case GATHER_V:
    case TO_ALL_V: {
        if (i >= n * WIDE) return -1;
        const int sender = s->lists[list + i / WIDE] * now.lnc + program;
        const uint32_t count = table_of(s, sender, 0, me, n), first_one = table_of(s, sender, 1, me, n);
        return (uint32_t)(i % WIDE) < count ? old[sender][first_one + (uint32_t)(i % WIDE)] : -1;
    }
    case PERMUTE:
        for (int k = 0; k < s->pair_count; k++)
            if (s->pairs[k][1] == id) return i < n * WIDE ? old[s->pairs[k][0] * now.lnc + program][i] : -1;
        return -1;
    case RING: return i < n * WIDE ? OF((me + (s->channel % 2 ? 1 : n - 1)) % n)[i] : -1;
    case SENDRECV:
    case SHARED: return i < WIDE ? old[rank + (now.lnc == 1 ? 0 : rank % 2 ? -1 : 1)][i] : old[rank][i];
    default: return old[rank][i];
    }
#undef OF
    (void)ids;
}

static void take(const step *s)
{
    static float old[MOST][MOST * WIDE];
    const int ids = now.ranks / now.lnc;
    memcpy(old, twin, sizeof old);
    for (int r = 0; r < now.ranks; r++)
        for (int i = 0; i < ids * WIDE; i++) twin[r][i] = one_of(s, old, r, i);
}

static void compare(void)
{
    for (int r = 0; r < now.ranks; r++)
        for (int i = 0; i < MOST * WIDE; i++) twin[r][i] = (float)((r * 37 + i * 11) % 64);
    for (int i = 0; i < now.steps; i++) take(&now.step[i]);
    for (int r = 0; r < now.ranks; r++)
        for (int i = 0; i < now.ranks / now.lnc * WIDE; i++)
            if (memcmp(&first.rank[r].value[i], &twin[r][i], sizeof(float)) != 0)
                fail_msg("rank %d of %d, [%d] is %g, expected %g", r, now.ranks, i, (double)first.rank[r].value[i],
                         (double)twin[r][i]);
}

/* ---- a case ---- */

/* Larger sums would not be whole numbers of binary32 any more. */
static bool sums_too_much(void)
{
    double most = 64;
    for (int i = 0; i < now.steps; i++)
        if (now.step[i].kind == ALL_REDUCE || now.step[i].kind == REDUCE_SCATTER) most *= MOST;
    return most > 1 << 23;
}

static void run_program(void)
{
    do some_program();
    while (sums_too_much());
    run(&first, 1);
    bool shares = false; /* what races does so on the host's threads, too */
    for (int i = 0; i < now.steps; i++) shares = shares || now.step[i].kind == SHARED;
    run(&second, now.wrong && shares ? 1 : 2 + below(3));
    if (memcmp(&first, &second, sizeof first) != 0)
        fail_msg("another run has other results: '%s', '%s'", first.text, second.text);
    for (int r = 0; r < now.ranks; r++)
        if (!isfinite(first.time_s[r]) || first.time_s[r] < 0) fail_msg("rank %d has no time", r);
    if (!now.wrong) {
        if (first.status) fail_msg("a legal program: %s", first.text);
        compare();
        for (int i = 0; i < now.steps; i++) done[now.step[i].kind]++;
    } else if (first.status) {
        refused[now.wrong]++;
        if (strlen(first.text) < 20) fail_msg("no sentence: '%s'", first.text);
    }
}

int main(int argc, char **argv)
{
    fuzzing_start(argc, argv, 60, 5000);
    while (fuzzing_next(&rng)) run_program();
    const long count = fuzzing_end();
    bool all = true;
    for (int k = 0; k < KINDS; k++) {
        printf("kind %d: %ld done\n", k, done[k]);
        all = all && done[k];
    }
    for (int k = 1; k < WRONGS; k++) {
        printf("wrong %d: %ld refused\n", k, refused[k]);
        all = all && refused[k];
    }
    return all || count < 1000 ? 0 : 1; /* some wrongs are rare */
}

/* chakra_write.c - the best plan's step as execution traces: one file for each rank, and its process groups.
 * SPDX-License-Identifier: MIT
 *
 * A rank is a chip. Its operations are those that a plan's time is added up from (trn_plan_operations), layer by layer
 * and microbatch by microbatch, in the order of 1F1B. One chain of nodes is what waits for each other; communication
 * that the plan has beside work waits for the pass to begin, and the next pass waits for it. Of dp's buckets one waits,
 * and the others are beside, as the plan counts them. The ends of the model lie on the first and the last stage.
 * duration_micros, model_ideal_s and model_expected_s are what the model says, and the metadata says so.
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/files.h"
#include "io/chakra.h"
#include "io/stage.h"

enum { OPERATIONS = 256, MASKS = 1 << TRN_AXIS_COUNT, RANKS = 64 };
#define NODES 50000000.0 /* in all files */

/* The phases of the plan, each asked once. */
typedef struct phase {
    trn_plan_operation list[OPERATIONS];
    int64_t count;
} phase;

/* All groups of some axes. */
typedef struct groups {
    int *chips; /* [groups][count]; NULL: not asked for yet */
    int *of;    /* [chips] the group that has the chip */
    int count, groups;
    int first; /* of their names, which are numbers */
} groups;

typedef struct writer {
    const sp_job *job;
    const trn_plan *plan;
    trn_model model; /* settled */
    phase phase[TRN_PHASE_COUNT];
    groups group[MASKS];
    int named; /* groups so far */
    FILE *out;
    int rank, stage;
    uint64_t next;       /* id */
    int64_t waits[3];    /* what the next node of the chain waits for; -1: nothing */
    int64_t begin, side; /* the end of the chain before this pass; the last node beside it; -1: none */
    double micros;       /* of the expected time that is not in a duration yet */
} writer;

static io_stage stage;

/* ---- messages ---- */

static void put(FILE *out, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    unsigned char *bytes = app_memory(size, 1);
    size_t n = size;
    for (; n > 127; n >>= 7) fputc((int)(n & 127) | 128, out);
    fputc((int)n, out);
    protobuf_c_message_pack(message, bytes);
    fwrite(bytes, 1, size, out);
    free(bytes);
}

enum { ATTRIBUTES = 8 };

typedef struct message {
    Chakra__Node node;
    Chakra__Attribute attr[ATTRIBUTES], *list[ATTRIBUTES];
    uint64_t deps[4];
} message;

static Chakra__Attribute *attribute(message *m, const char *name, int kind)
{
    Chakra__Attribute *a = &m->attr[m->node.n_attr];
    chakra__attribute__init(a);
    a->name = (char *)(uintptr_t)name;
    a->value_case = (Chakra__Attribute__ValueCase)kind;
    m->list[m->node.n_attr++] = a;
    return a;
}

static void add_int64(message *m, const char *name, double value)
{
    attribute(m, name, CHAKRA__ATTRIBUTE__VALUE_INT64)->int64 = (int64_t)ceil(value);
}

static void add_int32(message *m, const char *name, int value)
{
    attribute(m, name, CHAKRA__ATTRIBUTE__VALUE_INT32)->int32 = value;
}

static void start(writer *w, message *m, chakra_type type, const char *name)
{
    memset(m, 0, sizeof *m);
    chakra__node__init(&m->node);
    m->node.id = w->next++;
    m->node.name = (char *)(uintptr_t)name;
    m->node.type = (int32_t)type;
    m->node.attr = m->list;
    m->node.data_deps = m->deps;
    attribute(m, "is_cpu_op", CHAKRA__ATTRIBUTE__VALUE_FLAG)->flag = false;
}

static void wait_for(message *m, int64_t id)
{
    for (size_t i = 0; i < m->node.n_data_deps; i++)
        if (m->deps[i] == (uint64_t)id) return;
    if (id >= 0) m->deps[m->node.n_data_deps++] = (uint64_t)id;
}

/* A node of the chain, or one beside it. */
static void finish(writer *w, message *m, bool beside)
{
    if (beside) {
        wait_for(m, w->side >= 0 ? w->side : w->begin);
        w->side = (int64_t)m->node.id;
    } else {
        for (int i = 0; i < 3; i++) wait_for(m, w->waits[i]), w->waits[i] = -1;
        w->waits[0] = (int64_t)m->node.id;
    }
    put(w->out, &m->node.base);
}

/* ---- operations ---- */

static const groups *groups_of(writer *w, unsigned axes)
{
    groups *g = &w->group[axes];
    const int chips = w->job->net.chips;
    if (g->chips) return g;
    g->chips = app_memory(2 * (size_t)chips, sizeof *g->chips);
    g->of = app_memory((size_t)chips, sizeof *g->of);
    g->groups = trn_plan_groups(&w->job->net, w->plan, axes, g->chips, &g->count);
    for (int i = 0; i < chips; i++) g->of[g->chips[i]] = i / g->count;
    g->first = w->named + 1;
    if (g->count < chips) w->named += g->groups;
    return g;
}

static chakra_collective collective_of(trn_collective op)
{
    static const chakra_collective number[] = { CHAKRA_ALL_GATHER, CHAKRA_REDUCE_SCATTER, CHAKRA_ALL_REDUCE,
                                                CHAKRA_ALL_TO_ALL, CHAKRA_BROADCAST };
    return number[op];
}

static void put_collective(writer *w, const trn_plan_operation *o, bool beside)
{
    const groups *g = groups_of(w, o->axes);
    char name[16];
    message m;
    start(w, &m, CHAKRA_COLLECTIVE, o->name);
    add_int64(&m, "comm_type", collective_of(o->op));
    add_int64(&m, "comm_size", o->op == TRN_ALL_GATHER ? o->bytes / g->count : o->bytes);
    if (g->count < w->job->net.chips) {
        snprintf(name, sizeof name, "%d", g->first + g->of[w->rank]);
        attribute(&m, "pg_name", CHAKRA__ATTRIBUTE__VALUE_TEXT)->text = name;
    }
    finish(w, &m, beside);
}

static void put_work(writer *w, const trn_plan_operation *o)
{
    message m;
    start(w, &m, CHAKRA_WORK, o->name);
    w->micros += 1e6 * o->expected_s;
    m.node.duration_micros = (uint64_t)w->micros; /* what is lost by whole numbers is in a later one */
    w->micros -= floor(w->micros);
    add_int64(&m, "num_ops", o->flops);
    attribute(&m, "tensor_size", CHAKRA__ATTRIBUTE__VALUE_UINT64)->uint64 = (uint64_t)ceil(o->bytes);
    attribute(&m, "model_ideal_s", CHAKRA__ATTRIBUTE__VALUE_REAL)->real = o->time_s;
    attribute(&m, "model_expected_s", CHAKRA__ATTRIBUTE__VALUE_REAL)->real = o->expected_s;
    finish(w, &m, false);
}

static void put_operation(writer *w, const trn_plan_operation *o, bool beside)
{
    if (o->talks)
        put_collective(w, o, beside);
    else
        put_work(w, o);
}

static void put_phase(writer *w, trn_plan_phase which)
{
    const phase *p = &w->phase[which];
    for (int64_t i = 0; i < p->count; i++) put_operation(w, &p->list[i], p->list[i].beside);
}

/* Of each kind one bucket waits at the beginning (gathered weights) or at the end (gradients); others are beside. */
static void put_sync(writer *w, trn_plan_phase which, bool begins)
{
    const phase *p = &w->phase[which];
    for (int64_t i = 0; i < p->count; i++) {
        const trn_plan_operation *o = &p->list[i];
        const bool gathers = o->op == TRN_ALL_GATHER;
        if (gathers == begins) put_collective(w, o, false);
        for (int64_t k = 1; begins && k < o->count; k++) put_collective(w, o, true);
    }
}

/* ---- passes ---- */

static int chip_of_stage(writer *w, int number)
{
    const groups *g = groups_of(w, 1u << TRN_AXIS_PP);
    return g->chips[g->of[w->rank] * g->count + number];
}

static void put_pair(writer *w, bool sends, int stage_number, int64_t microbatch, bool backward)
{
    const phase *p = &w->phase[TRN_PHASE_SEND];
    const int other = chip_of_stage(w, stage_number);
    message m;
    if (!p->count) return;
    start(w, &m, sends ? CHAKRA_SEND : CHAKRA_RECEIVE, backward ? "gradients" : "activations");
    add_int64(&m, "comm_size", p->list[0].bytes);
    add_int32(&m, "comm_src", sends ? w->rank : other);
    add_int32(&m, "comm_dst", sends ? other : w->rank);
    add_int32(&m, "comm_tag", (int)(2 * microbatch + backward));
    if (sends) { /* nothing here waits for it */
        wait_for(&m, w->waits[0]);
        put(w->out, &m.node.base);
        return;
    }
    put(w->out, &m.node.base);
    w->waits[2] = (int64_t)m.node.id;
}

static trn_plan_phase layer_phase(const writer *w, int64_t layer, bool backward)
{
    const bool both = w->model.dense_layers > 0 && w->model.dense_layers < w->model.layers;
    if (both && layer < w->model.dense_layers) return backward ? TRN_PHASE_DENSE_BACKWARD : TRN_PHASE_DENSE_FORWARD;
    return backward ? TRN_PHASE_BACKWARD : TRN_PHASE_FORWARD;
}

static void put_pass(writer *w, int64_t microbatch, bool backward)
{
    const trn_plan *p = w->plan;
    const int last = p->pp - 1, from = backward ? w->stage + 1 : w->stage - 1,
              to = backward ? w->stage - 1 : w->stage + 1;
    const int64_t each = (w->model.layers + p->pp - 1) / p->pp, first = each * w->stage;
    const int64_t end = first + each < w->model.layers ? first + each : w->model.layers;
    const bool begins = !backward && microbatch == 0, ends = backward && microbatch + 1 == p->microbatches;
    if (from >= 0 && from <= last) put_pair(w, false, from, microbatch, backward);
    w->waits[1] = w->side;
    w->begin = w->waits[0];
    w->side = -1;
    if (begins) put_sync(w, TRN_PHASE_SYNC_FIRST, true);
    put_sync(w, backward ? TRN_PHASE_SYNC_BACKWARD : TRN_PHASE_SYNC_FORWARD, true);
    if (ends) put_sync(w, TRN_PHASE_SYNC_LAST, true);
    if (!backward && w->stage == 0) put_phase(w, TRN_PHASE_EMBEDDING);
    if (backward && w->stage == last) put_phase(w, TRN_PHASE_HEAD_BACKWARD);
    for (int64_t i = first; i < end; i++) put_phase(w, layer_phase(w, backward ? end - 1 - (i - first) : i, backward));
    if (!backward && w->stage == last) put_phase(w, TRN_PHASE_HEAD_FORWARD);
    put_sync(w, backward ? TRN_PHASE_SYNC_BACKWARD : TRN_PHASE_SYNC_FORWARD, false);
    if (ends) put_sync(w, TRN_PHASE_SYNC_LAST, false);
    if (to >= 0 && to <= last) put_pair(w, true, to, microbatch, backward);
}

/* 1F1B: as many forward passes as there are stages behind, and one; then in turns. */
static void put_step(writer *w)
{
    const trn_plan *p = w->plan;
    const bool train = w->job->args.job == TRN_JOB_TRAIN;
    const int64_t n = p->microbatches, ahead = p->pp - w->stage < n ? p->pp - w->stage : n;
    int64_t forward = 0, backward = 0;
    while (forward < n || (train && backward < n)) {
        const bool back = train && (forward == n || forward - backward >= ahead);
        put_pass(w, back ? backward++ : forward++, back);
    }
    w->waits[1] = w->side;
    put_phase(w, TRN_PHASE_UPDATE);
}

/* ---- files ---- */

static void put_metadata(writer *w)
{
    char plan[128];
    Chakra__Metadata m = CHAKRA__METADATA__INIT;
    Chakra__Attribute a[3], *list[3] = { &a[0], &a[1], &a[2] };
    static const char *const name[] = { "times", "model", "plan" };
    snprintf(plan, sizeof plan, "%s", sp_degrees(w->plan).text);
    const char *text[] = {
        "duration_micros, model_ideal_s and model_expected_s are results of shardplan's model, never "
        "measurements",
        w->job->model.name, plan
    };
    for (int i = 0; i < 3; i++) {
        chakra__attribute__init(&a[i]);
        a[i].name = (char *)(uintptr_t)name[i];
        a[i].value_case = CHAKRA__ATTRIBUTE__VALUE_TEXT;
        a[i].text = (char *)(uintptr_t)text[i];
    }
    m.version = (char *)(uintptr_t)CHAKRA_VERSION;
    m.n_attr = 3;
    m.attr = list;
    put(w->out, &m.base);
}

static bool open_file(const char *name, io_output *out, char *why)
{
    const char *path = io_stage_path(&stage, name);
    if (!path) return io_fail(why, stage.path, "there is not enough memory for a name");
    return io_output_open(path, out, why);
}

static bool write_rank(writer *w, int rank, char *why)
{
    io_output out;
    char name[40];
    snprintf(name, sizeof name, "step.%d.et", rank);
    if (!open_file(name, &out, why)) return false;
    w->out = out.file;
    w->rank = rank;
    w->stage = 0;
    while (w->plan->pp > 1 && chip_of_stage(w, w->stage) != rank) w->stage++;
    w->next = 0;
    w->micros = 0;
    w->waits[0] = w->waits[1] = w->waits[2] = w->side = w->begin = -1;
    put_metadata(w);
    put_step(w);
    return io_output_commit(&out, why);
}

static bool write_groups(writer *w, char *why)
{
    io_output out;
    if (!open_file("step.json", &out, why)) return false;
    fputs("{", out.file);
    for (int mask = 0, any = 0; mask < MASKS; mask++) {
        const groups *g = &w->group[mask];
        if (mask == 1 << TRN_AXIS_PP || !g->chips || g->count == w->job->net.chips) continue;
        for (int i = 0; i < g->groups; i++) {
            fprintf(out.file, "%s\n  \"%d\": [", any++ ? "," : "", g->first + i);
            for (int k = 0; k < g->count; k++) fprintf(out.file, "%s%d", k ? ", " : "", g->chips[i * g->count + k]);
            fputs("]", out.file);
        }
    }
    fputs("\n}\n", out.file);
    return io_output_commit(&out, why);
}

/* ---- which ranks ---- */

typedef struct ranks {
    bool *wanted;
    int chips, count;
} ranks;

static bool take_range(void *into, const char *item, char *why)
{
    ranks *r = into;
    char first[32];
    int64_t low, high;
    const size_t n = strcspn(item, "-");
    snprintf(first, sizeof first, "%.*s", (int)n, item);
    if (!app_parse_int(first, 0, r->chips - 1, &low, why) ||
        !app_parse_int(item[n] ? item + n + 1 : first, low, r->chips - 1, &high, why))
        return false;
    for (int64_t i = low; i <= high; i++) r->count += !r->wanted[i], r->wanted[i] = true;
    return true;
}

static bool choose_ranks(const sp_job *job, ranks *r, char *why)
{
    const char *list = job->options.chakra.ranks;
    char wrong[APP_WHY];
    r->chips = job->net.chips;
    r->count = 0;
    r->wanted = app_memory((size_t)r->chips, sizeof *r->wanted);
    if (!list && r->chips > RANKS)
        return app_fail(why, "--chakra: the plan has %d ranks, and without --chakra-ranks %d files are the most",
                        r->chips, (int)RANKS);
    if (list)
        return app_parse_list(list, take_range, r, wrong) || app_fail(why, "--chakra-ranks %.60s: %s", list, wrong);
    for (int i = 0; i < r->chips; i++) r->wanted[i] = true;
    r->count = r->chips;
    return true;
}

/* ---- everything ---- */

static bool ask_phases(writer *w, char *why)
{
    trn_error error;
    trn_plan_args args = w->job->args;
    args.error = &error;
    for (int i = 0; i < TRN_PHASE_COUNT; i++)
        if (trn_plan_operations(&args, w->plan, (trn_plan_phase)i, w->phase[i].list, OPERATIONS, &w->phase[i].count) !=
            TRN_OK)
            return app_fail(why, "--chakra: %s", error.text);
    return trn_model_settle(w->job->args.model, &w->model, &error) == TRN_OK ||
           app_fail(why, "--chakra: %s", error.text);
}

static bool check_size(const writer *w, const ranks *r, char *why)
{
    const double layers = ceil((double)w->model.layers / w->plan->pp), each = (double)w->plan->microbatches;
    const double pass = layers * (double)(w->phase[TRN_PHASE_FORWARD].count + w->phase[TRN_PHASE_BACKWARD].count);
    double buckets = 0;
    for (int64_t i = 0; i < w->phase[TRN_PHASE_SYNC_LAST].count; i++)
        buckets += 2 * (double)w->phase[TRN_PHASE_SYNC_LAST].list[i].count;
    const double nodes = r->count * (each * pass + buckets);
    return nodes <= NODES ||
           app_fail(why,
                    "--chakra: %.3g nodes in %d files are too many; 5e7 are the most (--chakra-ranks, --microbatch)",
                    nodes, r->count);
}

static bool write_all(const sp_job *job, writer *w, char *why)
{
    ranks r;
    bool ok = choose_ranks(job, &r, why) && ask_phases(w, why) && check_size(w, &r, why);
    for (int i = 0; ok && i < r.chips; i++)
        if (r.wanted[i]) ok = write_rank(w, i, why);
    free(r.wanted);
    return ok && write_groups(w, why);
}

bool sp_chakra_open(const sp_options *o, char *why)
{
    const io_stage_args args = { .path = o->chakra.out, .folder = true, .instead = "name another" };
    if (!o->chakra.out) return true;
    return app_writes("--chakra", o->chakra.out, why) && io_stage_open(&args, &stage, why);
}

bool sp_chakra_write(const sp_job *job, char *why)
{
    if (!job->options.chakra.out) return true;
    if (!job->list.legal) return app_refuse(why, "--chakra: no plan is legal, so there is no step");
    if (job->args.overlap_dependent) return app_refuse(why, "--chakra excludes --overlap");
    writer *w = app_memory(1, sizeof *w);
    w->job = job;
    w->plan = &job->plan[0];
    const bool ok = write_all(job, w, why);
    for (int i = 0; i < MASKS; i++) {
        free(w->group[i].chips);
        free(w->group[i].of);
    }
    free(w);
    return ok;
}

struct io_stage *sp_chakra_stage(void) { return stage.open ? &stage : NULL; }

void sp_chakra_close(void) { io_stage_discard(&stage); }

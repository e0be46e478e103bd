/* block.c - a transformer block by tensor parallelism on simulated NeuronCores: bits, errors, time against the plan.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "block.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const char app_name[] = "block";

/* ---- options ---- */

typedef struct options {
    cores_options cores;
    int64_t tokens, width, heads, d, ffn; /* heads and ffn 0: from the ranks */
    double spread;
    bool forward_only;
} options;

CORES_TAKE(options, cores)

static const app_option option[] = {
    CORES_OPTIONS(options, cores),
    { "--tokens", "N", "of the one sequence (default: 128)", APP_TAKES_INT64(options, tokens, 1, 8192) },
    { "--width", "N", "of the model (default: 256)", APP_TAKES_INT64(options, width, 1, 8192) },
    { "--heads", "N", "a multiple of the ranks (default: one on each)", APP_TAKES_INT64(options, heads, 1, 1 << 16) },
    { "--head", "N", "width of a head (default: 32)", APP_TAKES_INT64(options, d, 1, 128) },
    { "--ffn", "N", "hidden units, a multiple of the ranks (default: 64 on each)",
      APP_TAKES_INT64(options, ffn, 1, 1 << 20) },
    { "--spread", "X", "weights of the first norm are about X (default: 1): scores grow with its square",
      APP_TAKES_REAL(options, spread, 0, 1e3) },
    { "--forward", NULL, "without the gradients", APP_SETS(options, forward_only) },
};

static const app_command command = {
    "block",
    "usage: block [options]",
    "Runs a transformer block, forward and backward, as one kernel on each of many simulated NeuronCores: weights cut\n"
    "by columns, then by rows, and an all-reduce behind each. Prints a digest of all bits, errors against binary64,\n"
    "whether projections are those of trn_sharded_matmul, and the time beside what trn_plan expects.",
    option,
    sizeof option / sizeof option[0],
    "The digest depends on sizes, seed, system and ranks alone. Data goes to standard output, everything else to\n"
    "standard error.\n"
    "Exit status: 0 ok, 1 an error is too large or bits differ, 2 bad usage, or sizes that do not fit.",
    NULL,
};

static bool size_up(options *o, block_sizes *s, char *why)
{
    const int ranks = o->cores.ranks;
    if (!o->heads) o->heads = ranks;
    if (!o->ffn) o->ffn = 64 * (int64_t)ranks;
    if (o->heads % ranks) return app_fail(why, "--heads %lld does not divide by %d ranks", (long long)o->heads, ranks);
    if (o->ffn % ranks) return app_fail(why, "--ffn %lld does not divide by %d ranks", (long long)o->ffn, ranks);
    *s = (block_sizes){ .tokens = o->tokens,
                        .width = o->width,
                        .heads = o->heads,
                        .d = o->d,
                        .ffn = o->ffn,
                        .own_heads = o->heads / ranks,
                        .own_q = o->heads / ranks * o->d,
                        .own_ffn = o->ffn / ranks,
                        .ranks = ranks };
    return true;
}

/* ---- memory and inputs ---- */

#define BLOCK_ROW(name, format, rows, columns, kind) { #name, format, BLOCK_##kind },
const block_row block_table[BLOCK_COUNT] = { BLOCK_TENSORS(BLOCK_ROW) };

static void begin_rank(block *b, int rank, uint64_t seed)
{
    const block_sizes *s = &b->size;
    const int64_t T = s->tokens, D = s->width, Q = s->own_q, F = s->own_ffn, H = s->own_heads;
#define BLOCK_SHAPE(name, format, rows, columns, kind) { rows, columns },
    const int64_t shape[BLOCK_COUNT][2] = { BLOCK_TENSORS(BLOCK_SHAPE) };
    block_rank *r = &b->rank[rank];
    const double depth[] = { [BLOCK_wqkv] = (double)D,
                             [BLOCK_wo] = (double)(s->heads * s->d),
                             [BLOCK_wgu] = (double)D,
                             [BLOCK_wd] = (double)s->ffn };
    for (int i = 0; i < BLOCK_COUNT; i++) {
        r->t[i] = cores_matrix(block_table[i].format, shape[i][0], shape[i][1]);
        if (block_table[i].kind == BLOCK_WEIGHT)
            cores_fill(r->t[i], seed, (uint64_t)(16 + rank * BLOCK_COUNT + i), 0, 1 / sqrt(depth[i]));
    }
}

static void begin(block *b, uint64_t seed, double spread)
{
    const block_sizes *s = &b->size;
    b->x = cores_matrix(TRN_BF16, s->tokens, s->width);
    b->dy = cores_matrix(TRN_BF16, s->tokens, s->width);
    b->gamma1 = cores_matrix(TRN_BF16, 1, s->width);
    b->gamma2 = cores_matrix(TRN_BF16, 1, s->width);
    cores_fill(b->x, seed, 0, 0, 1);
    cores_fill(b->dy, seed, 1, 0, 1);
    cores_fill(b->gamma1, seed, 2, spread, 0.1 * spread);
    cores_fill(b->gamma2, seed, 3, 1, 0.1);
    b->rank = (block_rank *)app_memory((size_t)s->ranks, sizeof *b->rank);
    for (int i = 0; i < s->ranks; i++) begin_rank(b, i, seed);
}

static void end(block *b)
{
    const trn_tensor shared[] = { b->x, b->dy, b->gamma1, b->gamma2 };
    for (int i = 0; i < 4; i++) cores_free_matrix(shared[i]);
    for (int r = 0; r < b->size.ranks; r++)
        for (int i = 0; i < BLOCK_COUNT; i++) cores_free_matrix(b->rank[r].t[i]);
    free(b->rank);
}

/* ---- what came out ---- */

typedef struct plan_times {
    bool any;
    double work_s, collective_s; /* of one layer: expected */
    double floorless_s;          /* work_s, did an operation on a core not take kernel_s at least */
} plan_times;

typedef struct result {
    const options *o;
    const block *b;
    cores_run run;
    uint64_t digest;
    bool alike;          /* what every rank has to have alike: y, dx, gradients of gamma */
    int products, equal; /* compared with trn_sharded_matmul; of the same bits */
    cores_errors error[BLOCK_CHECKED];
    int errors;
    plan_times plan;
    char reason[4][200];
    int reasons;
} result;

static bool is_result(const block *b, int i)
{
    return block_table[i].kind == BLOCK_OUTPUT || (!b->forward_only && block_table[i].kind == BLOCK_GRADIENT);
}

static void digest(result *r)
{
    static const int alike[] = { BLOCK_y, BLOCK_dx, BLOCK_dgamma1, BLOCK_dgamma2 };
    const block *b = r->b;
    uint64_t *all = (uint64_t *)app_memory(2 * (size_t)b->size.ranks, sizeof *all), *same = all + b->size.ranks;
    for (int k = 0; k < b->size.ranks; k++) {
        all[k] = same[k] = CORES_DIGEST;
        for (int i = 0; i < BLOCK_COUNT; i++)
            if (is_result(b, i)) all[k] = cores_digest(all[k], b->rank[k].t[i]);
        for (int i = 0; i < (b->forward_only ? 1 : 4); i++) same[k] = cores_digest(same[k], b->rank[k].t[alike[i]]);
    }
    cores_share(&r->run, all);
    cores_share(&r->run, same);
    r->alike = true;
    for (int k = 1; k < b->size.ranks; k++) r->alike = r->alike && same[k] == same[0];
    r->digest = cores_digest_of(all, b->size.ranks);
    free(all);
}

/* ---- the same projections by trn_sharded_matmul ---- */

typedef struct projection {
    int a, b, dst;
    bool by_rows; /* K is cut; else N */
} projection;

static trn_status project(const result *r, const trn_mesh *mesh, const projection *p, trn_tensor *part,
                          trn_error *error)
{
    const int n = r->b->size.ranks;
    const trn_tensor *rank0 = r->b->rank[0].t;
    trn_sharded_matmul_args args = { .mesh = mesh,
                                     .m = r->b->size.tokens,
                                     .n = rank0[p->b].shape[1] * (p->by_rows ? 1 : n),
                                     .k = rank0[p->b].shape[0] * (p->by_rows ? n : 1),
                                     .a = part,
                                     .b = part + n,
                                     .dst = part + 2 * n,
                                     .matmul = { .generation = r->run.args.core.generation },
                                     .error = error };
    for (int i = 0; i < n; i++) {
        part[i] = r->b->rank[i].t[p->a];
        part[n + i] = r->b->rank[i].t[p->b];
    }
    trn_status status = trn_pspec_parse(&args.a_spec, mesh, p->by_rows ? "(*, tensor)" : "(*, *)");
    if (!status) status = trn_pspec_parse(&args.b_spec, mesh, p->by_rows ? "(tensor, *)" : "(*, tensor)");
    if (!status) status = trn_pspec_parse(&args.dst_spec, mesh, p->by_rows ? "(*, *)" : "(*, tensor)");
    return status ? status : trn_sharded_matmul(&args);
}

/* One rank on each chip of a whole system: what a mesh is. */
static bool compare_products(result *r)
{
    static const projection row[] = { { BLOCK_n1, BLOCK_wqkv, BLOCK_qkv, false },
                                      { BLOCK_heads, BLOCK_wo, BLOCK_sum1, true },
                                      { BLOCK_n2, BLOCK_wgu, BLOCK_gu, false },
                                      { BLOCK_hidden, BLOCK_wd, BLOCK_sum2, true } };
    const int n = r->b->size.ranks;
    char text[32];
    trn_mesh mesh;
    trn_error error = { TRN_OK, "" };
    if (n != r->run.cores.net.chips || r->run.cores.here != n) return true;
    snprintf(text, sizeof text, "tensor=%d", n);
    if (!app_worked(trn_mesh_init(&mesh, &r->run.cores.net, text), NULL)) return false;
    trn_tensor *part = (trn_tensor *)app_memory(3 * (size_t)n, sizeof *part);
    for (int i = 0; i < 4; i++, r->products++) {
        const trn_tensor like = r->b->rank[0].t[row[i].dst];
        bool same = true;
        for (int k = 0; k < n; k++) part[2 * n + k] = cores_matrix(like.format, like.shape[0], like.shape[1]);
        const bool worked = app_worked(project(r, &mesh, &row[i], part, &error), &error);
        if (!worked) fprintf(stderr, "%s: %s\n", app_name, error.text);
        for (int k = 0; k < n; k++) {
            const size_t bytes = (size_t)trn_tensor_elements(like) * trn_format_bytes(like.format);
            same = same && memcmp(part[2 * n + k].data, r->b->rank[k].t[row[i].dst].data, bytes) == 0;
            cores_free_matrix(part[2 * n + k]);
        }
        r->equal += worked && same;
    }
    free(part);
    return r->equal == r->products;
}

/* ---- beside trn_plan ---- */

static bool plan_of(const result *r, int64_t layers, bool floors, trn_plan_time *time)
{
    const block_sizes *s = &r->b->size;
    const trn_model model = { .name = "block",
                              .layers = layers,
                              .hidden = s->width,
                              .heads = s->heads,
                              .head_dim = s->d,
                              .intermediate = s->ffn,
                              .vocab = s->ranks };
    const trn_topology *net = &r->run.cores.net;
    const trn_plan_args args = { .model = &model,
                                 .net = net,
                                 .job = r->b->forward_only ? TRN_JOB_PREFILL : TRN_JOB_TRAIN,
                                 .batch = 1,
                                 .sequence = s->tokens,
                                 .recompute = TRN_RECOMPUTE_NONE,
                                 .ranks_per_chip = s->ranks / net->chips,
                                 .ignore_groups = true,
                                 .no_sp = true,
                                 .assumptions = { .kernel_s = floors ? 0 : -1 } };
    trn_plan plan = { .tp = net->chips, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    if (!app_worked(trn_plan_evaluate(&args, &plan), NULL) || !plan.legal) return false;
    *time = plan.expected;
    return true;
}

__attribute__((format(printf, 2, 3))) static void reason(result *r, const char *format, ...);

static void reason(result *r, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (r->reasons < 4) vsnprintf(r->reason[r->reasons++], sizeof r->reason[0], format, list);
    va_end(list);
}

static bool near(double a, double b) { return a <= 1.25 * b && b <= 1.25 * a; }

/* Why the kernel's time is not what is expected, part by part. */
static void explain(result *r)
{
    const trn_cores_report *c = &r->run.report;
    const int cores = trn_system_spec_of(r->o->cores.system)->server->chip->cores;
    const int each = r->b->size.ranks / r->run.cores.net.chips;
    const double collective_s = c->collective_share * c->time_s, work_s = c->time_s - collective_s;
    double most = 0;
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) most = fmax(most, c->share[e] * c->time_s);
    if (near(c->time_s, r->plan.work_s + r->plan.collective_s)) return;
    if (!near(collective_s, r->plan.collective_s))
        reason(r, "collectives: %.1f us here, %.1f us in the plan", 1e6 * collective_s, 1e6 * r->plan.collective_s);
    if (!near(r->plan.work_s, r->plan.floorless_s))
        reason(r,
               "floors: of the plan's %.1f us of work %.1f are there as no operation on a core takes less than %g us",
               1e6 * r->plan.work_s, 1e6 * (r->plan.work_s - r->plan.floorless_s),
               1e6 * trn_plan_assumptions_default(NULL).kernel_s);
    if (each < cores)
        reason(r, "cores: %d of %d on each chip work; without floors the plan has %.1f us for all, %.1f for so many",
               each, cores, 1e6 * r->plan.floorless_s, 1e6 * r->plan.floorless_s * cores / each);
    if (!near(work_s, most))
        reason(r,
               "waits: of %.1f us of work here the busiest engine has %.1f; steps begin and end in HBM, 2 us each time",
               1e6 * work_s, 1e6 * most);
}

static double work_of(const trn_plan_time *t) { return t->products_s + t->reads_s + t->attention_s + t->elementwise_s; }

/* One layer is what two take more than one: the plan's ends of a model do not count. */
static void plan(result *r)
{
    trn_plan_time time[2][2];
    if (r->o->cores.chips != r->run.cores.net.chips) return;
    for (int i = 0; i < 4; i++)
        if (!plan_of(r, 1 + i % 2, i < 2, &time[i / 2][i % 2])) return;
    r->plan.any = true;
    r->plan.collective_s = time[0][1].tp_s - time[0][0].tp_s;
    r->plan.work_s = work_of(&time[0][1]) - work_of(&time[0][0]);
    r->plan.floorless_s = work_of(&time[1][1]) - work_of(&time[1][0]);
    explain(r);
}

/* ---- the report ---- */

static double ratio(const result *r) { return r->run.report.time_s / (r->plan.work_s + r->plan.collective_s); }

static void print_plan(FILE *out, const result *r)
{
    const double collective_s = r->run.report.collective_share * r->run.report.time_s;
    if (!r->plan.any) {
        fprintf(out, "plan        none: it is for all chips of a system\n");
        return;
    }
    fprintf(out, "plan        expects %.1f us (work %.1f, collectives %.1f); here %.1f (%.1f, %.1f): x %.2f\n",
            1e6 * (r->plan.work_s + r->plan.collective_s), 1e6 * r->plan.work_s, 1e6 * r->plan.collective_s,
            1e6 * r->run.report.time_s, 1e6 * (r->run.report.time_s - collective_s), 1e6 * collective_s, ratio(r));
    for (int i = 0; i < r->reasons; i++) fprintf(out, "            because of %s\n", r->reason[i]);
}

static void print_phases(FILE *out, const result *r)
{
    static const char *const name[] = { "attention", "mlp", "mlp back", "attention back" };
    double from = 0;
    fprintf(out, "phases      ");
    for (int i = 0; i < (r->b->forward_only ? BLOCK_MLP_BACK : BLOCK_PHASES); i++) {
        fprintf(out, "%s%s %.1f us", i ? ", " : "", name[i], 1e6 * (r->b->rank[0].end_s[i] - from));
        from = r->b->rank[0].end_s[i];
    }
    fprintf(out, " (rank 0)\n");
}

static void print_text(FILE *out, const result *r)
{
    const block_sizes *s = &r->b->size;
    fprintf(out, "block       %s, %d chips, %d ranks: %lld tokens, width %lld, %lld heads of %lld, ffn %lld%s\n",
            trn_system_name(r->o->cores.system), r->o->cores.chips, s->ranks, (long long)s->tokens, (long long)s->width,
            (long long)s->heads, (long long)s->d, (long long)s->ffn,
            r->b->forward_only ? ", forward" : ", forward and backward");
    fprintf(out, "digest      %016llx; what all ranks have to have alike %s\n", (unsigned long long)r->digest,
            r->alike ? "is alike" : "DIFFERS");
    if (r->products)
        fprintf(out, "projections %d of %d have the bits of trn_sharded_matmul\n", r->equal, r->products);
    else
        fprintf(out,
                "projections not compared: trn_sharded_matmul has one rank on each chip, all of them in one process\n");
    if (r->errors) cores_print_errors(out, r->error, r->errors);
    cores_print_times(out, &r->run);
    print_phases(out, r);
    print_plan(out, r);
}

static void write_json(FILE *out, const void *context)
{
    const result *r = (const result *)context;
    const block_sizes *s = &r->b->size;
    fprintf(out, "{\n  \"system\": \"%s\",\n  \"chips\": %d,\n  \"ranks\": %d,\n", trn_system_name(r->o->cores.system),
            r->o->cores.chips, s->ranks);
    fprintf(out, "  \"tokens\": %lld,\n  \"width\": %lld,\n  \"heads\": %lld,\n  \"head\": %lld,\n  \"ffn\": %lld,\n",
            (long long)s->tokens, (long long)s->width, (long long)s->heads, (long long)s->d, (long long)s->ffn);
    cores_json_times(out, &r->run);
    if (r->errors) cores_json_errors(out, r->error, r->errors);
    if (r->plan.any) {
        fprintf(out, "  \"expected_s\": %.9g,\n  \"expected_collective_s\": %.9g,\n  \"over_expected\": %.6g,\n",
                r->plan.work_s + r->plan.collective_s, r->plan.collective_s, ratio(r));
        fprintf(out, "  \"reasons\": [");
        for (int i = 0; i < r->reasons; i++) {
            fprintf(out, "%s", i ? ", " : "");
            app_print_json_string(out, r->reason[i]);
        }
        fprintf(out, "],\n");
    }
    fprintf(out, "  \"projections\": %d,\n  \"equal\": %d,\n  \"alike\": %s,\n  \"digest\": \"%016llx\"\n}\n",
            r->products, r->equal, r->alike ? "true" : "false", (unsigned long long)r->digest);
}

/* ---- the program ---- */

static bool judge(result *r)
{
    digest(r);
    bool passed = r->alike && compare_products(r);
    if (!r->o->cores.no_check) r->errors = block_check(r->b, &r->run, r->error);
    for (int i = 0; i < r->errors; i++) passed = passed && cores_passed(&r->error[i]);
    plan(r);
    return passed;
}

static void write_trace(FILE *out, const void *context) { cores_write_trace(out, &((const result *)context)->run); }

static int work(const options *o, block *b)
{
    app_output output[] = { { .flag = "--json", .path = o->cores.json, .write = write_json },
                            { .flag = "--trace", .path = o->cores.trace, .write = write_trace } };
    result *r = (result *)app_memory(1, sizeof *r);
    r->o = o, r->b = b;
    int status = app_open_outputs(output, 2);
    if (status == APP_OK) {
        begin(b, o->cores.seed, o->spread);
        status = cores_start(&r->run, &o->cores, block_kernel, b);
        if (status == APP_OK) {
            if (!judge(r)) status = APP_FAILED;
            if (!app_output_taken(output, 2) && cores_speaks(&r->run)) print_text(stdout, r);
            if (app_write_outputs(output, 2, r) != APP_OK) status = APP_USAGE;
            cores_finish(&r->run);
        }
        app_discard_outputs(output, 2);
        end(b);
    }
    free(r);
    return status;
}

int app_run(int argc, char **argv)
{
    options o = {
        .cores = { .system = TRN_TRN2_48XLARGE, .seed = 1 }, .tokens = 128, .width = 256, .d = 32, .spread = 1
    };
    char why[APP_WHY];
    static block b;
    const int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    b.forward_only = o.forward_only;
    if (!cores_resolve(&o.cores, why) || !size_up(&o, &b.size, why)) return app_complain(APP_USAGE, "%s", why);
    return work(&o, &b);
}

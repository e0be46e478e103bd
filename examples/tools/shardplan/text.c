/* text.c - numbers as people read them, and the answer on a terminal.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

typedef struct sp_scale_name {
    double size;
    const char *name;
} sp_scale_name;

/* Three digits and the name of the largest unit that is not above the value; of a value below all, the last. */
static sp_text in_units(double value, const sp_scale_name *unit, int units)
{
    sp_text t;
    int i = 0;
    while (i + 1 < units && value < 0.9995 * unit[i].size) i++;
    const double x = value / unit[i].size;
    snprintf(t.text, sizeof t.text, "%.*f %s", x >= 99.95 || x <= 0 ? 0 : x >= 9.995 ? 1 : 2, x, unit[i].name);
    return t;
}

sp_text sp_time(double seconds)
{
    static const sp_scale_name unit[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    return in_units(seconds, unit, 3);
}

sp_text sp_bytes(double bytes)
{
    static const sp_scale_name unit[] = { { 1073741824.0, "GiB" }, { 1048576.0, "MiB" }, { 1024.0, "KiB" } };
    return in_units(bytes, unit, 3);
}

sp_text sp_si(double value)
{
    static const sp_scale_name unit[] = { { 1e18, "E" }, { 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" },
                                          { 1e6, "M" },  { 1e3, "k" },  { 1, "" } };
    sp_text t = in_units(value, unit, 7);
    const size_t n = strlen(t.text);
    if (n && t.text[n - 1] == ' ') t.text[n - 1] = 0;
    return t;
}

sp_text sp_count(int64_t value)
{
    sp_text t;
    app_count(t.text, sizeof t.text, value);
    return t;
}

sp_text sp_evidence(trn_evidence_class of)
{
    const trn_evidence e = trn_evidence_of(of);
    sp_text t;
    if (!e.rows)
        snprintf(t.text, sizeof t.text, "no published row, assumed");
    else
        snprintf(t.text, sizeof t.text, "%d published row%s%s, %s", e.rows, e.rows > 1 ? "s" : "",
                 e.rows < 10 ? ": wide" : "", e.name);
    return t;
}

sp_text sp_percent(double share)
{
    sp_text t;
    if (isfinite(share))
        snprintf(t.text, sizeof t.text, "%.1f %%", 100 * share);
    else
        snprintf(t.text, sizeof t.text, "-");
    return t;
}

int sp_tp(const trn_plan *p) { return p->tp_cores ? p->tp_cores : p->tp; }

sp_text sp_tp_chips(const sp_job *job, const trn_plan *p)
{
    const int lnc = job->args.lnc;
    const int each = lnc ? trn_system_spec_of(job->net.system)->server->chip->cores / lnc : 1;
    sp_text t;
    if (p->tp_cores && p->tp_cores < each)
        snprintf(t.text, sizeof t.text, "1/%d", each / p->tp_cores);
    else
        snprintf(t.text, sizeof t.text, "%d", p->tp);
    return t;
}

sp_text sp_degrees(const trn_plan *p)
{
    const int degree[TRN_AXIS_COUNT] = { sp_tp(p), p->cp, p->ep, p->dp, p->pp };
    sp_text t;
    size_t used = 0;
    t.text[0] = 0;
    for (int i = 0; i < TRN_AXIS_COUNT; i++) {
        if (degree[i] == 1) continue;
        used += (size_t)snprintf(t.text + used, sizeof t.text - used, "%s%s %d", used ? ", " : "",
                                 trn_plan_axis_name((trn_plan_axis)i), degree[i]);
        if (i == TRN_AXIS_TP && p->tp_cores) used += (size_t)snprintf(t.text + used, sizeof t.text - used, " cores");
    }
    if (!used) snprintf(t.text, sizeof t.text, p->tp_cores ? "one core" : "one chip");
    return t;
}

bool sp_has_cache(const sp_job *job) { return !job->model.bidirectional && !job->model.tables; }

const char *sp_unit_of_work(const sp_job *job)
{
    if (job->args.job == TRN_JOB_TRAIN) return "step";
    if (!sp_has_cache(job)) return "batch";
    return job->args.job == TRN_JOB_PREFILL ? "batch of prompts" : "token";
}

void sp_describe_job(const sp_job *job, char *text, size_t size)
{
    const char *what = job->args.job == TRN_JOB_TRAIN     ? "a training step of"
                       : !sp_has_cache(job)               ? "a forward pass of"
                       : job->args.job == TRN_JOB_PREFILL ? "prefill of"
                                                          : "decode, one token for each of";
    const char *each = job->args.job == TRN_JOB_DECODE ? "with" : "of";
    if (job->model.tables) {
        snprintf(text, size, "%s %s samples", what, sp_count(job->args.batch).text);
        return;
    }
    snprintf(text, size, "%s %s sequence%s %s %s tokens%s", what, sp_count(job->args.batch).text,
             job->args.batch == 1 ? "" : "s", each, sp_count(job->args.sequence).text,
             job->args.job == TRN_JOB_DECODE ? " in the cache" : "");
}

void sp_describe_formats(const sp_job *job, char *text, size_t size)
{
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const bool copy = trn_format_bits(f.weights) < trn_format_bits(f.optimizer);
    const int used = snprintf(text, size, "weights %s, products in %s, activations %s", trn_format_name(f.weights),
                              trn_format_name(f.compute), trn_format_name(f.activations));
    if (job->args.job == TRN_JOB_TRAIN)
        snprintf(text + used, size - (size_t)used, ", gradients %s, optimizer %s%s", trn_format_name(f.gradients),
                 trn_format_name(f.optimizer), copy ? " with a copy of the weights" : "");
    else if (sp_has_cache(job))
        snprintf(text + used, size - (size_t)used, ", KV cache %s%s", trn_format_name(f.kv),
                 job->args.job == TRN_JOB_DECODE && !job->options.serving.draft ? "; no speculative decoding" : "");
}

int64_t sp_top(const sp_job *job, int64_t usual) { return job->options.top < 0 ? usual : job->options.top; }

/* How many plans fell for the same sentence as plan i; 0 when an earlier one has told it. */
int64_t sp_told_by(const sp_job *job, int64_t i)
{
    int64_t count = 0;
    for (int64_t k = job->list.legal; k < job->list.kept; k++) {
        if (strcmp(job->plan[k].why, job->plan[i].why) != 0) continue;
        if (k < i) return 0;
        count++;
    }
    return count;
}

/* ---- the answer ---- */

static const char *bold = "", *faint = "", *plain = "";

static void choose_colours(FILE *out)
{
    const bool colour = app_colour(out);
    bold = colour ? "\033[1m" : "";
    faint = colour ? "\033[2m" : "";
    plain = colour ? "\033[0m" : "";
}

static void print_notes(const sp_job *job, FILE *out)
{
    sp_notes notes;
    sp_notes_of(job, &notes);
    for (int i = 0; i < notes.count; i++) app_say(out, "  note: %s\n", notes.text[i]);
}

static void print_head(const sp_job *job, FILE *out)
{
    char text[256];
    const trn_model_size *s = &job->size;
    sp_describe_job(job, text, sizeof text);
    fputs(bold, out);
    app_say(out, "%s", job->model.name);
    fprintf(out, "%s: %s parameters", plain, sp_si(s->total).text);
    if (s->active < s->total)
        fprintf(out, ", %s of them for a %s", sp_si(s->active).text, job->model.tables ? "sample" : "token");
    if (job->model.tables)
        fprintf(out, ", %lld tables of embeddings", (long long)job->model.tables);
    else if (job->model.bidirectional)
        fputs(", an encoder", out);
    else
        fprintf(out, ", %s KV elements a token", sp_count((int64_t)s->kv_elements).text);
    if (s->state_elements > 0) fprintf(out, ", states of %s elements a sequence", sp_si(s->state_elements).text);
    fputs("\n", out);
    app_say(out, "%s: %s chips; %s\n", job->net.name, sp_count(job->net.chips).text, text);
    sp_describe_formats(job, text, sizeof text);
    fprintf(out, "%s\n", text);
    print_notes(job, out);
    fprintf(out, "%s sets of degrees, %s legal; %s variants\n", sp_count(job->list.found).text,
            sp_count(job->list.legal).text, sp_count(job->list.tried).text);
}

static void print_row(const sp_job *job, const trn_plan *p, int64_t rank, FILE *out)
{
    const bool train = job->args.job == TRN_JOB_TRAIN;
    char micro[48], order[8];
    snprintf(micro, sizeof micro, "%lld x %lld", (long long)p->microbatches, (long long)p->microbatch);
    snprintf(order, sizeof order, "%s", p->dp > 1 && p->pp > 1 ? (p->order == TRN_ORDER_DP_PP ? "pp" : "dp") : "");
    fprintf(out, "  %4lld %4d", (long long)rank, sp_tp(p));
    if (job->args.lnc) fprintf(out, "  %5s", sp_tp_chips(job, p).text);
    fprintf(out, " %4d %4d %6d %4d  %-5s  %-2s  %9s", p->cp, p->ep, p->dp, p->pp, order, p->sp ? "sp" : "", micro);
    if (train) fprintf(out, "  %-9s  %-9s", trn_zero_name(p->zero), trn_recompute_name(p->recompute));
    fprintf(out, "  %8s  %8s  %8s", sp_time(p->bound_s).text, sp_time(p->time_s).text, sp_time(p->expected_s).text);
    if (!train) fprintf(out, "  %8s", sp_time(p->expected_ttft_s).text);
    fprintf(out, "  %8s  %6s  %9s  %s\n", sp_si(p->expected_tokens_per_s).text, sp_percent(p->expected_mfu).text,
            sp_bytes(p->memory.total).text, trn_plan_part_name(p->bottleneck));
}

static void print_table(const sp_job *job, FILE *out)
{
    const bool train = job->args.job == TRN_JOB_TRAIN;
    if (!job->list.legal) {
        app_say(out, "\nno plan is legal; the nearest, %s: %s\n", sp_degrees(&job->plan[0]).text, job->plan[0].why);
        return;
    }
    fprintf(out, "\n%s  rank   tp%s   cp   ep     dp   pp  outer  sp  microbat.", bold, job->args.lnc ? "  chips" : "");
    fprintf(out, train ? "  zero       recompute      bound     ideal  expected"
                       : "     bound     ideal  expected     first");
    fprintf(out, "  tokens/s     MFU        HBM  most of it%s\n", plain);
    for (int64_t i = 0; i < job->list.kept && i < sp_top(job, 10) && job->plan[i].legal; i++)
        print_row(job, &job->plan[i], i + 1, out);
}

/* ---- the best one ---- */

/* One part of the expected time, and what it is at full rates. */
static void print_share(FILE *out, const char *name, double expected, double ideal, double all)
{
    if (expected > 0)
        fprintf(out, "  %-22s %9s  %5.1f %%  %9s\n", name, sp_time(expected).text, 100 * expected / all,
                sp_time(ideal).text);
}

static void print_levels(const sp_job *job, const trn_plan *p, FILE *out)
{
    char text[96];
    if (job->args.lnc) {
        const int each = trn_system_spec_of(job->net.system)->server->chip->cores / job->args.lnc;
        const int tp = p->tp_cores < each ? p->tp_cores : each;
        snprintf(text, sizeof text, tp < each ? "tp %d x dp %d" : "tp %d", tp, each / tp);
        fprintf(out, "  %-8s %6d  %s\n", "chip", each, text);
    }
    for (int l = 0; l < job->net.levels; l++) {
        trn_plan_level_text(&job->net, p, l, text, sizeof text);
        if (job->net.level[l].size > 1)
            fprintf(out, "  %-8s %6d  %s\n", trn_level_name(&job->net.level[l]), job->net.level[l].size, text);
    }
}

static void print_memory(const trn_plan_memory *b, FILE *out)
{
    const struct {
        const char *name;
        double bytes;
    } row[] = { { "weights", b->weights },         { "gradients", b->gradients }, { "optimizer states", b->optimizer },
                { "activations", b->activations }, { "KV cache", b->kv },         { "buffers", b->buffers } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].bytes > 0)
            fprintf(out, "  %-22s %9s  %5.1f %% of HBM\n", row[i].name, sp_bytes(row[i].bytes).text,
                    100 * row[i].bytes / b->capacity);
}

/* What the ranges are from. */
static void print_evidence(const sp_job *job, const trn_plan *p, FILE *out)
{
    fprintf(out, "  %srange of the time: %s%s\n", faint, sp_evidence(p->evidence).text, plain);
    if (job->args.job != TRN_JOB_DECODE || !(p->expected_ttft_s > 0)) return;
    fprintf(out, "  first token in %s (%s to %s; %s%s%s)\n", sp_time(p->expected_ttft_s).text,
            sp_time(p->expected_ttft_low_s).text, sp_time(p->expected_ttft_high_s).text, faint,
            sp_evidence(p->ttft_evidence).text, plain);
}

static void print_best(const sp_job *job, FILE *out)
{
    const trn_plan *p = &job->plan[0];
    if (!job->list.legal) return;
    fprintf(out, "\n%sthe first: %s; a %s in %s%s", bold, sp_degrees(p).text, sp_unit_of_work(job),
            sp_time(p->expected_s).text, plain);
    fprintf(out, " (%s to %s; bound %s)\n", sp_time(p->expected_low_s).text, sp_time(p->expected_high_s).text,
            sp_time(p->bound_s).text);
    print_evidence(job, p, out);
    fprintf(out, "  %s%-22s %9s %17s%s\n", faint, "", "expected", "ideal", plain);
    const trn_plan_time *e = &p->expected, *t = &p->time;
    for (int i = 0; i < TRN_PART_COUNT; i++)
        print_share(out, trn_plan_part_name((trn_plan_part)i), sp_part_s(e, (trn_plan_part)i),
                    sp_part_s(t, (trn_plan_part)i), p->expected_s);
    print_share(out, "+ contention", e->contention_s, t->contention_s, p->expected_s);
    print_share(out, "- at the same time", e->hidden_s, t->hidden_s, p->expected_s);
    sp_cost_print(out, job);
    fprintf(out, "%sHBM of a chip%s\n", bold, plain);
    print_memory(&p->memory, out);
    if (p->memory.kv_elsewhere > 0)
        fprintf(out, "  %-22s %9s  in the memory of tp's other chips\n", "KV cache elsewhere",
                sp_bytes(p->memory.kv_elsewhere).text);
    fprintf(out, "%swhere the axes lie, from the inside%s\n", bold, plain);
    print_levels(job, p, out);
}

/* ---- the others ---- */

static void print_why(const sp_job *job, FILE *out)
{
    const int64_t most = sp_top(job, 10) > 40 ? sp_top(job, 10) : 40;
    int64_t shown = 0;
    fprintf(out, "\n%swhy not%s\n", bold, plain);
    for (int64_t i = job->list.legal; i < job->list.kept; i++) {
        const trn_plan *p = &job->plan[i];
        const int64_t count = sp_told_by(job, i);
        if (count && shown++ == most) {
            fprintf(out, "          and more; --csv has all\n");
            return;
        }
        if (count == 1)
            fprintf(out, "  %6d  %s  %s(%s)%s\n", 1, p->why, faint, sp_degrees(p).text, plain);
        else if (count)
            fprintf(out, "  %6lld  %s\n", (long long)count, p->why);
    }
}

static void print_scaling(const sp_job *job, FILE *out)
{
    const sp_scale *first = NULL;
    fprintf(out, "\n%s    chips     batch  all_reduce of 1 GiB   expected  tokens/s  per chip  plan%s\n", bold, plain);
    for (int i = 0; i < job->scales; i++) {
        const sp_scale *s = &job->scale[i];
        fprintf(out, "  %7s  %8s  %9s %-10s", sp_count(s->chips).text, sp_count(s->batch).text,
                s->chips > 1 ? sp_time(s->all_reduce_s).text : "-",
                s->chips > 1 ? trn_algorithm_name(s->algorithm) : "");
        if (!s->legal) {
            fprintf(out, "  no plan: %s\n", s->plan.why);
            continue;
        }
        if (!first) first = s;
        const double each = s->plan.expected_tokens_per_s / s->chips;
        fprintf(out, "  %8s  %8s  %8s  %s\n", sp_time(s->plan.expected_s).text,
                sp_si(s->plan.expected_tokens_per_s).text,
                sp_percent(each / (first->plan.expected_tokens_per_s / first->chips)).text, sp_degrees(&s->plan).text);
    }
}

void sp_print_text(FILE *out, const sp_job *job)
{
    choose_colours(out);
    if (job->options.measureds) sp_print_calibrated(out, job);
    print_head(job, out);
    print_table(job, out);
    print_best(job, out);
    if (job->options.why) print_why(job, out);
    if (job->options.scaling) print_scaling(job, out);
    if (sp_pareto_asked(&job->options)) sp_pareto_print(out, job);
    if (job->options.serving.rates) sp_serve_print(out, job);
    if (job->options.sweep.values) sp_sweep_print(out, job);
    if (job->options.tornado) sp_tornado_print(out, job);
    fprintf(out,
            "\n%sResults of a model, never measurements. bound: no plan is faster; ideal: all rates as documented; "
            "expected: what\npublished times say is reached of them (--assumptions), which ranks the plans; tokens/s, "
            "MFU and first are expected.\nouter: the axis that lies outermost.%s\n",
            faint, plain);
    if (job->args.lnc)
        fprintf(out, "%stp: in logical cores of %d core%s; chips: the chips that they are on.%s\n", faint,
                job->args.lnc, job->args.lnc > 1 ? "s" : "", plain);
}

/* report.c - the HTML page.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include "app/page.h"
#include "io/say.h"

/* ---- what it needs beyond the style that all pages share ---- */

static const char style[] =
    /* parts of a step: work, what waits for others, what waits for nothing; and parts of the memory */
    ":root{--t0:var(--f2);--t1:var(--f1);--t2:var(--f4);--t3:var(--f0);--t4:var(--startup);"
    "--t5:var(--f3);--t6:var(--dma);--t7:var(--f5);--t8:var(--peer);--t9:var(--hbm);"
    "--m0:var(--f2);--m1:var(--f0);--m2:var(--f4);--m3:var(--f1);--m4:var(--f3);--m5:var(--peer)}"
    "main{max-width:1240px}"
    "table{margin-top:0}"
    "th{vertical-align:bottom}"
    "tr:last-child td{border-bottom:0}"
    "tr.best td{font-weight:620}"
    ".wrap{white-space:normal}"
    ".bad{color:var(--bad)}"
    ".bar{display:flex;height:12px;background:var(--track);border-radius:3px;overflow:hidden;min-width:150px}"
    ".bar i{display:block;height:100%;box-shadow:inset -1px 0 var(--card)}"
    ".time{background:none}"
    "object{display:block}"
    ".few{width:auto;min-width:min(100%,480px)}"
    "details .scroll{margin-top:10px}";

/* ---- the page ---- */

enum { SHOWN = 20, REASONS_SHOWN = 60 };

static void open_table(FILE *out, const char *label, bool few)
{
    fputs("<div class=card>", out);
    app_scroll_open(out, label);
    fputs(few ? "<table class=few>" : "<table>", out);
}

static void close_table(FILE *out)
{
    fputs("</table>", out);
    app_scroll_close(out);
    fputs("</div>\n", out);
}

static void close_details(FILE *out)
{
    fputs("</table>", out);
    app_scroll_close(out);
    fputs("</details>\n", out);
}

static void print_facts(const sp_job *job, FILE *out)
{
    char text[512];
    const trn_plan *p = &job->plan[0];
    snprintf(text, sizeof text, "parameters%s%s", job->size.active < job->size.total ? ", at work on a token: " : "",
             job->size.active < job->size.total ? sp_si(job->size.active).text : "");
    fputs("<div class=facts>", out);
    app_fact(out, sp_si(job->size.total).text, text);
    app_fact(out, sp_count(job->net.chips).text, "chips");
    snprintf(text, sizeof text, "of %s sets of degrees are legal", sp_count(job->list.found).text);
    app_fact(out, sp_count(job->list.legal).text, text);
    if (job->list.legal) {
        snprintf(text, sizeof text, "expected of a %s with %s, four of five times %s to %s; ideal %s, bound %s",
                 sp_unit_of_work(job), sp_degrees(p).text, sp_time(p->expected_low_s).text,
                 sp_time(p->expected_high_s).text, sp_time(p->time_s).text, sp_time(p->bound_s).text);
        app_fact(out, sp_time(p->expected_s).text, text);
        if (job->args.job != TRN_JOB_TRAIN)
            app_fact(out, sp_time(p->expected_ttft_s).text, "expected to the first token of one prompt");
        app_fact(out, sp_si(p->expected_tokens_per_s).text, "tokens a second expected, whole machine");
        app_fact(out, sp_percent(p->expected_mfu).text, "of the published flop/s expected");
        snprintf(text, sizeof text, "of %s of HBM on the fullest chip", sp_bytes(p->memory.capacity).text);
        app_fact(out, sp_bytes(p->memory.total).text, text);
        sp_cost_facts(out, job);
    }
    fputs("</div>\n", out);
}

static void print_notes(const sp_job *job, FILE *out)
{
    sp_notes notes;
    sp_notes_of(job, &notes);
    if (!notes.count) return;
    fputs("<ul class=notes>", out);
    for (int i = 0; i < notes.count; i++) {
        fputs("<li>", out);
        app_escape(out, notes.text[i]);
    }
    fputs("</ul>\n", out);
}

/* ---- the plans ---- */

static void print_cells(const sp_job *job, const trn_plan *p, int64_t rank, double longest, FILE *out)
{
    const bool train = job->args.job == TRN_JOB_TRAIN;
    fprintf(out, "<tr%s><td class=r>%lld<td class=r>%d", rank == 1 ? " class=best" : "", (long long)rank, sp_tp(p));
    if (job->args.lnc) fprintf(out, "<td class=r>%s", sp_tp_chips(job, p).text);
    fprintf(out, "<td class=r>%d<td class=r>%d<td class=r>%s", p->cp, p->ep, sp_count(p->dp).text);
    fprintf(out, "<td class=r>%d<td>%s<td>%s<td class=r>%lld x %lld", p->pp,
            p->dp == 1 || p->pp == 1      ? ""
            : p->order == TRN_ORDER_DP_PP ? "pp"
                                          : "dp",
            p->sp ? "sp" : "", (long long)p->microbatches, (long long)p->microbatch);
    if (train) fprintf(out, "<td>%s<td>%s", trn_zero_name(p->zero), trn_recompute_name(p->recompute));
    fprintf(out, "<td class=r>%s<td class=r>%s<td class=r>%s", sp_time(p->bound_s).text, sp_time(p->time_s).text,
            sp_time(p->expected_s).text);
    fprintf(out, "<td class=r>%s to %s", sp_time(p->expected_low_s).text, sp_time(p->expected_high_s).text);
    if (!train) fprintf(out, "<td class=r>%s", sp_time(p->expected_ttft_s).text);
    fprintf(out, "<td class=r>%s<td class=r>%s<td style='min-width:160px;width:30%%'>",
            sp_si(p->expected_tokens_per_s).text, sp_percent(p->expected_mfu).text);
    sp_time_bar(out, p, longest);
    fprintf(out, "<td>%s</tr>\n", trn_plan_part_name(p->bottleneck));
}

static int64_t shown(const sp_job *job)
{
    const int64_t most = sp_top(job, SHOWN);
    return job->list.legal < most ? job->list.legal : most;
}

static void print_plans(const sp_job *job, FILE *out)
{
    const bool train = job->args.job == TRN_JOB_TRAIN;
    const int64_t count = shown(job);
    if (!count) return;
    fputs("<h2>The plans</h2><p>Each row is the fastest variant of its degrees: microbatch, sequence parallelism, what "
          "data "
          "parallelism shares out and what is computed again are chosen to fit and to be fast. The bars show what "
          "fills the "
          "time.</p>",
          out);
    sp_legend_time(out);
    fputs("<div class=card>", out);
    app_scroll_open(out, "the plans");
    fprintf(out,
            "<table><tr><th class=r>rank<th class=r>tp%s<th class=r>cp<th class=r>ep<th class=r>dp<th "
            "class=r>pp<th>outer<th><th class=r>microbatches",
            job->args.lnc ? ", cores<th class=r>tp, chips" : "");
    fprintf(
        out, "%s<th class=r>tokens/s<th class=r>MFU<th><th>most of it</tr>\n",
        train ? "<th>shared out<th>again<th class=r>bound<th class=r>ideal<th class=r>expected<th class=r>four of five"
              : "<th class=r>bound<th class=r>ideal<th class=r>expected<th "
                "class=r>four of five<th class=r>first token");
    for (int64_t i = 0; i < count; i++) print_cells(job, &job->plan[i], i + 1, job->plan[count - 1].expected_s, out);
    close_table(out);
}

static void print_memory(const sp_job *job, FILE *out)
{
    if (!shown(job)) return;
    fputs("<h2>Memory</h2><p>HBM of the fullest chip; the track is all there is.</p>", out);
    sp_legend_memory(out);
    open_table(out, "memory of the plans", false);
    for (int64_t i = 0; i < shown(job) && i < 10; i++) {
        const trn_plan *p = &job->plan[i];
        fprintf(out, "<tr><td style='width:1%%'>%s<td style='width:70%%'>", sp_degrees(p).text);
        sp_memory_bar(out, &p->memory);
        fprintf(out, "<td class=r>%s<td class=r>of %s</tr>\n", sp_bytes(p->memory.total).text,
                sp_bytes(p->memory.capacity).text);
    }
    close_table(out);
}

/* ---- the machine ---- */

/* The rates of a graph's links: one, or from the least to the most. */
static void print_wires(const trn_topology *net, int level, FILE *out)
{
    double least = 0, most = 0;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        const double rate = w->bytes_per_s * (w->count > 1 ? w->count : 1);
        if (w->level != level) continue;
        if (least <= 0 || rate < least) least = rate;
        if (rate > most) most = rate;
    }
    fprintf(out, "%.4g", least / 1e9);
    if (most > least) fprintf(out, " to %.4g", most / 1e9);
}

static void print_levels(const sp_job *job, FILE *out)
{
    static const char *const wiring[] = { "none of its own", "ring", "each to each", "switch", "graph" };
    char text[96];
    fputs("<div class=card><h3>Levels</h3>", out);
    app_scroll_open(out, "the levels of the network");
    fputs("<table><tr><th>level<th class=r>chips<th>wired as<th class=r>GB/s one way<th>", out);
    if (job->list.legal) fputs("best plan", out);
    fputs("</tr>\n", out);
    for (int l = 0; l < job->net.levels; l++) {
        const trn_level *at = &job->net.level[l];
        text[0] = 0;
        if (job->list.legal) trn_plan_level_text(&job->net, &job->plan[0], l, text, sizeof text);
        fprintf(out, "<tr><td>%s<td class=r>%s<td>%s<td class=r>", trn_level_name(at), sp_count(at->size).text,
                wiring[at->wiring]);
        if (at->wiring == TRN_WIRING_GRAPH)
            print_wires(&job->net, l, out);
        else if (at->bytes_per_s > 0)
            fprintf(out, "%.4g", at->bytes_per_s / 1e9);
        fprintf(out, "<td>%s</tr>\n", text);
    }
    close_table(out);
}

static void print_machine(const sp_job *job, FILE *out)
{
    fputs(
        "<h2>The machine</h2><p>Axes of the best plan lie on its levels from the inside: first tp, then cp, ep, and dp "
        "and pp in the order that is faster.</p><div class=card>",
        out);
    sp_topology_picture(out, job);
    fputs("</div>\n", out);
    print_levels(job, out);
}

/* ---- time ---- */

static void print_parts(const sp_job *job, FILE *out)
{
    const trn_plan *p = &job->plan[0];
    open_table(out, "parts of the time", true);
    for (int i = 0; i < TRN_PART_COUNT; i++) {
        const double s = sp_part_s(&p->expected, (trn_plan_part)i);
        if (s > 0)
            fprintf(out, "<tr><td>%s<td class=r>%s<td class=r>%s</tr>", trn_plan_part_name((trn_plan_part)i),
                    sp_time(s).text, sp_percent(s / p->expected_s).text);
    }
    if (p->expected.hidden_s > 0)
        fprintf(out,
                "<tr><td>communication beside work<td class=r>- %s<td></tr><tr><td>contention<td class=r>%s<td></tr>",
                sp_time(p->expected.hidden_s).text, sp_time(p->expected.contention_s).text);
    fprintf(out, "<tr class=best><td>a %s<td class=r>%s<td class=r>100 %%</tr>", sp_unit_of_work(job),
            sp_time(p->expected_s).text);
    close_table(out);
}

static void print_timelines(const sp_job *job, FILE *out)
{
    fprintf(out, "<h2>The best plan in time</h2><p>%s. One chip stands for all of its stage.</p>",
            sp_degrees(&job->plan[0]).text);
    print_parts(job, out);
    if (job->args.job == TRN_JOB_TRAIN || job->plan[0].pp > 1 || job->plan[0].microbatches > 1) {
        fputs("<div class=card>", out);
        sp_step_picture(out, job);
        fputs("</div>\n", out);
    }
    if (job->model.tables) return; /* no layers */
    fputs("<div class=card>", out);
    sp_layer_picture(out, job);
    fputs("</div>\n", out);
    sp_roofline_picture(out, job);
}

static void print_scaling(const sp_job *job, FILE *out)
{
    if (!job->scales) return;
    fputs("<h2>Scaling</h2><p>Parts of the same system, each with as many sequences per chip.</p>", out);
    sp_curves(out, job);
}

/* ---- why not ---- */

static void print_reasons(const sp_job *job, FILE *out)
{
    int64_t told = 0;
    if (job->list.legal == job->list.found) return;
    fprintf(out, "<h2>Why not</h2><p>%s sets of degrees cannot be.</p>",
            sp_count(job->list.found - job->list.legal).text);
    open_table(out, "reasons, and how many sets of degrees each one rules out", false);
    for (int i = 1; i < TRN_PLAN_REASON_COUNT; i++)
        if (job->list.reason[i])
            fprintf(out, "<tr><td class=r style='width:1%%'>%s<td>%s</tr>", sp_count(job->list.reason[i]).text,
                    trn_plan_reason_name((trn_plan_reason)i));
    close_table(out);
    fputs("<details class=card><summary>sentence by sentence</summary>", out);
    app_scroll_open(out, "why plans are not legal");
    fputs("<table>", out);
    for (int64_t i = job->list.legal; i < job->list.kept && told < REASONS_SHOWN; i++) {
        const int64_t count = sp_told_by(job, i);
        if (!count) continue;
        fprintf(out, "<tr><td class=r>%s<td class=wrap>", sp_count(count).text);
        app_escape(out, job->plan[i].why);
        fprintf(out, "<td>%s</tr>", count == 1 ? sp_degrees(&job->plan[i]).text : "");
        told++;
    }
    close_details(out);
}

static void print_assumptions(const sp_job *job, FILE *out)
{
    trn_plan_assumptions a = trn_plan_assumptions_default(&job->args.assumptions);
    trn_spec_field field;
    fputs("<h2>What is assumed</h2><p>Rates and sizes of the chips are those of their published tables; these numbers "
          "are "
          "published nowhere, and can be set.</p><details class=card><summary>coefficients</summary>",
          out);
    app_scroll_open(out, "coefficients");
    fputs("<table>", out);
    for (int i = 0; trn_plan_assumption_at(i, &field); i++)
        fprintf(out, "<tr><td>%s<td class=r>%g<td>%s<td class=wrap>%s</tr>", field.field,
                *sp_assumption(&a, field.field), field.unit, field.where);
    close_details(out);
}

static void print_nearest(const sp_job *job, FILE *out)
{
    fprintf(out, "<h2>No plan is legal</h2><p class=bad>The nearest, %s: ", sp_degrees(&job->plan[0]).text);
    app_escape(out, job->plan[0].why);
    fputs(".</p>", out);
}

void sp_print_report(FILE *out, const void *context)
{
    const sp_job *job = context;
    char text[256], formats[256];
    sp_describe_job(job, text, sizeof text);
    sp_describe_formats(job, formats, sizeof formats);
    char title[256];
    io_say_in(title, sizeof title, 180, "%s on %s", job->model.name, job->net.name);
    app_page_open(out, title);
    fprintf(out, "<style>%s</style><h1>", style);
    app_escape(out, title);
    fprintf(out, "</h1><p class=lead>How to spread it: %s. %c%s.</p>\n", text, formats[0] - 'a' + 'A', formats + 1);
    print_facts(job, out);
    print_notes(job, out);
    if (job->list.legal)
        print_plans(job, out);
    else
        print_nearest(job, out);
    if (job->list.legal) print_memory(job, out);
    if (job->list.legal) print_timelines(job, out);
    print_machine(job, out);
    print_scaling(job, out);
    sp_pareto_report(out, job);
    sp_serve_report(out, job);
    sp_sweep_report(out, job);
    sp_tornado_report(out, job);
    print_reasons(job, out);
    print_assumptions(job, out);
    fprintf(
        out,
        "<footer><p>trnmath %s. Every time on this page is a result of a model of the hardware, never a measurement "
        "of it.</p></footer>",
        TRN_VERSION);
    app_page_close(out);
}

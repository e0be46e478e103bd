/* text.c - what subcommand matmul prints for people: a screen for each work, or with --all every row.
 * SPDX-License-Identifier: MIT
 */
#include "matmul.h"

#include <math.h>
#include <string.h>

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

/* ---- what is shown ---- */

static bool shows(const tb_job *job, const tb_format *format) { return !job->headline || format == job->headline; }

/* Was this item run, and is this its first row? */
static bool measured(const tb_job *job, const tb_item *item, int work)
{
    return item->work == work && item->host && item->host->ran && !item->repeated && shows(job, item->format);
}

static const tb_item *item_of(const tb_job *job, int work, int product, int format)
{
    for (int i = 0; i < job->items; i++)
        if (job->item[i].work == work && job->item[i].product == product && job->item[i].format == job->format[format])
            return &job->item[i];
    return NULL;
}

static const char *time_text(char *text, size_t size, double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } row[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    char number[32];
    int i = 0;
    while (i < 2 && seconds < row[i].unit) i++;
    snprintf(text, size, "%s %s", app_human(number, sizeof number, seconds / row[i].unit), row[i].name);
    return text;
}

static void heading(const char *text)
{
    const bool colour = app_colour(stdout);
    fputs(colour ? "\033[1;36m" : "", stdout);
    app_say(stdout, "%s", text);
    puts(colour ? "\033[0m" : "");
}

static void print_products(const tb_work *w)
{
    static const app_column column[] = {
        { "layer", APP_TEXT, "", "" }, { "M", APP_INTEGER, "", "" },        { "N", APP_INTEGER, "", "" },
        { "K", APP_INTEGER, "", "" },  { "rounds", APP_INTEGER, "", "" },   { "experts at once", APP_INTEGER, "", "" },
        { "GFLOP", APP_REAL, "", "" }, { "weights (M)", APP_REAL, "", "" },
    };
    app_table t;
    app_table_start(&t, COLUMNS(column));
    for (int i = 0; i < w->products; i++) {
        const tb_product *p = &w->product[i];
        app_row(&t);
        app_text(&t, "%s", p->layer);
        app_integer(&t, p->m);
        app_integer(&t, p->n);
        app_integer(&t, p->k);
        app_integer(&t, p->rounds);
        if (p->together > 1)
            app_integer(&t, p->together);
        else
            app_missing(&t);
        app_real(&t, 2e-9 * (double)p->m * (double)p->n * (double)p->k * (double)(p->rounds * p->together));
        app_real(&t, p->weights / 1e6);
    }
    app_print_table(stdout, &t);
    app_table_free(&t);
}

/* The names of all layers that were answered by one measurement. */
static void layer_names(const tb_job *job, const tb_item *item, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < job->items && used < size; i++) {
        const tb_item *other = &job->item[i];
        if (other->host != item->host || other->work != item->work || other->format != item->format) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                 job->work[other->work].product[other->product].layer);
    }
}

static void check_cell(app_table *t, const tb_check *check)
{
    if (!check->defined)
        app_text(t, "not covered");
    else if (check->wrong)
        app_text(t, "%lld of %lld WRONG", (long long)check->wrong, (long long)check->compared);
    else
        app_text(t, "%lld equal", (long long)check->compared);
}

static bool any_beside_bf16(const tb_job *job)
{
    for (int i = 0; i < job->items; i++)
        if (job->item[i].host && job->item[i].host->bf16.there) return true;
    return false;
}

static void peers_cells(app_table *t, const tb_job *job, const tb_host *h)
{
    for (int i = 0; i < TB_PEERS; i++) {
        const tb_host_peer *peer = &h->peer[i];
        if (!job->host.peer[i]) continue;
        app_real(t, peer->there ? peer->flops_per_s / 1e9 : NAN);
        app_real(t, peer->there ? peer->ratio : NAN);
    }
}

/* "amx: 97 % exact, 3 % half", "avx512-bf16: 100 % pairs" */
static void unit_cell(app_table *t, const tb_host *h)
{
    const trn_matmul_units *u = &h->units;
    const double exact = tb_unit_share(u, u->whole + u->chains), half = tb_unit_share(u, u->half);
    char text[64] = "";
    if (h->unit == TRN_ISA_AUTO) {
        app_text(t, "vectors");
        return;
    }
    if (u->pairs > 0) {
        app_text(t, "%s: %.0f %% pairs", trn_isa_text(h->unit), 100 * tb_unit_share(u, u->pairs));
        return;
    }
    if (half > 0) snprintf(text, sizeof text, "%s%.0f %% half", exact > 0 ? ", " : "", 100 * half);
    if (exact > 0)
        app_text(t, "%s: %.0f %% exact%s", trn_isa_text(h->unit), 100 * exact, text);
    else
        app_text(t, "%s: %s", trn_isa_text(h->unit), text);
}

static void host_row(app_table *t, const tb_job *job, const tb_item *item)
{
    const tb_host *h = item->host;
    char layers[160];
    layer_names(job, item, layers, sizeof layers);
    app_row(t);
    app_text(t, "%s", layers);
    app_text(t, "%lldx%lldx%lld", (long long)h->m, (long long)h->n, (long long)h->k);
    app_text(t, "%s", item->format->name);
    app_real(t, h->flops_per_s / 1e9);
    app_real(t, 100 * h->share_of_peak);
    unit_cell(t, h);
    if (any_beside_bf16(job)) app_real(t, h->bf16.there ? h->bf16.ratio : NAN);
    peers_cells(t, job, h);
    check_cell(t, &h->check);
    app_text(t, "%016llx", (unsigned long long)h->digest);
}

static int peer_columns(const tb_job *job, app_column *column, int n)
{
    static const char *const rate[TB_PEERS] = { "OpenBLAS", "oneDNN f32", "f32 packed", "oneDNN bf16" };
    for (int i = 0; i < TB_PEERS; i++) {
        if (!job->host.peer[i]) continue;
        column[n++] = (app_column){ rate[i], APP_REAL, "", "" };
        column[n++] = (app_column){ "ratio", APP_REAL, "", "" };
    }
    return n;
}

static int host_columns(const tb_job *job, app_column *column)
{
    static const app_column fixed[] = { { "on this host", APP_TEXT, "", "" }, { "run as MxNxK", APP_TEXT, "", "" },
                                        { "format", APP_TEXT, "", "" },       { "GF/s", APP_REAL, "", "" },
                                        { "% of peak", APP_REAL, "", "" },    { "by", APP_TEXT, "", "" } };
    static const app_column last[] = { { "bit check", APP_TEXT, "", "" }, { "digest", APP_TEXT, "", "" } };
    int n = 0;
    for (int i = 0; i < 6; i++) column[n++] = fixed[i];
    if (any_beside_bf16(job)) column[n++] = (app_column){ "of bf16", APP_REAL, "", "" };
    n = peer_columns(job, column, n);
    for (int i = 0; i < 2; i++) column[n++] = last[i];
    return n;
}

static void print_host(const tb_job *job, int work)
{
    app_column column[10 + 2 * TB_PEERS];
    app_table t;
    app_table_start(&t, column, host_columns(job, column));
    for (int i = 0; i < job->items; i++) {
        if (measured(job, &job->item[i], work)) host_row(&t, job, &job->item[i]);
    }
    if (t.rows) app_print_table(stdout, &t);
    if (t.rows) putchar('\n');
    app_table_free(&t);
}

enum { SYSTEM_CELLS = 9 };

static void system_row(app_table *t, const tb_job *job, int work, int format, trn_system system)
{
    const tb_work *w = &job->work[work];
    const trn_system_spec *spec = trn_system_spec_of(system);
    const tb_cost total = tb_work_total(job, work, job->format[format], system);
    char text[64];
    app_row(t);
    app_text(t, "%s", spec->name);
    app_integer(t, trn_spec_chips(spec));
    app_text(t, "%s", job->format[format]->name);
    app_real(t, tb_format_spec_tflops(job->format[format], spec));
    if (!total.there) {
        app_missing(t), app_missing(t), app_text(t, "not on %s", spec->server->chip->name), app_missing(t),
            app_missing(t);
    } else {
        app_real(t, total.tflops);
        app_real(t, 100 * total.share_of_spec);
        if (total.limit_share < 0.995)
            app_text(t, "%s (%.0f %%)", trn_limit_name(total.limit), 100 * total.limit_share);
        else
            app_text(t, "%s", trn_limit_name(total.limit));
        app_text(t, "%s", time_text(text, sizeof text, total.time_s));
        app_text(t, "%s", total.fits ? "yes" : "no");
    }
    for (int p = 0; w->products > 1 && p < w->products; p++) {
        const tb_cost *cost = &item_of(job, work, p, format)->cost[system];
        app_real(t, cost->there ? 100 * cost->share_of_spec : NAN);
    }
}

static void print_systems(const tb_job *job, int work)
{
    static const app_column fixed[SYSTEM_CELLS] = {
        { "system", APP_TEXT, "", "" },      { "chips", APP_INTEGER, "", "" }, { "format", APP_TEXT, "", "" },
        { "spec TFLOPS", APP_REAL, "", "" }, { "achieved", APP_REAL, "", "" }, { "% of spec", APP_REAL, "", "" },
        { "limited by", APP_TEXT, "", "" },  { "time", APP_TEXT, "", "" },     { "fits HBM", APP_TEXT, "", "" },
    };
    const tb_work *w = &job->work[work];
    app_column column[SYSTEM_CELLS + TB_MAX_LAYERS];
    memcpy(column, fixed, sizeof fixed);
    char name[TB_MAX_LAYERS][32]; /* without the "_proj" that nearly all have */
    for (int p = 0; p < w->products; p++) {
        const char *layer = w->product[p].layer, *tail = strstr(layer, "_proj");
        snprintf(name[p], sizeof name[p], "%.*s", (int)(tail ? tail - layer : 31), layer);
        column[SYSTEM_CELLS + p] = (app_column){ name[p], APP_REAL, "", "" };
    }
    app_table t;
    app_table_start(&t, column, SYSTEM_CELLS + (w->products > 1 ? w->products : 0));
    for (int f = 0; f < job->formats; f++)
        for (int s = 0; s < TRN_SYSTEM_COUNT; s++)
            if (job->system[s] && shows(job, job->format[f])) system_row(&t, job, work, f, (trn_system)s);
    app_print_table(stdout, &t);
    app_table_free(&t);
}

/* ---- a screen for a model: one line per system for all its phases ---- */

typedef struct span {
    int first, end; /* works: the phases of one model */
} span;

static span phases_from(const tb_job *job, int work)
{
    span s = { work, work + 1 };
    while (s.end < job->works && job->work[s.end].model == job->work[work].model) s.end++;
    return s;
}

/* The product that comes nearest to what is published. */
static const tb_item *best_shape(const tb_job *job, span s, const tb_format *format, trn_system system)
{
    const tb_item *best = NULL;
    for (int i = 0; i < job->items; i++) {
        const tb_item *item = &job->item[i];
        if (item->work < s.first || item->work >= s.end || item->format != format) continue;
        if (!item->cost[system].there || isnan(item->cost[system].share_of_spec)) continue;
        if (!best || item->cost[system].share_of_spec > best->cost[system].share_of_spec) best = item;
    }
    return best;
}

/* The first phase is told by its rate, the others by their time: 100 columns have no room for both. */
static void time_cell(app_table *t, const tb_cost *total)
{
    char text[64];
    if (total->there)
        app_text(t, "%s", time_text(text, sizeof text, total->time_s));
    else
        app_missing(t);
}

static void model_row(app_table *t, const tb_job *job, span s, const tb_format *format, trn_system system)
{
    const trn_system_spec *spec = trn_system_spec_of(system);
    const tb_cost first = tb_work_total(job, s.first, format, system);
    const tb_item *best = best_shape(job, s, format, system);
    app_row(t);
    app_text(t, "%s", spec->name);
    app_integer(t, trn_spec_chips(spec));
    app_real(t, tb_format_spec_tflops(format, spec));
    app_real(t, first.there ? first.tflops : NAN);
    app_real(t, first.there ? 100 * first.share_of_spec : NAN);
    if (s.end == s.first + 1) time_cell(t, &first);
    for (int w = s.first + 1; w < s.end; w++) {
        const tb_cost other = tb_work_total(job, w, format, system);
        time_cell(t, &other);
    }
    if (best) {
        const tb_product *p = &job->work[best->work].product[best->product];
        app_text(t, "%lldx%lldx%lld", (long long)p->m, (long long)p->n, (long long)p->k);
        app_real(t, 100 * best->cost[system].share_of_spec);
    } else {
        if (first.there)
            app_missing(t);
        else
            app_text(t, "not on %s", spec->server->chip->name);
        app_missing(t);
    }
}

static void print_model_systems(const tb_job *job, span s, const tb_format *format)
{
    app_column column[8 + TB_PHASES] = {
        { "system", APP_TEXT, "", "" },      { "chips", APP_INTEGER, "", "" },
        { "spec TFLOPS", APP_REAL, "", "" }, { job->work[s.first].phase, APP_REAL, "", "" },
        { "% spec", APP_REAL, "", "" },
    };
    int n = 5;
    if (s.end == s.first + 1) column[n++] = (app_column){ "time", APP_TEXT, "", "" };
    for (int w = s.first + 1; w < s.end; w++) column[n++] = (app_column){ job->work[w].phase, APP_TEXT, "", "" };
    column[n++] = (app_column){ "best shape", APP_TEXT, "", "" };
    column[n++] = (app_column){ "its %", APP_REAL, "", "" };
    app_table t;
    app_table_start(&t, column, n);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (job->system[i]) model_row(&t, job, s, format, (trn_system)i);
    app_print_table(stdout, &t);
    app_table_free(&t);
}

/* The fastest product of a phase on this host, and the checks of all of them. */
static void model_host_row(app_table *t, const tb_job *job, int work, const tb_format *format)
{
    const tb_host *best = NULL;
    tb_check all = { true, 0, 0, 0, 0, 0, 0 };
    for (int i = 0; i < job->items; i++) {
        const tb_item *item = &job->item[i];
        if (item->format != format || !measured(job, item, work)) continue;
        if (!best || item->host->flops_per_s > best->flops_per_s) best = item->host;
        all.defined = all.defined && item->host->check.defined;
        all.compared += item->host->check.compared;
        all.wrong += item->host->check.wrong;
    }
    if (!best) return;
    app_row(t);
    app_text(t, "%s", job->work[work].phase);
    app_text(t, "%lldx%lldx%lld", (long long)best->m, (long long)best->n, (long long)best->k);
    app_real(t, best->flops_per_s / 1e9);
    app_real(t, 100 * best->share_of_peak);
    unit_cell(t, best);
    peers_cells(t, job, best);
    check_cell(t, &all);
}

static void print_model_host(const tb_job *job, span s, const tb_format *format)
{
    app_column column[6 + 2 * TB_PEERS] = { { "on this host", APP_TEXT, "", "" },
                                            { "fastest shape", APP_TEXT, "", "" },
                                            { "GF/s", APP_REAL, "", "" },
                                            { "% of peak", APP_REAL, "", "" },
                                            { "by", APP_TEXT, "", "" } };
    int n = peer_columns(job, column, 5);
    column[n++] = (app_column){ "bit check of all", APP_TEXT, "", "" };
    app_table t;
    app_table_start(&t, column, n);
    for (int w = s.first; w < s.end; w++) model_host_row(&t, job, w, format);
    if (t.rows) putchar('\n'), app_print_table(stdout, &t);
    app_table_free(&t);
}

static void print_model(const tb_job *job, span s)
{
    bool between = false;
    for (int f = 0; f < job->formats; f++) {
        if (!shows(job, job->format[f])) continue;
        char title[320];
        int n = snprintf(title, sizeof title, "%s in %s:", job->work[s.first].name, job->format[f]->name);
        for (int w = s.first; w < s.end; w++)
            n += snprintf(title + n, sizeof title - (size_t)n, "%s %s of %lld token%s", w == s.first ? "" : ",",
                          job->work[w].phase, (long long)job->work[w].tokens, job->work[w].tokens == 1 ? "" : "s");
        if (between) putchar('\n');
        between = true;
        heading(title);
        print_model_systems(job, s, job->format[f]);
        print_model_host(job, s, job->format[f]);
    }
}

/* ---- all of it ---- */

static void print_method(const tb_job *job)
{
    bool layers = false;
    for (int i = 0; i < job->works; i++) layers = layers || job->work[i].products > 1;
    printf("\nModelled: %s;\noperands lie in HBM where they are used, nothing is communicated.",
           tb_share_text(job->share));
    if (layers && !job->all) fputs(" Best shape: nearest to spec.", stdout);
    if (layers && job->all) fputs(" Under the names of layers: % of spec of each.", stdout);
    putchar('\n');
    if (job->run_host)
        printf("On this host: %s, %s, %d thread%s,\n%s; numerics %s.\n"
               "GF/s is the best round; %% of peak (a multiply-add burst) and ratios are medians over rounds.\n",
               tb_host_processor(), app_isa_used(job->host.isa), job->host.threads, job->host.threads == 1 ? "" : "s",
               tb_peer_version(TB_OPENBLAS) ? tb_peer_version(TB_OPENBLAS) : "no OpenBLAS",
               job->numerics_text ? job->numerics_text : "default");
    if (!job->all) puts("--all prints every format and every layer; --help tells more.");
}

static void print_work(const tb_job *job, int work)
{
    const tb_work *w = &job->work[work];
    char title[320];
    if (w->model)
        snprintf(title, sizeof title, "%s, %s, %lld token%s", w->name, w->phase, (long long)w->tokens,
                 w->tokens == 1 ? "" : "s");
    else
        snprintf(title, sizeof title, "%s", w->name);
    heading(title);
    if (w->model) print_products(w), putchar('\n');
    print_host(job, work);
    print_systems(job, work);
}

void tb_print_text(const tb_job *job)
{
    for (int i = 0; i < job->works;) {
        const bool screen = job->work[i].model && !job->all;
        const span s = phases_from(job, i);
        if (screen)
            print_model(job, s);
        else
            print_work(job, i);
        i = screen ? s.end : i + 1;
        if (i < job->works) putchar('\n');
    }
    print_method(job);
}

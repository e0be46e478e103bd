/* trnbench_rows.c - what subcommand matmul prints: tables for people, one tidy row per tuple for programs.
 * SPDX-License-Identifier: MIT
 */
#include "trnbench_matmul.h"

#include <math.h>
#include <string.h>

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

static const tb_item *item_of(const tb_job *job, int work, int product, int format)
{
    for (int i = 0; i < job->items; i++)
        if (job->item[i].work == work && job->item[i].product == product && job->item[i].format == job->format[format])
            return &job->item[i];
    return NULL;
}

tb_cost tb_work_total(const tb_job *job, int work, const tb_format *format, trn_system system)
{
    const tb_work *w = &job->work[work];
    tb_cost part[TB_MAX_LAYERS];
    int n = 0;
    for (int i = 0; i < job->items && n < w->products; i++)
        if (job->item[i].work == work && job->item[i].format == format) part[n++] = job->item[i].cost[system];
    return tb_cost_total(part, n, w->product, format, trn_system_spec_of(system), job->share);
}

double tb_attention(const tb_job *job)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < job->items; i++)
        if (job->item[i].host && job->item[i].host->ran) sum += job->item[i].host->attention, n++;
    return n ? sum / n : 1;
}

/* ---- for programs ---- */

static const tb_column tidy_columns[] = {
    { "work", TB_TEXT, "", "model, shape or pair of files" },
    { "phase", TB_TEXT, "", "prefill or decode; empty without a model" },
    { "layer", TB_TEXT, "", "the model's name of the weights; empty without a model" },
    { "m", TB_INTEGER, "", "rows of the product" },
    { "n", TB_INTEGER, "", "columns of the product" },
    { "k", TB_INTEGER, "", "depth of the product" },
    { "rounds", TB_INTEGER, "", "times in one forward pass, after each other" },
    { "together", TB_INTEGER, "", "products of a round, at the same time (experts)" },
    { "format", TB_TEXT, "", "as --format calls it" },
    { "a_format", TB_TEXT, "", "of the left operand" },
    { "b_format", TB_TEXT, "", "of the right operand" },
    { "mode", TB_TEXT, "", "of the tensor engine" },
    { "system", TB_TEXT, "", "which machine is modelled" },
    { "chips", TB_INTEGER, "", "of the system" },
    { "group_cores", TB_INTEGER, "", "NeuronCores that share one product" },
    { "spec_tflops", TB_REAL, "1e12/s", "published, whole system, dense" },
    { "model_tflops", TB_REAL, "1e12/s", "by the cost model, whole system" },
    { "percent_of_spec", TB_REAL, "%", "model over spec" },
    { "limit", TB_TEXT, "", "the resource that sets the time" },
    { "model_time_s", TB_REAL, "s", "all rounds" },
    { "tensor_s", TB_REAL, "s", "one product on the busiest core: tensor engine" },
    { "hbm_s", TB_REAL, "s", "the same: HBM" },
    { "dma_s", TB_REAL, "s", "the same: DMA engines" },
    { "flop_per_byte", TB_REAL, "flop/B", "one product on the busiest core: over bytes moved to and from HBM" },
    { "array_percent", TB_REAL, "%", "of the systolic array's own peak" },
    { "weights_fit", TB_INTEGER, "", "1 when the layer's weights fit in the HBM of the group" },
    { "host_m", TB_INTEGER, "", "rows of what was run on this host" },
    { "host_n", TB_INTEGER, "", "columns of it" },
    { "host_k", TB_INTEGER, "", "depth of it" },
    { "host_rounds", TB_INTEGER, "", "rounds of measurement" },
    { "host_gflops", TB_REAL, "1e9/s", "trnmath, best round" },
    { "host_peak_gflops", TB_REAL, "1e9/s", "multiply-add burst, best round" },
    { "host_percent_of_peak", TB_REAL, "%", "median of the ratios within a round" },
    { "host_attention_percent", TB_REAL, "%", "of the time the bursts had the processors; the rest went to others" },
    { "host_bf16_ratio", TB_REAL, "", "trnmath over its own BF16 product, median of the ratios within a round" },
    { "openblas_gflops", TB_REAL, "1e9/s", "sgemm on the same numbers, best round" },
    { "openblas_ratio", TB_REAL, "", "trnmath over OpenBLAS, median of the ratios within a round" },
    { "onednn_f32_gflops", TB_REAL, "1e9/s", "oneDNN f32, plain layouts" },
    { "onednn_f32_ratio", TB_REAL, "", "trnmath over it" },
    { "onednn_f32_packed_gflops", TB_REAL, "1e9/s", "oneDNN f32, weights packed beforehand, packing not timed" },
    { "onednn_f32_packed_ratio", TB_REAL, "", "trnmath over it" },
    { "onednn_bf16_gflops", TB_REAL, "1e9/s", "oneDNN bf16, plain layouts (not the same arithmetic)" },
    { "onednn_bf16_ratio", TB_REAL, "", "trnmath over it" },
    { "checked_outputs", TB_INTEGER, "", "compared bit for bit with the definition" },
    { "wrong_outputs", TB_INTEGER, "", "of those, different" },
    { "digest", TB_TEXT, "", "FNV-1a of the bits of all outputs run here" },
};

static void model_cells(tb_table *t, const trn_system_spec *spec, const tb_format *format, const tb_cost *cost)
{
    tb_text(t, "%s", spec->name);
    tb_integer(t, trn_spec_chips(spec));
    tb_integer(t, (int64_t)cost->group_cores);
    tb_real(t, tb_format_spec_tflops(format, spec));
    tb_real(t, cost->there ? cost->tflops : NAN);
    tb_real(t, cost->there ? 100 * cost->share_of_spec : NAN);
    tb_text(t, "%s", cost->there ? trn_limit_name(cost->limit) : "");
    tb_real(t, cost->there ? cost->time_s : NAN);
}

static void core_cells(tb_table *t, const tb_cost *cost)
{
    const trn_core_cost *c = &cost->core;
    tb_real(t, cost->there ? c->tensor_s : NAN);
    tb_real(t, cost->there ? c->hbm_s : NAN);
    tb_real(t, cost->there ? c->dma_s : NAN);
    tb_real(t, cost->there ? c->flops / c->bytes : NAN);
    tb_real(t, cost->there ? 100 * c->fraction_of_peak : NAN);
    if (cost->there)
        tb_integer(t, cost->fits);
    else
        tb_missing(t);
}

static void peer_cells(tb_table *t, const tb_host_peer *peer)
{
    tb_real(t, peer->there ? peer->flops_per_s / 1e9 : NAN);
    tb_real(t, peer->there ? peer->ratio : NAN);
}

enum { HOST_CELLS = 20 };

static void host_cells(tb_table *t, const tb_host *h)
{
    for (int i = 0; i < HOST_CELLS && !(h && h->ran); i++) tb_missing(t);
    if (!h || !h->ran) return;
    tb_integer(t, h->m);
    tb_integer(t, h->n);
    tb_integer(t, h->k);
    tb_integer(t, h->rounds);
    tb_real(t, h->flops_per_s / 1e9);
    tb_real(t, h->peak_flops_per_s / 1e9);
    tb_real(t, 100 * h->share_of_peak);
    tb_real(t, 100 * h->attention);
    tb_real(t, h->bf16.there ? h->bf16.ratio : NAN);
    for (int i = 0; i < TB_PEERS; i++) peer_cells(t, &h->peer[i]);
    tb_integer(t, h->check.compared);
    tb_integer(t, h->check.wrong);
    tb_text(t, "%016llx", (unsigned long long)h->digest);
}

static void work_cells(tb_table *t, const tb_work *w, const tb_product *p)
{
    tb_text(t, "%s", w->name);
    tb_text(t, "%s", w->phase);
    tb_text(t, "%s", w->model ? p->layer : "");
    tb_integer(t, p->m);
    tb_integer(t, p->n);
    tb_integer(t, p->k);
    tb_integer(t, p->rounds);
    tb_integer(t, p->together);
}

void tb_tidy_columns(tb_table *table) { tb_table_start(table, COLUMNS(tidy_columns)); }

void tb_tidy_rows(tb_table *t, const tb_job *job)
{
    for (int i = 0; i < job->items; i++)
        for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
            const tb_item *item = &job->item[i];
            const tb_work *w = &job->work[item->work];
            if (!job->system[s]) continue;
            tb_row(t);
            work_cells(t, w, &w->product[item->product]);
            tb_text(t, "%s", item->format->name);
            tb_text(t, "%s", trn_format_name(item->format->a));
            tb_text(t, "%s", trn_format_name(item->format->b));
            tb_text(t, "%s", trn_matmul_mode_name(item->format->mode));
            model_cells(t, trn_system_spec_of((trn_system)s), item->format, &item->cost[s]);
            core_cells(t, &item->cost[s]);
            host_cells(t, item->host);
        }
}

static const tb_column total_columns[] = {
    { "work", TB_TEXT, "", "" },           { "phase", TB_TEXT, "", "" },
    { "tokens", TB_INTEGER, "", "" },      { "format", TB_TEXT, "", "" },
    { "system", TB_TEXT, "", "" },         { "chips", TB_INTEGER, "", "" },
    { "group_cores", TB_INTEGER, "", "" }, { "spec_tflops", TB_REAL, "", "" },
    { "model_tflops", TB_REAL, "", "" },   { "percent_of_spec", TB_REAL, "", "" },
    { "limit", TB_TEXT, "", "" },          { "model_time_s", TB_REAL, "", "" },
    { "weights_fit", TB_INTEGER, "", "" },
};

/* One forward pass of each work: one row per work x format x system. */
void tb_total_rows(tb_table *t, const tb_job *job)
{
    tb_table_start(t, COLUMNS(total_columns));
    for (int w = 0; w < job->works; w++)
        for (int f = 0; f < job->formats; f++)
            for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
                if (!job->system[s]) continue;
                const tb_cost total = tb_work_total(job, w, job->format[f], (trn_system)s);
                tb_row(t);
                tb_text(t, "%s", job->work[w].name);
                tb_text(t, "%s", job->work[w].phase);
                tb_integer(t, job->work[w].tokens);
                tb_text(t, "%s", job->format[f]->name);
                model_cells(t, trn_system_spec_of((trn_system)s), job->format[f], &total);
                if (total.there)
                    tb_integer(t, total.fits);
                else
                    tb_missing(t);
            }
}

void tb_print_matmul_json(FILE *out, const void *context)
{
    const tb_job *job = context;
    tb_table rows, totals;
    tb_tidy_columns(&rows);
    tb_tidy_rows(&rows, job);
    tb_total_rows(&totals, job);
    fputs("{\n  \"schema\": \"trnbench.matmul\",\n  \"schema_version\": \"2.0.0\",\n  \"context\": {\n", out);
    tb_print_json_pair(out, "version", TRN_VERSION);
    tb_print_json_pair(out, "compiler", TB_COMPILER);
    tb_print_json_pair(out, "processor", tb_host_processor());
    tb_print_json_pair(out, "isa", tb_isa_used(job->host.isa));
    tb_print_json_pair(out, "openblas", tb_peer_version(TB_OPENBLAS));
    tb_print_json_pair(out, "onednn", tb_peer_version(TB_ONEDNN_F32));
    tb_print_json_pair(out, "numerics", job->numerics_text ? job->numerics_text : "default");
    tb_print_json_pair(out, "share", tb_share_name(job->share));
    fprintf(out, "    \"threads\": %d,\n    \"seed\": %llu\n  },\n  \"results\": ", job->host.threads,
            (unsigned long long)job->host.seed);
    tb_print_json_rows(out, &rows, 2);
    fputs(",\n  \"totals\": ", out);
    tb_print_json_rows(out, &totals, 2);
    fputs("\n}\n", out);
    tb_table_free(&rows);
    tb_table_free(&totals);
}

void tb_print_matmul_csv(FILE *out, const void *context)
{
    tb_table rows;
    tb_tidy_columns(&rows);
    tb_tidy_rows(&rows, context);
    tb_print_csv(out, &rows);
    tb_table_free(&rows);
}

/* ---- for people ---- */

static const char *time_text(char *text, size_t size, double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } row[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    char number[32];
    int i = 0;
    while (i < 2 && seconds < row[i].unit) i++;
    snprintf(text, size, "%s %s", tb_human(number, sizeof number, seconds / row[i].unit), row[i].name);
    return text;
}

static void heading(const char *text)
{
    const bool colour = tb_colour(stdout);
    printf("%s%s%s\n", colour ? "\033[1;36m" : "", text, colour ? "\033[0m" : "");
}

static void print_products(const tb_work *w)
{
    static const tb_column column[] = {
        { "layer", TB_TEXT, "", "" }, { "M", TB_INTEGER, "", "" },        { "N", TB_INTEGER, "", "" },
        { "K", TB_INTEGER, "", "" },  { "rounds", TB_INTEGER, "", "" },   { "experts at once", TB_INTEGER, "", "" },
        { "GFLOP", TB_REAL, "", "" }, { "weights (M)", TB_REAL, "", "" },
    };
    tb_table t;
    tb_table_start(&t, COLUMNS(column));
    for (int i = 0; i < w->products; i++) {
        const tb_product *p = &w->product[i];
        tb_row(&t);
        tb_text(&t, "%s", p->layer);
        tb_integer(&t, p->m);
        tb_integer(&t, p->n);
        tb_integer(&t, p->k);
        tb_integer(&t, p->rounds);
        if (p->together > 1)
            tb_integer(&t, p->together);
        else
            tb_missing(&t);
        tb_real(&t, 2e-9 * (double)p->m * (double)p->n * (double)p->k * (double)(p->rounds * p->together));
        tb_real(&t, p->weights / 1e6);
    }
    tb_print_table(stdout, &t);
    tb_table_free(&t);
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

static void check_cell(tb_table *t, const tb_check *check)
{
    if (!check->defined)
        tb_text(t, "not covered");
    else if (check->wrong)
        tb_text(t, "%lld of %lld WRONG", (long long)check->wrong, (long long)check->compared);
    else
        tb_text(t, "%lld equal", (long long)check->compared);
}

static bool any_beside_bf16(const tb_job *job)
{
    for (int i = 0; i < job->items; i++)
        if (job->item[i].host && job->item[i].host->bf16.there) return true;
    return false;
}

static void host_row(tb_table *t, const tb_job *job, const tb_item *item)
{
    const tb_host *h = item->host;
    char layers[160];
    layer_names(job, item, layers, sizeof layers);
    tb_row(t);
    tb_text(t, "%s", layers);
    tb_text(t, "%lldx%lldx%lld", (long long)h->m, (long long)h->n, (long long)h->k);
    tb_text(t, "%s", item->format->name);
    tb_real(t, h->flops_per_s / 1e9);
    tb_real(t, 100 * h->share_of_peak);
    if (any_beside_bf16(job)) tb_real(t, h->bf16.there ? h->bf16.ratio : NAN);
    for (int i = 0; i < TB_PEERS; i++) {
        if (!job->host.peer[i]) continue;
        peer_cells(t, &h->peer[i]);
    }
    check_cell(t, &h->check);
    tb_text(t, "%016llx", (unsigned long long)h->digest);
}

static int host_columns(const tb_job *job, tb_column *column)
{
    static const tb_column fixed[] = { { "on this host", TB_TEXT, "", "" },
                                       { "run as MxNxK", TB_TEXT, "", "" },
                                       { "format", TB_TEXT, "", "" },
                                       { "GF/s", TB_REAL, "", "" },
                                       { "% of peak", TB_REAL, "", "" } };
    static const tb_column last[] = { { "bit check", TB_TEXT, "", "" }, { "digest", TB_TEXT, "", "" } };
    static const char *const rate[TB_PEERS] = { "OpenBLAS", "oneDNN f32", "f32 packed", "oneDNN bf16" };
    int n = 0;
    for (int i = 0; i < 5; i++) column[n++] = fixed[i];
    if (any_beside_bf16(job)) column[n++] = (tb_column){ "of bf16", TB_REAL, "", "" };
    for (int i = 0; i < TB_PEERS; i++) {
        if (!job->host.peer[i]) continue;
        column[n++] = (tb_column){ rate[i], TB_REAL, "", "" };
        column[n++] = (tb_column){ "ratio", TB_REAL, "", "" };
    }
    for (int i = 0; i < 2; i++) column[n++] = last[i];
    return n;
}

static void print_host(const tb_job *job, int work)
{
    tb_column column[8 + 2 * TB_PEERS];
    tb_table t;
    tb_table_start(&t, column, host_columns(job, column));
    for (int i = 0; i < job->items; i++) {
        const tb_item *item = &job->item[i];
        if (item->work == work && item->host && item->host->ran && !item->repeated) host_row(&t, job, item);
    }
    if (t.rows) tb_print_table(stdout, &t);
    if (t.rows) putchar('\n');
    tb_table_free(&t);
}

enum { SYSTEM_CELLS = 9 };

static void system_row(tb_table *t, const tb_job *job, int work, int format, trn_system system)
{
    const tb_work *w = &job->work[work];
    const trn_system_spec *spec = trn_system_spec_of(system);
    const tb_cost total = tb_work_total(job, work, job->format[format], system);
    char text[64];
    tb_row(t);
    tb_text(t, "%s", spec->name);
    tb_integer(t, trn_spec_chips(spec));
    tb_text(t, "%s", job->format[format]->name);
    tb_real(t, tb_format_spec_tflops(job->format[format], spec));
    if (!total.there) {
        tb_missing(t), tb_missing(t), tb_text(t, "not on %s", spec->server->chip->name), tb_missing(t), tb_missing(t);
    } else {
        tb_real(t, total.tflops);
        tb_real(t, 100 * total.share_of_spec);
        if (total.limit_share < 0.995)
            tb_text(t, "%s (%.0f %%)", trn_limit_name(total.limit), 100 * total.limit_share);
        else
            tb_text(t, "%s", trn_limit_name(total.limit));
        tb_text(t, "%s", time_text(text, sizeof text, total.time_s));
        tb_text(t, "%s", total.fits ? "yes" : "no");
    }
    for (int p = 0; w->products > 1 && p < w->products; p++) {
        const tb_cost *cost = &item_of(job, work, p, format)->cost[system];
        tb_real(t, cost->there ? 100 * cost->share_of_spec : NAN);
    }
}

static void print_systems(const tb_job *job, int work)
{
    static const tb_column fixed[SYSTEM_CELLS] = {
        { "system", TB_TEXT, "", "" },      { "chips", TB_INTEGER, "", "" }, { "format", TB_TEXT, "", "" },
        { "spec TFLOPS", TB_REAL, "", "" }, { "achieved", TB_REAL, "", "" }, { "% of spec", TB_REAL, "", "" },
        { "limited by", TB_TEXT, "", "" },  { "time", TB_TEXT, "", "" },     { "fits HBM", TB_TEXT, "", "" },
    };
    const tb_work *w = &job->work[work];
    tb_column column[SYSTEM_CELLS + TB_MAX_LAYERS];
    memcpy(column, fixed, sizeof fixed);
    char name[TB_MAX_LAYERS][32]; /* without the "_proj" that nearly all have */
    for (int p = 0; p < w->products; p++) {
        const char *layer = w->product[p].layer, *tail = strstr(layer, "_proj");
        snprintf(name[p], sizeof name[p], "%.*s", (int)(tail ? tail - layer : 31), layer);
        column[SYSTEM_CELLS + p] = (tb_column){ name[p], TB_REAL, "", "" };
    }
    tb_table t;
    tb_table_start(&t, column, SYSTEM_CELLS + (w->products > 1 ? w->products : 0));
    for (int f = 0; f < job->formats; f++)
        for (int s = 0; s < TRN_SYSTEM_COUNT; s++)
            if (job->system[s]) system_row(&t, job, work, f, (trn_system)s);
    tb_print_table(stdout, &t);
    tb_table_free(&t);
}

static void print_method(const tb_job *job)
{
    printf("\nModelled: %s; operands lie in HBM where they are used, nothing is communicated.\n",
           tb_share_text(job->share));
    bool layers = false;
    for (int i = 0; i < job->works; i++) layers = layers || job->work[i].products > 1;
    if (layers) puts("Under the names of layers: % of spec of each.");
    if (!job->run_host) return;
    printf("On this host: %s, %s, %d thread%s, %s; numerics %s.\n", tb_host_processor(), tb_isa_used(job->host.isa),
           job->host.threads, job->host.threads == 1 ? "" : "s",
           tb_peer_version(TB_OPENBLAS) ? tb_peer_version(TB_OPENBLAS) : "no OpenBLAS",
           job->numerics_text ? job->numerics_text : "default");
    puts(
        "GF/s is the best round; % of peak (a multiply-add burst) and ratios are medians over rounds of one run each.");
}

void tb_print_text(const tb_job *job)
{
    char title[320];
    for (int i = 0; i < job->works; i++) {
        const tb_work *w = &job->work[i];
        if (w->model)
            snprintf(title, sizeof title, "%s, %s, %lld token%s", w->name, w->phase, (long long)w->tokens,
                     w->tokens == 1 ? "" : "s");
        else
            snprintf(title, sizeof title, "%s", w->name);
        heading(title);
        if (w->model) print_products(w), putchar('\n');
        print_host(job, i);
        print_systems(job, i);
        if (i + 1 < job->works) putchar('\n');
    }
    print_method(job);
}

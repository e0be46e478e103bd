/* rows.c - what subcommand matmul writes for programs: one tidy row per tuple, as JSON and CSV.
 * SPDX-License-Identifier: MIT
 */
#include "matmul.h"

#include <math.h>
#include <string.h>

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

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

static const app_column tidy_columns[] = {
    { "work", APP_TEXT, "", "model, shape or pair of files" },
    { "phase", APP_TEXT, "", "prefill or decode; empty without a model" },
    { "layer", APP_TEXT, "", "the model's name of the weights; empty without a model" },
    { "m", APP_INTEGER, "", "rows of the product" },
    { "n", APP_INTEGER, "", "columns of the product" },
    { "k", APP_INTEGER, "", "depth of the product" },
    { "rounds", APP_INTEGER, "", "times in one forward pass, after each other" },
    { "together", APP_INTEGER, "", "products of a round, at the same time (experts)" },
    { "format", APP_TEXT, "", "as --format calls it" },
    { "a_format", APP_TEXT, "", "of the left operand" },
    { "b_format", APP_TEXT, "", "of the right operand" },
    { "mode", APP_TEXT, "", "of the tensor engine" },
    { "system", APP_TEXT, "", "which machine is modelled" },
    { "chips", APP_INTEGER, "", "of the system" },
    { "group_cores", APP_INTEGER, "", "NeuronCores that share one product" },
    { "spec_tflops", APP_REAL, "1e12/s", "published, whole system, dense" },
    { "model_tflops", APP_REAL, "1e12/s", "by the cost model, whole system" },
    { "percent_of_spec", APP_REAL, "%", "model over spec" },
    { "limit", APP_TEXT, "", "the resource that sets the time" },
    { "model_time_s", APP_REAL, "s", "all rounds" },
    { "tensor_s", APP_REAL, "s", "one product on the busiest core: tensor engine" },
    { "hbm_s", APP_REAL, "s", "the same: HBM" },
    { "dma_s", APP_REAL, "s", "the same: DMA engines" },
    { "flop_per_byte", APP_REAL, "flop/B", "one product on the busiest core: over bytes moved to and from HBM" },
    { "array_percent", APP_REAL, "%", "of the systolic array's own peak" },
    { "weights_fit", APP_INTEGER, "", "1 when the layer's weights fit in the HBM of the group" },
    { "host_m", APP_INTEGER, "", "rows of what was run on this host" },
    { "host_n", APP_INTEGER, "", "columns of it" },
    { "host_k", APP_INTEGER, "", "depth of it" },
    { "host_rounds", APP_INTEGER, "", "rounds of measurement" },
    { "host_gflops", APP_REAL, "1e9/s", "trnmath, best round" },
    { "host_peak_gflops", APP_REAL, "1e9/s", "multiply-add burst, best round" },
    { "host_percent_of_peak", APP_REAL, "%", "median of the ratios within a round" },
    { "host_attention_percent", APP_REAL, "%", "of the time the bursts had the processors; the rest went to others" },
    { "host_unit", APP_TEXT, "", "matrix unit that had a part in it; vectors: none" },
    { "host_unit_whole_percent", APP_REAL, "%", "of the product's blocks: done by the unit, all sums exact" },
    { "host_unit_chains_percent", APP_REAL, "%", "each chain's" },
    { "host_unit_half_percent", APP_REAL, "%", "the first 16 steps of each chain" },
    { "host_unit_pairs_percent", APP_REAL, "%", "each chain's, two steps at a time" },
    { "host_bf16_ratio", APP_REAL, "", "trnmath over its own BF16 product, median of the ratios within a round" },
    { "openblas_gflops", APP_REAL, "1e9/s", "sgemm on the same numbers, best round" },
    { "openblas_ratio", APP_REAL, "", "trnmath over OpenBLAS, median of the ratios within a round" },
    { "onednn_f32_gflops", APP_REAL, "1e9/s", "oneDNN f32, plain layouts" },
    { "onednn_f32_ratio", APP_REAL, "", "trnmath over it" },
    { "onednn_f32_packed_gflops", APP_REAL, "1e9/s", "oneDNN f32, weights packed beforehand, packing not timed" },
    { "onednn_f32_packed_ratio", APP_REAL, "", "trnmath over it" },
    { "onednn_bf16_gflops", APP_REAL, "1e9/s", "oneDNN bf16, plain layouts (not the same arithmetic)" },
    { "onednn_bf16_ratio", APP_REAL, "", "trnmath over it" },
    { "checked_outputs", APP_INTEGER, "", "compared bit for bit with the definition" },
    { "wrong_outputs", APP_INTEGER, "", "of those, different" },
    { "digest", APP_TEXT, "", "FNV-1a of the bits of all outputs run here" },
};

static void model_cells(app_table *t, const trn_system_spec *spec, const tb_format *format, const tb_cost *cost)
{
    app_text(t, "%s", spec->name);
    app_integer(t, trn_spec_chips(spec));
    app_integer(t, (int64_t)cost->group_cores);
    app_real(t, tb_format_spec_tflops(format, spec));
    app_real(t, cost->there ? cost->tflops : NAN);
    app_real(t, cost->there ? 100 * cost->share_of_spec : NAN);
    app_text(t, "%s", cost->there ? trn_limit_name(cost->limit) : "");
    app_real(t, cost->there ? cost->time_s : NAN);
}

static void core_cells(app_table *t, const tb_cost *cost)
{
    const trn_core_cost *c = &cost->core;
    app_real(t, cost->there ? c->tensor_s : NAN);
    app_real(t, cost->there ? c->hbm_s : NAN);
    app_real(t, cost->there ? c->dma_s : NAN);
    app_real(t, cost->there ? c->flops / c->bytes : NAN);
    app_real(t, cost->there ? 100 * c->fraction_of_peak : NAN);
    if (cost->there)
        app_integer(t, cost->fits);
    else
        app_missing(t);
}

static void peer_cells(app_table *t, const tb_host_peer *peer)
{
    app_real(t, peer->there ? peer->flops_per_s / 1e9 : NAN);
    app_real(t, peer->there ? peer->ratio : NAN);
}

static void unit_cells(app_table *t, const tb_host *h)
{
    const trn_matmul_units *u = &h->units;
    const bool none = h->unit == TRN_ISA_AUTO;
    app_text(t, "%s", none ? "vectors" : trn_isa_text(h->unit));
    app_real(t, none ? 0 : 100 * tb_unit_share(u, u->whole));
    app_real(t, none ? 0 : 100 * tb_unit_share(u, u->chains));
    app_real(t, none ? 0 : 100 * tb_unit_share(u, u->half));
    app_real(t, none ? 0 : 100 * tb_unit_share(u, u->pairs));
}

enum { HOST_CELLS = 25 };

static void host_cells(app_table *t, const tb_host *h)
{
    for (int i = 0; i < HOST_CELLS && !(h && h->ran); i++) app_missing(t);
    if (!h || !h->ran) return;
    app_integer(t, h->m);
    app_integer(t, h->n);
    app_integer(t, h->k);
    app_integer(t, h->rounds);
    app_real(t, h->flops_per_s / 1e9);
    app_real(t, h->peak_flops_per_s / 1e9);
    app_real(t, 100 * h->share_of_peak);
    app_real(t, 100 * h->attention);
    unit_cells(t, h);
    app_real(t, h->bf16.there ? h->bf16.ratio : NAN);
    for (int i = 0; i < TB_PEERS; i++) peer_cells(t, &h->peer[i]);
    app_integer(t, h->check.compared);
    app_integer(t, h->check.wrong);
    app_text(t, "%016llx", (unsigned long long)h->digest);
}

static void work_cells(app_table *t, const tb_work *w, const tb_product *p)
{
    app_text(t, "%s", w->name);
    app_text(t, "%s", w->phase);
    app_text(t, "%s", w->model ? p->layer : "");
    app_integer(t, p->m);
    app_integer(t, p->n);
    app_integer(t, p->k);
    app_integer(t, p->rounds);
    app_integer(t, p->together);
}

void tb_tidy_columns(app_table *table) { app_table_start(table, COLUMNS(tidy_columns)); }

void tb_tidy_rows(app_table *t, const tb_job *job)
{
    for (int i = 0; i < job->items; i++)
        for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
            const tb_item *item = &job->item[i];
            const tb_work *w = &job->work[item->work];
            if (!job->system[s]) continue;
            app_row(t);
            work_cells(t, w, &w->product[item->product]);
            app_text(t, "%s", item->format->name);
            app_text(t, "%s", trn_format_name(item->format->a));
            app_text(t, "%s", trn_format_name(item->format->b));
            app_text(t, "%s", trn_matmul_mode_name(item->format->mode));
            model_cells(t, trn_system_spec_of((trn_system)s), item->format, &item->cost[s]);
            core_cells(t, &item->cost[s]);
            host_cells(t, item->host);
        }
}

static const app_column total_columns[] = {
    { "work", APP_TEXT, "", "" },           { "phase", APP_TEXT, "", "" },
    { "tokens", APP_INTEGER, "", "" },      { "format", APP_TEXT, "", "" },
    { "system", APP_TEXT, "", "" },         { "chips", APP_INTEGER, "", "" },
    { "group_cores", APP_INTEGER, "", "" }, { "spec_tflops", APP_REAL, "", "" },
    { "model_tflops", APP_REAL, "", "" },   { "percent_of_spec", APP_REAL, "", "" },
    { "limit", APP_TEXT, "", "" },          { "model_time_s", APP_REAL, "", "" },
    { "weights_fit", APP_INTEGER, "", "" },
};

/* One forward pass of each work: one row per work x format x system. */
void tb_total_rows(app_table *t, const tb_job *job)
{
    app_table_start(t, COLUMNS(total_columns));
    for (int w = 0; w < job->works; w++)
        for (int f = 0; f < job->formats; f++)
            for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
                if (!job->system[s]) continue;
                const tb_cost total = tb_work_total(job, w, job->format[f], (trn_system)s);
                app_row(t);
                app_text(t, "%s", job->work[w].name);
                app_text(t, "%s", job->work[w].phase);
                app_integer(t, job->work[w].tokens);
                app_text(t, "%s", job->format[f]->name);
                model_cells(t, trn_system_spec_of((trn_system)s), job->format[f], &total);
                if (total.there)
                    app_integer(t, total.fits);
                else
                    app_missing(t);
            }
}

void tb_print_matmul_json(FILE *out, const void *context)
{
    const tb_job *job = context;
    app_table rows, totals;
    tb_tidy_columns(&rows);
    tb_tidy_rows(&rows, job);
    tb_total_rows(&totals, job);
    fputs("{\n  \"schema\": \"trnbench.matmul\",\n  \"schema_version\": \"2.0.0\",\n  \"context\": {\n", out);
    app_print_json_pair(out, "version", TRN_VERSION);
    app_print_json_pair(out, "compiler", TB_COMPILER);
    app_print_json_pair(out, "processor", tb_host_processor());
    app_print_json_pair(out, "isa", app_isa_used(job->host.isa));
    app_print_json_pair(out, "openblas", tb_peer_version(TB_OPENBLAS));
    app_print_json_pair(out, "onednn", tb_peer_version(TB_ONEDNN_F32));
    app_print_json_pair(out, "numerics", job->numerics_text ? job->numerics_text : "default");
    app_print_json_pair(out, "share", tb_share_name(job->share));
    fprintf(out, "    \"threads\": %d,\n    \"seed\": %llu\n  },\n  \"results\": ", job->host.threads,
            (unsigned long long)job->host.seed);
    app_print_json_rows(out, &rows, 2);
    fputs(",\n  \"totals\": ", out);
    app_print_json_rows(out, &totals, 2);
    fputs("\n}\n", out);
    app_table_free(&rows);
    app_table_free(&totals);
}

void tb_print_matmul_csv(FILE *out, const void *context)
{
    app_table rows;
    tb_tidy_columns(&rows);
    tb_tidy_rows(&rows, context);
    app_print_csv(out, &rows);
    app_table_free(&rows);
}

/* measured.h - what users have of runs on devices: results of serving benchmarks and summaries of profiles.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/measured.h"
 *     io_measured m;
 *     if (!io_measured_read("result.json", &m, why)) return app_complain(APP_USAGE, "%s", why);
 *     if (m.kind == IO_MEASURED_SERVING) printf("%g s a token\n", m.tpot_s);
 *
 * DOES: knows by its fields what a file is: JSON of `vllm bench serve --save-result`; JSON or CSV of genai-perf and
 *     AIPerf; JSON or CSV of a summary of neuron-profile or Neuron Explorer. Anything else is OTHER, which is left to
 *     whoever reads nccom-test (nccom.h).
 * DOES NOT: read parquet (neuron-explorer prints the same summary as JSON), traces, or single requests.
 *
 * CONTENTS
 *     io_measured_kind, io_measured   what a file is, and what it says; 0: it does not
 *     io_measured_read                a file
 *
 * KNOWN FROM: vllm/benchmarks/serve.py 0.15; genai-perf and AIPerf exports (AIPerf metrics reference); summary-json of
 *     neuron-profile: user guide of SDK 2.28, fields as kernels that are published read them (2026). Needs cJSON.
 */
#ifndef IO_MEASURED_H
#define IO_MEASURED_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mapped.h"

typedef enum io_measured_kind { IO_MEASURED_OTHER = 0, IO_MEASURED_SERVING, IO_MEASURED_PROFILE } io_measured_kind;

typedef struct io_measured {
    io_measured_kind kind;
    double concurrency, prompt, answer; /* requests at once; tokens of the mean request */
    double ttft_s, tpot_s;              /* medians, or means where there are none */
    double hbm_bytes, dma_s;            /* read and written, and while DMA was active */
    double used, active;                /* shares: of TensorE's peak, and of the time that it was active */
} io_measured;

enum { IO_MEASURED_FILE = 64 << 20 };

/* ---- JSON ---- */

/* A number at a path of names, such as "input_config", "loadgen"; NAN: there is none. */
IO_FN double io_measured_at(const cJSON *at, const char *const *name, int names)
{
    for (int i = 0; at && i < names; i++) at = cJSON_GetObjectItemCaseSensitive(at, name[i]);
    return cJSON_IsNumber(at) ? at->valuedouble : (double)NAN;
}

IO_FN double io_measured_number(const cJSON *at, const char *name) { return io_measured_at(at, &name, 1); }

IO_FN double io_measured_either(double a, double b) { return isnan(a) ? b : a; }

IO_FN void io_measured_vllm(const cJSON *j, io_measured *m)
{
    const double done = io_measured_number(j, "completed");
    m->ttft_s =
        1e-3 * io_measured_either(io_measured_number(j, "median_ttft_ms"), io_measured_number(j, "mean_ttft_ms"));
    m->tpot_s =
        1e-3 * io_measured_either(io_measured_number(j, "median_tpot_ms"), io_measured_number(j, "mean_tpot_ms"));
    m->concurrency = io_measured_number(j, "max_concurrency");
    m->prompt = io_measured_number(j, "total_input_tokens") / done;
    m->answer = io_measured_number(j, "total_output_tokens") / done;
}

/* A metric of genai-perf: its median, or its mean. */
IO_FN double io_measured_metric(const cJSON *j, const char *name)
{
    const char *const median[] = { name, "p50" }, *const mean[] = { name, "avg" };
    return io_measured_either(io_measured_at(j, median, 2), io_measured_at(j, mean, 2));
}

IO_FN void io_measured_genai(const cJSON *j, io_measured *m)
{
    static const char *const older[] = { "input_config", "perf_analyzer", "stimulus", "concurrency" };
    static const char *const newer[] = { "input_config", "loadgen", "concurrency" };
    m->ttft_s = 1e-3 * io_measured_metric(j, "time_to_first_token");
    m->tpot_s = 1e-3 * io_measured_metric(j, "inter_token_latency");
    m->concurrency = io_measured_either(io_measured_at(j, newer, 3), io_measured_at(j, older, 4));
    m->prompt = io_measured_metric(j, "input_sequence_length");
    m->answer = io_measured_metric(j, "output_sequence_length");
}

IO_FN void io_measured_profile(const cJSON *j, io_measured *m)
{
    m->hbm_bytes = io_measured_number(j, "hbm_read_bytes") + io_measured_number(j, "hbm_write_bytes");
    m->dma_s = io_measured_number(j, "dma_active_time");
    m->used = io_measured_either(io_measured_number(j, "hfu_estimated_percent"),
                                 io_measured_number(j, "mfu_estimated_percent"));
    m->active = io_measured_number(j, "tensor_engine_active_time_percent");
}

/* A summary stands alone, below the name of its graph, or first in a list "summary". */
IO_FN const cJSON *io_measured_summary(const cJSON *j)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(j, "summary");
    if (cJSON_IsArray(list)) j = cJSON_GetArrayItem(list, 0);
    if (cJSON_GetArraySize(j) == 1 && cJSON_IsObject(j->child)) j = j->child;
    return cJSON_GetObjectItemCaseSensitive(j, "total_time") ? j : NULL;
}

IO_FN bool io_measured_json(const char *text, size_t size, const char *path, io_measured *m, char *why)
{
    int line = 0;
    cJSON *j = io_json_tree(text, size, &line);
    if (!j) return io_fail(why, path, "line %d: it is not JSON", line);
    const cJSON *summary = io_measured_summary(j);
    if (cJSON_HasObjectItem(j, "mean_ttft_ms") || cJSON_HasObjectItem(j, "median_ttft_ms")) {
        m->kind = IO_MEASURED_SERVING;
        io_measured_vllm(j, m);
    } else if (cJSON_HasObjectItem(j, "time_to_first_token")) {
        m->kind = IO_MEASURED_SERVING;
        io_measured_genai(j, m);
    } else if (summary) {
        m->kind = IO_MEASURED_PROFILE;
        io_measured_profile(summary, m);
    }
    cJSON_Delete(j);
    return true;
}

/* ---- CSV ---- */

/* The next cell of a line, quotes and commas of thousands taken off; false at its end. */
IO_FN bool io_measured_cell(const char **at, const char *end, char cell[96])
{
    size_t n = 0;
    bool quoted = false;
    if (*at > end) return false;
    for (; *at < end && (quoted || **at != ','); ++*at) {
        if (**at == '"') quoted = !quoted;
        const bool drop = **at == '"' || (quoted && **at == ',') || **at == '\r';
        if (!drop && n < 95) cell[n++] = **at;
    }
    cell[n] = 0;
    ++*at;
    return true;
}

IO_FN double io_measured_real(const char *cell)
{
    char *end;
    const double x = strtod(cell, &end);
    return end > cell && *end == 0 && isfinite(x) ? x : (double)NAN;
}

IO_FN const char *io_measured_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

/* "Metric,avg,...,p50,...": a line for each metric. */
IO_FN void io_measured_metrics(const char *text, const char *end, io_measured *m)
{
    const struct {
        const char *name;
        double *into, scale;
    } row[] = { { "Time To First Token (ms)", &m->ttft_s, 1e-3 },
                { "Inter Token Latency (ms)", &m->tpot_s, 1e-3 },
                { "Input Sequence Length (tokens)", &m->prompt, 1 },
                { "Output Sequence Length (tokens)", &m->answer, 1 } };
    int p50 = -1, avg = -1;
    for (const char *at = text; at < end; at = io_measured_end(at, end) + 1) {
        const char *cursor = at, *stop = io_measured_end(at, end);
        char name[96], cell[96];
        if (!io_measured_cell(&cursor, stop, name)) continue;
        double value[2] = { (double)NAN, (double)NAN };
        for (int c = 1; io_measured_cell(&cursor, stop, cell); c++) {
            if (at == text && strcmp(cell, "p50") == 0) p50 = c;
            if (at == text && strcmp(cell, "avg") == 0) avg = c;
            if (c == p50) value[0] = io_measured_real(cell);
            if (c == avg) value[1] = io_measured_real(cell);
        }
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
            if (strcmp(name, row[i].name) == 0) *row[i].into = row[i].scale * io_measured_either(value[0], value[1]);
    }
}

/* Names in the first line, numbers in the second: they become the JSON that says the same. */
IO_FN bool io_measured_columns(const char *text, const char *end, const char *path, io_measured *m, char *why)
{
    const char *names = text, *stop = io_measured_end(text, end), *numbers = stop < end ? stop + 1 : end;
    const char *last = io_measured_end(numbers, end);
    char name[96], cell[96];
    cJSON *j = cJSON_CreateObject();
    while (j && io_measured_cell(&names, stop, name) && io_measured_cell(&numbers, last, cell))
        if (!isnan(io_measured_real(cell))) cJSON_AddNumberToObject(j, name, io_measured_real(cell));
    if (!j) return io_fail(why, path, "memory ran out");
    m->kind = IO_MEASURED_PROFILE;
    io_measured_profile(j, m);
    cJSON_Delete(j);
    return true;
}

/* ---- files ---- */

/* What is no number became NAN on its way: it is 0 from here on. A time has to be one. */
IO_FN bool io_measured_settle(io_measured *m, const char *path, char *why)
{
    double *all[] = { &m->concurrency, &m->prompt, &m->answer, &m->ttft_s, &m->tpot_s,
                      &m->hbm_bytes,   &m->dma_s,  &m->used,   &m->active };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!(*all[i] > 0 && *all[i] < 1e18)) *all[i] = 0;
    if (m->kind == IO_MEASURED_SERVING && !(m->ttft_s > 0 && m->ttft_s < 1e4) && !(m->tpot_s > 0 && m->tpot_s < 1e4))
        return io_fail(why, path, "neither a time to the first token nor one of a token between 0 and 10000 s");
    if (m->kind == IO_MEASURED_PROFILE && !(m->hbm_bytes > 0 && m->dma_s > 0) && !(m->used > 0 && m->active > 0))
        return io_fail(why, path,
                       "a summary without hbm_read_bytes, hbm_write_bytes and dma_active_time, and without "
                       "hfu_estimated_percent and tensor_engine_active_time_percent");
    if (m->used > 1 || m->active > 1)
        return io_fail(why, path,
                       "hfu_estimated_percent %g, tensor_engine_active_time_percent %g: expected shares, "
                       "0 to 1",
                       m->used, m->active);
    return true;
}

IO_FN bool io_measured_parse(const char *text, size_t size, const char *path, io_measured *m, char *why)
{
    const char *end = text + size;
    memset(m, 0, sizeof *m);
    while (text < end && isspace((unsigned char)*text)) text++;
    size = (size_t)(end - text);
    if (size > 4 && memcmp(text, "PAR1", 4) == 0)
        return io_fail(why, path,
                       "it is parquet: neuron-explorer view --output-format summary-json prints the same as JSON, and "
                       "pandas (read_parquet, to_csv) makes CSV of it");
    if (size && *text == '{' && !io_measured_json(text, size, path, m, why)) return false;
    if (size > 7 && memcmp(text, "Metric,", 7) == 0) {
        m->kind = IO_MEASURED_SERVING;
        io_measured_metrics(text, end, m);
    }
    const char *line = io_measured_end(text, end);
    for (const char *at = text; size && *text != '{' && at + 10 <= line; at++)
        if (memcmp(at, "total_time", 10) == 0)
            return io_measured_columns(text, end, path, m, why) && io_measured_settle(m, path, why);
    return m->kind == IO_MEASURED_OTHER || io_measured_settle(m, path, why);
}

/* why: one sentence that names the file. */
IO_FN bool io_measured_read(const char *path, io_measured *m, char *why)
{
    io_map map;
    if (!io_map_open(path, &map, why)) return false;
    size_t size;
    const char *text = io_map_text(&map, &size);
    bool ok = size <= IO_MEASURED_FILE || io_fail(why, path, "more than %d bytes", (int)IO_MEASURED_FILE);
    ok = ok && io_measured_parse(text, size, path, m, why);
    io_map_close(&map);
    return ok;
}

#endif /* IO_MEASURED_H */

/* roofline.c - products of one layer of the best plan under the roofs of a chip: what HBM brings, what the arrays do.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"

enum { EVENTS = 4000, DOTS = 16 };

typedef struct dot {
    char name[TRN_TRACE_NAME + 16];
    double intensity, rate; /* flop/B, flop/s of a chip */
} dot;

/* The shape that the timeline of a layer tells of a product: "1 x [m, k] x [k, n], ...". */
static bool shape_of(const char *text, double *count, double *m, double *k, double *n)
{
    long long a, b, c, d;
    if (sscanf(text, "%lf x [%lld, %lld] x [%lld, %lld]", count, &a, &b, &c, &d) != 5) return false;
    *m = (double)a;
    *k = (double)b;
    *n = (double)d;
    return *count > 0;
}

/* Bytes of a weight by the name of its product. */
static double weight_bits(const trn_plan_formats *f, const char *name)
{
    static const char *const attention[] = { "q", "kv", "o", "linear", "index", "cross" };
    if (strncmp(name, "expert", 6) == 0) return f->experts_bits;
    for (size_t i = 0; i < sizeof attention / sizeof attention[0]; i++)
        if (strncmp(name, attention[i], strlen(attention[i])) == 0) return f->attention_bits;
    return f->weights_bits;
}

/* Forward products, in their order; each name once. */
static int dots_of(const sp_job *job, const trn_trace *layer, dot out[DOTS])
{
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const double kept = trn_format_bits(f.activations) / 8.0;
    const int ranks = job->args.ranks_per_chip ? job->args.ranks_per_chip : 1;
    int dots = 0;
    for (int64_t i = 0; i < layer->count && dots < DOTS; i++) {
        const trn_trace_event *e = &layer->event[i];
        double count, m, k, n;
        if (!shape_of(e->text, &count, &m, &k, &n) || strstr(e->text, ", of the ")) continue;
        const double flops = 2 * m * n * k * count;
        const double bytes = count * (k * n * weight_bits(&f, e->name) / 8 + (m * k + m * n) * kept);
        if (!(e->duration_s > 0 && bytes > 0)) continue;
        snprintf(out[dots].name, sizeof out[dots].name, "%s", e->name);
        out[dots].intensity = flops / bytes;
        out[dots++].rate = ranks * flops / e->duration_s;
    }
    return dots;
}

void sp_roofline_picture(FILE *out, const sp_job *job)
{
    const trn_chip_spec *chip = &job->own.chip;
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const double peak = 1e12 * trn_spec_tflops(trn_system_spec_of(job->net.system), f.compute, false) /
                        trn_spec_chips(trn_system_spec_of(job->net.system));
    trn_trace_event *event = app_memory(EVENTS, sizeof *event);
    trn_trace layer = { .event = event, .capacity = EVENTS };
    dot d[DOTS];
    int dots = 0;
    if (isfinite(peak) && app_worked(trn_plan_trace_layer(&job->args, &job->plan[0], &layer), &job->error))
        dots = dots_of(job, &layer, d);
    if (dots) {
        const double ridge = peak / chip->hbm_bytes_per_s;
        double low = ridge / 10, high = 10 * ridge;
        for (int i = 0; i < dots; i++) low = fmin(low, d[i].intensity / 2), high = fmax(high, 2 * d[i].intensity);
        const double x[] = { low, ridge, high }, y[] = { low * chip->hbm_bytes_per_s, peak, peak };
        chart_line line[1 + DOTS] = {
            { .name = "HBM, then TensorE, as documented", .x = x, .y = y, .count = 3, .colour = 0 }
        };
        for (int i = 0; i < dots; i++)
            line[1 + i] = (chart_line){
                .name = d[i].name, .x = &d[i].intensity, .y = &d[i].rate, .count = 1, .colour = 1 + i, .dots = true
            };
        fputs("<div class=card><h3>Roofline</h3><p>Products of one layer, forward, at ideal times: what lies under the "
              "slope waits for HBM.</p>",
              out);
        chart_lines(out, &(chart){ .title = "Products of one layer",
                                   .x_title = "flop a byte of HBM",
                                   .y_title = "flop/s of a chip",
                                   .line = line,
                                   .lines = 1 + dots,
                                   .x_log = true,
                                   .y_log = true });
        fputs("</div>\n", out);
    }
    free(event);
}

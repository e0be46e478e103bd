/* html.c - the report: one page with the best of each budget, pictures, and the whole table.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <string.h>

#include "app/page.h"

static void tile(FILE *out, const mxq_all *all, double budget)
{
    int best = -1;
    char number[80], text[160], label[80];
    for (int k = 0; k < all->job->ways; k++) {
        if (mxq_bits(&all->job->way[k], all->result[0].source) > budget) continue;
        if (isfinite(mxq_mean_sqnr(all, k)) && (best < 0 || mxq_mean_sqnr(all, k) > mxq_mean_sqnr(all, best))) best = k;
    }
    if (best < 0) return;
    mxq_label(label, sizeof label, &all->job->way[best]);
    snprintf(number, sizeof number, "%.2f dB", mxq_mean_sqnr(all, best));
    snprintf(text, sizeof text, "%s, the best within %g bits", label, budget);
    app_fact(out, number, text);
}

static void lead(FILE *out, const mxq_all *all)
{
    char count[40];
    int64_t elements = 0;
    for (int i = 0; i < all->results; i++) elements += all->result[i].facts.elements;
    fputs("<h1>What quantisation costs</h1><p class=lead>", out);
    app_escape(out, all->result[0].source->name);
    if (all->results > 1) fprintf(out, " and %d more", all->results - 1);
    fprintf(out,
            ": %s values through %d ways to quantise them. SQNR is the energy of the values over the energy of the "
            "errors.</p>",
            app_count(count, sizeof count, elements), all->job->ways);
    fputs("<div class=facts>", out);
    for (int b = 0; b < all->budgets; b++) tile(out, all, all->budget[b]);
    fputs("</div>\n", out);
}

static void best_cell(FILE *out, const mxq_all *all, const mxq_result *r, double budget)
{
    char label[80];
    const int k = mxq_best(all->job, r, budget);
    fputs("<td>", out);
    if (k >= 0) {
        mxq_label(label, sizeof label, &all->job->way[k]);
        app_escape(out, label);
        if (isinf(mxq_sqnr(r, k)))
            fputs(", exact", out);
        else
            fprintf(out, ", %.2f dB", mxq_sqnr(r, k));
    }
    fputs("</td>", out);
}

static void best(FILE *out, const mxq_all *all)
{
    fputs("<h2>The best within so many bits per element</h2><div class=card><table><tr><th>tensor</th><th class=r>sigma"
          "</th><th class=r>crest factor</th>",
          out);
    for (int b = 0; b < all->budgets; b++) fprintf(out, "<th>%g bits</th>", all->budget[b]);
    fputs("</tr>\n", out);
    for (int i = 0; i < all->results; i++) {
        const mxq_result *r = &all->result[i];
        char sigma[40];
        fputs("<tr><td>", out);
        app_escape(out, r->source->name);
        fprintf(out, "</td><td class=r>%s</td><td class=r>%.2f</td>",
                app_human(sigma, sizeof sigma, r->facts.elements ? mxq_sigma(&r->facts) : 0),
                r->facts.energy > 0 ? mxq_crest(&r->facts) : 0);
        for (int b = 0; b < all->budgets; b++) best_cell(out, all, r, all->budget[b]);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

void mxq_write_html(FILE *out, const void *context)
{
    const mxq_all *all = context;
    app_table t;
    app_page_open(out, "mxq: what quantisation costs");
    lead(out, all);
    best(out, all);
    fputs("<h2>Each way</h2><div class=card><div class=legend><span><i style='background:var(--f0)'></i>MX: a power of "
          "two "
          "for 32 values</span><span><i style='background:var(--f1)'></i>float32 scales</span><span><i "
          "style='background:var(--f2)'></i>as they are</span></div>\n",
          out);
    mxq_plot(out, all, MXQ_BARS, false);
    fputs("</div>\n<h2>Errors, outliers, range</h2><div class=grid "
          "style='grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))'>\n",
          out);
    for (int plot = MXQ_BARS + 1; plot < MXQ_PLOTS; plot++) {
        fputs("<div class=panel>\n", out);
        mxq_plot(out, all, plot, false);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
    mxq_table(all, &t);
    fputs("<h2>All numbers</h2><details class=card><summary>the table</summary>", out);
    app_html_table(out, &t);
    fprintf(out,
            "</details><footer><p>mxq %s of trnmath, seed %llu. The theory is that of arXiv:2510.25602.</p></footer>\n",
            TRN_VERSION, (unsigned long long)all->job->seed);
    app_page_close(out);
    app_table_free(&t);
}

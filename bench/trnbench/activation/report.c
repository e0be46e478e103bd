/* report.c - the HTML page of subcommand activation: one small picture of the error per function.
 * SPDX-License-Identifier: MIT
 */
#include "activation.h"

#include <math.h>
#include <string.h>

#include "bench/common/host.h"
#include "app/page.h"

/* A small picture: its plot is PLOT_W x PLOT_H; the error goes from 1e-9 at the bottom to 1 at the top. */
enum { LEFT = 46, TOP = 16, PLOT_W = 276, PLOT_H = 130, WIDTH = 332, HEIGHT = 170, DECADES = 9 };

static double height_of(double error)
{
    const double decade = error > 0 ? fmax(fmin(log10(error) + DECADES, DECADES), 0) : 0;
    return TOP + PLOT_H * (1 - decade / DECADES);
}

static void draw_axes(FILE *out, const tb_act_result *r)
{
    static const char *const power[] = { "10⁻⁹", "10⁻⁶", "10⁻³", "1" };
    for (int i = 0; i < 4; i++) {
        const double y = TOP + PLOT_H * (1 - i / 3.0);
        fprintf(out, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='var(--line)'/>", LEFT, LEFT + PLOT_W, y, y);
        fprintf(out, "<text class=tick x='%d' y='%.1f' text-anchor=end>%s</text>\n", LEFT - 5, y + 4, power[i]);
    }
    const double ulp = height_of(0x1p-24);
    fprintf(out,
            "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='var(--hbm)' stroke-dasharray='3 3'><title>half a unit "
            "in the last place of binary32</title></line>\n",
            LEFT, LEFT + PLOT_W, ulp, ulp);
    fprintf(out, "<text class=tick x='%d' y='%d'>%.4g</text>", LEFT, TOP + PLOT_H + 16,
            fabs(r->engine.from) < 1e-6 ? 0.0 : r->engine.from);
    fprintf(out, "<text class=tick x='%d' y='%d' text-anchor=end>%.4g</text>", LEFT + PLOT_W, TOP + PLOT_H + 16,
            r->engine.to);
    fprintf(out, "<text class=tick x='%d' y='%d' text-anchor=middle>x</text>\n", LEFT + PLOT_W / 2, TOP + PLOT_H + 16);
}

/* Bins without numbers break the line. */
static void draw_error(FILE *out, const tb_act_error *e, const char *colour)
{
    bool open = false;
    if (!e->there) return;
    fprintf(out, "<path fill=none stroke='var(%s)' stroke-width='1.3' d='", colour);
    for (int i = 0; i < TB_ACT_BINS; i++) {
        if (e->worst[i] < 0) {
            open = false;
            continue;
        }
        fprintf(out, "%c%.1f %.1f", open ? 'L' : 'M', LEFT + PLOT_W * (i + 0.5) / TB_ACT_BINS, height_of(e->worst[i]));
        open = true;
    }
    fputs("'/>\n", out);
}

static void draw_all(FILE *out, const tb_act_page *page)
{
    fputs("<div class=grid>\n", out);
    for (int i = 0; i < page->results; i++) {
        const char *name = trn_act_name(page->result[i].op);
        fprintf(out,
                "<div class=panel><h3>%s</h3><svg viewBox='0 0 %d %d' role=img style='max-width:400px;margin:0 auto'>"
                "<title>relative error of %s over its range</title>\n",
                name, WIDTH, HEIGHT, name);
        draw_axes(out, &page->result[i]);
        draw_error(out, &page->result[i].ideal, "--peer");
        draw_error(out, &page->result[i].engine, "--f0");
        fputs("</svg></div>\n", out);
    }
    fputs("</div>\n", out);
}

void tb_print_activation_report(FILE *out, const void *context)
{
    const tb_act_page *page = context;
    app_page_open(out, "trnbench activation");
    fputs("<h1>The Scalar engine's functions</h1>\n<p class=lead>How far the engine's tables, and the ideal functions, "
          "are from the truth: the largest relative error in each part of the valid range, binary32, against "
          "MPFR.</p>\n",
          out);
    if (page->results && page->result[0].engine.there) {
        fputs("<div class=legend><span><i style='background:var(--f0)'></i>engine model</span><span><i "
              "style='background:var(--peer)'></i>ideal function</span><span><i style='background:var(--hbm)'></i>half "
              "a unit in the last place</span></div>\n",
              out);
        draw_all(out, page);
    }
    fputs("<h2>Speed and errors</h2><div class=card>", out);
    app_html_table(out, page->table);
    fputs("</div>\n<footer><p>", out);
    app_escape(out, tb_host_processor());
    fprintf(out,
            ", %s kernels, compiled by %s, one thread. trnbench %s &#183; Trainium is a trademark of its owner; this "
            "page is not affiliated with them.</p></footer>\n",
            page->isa, TB_COMPILER, TRN_VERSION);
    app_page_close(out);
}

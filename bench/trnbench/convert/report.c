/* report.c - the HTML page of subcommand convert: bars against the stream, and everybody's answers.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/page.h"

enum { NAME = 240, LEFT = 252, FULL = 592, RATE = 800, NOTE = 818, WIDTH = 1080, BAR = 17, GAP = 12, TOP = 30 };
#define MOST                                                                                                           \
    1.5 /* of the stream, that there is room for: memcpy can do more, where much is read and little written            \
         */

/* Who is drawn, in this order. */
enum { TRNMATH_BAR = 0, COPY_BAR = TB_MAKERS, BARS };

static const tb_speed *speed_at(const tb_measured *m, int bar) { return bar == COPY_BAR ? &m->copy : &m->maker[bar]; }
static const char *bar_name(int bar) { return bar == COPY_BAR ? "memcpy" : tb_maker_name((tb_maker_id)bar); }
static const char *bar_colour(int bar) { return bar == TRNMATH_BAR ? "--f0" : bar == COPY_BAR ? "--f4" : "--peer"; }

static void draw_bar(FILE *out, double y, int bar, const tb_speed *s, const tb_answers *answers)
{
    char share[32], ratio[32];
    fprintf(out, "<text class=small x='%d' y='%.1f' text-anchor=end>%s</text>", NAME, y + 11, bar_name(bar));
    fprintf(out, "<rect x='%d' y='%.1f' width='%.1f' height='%d' rx='3' fill='var(%s)'><title>%s of the stream", LEFT,
            y + 2, fmax((FULL - LEFT) * fmin(s->stream, MOST), 2), BAR - 5, bar_colour(bar),
            app_percent(share, sizeof share, s->stream));
    fprintf(out, "</title></rect><text class='num small' x='%d' y='%.1f' text-anchor=end>%s</text>", RATE, y + 11,
            app_human(ratio, sizeof ratio, s->rate / 1e9));
    fprintf(out, "<text class=small x='%d' y='%.1f'>", NOTE, y + 11);
    if (bar == TRNMATH_BAR)
        fprintf(out, "%s", share);
    else
        fprintf(out, "trnmath %s &#215;", app_human(ratio, sizeof ratio, s->ratio));
    if (answers && answers->wrong)
        fprintf(out, "<tspan fill='var(--f3)'>, %lld of %lld wrong<title>", (long long)answers->wrong,
                (long long)answers->cases),
            app_escape(out, answers->first), fputs("</title></tspan>", out);
    fputs("</text>\n", out);
}

static int bars_of(const tb_measured *m)
{
    int n = 0;
    for (int bar = 0; bar < BARS; bar++) n += speed_at(m, bar)->rate > 0;
    return n;
}

static double draw_conversion(FILE *out, const tb_convert_item *item, const tb_measured *m, double y)
{
    const double top = y;
    fprintf(out, "<text class=name x='0' y='%.1f'>", y + 12);
    app_escape(out, item->conversion->name);
    fputs("</text>", out);
    for (int bar = 0; bar < BARS; bar++) {
        if (speed_at(m, bar)->rate <= 0) continue;
        draw_bar(out, y, bar, speed_at(m, bar), bar == COPY_BAR ? NULL : &item->answers[bar]);
        y += BAR;
    }
    fprintf(out,
            "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='var(--hbm)' stroke-width='2'><title>stream: %.3g "
            "Gelem/s, %s</title></line>\n",
            FULL, FULL, top + 1, y - 1, m->stream.rate / 1e9, m->stream_name ? m->stream_name : "none");
    return y - top + GAP;
}

static void draw_size(FILE *out, const tb_convert_job *job, int threads, int size)
{
    double height = TOP, y = TOP;
    for (int i = 0; i < job->items; i++) height += BAR * bars_of(&job->item[i].speed[threads][size]) + GAP;
    fprintf(out, "<details class=card%s><summary>%zu elements (%s), %d thread%s</summary>", threads == 0 ? " open" : "",
            job->size[size], tb_memory_name(5.0 * (double)job->size[size]), job->threads[threads],
            job->threads[threads] == 1 ? "" : "s");
    app_picture_open(out, WIDTH, height, "speed of each conversion", "bars of elements a second, with their numbers");
    fprintf(out, "<text class=tick x='%d' y='14' text-anchor=middle>stream</text>", FULL);
    fprintf(out, "<text class=tick x='%d' y='14' text-anchor=end>Gelem/s</text>\n", RATE);
    for (int i = 0; i < job->items; i++)
        y += draw_conversion(out, &job->item[i], &job->item[i].speed[threads][size], y);
    app_picture_close(out);
    fputs("</details>\n", out);
}

static void print_facts(FILE *out, const tb_convert_job *job)
{
    int64_t cases = 0, wrong = 0, theirs = 0;
    char number[64], text[96];
    for (int i = 0; i < job->items; i++)
        for (int id = 0; id < TB_MAKERS; id++) {
            const tb_answers *a = &job->item[i].answers[id];
            if (id == TB_TRNMATH)
                cases += a->cases, wrong += a->wrong;
            else
                theirs += a->wrong;
        }
    fputs("<div class=facts>", out);
    snprintf(number, sizeof number, "%lld wrong", (long long)wrong);
    snprintf(text, sizeof text, "of %s answers of trnmath; %lld of its peers'", app_count((char[32]){ 0 }, 32, cases),
             (long long)theirs);
    if (cases) app_fact(out, number, text);
    for (int s = 0; s < job->sizes && job->timed; s++) {
        double log_share = 0;
        for (int i = 0; i < job->items; i++) log_share += log(job->item[i].speed[0][s].maker[TB_TRNMATH].stream);
        app_percent(number, sizeof number, exp(log_share / job->items));
        snprintf(text, sizeof text, "of what memory can do in %s, geometric mean of %d conversions",
                 tb_memory_name(5.0 * (double)job->size[s]), job->items);
        app_fact(out, number, text);
    }
    fputs("</div>\n", out);
}

static void print_table(FILE *out, const char *title, const app_table *t)
{
    fprintf(out, "<details class=card><summary>%s</summary>", title);
    app_html_table(out, t);
    fputs("</details>\n", out);
}

static void print_notes(FILE *out, const tb_convert_job *job)
{
    char *text = NULL;
    size_t size = 0;
    FILE *notes = open_memstream(&text, &size);
    if (notes) tb_convert_notes(notes, job);
    if (!notes || fclose(notes) != 0 || !text) exit(app_complain(APP_USAGE, "there is not enough memory for a report"));
    fputs("<footer><p>", out);
    app_escape(out, text);
    fprintf(out,
            "</p><p>trnbench %s &#183; Trainium is a trademark of its owner; this page is not affiliated with "
            "them.</p></footer>\n",
            TRN_VERSION);
    free(text);
}

void tb_print_convert_report(FILE *out, const void *context)
{
    const tb_convert_job *job = context;
    app_table t;
    app_page_open(out, "trnbench convert");
    fputs("<h1>Number formats into each other</h1>\n<p class=lead>How fast trnmath converts on this host, beside loops "
          "that only move as many bytes, and beside its peers; and whose answers are wrong.</p>\n",
          out);
    print_facts(out, job);
    fputs("<h2>Who</h2><div class=card>", out);
    tb_convert_makers(&t, job);
    app_html_table(out, &t);
    app_table_free(&t);
    fputs("</div>\n", out);
    if (job->timed)
        fputs("<h2>Speed</h2>\n<div class=legend><span><i style='background:var(--f0)'></i>trnmath</span><span><i "
              "style='background:var(--peer)'></i>peers</span><span><i style='background:var(--f4)'></i>memcpy of as "
              "many bytes</span><span><i style='background:var(--hbm)'></i>the fastest stream</span></div>\n",
              out);
    for (int n = 0; n < job->thread_counts && job->timed; n++)
        for (int s = 0; s < job->sizes; s++) draw_size(out, job, n, s);
    tb_convert_overview(&t, job);
    print_table(out, "trnmath as a table", &t);
    app_table_free(&t);
    print_notes(out, job);
    app_page_close(out);
}

/* picture.c - the pictures of the report: bars, curves, and what the library draws.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_plan.h>
#include <trnmath/trn_topology.h>

#include "app/chart.h"
#include "app/page.h"

/* ---- bars ---- */

static void segment(FILE *out, const char *colour, int number, double share, const char *title, const char *value)
{
    if (share > 0)
        fprintf(out, "<i style='width:%.3f%%;background:var(--%s%d)' title='%s, %s'></i>", 100 * share, colour, number,
                title, value);
}

static void legend(FILE *out, const char *colour, const char *const *name, int names)
{
    fputs("<div class=legend>", out);
    for (int i = 0; i < names; i++)
        fprintf(out, "<span><i style='background:var(--%s%d)'></i>%s</span>", colour, i, name[i]);
    fputs("</div>\n", out);
}

static const char *const memory_name[] = { "weights",     "gradients", "optimizer states",
                                           "activations", "KV cache",  "buffers" };
enum { MEMORIES = sizeof memory_name / sizeof memory_name[0] };

void sp_memory_bar(FILE *out, const trn_plan_memory *b)
{
    const double part[MEMORIES] = { b->weights, b->gradients, b->optimizer, b->activations, b->kv, b->buffers };
    const double all = fmax(b->capacity, b->total);
    fputs("<div class=bar>", out);
    for (int i = 0; i < MEMORIES; i++) segment(out, "m", i, part[i] / all, memory_name[i], sp_bytes(part[i]).text);
    fputs("</div>", out);
}

void sp_legend_memory(FILE *out) { legend(out, "m", memory_name, MEMORIES); }

static const char *const time_name[] = { "products, TensorE", "products, HBM",
                                         "attention",         "elementwise",
                                         "optimizer",         "tp collectives",
                                         "ep all_to_all",     "cp, dp, pp beyond what work hides",
                                         "pipeline bubble",   "embedding lookups" };
enum { TIMES = sizeof time_name / sizeof time_name[0] };

/* What fills the step, without what runs at the same time as something else. */
static void exposed(const trn_plan *p, double part[TIMES])
{
    const trn_plan_time *t = &p->expected;
    const double work = t->products_s + t->reads_s + t->attention_s + t->elementwise_s + t->update_s + t->lookups_s;
    const double left = fmax(0, p->expected_s - work - t->bubble_s), waits = t->tp_s + t->ep_s;
    const double scale = waits > left ? left / waits : 1; /* a part of tp may be hidden, too */
    const double value[TIMES] = { t->products_s, t->reads_s,      t->attention_s,  t->elementwise_s,
                                  t->update_s,   scale * t->tp_s, scale * t->ep_s, fmax(0, left - waits),
                                  t->bubble_s,   t->lookups_s };
    memcpy(part, value, sizeof value);
}

void sp_time_bar(FILE *out, const trn_plan *p, double longest_s)
{
    double part[TIMES];
    exposed(p, part);
    fputs("<div class='bar time'>", out);
    for (int i = 0; i < TIMES; i++) segment(out, "t", i, part[i] / longest_s, time_name[i], sp_time(part[i]).text);
    fputs("</div>", out);
}

void sp_legend_time(FILE *out) { legend(out, "t", time_name, TIMES); }

/* ---- curves: chips along the bottom, both axes logarithmic ---- */

typedef struct sp_curve {
    const char *title, *what; /* "time": what is drawn, in seconds or else as it is */
    double x[SP_SCALES], y[SP_SCALES];
    int points, colour;
    bool seconds;
} sp_curve;

/* Times in the unit in which the longest one is at least 1. */
static const char *unit_of(sp_curve *c)
{
    static const struct {
        double size;
        const char *name;
    } row[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    double most = 0;
    size_t u = 0;
    for (int i = 0; i < c->points; i++) most = fmax(most, c->y[i]);
    while (u + 1 < sizeof row / sizeof row[0] && most < row[u].size) u++;
    for (int i = 0; i < c->points; i++) c->y[i] /= row[u].size;
    return row[u].name;
}

static void draw_curve(FILE *out, sp_curve *c)
{
    char y_title[96];
    if (c->points < 1) return;
    if (c->seconds) snprintf(y_title, sizeof y_title, "%s, %s", c->what, unit_of(c));
    const chart_line line = { .x = c->x, .y = c->y, .count = c->points, .colour = c->colour, .dots = true };
    fputs("<div class=panel>", out);
    chart_lines(out, &(chart){ .title = c->title,
                               .x_title = "chips",
                               .y_title = c->seconds ? y_title : c->what,
                               .line = &line,
                               .lines = 1,
                               .x_log = true,
                               .y_log = true });
    fputs("</div>\n", out);
}

void sp_curves(FILE *out, const sp_job *job)
{
    sp_curve reduce = {
        .title = "all_reduce of 1 GiB", .what = "time, one rank on each chip", .colour = 3, .seconds = true
    };
    sp_curve step = {
        .title = "Time", .what = "of the fastest plan, as much work per chip", .colour = 2, .seconds = true
    };
    sp_curve rate = { .title = "Tokens per second", .what = "of the same plan", .colour = 0 };
    for (int i = 0; i < job->scales; i++) {
        const sp_scale *s = &job->scale[i];
        if (s->chips > 1) reduce.x[reduce.points] = s->chips, reduce.y[reduce.points++] = s->all_reduce_s;
        if (!s->legal) continue;
        step.x[step.points] = rate.x[rate.points] = s->chips;
        step.y[step.points++] = s->plan.expected_s;
        rate.y[rate.points++] = s->plan.expected_tokens_per_s;
    }
    fputs("<div class=grid>", out);
    draw_curve(out, &reduce);
    draw_curve(out, &step);
    draw_curve(out, &rate);
    fputs("</div>\n", out);
}

/* ---- pictures of the library, each in a document of its own, so that no style meets another ---- */

typedef struct sp_buffer {
    char *text;
    size_t used, capacity;
} sp_buffer;

static void keep(void *user, const char *text, size_t bytes)
{
    sp_buffer *b = user;
    if (b->used + bytes > b->capacity) {
        b->capacity = 2 * (b->used + bytes);
        b->text = app_resize(b->text, b->capacity, 1);
    }
    memcpy(b->text + b->used, text, bytes);
    b->used += bytes;
}

static void replace(sp_buffer *b, size_t at, size_t length, const char *text)
{
    const size_t more = strlen(text), used = b->used;
    keep(b, text, more); /* memory for it */
    memmove(b->text + at + more, b->text + at + length, used - at - length);
    memcpy(b->text + at, text, more);
    b->used = used - length + more;
}

/* Where that text is; b->used: nowhere. */
static size_t find(const sp_buffer *b, const char *text, size_t from)
{
    const size_t n = strlen(text);
    for (size_t i = from; i + n <= b->used; i++)
        if (memcmp(b->text + i, text, n) == 0) return i;
    return b->used;
}

/* The drawing knows dark from light; it also says so, or a browser would put white behind it. And it has no paper of
 * its own: the card is its paper, and the shadows that say that it scrolls lie there. */
static void fit_for_page(sp_buffer *b)
{
    const size_t paper = find(b, "<rect class=\"paper\"", 0), end = find(b, "/>", paper);
    if (end < b->used) replace(b, paper, end + 2 - paper, "");
    if (find(b, "<svg ", 0) == 0) replace(b, 0, 5, "<svg style='color-scheme:light dark' ");
}

static void print_object(FILE *out, sp_buffer *b, const char *what)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fit_for_page(b);
    app_scroll_open(out, what);
    fprintf(out, "<object type='image/svg+xml' role=img aria-label='%s' data='data:image/svg+xml;base64,", what);
    for (size_t i = 0; i < b->used; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < b->used ? (unsigned char)b->text[i + k] : 0);
        for (size_t k = 0; k < 4; k++) fputc(i + k > b->used ? '=' : digit[bits >> (18 - 6 * k) & 63], out);
    }
    fputs("'></object>", out);
    app_scroll_close(out);
    free(b->text);
}

void sp_topology_picture(FILE *out, const sp_job *job)
{
    sp_buffer b = { NULL, 0, 0 };
    trn_topology_svg_args args = { .net = &job->net, .write = keep, .user = &b };
    if (trn_topology_svg(&args) == TRN_OK)
        print_object(out, &b, "the network");
    else
        free(b.text);
}

/* The drawing tells all times in microseconds or nanoseconds, and calls its events instructions: a step of seconds
 * reads better in seconds. Numbers that stand before " us" or " ns" are told anew. */
static const char *after_number(const char *at, const char *end)
{
    while (at < end && ((*at >= '0' && *at <= '9') || *at == '.')) at++;
    return at;
}

static void retell(const sp_buffer *from, sp_buffer *to)
{
    static const char noun[] = " instructions", other[] = " events";
    const char *at = from->text, *end = from->text + from->used;
    while (at < end) {
        const char *rest = after_number(at, end);
        const size_t left = (size_t)(end - rest);
        const bool unit =
            rest > at && left > 3 && rest[0] == ' ' && (rest[1] == 'u' || rest[1] == 'n') && rest[2] == 's';
        if (unit) {
            const char *text = sp_time(strtod(at, NULL) * (rest[1] == 'u' ? 1e-6 : 1e-9)).text;
            keep(to, text, strlen(text));
            at = rest + 3;
        } else if (rest > at) {
            keep(to, at, (size_t)(rest - at));
            at = rest;
        } else if (left >= sizeof noun && memcmp(at, noun, sizeof noun - 1) == 0) {
            keep(to, other, sizeof other - 1);
            at += sizeof noun - 1;
        } else
            keep(to, at++, 1);
    }
}

static void print_trace(FILE *out, const sp_job *job, bool layer, const char *title)
{
    enum { EVENTS = 60000 };
    sp_buffer b = { NULL, 0, 0 };
    trn_trace_event *event = app_memory(EVENTS, sizeof *event);
    trn_trace trace = { .event = event, .capacity = EVENTS, .title = title };
    trn_trace_svg_args picture = { .trace = &trace, .write = keep, .user = &b, .width = 1130 };
    const trn_status status = layer ? trn_plan_trace_layer(&job->args, &job->plan[0], &trace)
                                    : trn_plan_trace_step(&job->args, &job->plan[0], &trace);
    if (app_worked(status, &job->error)) {
        trn_trace_svg(&picture);
        sp_buffer told = { NULL, 0, 0 };
        retell(&b, &told);
        print_object(out, &told, title);
    }
    free(b.text);
    free(event);
}

void sp_step_picture(FILE *out, const sp_job *job)
{
    print_trace(out, job, false, job->args.job == TRN_JOB_DECODE ? "one token, ideal times" : "one step, ideal times");
}

void sp_layer_picture(FILE *out, const sp_job *job)
{
    const bool train = job->args.job == TRN_JOB_TRAIN;
    print_trace(out, job, true, train ? "one layer, forward and backward, ideal times" : "one layer, ideal times");
}

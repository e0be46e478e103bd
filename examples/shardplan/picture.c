/* picture.c - the pictures of the report: bars, curves, and what the library draws.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_plan_trace.h>
#include <trnmath/trn_topology_svg.h>

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

static const char *const time_name[] = { "products, TensorE", "products, HBM",  "attention",
                                         "elementwise",       "optimizer",      "tp collectives",
                                         "ep all_to_all",     "cp, dp, pp beyond what work hides", "pipeline bubble",
                                         "embedding lookups" };
enum { TIMES = sizeof time_name / sizeof time_name[0] };

/* What fills the step, without what runs at the same time as something else. */
static void exposed(const trn_plan *p, double part[TIMES])
{
    const trn_plan_time *t = &p->expected;
    const double work = t->products_s + t->reads_s + t->attention_s + t->elementwise_s + t->update_s + t->lookups_s;
    const double left = fmax(0, p->expected_s - work - t->bubble_s), waits = t->tp_s + t->ep_s;
    const double scale = waits > left ? left / waits : 1; /* a part of tp may be hidden, too */
    const double value[TIMES] = { t->products_s, t->reads_s, t->attention_s, t->elementwise_s, t->update_s,
                                  scale * t->tp_s, scale * t->ep_s, fmax(0, left - waits), t->bubble_s, t->lookups_s };
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

enum { WIDE = 360, HIGH = 230, LEFT = 52, RIGHT = 14, TOP = 12, BOTTOM = 30 };

typedef struct sp_curve {
    const char *title, *about;
    double x[SP_SCALES], y[SP_SCALES];
    int points;
    sp_text (*label)(double);
    int colour;
} sp_curve;

typedef struct sp_frame {
    double x_low, x_high, y_low, y_high; /* logarithms */
} sp_frame;

static double across(const sp_frame *f, double x)
{
    return LEFT + (WIDE - LEFT - RIGHT) * (log10(x) - f->x_low) / (f->x_high - f->x_low);
}

static double up(const sp_frame *f, double y)
{
    return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * (log10(y) - f->y_low) / (f->y_high - f->y_low);
}

static sp_frame frame_of(const sp_curve *c)
{
    sp_frame f = { log10(c->x[0]), log10(c->x[c->points - 1]), log10(c->y[0]), log10(c->y[0]) };
    for (int i = 0; i < c->points; i++) {
        f.y_low = fmin(f.y_low, log10(c->y[i]));
        f.y_high = fmax(f.y_high, log10(c->y[i]));
    }
    if (f.x_high - f.x_low < 0.1) f.x_high = f.x_low + 0.1;
    const double middle = (f.y_low + f.y_high) / 2, half = fmax(0.35, 0.58 * (f.y_high - f.y_low));
    f.y_low = middle - half;
    f.y_high = middle + half;
    return f;
}

/* A line at 1, 2 and 5 times each power of ten, or at the powers alone when there are many. */
static void grid(FILE *out, const sp_curve *c, const sp_frame *f)
{
    const double step[] = { 1, 2, 5 };
    const int each = f->y_high - f->y_low > 2.2 ? 1 : 3;
    for (int power = (int)floor(f->y_low) - 1; power <= (int)f->y_high + 1; power++)
        for (int i = 0; i < each; i++) {
            const double y = step[i] * pow(10, power);
            if (log10(y) < f->y_low || log10(y) > f->y_high) continue;
            fprintf(out, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='var(--line)'/><text x='%d' y='%.1f' "
                    "text-anchor='end'>%s</text>", LEFT, WIDE - RIGHT, up(f, y), up(f, y), LEFT - 7, up(f, y) + 4,
                    c->label(y).text);
        }
}

static void ticks(FILE *out, const sp_curve *c, const sp_frame *f)
{
    double last = -100;
    for (int i = 0; i < c->points; i++) {
        const double x = across(f, c->x[i]);
        const bool end = i + 1 == c->points;
        if ((x - last < 46 && !end) || (!end && across(f, c->x[c->points - 1]) - x < 46)) continue;
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='%s'>%s</text>", end ? x + 6 : x, HIGH - 10,
                end ? "end" : "middle", sp_count((int64_t)c->x[i]).text);
        last = x;
    }
}

static void draw_curve(FILE *out, const sp_curve *c)
{
    if (c->points < 1) return;
    const sp_frame f = frame_of(c);
    fprintf(out, "<div class=card><h3>%s</h3><p class=sub>%s</p><svg class=curve viewBox='0 0 %d %d'>", c->title,
            c->about, WIDE, HIGH);
    grid(out, c, &f);
    ticks(out, c, &f);
    fprintf(out, "<polyline fill='none' stroke='var(--t%d)' stroke-width='2' points='", c->colour);
    for (int i = 0; i < c->points; i++) fprintf(out, "%.1f,%.1f ", across(&f, c->x[i]), up(&f, c->y[i]));
    fputs("'/>", out);
    for (int i = 0; i < c->points; i++)
        fprintf(out, "<circle cx='%.1f' cy='%.1f' r='3.2' fill='var(--t%d)'><title>%s chips: %s</title></circle>",
                across(&f, c->x[i]), up(&f, c->y[i]), c->colour, sp_count((int64_t)c->x[i]).text,
                c->label(c->y[i]).text);
    const int end = c->points - 1;
    fprintf(out, "<text class=value x='%.1f' y='%.1f' text-anchor='end'>%s</text></svg></div>\n",
            across(&f, c->x[end]) + 4, up(&f, c->y[end]) - 9, c->label(c->y[end]).text);
}

void sp_curves(FILE *out, const sp_job *job)
{
    sp_curve reduce = { "all_reduce of 1 GiB", "over all chips, one rank each", { 0 }, { 0 }, 0, sp_time, 5 };
    sp_curve step = { "time", "of the fastest plan, as much work per chip", { 0 }, { 0 }, 0, sp_time, 0 };
    sp_curve rate = { "tokens per second", "of the same", { 0 }, { 0 }, 0, sp_si, 3 };
    for (int i = 0; i < job->scales; i++) {
        const sp_scale *s = &job->scale[i];
        if (s->chips > 1) reduce.x[reduce.points] = s->chips, reduce.y[reduce.points++] = s->all_reduce_s;
        if (!s->legal) continue;
        step.x[step.points] = rate.x[rate.points] = s->chips;
        step.y[step.points++] = s->plan.expected_s;
        rate.y[rate.points++] = s->plan.expected_tokens_per_s;
    }
    fputs("<div class=three>", out);
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

/* The drawing knows dark from light; it also says so, or a browser would put white behind it. */
static void say_schemes(sp_buffer *b)
{
    static const char tag[] = "<svg ", style[] = "style='color-scheme:light dark' ";
    const size_t at = sizeof tag - 1, more = sizeof style - 1, used = b->used;
    if (used < at || memcmp(b->text, tag, at) != 0) return;
    keep(b, style, more); /* memory for it */
    memmove(b->text + at + more, b->text + at, used - at);
    memcpy(b->text + at, style, more);
}

static void print_object(FILE *out, sp_buffer *b, const char *what, int most)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    say_schemes(b);
    fprintf(out, "<object type='image/svg+xml' style='max-width:%dpx' aria-label='%s' data='data:image/svg+xml;base64,",
            most, what);
    for (size_t i = 0; i < b->used; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < b->used ? (unsigned char)b->text[i + k] : 0);
        for (size_t k = 0; k < 4; k++) fputc(i + k > b->used ? '=' : digit[bits >> (18 - 6 * k) & 63], out);
    }
    fputs("'></object>\n", out);
    free(b->text);
}

void sp_topology_picture(FILE *out, const sp_job *job)
{
    sp_buffer b = { NULL, 0, 0 };
    trn_topology_svg_args args = { .net = &job->net, .write = keep, .user = &b };
    if (trn_topology_svg(&args) == TRN_OK) print_object(out, &b, "the network", 760);
    else free(b.text);
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
        } else keep(to, at++, 1);
    }
}

static void print_trace(FILE *out, const sp_job *job, bool layer, const char *title)
{
    enum { EVENTS = 60000 };
    sp_buffer b = { NULL, 0, 0 };
    trn_trace_event *event = app_memory(EVENTS, sizeof *event);
    trn_trace trace = { .event = event, .capacity = EVENTS, .title = title };
    trn_trace_svg_args picture = { .trace = &trace, .write = keep, .user = &b, .width = 1160 };
    const trn_status status = layer ? trn_plan_trace_layer(&job->args, &job->plan[0], &trace)
                                    : trn_plan_trace_step(&job->args, &job->plan[0], &trace);
    if (app_worked(status, &job->error)) {
        trn_trace_svg(&picture);
        sp_buffer told = { NULL, 0, 0 };
        retell(&b, &told);
        print_object(out, &told, title, 1160);
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

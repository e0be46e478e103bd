/* explain.c - hypotheses about where A and B come from: tried on a sample, ranked, tried on everything, told.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

#define SECOND_ROUND_S 8.0 /* at most, on all outputs */

/* ---- what sources use ---- */

ud_hypothesis *ud_suppose(ud_explanation *e)
{
    if (e->count == e->capacity) {
        e->capacity = e->capacity ? 2 * e->capacity : 256;
        e->list = app_resize(e->list, (size_t)e->capacity, sizeof *e->list);
    }
    memset(&e->list[e->count], 0, sizeof *e->list);
    return &e->list[e->count++];
}

void ud_say(ud_hypothesis *h, int aspect, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    io_say_list(h->value[aspect], sizeof h->value[0], sizeof h->value[0], format, list);
    va_end(list);
}

void ud_round_values(trn_format format, trn_rounding rounding, trn_overflow overflow, float *value, int64_t n)
{
    uint32_t code[UD_BLOCK];
    if (format == TRN_F32) return;
    for (int64_t at = 0; at < n; at += UD_BLOCK) {
        const int64_t count = n - at < UD_BLOCK ? n - at : UD_BLOCK;
        const trn_tensor wide = trn_tensor_1d(TRN_F32, value + at, count), narrow = trn_tensor_1d(format, code, count);
        trn_convert_args there = { .dst = narrow, .src = wide, .rounding = rounding, .overflow = overflow };
        trn_convert_args back = { .dst = wide, .src = narrow };
        if (trn_convert(&there) != TRN_OK || trn_convert(&back) != TRN_OK) abort();
    }
}

int ud_significand(trn_format format)
{
    const ud_unit unit = { UD_CODES, format, false };
    return ud_unit_significand(&unit);
}

bool ud_can_be(const ud_pair *p, trn_format format)
{
    const ud_unit a = ud_unit_of(&p->a), b = ud_unit_of(&p->b);
    return ud_unit_significand(&a) >= ud_significand(format) || ud_unit_significand(&b) >= ud_significand(format);
}

int64_t *ud_spread(int64_t n, int64_t count)
{
    int64_t *index = app_memory((size_t)count, sizeof *index);
    for (int64_t i = 0; i < count; i++) index[i] = (int64_t)((double)i * (double)n / (double)count);
    return index;
}

/* ---- scoring ---- */

static double *take_targets(const ud_array *a, const int64_t *index, int64_t n)
{
    double *out = app_memory((size_t)n, sizeof *out);
    for (int64_t at = 0; !index && at < n; at += UD_BLOCK)
        ud_values(a, at, n - at < UD_BLOCK ? (int)(n - at) : UD_BLOCK, out + at);
    for (int64_t i = 0; index && i < n; i++) ud_values(a, index[i], 1, &out[i]);
    return out;
}

static void score_block(const ud_unit *unit, const double *value, const double *target, int n, ud_score *score)
{
    int64_t code[2][UD_BLOCK];
    if (!unit->places) {
        ud_order_values(unit, n, value, code[0]);
        ud_order_values(unit, n, target, code[1]);
    }
    for (int i = 0; i < n; i++) {
        const double x = value[i], y = target[i];
        if (!isfinite(x) || !isfinite(y)) {
            const bool same = isnan(x) ? isnan(y) != 0 : x == y;
            score->equal += same;
            if (!same) score->worst = INFINITY;
            continue;
        }
        const double u =
            unit->places ? fabs(x - y) / ud_last_place(unit, y) : fabs((double)code[0][i] - (double)code[1][i]);
        score->equal += x == y;
        score->energy += (x - y) * (x - y);
        score->mean += u;
        score->worst = fmax(score->worst, u);
    }
}

static ud_score score_of(const ud_unit *unit, const float *value, const double *target, int64_t n)
{
    ud_score score = { .outputs = n };
    double x[UD_BLOCK];
    for (int64_t at = 0; at < n; at += UD_BLOCK) {
        const int count = n - at < UD_BLOCK ? (int)(n - at) : UD_BLOCK;
        for (int i = 0; i < count; i++) x[i] = (double)value[at + i];
        score_block(unit, x, target + at, count, &score);
    }
    if (n) score.mean /= (double)n;
    return score;
}

bool ud_exact(const ud_hypothesis *h, int side) { return h->score[side].equal == h->score[side].outputs; }

/* A unit in which values that stand nowhere can be counted. */
static ud_unit unit_of_values(const ud_pair *p)
{
    ud_unit unit = p->unit;
    if (unit.kind != UD_CODES && unit.kind != UD_F64) unit.places = true;
    return unit;
}

static bool try_one(const ud_job *job, ud_explanation *e, ud_hypothesis *h, bool whole, float *value)
{
    const int64_t n = whole ? e->source.outputs : e->source.sampled;
    const ud_unit unit = unit_of_values(&job->pair[0]);
    if (!e->source.run(e->source.context, h, whole, value)) return false;
    for (int side = 0; side < 2; side++) h->score[side] = score_of(&unit, value, e->source.target[side], n);
    h->whole = n == e->source.total;
    return true;
}

/* ---- ranking ---- */

static int compare_scores(const ud_score *x, const ud_score *y)
{
    const double p = ud_share(x->equal, x->outputs), q = ud_share(y->equal, y->outputs);
    if (p != q) return p > q ? -1 : 1;
    if (x->energy != y->energy) return x->energy < y->energy ? -1 : 1;
    return 0;
}

static int compare_hypotheses(const ud_hypothesis *x, const ud_hypothesis *y, int side)
{
    const int by_score = compare_scores(&x->score[side], &y->score[side]);
    if (!by_score && x->whole != y->whole) return x->whole ? -1 : 1;
    return by_score ? by_score : x->surprise != y->surprise ? x->surprise - y->surprise : strcmp(x->text, y->text);
}

static int for_b(const void *x, const void *y) { return compare_hypotheses(x, y, 1); }

const ud_hypothesis *ud_best(const ud_explanation *e, int side)
{
    const ud_hypothesis *best = NULL;
    for (int i = 0; i < e->count; i++)
        if (!best || compare_hypotheses(&e->list[i], best, side) < 0) best = &e->list[i];
    return best;
}

static void rank(ud_explanation *e) { qsort(e->list, (size_t)e->count, sizeof *e->list, for_b); }

static void drop_refused(ud_explanation *e)
{
    int kept = 0;
    for (int i = 0; i < e->count; i++)
        if (!e->list[i].refused) e->list[kept++] = e->list[i];
    e->refused = e->count - kept;
    e->count = kept;
}

/* ---- the two rounds ---- */

static void set_targets(const ud_job *job, ud_explanation *e, bool whole)
{
    const ud_array *side[2] = { &job->pair[0].a, &job->pair[0].b };
    for (int k = 0; k < 2; k++) {
        free((void *)(uintptr_t)e->source.target[k]);
        e->source.target[k] =
            take_targets(side[k], whole ? NULL : e->source.index, whole ? e->source.outputs : e->source.sampled);
    }
}

static void first_round(const ud_job *job, ud_explanation *e)
{
    float *value = app_memory((size_t)e->source.sampled, sizeof *value);
    set_targets(job, e, false);
    for (int i = 0; i < e->count; i++) {
        e->list[i].refused = !try_one(job, e, &e->list[i], false, value);
        app_progress("hypothesis %d of %d", i + 1, e->count);
    }
    free(value);
    drop_refused(e);
    rank(e);
}

/* Whoever is right on the sample, and the first that are shown, on everything, as far as the time allows. */
static void second_round(const ud_job *job, ud_explanation *e)
{
    const double start = app_now();
    float *value = app_memory((size_t)e->source.outputs, sizeof *value);
    const ud_hypothesis *best_a = ud_best(e, 0);
    set_targets(job, e, true);
    for (int i = 0; i < e->count && app_now() - start < SECOND_ROUND_S; i++) {
        ud_hypothesis *h = &e->list[i];
        if (i < job->options.top || ud_exact(h, 0) || ud_exact(h, 1) || h == best_a)
            (void)try_one(job, e, h, true, value);
        app_progress("all outputs: %d of %d", i + 1, e->count);
    }
    free(value);
    rank(e);
}

static ud_open *const opener[] = { NULL,         ud_open_matmul,    ud_open_collective, ud_open_collective,
                                   ud_open_cast, ud_open_activation };

bool ud_explain(ud_job *job, char *why)
{
    ud_explanation *e = &job->explanation;
    const double start = app_now();
    if (job->pairs != 1)
        return app_fail(why, "--inputs explains one tensor at a time, and here are %d; choose with --tensor",
                        job->pairs);
    if (!job->pair[0].a.elements) return app_fail(why, "%s has no elements to explain", job->pair[0].a.name);
    job->explained = opener[job->options.op](job, e, why);
    if (job->explained) {
        first_round(job, e);
        if (e->source.sampled < e->source.outputs) second_round(job, e);
    }
    app_progress_done();
    for (int k = 0; k < 2; k++) free((void *)(uintptr_t)e->source.target[k]);
    free(e->source.index);
    if (e->source.close) e->source.close(e->source.context);
    e->source.target[0] = e->source.target[1] = NULL;
    e->seconds = app_now() - start;
    return job->explained;
}

/* ---- telling ---- */

enum { TEXT = 256, NAMED = 72, WIDTH = 100 }; /* NAMED: characters of the values that are named */

static bool counts(const ud_hypothesis *h, int aspect, int side, bool exact)
{
    return h->value[aspect][0] && (!exact || ud_exact(h, side));
}

/* The values that an aspect has in all hypotheses, or in those that are exact. */
static int list_values(const ud_explanation *e, int aspect, int side, bool exact, char *text, size_t size)
{
    int values = 0, more = 0;
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < e->count; i++) {
        const char *v = e->list[i].value[aspect];
        bool seen = !counts(&e->list[i], aspect, side, exact);
        for (int k = 0; k < i && !seen; k++)
            seen = counts(&e->list[k], aspect, side, exact) && strcmp(e->list[k].value[aspect], v) == 0;
        if (seen) continue;
        values++;
        if (at && at + strlen(v) > NAMED)
            more++;
        else
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " | " : "", v);
    }
    if (more) snprintf(text + at, size - at, " | %d more", more);
    return values;
}

/* What all exact hypotheses have in common, and what they do not agree on. */
static void print_needs(FILE *out, const ud_explanation *e, int side)
{
    int at = 0;
    for (int a = 0; e->source.aspect[a]; a++) {
        char text[TEXT], all[TEXT];
        const int values = list_values(e, a, side, true, text, sizeof text),
                  tried = list_values(e, a, side, false, all, sizeof all);
        if (values != 1 || tried < 2) continue;
        const int more = (int)(strlen(e->source.aspect[a]) + strlen(text)) + 3;
        if (!at)
            at = fprintf(out, "     all of them need: ");
        else if (at + more > WIDTH)
            at = fprintf(out, ";\n       ") - 2;
        else
            at += fprintf(out, "; ");
        at += fprintf(out, "%s %s", e->source.aspect[a], text);
    }
    if (at) fputc('\n', out);
}

static void print_open(FILE *out, const ud_explanation *e, int side)
{
    int told = 0;
    for (int a = 0; e->source.aspect[a]; a++) {
        char text[TEXT];
        if (list_values(e, a, side, true, text, sizeof text) < 2) continue;
        if (!told++) fputs("     these data cannot tell:\n", out);
        fprintf(out, "       %-13s %s\n", e->source.aspect[a], text);
    }
}

static int exact_count(const ud_explanation *e, int side, bool whole)
{
    int n = 0;
    for (int i = 0; i < e->count; i++) n += ud_exact(&e->list[i], side) && (!whole || e->list[i].whole);
    return n;
}

/* How many others give this side bit for bit, what they all need, and what these data cannot tell. */
void ud_print_others(FILE *out, const ud_explanation *e, int side)
{
    const int exact = exact_count(e, side, false), whole = exact_count(e, side, true);
    if (exact == 1)
        fprintf(out, "; no other of %d hypotheses does it\n", e->count);
    else
        fprintf(out, "; so are those of %d other%s of %d hypotheses", exact - 1, exact == 2 ? "" : "s", e->count);
    if (exact == 1) return;
    if (whole && whole < exact) fprintf(out, ", %d on the sample alone", exact - whole);
    fputc('\n', out);
    print_needs(out, e, side);
    print_open(out, e, side);
}

static void print_verdict(FILE *out, const ud_explanation *e, int side)
{
    const ud_hypothesis *h = ud_best(e, side);
    const char name = "AB"[side];
    char n[32], of[32];
    if (!h) return;
    const ud_score *s = &h->score[side];
    if (!ud_exact(h, side)) {
        fprintf(out,
                "\n  %c: none of %d hypotheses explains it. The nearest, %.2f %% equal, at most %.6g ulps:\n     %s\n",
                name, e->count, 100 * ud_share(s->equal, s->outputs), s->worst, h->text);
        return;
    }
    fprintf(out, "\n  %c: explained by %s\n     %s of %s outputs computed, all equal", name, h->text,
            app_count(n, sizeof n, s->outputs), app_count(of, sizeof of, e->source.total));
    ud_print_others(out, e, side);
}

static const app_column columns[] = {
    { "equal to B", APP_TEXT, "", "" }, { "max ulp", APP_REAL, "", "" }, { "mean", APP_REAL, "", "" },
    { "equal to A", APP_TEXT, "", "" }, { "max ulp", APP_REAL, "", "" }, { "hypothesis", APP_TEXT, "", "" },
};

static void fill_share(app_table *t, const ud_score *s)
{
    const double p = 100 * ud_share(s->equal, s->outputs);
    app_text(t, s->equal == s->outputs ? "all" : p > 99.99 ? ">99.99 %%" : "%.2f %%", p);
}

static void print_ranking(FILE *out, const ud_job *job)
{
    const ud_explanation *e = &job->explanation;
    app_table t;
    app_table_start(&t, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < e->count && i < job->options.top; i++) {
        const ud_hypothesis *h = &e->list[i];
        app_row(&t);
        fill_share(&t, &h->score[1]);
        app_real(&t, h->score[1].worst);
        app_real(&t, h->score[1].mean);
        fill_share(&t, &h->score[0]);
        app_real(&t, h->score[0].worst);
        app_text(&t, "%s", h->text);
    }
    fputc('\n', out);
    app_print_table(out, &t);
    app_table_free(&t);
}

void ud_print_explanation(FILE *out, const ud_job *job)
{
    const ud_explanation *e = &job->explanation;
    char n[32], of[32];
    app_say(out, "\n  why? %s\n", e->source.inputs);
    fprintf(out, "  %d hypotheses", e->count);
    if (e->source.sampled < e->source.total)
        fprintf(out, ", on %s of %s outputs%s", app_count(n, sizeof n, e->source.sampled),
                app_count(of, sizeof of, e->source.total), e->source.sampled < e->source.outputs ? " first" : "");
    if (e->refused) fprintf(out, "; %d more that do not take these formats", e->refused);
    fprintf(out, "; %.1f s\n", e->seconds);
    print_verdict(out, e, 1);
    if (job->pair[0].sums.first < 0)
        fputs("\n  A has no other values\n", out);
    else
        print_verdict(out, e, 0);
    if (e->count && job->options.top) print_ranking(out, job);
}

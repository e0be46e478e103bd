/* network/calibration_fit.h - measured times of collectives into a calibration.
 * A part of trn_calibration_fit.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_CALIBRATION_FIT_H
#define TRNI_NETWORK_CALIBRATION_FIT_H

#include "calibration_file.h"
#include "collective_cost.h"
#include "fit.h"

typedef struct trn_calibration_sample {
    trn_collective_args ask; /* its calibration and uncalibrated are not looked at */
    double measured_s;       /* a picosecond to 10,000 s */
} trn_calibration_sample;

typedef struct trn_calibration_fit_args {
    const trn_calibration_sample *sample;
    int samples;
    const trn_calibration *start; /* NULL = trn_calibration_default() */
    const char *fields;           /* that may move, with blanks between, such as "launch_s hbm"; NULL = all that can */
    int leave_out;                /* 1 + the sample that does not count; 0 = all count */
    bool is_near;                 /* the answer is known to be near the start, so that less is tried */
    trn_error *error;
} trn_calibration_fit_args;

/* Written only when TRN_OK is returned. */
TRN_API trn_status trn_calibration_fit(const trn_calibration_fit_args *args, trn_calibration *calibration);

#if TRNI_BODIES

/* field, the least, the most. */
#define TRNI_FITTED_FIELDS(X)                                                                                          \
    X(launch_s, 1e-8, 1)                                                                                               \
    X(instance_s, 1e-8, 1)                                                                                             \
    X(step_s, 1e-9, 1e-2)                                                                                              \
    X(torus, 0.01, 1)                                                                                                  \
    X(peer, 0.01, 1)                                                                                                   \
    X(switched, 0.01, 1)                                                                                               \
    X(efa, 0.01, 1)                                                                                                    \
    X(hbm, 0.01, 1)                                                                                                    \
    X(dma, 0.01, 1)

typedef struct trni_fitted_field {
    const char *name;
    size_t offset;
    double low, high;
} trni_fitted_field;

/* One algorithm on one sample: steps, and a time without launches and steps that is linear in bytes. Samples that
 * differ in their sizes alone, and take the same schedule, share the line of the first of them. */
typedef struct trni_fit_line {
    trn_algorithm algorithm;
    bool single_step; /* a mesh's all_reduce, which AUTO knows beside the mesh's own */
    int leader;       /* the sample whose line of this algorithm has the times */
    int steps;
    double ideal_latency_s, ideal_slope; /* by which a schedule is recognised */
    double latency_s, slope;             /* of a leader, at the shares that were asked last */
} trni_fit_line;

typedef struct trni_fit_row {
    trni_fit_line line[TRN_ALGORITHM_COUNT + 1];
    int lines, taken;           /* taken: the line that AUTO is held to; -1 = the least */
    double launches, instances; /* how often each counts */
} trni_fit_row;

typedef struct trni_calibration_search {
    const trn_calibration_fit_args *a;
    const trni_fitted_field *field[TRN_FIT_NUMBERS];
    int fields;
    trn_calibration at;
    trn_calibration asked; /* whose shares the lines are for */
    trni_fit_row *row;
} trni_calibration_search;

TRNI_FN double *trni_calibration_number(trn_calibration *c, const trni_fitted_field *f)
{
    return (double *)(void *)((char *)c + f->offset);
}

/* Sample i by the algorithm of this line. */
TRNI_FN trn_status trni_fit_ask(const trni_calibration_search *s, int i, const trni_fit_line *line,
                                const trn_calibration *c, trn_cost *cost)
{
    trn_collective_args ask = s->a->sample[i].ask;
    ask.calibration = c;
    ask.uncalibrated = false;
    ask.error = s->a->error;
    if (line->algorithm != TRN_POINT_TO_POINT) ask.algorithm = line->algorithm;
    ask.single_step = line->single_step;
    return trn_collective_cost(&ask, cost);
}

/* ---- lines ---- */

TRNI_FN double trni_fit_slope(const trn_cost *cost, double bytes)
{
    return bytes > 0 ? (cost->time_s - cost->latency_s) / bytes : 0;
}

TRNI_FN bool trni_fit_same(double a, double b) { return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-24; }

TRNI_FN bool trni_fit_alike(const trni_fit_line *a, const trni_fit_line *b)
{
    return a->algorithm == b->algorithm && a->single_step == b->single_step;
}

/* The first sample that asks the same of other bytes and takes the same schedule; i itself when there is none. */
TRNI_FN int trni_fit_leader(const trni_calibration_search *s, int i, const trni_fit_line *line)
{
    trn_collective_args mine = s->a->sample[i].ask;
    mine.bytes = 0;
    for (int k = 0; k < i; k++) {
        trn_collective_args other = s->a->sample[k].ask;
        other.bytes = 0;
        if (memcmp(&mine, &other, sizeof mine) != 0) continue;
        for (int l = 0; l < s->row[k].lines; l++) {
            const trni_fit_line *known = &s->row[k].line[l];
            if (known->leader == k && trni_fit_alike(known, line) &&
                trni_fit_same(known->ideal_latency_s, line->ideal_latency_s) &&
                trni_fit_same(known->ideal_slope, line->ideal_slope))
                return k;
        }
    }
    return i;
}

/* How often a launch and an instance count in this sample. */
TRNI_FN trn_status trni_fit_launches(trni_calibration_search *s, int i)
{
    trn_calibration c = s->at;
    trn_cost cost;
    c.launch_s = 1;
    c.instance_s = 0;
    trn_status status = trni_fit_ask(s, i, &s->row[i].line[0], &c, &cost);
    s->row[i].launches = status == TRN_OK ? cost.launch_s : 0;
    c.launch_s = 0;
    c.instance_s = 1;
    if (status == TRN_OK) status = trni_fit_ask(s, i, &s->row[i].line[0], &c, &cost);
    s->row[i].instances = status == TRN_OK ? cost.launch_s : 0;
    return status;
}

/* One more line, unless the sample is refused. */
TRNI_FN trn_status trni_fit_add_line(trni_calibration_search *s, int i, trn_algorithm algorithm, bool single_step)
{
    trni_fit_line *line = &s->row[i].line[s->row[i].lines];
    trn_cost cost;
    line->algorithm = algorithm;
    line->single_step = single_step;
    const trn_status status = trni_fit_ask(s, i, line, &s->at, &cost);
    if (status != TRN_OK) return status;
    line->steps = cost.steps;
    line->ideal_latency_s = cost.latency_s;
    line->ideal_slope = trni_fit_slope(&cost, (double)s->a->sample[i].ask.bytes);
    line->leader = trni_fit_leader(s, i, line);
    s->row[i].lines++;
    return TRN_OK;
}

TRNI_FN trn_status trni_fit_row_lines(trni_calibration_search *s, int i)
{
    trn_collective_args ask = s->a->sample[i].ask;
    trn_algorithm list[TRN_ALGORITHM_COUNT] = { ask.algorithm };
    const bool choose = ask.algorithm == TRN_ALGORITHM_AUTO;
    ask.calibration = &s->at;
    ask.error = s->a->error;
    int count = 1;
    trn_status status = choose ? trni_collective_candidates(&ask, list, &count) : TRN_OK;
    if (status == TRN_OK && !count)
        return trni_fail(s->a->error, TRN_EUNSUPPORTED, "sample %d: no algorithm does it", i);
    for (int k = 0; k < count && status == TRN_OK; k++) {
        status = trni_fit_add_line(s, i, list[k], !choose && ask.single_step);
        if (status == TRN_OK && choose && list[k] == TRN_MESH && ask.op == TRN_ALL_REDUCE)
            status = trni_fit_add_line(s, i, list[k], true);
    }
    return status == TRN_OK ? trni_fit_launches(s, i) : status;
}

/* Asks every leader's line again, when shares have changed. */
TRNI_FN trn_status trni_fit_ask_lines(trni_calibration_search *s)
{
    trn_calibration shares = s->at;
    shares.launch_s = shares.instance_s = shares.step_s = shares.graph_s = 0;
    if (memcmp(&s->asked, &shares, sizeof shares) == 0) return TRN_OK;
    for (int i = 0; i < s->a->samples; i++)
        for (int k = 0; k < s->row[i].lines; k++) {
            trni_fit_line *line = &s->row[i].line[k];
            trn_cost cost;
            if (line->leader != i) continue;
            const trn_status status = trni_fit_ask(s, i, line, &shares, &cost);
            if (status != TRN_OK) return status;
            const double bytes = (double)s->a->sample[i].ask.bytes;
            line->latency_s = cost.expected_latency_s;
            line->slope = bytes > 0 ? (cost.expected_s - cost.expected_latency_s) / bytes : 0;
        }
    s->asked = shares;
    return TRN_OK;
}

TRNI_FN double trni_fit_line_s(const trni_calibration_search *s, int i, const trni_fit_line *line)
{
    const trni_fit_line *at = s->row[line->leader].line;
    while (!trni_fit_alike(at, line)) at++;
    const trn_collective_args *ask = &s->a->sample[i].ask;
    const double step = s->at.step_s + (ask->in_graph ? s->at.graph_s : 0);
    return at->latency_s + (double)ask->bytes * at->slope + line->steps * step;
}

/* The line that is expected to be the fastest. */
TRNI_FN int trni_fit_least(const trni_calibration_search *s, int i)
{
    const trni_fit_row *row = &s->row[i];
    int least = 0;
    for (int k = 1; k < row->lines; k++)
        if (trni_fit_line_s(s, i, &row->line[k]) < trni_fit_line_s(s, i, &row->line[least])) least = k;
    return least;
}

TRNI_FN trn_status trni_fit_predict(void *user, const double *number, double *predicted)
{
    trni_calibration_search *s = (trni_calibration_search *)user;
    for (int k = 0; k < s->fields; k++) *trni_calibration_number(&s->at, s->field[k]) = number[k];
    const trn_status status = trni_fit_ask_lines(s);
    for (int i = 0; i < s->a->samples && status == TRN_OK; i++) {
        const trni_fit_row *row = &s->row[i];
        const int taken = row->taken < 0 ? trni_fit_least(s, i) : row->taken;
        predicted[i] = trni_fit_line_s(s, i, &row->line[taken]) + row->launches * s->at.launch_s +
                       row->instances * s->at.instance_s;
    }
    return status;
}

/* Holds every sample to what AUTO takes with the present numbers; true when that is new for any of them. */
TRNI_FN bool trni_fit_hold(trni_calibration_search *s)
{
    bool changed = false;
    for (int i = 0; i < s->a->samples; i++) {
        const int least = trni_fit_least(s, i);
        changed = changed || least != s->row[i].taken;
        s->row[i].taken = least;
    }
    return changed;
}

/* ---- the fit ---- */

/* Is this one of the words? */
TRNI_FN bool trni_word_among(const char *words, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

TRNI_FN trn_status trni_fit_fields(trni_calibration_search *s)
{
#define TRNI_X(name, low, high) { #name, offsetof(trn_calibration, name), low, high },
    static const trni_fitted_field all[] = { TRNI_FITTED_FIELDS(TRNI_X) };
#undef TRNI_X
    const int count = (int)(sizeof all / sizeof all[0]);
    for (int k = 0; k < count; k++)
        if (!s->a->fields || trni_word_among(s->a->fields, all[k].name)) s->field[s->fields++] = &all[k];
    if (s->fields) return TRN_OK;
    return trni_fail(s->a->error, TRN_EINVAL, "fields \"%.60s\": none of them can be fitted", s->a->fields);
}

/* Choices and numbers in turn, since with choices held the times are smooth; then both at once. */
TRNI_FN trn_status trni_fit_rounds(trni_calibration_search *s, const trn_fit_args *fit, double *number)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < s->a->samples; i++) s->row[i].taken = -1;
    for (int round = 0; round < 8 && status == TRN_OK; round++) {
        for (int k = 0; k < s->fields; k++) *trni_calibration_number(&s->at, s->field[k]) = number[k];
        status = trni_fit_ask_lines(s);
        if (status != TRN_OK || !trni_fit_hold(s)) break;
        status = trn_fit(fit, number);
    }
    for (int i = 0; i < s->a->samples; i++) s->row[i].taken = -1;
    return status == TRN_OK ? trn_fit(fit, number) : status;
}

/* Sum of squares that these numbers leave. */
TRNI_FN trn_status trni_fit_left(trni_calibration_search *s, const trn_fit_args *fit, const double *number,
                                 double *room, double *left)
{
    const trn_status status = trni_fit_predict(s, number, room);
    *left = 0;
    for (int i = 0; i < fit->samples && status == TRN_OK; i++) {
        const double r = i + 1 == fit->leave_out ? 0 : log(room[i] / fit->measured[i]);
        *left += r * r;
    }
    return status;
}

/* From several starts, as the choices of AUTO make valleys: the given one, then launches and steps that are longer or
 * shorter. The first that leaves 0.5 % is enough. room: [samples] */
TRNI_FN trn_status trni_fit_starts(trni_calibration_search *s, const trn_fit_args *fit, double *number, double *room)
{
    static const double launch[] = { 1, 8, 1, 0.3, 3 }, step[] = { 1, 0.3, 4, 1, 0.1 };
    const int starts = fit->is_near ? 1 : 5;
    double start[TRN_FIT_NUMBERS], best = -1;
    memcpy(start, number, sizeof(double) * (size_t)fit->numbers);
    for (int i = 0; i < starts && !(best >= 0 && best <= 2.5e-5 * fit->samples); i++) {
        double found[TRN_FIT_NUMBERS], left;
        for (int k = 0; k < fit->numbers; k++) {
            const double scale = strcmp(s->field[k]->name, "step_s") == 0     ? step[i]
                                 : strcmp(s->field[k]->name, "launch_s") == 0 ? launch[i]
                                                                              : 1;
            found[k] = fmin(fmax(start[k] * scale, fit->low[k]), fit->high[k]);
        }
        trn_status status = trni_fit_rounds(s, fit, found);
        if (status == TRN_OK) status = trni_fit_left(s, fit, found, room, &left);
        if (status != TRN_OK) return status;
        if (best >= 0 && left >= best) continue;
        best = left;
        memcpy(number, found, sizeof(double) * (size_t)fit->numbers);
    }
    return TRN_OK;
}

TRNI_FN trn_status trni_calibration_search_run(trni_calibration_search *s, const double *measured, double *room)
{
    const trn_calibration_fit_args *a = s->a;
    double low[TRN_FIT_NUMBERS], high[TRN_FIT_NUMBERS], number[TRN_FIT_NUMBERS];
    trn_fit_args fit;
    trn_status status = TRN_OK;
    for (int i = 0; i < a->samples && status == TRN_OK; i++) status = trni_fit_row_lines(s, i);
    if (status != TRN_OK) return status;
    memset(&s->asked, 0xff, sizeof s->asked); /* no shares */
    for (int k = 0; k < s->fields; k++) {
        low[k] = s->field[k]->low;
        high[k] = s->field[k]->high;
        number[k] = fmin(fmax(*trni_calibration_number(&s->at, s->field[k]), low[k]), high[k]);
    }
    memset(&fit, 0, sizeof fit);
    fit.model = trni_fit_predict;
    fit.user = s;
    fit.numbers = s->fields;
    fit.samples = a->samples;
    fit.measured = measured;
    fit.low = low;
    fit.high = high;
    fit.leave_out = a->leave_out;
    fit.is_near = a->is_near;
    fit.error = a->error;
    status = trni_fit_starts(s, &fit, number, room);
    for (int k = 0; k < s->fields && status == TRN_OK; k++) *trni_calibration_number(&s->at, s->field[k]) = number[k];
    return status;
}

TRNI_DRIVER trn_status trni_calibration_fit_check(const trn_calibration_fit_args *a, const trn_calibration *calibration)
{
    if (!a->sample || !calibration) return trni_fail(a->error, TRN_EINVAL, "sample or calibration is null");
    if (a->samples < 1 || a->samples > 1 << 20)
        return trni_fail(a->error, TRN_EINVAL, "%d samples: expected 1 to 2^20", a->samples);
    trn_status status = TRN_OK;
    for (int i = 0; i < a->samples && status == TRN_OK; i++) {
        char whose[32];
        snprintf(whose, sizeof whose, "sample %d: ", i);
        status = trni_amount_check(whose, "measured_s", TRNI_LENGTH, a->sample[i].measured_s, a->error);
    }
    return status;
}

TRN_API trn_status trn_calibration_fit(const trn_calibration_fit_args *args, trn_calibration *calibration)
{
    trni_calibration_search s;
    TRNI_ENTER(args);
    trn_status status = trni_calibration_fit_check(args, calibration);
    if (status != TRN_OK) return status;
    memset(&s, 0, sizeof s);
    s.a = args;
    s.at = args->start ? *args->start : trn_calibration_default();
    status = trni_fit_fields(&s);
    if (status != TRN_OK) return status;
    const size_t samples = (size_t)args->samples;
    s.row = (trni_fit_row *)calloc(samples, sizeof *s.row + 2 * sizeof(double));
    if (!s.row) return trni_fail(args->error, TRN_ENOSPC, "no memory for %d samples", args->samples);
    double *measured = (double *)(void *)(s.row + samples);
    for (size_t i = 0; i < samples; i++) measured[i] = args->sample[i].measured_s;
    status = trni_calibration_search_run(&s, measured, measured + samples);
    free(s.row);
    if (status == TRN_OK) *calibration = s.at;
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_CALIBRATION_FIT_H */

/* compare.c - all settings on a text: perplexity, KL and top-1 against the reference, SQNR after each layer, routers.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Windows that are computed together: their layers and logits, as the reference has them, stay in memory. */
typedef struct pass {
    int64_t rows;
    mr_span *span;
    int spans;
    int32_t *token;  /* [rows] */
    int32_t *next;   /* [rows]; -1: the window ends here */
    float *state;    /* [layers, rows, hidden] */
    int16_t *chosen; /* [layers, rows, experts_per_token] */
    float *logits;   /* [rows, vocab] */
    int64_t first;   /* the row of the text that row 0 is */
} pass;

typedef struct sums {
    double nll, kl, kl_worst, top1, seconds;
    int64_t predicted, finite, rows;
    double *signal, *noise; /* [layers + 1] */
    int64_t *flips;         /* [layers]: rows whose experts are other ones */
    bool *broken;           /* there was a number that is none */
} sums;

typedef struct comparison {
    mr_model *model;
    const mr_options *o;
    sums *sum; /* of each setting */
    float *logits;
    /* of the setting that runs */
    pass *pass;
    sums *now;
    bool reference;
} comparison;

enum { HEAD_ROWS = 64, PASS_BYTES = 1 << 28 };

/* ---- one position ---- */

typedef struct position {
    double nll, kl;
    bool finite, same;
} position;

static double log_sum(const float *x, int64_t n, int64_t *best)
{
    double most = -INFINITY, sum = 0;
    *best = 0;
    for (int64_t i = 0; i < n; i++)
        if ((double)x[i] > most) most = (double)x[i], *best = i;
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return most + log(sum);
}

static bool all_finite(const float *x, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= isfinite(x[i]) != 0;
    return finite;
}

/* KL = sum of p (log p - log q), p the reference's. */
static position judge(const float *reference, const float *x, int64_t n, int32_t next)
{
    position r = { .finite = all_finite(x, n) && all_finite(reference, n) };
    int64_t best, other;
    if (!r.finite) return r;
    const double a = log_sum(reference, n, &best), b = log_sum(x, n, &other);
    for (int64_t i = 0; i < n && x != reference; i++) {
        const double p = (double)reference[i] - a;
        r.kl += exp(p) * (p - ((double)x[i] - b));
    }
    r.kl = r.kl > 0 ? r.kl : 0; /* it is never below, but its sum may be */
    r.same = best == other;
    if (next >= 0) r.nll = b - (double)x[next];
    return r;
}

/* ---- one setting ---- */

static void add_noise(sums *s, int64_t at, const float *reference, const float *x, int64_t n)
{
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)reference[i], d = (double)x[i] - a;
        signal += a * a;
        noise += d * d;
    }
    s->signal[at] += signal;
    s->noise[at] += noise;
    if (!isfinite(signal) || !isfinite(noise)) s->broken[at] = true;
}

static void see_layer(void *user, int64_t layer, const float *h, int64_t rows)
{
    comparison *c = user;
    const int64_t n = rows * c->model->config.hidden;
    float *state = c->pass->state + layer * n;
    if (c->reference)
        memcpy(state, h, sizeof *h * (size_t)n);
    else
        add_noise(c->now, layer, state, h, n);
}

static void see_choice(void *user, int64_t layer, int64_t row, const int64_t *expert)
{
    comparison *c = user;
    const int64_t k = c->model->config.experts_per_token;
    int16_t *chosen = c->pass->chosen + (layer * c->pass->rows + row) * k;
    bool same = true;
    for (int64_t i = 0; i < k && c->reference; i++) chosen[i] = (int16_t)expert[i];
    for (int64_t i = 0; i < k; i++) {
        bool known = false;
        for (int64_t j = 0; j < k; j++) known |= chosen[j] == expert[i];
        same &= known;
    }
    c->now->flips[layer] += !same;
}

/* Rows [first, first + count), whose logits x are. */
static void see_logits(comparison *c, const float *x, int64_t first, int64_t count)
{
    const int64_t vocab = c->model->config.vocab, layers = c->model->config.layers;
    pass *p = c->pass;
    sums *s = c->now;
    position seen[HEAD_ROWS];
    float *reference = p->logits + first * vocab;
    if (c->reference) memcpy(reference, x, sizeof *x * (size_t)(count * vocab));
    MR_PARALLEL
    for (int64_t i = 0; i < count; i++)
        seen[i] = judge(reference + i * vocab, c->reference ? reference + i * vocab : x + i * vocab, vocab,
                        p->next[first + i]);
    add_noise(s, layers, reference, x, count * vocab);
    for (int64_t i = 0; i < count; i++) {
        s->rows++;
        s->finite += seen[i].finite;
        if (!seen[i].finite) continue;
        s->kl += seen[i].kl;
        s->kl_worst = fmax(s->kl_worst, seen[i].kl);
        s->top1 += seen[i].same;
        if (p->next[first + i] < 0) continue;
        s->nll += seen[i].nll;
        s->predicted++;
    }
    if (c->logits) memcpy(c->logits + (p->first + first) * vocab, x, sizeof *x * (size_t)(count * vocab));
}

static bool run_setting(comparison *c, int index, char *why)
{
    const mr_config *config = &c->model->config;
    const mr_setting *setting = &c->o->setting[index];
    pass *p = c->pass;
    mr_run run;
    int64_t longest = 0;
    for (int i = 0; i < p->spans; i++) longest = p->span[i].count > longest ? p->span[i].count : longest;
    if (!mr_run_start(&run, c->model, setting, p->spans, longest, why)) return false;
    const double start = app_now();
    c->now = &c->sum[index];
    c->reference = index == 0;
    run.seen = see_layer;
    run.chose = see_choice;
    run.user = c;
    float *h = app_memory((size_t)(p->rows * config->hidden), sizeof *h);
    float *logits = app_memory((size_t)(HEAD_ROWS * config->vocab), sizeof *logits);
    run.keep = false;
    mr_forward(&run, p->token, p->span, p->spans, p->rows, h);
    for (int64_t i = 0; i < p->rows; i += HEAD_ROWS) {
        const int64_t count = p->rows - i < HEAD_ROWS ? p->rows - i : HEAD_ROWS;
        mr_logits(&run, h + i * config->hidden, count, logits);
        see_logits(c, logits, i, count);
    }
    c->now->seconds += app_now() - start;
    free(h);
    free(logits);
    mr_run_end(&run);
    return true;
}

/* ---- windows ---- */

/* As many windows as fit, from token `at` of the text on; how far they go. */
static int64_t fill_pass(pass *p, const mr_text *text, int64_t at, int64_t context, int64_t most)
{
    int64_t sequence = 0;
    p->first = at;
    p->rows = p->spans = 0;
    while (text->first[sequence + 1] <= at) sequence++;
    while (at < text->tokens) {
        if (at >= text->first[sequence + 1]) sequence++;
        const int64_t left = text->first[sequence + 1] - at, count = left < context ? left : context;
        if (p->spans && p->rows + count > most) break;
        p->span[p->spans] = (mr_span){ p->rows, count, 0, p->spans };
        for (int64_t i = 0; i < count; i++) {
            p->token[p->rows + i] = text->token[at + i];
            p->next[p->rows + i] = i + 1 < count ? text->token[at + i + 1] : -1;
        }
        p->spans++;
        p->rows += count;
        at += count;
    }
    return at;
}

static int64_t rows_of_a_pass(const mr_config *c, int64_t context)
{
    const int64_t each = 4 * (c->vocab > c->layers * c->hidden ? c->vocab : c->layers * c->hidden);
    const int64_t rows = PASS_BYTES / each;
    return rows < context ? context : rows > 4096 && context < 4096 ? 4096 : rows;
}

static bool run_passes(comparison *c, const mr_text *text, mr_result *result, char *why)
{
    const mr_config *config = &c->model->config;
    int64_t most = rows_of_a_pass(config, result->context);
    if (most > text->tokens) most = text->tokens;
    pass p = { .span = app_memory((size_t)most, sizeof *p.span),
               .token = app_memory((size_t)most, sizeof *p.token),
               .next = app_memory((size_t)most, sizeof *p.next) };
    bool ok = true;
    p.state = app_memory((size_t)(most * config->layers * config->hidden), sizeof *p.state);
    p.logits = app_memory((size_t)(most * config->vocab), sizeof *p.logits);
    p.chosen = app_memory((size_t)(most * config->layers * config->experts_per_token + 1), sizeof *p.chosen);
    c->pass = &p;
    for (int64_t at = 0; at < text->tokens && ok;) {
        at = fill_pass(&p, text, at, result->context, most);
        result->sequences += p.spans;
        for (int i = 0; i < c->o->settings && ok; i++) {
            app_progress("%s: %lld of %lld tokens", c->o->setting[i].name, (long long)at, (long long)text->tokens);
            ok = run_setting(c, i, why);
        }
    }
    app_progress_done();
    free(p.span);
    free(p.token);
    free(p.next);
    free(p.state);
    free(p.chosen);
    free(p.logits);
    return ok;
}

/* ---- results ---- */

static void finish(mr_row *row, const sums *s, const mr_setting *setting, int64_t layers, double threshold)
{
    const double n = (double)s->finite;
    *row = (mr_row){ .setting = *setting,
                     .nll = s->predicted ? s->nll / (double)s->predicted : NAN,
                     .kl = s->finite ? s->kl / n : NAN,
                     .kl_worst = s->finite ? s->kl_worst : NAN,
                     .top1 = s->finite ? s->top1 / n : NAN,
                     .first_apart = -1,
                     .not_finite = s->rows - s->finite,
                     .seconds = s->seconds };
    row->perplexity = exp(row->nll);
    row->sqnr = app_memory((size_t)layers + 1, sizeof *row->sqnr);
    for (int64_t i = 0; i <= layers; i++) {
        row->sqnr[i] = s->broken[i] ? NAN : s->noise[i] > 0 ? 10 * log10(s->signal[i] / s->noise[i]) : INFINITY;
        const bool apart = s->broken[i] || row->sqnr[i] < threshold;
        if (i < layers && apart && row->first_apart < 0) row->first_apart = (int)i;
    }
}

/* Of the routers that there are. */
static void count_flips(mr_row *row, const sums *s, const mr_config *config)
{
    double sum = 0;
    int64_t routers = 0;
    row->flips = app_memory((size_t)config->layers, sizeof *row->flips);
    for (int64_t i = 0; i < config->layers; i++) {
        row->flips[i] = config->sparse[i] && s->rows ? (double)s->flips[i] / (double)s->rows : NAN;
        if (!config->sparse[i]) continue;
        sum += row->flips[i];
        routers++;
    }
    row->all_flips = routers ? sum / (double)routers : NAN;
}

/* What each setting's noise is beside BF16's. */
static void compare_noise(mr_result *result, const sums *sum, int64_t layers)
{
    int base = -1;
    for (int i = 0; i < result->rows; i++)
        if (strcmp(result->row[i].setting.name, "bf16") == 0) base = i;
    for (int i = 0; i < result->rows; i++) {
        mr_row *row = &result->row[i];
        row->ratio = app_memory((size_t)layers + 1, sizeof *row->ratio);
        for (int64_t l = 0; l <= layers; l++) {
            const bool known = base >= 0 && sum[base].noise[l] > 0 && !sum[base].broken[l] && !sum[i].broken[l];
            row->ratio[l] = known ? sqrt(sum[i].noise[l] / sum[base].noise[l]) : NAN;
        }
    }
}

uint64_t mr_peak_bytes(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

bool mr_compare(mr_model *model, const mr_options *o, const mr_text *text, mr_result *result, float *logits, char *why)
{
    const mr_config *config = &model->config;
    const int64_t layers = config->layers;
    comparison c = { .model = model, .o = o, .logits = logits };
    memset(result, 0, sizeof *result);
    snprintf(result->family, sizeof result->family, "%s", config->type);
    result->folder = o->folder;
    result->text = o->text ? o->text : o->tokens;
    result->layers = layers;
    result->hidden = config->hidden;
    result->parameters = model->parameters;
    result->tokens = text->tokens;
    result->context = o->context < config->positions ? o->context : config->positions;
    result->threshold_db = o->threshold;
    result->alone = model->alone;
    for (int64_t i = 0; i < layers; i++) result->mixture |= config->sparse[i];
    result->file_bytes = model->file_bytes;
    c.sum = app_memory((size_t)o->settings, sizeof *c.sum);
    for (int i = 0; i < o->settings; i++) {
        c.sum[i].signal = app_memory((size_t)layers + 1, sizeof(double));
        c.sum[i].noise = app_memory((size_t)layers + 1, sizeof(double));
        c.sum[i].broken = app_memory((size_t)layers + 1, sizeof(bool));
        c.sum[i].flips = app_memory((size_t)layers, sizeof(int64_t));
    }
    const bool ok = run_passes(&c, text, result, why);
    result->row = app_memory((size_t)o->settings, sizeof *result->row);
    result->predicted = c.sum[0].predicted;
    for (int i = 0; i < o->settings && ok; i++) {
        mr_row *row = &result->row[result->rows++];
        finish(row, &c.sum[i], &o->setting[i], layers, o->threshold);
        count_flips(row, &c.sum[i], config);
    }
    compare_noise(result, c.sum, layers);
    for (int i = 0; i < o->settings; i++) {
        free(c.sum[i].signal);
        free(c.sum[i].noise);
        free(c.sum[i].broken);
        free(c.sum[i].flips);
    }
    free(c.sum);
    result->peak_bytes = mr_peak_bytes();
    if (!ok) mr_result_free(result);
    return ok;
}

void mr_result_free(mr_result *result)
{
    for (int i = 0; i < result->rows; i++) {
        free(result->row[i].sqnr);
        free(result->row[i].ratio);
        free(result->row[i].flips);
    }
    free(result->row);
    result->row = NULL;
    result->rows = 0;
}

/* serve.c - a stream of requests at one plan: a queue, continuous batching, and what users wait.
 * SPDX-License-Identifier: MIT
 *
 * Requests come at random times (a Poisson process, always the same), go round the engines, and wait for a free place.
 * An engine reads the prompts that have one, one after the other, before it goes on with tokens; with --chunk a part of
 * one prompt goes along with each step of tokens. A step takes what the plan takes at that many sequences (between two
 * that were evaluated, on a line). With --prefill-chips prompts have engines and a queue of their own.
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/page.h"

static bool add_rate(void *into, const char *item, char *why)
{
    sp_serving *s = into;
    if (s->rates == SP_ARRIVALS) return app_fail(why, "more than %d rates", (int)SP_ARRIVALS);
    return app_parse_real(item, 1e-6, 1e9, &s->arrivals[s->rates++], why);
}

bool sp_parse_arrivals(sp_serving *s, const char *text, char *why) { return app_parse_list(text, add_rate, s, why); }

void sp_serving_usual(sp_serving *s)
{
    if (!s->answer) s->answer = 256;
    if (!s->requests) s->requests = 10000;
    if (!s->draft_tokens) s->draft_tokens = 4;
    if (s->acceptance < 0) s->acceptance = 0.7;
}

/* Options that only mean something together. */
bool sp_serving_check(const sp_options *o, char *why)
{
    const sp_serving *s = &o->serving;
    const bool serving = s->prefix_hit > 0 || s->chunk || s->draft || s->prefill_chips || s->answer || s->requests;
    if ((sp_pareto_asked(o) || s->rates) && o->args.job != TRN_JOB_DECODE)
        return app_refuse(why, "--pareto, --ttft-below, --tpot-below and --arrivals are for --job decode");
    if (serving && !s->rates)
        return app_refuse(why, "--answer, --requests, --prefix-hit, --chunk, --draft and --prefill-chips belong to "
                               "--arrivals");
    if (!s->draft && (s->draft_tokens || s->acceptance >= 0))
        return app_refuse(why, "--draft-tokens and --acceptance belong to --draft");
    if (s->chunk && s->prefill_chips)
        return app_refuse(why,
                          "--chunk and --prefill-chips exclude each other: prompts are not cut on chips of their own");
    return true;
}

/* ---- one engine ---- */

/* Times of one request, in seconds from the beginning. */
typedef struct request {
    double comes, ready, first, ends; /* ready: its prompt may be read, or its keys and values are there */
    double left;                      /* tokens */
} request;

static double step_of(const sp_engine *e, int64_t sequences)
{
    int i = 0;
    while (i < e->points && e->batch[i] < sequences) i++;
    if (i == e->points) return e->step_s[i - 1];
    if (i == 0) return e->step_s[0];
    const double part = (double)(sequences - e->batch[i - 1]) / (double)(e->batch[i] - e->batch[i - 1]);
    return e->step_s[i - 1] + part * (e->step_s[i] - e->step_s[i - 1]);
}

typedef struct queue {
    const sp_engine *engine;
    request *r;
    int64_t *active; /* [slots] */
    int64_t running, next, count;
    int64_t chunks, chunk; /* of a prompt; those of the next that are done */
    double now, busy, answer;
    bool apart; /* prompts are read elsewhere */
} queue;

static void begin(queue *q)
{
    request *x = &q->r[q->next];
    if (!q->apart) x->first = q->now;
    x->left = q->answer - 1;
    if (x->left <= 0)
        x->ends = x->first;
    else
        q->active[q->running++] = q->next;
    q->next++;
    q->chunk = 0;
}

/* Those that wait and have a place; whole prompts stop all else. */
static void admit(queue *q)
{
    while (q->next < q->count && q->running < q->engine->slots && q->r[q->next].ready <= q->now &&
           (q->apart || q->chunks == 1)) {
        if (!q->apart) q->now += q->engine->prompt_s, q->busy += q->engine->prompt_s;
        begin(q);
    }
}

/* A step of all that run, and with --chunk a part of the next prompt. */
static void step(queue *q)
{
    const bool part =
        q->chunks > 1 && q->next < q->count && q->running < q->engine->slots && q->r[q->next].ready <= q->now;
    double takes = q->running ? step_of(q->engine, q->running) : 0;
    if (part) takes += q->engine->prompt_s / (double)q->chunks;
    q->now += takes;
    q->busy += takes;
    for (int64_t i = 0; i < q->running;) {
        request *x = &q->r[q->active[i]];
        x->left -= q->engine->tokens_a_step;
        if (x->left > 1e-9) {
            i++;
            continue;
        }
        x->ends = q->now;
        q->active[i] = q->active[--q->running];
    }
    if (part && ++q->chunk == q->chunks) begin(q);
}

static void run(queue *q)
{
    while (q->next < q->count || q->running) {
        if (!q->running && q->next < q->count && q->r[q->next].ready > q->now) q->now = q->r[q->next].ready;
        admit(q);
        if (q->running || (q->chunks > 1 && q->next < q->count)) step(q);
    }
}

/* ---- all engines ---- */

static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void halves(double *value, int64_t count, double out[2])
{
    qsort(value, (size_t)count, sizeof *value, by_size);
    out[0] = value[(count - 1) / 2];
    out[1] = value[(count - 1) * 99 / 100];
}

/* When prompts of their own engines are read. */
static void read_apart(const sp_engine *e, request *all, int64_t count)
{
    double *free_at = app_memory((size_t)e->prefill_engines, sizeof *free_at);
    for (int64_t i = 0; i < count; i++) {
        int soonest = 0;
        for (int k = 1; k < e->prefill_engines; k++)
            if (free_at[k] < free_at[soonest]) soonest = k;
        all[i].first = fmax(all[i].comes, free_at[soonest]) + e->prompt_s;
        free_at[soonest] = all[i].first;
        all[i].ready = all[i].first + e->transfer_s;
    }
    free(free_at);
}

/* Requests a second that all engines can just do. */
static double capacity_of(const sp_engine *e, double answer)
{
    const double tokens_s = (answer - 1) / e->tokens_a_step * step_of(e, e->slots) / (double)e->slots;
    const double alone = e->engines / fmax(e->prefill_engines ? tokens_s : e->prompt_s + tokens_s, 1e-12);
    return e->prefill_engines ? fmin(alone, e->prefill_engines / e->prompt_s) : alone;
}

/* Every n-th request is one engine's; in their order they lie one behind the other. */
static double run_engines(const sp_engine *e, const sp_serving *s, request *all, double *busy)
{
    request *own = app_memory((size_t)(s->requests / e->engines + 1), sizeof *own);
    queue q = { .engine = e, .r = own, .answer = (double)s->answer, .apart = e->prefill_engines > 0 };
    double end = 0;
    q.active = app_memory((size_t)e->slots, sizeof *q.active);
    q.chunks = s->chunk ? (int64_t)ceil(e->prompt_tokens / (double)s->chunk) : 1;
    if (q.chunks < 1) q.chunks = 1;
    *busy = 0;
    for (int k = 0; k < e->engines; k++) {
        q.now = q.busy = 0;
        q.running = q.next = q.count = q.chunk = 0;
        for (int64_t i = k; i < s->requests; i += e->engines) own[q.count++] = all[i];
        run(&q);
        for (int64_t i = k, n = 0; i < s->requests; i += e->engines) all[i] = own[n++];
        *busy += q.busy;
        end = fmax(end, q.now);
    }
    *busy /= end > 0 ? end * e->engines : 1;
    free(q.active);
    free(own);
    return end;
}

static sp_served serve(const sp_engine *e, const sp_serving *s, double rate)
{
    const size_t n = (size_t)s->requests;
    request *all = app_memory(n, sizeof *all);
    double *value = app_memory(n, sizeof *value), at = 0;
    uint64_t state = 1;
    sp_served out;
    memset(&out, 0, sizeof out);
    for (size_t i = 0; i < n; i++) all[i].comes = all[i].ready = at -= log(uniform(&state)) / rate;
    if (e->prefill_engines) read_apart(e, all, s->requests);
    const double end = run_engines(e, s, all, &out.busy);
    for (size_t i = 0; i < n; i++) value[i] = all[i].first - all[i].comes;
    halves(value, s->requests, out.ttft_s);
    for (size_t i = 0; i < n; i++)
        value[i] = s->answer > 1 ? (all[i].ends - all[i].first) / (double)(s->answer - 1) : 0;
    halves(value, s->requests, out.tpot_s);
    for (size_t i = 0; i < n; i++) value[i] = all[i].ends - all[i].comes;
    halves(value, s->requests, out.latency_s);
    out.tokens_per_s = end > 0 ? (double)s->requests * (double)s->answer / end : 0;
    out.saturated = rate >= capacity_of(e, (double)s->answer);
    free(value);
    free(all);
    return out;
}

bool sp_serve_run(sp_job *job, char *why)
{
    const sp_serving *s = &job->options.serving;
    if (!job->list.legal) return true;
    if (!sp_engine_of(job, &job->engine, why)) return false;
    for (int i = 0; i < s->rates; i++) {
        app_progress("%d of %d rates", i, s->rates);
        job->stream[i] = serve(&job->engine, s, s->arrivals[i]);
    }
    app_progress_done();
    return true;
}

/* ---- rows ---- */

static const app_column columns[] = {
    { "arrivals_per_s", APP_REAL, "1/s", "requests" },
    { "capacity_per_s", APP_REAL, "1/s", "requests that can just be done" },
    { "saturated", APP_TEXT, "", "yes: the queue grows as long as requests come" },
    { "ttft_p50_s", APP_REAL, "s", "from a request to its first token: half wait less" },
    { "ttft_p99_s", APP_REAL, "s", "99 of 100 wait less" },
    { "tpot_p50_s", APP_REAL, "s", "a later token, mean of a request: of half it is less" },
    { "tpot_p99_s", APP_REAL, "s", "of 99 of 100" },
    { "latency_p50_s", APP_REAL, "s", "from a request to its last token" },
    { "latency_p99_s", APP_REAL, "s", "of 99 of 100" },
    { "tokens_per_s", APP_REAL, "1/s", "of answers, all chips" },
    { "chip_tokens_per_s", APP_REAL, "1/s", "of each chip" },
    { "busy", APP_REAL, "share", "of the time in which an engine works" },
    { "million_tokens_usd", APP_REAL, "USD", "--price-hour: of answers, at this rate" },
};

app_table sp_serve_table(const sp_job *job)
{
    const sp_serving *s = &job->options.serving;
    const sp_price *price = &job->options.price;
    const sp_engine *e = &job->engine;
    app_table t;
    app_table_start(&t, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < s->rates && job->list.legal; i++) {
        const sp_served *x = &job->stream[i];
        const double hour = price->hour_usd * e->chips / job->net.chips;
        const double real[] = { x->ttft_s[0],    x->ttft_s[1],
                                x->tpot_s[0],    x->tpot_s[1],
                                x->latency_s[0], x->latency_s[1],
                                x->tokens_per_s, x->tokens_per_s / e->chips,
                                x->busy,         price->priced ? 1e6 * hour / 3600 / x->tokens_per_s : (double)NAN };
        app_row(&t);
        app_real(&t, s->arrivals[i]);
        app_real(&t, capacity_of(e, (double)s->answer));
        app_text(&t, "%s", x->saturated ? "yes" : "no");
        for (size_t k = 0; k < sizeof real / sizeof real[0]; k++) app_real(&t, real[k]);
    }
    return t;
}

/* What was simulated, in a line or two. */
static void describe(FILE *out, const sp_job *job)
{
    const sp_serving *s = &job->options.serving;
    const sp_engine *e = &job->engine;
    fprintf(out, "%s requests of %lld + %lld tokens at %d engine%s of up to %lld sequences", sp_count(s->requests).text,
            (long long)job->args.prompt, (long long)s->answer, e->engines, e->engines > 1 ? "s" : "",
            (long long)e->slots);
    fprintf(out, "; a prompt takes %s", sp_time(e->prompt_s).text);
    if (s->prefix_hit > 0) fprintf(out, " (%s of it is in the cache)", sp_percent(s->prefix_hit).text);
    fprintf(out, ", a step %s alone and %s with all", sp_time(e->step_s[0]).text, sp_time(step_of(e, e->slots)).text);
    if (s->draft) fprintf(out, ", which brings %.3g tokens a sequence", e->tokens_a_step);
    if (e->prefill_engines)
        fprintf(out, "; prompts on %lld chips beside them (%d engines), keys and values %s on the way",
                (long long)s->prefill_chips, e->prefill_engines, sp_time(e->transfer_s).text);
    fprintf(out, "; at most %.4g requests a second", capacity_of(e, (double)s->answer));
}

void sp_serve_print(FILE *out, const sp_job *job)
{
    const sp_serving *s = &job->options.serving;
    const bool priced = job->options.price.priced;
    if (!job->list.legal) return;
    fputs("\n", out);
    describe(out, job);
    fprintf(out,
            "\n  requests/s  first: p50       p99  token: p50       p99    all: p50       p99  tokens/s   busy%s\n",
            priced ? "  USD/Mtoken" : "");
    app_table t = sp_serve_table(job);
    for (int i = 0; i < s->rates; i++) {
        const sp_served *x = &job->stream[i];
        fprintf(out, "  %10.4g  %10s  %8s  %10s  %8s  %10s  %8s  %8s  %5s", s->arrivals[i], sp_time(x->ttft_s[0]).text,
                sp_time(x->ttft_s[1]).text, sp_time(x->tpot_s[0]).text, sp_time(x->tpot_s[1]).text,
                sp_time(x->latency_s[0]).text, sp_time(x->latency_s[1]).text, sp_si(x->tokens_per_s).text,
                sp_percent(x->busy).text);
        if (priced) fprintf(out, "  %10.4g", app_at(&t, i, "million_tokens_usd")->real);
        fprintf(out, "%s\n", x->saturated ? "  saturated: the queue grows" : "");
    }
    app_table_free(&t);
}

void sp_serve_report(FILE *out, const sp_job *job)
{
    if (!job->options.serving.rates || !job->list.legal) return;
    fputs("<h2>Served</h2><p>", out);
    describe(out, job);
    fputs(".</p><div class=card>", out);
    app_table t = sp_serve_table(job);
    app_html_table(out, &t);
    app_table_free(&t);
    fputs("</div>\n", out);
}

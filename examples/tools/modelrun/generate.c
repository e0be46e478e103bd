/* generate.c - continues all sequences of the text at once, the likeliest token each time, with caches.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <stdlib.h>

typedef struct job {
    mr_model *model;
    const mr_options *o;
    const mr_text *text;
    int64_t *length; /* of each sequence's beginning */
    int32_t *made;   /* [sequences, generate] */
    double prefill, decode;
} job;

static int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/* One step of all sequences: their new tokens, span by span; the likeliest tokens that follow. */
static void step(const job *j, mr_run *run, const int32_t *token, const mr_span *span, int64_t rows, int32_t *next)
{
    const mr_config *c = &j->model->config;
    const int n = (int)j->text->sequences;
    float *h = app_memory((size_t)(rows * c->hidden), sizeof *h);
    float *last = app_memory((size_t)(n * c->hidden), sizeof *h);
    float *logits = app_memory((size_t)(n * c->vocab), sizeof *logits);
    mr_forward(run, token, span, n, rows, h);
    for (int i = 0; i < n; i++)
        memcpy(last + i * c->hidden, h + (span[i].row + span[i].count - 1) * c->hidden, sizeof *h * (size_t)c->hidden);
    mr_logits(run, last, n, logits);
    for (int i = 0; i < n; i++) next[i] = likeliest(logits + i * c->vocab, c->vocab);
    free(h);
    free(last);
    free(logits);
}

static void decode(job *j, mr_run *run)
{
    const int n = (int)j->text->sequences;
    const int64_t count = j->o->generate;
    mr_span *span = app_memory((size_t)n, sizeof *span);
    int32_t *next = app_memory((size_t)n, sizeof *next);
    double start = app_now();
    for (int i = 0; i < n; i++) span[i] = (mr_span){ j->text->first[i], j->length[i], 0, i };
    step(j, run, j->text->token, span, j->text->tokens, next);
    j->prefill = app_now() - start;
    start = app_now();
    for (int64_t t = 0; t < count; t++) {
        for (int i = 0; i < n; i++) {
            j->made[i * count + t] = next[i];
            span[i] = (mr_span){ i, 1, j->length[i] + t, i };
        }
        if (t + 1 < count) step(j, run, next, span, n, next);
    }
    j->decode = app_now() - start;
    free(span);
    free(next);
}

static void tell_speed(const job *j, const mr_setting *s)
{
    const double n = (double)j->text->sequences, made = n * (double)(j->o->generate - 1);
    app_say(stderr, "%s: %lld tokens read at %.1f tokens/s", s->name, (long long)j->text->tokens,
            (double)j->text->tokens / j->prefill);
    if (made > 0) fprintf(stderr, ", %.0f made at %.2f tokens/s", made, made / j->decode);
    fprintf(stderr, "; %.0f MB of weights, %.0f MB of memory at most\n", (double)j->model->file_bytes / 1e6,
            (double)mr_peak_bytes() / 1e6);
}

/* Keys in a cache have turned for short texts or for long ones; a text that becomes long on the way has both. */
static bool turns_alike(const job *j, char *why)
{
    const mr_config *c = &j->model->config;
    const int64_t original = (int64_t)c->rope[MR_ROPE_ALL].original;
    if (c->rope[MR_ROPE_BEYOND].kind == MR_ROPE_NONE) return true;
    for (int64_t i = 0; i < j->text->sequences; i++)
        if (j->length[i] <= original && j->length[i] + j->o->generate - 1 > original)
            return io_fail(why, j->o->folder,
                           "its positions turn otherwise in texts beyond %lld tokens (longrope), and from %lld on %lld "
                           "were asked for; end before, or begin beyond",
                           (long long)original, (long long)j->length[i], (long long)j->o->generate);
    return true;
}

static bool generate(job *j, const mr_setting *s, char *why)
{
    int64_t longest = 0;
    mr_run run;
    if (!turns_alike(j, why)) return false;
    for (int64_t i = 0; i < j->text->sequences; i++) longest = j->length[i] > longest ? j->length[i] : longest;
    if (longest + j->o->generate > j->model->config.positions)
        return io_fail(why, j->o->folder, "it takes %lld positions, and %lld were asked for",
                       (long long)j->model->config.positions, (long long)(longest + j->o->generate));
    if (!mr_run_start(&run, j->model, s, (int)j->text->sequences, longest + j->o->generate, why)) return false;
    run.keep = true;
    run.pack = j->o->pack;
    decode(j, &run);
    mr_run_end(&run);
    tell_speed(j, s);
    for (int64_t i = 0; i < j->text->sequences; i++) {
        app_say(stdout, "%s %lld: ", s->name, (long long)i);
        mr_text_print(stdout, j->text, j->made + i * j->o->generate, j->o->generate);
    }
    return true;
}

int mr_generate(mr_model *model, const mr_options *o, const mr_text *text)
{
    char why[IO_WHY] = "";
    job j = { .model = model, .o = o, .text = text };
    bool ok = true;
    if (text->sequences > 4096) return app_complain(APP_USAGE, "more than 4096 sequences at once");
    j.length = app_memory((size_t)text->sequences, sizeof *j.length);
    j.made = app_memory((size_t)(text->sequences * o->generate), sizeof *j.made);
    for (int64_t i = 0; i < text->sequences; i++) j.length[i] = text->first[i + 1] - text->first[i];
    for (int i = 0; i < o->settings && ok; i++) ok = generate(&j, &o->setting[i], why);
    free(j.length);
    free(j.made);
    return ok ? APP_OK : app_complain(APP_USAGE, "%s", why);
}

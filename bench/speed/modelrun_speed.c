/* modelrun_speed.c - modelrun's BF16 against plain loops in binary32 over the same weights, token by token.
 * SPDX-License-Identifier: MIT
 *
 *     modelrun_speed [--config FILE] [--threads N] [--rounds N]
 *
 * A Llama of random weights, 310 million of them by default, in a temporary folder, mapped: both read the same bytes.
 * The peer is llama_plain.c: as llama2.c, -Ofast and for this machine, one sequence after the other. Each round makes a
 * step with 1, 2, 4, 8 and 16 sequences, first here and then there; what is printed is the best of each, the best of
 * the ratios' medians, and how far the logits are apart, which must be little: the work is the same.
 */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "examples/tools/modelrun/run.h"

#include "bench/peers/llama_plain.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

const char app_name[] = "modelrun_speed";

static const char usual[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 2048, \"num_hidden_layers\": 4, \"num_attention_heads\": 32,\n"
    " \"num_key_value_heads\": 8, \"head_dim\": 64, \"intermediate_size\": 8192, \"vocab_size\": 32000,\n"
    " \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0, \"hidden_act\": \"silu\",\n"
    " \"tie_word_embeddings\": true}\n";

enum { MOST = 16, BATCHES = 5, ROUNDS = 64 };
static const int batch[BATCHES] = { 1, 2, 4, 8, 16 };

typedef struct options {
    const char *config;
    int threads, rounds;
} options;

static const app_option option[] = {
    { "--config", "FILE", "another Llama's config.json", APP_TAKES_TEXT(options, config) },
    { "--threads", "N", "of both: 2", APP_TAKES_INT(options, threads, 1, 256) },
    { "--rounds", "N", "7", APP_TAKES_INT(options, rounds, 1, ROUNDS) },
};
static const app_command command = { "modelrun_speed",
                                     "usage: modelrun_speed [options]",
                                     "modelrun's BF16 against plain loops, in tokens a second.",
                                     option,
                                     sizeof option / sizeof option[0],
                                     "",
                                     NULL };

/* ---- the two of them ---- */

typedef struct pair {
    mr_model model;
    mr_run run;
    llama_plain peer;
    llama_plain_layer *layer;
    float *cache[MOST], *h, *logits, *other;
} pair;

static const uint16_t *codes(const mr_weight *w) { return w->tensor->data; }

static void make_peer(pair *p, int capacity)
{
    const mr_model *m = &p->model;
    const mr_config *c = &m->config;
    p->layer = app_memory((size_t)c->layers, sizeof *p->layer);
    for (int64_t i = 0; i < c->layers; i++) {
        const mr_layer *l = &m->layer[i];
        p->layer[i] = (llama_plain_layer){ { codes(&l->w[MR_NORM_1]), codes(&l->w[MR_NORM_2]) },
                                           codes(&l->w[MR_Q]),
                                           codes(&l->w[MR_K]),
                                           codes(&l->w[MR_V]),
                                           codes(&l->w[MR_O]),
                                           codes(&l->w[MR_GATE]),
                                           codes(&l->w[MR_UP]),
                                           codes(&l->w[MR_DOWN]) };
    }
    p->peer = (llama_plain){
        (int)c->layers,       (int)c->hidden,  (int)c->heads,   (int)c->kv_heads, (int)c->head_dim,
        (int)c->intermediate, (int)c->vocab,   capacity,        (float)c->eps,    (float)c->rope[MR_ROPE_ALL].theta,
        codes(&m->embed),     codes(&m->norm), codes(&m->head), p->layer,         NULL
    };
    p->peer.scratch = app_memory((size_t)llama_plain_scratch(&p->peer), sizeof(float));
    for (int i = 0; i < MOST; i++) p->cache[i] = app_memory((size_t)llama_plain_cache(&p->peer), sizeof(float));
}

static double step_here(pair *p, int count, const int32_t *token, int64_t position)
{
    mr_span span[MOST];
    for (int i = 0; i < count; i++) span[i] = (mr_span){ i, 1, position, i };
    const double start = app_now();
    mr_forward(&p->run, token, span, count, count, p->h);
    mr_logits(&p->run, p->h, count, p->logits);
    return app_now() - start;
}

static double step_there(pair *p, int count, const int32_t *token, int64_t position)
{
    const double start = app_now();
    for (int i = 0; i < count; i++)
        llama_plain_step(&p->peer, p->cache[i], token[i], (int)position, p->other + (int64_t)i * p->peer.vocab);
    return app_now() - start;
}

/* The largest difference of two logits over the largest logit. */
static double apart(const pair *p, int count)
{
    float most = 0, worst = 0;
    for (int64_t i = 0; i < (int64_t)count * p->peer.vocab; i++) {
        most = fmaxf(most, fabsf(p->other[i]));
        worst = fmaxf(worst, fabsf(p->other[i] - p->logits[i]));
    }
    return (double)(worst / most);
}

/* ---- the table ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(pair *p, const options *o)
{
    static double here[BATCHES][ROUNDS], there[BATCHES][ROUNDS], ratio[ROUNDS];
    double worst[BATCHES] = { 0 };
    int32_t token[MOST];
    static const app_column column[] = {
        { "sequences", APP_INTEGER, "", "" }, { "tokens/s", APP_REAL, "", "" },
        { "plain loops", APP_REAL, "", "" },  { "ratio of the best", APP_REAL, "", "" },
        { "median ratio", APP_REAL, "", "" }, { "logits apart", APP_REAL, "", "" }
    };
    app_table t;
    for (int r = -1; r < o->rounds; r++) /* the first one warms up */
        for (int b = 0; b < BATCHES; b++) {
            const int64_t position = (int64_t)(r + 1) * BATCHES + b;
            for (int i = 0; i < MOST; i++) token[i] = (int32_t)((position * 7919 + i * 104729) % p->peer.vocab);
            step_here(p, MOST, token, position); /* all caches grow alike */
            step_there(p, MOST, token, position);
            const double mine = step_here(p, batch[b], token, position);
            const double other = step_there(p, batch[b], token, position);
            worst[b] = fmax(worst[b], apart(p, batch[b]));
            if (r >= 0) here[b][r] = mine, there[b][r] = other;
        }
    app_table_start(&t, column, sizeof column / sizeof column[0]);
    for (int b = 0; b < BATCHES; b++) {
        for (int r = 0; r < o->rounds; r++) ratio[r] = there[b][r] / here[b][r];
        qsort(ratio, (size_t)o->rounds, sizeof *ratio, by_value);
        qsort(here[b], (size_t)o->rounds, sizeof **here, by_value);
        qsort(there[b], (size_t)o->rounds, sizeof **there, by_value);
        app_row(&t);
        app_integer(&t, batch[b]);
        app_real(&t, batch[b] / here[b][0]);
        app_real(&t, batch[b] / there[b][0]);
        app_real(&t, there[b][0] / here[b][0]);
        app_real(&t, ratio[o->rounds / 2]);
        app_real(&t, worst[b]);
    }
    app_print_table(stdout, &t);
    app_table_free(&t);
}

/* ---- the program ---- */

static bool write_usual(char *path, size_t size)
{
    snprintf(path, size, "/tmp/modelrun_speed_XXXXXX");
    const int made = mkstemp(path);
    FILE *out = made < 0 ? NULL : fdopen(made, "w");
    return out && fputs(usual, out) >= 0 && fclose(out) == 0;
}

static bool open_model(pair *p, const options *o, char *folder, size_t size, char *why)
{
    char own[64];
    if (!o->config && !write_usual(own, sizeof own)) return app_refuse(why, "there is no room in /tmp");
    const bool written = mr_temporary_random(o->config ? o->config : own, folder, size, why);
    if (!o->config) unlink(own);
    if (!written) return false;
    const bool ok = mr_model_open(folder, NULL, &p->model, why);
    mr_remove_random(folder); /* what is mapped stays */
    if (!ok || strcmp(p->model.config.type, "llama") == 0) return ok;
    return app_refuse(why, "the plain loops know llama alone");
}

int app_run(int argc, char **argv)
{
    static pair p;
    options o = { .threads = 2, .rounds = 7 };
    char why[IO_WHY], folder[600];
    mr_setting bf16;
    const int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
#if defined(_OPENMP)
    omp_set_num_threads(o.threads);
#endif
    if (!open_model(&p, &o, folder, sizeof folder, why)) return app_complain(APP_USAGE, "%s", why);
    const int capacity = (o.rounds + 1) * BATCHES;
    mr_setting_parse("bf16", &bf16, why);
    if (!mr_run_start(&p.run, &p.model, &bf16, MOST, capacity, why)) return app_complain(APP_USAGE, "%s", why);
    p.run.keep = true;
    make_peer(&p, capacity);
    p.h = app_memory((size_t)(MOST * p.model.config.hidden), sizeof(float));
    p.logits = app_memory((size_t)(MOST * p.model.config.vocab), sizeof(float));
    p.other = app_memory((size_t)(MOST * p.model.config.vocab), sizeof(float));
    printf("%.0f million weights, %.0f MB, %d threads\n\n", (double)p.model.parameters / 1e6,
           (double)p.model.file_bytes / 1e6, o.threads);
    measure(&p, &o);
    return APP_OK;
}

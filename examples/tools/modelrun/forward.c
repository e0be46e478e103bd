/* forward.c - a decoder's layers.
 * SPDX-License-Identifier: MIT
 *
 * The result of every operation is rounded to the setting's format: what a product, a norm, a function or a sum hands
 * on. The Scalar engine reads attention's scores from PSUM, as they are, and the logits are PSUM's, too.
 */
#include "engine.h"

#include <stdlib.h>

float *mr_floats(int64_t n) { return app_memory((size_t)(n > 0 ? n : 1), sizeof(float)); }

/* ---- beginning and end ---- */

size_t mr_cache_bytes(const mr_run *run) { return run->setting.reference ? 4 : trn_format_bytes(run->setting.act); }

static bool split(const mr_run *run, const char *what, int64_t n, char *why)
{
    const int tp = run->setting.tp;
    const int64_t unit = run->setting.codes == MR_CODES_MX && !run->setting.weights_only ? 32 : 1;
    if (n % (tp * unit) == 0) return true;
    return app_fail(why, "%s: tp=%d: the %s of this model, %lld, does not divide into parts of %s", run->setting.name,
                    tp, what, (long long)n, unit > 1 ? "whole blocks of 32" : "one size");
}

bool mr_run_start(mr_run *run, mr_model *model, const mr_setting *setting, int caches, int64_t capacity, char *why)
{
    const mr_config *c = &model->config;
    const int64_t half = c->rope_dim / 2;
    *run = (mr_run){ .model = model, .setting = *setting, .caches = caches, .capacity = capacity };
    run->ops = setting->reference ? &mr_reference_ops : &mr_engine_ops;
    if (setting->split_outputs && c->hidden % setting->tp)
        return app_fail(why, "%s: tp=%d: the hidden size of this model, %lld, does not divide into parts of one size",
                        setting->name, setting->tp, (long long)c->hidden);
    if (setting->tp > 1 && !setting->split_outputs) {
        bool dense = false;
        for (int64_t i = 0; i < c->layers; i++) dense |= !c->bare[i] && !c->sparse[i];
        const int64_t state = mr_size_of(c, MR_STATE_INNER);
        if (!split(run, "width of all heads", c->heads * c->value_dim, why) ||
            (state && !split(run, "width of all states' heads", state, why)) ||
            (dense && !split(run, "intermediate size", c->intermediate, why)) ||
            (c->experts && !split(run, "experts' intermediate size", c->moe_intermediate, why)) ||
            (c->shared_intermediate && !split(run, "shared expert's intermediate size", c->shared_intermediate, why)))
            return false;
    }
    const size_t each = (size_t)(c->layers * c->kv_heads * capacity) * mr_cache_bytes(run);
    run->cache = app_memory((size_t)caches, sizeof *run->cache);
    for (int i = 0; i < caches; i++) {
        run->cache[i].k = app_memory(each, (size_t)c->head_dim);
        run->cache[i].v = app_memory(each, (size_t)c->value_dim);
        if (c->recurrence.rule == MR_NO_RULE) continue;
        run->cache[i].state = mr_floats(c->layers * mr_size_of(c, MR_STATE_INNER) * c->recurrence.key_dim);
        run->cache[i].seen = mr_floats(c->layers * mr_size_of(c, MR_STATE_CHANNELS) * c->recurrence.width);
    }
    for (int i = 0; i < MR_ROPES; i++)
        if (c->rope[i].kind != MR_ROPE_NONE) {
            run->cosine[i] = mr_floats(capacity * half);
            run->sine[i] = mr_floats(capacity * half);
            mr_rope_tables(&c->rope[i], c->rope_dim, capacity, run->cosine[i], run->sine[i]);
        }
    return true;
}

static void free_layer(mr_run *run, int64_t layer)
{
    mr_layer *l = &run->model->layer[layer];
    for (int i = 0; i < MR_WEIGHTS; i++) mr_matrix_free(&l->w[i]);
    for (int64_t e = 0; l->expert && e < 3 * run->model->config.experts; e++) mr_matrix_free(&l->expert[e]);
}

void mr_run_end(mr_run *run)
{
    for (int64_t i = 0; i < run->model->config.layers; i++) free_layer(run, i);
    mr_matrix_free(&run->model->head);
    for (int i = 0; i < run->caches && run->cache; i++) {
        free(run->cache[i].k);
        free(run->cache[i].v);
        free(run->cache[i].state);
        free(run->cache[i].seen);
    }
    free(run->cache);
    for (int i = 0; i < MR_ROPES; i++) {
        free(run->cosine[i]);
        free(run->sine[i]);
    }
}

/* ---- small steps ---- */

void mr_linear(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y)
{
    run->ops->linear(run, &(mr_product){ .w = w, .bias = bias, .x = x, .rows = rows, .y = y });
}

void mr_linear_split(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y)
{
    run->ops->linear(run, &(mr_product){ .w = w, .bias = bias, .x = x, .rows = rows, .y = y, .row_parallel = true });
}

void mr_norm(mr_run *run, const mr_weight *weight, const mr_weight *bias, double eps, const float *x, int64_t rows,
             float *y)
{
    const int64_t n = weight->rows;
    const bool one_more = run->model->config.family->flags & MR_ONE_MORE;
    float *w = mr_floats(2 * n);
    mr_vector(weight, run, w);
    for (int64_t i = 0; i < n && one_more; i++) w[i] += 1; /* binary32, not rounded further */
    if (bias->tensor) mr_vector(bias, run, w + n);
    if (bias->tensor)
        run->ops->layer_norm(run, x, w, w + n, rows, n, y);
    else
        run->ops->rms_norm(run, x, w, eps, rows, n, y);
    mr_see(run, (mr_made){ .op = MR_OP_NORM, .of = weight, .x = y, .rows = rows, .columns = n });
    free(w);
}

static void add(mr_run *run, float *h, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) h[i] += y[i];
    mr_round(run, h, n);
}

void mr_apply(mr_run *run, trn_act act, float *x, int64_t n)
{
    run->ops->function(run, act, x, n);
    mr_round(run, x, n);
}

void mr_multiply(mr_run *run, float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
    mr_round(run, x, n);
}

/* ---- all layers ---- */

static void scale_row(mr_run *run, float *x, int64_t n, float scale)
{
    if (scale == 1) return;
    for (int64_t i = 0; i < n; i++) x[i] *= scale;
    mr_round(run, x, n);
}

static void embed(mr_run *run, const int32_t *token, const mr_span *span, int spans, float *h)
{
    mr_model *m = run->model;
    const int64_t n = m->config.hidden;
    float *position = mr_floats(n), scale = (float)m->config.embed_scale;
    mr_round(run, &scale, 1);
    for (int i = 0; i < spans; i++)
        for (int64_t t = 0; t < span[i].count; t++) {
            const int64_t row = span[i].row + t;
            mr_decode(&m->embed, token[row], 1, h + row * n);
            mr_round(run, h + row * n, n);
            scale_row(run, h + row * n, n, scale);
            if (!m->positions.tensor) continue;
            mr_decode(&m->positions, span[i].position + t, 1, position);
            mr_round(run, position, n);
            add(run, h + row * n, position, n);
        }
    free(position);
}

/* h += y, or the norm of y where the family has one there. */
static void add_branch(mr_run *run, const mr_weight *after, float *h, float *y, int64_t rows)
{
    const mr_config *c = &run->model->config;
    const int64_t n = rows * c->hidden;
    const mr_weight none = { .tensor = NULL };
    if (after->tensor) {
        float *z = mr_floats(n);
        mr_norm(run, after, &none, c->eps, y, rows, z);
        memcpy(y, z, sizeof *y * (size_t)n);
        free(z);
    }
    add(run, h, y, n);
    mr_see(run, (mr_made){ .op = MR_OP_ADD, .of = after, .x = h, .rows = rows, .columns = c->hidden });
}

static void mix_tokens(mr_run *run, int64_t i, const mr_span *span, int spans, int64_t rows, float *h)
{
    const mr_config *c = &run->model->config;
    mr_layer *l = &run->model->layer[i];
    float *x = mr_floats(rows * c->hidden), *y = mr_floats(rows * c->hidden);
    mr_norm(run, &l->w[MR_NORM_1], &l->bias[MR_NORM_1], c->eps, h, rows, x);
    (c->mixer[i] == MR_RECURS ? mr_recur : mr_attention)(run, i, x, span, spans, rows, y);
    add_branch(run, &l->w[MR_NORM_1_AFTER], h, y, rows);
    free(x);
    free(y);
}

static void mix_channels(mr_run *run, int64_t i, int64_t rows, float *h)
{
    const mr_config *c = &run->model->config;
    mr_layer *l = &run->model->layer[i];
    float *x = mr_floats(rows * c->hidden), *y = mr_floats(rows * c->hidden);
    mr_weight *w[3] = { &l->w[MR_GATE], &l->w[MR_UP], &l->w[MR_DOWN] };
    const mr_weight *bias[3] = { &l->bias[MR_GATE], &l->bias[MR_UP], &l->bias[MR_DOWN] };
    mr_norm(run, &l->w[MR_NORM_2], &l->bias[MR_NORM_2], c->eps, h, rows, x);
    if (c->sparse[i])
        mr_mixture(run, l, x, rows, y);
    else
        mr_perceptron(run, w, bias, x, rows, y);
    add_branch(run, &l->w[MR_NORM_2_AFTER], h, y, rows);
    free(x);
    free(y);
}

void mr_forward(mr_run *run, const int32_t *token, const mr_span *span, int spans, int64_t rows, float *out)
{
    mr_model *m = run->model;
    const mr_config *c = &m->config;
    float *h = mr_floats(rows * c->hidden);
    embed(run, token, span, spans, h);
    mr_see(run, (mr_made){ .op = MR_OP_EMBED, .x = h, .rows = rows, .columns = c->hidden });
    for (int64_t i = 0; i < c->layers; i++) {
        if (c->mixer[i] != MR_NO_MIXER) mix_tokens(run, i, span, spans, rows, h);
        if (!c->bare[i]) mix_channels(run, i, rows, h);
        if (run->seen) run->seen(run->user, i, h, rows);
        if (!run->keep) free_layer(run, i);
    }
    mr_norm(run, &m->norm, &m->norm_bias, c->eps, h, rows, out);
    free(h);
}

void mr_logits(mr_run *run, const float *h, int64_t rows, float *logits)
{
    run->ops->linear(run, &(mr_product){ .w = &run->model->head, .x = h, .rows = rows, .y = logits, .raw = true });
}

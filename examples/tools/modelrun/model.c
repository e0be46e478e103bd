/* model.c - a checkpoint, mapped: every weight that the configuration asks for is found, and has its shape.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the parameter names of transformers' modelling code; the names of scales in published FP8 checkpoints.
 */
#include "model.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_convert.h>

enum { NAME = 512, BASE = 256 };

/* What is needed to find a weight and to say that it is missing. */
typedef struct finder {
    mr_model *m;
    char *why;
    char base[BASE]; /* "model.layers.3." */
} finder;

static const st_tensor *look(const mr_model *m, const char *name)
{
    const int shard = ckpt_find(&m->checkpoint, name);
    return shard < 0 ? NULL : st_find(&m->shard[shard], name);
}

/* "model.layers.3." and "self_attn.q_proj" and ".weight". */
static const st_tensor *look_for(const finder *f, const char *name, const char *end, char *text)
{
    snprintf(text, NAME, "%.255s%.200s%.32s", f->base, name, end);
    return look(f->m, text);
}

static bool refuse(const finder *f, const char *name, const char *what)
{
    return io_fail(f->why, f->m->folder, "tensor '%.200s%.100s' %s", f->base, name, what);
}

/* ---- plain matrices and vectors ---- */

static bool is_number(const st_tensor *t) { return quant_is_number(t); }

static bool check_shape(const finder *f, const char *name, const st_tensor *t, int rank, const int64_t *shape)
{
    char text[NAME], have[128] = "", want[128] = "";
    size_t a = 0, b = 0;
    bool same = t->rank == rank;
    for (int i = 0; i < rank && same; i++) same = t->shape[i] == shape[i];
    if (same) return true;
    for (int i = 0; i < t->rank && a < 100; i++)
        a += (size_t)snprintf(have + a, sizeof have - a, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    for (int i = 0; i < rank && b < 100; i++)
        b += (size_t)snprintf(want + b, sizeof want - b, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text, sizeof text, "is [%s], and the configuration asks for [%s]", have, want);
    return refuse(f, name, text);
}

/* The scales of a matrix of codes, read when it is first asked for. */
static const quant_values *open_codes(const finder *f, int number)
{
    mr_model *m = f->m;
    const quant *q = &m->map.quant[number];
    quant_values *v = &m->values[number];
    const st_tensor *part[QUANT_PARTS] = { NULL };
    if (q->wrong) return snprintf(f->why, IO_WHY, "%.511s", q->wrong), NULL;
    if (v->q) return v;
    for (int i = 0; i < QUANT_PARTS; i++)
        if (q->part[i] >= 0) part[i] = m->list[q->part[i]];
    m->alone += q->alone;
    return quant_open(q, part, v, f->why) ? v : NULL;
}

/* Codes that stand for base + name as a matrix: by its name, or by what other writers put in place of ".weight". */
static int find_codes(const finder *f, const char *name, const char *end)
{
    const quant_map *m = &f->m->map;
    char text[NAME];
    const char *other;
    look_for(f, name, end, text);
    int place = quant_find(m, text);
    for (int i = 0; place < 0 && *end && (other = quant_ending(i)) != NULL; i++) {
        look_for(f, name, other, text);
        place = quant_find(m, text);
        if (place >= 0 && m->number[place] < 0) place = -1;
    }
    return place < 0 ? -1 : m->number[place];
}

/* What is there in another format says so; else it is missing. */
static bool missing(const finder *f, const char *name)
{
    char format[QUANT_FOREIGN];
    int place;
    if (!quant_foreign(&f->m->map, &place, format))
        return refuse(f, name, "is not in the checkpoint, and the configuration asks for it");
    return io_fail(f->why, f->m->folder, "its weights are %s (%.200s is there), which is not supported", format,
                   f->m->list[place]->name);
}

static bool take_codes(const finder *f, const char *name, int number, int64_t rows, int64_t columns, mr_weight *w)
{
    const quant_values *v = open_codes(f, number);
    if (!v) return false;
    w->codes = v;
    w->tensor = f->m->list[v->q->part[QUANT_CODES]];
    return check_shape(f, name, &v->q->view, 2, (const int64_t[]){ rows, columns });
}

static bool matrix(const finder *f, const char *name, int64_t rows, int64_t columns, mr_weight *w)
{
    char text[NAME];
    const int number = find_codes(f, name, ".weight");
    const st_tensor *t = look_for(f, name, ".weight", text);
    *w = (mr_weight){ .tensor = t, .rows = rows, .columns = columns, .row = columns, .column = 1 };
    if (number >= 0) return take_codes(f, name, number, rows, columns, w);
    if (!t) return missing(f, name);
    if (!check_shape(f, name, t, 2, (const int64_t[]){ rows, columns })) return false;
    if (is_number(t)) return true;
    snprintf(text, sizeof text, "is %s; expected BF16, F16, F32, or codes with a scale", t->type);
    return refuse(f, name, text);
}

static bool vector(const finder *f, const char *name, const char *end, int64_t rows, mr_weight *w)
{
    char text[NAME];
    const st_tensor *t = look_for(f, name, end, text);
    if (!t) return refuse(f, name, "is not in the checkpoint (its weight or bias), and the configuration asks for it");
    *w = (mr_weight){ .tensor = t, .rows = rows, .columns = 1, .row = 1, .column = 1 };
    if (!is_number(t)) return refuse(f, name, "is a vector of neither BF16, F16 nor F32");
    return check_shape(f, name, t, 1, &rows);
}

static bool with_bias(const finder *f, const char *name, bool bias, int64_t rows, int64_t columns, mr_weight *w,
                      mr_weight *b)
{
    return matrix(f, name, rows, columns, w) && (!bias || vector(f, name, ".bias", rows, b));
}

/* ---- GPT-2: [in, out], and three matrices in one ---- */

static bool turned(const finder *f, const char *name, int64_t rows, int64_t columns, int parts, mr_weight *w,
                   mr_weight *b)
{
    char text[NAME];
    const int64_t all = parts * rows;
    const st_tensor *t = look_for(f, name, ".weight", text), *bias = look_for(f, name, ".bias", text);
    if (!t || !bias) return missing(f, name);
    if (!is_number(t) || !is_number(bias)) return refuse(f, name, "is neither BF16, F16 nor F32");
    if (!check_shape(f, name, t, 2, (const int64_t[]){ columns, all }) || !check_shape(f, name, bias, 1, &all))
        return false;
    for (int i = 0; i < parts; i++) {
        w[i] = (mr_weight){ .tensor = t, .rows = rows, .columns = columns, .first = i * rows, .row = 1, .column = all };
        b[i] = (mr_weight){ .tensor = bias, .rows = rows, .columns = 1, .first = i * rows, .row = 1, .column = 1 };
    }
    return true;
}

static bool gpt2_layer(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    static const char *const norm[] = { "ln_1", "ln_2" };
    for (int i = 0; i < 2; i++)
        if (!vector(f, norm[i], ".weight", c->hidden, &l->norm[i]) ||
            !vector(f, norm[i], ".bias", c->hidden, &l->norm_bias[i]))
            return false;
    return turned(f, "attn.c_attn", c->hidden, c->hidden, 3, &l->w[MR_Q], &l->bias[MR_Q]) &&
           turned(f, "attn.c_proj", c->hidden, c->hidden, 1, &l->w[MR_O], &l->bias[MR_O]) &&
           turned(f, "mlp.c_fc", c->intermediate, c->hidden, 1, &l->w[MR_UP], &l->bias[MR_UP]) &&
           turned(f, "mlp.c_proj", c->hidden, c->intermediate, 1, &l->w[MR_DOWN], &l->bias[MR_DOWN]);
}

/* ---- experts ---- */

static bool named_experts(const finder *f, mr_layer *l)
{
    static const char *const mixtral[] = { "w1", "w3", "w2" };
    static const char *const others[] = { "gate_proj", "up_proj", "down_proj" };
    const mr_config *c = &f->m->config;
    char name[NAME], text[NAME];
    const bool block = look_for(f, "block_sparse_moe.gate", ".weight", name) != NULL;
    const char *home = block ? "block_sparse_moe" : "mlp";
    snprintf(name, sizeof name, "%s.experts.gate_up_proj", home);
    if (look_for(f, name, "", text) || find_codes(f, name, "") >= 0)
        return refuse(f, name,
                      "holds all experts, which is read of gpt_oss alone: nothing says which of its axes and "
                      "halves are which; a tensor for each expert is read");
    snprintf(name, sizeof name, "%s.gate", home);
    if (!matrix(f, name, c->experts, c->hidden, &l->w[MR_ROUTER])) return false;
    for (int64_t e = 0; e < c->experts; e++)
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "%s.experts.%lld.%s", home, (long long)e, (block ? mixtral : others)[i]);
            const int64_t out = i == 2 ? c->hidden : c->moe_intermediate, in = i == 2 ? c->moe_intermediate : c->hidden;
            if (!matrix(f, name, out, in, &l->expert[3 * e + i])) return false;
        }
    return true;
}

/* Element [expert, o, i] of all experts' matrices in one tensor; `turned`: [experts, in, out]. */
static void share_out(const mr_model *m, const mr_weight *all, bool turned, int64_t out, int64_t in, int parts,
                      mr_weight *w)
{
    const int64_t width = out * parts;
    for (int64_t e = 0; e < m->config.experts; e++)
        for (int i = 0; i < parts; i++) {
            mr_weight *one = &w[3 * e + i];
            *one = *all;
            one->rows = out;
            one->columns = in;
            one->first = turned ? e * in * width + i : (e * width + i) * in;
            one->row = turned ? parts : parts * in;
            one->column = turned ? width : 1;
        }
}

/* [experts, in, out]; MXFP4's are [experts, out, in]. */
static bool joint(const finder *f, const char *name, int64_t out, int64_t in, int parts, mr_weight *w)
{
    const int64_t experts = f->m->config.experts, all = out * parts;
    char text[NAME];
    const int blocks = find_codes(f, name, "_blocks"), eight = find_codes(f, name, "");
    const int number = blocks >= 0 ? blocks : eight;
    mr_weight whole = { .tensor = look_for(f, name, "", text) };
    if (number < 0 && !whole.tensor) return missing(f, name);
    if (number >= 0) whole.codes = open_codes(f, number);
    if (number >= 0 && !whole.codes) return false;
    if (whole.codes)
        whole.tensor = f->m->list[whole.codes->q->part[QUANT_CODES]];
    else if (!is_number(whole.tensor))
        return refuse(f, name, "is neither BF16, F16 nor F32, nor codes with a scale");
    const bool turned = !whole.codes || whole.codes->q->kind != QUANT_MXFP4;
    if (!check_shape(f, name, whole.codes ? &whole.codes->q->view : whole.tensor, 3,
                     turned ? (const int64_t[]){ experts, in, all } : (const int64_t[]){ experts, all, in }))
        return false;
    share_out(f->m, &whole, turned, out, in, parts, w);
    return true;
}

static bool joint_bias(const finder *f, const char *name, int64_t out, int parts, mr_weight *b)
{
    const int64_t experts = f->m->config.experts, all = out * parts;
    char text[NAME];
    const st_tensor *t = look_for(f, name, "", text);
    if (!t) return missing(f, name);
    if (!is_number(t)) return refuse(f, name, "is neither BF16, F16 nor F32");
    if (!check_shape(f, name, t, 2, (const int64_t[]){ experts, all })) return false;
    for (int64_t e = 0; e < experts; e++)
        for (int i = 0; i < parts; i++)
            b[3 * e + i] =
                (mr_weight){ .tensor = t, .rows = out, .columns = 1, .first = e * all + i, .row = parts, .column = 1 };
    return true;
}

static bool gpt_oss_experts(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    return with_bias(f, "mlp.router", true, c->experts, c->hidden, &l->w[MR_ROUTER], &l->bias[MR_ROUTER]) &&
           joint(f, "mlp.experts.gate_up_proj", c->moe_intermediate, c->hidden, 2, l->expert) &&
           joint(f, "mlp.experts.down_proj", c->hidden, c->moe_intermediate, 1, l->expert + 2) &&
           joint_bias(f, "mlp.experts.gate_up_proj_bias", c->moe_intermediate, 2, l->expert_bias) &&
           joint_bias(f, "mlp.experts.down_proj_bias", c->hidden, 1, l->expert_bias + 2);
}

static bool experts(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    l->expert = (mr_weight *)app_memory((size_t)c->experts * 3, sizeof *l->expert);
    l->expert_bias = (mr_weight *)app_memory((size_t)c->experts * 3, sizeof *l->expert_bias);
    if (c->family->flags & MR_GPT_OSS) return gpt_oss_experts(f, l);
    if (!named_experts(f, l)) return false;
    const int64_t shared = c->shared_intermediate;
    return !shared || (matrix(f, "mlp.shared_expert.gate_proj", shared, c->hidden, &l->w[MR_SHARED_GATE]) &&
                       matrix(f, "mlp.shared_expert.up_proj", shared, c->hidden, &l->w[MR_SHARED_UP]) &&
                       matrix(f, "mlp.shared_expert.down_proj", c->hidden, shared, &l->w[MR_SHARED_DOWN]) &&
                       matrix(f, "mlp.shared_expert_gate", 1, c->hidden, &l->w[MR_SHARED_SWITCH]));
}

/* ---- layers ---- */

static bool perceptron(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    const bool bias = c->mlp_bias;
    const bool gate = !(c->family->flags & MR_PLACES);
    return (!gate ||
            with_bias(f, "mlp.gate_proj", bias, c->intermediate, c->hidden, &l->w[MR_GATE], &l->bias[MR_GATE])) &&
           with_bias(f, "mlp.up_proj", bias, c->intermediate, c->hidden, &l->w[MR_UP], &l->bias[MR_UP]) &&
           with_bias(f, "mlp.down_proj", bias, c->hidden, c->intermediate, &l->w[MR_DOWN], &l->bias[MR_DOWN]);
}

static bool attention(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    const int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const bool bias = c->qkv_bias;
    if (!with_bias(f, "self_attn.q_proj", bias, q, c->hidden, &l->w[MR_Q], &l->bias[MR_Q]) ||
        !with_bias(f, "self_attn.k_proj", bias, kv, c->hidden, &l->w[MR_K], &l->bias[MR_K]) ||
        !with_bias(f, "self_attn.v_proj", bias, kv, c->hidden, &l->w[MR_V], &l->bias[MR_V]) ||
        !with_bias(f, "self_attn.o_proj", c->o_bias, c->hidden, q, &l->w[MR_O], &l->bias[MR_O]))
        return false;
    if (c->family->flags & MR_SINKS && !vector(f, "self_attn.sinks", "", c->heads, &l->sinks)) return false;
    return !(c->family->flags & MR_QK_NORM) || (vector(f, "self_attn.q_norm", ".weight", c->head_dim, &l->q_norm) &&
                                                vector(f, "self_attn.k_norm", ".weight", c->head_dim, &l->k_norm));
}

static bool usual_layer(const finder *f, mr_layer *l, bool sparse)
{
    const int64_t hidden = f->m->config.hidden;
    return vector(f, "input_layernorm", ".weight", hidden, &l->norm[0]) &&
           vector(f, "post_attention_layernorm", ".weight", hidden, &l->norm[1]) && attention(f, l) &&
           (sparse ? experts(f, l) : perceptron(f, l));
}

/* ---- the whole ---- */

/* What comes before "layers.0.": base models have no "model.", and multi-modal ones have more. */
static bool find_prefix(mr_model *m, char *why)
{
    static const char *const usual[] = { "model.", "",
                                         /* of models that take more than text */
                                         "model.language_model.", "language_model.model.", "language_model.", NULL };
    static const char *const gpt2[] = { "transformer.", "", NULL };
    const bool old = m->config.family->flags & MR_GPT2;
    const char *const *prefix = old ? gpt2 : usual;
    char name[NAME];
    for (; *prefix; prefix++) {
        snprintf(name, sizeof name, "%s%s", *prefix, old ? "wte.weight" : "embed_tokens.weight");
        if (!look(m, name)) continue;
        m->prefix = *prefix;
        return true;
    }
    return io_fail(why, m->folder, "it has no %s, which %s begins with", old ? "wte.weight" : "embed_tokens.weight",
                   m->config.type);
}

/* lm_head stands beside the base model, whatever that is called. */
static bool find_head(finder *f)
{
    mr_model *m = f->m;
    const mr_config *c = &m->config;
    char text[NAME];
    m->embed.plain = true;
    m->head = m->embed;
    if (c->tied) return true;
    static const char *const base[] = { "", "language_model." };
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
        snprintf(f->base, sizeof f->base, "%s", base[i]);
        if (look_for(f, "lm_head", ".weight", text)) {
            const bool ok = matrix(f, "lm_head", c->vocab, c->hidden, &m->head);
            m->head.plain = true;
            return ok;
        }
    }
    app_complain(0, "%s: it has no lm_head.weight; its embeddings take the place", m->folder);
    return true;
}

static bool find_ends(finder *f)
{
    mr_model *m = f->m;
    const mr_config *c = &m->config;
    const bool gpt2 = c->family->flags & MR_GPT2;
    snprintf(f->base, sizeof f->base, "%s", m->prefix);
    if (!matrix(f, gpt2 ? "wte" : "embed_tokens", c->vocab, c->hidden, &m->embed) ||
        !vector(f, gpt2 ? "ln_f" : "norm", ".weight", c->hidden, &m->norm))
        return false;
    if (gpt2 && (!vector(f, "ln_f", ".bias", c->hidden, &m->norm_bias) ||
                 !matrix(f, "wpe", c->positions, c->hidden, &m->positions)))
        return false;
    if (c->family->flags & MR_PLACES && !matrix(f, "embed_positions", c->positions, c->hidden, &m->positions))
        return false;
    return find_head(f);
}

static bool find_layers(finder *f)
{
    mr_model *m = f->m;
    const mr_config *c = &m->config;
    const bool gpt2 = c->family->flags & MR_GPT2;
    m->layer = (mr_layer *)app_memory((size_t)c->layers, sizeof *m->layer);
    for (int64_t i = 0; i < c->layers; i++) {
        snprintf(f->base, sizeof f->base, "%s%s.%lld.", m->prefix, gpt2 ? "h" : "layers", (long long)i);
        if (!(gpt2 ? gpt2_layer(f, &m->layer[i]) : usual_layer(f, &m->layer[i], c->sparse[i]))) return false;
        m->layer[i].w[MR_ROUTER].plain = m->layer[i].w[MR_SHARED_SWITCH].plain = true;
    }
    return true;
}

static bool open_shards(mr_model *m, char *why)
{
    m->shard = (st_file *)app_memory((size_t)m->checkpoint.shards, sizeof *m->shard);
    for (int i = 0; i < m->checkpoint.shards; i++) {
        if (!ckpt_shard(&m->checkpoint, i, &m->shard[i], why)) return false;
        m->file_bytes += m->shard[i].map.size;
    }
    return true;
}

/* What each tensor is: scales are no parameters, and codes count as what they stand for. */
static bool survey(mr_model *m, const quant_asked *asked, char *why)
{
    const int n = m->checkpoint.tensors;
    m->list = app_memory((size_t)n + 1, sizeof *m->list);
    for (int i = 0; i < n; i++) {
        const ckpt_tensor *t = &m->checkpoint.tensor[i];
        m->list[i] = st_find(&m->shard[t->shard], t->name);
    }
    if (asked) m->asked = *asked;
    m->map = (quant_map){ .tensor = m->list, .tensors = n, .said = &m->said, .asked = &m->asked };
    if (!quant_survey(&m->map, why)) return false;
    m->values = app_memory((size_t)m->map.quants + 1, sizeof *m->values);
    for (int i = 0; i < n; i++) {
        const int number = m->map.number[i];
        if (number >= 0)
            m->parameters += m->map.quant[number].view.elements;
        else if (m->map.role[i] == QUANT_PLAIN)
            m->parameters += m->list[i]->elements;
    }
    return true;
}

bool mr_model_open(const char *folder, const quant_asked *asked, mr_model *m, char *why)
{
    memset(m, 0, sizeof *m);
    m->folder = folder;
    why[0] = 0;
    if (quant_is_gguf(folder))
        return io_fail(why, folder,
                       "it is GGUF, in llama.cpp's names and order of rows; make Hugging Face's of it "
                       "first (transformers: from_pretrained with gguf_file, then save_pretrained)");
    if (!ckpt_folder(folder)) return io_fail(why, folder, "it is not a directory with a config.json");
    char *path = ckpt_inside(folder, "config.json");
    if (!path) return io_fail(why, folder, "there is not enough memory to read it");
    bool ok = mr_config_read(path, &m->config, why);
    free(path);
    ok = ok && quant_said_read(folder, &m->said, why) && ckpt_open(folder, &m->checkpoint, why) &&
         open_shards(m, why) && survey(m, asked, why) && find_prefix(m, why);
    finder f = { .m = m, .why = why };
    ok = ok && find_ends(&f) && find_layers(&f);
    if (!ok) mr_model_close(m);
    return ok;
}

void mr_model_close(mr_model *m)
{
    for (int64_t i = 0; m->layer && i < m->config.layers; i++) {
        free(m->layer[i].expert);
        free(m->layer[i].expert_bias);
    }
    free(m->layer);
    for (int i = 0; m->values && i < m->map.quants; i++) quant_close(&m->values[i]);
    free(m->values);
    quant_map_free(&m->map);
    quant_said_free(&m->said);
    free(m->list);
    for (int i = 0; m->shard && i < m->checkpoint.shards; i++) st_close(&m->shard[i]);
    free(m->shard);
    ckpt_close(&m->checkpoint);
    memset(m, 0, sizeof *m);
}

/* ---- matrices as numbers ---- */

static unsigned char *place(const mr_weight *w, int64_t row)
{
    return (unsigned char *)(uintptr_t)w->tensor->data + (w->first + row * w->row) * w->tensor->bits / 8;
}

trn_tensor mr_view(const mr_weight *w)
{
    if (w->codes) return trn_tensor_nd(TRN_FORMAT_UNSET, NULL, 0, NULL);
    trn_tensor t = trn_tensor_2d(w->tensor->format, place(w, 0), w->rows, w->columns);
    t.stride[0] = w->row;
    t.stride[1] = w->column;
    return t;
}

double mr_bytes_each(const mr_weight *w)
{
    double bytes = 0;
    if (!w->codes) return w->tensor->bits / 8.0;
    const quant *q = w->codes->q;
    for (int i = 0; i < QUANT_PARTS; i++)
        if (q->part[i] >= 0) bytes += (double)st_bytes(w->codes->part[i]);
    return q->view.elements ? bytes / (double)q->view.elements : 0;
}

const unsigned char *mr_codes_of_row(const mr_weight *w, int64_t row, float *scale)
{
    const quant *q = w->codes ? w->codes->q : NULL;
    const bool eight = q && q->kind == QUANT_FP8 && q->codes.format != TRN_F8_E5M2 && w->column == 1;
    if (!eight) return NULL;
    const int64_t at = (w->first + row * w->row) / w->columns;
    const quant_factor f = quant_factor_at(w->codes, at, 0);
    if (f.run < w->columns) return NULL;
    *scale = (float)f.scale;
    return w->codes->codes + at * w->columns;
}

static void decode_codes(const mr_weight *w, int64_t row, float *out)
{
    const int64_t first = w->first + row * w->row, wide = w->codes->columns;
    if (w->column == 1)
        quant_run(w->codes, first / wide, first % wide, w->columns, out, 1);
    else
        for (int64_t i = 0, at = first; i < w->columns; i++, at += w->column)
            quant_run(w->codes, at / wide, at % wide, 1, &out[i], 1);
}

/* From any address. */
static void decode_numbers(const mr_weight *w, int64_t row, int64_t count, float *out)
{
    const size_t bytes = (size_t)w->tensor->bits / 8;
    trn_error error;
    if ((uintptr_t)w->tensor->data % bytes == 0) {
        trn_convert_args a = { .dst = trn_tensor_2d(TRN_F32, out, count, w->columns),
                               .src = trn_tensor_slice(mr_view(w), 0, row, count),
                               .error = &error };
        app_worked(trn_convert(&a), &error);
        return;
    }
    for (int64_t o = 0; o < count; o++)
        for (int64_t i = 0; i < w->columns; i++) {
            uint32_t code = 0;
            memcpy(&code, place(w, row + o) + (size_t)(i * w->column) * bytes, bytes);
            *out++ = trn_decode(w->tensor->format, code);
        }
}

void mr_decode(const mr_weight *w, int64_t row, int64_t count, float *out)
{
    if (!w->codes)
        decode_numbers(w, row, count, out);
    else
        for (int64_t o = 0; o < count; o++) decode_codes(w, row + o, out + o * w->columns);
}

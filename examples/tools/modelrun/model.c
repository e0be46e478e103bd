/* model.c - a checkpoint, mapped: every weight that the configuration asks for is found, and has its shape.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the names of scales in published FP8 checkpoints.
 */
#include "model.h"

#include <stdlib.h>

enum { NAME = 512, BASE = 256 };

/* What is needed to find a weight and to say that it is missing. */
typedef struct finder {
    mr_model *m;
    char *why;
    char base[BASE];  /* "model.layers.3." */
    const char *home; /* of the perceptron: "mlp" */
    const char *const *expert;
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

/* ---- the parts of a layer: names.c ---- */

static const char *full_name(const finder *f, const char *name, char *text)
{
    if (name[0] != '.') return name;
    snprintf(text, NAME, "%s%s", f->home, name);
    return text;
}

/* Rows [first, first + rows) of a tensor of `all` rows. */
static void slice(const mr_weight *whole, int64_t first, int64_t rows, bool turned, mr_weight *w)
{
    *w = *whole;
    w->rows = rows;
    w->first = turned ? first : first * whole->columns;
    w->row = turned ? 1 : whole->columns;
    w->column = turned ? whole->rows : 1;
}

/* GPT-2's: [in, out], with a bias. */
static bool turned(const finder *f, const char *name, int64_t rows, int64_t columns, mr_weight *w)
{
    char text[NAME];
    const st_tensor *t = look_for(f, name, ".weight", text);
    if (!t) return missing(f, name);
    if (!is_number(t)) return refuse(f, name, "is neither BF16, F16 nor F32");
    *w = (mr_weight){ .tensor = t, .rows = rows, .columns = columns };
    return check_shape(f, name, t, 2, (const int64_t[]){ columns, rows });
}

/* [channels, 1, width], as torch.nn.Conv1d keeps them. */
static bool convolution(const finder *f, const char *name, int64_t rows, int64_t columns, mr_weight *w)
{
    char text[NAME];
    const st_tensor *t = look_for(f, name, ".weight", text);
    if (!t) return missing(f, name);
    if (!is_number(t)) return refuse(f, name, "is neither BF16, F16 nor F32");
    *w = (mr_weight){ .tensor = t, .rows = rows, .columns = columns, .row = columns, .column = 1 };
    return check_shape(f, name, t, 3, (const int64_t[]){ rows, 1, columns });
}

/* `parts` neighbours, which are one tensor of `all` rows. */
static bool find_together(const finder *f, const mr_part *part, int parts, int64_t all, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    const mr_names *names = c->family->names;
    char text[NAME];
    const char *name = full_name(f, part->name, text), *end = part->end ? part->end : ".weight";
    const int64_t columns = mr_size_of(c, part->columns);
    const bool bias = mr_has_bias(c, part), turn = columns && names->turned;
    mr_weight whole, one;
    const bool found = !columns                          ? vector(f, name, end, all, &whole)
                       : part->columns == MR_STATE_WIDTH ? convolution(f, name, all, columns, &whole)
                       : turn                            ? turned(f, name, all, columns, &whole)
                                                         : matrix(f, name, all, columns, &whole);
    if (!found) return false;
    if (bias && !vector(f, name, ".bias", all, &one)) return false;
    for (int64_t i = 0, first = 0; i < parts; i++) {
        const int64_t rows = mr_size_of(c, part[i].rows);
        slice(&whole, first, rows, turn, &l->w[part[i].slot]);
        if (bias) slice(&one, first, rows, false, &l->bias[part[i].slot]);
        first += rows;
    }
    return true;
}

static bool find_parts(const finder *f, const mr_part *part, mr_layer *l)
{
    while (part->name) {
        int64_t all;
        const int parts = mr_parts_together(&f->m->config, part, &all);
        if (all && !find_together(f, part, parts, all, l)) return false;
        part += parts;
    }
    return true;
}

/* ---- experts ---- */

static bool named_experts(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    char name[NAME], text[NAME];
    snprintf(name, sizeof name, "%s.experts.gate_up_proj", f->home);
    if (look_for(f, name, "", text) || find_codes(f, name, "") >= 0)
        return refuse(f, name,
                      "holds all experts, which is read of gpt_oss and llama4 alone: nothing says which of its axes "
                      "and halves are which; a tensor for each expert is read");
    for (int64_t e = 0; e < c->experts; e++)
        for (int i = f->expert[0] ? 0 : 1; i < 3; i++) {
            snprintf(name, sizeof name, "%s.experts.%lld.%s", f->home, (long long)e, f->expert[i]);
            const int64_t out = i == 2 ? c->hidden : c->moe_intermediate, in = i == 2 ? c->moe_intermediate : c->hidden;
            if (!matrix(f, name, out, in, &l->expert[3 * e + i])) return false;
        }
    return true;
}

/* Element [expert, o, i] of all experts' matrices in one tensor; `turned`: [experts, in, out]. Of two parts the rows
 * come by turns, or one part's after the other's. */
static void share_out(const mr_model *m, const mr_weight *all, bool turned, int64_t out, int64_t in, int parts,
                      mr_weight *w)
{
    const bool turns = m->config.family->names->joint == MR_TURNS;
    const int64_t width = out * parts, step = turns ? parts : 1, place = turns ? 1 : out;
    for (int64_t e = 0; e < m->config.experts; e++)
        for (int i = 0; i < parts; i++) {
            mr_weight *one = &w[3 * e + i];
            *one = *all;
            one->rows = out;
            one->columns = in;
            one->first = turned ? e * in * width + i * place : (e * width + i * place) * in;
            one->row = turned ? step : step * in;
            one->column = turned ? width : 1;
        }
}

/* [experts, in, out]; MXFP4's are [experts, out, in]. */
static bool joint(const finder *f, const char *part, int64_t out, int64_t in, int parts, mr_weight *w)
{
    const int64_t experts = f->m->config.experts, all = out * parts;
    char text[NAME], home[NAME];
    const char *name = full_name(f, part, home);
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

static bool joint_bias(const finder *f, const char *part, int64_t out, int parts, mr_weight *b)
{
    const int64_t experts = f->m->config.experts, all = out * parts;
    char text[NAME], home[NAME];
    const char *name = full_name(f, part, home);
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

static bool joint_experts(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    const bool bias = c->family->names->joint == MR_TURNS;
    return joint(f, ".experts.gate_up_proj", c->moe_intermediate, c->hidden, 2, l->expert) &&
           joint(f, ".experts.down_proj", c->hidden, c->moe_intermediate, 1, l->expert + 2) &&
           (!bias || (joint_bias(f, ".experts.gate_up_proj_bias", c->moe_intermediate, 2, l->expert_bias) &&
                      joint_bias(f, ".experts.down_proj_bias", c->hidden, 1, l->expert_bias + 2)));
}

/* Quantised checkpoints of Llama 4 have a tensor for each expert. */
static bool is_joint(const finder *f)
{
    char name[NAME], text[NAME];
    const mr_joint how = f->m->config.family->names->joint;
    if (how == MR_ONE_BY_ONE) return false;
    snprintf(name, sizeof name, "%s.experts.0.%s", f->home, f->expert[0]);
    const bool named = find_codes(f, name, ".weight") >= 0 || look_for(f, name, ".weight", text);
    return how == MR_TURNS || (how == MR_HALVES && !named);
}

static bool experts(const finder *f, mr_layer *l)
{
    const mr_config *c = &f->m->config;
    l->expert = (mr_weight *)app_memory((size_t)c->experts * 3, sizeof *l->expert);
    l->expert_bias = (mr_weight *)app_memory((size_t)c->experts * 3, sizeof *l->expert_bias);
    return is_joint(f) ? joint_experts(f, l) : named_experts(f, l);
}

/* ---- layers ---- */

/* Experts are called as the family calls them, or as transformers' code does, or as Mixtral's files do. */
static void find_home(finder *f)
{
    static const struct {
        const char *home, *expert[3];
    } other[] = { { "block_sparse_moe", { "w1", "w3", "w2" } }, { "mlp", { "gate_proj", "up_proj", "down_proj" } } };
    const mr_names *names = f->m->config.family->names;
    char text[NAME], name[NAME];
    f->home = names->home;
    f->expert = names->expert;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        snprintf(name, sizeof name, "%s.gate", other[i].home);
        if (!look_for(f, name, ".weight", text)) continue;
        f->home = other[i].home;
        f->expert = other[i].expert;
        return;
    }
}

static bool find_layer(finder *f, mr_layer *l, int64_t i)
{
    const mr_config *c = &f->m->config;
    const mr_names *names = c->family->names;
    const bool sparse = c->sparse[i];
    f->home = names->home;
    if (sparse) find_home(f);
    if (c->mixer[i] != MR_NO_MIXER && !find_parts(f, c->mixer[i] == MR_RECURS ? names->recurrent : names->attention, l))
        return false;
    if (c->bare[i]) return true;
    if (!find_parts(f, sparse ? names->sparse : names->dense, l)) return false;
    l->w[MR_ROUTER].plain = l->w[MR_SHARED_SWITCH].plain = true;
    return !sparse || experts(f, l);
}

/* ---- the whole ---- */

static bool find_prefix(mr_model *m, char *why)
{
    const mr_names *names = m->config.family->names;
    char name[NAME];
    for (const char *const *prefix = names->prefix; *prefix; prefix++) {
        snprintf(name, sizeof name, "%s%s.weight", *prefix, names->embed);
        if (!look(m, name)) continue;
        m->prefix = *prefix;
        return true;
    }
    return io_fail(why, m->folder, "it has no %s.weight, which %s begins with", names->embed, m->config.type);
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
    const mr_names *names = c->family->names;
    snprintf(f->base, sizeof f->base, "%s", m->prefix);
    if (!matrix(f, names->embed, c->vocab, c->hidden, &m->embed) ||
        !vector(f, names->norm, ".weight", c->hidden, &m->norm) ||
        (names->norm_bias && !vector(f, names->norm, ".bias", c->hidden, &m->norm_bias)))
        return false;
    if (c->family->flags & (MR_GPT2 | MR_PLACES) && !matrix(f, names->places, c->positions, c->hidden, &m->positions))
        return false;
    return find_head(f);
}

static bool find_layers(finder *f)
{
    mr_model *m = f->m;
    const mr_config *c = &m->config;
    m->layer = (mr_layer *)app_memory((size_t)c->layers, sizeof *m->layer);
    for (int64_t i = 0; i < c->layers; i++) {
        snprintf(f->base, sizeof f->base, "%s%s.%lld.", m->prefix, c->family->names->layers, (long long)i);
        if (!find_layer(f, &m->layer[i], i)) return false;
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

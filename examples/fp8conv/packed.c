/* packed.c - weights of four bits with their scales, and formats that are refused by their names.
 * SPDX-License-Identifier: MIT
 *
 * | format                    | codes                       | scales                                              |
 * |---------------------------|-----------------------------|-----------------------------------------------------|
 * | MXFP4, gpt-oss            | x_blocks U8 [.., G, 16]     | x_scales U8 [.., G]                                 |
 * | MXFP4, compressed-tensors | x.weight_packed U8 [N, K/2] | x.weight_scale U8 [N, K/32]                         |
 * | MXFP4, Quark              | x.weight U8 [N, K/2]        | x.weight_scale U8 [N, K/32]                         |
 * | NVFP4, ModelOpt           | x.weight U8 [N, K/2]        | x.weight_scale F8_E4M3 [N, K/16] * x.weight_scale_2 |
 * | NVFP4, compressed-tensors | x.weight_packed U8 [N, K/2] | x.weight_scale F8_E4M3 / x.weight_global_scale      |
 *
 * The code with the smaller index is in the low half of a byte in all of them.
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

#include "io/mxfp4.h"
#include "io/pattern.h"

enum { NAME = 4096, NVFP4_BLOCK = 16 };

/* ---- formats that are not read ---- */

static const struct {
    const char *method, *format;
} methods[] = { { "gptq", "GPTQ" },       { "awq", "AWQ" },           { "bitsandbytes", "bitsandbytes" },
                { "hqq", "HQQ" },         { "aqlm", "AQLM" },         { "quip", "QuIP#" },
                { "exl2", "EXL2" },       { "exl3", "EXL3" },         { "vptq", "VPTQ" },
                { "spqr", "SpQR" },       { "eetq", "EETQ" },         { "auto-round", "AutoRound" },
                { "quanto", "Quanto" },   { "torchao", "torchao" },   { "bitnet", "BitNet" },
                { "higgs", "HIGGS" },     { "fp_quant", "FP-Quant" }, { "gguf", "GGUF" } };

/* A tensor of such a name is in no other format. */
static const struct {
    const char *glob, *format;
} signs[] = { { "*.g_idx", "GPTQ" },
              { "*.SCB", "bitsandbytes" },
              { "*.absmax", "bitsandbytes" },
              { "*.quant_state.*", "bitsandbytes" },
              { "*.W_q", "HQQ" },
              { "*.codebooks", "AQLM" },
              { "*.Qidxs", "QuIP#" },
              { "*.q_weight", "EXL2" },
              { "*.trellis", "EXL3" },
              { "*.centroids.weight", "VPTQ" },
              { "*.dense_weights", "SpQR" },
              { "*.pre_quant_scale", "AWQ of ModelOpt" },
              { "*.qzeros", "AWQ" },
              { "*.qweight", "integers packed as AWQ and GPTQ have them" },
              { "*.weight_shape", "packed integers of compressed-tensors" },
              { "*.bitmask", "sparse matrices of compressed-tensors" } };

static const char *format_of_method(const fc_catalogue *c)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(c->rules.method, methods[i].method) == 0) return methods[i].format;
    return NULL;
}

static bool refuse(const fc_catalogue *c, const st_tensor *t, const char *format, char *why)
{
    return io_fail(why, c->options->in, "its weights are %s (%.200s is there), and fp8conv reads FP8, MXFP4, NVFP4, "
                                        "BF16, F16 and F32", format, t->name);
}

static bool is_integer(const st_tensor *t)
{
    static const char *const type[] = { "U8", "I8", "I16", "U16", "I32", "U32" };
    for (size_t i = 0; i < sizeof type / sizeof type[0]; i++)
        if (strcmp(t->type, type[i]) == 0) return true;
    return false;
}

/* Integers where a layer's weights should be. */
static bool is_packed_somehow(const st_tensor *t)
{
    return is_integer(t) && t->rank >= 2 && !strstr(t->name, "scale") &&
           (ckpt_ends(t->name, ".weight") || strstr(t->name, "weight_packed") || strstr(t->name, "proj") ||
            strstr(t->name, "experts"));
}

/* With the signs in their order, the surest first. */
bool fc_refuse_foreign(const fc_catalogue *c, char *why)
{
    const char *method = format_of_method(c);
    for (size_t s = 0; s < sizeof signs / sizeof signs[0]; s++)
        for (int i = 0; i < c->named; i++)
            if (pattern_glob(signs[s].glob, c->item[i].tensor.name))
                return refuse(c, &c->item[i].tensor, method ? method : signs[s].format, why);
    for (int i = 0; i < c->named; i++) {
        const st_tensor *t = &c->item[i].tensor;
        if (c->item[i].role != FC_COPIED) continue;
        if (strstr(t->type, "FNUZ")) return refuse(c, t, "FP8 of AMD, FNUZ", why);
        if (!is_packed_somehow(t)) continue;
        char format[96];
        snprintf(format, sizeof format, "%s of a format that is not known%s%.40s", t->type,
                 c->rules.method[0] ? ", quant_method " : "", c->rules.method);
        return refuse(c, t, method ? method : format, why);
    }
    return true;
}

static bool is_gguf(const char *path)
{
    char head[4], why[APP_WHY];
    if (!io_reading(path, why)) return false; /* whoever reads it in earnest says why */
    FILE *f = app_open(path);
    const bool is = f && fread(head, 1, 4, f) == 4 && memcmp(head, "GGUF", 4) == 0;
    if (f) fclose(f);
    return is;
}

/* A GGUF file, or a directory that has such and nothing else. */
bool fc_refuse_file(const char *path, char *why)
{
    bool gguf = false, weights = false;
    DIR *folder = ckpt_folder(path) ? opendir(path) : NULL;
    for (const struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        gguf = gguf || ckpt_ends(e->d_name, ".gguf");
        weights = weights || ckpt_ends(e->d_name, ".safetensors");
    }
    if (folder) closedir(folder);
    else gguf = ckpt_folder(path) ? false : is_gguf(path);
    if (!gguf || weights) return true;
    return io_fail(why, path, "it is GGUF, and fp8conv reads .safetensors");
}

/* ---- shapes ---- */

st_tensor fc_matrix(const st_tensor *t, int64_t rows, int64_t columns)
{
    st_tensor m = *t;
    uint64_t bytes;
    const char *wrong;
    m.shape[m.rank - 2] = rows;
    m.shape[m.rank - 1] = columns;
    snprintf(m.type, sizeof m.type, "U8");
    st_measure(&m, &bytes, &wrong);
    return m;
}

void fc_set_type(st_tensor *t, const char *type)
{
    uint64_t bytes;
    const char *wrong;
    snprintf(t->type, sizeof t->type, "%s", type);
    st_measure(t, &bytes, &wrong);
}

/* [.., N, K/2] and [.., N, K/block]. */
static bool packed_fits(const st_tensor *t, const st_tensor *scale, int block)
{
    const int r = t->rank;
    if (r < 2 || scale->rank != r) return false;
    for (int i = 0; i < r - 1; i++)
        if (t->shape[i] != scale->shape[i]) return false;
    return t->shape[r - 1] % (block / 2) == 0 && t->shape[r - 1] / (block / 2) == scale->shape[r - 1];
}

/* ---- what becomes of them ---- */

static const char *const kinds[FC_KINDS] = { "numbers", "FP8", "MXFP4", "NVFP4" };
static const char *const flags[FC_KINDS] = { NULL, "--fp8", "--mxfp4", "--nvfp4" };

const char *fc_kind_text(fc_kind kind) { return kinds[kind]; }

static bool take_name(fc_catalogue *c, fc_item *w, const char *name, const char *end, char *why)
{
    char text[NAME];
    if (snprintf(text, sizeof text, "%s%s", name, end) >= NAME)
        return io_fail(why, w->tensor.name, "its name is too long");
    const int other = fc_find(c, text);
    if (other >= 0 && &c->item[other] != w)
        return io_fail(why, w->tensor.name, "it would be called %.200s, and that is another tensor", text);
    w->result.name = strcmp(text, w->tensor.name) == 0 ? w->tensor.name : strdup(text);
    return w->result.name || io_fail(why, c->options->in, "there is not enough memory for its tensors");
}

/* Which way around it is written. Experts in one tensor: transformers has [expert, inputs, outputs] of everything but
 * MXFP4; Trainium3's MX has inputs first. */
static void turn(fc_item *w)
{
    const bool blocks = ckpt_ends(w->tensor.name, "_blocks") && w->view.rank >= 3;
    const bool inputs_first = w->kind == FC_IS_FP8 && w->view.rank >= 3 && !ckpt_ends(w->tensor.name, ".weight");
    const int r = w->view.rank;
    w->transposed = w->form == FC_AS_MX ? !inputs_first : blocks;
    if (w->transposed) w->view = fc_matrix(&w->view, w->view.shape[r - 1], w->view.shape[r - 2]);
}

static fc_grid grid_of_form(const fc_catalogue *c, const fc_item *w)
{
    const int64_t block[2] = { w->kind == FC_IS_MXFP4 ? MXFP4_BLOCK : NVFP4_BLOCK, 1 };
    const int64_t turned[2] = { 1, block[0] };
    const fc_grain grain = c->options->grain;
    if (w->form != FC_AS_FP8) return fc_grid_of_grain(&w->view, FC_PER_TENSOR, block);
    if (grain == FC_GRAIN_KEPT) return fc_grid_of_grain(&w->view, FC_PER_BLOCK, w->transposed ? block : turned);
    if (grain == FC_PER_CHANNEL && w->transposed) {
        const int64_t column[2] = { w->view.shape[w->view.rank - 2], 1 };
        return fc_grid_of_grain(&w->view, FC_PER_BLOCK, column);
    }
    return fc_grid_of_grain(&w->view, grain, c->options->block);
}

static bool add_mx_scale(fc_catalogue *c, int weight, const char *name, char *why)
{
    const st_tensor *view = &c->item[weight].view;
    const int r = view->rank;
    char text[NAME];
    fc_item s = { .shard = c->item[weight].shard, .index = -1, .role = FC_NEW_SCALE, .weight = weight };
    if (snprintf(text, sizeof text, "%s_mx_scales", name) >= NAME || fc_find(c, text) >= 0)
        return io_fail(why, name, "its scales would be called %.200s, and that is another tensor", text);
    s.tensor = fc_matrix(view, view->shape[r - 2] / MXFP4_BLOCK, view->shape[r - 1]);
    s.tensor.name = strdup(text);
    s.result = s.tensor;
    const int added = s.tensor.name ? fc_add(c, &s) : -1;
    if (added < 0) {
        free(s.tensor.name);
        return io_fail(why, c->options->in, "there is not enough memory for its tensors");
    }
    c->item[weight].scale = added;
    return true;
}

static bool assign_mx(fc_catalogue *c, int i, const char *name, char *why)
{
    fc_item *w = &c->item[i];
    const int r = w->view.rank;
    const int64_t inputs = r >= 2 ? w->view.shape[r - 2] : 0, outputs = r >= 2 ? w->view.shape[r - 1] : 0;
    if (r < 2 || inputs % MXFP4_BLOCK)
        return io_fail(why, w->tensor.name, "it cannot be MX: its %lld inputs are no multiple of %d",
                       (long long)inputs, MXFP4_BLOCK);
    w->mx_fp4 = w->kind == FC_IS_MXFP4;
    if (!take_name(c, w, name, "_mx_words", why)) return false;
    char *kept = w->result.name;
    w->result = fc_matrix(&w->view, inputs / 4, outputs);
    w->result.name = kept;
    fc_set_type(&w->result, w->mx_fp4 ? "U16" : "U32");
    return add_mx_scale(c, i, name, why);
}

/* `view` is what is stored; the rest follows. */
bool fc_assign_form(fc_catalogue *c, int i, const char *name, char *why)
{
    fc_item *w = &c->item[i];
    w->form = c->options->form[w->kind];
    if (w->form == FC_UNASKED && w->kind == FC_IS_FP8) w->form = FC_AS_FP8;
    if (w->form == FC_UNASKED)
        return io_fail(why, w->tensor.name, "it is %s: say what it becomes, %s fp8, %s bf16 or %s mx", kinds[w->kind],
                       flags[w->kind], flags[w->kind], flags[w->kind]);
    w->role = FC_NUMBERS;
    turn(w);
    w->in = w->out = grid_of_form(c, w);
    if (w->form == FC_AS_MX) return assign_mx(c, i, name, why);
    if (!take_name(c, w, name, "", why)) return false;
    char *kept = w->result.name;
    w->result = w->view;
    w->result.name = kept;
    fc_set_type(&w->result, w->form == FC_AS_FP8 ? "F8_E4M3" : "BF16");
    return w->form != FC_AS_FP8 || fc_add_scale(c, i, why);
}

/* ---- finding them ---- */

static int named(const fc_catalogue *c, const char *base, const char *end)
{
    char text[NAME];
    return snprintf(text, sizeof text, "%s%s", base, end) < NAME ? fc_find(c, text) : -1;
}

static bool take_partner(fc_catalogue *c, int weight, int partner, char *why)
{
    fc_item *s = &c->item[partner];
    if (s->role != FC_COPIED)
        return io_fail(why, c->item[weight].tensor.name, "its scale %.200s has another use", s->tensor.name);
    s->role = FC_DROPPED;
    s->weight = weight;
    return true;
}

static bool assign_mxfp4(fc_catalogue *c, int i, int scale, const char *name, char *why)
{
    fc_item *w = &c->item[i];
    mxfp4 m;
    const st_tensor *s = scale >= 0 ? &c->item[scale].tensor : NULL;
    if (!mxfp4_open(&w->tensor, s, &m, why) || !take_partner(c, i, scale, why)) return false;
    w->kind = FC_IS_MXFP4;
    w->old_scale = scale;
    w->view = *s;
    if (s->rank < 2) return io_fail(why, w->tensor.name, "it has no rows");
    w->view = fc_matrix(s, m.rows, m.columns);
    return fc_assign_form(c, i, name, why);
}

/* Scales of activations that were meant for FP4 mean nothing to FP8's. */
static void drop_inputs(fc_catalogue *c, const char *base)
{
    static const char *const end[] = { ".input_scale", ".input_global_scale" };
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) {
        const int s = named(c, base, end[i]);
        if (s >= 0 && c->item[s].role == FC_COPIED) c->item[s].role = FC_DROPPED;
    }
}

static bool assign_nvfp4(fc_catalogue *c, int i, int scale, const char *base, const char *name, bool divides,
                         char *why)
{
    fc_item *w = &c->item[i];
    const st_tensor *t = &w->tensor, *s = &c->item[scale].tensor;
    const char *second_name = divides ? ".weight_global_scale" : ".weight_scale_2";
    const int second = named(c, base, second_name);
    if (second < 0) return io_fail(why, t->name, "it is NVFP4, and its second scale %s is missing", second_name + 1);
    const st_tensor *g = &c->item[second].tensor;
    if (!packed_fits(t, s, NVFP4_BLOCK))
        return io_fail(why, t->name, "its shape and that of its scale %.150s do not fit: in NVFP4 a scale is for 16 "
                                     "codes, 8 bytes", s->name);
    w->view = fc_matrix(t, t->shape[t->rank - 2], 2 * t->shape[t->rank - 1]);
    const int64_t rows = t->shape[t->rank - 2], columns = w->view.shape[t->rank - 1];
    const int64_t matrices = rows && columns ? w->view.elements / rows / columns : 0;
    if (strcmp(g->type, "F32") != 0 || (g->elements != 1 && g->elements != matrices))
        return io_fail(why, t->name, "its second scale %.150s is not one F32, or one for each matrix", g->name);
    w->kind = FC_IS_NVFP4;
    w->divides = divides;
    w->second_scale = second;
    w->old_scale = scale;
    if (!take_partner(c, i, scale, why) || !take_partner(c, i, second, why)) return false;
    drop_inputs(c, base);
    return fc_assign_form(c, i, name, why);
}

/* x.weight_packed or x.weight, of bytes. *is: it was one of these. */
static bool assign_bytes(fc_catalogue *c, int i, bool *is, char *why)
{
    const st_tensor *t = &c->item[i].tensor;
    const bool packed = ckpt_ends(t->name, ".weight_packed");
    char base[NAME], name[NAME];
    *is = false;
    if (strcmp(t->type, "U8") != 0 || t->rank < 2 || (!packed && !ckpt_ends(t->name, ".weight"))) return true;
    fc_module_of(t->name, base, sizeof base);
    const int scale = named(c, base, ".weight_scale");
    if (scale < 0 && !packed) return true; /* of another format */
    if (scale < 0) return io_fail(why, t->name, "its weight_scale is missing");
    snprintf(name, sizeof name, "%.*s.weight", NAME - 8, base);
    *is = true;
    const st_tensor *s = &c->item[scale].tensor;
    if (s->format == TRN_F8_E4M3FN || s->format == TRN_F8_E4M3)
        return assign_nvfp4(c, i, scale, base, name, packed, why);
    if (mxfp4_bytes(s, true)) return assign_mxfp4(c, i, scale, name, why);
    return io_fail(why, t->name, "its scale %.150s is %s; NVFP4 has F8_E4M3 and MXFP4 U8", s->name, s->type);
}

/* x_blocks with x_scales. */
static bool assign_blocks(fc_catalogue *c, int i, bool *is, char *why)
{
    char scales[NAME], base[NAME];
    const st_tensor *t = &c->item[i].tensor;
    *is = mxfp4_scales_name(t->name, scales, base);
    if (!*is) return true;
    const int scale = fc_find(c, scales);
    if (scale < 0 && strcmp(t->type, "U8") != 0) return *is = false, true;
    return assign_mxfp4(c, i, scale, base, why);
}

bool fc_assign_packed(fc_catalogue *c, int *weights, char *why)
{
    for (int i = 0; i < c->named; i++) {
        bool is = false;
        if (c->item[i].role != FC_COPIED) continue;
        if (!assign_blocks(c, i, &is, why)) return false;
        if (!is && !assign_bytes(c, i, &is, why)) return false;
        *weights += is;
    }
    return true;
}

/* ---- scales that are no one's: what they were for is not there, or is of another type ---- */

bool fc_refuse_leftovers(const fc_catalogue *c, char *why)
{
    static const char *const end[] = { ".weight_scale_inv", ".weight_scale" };
    char base[NAME];
    for (int i = 0; i < c->named; i++) {
        const st_tensor *t = &c->item[i].tensor;
        if (c->item[i].role != FC_COPIED || c->item[i].side == c->options->to) continue;
        if (ckpt_ends(t->name, "_scales") && strcmp(t->type, "U8") == 0 && t->rank >= 2)
            return io_fail(why, t->name, "its blocks are missing");
        for (size_t e = 0; e < sizeof end / sizeof end[0]; e++) {
            if (!ckpt_ends(t->name, end[e])) continue;
            snprintf(base, sizeof base, "%.*s.weight", (int)(strlen(t->name) - strlen(end[e])), t->name);
            const int w = fc_find(c, base);
            if (w < 0) return io_fail(why, t->name, "its weight %.200s is missing", base);
            if (c->item[w].tensor.format != TRN_F8_E5M2)
                return io_fail(why, t->name, "its weight %.200s is %s, which has no scale", base,
                               c->item[w].tensor.type);
        }
    }
    return true;
}

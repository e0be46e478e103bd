/* packed.c - what becomes of weights of four and eight bits: names, shapes, new scales.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = QUANT_NAME };

/* ---- files that are not read ---- */

/* A directory that has GGUF and nothing else; a file of it has a road of its own. */
bool fc_refuse_file(const char *path, char *why)
{
    if (!quant_is_gguf(path)) return true;
    return io_fail(why, path, "it is GGUF: name the .gguf itself, and --gguf bf16 makes a .safetensors of it");
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

/* ---- what becomes of them ---- */

static const char *const kinds[FC_KINDS] = { "numbers", "FP8", "INT8", "INT4", "NF4", "MXFP4", "NVFP4" };
static const char *const flags[FC_KINDS] = { NULL, "--fp8", "--int8", "--int4", "--nf4", "--mxfp4", "--nvfp4" };
static const fc_kind kind_of[QUANT_KINDS] = {
    [QUANT_FP8] = FC_IS_FP8, [QUANT_INT8] = FC_IS_INT8,   [QUANT_INT4] = FC_IS_INT4,
    [QUANT_NF4] = FC_IS_NF4, [QUANT_MXFP4] = FC_IS_MXFP4, [QUANT_NVFP4] = FC_IS_NVFP4
};

const char *fc_kind_text(fc_kind kind) { return kinds[kind]; }
const char *fc_kind_flag(fc_kind kind) { return flags[kind]; }

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
static bool turn(fc_item *w, char *why)
{
    const bool blocks = ckpt_ends(w->tensor.name, "_blocks") && w->view.rank >= 3;
    const bool eight = w->kind == FC_IS_FP8 || w->kind == FC_IS_INT8;
    const int r = w->view.rank;
    if (w->form == FC_AS_MX && eight && !w->quant->outputs)
        return io_fail(why, w->tensor.name,
                       "nothing says which of its axes counts outputs, and MX needs that: "
                       "hidden_size and moe_intermediate_size of config.json would");
    w->transposed = w->form == FC_AS_MX ? !(eight && w->quant->outputs == -1) : blocks;
    if (w->transposed) w->view = fc_matrix(&w->view, w->view.shape[r - 1], w->view.shape[r - 2]);
    return true;
}

static fc_grid grid_of_form(const fc_catalogue *c, const fc_item *w)
{
    const int64_t block[2] = { w->kind == FC_IS_MXFP4 ? MXFP4_BLOCK : NVFP4_BLOCK, 1 };
    const int64_t turned[2] = { 1, block[0] };
    const fc_grain grain = c->options->grain;
    if (w->form != FC_AS_FP8) return fc_grid_of_grain(&w->view, FC_PER_TENSOR, block);
    const bool own = w->kind == FC_IS_INT8 || (w->kind == FC_IS_INT4 && fc_keeps_codes(w, c->options));
    const bool fresh = w->kind == FC_IS_NF4 || w->kind == FC_IS_INT4;
    if (grain == FC_GRAIN_KEPT && own) return w->quant->grid;
    if (grain == FC_GRAIN_KEPT && fresh) return fc_grid_of_grain(&w->view, FC_PER_TENSOR, block);
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
        return io_fail(why, w->tensor.name, "it cannot be MX: its %lld inputs are no multiple of %d", (long long)inputs,
                       MXFP4_BLOCK);
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
    if (!turn(w, why)) return false;
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

/* Scales of activations that were meant for other codes mean nothing to these. */
void fc_drop_inputs(fc_catalogue *c, int weight)
{
    static const char *const pattern[] = { "{base}.input_scale",    "{base}.input_global_scale",
                                           "{base}.act_scale",      "{base}.scale_input",
                                           "{base}.qscale_act",     "{base}.activation_scale",
                                           "{base}.input_scale_ub", "{base}.activation_scaling_factor",
                                           "{name}_input_scale" };
    for (size_t i = 0; i < sizeof pattern / sizeof pattern[0]; i++) {
        const int s = fc_item_at(c, quant_find_by(&c->map, pattern[i], c->item[weight].tensor.name));
        if (s >= 0 && c->item[s].role == FC_COPIED) c->item[s].role = FC_DROPPED;
    }
}

/* What its dense matrix is called. */
static void name_of_form(const fc_item *w, char name[NAME])
{
    const char *end, *text = w->tensor.name;
    const size_t n = quant_module(text, &end);
    const bool blocks = ckpt_ends(end, "blocks");
    const bool packed = strcmp(end, ".weight_packed") == 0 || strcmp(end, ".qweight") == 0;
    snprintf(name, NAME, "%.*s%s", (int)(blocks || packed ? n : strlen(text)), text, packed ? ".weight" : "");
}

static bool assign_packed(fc_catalogue *c, int i, char *why)
{
    char name[NAME];
    fc_item *w = &c->item[i];
    const quant *q = w->quant;
    if (q->wrong) return snprintf(why, IO_WHY, "%s", q->wrong), false;
    w->kind = kind_of[q->kind];
    w->old_scale = fc_item_at(c, q->part[QUANT_SCALE]);
    for (int p = QUANT_SCALE; p < QUANT_PARTS; p++) {
        const int part = fc_item_at(c, q->part[p]);
        if (part < 0) continue;
        c->item[part].role = FC_DROPPED;
        c->item[part].weight = i;
    }
    w->view = q->view;
    fc_drop_inputs(c, i);
    name_of_form(w, name);
    return fc_assign_form(c, i, name, why);
}

bool fc_assign_packed(fc_catalogue *c, int *weights, char *why)
{
    for (int i = 0; i < c->named; i++) {
        if (!c->item[i].quant || c->item[i].quant->kind == QUANT_FP8) continue;
        if (!assign_packed(c, i, why)) return false;
        ++*weights;
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

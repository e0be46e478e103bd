/* names.c - which tensor is whose scale, and which are quantised: checkpoints say it by names alone.
 * SPDX-License-Identifier: MIT
 *
 * In every convention that was found a weight is code times scale, also where the scale is called an inverse: vLLM and
 * compressed-tensors (weight_scale), DeepSeek (weight_scale_inv, blocks of 128x128), NxD (scale), ModelOpt, AutoFP8,
 * ComfyUI (scale_weight). What is quantised at run time, activations and the KV cache, has only a scale in the file:
 * its codes will be in the other format too, so that scale takes part.
 */
#include "fp8conv.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* {name} is the weight's name, {base} the same without ".weight". */
static const char *const scale_names[] = { "{name}_scale_inv", "{name}_scale", "{base}.scale", "{base}.scale_weight",
                                           "{name}_2" };

static const char *const run_scales[] = { "*input_scale",      "*act_scale",  "*scale_input", "*k_scale",
                                          "*v_scale",          "*kv_scale",   "*q_scale",     "*output_scale",
                                          "*prob_output_scale" };

/* What published FP8 checkpoints leave alone, beside everything that is not a matrix. */
static const char *const not_quantised[] = { "*embed*",       "*wte.*",   "*wpe.*",        "*norm*",
                                             "*lm_head*",     "*router*", "output.weight", "*.gate.weight",
                                             "*_gate.weight", "*conv*",   "*patch*",       "*_scale*" };

enum { SCALE_NAMES = sizeof scale_names / sizeof scale_names[0], RUN_SCALES = sizeof run_scales / sizeof run_scales[0],
       NOT_QUANTISED = sizeof not_quantised / sizeof not_quantised[0], NAME = 4096 };

static bool matches(const char *const *glob, int globs, const char *name)
{
    for (int i = 0; i < globs; i++)
        if (fnmatch(glob[i], name, 0) == 0) return true;
    return false;
}

static size_t base_length(const char *name)
{
    static const char end[] = ".weight";
    const size_t length = strlen(name), tail = sizeof end - 1;
    return length > tail && strcmp(name + length - tail, end) == 0 ? length - tail : length;
}

static bool fill_pattern(const char *pattern, const char *name, char *text, size_t size)
{
    size_t n = 0;
    for (const char *at = pattern; *at;) {
        const bool whole = strncmp(at, "{name}", 6) == 0, base = strncmp(at, "{base}", 6) == 0;
        const size_t length = whole ? strlen(name) : base ? base_length(name) : 1;
        if (n + length >= size) return false;
        memcpy(text + n, whole || base ? name : at, length);
        n += length;
        at += whole || base ? 6 : 1;
    }
    text[n] = '\0';
    return true;
}

static bool is_scale_type(const st_tensor *t)
{
    return t->format == TRN_F32 || t->format == TRN_BF16 || t->format == TRN_F16 || t->format == TRN_F8_E8M0;
}

static bool is_codes(const st_tensor *t) { return t->format == TRN_F8_E4M3FN || t->format == TRN_F8_E4M3; }

static bool is_numbers(const st_tensor *t)
{
    return t->format == TRN_F32 || t->format == TRN_BF16 || t->format == TRN_F16;
}

static int find_scale(const fc_catalogue *c, const char *name)
{
    char text[NAME];
    const fc_globs *own = &c->options->scale_names;
    for (int i = 0; i < own->count + SCALE_NAMES; i++) {
        const char *pattern = i < own->count ? own->glob[i] : scale_names[i - own->count];
        const int found = fill_pattern(pattern, name, text, sizeof text) ? fc_find(c, text) : -1;
        if (found >= 0 && strcmp(text, name) != 0) return found;
    }
    return -1;
}

/* ---- weights ---- */

static bool is_quantised(const fc_catalogue *c, const st_tensor *t)
{
    const fc_options *o = c->options;
    const char *const *exclude = o->exclude.glob;
    if (!is_numbers(t) || matches(exclude, o->exclude.count, t->name)) return false;
    if (o->include.count) return matches(o->include.glob, o->include.count, t->name) && t->elements > 0;
    return t->rank == 2 && t->name[base_length(t->name)] && !matches(not_quantised, NOT_QUANTISED, t->name);
}

/* Codes that are converted, and those that only get another scale. */
static bool is_converted(const fc_catalogue *c, const st_tensor *t, fc_side side)
{
    return is_codes(t) && (side != c->options->to || c->options->mode == FC_REQUANT);
}

/* After its shape is known: format, bits and elements follow. */
static void set_type(st_tensor *t, const char *type)
{
    uint64_t bytes;
    const char *wrong;
    snprintf(t->type, sizeof t->type, "%s", type);
    st_measure(t, &bytes, &wrong);
}

/* A scale that no file had: beside its weight, named as the loaders of its kind expect. */
static bool add_scale(fc_catalogue *c, int weight, char *why)
{
    const st_tensor *w = &c->item[weight].tensor;
    const fc_grid *g = &c->item[weight].out;
    char name[NAME];
    const bool block = !g->whole && g->block_rows > 1;
    if (c->options->no_new_scales)
        return io_fail(why, w->name, "it has no scale, and --no-new-scales forbids a new one");
    if (!fill_pattern(block ? "{name}_scale_inv" : "{name}_scale", w->name, name, sizeof name))
        return io_fail(why, w->name, "its name is too long");
    if (fc_find(c, name) >= 0 && c->item[fc_find(c, name)].role != FC_DROPPED)
        return io_fail(why, w->name, "its new scale would be called %.200s, and that is another tensor", name);
    fc_item scale = { .shard = c->item[weight].shard, .index = -1, .role = FC_NEW_SCALE, .weight = weight };
    scale.tensor.name = strdup(name);
    int64_t *const shape = scale.tensor.shape;
    if (g->whole) {
        shape[scale.tensor.rank++] = 1;
    } else {
        for (int i = 0; i < w->rank - 2; i++) shape[scale.tensor.rank++] = w->shape[i];
        shape[scale.tensor.rank++] = g->scale_rows;
        shape[scale.tensor.rank++] = g->scale_columns;
    }
    set_type(&scale.tensor, "F32");
    scale.result = scale.tensor;
    const int added = scale.tensor.name ? fc_add(c, &scale) : -1;
    if (added < 0) {
        free(scale.tensor.name);
        return io_fail(why, c->options->in, "there is not enough memory for its tensors");
    }
    c->item[weight].scale = added;
    return true;
}

/* With a fresh scale of another shape the old one goes. */
static bool replace_scale(fc_catalogue *c, int weight, char *why)
{
    fc_item *w = &c->item[weight], *s = &c->item[w->scale];
    const fc_grid kept = w->in;
    const fc_options *o = c->options;
    if (o->grain != FC_GRAIN_KEPT) w->out = fc_grid_of_grain(&w->tensor, o->grain, o->block);
    if (memcmp(&kept, &w->out, sizeof kept) == 0) {
        set_type(&s->result, "F32");
        return true;
    }
    s->role = FC_DROPPED;
    return add_scale(c, weight, why);
}

static bool assign_codes(fc_catalogue *c, int i, char *why)
{
    const fc_options *o = c->options;
    const int scale = find_scale(c, c->item[i].tensor.name);
    fc_item *w = &c->item[i];
    w->role = FC_CODES;
    set_type(&w->result, "F8_E4M3");
    if (scale < 0) {
        w->in = fc_grid_of_grain(&w->tensor, FC_PER_TENSOR, o->block);
        const bool fresh = o->mode == FC_REQUANT && w->tensor.rank >= 2;
        w->out = fresh ? fc_grid_of_grain(&w->tensor, o->grain, o->block) : w->in;
        return o->mode == FC_RELABEL || add_scale(c, i, why);
    }
    fc_item *s = &c->item[scale];
    if (s->role != FC_COPIED) return io_fail(why, w->tensor.name, "its scale %.200s has another use", s->tensor.name);
    if (!is_scale_type(&s->tensor))
        return io_fail(why, w->tensor.name, "its scale %.200s is %s; expected F32, BF16, F16 or F8_E8M0",
                       s->tensor.name, s->tensor.type);
    if (o->mode == FC_RATIO && s->tensor.format == TRN_F8_E8M0)
        return io_fail(why, w->tensor.name, "its scale %.200s holds powers of two; --mode ratio needs others",
                       s->tensor.name);
    if (!fc_grid_of_scale(&w->tensor, &s->tensor, o->block, &w->in))
        return io_fail(why, w->tensor.name,
                       "the shape of its scale %.200s does not fit; --block says how long blocks are", s->tensor.name);
    w->out = w->in;
    w->old_scale = w->scale = scale;
    s->role = FC_WEIGHT_SCALE;
    s->weight = i;
    return o->mode != FC_REQUANT || replace_scale(c, i, why);
}

static bool assign_numbers(fc_catalogue *c, int i, char *why)
{
    fc_item *w = &c->item[i];
    const fc_options *o = c->options;
    const fc_grain grain = o->grain == FC_GRAIN_KEPT || w->tensor.rank < 2 ? FC_PER_TENSOR : o->grain;
    w->role = FC_NUMBERS;
    w->in = w->out = fc_grid_of_grain(&w->tensor, grain, o->block);
    set_type(&w->result, "F8_E4M3");
    return add_scale(c, i, why);
}

/* ---- scales of what is quantised at run time ---- */

/* The weight that an activation's scale stands beside, when there is one, must be FP8. */
static bool stands_beside_fp8(const fc_catalogue *c, const char *name)
{
    char text[NAME];
    const char *dot = strrchr(name, '.');
    const size_t length = dot ? (size_t)(dot - name) : 0;
    if (!dot || length + sizeof ".weight" > sizeof text) return true;
    memcpy(text, name, length);
    memcpy(text + length, ".weight", sizeof ".weight");
    const int weight = fc_find(c, text);
    return weight < 0 || fc_is_weight(&c->item[weight]) || !strstr(name + length, "input");
}

static void assign_run_scales(fc_catalogue *c)
{
    const fc_options *o = c->options;
    for (int i = 0; i < c->named && !o->keep_run_scales; i++) {
        fc_item *s = &c->item[i];
        const char *name = s->tensor.name;
        if (s->role != FC_COPIED || !is_scale_type(&s->tensor) || s->tensor.format == TRN_F8_E8M0) continue;
        if (s->side == o->to || !stands_beside_fp8(c, name)) continue;
        if (matches(run_scales, RUN_SCALES, name) || matches(o->run_scales.glob, o->run_scales.count, name))
            s->role = FC_RUN_SCALE;
    }
}

/* ---- all ---- */

static bool any_codes(const fc_catalogue *c)
{
    for (int i = 0; i < c->named; i++)
        if (is_codes(&c->item[i].tensor)) return true;
    return false;
}

bool fc_assign(fc_catalogue *c, char *why)
{
    const bool quantise = c->options->quantise || !any_codes(c);
    int weights = 0;
    for (int i = 0; i < c->named; i++) {
        if (!is_converted(c, &c->item[i].tensor, c->item[i].side)) continue;
        weights++;
        if (!assign_codes(c, i, why)) return false;
    }
    for (int i = 0; i < c->named && quantise; i++) {
        if (c->item[i].role != FC_COPIED || !is_quantised(c, &c->item[i].tensor)) continue;
        weights++;
        if (!assign_numbers(c, i, why)) return false;
    }
    if (!weights)
        return io_fail(why, c->options->in, any_codes(c) ? "its FP8 is %s's already; there is nothing to convert"
                                                         : "it has no FP8, and no matrix that would be quantised (%s)",
                       any_codes(c) ? fc_side_text(c->options->to) : "--include chooses");
    assign_run_scales(c);
    return true;
}

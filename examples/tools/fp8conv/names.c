/* names.c - what each tensor is to the conversion: codes that become others, scales, numbers that are quantised.
 * SPDX-License-Identifier: MIT
 *
 * Which tensor is whose scale, io/quant says. What is quantised at run time, activations and the KV cache, has only a
 * scale in the file: its codes will be in the other format too, so that scale takes part.
 */
#include "fp8conv.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = QUANT_NAME };

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

/* Of the two that are converted; E5M2 is the same on both sides. */
static bool is_codes(const st_tensor *t) { return t->format == TRN_F8_E4M3FN || t->format == TRN_F8_E4M3; }

static bool is_numbers(const st_tensor *t) { return quant_is_number(t); }

/* ---- weights ---- */

/* Experts in one tensor: [expert, inputs, outputs], without .weight. */
static bool is_experts(const st_tensor *t)
{
    return t->rank == 3 && strstr(t->name, "experts") && ckpt_ends(t->name, "_proj");
}

static bool is_embedding(const char *name)
{
    return ckpt_ends(name, "embed_tokens.weight") || ckpt_ends(name, "wte.weight") ||
           ckpt_ends(name, "embed_in.weight") || ckpt_ends(name, "word_embeddings.weight");
}

static bool is_head(const char *name)
{
    return ckpt_ends(name, "lm_head.weight") || ckpt_ends(name, "embed_out.weight");
}

/* One matrix for what goes in and what comes out: as config.json says, or for want of another. */
static bool is_tied(const fc_catalogue *c, const char *name)
{
    bool head = false;
    if (!is_embedding(name) && !is_head(name)) return false;
    if (c->rules.tied_known) return c->rules.tied;
    for (int i = 0; i < c->named; i++) head = head || is_head(c->item[i].tensor.name);
    return !head;
}

static bool usually_quantised(const st_tensor *t)
{
    if (!is_numbers(t) || fc_usually_left(t->name)) return false;
    return is_experts(t) || (t->rank == 2 && t->name[base_length(t->name)]);
}

/* What was asked for by name and may not be is refused; what is not there, too. */
static bool may_be_included(const fc_catalogue *c, const st_tensor *t, char *why)
{
    char because[256];
    if (is_tied(c, t->name))
        return io_fail(why, t->name, "--include names it, and it is tied: embedding and output are one matrix");
    if (c->options->no_rules || !fc_rules_leave(&c->rules, t, because)) return true;
    return io_fail(why, t->name, "--include names it, and it is to stay as it is (%s); --no-rules overrules that",
                   because);
}

/* *chosen: it is quantised. false with a sentence. */
static bool choose(fc_catalogue *c, const st_tensor *t, bool *chosen, char *why)
{
    const fc_options *o = c->options;
    char because[256];
    *chosen = false;
    errno = 0;
    if (!is_numbers(t) || t->elements == 0 || matches(o->exclude.glob, o->exclude.count, t->name)) return true;
    if (o->include.count) {
        if (!matches(o->include.glob, o->include.count, t->name)) return true;
        *chosen = true;
        return may_be_included(c, t, why);
    }
    if (!usually_quantised(t)) return true;
    *chosen = (o->no_rules || !fc_rules_leave(&c->rules, t, because)) && !is_tied(c, t->name);
    c->left_alone += !*chosen;
    return true;
}

/* A pattern that nothing answers to asks for what will not be done. */
static bool check_includes(const fc_catalogue *c, char *why)
{
    const fc_globs *list = &c->options->include;
    for (int g = 0; g < list->count; g++) {
        bool found = false;
        for (int i = 0; i < c->named && !found; i++)
            found = is_numbers(&c->item[i].tensor) && matches(&list->glob[g], 1, c->item[i].tensor.name);
        if (!found)
            return io_fail(why, c->options->in, "--include '%.100s' names no tensor of BF16, F16 or F32",
                           list->glob[g]);
    }
    return true;
}

/* Codes that are converted, and those that only get another scale. */
static bool is_converted(const fc_catalogue *c, const fc_item *item)
{
    const bool other = c->options->form[FC_IS_FP8] > FC_AS_FP8;
    if (!item->quant || item->quant->kind != QUANT_FP8) return false;
    if (!is_codes(&item->tensor)) return other;
    return other || item->side != c->options->to || c->options->mode == FC_REQUANT;
}

/* A scale that no file had: beside its weight, named as the loaders of its kind expect. */
bool fc_add_scale(fc_catalogue *c, int weight, char *why)
{
    const st_tensor *w = &c->item[weight].result;
    const fc_grid *g = &c->item[weight].out;
    char name[NAME];
    const bool column = g->block_columns == 1 && g->block_rows >= g->rows;
    const bool kept = fc_keeps_codes(&c->item[weight], c->options);
    const bool block = kept || (!g->whole && g->block_rows > 1 && !column);
    if (c->options->no_new_scales)
        return io_fail(why, w->name, "it has no scale, and --no-new-scales forbids a new one");
    if (!quant_fill(block ? "{name}_scale_inv" : "{name}_scale", w->name, name, sizeof name))
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
    fc_set_type(&scale.tensor, "F32");
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
        fc_set_type(&s->result, "F32");
        return true;
    }
    s->role = FC_DROPPED;
    return fc_add_scale(c, weight, why);
}

/* The scale that was found, as a part of the conversion. */
static bool take_scale(fc_catalogue *c, int i, char *why)
{
    fc_item *w = &c->item[i];
    const int scale = fc_item_at(c, w->quant->part[QUANT_SCALE]);
    fc_item *s = &c->item[scale];
    if (w->quant->powers) s->tensor.format = s->result.format = TRN_F8_E8M0;
    if (c->options->mode == FC_RATIO && s->tensor.format == TRN_F8_E8M0)
        return io_fail(why, w->tensor.name, "its scale %.200s holds powers of two; --mode ratio needs others",
                       s->tensor.name);
    w->in = w->out = w->quant->grid;
    w->old_scale = w->scale = scale;
    s->role = FC_WEIGHT_SCALE;
    s->weight = i;
    return true;
}

/* FP8 that becomes BF16 or MX: its scale goes, and those of the activations beside it. */
static bool leave_fp8(fc_catalogue *c, int i, char *why)
{
    fc_item *w = &c->item[i];
    if (w->old_scale >= 0) c->item[w->old_scale].role = FC_DROPPED;
    w->scale = -1;
    fc_drop_inputs(c, i);
    return fc_assign_form(c, i, c->item[i].tensor.name, why);
}

static bool assign_codes(fc_catalogue *c, int i, char *why)
{
    const fc_options *o = c->options;
    fc_item *w = &c->item[i];
    const bool stays = o->form[FC_IS_FP8] <= FC_AS_FP8;
    if (w->quant->wrong) return snprintf(why, IO_WHY, "%s", w->quant->wrong), false;
    w->role = FC_CODES;
    w->kind = FC_IS_FP8;
    w->form = FC_AS_FP8;
    fc_set_type(&w->result, "F8_E4M3");
    if (w->quant->alone) {
        w->in = fc_grid_of_grain(&w->tensor, FC_PER_TENSOR, o->block);
        const bool fresh = o->mode == FC_REQUANT && w->tensor.rank >= 2;
        w->out = fresh ? fc_grid_of_grain(&w->tensor, o->grain, o->block) : w->in;
    } else if (!take_scale(c, i, why)) {
        return false;
    }
    const bool alone = w->quant->alone;
    if (!stays) return leave_fp8(c, i, why);
    if (alone) return o->mode == FC_RELABEL || fc_add_scale(c, i, why);
    return o->mode != FC_REQUANT || replace_scale(c, i, why);
}

/* A scale for each output: of experts in one tensor the axis that config.json tells of, else the last but one. */
static bool grid_of_numbers(const fc_catalogue *c, const st_tensor *t, fc_grid *grid, char *why)
{
    const fc_options *o = c->options;
    const int64_t column[2] = { t->rank >= 2 ? t->shape[t->rank - 2] : 1, 1 };
    const bool channel = o->grain == FC_PER_CHANNEL && t->rank >= 2;
    const int outputs = channel ? quant_outputs(&c->rules.said, t) : -2;
    if (!outputs)
        return io_fail(why, t->name,
                       "nothing says which of its axes counts outputs, and --scales channel needs that: "
                       "hidden_size and moe_intermediate_size of config.json would");
    if (o->grain == FC_GRAIN_KEPT || t->rank < 2)
        *grid = fc_grid_of_grain(t, FC_PER_TENSOR, o->block);
    else
        *grid = fc_grid_of_grain(t, channel && outputs == -1 ? FC_PER_BLOCK : o->grain,
                                 channel && outputs == -1 ? column : o->block);
    return true;
}

static bool assign_numbers(fc_catalogue *c, int i, char *why)
{
    fc_item *w = &c->item[i];
    w->role = FC_NUMBERS;
    w->form = FC_AS_FP8;
    if (!grid_of_numbers(c, &w->tensor, &w->in, why)) return false;
    w->out = w->in;
    fc_set_type(&w->result, "F8_E4M3");
    return fc_add_scale(c, i, why);
}

/* ---- scales of what is quantised at run time ---- */

/* The weight that an activation's scale stands beside, when there is one, must be FP8: x.weight beside x.input_scale,
 * x itself beside x_input_scale. */
static bool stands_beside_fp8(const fc_catalogue *c, const char *name)
{
    char text[NAME];
    const char *dot = strrchr(name, '.'), *fused = strstr(dot ? dot : name, "_input_scale");
    const int length = dot ? (int)(dot - name) : 0;
    int weight = -1;
    if (fused && snprintf(text, sizeof text, "%.*s", (int)(fused - name), name) < NAME) weight = fc_find(c, text);
    if (weight < 0 && dot && snprintf(text, sizeof text, "%.*s.weight", length, name) < NAME) weight = fc_find(c, text);
    return weight < 0 || fc_is_weight(&c->item[weight]);
}

static void assign_run_scales(fc_catalogue *c)
{
    const fc_options *o = c->options;
    const bool integers = fc_cache_of_integers(&c->rules);
    for (int i = 0; i < c->named; i++) {
        fc_item *s = &c->item[i];
        const char *name = s->tensor.name;
        const quant_role role = quant_run_role(name);
        if (s->role != FC_COPIED || !is_numbers(&s->tensor)) continue;
        const bool asked = matches(o->run_scales.glob, o->run_scales.count, name);
        const bool cache = role == QUANT_CACHE_SCALE;
        const bool known = cache ? !integers : role == QUANT_RUN_SCALE && stands_beside_fp8(c, name);
        if (!asked && !known) continue;
        c->cache_scales += cache;
        if (o->keep_run_scales || s->side == o->to)
            c->run_kept++;
        else
            s->role = FC_RUN_SCALE, c->run_scales++;
    }
}

/* ---- all ---- */

static bool any_codes(const fc_catalogue *c)
{
    for (int i = 0; i < c->named; i++)
        if (is_codes(&c->item[i].tensor)) return true;
    return false;
}

static bool assign_chosen(fc_catalogue *c, int *weights, char *why)
{
    if (!check_includes(c, why)) return false;
    for (int i = 0; i < c->named; i++) {
        bool chosen = false;
        if (c->item[i].role != FC_COPIED) continue;
        if (!choose(c, &c->item[i].tensor, &chosen, why)) return false;
        if (io_memory_ran_out())
            return io_fail(why, c->item[i].tensor.name, "there is not enough memory to look for it in %s",
                           c->rules.file);
        *weights += chosen;
        if (chosen && !assign_numbers(c, i, why)) return false;
    }
    return true;
}

/* Rules that cannot be understood matter where something is quantised. */
static bool read_lists(fc_catalogue *c, bool quantise, char *why)
{
    char unneeded[IO_WHY] = "";
    if (c->options->no_rules) return true;
    return fc_rules_lists(c->options->in, &c->rules, quantise ? why : unneeded) || !quantise;
}

/* What each tensor is, as io/quant has it. */
static bool survey(fc_catalogue *c, char *why)
{
    const fc_options *o = c->options;
    const size_t n = (size_t)c->named + 1;
    c->seen = malloc(n * sizeof *c->seen);
    c->list = malloc(n * sizeof *c->list);
    if (!c->seen || !c->list) return io_fail(why, o->in, "there is not enough memory for its tensors");
    for (int i = 0; i < c->named; i++) {
        const fc_item *item = &c->item[c->by_name[i]];
        c->seen[i] = item->tensor;
        c->seen[i].data = item->said;
        c->list[i] = &c->seen[i];
        if (is_codes(&item->tensor)) c->seen[i].format = fc_format_of(item->side);
    }
    c->asked = o->asked;
    c->asked.take_for_1 = o->no_rules;
    c->map = (quant_map){ .tensor = c->list, .tensors = c->named, .said = &c->rules.said, .asked = &c->asked };
    if (!quant_survey(&c->map, why)) return false;
    for (int i = 0; i < c->named; i++)
        if (c->map.number[i] >= 0) c->item[c->by_name[i]].quant = &c->map.quant[c->map.number[i]];
    return true;
}

static bool refuse_foreign(const fc_catalogue *c, char *why)
{
    char format[QUANT_FOREIGN];
    int place;
    if (!quant_foreign(&c->map, &place, format)) return true;
    return io_fail(why, c->options->in,
                   "its weights are %s (%.200s is there), and fp8conv reads FP8, INT8, INT4, "
                   "NF4, MXFP4, NVFP4, BF16, F16 and F32",
                   format, c->map.tensor[place]->name);
}

/* Nothing asks for FP8 of what is none: not a checkpoint whose other FP8 stays, nor one that says that only its cache
 * is FP8, nor an option that speaks of what is not there. */
static bool quantises_unasked(const fc_catalogue *c)
{
    const fc_options *o = c->options;
    bool e5m2 = false;
    for (int i = 0; i < c->named; i++)
        e5m2 = e5m2 || (c->item[i].tensor.format == TRN_F8_E5M2 && c->item[i].tensor.rank >= 2);
    for (int k = FC_IS_FP8; k < FC_KINDS; k++)
        if (o->form[k] > FC_AS_FP8) return false;
    return !any_codes(c) && !e5m2 && !fc_only_cache(&c->rules);
}

/* Why there is nothing to convert. */
static bool refuse_nothing(const fc_catalogue *c, char *why)
{
    const char *in = c->options->in, *to = fc_side_text(c->options->to);
    bool e5m2 = false;
    for (int i = 0; i < c->named; i++) e5m2 = e5m2 || c->item[i].tensor.format == TRN_F8_E5M2;
    if (any_codes(c)) return io_fail(why, in, "its FP8 is %s's already; there is nothing to convert", to);
    if (c->run_kept && !c->options->keep_run_scales)
        return io_fail(why, in, "the scale of its FP8 cache is %s's already; there is nothing to convert", to);
    if (e5m2)
        return io_fail(why, in,
                       "its FP8 is E5M2, the same on both sides; there is nothing to convert (--fp8 bf16 "
                       "makes BF16 of it)");
    if (!quantises_unasked(c))
        return io_fail(why, in, "it has nothing of what the options would convert; there is nothing to convert");
    return io_fail(why, in, "it has no FP8, and no matrix that would be quantised (--include chooses)");
}

/* Of Trainium3's words nothing else is made. */
static bool refuse_words(const fc_catalogue *c, char *why)
{
    for (int i = 0; i < c->named; i++)
        if (ckpt_ends(c->item[i].tensor.name, "_mx_words"))
            return io_fail(why, c->item[i].tensor.name,
                           "it is in Trainium3's words already; there is nothing to convert");
    return true;
}

bool fc_assign(fc_catalogue *c, char *why)
{
    int weights = 0;
    if (!refuse_words(c, why) || !survey(c, why) || !fc_assign_packed(c, &weights, why) || !refuse_foreign(c, why))
        return false;
    const bool quantise =
        c->options->quantise || c->options->include.count > 0 || (weights == 0 && quantises_unasked(c));
    for (int i = 0; i < c->named; i++) {
        if (c->item[i].role != FC_COPIED || !is_converted(c, &c->item[i])) continue;
        weights++;
        if (!assign_codes(c, i, why)) return false;
    }
    if (!read_lists(c, quantise, why)) return false;
    if (quantise && !assign_chosen(c, &weights, why)) return false;
    if (!weights && !fc_refuse_leftovers(c, why)) return false;
    assign_run_scales(c);
    if (!weights && !c->run_scales) return refuse_nothing(c, why);
    return fc_refuse_leftovers(c, why);
}

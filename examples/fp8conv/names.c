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

/* What is quantised at run time: `cache`: queries, keys, values and what becomes of them, else what goes into a weight.
 * A name stands alone or after its matrix's, with a dot or as one word. input_scale_ub is none of them: it bounds the
 * numbers themselves, whatever their format. */
static const struct {
    const char *glob;
    bool cache;
} run_scales[] = {
    { "*[._]input_scale", false },
    { "*[._]act_scale", false },
    { "*[._]activation_scale", false },
    { "*.scale_input", false },
    { "*.qscale_act", false },
    { "*.activation_scaling_factor", false },
    { "*[._]k_scale", true },
    { "*[._]v_scale", true },
    { "*[._]q_scale", true },
    { "*[._]kv_scale", true },
    { "*.output_scale", true },
    { "*.prob_scale", true },
    { "*.prob_output_scale", true },
    { "*.kv_cache_scaling_factor", true },
    { "*.k_cache_scaling_factor", true },
    { "*.v_cache_scaling_factor", true },
    { "*[._]kv_cache_scale", true },
};

enum { SCALE_NAMES = sizeof scale_names / sizeof scale_names[0], RUN_SCALES = sizeof run_scales / sizeof run_scales[0],
       NAME = 4096 };

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
static bool is_converted(const fc_catalogue *c, const st_tensor *t, fc_side side)
{
    const bool other = c->options->form[FC_IS_FP8] > FC_AS_FP8;
    return is_codes(t) && (other || side != c->options->to || c->options->mode == FC_REQUANT);
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

/* MXFP8 of some writers: one byte for 32 codes, which is a power of two though its type does not say so. */
static void heed_powers(const st_tensor *w, st_tensor *s)
{
    const int r = w->rank;
    if (strcmp(s->type, "U8") == 0 && r >= 1 && s->rank == r && w->shape[r - 1] == 32 * s->shape[r - 1])
        s->format = TRN_F8_E8M0;
}

/* weight_block_size, where config.json has it, is how a scale with this name is cut, and no other way. */
static bool is_as_configured(const fc_catalogue *c, const st_tensor *w, const st_tensor *s)
{
    const int64_t *block = c->rules.block;
    const int r = w->rank;
    if (!block[0] || r < 2 || s->rank != r || !ckpt_ends(s->name, "_scale_inv")) return true;
    return s->shape[r - 2] == fc_parts(w->shape[r - 2], block[0]) &&
           s->shape[r - 1] == fc_parts(w->shape[r - 1], block[1]);
}

static bool take_scale(fc_catalogue *c, int i, int scale, char *why)
{
    const fc_options *o = c->options;
    fc_item *w = &c->item[i], *s = &c->item[scale];
    const int64_t *block = c->rules.block[0] && !o->block_given ? c->rules.block : o->block;
    if (s->role != FC_COPIED) return io_fail(why, w->tensor.name, "its scale %.200s has another use", s->tensor.name);
    heed_powers(&w->tensor, &s->tensor);
    s->result.format = s->tensor.format;
    if (!is_scale_type(&s->tensor))
        return io_fail(why, w->tensor.name, "its scale %.200s is %s; expected F32, BF16, F16 or F8_E8M0",
                       s->tensor.name, s->tensor.type);
    if (o->mode == FC_RATIO && s->tensor.format == TRN_F8_E8M0)
        return io_fail(why, w->tensor.name, "its scale %.200s holds powers of two; --mode ratio needs others",
                       s->tensor.name);
    if (!is_as_configured(c, &w->tensor, &s->tensor))
        return io_fail(why, w->tensor.name, "its scale %.150s does not have the shape that %s's weight_block_size "
                                            "[%lld, %lld] gives it", s->tensor.name, c->rules.file,
                       (long long)c->rules.block[0], (long long)c->rules.block[1]);
    if (!fc_grid_of_scale(&w->tensor, &s->tensor, block, &w->in))
        return io_fail(why, w->tensor.name,
                       "the shape of its scale %.200s does not fit; --block says how long blocks are", s->tensor.name);
    w->out = w->in;
    w->old_scale = w->scale = scale;
    s->role = FC_WEIGHT_SCALE;
    s->weight = i;
    return true;
}

/* FP8 that becomes BF16 or MX: its scale goes, and those of the activations beside it. */
static bool leave_fp8(fc_catalogue *c, int i, char *why)
{
    static const char *const end[] = { ".input_scale",    ".act_scale",  ".activation_scale",
                                       ".scale_input",    ".qscale_act", ".activation_scaling_factor",
                                       ".input_scale_ub", "_input_scale" };
    fc_item *w = &c->item[i];
    char text[NAME], base[NAME];
    fc_module_of(w->tensor.name, base, sizeof base);
    w->kind = FC_IS_FP8;
    w->source = w->in;
    if (w->old_scale >= 0) c->item[w->old_scale].role = FC_DROPPED;
    w->scale = -1;
    for (size_t k = 0; k < sizeof end / sizeof end[0]; k++) {
        snprintf(text, sizeof text, "%.*s%s", NAME - 32, base, end[k]);
        const int s = fc_find(c, text);
        if (s >= 0 && c->item[s].role == FC_COPIED) c->item[s].role = FC_DROPPED;
    }
    return fc_assign_form(c, i, c->item[i].tensor.name, why);
}

static bool assign_codes(fc_catalogue *c, int i, char *why)
{
    const fc_options *o = c->options;
    const int scale = find_scale(c, c->item[i].tensor.name);
    fc_item *w = &c->item[i];
    const bool stays = o->form[FC_IS_FP8] <= FC_AS_FP8;
    w->role = FC_CODES;
    w->kind = FC_IS_FP8;
    w->form = FC_AS_FP8;
    fc_set_type(&w->result, "F8_E4M3");
    if (scale < 0 && c->rules.quantisation && !o->no_rules && w->tensor.rank >= 2)
        return io_fail(why, w->tensor.name, "its scale is missing, and %s says that the model is quantised "
                                            "(--no-rules takes it for 1)", c->rules.file);
    if (scale < 0) {
        w->in = fc_grid_of_grain(&w->tensor, FC_PER_TENSOR, o->block);
        const bool fresh = o->mode == FC_REQUANT && w->tensor.rank >= 2;
        w->out = fresh ? fc_grid_of_grain(&w->tensor, o->grain, o->block) : w->in;
    } else if (!take_scale(c, i, scale, why)) {
        return false;
    }
    if (!stays) return leave_fp8(c, i, why);
    if (scale < 0) return o->mode == FC_RELABEL || fc_add_scale(c, i, why);
    return o->mode != FC_REQUANT || replace_scale(c, i, why);
}

/* A scale for each output: the last axis of experts in one tensor, else the one before. */
static fc_grid grid_of_numbers(const fc_catalogue *c, const st_tensor *t)
{
    const fc_options *o = c->options;
    const int64_t column[2] = { t->rank >= 2 ? t->shape[t->rank - 2] : 1, 1 };
    if (o->grain == FC_GRAIN_KEPT || t->rank < 2) return fc_grid_of_grain(t, FC_PER_TENSOR, o->block);
    if (o->grain == FC_PER_CHANNEL && is_experts(t)) return fc_grid_of_grain(t, FC_PER_BLOCK, column);
    return fc_grid_of_grain(t, o->grain, o->block);
}

static bool assign_numbers(fc_catalogue *c, int i, char *why)
{
    fc_item *w = &c->item[i];
    w->role = FC_NUMBERS;
    w->form = FC_AS_FP8;
    w->in = w->out = grid_of_numbers(c, &w->tensor);
    fc_set_type(&w->result, "F8_E4M3");
    return fc_add_scale(c, i, why);
}

/* ---- scales of what is quantised at run time ---- */

/* The row that a name is found in; -1: none. */
static int run_scale_row(const char *name)
{
    char dotted[NAME];
    snprintf(dotted, sizeof dotted, ".%.*s", NAME - 2, name);
    for (int i = 0; i < RUN_SCALES; i++)
        if (fnmatch(run_scales[i].glob, dotted, 0) == 0) return i;
    return -1;
}

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
        if (s->role != FC_COPIED || !is_scale_type(&s->tensor) || s->tensor.format == TRN_F8_E8M0) continue;
        const int row = run_scale_row(name);
        const bool asked = matches(o->run_scales.glob, o->run_scales.count, name),
                   cache = row >= 0 && run_scales[row].cache;
        const bool known = row >= 0 && (cache ? !integers : stands_beside_fp8(c, name));
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
    if (e5m2) return io_fail(why, in, "its FP8 is E5M2, the same on both sides; there is nothing to convert");
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
    if (!refuse_words(c, why) || !fc_assign_packed(c, &weights, why) || !fc_refuse_foreign(c, why)) return false;
    const bool quantise =
        c->options->quantise || c->options->include.count > 0 || (weights == 0 && quantises_unasked(c));
    for (int i = 0; i < c->named; i++) {
        if (c->item[i].role != FC_COPIED || !is_converted(c, &c->item[i].tensor, c->item[i].side)) continue;
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

/* names.h - which tensor is whose scale, and which are scales of activations: checkpoints say it by names alone.
 * SPDX-License-Identifier: MIT
 *
 * In every convention that was found a weight is code times scale, also where the scale is called an inverse. The
 * module of a matrix is its name without ".weight" or what stands for that; a scale's name is made from either by a
 * pattern.
 *
 * What is quantised at run time, activations and the KV cache, has only a scale in the file. Its names end in a word of
 * the second table, which stands alone or after its matrix's. A bound of magnitudes (input_scale_ub) is no scale: it
 * goes with its matrix, and has the same value whatever the codes' format is.
 *
 * CONTENTS
 *     quant_module                 a tensor's module, and how its name ends: "x._weight_qdata" -> "x"
 *     quant_ending                 the ends that there are, one after the other
 *     quant_fill                   a pattern with {name} and {base}, filled in
 *     quant_scale_pattern          the patterns of weights' scales, one after the other
 *     quant_run_role               what of run time a name is; QUANT_PLAIN: nothing
 *     quant_is_mark                "scaled_fp8": a mark, no weight
 *     quant_sounds_like_scale      has it a word that scales are called by?
 *     quant_near                   could this be the scale of that, going by its name?
 *
 * KNOWN FROM: checkpoints of vLLM, compressed-tensors (weight_scale), DeepSeek (weight_scale_inv, scale), NxD (scale),
 *     ModelOpt, AutoFP8, FBGEMM, Mistral (qscale_weight, qscale_act), torchao, quanto, TensorRT-LLM
 *     (weights_scaling_factor), ComfyUI (scale_weight, scale_input).
 */
#ifndef IO_QUANT_NAMES_H
#define IO_QUANT_NAMES_H

#include <ctype.h>

#include "config.h"

typedef enum quant_role {
    QUANT_PLAIN,       /* nothing of all that */
    QUANT_WEIGHT,      /* codes of a matrix */
    QUANT_PART,        /* a scale, a zero point, ... of one */
    QUANT_RUN_SCALE,   /* of activations that go into a matrix */
    QUANT_CACHE_SCALE, /* of queries, keys, values and what becomes of them */
    QUANT_RUN_BOUND,   /* of magnitudes at run time */
    QUANT_MARK         /* says something, and is no number */
} quant_role;

/* ---- a matrix's name ---- */

/* How the name of a matrix of codes ends, behind its module; NULL: there are no more. */
IO_FN const char *quant_ending(int i)
{
    static const char *const row[] = { "._weight_qdata", ".weight_qdata", ".weight._data", ".weight.qdata",
                                       ".weight_packed", ".qweight",      "._data",        ".blocks",
                                       "_blocks",        ".weight" };
    return i >= 0 && i < (int)(sizeof row / sizeof row[0]) ? row[i] : NULL;
}

/* Bytes of the name that are the module. *end: the rest, which says that this is a matrix; "" where nothing does. */
IO_FN size_t quant_module(const char *name, const char **end)
{
    const size_t n = strlen(name);
    const char *tail;
    for (int i = 0; (tail = quant_ending(i)) != NULL; i++) {
        if (!ckpt_ends(name, tail) || n == strlen(tail)) continue;
        *end = name + n - strlen(tail);
        return n - strlen(tail);
    }
    *end = name + n;
    return n;
}

/* text = the pattern with {name} and {base} filled in; false when that is longer than `size`. */
IO_FN bool quant_fill(const char *pattern, const char *name, char *text, size_t size)
{
    const char *end;
    const size_t module = quant_module(name, &end);
    size_t n = 0;
    for (const char *at = pattern; *at;) {
        const bool whole = strncmp(at, "{name}", 6) == 0, base = strncmp(at, "{base}", 6) == 0;
        const size_t length = whole ? strlen(name) : base ? module : 1;
        if (n + length >= size) return false;
        memcpy(text + n, whole || base ? name : at, length);
        n += length;
        at += whole || base ? 6 : 1;
    }
    text[n] = '\0';
    return true;
}

/* NULL: there are no more. */
IO_FN const char *quant_scale_pattern(int i)
{
    static const char *const row[] = {
        "{name}_scale_inv",        /* DeepSeek, Qwen, transformers */
        "{name}_scale",            /* vLLM, compressed-tensors, ModelOpt, AutoFP8 */
        "{base}.weight_scale_inv", /* the same, where the codes are not called .weight */
        "{base}.weight_scale",
        "{name}_weight_scale", /* experts in one tensor */
        "{name}_weight_scale_inv",
        "{base}._weight_scale", /* torchao */
        "{base}.weight._scale", /* quanto */
        "{base}._scale",
        "{name}._scale",
        "{base}.qscale_weight", /* Mistral */
        "{base}.scale",         /* NxD, DeepSeek-V4 */
        "{base}.scale_weight",  /* ComfyUI */
        "{base}.weight.scale",
        "{base}.weights_scaling_factor", /* TensorRT-LLM */
        "{base}.weight_scaling_factor",
        "{name}_scaling_factor",
        "{base}.scales",
        "{name}_scales",
        "{base}.wscale",
        "{base}.w_scale",
        "{base}.weight_scales",
        "{base}.scale_inv",
        "{name}_2",
    };
    return i >= 0 && i < (int)(sizeof row / sizeof row[0]) ? row[i] : NULL;
}

/* ---- at run time ---- */

/* Is this word the name's end, with nothing or a dot or an underscore before it? One that begins with a dot is a whole
 * part of the name. */
IO_FN bool quant_ends_in(const char *name, const char *word)
{
    const bool part = *word == '.';
    const size_t n = strlen(name), m = strlen(word + part);
    if (n < m || strcmp(name + n - m, word + part) != 0) return false;
    return n == m || name[n - m - 1] == '.' || (!part && name[n - m - 1] == '_');
}

IO_FN quant_role quant_run_role(const char *name)
{
    static const struct {
        const char *word;
        quant_role role;
    } row[] = {
        { "input_scale", QUANT_RUN_SCALE },
        { ".scale_input", QUANT_RUN_SCALE },
        { "input_scale_inv", QUANT_RUN_SCALE },
        { "act_scale", QUANT_RUN_SCALE },
        { "activation_scale", QUANT_RUN_SCALE },
        { "activation_scale_inv", QUANT_RUN_SCALE },
        { ".scale_act", QUANT_RUN_SCALE },
        { ".scale_activation", QUANT_RUN_SCALE },
        { ".qscale_act", QUANT_RUN_SCALE },
        { ".qscale_input", QUANT_RUN_SCALE },
        { ".activation_scaling_factor", QUANT_RUN_SCALE },
        { ".activations_scaling_factor", QUANT_RUN_SCALE },
        { ".input_scaling_factor", QUANT_RUN_SCALE },
        { ".kv_cache_scaling_factor", QUANT_CACHE_SCALE },
        { ".k_cache_scaling_factor", QUANT_CACHE_SCALE },
        { ".v_cache_scaling_factor", QUANT_CACHE_SCALE },
        { "kv_cache_scale", QUANT_CACHE_SCALE },
        { "kv_scale", QUANT_CACHE_SCALE },
        { "k_cache_scale", QUANT_CACHE_SCALE },
        { "v_cache_scale", QUANT_CACHE_SCALE },
        { "k_scale", QUANT_CACHE_SCALE },
        { "v_scale", QUANT_CACHE_SCALE },
        { "q_scale", QUANT_CACHE_SCALE },
        { ".qscale_k", QUANT_CACHE_SCALE },
        { ".qscale_v", QUANT_CACHE_SCALE },
        { ".qscale_q", QUANT_CACHE_SCALE },
        { ".prob_scale", QUANT_CACHE_SCALE },
        { ".prob_output_scale", QUANT_CACHE_SCALE },
        { ".output_scale", QUANT_CACHE_SCALE },
        { ".scale_output", QUANT_CACHE_SCALE },
        { ".qscale_output", QUANT_CACHE_SCALE },
        { "input_scale_ub", QUANT_RUN_BOUND },
        { "activation_scale_ub", QUANT_RUN_BOUND },
        { ".scale_ub", QUANT_RUN_BOUND },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (quant_ends_in(name, row[i].word)) return row[i].role;
    return QUANT_PLAIN;
}

/* ComfyUI's: that there is such a tensor says what the others are. */
IO_FN bool quant_is_mark(const st_tensor *t) { return t->elements <= 2 && quant_ends_in(t->name, "scaled_fp8"); }

/* ---- names that are not known ---- */

IO_FN bool quant_has_word(const char *text, const char *const *word, int words)
{
    char small[QUANT_NAME];
    size_t n = 0;
    for (; text[n] && n < sizeof small - 1; n++) small[n] = (char)tolower((unsigned char)text[n]);
    small[n] = '\0';
    for (int i = 0; i < words; i++)
        if (strstr(small, word[i])) return true;
    return false;
}

IO_FN bool quant_sounds_like_scale(const char *text)
{
    static const char *const word[] = { "scale",   "scl",        "scaling",    "qscale",   "dequant",
                                        "descale", "absmax",     "amax",       "zero",     "zp",
                                        "factor",  "step",       "delta",      "exponent", "shared_exp",
                                        "quant",   "norm_const", "multiplier", "_inv",     ".inv" };
    return quant_has_word(text, word, (int)(sizeof word / sizeof word[0]));
}

/* What stands in a module beside its matrix and is none of its scales. */
IO_FN bool quant_is_other(const char *leaf)
{
    static const char *const word[] = {
        "bias",   "weight_shape", "weight_format", "input", "activation",      "act_",        "_act",    ".act",
        "output", "g_idx",        "sinks",         "lora",  "pre_quant_scale", "num_batches", "running_"
    };
    return quant_has_word(leaf, word, (int)(sizeof word / sizeof word[0]));
}

IO_FN bool quant_at_edge(char c) { return c == '\0' || c == '.' || c == '_' || c == '-' || c == '/'; }

/* Where a word stands in a name between dots or underscores; NULL: nowhere. */
IO_FN const char *quant_word_in(const char *name, const char *word, size_t length)
{
    for (const char *at = name; *at; at++) {
        if (at > name && !quant_at_edge(at[-1])) continue;
        if (strncmp(at, word, length) == 0 && quant_at_edge(at[length])) return at;
    }
    return NULL;
}

IO_FN bool quant_speaks_of_weight(const char *leaf)
{
    static const char *const word[] = { "weight" };
    return quant_has_word(leaf, word, 1);
}

/* What stands behind the module's name: "_scl", ".weight.s", ".s". */
IO_FN bool quant_near_leaf(const char *leaf, bool bare)
{
    const bool weight = strncmp(leaf, ".weight", 7) == 0;
    if (quant_sounds_like_scale(leaf)) return quant_speaks_of_weight(leaf) || !quant_is_other(leaf);
    if (quant_is_other(leaf)) return false;
    if (!weight && !bare && *leaf != '.') return false;
    const char *rest = leaf + (weight ? 7 : 0); /* a separator first */
    return rest[0] && rest[1] && !strchr(rest + 1, '.');
}

/* Could `other` be the scale of the matrix `name`? It stands in its module, whatever it is called; or its name holds
 * the module's, or begins as the module does and holds the last word of it, and sounds like a scale; or it is a scale
 * that stands beside a matrix without a module of its own. */
IO_FN bool quant_near(const char *name, const char *other)
{
    const char *end;
    const size_t module = quant_module(name, &end);
    const bool bare = *end == '\0';
    size_t parent = module;
    if (strncmp(other, name, module) == 0 && (other[module] == '.' || other[module] == '_'))
        return quant_near_leaf(other + module, bare);
    if (!quant_sounds_like_scale(other)) return false;
    if (quant_word_in(other, name, module)) return true;
    while (parent > 0 && name[parent - 1] != '.') parent--;
    if (parent == 0 || strncmp(other, name, parent) != 0) return false;
    const char *leaf = other + parent;
    if (quant_word_in(leaf, name + parent, module - parent)) return true;
    return bare && !strchr(leaf, '.') && !strstr(leaf, "proj");
}

#endif /* IO_QUANT_NAMES_H */

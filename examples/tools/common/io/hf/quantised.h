/* hf/quantised.h - quantization_config: how many bits an element of each kind of matrix has, with its part of the
 * scales, and with those matrices that the file excludes.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the quantizers of transformers 4.57 (fp8, mxfp4, awq, gptq, bitsandbytes, fbgemm_fp8),
 * compressed-tensors 0.12 and modelopt's hf_quant_config. Embeddings are never quantised, nor is the head; norms and
 * routers are counted as dense blocks are, which is below 0.1 % of a model.
 */
#ifndef HF_QUANTISED_H
#define HF_QUANTISED_H

#include <math.h>
#include <regex.h>

#include "fields.h"

typedef enum hf_kind { HF_ATTENTION = 0, HF_MLP, HF_EXPERTS, HF_HEAD, HF_KINDS } hf_kind;

typedef struct hf_stored {
    trn_format format; /* unset: as the rest of the model */
    double bits;       /* of an element, all counted; 0 = those of the format */
} hf_stored;

typedef struct hf_quantised {
    bool any;
    hf_stored kind[HF_KINDS], kv;
} hf_quantised;

enum { HF_PLAIN_BITS = 16, HF_EXCLUDED = 4096 };

/* What one scheme makes of a matrix. */
typedef struct hf_scheme {
    trn_format format;
    double bits;
    bool experts_only;
} hf_scheme;

/* ---- schemes ---- */

/* A whole number of the object; -1 stands for "all" where `low` is that. */
HF_FN double hf_inner_number(hf_reader *r, const cJSON *object, const char *field, double low, double high,
                             double missing)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    if (!item || cJSON_IsNull(item)) return missing;
    const double x = item->valuedouble;
    if (cJSON_IsNumber(item) && x >= low && x <= high && !(x < floor(x)) && !(x > floor(x))) return x;
    hf_fail(r, "its 'quantization_config' has a '%s' that is no whole number from %.0f to %.0f", field, low, high);
    return missing;
}

HF_FN bool hf_inner_flag(hf_reader *r, const cJSON *object, const char *field)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    if (item && !cJSON_IsNull(item) && !cJSON_IsBool(item))
        hf_fail(r, "its 'quantization_config' has a '%s' that is neither true nor false", field);
    return cJSON_IsTrue(item);
}

HF_FN const char *hf_inner_text(const cJSON *object, const char *field)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsString(item) ? item->valuestring : "";
}

enum { HF_MOST_IN_GROUP = 1 << 24 };

/* Elements that share a scale: a block [a, b], or a group; 0 = a row or more, whose scale counts for nothing. */
HF_FN double hf_block_of(hf_reader *r, const cJSON *object, const char *field)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, field), *item;
    double all = 1;
    if (!cJSON_IsArray(list)) return fmax(0, hf_inner_number(r, object, field, -1, HF_MOST_IN_GROUP, 0));
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= HF_MOST_IN_GROUP))
            return hf_fail(r, "its 'quantization_config' has a '%s' that is no list of sizes", field), 0;
        all *= item->valuedouble;
    }
    return list->child ? all : 0;
}

HF_FN double hf_scaled(double bits, double scale, double block) { return bits + (block > 0 ? scale / block : 0); }

/* Codes narrower than a byte are held as integers to be converted; FP4 is a format of its own. */
HF_FN bool hf_scheme_of_bits(hf_reader *r, const cJSON *weights, const char *layout, hf_scheme *s)
{
    const double bits = hf_inner_number(r, weights, "num_bits", 1, 8, 8);
    const char *type = hf_inner_text(weights, "type");
    double block = hf_block_of(r, weights, "group_size"), scale = 16;
    if (strcmp(hf_inner_text(weights, "strategy"), "block") == 0) block = hf_block_of(r, weights, "block_structure");
    if (r->why[0]) return false;
    const bool real = strcmp(type, "float") == 0;
    if (!(bits > 0 && bits <= 8) || (real && bits < 8 && !(bits > 3 && bits < 5)))
        return hf_fail(r, "its 'quantization_config' has weights of %g bits, type '%.20s', which are not planned", bits,
                       type);
    if (real && bits < 8) scale = 8; /* one byte: E8M0 for 32 of mxfp4, E4M3 for 16 of nvfp4 */
    if (strstr(layout, "mxfp8")) scale = 8;
    s->format = !real ? TRN_I8 : bits < 8 ? TRN_F4_E2M1 : TRN_F8_E4M3FN;
    s->bits = hf_scaled(bits, scale, block);
    return !r->why[0];
}

/* config_groups of compressed-tensors; several groups must agree. */
HF_FN bool hf_scheme_of_groups(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(q, "config_groups");
    const char *layout = hf_inner_text(q, "format");
    int count = 0;
    for (const cJSON *g = groups ? groups->child : NULL; g; g = g->next) {
        hf_scheme one = { TRN_FORMAT_UNSET, 0, false };
        const cJSON *weights = cJSON_GetObjectItemCaseSensitive(g, "weights");
        if (!cJSON_IsObject(weights)) continue;
        if (!hf_scheme_of_bits(r, weights, layout, &one)) return false;
        if (count++ && (one.format != s->format || fabs(one.bits - s->bits) > 0))
            return hf_fail(r, "its 'quantization_config' has groups of different weights, and one kind is planned");
        *s = one;
    }
    return count || hf_fail(r, "its 'quantization_config' has no 'config_groups' with 'weights'");
}

/* Scales in bits for a group of so many elements; 0 = a matrix or a column, whose scale counts for nothing. */
HF_FN bool hf_scheme_of_modelopt(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    static const struct {
        const char *kind;
        trn_format format;
        double bits, scale, group;
    } row[] = {
        { "NVFP4", TRN_F4_E2M1, 4, 8, 16 },       { "NVFP4_AWQ", TRN_F4_E2M1, 4, 8, 16 },
        { "W4A16_NVFP4", TRN_F4_E2M1, 4, 8, 16 }, { "W4A8_MXFP4_FP8", TRN_F4_E2M1, 4, 8, 32 },
        { "FP8", TRN_F8_E4M3FN, 8, 0, 0 },        { "FP8_PER_CHANNEL_PER_TOKEN", TRN_F8_E4M3FN, 8, 0, 0 },
        { "MXFP8", TRN_F8_E4M3FN, 8, 8, 32 },     { "W4A16_AWQ", TRN_I8, 4, 16, 128 },
        { "INT4_AWQ", TRN_I8, 4, 16, 128 },
    };
    const char *kind = hf_inner_text(q, "quant_algo");
    char known[200] = "";
    size_t used = 0;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].kind, kind) == 0) {
            const double group =
                row[i].scale > 0 ? hf_inner_number(r, q, "group_size", 1, HF_MOST_IN_GROUP, row[i].group) : 0;
            *s = (hf_scheme){ row[i].format, hf_scaled(row[i].bits, row[i].scale, group), false };
            return !r->why[0];
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", row[i].kind);
    }
    return hf_fail(r, "its 'quantization_config' is modelopt's '%.40s'; planned are %s", kind, known);
}

/* AMD's quark: one weight of all layers. */
HF_FN bool hf_scheme_of_quark(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    static const struct {
        const char *dtype;
        trn_format format;
        double bits;
    } row[] = { { "fp8_e4m3", TRN_F8_E4M3FN, 8 },
                { "fp4", TRN_F4_E2M1, 4 },
                { "int8", TRN_I8, 8 },
                { "int4", TRN_I8, 4 },
                { "uint4", TRN_I8, 4 } };
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(q, "global_quant_config");
    const cJSON *weight = cJSON_GetObjectItemCaseSensitive(all, "weight");
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(q, "layer_quant_config");
    const char *dtype = hf_inner_text(weight, "dtype");
    const bool shared = strcmp(hf_inner_text(weight, "scale_format"), "e8m0") == 0;
    const double block =
        strcmp(hf_inner_text(weight, "qscheme"), "per_group") == 0 ? hf_block_of(r, weight, "group_size") : 0;
    if (layers && layers->child)
        return hf_fail(r, "its 'quantization_config' has a 'layer_quant_config', and one kind of weights is planned");
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].dtype, dtype) == 0) {
            *s = (hf_scheme){ row[i].format, hf_scaled(row[i].bits, shared ? 8 : 16, block), false };
            return !r->why[0];
        }
    return hf_fail(r,
                   "its 'quantization_config' has quark's weights of '%.20s'; planned are fp8_e4m3, fp4, int8, int4 "
                   "and uint4",
                   dtype);
}

/* Scales in F16 and zeros as wide as the codes, for each group of a column; group_size -1: the column. */
HF_FN bool hf_scheme_of_integers(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const double bits = hf_inner_number(r, q, "bits", 1, 16, hf_inner_number(r, q, "w_bit", 1, 16, 0));
    const double group =
        hf_block_of(r, q, cJSON_GetObjectItemCaseSensitive(q, "group_size") ? "group_size" : "q_group_size");
    const char *kind = hf_inner_text(q, "data_type");
    if (kind[0] && strcmp(kind, "int") != 0)
        return hf_fail(r, "its 'quantization_config' has the 'data_type' '%.20s'; planned is int", kind);
    if (!(bits >= 2 && bits <= 8))
        return hf_fail(r, "its 'quantization_config' has 'bits' %g; planned are 2 to 8", bits);
    *s = (hf_scheme){ TRN_I8, hf_scaled(bits, 16 + bits, group), false };
    return !r->why[0];
}

HF_FN bool hf_scheme_of_fp8(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    *s = (hf_scheme){ TRN_F8_E4M3FN, hf_scaled(8, 32, hf_block_of(r, q, "weight_block_size")), false };
    return !r->why[0];
}

/* One scale in F32 for 64 elements, or one byte and such a scale for 256 of them. */
HF_FN bool hf_scheme_of_bitsandbytes(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const bool four = hf_inner_flag(r, q, "load_in_4bit"), eight = hf_inner_flag(r, q, "load_in_8bit");
    const bool twice = hf_inner_flag(r, q, "bnb_4bit_use_double_quant");
    if (four == eight)
        return hf_fail(r, "its 'quantization_config' is bitsandbytes' with %s of 'load_in_4bit' and 'load_in_8bit'",
                       four ? "both" : "neither");
    *s = (hf_scheme){ TRN_I8, eight ? 8 : twice ? 4 + 8.0 / 64 + 32.0 / 16384 : 4.5, false };
    return !r->why[0];
}

HF_FN bool hf_scheme_of(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    static const struct {
        const char *method;
        bool (*read)(hf_reader *, const cJSON *, hf_scheme *);
        hf_scheme fixed;
    } row[] = {
        { "fp8", hf_scheme_of_fp8, { TRN_FORMAT_UNSET, 0, false } },
        { "fbgemm_fp8", NULL, { TRN_F8_E4M3FN, 8, false } },
        { "mxfp4", NULL, { TRN_F4_E2M1, 4 + 8.0 / 32, true } },
        { "compressed-tensors", hf_scheme_of_groups, { TRN_FORMAT_UNSET, 0, false } },
        { "modelopt", hf_scheme_of_modelopt, { TRN_FORMAT_UNSET, 0, false } },
        { "awq", hf_scheme_of_integers, { TRN_FORMAT_UNSET, 0, false } },
        { "gptq", hf_scheme_of_integers, { TRN_FORMAT_UNSET, 0, false } },
        { "auto-round", hf_scheme_of_integers, { TRN_FORMAT_UNSET, 0, false } },
        { "quark", hf_scheme_of_quark, { TRN_FORMAT_UNSET, 0, false } },
        { "bitsandbytes", hf_scheme_of_bitsandbytes, { TRN_FORMAT_UNSET, 0, false } },
    };
    const bool named = cJSON_GetObjectItemCaseSensitive(q, "quant_method") != NULL;
    const char *method = !named && hf_inner_text(q, "quant_algo")[0] ? "modelopt" : hf_inner_text(q, "quant_method");
    char known[200] = "";
    size_t used = 0;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].method, method) == 0) return row[i].read ? row[i].read(r, q, s) : (*s = row[i].fixed, true);
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", row[i].method);
    }
    return hf_fail(r, "its 'quantization_config' has the 'quant_method' '%.40s'; planned are %s", method, known);
}

/* ---- what is excluded ---- */

/* "re:" begins a regular expression as Python's re.match takes it, of which POSIX has what is used; '*' stands for
 * anything; else a name of a module, or the end of one, or the beginning of many. */
typedef struct hf_pattern {
    const char *text;
    bool compiled;
    regex_t expression;
} hf_pattern;

enum { HF_EXPRESSION = 1024 };

/* What an escape is in POSIX, inside of brackets or not; NULL: nothing. */
HF_FN const char *hf_posix_escape(char c, bool inside)
{
    static const struct {
        char c;
        const char *inside, *outside;
    } row[] = {
        { 'd', "0-9", "[0-9]" },
        { 'w', "A-Za-z0-9_", "[A-Za-z0-9_]" },
        { 's', "[:space:]", "[[:space:]]" },
        { 'D', NULL, "[^0-9]" },
        { 'W', NULL, "[^A-Za-z0-9_]" },
        { 'S', NULL, "[^[:space:]]" },
        { 'Z', NULL, "$" },
        { '.', ".", "\\." },
        { '*', "*", "\\*" },
        { '+', "+", "\\+" },
        { '(', "(", "\\(" },
        { ')', ")", "\\)" },
        { '[', NULL, "\\[" },
        { ']', NULL, "\\]" },
        { '/', "/", "/" },
        { '_', "_", "_" },
        { '-', NULL, "-" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].c == c) return inside ? row[i].inside : row[i].outside;
    return NULL;
}

/* The expression as POSIX has it, anchored where a name begins; false: it has what POSIX does not. */
HF_FN bool hf_posix(const char *text, char out[HF_EXPRESSION])
{
    size_t n = 2;
    bool inside = false;
    memcpy(out, "^(", 3);
    for (const char *at = text; *at; at++) {
        const char *piece = NULL;
        size_t size = 1;
        const bool repeats = !inside && at > text && strchr("*+?}", at[-1]) && (at < text + 2 || at[-2] != '\\');
        if (repeats && *at == '?') continue; /* fewer of them first: the same names match */
        if (repeats && *at == '+') return false;
        if (*at == '\\') {
            piece = hf_posix_escape(*++at, inside);
            if (!piece) return false;
            size = strlen(piece);
        } else if (!inside && *at == '(' && at[1] == '?') {
            if (at[2] != ':') return false;
            piece = "(";
            at += 2;
        } else
            inside = inside ? *at != ']' : *at == '[';
        if (n + size + 2 > HF_EXPRESSION) return false;
        memcpy(out + n, piece ? piece : at, size);
        n += size;
    }
    memcpy(out + n, ")", 2);
    return true;
}

HF_FN bool hf_glob(const char *pattern, const char *name)
{
    for (; *pattern && *pattern != '*'; pattern++, name++)
        if (*pattern != *name) return false;
    if (!*pattern) return !*name || *name == '.';
    for (;; name++) {
        if (hf_glob(pattern + 1, name)) return true;
        if (!*name) return false;
    }
}

/* The pattern from a dot, or from the beginning. */
HF_FN bool hf_pattern_fits(const hf_pattern *p, const char *name)
{
    if (p->compiled) return regexec(&p->expression, name, 0, NULL, 0) == 0;
    for (const char *at = name; at; at = strchr(at, '.')) {
        at += *at == '.';
        if (hf_glob(p->text, at)) return true;
    }
    return false;
}

typedef struct hf_excluded {
    hf_pattern pattern[HF_EXCLUDED];
    int count;
} hf_excluded;

/* One more: a name, or a regular expression without what says that it is one. */
HF_FN bool hf_exclude_one(hf_reader *r, hf_excluded *all, const char *text, bool expression)
{
    char posix[HF_EXPRESSION];
    if (all->count == HF_EXCLUDED)
        return hf_fail(r, "its 'quantization_config' excludes more than %d modules", (int)HF_EXCLUDED);
    hf_pattern *p = &all->pattern[all->count];
    p->text = text;
    if (expression && !hf_posix(text, posix))
        return hf_fail(r, "its 'quantization_config' excludes '%.80s', a regular expression that is not read here",
                       text);
    if (expression && regcomp(&p->expression, posix, REG_EXTENDED | REG_NOSUB))
        return hf_fail(r, "its 'quantization_config' excludes '%.80s', which is no regular expression", text);
    p->compiled = expression;
    all->count++;
    return true;
}

HF_FN bool hf_exclude(hf_reader *r, hf_excluded *all, const cJSON *list, const char *field)
{
    const cJSON *item;
    if (list && !cJSON_IsNull(list) && !cJSON_IsArray(list))
        return hf_fail(r, "its 'quantization_config' has a '%s' that is no list of names", field);
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item))
            return hf_fail(r, "its 'quantization_config' has a '%s' that is no list of names", field);
        const bool expression = strncmp(item->valuestring, "re:", 3) == 0;
        if (!hf_exclude_one(r, all, item->valuestring + (expression ? 3 : 0), expression)) return false;
    }
    return true;
}

/* Modules with settings of their own: those that say that a module is as it was ("-:" and an expression of gptq's, 16
 * bits of auto-round's) exclude it, and others are not planned. */
HF_FN bool hf_exclude_own(hf_reader *r, hf_excluded *all, const cJSON *q)
{
    static const char *const field[] = { "dynamic", "extra_config" };
    const cJSON *item;
    for (unsigned i = 0; i < sizeof field / sizeof field[0]; i++)
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(q, field[i])) {
            const char *name = item->string ? item->string : "";
            const bool less = i == 0 && strncmp(name, "-:", 2) == 0;
            const cJSON *bits = cJSON_GetObjectItemCaseSensitive(item, "bits");
            if (!less && (i == 0 || !cJSON_IsNumber(bits) || bits->valuedouble < HF_PLAIN_BITS))
                return hf_fail(r,
                               "its 'quantization_config' has settings of its own for '%.80s' ('%s'), and one kind of "
                               "weights is planned",
                               name, field[i]);
            if (!hf_exclude_one(r, all, name + (less ? 2 : 0), less)) return false;
        }
    return true;
}

/* A matrix of a layer, by the names that models give it, and its weight in its kind. */
typedef struct hf_matrix {
    hf_kind kind;
    double elements;
    const char *name[4]; /* of one in model.layers.N. */
    int layers;          /* where it is */
} hf_matrix;

enum { HF_FULL_LAYERS, HF_LINEAR_LAYERS, HF_DENSE_LAYERS, HF_SPARSE_LAYERS };

/* Where the layers of a language model stand, alone or beside a tower. */
enum { HF_PLACES = 3 };
static const char *const hf_place[HF_PLACES] = { "model.layers", "language_model.model.layers",
                                                 "model.language_model.layers" };

HF_FN bool hf_is_excluded(const hf_excluded *all, int64_t layer, const hf_matrix *matrix)
{
    char name[160];
    for (int k = 0; k < HF_PLACES; k++)
        for (unsigned n = 0; n < sizeof matrix->name / sizeof matrix->name[0] && matrix->name[n]; n++) {
            snprintf(name, sizeof name, "%s.%lld.%s", hf_place[k], (long long)layer, matrix->name[n]);
            for (int i = 0; i < all->count; i++)
                if (hf_pattern_fits(&all->pattern[i], name)) return true;
        }
    return false;
}

/* Is the layer's attention linear, as layer_types or full_attention_interval have it? */
HF_FN bool hf_layer_is_linear(const hf_reader *r, const trn_model *m, int64_t layer)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(r->root, "layer_types");
    const cJSON *type = cJSON_GetArrayItem(types, (int)layer);
    if (!m->linear_layers || m->linear_layers == m->layers) return m->linear_layers > 0;
    if (cJSON_IsString(type)) return strcmp(type->valuestring, "linear_attention") == 0;
    const cJSON *interval = cJSON_GetObjectItemCaseSensitive(r->root, "full_attention_interval");
    const int64_t every = cJSON_IsNumber(interval) ? (int64_t)interval->valuedouble : 4;
    return every < 1 || (layer + 1) % every != 0;
}

/* Layers without experts count as the first ones, as in the models that have the most of them. */
HF_FN bool hf_matrix_is_in(const hf_reader *r, const trn_model *m, const hf_matrix *matrix, int64_t layer)
{
    const bool dense = m->experts == 0 || layer < m->dense_layers;
    if (matrix->layers == HF_DENSE_LAYERS || matrix->layers == HF_SPARSE_LAYERS)
        return dense == (matrix->layers == HF_DENSE_LAYERS);
    return hf_layer_is_linear(r, m, layer) == (matrix->layers == HF_LINEAR_LAYERS);
}

enum { HF_MATRICES = 24 };

/* Those of a layer; returns how many there are. */
HF_FN int hf_matrices(const trn_model *m, hf_matrix out[HF_MATRICES])
{
    const double h = (double)m->hidden, heads = (double)m->heads, kv = m->kv_heads ? (double)m->kv_heads : heads;
    const double size = m->head_dim ? (double)m->head_dim : heads > 0 ? h / heads : 0;
    const double q = h * heads * (size + (double)m->rope_dim) * (m->gated_attention ? 2 : 1);
    const double rank = (double)m->kv_rank, value = (double)m->v_dim;
    const double keys = (double)(m->linear_key_heads * m->linear_key_dim);
    const double values = (double)(m->linear_heads * m->linear_value_dim);
    const double dense = h * (double)m->intermediate;
    const bool latent = m->kv_rank > 0;
    const int full = HF_FULL_LAYERS, linear = HF_LINEAR_LAYERS, plain = HF_DENSE_LAYERS, sparse = HF_SPARSE_LAYERS;
    const hf_matrix row[] = {
        { HF_ATTENTION, latent && m->q_rank ? 0 : q, { "self_attn.q_proj", "self_attn.qkv_proj" }, full },
        { HF_ATTENTION, latent ? 0 : h * kv * size, { "self_attn.k_proj", "self_attn.qkv_proj" }, full },
        { HF_ATTENTION, latent ? 0 : h * kv * size, { "self_attn.v_proj", "self_attn.qkv_proj" }, full },
        { HF_ATTENTION, latent ? h * (double)m->q_rank : 0, { "self_attn.q_a_proj" }, full },
        { HF_ATTENTION, latent ? (double)m->q_rank * q / h : 0, { "self_attn.q_b_proj" }, full },
        { HF_ATTENTION, latent ? h * (rank + (double)m->rope_dim) : 0, { "self_attn.kv_a_proj_with_mqa" }, full },
        { HF_ATTENTION, rank * heads * (size + value), { "self_attn.kv_b_proj" }, full },
        { HF_ATTENTION, h * heads * (latent ? value : size), { "self_attn.o_proj" }, full },
        { HF_ATTENTION, h * (2 * keys + values), { "linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz" }, linear },
        { HF_ATTENTION, h * values, { "linear_attn.in_proj_z", "linear_attn.in_proj_qkvz" }, linear },
        { HF_ATTENTION, h * values, { "linear_attn.out_proj" }, linear },
        { HF_MLP, m->plain_mlp ? 0 : dense, { "mlp.gate_proj", "mlp.gate_up_proj", "feed_forward.gate_proj" }, plain },
        { HF_MLP, dense, { "mlp.up_proj", "mlp.gate_up_proj", "feed_forward.up_proj" }, plain },
        { HF_MLP, dense, { "mlp.down_proj", "feed_forward.down_proj" }, plain },
        { HF_MLP,
          3 * h * (double)m->shared_intermediate,
          { "mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "feed_forward.shared_expert.gate_proj" },
          sparse },
        { HF_EXPERTS, /* all of a layer's alike */
          m->experts ? 1 : 0,
          { "mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1", "feed_forward.experts.0.gate_proj" },
          sparse },
    };
    memcpy(out, row, sizeof row);
    return (int)(sizeof row / sizeof row[0]);
}

/* The share of each kind's elements that is excluded. */
HF_FN void hf_shares(const hf_reader *r, const hf_excluded *all, const trn_model *m, double share[HF_KINDS])
{
    hf_matrix row[HF_MATRICES];
    const int rows = hf_matrices(m, row);
    double out[HF_KINDS] = { 0 }, of[HF_KINDS] = { 0 };
    for (int64_t l = 0; l < m->layers; l++)
        for (int i = 0; i < rows; i++) {
            if (row[i].elements <= 0 || !hf_matrix_is_in(r, m, &row[i], l)) continue;
            of[row[i].kind] += row[i].elements;
            if (hf_is_excluded(all, l, &row[i])) out[row[i].kind] += row[i].elements;
        }
    for (int k = 0; k < HF_KINDS; k++) share[k] = of[k] > 0 ? out[k] / of[k] : 0;
    share[HF_HEAD] = 1; /* embeddings never are, and the head is only where a file says so */
}

/* ---- formats of their own ---- */

/* What the list says of a module, or of the nearest one around it; NULL: nothing. */
HF_FN const cJSON *hf_module_of(const cJSON *list, char *name)
{
    for (;;) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(list, name);
        char *dot = strrchr(name, '.');
        if (item || !dot) return item;
        *dot = 0;
    }
}

HF_FN const cJSON *hf_module_of_matrix(const cJSON *list, int64_t layer, const hf_matrix *matrix)
{
    char name[160];
    const cJSON *item = NULL;
    for (int k = 0; k < HF_PLACES && !item; k++)
        for (unsigned n = 0; n < sizeof matrix->name / sizeof matrix->name[0] && matrix->name[n] && !item; n++) {
            snprintf(name, sizeof name, "%s.%lld.%s", hf_place[k], (long long)layer, matrix->name[n]);
            item = hf_module_of(list, name);
        }
    return item;
}

typedef struct hf_mixed {
    double bits, elements;
    trn_format format; /* of those that are quantised */
} hf_mixed;

HF_FN bool hf_mix(hf_reader *r, const cJSON *item, double elements, hf_mixed *of)
{
    hf_scheme s = { TRN_FORMAT_UNSET, HF_PLAIN_BITS, false };
    if (item && !hf_scheme_of_modelopt(r, item, &s)) return false;
    if (item && of->format && of->format != s.format)
        return hf_fail(r, "its 'quantization_config' has matrices of one kind in two formats, and one is planned");
    if (item) of->format = s.format;
    of->bits += elements * s.bits;
    of->elements += elements;
    return true;
}

/* modelopt's MIXED_PRECISION: modules by their names, and all others are as they were. */
HF_FN bool hf_read_mixed(hf_reader *r, const cJSON *q, const trn_model *m, hf_quantised *out)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(q, "quantized_layers");
    hf_matrix row[HF_MATRICES];
    const int rows = hf_matrices(m, row);
    hf_mixed of[HF_KINDS] = { { 0, 0, TRN_FORMAT_UNSET } };
    if (!cJSON_IsObject(list))
        return hf_fail(r, "its 'quantization_config' is of MIXED_PRECISION, and has no 'quantized_layers'");
    for (int64_t l = 0; l < m->layers; l++)
        for (int i = 0; i < rows; i++)
            if (row[i].elements > 0 && hf_matrix_is_in(r, m, &row[i], l) &&
                !hf_mix(r, hf_module_of_matrix(list, l, &row[i]), row[i].elements, &of[row[i].kind]))
                return false;
    const cJSON *last = cJSON_GetObjectItemCaseSensitive(list, "lm_head");
    if (!hf_mix(r, last ? last : cJSON_GetObjectItemCaseSensitive(list, "language_model.lm_head"), 1, &of[HF_HEAD]))
        return false;
    out->any = true;
    for (int k = 0; k < HF_KINDS; k++)
        out->kind[k] = (hf_stored){ of[k].format ? of[k].format : TRN_BF16,
                                    of[k].elements > 0 ? of[k].bits / of[k].elements : HF_PLAIN_BITS };
    return true;
}

/* ---- all of it ---- */

HF_FN bool hf_read_kv_scheme(hf_reader *r, const cJSON *q, hf_quantised *out)
{
    const cJSON *kv = cJSON_GetObjectItemCaseSensitive(q, "kv_cache_scheme");
    const char *word = cJSON_IsString(kv) ? kv->valuestring : hf_inner_text(q, "kv_cache_quant_algo");
    if (cJSON_IsObject(kv)) {
        hf_scheme s = { TRN_FORMAT_UNSET, 0, false };
        if (!hf_scheme_of_bits(r, kv, "", &s)) return false;
        out->kv = (hf_stored){ s.format, s.bits };
    } else if (strcmp(word, "FP8") == 0)
        out->kv = (hf_stored){ TRN_F8_E4M3FN, 8 };
    else if (word[0])
        return hf_fail(r, "its 'quantization_config' keeps keys and values as '%.40s'; planned is FP8", word);
    return true;
}

HF_FN void hf_spread_scheme(hf_reader *r, const hf_scheme *s, const double share[HF_KINDS], hf_quantised *out)
{
    out->any = true;
    for (int k = 0; k < HF_KINDS; k++) {
        const double part = s->experts_only && k != HF_EXPERTS ? 1 : share[k];
        if (part >= 1) {
            out->kind[k] = (hf_stored){ TRN_BF16, HF_PLAIN_BITS };
            continue;
        }
        out->kind[k] = (hf_stored){ s->format, part * HF_PLAIN_BITS + (1 - part) * s->bits };
        if (part > 0)
            hf_note(r, "quantization_config excludes %.1f %% of %s", 100 * part,
                    k == HF_ATTENTION ? "attention's matrices"
                    : k == HF_MLP     ? "dense and shared blocks"
                                      : "the experts");
    }
}

/* What q, a quantization_config, makes of a model. */
HF_FN bool hf_read_scheme(hf_reader *r, const cJSON *q, const trn_model *m, hf_quantised *out)
{
    static const char *const lists[] = { "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules",
                                         "llm_int8_skip_modules",  "exclude" };
    hf_scheme s = { TRN_FORMAT_UNSET, 0, false };
    double share[HF_KINDS] = { 0 };
    if (!cJSON_IsObject(q)) return hf_fail(r, "its 'quantization_config' is not an object");
    if (strcmp(hf_inner_text(q, "quant_algo"), "MIXED_PRECISION") == 0)
        return hf_read_mixed(r, q, m, out) && hf_read_kv_scheme(r, q, out);
    hf_excluded *all = (hf_excluded *)calloc(1, sizeof *all);
    if (!all) return hf_fail(r, "there is not enough memory to read it");
    bool ok = hf_scheme_of(r, q, &s) && hf_read_kv_scheme(r, q, out);
    for (unsigned i = 0; ok && i < sizeof lists / sizeof lists[0]; i++)
        ok = hf_exclude(r, all, cJSON_GetObjectItemCaseSensitive(q, lists[i]), lists[i]);
    ok = ok && hf_exclude_own(r, all, q);
    if (ok) hf_shares(r, all, m, share);
    if (ok) hf_spread_scheme(r, &s, share, out);
    for (int i = 0; i < all->count; i++)
        if (all->pattern[i].compiled) regfree(&all->pattern[i].expression);
    free(all);
    return ok;
}

HF_FN bool hf_read_quantised(hf_reader *r, const trn_model *m, hf_quantised *out)
{
    const cJSON *q = cJSON_GetObjectItemCaseSensitive(r->root, "quantization_config");
    hf_mark_seen(r, "quantization_config");
    memset(out, 0, sizeof *out);
    if (!q) q = cJSON_GetObjectItemCaseSensitive(r->file, "quantization_config");
    if ((!q || cJSON_IsNull(q)) && r->beside) {
        hf_note(r, "the weights' formats: hf_quant_config.json, which lies beside it");
        q = r->beside;
    }
    return !q || cJSON_IsNull(q) || hf_read_scheme(r, q, m, out);
}

#endif /* HF_QUANTISED_H */

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

HF_FN double hf_inner_number(const cJSON *object, const char *field, double missing)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsNumber(item) ? item->valuedouble : missing;
}

HF_FN const char *hf_inner_text(const cJSON *object, const char *field)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Elements that share a scale: a block [a, b], or a group; 0 = a row or more, whose scale counts for nothing. */
HF_FN double hf_block_of(const cJSON *object, const char *field)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, field);
    double all = 1;
    if (cJSON_IsNumber(list)) return list->valuedouble > 0 ? list->valuedouble : 0;
    if (!cJSON_IsArray(list) || !list->child) return 0;
    for (const cJSON *item = list->child; item; item = item->next) all *= cJSON_IsNumber(item) ? item->valuedouble : 1;
    return all > 0 ? all : 0;
}

HF_FN double hf_scaled(double bits, double scale, double block) { return bits + (block > 0 ? scale / block : 0); }

/* Codes narrower than a byte are held as integers to be converted; FP4 is a format of its own. */
HF_FN bool hf_scheme_of_bits(hf_reader *r, const cJSON *weights, const char *layout, hf_scheme *s)
{
    const double bits = hf_inner_number(weights, "num_bits", 8);
    const char *type = hf_inner_text(weights, "type");
    double block = hf_block_of(weights, "group_size"), scale = 16;
    if (strcmp(hf_inner_text(weights, "strategy"), "block") == 0) block = hf_block_of(weights, "block_structure");
    const bool real = strcmp(type, "float") == 0;
    if (!(bits > 0 && bits <= 8) || (real && bits < 8 && !(bits > 3 && bits < 5)))
        return hf_fail(r, "its 'quantization_config' has weights of %g bits, type '%.20s', which are not planned", bits,
                       type);
    if (real && bits < 8) scale = 8; /* one byte: E8M0 for 32 of mxfp4, E4M3 for 16 of nvfp4 */
    if (strstr(layout, "mxfp8")) scale = 8;
    s->format = !real ? TRN_I8 : bits < 8 ? TRN_F4_E2M1 : TRN_F8_E4M3FN;
    s->bits = hf_scaled(bits, scale, block);
    return true;
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

HF_FN bool hf_scheme_of_modelopt(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const char *kind = hf_inner_text(q, "quant_algo");
    const double group = hf_inner_number(q, "group_size", 16);
    if (strcmp(kind, "NVFP4") == 0) return *s = (hf_scheme){ TRN_F4_E2M1, hf_scaled(4, 8, group), false }, true;
    if (strcmp(kind, "FP8") == 0) return *s = (hf_scheme){ TRN_F8_E4M3FN, 8, false }, true;
    return hf_fail(r, "its 'quantization_config' is modelopt's '%.40s'; planned are NVFP4 and FP8", kind);
}

/* Scales in F16 and zeros as wide as the codes, for each group of a column; group_size -1: the column. */
HF_FN bool hf_scheme_of_integers(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const double bits = hf_inner_number(q, "bits", hf_inner_number(q, "w_bit", 0));
    const double group = hf_block_of(q, cJSON_HasObjectItem(q, "group_size") ? "group_size" : "q_group_size");
    if (!(bits >= 2 && bits <= 8))
        return hf_fail(r, "its 'quantization_config' has 'bits' %g; planned are 2 to 8", bits);
    *s = (hf_scheme){ TRN_I8, hf_scaled(bits, 16 + bits, group), false };
    return true;
}

HF_FN bool hf_scheme_of(hf_reader *r, const cJSON *q, hf_scheme *s)
{
    const char *method = hf_inner_text(q, "quant_method");
    const struct {
        const char *method;
        bool (*read)(hf_reader *, const cJSON *, hf_scheme *);
        hf_scheme fixed;
    } row[] = {
        { "fp8", NULL, { TRN_F8_E4M3FN, hf_scaled(8, 32, hf_block_of(q, "weight_block_size")), false } },
        { "fbgemm_fp8", NULL, { TRN_F8_E4M3FN, 8, false } },
        { "mxfp4", NULL, { TRN_F4_E2M1, hf_scaled(4, 8, 32), true } },
        { "compressed-tensors", hf_scheme_of_groups, { TRN_FORMAT_UNSET, 0, false } },
        { "modelopt", hf_scheme_of_modelopt, { TRN_FORMAT_UNSET, 0, false } },
        { "awq", hf_scheme_of_integers, { TRN_FORMAT_UNSET, 0, false } },
        { "gptq", hf_scheme_of_integers, { TRN_FORMAT_UNSET, 0, false } },
        { "bitsandbytes",
          NULL,
          { TRN_I8,
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(q, "load_in_4bit"))
                ? cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(q, "bnb_4bit_use_double_quant"))
                      ? 4 + 8.0 / 64 + 32.0 / 16384
                      : 4.5
                : 8,
            false } },
    };
    char known[200] = "";
    size_t used = 0;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].method, method) == 0) return row[i].read ? row[i].read(r, q, s) : (*s = row[i].fixed, true);
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", row[i].method);
    }
    return hf_fail(r, "its 'quantization_config' has the 'quant_method' '%.40s'; planned are %s", method, known);
}

/* ---- what is excluded ---- */

/* "re:" begins a regular expression of Python's, of which POSIX has what is used; '*' stands for anything; else a name
 * of a module, or the end of one, or the beginning of many. */
typedef struct hf_pattern {
    const char *text;
    bool compiled;
    regex_t expression;
} hf_pattern;

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

HF_FN bool hf_exclude(hf_reader *r, hf_excluded *all, const cJSON *list, const char *field)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item))
            return hf_fail(r, "its 'quantization_config' has a '%s' that is no list of names", field);
        if (all->count == HF_EXCLUDED)
            return hf_fail(r, "its 'quantization_config' excludes more than %d modules", (int)HF_EXCLUDED);
        hf_pattern *p = &all->pattern[all->count];
        p->text = item->valuestring;
        p->compiled = strncmp(p->text, "re:", 3) == 0;
        if (p->compiled && regcomp(&p->expression, p->text + 3, REG_EXTENDED | REG_NOSUB))
            return hf_fail(r, "its 'quantization_config' excludes '%.80s', which is no regular expression", p->text);
        all->count++;
    }
    return true;
}

/* A matrix of a layer, by the name that most models give it, and its weight in its kind. */
typedef struct hf_matrix {
    hf_kind kind;
    const char *name; /* of one in model.layers.N. */
    double elements;
} hf_matrix;

HF_FN bool hf_is_excluded(const hf_excluded *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (hf_pattern_fits(&all->pattern[i], name)) return true;
    return false;
}

/* The share of each kind's elements that is excluded. */
HF_FN void hf_shares(const hf_excluded *all, const trn_model *m, double share[HF_KINDS])
{
    const double h = (double)m->hidden, heads = (double)m->heads, kv = m->kv_heads ? (double)m->kv_heads : heads;
    const double size = m->head_dim ? (double)m->head_dim : heads > 0 ? h / heads : 0;
    const bool latent = m->kv_rank > 0;
    const hf_matrix row[] = {
        { HF_ATTENTION, "self_attn.q_proj", latent && m->q_rank ? 0 : h * heads * (size + (double)m->rope_dim) },
        { HF_ATTENTION, "self_attn.k_proj", latent ? 0 : h * kv * size },
        { HF_ATTENTION, "self_attn.v_proj", latent ? 0 : h * kv * size },
        { HF_ATTENTION, "self_attn.q_a_proj", latent ? h * (double)m->q_rank : 0 },
        { HF_ATTENTION, "self_attn.q_b_proj", latent ? (double)m->q_rank * heads * (size + (double)m->rope_dim) : 0 },
        { HF_ATTENTION, "self_attn.kv_a_proj_with_mqa", latent ? h * (double)(m->kv_rank + m->rope_dim) : 0 },
        { HF_ATTENTION, "self_attn.kv_b_proj", latent ? (double)m->kv_rank * heads * (size + (double)m->v_dim) : 0 },
        { HF_ATTENTION, "self_attn.o_proj", h * heads * (latent ? (double)m->v_dim : size) },
        { HF_MLP, "mlp.gate_proj", m->plain_mlp ? 0 : h * (double)m->intermediate },
        { HF_MLP, "mlp.up_proj", h * (double)m->intermediate },
        { HF_MLP, "mlp.down_proj", h * (double)m->intermediate },
        { HF_MLP, "mlp.shared_experts.gate_proj", 3 * h * (double)m->shared_intermediate },
        { HF_EXPERTS, "mlp.experts.0.gate_proj", m->experts ? 1 : 0 }, /* all of a layer's alike */
    };
    double out[HF_KINDS] = { 0 }, of[HF_KINDS] = { 0 };
    for (int64_t l = 0; l < m->layers; l++)
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
            char name[128];
            if (row[i].elements <= 0) continue;
            snprintf(name, sizeof name, "model.layers.%lld.%s", (long long)l, row[i].name);
            of[row[i].kind] += row[i].elements;
            if (hf_is_excluded(all, name)) out[row[i].kind] += row[i].elements;
        }
    for (int k = 0; k < HF_KINDS; k++) share[k] = of[k] > 0 ? out[k] / of[k] : 0;
    share[HF_HEAD] = 1; /* embeddings never are, and the head is only where a file says so */
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

HF_FN bool hf_read_quantised(hf_reader *r, const trn_model *m, hf_quantised *out)
{
    static const char *const lists[] = { "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules",
                                         "llm_int8_skip_modules" };
    const cJSON *q = cJSON_GetObjectItemCaseSensitive(r->root, "quantization_config");
    hf_scheme s = { TRN_FORMAT_UNSET, 0, false };
    double share[HF_KINDS] = { 0 };
    hf_mark_seen(r, "quantization_config");
    memset(out, 0, sizeof *out);
    if (!q) q = cJSON_GetObjectItemCaseSensitive(r->file, "quantization_config");
    if (!q || cJSON_IsNull(q)) return true;
    if (!cJSON_IsObject(q)) return hf_fail(r, "its 'quantization_config' is not an object");
    hf_excluded *all = (hf_excluded *)calloc(1, sizeof *all);
    if (!all) return hf_fail(r, "there is not enough memory to read it");
    bool ok = hf_scheme_of(r, q, &s) && hf_read_kv_scheme(r, q, out);
    for (unsigned i = 0; ok && i < sizeof lists / sizeof lists[0]; i++)
        ok = hf_exclude(r, all, cJSON_GetObjectItemCaseSensitive(q, lists[i]), lists[i]);
    if (ok) hf_shares(all, m, share);
    if (ok) hf_spread_scheme(r, &s, share, out);
    for (int i = 0; i < all->count; i++)
        if (all->pattern[i].compiled) regfree(&all->pattern[i].expression);
    free(all);
    return ok;
}

#endif /* HF_QUANTISED_H */

/* hf/decoders.h - sizes, attention, experts, windows and states of decoders.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_DECODERS_H
#define HF_DECODERS_H

#include "fields.h"

/* ---- parts of a model ---- */

/* Blocks of a width of their own are not needed where every layer has experts: trn_model_check sees to it. */
HF_FN void hf_read_intermediate(hf_reader *r, trn_model *m)
{
    const bool experts = r->family->experts && !hf_has(r, HF_ALL_SPARSE);
    if (hf_has(r, HF_MAMBA2 | HF_IMAGES) && !hf_has(r, HF_ENCODER)) return;
    m->intermediate = hf_number(r, "intermediate_size", 1, 1 << 22,
                                hf_does(r, HF_FOUR_WIDE) ? 4 * m->hidden
                                : experts                ? 0
                                                         : HF_NEEDED);
}

/* A class's own number is of the size that it was made for. */
HF_FN void hf_read_kv_heads(hf_reader *r, trn_model *m)
{
    const char *field = hf_own_name(r, "num_key_value_heads");
    m->kv_heads = hf_number(r, "num_key_value_heads", 1, 1 << 14, 0);
    if (!r->why[0] && m->kv_heads && m->heads % m->kv_heads && !cJSON_GetObjectItemCaseSensitive(r->root, field))
        hf_fail(r, "it has no '%s', and its %lld heads do not divide by the %lld that %s's class takes then", field,
                (long long)m->heads, (long long)m->kv_heads, r->family->type);
}

HF_FN void hf_read_sizes(hf_reader *r, trn_model *m)
{
    const bool alike = hf_does(r, HF_ALIKE) || hf_has(r, HF_ENCODER);
    m->layers = hf_number(r, "num_hidden_layers", 1, 4096, HF_NEEDED);
    m->hidden = hf_number(r, "hidden_size", 1, 1 << 20, HF_NEEDED);
    m->heads = hf_number(r, "num_attention_heads", 1, 1 << 14, HF_NEEDED);
    if (!hf_has(r, HF_IMAGES)) m->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
    hf_read_intermediate(r, m);
    if (!alike) hf_read_kv_heads(r, m);
    m->head_dim = alike ? 0 : hf_number(r, "head_dim", 1, 1 << 14, 0);
    if (hf_does(r, HF_LEARNED)) m->positions = hf_number(r, "max_position_embeddings", 1, 1 << 24, HF_NEEDED);
    const cJSON *outer = cJSON_GetObjectItemCaseSensitive(r->file, "tie_word_embeddings");
    const bool tied = r->file != r->root && cJSON_IsBool(outer) ? cJSON_IsTrue(outer) : hf_has(r, HF_TIED);
    m->tied_embeddings = hf_flag(r, "tie_word_embeddings", tied);
}

/* What attention_bias or a field of the family's own says. */
HF_FN int hf_biased(hf_reader *r)
{
    const hf_bias *bias;
    int where = 0;
    bool told = false;
    for (int i = 0; (bias = hf_bias_at(i)) != NULL; i++) {
        if (!hf_is(r, bias->type)) continue;
        if (hf_flag(r, bias->field, bias->missing)) where |= bias->where;
        told = told || strcmp(bias->field, "attention_bias") == 0;
    }
    if (!told && hf_flag(r, "attention_bias", false))
        where |= HF_OF_QKV | (hf_has(r, HF_QKV_BIAS | HF_NO_O_BIAS) ? 0 : HF_OF_OUTPUT);
    return where;
}

HF_FN void hf_read_biases(hf_reader *r, trn_model *m)
{
    const int biased = hf_biased(r);
    m->qkv_bias = hf_has(r, HF_QKV_BIAS) || biased & HF_OF_QKV;
    m->o_bias = hf_has(r, HF_O_BIAS) || biased & HF_OF_OUTPUT;
    m->mlp_bias = hf_has(r, HF_MLP_BIAS) || biased & HF_OF_MLP || hf_flag(r, "mlp_bias", false);
    m->head_bias = hf_does(r, HF_HEAD_BIAS) || biased & HF_OF_HEAD;
    m->norm_bias = hf_has(r, HF_NORM_BIAS);
    m->embedding_norm = hf_does(r, HF_FIRST_NORM);
    m->wide_qk_norm = hf_does(r, HF_WIDE_NORMS) || (hf_has(r, HF_WIDE_QK) && hf_flag(r, "use_qk_norm", true));
    m->router_bias = hf_has(r, HF_ROUTER_BIAS) || (hf_has(r, HF_WIDE_QK) && hf_flag(r, "use_routing_bias", true));
    m->qk_norm =
        hf_has(r, HF_QK_NORM) || m->wide_qk_norm || (hf_has(r, HF_QK_NORM_ASKED) && hf_flag(r, "use_qk_norm", false));
    m->gated_attention = hf_has(r, HF_AFMOE) || (hf_has(r, HF_DELTA_RULE) && hf_flag(r, "attn_output_gate", true));
    m->plain_mlp = hf_has(r, HF_PLAIN_MLP);
    m->sinks = hf_has(r, HF_SINKS);
    m->norms = r->family->norms;
}

/* GLM-5.2 lets layers use the positions that one before them chose. */
HF_FN void hf_check_indexers(hf_reader *r)
{
    io_json text;
    const cJSON *types = hf_field(r, "indexer_types", &text), *item;
    cJSON_ArrayForEach(item, types)
        if (!cJSON_IsString(item) || strcmp(item->valuestring, "full") != 0)
            hf_fail(r, "its 'indexer_types' has others than 'full': layers without an indexer of their own are not "
                       "planned");
}

HF_FN void hf_read_latent(hf_reader *r, trn_model *m)
{
    if (!hf_has(r, HF_LATENT)) return;
    m->kv_rank = hf_number(r, "kv_lora_rank", 1, 1 << 20, HF_NEEDED);
    m->q_rank = hf_number(r, "q_lora_rank", 1, 1 << 20, 0);
    m->head_dim = hf_number(r, "qk_nope_head_dim", 1, 1 << 14, HF_NEEDED);
    m->rope_dim = hf_number(r, "qk_rope_head_dim", 1, 1 << 14, HF_NEEDED);
    m->v_dim = hf_number(r, "v_head_dim", 1, 1 << 14, HF_NEEDED);
    m->kv_heads = 0;
    if (!hf_has(r, HF_INDEXED)) return;
    hf_check_indexers(r);
    m->index_heads = hf_number(r, "index_n_heads", 1, 1 << 14, HF_NEEDED);
    m->index_dim = hf_number(r, "index_head_dim", 1, 1 << 14, HF_NEEDED);
    m->index_most = hf_number(r, "index_topk", 1, INT64_C(1) << 32, HF_NEEDED);
}

/* Whole numbers of a list that lie below `limit`, each counted once; -1 when it is no such list. */
HF_FN int64_t hf_count_below(hf_reader *r, const char *field, int64_t limit)
{
    io_json text;
    const cJSON *list = hf_field(r, field, &text);
    int64_t count = 0;
    uint64_t x;
    bool seen[4096] = { false };
    if (!list) return 0;
    if (!cJSON_IsArray(list)) return hf_fail(r, "its '%s' is not a list", field), 0;
    for (io_json j = io_json_list(&text); io_json_next(&j); seen[x] = true) {
        if (!io_json_whole(&j, &x) || x >= 4096)
            return hf_fail(r, "its '%s' is not a list of numbers of layers", field), 0;
        if ((int64_t)x < limit && !seen[x]) count++;
    }
    return count;
}

/* Layers without experts: deepseek's first ones, qwen's every so many or by name, all but every so many of llama 4, or
 * all but those that it names. */
HF_FN void hf_read_dense_layers(hf_reader *r, trn_model *m)
{
    if (hf_has(r, HF_LLAMA4)) {
        const int64_t step = hf_number(r, "interleave_moe_layer_step", 1, 4096, 1);
        const int64_t named = hf_count_below(r, "moe_layers", m->layers);
        m->dense_layers = m->layers - (named ? named : m->layers / step);
    }
    if (hf_has(r, HF_FIRST_DENSE)) {
        const int64_t first =
            hf_number(r, hf_has(r, HF_AFMOE) ? "num_dense_layers" : "first_k_dense_replace", 0, 4096, 0);
        const int64_t every = hf_number(r, "moe_layer_freq", 1, 4096, 1);
        for (int64_t i = 0; i < m->layers; i++) m->dense_layers += i < first || i % every;
    }
    if (hf_has(r, HF_EXPERT_LAYERS)) {
        const int64_t step = hf_number(r, "decoder_sparse_step", 1, 4096, 1);
        const int64_t named = hf_count_below(r, "mlp_only_layers", m->layers);
        m->dense_layers = m->layers - m->layers / step;
        if (named && step > 1)
            hf_fail(r, "it has both 'mlp_only_layers' and a 'decoder_sparse_step' of %lld", (long long)step);
        if (named) m->dense_layers = named;
    }
}

HF_FN void hf_read_experts(hf_reader *r, trn_model *m)
{
    const char *field = r->family->experts;
    const int64_t experts = field ? hf_number(r, field, 0, 1 << 14, hf_has(r, HF_FIRST_DENSE) ? 0 : HF_NEEDED) : 0;
    if (experts < 1) return;
    m->experts = experts;
    m->experts_per_token = hf_number(r, "num_experts_per_tok", 1, experts, HF_NEEDED);
    if (hf_has(r, HF_ALL_SPARSE)) {
        m->moe_intermediate = m->intermediate;
        m->intermediate = hf_has(r, HF_LLAMA4) ? hf_number(r, "intermediate_size_mlp", 1, 1 << 22, HF_NEEDED) : 0;
        m->shared_intermediate = hf_has(r, HF_LLAMA4) ? m->moe_intermediate : 0;
    } else
        m->moe_intermediate = hf_number(r, "moe_intermediate_size", 1, 1 << 22, HF_NEEDED);
    if (hf_has(r, HF_FIRST_DENSE)) {
        const char *name = hf_has(r, HF_AFMOE) ? "num_shared_experts" : "n_shared_experts";
        const int64_t shared = hf_number(r, name, 0, 4096, 0);
        if (shared * m->moe_intermediate > 1 << 22)
            hf_fail(r, "its '%s' is %lld", name, (long long)shared);
        else
            m->shared_intermediate = shared * m->moe_intermediate;
    }
    if (hf_has(r, HF_SHARED_GATE)) {
        m->shared_intermediate = hf_number(r, "shared_expert_intermediate_size", 0, 1 << 22, 0);
        m->shared_gate = m->shared_intermediate > 0;
    }
    hf_read_dense_layers(r, m);
}

/* Layers of this type, or of the other, as "layer_types" names them; `missing` when nothing is named. */
HF_FN int64_t hf_layers_of_type(hf_reader *r, const trn_model *m, const char *type, const char *other, int64_t missing)
{
    io_json text;
    const cJSON *types = hf_field(r, "layer_types", &text), *item;
    int64_t count = 0, found = 0;
    if (!types) return missing;
    if (!cJSON_IsArray(types)) return hf_fail(r, "its 'layer_types' is not a list"), 0;
    cJSON_ArrayForEach(item, types) {
        if (!cJSON_IsString(item)) return hf_fail(r, "its 'layer_types' is not a list of names"), 0;
        const bool such = strcmp(item->valuestring, type) == 0 || strcmp(item->valuestring, other) == 0;
        if (!such && strcmp(item->valuestring, "full_attention") != 0)
            return hf_fail(r, "its 'layer_types' has '%.40s', which is not planned for %s", item->valuestring,
                           r->family->type),
                   0;
        found += such;
        count++;
    }
    if (count != m->layers)
        hf_fail(r, "its 'layer_types' names %lld layers, not %lld", (long long)count, (long long)m->layers);
    return found;
}

/* Llama 4: layers with rotation see a chunk, those without everything. A list says 1 or 0 of each, or one in so many
 * has none. */
HF_FN int64_t hf_rotated_layers(hf_reader *r, const trn_model *m)
{
    io_json text;
    const cJSON *list = hf_field(r, "no_rope_layers", &text), *item;
    const int64_t every = hf_number(r, "no_rope_layer_interval", 1, 4096, r->family->full_every);
    int64_t count = 0, rotated = 0;
    if (!list || (cJSON_IsArray(list) && !list->child)) return m->layers - m->layers / every;
    if (!cJSON_IsArray(list)) return hf_fail(r, "its 'no_rope_layers' is not a list"), 0;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item)) return hf_fail(r, "its 'no_rope_layers' is not a list of numbers"), 0;
        rotated += item->valuedouble > 0;
        count++;
    }
    if (count != m->layers)
        hf_fail(r, "its 'no_rope_layers' has %lld layers, not %lld", (long long)count, (long long)m->layers);
    return rotated;
}

/* A pattern of letters, as EXAONE 4 has it: L is a layer with a window, G one without. Layers with one; -1 when there
 * are no such letters. */
HF_FN int64_t hf_lettered_layers(hf_reader *r, const trn_model *m, const char *field)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->root, field);
    const char *letters = cJSON_IsString(item) ? item->valuestring : "";
    const size_t n = strlen(letters);
    int64_t count = 0;
    if (n == 0 || strspn(letters, "LG") != n) return -1;
    hf_mark_seen(r, field);
    for (int64_t i = 0; i < m->layers; i++) count += letters[(size_t)i % n] == 'L';
    return count;
}

/* A chunk counts as a window of its length: a little more than its tokens see on average. */
HF_FN int64_t hf_window_layers(hf_reader *r, const trn_model *m)
{
    const int usual = r->family->full_every;
    const char *pattern = hf_has(r, HF_AFMOE) ? "global_attn_every_n_layers" : "sliding_window_pattern";
    const int64_t lettered = hf_lettered_layers(r, m, pattern);
    const int64_t every = usual && !hf_has(r, HF_LLAMA4) && lettered < 0 ? hf_number(r, pattern, 1, 4096, usual) : 0;
    const int64_t first = hf_has(r, HF_WINDOW_ASKED) ? hf_number(r, "max_window_layers", 0, 4096, 28) : 0;
    const int64_t missing = hf_has(r, HF_LLAMA4) ? hf_rotated_layers(r, m)
                            : lettered >= 0      ? lettered
                            : every              ? m->layers - m->layers / every
                            : first < m->layers  ? m->layers - first
                                                 : 0;
    return hf_layers_of_type(r, m, "sliding_attention", "chunked_attention", missing);
}

/* Where no other layers are planned, none are named. */
HF_FN void hf_check_full(hf_reader *r)
{
    io_json text;
    const cJSON *types = hf_field(r, "layer_types", &text), *item;
    cJSON_ArrayForEach(item, types)
        if (!cJSON_IsString(item) || strcmp(item->valuestring, "full_attention") != 0)
            hf_fail(r, "its 'layer_types' has other layers than 'full_attention', which alone are planned for %s",
                    r->family->type);
}

/* MiniMax-M2 names each layer's attention by a number: 1 sees everything. */
HF_FN void hf_check_attention_list(hf_reader *r)
{
    io_json text;
    const cJSON *list = hf_has(r, HF_WIDE_QK) ? hf_field(r, "attn_type_list", &text) : NULL, *item;
    cJSON_ArrayForEach(item, list)
        if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble < 2))
            hf_fail(r, "its 'attn_type_list' has something else than 1, full attention, which alone is planned");
}

HF_FN void hf_read_window(hf_reader *r, trn_model *m)
{
    hf_check_attention_list(r);
    const bool windowed = hf_has(r, HF_WINDOW_ASKED) && hf_flag(r, "use_sliding_window", false);
    const char *field = hf_has(r, HF_LLAMA4) ? "attention_chunk_size" : "sliding_window";
    if (!r->family->full_every && !hf_has(r, HF_WINDOW) && !windowed) {
        if (hf_has(r, HF_WINDOW_ASKED)) hf_mark_seen(r, "sliding_window"); /* which nobody uses */
        if (!hf_has(r, HF_DELTA_RULE)) hf_check_full(r);
        return;
    }
    m->window = hf_number(r, field, 1, INT64_C(1) << 40, 0);
    if (m->window) m->window_layers = hf_window_layers(r, m);
    if (!m->window_layers) m->window = 0;
}

/* ---- layers with a state ---- */

HF_FN void hf_read_delta_rule(hf_reader *r, trn_model *m)
{
    const int64_t every = hf_number(r, "full_attention_interval", 1, 4096, 4);
    m->linear_layers = hf_layers_of_type(r, m, "linear_attention", "linear_attention", m->layers - m->layers / every);
    if (m->linear_layers == 0) return;
    m->linear_heads = hf_number(r, "linear_num_value_heads", 1, 1 << 14, HF_NEEDED);
    m->linear_value_dim = hf_number(r, "linear_value_head_dim", 1, 1 << 14, HF_NEEDED);
    m->linear_key_heads = hf_number(r, "linear_num_key_heads", 1, 1 << 14, HF_NEEDED);
    m->linear_key_dim = hf_number(r, "linear_key_head_dim", 1, 1 << 14, HF_NEEDED);
    m->linear_kernel = hf_number(r, "linear_conv_kernel_dim", 1, 1 << 10, HF_NEEDED);
}

HF_FN void hf_read_mamba2(hf_reader *r, trn_model *m)
{
    const int64_t wider = hf_number(r, "expand", 1, 64, 2);
    m->state_space = true;
    m->linear_layers = m->layers;
    m->linear_heads = m->heads;
    m->linear_value_dim = hf_number(r, "head_dim", 1, 1 << 14, HF_NEEDED);
    m->linear_key_heads = hf_number(r, "n_groups", 1, 1 << 14, HF_NEEDED);
    m->linear_key_dim = hf_number(r, "state_size", 1, 1 << 14, HF_NEEDED);
    m->linear_kernel = hf_number(r, "conv_kernel", 1, 1 << 10, 4);
    m->head_dim = m->linear_value_dim;
    if (!r->why[0] && wider * m->hidden != m->linear_heads * m->linear_value_dim)
        hf_fail(r, "its 'num_heads' times 'head_dim' is %lld, but 'expand' times 'hidden_size' is %lld",
                (long long)(m->linear_heads * m->linear_value_dim), (long long)(wider * m->hidden));
    if (hf_flag(r, "use_bias", false)) hf_fail(r, "its 'use_bias' is true: projections with biases are not counted");
    if (!hf_flag(r, "use_conv_bias", true)) hf_fail(r, "its 'use_conv_bias' is false, and a bias would be counted");
}

HF_FN void hf_read_linear(hf_reader *r, trn_model *m)
{
    if (hf_has(r, HF_DELTA_RULE)) hf_read_delta_rule(r, m);
    if (hf_has(r, HF_MAMBA2)) hf_read_mamba2(r, m);
}

#endif /* HF_DECODERS_H */

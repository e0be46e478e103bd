/* hf/peculiar.h - what one family of decoders says in a way of its own.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the modelling code of transformers 4.57, and for qwen and chatglm the code that their publishers ship.
 */
#ifndef HF_PECULIAR_H
#define HF_PECULIAR_H

#include "fields.h"

/* A flag that has to be this; `why` is what is not counted otherwise. */
HF_FN void hf_need_flag(hf_reader *r, const char *field, bool missing, bool needed, const char *why)
{
    if (hf_flag(r, field, missing) != needed) hf_fail(r, "its '%s' is %s: %s", field, needed ? "false" : "true", why);
}

/* One head of keys for all queries, or as many as there are queries; falcon's newer ones name their number. */
HF_FN void hf_read_falcon(hf_reader *r, trn_model *m)
{
    const bool grouped = hf_flag(r, "new_decoder_architecture", false), one = hf_flag(r, "multi_query", true);
    const bool parallel = hf_flag(r, "parallel_attn", true);
    if (!grouped) m->kv_heads = one ? 1 : 0;
    m->norms = grouped ? hf_number(r, "num_ln_in_parallel_attn", 1, 2, 2) : parallel ? 1 : 2;
}

HF_FN void hf_read_bigcode(hf_reader *r, trn_model *m) { m->kv_heads = hf_flag(r, "multi_query", true) ? 1 : 0; }

/* The first two positions are never used. */
HF_FN void hf_read_opt(hf_reader *r, trn_model *m)
{
    const int64_t inner = hf_number(r, "word_embed_proj_dim", 1, 1 << 20, m->hidden);
    m->positions = hf_number(r, "max_position_embeddings", 1, 1 << 24, HF_NEEDED) + 2;
    if (inner != m->hidden)
        hf_fail(r,
                "its 'word_embed_proj_dim' is %lld, not its 'hidden_size' %lld: what projects one to the other is "
                "not counted",
                (long long)inner, (long long)m->hidden);
    hf_need_flag(r, "do_layer_norm_before", true, true, "only norms before their blocks are counted");
    hf_need_flag(r, "layer_norm_elementwise_affine", true, true, "norms without weights are not counted");
}

HF_FN void hf_read_mpt(hf_reader *r, trn_model *m)
{
    io_json text;
    const cJSON *attention = hf_field(r, "attn_config", &text);
    const cJSON *kv = cJSON_GetObjectItemCaseSensitive(attention, "kv_n_heads");
    m->intermediate = m->hidden * hf_number(r, "expansion_ratio", 1, 4, 4);
    hf_need_flag(r, "no_bias", true, true, "biases are not counted");
    if (attention && !cJSON_IsObject(attention)) hf_fail(r, "its 'attn_config' is not an object");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(attention, "qk_ln")) || kv)
        hf_fail(r, "its 'attn_config' has '%s', which is not counted", kv ? "kv_n_heads" : "qk_ln");
}

/* Norms of queries and keys have weights of their own for each head. */
HF_FN void hf_read_stablelm(hf_reader *r, trn_model *m)
{
    m->norms = hf_flag(r, "use_parallel_residual", false) ? 1 : 2;
    m->qk_norm = m->wide_qk_norm = hf_flag(r, "qk_layernorm", false);
}

HF_FN void hf_read_cohere(hf_reader *r, trn_model *m)
{
    m->qk_norm = m->wide_qk_norm = hf_flag(r, "use_qk_norm", false);
}

HF_FN void hf_read_phi(hf_reader *r, trn_model *m)
{
    (void)m;
    hf_need_flag(r, "qk_layernorm", false, false, "norms of queries and keys with biases are not counted");
}

/* Layers without rotation are as large as those with it. */
HF_FN void hf_read_smollm3(hf_reader *r, trn_model *m)
{
    (void)m;
    hf_mark_seen(r, "no_rope_layers");
    hf_mark_seen(r, "no_rope_layer_interval");
}

HF_FN void hf_read_starcoder2(hf_reader *r, trn_model *m)
{
    const char *kind = hf_text(r, "mlp_type");
    (void)m;
    if (kind && strcmp(kind, "default") != 0) hf_fail(r, "its 'mlp_type' is '%.40s': only 'default' is counted", kind);
}

/* intermediate_size is that of gate and up together. */
HF_FN void hf_read_qwen(hf_reader *r, trn_model *m)
{
    if (m->intermediate % 2) hf_fail(r, "its 'intermediate_size' %lld is odd", (long long)m->intermediate);
    m->intermediate /= 2;
    hf_need_flag(r, "no_bias", true, true, "biases are not counted");
}

HF_FN void hf_read_chatglm(hf_reader *r, trn_model *m)
{
    const bool grouped = hf_flag(r, "multi_query_attention", false);
    const int64_t groups = hf_number(r, "multi_query_group_num", 1, 1 << 14, 1);
    m->kv_heads = grouped ? groups : 0;
    hf_need_flag(r, "rmsnorm", true, true, "norms with biases are not counted");
    hf_need_flag(r, "post_layer_norm", true, true, "a norm at the end is counted");
}

/* Its sizes of attention and experts stand in objects of their own. */
HF_FN void hf_read_dbrx(hf_reader *r, trn_model *m)
{
    io_json text;
    const cJSON *attention = hf_field(r, "attn_config", &text);
    hf_reader inner = *r;
    inner.notes = NULL;
    inner.seen = NULL;
    m->intermediate = 0;
    if (cJSON_IsObject(attention)) {
        inner.root = attention;
        inner.text = io_json_members(&text);
        m->kv_heads = hf_number(&inner, "kv_n_heads", 1, 1 << 14, 1);
    }
    const cJSON *block = hf_field(r, "ffn_config", &text);
    if (!cJSON_IsObject(attention) || !cJSON_IsObject(block)) {
        hf_fail(r, "it has no 'attn_config' or no 'ffn_config', which dbrx needs");
        return;
    }
    inner.root = block;
    inner.text = io_json_members(&text);
    m->experts = hf_number(&inner, "moe_num_experts", 1, 1 << 14, 4);
    m->experts_per_token = hf_number(&inner, "moe_top_k", 1, 1 << 14, 1);
    m->moe_intermediate = hf_number(&inner, "ffn_hidden_size", 1, 1 << 22, 3584);
}

HF_FN void hf_read_peculiar(hf_reader *r, trn_model *m)
{
    static const struct {
        const char *type;
        void (*read)(hf_reader *, trn_model *);
    } row[] = {
        { "falcon", hf_read_falcon },   { "gpt_bigcode", hf_read_bigcode },   { "opt", hf_read_opt },
        { "mpt", hf_read_mpt },         { "stablelm", hf_read_stablelm },     { "cohere", hf_read_cohere },
        { "phi", hf_read_phi },         { "smollm3", hf_read_smollm3 },       { "qwen", hf_read_qwen },
        { "chatglm", hf_read_chatglm }, { "starcoder2", hf_read_starcoder2 }, { "dbrx", hf_read_dbrx },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!r->why[0] && hf_is(r, row[i].type)) row[i].read(r, m);
}

#endif /* HF_PECULIAR_H */

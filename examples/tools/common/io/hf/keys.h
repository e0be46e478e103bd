/* hf/keys.h - members of a configuration that nothing has asked for: those that may change sizes or times are refused,
 * others are told of, and what is known to change neither is passed over.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_KEYS_H
#define HF_KEYS_H

#include <ctype.h>

#include "fields.h"

/* Names of transformers and diffusers that say nothing of sizes or times, in whole; and how such names end or begin. */
HF_FN bool hf_key_is_harmless(const char *key)
{
    static const char *const whole[] = { "_attn_implementation",
                                         "_attn_implementation_autoset",
                                         "_attn_implementation_internal",
                                         "attn_implementation",
                                         "attention_softmax_in_fp32",
                                         "scale_attention_softmax_in_fp32",
                                         "apply_query_key_layer_scaling",
                                         "use_flash_attn",
                                         "use_flash_attention",
                                         "flash_attn",
                                         "use_logn_attn",
                                         "num_beams",
                                         "num_beam_groups",
                                         "num_return_sequences",
                                         "num_logits_to_keep",
                                         "no_repeat_ngram_size",
                                         "encoder_no_repeat_ngram_size",
                                         "chunk_size_feed_forward",
                                         "scale_depth",
                                         "dim_model_base",
                                         "order_of_interleaved_layers",
                                         "use_parallel_block",
                                         "mamba_ssm_dtype",
                                         "mtp_use_dedicated_embeddings",
                                         "moe_router_dtype",
                                         "max_sequence_length",
                                         "max_seq_len",
                                         "model_max_length",
                                         "seq_length",
                                         "original_rope",
                                         "_class_name",
                                         "_diffusers_version",
                                         "_name_or_path",
                                         "activation",
                                         "activation_fn",
                                         "activation_function",
                                         "apply_spec_augment",
                                         "architectures",
                                         "attention_bias",
                                         "attn_output_gate",
                                         "attn_scale",
                                         "attn_temperature_tuning",
                                         "auto_map",
                                         "aux_loss_alpha",
                                         "cache_implementation",
                                         "chunk_size",
                                         "decoder_layerdrop",
                                         "directionality",
                                         "dropout",
                                         "dtype",
                                         "encoder_layerdrop",
                                         "encoder_stride",
                                         "ep_size",
                                         "experts_per_token",
                                         "finetuning_task",
                                         "floor_scale",
                                         "for_llm_compressor",
                                         "generation_config",
                                         "gradient_checkpointing",
                                         "hidden_act",
                                         "hidden_activation",
                                         "id2label",
                                         "indexer_rope_interleave",
                                         "init_std",
                                         "initial_context_length",
                                         "initializer_factor",
                                         "initializer_range",
                                         "is_decoder",
                                         "is_encoder_decoder",
                                         "label2id",
                                         "logit_scale_init_value",
                                         "max_position_embeddings",
                                         "max_window_layers",
                                         "median_filter_width",
                                         "model_type",
                                         "mtp_transformer_layers",
                                         "mup_enabled",
                                         "n_ctx",
                                         "n_group",
                                         "n_positions",
                                         "norm_before_gate",
                                         "norm_elementwise_affine",
                                         "norm_num_groups",
                                         "norm_topk_prob",
                                         "norm_type",
                                         "num_embeds_ada_norm",
                                         "num_expert_groups",
                                         "num_limited_groups",
                                         "original_max_position_embeddings",
                                         "output_past",
                                         "output_router_logits",
                                         "position_embedding_type",
                                         "pretraining_tp",
                                         "qk_head_dim",
                                         "qk_norm_type",
                                         "query_pre_attn_scalar",
                                         "relative_attention_max_distance",
                                         "relative_attention_num_buckets",
                                         "reorder_and_upcast_attn",
                                         "rescale_prenorm_residual",
                                         "residual_in_fp32",
                                         "rms_norm",
                                         "rope_interleave",
                                         "rope_local_base_freq",
                                         "rope_parameters",
                                         "rope_scaling",
                                         "rope_theta",
                                         "rotary_dim",
                                         "rotary_emb_base",
                                         "rotary_pct",
                                         "partial_rotary_factor",
                                         "route_norm",
                                         "route_scale",
                                         "routed_scaling_factor",
                                         "router_jitter_noise",
                                         "scale_attn_by_inverse_layer_idx",
                                         "scale_attn_weights",
                                         "scale_embedding",
                                         "score_func",
                                         "scoring_func",
                                         "seq_aux",
                                         "seq_classif_pct",
                                         "sinusoidal_pos_embds",
                                         "suppress_tokens",
                                         "begin_suppress_tokens",
                                         "swiglu_limit",
                                         "task_specific_params",
                                         "text_config_dict",
                                         "tie_weights_",
                                         "tie_word_embeddings",
                                         "topk_group",
                                         "topk_method",
                                         "torch_dtype",
                                         "transformers_version",
                                         "unsloth_fixed",
                                         "upcast_attention",
                                         "use_bfloat16",
                                         "use_cache",
                                         "use_grouped_mm",
                                         "use_mtp",
                                         "use_parallel_residual",
                                         "use_qk_norm",
                                         "use_weighted_layer_sum",
                                         "vision_config_dict" };
    static const char *const ending[] = { "_dropout",     "_dropout_prob", "_eps",         "_epsilon",
                                          "_token_id",    "_token_ids",    "_pdrop",       "_loss_coef",
                                          "_token_index", "_init_range",   "_token",       "_prob",
                                          "_std",         "_multiplier",   "_softcapping", "_scaling" };
    static const char *const beginning[] = { "summary_", "time_step_", "pooler_", "mask_time_", "mask_feature_" };
    for (unsigned i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(key, whole[i]) == 0) return true;
    for (unsigned i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        const size_t n = strlen(key), e = strlen(ending[i]);
        if (n > e && strcmp(key + n - e, ending[i]) == 0) return true;
    }
    for (unsigned i = 0; i < sizeof beginning / sizeof beginning[0]; i++)
        if (strncmp(key, beginning[i], strlen(beginning[i])) == 0) return true;
    return false;
}

/* Known, not counted, and told of. */
HF_FN const char *hf_key_left_out(const char *key)
{
    static const struct {
        const char *key, *what;
    } row[] = {
        { "num_nextn_predict_layers", "blocks that predict further tokens" },
        { "num_mtp_modules", "blocks that predict further tokens" },
        { "mtp_num_hidden_layers", "blocks that predict further tokens" },
        { "vision_config", "the tower of images" },
        { "audio_config", "the tower of sounds" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(key, row[i].key) == 0) return row[i].what;
    return NULL;
}

/* Some names say nothing with this value: of every so many layers, all. */
HF_FN bool hf_key_is_one(const cJSON *item)
{
    static const char *const key[] = { "moe_frequency", "moe_layer_freq", "full_attn_mod" };
    if (!cJSON_IsNumber(item) || item->valuedouble < 1 || item->valuedouble > 1) return false;
    for (unsigned i = 0; i < sizeof key / sizeof key[0]; i++)
        if (strcmp(item->string, key[i]) == 0) return true;
    return false;
}

/* Does the name speak of a size, of a number of something, or of which layers are of what kind? */
HF_FN bool hf_key_counts(const char *key)
{
    static const char *const part[] = { "layer",  "head",     "hidden",  "intermediate", "_size", "size_",  "_dim",
                                        "dim_",   "expert",   "moe",     "rank",         "lora",  "window", "vocab",
                                        "mamba",  "ssm",      "conv",    "sparse",       "index", "attn",   "attention",
                                        "chunk",  "compress", "kv_",     "cross",        "num_",  "n_",     "mlp",
                                        "ffn",    "block",    "pattern", "stride",       "patch", "width",  "depth",
                                        "groups", "hash",     "adapter", "expand",       "merge" };
    for (unsigned i = 0; i < sizeof part / sizeof part[0]; i++)
        if (strstr(key, part[i]) && (strcmp(part[i], "n_") != 0 || key == strstr(key, part[i]))) return true;
    return false;
}

/* null, false, 0, "", [], {}, and lists of these: as if it was not there. */
HF_FN bool hf_is_nothing(const cJSON *item)
{
    if (cJSON_IsNumber(item)) return !(item->valuedouble > 0 || item->valuedouble < 0);
    if (cJSON_IsString(item)) return item->valuestring[0] == '\0';
    if (cJSON_IsArray(item) || cJSON_IsObject(item)) {
        for (const cJSON *inner = item->child; inner; inner = inner->next)
            if (!hf_is_nothing(inner)) return false;
        return true;
    }
    return !cJSON_IsTrue(item);
}

/* Every member of root that nothing asked for. */
HF_FN bool hf_check_keys(hf_reader *r)
{
    char others[HF_NOTE - 60] = "";
    size_t used = 0;
    int i = 0, unknown = 0;
    if (!r->seen) return true;
    for (const cJSON *item = r->root->child; item; item = item->next, i++) {
        if (!item->string || (i < HF_KEYS && r->seen[i]) || hf_is_nothing(item) || hf_key_is_one(item) ||
            hf_key_is_harmless(item->string))
            continue;
        const char *what = hf_key_left_out(item->string);
        if (what)
            hf_note(r, "not counted: %s ('%s')", what, item->string);
        else if (hf_key_counts(item->string))
            return hf_fail(r, "its '%.64s' may change sizes or times, and is not known for the model type %s",
                           item->string, r->family->type);
        else if (unknown++ < 8 && used < sizeof others)
            used += (size_t)snprintf(others + used, sizeof others - used, "%s'%.40s'", used ? ", " : "", item->string);
    }
    if (unknown) hf_note(r, "fields without effect: %s%s", others, unknown > 8 ? " and others" : "");
    return true;
}

/* Of a file whose text_config was read: what stands around it. */
HF_FN void hf_check_outer(hf_reader *r)
{
    if (r->file == r->root || hf_has(r, HF_TOWERS)) return;
    for (const cJSON *item = r->file->child; item; item = item->next) {
        const char *what = item->string ? hf_key_left_out(item->string) : NULL;
        if (what && !hf_is_nothing(item)) hf_note(r, "not counted: %s ('%s')", what, item->string);
    }
}

#endif /* HF_KEYS_H */

/* config.c - a Hugging Face config.json as the shape of a decoder; what is not supported is refused by name.
 * SPDX-License-Identifier: MIT
 *
 * Which fields there are, and what is taken for missing ones: family.c.
 */
#include "reading.h"

#include <math.h>
#include <stdlib.h>

bool mr_is(const mr_config *c, int flag) { return (c->family->flags & flag) != 0; }

/* ---- fields ---- */

double mr_real(hf_reader *r, const char *field, double low, double high, double missing)
{
    io_json digits;
    const cJSON *item = hf_field(r, field, &digits);
    if (!item) return missing;
    if (!cJSON_IsNumber(item))
        hf_fail(r, "its '%s' is not a number", field);
    else if (!(item->valuedouble >= low && item->valuedouble <= high))
        hf_fail(r, "its '%s' is %.6g; expected %.6g to %.6g", field, item->valuedouble, low, high);
    else
        return item->valuedouble;
    return missing;
}

const char *mr_word(hf_reader *r, const char *field, const char *missing)
{
    io_json digits;
    const cJSON *item = hf_field(r, field, &digits);
    if (!item) return missing;
    if (!cJSON_IsString(item)) return hf_fail(r, "its '%s' is not a name", field), missing;
    return item->valuestring;
}

bool mr_truth(hf_reader *r, const char *field, bool missing)
{
    io_json digits;
    const cJSON *item = hf_field(r, field, &digits);
    if (item && cJSON_IsNumber(item)) return item->valuedouble != 0;
    return hf_flag(r, field, missing);
}

bool mr_is_null(const hf_reader *r, const char *field)
{
    return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(r->root, field));
}

const cJSON *mr_list(hf_reader *r, const char *field)
{
    io_json text;
    const cJSON *list = hf_field(r, field, &text);
    if (list && !cJSON_IsArray(list)) return hf_fail(r, "its '%s' is not a list", field), (const cJSON *)NULL;
    return list;
}

bool mr_inside(hf_reader *r, const char *field, hf_reader *object)
{
    io_json text;
    const cJSON *item = hf_field(r, field, &text);
    if (!item) return false;
    if (!cJSON_IsObject(item)) return hf_fail(r, "its '%s' is not an object", field);
    *object = (hf_reader){
        .name = r->name, .root = item, .text = io_json_members(&text), .family = r->family, .why = r->why
    };
    return true;
}

static void refuse_flag(hf_reader *r, const char *field, bool missing, bool wanted, const char *what)
{
    if (hf_flag(r, field, missing) != wanted)
        hf_fail(r, "its '%s' is %s, and %s is not supported", field, wanted ? "false" : "true", what);
}

/* Of a list each item. */
static bool is_fixed(const cJSON *item, const char *value)
{
    char *end;
    const double number = strtod(value, &end);
    if (cJSON_IsString(item)) return strcmp(item->valuestring, value) == 0;
    if (cJSON_IsBool(item)) return strcmp(value, cJSON_IsTrue(item) ? "true" : "false") == 0;
    if (cJSON_IsNumber(item)) return *end == '\0' && !(item->valuedouble < number || item->valuedouble > number);
    if (!cJSON_IsArray(item)) return false;
    for (const cJSON *inner = item->child; inner; inner = inner->next)
        if (cJSON_IsArray(inner) || !is_fixed(inner, value)) return false;
    return true;
}

static void check_fixed(hf_reader *r, const mr_config *c)
{
    io_json text;
    for (const mr_fixed *f = c->family->fixed; f && f->field; f++) {
        const cJSON *item = hf_field(r, f->field, &text);
        if (item && !is_fixed(item, f->value))
            hf_fail(r, "its '%s' is not %s, and anything else is not supported for %s", f->field, f->value, c->type);
    }
}

/* ---- sizes ---- */

static void read_gpt2_sizes(hf_reader *r, mr_config *c)
{
    c->layers = hf_number(r, "n_layer", 1, MR_LAYERS, 12);
    c->hidden = hf_number(r, "n_embd", 1, 1 << 20, 768);
    c->heads = c->kv_heads = hf_number(r, "n_head", 1, 1 << 14, 12);
    c->positions = hf_number(r, "n_positions", 1, 1 << 24, 1024);
    c->intermediate = hf_number(r, "n_inner", 1, 1 << 22, 4 * c->hidden);
    if (!r->why[0] && c->hidden % c->heads) hf_fail(r, "its 'n_embd' does not divide by its 'n_head'");
    c->head_dim = c->value_dim = c->hidden / c->heads;
    c->eps = mr_real(r, "layer_norm_epsilon", 0, 1, 1e-5);
    c->scale_by_layer = hf_flag(r, "scale_attn_by_inverse_layer_idx", false);
    c->unscaled = !hf_flag(r, "scale_attn_weights", true);
    refuse_flag(r, "add_cross_attention", false, false, "attention to an encoder");
}

static void read_latents(hf_reader *r, mr_config *c)
{
    const int64_t most = 1 << 20;
    c->q_rank = mr_is_null(r, "q_lora_rank") ? 0 : hf_number(r, "q_lora_rank", 1, most, 1536);
    c->kv_rank = hf_number(r, "kv_lora_rank", 1, most, 512);
    c->rope_dim = hf_number(r, "qk_rope_head_dim", 2, 1 << 14, 64);
    c->rope_first = hf_number(r, "qk_nope_head_dim", 1, 1 << 14, 128);
    c->value_dim = hf_number(r, "v_head_dim", 1, 1 << 14, 128);
    c->head_dim = c->rope_first + c->rope_dim;
    c->rope_pairs = hf_flag(r, "rope_interleave", true);
    if (!r->why[0] && c->kv_heads != c->heads)
        hf_fail(r, "its 'num_key_value_heads' is %lld, and from latents come as many as there are heads, %lld",
                (long long)c->kv_heads, (long long)c->heads);
    if (!r->why[0] && c->rope_dim % 2) hf_fail(r, "its 'qk_rope_head_dim' %lld is odd", (long long)c->rope_dim);
}

static void read_heads(hf_reader *r, mr_config *c)
{
    const int64_t own = c->family->head_dim ? c->family->head_dim : c->hidden / c->heads;
    const int64_t usual = mr_is(c, MR_NEMOTRON) ? hf_number(r, "attention_head_dim", 1, 1 << 14, own) : own;
    c->head_dim = c->value_dim = c->rope_dim = hf_number(r, "head_dim", 1, 1 << 14, usual > 0 ? usual : 1);
    c->rope_pairs = mr_is(c, MR_CHUNKS);
    if (!r->why[0] && c->head_dim % 2) hf_fail(r, "its 'head_dim' %lld is odd", (long long)c->head_dim);
}

/* Nemotron-H's files may leave the number of layers to the list of them. */
static int64_t length_of_pattern(hf_reader *r)
{
    const cJSON *list = mr_list(r, "layers_block_type");
    const int64_t n = list ? cJSON_GetArraySize(list) : (int64_t)strlen(mr_word(r, "hybrid_override_pattern", ""));
    return n >= 1 && n <= MR_LAYERS ? n : HF_NEEDED;
}

static void read_sizes(hf_reader *r, mr_config *c)
{
    c->layers =
        hf_number(r, "num_hidden_layers", 1, MR_LAYERS, mr_is(c, MR_NEMOTRON) ? length_of_pattern(r) : HF_NEEDED);
    c->hidden = hf_number(r, "hidden_size", 1, 1 << 20, HF_NEEDED);
    c->heads = hf_number(r, "num_attention_heads", 1, 1 << 14, HF_NEEDED);
    const bool alike = mr_is_null(r, "num_key_value_heads");
    c->kv_heads =
        hf_number(r, "num_key_value_heads", 1, 1 << 14, c->family->kv_heads && !alike ? c->family->kv_heads : c->heads);
    c->positions = hf_number(r, "max_position_embeddings", 1, 1 << 30, 1 << 30);
    if (mr_is(c, MR_PLACES) && c->positions == 1 << 30) hf_fail(r, "it has no 'max_position_embeddings'");
    const char *inner = mr_is(c, MR_EXPERT_STEP) ? "intermediate_size_mlp" : "intermediate_size";
    c->intermediate = hf_number(r, inner, 1, 1 << 22, HF_NEEDED);
    c->eps = mr_real(r, mr_is(c, MR_NEMOTRON) ? "layer_norm_epsilon" : "rms_norm_eps", 0, 1, c->family->eps);
    if (!r->why[0] && c->heads % c->kv_heads)
        hf_fail(r, "its %lld attention heads do not divide by its %lld heads of keys", (long long)c->heads,
                (long long)c->kv_heads);
    if (r->why[0]) return;
    if (mr_is(c, MR_LATENT))
        read_latents(r, c);
    else
        read_heads(r, c);
}

static void read_biases(hf_reader *r, mr_config *c)
{
    const bool asked = hf_flag(r, "attention_bias", mr_is(c, MR_BIAS_DEFAULT));
    c->qkv_bias = mr_is(c, MR_BIAS | MR_GPT2) || (mr_is(c, MR_BIAS_ASKED | MR_BIAS_DEFAULT) && asked) ||
                  (mr_is(c, MR_BIAS_QKV) && hf_flag(r, "qkv_bias", true));
    c->o_bias = mr_is(c, MR_GPT2) || (mr_is(c, MR_O_BIAS_ASKED | MR_BIAS_DEFAULT) && asked);
    c->mlp_bias = mr_is(c, MR_GPT2 | MR_GPT_OSS) || (mr_is(c, MR_MLP_BIAS_ASKED) && hf_flag(r, "mlp_bias", false));
}

static void read_activation(hf_reader *r, mr_config *c)
{
    static const struct {
        const char *name;
        trn_act act;
    } row[] = {
        { "silu", TRN_ACT_SILU },
        { "swish", TRN_ACT_SILU },
        { "gelu", TRN_ACT_GELU },
        { "gelu_new", TRN_ACT_GELU_APPRX_TANH },
        { "gelu_pytorch_tanh", TRN_ACT_GELU_APPRX_TANH },
        { "gelu_fast", TRN_ACT_GELU_APPRX_TANH },
        { "quick_gelu", TRN_ACT_GELU_APPRX_SIGMOID },
        { "relu", TRN_ACT_RELU },
        { "relu2", TRN_ACT_RELU },
    };
    static const struct {
        int flag;
        const char *field, *usual;
    } own[] = { { MR_GPT2, "activation_function", "gelu_new" },
                { MR_GEMMA, "hidden_activation", "gelu_pytorch_tanh" },
                { MR_NEMOTRON, "mlp_hidden_act", "relu2" } };
    const char *field = "hidden_act", *name = "silu";
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (mr_is(c, own[i].flag)) field = own[i].field, name = own[i].usual;
    name = mr_word(r, field, name);
    c->squared = strcmp(name, "relu2") == 0;
    const bool known = !c->squared || mr_is(c, MR_NEMOTRON); /* perceptrons with gates do not square */
    for (size_t i = 0; i < sizeof row / sizeof row[0] && known; i++)
        if (strcmp(row[i].name, name) == 0) {
            c->act = row[i].act;
            return;
        }
    hf_fail(r, "its '%s' is '%.64s'; known are silu, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu and relu", field,
            name);
}

/* ---- layers that differ ---- */

/* Is layer i named "sliding_attention", or "chunked_attention"? -1: nothing is named. */
static int named_window(hf_reader *r, const mr_config *c, int64_t i)
{
    io_json text;
    const char *windowed = mr_is(c, MR_CHUNKS) ? "chunked_attention" : "sliding_attention";
    const cJSON *types = hf_field(r, "layer_types", &text);
    if (!types) return -1;
    if (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != c->layers)
        return hf_fail(r, "its 'layer_types' is not a list of %lld names", (long long)c->layers), 0;
    const cJSON *type = cJSON_GetArrayItem(types, (int)i);
    if (cJSON_IsString(type) && strcmp(type->valuestring, windowed) == 0) return 1;
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "full_attention") != 0)
        hf_fail(r, "its 'layer_types' has '%.64s'; known are full_attention and %s",
                cJSON_IsString(type) ? type->valuestring : "what is no name", windowed);
    return 0;
}

/* Has layer i a window where nothing is named? */
static bool usual_window(const mr_config *c, int64_t i, int64_t first, int64_t pattern)
{
    const bool asked = mr_is(c, MR_WINDOW_ASKED | MR_WINDOW_ALL_ASKED);
    if (mr_is(c, MR_WINDOW_EVERY_SECOND)) return i % 2 == 0 && (!asked || i < first);
    if (mr_is(c, MR_WINDOW_PATTERN)) return (i + 1) % pattern != 0;
    return mr_is(c, MR_CHUNKS) ? c->turn[i] >= 0 : i >= first;
}

static int64_t read_window(hf_reader *r, const mr_config *c)
{
    io_json text;
    const bool null = mr_is_null(r, "sliding_window");
    const int64_t missing = hf_field(r, "sliding_window", &text) ? 1 : c->family->window;
    if (!mr_is(c, MR_CHUNKS)) return null ? 0 : hf_number(r, "sliding_window", 1, INT32_MAX, missing);
    if (mr_is_null(r, "attention_chunk_size")) hf_fail(r, "its 'attention_chunk_size' is null");
    return hf_number(r, "attention_chunk_size", 1, INT32_MAX, 8192);
}

static void read_windows(hf_reader *r, mr_config *c)
{
    const int any = MR_WINDOW | MR_WINDOW_ASKED | MR_WINDOW_ALL_ASKED | MR_WINDOW_EVERY_SECOND | MR_WINDOW_PATTERN;
    if (!mr_is(c, any | MR_CHUNKS)) return;
    if (mr_is(c, MR_WINDOW_ASKED | MR_WINDOW_ALL_ASKED) && !hf_flag(r, "use_sliding_window", false)) return;
    const int64_t window = read_window(r, c);
    const int64_t first =
        mr_is(c, MR_WINDOW_ASKED) ? hf_number(r, "max_window_layers", 0, 1 << 20, c->family->first_window) : 0;
    const int64_t pattern = mr_is(c, MR_WINDOW_PATTERN) ? hf_number(r, "sliding_window_pattern", 1, 1 << 20, 6) : 1;
    c->chunked = mr_is(c, MR_CHUNKS);
    for (int64_t i = 0; i < c->layers && !r->why[0]; i++) {
        const int named = named_window(r, c, i);
        const bool has = named == 1 || (named < 0 && usual_window(c, i, first, pattern));
        c->window[i] = (int32_t)(has ? window : 0);
        if (has && mr_is(c, MR_WINDOW_PATTERN)) c->turn[i] = MR_ROPE_WINDOW;
    }
}

/* ---- layers that keep a state ---- */

static void read_mixers(hf_reader *r, mr_config *c)
{
    const cJSON *types = mr_list(r, "layer_types"), *type = types ? types->child : NULL;
    const int64_t every = hf_number(r, "full_attention_interval", 1, 1 << 20, 4);
    if (types && cJSON_GetArraySize(types) != c->layers)
        hf_fail(r, "its 'layer_types' is not a list of %lld names", (long long)c->layers);
    for (int64_t i = 0; i < c->layers && !r->why[0]; i++, type = types ? type->next : NULL) {
        const char *name = !types ? "" : cJSON_IsString(type) ? type->valuestring : "what is no name";
        const bool recurs = types ? strcmp(name, "linear_attention") == 0 : (i + 1) % every != 0;
        c->mixer[i] = recurs ? MR_RECURS : MR_ATTENDS;
        if (types && !recurs && strcmp(name, "full_attention") != 0)
            hf_fail(r, "its 'layer_types' has '%.64s'; known are full_attention and linear_attention", name);
    }
}

static void check_groups(hf_reader *r, const mr_recurrence *rule, const char *heads, const char *groups)
{
    if (!r->why[0] && rule->heads % rule->groups)
        hf_fail(r, "its %lld '%s' do not divide by its %lld '%s'", (long long)rule->heads, heads,
                (long long)rule->groups, groups);
}

static void read_delta_rule(hf_reader *r, mr_config *c)
{
    const int64_t most = 1 << 14;
    c->recurrence = (mr_recurrence){ .rule = MR_DELTA_RULE,
                                     .heads = hf_number(r, "linear_num_value_heads", 1, most, 32),
                                     .groups = hf_number(r, "linear_num_key_heads", 1, most, 16),
                                     .key_dim = hf_number(r, "linear_key_head_dim", 1, most, 128),
                                     .value_dim = hf_number(r, "linear_value_head_dim", 1, most, 128),
                                     .width = hf_number(r, "linear_conv_kernel_dim", 1, 64, 4) };
    check_groups(r, &c->recurrence, "linear_num_value_heads", "linear_num_key_heads");
    read_mixers(r, c);
}

/* ---- Nemotron-H: each layer is one thing ---- */

static const struct {
    char letter;
    const char *name, *other;
    mr_mixer mixer;
    bool bare, sparse;
} block[] = { { 'M', "linear_attention", "mamba", MR_RECURS, true, false },
              { '*', "full_attention", "attention", MR_ATTENDS, true, false },
              { '-', "mlp", "mlp", MR_NO_MIXER, false, false },
              { 'E', "moe", "moe", MR_NO_MIXER, false, true } };

enum { BLOCKS = sizeof block / sizeof block[0] };

static void read_pattern(hf_reader *r, mr_config *c)
{
    const char *pattern = mr_word(r, "hybrid_override_pattern", NULL);
    const cJSON *list = mr_list(r, "layers_block_type"), *type = list ? list->child : NULL;
    const int64_t n = list ? cJSON_GetArraySize(list) : pattern ? (int64_t)strlen(pattern) : 0;
    if (n != c->layers)
        hf_fail(r, "its 'layers_block_type' or 'hybrid_override_pattern' is not of %lld layers", (long long)c->layers);
    for (int64_t i = 0; i < c->layers && !r->why[0]; i++, type = list ? type->next : NULL) {
        const char *name = list && cJSON_IsString(type) ? type->valuestring : "";
        int b = 0;
        while (b < BLOCKS && !(list ? strcmp(name, block[b].name) == 0 || strcmp(name, block[b].other) == 0
                                    : pattern[i] == block[b].letter))
            b++;
        if (b == BLOCKS) {
            hf_fail(r,
                    "its layer %lld is of a kind that is not known; known are M, *, - and E, or linear_attention, "
                    "full_attention, mlp and moe",
                    (long long)i);
            return;
        }
        c->mixer[i] = (uint8_t)block[b].mixer;
        c->bare[i] = block[b].bare;
        c->sparse[i] = block[b].sparse;
    }
}

/* [shortest, longest] of a step. */
static void read_limits(hf_reader *r, mr_recurrence *rule)
{
    const cJSON *list = mr_list(r, "time_step_limit"), *longest = list ? cJSON_GetArrayItem(list, 1) : NULL;
    rule->longest = INFINITY;
    if (!list) return;
    if (cJSON_GetArraySize(list) != 2 || !cJSON_IsNumber(list->child) || !cJSON_IsNumber(longest) ||
        !(list->child->valuedouble >= 0 && list->child->valuedouble <= longest->valuedouble)) {
        hf_fail(r, "its 'time_step_limit' is not a list of two numbers, the larger one last");
        return;
    }
    rule->shortest = list->child->valuedouble;
    rule->longest = longest->valuedouble;
}

static void read_mamba2(hf_reader *r, mr_config *c)
{
    const int64_t most = 1 << 14;
    c->recurrence = (mr_recurrence){ .rule = MR_MAMBA2,
                                     .heads = hf_number(r, "mamba_num_heads", 1, most, 128),
                                     .groups = hf_number(r, "n_groups", 1, most, 8),
                                     .key_dim = hf_number(r, "ssm_state_size", 1, most, 128),
                                     .value_dim = hf_number(r, "mamba_head_dim", 1, most, 64),
                                     .width = hf_number(r, "conv_kernel", 1, 64, 4),
                                     .bias = hf_flag(r, "use_bias", false),
                                     .conv_bias = hf_flag(r, "use_conv_bias", true) };
    check_groups(r, &c->recurrence, "mamba_num_heads", "n_groups");
    read_limits(r, &c->recurrence);
    read_pattern(r, c);
}

/* ---- experts ---- */

static bool listed(const cJSON *list, int64_t layer)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
        if (cJSON_IsNumber(item) && item->valuedouble == (double)layer) return true;
    return false;
}

static void read_qwen_experts(hf_reader *r, mr_config *c)
{
    const int64_t step = hf_number(r, "decoder_sparse_step", 1, 4096, 1);
    const cJSON *dense = mr_list(r, "mlp_only_layers");
    for (int64_t i = 0; i < c->layers; i++) c->sparse[i] = (i + 1) % step == 0 && !listed(dense, i);
    c->norm_topk = hf_flag(r, "norm_topk_prob", c->family->norm_topk);
    c->moe_intermediate = hf_number(r, "moe_intermediate_size", 1, 1 << 22, HF_NEEDED);
    if (mr_is(c, MR_SHARED))
        c->shared_intermediate = hf_number(r, "shared_expert_intermediate_size", 1, 1 << 22, HF_NEEDED);
}

static int64_t not_null(hf_reader *r, const char *field, int64_t low, int64_t high, int64_t missing)
{
    if (mr_is_null(r, field)) hf_fail(r, "its '%s' is null", field);
    return hf_number(r, field, low, high, missing);
}

static void read_dense_first(hf_reader *r, mr_config *c)
{
    const int64_t dense = not_null(r, "first_k_dense_replace", 0, 1 << 20, c->family->dense);
    for (int64_t i = 0; i < c->layers; i++) c->sparse[i] = i >= dense;
    const int64_t shared = mr_is_null(r, "n_shared_experts") ? 0 : hf_number(r, "n_shared_experts", 0, 1 << 10, 1);
    c->shared_intermediate = shared * hf_number(r, "moe_intermediate_size", 1, 1 << 22, HF_NEEDED);
}

static void read_deepseek_experts(hf_reader *r, mr_config *c)
{
    const mr_family *f = c->family;
    c->norm_topk = hf_flag(r, "norm_topk_prob", true);
    c->moe_intermediate = hf_number(r, "moe_intermediate_size", 1, 1 << 22, HF_NEEDED);
    if (mr_is(c, MR_FIRST_DENSE))
        read_dense_first(r, c);
    else
        c->shared_intermediate = hf_number(r, "moe_shared_expert_intermediate_size", 1, 1 << 22, HF_NEEDED);
    c->routed_scale = mr_real(r, "routed_scaling_factor", 0, 1e6, f->routed_scale);
    c->groups = not_null(r, "n_group", 1, c->experts, f->groups);
    c->groups_per_token = not_null(r, "topk_group", 1, c->groups, f->groups_per_token);
    if (r->why[0]) return;
    if (c->experts % c->groups || c->experts / c->groups < 2)
        hf_fail(r, "its %lld experts do not divide into %lld groups of two or more", (long long)c->experts,
                (long long)c->groups);
    else if (c->groups_per_token > c->groups)
        hf_fail(r, "it has no 'topk_group', and the usual %lld are more than its %lld groups",
                (long long)c->groups_per_token, (long long)c->groups);
    else if (c->experts_per_token > c->experts / c->groups * c->groups_per_token)
        hf_fail(r, "its 'num_experts_per_tok' is %lld, and the chosen groups have %lld",
                (long long)c->experts_per_token, (long long)(c->experts / c->groups * c->groups_per_token));
}

static void read_llama4_experts(hf_reader *r, mr_config *c)
{
    const int64_t step = hf_number(r, "interleave_moe_layer_step", 1, 1 << 20, 1);
    const cJSON *list = mr_list(r, "moe_layers");
    for (int64_t i = 0; i < c->layers; i++) c->sparse[i] = list ? listed(list, i) : (i + 1) % step == 0;
    c->moe_intermediate = c->shared_intermediate = hf_number(r, "intermediate_size", 1, 1 << 22, HF_NEEDED);
    c->norm_topk = false;
}

static bool any_sparse(const mr_config *c)
{
    bool any = false;
    for (int64_t i = 0; i < c->layers; i++) any |= c->sparse[i];
    return any;
}

static void read_experts(hf_reader *r, mr_config *c)
{
    const mr_family *f = c->family;
    c->routed_scale = 1;
    c->groups = 1;
    if (!f->experts || (mr_is(c, MR_NEMOTRON) && !any_sparse(c))) return;
    const int64_t other = hf_number(r, f->experts_too, 0, 1 << 14, f->expert_count);
    c->experts = hf_number(r, f->experts, 0, 1 << 14, other);
    if (!c->experts && any_sparse(c)) hf_fail(r, "it has layers of experts, and none of them");
    if (!c->experts) return;
    c->experts_per_token = hf_number(r, "num_experts_per_tok", 1, c->experts, f->experts_per_token);
    if (c->experts_per_token > c->experts)
        hf_fail(r, "it has no 'num_experts_per_tok', and the usual %lld are more than its %lld experts",
                (long long)c->experts_per_token, (long long)c->experts);
    c->moe_intermediate = c->intermediate;
    c->norm_topk = true;
    for (int64_t i = 0; i < c->layers && !mr_is(c, MR_NEMOTRON); i++) c->sparse[i] = true;
    if (mr_is(c, MR_GPT_OSS)) {
        c->swiglu_limit = mr_real(r, "swiglu_limit", 0, 1e6, 7);
        c->alpha = mr_real(r, "swiglu_alpha", 0, 1e3, 1.702);
    }
    if (mr_is(c, MR_EXPERT_LAYERS)) read_qwen_experts(r, c);
    if (mr_is(c, MR_FIRST_DENSE | MR_NEMOTRON)) read_deepseek_experts(r, c);
    if (mr_is(c, MR_EXPERT_STEP)) read_llama4_experts(r, c);
}

/* ---- a whole file ---- */

/* A text without a name inside of another model is that model's usual text. */
static const mr_family *family_named(const char *type, const char *outer)
{
    const mr_family *f;
    for (int i = 0; (f = mr_family_at(i)) != NULL; i++)
        if (type ? strcmp(f->type, type) == 0 : outer && f->outer && strcmp(f->outer, outer) == 0) return f;
    return NULL;
}

static bool find_family(hf_reader *r, mr_config *c)
{
    hf_reader inner;
    char known[400] = "";
    size_t used = 0;
    const mr_family *f;
    const char *outer = NULL;
    if (mr_inside(r, "text_config", &inner)) {
        outer = mr_word(r, "model_type", NULL);
        *r = inner;
    }
    const char *type = mr_word(r, "model_type", NULL);
    if (r->why[0]) return false;
    c->family = family_named(type, outer);
    if (!c->family && !type) return hf_fail(r, "it has no 'model_type'");
    for (int i = 0; (f = mr_family_at(i)) != NULL; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", f->type);
    if (!c->family) return hf_fail(r, "its 'model_type' is '%.64s'; supported are %s", type, known);
    snprintf(c->type, sizeof c->type, "%s", c->family->type);
    return true;
}

static void read_attention(hf_reader *r, mr_config *c)
{
    const mr_family *f = c->family;
    const double width = mr_is(c, MR_GEMMA) ? mr_real(r, "query_pre_attn_scalar", 1e-6, 1e9, 256) : (double)c->head_dim;
    c->attention_scale = c->unscaled ? 1 : 1 / sqrt(width);
    c->qk_norm = !f->qk_norm_field || hf_flag(r, f->qk_norm_field, f->qk_norm_usual) ? f->qk_norm : MR_QK_NONE;
    c->embed_scale = mr_is(c, MR_GEMMA) ? sqrt((double)c->hidden) : 1;
}

static bool read_config(hf_reader *r, mr_config *c)
{
    if (!cJSON_IsObject(r->root)) return hf_fail(r, "it is not a JSON object");
    if (!hf_check_text(r) || !find_family(r, c) || !hf_check_text(r)) return false;
    const hf_family own = { c->family->type, 0, 0, 0, NULL, 0 };
    r->family = &own;
    c->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
    if (mr_is(c, MR_GPT2))
        read_gpt2_sizes(r, c);
    else
        read_sizes(r, c);
    if (r->why[0]) return false;
    c->tied = hf_flag(r, "tie_word_embeddings", mr_is(c, MR_TIED));
    read_attention(r, c);
    read_biases(r, c);
    read_activation(r, c);
    check_fixed(r, c);
    mr_read_positions(r, c);
    if (!r->why[0]) read_windows(r, c);
    if (!r->why[0] && mr_is(c, MR_DELTA)) read_delta_rule(r, c);
    if (!r->why[0] && mr_is(c, MR_NEMOTRON)) read_mamba2(r, c);
    if (!r->why[0]) read_experts(r, c);
    return !r->why[0];
}

bool mr_config_parse(const char *text, size_t size, const char *name, mr_config *c, char *why)
{
    hf_reader r = { .name = name, .text = io_json_file(text, size), .family = hf_family_at(0), .why = why };
    why[0] = 0;
    memset(c, 0, sizeof *c);
    if (size > HF_MAX_FILE) return hf_fail(&r, "it has %zu bytes, more than any configuration", size);
    errno = 0;
    cJSON *root = io_json_tree(text, size, NULL);
    if (!root && io_memory_ran_out()) return hf_fail(&r, "there is not enough memory to read it");
    if (!root) return hf_fail(&r, "it is not JSON");
    r.root = root;
    const bool ok = read_config(&r, c);
    cJSON_Delete(root);
    return ok;
}

bool mr_config_read(const char *path, mr_config *c, char *why)
{
    io_map map;
    if (!io_map_open(path, &map, why)) return false;
    const bool ok = mr_config_parse((const char *)map.bytes, map.size, path, c, why);
    io_map_close(&map);
    return ok;
}

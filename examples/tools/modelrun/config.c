/* config.c - a Hugging Face config.json as the shape of a decoder; what is not supported is refused by name.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the configuration classes of transformers 4.45 to 5.0 (which fields there are, and their defaults) and
 * the modelling code beside them (what the fields mean).
 */
#include "model.h"

#include <math.h>

#include "io/hf_config.h"

/* ---- what the families differ in ---- */

/* A family in one to three lines. */
/* clang-format off */
static const mr_family family[] = {
    { .type = "llama", .eps = 1e-6, .theta = 10000, .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_MLP_BIAS_ASKED },
    { .type = "mistral", .kv_heads = 8, .eps = 1e-6, .theta = 10000, .flags = MR_WINDOW, .window = 4096 },
    { .type = "ministral", .kv_heads = 8, .eps = 1e-6, .theta = 10000, .flags = MR_WINDOW, .window = 4096 },
    { .type = "mixtral", .kv_heads = 8, .eps = 1e-5, .theta = 1e6, .flags = MR_WINDOW, /* if it is named */
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 8, .experts_per_token = 2 },
    { .type = "qwen2", .kv_heads = 32, .eps = 1e-6, .theta = 10000, .window = 4096, .first_window = 28,
      .flags = MR_BIAS | MR_WINDOW_ASKED },
    { .type = "qwen3", .kv_heads = 32, .eps = 1e-6, .theta = 10000, .head_dim = 128, .window = 4096,
      .first_window = 28, .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_QK_NORM | MR_WINDOW_ASKED },
    { .type = "qwen2_moe", .kv_heads = 16, .eps = 1e-6, .theta = 10000, .window = 4096, .first_window = 28,
      .experts = "num_experts", .experts_too = "num_local_experts", .expert_count = 60, .experts_per_token = 4,
      .flags = MR_BIAS_QKV | MR_WINDOW_ASKED | MR_WINDOW_EVERY_SECOND | MR_EXPERT_LAYERS | MR_SHARED },
    { .type = "qwen3_moe", .kv_heads = 4, .eps = 1e-6, .theta = 10000, .window = 4096,
      .experts = "num_experts", .experts_too = "num_local_experts", .expert_count = 128, .experts_per_token = 8,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_QK_NORM | MR_WINDOW_ALL_ASKED | MR_EXPERT_LAYERS },
    { .type = "gpt_oss", .kv_heads = 8, .eps = 1e-5, .theta = 150000, .head_dim = 64, .window = 128,
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 128, .experts_per_token = 4,
      .flags = MR_BIAS_DEFAULT | MR_SINKS | MR_GPT_OSS | MR_WINDOW_EVERY_SECOND },
    { .type = "gpt2", .eps = 1e-5, .flags = MR_GPT2 | MR_TIED },
    { .type = "srlab_char", .eps = 1e-6, .flags = MR_PLACES },
};
/* clang-format on */

enum { FAMILIES = sizeof family / sizeof family[0] };

static bool has(const mr_config *c, int flag) { return (c->family->flags & flag) != 0; }

/* ---- fields ---- */

static double real(hf_reader *r, const char *field, double low, double high, double missing)
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

static const char *word(hf_reader *r, const char *field, const char *missing)
{
    io_json digits;
    const cJSON *item = hf_field(r, field, &digits);
    if (!item) return missing;
    if (!cJSON_IsString(item)) return hf_fail(r, "its '%s' is not a name", field), missing;
    return item->valuestring;
}

/* An object of the file, to be read as the file is; false when there is none. */
static bool inside(hf_reader *r, const char *field, hf_reader *object)
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

/* ---- positions ---- */

static void read_llama3(hf_reader *r, const mr_config *c, mr_rope_rule *rope)
{
    rope->low_freq = real(r, "low_freq_factor", 1e-6, 1e6, 1);
    rope->high_freq = real(r, "high_freq_factor", 1e-6, 1e6, 4);
    rope->original = real(r, "original_max_position_embeddings", 1, 1e9, (double)c->positions);
    if (rope->high_freq <= rope->low_freq)
        hf_fail(r, "its 'high_freq_factor' %.6g is not above its 'low_freq_factor' %.6g", rope->high_freq,
                rope->low_freq);
}

/* 0.1 m ln(factor) + 1, what YaRN multiplies attention by. */
static double yarn_scale(double factor, double m) { return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1; }

static void read_yarn(hf_reader *r, const mr_config *c, mr_rope_rule *rope)
{
    rope->original = real(r, "original_max_position_embeddings", 1, 1e9, (double)c->positions);
    rope->beta_fast = real(r, "beta_fast", 0, 1e6, 32);
    rope->beta_slow = real(r, "beta_slow", 0, 1e6, 1);
    if (rope->beta_fast == 0) rope->beta_fast = 32;
    if (rope->beta_slow == 0) rope->beta_slow = 1;
    rope->truncate = hf_flag(r, "truncate", true);
    if (rope->factor == 0) rope->factor = fmax(1, (double)c->positions / rope->original);
    const double m = real(r, "mscale", 0, 1e6, 0), all = real(r, "mscale_all_dim", 0, 1e6, 0);
    const double usual =
        m > 0 && all > 0 ? yarn_scale(rope->factor, m) / yarn_scale(rope->factor, all) : yarn_scale(rope->factor, 1);
    rope->attention = real(r, "attention_factor", 1e-6, 1e6, usual);
}

static void read_linear(hf_reader *r, const mr_config *c, mr_rope_rule *rope)
{
    (void)c;
    if (rope->factor == 0) hf_fail(r, "its scaling of positions has no 'factor'");
}

/* Up to max_position_embeddings, and no text goes beyond, "dynamic" changes nothing. */
static const struct {
    const char *name;
    mr_rope kind;
    void (*read)(hf_reader *r, const mr_config *c, mr_rope_rule *rope);
} rope_kind[] = {
    { "default", MR_ROPE_DEFAULT, NULL },      { "dynamic", MR_ROPE_DEFAULT, NULL },
    { "linear", MR_ROPE_LINEAR, read_linear }, { "llama3", MR_ROPE_LLAMA3, read_llama3 },
    { "yarn", MR_ROPE_YARN, read_yarn },
};

static void read_rope_object(hf_reader *r, const mr_config *c, mr_rope_rule *rope)
{
    enum { kinds = sizeof rope_kind / sizeof rope_kind[0] };
    const char *type = word(r, "rope_type", word(r, "type", "default"));
    int i = 0;
    while (i < kinds && strcmp(rope_kind[i].name, type) != 0) i++;
    if (i == kinds) {
        hf_fail(r, "its scaling of positions is '%.64s'; known are default, dynamic, linear, llama3 and yarn", type);
        return;
    }
    rope->kind = rope_kind[i].kind;
    rope->theta = real(r, "rope_theta", 1, 1e12, rope->theta);
    rope->factor = real(r, "factor", 1e-6, 1e6, 0);
    if (rope_kind[i].read) rope_kind[i].read(r, c, rope);
    if (rope->factor == 0) rope->factor = 1;
    if (real(r, "partial_rotary_factor", 0, 1, 1) != 1)
        hf_fail(r, "its 'partial_rotary_factor' is not 1, and heads that turn in part are not supported");
}

/* Of rope_parameters (transformers 5) or rope_theta and rope_scaling. */
static void read_rope(hf_reader *r, mr_config *c)
{
    hf_reader object, nested;
    mr_rope_rule *rope = &c->rope;
    if (has(c, MR_GPT2 | MR_PLACES)) return;
    rope->kind = MR_ROPE_DEFAULT;
    rope->theta = real(r, "rope_theta", 1, 1e12, c->family->theta);
    rope->factor = rope->attention = 1;
    if (real(r, "partial_rotary_factor", 0, 1, 1) != 1)
        hf_fail(r, "its 'partial_rotary_factor' is not 1, and heads that turn in part are not supported");
    if (inside(r, "rope_parameters", &object)) {
        if (inside(&object, "full_attention", &nested) || inside(&object, "sliding_attention", &nested))
            hf_fail(r, "its 'rope_parameters' differ by the kind of layer, which is not supported");
        read_rope_object(&object, c, rope);
    } else if (inside(r, "rope_scaling", &object))
        read_rope_object(&object, c, rope);
    else if (has(c, MR_GPT_OSS)) /* the class's own default */
        *rope = (mr_rope_rule){ .kind = MR_ROPE_YARN,
                                .theta = rope->theta,
                                .factor = 32,
                                .original = 4096,
                                .beta_fast = 32,
                                .beta_slow = 1,
                                .attention = yarn_scale(32, 1) };
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
    c->head_dim = c->hidden / c->heads;
    c->eps = real(r, "layer_norm_epsilon", 0, 1, 1e-5);
    c->scale_by_layer = hf_flag(r, "scale_attn_by_inverse_layer_idx", false);
    c->unscaled = !hf_flag(r, "scale_attn_weights", true);
    refuse_flag(r, "add_cross_attention", false, false, "attention to an encoder");
}

static void read_sizes(hf_reader *r, mr_config *c)
{
    c->layers = hf_number(r, "num_hidden_layers", 1, MR_LAYERS, HF_NEEDED);
    c->hidden = hf_number(r, "hidden_size", 1, 1 << 20, HF_NEEDED);
    c->heads = hf_number(r, "num_attention_heads", 1, 1 << 14, HF_NEEDED);
    const bool alike = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(r->root, "num_key_value_heads"));
    c->kv_heads =
        hf_number(r, "num_key_value_heads", 1, 1 << 14, c->family->kv_heads && !alike ? c->family->kv_heads : c->heads);
    const int64_t usual = c->family->head_dim ? c->family->head_dim : c->hidden / c->heads;
    c->head_dim = hf_number(r, "head_dim", 1, 1 << 14, usual > 0 ? usual : 1);
    c->positions = hf_number(r, "max_position_embeddings", 1, 1 << 30, 1 << 30);
    if (has(c, MR_PLACES) && c->positions == 1 << 30) hf_fail(r, "it has no 'max_position_embeddings'");
    c->intermediate = hf_number(r, "intermediate_size", 1, 1 << 22, HF_NEEDED);
    c->eps = real(r, "rms_norm_eps", 0, 1, c->family->eps);
    if (!r->why[0] && c->heads % c->kv_heads)
        hf_fail(r, "its %lld attention heads do not divide by its %lld heads of keys", (long long)c->heads,
                (long long)c->kv_heads);
    if (!r->why[0] && c->head_dim % 2) hf_fail(r, "its 'head_dim' %lld is odd", (long long)c->head_dim);
}

static void read_biases(hf_reader *r, mr_config *c)
{
    const bool asked = hf_flag(r, "attention_bias", has(c, MR_BIAS_DEFAULT));
    c->qkv_bias = has(c, MR_BIAS | MR_GPT2) || (has(c, MR_BIAS_ASKED | MR_BIAS_DEFAULT) && asked) ||
                  (has(c, MR_BIAS_QKV) && hf_flag(r, "qkv_bias", true));
    c->o_bias = has(c, MR_GPT2) || (has(c, MR_O_BIAS_ASKED | MR_BIAS_DEFAULT) && asked);
    c->mlp_bias = has(c, MR_GPT2 | MR_GPT_OSS) || (has(c, MR_MLP_BIAS_ASKED) && hf_flag(r, "mlp_bias", false));
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
    };
    const bool gpt2 = has(c, MR_GPT2);
    const char *field = gpt2 ? "activation_function" : "hidden_act", *name = word(r, field, gpt2 ? "gelu_new" : "silu");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].name, name) == 0) {
            c->act = row[i].act;
            return;
        }
    hf_fail(r, "its '%s' is '%.64s'; known are silu, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu and relu", field,
            name);
}

/* ---- layers that differ ---- */

/* Is layer i named "sliding_attention"? -1: nothing is named. */
static int named_window(hf_reader *r, const mr_config *c, int64_t i)
{
    io_json text;
    const cJSON *types = hf_field(r, "layer_types", &text);
    if (!types) return -1;
    if (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != c->layers)
        return hf_fail(r, "its 'layer_types' is not a list of %lld names", (long long)c->layers), 0;
    const cJSON *type = cJSON_GetArrayItem(types, (int)i);
    if (cJSON_IsString(type) && strcmp(type->valuestring, "sliding_attention") == 0) return 1;
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "full_attention") != 0)
        hf_fail(r, "its 'layer_types' has '%.64s'; known are full_attention and sliding_attention",
                cJSON_IsString(type) ? type->valuestring : "what is no name");
    return 0;
}

static void read_windows(hf_reader *r, mr_config *c)
{
    const bool asked = has(c, MR_WINDOW_ASKED | MR_WINDOW_ALL_ASKED);
    if (!has(c, MR_WINDOW | MR_WINDOW_ASKED | MR_WINDOW_ALL_ASKED | MR_WINDOW_EVERY_SECOND)) return;
    if (asked && !hf_flag(r, "use_sliding_window", false)) return;
    io_json text;
    const bool null = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(r->root, "sliding_window"));
    const int64_t usual_window = hf_field(r, "sliding_window", &text) ? 1 : c->family->window;
    const int64_t window = null ? 0 : hf_number(r, "sliding_window", 1, INT32_MAX, usual_window);
    const int64_t first =
        has(c, MR_WINDOW_ASKED) ? hf_number(r, "max_window_layers", 0, 1 << 20, c->family->first_window) : 0;
    for (int64_t i = 0; i < c->layers && !r->why[0]; i++) {
        const int named = named_window(r, c, i);
        const bool usual = !has(c, MR_WINDOW_EVERY_SECOND) ? i >= first : i % 2 == 0 && (!asked || i < first);
        c->window[i] = (int32_t)(named == 1 || (named < 0 && usual) ? window : 0);
    }
}

static bool listed(hf_reader *r, const char *field, int64_t layer)
{
    io_json text;
    const cJSON *list = hf_field(r, field, &text), *item;
    if (list && !cJSON_IsArray(list)) return hf_fail(r, "its '%s' is not a list", field);
    cJSON_ArrayForEach(item, list)
        if (cJSON_IsNumber(item) && item->valuedouble == (double)layer) return true;
    return false;
}

static void read_experts(hf_reader *r, mr_config *c)
{
    const mr_family *f = c->family;
    if (!f->experts) return;
    const int64_t other = hf_number(r, f->experts_too, 0, 1 << 14, f->expert_count);
    c->experts = hf_number(r, f->experts, 0, 1 << 14, other);
    if (!c->experts) return;
    c->experts_per_token = hf_number(r, "num_experts_per_tok", 1, c->experts, f->experts_per_token);
    c->moe_intermediate = c->intermediate;
    c->norm_topk = true;
    if (has(c, MR_GPT_OSS)) {
        c->swiglu_limit = real(r, "swiglu_limit", 0, 1e6, 7);
        c->alpha = real(r, "swiglu_alpha", 0, 1e3, 1.702);
    }
    const int64_t step = has(c, MR_EXPERT_LAYERS) ? hf_number(r, "decoder_sparse_step", 1, 4096, 1) : 1;
    for (int64_t i = 0; i < c->layers; i++)
        c->sparse[i] = (i + 1) % step == 0 && !(has(c, MR_EXPERT_LAYERS) && listed(r, "mlp_only_layers", i));
    if (!has(c, MR_EXPERT_LAYERS)) return;
    c->norm_topk = hf_flag(r, "norm_topk_prob", false);
    c->moe_intermediate = hf_number(r, "moe_intermediate_size", 1, 1 << 22, HF_NEEDED);
    if (has(c, MR_SHARED))
        c->shared_intermediate = hf_number(r, "shared_expert_intermediate_size", 1, 1 << 22, HF_NEEDED);
}

/* ---- a whole file ---- */

static bool find_family(hf_reader *r, mr_config *c)
{
    hf_reader inner;
    char known[200] = "";
    size_t used = 0;
    if (inside(r, "text_config", &inner)) *r = inner;
    const char *type = word(r, "model_type", NULL);
    if (r->why[0]) return false;
    if (!type) return hf_fail(r, "it has no 'model_type'");
    for (int i = 0; i < FAMILIES; i++) {
        if (strcmp(family[i].type, type) == 0) c->family = &family[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", family[i].type);
    }
    if (!c->family) return hf_fail(r, "its 'model_type' is '%.64s'; supported are %s", type, known);
    snprintf(c->type, sizeof c->type, "%s", type);
    return true;
}

static bool read_config(hf_reader *r, mr_config *c)
{
    if (!cJSON_IsObject(r->root)) return hf_fail(r, "it is not a JSON object");
    if (!hf_check_text(r) || !find_family(r, c) || !hf_check_text(r)) return false;
    c->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
    if (has(c, MR_GPT2))
        read_gpt2_sizes(r, c);
    else
        read_sizes(r, c);
    if (r->why[0]) return false;
    c->tied = hf_flag(r, "tie_word_embeddings", has(c, MR_TIED));
    c->attention_scale = c->unscaled ? 1 : 1 / sqrt((double)c->head_dim);
    read_biases(r, c);
    read_activation(r, c);
    read_rope(r, c);
    if (!r->why[0]) read_windows(r, c);
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

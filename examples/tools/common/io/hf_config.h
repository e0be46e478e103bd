/* hf_config.h - reads the config.json that Hugging Face models ship into a trn_model.
 * SPDX-License-Identifier: MIT
 *
 *     #include "hf_config.h"
 *     int main(int argc, char **argv) {
 *         trn_model model;
 *         char why[HF_WHY];
 *         if (argc < 2 || !hf_config_read(argv[1], &model, why)) return fprintf(stderr, "%s\n", why), 2;
 *         printf("%s: %lld layers\n", model.name, (long long)model.layers);
 *         return 0;
 *     }
 *
 * DOES: the decoder families of the table below, by model_type, and the encoders bert, roberta and vit, with the head
 *     that "architectures" names; a recommender in the words of torchrec's DLRM, for which there is no configuration of
 *     transformers (model_type dlrm: our name); a text_config inside a multi-modal configuration; every failure is one
 *     sentence that names the file, the field and what is wrong with it. The text is what Python's json reads.
 * DOES NOT: guess an architecture that it does not know, read weights, or count multi-token prediction heads, vision
 *     towers and quantisation scales.
 *
 * CONTENTS
 *     hf_config_parse   a file's text in memory
 *     hf_config_read    a file, or standard input when its name is "-"
 *     hf_family_at      the names that are known
 *
 * KNOWN FROM: the configuration classes of transformers 4.57 (which fields there are, and their defaults) and the
 *     modelling code beside them (which projections have biases). Needs cJSON (libcjson-dev).
 */
#ifndef HF_CONFIG_H
#define HF_CONFIG_H

#include <errno.h>

#include <trnmath/trn_plan.h>

#include "io.h"
#include "json.h"

#define HF_FN static inline __attribute__((unused))

enum { HF_WHY = 512, HF_MAX_FILE = 4 * 1024 * 1024 };

/* ---- what the families differ in ---- */

enum {
    HF_QKV_BIAS = 1, /* always */
    HF_O_BIAS = 2,
    HF_MLP_BIAS = 4,
    HF_NORM_BIAS = 8,
    HF_QK_NORM = 16,
    HF_PLAIN_MLP = 32,
    HF_TIED = 64, /* unless the file says otherwise */
    HF_SINKS = 128,
    HF_ROUTER_BIAS = 256,
    HF_LATENT = 512,
    HF_SHARED_GATE = 1024,
    HF_GPT2 = 2048,            /* its own names for everything */
    HF_ALL_SPARSE = 4096,      /* every layer has experts, of intermediate_size */
    HF_EXPERT_LAYERS = 8192,   /* decoder_sparse_step, mlp_only_layers */
    HF_WINDOW = 16384,         /* sliding_window holds for every layer */
    HF_WINDOW_ASKED = 32768,   /* only with use_sliding_window */
    HF_LLAMA4 = 65536,         /* its own names for windows, dense blocks and which layers have experts */
    HF_FIRST_DENSE = 131072,   /* first_k_dense_replace; n_shared_experts of the same width as the others */
    HF_NO_O_BIAS = 262144,     /* attention_bias is that of queries, keys and values */
    HF_QK_NORM_ASKED = 524288, /* use_qk_norm */
    HF_DELTA_RULE = 1048576,   /* gated delta rule in most layers, attention with a gate in the others */
    HF_MAMBA2 = 2097152,
    HF_ENCODER = 4194304, /* every token sees all others; what is at the end: "architectures" */
    HF_IMAGES = 8388608,  /* of patches in place of words */
    HF_PADDED = 16777216, /* the first two positions are never used */
    HF_TABLES = 33554432  /* no transformer */
};

typedef struct hf_family {
    const char *type;
    int flags;
    int norms;           /* of [hidden] in a layer */
    int full_every;      /* one layer in so many sees everything, the others a window; 0 = see flags */
    const char *experts; /* the field with their number; NULL = dense */
} hf_family;

/* The row number index; NULL after the last one. */
HF_FN const hf_family *hf_family_at(int index)
{
    static const hf_family row[] = {
        { "llama", 0, 2, 0, NULL },
        { "granite", 0, 2, 0, NULL },
        { "phi3", 0, 2, 0, NULL },
        { "mistral", HF_WINDOW, 2, 0, NULL },
        { "mixtral", HF_ALL_SPARSE | HF_WINDOW, 2, 0, "num_local_experts" },
        { "qwen2", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL },
        { "qwen2_moe", HF_QKV_BIAS | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_WINDOW_ASKED, 2, 0, "num_experts" },
        { "qwen3", HF_QK_NORM | HF_WINDOW_ASKED, 2, 0, NULL },
        { "qwen3_moe", HF_QK_NORM | HF_EXPERT_LAYERS | HF_WINDOW_ASKED, 2, 0, "num_experts" },
        { "qwen3_next", HF_QK_NORM | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_DELTA_RULE, 2, 0, "num_experts" },
        { "llama4_text", HF_ALL_SPARSE | HF_LLAMA4, 2, 4, "num_local_experts" },
        { "glm4_moe", HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_NO_O_BIAS | HF_QK_NORM_ASKED, 2, 0, "n_routed_experts" },
        { "deepseek_v2", HF_LATENT | HF_FIRST_DENSE, 2, 0, "n_routed_experts" },
        { "deepseek_v3", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts" },
        { "kimi_k2", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts" },
        { "gemma", HF_TIED, 2, 0, NULL },
        { "gemma2", HF_TIED, 4, 2, NULL },
        { "gemma3_text", HF_TIED | HF_QK_NORM, 4, 6, NULL },
        { "gpt_oss", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_ROUTER_BIAS | HF_SINKS | HF_ALL_SPARSE, 2, 2,
          "num_local_experts" },
        { "gpt_neox", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "mamba2", HF_MAMBA2, 1, 0, NULL },
        { "bert", HF_ENCODER | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL },
        { "roberta",
          HF_ENCODER | HF_PADDED | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL },
        { "vit", HF_ENCODER | HF_IMAGES | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "dlrm", HF_TABLES, 0, 0, NULL },
        { "gpt2", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED | HF_GPT2, 2, 0, NULL },
    };
    return index >= 0 && index < (int)(sizeof row / sizeof row[0]) ? &row[index] : NULL;
}

/* ---- fields ---- */

typedef struct hf_reader {
    const char *name;
    const cJSON *root;
    io_json text; /* of the same object: numbers are read from their digits */
    const hf_family *family;
    char *why; /* [HF_WHY]; empty until something is wrong */
} hf_reader;

__attribute__((unused, format(printf, 2, 3))) static bool hf_fail(hf_reader *r, const char *format, ...)
{
    va_list list;
    if (r->why[0]) return false; /* the first thing wrong is told */
    io_say_in(r->why, HF_WHY, IO_SAID, "%.200s: ", r->name);
    const size_t n = strlen(r->why);
    va_start(list, format);
    io_say_list(r->why + n, HF_WHY - n, IO_SAID, format, list);
    va_end(list);
    return false;
}

/* NULL for a field that is missing or null; of two the last one, as the tree has it. */
HF_FN const cJSON *hf_field(hf_reader *r, const char *field, io_json *digits)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->root, field);
    return item && io_json_last(r->text, field, digits) && !cJSON_IsNull(item) ? item : NULL;
}

enum { HF_NEEDED = -1 };

/* A whole number from low to high; `missing` when there is none (HF_NEEDED: that is an error). */
HF_FN int64_t hf_number(hf_reader *r, const char *field, int64_t low, int64_t high, int64_t missing)
{
    io_json digits;
    uint64_t number = 0;
    const cJSON *item = hf_field(r, field, &digits);
    if (!item) {
        if (missing == HF_NEEDED) hf_fail(r, "it has no '%s', which %s needs", field, r->family->type);
        return missing;
    }
    const double x = item->valuedouble;
    if (!cJSON_IsNumber(item))
        hf_fail(r, "its '%s' is not a number", field);
    else if (!(x >= (double)low && x <= (double)high))
        hf_fail(r, "its '%s' is %.17g; expected %lld to %lld", field, x, (long long)low, (long long)high);
    else if (!io_json_whole(&digits, &number))
        hf_fail(r, "its '%s' is %s, not a whole number in plain digits", field, io_json_show(&digits).text);
    else
        return (int64_t)number;
    return low;
}

HF_FN bool hf_flag(hf_reader *r, const char *field, bool missing)
{
    io_json text;
    const cJSON *item = hf_field(r, field, &text);
    if (!item) return missing;
    if (!cJSON_IsBool(item)) hf_fail(r, "its '%s' is neither true nor false", field);
    return cJSON_IsTrue(item);
}

HF_FN bool hf_has(const hf_reader *r, int flag) { return (r->family->flags & flag) != 0; }

/* ---- parts of a model ---- */

/* What a family calls the sizes that every model has. */
typedef struct hf_names {
    int flag;
    const char *layers, *hidden, *heads, *intermediate;
} hf_names;

HF_FN const hf_names *hf_names_of(const hf_reader *r)
{
    static const hf_names name[] = {
        { HF_GPT2, "n_layer", "n_embd", "n_head", "n_inner" },
        { HF_MAMBA2, "num_hidden_layers", "hidden_size", "num_heads", NULL },
        { 0, "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size" },
    };
    int i = 0;
    while (name[i].flag && !hf_has(r, name[i].flag)) i++;
    return &name[i];
}

HF_FN void hf_read_sizes(hf_reader *r, trn_model *m)
{
    const bool gpt2 = hf_has(r, HF_GPT2);
    const hf_names *name = hf_names_of(r);
    m->layers = hf_number(r, name->layers, 1, 4096, HF_NEEDED);
    m->hidden = hf_number(r, name->hidden, 1, 1 << 20, HF_NEEDED);
    m->heads = hf_number(r, name->heads, 1, 1 << 14, HF_NEEDED);
    if (!hf_has(r, HF_IMAGES)) m->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
    if (name->intermediate)
        m->intermediate = hf_number(r, name->intermediate, 1, 1 << 22, gpt2 ? 4 * m->hidden : HF_NEEDED);
    const bool alike = gpt2 || hf_has(r, HF_ENCODER); /* every head has its own keys, and the usual width */
    m->kv_heads = alike ? 0 : hf_number(r, "num_key_value_heads", 1, 1 << 14, 0);
    m->head_dim = alike ? 0 : hf_number(r, "head_dim", 1, 1 << 14, 0);
    if (gpt2) m->positions = hf_number(r, "n_positions", 1, 1 << 24, 1024);
    m->tied_embeddings = hf_flag(r, "tie_word_embeddings", hf_has(r, HF_TIED));
}

HF_FN void hf_read_biases(hf_reader *r, trn_model *m)
{
    const bool attention = hf_flag(r, "attention_bias", false);
    m->qkv_bias = hf_has(r, HF_QKV_BIAS) || attention;
    m->o_bias = hf_has(r, HF_O_BIAS) || (attention && !hf_has(r, HF_QKV_BIAS | HF_NO_O_BIAS));
    m->mlp_bias = hf_has(r, HF_MLP_BIAS) || hf_flag(r, "mlp_bias", false);
    m->norm_bias = hf_has(r, HF_NORM_BIAS);
    m->router_bias = hf_has(r, HF_ROUTER_BIAS);
    m->qk_norm = hf_has(r, HF_QK_NORM) || (hf_has(r, HF_QK_NORM_ASKED) && hf_flag(r, "use_qk_norm", false));
    m->gated_attention = hf_has(r, HF_DELTA_RULE);
    m->plain_mlp = hf_has(r, HF_PLAIN_MLP);
    m->sinks = hf_has(r, HF_SINKS);
    m->norms = r->family->norms;
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
        const int64_t first = hf_number(r, "first_k_dense_replace", 0, 4096, 0);
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
        const int64_t shared = hf_number(r, "n_shared_experts", 0, 4096, 0);
        if (shared * m->moe_intermediate > 1 << 22)
            hf_fail(r, "its 'n_shared_experts' is %lld", (long long)shared);
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
        found += strcmp(item->valuestring, type) == 0 || strcmp(item->valuestring, other) == 0;
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

/* A chunk counts as a window of its length: a little more than its tokens see on average. */
HF_FN int64_t hf_window_layers(hf_reader *r, const trn_model *m)
{
    const int every = r->family->full_every;
    const int64_t missing = hf_has(r, HF_LLAMA4) ? hf_rotated_layers(r, m)
                            : every              ? m->layers - m->layers / every
                                                 : m->layers;
    return hf_layers_of_type(r, m, "sliding_attention", "chunked_attention", missing);
}

HF_FN void hf_read_window(hf_reader *r, trn_model *m)
{
    const bool windowed = hf_has(r, HF_WINDOW_ASKED) && hf_flag(r, "use_sliding_window", false);
    const char *field = hf_has(r, HF_LLAMA4) ? "attention_chunk_size" : "sliding_window";
    if (!r->family->full_every && !hf_has(r, HF_WINDOW) && !windowed) return;
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

/* ---- encoders ---- */

/* What transformers' classes put on an encoder. */
typedef struct hf_end {
    const char *type, *name;
    bool pooler, masked, classes;
} hf_end;

/* NULL: a class that is not known. Without a name the encoder is meant by itself, which is the first of its type. */
HF_FN const hf_end *hf_end_of(hf_reader *r)
{
    static const hf_end row[] = {
        { "bert", "BertModel", true, false, false },
        { "bert", "BertForMaskedLM", false, true, false },
        { "bert", "BertForSequenceClassification", true, false, true },
        { "roberta", "RobertaModel", true, false, false },
        { "roberta", "RobertaForMaskedLM", false, true, false },
        { "roberta", "RobertaForSequenceClassification", true, false, true },
        { "vit", "ViTModel", true, false, false },
        { "vit", "ViTForImageClassification", false, false, true },
    };
    io_json text;
    const cJSON *list = hf_field(r, "architectures", &text), *name = cJSON_IsArray(list) ? list->child : NULL;
    char known[200] = "";
    size_t used = 0;
    if (list && (!name || name->next || !cJSON_IsString(name)))
        return hf_fail(r, "its 'architectures' is not a list of one name"), NULL;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].type, r->family->type) != 0) continue;
        if (!name || strcmp(row[i].name, name->valuestring) == 0) return &row[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", row[i].name);
    }
    hf_fail(r, "its 'architectures' is '%.64s'; known are %s", name ? name->valuestring : "", known);
    return NULL;
}

/* As transformers counts them: the names of classes, or num_labels, or two. */
HF_FN int64_t hf_classes(hf_reader *r)
{
    io_json text;
    const cJSON *names = hf_field(r, "id2label", &text);
    if (!names) return hf_number(r, "num_labels", 1, 1 << 24, 2);
    if (!cJSON_IsObject(names) || !names->child) return hf_fail(r, "its 'id2label' names no classes"), 0;
    return cJSON_GetArraySize(names);
}

HF_FN void hf_read_patches(hf_reader *r, trn_model *m)
{
    const int64_t image = hf_number(r, "image_size", 1, 1 << 16, HF_NEEDED);
    const int64_t patch = hf_number(r, "patch_size", 1, 1 << 12, HF_NEEDED);
    const int64_t channels = hf_number(r, "num_channels", 1, 1 << 10, HF_NEEDED);
    m->qkv_bias = hf_flag(r, "qkv_bias", true);
    if (r->why[0]) return;
    if (image % patch)
        hf_fail(r, "its 'image_size' %lld does not divide by its 'patch_size' %lld", (long long)image,
                (long long)patch);
    m->patch_inputs = patch * patch * channels;
    m->positions = m->longest = image / patch * (image / patch) + 1; /* the class token */
    if (m->pooler && hf_number(r, "pooler_output_size", 1, 1 << 20, m->hidden) != m->hidden)
        hf_fail(r, "its 'pooler_output_size' is not its 'hidden_size', and only such poolers are counted");
}

HF_FN void hf_read_words(hf_reader *r, trn_model *m)
{
    io_json text;
    const int64_t unused = hf_has(r, HF_PADDED) ? 2 : 0;
    const cJSON *kind = hf_field(r, "position_embedding_type", &text);
    m->positions = hf_number(r, "max_position_embeddings", 1 + unused, 1 << 24, HF_NEEDED);
    m->longest = m->positions - unused;
    m->token_types = hf_number(r, "type_vocab_size", 1, 1 << 20, 2);
    if (hf_flag(r, "is_decoder", false)) hf_fail(r, "its 'is_decoder' is true, but %s is an encoder", r->family->type);
    if (kind && (!cJSON_IsString(kind) || strcmp(kind->valuestring, "absolute") != 0))
        hf_fail(r, "its 'position_embedding_type' is not 'absolute', and no other is counted");
}

HF_FN void hf_read_encoder(hf_reader *r, trn_model *m)
{
    if (!hf_has(r, HF_ENCODER)) return;
    const hf_end *end = hf_end_of(r);
    if (!end) return;
    m->bidirectional = true;
    m->pooler = end->pooler;
    m->masked_head = end->masked;
    if (end->classes) m->classes = hf_classes(r);
    if (hf_has(r, HF_IMAGES))
        hf_read_patches(r, m);
    else
        hf_read_words(r, m);
}

/* ---- recommenders ---- */

/* A list of low to high numbers, of which there may be `most`; 0 and a sentence when it is none. */
HF_FN int hf_numbers(hf_reader *r, const char *field, int64_t high, int most, int64_t *out)
{
    io_json text;
    uint64_t x = 0;
    int count = 0;
    const cJSON *list = hf_field(r, field, &text);
    if (!list) return hf_fail(r, "it has no '%s', which %s needs", field, r->family->type), 0;
    if (!cJSON_IsArray(list)) return hf_fail(r, "its '%s' is not a list", field), 0;
    for (io_json j = io_json_list(&text); io_json_next(&j); out[count++] = (int64_t)x) {
        if (!io_json_whole(&j, &x) || x < 1 || x > (uint64_t)high)
            return hf_fail(r, "its '%s' is not a list of numbers from 1 to %lld", field, (long long)high), 0;
        if (count == most) return hf_fail(r, "its '%s' has more than %d numbers", field, most), 0;
    }
    if (!count) hf_fail(r, "its '%s' is empty", field);
    return count;
}

/* How embeddings and dense numbers meet: torchrec's "original" (dot products) or "dcn". */
HF_FN void hf_read_interaction(hf_reader *r, trn_model *m)
{
    io_json text;
    const cJSON *kind = hf_field(r, "interaction_type", &text);
    if (!kind || (cJSON_IsString(kind) && strcmp(kind->valuestring, "original") == 0)) return;
    if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "dcn") != 0) {
        hf_fail(r, "its 'interaction_type' is neither 'original' nor 'dcn', and no other is planned");
        return;
    }
    m->cross_layers = hf_number(r, "dcn_num_layers", 1, 64, HF_NEEDED);
    m->cross_rank = hf_number(r, "dcn_low_rank_dim", 1, 1 << 20, HF_NEEDED);
}

HF_FN void hf_read_tables(hf_reader *r, trn_model *m)
{
    io_json text;
    m->longest = 1;
    m->tables = hf_numbers(r, "num_embeddings_per_feature", INT64_C(1) << 40, TRN_MODEL_TABLES, m->table_rows);
    m->hidden = hf_number(r, "embedding_dim", 1, 1 << 20, HF_NEEDED);
    m->dense_inputs = hf_number(r, "dense_in_features", 1, 1 << 20, HF_NEEDED);
    hf_numbers(r, "dense_arch_layer_sizes", 1 << 20, TRN_MODEL_WIDTHS, m->dense_widths);
    hf_numbers(r, "over_arch_layer_sizes", 1 << 20, TRN_MODEL_WIDTHS, m->over_widths);
    hf_read_interaction(r, m);
    for (int i = 0; i < (int)m->tables; i++) m->table_lookups[i] = 1;
    if (r->why[0] || !hf_field(r, "multi_hot_sizes", &text)) return;
    const int sizes = hf_numbers(r, "multi_hot_sizes", 1 << 20, TRN_MODEL_TABLES, m->table_lookups);
    if (sizes && sizes != m->tables)
        hf_fail(r, "its 'multi_hot_sizes' has %d numbers, but 'num_embeddings_per_feature' %d", sizes, (int)m->tables);
}

/* ---- a whole file ---- */

/* The part that describes the language model, and its family. */
HF_FN bool hf_find_family(hf_reader *r)
{
    char known[400] = "";
    size_t used = 0;
    io_json text;
    const cJSON *inner = hf_field(r, "text_config", &text);
    if (cJSON_IsObject(inner)) {
        r->root = inner;
        r->text = io_json_members(&text);
    }
    const cJSON *type = hf_field(r, "model_type", &text);
    if (!type) return hf_fail(r, "it has no 'model_type'");
    if (!cJSON_IsString(type)) return hf_fail(r, "its 'model_type' is not a name");
    for (int i = 0; (r->family = hf_family_at(i)) != NULL; i++) {
        if (strcmp(r->family->type, type->valuestring) == 0) return true;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", r->family->type);
    }
    return hf_fail(r, "its 'model_type' is '%.64s'; known are %s", type->valuestring, known);
}

/* models/llama-3-8b.json is llama-3-8b, llama-3-8b/config.json too. */
HF_FN void hf_name_of(const char *path, char *name, size_t size)
{
    const char *base = strrchr(path, '/'), *from = base ? base + 1 : path, *end = strrchr(from, '.');
    if (strcmp(from, "config.json") == 0 && base) {
        end = base;
        for (from = base; from > path && from[-1] != '/';) from--;
    }
    const size_t n = end && end > from ? (size_t)(end - from) : strlen(from);
    io_show_in(from, n, name, size);
}

/* What cJSON lets pass, and what its own reading of the names would make of it. */
HF_FN bool hf_check_text(hf_reader *r)
{
    io_json j = r->text;
    while (io_json_next(&j)) {}
    return !j.wrong || hf_fail(r, "it is not JSON: %s", j.wrong);
}

HF_FN void hf_read_transformer(hf_reader *r, trn_model *m)
{
    hf_read_sizes(r, m);
    hf_read_biases(r, m);
    hf_read_latent(r, m);
    if (!r->why[0]) hf_read_experts(r, m);
    if (!r->why[0]) hf_read_window(r, m);
    if (!r->why[0]) hf_read_linear(r, m);
    if (!r->why[0]) hf_read_encoder(r, m);
}

HF_FN bool hf_read_model(hf_reader *r, trn_model *m)
{
    trn_error error;
    memset(m, 0, sizeof *m);
    if (!cJSON_IsObject(r->root)) return hf_fail(r, "it is not a JSON object");
    if (!hf_check_text(r) || !hf_find_family(r) || !hf_check_text(r)) return false;
    if (hf_has(r, HF_TABLES))
        hf_read_tables(r, m);
    else
        hf_read_transformer(r, m);
    if (r->why[0]) return false;
    if (trn_model_check(m, &error) != TRN_OK)
        return hf_fail(r, "as a model of type %s: %s", r->family->type, error.text);
    hf_name_of(r->name, m->name, sizeof m->name);
    return true;
}

/* The model of a file whose text lies in memory. `name` is for the model's name and for the sentence. */
HF_FN bool hf_config_parse(const char *text, size_t size, const char *name, trn_model *model, char *why)
{
    int line;
    hf_reader r = { name, NULL, io_json_file(text, size), NULL, why };
    why[0] = 0;
    memset(model, 0, sizeof *model);
    if (size > HF_MAX_FILE) return hf_fail(&r, "it has %zu bytes, more than any configuration", size);
    errno = 0;
    cJSON *root = io_json_tree(text, size, &line);
    if (!root && errno == ENOMEM) return hf_fail(&r, "there is not enough memory to read it");
    if (!root) return hf_fail(&r, "it is not JSON (line %d)", line);
    r.root = root;
    const bool ok = hf_read_model(&r, model);
    cJSON_Delete(root);
    if (!ok) memset(model, 0, sizeof *model);
    return ok;
}

HF_FN bool hf_config_read(const char *path, trn_model *model, char *why)
{
    const bool standard = strcmp(path, "-") == 0;
    hf_reader r = { path, NULL, io_json_start("", 0), NULL, why };
    why[0] = 0;
    memset(model, 0, sizeof *model);
    if (!io_reading(path, why)) return false;
    FILE *stream = standard ? stdin : fopen(path, "rb");
    if (!stream) return hf_fail(&r, "it cannot be opened (%s)", strerror(errno));
    char *text = (char *)malloc(HF_MAX_FILE + 1);
    errno = 0;
    const size_t size = text ? fread(text, 1, HF_MAX_FILE + 1, stream) : 0;
    const int trouble = ferror(stream) ? errno : 0;
    if (!standard) fclose(stream);
    bool ok = false;
    if (!text)
        hf_fail(&r, "there is not enough memory to read it");
    else if (trouble)
        hf_fail(&r, "it cannot be read (%s)", strerror(trouble));
    else
        ok = hf_config_parse(text, size, path, model, why);
    free(text);
    return ok;
}

#endif /* HF_CONFIG_H */

/* names.c - where each family keeps its weights, and of which shapes: for those who read them and those who make them.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the parameter names of transformers' modelling code, and those of published checkpoints.
 */
#include "model.h"

/* ---- sizes ---- */

int64_t mr_size_of(const mr_config *c, mr_size size)
{
    const int64_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim, plain = c->head_dim - c->rope_dim;
    const bool head = c->qk_norm == MR_QK_HEAD, all = c->qk_norm == MR_QK_ALL;
    const mr_recurrence *r = &c->recurrence;
    const int64_t inner = r->heads * r->value_dim, both_keys = 2 * r->groups * r->key_dim;
    const int64_t of[MR_SIZES] = {
        [MR_NO_SIZE] = 0,
        [MR_ONE] = 1,
        [MR_HIDDEN] = c->hidden,
        [MR_QUERIES] = queries,
        [MR_KEYS] = keys,
        [MR_MIXED] = c->heads * c->value_dim,
        [MR_QUERIES_PLAIN] = c->q_rank ? 0 : queries,
        [MR_QUERIES_LATENT] = c->q_rank ? queries : 0,
        [MR_Q_RANK] = c->q_rank,
        [MR_KV_RANK] = c->kv_rank,
        [MR_KV_RANK_TURNED] = c->kv_rank + c->rope_dim,
        [MR_KEYS_VALUES] = c->heads * (plain + c->value_dim),
        [MR_QUERIES_GATES] = 2 * queries,
        [MR_STATE_INS] = both_keys + 2 * inner + (r->rule == MR_MAMBA2 ? r->heads : 0),
        [MR_STATE_TWICE] = 2 * r->heads,
        [MR_STATE_CHANNELS] = both_keys + inner,
        [MR_STATE_WIDTH] = r->width,
        [MR_STATE_HEADS] = r->heads,
        [MR_STATE_VALUE] = r->value_dim,
        [MR_STATE_INNER] = inner,
        [MR_Q_NORM_SIZE] = head  ? c->head_dim
                           : all ? queries
                                 : 0,
        [MR_K_NORM_SIZE] = head  ? c->head_dim
                           : all ? keys
                                 : 0,
        [MR_SINK_HEADS] = c->family->flags & MR_SINKS ? c->heads : 0,
        [MR_INNER] = c->intermediate,
        [MR_EXPERTS] = c->experts,
        [MR_EXPERTS_CORRECTED] = c->family->route & MR_ROUTE_EXACT ? c->experts : 0,
        [MR_SHARED_INNER] = c->shared_intermediate,
    };
    return of[size];
}

bool mr_has_bias(const mr_config *c, const mr_part *part)
{
    const bool has[] = {
        [MR_NO_BIAS] = false,        [MR_QKV_BIAS] = c->qkv_bias,          [MR_O_BIAS] = c->o_bias,
        [MR_MLP_BIAS] = c->mlp_bias, [MR_STATE_BIAS] = c->recurrence.bias, [MR_CONV_BIAS] = c->recurrence.conv_bias,
        [MR_ALWAYS_BIAS] = true
    };
    return has[part->bias];
}

int mr_parts_together(const mr_config *c, const mr_part *part, int64_t *rows)
{
    const bool empty = part->columns && mr_size_of(c, part->columns) == 0;
    int n = 0;
    *rows = 0;
    do *rows += empty ? 0 : mr_size_of(c, part[n].rows);
    while (part[++n].name && strcmp(part[n].name, part->name) == 0);
    return n;
}

/* ---- attention ---- */

#define NORM(slot, name)                                                                                               \
    {                                                                                                                  \
        name, slot, MR_HIDDEN, MR_NO_SIZE, MR_NO_BIAS, NULL                                                            \
    }
#define MATRIX(slot, name, rows, columns, bias)                                                                        \
    {                                                                                                                  \
        name, slot, rows, columns, bias, NULL                                                                          \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, 0, MR_NO_SIZE, MR_NO_SIZE, MR_NO_BIAS, NULL                                                              \
    }

#define TWO_NORMS NORM(MR_NORM_1, "input_layernorm"), NORM(MR_NORM_2, "post_attention_layernorm")
#define HEADS                                                                                                          \
    MATRIX(MR_Q, "self_attn.q_proj", MR_QUERIES, MR_HIDDEN, MR_QKV_BIAS),                                              \
        MATRIX(MR_K, "self_attn.k_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS),                                             \
        MATRIX(MR_V, "self_attn.v_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS)
#define OUTPUT MATRIX(MR_O, "self_attn.o_proj", MR_HIDDEN, MR_MIXED, MR_O_BIAS)
#define HEAD_NORMS                                                                                                     \
    { "self_attn.q_norm", MR_Q_NORM, MR_Q_NORM_SIZE, MR_NO_SIZE, MR_NO_BIAS, NULL },                                   \
    {                                                                                                                  \
        "self_attn.k_norm", MR_K_NORM, MR_K_NORM_SIZE, MR_NO_SIZE, MR_NO_BIAS, NULL                                    \
    }

static const mr_part usual_attention[] = {
    TWO_NORMS,  HEADS, OUTPUT, { "self_attn.sinks", MR_SINKS_OF_HEADS, MR_SINK_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    HEAD_NORMS, END,
};

static const mr_part gpt2_attention[] = {
    { "ln_1", MR_NORM_1, MR_HIDDEN, MR_NO_SIZE, MR_ALWAYS_BIAS, NULL },
    { "ln_2", MR_NORM_2, MR_HIDDEN, MR_NO_SIZE, MR_ALWAYS_BIAS, NULL },
    MATRIX(MR_Q, "attn.c_attn", MR_QUERIES, MR_HIDDEN, MR_ALWAYS_BIAS),
    MATRIX(MR_K, "attn.c_attn", MR_KEYS, MR_HIDDEN, MR_ALWAYS_BIAS),
    MATRIX(MR_V, "attn.c_attn", MR_KEYS, MR_HIDDEN, MR_ALWAYS_BIAS),
    MATRIX(MR_O, "attn.c_proj", MR_HIDDEN, MR_MIXED, MR_ALWAYS_BIAS),
    END,
};

static const mr_part fused_attention[] = {
    TWO_NORMS,
    MATRIX(MR_Q, "self_attn.qkv_proj", MR_QUERIES, MR_HIDDEN, MR_QKV_BIAS),
    MATRIX(MR_K, "self_attn.qkv_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS),
    MATRIX(MR_V, "self_attn.qkv_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS),
    OUTPUT,
    END,
};

static const mr_part four_norms_attention[] = {
    NORM(MR_NORM_1, "input_layernorm"),
    NORM(MR_NORM_1_AFTER, "post_attention_layernorm"),
    NORM(MR_NORM_2, "pre_feedforward_layernorm"),
    NORM(MR_NORM_2_AFTER, "post_feedforward_layernorm"),
    HEADS,
    OUTPUT,
    HEAD_NORMS,
    END,
};

static const mr_part latent_attention[] = {
    TWO_NORMS,
    MATRIX(MR_Q, "self_attn.q_proj", MR_QUERIES_PLAIN, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_Q_DOWN, "self_attn.q_a_proj", MR_Q_RANK, MR_HIDDEN, MR_QKV_BIAS),
    { "self_attn.q_a_layernorm", MR_Q_DOWN_NORM, MR_Q_RANK, MR_NO_SIZE, MR_NO_BIAS, NULL },
    MATRIX(MR_Q, "self_attn.q_b_proj", MR_QUERIES_LATENT, MR_Q_RANK, MR_NO_BIAS),
    MATRIX(MR_KV_DOWN, "self_attn.kv_a_proj_with_mqa", MR_KV_RANK_TURNED, MR_HIDDEN, MR_QKV_BIAS),
    { "self_attn.kv_a_layernorm", MR_KV_DOWN_NORM, MR_KV_RANK, MR_NO_SIZE, MR_NO_BIAS, NULL },
    MATRIX(MR_KV_UP, "self_attn.kv_b_proj", MR_KEYS_VALUES, MR_KV_RANK, MR_NO_BIAS),
    OUTPUT,
    END,
};

static const mr_part gated_attention[] = {
    TWO_NORMS,
    MATRIX(MR_Q, "self_attn.q_proj", MR_QUERIES_GATES, MR_HIDDEN, MR_QKV_BIAS),
    MATRIX(MR_K, "self_attn.k_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS),
    MATRIX(MR_V, "self_attn.v_proj", MR_KEYS, MR_HIDDEN, MR_QKV_BIAS),
    OUTPUT,
    HEAD_NORMS,
    END,
};

/* ---- layers that keep a state ---- */

static const mr_part delta_rule[] = {
    TWO_NORMS,
    MATRIX(MR_STATE_IN, "linear_attn.in_proj_qkvz", MR_STATE_INS, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_STATE_RATES, "linear_attn.in_proj_ba", MR_STATE_TWICE, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_STATE_CONV, "linear_attn.conv1d", MR_STATE_CHANNELS, MR_STATE_WIDTH, MR_NO_BIAS),
    { "linear_attn.A_log", MR_STATE_DECAY, MR_STATE_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    { "linear_attn.dt_bias", MR_STATE_STEP, MR_STATE_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    { "linear_attn.norm", MR_STATE_NORM, MR_STATE_VALUE, MR_NO_SIZE, MR_NO_BIAS, NULL },
    MATRIX(MR_O, "linear_attn.out_proj", MR_HIDDEN, MR_STATE_INNER, MR_NO_BIAS),
    END,
};

/* ---- Nemotron-H: one norm and one thing in each layer ---- */

static const mr_part nemotron_attention[] = {
    NORM(MR_NORM_1, "norm"),
    MATRIX(MR_Q, "mixer.q_proj", MR_QUERIES, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_K, "mixer.k_proj", MR_KEYS, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_V, "mixer.v_proj", MR_KEYS, MR_HIDDEN, MR_NO_BIAS),
    MATRIX(MR_O, "mixer.o_proj", MR_HIDDEN, MR_MIXED, MR_NO_BIAS),
    END,
};

static const mr_part mamba2[] = {
    NORM(MR_NORM_1, "norm"),
    MATRIX(MR_STATE_IN, "mixer.in_proj", MR_STATE_INS, MR_HIDDEN, MR_STATE_BIAS),
    MATRIX(MR_STATE_CONV, "mixer.conv1d", MR_STATE_CHANNELS, MR_STATE_WIDTH, MR_CONV_BIAS),
    { "mixer.A_log", MR_STATE_DECAY, MR_STATE_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    { "mixer.D", MR_STATE_SKIP, MR_STATE_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    { "mixer.dt_bias", MR_STATE_STEP, MR_STATE_HEADS, MR_NO_SIZE, MR_NO_BIAS, "" },
    { "mixer.norm", MR_STATE_NORM, MR_STATE_INNER, MR_NO_SIZE, MR_NO_BIAS, NULL },
    MATRIX(MR_O, "mixer.out_proj", MR_HIDDEN, MR_STATE_INNER, MR_STATE_BIAS),
    END,
};

static const mr_part nemotron_dense[] = {
    NORM(MR_NORM_2, "norm"),
    MATRIX(MR_UP, ".up_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_DOWN, ".down_proj", MR_HIDDEN, MR_INNER, MR_MLP_BIAS),
    END,
};

static const mr_part nemotron_sparse[] = {
    NORM(MR_NORM_2, "norm"),
    MATRIX(MR_ROUTER, ".gate", MR_EXPERTS, MR_HIDDEN, MR_NO_BIAS),
    { ".gate.e_score_correction_bias", MR_CORRECTION, MR_EXPERTS_CORRECTED, MR_NO_SIZE, MR_NO_BIAS, "" },
    MATRIX(MR_SHARED_UP, ".shared_experts.up_proj", MR_SHARED_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_SHARED_DOWN, ".shared_experts.down_proj", MR_HIDDEN, MR_SHARED_INNER, MR_MLP_BIAS),
    END,
};

/* ---- perceptrons ---- */

static const mr_part gated[] = {
    MATRIX(MR_GATE, ".gate_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_UP, ".up_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_DOWN, ".down_proj", MR_HIDDEN, MR_INNER, MR_MLP_BIAS),
    END,
};

static const mr_part gated_fused[] = {
    MATRIX(MR_GATE, ".gate_up_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_UP, ".gate_up_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_DOWN, ".down_proj", MR_HIDDEN, MR_INNER, MR_MLP_BIAS),
    END,
};

static const mr_part plain[] = {
    MATRIX(MR_UP, ".up_proj", MR_INNER, MR_HIDDEN, MR_MLP_BIAS),
    MATRIX(MR_DOWN, ".down_proj", MR_HIDDEN, MR_INNER, MR_MLP_BIAS),
    END,
};

static const mr_part gpt2_plain[] = {
    MATRIX(MR_UP, ".c_fc", MR_INNER, MR_HIDDEN, MR_ALWAYS_BIAS),
    MATRIX(MR_DOWN, ".c_proj", MR_HIDDEN, MR_INNER, MR_ALWAYS_BIAS),
    END,
};

/* ---- what a layer of experts has beside them ---- */

#define GATE MATRIX(MR_ROUTER, ".gate", MR_EXPERTS, MR_HIDDEN, MR_NO_BIAS)
#define SHARED(home)                                                                                                   \
    MATRIX(MR_SHARED_GATE, home ".gate_proj", MR_SHARED_INNER, MR_HIDDEN, MR_NO_BIAS),                                 \
        MATRIX(MR_SHARED_UP, home ".up_proj", MR_SHARED_INNER, MR_HIDDEN, MR_NO_BIAS),                                 \
        MATRIX(MR_SHARED_DOWN, home ".down_proj", MR_HIDDEN, MR_SHARED_INNER, MR_NO_BIAS)

static const mr_part usual_sparse[] = { GATE, END };

static const mr_part qwen_sparse[] = {
    GATE,
    SHARED(".shared_expert"),
    MATRIX(MR_SHARED_SWITCH, ".shared_expert_gate", MR_ONE, MR_HIDDEN, MR_NO_BIAS),
    END,
};

static const mr_part deepseek_sparse[] = {
    GATE,
    { ".gate.e_score_correction_bias", MR_CORRECTION, MR_EXPERTS_CORRECTED, MR_NO_SIZE, MR_NO_BIAS, "" },
    SHARED(".shared_experts"),
    END,
};

static const mr_part minimax_sparse[] = {
    GATE,
    { ".e_score_correction_bias", MR_CORRECTION, MR_EXPERTS_CORRECTED, MR_NO_SIZE, MR_NO_BIAS, "" },
    END,
};

static const mr_part llama4_sparse[] = {
    MATRIX(MR_ROUTER, ".router", MR_EXPERTS, MR_HIDDEN, MR_NO_BIAS),
    SHARED(".shared_expert"),
    END,
};

static const mr_part gpt_oss_sparse[] = {
    MATRIX(MR_ROUTER, ".router", MR_EXPERTS, MR_HIDDEN, MR_ALWAYS_BIAS),
    END,
};

/* ---- families ---- */

static const char *const three[] = { "gate_proj", "up_proj", "down_proj" };
static const char *const two[] = { NULL, "up_proj", "down_proj" };
static const char *const numbered[] = { "w1", "w3", "w2" };

/* Base models have no "model.", and multi-modal ones have more. */
static const char *const usual_prefix[] = { "model.",          "",  "model.language_model.", "language_model.model.",
                                            "language_model.", NULL };
static const char *const gpt2_prefix[] = { "transformer.", "", NULL };

#define NAMES(home_, attention_, dense_, sparse_, expert_, joint_)                                                     \
    {                                                                                                                  \
        .prefix = usual_prefix, .layers = "layers", .embed = "embed_tokens", .places = "embed_positions",              \
        .norm = "norm", .home = home_, .attention = attention_, .dense = dense_, .sparse = sparse_, .expert = expert_, \
        .joint = joint_                                                                                                \
    }

const mr_names mr_names_usual = NAMES("mlp", usual_attention, gated, usual_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_plain = NAMES("mlp", usual_attention, plain, usual_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_gpt_oss = NAMES("mlp", usual_attention, gated, gpt_oss_sparse, three, MR_TURNS);
const mr_names mr_names_mixtral =
    NAMES("block_sparse_moe", usual_attention, gated, usual_sparse, numbered, MR_ONE_BY_ONE);
const mr_names mr_names_qwen_moe = NAMES("mlp", usual_attention, gated, qwen_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_deepseek = NAMES("mlp", latent_attention, gated, deepseek_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_glm_moe = NAMES("mlp", usual_attention, gated, deepseek_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_phi3 = NAMES("mlp", fused_attention, gated_fused, usual_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_gemma3 = NAMES("mlp", four_norms_attention, gated, usual_sparse, three, MR_ONE_BY_ONE);
const mr_names mr_names_llama4 = NAMES("feed_forward", usual_attention, gated, llama4_sparse, three, MR_HALVES);
const mr_names mr_names_minimax =
    NAMES("block_sparse_moe", usual_attention, gated, minimax_sparse, numbered, MR_ONE_BY_ONE);

const mr_names mr_names_qwen3_next = { .prefix = usual_prefix,
                                       .layers = "layers",
                                       .embed = "embed_tokens",
                                       .places = "embed_positions",
                                       .norm = "norm",
                                       .home = "mlp",
                                       .attention = gated_attention,
                                       .recurrent = delta_rule,
                                       .dense = gated,
                                       .sparse = qwen_sparse,
                                       .expert = three };

static const char *const nemotron_prefix[] = { "backbone.", "model.", "", NULL };

const mr_names mr_names_nemotron_h = { .prefix = nemotron_prefix,
                                       .layers = "layers",
                                       .embed = "embeddings",
                                       .norm = "norm_f",
                                       .home = "mixer",
                                       .attention = nemotron_attention,
                                       .recurrent = mamba2,
                                       .dense = nemotron_dense,
                                       .sparse = nemotron_sparse,
                                       .expert = two };

const mr_names mr_names_gpt2 = { .prefix = gpt2_prefix,
                                 .layers = "h",
                                 .embed = "wte",
                                 .places = "wpe",
                                 .norm = "ln_f",
                                 .home = "mlp",
                                 .attention = gpt2_attention,
                                 .dense = gpt2_plain,
                                 .sparse = usual_sparse,
                                 .expert = three,
                                 .turned = true,
                                 .norm_bias = true };

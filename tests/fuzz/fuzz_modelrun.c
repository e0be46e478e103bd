/* fuzz_modelrun.c - random bytes as the config.json of a model that modelrun is to run: no crash, one sentence for each
 * refusal, and sizes, layers and weights that go together in what is accepted.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_modelrun [count] [seed]        default: 4000 files, 500000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Files are configurations of every family with plausible numbers, one in three of them spoilt.
 */
#define _POSIX_C_SOURCE 200809L

#include "twin/cases.h"

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2)

#include <assert.h>

#include "fuzz/long.h"
#include "fuzz/spoil.h"
/* Of the program what reads configurations, and no more. */
#include "modelrun/config.c"
#include "modelrun/family.c"
#include "modelrun/names.c"
#include "modelrun/positions.c"

enum { ROOM = 8192 };

static uint64_t rng = 1;

static int below(int n) { return cases_below(&rng, n); }

/* ---- what was accepted ---- */

static void check_rule(const mr_rope_rule *rule)
{
    if (rule->kind == MR_ROPE_NONE) return;
    assert(rule->kind <= MR_ROPE_LONG && rule->theta >= 1 && rule->factor > 0 && rule->attention > 0);
    assert(isfinite(rule->attention));
    if (rule->kind == MR_ROPE_YARN || rule->kind == MR_ROPE_LLAMA3 || rule->kind == MR_ROPE_LONG)
        assert(rule->original >= 1);
}

static void check_parts(const mr_config *c, const mr_part *part)
{
    while (part->name) {
        int64_t rows;
        const int n = mr_parts_together(c, part, &rows);
        assert(n >= 1 && rows >= 0 && mr_size_of(c, part->columns) >= 0 && part->slot < MR_WEIGHTS);
        part += n;
    }
}

static void check_experts(const mr_config *c)
{
    assert(c->experts_per_token >= 1 && c->experts_per_token <= c->experts && c->moe_intermediate >= 1);
    assert(c->groups >= 1 && c->groups_per_token <= c->groups && c->routed_scale >= 0);
    assert(c->groups == 1 || (c->experts % c->groups == 0 && c->experts / c->groups >= 2));
    assert(c->groups == 1 || c->groups_per_token * (c->experts / c->groups) >= c->experts_per_token);
}

static void check_config(const mr_config *c)
{
    assert(c->family && strlen(c->type) > 2);
    assert(c->layers >= 1 && c->layers <= MR_LAYERS && c->hidden >= 1 && c->vocab >= 1 && c->intermediate >= 1);
    assert(c->heads >= 1 && c->kv_heads >= 1 && c->heads % c->kv_heads == 0 && c->positions >= 1);
    assert(c->head_dim >= 1 && c->value_dim >= 1 && c->rope_dim % 2 == 0);
    assert(c->rope_first >= 0 && c->rope_first + c->rope_dim <= c->head_dim);
    assert(c->attention_scale > 0 && isfinite(c->attention_scale) && c->embed_scale >= 1 && c->eps >= 0);
    for (int i = 0; i < MR_ROPES; i++) check_rule(&c->rope[i]);
    if (c->query.beta != 0) assert(c->query.length >= 1);
    for (int64_t i = 0; i < c->layers; i++) {
        assert(c->window[i] >= 0 && c->turn[i] < MR_ROPES);
        assert(!c->sparse[i] || c->experts);
        assert(c->mixer[i] <= MR_NO_MIXER && (c->mixer[i] != MR_RECURS || c->recurrence.rule));
        assert(c->mixer[i] != MR_NO_MIXER || !c->bare[i]);
    }
    if (c->experts) check_experts(c);
    const mr_recurrence *state = &c->recurrence;
    if (state->rule) {
        assert(state->heads >= 1 && state->groups >= 1 && state->heads % state->groups == 0);
        assert(state->key_dim >= 1 && state->value_dim >= 1 && state->width >= 1);
        check_parts(c, c->family->names->recurrent);
    }
    check_parts(c, c->family->names->attention);
    check_parts(c, c->family->names->dense);
    check_parts(c, c->family->names->sparse);
}

enum { FAMILIES = 64 };

static long taken[FAMILIES]; /* files that were accepted */

static void count_family(const mr_family *family)
{
    for (int i = 0; i < FAMILIES && mr_family_at(i); i++) taken[i] += mr_family_at(i) == family;
}

static bool try_file(const char *file, size_t size)
{
    static mr_config config;
    char why[HF_WHY] = "";
    char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = mr_config_parse(copy, size, "fuzz.json", &config, why);
    if (ok) {
        check_config(&config);
        count_family(config.family);
    } else
        assert(strncmp(why, "fuzz.json: ", 11) == 0 && strlen(why) > 16);
    free(copy);
    return ok;
}

/* ---- files ---- */

typedef struct field {
    const char *name, *usual[4];
} field;

static const field fields[] = {
    { "vocab_size", { "97", "7", "300", "97" } },
    { "hidden_size", { "64", "48", "128", "64" } },
    { "num_hidden_layers", { "2", "3", "5", "1" } },
    { "num_attention_heads", { "4", "8", "4", "4" } },
    { "num_key_value_heads", { "4", "2", "4", "null" } },
    { "head_dim", { "16", "8", "32", "64" } },
    { "intermediate_size", { "96", "64", "32", "1" } },
    { "intermediate_size_mlp", { "96", "64", "32", "1" } },
    { "max_position_embeddings", { "64", "128", "4096", "64" } },
    { "rms_norm_eps", { "1e-5", "1e-6", "0", "1e-5" } },
    { "rope_theta", { "10000.0", "500000", "1e6", "100" } },
    { "tie_word_embeddings", { "true", "false", "true", "false" } },
    { "attention_bias", { "true", "false", "false", "false" } },
    { "mlp_bias", { "true", "false", "false", "false" } },
    { "use_sliding_window", { "true", "false", "false", "true" } },
    { "use_qk_norm", { "true", "true", "true", "false" } },
    { "sliding_window", { "4", "16", "null", "4" } },
    { "sliding_window_pattern", { "2", "6", "3", "1" } },
    { "layer_types", { "[\"full_attention\", \"sliding_attention\"]", "null", "null", "[\"full_attention\"]" } },
    { "num_local_experts", { "4", "8", "16", "6" } },
    { "num_experts", { "4", "8", "16", "6" } },
    { "n_routed_experts", { "4", "8", "16", "6" } },
    { "num_experts_per_tok", { "1", "2", "3", "4" } },
    { "moe_intermediate_size", { "32", "64", "1", "8" } },
    { "n_shared_experts", { "1", "2", "0", "null" } },
    { "shared_expert_intermediate_size", { "32", "64", "1", "8" } },
    { "first_k_dense_replace", { "1", "0", "3", "2" } },
    { "n_group", { "1", "2", "4", "1" } },
    { "topk_group", { "1", "1", "2", "4" } },
    { "norm_topk_prob", { "true", "false", "true", "true" } },
    { "routed_scaling_factor", { "2.5", "1", "0", "16" } },
    { "decoder_sparse_step", { "1", "2", "3", "1" } },
    { "mlp_only_layers", { "[]", "[0]", "[1, 2]", "null" } },
    { "moe_layers", { "[0]", "[1, 3]", "null", "null" } },
    { "interleave_moe_layer_step", { "1", "2", "3", "1" } },
    { "no_rope_layers", { "[]", "[1, 0]", "[1, 1, 1, 0, 1]", "null" } },
    { "attention_chunk_size", { "8", "4096", "1", "8" } },
    { "attn_temperature_tuning", { "true", "false", "4", "0" } },
    { "floor_scale", { "8", "8192", "1", "2" } },
    { "linear_num_value_heads", { "4", "8", "2", "6" } },
    { "linear_num_key_heads", { "2", "4", "1", "3" } },
    { "linear_key_head_dim", { "8", "16", "1", "32" } },
    { "linear_value_head_dim", { "8", "16", "1", "32" } },
    { "linear_conv_kernel_dim", { "4", "2", "1", "3" } },
    { "full_attention_interval", { "4", "2", "1", "3" } },
    { "mamba_num_heads", { "4", "8", "2", "6" } },
    { "n_groups", { "2", "4", "1", "3" } },
    { "ssm_state_size", { "8", "16", "1", "32" } },
    { "mamba_head_dim", { "8", "16", "1", "32" } },
    { "conv_kernel", { "4", "2", "1", "3" } },
    { "use_bias", { "true", "false", "false", "null" } },
    { "hybrid_override_pattern", { "\"M-\"", "\"M*E\"", "\"ME-*M\"", "\"*\"" } },
    { "time_step_limit", { "[0.0, Infinity]", "[0.1, 2]", "null", "[0, 0]" } },
    { "moe_shared_expert_intermediate_size", { "32", "64", "1", "8" } },
    { "q_lora_rank", { "16", "null", "8", "24" } },
    { "kv_lora_rank", { "16", "32", "8", "1" } },
    { "qk_nope_head_dim", { "16", "8", "1", "32" } },
    { "qk_rope_head_dim", { "8", "16", "2", "4" } },
    { "v_head_dim", { "16", "8", "1", "32" } },
    { "rope_interleave", { "true", "false", "true", "true" } },
    { "scoring_func", { "\"sigmoid\"", "\"sigmoid\"", "null", "\"softmax\"" } },
    { "partial_rotary_factor", { "1", "0.5", "1.0", "1" } },
    { "rotary_dim", { "8", "16", "4", "2" } },
    { "query_pre_attn_scalar", { "16", "256", "1", "24" } },
    { "original_max_position_embeddings", { "32", "64", "16", "4096" } },
    { "hidden_act", { "\"silu\"", "\"gelu\"", "\"silu\"", "\"relu\"" } },
    { "final_logit_softcapping", { "null", "null", "null", "30.0" } },
};

static const char *const rope[] = {
    "{\"type\": \"linear\", \"factor\": 2.0}",
    "{\"rope_type\": \"yarn\", \"factor\": 4, \"mscale\": 1.0, \"mscale_all_dim\": 0.7}",
    "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4}",
    "{\"type\": \"longrope\", \"short_factor\": [1, 2, 3, 4], \"long_factor\": [1, 2, 3, 4]}",
    "{\"type\": \"su\", \"short_factor\": [1, 2, 3, 4, 5, 6, 7, 8], \"long_factor\": [8, 7, 6, 5, 4, 3, 2, 1]}",
    "{\"rope_type\": \"yarn\", \"factor\": 4, \"llama_4_scaling_beta\": 0.1, \"original_max_position_embeddings\": 8}",
    "{\"full_attention\": {\"rope_theta\": 1e6}, \"sliding_attention\": {\"rope_theta\": 1e4}}",
    "{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}",
    "{}",
    "null",
};
static const char *const absurd[] = { "-1",   "0",      "1e400",       "1.5", "null",
                                      "true", "\"8\"",  "[]",          "{}",  "9223372036854775807",
                                      "1e18", "16384",  "4194304",     "0.0", "-0",
                                      "NaN",  "[1, 2]", "[[[[[[]]]]]]" };
static const char *const tokens[] = {
    "{", "}", "[", "]",    ",",  ":",  "\"", "\\u0000", "null", "true", "\"model_type\"",
    "-", "e", "0", "\xff", "\n", "[[", "1e9"
};

#define PICK(list) list[below((int)(sizeof list / sizeof list[0]))]

static size_t good_file(char *file)
{
    int families = 0;
    while (mr_family_at(families)) families++;
    const mr_family *family = mr_family_at(below(families));
    const bool inside = cases_one_in(&rng, 9);
    size_t n =
        (size_t)snprintf(file, ROOM, "%s{\"model_type\": \"%s\"", inside ? "{\"text_config\": " : "", family->type);
    const int spoiled = cases_one_in(&rng, 2) ? below((int)(sizeof fields / sizeof fields[0])) : -1;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!cases_one_in(&rng, 4))
            n += (size_t)snprintf(file + n, ROOM - n, ",\n\"%s\": %s", fields[i].name,
                                  (int)i == spoiled ? PICK(absurd) : fields[i].usual[below(4)]);
    if (cases_one_in(&rng, 2))
        n += (size_t)snprintf(file + n, ROOM - n, ", \"%s\": %s", below(2) ? "rope_scaling" : "rope_parameters",
                              PICK(rope));
    n += (size_t)snprintf(file + n, ROOM - n, inside ? "}}" : "}");
    return n;
}

int main(int argc, char **argv)
{
    long accepted = 0;
    fuzzing_start(argc, argv, 4000, 500000);
    while (fuzzing_next(&rng)) {
        char file[ROOM];
        size_t size = good_file(file);
        for (int wounds = below(3) - 1; wounds > 0; wounds--) size = spoil(&rng, file, size, PICK(tokens));
        accepted += try_file(file, size);
    }
    const long count = fuzzing_end();
    printf("%ld files, %ld of them accepted\n", count, accepted);
    for (int i = 0; i < FAMILIES && mr_family_at(i); i++)
        if (count >= 40000 && !taken[i]) return printf("none of %s was accepted\n", mr_family_at(i)->type), 1;
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > count / 50 && accepted < count / 2) ? 0 : 1;
}

#else

int main(void)
{
    printf("cJSON or PCRE2 is not installed: configurations are not read\n");
    return 0;
}

#endif

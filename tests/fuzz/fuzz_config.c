/* fuzz_config.c - random bytes as config.json: no crash, one sentence for each refusal, and only models that can be
 * counted and planned.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_config [count] [seed]        default: 20000 files, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. On its own it writes configurations of every
 * family with plausible numbers and spoils them: bytes flipped, ranges copied, cut short, numbers exchanged for absurd
 * ones. What is accepted is counted, and a plan of it is asked, with choices that are as random.
 */
#include "twin/cases.h"

#if defined(HAVE_CJSON)

#include <assert.h>

#include "fuzz/long.h"
#include "fuzz/spoil.h"
#include "io/hf_config.h"
#include "trnmath/trn_plan.h"

static uint64_t rng = 1;

static int below(int n) { return cases_below(&rng, n); }

/* ---- a model that was accepted must keep its word ---- */

static void count_model(const trn_model *m)
{
    trn_model_size size;
    assert(trn_model_check(m, NULL) == TRN_OK);
    assert(trn_model_size_of(m, &size, NULL) == TRN_OK);
    assert(size.total > 0 && size.active > 0 && size.active <= size.total && size.total < 1e30);
    assert(size.kv_elements > 0 || size.state_elements > 0 || m->bidirectional || m->tables);
    const double flops = trn_model_forward_flops(m, 1, 1, 1);
    assert(flops > 0 && flops < 1e30);
    assert(m->name[0] && strlen(m->name) < sizeof m->name);
}

static int64_t some_size(void)
{
    static const int64_t size[] = { 1, 2, 3, 8, 16, 64, 1000, 4096, 1 << 20, INT64_C(1) << 32, 0, -1, INT64_MAX };
    return size[below(cases_one_in(&rng, 8) ? 13 : 9)];
}

/* Any plan of 16 chips, with any choices: a status and a sentence, or a plan that adds up. */
static void plan_model(const trn_model *m)
{
    static trn_topology net;
    trn_error error = { TRN_OK, "" };
    if (!net.chips) net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = { .model = m, .net = &net, .batch = some_size(), .sequence = some_size(), .error = &error };
    int degree[TRN_AXIS_COUNT] = { 1, 1, 1, 1, 1 };
    for (int i = 0; i < 4; i++) degree[below(TRN_AXIS_COUNT)] *= 2;
    args.job = (trn_job)below(TRN_JOB_COUNT);
    args.recompute = (trn_recompute)below(TRN_RECOMPUTE_COUNT);
    args.zero = (trn_zero)below(TRN_ZERO_COUNT);
    args.precision = (trn_precision)below(TRN_PRECISION_COUNT);
    if (cases_one_in(&rng, 3)) args.formats.weights = (trn_format)(1 + below(12));
    args.ranks_per_chip = cases_one_in(&rng, 3) ? 1 << below(4) : 0;
    args.lnc = cases_one_in(&rng, 3) ? below(4) : 0;
    args.replicate_kv = cases_one_in(&rng, 2);
    args.no_replicate_kv = cases_one_in(&rng, 2);
    args.pad_heads = cases_one_in(&rng, 2);
    args.no_sp = cases_one_in(&rng, 4);
    args.uneven_stages = cases_one_in(&rng, 2);
    args.overlap_dependent = cases_one_in(&rng, 2);
    args.ignore_groups = cases_one_in(&rng, 2);
    args.microbatch = cases_one_in(&rng, 4) ? some_size() : 0;
    if (cases_one_in(&rng, 4)) args.assumptions.expert_imbalance = 900;
    if (m->longest && !cases_one_in(&rng, 4)) args.sequence = m->longest;
    trn_plan p = { .tp = degree[0], .cp = degree[1], .ep = degree[2], .dp = degree[3], .pp = degree[4] };
    if (args.lnc && cases_one_in(&rng, 2)) p.tp_cores = below(10) - 1;
    const trn_status status = trn_plan_evaluate(&args, &p);
    if (status != TRN_OK)
        assert(error.status == status && strlen(error.text) > 8);
    else if (!p.legal)
        assert(p.reason != TRN_PLAN_LEGAL && strlen(p.why) > 8);
    else
        assert(p.time_s > 0 && p.memory.total > 0 && p.memory.total <= p.memory.capacity);
}

/* Returns whether the file was accepted. */
static bool try_file(const char *file, size_t size)
{
    char why[HF_WHY] = "";
    trn_model m;
    char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = hf_config_parse(copy, size, "fuzz.json", &m, why);
    if (ok) {
        count_model(&m);
        plan_model(&m);
    } else {
        assert(strncmp(why, "fuzz.json: ", 11) == 0 && strlen(why) > 16 && m.layers == 0);
    }
    static hf_config all;
    if (hf_config_parse_all(copy, size, "fuzz.json", NULL, &all, why)) {
        assert(ok);
        for (int k = 0; k < HF_KINDS && all.quantised.any; k++)
            assert(all.quantised.kind[k].bits >= 1 && all.quantised.kind[k].bits <= 40);
    } else
        assert(strncmp(why, "fuzz.json: ", 11) == 0 && strlen(why) > 16);
    free(copy);
    return ok;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return (void)try_file((const char *)data, size), 0;
}

#else

enum { ROOM = 4096 };

/* ---- files: a family's fields, most of them plausible ---- */

static const char *const numbers[] = { "num_hidden_layers",
                                       "hidden_size",
                                       "num_attention_heads",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "intermediate_size",
                                       "vocab_size",
                                       "num_local_experts",
                                       "num_experts",
                                       "n_routed_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_shared_experts",
                                       "shared_expert_intermediate_size",
                                       "first_k_dense_replace",
                                       "moe_layer_freq",
                                       "decoder_sparse_step",
                                       "q_lora_rank",
                                       "kv_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "sliding_window",
                                       "n_layer",
                                       "n_embd",
                                       "n_head",
                                       "n_inner",
                                       "n_positions",
                                       "num_heads",
                                       "state_size",
                                       "n_groups",
                                       "expand",
                                       "conv_kernel",
                                       "intermediate_size_mlp",
                                       "interleave_moe_layer_step",
                                       "attention_chunk_size",
                                       "full_attention_interval",
                                       "linear_num_value_heads",
                                       "linear_value_head_dim",
                                       "linear_num_key_heads",
                                       "linear_key_head_dim",
                                       "linear_conv_kernel_dim",
                                       "max_position_embeddings",
                                       "type_vocab_size",
                                       "image_size",
                                       "patch_size",
                                       "num_channels",
                                       "num_labels",
                                       "embedding_dim",
                                       "dense_in_features",
                                       "dcn_num_layers",
                                       "dcn_low_rank_dim",
                                       "d_model",
                                       "n_heads",
                                       "n_layers",
                                       "n_embed",
                                       "n_head_kv",
                                       "num_kv_heads",
                                       "ffn_dim",
                                       "ffn_hidden_size",
                                       "num_layers",
                                       "kv_channels",
                                       "padded_vocab_size",
                                       "multi_query_group_num",
                                       "expansion_ratio",
                                       "layer_switch" };
static const char *const flags[] = { "tie_word_embeddings",      "attention_bias",       "mlp_bias",
                                     "use_sliding_window",       "use_qk_norm",          "multi_query",
                                     "new_decoder_architecture", "use_parallel_residual" };
static const char *const lists[] = { "mlp_only_layers", "layer_types", "moe_layers", "no_rope_layers" };
static const char *const ends[] = { "BertModel", "BertForMaskedLM", "RobertaForSequenceClassification",
                                    "ViTForImageClassification", "LlamaForCausalLM" };
static const char *const absurd[] = { "-1",   "0",      "1e400",       "1.5", "null",
                                      "true", "\"8\"",  "[]",          "{}",  "9223372036854775807",
                                      "1e18", "16384",  "4194304",     "0.0", "-0",
                                      "NaN",  "[1, 2]", "[[[[[[]]]]]]" };
static const char *const usual[] = { "1", "2", "4", "8", "16", "32", "64", "128" };
static const char *const tokens[] = { "{", "}", "[", "]", ",", ":", "\"", "\\u0000", "null", "true",
                                      /* what the reader looks for, and what it cannot read */
                                      "\"model_type\"", "\"llama\"", "\"text_config\": {", "-", "e", "0", "\xff",
                                      "\n" };

static const char *const widths[] = { "num_embeddings_per_feature", "multi_hot_sizes", "dense_arch_layer_sizes",
                                      "over_arch_layer_sizes" };

/* Of quantization_config: what is before and behind a number. */
static const char *const schemes[][2] = {
    { "{\"quant_method\": \"fp8\", \"ignore\": [\"re:.*mlp\\\\.\\\\d+?[\\\\w.]\", \"*\"], \"weight_block_size\": [8, ",
      "]}" },
    { "{\"quant_method\": \"awq\", \"modules_to_not_convert\": [\"model.layers.0*\"], \"bits\": ", "}" },
    { "{\"quant_method\": \"gptq\", \"bits\": 4, \"dynamic\": {\"-:.*(?:q|k)_proj\": {}}, \"group_size\": ", "}" },
    { "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"weights\": {\"num_bits\": ", "}}}}" },
    { "{\"quant_algo\": \"NVFP4\", \"exclude_modules\": [\"*.self_attn*\", \"lm_head\"], \"group_size\": ", "}" },
    { "{\"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": {\"model.layers.0\": {\"quant_algo\": \"NVFP4\", "
      "\"group_size\": ",
      "}}}" },
};

#define PICK(list) list[below((int)(sizeof list / sizeof list[0]))]

static size_t good_file(char *file)
{
    const hf_family *family = NULL;
    int families = 0;
    while (hf_family_at(families)) families++;
    family = hf_family_at(below(families));
    size_t n = (size_t)snprintf(file, ROOM, "%s{\"model_type\": \"%s\"",
                                cases_one_in(&rng, 9) ? "{\"text_config\": " : "", family->type);
    const int spoiled = cases_one_in(&rng, 2) ? below((int)(sizeof numbers / sizeof numbers[0])) : -1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!cases_one_in(&rng, 30))
            n += (size_t)snprintf(file + n, ROOM - n, ",\n\"%s\": %s", numbers[i],
                                  (int)i == spoiled ? PICK(absurd) : PICK(usual));
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (cases_one_in(&rng, 2))
            n += (size_t)snprintf(file + n, ROOM - n, ", \"%s\": %s", flags[i], below(2) ? "true" : "false");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (cases_one_in(&rng, 6))
            n += (size_t)snprintf(file + n, ROOM - n, ", \"%s\": [%s]", lists[i],
                                  below(2) ? "0, 3" : "\"sliding_attention\", \"linear_attention\"");
    for (size_t i = 0; i < sizeof widths / sizeof widths[0] && strcmp(family->type, "dlrm") == 0; i++)
        if (!cases_one_in(&rng, 20))
            n += (size_t)snprintf(file + n, ROOM - n, ", \"%s\": [%s, %s]", widths[i], PICK(usual),
                                  cases_one_in(&rng, 20) ? PICK(absurd) : PICK(usual));
    if (cases_one_in(&rng, 3)) n += (size_t)snprintf(file + n, ROOM - n, ", \"interaction_type\": \"dcn\"");
    if (cases_one_in(&rng, 3)) n += (size_t)snprintf(file + n, ROOM - n, ", \"architectures\": [\"%s\"]", PICK(ends));
    if (cases_one_in(&rng, 3)) {
        const int i = below((int)(sizeof schemes / sizeof schemes[0]));
        n += (size_t)snprintf(file + n, ROOM - n, ", \"quantization_config\": %s%s%s", schemes[i][0],
                              cases_one_in(&rng, 4) ? PICK(absurd) : PICK(usual), schemes[i][1]);
    }
    n += (size_t)snprintf(file + n, ROOM - n, "}");
    return n;
}

int main(int argc, char **argv)
{
    long accepted = 0;
    fuzzing_start(argc, argv, 20000, 1000000);
    while (fuzzing_next(&rng)) {
        char file[ROOM];
        size_t size = good_file(file);
        for (int wounds = below(4) - 1; wounds > 0; wounds--) size = spoil(&rng, file, size, PICK(tokens));
        accepted += try_file(file, size);
    }
    const long count = fuzzing_end();
    printf("%ld files, %ld of them accepted\n", count, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > count / 50 && accepted < count / 2) ? 0 : 1;
}

#endif

#else

int main(void)
{
    printf("cJSON is not installed: configurations are not read\n");
    return 0;
}

#endif

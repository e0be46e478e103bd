/* test_hf_config.c - configurations as other people write them: families by their own names of things, against the sums
 * over the tensors of the files that their publishers ship; fields that a file leaves to its class; quantization_config
 * as quantizers write it.
 * SPDX-License-Identifier: MIT
 *
 * The texts are this test's own: sizes are those that the publishers name.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_plan.h"

#if defined(HAVE_CJSON)
#include "io/hf_config.h"
#include "scratch.h"

static void near(double x, double y, const char *what)
{
    if (fabs(x - y) > 1e-9 * fabs(y)) fail_msg("%s: %.17g, expected %.17g", what, x, y);
}

static bool load(const char *text, hf_config *all, char *why)
{
    return hf_config_parse_all(text, strlen(text), "config.json", NULL, all, why);
}

static void must_load(const char *text, hf_config *all)
{
    char why[HF_WHY];
    if (!load(text, all, why)) fail_msg("%s: %s", text, why);
}

/* ---- sizes ---- */

static void families(void **state)
{
    (void)state;
    static const struct {
        double total;
        const char *text;
    } row[] = {
        { 6921720704.0, "{\"model_type\": \"falcon\", \"num_hidden_layers\": 32, \"hidden_size\": 4544, "
                        "\"num_attention_heads\": 71, \"num_kv_heads\": 71, \"vocab_size\": 65024, \"multi_query\": "
                        "true, \"new_decoder_architecture\": false, \"parallel_attn\": true, \"bias\": false, "
                        "\"alibi\": false}" },
        { 41303293952.0, "{\"model_type\": \"falcon\", \"n_layer\": 60, \"hidden_size\": 8192, \"n_head\": 128, "
                         "\"n_head_kv\": 8, \"vocab_size\": 65024, \"new_decoder_architecture\": true}" },
        { 1311625216.0, "{\"model_type\": \"falcon\", \"num_hidden_layers\": 24, \"hidden_size\": 2048, "
                        "\"num_attention_heads\": 32, \"vocab_size\": 50304, \"multi_query\": false, "
                        "\"parallel_attn\": false, \"bias\": true}" },
        { 559214592.0, "{\"model_type\": \"bloom\", \"n_layer\": 24, \"hidden_size\": 1024, \"n_head\": 16, "
                       "\"num_attention_heads\": 16, \"n_inner\": null, \"vocab_size\": 250880, "
                       "\"attention_softmax_in_fp32\": true}" },
        { 125239296.0, "{\"model_type\": \"opt\", \"num_hidden_layers\": 12, \"hidden_size\": 768, "
                       "\"num_attention_heads\": 12, \"ffn_dim\": 3072, \"word_embed_proj_dim\": 768, "
                       "\"vocab_size\": 50272, \"max_position_embeddings\": 2048, \"do_layer_norm_before\": true}" },
        { 6649286656.0, "{\"model_type\": \"mpt\", \"n_layers\": 32, \"d_model\": 4096, \"n_heads\": 32, "
                        "\"expansion_ratio\": 4, \"vocab_size\": 50432, \"no_bias\": true, \"max_seq_len\": 2048, "
                        "\"attn_config\": {\"alibi\": true, \"qk_ln\": false}}" },
        { 2779683840.0, "{\"model_type\": \"phi\", \"num_hidden_layers\": 32, \"hidden_size\": 2560, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"intermediate_size\": 10240, "
                        "\"vocab_size\": 51200, \"qk_layernorm\": false}" },
        { 41873153344.0, "{\"model_type\": \"phimoe\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
                         "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 6400, "
                         "\"vocab_size\": 32064, \"attention_bias\": true, \"lm_head_bias\": true, "
                         "\"num_local_experts\": 16, \"num_experts_per_tok\": 2}" },
        { 6050882784.0, "{\"model_type\": \"gptj\", \"n_layer\": 28, \"n_embd\": 4096, \"n_head\": 16, \"n_inner\": "
                        "null, \"vocab_size\": 50400, \"rotary_dim\": 64}" },
        { 15517456384.0, "{\"model_type\": \"gpt_bigcode\", \"n_layer\": 40, \"n_embd\": 6144, \"n_head\": 48, "
                         "\"n_inner\": 24576, \"n_positions\": 8192, \"vocab_size\": 49152, \"multi_query\": true}" },
        { 7173923840.0, "{\"model_type\": \"starcoder2\", \"num_hidden_layers\": 32, \"hidden_size\": 4608, "
                        "\"num_attention_heads\": 36, \"num_key_value_heads\": 4, \"intermediate_size\": 18432, "
                        "\"vocab_size\": 49152, \"use_bias\": true, \"sliding_window\": 4096, \"mlp_type\": "
                        "\"default\"}" },
        { 1644515328.0, "{\"model_type\": \"stablelm\", \"num_hidden_layers\": 24, \"hidden_size\": 2048, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"intermediate_size\": 5632, "
                        "\"vocab_size\": 100352, \"use_qkv_bias\": true}" },
        { 34980831232.0, "{\"model_type\": \"cohere\", \"num_hidden_layers\": 40, \"hidden_size\": 8192, "
                         "\"num_attention_heads\": 64, \"num_key_value_heads\": 64, \"intermediate_size\": 22528, "
                         "\"vocab_size\": 256000, \"use_qk_norm\": false}" },
        { 8028033024.0, "{\"model_type\": \"cohere2\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
                        "\"vocab_size\": 256000, \"head_dim\": 128, \"sliding_window\": 4096, \"layer_switch\": 4, "
                        "\"order_of_interleaved_layers\": \"local_attn_first\", \"use_parallel_block\": true}" },
        { 7298617344.0, "{\"model_type\": \"olmo2\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"intermediate_size\": 11008, "
                        "\"vocab_size\": 100352}" },
        { 6919161856.0, "{\"model_type\": \"olmoe\", \"num_hidden_layers\": 16, \"hidden_size\": 2048, "
                        "\"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"intermediate_size\": 1024, "
                        "\"vocab_size\": 50304, \"num_experts\": 64, \"num_experts_per_tok\": 8}" },
        { 9400279040.0, "{\"model_type\": \"glm4\", \"num_hidden_layers\": 40, \"hidden_size\": 4096, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 2, \"intermediate_size\": 13696, "
                        "\"vocab_size\": 151552, \"head_dim\": 128, \"attention_bias\": true}" },
        { 36151104512.0, "{\"model_type\": \"seed_oss\", \"num_hidden_layers\": 64, \"hidden_size\": 5120, "
                         "\"num_attention_heads\": 80, \"num_key_value_heads\": 8, \"intermediate_size\": 27648, "
                         "\"vocab_size\": 155136, \"head_dim\": 128, \"attention_bias\": true, "
                         "\"attention_out_bias\": false}" },
        { 3075098624.0, "{\"model_type\": \"smollm3\", \"num_hidden_layers\": 36, \"hidden_size\": 2048, "
                        "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"intermediate_size\": 11008, "
                        "\"vocab_size\": 128256, \"no_rope_layers\": [1, 1, 1, 0], \"no_rope_layer_interval\": 4}" },
        { 32003216384.0, "{\"model_type\": \"exaone4\", \"num_hidden_layers\": 64, \"hidden_size\": 5120, "
                         "\"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"intermediate_size\": 27392, "
                         "\"vocab_size\": 102400, \"head_dim\": 128, \"sliding_window\": 4096, "
                         "\"sliding_window_pattern\": \"LLLG\"}" },
        { 16375728128.0, "{\"model_type\": \"deepseek\", \"num_hidden_layers\": 28, \"hidden_size\": 2048, "
                         "\"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"intermediate_size\": 10944, "
                         "\"vocab_size\": 102400, \"n_routed_experts\": 64, \"n_shared_experts\": 2, "
                         "\"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1408, \"first_k_dense_replace\": 1, "
                         "\"moe_layer_freq\": 1}" },
        { 131596523520.0, "{\"model_type\": \"dbrx\", \"n_layers\": 40, \"d_model\": 6144, \"n_heads\": 48, "
                          "\"vocab_size\": 100352, \"attn_config\": {\"kv_n_heads\": 8, \"clip_qkv\": 8}, "
                          "\"ffn_config\": {\"ffn_hidden_size\": 10752, \"moe_num_experts\": 16, \"moe_top_k\": 4}}" },
        { 6243584000.0, "{\"model_type\": \"chatglm\", \"num_layers\": 28, \"hidden_size\": 4096, "
                        "\"num_attention_heads\": 32, \"ffn_hidden_size\": 13696, \"kv_channels\": 128, "
                        "\"multi_query_attention\": true, \"multi_query_group_num\": 2, \"padded_vocab_size\": "
                        "65024, \"add_qkv_bias\": true, \"add_bias_linear\": false, \"rmsnorm\": true, "
                        "\"post_layer_norm\": true}" },
        { 1836828672.0, "{\"model_type\": \"qwen\", \"num_hidden_layers\": 24, \"hidden_size\": 2048, "
                        "\"num_attention_heads\": 16, \"kv_channels\": 128, \"intermediate_size\": 11008, "
                        "\"vocab_size\": 151936, \"no_bias\": true}" },
        { 7737708544.0, "{\"model_type\": \"internlm2\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
                        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
                        "\"vocab_size\": 92544, \"bias\": false}" },
        { 26895998464.0, "{\"model_type\": \"qwen3_5\", \"tie_word_embeddings\": false, \"text_config\": "
                         "{\"model_type\": \"qwen3_5_text\", \"num_hidden_layers\": 64, \"hidden_size\": 5120, "
                         "\"num_attention_heads\": 24, \"num_key_value_heads\": 4, \"intermediate_size\": 17408, "
                         "\"vocab_size\": 248320, \"head_dim\": 256, \"full_attention_interval\": 4, "
                         "\"linear_num_key_heads\": 16, \"linear_num_value_heads\": 48, \"attn_output_gate\": true, "
                         "\"mlp_only_layers\": []}}" },
        { 34660610688.0, "{\"model_type\": \"qwen3_5_moe\", \"tie_word_embeddings\": false, \"text_config\": "
                         "{\"model_type\": \"qwen3_5_moe_text\", \"num_hidden_layers\": 40, \"hidden_size\": 2048, "
                         "\"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"vocab_size\": 248320, "
                         "\"num_experts\": 256, \"num_experts_per_tok\": 8, \"moe_intermediate_size\": 512, "
                         "\"shared_expert_intermediate_size\": 512, \"head_dim\": 256}}" },
        { 278043648.0, "{\"model_type\": \"xlm-roberta\", \"architectures\": [\"XLMRobertaModel\"], "
                       "\"num_hidden_layers\": 12, \"hidden_size\": 768, \"num_attention_heads\": 12, "
                       "\"intermediate_size\": 3072, \"vocab_size\": 250002, \"max_position_embeddings\": 514, "
                       "\"type_vocab_size\": 1}" },
        { 6738939904.0, "{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\", \"vocab_size\": "
                        "32064}}" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        trn_model_size size;
        must_load(row[i].text, &all);
        assert_int_equal(trn_model_size_of(&all.model, &size, NULL), TRN_OK);
        near(size.total, row[i].total, row[i].text);
    }
}

#define SIZES "\"num_hidden_layers\": 8, \"hidden_size\": 64, \"num_attention_heads\": 8, \"vocab_size\": 32"
#define DENSE SIZES ", \"intermediate_size\": 96"

#define INDEXED                                                                                                        \
    "{\"model_type\": \"glm_moe_dsa\", \"q_lora_rank\": 8, \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 8, "             \
    "\"qk_rope_head_dim\": 8, \"v_head_dim\": 8, \"index_n_heads\": 2, \"index_head_dim\": 8, \"index_topk\": 4, " DENSE

/* Windows: whose, how wide, in how many layers. */
static void windows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t window, layers;
    } row[] = {
        { "{\"model_type\": \"mistral\", " DENSE "}", 4096, 8 }, /* its class's */
        { "{\"model_type\": \"mistral\", " DENSE ", \"sliding_window\": null}", 0, 0 },
        { "{\"model_type\": \"ministral3\", " DENSE "}", 0, 0 },
        { "{\"model_type\": \"exaone4\", " DENSE ", \"sliding_window_pattern\": \"LLG\"}", 4096, 6 },
        { "{\"model_type\": \"cohere2\", " DENSE ", \"layer_switch\": 2}", 4096, 4 },
        { "{\"model_type\": \"olmo3\", " DENSE ", \"sliding_window\": 16}", 16, 6 },
        { "{\"model_type\": \"gemma3_text\", \"num_key_value_heads\": 4, " DENSE ", \"_sliding_window_pattern\": 4, "
          "\"layer_types\": null, \"sliding_window\": 16}",
          16, 6 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        must_load(row[i].text, &all);
        if (all.model.window != row[i].window || all.model.window_layers != row[i].layers)
            fail_msg("%s: %lld in %lld", row[i].text, (long long)all.model.window, (long long)all.model.window_layers);
    }
}

/* What the class has is told; null is an answer; a file of its own names its sizes. */
static void left_out(void **state)
{
    (void)state;
    static hf_config all;
    char why[HF_WHY];
    must_load("{\"model_type\": \"mistral\", " DENSE ", \"sliding_window\": null}", &all);
    assert_int_equal(all.model.kv_heads, 8);
    assert_int_equal(all.notes.count, 1);
    assert_string_equal(all.notes.text[0], "the file has no 'num_key_value_heads': 8, as mistral's class has it");
    must_load("{\"model_type\": \"mistral\", " DENSE ", \"sliding_window\": null, \"num_key_value_heads\": null}",
              &all);
    assert_int_equal(all.model.kv_heads, 0);
    must_load("{\"model_type\": \"gpt_neox\", " DENSE "}", &all);
    assert_true(all.model.qkv_bias && all.model.o_bias && all.model.mlp_bias);
    must_load("{\"model_type\": \"gpt_neox\", " DENSE ", \"attention_bias\": false}", &all);
    assert_false(all.model.qkv_bias || all.model.o_bias);
    must_load("{\"model_type\": \"x\", \"text_config\": {\"model_type\": \"llama\", \"num_hidden_layers\": 2}}", &all);
    assert_int_equal(all.model.hidden, 4096);
    assert_false(load("{\"model_type\": \"llama\", \"num_hidden_layers\": 2}", &all, why));
    assert_string_equal(why, "config.json: it has no 'hidden_size', which llama needs");
}

/* What is not planned is told in one short sentence, which leads to the list of what is. */
static void listed(void **state)
{
    (void)state;
    static char page[1 << 16];
    static hf_config all;
    const hf_family *family;
    char why[HF_WHY], name[80];
    FILE *file = fopen(TRN_SOURCE_DIR "/examples/tools/shardplan/README.md", "rb");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    for (int i = 0; (family = hf_family_at(i)) != NULL; i++) {
        snprintf(name, sizeof name, "`%s`", family->type);
        if (!strstr(page, name)) fail_msg("README.md of shardplan does not name %s", family->type);
    }
    assert_false(load("{\"model_type\": \"gemma99\"}", &all, why));
    assert_non_null(strstr(why, "(shardplan's README); near it are gemma, gemma2, gemma3_text"));
    assert_false(load("{\"model_type\": \"zz\"}", &all, why));
    assert_string_equal(why + strlen(why) - 20, "(shardplan's README)");
}

/* Of two ways to say one thing; what says nothing of sizes. */
static void passed_over(void **state)
{
    (void)state;
    static hf_config all;
    must_load("{\"model_type\": \"llama\", " DENSE
              ", \"num_beams\": 1, \"num_beam_groups\": 1, \"no_repeat_ngram_size\": 2, "
              "\"chunk_size_feed_forward\": 4, \"_attn_implementation_autoset\": true, \"num_return_sequences\": 1}",
              &all);
    must_load("{\"model_type\": \"mixtral\", " DENSE ", \"moe_frequency\": 1}", &all);
    must_load(INDEXED ", \"indexer_types\": [\"full\", \"full\"]}", &all);
    must_load("{\"model_type\": \"internvl_chat\", \"llm_config\": {\"model_type\": \"llama\", " DENSE "}}", &all);
}

#define MPT "{\"model_type\": \"mpt\", \"n_layers\": 2, \"d_model\": 8, \"n_heads\": 2, \"vocab_size\": 9"

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } row[] = {
        { "{\"model_type\": \"opt\", " SIZES ", \"ffn_dim\": 96, \"word_embed_proj_dim\": 32}",
          "its 'word_embed_proj_dim' is 32, not its 'hidden_size' 64" },
        { "{\"model_type\": \"opt\", " SIZES ", \"ffn_dim\": 96, \"do_layer_norm_before\": false}",
          "its 'do_layer_norm_before' is false: only norms before their blocks are counted" },
        { MPT ", \"no_bias\": false}", "its 'no_bias' is false: biases are not counted" },
        { MPT ", "
              "\"attn_config\": {\"kv_n_heads\": 2}}",
          "its 'attn_config' has 'kv_n_heads', which is not counted" },
        { "{\"model_type\": \"phi\", " DENSE ", \"qk_layernorm\": true}", "its 'qk_layernorm' is true" },
        { "{\"model_type\": \"qwen\", " SIZES ", \"intermediate_size\": 95}", "its 'intermediate_size' 95 is odd" },
        { "{\"model_type\": \"starcoder2\", " DENSE ", \"num_key_value_heads\": 2, \"mlp_type\": \"gated\"}",
          "its 'mlp_type' is 'gated': only 'default' is counted" },
        { "{\"model_type\": \"dbrx\", \"n_layers\": 2, \"d_model\": 8, \"n_heads\": 2, \"vocab_size\": 9}",
          "it has no 'attn_config' or no 'ffn_config', which dbrx needs" },
        { INDEXED ", \"indexer_types\": [\"full\", \"shared\"]}", "its 'indexer_types' has others than 'full'" },
        { "{\"model_type\": \"mixtral\", " DENSE ", \"moe_frequency\": 2}", "its 'moe_frequency' may change sizes" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        char why[HF_WHY];
        if (load(row[i].text, &all, why) || !strstr(why, row[i].says)) fail_msg("%s: '%s'", row[i].text, why);
    }
}

/* ---- formats ---- */

#define GLM "{\"model_type\": \"glm4_moe\", \"num_key_value_heads\": 2, \"head_dim\": 8, \"n_routed_experts\": 4, "
#define EXPERTS "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 16, \"n_shared_experts\": 1, "
#define MOE GLM EXPERTS "\"first_k_dense_replace\": 2, " DENSE ", \"quantization_config\": "
#define QWEN "{\"model_type\": \"qwen3_5_text\", \"num_key_value_heads\": 2, \"head_dim\": 8, "
#define HYBRID QWEN "\"full_attention_interval\": 4, " DENSE ", \"quantization_config\": "
#define NVFP4 "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"ignore\": "
#define PACKED                                                                                                         \
    "{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"weights\": {\"num_bits\": 4, \"type\": " \
    "\"int\", \"group_size\": 16}}}, \"ignore\": "

/* Bits of an element of attention, of dense and shared blocks, of experts. */
static void formats(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double bits[3];
    } row[] = {
        /* names beside a tower */
        { MOE NVFP4 "[\"language_model.model.layers.*.self_attn*\"]}}", { 16, 4.5, 4.5 } },
        { MOE NVFP4 "[\"model.language_model.layers.*.self_attn*\"]}}", { 16, 4.5, 4.5 } },
        { MOE NVFP4 "[\"model.layers.*.self_attn*\", \"vision_tower*\"]}}", { 16, 4.5, 4.5 } },
        { MOE NVFP4 "[\"vision_model.layers.*.self_attn*\"]}}", { 4.5, 4.5, 4.5 } },
        /* dense blocks are where there are no experts: in layers 0 and 1 */
        { MOE NVFP4 "[\"model.layers.0*\", \"model.layers.1.*\", \"*.mlp.shared_experts*\"]}}",
          { 4.5 + 11.5 / 4, 16, 4.5 } },
        { MOE NVFP4 "[\"model.layers.7.mlp.experts*\"]}}", { 4.5, 4.5, 4.5 + 11.5 / 6 } },
        /* linear attention is where there is no other */
        { HYBRID NVFP4 "[\"model.layers.*.linear_attn*\", \"model.layers.3.self_attn*\", "
                       "\"model.layers.7.self_attn*\"]}}",
          { 16, 4.5, 0 } },
        /* Python's re.match: from the beginning, \\d is a digit, (?:) and lazy forms */
        { MOE PACKED "[\"re:.*self_attn.*\"]}}", { 16, 5, 5 } },
        { MOE PACKED "[\"re:self_attn.*\"]}}", { 5, 5, 5 } },
        { MOE PACKED "[\"re:model\\\\.layers\\\\.\\\\d+\\\\.self_attn\\\\.(?:q|k|v|o)_proj\"]}}", { 16, 5, 5 } },
        { MOE PACKED "[\"re:.*?layers\\\\.[\\\\d]+?\\\\.mlp\\\\.(gate|up|down)_proj$\", \"re:.*shared_experts.*\"]}}",
          { 5, 16, 5 } },
        /* what other quantizers write */
        { MOE "{\"quant_algo\": \"FP8\", \"producer\": {\"name\": \"modelopt\"}}}", { 8, 8, 8 } },
        { MOE "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MXFP8\"}}", { 8.25, 8.25, 8.25 } },
        { MOE "{\"quant_method\": \"modelopt\", \"quant_algo\": \"W4A16_AWQ\", \"group_size\": 64}}",
          { 4.25, 4.25, 4.25 } },
        { MOE "{\"quant_method\": \"quark\", \"global_quant_config\": {\"weight\": {\"dtype\": \"fp4\", \"qscheme\": "
              "\"per_group\", \"group_size\": 32, \"scale_format\": \"e8m0\"}}, \"layer_quant_config\": {}, "
              "\"exclude\": [\"lm_head\", \"*self_attn*\"]}}",
          { 16, 4.25, 4.25 } },
        { MOE "{\"quant_method\": \"auto-round\", \"bits\": 4, \"group_size\": 16, \"extra_config\": {"
              "\"model.layers.0.self_attn\": {\"bits\": 16}}}}",
          { 5.25 + 10.75 / 8, 5.25, 5.25 } },
        { MOE "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": -1, \"dynamic\": {\"-:.*self_attn.*\": {}}}}",
          { 16, 4, 4 } },
        { MOE "{\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true}}", { 8, 8, 8 } },
        /* modules by their names, or by that of what is around them */
        { MOE "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": {"
              "\"model.language_model.layers.2.self_attn.q_proj\": {\"quant_algo\": \"FP8\"}, "
              "\"model.layers.0.mlp\": {\"quant_algo\": \"W4A16_NVFP4\", \"group_size\": 16}, "
              "\"model.layers.3.mlp.experts\": {\"quant_algo\": \"NVFP4\"}}}}",
          { 16 - 8 * (64.0 * 64) / (8 * (64.0 * 64 * 2 + 2 * 64 * 16)),
            16 - 11.5 * (3 * 64.0 * 96) / (2 * 3 * 64.0 * 96 + 6 * 3 * 64.0 * 16), 16 - 11.5 / 6 } },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        must_load(row[i].text, &all);
        for (int k = 0; k < 3; k++)
            if (k != HF_EXPERTS || all.model.experts) near(all.quantised.kind[k].bits, row[i].bits[k], row[i].text);
    }
}

static void bad_formats(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } row[] = {
        { "{\"quant_method\": \"awq\", \"bits\": \"4\"}", "has a 'bits' that is no whole number from 1 to 16" },
        { "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": -5}",
          "has a 'group_size' that is no whole number" },
        { "{\"quant_method\": \"fp8\", \"weight_block_size\": [0, 128]}",
          "has a 'weight_block_size' that is no list of" },
        { "{\"quant_method\": \"fp8\", \"weight_block_size\": [\"a\", 1]}",
          "has a 'weight_block_size' that is no list" },
        { "{\"quant_method\": \"fp8\", \"weight_block_size\": {}}",
          "has a 'weight_block_size' that is no whole number" },
        { "{\"quant_method\": \"fp8\", \"ignore\": \"lm_head\"}", "has a 'ignore' that is no list of names" },
        { "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"group_size\": 0}",
          "has a 'group_size' that is" },
        { "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\"}", "and has no 'quantized_layers'" },
        { "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": {"
          "\"model.layers.0.self_attn\": {\"quant_algo\": \"FP8\"}, \"model.layers.1\": {\"quant_algo\": \"NVFP4\"}}}",
          "has matrices of one kind in two formats" },
        { "{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": \"true\"}", "that is neither true nor false" },
        { "{\"quant_method\": \"bitsandbytes\"}", "with neither of 'load_in_4bit' and 'load_in_8bit'" },
        { "{\"quant_method\": \"gptq\", \"bits\": 4, \"dynamic\": {\"+:.*mlp.*\": {\"bits\": 8}}}",
          "has settings of its own for '+:.*mlp.*' ('dynamic')" },
        { "{\"quant_method\": \"auto-round\", \"bits\": 4, \"data_type\": \"mx_fp\"}", "has the 'data_type' 'mx_fp'" },
        { "{\"quant_method\": \"quark\", \"layer_quant_config\": {\"a\": {}}}", "has a 'layer_quant_config'" },
        { "{\"quant_method\": \"fp8\", \"ignore\": [\"re:(?!x)y\"]}",
          "'(?!x)y', a regular expression that is not read" },
        { "{\"quant_method\": \"fp8\", \"ignore\": [\"re:(((\"]}", "'(((', which is no regular expression" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        char text[1024], why[HF_WHY];
        snprintf(text, sizeof text, MOE "%s}", row[i].text);
        if (load(text, &all, why) || !strstr(why, row[i].says)) fail_msg("%s: '%s'", row[i].text, why);
    }
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* hf_quant_config.json counts beside a config.json that says nothing of formats, and nowhere else. */
static void beside(void **state)
{
    (void)state;
    static hf_config all;
    char why[HF_WHY];
    put(scratch("config.json"), "{\"model_type\": \"llama\", " DENSE "}");
    put(scratch("other.json"), "{\"model_type\": \"llama\", " DENSE "}");
    put(scratch("hf_quant_config.json"),
        "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {\"quant_algo\": \"NVFP4\", \"group_size\": 16, "
        "\"kv_cache_quant_algo\": \"FP8\", \"exclude_modules\": [\"lm_head\", \"model.layers.*.self_attn*\"]}}");
    if (!hf_config_load(scratch("config.json"), NULL, &all, why)) fail_msg("%s", why);
    near(all.quantised.kind[HF_ATTENTION].bits, 16, "attention");
    near(all.quantised.kind[HF_MLP].bits, 4.5, "blocks");
    near(all.quantised.kv.bits, 8, "keys and values");
    assert_string_equal(all.notes.text[0], "the weights' formats: hf_quant_config.json, which lies beside it");
    if (!hf_config_load(scratch("other.json"), NULL, &all, why)) fail_msg("%s", why);
    assert_false(all.quantised.any);
    put(scratch("config.json"),
        "{\"model_type\": \"llama\", " DENSE ", \"quantization_config\": {\"quant_method\": \"fp8\"}}");
    if (!hf_config_load(scratch("config.json"), NULL, &all, why)) fail_msg("%s", why);
    near(all.quantised.kind[HF_MLP].bits, 8, "its own");
}

#else
#include "without_cjson.h"
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(HAVE_CJSON)
        cmocka_unit_test(families),
        cmocka_unit_test(windows),
        cmocka_unit_test(left_out),
        cmocka_unit_test(listed),
        cmocka_unit_test(passed_over),
        cmocka_unit_test(refused),
        cmocka_unit_test(formats),
        cmocka_unit_test(bad_formats),
        cmocka_unit_test_setup_teardown(beside, make_folder, remove_folder),
#else
        cmocka_unit_test(without_cjson),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

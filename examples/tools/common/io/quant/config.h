/* config.h - what lies beside a checkpoint's weights and says how they are quantised: config.json and the like.
 * SPDX-License-Identifier: MIT
 *
 *     quant_said said;
 *     char why[IO_WHY];
 *     if (!quant_said_read("Llama-FP8", &said, why)) return puts(why), 2;
 *     quant_facts f = quant_facts_of(&said, "model.layers.0.mlp.up_proj");
 *     ... f.block[0], f.block[1] ...
 *     quant_said_free(&said);
 *
 * The description is the object quantization_config, compression_config or quantization (TensorRT-LLM, MLX), in
 * config.json or in its text_config; else quantization in hf_quant_config.json. Of one module it says:
 *
 * | where                                        | what                                                           |
 * |----------------------------------------------|----------------------------------------------------------------|
 * | weight_block_size                            | [rows, columns] of a block (transformers, DeepSeek)            |
 * | config_groups.*.weights, by targets          | block_structure; group_size; strategy; num_bits; type          |
 * | quantized_layers.NAME                        | group_size, quant_algo (ModelOpt, mixed)                       |
 * | quant_algo FP8_PB_WO, FP8_PB_REAL            | blocks of 128 x 128 (ModelOpt), unless a size stands beside it |
 * | weight or global_quant_config.weight (Quark) | group_size                                                     |
 * | group_size, q_group_size; bits, w_bit        | of all (AWQ, GPTQ, ModelOpt, MLX); -1: no groups               |
 * | extra_config.NAME; dynamic, by "+:REGEX"     | bits, group_size, sym of one (AutoRound; GPTQModel)            |
 *
 * AutoRound's words are GPTQ's or AWQ's where its packing_format (once: backend) says so, and then that is the method;
 * its own (auto_round:exllamav2) are no other's.
 *
 * CONTENTS
 *     quant_said, quant_said_read     what a checkpoint's files say; the same of texts: quant_said_parse
 *     quant_facts, quant_facts_of     what is said of one module
 *     quant_text, quant_whole         a text, a whole number of an object
 *
 * KNOWN FROM: transformers 5.0, compressed-tensors 0.12, ModelOpt 0.40, AutoAWQ, GPTQModel, Quark 0.10: their
 *     configurations.
 */
#ifndef IO_QUANT_CONFIG_H
#define IO_QUANT_CONFIG_H

#include <strings.h>

#include "../checkpoint.h"
#include "../int_groups.h"
#include "../pattern.h"

enum { QUANT_NAME = 16384, QUANT_LONGEST = QUANT_NAME - 256, QUANT_MOST_CONFIG = 1 << 24, QUANT_WORD = 48 };

typedef struct quant_said {
    cJSON *config, *modelopt; /* config.json; hf_quant_config.json; NULL: there is none */
    const cJSON *object;      /* the description in either; NULL: nothing is said */
    const char *file;         /* where it stands, without a directory */
    char method[QUANT_WORD], algo[QUANT_WORD], format[QUANT_WORD]; /* quant_method or quant_algo; quant_algo; format */
    char model_type[QUANT_WORD], expert_dtype[QUANT_WORD];
    int64_t block[2];             /* weight_block_size; 0: it says nothing */
    int64_t hidden, intermediate; /* of experts; 0: it says nothing */
} quant_said;

typedef struct quant_facts {
    int64_t block[2]; /* rows and columns that share a scale; 0: nothing is said; -1: the whole axis */
    int64_t group;    /* inputs that do; 0: nothing is said; -1: all */
    int bits;         /* 0: nothing is said */
    int_groups_said symmetric;
    char format[QUANT_WORD], type[QUANT_WORD], strategy[QUANT_WORD]; /* compressed-tensors */
} quant_facts;

/* ---- members ---- */

IO_FN const cJSON *quant_member(const cJSON *object, const char *key)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

IO_FN void quant_text(const cJSON *object, const char *key, char text[QUANT_WORD])
{
    const char *value = cJSON_GetStringValue(quant_member(object, key));
    if (value) snprintf(text, QUANT_WORD, "%.40s", value);
}

/* A whole number from -1 to 2^40; `missing` where there is none. */
IO_FN int64_t quant_whole(const cJSON *object, const char *key, int64_t missing)
{
    const cJSON *n = quant_member(object, key);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= -1 && n->valuedouble <= 0x1p40)) return missing;
    return n->valuedouble == (double)(int64_t)n->valuedouble ? (int64_t)n->valuedouble : missing;
}

/* [64, 128], or "64x128". false: it is neither. */
IO_FN bool quant_pair(const cJSON *value, int64_t pair[2])
{
    long long a, b;
    char rest;
    const char *text = cJSON_GetStringValue(value);
    if (text && sscanf(text, "%lldx%lld%c", &a, &b, &rest) == 2) return pair[0] = a, pair[1] = b, a > 0 && b > 0;
    if (cJSON_GetArraySize(value) != 2) return false;
    for (int i = 0; i < 2; i++) {
        const cJSON *n = cJSON_GetArrayItem(value, i);
        const bool good = cJSON_IsNumber(n) && n->valuedouble >= 1 && n->valuedouble <= 1 << 20 &&
                          n->valuedouble == (double)n->valueint;
        if (!good) return false;
        pair[i] = n->valueint;
    }
    return true;
}

/* ---- one module ---- */

/* Do these targets name the module? 2: by its name; 1: by a class, which is any matrix's. */
IO_FN int quant_targets(const cJSON *list, const char *module)
{
    const cJSON *item;
    int found = 0;
    cJSON_ArrayForEach(item, list) {
        const char *text = cJSON_GetStringValue(item), *wrong;
        if (!text || !*text) continue;
        if (strncmp(text, "re:", 3) == 0) {
            if (pattern_match(text + 3, module, &wrong) == 1) return 2;
            continue;
        }
        const size_t n = strlen(module), m = strlen(text);
        const bool tail = n > m && strcmp(module + n - m, text) == 0 && module[n - m - 1] == '.';
        if (tail || pattern_glob(text, module)) return 2;
        if (*text >= 'A' && *text <= 'Z' && !strpbrk(text, "._*?")) found = 1;
    }
    return found;
}

/* What compressed-tensors says of weights in one of its groups. */
IO_FN void quant_facts_of_group(const cJSON *group, quant_facts *f)
{
    const cJSON *w = quant_member(group, "weights");
    const cJSON *symmetric = quant_member(w, "symmetric");
    quant_text(group, "format", f->format);
    quant_text(w, "strategy", f->strategy);
    quant_text(w, "type", f->type);
    f->bits = (int)quant_whole(w, "num_bits", f->bits);
    if (cJSON_IsBool(symmetric)) f->symmetric = cJSON_IsTrue(symmetric) ? INT_GROUPS_TRUE : INT_GROUPS_FALSE;
    f->group = quant_whole(w, "group_size", f->group);
    const cJSON *block = quant_member(w, "block_structure");
    if (block && !cJSON_IsNull(block)) quant_pair(block, f->block);
    if (strcmp(f->strategy, "channel") == 0) f->block[0] = 1, f->block[1] = -1;
    if (strcmp(f->strategy, "tensor") == 0) f->block[0] = f->block[1] = -1;
}

IO_FN void quant_facts_of_groups(const quant_said *s, const char *module, quant_facts *f)
{
    const cJSON *groups = quant_member(s->object, "config_groups"), *group, *best = NULL;
    int surest = 0;
    cJSON_ArrayForEach(group, groups) {
        const int sure = quant_targets(quant_member(group, "targets"), module);
        if (sure > surest) best = group, surest = sure;
    }
    if (best) quant_facts_of_group(best, f);
}

/* What one layer has that the others have not. */
IO_FN void quant_facts_of_layer(const cJSON *layer, quant_facts *f)
{
    const cJSON *sym = quant_member(layer, "sym");
    f->bits = (int)quant_whole(layer, "bits", f->bits);
    f->group = quant_whole(layer, "group_size", f->group);
    if (cJSON_IsBool(sym)) f->symmetric = cJSON_IsTrue(sym) ? INT_GROUPS_TRUE : INT_GROUPS_FALSE;
}

/* The first rule of GPTQModel's that names the module; "-:" says that it is not quantised. */
IO_FN void quant_facts_of_dynamic(const quant_said *s, const char *module, quant_facts *f)
{
    const cJSON *rule, *rules = quant_member(s->object, "dynamic");
    cJSON_ArrayForEach(rule, rules) {
        const char *wrong, *text = rule->string ? rule->string : "-:";
        const bool minus = strncmp(text, "-:", 2) == 0, plus = strncmp(text, "+:", 2) == 0;
        if (pattern_match(text + (minus || plus ? 2 : 0), module, &wrong) != 1) continue;
        if (!minus) quant_facts_of_layer(rule, f);
        return;
    }
}

/* ModelOpt's words for one layer or for all. */
IO_FN void quant_facts_of_algo(const cJSON *object, quant_facts *f)
{
    char algo[QUANT_WORD] = "";
    quant_text(object, "quant_algo", algo);
    if (strncmp(algo, "FP8_PB", 6) == 0 && !f->block[0]) f->block[0] = f->block[1] = 128;
    if (strcmp(algo, "MXFP8") == 0 && !f->group) f->group = 32;
}

IO_FN quant_facts quant_facts_of(const quant_said *s, const char *module)
{
    static const char *const sizes[] = { "group_size", "q_group_size", "wq_group_size" };
    quant_facts f = { { s->block[0], s->block[1] }, 0, 0, INT_GROUPS_UNSAID, "", "", "" };
    const cJSON *quark = quant_member(s->object, "global_quant_config");
    const cJSON *weight = quant_member(quark ? quark : s->object, "weight");
    const cJSON *layer = quant_member(quant_member(s->object, "quantized_layers"), module);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !f.group; i++)
        f.group = quant_whole(s->object, sizes[i], 0);
    f.bits = (int)quant_whole(s->object, "bits", quant_whole(s->object, "w_bit", 0));
    snprintf(f.format, sizeof f.format, "%s", s->format);
    f.group = quant_whole(weight, "group_size", f.group);
    quant_facts_of_groups(s, module, &f);
    quant_facts_of_layer(quant_member(quant_member(s->object, "extra_config"), module), &f);
    quant_facts_of_dynamic(s, module, &f);
    quant_facts_of_algo(s->object, &f);
    f.group = quant_whole(layer, "group_size", f.group);
    quant_facts_of_algo(layer, &f);
    return f;
}

/* ---- files ---- */

/* NULL with a sentence: it is not an object. */
IO_FN cJSON *quant_object(const char *text, size_t size, const char *name, char *why)
{
    const bool good = size <= QUANT_MOST_CONFIG && io_utf8(text, size);
    io_json j = io_json_file(text, good ? size : 0);
    while (good && io_json_next(&j)) continue;
    cJSON *root = good && !j.wrong ? io_json_tree(text, size, NULL) : NULL;
    if (cJSON_IsObject(root)) return root;
    io_fail(why, name, "it is not a JSON object%s%s", good && j.wrong ? ": " : "", good && j.wrong ? j.wrong : "");
    cJSON_Delete(root);
    return NULL;
}

/* The object, wherever it was found to stand. */
IO_FN const cJSON *quant_find_object(quant_said *s)
{
    static const char *const key[] = { "quantization_config", "compression_config", "quantization" };
    const cJSON *place[] = { s->config, quant_member(s->config, "text_config"),
                             quant_member(s->config, "language_config"), quant_member(s->config, "llm_config") };
    s->file = "config.json";
    for (size_t i = 0; i < sizeof place / sizeof place[0]; i++)
        for (size_t k = 0; k < sizeof key / sizeof key[0]; k++)
            if (cJSON_IsObject(quant_member(place[i], key[k]))) return quant_member(place[i], key[k]);
    const cJSON *modelopt = quant_member(s->modelopt, "quantization");
    if (!cJSON_IsObject(modelopt)) return NULL;
    s->file = "hf_quant_config.json";
    return modelopt;
}

/* What experts in one tensor are measured by. */
IO_FN void quant_read_model(quant_said *s)
{
    const cJSON *text = quant_member(s->config, "text_config");
    const cJSON *place[] = { s->config, text };
    for (int i = 0; i < 2; i++) {
        quant_text(place[i], "model_type", s->model_type);
        quant_text(place[i], "expert_dtype", s->expert_dtype);
        s->hidden = quant_whole(place[i], "hidden_size", s->hidden);
        const int64_t all = quant_whole(place[i], "intermediate_size", s->intermediate);
        s->intermediate = quant_whole(place[i], "moe_intermediate_size", all);
    }
    quant_text(s->object, "expert_dtype", s->expert_dtype);
}

/* "auto_round:auto_gptq", "auto_round:gptq:exllamav2", "auto_awq": the first word, without what they begin with. */
IO_FN void quant_name_auto_round(quant_said *s)
{
    static const char *const method[] = { "gptq", "awq" };
    char packing[QUANT_WORD] = "", type[QUANT_WORD] = "int";
    if (strcmp(s->method, "auto-round") != 0 && strcmp(s->method, "intel/auto-round") != 0) return;
    quant_text(s->object, "backend", packing);
    quant_text(s->object, "packing_format", packing);
    quant_text(s->object, "data_type", type);
    const char *word = packing;
    if (strncmp(word, "auto_round:", 11) == 0) word += 11;
    if (strncmp(word, "auto_", 5) == 0) word += 5;
    for (size_t i = 0; i < 2; i++)
        if (strcspn(word, ":") == strlen(method[i]) && strncmp(word, method[i], strlen(method[i])) == 0 &&
            strcmp(type, "int") == 0)
            snprintf(s->method, sizeof s->method, "%s", method[i]);
}

/* The trees are in *s. false with a sentence. */
IO_FN bool quant_said_understand(quant_said *s, char *why)
{
    s->object = quant_find_object(s);
    quant_read_model(s);
    if (!s->object) return true;
    quant_text(s->object, "quant_algo", s->method);
    quant_text(s->object, "quant_algo", s->algo);
    quant_text(s->object, "quant_method", s->method);
    quant_name_auto_round(s);
    quant_text(s->object, "format", s->format);
    const cJSON *block = quant_member(s->object, "weight_block_size");
    if (!block || cJSON_IsNull(block) || quant_pair(block, s->block)) return true;
    return io_fail(why, s->file, "its weight_block_size is not a list of two sizes");
}

/* *root: the file's object, NULL when there is no such file. false with a sentence. */
IO_FN bool quant_read_json(const char *path, const char *file, cJSON **root, char *why)
{
    io_map map;
    struct stat st;
    char *inside = ckpt_folder(path) ? ckpt_inside(path, file) : ckpt_path(path, file);
    *root = NULL;
    if (!inside) return io_fail(why, file, "there is not enough memory to read it");
    bool ok = true;
    if (stat(inside, &st) == 0) {
        ok = io_map_open(inside, &map, why);
        if (ok) *root = quant_object((const char *)map.bytes, map.size, inside, why);
        if (ok) io_map_close(&map);
        ok = *root != NULL;
    }
    free(inside);
    return ok;
}

/* Of the checkpoint at `path`, a file or a directory. quant_said_free it, also after a failure. */
IO_FN bool quant_said_read(const char *path, quant_said *s, char *why)
{
    memset(s, 0, sizeof *s);
    return quant_read_json(path, "config.json", &s->config, why) &&
           quant_read_json(path, "hf_quant_config.json", &s->modelopt, why) && quant_said_understand(s, why);
}

/* The same of the text of a config.json. */
IO_FN bool quant_said_parse(const char *text, size_t size, quant_said *s, char *why)
{
    memset(s, 0, sizeof *s);
    s->config = quant_object(text, size, "config.json", why);
    return s->config && quant_said_understand(s, why);
}

IO_FN void quant_said_free(quant_said *s)
{
    cJSON_Delete(s->config);
    cJSON_Delete(s->modelopt);
    memset(s, 0, sizeof *s);
}

#endif /* IO_QUANT_CONFIG_H */

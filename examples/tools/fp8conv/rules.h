/* rules.h - what a checkpoint's own files say of its quantisation: the method, and which modules it leaves alone.
 * SPDX-License-Identifier: MIT
 *
 * A module is a tensor's name without .weight. The lists that were found, and how their entries are meant:
 *
 *     modules_to_not_convert, ignored_layers, llm_int8_skip_modules (transformers, vLLM), exclude_modules (ModelOpt),
 *         exclude (Quark): a module, all inside of it, or one whose name ends so; '*' is any text; with one of \^$([+|
 *         it is a regular expression
 *     ignore (compressed-tensors, ModelOpt): this name exactly, or inside of it; "re:" a regular expression; "Linear"
 *         a class; '*' is any text
 *     dynamic (GPTQModel): "-:" and a regular expression: left alone; "+:" or nothing: quantised; the first counts
 *     config_groups' targets (compressed-tensors), quantized_layers (ModelOpt): as ignore; all others are left alone
 *     ignore and targets of recipe.yaml (llm-compressor), where no JSON says anything: the same
 *
 * Regular expressions are Python's re.match (io/pattern.h). No entry cuts a name: layers.1 is not in layers.12.
 */
#ifndef FP8CONV_RULES_H
#define FP8CONV_RULES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/quant/config.h"

typedef enum fc_rule_kind { FC_RULE_PART, FC_RULE_EXACT, FC_RULE_MINUS, FC_RULE_PLUS, FC_RULE_TARGET } fc_rule_kind;

typedef struct fc_rule {
    const char *text; /* cJSON's */
    const char *list; /* the field it stands in */
    fc_rule_kind kind;
} fc_rule;

typedef struct fc_rules {
    quant_said said;           /* config.json and hf_quant_config.json */
    cJSON *recipe;             /* lists of recipe.yaml, where both say nothing */
    const cJSON *quantisation; /* the description in said; NULL: there is none */
    const char *file;          /* where it stands, without a directory */
    fc_rule *rule;
    int rules, capacity;
    bool targets;    /* some are targets: others are left alone */
    bool tied;       /* the embedding is the output's matrix too */
    bool tied_known; /* the configuration says whether */
} fc_rules;

/* What lies beside the weights at `path`, a file or a directory, but for the lists of modules. fc_rules_free it, also
 * after a failure. */
bool fc_rules_read(const char *path, fc_rules *rules, char *why);
/* The lists. After a failure there are none. */
bool fc_rules_lists(const char *path, fc_rules *rules, char *why);
/* The lists "ignore" and "targets" of a recipe; NULL: one does not end, or memory is short. cJSON_Delete it. */
cJSON *fc_recipe_parse(const char *text);
void fc_rules_free(fc_rules *rules);
/* Is this module to be left alone? *because: in words, the entry; in 256 bytes. */
bool fc_rules_leave(const fc_rules *rules, const st_tensor *tensor, char because[256]);
/* Is it one of these, by its name? What published FP8 checkpoints leave alone: embeddings, norms, routers and so on. */
bool fc_usually_left(const char *name);
/* "a.b.weight" -> "a.b"; the name itself where it ends otherwise. */
void fc_module_of(const char *tensor, char *module, size_t size);

#endif /* FP8CONV_RULES_H */

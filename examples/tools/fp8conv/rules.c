/* rules.c - what a checkpoint's own files say of its quantisation, read and applied to names.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/checkpoint.h"
#include "io/pattern.h"

enum { NAME = 4096, MOST_CONFIG = 1 << 24 };

/* What published FP8 checkpoints leave alone, beside everything that is not a matrix. */
static const char *const usually_left[] = { "*embed*",          "*wte.*",       "*wpe.*",          "*norm*",
                                            "*lm_head*",        "*router*",     "output.weight",   "*.gate.weight",
                                            "*_gate.weight",    "*conv*",       "*patch*",         "*_scale*",
                                            "*attention_bias*", "*token_embd*", "*position_embd*", "*ffn_gate_inp*" };

/* Classes of modules, and the names by which their tensors are known here. */
static const struct {
    const char *class_name, *glob;
} classes[] = { { "Embedding", "*embed*" },   { "Embedding", "*wte*" }, { "Embedding", "*wpe*" },
                { "LayerNorm", "*norm*" },    { "RMSNorm", "*norm*" },  { "Conv1d", "*conv*" },
                { "Conv2d", "*conv*" },       { "Conv3d", "*conv*" },   { "Conv2d", "*patch_embed*" },
                { "Conv3d", "*patch_embed*" } };

bool fc_usually_left(const char *name)
{
    if (fnmatch("blk.*.ffn_gate.weight", name, 0) == 0) return false; /* llama.cpp's router is ffn_gate_inp */
    for (size_t i = 0; i < sizeof usually_left / sizeof usually_left[0]; i++)
        if (fnmatch(usually_left[i], name, 0) == 0) return true;
    return false;
}

void fc_module_of(const char *tensor, char *module, size_t size)
{
    static const char *const end[] = { ".weight", ".weight_packed", "_blocks", ".blocks" };
    size_t n = strlen(tensor);
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
        if (ckpt_ends(tensor, end[i]) && n > strlen(end[i])) n -= strlen(end[i]);
    snprintf(module, size, "%.*s", (int)(n < size ? n : size - 1), tensor);
}

/* ---- one entry and one module ---- */

/* Of these types a matrix is, where nothing in its name says otherwise. */
static bool is_class(const char *text, const st_tensor *t)
{
    bool other = false;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        const bool named = fnmatch(classes[i].glob, t->name, 0) == 0;
        if (named && strcmp(text, classes[i].class_name) == 0) return true;
        other = other || named;
    }
    return strcmp(text, "Linear") == 0 && !other && t->rank >= 2;
}

static bool looks_like_class(const char *text) { return text[0] >= 'A' && text[0] <= 'Z' && !strpbrk(text, "._*?"); }

/* The whole name, or from its beginning to a dot. */
static bool covers(const char *text, const char *module)
{
    char longer[NAME];
    if (pattern_glob(text, module)) return true;
    return snprintf(longer, sizeof longer, "%s.*", text) < NAME && pattern_glob(longer, module);
}

/* The same from any dot on. A dot or ".*" at the end of an entry says nothing more. */
static bool covers_part(const char *text, const char *module)
{
    char entry[NAME], longer[NAME];
    size_t n = (size_t)snprintf(entry, sizeof entry, "%s", text);
    if (n >= NAME - 4) return false;
    if (n > 2 && strcmp(entry + n - 2, ".*") == 0)
        entry[n - 2] = '\0';
    else if (n > 1 && entry[n - 1] == '.')
        entry[n - 1] = '\0';
    if (covers(entry, module)) return true;
    snprintf(longer, sizeof longer, "*.%.*s", NAME - 3, entry);
    return covers(longer, module);
}

/* NULL: this entry is none. Python's comes after "re:", or "+:" and "-:". */
static const char *regex_of(const fc_rule *r)
{
    const bool sign = strncmp(r->text, "+:", 2) == 0 || strncmp(r->text, "-:", 2) == 0;
    if (r->kind == FC_RULE_MINUS || r->kind == FC_RULE_PLUS) return r->text + (sign ? 2 : 0);
    if (strncmp(r->text, "re:", 3) == 0) return r->text + 3;
    return r->kind == FC_RULE_PART && strpbrk(r->text, "\\^$([+|") ? r->text : NULL;
}

static bool matches(const fc_rule *r, const st_tensor *t, const char *module)
{
    const char *regex = regex_of(r), *wrong;
    if (regex) return pattern_match(regex, module, &wrong) == 1 || pattern_match(regex, t->name, &wrong) == 1;
    if (r->kind == FC_RULE_PART) return covers_part(r->text, module);
    return looks_like_class(r->text) ? is_class(r->text, t) : covers(r->text, module);
}

bool fc_rules_leave(const fc_rules *rules, const st_tensor *t, char because[256])
{
    char module[NAME];
    bool signs = false, target = false;
    fc_module_of(t->name, module, sizeof module);
    for (int i = 0; i < rules->rules; i++) {
        const fc_rule *r = &rules->rule[i];
        const bool sign = r->kind == FC_RULE_MINUS || r->kind == FC_RULE_PLUS;
        if ((sign && signs) || !matches(r, t, module)) continue;
        signs = signs || sign;
        target = target || r->kind == FC_RULE_TARGET;
        if (r->kind == FC_RULE_PLUS || r->kind == FC_RULE_TARGET) continue;
        io_say_in(because, 256, IO_SAID, "%s, %s: %.150s", rules->file, r->list, r->text);
        return true;
    }
    if (!rules->targets || target) return false;
    snprintf(because, 256, "%s: it is none of the targets", rules->file);
    return true;
}

/* ---- reading ---- */

static bool add_rule(fc_rules *rules, const char *text, const char *list, fc_rule_kind kind, char *why)
{
    const char *wrong = NULL;
    if (!text || !*text) return io_fail(why, rules->file, "its %s has an entry that is no name", list);
    const fc_rule rule = { text, list, kind };
    const char *regex = regex_of(&rule);
    if (strlen(text) > 1000) return io_fail(why, rules->file, "its %s has an entry of more than 1000 bytes", list);
    if (regex && pattern_match(regex, "", &wrong) < 0)
        return io_fail(why, rules->file, "its %s has '%.100s', which has %s", list, text, wrong);
    if (kind == FC_RULE_EXACT && !regex && looks_like_class(text) && strcmp(text, "Linear") != 0) {
        bool known = false;
        for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
            known = known || strcmp(text, classes[i].class_name) == 0;
        if (!known)
            return io_fail(why, rules->file,
                           "its %s has the class '%.100s', and names do not tell which modules are of it "
                           "(--no-rules goes on without)",
                           list, text);
    }
    if (!st_grow((void **)&rules->rule, sizeof *rules->rule, rules->rules, &rules->capacity))
        return io_fail(why, rules->file, "there is not enough memory for its rules");
    rules->rule[rules->rules++] = rule;
    rules->targets = rules->targets || kind == FC_RULE_TARGET;
    return true;
}

static bool add_list(fc_rules *rules, const cJSON *object, const char *list, fc_rule_kind kind, char *why)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, list), *item;
    if (!value || cJSON_IsNull(value)) return true;
    if (!cJSON_IsArray(value)) return io_fail(why, rules->file, "its %s is not a list of names", list);
    cJSON_ArrayForEach(item, value)
        if (!add_rule(rules, cJSON_GetStringValue(item), list, kind, why)) return false;
    return true;
}

/* What a "+:" rule may ask for without another format. */
static bool changes_nothing(const cJSON *override)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, override)
        if (strcmp(item->string, "bits") != 0 || !cJSON_IsNumber(item) || item->valueint != 8) return false;
    return true;
}

static bool add_dynamic(fc_rules *rules, const cJSON *object, char *why)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, "dynamic"), *item;
    if (!value || cJSON_IsNull(value)) return true;
    if (!cJSON_IsObject(value)) return io_fail(why, rules->file, "its dynamic is not an object of rules");
    cJSON_ArrayForEach(item, value) {
        const bool minus = strncmp(item->string, "-:", 2) == 0;
        if (!minus && !changes_nothing(item))
            return io_fail(why, rules->file,
                           "its dynamic rule '%.100s' asks for more than 8 bits, which is all that "
                           "fp8conv knows",
                           item->string);
        if (!add_rule(rules, item->string, "dynamic", minus ? FC_RULE_MINUS : FC_RULE_PLUS, why)) return false;
    }
    return true;
}

static bool add_targets(fc_rules *rules, const cJSON *object, char *why)
{
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(object, "config_groups"), *group, *item;
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(object, "quantized_layers");
    if (groups && !cJSON_IsObject(groups) && !cJSON_IsNull(groups))
        return io_fail(why, rules->file, "its config_groups is not an object");
    cJSON_ArrayForEach(group, groups) {
        if (!cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(group, "targets")))
            return io_fail(why, rules->file, "its config_groups has '%.100s' without a list of targets", group->string);
        if (!add_list(rules, group, "targets", FC_RULE_TARGET, why)) return false;
    }
    if (!cJSON_IsObject(layers)) return true;
    cJSON_ArrayForEach(item, layers)
        if (!add_rule(rules, item->string, "quantized_layers", FC_RULE_TARGET, why)) return false;
    return true;
}

static bool add_lists(fc_rules *rules, char *why)
{
    static const struct {
        const char *list;
        fc_rule_kind kind;
    } row[] = { { "modules_to_not_convert", FC_RULE_PART },
                { "ignored_layers", FC_RULE_PART },
                { "llm_int8_skip_modules", FC_RULE_PART },
                { "exclude_modules", FC_RULE_PART },
                { "exclude", FC_RULE_PART },
                { "ignore", FC_RULE_EXACT } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!add_list(rules, rules->quantisation, row[i].list, row[i].kind, why)) return false;
    return add_dynamic(rules, rules->quantisation, why) && add_targets(rules, rules->quantisation, why);
}

/* The text of recipe.yaml; NULL when it is not there, or with a sentence. */
static char *read_recipe(const char *path, char *why)
{
    static const char file[] = "recipe.yaml";
    io_map map;
    struct stat s;
    char *inside = ckpt_folder(path) ? ckpt_inside(path, file) : ckpt_path(path, file), *text = NULL;
    if (!inside) return io_fail(why, file, "there is not enough memory to read it"), NULL;
    if (stat(inside, &s) == 0 && io_map_open(inside, &map, why)) {
        const bool good = map.size <= MOST_CONFIG && io_utf8(map.bytes, map.size) && !memchr(map.bytes, 0, map.size);
        text = good ? strndup((const char *)map.bytes, map.size) : NULL;
        if (!text) io_fail(why, inside, "it is not a text, or there is not enough memory to read it");
        io_map_close(&map);
    }
    free(inside);
    return text;
}

static bool add_recipe(fc_rules *rules, const char *path, char *why)
{
    char *text = read_recipe(path, why);
    if (!text) return !why[0];
    rules->file = "recipe.yaml";
    rules->recipe = fc_recipe_parse(text);
    free(text);
    if (!rules->recipe) return io_fail(why, rules->file, "a list of its modules does not end, or is none");
    return add_list(rules, rules->recipe, "ignore", FC_RULE_EXACT, why) &&
           add_list(rules, rules->recipe, "targets", FC_RULE_TARGET, why);
}

static void read_tied(fc_rules *rules)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(rules->said.config, "text_config");
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(text, "tie_word_embeddings");
    const cJSON *tied = cJSON_GetObjectItemCaseSensitive(rules->said.config, "tie_word_embeddings");
    rules->tied_known = cJSON_IsBool(tied) || cJSON_IsBool(inner);
    rules->tied = cJSON_IsTrue(tied) || (!cJSON_IsBool(tied) && cJSON_IsTrue(inner));
}

bool fc_rules_read(const char *path, fc_rules *rules, char *why)
{
    memset(rules, 0, sizeof *rules);
    if (!quant_said_read(path, &rules->said, why)) return false;
    read_tied(rules);
    rules->quantisation = rules->said.object;
    rules->file = rules->said.file;
    return true;
}

bool fc_rules_lists(const char *path, fc_rules *rules, char *why)
{
    if (rules->quantisation ? add_lists(rules, why) : add_recipe(rules, path, why)) return true;
    rules->rules = 0;
    rules->targets = false;
    return false;
}

void fc_rules_free(fc_rules *rules)
{
    quant_said_free(&rules->said);
    cJSON_Delete(rules->recipe);
    free(rules->rule);
    memset(rules, 0, sizeof *rules);
}

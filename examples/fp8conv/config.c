/* config.c - config.json as it is true of what was written. Everything that is not about quantisation stays as it was,
 * byte for byte.
 * SPDX-License-Identifier: MIT
 *
 * Where FP8 has the scales it had, its description stays, and {"fp8_format": "float8_e4m3"} says that it is Trainium's.
 * Otherwise there is a new one: quant_method fp8, with weight_block_size, activation_scheme and modules_to_not_convert.
 * A model that is BF16 throughout has none.
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 4096 };

/* ---- an edit of text: one member of an object, the rest as it is ---- */

typedef struct span {
    const char *at, *end;
} span;

typedef struct member { /* in its object: where the key begins, and the value */
    span key, value;
    const char *after_last; /* end of the value before; NULL: it is the first */
} member;

/* The member, or, where there is none, the last one of the object. false: an empty object. */
static bool find_member(span object, const char *key, member *m, bool *found)
{
    io_json j = io_json_start(object.at, (size_t)(object.end - object.at));
    const char *before = NULL;
    bool any = false;
    *found = false;
    while (!*found && io_json_next(&j)) {
        *m = (member){ { j.key, j.key + j.key_size }, { j.value, j.value + j.value_size }, before };
        while (m->value.end > m->value.at && strchr(" \t\r\n", m->value.end[-1])) m->value.end--;
        before = m->value.end;
        any = true;
        *found = io_json_is(&j, key);
    }
    return any;
}

/* What stands between the bracket or comma before a key and the key. */
static span blank_before(span object, const char *key)
{
    span s = { key, key };
    while (s.at > object.at && strchr(" \t\r\n", s.at[-1])) s.at--;
    return s;
}

static void put(FILE *out, const char *at, const char *end) { fwrite(at, 1, (size_t)(end - at), out); }

/* Prints `whole` with object's member `key` set to `value`, or taken out when that is NULL. */
static void print_edited(FILE *out, span whole, span object, const char *key, const char *value)
{
    member m;
    bool found;
    const bool any = find_member(object, key, &m, &found);
    if (!any && value) {
        put(out, whole.at, object.at + 1);
        fprintf(out, "\"%s\": %s", key, value);
        put(out, object.at + 1, whole.end);
    } else if (found && value) {
        put(out, whole.at, m.value.at);
        fputs(value, out);
        put(out, m.value.end, whole.end);
    } else if (found && m.after_last) {
        put(out, whole.at, m.after_last);
        put(out, m.value.end, whole.end);
    } else if (found) {
        const char *rest = m.value.end;
        while (rest < object.end && strchr(" \t\r\n", *rest)) rest++;
        const bool more = *rest == ',';
        put(out, whole.at, more ? blank_before(object, m.key.at).at : object.at + 1);
        put(out, more ? rest + 1 : rest, whole.end);
    } else if (value) {
        const span blank = blank_before(object, m.key.at);
        put(out, whole.at, m.value.end);
        fputc(',', out);
        if (blank.at == blank.end) fputc(' ', out);
        put(out, blank.at, blank.end);
        fprintf(out, "\"%s\": %s", key, value);
        put(out, m.value.end, whole.end);
    } else {
        put(out, whole.at, whole.end);
    }
}

static char *edited(const char *text, span object, const char *key, const char *value)
{
    char *result = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&result, &size);
    if (!memory) return NULL;
    print_edited(memory, (span){ text, text + strlen(text) }, object, key, value);
    return fclose(memory) == 0 ? result : NULL;
}

/* An object inside of the text, by its key; false: there is none. */
static bool inside(span object, const char *key, span *inner)
{
    member m;
    bool found;
    if (!find_member(object, key, &m, &found) || !found || *m.value.at != '{') return false;
    *inner = m.value;
    return true;
}

/* ---- what is to be said ---- */

bool fc_has_fp8(const fc_catalogue *c)
{
    for (int i = 0; i < c->items; i++)
        if (c->item[i].role != FC_DROPPED && strcmp(c->item[i].result.type, "F8_E4M3") == 0) return true;
    return false;
}

static bool has_quantised(const fc_catalogue *c)
{
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        if (fc_is_weight(w) && w->form != FC_AS_BF16) return true;
        if (w->role != FC_DROPPED && strncmp(w->result.type, "F8_E", 4) == 0 && w->result.rank >= 2) return true;
    }
    return false;
}

bool fc_keeps_layout(const fc_catalogue *c)
{
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        if (w->role == FC_NUMBERS) return false;
        if (w->role == FC_CODES && (w->old_scale < 0 || w->scale != w->old_scale)) return false;
    }
    return true;
}

/* [outputs, inputs] of a block; 0: the tensor has one scale for all or for each output. */
static void block_of(const fc_catalogue *c, const fc_item *w, int64_t block[2])
{
    const fc_grid *g = &w->out;
    const bool row = g->block_rows == 1 && g->block_columns >= g->columns;
    const bool column = g->block_columns == 1 && g->block_rows >= g->rows;
    const bool none = g->whole || ((row || column) && !fc_keeps_codes(w, c->options));
    const bool turned = w->transposed;
    block[0] = none ? 0 : turned ? g->block_columns : g->block_rows;
    block[1] = none ? 0 : turned ? g->block_rows : g->block_columns;
}

/* The one that all FP8 has; false: they differ, or there is none. */
static bool common_block(const fc_catalogue *c, int64_t block[2])
{
    bool any = false;
    for (int i = 0; i < c->items; i++) {
        int64_t one[2];
        if (!fc_is_weight(&c->item[i]) || c->item[i].form != FC_AS_FP8) continue;
        block_of(c, &c->item[i], one);
        if (any && (one[0] != block[0] || one[1] != block[1])) return false;
        block[0] = one[0];
        block[1] = one[1];
        any = true;
    }
    return any && block[0] > 0;
}

static const char *scheme_of(const fc_catalogue *c)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(c->rules.quantisation, "activation_scheme");
    if (cJSON_GetStringValue(said)) return cJSON_GetStringValue(said);
    for (int i = 0; i < c->items; i++)
        if (c->item[i].role == FC_RUN_SCALE && ckpt_ends(c->item[i].tensor.name, "input_scale")) return "static";
    return "dynamic";
}

/* Takes the item over, also where there is no memory for its name. */
static void add(cJSON *object, const char *key, cJSON *item)
{
    if (!cJSON_AddItemToObject(object, key, item)) cJSON_Delete(item);
}

static void append(cJSON *list, const char *text)
{
    cJSON *item = cJSON_CreateString(text);
    if (!cJSON_AddItemToArray(list, item)) cJSON_Delete(item);
}

/* Matrices of numbers in the result, by their modules; those of config.json's own list first. */
static cJSON *left_modules(const fc_catalogue *c)
{
    cJSON *list = cJSON_CreateArray();
    char module[NAME], because[256];
    fc_rules own = c->rules;
    own.rules = 0;
    for (int i = 0; i < c->rules.rules && c->rules.rule[i].kind == FC_RULE_PART; i++) {
        append(list, c->rules.rule[i].text);
        own.rules = i + 1;
    }
    own.targets = false;
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        const st_tensor *t = &w->result;
        const bool plain = w->role == FC_COPIED || w->form == FC_AS_BF16;
        const bool number = t->format == TRN_BF16 || t->format == TRN_F16 || t->format == TRN_F32;
        const bool matrix = t->rank == 2 ? ckpt_ends(t->name, ".weight") : t->rank >= 3 && ckpt_ends(t->name, "_proj");
        if (!plain || !number || !matrix || fc_rules_leave(&own, t, because)) continue;
        fc_module_of(t->name, module, sizeof module);
        append(list, module);
    }
    return list;
}

static cJSON *described(const fc_catalogue *c)
{
    cJSON *q = cJSON_CreateObject();
    const bool fp8 = fc_has_fp8(c);
    int64_t block[2] = { 0, 0 };
    cJSON *mx = cJSON_CreateArray();
    cJSON_AddStringToObject(q, "quant_method", fp8 ? "fp8" : "mx");
    if (fp8) cJSON_AddStringToObject(q, "fmt", "e4m3");
    if (fp8 && c->options->to == FC_NEURON)
        cJSON_AddStringToObject(q, "fp8_format", trn_format_name(fc_format_of(FC_NEURON)));
    if (fp8) cJSON_AddStringToObject(q, "activation_scheme", scheme_of(c));
    if (fp8 && common_block(c, block)) {
        const int size[2] = { (int)block[0], (int)block[1] };
        add(q, "weight_block_size", cJSON_CreateIntArray(size, 2));
    }
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i]) && c->item[i].form == FC_AS_MX)
            append(mx, c->item[i].result.name);
    if (cJSON_GetArraySize(mx) > 0) add(q, "mx_words", mx);
    else cJSON_Delete(mx);
    add(q, "modules_to_not_convert", left_modules(c));
    return q;
}

/* As Python's json.dumps has it, `depth` levels in, each of so many blanks; 0: in one line. */
static void print_value(FILE *out, const cJSON *value, int depth, int blanks)
{
    const bool list = cJSON_IsArray(value), object = cJSON_IsObject(value);
    const cJSON *item;
    int n = 0;
    if (!list && !object) {
        char *text = cJSON_PrintUnformatted(value);
        fputs(text ? text : "null", out);
        cJSON_free(text);
        return;
    }
    fputc(list ? '[' : '{', out);
    cJSON_ArrayForEach(item, value) {
        if (n++) fputs(blanks ? "," : ", ", out);
        if (blanks) fprintf(out, "\n%*s", blanks * (depth + 1), "");
        if (object) io_json_quote(out, item->string);
        if (object) fputs(": ", out);
        print_value(out, item, depth + 1, blanks);
    }
    if (blanks && n) fprintf(out, "\n%*s", blanks * depth, "");
    fputc(list ? ']' : '}', out);
}

/* Before the first key; 0 where it stands beside the bracket. */
static int blanks_of(span root)
{
    const size_t line = strspn(root.at + 1, "\r\n"), blanks = strspn(root.at + 1 + line, " ");
    return line == 0 ? 0 : blanks > 0 && blanks < 9 ? (int)blanks : 2;
}

static char *printed(cJSON *value, int depth, int blanks)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory) print_value(memory, value, depth, blanks);
    if (memory && fclose(memory) != 0) free(text), text = NULL;
    cJSON_Delete(value);
    return text;
}

/* ---- the new text ---- */

/* Where quantisation is described: an object that has or gets a member `key`. */
static span place_of(span root, const char **key)
{
    span text, unused;
    *key = "quantization_config";
    if (inside(root, *key, &unused)) return root;
    if (inside(root, "text_config", &text) && inside(text, *key, &unused)) return text;
    if (inside(root, "compression_config", &unused)) *key = "compression_config";
    return root;
}

static char *new_text(const fc_catalogue *c, const char *text, const char *own_key)
{
    span root = { text, text + strlen(text) };
    const char *key;
    while (root.at < root.end && *root.at != '{') root.at++;
    while (root.end > root.at && root.end[-1] != '}') root.end--;
    span place = place_of(root, &key), old;
    if (own_key) place = root, key = own_key;
    const bool there = inside(place, key, &old), neuron = c->options->to == FC_NEURON;
    if (!has_quantised(c)) return edited(text, place, key, NULL);
    if (there && fc_keeps_layout(c)) return edited(text, old, "fp8_format", neuron ? "\"float8_e4m3\"" : NULL);
    if (own_key) return strdup(text);
    char *value = printed(described(c), place.at == root.at ? 1 : 2, blanks_of(root));
    char *result = value ? edited(text, place, key, value) : NULL;
    free(value);
    return result;
}

bool fc_write_config(const fc_catalogue *c, const char *from, const char *to, char *why)
{
    const char *own_key = ckpt_ends(from, "hf_quant_config.json") ? "quantization" : NULL;
    io_map map;
    io_output out;
    if (!io_map_open(from, &map, why)) return false;
    char *text = malloc(map.size + 1);
    if (text) memcpy(text, map.bytes, map.size), text[map.size] = '\0';
    errno = 0;
    char *result = text && strlen(text) == map.size ? new_text(c, text, own_key) : NULL;
    const bool whole = result && !io_memory_ran_out(); /* cJSON leaves out what it has no memory for */
    io_map_close(&map);
    bool ok = whole || io_fail(why, from, "there is not enough memory to change it");
    ok = ok && io_output_open(to, &out, why) && io_output_write(&out, result, strlen(result), why) &&
         io_output_commit(&out, why);
    free(text);
    free(result);
    return ok;
}

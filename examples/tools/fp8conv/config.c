/* config.c - config.json as it is true of what was written: which words, and where. Everything that is not about
 * quantisation stays as it was, byte for byte.
 * SPDX-License-Identifier: MIT
 *
 * Where FP8 has the scales it had, its description stays, and {"fp8_format": "float8_e4m3"} says that it is Trainium's.
 * Otherwise there is a new one, in words that loaders know:
 *
 *     a scale for a tensor, or for blocks     quant_method fp8, with weight_block_size (null: none)
 *     a scale for each output                 quant_method compressed-tensors, with config_groups
 *     only the cache is FP8                   quant_method compressed-tensors, format dense, with kv_cache_scheme
 *     Trainium3's words                       quant_method mx, with mx_words: ours
 *     BF16 throughout                         none
 *
 * A description that stands in several places, or under several names, stands in one afterwards.
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = QUANT_NAME };

/* ---- an edit of text: one member of an object, the rest as it is ---- */

typedef struct span {
    const char *at, *end;
} span;

typedef struct member { /* in its object: where the key begins, and the value */
    span key, value;
    const char *after_last; /* end of the value before; NULL: it is the first */
} member;

/* The member, of two the last one, as Python's json has it; where there is none, the last one of the object. false: an
 * empty object. */
static bool find_member(span object, const char *key, member *m, bool *found)
{
    io_json j = io_json_start(object.at, (size_t)(object.end - object.at));
    const char *before = NULL;
    *found = false;
    while (io_json_next(&j)) {
        member one = { { j.key, j.key + j.key_size }, { j.value, j.value + j.value_size }, before };
        while (one.value.end > one.value.at && strchr(" \t\r\n", one.value.end[-1])) one.value.end--;
        before = one.value.end;
        const bool same = io_json_is(&j, key);
        if (same || !*found) *m = one;
        *found = *found || same;
    }
    return before != NULL;
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

/* A value inside of an object, by its key. */
static bool value_of(span object, const char *key, span *value)
{
    member m;
    bool found;
    if (!find_member(object, key, &m, &found) || !found) return false;
    *value = m.value;
    return true;
}

/* An object inside of another. */
static bool inside(span object, const char *key, span *inner)
{
    return value_of(object, key, inner) && *inner->at == '{';
}

/* ---- where quantisation is described ---- */

typedef struct place {
    const char *outer, *key; /* outer NULL: the whole */
} place;

static const place places[] = {
    { NULL, "quantization_config" }, { "text_config", "quantization_config" },
    { NULL, "compression_config" },  { "text_config", "compression_config" },
    { NULL, "quantization" },        { "text_config", "quantization" },
};
enum { PLACES = sizeof places / sizeof places[0] };

static span whole_of(const char *text)
{
    span root = { text, text + strlen(text) };
    while (root.at < root.end && *root.at != '{') root.at++;
    while (root.end > root.at && root.end[-1] != '}') root.end--;
    return root;
}

/* The object that has, or would have, the description. */
static bool outer_of(const char *text, const place *p, span *outer)
{
    *outer = whole_of(text);
    return !p->outer || inside(*outer, p->outer, outer);
}

static bool described_at(const char *text, const place *p, span *description)
{
    span outer, unused;
    if (!outer_of(text, p, &outer) || !inside(outer, p->key, description)) return false;
    return strcmp(p->key, "quantization") != 0 || value_of(*description, "quant_algo", &unused) ||
           value_of(*description, "kv_cache_quant_algo", &unused);
}

/* The text with a member set, or taken out where the value is NULL. It takes over the text; NULL without memory. */
static char *with(char *text, span object, const char *key, const char *value)
{
    char *result = text ? edited(text, object, key, value) : NULL;
    free(text);
    return result;
}

/* All of that name go: a first one would count where the last one is gone. */
static char *without(char *text, const place *p)
{
    span outer, value;
    while (text && outer_of(text, p, &outer) && value_of(outer, p->key, &value)) text = with(text, outer, p->key, NULL);
    return text;
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

/* A power of two whose type says so is another word than one in F32. */
static bool keeps_scale(const fc_catalogue *c, const fc_item *w)
{
    if (w->old_scale < 0 || w->scale != w->old_scale) return false;
    const fc_item *s = &c->item[w->scale];
    return s->tensor.format != TRN_F8_E8M0 || s->result.format == TRN_F8_E8M0;
}

bool fc_keeps_layout(const fc_catalogue *c)
{
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        if (w->role == FC_NUMBERS || (w->role == FC_CODES && !keeps_scale(c, w))) return false;
    }
    return true;
}

/* Have they stayed powers of two, where they were? */
static bool keeps_powers(const fc_options *o)
{
    return o->mode == FC_HALVE || o->mode == FC_RELABEL || (o->mode == FC_REQUANT && o->power_of_two);
}

/* ---- what the description says of the cache ---- */

static const cJSON *field(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(item) ? NULL : item;
}

static const char *word(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

bool fc_cache_of_integers(const fc_rules *rules)
{
    const char *type = word(field(rules->quantisation, "kv_cache_scheme"), "type");
    const char *algo = word(rules->quantisation, "kv_cache_quant_algo");
    return (type && strcmp(type, "int") == 0) || (algo && strncmp(algo, "FP8", 3) != 0);
}

bool fc_only_cache(const fc_rules *rules)
{
    const cJSON *q = rules->quantisation, *groups = field(q, "config_groups");
    const char *format = word(q, "format"), *method = word(q, "quant_method");
    const bool dense = format && strcmp(format, "dense") == 0;
    const bool none = method && strcmp(method, "compressed-tensors") == 0 && cJSON_GetArraySize(groups) == 0;
    if (field(q, "kv_cache_scheme")) return dense || none;
    return word(q, "kv_cache_quant_algo") && !word(q, "quant_algo");
}

bool fc_marked(const fc_rules *rules)
{
    const char *mark = word(rules->quantisation, "fp8_format");
    return mark && trn_format_from_name(mark) == TRN_F8_E4M3;
}

/* ---- what shares a scale ---- */

typedef enum sharing { SHARED_BY_ALL, SHARED_BY_OUTPUT, SHARED_BY_BLOCK, SHARED_OTHERWISE } sharing;

/* block: [outputs, inputs], where there are blocks. */
static sharing sharing_of(const fc_catalogue *c, const fc_item *w, int64_t block[2])
{
    const fc_grid *g = &w->out;
    const bool row = g->block_rows == 1 && g->block_columns >= g->columns;
    const bool column = g->block_columns == 1 && g->block_rows >= g->rows;
    const bool matrix = g->block_rows >= g->rows && g->block_columns >= g->columns;
    block[0] = w->transposed ? g->block_columns : g->block_rows;
    block[1] = w->transposed ? g->block_rows : g->block_columns;
    if (g->whole) return SHARED_BY_ALL;
    if (fc_keeps_codes(w, c->options) || !(row || column || matrix)) return SHARED_BY_BLOCK;
    if (matrix && (w->view.rank == 2 || c->options->grain == FC_PER_BLOCK)) return SHARED_BY_BLOCK; /* of one */
    return w->view.rank == 2 && (w->transposed ? column : row) ? SHARED_BY_OUTPUT : SHARED_OTHERWISE;
}

/* What all FP8 that was made has in common. */
static sharing common_sharing(const fc_catalogue *c, int64_t block[2])
{
    bool any = false;
    sharing all = SHARED_OTHERWISE;
    for (int i = 0; i < c->items; i++) {
        int64_t one[2];
        if (!fc_is_weight(&c->item[i]) || c->item[i].form != FC_AS_FP8) continue;
        const sharing s = sharing_of(c, &c->item[i], one);
        if (any && (s != all || (s == SHARED_BY_BLOCK && (one[0] != block[0] || one[1] != block[1]))))
            return SHARED_OTHERWISE;
        all = s;
        block[0] = one[0];
        block[1] = one[1];
        any = true;
    }
    return all;
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

/* Matrices of numbers in the result, by their modules; config.json's own list first, where its entries may be parts. */
static cJSON *left_modules(const fc_catalogue *c, bool parts)
{
    cJSON *list = cJSON_CreateArray();
    char module[NAME], because[256];
    fc_rules own = c->rules;
    own.rules = 0;
    for (int i = 0; parts && i < c->rules.rules && c->rules.rule[i].kind == FC_RULE_PART; i++) {
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

/* Trainium3's words: those that were made, and those that were there. */
static cJSON *mx_words(const fc_catalogue *c)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *before;
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i]) && c->item[i].form == FC_AS_MX) append(list, c->item[i].result.name);
    cJSON_ArrayForEach(before, field(c->rules.quantisation, "mx_words")) {
        const int i = cJSON_IsString(before) ? fc_find(c, before->valuestring) : -1;
        if (i >= 0 && c->item[i].role == FC_COPIED) append(list, before->valuestring);
    }
    return list;
}

/* ---- a description ---- */

static void mark(const fc_catalogue *c, cJSON *q)
{
    if (c->options->to == FC_NEURON) cJSON_AddStringToObject(q, "fp8_format", trn_format_name(fc_format_of(FC_NEURON)));
}

/* What is said of the cache, as it stands in the old description. */
static void add_cache(const fc_catalogue *c, cJSON *q, const span *old)
{
    static const char *const key[] = { "kv_cache_scheme", "kv_cache_quant_algo" };
    span value;
    for (int i = 0; i < 2 && old && c->cache_scales; i++) {
        if (!value_of(*old, key[i], &value)) continue;
        char *text = strndup(value.at, (size_t)(value.end - value.at));
        if (text) cJSON_AddRawToObject(q, key[i], text);
        free(text);
    }
}

static cJSON *scheme(const char *strategy, bool dynamic)
{
    cJSON *s = cJSON_CreateObject();
    cJSON_AddNumberToObject(s, "num_bits", 8);
    cJSON_AddStringToObject(s, "type", "float");
    cJSON_AddStringToObject(s, "strategy", strategy);
    cJSON_AddBoolToObject(s, "dynamic", dynamic);
    cJSON_AddBoolToObject(s, "symmetric", true);
    return s;
}

static cJSON *only_cache(const fc_catalogue *c, const span *old)
{
    cJSON *q = cJSON_CreateObject();
    span unused;
    cJSON_AddStringToObject(q, "quant_method", "compressed-tensors");
    cJSON_AddStringToObject(q, "format", "dense");
    mark(c, q);
    if (old && value_of(*old, "kv_cache_scheme", &unused))
        add_cache(c, q, old);
    else
        add(q, "kv_cache_scheme", scheme("tensor", false));
    return q;
}

/* A scale for each output. */
static cJSON *in_channels(const fc_catalogue *c, const span *old)
{
    cJSON *q = cJSON_CreateObject(), *groups = cJSON_CreateObject(), *group = cJSON_CreateObject();
    cJSON *targets = cJSON_CreateArray();
    const bool dynamic = strcmp(scheme_of(c), "static") != 0;
    cJSON_AddStringToObject(q, "quant_method", "compressed-tensors");
    cJSON_AddStringToObject(q, "format", "float-quantized");
    mark(c, q);
    append(targets, "Linear");
    add(group, "targets", targets);
    add(group, "weights", scheme("channel", false));
    add(group, "input_activations", scheme(dynamic ? "token" : "tensor", dynamic));
    add(groups, "group_0", group);
    add(q, "config_groups", groups);
    add_cache(c, q, old);
    add(q, "ignore", left_modules(c, false));
    return q;
}

static cJSON *described(const fc_catalogue *c, const span *old)
{
    const bool fp8 = fc_has_fp8(c);
    int64_t block[2] = { 0, 0 };
    const sharing shared = common_sharing(c, block);
    cJSON *const words = mx_words(c);
    const bool mx = cJSON_GetArraySize(words) > 0;
    if (fp8 && !mx && shared == SHARED_BY_OUTPUT) return cJSON_Delete(words), in_channels(c, old);
    if (!fp8 && !mx) return cJSON_Delete(words), only_cache(c, old);
    cJSON *q = cJSON_CreateObject();
    cJSON_AddStringToObject(q, "quant_method", fp8 ? "fp8" : "mx");
    if (fp8) cJSON_AddStringToObject(q, "fmt", "e4m3");
    if (fp8 || c->cache_scales) mark(c, q);
    if (fp8) cJSON_AddStringToObject(q, "activation_scheme", scheme_of(c));
    const int size[2] = { (int)block[0], (int)block[1] };
    if (fp8 && shared == SHARED_BY_BLOCK) add(q, "weight_block_size", cJSON_CreateIntArray(size, 2));
    if (fp8 && shared == SHARED_BY_ALL) cJSON_AddNullToObject(q, "weight_block_size");
    if (mx)
        add(q, "mx_words", words);
    else
        cJSON_Delete(words);
    add_cache(c, q, old);
    add(q, "modules_to_not_convert", left_modules(c, true));
    return q;
}

/* ---- who reads it ---- */

bool fc_no_loader(const fc_catalogue *c, char *because, size_t size)
{
    int64_t block[2] = { 0, 0 };
    const sharing shared = common_sharing(c, block);
    because[0] = '\0';
    for (int i = 0; i < c->items && !because[0]; i++)
        if (fc_is_weight(&c->item[i]) && c->item[i].form == FC_AS_MX)
            snprintf(because, size, "Trainium3's words are read by trnmath/trn_mx.h alone");
    if (because[0] || !fc_has_fp8(c) || fc_keeps_layout(c)) return because[0] != '\0';
    if (shared == SHARED_OTHERWISE)
        snprintf(because, size, "its scales are not all for one matrix, for an output or for blocks of one size");
    else if (shared == SHARED_BY_BLOCK && (block[0] != 128 || block[1] != 128))
        snprintf(because, size, "its blocks are %lldx%lld, and those of loaders 128x128", (long long)block[0],
                 (long long)block[1]);
    else if (shared == SHARED_BY_BLOCK && strcmp(scheme_of(c), "static") == 0)
        snprintf(because, size, "activations have static scales, and loaders take none beside blocks");
    else if (cJSON_IsObject(field(c->rules.said.config, "quantization")))
        snprintf(because, size, "TensorRT-LLM knows no scales of these names and shapes");
    return because[0] != '\0';
}

/* ---- text ---- */

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

/* Its words are true but for these. */
static char *corrected(const fc_catalogue *c, char *text, const place *p)
{
    const bool neuron = c->options->to == FC_NEURON;
    span at;
    if (text && described_at(text, p, &at)) text = with(text, at, "fp8_format", neuron ? "\"float8_e4m3\"" : NULL);
    if (text && !keeps_powers(c->options) && described_at(text, p, &at)) text = with(text, at, "scale_fmt", NULL);
    return text;
}

/* The old description goes, wherever it stands, and a new one comes. */
static char *described_anew(const fc_catalogue *c, char *text, const place *old)
{
    const bool foreign = strcmp(old->key, "quantization") == 0; /* TensorRT-LLM's has no such words */
    const place *to = foreign ? &places[0] : old;
    const span root = whole_of(text);
    span at, outer;
    const bool there = described_at(text, old, &at);
    char *value = printed(described(c, there ? &at : NULL), to->outer ? 2 : 1, blanks_of(root));
    for (int i = 0; i < PLACES; i++)
        if (&places[i] != to && text && described_at(text, &places[i], &at)) text = without(text, &places[i]);
    if (text && value && outer_of(text, to, &outer)) text = with(text, outer, to->key, value);
    if (!value) free(text), text = NULL;
    free(value);
    return text;
}

/* DeepSeek's word for experts of four bits. */
static char *with_experts(const fc_catalogue *c, char *text)
{
    const fc_item *expert = NULL;
    span value;
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i]) && c->item[i].kind >= FC_IS_MXFP4 && strstr(c->item[i].tensor.name, "expert"))
            expert = &c->item[i];
    if (!text || !expert || !value_of(whole_of(text), "expert_dtype", &value)) return text;
    return with(text, whole_of(text), "expert_dtype", expert->form == FC_AS_FP8 ? "\"fp8\"" : NULL);
}

static char *new_text(const fc_catalogue *c, const char *before, const char *own_key)
{
    const place own = { NULL, own_key ? own_key : "" };
    const place *list = own_key ? &own : places, *first = list;
    const int count = own_key ? 1 : PLACES;
    const bool quantised = has_quantised(c), kept = fc_keeps_layout(c) && (quantised || fc_only_cache(&c->rules));
    char *text = strdup(before);
    span at;
    while (text && first < list + count && !described_at(text, first, &at)) first++;
    const bool there = first < list + count;
    if (!quantised && !c->cache_scales) {
        for (int i = 0; i < count; i++)
            if (text && described_at(text, &list[i], &at)) text = without(text, &list[i]);
    } else if (there && kept) {
        for (int i = 0; i < count; i++) text = corrected(c, text, &list[i]);
    } else if (text && !own_key) {
        text = described_anew(c, text, there ? first : &places[0]);
    }
    return own_key ? text : with_experts(c, text);
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

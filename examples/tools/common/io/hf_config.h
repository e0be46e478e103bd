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
 * DOES: the families of hf/families.h, by model_type: decoders; encoders, with the head that "architectures" names; one
 *     half of a model that is two (t5, whisper, clip); diffusers' DiT; a recommender in the words of torchrec's DLRM,
 *     for which there is no configuration of transformers (model_type dlrm: our name); a text_config inside a
 *     multi-modal configuration; quantization_config, or hf_quant_config.json beside it, as bits of an element; each
 *     failure is one sentence that names the file, the field and what is wrong with it. The text is what Python's json
 *     reads.
 * DOES NOT: guess an architecture that it does not know, read weights, or count multi-token prediction heads and the
 *     vision towers of language models. hf_config_load says so in a note, and refuses fields that may change sizes or
 *     times and are not known.
 *
 * CONTENTS
 *     hf_config_parse   a file's text in memory
 *     hf_config_read    a file, or standard input when its name is "-"
 *     hf_config, hf_config_parse_all, hf_config_load   the same with formats and notes
 *     hf_ask, hf_part, hf_part_name   of a model that is two, the one that is meant
 *     hf_family_at      the names that are known
 *
 * KNOWN FROM: the configuration classes of transformers 4.57 (which fields there are, and their defaults) and the
 *     modelling code beside them (which projections have biases). Needs cJSON (libcjson-dev).
 */
#ifndef HF_CONFIG_H
#define HF_CONFIG_H

#include <errno.h>

#include "hf/encoders.h"
#include "hf/keys.h"
#include "hf/pairs.h"
#include "hf/peculiar.h"
#include "hf/quantised.h"
#include "hf/recommenders.h"

enum { HF_MAX_FILE = 4 * 1024 * 1024 };

/* All that a configuration says. */
typedef struct hf_config {
    trn_model model;
    hf_quantised quantised;
    hf_notes notes;
} hf_config;

/* Of a model that is two the one that is meant; zero is all of it. */
typedef struct hf_ask {
    hf_part part;
    int64_t positions;   /* of an encoder, that its decoder looks at; 0 = what the file says */
    bool decodes;        /* an encoder is not meant */
    const cJSON *beside; /* what a file beside it says of its formats; NULL = nothing */
} hf_ask;

/* ---- a whole file ---- */

HF_FN const hf_family *hf_family_named(const char *name)
{
    const hf_family *f;
    for (int i = 0; (f = hf_family_at(i)) != NULL; i++)
        if (strcmp(f->type, name) == 0) return f;
    return NULL;
}

/* The part that describes the language model, unless its towers have plans of their own. */
HF_FN void hf_find_text(hf_reader *r)
{
    static const char *const part[] = { "text_config", "llm_config", "language_config" };
    io_json text;
    const cJSON *inner = NULL, *type = cJSON_GetObjectItemCaseSensitive(r->root, "model_type");
    for (unsigned i = 0; i < sizeof part / sizeof part[0] && !cJSON_IsObject(inner); i++)
        inner = hf_field(r, part[i], &text);
    const hf_family *outer = cJSON_IsString(type) ? hf_family_named(type->valuestring) : NULL;
    if (!cJSON_IsObject(inner) || (outer && outer->flags & HF_TOWERS)) return;
    r->root = inner;
    r->text = io_json_members(&text);
    if (r->seen) memset(r->seen, 0, HF_KEYS * sizeof *r->seen);
}

/* Too many are known to name them all: those that begin as this one does. */
HF_FN bool hf_fail_type(hf_reader *r, const char *field, const char *type)
{
    char alike[200] = "";
    const hf_family *f;
    const size_t n = strlen(type) < 3 ? strlen(type) : 3;
    size_t used = 0;
    int count = 0;
    for (; (f = hf_family_at(count)) != NULL; count++)
        if (n && strncmp(f->type, type, n) == 0 && used < sizeof alike)
            used += (size_t)snprintf(alike + used, sizeof alike - used, "%s%s", used ? ", " : "", f->type);
    r->family = NULL;
    return hf_fail(r, "its '%s' is '%.64s', which is not one of the %d that are planned (shardplan's README)%s%s",
                   field, type, count, used ? "; near it are " : "", alike);
}

/* qwen3_vl and qwen3_vl_moe stand for their texts, too. */
HF_FN bool hf_find_family(hf_reader *r)
{
    char texts[80];
    io_json text;
    hf_find_text(r);
    const bool diffusers = !cJSON_HasObjectItem(r->root, "model_type") && cJSON_HasObjectItem(r->root, "_class_name");
    const char *field = diffusers ? "_class_name" : "model_type";
    const cJSON *type = hf_field(r, field, &text);
    if (!type) return hf_fail(r, "it has no 'model_type'");
    if (!cJSON_IsString(type)) return hf_fail(r, "its '%s' is not a name", field);
    snprintf(texts, sizeof texts, "%.64s_text", type->valuestring);
    r->family = hf_family_named(type->valuestring);
    if (!r->family) r->family = hf_family_named(texts);
    if (r->family) return true;
    return hf_fail_type(r, field, type->valuestring);
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
    hf_read_peculiar(r, m);
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
    if (!hf_check_text(r) || !hf_find_family(r) || !hf_check_text(r) || !hf_check_part(r)) return false;
    if (hf_has(r, HF_TABLES))
        hf_read_tables(r, m);
    else if (hf_has(r, HF_HALVES | HF_TOWERS) || hf_is(r, "DiTTransformer2DModel"))
        hf_read_pair(r, m);
    else
        hf_read_transformer(r, m);
    if (r->why[0]) return false;
    if (trn_model_check(m, &error) != TRN_OK)
        return hf_fail(r, "as a model of type %s: %s", r->family->type, error.text);
    hf_name_of(r->name, m->name, sizeof m->name);
    return true;
}

/* The model of a reader's tree, and what else was asked for. */
HF_FN bool hf_read_tree(hf_reader *r, trn_model *model, hf_config *all)
{
    if (!hf_read_model(r, model)) return false;
    if (!all) return true;
    if (!hf_read_quantised(r, model, &all->quantised)) return false;
    hf_check_outer(r);
    return hf_check_keys(r);
}

/* all, ask: NULL, or what hf_config_load wants. */
HF_FN bool hf_parse(const char *text, size_t size, const char *name, const hf_ask *ask, trn_model *model,
                    hf_config *all, char *why)
{
    int line;
    bool seen[HF_KEYS] = { false };
    hf_reader r = { .name = name, .text = io_json_file(text, size), .why = why };
    why[0] = 0;
    memset(model, 0, sizeof *model);
    if (all) {
        r.notes = &all->notes;
        r.seen = seen;
    }
    if (ask) {
        r.part = ask->part;
        r.positions = ask->positions;
        r.decodes = ask->decodes;
        r.beside = ask->beside;
    }
    if (size > HF_MAX_FILE) return hf_fail(&r, "it has %zu bytes, more than any configuration", size);
    errno = 0;
    cJSON *root = io_json_tree(text, size, &line);
    if (!root && errno == ENOMEM) return hf_fail(&r, "there is not enough memory to read it");
    if (!root) return hf_fail(&r, "it is not JSON (line %d)", line);
    r.root = r.file = root;
    const bool ok = hf_read_tree(&r, model, all);
    cJSON_Delete(root);
    if (!ok) memset(model, 0, sizeof *model);
    return ok;
}

/* The model of a file whose text lies in memory. `name` is for the model's name and for the sentence. */
HF_FN bool hf_config_parse(const char *text, size_t size, const char *name, trn_model *model, char *why)
{
    return hf_parse(text, size, name, NULL, model, NULL, why);
}

/* The same with all that it says; fields that may change sizes or times, and are not known, are refused. */
HF_FN bool hf_config_parse_all(const char *text, size_t size, const char *name, const hf_ask *ask, hf_config *all,
                               char *why)
{
    memset(all, 0, sizeof *all);
    return hf_parse(text, size, name, ask, &all->model, all, why);
}

/* A whole file in memory that the caller frees; NULL with *trouble, 0 where there is no memory. */
HF_FN char *hf_text_of(FILE *stream, size_t *size, int *trouble)
{
    char *text = (char *)malloc(HF_MAX_FILE + 1);
    errno = 0;
    *size = text ? fread(text, 1, HF_MAX_FILE + 1, stream) : 0;
    *trouble = ferror(stream) ? errno : 0;
    if (!*trouble) return text;
    free(text);
    return NULL;
}

/* modelopt's older files keep the formats in a file beside config.json: its tree, or NULL. */
HF_FN cJSON *hf_tree_beside(const char *path)
{
    static const char own[] = "config.json", other[] = "hf_quant_config.json";
    const size_t n = strlen(path), folder = n - (sizeof own - 1);
    char name[4096];
    int trouble, line;
    size_t size;
    if (n < sizeof own - 1 || strcmp(path + folder, own) != 0 || (folder && path[folder - 1] != '/')) return NULL;
    if (folder + sizeof other > sizeof name) return NULL;
    memcpy(name, path, folder);
    memcpy(name + folder, other, sizeof other);
    FILE *stream = fopen(name, "rb");
    if (!stream) return NULL;
    char *text = hf_text_of(stream, &size, &trouble);
    fclose(stream);
    cJSON *tree = text && size <= HF_MAX_FILE ? io_json_tree(text, size, &line) : NULL;
    free(text);
    return tree;
}

HF_FN bool hf_read_file(const char *path, const hf_ask *ask, trn_model *model, hf_config *all, char *why)
{
    const bool standard = strcmp(path, "-") == 0;
    hf_reader r = { .name = path, .text = io_json_start("", 0), .why = why };
    hf_ask asked = { HF_WHOLE, 0, false, NULL };
    int trouble;
    size_t size;
    why[0] = 0;
    memset(model, 0, sizeof *model);
    if (!io_reading(path, why)) return false;
    FILE *stream = standard ? stdin : fopen(path, "rb");
    if (!stream) return hf_fail(&r, "it cannot be opened (%s)", strerror(errno));
    char *text = hf_text_of(stream, &size, &trouble);
    if (!standard) fclose(stream);
    if (trouble) return hf_fail(&r, "it cannot be read (%s)", strerror(trouble));
    if (!text) return hf_fail(&r, "there is not enough memory to read it");
    cJSON *beside = standard || !all ? NULL : hf_tree_beside(path);
    if (ask) asked = *ask;
    asked.beside = cJSON_GetObjectItemCaseSensitive(beside, "quantization");
    const bool ok = hf_parse(text, size, path, &asked, model, all, why);
    cJSON_Delete(beside);
    free(text);
    return ok;
}

HF_FN bool hf_config_read(const char *path, trn_model *model, char *why)
{
    return hf_read_file(path, NULL, model, NULL, why);
}

HF_FN bool hf_config_load(const char *path, const hf_ask *ask, hf_config *all, char *why)
{
    memset(all, 0, sizeof *all);
    return hf_read_file(path, ask, &all->model, all, why);
}

#endif /* HF_CONFIG_H */

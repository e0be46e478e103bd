/* hf/encoders.h - encoders of text and of images.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_ENCODERS_H
#define HF_ENCODERS_H

#include "decoders.h"

/* ---- encoders ---- */

/* What transformers' classes put on an encoder. */
typedef struct hf_end {
    const char *type, *name;
    bool pooler, masked, classes;
} hf_end;

/* NULL: a class that is not known. Without a name the encoder is meant by itself, which is the first of its type. */
HF_FN const hf_end *hf_end_of(hf_reader *r)
{
    static const hf_end row[] = {
        { "bert", "BertModel", true, false, false },
        { "bert", "BertForMaskedLM", false, true, false },
        { "bert", "BertForSequenceClassification", true, false, true },
        { "roberta", "RobertaModel", true, false, false },
        { "roberta", "RobertaForMaskedLM", false, true, false },
        { "roberta", "RobertaForSequenceClassification", true, false, true },
        { "xlm-roberta", "XLMRobertaModel", true, false, false },
        { "xlm-roberta", "XLMRobertaForMaskedLM", false, true, false },
        { "xlm-roberta", "XLMRobertaForSequenceClassification", true, false, true },
        { "camembert", "CamembertModel", true, false, false },
        { "camembert", "CamembertForMaskedLM", false, true, false },
        { "camembert", "CamembertForSequenceClassification", true, false, true },
        { "distilbert", "DistilBertModel", false, false, false },
        { "distilbert", "DistilBertForMaskedLM", false, true, false },
        { "distilbert", "DistilBertForSequenceClassification", true, false, true },
        { "vit", "ViTModel", true, false, false },
        { "vit", "ViTForImageClassification", false, false, true },
    };
    io_json text;
    const cJSON *list = hf_field(r, "architectures", &text), *name = cJSON_IsArray(list) ? list->child : NULL;
    char known[200] = "";
    size_t used = 0;
    if (list && (!name || name->next || !cJSON_IsString(name)))
        return hf_fail(r, "its 'architectures' is not a list of one name"), NULL;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].type, r->family->type) != 0) continue;
        if (!name || strcmp(row[i].name, name->valuestring) == 0) return &row[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", row[i].name);
    }
    hf_fail(r, "its 'architectures' is '%.64s'; known are %s", name ? name->valuestring : "", known);
    return NULL;
}

/* As transformers counts them: the names of classes, or num_labels, or two. */
HF_FN int64_t hf_classes(hf_reader *r)
{
    io_json text;
    const cJSON *names = hf_field(r, "id2label", &text);
    if (!names) return hf_number(r, "num_labels", 1, 1 << 24, 2);
    if (!cJSON_IsObject(names) || !names->child) return hf_fail(r, "its 'id2label' names no classes"), 0;
    return cJSON_GetArraySize(names);
}

HF_FN void hf_read_patches(hf_reader *r, trn_model *m)
{
    const int64_t image = hf_number(r, "image_size", 1, 1 << 16, HF_NEEDED);
    const int64_t patch = hf_number(r, "patch_size", 1, 1 << 12, HF_NEEDED);
    const int64_t channels = hf_number(r, "num_channels", 1, 1 << 10, HF_NEEDED);
    m->qkv_bias = hf_flag(r, "qkv_bias", true);
    if (r->why[0]) return;
    if (image % patch)
        hf_fail(r, "its 'image_size' %lld does not divide by its 'patch_size' %lld", (long long)image,
                (long long)patch);
    m->patch_inputs = patch * patch * channels;
    m->positions = m->longest = image / patch * (image / patch) + 1; /* the class token */
    if (m->pooler && hf_number(r, "pooler_output_size", 1, 1 << 20, m->hidden) != m->hidden)
        hf_fail(r, "its 'pooler_output_size' is not its 'hidden_size', and only such poolers are counted");
}

HF_FN void hf_read_words(hf_reader *r, trn_model *m)
{
    io_json text;
    const int64_t unused = hf_has(r, HF_PADDED) ? 2 : 0;
    const cJSON *kind = hf_field(r, "position_embedding_type", &text);
    m->positions = hf_number(r, "max_position_embeddings", 1 + unused, 1 << 24, HF_NEEDED);
    m->longest = m->positions - unused;
    m->token_types = hf_is(r, "distilbert") ? 0 : hf_number(r, "type_vocab_size", 1, 1 << 20, 2);
    if (hf_flag(r, "is_decoder", false)) hf_fail(r, "its 'is_decoder' is true, but %s is an encoder", r->family->type);
    if (kind && (!cJSON_IsString(kind) || strcmp(kind->valuestring, "absolute") != 0))
        hf_fail(r, "its 'position_embedding_type' is not 'absolute', and no other is counted");
}

HF_FN void hf_read_encoder(hf_reader *r, trn_model *m)
{
    if (!hf_has(r, HF_ENCODER)) return;
    const hf_end *end = hf_end_of(r);
    if (!end) return;
    m->bidirectional = true;
    m->pooler = end->pooler;
    m->masked_head = end->masked;
    if (end->classes) m->classes = hf_classes(r);
    if (hf_has(r, HF_IMAGES))
        hf_read_patches(r, m);
    else
        hf_read_words(r, m);
}

#endif /* HF_ENCODERS_H */

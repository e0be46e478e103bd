/* hf/recommenders.h - recommenders, in the words of torchrec.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_RECOMMENDERS_H
#define HF_RECOMMENDERS_H

#include "fields.h"

/* ---- recommenders ---- */

/* A list of low to high numbers, of which there may be `most`; 0 and a sentence when it is none. */
HF_FN int hf_numbers(hf_reader *r, const char *field, int64_t high, int most, int64_t *out)
{
    io_json text;
    uint64_t x = 0;
    int count = 0;
    const cJSON *list = hf_field(r, field, &text);
    if (!list) return hf_fail(r, "it has no '%s', which %s needs", field, r->family->type), 0;
    if (!cJSON_IsArray(list)) return hf_fail(r, "its '%s' is not a list", field), 0;
    for (io_json j = io_json_list(&text); io_json_next(&j); out[count++] = (int64_t)x) {
        if (!io_json_whole(&j, &x) || x < 1 || x > (uint64_t)high)
            return hf_fail(r, "its '%s' is not a list of numbers from 1 to %lld", field, (long long)high), 0;
        if (count == most) return hf_fail(r, "its '%s' has more than %d numbers", field, most), 0;
    }
    if (!count) hf_fail(r, "its '%s' is empty", field);
    return count;
}

/* How embeddings and dense numbers meet: torchrec's "original" (dot products) or "dcn". */
HF_FN void hf_read_interaction(hf_reader *r, trn_model *m)
{
    io_json text;
    const cJSON *kind = hf_field(r, "interaction_type", &text);
    if (!kind || (cJSON_IsString(kind) && strcmp(kind->valuestring, "original") == 0)) return;
    if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "dcn") != 0) {
        hf_fail(r, "its 'interaction_type' is neither 'original' nor 'dcn', and no other is planned");
        return;
    }
    m->cross_layers = hf_number(r, "dcn_num_layers", 1, 64, HF_NEEDED);
    m->cross_rank = hf_number(r, "dcn_low_rank_dim", 1, 1 << 20, HF_NEEDED);
}

HF_FN void hf_read_tables(hf_reader *r, trn_model *m)
{
    io_json text;
    m->longest = 1;
    m->tables = hf_numbers(r, "num_embeddings_per_feature", INT64_C(1) << 40, TRN_MODEL_TABLES, m->table_rows);
    m->hidden = hf_number(r, "embedding_dim", 1, 1 << 20, HF_NEEDED);
    m->dense_inputs = hf_number(r, "dense_in_features", 1, 1 << 20, HF_NEEDED);
    hf_numbers(r, "dense_arch_layer_sizes", 1 << 20, TRN_MODEL_WIDTHS, m->dense_widths);
    hf_numbers(r, "over_arch_layer_sizes", 1 << 20, TRN_MODEL_WIDTHS, m->over_widths);
    hf_read_interaction(r, m);
    for (int i = 0; i < (int)m->tables; i++) m->table_lookups[i] = 1;
    if (r->why[0] || !hf_field(r, "multi_hot_sizes", &text)) return;
    const int sizes = hf_numbers(r, "multi_hot_sizes", 1 << 20, TRN_MODEL_TABLES, m->table_lookups);
    if (sizes && sizes != m->tables)
        hf_fail(r, "its 'multi_hot_sizes' has %d numbers, but 'num_embeddings_per_feature' %d", sizes, (int)m->tables);
}

#endif /* HF_RECOMMENDERS_H */

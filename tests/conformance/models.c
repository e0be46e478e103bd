/* models.c - parameters counted from configurations, against the published checkpoints.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/models.h"

typedef enum part { TOTAL, ACTIVE, CACHE } part;

static void size_of_model(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    trn_model_size size;
    (void)o;
    if (trn_model_size_of(&published_models[v->at].model, &size, NULL) != TRN_OK)
        cf_fail(a, "the model is refused");
    else
        a->got = v->of == TOTAL ? size.total : v->of == ACTIVE ? size.active / 1e9 : size.kv_elements * 2;
}

void cf_fill_models(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_MODELS; i++) {
        const char *name = published_models[i].model.name;
        const double active = published_models[i].active;
        const bool encoder = published_models[i].model.bidirectional;
        cf_add(list, (cf_vector){ .id = cf_id(list, "model.%s.parameters", name),
                                  .what = cf_text(list, "%s: all parameters", name),
                                  CF_EXACTLY(published_models[i].total),
                                  .kind = CF_DOCUMENTED,
                                  .source = encoder ? "the class of transformers, its parameters added up"
                                                    : "the publisher's checkpoint, tensors added up",
                                  .test = size_of_model,
                                  .at = i,
                                  .of = TOTAL });
        if (active > 0)
            cf_add(list, (cf_vector){ .id = cf_id(list, "model.%s.active", name),
                                      .what = cf_text(list, "%s: parameters at work for a token", name),
                                      .unit = "billion",
                                      CF_ABOUT(active, 0.005 * active),
                                      .kind = CF_DOCUMENTED,
                                      .source = "model cards and reports",
                                      .test = size_of_model,
                                      .at = i,
                                      .of = ACTIVE });
        if (strcmp(name, "deepseek-v3") == 0)
            cf_add(list, (cf_vector){ .id = "model.deepseek-v3.cache",
                                      .what = "deepseek-v3: KV cache of a token in BF16",
                                      .unit = "bytes",
                                      CF_ABOUT(70272, 0.5),
                                      .kind = CF_DOCUMENTED,
                                      .source = "DeepSeek-V3 report: 70.272 KB",
                                      .test = size_of_model,
                                      .at = i,
                                      .of = CACHE });
        if (strcmp(name, "llama-3-8b") == 0)
            cf_add(list, (cf_vector){ .id = "model.llama-3-8b.cache",
                                      .what = "llama-3-8b: KV cache of a token in BF16",
                                      .unit = "bytes",
                                      CF_EXACTLY(131072),
                                      .kind = CF_CALCULATED,
                                      .source = "32 layers, 8 heads of 128, keys and values",
                                      .test = size_of_model,
                                      .at = i,
                                      .of = CACHE });
    }
}

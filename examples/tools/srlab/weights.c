/* weights.c - the arms, and the weights of a model: named tensors in flat arrays, stored in an arm's format.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is compared: one row an arm ---- */

/* The formatter takes the braces for blocks. */
/* clang-format off */
#define SAME { TRN_FORMAT_UNSET, TRN_NEAREST_EVEN }
#define E4M3(rounding) { TRN_F8_E4M3, rounding }
#define E5M2(rounding) { TRN_F8_E5M2, rounding }
/* clang-format on */

/* The FP8 arms differ in the rounding of their casts alone: their weights are those of bf16-sr, which do not stall. */
const sr_arm sr_arms[SR_ARMS] = {
    { "f32", TRN_F32, TRN_NEAREST_EVEN, false, SAME, SAME, 2, "binary32 weights" },
    { "bf16-rne", TRN_BF16, TRN_NEAREST_EVEN, false, SAME, SAME, 3, "bfloat16 weights, updates to nearest even" },
    { "bf16-sr", TRN_BF16, TRN_STOCHASTIC, false, SAME, SAME, 0, "bfloat16 weights, updates rounded stochastically" },
    { "bf16-kahan", TRN_BF16, TRN_NEAREST_EVEN, true, SAME, SAME, 1,
      "bfloat16 weights and what rounding took, also bfloat16" },
    { "fp8-rne", TRN_BF16, TRN_STOCHASTIC, false, E4M3(TRN_NEAREST_EVEN), E5M2(TRN_NEAREST_EVEN), 4,
      "bf16-sr; linear layers multiply E4M3, backward E5M2, cast to nearest even" },
    { "fp8-sr", TRN_BF16, TRN_STOCHASTIC, false, E4M3(TRN_STOCHASTIC), E5M2(TRN_STOCHASTIC), 5,
      "fp8-rne, cast stochastically" },
};

const sr_arm *sr_find_arm(const char *name)
{
    for (int i = 0; i < SR_ARMS; i++)
        if (strcmp(sr_arms[i].name, name) == 0) return &sr_arms[i];
    return NULL;
}

int sr_arm_index(const sr_settings *s, const sr_arm *arm)
{
    for (int i = 0; i < s->arms; i++)
        if (s->arm[i] == arm) return i;
    return -1;
}

/* ---- weights ---- */

void sr_weights_start(sr_weights *w, const sr_arm *arm, trn_format products, uint64_t seed, int tensors)
{
    memset(w, 0, sizeof *w);
    w->arm = arm;
    w->products = products;
    w->seed = seed;
    w->tensor = app_memory((size_t)tensors, sizeof *w->tensor);
}

int sr_weights_add(sr_weights *w, const char *name, int layer, sr_use use, int64_t rows, int64_t columns)
{
    sr_tensor *t = &w->tensor[w->tensors];
    snprintf(t->name, sizeof t->name, layer < 0 ? "%s" : "%s.%d", name, layer);
    t->use = use;
    t->rows = rows;
    t->columns = columns;
    t->first = w->count;
    w->count += rows * columns;
    return w->tensors++;
}

void sr_weights_finish(sr_weights *w)
{
    float **const array[] = { &w->value, &w->first, &w->second, &w->wanted, &w->before };
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) *array[i] = app_memory((size_t)w->count, sizeof(float));
    for (int i = 0; i < SR_SHARDS; i++) w->gradient[i] = app_memory((size_t)w->count, sizeof(float));
    w->stored = app_memory((size_t)w->count, sizeof(float));
    w->rest = app_memory((size_t)w->count, sizeof *w->rest);
}

void sr_weights_free(sr_weights *w)
{
    void *const array[] = { w->value, w->first, w->second, w->wanted, w->before, w->stored, w->rest };
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) free(array[i]);
    for (int i = 0; i < SR_SHARDS; i++) free(w->gradient[i]);
    for (int i = 0; i < w->tensors; i++) sr_operand_free(&w->tensor[i].operand);
    free(w->tensor);
}

/* All arms begin with the same numbers, those that bfloat16 holds: only the training differs. */
static void store_first(sr_weights *w, const sr_tensor *t)
{
    const int64_t count = t->rows * t->columns;
    float *value = w->value + t->first;
    for (int64_t i = 0; i < count; i++) value[i] = trn_bf16_to_f32(trn_bf16_from_f32(value[i]));
    const size_t bytes = (size_t)trn_format_bits(w->arm->weights) / 8;
    trn_error error;
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_1d(w->arm->weights, (char *)w->stored + (size_t)t->first * bytes, count);
    args.src = trn_tensor_1d(TRN_F32, value, count);
    args.error = &error;
    sr_must(trn_convert(&args), &error);
    memcpy(w->before + t->first, value, (size_t)count * sizeof *value);
}

void sr_weights_draw(sr_weights *w, int tensor, double bound)
{
    const sr_tensor *t = &w->tensor[tensor];
    for (int64_t i = 0; i < t->rows * t->columns; i++) {
        const double word = trn_random_u32(w->seed, SR_STREAM(SR_DRAW) | (uint64_t)tensor << 12, (uint64_t)i);
        w->value[t->first + i] = bound > 0 ? (float)(bound * (0x1p-31 * word - 1)) : bound < 0 ? 0 : 1;
    }
    store_first(w, t);
}

/* ---- operands ---- */

sr_rule sr_forward_rule(const sr_weights *w, sr_use use)
{
    const sr_rule same = { w->products, TRN_NEAREST_EVEN };
    return use == SR_LINEAR && w->arm->forward.format != TRN_FORMAT_UNSET ? w->arm->forward : same;
}

sr_rule sr_backward_rule(const sr_weights *w, sr_use use)
{
    const sr_rule same = { w->products, TRN_NEAREST_EVEN };
    return use == SR_LINEAR && w->arm->backward.format != TRN_FORMAT_UNSET ? w->arm->backward : same;
}

/* workspace: one for each shard; tensors are spread over them. Their streams go on from here in this step. */
void sr_weights_cast(sr_weights *w, sr_workspace *const *workspace, int64_t step)
{
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 1)
#endif
    for (int s = 0; s < SR_SHARDS; s++) {
        workspace[s]->seed = w->seed;
        workspace[s]->stream = SR_STREAM(SR_CAST) | (uint64_t)step << 24 | (uint64_t)s << 12;
        for (int i = s; i < w->tensors; i += SR_SHARDS) {
            sr_tensor *t = &w->tensor[i];
            if (t->use == SR_MATRIX || t->use == SR_LINEAR)
                sr_cast(workspace[s], &t->operand, w->value + t->first, t->rows, t->columns,
                        sr_forward_rule(w, t->use));
        }
    }
}

/* FNV-1a of what is stored. */
uint64_t sr_weights_digest(const sr_weights *w)
{
    const unsigned char *byte = w->stored;
    const size_t bytes = (size_t)w->count * (size_t)trn_format_bits(w->arm->weights) / 8;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* fuzz_layouts.c - checkpoints of made-up names, types and shapes, with a configuration or a spoilt one: whatever they
 * are, each matrix is read or refused in one sentence, a scale is one matrix's, and nothing beyond a tensor is read.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_layouts [count] [seed]       default: 4000 checkpoints, 400000 with TRN_TEST_LEVEL=2; seed 1
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2)

#include "io/quant/foreign.h"
#include "io/quant/values.h"

enum { ROOM = 900, MOST = 10 };

#include "fuzz/long.h"
#include "twin/cases.h"

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

static const char *const stems[] = { "m.a", "m.a_b", "m.experts.up_proj", "a" };
static const char *const ends[] = {
    ".weight", "", "_blocks", ".weight_packed", ".qweight", "._weight_qdata", ".weight._data",
    /* what belongs to it */
    ".weight_scale", ".weight_scale_inv", "_scale", ".scale", "_scales", ".scales", ".qzeros", ".g_idx",
    ".weight_shape", ".weight_zero_point", ".weight_scale_2", ".weight_global_scale", ".weight.absmax",
    ".weight.quant_map", ".weight.quant_state.bitsandbytes__nf4", ".weight.nested_absmax", ".weight.nested_quant_map",
    ".input_scale", ".bias", ".s", ".k_scale", ".weight_g_idx", "_weight_scale"
};
static const char *const types[] = { "F8_E4M3", "F8_E5M2", "I8",  "U8",      "I32", "F4",
                                     "F32",     "BF16",    "F16", "F8_E8M0", "I64" };
static const int sizes[] = { 1, 2, 3, 4, 8, 16, 32, 33, 64, 96 };
static const char *const configs[] = {
    "{}",
    "{\"model_type\":\"gpt_oss\",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[32,16]}}",
    "{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32}}",
    "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":16,\"sym\":false}}",
    "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
    "\"config_groups\":{\"g\":{\"targets\":[\"Linear\"],"
    "\"weights\":{\"num_bits\":4,\"type\":\"int\",\"group_size\":32}}}}}",
    "{\"text_config\":{\"hidden_size\":32,\"moe_intermediate_size\":16,\"expert_dtype\":\"fp4\"},\"x\":[NaN,Infinity]}",
    "{\"quantization\":{\"quant_algo\":\"FP8_PB_WO\",\"group_size\":-1}}"
};
static const char state[] = "{\"quant_type\":\"nf4\",\"blocksize\":64,\"dtype\":\"float32\",\"shape\":[4,32]}";

#define PICK(list) (list)[below((int)(sizeof(list) / sizeof(list)[0]))]

/* A tensor whose bytes lie in a block of their own. */
static st_tensor *some_tensor(void)
{
    st_tensor *t = (st_tensor *)calloc(1, sizeof *t);
    char name[128];
    uint64_t bytes = 0;
    const char *wrong;
    assert(t);
    snprintf(name, sizeof name, "%s%s", PICK(stems), PICK(ends));
    t->name = strdup(name);
    do {
        snprintf(t->type, sizeof t->type, "%s", PICK(types));
        t->rank = one_in(4) ? below(5) : 2;
        for (int i = 0; i < t->rank; i++) t->shape[i] = one_in(30) ? 0 : PICK(sizes);
    } while (!st_measure(t, &bytes, &wrong) || bytes > 1 << 16);
    const bool says = strstr(name, "quant_state") && one_in(2);
    if (says) {
        snprintf(t->type, sizeof t->type, "U8");
        t->rank = 1;
        t->shape[0] = (int64_t)(sizeof state - 1);
        assert(st_measure(t, &bytes, &wrong));
    }
    unsigned char *data = (unsigned char *)malloc(bytes ? bytes : 1);
    assert(data);
    for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)below(one_in(3) ? 256 : 4);
    if (says) memcpy(data, state, sizeof state - 1);
    t->data = data;
    t->end = bytes;
    return t;
}

static bool read_matrix(const quant_map *m, const quant *q)
{
    const st_tensor *part[QUANT_PARTS] = { NULL };
    quant_values v;
    char why[IO_WHY] = "";
    for (int i = 0; i < QUANT_PARTS; i++)
        if (q->part[i] >= 0) part[i] = m->tensor[q->part[i]];
    if (!quant_open(q, part, &v, why)) return assert(why[0]), false;
    quant_at(&v, part[QUANT_CODES]->data);
    float *row = (float *)malloc(((size_t)v.columns + 1) * sizeof *row);
    assert(row);
    for (int64_t r = 0; r < v.rows; r++) quant_run(&v, r, 0, v.columns, row, 1);
    for (int64_t r = 0; r < v.rows && v.columns > 2; r += 3) quant_run(&v, r, v.columns / 2, v.columns / 3, row, 1);
    free(row);
    quant_close(&v);
    return true;
}

/* A part has one owner, which has it. */
static void check_owners(const quant_map *m)
{
    for (int i = 0; i < m->tensors; i++) {
        if (m->owner[i] < 0) continue;
        const quant *q = &m->quant[m->number[m->owner[i]]];
        int found = 0;
        for (int p = QUANT_SCALE; p < QUANT_PARTS; p++) found += q->part[p] == i;
        assert(found == 1 && m->role[i] == QUANT_PART);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const st_tensor *const *)a)->name, (*(const st_tensor *const *)b)->name);
}

static long one_checkpoint(void)
{
    const st_tensor *list[MOST];
    quant_said said;
    quant_asked asked = { .take_for_1 = one_in(3) };
    char why[IO_WHY] = "", config[ROOM], text[QUANT_FOREIGN];
    int n = 0, place;
    long read = 0;
    snprintf(config, sizeof config, "%s", PICK(configs));
    for (int wounds = one_in(3) ? below(4) : 0; wounds > 0; wounds--)
        config[below((int)strlen(config))] = "\"[]{},:0-9n\\"[below(12)];
    const bool ok = quant_said_parse(config, strlen(config), &said, why);
    assert(ok || why[0]);
    for (int wanted = 1 + below(MOST - 1); n < wanted;) list[n++] = some_tensor();
    qsort(list, (size_t)n, sizeof *list, by_name);
    for (int i = 1; i < n; i++)
        if (strcmp(list[i - 1]->name, list[i]->name) == 0) list[i - 1]->name[0] = (char)(0x30 + i); /* names differ */
    qsort(list, (size_t)n, sizeof *list, by_name);
    if (one_in(5)) asked.block[0] = PICK(sizes), asked.block[1] = PICK(sizes);
    quant_map m = { .tensor = list, .tensors = n, .said = &said, .asked = &asked };
    assert(quant_survey(&m, why));
    check_owners(&m);
    for (int i = 0; i < m.quants; i++)
        if (!m.quant[i].wrong) read += read_matrix(&m, &m.quant[i]);
    quant_foreign(&m, &place, text);
    quant_map_free(&m);
    quant_said_free(&said);
    for (int i = 0; i < n; i++) {
        free((void *)(uintptr_t)list[i]->data);
        free(list[i]->name);
        free((void *)(uintptr_t)list[i]);
    }
    return read;
}

int main(int argc, char **argv)
{
    long read = 0;
    fuzzing_start(argc, argv, 4000, 400000);
    while (fuzzing_next(&rng)) read += one_checkpoint();
    const long count = fuzzing_end();
    printf("%ld checkpoints, %ld matrices read\n", count, read);
    return count >= 1000 && read == 0;
}

#else

int main(void)
{
    printf("cJSON or PCRE2 is not installed: checkpoints are not read\n");
    return 0;
}

#endif

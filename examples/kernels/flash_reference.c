/* flash_reference.c - what causal attention should give, and what each rounding on the way may do to it.
 * SPDX-License-Identifier: MIT
 */
#include "flash_attention.h"

#include <math.h>

flash_step flash_first(void) { return (flash_step){ 0, 0, 128, true, true }; }

bool flash_next(flash_step *t, int64_t rows)
{
    if (t->ends && t->q + 128 >= rows) return false;
    t->begins = t->ends;
    t->first = t->ends ? 0 : t->first + t->keys;
    t->q += t->ends ? 128 : 0;
    t->keys = least(FLASH_KEYS, t->q + 128 - t->first);
    t->ends = t->first + t->keys == t->q + 128;
    return true;
}

float flash_scale(int64_t d) { return (float)(1 / sqrt((double)d)); }

typedef struct row {
    const double *q;        /* [d] */
    const double *keys, *v; /* transposed [d, rows]; [rows, d] */
    int64_t rows, d;
    num *query, *p, *part, *y; /* [d], [512], [d], [d] */
    double *key, low;          /* [d, 512] */
    num total;
} row;

/* One block of keys for one query. The maximum may be any number near the largest score, since it divides out: here
 * it is exact, and neither its roundings nor its error count. */
static void block(row *k, int64_t first, int64_t keys)
{
    const double scale = (double)flash_scale(k->d), old = k->low;
    for (int64_t i = 0; i < k->d; i++) {
        k->query[i] = num_of(k->q[i]);
        for (int64_t j = 0; j < keys; j++) k->key[i * keys + j] = k->keys[i * k->rows + first + j];
    }
    const num_matrix key = { .v = k->key }, value = { .v = k->v + first * k->d };
    num_dots(k->p, k->query, &key, k->d, keys, num_depth(k->d, 1));
    for (int64_t j = 0; j < keys; j++) k->low = fmin(k->low, -scale * k->p[j].v);
    for (int64_t j = 0; j < keys; j++)
        k->p[j] = num_table(NUM_EXP, num_f32(num_add(num_f32(num_times(k->p[j], scale)), num_of(k->low))));
    const num sum = num_sum(k->p, keys);
    for (int64_t j = 0; j < keys; j++) k->p[j] = num_round(k->p[j], TRN_BF16, NUM_CAST);
    num_dots(first ? k->part : k->y, k->p, &value, keys, k->d, num_depth(128, (keys + 127) / 128));
    if (first) {
        const num factor = num_table(NUM_EXP, num_f32(num_of(k->low - old)));
        for (int64_t i = 0; i < k->d; i++) k->y[i] = num_f32(num_add(num_f32(num_mul(k->y[i], factor)), k->part[i]));
        k->total = num_f32(num_add(num_f32(num_mul(k->total, factor)), sum));
    } else {
        k->total = sum;
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], d = r->size[COLUMNS];
    const trn_tensor q = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, d);
    const trn_tensor keys = kernel_normal(r, "k", TRN_BF16, rows, d, 0, 1),
                     v = kernel_normal(r, "v", TRN_BF16, rows, d, 0, 1);
    flash_attention(r->core, out, q, keys, v);
    if (trn_core_status(r->core, NULL)) return;

    const double *query = kernel_values(r, q);
    row k = { .rows = rows,
              .d = d,
              .keys = kernel_values(r, trn_tensor_transposed(keys)),
              .v = kernel_values(r, v),
              .query = kernel_nums(r, d),
              .p = kernel_nums(r, FLASH_KEYS),
              .part = kernel_nums(r, d),
              .y = kernel_nums(r, d),
              .key = (double *)kernel_memory(r, (size_t)(d * FLASH_KEYS) * sizeof(double)) };
    for (int64_t i = 0; i < rows; i++) {
        k.q = query + i * d;
        k.low = HUGE_VAL;
        for (int64_t first = 0; first <= i; first += FLASH_KEYS) block(&k, first, least(FLASH_KEYS, i + 1 - first));
        const num share = num_f32(num_divide(num_of(1), k.total));
        for (int64_t j = 0; j < d; j++) k.y[j] = num_round(num_f32(num_mul(k.y[j], share)), TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), k.y);
    }
}

const kernel kernel_flash_attention = {
    .name = "flash_attention",
    .about = "causal softmax(q k^T / sqrt(columns)) v, one head, in blocks of 512 keys",
    .size = { { "rows", 1024, 128, 4096 }, { "columns", 128, 32, 128 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_CAST] = "the probabilities in bfloat16",
                [NUM_ARITHMETIC] = "binary32 sums and products",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of exp",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};

/* dense.c - linear layers in BF16 by trnmath, with a table of the weights that have been seen.
 * SPDX-License-Identifier: MIT
 *
 *     cc -O2 -fopenmp -I../.. -c dense.c     (the rest of the program may be compiled with -Ofast; this file may not)
 */
#include "dense.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>

typedef struct layer {
    const float *weights;
    int in, outs;
    uint16_t *codes; /* [outs, in] BF16, whose transpose is multiplied */
    void *packed;    /* the same for trn_matmul; NULL until several rows come */
    size_t packed_bytes;
    unsigned coded, ordered; /* the states of the weights that codes and packed are of */
} layer;

static layer *table; /* open addressing, at most half full */
static size_t slots, used;
static unsigned state = 1;
static uint16_t *rounded; /* x in BF16 */
static size_t room;

static void *need(void *memory)
{
    if (!memory) {
        fprintf(stderr, "dense: there is not enough memory\n");
        exit(2);
    }
    return memory;
}

static void must(trn_status status, const trn_error *error)
{
    if (status == TRN_OK) return;
    fprintf(stderr, "dense: %s\n", error->text);
    exit(2);
}

/* The place of these weights, or the free one for them. */
static layer *place(layer *in, size_t count, const float *weights)
{
    size_t at = (size_t)(((uintptr_t)weights >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (count - 1);
    while (in[at].weights && in[at].weights != weights) at = (at + 1) & (count - 1);
    return &in[at];
}

static void grow(void)
{
    const size_t more = slots ? 2 * slots : 64;
    layer *fresh = need(calloc(more, sizeof *fresh));
    for (size_t i = 0; i < slots; i++)
        if (table[i].weights) *place(fresh, more, table[i].weights) = table[i];
    free(table);
    table = fresh;
    slots = more;
}

static void to_bf16(uint16_t *codes, const float *x, int64_t rows, int64_t columns)
{
    trn_error error;
    const trn_convert_args args = { .dst = trn_tensor_2d(TRN_BF16, codes, rows, columns),
                                    .src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)x, rows, columns),
                                    .error = &error };
    must(trn_convert(&args), &error);
}

/* The layer of these weights, in the format of the engine. */
static layer *layer_of(const float *weights, int in, int outs)
{
    if (2 * used >= slots) grow();
    layer *l = place(table, slots, weights);
    if (l->weights && (l->in != in || l->outs != outs)) { /* the address is another matrix now */
        free(l->codes);
        free(l->packed);
        *l = (layer){ .weights = weights };
    }
    if (!l->weights) used++;
    l->weights = weights;
    if (!l->codes) l->codes = need(malloc(2 * (size_t)in * (size_t)outs));
    l->in = in;
    l->outs = outs;
    if (l->coded != state) to_bf16(l->codes, weights, outs, in);
    l->coded = state;
    return l;
}

/* For many rows: the weights in the order in which they are read. */
static void order(layer *l, const trn_matmul_args *args)
{
    if (!l->packed) {
        l->packed_bytes = trn_matmul_pack_bytes(args);
        l->packed = need(malloc(l->packed_bytes));
    }
    if (l->ordered != state) must(trn_matmul_pack(args, l->packed, l->packed_bytes), args->error);
    l->ordered = state;
}

void dense(float *out, const float *x, const float *w, const float *bias, int rows, int in, int outs)
{
    const size_t count = (size_t)rows * (size_t)in;
    layer *l = layer_of(w, in, outs);
    trn_error error;
    if (count > room) {
        rounded = need(realloc(rounded, 2 * count));
        room = count;
    }
    to_bf16(rounded, x, rows, in);
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, out, rows, outs),
                             .a = trn_tensor_2d(TRN_BF16, rounded, rows, in),
                             .b = trn_tensor_2d(TRN_BF16, l->codes, in, outs),
                             .error = &error };
    args.b.stride[0] = 1;
    args.b.stride[1] = in;
    if (rows > 1) {
        order(l, &args);
        args.packed = l->packed;
    }
    must(trn_matmul(&args), &error);
    for (int r = 0; bias && r < rows; r++)
        for (int o = 0; o < outs; o++) out[(size_t)r * (size_t)outs + (size_t)o] += bias[o];
}

void dense_changed(void) { state++; }

void dense_free(void)
{
    for (size_t i = 0; i < slots; i++) {
        free(table[i].codes);
        free(table[i].packed);
    }
    free(table);
    free(rounded);
    table = NULL;
    rounded = NULL;
    slots = used = room = 0;
}

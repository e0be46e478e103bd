/* check.c - what kernels stand on: instructions, memory, inputs; and outputs against references.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <math.h>

/* The instructions that kernels use, compiled once. */
#define DEFINE(name)                                                                                                   \
    void kernel_##name(trn_core *c, const trn_##name##_args *args) { trn_core_##name(c, args); }

KERNEL_INSTRUCTIONS(DEFINE)

/* ---- memory ---- */

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

void *kernel_memory(kernel_run *r, size_t bytes)
{
    block *b = (block *)app_memory(1, sizeof(block) + bytes);
    b->next = (block *)r->memory;
    r->memory = b;
    return b->data;
}

void kernel_free(kernel_run *r)
{
    for (block *b = (block *)r->memory, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    r->memory = NULL;
}

num *kernel_nums(kernel_run *r, int64_t n) { return (num *)kernel_memory(r, (size_t)n * sizeof(num)); }

/* ---- tensors ---- */

trn_tensor rows_of(trn_tensor t, int64_t first, int64_t count) { return trn_tensor_slice(t, 0, first, count); }
trn_tensor columns_of(trn_tensor t, int64_t first, int64_t count) { return trn_tensor_slice(t, 1, first, count); }

trn_tensor exchanged(trn_tensor t, int a, int b)
{
    const trn_tensor from = trn_tensor_slice(t, 0, 0, t.shape[0]); /* its strides written out */
    t = from;
    t.shape[a] = from.shape[b], t.stride[a] = from.stride[b];
    t.shape[b] = from.shape[a], t.stride[b] = from.stride[a];
    return t;
}

static pool pool_of(trn_core *c, trn_space space, const char *name, trn_format format, int64_t partitions,
                    int64_t elements, int count)
{
    pool p = { .count = count };
    for (int i = 0; i < count; i++)
        p.tile[i] = space == TRN_SPACE_SBUF ? trn_core_sbuf(c, name, format, partitions, elements)
                                            : trn_core_psum(c, name, format, partitions, elements);
    return p;
}

pool sbuf_pool(trn_core *c, const char *name, trn_format format, int64_t partitions, int64_t elements, int count)
{
    return pool_of(c, TRN_SPACE_SBUF, name, format, partitions, elements, count);
}

pool psum_pool(trn_core *c, const char *name, trn_format format, int64_t partitions, int64_t elements, int count)
{
    return pool_of(c, TRN_SPACE_PSUM, name, format, partitions, elements, count);
}

trn_tensor turn(pool *p, int64_t partitions)
{
    const trn_tensor t = p->tile[p->next];
    p->next = (p->next + 1) % p->count;
    return rows_of(t, 0, partitions);
}

trn_tensor kernel_tensor(kernel_run *r, const char *name, trn_format format, int64_t rows, int64_t columns)
{
    void *data = kernel_memory(r, (size_t)(rows * columns) * trn_format_bytes(format));
    return trn_core_hbm(r->core, name, trn_tensor_2d(format, data, rows, columns));
}

/* As on any machine: the sum of eight uniform numbers of 16 bits, which is nearly normal and needs no libm. */
static double normal(uint64_t seed, uint64_t stream, uint64_t i)
{
    double sum = 0;
    for (uint64_t k = 0; k < 4; k++) {
        const uint32_t word = trn_random_u32(seed, stream, 4 * i + k);
        sum += (word & 0xffff) + (word >> 16);
    }
    return (sum / 65536 - 4) * 1.2247448713915890;
}

void kernel_store(trn_tensor t, const double *value)
{
    const int64_t n = trn_tensor_elements(t);
    const size_t bytes = trn_format_bytes(t.format);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = trn_encode(t.format, (float)value[i], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        memcpy((char *)t.data + (size_t)i * bytes, &code, bytes); /* little endian */
    }
}

trn_tensor kernel_normal(kernel_run *r, const char *name, trn_format format, int64_t rows, int64_t columns, double mean,
                         double sigma)
{
    const trn_tensor t = kernel_tensor(r, name, format, rows, columns);
    double *value = (double *)kernel_memory(r, (size_t)(rows * columns) * sizeof(double));
    const uint64_t stream = r->stream++;
    for (int64_t i = 0; i < rows * columns; i++) value[i] = mean + sigma * normal(r->seed, stream, (uint64_t)i);
    kernel_store(t, value);
    return t;
}

double kernel_sigma(int64_t n) { return 1 / sqrt((double)n); }

double kernel_npy_value(const npy_array *a, int64_t row, int64_t column)
{
    const char *at = (const char *)a->data + (row * a->stride[0] + column * a->stride[1]) * a->item_bytes;
    float f;
    uint16_t half;
    if (a->item_bytes == 4) return memcpy(&f, at, 4), (double)f;
    memcpy(&half, at, 2);
    return (double)trn_decode(TRN_F16, half);
}

trn_tensor kernel_input(kernel_run *r, trn_format format)
{
    const int64_t rows = r->size[ROWS], columns = r->size[COLUMNS];
    if (!r->input) return kernel_normal(r, "x", format, rows, columns, 0, 1);
    const trn_tensor t = kernel_tensor(r, "x", format, rows, columns);
    double *value = (double *)kernel_memory(r, (size_t)(rows * columns) * sizeof(double));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) value[i * columns + j] = kernel_npy_value(r->input, i, j);
    kernel_store(t, value);
    return t;
}

double *kernel_values(kernel_run *r, trn_tensor t)
{
    const trn_tensor v = rows_of(t, 0, t.shape[0]); /* its strides written out */
    const int64_t columns = v.shape[1];
    const size_t bytes = trn_format_bytes(v.format);
    double *value = (double *)kernel_memory(r, (size_t)(v.shape[0] * columns) * sizeof(double));
    for (int64_t i = 0; i < v.shape[0] * columns; i++) {
        const int64_t at = i / columns * v.stride[0] + i % columns * v.stride[1];
        uint32_t code = 0;
        memcpy(&code, (const char *)v.data + at * (int64_t)bytes, bytes); /* little endian */
        value[i] = (double)trn_decode(v.format, code);
    }
    return value;
}

/* ---- comparing ---- */

void kernel_compare(kernel_run *r, trn_tensor got, const num *want)
{
    kernel_result *k = &r->result;
    const double *value = kernel_values(r, got);
    const int64_t n = trn_tensor_elements(got);
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs(value[i] - want[i].v), bound = num_bound(&want[i]);
        const double part = error == 0 ? 0 : bound > 0 && error == error ? error / bound : HUGE_VAL;
        const double size = error == error ? error : HUGE_VAL;
        k->max_error = fmax(k->max_error, size);
        const double ulps = size / num_ulp(got.format, want[i].v);
        if (ulps > k->max_ulp) k->max_ulp = ulps, k->max_ulp_at = want[i].v;
        k->worst = fmax(k->worst, part);
        k->signal += want[i].v * want[i].v;
        k->noise += size * size;
        for (int s = 0; s < NUM_SOURCES; s++) k->expected[s] += want[i].variance[s];
    }
    k->elements += n;
}

void kernel_compare_exactly(kernel_run *r, trn_tensor got, const int64_t *want)
{
    const double *value = kernel_values(r, got);
    const int64_t n = trn_tensor_elements(got);
    for (int64_t i = 0; i < n; i++)
        if (value[i] != (double)want[i]) r->result.worst = HUGE_VAL;
}

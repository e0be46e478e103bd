/* kernel.h - what the kernels share: their frame, their inputs, and how they are held against their references.
 * SPDX-License-Identifier: MIT
 *
 * A kernel is a program of NKI's instructions on a trn_core, its reference in numbers that know their errors (num.h),
 * and a row `kernel` that names both.
 *
 *     softmax.c  norm.c  rope.c  matmul.c  flash_attention.c  mamba_scan.c  mlp.c  mlp_quantised.c   the kernels
 *     check.c    what they stand on: instructions, memory, inputs, and the comparison
 *     num.c      numbers that know their errors
 *     run.c      the command line        report.c   the table and the files
 */
#ifndef KERNELS_KERNEL_H
#define KERNELS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <trnmath/trnmath.h>

#include <app/app.h>
#include <io/npy.h>

#include "num.h"

/* One instruction as NKI spells it, on the core c: nisa(tensor_copy, .dst = y, .src = x). What fails stays in the
 * core's status, and later instructions do nothing. It is trn_core_tensor_copy, by a detour over check.c, so that the
 * engines are compiled once and not for each kernel. */
#define nisa(instruction, ...) kernel_##instruction(c, &(trn_##instruction##_args){ __VA_ARGS__ })

/* The formatter takes the rows for calls. */
/* clang-format off */
#define KERNEL_INSTRUCTIONS(X)                                                                                         \
    X(activation) X(affine_select) X(bn_aggr) X(bn_stats) X(dma_copy) X(exponential) X(max8) X(memset)                 \
    X(nc_find_index8) X(nc_match_replace8) X(nc_matmul) X(nc_matmul_mx) X(nc_transpose) X(quantize_mx) X(reciprocal)   \
    X(scalar_tensor_tensor) X(tensor_copy) X(tensor_reduce) X(tensor_scalar) X(tensor_tensor) X(tensor_tensor_scan)
/* clang-format on */
#define KERNEL_DECLARE(name) void kernel_##name(trn_core *c, const trn_##name##_args *args);
KERNEL_INSTRUCTIONS(KERNEL_DECLARE)

enum { KERNEL_SIZES = 5, KERNEL_GENERATIONS = 3 };
enum { KERNEL_TRN1 = 1, KERNEL_TRN2 = 2, KERNEL_TRN3 = 4, KERNEL_ALL = 7 };
enum { ROWS = 0, COLUMNS = 1 }; /* sizes 0 and 1: those of the main input */

typedef struct kernel_size {
    const char *name;
    int64_t value;    /* unless the user says otherwise */
    int64_t multiple; /* of what; 0 = of 1 */
    int64_t most;
} kernel_size;

typedef struct kernel_run kernel_run;

typedef struct kernel {
    const char *name, *about;
    kernel_size size[KERNEL_SIZES];
    int generations; /* where it is legal; elsewhere it is run too, and the library has to say why not */
    const char *source[NUM_SOURCES]; /* what errors are called here */
    void (*run)(kernel_run *r);
} kernel;

typedef struct kernel_result {
    bool legal;
    trn_status status; /* the core's */
    char why[256];     /* what the core said */
    int64_t elements;
    double max_ulp, max_ulp_at, max_error, worst; /* _at: of which number; worst: error over its bound */
    double signal, noise, expected[NUM_SOURCES];
    trn_core_report report;
} kernel_result;

struct kernel_run {
    const kernel *kernel;
    trn_generation generation;
    uint64_t seed, stream;
    int64_t size[KERNEL_SIZES];
    const npy_array *input; /* null: random numbers */
    trn_core *core;
    kernel_result result;
    void *memory; /* a list */
};

extern const kernel *const kernels[]; /* closed by NULL */

/* ---- for kernels ---- */

void *kernel_memory(kernel_run *r, size_t bytes); /* zeroed; freed after the run */
num *kernel_nums(kernel_run *r, int64_t n);
/* Tensors in HBM. The main input [rows, columns] is the user's, or normal by seed; others are normal with a sigma. */
trn_tensor kernel_input(kernel_run *r, trn_format format);
trn_tensor kernel_normal(kernel_run *r, const char *name, trn_format format, int64_t rows, int64_t columns, double mean,
                         double sigma);
double kernel_sigma(int64_t n); /* of weights that keep the size of what n of them sum */
/* Of zeros. */
trn_tensor kernel_tensor(kernel_run *r, const char *name, trn_format format, int64_t rows, int64_t columns);
/* Parts of a tensor or tile: axis 0, axis 1. */
trn_tensor rows_of(trn_tensor t, int64_t first, int64_t count);
trn_tensor columns_of(trn_tensor t, int64_t first, int64_t count);
trn_tensor exchanged(trn_tensor t, int a, int b); /* two axes change places */

/* A few tiles alike, which take turns: while an engine reads one, another fills the next. */
typedef struct pool {
    trn_tensor tile[8];
    int count, next;
} pool;

pool sbuf_pool(trn_core *c, const char *name, trn_format format, int64_t partitions, int64_t elements, int count);
pool psum_pool(trn_core *c, const char *name, trn_format format, int64_t partitions, int64_t elements, int count);
trn_tensor turn(pool *p, int64_t partitions); /* the first so many of its partitions */

double *kernel_values(kernel_run *r, trn_tensor t); /* its elements */
void kernel_store(trn_tensor t, const double *value);
/* Elements of the output against what they should be. */
void kernel_compare(kernel_run *r, trn_tensor got, const num *want);
/* Indices have no errors: they are equal or wrong. */
void kernel_compare_exactly(kernel_run *r, trn_tensor got, const int64_t *want);
void kernel_free(kernel_run *r);
double kernel_npy_value(const npy_array *a, int64_t row, int64_t column); /* of <f4 or <f2 */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- report.c ---- */

typedef struct kernel_report {
    FILE *table; /* NULL: standard output is taken */
    kernel_run *run;
    int runs;
    bool passed;
    trn_trace *trace; /* NULL: not asked for */
} kernel_report;

const char *kernel_generation_name(trn_generation generation);
int kernel_generation_bit(trn_generation generation);
bool kernel_passed(const kernel_run *r); /* legal where it should be, and within its bounds */
void report_table_head(FILE *out);
void report_table_run(FILE *out, const kernel_run *r);
void report_table_end(FILE *out);
void report_json(FILE *out, const void *report);
void report_csv(FILE *out, const void *report);

#endif

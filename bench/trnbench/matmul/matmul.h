/* matmul.h - what subcommand matmul is made of: works, their products, and what is known about each.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_MATMUL_MATMUL_H
#define BENCH_MATMUL_MATMUL_H

#include "io/npy.h"

#include <trnmath/trn_cost.h>

#include "bench/common/host.h"
#include "models.h"

/* ---- cost.c: a product on a system ---- */

/* Which cores compute one product together. The rest of the system computes products of its own. */
typedef enum tb_share { TB_SHARE_DOMAIN = 0, TB_SHARE_SYSTEM, TB_SHARE_CHIP, TB_SHARE_CORE, TB_SHARES } tb_share;
const char *tb_share_name(tb_share share);
const char *tb_share_text(tb_share share); /* "the cores of one NeuronLink domain share each product" */

typedef struct tb_cost {
    bool there;
    char why_not[160];
    double groups;      /* of cores that work side by side, each on products of its own */
    double group_cores; /* in one group */
    double flops;       /* of one group, all rounds */
    double time_s;      /* all rounds */
    double tflops;      /* whole system */
    double spec_tflops; /* whole system; NaN when not published */
    double share_of_spec;
    double limit_share; /* part of the time for which `limit` is the limit */
    trn_limit limit;
    trn_core_cost core; /* one product on the busiest core; of a total: of nothing */
    int64_t core_m, core_n;
    bool fits; /* its weights, in the HBM of one group */
} tb_cost;

tb_cost tb_cost_product(const tb_product *product, const tb_format *format, const trn_system_spec *spec,
                        tb_share share);
/* One forward pass: all products after each other. */
tb_cost tb_cost_total(const tb_cost *cost, int count, const tb_product *product, const tb_format *format,
                      const trn_system_spec *spec, tb_share share);

/* ---- matmul.c ---- */

int tb_main_matmul(int argc, char **argv);

typedef struct tb_work {
    char name[160];        /* "llama3-8b", "4096x4096x4096", "A.npy x B.npy" */
    const tb_model *model; /* NULL: one product */
    const char *phase;     /* "" without a model */
    int64_t tokens;
    int products;
    tb_product product[TB_MAX_LAYERS];
    npy_array a, b; /* data NULL: random numbers */
    const char *a_path, *b_path;
} tb_work;

/* One product in one format. */
typedef struct tb_item {
    int work, product;
    const tb_format *format;
    const tb_host *host; /* NULL: not run here */
    bool repeated;       /* the same shape and format as an earlier item, which was timed */
    tb_cost cost[TRN_SYSTEM_COUNT];
} tb_item;

enum { TB_MAX_WORKS = 32 };

typedef struct tb_job {
    tb_work work[TB_MAX_WORKS];
    int works;
    const tb_format *format[TB_MAX_FORMATS];
    int formats;
    bool system[TRN_SYSTEM_COUNT];
    tb_share share;
    tb_host_options host;
    bool run_host;
    bool all;                  /* the tables show everything, not one screen of it */
    const tb_format *headline; /* the only format that they show; NULL: all */
    FILE *out;                 /* where the product of two files goes; NULL: nowhere */
    const char *numerics_text; /* NULL: the defaults */
    tb_item *item;             /* [work][product][format] */
    int items;
} tb_job;

/* ---- run.c: this host ---- */

void tb_start_host(tb_job *job); /* its threads and peers */
int tb_run_host(const tb_job *job);

/* ---- rows.c: for programs ---- */

/* The part of the time this program had the processors. Below TB_BUSY its rates say little about the host. */
#define TB_BUSY 0.85
double tb_attention(const tb_job *job);
tb_cost tb_work_total(const tb_job *job, int work, const tb_format *format, trn_system system);
void tb_tidy_columns(app_table *table); /* an empty tidy table */
void tb_tidy_rows(app_table *table, const tb_job *job);
void tb_total_rows(app_table *table, const tb_job *job);
void tb_print_matmul_json(FILE *out, const void *job);
void tb_print_matmul_csv(FILE *out, const void *job);

/* ---- text.c: for people ---- */

void tb_print_text(const tb_job *job);

/* ---- report.c: one page ---- */

void tb_print_report(FILE *out, const void *job);

#endif /* BENCH_MATMUL_MATMUL_H */

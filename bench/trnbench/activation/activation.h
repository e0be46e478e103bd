/* activation.h - what the files of subcommand activation share: one function at a time, raced and judged.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_ACTIVATION_ACTIVATION_H
#define BENCH_ACTIVATION_ACTIVATION_H

#include <trnmath/trn_scalar_engine.h>

#include "app/app.h"

/* ---- activation.c ---- */

int tb_main_activation(int argc, char **argv);

/* ---- sleef.c: raw SLEEF, AVX-512 ---- */

typedef void tb_race(float *dst, const float *src, int64_t n); /* n a multiple of 16 */

tb_race *tb_sleef_race(trn_act op); /* NULL: SLEEF was not there when this was built, or the host has no AVX-512 */
const char *tb_sleef_version(void); /* NULL: as above */

/* ---- measure.c ---- */

typedef struct tb_act_job {
    trn_act op;
    trn_format format; /* of the numbers that go in and come out */
    int64_t elements;
    trn_isa isa;
    int rounds;
} tb_act_job;

typedef struct tb_act_speed {
    double engine, ideal, sleef;      /* elements per second, best round; NaN: not there */
    double engine_ratio, ideal_ratio; /* to raw SLEEF, median over the rounds; NaN: not there */
} tb_act_speed;

/* One thread, all candidates in turn within each round, on numbers from the middle of the function's range. */
int tb_act_race(const tb_act_job *job, tb_act_speed *speed);

enum { TB_ACT_BINS = 320 };

/* Of one function and one way to compute it, binary32 in and out, against MPFR. */
typedef struct tb_act_error {
    bool there;
    int64_t compared;
    double max_ulp, max_relative,
        max_absolute; /* within the valid range; relative: where the truth is a normal number */
    float at_ulp, at_relative;
    double worst[TB_ACT_BINS]; /* max_relative of each part of [from, to], for a picture; < 0: none */
    double from, to;
} tb_act_error;

/* Every bfloat16 number of the valid range and, in between, so many binary32 numbers. False: built without MPFR, or
 * without SLEEF where that is asked for. */
bool tb_act_judge(trn_act op, trn_act_math math, trn_isa isa, int between, tb_act_error *error);

/* ---- report.c ---- */

typedef struct tb_act_result {
    trn_act op;
    tb_act_error engine, ideal;
} tb_act_result;

typedef struct tb_act_page {
    const app_table *table;
    const tb_act_result *result;
    int results;
    const char *isa;
} tb_act_page;

void tb_print_activation_report(FILE *out, const void *page);

#endif /* BENCH_ACTIVATION_ACTIVATION_H */

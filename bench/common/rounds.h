/* rounds.h - what several rounds of measurement say, and the options that all measurements take.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COMMON_ROUNDS_H
#define BENCH_COMMON_ROUNDS_H

#include "app/app.h"

enum { TB_MAX_ROUNDS = 1000 };

/* Of n rounds, n <= TB_MAX_ROUNDS. */
double tb_median(const double *values, int n);
double tb_median_ratio(const double *over, const double *under, int n); /* of over[i] / under[i] */
double tb_best(const double *rate, int n);                              /* the largest */
double tb_thread_seconds(void); /* processor time of this thread: what other programs take away does not count */

bool tb_parse_threads(const char *text, int *threads, char *why);
bool tb_parse_seed(const char *text, uint64_t *seed, char *why);
trn_isa tb_isa(trn_isa asked); /* the one that runs when this one is asked for */
int tb_refuse_isa(void);       /* APP_USAGE, after a sentence, when the environment's TRN_ISA is none; else APP_OK */

#endif /* BENCH_COMMON_ROUNDS_H */

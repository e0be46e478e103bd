/* measure.h - what every measurement needs: options, progress, and what several rounds say.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COMMON_MEASURE_H
#define BENCH_COMMON_MEASURE_H

#include "app/files.h"

/* ---- options ---- */

bool tb_parse_threads(const char *text, int *threads, char *why);
bool tb_parse_seed(const char *text, uint64_t *seed, char *why);
trn_isa tb_isa(trn_isa asked); /* the one that runs when this one is asked for */
int tb_refuse_isa(void);       /* APP_USAGE, after a sentence, when the environment's TRN_ISA is none; else APP_OK */

/* The files that a subcommand writes; NULL: not asked for, "-": standard output, which then has no tables. */
enum { TB_CSV, TB_JSON, TB_REPORT, TB_OUT, TB_OUTPUTS };

typedef struct tb_files {
    const char *json, *csv, *report, *out; /* out: written during the work, through tb_file_stream */
    app_output output[TB_OUTPUTS];
} tb_files;

int tb_open_files(tb_files *files); /* before the work; APP_OK, or APP_USAGE after a sentence */
bool tb_stdout_taken(const tb_files *files);
FILE *tb_file_stream(const tb_files *files, int output); /* NULL: not asked for */
typedef void tb_writer(FILE *out, const void *context);
/* All of them appear, or none; report NULL: there is none. APP_OK, or APP_USAGE after a sentence. */
int tb_write_files(tb_files *files, tb_writer *csv, tb_writer *json, tb_writer *report, const void *context);
void tb_discard_files(tb_files *files); /* those that are still open */

/* ---- progress, on standard error ----
 * On a terminal one line that is overwritten, with the seconds so far. Elsewhere, and for who asks for plain text
 * (NO_COLOR, TERM=dumb), a line for each stage and nothing within one. app_progress_done() ends it. */

/* Stage `number` of `of` begins. */
void tb_stage(int number, int of, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What goes on within a stage. */
void tb_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rounds ---- */

enum { TB_MAX_ROUNDS = 1000 };

/* Of n rounds, n <= TB_MAX_ROUNDS. */
double tb_median(const double *values, int n);
double tb_median_ratio(const double *over, const double *under, int n); /* of over[i] / under[i] */
double tb_best(const double *rate, int n);                              /* the largest */
double tb_thread_seconds(void); /* processor time of this thread: what other programs take away does not count */

#endif /* BENCH_COMMON_MEASURE_H */

/* cores.h - what the programs here share: which cores, inputs, digests, errors, and what is told of a run.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_CORES_H
#define CORES_CORES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <trnmath/trnmath.h>

#include <app/app.h>
#include <app/files.h>

/* ---- which cores ---- */

typedef struct cores_options {
    trn_system system;
    int chips, ranks, threads; /* 0: all chips; one rank on each; all threads of the host */
    uint64_t seed;
    bool no_check;
    bool cycle; /* neighbours among the ranks are neighbours in the network, where it has a cycle */
    const char *trace, *json;
} cores_options;

#define CORES_TAKE(type, field)                                                                                        \
    static bool take_system(void *into, const char *value, char *why)                                                  \
    {                                                                                                                  \
        return cores_take_system(&((type *)into)->field, value, why);                                                  \
    }

/* clang-format off */
#define CORES_OPTIONS(type, field)                                                                                     \
    { "--system", "NAME", "trn2.48xlarge (default), trn2-ultraserver, trn3-gen2-ultraserver, ...",                     \
      .apply = take_system },                                                                                          \
    { "--chips", "N", "the first N chips of it (default: all)", APP_TAKES_INT(type, field.chips, 1, 4096) },           \
    { "--ranks", "N", "NeuronCores, as many on each chip (default: one on each)",                                      \
      APP_TAKES_INT(type, field.ranks, 1, 4096) },                                                                     \
    { "--threads", "N", "of the host (default: all); nothing but the host's time depends on it",                       \
      APP_TAKES_INT(type, field.threads, 1, 256) },                                                                    \
    { "--seed", "N", "of random inputs (default: 1)", APP_TAKES_UINT64(type, field.seed, UINT64_MAX) },                \
    { "--no-check", NULL, "without the reference, which takes most of the host's time",                                \
      APP_SETS(type, field.no_check) },                                                                                \
    { "--trace", "FILE", "the timeline, a track for each engine of each rank, for ui.perfetto.dev",                    \
      APP_TAKES_TEXT(type, field.trace) },                                                                             \
    { "--json", "FILE", "the same as JSON (- for standard output, in place of the text)",                              \
      APP_TAKES_TEXT(type, field.json) }
/* clang-format on */

bool cores_take_system(cores_options *o, const char *value, char *why);
/* Fills what was not given. why: ranks that chips do not divide, chips that there are not. */
bool cores_resolve(cores_options *o, char *why);

/* ---- a run ---- */

typedef struct cores_run {
    trn_cores cores;
    trn_cores_args args;
    trn_cores_report report;
    trn_trace trace;
    double host_s;
} cores_run;

/* The kernel on all ranks. APP_OK, or what app_run ends with, after a sentence. What stays open: cores_finish. */
int cores_start(cores_run *run, const cores_options *o, trn_cores_kernel *kernel, void *user);
void cores_finish(cores_run *run);
void cores_write_trace(FILE *out, const void *run);
void cores_print_times(FILE *out, const cores_run *run); /* time, bound, shares of engines and collectives */
void cores_json_times(FILE *out, const cores_run *run);  /* members of an object, each with a comma behind it */

/* ---- tensors of the host ---- */

trn_tensor cores_matrix(trn_format format, int64_t rows, int64_t columns); /* zeroed; cores_free_matrix */
void cores_free_matrix(trn_tensor t);
void cores_fill(trn_tensor t, uint64_t seed, uint64_t stream, double mean, double sigma); /* nearly normal */
void cores_values(trn_tensor t, double *value);                                           /* its elements */
uint64_t cores_digest(uint64_t digest, trn_tensor t); /* FNV-1a of its bytes; begins with CORES_DIGEST */
#define CORES_DIGEST 0xcbf29ce484222325u
uint64_t cores_digest_of(const uint64_t *digest, int count); /* of many */

/* ---- processes (built with TRN_USE_MPI, and started by mpirun) ---- */

/* Null where there is one process alone. */
const trn_cores_exchange *cores_exchange(void);
/* number [ranks] has those of this process' ranks; now everybody has all of them. */
void cores_share(const cores_run *run, uint64_t *number);
bool cores_speaks(const cores_run *run); /* the first process does */

/* ---- errors ---- */

/* Kernel, and the reference with the kernel's roundings to BF16 ("rounded"), each against the reference without. */
typedef struct cores_errors {
    const char *name;
    double signal, noise, expected_noise; /* sums of squares */
    double largest, expected_largest;
    int64_t elements, roundings; /* roundings: how many make the error, at least; 0: elements */
} cores_errors;

void cores_compare(cores_errors *e, const double *got, const double *exact, const double *rounded, int64_t n);
double cores_rms(const cores_errors *e);     /* of the error over that of the values */
double cores_largest(const cores_errors *e); /* error over the rms of the values */
/* What they may be: 1.25 + 4 / sqrt(n) times the rms, and 2 + 8 / sqrt(n) times the largest error, that n roundings
 * alone make: the two runs round other numbers, and of few of them the rms may be anything. */
double cores_rms_most(const cores_errors *e);
double cores_largest_most(const cores_errors *e);
bool cores_passed(const cores_errors *e);
void cores_print_errors(FILE *out, const cores_errors *e, int count);
void cores_json_errors(FILE *out, const cores_errors *e, int count); /* "errors": [...], */

/* x, or x in BF16. */
double cores_round(double x, bool rounds);

#endif

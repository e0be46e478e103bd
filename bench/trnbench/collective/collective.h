/* collective.h - what the files of the subcommand collective share.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COLLECTIVE_COLLECTIVE_H
#define BENCH_COLLECTIVE_COLLECTIVE_H

#include <trnmath/trn_collective.h>

#include "app/app.h"
#include "app/calibration.h"
#include "app/network.h"
#include "bench/common/measure.h"
#include "groups.h"

/* ---- collective.c ---- */

int tb_main_collective(int argc, char **argv);

typedef struct tb_cc_options {
    bool system[TRN_SYSTEM_COUNT], op[TRN_COLLECTIVE_COUNT];
    trn_algorithm algorithm; /* AUTO: the library's choice */
    bool every_algorithm;    /* one row for each */
    int64_t from, to;        /* bytes */
    int factor;              /* from one size to the next */
    int ranks;               /* of the group; 0: all */
    int ranks_per_chip;      /* 0: the system's logical cores */
    tb_groups groups;        /* none: the first chips */
    trn_format wire;
    const char *preset;
    app_calibration calibration;
    app_network network; /* --topology, --down, --slow */
    bool gib, uncalibrated, rules, check, schema, published;
    uint64_t seed;
    tb_files files;
} tb_cc_options;

/* ---- rows.c ---- */

/* The columns, whose names say GB/s or, with gib, GiB/s. */
void tb_cc_start(app_table *table, bool gib);
/* One row per system x operation x algorithm x size, and one without numbers for what does not fit, which says why.
 * APP_FAILED when a value is wrong; APP_USAGE with a sentence when nothing fits or --rules refuses a group. */
int tb_cc_rows(app_table *table, const tb_cc_options *o);

/* ---- published.c ---- */

/* Every published row beside bound, ideal and expected, and what a fit without it predicts. */
int tb_cc_published(app_table *table);
void tb_cc_print_published(const app_table *table);

/* ---- check.c ---- */

enum { TB_CC_CHECK_RANKS = 1024, TB_CC_CHECK_ELEMENTS = 1 << 22 };

typedef struct tb_cc_check {
    int64_t compared, wrong;
    char first[256]; /* what is wrong with the first wrong one */
} tb_cc_check;

/* Runs the values of a collective, ask->bytes per rank of random numbers in ask->wire, and compares every element of
 * every rank: moves exactly; sums with FP64 within their error bound, those of a ring with the fold around it, bit for
 * bit; all ranks of an all_reduce with each other. */
trn_status tb_cc_check_values(const trn_collective_args *ask, uint64_t seed, tb_cc_check *check);

#endif /* BENCH_COLLECTIVE_COLLECTIVE_H */

/* whatif.h - what if a number were another one: the numbers that can be moved, a sweep of one, a tornado of all, and
 * what a step costs in money and energy.
 * SPDX-License-Identifier: MIT
 *
 *     knob.c      the numbers by name, what they are now, and a job with one of them changed
 *     sweep.c     --sweep: the best plan for each value of one number
 *     tornado.c   --tornado: the best plan with each number moved down and up
 *     cost.c      --price-hour and --watts
 */
#ifndef SHARDPLAN_WHATIF_H
#define SHARDPLAN_WHATIF_H

#include "app/app.h"

#include <trnmath/trn_plan.h>

struct sp_options;
struct sp_job;

/* ---- numbers that can be moved ---- */

typedef enum sp_factor { SP_LINK_RATE, SP_LINK_LATENCY, SP_DMA_START, SP_HBM_RATE, SP_FACTORS } sp_factor;
typedef enum sp_kind { SP_FACTOR, SP_COUNT, SP_ASSUMED, SP_CALIBRATED } sp_kind;

typedef struct sp_knob {
    sp_kind kind;
    int index;        /* in the list of its kind */
    char name[48];    /* "link_rate", "batch", "contention", "calibration.torus" */
    const char *unit; /* of its value; "times": of what the network or the chips have */
} sp_knob;

bool sp_knob_at(int index, sp_knob *knob); /* false when there is none, so that a loop from 0 sees them all */
double sp_knob_value(const struct sp_job *job, const sp_knob *knob);
/* *one = the job with another value, its network and arguments ready to be searched; `one` has no plans. */
bool sp_knob_turn(const struct sp_job *job, const sp_knob *knob, double value, struct sp_job *one, char *why);

/* ---- sweep and tornado ---- */

enum { SP_VALUES = 1000, SP_STEPS = 7 };

typedef struct sp_sweep {
    sp_knob knob;
    double value[SP_VALUES];
    int values; /* 0: not asked for */
} sp_sweep;

typedef struct sp_sweep_row {
    int chips;
    bool legal;
    trn_plan plan; /* the best, or the nearest */
} sp_sweep_row;

/* One number moved down [0] and up [1]. */
typedef struct sp_swing {
    sp_knob knob;
    const char *range; /* why there */
    double now, value[2];
    trn_plan plan[2]; /* the best plan's degrees, searched again for all but them */
    trn_plan best[2]; /* the best of all; of other degrees where that is another plan */
    bool other[2];
    double swing_s; /* from the shortest to the longest of the expected times, today's among them */
} sp_swing;

bool sp_sweep_parse(sp_sweep *sweep, const char *text, char *why);
bool sp_sweep_run(struct sp_job *job, char *why);
bool sp_tornado_run(struct sp_job *job, char *why);
app_table sp_sweep_table(const struct sp_job *job);
app_table sp_tornado_table(const struct sp_job *job);
void sp_sweep_print(FILE *out, const struct sp_job *job);
void sp_tornado_print(FILE *out, const struct sp_job *job);
void sp_sweep_report(FILE *out, const struct sp_job *job);
void sp_tornado_report(FILE *out, const struct sp_job *job);
bool sp_any_legal(const struct sp_job *job); /* a plan, or one for some value of the sweep */
/* APP_OK, or APP_USAGE after one sentence about options that exclude each other. */
int sp_whatif_check(const struct sp_options *o);

/* ---- money and energy, of the expected time ---- */

typedef struct sp_price {
    double hour_usd; /* of all chips of the run */
    double watts;    /* of a chip */
    bool priced, powered;
} sp_price;

typedef struct sp_cost {
    double step_usd, mtoken_usd, step_kwh, token_j; /* NaN: not given, or no plan */
} sp_cost;

enum { SP_COST_COLUMNS = 4 };
extern const app_column sp_cost_column[SP_COST_COLUMNS];
/* On so many chips, each at the price that a chip of the job has. */
sp_cost sp_cost_of(const struct sp_job *job, const trn_plan *plan, int chips);
void sp_cost_add(app_table *table, const sp_cost *cost); /* the four columns of a row */
void sp_cost_print(FILE *out, const struct sp_job *job); /* the best plan's, in two lines at most */
void sp_cost_facts(FILE *out, const struct sp_job *job);

#define SP_WHATIF_TAKE(type)                                                                                           \
    APP_READ(take_sweep, type, sp_sweep_parse(&o->sweep, value, why))                                                  \
    APP_READ(take_price, type, (o->price.priced = app_parse_real(value, 0, 1e15, &o->price.hour_usd, why)))            \
    APP_READ(take_watts, type, (o->price.powered = app_parse_real(value, 0, 1e15, &o->price.watts, why)))

/* clang-format off */
#define SP_WHATIF_OPTIONS(type)                                                                                        \
    { .help = "what if" },                                                                                             \
    { "--sweep", "WHAT",                                                                                               \
      "the best plan for each value of one number: NAME=A,B,C or NAME=FROM:TO[:STEPS] (7 steps\n"                      \
      "unless said; in equal ratios, from 0 in equal distances). link_rate, link_latency,\n"                           \
      "dma_start and hbm_rate are times what the network and the chips have; chips, batch, seq;\n"                     \
      "those of --assumptions; calibration.torus and its like. Also --csv, --json, --html",                            \
      .apply = take_sweep },                                                                                           \
    { "--tornado", NULL,                                                                                               \
      "the best plan with each of these numbers moved down and up: within a documented range, else\n"                  \
      "to 0.8 and 1.25 times itself; sorted by what that does to the expected time",                                   \
      APP_SETS(type, tornado) },                                                                                       \
    { "--price-hour", "USD", "what all chips of the run cost in an hour: adds cost a step and a million tokens",       \
      .apply = take_price },                                                                                           \
    { "--watts", "W", "what a chip draws, with its share of all around it: adds kWh a step and J a token",             \
      .apply = take_watts }
/* clang-format on */

#endif /* SHARDPLAN_WHATIF_H */

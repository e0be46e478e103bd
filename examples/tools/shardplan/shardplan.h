/* shardplan.h - what the files of the program share: options, the job, its answers, and how numbers are told.
 * SPDX-License-Identifier: MIT
 *
 * The program in one picture:
 *
 *     main.c        the command line, and everybody who was asked to write the answer
 *     search.c      the model, the network, every plan; the same job on one chip, one server, ... the whole system
 *     instances.c   instances that are no system: one chip of it, inf2
 *     notes.c       what a reader of the answer must know beside it
 *     text.c        numbers as people read them, and the answer on a terminal
 *     data.c        the same as CSV and JSON
 *     report.c      the HTML page
 *     serving.h     for people who wait: targets, what is fast or cheap, queues (pareto.c, engine.c, serve.c)
 *     published.c   what the vendor's pages print, beside what is expected
 *     chakra.h      execution traces of MLCommons Chakra (chakra_read.c, chakra_time.c, chakra_print.c, chakra_write.c)
 *     picture.c     its pictures: bars, curves, SVG of the library
 *     roofline.c    the products of one layer under the roofs of a chip
 *     calibrate.c   what was measured, and which numbers agree with it
 *     whatif.h      what if a number were another one; money and energy (knob.c, sweep.c, tornado.c, cost.c)
 *
 * Data goes to standard output, everything else to standard error.
 */
#ifndef SHARDPLAN_H
#define SHARDPLAN_H

#include "app/app.h"
#include "app/calibration.h"
#include "app/network.h"
#include "chakra.h"
#include "io/hf_config.h"
#include "serving.h"
#include "whatif.h"

#include <trnmath/trn_plan.h>

_Static_assert((int)HF_WHY <= (int)APP_WHY, "a sentence of a configuration fits into that of a program");

enum { SP_SCALES = 40, SP_MEASURED = 32 };

/* ---- options ---- */

typedef struct sp_options {
    const char *config, *preset;
    hf_ask ask;                            /* which of two models a file means */
    const char *json, *csv, *html, *trace; /* NULL, a file, or "-" (json, csv) */
    trn_system system;
    int instance;        /* of instances.c; 0 = the system */
    app_network network; /* --topology, --down, --slow */
    bool system_given;
    int64_t chips; /* 0 = all */
    int64_t top;   /* -1: as many as there usually are */
    bool why, scaling, assumptions, schema, published, tornado;
    sp_sweep sweep;
    double factor[SP_FACTORS]; /* of the network's and the chips' own rates and times */
    sp_price price;
    sp_target target;
    sp_serving serving;
    sp_chakra_ask chakra;
    app_calibration calibration;
    const char *measured[SP_MEASURED]; /* --calibrate */
    int measureds;
    trn_plan_args args; /* all that the command line says about the job */
} sp_options;

/* ---- the job and its answer ---- */

typedef struct sp_scale {
    int chips;
    int64_t batch;
    double all_reduce_s; /* of SP_BUFFER bytes over all chips */
    trn_algorithm algorithm;
    bool legal;
    trn_plan plan; /* the fastest */
} sp_scale;

#define SP_BUFFER 1073741824.0 /* 1 GiB */

/* Sentences that stand above the plans. */
typedef struct sp_notes {
    int count;
    char text[24][HF_NOTE];
} sp_notes;

typedef struct sp_job {
    sp_options options;
    hf_config config;
    trn_model model;
    trn_model_size size;
    trn_topology net;
    trn_plan_args args;
    trn_plan *plan; /* [list.kept], ranked */
    trn_plan_list list;
    sp_scale scale[SP_SCALES];
    int scales;
    sp_sweep_row *row; /* [options.sweep.values] */
    sp_swing *swing;   /* [swings], longest first */
    int swings;
    sp_point *point; /* [points]: by the rate of a user, or with targets of a chip */
    int points;
    sp_engine engine;
    sp_served stream[SP_ARRIVALS]; /* [options.serving.rates] */
    struct {                       /* whose chips they are, where options.factor changes them */
        trn_chip_spec chip;
        trn_server_spec server;
        trn_system_spec system;
    } own;
    app_table served; /* measured, before and after: rows of serving benchmarks and profiles */
    trn_plan_assumptions before;
    trn_error error;
} sp_job;

bool sp_search(sp_job *job, char *why);
/* Numbers of a calibration file that are the planner's; --assume comes first. */
bool sp_planned(sp_options *o, char *why);
/* Fits to all that --calibrate names; then tells what changed. */
bool sp_calibrate(sp_job *job, char *why);
void sp_print_calibrated(FILE *out, const sp_job *job);
/* The network and the arguments, of options and model. */
bool sp_settle(sp_job *job, char *why);
void sp_free(sp_job *job);
/* The system's network, before --chips; and so many chips of one, false when they are no part of it. */
trn_topology sp_whole_net(const sp_job *job);
bool sp_part_of(const trn_topology *net, int64_t chips, trn_topology *part);
/* By the field's name; NULL: there is none. */
double *sp_assumption(trn_plan_assumptions *assumptions, const char *name);
/* The time of a part of a step, and what its field is called. */
double sp_part_s(const trn_plan_time *time, trn_plan_part part);
const char *sp_part_key(trn_plan_part part);

/* ---- instances.c ---- */

int sp_instance_named(const char *name);    /* 0: there is none */
const char *sp_instance_note(int instance); /* NULL of 0 */
trn_topology sp_instance_net(int instance); /* whose first sp_instance_chips() it is */
int sp_instance_chips(int instance);
bool sp_instance_any_group(int instance);

/* ---- numbers ---- */

typedef struct sp_text {
    char text[64];
} sp_text;

sp_text sp_time(double seconds);            /* "26.4 ms" */
sp_text sp_bytes(double bytes);             /* "91.5 GiB" */
sp_text sp_si(double value);                /* "70.6 G" */
sp_text sp_count(int64_t value);            /* "400,000" */
sp_text sp_percent(double share);           /* "86.5 %" */
sp_text sp_evidence(trn_evidence_class of); /* "5 published rows: wide, mixture, a token" */
int sp_tp(const trn_plan *plan);            /* as it is counted: in chips, or with --lnc in logical cores */
sp_text sp_tp_chips(const sp_job *job, const trn_plan *plan); /* "16", or "1/2": two replicas share a chip */
sp_text sp_degrees(const trn_plan *plan);                     /* "tp 8, dp 4, pp 2": those above 1 */
bool sp_has_cache(const sp_job *job);           /* of keys and values, or states: encoders and recommenders have none */
const char *sp_unit_of_work(const sp_job *job); /* "step", "batch of prompts", "token" */
/* "train, 64 sequences of 8,192 tokens" */
void sp_describe_job(const sp_job *job, char *text, size_t size);
/* "weights bfloat16, products in bfloat16, ..." */
int64_t sp_top(const sp_job *job, int64_t usual); /* plans to show */
void sp_describe_formats(const sp_job *job, char *text, size_t size);
/* What the file's reader left out, what is not as its name says, and where the system's sources disagree. */
void sp_notes_of(const sp_job *job, sp_notes *notes);
/* How many illegal plans fell for the sentence of plan i; 0 when an earlier one has told it. */
int64_t sp_told_by(const sp_job *job, int64_t i);

/* ---- writers ---- */

void sp_print_text(FILE *out, const sp_job *job);
void sp_print_csv(FILE *out, const void *job);
void sp_print_json(FILE *out, const void *job);
void sp_print_report(FILE *out, const void *job);
void sp_print_trace(FILE *out, const void *job);
void sp_print_schema(void); /* the columns of CSV and JSON */

/* Every published job beside bound, ideal and expected, what a fit without it predicts, and the rank of its degrees. */
bool sp_published(app_table *table, char *why);
void sp_print_published(FILE *out, const app_table *table);

/* ---- pieces of the page ---- */

void sp_memory_bar(FILE *out, const trn_plan_memory *memory);
void sp_time_bar(FILE *out, const trn_plan *plan, double longest_s);
void sp_legend_memory(FILE *out);
void sp_legend_time(FILE *out);
void sp_curves(FILE *out, const sp_job *job);
void sp_topology_picture(FILE *out, const sp_job *job);
void sp_step_picture(FILE *out, const sp_job *job);
void sp_layer_picture(FILE *out, const sp_job *job);
void sp_roofline_picture(FILE *out, const sp_job *job);

#endif /* SHARDPLAN_H */

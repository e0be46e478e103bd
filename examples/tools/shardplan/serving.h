/* serving.h - plans for people who wait: which are the cheapest that are fast enough, and what a stream of requests
 * meets at one of them.
 * SPDX-License-Identifier: MIT
 *
 *     pareto.c    --pareto, --ttft-below, --tpot-below: every plan of every part of the system, at every batch
 *     engine.c    what a prompt and a token take at one plan: caches that hit, drafts, chips for prompts alone
 *     serve.c     --arrivals: a queue in front of it
 */
#ifndef SHARDPLAN_SERVING_H
#define SHARDPLAN_SERVING_H

#include "app/app.h"

#include <trnmath/trn_plan.h>

struct sp_options;
struct sp_job;

/* ---- targets, and the plans that no other beats at both ---- */

typedef struct sp_target {
    bool pareto;           /* all that no other beats */
    double ttft_s, tpot_s; /* to the first token, for a token after it; 0: no matter */
} sp_target;

typedef struct sp_point {
    int chips;
    int64_t batch;
    trn_plan plan;
    bool front;  /* no other has more of both rates */
    bool meets;  /* the targets, as it is expected */
    bool surely; /* at the upper end of its range, too */
} sp_point;

bool sp_parse_seconds(const char *text, double *seconds, char *why); /* "20ms", "1.5s", "0.02" */
bool sp_pareto_asked(const struct sp_options *o);
bool sp_pareto_run(struct sp_job *job, char *why);
bool sp_pareto_met(const struct sp_job *job);
app_table sp_pareto_table(const struct sp_job *job);
void sp_pareto_print(FILE *out, const struct sp_job *job);
void sp_pareto_report(FILE *out, const struct sp_job *job);

/* ---- a stream of requests ---- */

enum { SP_ARRIVALS = 64, SP_BATCHES = 24 };

typedef struct sp_serving {
    double arrivals[SP_ARRIVALS]; /* requests a second; rates: how many, 0: not asked for */
    int rates;
    int64_t answer, requests, chunk; /* tokens of an answer; how many are simulated; tokens of a prompt in a step */
    double prefix_hit;               /* share of a prompt whose keys and values are there */
    const char *draft;               /* a configuration; NULL: none */
    int draft_tokens;
    double acceptance;     /* of one of them; below 0: not said */
    int64_t prefill_chips; /* beside the others, for prompts alone; 0 = none */
} sp_serving;

/* What one engine, a replica of the plan, takes. */
typedef struct sp_engine {
    int engines, prefill_engines; /* 0: prompts and tokens on the same chips */
    int64_t slots;                /* sequences at once */
    int points;
    int64_t batch[SP_BATCHES]; /* rising */
    double step_s[SP_BATCHES]; /* of one step of so many, drafts included */
    double tokens_a_step;      /* of one sequence; more than 1 with a draft */
    double prompt_s;           /* of what a prompt does not find in the cache */
    double prompt_tokens;      /* of it */
    double transfer_s;         /* of keys and values, from the chips for prompts */
    int chips;                 /* all of them */
} sp_engine;

typedef struct sp_served {
    double ttft_s[2], tpot_s[2], latency_s[2]; /* half and 99 of 100 are below */
    double tokens_per_s, busy;                 /* tokens of answers, share of time in which an engine works */
    bool saturated;                            /* the queue grows as long as requests come */
} sp_served;

bool sp_serving_check(const struct sp_options *o, char *why);
void sp_serving_usual(sp_serving *s); /* where nothing is said */
bool sp_engine_of(struct sp_job *job, sp_engine *e, char *why);
bool sp_serve_run(struct sp_job *job, char *why);
app_table sp_serve_table(const struct sp_job *job);
void sp_serve_print(FILE *out, const struct sp_job *job);
void sp_serve_report(FILE *out, const struct sp_job *job);

#define SP_SERVING_TAKE(type)                                                                                          \
    APP_READ(take_ttft, type, sp_parse_seconds(value, &o->target.ttft_s, why))                                         \
    APP_READ(take_tpot, type, sp_parse_seconds(value, &o->target.tpot_s, why))                                         \
    APP_READ(take_arrivals, type, sp_parse_arrivals(&o->serving, value, why))

bool sp_parse_arrivals(sp_serving *s, const char *text, char *why);

/* clang-format off */
#define SP_SERVING_OPTIONS(type)                                                                                       \
    { .help = "serving (--job decode)" },                                                                              \
    { "--pareto", NULL,                                                                                                \
      "tokens/s of a user against tokens/s of a chip: the plans that no other beats at both, of every\n"               \
      "part of the system and every batch (--batch: that alone). Also --csv, --json, --html",                          \
      APP_SETS(type, target.pareto) },                                                                                 \
    { "--ttft-below", "TIME", "only plans whose first token comes sooner (20ms, 1.5s), the cheapest first",            \
      .apply = take_ttft },                                                                                            \
    { "--tpot-below", "TIME", "... whose later tokens take less", .apply = take_tpot },                                \
    { "--arrivals", "LIST",                                                                                            \
      "requests a second, such as 1,2,4: continuous batching at the first plan with up to --batch\n"                   \
      "sequences, by a simulated queue. Also --csv, --json, --html",                                                   \
      .apply = take_arrivals },                                                                                        \
    { "--answer", "N", "tokens of an answer (default 256)", APP_TAKES_INT64(type, serving.answer, 1, 1 << 20) },       \
    { "--requests", "N", "that are simulated (default 10000)",                                                         \
      APP_TAKES_INT64(type, serving.requests, 100, 1000000) },                                                         \
    { "--prefix-hit", "SHARE", "of a prompt that the cache has already (default 0)",                                   \
      APP_TAKES_REAL(type, serving.prefix_hit, 0, 0.999) },                                                            \
    { "--chunk", "N", "tokens of a prompt in one step, beside the others' tokens (default: all of it, alone)",         \
      APP_TAKES_INT64(type, serving.chunk, 1, 1 << 24) },                                                              \
    { "--prefill-chips", "N", "chips beside the others for prompts alone; keys and values are sent",                   \
      APP_TAKES_INT64(type, serving.prefill_chips, 1, 1 << 20) },                                                      \
    { "--draft", "CONFIG", "a model that guesses tokens, on the same chips",                                           \
      APP_TAKES_TEXT(type, serving.draft) },                                                                           \
    { "--draft-tokens", "N", "guesses a step (default 4)", APP_TAKES_INT(type, serving.draft_tokens, 1, 64) },         \
    { "--acceptance", "SHARE", "of a guess (default 0.7)", APP_TAKES_REAL(type, serving.acceptance, 0, 1) }
/* clang-format on */

#endif /* SHARDPLAN_SERVING_H */

/* certify.h - the certificate: does a token's result depend on what it is run with?
 * SPDX-License-Identifier: MIT
 *
 * One table (certify_rules.c) has every kind of operation and every cause for which its bits may depend on how many
 * sequences are run together, on where a prompt is cut, or on how many cores share a layer. What the table says of a
 * setting is then tried (certify_search.c): arrangements of the same tokens, each compared with the plain one, number
 * by number, operation by operation (certify_watch.c).
 */
#ifndef MODELRUN_CERTIFY_H
#define MODELRUN_CERTIFY_H

#include "run.h"

/* On what bits may depend. */
typedef enum mr_dim { MR_DIM_BATCH, MR_DIM_CHUNKS, MR_DIM_CORES, MR_DIMS } mr_dim;
const char *mr_dim_name(mr_dim dim);

typedef enum mr_kind {
    MR_KIND_EMBED,
    MR_KIND_NORM,
    MR_KIND_QKV,
    MR_KIND_TURN,
    MR_KIND_STORE,
    MR_KIND_SCORES,
    MR_KIND_SOFTMAX,
    MR_KIND_MIX,
    MR_KIND_STATE_IN,
    MR_KIND_STATE,
    MR_KIND_O, /* the product alone; with several cores each one's part */
    MR_KIND_O_SUM,
    MR_KIND_UP,
    MR_KIND_FUNCTION,
    MR_KIND_DOWN,
    MR_KIND_DOWN_SUM,
    MR_KIND_ROUTER,
    MR_KIND_CHOICE,
    MR_KIND_EXPERT_UP,
    MR_KIND_EXPERT_DOWN,
    MR_KIND_EXPERT_SUM,
    MR_KIND_MIXTURE,
    MR_KIND_ADD,
    MR_KIND_HEAD,
    MR_KIND_MODEL, /* all of it, logits as they come out */
    MR_KINDS
} mr_kind;
const char *mr_kind_name(mr_kind kind);

/* ---- the rules: certify_rules.c ---- */

typedef struct mr_judged { /* what a rule looks at */
    const mr_config *config;
    const mr_setting *setting;
    int64_t tokens; /* of the longest sequence */
} mr_judged;

typedef enum mr_price { MR_PRICE_NONE, MR_PRICE_MESSAGES, MR_PRICE_GATHER, MR_PRICE_KEYS } mr_price;

typedef struct mr_cure {
    const char *words; /* of --setting; NULL: there is no more */
    mr_price price;
} mr_cure;

enum { MR_CURES = 2 };

typedef struct mr_cause {
    const char *name;
    uint32_t kinds, dims; /* one bit each */
    bool (*applies)(const mr_judged *j);
    const char *why;
    mr_cure cure[MR_CURES];
} mr_cause;

const mr_cause *mr_cause_at(int index); /* NULL beyond the last */

typedef enum mr_says { MR_SAYS_NOTHING, MR_SAYS_SAME, MR_SAYS_DEPENDS } mr_says; /* NOTHING: there is no such thing */

typedef struct mr_verdict {
    mr_says says;
    const mr_cause *cause; /* the first that applies; NULL: none */
    const char *why;
} mr_verdict;

mr_verdict mr_verdict_of(const mr_judged *j, mr_kind kind, mr_dim dim);

/* ---- where an operation stands, and what became of its bits: certify_watch.c ---- */

/* Whose numbers go from one operation to the next. */
typedef enum mr_numbers {
    MR_NUMBERS_MODEL,  /* the plain run's, put back after each operation: each is judged by itself */
    MR_NUMBERS_RANDOM, /* random ones in their place, of a wide range */
    MR_NUMBERS_FREE    /* whatever comes: for the whole model */
} mr_numbers;

typedef struct mr_pair {
    bool found;
    mr_numbers numbers;
    int64_t arrangement; /* counted through the search */
    int64_t layer;       /* -1: before or after all layers */
    int64_t token, element;
    float a, b; /* of the plain arrangement, and of the other */
    char first[64], second[80];
} mr_pair;

typedef struct mr_tally {
    int64_t compared, differ;
    mr_pair pair; /* the first arrangement that shows one; there, the first layer, token and element */
} mr_tally;

typedef struct mr_watcher mr_watcher;

mr_watcher *mr_watcher_new(mr_model *model, int64_t tokens);
void mr_watcher_free(mr_watcher *w);
/* What is recorded from here on is what others are held against; recut: but for parts, as those have other depth. */
void mr_watcher_record(mr_watcher *w, mr_numbers numbers, const char *name, bool recut);
/* The same is compared: tally [MR_KINDS]. */
void mr_watcher_compare(mr_watcher *w, mr_tally *tally, const char *name);
/* The rows of the step that comes: the probe's token that each is, or -1. */
void mr_watcher_rows(mr_watcher *w, const int64_t *token, int64_t rows);
void mr_watch(void *watcher, const mr_made *made);
bool mr_watcher_saw(const mr_watcher *w, mr_kind kind);

/* ---- arrangements: certify_search.c ---- */

typedef struct mr_searched {
    bool saw[MR_KINDS]; /* the model has such operations */
    int arrangements[MR_DIMS];
    mr_tally tally[MR_DIMS][MR_KINDS];
} mr_searched;

/* How many of the text's tokens are tried. */
int64_t mr_search_tokens(const mr_model *model, const mr_options *o, const mr_text *text);
/* dims: one bit each. */
bool mr_search(mr_model *model, const mr_setting *setting, const mr_text *text, int64_t tokens, uint32_t dims,
               mr_searched *result, char *why);

/* ---- what a cure costs: certify_cost.c ---- */

typedef struct mr_time {
    double before_s, after_s; /* NaN: not modelled */
    char of[160];             /* what takes so long, and by which model */
} mr_time;

/* tokens: that are decoded together. */
void mr_price_of(const mr_config *c, const mr_setting *before, const mr_setting *after, mr_price price,
                 trn_system system, mr_time *time);

/* ---- the certificate: certify.c ---- */

typedef struct mr_cured {
    const mr_cause *cause;
    char words[192]; /* that were added */
    bool ran;
    char why_not[160];
    bool by_rule; /* the rule says that nothing depends any more */
    int64_t compared, differ;
    mr_time time;
} mr_cured;

enum { MR_CUREDS = 24 };

typedef struct mr_certificate {
    mr_setting setting;
    mr_verdict verdict[MR_DIMS][MR_KINDS];
    mr_searched searched;
    mr_cured cured[MR_CUREDS];
    int cures;
    int wrong; /* verdicts "same" that a pair contradicts, and cures that do not cure */
    double seconds;
} mr_certificate;

typedef struct mr_certified {
    const char *folder, *text, *family;
    int64_t layers, tokens;
    trn_system system;
    int count;
    mr_certificate *of; /* each setting's */
} mr_certified;

/* ---- reports: certify_report.c, certify_html.c ---- */

/* "same", "differs", "not found", "untried", "WRONG", "-" */
const char *mr_found_name(const mr_certificate *c, mr_dim dim, mr_kind kind);
const mr_verdict *mr_main_verdict(const mr_certificate *c, mr_kind kind);
/* A pair's numbers as codes: of the setting's format where that has both, else of binary32. */
void mr_pair_codes(const mr_certificate *c, const mr_pair *p, char *a, char *b, size_t size);
/* One sentence. */
void mr_pair_text(const mr_certificate *c, const mr_pair *p, char *text, size_t size);
void mr_certified_text(FILE *out, const void *certified);
void mr_certified_csv(FILE *out, const void *certified);
void mr_certified_json(FILE *out, const void *certified);
void mr_certified_html(FILE *out, const void *certified);

#endif /* MODELRUN_CERTIFY_H */

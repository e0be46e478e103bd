/* srlab.h - a stochastic-rounding lab: small models trained on this host with the engines' numerics.
 * SPDX-License-Identifier: MIT
 *
 * An arm says in which format weights live, how an update is rounded into them, and what the operands of products are.
 * Every matrix product is trn_matmul's and every cast trn_convert's; exponentials and GELU are the Scalar engine's
 * tables; norms, softmax's sums and AdamW are binary32 in ascending order. A batch is cut into SR_SHARDS shards,
 * whatever the number of threads, and their gradients are added in ascending order: so the bits depend on the seed
 * alone.
 *
 *     main.c         the command lines
 *     weights.c      the arms, and the weights of a model
 *     cast.c         operands: casts, scales, products
 *     adamw.c        the update, and what rounding took of it
 *     layers.c       linear, norm, GELU, softmax, loss
 *     transformer.c  blocks of attention and MLP         char.c   its text, and what it writes
 *     dense.c        logistic regression, a small MLP, and their examples
 *     train.c        runs: arms x rates x seeds
 *     report.c       tables, the published ordering, text, CSV, JSON      pictures.c   curves and the page
 *     sums.c         the two sums
 *     export.c       a trained transformer as a Hugging Face folder
 */
#ifndef SRLAB_H
#define SRLAB_H

#include "app/app.h"

#include <trnmath/trn_convert.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc contracts nothing in C11 mode */
#endif

enum { SR_SHARDS = 4, SR_ARMS = 6, SR_RATES = 8, SR_SEEDS = 64, SR_NAME = 24 };

/* ---- weights.c: the arms ---- */

typedef struct sr_rule { /* how the operand of a product is cast */
    trn_format format;
    trn_rounding rounding;
} sr_rule;

typedef struct sr_arm {
    const char *name;
    trn_format weights;
    trn_rounding update;       /* of the weights after a step */
    bool kahan;                /* what rounding takes is kept, in a second array of the weights' format */
    sr_rule forward, backward; /* operands of linear layers; UNSET: the settings' .products */
    int colour;
    const char *meaning;
} sr_arm;

extern const sr_arm sr_arms[SR_ARMS]; /* the first is f32, which the others are held against */
const sr_arm *sr_find_arm(const char *name);

/* ---- settings ---- */

typedef struct sr_settings {
    const sr_arm *arm[SR_ARMS];
    int arms;
    double rate[SR_RATES]; /* learning rates, the sweep's or one */
    int rates;
    bool sweep;
    double rate_end; /* the last step's, as a share of the rate */
    int warmup;      /* steps */
    double weight_decay, clip;
    trn_format products;  /* operands of all products but FP8's */
    int64_t steps, every; /* a validation each; 0: a twentieth of steps */
    int batch;
    uint64_t seed;
    int seeds, threads;
    int width, layers, heads, context; /* the transformer */
    int features, hidden, depth;       /* the dense models */
    int classes;
    int64_t examples;
    const char *text; /* NULL: the word list */
    int words;        /* words to write at the end */
    const char *csv, *json, *svg, *html;
    const char *export_to; /* a folder: the trained model */
    bool schema;
} sr_settings;

int sr_arm_index(const sr_settings *s, const sr_arm *arm); /* in s->arm; -1: it is not there */

/* ---- failures ---- */

void sr_must(trn_status status, const trn_error *error);

/* ---- streams of random words: what a word is for, in the highest four bits ---- */

typedef enum sr_purpose { SR_DRAW = 1, SR_CAST, SR_UPDATE, SR_BATCH, SR_SAMPLE, SR_DATA, SR_VALIDATE } sr_purpose;
#define SR_STREAM(purpose) ((uint64_t)(purpose) << 60)

/* ---- cast.c ---- */

typedef struct sr_operand {
    trn_tensor view;
    float undo;       /* what a product with it is multiplied by; a power of two */
    int64_t capacity; /* elements that view.data was made for */
} sr_operand;

/* What one shard works with and nobody else. */
typedef struct sr_workspace {
    void *scratch;
    size_t scratch_bytes;
    float *scaled;
    size_t scaled_capacity;
    uint64_t seed, stream; /* of the next stochastic cast */
} sr_workspace;

void sr_workspace_free(sr_workspace *workspace);
/* Into o, whose memory grows as needed. */
void sr_cast(sr_workspace *workspace, sr_operand *o, const float *x, int64_t rows, int64_t columns, sr_rule rule);
void sr_operand_free(sr_operand *o);
sr_operand sr_transposed(const sr_operand *o);
sr_operand sr_part(const sr_operand *o, int64_t row, int64_t rows, int64_t column, int64_t columns);
trn_tensor sr_matrix(float *x, int64_t rows, int64_t columns, int64_t stride);
void sr_product(sr_workspace *workspace, trn_tensor dst, const sr_operand *a, const sr_operand *b);

/* ---- weights.c ---- */

typedef enum sr_use { SR_VECTOR, SR_TABLE, SR_MATRIX, SR_LINEAR } sr_use; /* LINEAR: an operand in the arm's formats */

typedef struct sr_tensor {
    char name[SR_NAME];
    sr_use use;
    int64_t rows, columns, first; /* of .count numbers, in the flat arrays */
    sr_operand operand;           /* MATRIX and LINEAR: cast before each step */
} sr_tensor;

typedef struct sr_weights {
    const sr_arm *arm;
    trn_format products;
    uint64_t seed;
    int tensors;
    sr_tensor *tensor;
    int64_t count;
    float *value;               /* what is stored, as binary32 */
    void *stored;               /* in the arm's format: the truth */
    uint16_t *rest;             /* Kahan's, bfloat16 */
    float *gradient[SR_SHARDS]; /* each shard's; [0] becomes their sum */
    float *first, *second;      /* AdamW's moments, binary32 in every arm */
    float *wanted, *before;     /* sums of updates, and weights, since the last sr_take_motion */
    int64_t updates, unmoved;   /* updates other than 0; of these, those that left the stored weight as it was */
} sr_weights;

typedef struct sr_motion {   /* what became of the updates */
    double updates, unmoved; /* counts */
    double along, square;    /* <moved, wanted>, <wanted, wanted>: their quotient arrived */
} sr_motion;

/* Tensors are announced one by one, then all is allocated and drawn: uniform in +-bound, or 1 for bound 0. */
void sr_weights_start(sr_weights *w, const sr_arm *arm, trn_format products, uint64_t seed, int tensors);
int sr_weights_add(sr_weights *w, const char *name, int layer, sr_use use, int64_t rows, int64_t columns);
void sr_weights_finish(sr_weights *w);
void sr_weights_free(sr_weights *w);
void sr_weights_draw(sr_weights *w, int tensor, double bound);
void sr_weights_cast(sr_weights *w, sr_workspace *const *workspace, int64_t step); /* operands for this step */
uint64_t sr_weights_digest(const sr_weights *w);
sr_rule sr_forward_rule(const sr_weights *w, sr_use use);
sr_rule sr_backward_rule(const sr_weights *w, sr_use use);

/* ---- adamw.c ---- */

typedef struct sr_update {
    double rate, weight_decay, clip;
    int64_t step; /* from 1 */
} sr_update;

void sr_adamw(sr_weights *w, const sr_update *how); /* gradients of all shards -> weights */
sr_motion sr_take_motion(sr_weights *w);
double sr_rate_at(const sr_settings *s, double rate, int64_t step);

/* ---- layers.c: one shard; gradients go to gradient[shard] ---- */

typedef struct sr_shard {
    sr_weights *weights;
    int index;
    sr_workspace workspace;
    sr_operand slope; /* what runs backward */
} sr_shard;

float *sr_gradient(const sr_shard *s, int tensor);
const float *sr_value(const sr_shard *s, int tensor);
void sr_linear(sr_shard *s, int tensor, sr_operand *kept, const float *x, int64_t rows, float *y);
void sr_linear_back(sr_shard *s, int tensor, const sr_operand *kept, const float *dy, int64_t rows, float *dx);
void sr_add_bias(sr_shard *s, int tensor, float *y, int64_t rows);
void sr_add_bias_back(sr_shard *s, int tensor, const float *dy, int64_t rows);
void sr_norm(sr_shard *s, int tensor, const float *x, int64_t rows, float *inverse, float *y);
void sr_norm_back(sr_shard *s, int tensor, const float *x, const float *inverse, const float *dy, int64_t rows,
                  float *dx, bool add);
void sr_gelu(const float *x, int64_t count, float *y);
void sr_gelu_back(const float *x, int64_t count, const float *dy, float *scratch, float *dx);
void sr_softmax(float *x, int64_t rows, int64_t columns, float scale, float *sums); /* in place; -inf: masked */

typedef struct sr_score {
    double loss; /* sum over examples */
    int64_t right, count;
} sr_score;

/* logits [rows, classes] become their gradient of the mean over `whole` examples, where dx is asked for. */
sr_score sr_loss(float *logits, const int *target, int64_t rows, int classes, int64_t whole, bool backward);

/* ---- a kind of model ---- */

typedef struct sr_model sr_model;

typedef struct sr_kind {
    const char *name, *title, *unit;                      /* unit of the loss */
    const void *(*data)(const sr_settings *s, char *why); /* read or drawn once for all runs; NULL: why not */
    void (*free_data)(const void *data);
    sr_model *(*make)(const sr_settings *s, const sr_arm *arm, uint64_t seed, const void *data);
    void (*free)(sr_model *model);
    sr_weights *(*weights)(sr_model *model);
    sr_workspace *(*workspace)(sr_model *model, int shard);
    sr_score (*step)(sr_model *model, int shard, int64_t step);  /* forward and backward */
    int (*groups)(const sr_model *model);                        /* of validation examples */
    sr_score (*validate)(sr_model *model, int shard, int group); /* forward only */
    char *(*sample)(sr_model *model, int words);                 /* NULL: it writes nothing */
    void (*export_to)(const sr_model *model);                    /* into the folder of sr_export_open; NULL: none */
} sr_kind;

extern const sr_kind sr_logistic, sr_mlp, sr_char;

/* ---- char.c: the text ---- */

typedef struct sr_text {
    uint8_t *symbol; /* [count] codes below .symbols; the last count - train are held out */
    int64_t count, train;
    int symbols;
    unsigned char letter[256];
} sr_text;

bool sr_text_read(const char *path, sr_text *text, char *why); /* NULL: the word list, shuffled */
void sr_text_free(sr_text *text);

/* ---- dense.c: examples that the program makes itself, a function of the seed ---- */

typedef struct sr_examples {
    int features, classes;
    int64_t train, valid; /* the first, and those after them */
    float *x;             /* [train + valid, features] */
    int *label;
} sr_examples;

/* Normal features; the label is drawn with the probability that a hidden line through them gives it. */
sr_examples *sr_make_noisy_line(const sr_settings *s);
/* Points in the plane, on as many arms of a spiral as there are classes, with noise. */
sr_examples *sr_make_spirals(const sr_settings *s);
void sr_free_examples(const void *examples);

/* ---- train.c ---- */

typedef struct sr_point {
    int64_t step;
    /* The last two as fractions of the updates since the point before; NaN: there were none. */
    double rate, train, valid, unmoved, arrived;
} sr_point;

typedef struct sr_run {
    const sr_arm *arm;
    double rate, valid, right, unmoved, arrived, seconds, cpu_seconds;
    uint64_t seed, digest;
    int64_t parameters;
    sr_point *point;
    int points;
    char *sample;
} sr_run;

typedef struct sr_lab {
    const sr_settings *settings;
    const sr_kind *kind;
    sr_run *run; /* arm-major, then rate, then seed */
    int runs;
    app_table summary, curves;
} sr_lab;

void sr_train(const sr_kind *kind, const sr_settings *s, const void *data, sr_run *run);
void sr_run_free(sr_run *run);
const sr_run *sr_run_at(const sr_lab *lab, int arm, int rate, int seed);

typedef struct sr_spread {
    double mean, low, high;
} sr_spread;

sr_spread sr_spread_of(const sr_lab *lab, int arm, int rate, double (*what)(const sr_run *run));
double sr_final_loss(const sr_run *run);
void sr_fill_summary(sr_lab *lab);
void sr_fill_curves(sr_lab *lab);
void sr_start_tables(sr_lab *lab);

typedef struct sr_verdict {
    bool known, holds;
    double f32, rne, sr, kahan; /* mean validation losses */
} sr_verdict;

sr_verdict sr_check_ordering(const sr_lab *lab, int rate);
int sr_lab_run(const sr_kind *kind, const sr_settings *s);

/* ---- report.c ---- */

void sr_print_text(FILE *out, const sr_lab *lab);
void sr_write_json(FILE *out, const void *lab);
void sr_write_csv(FILE *out, const void *lab);
void sr_write_svg(FILE *out, const void *lab);
void sr_write_html(FILE *out, const void *lab);

/* "rate 0.001: ...: the published ordering holds", or "" where an arm is missing. */
void sr_say_verdict(char *text, size_t size, const sr_lab *lab, int rate);

app_table sr_shown_table(const sr_lab *lab); /* the summary as people read it; app_table_free it */

/* ---- export.c: where --export says; false with a sentence, and then nothing is there ---- */

bool sr_export_open(const sr_settings *s, char *why); /* before the training; without --export it does nothing */
void sr_export_model(const sr_model *model);          /* after it */
struct io_stage;
bool sr_export_ready(struct io_stage **stage, char *why); /* it is written; NULL: without --export */
void sr_export_close(void);                               /* what has not appeared is removed */

/* ---- sums.c: two sums that rounding stops ---- */

enum { SR_ADDITIONS = 2048, SR_TRACE = 129, SR_SERIES = 512 };

/* 1024 + 0.5 + 0.5 + ..., each sum rounded. trace: NULL, or [SR_TRACE] sums, one every 16 additions. */
double sr_half_loop(trn_format format, trn_rounding rounding, uint64_t seed, double *trace);

typedef struct sr_series {
    double value; /* where it stands still */
    int64_t term; /* the first that changes nothing */
    int points;
    double n[SR_SERIES], sum[SR_SERIES]; /* on the way, at equal steps of log n */
} sr_series;

/* 1 + 1/2 + 1/3 + ..., terms and sums rounded to nearest even, until a term changes nothing. */
void sr_harmonic(trn_format format, sr_series *series);

typedef struct sr_moments {
    double mean, deviation, low, high;
    int runs;
} sr_moments;

sr_moments sr_half_loops(trn_format format, uint64_t seed, int runs);

int sr_main_sums(int argc, char **argv);

#endif /* SRLAB_H */

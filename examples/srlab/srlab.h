/* srlab.h - a stochastic-rounding lab: small models trained on this host with the engines' numerics.
 * SPDX-License-Identifier: MIT
 *
 * An arm says in which format weights live, how an update is rounded into them, and what the operands of products are.
 * Every matrix product is trn_matmul's and every cast trn_convert's; exponentials and GELU are the Scalar engine's
 * tables; norms, softmax's sums and AdamW are binary32 in ascending order. A batch is cut into SR_SHARDS shards,
 * whatever the number of threads, and their gradients are added in ascending order: so the bits depend on the seed
 * alone.
 *
 *     arms.c      the arms                                  train.c     one run
 *     cast.c      operands: casts, scales, products         lab.c       all runs: arms x rates x seeds
 *     weights.c   the weights of a model                    curves.c    tables of points and of runs
 *     adamw.c     the update, and what rounding took of it  ordering.c  does the published ordering hold?
 *     layers.c    linear, norm, GELU, softmax, loss         report.c, pictures.c
 *     attention.c, transformer.c, char.c, text.c            options.c   the command lines
 *     dense.c, synthetic.c                                  series.c, sums.c   the two sums
 */
#ifndef SRLAB_H
#define SRLAB_H

#include "app/app.h"

#include <trnmath/trn_convert.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc contracts nothing in C11 mode */
#endif

enum { SR_SHARDS = 4, SR_ARMS = 6, SR_RATES = 8, SR_SEEDS = 64, SR_NAME = 24 };

/* ---- arms.c ---- */

typedef struct sr_rule { /* how the operand of a product is cast */
    trn_format format;
    trn_rounding rounding;
} sr_rule;

typedef struct sr_arm {
    const char *name;
    trn_format weights;
    trn_rounding update; /* of the weights after a step */
    bool kahan;          /* what rounding takes is kept, in a second array of the weights' format */
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
    double rate_end;       /* the last step's, as a share of the rate */
    int warmup;            /* steps */
    double weight_decay, clip;
    trn_format products;   /* operands of all products but FP8's */
    int64_t steps, every;  /* a validation each; 0: a twentieth of steps */
    int batch;
    uint64_t seed;
    int seeds, threads;
    int width, layers, heads, context; /* the transformer */
    int features, hidden, depth;       /* the dense models */
    int classes;
    int64_t examples;
    const char *text;      /* NULL: the word list */
    int words;             /* words to write at the end */
    const char *csv, *json, *svg, *html;
    bool schema;
} sr_settings;

int sr_place_of(const sr_settings *s, const sr_arm *arm); /* in s->arm; -1: it is not there */

/* ---- memory, failures ---- */

void *sr_room(size_t count, size_t size); /* zeroed; one sentence and the end where there is none */
void sr_must(trn_status status, const trn_error *error);

/* ---- streams of random words: what a word is for, in the highest four bits ---- */

typedef enum sr_purpose { SR_DRAW = 1, SR_CAST, SR_UPDATE, SR_BATCH, SR_SAMPLE, SR_DATA, SR_JUDGE } sr_purpose;
#define SR_STREAM(purpose) ((uint64_t)(purpose) << 60)

/* ---- cast.c ---- */

typedef struct sr_operand {
    trn_tensor view;
    float undo;   /* what a product with it is multiplied by; a power of two */
    int64_t room; /* elements that view.data was made for */
} sr_operand;

/* What one shard works with and nobody else. */
typedef struct sr_bench {
    void *scratch;
    size_t scratch_bytes;
    float *scaled;
    size_t scaled_room;
    uint64_t seed, stream; /* of the next stochastic cast */
} sr_bench;

void sr_bench_free(sr_bench *bench);
/* Into o, whose room grows as needed. */
void sr_cast(sr_bench *bench, sr_operand *o, const float *x, int64_t rows, int64_t columns, sr_rule rule);
void sr_operand_free(sr_operand *o);
sr_operand sr_transposed(const sr_operand *o);
sr_operand sr_part(const sr_operand *o, int64_t row, int64_t rows, int64_t column, int64_t columns);
trn_tensor sr_matrix(float *x, int64_t rows, int64_t columns, int64_t stride);
void sr_product(sr_bench *bench, trn_tensor dst, const sr_operand *a, const sr_operand *b);

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
    int64_t asked, unmoved;     /* updates other than 0; of these, those that left the stored weight as it was */
} sr_weights;

typedef struct sr_motion { /* what became of the updates */
    double asked, unmoved;  /* counts */
    double along, square;   /* <moved, wanted>, <wanted, wanted>: their quotient arrived */
} sr_motion;

/* Tensors are announced one by one, then all is allocated and drawn: uniform in +-bound, or 1 for bound 0. */
void sr_weights_start(sr_weights *w, const sr_arm *arm, trn_format products, uint64_t seed, int tensors);
int sr_weights_add(sr_weights *w, const char *name, int layer, sr_use use, int64_t rows, int64_t columns);
void sr_weights_finish(sr_weights *w);
void sr_weights_free(sr_weights *w);
void sr_weights_draw(sr_weights *w, int tensor, double bound);
void sr_weights_cast(sr_weights *w, sr_bench *const *bench, int64_t step); /* operands for this step */
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
    sr_bench bench;
    sr_operand slope; /* room for what runs backward */
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
void sr_gelu_back(const float *x, int64_t count, const float *dy, float *room, float *dx);
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
    const char *name, *title, *unit; /* unit of the loss */
    const void *(*data)(const sr_settings *s, char *why); /* read or drawn once for all runs; NULL: why not */
    void (*free_data)(const void *data);
    sr_model *(*make)(const sr_settings *s, const sr_arm *arm, uint64_t seed, const void *data);
    void (*free)(sr_model *model);
    sr_weights *(*weights)(sr_model *model);
    sr_bench *(*bench)(sr_model *model, int shard);
    sr_score (*step)(sr_model *model, int shard, int64_t step);   /* forward and backward */
    int (*groups)(const sr_model *model);                         /* of validation examples */
    sr_score (*judge)(sr_model *model, int shard, int group);     /* forward only */
    char *(*sample)(sr_model *model, int words);                  /* NULL: it writes nothing */
} sr_kind;

extern const sr_kind sr_logistic, sr_mlp, sr_char;

/* ---- text.c ---- */

typedef struct sr_text {
    uint8_t *symbol; /* [count] codes below .symbols; the last count - train are held out */
    int64_t count, train;
    int symbols;
    unsigned char letter[256];
} sr_text;

bool sr_text_read(const char *path, sr_text *text, char *why); /* NULL: the word list, shuffled */
void sr_text_free(sr_text *text);

/* ---- curves.c, train.c, lab.c ---- */

typedef struct sr_point {
    int64_t step;
    double rate, train, valid, unmoved, arrived; /* the last two as shares since the point before; NaN: nothing asked */
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

sr_verdict sr_judge_ordering(const sr_lab *lab, int rate);
int sr_lab_run(const sr_kind *kind, const sr_settings *s);

/* ---- report.c ---- */

void sr_print_text(FILE *out, const sr_lab *lab);
void sr_write_json(FILE *out, const void *lab);
void sr_write_csv(FILE *out, const void *lab);
void sr_write_svg(FILE *out, const void *lab);
void sr_write_html(FILE *out, const void *lab);

/* ---- options.c, main.c, sums.c ---- */

int sr_main_train(const sr_kind *kind, int argc, char **argv);
int sr_main_sums(int argc, char **argv);

#endif /* SRLAB_H */

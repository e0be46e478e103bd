/* engine.h - one setting at work: matrices as it has them, products, vectors, layers, caches.
 * SPDX-License-Identifier: MIT
 */
#ifndef MODELRUN_ENGINE_H
#define MODELRUN_ENGINE_H

#include "model.h"

#ifdef _OPENMP
#define MR_PARALLEL _Pragma("omp parallel for schedule(static)")
#else
#define MR_PARALLEL
#endif

/* ---- settings: setting.c ---- */

const char *mr_setting_row(int index, const char **text, const char **about); /* NULL beyond the last */
const char *mr_setting_word(int index, const char **about);
bool mr_setting_parse(const char *text, mr_setting *setting, char *why);
int64_t mr_key_tile(const mr_setting *setting); /* keys=aligned: keys begin with a multiple of it */

/* ---- a weight as a setting has it: matrix.c ---- */

typedef struct mr_matrix {
    trn_tensor b;       /* [in, out], as trn_matmul takes it */
    trn_tensor b_scale; /* MX: [out, in / 32] */
    float *out_scale;   /* FP8: [out], what sums are multiplied by; NULL: nothing */
    void *memory;       /* its own, or NULL: it is the checkpoint's */
    void *packed;       /* by trn_matmul_pack, or NULL */
} mr_matrix;

struct mr_run;
/* The weight's matrix, made at first use. */
const mr_matrix *mr_matrix_of(struct mr_run *run, mr_weight *w);
void mr_matrix_free(mr_weight *w);

/* ---- what runs ---- */

/* Tokens of one sequence that are new, rows [row, row + count) of the batch, at positions from `position` on. */
typedef struct mr_span {
    int64_t row, count, position;
    int cache;
} mr_span;

/* y [rows, out] = x [rows, in] w^T + bias. */
typedef struct mr_product {
    mr_weight *w;
    const mr_weight *bias; /* NULL, or its tensor is: none */
    const float *x;
    int64_t rows;
    float *y;
    bool row_parallel; /* split along `in` over setting.tp cores, whose sums meet in an all-reduce */
    bool raw;          /* y is what PSUM holds, not rounded */
} mr_product;

/* What one kind of arithmetic does; x and y are [rows, n] binary32. */
typedef struct mr_ops {
    void (*linear)(struct mr_run *run, const mr_product *p);
    void (*rms_norm)(struct mr_run *run, const float *x, const float *weight, double eps, int64_t rows, int64_t n,
                     float *y);
    void (*layer_norm)(struct mr_run *run, const float *x, const float *weight, const float *bias, int64_t rows,
                       int64_t n, float *y);
    /* softmax(scale x) of each row, in place, not rounded; sink [rows]: NULL, or a logit more, which only counts. */
    void (*softmax)(struct mr_run *run, float *x, const float *sink, double scale, int64_t rows, int64_t n);
    void (*function)(struct mr_run *run, trn_act act, float *x, int64_t n); /* in place, not rounded */
    /* scores [rows, keys] = q k^T, sums as they are; out [rows, n] = p v, rounded. k, v: as the cache has them. */
    void (*scores)(struct mr_run *run, const float *q, const void *k, int64_t rows, int64_t keys, int64_t n, float *y);
    void (*mix)(struct mr_run *run, const float *p, const void *v, int64_t rows, int64_t keys, int64_t n, float *y);
} mr_ops;

extern const mr_ops mr_reference_ops, mr_engine_ops;

/* ---- what each operation made, for who watches it: certify_watch.c ---- */

typedef enum mr_op {
    MR_OP_EMBED,
    MR_OP_NORM,
    MR_OP_PRODUCT, /* with its all-reduce, bias and rounding */
    MR_OP_PART,    /* one core's sums before they travel */
    MR_OP_TURN,
    MR_OP_STORE, /* keys and values, as the cache gets them */
    MR_OP_SCORES,
    MR_OP_SOFTMAX,
    MR_OP_MIX,
    MR_OP_STATE,    /* what a recurrence gives */
    MR_OP_FUNCTION, /* and what it is multiplied by */
    MR_OP_ADD,
    MR_OP_CHOICE, /* experts' shares */
    MR_OP_MIXTURE /* experts' sum */
} mr_op;

typedef struct mr_made {
    mr_op op;
    const void *of; /* the weight that it has, or whose numbers it takes; NULL: the embedding */
    float *x;       /* [rows, columns], before anything reads them: they may be changed */
    int64_t rows, columns;
    int64_t row;        /* the row of the batch that the first is */
    const int64_t *who; /* instead, of an expert: the batch's rows that it has; NULL: all */
    int core;           /* MR_OP_PART */
    bool reduced;       /* MR_OP_PRODUCT: parts of it met in an all-reduce */
    /* Attention: rows are [group, tokens] for one head of keys; columns of scores are keys from `first` on. */
    int64_t head, group, first;
} mr_made;

/* Keys and values: [layers][kv_heads][capacity][head_dim or value_dim]. */
typedef struct mr_cache {
    unsigned char *k, *v;
    /* Of layers that keep a state, binary32: [layers][heads][key_dim][value_dim], and what the convolution has read of
     * the last tokens: [layers][width - 1][channels]. */
    float *state, *seen;
} mr_cache;

typedef struct mr_run {
    mr_model *model;
    mr_setting setting;
    const mr_ops *ops;
    int caches;
    int64_t capacity; /* positions of each cache */
    mr_cache *cache;
    bool keep;                                /* matrices stay when their layer is done: for generation */
    bool pack;                                /* and are packed: 6 bytes for each weight of BF16 */
    float *cosine[MR_ROPES], *sine[MR_ROPES]; /* [capacity, rope_dim / 2] of each rule; NULL: it is none */
    /* Called after each layer with the residual stream [rows, hidden]. */
    void (*seen)(void *user, int64_t layer, const float *h, int64_t rows);
    /* Called with the experts [experts_per_token] that a row asks, in no order; NULL: nobody wants to know. */
    void (*chose)(void *user, int64_t layer, int64_t row, const int64_t *expert);
    void *user;
    void (*watch)(void *watcher, const mr_made *made); /* NULL: nobody does; attention calls it from many threads */
    void *watcher;
    const int64_t *who; /* for mr_made */
} mr_run;

static inline void mr_see(const mr_run *run, mr_made made)
{
    made.who = run->who;
    if (run->watch) run->watch(run->watcher, &made);
}

/* false, with a sentence, for what the model and the setting cannot do together. */
bool mr_run_start(mr_run *run, mr_model *model, const mr_setting *setting, int caches, int64_t capacity, char *why);
void mr_run_end(mr_run *run);
/* The last norm's results h [rows, hidden] of these tokens; caches grow. */
void mr_forward(mr_run *run, const int32_t *token, const mr_span *span, int spans, int64_t rows, float *h);
/* logits [rows, vocab] of h [rows, hidden]: sums as they are, not rounded. */
void mr_logits(mr_run *run, const float *h, int64_t rows, float *logits);

/* ---- shared by products and vectors ---- */

void mr_round(const mr_run *run, float *x, int64_t n);             /* to setting.act, in place */
void mr_vector(const mr_weight *w, const mr_run *run, float *out); /* a vector's numbers, rounded */
size_t mr_cache_bytes(const mr_run *run);                          /* of one number */
void mr_must(trn_status status, const trn_error *error);           /* ends the program with a sentence */
/* [positions, n / 2], for n dimensions that turn. */
void mr_rope_tables(const mr_rope_rule *rule, int64_t n, int64_t positions, float *cosine, float *sine);

/* ---- steps of a layer; results are rounded ---- */

float *mr_floats(int64_t n);
void mr_linear(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y);
/* The same over setting.tp cores. */
void mr_linear_split(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y);
void mr_norm(mr_run *run, const mr_weight *weight, const mr_weight *bias, double eps, const float *x, int64_t rows,
             float *y);
void mr_apply(mr_run *run, trn_act act, float *x, int64_t n);       /* x = act(x) */
void mr_multiply(mr_run *run, float *x, const float *y, int64_t n); /* x *= y */
/* y [rows, hidden] of x: attention.c, recurrent.c, mixture.c. */
void mr_attention(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows, float *y);
/* The first key that the token at a position sees. */
int64_t mr_first_seen(const mr_config *c, int64_t layer, int64_t at);
void mr_recur(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows, float *y);
void mr_perceptron(mr_run *run, mr_weight *w[3], const mr_weight *bias[3], const float *x, int64_t rows, float *y);
void mr_mixture(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *y);

#endif /* MODELRUN_ENGINE_H */

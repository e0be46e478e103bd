/* mxq.h - the parts of mxq: what is quantised, how, what was lost, and how it is shown.
 * SPDX-License-Identifier: MIT
 *
 *     main.c      the command line
 *     source.c    tensors, from files or distributions, as rows that are cut into pieces
 *     files.c     which arrays of a file are tensors, and which are the scales of others
 *     ways.c      formats x scales x rounding, and what their QSNR should be
 *     quantise.c  a piece there and back, and the errors of 32 elements
 *     run.c       all pieces through all ways, in threads; QSNR against the size of the values
 *     report.c    rows of the table, text, CSV, JSON
 *     html.c      pictures and the page
 */
#ifndef MXQ_H
#define MXQ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_mx.h>

#include "app/app.h"

enum {
    MXQ_PIECE = 16384, /* elements that are quantised at once: x, y and codes stay in the second cache */
    MXQ_BLOCKS = MXQ_PIECE / TRN_MX_BLOCK,
    MXQ_SQUARE = 128, /* edge of a block of scaled FP8 */
    MXQ_CRESTS = 64,  /* bins of crest factors, from 1 to sqrt(32) */
    MXQ_ERRORS = 56,  /* bins of relative errors, half an octave each, up to 2 */
    MXQ_WAYS = 256,
    MXQ_BUDGETS = 8
};

/* ---- tensors ---- */

typedef enum mxq_law { MXQ_GAUSSIAN, MXQ_LAPLACE, MXQ_UNIFORM, MXQ_STUDENT_T, MXQ_LAWS } mxq_law;

typedef struct mxq_synthetic {
    mxq_law law;
    int64_t count;
    double sigma, freedom;                /* freedom: degrees of, Student's t */
    double outlier_share, outlier_factor; /* so many values are so many times as large */
    uint64_t seed;
} mxq_synthetic;

const char *mxq_law_name(mxq_law law);
void mxq_draw(const mxq_synthetic *s, int64_t first, int64_t count, float *out);

/* Rows of `columns` elements along the last axis. In pieces, each row is filled up with zeros to whole blocks of 32. */
typedef struct mxq_source {
    const char *name; /* its array's, its file's or its law's */
    char type[48];
    int64_t rows, columns;
    const void *array;                /* an io_array, or NULL */
    void *file;                       /* its io_arrays */
    const struct quant_values *codes; /* the array holds codes that have scales; NULL: its values are its own */
    bool alone;                       /* those codes have no scale, and 1 is taken */
    const float *values;              /* or all of them */
} mxq_source;

typedef struct mxq_place { /* of a piece */
    int64_t row, column;   /* where it begins */
    int64_t rows, columns; /* several whole rows, or a part of one; columns are a multiple of 32 */
} mxq_place;

int64_t mxq_elements(const mxq_source *s);
int64_t mxq_padded(const mxq_source *s); /* columns, whole blocks */
int64_t mxq_pieces(const mxq_source *s);
mxq_place mxq_place_of(const mxq_source *s, int64_t piece);
/* Padded elements; NaN and infinity become 0 and are counted. */
bool mxq_read(const mxq_source *s, const mxq_place *at, float *x, int64_t *not_finite, char *why);

/* Pieces [first, first + count) will not be needed again soon: a file of any size passes through little memory. */
void mxq_release(const mxq_source *s, int64_t first, int64_t count);

/* Opens files and draws distributions; frees both. */
typedef struct mxq_sources {
    int count, capacity, files;
    mxq_source *item;
    void *file;                      /* the mxq_files behind them */
    const struct quant_asked *asked; /* of scales */
} mxq_sources;
bool mxq_add_file(mxq_sources *s, const char *path, trn_format format, const char *tensor, char *why);
mxq_source *mxq_new_source(mxq_sources *s);
void mxq_close_files(mxq_sources *s);
bool mxq_add_synthetic(mxq_sources *s, const mxq_synthetic *what, int64_t columns, char *why);
void mxq_close(mxq_sources *s);

/* ---- ways to quantise ---- */

typedef enum mxq_kind { MXQ_CAST, MXQ_SCALED, MXQ_MX } mxq_kind;
typedef enum mxq_grain { MXQ_NO_SCALE, MXQ_TENSOR, MXQ_CHANNEL, MXQ_GRID, MXQ_GRAINS } mxq_grain;
extern const char *const mxq_grain_name[MXQ_GRAINS];
extern const char *const mxq_rule_name[TRN_MX_SCALE_COUNT];

/* What the noise of a format is expected to be, for a scale of 1. */
typedef struct mxq_model {
    double max;    /* beyond it values saturate */
    double normal; /* below it steps no longer shrink; integers: infinity */
    double lost;   /* below it nothing is left; 0 where rounding is stochastic, and for integers */
    double step;   /* there */
    double alpha;  /* noise over signal of normal numbers, whose significands' squares are taken as 2 */
    double twice;  /* 2 where rounding is stochastic, else 1 */
    bool integer;
} mxq_model;

typedef struct mxq_way {
    char name[32]; /* "MXFP8 E4M3" */
    mxq_kind kind;
    trn_format format;
    trn_cfp8 cfp8;
    mxq_grain grain;   /* MXQ_SCALED */
    trn_mx_scale rule; /* MXQ_MX */
    trn_rounding rounding;
    int bits; /* of an element */
    mxq_model model;
} mxq_way;

const char *mxq_scale_of(const mxq_way *way);             /* "ROUND_UP", "tensor", "-" */
double mxq_bits(const mxq_way *way, const mxq_source *s); /* per element, scales included */

typedef struct mxq_choice { /* what the user asked for; nothing: the usual */
    const char *formats[32];
    int format_count;
    bool rule[TRN_MX_SCALE_COUNT], any_rule, grain[MXQ_GRAINS], any_grain, nearest, stochastic;
    trn_cfp8 cfp8[8];
    int cfp8_count;
} mxq_choice;
int mxq_ways(const mxq_choice *choice, mxq_way *way);                   /* how many, at most MXQ_WAYS */
mxq_way mxq_way_of(const char *name, mxq_kind kind, trn_format format); /* round-up or per tensor, to nearest */
bool mxq_format_known(const char *word);
void mxq_list_formats(FILE *out);

/* ---- measuring ---- */

typedef struct mxq_facts { /* of a tensor, before anything is quantised */
    int64_t elements, nonzero, not_finite, blocks;
    double energy, amax, sum;
    double block_crest;               /* sum over blocks */
    int64_t crest_blocks[MXQ_CRESTS]; /* how many blocks have it */
    double crest_energy[MXQ_CRESTS];
    float *row_amax, *grid_amax; /* [rows]; [rows / 128, columns / 128], rounded up */
} mxq_facts;

typedef struct mxq_sums { /* of a tensor or a piece, in one way */
    double noise, theory,
        ideal;       /* energies of the error: measured, expected, expected with the best scale (integers) */
    double relative; /* sum over elements that are not 0 */
    float relative_max, absolute_max;
    int64_t to_zero, saturated;
    double seconds; /* of processor time, of all threads together */
} mxq_sums;

typedef struct mxq_result {
    const mxq_source *source;
    mxq_facts facts;
    mxq_sums *sums; /* [ways] */
} mxq_result;

/* What pictures are drawn from: all tensors together, each as if its energy were 1. */
typedef struct mxq_bins { /* of a way */
    double crest_noise[MXQ_CRESTS];
    int64_t errors[MXQ_ERRORS];
} mxq_bins;

typedef struct mxq_pool {
    double crest_energy[MXQ_CRESTS];
    int64_t crest_blocks[MXQ_CRESTS], nonzero;
    mxq_bins way[MXQ_WAYS];
} mxq_pool;

typedef struct mxq_job {
    mxq_way way[MXQ_WAYS];
    int ways, threads, sr_bits;
    uint64_t seed;
    bool histogram;
} mxq_job;

/* A piece and what measuring it needs. */
typedef struct mxq_piece {
    int64_t n;      /* elements, a multiple of 32 */
    uint64_t index; /* of the first, in the padded tensor */
    float x[MXQ_PIECE], y[MXQ_PIECE];
    float scale[MXQ_BLOCKS], amax[MXQ_BLOCKS], energy[MXQ_BLOCKS]; /* of each 32; energy in units of unit^2 */
    float best_amax[MXQ_BLOCKS];                                   /* the largest magnitude that shares the scale */
    float unit[MXQ_BLOCKS];                                        /* 1 over the power of two at amax */
    int crest[MXQ_BLOCKS], nonzero[MXQ_BLOCKS], real[MXQ_BLOCKS];  /* real: not filling */
    uint32_t code[MXQ_PIECE];
    unsigned char scale_code[MXQ_BLOCKS];
} mxq_piece;

void mxq_look(mxq_piece *p, int64_t *nonzero, double *energy, double *sum); /* fills amax, unit, energy, crest */
double mxq_crest_of_bin(double bin);
void mxq_scales(const mxq_way *way, const mxq_source *s, const mxq_place *at, const mxq_facts *facts, mxq_piece *p);
void mxq_quantise(const mxq_way *way, const mxq_job *job, mxq_piece *p); /* y, scale */
void mxq_measure(const mxq_way *way, const mxq_piece *p, bool histogram, mxq_sums *sums, mxq_bins *bins);
bool mxq_run(const mxq_job *job, const mxq_source *s, mxq_result *result, mxq_pool *pool, char *why);
void mxq_result_free(mxq_result *r);

double mxq_db(double signal, double noise); /* infinity when there is no noise, NaN when there is no signal */
double mxq_sqnr(const mxq_result *r, int way);
double mxq_theory(const mxq_result *r, int way);
double mxq_ceiling(const mxq_job *job, const mxq_result *r, int way);
double mxq_sigma(const mxq_facts *f);
double mxq_crest(const mxq_facts *f);                        /* of the tensor */
double mxq_crest_quantile(const mxq_facts *f, double share); /* of its blocks */
/* The best way with at most so many bits; -1: none. */
int mxq_best(const mxq_job *job, const mxq_result *r, double budget);

/* ---- theory ---- */

void mxq_print_theory(FILE *out); /* crossovers of integers and floats, beside the published ones */
double mxq_theory_float(double crest, const mxq_model *m, double overhead);
double mxq_theory_integer(double crest, int bits, double overhead);

/* ---- QSNR against sigma ---- */

enum { MXQ_SWEEP_WAYS = 6, MXQ_SWEEP = 49 };
typedef struct mxq_sweep {
    mxq_way way[MXQ_SWEEP_WAYS];
    double sigma[MXQ_SWEEP], sqnr[MXQ_SWEEP_WAYS][MXQ_SWEEP];
} mxq_sweep;
bool mxq_sweep_run(const mxq_source *s, mxq_sweep *sweep, char *why);

/* ---- what is shown ---- */

typedef struct mxq_all {
    const mxq_job *job;
    const mxq_result *result;
    int results;
    double budget[MXQ_BUDGETS];
    int budgets;
    bool time;
    const mxq_pool *pool;
    const mxq_sweep *sweep; /* or NULL */
} mxq_all;

void mxq_table(const mxq_all *all, app_table *table);
double mxq_budget(const mxq_all *all, const mxq_result *r, int way); /* the first that it is the best for; NaN: none */
void mxq_empty_table(app_table *table);
void mxq_print_text(FILE *out, const mxq_all *all, bool each);
void mxq_write_json(FILE *out, const void *all);
void mxq_write_csv(FILE *out, const void *all);
void mxq_write_html(FILE *out, const void *all);

enum { MXQ_BARS, MXQ_HISTOGRAM, MXQ_CREST, MXQ_SIGMA, MXQ_PLOTS };
extern const char *const mxq_plot_name[MXQ_PLOTS];
void mxq_plot(FILE *out, const mxq_all *all, int plot, bool alone);
void mxq_label(char *text, size_t size, const mxq_way *way); /* "MXFP8 E4M3, ROUND_UP, SR" */
double mxq_mean_sqnr(const mxq_all *all, int way);           /* over the tensors, in dB */

#endif /* MXQ_H */

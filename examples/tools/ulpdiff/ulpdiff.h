/* ulpdiff.h - what the files of the program share: arrays, comparisons, hypotheses, options, the job.
 * SPDX-License-Identifier: MIT
 *
 *     main.c         the command line; opens both sides, pairs their arrays, hands the answers to those who write them
 *     array.c        an array as numbers (binary64) and as codes in order
 *     compare.c      one pass over a pair of arrays
 *     suspect.c      what a systematic error looks like
 *     verdict.c      rounding, or a bug and which; bug.h lists who tries what
 *     table.c        the columns; CSV and JSON
 *     text.c         the answer on a terminal, with a map of where the differences lie
 *     report.c       the HTML page
 *     explain.c      hypotheses: tried, ranked, told
 *     explain_*.c    where hypotheses come from: matmul (its products apart), collectives, functions and casts
 */
#ifndef ULPDIFF_H
#define ULPDIFF_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* this header comes first in every file */
#endif

#include "app/app.h"
#include "io/arrays.h"

#include <trnmath/trn_tensor.h>

/* ---- arrays ---- */

enum { UD_BLOCK = 1024 }; /* elements that are worked on at once: they stay in the first cache */

typedef enum ud_kind { UD_CODES, UD_F64, UD_I64, UD_U64, UD_BOOL, UD_SUB_BYTE } ud_kind;

typedef struct ud_array { /* always packed rows */
    char name[256];       /* the file's, and the array's inside */
    char type[16];
    ud_kind kind;
    trn_format format; /* of UD_CODES and UD_SUB_BYTE */
    int rank;
    int64_t shape[IO_MAX_RANK];
    int64_t elements, rows, columns; /* the 2-D view: the last axis, and all before it; a vector is folded */
    size_t item;                     /* bytes of an element; 0: less than one */
    const unsigned char *data;
    io_array source; /* UD_SUB_BYTE is read through it */
    void *block;     /* a packed copy, where the file's is not */
} ud_array;

/* Is it one with a sign, an exponent and a mantissa? */
static inline bool ud_is_float(trn_format format) { return trn_format_info_of(format)->mantissa_bits > 0; }

bool ud_array_open(const char *file, const io_array *from, ud_array *to, char *why);
void ud_array_close(ud_array *a);
bool ud_has_floats(const ud_array *a);                                       /* of at least 8 bits */
const char *ud_shape(const ud_array *a, char *text, size_t size);            /* "[128, 512]" */
const char *ud_index(const ud_array *a, int64_t i, char *text, size_t size); /* row-major i as "[3, 17]" */
/* n <= UD_BLOCK elements from `first` on, in row-major order. Exact, but for 64-bit integers beyond 2^53. */
void ud_values(const ud_array *a, int64_t first, int n, double *out);

/* What an ulp is: of which format, and counted how. */
typedef struct ud_unit {
    ud_kind kind; /* UD_CODES or one of 64 bits */
    trn_format format;
    bool places; /* |b - a| in units of the last place of a; else the distance of the codes in their order */
} ud_unit;

const char *ud_unit_name(const ud_unit *unit);
bool ud_unit_from_name(const char *name, ud_unit *unit);
ud_unit ud_unit_of(const ud_array *a);
int ud_unit_significand(const ud_unit *unit); /* bits; integers: all they have */
/* Numbers as codes, so that neighbours differ by 1 and both zeros are 0; `value` holds ud_values of the same. */
void ud_ordered(const ud_array *a, const ud_unit *unit, int64_t first, int n, const double *value, int64_t *out);
/* The same of values that stand nowhere; 64-bit integers apart. */
void ud_order_values(const ud_unit *unit, int n, const double *value, int64_t *out);
double ud_last_place(const ud_unit *unit, double x); /* the distance of numbers of this format near x */

/* ---- a comparison ---- */

enum { UD_BUCKETS = 6, UD_FINE = 67, UD_HEAT_ROWS = 24, UD_HEAT_COLUMNS = 64, UD_OCTAVES = 2048 };
extern const char *const ud_bucket_name[UD_BUCKETS];
int ud_bucket(double ulps);
double ud_fine_limit(int fine); /* the largest distance that the finer bucket holds: 0, 1/2, 1, 2, 4, ... */

typedef struct ud_sums {
    int64_t pairs, numbers; /* numbers: both sides finite */
    int64_t bucket[UD_BUCKETS], fine[UD_FINE];
    int64_t nan[2], infinite[2], mismatches; /* mismatches: NaN or infinity against something else */
    int64_t zero_signs;                      /* +0 against -0: no distance, other bytes */
    int64_t relatives;                       /* pairs whose A is not 0 */
    int64_t outward, above;                  /* of those that differ: |b| > |a|, b > a */
    int64_t flushed;                         /* A subnormal, B zero */
    int64_t subnormal;                       /* A subnormal */
    double mean_a, mean_d, aa, dd, ad;       /* d = b - a; sums of squares about the means */
    double abs_sum, abs_max, rel_sum, rel_max, ulp_sum, ulp_max;
    int64_t first, worst;                        /* elements; -1: none */
    int64_t row[2], column[2];                   /* the box of the differences */
    uint64_t significand[2];                     /* the bits that any value of A, of B uses */
    int64_t octave[2][UD_OCTAVES];               /* of |a|, |b|, by binary64's exponent field; [0] zeros */
    double heat[UD_HEAT_ROWS * UD_HEAT_COLUMNS]; /* largest distance in a cell */
} ud_sums;

/* The same, rounding, or a bug: lines of it, of which those from `ties` on explain it just as well. */
enum { UD_VERDICT_LINES = 12 };
typedef enum ud_verdict_kind { UD_SAME, UD_ROUNDING, UD_BUG } ud_verdict_kind;
typedef struct ud_verdict {
    ud_verdict_kind kind;
    char line[UD_VERDICT_LINES][320];
    int lines, ties;
} ud_verdict;

typedef struct ud_product { /* operands, placed so that A is their product: [m, k], [k, n] */
    float *a, *b;
    int64_t m, n, k;
    bool ranks; /* a row of ones times [ranks, elements]: a sum over ranks; of one: the operand of a function */
} ud_product;

typedef struct ud_pair {
    const char *name; /* the tensor's */
    ud_array a, b;
    ud_unit unit;
    bool bytes_equal;
    int heat_rows, heat_columns;
    ud_sums sums;
    ud_verdict verdict;
} ud_pair;

void ud_compare(ud_pair *pair);
/* One pair; in ulps, infinity for a mismatch. */
double ud_distance(const ud_pair *pair, int64_t i, double *a, double *b);
double ud_sqnr(const ud_sums *s); /* dB; infinity without errors */
double ud_cosine(const ud_sums *s);
double ud_pcc(const ud_sums *s); /* NaN where a side is constant */
double ud_share(int64_t part, int64_t whole);

/* One sentence each about what rounding alone does not do. */
enum { UD_SUSPICIONS = 8 };
typedef struct ud_suspicion {
    char text[UD_SUSPICIONS][256];
    int count;
    double factor, bias, explained; /* b = factor a + bias explains this share of the error's energy */
    double sqnr_without;
} ud_suspicion;
ud_suspicion ud_suspect(const ud_pair *pair);

/* product: NULL without operands; exact: NULL, or the hypothesis that gives B bit for bit. Fills pair->verdict. */
void ud_judge(ud_pair *pair, const ud_product *product, const char *exact);
const char *ud_verdict_name(const ud_verdict *v);
const char *ud_verdict_text(const ud_verdict *v, char *text, size_t size);

/* ---- options ---- */

typedef enum ud_op {
    UD_OP_NONE,
    UD_OP_MATMUL,
    UD_OP_ALL_REDUCE,
    UD_OP_REDUCE_SCATTER,
    UD_OP_CAST,
    UD_OP_ACTIVATION
} ud_op;
enum { UD_INPUTS = 512 };

typedef struct ud_options {
    const char *a, *b, *left, *right, *json, *csv, *html, *tensor;
    const char *input[UD_INPUTS];
    int inputs;
    bool in_inputs, schema, colour, places, codes, all, no_map;
    bool unit_given;
    ud_unit unit;
    trn_format dtype[3]; /* of .npy files that hold codes: A, B, inputs */
    ud_op op;
    const char *function, *system, *numerics;
    trn_format wire;
    int rank, top;
    double fail_above, fail_above_rel, fail_sqnr_below; /* NaN: no limit */
} ud_options;

/* ---- hypotheses ---- */

enum { UD_TEXT = 160, UD_ASPECTS = 10 };

typedef struct ud_score {
    int64_t outputs, equal;
    double worst, mean; /* ulps of the numbers; a mismatch of NaN or infinity makes worst infinite */
    double energy;      /* of the error: ulps make too much of sums that cancel */
} ud_score;

typedef struct ud_hypothesis {
    char text[UD_TEXT];         /* in the words of the flags: "chains=1,product=bf16; output bfloat16" */
    char value[UD_ASPECTS][48]; /* of each aspect of its source; empty: it plays no part */
    int surprise;               /* how far from the default: the less, the better an explanation */
    int key[4];                 /* the source's own */
    ud_score score[2];          /* against A, against B */
    bool whole, refused;        /* whole: all outputs were computed, not a sample */
} ud_hypothesis;

/* Where hypotheses come from, and who computes what they predict. */
typedef struct ud_source {
    const char *const *aspect; /* names; NULL closes */
    char inputs[512];          /* a phrase: what was computed, of what */
    void *context;
    /* What h predicts: `outputs` values, or the `sampled` ones of index[]. False: the library refuses. */
    bool (*run)(void *context, const ud_hypothesis *h, bool whole, float *value);
    void (*close)(void *context);
    int64_t total;                    /* elements of B */
    int64_t outputs, sampled, *index; /* outputs: those of the second round, all or, of too many, the sample alone */
    const double *target[2];          /* what A and B have there, of the run that goes on */
} ud_source;

typedef struct ud_explanation {
    ud_source source;
    ud_hypothesis *list; /* ranked for B; those that were refused are gone */
    int count, capacity, refused;
    double seconds;
} ud_explanation;

typedef struct ud_job ud_job;
bool ud_explain(ud_job *job, char *why);
typedef bool ud_open(ud_job *job, ud_explanation *e, char *why); /* fills e->source and supposes */
ud_open ud_open_matmul, ud_open_collective, ud_open_cast, ud_open_activation;

ud_hypothesis *ud_suppose(ud_explanation *e); /* a new one, zeroed */
__attribute__((format(printf, 3, 4))) void ud_say(ud_hypothesis *h, int aspect, const char *format, ...);
const ud_hypothesis *ud_best(const ud_explanation *e, int side);
bool ud_exact(const ud_hypothesis *h, int side);
/* Rounds values to a format and back. */
void ud_round_values(trn_format format, trn_rounding rounding, trn_overflow overflow, float *value, int64_t n);
int ud_significand(trn_format format);
/* May a side be the result of a rounding to this format? */
bool ud_can_be(const ud_pair *pair, trn_format format);
void ud_print_explanation(FILE *out, const ud_job *job);
void ud_print_others(FILE *out, const ud_explanation *e, int side); /* ties of the best, which has to be exact */
float *ud_read_floats(const ud_array *a);
int64_t *ud_spread(int64_t n, int64_t count); /* count of 0 ... n-1, evenly */

/* ---- the job ---- */

struct ud_job {
    ud_options options;
    io_arrays side[2], *input; /* input: [options.inputs] files */
    ud_array *operand;         /* all arrays of the inputs */
    int operands;
    ud_pair *pair;
    int pairs, unmatched;
    const char **missing; /* [unmatched] sentences */
    bool explained;
    ud_explanation explanation;
    ud_product product; /* of --op matmul */
    app_table table;
    double seconds, judged_s;
    uint64_t bytes;
    char failed[APP_WHY]; /* the first --fail-... that struck */
};

const ud_pair *ud_worst_pair(const ud_job *job); /* the first of those with the largest distance, be it 0 */
void ud_fill_table(ud_job *job);
void ud_print_text(FILE *out, const ud_job *job);
void ud_print_json(FILE *out, const void *job);
void ud_print_csv(FILE *out, const void *job);
void ud_print_html(FILE *out, const void *job);

#endif /* ULPDIFF_H */

/* bug.h - rounding or a bug: a pair of arrays as a case, what is tried to explain it, what was found.
 * SPDX-License-Identifier: MIT
 *
 *     verdict.c      the table of what is tried; what is accepted; the verdict, in words
 *     bug_case.c     a pair as two matrices and the size of what rounding may do; how far a prediction is from B
 *     bug_names.c    sets of rows, orders of rows and factors in words
 *     bug_values.c   factors, biases, epsilons, functions, saturation: what happens to each value
 *     bug_scales.c   scales of blocks, and of the scores of a softmax
 *     bug_order.c    rows and columns that moved; matrices that were laid out otherwise
 *     bug_places.c   NaN, masks, and what is wrong in one place alone
 *     bug_product.c  with operands: another product, a part of K missing or twice
 *     bug_noise.c    rounding that can be shown; hints where nothing fits
 */
#ifndef ULPDIFF_BUG_H
#define ULPDIFF_BUG_H

#include "ulpdiff.h"

/* ---- a case ---- */

typedef struct bug_left {      /* B - prediction, each over the size of what it was made of */
    double rms, worst, middle; /* middle: half of those that are not 0 are smaller */
    int64_t count, differ;
} bug_left;

typedef struct bug_case {
    const ud_pair *pair;
    const ud_product *product; /* NULL: no operands */
    const char *noun[2];       /* what a row, a column is called: "row", "column" */
    int64_t m, n;
    double *a, *b;                  /* [m, n], over `unit`; 0 where either is no number */
    int64_t *row, *column;          /* where they stand in the whole */
    double *row_size, *column_size; /* their product: the size of an element, however small it happens to be */
    const struct bug_case *whole;   /* NULL: this is it */
    double unit;                    /* a power of two */
    double least;                   /* what is smaller counts as so large: subnormals round to it */
    int bits;                       /* of significands that both sides use */
    double grain;                   /* what rounding to them may do, over the size */
    int64_t effective;              /* elements that are not the repeat of a row or column */
    bug_left before, sampled;       /* of B - A: all, and on the sample */
} bug_case;

/* What a hypothesis has at [i, j]; *size: of what it was made, at least its own. */
typedef double bug_predict(const bug_case *c, const void *what, int64_t i, int64_t j, double *size);

enum { BUG_SAMPLE = 1 << 16 };

bool bug_case_open(const ud_pair *pair, const ud_product *product, bug_case *c);
/* The same with some rows and columns alone. */
void bug_case_part(const bug_case *whole, const int64_t *row, int64_t rows, const int64_t *column, int64_t columns,
                   bug_case *c);
void bug_case_close(bug_case *c);
double bug_size(const bug_case *c, int64_t i, int64_t j);
/* most: elements, on a grid; 0: all. predict NULL: A itself. */
bug_left bug_measure(const bug_case *c, bug_predict *predict, const void *what, int64_t most);
bool bug_clean(const bug_case *c, const bug_left *left); /* may what is left be rounding? */

/* ---- what is found ---- */

enum { BUG_TEXT = 320, BUG_FINDINGS = 48 };

typedef struct bug_finding {
    char text[BUG_TEXT]; /* a sentence without its full stop */
    const char *name;    /* its row of the table */
    int cost;            /* 0: rounding; 1: one word says it; the more, the more it takes to say */
    bool fact;           /* it is so, whatever else is: NaN in a place */
    bug_left left;
} bug_finding;

typedef struct bug_search {
    const bug_case *c;
    const char *name;
    bug_finding found[BUG_FINDINGS];
    int count;
} bug_search;

/* Tries a prediction on a sample, then on everything. NULL: it does not explain B. freedom: numbers that were fitted;
 * most: of the rms of what may be left, beyond what every explanation needs (0: no more; less: refused). The caller
 * says the text. */
bug_finding *bug_try(bug_search *s, bug_predict *predict, const void *what, int cost, int64_t freedom, double most);
bug_finding *bug_add(bug_search *s, int cost, bool fact); /* without a trial */
__attribute__((format(printf, 2, 3))) void bug_say(bug_finding *f, const char *format, ...);

/* What a vector of so many small factors or biases may leave: `most` of bug_try(). level: how large they are. */
double bug_tight(const bug_case *c, double level, int64_t freedom);
double bug_largest_change(const double *factor, int64_t n, double *least, double *most); /* from 1 */

typedef void bug_test(bug_search *s);
bug_test bug_rounded, bug_casts; /* noise */
bug_test bug_no_numbers, bug_mask, bug_constant, bug_regions;
bug_test bug_factor, bug_bias, bug_row_factors, bug_column_factors, bug_row_bias, bug_column_bias, bug_both_biases,
    bug_norm, bug_function, bug_saturated, bug_tile_factors, bug_softmax, bug_other_function;
bug_test bug_rows, bug_columns, bug_layout;
bug_test bug_operands, bug_k_parts;

void bug_run_families(bug_search *s);   /* the rows of the table that look at values */
bool bug_other_side(const bug_case *c); /* is it A that is wrong? */
void bug_turn(bug_case *c);             /* B is what A is measured against */
void bug_hint(const bug_case *c, char *text, size_t size);

/* ---- words ---- */

/* "rows 96 to 127", "every other row from 1", "rows 3, 7 and 12" */
const char *bug_name_set(const int64_t *index, int64_t count, int64_t total, const char *noun, char *text, size_t size);
/* from[i] of A stands at at[i] of B; -1: nowhere. Is it in a word? */
bool bug_name_order(const int64_t *at, const int64_t *from, int64_t count, int64_t total, const char *noun, char *text,
                    size_t size);
/* "2", "1/sqrt(128)", "448/240", or the number; off: what it may be off by, of itself */
const char *bug_name_factor(double factor, double off, char *text, size_t size);
double bug_off(const bug_left *left); /* of a mean over so many */

/* Orders that have a name, of n places, for those who try them all: from[] of the number `which`; false: no more. */
bool bug_known_order(int which, int64_t n, int64_t *from, char *text, size_t size, const char *noun);

#endif /* ULPDIFF_BUG_H */

/* conformance.h - what the files of the conformance kit share: vectors, their tests, their answers.
 * SPDX-License-Identifier: MIT
 *
 * A vector is one figure that somebody has published: what it is of, the figure, how far off it may be (as far as it
 * was rounded, or as a statistic wanders), who says so, and the function that computes ours. The kit in one picture:
 *
 *     main.c             options; runs what is wanted
 *     list.c             vectors in a list, the verdict on an answer, and how many there are of each
 *     text.c page.c      what people read: tables, the HTML page
 *     golden.c           the reference vectors of the codecs, each file on each instruction set
 *     formats.c          limits, names, the two FP8 formats, integers through binary32
 *     rounding.c         sums that stagnate, stochastic rounding, generators
 *     devices.c claims.c what the tensor engines of devices printed, and what was concluded from it
 *     matrix_units.c     what other makers' matrix units returned
 *     engines.c          the Vector, Scalar, GpSimd and DMA engines
 *     mx.c               block scaling
 *     cost.c machines.c  clocks, cycles, totals
 *     collectives.c gradients.c models.c
 *     times.c            collectives, training steps and tokens, as they were printed after runs
 *
 * Figures that a unit test computes too stand in tests/published/, for both.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <math.h>
#include <string.h>

#include "app/app.h"

typedef enum cf_kind { CF_DOCUMENTED, CF_MEASURED, CF_PAPER, CF_CALCULATED, CF_KINDS } cf_kind;
typedef enum cf_status { CF_PASS, CF_FAIL, CF_KNOWN, CF_SKIPPED, CF_STATUSES } cf_status;

typedef struct cf_answer {
    double got;     /* NaN: there is none, and the note says why */
    int64_t cases;  /* that were compared; 0: the figure itself is the only one */
    bool skipped;   /* this host cannot, and the note says why */
    char note[240]; /* of a failure: the first case that is wrong */
} cf_answer;

typedef struct cf_options {
    const char *golden; /* the directory of reference vectors */
    const char *only, *json, *csv, *html;
    bool all, list, schema, longer;
} cf_options;

typedef struct cf_vector cf_vector;
typedef void cf_test(const cf_vector *v, const cf_options *o, cf_answer *a);

struct cf_vector {
    const char *id; /* stable and dotted: sr.loop.float16.mean */
    const char *what, *unit, *source;
    cf_kind kind;
    double expected, low, high; /* the figure; it passes when low <= ours <= high */
    const char *known;          /* why ours is not the published one, when that is known; */
    double ours, slack;         /* then ours is this, up to a relative slack */
    bool slow;                  /* only with --long */
    cf_test *test;
    const void *about; /* what the test needs to know: */
    int of, at;
    trn_isa isa; /* whose kernels run; skipped where the host has none of it */
    int chapter; /* cf_add fills it */
};

/* How a vector states its figure. */
#define CF_EXACTLY(x) .expected = (x), .low = (x), .high = (x)
#define CF_ABOUT(x, tolerance) .expected = (x), .low = (x) - (tolerance), .high = (x) + (tolerance)
#define CF_WITHIN(x, least, most) .expected = (x), .low = (least), .high = (most)
#define CF_NONE_WRONG CF_EXACTLY(0), .unit = "wrong" /* so many cases differ; .cases says of how many */
/* A figure that we do not meet: the reason, and ours. */
#define CF_BUT(value, relative, reason) .ours = (value), .slack = (relative), .known = (reason)

enum { CF_COUNT_OF_CHAPTERS = 11 };

typedef struct cf_list {
    cf_vector *vector;
    int count, room, chapter;
    char **text; /* what cf_text made */
    int texts, text_room;
} cf_list;

typedef struct cf_chapter {
    const char *title, *about;
    void (*fill)(cf_list *list);
} cf_chapter;

extern const cf_chapter cf_chapters[CF_COUNT_OF_CHAPTERS];

void cf_add(cf_list *list, cf_vector v); /* unless this architecture can never have its instruction set */
void cf_add_all(cf_list *list, const cf_vector *v, size_t count);
const char *cf_text(cf_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same in small letters, with _ for what does not belong into a name. */
const char *cf_id(cf_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cf_list_free(cf_list *list);

/* One case more, and whether it is wrong; the first one that is gets told. */
void cf_count(cf_answer *a, bool right, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cf_fail(cf_answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cf_skip(cf_answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- verdicts ---- */

typedef struct cf_result {
    const cf_vector *vector;
    cf_answer answer;
    cf_status status;
    double seconds;
} cf_result;

typedef struct cf_report {
    const cf_options *options;
    const cf_result *result;
    int count;
    double seconds;
} cf_report;

extern const char *const cf_kind_names[CF_KINDS], *const cf_status_names[CF_STATUSES];
cf_status cf_judge(const cf_vector *v, const cf_answer *a);

typedef struct cf_tally {
    int64_t vectors, cases, status[CF_STATUSES]; /* a figure that is the only one counts as one case */
    double seconds;
} cf_tally;

cf_tally cf_tally_of(const cf_report *report, int chapter); /* -1: all of them */

/* ---- what people read ---- */

const char *cf_number(char *text, size_t size, double value);
void cf_expected(char *text, size_t size, const cf_vector *v); /* "2,048 ± 5" */
void cf_got(char *text, size_t size, const cf_result *r);      /* "0 of 8,405 wrong" */
void cf_table(app_table *table, const cf_report *report);      /* all of it, for CSV and JSON; starts it, too */
void cf_print(FILE *out, const cf_report *report);
void cf_write_page(FILE *out, const cf_report *report);

/* ---- chapters ---- */

void cf_fill_formats(cf_list *list); /* formats.c, which has golden.c's first */
void cf_fill_golden(cf_list *list);
void cf_fill_golden_blocks(cf_list *list);
void cf_fill_rounding(cf_list *list);
void cf_fill_devices(cf_list *list); /* with claims.c's */
void cf_fill_claims(cf_list *list);
void cf_fill_matrix_units(cf_list *list);
void cf_fill_engines(cf_list *list);
void cf_fill_mx(cf_list *list);
void cf_fill_cost(cf_list *list);
void cf_fill_machines(cf_list *list);
void cf_fill_collectives(cf_list *list); /* with gradients.c's */
void cf_fill_gradients(cf_list *list);
void cf_fill_models(cf_list *list);
void cf_fill_times(cf_list *list);

#endif /* CONFORMANCE_H */

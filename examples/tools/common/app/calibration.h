/* calibration.h - the calibration a program works with: a release's, a file's, or a fit to what nccom-test printed.
 * SPDX-License-Identifier: MIT
 *
 *     app_calibration_start(&o->calibration);
 *     static const app_option option[] = { APP_CALIBRATION_OPTIONS(options, calibration), ... };
 *     ...
 *     if (o->calibration.measured && !app_calibration_fit(&o->calibration, &ask, why)) ...
 */
#ifndef APP_CALIBRATION_H
#define APP_CALIBRATION_H

#include "app.h"

#include <trnmath/trn_calibration_fit.h>

/* A number of the planner that a file has: "plan.kernel_s". */
typedef struct app_planned {
    char name[32];
    double value;
} app_planned;

enum { APP_PLANNED = 32 };

typedef struct app_calibration {
    trn_release release;
    trn_calibration now;              /* what is to be used */
    const char *loaded;               /* the file that it is from */
    const char *measured;             /* nccom-test's output, to be fitted */
    app_table table;                  /* after a fit: one row for each size, before and after */
    char written[512];                /* after a fit: the file that holds the numbers */
    app_planned planned[APP_PLANNED]; /* that the file has, and that a fit adds */
    int planneds;
} app_calibration;

/* What a file does not say. */
typedef struct app_calibration_ask {
    const trn_topology *net;
    trn_collective op;
    trn_format wire;
    int ranks, ranks_per_chip; /* 0: all, and as the network has them */
} app_calibration_ask;

void app_calibration_start(app_calibration *c);
void app_calibration_free(app_calibration *c);
bool app_calibration_release(app_calibration *c, const char *name, char *why);
bool app_calibration_load(app_calibration *c, const char *path, char *why);
/* Fits to the rows of c->measured. why: one sentence. */
bool app_calibration_fit(app_calibration *c, const app_calibration_ask *ask, char *why);
/* Writes MEASURED.calibration; APP_OK, or a status after one sentence. */
int app_calibration_write(const app_calibration *c);
/* One more number of the planner, or another value of it. */
bool app_calibration_plan(app_calibration *c, const char *name, double value, char *why);
/* The rows, and the fields that moved. */
void app_calibration_print(FILE *out, const app_calibration *c);

#define APP_CALIBRATION_TAKE(type, field)                                                                              \
    static bool take_release(void *into, const char *value, char *why)                                                 \
    {                                                                                                                  \
        return app_calibration_release(&((type *)into)->field, value, why);                                            \
    }                                                                                                                  \
    static bool take_calibration(void *into, const char *value, char *why)                                             \
    {                                                                                                                  \
        return app_calibration_load(&((type *)into)->field, value, why);                                               \
    }

/* clang-format off */
#define APP_CALIBRATION_OPTIONS(type, field)                                                                           \
    { "--release", "NAME", "software whose times are expected: newer (the default) or older (about 2023)",             \
      .apply = take_release },                                                                                         \
    { "--calibration", "FILE", "numbers of an earlier --calibrate instead", .apply = take_calibration }
#define APP_CALIBRATE_OPTION(type, field)                                                                              \
    { "--calibrate", "FILE",                                                                                           \
      "fit them to what nccom-test printed (tables or JSON; a line with its command says what was\n"                   \
      "run), show each size before and after, and write FILE.calibration",                                             \
      APP_TAKES_TEXT(type, field.measured) }
/* clang-format on */

#endif /* APP_CALIBRATION_H */

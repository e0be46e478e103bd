/* measure.c - what every measurement needs: options, progress, and what several rounds say.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- options ---- */

bool tb_parse_threads(const char *text, int *threads, char *why)
{
#if defined(_OPENMP)
    return app_parse_number(text, 1, 1024, threads, why);
#else
    return app_parse_number(text, 1, 1, threads, why) ||
           app_refuse(why, "this program was built without OpenMP and runs one thread");
#endif
}

bool tb_parse_seed(const char *text, uint64_t *seed, char *why)
{
    int64_t number;
    if (!app_parse_int(text, 0, INT64_MAX, &number, why)) return false;
    *seed = (uint64_t)number;
    return true;
}

trn_isa tb_isa(trn_isa asked) { return asked == TRN_ISA_AUTO ? trn_isa_from_name(trn_isa_name()) : asked; }

int tb_refuse_isa(void)
{
    if (trn_isa_supported(trn_isa_from_name(trn_isa_name()))) return APP_OK;
    return app_complain(APP_USAGE, "TRN_ISA=%s is unknown or not available on this host", getenv("TRN_ISA"));
}

int tb_can_write(const tb_files *files)
{
    return app_can_write("--csv", files->csv) || app_can_write("--json", files->json) ||
                   app_can_write("--report", files->report)
               ? APP_USAGE
               : APP_OK;
}

bool tb_stdout_taken(const tb_files *files)
{
    return (files->json && !strcmp(files->json, "-")) || (files->csv && !strcmp(files->csv, "-"));
}

int tb_write_files(const tb_files *files, tb_writer *csv, tb_writer *json, tb_writer *report, const void *context)
{
    int status = app_write_file("--csv", files->csv, csv, context);
    if (status == APP_OK) status = app_write_file("--json", files->json, json, context);
    if (status == APP_OK && report) status = app_write_file("--report", files->report, report, context);
    return status;
}

/* ---- progress ---- */

void tb_stage(int number, int of, const char *format, ...)
{
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (app_colour(stderr))
        app_progress("%s, %d of %d", text, number, of);
    else
        fprintf(stderr, "%s: measuring %s, %d of %d\n", app_name, text, number, of);
}

void tb_step(const char *format, ...)
{
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (app_colour(stderr)) app_progress("%s", text);
}

/* ---- rounds ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tb_median(const double *values, int n)
{
    double sorted[TB_MAX_ROUNDS];
    memcpy(sorted, values, sizeof sorted[0] * (size_t)n);
    qsort(sorted, (size_t)n, sizeof sorted[0], by_value);
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double tb_median_ratio(const double *over, const double *under, int n)
{
    double ratio[TB_MAX_ROUNDS];
    for (int i = 0; i < n; i++) ratio[i] = over[i] / under[i];
    return tb_median(ratio, n);
}

double tb_best(const double *rate, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = rate[i] > most ? rate[i] : most;
    return most;
}

double tb_thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* measure.c - what every measurement needs: options, progress, and what several rounds say.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/say.h"

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

trn_isa tb_isa(trn_isa asked)
{
    static const trn_isa vectors[] = { TRN_ISA_AVX512, TRN_ISA_AVX2, TRN_ISA_NEON, TRN_ISA_PORTABLE };
    const trn_isa isa = asked == TRN_ISA_AUTO ? trn_isa_from_name(trn_isa_name()) : asked;
    int i = 0;
    if (trn_isa_unit(isa) == TRN_ISA_AUTO) return isa;
    while (!trn_isa_supported(vectors[i])) i++;
    return vectors[i];
}

int tb_refuse_isa(void)
{
    if (trn_isa_supported(trn_isa_from_name(trn_isa_name()))) return APP_OK;
    return app_complain(APP_USAGE, "TRN_ISA=%s is unknown or not available on this host", getenv("TRN_ISA"));
}

int tb_open_files(tb_files *files)
{
    static const char *const flag[] = { "--csv", "--json", "--report", "--out" };
    const char *const path[] = { files->csv, files->json, files->report, files->out };
    for (int i = 0; i < TB_OUTPUTS; i++) files->output[i] = (app_output){ .flag = flag[i], .path = path[i] };
    return app_open_outputs(files->output, TB_OUTPUTS);
}

bool tb_stdout_taken(const tb_files *files)
{
    const char *const path[] = { files->csv, files->json, files->report, files->out };
    bool taken = false;
    for (int i = 0; i < TB_OUTPUTS; i++) taken = taken || (path[i] && strcmp(path[i], "-") == 0);
    return taken;
}

FILE *tb_file_stream(const tb_files *files, int output) { return app_output_stream(&files->output[output]); }

int tb_write_files(tb_files *files, tb_writer *csv, tb_writer *json, tb_writer *report, const void *context)
{
    files->output[TB_CSV].write = csv;
    files->output[TB_JSON].write = json;
    files->output[TB_REPORT].write = report;
    return app_write_outputs(files->output, TB_OUTPUTS, context);
}

void tb_discard_files(tb_files *files) { app_discard_outputs(files->output, TB_OUTPUTS); }

/* ---- progress ---- */

void tb_stage(int number, int of, const char *format, ...)
{
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(text, sizeof text, sizeof text, format, list);
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
    io_say_list(text, sizeof text, sizeof text, format, list);
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

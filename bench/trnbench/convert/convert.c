/* convert.c - subcommand convert: options, and one run over all conversions: their answers, then their speed.
 * SPDX-License-Identifier: MIT
 */
#include "convert.h"

#include <stdlib.h>
#include <string.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

typedef struct options {
    tb_convert_job job;
    tb_conversion_filter filter;
    tb_files files;
    bool schema, quick, no_peers;
    int rounds;
} options;

/* ---- options ---- */

static bool take_number(const char *name, uint32_t *set, char *why)
{
    const tb_number *number = tb_number_find(name);
    if (number) return *set |= tb_number_bit(number), true;
    int n = snprintf(why, APP_WHY, "no such format; there are");
    for (int i = 0; tb_number_at(i); i++)
        n += snprintf(why + n, (size_t)(APP_WHY - n), "%s %s", i ? "," : "", tb_number_at(i)->name);
    return false;
}

static bool take_from(void *o, const char *value, char *why)
{
    return take_number(value, &((options *)o)->filter.from, why);
}

static bool take_to(void *o, const char *value, char *why)
{
    return take_number(value, &((options *)o)->filter.to, why);
}

static bool take_rounding(void *o, const char *value, char *why)
{
    const int mode = (int)trn_round_from_text(value);
    if (mode <= TRN_TO_ODD) return ((options *)o)->filter.rounding |= 1u << mode, true;
    return app_refuse(why,
                      "expected nearest_even, stochastic, toward_zero, toward_positive, toward_negative or to_odd");
}

static bool take_overflow(void *o, const char *value, char *why)
{
    const bool saturate = strcmp(value, "saturate") == 0;
    if (!saturate && strcmp(value, "default") != 0) return app_refuse(why, "expected default or saturate");
    ((options *)o)->filter.overflow |= 1u << (saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT);
    return true;
}

/* "32768", "32Ki", "16Mi" */
static bool take_size(void *o, const char *value, char *why)
{
    static const struct {
        const char *name;
        long long scale;
    } unit[] = { { "", 1 }, { "Ki", 1 << 10 }, { "Mi", 1 << 20 } };
    tb_convert_job *job = &((options *)o)->job;
    char *end;
    const long long n = strtoll(value, &end, 10);
    long long elements = 0;
    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++)
        if (end != value && strcmp(end, unit[i].name) == 0 && n > 0 && n <= 1 << 28) elements = n * unit[i].scale;
    if (elements < TB_STREAM_GRAIN || elements > 1 << 28 || elements % TB_STREAM_GRAIN)
        return app_refuse(why, "expected a multiple of 4096 up to 256Mi, such as 32768, 32Ki or 16Mi");
    if (job->sizes == TB_CONVERT_SIZES) return app_refuse(why, "more than four sizes");
    job->size[job->sizes++] = (size_t)elements;
    return true;
}

static bool take_threads(void *o, const char *value, char *why)
{
    tb_convert_job *job = &((options *)o)->job;
    int n;
    if (!tb_parse_threads(value, &n, why)) return false;
    if (job->thread_counts == TB_CONVERT_THREADS) return app_refuse(why, "more than eight numbers of threads");
    job->threads[job->thread_counts++] = n;
    return true;
}

static bool take_rounds(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, TB_CONVERT_ROUNDS, &((options *)o)->rounds, why);
}

static bool take_isa(void *o, const char *value, char *why)
{
    return app_parse_isa(value, &((options *)o)->job.measure.isa, why);
}

static bool take_peers(void *o, const char *value, char *why)
{
    const bool none = strcmp(value, "none") == 0;
    if (!none && strcmp(value, "all") != 0) return app_refuse(why, "expected none or all");
    return ((options *)o)->no_peers = none, true;
}

static const app_option convert_options[] = {
    { "--from", "NAME",
      "source format (repeatable): f32, tf32, bf16, f16, e4m3, e4m3fn, e5m2, e3m4, e8m0,\n"
      "e2m3, e3m2, e2m1, cfp8, i8 ... u32, mxfp8_e4m3fn, mxfp8_e5m2, mxfp6_e2m3,\n"
      "mxfp6_e3m2, mxfp4, mxint8",
      .apply = take_from },
    { "--to", "NAME", "result format (repeatable)", .apply = take_to },
    { "--rounding", "NAME",
      "nearest_even, stochastic, toward_zero, toward_positive, toward_negative, to_odd\n(repeatable)",
      .apply = take_rounding },
    { "--overflow", "NAME", "default or saturate (repeatable)", .apply = take_overflow },
    { "--all", NULL, "every conversion there is, not only the usual ones", APP_SETS(options, filter.all) },
    { "--size", "N", "elements of the arrays (repeatable, up to four; default: 32Ki and 16Mi)", .apply = take_size },
    { "--threads", "N", "threads (repeatable; default: 1 and all)", .apply = take_threads },
    { "--rounds", "N", "rounds of measurement (default: 7)", .apply = take_rounds },
    { "--isa", "NAME", "kernels by a name of TRN_ISA (default: the best this host has)", .apply = take_isa },
    { "--peers", "WHO", "none or all (default: all that were built in or are installed)", .apply = take_peers },
    { "--golden", "DIR", "where the reference vectors are (default: what it was built with)",
      APP_TAKES_TEXT(options, job.golden) },
    { "--quick", NULL, "a rough look in seconds: 3 rounds, 32Ki and 1Mi elements, one thread",
      APP_SETS(options, quick) },
    { "--check-only", NULL, "count wrong answers, measure nothing", APP_CLEARS(options, job.timed) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the tables)",
      APP_TAKES_TEXT(options, files.json) },
    { "--csv", "FILE", "one row per conversion x threads x size x who, one header row (- as above)",
      APP_TAKES_TEXT(options, files.csv) },
    { "--report", "FILE.html", "one self-contained page with bars", APP_TAKES_TEXT(options, files.report) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(options, schema) },
};

static const app_command convert_command = {
    "trnbench convert",
    "usage: trnbench convert [--from NAME] [--to NAME] [--rounding NAME] [options]",
    "Converts arrays between number formats: how fast, beside memcpy, loops that only move as many bytes, and other\n"
    "libraries; and how many answers are wrong, trnmath's and theirs, held against the reference vectors.\n"
    "Filters choose among the usual conversions, and among all when that leaves none.",
    convert_options,
    sizeof convert_options / sizeof convert_options[0],
    "Exit status 1 when an answer of trnmath is wrong. Peers: plain C, oneDNN 2 and libxsmm where they are installed;\n"
    "ml_dtypes and CPFloat when the program is built with TRN_PEERS=DIR. Environment: TRN_ISA, NO_COLOR.",
    NULL,
};

/* ---- running ---- */

static int wanted(const tb_convert_job *job, int id)
{
    return id == TB_TRNMATH || (job->measure.maker[id] && tb_maker_version((tb_maker_id)id));
}

static int check_item(const tb_convert_job *job, tb_convert_item *item)
{
    const tb_answers *ours = &item->answers[TB_TRNMATH];
    tb_step("answers of %s", item->conversion->name);
    for (int id = 0; id < TB_MAKERS; id++)
        if (wanted(job, id))
            item->answers[id] =
                tb_check_conversion(item->conversion, (tb_maker_id)id, job->measure.isa, job->golden, job->draws);
    if (ours->wrong == 0) return APP_OK;
    return app_complain(APP_FAILED, "%s: %lld of %lld answers are wrong; %s", item->conversion->name,
                        (long long)ours->wrong, (long long)ours->cases, ours->first);
}

static int measure_all(tb_convert_job *job)
{
    tb_buffers b;
    size_t most = 0;
    const tb_number *filled = NULL;
    for (int s = 0; s < job->sizes; s++)
        for (int n = 0; n < job->thread_counts; n++) {
            const size_t room = tb_measure_room(job->size[s], job->threads[n]);
            most = room > most ? room : most;
        }
    if (!tb_buffers_get(&b, most)) {
        tb_buffers_free(&b);
        return app_complain(APP_USAGE, "there is not enough memory for arrays of %zu elements", most);
    }
    for (int i = 0; i < job->items; i++) {
        tb_convert_item *item = &job->item[i];
        if (item->conversion->from != filled) tb_fill_source(&b, filled = item->conversion->from);
        tb_stage(i + 1, job->items, "%s", item->conversion->name);
        for (int n = 0; n < job->thread_counts; n++)
            for (int s = 0; s < job->sizes; s++) {
                tb_step("%s, %d of %d, %d thread%s", item->conversion->name, i + 1, job->items, job->threads[n],
                        job->threads[n] == 1 ? "" : "s");
                tb_measure(item->conversion, &b, job->size[s], job->threads[n], &job->measure, &item->speed[n][s]);
            }
    }
    job->attention = b.wall_s > 0 ? b.busy_s / b.wall_s : 1;
    tb_buffers_free(&b);
    return APP_OK;
}

static void defaults(options *o)
{
    tb_convert_job *job = &o->job;
    int most = 1;
#if defined(_OPENMP)
    most = omp_get_max_threads();
#endif
    if (job->thread_counts == 0) {
        job->threads[job->thread_counts++] = 1;
        if (most > 1 && !o->quick && job->timed) job->threads[job->thread_counts++] = most;
    }
    if (job->sizes == 0) {
        job->size[job->sizes++] = 32 << 10;
        if (job->timed) job->size[job->sizes++] = o->quick ? 1 << 20 : 16 << 20;
    }
    for (int id = 0; id < TB_MAKERS; id++) job->measure.maker[id] = id == TB_TRNMATH || !o->no_peers;
    job->measure.rounds = o->rounds ? o->rounds : o->quick ? 3 : 7;
    job->measure.call_s = o->quick ? 0.0003 : 0.003;
    job->measure.most_s = o->quick ? 0.002 : 0.02;
    job->draws = o->quick ? 64 : 1024;
}

static int write_outputs(options *o)
{
    if (!tb_stdout_taken(&o->files)) tb_print_convert_text(&o->job);
    return tb_write_files(&o->files, tb_print_convert_csv, tb_print_convert_json, tb_print_convert_report, &o->job);
}

static int find_golden(tb_convert_job *job)
{
    char why[APP_WHY] = "";
    const int files = tb_find_golden(job->golden, why);
    app_reads_folder(job->golden);
    if (*why) return app_complain(APP_USAGE, "--golden %s: %s", job->golden, why);
    job->golden_there = files > 0;
    if (files == 0) app_complain(APP_OK, "%s has no reference vectors; wrong answers are not counted", job->golden);
    return APP_OK;
}

static int run(options *o)
{
    tb_convert_job *job = &o->job;
    int checked = APP_OK;
    if (job->measure.isa == TRN_ISA_AUTO && tb_refuse_isa() != APP_OK) return APP_USAGE;
    if (find_golden(job) || tb_open_files(&o->files) != APP_OK) return APP_USAGE;
    job->conversion = tb_conversions(&o->filter, &job->items);
    if (job->conversion && job->items == 0) return app_complain(APP_USAGE, "no conversion is left by these filters");
    job->item = calloc((size_t)job->items + 1, sizeof *job->item);
    if (!job->conversion || !job->item) return app_complain(APP_USAGE, "there is not enough memory");
    if (!o->no_peers) tb_makers_load();
    for (int i = 0; i < job->items; i++) {
        job->item[i].conversion = &job->conversion[i];
        if (job->golden_there && check_item(job, &job->item[i]) != APP_OK) checked = APP_FAILED;
    }
    if (job->timed && measure_all(job) != APP_OK) return APP_FAILED;
    app_progress_done();
    const int status = write_outputs(o);
    return status != APP_OK ? status : checked;
}

static void print_schema(void)
{
    app_table table;
    tb_convert_columns(&table);
    app_print_schema(stdout, "trnbench.convert", &table);
    app_table_free(&table);
}

int tb_main_convert(int argc, char **argv)
{
    static options o; /* large; zeroed once */
    o.job.timed = true;
    o.job.golden = TRN_GOLDEN_DIR;
    int status = app_parse_options(&convert_command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (o.schema) return print_schema(), APP_OK;
    defaults(&o);
    status = run(&o);
    tb_discard_files(&o.files);
    free(o.job.conversion);
    free(o.job.item);
    return status;
}

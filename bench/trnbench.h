/* trnbench.h - what the files of the program share: tables, options, messages, time.
 * SPDX-License-Identifier: MIT
 *
 * The program in one picture:
 *
 *     trnbench.c            main: finds the subcommand
 *     trnbench_matmul.c     subcommand matmul: options, jobs, one row per product x system x format
 *     trnbench_spec.c       subcommand spec: the machines
 *     trnbench_sparse.c     subcommand sparse: structured sparsity beside the dense product
 *     trnbench_collective.c       subcommand collective: options, tables
 *     trnbench_collective_rows.c  one row per system x operation x algorithm x size
 *     trnbench_collective_check.c the values of every rank, by definition
 *     trnbench_groups.c     replica groups and sizes as people write them
 *     trnbench_modes.c      what each mode of their tensor engines costs
 *     trnbench_links.c      how their chips are wired: rates, times, and who says so
 *     trnbench_formats.c    what --format names, and matrices in each of them
 *     trnbench_models.c     the linear layers of six language models
 *     trnbench_host.c       runs a product on this host, times it beside its peers
 *     trnbench_check.c      the slow definition, bit for bit
 *     trnbench_peak.c       what the host's multiply-add units can do
 *     trnbench_peers.c      OpenBLAS and oneDNN, loaded when they are there
 *     trnbench_convert.c    subcommand convert: options, one run over all conversions
 *     trnbench_convert_list.c     which conversions there are
 *     trnbench_convert_makers.c   who converts: trnmath and its peers (convert_peer*: loops of others)
 *     trnbench_convert_golden.c   wrong answers, by the vectors of tests/golden (read by trnbench_golden.c)
 *     trnbench_convert_streams.c  loops that only move bytes
 *     trnbench_convert_measure.c  everybody in turn, round by round
 *     trnbench_convert_rows.c, trnbench_convert_report.c   tables; the HTML page
 *     trnbench_activation.c       subcommand activation: options, one row per function x format x size
 *     trnbench_activation_speed.c, trnbench_activation_sleef.c   everybody in turn; SLEEF's own loops
 *     trnbench_activation_error.c, trnbench_activation_report.c  errors (by activation_error.c); the HTML page
 *     trnbench_table.c      tables as text, CSV and JSON
 *     trnbench_report.c     the HTML page of matmul
 *     trnbench_page.c       what HTML pages share
 *     trnbench_cli.c        options, messages, progress, time
 *
 * Data goes to stdout, everything else to stderr. Exit status: TB_OK, TB_FAILED, TB_USAGE.
 */
#ifndef TRNBENCH_H
#define TRNBENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <trnmath/trn_cpu.h>

enum { TB_OK = 0, TB_FAILED = 1, TB_USAGE = 2 };
enum { TB_WHY = 512 }; /* room for one sentence */

/* ---- tables ---- */

typedef enum tb_kind { TB_TEXT, TB_INTEGER, TB_REAL } tb_kind;

typedef struct tb_column {
    const char *name; /* the key in CSV and JSON; the heading in text */
    tb_kind kind;
    const char *unit;    /* "" when there is none */
    const char *meaning; /* one phrase for --schema */
} tb_column;

typedef struct tb_value {
    bool missing; /* an empty CSV field, null in JSON, "-" in text */
    const char *text;
    int64_t integer;
    double real;
} tb_value;

typedef struct tb_table {
    const tb_column *column;
    int columns, rows, room, filled;
    tb_value *cell; /* [rows, columns]; texts are copies */
} tb_table;

void tb_table_start(tb_table *table, const tb_column *column, int columns);
void tb_table_free(tb_table *table);
/* Fill a row from left to right: tb_row, then one call per column. */
void tb_row(tb_table *table);
void tb_text(tb_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tb_integer(tb_table *table, int64_t value);
void tb_real(tb_table *table, double value); /* NaN and infinity count as missing */
void tb_missing(tb_table *table);
const tb_value *tb_at(const tb_table *table, int row, const char *column);
/* What people read of a cell; `text` is room for a number. */
const char *tb_cell_text(const tb_table *table, int row, int column, char *text, size_t size);

void tb_print_table(FILE *out, const tb_table *table);
void tb_print_csv(FILE *out, const tb_table *table);
void tb_print_json_rows(FILE *out, const tb_table *table, int indent);
void tb_print_json_string(FILE *out, const char *text);
void tb_print_json_pair(FILE *out, const char *key, const char *text); /* one line of an object; NULL is null */
void tb_print_json_number(FILE *out, double value);
void tb_print_schema(FILE *out, const char *name, const tb_table *table);
/* Three significant digits or more, without exponents where people read: "0.042", "12.3", "1,299". */
const char *tb_human(char *text, size_t size, double value);
const char *tb_count(char *text, size_t size, int64_t value); /* "400,000" */

/* ---- options ---- */

typedef struct tb_option {
    const char *name;     /* with its dashes */
    const char *argument; /* how --help calls it; NULL: a flag */
    const char *help;
    bool (*apply)(void *options, const char *value, char *why); /* why: what is wrong with value */
} tb_option;

typedef struct tb_command {
    const char *name, *usage, *summary;
    const tb_option *option;
    int options;
    const char *notes; /* closes --help */
} tb_command;

/* An option that only stores something: `what` may use `value`. */
#define TB_TAKE(function, type, field, what)                                                                           \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        (void)value;                                                                                                   \
        (void)why;                                                                                                     \
        ((type *)into)->field = (what);                                                                                \
        return true;                                                                                                   \
    }

/* TB_OK; TB_USAGE after one sentence on stderr; -1 after --help or --version has been answered. */
int tb_parse_options(const tb_command *command, void *options, int argc, char **argv);
bool tb_parse_int(const char *text, int64_t low, int64_t high, int64_t *value, char *why);
bool tb_parse_number(const char *text, int64_t low, int64_t high, int *value, char *why);
bool tb_parse_isa(const char *name, trn_isa *isa, char *why); /* one that this host has */
bool tb_refuse(char *why, const char *text);                  /* false */

/* ---- messages, files, time ---- */

int tb_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3))); /* returns status */
bool tb_colour(FILE *stream);
void tb_progress(const char *format, ...) __attribute__((format(printf, 1, 2))); /* shown at most once a second */
void tb_progress_done(void);
double tb_now(void);                                  /* seconds of a clock that never jumps */
int tb_can_write(const char *flag, const char *path); /* TB_OK for no path, too */
/* Runs write(out, context) on a new file, or on stdout for "-"; TB_USAGE with a sentence when that fails. */
int tb_write_file(const char *flag, const char *path, void (*write)(FILE *out, const void *context),
                  const void *context);

int tb_main_matmul(int argc, char **argv);
int tb_main_convert(int argc, char **argv);
int tb_main_activation(int argc, char **argv);
int tb_main_spec(int argc, char **argv);
int tb_main_sparse(int argc, char **argv);
int tb_main_collective(int argc, char **argv);

void tb_mode_rows(tb_table *table);                     /* starts it, too */
void tb_link_rows(tb_table *table, const bool *wanted); /* wanted: by trn_system; starts it, too */
void tb_print_links(const tb_table *links, const char *system);
void tb_quantity(tb_table *table, double value, const char *unit); /* a cell for people: "190 Tflop/s" */
const char *tb_isa_used(trn_isa isa); /* the name of what kernels run when asked for this one */

#endif /* TRNBENCH_H */

/* app.h - what all programs here do alike: tables, options, messages, files, time.
 * SPDX-License-Identifier: MIT
 *
 *     const char app_name[] = "mxq";
 *     int app_run(int argc, char **argv) { ... app_parse_options(&command, &options, argc - 1, argv + 1) ... }
 *
 * Data goes to stdout, everything else to stderr. Exit status: APP_OK, APP_FAILED (a check failed), APP_USAGE (bad
 * usage or input, after one sentence). What works below a command returns a bool, and with false a sentence in `why`;
 * only the command itself speaks: it returns app_complain(APP_USAGE, "%s", why).
 *
 *     table.c    one kind of table, printed as text, CSV, JSON or its own description
 *     main.c     where every program begins, and ends: what it printed has arrived, or it fails
 *     cli.c      options, --help, --version, messages, progress, memory, time
 *     suggest.c  the name that was meant
 *     completion.h   scripts by which shells complete command lines
 *     files.h    the files a command reads and writes
 *     page.h     the shell of an HTML page
 *     colours.h  their colours
 *     chart.h    pictures of numbers; chart_draw.h is what they are drawn with
 */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <trnmath/trn_cpu.h>
#include <trnmath/trn_numerics.h>

enum { APP_OK = 0, APP_FAILED = 1, APP_USAGE = 2 };
extern const char app_name[];       /* each program defines its own: messages begin with it */
int app_run(int argc, char **argv); /* and this, which main() calls: the exit status */
/* What was printed arrives now: `status`, or else APP_USAGE after one sentence, unless that was said already. main()
 * asks at the end; a program asks before it does what cannot be undone. */
int app_flush(int status);

enum { APP_WHY = 512 }; /* bytes of one sentence */

/* ---- tables ---- */

typedef enum app_kind { APP_TEXT, APP_INTEGER, APP_REAL } app_kind;

typedef struct app_column {
    const char *name; /* the key in CSV and JSON; the heading in text */
    app_kind kind;
    const char *unit;    /* "" when there is none */
    const char *meaning; /* one phrase for --schema */
} app_column;

typedef struct app_value {
    bool missing; /* an empty CSV field, null in JSON, "-" in text */
    const char *text;
    int64_t integer;
    double real;
} app_value;

typedef struct app_table {
    const app_column *column;
    int columns, rows, capacity, filled;
    app_value *cell; /* [rows, columns]; texts are copies */
} app_table;

void app_table_start(app_table *table, const app_column *column, int columns);
void app_table_free(app_table *table);
/* Fill a row from left to right: app_row, then one call per column. */
void app_row(app_table *table);
void app_text(app_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void app_integer(app_table *table, int64_t value);
void app_real(app_table *table, double value); /* NaN and infinity count as missing */
void app_missing(app_table *table);
const app_value *app_at(const app_table *table, int row, const char *column);
/* What people read of a cell; `text` is a buffer for a number. */
const char *app_cell_text(const app_table *table, int row, int column, char *text, size_t size);

void app_print_table(FILE *out, const app_table *table);
void app_print_csv(FILE *out, const app_table *table);
void app_print_csv_text(FILE *out, const char *text); /* one field of it */
void app_print_json_rows(FILE *out, const app_table *table, int indent);
int app_utf8(const char *text); /* the bytes of the character of UTF-8 that text begins with; 0: it is none */
void app_print_json_string(FILE *out, const char *text);
void app_print_json_pair(FILE *out, const char *key, const char *text); /* one line of an object; NULL is null */
void app_print_json_number(FILE *out, double value);
void app_print_schema(FILE *out, const char *name, const app_table *table);
/* Three significant digits or more, without exponents where people read: "0.042", "12.3", "1,299". */
const char *app_human(char *text, size_t size, double value);
const char *app_count(char *text, size_t size, int64_t value); /* "400,000" */

/* ---- options ---- */

/* A row of --help, and what becomes of the value. What is only stored says so itself: APP_SETS and its like, below. */
typedef struct app_option app_option;
struct app_option {
    const char *name;     /* with its dashes; NULL: the row is a heading of --help, its text in help */
    const char *argument; /* how --help calls it; NULL: a flag */
    const char *help;
    bool (*apply)(void *options, const char *value, char *why); /* why: what is wrong with value; NULL: stored */
    bool (*store)(const app_option *o, void *at, const char *value, char *why);
    size_t at; /* from the beginning of the options */
    int64_t low;
    uint64_t high;
    double least, most; /* of a real number */
};

typedef struct app_command {
    const char *name, *usage, *summary;
    const app_option *option;
    int options;
    const char *notes;                                           /* closes --help */
    bool (*operand)(void *options, const char *word, char *why); /* NULL: there are none */
} app_command;

/* A subcommand. run: argv without the program's and its own name; an exit status. */
typedef struct app_branch {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} app_branch;

/* Runs the one that argv[1] names; --help is answered by help(), and `missing` is the sentence when there is none. */
int app_run_branch(const app_branch *branch, int branches, int argc, char **argv, int (*help)(void),
                   const char *missing);
/* Keeps the nearer to `word` of `name` and the best so far: at most two letters away, fewer than half of it. */
typedef struct app_nearest {
    const char *word, *name;
    int distance;
} app_nearest;
void app_near(app_nearest *nearest, const char *name);

/* The end of a row whose value is stored in a field of that type, within bounds:
 *     { "--json", "FILE", "everything as JSON", APP_TAKES_TEXT(options, files.json) } */
#define APP_SETS(type, field) .store = app_store_true, .at = APP_AT(type, field, bool)
#define APP_CLEARS(type, field) .store = app_store_false, .at = APP_AT(type, field, bool)
#define APP_TAKES_TEXT(type, field) .store = app_store_text, .at = APP_AT(type, field, const char *)
#define APP_TAKES_INT(type, field, least, most)                                                                        \
    .store = app_store_int, .at = APP_AT(type, field, int), .low = (least), .high = (most)
#define APP_TAKES_INT64(type, field, least, most)                                                                      \
    .store = app_store_int64, .at = APP_AT(type, field, int64_t), .low = (least), .high = (most)
#define APP_TAKES_UINT64(type, field, most)                                                                            \
    .store = app_store_uint64, .at = APP_AT(type, field, uint64_t), .high = (most)
#define APP_TAKES_REAL(type, field, low, high)                                                                         \
    .store = app_store_real, .at = APP_AT(type, field, double), .least = (low), .most = (high)
#define APP_AT(type, field, kind)                                                                                      \
    _Generic(((type *)0)->field, kind : offsetof(type, field)) /* no other kind compiles */

bool app_store_true(const app_option *o, void *at, const char *value, char *why);
bool app_store_false(const app_option *o, void *at, const char *value, char *why);
bool app_store_text(const app_option *o, void *at, const char *value, char *why);
bool app_store_int(const app_option *o, void *at, const char *value, char *why);
bool app_store_int64(const app_option *o, void *at, const char *value, char *why);
bool app_store_uint64(const app_option *o, void *at, const char *value, char *why);
bool app_store_real(const app_option *o, void *at, const char *value, char *why);

/* What the option does with a value, in the program's options. */
bool app_apply(const app_option *o, void *options, const char *value, char *why);

/* An option that is read by a function: APP_READ(take_top, settings, app_parse_number(value, 0, 100, &o->top, why)),
 * where o is the settings. */
#define APP_READ(function, type, read)                                                                                 \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        type *const o = (type *)into;                                                                                  \
        return read;                                                                                                   \
    }

/* Reads both "--flag value" and "--flag=value"; what does not begin with a dash, and "-", is an operand. argv without
 * the program's name. APP_OK; APP_USAGE after one sentence on stderr; -1 after --help or --version was answered. */
int app_parse_options(const app_command *command, void *options, int argc, char **argv);
bool app_parse_int(const char *text, int64_t low, int64_t high, int64_t *value, char *why);
bool app_parse_number(const char *text, int64_t low, int64_t high, int *value, char *why);
bool app_parse_uint64(const char *text, uint64_t high, uint64_t *value, char *why);
bool app_parse_real(const char *text, double low, double high, double *value, char *why); /* infinite: no bound */
/* The number of one of these words; -1 after a sentence that lists them. */
int app_parse_word(const char *text, const char *const *word, int words, char *why);
/* For what is looked up by other means: the words that it would take, for completion. They are not copied. */
void app_offer(const char *const *word, int words);
void app_offer_systems(void);
void app_offer_formats(void);
/* Hands over each item between commas, until one is refused; an item does not outlive its call. */
bool app_parse_list(const char *list, bool (*take)(void *into, const char *item, char *why), void *into, char *why);
bool app_parse_isa(const char *name, trn_isa *isa, char *why);          /* one that this host has */
bool app_parse_format(const char *name, trn_format *format, char *why); /* any spelling of it */
bool app_read_format(const char *name, trn_format *format, char *why);  /* the same; the caller offers names */
bool app_parse_numerics(const char *text, trn_numerics *numerics, char *why);
bool app_check_isa(char *why);         /* does this host have what the environment's TRN_ISA names, if it does? */
const char *app_isa_used(trn_isa isa); /* the name of what kernels run when .isa is this */
/* why = the sentence; false. */
bool app_refuse(char *why, const char *text);
bool app_fail(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- messages, memory, time ---- */

/* What a command ends with when the library refused: APP_USAGE when memory was short, else APP_FAILED. */
int app_refused(trn_status status);
/* Is it TRN_OK? Where a refusal is an answer, short memory must not pass for one: it ends the program. error: NULL, or
 * the call's. */
bool app_worked(trn_status status, const trn_error *error);
int app_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3))); /* returns status */
/* printf for people, on a terminal or in a file's comments: each text in it is shown, as io/say.h has it. */
void app_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool app_colour(FILE *stream);
void app_progress(const char *format, ...) __attribute__((format(printf, 1, 2))); /* shown at most once a second */
void app_progress_done(void);
double app_now(void); /* seconds of a clock that never jumps */
/* Memory, zeroed, and a realloc of it; where there is none, one sentence and the end. */
void *app_memory(size_t count, size_t size);
void *app_resize(void *memory, size_t count, size_t size);

/* fopen for reading, of a file that io_reading() knows. NULL, and errno, when it cannot be opened; where it is memory
 * that is short, the end. */
FILE *app_open(const char *path);

#endif /* APP_H */

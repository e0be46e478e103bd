/* cli.c - options, messages, progress, memory, time.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "completion.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <trnmath/trn_base.h>

#include "io/io.h"

/* ---- messages ---- */

static bool progress_shown; /* a line without its newline stands on the terminal */

/* One line, whatever names it quotes: those of a file must not steer the terminal. */
int app_complain(int status, const char *format, ...)
{
    char text[IO_SAID_MOST];
    va_list list;
    app_progress_done();
    va_start(list, format);
    io_say_list(text, sizeof text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "%s: %s\n", app_name, text);
    return status;
}

void app_say(FILE *out, const char *format, ...)
{
    char text[IO_SAID_MOST];
    va_list list;
    va_start(list, format);
    io_say_list(text, sizeof text, IO_SAID, format, list);
    va_end(list);
    fputs(text, out);
}

/* What is wrong with standard output. A stream keeps that something failed, not what: the next byte fails as well. */
static int output_error(void)
{
    errno = 0;
    if (ferror(stdout)) return write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    return fflush(stdout) == 0 ? 0 : errno ? errno : EIO;
}

int app_flush(int status)
{
    static bool told;
    const int error = output_error();
    if (!error) return status;
    if (!told && status != APP_USAGE)
        app_complain(APP_USAGE, "standard output cannot be written (%s)", strerror(error));
    told = true;
    return APP_USAGE;
}

int app_refused(trn_status status) { return status == TRN_ENOSPC ? APP_USAGE : APP_FAILED; }

bool app_worked(trn_status status, const trn_error *error)
{
    if (status == TRN_ENOSPC) exit(app_complain(APP_USAGE, "%s", error ? error->text : "there is not enough memory"));
    return status == TRN_OK;
}

/* A terminal that knows how to go back in a line? */
static bool steerable(FILE *stream)
{
    const char *term = getenv("TERM");
    return term && strcmp(term, "dumb") != 0 && isatty(fileno(stream));
}

bool app_colour(FILE *stream)
{
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && steerable(stream);
}

double app_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void app_progress(const char *format, ...)
{
    static double start, last;
    const double now = app_now();
    if (start == 0) start = last = now;
    if (now - last < 1.0) return;
    last = now;
    const bool terminal = steerable(stderr);
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(text, sizeof text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, terminal ? "\r\033[K%3.0f s  %s" : "%3.0f s  %s\n", now - start, text);
    progress_shown = terminal;
    fflush(stderr);
}

void app_progress_done(void)
{
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

static void *need(void *memory, size_t count, size_t size)
{
    if (!memory) exit(app_complain(APP_USAGE, "there is not enough memory for %zu times %zu bytes", count, size));
    return memory;
}

void *app_memory(size_t count, size_t size) { return need(calloc(count ? count : 1, size), count, size); }

void *app_resize(void *memory, size_t count, size_t size)
{
    return need(count < SIZE_MAX / size ? realloc(memory, count * size) : NULL, count, size);
}

/* ---- options ---- */

static void print_option(const char *name, const char *argument, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", name, argument ? " " : "", argument ? argument : "");
    printf("  %-24s  ", left);
    for (const char *at = help; *at; at++) { /* a newline in the help continues in its column */
        putchar(*at);
        if (*at == '\n') printf("%28s", "");
    }
    putchar('\n');
}

static void print_help(const app_command *command)
{
    printf("%s\n\n%s\n\noptions:\n", command->usage, command->summary);
    for (int i = 0; i < command->options; i++)
        if (command->option[i].name)
            print_option(command->option[i].name, command->option[i].argument, command->option[i].help);
        else
            printf("%s\n", command->option[i].help);
    print_option("--help", NULL, "this text");
    print_option("--version", NULL, "the version");
    if (command->notes) printf("\n%s\n", command->notes);
}

static const app_option *find_option(const app_command *command, const char *word, size_t length)
{
    for (int i = 0; i < command->options; i++)
        if (command->option[i].name && strlen(command->option[i].name) == length &&
            memcmp(command->option[i].name, word, length) == 0)
            return &command->option[i];
    return NULL;
}

/* APP_USAGE, after the sentence about a word that begins with a dash. */
static int unknown_option(const app_command *command, const char *word, size_t length)
{
    char name[64];
    app_nearest near = { name, NULL, 0 };
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    for (int i = 0; i < command->options; i++)
        if (command->option[i].name) app_near(&near, command->option[i].name);
    app_near(&near, "--help");
    app_near(&near, "--version");
    if (near.name && word[0] == '-')
        return app_complain(APP_USAGE, "%s is not an option of %s; did you mean %s?", word, command->name, near.name);
    return app_complain(APP_USAGE, "%s is not an option of %s; %s --help lists them", word, command->name,
                        command->name);
}

bool app_apply(const app_option *o, void *options, const char *value, char *why)
{
    return o->apply ? o->apply(options, value, why) : o->store(o, (char *)options + o->at, value, why);
}

bool app_store_true(const app_option *o, void *at, const char *value, char *why)
{
    (void)o, (void)value, (void)why;
    return *(bool *)at = true;
}

bool app_store_false(const app_option *o, void *at, const char *value, char *why)
{
    (void)o, (void)value, (void)why;
    *(bool *)at = false;
    return true;
}

bool app_store_text(const app_option *o, void *at, const char *value, char *why)
{
    (void)o, (void)why;
    *(const char **)at = value;
    return true;
}

bool app_store_int(const app_option *o, void *at, const char *value, char *why)
{
    return app_parse_number(value, o->low, (int64_t)o->high, at, why);
}

bool app_store_int64(const app_option *o, void *at, const char *value, char *why)
{
    return app_parse_int(value, o->low, (int64_t)o->high, at, why);
}

bool app_store_uint64(const app_option *o, void *at, const char *value, char *why)
{
    return app_parse_uint64(value, o->high, at, why);
}

bool app_store_real(const app_option *o, void *at, const char *value, char *why)
{
    return app_parse_real(value, o->least, o->most, at, why);
}

/* Both "--flag value" and "--flag=value"; what does not begin with a dash, and "-" itself, is an operand. */
int app_parse_options(const app_command *command, void *options, int argc, char **argv)
{
    if (app_completion_takes(command, options)) return -1;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *equals = strchr(word, '=');
        const size_t length = equals ? (size_t)(equals - word) : strlen(word);
        char why[APP_WHY] = "";
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return print_help(command), -1;
        if (strcmp(word, "--version") == 0) return printf("%s %s\n", app_name, TRN_VERSION), -1;
        if (command->operand && (word[0] != '-' || !word[1])) {
            if (!command->operand(options, word, why)) return app_complain(APP_USAGE, "%s: %s", word, why);
            continue;
        }
        const app_option *option = find_option(command, word, length);
        if (!option) return unknown_option(command, word, length);
        if (!option->argument && equals) return app_complain(APP_USAGE, "%s takes no value", option->name);
        if (option->argument && !equals && i + 1 == argc)
            return app_complain(APP_USAGE, "%s needs a value: %s", option->name, option->argument);
        const char *value = !option->argument ? "" : equals ? equals + 1 : argv[++i];
        if (!app_apply(option, options, value, why))
            return app_complain(APP_USAGE, "%s %s: %s", option->name, value, why);
    }
    return APP_OK;
}

int app_run_branch(const app_branch *branch, int branches, int argc, char **argv, int (*help)(void),
                   const char *missing)
{
    const char *word = argc > 1 ? argv[1] : "";
    app_nearest near = { word, NULL, 0 };
    if (app_completion_branches(branch, branches)) return APP_OK;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return help();
    if (strcmp(word, "--version") == 0) return printf("%s %s\n", app_name, TRN_VERSION), APP_OK;
    for (int i = 0; i < branches; i++) {
        if (strcmp(word, branch[i].name) == 0) return branch[i].run(argc - 2, argv + 2);
        app_near(&near, branch[i].name);
    }
    if (!*word) return app_complain(APP_USAGE, "%s", missing);
    if (near.name) return app_complain(APP_USAGE, "%s is not a command; did you mean %s?", word, near.name);
    return app_complain(APP_USAGE, "%s is not a command; %s --help lists them", word, app_name);
}

bool app_parse_int(const char *text, int64_t low, int64_t high, int64_t *value, char *why)
{
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (errno == 0 && *text && *end == '\0' && n >= low && n <= high) {
        *value = n;
        return true;
    }
    return app_fail(why, "expected a whole number from %lld to %lld", (long long)low, (long long)high);
}

bool app_parse_number(const char *text, int64_t low, int64_t high, int *value, char *why)
{
    int64_t number;
    if (!app_parse_int(text, low, high, &number, why)) return false;
    *value = (int)number;
    return true;
}

bool app_parse_uint64(const char *text, uint64_t high, uint64_t *value, char *why)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (errno == 0 && *text && !strchr(text, '-') && *end == '\0' && n <= high) return *value = n, true;
    if (high == UINT64_MAX) return app_refuse(why, "expected a whole number");
    return app_fail(why, "expected a whole number from 0 to %llu", (unsigned long long)high);
}

bool app_parse_real(const char *text, double low, double high, double *value, char *why)
{
    char *end;
    errno = 0;
    const double x = strtod(text, &end);
    if (errno == 0 && *text && !*end && isfinite(x) && x >= low && x <= high) return *value = x, true;
    if (isinf(low)) return app_refuse(why, "expected a number");
    if (isinf(high)) return app_fail(why, "expected a number, %g or more", low);
    return app_fail(why, "expected a number from %g to %g", low, high);
}

int app_parse_word(const char *text, const char *const *word, int words, char *why)
{
    size_t used = (size_t)snprintf(why, APP_WHY, "expected ");
    app_offer(word, words);
    for (int i = 0; i < words; i++) {
        const char *before = i == 0 ? "" : i + 1 < words ? ", " : " or ";
        if (strcmp(text, word[i]) == 0) return i;
        if (used < APP_WHY) used += (size_t)snprintf(why + used, APP_WHY - used, "%s%s", before, word[i]);
    }
    return -1;
}

bool app_parse_list(const char *list, bool (*take)(void *into, const char *item, char *why), void *into, char *why)
{
    char text[256];
    if (strlen(list) >= sizeof text) return app_refuse(why, "the list is too long");
    snprintf(text, sizeof text, "%s", list);
    for (char *item = text, *next; item; item = next) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        if (!take(into, item, why)) return false;
    }
    return true;
}

bool app_refuse(char *why, const char *text) { return app_fail(why, "%s", text); }

bool app_fail(char *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    io_say_list(why, APP_WHY, APP_WHY, format, list);
    va_end(list);
    return false;
}

bool app_read_format(const char *name, trn_format *format, char *why)
{
    trn_error error;
    return trn_format_read(format, name, &error) == TRN_OK || app_refuse(why, error.text);
}

bool app_parse_format(const char *name, trn_format *format, char *why)
{
    app_offer_formats();
    return app_read_format(name, format, why);
}

bool app_parse_numerics(const char *text, trn_numerics *numerics, char *why)
{
    trn_error error;
    return trn_numerics_read(numerics, text, &error) == TRN_OK || app_refuse(why, error.text);
}

bool app_parse_isa(const char *name, trn_isa *isa, char *why)
{
    const char *known[TRN_ISA_COUNT]; /* auto is the last */
    for (int i = 0; i < TRN_ISA_COUNT; i++) known[i] = trn_isa_text((trn_isa)((i + 1) % TRN_ISA_COUNT));
    const int at = app_parse_word(name, known, TRN_ISA_COUNT, why);
    if (at < 0) return false;
    const trn_isa found = (trn_isa)((at + 1) % TRN_ISA_COUNT);
    if (found != TRN_ISA_AUTO && !trn_isa_supported(found)) return app_refuse(why, "this host does not have it");
    *isa = found;
    return true;
}

bool app_check_isa(char *why)
{
    if (trn_isa_from_name(trn_isa_name()) != TRN_ISA_COUNT) return true;
    return app_fail(why, "TRN_ISA=%s is unknown or not available on this host", getenv("TRN_ISA"));
}

const char *app_isa_used(trn_isa isa) { return isa == TRN_ISA_AUTO ? trn_isa_name() : trn_isa_text(isa); }

/* Its caller has told io_reading(), or it is below /proc/ or /sys/. */
FILE *app_open(const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in && errno == ENOMEM) exit(app_complain(APP_USAGE, "there is not enough memory to open %s", path));
    return in;
}

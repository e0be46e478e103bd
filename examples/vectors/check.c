/* check.c - holds an implementation of Trainium's and OCP's arithmetic against trnmath-vectors. One file, C11 or C++17,
 * on nothing but the C library; it needs no trnmath.
 * SPDX-License-Identifier: MIT
 *
 *     cc -std=c11 -O2 check.c -o check && ./check FOLDER                        the table at the end of this comment
 *     cc -std=c11 -O2 -DCHECK_WITH='"mine.c"' check.c -o check && ./check FOLDER       your own
 *
 * mine.c has a function for each operation that you have, and a table of them:
 *
 *     static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
 *     {
 *         if (!check_is(file, "to", "bfloat16") || !check_is(file, "rounding", "nearest_even")) return CHECK_NOT_MINE;
 *         out[0] = my_bfloat16((uint32_t)in[0]);
 *         return CHECK_DONE;
 *     }
 *     static const check_operation check_table[] = { { "encode", encode }, { NULL, NULL } };
 *
 * A function gets the file, whose head says what is asked (check_value gives the text of any of its lines), the words
 * of a vector that go in, and room for those that come out, in the order of the head's lines "in" and "out". Vectors
 * and files that are not yours, and operations that the table does not have, are skipped and counted.
 *
 * Exit status: 0 all right, 1 something is wrong, 2 bad usage, a bad file, or nothing was checked.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_DONE = 1, CHECK_NOT_MINE = 0 };
enum { CHECK_KEYS = 96, CHECK_COLUMNS = 8, CHECK_WORDS = 4096, CHECK_CASES = 32, CHECK_RANGES = 4 };

typedef struct check_columns { /* "a[128]/4 b[128]/4 c/8": three columns of 257 words */
    char name[CHECK_COLUMNS][32];
    int count[CHECK_COLUMNS], digits[CHECK_COLUMNS];
    int columns, words;
} check_columns;

typedef struct check_file {
    const char *path;
    const char *key[CHECK_KEYS], *value[CHECK_KEYS];
    int keys;
    check_columns in, out;
    uint64_t nan_first[CHECK_RANGES], nan_last[CHECK_RANGES];
    int nans;
} check_file;

typedef int check_function(const check_file *file, const uint64_t *in, uint64_t *out);
typedef struct check_operation {
    const char *operation;
    check_function *run;
} check_operation;

/* The text of a line of the head, "" where there is none; is it this text; its number, or `otherwise`. */
static const char *check_value(const check_file *file, const char *key)
{
    for (int i = 0; i < file->keys; i++)
        if (strcmp(file->key[i], key) == 0) return file->value[i];
    return "";
}

static inline int check_is(const check_file *file, const char *key, const char *text)
{
    return strcmp(check_value(file, key), text) == 0;
}

static inline long check_number(const check_file *file, const char *key, long otherwise)
{
    char *end;
    const char *text = check_value(file, key);
    const long number = strtol(text, &end, 10);
    return *text && !*end ? number : otherwise;
}

#ifdef CHECK_WITH
#include CHECK_WITH
#else
/* What everybody has: bfloat16 is the upper half of a binary32 number. */
static int decode_bfloat16(const check_file *file, const uint64_t *in, uint64_t *out)
{
    if (!check_is(file, "from", "bfloat16")) return CHECK_NOT_MINE;
    const int nan = (in[0] & 0x7fff) > 0x7f80;
    out[0] = nan ? (in[0] & 0x8000) << 16 | 0x7fc00000 : in[0] << 16;
    return CHECK_DONE;
}
static const check_operation check_table[] = { { "decode", decode_bfloat16 }, { NULL, NULL } };
#endif

/* ---- what is counted ---- */

typedef struct check_case {
    const char *name;
    long asked, wrong;
} check_case;

typedef struct check_result {
    long vectors, right, wrong, skipped;
    long nan; /* of the wrong ones: a NaN of other bits */
    check_case cases[CHECK_CASES];
    int count;
    char first[512]; /* the first that is wrong */
    const char *first_case;
    long first_line;
} check_result;

static struct check_options {
    const char *only;
    int any_nan, csv, all;
} options;

static void stop(const char *path, long line, const char *text)
{
    if (line)
        fprintf(stderr, "check: %s, line %ld: %s\n", path, line, text);
    else
        fprintf(stderr, "check: %s: %s\n", path, text);
    exit(2);
}

/* ---- reading ---- */

/* The bytes of a file with a zero behind them. */
static char *read_all(const char *path)
{
    size_t size = 0, room = 1 << 16;
    char *text = (char *)malloc(room);
    FILE *file = fopen(path, "rb");
    if (!file) stop(path, 0, strerror(errno));
    while (text) {
        size += fread(text + size, 1, room - size - 1, file);
        if (size < room - 1) break;
        char *more = (char *)realloc(text, room *= 2);
        if (!more) free(text);
        text = more;
    }
    if (!text) stop(path, 0, "there is no memory to read it");
    if (ferror(file)) stop(path, 0, "it cannot be read");
    fclose(file);
    if (memchr(text, 0, size)) stop(path, 0, "it has a zero byte, so it is no text");
    text[size] = '\0';
    return text;
}

/* Cuts off the first line; NULL at the end. */
static char *next_line(char **rest)
{
    char *line = *rest;
    if (!*line) return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = '\0';
    const size_t size = strlen(line);
    if (size && line[size - 1] == '\r') line[size - 1] = '\0';
    return line;
}

static int hexadecimal(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* Exactly `digits` digits, then a space or the end; what follows, or NULL. */
static const char *read_word(const char *text, int digits, uint64_t *word)
{
    *word = 0;
    for (int i = 0; i < digits; i++, text++) {
        const int digit = hexadecimal(*text);
        if (digit < 0) return NULL;
        *word = *word << 4 | (uint64_t)digit;
    }
    return *text == ' ' || *text == '\0' ? text : NULL;
}

static void read_columns(const check_file *file, const char *key, check_columns *c)
{
    const char *at = check_value(file, key);
    while (*at) {
        int used = 0, count = 1, digits = 0;
        char name[32];
        if (sscanf(at, "%31[a-z_0-9][%d]/%d%n", name, &count, &digits, &used) != 3) {
            count = 1;
            if (sscanf(at, "%31[a-z_0-9]/%d%n", name, &digits, &used) != 2) used = 0;
        }
        if (!used || (at[used] && at[used] != ' ') || count < 1 || count > CHECK_WORDS || digits < 1 || digits > 16 ||
            c->columns == CHECK_COLUMNS || c->words + count > CHECK_WORDS)
            stop(file->path, 0, "its columns are not NAME/DIGITS or NAME[COUNT]/DIGITS with a space between");
        strcpy(c->name[c->columns], name);
        c->count[c->columns] = count;
        c->digits[c->columns++] = digits;
        c->words += count;
        at += used + (at[used] == ' ');
    }
    if (!c->words) stop(file->path, 0, "its head does not say what goes in and what comes out");
}

/* The words of the columns with a space between, and before the first if `behind` something. */
static const char *read_words(const char *text, const check_columns *c, uint64_t *word, int behind)
{
    for (int column = 0; column < c->columns; column++)
        for (int i = 0; i < c->count[column]; i++, behind = 1) {
            if (behind && *text++ != ' ') return NULL;
            text = read_word(text, c->digits[column], word++);
            if (!text) return NULL;
        }
    return text;
}

static void read_nans(check_file *file)
{
    unsigned long long first, last;
    int used;
    const char *at = check_value(file, "nan");
    if (strcmp(at, "none") == 0) return;
    while (file->nans < CHECK_RANGES && sscanf(at, "%llx-%llx%n", &first, &last, &used) == 2) {
        file->nan_first[file->nans] = first;
        file->nan_last[file->nans++] = last;
        at += used;
    }
}

/* "# key: value" becomes a line of the head. */
static int head_line(check_file *file, char *line)
{
    char *colon = strstr(line, ": ");
    if (strncmp(line, "# ", 2) != 0 || !colon || strncmp(line, "# case: ", 8) == 0) return 0;
    if (file->keys == CHECK_KEYS) stop(file->path, 0, "its head has too many lines");
    *colon = '\0';
    file->key[file->keys] = line + 2;
    file->value[file->keys++] = colon + 2;
    return 1;
}

/* ---- checking ---- */

static int is_nan(const check_file *file, uint64_t code)
{
    for (int i = 0; i < file->nans; i++)
        if (code >= file->nan_first[i] && code <= file->nan_last[i]) return 1;
    return 0;
}

/* 0 equal; 1 a NaN of other bits; 2 another result. */
static int compare(const check_file *file, const uint64_t *want, const uint64_t *got)
{
    int worst = 0;
    for (int i = 0; i < file->out.words; i++)
        if (want[i] != got[i]) {
            const int how = is_nan(file, want[i]) && is_nan(file, got[i]) ? 1 : 2;
            if (how > worst) worst = how;
        }
    return worst;
}

static size_t put_word(char *text, size_t at, size_t size, const check_columns *c, const uint64_t *word, int i)
{
    int column = 0, first = 0;
    while (i - first >= c->count[column]) first += c->count[column++];
    const int n =
        at < size ? snprintf(text + at, size - at, " %0*llx", c->digits[column], (unsigned long long)word[i]) : 0;
    return at + (size_t)n;
}

/* "x 3f800000, expected 3f80, got 3f81": at most four words of each, the first that differ among them. */
static void tell(char *text, size_t size, const check_file *file, const uint64_t *in, const uint64_t *want,
                 const uint64_t *got)
{
    int from = 0;
    size_t at = 0;
    while (from + 1 < file->out.words && want[from] == got[from]) from++;
    for (int i = 0; i < file->in.words && i < 4; i++) at = put_word(text, at, size, &file->in, in, i);
    if (file->in.words > 4 && at < size) at += (size_t)snprintf(text + at, size - at, " ...");
    if (at < size) at += (size_t)snprintf(text + at, size - at, ": expected");
    at = put_word(text, at, size, &file->out, want, from);
    if (at < size) at += (size_t)snprintf(text + at, size - at, ", got");
    put_word(text, at, size, &file->out, got, from);
}

static check_case *case_of(check_result *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->cases[i].name, name) == 0) return &r->cases[i];
    if (r->count == CHECK_CASES) return &r->cases[CHECK_CASES - 1];
    r->cases[r->count].name = name;
    return &r->cases[r->count++];
}

static void count_one(check_result *r, const check_file *file, const char *name, long line, const uint64_t *in,
                      const uint64_t *want, const uint64_t *got)
{
    char text[sizeof r->first];
    const int how = compare(file, want, got), wrong = how == 2 || (how == 1 && !options.any_nan);
    check_case *c = case_of(r, name);
    c->asked++;
    c->wrong += wrong;
    r->right += !wrong;
    r->wrong += wrong;
    r->nan += wrong && how == 1;
    if (!wrong || (r->wrong > 1 && !options.all)) return;
    tell(text, sizeof text, file, in, want, got);
    if (options.all) printf("%s:%ld:%s (%s)\n", file->path, line, text, name);
    if (r->wrong > 1) return;
    memcpy(r->first, text, sizeof text);
    r->first_case = name;
    r->first_line = line;
}

/* The vectors of a file, from `line` on. */
static void check_vectors(const check_file *file, check_function *run, char *line, char *rest, long number,
                          check_result *r)
{
    static uint64_t in[CHECK_WORDS], want[CHECK_WORDS], got[CHECK_WORDS];
    const char *name = "all";
    for (; line; line = next_line(&rest), number++) {
        if (strncmp(line, "# case: ", 8) == 0) {
            name = line + 8;
            continue;
        }
        const char *at = read_words(line, &file->in, in, 0);
        if (!at || strncmp(at, " ->", 3) != 0 || !(at = read_words(at + 3, &file->out, want, 1)) || *at)
            stop(file->path, number, "it is not a vector of the columns that the head names");
        r->vectors++;
        memset(got, 0, sizeof *got * (size_t)file->out.words);
        if (run && run(file, in, got) == CHECK_DONE)
            count_one(r, file, name, number, in, want, got);
        else
            r->skipped++;
    }
    if (r->vectors != check_number(file, "vectors", -1))
        stop(file->path, 0, "it does not have as many vectors as its head says, so it is cut off or changed");
}

static check_function *function_of(const char *operation)
{
    for (const check_operation *o = check_table; o->operation; o++)
        if (strcmp(o->operation, operation) == 0) return o->run;
    return NULL;
}

/* ---- what is printed ---- */

static void print_csv(const check_file *file, const check_result *r)
{
    for (int i = 0; i < r->count; i++)
        printf("%s,%s,\"%s\",%ld,%ld\n", check_value(file, "name"), check_value(file, "operation"), r->cases[i].name,
               r->cases[i].asked, r->cases[i].wrong);
}

static void print_text(const check_file *file, const check_result *r)
{
    printf("%-50s %7ld right %7ld wrong", check_value(file, "name"), r->right, r->wrong);
    if (r->skipped) printf(" %7ld skipped", r->skipped);
    putchar('\n');
    if (!r->wrong) return;
    printf("    first: line %ld:%s (%s)\n    wrong:", r->first_line, r->first, r->first_case);
    const char *comma = "";
    for (int i = 0; i < r->count; i++)
        if (r->cases[i].wrong) {
            printf("%s %ld of %ld %s", comma, r->cases[i].wrong, r->cases[i].asked, r->cases[i].name);
            comma = ";";
        }
    if (r->nan) printf("; %ld of them a NaN with other bits", r->nan);
    putchar('\n');
}

/* ---- files and folders ---- */

static struct check_totals {
    long files, right_files, wrong_files, skipped_files, right, wrong, skipped;
} totals;

static void check_path(const char *path)
{
    static check_file file;
    static check_result r;
    memset(&file, 0, sizeof file);
    memset(&r, 0, sizeof r);
    file.path = path;
    char *text = read_all(path), *rest = text, *line = next_line(&rest);
    long number = 2;
    if (!line || strcmp(line, "# trnmath-vectors 1") != 0)
        stop(path, 0, "its first line is not \"# trnmath-vectors 1\", so it is no file of vectors");
    while ((line = next_line(&rest)) != NULL && head_line(&file, line)) number++;
    read_columns(&file, "in", &file.in);
    read_columns(&file, "out", &file.out);
    read_nans(&file);
    check_vectors(&file, function_of(check_value(&file, "operation")), line, rest, number, &r);
    totals.files++;
    totals.right += r.right;
    totals.wrong += r.wrong;
    totals.skipped += r.skipped;
    if (r.wrong)
        totals.wrong_files++;
    else if (r.right)
        totals.right_files++;
    else
        totals.skipped_files++;
    if (options.csv)
        print_csv(&file, &r);
    else if (r.right + r.wrong)
        print_text(&file, &r);
    free(text);
}

static char *join(const char *folder, const char *name)
{
    char *path = (char *)malloc(strlen(folder) + strlen(name) + 2);
    if (!path) stop(folder, 0, "there is no memory for its name");
    sprintf(path, "%s/%s", folder, name);
    return path;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A folder names its files in SHA256SUMS: a sum, two spaces, the name. */
static void check_folder(const char *folder)
{
    char *index = join(folder, "SHA256SUMS"), *text = read_all(index), *rest = text, *line;
    for (long number = 1; (line = next_line(&rest)) != NULL; number++) {
        if (strspn(line, "0123456789abcdef") != 64 || strncmp(line + 64, "  ", 2) != 0 || !line[66])
            stop(index, number, "it is not a sum, two spaces and a file's name");
        const char *name = line + 66;
        if (!ends_with(name, ".txt") || (options.only && !strstr(name, options.only))) continue;
        char *path = join(folder, name);
        check_path(path);
        free(path);
    }
    free(text);
    free(index);
}

static void usage(FILE *to)
{
    fputs("usage: check [--only TEXT] [--any-nan] [--all] [--csv] FOLDER | FILE.txt ...\n"
          "  --only TEXT   files whose names have it\n"
          "  --any-nan     a NaN is right whatever its bits\n"
          "  --all         every wrong vector, not only the first of a file\n"
          "  --csv         file,operation,case,asked,wrong\n",
          to);
}

static int option(int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    if (strcmp(word, "--any-nan") == 0)
        options.any_nan = 1;
    else if (strcmp(word, "--csv") == 0)
        options.csv = 1;
    else if (strcmp(word, "--all") == 0)
        options.all = 1;
    else if (strcmp(word, "--only") == 0 && *i + 1 < argc)
        options.only = argv[++*i];
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int given = 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return usage(stdout), 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            if (!option(argc, argv, &i)) return usage(stderr), 2;
            continue;
        }
        if (options.csv && !given) puts("file,operation,case,asked,wrong");
        given = 1;
        if (ends_with(argv[i], ".txt"))
            check_path(argv[i]);
        else
            check_folder(argv[i]);
    }
    if (!given) return usage(stderr), 2;
    fprintf(options.csv ? stderr : stdout,
            "%ld files: %ld right, %ld wrong, %ld skipped; vectors: %ld right, %ld wrong, %ld skipped\n", totals.files,
            totals.right_files, totals.wrong_files, totals.skipped_files, totals.right, totals.wrong, totals.skipped);
    if (totals.right + totals.wrong == 0) {
        fputs("check: nothing was checked: no function of the table took a vector\n", stderr);
        return 2;
    }
    return totals.wrong != 0;
}

/* nccom.h - reads what nccom-test prints, its tables and its JSON, into one row for each size that was measured.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/nccom.h"
 *     io_nccom all = { .defaults = { .op = TRN_ALL_REDUCE, .wire = TRN_F32 } };
 *     if (!io_nccom_read("log.txt", &all, why)) return app_complain(APP_USAGE, "%s", why);
 *     ...
 *     free(all.row);
 *
 * DOES: tables with the columns size(B), type and time(us) or time:avg(us) (else the first time: there is), several in
 *     one file; a row whose size or time no machine can have is refused with its line; a line with a command, such as
 *     "nccom-test -r 32 -d fp32 allg", tells the rows below it the operation, the ranks and the instances; JSON of
 *     --report-to-json-file. A line "Failure ..." and what stands around tables is
 *     skipped.
 * DOES NOT: replica groups, streams of several operations at once. Rows below a command of another operation, such as
 *     alltoallv, are left out.
 *
 * CONTENTS
 *     io_nccom_row, io_nccom   what was measured
 *     io_nccom_read            a file, or standard input when its name is "-"
 *
 * KNOWN FROM: nccom-test.rst of the Neuron SDK, which prints both forms and all columns. Needs cJSON (libcjson-dev).
 */
#ifndef IO_NCCOM_H
#define IO_NCCOM_H

#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_collective_cost.h>

#include "mapped.h"
#include "shown.h"
#if defined(HAVE_CJSON)
#include "json.h"
#endif

typedef struct io_nccom_row {
    trn_collective op;
    trn_format wire;
    int ranks, instances; /* 0: nobody said */
    int64_t bytes;
    double us;
} io_nccom_row;

typedef struct io_nccom {
    io_nccom_row defaults; /* for rows that no command stands above */
    io_nccom_row *row;     /* free() it */
    int rows;
} io_nccom;

enum { IO_NCCOM_ROWS = 100000, IO_NCCOM_WORDS = 64, IO_NCCOM_FILE = 64 << 20 };

/* ---- words ---- */

typedef struct io_nccom_word {
    const char *at;
    size_t length;
} io_nccom_word;

IO_FN bool io_nccom_is(io_nccom_word w, const char *text)
{
    return strlen(text) == w.length && memcmp(w.at, text, w.length) == 0;
}

/* The words of a line; those beyond IO_NCCOM_WORDS do not count. */
IO_FN int io_nccom_split(const char *line, size_t length, io_nccom_word *word)
{
    int words = 0;
    for (size_t at = 0; at < length && words < IO_NCCOM_WORDS;) {
        while (at < length && (unsigned char)line[at] <= ' ') at++;
        const size_t from = at;
        while (at < length && (unsigned char)line[at] > ' ') at++;
        if (at > from) word[words++] = (io_nccom_word){ line + from, at - from };
    }
    return words;
}

IO_FN bool io_nccom_number(io_nccom_word w, double *value)
{
    char text[40], *end;
    if (w.length == 0 || w.length >= sizeof text || !(w.at[0] >= '0' && w.at[0] <= '9')) return false;
    memcpy(text, w.at, w.length);
    text[w.length] = 0;
    *value = strtod(text, &end);
    return *end == 0 && *value >= 0 && *value <= 1e18;
}

IO_FN bool io_nccom_op(io_nccom_word w, trn_collective *op)
{
    static const struct {
        const char *name;
        trn_collective op;
    } known[] = { { "allr", TRN_ALL_REDUCE },       { "all_reduce", TRN_ALL_REDUCE },
                  { "allg", TRN_ALL_GATHER },       { "all_gather", TRN_ALL_GATHER },
                  { "redsct", TRN_REDUCE_SCATTER }, { "reduce_scatter", TRN_REDUCE_SCATTER },
                  { "alltoall", TRN_ALL_TO_ALL },   { "all_to_all", TRN_ALL_TO_ALL },
                  { "bcast", TRN_BROADCAST },       { "broadcast", TRN_BROADCAST },
                  { "sendrecv", TRN_SEND_RECV },    { "send_recv", TRN_SEND_RECV },
                  { "permute", TRN_PERMUTE } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (io_nccom_is(w, known[i].name)) return *op = known[i].op, true;
    return false;
}

IO_FN trn_format io_nccom_type(io_nccom_word w)
{
    static const struct {
        const char *name;
        trn_format format;
    } known[] = { { "fp32", TRN_F32 },  { "bf16", TRN_BF16 },  { "fp16", TRN_F16 },     { "fp8", TRN_F8_E4M3 },
                  { "int8", TRN_I8 },   { "uint8", TRN_U8 },   { "int16", TRN_I16 },    { "uint16", TRN_U16 },
                  { "int32", TRN_I32 }, { "uint32", TRN_U32 }, { "fp8e4", TRN_F8_E4M3 } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (io_nccom_is(w, known[i].name)) return known[i].format;
    return TRN_FORMAT_UNSET;
}

/* ---- rows ---- */

IO_FN bool io_nccom_add(io_nccom *all, const io_nccom_row *row, const char *path, char *why)
{
    if (all->rows == IO_NCCOM_ROWS) return io_fail(why, path, "more than %d rows", (int)IO_NCCOM_ROWS);
    if ((all->rows & (all->rows + 1)) == 0 || !all->row) { /* at 0, 1, 3, 7, ... rows */
        void *more = realloc(all->row, sizeof *all->row * (2 * (size_t)all->rows + 2));
        if (!more) return io_fail(why, path, "memory ran out at row %d", all->rows + 1);
        all->row = more;
    }
    all->row[all->rows++] = *row;
    return true;
}

/* ---- tables ---- */

typedef struct io_nccom_table {
    io_nccom_row now;              /* what the last command said */
    int columns, size, type, time; /* of the present heading; columns 0: none yet */
    int line;
} io_nccom_table;

/* "line 12: -r 0: expected 1 to 16777216": the word does not say what it has to. */
IO_FN bool io_nccom_refuse(const io_nccom_table *t, const char *what, io_nccom_word w, const char *legal,
                           const char *path, char *why)
{
    char shown[IO_SHOWN];
    return io_fail(why, path, "line %d: %s %s: expected %s", t->line, what, io_show(w.at, w.length, shown), legal);
}

IO_FN bool io_nccom_count(const io_nccom_table *t, const char *option, io_nccom_word w, int *count, const char *path,
                          char *why)
{
    double number;
    if (!io_nccom_number(w, &number) || !(number >= 1 && number <= 1 << 24) || number != (int)number)
        return io_nccom_refuse(t, option, w, "a whole number from 1 to 16777216", path, why);
    *count = (int)number;
    return true;
}

/* "nccom-test -r 32 ... allg": its options, with their longer names and with '='. */
IO_FN bool io_nccom_command(io_nccom_table *t, const io_nccom_row *defaults, const io_nccom_word *word, int words,
                            const char *path, char *why)
{
    static const struct {
        const char *brief, *name;
        bool instances;
    } counted[] = { { "-r", "--nworkers", false }, { "-N", "--nnodes", true } };
    bool ok = true;
    t->now = *defaults;
    t->now.op = TRN_COLLECTIVE_COUNT; /* none that is known here */
    t->columns = 0;
    for (int i = 0; i < words; i++) {
        io_nccom_op(word[i], &t->now.op);
        for (int k = 0; k < 2 && ok; k++) {
            if (!io_nccom_is(word[i], counted[k].brief) && !io_nccom_is(word[i], counted[k].name)) continue;
            const io_nccom_word next = i + 1 < words ? word[i + 1] : (io_nccom_word){ "", 0 };
            ok = io_nccom_count(t, counted[k].brief, next, counted[k].instances ? &t->now.instances : &t->now.ranks,
                                path, why);
        }
    }
    return ok;
}

/* Is this a heading, and which of its columns count? */
IO_FN bool io_nccom_heading(io_nccom_table *t, const io_nccom_word *word, int words)
{
    int size = -1, type = -1, time = -1;
    for (int i = 0; i < words; i++) {
        if (io_nccom_is(word[i], "size(B)")) size = i;
        if (io_nccom_is(word[i], "type")) type = i;
        const bool named = word[i].length > 5 && memcmp(word[i].at, "time", 4) == 0;
        if (io_nccom_is(word[i], "time(us)") || io_nccom_is(word[i], "time:avg(us)") || (named && time < 0)) time = i;
    }
    if (size < 0 || time < 0) return false;
    t->columns = words;
    t->size = size;
    t->type = type;
    t->time = time;
    return true;
}

/* Begins a word that is meant as a number? Others are prose between tables. */
IO_FN bool io_nccom_numeric(io_nccom_word w)
{
    const size_t sign = w.length > 1 && strchr("+-.", w.at[0]) ? 1 : 0;
    return (w.length > sign && w.at[sign] >= '0' && w.at[sign] <= '9') || io_nccom_is(w, "nan") ||
           (w.length >= sign + 3 && memcmp(w.at + sign, "inf", 3) == 0);
}

/* A time that can have been measured, in us. */
IO_FN bool io_nccom_time(double us) { return trni_amount_is(TRNI_LENGTH, 1e-6 * us); }

IO_FN const char *io_nccom_times(char text[48]) { return trni_legal_text(TRNI_LENGTH, -6, text); }

IO_FN bool io_nccom_line(io_nccom *all, io_nccom_table *t, const char *line, size_t length, const char *path, char *why)
{
    io_nccom_word word[IO_NCCOM_WORDS];
    double bytes, us;
    char legal[48];
    const int words = io_nccom_split(line, length, word);
    t->line++;
    for (int i = 0; i < words; i++)
        if (io_nccom_is(word[i], "nccom-test")) return io_nccom_command(t, &all->defaults, word, words, path, why);
    if (words == 0 || io_nccom_heading(t, word, words) || words < t->columns || !t->columns) return true;
    if (t->now.op == TRN_COLLECTIVE_COUNT || !io_nccom_numeric(word[t->size])) return true;
    if (!io_nccom_number(word[t->size], &bytes) || bytes < 1)
        return io_nccom_refuse(t, "size(B)", word[t->size], "a number from 1 to 1e18", path, why);
    if (!io_nccom_number(word[t->time], &us) || !io_nccom_time(us))
        return io_nccom_refuse(t, "time(us)", word[t->time], io_nccom_times(legal), path, why);
    io_nccom_row row = t->now;
    row.bytes = (int64_t)bytes;
    row.us = us;
    if (t->type >= 0 && io_nccom_type(word[t->type])) row.wire = io_nccom_type(word[t->type]);
    return io_nccom_add(all, &row, path, why);
}

/* ---- JSON ---- */

#if defined(HAVE_CJSON)

IO_FN bool io_nccom_json_row(io_nccom *all, const cJSON *item, const char *path, char *why)
{
    static const char *const times[] = { "time:avg(us)", "time(us)", "time:p50(us)" };
    const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(item, "size(B)");
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(item, "type"), *us = NULL;
    char legal[48];
    io_nccom_row row = all->defaults;
    for (size_t i = 0; i < sizeof times / sizeof times[0] && !us; i++)
        us = cJSON_GetObjectItemCaseSensitive(item, times[i]);
    if (!cJSON_IsNumber(bytes) || !(bytes->valuedouble >= 1 && bytes->valuedouble <= 1e18))
        return io_fail(why, path, "result %d has no size(B) from 1 to 1e18", all->rows + 1);
    if (!cJSON_IsNumber(us) || !io_nccom_time(us->valuedouble))
        return io_fail(why, path, "result %d has no time:avg(us) from %s", all->rows + 1, io_nccom_times(legal));
    row.bytes = (int64_t)bytes->valuedouble;
    row.us = us->valuedouble;
    if (cJSON_IsString(type)) {
        const trn_format wire = io_nccom_type((io_nccom_word){ type->valuestring, strlen(type->valuestring) });
        if (wire) row.wire = wire;
    }
    return io_nccom_add(all, &row, path, why);
}

IO_FN bool io_nccom_json(io_nccom *all, const char *text, size_t size, const char *path, char *why)
{
    io_json results, whole = io_json_start(text, size), list;
    if (io_json_member(whole, "results", &results) != 1) return io_fail(why, path, "it has no \"results\"");
    list = io_json_list(&results);
    while (io_json_next(&list)) {
        cJSON *item = io_json_value(&list, IO_NCCOM_FILE);
        if (!item) return io_fail(why, path, "result %d is not JSON", all->rows + 1);
        const bool ok = io_nccom_json_row(all, item, path, why);
        cJSON_Delete(item);
        if (!ok) return false;
    }
    return !list.wrong || io_fail(why, path, "\"results\": %s", list.wrong);
}

#else
IO_FN bool io_nccom_json(io_nccom *all, const char *text, size_t size, const char *path, char *why)
{
    (void)all, (void)text, (void)size;
    return io_fail(why, path, "it is JSON, and this program was built without cJSON: give the table instead");
}
#endif

/* ---- files ---- */

IO_FN bool io_nccom_parse(io_nccom *all, const char *text, size_t size, const char *path, char *why)
{
    size_t at = 0;
    io_nccom_table table = { .now = all->defaults };
    while (at < size && (unsigned char)text[at] <= ' ') at++;
    if (at < size && text[at] == '{') return io_nccom_json(all, text + at, size - at, path, why);
    for (size_t end; at < size; at = end + 1) {
        const char *newline = memchr(text + at, '\n', size - at);
        end = newline ? (size_t)(newline - text) : size;
        if (!io_nccom_line(all, &table, text + at, end - at, path, why)) return false;
    }
    return true;
}

/* all->defaults are the caller's. why: one sentence that names the file. On failure nothing is held. */
IO_FN bool io_nccom_read(const char *path, io_nccom *all, char *why)
{
    io_map map;
    all->row = NULL;
    all->rows = 0;
    if (!io_map_open(path, &map, why)) return false;
    size_t size;
    const char *text = io_map_text(&map, &size);
    bool ok = size <= IO_NCCOM_FILE || io_fail(why, path, "more than %d bytes", (int)IO_NCCOM_FILE);
    ok = ok && io_nccom_parse(all, text, size, path, why);
    ok = ok && (all->rows || io_fail(why, path, "no row of nccom-test: expected the columns size(B) and time(us)"));
    io_map_close(&map);
    if (ok) return true;
    free(all->row);
    all->row = NULL;
    return false;
}

#endif /* IO_NCCOM_H */

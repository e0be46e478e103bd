/* fuzz_nccom.c - what nccom-test prints, whole and spoilt: every row that is read has a size and a time, no sample is
 * read twice, and a refusal is one sentence that names the file.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_nccom [count] [seed]        default: 20000 texts, 500000 with TRN_TEST_LEVEL=2; seed 1
 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz/fail.h"

#include "io/nccom.h"

enum { ROOM = 6000 };

#include "fuzz/line.h"

/* ---- texts ---- */

static const char *const ops[] = { "allr", "allg", "redsct", "alltoall", "bcast", "sendrecv", "permute", "alltoallv" };
static const char *const types[] = { "fp32", "bf16", "uint8", "int16", "fp19" };
#define PICK(list) list[below((int)(sizeof list / sizeof list[0]))]

static void put_table(line *l)
{
    char text[160];
    const bool newer = one_in(2);
    const int ranks = 2 << below(6), rows = below(8);
    if (!one_in(8)) {
        snprintf(text, sizeof text, "$ nccom-test -r %d%s -b 1kb -e 1gb -f 8 -d %s %s\n", ranks,
                 one_in(5) ? " --nnodes 2" : "", PICK(types), PICK(ops));
        put(l, text);
    }
    if (!one_in(12)) {
        put(l, newer ? "size(B) count(elems) type time:avg(us) time:p99(us) algbw(GB/s) busbw(GB/s)\n"
                     : "  size(B)  count(elems)  type  time(us)  algbw(GB/s)  busbw(GB/s)\n");
    }
    for (int i = 0; i < rows; i++) {
        const long bytes = 1L << below(31);
        snprintf(text, sizeof text, "%10ld %10ld %6s %8d.%02d %s 0.01 0.01\n", bytes, bytes / 4, PICK(types),
                 one_in(30) ? 0 : below(10000), one_in(30) ? 0 : below(100), newer ? "8.25" : "");
        put(l, text);
    }
    if (one_in(3)) put(l, "Avg bus bandwidth:\t1.2345GB/s\n\n");
    if (one_in(20)) put(l, "Failure running neuron-bench - log file /tmp/x.log\n");
}

static void put_json(line *l)
{
    char text[160];
    put(l, one_in(30) ? "{\"result\": [" : "{\"results\": [");
    for (int rows = below(8), i = 0; i < rows; i++) {
        snprintf(text, sizeof text, "%s{\"size(B)\": %ld, \"type\": \"%s\", \"%s\": %d.%d}", i ? ", " : "",
                 1L << below(31), PICK(types),
                 one_in(30)  ? "time"
                 : one_in(2) ? "time:avg(us)"
                             : "time(us)",
                 below(1000), below(100));
        put(l, text);
    }
    put(l, "]}\n");
}

static void spoil(line *l)
{
    static const char *const piece[] = {
        "nccom-test", "size(B)", "time(us)", "\n", "1e18", "-1", "nan",
        "1e-320",     "inf",     "-r 0",     "{",  "]",    "\"", "99999999999999999999",
        "\x01",       "null",    "allr",     "-r", "\t"
    };
    const char *word = PICK(piece);
    const size_t at = l->length ? (size_t)below((int)l->length) : 0;
    if (one_in(5))
        l->text[l->length = at] = 0;
    else if (at + strlen(word) <= l->length)
        memcpy(l->text + at, word, strlen(word));
}

/* ---- what must hold ---- */

static void check_rows(const io_nccom *all, const line *l)
{
    int lines = 1;
    for (size_t i = 0; i < l->length; i++) lines += l->text[i] == '\n' || l->text[i] == '{';
    if (all->rows > lines) fail_msg("%d rows of %d lines", all->rows, lines);
    for (int i = 0; i < all->rows; i++) {
        const io_nccom_row *r = &all->row[i];
        if (r->bytes < 1 || r->bytes > 1000000000000000000 || !(r->us >= 1e-6 && r->us <= 1e10))
            fail_msg("row %d: %lld bytes in %g us", i, (long long)r->bytes, r->us);
        if ((unsigned)r->op >= TRN_COLLECTIVE_COUNT || !r->wire || r->ranks < 0 || r->instances < 0)
            fail_msg("row %d: operation %d, format %d, %d ranks, %d instances", i, (int)r->op, (int)r->wire, r->ranks,
                     r->instances);
    }
}

static bool parse(const line *l, io_nccom *all, char *why)
{
    char *exact = (char *)malloc(l->length ? l->length : 1); /* one byte too many is seen by a sanitizer */
    if (!exact) abort();
    memcpy(exact, l->text, l->length);
    const bool ok = io_nccom_parse(all, exact, l->length, "log", why);
    free(exact);
    return ok;
}

int main(int argc, char **argv)
{
    long rows = 0, refused = 0;
    fuzzing_start(argc, argv, 20000, 500000);
    while (fuzzing_next(&rng)) {
        static line l;
        char why[IO_WHY] = "";
        io_nccom all = { .defaults = { .op = TRN_ALL_REDUCE, .wire = TRN_F32 } };
        l.text[l.length = 0] = 0;
        if (one_in(3))
            put_json(&l);
        else
            for (int tables = 1 + below(3); tables > 0; tables--) put_table(&l);
        for (int wounds = one_in(2) ? 1 + below(3) : 0; wounds > 0; wounds--) spoil(&l);
        if (parse(&l, &all, why)) {
            check_rows(&all, &l);
            rows += all.rows;
        } else {
            if (strncmp(why, "log: ", 5) != 0 || strlen(why) < 10) fail_msg("\"%s\" of\n%s", why, l.text);
            refused++;
        }
        free(all.row);
    }
    const long count = fuzzing_end();
    printf("%ld rows, %ld texts refused\n", rows, refused);
    return count < 1000 || (rows > count && refused > count / 100) ? 0 : 1;
}

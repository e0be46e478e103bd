/* fuzz_npy.c - random bytes as .npy files: no crash, no read outside the file, and only arrays that keep their word.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_npy [count] [seed]        default: 200000 files, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. On its own it takes good files of every
 * version and kind and spoils them: bytes flipped, ranges copied, cut short, tokens of the header exchanged.
 */
#include <assert.h>
#include <stdio.h>

#include "fuzz/long.h"
#include "io/npy.h"
#include "twin/cases.h"

static volatile unsigned sum;

/* An array that is accepted must describe exactly the bytes it was given. Returns whether it was. */
static bool try_file(const unsigned char *file, size_t size)
{
    char why[NPY_WHY] = "";
    npy_array a;
    unsigned char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = npy_parse(copy, size, "fuzz", &a, why);
    if (ok) {
        const size_t bytes = (size_t)a.elements * (size_t)a.item_bytes;
        int64_t elements = 1, reach = a.elements ? 1 : 0;
        assert(a.rank >= 0 && a.rank <= NPY_MAX_RANK && a.item_bytes >= 1 && a.item_bytes <= NPY_MAX_ITEM);
        for (int i = 0; i < a.rank; i++) {
            assert(a.shape[i] >= 0 && a.stride[i] >= 1);
            elements *= a.shape[i];
            reach += a.elements ? (a.shape[i] - 1) * a.stride[i] : 0;
        }
        assert(elements == a.elements && reach == a.elements);
        assert((unsigned char *)a.data >= copy && (unsigned char *)a.data + bytes == copy + size);
        for (size_t i = 0; i < bytes; i++) sum += ((const unsigned char *)a.data)[i];
    } else {
        assert(strncmp(why, "fuzz: ", 6) == 0 && strlen(why) > 12);
    }
    free(copy);
    return ok;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return (void)try_file(data, size), 0; }

#else

enum { ROOM = 1024 };

static const char *const types[] = { "<f4",  "<f2", "<u2", "|u1", ">f4", "<f8", "|b1",
                                     "<c16", "<U3", "<f0", "<V2", "|V1", "<V4", "" };
static const char *const shapes[] = { "(3, 5)",
                                      "(3,)",
                                      "()",
                                      "(0, 7)",
                                      "(2, 2, 2)",
                                      "(15)",
                                      "(-1, 3)",
                                      "(3L, 5L)",
                                      "(1, 1, 1, 1, 1, 1, 1, 1, 1)",
                                      "(99999999999, 99999999999)",
                                      "(,)",
                                      "((3, 5)" };
static const char *const orders[] = { "False", "True", "0", "Falsehood" };
static const char *const tokens[] = { "{",       "}",       "(",
                                      ")",       ",",       ":",
                                      "'",       "\"",      "\\",
                                      "'descr'", "'shape'", "'fortran_order'",
                                      "True",    "False",   "9223372036854775807",
                                      " ",       "\n",      "L",
                                      "-",       "<f4" };

#define PICK(rng, list) list[cases_below(rng, (int)(sizeof list / sizeof list[0]))]

static size_t good_file(uint64_t *rng, unsigned char *file)
{
    const int version = 1 + cases_below(rng, 3), start = version > 1 ? 12 : 10;
    const bool plain = cases_one_in(rng, 2);
    const char *const type = plain ? types[cases_below(rng, 2)] : PICK(rng, types);
    const char *const order = plain ? orders[cases_below(rng, 2)] : PICK(rng, orders);
    const char *const shape = plain ? shapes[0] : PICK(rng, shapes);
    char header[256];
    const int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }%*s\n", type,
                           order, shape, cases_below(rng, 8), "");
    memset(file, 0, ROOM);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)n;
    memcpy(file + start, header, (size_t)n);
    const int data = plain ? (strstr(header, "<f4") ? 60 : 30) : cases_below(rng, 80);
    for (int i = 0; i < data; i++) file[start + n + i] = (unsigned char)cases_u32(rng);
    return (size_t)(start + n + data);
}

static size_t spoil(uint64_t *rng, unsigned char *file, size_t size)
{
    const int at = cases_below(rng, (int)size), to = cases_below(rng, (int)size);
    const char *token = PICK(rng, tokens);
    const size_t length = strlen(token), most = size - (size_t)(at > to ? at : to);
    switch (cases_below(rng, 5)) {
    case 0: file[at] ^= (unsigned char)(1u << cases_below(rng, 8)); return size;
    case 1: file[at] = (unsigned char)cases_u32(rng); return size;
    case 2: memmove(file + to, file + at, most); return size;
    case 3:
        if ((size_t)at + length <= size) memcpy(file + at, token, length);
        return size;
    default: return (size_t)at + 1;
    }
}

int main(int argc, char **argv)
{
    uint64_t rng = 0;
    long accepted = 0;
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        unsigned char file[ROOM];
        size_t size = good_file(&rng, file);
        for (int wounds = cases_below(&rng, 4); wounds > 0; wounds--) size = spoil(&rng, file, size);
        accepted += try_file(file, size);
    }
    const long count = fuzzing_end();
    printf("%ld files, %ld of them accepted\n", count, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > count / 20 && accepted < count / 2) ? 0 : 1;
}

#endif

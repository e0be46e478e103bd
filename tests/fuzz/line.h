/* line.h - a line of text that a fuzzer makes up. Define ROOM before.
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_LINE_H
#define FUZZ_LINE_H

#include "fuzz/long.h"
#include "twin/cases.h"

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

typedef struct line {
    char text[ROOM + 1];
    size_t length;
} line;

static void put(line *l, const char *text)
{
    for (; *text && l->length < ROOM; text++) l->text[l->length++] = *text;
    l->text[l->length] = 0;
}

#endif /* FUZZ_LINE_H */

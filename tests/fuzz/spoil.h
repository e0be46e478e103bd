/* spoil.h - one wound for a text that was good: a bit, a byte, a range copied over another, a token put anywhere, or
 * the end cut off.
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_SPOIL_H
#define FUZZ_SPOIL_H

#include "twin/cases.h"

enum { SPOIL_RANGE = 40 };

/* size > 0; returns the size that it has then. */
static size_t spoil(uint64_t *rng, char *text, size_t size, const char *token)
{
    const size_t at = (size_t)cases_below(rng, (int)size), to = (size_t)cases_below(rng, (int)size);
    const size_t range = (size_t)cases_below(rng, SPOIL_RANGE), most = size - (at > to ? at : to);
    const size_t length = strlen(token);
    switch (cases_below(rng, 5)) {
    case 0: text[at] = (char)(text[at] ^ (1 << cases_below(rng, 8))); return size;
    case 1: text[at] = (char)cases_below(rng, 256); return size;
    case 2: memmove(text + to, text + at, most < range ? most : range); return size;
    case 3:
        if (at + length <= size) memcpy(text + at, token, length);
        return size;
    default: return at + 1;
    }
}

#endif /* FUZZ_SPOIL_H */

/* random.h - published answers of random number generators.
 * SPDX-License-Identifier: MIT
 */
#ifndef PUBLISHED_RANDOM_H
#define PUBLISHED_RANDOM_H

#include <stdint.h>

/* The three philox4x32-10 lines of Random123's kat_vectors: counter, key, answer. The last one is digits of pi. */
static const struct {
    uint32_t counter[4], key[2], answer[4];
} philox_known[3] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

/* Marsaglia's own starting values, and what his code prints from them (also in the tests of D's std.random). */
static const uint32_t xorwow_start[6] = { 123456789, 362436069, 521288629, 88675123, 5783321, 6615241 };
static const uint32_t xorwow_known[10] = { 246875399,  3690007200, 1264581005, 3906711041, 1866187943,
                                           2481925219, 2464530826, 1604040631, 3653403911, 3578085384 };

#endif /* PUBLISHED_RANDOM_H */

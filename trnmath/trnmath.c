/* trnmath.c - the bodies of all doors, once: what libtrnmath is compiled from, for files that define TRN_SPLIT.
 * SPDX-License-Identifier: MIT
 */
#define TRN_SPLIT 1
#define TRN_IMPLEMENTATION 1
#include "trnmath.h"

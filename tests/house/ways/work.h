/* work.h - what work.c is compiled to, twice.
 * SPDX-License-Identifier: MIT
 */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>

/* A number that all results went into; below 16: the call that failed. */
uint64_t work_narrow(const char **version); /* compiled for the oldest processor of this kind */
uint64_t work_wide(const char **version);   /* compiled for this machine's */

#endif

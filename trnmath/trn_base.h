/* trn_base.h - the ground every other header stands on: status, errors, linkage, and the float guard.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_base.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         unsigned wrong = trn_fp_check();
 *         if (wrong) printf("floats misbehave: %s\n", trn_fp_check_text(wrong));
 *         return wrong ? 1 : 0;
 *     }
 *
 * DOES: names every status once, fills trn_error, refuses fast-math builds: where a macro shows the flag, the compiler
 *     does; else every call does, with TRN_EUNSUPPORTED. Calls compute in the modes that IEEE 754 begins with, whatever
 *     the thread's are (flushed subnormals, another rounding, traps), and leave those as they were.
 * DOES NOT: print, allocate, or protect the caller's own arithmetic, which trn_fp_check is for.
 *
 * CONTENTS
 *   base/base.h: what every header stands on: version, errors, linkage, and the float guard.
 *     TRN_VERSION                 the library's version, as text and as three numbers
 *     trn_version                 the same, of the copy that a program was compiled with
 *     trn_status                  what every call returns
 *     trn_status_text             one phrase for a status
 *     trn_error                   optional: one sentence with the field and the numbers
 *     trn_fp_check                0, or a set of TRN_FP_* bits
 *     trn_fp_check_text           one sentence for the lowest bit of such a set
 *
 * KNOWN FROM: IEEE 754-2019; the macros that gcc 12 and clang 14-19 define under fast math (measured).
 */
#ifndef TRN_BASE_H
#define TRN_BASE_H

#include "base/words_begin.h"

#include "base/base.h"

#include "base/words_end.h"

#endif /* TRN_BASE_H */

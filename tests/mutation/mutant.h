/* mutant.h - which mutant a program runs. Forced into every source that mutate.py builds, so it includes nothing.
 * SPDX-License-Identifier: MIT
 */
#ifndef TRN_TESTS_MUTANT_H
#define TRN_TESTS_MUTANT_H

enum { TRN_MUTANTS = 1 << 17 }; /* their numbers are below */

extern int trn_mutant_on;            /* -1: none */
extern unsigned char *trn_mutant_at; /* [TRN_MUTANTS] which of them a program came to */

static inline __attribute__((unused, always_inline)) int trn_mutant(int number)
{
    trn_mutant_at[number] = 1;
    return trn_mutant_on == number;
}

#endif /* TRN_TESTS_MUTANT_H */

/* fail.h - what the headers of twin/ ask of cmocka, for a fuzzer: what does not hold is said, with the case's seed.
 * SPDX-License-Identifier: MIT
 *
 * Before them; cmocka.h is not included then.
 */
#ifndef FAIL_H
#define FAIL_H

#include "fuzz/long.h"

__attribute__((unused, noreturn)) static void fuzzing_fail(void)
{
    fuzzing_print("\n");
    fuzzing_last_words();
    exit(1);
}

#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define fail() fuzzing_fail()
#define fail_msg(...) (print_error(__VA_ARGS__), fuzzing_fail())
#define assert_true(truth) ((truth) ? (void)0 : fail_msg("not so: %s", #truth))
#define assert_int_equal(expected, got)                                                                                \
    ((long long)(expected) == (long long)(got)                                                                         \
         ? (void)0                                                                                                     \
         : fail_msg("%s is %lld, expected %lld", #got, (long long)(got), (long long)(expected)))

#endif /* FAIL_H */

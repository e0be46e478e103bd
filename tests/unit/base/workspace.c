/* base/workspace.c - memory that a call works in begins on a cache line, for each thread; and the sentence about flags.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: no result shows where that memory lies, and no build of ours has such flags.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "trnmath/base/workspace.h"
#include "unit/base/groups.h"

/* As many as it takes to see memory of every alignment that malloc has. */
static void pieces_lie_on_cache_lines_and_apart(void **state)
{
    (void)state;
    static trni_workspace w[64];
    trn_error error;
    for (int i = 0; i < 64; i++) {
        const size_t bytes = (size_t)(1 + 37 * i);
        const int threads = 1 + i % 5;
        assert_int_equal(trni_workspace_open(&w[i], bytes, threads, &error), TRN_OK);
        assert_true(w[i].bytes >= bytes && w[i].bytes < bytes + 64);
        for (int t = 0; t < threads; t++) {
            unsigned char *const piece = (unsigned char *)trni_workspace_of(&w[i], t);
            assert_int_equal((uintptr_t)piece % 64, 0);
            assert_true(piece >= (unsigned char *)w[i].memory + (size_t)t * bytes);
            assert_true(piece + bytes <= (unsigned char *)w[i].memory + w[i].bytes * (size_t)threads + 64);
            memset(piece, t, bytes); /* a sanitizer sees where the memory ends */
        }
        for (int t = 0; t < threads; t++)
            for (size_t k = 0; k<bytes; k += bytes> 1 ? bytes - 1 : 1)
                assert_int_equal(((unsigned char *)trni_workspace_of(&w[i], t))[k], t);
    }
    for (int i = 0; i < 64; i++) trni_workspace_close(&w[i]);
    trni_workspace none;
    assert_int_equal(trni_workspace_open(&none, (size_t)1 << 60, 1, &error), TRN_ENOSPC);
    assert_string_equal(error.text, "could not allocate 1152921504606846976 bytes to work in");
}

static void flags_that_change_bits_are_refused_by_name(void **state)
{
    (void)state;
    trn_error error;
    char text[200];
    assert_int_equal(trni_fp_refuse(&error), TRN_EUNSUPPORTED);
    snprintf(text, sizeof text, "trnmath was compiled with a flag that changes its bits: %s", trn_fp_check_text(0));
    assert_string_equal(error.text, text);
    assert_int_equal(trni_fp_refuse(NULL), TRN_EUNSUPPORTED);
}

int base_workspace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_lie_on_cache_lines_and_apart),
        cmocka_unit_test(flags_that_change_bits_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("base_workspace", tests, NULL, NULL);
}

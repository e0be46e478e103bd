/* test_activation_data.c - the committed tables are what scripts/act_tables.py makes of the functions' definitions.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void committed_is_made(void **state)
{
    (void)state;
    if (system("python3 -c 'import decimal, fractions' >/dev/null 2>&1") != 0) {
        print_message("no python3 here: the tables were not made again\n");
        skip();
    }
    if (system("python3 '" TRN_SOURCE_DIR "/scripts/act_tables.py' | cmp - '" TRN_SOURCE_DIR
               "/trnmath/engine/act_data.h'") != 0)
        fail_msg("trnmath/engine/act_data.h is not what scripts/act_tables.py makes");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(committed_is_made) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* scratch.h - what the tests of examples/tools/common/io share: the files of tests/data, and a folder made anew for
 * each test.
 * SPDX-License-Identifier: MIT
 *
 * After cmocka.h, and after _POSIX_C_SOURCE has been defined.
 */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64]; /* made anew for each test that writes */

/* The last four paths stay valid. */
static inline const char *scratch(const char *name)
{
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/trn_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

#define WRITES(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

static inline void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static inline const char *data_file(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", TRN_DATA_DIR, name);
    return path;
}

#endif /* TEST_SCRATCH_H */

/* outputs.c - the files a command writes.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "outputs.h"

#include <string.h>

bool app_output_taken(const app_output *output, int count)
{
    for (int i = 0; i < count; i++)
        if (output[i].path && strcmp(output[i].path, "-") == 0) return true;
    return false;
}

void app_discard_outputs(app_output *output, int count)
{
    for (int i = 0; i < count; i++) io_output_discard(&output[i].file);
}

static int give_up(app_output *output, int count, const char *flag, const char *why)
{
    app_discard_outputs(output, count);
    return app_complain(APP_USAGE, "%s %s", flag, why);
}

int app_open_outputs(app_output *output, int count)
{
    char why[IO_WHY];
    for (int i = 0; i < count; i++) {
        if (!output[i].path) continue;
        if (strcmp(output[i].path, "-") == 0 && app_output_taken(output, i))
            return give_up(output, count, output[i].flag, "-: standard output takes one of them");
        if (!io_output_open(output[i].path, &output[i].file, why)) return give_up(output, count, output[i].flag, why);
    }
    return APP_OK;
}

int app_write_outputs(app_output *output, int count, const void *context)
{
    char why[IO_WHY];
    for (int i = 0; i < count; i++) {
        if (!output[i].path) continue;
        output[i].write(output[i].file.file, context);
        if (!io_output_commit(&output[i].file, why)) return give_up(output, count, output[i].flag, why);
    }
    return APP_OK;
}

/* outputs.h - the files a command writes: opened before the work, complete or not there at all.
 * SPDX-License-Identifier: MIT
 *
 * A path that is wrong costs no work then, and a pipe is opened once: its reader sees one stream and one end.
 */
#ifndef APP_OUTPUTS_H
#define APP_OUTPUTS_H

#include "app.h"
#include "io/output.h"

typedef struct app_output {
    const char *flag, *path; /* path NULL: not asked for; "-": standard output */
    void (*write)(FILE *out, const void *context);
    io_output file; /* zero: not open */
} app_output;

bool app_output_taken(const app_output *output, int count); /* does one of them have standard output? */
/* APP_OK, or APP_USAGE after one sentence; then nothing is open. */
int app_open_outputs(app_output *output, int count);
int app_write_outputs(app_output *output, int count, const void *context);
void app_discard_outputs(app_output *output, int count); /* those that are still open */

#endif /* APP_OUTPUTS_H */

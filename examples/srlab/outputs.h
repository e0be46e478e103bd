/* outputs.h - the files a command writes: opened before the work, complete or not there at all.
 * SPDX-License-Identifier: MIT
 */
#ifndef SRLAB_OUTPUTS_H
#define SRLAB_OUTPUTS_H

#include "app/app.h"
#include "io/output.h"

typedef struct sr_output {
    const char *flag, *path; /* path NULL: not asked for; "-": standard output */
    void (*write)(FILE *out, const void *context);
    io_output file;
} sr_output;

bool sr_output_taken(const sr_output *output, int count); /* does one of them have standard output? */
/* APP_OK, or APP_USAGE after one sentence; then nothing is open. */
int sr_open_outputs(sr_output *output, int count);
int sr_write_outputs(sr_output *output, int count, const void *context);
void sr_discard_outputs(sr_output *output, int count);

#endif /* SRLAB_OUTPUTS_H */

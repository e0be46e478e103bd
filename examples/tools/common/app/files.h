/* files.h - all files that a command reads and writes: none of them twice, and outputs complete or not there at all.
 * SPDX-License-Identifier: MIT
 *
 *     app_output output[] = { { .flag = "--json", .path = o->json, .write = print_json }, ... };
 *     ... open what is read: the readers of io/ report it by themselves (io_may_read) ...
 *     if (app_open_outputs(output, COUNT) != APP_OK) return APP_USAGE;
 *     ... the work ...
 *     status = app_write_outputs(output, COUNT, &all);
 *     app_discard_outputs(output, COUNT);
 *
 * An output that is an input, or another output, is refused before it is opened: by device and number of the file, so
 * links, hard links and other spellings are found; for what is not there yet, by directory and name. Inputs are opened
 * first, then the outputs, then comes the work: a path that is wrong costs no work, and a pipe is opened once. An input
 * that is opened later and is an output is refused by its reader.
 *
 * All outputs of a command are written and synced, and what it printed has arrived, before the first of them appears
 * under its name: without memory, or room on a disk, all are as they were. Then they appear together, also when the
 * program is killed meanwhile: io/together.h says what is promised.
 */
#ifndef APP_FILES_H
#define APP_FILES_H

#include "app.h"

struct io_output;

typedef struct app_output {
    const char *flag, *path; /* path NULL: not asked for; "-": standard output */
    void (*write)(FILE *out, const void *context);
    const void *context;    /* NULL: what app_finish_outputs is given */
    struct io_output *file; /* NULL: not open */
} app_output;

bool app_output_taken(const app_output *output, int count); /* does one of them have standard output? */
/* APP_OK, or APP_USAGE after one sentence; then none is open. */
int app_open_outputs(app_output *output, int count);
int app_finish_outputs(app_output *output, int count, const void *context); /* all are written and synced */
int app_show_outputs(app_output *output, int count);                        /* all appear, or none */
/* The same with a directory or a file that is staged: it is the first. NULL: there is none. */
struct io_stage;
int app_show_staged(struct io_stage *stage, app_output *output, int count);
int app_write_outputs(app_output *output, int count, const void *context); /* both */
/* Both, and between them what people read, where no output has standard output: it arrives, or none appears. */
int app_answer(app_output *output, int count, const void *context, void (*print)(FILE *out, const void *context));
/* The same with a directory or a file that is staged: it is the first. NULL: there is none. */
int app_answer_staged(struct io_stage *stage, app_output *output, int count, const void *context,
                      void (*print)(FILE *out, const void *context));
void app_discard_outputs(app_output *output, int count); /* those that are still open */
FILE *app_output_stream(const app_output *output);       /* of one that is open */

/* What is read and written by other means. */
bool app_reads(const char *path, char *why); /* this file, whether it is opened or not; false when it is an output */
void app_reads_folder(const char *path);     /* whatever is in this directory */
/* This file or directory, with all that is in it, will be written. A sentence when it is, or has in it, an input. */
bool app_writes(const char *flag, const char *path, char *why);

#endif /* APP_FILES_H */

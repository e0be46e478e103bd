/* chakra.h - execution traces of MLCommons Chakra, which ASTRA-sim reads: those of other programs priced with the
 * model, and a plan's step written as such traces.
 * SPDX-License-Identifier: MIT
 *
 *     traces.h         all ranks' traces as one list of operations
 *     chakra_read.c    --chakra-in: all ranks' files, process groups, and which nodes are one collective
 *     chakra_time.c    what each operation takes, and when it runs
 *     chakra_print.c   the answer: text, rows
 *     chakra_write.c   --chakra: a plan's step as one file for each rank
 */
#ifndef SHARDPLAN_CHAKRA_H
#define SHARDPLAN_CHAKRA_H

#include "app/app.h"

struct sp_options;
struct sp_job;

typedef struct sp_chakra_ask {
    const char *in, *groups; /* --chakra-in, --chakra-groups */
    const char *out, *ranks; /* --chakra, --chakra-ranks */
    bool recorded;           /* --chakra-recorded */
} sp_chakra_ask;

/* --chakra-in: everything. An exit status. */
int sp_chakra_price(struct sp_job *job);
void sp_chakra_schema(void);
/* APP_OK, or false and a sentence about options that exclude each other. */
bool sp_chakra_check(const struct sp_options *o, char *why);

/* --chakra: a directory is made, written, and appears with what else is written; each does nothing where it was not
 * asked for. */
struct io_stage;
bool sp_chakra_open(const struct sp_options *o, char *why);
bool sp_chakra_write(const struct sp_job *job, char *why);
struct io_stage *sp_chakra_stage(void);
void sp_chakra_close(void);

/* clang-format off */
#define SP_CHAKRA_OPTIONS(type)                                                                                        \
    { .help = "execution traces (MLCommons Chakra, as ASTRA-sim reads them)" },                                        \
    { "--chakra", "FOLDER",                                                                                            \
      "the best plan's step as FOLDER/step.RANK.et, one a rank, and FOLDER/step.json, its process\n"                   \
      "groups; the folder is new",                                                                                     \
      APP_TAKES_TEXT(type, chakra.out) },                                                                              \
    { "--chakra-ranks", "LIST", "only these ranks, such as 0-7,16 (default: all, of at most 64)",                      \
      APP_TAKES_TEXT(type, chakra.ranks) },                                                                            \
    { "--chakra-in", "PREFIX",                                                                                         \
      "without CONFIG: PREFIX.0.et, PREFIX.1.et, ... of any program, rank r on chip r of the system,\n"                \
      "priced with the model. Also --csv, --json",                                                                     \
      APP_TAKES_TEXT(type, chakra.in) },                                                                               \
    { "--chakra-groups", "FILE", "its process groups: a JSON object of lists of ranks",                                \
      APP_TAKES_TEXT(type, chakra.groups) },                                                                           \
    { "--chakra-recorded", NULL, "work takes what the trace recorded (default: what its size takes, if it has one)",   \
      APP_SETS(type, chakra.recorded) }
/* clang-format on */

#endif /* SHARDPLAN_CHAKRA_H */

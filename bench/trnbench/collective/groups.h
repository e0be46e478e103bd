/* groups.h - replica groups and sizes as people write them: "0-3,12-15;4-11", "64KB".
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COLLECTIVE_GROUPS_H
#define BENCH_COLLECTIVE_GROUPS_H

#include "app/app.h"

enum { TB_GROUPS_CHIPS = 1 << 20 }; /* in all groups together, at most */

typedef struct tb_groups {
    int groups, count; /* groups of count chips each */
    int *chip;         /* [groups][count], malloc'd */
} tb_groups;

/* Groups with ';' between them, each a list of chips with ',' between them: 7, 0-3 (up), 3-0 (down), 0-12:4 (0 4 8 12).
 * Blanks may stand around numbers and signs. All groups have the same number of chips. False with a sentence in
 * why[APP_WHY], and *groups as it was. Whether there are such chips, and each once, is for others to say. */
bool tb_groups_parse(tb_groups *groups, const char *text, char *why);
void tb_groups_free(tb_groups *groups);
/* The same text again, as short as it can be, cut to fit; returns the characters of the whole. */
size_t tb_groups_text(const tb_groups *groups, char *text, size_t size);

/* Bytes: a number, and perhaps K, M, G or T, or KB, KiB and so on, in either case. All of them are powers of 1,024, as
 * in nccom-test and nccl-tests. At most 1 PiB. */
bool tb_size_parse(const char *text, int64_t *bytes, char *why);

#endif /* BENCH_COLLECTIVE_GROUPS_H */

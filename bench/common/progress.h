/* progress.h - what is being measured, told on standard error while it is.
 * SPDX-License-Identifier: MIT
 *
 * On a terminal one line that is overwritten, with the seconds so far. Elsewhere, and for who asks for plain text
 * (NO_COLOR, TERM=dumb), a line for each stage and nothing within one. app_progress_done() ends it.
 */
#ifndef BENCH_COMMON_PROGRESS_H
#define BENCH_COMMON_PROGRESS_H

/* Stage `number` of `of` begins. */
void tb_stage(int number, int of, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What goes on within a stage. */
void tb_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* BENCH_COMMON_PROGRESS_H */

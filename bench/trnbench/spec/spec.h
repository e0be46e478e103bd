/* spec.h - subcommand spec: the machines, their modes and their links, every number with its source.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_SPEC_SPEC_H
#define BENCH_SPEC_SPEC_H

#include "app/app.h"

/* ---- spec.c ---- */

int tb_main_spec(int argc, char **argv);
void tb_quantity(app_table *table, double value, const char *unit); /* a cell for people: "190 Tflop/s" */

/* ---- modes.c: what each mode of their tensor engines costs ---- */

void tb_mode_rows(app_table *table); /* starts it, too */

/* ---- links.c: how their chips are wired ---- */

void tb_link_rows(app_table *table, const bool *wanted); /* wanted: by trn_system; starts it, too */
void tb_print_links(const app_table *links, const char *system);

#endif /* BENCH_SPEC_SPEC_H */

/* spec.h - subcommand spec: the machines, what they are built of, their modes and their links, each with its source.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_SPEC_SPEC_H
#define BENCH_SPEC_SPEC_H

#include "app/app.h"

#include <trnmath/trn_spec.h>

/* ---- spec.c ---- */

int tb_main_spec(int argc, char **argv);
void tb_quantity(app_table *table, double value, const char *unit); /* a cell for people: "190 Tflop/s" */

/* ---- modes.c: what each mode of their tensor engines costs ---- */

void tb_mode_rows(app_table *table); /* starts it, too */

/* ---- physical.c: what they are built of; what is announced ---- */

void tb_physical_rows(app_table *table, const bool *wanted); /* wanted: by trn_system; starts it, too */
void tb_print_physical(const app_table *physical, const char *system);
void tb_announced_rows(app_table *table); /* starts it, too */
void tb_print_announced(const app_table *announced);

/* ---- claims.c: what is said of them, by whom and when ---- */

void tb_claim_rows(app_table *table); /* starts it, too */

/* ---- readings.c: who prints which figure of NeuronLink ---- */

void tb_print_readings(const bool *wanted);
/* Reading number index, and its source in one line: empty when none of its generation is wanted. False: none left. */
bool tb_reading_at(int index, const bool *wanted, trn_spec_link_reading *r, char *why, size_t size);

/* ---- links.c: how their chips are wired ---- */

void tb_link_rows(app_table *table, const bool *wanted); /* wanted: by trn_system; starts it, too */
void tb_print_links(const app_table *links, const char *system);

#endif /* BENCH_SPEC_SPEC_H */

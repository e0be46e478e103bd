/* trnbench.h - what the files of the program share.
 * SPDX-License-Identifier: MIT
 *
 * The program in one picture:
 *
 *     trnbench.c            main: finds the subcommand
 *     trnbench_matmul.c     subcommand matmul: options, jobs, one row per product x system x format
 *     trnbench_spec.c       subcommand spec: the machines
 *     trnbench_sparse.c     subcommand sparse: structured sparsity beside the dense product
 *     trnbench_collective.c       subcommand collective: options, tables
 *     trnbench_collective_rows.c  one row per system x operation x algorithm x size
 *     trnbench_collective_check.c the values of every rank, by definition
 *     trnbench_groups.c     replica groups and sizes as people write them
 *     trnbench_modes.c      what each mode of their tensor engines costs
 *     trnbench_links.c      how their chips are wired: rates, times, and who says so
 *     trnbench_formats.c    what --format names, and matrices in each of them
 *     trnbench_models.c     the linear layers of six language models
 *     trnbench_host.c       runs a product on this host, times it beside its peers
 *     trnbench_check.c      the slow definition, bit for bit
 *     trnbench_peak.c       what the host's multiply-add units can do
 *     trnbench_peers.c      OpenBLAS and oneDNN, loaded when they are there
 *     trnbench_convert.c    subcommand convert: options, one run over all conversions
 *     trnbench_convert_list.c     which conversions there are
 *     trnbench_convert_makers.c   who converts: trnmath and its peers (convert_peer*: loops of others)
 *     trnbench_convert_golden.c   wrong answers, by the vectors of tests/golden (read by trnbench_golden.c)
 *     trnbench_convert_streams.c  loops that only move bytes
 *     trnbench_convert_measure.c  everybody in turn, round by round
 *     trnbench_convert_rows.c, trnbench_convert_report.c   tables; the HTML page
 *     trnbench_activation.c       subcommand activation: options, one row per function x format x size
 *     trnbench_activation_speed.c, trnbench_activation_sleef.c   everybody in turn; SLEEF's own loops
 *     trnbench_activation_error.c, trnbench_activation_report.c  errors (by activation_error.c); the HTML page
 *     trnbench_report.c     the HTML page of matmul
 *     examples/app/         what it shares with other programs: tables, options, messages, pages
 *
 * Data goes to stdout, everything else to stderr. Exit status: APP_OK, APP_FAILED, APP_USAGE.
 */
#ifndef TRNBENCH_H
#define TRNBENCH_H

#include "app/app.h"

int tb_main_matmul(int argc, char **argv);
int tb_main_convert(int argc, char **argv);
int tb_main_activation(int argc, char **argv);
int tb_main_spec(int argc, char **argv);
int tb_main_sparse(int argc, char **argv);
int tb_main_collective(int argc, char **argv);

void tb_mode_rows(app_table *table);                     /* starts it, too */
void tb_link_rows(app_table *table, const bool *wanted); /* wanted: by trn_system; starts it, too */
void tb_print_links(const app_table *links, const char *system);
void tb_quantity(app_table *table, double value, const char *unit); /* a cell for people: "190 Tflop/s" */

#endif /* TRNBENCH_H */

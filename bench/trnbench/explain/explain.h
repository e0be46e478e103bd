/* explain.h - subcommand explain: what is assumed of the engines, and how anyone knows.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_EXPLAIN_EXPLAIN_H
#define BENCH_EXPLAIN_EXPLAIN_H

#include "app/app.h"

int tb_main_explain(int argc, char **argv);

#endif /* BENCH_EXPLAIN_EXPLAIN_H */

/* main.c - achieved against specified TFLOPS of every Trainium system, and what this host makes of the same work.
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <trnmath/trn_base.h>

#include "activation/activation.h"
#include "collective/collective.h"
#include "convert/convert.h"
#include "explain/explain.h"
#include "matmul/matmul.h"
#include "sparse/sparse.h"
#include "spec/spec.h"

const char app_name[] = "trnbench";

/* Every subcommand is a folder beside this file, whose header declares its one entry point. */
static const app_branch commands[] = {
    { "matmul",
      "a product through the engine model: checked bit for bit, timed here, and what every system makes of it",
      tb_main_matmul },
    { "convert", "number formats into each other: speed beside memory and peers, and everybody's wrong answers",
      tb_main_convert },
    { "activation",
      "the Scalar engine's functions: engine model and ideal function, their speed beside SLEEF and their errors",
      tb_main_activation },
    { "sparse", "structured sparsity: checked bit for bit, timed beside the dense product, and on the chips",
      tb_main_sparse },
    { "collective", "collective operations: algorithm, time and bandwidth on every system, and their values checked",
      tb_main_collective },
    { "spec", "the ten machines, every number with its source", tb_main_spec },
    { "explain", "what is assumed of the engines: every field of the numerics, with its source", tb_main_explain },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int help(void)
{
    puts("usage: trnbench COMMAND [options]\n\ncommands:");
    for (int i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    puts("\ntrnbench COMMAND --help tells the options. Data goes to standard output, progress to standard error.\n"
         "Exit status: 0 ok, 1 a check failed, 2 bad usage or input.");
    return APP_OK;
}

int app_run(int argc, char **argv)
{
    return app_run_branch(commands, COMMANDS, argc, argv, help, "a command is missing; trnbench --help lists them");
}

/* main.c - srlab: what stochastic rounding does, from two sums to a transformer.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <string.h>

const char app_name[] = "srlab";

static int run_logistic(int argc, char **argv) { return sr_main_train(&sr_logistic, argc, argv); }
static int run_mlp(int argc, char **argv) { return sr_main_train(&sr_mlp, argc, argv); }
static int run_char(int argc, char **argv) { return sr_main_train(&sr_char, argc, argv); }

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = { { "sums", sr_main_sums }, { "logistic", run_logistic }, { "mlp", run_mlp }, { "char", run_char } };

static const char help_text[] =
    "usage: srlab COMMAND [options]\n"
    "\n"
    "What stochastic rounding does to sums and to training, with the engines' numerics, on this host's processor.\n"
    "\n"
    "  srlab sums       1024 + 0.5 + 0.5 ..., and the harmonic series, in seven formats: where they stop (a second)\n"
    "  srlab logistic   logistic regression (seconds)\n"
    "  srlab mlp        a small MLP on spirals (seconds)\n"
    "  srlab char       a character-level transformer of a million weights, on a word list (minutes)\n"
    "\n"
    "Each trains with weights in binary32, in bfloat16 rounded to nearest even, stochastically or with Kahan's sums,\n"
    "and with FP8 linear layers; srlab COMMAND --help tells the options.\n"
    "\n"
    "  srlab sums --html sums.html\n"
    "  srlab char --arms f32,bf16-rne,bf16-sr --html char.html\n"
    "  srlab mlp --seeds 5 --sweep-lr 1e-4,3e-4,1e-3,3e-3\n"
    "\n"
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 a check failed, 2 bad usage or input.";

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, word) == 0) return commands[i].run(argc - 2, argv + 2);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return puts(help_text) < 0;
    if (strcmp(word, "--version") == 0) return printf("%s %s\n", app_name, TRN_VERSION) < 0;
    if (!*word) return app_complain(APP_USAGE, "which command? sums, logistic, mlp or char; srlab --help tells more");
    return app_complain(APP_USAGE, "%s is not a command; srlab --help lists them", word);
}

/* completion.h - what shells complete: "mxq --completion bash" prints a script made of the tables that mxq reads its
 * command line by. SPDX-License-Identifier: MIT
 *
 *     eval "$(mxq --completion bash)"   in ~/.bashrc, or the script in /usr/share/bash-completion/completions
 *     mxq --completion zsh >_mxq        in a directory of $fpath
 *
 * Options come from app_option; the words of one from its own `apply`, which is given nothing and asked what it
 * wanted (app_parse_word tells). Where it expected no words, an argument called FILE, DIR or X.npy is a path.
 */
#ifndef APP_COMPLETION_H
#define APP_COMPLETION_H

#include "app.h"

/* Is this command line --completion SHELL, or --completion=SHELL, and nothing else? Then the shell, "" if none is
 * named; otherwise NULL. */
const char *app_completion_asked(int argc, char **argv);
/* Prints the script for a program, of which `run` is app_run; an exit status. */
int app_completion(const char *shell, char **argv, int (*run)(int argc, char **argv));

/* Asked by what reads command lines: is it only being looked at? */
bool app_completion_takes(const app_command *command, void *options);
bool app_completion_branches(const app_branch *branch, int branches);

#endif /* APP_COMPLETION_H */

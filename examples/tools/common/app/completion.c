/* completion.c - the options of a program, collected by running it without doing its work, as a script for bash or zsh.
 * SPDX-License-Identifier: MIT
 */
#include "completion.h"

#include <ctype.h>
#include <string.h>

#include <trnmath/trn_format.h>
#include <trnmath/trn_spec.h>

enum { MOST_COMMANDS = 16, MOST_OPTIONS = 96, MOST_WORDS = 64 };

typedef struct offer {
    const app_option *option;
    const char *word[MOST_WORDS];
    int words;
} offer;

typedef struct collected {
    const char *name, *summary; /* of the subcommand; NULL: the program itself */
    offer offer[MOST_OPTIONS];
    int offers;
    bool operands;
} collected;

static collected command[MOST_COMMANDS];
static int commands;
static const app_branch *branch; /* whose subcommand is being looked at; NULL: the program itself */
static bool collecting;
static offer *probed; /* the option whose words are asked for */

/* ---- looking ---- */

const char *app_completion_asked(int argc, char **argv)
{
    static const char flag[] = "--completion";
    if (argc < 2 || argc > 3 || strncmp(argv[1], flag, sizeof flag - 1) != 0) return NULL;
    const char *rest = argv[1] + sizeof flag - 1;
    if (*rest == '=') return argc == 2 ? rest + 1 : NULL;
    return *rest ? NULL : argc == 3 ? argv[2] : "";
}

/* Words that no shell takes for something else. */
static bool plain(const char *word)
{
    if (!*word) return false;
    for (; *word; word++)
        if (!isalnum((unsigned char)*word) && !strchr("._-+", *word)) return false;
    return true;
}

void app_offer(const char *const *word, int words)
{
    if (!probed || probed->words) return;
    for (int i = 0; i < words && probed->words < MOST_WORDS; i++)
        if (word[i] && plain(word[i])) probed->word[probed->words++] = word[i];
}

void app_offer_systems(void)
{
    const char *name[TRN_SYSTEM_COUNT];
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) name[i] = trn_system_name((trn_system)i);
    app_offer(name, TRN_SYSTEM_COUNT);
}

void app_offer_formats(void)
{
    const char *name[TRN_FORMAT_COUNT];
    for (int i = 0; i < TRN_FORMAT_COUNT; i++) name[i] = i ? trn_format_name((trn_format)i) : NULL;
    app_offer(name, TRN_FORMAT_COUNT);
}

bool app_completion_takes(const app_command *of, void *options)
{
    char why[APP_WHY];
    if (!collecting) return false;
    if (commands == MOST_COMMANDS) return true;
    collected *c = &command[commands++];
    c->name = branch ? branch->name : NULL;
    c->summary = branch ? branch->summary : NULL;
    c->operands = of->operand != NULL;
    for (int i = 0; i < of->options && c->offers < MOST_OPTIONS; i++) {
        if (!of->option[i].name) continue;
        probed = &c->offer[c->offers++];
        probed->option = &of->option[i];
        if (probed->option->argument) app_apply(probed->option, options, "", why);
    }
    probed = NULL;
    return true;
}

bool app_completion_branches(const app_branch *all, int branches)
{
    char *none[] = { NULL };
    if (!collecting) return false;
    for (int i = 0; i < branches; i++) {
        branch = &all[i];
        all[i].run(0, none);
    }
    branch = NULL;
    return true;
}

/* FILE, DIR, X.npy. */
static bool is_path(const offer *o)
{
    const char *a = o->option->argument;
    return strstr(a, "FILE") || strstr(a, "DIR") || strstr(a, "PATH") || (strchr(a, '.') && !strstr(a, "..."));
}

static bool has_branches(void) { return commands > 0 && command[0].name; }

/* ---- bash ---- */

static void bash_options(const collected *c)
{
    printf("    %s:-*) words='--help%s", c->name ? c->name : "", c->name ? "" : " --version");
    for (int i = 0; i < c->offers; i++) printf(" %s", c->offer[i].option->name);
    printf("' ;;\n");
    if (!c->operands) printf("    %s:*) none=1 ;;\n", c->name ? c->name : "");
}

static void bash_values(const collected *c)
{
    for (int i = 0; i < c->offers; i++) {
        const offer *o = &c->offer[i];
        if (!o->option->argument) continue;
        printf("    %s:%s) ", c->name ? c->name : "", o->option->name);
        if (o->words) printf("words='");
        for (int w = 0; w < o->words; w++) printf("%s%s", w ? " " : "", o->word[w]);
        printf(o->words ? "'; value=1 ;;\n" : is_path(o) ? "value=1 ;;\n" : "value=1 none=1 ;;\n");
    }
}

/* "--rule=near" comes as three words. Where nothing is offered, bash offers files, unless told not to. */
static const char bash_begins[] =
    "_trnmath_%s() {\n"
    "    local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= value= none=\n"
    "    COMPREPLY=()\n"
    "    if [[ $now == = ]]; then now=\n"
    "    elif [[ $before == = && $COMP_CWORD -gt 1 ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n";
static const char bash_ends[] = "    [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$now\"))\n"
                                "    [[ -z $words$none ]] || compopt +o default +o bashdefault 2>/dev/null\n"
                                "    return 0\n"
                                "}\n"
                                "complete -o bashdefault -o default -F _trnmath_%s %s\n";

static void bash(void)
{
    printf("# bash completion of %s\n", app_name);
    printf(bash_begins, app_name);
    if (has_branches()) {
        printf("    [[ $COMP_CWORD -le 1 ]] || command=${COMP_WORDS[1]}\n");
        printf("    if [[ $COMP_CWORD -le 1 ]]; then words='--help --version");
        for (int i = 0; i < commands; i++) printf(" %s", command[i].name);
        printf("'\n    else\n");
    }
    printf("    case $command:$before in\n");
    for (int i = 0; i < commands; i++) bash_values(&command[i]);
    printf("    esac\n    [[ $value ]] || case $command:$now in\n");
    for (int i = 0; i < commands; i++) bash_options(&command[i]);
    printf(has_branches() ? "    esac\n    fi\n" : "    esac\n");
    printf(bash_ends, app_name, app_name);
}

/* ---- zsh ---- */

/* A line of text inside '...' and [...] and between colons. */
static void zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_option(const offer *o)
{
    printf(" \\\n        '*%s%s[", o->option->name, o->option->argument ? "=" : "");
    zsh_text(o->option->help);
    putchar(']');
    if (o->option->argument) {
        putchar(':');
        zsh_text(o->option->argument);
        putchar(':');
        if (o->words) putchar('(');
        for (int w = 0; w < o->words; w++) printf("%s%s", w ? " " : "", o->word[w]);
        printf(o->words ? ")" : is_path(o) ? "_files" : " ");
    }
    putchar('\'');
}

static void zsh_arguments(const collected *c)
{
    printf("    _arguments '--help[this text]'%s", c->name ? "" : " '--version[the version]'");
    for (int i = 0; i < c->offers; i++) zsh_option(&c->offer[i]);
    printf(c->operands ? " \\\n        '*:operand:_files'\n" : "\n");
}

static void zsh(void)
{
    printf("#compdef %s\n_%s() {\n", app_name, app_name);
    if (!has_branches()) {
        if (commands) zsh_arguments(&command[0]);
    } else {
        printf("    local -a commands=(");
        for (int i = 0; i < commands; i++) {
            printf(" \\\n        '%s:", command[i].name);
            zsh_text(command[i].summary ? command[i].summary : "");
            putchar('\'');
        }
        printf(")\n    local curcontext=$curcontext state line\n"
               "    _arguments -C '--help[this text]' '--version[the version]' '1:command:->command' '*::rest:->rest'\n"
               "    if [[ $state == command ]]; then _describe command commands; return; fi\n"
               "    case $words[1] in\n");
        for (int i = 0; i < commands; i++) {
            printf("    %s)\n", command[i].name);
            zsh_arguments(&command[i]);
            printf("    ;;\n");
        }
        printf("    esac\n");
    }
    printf("}\nif [[ $funcstack[1] == _%s ]]; then _%s \"$@\"; else compdef _%s %s; fi\n", app_name, app_name, app_name,
           app_name);
}

int app_completion(const char *shell, char **argv, int (*run)(int argc, char **argv))
{
    static const char *const name[] = { "bash", "zsh" };
    static void (*const print[])(void) = { bash, zsh };
    char why[APP_WHY];
    const int which = app_parse_word(shell, name, 2, why);
    if (which < 0) return app_complain(APP_USAGE, "--completion %s: %s", shell, why);
    char *alone[] = { argv[0], NULL };
    collecting = true;
    run(1, alone);
    collecting = false;
    if (!commands) return app_complain(APP_USAGE, "%s has no options to complete", app_name);
    print[which]();
    return APP_OK;
}

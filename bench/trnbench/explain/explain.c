/* explain.c - subcommand explain: every field of the numerics, its value, default and source; the presets.
 * SPDX-License-Identifier: MIT
 */
#include "explain.h"

#include <stdio.h>

#include <trnmath/trn_numerics.h>

typedef struct options {
    trn_numerics numerics;
    bool given, presets;
} options;

static bool take_numerics(void *into, const char *word, char *why)
{
    options *o = into;
    if (o->given) return app_refuse(why, "numerics are one word; settings are separated by commas");
    o->given = true;
    return app_parse_numerics(word, &o->numerics, why);
}

static const app_option option[] = {
    { "--presets", NULL, "the presets: name, settings, and where they come from", APP_SETS(options, presets) },
};

static const app_command command = {
    .name = "explain",
    .usage = "trnbench explain [NUMERICS] [options]",
    .summary = "Every field of the numerics: its value, its default, what it may be, and how that is known.",
    .option = option,
    .options = sizeof option / sizeof option[0],
    .notes = "NUMERICS is what --numerics takes elsewhere: field=value or names of presets, with commas between. Each\n"
             "source is documented, measured (by whom) or assumed (why).",
    .operand = take_numerics,
};

static void print_line(void *out, const char *text) { fprintf(out, "%s\n", text); }

static void print_presets(void)
{
    const char *name, *setting, *source;
    for (int i = 0; (name = trn_numerics_preset(i, &setting, &source)) != NULL; i++)
        printf("%s = %s - %s\n", name, setting[0] ? setting : "the defaults", source);
}

int tb_main_explain(int argc, char **argv)
{
    options o = { .numerics = trn_numerics_default(TRN_GENERATION_DEFAULT) };
    const int status = app_parse_options(&command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (o.presets)
        print_presets();
    else
        trn_numerics_explain(&o.numerics, print_line, stdout);
    return APP_OK;
}

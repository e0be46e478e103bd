/* options.c - the command line.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_act.h>
#include <trnmath/trn_collective.h>
#include <trnmath/trn_numerics.h>

/* ---- values ---- */

static bool operand(void *into, const char *word, char *why)
{
    ud_options *o = into;
    if (o->in_inputs) {
        if (o->inputs == UD_INPUTS) return app_refuse(why, "more inputs than there is room for");
        o->input[o->inputs++] = word;
    } else if (!o->a)
        o->a = word;
    else if (!o->b)
        o->b = word;
    else
        return app_refuse(why, "two files are compared; files after --inputs are the operands");
    return true;
}

static bool take_inputs(void *into, const char *value, char *why)
{
    ((ud_options *)into)->in_inputs = true;
    return operand(into, value, why);
}

static bool take_unit(void *into, const char *value, char *why)
{
    ud_options *o = into;
    if (!ud_unit_from_name(value, &o->unit)) return app_refuse(why, "it is not a number format");
    return o->unit_given = true;
}

static bool take_format(const char *value, trn_format *format, char *why)
{
    *format = trn_format_from_name(value);
    return *format != TRN_FORMAT_UNSET || app_refuse(why, "it is not a number format");
}

static bool take_dtype(void *into, const char *value, char *why)
{
    ud_options *o = into;
    trn_format format;
    if (!take_format(value, &format, why)) return false;
    for (int i = 0; i < 3; i++)
        if (o->dtype[i] == TRN_FORMAT_UNSET) o->dtype[i] = format;
    return true;
}

static bool take_dtype_a(void *o, const char *value, char *why)
{
    return take_format(value, &((ud_options *)o)->dtype[0], why);
}
static bool take_dtype_b(void *o, const char *value, char *why)
{
    return take_format(value, &((ud_options *)o)->dtype[1], why);
}
static bool take_dtype_in(void *o, const char *value, char *why)
{
    return take_format(value, &((ud_options *)o)->dtype[2], why);
}
static bool take_wire(void *o, const char *value, char *why)
{
    return take_format(value, &((ud_options *)o)->wire, why);
}

static bool take_above(void *o, const char *value, char *why)
{
    return app_parse_real(value, 0, HUGE_VAL, &((ud_options *)o)->fail_above, why);
}

static bool take_above_rel(void *o, const char *value, char *why)
{
    return app_parse_real(value, 0, HUGE_VAL, &((ud_options *)o)->fail_above_rel, why);
}

static bool take_below(void *o, const char *value, char *why)
{
    return app_parse_real(value, -HUGE_VAL, HUGE_VAL, &((ud_options *)o)->fail_sqnr_below, why);
}

static bool take_op(void *o, const char *value, char *why)
{
    static const char *const name[] = { "matmul", "all_reduce", "reduce_scatter", "cast", "activation" };
    const int op = app_parse_word(value, name, sizeof name / sizeof name[0], why);
    ((ud_options *)o)->op = (ud_op)(op + 1); /* UD_OP_NONE comes first */
    return op >= 0;
}

static bool take_function(void *o, const char *value, char *why)
{
    if (trn_act_from_name(value) == TRN_ACT_COUNT)
        return app_refuse(why, "the Scalar engine has no function of that name");
    ((ud_options *)o)->function = value;
    return true;
}

static bool take_system(void *o, const char *value, char *why)
{
    if (trn_system_from_name(value) == TRN_SYSTEM_COUNT) return app_refuse(why, "no such system");
    ((ud_options *)o)->system = value;
    return true;
}

static bool take_numerics(void *o, const char *value, char *why)
{
    trn_numerics n;
    if (trn_numerics_parse(&n, value) != TRN_OK) return app_refuse(why, "expected FIELD=VALUE,... or a preset's name");
    ((ud_options *)o)->numerics = value;
    return true;
}

static bool take_rank(void *o, const char *value, char *why)
{
    return app_parse_number(value, 0, 1 << 20, &((ud_options *)o)->rank, why);
}
static bool take_top(void *o, const char *value, char *why)
{
    return app_parse_number(value, 0, 100000, &((ud_options *)o)->top, why);
}

APP_TAKE(take_places, ud_options, places, true)
APP_TAKE(take_codes, ud_options, codes, true)
APP_TAKE(take_tensor, ud_options, tensor, value)
APP_TAKE(take_all, ud_options, all, true)
APP_TAKE(take_no_map, ud_options, no_map, true)
APP_TAKE(take_colour, ud_options, colour, true)
APP_TAKE(take_json, ud_options, json, value)
APP_TAKE(take_csv, ud_options, csv, value)
APP_TAKE(take_html, ud_options, html, value)
APP_TAKE(take_schema, ud_options, schema, true)

/* ---- the command ---- */

static const app_option options[] = {
    { "--ulp-format", "NAME",
      "count in ulps of this format (default: that of the data; of two, the one with fewer bits)", take_unit },
    { "--codes", NULL,
      "an ulp is a step along the codes: A and B are rounded to the format first\n(default where both sides have it)",
      take_codes },
    { "--places", NULL,
      "an ulp is the unit in the last place of A, |B - A| is a fraction of it\n(default where a side has another "
      "format)",
      take_places },
    { "--dtype", "NAME",
      "what the codes of .npy files (u1, u2, V1, V2) are: float8_e4m3 (240), float8_e4m3fn\n(448), float8_e5m2, "
      "bfloat16, ...; --dtype-a, --dtype-b, --dtype-inputs for one alone",
      take_dtype },
    { "--dtype-a", "NAME", "of A", take_dtype_a },
    { "--dtype-b", "NAME", "of B", take_dtype_b },
    { "--dtype-inputs", "NAME", "of the inputs", take_dtype_in },
    { "--tensor", "PATTERN", "only tensors whose names match (*, ?)", take_tensor },
    { "--all", NULL, "details of every tensor, not of the worst alone", take_all },
    { "--no-map", NULL, "without the map of the differences", take_no_map },
    { "--color", NULL, "colours and blocks even where standard output is no terminal", take_colour },
    { "--inputs", "FILE ...", "what A and B were computed from; the last files on the line (.npy, .npz, safetensors)",
      take_inputs },
    { "--op", "NAME", "how: matmul, all_reduce, reduce_scatter, cast, activation (default: matmul, of one\nfile cast)",
      take_op },
    { "--numerics", "TEXT", "matmul: one more hypothesis, FIELD=VALUE,...", take_numerics },
    { "--wire", "NAME", "collectives: only this format between ranks", take_wire },
    { "--system", "NAME", "collectives: its links, where its chips or cores are as many as the ranks", take_system },
    { "--rank", "N", "reduce_scatter: whose part A and B are (default: 0, or all of them joined)", take_rank },
    { "--function", "NAME", "activation: exp, tanh, gelu, ...", take_function },
    { "--top", "N", "hypotheses to show (default: 8)", take_top },
    { "--fail-above", "N", "exit 1 if any distance is above N ulps, or NaN or infinity stands against a number",
      take_above },
    { "--fail-above-rel", "X", "exit 1 if any relative error is above X", take_above_rel },
    { "--fail-sqnr-below", "DB", "exit 1 if any tensor's SQNR is below", take_below },
    { "--json", "FILE", "everything as JSON (- for standard output, without the text)", take_json },
    { "--csv", "FILE", "one row per tensor, one header row (- as above)", take_csv },
    { "--html", "FILE", "a page with histograms and maps", take_html },
    { "--schema", NULL, "the columns of the CSV", take_schema },
};

static const app_command command = {
    "ulpdiff",
    "usage: ulpdiff A B [options] [--op NAME --inputs FILE ...]",
    "What differs between two arrays or two checkpoints, in ulps, and, given what they were computed from, why.\n"
    "A is what B is measured against. Files: .npy, .npz, safetensors (also sharded, or a directory); arrays meet by "
    "name.",
    options,
    sizeof options / sizeof options[0],
    "Two NaN are equal, whatever their bits; so are equal infinities. +0 and -0 are 0 ulps apart. Relative errors are "
    "to |A|;\n"
    "SQNR is the energy of A over that of B - A. --inputs comes last: every file after it is an operand.\n"
    "\n"
    "examples:\n"
    "  ulpdiff cpu.npy device.npy\n"
    "  ulpdiff old.safetensors new.safetensors --fail-above 1\n"
    "  ulpdiff cpu.npy device.npy --ulp-format bfloat16 --html report.html\n"
    "  ulpdiff cpu.npy device.npy --op matmul --inputs x.npy w.npy\n"
    "  ulpdiff sum32.npy grads.npy --op all_reduce --wire bfloat16 --inputs rank0.npy rank1.npy rank2.npy rank3.npy\n"
    "\n"
    "exit status: 0 compared, 1 a --fail-... struck or a tensor has no partner of its shape, 2 bad usage or bad input",
    operand,
};

static int check(ud_options *o)
{
    if (o->schema) return APP_OK;
    if (!o->a || !o->b) return app_complain(APP_USAGE, "which two files? ulpdiff --help tells more");
    if (o->places && o->codes) return app_complain(APP_USAGE, "--codes and --places exclude each other");
    if (o->op != UD_OP_NONE && !o->inputs)
        return app_complain(APP_USAGE, "--op needs --inputs: what A and B were computed from");
    if (o->op == UD_OP_NONE && o->inputs) o->op = o->inputs == 1 ? UD_OP_CAST : UD_OP_MATMUL;
    if (o->op == UD_OP_ACTIVATION && !o->function) return app_complain(APP_USAGE, "--op activation needs --function");
    const char *standard[] = { o->json, o->csv, o->html };
    int taken = 0;
    for (int i = 0; i < 3; i++) taken += standard[i] && strcmp(standard[i], "-") == 0;
    if (taken > 1) return app_complain(APP_USAGE, "only one of --json, --csv and --html can have standard output");
    return APP_OK;
}

int ud_parse(int argc, char **argv, ud_options *o)
{
    memset(o, 0, sizeof *o);
    o->top = 8;
    o->rank = -1;
    o->fail_above = o->fail_above_rel = o->fail_sqnr_below = NAN;
    const int status = app_parse_options(&command, o, argc - 1, argv + 1);
    return status == APP_OK ? check(o) : status;
}

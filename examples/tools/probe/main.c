/* main.c - which trn_numerics is a Tensor engine? Inputs for a chip, and what its outputs say.
 * SPDX-License-Identifier: MIT
 */
#include "probe.h"

#include <string.h>

#include "app/files.h"

const char app_name[] = "probe";

/* ---- options ---- */

typedef struct options {
    const char *write, *run, *identify, *numerics, *json;
    trn_generation generation;
    uint64_t seed, settings;
    bool self_test, list, force, any_generation, any_seed;
} options;

static bool take_generation(void *into, const char *value, char *why)
{
    options *o = (options *)into;
    o->any_generation = true;
    return probe_generation_from_name(value, &o->generation) || app_refuse(why, "expected trn1, trn2 or trn3");
}

static bool take_numerics(void *into, const char *value, char *why)
{
    trn_numerics n;
    ((options *)into)->numerics = value;
    return app_parse_numerics(value, &n, why);
}

static bool take_self_test(void *into, const char *value, char *why)
{
    options *o = (options *)into;
    o->self_test = true;
    return app_parse_uint64(value, 1000000, &o->settings, why);
}

static bool take_seed(void *into, const char *value, char *why)
{
    options *o = (options *)into;
    o->any_seed = true;
    return app_parse_uint64(value, UINT64_MAX, &o->seed, why);
}

static const app_option option[] = {
    { "--write", "DIR", "the inputs (.npy), an NKI kernel that runs them on a chip, and a README",
      APP_TAKES_TEXT(options, write) },
    { "--generation", "NAME", "of the chip they are for: trn1, trn2 or trn3 (default: trn2)",
      .apply = take_generation },
    { "--run", "DIR", "runs the inputs on this library in place of a chip", APP_TAKES_TEXT(options, run) },
    { "--numerics", "TEXT",
      "as which engine: settings and presets, such as chains=8,product=bf16 (default: the\ndefaults)",
      .apply = take_numerics },
    { "--identify", "DIR", "reads the outputs back and names every setting that predicts them",
      APP_TAKES_TEXT(options, identify) },
    { "--json", "FILE", "the same as JSON (- for standard output, in place of the text)",
      APP_TAKES_TEXT(options, json) },
    { "--self-test", "N", "recovers N random settings, and tells every setting of the array from every other",
      .apply = take_self_test },
    { "--seed", "S", "of random settings and of stochastic rounding (default: 1)", .apply = take_seed },
    { "--force", NULL, "replace what is there, DIR of --write or DIR/out of --run, in one step",
      APP_SETS(options, force) },
    { "--list", NULL, "the tiles and the fields", APP_SETS(options, list) },
};

static const app_command command = {
    "probe",
    "usage: probe --write DIR [--generation trn1|trn2|trn3] [--force]\n"
    "       probe --run DIR [--numerics TEXT] [--seed S] [--force]\n"
    "       probe --identify DIR [--json FILE]\n"
    "       probe --self-test N [--seed S]\n"
    "       probe --list",
    "Small matrix products whose results tell how a Tensor engine adds: its chains of partial sums, their rounding "
    "and\n"
    "width, what it does to products and subnormal numbers, what PSUM holds. The answer is a setting of trn_numerics,\n"
    "with which this library returns the same bits.",
    option,
    sizeof option / sizeof option[0],
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 no setting predicts the outputs (or a self-test failed), 2 bad usage or input.",
    NULL,
};

/* ---- tasks ---- */

static void list_tiles(void)
{
    puts("tiles");
    for (int i = 0; i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        printf("  %-22s %-17s %s%s%s  %s\n", t->name, t->kind, t->generations & PROBE_TRN1 ? "trn1 " : "     ",
               t->generations & PROBE_TRN2 ? "trn2 " : "     ", t->generations & PROBE_TRN3 ? "trn3" : "    ",
               t->question);
    }
}

static void list_fields(void)
{
    char number[16];
    puts("\nfields");
    for (int f = 0; f < PROBE_FIELDS; f++) {
        printf("  %-22s %s", probe_hypotheses[f].name, probe_value_name(f, 0, number));
        const int values = probe_values(f), all = probe_hypotheses[f].value != NULL;
        if (f == PROBE_BIAS) printf(" (the format's), 1");
        for (int v = all ? 1 : values - 1; v < values; v++)
            printf("%s%s", all ? ", " : " to ", probe_value_name(f, v, number));
        putchar('\n');
    }
}

static void list_rules(void)
{
    char number[16];
    puts("\nwhat no input can tell apart");
    for (int i = 0; i < probe_rule_count; i++) {
        const probe_rule *r = &probe_rules[i];
        int first = 0, last = 0;
        for (int v = probe_values((int)r->when) - 1; v >= 0; v--)
            if (r->when_values >> v & 1u) {
                last = last > v ? last : v;
                first = v;
            }
        printf("  %-22s where %s=%s", probe_hypotheses[r->field].name, probe_hypotheses[r->when].name,
               probe_value_name((int)r->when, first, number));
        if (last > first) printf(" to %s", probe_value_name((int)r->when, last, number));
        printf(": %s\n", r->reason);
    }
}

static int list(void)
{
    list_tiles();
    list_fields();
    list_rules();
    puts("\nother fields");
    for (int i = 0; probe_not_probed[i][0]; i++) printf("  %-22s %s\n", probe_not_probed[i][0], probe_not_probed[i][1]);
    return APP_OK;
}

static void print_text(FILE *out, const void *report) { probe_print_text(out, report); }

static int identify(const options *o)
{
    probe_seen seen;
    char why[APP_WHY];
    app_output output = { .flag = "--json", .path = o->json, .write = probe_print_json };
    probe_claim_directory(o->identify);
    const bool read = probe_read_directory(o->identify, &seen, why);
    int status = read ? app_open_outputs(&output, 1) : app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) {
        probe_report report = { &seen, probe_identify(&seen, UINT64_MAX) };
        status = app_answer(&output, 1, &report, print_text);
        if (status == APP_OK && report.verdict.wrong) status = APP_FAILED;
        probe_verdict_free(&report.verdict);
    }
    probe_seen_free(&seen);
    return status;
}

static int run(const options *o)
{
    trn_numerics n;
    char why[APP_WHY];
    trn_numerics_parse(&n, o->numerics ? o->numerics : "");
    return probe_run_directory(o->run, &n, o->seed, o->force, why) ? APP_OK : app_complain(APP_USAGE, "%s", why);
}

static int write_inputs(const options *o)
{
    char why[APP_WHY];
    return probe_write_directory(o->write, o->generation, o->force, why) ? APP_OK : app_complain(APP_USAGE, "%s", why);
}

static int work(const options *o)
{
    const int tasks = !!o->write + !!o->run + !!o->identify + o->self_test + o->list;
    if (tasks != 1)
        return app_complain(APP_USAGE, "%s; probe --help tells more",
                            tasks ? "--write, --run, --identify, --self-test and --list exclude each other"
                                  : "one of --write, --run, --identify, --self-test, --list is needed");
    if (o->any_generation && !o->write) return app_complain(APP_USAGE, "--generation goes with --write");
    if (o->numerics && !o->run) return app_complain(APP_USAGE, "--numerics goes with --run");
    if (o->json && !o->identify) return app_complain(APP_USAGE, "--json goes with --identify");
    if (o->force && !o->write && !o->run) return app_complain(APP_USAGE, "--force goes with --write or --run");
    if (o->any_seed && !o->run && !o->self_test)
        return app_complain(APP_USAGE, "--seed goes with --run or --self-test");
    if (o->self_test) return probe_self_test((long)o->settings, o->seed) ? APP_OK : APP_FAILED;
    return o->list ? list() : o->write ? write_inputs(o) : o->run ? run(o) : identify(o);
}

int app_run(int argc, char **argv)
{
    options o = { .generation = TRN_TRAINIUM2, .seed = 1 };
    int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status == APP_OK)
        status = work(&o);
    else if (status < 0)
        status = APP_OK;
    return status;
}

/* main.c - which trn_numerics is a Tensor engine? Inputs for a chip, and what its outputs say.
 * SPDX-License-Identifier: MIT
 */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_base.h>

/* One line, whatever names it quotes: they must not steer the terminal. */
int probe_complain(int status, const char *format, ...)
{
    char text[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    fprintf(stderr, "probe: %s\n", text);
    return status;
}

static const char help_text[] =
    "usage: probe --write DIR [--generation trn1|trn2|trn3]\n"
    "       probe --run DIR [--numerics TEXT] [--seed S]\n"
    "       probe --identify DIR [--json FILE]\n"
    "       probe --self-test N [--seed S]\n"
    "       probe --list\n"
    "\n"
    "Small matrix products whose results tell how a Tensor engine adds: its chains of partial sums, their rounding "
    "and\n"
    "width, what it does to products and subnormal numbers, what PSUM holds. The answer is a setting of trn_numerics,\n"
    "with which this library returns the same bits.\n"
    "\n"
    "  --write DIR        the inputs (.npy), an NKI kernel that runs them on a chip, and a README\n"
    "  --generation NAME  of the chip they are for (default trn2)\n"
    "  --run DIR          runs the inputs on this library in place of a chip\n"
    "  --numerics TEXT    as which engine: settings and presets, such as chains=8,product=bf16 (default: the "
    "defaults)\n"
    "  --identify DIR     reads the outputs back and names every setting that predicts them\n"
    "  --json FILE        the same as JSON (- for standard output, in place of the text)\n"
    "  --self-test N      recovers N random settings, and tells every setting of the array from every other\n"
    "  --seed S           of random settings and of stochastic rounding (default 1)\n"
    "  --list             the tiles and the fields\n"
    "  --help, --version\n"
    "\n"
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 no setting predicts the outputs (or a self-test failed), 2 bad usage or input.";

typedef struct options {
    const char *write, *generation, *run, *numerics, *identify, *json, *self_test, *seed;
    bool list;
} options;

static const struct {
    const char *name;
    size_t offset;
    const char *value;
} option_table[] = {
    { "--write", offsetof(options, write), "DIR" },
    { "--generation", offsetof(options, generation), "trn1, trn2 or trn3" },
    { "--run", offsetof(options, run), "DIR" },
    { "--numerics", offsetof(options, numerics), "TEXT" },
    { "--identify", offsetof(options, identify), "DIR" },
    { "--json", offsetof(options, json), "FILE" },
    { "--self-test", offsetof(options, self_test), "N" },
    { "--seed", offsetof(options, seed), "S" },
};
enum { OPTIONS = sizeof option_table / sizeof option_table[0] };

static int take(options *o, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (int k = 0; k < OPTIONS; k++) {
        if (strlen(option_table[k].name) != length || memcmp(option_table[k].name, word, length) != 0) continue;
        if (!equals && *i + 1 == argc)
            return probe_complain(PROBE_USAGE, "%s needs a value: %s", option_table[k].name, option_table[k].value);
        const char *value = equals ? equals + 1 : argv[++*i];
        memcpy((char *)o + option_table[k].offset, &value, sizeof value);
        return PROBE_OK;
    }
    if (strcmp(word, "--list") == 0) return o->list = true, PROBE_OK;
    return probe_complain(PROBE_USAGE, "%s is not an option; probe --help lists them", word);
}

static bool whole_number(const char *text, uint64_t high, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && errno == 0 && *value <= high;
}

static int list(void)
{
    char number[16];
    puts("tiles");
    for (int i = 0; i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        printf("  %-22s %-17s %s%s%s  %s\n", t->name, t->kind, t->generations & PROBE_TRN1 ? "trn1 " : "     ",
               t->generations & PROBE_TRN2 ? "trn2 " : "     ", t->generations & PROBE_TRN3 ? "trn3" : "    ",
               t->question);
    }
    puts("\nfields");
    for (int f = 0; f < PROBE_FIELDS; f++) {
        printf("  %-22s %s", probe_hypotheses[f].name, probe_value_name(f, 0, number));
        const int values = probe_values(f), all = probe_hypotheses[f].value != NULL;
        if (f == PROBE_BIAS) printf(" (the format's), 1");
        for (int v = all ? 1 : values - 1; v < values; v++)
            printf("%s%s", all ? ", " : " to ", probe_value_name(f, v, number));
        putchar('\n');
    }
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
    puts("\nother fields");
    for (int i = 0; probe_not_probed[i][0]; i++) printf("  %-22s %s\n", probe_not_probed[i][0], probe_not_probed[i][1]);
    return PROBE_OK;
}

static int identify(const options *o)
{
    probe_seen seen;
    char why[PROBE_WHY];
    const bool to_stdout = o->json && strcmp(o->json, "-") == 0;
    if (!probe_read_directory(o->identify, &seen, why)) return probe_complain(PROBE_USAGE, "%s", why);
    FILE *json = !o->json ? NULL : to_stdout ? stdout : fopen(o->json, "w");
    if (o->json && !json)
        return probe_complain(PROBE_USAGE, "--json %s: it cannot be created (%s)", o->json, strerror(errno));
    const int status = probe_report(to_stdout ? NULL : stdout, json, &seen);
    probe_seen_free(&seen);
    if (json && json != stdout && fclose(json) != 0)
        return probe_complain(PROBE_USAGE, "--json %s: it cannot be written", o->json);
    return status;
}

static int run(const options *o, uint64_t seed)
{
    trn_numerics n;
    if (trn_numerics_parse(&n, o->numerics ? o->numerics : "") != TRN_OK)
        return probe_complain(PROBE_USAGE,
                              "--numerics %s: expected field=value or preset names with commas between, such as "
                              "chains=1,merge=pairwise or single_chain",
                              o->numerics);
    return probe_run_directory(o->run, &n, seed);
}

static int work(const options *o)
{
    const int tasks = !!o->write + !!o->run + !!o->identify + !!o->self_test + o->list;
    trn_generation generation = TRN_TRAINIUM2;
    uint64_t seed = 1, settings = 0;
    if (tasks != 1)
        return probe_complain(PROBE_USAGE, "%s; probe --help tells more",
                              tasks ? "--write, --run, --identify, --self-test and --list exclude each other"
                                    : "one of --write, --run, --identify, --self-test, --list is needed");
    if (o->generation && !o->write) return probe_complain(PROBE_USAGE, "--generation goes with --write");
    if (o->numerics && !o->run) return probe_complain(PROBE_USAGE, "--numerics goes with --run");
    if (o->json && !o->identify) return probe_complain(PROBE_USAGE, "--json goes with --identify");
    if (o->seed && !o->run && !o->self_test)
        return probe_complain(PROBE_USAGE, "--seed goes with --run or --self-test");
    if (o->generation && !probe_generation_from_name(o->generation, &generation))
        return probe_complain(PROBE_USAGE, "--generation %s: expected trn1, trn2 or trn3", o->generation);
    if (o->seed && !whole_number(o->seed, UINT64_MAX, &seed))
        return probe_complain(PROBE_USAGE, "--seed %s: expected a whole number", o->seed);
    if (o->self_test && !whole_number(o->self_test, 1000000, &settings))
        return probe_complain(PROBE_USAGE, "--self-test %s: expected a whole number from 0 to 1000000", o->self_test);
    return o->list       ? list()
           : o->write    ? probe_write_directory(o->write, generation)
           : o->run      ? run(o, seed)
           : o->identify ? identify(o)
                         : probe_self_test((long)settings, seed);
}

int main(int argc, char **argv)
{
    options o = { 0 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return puts(help_text), PROBE_OK;
        if (strcmp(argv[i], "--version") == 0) return printf("probe %s\n", TRN_VERSION), PROBE_OK;
        if (take(&o, argc, argv, &i) != PROBE_OK) return PROBE_USAGE;
    }
    const int status = work(&o);
    if (fflush(stdout) != 0) return probe_complain(PROBE_USAGE, "standard output cannot be written");
    return status;
}

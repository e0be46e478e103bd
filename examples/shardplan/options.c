/* options.c - the command line.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int sp_complain(int status, const char *format, ...)
{
    va_list list;
    fputs("shardplan: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return status;
}

static const char help_text[] =
    "usage: shardplan CONFIG [options]\n"
    "\n"
    "How to spread a transformer over the chips of a Trainium system: every combination of tensor, context, expert,\n"
    "data and pipeline parallelism, those that cannot be with the reason, the others ranked by the time of a step.\n"
    "CONFIG is the config.json of a Hugging Face model (- for standard input). Degrees are counted in chips.\n"
    "All times are results of a model, never measurements.\n"
    "\n"
    "the job\n"
    "  --system NAME         trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge, trn2.48xlarge, trn2u.48xlarge,\n"
    "                        trn2-ultraserver (default), trn3-gen1-ultraserver, trn3-gen2-ultraserver,\n"
    "                        trn1-ultracluster, project-rainier\n"
    "  --preset NAME         links of Trainium3: sa (default), doc, spec, each with /planes=2 or 4\n"
    "  --chips N             a part of the system\n"
    "  --job NAME            train (default), prefill, decode\n"
    "  --batch N             sequences in a step (default: train 4 a chip, else 1 a chip)\n"
    "  --seq N               tokens of a sequence; decode: in the cache (default 4096)\n"
    "  --prompt N            decode: tokens of a prompt, for the first token (default: --seq)\n"
    "  --format LIST         such as weights=float8_e4m3,kv=bfloat16; of weights, activations, gradients,\n"
    "                        optimizer, kv, wire, compute\n"
    "the search\n"
    "  --tp N --cp N --ep N --dp N --pp N   only plans with these degrees\n"
    "  --microbatch N        only microbatches of N sequences\n"
    "  --zero NAME           auto (default), none, optimizer, gradients, weights\n"
    "  --recompute NAME      auto (default), none, selective, full\n"
    "  --ranks-per-chip N    tp's ranks are logical cores, N on a chip (default 1: chips)\n"
    "  --replicate-kv        tp may be a multiple of the KV heads\n"
    "  --uneven-stages       the last stage may have fewer layers\n"
    "  --no-sp               without sequence parallelism\n"
    "  --any-group           do not ask the vendor's rules for replica groups\n"
    "  --beyond-neuronlink   tp, cp and ep may use EFA\n"
    "  --overlap             tp's and ep's collectives run beside products (collective matmul)\n"
    "  --assume LIST         such as contention=0.2; --assumptions lists them\n"
    "the answer\n"
    "  --top N               plans to show (default 10)\n"
    "  --why                 why the others are illegal\n"
    "  --scaling             the same work per chip on 1, 2, 4, ... all chips\n"
    "  --csv FILE, --json FILE   all plans (- for standard output, in place of the text)\n"
    "  --html FILE           a report with pictures\n"
    "  --trace FILE          the best plan's step for ui.perfetto.dev\n"
    "  --assumptions, --help, --version\n"
    "\n"
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 no plan is legal, 2 bad usage or input.";

/* ---- values ---- */

static bool whole(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    *value = n;
    return *text && !*end && errno == 0 && n >= low && n <= high;
}

/* What is written where: an option takes a number, or one of a list of names. */
typedef struct sp_flag {
    const char *name;
    size_t offset;
    int64_t low, high; /* numbers; 0, 0: a switch */
    bool wide;         /* an int64_t; else an int */
} sp_flag;

#define AT(field) offsetof(sp_options, field)
#define DEGREE(axis) AT(args.degree) + (axis) * sizeof(int)

static const sp_flag flags[] = {
    { "--batch", AT(args.batch), 1, INT64_C(1) << 32, true },
    { "--seq", AT(args.sequence), 1, INT64_C(1) << 32, true },
    { "--prompt", AT(args.prompt), 1, INT64_C(1) << 32, true },
    { "--microbatch", AT(args.microbatch), 1, INT64_C(1) << 32, true },
    { "--chips", AT(chips), 1, 1 << 27, true },
    { "--top", AT(top), 0, 100000, true },
    { "--tp", DEGREE(TRN_AXIS_TP), 1, 1 << 27, false },
    { "--cp", DEGREE(TRN_AXIS_CP), 1, 1 << 27, false },
    { "--ep", DEGREE(TRN_AXIS_EP), 1, 1 << 27, false },
    { "--dp", DEGREE(TRN_AXIS_DP), 1, 1 << 27, false },
    { "--pp", DEGREE(TRN_AXIS_PP), 1, 1 << 27, false },
    { "--ranks-per-chip", AT(args.ranks_per_chip), 1, 8, false },
    { "--replicate-kv", AT(args.replicate_kv), 0, 0, false },
    { "--uneven-stages", AT(args.uneven_stages), 0, 0, false },
    { "--no-sp", AT(args.no_sp), 0, 0, false },
    { "--any-group", AT(args.ignore_groups), 0, 0, false },
    { "--beyond-neuronlink", AT(args.across_domains), 0, 0, false },
    { "--overlap", AT(args.overlap_dependent), 0, 0, false },
    { "--why", AT(why), 0, 0, false },
    { "--scaling", AT(scaling), 0, 0, false },
};

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    { "--preset", AT(preset) }, { "--json", AT(json) }, { "--csv", AT(csv) },
    { "--html", AT(html) },     { "--trace", AT(trace) },
};

static const sp_flag *find_flag(const char *word)
{
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(flags[i].name, word) == 0) return &flags[i];
    return NULL;
}

static int take_number(sp_options *o, const sp_flag *flag, const char *value)
{
    int64_t n;
    if (!whole(value, flag->low, flag->high, &n))
        return sp_complain(SP_USAGE, "%s %s: expected a whole number from %lld to %lld", flag->name, value,
                           (long long)flag->low, (long long)flag->high);
    const int narrow = (int)n;
    if (flag->wide) memcpy((char *)o + flag->offset, &n, sizeof n);
    else memcpy((char *)o + flag->offset, &narrow, sizeof narrow);
    return SP_OK;
}

static int take_system(sp_options *o, const char *value)
{
    o->system = trn_system_from_name(value);
    if (o->system != TRN_SYSTEM_COUNT) return SP_OK;
    return sp_complain(SP_USAGE, "--system %s: no such system; --help lists them", value);
}

static int take_job(sp_options *o, const char *value)
{
    o->args.job = trn_job_from_name(value);
    if (o->args.job != TRN_JOB_COUNT) return SP_OK;
    return sp_complain(SP_USAGE, "--job %s: expected train, prefill or decode", value);
}

static int take_zero(sp_options *o, const char *value)
{
    for (int i = 0; i < TRN_ZERO_COUNT; i++)
        if (strcmp(trn_zero_name((trn_zero)i), value) == 0) return o->args.zero = (trn_zero)i, SP_OK;
    return sp_complain(SP_USAGE, "--zero %s: expected auto, none, optimizer, gradients or weights", value);
}

static int take_recompute(sp_options *o, const char *value)
{
    for (int i = 0; i < TRN_RECOMPUTE_COUNT; i++)
        if (strcmp(trn_recompute_name((trn_recompute)i), value) == 0)
            return o->args.recompute = (trn_recompute)i, SP_OK;
    return sp_complain(SP_USAGE, "--recompute %s: expected auto, none, selective or full", value);
}

/* ---- lists of name=value ---- */

static int set_format(sp_options *o, const char *name, const char *value)
{
    trn_plan_formats *f = &o->args.formats;
    const struct {
        const char *name;
        trn_format *format;
    } row[] = {
        { "weights", &f->weights }, { "activations", &f->activations }, { "gradients", &f->gradients },
        { "optimizer", &f->optimizer }, { "kv", &f->kv }, { "wire", &f->wire }, { "compute", &f->compute },
    };
    const trn_format format = trn_format_from_name(value);
    if (format == TRN_FORMAT_UNSET) return sp_complain(SP_USAGE, "--format %s: %s is not a format", name, value);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].name, name) == 0) return *row[i].format = format, SP_OK;
    return sp_complain(SP_USAGE,
                       "--format %s: expected weights, activations, gradients, optimizer, kv, wire or compute", name);
}

/* Zero means the default to the library, and a negative number zero. */
static int set_assumption(sp_options *o, const char *name, const char *value)
{
#define TRNI_X(field, usual, unit, why) { #field, &o->args.assumptions.field },
    const struct {
        const char *name;
        double *value;
    } row[] = { TRNI_PLAN_ASSUMPTIONS(TRNI_X) };
#undef TRNI_X
    char *end;
    const double x = strtod(value, &end);
    if (!*value || *end || !isfinite(x) || x < 0)
        return sp_complain(SP_USAGE, "--assume %s=%s: expected a number, 0 or more", name, value);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].name, name) == 0) return *row[i].value = x > 0 ? x : -1, SP_OK;
    return sp_complain(SP_USAGE, "--assume %s: no such assumption; --assumptions lists them", name);
}

static int take_list(sp_options *o, const char *flag, const char *list,
                     int (*set)(sp_options *, const char *name, const char *value))
{
    char text[256];
    if (strlen(list) >= sizeof text) return sp_complain(SP_USAGE, "%s: the list is too long", flag);
    snprintf(text, sizeof text, "%s", list);
    for (char *name = text, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = 0;
        char *equals = strchr(name, '=');
        if (!equals) return sp_complain(SP_USAGE, "%s %s: expected NAME=VALUE with commas between", flag, name);
        *equals = 0;
        const int status = set(o, name, equals + 1);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

static int take_format(sp_options *o, const char *value) { return take_list(o, "--format", value, set_format); }
static int take_assume(sp_options *o, const char *value) { return take_list(o, "--assume", value, set_assumption); }

static const struct {
    const char *name;
    int (*take)(sp_options *, const char *value);
} names[] = {
    { "--system", take_system },       { "--job", take_job },       { "--zero", take_zero },
    { "--recompute", take_recompute }, { "--format", take_format }, { "--assume", take_assume },
};

/* ---- the line ---- */

static void list_assumptions(void)
{
    trn_spec_field field;
    for (int i = 0; trn_plan_assumption_at(i, &field); i++)
        printf("  %-18s %-12g %-7s %s\n", field.field, field.value, field.unit, field.where);
}

static int take_value(sp_options *o, const char *word, const char *value)
{
    const sp_flag *flag = find_flag(word);
    if (flag) return take_number(o, flag, value);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, word) == 0) return memcpy((char *)o + texts[i].offset, &value, sizeof value), SP_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, word) == 0) return names[i].take(o, value);
    return SP_OK;
}

static bool takes_value(const char *word)
{
    const sp_flag *flag = find_flag(word);
    if (flag) return flag->high > 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, word) == 0) return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, word) == 0) return true;
    return false;
}

/* --name value, --name=value, or a switch. */
static int take(sp_options *o, int argc, char **argv, int *i)
{
    char word[32];
    const char *equals = strchr(argv[*i], '=');
    const size_t length = equals ? (size_t)(equals - argv[*i]) : strlen(argv[*i]);
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), argv[*i]);
    const sp_flag *flag = find_flag(word);
    if (flag && flag->high == 0) {
        if (equals) return sp_complain(SP_USAGE, "%s takes no value", word);
        *((bool *)((char *)o + flag->offset)) = true;
        return SP_OK;
    }
    if (!takes_value(word))
        return sp_complain(SP_USAGE, "%s is not an option; shardplan --help lists them", argv[*i]);
    if (!equals && *i + 1 == argc) return sp_complain(SP_USAGE, "%s needs a value", word);
    return take_value(o, word, equals ? equals + 1 : argv[++*i]);
}

static int check(const sp_options *o)
{
    if (!o->config) return sp_complain(SP_USAGE, "which model? give a config.json; shardplan --help tells more");
    if (o->json && o->csv && strcmp(o->json, "-") == 0 && strcmp(o->csv, "-") == 0)
        return sp_complain(SP_USAGE, "--json - and --csv - exclude each other");
    return SP_OK;
}

int sp_parse(int argc, char **argv, sp_options *o)
{
    memset(o, 0, sizeof *o);
    o->system = TRN_TRN2_ULTRASERVER;
    o->top = 10;
    o->args.sequence = 4096;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return puts(help_text), -1;
        if (strcmp(argv[i], "--version") == 0) return printf("shardplan %s\n", TRN_VERSION), -1;
        if (strcmp(argv[i], "--assumptions") == 0) return list_assumptions(), -1;
        if (argv[i][0] != '-' || strcmp(argv[i], "-") == 0) {
            if (o->config) return sp_complain(SP_USAGE, "%s: one model at a time, and %s is one", argv[i], o->config);
            o->config = argv[i];
        } else if (take(o, argc, argv, &i) != SP_OK) return SP_USAGE;
    }
    return check(o);
}

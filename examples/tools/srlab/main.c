/* main.c - srlab: what stochastic rounding does, from two sums to a transformer.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <string.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

const char app_name[] = "srlab";

/* ---- values ---- */

#define ARMS "f32,bf16-rne,bf16-sr,bf16-kahan,fp8-rne,fp8-sr"

static bool add_arm(void *into, const char *item, char *why)
{
    sr_settings *o = into;
    const sr_arm *arm = sr_find_arm(item);
    if (!arm) return app_refuse(why, "expected some of " ARMS);
    if (sr_arm_index(o, arm) >= 0) return app_refuse(why, "an arm is there twice");
    o->arm[o->arms++] = arm;
    return true;
}

static bool take_arms(void *into, const char *value, char *why)
{
    ((sr_settings *)into)->arms = 0;
    return app_parse_list(value, add_arm, into, why);
}

static bool add_rate(void *into, const char *item, char *why)
{
    sr_settings *o = into;
    if (o->rates == SR_RATES) return app_refuse(why, "expected at most 8 rates");
    return app_parse_real(item, 1e-9, 10, &o->rate[o->rates++], why);
}

static bool take_sweep(void *into, const char *value, char *why)
{
    sr_settings *o = into;
    o->rates = 0;
    o->sweep = true;
    return app_parse_list(value, add_rate, into, why);
}

static bool take_rate(void *into, const char *value, char *why)
{
    sr_settings *o = into;
    o->rates = 1;
    return app_parse_real(value, 1e-9, 10, &o->rate[0], why);
}

static bool take_products(void *into, const char *value, char *why)
{
    static const char *const known[] = { "bfloat16", "float32" };
    trn_format *const format = &((sr_settings *)into)->products;
    app_offer(known, 2);
    if (!app_read_format(value, format, why)) return false;
    return *format == TRN_BF16 || *format == TRN_F32 || app_refuse(why, "expected bfloat16 or float32");
}

static bool take_batch(void *into, const char *value, char *why)
{
    int *batch = &((sr_settings *)into)->batch;
    if (!app_parse_number(value, SR_SHARDS, 65536, batch, why)) return false;
    return *batch % SR_SHARDS == 0 || app_refuse(why, "a batch is cut into 4 shards: expected a multiple of 4");
}

/* ---- tables ---- */

/* The formatter takes the braces for a block. */
/* clang-format off */
#define COMMON_OPTIONS                                                                                                 \
    { "--arms", "LIST", "of " ARMS " (default: all)", .apply = take_arms },                                            \
    { "--steps", "N", "updates", APP_TAKES_INT64(sr_settings, steps, 1, 10000000) },                                   \
    { "--batch", "N", "examples in a step, a multiple of 4", .apply = take_batch },                                    \
    { "--lr", "RATE", "the largest learning rate", .apply = take_rate },                                               \
    { "--lr-end", "SHARE", "of --lr, at the last step, after half a cosine",                                           \
      APP_TAKES_REAL(sr_settings, rate_end, 0, 1) },                                                                   \
    { "--warmup", "N", "steps from 0 up to --lr", APP_TAKES_INT(sr_settings, warmup, 0, 10000000) },                   \
    { "--weight-decay", "X", "AdamW's", APP_TAKES_REAL(sr_settings, weight_decay, 0, 10) },                            \
    { "--clip", "NORM", "of the gradient; 0: none", APP_TAKES_REAL(sr_settings, clip, 0, 1e9) },                       \
    { "--products", "NAME", "operands of products: bfloat16 (default) or float32", .apply = take_products },           \
    { "--seed", "N", "of weights, batches and random bits (default: 1)",                                               \
      APP_TAKES_UINT64(sr_settings, seed, INT64_MAX - SR_SEEDS) },                                                     \
    { "--seeds", "N", "as many runs of each arm, seeds N, N + 1, ... (default: 1)",                                    \
      APP_TAKES_INT(sr_settings, seeds, 1, SR_SEEDS) },                                                                \
    { "--sweep-lr", "LIST", "learning rates with commas between: all arms with each", .apply = take_sweep },           \
    { "--every", "N", "steps between two validations (default: a twentieth of --steps)",                               \
      APP_TAKES_INT64(sr_settings, every, 1, 10000000) },                                                              \
    { "--threads", "N", "at most 4 have work (default: all of this host); the bits are the same",                      \
      APP_TAKES_INT(sr_settings, threads, 1, 1024) },                                                                  \
    { "--csv", "FILE", "every point of every run (- for standard output, in place of the text)",                       \
      APP_TAKES_TEXT(sr_settings, csv) },                                                                              \
    { "--json", "FILE", "settings, runs, points", APP_TAKES_TEXT(sr_settings, json) },                                 \
    { "--svg", "FILE", "the loss curves", APP_TAKES_TEXT(sr_settings, svg) },                                          \
    { "--html", "FILE", "a page: curves, tables, reasons", APP_TAKES_TEXT(sr_settings, html) },                        \
    { "--schema", NULL, "the columns of the CSV", APP_SETS(sr_settings, schema) }
/* clang-format on */

static const app_option logistic_options[] = {
    { "--features", "N", "of an example (default: 64)", APP_TAKES_INT(sr_settings, features, 1, 4096) },
    { "--examples", "N", "to train with; a quarter as many are held out (default: 4096)",
      APP_TAKES_INT64(sr_settings, examples, 4, 1000000) },
    COMMON_OPTIONS,
};

static const app_option mlp_options[] = {
    { "--hidden", "N", "width of hidden layers (default: 64)", APP_TAKES_INT(sr_settings, hidden, 1, 4096) },
    { "--depth", "N", "hidden layers (default: 2)", APP_TAKES_INT(sr_settings, depth, 1, 8) },
    { "--classes", "N", "arms of the spiral (default: 3)", APP_TAKES_INT(sr_settings, classes, 2, 64) },
    { "--examples", "N", "to train with; a quarter as many are held out (default: 4096)",
      APP_TAKES_INT64(sr_settings, examples, 4, 1000000) },
    COMMON_OPTIONS,
};

static const app_option char_options[] = {
    { "--text", "FILE", "what to read (default: words of a-z of /usr/share/dict/words, shuffled)",
      APP_TAKES_TEXT(sr_settings, text) },
    { "--width", "N", "of the residual stream (default: 128)", APP_TAKES_INT(sr_settings, width, 8, 4096) },
    { "--layers", "N", "blocks (default: 5)", APP_TAKES_INT(sr_settings, layers, 1, 96) },
    { "--heads", "N", "of attention (default: 4)", APP_TAKES_INT(sr_settings, heads, 1, 128) },
    { "--context", "N", "characters of a window (default: 64)", APP_TAKES_INT(sr_settings, context, 8, 1024) },
    { "--words", "N", "to write at the end (default: 8)", APP_TAKES_INT(sr_settings, words, 0, 1000) },
    { "--export", "FOLDER", "the trained model as Hugging Face keeps them, for modelrun; one run only",
      APP_TAKES_TEXT(sr_settings, export_to) },
    COMMON_OPTIONS,
};

static const char arms_text[] =
    "arms: all begin with the same weights, see the same batches, and keep gradients and AdamW's moments in binary32.\n"
    "  f32         binary32 weights\n"
    "  bf16-rne    bfloat16 weights; after each update rounded to nearest even\n"
    "  bf16-sr     the same, rounded stochastically\n"
    "  bf16-kahan  to nearest even; what rounding took is kept in bfloat16 and added to the next update\n"
    "  fp8-rne     bf16-sr, and linear layers multiply E4M3 (240), with E5M2 gradients, one power of two a tensor;\n"
    "              these casts are to nearest even\n"
    "  fp8-sr      fp8-rne with stochastic casts\n"
    "All matrix products run as on the Tensor engine: bfloat16 operands (or FP8), binary32 sums in four chains.\n"
    "The same seed gives the same bits, whatever the threads, the instruction set (TRN_ISA) or the compiler.\n\n"
    "lost: updates that left the stored weight as it was. arrived: how much of the movement that AdamW asked for came\n"
    "about, <moved, wanted> / <wanted, wanted>; lost updates of nearest even are gone, those of stochastic rounding\n"
    "arrive in the mean.\n\n"
    "Exit status: 0 ok, 2 bad usage or input.";

#define COUNT(array) (int)(sizeof array / sizeof array[0])

typedef struct trainer {
    const sr_kind *kind;
    app_command command;
    sr_settings settings; /* the defaults */
} trainer;

static const trainer trainers[] = {
    { &sr_logistic,
      { "srlab logistic", "usage: srlab logistic [options]",
        "Logistic regression on noisy examples that a hidden line divides, with the engines' numerics: an arm for\n"
        "each way to keep the weights.",
        logistic_options, COUNT(logistic_options), arms_text, NULL },
      { .rate = { 3e-4 }, .rate_end = 1, .steps = 4000, .batch = 256, .features = 64, .examples = 4096 } },
    { &sr_mlp,
      { "srlab mlp", "usage: srlab mlp [options]",
        "A small MLP that tells the arms of a spiral apart, with the engines' numerics: an arm for each way to keep\n"
        "the weights.",
        mlp_options, COUNT(mlp_options), arms_text, NULL },
      { .rate = { 1e-3 },
        .rate_end = 0.01,
        .steps = 2000,
        .batch = 256,
        .hidden = 64,
        .depth = 2,
        .classes = 3,
        .examples = 4096,
        .warmup = 50 } },
    { &sr_char,
      { "srlab char", "usage: srlab char [options]",
        "A character-level transformer of about a million weights learns to spell, with the engines' numerics: an arm\n"
        "for each way to keep the weights.",
        char_options, COUNT(char_options), arms_text, NULL },
      { .rate = { 1e-3 },
        .rate_end = 0.01,
        .steps = 1000,
        .batch = 16,
        .width = 128,
        .layers = 5,
        .heads = 4,
        .context = 64,
        .warmup = 50,
        .weight_decay = 0.1,
        .words = 8 } },
};

/* ---- the whole ---- */

static bool complete(sr_settings *s, char *why)
{
    if (s->heads && s->width % s->heads)
        return app_fail(why, "--width %d: it is no multiple of --heads %d", s->width, s->heads);
    if (!s->every) s->every = s->steps < 20 ? 1 : s->steps / 20;
    if (s->every > s->steps) s->every = s->steps;
    if (s->export_to && s->arms * s->rates * s->seeds != 1)
        return app_fail(why, "--export %s: one model, but %d are trained; give one of --arms, and one seed and rate",
                        s->export_to, s->arms * s->rates * s->seeds);
    if (s->warmup >= s->steps) s->warmup = (int)(s->steps / 2);
#if defined(_OPENMP)
    if (s->threads) omp_set_num_threads(s->threads);
#endif
    return app_check_isa(why);
}

static int train(const sr_kind *kind, int argc, char **argv)
{
    const trainer *f = trainers;
    while (f->kind != kind) f++;
    sr_settings s = f->settings;
    char why[APP_WHY];
    s.rates = s.seeds = 1;
    s.seed = 1;
    s.clip = 1;
    s.products = TRN_BF16;
    for (s.arms = 0; s.arms < SR_ARMS; s.arms++) s.arm[s.arms] = &sr_arms[s.arms];
    int status = app_parse_options(&f->command, &s, argc, argv);
    if (status < 0) return APP_OK;
    if (status == APP_OK && !complete(&s, why)) status = app_complain(APP_USAGE, "%s", why);
    return status == APP_OK ? sr_lab_run(kind, &s) : status;
}

/* ---- the commands ---- */

static int run_logistic(int argc, char **argv) { return train(&sr_logistic, argc, argv); }
static int run_mlp(int argc, char **argv) { return train(&sr_mlp, argc, argv); }
static int run_char(int argc, char **argv) { return train(&sr_char, argc, argv); }

static const app_branch commands[] = {
    { "sums", "1024 + 0.5 + 0.5 ..., and the harmonic series, in seven formats: where they stop", sr_main_sums },
    { "logistic", "logistic regression", run_logistic },
    { "mlp", "a small MLP on spirals", run_mlp },
    { "char", "a character-level transformer of a million weights, on a word list", run_char },
};

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

static int help(void) { return puts(help_text), APP_OK; }

int app_run(int argc, char **argv)
{
    return app_run_branch(commands, sizeof commands / sizeof commands[0], argc, argv, help,
                          "which command? sums, logistic, mlp or char; srlab --help tells more");
}

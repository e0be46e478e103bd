/* options.c - the command lines of srlab logistic, mlp and char.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <stdlib.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#define SETTINGS ((sr_settings *)into)

/* ---- values ---- */

#define ARMS "f32,bf16-rne,bf16-sr,bf16-kahan,fp8-rne,fp8-sr"

static bool add_arm(void *into, const char *item, char *why)
{
    const sr_arm *arm = sr_find_arm(item);
    if (!arm) return app_refuse(why, "expected some of " ARMS);
    if (sr_place_of(SETTINGS, arm) >= 0) return app_refuse(why, "an arm is there twice");
    SETTINGS->arm[SETTINGS->arms++] = arm;
    return true;
}

static bool take_arms(void *into, const char *value, char *why)
{
    SETTINGS->arms = 0;
    return app_parse_list(value, add_arm, into, why);
}

static bool add_rate(void *into, const char *item, char *why)
{
    if (SETTINGS->rates == SR_RATES) return app_refuse(why, "expected at most 8 rates");
    return app_parse_real(item, 1e-9, 10, &SETTINGS->rate[SETTINGS->rates++], why);
}

static bool take_sweep(void *into, const char *value, char *why)
{
    SETTINGS->rates = 0;
    SETTINGS->sweep = true;
    return app_parse_list(value, add_rate, into, why);
}

static bool take_rate(void *into, const char *value, char *why)
{
    SETTINGS->rates = 1;
    return app_parse_real(value, 1e-9, 10, &SETTINGS->rate[0], why);
}

static bool take_products(void *into, const char *value, char *why)
{
    SETTINGS->products = trn_format_from_name(value);
    return SETTINGS->products == TRN_BF16 || SETTINGS->products == TRN_F32 ||
           app_refuse(why, "expected bfloat16 or float32");
}

static bool take_batch(void *into, const char *value, char *why)
{
    if (!app_parse_number(value, SR_SHARDS, 65536, &SETTINGS->batch, why)) return false;
    if (SETTINGS->batch % SR_SHARDS == 0) return true;
    return app_refuse(why, "a batch is cut into 4 shards: expected a multiple of 4");
}

static bool take_threads(void *into, const char *value, char *why)
{
    return app_parse_number(value, 1, 1024, &SETTINGS->threads, why);
}

static bool take_seed(void *into, const char *value, char *why)
{
    int64_t seed;
    if (!app_parse_int(value, 0, INT64_MAX - SR_SEEDS, &seed, why)) return false;
    SETTINGS->seed = (uint64_t)seed;
    return true;
}

#define NUMBER(function, low, high, field)                                                                             \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        return app_parse_number(value, low, high, &SETTINGS->field, why);                                              \
    }
#define WIDE(function, low, high, field)                                                                               \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        return app_parse_int(value, low, high, &SETTINGS->field, why);                                                 \
    }
#define REAL(function, low, high, field)                                                                               \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        return app_parse_real(value, low, high, &SETTINGS->field, why);                                                \
    }

WIDE(take_steps, 1, 10000000, steps)
WIDE(take_every, 1, 10000000, every)
WIDE(take_examples, 4, 1000000, examples)
NUMBER(take_warmup, 0, 10000000, warmup)
NUMBER(take_seeds, 1, SR_SEEDS, seeds)
NUMBER(take_width, 8, 4096, width)
NUMBER(take_layers, 1, 96, layers)
NUMBER(take_heads, 1, 128, heads)
NUMBER(take_context, 8, 1024, context)
NUMBER(take_features, 1, 4096, features)
NUMBER(take_hidden, 1, 4096, hidden)
NUMBER(take_depth, 1, 8, depth)
NUMBER(take_classes, 2, 64, classes)
NUMBER(take_words, 0, 1000, words)
REAL(take_rate_end, 0, 1, rate_end)
REAL(take_decay, 0, 10, weight_decay)
REAL(take_clip, 0, 1e9, clip)
APP_TAKE(take_text, sr_settings, text, value)
APP_TAKE(take_csv, sr_settings, csv, value)
APP_TAKE(take_json, sr_settings, json, value)
APP_TAKE(take_svg, sr_settings, svg, value)
APP_TAKE(take_html, sr_settings, html, value)
APP_TAKE(take_schema, sr_settings, schema, true)

/* ---- tables ---- */

#define COMMON_OPTIONS                                                                                                 \
    { "--arms", "LIST", "of " ARMS " (default: all)", take_arms },                                                     \
        { "--steps", "N", "updates", take_steps },                                                                     \
        { "--batch", "N", "examples in a step, a multiple of 4", take_batch },                                         \
        { "--lr", "RATE", "the largest learning rate", take_rate },                                                    \
        { "--lr-end", "SHARE", "of --lr, at the last step, after half a cosine", take_rate_end },                      \
        { "--warmup", "N", "steps from 0 up to --lr", take_warmup },                                                   \
        { "--weight-decay", "X", "AdamW's", take_decay }, { "--clip", "NORM", "of the gradient; 0: none", take_clip }, \
        { "--products", "NAME", "operands of products: bfloat16 (default) or float32", take_products },                \
        { "--seed", "N", "of weights, batches and random bits (default: 1)", take_seed },                              \
        { "--seeds", "N", "as many runs of each arm, seeds N, N + 1, ... (default: 1)", take_seeds },                  \
        { "--sweep-lr", "LIST", "learning rates with commas between: all arms with each", take_sweep },                \
        { "--every", "N", "steps between two validations (default: a twentieth of --steps)", take_every },             \
        { "--threads", "N", "at most 4 have work (default: all of this host); the bits are the same", take_threads },  \
        { "--csv", "FILE", "every point of every run (- for standard output, in place of the text)", take_csv },       \
        { "--json", "FILE", "settings, runs, points", take_json }, { "--svg", "FILE", "the loss curves", take_svg },   \
        { "--html", "FILE", "a page: curves, tables, reasons", take_html },                                            \
        { "--schema", NULL, "the columns of the CSV", take_schema }

static const app_option logistic_options[] = {
    { "--features", "N", "of an example (default: 64)", take_features },
    { "--examples", "N", "to train with; a quarter as many are held out (default: 4096)", take_examples },
    COMMON_OPTIONS,
};

static const app_option mlp_options[] = {
    { "--hidden", "N", "width of hidden layers (default: 64)", take_hidden },
    { "--depth", "N", "hidden layers (default: 2)", take_depth },
    { "--classes", "N", "arms of the spiral (default: 3)", take_classes },
    { "--examples", "N", "to train with; a quarter as many are held out (default: 4096)", take_examples },
    COMMON_OPTIONS,
};

static const app_option char_options[] = {
    { "--text", "FILE", "what to read (default: words of a-z of /usr/share/dict/words, shuffled)", take_text },
    { "--width", "N", "of the residual stream (default: 128)", take_width },
    { "--layers", "N", "blocks (default: 5)", take_layers },
    { "--heads", "N", "of attention (default: 4)", take_heads },
    { "--context", "N", "characters of a window (default: 64)", take_context },
    { "--words", "N", "to write at the end (default: 8)", take_words },
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

typedef struct front {
    const sr_kind *kind;
    app_command command;
    sr_settings settings; /* the defaults */
} front;

static const front fronts[] = {
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
      { .rate = { 1e-3 }, .rate_end = 0.01, .steps = 2000, .batch = 256, .hidden = 64, .depth = 2, .classes = 3,
        .examples = 4096, .warmup = 50 } },
    { &sr_char,
      { "srlab char", "usage: srlab char [options]",
        "A character-level transformer of about a million weights learns to spell, with the engines' numerics: an arm\n"
        "for each way to keep the weights.",
        char_options, COUNT(char_options), arms_text, NULL },
      { .rate = { 1e-3 }, .rate_end = 0.01, .steps = 1000, .batch = 16, .width = 128, .layers = 5, .heads = 4,
        .context = 64, .warmup = 50, .weight_decay = 0.1, .words = 8 } },
};

/* ---- the whole ---- */

static int complete(sr_settings *s)
{
    if (s->heads && s->width % s->heads)
        return app_complain(APP_USAGE, "--width %d: it is no multiple of --heads %d", s->width, s->heads);
    if (!s->every) s->every = s->steps < 20 ? 1 : s->steps / 20;
    if (s->every > s->steps) s->every = s->steps;
    if (s->warmup >= s->steps) s->warmup = (int)(s->steps / 2);
#if defined(_OPENMP)
    if (s->threads) omp_set_num_threads(s->threads);
#endif
    if (trn_isa_default() == TRN_ISA_COUNT)
        return app_complain(APP_USAGE, "TRN_ISA=%s is unknown or not available on this host", getenv("TRN_ISA"));
    return APP_OK;
}

int sr_main_train(const sr_kind *kind, int argc, char **argv)
{
    const front *f = fronts;
    while (f->kind != kind) f++;
    sr_settings s = f->settings;
    s.rates = s.seeds = 1;
    s.seed = 1;
    s.clip = 1;
    s.products = TRN_BF16;
    for (s.arms = 0; s.arms < SR_ARMS; s.arms++) s.arm[s.arms] = &sr_arms[s.arms];
    int status = app_parse_options(&f->command, &s, argc, argv);
    if (status < 0) return APP_OK;
    if (status == APP_OK) status = complete(&s);
    return status == APP_OK ? sr_lab_run(kind, &s) : status;
}

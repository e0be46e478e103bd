/* main.c - runs a language model with the engines' arithmetic and says what each setting loses: the command line.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <math.h>
#include <stdlib.h>

#include "io/npy.h"

const char app_name[] = "modelrun";

static bool take_setting(void *into, const char *value, char *why)
{
    mr_options *o = into;
    if (o->settings == MR_SETTINGS) return app_refuse(why, "there are 63 settings already");
    if (!mr_setting_parse(value, &o->setting[o->settings], why)) return false;
    o->settings++;
    return true;
}

APP_READ(take_scale_name, mr_options, quant_ask_scale(&o->asked, value, why))
APP_READ(take_block, mr_options, quant_ask_block(&o->asked, value, why))

static bool take_certify(void *into, const char *value, char *why)
{
    static const char *const word[] = { "batch" };
    if (app_parse_word(value, word, 1, why) < 0) return false;
    return ((mr_options *)into)->certify = true;
}

static bool take_system(void *into, const char *value, char *why)
{
    app_offer_systems();
    const trn_system system = trn_system_from_name(value);
    if (system == TRN_SYSTEM_COUNT) return app_refuse(why, "no such system; trnbench spec lists them");
    ((mr_options *)into)->system = system;
    return true;
}

static bool take_folder(void *options, const char *word, char *why)
{
    mr_options *o = options;
    if (o->folder) return app_refuse(why, "one model; there is a second");
    o->folder = word;
    return true;
}

static const app_option option[] = {
    { "--tokens", "FILE",
      "the text as numbers of tokens, between blanks or commas; an empty line begins another\n"
      "sequence",
      APP_TAKES_TEXT(mr_options, tokens) },
    { "--text", "FILE", "the text as words, which the model's tokenizer.json cuts: a byte-level BPE",
      APP_TAKES_TEXT(mr_options, text) },
    { "--setting", "NAME",
      "a row of --list, or words of it between commas: bf16,chains=1,tp=16; may be repeated;\n"
      "default: all rows",
      .apply = take_setting },
    { "--context", "N", "the text is cut into windows of so many tokens: 256; --certify takes the first 16",
      APP_TAKES_INT64(mr_options, context, 1, 1 << 20) },
    { "--limit", "N", "no more tokens than these", APP_TAKES_INT64(mr_options, limit, 1, 1 << 26) },
    { "--threshold", "DB", "a layer whose SQNR is below has parted from the reference: 20",
      APP_TAKES_REAL(mr_options, threshold, -1000, 1000) },
    { "--max-kl", "NATS", "exit with 1 when the mean KL of a setting is above",
      APP_TAKES_REAL(mr_options, max_kl, 0, INFINITY) },
    { "--generate", "N", "continue each sequence by N tokens instead, the likeliest each time; default setting: bf16",
      APP_TAKES_INT64(mr_options, generate, 1, 1 << 20) },
    { "--pack", NULL, "with --generate: pack weights, 6 bytes for each of BF16; for many sequences",
      APP_SETS(mr_options, pack) },
    { "--certify", "batch",
      "say instead what a token's bits depend on, operation by operation: how many sequences run\n"
      "together, where the prompt is cut, how many cores share a layer; and what cures it",
      .apply = take_certify },
    { "--system", "NAME", "with --certify: the system on which the time of cures is modelled: trn2.48xlarge",
      .apply = take_system },
    { "--scale-name", "PATTERN",
      "how a weight's scale may be called, with {name} for the weight's name and\n"
      "{base} for that without .weight; may be repeated",
      .apply = take_scale_name },
    { "--block", "RxC", "how large the blocks are that share a scale, where config.json does not say it",
      .apply = take_block },
    { "--no-rules", NULL, "take a scale that is missing for 1", APP_SETS(mr_options, asked.take_for_1) },
    { "--random", "CONFIG", "random weights for this config.json, instead of a model",
      APP_TAKES_TEXT(mr_options, random) },
    { "--write-random", "FOLDER", "write them to a new folder, and nothing else", APP_TAKES_TEXT(mr_options, write) },
    { "--csv", "FILE", "a row per setting, with a column for each layer", APP_TAKES_TEXT(mr_options, csv) },
    { "--html", "FILE", "a page: the table, and where in the model it is lost", APP_TAKES_TEXT(mr_options, html) },
    { "--json", "FILE", "the same with totals", APP_TAKES_TEXT(mr_options, json) },
    { "--logits", "FILE", "the last setting's logits as .npy, F32 [tokens, vocabulary]; default setting: f32",
      APP_TAKES_TEXT(mr_options, logits) },
    { "--list", NULL, "all settings, and the words for others", APP_SETS(mr_options, list) },
    { "--schema", NULL, "the report's columns; with --certify the certificate's", APP_SETS(mr_options, schema) },
};

static const char usage[] = "usage: modelrun FOLDER --text FILE | --tokens FILE [options]\n"
                            "       modelrun FOLDER --text FILE | --tokens FILE --generate N [options]\n"
                            "       modelrun FOLDER --text FILE | --tokens FILE --certify batch [options]\n"
                            "       modelrun --random CONFIG --write-random FOLDER\n"
                            "       modelrun --list";

static const char summary[] =
    "Runs a language model on the CPU with the arithmetic of Trainium's engines, in many settings, and says for each\n"
    "what it loses against binary32: perplexity, KL, agreement, and the SQNR after each layer. FOLDER is as Hugging\n"
    "Face has it: config.json and safetensors, of the families llama, llama4, mistral, ministral3, mixtral, qwen2,\n"
    "qwen3, qwen2_moe, qwen3_moe, qwen3_next, deepseek_v3, kimi_k2, glm4_moe, minimax_m2, phi3, gemma3, nemotron_h,\n"
    "gpt_oss and gpt2, in BF16, F16, F32, FP8 with scales, or MXFP4.";

static const char notes[] =
    "examples:\n"
    "  modelrun Llama-3.2-1B --text novel.txt --limit 4096            every setting\n"
    "  modelrun Qwen3-0.6B --tokens text.ids --setting fp8-halve --setting bf16,tp=64,wire=f32\n"
    "  modelrun gpt2 --text start.txt --generate 20 --setting f32 --setting bf16\n"
    "  modelrun Qwen3-0.6B --tokens text.ids --certify batch --setting bf16,tp=8\n\n"
    "exit status: 0 all is well; 1 --max-kl was exceeded, or --certify found that its rules are wrong; 2 bad\n"
    "usage or bad input, after one sentence.";

static const app_command command = {
    "modelrun", usage, summary, option, sizeof option / sizeof option[0], notes, take_folder,
};

/* ---- checks ---- */

static int check(const mr_options *o)
{
    if (o->list || o->schema) return APP_OK;
    if (o->write && !o->random) return app_complain(APP_USAGE, "--write-random needs --random CONFIG");
    if (o->random && o->folder) return app_complain(APP_USAGE, "%s: --random takes the place of a model", o->folder);
    if (o->write) return APP_OK;
    if (!o->folder && !o->random)
        return app_complain(APP_USAGE, "which model? give its folder; modelrun --help tells more");
    if (!o->tokens && !o->text) return app_complain(APP_USAGE, "which text? give --tokens FILE or --text FILE");
    if (o->tokens && o->text) return app_complain(APP_USAGE, "--tokens and --text exclude each other");
    if (o->generate && (o->csv || o->json || o->html || o->logits))
        return app_complain(APP_USAGE, "--generate prints tokens; --csv, --json, --html and --logits go without it");
    if (o->certify && (o->generate || o->logits || o->pack || o->max_kl >= 0))
        return app_complain(APP_USAGE, "--certify goes without --generate, --logits, --pack and --max-kl");
    for (int i = 0; i < o->settings && o->certify; i++)
        if (o->setting[i].reference)
            return app_complain(APP_USAGE, "--setting %s: the reference has no engines to certify; begin with bf16",
                                o->setting[i].name);
    return APP_OK;
}

/* The reference comes first, and once. */
static void settle_settings(mr_options *o)
{
    char why[APP_WHY];
    const char *name;
    const bool none = o->settings == 0;
    if (o->generate) {
        if (none) take_setting(o, "bf16", why);
        return;
    }
    int kept = 1;
    mr_setting *all = app_memory(MR_SETTINGS + 1, sizeof *all);
    mr_setting_parse("f32", &all[0], why);
    for (int i = 0; i < o->settings; i++)
        if (!o->setting[i].reference) all[kept++] = o->setting[i];
    for (int i = 1; none && !o->logits && (name = mr_setting_row(i, NULL, NULL)) != NULL; i++)
        mr_setting_parse(name, &all[kept++], why);
    o->settings = kept < MR_SETTINGS ? kept : MR_SETTINGS;
    memcpy(o->setting, all, sizeof *all * (size_t)o->settings);
    free(all);
}

/* A model may lack what a default setting splits; what was asked for is refused instead. */
static void drop_impossible(mr_options *o, mr_model *model)
{
    int kept = 0;
    char why[IO_WHY];
    for (int i = 0; i < o->settings; i++) {
        mr_run run;
        const bool ok = mr_run_start(&run, model, &o->setting[i], 0, 1, why);
        if (ok)
            o->setting[kept++] = o->setting[i];
        else
            app_complain(0, "left out: %s", why);
        mr_run_end(&run);
    }
    o->settings = kept;
}

/* ---- work ---- */

typedef struct outcome {
    mr_result result;
    float *logits;
    int64_t vocab;
} outcome;

static void write_csv(FILE *out, const void *all) { mr_report_csv(out, &((const outcome *)all)->result); }
static void write_html(FILE *out, const void *all) { mr_html(out, &((const outcome *)all)->result); }
static void write_json(FILE *out, const void *all) { mr_report_json(out, &((const outcome *)all)->result); }

static void print_text(FILE *out, const void *all) { mr_report_text(out, &((const outcome *)all)->result); }

static void write_logits(FILE *out, const void *all)
{
    const outcome *a = all;
    const int64_t shape[2] = { a->result.tokens, a->vocab };
    npy_print(out, "<f4", 2, shape, a->logits);
}

static int compare(mr_model *model, const mr_options *o, const mr_text *text)
{
    outcome all = { .vocab = model->config.vocab };
    char why[IO_WHY] = "";
    app_output output[] = { { .flag = "--csv", .path = o->csv, .write = write_csv },
                            { .flag = "--html", .path = o->html, .write = write_html },
                            { .flag = "--json", .path = o->json, .write = write_json },
                            { .flag = "--logits", .path = o->logits, .write = write_logits } };
    enum { outputs = sizeof output / sizeof output[0] };
    if (app_open_outputs(output, outputs) != APP_OK) return APP_USAGE;
    if (o->logits) all.logits = app_memory((size_t)(text->tokens * all.vocab), sizeof *all.logits);
    int status = mr_compare(model, o, text, &all.result, all.logits, why) ? APP_OK : APP_USAGE;
    if (status != APP_OK) app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = app_answer(output, outputs, &all, print_text);
    app_discard_outputs(output, outputs);
    for (int i = 0; i < all.result.rows && status == APP_OK; i++)
        if (o->max_kl >= 0 && !(all.result.row[i].kl <= o->max_kl)) status = APP_FAILED;
    mr_result_free(&all.result);
    free(all.logits);
    return status;
}

static int run(mr_options *o)
{
    static mr_model model;
    char why[IO_WHY];
    mr_text text = { .token = NULL };
    const bool usual = o->settings == 0;
    app_reads_folder(o->folder);
    if (!mr_model_open(o->folder, &o->asked, &model, why)) return app_complain(APP_USAGE, "%s", why);
    int status = APP_OK;
    if (!mr_text_read(o, model.config.vocab, &text, why)) status = app_complain(APP_USAGE, "%s", why);
    settle_settings(o);
    if (usual && status == APP_OK) drop_impossible(o, &model);
    if (status == APP_OK && o->certify)
        status = mr_certify(&model, o, &text);
    else if (status == APP_OK)
        status = o->generate ? mr_generate(&model, o, &text) : compare(&model, o, &text);
    mr_text_free(&text);
    mr_model_close(&model);
    return status;
}

static int run_random(mr_options *o)
{
    char path[600], why[IO_WHY];
    if (o->write) return mr_write_random(o->random, o->write, why) ? APP_OK : app_complain(APP_USAGE, "%s", why);
    if (!mr_temporary_random(o->random, path, sizeof path, why)) return app_complain(APP_USAGE, "%s", why);
    o->folder = path;
    const int status = run(o);
    mr_remove_random(path);
    return status;
}

int app_run(int argc, char **argv)
{
    static mr_options o;
    o = (mr_options){ .system = TRN_TRN2_48XLARGE, .threshold = 20, .max_kl = -1 };
    int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status == APP_OK) status = check(&o);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (!o.context && !o.certify) o.context = 256;
    if (o.list) return mr_report_settings(), APP_OK;
    if (o.schema) return o.certify ? mr_certified_schema() : mr_report_schema(), APP_OK;
    return o.random ? run_random(&o) : run(&o);
}

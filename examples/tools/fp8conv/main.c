/* main.c - converts FP8 checkpoints between OCP's range and Trainium's, and proves what changed: the command line.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdio.h>
#include <string.h>

const char app_name[] = "fp8conv";

/* ---- the command line ---- */

static bool take_side(fc_side *side, const char *value, char *why)
{
    if (strcmp(value, "ocp") == 0) return *side = FC_OCP, true;
    if (strcmp(value, "neuron") == 0) return *side = FC_NEURON, true;
    return app_refuse(why, "expected neuron (240) or ocp (448)");
}

APP_READ(take_to, fc_options, take_side(&o->to, value, why))
APP_READ(take_from, fc_options, take_side(&o->from, value, why))

static bool take_mode(void *o, const char *value, char *why)
{
    const char *name[FC_MODES];
    for (int i = 0; i < FC_MODES; i++) name[i] = fc_mode_text((fc_mode)i);
    const int mode = app_parse_word(value, name, FC_MODES, why);
    ((fc_options *)o)->mode = (fc_mode)mode;
    return mode >= 0;
}

static bool take_grain(void *o, const char *value, char *why)
{
    static const char *const name[] = { "tensor", "channel", "block", "kept" };
    static const fc_grain grain[] = { FC_PER_TENSOR, FC_PER_CHANNEL, FC_PER_BLOCK, FC_GRAIN_KEPT };
    const int i = app_parse_word(value, name, 4, why);
    if (i >= 0) ((fc_options *)o)->grain = grain[i];
    return i >= 0;
}

static bool take_form(fc_options *o, fc_kind kind, const char *value, char *why)
{
    static const char *const name[] = { "fp8", "bf16", "mx" };
    const int i = app_parse_word(value, name, 3, why);
    o->form[kind] = (fc_form)(FC_AS_FP8 + i);
    return i >= 0;
}

APP_READ(take_fp8, fc_options, take_form(o, FC_IS_FP8, value, why))
APP_READ(take_int8, fc_options, take_form(o, FC_IS_INT8, value, why))
APP_READ(take_int4, fc_options, take_form(o, FC_IS_INT4, value, why))
APP_READ(take_nf4, fc_options, take_form(o, FC_IS_NF4, value, why))
APP_READ(take_mxfp4, fc_options, take_form(o, FC_IS_MXFP4, value, why))
APP_READ(take_nvfp4, fc_options, take_form(o, FC_IS_NVFP4, value, why))

static bool take_gguf(void *o, const char *value, char *why)
{
    if (strcmp(value, "bf16") != 0) return app_refuse(why, "expected bf16; a second run makes other forms of that");
    return ((fc_options *)o)->gguf = true;
}

static bool take_block(fc_options *o, const char *value, char *why)
{
    if (!quant_ask_block(&o->asked, value, why)) return false;
    memcpy(o->block, o->asked.block, sizeof o->block);
    return true;
}

static bool take_glob(fc_globs *list, const char *value, char *why)
{
    if (!*value) return app_refuse(why, "it is empty");
    if (list->count == FC_GLOBS) return app_refuse(why, "there are more than 32 of these already");
    list->glob[list->count++] = value;
    return true;
}

APP_READ(take_include, fc_options, take_glob(&o->include, value, why))
APP_READ(take_exclude, fc_options, take_glob(&o->exclude, value, why))

APP_READ(take_scale, fc_options, quant_ask_scale(&o->asked, value, why))
APP_READ(take_blocks, fc_options, take_block(o, value, why))
APP_READ(take_run_scale, fc_options, take_glob(&o->run_scales, value, why))

static bool take_path(void *options, const char *word, char *why)
{
    fc_options *o = options;
    if (o->out) return app_refuse(why, "one input and one output; there is a third");
    if (o->in)
        o->out = word;
    else
        o->in = word;
    return true;
}

static const app_option option[] = {
    { "--to", "neuron|ocp", "the FP8 that is written: Trainium's (240, the default) or OCP's (448)", .apply = take_to },
    { "--from", "ocp|neuron", "the FP8 that is read; by default what the file's fp8_format says, else ocp",
      .apply = take_from },
    { "--mode", "MODE",
      "halve    codes / 2, scales x 2: exact but for 16 tiny codes (the default)\n"
      "ratio    codes / (448/240), scales x (448/240): the vendor's recipe\n"
      "requant  dequantised, and quantised with fresh scales\n"
      "relabel  the bytes as they are: unsafe towards neuron",
      .apply = take_mode },
    { "--fp8", "FORM", "what FP8 becomes: fp8 (the default), bf16, or mx: Trainium3's words and scales",
      .apply = take_fp8 },
    { "--mxfp4", "FORM", "what MXFP4 becomes: fp8, bf16 or mx; without this it is refused", .apply = take_mxfp4 },
    { "--nvfp4", "FORM", "the same for NVFP4", .apply = take_nvfp4 },
    { "--int8", "FORM", "the same for integers of eight bits with scales (W8A8)", .apply = take_int8 },
    { "--int4", "FORM", "the same for integers in words: AWQ, GPTQ, compressed-tensors", .apply = take_int4 },
    { "--nf4", "FORM", "the same for bitsandbytes' NF4 and FP4", .apply = take_nf4 },
    { "--gguf", "bf16", "a .gguf becomes a .safetensors: blocks as BF16, all else as it is; names stay llama.cpp's",
      .apply = take_gguf },
    { "--scales", "GROUPS", "fresh scales per tensor, channel or block; default: as before, new ones per tensor",
      .apply = take_grain },
    { "--block", "RxC", "how large blocks are: 128x128", .apply = take_blocks },
    { "--power-of-two", NULL, "fresh scales are powers of two", APP_SETS(fc_options, power_of_two) },
    { "--quantize", NULL,
      "quantise BF16, F16 and F32 matrices too, in a checkpoint that has FP8;\n"
      "one without is always quantised",
      APP_SETS(fc_options, quantise) },
    { "--include", "GLOB", "quantise tensors of such names, and no others; may be repeated", .apply = take_include },
    { "--exclude", "GLOB", "do not quantise tensors of such names; may be repeated", .apply = take_exclude },
    { "--no-rules", NULL, "quantise also what config.json says is to stay as it is", APP_SETS(fc_options, no_rules) },
    { "--scale-name", "PATTERN",
      "how a weight's scale may be called, with {name} for the weight's name and\n"
      "{base} for that without .weight; may be repeated",
      .apply = take_scale },
    { "--run-scale", "GLOB", "further scales of activations or KV caches; may be repeated", .apply = take_run_scale },
    { "--keep-run-scales", NULL, "leave the scales of activations and KV caches alone",
      APP_SETS(fc_options, keep_run_scales) },
    { "--no-new-scales", NULL, "refuse tensors without a scale instead of writing one",
      APP_SETS(fc_options, no_new_scales) },
    { "--check", NULL, "only report; nothing is written", APP_SETS(fc_options, check) },
    { "--verify", NULL,
      "read back what was written, and compare each element with the definition;\n"
      "all that before it becomes OUT",
      APP_SETS(fc_options, verify) },
    { "--force", NULL,
      "replace an OUT that is there: a file, or a directory with a checkpoint and all that is\n"
      "in it; until the last step it stays as it is",
      APP_SETS(fc_options, force) },
    { "--each", NULL, "a line per tensor, instead of one for all that differ by a number", APP_SETS(fc_options, each) },
    { "--advise", NULL, "only the routes there are: what each loses on this model's codes, its bytes and cycles",
      APP_SETS(fc_options, advise) },
    { "--generation", "1|2|3", "--advise for this Trainium only", APP_TAKES_INT(fc_options, generation, 1, 3) },
    { "--codes", NULL, "what each mode does to the 254 finite codes", APP_SETS(fc_options, about) },
    { "--threads", "N", "1 to 64; by default as many as there are processors, up to 8",
      APP_TAKES_INT(fc_options, threads, 1, 64) },
    { "--csv", "FILE", "the report, a row per tensor", APP_TAKES_TEXT(fc_options, csv) },
    { "--json", "FILE", "the same with totals", APP_TAKES_TEXT(fc_options, json) },
    { "--schema", NULL, "the report's columns", APP_SETS(fc_options, schema) },
};

static const char usage[] = "usage: fp8conv IN OUT [options]\n"
                            "       fp8conv IN --check [options]\n"
                            "       fp8conv --advise IN [--generation 1|2|3]\n"
                            "       fp8conv --codes";

static const char summary[] =
    "Converts FP8 checkpoints between OCP's E4M3 (up to 448: what GPUs and safetensors call F8_E4M3) and Trainium's\n"
    "(up to 240), or quantises BF16, F16 and F32 ones, and says for each tensor what was lost. A weight is code\n"
    "times scale; the products are kept. IN is a .safetensors, a model.safetensors.index.json or a directory with\n"
    "either, or a .gguf; OUT is a file or a directory, and appears as a whole, in one step, when it is complete and\n"
    "synced.";

static const char notes[] =
    "examples:\n"
    "  fp8conv --codes                                   what the modes do\n"
    "  fp8conv Llama-FP8 --check                         what would be lost\n"
    "  fp8conv --advise Llama-FP8 --generation 2         which ways there are, and what each costs\n"
    "  fp8conv gpt-oss-20b out --mxfp4 fp8 --verify      experts of four bits as FP8, all else as it was\n"
    "  fp8conv Llama-FP8 Llama-FP8-Neuron --verify       a directory, halved and proven\n"
    "  fp8conv DeepSeek-V3 out --mode requant --scales channel\n"
    "  fp8conv model.safetensors fp8.safetensors --scales block --exclude '*.o_proj.*'\n"
    "  fp8conv model-Q4_K_M.gguf model.safetensors --gguf bf16 --verify\n"
    "  fp8conv neuron.safetensors back.safetensors --to ocp\n\n"
    "exit status: 0 all is well; 1 a finite number would have become infinity or NaN, or --verify found a difference\n"
    "(OUT is as it was then); 2 bad usage or bad input, after one sentence.";

static const app_command command = {
    "fp8conv", usage, summary, option, sizeof option / sizeof option[0], notes, take_path,
};

static int check(fc_options *o)
{
    if (o->about || o->schema) return APP_OK;
    if (!o->in) return app_complain(APP_USAGE, "which checkpoint? give IN and OUT; fp8conv --help tells more");
    if (o->generation && !o->advise) return app_complain(APP_USAGE, "--generation goes with --advise");
    if (o->advise && (o->out || o->verify)) return app_complain(APP_USAGE, "--advise writes no checkpoint");
    if (!o->out && !o->check && !o->advise)
        return app_complain(APP_USAGE, "where to? give OUT, or --check to write nothing");
    if (strcmp(o->in, "-") == 0 || (o->out && strcmp(o->out, "-") == 0))
        return app_complain(APP_USAGE, "-: checkpoints are files or directories, not streams");
    if (o->out && o->check) return app_complain(APP_USAGE, "%s: --check writes nothing", o->out);
    if (o->check && o->verify)
        return app_complain(APP_USAGE, "--verify reads what was written, and --check writes nothing");
    if (o->grain != FC_GRAIN_KEPT && o->mode == FC_RELABEL)
        return app_complain(APP_USAGE, "--scales and --mode relabel exclude each other");
    if (o->json && o->csv && strcmp(o->json, "-") == 0 && strcmp(o->csv, "-") == 0)
        return app_complain(APP_USAGE, "--json - and --csv - exclude each other");
    return APP_OK;
}

static int usual_threads(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : (int)n;
}

static int parse(fc_options *o, int argc, char **argv)
{
    *o = (fc_options){ .from = FC_BY_MARK, .to = FC_NEURON, .block = { 128, 128 }, .threads = usual_threads() };
    const int status = app_parse_options(&command, o, argc, argv);
    return status == APP_OK ? check(o) : status;
}

int app_run(int argc, char **argv)
{
    static fc_options o;
    const int status = parse(&o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    fc_values(TRN_F8_E4M3);
    fc_values(TRN_F8_E4M3FN); /* before there are threads */
    if (o.schema) return fc_report_schema(), APP_OK;
    if (o.about) return fc_about(&o);
    if (quant_is_gguf(o.in) && !ckpt_folder(o.in)) return fc_convert_gguf(&o);
    if (o.gguf) return app_complain(APP_USAGE, "%s: it is no GGUF file, and --gguf says what such becomes", o.in);
    return o.advise ? fc_advise(&o) : fc_convert_checkpoint(&o);
}

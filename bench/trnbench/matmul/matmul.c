/* matmul.c - subcommand matmul: options, and the works they name.
 * SPDX-License-Identifier: MIT
 */
#include "matmul.h"

#include <stdlib.h>
#include <string.h>

typedef struct options {
    tb_job job;
    tb_files files;
    const char *a, *b;
    const tb_model *model[TB_MAX_WORKS];
    tb_slice shape[TB_MAX_WORKS];
    int models, shapes;
    bool any_system, prefill, decode, schema;
    int64_t tokens;
    trn_numerics numerics;
} options;

/* ---- options ---- */

static bool take_shape(void *options_, const char *value, char *why)
{
    options *o = options_;
    long long m, n, k;
    char rest;
    if (sscanf(value, "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 1)
        return app_refuse(why, "expected MxNxK, three whole numbers from 1, such as 4096x4096x4096");
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) return app_refuse(why, "a size is above 2147483647");
    if (o->shapes == TB_MAX_WORKS) return app_refuse(why, "more than 32 shapes");
    o->shape[o->shapes++] = (tb_slice){ m, n, k };
    return true;
}

static bool take_model(void *options_, const char *value, char *why)
{
    options *o = options_;
    const tb_model *model = tb_model_find(value);
    if (!model) {
        int n = snprintf(why, APP_WHY, "no such model; there are");
        for (int i = 0; tb_model_at(i); i++)
            n += snprintf(why + n, (size_t)(APP_WHY - n), "%s %s", i ? "," : "", tb_model_at(i)->name);
        return false;
    }
    if (o->models == TB_MAX_WORKS / TB_PHASES) return app_refuse(why, "more than 16 models");
    o->model[o->models++] = model;
    return true;
}

static bool add_format(tb_job *job, const tb_format *format, char *why)
{
    for (int i = 0; i < job->formats; i++)
        if (job->format[i] == format) return true;
    if (job->formats == TB_MAX_FORMATS) return app_refuse(why, "too many formats");
    job->format[job->formats++] = format;
    return true;
}

static bool take_format(void *options_, const char *value, char *why)
{
    tb_job *job = &((options *)options_)->job;
    const tb_format *format = tb_format_find(value);
    if (format) return add_format(job, format, why);
    if (strcmp(value, "all") == 0) {
        for (int i = 0; tb_format_at(i); i++) add_format(job, tb_format_at(i), why);
        return true;
    }
    int n = snprintf(why, APP_WHY, "no such format; there are all");
    for (int i = 0; tb_format_at(i); i++) n += snprintf(why + n, (size_t)(APP_WHY - n), ", %s", tb_format_at(i)->name);
    return false;
}

static bool take_system(void *options_, const char *value, char *why)
{
    options *o = options_;
    app_offer_systems();
    const trn_system system = trn_system_from_name(value);
    if (system == TRN_SYSTEM_COUNT) return app_refuse(why, "no such system; trnbench spec lists them");
    o->job.system[system] = o->any_system = true;
    return true;
}

static bool take_share(void *options_, const char *value, char *why)
{
    for (int i = 0; i < TB_SHARES; i++)
        if (strcmp(value, tb_share_name((tb_share)i)) == 0) return ((options *)options_)->job.share = (tb_share)i, true;
    return app_refuse(why, "expected core, chip, domain or system");
}

static bool take_phase(void *options_, const char *value, char *why)
{
    options *o = options_;
    if (strcmp(value, "prefill") == 0) return o->prefill = true;
    if (strcmp(value, "decode") == 0) return o->decode = true;
    return app_refuse(why, "expected prefill or decode");
}

static bool take_tokens(void *o, const char *value, char *why)
{
    return app_parse_int(value, 1, 1 << 24, &((options *)o)->tokens, why);
}

static bool take_rounds(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, TB_MAX_ROUNDS, &((options *)o)->job.host.rounds, why);
}

static bool take_threads(void *o, const char *value, char *why)
{
    return tb_parse_threads(value, &((options *)o)->job.host.threads, why);
}

static bool take_seed(void *o, const char *value, char *why)
{
    return tb_parse_seed(value, &((options *)o)->job.host.seed, why);
}

static bool take_seconds(void *o, const char *value, char *why)
{
    char *end;
    const double seconds = strtod(value, &end);
    if (!*value || *end || !(seconds >= 0 && seconds <= 3600))
        return app_refuse(why, "expected a number of seconds from 0 to 3600");
    ((options *)o)->job.host.seconds = seconds;
    return true;
}

static bool take_isa(void *o, const char *value, char *why)
{
    return app_parse_isa(value, &((options *)o)->job.host.isa, why);
}

static bool take_numerics(void *options_, const char *value, char *why)
{
    options *o = options_;
    o->job.numerics_text = value;
    return app_parse_numerics(value, &o->numerics, why);
}

static bool take_peers(void *options_, const char *value, char *why)
{
    bool *peer = ((options *)options_)->job.host.peer;
    const bool all = strcmp(value, "all") == 0, openblas = strcmp(value, "openblas") == 0;
    if (!all && !openblas && strcmp(value, "none") != 0) return app_refuse(why, "expected none, openblas or all");
    for (int i = 0; i < TB_PEERS; i++) peer[i] = all || (openblas && i == TB_OPENBLAS);
    return true;
}

static const app_option matmul_options[] = {
    { "--a", "FILE.npy", "left matrix [M, K], written by NumPy: float32, float16, or uint16 holding bfloat16 codes",
      APP_TAKES_TEXT(options, a) },
    { "--b", "FILE.npy", "right matrix [K, N]", APP_TAKES_TEXT(options, b) },
    { "--out", "FILE.npy", "write the product of --a and --b (float32; one format only)",
      APP_TAKES_TEXT(options, files.out) },
    { "--shape", "MxNxK", "random matrices of this shape (repeatable)", .apply = take_shape },
    { "--model", "NAME",
      "the linear layers of a model (repeatable): llama3-8b, llama3-70b, llama3-405b,\n"
      "mixtral-8x7b, gpt-oss-120b, deepseek-v3",
      .apply = take_model },
    { "--phase", "NAME", "prefill or decode (default: both)", .apply = take_phase },
    { "--tokens", "N", "tokens of a forward pass (default: prefill 2048, decode 1)", .apply = take_tokens },
    { "--format", "NAME",
      "all, or one of the formats below, or a longer name such as float8_e4m3 (repeatable;\n"
      "default: bf16, for files of 16-bit numbers theirs; with --all and in files f32, tf32, bf16, f16)",
      .apply = take_format },
    { "--system", "NAME", "model this system only (repeatable; default: all ten)", .apply = take_system },
    { "--share", "WHO",
      "which cores share one product: core, chip, domain (joined by NeuronLink), system\n"
      "(default: domain)",
      .apply = take_share },
    { "--all", NULL, "tables of every format, layer and system, instead of one screen", APP_SETS(options, job.all) },
    { "--no-host", NULL, "model only: run nothing here, check nothing", APP_CLEARS(options, job.run_host) },
    { "--threads", "N", "threads on this host (default: all)", .apply = take_threads },
    { "--rounds", "N", "rounds of measurement (default: up to 7 within --seconds)", .apply = take_rounds },
    { "--seconds", "S", "time for the rounds of one product in one format (default: 0.7)", .apply = take_seconds },
    { "--peers", "WHO", "measure beside: none, openblas, all (oneDNN too) (default: openblas)", .apply = take_peers },
    { "--isa", "NAME", "kernels by a name of TRN_ISA (default: the best this host has)", .apply = take_isa },
    { "--numerics", "TEXT", "assumptions about the engine, such as chains=1 or single_chain", .apply = take_numerics },
    { "--seed", "N", "of the random matrices and of the outputs that are checked (default: 1)", .apply = take_seed },
    { "--json", "FILE", "everything as JSON (- for standard output, without the tables)",
      APP_TAKES_TEXT(options, files.json) },
    { "--csv", "FILE", "one row per layer x format x system, one header row (- as above)",
      APP_TAKES_TEXT(options, files.csv) },
    { "--report", "FILE.html", "one self-contained page with rooflines and bars",
      APP_TAKES_TEXT(options, files.report) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(options, schema) },
};

static const app_command matmul_command = {
    "trnbench matmul",
    "usage: trnbench matmul [--a A.npy --b B.npy | --shape MxNxK | --model NAME] [options]",
    "Runs matrix products through the engine model on this host, compares a sample of the outputs bit for bit with\n"
    "the definition, times them beside OpenBLAS, and tells what each Trainium system would make of them.\n"
    "Without a product to run it takes --model llama3-8b.",
    matmul_options,
    sizeof matmul_options / sizeof matmul_options[0],
    "Large products are timed on a part of them: all of K, fewer rows and columns; the table says which. Products of\n"
    "--a and --b are computed whole. Environment: TRN_ISA, OPENBLAS_CORETYPE, NO_COLOR.\n"
    "\n"
    "Formats, of both operands or of a and b: f32 tf32 bf16 f16; fp32r (F32 read as TF32), f32-split (as two halves);\n"
    "bf16-psum (BF16 sums between tiles); bf16-f16 bf16-e4m3 (mixed); e4m3 e5m2 e3m4 cfp8 e4m3-e5m2 e4m3fn (FP8);\n"
    "e4m3-double e5m2-double e4m3-e5m2-double e4m3fn-double (double rows); mxfp8 mxfp8-e5m2 mxfp8-mixed mxfp8-mxfp4\n"
    "mxfp4 (block-scaled; K a multiple of 32); int8 (Trainium1). Sparse products: trnbench sparse.",
    NULL,
};

/* ---- works ---- */

static tb_work *add_work(tb_job *job)
{
    tb_work *w = &job->work[job->works++];
    memset(w, 0, sizeof *w);
    w->phase = "";
    w->tokens = 0;
    return w;
}

static void one_product(tb_work *w, int64_t m, int64_t n, int64_t k)
{
    w->products = 1;
    w->product[0] = (tb_product){ w->name, m, n, k, 1, 1, (double)n * (double)k };
}

/* A matrix of numbers that the engine multiplies; BF16 has no type in NumPy and comes as <u2. */
static int check_matrix(const npy_array *x, const char *path, bool bf16_asked)
{
    const bool known = !strcmp(x->type, "<f4") || !strcmp(x->type, "<f2");
    if (x->rank != 2) return app_complain(APP_USAGE, "%s: it has %d axes, a matrix has 2", path, x->rank);
    if (!strcmp(x->type, "<u2") && !bf16_asked)
        return app_complain(APP_USAGE, "%s: it holds 16-bit words (<u2); say --format bf16 if they are bfloat16 codes",
                            path);
    if (!known && strcmp(x->type, "<u2"))
        return app_complain(APP_USAGE, "%s: its numbers are %s; <f4, <f2 and <u2 (bfloat16 codes) are read", path,
                            x->type);
    if (x->elements == 0)
        return app_complain(APP_USAGE, "%s: its shape %lld x %lld has no elements", path, (long long)x->shape[0],
                            (long long)x->shape[1]);
    return APP_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int load_matrix(const char *path, npy_array *x, bool bf16_asked)
{
    char why[NPY_WHY];
    if (!npy_read(path, x, why)) return app_complain(APP_USAGE, "%s", why);
    return check_matrix(x, path, bf16_asked);
}

static int add_files(options *o)
{
    bool bf16 = false;
    if (!o->a || !o->b)
        return app_complain(APP_USAGE, "%s is given without %s", o->a ? "--a" : "--b", o->a ? "--b" : "--a");
    for (int i = 0; i < o->job.formats; i++) bf16 = bf16 || o->job.format[i]->a == TRN_BF16;
    tb_work *w = add_work(&o->job);
    w->a_path = o->a;
    w->b_path = o->b;
    int status = load_matrix(o->a, &w->a, bf16);
    if (status == APP_OK) status = load_matrix(o->b, &w->b, bf16);
    if (status != APP_OK) return status;
    if (w->a.shape[1] != w->b.shape[0])
        return app_complain(APP_USAGE, "%s has %lld columns but %s has %lld rows", o->a, (long long)w->a.shape[1], o->b,
                            (long long)w->b.shape[0]);
    io_say_in(w->name, sizeof w->name, IO_SAID, "%.70s x %.70s", base_name(o->a), base_name(o->b));
    one_product(w, w->a.shape[0], w->b.shape[1], w->a.shape[1]);
    return APP_OK;
}

static void add_model(options *o, const tb_model *model, tb_phase phase)
{
    tb_work *w = add_work(&o->job);
    snprintf(w->name, sizeof w->name, "%s", model->name);
    w->model = model;
    w->phase = tb_phase_name(phase);
    w->tokens = o->tokens ? o->tokens : tb_phase_tokens(phase);
    w->products = tb_model_products(model, phase, w->tokens, w->product);
}

static int add_works(options *o)
{
    const bool both = o->prefill == o->decode;
    if (!o->a && !o->b && !o->shapes && !o->models) o->model[o->models++] = tb_model_find("llama3-8b");
    if ((o->a || o->b) && add_files(o) != APP_OK) return APP_USAGE;
    if (o->job.works + o->shapes + o->models * TB_PHASES > TB_MAX_WORKS)
        return app_complain(APP_USAGE, "more than %d files, shapes and models in one run", TB_MAX_WORKS);
    for (int i = 0; i < o->shapes; i++) {
        const tb_slice s = o->shape[i];
        tb_work *w = add_work(&o->job);
        snprintf(w->name, sizeof w->name, "%lldx%lldx%lld", (long long)s.m, (long long)s.n, (long long)s.k);
        one_product(w, s.m, s.n, s.k);
    }
    for (int i = 0; i < o->models; i++) {
        if (both || o->prefill) add_model(o, o->model[i], TB_PREFILL);
        if (both || o->decode) add_model(o, o->model[i], TB_DECODE);
    }
    return APP_OK;
}

/* Without --format: 16-bit files have one; the tables show BF16, and what is written for programs has four. */
static void default_formats(options *o)
{
    static const char *const common[] = { "f32", "tf32", "bf16", "f16" };
    const tb_work *w = &o->job.work[0];
    const tb_format *bf16 = tb_format_find("bf16");
    char why[APP_WHY];
    if (o->job.formats) return;
    if (o->a && !strcmp(w->a.type, "<f2") && !strcmp(w->b.type, "<f2"))
        add_format(&o->job, tb_format_find("f16"), why);
    else if (o->job.all || o->files.json || o->files.csv || o->files.report)
        for (int i = 0; i < 4; i++) add_format(&o->job, tb_format_find(common[i]), why);
    else
        add_format(&o->job, bf16, why);
    o->job.headline = o->job.formats > 1 && !o->job.all ? bf16 : NULL;
}

/* ---- the run ---- */

static bool list_items(tb_job *job)
{
    int products = 0;
    for (int w = 0; w < job->works; w++) products += job->work[w].products;
    job->item = calloc((size_t)(products * job->formats), sizeof *job->item);
    if (!job->item) return false;
    for (int w = 0; w < job->works; w++)
        for (int p = 0; p < job->work[w].products; p++)
            for (int f = 0; f < job->formats; f++) {
                tb_item *item = &job->item[job->items++];
                item->work = w;
                item->product = p;
                item->format = job->format[f];
                for (int s = 0; s < TRN_SYSTEM_COUNT; s++)
                    item->cost[s] = tb_cost_product(&job->work[w].product[p], item->format,
                                                    trn_system_spec_of((trn_system)s), job->share);
            }
    return true;
}

static void release_job(tb_job *job)
{
    for (int i = 0; i < job->items; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) first = first && job->item[j].host != job->item[i].host;
        if (first) free((void *)(uintptr_t)job->item[i].host);
    }
    for (int w = 0; w < job->works; w++) npy_free(&job->work[w].a), npy_free(&job->work[w].b);
    free(job->item);
}

static void print_schema(void)
{
    app_table table;
    tb_tidy_columns(&table);
    app_print_schema(stdout, "trnbench.matmul", &table);
    app_table_free(&table);
}

static int write_outputs(options *o)
{
    if (!tb_stdout_taken(&o->files)) tb_print_text(&o->job);
    return tb_write_files(&o->files, tb_print_matmul_csv, tb_print_matmul_json, tb_print_report, &o->job);
}

static int run(options *o)
{
    tb_job *job = &o->job;
    int status = add_works(o);
    if (status != APP_OK) return status;
    default_formats(o);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) job->system[i] = job->system[i] || !o->any_system;
    if (o->files.out && (!o->a || job->formats != 1 || !job->run_host))
        return app_complain(APP_USAGE, "--out needs --a, --b, one --format and a run on this host");
    if (job->run_host && job->host.isa == TRN_ISA_AUTO && tb_refuse_isa() != APP_OK) return APP_USAGE;
    if (tb_open_files(&o->files) != APP_OK) return APP_USAGE;
    job->out = tb_file_stream(&o->files, TB_OUT);
    if (!list_items(job)) return app_complain(APP_USAGE, "there is not enough memory");
    tb_start_host(job);
    const int checked = job->run_host ? tb_run_host(job) : APP_OK;
    status = checked == APP_USAGE ? checked : write_outputs(o);
    return status != APP_OK ? status : checked;
}

int tb_main_matmul(int argc, char **argv)
{
    static options o; /* large; zeroed once */
    o.job.run_host = true;
    o.job.host.seconds = 0.7;
    o.job.host.seed = 1;
    o.job.host.peer[TB_OPENBLAS] = true;
    int status = app_parse_options(&matmul_command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (o.job.numerics_text) o.job.host.numerics = &o.numerics;
    if (o.schema) return print_schema(), APP_OK;
    status = run(&o);
    tb_discard_files(&o.files);
    release_job(&o.job);
    return status;
}

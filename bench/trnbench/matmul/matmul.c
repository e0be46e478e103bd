/* matmul.c - subcommand matmul: options, the works they name, and one run over all of them.
 * SPDX-License-Identifier: MIT
 */
#include "matmul.h"

#include <stdlib.h>
#include <string.h>

typedef struct options {
    tb_job job;
    const char *a, *b, *out, *json, *csv, *report;
    const tb_model *model[TB_MAX_WORKS];
    tb_slice shape[TB_MAX_WORKS];
    int models, shapes;
    bool any_system, prefill, decode, schema;
    int64_t tokens;
    trn_numerics numerics;
} options;

/* ---- options ---- */

APP_TAKE(take_a, options, a, value)
APP_TAKE(take_b, options, b, value)
APP_TAKE(take_out, options, out, value)
APP_TAKE(take_json, options, json, value)
APP_TAKE(take_csv, options, csv, value)
APP_TAKE(take_report, options, report, value)
APP_TAKE(take_schema, options, schema, true)
APP_TAKE(take_no_host, options, job.run_host, false)

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

static bool take_int(const char *value, int64_t low, int64_t high, int *result, char *why)
{
    int64_t number;
    if (!app_parse_int(value, low, high, &number, why)) return false;
    *result = (int)number;
    return true;
}

static bool take_tokens(void *o, const char *value, char *why)
{
    return app_parse_int(value, 1, 1 << 24, &((options *)o)->tokens, why);
}

static bool take_rounds(void *o, const char *value, char *why)
{
    return take_int(value, 1, 1000, &((options *)o)->job.host.rounds, why);
}

static bool take_threads(void *o, const char *value, char *why)
{
#if defined(_OPENMP)
    return take_int(value, 1, 1024, &((options *)o)->job.host.threads, why);
#else
    return take_int(value, 1, 1, &((options *)o)->job.host.threads, why) ||
           app_refuse(why, "this program was built without OpenMP and runs one thread");
#endif
}

static bool take_seed(void *o, const char *value, char *why)
{
    int64_t seed;
    if (!app_parse_int(value, 0, INT64_MAX, &seed, why)) return false;
    ((options *)o)->job.host.seed = (uint64_t)seed;
    return true;
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
    if (trn_numerics_parse(&o->numerics, value) != TRN_OK)
        return app_refuse(why, "expected field=value or preset names with commas between, such as chains=1,merge=pairwise "
                           "or single_chain");
    o->job.numerics_text = value;
    return true;
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
      take_a },
    { "--b", "FILE.npy", "right matrix [K, N]", take_b },
    { "--out", "FILE.npy", "write the product of --a and --b (float32; one format only)", take_out },
    { "--shape", "MxNxK", "random matrices of this shape (repeatable)", take_shape },
    { "--model", "NAME",
      "the linear layers of a model (repeatable): llama3-8b, llama3-70b, llama3-405b,\n"
      "mixtral-8x7b, gpt-oss-120b, deepseek-v3",
      take_model },
    { "--phase", "NAME", "prefill or decode (default: both)", take_phase },
    { "--tokens", "N", "tokens of a forward pass (default: prefill 2048, decode 1)", take_tokens },
    { "--format", "NAME",
      "all, or one of the formats below, or a longer name such as float8_e4m3 (repeatable;\n"
      "default: f32, tf32, bf16 and f16, for files of 16-bit numbers theirs)",
      take_format },
    { "--system", "NAME", "model this system only (repeatable; default: all ten)", take_system },
    { "--share", "WHO",
      "which cores share one product: core, chip, domain (joined by NeuronLink), system\n"
      "(default: domain)",
      take_share },
    { "--no-host", NULL, "model only: run nothing here, check nothing", take_no_host },
    { "--threads", "N", "threads on this host (default: all)", take_threads },
    { "--rounds", "N", "rounds of measurement (default: up to 7 within --seconds)", take_rounds },
    { "--seconds", "S", "time for the rounds of one product in one format (default: 0.7)", take_seconds },
    { "--peers", "WHO", "measure beside: none, openblas, all (oneDNN too) (default: openblas)", take_peers },
    { "--isa", "NAME", "kernels for portable, avx2, avx512 or neon (default: the best this host has)", take_isa },
    { "--numerics", "TEXT", "assumptions about the engine, such as chains=1 or single_chain", take_numerics },
    { "--seed", "N", "of the random matrices and of the outputs that are checked (default: 1)", take_seed },
    { "--json", "FILE", "everything as JSON (- for standard output, without the tables)", take_json },
    { "--csv", "FILE", "one row per layer x format x system, one header row (- as above)", take_csv },
    { "--report", "FILE.html", "one self-contained page with rooflines and bars", take_report },
    { "--schema", NULL, "the columns of the CSV", take_schema },
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
    snprintf(w->name, sizeof w->name, "%.70s x %.70s", base_name(o->a), base_name(o->b));
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

/* Without --format: 16-bit files have one, everything else is run in four. */
static void default_formats(options *o)
{
    static const char *const common[] = { "f32", "tf32", "bf16", "f16" };
    const tb_work *w = &o->job.work[0];
    char why[APP_WHY];
    if (o->job.formats) return;
    if (o->a && !strcmp(w->a.type, "<f2") && !strcmp(w->b.type, "<f2"))
        add_format(&o->job, tb_format_find("f16"), why);
    else
        for (int i = 0; i < 4; i++) add_format(&o->job, tb_format_find(common[i]), why);
}

/* ---- running ---- */

static trn_tensor file_view(const npy_array *x)
{
    const trn_format format = !strcmp(x->type, "<f4") ? TRN_F32 : !strcmp(x->type, "<f2") ? TRN_F16 : TRN_BF16;
    trn_tensor t = trn_tensor_2d(format, x->data, x->shape[0], x->shape[1]);
    t.stride[0] = x->stride[0];
    t.stride[1] = x->stride[1];
    return t;
}

static trn_tensor corner(trn_tensor t, int64_t rows, int64_t columns)
{
    t.shape[0] = rows;
    t.shape[1] = columns;
    return t;
}

/* The operands of one product, from files or drawn: [m, k] and [k, n] of the slice. */
typedef struct operands {
    trn_tensor a, b;
    float *drawn_a, *drawn_b;
} operands;

static bool draw(float **x, trn_tensor *t, int64_t rows, int64_t columns, bool wide, uint64_t seed, uint64_t stream)
{
    *x = malloc(sizeof **x * (size_t)rows * (size_t)columns);
    if (*x) (wide ? tb_fill_wide : tb_fill_random)(*x, rows * columns, seed, stream);
    *t = trn_tensor_2d(TRN_F32, *x, rows, columns);
    return *x != NULL;
}

static bool find_operands(const tb_job *job, const tb_work *w, const tb_format *format, tb_slice s, operands *x)
{
    memset(x, 0, sizeof *x);
    if (w->a.data) {
        x->a = corner(file_view(&w->a), s.m, s.k);
        x->b = corner(file_view(&w->b), s.k, s.n);
        return true;
    }
    const bool wide = trn_format_bits(format->b) <= 8 && format->mode != TRN_MODE_INT8;
    return draw(&x->drawn_a, &x->a, s.m, s.k, wide, job->host.seed, 1) &&
           draw(&x->drawn_b, &x->b, s.k, s.n, wide, job->host.seed, 2);
}

static void release_operands(operands *x)
{
    free(x->drawn_a);
    free(x->drawn_b);
}

static bool write_product(const char *path, const trn_tensor *dst, trn_error *error)
{
    char why[NPY_WHY];
    const char *const type = dst->format == TRN_I32 ? "<i4" : "<f4";
    if (!path || npy_write(path, type, 2, dst->shape, dst->data, why)) return true;
    app_complain(APP_USAGE, "%s", why);
    error->status = TRN_EIO;
    return false;
}

/* The whole product of two files, where only a part of it was timed, or where it is wanted as a file. */
static void whole_product(const tb_job *job, const tb_work *w, const tb_format *format, const char *out, tb_host *h)
{
    const tb_product *p = &w->product[0];
    const trn_tensor a = file_view(&w->a), b = file_view(&w->b);
    tb_operands x;
    trn_numerics numerics;
    float *c = malloc(sizeof *c * (size_t)p->m * (size_t)p->n);
    h->ran = c && tb_operands_make(format, &a, &b, &x, &h->error);
    if (h->ran) {
        trn_matmul_args args = tb_operands_product(format, &x, c, &numerics);
        args.isa = job->host.isa;
        args.error = &h->error;
        h->ran = tb_format_numerics(format, job->host.numerics, &numerics) == TRN_OK && trn_matmul(&args) == TRN_OK;
        if (h->ran) {
            h->check = tb_check_product(&args, job->host.seed, TB_SAMPLES);
            h->digest = tb_digest(&args.dst);
            h->ran = write_product(out, &args.dst, &h->error);
        }
        tb_operands_free(&x);
    }
    free(c);
}

static tb_host *measure(const operands *x, const tb_format *format, const tb_host_options *options)
{
    tb_host *h = calloc(1, sizeof *h);
    if (h) tb_host_measure(&x->a, &x->b, format, options, h);
    return h;
}

/* Shapes repeat: q_proj is o_proj, the logits of prefill are those of decode. One measurement serves all. */
static const tb_item *same_measurement(const tb_job *job, const tb_item *item)
{
    const tb_product *p = &job->work[item->work].product[item->product];
    for (const tb_item *other = job->item; other < item; other++) {
        const tb_product *q = &job->work[other->work].product[other->product];
        if (other->format == item->format && q->m == p->m && q->n == p->n && q->k == p->k &&
            !job->work[other->work].a.data && !job->work[item->work].a.data &&
            (job->work[other->work].model != NULL) == (job->work[item->work].model != NULL))
            return other;
    }
    return NULL;
}

static double pilot_rate(const tb_job *job, const tb_format *format)
{
    static double known[TB_MAX_FORMATS]; /* 0: not yet asked */
    double *const rate = &known[tb_format_index(format)];
    if (*rate == 0) *rate = tb_host_pilot(format, &job->host);
    return *rate;
}

static bool bf16_is_asked_too(const tb_job *job, const tb_format *format)
{
    bool asked = false;
    for (int i = 0; i < job->formats; i++) asked = asked || strcmp(job->format[i]->name, "bf16") == 0;
    return asked && strcmp(format->name, "bf16") != 0;
}

static void measure_item(const options *o, tb_item *item)
{
    const tb_job *job = &o->job;
    const tb_work *w = &job->work[item->work];
    const tb_product *p = &w->product[item->product];
    const tb_slice s = tb_host_slice(p->m, p->n, p->k, tb_host_flops(pilot_rate(job, item->format), w->model != NULL));
    const bool part = s.m != p->m || s.n != p->n;
    tb_host_options host = job->host;
    char label[320];
    operands x;
    snprintf(label, sizeof label, "%s %s %s %s, product %d of %d", w->name, w->phase, w->model ? p->layer : "",
             item->format->name, (int)(item - job->item) + 1, job->items);
    host.label = label;
    host.beside_bf16 = bf16_is_asked_too(job, item->format);
    app_progress("%s", label);
    tb_host *h = find_operands(job, w, item->format, s, &x) ? measure(&x, item->format, &host) : NULL;
    if (h && h->ran && w->a.data && (part || o->out)) whole_product(job, w, item->format, o->out, h);
    release_operands(&x);
    item->host = h;
}

static int complain_of_host(const tb_job *job, const tb_item *item)
{
    const tb_work *w = &job->work[item->work];
    const tb_host *h = item->host;
    const char *layer = w->model ? w->product[item->product].layer : w->name, *format = item->format->name;
    if (!h) return app_complain(APP_FAILED, "%s in %s: there is not enough memory to run it here", layer, format);
    if (!h->ran &&
        (h->error.status == TRN_EFORMAT || h->error.status == TRN_EUNSUPPORTED || h->error.status == TRN_ESHAPE))
        return app_complain(APP_OK, "%s is modelled but not run here: %s", format, h->error.text);
    if (!h->ran && h->error.status == TRN_EIO) return APP_USAGE; /* has been said */
    if (!h->ran) return app_complain(APP_FAILED, "%s in %s was not run: %s", layer, format, h->error.text);
    if (!h->check.defined)
        return app_complain(APP_OK,
                           "%s in %s: these numerics are not covered by the slow definition; no output was checked",
                           layer, format);
    if (h->check.wrong == 0) return APP_OK;
    return app_complain(
        APP_FAILED, "%s in %s: %lld of %lld outputs differ from the definition; [%lld, %lld] is %08x and should be %08x",
        layer, format, (long long)h->check.wrong, (long long)h->check.compared, (long long)h->check.row,
        (long long)h->check.column, (unsigned)h->check.got, (unsigned)h->check.expected);
}

static int run_host(const options *o)
{
    const tb_job *job = &o->job;
    int status = APP_OK;
    for (int i = 0; i < job->items; i++) {
        tb_item *item = &job->item[i];
        const tb_item *same = same_measurement(job, item);
        if (same) {
            item->host = same->host;
            item->repeated = same->work == item->work;
            continue;
        }
        measure_item(o, item);
        const int worse = complain_of_host(job, item);
        status = worse > status ? worse : status;
    }
    app_progress_done();
    if (tb_attention(job) < TB_BUSY)
        app_complain(APP_OK, "other programs had the processors for %.0f %% of the time; this host can do more than that",
                    100 * (1 - tb_attention(job)));
    return status;
}

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

static void start_host(options *o)
{
    tb_host_options *h = &o->job.host;
    bool onednn = false;
#if defined(_OPENMP)
    if (!h->threads) h->threads = omp_get_max_threads();
    omp_set_num_threads(h->threads);
#else
    h->threads = 1;
#endif
    for (int i = TB_ONEDNN_F32; i < TB_PEERS; i++) onednn = onednn || h->peer[i];
    const trn_isa isa = h->isa == TRN_ISA_AUTO ? trn_isa_from_name(trn_isa_name()) : h->isa;
    if (!o->job.run_host || !h->peer[TB_OPENBLAS]) return;
    tb_peers_load(isa, onednn);
    if (!tb_peer_version(TB_OPENBLAS))
        app_complain(APP_OK, "OpenBLAS is not installed (libopenblas.so.0); there is nothing to compare with");
    if (onednn && !tb_peer_version(TB_ONEDNN_F32))
        app_complain(APP_OK, "oneDNN 2 is not installed (libdnnl.so.2), or was not when this program was built");
}

static void print_schema(void)
{
    app_table table;
    tb_tidy_columns(&table);
    app_print_schema(stdout, "trnbench.matmul", &table);
    app_table_free(&table);
}

static int write_outputs(const options *o)
{
    const bool stdout_taken = (o->json && !strcmp(o->json, "-")) || (o->csv && !strcmp(o->csv, "-"));
    int status = APP_OK;
    if (!stdout_taken) tb_print_text(&o->job);
    if (o->csv) status = app_write_file("--csv", o->csv, tb_print_matmul_csv, &o->job);
    if (o->json && status == APP_OK) status = app_write_file("--json", o->json, tb_print_matmul_json, &o->job);
    if (o->report && status == APP_OK) status = app_write_file("--report", o->report, tb_print_report, &o->job);
    return status;
}

static int run(options *o)
{
    tb_job *job = &o->job;
    int status = add_works(o);
    if (status != APP_OK) return status;
    default_formats(o);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) job->system[i] = job->system[i] || !o->any_system;
    if (o->out && (!o->a || job->formats != 1 || !job->run_host))
        return app_complain(APP_USAGE, "--out needs --a, --b, one --format and a run on this host");
    if (job->run_host && job->host.isa == TRN_ISA_AUTO && strcmp(trn_isa_name(), "unsupported") == 0)
        return app_complain(APP_USAGE, "TRN_ISA=%s is unknown or not available on this host", getenv("TRN_ISA"));
    if (app_can_write("--out", o->out) || app_can_write("--csv", o->csv) || app_can_write("--json", o->json) ||
        app_can_write("--report", o->report))
        return APP_USAGE;
    if (!list_items(job)) return app_complain(APP_FAILED, "there is not enough memory");
    start_host(o);
    const int checked = job->run_host ? run_host(o) : APP_OK;
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
    release_job(&o.job);
    return status;
}

/* run.c - kernels of NKI's instructions on a whole NeuronCore: what they compute, whether they fit, how long they take.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "kernel.h"

#include <math.h>
#include <string.h>

#include <app/files.h>

const char app_name[] = "run";

extern const kernel kernel_softmax, kernel_rmsnorm, kernel_layernorm, kernel_rope, kernel_gelu_mlp, kernel_swiglu_mlp,
    kernel_matmul, kernel_flash_attention, kernel_mamba_scan, kernel_topk_router, kernel_mlp_int8, kernel_mlp_fp8,
    kernel_mlp_mxfp8;

const kernel *const kernels[] = { &kernel_softmax,    &kernel_rmsnorm,
                                  &kernel_layernorm,  &kernel_rope,
                                  &kernel_gelu_mlp,   &kernel_swiglu_mlp,
                                  &kernel_matmul,     &kernel_flash_attention,
                                  &kernel_mamba_scan, &kernel_topk_router,
                                  &kernel_mlp_int8,   &kernel_mlp_fp8,
                                  &kernel_mlp_mxfp8,  NULL };

enum { MOST_KERNELS = 16, TRACE_EVENTS = 1 << 17 };

/* ---- options ---- */

typedef struct options {
    const char *word[MOST_KERNELS]; /* the kernels' names */
    const kernel *kernel[MOST_KERNELS];
    int count, generations;
    uint64_t seed;
    const char *input, *size, *json, *csv, *trace, *svg;
    bool list;
} options;

static bool take_kernel(void *into, const char *word, char *why)
{
    options *o = (options *)into;
    if (o->count == MOST_KERNELS) return app_refuse(why, "there are 16 kernels before it");
    return o->word[o->count++] = word, true;
}

static bool take_generation(void *into, const char *value, char *why)
{
    static const char *const name[] = { "trn1", "trn2", "trn3", "all" };
    static const int bits[] = { KERNEL_TRN1, KERNEL_TRN2, KERNEL_TRN3, KERNEL_ALL };
    const int i = app_parse_word(value, name, 4, why);
    if (i >= 0) ((options *)into)->generations = bits[i];
    return i >= 0;
}

static const app_option option[] = {
    { "--generation", "NAME", "trn1, trn2, trn3 or all (default: all)", .apply = take_generation },
    { "--seed", "N", "of random inputs (default: 1)", APP_TAKES_UINT64(options, seed, UINT64_MAX) },
    { "--input", "X.npy",
      "the main input: a float32 or float16 matrix, rounded to what the kernel reads\n"
      "(bfloat16 but for topk_router), rows and columns as it needs them",
      APP_TAKES_TEXT(options, input) },
    { "--size", "NAME=N,...", "other sizes than the default ones: rows, columns, and those that --list names",
      APP_TAKES_TEXT(options, size) },
    { "--json", "FILE", "the same as JSON (- for standard output, in place of the table)",
      APP_TAKES_TEXT(options, json) },
    { "--csv", "FILE", "the same as CSV (- as above)", APP_TAKES_TEXT(options, csv) },
    { "--trace", "FILE", "the timeline of one kernel on one generation, for ui.perfetto.dev",
      APP_TAKES_TEXT(options, trace) },
    { "--svg", "FILE", "the same as a picture", APP_TAKES_TEXT(options, svg) },
    { "--list", NULL, "the kernels and their sizes", APP_SETS(options, list) },
};

static const app_command command = {
    "run",
    "usage: run [KERNEL ...] [options]",
    "Runs kernels written in NKI's instructions on a simulated NeuronCore, each against a binary64 reference with a\n"
    "bound on its error, and prints numbers, memory, cycles of each engine, what bounds the kernel, and where its "
    "error\n"
    "is from. KERNEL: one or more of those that --list names (default: all).",
    option,
    sizeof option / sizeof option[0],
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 an error is beyond its bound, 2 bad usage or input.",
    take_kernel,
};

static int list(void)
{
    for (int k = 0; kernels[k]; k++) {
        printf("%-16s %s%s%s  %s\n", kernels[k]->name, kernels[k]->generations & KERNEL_TRN1 ? "trn1 " : "     ",
               kernels[k]->generations & KERNEL_TRN2 ? "trn2 " : "     ",
               kernels[k]->generations & KERNEL_TRN3 ? "trn3" : "    ", kernels[k]->about);
        for (int i = 0; i < KERNEL_SIZES && kernels[k]->size[i].name; i++) {
            const kernel_size *s = &kernels[k]->size[i];
            printf("%-16s %-14s  %s = %lld, at most %lld", "", "", s->name, (long long)s->value, (long long)s->most);
            if (s->multiple > 1) printf(", a multiple of %lld", (long long)s->multiple);
            putchar('\n');
        }
    }
    return APP_OK;
}

/* ---- kernels, sizes, input ---- */

static bool find_kernels(options *o, char *why)
{
    const bool all = o->count == 0;
    for (int k = 0; all && kernels[k]; k++) o->kernel[o->count++] = kernels[k];
    for (int i = 0; !all && i < o->count; i++) {
        for (int k = 0; kernels[k]; k++)
            if (strcmp(kernels[k]->name, o->word[i]) == 0) o->kernel[i] = kernels[k];
        if (!o->kernel[i]) return app_fail(why, "%s is not a kernel; run --list names them", o->word[i]);
    }
    return true;
}

static int size_of(const kernel *k, const char *name, size_t length)
{
    for (int i = 0; i < KERNEL_SIZES && k->size[i].name; i++)
        if (strlen(k->size[i].name) == length && memcmp(k->size[i].name, name, length) == 0) return i;
    return -1;
}

/* NAME=N,...: into the sizes of every kernel that has one of that name; at least one must. */
static bool read_sizes(const options *o, int64_t size[][KERNEL_SIZES], char *why)
{
    for (const char *at = o->size; at && *at;) {
        const char *equals = strchr(at, '='), *end = strchr(at, ',');
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        char number[24] = "";
        uint64_t value;
        if (equals && equals < at + length && (size_t)(at + length - equals) <= sizeof number)
            snprintf(number, sizeof number, "%.*s", (int)(at + length - equals - 1), equals + 1);
        if (!app_parse_uint64(number, 1 << 20, &value, why))
            return app_fail(why, "--size %s: expected NAME=N with commas between", o->size);
        bool known = false;
        for (int k = 0; k < o->count; k++) {
            const int i = size_of(o->kernel[k], at, (size_t)(equals - at));
            if (i >= 0) known = true, size[k][i] = (int64_t)value;
        }
        if (!known)
            return app_fail(why, "--size %.*s: no kernel that runs has this size; run --list names them",
                            (int)(equals - at), at);
        at += length + (end ? 1 : 0);
    }
    return true;
}

static bool check_sizes(const options *o, int64_t size[][KERNEL_SIZES], char *why)
{
    for (int k = 0; k < o->count; k++)
        for (int i = 0; i < KERNEL_SIZES && o->kernel[k]->size[i].name; i++) {
            const kernel_size *s = &o->kernel[k]->size[i];
            const long long n = (long long)size[k][i], multiple = s->multiple > 1 ? (long long)s->multiple : 1;
            if (n < 1 || n > (long long)s->most || n % multiple)
                return app_fail(why, "%s: %s is %lld; this kernel takes %lld to %lld%s", o->kernel[k]->name, s->name, n,
                                multiple, (long long)s->most, multiple > 1 ? " in steps of the first" : "");
        }
    return true;
}

static bool read_input(const options *o, npy_array *a, int64_t size[][KERNEL_SIZES], char *why)
{
    if (!o->input) return true;
    if (!npy_read(o->input, a, why)) return false;
    if (strcmp(a->type, "<f4") != 0 && strcmp(a->type, "<f2") != 0)
        return app_fail(why, "%s: its type is %s; float32 (<f4) and float16 (<f2) are read", o->input, a->type);
    if (a->rank != 2) return app_fail(why, "%s: it has %d axes; a kernel's input is a matrix", o->input, a->rank);
    for (int64_t i = 0; i < a->shape[0] * a->shape[1]; i++)
        if (!isfinite(kernel_npy_value(a, i / a->shape[1], i % a->shape[1])))
            return app_fail(why, "%s: element [%lld, %lld] is not finite", o->input, (long long)(i / a->shape[1]),
                            (long long)(i % a->shape[1]));
    for (int k = 0; k < o->count; k++) size[k][ROWS] = a->shape[0], size[k][COLUMNS] = a->shape[1];
    return true;
}

static bool sizes_of_all(const options *o, npy_array *input, int64_t size[][KERNEL_SIZES], char *why)
{
    for (int k = 0; k < o->count; k++)
        for (int i = 0; i < KERNEL_SIZES; i++) size[k][i] = o->kernel[k]->size[i].value;
    if (!read_input(o, input, size, why) || !read_sizes(o, size, why)) return false;
    for (int k = 0; k < o->count && o->input; k++)
        if (size[k][ROWS] != input->shape[0] || size[k][COLUMNS] != input->shape[1])
            return app_fail(why, "--size: rows and columns are those of %s", o->input);
    return check_sizes(o, size, why);
}

/* ---- running ---- */

static void run_one(kernel_run *r, trn_trace *trace)
{
    trn_core core;
    trn_error error = { TRN_OK, "" };
    const trn_core_args args = { .generation = r->generation, .seed = r->seed, .trace = trace, .error = &error };
    const char *text = "";
    r->core = &core;
    r->result.status = trn_core_begin(&core, &args);
    if (r->result.status == TRN_OK) {
        r->kernel->run(r);
        r->result.status = trn_core_status(&core, &text);
        r->result.legal = r->result.status == TRN_OK;
        trn_core_report_of(&core, &r->result.report);
        snprintf(r->result.why, sizeof r->result.why, "%s", text);
        trn_core_end(&core);
    } else {
        snprintf(r->result.why, sizeof r->result.why, "%s", error.text);
    }
    if (r->result.status == TRN_ENOSPC) exit(app_complain(APP_USAGE, "%s: %s", r->kernel->name, r->result.why));
    kernel_free(r);
}

/* Every kernel on every generation that was asked for. */
static void run_all(const options *o, const npy_array *input, int64_t size[][KERNEL_SIZES], kernel_report *all)
{
    static const trn_generation generation[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    static char title[96];
    for (int k = 0; k < o->count; k++)
        for (int g = 0; g < KERNEL_GENERATIONS; g++) {
            kernel_run *r = &all->run[all->runs];
            if (!(o->generations & kernel_generation_bit(generation[g]))) continue;
            *r = (kernel_run){
                .kernel = o->kernel[k], .generation = generation[g], .seed = o->seed, .input = o->input ? input : NULL
            };
            memcpy(r->size, size[k], sizeof r->size);
            snprintf(title, sizeof title, "%s on %s", r->kernel->name, trn_generation_name(generation[g]));
            if (all->trace) all->trace->title = title;
            run_one(r, all->trace);
            if (all->table) report_table_run(all->table, r);
            all->passed = all->passed && kernel_passed(r);
            all->runs++;
        }
}

static void write_text(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

static void write_trace(FILE *out, const void *report)
{
    trn_trace_json(((const kernel_report *)report)->trace, write_text, out);
}

static void write_svg(FILE *out, const void *report)
{
    const kernel_report *all = (const kernel_report *)report;
    trn_trace_svg(&(trn_trace_svg_args){ .trace = all->trace, .write = write_text, .user = out });
}

static int run_and_report(const options *o, const npy_array *input, int64_t size[][KERNEL_SIZES])
{
    app_output output[] = { { .flag = "--json", .path = o->json, .write = report_json },
                            { .flag = "--csv", .path = o->csv, .write = report_csv },
                            { .flag = "--trace", .path = o->trace, .write = write_trace },
                            { .flag = "--svg", .path = o->svg, .write = write_svg } };
    const int outputs = sizeof output / sizeof output[0];
    kernel_report all = { .table = app_output_taken(output, 2) ? NULL : stdout, .passed = true };
    if (app_open_outputs(output, outputs) != APP_OK) return APP_USAGE;
    all.run = (kernel_run *)app_memory((size_t)o->count * KERNEL_GENERATIONS, sizeof *all.run);
    trn_trace trace = { .capacity = TRACE_EVENTS };
    if (o->trace || o->svg) {
        trace.event = (trn_trace_event *)app_memory(TRACE_EVENTS, sizeof *trace.event);
        all.trace = &trace;
    }
    if (all.table) report_table_head(all.table);
    run_all(o, input, size, &all);
    if (all.table) report_table_end(all.table);
    int status = all.passed ? APP_OK : APP_FAILED;
    if (trace.lost)
        status =
            app_complain(APP_USAGE, "the timeline has more than %d instructions; take a smaller size", TRACE_EVENTS);
    else if (app_write_outputs(output, outputs, &all) != APP_OK)
        status = APP_USAGE;
    app_discard_outputs(output, outputs);
    free(trace.event);
    free(all.run);
    return status;
}

static int work(options *o)
{
    static int64_t size[MOST_KERNELS][KERNEL_SIZES];
    char why[APP_WHY];
    npy_array input = { .data = NULL };
    if (o->list) return list();
    if (!find_kernels(o, why)) return app_complain(APP_USAGE, "%s", why);
    if ((o->trace || o->svg) && (o->count != 1 || (o->generations & (o->generations - 1))))
        return app_complain(APP_USAGE, "--trace and --svg show one kernel on one generation");
    if (o->json && o->csv && !strcmp(o->json, "-") && !strcmp(o->csv, "-"))
        return app_complain(APP_USAGE, "--json - and --csv - exclude each other");
    const int status =
        sizes_of_all(o, &input, size, why) ? run_and_report(o, &input, size) : app_complain(APP_USAGE, "%s", why);
    npy_free(&input);
    return status;
}

int app_run(int argc, char **argv)
{
    options o = { .generations = KERNEL_ALL, .seed = 1 };
    int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status == APP_OK)
        status = work(&o);
    else if (status < 0)
        status = APP_OK;
    return status;
}

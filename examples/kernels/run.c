/* run.c - kernels of NKI's instructions on a whole NeuronCore: what they compute, whether they fit, how long they take.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

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

__attribute__((format(printf, 1, 2))) static int complain(const char *format, ...)
{
    va_list list;
    fputs("run: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return KERNEL_USAGE;
}

static const char help_text[] =
    "usage: run [KERNEL ...] [--generation trn1|trn2|trn3|all] [--seed N] [--input X.npy] [--size NAME=N,...]\n"
    "           [--json FILE] [--csv FILE] [--trace FILE.json] [--svg FILE.svg]\n"
    "       run --list\n"
    "\n"
    "Runs kernels written in NKI's instructions on a simulated NeuronCore, each against a binary64 reference with a "
    "bound\n"
    "on its error, and prints numbers, memory, cycles of each engine, what bounds the kernel, and where its error is "
    "from.\n"
    "\n"
    "  KERNEL             one or more of those that --list names (default: all)\n"
    "  --generation NAME  default all\n"
    "  --seed N           of random inputs (default 1)\n"
    "  --input X.npy      the main input: a float32 or float16 matrix, rounded to what the kernel reads (bfloat16\n"
    "                     but for topk_router), rows and columns as it needs them\n"
    "  --size NAME=N,...  other sizes than the default ones: rows, columns, and those that --list names\n"
    "  --json FILE        the same as JSON; --csv FILE: as CSV (- for standard output, in place of the table)\n"
    "  --trace FILE       the timeline of one kernel on one generation, for ui.perfetto.dev\n"
    "  --svg FILE         the same as a picture\n"
    "  --list             the kernels and their sizes\n"
    "  --help, --version\n"
    "\n"
    "Data goes to standard output, everything else to standard error.\n"
    "Exit status: 0 ok, 1 an error is beyond its bound, 2 bad usage or input.";

typedef struct options {
    const char *generation, *seed, *input, *size, *json, *csv, *trace, *svg;
    bool list;
    const kernel *kernel[MOST_KERNELS];
    int count;
} options;

static const struct {
    const char *name;
    size_t offset;
    const char *value;
} option_table[] = {
    { "--generation", offsetof(options, generation), "trn1, trn2, trn3 or all" },
    { "--seed", offsetof(options, seed), "N" },
    { "--input", offsetof(options, input), "X.npy" },
    { "--size", offsetof(options, size), "NAME=N,..." },
    { "--json", offsetof(options, json), "FILE" },
    { "--csv", offsetof(options, csv), "FILE" },
    { "--trace", offsetof(options, trace), "FILE" },
    { "--svg", offsetof(options, svg), "FILE" },
};
enum { OPTIONS = sizeof option_table / sizeof option_table[0] };

static int take_kernel(options *o, const char *word)
{
    for (int k = 0; kernels[k]; k++)
        if (strcmp(kernels[k]->name, word) == 0) {
            if (o->count == MOST_KERNELS) return complain("more than %d kernels", MOST_KERNELS);
            o->kernel[o->count++] = kernels[k];
            return KERNEL_OK;
        }
    return complain("%s is not a kernel; run --list names them", word);
}

static int take(options *o, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (word[0] != '-') return take_kernel(o, word);
    for (int k = 0; k < OPTIONS; k++) {
        if (strlen(option_table[k].name) != length || memcmp(option_table[k].name, word, length) != 0) continue;
        if (!equals && *i + 1 == argc)
            return complain("%s needs a value: %s", option_table[k].name, option_table[k].value);
        const char *value = equals ? equals + 1 : argv[++*i];
        memcpy((char *)o + option_table[k].offset, &value, sizeof value);
        return KERNEL_OK;
    }
    if (strcmp(word, "--list") == 0) return o->list = true, KERNEL_OK;
    return complain("%s is not an option; run --help lists them", word);
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
    return KERNEL_OK;
}

/* ---- sizes ---- */

static int size_of(const kernel *k, const char *name, size_t length)
{
    for (int i = 0; i < KERNEL_SIZES && k->size[i].name; i++)
        if (strlen(k->size[i].name) == length && memcmp(k->size[i].name, name, length) == 0) return i;
    return -1;
}

/* NAME=N,...: into the sizes of every kernel that has one of that name; at least one must. */
static int take_sizes(const options *o, int64_t size[][KERNEL_SIZES])
{
    for (const char *at = o->size; at && *at;) {
        const char *equals = strchr(at, '='), *end = strchr(at, ',');
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        char number[24] = "";
        uint64_t value;
        if (equals && equals < at + length && (size_t)(at + length - equals) <= sizeof number)
            snprintf(number, sizeof number, "%.*s", (int)(at + length - equals - 1), equals + 1);
        if (!whole_number(number, 1 << 20, &value))
            return complain("--size %s: expected NAME=N with commas between", o->size);
        bool known = false;
        for (int k = 0; k < o->count; k++) {
            const int i = size_of(o->kernel[k], at, (size_t)(equals - at));
            if (i >= 0) known = true, size[k][i] = (int64_t)value;
        }
        if (!known)
            return complain("--size %.*s: no kernel that runs has this size; run --list names them", (int)(equals - at),
                            at);
        at += length + (end ? 1 : 0);
    }
    return KERNEL_OK;
}

static int check_sizes(const options *o, int64_t size[][KERNEL_SIZES])
{
    for (int k = 0; k < o->count; k++)
        for (int i = 0; i < KERNEL_SIZES && o->kernel[k]->size[i].name; i++) {
            const kernel_size *s = &o->kernel[k]->size[i];
            const long long n = (long long)size[k][i], multiple = s->multiple > 1 ? (long long)s->multiple : 1;
            if (n < 1 || n > (long long)s->most || n % multiple)
                return complain("%s: %s is %lld; this kernel takes %lld to %lld%s", o->kernel[k]->name, s->name, n,
                                multiple, (long long)s->most, multiple > 1 ? " in steps of the first" : "");
        }
    return KERNEL_OK;
}

static int take_input(const options *o, npy_array *a, int64_t size[][KERNEL_SIZES])
{
    char why[NPY_WHY];
    if (!o->input) return KERNEL_OK;
    if (!npy_read(o->input, a, why)) return complain("%s", why);
    if (strcmp(a->type, "<f4") != 0 && strcmp(a->type, "<f2") != 0)
        return complain("%s: its type is %s; float32 (<f4) and float16 (<f2) are read", o->input, a->type);
    if (a->rank != 2) return complain("%s: it has %d axes; a kernel's input is a matrix", o->input, a->rank);
    for (int64_t i = 0; i < a->shape[0] * a->shape[1]; i++)
        if (!isfinite(kernel_npy_value(a, i / a->shape[1], i % a->shape[1])))
            return complain("%s: element [%lld, %lld] is not finite", o->input, (long long)(i / a->shape[1]),
                            (long long)(i % a->shape[1]));
    for (int k = 0; k < o->count; k++) size[k][ROWS] = a->shape[0], size[k][COLUMNS] = a->shape[1];
    return KERNEL_OK;
}

/* ---- running ---- */

static void write_text(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

static void run_one(kernel_run *r, trn_trace *trace)
{
    trn_core core;
    trn_error error = { TRN_OK, "" };
    const trn_core_args args = { .generation = r->generation, .seed = r->seed, .trace = trace, .error = &error };
    const char *text = "";
    memset(&r->result, 0, sizeof r->result);
    r->core = &core;
    if (trn_core_begin(&core, &args) == TRN_OK) {
        r->kernel->run(r);
        r->result.status = trn_core_status(&core, &text);
        r->result.legal = r->result.status == TRN_OK;
        trn_core_report_of(&core, &r->result.report);
        snprintf(r->result.why, sizeof r->result.why, "%s", text);
        trn_core_end(&core);
    } else {
        snprintf(r->result.why, sizeof r->result.why, "%s", error.text);
    }
    kernel_free(r);
}

static int open_file(const char *option, const char *path, FILE **file)
{
    if (!path) return KERNEL_OK;
    *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    return *file ? KERNEL_OK : complain("%s %s: it cannot be created (%s)", option, path, strerror(errno));
}

static int close_file(const char *option, const char *path, FILE *file)
{
    if (!file || file == stdout || fclose(file) == 0) return KERNEL_OK;
    return complain("%s %s: it cannot be written", option, path);
}

static int write_timeline(const options *o, trn_trace *trace)
{
    FILE *json = NULL, *svg = NULL;
    if (trace->lost) return complain("the timeline has more than %d instructions; take a smaller size", TRACE_EVENTS);
    if (open_file("--trace", o->trace, &json) != KERNEL_OK || open_file("--svg", o->svg, &svg) != KERNEL_OK)
        return KERNEL_USAGE;
    if (json) trn_trace_json(trace, write_text, json);
    if (svg) trn_trace_svg(&(trn_trace_svg_args){ .trace = trace, .write = write_text, .user = svg });
    return close_file("--trace", o->trace, json) | close_file("--svg", o->svg, svg);
}

static int run_all(const options *o, const npy_array *input, int64_t size[][KERNEL_SIZES], uint64_t seed,
                   int generations)
{
    static const trn_generation all[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    kernel_files files = { 0 };
    trn_trace trace = { 0 };
    char title[96];
    bool passed = true;
    if (open_file("--json", o->json, &files.json) != KERNEL_OK || open_file("--csv", o->csv, &files.csv) != KERNEL_OK)
        return KERNEL_USAGE;
    files.table = files.json == stdout || files.csv == stdout ? NULL : stdout;
    if (o->trace || o->svg) {
        trace.event = (trn_trace_event *)malloc(TRACE_EVENTS * sizeof(trn_trace_event));
        trace.capacity = trace.event ? TRACE_EVENTS : 0;
        trace.title = title;
    }
    report_begin(&files);
    for (int k = 0; k < o->count; k++)
        for (int g = 0; g < KERNEL_GENERATIONS; g++) {
            if (!(generations & kernel_generation_bit(all[g]))) continue;
            kernel_run r = {
                .kernel = o->kernel[k], .generation = all[g], .seed = seed, .input = o->input ? input : NULL
            };
            memcpy(r.size, size[k], sizeof r.size);
            snprintf(title, sizeof title, "%s on %s", r.kernel->name, trn_generation_name(all[g]));
            run_one(&r, trace.event ? &trace : NULL);
            report_run(&files, &r);
            passed = passed && kernel_passed(&r);
        }
    report_end(&files, passed);
    int status = trace.event ? write_timeline(o, &trace) : KERNEL_OK;
    free(trace.event);
    status |= close_file("--json", o->json, files.json) | close_file("--csv", o->csv, files.csv);
    return status ? status : passed ? KERNEL_OK : KERNEL_FAILED;
}

static int work(options *o)
{
    static int64_t size[MOST_KERNELS][KERNEL_SIZES];
    npy_array input = { .data = NULL };
    uint64_t seed = 1;
    int generations = KERNEL_ALL;
    if (o->list) return list();
    for (int k = 0; o->count == 0 && kernels[k]; k++) o->kernel[k] = kernels[k];
    while (o->count < MOST_KERNELS && o->kernel[o->count]) o->count++;
    if (o->generation && strcmp(o->generation, "all") != 0) {
        generations = !strcmp(o->generation, "trn1")   ? KERNEL_TRN1
                      : !strcmp(o->generation, "trn2") ? KERNEL_TRN2
                      : !strcmp(o->generation, "trn3") ? KERNEL_TRN3
                                                       : 0;
        if (!generations) return complain("--generation %s: expected trn1, trn2, trn3 or all", o->generation);
    }
    if (o->seed && !whole_number(o->seed, UINT64_MAX, &seed))
        return complain("--seed %s: expected a whole number", o->seed);
    if ((o->trace || o->svg) && (o->count != 1 || (generations & (generations - 1))))
        return complain("--trace and --svg show one kernel on one generation");
    if (o->json && o->csv && !strcmp(o->json, "-") && !strcmp(o->csv, "-"))
        return complain("--json - and --csv - exclude each other");
    for (int k = 0; k < o->count; k++)
        for (int i = 0; i < KERNEL_SIZES; i++) size[k][i] = o->kernel[k]->size[i].value;
    int status = take_input(o, &input, size);
    if (status == KERNEL_OK) status = take_sizes(o, size);
    for (int k = 0; k < o->count && o->input && status == KERNEL_OK; k++)
        if (size[k][ROWS] != input.shape[0] || size[k][COLUMNS] != input.shape[1])
            status = complain("--size: rows and columns are those of %s", o->input);
    if (status == KERNEL_OK) status = check_sizes(o, size);
    if (status == KERNEL_OK) status = run_all(o, &input, size, seed, generations);
    npy_free(&input);
    return status;
}

int main(int argc, char **argv)
{
    options o = { 0 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return puts(help_text), KERNEL_OK;
        if (strcmp(argv[i], "--version") == 0) return printf("run %s\n", TRN_VERSION), KERNEL_OK;
        if (take(&o, argc, argv, &i) != KERNEL_OK) return KERNEL_USAGE;
    }
    const int status = work(&o);
    if (fflush(stdout) != 0) return complain("standard output cannot be written");
    return status;
}

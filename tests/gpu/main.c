/* main.c - the presets of NVIDIA's matrix units, held against the GPU of this machine, bit for bit.
 * SPDX-License-Identifier: MIT
 *
 * For each instruction (units.c): draw operands (operands.c), lay them into registers (fragments.c), let the device
 * execute (device.c), ask the library for the same product under the preset (answer.c), compare every bit.
 */
#include <stdlib.h>
#include <string.h>

#include "app/files.h"
#include "device.h"
#include "execution.h"
#include "trnmath/trn_matmul.h"

const char app_name[] = "gpu_check";

enum { NO_GPU = 77, BATCH = 2048, MOST_UNITS = 64, MOST_KINDS = 32 };

/* ---- options ---- */

typedef struct options {
    int64_t cases, seconds;
    uint64_t seed;
    int device, capability;
    const char *only, *save, *ptx;
    bool all, list;
} options;

static const app_option option[] = {
    { "--cases", "N", "outputs compared for each instruction (default: 100000000)",
      APP_TAKES_INT64(options, cases, 1, INT64_MAX / 2) },
    { "--seconds", "S", "stop after S seconds, shared out evenly among the instructions",
      APP_TAKES_INT64(options, seconds, 1, 1000000) },
    { "--seed", "S", "of the operands (default: 1)", APP_TAKES_UINT64(options, seed, UINT64_MAX) },
    { "--only", "TEXT", "instructions whose name holds TEXT, such as wgmma or e4m3", APP_TAKES_TEXT(options, only) },
    { "--all", NULL, "also those of which no preset's source speaks", APP_SETS(options, all) },
    { "--device", "N", "which GPU, counted from 0 (default: 0)", APP_TAKES_INT(options, device, 0, 1023) },
    { "--save", "FILE", "the results as CSV (- for standard output, in place of the text)",
      APP_TAKES_TEXT(options, save) },
    { "--list", NULL, "the instructions, and ask no GPU", APP_SETS(options, list) },
    { "--capability", "N", "with --list: those of compute capability N, 90 for 9.0, and what they are held against",
      APP_TAKES_INT(options, capability, 10, 999) },
    { "--ptx", "NAME", "the text of that instruction's kernel", APP_TAKES_TEXT(options, ptx) },
};

static const app_command command = {
    "gpu_check",
    "usage: gpu_check [options]",
    "Holds the presets of NVIDIA's matrix units (nv_volta to nv_blackwell) against the GPU of this machine: the\n"
    "operands of each instruction are drawn, the device and the library multiply them, and every bit is compared.\n"
    "It needs NVIDIA's driver and nothing else.",
    option,
    sizeof option / sizeof option[0],
    "A NaN equals every NaN. The first difference of an instruction is printed in the columns of\n"
    "tests/golden/tensor_core_*.txt, with the library's result after the device's.\n"
    "Exit status: 0 all equal, 1 a difference, 2 bad usage or an error of the device, 77 no GPU here.",
    NULL,
};

/* ---- one instruction ---- */

typedef struct result {
    const gpu_unit *unit;
    gpu_claim claim;
    int64_t cases, equal;
    int64_t wrong[MOST_KINDS];
    double seconds;
    char why[APP_WHY]; /* "": it ran */
} result;

typedef struct batch {
    gpu_execution *execution; /* [BATCH] */
    uint32_t *host[GPU_ARRAYS];
    gpu_words words; /* of one execution */
    int count;
} batch;

static void batch_start(batch *b, const gpu_unit *u, size_t words[GPU_ARRAYS])
{
    b->words = gpu_words_of(u);
    const int each[GPU_ARRAYS] = { b->words.a, b->words.b, b->words.c, b->words.s, b->words.c };
    b->execution = app_memory(BATCH, sizeof *b->execution);
    for (int i = 0; i < GPU_ARRAYS; i++) {
        words[i] = (size_t)each[i] * BATCH;
        b->host[i] = app_memory(words[i] + 1, sizeof(uint32_t));
    }
}

static void batch_free(batch *b)
{
    free(b->execution);
    for (int i = 0; i < GPU_ARRAYS; i++) free(b->host[i]);
}

static void batch_draw(batch *b, const gpu_unit *u, uint64_t seed, int64_t first)
{
    const gpu_words w = b->words;
#if defined(_OPENMP)
#pragma omp parallel for schedule(static)
#endif
    for (int i = 0; i < b->count; i++) {
        gpu_execution *e = &b->execution[i];
        gpu_draw(u, seed, (uint64_t)(first + i), e);
        gpu_pack(u, e, b->host[0] + (size_t)i * (size_t)w.a, b->host[1] + (size_t)i * (size_t)w.b,
                 b->host[2] + (size_t)i * (size_t)w.c, b->host[3] + (size_t)i * (size_t)w.s);
    }
}

static bool batch_answer(batch *b, const gpu_unit *u, const gpu_claim *claim, const trn_numerics *n, char *why)
{
    int refused = 0;
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 8)
#endif
    for (int i = 0; i < b->count; i++) {
        trn_error error = { .text = "" };
        gpu_execution *e = &b->execution[i];
        gpu_unpack(u, b->host[4] + (size_t)i * (size_t)b->words.c, e);
        if (gpu_answer(u, claim->how, n, e, &error)) continue;
#if defined(_OPENMP)
#pragma omp critical
#endif
        {
            refused++;
            (void)app_fail(why, "the library refuses: %s", error.text);
        }
    }
    return refused == 0;
}

static void print_codes(const unsigned char *codes, trn_format format, int columns, int row)
{
    for (int k = 0; k < columns; k++)
        printf("%0*x", (int)(2 * trn_format_bytes(format)), (unsigned)gpu_code(codes, format, columns, row, k));
    putchar(' ');
}

/* One output with all that it was made of. */
static void print_difference(const gpu_unit *u, const gpu_execution *e, const gpu_claim *claim, int64_t number, int at)
{
    const int row = at / u->n, column = row / u->m * u->n + at % u->n;
    const int digits = u->result == TRN_F16 ? 4 : 8, blocks = u->scale ? u->k / u->scale : 0;
    printf("  first difference, \"%s\", execution %lld, output [%d, %d]; preset, formats, a, b%s, c, device, ours\n",
           gpu_kind_name(e->kind), (long long)number, row, at % u->n, blocks ? ", scales" : "");
    printf("  %s %s %s ", claim->preset, trn_format_name(u->a), trn_format_name(u->b));
    print_codes(e->a, u->a, u->k, row);
    print_codes(e->b, u->b, u->k, column);
    for (int i = 0; i < blocks; i++) printf("%02x", e->a_scale[row * blocks + i]);
    for (int i = 0; i < blocks; i++) printf("%s%02x", i ? "" : " ", e->b_scale[column * blocks + i]);
    printf("%s%0*x %0*x %0*x\n", blocks ? " " : "", digits, (unsigned)e->c[at], digits, (unsigned)e->device[at], digits,
           (unsigned)e->ours[at]);
}

static void batch_compare(const batch *b, int64_t first, bool quiet, result *r)
{
    const gpu_unit *u = r->unit;
    const int outputs = gpu_outputs(u);
    for (int i = 0; i < b->count; i++) {
        const gpu_execution *e = &b->execution[i];
        for (int at = 0; at < outputs; at++) {
            const bool same = gpu_same(u, e->device[at], e->ours[at]);
            if (!same && r->equal == r->cases && !quiet) print_difference(u, e, &r->claim, first + i, at);
            r->cases++;
            r->equal += same;
            r->wrong[e->kind] += !same;
        }
    }
}

/* Batches, until there are enough cases or the time is over. */
static bool ask_batches(gpu_device *g, const options *o, double until, result *r)
{
    const gpu_unit *u = r->unit;
    const int64_t executions = (o->cases + gpu_outputs(u) - 1) / gpu_outputs(u);
    char text[GPU_PTX];
    size_t words[GPU_ARRAYS];
    trn_numerics n;
    batch b;
    gpu_kernel k;
    if (trn_numerics_parse(&n, r->claim.preset) != TRN_OK)
        return app_fail(r->why, "there is no preset %s", r->claim.preset);
    gpu_ptx(u, text);
    batch_start(&b, u, words);
    bool good = gpu_load(g, text, words, &k, r->why);
    for (int64_t first = 0; good && first < executions && app_now() < until; first += b.count) {
        b.count = executions - first < BATCH ? (int)(executions - first) : BATCH;
        const size_t count = (size_t)b.count;
        const size_t used[GPU_ARRAYS] = { words[0] / BATCH * count, words[1] / BATCH * count, words[2] / BATCH * count,
                                          words[3] / BATCH * count, words[4] / BATCH * count };
        batch_draw(&b, u, o->seed, first);
        good = gpu_run(&k, b.host, used, (uint32_t)(b.count * gpu_lanes(u)), r->why) &&
               batch_answer(&b, u, &r->claim, &n, r->why);
        if (good) batch_compare(&b, first, o->save && strcmp(o->save, "-") == 0, r);
        app_progress("%s: %lld of %lld", u->name, (long long)r->cases, (long long)o->cases);
    }
    gpu_unload(&k);
    batch_free(&b);
    return good;
}

/* ---- all of them ---- */

typedef struct report {
    const gpu_device *device;
    const options *options;
    result *result;
    int count;
} report;

static const app_column column[] = {
    { "unit", APP_TEXT, "", "the instruction" },
    { "format", APP_TEXT, "", "of a, and of b where it is another one" },
    { "preset", APP_TEXT, "", "of trn_numerics" },
    { "cases", APP_INTEGER, "", "outputs compared" },
    { "equal", APP_INTEGER, "", "of them with the same bits" },
    { "claimed", APP_TEXT, "", "does the preset's source speak of the instruction?" },
    { "source", APP_TEXT, "", "who measured the preset, and on what" },
    { "seed", APP_TEXT, "", "of the operands" },
    { "seconds", APP_REAL, "s", "that it took" },
    { "gpu", APP_TEXT, "", "the device's name" },
    { "capability", APP_TEXT, "", "its compute capability" },
    { "driver", APP_TEXT, "", "its driver, and the CUDA that it knows" },
    { "error", APP_TEXT, "", "why it was not asked, or not to the end" },
};

static void describe_driver(const gpu_device *g, char *text, size_t size)
{
    const char *comma = g->module[0] ? ", " : "";
    snprintf(text, size, "%s%sCUDA %d.%d", g->module, comma, g->driver / 1000, g->driver % 1000 / 10);
}

static void fill_row(app_table *t, const report *all, const result *r)
{
    char driver[96];
    const gpu_unit *u = r->unit;
    describe_driver(all->device, driver, sizeof driver);
    app_row(t);
    app_text(t, "%s", u->name);
    if (u->a == u->b)
        app_text(t, "%s", trn_format_name(u->a));
    else
        app_text(t, "%s %s", trn_format_name(u->a), trn_format_name(u->b));
    app_text(t, "%s", r->claim.preset);
    app_integer(t, r->cases);
    app_integer(t, r->equal);
    app_text(t, "%s", r->claim.claimed ? "yes" : "no");
    app_text(t, "%s", r->claim.source);
    app_text(t, "%llu", (unsigned long long)all->options->seed);
    app_real(t, r->seconds);
    app_text(t, "%s", all->device->name);
    app_text(t, "%d.%d", all->device->capability / 10, all->device->capability % 10);
    app_text(t, "%s", driver);
    app_text(t, "%s", r->why);
}

static void write_csv(FILE *out, const void *context)
{
    const report *all = context;
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    for (int i = 0; i < all->count; i++) fill_row(&table, all, &all->result[i]);
    app_print_csv(out, &table);
    app_table_free(&table);
}

static void print_result(const result *r, int64_t wanted)
{
    char cases[32], equal[32], wrong[32];
    if (r->why[0]) {
        printf("%-26s %s\n", r->unit->name, r->why);
        return;
    }
    printf("%-26s %-14s %15s %15s %12s  %s\n", r->unit->name, r->claim.preset, app_count(cases, sizeof cases, r->cases),
           app_count(equal, sizeof equal, r->equal), app_count(wrong, sizeof wrong, r->cases - r->equal),
           r->claim.source);
    for (int i = 0; i < gpu_kinds(); i++)
        if (r->wrong[i])
            printf("  differences in \"%s\": %s\n", gpu_kind_name(i), app_count(wrong, sizeof wrong, r->wrong[i]));
    if (r->cases < wanted) printf("  the time was over before %s cases\n", app_count(cases, sizeof cases, wanted));
}

static bool wanted(const options *o, const gpu_unit *u, const gpu_claim *claim)
{
    if (o->only && !strstr(u->name, o->only)) return false;
    return claim->claimed || o->all;
}

static int choose(const options *o, int capability, result *r)
{
    int count = 0;
    for (int i = 0; gpu_unit_at(i) && count < MOST_UNITS; i++) {
        r[count].unit = gpu_unit_at(i);
        if (!gpu_claim_of(r[count].unit, capability, &r[count].claim)) continue;
        if (wanted(o, r[count].unit, &r[count].claim)) count++;
    }
    return count;
}

/* Is there any preset for such a chip? */
static bool known(int capability)
{
    gpu_claim claim;
    for (int i = 0; gpu_unit_at(i); i++)
        if (gpu_claim_of(gpu_unit_at(i), capability, &claim)) return true;
    return false;
}

/* The device, and every instruction in turn; one that fails does not stop the others. */
static int ask_all(gpu_device *g, const options *o, report *all)
{
    const bool quiet = o->save && strcmp(o->save, "-") == 0;
    const double start = app_now();
    int wrong = 0, failed = 0;
    if (!quiet)
        printf("%-26s %-14s %15s %15s %12s  %s\n", "instruction", "preset", "cases", "equal", "different", "preset by");
    for (int i = 0; i < all->count; i++) {
        result *r = &all->result[i];
        const double now = app_now(), left = start + (double)o->seconds - now;
        const double until = o->seconds ? now + left / (all->count - i) : now + 1e9;
        if (!ask_batches(g, o, until, r)) {
            char why[APP_WHY];
            failed++;
            if (!gpu_renew(g, why)) (void)app_complain(APP_USAGE, "after an error: %s", why);
        }
        r->seconds = app_now() - now;
        wrong += r->equal < r->cases;
        app_progress_done();
        if (!quiet) print_result(r, o->cases);
        (void)fflush(stdout);
    }
    return wrong ? APP_FAILED : failed ? APP_USAGE : APP_OK;
}

static int check(const options *o)
{
    static result results[MOST_UNITS];
    static gpu_device g;
    char why[APP_WHY], driver[96];
    app_output output[] = { { .flag = "--save", .path = o->save, .write = write_csv } };
    if (app_open_outputs(output, 1) != APP_OK) return APP_USAGE;
    report all = { &g, o, results, 0 };
    int status = APP_USAGE;
    if (!gpu_open(&g, o->device, why)) {
        status = app_complain(g.none ? NO_GPU : APP_USAGE, "%s", why);
    } else if ((all.count = choose(o, g.capability, results)) == 0) {
        status = app_complain(known(g.capability) ? APP_USAGE : NO_GPU,
                              "no instruction of the %s (compute capability %d.%d) is %s; --list prints them", g.name,
                              g.capability / 10, g.capability % 10, known(g.capability) ? "asked for" : "known here");
    } else {
        describe_driver(&g, driver, sizeof driver);
        if (!app_output_taken(output, 1))
            printf("%s, compute capability %d.%d, driver %s; seed %llu\n", g.name, g.capability / 10, g.capability % 10,
                   driver, (unsigned long long)o->seed);
        status = ask_all(&g, o, &all);
        if (app_write_outputs(output, 1, &all) != APP_OK) status = APP_USAGE;
    }
    app_discard_outputs(output, 1);
    gpu_close(&g);
    return status;
}

/* ---- what needs no device ---- */

static int list(const options *o)
{
    int count = 0;
    for (int i = 0; gpu_unit_at(i); i++) {
        const gpu_unit *u = gpu_unit_at(i);
        gpu_claim claim;
        if (o->only && !strstr(u->name, o->only)) continue;
        if (o->capability && !gpu_claim_of(u, o->capability, &claim)) continue;
        count++;
        if (o->capability)
            printf("%-26s %-14s %-4s %s\n", u->name, claim.preset, claim.claimed ? "yes" : "no", claim.source);
        else
            printf("%-26s %-8s PTX %s  %s\n", u->name, u->target, u->version, u->instruction);
    }
    if (count) return APP_OK;
    return app_complain(APP_USAGE, "no instruction has such a name or such a chip; --list prints them");
}

static int print_ptx(const char *name)
{
    char text[GPU_PTX];
    for (int i = 0; gpu_unit_at(i); i++) {
        if (strcmp(gpu_unit_at(i)->name, name) != 0) continue;
        gpu_ptx(gpu_unit_at(i), text);
        fputs(text, stdout);
        return APP_OK;
    }
    return app_complain(APP_USAGE, "--ptx %s: no instruction has this name; --list prints them", name);
}

int app_run(int argc, char **argv)
{
    options o = { .cases = 100000000, .seed = 1 };
    const int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (o.capability && !o.list) return app_complain(APP_USAGE, "--capability goes with --list");
    return o.ptx ? print_ptx(o.ptx) : o.list ? list(&o) : check(&o);
}

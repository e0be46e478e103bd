/* report.c - what a run found, for people and as JSON and CSV.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <math.h>
#include <string.h>

static const struct {
    trn_generation generation;
    const char *name;
    int bit;
} generations[KERNEL_GENERATIONS] = { { TRN_TRAINIUM1, "trn1", KERNEL_TRN1 },
                                      { TRN_TRAINIUM2, "trn2", KERNEL_TRN2 },
                                      { TRN_TRAINIUM3, "trn3", KERNEL_TRN3 } };

const char *kernel_generation_name(trn_generation generation)
{
    for (int i = 0; i < KERNEL_GENERATIONS; i++)
        if (generations[i].generation == generation) return generations[i].name;
    return "trn2";
}

int kernel_generation_bit(trn_generation generation)
{
    for (int i = 0; i < KERNEL_GENERATIONS; i++)
        if (generations[i].generation == generation) return generations[i].bit;
    return 0;
}

static bool expected_legal(const kernel_run *r)
{
    return r->kernel->generations & kernel_generation_bit(r->generation);
}

static double decibels(double signal, double noise) { return noise > 0 ? 10 * log10(signal / noise) : HUGE_VAL; }

static double expected_noise(const kernel_run *r)
{
    double sum = 0;
    for (int s = 0; s < NUM_SOURCES; s++) sum += r->result.expected[s];
    return sum;
}

/* Roundings of random numbers are random, so the noise is known too: there it may be 1 dB more than is expected,
 * which a mistake hides in less easily than in the sum of all that could happen. */
static bool noisy(const kernel_run *r)
{
    return !r->input && r->result.elements >= 1000 && decibels(r->result.noise, expected_noise(r)) > 1;
}

bool kernel_passed(const kernel_run *r)
{
    return r->result.legal == expected_legal(r) && (!r->result.legal || (r->result.worst <= 1 && !noisy(r)));
}

/* ---- the line that explains ---- */

/* The next smaller share than `below`, as a source; -1 when none is left that counts. */
static int next_source(const kernel_run *r, const bool *named)
{
    int best = -1;
    for (int s = 0; s < NUM_SOURCES; s++)
        if (!named[s] && (best < 0 || r->result.expected[s] > r->result.expected[best])) best = s;
    return best;
}

static const char *source_name(const kernel_run *r, int s)
{
    return r->kernel->source[s] ? r->kernel->source[s] : "other roundings";
}

/* Whose share is 1 % or more, and how far below the output the next one is. */
static void explain(char *text, size_t size, const kernel_run *r)
{
    const kernel_result *k = &r->result;
    const double all = expected_noise(r);
    bool named[NUM_SOURCES] = { false };
    size_t used = 0;
    int s = next_source(r, named);
    snprintf(text, size, "none: every operation is exact");
    for (; s >= 0 && k->expected[s] > 0 && k->expected[s] >= 0.01 * all && used < size; s = next_source(r, named)) {
        named[s] = true;
        used += (size_t)snprintf(text + used, size - used, "%s%.0f %% %s", used ? ", " : "", 100 * k->expected[s] / all,
                                 source_name(r, s));
    }
    if (s >= 0 && k->expected[s] > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used, " (next: %s, at %.0f dB)", source_name(r, s),
                                 decibels(k->signal, k->expected[s]));
    if (k->max_ulp > 100 && used < size) /* ulps of a number near zero say little of the kernel */
        snprintf(text + used, size - used, "; most ulps where the result is %.2g", k->max_ulp_at);
}

/* ---- the table ---- */

static void size_text(char *text, size_t size, const kernel_run *r)
{
    size_t used = 0;
    for (int i = 0; i < KERNEL_SIZES && r->kernel->size[i].name; i++)
        used += (size_t)snprintf(text + used, size - used, i ? "x%lld" : "%lld", (long long)r->size[i]);
}

void report_table_head(FILE *out)
{
    fprintf(out, "%-15s  %-4s  %-11s  %7s  %7s  %8s  %9s  %8s  %8s  %7s  %7s  %7s  %7s  %7s  %8s\n", "kernel", "on",
            "size", "max ulp", "SQNR dB", "expected", "max error", "of bound", "SBUF KiB", "PSUM", "TensorE", "VectorE",
            "ScalarE", "GpSimdE", "time us");
}

void report_table_run(FILE *out, const kernel_run *r)
{
    const kernel_result *k = &r->result;
    char size[64], why[512];
    size_text(size, sizeof size, r);
    fprintf(out, "%-15s  %-4s  %-11s  ", r->kernel->name, kernel_generation_name(r->generation), size);
    if (!k->legal) {
        fprintf(out, "%s: %s\n",
                !expected_legal(r)        ? "not legal"
                : k->status == TRN_ELIMIT ? "does not fit"
                                          : "FAILED",
                k->why);
        return;
    }
    const trn_core_engine_report *e = k->report.engine;
    fprintf(out, "%7.3g  %7.2f  %8.2f  %9.2e  %8.3f  ", k->max_ulp, decibels(k->signal, k->noise),
            decibels(k->signal, expected_noise(r)), k->max_error, k->worst);
    fprintf(out, "%8.0f  %7.0f  %7.0f  %7.0f  %7.0f  %7.0f  %8.2f\n", (double)k->report.sbuf_high_water / 1024,
            (double)k->report.psum_high_water / 1024, e[TRN_ENGINE_TENSOR].cycles, e[TRN_ENGINE_VECTOR].cycles,
            e[TRN_ENGINE_SCALAR].cycles, e[TRN_ENGINE_GPSIMD].cycles, 1e6 * k->report.time_s);
    explain(why, sizeof why, r);
    fprintf(out, "%-15s  %-4s  bound: %s; error: %s%s\n", "", "", k->report.bound_text, why,
            k->worst > 1 ? "; FAILED: it is beyond its bound"
            : noisy(r)   ? "; FAILED: more noise than roundings make"
                         : "");
    if (!expected_legal(r)) fprintf(out, "%-15s  %-4s  FAILED: this generation should have refused it\n", "", "");
}

void report_table_end(FILE *out)
{
    fputs("\nSQNR of the output against binary64; expected: as if every rounding were random; 1 dB less fails "
          "(random inputs).\n"
          "of bound: the largest error over what its roundings can make of it; above 1 fails. Engines: cycles at "
          "work. Modelled, not measured on a chip.\n",
          out);
}

/* ---- JSON and CSV ---- */

static void json_number(FILE *out, const char *name, double value)
{
    fprintf(out, isfinite(value) ? ", \"%s\": %.9g" : ", \"%s\": null", name, value);
}

static void json_engines(FILE *out, const kernel_run *r)
{
    fputs(", \"engines\": [", out);
    for (int e = TRN_ENGINE_TENSOR; e < TRN_ENGINE_COUNT; e++) {
        const trn_core_engine_report *one = &r->result.report.engine[e];
        fprintf(out, "%s{\"name\": \"%s\", \"instructions\": %lld", e > TRN_ENGINE_TENSOR ? ", " : "",
                trn_engine_name((trn_engine)e), (long long)one->instructions);
        json_number(out, "cycles", one->cycles);
        json_number(out, "busy_s", one->busy_s);
        json_number(out, "share", one->share);
        fputc('}', out);
    }
    fputc(']', out);
}

static void json_errors(FILE *out, const kernel_run *r)
{
    const kernel_result *k = &r->result;
    char why[512];
    json_number(out, "max_ulp", k->max_ulp);
    json_number(out, "sqnr_db", decibels(k->signal, k->noise));
    json_number(out, "expected_sqnr_db", decibels(k->signal, expected_noise(r)));
    json_number(out, "max_error", k->max_error);
    json_number(out, "share_of_bound", k->worst);
    explain(why, sizeof why, r);
    fputs(", \"error\": ", out);
    app_print_json_string(out, why);
}

static void json_run(FILE *out, const kernel_run *r, bool first)
{
    const kernel_result *k = &r->result;
    fprintf(out, "%s\n  {\"kernel\": \"%s\", \"generation\": \"%s\"", first ? "" : ",", r->kernel->name,
            kernel_generation_name(r->generation));
    for (int i = 0; i < KERNEL_SIZES && r->kernel->size[i].name; i++)
        fprintf(out, ", \"%s\": %lld", r->kernel->size[i].name, (long long)r->size[i]);
    fprintf(out, ", \"legal\": %s, \"passed\": %s", k->legal ? "true" : "false", kernel_passed(r) ? "true" : "false");
    if (k->legal) {
        json_errors(out, r);
        fprintf(out, ", \"sbuf_bytes\": %lld, \"psum_bytes\": %lld", (long long)k->report.sbuf_high_water,
                (long long)k->report.psum_high_water);
        json_number(out, "time_s", k->report.time_s);
        json_number(out, "dma_bytes", k->report.dma_bytes);
        fprintf(out, ", \"bound\": \"%s\"", trn_engine_name(k->report.bound));
        json_engines(out, r);
    } else {
        fputs(", \"why\": ", out);
        app_print_json_string(out, k->why);
    }
    fputc('}', out);
}

static void csv_run(FILE *out, const kernel_run *r)
{
    const kernel_result *k = &r->result;
    char size[64];
    size_text(size, sizeof size, r);
    fprintf(out, "%s,%s,%s,%s", r->kernel->name, kernel_generation_name(r->generation), size,
            kernel_passed(r) ? "yes" : "no");
    if (k->legal) {
        fprintf(out, ",%.6g,%.4f,%.4f,%.6g,%.6g,%lld,%lld", k->max_ulp, decibels(k->signal, k->noise),
                decibels(k->signal, expected_noise(r)), k->max_error, k->worst, (long long)k->report.sbuf_high_water,
                (long long)k->report.psum_high_water);
        for (int e = TRN_ENGINE_TENSOR; e < TRN_ENGINE_COUNT; e++) fprintf(out, ",%.9g", k->report.engine[e].cycles);
        fprintf(out, ",%.9g,%s,\n", k->report.time_s, trn_engine_name(k->report.bound));
    } else {
        fputs(",,,,,,,,,,,,,,,", out);
        app_print_csv_text(out, k->why);
        fputc('\n', out);
    }
}

void report_json(FILE *out, const void *report)
{
    const kernel_report *all = (const kernel_report *)report;
    fputs("{\"program\": \"kernels\", \"version\": \"" TRN_VERSION "\", \"runs\": [", out);
    for (int i = 0; i < all->runs; i++) json_run(out, &all->run[i], i == 0);
    fprintf(out, "\n], \"passed\": %s}\n", all->passed ? "true" : "false");
}

void report_csv(FILE *out, const void *report)
{
    const kernel_report *all = (const kernel_report *)report;
    fputs("kernel,generation,size,passed,max_ulp,sqnr_db,expected_sqnr_db,max_error,share_of_bound,sbuf_bytes,"
          "psum_bytes,tensor_cycles,vector_cycles,scalar_cycles,gpsimd_cycles,dma_cycles,time_s,bound,why\n",
          out);
    for (int i = 0; i < all->runs; i++) csv_run(out, &all->run[i]);
}

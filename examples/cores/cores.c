/* cores.c - which cores, inputs, digests, errors; and what is told of a run.
 * SPDX-License-Identifier: MIT
 */
#include "cores.h"

#include <math.h>
#include <string.h>

enum { TRACE_EVENTS = 1 << 20, MOST_CHIPS = 4096 };

/* ---- which cores ---- */

bool cores_take_system(cores_options *o, const char *value, char *why)
{
    app_offer_systems();
    o->system = trn_system_from_name(value);
    return o->system != TRN_SYSTEM_COUNT || app_refuse(why, "no such system, such as trn2.48xlarge");
}

bool cores_resolve(cores_options *o, char *why)
{
    const trn_cores_exchange *x = cores_exchange();
    const trn_topology net = trn_topology_of(o->system);
    const trn_system_spec *spec = trn_system_spec_of(o->system);
    const int cores = spec->server->chip->cores;
    if (x && x->process) o->json = o->trace = NULL; /* the first process writes */
    if (!o->chips) o->chips = o->ranks && o->ranks < net.chips ? o->ranks : net.chips;
    if (o->chips > net.chips)
        return app_fail(why, "--chips %d: %s has %d", o->chips, trn_system_name(o->system), net.chips);
    if (!o->ranks) o->ranks = o->chips;
    if (o->ranks % o->chips || o->ranks / o->chips > cores)
        return app_fail(why, "--ranks %d: %d chips have 1 to %d each, all as many", o->ranks, o->chips, cores);
    return true;
}

/* ---- a run ---- */

int cores_start(cores_run *run, const cores_options *o, trn_cores_kernel *kernel, void *user)
{
    static trn_topology net;
    static int order[MOST_CHIPS];
    memset(run, 0, sizeof *run);
    net = trn_topology_of(o->system);
    run->args.net = &net;
    run->args.core.generation = trn_system_spec_of(o->system)->server->chip->core->generation;
    run->args.core.seed = o->seed;
    run->args.ranks = o->ranks;
    run->args.cores_per_chip = o->ranks / o->chips;
    run->args.threads = o->threads;
    run->args.exchange = cores_exchange();
    if (o->cycle && o->chips == net.chips && net.chips <= MOST_CHIPS && trn_topology_cycles(&net, order, 1))
        run->args.chips = order;
    if (o->trace) {
        run->trace.capacity = TRACE_EVENTS;
        run->trace.event = (trn_trace_event *)app_memory(TRACE_EVENTS, sizeof *run->trace.event);
        run->args.trace = &run->trace;
    }
    const double start = app_now();
    trn_status status = trn_cores_begin(&run->cores, &run->args);
    if (status) {
        free(run->trace.event);
        return app_complain(APP_USAGE, "%s", run->cores.failure.text);
    }
    status = trn_cores_run(&run->cores, kernel, user);
    run->host_s = app_now() - start;
    trn_cores_report_of(&run->cores, &run->report);
    if (!status && run->trace.lost) {
        app_complain(APP_USAGE, "the timeline has more than %d instructions; take smaller sizes", TRACE_EVENTS);
    } else if (!status) {
        return APP_OK;
    } else {
        app_complain(APP_USAGE, "%s", run->cores.failure.text);
    }
    cores_finish(run);
    return APP_USAGE;
}

void cores_finish(cores_run *run)
{
    trn_cores_end(&run->cores);
    free(run->trace.event);
    run->trace.event = NULL;
}

static void write_text(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

void cores_write_trace(FILE *out, const void *run)
{
    trn_trace trace = ((const cores_run *)run)->trace;
    trn_trace_json(&trace, write_text, out);
}

static const struct {
    trn_engine engine;
    const char *name;
} engine_row[] = { { TRN_ENGINE_TENSOR, "TensorE" },
                   { TRN_ENGINE_VECTOR, "VectorE" },
                   { TRN_ENGINE_SCALAR, "ScalarE" },
                   { TRN_ENGINE_GPSIMD, "GpSimdE" },
                   { TRN_ENGINE_DMA, "DMA" } };
enum { ENGINES = sizeof engine_row / sizeof engine_row[0] };

void cores_print_times(FILE *out, const cores_run *run)
{
    const trn_cores_report *r = &run->report;
    fprintf(out, "time        %.1f us: %s\n", 1e6 * r->time_s, r->bound_text);
    fprintf(out, "busy        ");
    for (int i = 0; i < ENGINES; i++)
        fprintf(out, "%s %.1f %%, ", engine_row[i].name, 100 * r->share[engine_row[i].engine]);
    fprintf(out, "collectives %.1f %%; ranks wait %.1f us for others\n", 100 * r->collective_share, 1e6 * r->waited_s);
    fprintf(out, "memory      SBUF %lld KiB, PSUM %lld KiB of the fullest rank; %lld instructions in %lld rounds\n",
            (long long)(r->sbuf_high_water / 1024), (long long)(r->psum_high_water / 1024), (long long)r->instructions,
            (long long)r->rounds);
}

void cores_json_times(FILE *out, const cores_run *run)
{
    const trn_cores_report *r = &run->report;
    fprintf(out, "  \"time_s\": %.9g,\n  \"collective_share\": %.6g,\n  \"waited_s\": %.9g,\n  \"share\": {", r->time_s,
            r->collective_share, r->waited_s);
    for (int i = 0; i < ENGINES; i++)
        fprintf(out, "%s\"%s\": %.6g", i ? ", " : "", engine_row[i].name, r->share[engine_row[i].engine]);
    fprintf(out, "},\n  \"instructions\": %lld,\n  \"rounds\": %lld,\n", (long long)r->instructions,
            (long long)r->rounds);
}

/* ---- tensors of the host ---- */

trn_tensor cores_matrix(trn_format format, int64_t rows, int64_t columns)
{
    void *data = app_memory((size_t)(rows * columns) + 64, trn_format_bytes(format));
    return trn_tensor_2d(format, data, rows, columns);
}

void cores_free_matrix(trn_tensor t) { free(t.data); }

/* As on any machine: the sum of eight uniform numbers of 16 bits, which is nearly normal and needs no libm. */
static double normal(uint64_t seed, uint64_t stream, uint64_t i)
{
    double sum = 0;
    for (uint64_t k = 0; k < 4; k++) {
        const uint32_t word = trn_random_u32(seed, stream, 4 * i + k);
        sum += (word & 0xffff) + (word >> 16);
    }
    return (sum / 65536 - 4) * 1.2247448713915890;
}

void cores_fill(trn_tensor t, uint64_t seed, uint64_t stream, double mean, double sigma)
{
    const int64_t n = trn_tensor_elements(t);
    const size_t bytes = trn_format_bytes(t.format);
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)(mean + sigma * normal(seed, stream, (uint64_t)i));
        const uint32_t code = trn_encode(t.format, value, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        memcpy((char *)t.data + (size_t)i * bytes, &code, bytes); /* little endian */
    }
}

void cores_values(trn_tensor t, double *value)
{
    const int64_t n = trn_tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        float f;
        uint16_t half;
        if (t.format == TRN_BF16) {
            memcpy(&half, (const char *)t.data + 2 * i, sizeof half);
            f = trn_decode(TRN_BF16, half);
        } else {
            memcpy(&f, (const char *)t.data + 4 * i, sizeof f);
        }
        value[i] = (double)f;
    }
}

uint64_t cores_digest(uint64_t digest, trn_tensor t)
{
    const unsigned char *at = (const unsigned char *)t.data;
    const size_t bytes = (size_t)trn_tensor_elements(t) * trn_format_bytes(t.format);
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ at[i]) * 0x100000001b3u;
    return digest;
}

uint64_t cores_digest_of(const uint64_t *digest, int count)
{
    uint64_t all = CORES_DIGEST;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 64; k += 8) all = (all ^ (digest[i] >> k & 0xff)) * 0x100000001b3u;
    return all;
}

/* ---- processes ---- */

bool cores_speaks(const cores_run *run) { return run->cores.first == 0; }

/* The first chip of a process: trn_cores_begin shares them out so. */
static int64_t first_chip(int64_t chips, int process, int processes)
{
    return (chips * process + processes - 1) / processes;
}

void cores_share(const cores_run *run, uint64_t *number)
{
    const trn_cores_exchange *x = run->args.exchange;
    const trn_cores *c = &run->cores;
    const int chips = c->ranks / c->cores_per_chip;
    trn_error error = { TRN_OK, "" };
    if (!x || x->processes == 1) return;
    int64_t *counts = (int64_t *)app_memory((size_t)x->processes, sizeof *counts);
    uint64_t *all = (uint64_t *)app_memory((size_t)c->ranks, sizeof *all);
    for (int p = 0; p < x->processes; p++)
        counts[p] = (first_chip(chips, p + 1, x->processes) - first_chip(chips, p, x->processes)) * c->cores_per_chip *
                    (int64_t)sizeof *all;
    if (x->gather(x->user, number + c->first, (int64_t)c->here * (int64_t)sizeof *all, all, counts, &error))
        exit(app_complain(APP_USAGE, "%s", error.text));
    memcpy(number, all, (size_t)c->ranks * sizeof *all);
    free(counts);
    free(all);
}

/* ---- errors ---- */

double cores_round(double x, bool rounds)
{
    const float f = (float)x;
    uint32_t bits;
    float out;
    if (!rounds) return x;
    memcpy(&bits, &f, 4);
    bits += 0x7fffu + (bits >> 16 & 1u);
    bits &= 0xffff0000u;
    memcpy(&out, &bits, 4);
    return (double)out;
}

void cores_compare(cores_errors *e, const double *got, const double *exact, const double *rounded, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs(got[i] - exact[i]), expected = fabs(rounded[i] - exact[i]);
        const double size = error == error ? error : HUGE_VAL;
        e->signal += exact[i] * exact[i];
        e->noise += size * size;
        e->expected_noise += expected * expected;
        e->largest = fmax(e->largest, size);
        e->expected_largest = fmax(e->expected_largest, expected);
    }
    e->elements += n;
}

double cores_rms(const cores_errors *e) { return sqrt(e->noise / e->signal); }
double cores_largest(const cores_errors *e) { return e->largest / sqrt(e->signal / (double)e->elements); }

static double margin(const cores_errors *e) { return 4 / sqrt((double)(e->roundings ? e->roundings : e->elements)); }

double cores_rms_most(const cores_errors *e) { return (1.25 + margin(e)) * sqrt(e->expected_noise / e->signal); }

double cores_largest_most(const cores_errors *e)
{
    return (2 + 2 * margin(e)) * e->expected_largest / sqrt(e->signal / (double)e->elements);
}

/* Of no signal there is no error either. */
bool cores_passed(const cores_errors *e)
{
    if (!(e->signal > 0)) return e->noise <= 0;
    return cores_rms(e) <= cores_rms_most(e) && cores_largest(e) <= cores_largest_most(e);
}

void cores_print_errors(FILE *out, const cores_errors *e, int count)
{
    fprintf(out, "%-12s%10s %10s %10s %10s\n", "errors", "rms", "at most", "largest", "at most");
    for (int i = 0; i < count; i++)
        fprintf(out, "  %-10s%10.2e %10.2e %10.2e %10.2e%s\n", e[i].name, cores_rms(&e[i]), cores_rms_most(&e[i]),
                cores_largest(&e[i]), cores_largest_most(&e[i]), cores_passed(&e[i]) ? "" : "  FAILED");
}

void cores_json_errors(FILE *out, const cores_errors *e, int count)
{
    fprintf(out, "  \"errors\": [");
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s\n    {\"name\": \"%s\", \"rms\": ", i ? "," : "", e[i].name);
        app_print_json_number(out, cores_rms(&e[i]));
        fprintf(out, ", \"rms_at_most\": %.6g, \"largest\": ", cores_rms_most(&e[i]));
        app_print_json_number(out, cores_largest(&e[i]));
        fprintf(out, ", \"largest_at_most\": %.6g, \"passed\": %s}", cores_largest_most(&e[i]),
                cores_passed(&e[i]) ? "true" : "false");
    }
    fprintf(out, "],\n");
}

/* moe.c - a mixture of experts over many NeuronCores, an expert on each: tokens travel there and back by all_to_all_v.
 * SPDX-License-Identifier: MIT
 *
 *     moe_kernel.c   what each core does        moe.c   the program, and what it should give
 */
#define _POSIX_C_SOURCE 200809L

#include "moe.h"

#include <math.h>
#include <string.h>

const char app_name[] = "moe";

/* ---- options ---- */

typedef struct options {
    cores_options cores;
    int64_t tokens, width, ffn, top;
} options;

CORES_TAKE(options, cores)

static const app_option option[] = {
    CORES_OPTIONS(options, cores),
    { "--tokens", "N", "on each rank (default: 64)", APP_TAKES_INT64(options, tokens, 1, 2048) },
    { "--width", "N", "of the model (default: 128)", APP_TAKES_INT64(options, width, 1, 8192) },
    { "--ffn", "N", "hidden units of an expert (default: 128)", APP_TAKES_INT64(options, ffn, 1, 1 << 16) },
    { "--top", "N", "experts of a token, up to 8 (default: 2)", APP_TAKES_INT64(options, top, 1, MOE_TOP) },
};

static const app_command command = {
    "moe",
    "usage: moe [options]",
    "Runs a mixture of experts on many simulated NeuronCores, an expert on each: a router, tokens to their experts by\n"
    "all_to_all_v, SwiGLU, back, and the weighted sum. Prints a digest of all bits, errors against binary64, and "
    "times.",
    option,
    sizeof option / sizeof option[0],
    "The default system is trn2-ultraserver.\n"
    "Exit status: 0 ok, 1 an error is too large or a choice is wrong, 2 bad usage, or sizes that do not fit.",
    NULL,
};

/* What counts elements is binary32 on the cores. */
static bool size_up(const options *o, moe *m, char *why)
{
    const int64_t most = (int64_t)o->cores.ranks * o->tokens * o->width;
    *m = (moe){ .tokens = o->tokens, .width = o->width, .ffn = o->ffn, .top = o->top, .ranks = o->cores.ranks };
    if (o->top > o->cores.ranks)
        return app_fail(why, "--top %lld: there are %d experts", (long long)o->top, o->cores.ranks);
    return most <= 1 << 24 ||
           app_fail(why, "%d ranks of %lld tokens of width %lld are more than 2^24 numbers, which a core's counts hold",
                    o->cores.ranks, (long long)o->tokens, (long long)o->width);
}

/* ---- memory and inputs ---- */

#define MOE_ROW(name, format, rows, columns) { #name, format },
const moe_row moe_table[MOE_COUNT] = { MOE_TENSORS(MOE_ROW) };

static void begin(moe *m, uint64_t seed)
{
    const int64_t T = m->tokens, D = m->width, F = m->ffn, K = m->top, R = m->ranks;
#define MOE_SHAPE(name, format, rows, columns) { rows, columns },
    const int64_t shape[MOE_COUNT][2] = { MOE_TENSORS(MOE_SHAPE) };
    m->router = cores_matrix(TRN_BF16, D, R);
    cores_fill(m->router, seed, 0, 0, 1 / sqrt((double)D));
    m->rank = (moe_rank *)app_memory((size_t)m->ranks, sizeof *m->rank);
    for (int r = 0; r < m->ranks; r++) {
        trn_tensor *t = m->rank[r].t;
        for (int i = 0; i < MOE_COUNT; i++) t[i] = cores_matrix(moe_table[i].format, shape[i][0], shape[i][1]);
        cores_fill(t[MOE_x], seed, (uint64_t)(3 * r + 1), 0, 1);
        cores_fill(t[MOE_wgu], seed, (uint64_t)(3 * r + 2), 0, 1 / sqrt((double)D));
        cores_fill(t[MOE_wd], seed, (uint64_t)(3 * r + 3), 0, 1 / sqrt((double)F));
    }
}

static void end(moe *m)
{
    cores_free_matrix(m->router);
    for (int r = 0; r < m->ranks; r++)
        for (int i = 0; i < MOE_COUNT; i++) cores_free_matrix(m->rank[r].t[i]);
    free(m->rank);
}

/* ---- binary64 ---- */

typedef struct check {
    const moe *m;
    double *x, *router, *logit, *gu, *hidden, *y, *exact, *rounded, *got; /* of a token; router, got: all */
    double **wgu, **wd;                                                   /* by expert */
    cores_errors *errors;
    int64_t wrong; /* choices */
} check;

/* to += weight * expert(x). */
static void expert(const check *k, double *to, int64_t e, double weight, bool rounds)
{
    const int64_t D = k->m->width, F = k->m->ffn;
    memset(k->gu, 0, (size_t)(2 * F) * sizeof(double));
    memset(k->y, 0, (size_t)D * sizeof(double));
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < 2 * F; j++) k->gu[j] += k->x[i] * k->wgu[e][i * 2 * F + j];
    for (int64_t j = 0; j < F; j++) {
        const double g = cores_round(k->gu[j], rounds), u = cores_round(k->gu[F + j], rounds);
        k->hidden[j] = cores_round(g / (1 + exp(-g)) * u, rounds);
    }
    for (int64_t j = 0; j < F; j++)
        for (int64_t i = 0; i < D; i++) k->y[i] += k->hidden[j] * k->wd[e][j * D + i];
    for (int64_t i = 0; i < D; i++) to[i] += weight * cores_round(k->y[i], rounds);
}

/* The chosen experts are the best ones, but for what binary32 sums may do to two that are nearly alike. */
static void check_choice(check *k, const int64_t *choice)
{
    const int64_t n = k->m->ranks, top = k->m->top;
    double least = HUGE_VAL;
    for (int64_t i = 0; i < top; i++) least = fmin(least, k->logit[choice[i]]);
    for (int64_t i = 0; i < top; i++)
        for (int64_t j = 0; j < i; j++) k->wrong += choice[i] == choice[j];
    for (int64_t e = 0; e < n; e++) {
        bool chosen = false;
        for (int64_t i = 0; i < top; i++) chosen = chosen || choice[i] == e;
        if (!chosen && k->logit[e] > least + 0x1p-18) k->wrong++;
    }
}

static void check_token(check *k, int rank, int64_t t)
{
    const moe *m = k->m;
    const int64_t D = m->width, R = m->ranks;
    const uint32_t *place = (const uint32_t *)m->rank[rank].t[MOE_places].data + t * m->top;
    int64_t choice[MOE_TOP];
    double weight[MOE_TOP], most = -HUGE_VAL, sum = 0;
    memset(k->logit, 0, (size_t)R * sizeof(double));
    for (int64_t i = 0; i < D; i++)
        for (int64_t e = 0; e < R; e++) k->logit[e] += k->x[i] * k->router[i * R + e];
    for (int64_t i = 0; i < m->top; i++) choice[i] = (int64_t)place[i] / m->tokens;
    check_choice(k, choice);
    for (int64_t i = 0; i < m->top; i++) most = fmax(most, k->logit[choice[i]]);
    for (int64_t i = 0; i < m->top; i++) sum += weight[i] = exp(k->logit[choice[i]] - most);
    memset(k->exact, 0, (size_t)D * sizeof(double));
    memset(k->rounded, 0, (size_t)D * sizeof(double));
    for (int64_t i = 0; i < m->top; i++) {
        expert(k, k->exact, choice[i], weight[i] / sum, false);
        expert(k, k->rounded, choice[i], weight[i] / sum, true);
    }
    for (int64_t i = 0; i < D; i++) k->rounded[i] = cores_round(k->rounded[i], true);
    cores_compare(k->errors, k->got + t * D, k->exact, k->rounded, D);
}

static double *values_of(trn_tensor t)
{
    double *v = (double *)app_memory((size_t)trn_tensor_elements(t), sizeof *v);
    cores_values(t, v);
    return v;
}

/* How many choices are wrong. */
static int64_t check_all(const moe *m, const trn_cores *c, cores_errors *errors)
{
    const size_t T = (size_t)m->tokens, D = (size_t)m->width, F = (size_t)m->ffn, R = (size_t)m->ranks;
    double *memory = (double *)app_memory(R + 3 * F + 3 * D + T * D, sizeof *memory);
    check k = { .m = m,
                .router = values_of(m->router),
                .logit = memory,
                .gu = memory + R,
                .hidden = memory + R + 2 * F,
                .y = memory + R + 3 * F,
                .exact = memory + R + 3 * F + D,
                .rounded = memory + R + 3 * F + 2 * D,
                .got = memory + R + 3 * F + 3 * D,
                .wgu = (double **)app_memory(R, sizeof *k.wgu),
                .wd = (double **)app_memory(R, sizeof *k.wd),
                .errors = errors };
    for (size_t r = 0; r < R; r++) k.wgu[r] = values_of(m->rank[r].t[MOE_wgu]);
    for (size_t r = 0; r < R; r++) k.wd[r] = values_of(m->rank[r].t[MOE_wd]);
    for (int r = c->first; r < c->first + c->here; r++) {
        double *x = values_of(m->rank[r].t[MOE_x]);
        cores_values(m->rank[r].t[MOE_y], k.got);
        for (int64_t t = 0; t < m->tokens; t++) {
            k.x = x + t * m->width;
            check_token(&k, r, t);
        }
        free(x);
    }
    for (size_t r = 0; r < R; r++) free(k.wgu[r]), free(k.wd[r]);
    free(k.wgu);
    free(k.wd);
    free(k.router);
    free(memory);
    return k.wrong;
}

/* ---- the program ---- */

typedef struct result {
    const options *o;
    const moe *m;
    cores_run run;
    uint64_t digest;
    cores_errors error;
    int64_t wrong, most; /* choices; tokens of the busiest expert */
    bool checked;
} result;

static void look(result *r)
{
    const int n = r->m->ranks;
    uint64_t *all = (uint64_t *)app_memory(2 * (size_t)n, sizeof *all), *tokens = all + n;
    for (int i = 0; i < n; i++) {
        const trn_tensor *t = r->m->rank[i].t;
        all[i] = cores_digest(cores_digest(CORES_DIGEST, t[MOE_places]), t[MOE_y]);
        tokens[i] = (uint64_t)r->m->rank[i].tokens;
    }
    cores_share(&r->run, all);
    cores_share(&r->run, tokens);
    for (int i = 0; i < n; i++) r->most = (int64_t)tokens[i] > r->most ? (int64_t)tokens[i] : r->most;
    r->digest = cores_digest_of(all, n);
    r->checked = !r->o->cores.no_check;
    r->error.name = "y";
    if (r->checked) r->wrong = check_all(r->m, &r->run.cores, &r->error);
    free(all);
}

static double mean_of(const result *r) { return (double)(r->m->tokens * r->m->top); }

static void print_text(FILE *out, const result *r)
{
    const moe *m = r->m;
    fprintf(out,
            "moe         %s, %d chips, %d ranks: %lld tokens on each, width %lld, ffn %lld, top %lld of %d experts\n",
            trn_system_name(r->o->cores.system), r->o->cores.chips, m->ranks, (long long)m->tokens, (long long)m->width,
            (long long)m->ffn, (long long)m->top, m->ranks);
    fprintf(out, "digest      %016llx\n", (unsigned long long)r->digest);
    fprintf(out, "experts     the busiest has %lld tokens, %.2f times the mean", (long long)r->most,
            (double)r->most / mean_of(r));
    if (r->checked) fprintf(out, "; %lld choices are wrong", (long long)r->wrong);
    fprintf(out, "\n");
    if (r->checked) cores_print_errors(out, &r->error, 1);
    cores_print_times(out, &r->run);
}

static void write_json(FILE *out, const void *context)
{
    const result *r = (const result *)context;
    const moe *m = r->m;
    fprintf(out, "{\n  \"system\": \"%s\",\n  \"chips\": %d,\n  \"ranks\": %d,\n", trn_system_name(r->o->cores.system),
            r->o->cores.chips, m->ranks);
    fprintf(out, "  \"tokens\": %lld,\n  \"width\": %lld,\n  \"ffn\": %lld,\n  \"top\": %lld,\n", (long long)m->tokens,
            (long long)m->width, (long long)m->ffn, (long long)m->top);
    cores_json_times(out, &r->run);
    if (r->checked) cores_json_errors(out, &r->error, 1);
    fprintf(out, "  \"most_tokens\": %lld,\n  \"wrong_choices\": %lld,\n  \"digest\": \"%016llx\"\n}\n",
            (long long)r->most, (long long)r->wrong, (unsigned long long)r->digest);
}

static void write_trace(FILE *out, const void *context) { cores_write_trace(out, &((const result *)context)->run); }

static int work(const options *o, moe *m)
{
    static result r;
    app_output output[] = { { .flag = "--json", .path = o->cores.json, .write = write_json },
                            { .flag = "--trace", .path = o->cores.trace, .write = write_trace } };
    r.o = o, r.m = m;
    if (app_open_outputs(output, 2) != APP_OK) return APP_USAGE;
    begin(m, o->cores.seed);
    int status = cores_start(&r.run, &o->cores, moe_kernel, m);
    if (status == APP_OK) {
        look(&r);
        if (r.wrong || (r.checked && !cores_passed(&r.error))) status = APP_FAILED;
        if (!app_output_taken(output, 2) && cores_speaks(&r.run)) print_text(stdout, &r);
        if (app_write_outputs(output, 2, &r) != APP_OK) status = APP_USAGE;
        cores_finish(&r.run);
    }
    app_discard_outputs(output, 2);
    end(m);
    return status;
}

int app_run(int argc, char **argv)
{
    options o = {
        .cores = { .system = TRN_TRN2_ULTRASERVER, .seed = 1 }, .tokens = 64, .width = 128, .ffn = 128, .top = 2
    };
    char why[APP_WHY];
    moe m;
    const int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (!cores_resolve(&o.cores, why) || !size_up(&o, &m, why)) return app_complain(APP_USAGE, "%s", why);
    return work(&o, &m);
}

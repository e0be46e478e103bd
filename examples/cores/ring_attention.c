/* ring_attention.c - attention over a sequence that is cut over many NeuronCores: keys and values go round a ring.
 * SPDX-License-Identifier: MIT
 *
 * Each rank keeps its queries. In every step it works on one block of keys and values, while collective_permute brings
 * the next one from the rank before; softmax is kept up to date as in flash attention (Liu et al. 2023). The program
 * runs it a second time without the overlap: then a number of the step's result goes along, so that nothing leaves
 * before the step is done.
 */
#define _POSIX_C_SOURCE 200809L

#include "attention.h"
#include "cores.h"

#include <math.h>
#include <string.h>

const char app_name[] = "ring_attention";

/* ---- options ---- */

typedef struct options {
    cores_options cores;
    int64_t tokens, heads, d; /* tokens: of a rank */
    double spread;
    bool causal;
} options;

CORES_TAKE(options, cores)

static const app_option option[] = {
    CORES_OPTIONS(options, cores),
    { "--tokens", "N", "on each rank (default: 64)", APP_TAKES_INT64(options, tokens, 1, 2048) },
    { "--heads", "N", "(default: 1)", APP_TAKES_INT64(options, heads, 1, 64) },
    { "--head", "N", "width of a head (default: 64)", APP_TAKES_INT64(options, d, 1, 128) },
    { "--spread", "X", "standard deviation of queries, and of scores (default: 1)",
      APP_TAKES_REAL(options, spread, 0, 1e3) },
    { "--causal", NULL, "no token sees what comes after it", APP_SETS(options, causal) },
};

static const app_command command = {
    "ring_attention",
    "usage: ring_attention [options]",
    "Runs attention over a sequence that is cut over many simulated NeuronCores, keys and values going round a ring,\n"
    "with and without overlap. Prints a digest of all bits, errors against binary64, and both times.",
    option,
    sizeof option / sizeof option[0],
    "The default system is trn2-ultraserver. --trace and --json show the run with the overlap.\n"
    "Exit status: 0 ok, 1 an error is too large or bits differ, 2 bad usage, or sizes that do not fit.",
    NULL,
};

/* ---- what a rank has in HBM ---- */

typedef struct ring_rank {
    trn_tensor q, out;     /* [tokens, heads d] */
    trn_tensor kv, hop[2]; /* [tokens + 1, 2 heads d]: keys, values, and a row for a number that goes along; what comes
                            * round takes turns */
} ring_rank;

typedef struct ring {
    int64_t tokens, heads, d;
    int ranks;
    bool causal, overlap;
    int (*pair)[2]; /* [ranks] */
    ring_rank *rank;
} ring;

/* ---- the kernel ---- */

typedef struct work {
    trn_core *c;
    const ring *r;
    sheet q, kv[2], acc, numbers, out; /* numbers: of each head -scale * the largest score so far, and the sum */
    trn_tensor qt, kt;                 /* [d, heads tokens], [d, tokens] */
    transposer transposes;
    pool scores, rows, probs, prob_ts, outputs, temps;
} work;

static work work_of(trn_core *c, const ring *r)
{
    work w = { .c = c, .r = r };
    const int64_t all = r->heads * r->d;
    w.q = sheet_of(c, "q", TRN_BF16, r->tokens, all);
    for (int i = 0; i < 2; i++) w.kv[i] = sheet_of(c, "kv", TRN_BF16, r->tokens, 2 * all);
    w.acc = sheet_of(c, "acc", TRN_F32, r->tokens, all);
    w.out = sheet_of(c, "out", TRN_BF16, r->tokens, all);
    w.numbers = sheet_of(c, "numbers", TRN_F32, r->tokens, 2 * r->heads);
    w.qt = trn_core_sbuf(c, "q transposed", TRN_BF16, r->d, r->heads * r->tokens);
    w.kt = trn_core_sbuf(c, "k transposed", TRN_BF16, r->d, r->tokens);
    w.transposes = transposer_of(c, TRN_BF16);
    w.scores = psum_pool(c, "scores", TRN_F32, BANK, 2);
    w.rows = sbuf_pool(c, "scores", TRN_F32, r->tokens, 2);
    w.probs = sbuf_pool(c, "probabilities", TRN_BF16, r->tokens, 2);
    w.prob_ts = sbuf_pool(c, "prob. transposed", TRN_BF16, TILE, 2);
    w.outputs = psum_pool(c, "outputs", TRN_F32, r->d, 2);
    w.temps = sbuf_pool(c, "temps", TRN_F32, 4, 2);
    return w;
}

static void transpose_head(work *w, trn_tensor dst, const sheet *from, int64_t head)
{
    for (int64_t t = 0; t < tiles_of(w->r->tokens); t++) {
        const trn_tensor part = sheet_part(from, t, head * w->r->d, w->r->d);
        transpose_tile(w->c, &w->transposes, columns_of(dst, TILE * t, part.shape[0]), part);
    }
}

static void begin(work *w, const ring_rank *own)
{
    trn_core *c = w->c;
    sheet_load(c, &w->q, own->q);
    for (int64_t h = 0; h < w->r->heads; h++)
        transpose_head(w, columns_of(w->qt, h * w->r->tokens, w->r->tokens), &w->q, h);
    nisa(memset, .dst = w->acc.all, .value = 0, .engine = TRN_ENGINE_GPSIMD);
    for (int64_t t = 0; t < tiles_of(w->r->tokens); t++)
        for (int64_t h = 0; h < w->r->heads; h++) {
            nisa(memset, .dst = sheet_part(&w->numbers, t, 2 * h, 1), .value = -MASKED);
            nisa(memset, .dst = sheet_part(&w->numbers, t, 2 * h + 1, 1), .value = 0);
        }
}

/* A tile of queries against keys [0, keys) of a block; the last ones of them are masked when it is their own block. */
static void step_tile(work *w, const sheet *kv, int64_t head, int64_t tile, int64_t keys, bool own)
{
    trn_core *c = w->c;
    const int64_t d = w->r->d, queries = least(TILE, w->r->tokens - TILE * tile);
    const float scale = attention_scale(d);
    const trn_tensor qt = columns_of(w->qt, head * w->r->tokens + TILE * tile, queries);
    const trn_tensor row = turn(&w->rows, queries, keys), p = turn(&w->probs, queries, keys);
    const trn_tensor output = turn(&w->outputs, queries, d), acc = sheet_part(&w->acc, tile, head * d, d);
    const trn_tensor low = sheet_part(&w->numbers, tile, 2 * head, 1);
    const trn_tensor total = sheet_part(&w->numbers, tile, 2 * head + 1, 1), temp = turn(&w->temps, queries, 4);
    const trn_tensor top = columns_of(temp, 0, 1), now = columns_of(temp, 1, 1);
    const trn_tensor factor = columns_of(temp, 2, 1), sum = columns_of(temp, 3, 1);
    multiply_row(c, &w->scores, row, qt, w->kt);
    if (own) {
        const trn_tensor corner = columns_of(row, keys - queries, queries);
        const trn_pattern less_key = { 1, { { -1, (int32_t)queries } } };
        nisa(affine_select, .dst = corner, .on_true_tile = corner, .on_false_value = MASKED,
             .cmp_op = TRN_ALU_GREATER_EQUAL, .pattern = less_key, .channel_multiplier = 1);
    }
    nisa(tensor_reduce, .dst = top, .data = row, .op = TRN_ALU_MAXIMUM);
    nisa(tensor_scalar, .dst = now, .data = top, .op0 = TRN_ALU_MULTIPLY, .operand0 = -scale, .op1 = TRN_ALU_MINIMUM,
         .operand1_tile = low);
    nisa(activation, .dst = p, .src = row, .op = TRN_ACT_EXP, .scale = scale, .bias_tile = now, .reduce_res = sum,
         .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    nisa(activation, .dst = factor, .src = low, .op = TRN_ACT_EXP, .scale = -1, .bias_tile = now);
    nisa(tensor_copy, .dst = low, .src = now);
    nisa(tensor_scalar, .dst = total, .data = total, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = factor,
         .op1 = TRN_ALU_ADD, .operand1_tile = sum);
    multiply_by_sheet(c, &w->transposes, &w->prob_ts, output, p, kv, (w->r->heads + head) * d);
    nisa(scalar_tensor_tensor, .dst = acc, .data = acc, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = factor,
         .op1 = TRN_ALU_ADD, .operand1 = output);
}

static void step(work *w, const sheet *kv, trn_tensor block, bool own)
{
    sheet_load(w->c, kv, rows_of(block, 0, w->r->tokens));
    for (int64_t h = 0; h < w->r->heads; h++) {
        transpose_head(w, w->kt, kv, h);
        for (int64_t t = 0; t < tiles_of(w->r->tokens); t++)
            step_tile(w, kv, h, t, own ? least(TILE * (t + 1), w->r->tokens) : w->r->tokens, own);
    }
}

/* The block goes to the next rank; without the overlap a number of this step's last sum goes with it. */
static void pass_on(work *w, trn_cores_rank *self, trn_tensor to, trn_tensor from)
{
    trn_core *c = w->c;
    const trn_cores_collective_args args = {
        .dst = to, .src = from, .source_target_pairs = (const int(*)[2])w->r->pair, .pairs = w->r->ranks
    };
    if (!w->r->overlap) {
        const trn_tensor last = sheet_part(&w->acc, tiles_of(w->r->tokens) - 1, w->r->heads * w->r->d - 1, 1);
        const trn_tensor number = trn_core_sbuf(c, "number", TRN_BF16, 1, 1);
        nisa(tensor_copy, .dst = number, .src = rows_of(last, 0, 1));
        nisa(dma_copy, .dst = columns_of(rows_of(from, w->r->tokens, 1), 0, 1), .src = number);
        trn_core_free(c, number);
    }
    trn_cores_collective_permute(self, &args);
}

static void finish(work *w, trn_tensor out)
{
    trn_core *c = w->c;
    for (int64_t t = 0; t < tiles_of(w->r->tokens); t++)
        for (int64_t h = 0; h < w->r->heads; h++) {
            const trn_tensor total = sheet_part(&w->numbers, t, 2 * h + 1, 1);
            nisa(reciprocal, .dst = total, .data = total);
            nisa(tensor_scalar, .dst = sheet_part(&w->out, t, h * w->r->d, w->r->d),
                 .data = sheet_part(&w->acc, t, h * w->r->d, w->r->d), .op0 = TRN_ALU_MULTIPLY, .operand0_tile = total);
        }
    sheet_store(c, out, &w->out);
}

static trn_status kernel(trn_cores_rank *self, void *user)
{
    const ring *r = (const ring *)user;
    const ring_rank *own = &r->rank[self->rank];
    trn_core *c = &self->core;
    const trn_tensor hbm[] = { own->q, own->kv, own->out, own->hop[0], own->hop[1] };
    for (int i = 0; i < 5; i++) trn_core_hbm(c, "ring", hbm[i]);
    work w = work_of(c, r);
    begin(&w, own);
    for (int i = 0; i < r->ranks && !trn_core_status(c, NULL); i++) {
        const int source = (self->rank - i + r->ranks) % r->ranks; /* whose block this is */
        const trn_tensor now = i ? own->hop[i % 2] : own->kv, next = own->hop[(i + 1) % 2];
        const bool last = i + 1 == r->ranks, sees = !r->causal || source <= self->rank;
        if (!last && r->overlap) pass_on(&w, self, next, now);
        if (sees) step(&w, &w.kv[i % 2], now, r->causal && i == 0);
        if (!last && !r->overlap) pass_on(&w, self, next, now);
    }
    finish(&w, own->out);
    return trn_core_status(c, NULL);
}

/* ---- binary64 ---- */

typedef struct check {
    const ring *r;
    double *k, *v;                         /* of a head: [all tokens, d] */
    double *q, *p, *exact, *rounded, *got; /* of a query, and [d] each */
} check;

static void check_row(const check *k, cores_errors *e, int64_t row, const double *got)
{
    const int64_t d = k->r->d, n = k->r->causal ? row + 1 : k->r->ranks * k->r->tokens;
    double most = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double s = 0;
        for (int64_t i = 0; i < d; i++) s += k->q[i] * k->k[j * d + i];
        k->p[j] = s * (double)attention_scale(d);
        most = fmax(most, k->p[j]);
    }
    memset(k->exact, 0, (size_t)d * sizeof(double));
    memset(k->rounded, 0, (size_t)d * sizeof(double));
    for (int64_t j = 0; j < n; j++) {
        const double p = exp(k->p[j] - most), short_p = cores_round(p, true);
        sum += p;
        for (int64_t i = 0; i < d; i++) k->exact[i] += p * k->v[j * d + i];
        for (int64_t i = 0; i < d; i++) k->rounded[i] += short_p * k->v[j * d + i];
    }
    for (int64_t i = 0; i < d; i++) k->exact[i] /= sum;
    for (int64_t i = 0; i < d; i++) k->rounded[i] = cores_round(k->rounded[i] / sum, true);
    cores_compare(e, got, k->exact, k->rounded, d);
}

static void check_head(const check *k, const trn_cores *c, cores_errors *e, int64_t h)
{
    const ring *r = k->r;
    const int64_t d = r->d, all = r->heads * d, tokens = r->tokens;
    double *kv = (double *)app_memory((size_t)(2 * (tokens + 1) * all), sizeof *kv);
    double *q = (double *)app_memory((size_t)(tokens * all), sizeof *q);
    double *out = (double *)app_memory((size_t)(tokens * all), sizeof *out);
    for (int i = 0; i < r->ranks; i++) {
        cores_values(r->rank[i].kv, kv);
        for (int64_t t = 0; t < tokens; t++) {
            memcpy(k->k + (i * tokens + t) * d, kv + t * 2 * all + h * d, (size_t)d * sizeof *kv);
            memcpy(k->v + (i * tokens + t) * d, kv + t * 2 * all + all + h * d, (size_t)d * sizeof *kv);
        }
    }
    for (int i = c->first; i < c->first + c->here; i++) {
        cores_values(r->rank[i].q, q);
        cores_values(r->rank[i].out, out);
        for (int64_t t = 0; t < tokens; t++) {
            memcpy(k->q, q + t * all + h * d, (size_t)d * sizeof *q);
            check_row(k, e, i * tokens + t, out + t * all + h * d);
        }
    }
    free(kv);
    free(q);
    free(out);
}

static void check_all(const ring *r, const trn_cores *c, cores_errors *e)
{
    const size_t n = (size_t)r->ranks * (size_t)r->tokens, d = (size_t)r->d;
    double *memory = (double *)app_memory(2 * n * d + n + 3 * d, sizeof *memory);
    const check k = { .r = r,
                      .k = memory,
                      .v = memory + n * d,
                      .p = memory + 2 * n * d,
                      .q = memory + 2 * n * d + n,
                      .exact = memory + 2 * n * d + n + d,
                      .rounded = memory + 2 * n * d + n + 2 * d };
    for (int64_t h = 0; h < r->heads; h++) check_head(&k, c, e, h);
    free(memory);
}

/* ---- the program ---- */

typedef struct result {
    const options *o;
    const ring *r;
    cores_run run;  /* with the overlap */
    double alone_s; /* without */
    uint64_t digest[2];
    cores_errors error;
    bool checked;
} result;

static void begin_ring(ring *r, const options *o)
{
    const int64_t all = o->heads * o->d;
    *r = (ring){ .tokens = o->tokens, .heads = o->heads, .d = o->d, .ranks = o->cores.ranks, .causal = o->causal };
    r->rank = (ring_rank *)app_memory((size_t)r->ranks, sizeof *r->rank);
    r->pair = (int(*)[2])app_memory((size_t)r->ranks, sizeof *r->pair);
    for (int i = 0; i < r->ranks; i++) {
        ring_rank *own = &r->rank[i];
        r->pair[i][0] = i, r->pair[i][1] = (i + 1) % r->ranks;
        own->q = cores_matrix(TRN_BF16, r->tokens, all);
        own->out = cores_matrix(TRN_BF16, r->tokens, all);
        own->kv = cores_matrix(TRN_BF16, r->tokens + 1, 2 * all);
        for (int k = 0; k < 2; k++) own->hop[k] = cores_matrix(TRN_BF16, r->tokens + 1, 2 * all);
        cores_fill(own->q, o->cores.seed, (uint64_t)(2 * i), 0, o->spread);
        cores_fill(own->kv, o->cores.seed, (uint64_t)(2 * i + 1), 0, 1);
    }
}

static void end_ring(ring *r)
{
    for (int i = 0; i < r->ranks; i++) {
        const ring_rank *own = &r->rank[i];
        const trn_tensor t[] = { own->q, own->kv, own->out, own->hop[0], own->hop[1] };
        for (int k = 0; k < 5; k++) cores_free_matrix(t[k]);
    }
    free(r->rank);
    free(r->pair);
}

static uint64_t digest_of(const ring *r, const cores_run *run)
{
    uint64_t *all = (uint64_t *)app_memory((size_t)r->ranks, sizeof *all);
    for (int i = 0; i < r->ranks; i++) all[i] = cores_digest(CORES_DIGEST, r->rank[i].out);
    cores_share(run, all);
    const uint64_t digest = cores_digest_of(all, r->ranks);
    free(all);
    return digest;
}

static void print_text(FILE *out, const result *r)
{
    fprintf(out, "ring        %s, %d chips, %d ranks: %lld tokens on each, %lld heads of %lld%s\n",
            trn_system_name(r->o->cores.system), r->o->cores.chips, r->r->ranks, (long long)r->r->tokens,
            (long long)r->r->heads, (long long)r->r->d, r->r->causal ? ", causal" : "");
    fprintf(out, "digest      %016llx; without overlap %s\n", (unsigned long long)r->digest[1],
            r->digest[0] == r->digest[1] ? "the same" : "ANOTHER");
    if (r->checked) cores_print_errors(out, &r->error, 1);
    cores_print_times(out, &r->run);
    fprintf(out, "overlap     %.1f us with, %.1f us without: x %.2f\n", 1e6 * r->run.report.time_s, 1e6 * r->alone_s,
            r->alone_s / r->run.report.time_s);
}

static void write_json(FILE *out, const void *context)
{
    const result *r = (const result *)context;
    fprintf(out, "{\n  \"system\": \"%s\",\n  \"chips\": %d,\n  \"ranks\": %d,\n", trn_system_name(r->o->cores.system),
            r->o->cores.chips, r->r->ranks);
    fprintf(out, "  \"tokens\": %lld,\n  \"heads\": %lld,\n  \"head\": %lld,\n  \"causal\": %s,\n",
            (long long)r->r->tokens, (long long)r->r->heads, (long long)r->r->d, r->r->causal ? "true" : "false");
    cores_json_times(out, &r->run);
    if (r->checked) cores_json_errors(out, &r->error, 1);
    fprintf(out, "  \"without_overlap_s\": %.9g,\n  \"digest\": \"%016llx\"\n}\n", r->alone_s,
            (unsigned long long)r->digest[1]);
}

static void write_trace(FILE *out, const void *context) { cores_write_trace(out, &((const result *)context)->run); }

/* Without the overlap first: what stays is the run with it. */
static int run_both(result *r, ring *g)
{
    for (int i = 0; i < 2; i++) {
        cores_options o = r->o->cores;
        g->overlap = i == 1;
        if (i == 0) o.trace = NULL;
        const int status = cores_start(&r->run, &o, kernel, g);
        if (status != APP_OK) return status;
        r->digest[i] = digest_of(g, &r->run);
        if (i == 0) r->alone_s = r->run.report.time_s;
        if (i == 0) cores_finish(&r->run);
    }
    return APP_OK;
}

static int work_on(const options *o, ring *g)
{
    static result r;
    app_output output[] = { { .flag = "--json", .path = o->cores.json, .write = write_json },
                            { .flag = "--trace", .path = o->cores.trace, .write = write_trace } };
    r.o = o, r.r = g;
    if (app_open_outputs(output, 2) != APP_OK) return APP_USAGE;
    begin_ring(g, o);
    int status = run_both(&r, g);
    if (status == APP_OK) {
        r.checked = !o->cores.no_check;
        r.error.name = "out";
        if (r.checked) check_all(g, &r.run.cores, &r.error);
        if (r.digest[0] != r.digest[1] || (r.checked && !cores_passed(&r.error))) status = APP_FAILED;
        if (!app_output_taken(output, 2) && cores_speaks(&r.run)) print_text(stdout, &r);
        if (app_write_outputs(output, 2, &r) != APP_OK) status = APP_USAGE;
        cores_finish(&r.run);
    }
    app_discard_outputs(output, 2);
    end_ring(g);
    return status;
}

int app_run(int argc, char **argv)
{
    options o = { .cores = { .system = TRN_TRN2_ULTRASERVER, .seed = 1, .cycle = true },
                  .tokens = 64,
                  .heads = 1,
                  .d = 64,
                  .spread = 1 };
    char why[APP_WHY];
    ring g;
    const int status = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (!cores_resolve(&o.cores, why)) return app_complain(APP_USAGE, "%s", why);
    return work_on(&o, &g);
}

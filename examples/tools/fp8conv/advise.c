/* advise.c - --advise: the ways in which a checkpoint's weights can stand on a Trainium, with what each costs.
 * SPDX-License-Identifier: MIT
 *
 * What a route loses is counted on the model's own codes, all of them: each route that converts is run, and nothing is
 * written. Bytes are those of the quantised weights and of their scales. Cycles are the library's cost model's, for a
 * tile of 128 inputs by 512 outputs: TensorE's product with 128 tokens (trn_cost.h), and what other engines do
 * to the tile first, or to the sums after it (trn_cost.h). A token reads all bytes once and decodes all tiles
 * once, on one chip, weights of all experts included. Where a rule has no published cost it is assumed, and so marked.
 */
#include "fp8conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_cost.h>

enum { TILE_INPUTS = 128, TILE_OUTPUTS = 512, TOKENS = 128, STEPS = 4, GENERATIONS = 3, MOST = 64 };

/* ---- the routes ---- */

typedef enum source { FOR_FP8 = 1, FOR_FP4 = 2, FOR_NUMBERS = 4, FOR_OTHER = 8, FOR_ANY = 15 } source;

/* What is done to a tile before it is multiplied, one after the other. */
typedef struct step {
    trn_rule rule;
    bool halves; /* 16-bit floats in and out */
} step;

typedef struct route {
    const char *name, *what;
    int sources;
    bool converts; /* the bytes change: a run of fp8conv; else they are as they were */
    bool unmoved;  /* nothing is lost, because nothing is changed */
    fc_mode mode;
    fc_form form;      /* of all quantised weights */
    trn_format format; /* that TensorE is given */
    bool block_scales; /* multiplied by an engine, where they are finer than an output */
    step steps[STEPS];
    const char *caveat; /* what of it is assumed; NULL: nothing */
} route;

/* A route in two or three lines. */
/* clang-format off */
#define NOTHING { TRN_RULE_NONE, false }
#define TO_INDICES { TRN_RULE_TENSOR_COPY, false }
#define LOOK_UP { TRN_RULE_NC_N_GATHER, false }
#define INTEGERS { TRN_RULE_TENSOR_SCALAR, false }
#define JOIN { TRN_RULE_TENSOR_TENSOR, false }
#define TIMES { TRN_RULE_TENSOR_SCALAR, true }

static const route routes[] = {
    { "native", "E4M3FN as it is", FOR_FP8, false, true, FC_RELABEL, FC_AS_FP8, TRN_F8_E4M3FN, true, { NOTHING },
      NULL },
    { "relabel", "the bytes taken for Trainium's E4M3", FOR_FP8, true, false, FC_RELABEL, FC_AS_FP8, TRN_F8_E4M3,
      true, { NOTHING }, NULL },
    { "halve", "codes / 2, scales x 2", FOR_FP8, true, false, FC_HALVE, FC_AS_FP8, TRN_F8_E4M3, true, { NOTHING },
      NULL },
    { "ratio", "codes / (448/240), scales x (448/240)", FOR_FP8, true, false, FC_RATIO, FC_AS_FP8, TRN_F8_E4M3, true,
      { NOTHING }, NULL },
    { "requant", "quantised anew, with fresh scales", FOR_FP8 | FOR_NUMBERS | FOR_OTHER, true, false, FC_REQUANT,
      FC_AS_FP8, TRN_F8_E4M3, true, { NOTHING }, NULL },
    { "widen", "codes of four bits as Trainium's E4M3", FOR_FP4, true, false, FC_HALVE, FC_AS_FP8, TRN_F8_E4M3, true,
      { NOTHING }, NULL },
    { "table", "uint8 in memory, a table looked up by GpSimdE, BF16", FOR_FP8 | FOR_FP4, false, true, FC_RELABEL,
      FC_AS_FP8, TRN_BF16, true, { TO_INDICES, LOOK_UP, NOTHING },
      "no cost of nc_n_gather is published: one element per partition and cycle is assumed" },
    { "bits", "uint8 in memory, bits moved by VectorE, BF16", FOR_FP8, false, true, FC_RELABEL, FC_AS_FP8, TRN_BF16,
      true, { INTEGERS, INTEGERS, JOIN, TIMES },
      "codes below 2^-6 are subnormal BF16 before the last step: that VectorE keeps those is assumed" },
    { "bf16", "BF16 in memory", FOR_FP8 | FOR_FP4 | FOR_OTHER, true, false, FC_HALVE, FC_AS_BF16, TRN_BF16, false,
      { NOTHING }, NULL },
    { "plain", "as it is", FOR_NUMBERS, false, true, FC_HALVE, FC_AS_FP8, TRN_BF16, false, { NOTHING }, NULL },
    { "mx", "MX: words and powers of two", FOR_FP8 | FOR_FP4 | FOR_OTHER, true, false, FC_HALVE, FC_AS_MX,
      TRN_F8_E4M3FN, false, { NOTHING }, NULL },
};
/* clang-format on */
enum { ROUTES = sizeof routes / sizeof routes[0] };

/* ---- what a route makes of the model ---- */

typedef struct outcome {
    char why[IO_WHY]; /* not empty: it cannot be gone */
    fc_tally tally;
    double weights, scales; /* bytes */
    double tiles;
    int64_t block; /* inputs that share a scale, the fewest; 0: all */
    bool fp4;      /* MX: all of four bits */
} outcome;

static int64_t inputs_of_block(const fc_item *w, const route *r)
{
    const fc_grid *g = r->unmoved && w->kind == FC_IS_FP8 ? &w->in : &w->out;
    const int64_t block = w->transposed ? g->block_rows : g->block_columns;
    const int64_t all = w->transposed ? g->rows : g->columns;
    return g->whole || block >= all ? 0 : block;
}

static double bytes_of_input(const fc_catalogue *c, int item)
{
    return item < 0 ? 0 : (double)fc_size(&c->item[item].tensor);
}

static void measure_item(const fc_catalogue *c, const fc_item *w, const route *r, outcome *out)
{
    const st_tensor *v = &w->view;
    const double a = v->rank >= 2 ? (double)v->shape[v->rank - 2] : 1, b = v->rank ? (double)v->shape[v->rank - 1] : 1;
    const double matrices = a > 0 && b > 0 ? (double)v->elements / a / b : 0;
    const double inputs = w->transposed ? a : b, outputs = w->transposed ? b : a;
    const int64_t block = r->form == FC_AS_FP8 ? inputs_of_block(w, r) : 0;
    out->tiles += matrices * ceil(inputs / TILE_INPUTS) * ceil(outputs / TILE_OUTPUTS);
    if (block && (!out->block || block < out->block)) out->block = block;
    out->fp4 = out->fp4 && w->mx_fp4;
    if (r->converts) {
        out->weights += (double)fc_size(&w->result);
        out->scales += w->scale >= 0 ? (double)fc_size(&c->item[w->scale].result) : 0;
        return;
    }
    out->weights += (double)fc_size(&w->tensor);
    for (int p = QUANT_SCALE; w->quant && p < QUANT_PARTS; p++)
        out->scales += bytes_of_input(c, fc_item_at(c, w->quant->part[p]));
}

static void measure(const fc_catalogue *c, const route *r, outcome *out)
{
    out->fp4 = true;
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i])) measure_item(c, &c->item[i], r, out);
    out->tally = fc_total(c);
    if (!r->unmoved) return;
    out->tally.not_finite = out->tally.inexact = out->tally.inexact_large = 0;
    out->tally.noise = 0;
}

/* Codes of four bits that FP8 holds count as FP4. */
static const source source_of[FC_KINDS] = {
    [FC_IS_NUMBERS] = FOR_NUMBERS, [FC_IS_FP8] = FOR_FP8,   [FC_IS_INT8] = FOR_OTHER, [FC_IS_INT4] = FOR_FP4,
    [FC_IS_NF4] = FOR_OTHER,       [FC_IS_MXFP4] = FOR_FP4, [FC_IS_NVFP4] = FOR_FP4
};

/* Reads the checkpoint once, and writes nothing. false: the checkpoint itself is refused. */
static bool try_route(const fc_options *asked, const route *r, outcome *out, int *sources)
{
    fc_options o = *asked;
    static fc_catalogue c;
    o.check = true;
    o.mode = r->mode;
    for (int k = FC_IS_FP8; k < FC_KINDS; k++) o.form[k] = r->form;
    memset(out, 0, sizeof *out);
    bool ok = fc_catalogue_open(&o, &c, out->why) && fc_assign(&c, out->why);
    for (int i = 0; ok && i < c.items; i++) {
        const fc_item *w = &c.item[i];
        if (!fc_is_weight(w)) continue;
        *sources |= (int)source_of[w->kind];
        c.work += fc_size(&w->tensor);
    }
    c.started = app_now();
    if (ok && fc_tally_all(&c, out->why)) measure(&c, r, out);
    app_progress_done();
    fc_catalogue_close(&c);
    return ok;
}

/* ---- what it costs ---- */

typedef struct price {
    bool legal;
    char why[200];
    double tensor_cycles, decode_cycles; /* of a tile */
    double decode_s;                     /* of a tile */
    char engines[64];
    trn_provenance known;
    double memory_s, decoding_s; /* of a token */
} price;

/* TensorE's part, or the sentence why there is none. */
static void multiply(const route *r, const outcome *out, trn_generation generation, price *p)
{
    const bool mx = r->form == FC_AS_MX;
    const trn_core_spec *core = trn_core_spec_of(generation);
    const bool narrow = r->format == TRN_F8_E4M3 || r->format == TRN_F8_E4M3FN;
    trn_error error = { 0 };
    trn_tensor_instruction i = { .generation = generation,
                                 .n = TILE_OUTPUTS,
                                 .m = TOKENS,
                                 .error = &error,
                                 .stationary_format = r->format,
                                 .before_cycles = TILE_OUTPUTS };
    trn_tensor_cost cost;
    i.k = mx ? 512 : narrow && core->double_row ? 256 : 128;
    if (mx) i.mode = TRN_MODE_MX;
    if (mx && out->fp4) i.moving_format = TRN_F4_E2M1;
    p->legal = trn_tensor_instruction_cost(&i, &cost) == TRN_OK;
    const char *colon = strstr(error.text, ": ");
    if (!p->legal) io_say_in(p->why, sizeof p->why, IO_SAID, "%s", colon ? colon + 2 : error.text);
    p->tensor_cycles = p->legal ? (cost.multiply_cycles + cost.exposed_cycles) * TILE_INPUTS / i.k : 0;
    if (p->legal && cost.multiply_known.known == TRN_ASSUMED) p->known = TRN_ASSUMED;
}

static void add_step(price *p, const trn_engine_work *work)
{
    trn_engine_cost cost;
    if (trn_engine_cycles(work, &cost) != TRN_OK) return;
    p->decode_cycles += cost.cycles;
    p->decode_s += cost.seconds;
    if (cost.rule->known == TRN_ASSUMED) p->known = TRN_ASSUMED;
    if (strstr(p->engines, cost.rule->engine)) return;
    const size_t n = strlen(p->engines);
    snprintf(p->engines + n, sizeof p->engines - n, "%s%s", n ? " + " : "", cost.rule->engine);
}

/* Steps before the product; then scales: of 128 inputs and more on the sums in PSUM, finer ones on the tile. */
static void decode(const route *r, const outcome *out, trn_generation generation, price *p)
{
    trn_engine_work work = { .generation = generation, .elements = TILE_OUTPUTS };
    for (int i = 0; i < STEPS && r->steps[i].rule != TRN_RULE_NONE; i++) {
        work.rule = r->steps[i].rule;
        work.all_16bit = work.all_fast = work.all_bf16 = r->steps[i].halves;
        add_step(p, &work);
    }
    if (!r->block_scales || !out->block) return;
    const bool sums = out->block >= TILE_INPUTS;
    work = (trn_engine_work){ .generation = generation, .elements = TILE_OUTPUTS };
    work.rule = sums ? TRN_RULE_SCALAR_TENSOR_TENSOR : TRN_RULE_TENSOR_TENSOR;
    work.psum_inputs = sums;
    work.all_16bit = work.all_fast = work.all_bf16 = work.simple = !sums;
    add_step(p, &work);
}

static price price_of(const route *r, const outcome *out, int number)
{
    static const trn_generation generation[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    const trn_generation g = generation[number - 1];
    const trn_chip_spec *chip = trn_chip_spec_of(g);
    price p = { .known = TRN_DOCUMENTED };
    if (out->why[0]) {
        io_say_in(p.why, sizeof p.why, IO_SAID, "%s", out->why);
        return p;
    }
    multiply(r, out, g, &p);
    if (!p.legal) return p;
    decode(r, out, g, &p);
    p.memory_s = (out->weights + out->scales) / chip->hbm_bytes_per_s;
    p.decoding_s = out->tiles * p.decode_s / chip->cores;
    if (r->caveat) {
        snprintf(p.why, sizeof p.why, "%s", r->caveat);
        p.known = TRN_ASSUMED;
    }
    if (out->tally.not_finite)
        snprintf(p.why, sizeof p.why, "%lld finite codes would be infinity or NaN", (long long)out->tally.not_finite);
    return p;
}

/* ---- the answer ---- */

typedef struct answer {
    const fc_options *options;
    outcome outcome[ROUTES];
    price price[GENERATIONS + 1][ROUTES];
    int sources, best[GENERATIONS + 1]; /* -1: none */
    app_table table;
} answer;

static bool is_for(const answer *a, int r) { return (routes[r].sources & a->sources) != 0; }

static bool is_asked(const answer *a, int generation)
{
    return !a->options->generation || a->options->generation == generation;
}

static double exact_share(const fc_tally *t)
{
    const double kept = (double)(t->elements - t->inexact - t->not_finite - t->was_not_finite);
    const double all = (double)(t->elements - t->was_not_finite);
    return all > 0 ? kept / all : 1;
}

static double time_of(const price *p) { return fmax(p->memory_s, p->decoding_s); }

enum { LEAST_SQNR = 60 };

/* Of those that are legal, lose no number and keep 60 dB: the least time for a token, then the least loss. */
static int best_of(const answer *a, int generation)
{
    int best = -1;
    for (int r = 0; r < ROUTES; r++) {
        const price *p = &a->price[generation][r];
        const outcome *o = &a->outcome[r];
        if (!is_for(a, r) || !p->legal || o->tally.not_finite || fc_sqnr_db(&o->tally) < LEAST_SQNR) continue;
        const price *q = best < 0 ? NULL : &a->price[generation][best];
        const bool faster = !q || time_of(p) < 0.999 * time_of(q);
        const bool same = q && time_of(p) <= 1.001 * time_of(q);
        const bool better = best >= 0 && same && fc_sqnr_db(&o->tally) > fc_sqnr_db(&a->outcome[best].tally);
        if (faster || better) best = r;
    }
    return best;
}

static const app_column columns[] = {
    { "generation", APP_INTEGER, "", "1, 2 or 3" },
    { "route", APP_TEXT, "", "its name" },
    { "what", APP_TEXT, "", "what it is" },
    { "legal", APP_TEXT, "", "yes or no" },
    { "advised", APP_TEXT, "", "yes: least time for a token of those that are legal, lose no number and keep 60 dB" },
    { "why", APP_TEXT, "", "why not, or what is wrong with it" },
    { "exact", APP_REAL, "", "share of products of code and scale that stay the same number" },
    { "not_finite", APP_INTEGER, "", "finite numbers that become infinity or NaN" },
    { "sqnr_db", APP_REAL, "dB", "on the model's own weights; missing when nothing is lost" },
    { "weight_bytes", APP_REAL, "B", "of the quantised weights" },
    { "scale_bytes", APP_REAL, "B", "of their scales" },
    { "tensor_cycles", APP_REAL, "cycles", "of TensorE for a tile of 128 inputs by 512 outputs, 128 tokens" },
    { "decode_cycles", APP_REAL, "cycles", "of other engines for the same tile" },
    { "engines", APP_TEXT, "", "which" },
    { "memory_us", APP_REAL, "us", "for a token: all bytes from HBM, one chip" },
    { "decode_us", APP_REAL, "us", "for a token: all tiles decoded, all cores of a chip" },
    { "known", APP_TEXT, "", "documented, or assumed when a cost among them is" },
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void real_or_missing(app_table *t, bool there, double value)
{
    if (there)
        app_real(t, value);
    else
        app_missing(t);
}

static void fill_row(answer *a, int generation, int r)
{
    app_table *t = &a->table;
    const outcome *o = &a->outcome[r];
    const price *p = &a->price[generation][r];
    const bool ran = !o->why[0];
    app_row(t);
    app_integer(t, generation);
    app_text(t, "%s", routes[r].name);
    app_text(t, "%s", routes[r].what);
    app_text(t, "%s", p->legal ? "yes" : "no");
    app_text(t, "%s", a->best[generation] == r ? "yes" : "no");
    if (p->why[0])
        app_text(t, "%s", p->why);
    else
        app_missing(t);
    real_or_missing(t, ran, exact_share(&o->tally));
    if (ran)
        app_integer(t, o->tally.not_finite);
    else
        app_missing(t);
    real_or_missing(t, ran && !o->tally.not_finite, fc_sqnr_db(&o->tally));
    real_or_missing(t, ran, o->weights);
    real_or_missing(t, ran, o->scales);
    real_or_missing(t, p->legal, p->tensor_cycles);
    real_or_missing(t, p->legal, p->decode_cycles);
    if (p->engines[0])
        app_text(t, "%s", p->engines);
    else
        app_missing(t);
    real_or_missing(t, p->legal, 1e6 * p->memory_s);
    real_or_missing(t, p->legal, 1e6 * p->decoding_s);
    if (p->legal)
        app_text(t, "%s", trn_provenance_text(p->known));
    else
        app_missing(t);
}

/* ---- for people ---- */

static const app_column short_columns[] = {
    { "route", APP_TEXT, "", "" },     { "legal", APP_TEXT, "", "" },   { "exact", APP_TEXT, "", "" },
    { "SQNR", APP_TEXT, "", "" },      { "weights", APP_TEXT, "", "" }, { "scales", APP_TEXT, "", "" },
    { "TensorE", APP_TEXT, "", "" },   { "others", APP_TEXT, "", "" },  { "HBM us", APP_TEXT, "", "" },
    { "decode us", APP_TEXT, "", "" }, { "costs", APP_TEXT, "", "" },
};

static void share_text(double share, char *text, size_t size)
{
    const double percent = 100 * share;
    if (share == 1)
        snprintf(text, size, "all");
    else
        snprintf(text, size, "%.*f %%", percent > 99 ? 4 : 1, percent);
}

static void short_row(app_table *t, const route *r, const outcome *o, const price *p)
{
    char text[64];
    app_row(t);
    app_text(t, "%s", r->name);
    app_text(t, "%s", p->legal ? "yes" : "no");
    if (o->why[0]) {
        for (int i = 0; i < 9; i++) app_missing(t);
        return;
    }
    share_text(exact_share(&o->tally), text, sizeof text);
    app_text(t, "%s", text);
    if (o->tally.not_finite)
        app_text(t, "none");
    else if (o->tally.noise == 0)
        app_text(t, "exact");
    else
        app_text(t, "%.1f dB", fc_sqnr_db(&o->tally));
    app_text(t, "%s", app_human(text, sizeof text, o->weights));
    app_text(t, "%s", app_human(text, sizeof text, o->scales));
    if (!p->legal) {
        for (int i = 0; i < 5; i++) app_missing(t);
        return;
    }
    app_text(t, "%.0f", p->tensor_cycles);
    if (p->engines[0])
        app_text(t, "%.0f %s", p->decode_cycles, p->engines);
    else
        app_text(t, "0");
    app_text(t, "%.3g", 1e6 * p->memory_s);
    app_text(t, "%.3g", 1e6 * p->decoding_s);
    app_text(t, "%s", trn_provenance_text(p->known));
}

static void print_generation(const answer *a, int g)
{
    app_table table;
    const int best = a->best[g];
    printf("Trainium%d\n\n", g);
    app_table_start(&table, short_columns, sizeof short_columns / sizeof short_columns[0]);
    for (int r = 0; r < ROUTES; r++)
        if (is_for(a, r)) short_row(&table, &routes[r], &a->outcome[r], &a->price[g][r]);
    app_print_table(stdout, &table);
    app_table_free(&table);
    putchar('\n');
    for (int r = 0; r < ROUTES; r++)
        if (is_for(a, r) && a->price[g][r].why[0]) app_say(stdout, "%s: %s\n", routes[r].name, a->price[g][r].why);
    if (best < 0)
        printf("Advised: none.\n\n");
    else
        printf("Advised: %s, %s.\n\n", routes[best].name, routes[best].what);
}

static void print_text(const answer *a)
{
    app_say(stdout, "%s: routes\n\n", a->options->in);
    for (int g = 1; g <= GENERATIONS; g++)
        if (is_asked(a, g)) print_generation(a, g);
    for (int r = 0; r < ROUTES; r++)
        if (is_for(a, r)) printf("%-8s %s\n", routes[r].name, routes[r].what);
    puts("\nCycles: for a tile of 128 inputs by 512 outputs; TensorE with 128 tokens; others decode the tile or apply\n"
         "scales. us: for a token that reads and decodes all weights once, on one chip. Advised: least time of those\n"
         "that are legal, lose no number and keep 60 dB.");
}

/* ---- files ---- */

static void write_csv(FILE *out, const void *context) { app_print_csv(out, &((const answer *)context)->table); }

static void write_json(FILE *out, const void *context)
{
    const answer *a = context;
    fputs("{\n", out);
    app_print_json_pair(out, "input", a->options->in);
    fputs("  \"routes\": ", out);
    app_print_json_rows(out, &a->table, 2);
    fputs("\n}\n", out);
}

static int show(answer *a)
{
    app_output output[FC_REPORTS];
    output[0] = (app_output){ .flag = "--csv", .path = a->options->csv, .write = write_csv };
    output[1] = (app_output){ .flag = "--json", .path = a->options->json, .write = write_json };
    const bool taken = app_output_taken(output, FC_REPORTS);
    app_table_start(&a->table, columns, COLUMNS);
    for (int g = 1; g <= GENERATIONS; g++)
        for (int r = 0; r < ROUTES; r++)
            if (is_asked(a, g) && is_for(a, r)) fill_row(a, g, r);
    int status = app_open_outputs(output, FC_REPORTS);
    if (status == APP_OK) status = app_write_outputs(output, FC_REPORTS, a);
    if (status == APP_OK && !taken) print_text(a);
    app_discard_outputs(output, FC_REPORTS);
    app_table_free(&a->table);
    return app_flush(status);
}

/* Any route that takes what the checkpoint has tells what that is; when none does, the first one's sentence stands. */
static bool survey(const fc_options *o, answer *a)
{
    static const route any = { .name = "bf16",
                               .what = "",
                               .sources = FOR_ANY,
                               .converts = true,
                               .mode = FC_REQUANT,
                               .form = FC_AS_FP8,
                               .format = TRN_BF16,
                               .steps = { NOTHING } };
    return try_route(o, &any, &a->outcome[0], &a->sources);
}

int fc_advise(const fc_options *o)
{
    static answer a;
    int unused = 0;
    a.options = o;
    if (!survey(o, &a)) return app_complain(APP_USAGE, "%s", a.outcome[0].why);
    for (int r = 0; r < ROUTES; r++)
        if (is_for(&a, r)) try_route(o, &routes[r], &a.outcome[r], &unused);
    for (int g = 1; g <= GENERATIONS; g++) {
        for (int r = 0; r < ROUTES; r++)
            if (is_for(&a, r)) a.price[g][r] = price_of(&routes[r], &a.outcome[r], g);
        a.best[g] = best_of(&a, g);
    }
    return show(&a);
}

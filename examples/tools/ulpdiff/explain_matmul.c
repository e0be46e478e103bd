/* explain_matmul.c - hypotheses about a product: which one it is, how the array sums, what its inputs and outputs were
 * rounded to.
 * SPDX-License-Identifier: MIT
 */
#include "explain_matmul.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_numerics.h>

enum { INPUTS, OUTPUT, CHAINS, LAYOUT, MERGE, K_TILE, PRODUCT, PSUM, SUMS };
static const char *const aspects[] = { "inputs", "output",  "chains",      "chain_layout", "merge",
                                       "k_tile", "product", "psum_format", "sums",         NULL };

#define WHOLE_MACS (INT64_C(1) << 31) /* a larger product stays a sample */
enum { LEAST_OUTPUTS = 256, MOST_OUTPUTS = 4096 };

/* ---- which product it is ---- */

static const char *const placements[] = { "A = x w", "A = x w^T", "A = x^T w", "A = x^T w^T",
                                          "A = w x", "A = w^T x", "A = w x^T", "A = w^T x^T" };

typedef struct mm_matrix {
    const float *data;
    int64_t rows, columns;
    bool transposed;
} mm_matrix;

static float *take_matrix(mm_matrix t)
{
    float *out = app_memory((size_t)(t.rows * t.columns), sizeof *out);
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.columns; c++)
            out[r * t.columns + c] = t.transposed ? t.data[c * t.rows + r] : t.data[r * t.columns + c];
    return out;
}

static mm_matrix matrix_of(const ud_array *x, const float *data, bool transposed)
{
    const int64_t columns = x->rank ? x->shape[x->rank - 1] : 1, rows = columns ? x->elements / columns : 0;
    return transposed ? (mm_matrix){ data, columns, rows, true } : (mm_matrix){ data, rows, columns, false };
}

static bool fits(mm_matrix a, mm_matrix b, int64_t m, int64_t n)
{
    return a.columns == b.rows && a.rows == m && b.columns == n && a.columns > 0;
}

/* How far the product so placed is from the outputs: a few of them, in binary64. */
static double distance_of(const mm_context *c, mm_matrix a, mm_matrix b)
{
    const ud_array *out = &c->job->pair[0].a;
    const int64_t count = out->elements < 64 ? out->elements : 64;
    int64_t *index = ud_spread(out->elements, count);
    double error = 0, energy = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t r = index[i] / b.columns, s = index[i] % b.columns;
        double sum = 0, is;
        for (int64_t k = 0; k < a.columns; k++)
            sum += (double)(a.transposed ? a.data[k * a.rows + r] : a.data[r * a.columns + k]) *
                   (double)(b.transposed ? b.data[s * b.rows + k] : b.data[k * b.columns + s]);
        ud_values(out, index[i], 1, &is);
        if (!isfinite(is) || !isfinite(sum)) continue;
        error += (is - sum) * (is - sum);
        energy += is * is;
    }
    free(index);
    return energy > 0 ? error / energy : error;
}

static bool place(mm_context *c, const ud_array *x, const ud_array *w, const char **placement, char *why)
{
    float *data[2] = { ud_read_floats(x), ud_read_floats(w) };
    const int64_t n = c->job->pair[0].a.rank ? c->job->pair[0].a.shape[c->job->pair[0].a.rank - 1] : 1,
                  m = c->job->pair[0].a.elements / n;
    double best = INFINITY;
    mm_matrix chosen[2];
    *placement = NULL;
    for (int i = 0; i < 8; i++) {
        const bool swapped = i >= 4;
        const mm_matrix a = matrix_of(swapped ? w : x, data[swapped], i & (swapped ? 1 : 2)),
                        b = matrix_of(swapped ? x : w, data[!swapped], i & (swapped ? 2 : 1));
        if (!fits(a, b, m, n)) continue;
        const double far = distance_of(c, a, b);
        if (*placement && !(far < 0.5 * best)) continue; /* the plainer one, unless another is clearly nearer */
        best = far;
        chosen[0] = a;
        chosen[1] = b;
        *placement = placements[i];
        c->format_a = swapped ? w->format : x->format;
        c->format_b = swapped ? x->format : w->format;
    }
    if (*placement) {
        c->a = take_matrix(chosen[0]);
        c->b = take_matrix(chosen[1]);
        c->m = m;
        c->n = n;
        c->k = chosen[0].columns;
    }
    free(data[0]);
    free(data[1]);
    char p[128], q[128], r[128];
    if (*placement) return true;
    return app_fail(why, "--inputs: no product of %s and %s is %s", ud_shape(x, p, sizeof p), ud_shape(w, q, sizeof q),
                    ud_shape(&c->job->pair[0].a, r, sizeof r));
}

/* ---- the hypotheses ---- */

static mm_sums *new_sums(mm_context *c, const char *text, int surprise)
{
    mm_sums *s = &c->sum[c->sums < MM_SUMS - 1 ? c->sums++ : c->sums];
    memset(s, 0, sizeof *s);
    snprintf(s->text, sizeof s->text, "%s", text);
    s->surprise = surprise;
    return s;
}

static void note(mm_sums *s, int aspect, const char *value)
{
    snprintf(s->value[aspect], sizeof s->value[0], "%s", value);
}

static void add_setting(char *text, size_t size, const char *setting)
{
    const size_t at = strlen(text);
    if (setting[0]) snprintf(text + at, size - at, "%s%s", at ? "," : "", setting);
}

typedef struct mm_choice {
    const char *value, *setting;
} mm_choice;

static const mm_choice chain_choices[] = {
    { "4", "" }, { "1", "chains=1" }, { "2", "chains=2" }, { "8", "chains=8" }, { "16", "chains=16" }
};
static const mm_choice layout_choices[] = { { "interleaved", "" }, { "blocked", "chain_layout=blocked" } };
static const mm_choice merge_choices[] = { { "ascending", "" }, { "pairwise", "merge=pairwise" } };
static const mm_choice tile_choices[] = { { "128", "" }, { "64", "k_tile=64" }, { "32", "k_tile=32" } };
static const mm_choice product_choices[] = { { "exact", "" }, { "bf16", "product=bf16" } };
static const mm_choice psum_choices[] = { { "float32", "" }, { "bfloat16", "psum_format=bfloat16" } };

/* The fields that the record leaves open, each with each. digit[]: chains, layout, merge, tile, product, psum. */
static void core_sums(mm_context *c, const int digit[6])
{
    static const struct {
        int aspect;
        const mm_choice *choice;
    } row[6] = { { CHAINS, chain_choices }, { LAYOUT, layout_choices },   { MERGE, merge_choices },
                 { K_TILE, tile_choices },  { PRODUCT, product_choices }, { PSUM, psum_choices } };
    char text[96] = "";
    int surprise = 0;
    for (int i = 0; i < 6; i++) {
        add_setting(text, sizeof text, row[i].choice[digit[i]].setting);
        surprise += digit[i] != 0;
    }
    mm_sums *s = new_sums(c, text, surprise);
    for (int i = 0; i < 6; i++) note(s, row[i].aspect, row[i].choice[digit[i]].value);
    note(s, SUMS, "float32");
    s->core = true;
    if (digit[0] == 1) s->value[LAYOUT][0] = '\0';                 /* one chain takes every row, */
    if (digit[0] == 1 || digit[0] == 2) s->value[MERGE][0] = '\0'; /* and two are added in one way only */
}

static void all_core_sums(mm_context *c)
{
    int d[6];
    for (int i = 0; i < 5 * 2 * 2 * 3 * 2 * 2; i++) {
        d[0] = i % 5;
        d[1] = i / 5 % 2;
        d[2] = i / 10 % 2;
        d[3] = i / 20 % 3;
        d[4] = i / 60 % 2;
        d[5] = i / 120;
        if ((d[0] == 1 && d[1]) || ((d[0] == 1 || d[0] == 2) && d[2])) continue;
        if (d[3] && c->k <= 32) continue; /* one tile anyway */
        core_sums(c, d);
    }
}

static void other_sums(mm_context *c)
{
    static const char *const more[] = {
        "accumulator=exact",
        "accumulator=toward_zero",
        "chains=1,accumulator=toward_zero",
        "flush_inputs=on",
        "flush_products=on",
        "flush_sums=on",
        "accumulator_bits=25",
        "accumulator_bits=26",
        "accumulator_bits=32",
        "accumulator_bits=53",
        "chains=1,accumulator_bits=25",
        "chains=1,accumulator_bits=26",
        "chains=1,accumulator_bits=32",
        "chains=1,accumulator_bits=53",
        "fp32_mode=split",
        "chains=1,fp32_mode=split",
        "fp32_mode=fp32r",
        "chains=1,fp32_mode=fp32r",
        "tf32_input=truncate",
        "k_tile=1",
        "k_tile=16",
        "accumulator=exact,k_tile=64",
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) note(new_sums(c, more[i], 4), SUMS, more[i]);
    const char *name, *setting;
    for (int i = 0; (name = trn_numerics_preset(i, &setting, NULL)) != NULL; i++)
        if (strncmp(name, "nv_", 3) == 0 || strncmp(name, "amd_", 4) == 0) note(new_sums(c, name, 8), SUMS, name);
    if (c->job->options.numerics) note(new_sums(c, c->job->options.numerics, 0), SUMS, "--numerics");
}

static void double_row_sums(mm_context *c)
{
    static const char *const text[] = { "", "group=exact", "chains=1", "product=bf16" };
    if (c->format_a == TRN_FORMAT_UNSET || c->format_b == TRN_FORMAT_UNSET) return;
    if (trn_format_bits(c->format_a) != 8 || trn_format_bits(c->format_b) != 8) return;
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        mm_sums *s = new_sums(c, text[i], 2);
        s->double_row = true;
        note(s, SUMS, "double rows");
    }
}

/* What a host's library may do: one fused chain over K or parts of it, or binary64 throughout. */
static void reference_sums(mm_context *c)
{
    static const int block[] = { 0, 192, 256, 320, 352, 384, 448, 512, 768, 1024 };
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
        char text[64];
        if (block[i] >= c->k) continue;
        snprintf(text, sizeof text,
                 block[i] ? "host: fused float32 chains of %d" : "host: one fused float32 chain over K", block[i]);
        mm_sums *s = new_sums(c, text, 6);
        s->reference = MM_FMA_CHAIN;
        s->block = block[i];
        note(s, SUMS, block[i] ? "host chains" : "host chain");
    }
    mm_sums *s = new_sums(c, "host: float64 sums", 3);
    s->reference = MM_FLOAT64;
    note(s, SUMS, "float64");
}

/* binary32 numbers as sums of bfloat16 ones, by the engine's products: what remains where products are rounded? */
static void parts_sums(mm_context *c)
{
    static const struct {
        const char *text;
        int parts;
    } row[] = {
        { "", 2 }, { "", 3 }, { "product=bf16", 2 }, { "product=bf16", 3 }, { "chains=1", 2 }, { "chains=1", 3 }
    };
    if (c->format_a != TRN_F32 || c->format_b != TRN_F32) return;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        mm_sums *s = new_sums(c, row[i].text, 6);
        s->reference = MM_PARTS;
        s->block = row[i].parts;
        note(s, SUMS, row[i].parts == 2 ? "2 bfloat16 parts" : "3 bfloat16 parts");
        note(s, PRODUCT, strncmp(row[i].text, "product", 7) == 0 ? "bf16" : "exact");
    }
}

static void list_casts(mm_context *c)
{
    static const trn_format narrower[] = { TRN_BF16, TRN_TF32, TRN_F16, TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2 };
    const int own_a = ud_significand(c->format_a), own_b = ud_significand(c->format_b),
              own = own_a > own_b ? own_a : own_b;
    c->cast[c->casts++] = TRN_FORMAT_UNSET;
    for (size_t i = 0; i < sizeof narrower / sizeof narrower[0]; i++)
        if (ud_significand(narrower[i]) < own) c->cast[c->casts++] = narrower[i];
}

static void add_output(mm_context *c, trn_format format, trn_rounding rounding)
{
    for (int i = 0; i < c->outputs; i++)
        if (c->output[i].format == format && c->output[i].rounding == rounding) return;
    if (c->outputs < MM_OUTPUTS && ud_can_be(&c->job->pair[0], format))
        c->output[c->outputs++] = (mm_rounding){ format, rounding };
}

static void list_outputs(mm_context *c)
{
    const ud_array *side[2] = { &c->job->pair[0].b, &c->job->pair[0].a };
    add_output(c, TRN_F32, TRN_NEAREST_EVEN);
    for (int k = 0; k < 2; k++)
        if (ud_has_floats(side[k])) add_output(c, side[k]->format, TRN_NEAREST_EVEN);
    add_output(c, TRN_BF16, TRN_NEAREST_EVEN);
    add_output(c, TRN_F16, TRN_NEAREST_EVEN);
    add_output(c, TRN_BF16, TRN_TOWARD_ZERO);
    for (int k = 0; k < 2; k++)
        if (ud_has_floats(side[k]) && side[k]->format != TRN_F32) add_output(c, side[k]->format, TRN_TOWARD_ZERO);
}

static void describe(ud_hypothesis *h, const mm_sums *s, const char *inputs, const mm_rounding *output, bool own)
{
    char out[64];
    snprintf(out, sizeof out, "%s%s", trn_format_name(output->format),
             output->rounding == TRN_TOWARD_ZERO ? " toward zero" : "");
    snprintf(h->text, sizeof h->text, "%s%s%s%s; output %s", s->text[0] ? s->text : "trn2 (the default)",
             s->double_row              ? " (double rows)"
             : s->reference != MM_PARTS ? ""
             : s->block == 2            ? ", of 2 bfloat16 parts (3 products)"
                                        : ", of 3 bfloat16 parts (6 products)",
             own ? "" : "; inputs ", own ? "" : inputs, out);
    memcpy(h->value, s->value, sizeof h->value);
    ud_say(h, INPUTS, "%s", inputs);
    ud_say(h, OUTPUT, "%s", out);
}

static void suppose_all(mm_context *c, ud_explanation *e)
{
    for (int i = 0; i < c->casts; i++)
        for (int s = 0; s < c->sums; s++) {
            const mm_sums *sum = &c->sum[s];
            if (i > 1 && !(sum->core && sum->surprise <= 1))
                continue; /* unusual inputs: only what is usual otherwise */
            if (i && sum->reference == MM_PARTS) continue;
            for (int o = 0; o < c->outputs; o++) {
                ud_hypothesis *h = ud_suppose(e);
                describe(h, sum, i ? trn_format_name(c->cast[i]) : "as they are", &c->output[o], i == 0);
                h->key[MM_KEY_INPUTS] = i;
                h->key[MM_KEY_SUMS] = s;
                h->key[MM_KEY_OUTPUT] = o;
                h->surprise =
                    sum->surprise + 2 * (i > 0) + (i > 1) + 2 * (c->output[o].rounding != TRN_NEAREST_EVEN) + (o > 1);
            }
        }
}

/* ---- opening, closing ---- */

static void choose_sample(mm_context *c, ud_source *s)
{
    int64_t outputs = MM_SAMPLE_MACS / c->k;
    if (outputs < LEAST_OUTPUTS) outputs = LEAST_OUTPUTS;
    if (outputs > MOST_OUTPUTS) outputs = MOST_OUTPUTS;
    c->columns = c->n < 64 ? c->n : 64;
    c->rows = outputs / c->columns < c->m ? outputs / c->columns : c->m;
    if (c->rows * c->columns < outputs) c->columns = outputs / c->rows < c->n ? outputs / c->rows : c->n;
    c->row = ud_spread(c->m, c->rows);
    c->column = ud_spread(c->n, c->columns);
    s->sampled = c->rows * c->columns;
    s->index = app_memory((size_t)s->sampled, sizeof *s->index);
    for (int64_t i = 0; i < s->sampled; i++) s->index[i] = c->row[i / c->columns] * c->n + c->column[i % c->columns];
}

static void close_context(void *context)
{
    mm_context *c = context;
    mm_free_parts(c);
    free(c->row);
    free(c->column);
    free(c->result);
    free(c);
}

static bool check(const ud_job *job, char *why)
{
    if (job->operands != 2)
        return app_fail(why, "--inputs: a product has two operands, and here %s %d", job->operands == 1 ? "is" : "are",
                        job->operands);
    for (int i = 0; i < 2; i++) {
        const ud_array *x = &job->operand[i];
        if (x->rank < 1 || x->elements == 0)
            return app_fail(why, "%s: an operand of a product has rows and columns", x->name);
        if (x->kind != UD_CODES && x->kind != UD_F64)
            return app_fail(why, "%s: its type %s is not multiplied", x->name, x->type);
    }
    return true;
}

/* Integers, and numbers of 64 bits, as binary32. */
static trn_format multiplied_as(trn_format format)
{
    return trn_format_info_of(format)->exponent_bits > 0 ? format : TRN_F32;
}

bool ud_open_matmul(ud_job *job, ud_explanation *e, char *why)
{
    const char *placement;
    char p[128], q[128];
    if (!check(job, why)) return false;
    mm_context *c = app_memory(1, sizeof *c);
    c->job = job;
    c->key[0] = -1;
    e->source.context = c;
    e->source.close = close_context;
    e->source.run = mm_run;
    e->source.aspect = aspects;
    const ud_array *x = &job->operand[0], *w = &job->operand[1];
    if (!place(c, x, w, &placement, why)) return false;
    job->product = (ud_product){ c->a, c->b, c->m, c->n, c->k, false }; /* the job's from here on */
    c->format_a = multiplied_as(c->format_a);
    c->format_b = multiplied_as(c->format_b);
    io_say_in(e->source.inputs, sizeof e->source.inputs, IO_SAID,
              "%s, x = %.100s %s %s, w = %.100s %s %s; K = %" PRId64, placement, x->name, x->type,
              ud_shape(x, p, sizeof p), w->name, w->type, ud_shape(w, q, sizeof q), c->k);
    choose_sample(c, &e->source);
    e->source.outputs = e->source.total = c->m * c->n;
    if (e->source.outputs > WHOLE_MACS / c->k) e->source.outputs = e->source.sampled; /* too much to compute for all */
    const bool second = e->source.sampled < e->source.outputs;
    c->result = app_memory((size_t)e->source.outputs, sizeof *c->result);
    mm_make_part(c, false);
    if (second) mm_make_part(c, true);
    all_core_sums(c);
    other_sums(c);
    double_row_sums(c);
    reference_sums(c);
    parts_sums(c);
    list_casts(c);
    list_outputs(c);
    suppose_all(c, e);
    return true;
}

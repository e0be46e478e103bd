/* test_srlab.c - srlab's models and its optimizer, held against twins in double that share nothing with them.
 * SPDX-License-Identifier: MIT
 *
 * Gradients: the twin computes only the loss, slowly and by definition; central differences of it are compared with
 * what the program's backward passes give with binary32 operands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "srlab/transformer.h"

const char app_name[] = "test_srlab";

enum { WIDTH = 16, HEADS = 2, LAYERS = 2, CONTEXT = 8, SYMBOLS = 5, LETTERS = 400 };

static sr_settings tiny_settings(trn_format products)
{
    sr_settings s;
    memset(&s, 0, sizeof s);
    s.products = products;
    s.batch = 8;
    s.steps = 10, s.every = 5;
    s.width = WIDTH, s.layers = LAYERS, s.heads = HEADS, s.context = CONTEXT;
    s.features = 6, s.hidden = 7, s.depth = 2, s.classes = 3, s.examples = 8;
    s.rate[0] = 1e-3, s.rates = 1, s.seeds = 1, s.rate_end = 1, s.clip = 0;
    return s;
}

static sr_text *tiny_text(void)
{
    static sr_text t;
    static uint8_t symbol[LETTERS];
    for (uint64_t i = 0; i < LETTERS; i++) symbol[i] = (uint8_t)(trn_random_u32(3, 3, i) % SYMBOLS);
    t.symbol = symbol;
    t.count = LETTERS;
    t.train = LETTERS - 40;
    t.symbols = SYMBOLS;
    memcpy(t.letter, "abcd\n", SYMBOLS);
    return &t;
}

/* The sum of all shards' gradients after one step, as the optimizer would take it. */
static double *gradient_of(const sr_kind *kind, sr_model *m)
{
    sr_weights *w = kind->weights(m);
    sr_workspace *workspace[SR_SHARDS];
    double *sum = calloc((size_t)w->count, sizeof *sum);
    for (int i = 0; i < SR_SHARDS; i++) workspace[i] = kind->workspace(m, i);
    sr_weights_cast(w, workspace, 1);
    for (int i = 0; i < SR_SHARDS; i++) kind->step(m, i, 1);
    for (int s = 0; s < SR_SHARDS; s++)
        for (int64_t i = 0; i < w->count; i++) sum[i] += (double)w->gradient[s][i];
    return sum;
}

static double *copy_weights(const sr_weights *w)
{
    double *copy = calloc((size_t)w->count, sizeof *copy);
    for (int64_t i = 0; i < w->count; i++) copy[i] = (double)w->value[i];
    return copy;
}

/* ---- the twin's pieces ---- */

static double cross_entropy(const double *logit, int classes, int target)
{
    double sum = 0;
    for (int j = 0; j < classes; j++) sum += exp(logit[j] - logit[target]);
    return log(sum);
}

/* y[columns] = x[rows] w */
static void times(const double *x, const double *w, int rows, int columns, double *y)
{
    for (int j = 0; j < columns; j++) {
        y[j] = 0;
        for (int i = 0; i < rows; i++) y[j] += x[i] * w[i * columns + j];
    }
}

static void normalise(const double *x, const double *gain, double *y)
{
    double square = 0;
    for (int j = 0; j < WIDTH; j++) square += x[j] * x[j] / WIDTH;
    for (int j = 0; j < WIDTH; j++) y[j] = x[j] / sqrt(square + 1e-6) * gain[j];
}

static double gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2.0))); }

/* Where a tensor of that name begins. */
static const double *at(const sr_weights *w, const double *weight, const char *name, int layer)
{
    char full[SR_NAME];
    snprintf(full, sizeof full, layer < 0 ? "%s" : "%s.%d", name, layer);
    for (int i = 0; i < w->tensors; i++)
        if (strcmp(w->tensor[i].name, full) == 0) return weight + w->tensor[i].first;
    fail_msg("no tensor is called %s", full);
    return NULL;
}

/* ---- the transformer, a sequence at a time ---- */

static void attend(double qkv[CONTEXT][3 * WIDTH], int t, double *mixed)
{
    const int each = WIDTH / HEADS;
    for (int h = 0; h < HEADS; h++) {
        double share[CONTEXT], sum = 0;
        for (int j = 0; j <= t; j++) {
            double dot = 0;
            for (int k = 0; k < each; k++) dot += qkv[t][h * each + k] * qkv[j][WIDTH + h * each + k];
            sum += share[j] = exp(dot / sqrt((double)each));
        }
        for (int k = 0; k < each; k++) {
            double value = 0;
            for (int j = 0; j <= t; j++) value += share[j] / sum * qkv[j][2 * WIDTH + h * each + k];
            mixed[h * each + k] = value;
        }
    }
}

static void block(const sr_weights *w, const double *v, int layer, double x[CONTEXT][WIDTH])
{
    double qkv[CONTEXT][3 * WIDTH], normed[WIDTH], mixed[WIDTH], out[WIDTH], wide[4 * WIDTH];
    for (int t = 0; t < CONTEXT; t++) {
        normalise(x[t], at(w, v, "norm1", layer), normed);
        times(normed, at(w, v, "qkv", layer), WIDTH, 3 * WIDTH, qkv[t]);
    }
    for (int t = 0; t < CONTEXT; t++) {
        attend(qkv, t, mixed);
        times(mixed, at(w, v, "out", layer), WIDTH, WIDTH, out);
        for (int j = 0; j < WIDTH; j++) x[t][j] += out[j];
        normalise(x[t], at(w, v, "norm2", layer), normed);
        times(normed, at(w, v, "up", layer), WIDTH, 4 * WIDTH, wide);
        for (int j = 0; j < 4 * WIDTH; j++) wide[j] = gelu(wide[j]);
        times(wide, at(w, v, "down", layer), 4 * WIDTH, WIDTH, out);
        for (int j = 0; j < WIDTH; j++) x[t][j] += out[j];
    }
}

static double sequence_loss(const sr_weights *w, const double *v, const int *symbol, const int *target)
{
    const double *table = at(w, v, "embedding", -1), *place = at(w, v, "position", -1);
    double x[CONTEXT][WIDTH], normed[WIDTH], logit[SYMBOLS], loss = 0;
    for (int t = 0; t < CONTEXT; t++)
        for (int j = 0; j < WIDTH; j++) x[t][j] = table[symbol[t] * WIDTH + j] + place[t * WIDTH + j];
    for (int i = 0; i < LAYERS; i++) block(w, v, i, x);
    for (int t = 0; t < CONTEXT; t++) {
        normalise(x[t], at(w, v, "norm", -1), normed);
        times(normed, at(w, v, "head", -1), WIDTH, SYMBOLS, logit);
        loss += cross_entropy(logit, SYMBOLS, target[t]);
    }
    return loss;
}

static double transformer_loss(const void *context, const double *v)
{
    const sr_model *m = context;
    double loss = 0;
    for (int s = 0; s < SR_SHARDS; s++)
        for (int i = 0; i < m->shape.sequences; i++)
            loss += sequence_loss(&m->weights, v, m->shard[s].symbol + i * CONTEXT, m->shard[s].target + i * CONTEXT);
    return loss / (double)(SR_SHARDS * m->shape.tokens);
}

/* ---- differences against gradients ---- */

typedef double loss_of(const void *context, const double *weights);

static double slope(loss_of *loss, const void *context, double *v, int64_t i)
{
    const double keep = v[i], h = 1e-4;
    v[i] = keep + h;
    const double up = loss(context, v);
    v[i] = keep - h;
    const double down = loss(context, v);
    v[i] = keep;
    return (up - down) / (2 * h);
}

/* In each tensor eight numbers: off by at most `within` of the largest gradient among them. */
static void compare_gradient(const sr_weights *w, loss_of *loss, const void *context, const double *gradient,
                             double within)
{
    double *v = copy_weights(w);
    for (int t = 0; t < w->tensors; t++) {
        const sr_tensor *tensor = &w->tensor[t];
        double worst = 0, largest = 1e-7;
        for (int k = 0; k < 8; k++) {
            const uint64_t count = (uint64_t)(tensor->rows * tensor->columns);
            const int64_t i = tensor->first + (int64_t)(trn_random_u32(9, (uint64_t)t, (uint64_t)k) % count);
            const double expected = slope(loss, context, v, i);
            if (fabs(expected) > largest) largest = fabs(expected);
            if (fabs(gradient[i] - expected) > worst) worst = fabs(gradient[i] - expected);
        }
        if (worst > within * largest) fail_msg("%s: off by %g of %g", tensor->name, worst, largest);
    }
    free(v);
}

static void transformer_gradient(void **state)
{
    (void)state;
    const sr_settings s = tiny_settings(TRN_F32);
    sr_model *m = tf_make(&s, &sr_arms[0], 5, tiny_text());
    /* gains other than 1, so that they matter */
    for (int64_t i = 0; i < m->weights.count; i++)
        m->weights.value[i] += 0.1f * ((float)(trn_random_u32(8, 8, (uint64_t)i) >> 8) * 0x1p-24f - 0.5f);
    double *gradient = gradient_of(&sr_char, m), *v = copy_weights(&m->weights);
    sr_score score = { 0, 0, 0 };
    for (int i = 0; i < SR_SHARDS; i++) {
        const sr_score part = sr_char.step(m, i, 1);
        score.loss += part.loss, score.count += part.count;
    }
    assert_true(fabs(score.loss / (double)score.count - transformer_loss(m, v)) < 2e-6);
    compare_gradient(&m->weights, transformer_loss, m, gradient, 2e-4);
    free(v);
    free(gradient);
    tf_free(m);
}

/* ---- the dense models: all training examples are the same one, so the batch is known ---- */

typedef struct dense {
    const sr_weights *w;
    const sr_examples *e;
    int layers, hidden;
} dense;

static double dense_loss(const void *context, const double *v)
{
    const dense *d = context;
    double x[64], y[64];
    int width = d->e->features;
    for (int j = 0; j < width; j++) x[j] = (double)d->e->x[j];
    for (int i = 0; i < d->layers; i++) {
        const int next = i + 1 < d->layers ? d->hidden : d->e->classes;
        times(x, at(d->w, v, "weight", i), width, next, y);
        for (int j = 0; j < next; j++) {
            y[j] += at(d->w, v, "bias", i)[j];
            x[j] = i + 1 < d->layers ? gelu(y[j]) : y[j];
        }
        width = next;
    }
    return cross_entropy(x, d->e->classes, d->e->label[0]);
}

static void dense_gradient_of(const sr_kind *kind, int depth)
{
    char why[APP_WHY];
    sr_settings s = tiny_settings(TRN_F32);
    s.depth = depth;
    const sr_examples *e = kind->data(&s, why);
    for (int64_t i = 1; i < e->train; i++) {
        memcpy(e->x + i * e->features, e->x, (size_t)e->features * sizeof *e->x);
        e->label[i] = e->label[0];
    }
    sr_model *m = kind->make(&s, &sr_arms[0], 5, e);
    const dense d = { kind->weights(m), e, depth + 1, s.hidden };
    double *gradient = gradient_of(kind, m);
    compare_gradient(d.w, dense_loss, &d, gradient, 1e-4);
    free(gradient);
    kind->free(m);
    kind->free_data(e);
}

static void dense_gradients(void **state)
{
    (void)state;
    dense_gradient_of(&sr_logistic, 0);
    dense_gradient_of(&sr_mlp, 1);
    dense_gradient_of(&sr_mlp, 3);
}

/* ---- narrow operands: the same gradient, roughly; and not the same ---- */

static double cosine(const double *a, const double *b, int64_t count)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < count; i++) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    return ab / sqrt(aa * bb);
}

static void narrow_gradients(void **state)
{
    (void)state;
    static const double least[SR_ARMS] = { 0.9999, 0.9999, 0.9999, 0.9999, 0.98, 0.95 };
    const sr_settings wide = tiny_settings(TRN_F32), narrow = tiny_settings(TRN_BF16);
    sr_model *m = tf_make(&wide, &sr_arms[0], 5, tiny_text());
    double *exact = gradient_of(&sr_char, m);
    for (int i = 0; i < SR_ARMS; i++) {
        sr_model *n = tf_make(&narrow, &sr_arms[i], 5, tiny_text());
        double *gradient = gradient_of(&sr_char, n);
        const double c = cosine(exact, gradient, n->weights.count);
        if (!(c > least[i] && c < 1 - 1e-9)) fail_msg("%s: cosine %.9f", sr_arms[i].name, c);
        free(gradient);
        tf_free(n);
    }
    free(exact);
    tf_free(m);
}

/* ---- AdamW and what rounding takes ---- */

enum { ROWS = 64, COLUMNS = 160 }; /* more than two chunks */

static void start_weights(sr_weights *w, const sr_arm *arm, double bound)
{
    sr_weights_start(w, arm, TRN_BF16, 11, 2);
    sr_weights_add(w, "matrix", -1, SR_MATRIX, ROWS, COLUMNS);
    sr_weights_add(w, "vector", -1, SR_VECTOR, 1, 7);
    sr_weights_finish(w);
    sr_weights_draw(w, 0, bound);
    sr_weights_draw(w, 1, 0);
}

/* A slope that changes little from step to step, split over shards. */
static void fill_gradient(sr_weights *w, int step)
{
    for (int s = 0; s < SR_SHARDS; s++)
        for (int64_t i = 0; i < w->count; i++)
            w->gradient[s][i] = 0.25f * (float)(i % 13 - 6) + 0.01f * (float)((i + step + s) % 7);
}

typedef struct twin {
    double value[ROWS * COLUMNS + 7], first[ROWS * COLUMNS + 7], second[ROWS * COLUMNS + 7];
} twin;

static void twin_step(twin *t, const sr_weights *w, int step, double rate, double decay, double clip)
{
    double square = 0;
    double *g = calloc((size_t)w->count, sizeof *g);
    for (int64_t i = 0; i < w->count; i++) {
        for (int s = 0; s < SR_SHARDS; s++) g[i] += (double)w->gradient[s][i];
        square += g[i] * g[i];
    }
    const double scale = clip > 0 && sqrt(square) > clip ? clip / sqrt(square) : 1;
    for (int64_t i = 0; i < w->count; i++) {
        const double d = g[i] * scale;
        t->first[i] = 0.9 * t->first[i] + 0.1 * d;
        t->second[i] = 0.95 * t->second[i] + 0.05 * d * d;
        const double m = t->first[i] / (1 - pow(0.9, step)), v = t->second[i] / (1 - pow(0.95, step));
        t->value[i] -= rate * (m / (sqrt(v) + 1e-8) + (i < ROWS * COLUMNS ? decay * t->value[i] : 0));
    }
    free(g);
}

static void adamw_is_adamw(void **state)
{
    (void)state;
    static twin t;
    sr_weights w;
    start_weights(&w, &sr_arms[0], 0.5);
    for (int64_t i = 0; i < w.count; i++) t.value[i] = (double)w.value[i];
    for (int step = 1; step <= 30; step++) {
        const sr_update how = { 1e-3, 0.1, 2, step };
        fill_gradient(&w, step);
        twin_step(&t, &w, step, 1e-3, 0.1, 2);
        sr_adamw(&w, &how);
    }
    for (int64_t i = 0; i < w.count; i++) assert_true(fabs((double)w.value[i] - t.value[i]) < 3e-6);
    sr_weights_free(&w);
}

typedef struct outcome {
    double off, whole; /* root mean square from f32's weights; whole: with what Kahan's sums keep */
    double mean_off, arrived, lost;
    bool stored; /* all weights are numbers of the arm's format */
} outcome;

static outcome train_weights(const sr_arm *arm, const float *reference, float *result)
{
    sr_weights w;
    outcome o = { 0, 0, 0, 0, 0, true };
    start_weights(&w, arm, 0.5);
    for (int step = 1; step <= 100; step++) {
        const sr_update how = { 1e-4, 0, 0, step };
        fill_gradient(&w, step);
        sr_adamw(&w, &how);
    }
    const sr_motion motion = sr_take_motion(&w);
    for (int64_t i = 0; i < w.count; i++) {
        const double off = reference ? (double)w.value[i] - (double)reference[i] : 0;
        const double whole = off + (double)trn_bf16_to_f32(w.rest[i]);
        o.off += off * off / (double)w.count;
        o.whole += whole * whole / (double)w.count;
        o.mean_off += off * (double)(i % 13 - 6) / (double)w.count; /* along the slope */
        if (arm->weights == TRN_BF16) o.stored &= trn_bf16_to_f32(((uint16_t *)w.stored)[i]) == w.value[i];
        if (arm->weights == TRN_BF16) o.stored &= trn_bf16_to_f32(trn_bf16_from_f32(w.value[i])) == w.value[i];
    }
    o.off = sqrt(o.off);
    o.whole = sqrt(o.whole);
    o.arrived = motion.along / motion.square;
    o.lost = motion.unmoved / motion.updates;
    memcpy(result, w.value, (size_t)w.count * sizeof *result);
    sr_weights_free(&w);
    return o;
}

/* 0.01 in all, in steps of 1e-4: less than half a place for weights above 2^-5. */
static void rounding_takes_updates(void **state)
{
    (void)state;
    static float f32[ROWS * COLUMNS + 7], other[ROWS * COLUMNS + 7];
    const outcome exact = train_weights(&sr_arms[0], NULL, f32), rne = train_weights(&sr_arms[1], f32, other),
                  sr = train_weights(&sr_arms[2], f32, other), kahan = train_weights(&sr_arms[3], f32, other);
    assert_true(exact.stored && rne.stored && sr.stored && kahan.stored);
    assert_true(fabs(exact.arrived - 1) < 1e-4 && exact.lost < 0.01);
    assert_true(rne.lost > 0.8 && rne.arrived < 0.2 && rne.off > 8e-3);
    assert_true(sr.lost > 0.7 && fabs(sr.arrived - 1) < 0.02 && sr.off < 5e-3);
    assert_true(kahan.lost > 0.7 && fabs(kahan.arrived - 1) < 0.03 && kahan.off < 1e-3 && kahan.whole < 6e-5);
    assert_true(fabs(sr.mean_off) < 3e-4 && fabs(rne.mean_off) > 1e-2); /* unbiased, and not */
}

/* ---- no random bit is used twice ---- */

/* Which of equal weights a step of equal updates moved. */
static void moved_by(int steps, bool *moved)
{
    sr_weights w;
    start_weights(&w, &sr_arms[2], 0);
    for (int step = 1; step <= steps; step++) {
        const sr_update how = { step == steps ? 2e-3 : 0, 0, 0, step };
        for (int s = 0; s < SR_SHARDS; s++)
            for (int64_t i = 0; i < w.count; i++) w.gradient[s][i] = 1;
        sr_adamw(&w, &how);
    }
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) moved[i] = w.value[i] != 1;
    sr_weights_free(&w);
}

static int differences(const bool *a, const bool *b, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) n += a[i] != b[i];
    return n;
}

static void random_bits_are_fresh(void **state)
{
    (void)state;
    static bool one[ROWS * COLUMNS], again[ROWS * COLUMNS], two[ROWS * COLUMNS];
    moved_by(1, one);
    moved_by(1, again);
    moved_by(2, two);
    assert_int_equal(differences(one, again, ROWS * COLUMNS), 0);
    assert_true(differences(one, two, ROWS * COLUMNS) > ROWS * COLUMNS / 4);
    for (int lag = 1024; lag < ROWS * COLUMNS; lag += 1024) /* chunks of the update among them */
        assert_true(differences(one, one + lag, ROWS * COLUMNS - lag) > (ROWS * COLUMNS - lag) / 4);
}

/* Stochastic casts of the same weights in two steps, and of one step twice. */
static void casts_are_fresh(void **state)
{
    (void)state;
    const sr_settings s = tiny_settings(TRN_BF16);
    sr_model *m = tf_make(&s, &sr_arms[5], 5, tiny_text());
    sr_workspace *workspace[SR_SHARDS];
    const sr_tensor *up = &m->weights.tensor[m->block[0].up];
    uint8_t code[3][WIDTH * 4 * WIDTH];
    for (int i = 0; i < SR_SHARDS; i++) workspace[i] = &m->shard[i].s.workspace;
    for (int i = 0; i < 3; i++) {
        sr_weights_cast(&m->weights, workspace, i == 2 ? 1 : i + 1);
        memcpy(code[i], up->operand.view.data, sizeof code[i]);
    }
    assert_memory_equal(code[0], code[2], sizeof code[0]);
    assert_memory_not_equal(code[0], code[1], sizeof code[0]);
    tf_free(m);
}

/* ---- rates, sums ---- */

static void rates(void **state)
{
    (void)state;
    sr_settings s = tiny_settings(TRN_BF16);
    s.steps = 100, s.warmup = 10, s.rate_end = 0.1;
    assert_true(fabs(sr_rate_at(&s, 1, 1) - 0.1) < 1e-7 && fabs(sr_rate_at(&s, 1, 10) - 1) < 1e-7);
    assert_true(fabs(sr_rate_at(&s, 1, 55) - 0.55) < 1e-6 && fabs(sr_rate_at(&s, 1, 100) - 0.1) < 1e-6);
}

static void harmonic_is(trn_format format, double value, int64_t term)
{
    static sr_series s;
    sr_harmonic(format, &s);
    assert_true(fabs(s.value - value) < 5e-7);
    assert_int_equal(s.term, term);
}

static void sums(void **state)
{
    (void)state;
    harmonic_is(TRN_F32, 15.403683, 2097152);
    harmonic_is(TRN_TF32, 7.0859375, 513);
    harmonic_is(TRN_F16, 7.0859375, 513);
    harmonic_is(TRN_BF16, 5.0625, 65);
    harmonic_is(TRN_F8_E3M4, 3.5, 16);
    harmonic_is(TRN_F8_E4M3, 3.0, 9);
    harmonic_is(TRN_F8_E4M3FN, 3.0, 9);
    harmonic_is(TRN_F8_E5M2, 2.0, 5);
    assert_true(sr_half_loop(TRN_F16, TRN_NEAREST_EVEN, 1, NULL) == 1024);
    assert_true(sr_half_loop(TRN_BF16, TRN_NEAREST_EVEN, 1, NULL) == 1024);
    assert_true(sr_half_loop(TRN_F32, TRN_NEAREST_EVEN, 1, NULL) == 2048);
    const sr_moments half = sr_half_loops(TRN_F16, 1, 400), wide = sr_half_loops(TRN_BF16, 1, 400);
    assert_true(fabs(half.mean - 2048) < 5 && fabs(half.deviation - 22.9) < 3);
    assert_true(half.low > 2048 - 115 && half.high < 2048 + 115);
    assert_true(fabs(wide.mean - 2047.8) < 18 && fabs(wide.deviation - 88.7) < 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformer_gradient),
        cmocka_unit_test(dense_gradients),
        cmocka_unit_test(narrow_gradients),
        cmocka_unit_test(adamw_is_adamw),
        cmocka_unit_test(rounding_takes_updates),
        cmocka_unit_test(random_bits_are_fresh),
        cmocka_unit_test(casts_are_fresh),
        cmocka_unit_test(rates),
        cmocka_unit_test(sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

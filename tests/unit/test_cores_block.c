/* test_cores_block.c - the gradients of examples/cores' block, held against a twin that has none of its own.
 * SPDX-License-Identifier: MIT
 *
 * The twin computes only the loss, the sum of dy y, by definition: weights of all ranks at once, row by row, binary64.
 * Central differences of it are compared with what the kernel stores, and with the reference that the program judges
 * the kernel by: both repeat the same formulas of the way back, and would be wrong together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cores/block.h"

const char app_name[] = "test_cores_block";

#define BLOCK_ROW(name, format, rows, columns, kind) { #name, format, BLOCK_##kind },
const block_row block_table[BLOCK_COUNT] = { BLOCK_TENSORS(BLOCK_ROW) };

/* Two tiles of tokens, the second a short one; two heads on each rank. */
enum { RANKS = 2, TOKENS = 130, WIDTH = 6, OWN_HEADS = 2, HEAD = 3, OWN_Q = OWN_HEADS * HEAD, OWN_FFN = 4 };

/* ---- the block ---- */

static void begin(block *b, block_rank *rank, double x_sigma)
{
    static const int64_t T = TOKENS, D = WIDTH, Q = OWN_Q, F = OWN_FFN, H = OWN_HEADS;
#define BLOCK_SHAPE(name, format, rows, columns, kind) { rows, columns },
    const int64_t shape[BLOCK_COUNT][2] = { BLOCK_TENSORS(BLOCK_SHAPE) };
    memset(b, 0, sizeof *b);
    b->size = (block_sizes){ .tokens = T,
                             .width = D,
                             .heads = RANKS * H,
                             .d = HEAD,
                             .ffn = RANKS * F,
                             .own_heads = H,
                             .own_q = Q,
                             .own_ffn = F,
                             .ranks = RANKS };
    b->rank = rank;
    b->x = cores_matrix(TRN_BF16, T, D), b->dy = cores_matrix(TRN_BF16, T, D);
    b->gamma1 = cores_matrix(TRN_BF16, 1, D), b->gamma2 = cores_matrix(TRN_BF16, 1, D);
    cores_fill(b->x, 5, 0, 0, x_sigma);
    cores_fill(b->dy, 5, 1, 0, 1);
    cores_fill(b->gamma1, 5, 2, 1, 0.3);
    cores_fill(b->gamma2, 5, 3, 1, 0.3);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < BLOCK_COUNT; i++) {
            rank[r].t[i] = cores_matrix(block_table[i].format, shape[i][0], shape[i][1]);
            if (block_table[i].kind == BLOCK_WEIGHT)
                cores_fill(rank[r].t[i], 5, (uint64_t)(16 + r * BLOCK_COUNT + i), 0, 0.6);
        }
}

static void end(block *b)
{
    const trn_tensor shared[] = { b->x, b->dy, b->gamma1, b->gamma2 };
    for (int i = 0; i < 4; i++) cores_free_matrix(shared[i]);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < BLOCK_COUNT; i++) cores_free_matrix(b->rank[r].t[i]);
}

/* ---- the twin ---- */

typedef struct twin {
    double x[TOKENS][WIDTH], dy[TOKENS][WIDTH], gamma[2][WIDTH];
    double wqkv[RANKS][WIDTH][3][OWN_HEADS][HEAD], wo[RANKS][OWN_HEADS][HEAD][WIDTH];
    double wgu[RANKS][WIDTH][2][OWN_FFN], wd[RANKS][OWN_FFN][WIDTH];
    double n[TOKENS][WIDTH], z[TOKENS][WIDTH], qkv[3][TOKENS][HEAD];
} twin;

static twin *twin_of(const block *b)
{
    twin *w = (twin *)app_memory(1, sizeof *w);
    cores_values(b->x, w->x[0]);
    cores_values(b->dy, w->dy[0]);
    cores_values(b->gamma1, w->gamma[0]);
    cores_values(b->gamma2, w->gamma[1]);
    for (int r = 0; r < RANKS; r++) {
        cores_values(b->rank[r].t[BLOCK_wqkv], w->wqkv[r][0][0][0]);
        cores_values(b->rank[r].t[BLOCK_wo], w->wo[r][0][0]);
        cores_values(b->rank[r].t[BLOCK_wgu], w->wgu[r][0][0]);
        cores_values(b->rank[r].t[BLOCK_wd], w->wd[r][0]);
    }
    return w;
}

static void normalize(double n[WIDTH], const double x[WIDTH], const double gamma[WIDTH])
{
    double mean = 0;
    for (int i = 0; i < WIDTH; i++) mean += x[i] * x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++) n[i] = gamma[i] * x[i] / sqrt(mean + 0x1p-20);
}

/* z += softmax(q k^T / sqrt(d)) v times the head's rows of Wo. */
static void add_head(twin *w, int r, int h)
{
    for (int which = 0; which < 3; which++)
        for (int t = 0; t < TOKENS; t++)
            for (int i = 0; i < HEAD; i++) {
                double *to = &w->qkv[which][t][i];
                *to = 0;
                for (int j = 0; j < WIDTH; j++) *to += w->n[t][j] * w->wqkv[r][j][which][h][i];
            }
    for (int t = 0; t < TOKENS; t++) {
        double sum = 0, out[HEAD] = { 0 };
        for (int k = 0; k <= t; k++) {
            double score = 0;
            for (int i = 0; i < HEAD; i++) score += w->qkv[0][t][i] * w->qkv[1][k][i];
            const double p = exp(score / sqrt((double)HEAD));
            sum += p;
            for (int i = 0; i < HEAD; i++) out[i] += p * w->qkv[2][k][i];
        }
        for (int i = 0; i < HEAD; i++)
            for (int j = 0; j < WIDTH; j++) w->z[t][j] += out[i] / sum * w->wo[r][h][i][j];
    }
}

/* y += what unit i of rank r makes of the normalized row. */
static void add_unit(const twin *w, int r, int i, const double n[WIDTH], double y[WIDTH])
{
    double gate = 0, up = 0;
    for (int j = 0; j < WIDTH; j++) gate += n[j] * w->wgu[r][j][0][i];
    for (int j = 0; j < WIDTH; j++) up += n[j] * w->wgu[r][j][1][i];
    for (int j = 0; j < WIDTH; j++) y[j] += gate / (1 + exp(-gate)) * up * w->wd[r][i][j];
}

/* y may be null. */
static double loss_of(twin *w, double y[TOKENS][WIDTH])
{
    double loss = 0, n[WIDTH], row[WIDTH];
    for (int t = 0; t < TOKENS; t++) normalize(w->n[t], w->x[t], w->gamma[0]);
    memcpy(w->z, w->x, sizeof w->z);
    for (int r = 0; r < RANKS; r++)
        for (int h = 0; h < OWN_HEADS; h++) add_head(w, r, h);
    for (int t = 0; t < TOKENS; t++) {
        normalize(n, w->z[t], w->gamma[1]);
        memcpy(row, w->z[t], sizeof row);
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < OWN_FFN; i++) add_unit(w, r, i, n, row);
        for (int j = 0; j < WIDTH; j++) loss += w->dy[t][j] * row[j];
        if (y) memcpy(y[t], row, sizeof row);
    }
    return loss;
}

static double slope(twin *w, double *parameter, double h)
{
    const double kept = *parameter;
    *parameter = kept + h;
    const double above = loss_of(w, NULL);
    *parameter = kept - h;
    const double below = loss_of(w, NULL);
    *parameter = kept;
    return (above - below) / (2 * h);
}

/* ---- kernel and reference against it ---- */

typedef struct sums {
    double signal, noise;
} sums;

/* The gradient that the kernel has stored, against the slopes. */
static void compare(sums *s, trn_tensor stored, twin *w, double *parameter, double h)
{
    const int64_t n = trn_tensor_elements(stored);
    double *got = (double *)app_memory((size_t)n, sizeof *got);
    cores_values(stored, got);
    for (int64_t i = 0; i < n; i++) {
        const double exact = slope(w, parameter + i, h);
        s->signal += exact * exact;
        s->noise += (got[i] - exact) * (got[i] - exact);
    }
    free(got);
}

static void compare_y(sums *s, trn_tensor stored, twin *w)
{
    static double got[TOKENS][WIDTH], exact[TOKENS][WIDTH];
    cores_values(stored, got[0]);
    loss_of(w, exact);
    for (int t = 0; t < TOKENS; t++)
        for (int j = 0; j < WIDTH; j++) {
            s->signal += exact[t][j] * exact[t][j];
            s->noise += (got[t][j] - exact[t][j]) * (got[t][j] - exact[t][j]);
        }
}

/* The reference had to have the twin's values for both sums to be the same: a difference of 1e-6 would show. */
static void check(const cores_errors *e, const sums *s)
{
    if (getenv("TRN_VERBOSE"))
        print_message("%-8s rms %.3e (at most %.3e), signal x %.9f, noise x %.9f\n", e->name,
                      sqrt(s->noise / s->signal), cores_rms_most(e), e->signal / s->signal, e->noise / s->noise);
    assert_true(s->signal > 0 && cores_passed(e));
    assert_true(sqrt(s->noise / s->signal) <= cores_rms_most(e));
    assert_true(fabs(e->signal / s->signal - 1) < 1e-6);
    assert_true(fabs(e->noise / s->noise - 1) < 1e-4);
}

static void check_all(double x_sigma)
{
    static block b;
    static block_rank rank[RANKS];
    static cores_run run;
    const cores_options o = { .system = TRN_TRN2_48XLARGE, .chips = RANKS, .ranks = RANKS, .threads = 2, .seed = 1 };
    const double h = 0x1p-16;
    cores_errors error[BLOCK_CHECKED];
    sums s[BLOCK_CHECKED] = { { 0, 0 } };
    begin(&b, rank, x_sigma);
    assert_int_equal(cores_start(&run, &o, block_kernel, &b), APP_OK);
    assert_int_equal(block_check(&b, &run, error), BLOCK_CHECKED);
    twin *w = twin_of(&b);
    compare_y(&s[0], rank[0].t[BLOCK_y], w);
    compare(&s[1], rank[0].t[BLOCK_dx], w, w->x[0], h * x_sigma);
    compare(&s[2], rank[0].t[BLOCK_dgamma1], w, w->gamma[0], h);
    compare(&s[3], rank[0].t[BLOCK_dgamma2], w, w->gamma[1], h);
    for (int r = 0; r < RANKS; r++) {
        compare(&s[4], rank[r].t[BLOCK_dwqkv], w, w->wqkv[r][0][0][0], h);
        compare(&s[5], rank[r].t[BLOCK_dwo], w, w->wo[r][0][0], h);
        compare(&s[6], rank[r].t[BLOCK_dwgu], w, w->wgu[r][0][0], h);
        compare(&s[7], rank[r].t[BLOCK_dwd], w, w->wd[r][0], h);
    }
    for (int i = 0; i < BLOCK_CHECKED; i++) check(&error[i], &s[i]);
    free(w);
    cores_finish(&run);
    end(&b);
}

static void test_gradients_are_slopes(void **state)
{
    (void)state;
    check_all(1);
}

/* As small as the square root of what the norm adds to the mean square. */
static void test_epsilon_counts(void **state)
{
    (void)state;
    check_all(0x1p-10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gradients_are_slopes),
                                        cmocka_unit_test(test_epsilon_counts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

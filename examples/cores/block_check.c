/* block_check.c - the block in binary64 on the host: without a rounding, and with the kernel's roundings to BF16.
 * SPDX-License-Identifier: MIT
 *
 * The second run says what roundings make of the result: everywhere where the kernel stores BF16 it rounds, and
 * nowhere else. So errors beyond those of this run, but for a margin, are the kernel's fault. Sums over ranks go from
 * one to the next, rounded as often as the all-reduce rounds them: a ring after each rank, an algorithm in which all
 * send to all after sixteen, as many as DMA sums at once.
 */
#include "block.h"

#include <math.h>
#include <string.h>

#include "attention.h"

/* What a run gives, in the order of the table of errors. */
enum { Y, DX, DGAMMA1, DGAMMA2, DWQKV, DWO, DWGU, DWD };

static const struct {
    const char *name;
    int tensor;
    bool everyones; /* each rank has its own part; else all have the same */
} result_row[BLOCK_CHECKED] = { { "y", BLOCK_y, false },
                                { "dx", BLOCK_dx, false },
                                { "dgamma1", BLOCK_dgamma1, false },
                                { "dgamma2", BLOCK_dgamma2, false },
                                { "dWqkv", BLOCK_dwqkv, true },
                                { "dWo", BLOCK_dwo, true },
                                { "dWgu", BLOCK_dwgu, true },
                                { "dWd", BLOCK_dwd, true } };

/* What a rank keeps for the way back. */
typedef struct kept {
    double *wqkv, *wo, *wgu, *wd, *qkv, *heads, *gu, *hidden, *low, *sum;
} kept;

typedef struct reference {
    const block *b;
    bool rounds;
    int every; /* ranks between two roundings of a sum over all */
    int64_t T, D, Q, F, H, d;
    double *x, *gamma1, *gamma2, *dy, *n1, *n2, *z, *inverse1, *inverse2;
    double *part, *total, *work, *dqkv, *dheads, *dgu, *dhidden, *dz, *p, *dp;
    kept *rank;
    double *result[BLOCK_CHECKED];
    void *memory[64];
    int memories;
} reference;

static double *numbers(reference *r, int64_t n)
{
    double *p = (double *)app_memory((size_t)n, sizeof(double));
    return r->memories < 64 ? (r->memory[r->memories++] = p, p) : p;
}

static double *numbers_of(reference *r, trn_tensor t)
{
    double *p = numbers(r, trn_tensor_elements(t));
    cores_values(t, p);
    return p;
}

static void round_all(const reference *r, double *x, int64_t n)
{
    for (int64_t i = 0; r->rounds && i < n; i++) x[i] = cores_round(x[i], true);
}

/* c [m, n] = a b, with the strides of a and b; b's and c's rows are next to each other. */
static void dots(double *c, int64_t c_row, const double *a, int64_t a_row, int64_t a_column, const double *b,
                 int64_t b_row, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        double *to = c + i * c_row;
        memset(to, 0, (size_t)n * sizeof *to);
        for (int64_t q = 0; q < k; q++) {
            const double x = a[i * a_row + q * a_column], *from = b + q * b_row;
            for (int64_t j = 0; j < n; j++) to[j] += x * from[j];
        }
    }
}

/* c [m, n] = a b^T, rows of a and b next to each other. */
static void dots_of_rows(double *c, int64_t c_row, const double *a, int64_t a_row, const double *b, int64_t b_row,
                         int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum[4] = { 0 };
            for (int64_t q = 0; q < k; q++) sum[q & 3] += a[i * a_row + q] * b[j * b_row + q];
            c[i * c_row + j] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
}

/* ---- parts that all ranks repeat ---- */

static void norm_rows(const reference *r, double *n, double *inverse, const double *x, const double *gamma)
{
    for (int64_t t = 0; t < r->T; t++) {
        double square = 0;
        for (int64_t i = 0; i < r->D; i++) square += x[t * r->D + i] * x[t * r->D + i];
        inverse[t] = 1 / sqrt(square / (double)r->D + (double)NORM_EPSILON);
        for (int64_t i = 0; i < r->D; i++)
            n[t * r->D + i] = cores_round(x[t * r->D + i] * inverse[t] * gamma[i], r->rounds);
    }
}

static void norm_rows_back(const reference *r, double *dx, double *dgamma, const double *x, const double *gamma,
                           const double *inverse, const double *dn, const double *past)
{
    memset(dgamma, 0, (size_t)r->D * sizeof *dgamma);
    for (int64_t t = 0; t < r->T; t++) {
        const double *row = x + t * r->D, *g = dn + t * r->D;
        double dot = 0;
        for (int64_t i = 0; i < r->D; i++) dot += g[i] * gamma[i] * row[i];
        const double factor = -dot * inverse[t] * inverse[t] * inverse[t] / (double)r->D;
        for (int64_t i = 0; i < r->D; i++) {
            dgamma[i] += g[i] * row[i] * inverse[t];
            dx[t * r->D + i] =
                cores_round(g[i] * gamma[i] * inverse[t] + row[i] * factor + past[t * r->D + i], r->rounds);
        }
    }
}

/* total += part, as one rank after the other adds its own. */
static void add_part(const reference *r, int rank)
{
    const bool rounds = r->rounds && rank && (rank % r->every == 0 || rank + 1 == r->b->size.ranks);
    for (int64_t i = 0; i < r->T * r->D; i++) {
        const double part = cores_round(r->part[i], r->rounds);
        r->total[i] = cores_round(rank ? r->total[i] + part : part, rounds);
    }
}

/* ---- one rank, forward ---- */

static void head_forward(const reference *r, kept *k, int64_t h)
{
    const int64_t row = 3 * r->Q, d = r->d;
    const double *q = k->qkv + h * d, *keys = q + r->Q, *v = keys + r->Q, scale = (double)attention_scale(d);
    for (int64_t t = 0; t < r->T; t++) {
        double low = HUGE_VAL, sum = 0;
        dots_of_rows(r->p, r->T, q + t * row, row, keys, row, 1, t + 1, d);
        for (int64_t j = 0; j <= t; j++) low = fmin(low, -scale * r->p[j]);
        for (int64_t j = 0; j <= t; j++) {
            const double p = exp(scale * r->p[j] + low);
            sum += p;
            r->p[j] = cores_round(p, r->rounds);
        }
        double *out = k->heads + t * r->Q + h * d;
        dots(out, d, r->p, r->T, 1, v, row, 1, d, t + 1);
        for (int64_t i = 0; i < d; i++) out[i] = cores_round(out[i] / sum, r->rounds);
        k->low[h * r->T + t] = low, k->sum[h * r->T + t] = sum;
    }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void attention_part(const reference *r, kept *k)
{
    dots(k->qkv, 3 * r->Q, r->n1, r->D, 1, k->wqkv, 3 * r->Q, r->T, 3 * r->Q, r->D);
    round_all(r, k->qkv, r->T * 3 * r->Q);
    for (int64_t h = 0; h < r->H; h++) head_forward(r, k, h);
    dots(r->part, r->D, k->heads, r->Q, 1, k->wo, r->D, r->T, r->D, r->Q);
}

static void mlp_part(const reference *r, kept *k)
{
    dots(k->gu, 2 * r->F, r->n2, r->D, 1, k->wgu, 2 * r->F, r->T, 2 * r->F, r->D);
    round_all(r, k->gu, r->T * 2 * r->F);
    for (int64_t t = 0; t < r->T; t++)
        for (int64_t i = 0; i < r->F; i++) {
            const double g = k->gu[t * 2 * r->F + i], u = k->gu[t * 2 * r->F + r->F + i];
            k->hidden[t * r->F + i] = cores_round(g * sigmoid(g) * u, r->rounds);
        }
    dots(r->part, r->D, k->hidden, r->F, 1, k->wd, r->D, r->T, r->D, r->F);
}

static void forward(reference *r)
{
    const int64_t all = r->T * r->D;
    norm_rows(r, r->n1, r->inverse1, r->x, r->gamma1);
    for (int i = 0; i < r->b->size.ranks; i++) {
        attention_part(r, &r->rank[i]);
        add_part(r, i);
    }
    for (int64_t i = 0; i < all; i++) r->z[i] = cores_round(r->x[i] + r->total[i], r->rounds);
    norm_rows(r, r->n2, r->inverse2, r->z, r->gamma2);
    for (int i = 0; i < r->b->size.ranks; i++) {
        mlp_part(r, &r->rank[i]);
        add_part(r, i);
    }
    for (int64_t i = 0; i < all; i++) r->result[Y][i] = cores_round(r->z[i] + r->total[i], r->rounds);
}

/* ---- one rank, backward ---- */

static void mlp_part_back(const reference *r, kept *k, int rank)
{
    const int64_t T = r->T, D = r->D, F = r->F;
    dots_of_rows(r->dhidden, F, r->dy, D, k->wd, D, T, F, D);
    round_all(r, r->dhidden, T * F);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < F; i++) {
            const double g = k->gu[t * 2 * F + i], u = k->gu[t * 2 * F + F + i], s = sigmoid(g);
            const double dh = r->dhidden[t * F + i];
            r->dgu[t * 2 * F + i] = cores_round(dh * u * s * (1 + g * (1 - s)), r->rounds);
            r->dgu[t * 2 * F + F + i] = cores_round(dh * g * s, r->rounds);
        }
    dots_of_rows(r->part, D, r->dgu, 2 * F, k->wgu, 2 * F, T, D, 2 * F);
    dots(r->result[DWD] + rank * F * D, D, k->hidden, 1, F, r->dy, D, F, D, T);
    dots(r->result[DWGU] + rank * D * 2 * F, 2 * F, r->n2, 1, D, r->dgu, 2 * F, D, 2 * F, T);
}

/* r->p [T, T] becomes what stands for p in p^T dout, r->dp what stands for ds. */
static void head_back_rows(const reference *r, const kept *k, int64_t h)
{
    const int64_t row = 3 * r->Q, d = r->d, T = r->T;
    const double *q = k->qkv + h * d, *keys = q + r->Q, *v = keys + r->Q, scale = (double)attention_scale(d);
    for (int64_t t = 0; t < T; t++) {
        const double *dout = r->dheads + t * r->Q + h * d, *out = k->heads + t * r->Q + h * d;
        double dot = 0;
        for (int64_t i = 0; i < d; i++) dot += dout[i] * out[i];
        dots_of_rows(r->p + t * T, T, q + t * row, row, keys, row, 1, t + 1, d);
        dots_of_rows(r->dp + t * T, T, dout, d, v, row, 1, t + 1, d);
        for (int64_t j = 0; j < T; j++) {
            double p = j <= t ? exp(scale * r->p[t * T + j] + k->low[h * T + t]) / k->sum[h * T + t] : 0;
            r->dp[t * T + j] = j <= t ? cores_round(p * (r->dp[t * T + j] - dot), r->rounds) : 0;
            r->p[t * T + j] = cores_round(p, r->rounds);
        }
    }
}

static void head_back(const reference *r, const kept *k, int64_t h)
{
    const int64_t row = 3 * r->Q, d = r->d, T = r->T;
    double *dq = r->dqkv + h * d, *dk = dq + r->Q, *dv = dk + r->Q;
    head_back_rows(r, k, h);
    dots(dq, row, r->dp, T, 1, k->qkv + r->Q + h * d, row, T, d, T);
    dots(dk, row, r->dp, 1, T, k->qkv + h * d, row, T, d, T);
    dots(dv, row, r->p, 1, T, r->dheads + h * d, r->Q, T, d, T);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < d; i++) {
            dq[t * row + i] *= (double)attention_scale(d);
            dk[t * row + i] *= (double)attention_scale(d);
        }
}

static void attention_part_back(const reference *r, kept *k, int rank)
{
    const int64_t T = r->T, D = r->D, Q = r->Q;
    dots_of_rows(r->dheads, Q, r->dz, D, k->wo, D, T, Q, D);
    round_all(r, r->dheads, T * Q);
    for (int64_t h = 0; h < r->H; h++) head_back(r, k, h);
    round_all(r, r->dqkv, T * 3 * Q);
    dots_of_rows(r->part, D, r->dqkv, 3 * Q, k->wqkv, 3 * Q, T, D, 3 * Q);
    dots(r->result[DWO] + rank * Q * D, D, k->heads, 1, Q, r->dz, D, Q, D, T);
    dots(r->result[DWQKV] + rank * D * 3 * Q, 3 * Q, r->n1, 1, D, r->dqkv, 3 * Q, D, 3 * Q, T);
}

static void backward(reference *r)
{
    for (int i = 0; i < r->b->size.ranks; i++) {
        mlp_part_back(r, &r->rank[i], i);
        add_part(r, i);
    }
    norm_rows_back(r, r->dz, r->result[DGAMMA2], r->z, r->gamma2, r->inverse2, r->total, r->dy);
    for (int i = 0; i < r->b->size.ranks; i++) {
        attention_part_back(r, &r->rank[i], i);
        add_part(r, i);
    }
    norm_rows_back(r, r->result[DX], r->result[DGAMMA1], r->x, r->gamma1, r->inverse1, r->total, r->dz);
}

/* ---- both runs, and the comparison ---- */

static void begin_rank(reference *r, kept *k, const block_rank *from)
{
    const struct {
        double **to;
        int tensor;
    } weight[] = { { &k->wqkv, BLOCK_wqkv }, { &k->wo, BLOCK_wo }, { &k->wgu, BLOCK_wgu }, { &k->wd, BLOCK_wd } };
    const struct {
        double **to;
        int64_t n;
    } room[] = { { &k->qkv, r->T * 3 * r->Q }, { &k->heads, r->T * r->Q }, { &k->gu, r->T * 2 * r->F },
                 { &k->hidden, r->T * r->F },  { &k->low, r->T * r->H },   { &k->sum, r->T * r->H } };
    for (int i = 0; i < 4; i++) {
        *weight[i].to = (double *)app_memory((size_t)trn_tensor_elements(from->t[weight[i].tensor]), sizeof(double));
        cores_values(from->t[weight[i].tensor], *weight[i].to);
    }
    for (int i = 0; i < 6; i++) *room[i].to = (double *)app_memory((size_t)room[i].n, sizeof(double));
}

/* Of an all-reduce as the kernel has it. */
static int ranks_between_roundings(const cores_run *run, int64_t bytes)
{
    const trn_cores *c = &run->cores;
    const trn_collective_args args = { .net = &c->net,
                                       .op = TRN_ALL_REDUCE,
                                       .bytes = bytes,
                                       .chips = c->args.chips,
                                       .count = c->ranks / c->cores_per_chip,
                                       .ranks_per_chip = c->cores_per_chip };
    trn_cost cost;
    if (!app_worked(trn_collective_cost(&args, &cost), NULL)) return 1;
    return cost.algorithm == TRN_MESH || cost.algorithm == TRN_SWITCH_DIRECT || cost.algorithm == TRN_HIERARCHICAL ? 16
                                                                                                                   : 1;
}

static reference *begin(const block *b, bool rounds, int every)
{
    reference *r = (reference *)app_memory(1, sizeof *r);
    const block_sizes *s = &b->size;
    r->b = b, r->rounds = rounds, r->every = every;
    r->T = s->tokens, r->D = s->width, r->Q = s->own_q, r->F = s->own_ffn, r->H = s->own_heads, r->d = s->d;
    r->x = numbers_of(r, b->x), r->dy = numbers_of(r, b->dy);
    r->gamma1 = numbers_of(r, b->gamma1), r->gamma2 = numbers_of(r, b->gamma2);
    const struct {
        double **to;
        int64_t n;
    } room[] = { { &r->n1, r->T * r->D },     { &r->n2, r->T * r->D },      { &r->z, r->T * r->D },
                 { &r->inverse1, r->T },      { &r->inverse2, r->T },       { &r->part, r->T * r->D },
                 { &r->total, r->T * r->D },  { &r->dz, r->T * r->D },      { &r->dqkv, r->T * 3 * r->Q },
                 { &r->dheads, r->T * r->Q }, { &r->dgu, r->T * 2 * r->F }, { &r->dhidden, r->T * r->F },
                 { &r->p, r->T * r->T },      { &r->dp, r->T * r->T } };
    for (size_t i = 0; i < sizeof room / sizeof room[0]; i++) *room[i].to = numbers(r, room[i].n);
    for (int i = 0; i < BLOCK_CHECKED; i++)
        r->result[i] = numbers(r, trn_tensor_elements(b->rank[0].t[result_row[i].tensor]) *
                                      (result_row[i].everyones ? s->ranks : 1));
    r->rank = (kept *)app_memory((size_t)s->ranks, sizeof *r->rank);
    for (int i = 0; i < s->ranks; i++) begin_rank(r, &r->rank[i], &b->rank[i]);
    return r;
}

static void end(reference *r)
{
    for (int i = 0; i < r->b->size.ranks; i++) {
        double *const p[] = { r->rank[i].wqkv,  r->rank[i].wo, r->rank[i].wgu,    r->rank[i].wd,  r->rank[i].qkv,
                              r->rank[i].heads, r->rank[i].gu, r->rank[i].hidden, r->rank[i].low, r->rank[i].sum };
        for (size_t k = 0; k < sizeof p / sizeof p[0]; k++) free(p[k]);
    }
    for (int i = 0; i < r->memories; i++) free(r->memory[i]);
    free(r->rank);
    free(r);
}

static void compare(const block *b, const trn_cores *c, cores_errors *e, int which, const reference *exact,
                    const reference *rounded)
{
    const int64_t n = trn_tensor_elements(b->rank[0].t[result_row[which].tensor]);
    double *got = (double *)app_memory((size_t)n, sizeof *got);
    memset(e, 0, sizeof *e);
    e->name = result_row[which].name;
    e->roundings = n == b->size.width ? n : b->size.tokens * b->size.width;
    const bool own = result_row[which].everyones; /* y of the first rank that is here, gradients of all */
    for (int i = c->first; i < c->first + (own ? c->here : least(c->here, 1)); i++) {
        cores_values(b->rank[i].t[result_row[which].tensor], got);
        cores_compare(e, got, exact->result[which] + (own ? i * n : 0), rounded->result[which] + (own ? i * n : 0), n);
    }
    free(got);
}

int block_check(const block *b, const cores_run *run, cores_errors *errors)
{
    reference *both[2];
    const int every = ranks_between_roundings(run, 2 * b->size.tokens * b->size.width);
    const int count = b->forward_only ? 1 : BLOCK_CHECKED;
    for (int i = 0; i < 2; i++) {
        both[i] = begin(b, i == 1, every);
        forward(both[i]);
        if (!b->forward_only) backward(both[i]);
    }
    for (int i = 0; i < count; i++) compare(b, &run->cores, &errors[i], i, both[0], both[1]);
    for (int i = 0; i < 2; i++) end(both[i]);
    return count;
}

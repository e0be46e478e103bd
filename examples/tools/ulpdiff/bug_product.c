/* bug_product.c - with operands at hand: another product (transposed, out of step), a part of K missing or twice.
 * SPDX-License-Identifier: MIT
 *
 * Hypotheses are A plus what the product would change, on a grid of the outputs: whatever else A holds stays.
 */
#include "bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 24, SCREEN = 6 }; /* outputs of the grid, each way; those that are looked at first */

typedef struct bug_grid { /* some rows of x and columns of w, and what a hypothesis has there */
    bug_case part;
    int64_t m, n, k;
    double *x, *w, *plain, *value; /* [m, k], [k, n], [m, n] */
} bug_grid;

static double x_at(const ud_product *p, int64_t i, int64_t k) { return (double)p->a[i * p->k + k]; }
static double w_at(const ud_product *p, int64_t k, int64_t j) { return (double)p->b[k * p->n + j]; }

static void multiply(const double *x, const double *w, int64_t m, int64_t n, int64_t k, double *out)
{
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < k; q++)
            for (int64_t j = 0; j < n; j++) out[i * n + j] += x[i * k + q] * w[q * n + j];
}

static void open_grid(const bug_case *c, int64_t m, int64_t n, bug_grid *g)
{
    const ud_product *p = c->product;
    memset(g, 0, sizeof *g);
    g->m = m < c->m ? m : c->m;
    g->n = n < c->n ? n : c->n;
    g->k = p->k;
    int64_t *row = ud_spread(c->m, g->m), *column = ud_spread(c->n, g->n);
    bug_case_part(c, row, g->m, column, g->n, &g->part);
    g->x = app_memory((size_t)(g->m * g->k), sizeof *g->x);
    g->w = app_memory((size_t)(g->k * g->n), sizeof *g->w);
    g->plain = app_memory((size_t)(g->m * g->n), sizeof *g->plain);
    g->value = app_memory((size_t)(g->m * g->n), sizeof *g->value);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t k = 0; k < g->k; k++) g->x[i * g->k + k] = x_at(p, g->part.row[i], k);
    for (int64_t k = 0; k < g->k; k++)
        for (int64_t j = 0; j < g->n; j++) g->w[k * g->n + j] = w_at(p, k, g->part.column[j]);
    multiply(g->x, g->w, g->m, g->n, g->k, g->plain);
    free(row);
    free(column);
}

static void close_grid(bug_grid *g)
{
    bug_case_close(&g->part);
    free(g->x);
    free(g->w);
    free(g->plain);
    free(g->value);
}

static double predict_grid(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_grid *g = what;
    const int64_t at = i * g->n + j;
    *size = bug_size(c, i, j);
    return c->a[at] + (g->value[at] - g->plain[at]) / c->unit;
}

static bug_finding *try_grid(bug_search *s, const bug_grid *g, int cost, int64_t freedom)
{
    const bug_case *keep = s->c;
    s->c = &g->part;
    bug_finding *f = bug_try(s, predict_grid, g, cost, freedom, 0);
    s->c = keep;
    return f;
}

/* Is it A that is no product of the operands, and B that is? */
bool bug_other_side(const bug_case *c)
{
    if (!c->product) return false;
    bug_grid g;
    double off[2] = { 0, 0 };
    open_grid(c, SIDE, SIDE, &g);
    for (int64_t i = 0; i < g.m * g.n; i++) {
        const double size = bug_size(&g.part, i / g.n, i % g.n), value = g.plain[i] / c->unit;
        if (!(size > 0)) continue;
        const double a = (g.part.a[i] - value) / size, b = (g.part.b[i] - value) / size;
        off[0] += a * a;
        off[1] += b * b;
    }
    const double count = (double)(g.m * g.n);
    close_grid(&g);
    return sqrt(off[0] / count) > 0.1 && off[1] < 0.01 * off[0];
}

/* ---- other operands ---- */

static int64_t w_turned(const ud_product *p, int64_t k, int64_t j) { return j * p->n + k; }
static int64_t w_misread(const ud_product *p, int64_t k, int64_t j)
{
    const int64_t at = k * p->n + j; /* of [n, k] */
    return at % p->k * p->n + at / p->k;
}
static int64_t w_misread_back(const ud_product *p, int64_t k, int64_t j) { return j * p->k + k; }
static int64_t x_turned(const ud_product *p, int64_t i, int64_t k) { return k * p->k + i; }
static int64_t x_misread(const ud_product *p, int64_t i, int64_t k)
{
    const int64_t at = i * p->k + k; /* of [k, m] */
    return at % p->m * p->k + at / p->m;
}
static int64_t x_misread_back(const ud_product *p, int64_t i, int64_t k) { return k * p->m + i; }

enum { SQUARE = 1, OBLONG };
typedef int64_t bug_where(const ud_product *p, int64_t i, int64_t j);
static const struct {
    bug_where *x, *w;
    int of_x, of_w; /* SQUARE, OBLONG: what that operand has to be */
    const char *text;
} operands[] = {
    { NULL, w_turned, 0, SQUARE, "operand b is transposed" },
    { x_turned, NULL, SQUARE, 0, "operand a is transposed" },
    { x_turned, w_turned, SQUARE, SQUARE, "both operands are transposed" },
    { NULL, w_misread, 0, OBLONG, "operand b is transposed: its memory is that of b transposed, read in b's shape" },
    { NULL, w_misread_back, 0, OBLONG, "operand b is transposed: its memory is read column by column" },
    { x_misread, NULL, OBLONG, 0, "operand a is transposed: its memory is that of a transposed, read in a's shape" },
    { x_misread_back, NULL, OBLONG, 0, "operand a is transposed: its memory is read column by column" },
};

static void fill_operands(const bug_grid *g, const ud_product *p, bug_where *x, bug_where *w, double *xs, double *ws)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t k = 0; k < g->k; k++) {
            const int64_t row = g->part.row[i];
            xs[i * g->k + k] = (double)p->a[x ? x(p, row, k) : row * p->k + k];
        }
    for (int64_t k = 0; k < g->k; k++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t column = g->part.column[j];
            ws[k * g->n + j] = (double)p->b[w ? w(p, k, column) : k * p->n + column];
        }
}

static void try_transposed(bug_search *s, bug_grid *g, double *xs, double *ws)
{
    const ud_product *p = s->c->product;
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        if (operands[i].of_x && operands[i].of_x != (p->m == p->k ? SQUARE : OBLONG)) continue;
        if (operands[i].of_w && operands[i].of_w != (p->n == p->k ? SQUARE : OBLONG)) continue;
        fill_operands(g, p, operands[i].x, operands[i].w, xs, ws);
        multiply(xs, ws, g->m, g->n, g->k, g->value);
        bug_finding *f = try_grid(s, g, 1, 1);
        if (f) bug_say(f, "%s", operands[i].text);
    }
}

/* K of one operand in another order than that of the other. */
static bool screened(const bug_grid *g, const int64_t *from)
{
    double off = 0, before = 0;
    for (int64_t q = 0; q < SCREEN * SCREEN; q++) {
        const int64_t i = q / SCREEN * g->m / SCREEN, j = q % SCREEN * g->n / SCREEN;
        double sum = 0;
        for (int64_t k = 0; k < g->k; k++) sum += g->x[i * g->k + k] * g->w[from[k] * g->n + j];
        const double b = g->part.b[i * g->n + j] - g->part.a[i * g->n + j], u = g->part.unit;
        const double d = b - (sum - g->plain[i * g->n + j]) / u;
        off += d * d;
        before += b * b;
    }
    return off < 0.1 * before;
}

static void try_orders(bug_search *s, bug_grid *g, double *ws)
{
    int64_t *from = app_memory((size_t)g->k, sizeof *from);
    char text[200];
    for (int which = 0; bug_known_order(which, g->k, from, text, sizeof text, "row"); which++) {
        if (!screened(g, from)) continue;
        for (int64_t k = 0; k < g->k; k++) memcpy(ws + k * g->n, g->w + from[k] * g->n, sizeof *ws * (size_t)g->n);
        multiply(g->x, ws, g->m, g->n, g->k, g->value);
        bug_finding *f = try_grid(s, g, 1, 1);
        if (!f) continue;
        bug_say(f, "the operands are out of step along K: of b (or, the other way round, columns of a) %s", text);
        break;
    }
    free(from);
}

static void clamp(const double *from, int64_t n, double limit, double *to)
{
    for (int64_t i = 0; i < n; i++) to[i] = fmin(fmax(from[i], -limit), limit);
}

static void try_limits(bug_search *s, bug_grid *g, double *xs, double *ws)
{
    static const double limit[] = { 240, 448, 57344, 65504 };
    static const char *const which[] = { "", "operand a is", "operand b is", "both operands are" };
    for (size_t l = 0; l < sizeof limit / sizeof limit[0]; l++)
        for (int k = 1; k < 4; k++) {
            clamp(g->x, g->m * g->k, k & 1 ? limit[l] : INFINITY, xs);
            clamp(g->w, g->k * g->n, k & 2 ? limit[l] : INFINITY, ws);
            multiply(xs, ws, g->m, g->n, g->k, g->value);
            bug_finding *f = try_grid(s, g, 1, 1);
            if (f) bug_say(f, "%s saturated at %g", which[k], limit[l]);
        }
}

void bug_operands(bug_search *s)
{
    if (!s->c->product || s->c->product->ranks) return;
    bug_grid g;
    open_grid(s->c, SIDE, SIDE, &g);
    double *xs = app_memory((size_t)(g.m * g.k), sizeof *xs), *ws = app_memory((size_t)(g.k * g.n), sizeof *ws);
    try_transposed(s, &g, xs, ws);
    try_orders(s, &g, ws);
    try_limits(s, &g, xs, ws);
    free(xs);
    free(ws);
    close_grid(&g);
}

/* ---- a part of K ---- */

enum { ROUNDS = 80 };
#define LEAST_THETA 0.05

typedef struct bug_fit { /* least squares: B - A = sum over k of theta[k] x[i, k] w[k, j], by conjugate gradients */
    double *theta, *rest, *step, *slope, *image; /* [k], [m n], [k], [k], [m n] */
} bug_fit;

/* image = M step; slope = M^T rest */
static void forward(const bug_grid *g, const double *step, double *image)
{
    memset(image, 0, sizeof *image * (size_t)(g->m * g->n));
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t k = 0; k < g->k; k++) {
            const double f = step[k] * g->x[i * g->k + k];
            for (int64_t j = 0; j < g->n; j++) image[i * g->n + j] += f * g->w[k * g->n + j];
        }
}

static void backward(const bug_grid *g, const double *rest, double *slope)
{
    memset(slope, 0, sizeof *slope * (size_t)g->k);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t k = 0; k < g->k; k++) {
            double sum = 0;
            for (int64_t j = 0; j < g->n; j++) sum += rest[i * g->n + j] * g->w[k * g->n + j];
            slope[k] += sum * g->x[i * g->k + k];
        }
}

static double energy_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

static void fit_theta(const bug_grid *g, bug_fit *f)
{
    const int64_t mn = g->m * g->n;
    for (int64_t i = 0; i < mn; i++) f->rest[i] = (g->part.b[i] - g->part.a[i]) * g->part.unit;
    backward(g, f->rest, f->slope);
    memcpy(f->step, f->slope, sizeof *f->step * (size_t)g->k);
    double energy = energy_of(f->slope, g->k);
    const double first = energy;
    for (int round = 0; round < ROUNDS && energy > 1e-14 * first; round++) {
        forward(g, f->step, f->image);
        const double image = energy_of(f->image, mn), far = image > 0 ? energy / image : 0;
        for (int64_t k = 0; k < g->k; k++) f->theta[k] += far * f->step[k];
        for (int64_t i = 0; i < mn; i++) f->rest[i] -= far * f->image[i];
        backward(g, f->rest, f->slope);
        const double next = energy_of(f->slope, g->k);
        for (int64_t k = 0; k < g->k; k++) f->step[k] = f->slope[k] + next / energy * f->step[k];
        energy = next;
    }
}

static void say_ranks(bug_finding *f, double theta, const int64_t *some, int64_t count, int64_t ranks)
{
    char set[128], factor[64];
    bug_name_set(some, count, ranks, "rank", set, sizeof set);
    const char *verb = count == 1 ? "is" : "are";
    if (fabs(theta + 1) < 0.02)
        bug_say(f, "%s of %" PRId64 " %s left out of the sum", set, ranks, verb);
    else if (fabs(theta - 1) < 0.02)
        bug_say(f, "%s of %" PRId64 " %s counted twice in the sum", set, ranks, verb);
    else
        bug_say(f, "%s of %" PRId64 " %s counted %s times in the sum", set, ranks, verb,
                bug_name_factor(1 + theta, 1e-3, factor, sizeof factor));
}

static void say_part(bug_finding *f, double theta, const int64_t *some, int64_t count, int64_t k)
{
    char set[128], factor[64];
    bug_name_set(some, count, k, "place", set, sizeof set);
    const char *share = 2 * count == k ? " (half of K)" : "";
    if (fabs(theta + 1) < 0.02)
        bug_say(f, "a part of K is missing: %s of %" PRId64 "%s", set, k, share);
    else if (fabs(theta - 1) < 0.02)
        bug_say(f, "a part of K is added twice: %s of %" PRId64 "%s", set, k, share);
    else
        bug_say(f, "a part of K counts %s times: %s of %" PRId64 "%s",
                bug_name_factor(1 + theta, 1e-3, factor, sizeof factor), set, k, share);
}

static bool try_part(bug_search *s, bug_grid *g, const double *theta, int cost, int64_t freedom, double one,
                     const int64_t *some, int64_t count)
{
    forward(g, theta, g->value);
    for (int64_t i = 0; i < g->m * g->n; i++) g->value[i] += g->plain[i];
    bug_finding *f = try_grid(s, g, cost, freedom);
    if (!f) return false;
    if (some)
        (s->c->product->ranks ? say_ranks : say_part)(f, one, some, count, g->k);
    else
        bug_say(f, "each k of the sum has a factor of its own: a scale along K is forgotten, or applied twice");
    return true;
}

/* Those k whose theta is not 0: all alike? */
static void read_theta(bug_search *s, bug_grid *g, double *theta)
{
    double most = 0, sum = 0;
    int64_t *some = app_memory((size_t)g->k, sizeof *some), count = 0;
    double *exact = app_memory((size_t)g->k, sizeof *exact);
    for (int64_t k = 0; k < g->k; k++) most = fmax(most, fabs(theta[k]));
    for (int64_t k = 0; k < g->k; k++)
        if (fabs(theta[k]) > 0.5 * most) {
            some[count++] = k;
            sum += theta[k];
        }
    const double one = count ? sum / (double)count : 0, whole = nearbyint(2 * one) / 2,
                 value = fabs(one - whole) < 0.02 ? whole : one;
    for (int64_t i = 0; i < count; i++) exact[some[i]] = value;
    if (most < LEAST_THETA) count = 0; /* rounding has such factors, too */
    if (count && (count == g->k || !try_part(s, g, exact, 1, 2, value, some, count)))
        (void)try_part(s, g, theta, 4, g->k, 0, NULL, 0);
    free(some);
    free(exact);
}

static void fit_parts(bug_search *s, bug_grid *g)
{
    const size_t mn = (size_t)(g->m * g->n), k = (size_t)g->k;
    bug_fit f = { app_memory(k, sizeof(double)), app_memory(mn, sizeof(double)), app_memory(k, sizeof(double)),
                  app_memory(k, sizeof(double)), app_memory(mn, sizeof(double)) };
    fit_theta(g, &f);
    read_theta(s, g, f.theta);
    free(f.theta);
    free(f.rest);
    free(f.step);
    free(f.slope);
    free(f.image);
}

/* Of few outputs: every range between marks, missing or twice, the one that leaves least. */
static void scan_parts(bug_search *s, bug_grid *g)
{
    enum { MARKS = 128 };
    const int64_t mn = g->m * g->n, each = g->k > MARKS ? (g->k + MARKS - 1) / MARKS : 1, marks = g->k / each;
    double *sum = app_memory((size_t)((marks + 1) * mn), sizeof *sum), *theta = app_memory((size_t)g->k, sizeof *theta);
    double least = INFINITY, one = 0;
    int64_t low = 0, high = 0;
    for (int64_t t = 0; t < marks; t++) {
        for (int64_t k = 0; k < g->k; k++) theta[k] = k < (t + 1) * each;
        forward(g, theta, sum + (t + 1) * mn);
    }
    for (int64_t t = 0; t < marks; t++)
        for (int64_t u = t + 1; u <= marks; u++)
            for (int sign = -1; sign <= 1; sign += 2) {
                double off = 0;
                for (int64_t i = 0; i < mn && off < least; i++) {
                    const double part = (sum[u * mn + i] - sum[t * mn + i]) * sign;
                    const double d = (g->part.b[i] - g->part.a[i]) * g->part.unit - part;
                    off += d * d;
                }
                if (off < least) least = off, one = sign, low = t * each, high = u * each;
            }
    int64_t *some = app_memory((size_t)g->k, sizeof *some), count = 0;
    memset(theta, 0, sizeof *theta * (size_t)g->k);
    for (int64_t k = low; k < high; k++) {
        some[count++] = k;
        theta[k] = one;
    }
    (void)try_part(s, g, theta, 1, 2, one, some, count);
    free(some);
    free(theta);
    free(sum);
}

void bug_k_parts(bug_search *s)
{
    const bug_case *c = s->c;
    if (!c->product || c->product->k < 2) return;
    const int64_t want = 4 * c->product->k;
    int64_t m = (int64_t)ceil(sqrt((double)want)), n = m;
    if (c->m < m) n = want / c->m + 1;
    if (c->n < n) m = want / c->n + 1;
    if (m > c->m) m = c->m;
    if (n > c->n) n = c->n;
    const bool few = 2 * m * n < 3 * c->product->k;
    bug_grid g;
    open_grid(c, few && m > 16 ? 16 : m, few && n > 16 ? 16 : n, &g);
    (few ? scan_parts : fit_parts)(s, &g);
    close_grid(&g);
}

/* suspect.c - errors that rounding alone does not make: a factor, a bias, truncation, lost subnormals, fewer bits.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { ENOUGH = 16 }; /* pairs from which a pattern means something */
#define ALIKE 6.0     /* dB that must remain between A and what the fit leaves */
#define MUCH 0.2      /* of the error's energy: n pairs of plain noise give about 1/n */

__attribute__((format(printf, 2, 3))) static void say(ud_suspicion *found, const char *format, ...)
{
    va_list list;
    if (found->count == UD_SUSPICIONS) return;
    va_start(list, format);
    vsnprintf(found->text[found->count++], sizeof found->text[0], format, list);
    va_end(list);
}

/* Least squares of d = b - a: no factor and a bias; a factor and no bias; both. The simplest that explains 99 % of what
 * both explain is told. */
static void fit(const ud_sums *s, ud_suspicion *found)
{
    const double n = (double)s->numbers, all = s->dd + n * s->mean_d * s->mean_d;
    const double aa = s->aa + n * s->mean_a * s->mean_a, ad = s->ad + n * s->mean_a * s->mean_d;
    if (s->numbers < ENOUGH || !(all > 0) || !(s->aa > 0)) return;
    const double slope = s->ad / s->aa;
    const struct {
        double factor, bias, explained;
    } model[] = {
        { 1 + ad / aa, 0, ad * ad / aa / all },
        { 1, s->mean_d, n * s->mean_d * s->mean_d / all },
        { 1 + slope, s->mean_d - slope * s->mean_a, (s->ad * slope + n * s->mean_d * s->mean_d) / all },
    };
    int best = model[1].explained > model[0].explained;
    if (model[best].explained < 0.99 * model[2].explained) best = 2;
    found->factor = model[best].factor;
    found->bias = model[best].bias;
    found->explained = fmin(model[best].explained, 1);
    found->sqnr_without = found->explained < 1 ? 10 * log10(aa / (all * (1 - found->explained))) : INFINITY;
    if (found->explained < MUCH || found->sqnr_without < ALIKE)
        return; /* of what has nothing to do with A, a factor removes half */
    char bias[48] = "", factor[48] = "A", rest[64];
    if (found->factor != 1) snprintf(factor, sizeof factor, "%.9g A", found->factor);
    if (found->bias != 0) snprintf(bias, sizeof bias, " %c %.6g", found->bias < 0 ? '-' : '+', fabs(found->bias));
    if (found->sqnr_without < 300)
        snprintf(rest, sizeof rest, "; without it SQNR would be %.1f dB", found->sqnr_without);
    else
        snprintf(rest, sizeof rest, "; nothing else is wrong");
    say(found, "systematic: B = %s%s explains %.4g %% of the error's energy%s", factor, bias, 100 * found->explained,
        rest);
}

/* Significand bits that are in use, over all values. */
static int used_bits(uint64_t significand)
{
    int bits = 53;
    while (bits > 1 && !(significand & 1)) {
        significand >>= 1;
        bits--;
    }
    return bits;
}

static void narrower(const ud_pair *p, int side, ud_suspicion *found)
{
    const ud_array *a = side ? &p->b : &p->a;
    const ud_unit own = ud_unit_of(a);
    const int bits = used_bits(p->sums.significand[side]), other = used_bits(p->sums.significand[!side]);
    static const struct {
        int bits;
        const char *as;
    } row[] = { { 2, "FP4's" },
                { 3, "float8_e5m2's" },
                { 4, "float8_e4m3's" },
                { 8, "bfloat16's" },
                { 11, "float16's or tfloat32's" },
                { 24, "float32's" } };
    if (own.kind != UD_F64 && (own.kind != UD_CODES || ud_unit_significand(&own) < 11)) return;
    if (p->sums.numbers < ENOUGH || bits == 1) return;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (bits > row[i].bits) continue;
        if (row[i].bits >= ud_unit_significand(&own) || other <= row[i].bits) return;
        say(found, "%s uses %d bits of its significands and %s %d: it was rounded to a format like %s",
            side ? "B" : "A", bits, side ? "A" : "B", other, row[i].as);
        return;
    }
}

static void directions(const ud_pair *p, ud_suspicion *found)
{
    const ud_sums *s = &p->sums;
    const int64_t differ = s->numbers - s->bucket[0];
    if (differ < ENOUGH) return;
    if (s->outward == 0)
        say(found, "no |B| is above its |A|: B is cut toward zero");
    else if (s->outward == differ)
        say(found, "every |B| that differs is above its |A|: B is rounded away from zero, or sums more");
    else if (s->above == 0)
        say(found, "no B is above its A: B is rounded down");
    else if (s->above == differ)
        say(found, "every B that differs is above its A: B is rounded up, or has a bias");
}

static void box(const ud_pair *p, ud_suspicion *found)
{
    const ud_sums *s = &p->sums;
    const int64_t rows = s->row[1] - s->row[0] + 1, columns = s->column[1] - s->column[0] + 1;
    if (s->first < 0 || p->a.rank < 2) return;
    if ((double)rows * (double)columns > 0.75 * (double)p->a.rows * (double)p->a.columns) return;
    say(found,
        "all differences lie in rows %" PRId64 " to %" PRId64 ", columns %" PRId64 " to %" PRId64 ", of %" PRId64
        " x %" PRId64,
        s->row[0], s->row[1], s->column[0], s->column[1], p->a.rows, p->a.columns);
}

/* A square whose rows came as columns. */
static void transposed(const ud_pair *p, ud_suspicion *found)
{
    const int64_t n = p->a.columns, most = n * n < 4096 ? n * n : 4096;
    if (p->a.rank != 2 || p->a.rows != n || n < 2 || p->sums.first < 0) return;
    for (int64_t k = 0; k < most; k++) {
        const int64_t i = (int64_t)((double)k * (double)(n * n) / (double)most);
        double a, b;
        ud_values(&p->a, i, 1, &a);
        ud_values(&p->b, i % n * n + i / n, 1, &b);
        if (a != b && !(isnan(a) && isnan(b))) return;
    }
    say(found, "B is A transposed%s", n * n > most ? ", as far as 4,096 elements tell" : "");
}

ud_suspicion ud_suspect(const ud_pair *p)
{
    ud_suspicion found;
    memset(&found, 0, sizeof found);
    found.factor = 1;
    fit(&p->sums, &found);
    directions(p, &found);
    if (p->sums.flushed && p->sums.flushed == p->sums.subnormal)
        say(&found, "all %" PRId64 " subnormal numbers of A are 0 in B: B flushes them", p->sums.flushed);
    narrower(p, 0, &found);
    narrower(p, 1, &found);
    box(p, &found);
    transposed(p, &found);
    if (p->sums.mismatches)
        say(&found, "NaN or infinity stands against something else %" PRId64 " times", p->sums.mismatches);
    return found;
}

/* array/tolerance_round.h - what a rounding loses, likely: of one number, and of lines of numbers.
 * Behind trn_tolerance.h. SPDX-License-Identifier: MIT
 *
 * DOES: rounds numbers in binary64 as a machine with fewer bits would, and says of each rounding how far it goes: the
 *     mean and the variance of the error that such a rounding makes of such a number.
 * DOES NOT: take the error itself, which would be known here: whoever adds in another order has another one.
 *
 * A number that lies on the grid loses nothing. One that lies half way between two neighbours, `apart` from each other,
 * loses just half of that. Any other may lie anywhere between them: its error is spread evenly, with a twelfth of
 * apart^2 as its variance (a sixth where the direction is drawn), and its mean is half of apart where digits are cut.
 * Which of the three it is, is looked at: products of BF16 or FP8, of integers and of zeros are on the grid most of the
 * time. Errors of different roundings count as independent.
 *
 * KNOWN FROM: Higham and Mary, "A new approach to probabilistic rounding error analysis", SISC 41(5), 2019.
 */
#ifndef TRNI_ARRAY_TOLERANCE_ROUND_H
#define TRNI_ARRAY_TOLERANCE_ROUND_H

#include <math.h>

#include "../base/cpu.h"
#include "../number/round.h"

/* Significands of `bits` bits: neighbours at 1 are `apart`, below `least` they come no closer. */
typedef struct trni_grid {
    double apart, least;
    double flush; /* a result below it becomes zero; 0: none does */
} trni_grid;

/* Errors of an element, all its roundings together. Twelve variances: whole numbers times squares of powers of two. */
typedef struct trni_loss {
    double mean, twelve;
} trni_loss;

enum {
    TRNI_GRID_MOST = 50
}; /* bits: binary64 keeps three more, and all that such a grid loses is nothing beside PSUM's */

TRNI_FN trni_grid trni_grid_of(int bits, double least, bool flush)
{
    const trni_grid g = { ldexp(1, 1 - (bits < TRNI_GRID_MOST ? bits : (int)TRNI_GRID_MOST)), least,
                          flush ? 0x1p-126 : 0 };
    return g;
}

/* 2^floor(log2 |x|); 0 of 0. */
TRNI_INLINE double trni_power_below(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    u &= (uint64_t)0x7ff << 52;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* How far apart neighbours are around x. */
TRNI_INLINE double trni_apart(double x, double apart, double least)
{
    const double power = trni_power_below(x);
    return (power > least ? power : least) * apart;
}

/* x to the nearest multiple of `unit`, a tie to the even one; |x| < 2^51 unit. */
TRNI_INLINE double trni_to_multiple(double x, double unit)
{
    const double shift = 0x1.8p52 * unit; /* here neighbours in binary64 are one unit apart */
    return (x + shift) - shift;
}

/* ---- one number ---- */

TRNI_FN double trni_cut_multiple(double x, double unit)
{
    const double near = trni_to_multiple(fabs(x), unit), cut = near > fabs(x) ? near - unit : near;
    return x < 0 ? -cut : cut;
}

TRNI_FN double trni_floor_multiple(double x, double unit)
{
    const double near = trni_to_multiple(x, unit);
    return near > x ? near - unit : near;
}

/* x to one of two neighbours that are `unit` apart. */
TRNI_FN void trni_loses(trni_loss *l, double x, double unit, trn_rounding rounding)
{
    const double off = fabs(x - trni_to_multiple(x, unit)), square = unit * unit;
    const bool half = off == unit / 2;
    if (off == 0) return;
    switch (rounding) {
    case TRN_STOCHASTIC: l->twelve += half ? 3 * square : 2 * square; return;
    case TRN_TO_ODD: l->twelve += half ? 3 * square : 4 * square; return; /* up to a unit off, to either side */
    case TRN_TOWARD_ZERO: l->mean += x < 0 ? unit / 2 : -unit / 2; break;
    case TRN_TOWARD_POSITIVE: l->mean += unit / 2; break;
    case TRN_TOWARD_NEGATIVE: l->mean -= unit / 2; break;
    default: l->twelve += half ? 3 * square : square; return;
    }
    if (!half) l->twelve += square;
}

/* ---- lines of numbers: a row of the array after the other, each for n columns ---- */

/* sum = round(sum + a * b), to the nearest; and the magnitude of what was added. Every product that is formed here is
 * exact, so a fused multiply-add changes nothing. */
TRNI_INLINE void trni_line_chain_body(double *__restrict sum, double *__restrict twelve, double *__restrict magnitude,
                                      const double *__restrict b, double a, size_t n, trni_grid g)
{
    for (size_t i = 0; i < n; i++) {
        const double product = a * b[i], x = sum[i] + product, unit = trni_apart(x, g.apart, g.least);
        const double near = trni_to_multiple(x, unit), off = fabs(x - near), weight = off == 0.5 * unit ? 3.0 : 1.0;
        magnitude[i] += fabs(product);
        twelve[i] += (off == 0 ? 0.0 : weight) * (unit * unit);
        sum[i] = near;
    }
}
TRNI_DISPATCH(trni_line_chain,
              (double *__restrict sum, double *__restrict twelve, double *__restrict magnitude,
               const double *__restrict b, double a, size_t n, trni_grid g),
              (sum, twelve, magnitude, b, a, n, g))

/* product = round(a * b), and a zero below `flush`, an exact product's size; `lean` is the mean error, in distances of
 * neighbours. */
TRNI_INLINE void trni_line_products_body(double *__restrict product, double *__restrict twelve,
                                         double *__restrict magnitude, double *__restrict mean,
                                         const double *__restrict b, double a, size_t n, trni_grid g, double lean)
{
    if (g.apart < 0x1p-48 && g.flush == 0) { /* a product of 48 bits is not rounded */
        for (size_t i = 0; i < n; i++) {
            product[i] = a * b[i];
            magnitude[i] += fabs(product[i]);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double x = a * b[i], size = fabs(x), p = size < g.flush ? 0.0 : x, gone = p == x ? 0.0 : 12.0 * (x * x);
        const double unit = trni_apart(p, g.apart, g.least), near = trni_to_multiple(p, unit), off = fabs(p - near),
                     weight = off == 0.5 * unit ? 3.0 : 1.0;
        magnitude[i] += size;
        twelve[i] += (off == 0 ? 0.0 : weight) * (unit * unit) + gone;
        mean[i] += off == 0 ? 0.0 : p < 0 ? -lean * unit : lean * unit;
        product[i] = near;
    }
}
TRNI_DISPATCH(trni_line_products,
              (double *__restrict product, double *__restrict twelve, double *__restrict magnitude,
               double *__restrict mean, const double *__restrict b, double a, size_t n, trni_grid g, double lean),
              (product, twelve, magnitude, mean, b, a, n, g, lean))

/* The mean error of a product of significands of x and w bits to the nearest of `bits`, where there is one, in
 * neighbours' distances: all pairs are tried. It is not quite zero: near powers of two products lie close above the
 * numbers they are rounded to. -0.006 for two BF16, one sigma after 2,400 products; beyond 8 bits too little to see. */
TRNI_COLD double trni_product_lean(int x, int w, int bits)
{
    double sum = 0, count = 0;
    if (x > 8 || w > 8) return 0;
    for (int i = 1 << (x - 1); i < 1 << x; i++)
        for (int j = 1 << (w - 1); j < 1 << w; j++) {
            const double product = (double)i * (double)j, unit = trni_apart(product, ldexp(1, 1 - bits), 1);
            const double off = trni_to_multiple(product, unit) - product;
            sum += off / unit;
            count += off != 0;
        }
    return count > 0 ? sum / count : 0;
}

/* The half of a number that trni_split takes: its 12 bits on top, or the rest. */
TRNI_INLINE double trni_half_of(double x, bool high)
{
    uint64_t u;
    double top;
    memcpy(&u, &x, sizeof u);
    u &= ~(((uint64_t)1 << 41) - 1);
    memcpy(&top, &u, sizeof top);
    return high ? top : x - top;
}

TRNI_INLINE void trni_line_halves_body(double *__restrict half, const double *__restrict x, size_t n, bool high)
{
    for (size_t i = 0; i < n; i++) half[i] = trni_half_of(x[i], high);
}
TRNI_DISPATCH_AVX2(trni_line_halves, (double *__restrict half, const double *__restrict x, size_t n, bool high),
                   (half, x, n, high))

/* sum = round(sum + add), to the nearest; `drawn`: stochastic, which is the nearest here and twice the variance. */
TRNI_INLINE void trni_line_add_body(double *__restrict sum, double *__restrict twelve, const double *__restrict add,
                                    size_t n, trni_grid g, bool drawn)
{
    const double other = drawn ? 2.0 : 1.0;
    for (size_t i = 0; i < n; i++) {
        const double x = sum[i] + add[i], unit = trni_apart(x, g.apart, g.least);
        const double near = trni_to_multiple(x, unit), off = fabs(x - near), weight = off == 0.5 * unit ? 3.0 : other;
        const double size = fabs(near), gone = size < g.flush ? 12.0 * (near * near) : 0.0;
        twelve[i] += (off == 0 ? 0.0 : weight) * (unit * unit) + gone;
        sum[i] = size < g.flush ? 0.0 : near;
    }
}
TRNI_DISPATCH(trni_line_add,
              (double *__restrict sum, double *__restrict twelve, const double *__restrict add, size_t n, trni_grid g,
               bool drawn),
              (sum, twelve, add, n, g, drawn))

/* sum = sum + add, cut toward zero. */
TRNI_INLINE void trni_line_cut_body(double *__restrict sum, double *__restrict twelve, double *__restrict mean,
                                    const double *__restrict add, size_t n, trni_grid g)
{
    for (size_t i = 0; i < n; i++) {
        const double x = sum[i] + add[i], unit = trni_apart(x, g.apart, g.least), near = trni_to_multiple(x, unit);
        const double off = fabs(x - near), toward = x < 0 ? -unit : unit, over = fabs(near) > fabs(x) ? toward : 0.0;
        const double cut = near - over, gone = fabs(cut) < g.flush ? 12.0 * (cut * cut) : 0.0;
        mean[i] -= off == 0 ? 0.0 : 0.5 * toward;
        twelve[i] += (off == 0 || off == 0.5 * unit ? 0.0 : unit * unit) + gone;
        sum[i] = fabs(cut) < g.flush ? 0.0 : cut;
    }
}
TRNI_DISPATCH(trni_line_cut,
              (double *__restrict sum, double *__restrict twelve, double *__restrict mean, const double *__restrict add,
               size_t n, trni_grid g),
              (sum, twelve, mean, add, n, g))

#endif /* TRNI_ARRAY_TOLERANCE_ROUND_H */

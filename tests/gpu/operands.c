/* operands.c - operands that tell adders apart: where they cut, when they round, what is added to what first.
 * SPDX-License-Identifier: MIT
 *
 * Fifteen kinds. Some are random, most are built: the questions of the papers below as families, with random
 * significands and places. An element is drawn as a sign, an exponent and a fraction, so that one recipe serves all
 * formats; what a format cannot hold goes to the nearest exponent that it has.
 *
 * KNOWN FROM: M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, PeerJ CS 7:e330 (2021); F. Khattak, M. Mikaitis, doi
 *     10.1145/3830409 (2025); P. Xie et al., FPRev, arXiv 2411.00442 (2024), and MMA-Sim, arXiv 2511.10909 (2025): what
 *     they ask of a unit, not their inputs.
 */
#include "execution.h"

#include <string.h>

#include "trnmath/trn_format.h"
#include "twin/cases.h"

typedef struct drawing {
    const gpu_unit *u;
    gpu_execution *e;
    const trn_format_info *a, *b, *c;
    int p; /* the product */
    uint64_t rng;
} drawing;

/* low .. high */
static int between(drawing *d, int low, int high) { return low + cases_below(&d->rng, high - low + 1); }
static bool one_in(drawing *d, int n) { return cases_one_in(&d->rng, n); }
static uint32_t bits(drawing *d) { return cases_u32(&d->rng); }

/* Of the code alone, without the zeros of its container. */
static uint32_t sign_of(const trn_format_info *f) { return 1u << (f->exponent_bits + f->mantissa_bits); }

static int lowest(const trn_format_info *f) { return 1 - f->bias; }
static int highest(const trn_format_info *f) { return (int)(f->max_code >> f->mantissa_bits) - f->bias; }

/* (-1)^negative * 1.fraction * 2^exponent; fraction: the top bits count. Below the format's normal numbers: subnormal
 * with the same fraction. */
static uint32_t number(const trn_format_info *f, bool negative, int exponent, uint32_t fraction)
{
    const int m = f->mantissa_bits;
    const uint32_t sign = negative ? sign_of(f) : 0, top = fraction >> (32 - m);
    if (exponent > highest(f)) exponent = highest(f);
    const int field = exponent < lowest(f) ? 0 : exponent + f->bias;
    const uint32_t magnitude = (uint32_t)field << m | top;
    return (sign | (magnitude < f->max_code ? magnitude : f->max_code)) << f->low_zeros;
}

static void put_a(drawing *d, int row, int k, uint32_t code)
{
    gpu_put(d->e->a, d->u->a, d->u->k, d->p * d->u->m + row, k, code);
}

static void put_b(drawing *d, int column, int k, uint32_t code)
{
    gpu_put(d->e->b, d->u->b, d->u->k, d->p * d->u->n + column, k, code);
}

static void put_c(drawing *d, int row, int column, uint32_t code)
{
    d->e->c[(d->p * d->u->m + row) * d->u->n + column] = code;
}

static uint32_t any(drawing *d, const trn_format_info *f, int low, int high)
{
    const uint32_t fraction = bits(d);
    const bool negative = one_in(d, 2);
    return number(f, negative, between(d, low, high), fraction);
}

/* Exponents of a, of b and of c, each drawn for itself. */
static void fill(drawing *d, int a_low, int a_high, int b_low, int b_high, int c_low, int c_high)
{
    const gpu_unit *u = d->u;
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++) put_a(d, row, k, any(d, d->a, a_low, a_high));
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++) put_b(d, column, k, any(d, d->b, b_low, b_high));
    for (int row = 0; row < u->m; row++)
        for (int column = 0; column < u->n; column++) put_c(d, row, column, any(d, d->c, c_low, c_high));
}

/* ---- random kinds ---- */

static void near_one(drawing *d) { fill(d, -2, 2, -2, 2, -3, 4); }
static void onto_zero(drawing *d)
{
    fill(d, -3, 2, -3, 2, 0, 0);
    memset(d->e->c + d->p * d->u->m * d->u->n, 0, (size_t)(d->u->m * d->u->n) * 4);
}
static void spread(drawing *d) { fill(d, -10, 4, -10, 4, -30, 10); }
static void any_exponent(drawing *d)
{
    fill(d, lowest(d->a) - 1, highest(d->a), lowest(d->b) - 1, highest(d->b), lowest(d->c) - 1, highest(d->c));
}

/* ---- built ones ---- */

/* Every second product is the negative of the one before, some with another last bit; what is left is small. */
static void cancelling(drawing *d)
{
    const gpu_unit *u = d->u;
    fill(d, -4, 2, -4, 2, -24, 2);
    const int apart = one_in(d, 2) ? 1 : u->k / 2;
    for (int k = 0; k + apart < u->k; k++) {
        if (k / apart % 2 != 0) continue;
        const bool changed = one_in(d, 3);
        const uint32_t flip = (sign_of(d->a) | (changed ? 1u : 0u)) << d->a->low_zeros;
        for (int row = 0; row < u->m; row++)
            put_a(d, row, k + apart, gpu_code(d->e->a, u->a, u->k, d->p * u->m + row, k) ^ flip);
        for (int column = 0; column < u->n; column++)
            put_b(d, column, k + apart, gpu_code(d->e->b, u->b, u->k, d->p * u->n + column, k));
    }
}

/* One product leads, the others follow 2^-low … 2^-high behind it, where an adder cuts: how many bits below the largest
 * does it keep, and in which direction does it drop the rest? */
static void ladder(drawing *d)
{
    const gpu_unit *u = d->u;
    const int low = between(d, 4, 24), high = low + between(d, 0, 8), top = between(d, -1, 3);
    const bool plain = one_in(d, 3);
    for (int k = 0; k < u->k; k++) {
        const int share = between(d, 0, 12);
        for (int column = 0; column < u->n; column++)
            put_b(d, column, k, number(d->b, one_in(d, 2), -share, plain ? 0 : bits(d)));
        for (int row = 0; row < u->m; row++)
            put_a(d, row, k, number(d->a, one_in(d, 2), top + share - between(d, low, high), plain ? 0 : bits(d)));
    }
    for (int row = 0; row < u->m; row++) {
        const int lead = between(d, 0, u->k - 1); /* b's exponent there is at least -12 */
        put_a(d, row, lead, number(d->a, one_in(d, 2), top + 12, bits(d)));
        for (int column = 0; column < u->n; column++)
            put_c(d, row, column, one_in(d, 4) ? 0 : any(d, d->c, top - high - 4, top + 2));
    }
}

/* One product that is not zero, and C: who cuts whom, and where the result is rounded. */
static void one_and_c(drawing *d)
{
    const gpu_unit *u = d->u;
    memset(d->e->a + (size_t)(d->p * u->m * u->k) * trn_format_bytes(u->a), 0,
           (size_t)(u->m * u->k) * trn_format_bytes(u->a));
    const int near = between(d, 0, 36);
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++) put_b(d, column, k, any(d, d->b, -3, 0));
    for (int row = 0; row < u->m; row++) {
        put_a(d, row, between(d, 0, u->k - 1), any(d, d->a, -3, 3));
        for (int column = 0; column < u->n; column++) {
            const uint32_t ends = one_in(d, 3) ? 0xffffffffu : one_in(d, 3) ? 0u : bits(d);
            put_c(d, row, column, number(d->c, one_in(d, 2), one_in(d, 2) ? near - 18 : between(d, -2, 2), ends));
        }
    }
}

/* A large product, its negative, and ones: the places of the two decide which ones survive, and so tell the order. */
static void order(drawing *d)
{
    const gpu_unit *u = d->u;
    const int gap = between(d, 8, 30), unit = between(d, -14, -4);
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++) put_b(d, column, k, number(d->b, false, 0, one_in(d, 4) ? bits(d) : 0));
    for (int row = 0; row < u->m; row++) {
        const int plus = between(d, 0, u->k - 1), minus = between(d, 0, u->k - 1);
        const bool onto = one_in(d, 4);
        for (int k = 0; k < u->k; k++) put_a(d, row, k, number(d->a, false, unit, 0));
        put_a(d, row, plus, number(d->a, false, unit + gap, 0));
        if (!onto) put_a(d, row, minus, number(d->a, true, unit + gap, 0));
        for (int column = 0; column < u->n; column++)
            put_c(d, row, column,
                  onto           ? number(d->c, true, unit + gap, 0)
                  : one_in(d, 2) ? 0
                                 : number(d->c, false, unit, 0));
    }
}

/* All of one sign and just below a power of two: the carries, the ties, and the direction of each rounding. */
static void carries(drawing *d)
{
    const gpu_unit *u = d->u;
    const bool negative = one_in(d, 2);
    const int shift = between(d, 0, 6);
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++)
            put_a(d, row, k, number(d->a, one_in(d, 16) != negative, -between(d, 0, shift), ~(bits(d) & bits(d) >> 1)));
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++) put_b(d, column, k, number(d->b, false, 0, one_in(d, 2) ? ~0u : bits(d)));
    for (int row = 0; row < u->m; row++)
        for (int column = 0; column < u->n; column++)
            put_c(d, row, column, number(d->c, one_in(d, 8) != negative, between(d, -1, 5), ~(bits(d) & 7u)));
}

/* Numbers below the smallest normal one of their format, among the smallest normal ones. */
static void subnormals(drawing *d)
{
    const int a = lowest(d->a), b = lowest(d->b), far = between(d, 0, 14);
    if (one_in(d, 2))
        fill(d, a - 1, a + 2, b - 1, b + 2, a + b - 6, a + b + 8);
    else
        fill(d, a - 1, a + 1, far - 8, far + 2, a - 24 + far, a + far);
}

/* Sums about binary32's smallest numbers: below 2^-126 an adder may align to a floor. */
static void smallest_sums(drawing *d)
{
    const int sum = between(d, -152, -122), a = between(d, sum / 2 - 20, sum / 2 + 20);
    const bool smallest = one_in(d, 2); /* C subnormal */
    fill(d, a - 3, a + 3, sum - a - 3, sum - a + 3, smallest ? -127 : sum - 2, smallest ? -127 : sum + 4);
    const int first = d->p * d->u->m * d->u->n;
    if (one_in(d, 2)) memset(d->e->c + first, 0, (size_t)(d->u->m * d->u->n) * 4);
}

/* Sums about the largest numbers of the result's format. */
static void largest_sums(drawing *d)
{
    const int top = highest(d->c), a = highest(d->a), b = highest(d->b);
    const int half = a < top / 2 + 1 ? a : top / 2 + 1, other = top - half < b ? top - half : b;
    fill(d, half - 3, half + 1, other - 3, other + 1, top - 3, top);
}

/* Infinities, NaN and zeros of both signs among ordinary numbers. */
static uint32_t special(drawing *d, const trn_format_info *f)
{
    const uint32_t sign = one_in(d, 2) ? sign_of(f) : 0;
    const uint32_t code[4] = { 0, f->overflow_code, f->max_code, one_in(d, 4) ? f->nan_code : 0 };
    return (sign | code[between(d, 0, 3)]) << f->low_zeros;
}

static void specials(drawing *d)
{
    const gpu_unit *u = d->u;
    const int every = between(d, 4, 64);
    near_one(d);
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++)
            if (one_in(d, every)) put_a(d, row, k, special(d, d->a));
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++)
            if (one_in(d, every)) put_b(d, column, k, special(d, d->b));
    for (int row = 0; row < u->m; row++)
        for (int column = 0; column < u->n; column++)
            if (one_in(d, every)) put_c(d, row, column, special(d, d->c));
}

/* Mostly zeros of either sign: the sign of a sum of nothing, and whether a zero takes part in the alignment. */
static void zeros(drawing *d)
{
    const gpu_unit *u = d->u;
    const int every = between(d, 1, 24);
    spread(d);
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++)
            if (!one_in(d, every)) put_a(d, row, k, (bits(d) & sign_of(d->a)) << d->a->low_zeros);
    for (int row = 0; row < u->m; row++)
        for (int column = 0; column < u->n; column++)
            if (one_in(d, 2)) put_c(d, row, column, bits(d) & sign_of(d->c));
}

/* TF32 has 13 bits of its container too many: a unit that reads them rounds them or cuts them. */
static void containers(drawing *d)
{
    const gpu_unit *u = d->u;
    near_one(d);
    if (d->a->low_zeros == 0) return;
    const uint32_t low = (1u << d->a->low_zeros) - 1;
    for (int k = 0; k < u->k; k++) {
        for (int row = 0; row < u->m; row++)
            put_a(d, row, k, gpu_code(d->e->a, u->a, u->k, d->p * u->m + row, k) | (bits(d) & low));
        for (int column = 0; column < u->n; column++)
            put_b(d, column, k, gpu_code(d->e->b, u->b, u->k, d->p * u->n + column, k) | (bits(d) & low));
    }
}

static const struct kind {
    const char *name;
    void (*draw)(drawing *d);
} kind[] = {
    { "near one", near_one },
    { "onto zero", onto_zero },
    { "spread", spread },
    { "any exponent", any_exponent },
    { "cancelling", cancelling },
    { "ladder", ladder },
    { "one product and C", one_and_c },
    { "order", order },
    { "carries", carries },
    { "subnormal", subnormals },
    { "smallest sums", smallest_sums },
    { "largest sums", largest_sums },
    { "specials", specials },
    { "zeros", zeros },
    { "containers", containers },
};
enum { KINDS = sizeof kind / sizeof kind[0] };

int gpu_kinds(void) { return KINDS; }
const char *gpu_kind_name(int i) { return kind[i].name; }

/* ---- integers and scales ---- */

static void draw_integers(drawing *d)
{
    const gpu_unit *u = d->u;
    const bool extreme = one_in(d, 3);
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++) put_a(d, row, k, extreme ? (one_in(d, 2) ? 0x80u : 0x7fu) : bits(d) & 0xffu);
    for (int column = 0; column < u->n; column++)
        for (int k = 0; k < u->k; k++) put_b(d, column, k, extreme ? (one_in(d, 8) ? 0x7fu : 0x80u) : bits(d) & 0xffu);
    for (int row = 0; row < u->m; row++)
        for (int column = 0; column < u->n; column++)
            put_c(d, row, column, one_in(d, 2) ? bits(d) : 0x80000000u + bits(d) % 2000 - 1000); /* near the ends */
}

/* About 2^0, or anywhere; the code ff is NaN. */
static void draw_scales(drawing *d, unsigned char *scale, int count)
{
    const bool wild = one_in(d, 4);
    for (int i = 0; i < count; i++) {
        scale[i] = (unsigned char)(wild ? between(d, 0, 254) : between(d, 119, 135));
        if (wild && one_in(d, 64)) scale[i] = 255;
    }
}

void gpu_draw(const gpu_unit *u, uint64_t seed, uint64_t number_of, gpu_execution *e)
{
    drawing d = { u, e, trn_format_info_of(u->a), trn_format_info_of(u->b), trn_format_info_of(u->result), 0, 0 };
    uint64_t mix = seed;
    d.rng = cases_next(&mix) ^ number_of * 0xD1342543DE82EF95u;
    (void)cases_next(&d.rng);
    memset(e, 0, sizeof *e);
    e->kind = (int)(number_of % KINDS);
    for (d.p = 0; d.p < gpu_products(u); d.p++)
        if (u->a == TRN_I8)
            draw_integers(&d);
        else
            kind[e->kind].draw(&d);
    if (!u->scale) return;
    draw_scales(&d, e->a_scale, u->m * u->k / u->scale);
    draw_scales(&d, e->b_scale, u->n * u->k / u->scale);
}

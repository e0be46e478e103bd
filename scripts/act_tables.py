#!/usr/bin/env python3
"""Makes trnmath/engine/act_data.h, the buckets of the Scalar engine's functions. Run by hand when a layout changes:

    python3 scripts/act_tables.py > trnmath/engine/act_data.h

tests/unit/test_activation_data.c checks that the committed file is what this makes. Only the standard
library is used, and every number follows from a definition: the function's Taylor coefficients about the centre of the
bucket, in decimal arithmetic of far more digits than binary32 has, each rounded to nearest even once. The output does
not depend on the machine.

A function is one line: its jet (f, f', f''/2, f'''/6, a truncated power series), and what it is beyond its buckets.
"""
from decimal import Decimal as D, getcontext, localcontext
from fractions import Fraction
import sys

getcontext().prec = 60
getcontext().Emin, getcontext().Emax = -10**6, 10**6

LOWEST = -8                    # the first octave is [2^-8, 2^-7); below it one bucket about zero
OCTAVES = 15                   # up to 2^7
WIDTH = D("0.25")              # of a bucket, from 0.25 on; below, one bucket an octave


# ---- binary32 ----

def rounded(x):
    """The bits of the binary32 number nearest to x, ties to even."""
    sign = 0x80000000 if x.is_signed() else 0
    f = abs(Fraction(x))
    if f == 0:
        return sign
    e = f.numerator.bit_length() - f.denominator.bit_length()
    if Fraction(2) ** e > f:
        e -= 1
    e = max(e, -126)
    scaled = f / Fraction(2) ** (e - 23)
    m, rest = divmod(scaled.numerator, scaled.denominator)
    if 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and m & 1):
        m += 1
    bits = m + ((e + 126) << 23) if m >= 1 << 23 else m
    return sign | min(bits, 0x7f800000)


# ---- truncated power series: four coefficients ----

def constant(a):
    return [D(a), D(0), D(0), D(0)]


def add(a, b):
    return [p + q for p, q in zip(a, b)]


def times(k, a):
    return [k * p for p in a]


def mul(a, b):
    return [sum((a[i] * b[n - i] for i in range(n + 1)), D(0)) for n in range(4)]


def div(a, b):
    q = []
    for n in range(4):
        q.append((a[n] - sum((q[i] * b[n - i] for i in range(n)), D(0))) / b[0])
    return q


def exp(a):
    e = [a[0].exp()]
    for n in range(1, 4):
        e.append(sum((k * a[k] * e[n - k] for k in range(1, n + 1)), D(0)) / n)
    return e


def ln(a):
    y = [a[0].ln()]
    for n in range(1, 4):
        y.append((a[n] - sum((k * y[k] * a[n - k] for k in range(1, n)), D(0)) / n) / a[0])
    return y


def root(a):
    y = [a[0].sqrt()]
    for n in range(1, 4):
        y.append((a[n] - sum((y[i] * y[n - i] for i in range(1, n)), D(0))) / (2 * y[0]))
    return y


def integral(value, slope):
    """The series with this value and this derivative."""
    return [value, slope[0], slope[1] / 2, slope[2] / 3]


def series(x, first, ratio):
    """first * (1 + r1 + r1*r2 + ...), the terms' ratios being ratio(n)."""
    total, term, n = D(0), first, 0
    while term != 0 and (total == 0 or abs(term) > abs(total).scaleb(-getcontext().prec - 5)):
        total += term
        n += 1
        term *= ratio(n)
    return total


ONE = constant(1)
with localcontext() as c:
    c.prec = 250
    # Machin: pi = 16 atan(1/5) - 4 atan(1/239)
    def atan_inverse(k):
        total, power, n = D(0), D(1) / k, 0
        while power > D(10) ** -255:
            total += (power if n % 2 == 0 else -power) / (2 * n + 1)
            power /= k * k
            n += 1
        return total
    PI = 16 * atan_inverse(5) - 4 * atan_inverse(239)
    SQRT_HALF, SQRT_2_PI, TWO_SQRT_PI = D("0.5").sqrt(), (2 / PI).sqrt(), 2 / PI.sqrt()


def erf(a):
    x = a[0]
    value = TWO_SQRT_PI * x * (-x * x).exp() * series(x, D(1), lambda n: 2 * x * x / (2 * n + 1))
    return integral(value, erf_slope(a))


def erf_slope(a):
    return times(TWO_SQRT_PI, exp(times(D(-1), mul(a, a))))


def erf_of(a):
    """erf of a series a = k*x."""
    outer = erf([a[0], D(1), D(0), D(0)])
    k = a[1]
    return [outer[n] * k ** n for n in range(4)]


def sine(a):
    x = a[0]
    s = series(x, x, lambda n: -x * x / (2 * n * (2 * n + 1)))
    c = series(x, D(1), lambda n: -x * x / ((2 * n - 1) * 2 * n))
    return [s, c, -s / 2, -c / 6]


def arctangent(a):
    x = a[0]
    half = x / (1 + (1 + x * x).sqrt())
    quarter = half / (1 + (1 + half * half).sqrt())
    value = 4 * series(quarter, quarter, lambda n: -quarter * quarter * (2 * n - 1) / (2 * n + 1))
    return integral(value, div(ONE, add(ONE, mul(a, a))))


def logistic(a):
    if a[0] > 0:
        return div(ONE, add(ONE, exp(times(D(-1), a))))
    e = exp(a)
    return div(e, add(ONE, e))


def tanh(a):
    e = exp(times(D(2), a))
    return div(add(e, constant(-1)), add(e, ONE))


def softplus(a):
    """log(1 + e^x); the log of a number near 1 needs digits, which the caller gives."""
    return ln(add(ONE, exp(a)))


def mish(a):
    e = exp(a)
    n = mul(e, add(e, constant(2)))                  # (1 + e^x)^2 - 1
    return mul(a, div(n, add(n, constant(2))))


def phi(a):
    return times(D("0.5"), add(ONE, erf_of(times(SQRT_HALF, a))))


def bell(a):
    return times(SQRT_2_PI / 2, exp(times(D("-0.5"), mul(a, a))))


def gelu_tanh(a):
    inner = times(2 * SQRT_2_PI, add(a, times(D("0.044715"), mul(a, mul(a, a)))))
    return mul(a, logistic(inner))


def times_logistic_slope(a, k):
    """d/dx of x * logistic(k x)."""
    s = logistic(times(k, a))
    return mul(s, add(ONE, mul(times(k, a), add(ONE, times(D(-1), s)))))


K = D("1.702")
NOT, ODD, EVEN = "NONE", "ODD", "EVEN"

# name, jet, digits, symmetry, beyond the positive end, beyond the negative end. "x", "cubic", or a number.
UNIFORM = [
    ("EXP", exp, 60, NOT, "inf", "0"),
    ("SIGMOID", logistic, 60, NOT, "1", "0"),
    ("TANH", tanh, 60, ODD, "1", None),
    ("ERF", erf, 60, ODD, "1", None),
    ("ERF_DX", erf_slope, 60, EVEN, "0", None),
    ("GELU", lambda a: mul(a, phi(a)), 220, NOT, "x", "-0"),
    ("GELU_DX", lambda a: add(phi(a), mul(a, bell(a))), 220, NOT, "1", "-0"),
    ("GELU_APPRX_TANH", gelu_tanh, 60, NOT, "x", "-0"),
    ("GELU_APPRX_SIGMOID", lambda a: mul(a, logistic(times(K, a))), 60, NOT, "x", "-0"),
    ("GELU_APPRX_SIGMOID_DX", lambda a: times_logistic_slope(a, K), 60, NOT, "1", "-0"),
    ("SILU", lambda a: mul(a, logistic(a)), 60, NOT, "x", "-0"),
    ("SILU_DX", lambda a: times_logistic_slope(a, D(1)), 60, NOT, "1", "-0"),
    ("SOFTPLUS", softplus, 120, NOT, "x", "0"),
    ("MISH", mish, 60, NOT, "x", "-0"),
    ("SIN", sine, 60, ODD, "cubic", None),
    ("ARCTAN", arctangent, 60, ODD, "cubic", None),
]
FIXED_END = {"SIN": D("3.25"), "ARCTAN": D("1.75"), ("EXP", "inf"): D("88.75")}

# Power laws: 2^k buckets an octave over one or two octaves; the rest follows by exact scaling. rsqrt has as
# many as device errors tell; the last one is the alternative, as many as reciprocal has.
POWER = [
    ("RECIPROCAL", lambda a: div(ONE, a), 1, 3),
    ("SQRT", root, 2, 3),
    ("RSQRT", lambda a: div(ONE, root(a)), 2, 2),
    ("LOG", ln, 1, 3),
    ("RSQRT", lambda a: div(ONE, root(a)), 2, 3),
]


def jet(f, digits, centre):
    with localcontext() as c:
        c.prec = digits
        return f([D(centre), D(1), D(0), D(0)])


def beyond(f, digits, sign, x, limit):
    """Is f(sign * x) its limit, to within 2^-25 of it, or less than half the least subnormal?"""
    value = jet(f, digits, sign * x)[0]
    if limit in ("0", "-0"):
        return abs(value) < D(2) ** -150
    goal = sign * x if limit == "x" else D(limit)
    return abs(value - goal) <= abs(goal) * D(2) ** -25


def end_of(name, f, digits, sign, limit):
    if name in FIXED_END:
        return FIXED_END[name]
    if (name, limit) in FIXED_END:
        return FIXED_END[name, limit]
    low, high = 1, 512                                # in widths; beyond() is monotonic from the first true on
    while low < high:
        middle = (low + high) // 2
        if beyond(f, digits, sign, middle * WIDTH, limit):
            high = middle
        else:
            low = middle + 1
    return low * WIDTH


def centres(end):
    yield D(0)
    for e in range(LOWEST, -2):
        yield D(3) * D(2) ** (e - 1)
    for i in range(1, int(end / WIDTH)):
        yield (i + D("0.5")) * WIDTH


def buckets(f, digits, sign, end):
    return [tuple(rounded(a) for a in jet(f, digits, sign * c)) for c in centres(end)]


rows = []                                              # of all functions
whole = []                                            # sides that stand there in one piece


def place(side):
    """Puts a side's buckets into rows. From `joint` on they may be equal to those of an earlier side (the tails of
    several functions are e^x): (first row, joint, row of bucket `joint`), or joint 0 where all are its own."""
    joint, at = len(side), 0
    for first, count in whole:
        p = len(side)
        while 0 < p <= count and rows[first + p - 1] == side[p - 1]:
            p -= 1
        if p < joint:
            joint, at = p, first + p
    first = len(rows)
    if joint > len(side) - 8:
        whole.append((first, len(side)))
        joint, at = len(side), 0
    rows.extend(side[:joint])
    return (first, joint, at) if joint < len(side) else (first, 0, 0)


def side_of(name, f, digits, sign, limit):
    if limit is None:
        return "0.0f, CUBIC, 0, 0, 0, 0"
    end = end_of(name, f, digits, sign, limit)
    first, joint, at = place(buckets(f, digits, sign, end))
    kind = {"x": "ARGUMENT", "cubic": "CUBIC"}.get(limit, "VALUE")
    value = {"inf": "0x7f800000u", "-0": "0x80000000u", "1": "0x3f800000u"}.get(limit, "0")
    return "%sf, %s, %s, %d, %d, %d" % (end, kind, value, first, joint, at)


def layouts():
    lines = []
    for name, f, digits, symmetry, up, down in UNIFORM:
        positive = side_of(name, f, digits, 1, up)
        negative = side_of(name, f, digits, -1, down)
        lines.append("X(%s, %s, %s, %s)" % (name, symmetry, positive, negative))
    return lines


def powers():
    lines = []
    for name, f, octaves, log2_buckets in POWER:
        each = 2 ** log2_buckets
        lines.append("X(%s, %d, %d, %d)" % (name, octaves, len(rows), log2_buckets))
        for i in range(each * octaves):
            octave, place_in_it = divmod(i, each)
            centre = (each + place_in_it + D("0.5")) / each * 2 ** octave
            rows.append(tuple(rounded(a) for a in jet(f, 60, centre)))
    return lines


HEAD = """\
/* engine/act_data.h - the buckets of the Scalar engine's functions: made by scripts/act_tables.py, not by hand.
 * Behind trn_act.h. SPDX-License-Identifier: MIT
 *
 * DOES: holds, for each bucket, the four Taylor coefficients of its function about its centre, correctly rounded to
 *     binary32: two words of 64 bits, the lower order in the lower half. And one row a function: where its buckets are.
 * DOES NOT: know how they are evaluated: trn_act.h does.
 *
 * In it:
 *     TRNI_ACT_OCTAVES    the first octave, and how many; below them one bucket about zero
 *     TRNI_ACT_LAYOUTS    X(function, symmetry, positive side, negative side), a side being six words: its end, what
 *                         is beyond it, that value's bits, its first row, and from which bucket on (0 = none) its rows
 *                         stand where another function's equal ones do
 *     TRNI_ACT_POWERS     X(function, octaves, first row, k): 2^k buckets an octave, from 1 on
 *     trni_act_words      the coefficients
 *
 * Uniform layouts have buckets of 0.25 from 0.25 on and one an octave below that. They end where the function, in
 * binary32, is its limit: within 2^-25 of it, or, where that is 0, below half the least subnormal. Arguments count up
 * from zero on each side.
 *
 * KNOWN FROM: the functions' definitions. That the engine's coefficients are Taylor's about a bucket's centre:
 *     `measured` for exp, reciprocal and the first rsqrt (errors published for Trainium1 and 2), `documented` for sin
 *     beyond its range (NKI, supported activation functions); `assumed` for the others, and all ends are `assumed`.
 */
#ifndef TRNI_ENGINE_ACT_DATA_H
#define TRNI_ENGINE_ACT_DATA_H

#include "../base/base.h"

"""


def macro(name, lines):
    width = max(len(line) for line in lines) + 5
    print(("#define %s(X)" % name).ljust(width) + "\\")
    for line in lines[:-1]:
        print(("    " + line).ljust(width) + "\\")
    print("    " + lines[-1])
    print()


def main():
    sys.stdout.write(HEAD)
    print("enum { TRNI_ACT_LOWEST = %d, TRNI_ACT_OCTAVES = %d };\n" % (LOWEST, OCTAVES))
    macro("TRNI_ACT_LAYOUTS", layouts())
    macro("TRNI_ACT_POWERS", powers())
    words = []
    for r in rows:
        words += ["0x%08x%08x," % (r[1], r[0]), "0x%08x%08x," % (r[3], r[2])]
    print("enum { TRNI_ACT_ROWS = %d };\n" % len(rows))
    print("TRNI_DATA uint64_t trni_act_words[2 * TRNI_ACT_ROWS] = {")
    for i in range(0, len(words), 6):
        print("    " + "".join(words[i:i + 6]))
    print("};\n")
    print("#endif /* TRNI_ENGINE_ACT_DATA_H */")


if __name__ == "__main__":
    main()

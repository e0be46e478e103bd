/* numbers.c - numbers that are hard for a format, numbers by chance, and what kind each of them is.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_random.h>

#define INFINITE 0x7f800000u
#define MAGNITUDE 0x7fffffffu

float vec_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t vec_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- by chance ---- */

uint32_t vec_draw(vec_random *r) { return trn_random_u32(r->seed, r->stream, r->index++); }
uint32_t vec_below(vec_random *r, uint32_t n) { return (uint32_t)((uint64_t)vec_draw(r) * n >> 32); }

float vec_normal(vec_random *r)
{
    int32_t sum = 0; /* of 24 uniform numbers of 16 bits: exact, and the same everywhere */
    for (int i = 0; i < 12; i++) {
        const uint32_t word = vec_draw(r);
        sum += (int32_t)(word & 0xffff) + (int32_t)(word >> 16) - 0xffff;
    }
    return (float)sum * 0x1p-17f * 1.4142135f;
}

/* ---- the neighbours of a number ---- */

/* The value of a magnitude's code, also of the step after the largest. */
static double value_of(const vec_format *f, uint32_t code)
{
    const trn_format_info *i = &f->info;
    if (code <= i->max_code) return (double)vec_float(vec_decode(f, code << i->low_zeros));
    const double top = value_of(f, i->max_code);
    return i->kind == TRN_KIND_SCALE ? 2 * top : 2 * top - value_of(f, i->max_code - 1);
}

/* The largest code whose value is at most |x|; the last one that there is for anything larger. E8M0: at least 0. */
static uint32_t code_below(const vec_format *f, double x)
{
    uint32_t low = 0, high = f->info.max_code + 1;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (value_of(f, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double vec_position(const vec_format *f, uint32_t x)
{
    const double magnitude = fabs((double)vec_float(x));
    const uint32_t code = code_below(f, magnitude);
    const double low = value_of(f, code), high = value_of(f, code + 1);
    return magnitude <= low ? 0 : magnitude >= high ? 1 : (magnitude - low) / (high - low);
}

/* ---- kinds ---- */

enum kind {
    ZERO,
    EXACT,
    EXACT_SUBNORMAL,
    TIE,
    TIE_SUBNORMAL,
    BESIDE_TIE,
    BESIDE_TIE_SUBNORMAL,
    BETWEEN,
    BETWEEN_SUBNORMAL,
    LEAST,
    LARGEST,
    OVERFLOW_,
    INFINITY_,
    NAN_,
    NEGATIVE,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "zero",
    "exact",
    "exact, subnormal result",
    "tie",
    "tie, subnormal result",
    "beside a tie",
    "beside a tie, subnormal result",
    "inexact",
    "inexact, subnormal result",
    "below the smallest number",
    "above the largest number, but nearer to it",
    "overflow",
    "infinity",
    "NaN",
    "negative, where there is no sign",
};

int vec_kinds(void) { return KINDS; }
const char *vec_kind_at(int i) { return kind_names[i]; }

static bool is_tie(const vec_format *f, uint32_t x) { return (x & MAGNITUDE) && vec_position(f, x) == 0.5; }

static enum kind finite_kind(const vec_format *f, uint32_t x)
{
    const trn_format_info *i = &f->info;
    const double magnitude = fabs((double)vec_float(x)), top = value_of(f, i->max_code);
    const bool subnormal = i->kind == TRN_KIND_FLOAT && code_below(f, magnitude) < 1u << i->mantissa_bits;
    if (magnitude > top) return vec_position(f, x) >= 0.5 ? OVERFLOW_ : LARGEST;
    if (magnitude == value_of(f, code_below(f, magnitude))) return subnormal ? EXACT_SUBNORMAL : EXACT;
    if (is_tie(f, x)) return subnormal ? TIE_SUBNORMAL : TIE;
    if (magnitude < value_of(f, i->kind == TRN_KIND_SCALE ? 0 : 1)) return LEAST;
    if (is_tie(f, x + 1) || is_tie(f, x - 1)) return subnormal ? BESIDE_TIE_SUBNORMAL : BESIDE_TIE;
    return subnormal ? BETWEEN_SUBNORMAL : BETWEEN;
}

static enum kind kind_of(const vec_format *f, uint32_t x)
{
    const uint32_t magnitude = x & MAGNITUDE;
    if (magnitude > INFINITE) return NAN_;
    if (f->info.kind == TRN_KIND_SCALE && (x >> 31)) return NEGATIVE;
    if (magnitude == INFINITE) return INFINITY_;
    return magnitude == 0 ? ZERO : finite_kind(f, x);
}

/* ---- lists ---- */

static void add(vec_inputs *list, uint32_t x)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->x = (uint32_t *)realloc(list->x, list->room * sizeof *list->x);
        if (!list->x) vec_fail("there is no memory for the inputs");
    }
    list->x[list->count++] = x;
}

static void add_both(vec_inputs *list, uint32_t magnitude)
{
    add(list, magnitude);
    add(list, magnitude | 0x80000000u);
}

/* A finite magnitude and its neighbours in binary32. */
static void add_around(vec_inputs *list, double x)
{
    const uint32_t bits = vec_bits((float)x) & MAGNITUDE;
    if (bits > 0) add_both(list, bits - 1);
    add_both(list, bits);
    add_both(list, bits + 1);
}

/* A code's value, and the middle between it and the next. */
static void add_code(vec_inputs *list, const vec_format *f, uint32_t code)
{
    add_around(list, value_of(f, code));
    add_around(list, (value_of(f, code) + value_of(f, code + 1)) / 2);
}

static void add_codes(vec_inputs *list, const vec_format *f, vec_random *r)
{
    const uint32_t last = f->info.max_code, mantissas = 1u << f->info.mantissa_bits;
    if (last < 256) {
        for (uint32_t code = 0; code <= last; code++) add_code(list, f, code);
        return;
    }
    for (uint32_t base = 0; base <= last; base += mantissas) {
        const uint32_t at[] = { 0, 1, mantissas / 2, mantissas - 1, vec_below(r, mantissas) };
        const bool all = base < 2 * mantissas || base + 2 * mantissas > last || (base / mantissas) % 4 == 3;
        for (int i = 0; i < 5; i++)
            if (all || i == 4) add_code(list, f, base + at[i]);
    }
}

/* What limits a format: its ends, infinities and NaN of all sorts. */
static void add_limits(vec_inputs *list, const vec_format *f)
{
    static const uint32_t special[] = { INFINITE,    0x7fc00000u, 0x7f800001u, 0x7fbfffffu, 0x7fffffffu, 0x7fd55555u,
                                        0x7f7fffffu, 0x00000001u, 0x007fffffu, 0x00800000u, 0x00400000u, 0 };
    const uint32_t last = f->info.max_code;
    for (int i = 0; i < (int)(sizeof special / sizeof *special); i++) add_both(list, special[i]);
    for (uint32_t code = last - 2; code <= last; code++) add_code(list, f, code);
    const double top = value_of(f, last), next = value_of(f, last + 1);
    if (f->info.kind == TRN_KIND_FLOAT && f->info.exponent_bits < 8) {
        add_around(list, next);
        add_around(list, 2 * next);
        add_around(list, top * 1e3);
    }
}

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_once(vec_inputs *list)
{
    size_t kept = 0;
    qsort(list->x, list->count, sizeof *list->x, ascending);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->x[kept - 1] != list->x[i]) list->x[kept++] = list->x[i];
    list->count = kept;
}

/* Any number between a quarter of the smallest and four times the largest. */
static void add_chance(vec_inputs *list, const vec_format *f, vec_random *r)
{
    const uint32_t first = f->info.kind == TRN_KIND_SCALE ? 0 : 1;
    const double low = value_of(f, first) / 4, high = value_of(f, f->info.max_code) * 4;
    const uint32_t from = vec_bits((float)low);
    const uint32_t to = high < 0x1p127 ? vec_bits((float)high) : INFINITE;
    for (int i = 0; i < 256; i++) {
        const uint32_t sign = vec_draw(r) & 0x80000000u;
        add(list, (from + vec_below(r, to - from)) | sign);
    }
    for (uint32_t exponent = 0; exponent < 255; exponent += 5) add(list, exponent << 23 | (vec_draw(r) & 0x807fffffu));
}

vec_inputs vec_hard(const vec_format *f, vec_random *r, bool limits_only)
{
    vec_inputs list = { NULL, NULL, 0, 0 };
    add_limits(&list, f);
    if (!limits_only) {
        add_codes(&list, f, r);
        add_chance(&list, f, r);
    }
    sort_once(&list);
    list.kind = (unsigned char *)malloc(list.count);
    if (!list.kind) vec_fail("there is no memory for the inputs");
    for (size_t i = 0; i < list.count; i++) list.kind[i] = (unsigned char)kind_of(f, list.x[i]);
    return list;
}

void vec_inputs_free(vec_inputs *inputs)
{
    free(inputs->x);
    free(inputs->kind);
}

int vec_edges(const uint32_t **edges)
{
    static const uint32_t list[] = {
        0x00000000u, 0x80000000u, 0x3f800000u, 0xbf800000u, 0x40000000u, 0x3f000000u, 0x3eaaaaabu,
        0xc0490fdbu, 0x00000001u, 0x80000001u, 0x007fffffu, 0x807fffffu, 0x00800000u, 0x80800000u,
        0x00800001u, 0x34000000u, 0x3f800001u, 0x3f7fffffu, 0x4b800000u, 0x4b7fffffu, 0xcb800001u,
        0x5f000000u, 0x20000000u, 0x7e800000u, 0x7f000000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u,
        0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffabcdefu,
    };
    *edges = list;
    return (int)(sizeof list / sizeof *list);
}

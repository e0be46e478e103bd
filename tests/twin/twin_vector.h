/* twin_vector.h - the slow twin of the Vector engine: tiles of codes, one element after another, each operator spelt.
 * SPDX-License-Identifier: MIT
 *
 * Written from NKI's instruction pages and the design's semantics alone. Operands become binary32 numbers, which are
 * passed around as their bits; an operation is one volatile float, so that no compiler fuses two; the way out is
 * twin_encode of twin_number.h. Every NaN that is computed is 7fc00000; what is only moved keeps its bits.
 */
#ifndef TWIN_VECTOR_H
#define TWIN_VECTOR_H

#include <math.h>

#include "twin/twin_number.h"
#include "twin/twin_random.h"

/* ---- tiles ---- */

typedef struct twin_grid {
    twin_format format;
    int partitions, elements;
    uint32_t *code; /* row after row; null: no tile */
} twin_grid;

static inline twin_grid twin_grid_make(const twin_format *format, int partitions, int elements)
{
    twin_grid t = { *format, partitions, elements, NULL };
    t.code = (uint32_t *)calloc((size_t)partitions * (size_t)elements + 1, sizeof(uint32_t));
    if (!t.code) abort();
    return t;
}

static inline twin_grid twin_no_grid(void)
{
    twin_grid t;
    memset(&t, 0, sizeof t);
    return t;
}

static inline uint32_t *twin_at(const twin_grid *t, int p, int f)
{
    return &t->code[(size_t)p * (size_t)t->elements + (size_t)f];
}

static inline bool twin_is_f32(const twin_format *f) { return f->sort == TWIN_SORT_FLOAT && f->e == 8 && f->m == 23; }

static inline bool twin_same_format(const twin_format *a, const twin_format *b)
{
    return strcmp(a->name, b->name) == 0 && a->e == b->e && a->m == b->m && a->bias == b->bias &&
           a->beyond == b->beyond && a->low_zeros == b->low_zeros && a->bits == b->bits && a->is_signed == b->is_signed;
}

/* A code as the bits of a binary32 number. Only 32-bit integers can need rounding. */
static inline uint32_t twin_widen(const twin_format *f, uint32_t code)
{
    if (twin_is_f32(f)) return code;
    const twin_number x = twin_decode(f, code);
    return twin_to_f32(&x);
}

static inline uint32_t twin_load(const twin_grid *t, int p, int f) { return twin_widen(&t->format, *twin_at(t, p, f)); }

/* The cast on the way out. */
typedef struct twin_cast {
    twin_mode mode;
    uint64_t seed, stream;
    int bits; /* random ones */
} twin_cast;

static inline uint32_t twin_narrow(const twin_format *f, uint32_t bits, const twin_cast *how, uint64_t index)
{
    if (twin_is_f32(f)) return bits;
    const twin_number x = twin_from_f32(bits);
    twin_way way = twin_plain(how->mode);
    way.random_bits = how->bits;
    if (how->mode == TWIN_STOCHASTIC) way.random = twin_random_bits(how->seed, how->stream, index, how->bits);
    return twin_encode(f, &x, way);
}

/* Element (p, f) of [P, F] takes random field p F + f. */
static inline void twin_store(const twin_grid *t, int p, int f, uint32_t bits, const twin_cast *how)
{
    *twin_at(t, p, f) = twin_narrow(&t->format, bits, how, (uint64_t)p * (uint64_t)t->elements + (uint64_t)f);
}

/* What a move does: bits within a format, the cast between two. */
static inline void twin_carry(const twin_grid *to, int p, int f, const twin_grid *from, int p0, int f0,
                              const twin_cast *how)
{
    if (twin_same_format(&to->format, &from->format))
        *twin_at(to, p, f) = *twin_at(from, p0, f0);
    else
        twin_store(to, p, f, twin_load(from, p0, f0), how);
}

/* ---- binary32 by its bits ---- */

#define TWIN_ONE 0x3f800000u
#define TWIN_CANONICAL 0x7fc00000u
#define TWIN_PLUS_INFINITY 0x7f800000u
#define TWIN_MINUS_INFINITY 0xff800000u
#define TWIN_LOWEST 0xff7fffffu /* FP32_MIN */

static inline float twin_value(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t twin_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline bool twin_isnan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

/* A result: every NaN is the same one. */
static inline uint32_t twin_result(volatile float x)
{
    const float y = x;
    return twin_isnan(twin_bits(y)) ? TWIN_CANONICAL : twin_bits(y);
}

static inline uint32_t twin_truth(bool yes) { return yes ? TWIN_ONE : 0; }

static inline uint32_t twin_f32_sum(uint32_t a, uint32_t b)
{
    volatile float x = twin_value(a), y = twin_value(b);
    return twin_result(x + y);
}

static inline uint32_t twin_f32_difference(uint32_t a, uint32_t b)
{
    volatile float x = twin_value(a), y = twin_value(b);
    return twin_result(x - y);
}

static inline uint32_t twin_f32_product(uint32_t a, uint32_t b)
{
    volatile float x = twin_value(a), y = twin_value(b);
    return twin_result(x * y);
}

static inline uint32_t twin_f32_quotient(uint32_t a, uint32_t b)
{
    volatile float x = twin_value(a), y = twin_value(b);
    return twin_result(x / y);
}

/* -1, 0, 1; both are numbers. */
static inline int twin_order(uint32_t a, uint32_t b)
{
    const float x = twin_value(a), y = twin_value(b);
    return x < y ? -1 : x > y;
}

/* The larger (sign = 1) or the smaller (-1); NaN loses, +0 is above -0. */
static inline uint32_t twin_extreme(uint32_t a, uint32_t b, int sign)
{
    if (twin_isnan(a) && twin_isnan(b)) return TWIN_CANONICAL;
    if (twin_isnan(a)) return b;
    if (twin_isnan(b)) return a;
    int order = twin_order(a, b);
    if (order == 0 && a != b) order = a == 0 ? 1 : -1; /* two zeros */
    return order * sign >= 0 ? a : b;
}

/* The operand of larger or smaller magnitude with its own sign; a tie gives the second. */
static inline uint32_t twin_extreme_magnitude(uint32_t a, uint32_t b, int sign)
{
    if (twin_isnan(a) && twin_isnan(b)) return TWIN_CANONICAL;
    if (twin_isnan(a)) return b;
    if (twin_isnan(b)) return a;
    const int order = twin_order(a & 0x7fffffffu, b & 0x7fffffffu);
    return order * sign > 0 ? a : b;
}

/* 1/sqrt(x), correctly rounded: t is the answer when its lower and upper neighbouring midpoints m have m m x < 1 and
 * > 1, exactly. */
static inline int twin_rsqrt_side(uint32_t low, uint32_t high, const twin_number *x)
{
    const twin_number a = twin_from_f32(low), b = twin_from_f32(high), sum = twin_add(&a, &b);
    const twin_number square = twin_multiply(&sum, &sum), four = twin_make(false, 4, 0); /* (2 m)^2 x against 4 */
    const twin_number product = twin_multiply(&square, x);
    return twin_compare_magnitude(&product, &four);
}

static inline uint32_t twin_rsqrt(uint32_t bits)
{
    if (twin_isnan(bits)) return TWIN_CANONICAL;
    if ((bits & 0x7fffffffu) == 0) return TWIN_PLUS_INFINITY | (bits & 0x80000000u); /* IEEE 754: rSqrt(-0) = -inf */
    if (bits & 0x80000000u) return TWIN_CANONICAL;
    if (bits == TWIN_PLUS_INFINITY) return 0;
    const twin_number x = twin_from_f32(bits);
    uint32_t t = twin_bits((float)(1.0 / sqrt((double)twin_value(bits))));
    while (twin_rsqrt_side(t - 1, t, &x) > 0) t--;
    while (twin_rsqrt_side(t, t + 1, &x) < 0) t++;
    return t;
}

/* ---- the operators, by NKI's names ---- */

typedef enum twin_op {
    TWIN_BYPASS,
    TWIN_ADD,
    TWIN_SUBTRACT,
    TWIN_MULTIPLY,
    TWIN_MAXIMUM,
    TWIN_MINIMUM,
    TWIN_EQUAL,
    TWIN_NOT_EQUAL,
    TWIN_GREATER_EQUAL,
    TWIN_GREATER,
    TWIN_LESS_EQUAL,
    TWIN_LESS,
    TWIN_LOGICAL_AND,
    TWIN_LOGICAL_OR,
    TWIN_LOGICAL_XOR,
    TWIN_ABS_MAX,
    TWIN_ABS_MIN,
    TWIN_BINARIES, /* those above but the first have two operands, on the Vector engine */
    TWIN_ABS = TWIN_BINARIES,
    TWIN_SQUARE,
    TWIN_RELU,
    TWIN_RECIPROCAL,
    TWIN_LOGICAL_NOT,
    TWIN_NUMBERS, /* those above work on numbers */
    TWIN_INVERT = TWIN_NUMBERS,
    TWIN_AND,
    TWIN_OR,
    TWIN_XOR,
    TWIN_LEFT_SHIFT,
    TWIN_RIGHT_SHIFT,
    TWIN_VECTOR_OPS, /* those above run on the Vector engine */
    TWIN_RSQRT = TWIN_VECTOR_OPS,
    TWIN_POWER,
    TWIN_OPS
} twin_op;

static const char *const twin_op_name[TWIN_OPS] = {
    "bypass",      "add",         "subtract",      "multiply",    "maximum",    "minimum",
    "equal",       "not_equal",   "greater_equal", "greater",     "less_equal", "less",
    "logical_and", "logical_or",  "logical_xor",   "abs_max",     "abs_min",    "abs",
    "square",      "relu",        "reciprocal",    "logical_not", "invert",     "bitwise_and",
    "bitwise_or",  "bitwise_xor", "left_shift",    "right_shift", "rsqrt",      "power",
};

static inline uint32_t twin_compare(twin_op op, uint32_t a, uint32_t b)
{
    const bool ordered = !twin_isnan(a) && !twin_isnan(b);
    const int order = ordered ? twin_order(a, b) : 0;
    switch (op) {
    case TWIN_EQUAL: return twin_truth(ordered && order == 0);
    case TWIN_NOT_EQUAL: return twin_truth(!ordered || order != 0);
    case TWIN_GREATER_EQUAL: return twin_truth(ordered && order >= 0);
    case TWIN_GREATER: return twin_truth(ordered && order > 0);
    case TWIN_LESS_EQUAL: return twin_truth(ordered && order <= 0);
    default: return twin_truth(ordered && order < 0);
    }
}

/* a op b, one rounding. An operator with one operand takes the first. */
static inline uint32_t twin_alu(twin_op op, uint32_t a, uint32_t b)
{
    const bool is_a = (a & 0x7fffffffu) != 0, is_b = (b & 0x7fffffffu) != 0; /* NaN is true */
    switch (op) {
    case TWIN_BYPASS: return a;
    case TWIN_ADD: return twin_f32_sum(a, b);
    case TWIN_SUBTRACT: return twin_f32_difference(a, b);
    case TWIN_MULTIPLY: return twin_f32_product(a, b);
    case TWIN_MAXIMUM: return twin_extreme(a, b, 1);
    case TWIN_MINIMUM: return twin_extreme(a, b, -1);
    case TWIN_LOGICAL_AND: return twin_truth(is_a && is_b);
    case TWIN_LOGICAL_OR: return twin_truth(is_a || is_b);
    case TWIN_LOGICAL_XOR: return twin_truth(is_a != is_b);
    case TWIN_ABS_MAX: return twin_extreme_magnitude(a, b, 1);
    case TWIN_ABS_MIN: return twin_extreme_magnitude(a, b, -1);
    case TWIN_ABS: return twin_isnan(a) ? TWIN_CANONICAL : a & 0x7fffffffu;
    case TWIN_SQUARE: return twin_f32_product(a, a);
    case TWIN_RELU: return twin_isnan(a) ? TWIN_CANONICAL : twin_order(a, 0) > 0 ? a : 0;
    case TWIN_RECIPROCAL: return twin_f32_quotient(TWIN_ONE, a);
    case TWIN_LOGICAL_NOT: return twin_truth(!is_a);
    case TWIN_RSQRT: return twin_rsqrt(a);
    case TWIN_EQUAL:
    case TWIN_NOT_EQUAL:
    case TWIN_GREATER_EQUAL:
    case TWIN_GREATER:
    case TWIN_LESS_EQUAL:
    case TWIN_LESS: return twin_compare(op, a, b);
    default: twin_stop("no such operator on numbers"); return 0;
    }
}

static inline uint32_t twin_alu_either(twin_op op, uint32_t a, uint32_t b, bool reverse)
{
    if (op >= TWIN_ABS && op <= TWIN_LOGICAL_NOT) return twin_alu(op, a, b); /* one operand is the data */
    if (op == TWIN_BYPASS || op == TWIN_RSQRT) return twin_alu(op, a, b);
    return reverse ? twin_alu(op, b, a) : twin_alu(op, a, b);
}

/* On raw bits of one width; a count of width and more shifts everything out. */
static inline uint32_t twin_bitvec(twin_op op, uint32_t a, uint32_t b, int width)
{
    const uint32_t all = twin_ones(width);
    a &= all;
    b &= all;
    switch (op) {
    case TWIN_BYPASS: return a;
    case TWIN_INVERT: return ~a & all;
    case TWIN_AND: return a & b;
    case TWIN_OR: return a | b;
    case TWIN_XOR: return a ^ b;
    case TWIN_LEFT_SHIFT: return b >= (uint32_t)width ? 0 : a << b & all;
    case TWIN_RIGHT_SHIFT: return b >= (uint32_t)width ? 0 : a >> b;
    default: twin_stop("no such operator on bits"); return 0;
    }
}

static inline uint32_t twin_bitvec_either(twin_op op, uint32_t a, uint32_t b, int width, bool reverse)
{
    return reverse && op != TWIN_INVERT && op != TWIN_BYPASS ? twin_bitvec(op, b, a, width)
                                                             : twin_bitvec(op, a, b, width);
}

/* Where a reduction begins. */
static inline uint32_t twin_identity(twin_op op)
{
    switch (op) {
    case TWIN_MULTIPLY:
    case TWIN_LOGICAL_AND: return TWIN_ONE;
    case TWIN_MAXIMUM: return TWIN_MINUS_INFINITY;
    case TWIN_MINIMUM: return TWIN_PLUS_INFINITY;
    default: return 0;
    }
}

/* ---- operands that are one number for all, or one per partition ---- */

typedef struct twin_column {
    uint32_t bits;  /* of a binary32 number, or raw */
    twin_grid tile; /* [P, 1] */
} twin_column;

static inline uint32_t twin_column_at(const twin_column *c, int p)
{
    return c->tile.code ? twin_load(&c->tile, p, 0) : c->bits;
}
static inline uint32_t twin_column_raw(const twin_column *c, int p)
{
    return c->tile.code ? *twin_at(&c->tile, p, 0) : c->bits;
}

/* ---- elementwise ---- */

static inline void twin_tensor_tensor(const twin_grid *dst, const twin_grid *a, const twin_grid *b, twin_op op,
                                      const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) {
            if (op >= TWIN_NUMBERS && op < TWIN_VECTOR_OPS)
                *twin_at(dst, p, f) = twin_bitvec(op, *twin_at(a, p, f), *twin_at(b, p, f), dst->format.bits);
            else
                twin_store(dst, p, f, twin_alu(op, twin_load(a, p, f), twin_load(b, p, f)), how);
        }
}

typedef struct twin_step {
    twin_op op;
    twin_column operand;
    bool reverse;
} twin_step;

static inline bool twin_is_bitvec(twin_op op) { return op >= TWIN_NUMBERS && op < TWIN_VECTOR_OPS; }

static inline void twin_tensor_scalar(const twin_grid *dst, const twin_grid *data, const twin_step step[2],
                                      const twin_cast *how)
{
    const bool bits = twin_is_bitvec(step[0].op) || twin_is_bitvec(step[1].op);
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) {
            uint32_t x = bits ? *twin_at(data, p, f) : twin_load(data, p, f);
            for (int i = 0; i < 2; i++) {
                const twin_step *s = &step[i];
                x = bits ? twin_bitvec_either(s->op, x, twin_column_raw(&s->operand, p), dst->format.bits, s->reverse)
                         : twin_alu_either(s->op, x, twin_column_at(&s->operand, p), s->reverse);
            }
            if (bits)
                *twin_at(dst, p, f) = x;
            else
                twin_store(dst, p, f, x, how);
        }
}

static inline void twin_scalar_tensor_tensor(const twin_grid *dst, const twin_grid *data, const twin_step *first,
                                             const twin_grid *other, twin_op op1, bool reverse1, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) {
            const uint32_t x =
                twin_alu_either(first->op, twin_load(data, p, f), twin_column_at(&first->operand, p), first->reverse);
            twin_store(dst, p, f, twin_alu_either(op1, x, twin_load(other, p, f), reverse1), how);
        }
}

static inline void twin_tensor_copy(const twin_grid *dst, const twin_grid *src, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) twin_carry(dst, p, f, src, p, f, how);
}

/* src without codes: `value` is copied. dst holds what it was. */
static inline void twin_copy_predicated(const twin_grid *dst, const twin_grid *src, uint32_t value,
                                        const twin_grid *predicate, bool reverse, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) {
            if ((*twin_at(predicate, p, f) != 0) == reverse) continue;
            if (src->code)
                twin_carry(dst, p, f, src, p, f, how);
            else
                twin_store(dst, p, f, value, how);
        }
}

static inline void twin_memset(const twin_grid *dst, uint32_t value, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) twin_store(dst, p, f, value, how);
}

static inline void twin_reciprocal(const twin_grid *dst, const twin_grid *data, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++)
            twin_store(dst, p, f, twin_f32_quotient(TWIN_ONE, twin_load(data, p, f)), how);
}

/* ---- reductions and scans ---- */

/* Runs of data's elements, as many as dst has, each to one number. */
static inline void twin_tensor_reduce(const twin_grid *dst, const twin_grid *data, twin_op op, bool negate,
                                      const twin_cast *how)
{
    const int run = dst->elements ? data->elements / dst->elements : 0;
    for (int p = 0; p < dst->partitions; p++)
        for (int i = 0; i < dst->elements; i++) {
            uint32_t sum = op == TWIN_AND ? 0xffffffffu : twin_identity(op);
            for (int f = i * run; f < (i + 1) * run; f++)
                sum = twin_is_bitvec(op) ? twin_bitvec(op, sum, *twin_at(data, p, f), data->format.bits)
                                         : twin_alu(op, sum, twin_load(data, p, f));
            if (negate) sum = twin_f32_product(sum, twin_bits(-1.0f));
            if (twin_is_bitvec(op))
                *twin_at(dst, p, i) = sum & twin_ones(dst->format.bits);
            else
                twin_store(dst, p, i, sum, how);
        }
}

/* The engine's registers, and what an instruction does with them. */
typedef enum twin_command {
    TWIN_IDLE,
    TWIN_RESET,
    TWIN_REDUCE,
    TWIN_RESET_REDUCE,
    TWIN_LOAD_REDUCE,
    TWIN_COMMANDS
} twin_command;

typedef struct twin_registers {
    uint32_t bits[128];
    bool known;
} twin_registers;

/* What accumulation of partition p starts with. */
static inline uint32_t twin_begin(const twin_registers *r, twin_command command, twin_op op, const twin_column *init,
                                  int p)
{
    if (command == TWIN_REDUCE) return r->bits[p];
    return command == TWIN_LOAD_REDUCE ? twin_column_at(init, p) : twin_identity(op);
}

/* dst = data op0 operand; the registers reduce what goes into the cast; res (if any) receives them. */
typedef struct twin_accumulation {
    twin_command command;
    twin_op op;
    twin_column init;
    bool negate;
    twin_grid res;
    twin_registers *registers;
} twin_accumulation;

static inline void twin_accumulate(const twin_accumulation *a, const uint32_t *x, int n, int p, const twin_cast *how)
{
    if (a->command == TWIN_IDLE) {
        a->registers->known = false;
        return;
    }
    uint32_t sum = twin_begin(a->registers, a->command, a->op, &a->init, p);
    for (int f = 0; f < n && a->command != TWIN_RESET; f++) sum = twin_alu(a->op, sum, x[f]);
    if (p < 128) a->registers->bits[p] = sum;
    a->registers->known = true;
    if (!a->res.code) return;
    if (a->negate) sum = twin_f32_product(sum, twin_bits(-1.0f));
    twin_store(&a->res, p, 0, sum, how);
}

static inline uint32_t *twin_words(int n)
{
    uint32_t *x = (uint32_t *)calloc((size_t)n + 1, sizeof(uint32_t));
    if (!x) abort();
    return x;
}

static inline void twin_tensor_scalar_reduce(const twin_grid *dst, const twin_grid *data, const twin_step *step,
                                             const twin_accumulation *a, const twin_cast *how)
{
    uint32_t *x = twin_words(dst->elements);
    for (int p = 0; p < dst->partitions; p++) {
        for (int f = 0; f < dst->elements; f++) {
            x[f] = twin_alu_either(step->op, twin_load(data, p, f), twin_column_at(&step->operand, p), step->reverse);
            twin_store(dst, p, f, x[f], how);
        }
        twin_accumulate(a, x, dst->elements, p, how);
    }
    free(x);
}

/* reg = op1(op0(x), reg), written after every element. */
static inline void twin_tensor_scalar_cumulative(const twin_grid *dst, const twin_grid *src, const twin_step *step,
                                                 const twin_accumulation *a, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++) {
        uint32_t reg = twin_begin(a->registers, a->command, a->op, &a->init, p);
        for (int f = 0; f < dst->elements; f++) {
            const uint32_t x =
                twin_alu_either(step->op, twin_load(src, p, f), twin_column_at(&step->operand, p), step->reverse);
            reg = twin_alu(a->op, x, reg);
            twin_store(dst, p, f, reg, how);
        }
        if (p < 128) a->registers->bits[p] = reg;
        a->registers->known = true;
    }
}

static inline void twin_scan(const twin_grid *dst, const twin_grid *data0, const twin_grid *data1,
                             const twin_column *initial, twin_op op0, bool reverse0, twin_op op1, bool reverse1,
                             const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++) {
        uint32_t state = twin_column_at(initial, p);
        for (int f = 0; f < dst->elements; f++) {
            const uint32_t x = twin_alu_either(op0, twin_load(data0, p, f), state, reverse0);
            state = twin_alu_either(op1, x, twin_load(data1, p, f), reverse1);
            twin_store(dst, p, f, state, how);
        }
    }
}

/* ---- selections: moves, whose maximum is taken of the binary32 values ---- */

static inline void twin_range_select(const twin_grid *dst, const twin_grid *data, twin_op compare0, twin_op compare1,
                                     const twin_grid *bound0, const twin_grid *bound1, int64_t start,
                                     const twin_accumulation *a, const twin_cast *how)
{
    uint32_t *x = twin_words(dst->elements);
    for (int p = 0; p < dst->partitions; p++) {
        for (int f = 0; f < dst->elements; f++) {
            const uint32_t index = twin_bits((float)(start + f));
            const bool keep = twin_compare(compare0, index, twin_load(bound0, p, 0)) &&
                              twin_compare(compare1, index, twin_load(bound1, p, 0));
            x[f] = keep ? twin_load(data, p, f) : TWIN_LOWEST;
            if (keep)
                twin_carry(dst, p, f, data, p, f, how);
            else
                twin_store(dst, p, f, TWIN_LOWEST, how);
        }
        twin_accumulate(a, x, dst->elements, p, how);
    }
    free(x);
}

static inline void twin_select_reduce(const twin_grid *dst, const twin_grid *predicate, bool reverse,
                                      const twin_grid *on_true, const twin_column *on_false, const twin_accumulation *a,
                                      const twin_cast *how)
{
    uint32_t *x = twin_words(dst->elements);
    for (int p = 0; p < dst->partitions; p++) {
        for (int f = 0; f < dst->elements; f++) {
            const bool yes = (*twin_at(predicate, p, f) != 0) != reverse;
            x[f] = yes ? twin_load(on_true, p, f) : twin_column_at(on_false, p);
            if (yes)
                twin_carry(dst, p, f, on_true, p, f, how);
            else if (on_false->tile.code)
                twin_carry(dst, p, f, &on_false->tile, p, 0, how);
            else
                twin_store(dst, p, f, x[f], how);
        }
        twin_accumulate(a, x, dst->elements, p, how);
    }
    free(x);
}

#endif /* TWIN_VECTOR_H */

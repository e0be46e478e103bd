/* engine/alu_kernels.h - what each operator of the engines' arithmetic units computes, and a kernel for it.
 * A room of the engines' instructions. SPDX-License-Identifier: MIT
 *
 * DOES: r = x op y over runs: on binary32 numbers with one rounding per operation; on raw bits of 8, 16 and 32; on
 *     32-bit integers exactly, modulo 2^32. r may be x or y. Folds of a run to one number. Each operator is defined
 *     once; a kernel holds all of a kind, since its caller would have to compile them all anyway.
 * DOES NOT: know formats, instructions or which operators are legal where; decode or cast.
 *
 * Numbers: every NaN that is computed is 7fc00000; bypass passes NaN on as it is. maximum and minimum: a NaN loses
 * against a number, +0 is above -0. Comparisons and logical operators give 1 or 0; NaN equals nothing and is true.
 * abs_max and abs_min return the operand itself, on a tie the second one; a NaN loses. relu(-0) is +0. reciprocal is
 * correctly rounded. average adds: what divides is its instruction. Operators with one operand do not look at y.
 * Bits: shifts by the width or more give 0. Integers: I32 and U32 may mix; each counts as the number that it is.
 * Nothing contracts: two operations are two passes over memory.
 *
 * KNOWN FROM: NKI, "Supported Math Operators for NKI ISA" (operators: documented), nki.language abs_max and abs_min
 *     (ties: documented); NaN in maximum, minimum and comparisons, counts beyond the width, relu of NaN: assumed.
 *     Integers that wrap: assumed (documented is that GpSimd's arithmetic is exact). The correctly rounded reciprocal:
 *     assumed.
 */
#ifndef TRNI_ENGINE_ALU_KERNELS_H
#define TRNI_ENGINE_ALU_KERNELS_H

#include "alu.h"
#include "gpsimd_math.h"

/* Elementwise loops whose result may be an operand: compilers look for partial overlap, do not expect a full one, and
 * would take their slow way. */
#if TRNI_CLANG
#define TRNI_ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define TRNI_ELEMENTWISE _Pragma("GCC ivdep")
#endif

/* ---- numbers ----
 *
 * A row is X(operator, name, result): x, y are the operands, a, b their bits. */

#define TRNI_ALU_TRUTH(condition) trni_float(trni_either(condition, 0x3f800000u, 0u))

#define TRNI_ALU_NUMBERS(X)                                                                                            \
    X(ADD, add, trni_alu_number(x + y))                                                                                \
    X(SUBTRACT, subtract, trni_alu_number(x - y))                                                                      \
    X(MULTIPLY, multiply, trni_alu_number((x) * (y)))                                                                  \
    X(MAXIMUM, maximum, trni_alu_pick((x > y) | (y != y), (x == y) & (a != b), x, y, a & b))                           \
    X(MINIMUM, minimum, trni_alu_pick((x < y) | (y != y), (x == y) & (a != b), x, y, a | b))                           \
    X(EQUAL, equal, TRNI_ALU_TRUTH(x == y))                                                                            \
    X(NOT_EQUAL, not_equal, TRNI_ALU_TRUTH(x != y))                                                                    \
    X(GREATER_EQUAL, greater_equal, TRNI_ALU_TRUTH(x >= y))                                                            \
    X(GREATER, greater, TRNI_ALU_TRUTH(x > y))                                                                         \
    X(LESS_EQUAL, less_equal, TRNI_ALU_TRUTH(x <= y))                                                                  \
    X(LESS, less, TRNI_ALU_TRUTH(x < y))                                                                               \
    X(LOGICAL_AND, logical_and, TRNI_ALU_TRUTH((x != 0.0f) & (y != 0.0f)))                                             \
    X(LOGICAL_OR, logical_or, TRNI_ALU_TRUTH((x != 0.0f) | (y != 0.0f)))                                               \
    X(LOGICAL_XOR, logical_xor, TRNI_ALU_TRUTH((x != 0.0f) ^ (y != 0.0f)))                                             \
    X(ABS_MAX, abs_max, trni_alu_pick((trni_alu_abs(a) > trni_alu_abs(b)) | (y != y), false, x, y, a))                 \
    X(ABS_MIN, abs_min, trni_alu_pick((trni_alu_abs(a) < trni_alu_abs(b)) | (y != y), false, x, y, a))                 \
    X(ABS, abs, trni_alu_number(trni_alu_abs(a)))                                                                      \
    X(SQUARE, square, trni_alu_number((x) * (x)))                                                                      \
    X(RELU, relu, trni_alu_number(trni_float(trni_either(x <= 0.0f, 0u, a))))                                          \
    X(RECIPROCAL, reciprocal, trni_alu_number(1.0f / x))                                                               \
    X(LOGICAL_NOT, logical_not, TRNI_ALU_TRUTH(x == 0.0f))

TRNI_INLINE float trni_alu_number(float r)
{
    const uint32_t u = trni_bits(r);
    return trni_float(trni_either(trni_is_nan_bits(u), TRNI_F32_NAN, u));
}

TRNI_INLINE float trni_alu_abs(uint32_t a) { return trni_float(a & ~TRNI_F32_SIGN); }

/* x where it wins, else y; `meet` where both do. */
TRNI_INLINE float trni_alu_pick(bool wins, bool tie, float x, float y, uint32_t meet)
{
    return trni_alu_number(trni_float(trni_either(tie, meet, trni_either(wins, trni_bits(x), trni_bits(y)))));
}

#define TRNI_ALU_ROW(op, name, result)                                                                                 \
    TRNI_INLINE float trni_alu_one_##name(float x, float y)                                                            \
    {                                                                                                                  \
        const uint32_t a = trni_bits(x), b = trni_bits(y);                                                             \
        (void)a, (void)b;                                                                                              \
        return result;                                                                                                 \
    }
TRNI_ALU_NUMBERS(TRNI_ALU_ROW)
#undef TRNI_ALU_ROW

#if TRNI_CLANG /* sanitizers keep it from vectorizing, which it would tell */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
TRNI_INLINE void trni_alu_all_body(trn_alu op, float *r, const float *x, const float *y, size_t n)
{
#define TRNI_ALU_CASE(op, name, result)                                                                                \
    case TRN_ALU_##op:                                                                                                 \
        TRNI_ELEMENTWISE                                                                                               \
        for (size_t i = 0; i < n; i++) r[i] = trni_alu_one_##name(x[i], y[i]);                                         \
        break;
    switch (op == TRN_ALU_AVERAGE ? TRN_ALU_ADD : op) {
        TRNI_ALU_NUMBERS(TRNI_ALU_CASE)
    default: break;
    }
#undef TRNI_ALU_CASE
}
TRNI_DISPATCH_BESIDE_AVX512(trni_alu_all, (trn_alu op, float *r, const float *x, const float *y, size_t n),
                            (op, r, x, y, n))
#if TRNI_CLANG
#pragma clang diagnostic pop
#endif

/* The same number n times; and n numbers from `first` on, none beyond 2^24. */
TRNI_INLINE void trni_repeat_body(float *r, float value, size_t n)
{
    for (size_t i = 0; i < n; i++) r[i] = value;
}
TRNI_DISPATCH_AVX2(trni_repeat, (float *r, float value, size_t n), (r, value, n))

TRNI_INLINE void trni_count_body(float *r, int32_t first, size_t n)
{
    for (int32_t i = 0; i < (int32_t)n; i++) r[i] = (float)(first + i);
}
TRNI_DISPATCH_AVX2(trni_count, (float *r, int32_t first, size_t n), (r, first, n))

TRNI_FN void trni_alu_others(trn_alu op, float *r, const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) r[i] = op == TRN_ALU_POWER ? trni_power(x[i], y[i]) : trni_rsqrt(x[i]);
}

/* An operator, and what computes it. */
typedef struct trni_alu_kernel {
    trn_alu op;
    trni_alu_all_fn *all; /* or NULL */
} trni_alu_kernel;

/* None for an operator on bits, or for bypass, which is no step. */
TRNI_FN trni_alu_kernel trni_alu_kernel_of(trn_alu op, trn_isa isa)
{
    const bool other = op == TRN_ALU_POWER || op == TRN_ALU_RSQRT;
    const bool number = trn_alu_info_of(op)->kind == TRN_ALU_ARITHMETIC;
    const trni_alu_kernel k = { op, other ? trni_alu_others : number ? trni_alu_all_for(isa) : NULL };
    return k;
}

TRNI_FN void trni_alu_run(trni_alu_kernel k, float *r, const float *x, const float *y, size_t n)
{
    k.all(k.op, r, x, y, n);
}

/* The definition: `op` is an operator on numbers. */
TRNI_FN float trni_alu_apply(trn_alu op, float x, float y)
{
    float r;
    trni_alu_run(trni_alu_kernel_of(op, TRN_ISA_PORTABLE), &r, &x, &y, 1);
    return r;
}

/* ---- bits ---- */

/* A count within the width is its low bits; a longer one shifts nothing in. */
#define TRNI_BITS_SHIFTS(X, bits)                                                                                      \
    X(LEFT_##bits, uint##bits##_t, trni_either(b < bits, a << (b & 31u), 0u))                                          \
    X(RIGHT_##bits, uint##bits##_t, trni_either(b < bits, a >> (b & 31u), 0u))
#define TRNI_BITS_ROWS(X)                                                                                              \
    X(INVERT, uint8_t, ~a)                                                                                             \
    X(AND, uint8_t, a &b)                                                                                              \
    X(OR, uint8_t, a | b)                                                                                              \
    X(XOR, uint8_t, a ^ b)                                                                                             \
    TRNI_BITS_SHIFTS(X, 8) TRNI_BITS_SHIFTS(X, 16) TRNI_BITS_SHIFTS(X, 32)

#define TRNI_BITS_NAME(name, type, result) TRNI_BITS_##name,
typedef enum trni_bits_kind { TRNI_BITS_ROWS(TRNI_BITS_NAME) TRNI_BITS_KINDS } trni_bits_kind;
#undef TRNI_BITS_NAME

TRNI_INLINE void trni_bits_line_body(trni_bits_kind kind, void *r, const void *x, const void *y, size_t n)
{
#define TRNI_BITS_CASE(name, type, result)                                                                             \
    case TRNI_BITS_##name:                                                                                             \
        TRNI_ELEMENTWISE                                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const uint32_t a = ((const type *)x)[i], b = ((const type *)y)[i];                                         \
            (void)b;                                                                                                   \
            ((type *)r)[i] = (type)(result);                                                                           \
        }                                                                                                              \
        break;
    switch (kind) {
        TRNI_BITS_ROWS(TRNI_BITS_CASE)
    case TRNI_BITS_KINDS:
    default: break;
    }
#undef TRNI_BITS_CASE
}
TRNI_DISPATCH_AVX2(trni_bits_line, (trni_bits_kind kind, void *r, const void *x, const void *y, size_t n),
                   (kind, r, x, y, n))
#undef TRNI_BITS_ROWS
#undef TRNI_BITS_SHIFTS

/* A kernel and the size of what it counts: operators that know no neighbours count bytes, whatever the elements are. */
typedef struct trni_bits_row {
    trn_alu op;
    size_t bytes;
    bool counts_bytes;
    trni_bits_kind kind;
} trni_bits_row;

/* For elements of 1, 2 or 4 bytes; NULL for an operator on numbers. */
TRNI_FN const trni_bits_row *trni_bits_kernel_of(trn_alu op, size_t bytes)
{
    static const trni_bits_row table[] = {
        { TRN_ALU_INVERT, 0, true, TRNI_BITS_INVERT },         { TRN_ALU_BITWISE_AND, 0, true, TRNI_BITS_AND },
        { TRN_ALU_BITWISE_OR, 0, true, TRNI_BITS_OR },         { TRN_ALU_BITWISE_XOR, 0, true, TRNI_BITS_XOR },
        { TRN_ALU_LEFT_SHIFT, 1, false, TRNI_BITS_LEFT_8 },    { TRN_ALU_LEFT_SHIFT, 2, false, TRNI_BITS_LEFT_16 },
        { TRN_ALU_LEFT_SHIFT, 4, false, TRNI_BITS_LEFT_32 },   { TRN_ALU_RIGHT_SHIFT, 1, false, TRNI_BITS_RIGHT_8 },
        { TRN_ALU_RIGHT_SHIFT, 2, false, TRNI_BITS_RIGHT_16 }, { TRN_ALU_RIGHT_SHIFT, 4, false, TRNI_BITS_RIGHT_32 },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op && (table[i].counts_bytes || table[i].bytes == bytes)) return &table[i];
    return NULL;
}

/* n elements of `bytes` bytes. */
TRNI_FN void trni_bits_run(const trni_bits_row *row, trn_isa isa, size_t bytes, void *r, const void *x, const void *y,
                           size_t n)
{
    trni_bits_line_for(isa)(row->kind, r, x, y, row->counts_bytes ? n * bytes : n);
}

/* The definition: `op` is an operator on bits, width is 8, 16 or 32. */
TRNI_FN uint32_t trni_alu_bits(trn_alu op, uint32_t x, uint32_t y, int width)
{
    const size_t bytes = (size_t)width / 8;
    uint32_t r = 0;
    trni_bits_run(trni_bits_kernel_of(op, bytes), TRN_ISA_PORTABLE, bytes, &r, &x, &y, 1); /* little endian */
    return r;
}

/* ---- exact integers ----
 *
 * A row is X(operator, name, result): a, b are the operands as 64-bit numbers, p, q their magnitudes. `signs` has bit
 * 31 set where codes are I32. */

#define TRNI_ALU_INTEGERS(X)                                                                                           \
    X(ADD, add, a + b)                                                                                                 \
    X(SUBTRACT, subtract, a - b)                                                                                       \
    X(MULTIPLY, multiply, (uint64_t)a *(uint64_t)b)                                                                    \
    X(MAXIMUM, maximum, a > b ? a : b)                                                                                 \
    X(MINIMUM, minimum, a < b ? a : b)                                                                                 \
    X(EQUAL, equal, a == b)                                                                                            \
    X(NOT_EQUAL, not_equal, a != b)                                                                                    \
    X(GREATER_EQUAL, greater_equal, a >= b)                                                                            \
    X(GREATER, greater, a > b)                                                                                         \
    X(LESS_EQUAL, less_equal, a <= b)                                                                                  \
    X(LESS, less, a < b)                                                                                               \
    X(LOGICAL_AND, logical_and, (a != 0) & (b != 0))                                                                   \
    X(LOGICAL_OR, logical_or, (a != 0) | (b != 0))                                                                     \
    X(LOGICAL_XOR, logical_xor, (a != 0) ^ (b != 0))                                                                   \
    X(ABS_MAX, abs_max, p > q ? a : b)                                                                                 \
    X(ABS_MIN, abs_min, p < q ? a : b)

typedef struct trni_signs {
    uint32_t x, y;
} trni_signs;

TRNI_INLINE int64_t trni_exact_of(uint32_t code, uint32_t sign)
{
    return (int64_t)code - (int64_t)((uint64_t)(code & sign) << 1);
}

TRNI_INLINE void trni_exact_all_body(trn_alu op, uint32_t *r, const uint32_t *x, const uint32_t *y, trni_signs s,
                                     size_t n)
{
#define TRNI_ALU_CASE(op, name, result)                                                                                \
    case TRN_ALU_##op:                                                                                                 \
        TRNI_ELEMENTWISE                                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const int64_t a = trni_exact_of(x[i], s.x), b = trni_exact_of(y[i], s.y);                                  \
            const int64_t p = a < 0 ? -a : a, q = b < 0 ? -b : b;                                                      \
            (void)p, (void)q;                                                                                          \
            r[i] = (uint32_t)(result);                                                                                 \
        }                                                                                                              \
        break;
    switch (op) {
        TRNI_ALU_INTEGERS(TRNI_ALU_CASE)
    default: break;
    }
#undef TRNI_ALU_CASE
}
TRNI_DISPATCH_ONE(trni_exact_all,
                  (trn_alu op, uint32_t *r, const uint32_t *x, const uint32_t *y, trni_signs s, size_t n),
                  (op, r, x, y, s, n))

/* Not where integers take the way through binary32. */
TRNI_FN bool trni_exact_has(trn_alu op)
{
#define TRNI_ALU_ROW(op, name, result) TRN_ALU_##op,
    static const trn_alu table[] = { TRNI_ALU_INTEGERS(TRNI_ALU_ROW) };
#undef TRNI_ALU_ROW
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i] == op) return true;
    return false;
}

/* The definition: `op` has a row above; a sign is bit 31 for I32, 0 for U32. */
TRNI_FN uint32_t trni_alu_integer(trn_alu op, uint32_t x, uint32_t y, trni_signs signs)
{
    uint32_t r;
    trni_exact_all_for(TRN_ISA_PORTABLE)(op, &r, &x, &y, signs, 1);
    return r;
}

/* ---- folds: a run becomes one number ----
 *
 * sum = sum op x[0] op ... op x[n - 1], for the operators where any order gives the same bits: nothing is rounded, and
 * no operand is more than its value. */

/* A number as an integer of the same order, and back; `nan` stands for every NaN. */
TRNI_INLINE int32_t trni_fold_key(float x, int32_t nan)
{
    const uint32_t u = trni_bits(x), key = u ^ ((0u - (u >> 31)) >> 1);
    return (int32_t)trni_either(trni_is_nan_bits(u), (uint32_t)nan, key);
}

TRNI_INLINE float trni_fold_number(int32_t key, int32_t nan)
{
    const uint32_t u = (uint32_t)key ^ ((0u - ((uint32_t)key >> 31)) >> 1);
    return trni_float(key == nan ? TRNI_F32_NAN : u);
}

/* The same of a bfloat16 number's 16 bits. */
TRNI_INLINE int16_t trni_fold_half_key(uint16_t u, int16_t nan)
{
    const uint16_t key = (uint16_t)(u ^ ((0u - (u >> 15 & 1u)) & 0x7fffu));
    const uint16_t mask = (uint16_t)(0u - (uint32_t)((u & 0x7fffu) > 0x7f80u));
    return (int16_t)(uint16_t)((key & (uint16_t)~mask) | ((uint16_t)nan & mask));
}

TRNI_INLINE float trni_fold_half_number(int16_t key, int16_t nan)
{
    const uint16_t k = (uint16_t)key;
    const uint32_t u = (k ^ ((0u - (k >> 15 & 1u)) & 0x7fffu)) << 16;
    return trni_float(key == nan ? TRNI_F32_NAN : u);
}

typedef void trni_fold_kernel(float *sum, const void *v, size_t n);

/* Integers that compilers know how to fold: what x counts as, how two join, the number that comes out; at last this
 * joins what there was. */
#define TRNI_FOLD_ROW(name, op, source, integer, key, first, join, number)                                             \
    TRNI_INLINE void trni_fold_##name##_body(float *sum, const void *v, size_t n)                                      \
    {                                                                                                                  \
        const source *at = (const source *)v;                                                                          \
        integer m = first;                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const source x = at[i];                                                                                    \
            const integer k = (integer)(key);                                                                          \
            m = (integer)(join);                                                                                       \
        }                                                                                                              \
        *sum = trni_alu_one_##op(*sum, number);                                                                        \
    }                                                                                                                  \
    TRNI_DISPATCH(trni_fold_##name, (float *sum, const void *v, size_t n), (sum, v, n))
#define TRNI_FOLD_ROWS(of, source, integer, key, number, least, most, yes)                                             \
    TRNI_FOLD_ROW(maximum##of, maximum, source, integer, key(x, least), least, m > k ? m : k, number(m, least))        \
    TRNI_FOLD_ROW(minimum##of, minimum, source, integer, key(x, most), most, m < k ? m : k, number(m, most))           \
    TRNI_FOLD_ROW(logical_and##of, logical_and, source, integer, yes, 1, m &k, (float)m)                               \
    TRNI_FOLD_ROW(logical_or##of, logical_or, source, integer, yes, 0, m | k, (float)m)                                \
    TRNI_FOLD_ROW(logical_xor##of, logical_xor, source, integer, yes, 0, m ^ k, (float)m)
TRNI_FOLD_ROWS(, float, int32_t, trni_fold_key, trni_fold_number, INT32_MIN, INT32_MAX, x != 0.0f)
TRNI_FOLD_ROWS(_half, uint16_t, int16_t, trni_fold_half_key, trni_fold_half_number, INT16_MIN, INT16_MAX,
               (x & 0x7fffu) != 0)
#undef TRNI_FOLD_ROWS
#undef TRNI_FOLD_ROW

/* NULL for the other operators. half: v is of bfloat16, else of binary32. */
TRNI_FN trni_fold_kernel *trni_fold_kernel_of(trn_alu op, bool half, trn_isa isa)
{
#define TRNI_FOLD_CASE(name) return half ? trni_fold_##name##_half_for(isa) : trni_fold_##name##_for(isa)
    if (op == TRN_ALU_MAXIMUM) TRNI_FOLD_CASE(maximum);
    if (op == TRN_ALU_MINIMUM) TRNI_FOLD_CASE(minimum);
    if (op == TRN_ALU_LOGICAL_AND) TRNI_FOLD_CASE(logical_and);
    if (op == TRN_ALU_LOGICAL_OR) TRNI_FOLD_CASE(logical_or);
    if (op == TRN_ALU_LOGICAL_XOR) TRNI_FOLD_CASE(logical_xor);
    return NULL;
#undef TRNI_FOLD_CASE
}

#endif /* TRNI_ENGINE_ALU_KERNELS_H */

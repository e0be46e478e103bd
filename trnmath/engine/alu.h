/* engine/alu.h - the operators of the engines' arithmetic units.
 * A part of trn_alu.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_ALU_H
#define TRNI_ENGINE_ALU_H

#include "instruction.h"
#include "../number/random.h"
#include "../data/tensor.h"

typedef enum trn_alu {
    TRN_ALU_BYPASS = 0, /* no operator: the first operand */
    TRN_ALU_ADD,
    TRN_ALU_SUBTRACT,
    TRN_ALU_MULTIPLY,
    TRN_ALU_MAXIMUM,
    TRN_ALU_MINIMUM,
    TRN_ALU_EQUAL,
    TRN_ALU_NOT_EQUAL,
    TRN_ALU_GREATER_EQUAL,
    TRN_ALU_GREATER,
    TRN_ALU_LESS_EQUAL,
    TRN_ALU_LESS,
    TRN_ALU_LOGICAL_AND,
    TRN_ALU_LOGICAL_OR,
    TRN_ALU_LOGICAL_XOR,
    TRN_ALU_ABS_MAX,
    TRN_ALU_ABS_MIN,
    TRN_ALU_POWER,   /* on GpSimd */
    TRN_ALU_AVERAGE, /* of tensor_partition_reduce */
    TRN_ALU_ABS,     /* one operand: the other is not looked at */
    TRN_ALU_SQUARE,
    TRN_ALU_RELU,
    TRN_ALU_RSQRT, /* on GpSimd */
    TRN_ALU_RECIPROCAL,
    TRN_ALU_LOGICAL_NOT,
    TRN_ALU_INVERT, /* bits */
    TRN_ALU_BITWISE_AND,
    TRN_ALU_BITWISE_OR,
    TRN_ALU_BITWISE_XOR,
    TRN_ALU_LEFT_SHIFT,
    TRN_ALU_RIGHT_SHIFT,
    TRN_ALU_COUNT
} trn_alu;

typedef enum trn_alu_kind { TRN_ALU_ARITHMETIC, TRN_ALU_BITVEC } trn_alu_kind;

typedef struct trn_alu_info {
    trn_alu op;
    const char *name;
    trn_alu_kind kind;
    int operands;      /* 2, or 1 */
    bool reduces;      /* legal in tensor_reduce */
    uint32_t identity; /* what a reduction starts with: bits of a binary32 number, or of an integer */
} trn_alu_info;

/* NULL for what is no operator. */
TRN_API const trn_alu_info *trn_alu_info_of(trn_alu op);

/* NKI's name, such as "logical_and"; "no operator" for what is none. */
TRN_API const char *trn_alu_name(trn_alu op);

/* TRN_ALU_COUNT when there is none of that name. */
TRN_API trn_alu trn_alu_from_name(const char *name);

#if TRNI_BODIES

#include "span.h"

TRN_API const trn_alu_info *trn_alu_info_of(trn_alu op)
{
    enum { one = 0x3f800000, minus_inf = (int)0xff800000, inf = 0x7f800000 };
#define TRNI_ROW(op, name, kind, operands, reduces, identity)                                                          \
    {                                                                                                                  \
        TRN_ALU_##op, name, TRN_ALU_##kind, operands, reduces, (uint32_t)(identity)                                    \
    }
    static const trn_alu_info table[TRN_ALU_COUNT] = {
        TRNI_ROW(BYPASS, "bypass", ARITHMETIC, 1, false, 0),
        TRNI_ROW(ADD, "add", ARITHMETIC, 2, true, 0),
        TRNI_ROW(SUBTRACT, "subtract", ARITHMETIC, 2, true, 0),
        TRNI_ROW(MULTIPLY, "multiply", ARITHMETIC, 2, true, one),
        TRNI_ROW(MAXIMUM, "maximum", ARITHMETIC, 2, true, minus_inf),
        TRNI_ROW(MINIMUM, "minimum", ARITHMETIC, 2, true, inf),
        TRNI_ROW(EQUAL, "equal", ARITHMETIC, 2, false, 0),
        TRNI_ROW(NOT_EQUAL, "not_equal", ARITHMETIC, 2, false, 0),
        TRNI_ROW(GREATER_EQUAL, "greater_equal", ARITHMETIC, 2, false, 0),
        TRNI_ROW(GREATER, "greater", ARITHMETIC, 2, false, 0),
        TRNI_ROW(LESS_EQUAL, "less_equal", ARITHMETIC, 2, false, 0),
        TRNI_ROW(LESS, "less", ARITHMETIC, 2, false, 0),
        TRNI_ROW(LOGICAL_AND, "logical_and", ARITHMETIC, 2, true, one),
        TRNI_ROW(LOGICAL_OR, "logical_or", ARITHMETIC, 2, true, 0),
        TRNI_ROW(LOGICAL_XOR, "logical_xor", ARITHMETIC, 2, true, 0),
        TRNI_ROW(ABS_MAX, "abs_max", ARITHMETIC, 2, false, 0),
        TRNI_ROW(ABS_MIN, "abs_min", ARITHMETIC, 2, false, inf),
        TRNI_ROW(POWER, "power", ARITHMETIC, 2, false, 0),
        TRNI_ROW(AVERAGE, "average", ARITHMETIC, 2, false, 0),
        TRNI_ROW(ABS, "abs", ARITHMETIC, 1, false, 0),
        TRNI_ROW(SQUARE, "square", ARITHMETIC, 1, false, 0),
        TRNI_ROW(RELU, "relu", ARITHMETIC, 1, false, 0),
        TRNI_ROW(RSQRT, "rsqrt", ARITHMETIC, 1, false, 0),
        TRNI_ROW(RECIPROCAL, "reciprocal", ARITHMETIC, 1, false, 0),
        TRNI_ROW(LOGICAL_NOT, "logical_not", ARITHMETIC, 1, false, 0),
        TRNI_ROW(INVERT, "invert", BITVEC, 1, false, 0),
        TRNI_ROW(BITWISE_AND, "bitwise_and", BITVEC, 2, true, 0xffffffff),
        TRNI_ROW(BITWISE_OR, "bitwise_or", BITVEC, 2, true, 0),
        TRNI_ROW(BITWISE_XOR, "bitwise_xor", BITVEC, 2, true, 0),
        TRNI_ROW(LEFT_SHIFT, "left_shift", BITVEC, 2, false, 0),
        TRNI_ROW(RIGHT_SHIFT, "right_shift", BITVEC, 2, false, 0),
    };
#undef TRNI_ROW
    return (unsigned)op < TRN_ALU_COUNT ? &table[(unsigned)op] : NULL;
}

TRN_API const char *trn_alu_name(trn_alu op)
{
    const trn_alu_info *info = trn_alu_info_of(op);
    return info ? info->name : "no operator";
}

TRN_API trn_alu trn_alu_from_name(const char *name)
{
    for (int i = 0; i < TRN_ALU_COUNT; i++)
        if (strcmp(name, trn_alu_name((trn_alu)i)) == 0) return (trn_alu)i;
    return TRN_ALU_COUNT;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_ALU_H */

/* trn_vector_elementwise.h - element by element: the Vector engine's arithmetic, copies and constants.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_elementwise.h>
 *     int main(void) { return 0; }
 *
 * DOES: one instruction per function.
 * DOES NOT: keep anything.
 *
 * CONTENTS
 *     trn_tensor_tensor, trn_tensor_tensor_args
 *     trn_tensor_scalar, trn_tensor_scalar_args
 *     trn_scalar_tensor_tensor, trn_scalar_tensor_tensor_args
 *     trn_tensor_copy, trn_tensor_copy_args
 *     trn_tensor_copy_predicated, trn_tensor_copy_predicated_args
 *     trn_memset, trn_memset_args
 *     trn_reciprocal, trn_reciprocal_args
 *
 * KNOWN FROM: NKI's instruction pages (documented).
 */
#ifndef TRN_VECTOR_ELEMENTWISE_H
#define TRN_VECTOR_ELEMENTWISE_H

#include "trn_vector_state.h"

typedef struct trn_tensor_tensor_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data1, data2;
    trn_alu op;
} trn_tensor_tensor_args;

TRNI_FN trn_status trn_tensor_tensor(const trn_tensor_tensor_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_tensor is not there yet");
}

typedef struct trn_tensor_scalar_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu op1;
    float operand1;
    trn_tensor operand1_tile;
    bool reverse1;
    uint32_t bits0, bits1;
} trn_tensor_scalar_args;

TRNI_FN trn_status trn_tensor_scalar(const trn_tensor_scalar_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_scalar is not there yet");
}

typedef struct trn_scalar_tensor_tensor_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu op1;
    trn_tensor operand1;
    bool reverse1;
} trn_scalar_tensor_tensor_args;

TRNI_FN trn_status trn_scalar_tensor_tensor(const trn_scalar_tensor_tensor_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "scalar_tensor_tensor is not there yet");
}

typedef struct trn_tensor_copy_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
} trn_tensor_copy_args;

TRNI_FN trn_status trn_tensor_copy(const trn_tensor_copy_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_copy is not there yet");
}

typedef struct trn_tensor_copy_predicated_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    float value;
    trn_tensor predicate;
    bool reverse_pred;
} trn_tensor_copy_predicated_args;

TRNI_FN trn_status trn_tensor_copy_predicated(const trn_tensor_copy_predicated_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_copy_predicated is not there yet");
}

typedef struct trn_memset_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    float value;
} trn_memset_args;

TRNI_FN trn_status trn_memset(const trn_memset_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "memset is not there yet");
}

typedef struct trn_reciprocal_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
} trn_reciprocal_args;

TRNI_FN trn_status trn_reciprocal(const trn_reciprocal_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "reciprocal is not there yet");
}

#endif /* TRN_VECTOR_ELEMENTWISE_H */

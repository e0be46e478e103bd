/* trn_vector_reduce.h - along the free axes: reductions, scans and the accumulator registers of the Vector engine.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_reduce.h>
 *     int main(void) { return 0; }
 *
 * DOES: one instruction per function.
 * DOES NOT: keep anything.
 *
 * CONTENTS
 *     trn_tensor_reduce, trn_tensor_reduce_args
 *     trn_tensor_scalar_reduce, trn_tensor_scalar_reduce_args
 *     trn_tensor_scalar_cumulative, trn_tensor_scalar_cumulative_args
 *     trn_tensor_tensor_scan, trn_tensor_tensor_scan_args
 *     trn_exponential, trn_exponential_args
 *     trn_range_select, trn_range_select_args
 *     trn_select_reduce, trn_select_reduce_args
 *
 * KNOWN FROM: NKI's instruction pages (documented).
 */
#ifndef TRN_VECTOR_REDUCE_H
#define TRN_VECTOR_REDUCE_H

#include "trn_vector_elementwise.h"
#include "trn_vector_state.h"

typedef struct trn_tensor_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op;
    int axes;
    bool negate, keepdims;
} trn_tensor_reduce_args;

TRNI_FN trn_status trn_tensor_reduce(const trn_tensor_reduce_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_reduce is not there yet");
}

typedef struct trn_tensor_scalar_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu reduce_op;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;
    float reduce_init;
    trn_tensor reduce_init_tile;
    bool reduce_res_negate;
    trn_vector_state *state;
} trn_tensor_scalar_reduce_args;

TRNI_FN trn_status trn_tensor_scalar_reduce(const trn_tensor_scalar_reduce_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_scalar_reduce is not there yet");
}

typedef struct trn_tensor_scalar_cumulative_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    trn_alu op0, op1;
    float imm0;
    trn_tensor imm0_tile;
    float imm1;
    trn_tensor imm1_tile;
    bool reverse0;
    trn_reduce_cmd reduce_cmd;
    trn_vector_state *state;
} trn_tensor_scalar_cumulative_args;

TRNI_FN trn_status trn_tensor_scalar_cumulative(const trn_tensor_scalar_cumulative_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_scalar_cumulative is not there yet");
}

typedef struct trn_tensor_tensor_scan_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data0, data1;
    float initial;
    trn_tensor initial_tile;
    trn_alu op0, op1;
    bool reverse0, reverse1;
} trn_tensor_tensor_scan_args;

TRNI_FN trn_status trn_tensor_tensor_scan(const trn_tensor_tensor_scan_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_tensor_scan is not there yet");
}

typedef struct trn_exponential_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    float max_value;
    trn_tensor max_value_tile;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;

    float reduce_init;
    trn_tensor reduce_init_tile;
    trn_vector_state *state;
} trn_exponential_args;

TRNI_FN trn_status trn_exponential(const trn_exponential_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "exponential is not there yet");
}

typedef struct trn_range_select_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, on_true_tile;
    trn_alu comp_op0, comp_op1;
    trn_tensor bound0, bound1;
    trn_reduce_cmd reduce_cmd;

    trn_tensor reduce_res;
    trn_alu reduce_op;
    int64_t range_start;
    float on_false_value;
    trn_vector_state *state;
} trn_range_select_args;

TRNI_FN trn_status trn_range_select(const trn_range_select_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "range_select is not there yet");
}

typedef struct trn_select_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, predicate, on_true;
    float on_false;
    trn_tensor on_false_tile;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;

    trn_alu reduce_op;
    bool reverse_pred;
    trn_vector_state *state;
} trn_select_reduce_args;

TRNI_FN trn_status trn_select_reduce(const trn_select_reduce_args *args)
{
    return trni_fail(args->error, TRN_EUNSUPPORTED, "select_reduce is not there yet");
}

#endif /* TRN_VECTOR_REDUCE_H */

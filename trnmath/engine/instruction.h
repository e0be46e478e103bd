/* engine/instruction.h - what the arguments of all instructions begin with.
 * A part of trn_instruction.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_INSTRUCTION_H
#define TRNI_ENGINE_INSTRUCTION_H

#include "../base/cpu.h"
#include "../machine/numerics.h"
#include "../data/tensor.h"

typedef enum trn_engine {
    TRN_ENGINE_UNKNOWN = 0, /* the instruction's own default */
    TRN_ENGINE_TENSOR,
    TRN_ENGINE_VECTOR,
    TRN_ENGINE_SCALAR,
    TRN_ENGINE_GPSIMD,
    TRN_ENGINE_DMA,
    TRN_ENGINE_COUNT,
    TRN_ENGINE_SYNC /* a sequencer alone: it gives DMA transfers to the descriptor generators, and computes nothing */
} trn_engine;

/* "tensor", "vector", …, "sync"; "no engine" for anything else. */
TRN_API const char *trn_engine_name(trn_engine engine);

/* The accumulator registers of an engine: one binary32 number per partition, kept between instructions. */
typedef enum trn_reduce_cmd {
    TRN_REDUCE_CMD_DEFAULT = 0,  /* as the instruction's page says: idle or reset_reduce */
    TRN_REDUCE_CMD_IDLE,         /* nothing is accumulated */
    TRN_REDUCE_CMD_RESET,        /* the registers become the operator's identity */
    TRN_REDUCE_CMD_REDUCE,       /* accumulate on top of them */
    TRN_REDUCE_CMD_RESET_REDUCE, /* the identity first */
    TRN_REDUCE_CMD_LOAD_REDUCE,  /* a given value first */
    TRN_REDUCE_CMD_COUNT
} trn_reduce_cmd;

enum { TRN_PARTITIONS = 128 };

/* What the args of every instruction begin with. */
#define TRN_INSTRUCTION_FIELDS                                                                                         \
    trn_generation generation;    /* whose limits hold; 0 = Trainium2, or Trainium3 for what only it has */            \
    trn_engine engine;            /* where several can do it; 0 = the instruction's default */                         \
    bool unlimited;               /* operation level: any number of partitions, of any size */                         \
    trn_rounding rounding;        /* of the cast to dst; 0 = nearest even */                                           \
    uint64_t seed, stream;        /* TRN_STOCHASTIC: element (p, f) of [P, F] takes random field p F + f */            \
    const trn_numerics *numerics; /* null = the generation's default */                                                \
    trn_isa isa;                  /* 0 = the best of this host; the bits do not depend on it */                        \
    trn_error *error              /* optional */

typedef struct trn_instruction {
    TRN_INSTRUCTION_FIELDS;
} trn_instruction;

/* NKI's of.ap(pattern, scalar_offset=value, indirect_dim=dim): the view begins `value` indices of an axis further on.
 * The number is read when the transfer runs. It has to be an index of that axis, and all of the moved view has to lie
 * within `of`; else it is out of bounds. As in trn_tensor_pattern a row runs on into the next one where these follow
 * each other in memory, and nowhere else. (NKI's vector_offset is src_index and dst_index.) */
typedef struct trn_dma_offset {
    trn_tensor value; /* one number, U32 or I32; rank 0: none */
    trn_tensor of;    /* the tensor that the view is cut from: elements of the view's size */
    int dim;          /* the axis of `of` whose stride the number counts */
} trn_dma_offset;

#if TRNI_BODIES

TRN_API const char *trn_engine_name(trn_engine engine)
{
    static const char *const name[TRN_ENGINE_COUNT] = { "unknown", "tensor", "vector", "scalar", "gpsimd", "dma" };
    if (engine == TRN_ENGINE_SYNC) return "sync";
    return (unsigned)engine < TRN_ENGINE_COUNT ? name[(unsigned)engine] : "no engine";
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_INSTRUCTION_H */

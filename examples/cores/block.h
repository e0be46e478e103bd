/* block.h - a transformer block over many cores: what each rank holds, the kernel, and what it should give.
 * SPDX-License-Identifier: MIT
 *
 *     block.c           the program: options, inputs, report
 *     block_kernel.c    what each core does, forward and backward
 *     block_check.c     the same in binary64 on the host, with and without the roundings
 *     attention.c  tiles.c   loops over tiles
 */
#ifndef CORES_BLOCK_H
#define CORES_BLOCK_H

#include "cores.h"

typedef struct block_sizes {
    int64_t tokens, width, heads, d, ffn; /* of all ranks together; d: of a head */
    int64_t own_heads, own_q, own_ffn;    /* of one: heads, heads * d, ffn */
    int ranks;
} block_sizes;

/* Every tensor of a rank in HBM: name, format, rows, columns, kind. T tokens, D width, Q heads * d of a rank, F its
 * share of ffn. */
/* clang-format off */
#define BLOCK_TENSORS(X)                                                                                               \
    X(wqkv,     TRN_BF16, D, 3 * Q, WEIGHT)  X(wo,    TRN_BF16, Q, D, WEIGHT)   /* queries, keys, values; output */    \
    X(wgu,      TRN_BF16, D, 2 * F, WEIGHT)  X(wd,    TRN_BF16, F, D, WEIGHT)   /* gate and up; down */                \
    X(n1,       TRN_BF16, T, D, KEPT)        X(inverse1, TRN_F32, T, 1, KEPT)   /* first norm, and 1 / rms */          \
    X(qkv,      TRN_BF16, T, 3 * Q, KEPT)    X(heads, TRN_BF16, T, Q, KEPT)     /* attention's output */               \
    X(statistics, TRN_F32, T, 2 * H, KEPT)                                                                             \
    X(part1,    TRN_BF16, T, D, KEPT)        X(sum1,  TRN_BF16, T, D, KEPT)     /* before and after the all-reduce */  \
    X(z,        TRN_BF16, T, D, KEPT)        X(n2,    TRN_BF16, T, D, KEPT)     X(inverse2, TRN_F32, T, 1, KEPT)       \
    X(gu,       TRN_BF16, T, 2 * F, KEPT)    X(hidden, TRN_BF16, T, F, KEPT)                                           \
    X(part2,    TRN_BF16, T, D, KEPT)        X(sum2,  TRN_BF16, T, D, KEPT)                                            \
    X(y,        TRN_BF16, T, D, OUTPUT)                                                                                \
    X(dhidden,  TRN_BF16, T, F, BACK)        X(dgu,   TRN_BF16, T, 2 * F, BACK)                                        \
    X(dpart2,   TRN_BF16, T, D, BACK)        X(dn2,   TRN_BF16, T, D, BACK)     X(dz,   TRN_BF16, T, D, BACK)          \
    X(dheads,   TRN_BF16, T, Q, BACK)        X(dqkv,  TRN_BF16, T, 3 * Q, BACK)                                        \
    X(dpart1,   TRN_BF16, T, D, BACK)        X(dn1,   TRN_BF16, T, D, BACK)     X(dx,   TRN_BF16, T, D, GRADIENT)      \
    X(dgamma1,  TRN_F32, 1, D, GRADIENT)     X(dgamma2, TRN_F32, 1, D, GRADIENT)                                       \
    X(dwqkv,    TRN_F32, D, 3 * Q, GRADIENT) X(dwo,   TRN_F32, Q, D, GRADIENT)                                         \
    X(dwgu,     TRN_F32, D, 2 * F, GRADIENT) X(dwd,   TRN_F32, F, D, GRADIENT)
/* clang-format on */

typedef enum block_kind { BLOCK_WEIGHT, BLOCK_KEPT, BLOCK_OUTPUT, BLOCK_BACK, BLOCK_GRADIENT } block_kind;

#define BLOCK_ENUM(name, format, rows, columns, kind) BLOCK_##name,
enum { BLOCK_TENSORS(BLOCK_ENUM) BLOCK_COUNT };

typedef struct block_row {
    const char *name;
    trn_format format;
    block_kind kind;
} block_row;

extern const block_row block_table[BLOCK_COUNT];

/* Times of a rank's kernel at which its phases ended, by the core's clock. */
typedef enum block_phase { BLOCK_ATTENTION, BLOCK_MLP, BLOCK_MLP_BACK, BLOCK_ATTENTION_BACK, BLOCK_PHASES } block_phase;

typedef struct block_rank {
    trn_tensor t[BLOCK_COUNT];
    double end_s[BLOCK_PHASES];
} block_rank;

typedef struct block {
    block_sizes size;
    trn_tensor x, gamma1, gamma2, dy; /* everybody's */
    block_rank *rank;                 /* [ranks] */
    bool forward_only;
} block;

trn_status block_kernel(trn_cores_rank *self, void *user); /* user: the block */

/* ---- block_check.c ---- */

enum { BLOCK_CHECKED = 8 };

/* y, dx, dgamma1, dgamma2, and the gradients of the weights of all ranks that are here; forward only: y. How many. */
int block_check(const block *b, const cores_run *run, cores_errors *errors);

#endif

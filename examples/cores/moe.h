/* moe.h - a mixture of experts: what each rank holds, and the kernel.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_MOE_H
#define CORES_MOE_H

#include "cores.h"

enum { MOE_TOP = 8 }; /* what max8 finds */

/* Every tensor of a rank in HBM. T its tokens, D width, F hidden units of its expert, R ranks and experts, K choices of
 * a token. Slot e of sent and back, T rows, belongs to expert e: no expert gets a token twice. got: what came from rank
 * 0, from rank 1, ..., without gaps. metadata: as trn_cores_all_to_all_v has it. */
/* clang-format off */
#define MOE_TENSORS(X)                                                                                                 \
    X(x,      TRN_BF16, T, D)      X(wgu,    TRN_BF16, D, 2 * F)  X(wd,     TRN_BF16, F, D)                            \
    X(logits, TRN_F32,  T, R)      X(places, TRN_U32,  T, K)      /* of each choice its row in sent */                 \
    X(sent,   TRN_BF16, R * T, D)  X(got,    TRN_BF16, R * T, D)                                                       \
    X(count_to, TRN_U32, R, 1)     X(count_from, TRN_U32, R, 1)                                                        \
    X(there,  TRN_U32, 4, R)       X(home,   TRN_U32, 4, R)       /* metadata of both ways */                          \
    X(gu,     TRN_BF16, R * T, 2 * F) X(hidden, TRN_BF16, R * T, F) X(done, TRN_BF16, R * T, D)                        \
    X(back,   TRN_BF16, R * T, D)  X(y,      TRN_BF16, T, D)
/* clang-format on */

#define MOE_ENUM(name, format, rows, columns) MOE_##name,
enum { MOE_TENSORS(MOE_ENUM) MOE_COUNT };

typedef struct moe_row {
    const char *name;
    trn_format format;
} moe_row;

extern const moe_row moe_table[MOE_COUNT];

typedef struct moe_rank {
    trn_tensor t[MOE_COUNT];
    int64_t tokens; /* that came to its expert */
} moe_rank;

typedef struct moe {
    int64_t tokens, width, ffn, top; /* tokens: of a rank */
    int ranks;
    trn_tensor router; /* [width, ranks], everybody's */
    moe_rank *rank;    /* [ranks] */
} moe;

trn_status moe_kernel(trn_cores_rank *self, void *user); /* user: the moe */

#endif

/* twin_program.h - whole programs in the slow twin: a memory of tiles, the engines' registers and generators, steps.
 * SPDX-License-Identifier: MIT
 *
 * A step names an instruction, tiles by their number, operators and numbers. The twin executes steps one after the
 * other on grids of its own; test_engine_programs.c executes the same steps in trnmath.
 */
#ifndef TWIN_PROGRAM_H
#define TWIN_PROGRAM_H

#include "twin/twin_dma.h"
#include "twin/twin_gpsimd.h"
#include "twin/twin_search.h"
#include "twin/twin_vector.h"

/* ---- memory ---- */

enum { TWIN_WIDE = 10, TWIN_COLUMNS = 4 };

/* Tiles by number: TWIN_WIDE of [P, F], then these. */
typedef enum twin_place {
    TWIN_PREDICATE = TWIN_WIDE,            /* [P, F] U8 */
    TWIN_INDEX,                            /* [P, F] U32, below F */
    TWIN_COLUMN,                           /* TWIN_COLUMNS of [P, 1] F32 */
    TWIN_SIX = TWIN_COLUMN + TWIN_COLUMNS, /* [P, 6] F32 */
    TWIN_TWO,                              /* [P, 2] F32 */
    TWIN_EIGHT,                            /* [P, 8] BF16 */
    TWIN_EIGHT_PLACES,                     /* [P, 8] U32 */
    TWIN_ONE_ROW,                          /* [1, F] F32 */
    TWIN_COUNTED,                          /* [P, F + 1] I32 */
    TWIN_PLACES
} twin_place;

static inline int twin_place_format(int place)
{
    static const int format[TWIN_PLACES] = { TWIN_F32,  TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_BF16, TWIN_F16,
                                             TWIN_E4M3, TWIN_I32, TWIN_I16, TWIN_TF32, TWIN_U8,   TWIN_U32,
                                             TWIN_F32,  TWIN_F32, TWIN_F32, TWIN_F32,  TWIN_F32,  TWIN_F32,
                                             TWIN_BF16, TWIN_U32, TWIN_F32, TWIN_I32 };
    return format[place];
}

static inline int twin_place_elements(int place, int elements)
{
    switch (place) {
    case TWIN_SIX: return 6;
    case TWIN_TWO: return 2;
    case TWIN_EIGHT:
    case TWIN_EIGHT_PLACES: return 8;
    case TWIN_COUNTED: return elements + 1;
    default: return place >= TWIN_COLUMN && place < TWIN_COLUMN + TWIN_COLUMNS ? 1 : elements;
    }
}

typedef struct twin_machine {
    int partitions, elements;
    twin_grid tile[TWIN_PLACES];
    twin_registers vector;
    uint32_t scalar[128];    /* the Scalar engine's registers, binary32 */
    uint32_t lfsr[128][4];   /* the Vector engine's generators (before Trainium3) */
    uint32_t xorwow[128][6]; /* GpSimd's */
} twin_machine;

/* ---- the Scalar engine's exact functions ---- */

typedef enum twin_function {
    TWIN_ACT_COPY,
    TWIN_ACT_SQUARE,
    TWIN_ACT_RELU,
    TWIN_ACT_PRELU,
    TWIN_ACT_ABS,
    TWIN_ACT_SIGN,
    TWIN_FUNCTIONS
} twin_function;

static const char *const twin_function_name[TWIN_FUNCTIONS] = { "copy", "square", "relu", "prelu", "abs", "sign" };

static inline uint32_t twin_activate(twin_function f, uint32_t x, uint32_t slope)
{
    if (twin_isnan(x)) return TWIN_CANONICAL;
    const int sign = twin_order(x, 0);
    switch (f) {
    case TWIN_ACT_COPY: return x;
    case TWIN_ACT_SQUARE: return twin_f32_product(x, x);
    case TWIN_ACT_RELU: return sign > 0 ? x : 0;
    case TWIN_ACT_PRELU: return sign >= 0 ? x : twin_f32_product(slope, x);
    case TWIN_ACT_ABS: return x & 0x7fffffffu;
    default: return sign == 0 ? 0 : twin_bits((float)sign);
    }
}

/* ---- steps ---- */

typedef enum twin_instruction {
    TWIN_DO_TENSOR_TENSOR,
    TWIN_DO_TENSOR_SCALAR,
    TWIN_DO_SCALAR_TENSOR_TENSOR,
    TWIN_DO_COPY,
    TWIN_DO_COPY_PREDICATED,
    TWIN_DO_MEMSET,
    TWIN_DO_RECIPROCAL,
    TWIN_DO_REDUCE,
    TWIN_DO_SCALAR_REDUCE,
    TWIN_DO_CUMULATIVE,
    TWIN_DO_SCAN,
    TWIN_DO_RANGE_SELECT,
    TWIN_DO_SELECT_REDUCE,
    TWIN_DO_BN_STATS,
    TWIN_DO_BN_AGGR,
    TWIN_DO_MAX8,
    TWIN_DO_FIND_INDEX8,
    TWIN_DO_MATCH_REPLACE8,
    TWIN_DO_SHUFFLE,
    TWIN_DO_RNG,
    TWIN_DO_DROPOUT,
    TWIN_DO_ACTIVATION,
    TWIN_DO_IOTA,
    TWIN_DO_AFFINE_SELECT,
    TWIN_DO_GATHER,
    TWIN_DO_PARTITION_REDUCE,
    TWIN_DO_NONZERO,
    TWIN_DO_DMA_COPY,
    TWIN_DO_DMA_COMPUTE,
    TWIN_DO_COUNT
} twin_instruction;

static const char *const twin_instruction_name[TWIN_DO_COUNT] = {
    "tensor_tensor",
    "tensor_scalar",
    "scalar_tensor_tensor",
    "tensor_copy",
    "tensor_copy_predicated",
    "memset",
    "reciprocal",
    "tensor_reduce",
    "tensor_scalar_reduce",
    "tensor_scalar_cumulative",
    "tensor_tensor_scan",
    "range_select",
    "select_reduce",
    "bn_stats",
    "bn_aggr",
    "max8",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_stream_shuffle",
    "rng",
    "dropout",
    "activation",
    "iota",
    "affine_select",
    "nc_n_gather",
    "tensor_partition_reduce",
    "nonzero_with_count",
    "dma_copy",
    "dma_compute",
};

typedef struct twin_program_step {
    twin_instruction what;
    int dst, a, b;        /* tiles */
    int column0, column1; /* tiles of one column, or -1: the number below */
    int result;           /* a column that receives registers, or -1 */
    uint32_t number0, number1;
    twin_op op0, op1;
    bool reverse0, reverse1, negate, gpsimd;
    twin_command command;
    twin_function function;
    twin_over over;
    twin_pattern pattern;
    int start, mask[32];
    twin_cast how;
} twin_program_step;

static inline twin_column twin_column_of(const twin_machine *m, int place, uint32_t bits)
{
    twin_column c = { bits, twin_no_grid() };
    if (place >= 0) c.tile = m->tile[place];
    return c;
}

static inline twin_accumulation twin_registers_of(twin_machine *m, const twin_program_step *s, twin_op op)
{
    twin_accumulation a;
    memset(&a, 0, sizeof a);
    a.command = s->command;
    a.op = op;
    a.init = twin_column_of(m, s->column1, s->number1);
    a.negate = s->negate;
    if (s->result >= 0) a.res = m->tile[s->result];
    a.registers = &m->vector;
    return a;
}

/* x * scale, + bias (0 adds nothing), the function; registers add up from zero or go on. */
static inline void twin_activation(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst], *src = &m->tile[s->a];
    const twin_column scale = twin_column_of(m, s->column0, s->number0),
                      bias = twin_column_of(m, s->column1, s->number1);
    for (int p = 0; p < m->partitions; p++) {
        uint32_t sum = s->command == TWIN_REDUCE ? m->scalar[p] : 0;
        for (int f = 0; f < m->elements; f++) {
            uint32_t x = twin_f32_product(twin_load(src, p, f), twin_column_at(&scale, p));
            if (bias.tile.code || bias.bits << 1) x = twin_f32_sum(x, twin_column_at(&bias, p));
            x = twin_activate(s->function, x, twin_bits(0.25f));
            sum = twin_f32_sum(sum, x);
            twin_store(dst, p, f, x, &s->how);
        }
        if (s->command == TWIN_IDLE) continue;
        m->scalar[p] = sum;
        if (s->result >= 0) *twin_at(&m->tile[s->result], p, 0) = sum;
    }
}

/* Word f of lane p; all 128 lanes step. */
static inline void twin_draw(twin_machine *m, bool gpsimd, uint32_t *word)
{
    for (int lane = 0; lane < 128; lane++)
        for (int f = 0; f < m->elements; f++) {
            const uint32_t w = gpsimd ? twin_xorwow(m->xorwow[lane]) : twin_lfsr(m->lfsr[lane]);
            if (lane < m->partitions) word[lane * m->elements + f] = w;
        }
}

static inline void twin_do_random(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst];
    const int n = m->partitions * m->elements;
    uint32_t *word = twin_words(n);
    twin_draw(m, s->gpsimd, word);
    for (int i = 0; i < n && s->what == TWIN_DO_RNG; i++) dst->code[i] = word[i] & twin_ones(dst->format.bits);
    for (int i = 0; i < n && s->what == TWIN_DO_DROPOUT; i++)
        dst->code[i] = (double)word[i] < (double)twin_value(s->number0) * 4294967296.0 ? 0 : m->tile[s->a].code[i];
    free(word);
}

static inline void twin_do_selection(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst], *a = &m->tile[s->a], *b = &m->tile[s->b];
    const twin_accumulation sum = twin_registers_of(m, s, TWIN_MAXIMUM);
    const twin_column on_false = twin_column_of(m, s->column0, s->number0);
    if (s->what == TWIN_DO_SELECT_REDUCE)
        twin_select_reduce(dst, b, s->reverse0, a, &on_false, &sum, &s->how);
    else
        twin_range_select(dst, a, s->op0, s->op1, &m->tile[s->column0], &m->tile[s->b], s->start, &sum, &s->how);
}

static inline void twin_do_along(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst], *a = &m->tile[s->a], *b = &m->tile[s->b];
    const twin_step step = { s->op0, twin_column_of(m, s->column0, s->number0), s->reverse0 };
    const twin_accumulation sum = twin_registers_of(m, s, s->op1);
    if (s->what == TWIN_DO_REDUCE) twin_tensor_reduce(dst, a, s->op0, s->negate, &s->how);
    if (s->what == TWIN_DO_SCALAR_REDUCE) twin_tensor_scalar_reduce(dst, a, &step, &sum, &s->how);
    if (s->what == TWIN_DO_CUMULATIVE) twin_tensor_scalar_cumulative(dst, a, &step, &sum, &s->how);
    if (s->what == TWIN_DO_SCAN) twin_scan(dst, a, b, &step.operand, s->op0, s->reverse0, s->op1, s->reverse1, &s->how);
}

static inline void twin_do_elementwise(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst], *a = &m->tile[s->a], *b = &m->tile[s->b], none = twin_no_grid();
    const twin_step step[2] = { { s->op0, twin_column_of(m, s->column0, s->number0), s->reverse0 },
                                { s->op1, twin_column_of(m, s->column1, s->number1), s->reverse1 } };
    switch (s->what) {
    case TWIN_DO_TENSOR_TENSOR: twin_tensor_tensor(dst, a, b, s->op0, &s->how); break;
    case TWIN_DO_TENSOR_SCALAR: twin_tensor_scalar(dst, a, step, &s->how); break;
    case TWIN_DO_SCALAR_TENSOR_TENSOR:
        twin_scalar_tensor_tensor(dst, a, &step[0], b, s->op1, s->reverse1, &s->how);
        break;
    case TWIN_DO_COPY: twin_tensor_copy(dst, a, &s->how); break;
    case TWIN_DO_COPY_PREDICATED:
        twin_copy_predicated(dst, s->negate ? a : &none, s->number0, b, s->reverse0, &s->how);
        break;
    case TWIN_DO_MEMSET: twin_memset(dst, s->number0, &s->how); break;
    default: twin_reciprocal(dst, a, &s->how); break;
    }
}

static inline void twin_execute(twin_machine *m, const twin_program_step *s)
{
    const twin_grid *dst = &m->tile[s->dst], *a = &m->tile[s->a], *b = &m->tile[s->b];
    switch (s->what) {
    case TWIN_DO_REDUCE:
    case TWIN_DO_SCALAR_REDUCE:
    case TWIN_DO_CUMULATIVE:
    case TWIN_DO_SCAN: twin_do_along(m, s); break;
    case TWIN_DO_RANGE_SELECT:
    case TWIN_DO_SELECT_REDUCE: twin_do_selection(m, s); break;
    case TWIN_DO_BN_STATS: twin_bn_stats(dst, a, &s->how); break;
    case TWIN_DO_BN_AGGR: twin_bn_aggr(dst, a, &s->how); break;
    case TWIN_DO_MAX8: twin_max8(dst, a, &s->how); break;
    case TWIN_DO_FIND_INDEX8: twin_find_index8(dst, a, b); break;
    case TWIN_DO_MATCH_REPLACE8:
        twin_match_replace8(dst, a, b, s->number0, &m->tile[TWIN_EIGHT_PLACES], &s->how);
        break;
    case TWIN_DO_SHUFFLE: twin_stream_shuffle(dst, a, s->mask); break;
    case TWIN_DO_RNG:
    case TWIN_DO_DROPOUT: twin_do_random(m, s); break;
    case TWIN_DO_ACTIVATION: twin_activation(m, s); break;
    case TWIN_DO_IOTA: twin_iota(dst, &s->pattern, &s->how); break;
    case TWIN_DO_AFFINE_SELECT: twin_affine_select(dst, &s->pattern, a, s->number0, s->op0, &s->how); break;
    case TWIN_DO_GATHER: twin_n_gather(dst, a, b); break;
    case TWIN_DO_PARTITION_REDUCE: twin_partition_reduce(dst, a, s->over, &s->how); break;
    case TWIN_DO_NONZERO: twin_nonzero_with_count(dst, a, s->start, -1); break;
    case TWIN_DO_DMA_COPY: twin_dma_copy(dst, a, false, &s->how); break;
    case TWIN_DO_DMA_COMPUTE: {
        const twin_grid source[3] = { *a, *b, *dst };
        twin_dma_compute(dst, source, 3, &s->how);
        break;
    }
    default: twin_do_elementwise(m, s); break;
    }
}

#endif /* TWIN_PROGRAM_H */

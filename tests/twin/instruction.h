/* instruction.h - one instruction of the tensor engine, asked of trnmath and of the twin, in memory of every kind.
 * SPDX-License-Identifier: MIT
 *
 * The twin sees a product of a [m, k] and b [k, n], k = rows * group, in the order in which the array takes it; here it
 * becomes stationary [K, M], [K, 2, M] or [K, M, 4], and moving alike, with any strides that a view may have.
 */
#ifndef INSTRUCTION_H
#define INSTRUCTION_H

#include "twin/problem.h"
#include "twin/views.h"

/* ---- arrays of any rank between canaries ---- */

typedef struct array {
    unsigned char *memory;
    size_t bytes;
    trn_tensor view;
} array;

static inline void *array_at(const array *a, int i, int j, int k)
{
    const int64_t index[3] = { i, j, k };
    const trn_tensor *v = &a->view;
    bool packed = true;
    int64_t at = 0, step = 1;
    for (int axis = 0; axis < v->rank; axis++) packed = packed && v->stride[axis] == 0;
    for (int axis = v->rank - 1; axis >= 0; axis--) {
        at += index[axis] * (packed ? step : v->stride[axis]);
        step *= v->shape[axis];
    }
    return (unsigned char *)v->data + (size_t)at * trn_format_bytes(v->format);
}

static inline uint32_t array_get(const array *a, int i, int j, int k)
{
    uint32_t code = 0;
    memcpy(&code, array_at(a, i, j, k), trn_format_bytes(a->view.format)); /* little-endian */
    return code;
}

static inline void array_put(const array *a, int i, int j, int k, uint32_t code)
{
    memcpy(array_at(a, i, j, k), &code, trn_format_bytes(a->view.format));
}

/* Rank 2 or 3, every element drawn; inputs may broadcast. */
static inline array array_make(int format, const twin_format *cfp8, int rank, const int64_t shape[3], bool input,
                               bridge_values values, uint64_t *rng)
{
    array a;
    a.view = trn_tensor_nd(bridge_format(format), NULL, rank, shape);
    a.view.cfp8 = bridge_descriptor(cfp8);
    const size_t size = bridge_bytes(format), span = (size_t)random_strides(&a.view, input, false, rng);
    const size_t shift = (size_t)cases_below(rng, 8) * size;
    a.bytes = 2 * BRIDGE_MARGIN + shift + span * size;
    a.memory = (unsigned char *)malloc(a.bytes);
    if (!a.memory) abort();
    memset(a.memory, BRIDGE_FILL, a.bytes);
    a.view.data = a.memory + BRIDGE_MARGIN + shift;
    const bool dirty = format == TWIN_TF32 && cases_one_in(rng, 2); /* low bits that .tf32_input is about */
    for (int i = 0; i < shape[0]; i++)
        for (int j = 0; j < shape[1]; j++)
            for (int k = 0; k < (rank > 2 ? shape[2] : 1); k++) {
                const uint32_t low = dirty && cases_one_in(rng, 2) ? cases_u32(rng) & 0x1fffu : 0;
                array_put(&a, i, j, k, bridge_code(format, values, rng) | low);
            }
    return a;
}

/* ---- an instruction ---- */

typedef struct instruction {
    twin_problem twin;
    problem_mode mode;
    trn_generation generation;
    array dst, stationary, moving, stationary_scale, moving_scale;
    trn_numerics numerics;
    trn_pe_tile position, size;
    unsigned char *before, *expected; /* all of dst's memory */
    bridge_values values;
} instruction;

static inline int instruction_group(problem_mode mode)
{
    return mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 1;
}

static inline int instruction_rows(const instruction *q) { return q->twin.k / instruction_group(q->mode); }

/* The element of an operand's array that holds k of a lane. */
static inline uint32_t instruction_operand(const instruction *q, const array *a, int lane, int k)
{
    const int rows = instruction_rows(q);
    if (q->mode == PROBLEM_MX) return array_get(a, k / 4, lane, k % 4);
    if (q->mode == PROBLEM_DOUBLE_ROW) return array_get(a, k % rows, k / rows, lane);
    return array_get(a, k, lane, 0);
}

static inline array instruction_make_operand(const instruction *q, int which, uint64_t *rng)
{
    const twin_problem *t = &q->twin;
    const int format = which == TWIN_A ? t->a_format : t->b_format, lanes = which == TWIN_A ? t->m : t->n;
    const int rows = instruction_rows(q);
    const int64_t shape[PROBLEM_MODES][3] = { { rows, lanes, 1 }, { rows, 2, lanes }, { rows, lanes, 4 } };
    return array_make(format, &t->cfp8[which], q->mode == PROBLEM_PLAIN ? 2 : 3, shape[q->mode], true, q->values, rng);
}

static inline uint32_t *instruction_zeroed(int rows, int columns)
{
    uint32_t *code = (uint32_t *)calloc((size_t)rows * (size_t)columns + 1, sizeof(uint32_t));
    if (!code) abort();
    return code;
}

/* Memory, values and the twin's arrays, for the shape, formats, mode and numerics that are there already. */
static inline void instruction_build(instruction *q, bridge_values values, uint64_t *rng)
{
    twin_problem *t = &q->twin;
    const int64_t dst_shape[3] = { t->m, t->n, 1 };
    q->values = values;
    t->group = instruction_group(q->mode);
    t->first_row = q->position.row;
    q->stationary = instruction_make_operand(q, TWIN_A, rng);
    q->moving = instruction_make_operand(q, TWIN_B, rng);
    q->dst = array_make(t->dst_format, &t->cfp8[TWIN_DST], 2, dst_shape, false, values, rng);
    uint32_t *a = instruction_zeroed(t->m, t->k), *b = instruction_zeroed(t->k, t->n);
    for (int k = 0; k < t->k; k++) {
        for (int i = 0; i < t->m; i++) a[i * t->k + k] = instruction_operand(q, &q->stationary, i, k);
        for (int j = 0; j < t->n; j++) b[k * t->n + j] = instruction_operand(q, &q->moving, j, k);
    }
    t->a = a;
    t->b = b;
    t->dst = instruction_zeroed(t->m, t->n);
    for (int e = 0; e < t->m * t->n; e++) t->dst[e] = array_get(&q->dst, e / t->n, e % t->n, 0);
    if (q->mode == PROBLEM_MX) {
        const int blocks = t->k / 32;
        const int64_t a_shape[3] = { blocks, t->m, 1 }, b_shape[3] = { blocks, t->n, 1 };
        uint32_t *a_scale = instruction_zeroed(t->m, blocks), *b_scale = instruction_zeroed(t->n, blocks);
        q->stationary_scale = array_make(TWIN_E8M0, &twin_formats[TWIN_E8M0], 2, a_shape, true, values, rng);
        q->moving_scale = array_make(TWIN_E8M0, &twin_formats[TWIN_E8M0], 2, b_shape, true, values, rng);
        for (int r = 0; r < blocks; r++) {
            for (int i = 0; i < t->m; i++) a_scale[i * blocks + r] = array_get(&q->stationary_scale, r, i, 0);
            for (int j = 0; j < t->n; j++) b_scale[j * blocks + r] = array_get(&q->moving_scale, r, j, 0);
        }
        t->a_scale = a_scale;
        t->b_scale = b_scale;
    }
    t->numerics = bridge_numerics(&q->numerics);
    t->numerics.k_tile = 128; /* an instruction is one tile, and dst is PSUM: these two fields do not apply */
    t->numerics.psum_bf16 = false;
    q->before = bridge_copy(q->dst.memory, q->dst.bytes);
}

static inline void instruction_expect(instruction *q, problem_reference *reference)
{
    twin_problem *t = &q->twin;
    reference(t);
    for (int e = 0; e < t->m * t->n; e++) array_put(&q->dst, e / t->n, e % t->n, 0, t->dst[e]);
    q->expected = bridge_copy(q->dst.memory, q->dst.bytes);
    memcpy(q->dst.memory, q->before, q->dst.bytes);
}

static inline void instruction_free(instruction *q)
{
    array *const all[] = { &q->dst, &q->stationary, &q->moving, &q->stationary_scale, &q->moving_scale };
    for (int i = 0; i < 5; i++) free(all[i]->memory);
    free((void *)(uintptr_t)q->twin.a);
    free((void *)(uintptr_t)q->twin.b);
    free((void *)(uintptr_t)q->twin.a_scale);
    free((void *)(uintptr_t)q->twin.b_scale);
    free(q->twin.dst);
    free(q->before);
    free(q->expected);
    memset(q, 0, sizeof *q);
}

/* ---- asking and comparing ---- */

static inline trn_nc_matmul_args instruction_args(const instruction *q, trn_isa isa, trn_error *error)
{
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = q->generation;
    args.dst = q->dst.view;
    args.stationary = q->stationary.view;
    args.moving = q->moving.view;
    args.accumulate = q->twin.accumulate;
    args.double_row = q->mode == PROBLEM_DOUBLE_ROW;
    args.rounding = bridge_rounding(q->twin.rounding);
    args.seed = q->twin.seed;
    args.stream = q->twin.stream;
    args.numerics = &q->numerics;
    args.tile_position = q->position;
    args.tile_size = q->size;
    args.isa = isa;
    args.error = error;
    return args;
}

static inline trn_nc_matmul_mx_args instruction_mx_args(const instruction *q, trn_isa isa, trn_error *error)
{
    trn_nc_matmul_mx_args args;
    memset(&args, 0, sizeof args);
    args.generation = q->generation;
    args.dst = q->dst.view;
    args.stationary = q->stationary.view;
    args.moving = q->moving.view;
    args.stationary_scale = q->stationary_scale.view;
    args.moving_scale = q->moving_scale.view;
    args.accumulate = q->twin.accumulate;
    args.rounding = bridge_rounding(q->twin.rounding);
    args.seed = q->twin.seed;
    args.stream = q->twin.stream;
    args.numerics = &q->numerics;
    args.tile_position = q->position;
    args.tile_size = q->size;
    args.isa = isa;
    args.error = error;
    return args;
}

static inline trn_status instruction_run(const instruction *q, trn_isa isa, bool *psum_written, trn_error *error)
{
    memset(error, 0, sizeof *error);
    if (q->mode == PROBLEM_MX) {
        trn_nc_matmul_mx_args args = instruction_mx_args(q, isa, error);
        args.psum_written = psum_written;
        return trn_nc_matmul_mx(&args);
    }
    trn_nc_matmul_args args = instruction_args(q, isa, error);
    args.psum_written = psum_written;
    return trn_nc_matmul(&args);
}

/* In problem_print's words. */
static inline void instruction_print(const instruction *q, trn_isa isa, const char *what)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.twin = q->twin;
    p.values = q->values;
    p.args.isa = isa;
    p.args.generation = q->generation;
    problem_print(&p, what);
}

static inline void instruction_compare(const instruction *q, trn_isa isa)
{
    const twin_problem *t = &q->twin;
    if (memcmp(q->dst.memory, q->expected, q->dst.bytes) == 0) return;
    instruction_print(q, isa, "an instruction");
    for (int e = 0; e < t->m * t->n; e++) {
        const uint32_t got = array_get(&q->dst, e / t->n, e % t->n, 0);
        if (t->dst[e] != got)
            fail_msg("element [%d, %d]: expected %08x, got %08x", e / t->n, e % t->n, (unsigned)t->dst[e],
                     (unsigned)got);
    }
    fail_msg("bytes outside the elements of dst were written");
}

/* Every instruction set of this host. */
static inline void instruction_ask_all(instruction *q)
{
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        bool written = q->twin.accumulate;
        trn_error error;
        memcpy(q->dst.memory, q->before, q->dst.bytes);
        const trn_status status = instruction_run(q, (trn_isa)isa, isa ? &written : NULL, &error);
        if (status != TRN_OK) {
            instruction_print(q, (trn_isa)isa, "refused");
            fail_msg("status %d: %s", (int)status, error.text);
        }
        assert_true(written || !isa);
        instruction_compare(q, (trn_isa)isa);
    }
}

#endif /* INSTRUCTION_H */

/* test_levels.c - an operation of any size is a sequence of instructions: the same bits from trn_matmul and from
 * trn_nc_matmul or trn_nc_matmul_mx over its tiles of K, in every mode, for every legal pair of formats.
 * SPDX-License-Identifier: MIT
 *
 * dst is decoded to PSUM (binary32, BF16 or int32), the instructions add tile after tile to it, one cast ends it. The
 * decoding and the cast are the twin's: trnmath/ does nothing here but the two levels that are compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/instruction.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* A block of M and N, and a tile of K: [m, m + rows) times [n, n + columns), over [k, k + depth). */
typedef struct tile {
    int m, rows, n, columns, k, depth, index;
} tile;

/* Where element (k, lane) of an operand's tile is. */
static void *operand_at(const problem *p, const tile *t, int which, int k, int lane)
{
    return which == TWIN_A ? bridge_at(&p->a, t->m + lane, t->k + k) : bridge_at(&p->b, t->k + k, t->n + lane);
}

/* The array rows of a tile: a K of its own of this many, 32 for MX (documented: quadrants). */
static int rows_of(int group, int depth)
{
    const int rows = (depth + group - 1) / group;
    return group == 4 ? (rows + 31) / 32 * 32 : rows;
}

/* A copy of an operand's tile as [K, lanes], [K, 2, lanes] or [K, lanes, 4]. A missing half of a pair is zeros. What
 * pads MX to 32 rows is -0 * 1 under a scale of 1: adding -0 changes nothing, not even a -0. */
static trn_tensor copy_tile(const problem *p, const tile *t, int which, unsigned char *to)
{
    const int group = p->twin.group > 1 ? p->twin.group : 1, rows = rows_of(group, t->depth);
    const int format = which == TWIN_A ? p->twin.a_format : p->twin.b_format;
    const int lanes = which == TWIN_A ? t->rows : t->columns;
    const trn_tensor *view = which == TWIN_A ? &p->a.view : &p->b.view;
    const size_t size = bridge_bytes(format);
    const twin_number one = twin_make(false, 1, 0), minus_zero = twin_zero(true);
    const uint32_t pad =
        twin_encode(&twin_formats[format], which == TWIN_A ? &minus_zero : &one, twin_plain(TWIN_NEAREST_EVEN));
    for (int r = 0; r < rows; r++)
        for (int slot = 0; slot < group; slot++)
            for (int lane = 0; lane < lanes; lane++) {
                const int k = twin_k_of(r, slot, group, t->depth);
                const size_t at = group == 4
                                      ? ((size_t)r * (size_t)lanes + (size_t)lane) * 4 + (size_t)slot
                                      : ((size_t)r * (size_t)group + (size_t)slot) * (size_t)lanes + (size_t)lane;
                if (k >= 0)
                    memcpy(to + at * size, operand_at(p, t, which, k, lane), size);
                else if (group == 4)
                    memcpy(to + at * size, &pad, size);
                else
                    memset(to + at * size, 0, size);
            }
    const int64_t shape[5][3] = { { 0 }, { rows, lanes, 1 }, { rows, 2, lanes }, { 0 }, { rows, lanes, 4 } };
    trn_tensor v = trn_tensor_nd(bridge_format(format), to, group == 1 ? 2 : 3, shape[group]);
    v.cfp8 = view->cfp8;
    return v;
}

/* The same without a copy, where the tile is whole: strided views of a and b of rank 2 and 3. */
static trn_tensor view_tile(const problem *p, const tile *t, int which)
{
    const bridge_matrix *x = which == TWIN_A ? &p->a : &p->b;
    const int group = p->twin.group > 1 ? p->twin.group : 1, rows = t->depth / group;
    const int lanes = which == TWIN_A ? t->rows : t->columns;
    const int64_t k = which == TWIN_A ? x->column : x->row, lane = which == TWIN_A ? x->row : x->column;
    const int64_t shape[5][3] = { { 0 }, { rows, lanes, 1 }, { rows, 2, lanes }, { 0 }, { rows, lanes, 4 } };
    const int64_t stride[5][3] = { { 0 }, { k, lane, 1 }, { k, rows * k, lane }, { 0 }, { 4 * k, lane, k } };
    trn_tensor v = trn_tensor_nd(x->view.format, operand_at(p, t, which, 0, 0), group == 1 ? 2 : 3, shape[group]);
    for (int i = 0; i < v.rank; i++) v.stride[i] = stride[group][i];
    v.cfp8 = x->view.cfp8;
    return v;
}

static trn_tensor operand_of(const problem *p, const tile *t, int which, unsigned char *to)
{
    const int group = p->twin.group > 1 ? p->twin.group : 1;
    const bool whole = t->depth % group == 0 && (group != 4 || t->depth % 128 == 0);
    return whole && (t->index + t->m + t->n) % 3 ? view_tile(p, t, which) : copy_tile(p, t, which, to);
}

/* [K/8, lanes], padded with scales of 1. */
static trn_tensor scales_of(const problem *p, const tile *t, int which, unsigned char *to)
{
    const bridge_matrix *x = which == TWIN_A ? &p->a_scale : &p->b_scale;
    const int lanes = which == TWIN_A ? t->rows : t->columns, first = which == TWIN_A ? t->m : t->n;
    const int rows = rows_of(4, t->depth) / 8;
    for (int r = 0; r < rows; r++)
        for (int lane = 0; lane < lanes; lane++)
            to[r * lanes + lane] =
                32 * r < t->depth ? (unsigned char)bridge_get(x, first + lane, t->k / 32 + r) : (unsigned char)127;
    return trn_tensor_2d(TRN_F8_E8M0, to, rows, lanes);
}

/* psum is [m, n] of the whole product, rows packed. */
static trn_status one_instruction(const problem *p, const tile *t, trn_tensor psum, trn_error *error)
{
    static unsigned char a[4 * 128 * 128 * 4], b[4 * 128 * 4096], a_scale[16 * 128], b_scale[16 * 4096];
    trn_tensor dst = psum;
    dst.data = (char *)psum.data + (t->m * psum.shape[1] + t->n) * (int64_t)trn_format_bytes(psum.format);
    dst.shape[0] = t->rows;
    dst.shape[1] = t->columns;
    dst.stride[0] = psum.shape[1];
    dst.stride[1] = 1;
    bool written = p->twin.accumulate || t->index > 0;
    if (p->twin.group == 4) {
        trn_nc_matmul_mx_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->args.generation;
        args.dst = dst;
        args.stationary = operand_of(p, t, TWIN_A, a);
        args.moving = operand_of(p, t, TWIN_B, b);
        args.stationary_scale = scales_of(p, t, TWIN_A, a_scale);
        args.moving_scale = scales_of(p, t, TWIN_B, b_scale);
        args.accumulate = written;
        args.rounding = p->numerics.psum_rounding;
        args.seed = p->twin.seed;
        args.stream = p->twin.stream + (uint64_t)t->index;
        args.psum_written = &written;
        args.numerics = &p->numerics;
        args.error = error;
        return trn_nc_matmul_mx(&args);
    }
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = p->args.generation;
    args.dst = dst;
    args.stationary = operand_of(p, t, TWIN_A, a);
    args.moving = operand_of(p, t, TWIN_B, b);
    args.double_row = p->twin.group == 2;
    args.accumulate = written;
    args.rounding = p->numerics.psum_rounding;
    args.seed = p->twin.seed;
    args.stream = p->twin.stream + (uint64_t)t->index;
    args.psum_written = &written;
    args.numerics = &p->numerics;
    args.error = error;
    return trn_nc_matmul(&args);
}

static const problem *current; /* the reference needs the views as well as the twin's arrays */

static void blocks_by_instructions(const twin_problem *t, trn_tensor psum)
{
    const int widest = current->args.generation == TRN_TRAINIUM3 ? 4096 : 512;
    const int deepest = t->numerics.k_tile * (t->group > 1 ? t->group : 1);
    for (int m = 0; m < t->m; m += 128)
        for (int n = 0; n < t->n; n += widest)
            for (int k = 0, index = 0; k < t->k; k += deepest, index++) {
                trn_error error;
                const tile at = { m,    t->m - m < 128 ? t->m - m : 128,
                                  n,    t->n - n < widest ? t->n - n : widest,
                                  k,    t->k - k < deepest ? t->k - k : deepest,
                                  index };
                memset(&error, 0, sizeof error);
                if (one_instruction(current, &at, psum, &error) != TRN_OK) {
                    problem_print(current, "an instruction was refused");
                    fail_msg("%s", error.text);
                }
            }
}

static void by_instructions(const twin_problem *t)
{
    const int count = t->m * t->n;
    const int format = t->dst_format == TWIN_I32 ? TWIN_I32 : t->numerics.psum_bf16 ? TWIN_BF16 : TWIN_F32;
    const twin_format dst = twin_format_of(t, TWIN_DST);
    const size_t size = bridge_bytes(format);
    unsigned char *memory = (unsigned char *)calloc((size_t)count + 1, size);
    if (!memory) abort();
    for (int e = 0; e < count; e++) {
        const twin_number x = twin_canonical(twin_decode(&dst, t->dst[e]));
        const uint32_t code =
            format == TWIN_I32 ? t->dst[e] : twin_encode(&twin_formats[format], &x, twin_plain(TWIN_NEAREST_EVEN));
        memcpy(memory + (size_t)e * size, &code, size);
    }
    blocks_by_instructions(t, trn_tensor_2d(bridge_format(format), memory, t->m, t->n));
    for (int e = 0; e < count; e++) {
        uint32_t code = 0;
        memcpy(&code, memory + (size_t)e * size, size);
        twin_way way = twin_plain(t->rounding);
        way.saturate = t->saturate;
        way.random_bits = t->numerics.sr_bits;
        way.random = twin_random_bits(t->seed, t->stream, (uint64_t)e, t->numerics.sr_bits);
        const twin_number x = twin_decode(&twin_formats[format], code);
        t->dst[e] = format == TWIN_I32 ? code : twin_encode(&dst, &x, way);
    }
    free(memory);
}

/* ---- random operations ---- */

static trn_numerics random_rules(const twin_problem *t, trn_generation generation, bool slow, uint64_t *rng)
{
    trn_numerics n = problem_fast_order(rng);
    if (t->group == 4) n.k_tile = cases_one_in(rng, 2) ? 128 : 8 * (1 + cases_below(rng, 16)); /* rows of a scale */
    n.sr_bits = cases_one_in(rng, 4) ? 1 + cases_below(rng, 32) : 0;
    if (!slow) return n;
    n.group = (trn_group)cases_below(rng, 2);
    n.accumulator = cases_one_in(rng, 2) ? TRN_ACCUMULATOR_NEAREST_EVEN : (trn_accumulator)cases_below(rng, 3);
    n.accumulator_bits = cases_one_in(rng, 2) ? 24 + cases_below(rng, 30) : 0;
    n.product = (trn_product)cases_below(rng, 2);
    n.fp32_mode = (trn_fp32_mode)cases_below(rng, 3);
    n.int32_overflow = (trn_int32_overflow)cases_below(rng, 2);
    n.flush_inputs = cases_one_in(rng, 3);
    n.flush_products = cases_one_in(rng, 3);
    n.flush_sums = cases_one_in(rng, 3);
    n.fp8_bias = cases_one_in(rng, 3) ? 1 + cases_below(rng, 30) : 0;
    /* BF16 PSUM must be able to hold what accumulation starts from; the random words of an instruction are counted in
     * its own dst, so one instruction has to cover M and N. */
    if (generation == TRN_TRAINIUM3 && (!t->accumulate || t->dst_format == TWIN_BF16) && cases_one_in(rng, 2)) {
        n.psum_format = TRN_BF16;
        if (t->m <= 128 && t->n <= 4096) n.psum_rounding = TRN_STOCHASTIC;
    }
    return n;
}

typedef struct counts {
    int mode[PROBLEM_MODES], generation[3], stochastic_psum, saturating_integers;
} counts;

static void one_operation(const problem_choice *choice, bool slow, counts *seen, uint64_t *rng)
{
    static const int dst[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2 };
    problem p;
    problem_mode mode;
    trn_generation generation;
    memset(&p, 0, sizeof p);
    problem_legal_case(&mode, &generation, &p.twin.a_format, &p.twin.b_format, rng);
    if (cases_one_in(rng, 20)) { /* one pair of many, with arithmetic of its own */
        mode = PROBLEM_PLAIN;
        generation = TRN_TRAINIUM1;
        p.twin.a_format = p.twin.b_format = TWIN_I8;
    }
    const int64_t volume = mode == PROBLEM_MX ? choice->volume / 6 : choice->volume; /* scales may take the slow path */
    do {
        p.twin.m = problem_size(choice->m, choice->m_count, rng);
        p.twin.n = problem_size(choice->n, choice->n_count, rng);
        p.twin.k = problem_size(choice->k, choice->k_count, rng);
        if (mode == PROBLEM_MX) { /* an instruction takes an even number of stationary columns */
            p.twin.m += p.twin.m % 2;
            p.twin.k = (p.twin.k + 31) / 32 * 32;
        }
    } while ((int64_t)p.twin.m * p.twin.n * p.twin.k > volume || p.twin.m * p.twin.n > 20000);
    for (int i = 0; i < 3; i++) p.twin.cfp8[i] = problem_cfp8(rng);
    p.twin.group = instruction_group(mode);
    p.twin.dst_format = p.twin.a_format == TWIN_I8 ? TWIN_I32 : dst[cases_below(rng, COUNT(dst))];
    p.twin.accumulate = cases_one_in(rng, 2);
    p.twin.rounding = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    p.twin.saturate = cases_one_in(rng, 3);
    p.twin.seed = cases_next(rng);
    p.twin.stream = cases_one_in(rng, 2) ? 0 : cases_next(rng);
    p.numerics = random_rules(&p.twin, generation, slow, rng);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(&p, layout, (bridge_values)cases_below(rng, BRIDGE_VALUES), rng);
    p.args.generation = generation;
    current = &p;
    problem_expect(&p, by_instructions);
    problem_threads(1 + cases_below(rng, 3));
    problem_ask(&p, TRN_ISA_AUTO);
    seen->mode[mode]++;
    seen->generation[generation - TRN_TRAINIUM1]++;
    seen->stochastic_psum += p.numerics.psum_rounding == TRN_STOCHASTIC;
    seen->saturating_integers += p.twin.a_format == TWIN_I8 && p.numerics.int32_overflow == TRN_INT32_SATURATE;
    problem_free(&p);
}

static void operations_are_sequences_of_instructions(void **state)
{
    (void)state;
    static const int m[] = { 1, 2, 3, 17, 64, 127, 128, 129, 200 }, n[] = { 1, 3, 32, 100, 511, 512, 513, 700 },
                     k[] = { 1, 4, 31, 127, 128, 129, 255, 256, 257, 300, 512, 513, 544, 1100 };
    const problem_choice choice = { m, n, k, COUNT(m), COUNT(n), COUNT(k), 1200000 };
    counts seen;
    uint64_t rng = 111;
    memset(&seen, 0, sizeof seen);
    const int count = cases_rounds(150, 6000);
    for (int i = 0; i < count; i++) one_operation(&choice, false, &seen, &rng);
    for (int i = 0; i < PROBLEM_MODES; i++) assert_true(seen.mode[i] > 0);
    for (int i = 0; i < 3; i++) assert_true(seen.generation[i] > 0);
}

/* Rules that no packed kernel has. */
static void so_they_are_under_every_rule(void **state)
{
    (void)state;
    static const int m[] = { 1, 2, 5, 8, 129 }, n[] = { 1, 3, 17, 40 },
                     k[] = { 1, 3, 31, 127, 129, 256, 257, 513, 1100 };
    const problem_choice choice = { m, n, k, COUNT(m), COUNT(n), COUNT(k), 25000 };
    counts seen;
    uint64_t rng = 112;
    memset(&seen, 0, sizeof seen);
    const int count = cases_rounds(300, 9000);
    for (int i = 0; i < count; i++) one_operation(&choice, true, &seen, &rng);
    assert_true(seen.stochastic_psum > 0 && seen.saturating_integers > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_sequences_of_instructions),
        cmocka_unit_test(so_they_are_under_every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_activation_args.c - activation and activate2 as instructions: operands, registers, casts, tables of codes,
 * limits, and every refusal with its sentence.
 * SPDX-License-Identifier: MIT
 *
 * What is expected is computed one element at a time: decoded, each operation rounded by itself, the function on one
 * number, added to its partition's sum, encoded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_scalar_engine.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/views.h"

static const trn_format formats[] = { TRN_F32,     TRN_BF16, TRN_F16, TRN_TF32, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E4M3FN,
                                      TRN_F4_E2M1, TRN_I8,   TRN_U8,  TRN_I16,  TRN_U16,     TRN_I32,     TRN_U32 };
enum { FORMATS = (int)(sizeof formats / sizeof *formats), MOST = 40 };

static bool newest(const trn_tensor *t) { return t->format == TRN_F8_E4M3FN || t->format == TRN_F4_E2M1; }

/* [P, F] as [P, outer, inner], with gaps between partitions, rows and elements where it is not packed. */
typedef struct memory {
    trn_tensor view;
    unsigned char *at, *before;
    size_t bytes;
} memory;

static memory memory_of(uint64_t *rng, trn_format format, int64_t partitions, int64_t outer, int64_t inner, bool packed)
{
    memory m;
    const int64_t shape[3] = { partitions, outer, inner };
    m.view = trn_tensor_nd(format, NULL, 3, shape);
    int64_t span = partitions * outer * inner;
    if (!packed) {
        const int64_t step = 1 + cases_below(rng, 2), row = step * inner + cases_below(rng, 3);
        const int64_t partition = row * outer + cases_below(rng, 5);
        m.view.stride[2] = step;
        m.view.stride[1] = row;
        m.view.stride[0] = partition > 0 ? partition : 1;
        if (m.view.stride[1] < 1) m.view.stride[1] = 1;
        span = m.view.stride[0] * partitions + 8;
    }
    m.bytes = (size_t)span * trn_format_bytes(format) + 16;
    m.at = (unsigned char *)malloc(m.bytes);
    m.before = (unsigned char *)malloc(m.bytes);
    for (size_t i = 0; i < m.bytes; i++) m.at[i] = (unsigned char)cases_u32(rng);
    m.view.data = m.at;
    return m;
}

static void memory_free(memory *m)
{
    free(m->at);
    free(m->before);
}

static unsigned char *element(const memory *m, unsigned char *base, int64_t p, int64_t f)
{
    int64_t stride[TRN_MAX_RANK];
    view_strides(&m->view, stride);
    const int64_t inner = m->view.shape[2];
    return base +
           (size_t)(p * stride[0] + f / inner * stride[1] + f % inner * stride[2]) * trn_format_bytes(m->view.format);
}

static uint32_t code_at(const memory *m, int64_t p, int64_t f)
{
    uint32_t code = 0;
    memcpy(&code, element(m, m->at, p, f), trn_format_bytes(m->view.format));
    return code;
}

static void code_put(const memory *m, unsigned char *base, int64_t p, int64_t f, uint32_t code)
{
    memcpy(element(m, base, p, f), &code, trn_format_bytes(m->view.format));
}

/* Numbers of the size that activations have, where the format is wide enough for others. */
static void fill(uint64_t *rng, const memory *m, int64_t partitions, int64_t elements)
{
    for (int64_t p = 0; p < partitions; p++)
        for (int64_t f = 0; f < elements; f++) {
            const float x = (float)((int)(cases_u32(rng) % 40000) - 20000) / 1500;
            const trn_format format = m->view.format;
            uint32_t code =
                cases_one_in(rng, 8) ? cases_u32(rng) : trn_encode(format, x, TRN_NEAREST_EVEN, TRN_SATURATE, 0);
            if (format == TRN_TF32) code &= 0xffffe000u;
            code_put(m, m->at, p, f, code);
        }
}

static float function_of(trn_act op, float param, float x)
{
    trni_act_plan plan;
    trni_act_plan_init(&plan, op, param, NULL, TRN_ISA_PORTABLE);
    trni_act_run(&plan, &x, &x, 1);
    return x;
}

static float product(float a, float b)
{
    volatile float y = a * b;
    return y;
}

static float sum(float a, float b)
{
    volatile float y = a + b;
    return y;
}

/* x op imm, or imm op x; bypass: x */
static float operate(trn_alu op, bool reverse, float x, float imm)
{
    if (op == TRN_ALU_MULTIPLY) return product(x, imm);
    if (op == TRN_ALU_ADD) return sum(x, imm);
    if (op == TRN_ALU_SUBTRACT) return reverse ? sum(imm, -x) : sum(x, -imm);
    return x;
}

static float reduce(trn_alu op, float a, float x)
{
    if (op == TRN_ALU_ADD) return sum(a, x);
    if (isnan(x)) return a;
    const bool magnitudes = op == TRN_ALU_ABS_MAX || op == TRN_ALU_ABS_MIN;
    const float p = magnitudes ? fabsf(a) : a, q = magnitudes ? fabsf(x) : x;
    const bool most = op == TRN_ALU_MAXIMUM || op == TRN_ALU_ABS_MAX;
    if (p == q)
        return magnitudes ? x : !signbit(a) == most ? a : x; /* the zero that is wanted; else they are the same */
    return (p > q) == most ? a : x;
}

/* A call of either instruction, as one. */
typedef struct call {
    bool second;
    trn_activation_args one;
    trn_activate2_args two;
    trn_alu op0, op1, reduce_op;
    bool reverse0, reverse1, fused;
    float imm0[MOST], imm1[MOST], param[MOST]; /* by partition */
} call;

static uint32_t expected_code(const call *c, const memory *dst, float y, int64_t index)
{
    const trn_activation_args *a = &c->one;
    const uint32_t field = trn_random_field(a->seed, a->stream, (uint64_t)index, 32);
    return trn_encode(dst->view.format, y, a->rounding, TRN_OVERFLOW_DEFAULT, field);
}

/* What dst's memory and the sums become. */
static void expect(const call *c, const memory *dst, const memory *src, unsigned char *want, float *sums,
                   int64_t partitions, int64_t elements)
{
    for (int64_t p = 0; p < partitions; p++) {
        float total = sums[p];
        for (int64_t f = 0; f < elements; f++) {
            float x = trn_decode(src->view.format, code_at(src, p, f));
            if (c->fused && c->op1 != TRN_ALU_BYPASS) {
                const float s = c->imm0[p], b = c->imm1[p];
                x = c->op1 == TRN_ALU_ADD ? fmaf(x, s, b) : c->reverse1 ? fmaf(x, -s, b) : fmaf(x, s, -b);
            } else {
                x = operate(c->op0, c->reverse0, x, c->imm0[p]);
                x = operate(c->op1, c->reverse1, x, c->imm1[p]);
            }
            const float y = function_of(c->one.op, c->param[p], x);
            total = reduce(c->reduce_op, total, y);
            code_put(dst, want, p, f, expected_code(c, dst, y, p * elements + f));
        }
        sums[p] = isnan(total) ? cases_float_of(0x7fc00000u) : total;
    }
}

static trn_status run(call *c, trn_isa isa)
{
    c->one.isa = c->two.isa = isa;
    return c->second ? trn_activate2(&c->two) : trn_activation(&c->one);
}

/* Every field of one that two has too. */
static void copy_common(call *c)
{
    trn_instruction how;
    memcpy(&how, &c->one, sizeof how);
    memcpy(&c->two, &how, sizeof how);
    c->two.dst = c->one.dst;
    c->two.src = c->one.src;
    c->two.op = c->one.op;
    c->two.reduce = c->one.reduce;
    c->two.reduce_cmd = c->one.reduce_cmd;
    c->two.state = c->one.state;
    c->two.op0 = c->op0;
    c->two.op1 = c->op1;
    c->two.reverse0 = c->reverse0;
    c->two.reverse1 = c->reverse1;
    c->two.reduce_op = c->reduce_op;
}

typedef struct columns {
    float imm0[MOST], imm1[MOST], param[MOST];
} columns;

/* The operands of a call, by one of the ways there are. */
static void operands(uint64_t *rng, call *c, columns *given, int64_t partitions)
{
    const int way = cases_below(rng, 3); /* for all, floats (tiles in activate2), tiles */
    const bool varies = way > 0, pointers = way == 1 && !c->second;
    for (int p = 0; p < partitions; p++) {
        c->imm0[p] = given->imm0[p] = (float)(1 + cases_below(rng, 300)) / 128;
        c->imm1[p] = given->imm1[p] = (float)(cases_below(rng, 300) - 150) / 64 + 0.001f;
        c->param[p] = given->param[p] = (float)cases_below(rng, 100) / 64;
        if (!varies && p) c->imm0[p] = c->imm0[0], c->imm1[p] = c->imm1[0], c->param[p] = c->param[0];
    }
    const trn_tensor s = trn_tensor_2d(TRN_F32, given->imm0, partitions, 1),
                     b = trn_tensor_1d(TRN_F32, given->imm1, partitions);
    const bool has0 = c->op0 != TRN_ALU_BYPASS, has1 = c->op1 != TRN_ALU_BYPASS;
    if (varies)
        c->one.param_tile = c->two.relu_param_tile = trn_tensor_1d(TRN_F32, given->param, partitions);
    else
        c->one.param = c->two.relu_param = c->param[0];
    if (has0 && !varies) c->one.scale = c->two.imm0 = c->imm0[0];
    if (has1 && !varies) c->one.bias = c->two.imm1 = c->imm1[0];
    if (has0 && varies) c->two.imm0_tile = s;
    if (has1 && varies) c->two.imm1_tile = b;
    if (has0 && pointers)
        c->one.scale_per_partition = given->imm0;
    else if (has0 && varies)
        c->one.scale_tile = s;
    if (has1 && pointers)
        c->one.bias_per_partition = given->imm1;
    else if (has1 && varies)
        c->one.bias_tile = b;
}

static call any_call(uint64_t *rng, const memory *dst, const memory *src, trn_numerics *numerics)
{
    static const trn_alu reductions[] = { TRN_ALU_ADD, TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM, TRN_ALU_ABS_MAX,
                                          TRN_ALU_ABS_MIN };
    static const trn_alu pairs[6][2] = { { TRN_ALU_BYPASS, TRN_ALU_BYPASS },   { TRN_ALU_MULTIPLY, TRN_ALU_ADD },
                                         { TRN_ALU_MULTIPLY, TRN_ALU_BYPASS }, { TRN_ALU_MULTIPLY, TRN_ALU_SUBTRACT },
                                         { TRN_ALU_ADD, TRN_ALU_BYPASS },      { TRN_ALU_SUBTRACT, TRN_ALU_BYPASS } };
    call c;
    memset(&c, 0, sizeof c);
    c.second = cases_one_in(rng, 2);
    const int pair = cases_below(rng, c.second ? 6 : 3);
    c.op0 = pairs[pair][0];
    c.op1 = pairs[pair][1];
    c.reverse0 = c.second && c.op0 != TRN_ALU_BYPASS && cases_one_in(rng, 2);
    c.reverse1 = c.second && c.op1 != TRN_ALU_BYPASS && cases_one_in(rng, 2);
    c.reduce_op = c.second ? reductions[cases_below(rng, 5)] : TRN_ALU_ADD;
    const bool third = c.second || newest(&dst->view) || newest(&src->view);
    c.one.generation = third || cases_one_in(rng, 2) ? TRN_TRAINIUM3 : TRN_TRAINIUM2;
    c.one.dst = dst->view;
    c.one.src = src->view;
    c.one.op = (trn_act)cases_below(rng, TRN_ACT_COUNT);
    c.one.rounding = cases_one_in(rng, 3) ? TRN_STOCHASTIC : cases_one_in(rng, 4) ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN;
    c.one.seed = cases_next(rng);
    c.one.stream = cases_next(rng);
    c.fused = cases_one_in(rng, 3);
    numerics->activation_fused = c.fused;
    c.one.numerics = c.fused ? numerics : NULL;
    return c;
}

static void compare(const char *what, int round, const memory *dst, const unsigned char *want, trn_isa isa,
                    const call *c)
{
    for (size_t i = 0; i < dst->bytes; i++)
        if (dst->at[i] != want[i])
            fail_msg("round %d (%s): %s to %s, %s: byte %zu of %s is %02x, not %02x", round, trn_isa_text(isa),
                     trn_act_name(c->one.op), trn_format_name(dst->view.format), c->second ? "activate2" : "activation",
                     i, what, dst->at[i], want[i]);
}

static void random_calls(void **state)
{
    (void)state;
    uint64_t rng = 511;
    trn_numerics numerics;
    memset(&numerics, 0, sizeof numerics);
    for (int round = 0; round < cases_rounds(1500, 30000); round++) {
        const int64_t partitions = 1 + cases_below(&rng, 20), outer = cases_below(&rng, 4),
                      inner = 1 + cases_below(&rng, round % 9 ? 40 : 700);
        const int64_t elements = outer * inner;
        memory src =
            memory_of(&rng, formats[cases_below(&rng, FORMATS)], partitions, outer, inner, cases_one_in(&rng, 2));
        memory dst =
            memory_of(&rng, formats[cases_below(&rng, FORMATS)], partitions, outer, inner, cases_one_in(&rng, 2));
        fill(&rng, &src, partitions, elements);
        columns given;
        trn_scalar_state registers, kept;
        float sums[MOST], got[MOST];
        call c = any_call(&rng, &dst, &src, &numerics);
        operands(&rng, &c, &given, partitions);
        for (int p = 0; p < TRN_PARTITIONS; p++) registers.registers[p] = (float)cases_below(&rng, 9) - 4;
        kept = registers;
        const bool reads = cases_one_in(&rng, 2), continues = reads && cases_one_in(&rng, 2);
        if (reads) c.one.reduce = got;
        c.one.reduce_cmd = continues ? TRN_REDUCE_CMD_REDUCE
                           : reads   ? TRN_REDUCE_CMD_RESET_REDUCE
                                     : TRN_REDUCE_CMD_DEFAULT;
        c.one.state = continues ? &registers : NULL;
        copy_common(&c);
        const float identity = cases_float_of(trn_alu_info_of(c.reduce_op)->identity);
        for (int p = 0; p < partitions; p++) sums[p] = continues ? registers.registers[p] : identity;
        unsigned char *want = (unsigned char *)malloc(dst.bytes);
        memcpy(want, dst.at, dst.bytes);
        memcpy(dst.before, dst.at, dst.bytes);
        expect(&c, &dst, &src, want, sums, partitions, elements);
        for (size_t k = 0; k < sizeof all_isas / sizeof *all_isas; k++) {
            if (!trn_isa_supported(all_isas[k])) continue;
            memcpy(dst.at, dst.before, dst.bytes);
            registers = kept;
            trn_error error;
            c.one.error = c.two.error = &error;
            if (run(&c, all_isas[k])) fail_msg("round %d: %s", round, error.text);
            compare("dst", round, &dst, want, all_isas[k], &c);
            for (int p = 0; p < partitions && reads; p++)
                if (cases_bits_of(got[p]) != cases_bits_of(sums[p]))
                    fail_msg("round %d (%s): the sum of partition %d is %08x, not %08x", round,
                             trn_isa_text(all_isas[k]), p, cases_bits_of(got[p]), cases_bits_of(sums[p]));
            for (int p = 0; p < TRN_PARTITIONS; p++) {
                const float due = continues && p < partitions ? sums[p] : kept.registers[p];
                assert_int_equal(cases_bits_of(registers.registers[p]), cases_bits_of(due));
            }
        }
        free(want);
        memory_free(&src);
        memory_free(&dst);
    }
}

/* ---- registers ---- */

static void register_commands(void **state)
{
    (void)state;
    trn_scalar_state engine;
    memset(&engine, 0, sizeof engine);
    float x[2][3] = { { 1, 2, 4 }, { 8, 16, 32 } }, y[2][3], got[2];
    uint16_t res[2];
    trn_activation_args a;
    memset(&a, 0, sizeof a);
    a.src = trn_tensor_2d(TRN_F32, x, 2, 3);
    a.dst = trn_tensor_2d(TRN_F32, y, 2, 3);
    a.state = &engine;
    a.reduce = got;
    a.reduce_res = trn_tensor_2d(TRN_BF16, res, 2, 1);
    static const struct {
        trn_reduce_cmd cmd;
        float first, second;
    } step[] = {
        { TRN_REDUCE_CMD_DEFAULT, 0, 0 }, /* idle */
        { TRN_REDUCE_CMD_RESET_REDUCE, 7, 56 }, { TRN_REDUCE_CMD_REDUCE, 14, 112 }, { TRN_REDUCE_CMD_IDLE, 14, 112 },
        { TRN_REDUCE_CMD_RESET, 0, 0 },         { TRN_REDUCE_CMD_REDUCE, 7, 56 },
    };
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        a.reduce_cmd = step[i].cmd;
        assert_int_equal(trn_activation(&a), TRN_OK);
        assert_true(got[0] == step[i].first && got[1] == step[i].second);
        assert_true(engine.registers[0] == step[i].first && engine.registers[1] == step[i].second);
        assert_int_equal(res[0], trn_bf16_from_f32(step[i].first));
        assert_int_equal(res[1], trn_bf16_from_f32(step[i].second));
    }
    engine.registers[100] = 5;
    a.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE; /* all registers */
    assert_int_equal(trn_activation(&a), TRN_OK);
    assert_true(engine.registers[100] == 0);
    a.state = NULL;
    a.reduce_cmd = TRN_REDUCE_CMD_DEFAULT; /* nobody else's registers: reset_reduce */
    assert_int_equal(trn_activation(&a), TRN_OK);
    assert_true(got[0] == 7 && got[1] == 56);
    engine.registers[1] = 3;
    a.reduce_cmd = TRN_REDUCE_CMD_REDUCE; /* activation_reduce begins at zero whatever it says */
    a.state = &engine;
    assert_int_equal(trn_activation_reduce(&a), TRN_OK);
    assert_true(got[0] == 7 && got[1] == 56 && engine.registers[1] == 56);
    trn_error error = { TRN_OK, "" };
    trn_activation_args nowhere = a;
    nowhere.reduce = NULL;
    nowhere.reduce_res.rank = 0;
    nowhere.error = &error;
    assert_int_equal(trn_activation_reduce(&nowhere), TRN_EINVAL);
    assert_string_equal(error.text, "activation_reduce: reduce_res is missing");
    assert_int_equal(trn_activation_reduce(NULL), TRN_EINVAL);
    a.state = NULL;
    a.reduce_cmd = TRN_REDUCE_CMD_DEFAULT;
    a.dst.shape[1] = a.src.shape[1] = 0; /* nothing to add */
    assert_int_equal(trn_activation(&a), TRN_OK);
    assert_true(got[0] == 0 && got[1] == 0);
}

/* Nothing is to do, however often: that takes no time. */
static void empty_partitions(void **state)
{
    (void)state;
    trn_activation_args a;
    memset(&a, 0, sizeof a);
    a.unlimited = true;
    a.dst = a.src = trn_tensor_2d(TRN_F32, NULL, (int64_t)1 << 50, 0);
    assert_int_equal(trn_activation(&a), TRN_OK);
}

/* ---- tables of codes, in place, threads ---- */

static void tabulated(void **state)
{
    (void)state;
    static const trn_format from[] = { TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_I8, TRN_I16 };
    static const trn_format to[] = { TRN_BF16, TRN_F32, TRN_F8_E5M2, TRN_F16 };
    enum { P = 200, F = 1000 };
    uint64_t rng = 512;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (size_t j = 0; j < 3 * (sizeof to / sizeof *to); j++) {
            const trn_format into = to[j % (sizeof to / sizeof *to)];
            memory src = memory_of(&rng, from[i], P, 1, F, true), dst = memory_of(&rng, into, P, 1, F, true);
            memory rows = memory_of(&rng, into, P, 1, F, true);
            float ones[P];
            for (int p = 0; p < P; p++) ones[p] = 1.5f;
            trn_activation_args a;
            memset(&a, 0, sizeof a);
            a.unlimited = true;
            a.generation = TRN_TRAINIUM3;
            a.src = src.view;
            a.dst = rows.view;
            a.op = (trn_act)cases_below(&rng, TRN_ACT_COUNT);
            a.scale_per_partition = ones; /* one for each: no table */
            assert_int_equal(trn_activation_scratch_bytes(&a), 0);
            assert_int_equal(trn_activation(&a), TRN_OK);
            a.scale_per_partition = NULL;
            a.scale = 1.5f;
            a.dst = dst.view;
            const size_t bytes = trn_activation_scratch_bytes(&a);
            const bool exact =
                a.op <= TRN_ACT_SQUARE || a.op == TRN_ACT_RELU || a.op == TRN_ACT_PRELU || a.op >= TRN_ACT_SIGN;
            assert_int_equal(bytes > 0, !exact || trn_format_bytes(from[i]) == 1);
            unsigned char *scratch = (unsigned char *)malloc(bytes + 1);
            for (int threads = 1; threads <= 3; threads++) {
                with_threads(threads);
                a.scratch = threads == 2 ? scratch : NULL;
                a.scratch_bytes = bytes;
                a.isa = threads == 3 ? TRN_ISA_PORTABLE : TRN_ISA_AUTO;
                memset(dst.at, 0xa5, dst.bytes - 16);
                assert_int_equal(trn_activation(&a), TRN_OK);
                if (memcmp(dst.at, rows.at, dst.bytes - 16))
                    fail_msg("%s, %s to %s: a table changes bits", trn_act_name(a.op), trn_format_name(from[i]),
                             trn_format_name(into));
            }
            with_threads(1);
            if (trn_format_bytes(from[i]) == trn_format_bytes(into)) { /* in place */
                a.dst.data = a.src.data;
                assert_int_equal(trn_activation(&a), TRN_OK);
                assert_memory_equal(src.at, rows.at, src.bytes - 16);
            }
            a.dst = dst.view;
            a.src = src.view;
            a.scratch = scratch;
            a.scratch_bytes = bytes - 1;
            trn_error error;
            a.error = &error;
            assert_int_equal(trn_activation(&a), bytes ? TRN_ENOSPC : TRN_OK);
            free(scratch);
            memory_free(&src);
            memory_free(&dst);
            memory_free(&rows);
        }
}

/* ---- refusals ---- */

static float store[64 * 1024];

typedef struct refusal {
    trn_status status;
    const char *says;
    void (*spoil)(trn_activation_args *a);
} refusal;

#define SPOIL(name, ...)                                                                                               \
    static void name(trn_activation_args *a) { __VA_ARGS__; }
SPOIL(bad_op, a->op = TRN_ACT_COUNT)
SPOIL(bad_math, a->math = (trn_act_math)2)
SPOIL(sleef, a->math = TRN_ACT_MATH_SLEEF)
SPOIL(engine, a->engine = TRN_ENGINE_VECTOR)
SPOIL(partitions, a->dst = a->src = trn_tensor_2d(TRN_F32, store, 129, 2))
SPOIL(shapes, a->src.shape[1] = 3)
SPOIL(long_partition, a->dst = a->src = trn_tensor_2d(TRN_F32, store, 1, 60000))
SPOIL(overlap, a->src.data = (char *)a->dst.data + 4)
SPOIL(first_bias, a->generation = TRN_TRAINIUM1; a->bias = 1)
SPOIL(first_reciprocal, a->generation = TRN_TRAINIUM1; a->op = TRN_ACT_RECIPROCAL; a->bias_per_partition = store + 100)
SPOIL(bias_twice, a->bias = 1; a->bias_per_partition = store + 100)
SPOIL(scale_twice, a->scale = 2; a->scale_tile = trn_tensor_1d(TRN_F32, store + 100, 2))
SPOIL(both_scales, a->scale_per_partition = store + 100; a->scale_tile = trn_tensor_1d(TRN_F32, store + 100, 2))
SPOIL(scale_format, a->scale_tile = trn_tensor_1d(TRN_BF16, store + 100, 2))
SPOIL(bias_format, a->bias_tile = trn_tensor_1d(TRN_TF32, store + 100, 2))
SPOIL(bias_shape, a->bias_tile = trn_tensor_1d(TRN_F32, store + 100, 3))
SPOIL(bias_in_dst, a->bias_tile = trn_tensor_1d(TRN_F32, store, 2))
SPOIL(reduce_in_dst, a->reduce = store + 1)
SPOIL(reduce_res_shape, a->reduce_res = trn_tensor_2d(TRN_F32, store + 100, 2, 2))
SPOIL(command, a->reduce_cmd = TRN_REDUCE_CMD_LOAD_REDUCE)
SPOIL(no_state, a->reduce_cmd = TRN_REDUCE_CMD_REDUCE)
SPOIL(rounding, a->rounding = (trn_rounding)17)
SPOIL(missing, a->src.rank = 0)

static void refusals(void **state)
{
    (void)state;
    static const refusal list[] = {
        { TRN_EINVAL, "op 26 is not an activation function", bad_op },
        { TRN_EINVAL, "math 2", bad_math },
        { TRN_EUNSUPPORTED, "without TRN_USE_SLEEF", sleef },
        { TRN_EINVAL, "engine is vector", engine },
        { TRN_ELIMIT, "129 partitions", partitions },
        { TRN_ESHAPE, "2 partitions of 3 elements", shapes },
        { TRN_ELIMIT, "60000 elements per partition", long_partition },
        { TRN_EINVAL, "dst overlaps src", overlap },
        { TRN_EUNSUPPORTED, "Trainium1 takes one per partition only", first_bias },
        { TRN_EUNSUPPORTED, "reciprocal takes no bias", first_reciprocal },
        { TRN_EINVAL, "bias is 1, and there is one per partition too", bias_twice },
        { TRN_EINVAL, "scale is 2, and", scale_twice },
        { TRN_EINVAL, "both given", both_scales },
        { TRN_EFORMAT, "scales are float32", scale_format },
        { TRN_EFORMAT, "tfloat32", bias_format },
        { TRN_ESHAPE, "bias has 3 partitions", bias_shape },
        { TRN_EINVAL, "dst overlaps bias", bias_in_dst },
        { TRN_EINVAL, "reduce overlaps dst", reduce_in_dst },
        { TRN_ESHAPE, "reduce_res has 2 partitions of 2 elements", reduce_res_shape },
        { TRN_EINVAL, "reduce_cmd is 5", command },
        { TRN_EINVAL, "registers, is null", no_state },
        { TRN_EINVAL, "rounding 17", rounding },
        { TRN_ESHAPE, "src is missing", missing },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        trn_error error;
        trn_activation_args a;
        memset(&a, 0, sizeof a);
        memset(store, 0x3f, sizeof store);
        a.dst = a.src = trn_tensor_2d(TRN_F32, store, 2, 4);
        a.op = TRN_ACT_EXP;
        a.error = &error;
        list[i].spoil(&a);
        const trn_status status = trn_activation(&a);
        if (status != list[i].status || !strstr(error.text, list[i].says))
            fail_msg("status %d, \"%s\"; it should say \"%s\"", (int)status, error.text, list[i].says);
        for (size_t j = 0; j < sizeof store / sizeof *store; j++) assert_int_equal(cases_bits_of(store[j]), 0x3f3f3f3f);
    }
    assert_int_equal(trn_activation(NULL), TRN_EINVAL);
    assert_int_equal(trn_activate2(NULL), TRN_EINVAL);
}

static void second_refusals(void **state)
{
    (void)state;
    uint64_t rng = 513;
    for (int round = 0; round < 2000; round++) {
        float x[2] = { 1, 2 };
        trn_error error;
        trn_activate2_args a;
        memset(&a, 0, sizeof a);
        a.dst = a.src = trn_tensor_2d(TRN_F32, x, 1, 2);
        a.error = &error;
        a.op0 = (trn_alu)cases_below(&rng, TRN_ALU_COUNT + 1);
        a.op1 = (trn_alu)cases_below(&rng, TRN_ALU_COUNT + 1);
        a.reduce_op = (trn_alu)cases_below(&rng, TRN_ALU_COUNT + 1);
        a.generation = (trn_generation)(2 + cases_below(&rng, 3));
        a.reverse0 = cases_one_in(&rng, 9);
        const bool plain = a.op1 == TRN_ALU_BYPASS;
        bool legal = a.op0 == TRN_ALU_MULTIPLY
                         ? plain || a.op1 == TRN_ALU_ADD || a.op1 == TRN_ALU_SUBTRACT
                         : plain && (a.op0 == TRN_ALU_ADD || a.op0 == TRN_ALU_SUBTRACT || a.op0 == TRN_ALU_BYPASS);
        legal = legal && !(a.reverse0 && a.op0 == TRN_ALU_BYPASS) && a.generation == TRN_TRAINIUM3;
        legal = legal &&
                (a.reduce_op == TRN_ALU_BYPASS || a.reduce_op == TRN_ALU_ADD || a.reduce_op == TRN_ALU_MAXIMUM ||
                 a.reduce_op == TRN_ALU_MINIMUM || a.reduce_op == TRN_ALU_ABS_MAX || a.reduce_op == TRN_ALU_ABS_MIN);
        const trn_status status = trn_activate2(&a);
        if (legal != (status == TRN_OK))
            fail_msg("op0 %d op1 %d reduce_op %d: %d", (int)a.op0, (int)a.op1, (int)a.reduce_op, (int)status);
        if (!legal) assert_true(x[0] == 1 && x[1] == 2 && strlen(error.text) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls), cmocka_unit_test(register_commands), cmocka_unit_test(empty_partitions),
        cmocka_unit_test(tabulated),    cmocka_unit_test(refusals),          cmocka_unit_test(second_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

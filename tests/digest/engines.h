/* engines.h - the digest's sections on the Scalar, Vector and GpSimd engines and on the DMA.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_ENGINES_H
#define DIGEST_ENGINES_H

#include <tests/digest/inputs.h>

enum { ENGINE_P = 37, ENGINE_F = 75, ENGINE_ROOM = 128 * 1100 };

static uint32_t engine_x[ENGINE_ROOM], engine_y[ENGINE_ROOM], engine_z[ENGINE_ROOM], engine_dst[ENGINE_ROOM];
static uint32_t engine_column[2][ENGINE_ROOM];

static const trn_format engine_formats[] = { TRN_F32,     TRN_BF16, TRN_F16, TRN_F8_E4M3,
                                             TRN_F8_E5M2, TRN_I8,   TRN_U16, TRN_I32 };
enum { ENGINE_FORMATS = sizeof engine_formats / sizeof engine_formats[0] };

static bool engine_told(const char *what, trn_status status, const trn_error *error)
{
    if (status == TRN_OK) return true;
    fprintf(stderr, "digest: %s: %s\n", what, error->text);
    return false;
}

/* A [p, f] view of fresh numbers; wide views have gaps between their partitions. */
static trn_tensor engine_input(trn_format format, void *data, int p, int f, flavour kind)
{
    fill(format, data, ENGINE_ROOM, kind);
    trn_tensor t = trn_tensor_2d(format, data, p, f);
    t.stride[0] = f + below(3);
    t.stride[1] = 1;
    if (t.stride[0] == 0) t.stride[0] = 1;
    return t;
}

static trn_tensor engine_output(trn_format format, int p, int f)
{
    memset(engine_dst, 0xa5, sizeof engine_dst);
    return trn_tensor_2d(format, engine_dst, p, f);
}

static void engine_hash(const trn_tensor *t)
{
    hash_bytes(t->data, (size_t)trn_tensor_elements(*t) * trn_format_bytes(t->format));
}

static trn_format engine_format(void) { return engine_formats[below(ENGINE_FORMATS)]; }

/* ---- Scalar engine ---- */

static bool activations(void)
{
    trn_error error;
    for (int op = 0; op < TRN_ACT_COUNT; op++)
        for (int round = 0; round < 6; round++) {
            const trn_format in = round < 2 ? TRN_F32 : engine_format(), out = round == 0 ? TRN_F32 : engine_format();
            const int p = round == 1 ? 128 : ENGINE_P, f = round == 1 ? 512 : ENGINE_F;
            float sums[128];
            trn_activation_args a;
            memset(&a, 0, sizeof a);
            a.src = engine_input(in, engine_x, p, f, round & 1 ? WILD : SPECIAL);
            a.dst = engine_output(out, p, f);
            a.op = (trn_act)op;
            a.scale = round == 2 ? 0.3f : 0.0f;
            a.param = 0.25f;
            a.reduce = sums;
            a.rounding = round == 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
            a.seed = 7;
            a.error = &error;
            if (!engine_told(trn_act_name(a.op), trn_activation(&a), &error)) return false;
            engine_hash(&a.dst);
            hash_bytes(sums, (size_t)p * sizeof sums[0]);
        }
    return true;
}

/* ---- Vector engine ---- */

static bool elementwise(void)
{
    trn_error error;
    for (int op = TRN_ALU_ADD; op < TRN_ALU_COUNT; op++)
        for (int round = 0; round < 6; round++) {
            const trn_alu_info *info = trn_alu_info_of((trn_alu)op);
            if (op == TRN_ALU_AVERAGE || info->operands == 1) continue;
            const bool bits = info->kind == TRN_ALU_BITVEC;
            const trn_format in = bits ? TRN_U16 : round ? engine_format() : TRN_F32;
            const trn_format out = bits ? TRN_U16 : round ? engine_format() : TRN_F32;
            const int p = round == 1 ? 128 : ENGINE_P, f = round == 1 ? 1030 : ENGINE_F;
            trn_tensor_tensor_args a;
            memset(&a, 0, sizeof a);
            a.data1 = engine_input(in, engine_x, p, f, round & 1 ? WILD : SPECIAL);
            a.data2 = engine_input(bits ? TRN_U16 : engine_format(), engine_y, p, f, SPECIAL);
            a.dst = engine_output(out, p, f);
            a.op = (trn_alu)op;
            a.rounding = round == 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
            a.unlimited = round == 1;
            a.error = &error;
            if (!engine_told(trn_alu_name(a.op), trn_tensor_tensor(&a), &error)) return false;
            engine_hash(&a.dst);
        }
    return true;
}

static bool two_operators(void)
{
    static const trn_alu ops[] = { TRN_ALU_ADD,     TRN_ALU_SUBTRACT, TRN_ALU_MULTIPLY,
                                   TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM,  TRN_ALU_GREATER };
    trn_error error;
    for (int i = 0; i < 36; i++) {
        fill(TRN_F32, engine_column[0], 128, ORDINARY);
        fill(TRN_F32, engine_column[1], 128, ORDINARY);
        trn_tensor_scalar_args a;
        memset(&a, 0, sizeof a);
        a.data = engine_input(engine_format(), engine_x, ENGINE_P, ENGINE_F, i & 1 ? CANCEL : SPECIAL);
        a.dst = engine_output(i & 2 ? TRN_F32 : engine_format(), ENGINE_P, ENGINE_F);
        a.op0 = ops[i % 6];
        a.op1 = ops[i / 6];
        a.operand0_tile = trn_tensor_2d(TRN_F32, engine_column[0], ENGINE_P, 1);
        a.operand1_tile = trn_tensor_2d(TRN_F32, engine_column[1], ENGINE_P, 1);
        a.reverse0 = i & 4;
        a.reverse1 = i & 8;
        a.error = &error;
        if (!engine_told("tensor_scalar", trn_tensor_scalar(&a), &error)) return false;
        engine_hash(&a.dst);

        trn_scalar_tensor_tensor_args b;
        memset(&b, 0, sizeof b);
        b.data = a.data;
        b.dst = engine_output(TRN_F32, ENGINE_P, ENGINE_F);
        b.op0 = a.op0;
        b.op1 = a.op1;
        b.operand0_tile = a.operand0_tile;
        b.operand1 = engine_input(engine_format(), engine_y, ENGINE_P, ENGINE_F, ORDINARY);
        b.error = &error;
        if (!engine_told("scalar_tensor_tensor", trn_scalar_tensor_tensor(&b), &error)) return false;
        engine_hash(&b.dst);
    }
    return true;
}

static bool reductions(void)
{
    static const trn_alu ops[] = { TRN_ALU_ADD, TRN_ALU_MULTIPLY, TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM,
                                   TRN_ALU_LOGICAL_XOR };
    trn_error error;
    for (int i = 0; i < 20; i++) {
        const int p = i < 5 ? 128 : ENGINE_P, f = i < 5 ? 1030 : 1 + below(ENGINE_F);
        trn_tensor_reduce_args a;
        memset(&a, 0, sizeof a);
        a.data = engine_input(i < 10 ? TRN_F32 : engine_format(), engine_x, p, f, i & 1 ? CANCEL : SPECIAL);
        a.dst = engine_output(TRN_F32, p, 1);
        a.op = ops[i % 5];
        a.negate = i & 1;
        a.error = &error;
        if (!engine_told("tensor_reduce", trn_tensor_reduce(&a), &error)) return false;
        engine_hash(&a.dst);

        trn_tensor_tensor_scan_args s;
        memset(&s, 0, sizeof s);
        s.data0 = engine_input(engine_format(), engine_x, p, f, ORDINARY);
        s.data1 = engine_input(engine_format(), engine_y, p, f, SPECIAL);
        s.dst = engine_output(i & 1 ? TRN_F32 : TRN_BF16, p, f);
        s.initial = 0.5f;
        s.op0 = i & 2 ? TRN_ALU_MULTIPLY : TRN_ALU_MAXIMUM;
        s.op1 = TRN_ALU_ADD;
        s.error = &error;
        if (!engine_told("tensor_tensor_scan", trn_tensor_tensor_scan(&s), &error)) return false;
        engine_hash(&s.dst);

        trn_tensor_scalar_reduce_args r;
        trn_vector_state state;
        trn_vector_state_init(&state, 3);
        memset(&r, 0, sizeof r);
        r.data = s.data0;
        r.dst = engine_output(TRN_BF16, p, f);
        r.op0 = TRN_ALU_SUBTRACT;
        r.operand0 = 0.75f;
        r.reduce_op = i & 1 ? TRN_ALU_ADD : TRN_ALU_MAXIMUM;
        r.state = &state;
        r.error = &error;
        if (!engine_told("tensor_scalar_reduce", trn_tensor_scalar_reduce(&r), &error)) return false;
        engine_hash(&r.dst);
        hash_bytes(state.accumulator, (size_t)p * sizeof state.accumulator[0]);
    }
    return true;
}

static bool statistics(void)
{
    trn_error error;
    for (int i = 0; i < 12; i++) {
        const int f = i == 0 ? 512 : 1 + below(512);
        trn_bn_stats_args s;
        memset(&s, 0, sizeof s);
        s.data = engine_input(engine_format(), engine_x, ENGINE_P, f, i & 1 ? ORDINARY : SPECIAL);
        s.dst = engine_output(TRN_F32, ENGINE_P, 6);
        s.error = &error;
        if (!engine_told("bn_stats", trn_bn_stats(&s), &error)) return false;
        engine_hash(&s.dst);
        memcpy(engine_y, engine_dst, sizeof(float) * 6 * ENGINE_P);
        trn_bn_aggr_args a;
        memset(&a, 0, sizeof a);
        a.data = trn_tensor_2d(TRN_F32, engine_y, ENGINE_P, 6);
        a.dst = engine_output(TRN_F32, ENGINE_P, 2);
        a.error = &error;
        if (!engine_told("bn_aggr", trn_bn_aggr(&a), &error)) return false;
        engine_hash(&a.dst);
    }
    return true;
}

static bool searches(void)
{
    trn_error error;
    for (int i = 0; i < 12; i++) {
        const int f = 8 + below(200);
        const trn_tensor data = engine_input(i & 1 ? TRN_F8_E4M3 : TRN_BF16, engine_x, ENGINE_P, f, SPECIAL);
        trn_max8_args m;
        memset(&m, 0, sizeof m);
        m.src = data;
        m.dst = trn_tensor_2d(TRN_F32, engine_z, ENGINE_P, 8);
        m.error = &error;
        if (!engine_told("max8", trn_max8(&m), &error)) return false;
        engine_hash(&m.dst);
        trn_nc_find_index8_args n;
        memset(&n, 0, sizeof n);
        n.data = data;
        n.vals = m.dst;
        n.dst = engine_output(i & 2 ? TRN_U16 : TRN_U32, ENGINE_P, 8);
        n.error = &error;
        if (!engine_told("nc_find_index8", trn_nc_find_index8(&n), &error)) return false;
        engine_hash(&n.dst);
        trn_nc_match_replace8_args r;
        memset(&r, 0, sizeof r);
        r.data = data;
        r.vals = m.dst;
        r.imm = -1.0f;
        r.dst = engine_output(TRN_F32, ENGINE_P, f);
        r.dst_idx = trn_tensor_2d(TRN_U32, engine_y, ENGINE_P, 8);
        r.error = &error;
        if (!engine_told("nc_match_replace8", trn_nc_match_replace8(&r), &error)) return false;
        engine_hash(&r.dst);
        engine_hash(&r.dst_idx);
    }
    return true;
}

/* ---- GpSimd and the DMA ---- */

static bool gpsimd(void)
{
    trn_error error;
    for (int i = 0; i < 12; i++) {
        trn_tensor_tensor_args a;
        memset(&a, 0, sizeof a);
        a.data1 = engine_input(TRN_F32, engine_x, ENGINE_P, ENGINE_F, i & 1 ? ORDINARY : SPECIAL);
        a.data2 = engine_input(TRN_F32, engine_y, ENGINE_P, ENGINE_F, i & 2 ? ORDINARY : SPECIAL);
        a.dst = engine_output(TRN_F32, ENGINE_P, ENGINE_F);
        a.op = TRN_ALU_POWER;
        a.error = &error;
        if (!engine_told("power", trn_tensor_tensor(&a), &error)) return false;
        engine_hash(&a.dst);
        trn_tensor_partition_reduce_args r;
        memset(&r, 0, sizeof r);
        r.data = a.data1;
        r.dst = engine_output(TRN_F32, 1, ENGINE_F);
        r.op = i & 1 ? TRN_ALU_ADD : TRN_ALU_AVERAGE;
        r.error = &error;
        if (!engine_told("tensor_partition_reduce", trn_tensor_partition_reduce(&r), &error)) return false;
        engine_hash(&r.dst);
    }
    return true;
}

static bool transfers(void)
{
    trn_error error;
    for (int i = 0; i < 12; i++) {
        trn_tensor src[5];
        trn_dma_compute_args c;
        memset(&c, 0, sizeof c);
        for (int j = 0; j < 5; j++) {
            src[j] = engine_input(TRN_BF16, engine_x + j * 8192, ENGINE_P, ENGINE_F, SPECIAL);
            if (j == 0) continue;
            src[j].data = engine_x + j * 4096; /* of the same fresh numbers */
        }
        c.srcs = src;
        c.count = 5;
        c.dst = engine_output(engine_format(), ENGINE_P, ENGINE_F);
        c.error = &error;
        if (!engine_told("dma_compute", trn_dma_compute(&c), &error)) return false;
        engine_hash(&c.dst);
    }
    return true;
}

#endif /* DIGEST_ENGINES_H */

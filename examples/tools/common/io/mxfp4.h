/* mxfp4.h - weights of four bits with a power of two for 32 of them, as gpt-oss and others keep them in checkpoints.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/mxfp4.h"
 *     st_file file;
 *     mxfp4 m;
 *     char why[IO_WHY];
 *     float row[4096];
 *     ...
 *     if (!mxfp4_open(st_find(&file, "x_blocks"), st_find(&file, "x_scales"), &m, why)) return puts(why), 2;
 *     for (int64_t i = 0; i < m.matrices * m.rows && m.columns <= 4096; i++) mxfp4_row(&m, i, row);
 *
 * | tensor          | type | shape                                                                               |
 * |-----------------|------|-------------------------------------------------------------------------------------|
 * | blocks          | U8   | [.., rows, columns/32, 16], or without the last axis of blocks [.., rows, columns/2] |
 * | scales          | U8   | [.., rows, columns/32]; also F8_E8M0, which is the same byte                         |
 *
 * A byte holds two codes of E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives), the one with the smaller index in
 * the low half. A scale s means 2^(s - 127); 255 is NaN (OCP MX 1.0). value = code * scale: at most two significant
 * bits, so binary32 and bfloat16 hold it exactly, but for a code above 1.5 under s = 254, which is infinity in both.
 *
 * rows are a layer's outputs and columns its inputs. TRAP: transformers' modules of gpt-oss keep the same weights as
 * [expert, inputs, outputs] once they are BF16: a checkpoint's [expert, rows, columns] is transposed on the way.
 *
 * DOES: names, shapes and types checked; rows, blocks and single elements as binary32; codes one to a byte.
 * DOES NOT: quantise (trnmath/trn_mx.h), or read a layout of a GPU's kernels ("swizzled" scales).
 *
 * CONTENTS
 *     MXFP4_BLOCK, MXFP4_BYTES          32 elements, 16 bytes
 *     mxfp4, mxfp4_open                 a pair of tensors, checked
 *     mxfp4_scales_name                 "x_blocks" -> "x_scales" and "x"; "x.blocks" -> "x.scales" and "x"
 *     mxfp4_code, mxfp4_scale           one element's code; one block's byte
 *     mxfp4_value, mxfp4_power          what they mean
 *     mxfp4_at, mxfp4_row               one element, one row as binary32
 *     mxfp4_codes                       a row's codes, one to a byte: F4_E2M1 of trnmath
 *
 * KNOWN FROM: gpt-oss's checkpoints and transformers' integration of them (names, order of nibbles, the transposition);
 *     compressed-tensors' mxfp4-pack-quantized (the form without the last axis); OCP MX 1.0 (values).
 */
#ifndef IO_MXFP4_H
#define IO_MXFP4_H

#include <math.h>

#include "safetensors.h"

enum { MXFP4_BLOCK = 32, MXFP4_BYTES = MXFP4_BLOCK / 2, MXFP4_NAN = 255, MXFP4_NAME = 16384 };

typedef struct mxfp4 {
    int64_t matrices, rows, columns; /* elements: [matrices, rows, columns] */
    int64_t groups;                  /* of a row: columns / 32 */
    const unsigned char *blocks;     /* [matrices * rows, groups, 16]; NULL while the file is not open */
    const unsigned char *scales;     /* [matrices * rows, groups] */
} mxfp4;

/* ---- names ---- */

/* The name of the scales that go with a tensor of blocks, and what both have in common: in MXFP4_NAME bytes each.
 * false: this is no name of blocks. */
IO_FN bool mxfp4_scales_name(const char *blocks, char *scales, char *base)
{
    static const char end[] = "blocks";
    const size_t n = strlen(blocks), tail = sizeof end - 1;
    if (n < tail + 2 || n >= MXFP4_NAME || strcmp(blocks + n - tail, end) != 0) return false;
    if (blocks[n - tail - 1] != '_' && blocks[n - tail - 1] != '.') return false;
    if (scales) snprintf(scales, MXFP4_NAME, "%.*sscales", (int)(n - tail), blocks);
    if (base) snprintf(base, MXFP4_NAME, "%.*s", (int)(n - tail - 1), blocks);
    return true;
}

/* ---- shapes ---- */

IO_FN bool mxfp4_bytes(const st_tensor *t, bool scale)
{
    return strcmp(t->type, "U8") == 0 || (scale && strcmp(t->type, "F8_E8M0") == 0);
}

/* Do both have the axes 0 .. count - 1 in common? */
IO_FN bool mxfp4_same(const st_tensor *a, const st_tensor *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* *m = the pair. Data is taken along where the tensors have it. false with a sentence that names the blocks: a tensor
 * that is missing, a type or a shape that does not fit. */
IO_FN bool mxfp4_open(const st_tensor *blocks, const st_tensor *scales, mxfp4 *m, char *why)
{
    memset(m, 0, sizeof *m);
    if (!blocks) return io_fail(why, "MXFP4", "its blocks are missing");
    if (!scales) return io_fail(why, blocks->name, "its scales are missing");
    if (!mxfp4_bytes(blocks, false))
        return io_fail(why, blocks->name, "it is %s; blocks of MXFP4 are U8, two codes in a byte", blocks->type);
    if (!mxfp4_bytes(scales, true))
        return io_fail(why, blocks->name, "its scales are %s; those of MXFP4 are U8 or F8_E8M0", scales->type);
    const int rank = scales->rank;
    const bool split = blocks->rank == rank + 1;
    const bool shaped = rank >= 1 && (split || blocks->rank == rank) && mxfp4_same(blocks, scales, rank - !split);
    const int64_t groups = rank >= 1 ? scales->shape[rank - 1] : 0;
    if (!shaped ||
        (split ? blocks->shape[rank] != MXFP4_BYTES
               : blocks->shape[rank - 1] / MXFP4_BYTES != groups || blocks->shape[rank - 1] % MXFP4_BYTES != 0))
        return io_fail(why, blocks->name,
                       "its shape and that of its scales do not fit: [.., G, 16] goes with [.., G], 16 bytes for each "
                       "scale");
    m->groups = groups;
    m->columns = groups * MXFP4_BLOCK;
    m->rows = rank >= 2 ? scales->shape[rank - 2] : 1;
    m->matrices = 1;
    for (int i = 0; i < rank - 2; i++) m->matrices *= scales->shape[i];
    m->blocks = (const unsigned char *)blocks->data;
    m->scales = (const unsigned char *)scales->data;
    return true;
}

/* ---- elements: `row` counts over all matrices ---- */

IO_FN int mxfp4_code(const mxfp4 *m, int64_t row, int64_t column)
{
    const unsigned char byte = m->blocks[(row * m->columns + column) / 2];
    return column % 2 ? byte >> 4 : byte & 15;
}

IO_FN int mxfp4_scale(const mxfp4 *m, int64_t row, int64_t column)
{
    return m->scales[row * m->groups + column / MXFP4_BLOCK];
}

/* Of a code, 0 .. 15. */
IO_FN float mxfp4_value(int code)
{
    static const float value[16] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };
    return value[code & 15];
}

/* Of a scale's byte: 2^-127 .. 2^127, or NaN. */
IO_FN float mxfp4_power(int scale) { return scale == MXFP4_NAN ? NAN : ldexpf(1, scale - 127); }

IO_FN float mxfp4_at(const mxfp4 *m, int64_t row, int64_t column)
{
    return mxfp4_value(mxfp4_code(m, row, column)) * mxfp4_power(mxfp4_scale(m, row, column));
}

/* out[columns] = a row. */
IO_FN void mxfp4_row(const mxfp4 *m, int64_t row, float *out)
{
    const unsigned char *byte = m->blocks + row * m->groups * MXFP4_BYTES;
    for (int64_t g = 0; g < m->groups; g++) {
        const float power = mxfp4_power(m->scales[row * m->groups + g]);
        for (int i = 0; i < MXFP4_BYTES; i++, byte++) {
            *out++ = mxfp4_value(*byte & 15) * power;
            *out++ = mxfp4_value(*byte >> 4) * power;
        }
    }
}

/* out[columns] = a row's codes. */
IO_FN void mxfp4_codes(const mxfp4 *m, int64_t row, unsigned char *out)
{
    const unsigned char *byte = m->blocks + row * m->groups * MXFP4_BYTES;
    for (int64_t i = 0; i < m->groups * MXFP4_BYTES; i++) {
        *out++ = byte[i] & 15;
        *out++ = (unsigned char)(byte[i] >> 4);
    }
}

#endif /* IO_MXFP4_H */

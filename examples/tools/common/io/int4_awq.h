/* int4_awq.h - weights of four bits as AutoAWQ keeps them in checkpoints.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/int4_awq.h"
 *     const int4_awq_config said = { .version = "gemm", .bits = 4, .group_size = 128 };
 *     int_groups m;
 *     char why[IO_WHY];
 *     if (!int4_awq_open(st_find(&file, "x.qweight"), st_find(&file, "x.qzeros"), st_find(&file, "x.scales"), &said,
 *                        &m, why)) return puts(why), 2;
 *     int_groups_row(&m, 0, row);              // of the dense [outputs, inputs]
 *
 * | tensor  | type           | shape               | holds                          |
 * |---------|----------------|---------------------|--------------------------------|
 * | qweight | I32            | [inputs, outputs/8] | eight outputs in a word        |
 * | qzeros  | I32            | [groups, outputs/8] | the same of zeros, as they are |
 * | scales  | F16, BF16, F32 | [groups, outputs]   |                                |
 *
 * From the lowest four bits up a word holds the outputs 0 2 4 6 1 3 5 7 of its eight. w = (code - zero) * scale, all
 * three of the group that the input falls into: the first group_size inputs, the next, ..
 *
 * DOES: the layout of version "gemm", which is what AutoAWQ writes unless told otherwise.
 * DOES NOT: the layouts of "gemv", "gemv_fast", "marlin", "exllama" and others: refused by name. Other widths than four
 *     bits: AutoAWQ has none. A matrix without qzeros, whatever zero_point says: no writer of this layout leaves them
 *     out, and where zero_point is false the stored zeros are those that every reader uses.
 *
 * CONTENTS
 *     int4_awq_config           what config.json says
 *     int4_awq_open             three tensors, checked; then int_groups.h
 *
 * KNOWN FROM: AutoAWQ 0.2.9 (names, order in a word, shapes, divisibility, widths of its gemm module, configuration)
 *     and transformers' AwqConfig.
 */
#ifndef IO_INT4_AWQ_H
#define IO_INT4_AWQ_H

#include <strings.h>

#include "int_groups.h"

typedef struct int4_awq_config {
    const char *version;      /* NULL: not said, which is gemm; in any case of letters */
    int64_t bits, group_size; /* 0: not said; group_size -1: one group for a row */
} int4_awq_config;

enum { INT4_AWQ_BITS = 4, INT4_AWQ_WORD = INT_WORD / INT4_AWQ_BITS };

IO_FN bool int4_awq_readable(const st_tensor *qweight, const int4_awq_config *said, char *why)
{
    const char *name = qweight ? qweight->name : "AWQ";
    if (said->version && strcasecmp(said->version, "gemm") != 0)
        return io_fail(why, name, "config.json says AWQ's version '%.32s', another layout; only gemm is read",
                       said->version);
    if (said->bits != 0 && said->bits != INT4_AWQ_BITS)
        return io_fail(why, name, "config.json says AWQ with %lld bits; its layout is known for 4 alone",
                       (long long)said->bits);
    return true;
}

/* *m = the three. Data is taken along where the tensors have it. false with a sentence that names qweight. */
IO_FN bool int4_awq_open(const st_tensor *qweight, const st_tensor *qzeros, const st_tensor *scales,
                         const int4_awq_config *said, int_groups *m, char *why)
{
    static const unsigned char place[INT4_AWQ_WORD] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    memset(m, 0, sizeof *m);
    if (!int4_awq_readable(qweight, said, why) || !int_groups_tensor(NULL, qweight, "qweight", " I32 ", -1, -1, why))
        return false;
    const int64_t words = qweight->shape[1];
    m->columns = qweight->shape[0];
    m->rows = words * INT4_AWQ_WORD;
    if (!int_groups_tensor(qweight, scales, "scales", INT_GROUPS_SCALES, -1, m->rows, why)) return false;
    m->groups = scales->shape[0];
    if (!int_groups_tensor(qweight, qzeros, "qzeros", " I32 ", m->groups, words, why)) return false;
    int_words_set(&m->code, qweight, INT4_AWQ_BITS, true, 1);
    int_words_set(&m->zero, qzeros, INT4_AWQ_BITS, true, 1);
    m->code.place = m->zero.place = place;
    int_groups_scales(m, scales, 1, m->rows);
    return int_groups_size(qweight, m, said->group_size, why);
}

#endif /* IO_INT4_AWQ_H */

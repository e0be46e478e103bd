/* int4_gptq.h - weights of 2, 3, 4 or 8 bits as AutoGPTQ and GPTQModel keep them in checkpoints.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/int4_gptq.h"
 *     const int4_gptq_config said = { .checkpoint_format = "gptq", .bits = 4, .group_size = 128 };
 *     const int4_gptq_parts part = { st_find(&file, "x.qweight"), st_find(&file, "x.qzeros"),
 *                                    st_find(&file, "x.scales"), st_find(&file, "x.g_idx") };
 *     int_groups m;
 *     char why[IO_WHY];
 *     if (!int4_gptq_open(&part, &said, &m, why)) return puts(why), 2;
 *     int_groups_row(&m, 0, row);              // of the dense [outputs, inputs]
 *
 * | tensor  | type           | shape                       | holds                                         |
 * |---------|----------------|-----------------------------|-----------------------------------------------|
 * | qweight | I32            | [inputs * bits/32, outputs] | inputs that follow each other, low bits first |
 * | qzeros  | I32            | [groups, outputs * bits/32] | outputs that follow each other; see below     |
 * | scales  | F16, BF16, F32 | [groups, outputs]           |                                               |
 * | g_idx   | I32            | [inputs]                    | the group of each input; may be missing       |
 *
 * Sizes in words are rounded up. Numbers of 3 bits go on across words: 32 of them in three. w = (code - zero) * scale.
 *
 * checkpoint_format "gptq" (and none) stores each zero less one, "gptq_v2" as it is. TRAP: the largest number stored by
 * "gptq", 15 of four bits, means 16: so it is in the kernels that everybody runs (exllama's, vLLM's). Others begin
 * again at 0; int4_gptq_largest counts these, so that a program can say so. GPTQModel subtracts from whole words, where
 * a zero of 0 borrows from the next: int4_gptq_trusted refuses such a matrix where it is said to be the maker.
 *
 * DOES: any order of groups (desc_act), a last group that is shorter, symmetric ones without qzeros.
 * DOES NOT: the formats "marlin", "bitblas", "exllama", "gptq_p" and others: refused by name. Nor what contradicts
 *     itself, where readers differ: a g_idx out of order though desc_act is false; zeros that are not the middle though
 *     sym is true, as those of "gptq_v2" are where "gptq" is said.
 *
 * CONTENTS
 *     int4_gptq_parts, int4_gptq_config         the tensors; what config.json says
 *     int4_gptq_open                            checked; then int_groups.h
 *     int4_gptq_largest                         zeros on which readers differ
 *     int4_gptq_trusted                         not where GPTQModel wrote them
 *
 * KNOWN FROM: GPTQModel (names, shapes rounded up, both formats and the conversion between them, numbers of 3 bits) and
 *     AutoGPTQ's kernels (zeros that are stored less one, g_idx); exllama's and vLLM's kernels (the zero 16).
 */
#ifndef IO_INT4_GPTQ_H
#define IO_INT4_GPTQ_H

#include <strings.h>

#include "int_groups.h"

typedef struct int4_gptq_parts {
    const st_tensor *qweight, *qzeros, *scales, *g_idx; /* NULL: there is none */
} int4_gptq_parts;

typedef struct int4_gptq_config {
    const char *checkpoint_format; /* NULL: not said, which is "gptq" */
    int64_t bits, group_size;      /* group_size 0: not said; -1: one group for a row */
    int_groups_said desc_act, sym;
} int4_gptq_config;

/* ---- what config.json says ---- */

/* *less: what a stored zero lacks. */
IO_FN bool int4_gptq_readable(const char *name, const int4_gptq_config *said, int *less, char *why)
{
    const char *format = said->checkpoint_format ? said->checkpoint_format : "gptq";
    *less = strcasecmp(format, "gptq") == 0;
    if (!*less && strcasecmp(format, "gptq_v2") != 0)
        return io_fail(why, name, "config.json says checkpoint_format '%.32s'; gptq and gptq_v2 are read", format);
    const int64_t bits = said->bits;
    return bits == 2 || bits == 3 || bits == 4 || bits == 8 ||
           io_fail(why, name, "config.json says GPTQ with %lld bits; 2, 3, 4 and 8 are read", (long long)bits);
}

/* ---- zeros ---- */

typedef struct int4_gptq_tally {
    int64_t largest, other; /* zeros of the largest stored number; those that are not the middle */
} int4_gptq_tally;

IO_FN int4_gptq_tally int4_gptq_zeros(const int_groups *m)
{
    int4_gptq_tally n = { 0, 0 };
    const int top = 1 << m->code.bits, middle = top / 2;
    for (int64_t g = 0; g < m->groups && m->zero.words; g++)
        for (int64_t r = 0; r < m->rows; r++) {
            const int zero = int_groups_zero(m, r, g);
            n.largest += zero == top;
            n.other += zero != middle;
        }
    return n;
}

/* How many zeros are one more than a code can be. */
IO_FN int64_t int4_gptq_largest(const int_groups *m) { return int4_gptq_zeros(m).largest; }

IO_FN bool int4_gptq_open_zeros(const int4_gptq_parts *part, const int4_gptq_config *said, int less, int_groups *m,
                                char *why)
{
    const int bits = m->code.bits, middle = 1 << (bits - 1);
    if (!part->qzeros && said->sym == INT_GROUPS_TRUE) {
        m->zero_more = middle;
        return true;
    }
    if (!int_groups_tensor(part->qweight, part->qzeros, "qzeros", " I32 ", m->groups, int_words_for(m->rows, bits),
                           why))
        return false;
    int_words_set(&m->zero, part->qzeros, bits, true, 1);
    m->zero_more = less;
    const int64_t other = said->sym == INT_GROUPS_TRUE ? int4_gptq_zeros(m).other : 0;
    return other == 0 ||
           io_fail(
               why, part->qweight->name,
               "config.json says sym, so that zeros are %d, but %lld of them are not where checkpoint_format is '%s'",
               middle, (long long)other, less ? "gptq" : "gptq_v2");
}

/* Are zeros of the largest what they seem? Not where GPTQModel wrote them. `quantizer`: of config.json's "meta", as
 * "gptqmodel:1.4.2"; NULL where it does not say. */
IO_FN bool int4_gptq_trusted(const st_tensor *qweight, const int_groups *m, const char *quantizer, char *why)
{
    const bool its = quantizer && strncasecmp(quantizer, "gptqmodel", 9) == 0;
    const int64_t largest = its ? int4_gptq_largest(m) : 0;
    return largest == 0 ||
           io_fail(
               why, qweight->name,
               "GPTQModel stored zeros of 0 less one (%lld here), which changed those beside them; save it as gptq_v2",
               (long long)largest);
}

/* ---- groups ---- */

/* Of the group_size that is said, or of g_idx alone. A last group may be shorter here, so shapes alone leave the size
 * open. */
IO_FN bool int4_gptq_open_size(const int4_gptq_parts *part, const int4_gptq_config *said, int_groups *m, char *why)
{
    const st_tensor *first = part->qweight;
    if (said->group_size != 0 || m->groups == 1) return int_groups_size(first, m, said->group_size, why);
    m->group = m->columns;
    return part->g_idx ||
           io_fail(why, first->name,
                   "it has %lld groups of scales for %lld inputs, no g_idx, and config.json does not say "
                   "the group_size",
                   (long long)m->groups, (long long)m->columns);
}

IO_FN bool int4_gptq_open_groups(const int4_gptq_parts *part, const int4_gptq_config *said, int_groups *m, char *why)
{
    const st_tensor *first = part->qweight;
    if (!int4_gptq_open_size(part, said, m, why)) return false;
    if (!part->g_idx)
        return said->desc_act != INT_GROUPS_TRUE || m->groups == 1 ||
               io_fail(why, first->name, "it has no g_idx, and config.json says desc_act");
    if (!int_groups_order(first, m, part->g_idx, why)) return false;
    const bool plain = int_groups_plain(m), in_order = said->group_size ? plain : int_groups_rising(m);
    if (plain) m->order = NULL;
    return in_order || said->desc_act != INT_GROUPS_FALSE ||
           io_fail(why, first->name, "its g_idx puts inputs out of order, and config.json says that desc_act is false");
}

/* Inputs: as many as g_idx has, else as many as the words can hold. */
IO_FN bool int4_gptq_inputs(const int4_gptq_parts *part, int_groups *m, char *why)
{
    const st_tensor *first = part->qweight, *g = part->g_idx;
    const int64_t words = first->shape[0], bits = m->code.bits;
    m->columns =
        g && g->rank == 1 && g->shape[0] > 0 && g->shape[0] <= INT_GROUPS_AXIS ? g->shape[0] : words * INT_WORD / bits;
    return int_words_for(m->columns, (int)bits) == words ||
           io_fail(why, first->name, "it has %lld rows of words; %lld inputs of %lld bits take %lld", (long long)words,
                   (long long)m->columns, (long long)bits, (long long)int_words_for(m->columns, (int)bits));
}

/* *m = the four. Data is taken along where the tensors have it, and looked at where sym, desc_act and g_idx must
 * agree with it. false with a sentence that names qweight. */
IO_FN bool int4_gptq_open(const int4_gptq_parts *part, const int4_gptq_config *said, int_groups *m, char *why)
{
    int less;
    memset(m, 0, sizeof *m);
    if (!int4_gptq_readable(part->qweight ? part->qweight->name : "GPTQ", said, &less, why) ||
        !int_groups_tensor(NULL, part->qweight, "qweight", " I32 ", -1, -1, why))
        return false;
    m->rows = part->qweight->shape[1];
    int_words_set(&m->code, part->qweight, (int)said->bits, false, 0);
    if (!int4_gptq_inputs(part, m, why) ||
        !int_groups_tensor(part->qweight, part->scales, "scales", INT_GROUPS_SCALES, -1, m->rows, why))
        return false;
    m->groups = part->scales->shape[0];
    int_groups_scales(m, part->scales, 1, m->rows);
    return int4_gptq_open_groups(part, said, m, why) && int4_gptq_open_zeros(part, said, less, m, why);
}

#endif /* IO_INT4_GPTQ_H */

/* int4_packed.h - weights of 2 to 8 bits as compressed-tensors packs them ("pack-quantized").
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/int4_packed.h"
 *     const int4_packed_config said = { .strategy = "group", .num_bits = 4, .group_size = 128,
 *                                       .symmetric = INT_GROUPS_TRUE };
 *     const int4_packed_parts part = { .packed = st_find(&file, "x.weight_packed"),
 *                                      .scale = st_find(&file, "x.weight_scale"),
 *                                      .shape = st_find(&file, "x.weight_shape") };
 *     int_groups m;
 *     char why[IO_WHY];
 *     if (!int4_packed_open(&part, &said, &m, why)) return puts(why), 2;
 *     int_groups_row(&m, 0, row);              // of the dense [outputs, inputs]
 *
 * | tensor            | type           | shape               | holds                                                |
 * |-------------------|----------------|---------------------|------------------------------------------------------|
 * | weight_packed     | I32            | [outputs, inputs/8] | inputs that follow each other, low bits first        |
 * | weight_scale      | F16, BF16, F32 | [outputs, groups]   | [outputs, 1] of strategy channel; [1], [] of tensor  |
 * | weight_shape      | I64, I32       | [2]                 | outputs, inputs                                      |
 * | weight_zero_point | I32            | [outputs/8, groups] | outputs that follow each other; I8 [outputs, groups] |
 * | weight_g_idx      | I32            | [inputs]            | the group of each input; a -1 anywhere: as they come |
 *
 * The 8 is 32 / num_bits rounded down: no number goes on in the next word. Sizes are rounded up, and what follows the
 * last number is not looked at. A number is stored with 2^(num_bits - 1) added, a zero point in words, too: where both
 * have it, it cancels. w = (number - zero) * scale.
 *
 * DOES: the strategies tensor, channel, group and tensor_group; symmetric or not; any order of groups; zero points as
 *     bytes, which older versions wrote.
 * DOES NOT: other formats of compressed-tensors (marlin-24, int-quantized, nvfp4-pack-quantized, ..), types that are no
 *     integers, strategies of blocks or tokens, a global scale: refused by name.
 *
 * CONTENTS
 *     int4_packed_parts, int4_packed_config     the tensors; what config.json says
 *     int4_packed_open                          checked; then int_groups.h
 *
 * KNOWN FROM: compressed-tensors 0.12 (names, shapes, padding and offsets of its packing; what its dequantisation makes
 *     of g_idx and of scales of each shape).
 */
#ifndef IO_INT4_PACKED_H
#define IO_INT4_PACKED_H

#include "int_groups.h"

typedef struct int4_packed_parts {
    const st_tensor *packed, *scale, *shape;      /* weight_packed, weight_scale, weight_shape */
    const st_tensor *zero_point, *g_idx, *global; /* NULL: there is none */
} int4_packed_parts;

typedef struct int4_packed_config {       /* config_groups.*.weights, and its format */
    const char *format, *type, *strategy; /* NULL: not said: pack-quantized, int, by the shape of the scales */
    int64_t num_bits, group_size;         /* group_size 0: not said; -1: one group for a row */
    int_groups_said symmetric;            /* not said: true */
} int4_packed_config;

/* ---- what config.json says ---- */

IO_FN bool int4_packed_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(text, *list) == 0) return true;
    return false;
}

IO_FN bool int4_packed_readable(const int4_packed_parts *part, const int4_packed_config *said, char *why)
{
    static const char *const formats[] = { "pack-quantized", NULL }, *const types[] = { "int", NULL },
                             *const strategies[] = { "tensor", "channel", "group", "tensor_group", NULL };
    const struct {
        const char *member, *text;
        const char *const *known;
        const char *expected;
    } row[] = { { "format", said->format, formats, "pack-quantized is read" },
                { "type", said->type, types, "int is read" },
                { "strategy", said->strategy, strategies, "tensor, channel, group and tensor_group are read" } };
    const char *name = part->packed ? part->packed->name : "pack-quantized";
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].text && !int4_packed_one_of(row[i].text, row[i].known))
            return io_fail(why, name, "config.json says %s '%.32s' for it; %s", row[i].member, row[i].text,
                           row[i].expected);
    if (part->global)
        return io_fail(why, name, "it has the global scale %.128s; none is known here", part->global->name);
    return (said->num_bits >= 2 && said->num_bits <= 8) ||
           io_fail(why, name, "config.json says num_bits %lld; 2 to 8 are read", (long long)said->num_bits);
}

/* ---- shapes ---- */

IO_FN int64_t int4_packed_words(const int_groups *m, int64_t numbers)
{
    const int64_t share = INT_WORD / m->code.bits;
    return numbers / share + (numbers % share > 0);
}

IO_FN void int4_packed_set(int_words *w, const st_tensor *t, int bits, bool down)
{
    int_words_set(w, t, bits, down, down ? 0 : 1);
    w->whole = INT_WORD % bits ? INT_WORD / bits : 0;
}

/* m->columns, by weight_shape; while the file is not open, as many as there can be. */
IO_FN bool int4_packed_shape(const int4_packed_parts *part, int_groups *m, char *why)
{
    const st_tensor *s = part->shape, *first = part->packed;
    if (!s) return io_fail(why, first->name, "it has no weight_shape, which says how many inputs it has");
    const bool wide = strcmp(s->type, "I64") == 0;
    if ((!wide && strcmp(s->type, "I32") != 0) || s->rank != 1 || s->shape[0] != 2)
        return io_fail(why, first->name, "its weight_shape is %s %s; expected I64 or I32 [2]", s->type,
                       int_groups_shape(s).text);
    const unsigned char *at = (const unsigned char *)s->data;
    const int64_t rows = !at ? m->rows : wide ? (int64_t)io_little64(at) : (int32_t)io_little32(at);
    m->columns = !at    ? first->shape[1] * (INT_WORD / m->code.bits)
                 : wide ? (int64_t)io_little64(at + 8)
                        : (int32_t)io_little32(at + 4);
    const bool sizes = m->columns > 0 && m->columns <= INT_GROUPS_AXIS && rows == m->rows;
    return (sizes && int4_packed_words(m, m->columns) == first->shape[1]) ||
           io_fail(why, first->name, "its weight_shape is [%lld, %lld], which does not fit %s words of %d bits",
                   (long long)rows, (long long)m->columns, int_groups_shape(first).text, m->code.bits);
}

/* One scale for all, one for each row, or one for each group of it. */
IO_FN bool int4_packed_scales(const int4_packed_parts *part, const int4_packed_config *said, int_groups *m, char *why)
{
    const st_tensor *s = part->scale, *first = part->packed;
    const char *strategy = said->strategy ? said->strategy : "";
    const bool one = s && s->elements == 1, tensor = strcmp(strategy, "tensor") == 0;
    const bool whole = tensor || strcmp(strategy, "channel") == 0;
    st_tensor shaped = s ? *s : (st_tensor){ .rank = 0 };
    if (one) shaped.rank = 2, shaped.shape[0] = shaped.shape[1] = 1; /* [], [1] */
    if (!int_groups_tensor(first, s ? &shaped : NULL, "scales", INT_GROUPS_SCALES, one ? 1 : m->rows, whole ? 1 : -1,
                           why))
        return false;
    if (tensor && !one)
        return io_fail(why, first->name, "config.json says strategy tensor, but its scales are %s",
                       int_groups_shape(s).text);
    m->groups = shaped.shape[1];
    int_groups_scales(m, s, one ? 0 : m->groups, 1);
    return int_groups_size(first, m, whole ? -1 : said->group_size, why);
}

/* ---- zero points and the order of groups ---- */

IO_FN bool int4_packed_zeros(const int4_packed_parts *part, const int4_packed_config *said, int_groups *m, char *why)
{
    const st_tensor *z = part->zero_point;
    const int bits = m->code.bits;
    const bool bytes = z && strcmp(z->type, "I8") == 0;
    m->zero_more = 1 << (bits - 1);
    if (!z && said->symmetric != INT_GROUPS_FALSE) return true;
    if (z && said->symmetric == INT_GROUPS_TRUE && !bytes)
        return io_fail(why, part->packed->name, "it has zero points, and config.json says that it is symmetric");
    if (!int_groups_tensor(part->packed, z, "zero points", bytes ? " I8 " : " I32 ",
                           bytes ? m->rows : int4_packed_words(m, m->rows), m->groups, why))
        return false;
    if (bytes) {
        m->signed_zero = (const unsigned char *)z->data;
        return true;
    }
    int4_packed_set(&m->zero, z, bits, true);
    m->zero_more = 0;
    return true;
}

/* Is there an order of groups? A -1 in it says that nobody wrote one. */
IO_FN bool int4_packed_ordered(const st_tensor *g_idx)
{
    const unsigned char *at = g_idx ? (const unsigned char *)g_idx->data : NULL;
    if (!g_idx || strcmp(g_idx->type, "I32") != 0) return g_idx != NULL;
    for (int64_t c = 0; at && c < g_idx->elements; c++)
        if (io_little32(at + 4 * c) == UINT32_MAX) return false;
    return true;
}

/* *m = the tensors. Data is taken along where they have it; without that of weight_shape the columns are those of whole
 * words. false with a sentence that names weight_packed. */
IO_FN bool int4_packed_open(const int4_packed_parts *part, const int4_packed_config *said, int_groups *m, char *why)
{
    memset(m, 0, sizeof *m);
    if (!int4_packed_readable(part, said, why) ||
        !int_groups_tensor(NULL, part->packed, "weight_packed", " I32 ", -1, -1, why))
        return false;
    m->rows = part->packed->shape[0];
    int4_packed_set(&m->code, part->packed, (int)said->num_bits, false);
    return int4_packed_shape(part, m, why) && int4_packed_scales(part, said, m, why) &&
           int4_packed_zeros(part, said, m, why) &&
           (!int4_packed_ordered(part->g_idx) || int_groups_order(part->packed, m, part->g_idx, why));
}

#endif /* IO_INT4_PACKED_H */

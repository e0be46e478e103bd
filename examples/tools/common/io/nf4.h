/* nf4.h - weights of four bits as bitsandbytes keeps them in checkpoints: NF4 and its FP4, with a largest magnitude for
 * each block.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/nf4.h"
 *     const nf4_parts part = { .weight = st_find(&file, "x.weight"), .absmax = st_find(&file, "x.weight.absmax"),
 *                              .state = st_find(&file, "x.weight.quant_state.bitsandbytes__nf4") };
 *     nf4 m;
 *     char why[IO_WHY];
 *     if (!nf4_open(&part, &m, why)) return puts(why), 2;
 *     for (int64_t r = 0; r < m.rows; r++) nf4_row(&m, r, row); // m.columns numbers
 *
 * | tensor                               | type | shape             | holds                                         |
 * |--------------------------------------|------|-------------------|-----------------------------------------------|
 * | weight                               | any  | [bytes, 1]        | two codes to a byte, high half first          |
 * | weight.absmax                        | F32  | [blocks]          | the largest magnitude of a block;             |
 * |                                      | U8   |                   | codes of it ("nested", "double quantisation") |
 * | weight.quant_state.bitsandbytes__nf4 | U8   | [n]               | JSON: quant_type, blocksize, dtype, shape;    |
 * | (or .._fp4)                          |      |                   | nested_blocksize, nested_dtype, nested_offset |
 * | weight.quant_map                     | F32  | [16]              | the table of values; may be missing           |
 * | weight.nested_absmax                 | F32  | [blocks of those] | where absmax is U8                            |
 * | weight.nested_quant_map              | F32  | [256]             | where absmax is U8                            |
 *
 * Blocks count elements of the whole tensor, over the ends of rows; the last may be shorter. `bytes` are those of any
 * type (quant_storage).
 *
 * Roundings, all of them to the nearest of binary32, as bitsandbytes has them on every device:
 *     absmax = round(round(nested_quant_map[byte] * nested_absmax) + nested_offset)      where it is nested
 *     w      = round(table[code] * absmax)
 * It then rounds w to the dtype of the state; so does who makes BF16 of these rows, and gets the same. Nothing is
 * rounded to odd here: the rounding to binary32 belongs to the format.
 *
 * DOES: shapes of any rank; the table that the kernels have, against which quant_map is held.
 * DOES NOT: LLM.int8 (weight and SCB), codes that a kernel put into another order, a weight that was transposed ([1,
 *     bytes]), other tables: refused.
 *
 * CONTENTS
 *     nf4_parts, nf4, nf4_open          the tensors, checked; what they say
 *     nf4_code, nf4_absmax              of an element, of a block
 *     nf4_row                           one row as binary32
 *
 * KNOWN FROM: bitsandbytes 0.49 (QuantState's names and JSON, both tables, the order of halves, the arithmetic of its
 *     kernels and of its portable code); QLoRA, arXiv 2305.14314.
 */
#ifndef IO_NF4_H
#define IO_NF4_H

#include <math.h>

#include "safetensors.h"

enum { NF4_CODES = 16, NF4_BYTES = 256, NF4_LARGEST_BLOCK = 1 << 20 };

typedef struct nf4_parts {
    const st_tensor *weight, *absmax, *state;
    const st_tensor *quant_map, *nested_absmax, *nested_quant_map; /* NULL: there is none */
} nf4_parts;

typedef struct nf4 {
    int rank;
    int64_t shape[IO_MAX_RANK];
    int64_t rows, columns;      /* all axes but the last, and that */
    int64_t block, blocks;      /* elements of one, and how many there are */
    const float *table;         /* of 16 */
    const unsigned char *codes; /* NULL while the file is not open, as all that follows */
    const unsigned char *absmax;
    const unsigned char *nested, *map; /* NULL: absmax is F32 */
    int64_t nested_block;
    float offset;
} nf4;

/* ---- tables ---- */

/* NULL for a name that is none. */
IO_FN const float *nf4_table(const char *name)
{
    static const float normal[NF4_CODES] = { -1,
                                             -0.6961928009986877f,
                                             -0.5250730514526367f,
                                             -0.39491748809814453f,
                                             -0.28444138169288635f,
                                             -0.18477343022823334f,
                                             -0.09105003625154495f,
                                             0,
                                             0.07958029955625534f,
                                             0.16093020141124725f,
                                             0.24611230194568634f,
                                             0.33791524171829224f,
                                             0.44070982933044434f,
                                             0.5626170039176941f,
                                             0.7229568362236023f,
                                             1 };
    static const float floating[NF4_CODES] = { 0,          0.0625f / 12,  8.0f / 12,  1,
                                               4.0f / 12,  0.5f,          2.0f / 12,  0.25f,
                                               -0.0f,      -0.0625f / 12, -8.0f / 12, -1,
                                               -4.0f / 12, -0.5f,         -2.0f / 12, -0.25f };
    return strcmp(name, "nf4") == 0 ? normal : strcmp(name, "fp4") == 0 ? floating : NULL;
}

/* ---- the state ---- */

typedef struct nf4_reader {
    const char *name; /* of the weight */
    const st_tensor *state;
    char *why;
} nf4_reader;

/* A member that is there once. */
IO_FN bool nf4_member(const nf4_reader *r, const char *name, io_json *member)
{
    const io_json all = io_json_start((const char *)r->state->data, (size_t)r->state->elements);
    const int found = io_json_member(all, name, member);
    return found == 1 ||
           io_fail(r->why, r->name, "its quant_state %s %s", found ? "has a second" : "does not say", name);
}

IO_FN bool nf4_positive(const nf4_reader *r, const char *name, int64_t *number)
{
    io_json j;
    uint64_t n = 0;
    if (!nf4_member(r, name, &j)) return false;
    if (!io_json_whole(&j, &n) || n == 0 || n > NF4_LARGEST_BLOCK)
        return io_fail(r->why, r->name, "its quant_state says %s %s; expected 1 to %d", name, io_json_show(&j).text,
                       NF4_LARGEST_BLOCK);
    *number = (int64_t)n;
    return true;
}

/* One of the names in a list that ends with NULL; *which is its number. */
IO_FN bool nf4_one_of(const nf4_reader *r, const char *name, const char *const *list, int *which)
{
    io_json j;
    if (!nf4_member(r, name, &j)) return false;
    char *text = io_json_text(&j);
    for (*which = 0; text && list[*which] && strcmp(text, list[*which]) != 0;) ++*which;
    const bool known = text && list[*which];
    free(text);
    return known ||
           io_fail(r->why, r->name, "its quant_state says %s %s, which is not known here", name, io_json_show(&j).text);
}

IO_FN bool nf4_read_shape(const nf4_reader *r, nf4 *m)
{
    io_json j;
    uint64_t elements = 1;
    if (!nf4_member(r, "shape", &j)) return false;
    io_json list = io_json_list(&j);
    bool ok = true;
    while (ok && io_json_next(&list)) {
        uint64_t n = 0;
        ok = m->rank < IO_MAX_RANK && io_json_whole(&list, &n) && n > 0 && io_multiply(elements, n, &elements);
        if (ok) m->shape[m->rank++] = (int64_t)n;
    }
    if (!ok || list.wrong || m->rank == 0)
        return io_fail(r->why, r->name, "its quant_state says shape %s; expected 1 to %d positive numbers",
                       io_json_show(&j).text, IO_MAX_RANK);
    m->columns = m->shape[m->rank - 1];
    m->rows = (int64_t)elements / m->columns;
    return true;
}

IO_FN bool nf4_read_offset(const nf4_reader *r, nf4 *m)
{
    io_json j;
    if (!nf4_member(r, "nested_offset", &j)) return false;
    cJSON *item = io_json_value(&j, ST_MAX_VALUE);
    const bool ok = cJSON_IsNumber(item) && isfinite(item->valuedouble);
    if (ok) m->offset = (float)item->valuedouble;
    cJSON_Delete(item);
    return ok ||
           io_fail(r->why, r->name, "its quant_state says nested_offset %s; expected a number", io_json_show(&j).text);
}

IO_FN bool nf4_read_state(const nf4_reader *r, const char *absmax_type, nf4 *m)
{
    static const char *const kinds[] = { "nf4", "fp4", NULL }, *const single[] = { "float32", NULL },
                             *const floats[] = { "bfloat16", "float16", "float32", NULL };
    int kind, ignored;
    if (strcmp(r->state->type, "U8") != 0 || r->state->rank != 1)
        return io_fail(r->why, r->name, "its quant_state is %s of %d axes; expected the bytes of a text, U8 of one",
                       r->state->type, r->state->rank);
    if (!r->state->data) return io_fail(r->why, r->name, "its quant_state cannot be read: the file is not open");
    if (!nf4_one_of(r, "quant_type", kinds, &kind) || !nf4_one_of(r, "dtype", floats, &ignored) ||
        !nf4_positive(r, "blocksize", &m->block) || !nf4_read_shape(r, m))
        return false;
    m->table = nf4_table(kinds[kind]);
    return strcmp(absmax_type, "U8") != 0 ||
           (nf4_one_of(r, "nested_dtype", single, &ignored) && nf4_positive(r, "nested_blocksize", &m->nested_block) &&
            nf4_read_offset(r, m));
}

/* ---- the tensors ---- */

IO_FN float nf4_f32(const unsigned char *list, int64_t at) { return io_float(io_little32(list + 4 * at)); }

/* Is a list there, of this type and so many elements? */
IO_FN bool nf4_list(const nf4_parts *part, const st_tensor *t, const char *what, const char *type, int64_t elements,
                    char *why)
{
    const char *name = part->weight->name;
    if (!t) return io_fail(why, name, "it has no %s", what);
    if (strcmp(t->type, type) != 0 || t->elements != elements)
        return io_fail(why, name, "its %s has %lld elements of %s; expected %lld of %s", what, (long long)t->elements,
                       t->type, (long long)elements, type);
    return true;
}

/* bitsandbytes writes the table that its kernels have built in. */
IO_FN bool nf4_check_map(const nf4_parts *part, const nf4 *m, char *why)
{
    if (!part->quant_map) return true;
    if (!nf4_list(part, part->quant_map, "quant_map", "F32", NF4_CODES, why)) return false;
    const unsigned char *list = (const unsigned char *)part->quant_map->data;
    for (int i = 0; i < NF4_CODES && list; i++)
        if (!(fabsf(nf4_f32(list, i) - m->table[i]) <= 1e-6f))
            return io_fail(why, part->weight->name, "its quant_map has %g for code %d; the format's table has %g",
                           (double)nf4_f32(list, i), i, (double)m->table[i]);
    return true;
}

/* bytes / n rounded up. */
IO_FN int64_t nf4_share(int64_t elements, int64_t n) { return elements / n + (elements % n > 0); }

IO_FN bool nf4_open_weight(const nf4_parts *part, nf4 *m, char *why)
{
    const st_tensor *w = part->weight;
    const int64_t bytes = nf4_share(m->rows * m->columns, 2), held = w->elements * w->bits / 8;
    if (w->rank == 2 && w->shape[0] == 1 && w->shape[1] > 1)
        return io_fail(why, w->name, "it is [1, %lld], which is transposed; expected [.., 1]", (long long)w->shape[1]);
    m->codes = (const unsigned char *)w->data;
    return held == bytes || io_fail(why, w->name, "it holds %lld bytes; two codes to a byte make %lld of %lld elements",
                                    (long long)held, (long long)bytes, (long long)(m->rows * m->columns));
}

IO_FN bool nf4_open_nested(const nf4_parts *part, nf4 *m, char *why)
{
    const int64_t groups = nf4_share(m->blocks, m->nested_block);
    m->nested = (const unsigned char *)part->nested_absmax->data;
    if (!nf4_list(part, part->nested_absmax, "nested_absmax", "F32", groups, why) ||
        !nf4_list(part, part->nested_quant_map, "nested_quant_map", "F32", NF4_BYTES, why))
        return false;
    m->map = (const unsigned char *)part->nested_quant_map->data;
    return true;
}

/* *m = the tensors. That of the state must be there to be read; other data is taken along where the tensors have it.
 * false with a sentence that names the weight. */
IO_FN bool nf4_open(const nf4_parts *part, nf4 *m, char *why)
{
    memset(m, 0, sizeof *m);
    if (!part->weight) return io_fail(why, "bitsandbytes", "its weight is missing");
    const nf4_reader r = { part->weight->name, part->state, why };
    if (!part->state) return io_fail(why, r.name, "it has no quant_state");
    if (!part->absmax) return io_fail(why, r.name, "it has no absmax");
    const bool nested = strcmp(part->absmax->type, "U8") == 0;
    if (nested != (part->nested_absmax != NULL))
        return io_fail(why, r.name, "its absmax is %s, and it has %s nested_absmax", part->absmax->type,
                       nested ? "no" : "a");
    if (!nf4_read_state(&r, part->absmax->type, m) || !nf4_open_weight(part, m, why)) return false;
    m->blocks = nf4_share(m->rows * m->columns, m->block);
    m->absmax = (const unsigned char *)part->absmax->data;
    return nf4_list(part, part->absmax, "absmax", nested ? "U8" : "F32", m->blocks, why) &&
           (!nested || nf4_open_nested(part, m, why)) && nf4_check_map(part, m, why);
}

/* ---- elements ---- */

IO_FN int nf4_code(const nf4 *m, int64_t row, int64_t column)
{
    const int64_t at = row * m->columns + column;
    return at % 2 ? m->codes[at / 2] & 15 : m->codes[at / 2] >> 4;
}

/* Of a block. Each product and each sum is exact in binary64, or is rounded there by far less than by the cast, so that
 * each cast is the one rounding that binary32 would have made. */
IO_FN float nf4_absmax(const nf4 *m, int64_t block)
{
    if (!m->nested) return nf4_f32(m->absmax, block);
    const double value = (double)nf4_f32(m->map, m->absmax[block]);
    const float product = (float)(value * (double)nf4_f32(m->nested, block / m->nested_block));
    return (float)((double)product + (double)m->offset);
}

/* out[columns] = a row. */
IO_FN void nf4_row(const nf4 *m, int64_t row, float *out)
{
    const int64_t first = row * m->columns;
    for (int64_t c = 0, end; c < m->columns; c = end) {
        const int64_t left = m->block - (first + c) % m->block;
        const double absmax = (double)nf4_absmax(m, (first + c) / m->block);
        end = left < m->columns - c ? c + left : m->columns;
        for (; c < end; c++) out[c] = (float)((double)m->table[nf4_code(m, row, c)] * absmax);
    }
}

#endif /* IO_NF4_H */

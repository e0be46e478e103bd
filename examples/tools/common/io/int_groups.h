/* int_groups.h - small integers packed into words of 32 bits, and a scale for a group of them: what AWQ, GPTQ and
 * compressed-tensors have in common.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/int4_awq.h" // or int4_gptq.h, int4_packed.h: they open a matrix
 *     int_groups m;
 *     float row[8192];
 *     int16_t integer[8192];
 *     ...
 *     for (int64_t r = 0; r < m.rows && m.columns <= 8192; r++) int_groups_row(&m, r, row);
 *     int_groups_integers(&m, 0, integer);                             // the same row with its scales apart:
 *     row[0] == integer[0] * int_groups_scale(&m, 0, int_groups_of(&m, 0));
 *
 *     w[row][column] = (code - zero) * scale          zero and scale are those of (row, group of the column)
 *
 * rows are a layer's outputs and columns its inputs, whatever order the file has them in. A code has 2 to 8 bits and no
 * sign. code - zero is an integer of at most 9 bits, so its product with an FP16 or BF16 scale is exact in binary32;
 * with an FP32 scale it is rounded to odd (odd.h). A scale that is no number makes its group infinite or NaN.
 *
 * DOES: the words, zeros, scales and groups of one matrix that was opened; rows as binary32, or as integers and scales,
 *     which FP8 can keep as they are: 4 bits with a zero are -16 .. 15, all of them numbers of E4M3.
 * DOES NOT: know which tensors belong together, or what the words mean: the three rooms above do.
 *
 * CONTENTS
 *     int_words, int_words_at           numbers in words of 32 bits, packed along either axis
 *     int_groups                        a matrix
 *     int_groups_of, int_groups_code, int_groups_zero, int_groups_scale     of one element
 *     int_groups_integers, int_groups_row                                   of one row
 *     int_groups_said                   what a configuration says, and what it leaves open
 *     int_groups_tensor, int_groups_scales, int_groups_size, int_groups_order   checks, with sentences
 */
#ifndef IO_INT_GROUPS_H
#define IO_INT_GROUPS_H

#include <stdlib.h>

#include "odd.h"
#include "safetensors.h"

enum { INT_WORD = 32 };
#define INT_GROUPS_AXIS (INT64_C(1) << 44) /* no axis is longer, so that nothing here overflows */

/* What a member of config.json says that may be absent. */
typedef enum int_groups_said { INT_GROUPS_FALSE = -1, INT_GROUPS_UNSAID = 0, INT_GROUPS_TRUE = 1 } int_groups_said;

typedef struct int_words {
    const unsigned char *words;    /* little-endian, at any address; NULL while the file is not open */
    bool down;                     /* consecutive rows share a word; else consecutive columns */
    int bits;                      /* of a number */
    int whole;                     /* a word has so many and then unused bits; 0: numbers follow without a gap */
    const unsigned char *place;    /* of eight numbers, where in their word each is; NULL: in order, low bits first */
    int64_t next_word, next_other; /* from a word to the next along the packed axis, and along the other: in words */
} int_words;

typedef struct int_groups {
    int64_t rows, columns, groups;
    int64_t group;                    /* columns of a group; the last may have fewer */
    const unsigned char *order;       /* I32 [columns]: the group of each; NULL: as they come */
    int_words code;                   /* by row and column */
    int_words zero;                   /* by row and group; bits 0: there are none */
    const unsigned char *signed_zero; /* I8 [rows, groups], added to zero_more; or NULL */
    int zero_more;                    /* added to what is stored, or the zero itself */
    const unsigned char *scale;       /* NULL while the file is not open */
    trn_format scale_format;
    int64_t scale_row, scale_group; /* from one to the next, in elements */
} int_groups;

/* ---- elements ---- */

IO_FN int int_words_at(const int_words *w, int64_t row, int64_t column)
{
    int64_t along = w->down ? row : column;
    const int64_t other = w->down ? column : row;
    if (w->place) along = along / 8 * 8 + w->place[along % 8];
    const int64_t bit = w->whole ? along / w->whole * INT_WORD + along % w->whole * w->bits : along * w->bits;
    const unsigned char *at = w->words + 4 * (bit / INT_WORD * w->next_word + other * w->next_other);
    const int shift = (int)(bit % INT_WORD);
    uint64_t two = io_little32(at);
    if (shift + w->bits > INT_WORD) two |= (uint64_t)io_little32(at + 4 * w->next_word) << INT_WORD;
    return (int)(two >> shift & ((1u << w->bits) - 1));
}

/* The group that a column belongs to. */
IO_FN int64_t int_groups_of(const int_groups *m, int64_t column)
{
    return m->order ? (int64_t)io_little32(m->order + 4 * column) : column / m->group;
}

IO_FN int int_groups_code(const int_groups *m, int64_t row, int64_t column)
{
    return int_words_at(&m->code, row, column);
}

IO_FN int int_groups_zero(const int_groups *m, int64_t row, int64_t group)
{
    if (m->signed_zero) return m->zero_more + (signed char)m->signed_zero[row * m->groups + group];
    return m->zero_more + (m->zero.bits ? int_words_at(&m->zero, row, group) : 0);
}

IO_FN float int_groups_scale(const int_groups *m, int64_t row, int64_t group)
{
    const int bytes = trn_format_bits(m->scale_format) / 8;
    const unsigned char *at = m->scale + bytes * (row * m->scale_row + group * m->scale_group);
    return trn_decode(m->scale_format, (uint32_t)io_little(at, bytes));
}

/* ---- rows ---- */

/* The columns from `column` on that are of its group, up to the end or to the first that is not known to be. */
IO_FN int64_t int_groups_run(const int_groups *m, int64_t column)
{
    if (m->order) return 1;
    const int64_t left = m->group - column % m->group, all = m->columns - column;
    return left < all ? left : all;
}

/* out[columns] = code - zero, -256 .. 255. */
IO_FN void int_groups_integers(const int_groups *m, int64_t row, int16_t *out)
{
    for (int64_t c = 0, end; c < m->columns; c = end) {
        const int zero = int_groups_zero(m, row, int_groups_of(m, c));
        for (end = c + int_groups_run(m, c); c < end; c++) out[c] = (int16_t)(int_groups_code(m, row, c) - zero);
    }
}

/* out[columns] = a row. */
IO_FN void int_groups_row(const int_groups *m, int64_t row, float *out)
{
    for (int64_t c = 0, end; c < m->columns; c = end) {
        const int64_t group = int_groups_of(m, c);
        const int zero = int_groups_zero(m, row, group);
        const double scale = (double)int_groups_scale(m, row, group);
        for (end = c + int_groups_run(m, c); c < end; c++) out[c] = io_odd((int_groups_code(m, row, c) - zero) * scale);
    }
}

/* ---- checks: the first tensor of an open is the one that all sentences name ---- */

typedef struct int_groups_text { /* of a shape */
    char text[IO_MAX_RANK * 22];
} int_groups_text;

IO_FN int_groups_text int_groups_shape(const st_tensor *t)
{
    int_groups_text s = { "[" };
    for (int i = 0, n = 1; i <= t->rank; i++)
        n += i == t->rank
                 ? snprintf(s.text + n, sizeof s.text - (size_t)n, "]")
                 : snprintf(s.text + n, sizeof s.text - (size_t)n, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    return s;
}

/* Is it there, of one of these types (names with blanks around), and a matrix of a by b, if not negative? */
IO_FN bool int_groups_tensor(const st_tensor *first, const st_tensor *t, const char *what, const char *types, int64_t a,
                             int64_t b, char *why)
{
    if (!t) return io_fail(why, first ? first->name : "integers", "it has no %s", what);
    const char *name = first ? first->name : t->name;
    char padded[sizeof t->type + 2];
    snprintf(padded, sizeof padded, " %s ", t->type);
    if (!strstr(types, padded))
        return io_fail(why, name, "the type of its %s is %s; expected%.*s", what, t->type, (int)strlen(types) - 1,
                       types);
    bool fits = t->rank == 2;
    for (int i = 0; i < 2 && fits; i++) {
        const int64_t want = i ? b : a;
        fits = t->shape[i] > 0 && t->shape[i] <= INT_GROUPS_AXIS && (want < 0 || t->shape[i] == want);
    }
    char expected[64] = "a matrix with axes of 1 to 2^44";
    if (a >= 0 && b >= 0)
        snprintf(expected, sizeof expected, "[%lld, %lld]", (long long)a, (long long)b);
    else if (a >= 0)
        snprintf(expected, sizeof expected, "[%lld, ..]", (long long)a);
    else if (b >= 0)
        snprintf(expected, sizeof expected, "[.., %lld]", (long long)b);
    return fits ||
           io_fail(why, name, "the shape of its %s is %s; expected %s", what, int_groups_shape(t).text, expected);
}

/* m->code or m->zero. `axis` of the tensor is the one that is packed, and runs along the matrix's rows where `down`. */
IO_FN void int_words_set(int_words *w, const st_tensor *t, int bits, bool down, int axis)
{
    w->words = (const unsigned char *)t->data;
    w->bits = bits;
    w->down = down;
    w->next_word = axis == 0 ? t->shape[1] : 1;
    w->next_other = axis == 0 ? 1 : t->shape[1];
}

/* How many words hold so many numbers without a gap. */
IO_FN int64_t int_words_for(int64_t numbers, int bits) { return (numbers * bits + INT_WORD - 1) / INT_WORD; }

/* Scales of [groups, rows]. */
IO_FN void int_groups_scales(int_groups *m, const st_tensor *scales, int64_t next_row, int64_t next_group)
{
    m->scale = (const unsigned char *)scales->data;
    m->scale_format = scales->format;
    m->scale_row = next_row;
    m->scale_group = next_group;
}

#define INT_GROUPS_SCALES " F16 BF16 F32 "

/* m->group, of columns and groups, as config.json says it: -1 means one group for a row, 0 that nothing is said. Then
 * groups must divide the row. */
IO_FN bool int_groups_size(const st_tensor *first, int_groups *m, int64_t said, char *why)
{
    if (said < -1 || said > INT_GROUPS_AXIS)
        return io_fail(why, first->name, "config.json says group_size %lld; expected -1 or a positive number",
                       (long long)said);
    m->group = said > 0 ? said : said < 0 ? m->columns : m->columns / m->groups;
    if (said == 0 && (m->group == 0 || m->columns % m->groups))
        return io_fail(why, first->name,
                       "it has %lld groups of scales for %lld inputs, and config.json does not say the group_size",
                       (long long)m->groups, (long long)m->columns);
    if (m->columns / m->group + (m->columns % m->group > 0) != m->groups)
        return io_fail(why, first->name, "it has %lld groups of scales for %lld inputs; group_size %lld makes %lld",
                       (long long)m->groups, (long long)m->columns, (long long)said,
                       (long long)(m->columns / m->group + (m->columns % m->group > 0)));
    return true;
}

/* No group has more columns than its size. */
IO_FN bool int_groups_count(const st_tensor *first, const int_groups *m, int64_t *columns, char *why)
{
    for (int64_t c = 0; c < m->columns; c++) {
        const int32_t group = (int32_t)io_little32(m->order + 4 * c);
        if (group < 0 || group >= m->groups)
            return io_fail(why, first->name, "its g_idx puts input %lld into group %lld; there are %lld", (long long)c,
                           (long long)group, (long long)m->groups);
        if (++columns[group] > m->group)
            return io_fail(why, first->name, "its g_idx puts more than %lld inputs into group %lld",
                           (long long)m->group, (long long)group);
    }
    return true;
}

/* g_idx: I32 [columns]. Read where the file is open. */
IO_FN bool int_groups_order(const st_tensor *first, int_groups *m, const st_tensor *g_idx, char *why)
{
    if (strcmp(g_idx->type, "I32") != 0 || g_idx->rank != 1 || g_idx->shape[0] != m->columns)
        return io_fail(why, first->name, "its g_idx is %s %s; expected I32 [%lld], the group of each input",
                       g_idx->type, int_groups_shape(g_idx).text, (long long)m->columns);
    m->order = (const unsigned char *)g_idx->data;
    if (!m->order) return true;
    int64_t *columns = (int64_t *)calloc((size_t)m->groups, sizeof *columns);
    const bool ok = columns ? int_groups_count(first, m, columns, why)
                            : io_fail(why, first->name, "there is not enough memory for its groups");
    free(columns);
    return ok;
}

/* Does each group follow the one before it? */
IO_FN bool int_groups_rising(const int_groups *m)
{
    for (int64_t c = 1; c < m->columns && m->order; c++)
        if (int_groups_of(m, c) < int_groups_of(m, c - 1)) return false;
    return true;
}

/* Does g_idx say no more than columns and the size of groups do? */
IO_FN bool int_groups_plain(const int_groups *m)
{
    for (int64_t c = 0; c < m->columns && m->order; c++)
        if (int_groups_of(m, c) != c / m->group) return false;
    return true;
}

#endif /* IO_INT_GROUPS_H */

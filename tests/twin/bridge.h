/* bridge.h - the one file that knows both sides: random views of memory for trnmath, the same problem for the twin.
 * SPDX-License-Identifier: MIT
 *
 * A matrix here is a trn_tensor in memory of its own, between canaries, in one of several layouts. After a call the
 * whole memory is compared, not only the elements: what a result may not touch is checked as well as what it must.
 */
#ifndef BRIDGE_H
#define BRIDGE_H

#include "trnmath/trn_numerics.h"
#include "trnmath/trn_tensor.h"
#include "twin/cases.h"
#include "twin/twin_matmul.h"

/* ---- formats and modes, in the twin's numbering ---- */

static inline trn_format bridge_format(int f)
{
    static const trn_format format[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16 };
    return format[f];
}

static inline trn_rounding bridge_rounding(twin_mode mode)
{
    static const trn_rounding rounding[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                       TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };
    return rounding[mode];
}

static inline twin_numerics bridge_numerics(const trn_numerics *n)
{
    twin_numerics t = twin_numerics_default();
    if (!n) return t;
    if (n->chains) t.chains = n->chains;
    if (n->k_tile) t.k_tile = n->k_tile;
    t.blocked = n->chain_layout == TRN_CHAINS_BLOCKED;
    t.pairwise = n->merge == TRN_MERGE_PAIRWISE;
    t.product_bf16 = n->product == TRN_PRODUCT_BF16;
    if (n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO) t.adder = TWIN_ADDER_TOWARD_ZERO;
    if (n->accumulator == TRN_ACCUMULATOR_EXACT) t.adder = TWIN_ADDER_EXACT;
    if (n->accumulator_bits) t.adder_bits = n->accumulator_bits;
    t.split = n->fp32_mode == TRN_FP32_SPLIT;
    t.tf32_truncate = n->tf32_input == TRN_TF32_TRUNCATE;
    t.flush_inputs = n->flush_inputs;
    t.flush_products = n->flush_products;
    t.flush_sums = n->flush_sums;
    t.psum_bf16 = n->psum_format == TRN_BF16;
    t.psum_stochastic = n->psum_rounding == TRN_STOCHASTIC;
    if (n->sr_bits) t.sr_bits = n->sr_bits;
    return t;
}

/* ---- matrices in memory ---- */

typedef enum bridge_layout {
    BRIDGE_PACKED,         /* strides left at zero */
    BRIDGE_ROWS,           /* the same, written out */
    BRIDGE_PADDED,         /* gaps between rows */
    BRIDGE_TRANSPOSED,     /* columns are contiguous */
    BRIDGE_TRANSPOSED_GAP, /* and have gaps between them */
    BRIDGE_STRIDED,        /* gaps between elements */
    BRIDGE_OUTPUTS,        /* the layouts from here on repeat elements: inputs only */
    BRIDGE_ONE_ROW = BRIDGE_OUTPUTS,
    BRIDGE_ONE_COLUMN,
    BRIDGE_LAYOUTS
} bridge_layout;

enum { BRIDGE_MARGIN = 64, BRIDGE_FILL = 0xa5 };

typedef struct bridge_matrix {
    unsigned char *memory; /* margin, matrix, margin */
    size_t bytes;
    trn_tensor view;
    int64_t row, column; /* the strides that are meant */
} bridge_matrix;

static inline bridge_matrix bridge_make(int format, int rows, int columns, bridge_layout layout, uint64_t *rng)
{
    bridge_matrix m;
    const int gap = 1 + cases_below(rng, 7);
    m.row = columns;
    m.column = 1;
    switch (layout) {
    case BRIDGE_PADDED: m.row = columns + gap; break;
    case BRIDGE_TRANSPOSED: m.row = 1, m.column = rows; break;
    case BRIDGE_TRANSPOSED_GAP: m.row = 1, m.column = rows + gap; break;
    case BRIDGE_STRIDED: m.column = 1 + gap, m.row = (1 + gap) * (int64_t)columns + gap; break;
    case BRIDGE_ONE_ROW: m.row = 0; break;
    case BRIDGE_ONE_COLUMN: m.row = 1, m.column = 0; break;
    case BRIDGE_PACKED:
    case BRIDGE_ROWS:
    case BRIDGE_LAYOUTS:
    default: break;
    }
    if (m.column == 0 && layout != BRIDGE_ONE_COLUMN) m.column = 1; /* an empty matrix is no broadcast */
    if (m.row == 0 && layout != BRIDGE_ONE_ROW) m.row = 1;
    const size_t size = (size_t)(twin_formats[format].bits / 8), shift = (size_t)cases_below(rng, 8) * size;
    const int64_t last = rows && columns ? (rows - 1) * m.row + (columns - 1) * m.column + 1 : 0;
    m.bytes = 2 * BRIDGE_MARGIN + shift + (size_t)last * size;
    m.memory = (unsigned char *)malloc(m.bytes);
    if (!m.memory) abort();
    memset(m.memory, BRIDGE_FILL, m.bytes);
    m.view = trn_tensor_2d(bridge_format(format), last ? m.memory + BRIDGE_MARGIN + shift : NULL, rows, columns);
    if (layout != BRIDGE_PACKED) {
        m.view.stride[0] = m.row;
        m.view.stride[1] = m.column;
    }
    return m;
}

static inline void *bridge_at(const bridge_matrix *m, int i, int j)
{
    return (unsigned char *)m->view.data + (size_t)(i * m->row + j * m->column) * trn_format_bytes(m->view.format);
}

static inline uint32_t bridge_get(const bridge_matrix *m, int i, int j)
{
    uint32_t word = 0;
    memcpy(&word, bridge_at(m, i, j), trn_format_bytes(m->view.format)); /* little-endian */
    return word;
}

static inline void bridge_put(const bridge_matrix *m, int i, int j, uint32_t code)
{
    memcpy(bridge_at(m, i, j), &code, trn_format_bytes(m->view.format));
}

/* ---- values ---- */

typedef enum bridge_values {
    BRIDGE_NEAR_ONE,
    BRIDGE_INTEGERS,  /* sums are exact: any order gives one answer */
    BRIDGE_WIDE,      /* exponents over 60 binades */
    BRIDGE_ANYTHING,  /* every finite exponent */
    BRIDGE_TINY,      /* products around 2^-126 and 2^-149: subnormals, underflow to both zeros */
    BRIDGE_HUGE,      /* products and sums around 2^128 */
    BRIDGE_ZEROS,     /* many zeros of both signs */
    BRIDGE_SPECIAL,   /* some infinities and NaN */
    BRIDGE_UNDERFLOW, /* the smallest BF16 and F16: their product is below what binary32 can hold */
    BRIDGE_CANCEL,    /* large terms of both signs that nearly cancel */
    BRIDGE_VALUES
} bridge_values;

static inline uint32_t bridge_value(bridge_values kind, uint64_t *rng)
{
    static const uint32_t special[] = { 0x7f800000, 0x7fc00000, 0x7f800001, 0x7fffffff, 0x7f7fffff, 0x00000001 };
    const uint32_t r = cases_u32(rng), sign = cases_u32(rng) & 0x80000000u, mantissa = r & 0x7fffffu,
                   pick = cases_u32(rng) >> 8;
    switch (kind) {
    case BRIDGE_INTEGERS: return cases_bits_of((float)((int)(pick % 17u) - 8));
    case BRIDGE_WIDE: return sign | (97u + pick % 60u) << 23 | mantissa;
    case BRIDGE_ANYTHING: return sign | (pick % 255u) << 23 | mantissa;
    case BRIDGE_TINY: return sign | (52u + pick % 14u) << 23 | mantissa;
    case BRIDGE_HUGE: return sign | (186u + pick % 8u) << 23 | mantissa;
    case BRIDGE_ZEROS: return pick % 3u ? sign : sign | (60u + pick % 5u) << 23 | mantissa;
    case BRIDGE_SPECIAL: return sign | (pick % 40u ? 127u << 23 | mantissa : special[r % 6u]);
    case BRIDGE_UNDERFLOW: return sign | (52u + pick % 4u) << 23 | mantissa;
    case BRIDGE_CANCEL: return sign | (pick % 4u ? 150u : 127u) << 23 | (mantissa & 0x700000u);
    case BRIDGE_NEAR_ONE:
    case BRIDGE_VALUES:
    default: return sign | (124u + pick % 6u) << 23 | mantissa;
    }
}

/* F16 has a narrow range of its own: its subnormals and its largest numbers are asked for directly. */
static inline uint32_t bridge_code(int format, bridge_values kind, uint64_t *rng)
{
    if (format == TWIN_F16 && (kind == BRIDGE_TINY || kind == BRIDGE_HUGE || kind == BRIDGE_ANYTHING)) {
        const uint32_t r = cases_u32(rng), sign = r >> 16 & 0x8000u, mantissa = r & 0x3ffu, pick = cases_u32(rng) >> 8;
        if (kind == BRIDGE_TINY) return sign | (pick % 3u) << 10 | mantissa;
        if (kind == BRIDGE_HUGE) return sign | (26u + pick % 5u) << 10 | mantissa;
        return sign | (pick % 31u) << 10 | mantissa;
    }
    if (kind == BRIDGE_UNDERFLOW && (format == TWIN_BF16 || format == TWIN_F16)) {
        const uint32_t r = cases_u32(rng), sign = r >> 16 & 0x8000u;
        return sign | (format == TWIN_BF16 ? r & 0x3ffu : r & 0xfffu); /* up to 2^-119, and up to 2^-11 */
    }
    if (format == TWIN_BF16 && kind == BRIDGE_TINY && cases_one_in(rng, 4))
        return cases_u32(rng) & 0x80ffu; /* its subnormals */
    const uint32_t u = bridge_value(kind, rng);
    if (format == TWIN_F32) return u;
    const twin_number x = twin_from_f32(u);
    return twin_encode(&twin_formats[format], &x, twin_plain(TWIN_NEAREST_EVEN));
}

static inline void bridge_fill(const bridge_matrix *m, int format, int rows, int columns, bridge_values kind,
                               uint64_t *rng)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) bridge_put(m, i, j, bridge_code(format, kind, rng));
}

/* TF32 containers whose low 13 bits are not zero: what .tf32_input is about. */
static inline void bridge_dirty_tf32(const bridge_matrix *m, int rows, int columns, uint64_t *rng)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            if (cases_one_in(rng, 2)) bridge_put(m, i, j, bridge_get(m, i, j) | (cases_u32(rng) & 0x1fffu));
}

/* The codes in row order, as the twin wants them. */
static inline uint32_t *bridge_codes(const bridge_matrix *m, int rows, int columns)
{
    uint32_t *code = (uint32_t *)malloc(sizeof(uint32_t) * ((size_t)rows * (size_t)columns + 1));
    if (!code) abort();
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) code[(size_t)i * (size_t)columns + (size_t)j] = bridge_get(m, i, j);
    return code;
}

static inline unsigned char *bridge_copy(const unsigned char *memory, size_t bytes)
{
    unsigned char *copy = (unsigned char *)malloc(bytes);
    if (!copy) abort();
    return (unsigned char *)memcpy(copy, memory, bytes);
}

#endif /* BRIDGE_H */

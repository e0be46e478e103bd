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
    static const trn_format format[TWIN_FORMATS + 1] = { TRN_F32,     TRN_TF32,      TRN_BF16,    TRN_F16,
                                                         TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4,
                                                         TRN_F8_E8M0, TRN_F6_E2M3,   TRN_F6_E3M2, TRN_F4_E2M1,
                                                         TRN_I8,      TRN_U8,        TRN_I16,     TRN_U16,
                                                         TRN_I32,     TRN_U32,       TRN_CFP8 };
    return format[f];
}

static inline size_t bridge_bytes(int f) { return (size_t)(twin_formats[f].bits + 7) / 8; }

/* A configurable FP8, on both sides. */
static inline twin_format bridge_cfp8(int exponent_bits, int bias, bool no_infinity)
{
    twin_format f = twin_formats[TWIN_CFP8];
    f.e = exponent_bits;
    f.m = 7 - exponent_bits;
    f.bias = bias;
    f.beyond = no_infinity ? TWIN_HAS_ONE_NAN : TWIN_HAS_INFINITY;
    return f;
}

/* Zeros stand for 4 exponent bits and a bias of 7. */
static inline trn_cfp8 bridge_descriptor(const twin_format *f)
{
    const trn_cfp8 c = { f->e, f->bias, f->beyond == TWIN_HAS_ONE_NAN };
    const trn_cfp8 unset = { 0, 0, false };
    return f->name ? c : unset;
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
    t.group_exact = n->group == TRN_GROUP_EXACT;
    t.split = n->fp32_mode == TRN_FP32_SPLIT;
    t.fp32r = n->fp32_mode == TRN_FP32_R;
    t.int32_saturates = n->int32_overflow == TRN_INT32_SATURATE;
    t.fp8_bias = n->fp8_bias;
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
    const size_t size = bridge_bytes(format), shift = (size_t)cases_below(rng, 8) * size;
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
static inline uint32_t bridge_code_f16(bridge_values kind, uint64_t *rng)
{
    const uint32_t r = cases_u32(rng), sign = r >> 16 & 0x8000u, mantissa = r & 0x3ffu, pick = cases_u32(rng) >> 8;
    if (kind == BRIDGE_TINY) return sign | (pick % 3u) << 10 | mantissa;
    if (kind == BRIDGE_HUGE) return sign | (26u + pick % 5u) << 10 | mantissa;
    return sign | (pick % 31u) << 10 | mantissa;
}

/* Formats of a byte and less have few codes: the smallest, the largest, the specials and all of them, by code. */
static inline uint32_t bridge_code_narrow(const twin_format *f, bridge_values kind, uint64_t *rng)
{
    const uint32_t r = cases_u32(rng) >> 8, most = twin_max_code(f), all = twin_ones(f->e + f->m),
                   sign = cases_one_in(rng, 2) ? 1u << (f->e + f->m) : 0u;
    switch (kind) {
    case BRIDGE_TINY: return sign | r % (2u << f->m);
    case BRIDGE_UNDERFLOW: return sign | r % 3u;
    case BRIDGE_HUGE: return sign | (most - r % (2u << f->m));
    case BRIDGE_SPECIAL: return sign | (most < all && cases_one_in(rng, 40) ? most + 1 + r % (all - most) : r % most);
    case BRIDGE_ZEROS: return r % 3u ? sign : sign | r / 3u % (most + 1);
    case BRIDGE_WIDE:
    case BRIDGE_ANYTHING: return sign | r % (most + 1);
    default: {
        const twin_number x = twin_from_f32(bridge_value(kind, rng));
        return twin_encode(f, &x, twin_plain(TWIN_TOWARD_ZERO));
    }
    }
}

static inline uint32_t bridge_code_integer(const twin_format *f, bridge_values kind, uint64_t *rng)
{
    const uint32_t r = cases_u32(rng), largest = twin_ones(f->bits - 1), near = r % 64u;
    switch (kind) {
    case BRIDGE_NEAR_ONE:
    case BRIDGE_INTEGERS: return (r % 17u - 8u) & twin_ones(f->bits);
    case BRIDGE_ZEROS: return r % 3u ? 0u : r >> 8 & twin_ones(f->bits);
    case BRIDGE_HUGE: return r & 0x80000000u ? largest - near : largest + 1u + near;
    default: return cases_u32(rng) & twin_ones(f->bits);
    }
}

/* The power of two of a block: around 1, or anywhere, with 2^-127 (00), 2^127 (fe) and NaN (ff) where they belong. */
static inline uint32_t bridge_code_scale(bridge_values kind, uint64_t *rng)
{
    const uint32_t r = cases_u32(rng) >> 8;
    switch (kind) {
    case BRIDGE_WIDE: return 64u + r % 128u;
    case BRIDGE_ANYTHING: return r % 255u;
    case BRIDGE_TINY: return 40u + r % 24u; /* sums of 2^-126 and below */
    case BRIDGE_UNDERFLOW: return r % 3u ? r % 64u : 0u;
    case BRIDGE_HUGE: return r % 5u ? 180u + r % 75u : 254u;
    case BRIDGE_SPECIAL: return r % 50u ? 120u + r % 16u : r % 100u ? 0u : 255u;
    default: return 120u + r % 16u;
    }
}

static inline uint32_t bridge_code(int format, bridge_values kind, uint64_t *rng)
{
    const twin_format *f = &twin_formats[format];
    if (format == TWIN_E8M0) return bridge_code_scale(kind, rng);
    if (f->sort == TWIN_SORT_INTEGER) return bridge_code_integer(f, kind, rng);
    if (f->bits <= 8) return bridge_code_narrow(f, kind, rng);
    if (format == TWIN_F16 && (kind == BRIDGE_TINY || kind == BRIDGE_HUGE || kind == BRIDGE_ANYTHING))
        return bridge_code_f16(kind, rng);
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

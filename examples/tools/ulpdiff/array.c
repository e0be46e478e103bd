/* array.c - an array as numbers and as codes in their order, whatever its type.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

/* ---- opening ---- */

static const struct {
    const char *type;
    ud_kind kind;
    size_t item;
} wide[] = { { "F64", UD_F64, 8 }, { "I64", UD_I64, 8 }, { "U64", UD_U64, 8 }, { "BOOL", UD_BOOL, 1 } };

static bool take_kind(const io_array *from, ud_array *to)
{
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (strcmp(from->type, wide[i].type) == 0) {
            to->kind = wide[i].kind;
            to->item = wide[i].item;
            return true;
        }
    if (from->format == TRN_FORMAT_UNSET || from->format == TRN_CFP8) return false;
    to->kind = from->bits < 8 ? UD_SUB_BYTE : UD_CODES;
    to->item = to->kind == UD_CODES ? trn_format_bytes(from->format) : 0;
    return true;
}

static void copy_strided(const io_array *from, size_t item, unsigned char *to)
{
    int64_t at[IO_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < from->elements; i++) {
        int64_t offset = 0;
        for (int k = 0; k < from->rank; k++) offset += at[k] * from->stride[k];
        memcpy(to + (size_t)i * item, (const unsigned char *)from->data + (size_t)offset * item, item);
        for (int k = from->rank - 1; k >= 0 && ++at[k] == from->shape[k]; k--) at[k] = 0;
    }
}

/* Rows and columns; a vector is folded into rows of a length that a picture of it likes. */
static void lay_out(ud_array *a)
{
    a->columns = a->rank ? a->shape[a->rank - 1] : 1;
    if (a->columns < 1) a->columns = 1;
    a->rows = a->elements / a->columns;
    if (a->rows > 1 || a->elements <= UD_HEAT_COLUMNS) return;
    a->columns = UD_HEAT_COLUMNS;
    while (a->columns * a->columns < a->elements) a->columns *= 2;
    a->rows = (a->elements + a->columns - 1) / a->columns;
}

bool ud_array_open(const char *file, const io_array *from, ud_array *to, char *why)
{
    memset(to, 0, sizeof *to);
    snprintf(to->name, sizeof to->name, from->name[0] ? "%s: %s" : "%s", file, from->name);
    if (!take_kind(from, to))
        return app_fail(why, "%.200s: its type %s is not one that has ulps", to->name, from->type);
    memcpy(to->type, from->type, sizeof to->type);
    to->format = from->format;
    to->rank = from->rank;
    memcpy(to->shape, from->shape, sizeof to->shape);
    to->elements = from->elements;
    to->data = from->data;
    to->source = *from;
    lay_out(to);
    if (to->kind == UD_SUB_BYTE || io_array_packed(from)) return true;
    to->block = app_memory((size_t)from->elements, to->item);
    copy_strided(from, to->item, to->block);
    to->data = to->block;
    return true;
}

void ud_array_close(ud_array *a)
{
    free(a->block);
    a->block = NULL;
}

bool ud_has_floats(const ud_array *a) { return a->kind == UD_CODES && ud_is_float(a->format); }

const char *ud_shape(const ud_array *a, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < a->rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? ", " : "", a->shape[i]);
    if (at < size) snprintf(text + at, size - at, "]");
    return text;
}

const char *ud_index(const ud_array *a, int64_t i, char *text, size_t size)
{
    int64_t at[IO_MAX_RANK];
    size_t used = (size_t)snprintf(text, size, "[");
    for (int k = a->rank - 1; k >= 0; k--) {
        at[k] = i % a->shape[k];
        i /= a->shape[k];
    }
    for (int k = 0; k < a->rank && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, k ? ", " : "", at[k]);
    if (used < size) snprintf(text + used, size - used, "]");
    return text;
}

/* ---- numbers ---- */

static void values_of_codes(const ud_array *a, int64_t first, int n, double *out)
{
    float x[UD_BLOCK];
    trn_convert_args args = { .dst = trn_tensor_1d(TRN_F32, x, n),
                              .src =
                                  trn_tensor_1d(a->format, (void *)(uintptr_t)(a->data + (size_t)first * a->item), n) };
    if (trn_convert(&args) != TRN_OK) abort(); /* every format reads into binary32 */
    for (int i = 0; i < n; i++) out[i] = (double)x[i];
}

static void values_of_words(const ud_array *a, int64_t first, int n, double *out)
{
    const unsigned char *at = a->data + (size_t)first * a->item;
    for (int i = 0; i < n; i++, at += a->item) {
        int64_t word = 0;
        memcpy(&word, at, a->item);
        out[i] = a->kind == UD_U64 ? (double)(uint64_t)word : a->kind == UD_BOOL ? word != 0 : (double)word;
    }
}

static void values_of_words32(const ud_array *a, int64_t first, int n, double *out)
{
    for (int i = 0; i < n; i++) { /* binary32 would round them */
        uint32_t word;
        memcpy(&word, a->data + 4 * ((size_t)first + (size_t)i), sizeof word);
        out[i] = a->format == TRN_I32 ? (double)(int32_t)word : (double)word;
    }
}

void ud_values(const ud_array *a, int64_t first, int n, double *out)
{
    char why[IO_WHY];
    if (a->kind == UD_F64)
        memcpy(out, a->data + 8 * (size_t)first, 8 * (size_t)n);
    else if (a->kind == UD_SUB_BYTE) {
        float x[UD_BLOCK] = { 0 };
        (void)io_array_f32(&a->source, first, n, x, why); /* every format reads */
        for (int i = 0; i < n; i++) out[i] = (double)x[i];
    } else if (a->kind != UD_CODES)
        values_of_words(a, first, n, out);
    else if (a->format == TRN_I32 || a->format == TRN_U32)
        values_of_words32(a, first, n, out);
    else
        values_of_codes(a, first, n, out);
}

float *ud_read_floats(const ud_array *a)
{
    float *out = app_memory((size_t)a->elements, sizeof *out);
    double x[UD_BLOCK];
    for (int64_t at = 0; at < a->elements; at += UD_BLOCK) {
        const int n = a->elements - at < UD_BLOCK ? (int)(a->elements - at) : UD_BLOCK;
        ud_values(a, at, n, x);
        for (int i = 0; i < n; i++) out[at + i] = (float)x[i];
    }
    return out;
}

/* ---- units ---- */

const char *ud_unit_name(const ud_unit *unit)
{
    static const char *const name[] = { "", "float64", "int64", "uint64", "bool", "" };
    return unit->kind == UD_CODES ? trn_format_name(unit->format) : name[unit->kind];
}

bool ud_unit_from_name(const char *name, ud_unit *unit)
{
    memset(unit, 0, sizeof *unit);
    unit->format = TRN_FORMAT_UNSET;
    trn_format_read(&unit->format, name, NULL);
    if (strcmp(name, "float64") == 0 || strcmp(name, "F64") == 0) unit->kind = UD_F64;
    return unit->kind == UD_F64 || (unit->format != TRN_FORMAT_UNSET && unit->format != TRN_CFP8);
}

ud_unit ud_unit_of(const ud_array *a)
{
    ud_unit unit = { a->kind == UD_SUB_BYTE ? UD_CODES : a->kind, a->format, false };
    return unit;
}

int ud_unit_significand(const ud_unit *unit)
{
    if (unit->kind != UD_CODES) return unit->kind == UD_F64 ? 53 : unit->kind == UD_BOOL ? 1 : 64;
    const trn_format_info *f = trn_format_info_of(unit->format);
    return f->exponent_bits > 0 ? f->mantissa_bits + 1 : f->bits;
}

double ud_last_place(const ud_unit *unit, double x)
{
    const trn_format_info *f = trn_format_info_of(unit->format);
    const bool f64 = unit->kind == UD_F64;
    if (!f64 && (unit->kind != UD_CODES || f->exponent_bits == 0)) return 1;
    const int mantissa = f64 ? 52 : f->mantissa_bits, least = f64 ? -1022 : 1 - f->bias;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023, e = (exponent > least ? exponent : least) - mantissa;
    if (e < -1022) return ldexp(1, e);
    const uint64_t power = (uint64_t)(e + 1023) << 52; /* this is called for every element: no call of libm */
    double place;
    memcpy(&place, &power, sizeof place);
    return place;
}

/* ---- codes in their order ---- */

/* Sign and magnitude in the low `bits` bits. */
static int64_t order_signed_magnitude(uint64_t code, int bits)
{
    const int64_t magnitude = (int64_t)(code & ((UINT64_C(1) << (bits - 1)) - 1)),
                  negative = -(int64_t)(code >> (bits - 1) & 1);
    return (magnitude ^ negative) - negative;
}

/* One loop for each size and class of codes: what is decided once stays out of them. */
#define ORDER(name, code_t, what)                                                                                      \
    static void name(const unsigned char *at, int bits, int zeros, int n, int64_t *out)                                \
    {                                                                                                                  \
        (void)bits;                                                                                                    \
        (void)zeros;                                                                                                   \
        for (int i = 0; i < n; i++) {                                                                                  \
            code_t code;                                                                                               \
            memcpy(&code, at + sizeof code * (size_t)i, sizeof code);                                                  \
            out[i] = what;                                                                                             \
        }                                                                                                              \
    }
ORDER(order_float1, uint8_t, order_signed_magnitude(code, bits))
ORDER(order_float2, uint16_t, order_signed_magnitude(code, 16))
ORDER(order_float4, uint32_t, order_signed_magnitude(code >> zeros, 32 - zeros))
ORDER(order_signed1, int8_t, code)
ORDER(order_signed2, int16_t, code)
ORDER(order_signed4, int32_t, code)
ORDER(order_unsigned1, uint8_t, code)
ORDER(order_unsigned2, uint16_t, code)
ORDER(order_unsigned4, uint32_t, code)
#undef ORDER

static void order_codes(const unsigned char *at, trn_format format, int n, int64_t *out)
{
    static void (*const order[3][3])(const unsigned char *, int, int, int, int64_t *) = {
        { order_float1, order_signed1, order_unsigned1 },
        { order_float2, order_signed2, order_unsigned2 },
        { order_float4, order_signed4, order_unsigned4 },
    };
    const trn_format_info *f = trn_format_info_of(format);
    const size_t bytes = trn_format_bytes(format);
    const bool is_signed = f->exponent_bits == 0 && f->max_code >> (f->bits - 1) == 0;
    const int size = bytes == 1 ? 0 : bytes == 2 ? 1 : 2, of = f->mantissa_bits > 0 ? 0 : is_signed ? 1 : 2;
    order[size][of](at, f->bits, f->low_zeros, n, out);
}

static void order_doubles(const double *value, int n, int64_t *out)
{
    for (int i = 0; i < n; i++) {
        uint64_t code;
        memcpy(&code, &value[i], sizeof code);
        out[i] = order_signed_magnitude(code, 64);
    }
}

/* Numbers of another format: rounded to this one first. */
static void order_rounded(trn_format format, int n, const double *value, int64_t *out)
{
    float x[UD_BLOCK];
    uint32_t code[UD_BLOCK];
    for (int i = 0; i < n; i++) x[i] = (float)value[i];
    trn_convert_args args = { .dst = trn_tensor_1d(format, code, n), .src = trn_tensor_1d(TRN_F32, x, n) };
    if (trn_convert(&args) != TRN_OK) abort();
    order_codes((const unsigned char *)code, format, n, out);
}

void ud_order_values(const ud_unit *unit, int n, const double *value, int64_t *out)
{
    if (unit->kind == UD_CODES)
        order_rounded(unit->format, n, value, out);
    else
        order_doubles(value, n, out);
}

static void order_long(const ud_array *a, int64_t first, int n, int64_t *out)
{
    for (int i = 0; i < n; i++) {
        int64_t word = 0;
        memcpy(&word, a->data + a->item * ((size_t)first + (size_t)i), a->item);
        out[i] = a->kind == UD_U64 ? word ^ INT64_MIN : word;
    }
}

void ud_ordered(const ud_array *a, const ud_unit *unit, int64_t first, int n, const double *value, int64_t *out)
{
    if (unit->kind == UD_F64)
        order_doubles(value, n, out);
    else if (unit->kind != UD_CODES)
        order_long(a, first, n, out);
    else if (a->kind == UD_CODES && a->format == unit->format)
        order_codes(a->data + (size_t)first * a->item, a->format, n, out);
    else
        order_rounded(unit->format, n, value, out);
}

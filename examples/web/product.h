/* product.h - the tool "product": two small matrices in the systolic array, step by step, and what each chain holds.
 * SPDX-License-Identifier: MIT
 *
 *     product?a=1 2;3 4&b=5 6;7 8&format=bfloat16&result=float32&generation=default&numerics=trn2&row=0&column=0
 *
 * a has a row in each line, b a column; "1*15" is fifteen ones. What stands in a chain after a step is asked of
 * trn_matmul, too: it is the product in which all other rows of the array are zero, as a chain begins at +0 and +0
 * changes no sum.
 */
#ifndef WEB_PRODUCT_H
#define WEB_PRODUCT_H

#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>

#include "choices.h"
#include "codes.h"

enum { PRODUCT_LINES = 8, PRODUCT_DEPTH = 128, PRODUCT_ALL = -1 };

typedef struct matrix {
    int lines, depth;
    float value[PRODUCT_LINES][PRODUCT_DEPTH];   /* as read */
    uint32_t code[PRODUCT_LINES][PRODUCT_DEPTH]; /* in the format, as one code of its size each */
} matrix;

typedef struct product {
    matrix a, b;
    trn_format format, result;
    trn_generation generation;
    trn_numerics numerics;
    int64_t row, column;
    int chains, tile; /* 0 chains: the sum has another order */
} product;

/* ---- reading ---- */

/* "0.5*3": how often, or once. */
static bool read_times(const char **at, int64_t *times)
{
    char *end;
    *times = 1;
    if (**at != '*') return true;
    *times = strtoll(*at + 1, &end, 10);
    const bool ok = end != *at + 1 && *times >= 1;
    *at = end;
    return ok;
}

static bool read_line(matrix *m, const char *name, const char *at, trn_error *why)
{
    int depth = 0;
    while (*(at += strspn(at, " ,"))) {
        const char *entry = at;
        float x = 0;
        int64_t times;
        const bool ok = read_float(at, &x, &at) && read_times(&at, &times) && (!*at || strchr(" ,", *at));
        if (!ok)
            return refuse(why, "%s, line %d: '%.*s' is no number such as 0.5 or 1*15", name, m->lines + 1,
                          (int)(strcspn(entry, " ,") > 40 ? 40 : strcspn(entry, " ,")), entry);
        if (depth + times > PRODUCT_DEPTH)
            return refuse(why, "%s, line %d has more than %d numbers, and the array has as many rows", name,
                          m->lines + 1, (int)PRODUCT_DEPTH);
        for (; times; times--) m->value[m->lines][depth++] = x;
    }
    if (!depth) return true; /* an empty line */
    if (m->lines && depth != m->depth)
        return refuse(why, "%s, line %d has %d numbers, and the lines before it %d", name, m->lines + 1, depth,
                      m->depth);
    m->depth = depth;
    m->lines++;
    return true;
}

static bool read_matrix(const ask *q, const char *name, const char *usual, matrix *m, trn_error *why)
{
    char text[ASK_BYTES];
    m->lines = m->depth = 0;
    snprintf(text, sizeof text, "%s", ask_text(q, name, usual));
    for (char *line = text, *next; line; line = next) {
        next = line + strcspn(line, ";\n");
        next = *next ? next : NULL;
        if (next) *next++ = 0;
        if (m->lines == PRODUCT_LINES && line[strspn(line, " ,")])
            return refuse(why, "%s has more than %d lines", name, (int)PRODUCT_LINES);
        if (m->lines < PRODUCT_LINES && !read_line(m, name, line, why)) return false;
    }
    return m->lines > 0 || refuse(why, "%s is empty, expected numbers with blanks between", name);
}

/* Rounds what was read to the format of the operands. */
static bool encode(const product *p, matrix *m, trn_error *why)
{
    trn_convert_args args = { 0 };
    args.error = why;
    for (int i = 0; i < m->lines; i++) {
        args.src = trn_tensor_1d(TRN_F32, m->value[i], m->depth);
        args.dst = trn_tensor_1d(p->format, m->code[i], m->depth);
        if (trn_convert(&args) != TRN_OK) return false;
    }
    return true;
}

static bool read_product(const ask *q, product *p, trn_error *why)
{
    int generation;
    trn_error error;
    if (!ask_knows(q, "a b format result generation numerics row column", why) ||
        !read_matrix(q, "a", "16777216 1*15", &p->a, why) || !read_matrix(q, "b", "1*16", &p->b, why) ||
        !ask_format(q, "format", "bfloat16", &p->format, why) ||
        !ask_format(q, "result", p->format == TRN_I8 ? "int32" : "float32", &p->result, why) ||
        !ask_choice(q, "generation", "default", &generations, &generation, why) ||
        !ask_whole(q, "row", 0, 0, p->a.lines - 1, &p->row, why) ||
        !ask_whole(q, "column", 0, 0, p->b.lines - 1, &p->column, why))
        return false;
    if (trn_numerics_read(&p->numerics, ask_text(q, "numerics", "trn2"), &error) != TRN_OK)
        return refuse(why, "numerics: %.200s", error.text);
    if (p->a.depth != p->b.depth)
        return refuse(why, "a line of a has %d numbers and one of b %d: a's rows and b's columns are as long",
                      p->a.depth, p->b.depth);
    const trn_numerics usual = trn_numerics_default(p->generation);
    const bool chained = p->numerics.accumulator <= TRN_ACCUMULATOR_TOWARD_ZERO && p->format != TRN_I8;
    p->generation = generation ? (trn_generation)(TRN_TRAINIUM1 + generation - 1) : TRN_GENERATION_DEFAULT;
    p->chains = !chained ? 0 : p->numerics.chains ? p->numerics.chains : usual.chains;
    p->tile = p->numerics.k_tile ? p->numerics.k_tile : usual.k_tile;
    return encode(p, &p->a, why) && encode(p, &p->b, why);
}

/* ---- multiplying ---- */

static bool multiply(const product *p, trn_tensor a, trn_tensor b, trn_tensor c, const trn_numerics *numerics,
                     trn_error *why)
{
    trn_matmul_args args = { 0 };
    args.generation = p->generation;
    args.a = a;
    args.b = b;
    args.dst = c;
    args.numerics = numerics;
    args.error = why;
    return trn_matmul(&args) == TRN_OK;
}

/* The chain of row k of the product. */
static int chain_of(const product *p, int k)
{
    const int row = k % p->tile;
    return p->numerics.chain_layout == TRN_CHAINS_INTERLEAVED ? row % p->chains : row / (PRODUCT_DEPTH / p->chains);
}

/* The sum in PSUM of the rows [from, to) of these chains (a bit each); of all other rows, both operands are zero. */
static bool part(const product *p, int from, int to, int chains, const trn_numerics *numerics, double *sum,
                 trn_error *why)
{
    const size_t bytes = trn_format_bytes(p->format);
    const trn_format wide = p->format == TRN_I8 ? TRN_I32 : TRN_F32;
    unsigned char a[PRODUCT_DEPTH * 4] = { 0 }, b[PRODUCT_DEPTH * 4] = { 0 };
    uint32_t c = 0;
    for (int k = from; k < to; k++) {
        if (p->chains && !(chains >> chain_of(p, k) & 1)) continue;
        memcpy(a + bytes * (size_t)k, (const char *)p->a.code[p->row] + bytes * (size_t)k, bytes);
        memcpy(b + bytes * (size_t)k, (const char *)p->b.code[p->column] + bytes * (size_t)k, bytes);
    }
    if (!multiply(p, trn_tensor_2d(p->format, a, 1, p->a.depth), trn_tensor_2d(p->format, b, p->a.depth, 1),
                  trn_tensor_2d(wide, &c, 1, 1), numerics, why))
        return false;
    *sum = value_of(wide, c);
    return true;
}

/* ---- the answer ---- */

static double entry(const product *p, const matrix *m, int line, int k)
{
    uint32_t code = 0;
    const size_t bytes = trn_format_bytes(p->format);
    memcpy(&code, (const char *)m->code[line] + bytes * (size_t)k, bytes);
    return value_of(p->format, code);
}

static void put_matrix(answer *a, const char *name, const product *p, const matrix *m)
{
    put_open(a, name, '[');
    for (int i = 0; i < m->lines; i++) {
        put_open(a, NULL, '[');
        for (int k = 0; k < m->depth; k++) put_shown(a, NULL, entry(p, m, i, k));
        put_close(a, ']');
    }
    put_close(a, ']');
}

/* All elements, in the format of the result. */
static bool put_results(answer *a, const product *p, trn_error *why)
{
    const int64_t rows = p->a.lines, columns = p->b.lines, depth = p->a.depth;
    const size_t bytes = trn_format_bytes(p->result);
    const int64_t step = (int64_t)(sizeof p->a.code[0] / trn_format_bytes(p->format));
    unsigned char c[PRODUCT_LINES * PRODUCT_LINES * 4];
    trn_tensor x = trn_tensor_2d(p->format, (void *)(uintptr_t)p->a.code, rows, depth);
    trn_tensor y = trn_tensor_2d(p->format, (void *)(uintptr_t)p->b.code, depth, columns);
    x.stride[0] = y.stride[1] = step;
    x.stride[1] = y.stride[0] = 1;
    if (!multiply(p, x, y, trn_tensor_2d(p->result, c, rows, columns), &p->numerics, why)) return false;
    put_open(a, "c", '[');
    for (int64_t i = 0; i < rows; i++) {
        put_open(a, NULL, '[');
        for (int64_t j = 0; j < columns; j++) {
            uint32_t code = 0;
            memcpy(&code, c + bytes * (size_t)(i * columns + j), bytes);
            put_shown(a, NULL, value_of(p->result, code));
        }
        put_close(a, ']');
    }
    put_close(a, ']');
    return true;
}

static bool put_steps(answer *a, const product *p, trn_error *why)
{
    put_open(a, "steps", '[');
    for (int k = 0; k < p->a.depth; k++) {
        const double x = entry(p, &p->a, (int)p->row, k), y = entry(p, &p->b, (int)p->column, k);
        double sum;
        put_open(a, NULL, '{');
        put_whole(a, "row", k % p->tile);
        put_whole(a, "tile", k / p->tile);
        put_shown(a, "a", x);
        put_shown(a, "b", y);
        put_shown(a, "product", x * y); /* exact: 48 bits at most */
        if (p->chains) {
            if (!part(p, k - k % p->tile, k + 1, 1 << chain_of(p, k), &p->numerics, &sum, why)) return false;
            put_whole(a, "chain", chain_of(p, k));
            put_shown(a, "sum", sum);
        }
        if (!part(p, 0, k + 1, PRODUCT_ALL, &p->numerics, &sum, why)) return false;
        put_shown(a, "total", sum);
        put_close(a, '}');
    }
    put_close(a, ']');
    return true;
}

/* One addition of chains: those in the set, of the rows of a tile. */
static bool put_merge(answer *a, const product *p, int from, int to, int first, int count, trn_error *why)
{
    double sum;
    if (!part(p, from, to, ((1 << count) - 1) << first, &p->numerics, &sum, why)) return false;
    put_open(a, NULL, '{');
    put_whole(a, "first", first);
    put_whole(a, "last", first + count - 1);
    put_shown(a, "sum", sum);
    put_close(a, '}');
    return true;
}

static bool put_merges(answer *a, const product *p, int from, int to, trn_error *why)
{
    bool ok = true;
    put_open(a, "merges", '[');
    if (p->numerics.merge == TRN_MERGE_ASCENDING)
        for (int n = 1; n <= p->chains && ok; n++) ok = put_merge(a, p, from, to, 0, n, why);
    else
        for (int n = 1; n <= p->chains && ok; n *= 2)
            for (int first = 0; first < p->chains && ok; first += n) ok = put_merge(a, p, from, to, first, n, why);
    put_close(a, ']');
    return ok;
}

/* At the end of each tile the chains are joined, and PSUM takes the sum. */
static bool put_tiles(answer *a, const product *p, trn_error *why)
{
    put_open(a, "tiles", '[');
    for (int from = 0; from < p->a.depth; from += p->tile) {
        const int to = from + p->tile < p->a.depth ? from + p->tile : p->a.depth;
        double sum;
        put_open(a, NULL, '{');
        put_whole(a, "from", from);
        put_whole(a, "to", to);
        if (p->chains && !put_merges(a, p, from, to, why)) return false;
        if (!part(p, 0, to, PRODUCT_ALL, &p->numerics, &sum, why)) return false;
        put_shown(a, "psum", sum);
        put_close(a, '}');
    }
    put_close(a, ']');
    return true;
}

/* The same element in other orders, each a preset. */
static bool put_orders(answer *a, const product *p, trn_error *why)
{
    static const char *const preset[] = { "single_chain", "exact" };
    for (size_t i = 0; i < sizeof preset / sizeof preset[0]; i++) {
        product other = *p;
        double sum;
        other.chains = 0;
        if (trn_numerics_read(&other.numerics, preset[i], why) != TRN_OK) return false;
        if (!part(&other, 0, p->a.depth, PRODUCT_ALL, &other.numerics, &sum, why)) return false;
        put_shown(a, preset[i], sum);
    }
    return true;
}

static bool multiply_in_steps(const ask *q, answer *a, trn_error *why)
{
    product *p = (product *)calloc(1, sizeof *p);
    char text[TRN_NUMERICS_TEXT];
    if (!p) return refuse(why, "there is not enough memory for the matrices");
    bool ok = read_product(q, p, why);
    if (ok) {
        put_matrix(a, "a", p, &p->a);
        put_matrix(a, "b", p, &p->b);
        put_text(a, "format", trn_format_name(p->format));
        put_text(a, "result", trn_format_name(p->result));
        put_text(a, "numerics", trn_numerics_format(&p->numerics, text, sizeof text) == TRN_OK ? text : "");
        put_whole(a, "row", p->row);
        put_whole(a, "column", p->column);
        put_whole(a, "chains", p->chains);
        put_whole(a, "blocked", p->numerics.chain_layout == TRN_CHAINS_BLOCKED);
        put_whole(a, "tile", p->tile);
    }
    ok = ok && put_results(a, p, why) && put_steps(a, p, why) && put_tiles(a, p, why) && put_orders(a, p, why);
    free(p);
    return ok;
}

#endif /* WEB_PRODUCT_H */

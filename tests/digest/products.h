/* products.h - the digest's sections on matrix products: every format, layout, shape, order of sums and rounding.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_PRODUCTS_H
#define DIGEST_PRODUCTS_H

#include <tests/digest/inputs.h>

typedef struct shape {
    int m, n, k;
} shape;

typedef enum layout {
    PACKED,
    A_TRANSPOSED, /* a is a view of [K, M] */
    B_TRANSPOSED, /* b is a view of [N, K] */
    STRIDED,      /* every row of all three is followed by a gap */
    BROADCAST,    /* all rows of b are one row */
    LAYOUTS
} layout;

typedef struct product {
    trn_format a, b, dst;
    shape size;
    flavour kind;
    layout shape_of_memory;
    const char *numerics;
    trn_generation generation;
    trn_rounding rounding;
    bool accumulate, instruction; /* instruction: trn_nc_matmul instead of trn_matmul */
} product;

enum { GAP = 5, MOST = 1 << 21 };

static trn_tensor view(trn_format format, void *data, int rows, int columns, bool transposed, bool gaps)
{
    trn_tensor t = transposed ? trn_tensor_2d(format, data, columns, rows) : trn_tensor_2d(format, data, rows, columns);
    if (gaps) {
        t.stride[0] = t.shape[1] + GAP;
        t.stride[1] = 1;
    }
    return transposed ? trn_tensor_transposed(t) : t;
}

static bool multiply(const product *p)
{
    static uint32_t a[MOST], b[MOST], dst[MOST];
    const shape s = p->size;
    const bool gaps = p->shape_of_memory == STRIDED;
    const size_t a_count = (size_t)(s.m + GAP) * (size_t)(s.k + GAP),
                 b_count = (size_t)(s.k + GAP) * (size_t)(s.n + GAP);
    const size_t dst_count = (size_t)(s.m + GAP) * (size_t)(s.n + GAP);
    trn_numerics numerics;
    if (a_count > MOST || b_count > MOST || dst_count > MOST || trn_numerics_parse(&numerics, p->numerics) != TRN_OK) {
        fprintf(stderr, "digest: a product of this table is too large, or its numerics \"%s\" are unknown\n",
                p->numerics);
        return false;
    }
    fill(p->a, a, a_count, p->kind);
    fill(p->b, b, b_count, p->kind);
    fill(p->dst, dst, dst_count, ORDINARY);

    trn_tensor b_view = view(p->b, b, s.k, s.n, p->shape_of_memory == B_TRANSPOSED, gaps);
    if (p->shape_of_memory == BROADCAST) {
        b_view.stride[0] = 0;
        b_view.stride[1] = 1;
    }
    trn_error error;
    trn_status status;
    memset(&error, 0, sizeof error);
    if (p->instruction) { /* stationary is [K, M]: a, looked at from the other side */
        trn_nc_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->generation;
        args.dst = view(p->dst, dst, s.m, s.n, false, gaps);
        args.stationary = trn_tensor_transposed(view(p->a, a, s.m, s.k, p->shape_of_memory == A_TRANSPOSED, gaps));
        args.moving = b_view;
        args.accumulate = p->accumulate;
        args.rounding = p->rounding;
        args.seed = 99;
        args.stream = 3;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_nc_matmul(&args);
    } else {
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->generation;
        args.dst = view(p->dst, dst, s.m, s.n, false, gaps);
        args.a = view(p->a, a, s.m, s.k, p->shape_of_memory == A_TRANSPOSED, gaps);
        args.b = b_view;
        args.accumulate = p->accumulate;
        args.rounding = p->rounding;
        args.seed = 99;
        args.stream = 3;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_matmul(&args);
    }
    if (status != TRN_OK) {
        fprintf(stderr, "digest: %s %s x %s -> %s, %dx%dx%d, \"%s\": %s\n",
                p->instruction ? "trn_nc_matmul" : "trn_matmul", trn_format_name(p->a), trn_format_name(p->b),
                trn_format_name(p->dst), s.m, s.n, s.k, p->numerics, error.text);
        return false;
    }
    hash_bytes(dst, dst_count * trn_format_bytes(p->dst));
    return true;
}

static product plain(trn_format a, trn_format b, trn_format dst)
{
    product p;
    memset(&p, 0, sizeof p);
    p.a = a;
    p.b = b;
    p.dst = dst;
    p.size.m = 19;
    p.size.n = 45;
    p.size.k = 150;
    p.numerics = "";
    return p;
}

static const trn_format pairs[][2] = { { TRN_BF16, TRN_BF16 }, { TRN_F16, TRN_F16 }, { TRN_BF16, TRN_F16 },
                                       { TRN_F16, TRN_BF16 },  { TRN_F32, TRN_F32 }, { TRN_TF32, TRN_TF32 },
                                       { TRN_F32, TRN_TF32 },  { TRN_TF32, TRN_F32 } };
static const trn_format outputs[] = { TRN_F32, TRN_BF16, TRN_F16 };
enum { PAIRS = 8 };

/* Every pair of formats with every flavour of numbers, in every layout, into every output. */
static bool matmul_formats(void)
{
    for (int pair = 0; pair < PAIRS; pair++)
        for (int kind = 0; kind < FLAVOURS; kind++)
            for (int where = 0; where < LAYOUTS; where++) {
                product p = plain(pairs[pair][0], pairs[pair][1], outputs[(kind + where) % 3]);
                p.kind = (flavour)kind;
                p.shape_of_memory = (layout)where;
                p.accumulate = (kind + where) % 2 == 1;
                if (!multiply(&p)) return false;
            }
    return true;
}

/* Tails of every kind: below, at and above the sizes that kernels, panels, tiles and slabs are made of. */
static bool matmul_shapes(void)
{
    static const shape sizes[] = { { 1, 1, 1 },     { 1, 1, 128 },   { 1, 300, 129 },  { 300, 1, 127 },
                                   { 2, 3, 5 },     { 7, 17, 33 },   { 16, 64, 64 },   { 17, 65, 255 },
                                   { 31, 33, 257 }, { 48, 96, 256 }, { 65, 127, 130 }, { 13, 49, 1000 },
                                   { 0, 5, 5 },     { 5, 0, 5 },     { 5, 7, 0 },      { 200, 24, 131 } };
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int pair = 0; pair < PAIRS; pair += 1 + (i % 2 ? 3 : 0)) {
            product p = plain(pairs[pair][0], pairs[pair][1], outputs[i % 3]);
            p.size = sizes[i];
            p.accumulate = i % 4 == 2;
            if (!multiply(&p)) return false;
        }
    return true;
}

/* Large enough to be cut among seven threads, or into several slabs of rows, columns or depth: the results must not
 * show it. */
static bool matmul_threads(void)
{
    static const shape sizes[] = { { 150, 210, 140 }, { 33, 500, 260 }, { 333, 47, 260 }, { 1, 2600, 700 },
                                   { 16, 600, 200 },  { 3, 1100, 530 }, { 400, 20, 600 } };
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        product p = plain(pairs[4 * (i % 2)][0], pairs[4 * (i % 2)][1], outputs[i % 3]);
        p.size = sizes[i];
        p.kind = i % 2 == 1 ? SPECIAL : ORDINARY;
        p.rounding = i % 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        p.accumulate = i > 4;
        if (!multiply(&p)) return false;
    }
    return true;
}

/* Every order of sums that trn_numerics knows. */
static bool matmul_numerics(void)
{
    static const char *const settings[] = {
        "chains=1",
        "chains=2",
        "chains=8",
        "chains=16",
        "chain_layout=blocked",
        "chains=8,chain_layout=blocked,merge=pairwise",
        "merge=pairwise",
        "chains=16,merge=pairwise",
        "k_tile=1",
        "k_tile=64",
        "k_tile=100,chains=8",
        "product=bf16",
        "accumulator=toward_zero",
        "accumulator=exact",
        "accumulator_bits=26",
        "accumulator_bits=53",
        "fp32_mode=split",
        "tf32_input=truncate",
        "flush_inputs=on",
        "flush_products=on",
        "flush_sums=on",
    };
    enum { SLOW_FROM = 11 };
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++)
        for (int pair = 0; pair < PAIRS; pair += 4)
            for (int kind = 0; kind < 3; kind++) {
                static const flavour kinds[] = { ORDINARY, TINY, SPECIAL };
                product p = plain(pairs[pair][0], pairs[pair][1], TRN_F32);
                p.size.m = i < SLOW_FROM ? 5 : 2; /* what no kernel does is done one element at a time */
                p.size.n = i < SLOW_FROM ? 35 : 5;
                p.numerics = settings[i];
                p.kind = kinds[kind];
                p.accumulate = kind == 2;
                if (!multiply(&p)) return false;
            }
    product p = plain(TRN_BF16, TRN_BF16, TRN_BF16);
    p.size.k = 400;
    p.generation = TRN_TRAINIUM3;
    p.numerics = "psum_format=bfloat16";
    if (!multiply(&p)) return false;
    p.numerics = "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8";
    return multiply(&p);
}

/* Every rounding of the output. */
static bool matmul_outputs(void)
{
    for (int mode = 0; mode < 6; mode++)
        for (int out = 0; out < 3; out++)
            for (int kind = 0; kind < 2; kind++) {
                product p = plain(kind ? TRN_F32 : TRN_BF16, kind ? TRN_F32 : TRN_BF16, outputs[out]);
                p.kind = kind ? HUGE_ : CANCEL;
                p.rounding = all_modes[mode];
                if (!multiply(&p)) return false;
            }
    return true;
}

static bool instructions(void)
{
    static const shape sizes[] = { { 128, 512, 128 }, { 128, 33, 128 }, { 1, 512, 1 }, { 37, 65, 127 } };
    for (int pair = 0; pair < PAIRS; pair++)
        for (unsigned i = pair ? 1 : 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            product p = plain(pairs[pair][0], pairs[pair][1], TRN_F32);
            p.instruction = true;
            p.size = sizes[i];
            p.kind = (flavour)((pair + (int)i) % FLAVOURS);
            p.shape_of_memory = (layout)((pair + (int)i) % LAYOUTS);
            p.accumulate = i % 2 == 1;
            p.generation = i % 2 ? TRN_TRAINIUM1 : TRN_TRAINIUM2;
            if (!multiply(&p)) return false;
        }
    for (int mode = 0; mode < 2; mode++) {
        product p = plain(TRN_BF16, TRN_BF16, TRN_BF16);
        p.instruction = p.accumulate = true;
        p.generation = TRN_TRAINIUM3;
        p.size.k = 128;
        p.rounding = all_modes[mode];
        if (!multiply(&p)) return false;
    }
    return true;
}

#endif /* DIGEST_PRODUCTS_H */

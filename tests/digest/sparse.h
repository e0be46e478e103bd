/* sparse.h - the digest's section on structured sparsity: packing, tags, products of both levels.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_SPARSE_H
#define DIGEST_SPARSE_H

#include <tests/digest/inputs.h>

typedef struct sparse_case {
    trn_sparse_pattern pattern;
    trn_format a, b, dst;
    int m, n, windows;
    flavour kind;
    const char *numerics;
    trn_rounding rounding;
    bool accumulate, instruction, turned; /* turned: every operand is a view of its transpose */
} sparse_case;

static bool sparse_failed(const char *what, const trn_error *error)
{
    fprintf(stderr, "digest: %s: %s\n", what, error->text);
    return false;
}

static trn_tensor sparse_view(trn_format format, void *data, int rows, int columns, bool turned)
{
    return turned ? trn_tensor_transposed(trn_tensor_2d(format, data, columns, rows))
                  : trn_tensor_2d(format, data, rows, columns);
}

/* A random matrix is pruned, packed and multiplied; values, tags, packed tags and the product are hashed. */
static bool sparse_multiply(const sparse_case *c)
{
    enum { room = 1 << 19 };
    static uint32_t a[room], b[room], values[room], dst[room];
    static uint8_t tags[room];
    static uint16_t words[room];
    const int k = c->windows * c->pattern.n, stored = c->windows * c->pattern.m;
    trn_numerics numerics;
    trn_error error;
    if (c->m * k > room || k * c->n > room || c->m * c->n > room ||
        trn_numerics_parse(&numerics, c->numerics) != TRN_OK) {
        fprintf(stderr, "digest: a sparse product of this table is too large, or its numerics are unknown\n");
        return false;
    }
    fill(c->a, a, (size_t)(c->m * k), c->kind);
    fill(c->b, b, (size_t)(k * c->n), c->kind);
    fill(c->dst, dst, (size_t)(c->m * c->n), ORDINARY);

    trn_sparse_pack_args pack;
    memset(&pack, 0, sizeof pack);
    pack.src = sparse_view(c->a, a, c->m, k, c->turned);
    pack.values = sparse_view(c->a, values, c->m, stored, c->turned);
    pack.tags = sparse_view(TRN_U8, tags, c->m, stored, c->turned);
    pack.pattern = c->pattern;
    pack.prune = true;
    pack.error = &error;
    if (trn_sparse_pack(&pack) != TRN_OK) return sparse_failed("trn_sparse_pack", &error);
    hash_bytes(values, (size_t)(c->m * stored) * trn_format_bytes(c->a));
    hash_bytes(tags, (size_t)(c->m * stored));

    trn_sparse_tags_pack_args four;
    memset(&four, 0, sizeof four);
    four.src = pack.tags;
    four.dst = trn_tensor_2d(TRN_U16, words, c->m, (stored + 3) / 4);
    four.error = &error;
    if (trn_sparse_tags_pack(&four) != TRN_OK) return sparse_failed("trn_sparse_tags_pack", &error);
    hash_bytes(words, (size_t)(c->m * ((stored + 3) / 4)) * sizeof words[0]);

    trn_status status;
    if (c->instruction) {
        trn_nc_matmul_sparse_args args;
        memset(&args, 0, sizeof args);
        args.dst = sparse_view(c->dst, dst, c->m, c->n, c->turned);
        args.stationary = trn_tensor_transposed(pack.values);
        args.tags = trn_tensor_transposed(pack.tags);
        args.moving = sparse_view(c->b, b, k, c->n, c->turned);
        args.pattern = c->pattern;
        args.accumulate = c->accumulate;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_nc_matmul_sparse(&args);
    } else {
        trn_sparse_matmul_args args;
        memset(&args, 0, sizeof args);
        args.dst = sparse_view(c->dst, dst, c->m, c->n, c->turned);
        args.values = pack.values;
        args.tags = pack.tags;
        args.pattern = c->pattern;
        args.b = sparse_view(c->b, b, k, c->n, c->turned);
        args.accumulate = c->accumulate;
        args.rounding = c->rounding;
        args.seed = 99;
        args.stream = 3;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_sparse_matmul(&args);
    }
    if (status != TRN_OK) return sparse_failed(c->instruction ? "trn_nc_matmul_sparse" : "trn_sparse_matmul", &error);
    hash_bytes(dst, (size_t)(c->m * c->n) * trn_format_bytes(c->dst));
    return true;
}

/* Every pattern with pairs of formats, flavours of numbers, orders, outputs and layouts in turn, and cuts of any
 * kind. */
static bool sparse_products(void)
{
    static const trn_sparse_pattern pattern[] = {
        { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 }
    };
    static const trn_format pair[][2] = { { TRN_BF16, TRN_BF16 },    { TRN_F16, TRN_BF16 }, { TRN_F32, TRN_F32 },
                                          { TRN_F8_E4M3, TRN_BF16 }, { TRN_F16, TRN_F16 },  { TRN_TF32, TRN_F32 },
                                          { TRN_BF16, TRN_F8_E5M2 } };
    static const trn_format output[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3 };
    static const char *const order[] = { "",
                                         "chains=1",
                                         "chains=8,chain_layout=blocked",
                                         "chains=16,merge=pairwise",
                                         "k_tile=50,chains=2",
                                         "product=bf16" };
    static const int size[][2] = { { 19, 45 }, { 8, 32 }, { 1, 70 }, { 33, 5 } };
    for (int i = 0; i < 7 * 24; i++) {
        const bool slow = i % 6 == 5;
        sparse_case c;
        memset(&c, 0, sizeof c);
        c.pattern = pattern[i % 7];
        c.a = pair[i / 2 % 7][0];
        c.b = pair[i / 2 % 7][1];
        c.dst = i % 3 == 2 ? TRN_F32 : output[i % 4];
        c.m = slow ? 2 : size[i % 4][0];
        c.n = slow ? 5 : size[i % 4][1];
        c.windows = 128 / c.pattern.m + i % 11;
        c.kind = (flavour)(i % FLAVOURS);
        c.numerics = order[i % 6];
        c.rounding = all_modes[i / 6 % 6];
        c.accumulate = i % 2 == 1;
        c.turned = i % 5 == 4;
        c.instruction = i % 3 == 2;
        if (c.instruction) c.windows = 128 / c.pattern.m - i % 5;
        if (!sparse_multiply(&c)) return false;
    }
    for (int i = 0; i < 4; i++) { /* large enough for threads and several slabs */
        static const int large[][3] = { { 300, 70, 40 }, { 20, 1040, 20 }, { 150, 150, 70 }, { 530, 33, 33 } };
        sparse_case c;
        memset(&c, 0, sizeof c);
        c.pattern = pattern[i];
        c.a = pair[i][0];
        c.b = pair[i][1];
        c.dst = output[i % 2];
        c.m = large[i][0], c.n = large[i][1], c.windows = large[i][2];
        c.kind = i % 2 ? SPECIAL : ORDINARY;
        c.numerics = "";
        c.rounding = i == 1 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        if (!sparse_multiply(&c)) return false;
    }
    return true;
}

#endif /* DIGEST_SPARSE_H */

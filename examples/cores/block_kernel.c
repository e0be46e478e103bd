/* block_kernel.c - one rank's part of a transformer block: products by columns, then by rows, then an all-reduce.
 * SPDX-License-Identifier: MIT
 *
 *     n1 = norm(x)         qkv = n1 Wqkv     heads = attention(qkv)        sum1 = all-reduce(heads Wo)
 *     z = x + sum1         n2 = norm(z)      hidden = silu(n2 Wg) n2 Wu   sum2 = all-reduce(hidden Wd)    y = z + sum2
 *
 * and back, from dy. Norms and residuals are repeated on every rank.
 */
#include "block.h"

#include "attention.h"
#include "swiglu.h"

/* ---- the block ---- */

typedef struct scene {
    trn_cores_rank *self;
    trn_core *c;
    const block *b;
    const trn_tensor *t; /* the rank's */
} scene;

#define T_(name) (s->t[BLOCK_##name])

static void product_of(const scene *s, int dst, trn_tensor a, bool a_by_k, trn_tensor b, bool b_by_n)
{
    const product p = { s->t[dst], a, b, a_by_k, b_by_n };
    multiply(s->c, &p);
}

static void all_reduce(const scene *s, int dst, int src)
{
    const trn_cores_collective_args args = { .dst = s->t[dst], .src = s->t[src] };
    trn_cores_all_reduce(s->self, &args);
}

static attention attention_of(const scene *s)
{
    return (attention){ T_(qkv), T_(heads), T_(statistics), s->b->size.own_heads, s->b->size.d };
}

static void attention_layer(const scene *s)
{
    const norm first = { .x = s->b->x, .gamma = s->b->gamma1, .n = T_(n1), .inverse = T_(inverse1) };
    const attention a = attention_of(s);
    norm_forward(s->c, &first);
    product_of(s, BLOCK_qkv, T_(n1), false, T_(wqkv), false);
    attention_forward(s->c, &a);
    product_of(s, BLOCK_part1, T_(heads), false, T_(wo), false);
    all_reduce(s, BLOCK_sum1, BLOCK_part1);
}

static void mlp_layer(const scene *s)
{
    const norm second = {
        .x = s->b->x, .y = T_(sum1), .sum = T_(z), .gamma = s->b->gamma2, .n = T_(n2), .inverse = T_(inverse2)
    };
    const swiglu units = { .gu = T_(gu), .hidden = T_(hidden) };
    norm_forward(s->c, &second);
    product_of(s, BLOCK_gu, T_(n2), false, T_(wgu), false);
    swiglu_tiles(s->c, &units);
    product_of(s, BLOCK_part2, T_(hidden), false, T_(wd), false);
    all_reduce(s, BLOCK_sum2, BLOCK_part2);
    add(s->c, T_(y), T_(z), T_(sum2));
}

/* Gradients of weights come after the products on which the other ranks wait, and run while the all-reduce does. */
static void mlp_layer_back(const scene *s)
{
    const trn_tensor dy = s->b->dy;
    const swiglu units = { T_(gu), T_(hidden), T_(dhidden), T_(dgu) };
    const norm_gradient second = { T_(z), s->b->gamma2, T_(inverse2), T_(dn2), dy, T_(dz), T_(dgamma2) };
    product_of(s, BLOCK_dhidden, dy, false, T_(wd), true);
    swiglu_tiles(s->c, &units);
    product_of(s, BLOCK_dpart2, T_(dgu), false, T_(wgu), true);
    all_reduce(s, BLOCK_dn2, BLOCK_dpart2);
    product_of(s, BLOCK_dwd, T_(hidden), true, dy, false);
    product_of(s, BLOCK_dwgu, T_(n2), true, T_(dgu), false);
    norm_backward(s->c, &second);
}

static void attention_layer_back(const scene *s)
{
    const attention a = attention_of(s);
    const norm_gradient first = { s->b->x, s->b->gamma1, T_(inverse1), T_(dn1), T_(dz), T_(dx), T_(dgamma1) };
    product_of(s, BLOCK_dheads, T_(dz), false, T_(wo), true);
    attention_backward(s->c, &a, T_(dheads), T_(dqkv));
    product_of(s, BLOCK_dpart1, T_(dqkv), false, T_(wqkv), true);
    all_reduce(s, BLOCK_dn1, BLOCK_dpart1);
    product_of(s, BLOCK_dwo, T_(heads), true, T_(dz), false);
    product_of(s, BLOCK_dwqkv, T_(n1), true, T_(dqkv), false);
    norm_backward(s->c, &first);
}

static void register_all(trn_core *c, const block *b, const block_rank *r)
{
    trn_core_hbm(c, "x", b->x);
    trn_core_hbm(c, "gamma1", b->gamma1);
    trn_core_hbm(c, "gamma2", b->gamma2);
    trn_core_hbm(c, "dy", b->dy);
    for (int i = 0; i < BLOCK_COUNT; i++) trn_core_hbm(c, block_table[i].name, r->t[i]);
}

trn_status block_kernel(trn_cores_rank *self, void *user)
{
    static void (*const phase[BLOCK_PHASES])(const scene *s) = { attention_layer, mlp_layer, mlp_layer_back,
                                                                 attention_layer_back };
    block *b = (block *)user;
    block_rank *r = &b->rank[self->rank];
    const scene s = { self, &self->core, b, r->t };
    register_all(&self->core, b, r);
    for (int i = 0; i < (b->forward_only ? BLOCK_MLP_BACK : BLOCK_PHASES); i++) {
        phase[i](&s);
        r->end_s[i] = self->core.time_s;
        if (trn_core_status(&self->core, NULL)) break;
    }
    return trn_core_status(&self->core, NULL);
}

/* moe_kernel.c - one rank of a mixture of experts: its tokens find their experts, its expert works on who came.
 * SPDX-License-Identifier: MIT
 *
 * How many tokens go where is known on the cores only. A choice is a row of ones and zeros, an expert a column: TensorE
 * sums the columns, which gives each token its place among those that go to the same expert, and GpSimd's DMA scatters
 * rows there. The counts travel first; from them each rank makes the metadata of all_to_all_v, both ways.
 */
#include "moe.h"

#include "swiglu.h"

typedef struct scene {
    trn_cores_rank *self;
    trn_core *c;
    const moe *m;
    moe_rank *own;
    sheet places, weights; /* [T, K]: U32, where in sent; F32, how much of y */
    trn_tensor counts;     /* [128, R] F32: tokens to each expert so far, alike on all partitions */
} scene;

#define T_(name) (s->own->t[MOE_##name])

/* ---- the router ---- */

typedef struct router {
    trn_tensor upper, ones;   /* [128, 128]: upper [i, j] = 1 where i <= j */
    trn_tensor number, begin; /* [128, R]: expert e has number e, and its slot begins at T e */
    pool logits, masks, all, numbers, indices, found, places, xs, totals;
} router;

static router router_of(const scene *s)
{
    trn_core *c = s->c;
    const int64_t R = s->m->ranks, wide = R < MOE_TOP ? MOE_TOP : R;
    const trn_pattern one_by_one = { 1, { { 1, (int32_t)R } } },
                      slots = { 1, { { (int32_t)s->m->tokens, (int32_t)R } } };
    const trn_pattern column = { 1, { { 1, TILE } } };
    router r = { .upper = trn_core_sbuf(c, "upper", TRN_F32, TILE, TILE),
                 .ones = trn_core_sbuf(c, "ones", TRN_F32, TILE, TILE),
                 .number = trn_core_sbuf(c, "number", TRN_F32, TILE, R),
                 .begin = trn_core_sbuf(c, "begin", TRN_F32, TILE, R),
                 .logits = sbuf_pool(c, "logits", TRN_F32, wide, 2),
                 .masks = sbuf_pool(c, "mask", TRN_F32, R, 2),
                 .all = sbuf_pool(c, "masks", TRN_F32, R, 2),
                 .numbers = sbuf_pool(c, "numbers", TRN_F32, 2, 2),
                 .indices = sbuf_pool(c, "index", TRN_U32, MOE_TOP, 2),
                 .found = sbuf_pool(c, "found", TRN_F32, 2 * MOE_TOP, 2),
                 .places = sbuf_pool(c, "places", TRN_F32, R, 3),
                 .xs = sbuf_pool(c, "x", TRN_BF16, s->m->width, 2),
                 .totals = psum_pool(c, "totals", TRN_F32, least(BANK, R), 2) };
    nisa(memset, .dst = r.ones, .value = 1);
    nisa(affine_select, .dst = r.upper, .on_true_tile = r.ones, .on_false_value = 0, .cmp_op = TRN_ALU_GREATER_EQUAL,
         .pattern = column, .channel_multiplier = -1);
    nisa(iota, .dst = r.number, .pattern = one_by_one);
    nisa(iota, .dst = r.begin, .pattern = slots);
    nisa(memset, .dst = s->counts, .value = 0);
    return r;
}

/* Softmax over the best K. */
static void weigh(const scene *s, router *r, int64_t tile, trn_tensor best)
{
    trn_core *c = s->c;
    const trn_tensor weight = sheet_part(&s->weights, tile, 0, s->m->top);
    const trn_tensor number = turn(&r->numbers, weight.shape[0], 2);
    const trn_tensor low = columns_of(number, 0, 1), sum = columns_of(number, 1, 1);
    nisa(tensor_scalar, .dst = low, .data = columns_of(best, 0, 1), .op0 = TRN_ALU_MULTIPLY, .operand0 = -1);
    nisa(activation, .dst = weight, .src = columns_of(best, 0, s->m->top), .op = TRN_ACT_EXP, .bias_tile = low,
         .reduce_res = sum, .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    nisa(reciprocal, .dst = sum, .data = sum);
    nisa(tensor_scalar, .dst = weight, .data = weight, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = sum);
}

/* mask [tokens, R] = 1 where the token's choice k is this expert. */
static void mask_of(const scene *s, const router *r, trn_tensor mask, trn_tensor index, int64_t k)
{
    trn_core *c = s->c;
    nisa(tensor_scalar, .dst = mask, .data = rows_of(r->number, 0, mask.shape[0]), .op0 = TRN_ALU_EQUAL,
         .operand0_tile = columns_of(index, k, 1));
}

/* place [tokens, R]: in sent, of a token that has chosen this expert; and the counts move on. */
static void places_of(const scene *s, router *r, trn_tensor place, trn_tensor masks)
{
    trn_core *c = s->c;
    const int64_t rows = masks.shape[0], R = s->m->ranks;
    const trn_tensor counts = rows_of(s->counts, 0, rows), total = turn(&r->places, TILE, R);
    multiply_row(c, &r->totals, place, columns_of(rows_of(r->upper, 0, rows), 0, rows), masks);
    nisa(scalar_tensor_tensor, .dst = place, .data = place, .op0 = TRN_ALU_ADD, .operand0 = -1, .op1 = TRN_ALU_ADD,
         .operand1 = counts);
    nisa(tensor_tensor, .dst = place, .data1 = place, .data2 = rows_of(r->begin, 0, rows), .op = TRN_ALU_ADD);
    multiply_row(c, &r->totals, total, rows_of(r->ones, 0, rows), masks);
    nisa(tensor_tensor, .dst = s->counts, .data1 = s->counts, .data2 = total, .op = TRN_ALU_ADD);
}

static void route_tile(const scene *s, router *r, int64_t tile)
{
    trn_core *c = s->c;
    const int64_t R = s->m->ranks, first = TILE * tile, rows = least(TILE, s->m->tokens - first);
    const trn_tensor logit = turn(&r->logits, rows, r->logits.tile[0].shape[1]), x = turn(&r->xs, rows, s->m->width);
    const trn_tensor index = turn(&r->indices, rows, MOE_TOP), found = turn(&r->found, rows, 2 * MOE_TOP);
    const trn_tensor best = columns_of(found, 0, MOE_TOP), number = columns_of(found, MOE_TOP, MOE_TOP);
    const trn_tensor all = turn(&r->all, rows, R), place = turn(&r->places, rows, R);
    if (R < MOE_TOP) nisa(memset, .dst = logit, .value = -0x1p100f);
    nisa(dma_copy, .dst = columns_of(logit, 0, R), .src = rows_of(T_(logits), first, rows));
    nisa(dma_copy, .dst = x, .src = rows_of(T_(x), first, rows));
    nisa(max8, .dst = best, .src = logit);
    nisa(nc_find_index8, .dst = index, .data = logit, .vals = best);
    nisa(tensor_copy, .dst = number, .src = index);
    weigh(s, r, tile, best);
    mask_of(s, r, all, number, 0);
    for (int64_t k = 1; k < s->m->top; k++) {
        const trn_tensor mask = turn(&r->masks, rows, R);
        mask_of(s, r, mask, number, k);
        nisa(tensor_tensor, .dst = all, .data1 = all, .data2 = mask, .op = TRN_ALU_ADD);
    }
    places_of(s, r, place, all);
    for (int64_t k = 0; k < s->m->top; k++) {
        const trn_tensor mask = turn(&r->masks, rows, R), at = sheet_part(&s->places, tile, k, 1);
        const trn_tensor sum = turn(&r->numbers, rows, 1);
        mask_of(s, r, mask, number, k);
        nisa(tensor_tensor, .dst = mask, .data1 = mask, .data2 = place, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_reduce, .dst = sum, .data = mask, .op = TRN_ALU_ADD);
        nisa(tensor_copy, .dst = at, .src = sum);
        nisa(dma_copy, .dst = T_(sent), .src = x, .dst_index = at);
    }
}

static void route(const scene *s)
{
    trn_core *c = s->c;
    const product logits = { T_(logits), T_(x), s->m->router, false, false };
    multiply(c, &logits);
    const size_t mark = trn_core_mark(c);
    router r = router_of(s);
    for (int64_t t = 0; t < tiles_of(s->m->tokens); t++) route_tile(s, &r, t);
    sheet_store(c, T_(places), &s->places);
    trn_core_release(c, mark);
}

/* ---- who sends how much to whom ---- */

/* Four rows of R numbers, times the width, as all_to_all_v has them. */
static void write_metadata(const scene *s, trn_tensor metadata, trn_tensor counts_out, trn_tensor at_out,
                           trn_tensor counts_in, trn_tensor at_in)
{
    trn_core *c = s->c;
    const int64_t R = s->m->ranks;
    const trn_tensor row[] = { counts_out, at_out, counts_in, at_in };
    const trn_tensor all = trn_core_sbuf(c, "metadata", TRN_U32, 1, 4 * R);
    for (int i = 0; i < 4; i++)
        nisa(tensor_scalar, .dst = columns_of(all, i * R, R), .data = row[i], .op0 = TRN_ALU_MULTIPLY,
             .operand0 = (float)s->m->width);
    nisa(dma_copy, .dst = metadata, .src = all);
}

static void exchange_counts(const scene *s)
{
    trn_core *c = s->c;
    const size_t mark = trn_core_mark(c);
    const int64_t R = s->m->ranks;
    const trn_pattern slots = { 1, { { (int32_t)s->m->tokens, (int32_t)R } } };
    const trn_tensor words = trn_core_sbuf(c, "counts", TRN_U32, 1, R), out = rows_of(s->counts, 0, 1);
    const trn_tensor in = trn_core_sbuf(c, "counts in", TRN_F32, 1, R), sum = trn_core_sbuf(c, "sums", TRN_F32, 1, R);
    const trn_tensor at = trn_core_sbuf(c, "slots", TRN_F32, 1, R), ones = trn_core_sbuf(c, "ones", TRN_F32, 1, R);
    nisa(tensor_copy, .dst = words, .src = out);
    nisa(dma_copy, .dst = T_(count_to), .src = words);
    const trn_cores_collective_args args = { .dst = T_(count_from), .src = T_(count_to) };
    trn_cores_all_to_all(s->self, &args);
    nisa(dma_copy, .dst = words, .src = T_(count_from));
    nisa(tensor_copy, .dst = in, .src = words);
    nisa(memset, .dst = ones, .value = 1);
    nisa(tensor_tensor_scan, .dst = sum, .data0 = ones, .data1 = in, .op0 = TRN_ALU_MULTIPLY, .op1 = TRN_ALU_ADD);
    nisa(tensor_tensor, .dst = sum, .data1 = sum, .data2 = in, .op = TRN_ALU_SUBTRACT);
    nisa(iota, .dst = at, .pattern = slots);
    write_metadata(s, T_(there), out, at, in, sum);
    write_metadata(s, T_(home), in, sum, out, at);
    trn_core_release(c, mark);
}

static void travel(const scene *s, trn_tensor dst, trn_tensor src, trn_tensor metadata)
{
    const trn_cores_collective_args args = {
        .dst = dst, .src = src, .metadata = metadata, .recv_counts_known = true, .has_rdispls = true
    };
    trn_cores_all_to_all_v(s->self, &args);
}

/* ---- the expert, and the sum ---- */

/* How often the loops over its tokens run: a register loads it, which takes no time here. */
static int64_t tokens_that_came(const scene *s)
{
    const uint32_t *there = (const uint32_t *)T_(there).data;
    const int64_t R = s->m->ranks;
    return trn_core_status(s->c, NULL) ? 0 : (int64_t)(there[3 * R - 1] + there[4 * R - 1]) / s->m->width;
}

static void work_on(const scene *s, int64_t tokens)
{
    if (!tokens) return;
    const product first = { rows_of(T_(gu), 0, tokens), rows_of(T_(got), 0, tokens), T_(wgu), false, false };
    const swiglu units = { .gu = rows_of(T_(gu), 0, tokens), .hidden = rows_of(T_(hidden), 0, tokens) };
    const product second = { rows_of(T_(done), 0, tokens), rows_of(T_(hidden), 0, tokens), T_(wd), false, false };
    multiply(s->c, &first);
    swiglu_tiles(s->c, &units);
    multiply(s->c, &second);
}

static void combine(const scene *s)
{
    trn_core *c = s->c;
    const size_t mark = trn_core_mark(c);
    const int64_t D = s->m->width;
    pool parts = sbuf_pool(c, "part", TRN_BF16, D, 2), sums = sbuf_pool(c, "sum", TRN_F32, D, 2);
    pool ys = sbuf_pool(c, "y", TRN_BF16, D, 2);
    for (int64_t t = 0; t < tiles_of(s->m->tokens); t++) {
        const int64_t rows = least(TILE, s->m->tokens - TILE * t);
        const trn_tensor sum = turn(&sums, rows, D), y = turn(&ys, rows, D);
        for (int64_t k = 0; k < s->m->top; k++) {
            const trn_tensor part = turn(&parts, rows, D), weight = sheet_part(&s->weights, t, k, 1);
            nisa(dma_copy, .dst = part, .src = T_(back), .src_index = sheet_part(&s->places, t, k, 1));
            if (k)
                nisa(scalar_tensor_tensor, .dst = sum, .data = part, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = weight,
                     .op1 = TRN_ALU_ADD, .operand1 = sum);
            else
                nisa(tensor_scalar, .dst = sum, .data = part, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = weight);
        }
        nisa(tensor_copy, .dst = y, .src = sum);
        nisa(dma_copy, .dst = rows_of(T_(y), TILE * t, rows), .src = y);
    }
    trn_core_release(c, mark);
}

trn_status moe_kernel(trn_cores_rank *self, void *user)
{
    moe *m = (moe *)user;
    trn_core *c = &self->core;
    scene s = { .self = self, .c = c, .m = m, .own = &m->rank[self->rank] };
    trn_core_hbm(c, "router", m->router);
    for (int i = 0; i < MOE_COUNT; i++) trn_core_hbm(c, moe_table[i].name, s.own->t[i]);
    s.places = sheet_of(c, "places", TRN_U32, m->tokens, m->top);
    s.weights = sheet_of(c, "weights", TRN_F32, m->tokens, m->top);
    s.counts = trn_core_sbuf(c, "counts", TRN_F32, TILE, m->ranks);
    route(&s);
    exchange_counts(&s);
    travel(&s, s.own->t[MOE_got], s.own->t[MOE_sent], s.own->t[MOE_there]);
    s.own->tokens = tokens_that_came(&s);
    work_on(&s, s.own->tokens);
    travel(&s, s.own->t[MOE_back], s.own->t[MOE_done], s.own->t[MOE_home]);
    combine(&s);
    return trn_core_status(c, NULL);
}

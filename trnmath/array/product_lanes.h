/* array/product_lanes.h - products in orders that the packed kernels do not know: regions of dst, 32 columns at a time.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: cuts dst into regions that may run at the same time; in each, operands are decoded once for 32 rows and 32
 *     columns, array/systolic_lanes.h adds them up, and PSUM is kept, rounded and cast as trn_numerics says.
 * DOES NOT: start threads or allocate. Aligned accumulators and int8, which have no lanes, go row by row as defined; so
 *     does everything in a program that has no fast orders (trn_numerics.h).
 *
 * KNOWN FROM: trni_define_element, whose bits these are.
 */
#ifndef TRNI_ARRAY_PRODUCT_LANES_H
#define TRNI_ARRAY_PRODUCT_LANES_H

#include "product_define.h"
#include "systolic_passes.h"

enum { TRNI_REGION_ROWS = 96, TRNI_REGION_COLUMNS = (int)TRNI_DEFINE_COLUMNS };

/* ---- what makes few orders fast ----
 *
 * It is a fifth of a program that multiplies, and most programs have no use for it: it is reached through these
 * pointers, which array/product_safe.h sets where trn_numerics.h says. Elsewhere elements are computed as they are
 * defined: the same bits, later. */

typedef struct trni_safe_work trni_safe_work;

struct trni_region;

typedef struct trni_fast_orders {
    size_t bytes; /* of memory for one thread: a region and what is kept of safe tiles */
    void (*multiply)(struct trni_region *r);
    trni_lane_passes (*passes)(trn_isa isa);
    /* Tiles that need no marks: is there a way; a tile of a; one of b by it, if it is safe. */
    bool (*tame_init)(trni_safe_work *t, const trni_product *p, const trni_lane_passes *passes);
    void (*tame_pack_a)(trni_safe_work *t, const trni_loader *loader, int64_t lane, int lanes, int64_t k, int depth);
    bool (*tame_tile)(trni_safe_work *t, const trni_loader *loader_b, int rows, int64_t column, int columns, int64_t k,
                      int depth, float *sum);
} trni_fast_orders;

/* How operands come in, and what all tiles share. */
typedef struct trni_region {
    const trni_product *p;
    const trni_fast_orders *orders;
    trni_array array; /* of the packed kernels: its way of turning lines */
    trni_loader loader_a, loader_b;
    trni_encoder psum_encoder;
    trni_lane_plan whole, tail; /* of a full tile, and of the last one */
    int64_t m, rows, n, columns;
    float a[(int)TRNI_MAX_DEPTH * TRNI_REGION_ROWS] __attribute__((aligned(64))); /* [row][slot][TRNI_REGION_ROWS] */
    float b[(int)TRNI_MAX_DEPTH * TRNI_LANES] __attribute__((aligned(64)));       /* [row][slot][TRNI_LANES] */
    double a_scale[(int)TRNI_ARRAY_ROWS * TRNI_REGION_ROWS];                      /* [row][TRNI_REGION_ROWS] */
    double b_scale[(int)TRNI_ARRAY_ROWS * TRNI_LANES];                            /* [row][TRNI_LANES] */
    float psum[(int)TRNI_REGION_ROWS * TRNI_REGION_COLUMNS];                      /* [rows][columns] */
    bool a_there;         /* a and a_scale hold the present tile */
    trni_safe_work *safe; /* packed otherwise, for tiles that need no marks; or null */
} trni_region;

/* Up to the next cache line. */
#define TRNI_REGION_BYTES ((sizeof(trni_region) + 63) / 64 * 64)

/* Of memory for one thread. */
TRNI_FN size_t trni_region_space(const trni_fast_orders *orders) { return orders ? orders->bytes : 0; }

/* ---- operands ---- */

/* Subnormals of the operand's format become zeros. */
TRNI_INLINE void trni_flush_line_body(float *x, double smallest, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = trni_bits(x[i]);
        const double magnitude = (double)trni_float(u & ~TRNI_F32_SIGN);
        x[i] = trni_float(u & (magnitude < smallest ? TRNI_F32_SIGN : ~(uint32_t)0));
    }
}
TRNI_DISPATCH_AVX2(trni_flush_line, (float *x, double smallest, size_t n), (x, smallest, n))

TRNI_FN int trni_rows_of_depth(const trni_product *p, int64_t depth)
{
    const int group = trni_spread_group(p->spread);
    return (int)(depth + group - 1) / group;
}

/* The tile at k, `depth` numbers deep, of `lanes` lanes: out[row][slot][width]. What is not there is zero. */
TRNI_LEAN void trni_region_pack(const trni_region *r, const trni_loader *loader, const trni_operand *o, int64_t lane,
                                int lanes, int width, int64_t k, int depth, float *out)
{
    const trni_spread spread = r->p->spread;
    const int group = trni_spread_group(spread), rows = trni_rows_of_depth(r->p, depth),
              count = o->slots > 1 ? rows : depth;
    uint16_t line[TRNI_MAX_DEPTH];
    const size_t size = (size_t)(rows * group * width);
    if (lanes < width || depth < rows * group) memset(out, 0, sizeof(float) * size);
    for (int64_t s = 0; s < o->slots; s++) {
        const trni_operand one = trni_operand_slot(o, s);
        const trni_packer packer = { &r->array, loader, &one, line, rows * group };
        for (int t = 0; t < count; t++) {
            int row = t, slot = (int)s;
            if (o->slots == 1) trni_spread_place(spread, rows, t, &row, &slot);
            line[t] = (uint16_t)(row * group + slot);
        }
        trni_pack_panel(&packer, lane, lanes, width, o->slots > 1 ? 0 : k, count, out);
    }
    if (r->p->numerics.flush_inputs) trni_flush_line_for(r->p->isa)(out, ldexp(1.0, 1 - o->info.bias), size);
}

/* Scales of the tile at k: out[row][width]. */
TRNI_LEAN void trni_region_scales(const trni_scales *s, int64_t lane, int lanes, int width, int64_t k, int rows,
                                  double *out)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    for (int p = 0; p < rows; p++)
        for (int i = 0; i < width; i++) {
            const int64_t row = k / 4 + p;
            const unsigned byte = i < lanes ? trni_scale_at(s, lane + i, row / rows_of_a_block) : 127u;
            const bool known = p > 0 && row % rows_of_a_block;
            out[p * width + i] = known                         ? out[(p - 1) * width + i]
                                 : byte == TRNI_SCALE_BYTE_NAN ? (double)trni_float(TRNI_F32_NAN)
                                                               : trni_double((uint64_t)(byte + 1023 - 127) << 52);
        }
}

/* ---- PSUM ---- */

/* A line of PSUM, element [m, n] of dst first, after tile number `tile`. */
TRNI_COLD void trni_region_round(const trni_region *r, float *psum, int64_t m, int64_t n, int columns, int64_t tile)
{
    uint32_t field[TRNI_LANES];
    uint16_t code[TRNI_LANES];
    const trni_product *p = r->p;
    const uint64_t index = (uint64_t)m * (uint64_t)p->b.lanes + (uint64_t)n;
    const bool stochastic = p->numerics.psum_rounding == TRN_STOCHASTIC;
    if (p->numerics.psum_format != TRN_BF16) return;
    if (stochastic)
        trn_random_fields(field, (size_t)columns, p->numerics.sr_bits, p->seed, p->stream + (uint64_t)tile, index,
                          p->isa);
    trni_encoder_run(&r->psum_encoder, code, psum, stochastic ? field : NULL, (size_t)columns);
    for (int j = 0; j < columns; j++) psum[j] = trn_bf16_to_f32(code[j]);
}

/* A strip's sums into PSUM: rows from `row` and columns from `column` of the region. */
TRNI_COLD void trni_region_add(trni_region *r, const float *sum, int row, int strip, int64_t column, int columns,
                               int64_t tile)
{
    const bool fresh = tile == 0 && !r->p->accumulate;
    for (int i = 0; i < strip; i++, sum += TRNI_LANES) {
        float *psum = r->psum + (row + i) * r->columns + column;
        if (fresh)
            memcpy(psum, sum, sizeof(float) * (size_t)columns);
        else
            trni_lane_add_line_for(r->p->isa)(psum, sum, r->p->numerics.flush_sums, (size_t)columns);
        trni_region_round(r, psum, r->m + row + i, r->n + column, columns, tile);
    }
}

/* ---- a region ---- */

/* 32 columns, all rows, one tile. */
TRNI_LEAN void trni_region_panel(trni_region *r, int64_t column, int64_t k, int depth)
{
    const trni_product *p = r->p;
    const int columns = (int)trni_min64(r->columns - column, TRNI_LANES), deep = (int)trni_tile_depth(p);
    const trni_lane_plan *plan = depth == deep ? &r->whole : &r->tail;
    float sum[TRNI_LANE_CELLS];
    trni_lanes t;
    trni_region_pack(r, &r->loader_b, &p->b, r->n + column, columns, TRNI_LANES, k, depth, r->b);
    if (p->b_scale.data) trni_region_scales(&p->b_scale, r->n + column, columns, TRNI_LANES, k, plan->rows, r->b_scale);
    memset(&t, 0, sizeof t);
    t.w = r->b;
    t.w_scale = p->b_scale.data ? r->b_scale : NULL;
    t.x_step = TRNI_REGION_ROWS;
    t.rows = plan->rows;
    t.group = trni_spread_group(p->spread);
    t.first_row = p->first_row;
    t.f32 = p->f32;
    for (int row = 0; row < r->rows; row += t.strip) {
        t.strip = (int)trni_min64(r->rows - row, TRNI_LANE_STRIP);
        t.x = r->a + row;
        t.x_scale = p->a_scale.data ? r->a_scale + row : NULL;
        trni_lanes_sum(plan, &t, sum);
        trni_region_add(r, sum, row, t.strip, column, columns, k / deep);
    }
}

TRNI_COLD void trni_region_pack_a(trni_region *r, int64_t k, int depth)
{
    const trni_product *p = r->p;
    const int rows = (int)r->rows;
    if (r->a_there) return;
    r->a_there = true;
    trni_region_pack(r, &r->loader_a, &p->a, r->m, rows, TRNI_REGION_ROWS, k, depth, r->a);
    if (p->a_scale.data)
        trni_region_scales(&p->a_scale, r->m, rows, TRNI_REGION_ROWS, k, trni_rows_of_depth(p, depth), r->a_scale);
}

/* The same where no lane needs a mark. */
TRNI_COLD bool trni_region_safe(trni_region *r, int64_t column, int64_t k, int depth)
{
    TRNI_LINES(float) sum[(int)TRNI_REGION_ROWS * TRNI_LANES];
    const int columns = (int)trni_min64(r->columns - column, TRNI_LANES), rows = (int)r->rows;
    if (!r->safe || !r->orders->tame_tile(r->safe, &r->loader_b, rows, r->n + column, columns, k, depth, sum))
        return false;
    trni_region_add(r, sum, 0, rows, column, columns, k / trni_tile_depth(r->p));
    return true;
}

TRNI_COLD void trni_region_multiply_lanes(trni_region *r)
{
    const trni_product *p = r->p;
    const int64_t all = trni_product_depth(p), deep = trni_tile_depth(p);
    const trni_lane_passes passes = r->orders->passes(p->isa);
    if (p->accumulate) trni_psum_from_dst(p, r->psum, r->m, r->rows, r->n, r->columns);
    r->array = trni_array_of(trni_spread_group(p->spread), p->isa);
    trni_loader_init(&r->loader_a, &p->a, p->isa);
    trni_loader_init(&r->loader_b, &p->b, p->isa);
    trni_psum_encoder_init(&r->psum_encoder, p);
    r->safe = (trni_safe_work *)(void *)((unsigned char *)r + TRNI_REGION_BYTES);
    if (!r->orders->tame_init(r->safe, p, &passes)) r->safe = NULL;
    r->whole = trni_lane_plan_of(&p->numerics, p->first_row, p->numerics.k_tile, p->f32, p->isa, &passes);
    r->tail = trni_lane_plan_of(&p->numerics, p->first_row, trni_rows_of_depth(p, all % deep), p->f32, p->isa, &passes);
    for (int64_t k = 0; k < all; k += deep) {
        const int depth = (int)trni_min64(all - k, deep);
        r->a_there = false;
        if (r->safe) r->orders->tame_pack_a(r->safe, &r->loader_a, r->m, (int)r->rows, k, depth);
        for (int64_t column = 0; column < r->columns; column += TRNI_LANES) {
            if (trni_region_safe(r, column, k, depth)) continue;
            trni_region_pack_a(r, k, depth);
            trni_region_panel(r, column, k, depth);
        }
    }
    trni_psum_to_dst(p, r->psum, r->m, r->rows, r->n, r->columns);
}

/* By definition, row by row. */
TRNI_LEAN void trni_region_define(const trni_product *p, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    for (int64_t i = m; i < m + rows; i++)
        if (p->integer)
            trni_int8_part(p, i, n, (int)columns);
        else
            trni_define_row(p, i, n, (int)columns);
}

TRNI_FN int64_t trni_regions(const trni_product *p)
{
    return trni_ceil_div(p->a.lanes, TRNI_REGION_ROWS) * trni_ceil_div(p->b.lanes, TRNI_REGION_COLUMNS);
}

/* `space` is what it works in: trni_region_space(orders) bytes on a cache line. */
TRNI_COLD void trni_region_run(const trni_product *p, const trni_fast_orders *orders, int64_t index, void *space)
{
    const int64_t across = trni_ceil_div(p->b.lanes, TRNI_REGION_COLUMNS), m = index / across * TRNI_REGION_ROWS,
                  n = index % across * TRNI_REGION_COLUMNS, rows = trni_min64(p->a.lanes - m, TRNI_REGION_ROWS),
                  columns = trni_min64(p->b.lanes - n, TRNI_REGION_COLUMNS);
    if (p->integer || !orders || !trni_lanes_apply(&p->numerics)) {
        trni_region_define(p, m, rows, n, columns);
        return;
    }
    trni_region *r = (trni_region *)space;
    r->p = p;
    r->orders = orders;
    r->m = m;
    r->rows = rows;
    r->n = n;
    r->columns = columns;
    orders->multiply(r);
}

#endif /* TRNI_ARRAY_PRODUCT_LANES_H */

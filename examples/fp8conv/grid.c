/* grid.c - groups of elements that share a scale: the whole tensor, a row of it, or a block.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdio.h>

static int64_t at_least_1(int64_t n) { return n > 0 ? n : 1; }

static fc_grid whole(const st_tensor *t)
{
    const int64_t n = t->elements;
    return (fc_grid){ 1, 1, n, 1, 1, at_least_1(n), 1, 1, 1, 1 };
}

/* The last two axes are a matrix, all before them count matrices. */
static fc_grid matrices(const st_tensor *t)
{
    fc_grid g = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 };
    for (int i = 0; i < t->rank - 2; i++) g.batches *= t->shape[i];
    if (t->rank >= 2) g.rows = t->shape[t->rank - 2];
    if (t->rank >= 1) g.columns = t->shape[t->rank - 1];
    return g;
}

static void cut(fc_grid *g, int64_t batches, int64_t rows, int64_t columns)
{
    g->block_batches = at_least_1(batches);
    g->block_rows = at_least_1(rows);
    g->block_columns = at_least_1(columns);
    g->scale_rows = fc_parts(g->rows, g->block_rows);
    g->scale_columns = fc_parts(g->columns, g->block_columns);
    g->scales = fc_parts(g->batches, g->block_batches) * g->scale_rows * g->scale_columns;
}

/* How long a block is along an axis of `size` with `scales` scales: all of it, the usual length, or an equal part. */
static bool block_length(int64_t size, int64_t scales, int64_t usual, int64_t *length)
{
    *length = at_least_1(size);
    if (scales == 1) return true;
    *length = usual;
    if (scales > 0 && fc_parts(size, usual) == scales) return true;
    *length = scales > 0 ? size / scales : 0;
    return *length > 0 && size % scales == 0;
}

bool fc_grid_of_scale(const st_tensor *tensor, const st_tensor *scale, const int64_t block[2], fc_grid *grid)
{
    const int rank = tensor->rank;
    int64_t shape[IO_MAX_RANK] = { 0 }, length[3], batch_scales = 1;
    if (scale->elements == 1) return *grid = whole(tensor), true;
    *grid = matrices(tensor);
    if (scale->rank == 1 && rank >= 2) { /* one number per row, without a second axis */
        if (rank != 2 || scale->shape[0] != tensor->shape[0]) return false;
        return cut(grid, 1, 1, grid->columns), true;
    }
    if (scale->rank != rank) return false;
    for (int i = 0; i < rank; i++) shape[i] = scale->shape[i];
    for (int i = 0; i < rank - 2; i++) {
        if (shape[i] != tensor->shape[i] && shape[i] != 1) return false;
        batch_scales *= shape[i];
    }
    if (batch_scales != 1 && batch_scales != grid->batches) return false;
    length[0] = batch_scales == 1 ? grid->batches : 1;
    if (!block_length(grid->rows, rank >= 2 ? shape[rank - 2] : 1, block[0], &length[1])) return false;
    if (!block_length(grid->columns, rank >= 1 ? shape[rank - 1] : 1, block[1], &length[2])) return false;
    return cut(grid, length[0], length[1], length[2]), true;
}

fc_grid fc_grid_of_grain(const st_tensor *tensor, fc_grain grain, const int64_t block[2])
{
    fc_grid g = matrices(tensor);
    if (grain == FC_PER_BLOCK) cut(&g, 1, block[0], block[1]);
    else if (grain == FC_PER_CHANNEL) cut(&g, 1, 1, g.columns);
    else g = whole(tensor);
    return g;
}

void fc_grid_describe(const fc_grid *g, char *text, size_t size)
{
    const bool all_columns = g->block_columns >= g->columns;
    if (g->whole) snprintf(text, size, "tensor");
    else if (g->block_rows == 1 && all_columns) snprintf(text, size, "channel");
    else if (g->block_rows >= g->rows && all_columns) snprintf(text, size, "matrix");
    else snprintf(text, size, "%lldx%lld", (long long)g->block_rows, (long long)g->block_columns);
}

int64_t fc_grid_group(const fc_grid *g, int64_t row, int64_t column)
{
    if (g->scales == 1) return 0;
    const int64_t batch = row / g->rows / g->block_batches;
    return (batch * g->scale_rows + row % g->rows / g->block_rows) * g->scale_columns + column / g->block_columns;
}

int64_t fc_grid_rows_left(const fc_grid *g, int64_t row)
{
    if (g->scales == 1) return INT64_MAX;
    const int64_t inside = row % g->rows, block = g->block_rows - inside % g->block_rows;
    return block < g->rows - inside ? block : g->rows - inside;
}

int64_t fc_grid_columns_left(const fc_grid *g, int64_t column)
{
    if (g->scales == 1) return INT64_MAX;
    const int64_t block = g->block_columns - column % g->block_columns;
    return block < g->columns - column ? block : g->columns - column;
}

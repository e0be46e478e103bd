/* grid.h - how a scale's shape divides a matrix into groups that share one number.
 * SPDX-License-Identifier: MIT
 *
 *     quant_grid g;
 *     const quant_cut cut = { .said = { 128, 128 } };
 *     switch (quant_grid_fit(weight, scale, &cut, &g, &doubt)) { case QUANT_FITS: ... }
 *
 * A tensor is matrices [.., rows, columns]. The shapes of scales that are understood, for [N, K] and, of experts, for
 * [E, N, K]:
 *
 * | shape                         | a number is for                                                              |
 * |-------------------------------|------------------------------------------------------------------------------|
 * | any of one element            | the tensor                                                                   |
 * | [N], [N, 1]; [E, N, 1]        | a row                                                                        |
 * | [1, K]; [E, 1, K]             | a column                                                                     |
 * | [a, b]; [E, a, b]             | a block; the last one is smaller                                             |
 * | [E], [E, 1], [E, 1, 1]        | a matrix                                                                     |
 * | [E, M]                        | M parts of the axis of outputs, which `cut` must know unless only one fits   |
 * | [a, 1, b, 1], [N, 1, 1], ...  | as without so many axes of length 1                                          |
 *
 * The length of a block is what was asked for (--block), else what the configuration says. Where neither says anything
 * it is the one length that fits, of equal parts and powers of two. Two that fit are QUANT_OPEN: never a habit.
 *
 * CONTENTS
 *     quant_grid, quant_parts            groups; how many parts a length has
 *     quant_grid_whole, _matrices        one group; the matrices of a shape, not divided yet
 *     quant_grid_cut                     divided into blocks
 *     quant_cut, quant_grid_fit          what a scale's shape says, with what is known of it
 *     quant_grid_group                   of an element; how far its group reaches: quant_grid_rows_left, _columns_left
 *     quant_grid_describe                in words
 */
#ifndef IO_QUANT_GRID_H
#define IO_QUANT_GRID_H

#include "../safetensors.h"

enum { QUANT_LEAST_BLOCK = 8 }; /* what is shorter is said, or is no block */

IO_FN int64_t quant_parts(int64_t size, int64_t part) { return size / part + (size % part != 0); }

typedef struct quant_grid { /* a tensor as [batches, rows, columns], cut into blocks */
    int64_t batches, rows, columns;
    int64_t block_batches, block_rows, block_columns;
    int64_t scale_rows, scale_columns, scales;
    int64_t whole; /* 1: one scale for the tensor, whatever its shape */
} quant_grid;

/* ---- groups: the whole tensor, a row of it, or a block ---- */

IO_FN int64_t quant_at_least_1(int64_t n) { return n > 0 ? n : 1; }

IO_FN quant_grid quant_grid_whole(const st_tensor *t)
{
    const int64_t n = t->elements;
    const quant_grid g = { 1, 1, n, 1, 1, quant_at_least_1(n), 1, 1, 1, 1 };
    return g;
}

/* The last two axes are a matrix, all before them count matrices. */
IO_FN quant_grid quant_grid_matrices(const st_tensor *t)
{
    quant_grid g = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 };
    for (int i = 0; i < t->rank - 2; i++) g.batches *= t->shape[i];
    if (t->rank >= 2) g.rows = t->shape[t->rank - 2];
    if (t->rank >= 1) g.columns = t->shape[t->rank - 1];
    return g;
}

IO_FN void quant_grid_cut(quant_grid *g, int64_t batches, int64_t rows, int64_t columns)
{
    g->block_batches = quant_at_least_1(batches);
    g->block_rows = quant_at_least_1(rows);
    g->block_columns = quant_at_least_1(columns);
    g->scale_rows = quant_parts(g->rows, g->block_rows);
    g->scale_columns = quant_parts(g->columns, g->block_columns);
    g->scales = quant_parts(g->batches, g->block_batches) * g->scale_rows * g->scale_columns;
}

IO_FN int64_t quant_grid_group(const quant_grid *g, int64_t row, int64_t column)
{
    if (g->scales == 1) return 0;
    const int64_t batch = row / g->rows / g->block_batches;
    return (batch * g->scale_rows + row % g->rows / g->block_rows) * g->scale_columns + column / g->block_columns;
}

IO_FN int64_t quant_grid_rows_left(const quant_grid *g, int64_t row)
{
    if (g->scales == 1) return INT64_MAX;
    const int64_t inside = row % g->rows, block = g->block_rows - inside % g->block_rows;
    return block < g->rows - inside ? block : g->rows - inside;
}

IO_FN int64_t quant_grid_columns_left(const quant_grid *g, int64_t column)
{
    if (g->scales == 1) return INT64_MAX;
    const int64_t block = g->block_columns - column % g->block_columns;
    return block < g->columns - column ? block : g->columns - column;
}

IO_FN void quant_grid_describe(const quant_grid *g, char *text, size_t size)
{
    const bool all_columns = g->block_columns >= g->columns;
    if (g->whole)
        snprintf(text, size, "tensor");
    else if (g->block_rows == 1 && all_columns)
        snprintf(text, size, "channel");
    else if (g->block_columns == 1 && g->block_rows >= g->rows)
        snprintf(text, size, "channel");
    else if (g->block_rows >= g->rows && all_columns)
        snprintf(text, size, "matrix");
    else
        snprintf(text, size, "%lldx%lld", (long long)g->block_rows, (long long)g->block_columns);
}

/* ---- what a scale's shape says ---- */

typedef struct quant_cut { /* what is known of it */
    int64_t asked[2];      /* rows and columns of a block, where that fits; 0: nothing was asked for */
    int64_t said[2];       /* by the configuration; 0, -1: nothing that counts here */
    int64_t group;         /* inputs that share a scale, as the configuration has it; 0, -1: nothing */
    int outputs;           /* which of the last two axes counts outputs: -2 or -1; 0: it is not known */
    bool strict;           /* blocks that are said are the only ones */
} quant_cut;

typedef enum quant_fit { QUANT_MISFIT, QUANT_FITS, QUANT_OPEN, QUANT_CONTRARY } quant_fit;

/* QUANT_OPEN: two lengths of a block of rows (or columns) that fit. */
typedef struct quant_doubt {
    int axis; /* -2: rows; -1: columns; 0: it is not the length of blocks that is open, but the axis */
    int64_t a, b;
} quant_doubt;

typedef struct quant_lengths {
    int count;
    int64_t length[2];
} quant_lengths;

IO_FN void quant_lengths_add(quant_lengths *l, int64_t length)
{
    for (int i = 0; i < l->count; i++)
        if (l->length[i] == length) return;
    if (l->count < 2) l->length[l->count++] = length;
}

/* How long a block can be along an axis of `size` with `scales` scales. */
IO_FN quant_lengths quant_lengths_of(int64_t size, int64_t scales, int64_t said)
{
    quant_lengths l = { 0, { 0, 0 } };
    if (scales < 1 || scales > quant_at_least_1(size)) return l;
    if (said > 0 && quant_parts(size, said) == scales) return quant_lengths_add(&l, said), l;
    if (scales == 1) return quant_lengths_add(&l, quant_at_least_1(size)), l;
    if (scales == size) return quant_lengths_add(&l, 1), l;
    if (said > 0) return l;
    for (int64_t b = QUANT_LEAST_BLOCK; b < size; b *= 2)
        if (quant_parts(size, b) == scales) quant_lengths_add(&l, b);
    if (size % scales == 0 && size / scales >= QUANT_LEAST_BLOCK) quant_lengths_add(&l, size / scales);
    return l;
}

/* One shape of scales with as many axes as the tensor has. */
IO_FN quant_fit quant_fit_shape(const st_tensor *t, const int64_t *shape, const quant_cut *cut, quant_grid *g,
                                quant_doubt *doubt)
{
    const int rank = t->rank;
    int64_t batch_scales = 1, said[2];
    *g = quant_grid_matrices(t);
    for (int i = 0; i < rank - 2; i++) {
        if (shape[i] != t->shape[i] && shape[i] != 1) return QUANT_MISFIT;
        batch_scales *= shape[i];
    }
    if (batch_scales != 1 && batch_scales != g->batches) return QUANT_MISFIT;
    const int64_t down = rank >= 2 ? shape[rank - 2] : 1, across = rank >= 1 ? shape[rank - 1] : 1;
    const bool asked = cut->asked[0] > 0 && quant_parts(g->rows, cut->asked[0]) == down &&
                       quant_parts(g->columns, cut->asked[1]) == across;
    for (int i = 0; i < 2; i++) said[i] = asked ? cut->asked[i] : cut->said[i] > 0 ? cut->said[i] : cut->group;
    const quant_lengths rows = quant_lengths_of(g->rows, down, said[0]);
    const quant_lengths columns = quant_lengths_of(g->columns, across, said[1]);
    if (!rows.count || !columns.count) return cut->said[0] > 0 && !cut->asked[0] ? QUANT_CONTRARY : QUANT_MISFIT;
    const bool as_said = quant_parts(g->rows, quant_at_least_1(cut->said[0])) == down &&
                         quant_parts(g->columns, quant_at_least_1(cut->said[1])) == across;
    if (cut->strict && !asked && cut->said[0] > 0 && cut->said[1] > 0 && !as_said) return QUANT_CONTRARY;
    if (rows.count > 1 || columns.count > 1) {
        const quant_lengths *l = rows.count > 1 ? &rows : &columns;
        *doubt = (quant_doubt){ rows.count > 1 ? -2 : -1, l->length[0], l->length[1] };
        return QUANT_OPEN;
    }
    quant_grid_cut(g, batch_scales == 1 ? g->batches : 1, rows.length[0], columns.length[0]);
    return QUANT_FITS;
}

typedef struct quant_fitting { /* what all shapes that a scale can be read as have yielded so far */
    const st_tensor *tensor;
    const quant_cut *cut;
    quant_fit fit;
    quant_grid grid;
    quant_doubt doubt;
} quant_fitting;

/* The same groups with the same numbers, whatever they are called. */
IO_FN bool quant_grid_same(const quant_grid *a, const quant_grid *b) { return memcmp(a, b, sizeof *a) == 0; }

IO_FN void quant_fit_one(quant_fitting *f, const int64_t *shape)
{
    quant_grid g;
    quant_doubt doubt = { 0, 0, 0 };
    const quant_fit fit = quant_fit_shape(f->tensor, shape, f->cut, &g, &doubt);
    if (fit == QUANT_MISFIT || (f->fit == QUANT_FITS && fit == QUANT_CONTRARY)) return;
    if (f->fit == QUANT_FITS && (fit == QUANT_OPEN || !quant_grid_same(&f->grid, &g))) {
        f->fit = QUANT_OPEN;
        f->doubt = doubt;
        return;
    }
    if (f->fit == QUANT_OPEN) return;
    f->fit = fit;
    f->grid = g;
    f->doubt = doubt;
}

/* [a, 1, b, 1], as ModelOpt has it: each axis with one behind it for what is in the block. */
IO_FN bool quant_fit_paired(quant_fitting *f, const st_tensor *scale)
{
    int64_t shape[IO_MAX_RANK] = { 0 };
    if (scale->rank != 2 * f->tensor->rank) return false;
    for (int i = 0; i < scale->rank; i += 2) {
        if (scale->shape[i + 1] != 1) return false;
        shape[i / 2] = scale->shape[i];
    }
    quant_fit_one(f, shape);
    return true;
}

/* More axes than the tensor has: so many of length 1 drop out, in every way. */
IO_FN void quant_fit_dropped(quant_fitting *f, const st_tensor *scale)
{
    const int rank = scale->rank, drop = rank - f->tensor->rank;
    if (quant_fit_paired(f, scale)) return;
    for (unsigned mask = 0; mask < 1u << rank; mask++) {
        int64_t shape[IO_MAX_RANK] = { 0 };
        int kept = 0, dropped = 0;
        bool ones = true;
        for (int i = 0; i < rank; i++) {
            if (mask >> i & 1)
                dropped++, ones = ones && scale->shape[i] == 1;
            else
                shape[kept++] = scale->shape[i];
        }
        if (ones && dropped == drop) quant_fit_one(f, shape);
    }
}

/* [E] of [E, N, K]: a number for a matrix. [E, M], [M]: of what its axis of outputs has, where that is known. */
IO_FN void quant_fit_fewer(quant_fitting *f, const st_tensor *scale)
{
    const st_tensor *t = f->tensor;
    const int rank = t->rank, lead = rank - 2;
    int64_t shape[IO_MAX_RANK] = { 0 };
    int have = scale->rank;
    bool leading = have >= lead;
    for (int i = 0; i < lead && leading; i++) leading = scale->shape[i] == t->shape[i];
    const int skip = leading ? lead : 0;
    if (!leading)
        for (int i = 0; i < lead; i++) /* one matrix, and no axis that says so */
            if (t->shape[i] != 1) return;
    have -= skip;
    if (have > 1) return;
    for (int i = 0; i < lead; i++) shape[i] = t->shape[i];
    shape[lead] = shape[lead + 1] = 1;
    if (have == 0) {
        quant_fit_one(f, shape);
        return;
    }
    const int64_t n = scale->shape[skip];
    const int axis = rank == 2 && !f->cut->outputs ? -2 : f->cut->outputs;
    if (rank == 2 && n != t->shape[axis == -1]) return; /* one number a row, or nothing that is known */
    if (axis != -1) shape[lead] = n, quant_fit_one(f, shape);
    if (axis != -2) shape[lead] = 1, shape[lead + 1] = n, quant_fit_one(f, shape);
}

/* `tensor` is as its elements are, not as they are packed. */
IO_FN quant_fit quant_grid_fit(const st_tensor *tensor, const st_tensor *scale, const quant_cut *cut, quant_grid *grid,
                               quant_doubt *doubt)
{
    quant_fitting f = { tensor, cut, QUANT_MISFIT, { 0 }, { 0, 0, 0 } };
    if (scale->elements == 1) return *grid = quant_grid_whole(tensor), QUANT_FITS;
    if (scale->elements == 0 || tensor->rank < 1) return QUANT_MISFIT;
    if (scale->rank == tensor->rank)
        quant_fit_one(&f, scale->shape);
    else if (scale->rank > tensor->rank)
        quant_fit_dropped(&f, scale);
    else
        quant_fit_fewer(&f, scale);
    *grid = f.grid;
    *doubt = f.doubt;
    return f.fit;
}

#endif /* IO_QUANT_GRID_H */

/* test_core_poison.c - elements that nothing has written: where they travel, where they are refused, in which words.
 * SPDX-License-Identifier: MIT
 *
 * Random programs run a second time on a model that shares nothing with trnmath/: a flag per element, and every
 * instruction as two plain loops.
 */
#include <stdio.h>

#include "unit/core_poison/groups.h"
#include "unit/one_core.h"

enum { N = 32, PROGRAMS = 30000, STEPS = 12 };
enum { A, B, C, HALF, PSUM, COLUMN, PREDICATE, TILES, HBM = TILES };

static trn_tensor tile[TILES];
static trn_tensor host, empty; /* of `empty` nothing was written */
static float memory[N * N], more[N * N];
static uint64_t bits[N * N * sizeof(float) / 64];
static trn_hbm_written written;
static uint64_t seed = 1;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* A core, and two tensors in its HBM. */
static void furnish(void)
{
    begin(TRN_TRAINIUM2);
    host = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_F32, memory, N, N));
    empty = trn_tensor_2d(TRN_F32, more, N, N);
    assert_int_equal(trn_hbm_written_bytes(empty), sizeof bits);
    trn_hbm_written_begin(&written, empty, bits);
    trn_core_hbm_empty(&core, "empty", empty, &written);
}

/* ---- the model ---- */

typedef struct window {
    int tile, p, f, rows, columns;
} window;

static bool flag[TILES + 1][N][N];

static bool *flag_of(window w, int k) { return &flag[w.tile][w.p + k / w.columns][w.f + k % w.columns]; }

static trn_tensor view(window w)
{
    return trn_tensor_slice(trn_tensor_slice(w.tile == HBM ? empty : tile[w.tile], 0, w.p, w.rows), 1, w.f, w.columns);
}

static window some(int which, int rows, int columns)
{
    const window w = { which, 0, below(N - columns + 1), rows, columns };
    return w;
}

static bool complete(window w)
{
    bool all = true;
    for (int k = 0; k < w.rows * w.columns; k++) all = all && *flag_of(w, k);
    return all;
}

static bool meet(window a, window b)
{
    return a.tile == b.tile && a.f < b.f + b.columns && b.f < a.f + a.columns && a.p < b.p + b.rows &&
           b.p < a.p + a.rows;
}

/* dst's flags from src's: flags are read first, then all written. Turned: dst is [columns, rows]. */
static void carry(window dst, window src, bool turned)
{
    static bool old[N * N];
    for (int k = 0; k < src.rows * src.columns; k++) old[k] = *flag_of(src, k);
    for (int k = 0; k < src.rows * src.columns; k++)
        *flag_of(dst, k) = turned ? old[k % dst.columns * src.columns + k / dst.columns] : old[k];
}

/* How many bytes of the tile that begins there are unwritten, as its core has counted. */
static int64_t unwritten_of(trn_space space, int64_t p, int64_t b)
{
    for (int i = 0; i < core.memory[space].tiles; i++)
        if (core.memory[space].tile[i].live && core.memory[space].tile[i].at.p == p &&
            core.memory[space].tile[i].at.b == b)
            return core.memory[space].tile[i].unwritten;
    fail_msg("no tile at partition %lld, byte %lld", (long long)p, (long long)b);
    return -1;
}

static void compare(void)
{
    int64_t left = 0;
    for (int k = 0; k < N * N * 4; k++) {
        if ((bits[k / 64] >> (k % 64) & 1) != flag[HBM][k / 4 / N][k / 4 % N])
            fail_msg("HBM [%d, %d] is not what the model says", k / 4 / N, k / 4 % N);
        left += !flag[HBM][k / 4 / N][k / 4 % N];
    }
    assert_int_equal(written.unwritten, left);
    for (int t = 0; t < TILES; t++) {
        const trn_space space = t == PSUM ? TRN_SPACE_PSUM : TRN_SPACE_SBUF;
        const int64_t at = (char *)tile[t].data - core.memory[space].base, pitch = core.memory[space].pitch;
        const int64_t bytes = (int64_t)trn_format_bytes(tile[t].format);
        const uint64_t *const is_written = core.memory[space].written;
        int64_t unwritten = 0;
        for (int p = 0; p < N; p++)
            for (int f = 0; f < tile[t].shape[1]; f++)
                for (int64_t b = 0; b < bytes; b++) {
                    const int64_t bit = at + p * pitch + f * bytes + b;
                    if ((is_written[bit / 64] >> (bit % 64) & 1) != flag[t][p][f])
                        fail_msg("tile %d [%d, %d] is %s", t, p, f, flag[t][p][f] ? "lost" : "not carried");
                    unwritten += !flag[t][p][f];
                }
        assert_int_equal(unwritten_of(space, at / pitch, at % pitch), unwritten);
    }
}

/* ---- random instructions; each says whether it is legal ---- */

static bool step_memset(window dst)
{
    const trn_memset_args args = { .dst = view(dst), .value = 1 };
    trn_core_memset(&core, &args);
    for (int k = 0; k < dst.rows * dst.columns; k++) *flag_of(dst, k) = true;
    return true;
}

static bool step_copy(window dst, window src)
{
    const trn_tensor_copy_args args = { .dst = view(dst), .src = view(src) };
    trn_core_tensor_copy(&core, &args);
    carry(dst, src, false);
    return true;
}

static bool step_scaled(window dst, window src) /* a number per partition, too */
{
    const window column = { COLUMN, 0, 0, src.rows, 1 };
    const trn_tensor_scalar_args one = {
        .dst = view(dst), .data = view(src), .op0 = TRN_ALU_MULTIPLY, .operand0_tile = view(column)
    };
    const trn_activation_args other = {
        .dst = view(dst), .src = view(src), .op = TRN_ACT_COPY, .scale_tile = view(column)
    };
    if (below(2))
        trn_core_tensor_scalar(&core, &one);
    else
        trn_core_activation(&core, &other);
    carry(dst, src, false);
    for (int k = 0; k < dst.rows * dst.columns; k++)
        *flag_of(dst, k) = *flag_of(dst, k) && flag[COLUMN][k / dst.columns][0];
    return true;
}

static bool step_pair(window dst, window x, window y)
{
    static bool old[N * N];
    const trn_tensor sums[2] = { view(x), view(y) };
    const trn_tensor_tensor_args vector = { .dst = view(dst), .data1 = sums[0], .data2 = sums[1], .op = TRN_ALU_ADD };
    const trn_dma_compute_args dma = { .dst = view(dst), .srcs = sums, .count = 2 };
    if (below(2))
        trn_core_tensor_tensor(&core, &vector);
    else
        trn_core_dma_compute(&core, &dma);
    for (int k = 0; k < x.rows * x.columns; k++) old[k] = *flag_of(x, k) && *flag_of(y, k);
    for (int k = 0; k < x.rows * x.columns; k++) *flag_of(dst, k) = old[k];
    return true;
}

static bool step_transpose(window src, int by)
{
    const window dst = some(by == 1 ? PSUM : (src.tile + 1) % 3, src.columns, src.rows);
    const trn_vector_transpose_args vector = { .dst = view(dst), .data = view(src) };
    const trn_nc_transpose_args tensor = { .dst = view(dst), .data = view(src) };
    const trn_dma_transpose_args dma = { .dst = view(dst), .src = view(src) };
    if (by == 0)
        trn_core_vector_transpose(&core, &vector);
    else if (by == 1)
        trn_core_nc_transpose(&core, &tensor);
    else
        trn_core_dma_transpose(&core, &dma);
    carry(dst, src, true);
    return true;
}

static bool step_dma(window src) /* any partitions, and any shape of as many elements */
{
    window dst =
        below(2) ? some((src.tile + 1) % 3, src.rows, src.columns) : some((src.tile + 1) % 3, src.columns, src.rows);
    dst.p = below(N - dst.rows + 1);
    src.p = below(N - src.rows + 1);
    const trn_dma_copy_args args = { .dst = view(dst), .src = view(src) };
    trn_core_dma_copy(&core, &args);
    carry(dst, src, false);
    return true;
}

static bool step_shuffle(window src)
{
    static bool old[N * N];
    src.rows = N;
    const window dst = below(2) ? src : some((src.tile + 1) % 3, N, src.columns);
    trn_nc_stream_shuffle_args args = { .dst = view(dst), .src = view(src) };
    for (int i = 0; i < N; i++) args.shuffle_mask[i] = below(4) ? below(N) : 255;
    trn_core_nc_stream_shuffle(&core, &args);
    for (int k = 0; k < N * src.columns; k++) old[k] = *flag_of(src, k);
    for (int k = 0; k < N * src.columns; k++) {
        const int from = args.shuffle_mask[k / src.columns];
        if (from != 255) *flag_of(dst, k) = old[from * src.columns + k % src.columns];
    }
    return true;
}

static bool step_broadcast(window src, window dst)
{
    src.rows = 1;
    src.p = 32 * below(N / 32); /* where engines begin */
    const trn_partition_broadcast_args args = { .dst = view(dst), .src = view(src) };
    trn_core_partition_broadcast(&core, &args);
    for (int k = 0; k < dst.rows * dst.columns; k++) *flag_of(dst, k) = *flag_of(src, k % dst.columns);
    return true;
}

/* The predicate may be incomplete, too: then it is refused. */
static bool step_predicated(window dst, window src)
{
    const window predicate = { PREDICATE, 0, below(N - src.columns + 1), src.rows, src.columns };
    const trn_tensor bits = view(predicate);
    const bool reverse = below(2);
    for (int k = 0; k < src.rows * src.columns; k++)
        ((uint32_t *)bits.data)[k / src.columns * bits.stride[0] + k % src.columns] = below(2) ? 256u : 0u;
    if (below(8)) {
        trn_core_written(&core, bits);
        for (int k = 0; k < src.rows * src.columns; k++) *flag_of(predicate, k) = true;
    }
    const trn_tensor_copy_predicated_args args = {
        .dst = view(dst), .src = view(src), .predicate = bits, .reverse_pred = reverse
    };
    const bool legal = complete(predicate);
    trn_core_tensor_copy_predicated(&core, &args);
    for (int k = 0; k < src.rows * src.columns && legal; k++)
        if ((((uint32_t *)bits.data)[k / src.columns * bits.stride[0] + k % src.columns] != 0) != reverse)
            *flag_of(dst, k) = *flag_of(src, k);
    return legal;
}

/* Where elements count: on their way to HBM. */
static bool step_store(window src)
{
    const window dst = some(HBM, src.rows, src.columns);
    const trn_dma_copy_args args = { .dst = view(dst), .src = view(src) };
    const bool legal = complete(src);
    trn_core_dma_copy(&core, &args);
    if (legal) carry(dst, src, false);
    return legal;
}

static bool step_load(window dst)
{
    window src = some(HBM, dst.rows, dst.columns);
    src.p = below(N - src.rows + 1);
    const trn_dma_copy_args args = { .dst = view(dst), .src = view(src) };
    const bool legal = complete(src);
    trn_core_dma_copy(&core, &args);
    if (legal) carry(dst, src, false);
    return legal;
}

/* A partition's sum is of all of it; beside it, elements as ever. */
static bool step_sums(window dst, window src)
{
    const window sums = { COLUMN, 0, 0, src.rows, 1 };
    bool whole[N];
    for (int p = 0; p < src.rows; p++) whole[p] = complete((window){ src.tile, src.p + p, src.f, 1, src.columns });
    const trn_tensor_reduce_args alone = { .dst = view(sums), .data = view(src), .op = TRN_ALU_ADD };
    const trn_activation_args beside = {
        .dst = view(dst), .src = view(src), .op = TRN_ACT_COPY, .reduce_res = view(sums)
    };
    if (below(2)) {
        trn_core_tensor_reduce(&core, &alone);
    } else {
        trn_core_activation(&core, &beside);
        carry(dst, src, false);
    }
    for (int p = 0; p < src.rows; p++) flag[COLUMN][p][0] = whole[p];
    return true;
}

/* dst[m, n] is of column m and of column n. */
static bool step_product(window stationary, window moving)
{
    const window dst = some(PSUM, stationary.columns, moving.columns);
    const trn_nc_matmul_args args = { .dst = view(dst), .stationary = view(stationary), .moving = view(moving) };
    trn_core_nc_matmul(&core, &args);
    for (int m = 0; m < dst.rows; m++)
        for (int n = 0; n < dst.columns; n++) {
            bool all = true;
            for (int k = 0; k < stationary.rows; k++)
                all = all && flag[stationary.tile][stationary.p + k][stationary.f + m] &&
                      flag[moving.tile][moving.p + k][moving.f + n];
            flag[PSUM][dst.p + m][dst.f + n] = all;
        }
    return true;
}

static bool step(void)
{
    const int rows = below(4) ? below(N) + 1 : N, columns = below(8) + 1, what = below(17);
    const window src = some(below(3), rows, columns), other = some(below(3), rows, columns);
    window dst = some((src.tile + 1 + below(2)) % 3, rows, columns);
    if (meet(dst, other)) dst = other; /* in place */
    switch (what) {
    case 0: return step_memset(dst);
    case 1: return step_memset((window){ COLUMN, 0, 0, rows, 1 });
    case 2: return step_copy(some(HALF, rows, columns), src);
    case 3: return step_copy(dst, some(below(2) ? HALF : PSUM, rows, columns));
    case 4: return below(2) ? step_copy(src, src) : step_copy(dst, src);
    case 5: return step_scaled(dst, src);
    case 6: return step_pair(dst, src, other);
    case 7: return step_transpose(src, below(2));
    case 8: return step_transpose(src, 2);
    case 9: return step_dma(src);
    case 10: return step_shuffle(src);
    case 11: return step_predicated(dst, src);
    case 12: return step_load(dst);
    case 13: return step_sums(dst, src);
    case 14: return step_product(src, other);
    case 15: return step_broadcast(src, some((src.tile + 1) % 3, rows, columns));
    default: return step_store(src);
    }
}

static void tiles(void)
{
    static const char *const name[TILES] = { "a", "b", "c", "half", "psum", "column", "predicate" };
    furnish();
    memset(flag, 0, sizeof flag);
    for (int t = 0; t < TILES; t++) {
        const trn_format format = t == HALF ? TRN_BF16 : t == PREDICATE ? TRN_U32 : TRN_F32;
        tile[t] = t == PSUM ? trn_core_psum(&core, name[t], format, N, N)
                            : trn_core_sbuf(&core, name[t], format, N, t == COLUMN ? 1 : N);
    }
    for (int t = 0; t < TILES; t++) /* most of it is written */
        if (t != PREDICATE)
            step_memset((window){ t, 0, 0, below(4) ? N : below(N) + 1,
                                  t == COLUMN ? 1
                                  : below(2)  ? N
                                              : below(N) + 1 });
}

static void random_programs_agree_with_a_model_of_elements(void **state)
{
    (void)state;
    int refused = 0;
    for (int program = 0; program < PROGRAMS; program++) {
        seed = (uint64_t)program + 1;
        tiles();
        bool legal = true;
        for (int i = 0; i < STEPS && legal; i++) {
            const char *text;
            legal = step();
            if ((trn_core_status(&core, &text) == TRN_OK) != legal)
                fail_msg("program %d, step %d: %s, and the model says %s", program, i, text, legal ? "yes" : "no");
            if (!legal && !strstr(text, "which nothing has written")) fail_msg("program %d: %s", program, text);
        }
        refused += !legal;
        compare();
    }
    assert_true(refused > PROGRAMS / 10 && refused < PROGRAMS - PROGRAMS / 10);
}

/* ---- the sentence ---- */

static trn_tensor sbuf(const char *name) { return trn_core_sbuf(&core, name, TRN_F32, N, N); }

static void copy(trn_tensor dst, trn_tensor src)
{
    const trn_tensor_copy_args args = { .dst = dst, .src = src };
    trn_core_tensor_copy(&core, &args);
}

static void turn(trn_tensor dst, trn_tensor src)
{
    const trn_vector_transpose_args args = { .dst = dst, .data = src };
    trn_core_vector_transpose(&core, &args);
}

static void store(trn_tensor src, int rows)
{
    const trn_dma_copy_args args = { .dst = trn_tensor_slice(host, 0, 0, rows),
                                     .src = trn_tensor_slice(src, 0, 0, rows) };
    trn_core_dma_copy(&core, &args);
}

static void set(trn_tensor dst)
{
    const trn_memset_args args = { .dst = dst, .value = 1 };
    trn_core_memset(&core, &args);
}

static void the_sentence_tells_the_way(void **state)
{
    (void)state;
    furnish();
    trn_tensor x = sbuf("x"), y = sbuf("y"), t = sbuf("t");
    set(trn_tensor_slice(x, 0, 0, 24));
    copy(y, x);
    turn(t, y);
    store(trn_tensor_slice(x, 0, 0, 24), 24);
    copy(t, t); /* within a tile: nothing new to tell */
    turn(y, t);
    store(y, 24); /* the good part */
    fine();
    store(y, N);
    expect("instruction 7, dma_copy: src reads partition 24, element 0 of 'y', which nothing has written (instruction "
           "5, vector_transpose, carried it from 't'; ...; 0, memset, left 8 of 32 partitions of 'x' incomplete)");

    furnish();
    x = sbuf("x"), y = sbuf("y");
    copy(y, x);
    store(y, N);
    expect("instruction 1, dma_copy: src reads partition 0, element 0 of 'y', which nothing has written (instruction "
           "0, tensor_copy, carried it from 'x'; no instruction wrote to 'x')");

    furnish(); /* of two operands the one that is incomplete */
    x = sbuf("x"), y = sbuf("y"), t = sbuf("t");
    set(trn_tensor_slice(x, 1, 0, 8));
    set(trn_tensor_slice(y, 1, 8, 8));
    const trn_tensor_tensor_args add = { .dst = trn_tensor_slice(t, 1, 0, 8),
                                         .data1 = trn_tensor_slice(x, 1, 8, 8),
                                         .data2 = trn_tensor_slice(y, 1, 8, 8),
                                         .op = TRN_ALU_ADD };
    trn_core_tensor_tensor(&core, &add);
    store(t, N);
    expect("instruction 3, dma_copy: src reads partition 0, element 0 of 't', which nothing has written (instruction "
           "2, tensor_tensor, carried it from 'x'; 0, memset, left 32 of 32 partitions of 'x' incomplete)");

    furnish(); /* what carries them within a tile is the last that left it incomplete */
    x = sbuf("x"), y = sbuf("y");
    set(trn_tensor_slice(x, 1, 0, 8));
    copy(x, x);
    copy(y, x);
    store(y, N);
    expect("instruction 3, dma_copy: src reads partition 0, element 8 of 'y', which nothing has written (instruction "
           "2, tensor_copy, carried it from 'x'; 1, tensor_copy, left 32 of 32 partitions of 'x' incomplete)");

    furnish(); /* longer than what is remembered */
    x = sbuf("x"), y = sbuf("y");
    for (int i = 0; i < 300; i++) copy(i % 2 ? x : y, i % 2 ? y : x);
    store(x, N);
    const char *text;
    trn_core_status(&core, &text);
    assert_non_null(strstr(text, "; what came before is forgotten)"));

    furnish(); /* what was carried is mended by a write */
    x = sbuf("x"), y = sbuf("y");
    copy(y, x);
    set(y);
    store(y, N);
    fine();
}

static void what_counts_is_refused(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        furnish();
        const trn_tensor x = sbuf("x"), y = sbuf("y"), one = trn_core_sbuf(&core, "one", TRN_F32, N, 1);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, N, N);
        const trn_range_select_args range = { .dst = y, .on_true_tile = x, .bound0 = one, .bound1 = one };
        const trn_dropout_args drop = { .dst = y, .data = y, .prob_tile = one };
        const trn_activation_args in_registers = {
            .dst = y, .src = x, .op = TRN_ACT_COPY, .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE
        };
        const trn_activation_args goes_on = {
            .dst = y, .src = x, .op = TRN_ACT_COPY, .reduce_res = one, .reduce_cmd = TRN_REDUCE_CMD_REDUCE
        };
        const trn_nc_matmul_args twice = { .dst = acc, .stationary = x, .moving = x, .double_row = true };
        switch (what) {
        case 0: trn_core_range_select(&core, &range); break;
        case 1: trn_core_dropout(&core, &drop); break;
        case 2: trn_core_activation(&core, &in_registers); break;
        case 3: trn_core_activation(&core, &goes_on); break;
        default: trn_core_nc_matmul(&core, &twice);
        }
        const char *text;
        if (!trn_core_status(&core, &text) || !strstr(text, "which nothing has written"))
            fail_msg("%d: %s", what, text);
    }
}

/* What is summed up of a row that was left out is refused where it reaches HBM; the other rows are as they are. */
static void sums_of_what_was_left_out_stay_in_their_rows(void **state)
{
    (void)state;
    for (int what = 0; what < 6; what++) {
        furnish();
        const trn_tensor x = sbuf("x"), y = sbuf("y"), acc = trn_core_psum(&core, "acc", TRN_F32, N, N);
        const trn_tensor one = trn_core_sbuf(&core, "one", TRN_F32, N, 1);
        const trn_tensor eight = trn_core_sbuf(&core, "eight", TRN_F32, N, 8);
        set(trn_tensor_slice(x, what == 5 ? 1 : 0, 0, 24));
        const trn_activation_args sums = { .dst = y, .src = x, .op = TRN_ACT_COPY, .reduce_res = one };
        const trn_max8_args most = { .dst = eight, .src = x };
        const trn_bn_stats_args stats = { .dst = trn_tensor_slice(eight, 1, 0, 6), .data = x };
        const trn_tensor_reduce_args sum = { .dst = one, .data = x, .op = TRN_ALU_ADD };
        const trn_nc_matmul_args product = { .dst = acc, .stationary = x, .moving = x };
        trn_tensor made = one;
        switch (what) {
        case 0: trn_core_activation(&core, &sums); break;
        case 1: trn_core_tensor_reduce(&core, &sum); break;
        case 2: trn_core_max8(&core, &most), made = trn_tensor_slice(eight, 1, 0, 8); break;
        case 3: trn_core_bn_stats(&core, &stats), made = trn_tensor_slice(eight, 1, 0, 6); break;
        case 4: trn_core_activation(&core, &sums), made = y; break;
        default: trn_core_nc_matmul(&core, &product), copy(y, acc), made = y;
        }
        fine();
        const trn_dma_copy_args good = {
            .dst = trn_tensor_slice(trn_tensor_slice(host, 0, 0, 24), 1, 0, what == 5 ? 24 : made.shape[1]),
            .src = trn_tensor_slice(trn_tensor_slice(made, 0, 0, 24), 1, 0, what == 5 ? 24 : made.shape[1])
        };
        const trn_dma_copy_args bad = { .dst = trn_tensor_slice(host, 1, 0, made.shape[1]), .src = made };
        trn_core_dma_copy(&core, &good);
        fine();
        trn_core_dma_copy(&core, &bad);
        const char *text;
        if (!trn_core_status(&core, &text) ||
            !strstr(text, what == 5 ? "partition 0, element 24" : "partition 24, element 0"))
            fail_msg("%d: %s", what, text);
    }
}

/* ---- HBM with nothing in it ---- */

static void load(trn_tensor dst, trn_tensor src)
{
    const trn_dma_copy_args args = { .dst = dst, .src = src };
    trn_core_dma_copy(&core, &args);
}

static trn_tensor window_of(trn_tensor t, int64_t p, int64_t rows, int64_t f, int64_t columns)
{
    return trn_tensor_slice(trn_tensor_slice(t, 0, p, rows), 1, f, columns);
}

static void hbm_that_nothing_wrote_is_refused(void **state)
{
    (void)state;
    furnish();
    trn_tensor x = sbuf("x");
    load(x, empty);
    expect("instruction 0, dma_copy: src reads row 0, element 0 of 'empty', which nothing has written");

    furnish(); /* a part; the other part is fine */
    x = sbuf("x");
    set(x);
    load(window_of(empty, 0, N, 0, 20), window_of(x, 0, N, 0, 20));
    load(window_of(x, 0, N, 0, 20), window_of(empty, 0, N, 0, 20));
    fine();
    load(window_of(x, 3, 2, 0, 4), window_of(empty, 3, 2, 18, 4));
    expect("instruction 3, dma_copy: src reads row 3, element 20 of 'empty', which nothing has written");

    furnish(); /* every second column */
    x = sbuf("x");
    set(x);
    trn_tensor even = window_of(empty, 0, N, 0, 16);
    even.stride[1] = 2;
    load(even, window_of(x, 0, N, 0, 16));
    load(window_of(x, 0, N, 0, 16), even);
    fine();
    load(window_of(x, 0, 1, 0, 2), window_of(empty, 7, 1, 4, 2));
    expect("instruction 3, dma_copy: src reads row 7, element 5 of 'empty', which nothing has written");

    furnish(); /* what is added to is read */
    x = sbuf("x");
    set(x);
    const trn_dma_copy_args adds = { .dst = empty, .src = x, .accumulate = true };
    trn_core_dma_copy(&core, &adds);
    expect("instruction 1, dma_copy: dst reads row 0, element 0 of 'empty', which nothing has written");

    furnish(); /* the caller has filled it, or does not ask */
    x = sbuf("x");
    trn_core_written(&core, empty);
    load(x, empty);
    trn_core_result(&core, empty);
    fine();
    assert_int_equal(written.unwritten, 0);
}

static void rows_by_an_index_are_written_and_read_one_by_one(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        furnish();
        const trn_tensor x = sbuf("x"), rows = trn_core_sbuf(&core, "rows", TRN_I32, 4, 1);
        const int32_t there[4] = { 2, 30, 7, -1 }, wanted[4] = { 30, 2, 99, bad ? 3 : 7 };
        set(x);
        trn_core_written(&core, rows);
        for (int i = 0; i < 4; i++) *((int32_t *)rows.data + i * rows.stride[0]) = there[i];
        const trn_dma_copy_args scatter = {
            .dst = empty, .src = trn_tensor_slice(x, 0, 0, 4), .dst_index = rows, .oob_mode = TRN_OOB_SKIP
        };
        trn_core_dma_copy(&core, &scatter);
        fine();
        assert_int_equal(written.unwritten, (N - 3) * N * 4);
        for (int i = 0; i < 4; i++) *((int32_t *)rows.data + i * rows.stride[0]) = wanted[i];
        const trn_dma_copy_args gather = {
            .dst = trn_tensor_slice(x, 0, 0, 4), .src = empty, .src_index = rows, .oob_mode = TRN_OOB_SKIP
        };
        trn_core_dma_copy(&core, &gather);
        if (bad)
            expect("instruction 2, dma_copy: src reads row 3, element 0 of 'empty', which nothing has written");
        else
            fine();
    }
}

static void results_are_whole(void **state)
{
    (void)state;
    furnish();
    trn_tensor x = sbuf("x");
    set(x);
    trn_core_result(&core, x);
    trn_core_result(&core, host);
    fine();
    trn_core_result(&core, empty);
    expect("of the result 'empty' nothing has written 1024 of 1024 elements");

    furnish();
    x = sbuf("x");
    set(x);
    load(window_of(empty, 0, N, 0, 8), window_of(x, 0, N, 0, 8));
    load(window_of(empty, 0, 5, 8, 24), window_of(x, 0, 5, 8, 24));
    trn_core_result(&core, window_of(empty, 0, 5, 0, N));
    fine();
    trn_core_result(&core, empty);
    expect("of the result 'empty' nothing has written 648 of 1024 elements, all within [5:32, 8:32]");

    furnish();
    x = sbuf("x");
    set(window_of(x, 0, N, 0, 8));
    trn_core_result(&core, x);
    expect("trn_core_result: the view reads partition 0, element 8 of 'x', which nothing has written");
}

static void two_cores_share_what_was_written(void **state)
{
    (void)state;
    static trn_core other;
    const trn_core_args args = { .generation = TRN_TRAINIUM2 };
    furnish();
    assert_int_equal(trn_core_begin(&other, &args), TRN_OK);
    trn_core_hbm_empty(&other, "empty", empty, &written);
    const trn_tensor x = sbuf("x"), y = trn_core_sbuf(&other, "y", TRN_F32, N, N);
    set(x);
    load(window_of(empty, 0, 8, 0, N), window_of(x, 0, 8, 0, N));
    const trn_dma_copy_args good = { .dst = window_of(y, 0, 8, 0, N), .src = window_of(empty, 0, 8, 0, N) };
    const trn_dma_copy_args bad = { .dst = window_of(y, 0, 9, 0, N), .src = window_of(empty, 0, 9, 0, N) };
    assert_int_equal(trn_core_dma_copy(&other, &good), TRN_OK);
    assert_int_equal(trn_core_dma_copy(&other, &bad), TRN_EINVAL);
    trn_core_end(&other);
}

static void a_tile_without_poison_takes_it(void **state)
{
    (void)state;
    const trn_core_tile_args loose = {
        .name = "loose", .format = TRN_F32, .rank = 2, .shape = { N, N }, .no_poison = true
    };
    furnish();
    const trn_tensor x = sbuf("x"), y = trn_core_tile(&core, &loose), z = sbuf("z");
    copy(y, x);
    store(y, N);
    copy(z, y);
    store(z, N);
    fine();
    copy(z, x);
    store(z, N);
    expect("instruction 5, dma_copy: src reads partition 0, element 0 of 'z', which nothing has written (instruction "
           "4, tensor_copy, carried it from 'x'; no instruction wrote to 'x')");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_agree_with_a_model_of_elements),
        cmocka_unit_test(the_sentence_tells_the_way),
        cmocka_unit_test(what_counts_is_refused),
        cmocka_unit_test(sums_of_what_was_left_out_stay_in_their_rows),
        cmocka_unit_test(hbm_that_nothing_wrote_is_refused),
        cmocka_unit_test(rows_by_an_index_are_written_and_read_one_by_one),
        cmocka_unit_test(results_are_whole),
        cmocka_unit_test(two_cores_share_what_was_written),
        cmocka_unit_test(a_tile_without_poison_takes_it),
    };
    return cmocka_run_group_tests_name("core_poison", tests, NULL, NULL) + core_poison_classes() +
           core_poison_culprits();
}

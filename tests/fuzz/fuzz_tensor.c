/* fuzz_tensor.c - random argument structs into the Tensor engine: its instructions, and products of any size.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_tensor [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * As fuzz_args.c: plausible calls of every mode (plain, double rows, MX, int8, transposes), up to four mutations each;
 * no crash, no hang, no write on failure, none outside dst on success, none beyond scratch of exactly the size that was
 * asked for. What succeeds is asked again of the portable kernels now and then, which must write the same bits:
 * operands are random bytes here, so NaN, infinities, subnormals and scales of any size meet. Prints how often each
 * status came.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_matmul.h"
#include "twin/views.h"

enum { SCRATCH = 1 << 21, CANARY = 64, FIRST_INPUT = ARENA / 4 };

static unsigned char *scratch;

typedef enum call { MATMUL, NC_MATMUL, NC_MATMUL_MX, NC_TRANSPOSE, CALLS } call;
static const char *const call_name[CALLS] = { "trn_matmul", "trn_nc_matmul", "trn_nc_matmul_mx", "trn_nc_transpose" };

typedef enum mode { WIDE, NARROW, DOUBLE_ROW, INT8, MX, TRANSPOSE, MODES } mode;

/* ---- plausible arguments ---- */

static int plausible_size(void) { return one_in(10) ? below(130) : below(14); }

static trn_format operand_format(mode how)
{
    /* clang-format off */
    static const trn_format narrow[] = { TRN_F8_E4M3,   TRN_F8_E5M2, TRN_F8_E3M4, TRN_CFP8,
                                         TRN_F8_E4M3FN, TRN_BF16,    TRN_F16 };
    static const trn_format mx[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };
    static const trn_format any[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E3M4,
                                      TRN_F8_E4M3FN, TRN_CFP8, TRN_F4_E2M1, TRN_I8 };
    /* clang-format on */
    switch (how) {
    case WIDE: return one_in(2) ? TRN_F32 : TRN_TF32;
    case NARROW: return narrow[below(7)];
    case DOUBLE_ROW: return narrow[below(5)];
    case INT8: return TRN_I8;
    case MX: return mx[below(3)];
    default: return any[below(11)];
    }
}

/* Of the second operand: one that meets the first, as a rule. */
static trn_format partner_of(trn_format first, mode how)
{
    trn_format second = operand_format(how);
    if (how == TRANSPOSE) second = first;
    if (how != MX && first == TRN_F8_E4M3FN && second == TRN_F8_E4M3) second = first;
    if (how != MX && first == TRN_F8_E4M3 && second == TRN_F8_E4M3FN) second = first;
    return second;
}

static trn_generation generation_for(trn_format a, trn_format b)
{
    const bool old = a == TRN_F8_E3M4 || b == TRN_F8_E3M4 || a == TRN_CFP8 || b == TRN_CFP8;
    if (a == TRN_I8 || b == TRN_I8) return one_in(20) ? TRN_GENERATION_DEFAULT : TRN_TRAINIUM1;
    if (one_in(3)) return TRN_GENERATION_DEFAULT;
    return (trn_generation)(TRN_TRAINIUM1 + below(old ? 2 : 3));
}

/* dst lies in the first quarter of the arena, operands and scales anywhere behind it, now and then at the very end. */
static trn_tensor dst_view(trn_format format, int64_t m, int64_t n)
{
    const int64_t shape[2] = { m, n };
    trn_tensor t = plausible_view(format, 2, shape, 0, false);
    if (one_in(8)) t.data = arena;
    plausible_cfp8(&t);
    return t;
}

static trn_tensor input_view(trn_format format, int rank, const int64_t *shape)
{
    trn_tensor t = plausible_view(format, rank, shape, 0, true);
    const int64_t bytes = claimed(&t), room = ARENA - FIRST_INPUT;
    if (bytes >= 0 && bytes <= room) t.data = arena + ARENA - bytes - (one_in(4) ? 0 : below((int)(room - bytes) + 1));
    plausible_cfp8(&t);
    return t;
}

static trn_tensor input_2d(trn_format format, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = { rows, columns };
    return input_view(format, 2, shape);
}

/* May this be filled, element by element? A broadcast may be long. */
static bool is_small_matrix(const trn_tensor *t)
{
    return t->rank == 2 && t->data && claimed(t) > 0 && t->shape[0] <= ARENA && t->shape[1] <= ARENA;
}

/* Scales that leave something finite, mostly. */
static void tame_scales(const trn_tensor *t)
{
    if (!is_small_matrix(t) || t->format != TRN_F8_E8M0 || one_in(4)) return;
    int64_t stride[TRN_MAX_RANK];
    view_strides(t, stride);
    for (int64_t i = 0; i < t->shape[0]; i++)
        for (int64_t j = 0; j < t->shape[1]; j++) {
            unsigned char *at = (unsigned char *)t->data + i * stride[0] + j * stride[1];
            if (!one_in(200)) *at = (unsigned char)(117 + *at % 20);
        }
}

/* An identity, a permutation or less, in any format that has a one. */
static void write_permutation(const trn_tensor *t)
{
    int64_t stride[TRN_MAX_RANK];
    const int64_t bytes = (int64_t)trn_format_bytes(t->format);
    if (!is_small_matrix(t) || one_in(8)) return;
    view_strides(t, stride);
    for (int64_t k = 0; k < t->shape[0]; k++)
        for (int64_t n = 0; n < t->shape[1]; n++) {
            const uint32_t code =
                k == (n + 3) % t->shape[0] ? trn_encode(t->format, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0) : 0;
            memcpy((unsigned char *)t->data + (k * stride[0] + n * stride[1]) * bytes, &code, (size_t)bytes);
        }
}

/* Zeros and ones, so that a hint is true. */
static void write_onezero(const trn_tensor *t)
{
    unsigned char *at = (unsigned char *)t->data;
    const int64_t bytes = claimed(t), size = (int64_t)trn_format_bytes(t->format);
    const uint32_t one = trn_encode(t->format, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    for (int64_t i = 0; t->data && i + size <= bytes; i += size) {
        const uint32_t code = one_in(2) ? one : 0;
        memcpy(at + i, &code, (size_t)size);
    }
}

static trn_format plausible_psum(trn_generation generation, mode how, trn_format data)
{
    if (how == INT8) return TRN_I32;
    if (how == TRANSPOSE && !one_in(8)) return trn_format_bits(data) == 8 ? TRN_U16 : data;
    return generation == TRN_TRAINIUM3 && one_in(2) ? TRN_BF16 : TRN_F32;
}

static trn_format plausible_result(mode how)
{
    static const trn_format result[] = { TRN_F32,       TRN_F32,     TRN_BF16,    TRN_F16, TRN_F8_E4M3,
                                         TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4, TRN_CFP8 };
    return how == INT8 ? TRN_I32 : result[below(9)];
}

static trn_pe_tile some_tile(bool position)
{
    static const int place[] = { 0, 0, 32, 64, 96 }, size[] = { 0, 128, 128, 64, 32 };
    trn_pe_tile tile = { position ? place[below(5)] : size[below(5)], position ? place[below(5)] : size[below(5)] };
    if (one_in(4)) *(one_in(2) ? &tile.row : &tile.column) = absurd_int();
    return tile;
}

/* ---- what would be accepted must not take forever: a broadcast may be long without being large ---- */

typedef struct views {
    trn_tensor *view[5];
    int count;
} views;

static void keep_all_inside(const views *v)
{
    for (int i = 0; i < v->count; i++)
        if (v->view[i]->rank) keep_inside(v->view[i]);
}

static void shrink(trn_tensor *t, int64_t most)
{
    for (int i = 0; t->rank >= 1 && i < t->rank && i < TRN_MAX_RANK; i++)
        if (t->shape[i] > most) t->shape[i] = most;
}

static void bound_work(const views *v)
{
    keep_all_inside(v);
    long double work = 1;
    const trn_tensor *a = v->view[1], *b = v->view[2];
    for (int i = 0; i < a->rank && i < TRN_MAX_RANK; i++) work *= (long double)a->shape[i];
    work *= b->rank >= 2 && b->rank <= 3 ? (long double)b->shape[1] * (long double)(b->rank == 3 ? b->shape[2] : 1) : 1;
    for (int i = 0; i < 3; i++) /* alone, it may be of any length when there is nothing to compute */
        if (v->view[i]->rank >= 1 && work > 8 * MOST_WORK) shrink(v->view[i], 32);
    keep_all_inside(v);
}

/* ---- the call, and what must be true of it ---- */

typedef struct attempt {
    call which;
    void *args;
    trn_isa *isa;
    trn_error **error;
    const views *views;
} attempt;

static trn_status run_call(const attempt *t)
{
    switch (t->which) {
    case MATMUL: return trn_matmul((const trn_matmul_args *)t->args);
    case NC_MATMUL: return trn_nc_matmul((const trn_nc_matmul_args *)t->args);
    case NC_MATMUL_MX: return trn_nc_matmul_mx((const trn_nc_matmul_mx_args *)t->args);
    default: return trn_nc_transpose((const trn_nc_transpose_args *)t->args);
    }
}

/* The portable kernels, with scratch of their own. */
static trn_status run_portable(const attempt *t)
{
    *t->isa = TRN_ISA_PORTABLE;
    if (t->which == MATMUL) ((trn_matmul_args *)t->args)->scratch = NULL;
    return run_call(t);
}

static void check_call(const attempt *t)
{
    static unsigned char after[ARENA];
    trn_error error = fresh_error();
    const trn_tensor *dst = t->views->view[0];
    *t->error = one_in(3) ? NULL : &error;
    memcpy(snapshot, arena, ARENA);
    close_arena((const trn_tensor *const *)t->views->view, t->views->count);
    const trn_status status = run_call(t);
    open_arena();
    count_status((int)t->which, status);
    if (*t->error) check_error(status, &error);
    if (status == TRN_OK && one_in(3)) {
        memcpy(after, arena, ARENA);
        memcpy(arena, snapshot, ARENA);
        if (run_portable(t) != TRN_OK) say("the portable kernels refuse what others accept");
        if (memcmp(after, arena, ARENA) != 0) say("the portable kernels wrote other bits");
    }
    check_arena(status, dst);
    *t->error = NULL;
}

/* ---- any size ---- */

static void mutate_matmul(trn_matmul_args *a, const views *v)
{
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--) switch (below(14)) {
        case 0: a->rounding = (trn_rounding)absurd_int(); break;
        case 1: a->overflow = (trn_overflow)absurd_int(); break;
        case 2: a->generation = (trn_generation)absurd_int(); break;
        case 3: a->isa = (trn_isa)absurd_int(); break;
        case 4: a->double_row = !a->double_row; break;
        case 5: (one_in(2) ? &a->a_scale : &a->b_scale)->rank = absurd_int(); break;
        case 6: v->view[below(5)]->cfp8.exponent_bits = absurd_int(); break;
        case 7: v->view[below(5)]->cfp8.bias = absurd_int(); break;
        default: mutate_view(v->view[below(5)], v->view[below(5)]); break;
        }
}

/* Scratch of exactly the size asked for, between a canary and a page that may not be touched; or of less. */
static void check_matmul(trn_matmul_args *a, const attempt *t)
{
    const size_t needed = trn_matmul_scratch_bytes(a);
    const bool own = one_in(2) && needed > 0 && needed <= SCRATCH - 2 * CANARY, enough = !one_in(4);
    unsigned char *at = scratch + SCRATCH - needed - (one_in(2) ? 0 : (size_t)below(CANARY));
    memset(at - CANARY, 0xc5, (size_t)(scratch + SCRATCH - at) + CANARY);
    if (own) {
        a->scratch = at;
        a->scratch_bytes = enough ? needed : needed - 1 - (size_t)below((int)needed);
    }
    check_call(t);
    for (int i = 0; i < CANARY; i++)
        if (at[-1 - i] != 0xc5) say("something before scratch was written");
    for (unsigned char *behind = at + needed; behind < scratch + SCRATCH; behind++)
        if (*behind != 0xc5) say("something behind scratch was written");
    if (!own || enough) return;
    for (size_t i = 0; i < needed; i++)
        if (at[i] != 0xc5) say("scratch that is too small was written");
    if (run_call(t) != TRN_ENOSPC) say("scratch was too small and nobody said so");
}

static void fuzz_matmul(void)
{
    const mode how = (mode)below(MX + 1);
    int64_t m = plausible_size(), n = plausible_size(), k = one_in(4) ? below(700) : plausible_size();
    if (one_in(4)) *(one_in(2) ? &m : &n) = 1;
    if (how == MX) k = one_in(30) ? k : k / 32 * 32 + (one_in(2) ? 32 : 0);
    if (one_in(40)) empty_but_huge(&m, &n, &k);
    const trn_format a_format = operand_format(how);
    trn_numerics numerics = plausible_numerics();
    trn_matmul_args a;
    memset(&a, 0, sizeof a);
    a.dst = dst_view(plausible_result(how), m, n);
    a.a = input_2d(a_format, m, k);
    a.b = input_2d(partner_of(a_format, how), k, n);
    if (how == MX) {
        a.a_scale = input_2d(TRN_F8_E8M0, m, k / 32);
        a.b_scale = input_2d(TRN_F8_E8M0, n, k / 32);
    }
    a.generation = generation_for(a_format, a.b.format);
    a.accumulate = one_in(2);
    a.double_row = how == DOUBLE_ROW;
    a.rounding = (trn_rounding)below(6);
    a.overflow = (trn_overflow)below(2);
    a.seed = cases_next(&rng);
    a.stream = cases_next(&rng);
    a.numerics = one_in(2) ? &numerics : NULL;

    const views v = { { &a.dst, &a.a, &a.b, &a.a_scale, &a.b_scale }, 5 };
    const attempt t = { MATMUL, &a, &a.isa, &a.error, &v };
    mutate_matmul(&a, &v);
    bound_work(&v);
    tame_scales(&a.a_scale);
    tame_scales(&a.b_scale);
    check_matmul(&a, &t);
}

/* ---- instructions ---- */

static void mutate_nc(trn_nc_matmul_args *a, const views *v)
{
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--) switch (below(14)) {
        case 0: a->rounding = (trn_rounding)absurd_int(); break;
        case 1: a->generation = (trn_generation)absurd_int(); break;
        case 2: a->isa = (trn_isa)absurd_int(); break;
        case 3: a->double_row = !a->double_row; break;
        case 4: a->is_transpose = !a->is_transpose; break;
        case 5: *(one_in(2) ? &a->is_moving_onezero : &a->is_stationary_onezero) = true; break;
        case 6: v->view[below(3)]->cfp8.exponent_bits = absurd_int(); break;
        case 7: v->view[below(3)]->cfp8.bias = absurd_int(); break;
        default: mutate_view(v->view[below(3)], v->view[below(3)]); break;
        }
}

/* *written follows the call: true after a success, untouched by a failure. */
static void check_written(const attempt *t, bool *written)
{
    const bool before = *written;
    const long good = tally[t->which][TRN_OK];
    check_call(t);
    if (*written != (tally[t->which][TRN_OK] > good || before)) say("psum_written does not say what happened");
}

static void fuzz_nc_matmul(void)
{
    static const mode modes[] = { WIDE, NARROW, DOUBLE_ROW, INT8, TRANSPOSE };
    const mode how = modes[below(5)];
    int64_t m = one_in(50) ? 129 : plausible_size(), n = one_in(50) ? 513 : plausible_size(),
            k = one_in(50) ? 129 : plausible_size();
    if (how == TRANSPOSE && !one_in(4)) n = k;
    if (one_in(40)) empty_but_huge(&m, &n, &k);
    const trn_format format = operand_format(how);
    const int64_t stationary[3] = { k, how == DOUBLE_ROW ? 2 : m, m }, moving[3] = { k, how == DOUBLE_ROW ? 2 : n, n };
    const int rank = how == DOUBLE_ROW ? 3 : 2;
    bool written = one_in(2);
    trn_numerics numerics = plausible_numerics();
    trn_nc_matmul_args a;
    memset(&a, 0, sizeof a);
    a.stationary = input_view(format, rank, stationary);
    a.moving = input_view(partner_of(format, how), rank, moving);
    a.generation = generation_for(format, a.moving.format);
    a.dst = dst_view(plausible_psum(a.generation, how, format), m, n);
    a.accumulate = how != TRANSPOSE && one_in(2);
    a.double_row = how == DOUBLE_ROW;
    a.is_transpose = how == TRANSPOSE;
    if (one_in(3)) a.tile_position = some_tile(true);
    if (one_in(3)) a.tile_size = some_tile(false);
    a.psum_written = one_in(2) ? &written : NULL;
    a.rounding = (trn_rounding)below(6);
    a.seed = cases_next(&rng);
    a.stream = cases_next(&rng);
    a.numerics = one_in(2) ? &numerics : NULL;

    const views v = { { &a.dst, &a.stationary, &a.moving }, 3 };
    const attempt t = { NC_MATMUL, &a, &a.isa, &a.error, &v };
    mutate_nc(&a, &v);
    bound_work(&v);
    if (a.is_transpose) write_permutation(&a.moving);
    if (a.is_stationary_onezero && !one_in(4)) write_onezero(&a.stationary);
    if (a.is_moving_onezero && !one_in(4)) write_onezero(&a.moving);
    if (a.psum_written)
        check_written(&t, &written);
    else
        check_call(&t);
}

static void mutate_nc_mx(trn_nc_matmul_mx_args *a, const views *v)
{
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--) switch (below(10)) {
        case 0: a->rounding = (trn_rounding)absurd_int(); break;
        case 1: a->generation = (trn_generation)absurd_int(); break;
        case 2: a->isa = (trn_isa)absurd_int(); break;
        default: mutate_view(v->view[below(5)], v->view[below(5)]); break;
        }
}

static void fuzz_nc_matmul_mx(void)
{
    int64_t m = one_in(20) ? plausible_size() : 2 * below(10), n = one_in(3) ? plausible_size() : below(9);
    int64_t k = one_in(20) ? plausible_size() : 32 * below(one_in(4) ? 5 : 3);
    if (one_in(40)) empty_but_huge(&m, &n, &k);
    const int64_t stationary[3] = { k, m, 4 }, moving[3] = { k, n, 4 };
    bool written = one_in(2);
    trn_numerics numerics = plausible_numerics();
    trn_nc_matmul_mx_args a;
    memset(&a, 0, sizeof a);
    a.generation = one_in(2) ? TRN_TRAINIUM3 : TRN_GENERATION_DEFAULT;
    a.dst = dst_view(one_in(2) ? TRN_F32 : TRN_BF16, m, n);
    a.stationary = input_view(operand_format(MX), 3, stationary);
    a.moving = input_view(operand_format(MX), 3, moving);
    const bool tiles = k > 0 && k % 32 == 0; /* else dense scales only */
    a.stationary_scale = input_2d(TRN_F8_E8M0, tiles && one_in(3) ? k - 4 * below(4) : k / 8, m);
    a.moving_scale = input_2d(TRN_F8_E8M0, tiles && one_in(3) ? k - 4 * below(4) : k / 8, n);
    a.accumulate = one_in(2);
    if (one_in(3)) a.tile_position = some_tile(true);
    if (one_in(3)) a.tile_size = some_tile(false);
    a.psum_written = one_in(2) ? &written : NULL;
    a.rounding = (trn_rounding)below(6);
    a.seed = cases_next(&rng);
    a.stream = cases_next(&rng);
    a.numerics = one_in(2) ? &numerics : NULL;

    const views v = { { &a.dst, &a.stationary, &a.moving, &a.stationary_scale, &a.moving_scale }, 5 };
    const attempt t = { NC_MATMUL_MX, &a, &a.isa, &a.error, &v };
    mutate_nc_mx(&a, &v);
    bound_work(&v);
    tame_scales(&a.stationary_scale);
    tame_scales(&a.moving_scale);
    if (a.psum_written)
        check_written(&t, &written);
    else
        check_call(&t);
}

static void fuzz_nc_transpose(void)
{
    const trn_format format = one_in(8) ? (trn_format)absurd_int() : operand_format(TRANSPOSE);
    int64_t rows = one_in(50) ? 129 : plausible_size(), columns = one_in(50) ? 129 : plausible_size(), nothing = 0;
    if (one_in(40)) empty_but_huge(&rows, &columns, &nothing);
    trn_nc_transpose_args a;
    memset(&a, 0, sizeof a);
    a.generation = generation_for(format, format);
    a.data = input_2d(format, rows, columns);
    a.dst = dst_view(a.generation == TRN_TRAINIUM1 ? (format == TRN_I8 ? TRN_I32 : TRN_F32)
                                                   : plausible_psum(a.generation, TRANSPOSE, format),
                     columns, rows);

    const views v = { { &a.dst, &a.data, &a.data }, 3 };
    const attempt t = { NC_TRANSPOSE, &a, &a.isa, &a.error, &v };
    for (int i = one_in(2) ? 0 : below(4); i > 0; i--) switch (below(6)) {
        case 0: a.generation = (trn_generation)absurd_int(); break;
        case 1: a.isa = (trn_isa)absurd_int(); break;
        case 2: a.data.cfp8.bias = absurd_int(); break;
        default: mutate_view(v.view[below(2)], v.view[below(2)]); break;
        }
    keep_all_inside(&v);
    check_call(&t);
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_matmul, fuzz_nc_matmul, fuzz_nc_matmul_mx,
                                          fuzz_matmul, fuzz_nc_matmul, fuzz_nc_transpose };
    scratch = (unsigned char *)guarded(SCRATCH);
    const long count = fuzz(argc, argv, turn, 6);
    print_tally(call_name, CALLS, count);
    for (int c = 0; c < CALLS && count >= 20000; c++)
        if (tally[c][TRN_EUNSUPPORTED] == 0 || tally[c][TRN_EFORMAT] == 0 || tally[c][TRN_ESHAPE] == 0)
            say("a status never came");
    if (count >= 20000 && (tally[MATMUL][TRN_ENOSPC] == 0 || tally[NC_MATMUL][TRN_ELIMIT] == 0))
        say("a status never came");
    return 0;
}

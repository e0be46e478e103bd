/* fuzz_sparse.c - random argument structs into structured sparsity: packing, tags, and products of both levels.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_sparse [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * As fuzz_args.c: plausible calls, up to four mutations each; no crash, no hang, no write on failure, none outside the
 * results on success. Prints how often each status came.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_sparse.h"
#include "twin/views.h"

enum { SCRATCH = 1 << 21, PARTS = 4 };

static unsigned char *scratch;

typedef enum call { MATMUL, NC_MATMUL, PACK, UNPACK, TAGS_PACK, TAGS_UNPACK, CALLS } call;
static const char *const call_name[CALLS] = { "trn_sparse_matmul", "trn_nc_matmul_sparse", "trn_sparse_pack",
                                              "trn_sparse_unpack", "trn_sparse_tags_pack", "trn_sparse_tags_unpack" };

/* ---- plausible arguments ---- */

static trn_sparse_pattern some_pattern(void)
{
    static const trn_sparse_pattern known[] = {
        { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 }
    };
    return known[below(7)];
}

static trn_format some_format(bool wide)
{
    static const trn_format narrow[] = { TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E3M4, TRN_F8_E4M3FN };
    static const trn_format both[] = { TRN_F32, TRN_TF32 };
    return wide ? both[below(2)] : narrow[below(6)];
}

/* A view in one of four parts of the arena. */
static trn_tensor view_in(trn_format format, int64_t rows, int64_t columns, int part, bool input)
{
    const int64_t shape[2] = { rows, columns };
    trn_tensor t = plausible_view(format, 2, shape, 0, input);
    t.data = arena + part * (ARENA / PARTS) + below(8);
    return t;
}

/* Ascending tags in a view, whatever else may lie there. `axis` is the one along which elements are stored. */
static void write_tags(trn_tensor *t, int axis, trn_sparse_pattern p)
{
    int64_t stride[TRN_MAX_RANK];
    if (!t->data || claimed(t) <= 0 || t->rank != 2) return;
    if (t->shape[0] > ARENA || t->shape[1] > ARENA / (t->shape[0] + 1)) return; /* a broadcast: long, not large */
    view_strides(t, stride);
    for (int64_t lane = 0; lane < t->shape[1 - axis]; lane++)
        for (int64_t s = 0, low = 0; s < t->shape[axis]; s++) {
            const int place = (int)(s % p.m);
            low = place ? low + 1 : 0;
            low += below((int)(p.n - (p.m - place) - low + 1));
            ((unsigned char *)t->data)[lane * stride[1 - axis] + s * stride[axis]] = (unsigned char)low;
        }
}

/* What is accepted must not take forever: a broadcast may be long without being large. */
static void bound_work(trn_tensor *const *view, int views)
{
    for (int i = 0; i < views; i++) {
        long double elements = 1;
        keep_inside(view[i]);
        if (claimed(view[i]) <= 0) continue;
        for (int a = 0; a < view[i]->rank; a++) elements *= (long double)view[i]->shape[a];
        for (int a = 0; a < view[i]->rank && elements > MOST_WORK; a++)
            if (view[i]->shape[a] > 16) view[i]->shape[a] = 16;
        keep_inside(view[i]);
    }
}

static trn_numerics some_numerics(void)
{
    static const char *const text[] = { "",
                                        "chains=1",
                                        "chains=16,merge=pairwise",
                                        "chain_layout=blocked",
                                        "k_tile=5",
                                        "product=bf16",
                                        "accumulator=exact",
                                        "flush_inputs=on",
                                        "psum_format=bfloat16" };
    trn_numerics n;
    if (trn_numerics_parse(&n, text[below(9)]) != TRN_OK) say("a text of this table is no numerics");
    if (one_in(8)) n.chains = absurd_int();
    return n;
}

static void finish(call c, trn_status status, const trn_error *error, const trn_tensor *dst, const trn_tensor *also)
{
    count_status((int)c, status);
    if (error) check_error(status, error);
    if (status == TRN_OK) forgive(dst);
    if (status == TRN_OK && also) forgive(also);
    compare_arena(status);
}

/* ---- products ---- */

static void fuzz_matmul(void)
{
    static const trn_format result[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2 };
    trn_sparse_pattern pattern = some_pattern();
    const bool wide = one_in(3);
    int64_t m = one_in(10) ? below(40) : below(12), n = one_in(10) ? below(40) : below(12),
            windows = below(one_in(5) ? 40 : 6);
    if (one_in(40)) m = HUGE_SIZE, n = 0;
    if (one_in(40)) n = HUGE_SIZE, m = 0;
    trn_numerics numerics = some_numerics();
    trn_error error = fresh_error();
    trn_sparse_matmul_args a;
    memset(&a, 0, sizeof a);
    a.dst = view_in(result[below(5)], m, n, 0, false);
    a.values = view_in(some_format(wide), m, windows * pattern.m, 1, true);
    a.tags = view_in(TRN_U8, m, windows * pattern.m, 2, false);
    a.b = view_in(some_format(wide), windows * pattern.n, n, 3, true);
    if (m == HUGE_SIZE) a.values.stride[0] = 0, a.values.stride[1] = 1, a.tags.stride[0] = 0, a.tags.stride[1] = 1;
    if (n == HUGE_SIZE) a.b.stride[0] = 1, a.b.stride[1] = 0;
    a.pattern = pattern;
    a.accumulate = one_in(2);
    a.rounding = (trn_rounding)below(6);
    a.overflow = (trn_overflow)below(2);
    a.seed = cases_next(&rng);
    a.numerics = one_in(2) ? &numerics : NULL;
    a.error = one_in(3) ? NULL : &error;
    if (one_in(4))
        a.scratch = scratch + below(64), a.scratch_bytes = one_in(2) ? (size_t)SCRATCH - 64 : cases_u32(&rng) % 32768;

    trn_tensor *const view[4] = { &a.dst, &a.values, &a.tags, &a.b };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(11)) {
        case 0: a.rounding = (trn_rounding)absurd_int(); break;
        case 1: a.generation = (trn_generation)absurd_int(); break;
        case 2: a.isa = (trn_isa)absurd_int(); break;
        case 3: a.overflow = (trn_overflow)absurd_int(); break;
        case 4: *(one_in(2) ? &a.pattern.m : &a.pattern.n) = absurd_int(); break;
        default: mutate_view(view[below(4)], view[below(4)]); break;
        }
    bound_work(view, 4);
    if (!one_in(8)) write_tags(&a.tags, 1, pattern);
    memcpy(snapshot, arena, ARENA);
    const size_t needed = trn_sparse_matmul_scratch_bytes(&a);
    const trn_status status = trn_sparse_matmul(&a);
    if (status == TRN_OK && a.scratch && needed > a.scratch_bytes) say("scratch was too small and nobody said so");
    finish(MATMUL, status, a.error, &a.dst, NULL);
}

static void fuzz_nc_matmul(void)
{
    static const trn_generation generation[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM2, TRN_TRAINIUM3, TRN_TRAINIUM1 };
    trn_sparse_pattern pattern = some_pattern();
    const bool wide = one_in(3);
    const int64_t m = one_in(40) ? 129 : below(14), n = one_in(40) ? 513 : below(14),
                  windows = below(one_in(20) ? 140 : 8);
    trn_numerics numerics = some_numerics();
    trn_error error = fresh_error();
    bool written = one_in(2);
    const bool before = written;
    trn_nc_matmul_sparse_args a;
    memset(&a, 0, sizeof a);
    a.generation = generation[below(one_in(6) ? 4 : 3)];
    a.dst = view_in(a.generation == TRN_TRAINIUM3 && one_in(2) ? TRN_BF16 : TRN_F32, m, n, 0, false);
    a.stationary = view_in(some_format(wide), windows * pattern.m, m, 1, true);
    a.tags = view_in(TRN_U8, windows * pattern.m, m, 2, false);
    a.moving = view_in(some_format(wide), windows * pattern.n, n, 3, true);
    a.pattern = pattern;
    a.accumulate = one_in(2);
    a.psum_written = one_in(2) ? &written : NULL;
    a.rounding = (trn_rounding)below(6);
    a.seed = cases_next(&rng);
    a.numerics = one_in(2) ? &numerics : NULL;
    a.error = one_in(3) ? NULL : &error;

    trn_tensor *const view[4] = { &a.dst, &a.stationary, &a.tags, &a.moving };
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--) switch (below(10)) {
        case 0: a.rounding = (trn_rounding)absurd_int(); break;
        case 1: a.generation = (trn_generation)absurd_int(); break;
        case 2: a.isa = (trn_isa)absurd_int(); break;
        case 3: *(one_in(2) ? &a.pattern.m : &a.pattern.n) = absurd_int(); break;
        default: mutate_view(view[below(4)], view[below(4)]); break;
        }
    for (int i = 0; i < 4; i++) keep_inside(view[i]); /* sizes are limited anyway */
    if (!one_in(8)) write_tags(&a.tags, 0, pattern);
    memcpy(snapshot, arena, ARENA);
    const trn_status status = trn_nc_matmul_sparse(&a);
    if (status != TRN_OK && written != before) say("a refused instruction says that it wrote PSUM");
    finish(NC_MATMUL, status, a.error, &a.dst, NULL);
}

/* ---- packing ---- */

static void fuzz_pack(void)
{
    trn_sparse_pattern pattern = some_pattern();
    const trn_format format = (trn_format)(1 + below(TRN_F4_E2M1));
    int64_t rows = below(12), windows = below(10);
    if (one_in(40)) rows = HUGE_SIZE, windows = 0;
    trn_error error = fresh_error();
    trn_sparse_pack_args a;
    memset(&a, 0, sizeof a);
    a.src = view_in(format, rows, windows * pattern.n, 0, true);
    a.values = view_in(format, rows, windows * pattern.m, 2, false);
    a.tags = view_in(TRN_U8, rows, windows * pattern.m, 3, false);
    a.pattern = pattern;
    a.prune = !one_in(4);
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[3] = { &a.src, &a.values, &a.tags };
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--)
        if (one_in(5))
            *(one_in(2) ? &a.pattern.m : &a.pattern.n) = absurd_int();
        else
            mutate_view(view[below(3)], view[below(3)]);
    bound_work(view, 3);
    memcpy(snapshot, arena, ARENA);
    finish(PACK, trn_sparse_pack(&a), a.error, &a.values, &a.tags);
}

static void fuzz_unpack(void)
{
    trn_sparse_pattern pattern = some_pattern();
    const trn_format format = (trn_format)(1 + below(TRN_F4_E2M1));
    int64_t rows = below(12), windows = below(10);
    if (one_in(40)) rows = HUGE_SIZE, windows = 0;
    trn_error error = fresh_error();
    trn_sparse_unpack_args a;
    memset(&a, 0, sizeof a);
    a.dst = view_in(format, rows, windows * pattern.n, 0, false);
    a.values = view_in(format, rows, windows * pattern.m, 2, true);
    a.tags = view_in(TRN_U8, rows, windows * pattern.m, 3, false);
    a.pattern = pattern;
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[3] = { &a.dst, &a.values, &a.tags };
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--)
        if (one_in(5))
            *(one_in(2) ? &a.pattern.m : &a.pattern.n) = absurd_int();
        else
            mutate_view(view[below(3)], view[below(3)]);
    bound_work(view, 3);
    if (!one_in(6)) write_tags(&a.tags, 1, pattern);
    memcpy(snapshot, arena, ARENA);
    finish(UNPACK, trn_sparse_unpack(&a), a.error, &a.dst, NULL);
}

static void fuzz_tags(void)
{
    const bool unpack = one_in(2);
    int64_t rows = below(12), count = below(40), words = (count + 3) / 4;
    if (one_in(40)) rows = HUGE_SIZE, count = words = 0;
    trn_error error = fresh_error();
    trn_sparse_tags_pack_args a;
    memset(&a, 0, sizeof a);
    trn_tensor tags = view_in(TRN_U8, rows, count, 0, !unpack), word = view_in(TRN_U16, rows, words, 2, unpack);
    a.dst = unpack ? tags : word;
    a.src = unpack ? word : tags;
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[2] = { &a.dst, &a.src };
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--)
        if (one_in(5))
            a.isa = (trn_isa)absurd_int();
        else
            mutate_view(view[below(2)], view[below(2)]);
    bound_work(view, 2);
    if (!unpack && !one_in(6)) write_tags(&a.src, 1, (trn_sparse_pattern){ 4, 16 });
    memcpy(snapshot, arena, ARENA);
    const trn_status status = unpack ? trn_sparse_tags_unpack(&a) : trn_sparse_tags_pack(&a);
    finish(unpack ? TAGS_UNPACK : TAGS_PACK, status, a.error, &a.dst, NULL);
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_matmul, fuzz_nc_matmul, fuzz_pack, fuzz_matmul, fuzz_unpack, fuzz_tags };
    scratch = (unsigned char *)guarded(SCRATCH);
    const long count = fuzz(argc, argv, turn, 6);
    print_tally(call_name, CALLS, count);
    if (count >= 20000 &&
        (tally[MATMUL][TRN_ENOSPC] == 0 || tally[MATMUL][TRN_EUNSUPPORTED] == 0 || tally[NC_MATMUL][TRN_ELIMIT] == 0))
        say("a status never came");
    return 0;
}

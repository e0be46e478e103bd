/* fuzz_mx.c - random argument structs into block scaling, packing and Trainium3's layout.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_mx [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * As fuzz_args.c: plausible calls, up to four mutations each; no crash, no hang, no write on failure, none outside the
 * results on success. Prints how often each status came.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_mx.h"
#include "trnmath/trn_pack.h"

typedef enum call { QUANTIZE, DEQUANTIZE, PACK, UNPACK, TO_SBUF, FROM_SBUF, FP4, CALLS } call;
static const char *const call_name[CALLS] = { "trn_mx_quantize", "trn_mx_dequantize", "trn_pack",         "trn_unpack",
                                              "trn_mx_to_sbuf",  "trn_mx_from_sbuf",  "trn_mx_fp4_to_fp8" };

static trn_format some_element(void)
{
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F6_E2M3, TRN_F6_E3M2, TRN_F4_E2M1, TRN_I8 };
    return format[below(6)];
}

static trn_format some_values(void)
{
    static const trn_format format[] = { TRN_F32, TRN_BF16, TRN_F16 };
    return format[below(3)];
}

/* A view of rank and shape in one of four parts of the arena. */
static trn_tensor view_in(trn_format format, int rank, const int64_t *shape, int part, bool input)
{
    trn_tensor t = plausible_view(format, rank, shape, 0, input);
    t.data = arena + part * (ARENA / 4) + below(8);
    return t;
}

/* What is accepted must not take forever: a broadcast may be long without being large. */
static void bound_work(trn_tensor *t)
{
    long double elements = 1;
    if (claimed(t) <= 0) return;
    for (int i = 0; i < t->rank; i++) elements *= (long double)t->shape[i];
    if (elements > MOST_WORK)
        for (int i = 0; i < t->rank; i++)
            if (t->shape[i] > 4) t->shape[i] = 4;
}

/* Up to four of them, on views or, through `other`, on the rest of the arguments. */
static void mutate(trn_tensor *const *view, int views, void (*other)(void *args), void *args)
{
    for (int i = one_in(3) ? 0 : below(5); i > 0; i--)
        if (one_in(2))
            mutate_view(view[below(views)], view[below(views)]);
        else
            other(args);
    for (int i = 0; i < views; i++) {
        keep_inside(view[i]);
        bound_work(view[i]);
        keep_inside(view[i]);
    }
    memcpy(snapshot, arena, ARENA);
}

static void finish(call c, trn_status status, const trn_error *error, const trn_tensor *dst, const trn_tensor *also)
{
    count_status((int)c, status);
    if (error) check_error(status, error);
    if (status == TRN_OK && dst->rank) forgive(dst);
    if (status == TRN_OK && also && also->rank) forgive(also);
    compare_arena(status);
}

/* ---- quantise, dequantise ---- */

static int mx_shape(int64_t shape[TRN_MAX_RANK], int *axis)
{
    const int rank = 1 + below(TRN_MAX_RANK);
    for (int i = 0; i < rank; i++) shape[i] = one_in(30) ? 0 : 1 + below(rank == 2 && one_in(2) ? 20 : 3);
    *axis = below(rank);
    shape[*axis] = 32 * (one_in(20) ? 0 : 1 + below(rank < 3 ? 3 : 1));
    if (one_in(40)) shape[(*axis + 1) % rank] = rank > 1 ? HUGE_SIZE : shape[0];
    if (one_in(40)) shape[*axis] = 0;
    return rank;
}

static void mutate_quantize(void *args)
{
    trn_mx_quantize_args *a = (trn_mx_quantize_args *)args;
    switch (below(5)) {
    case 0: a->rounding = (trn_rounding)absurd_int(); break;
    case 1: a->scale = (trn_mx_scale)absurd_int(); break;
    case 2: a->axis = absurd_int(); break;
    case 3: a->isa = (trn_isa)absurd_int(); break;
    default: a->sr_bits = absurd_int(); break;
    }
}

static void fuzz_quantize(void)
{
    int64_t shape[TRN_MAX_RANK];
    int axis;
    const int rank = mx_shape(shape, &axis);
    trn_error error = fresh_error();
    trn_mx_quantize_args a;
    memset(&a, 0, sizeof a);
    a.src = view_in(some_values(), rank, shape, 0, true);
    a.dst = view_in(some_element(), rank, shape, 2, false);
    shape[axis] /= 32;
    a.dst_scale = view_in(one_in(2) ? TRN_F8_E8M0 : TRN_U8, rank, shape, 3, false);
    a.axis = axis - rank;
    a.scale = (trn_mx_scale)below(TRN_MX_SCALE_COUNT);
    a.rounding = (trn_rounding)below(6);
    a.sr_bits = below(33);
    a.seed = cases_next(&rng);
    a.index = cases_next(&rng);
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[3] = { &a.src, &a.dst, &a.dst_scale };
    mutate(view, 3, mutate_quantize, &a);
    const trn_status status = trn_mx_quantize(&a);
    finish(QUANTIZE, status, a.error, &a.dst, &a.dst_scale);
}

static void mutate_dequantize(void *args)
{
    trn_mx_dequantize_args *a = (trn_mx_dequantize_args *)args;
    if (one_in(2))
        a->axis = absurd_int();
    else
        a->isa = (trn_isa)absurd_int();
}

static void fuzz_dequantize(void)
{
    int64_t shape[TRN_MAX_RANK];
    int axis;
    const int rank = mx_shape(shape, &axis);
    trn_error error = fresh_error();
    trn_mx_dequantize_args a;
    memset(&a, 0, sizeof a);
    a.dst = view_in(some_values(), rank, shape, 0, false);
    a.src = view_in(some_element(), rank, shape, 2, true);
    shape[axis] /= 32;
    a.src_scale = view_in(one_in(2) ? TRN_F8_E8M0 : TRN_U8, rank, shape, 3, true);
    a.axis = axis - rank;
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[3] = { &a.dst, &a.src, &a.src_scale };
    mutate(view, 3, mutate_dequantize, &a);
    const trn_status status = trn_mx_dequantize(&a);
    finish(DEQUANTIZE, status, a.error, &a.dst, NULL);
}

/* ---- packing ---- */

static void mutate_pack(void *args)
{
    trn_pack_args *a = (trn_pack_args *)args;
    if (one_in(2))
        a->pad = !a->pad;
    else
        a->isa = (trn_isa)absurd_int();
}

static void mutate_unpack(void *args)
{
    trn_unpack_args *a = (trn_unpack_args *)args;
    if (one_in(2))
        a->pad = !a->pad;
    else
        a->isa = (trn_isa)absurd_int();
}

/* Codes and the words that take them. */
static void packed_views(trn_tensor *codes, trn_tensor *words, bool unpack)
{
    static const trn_format code[] = { TRN_F4_E2M1,   TRN_F4_E2M1, TRN_F6_E2M3, TRN_F6_E3M2,
                                       TRN_F8_E4M3FN, TRN_I8,      TRN_CFP8 };
    static const trn_format word[] = { TRN_U8, TRN_U16, TRN_U8, TRN_U8, TRN_U32, TRN_U32, TRN_U32 };
    int64_t shape[TRN_MAX_RANK];
    const int rank = 1 + below(TRN_MAX_RANK), form = below(7);
    for (int i = 0; i < rank; i++) shape[i] = one_in(30) ? 0 : 1 + below(rank == 2 ? 20 : 3);
    if (rank > 1 && one_in(40)) shape[0] = 0, shape[1] = HUGE_SIZE;
    const int64_t n = shape[rank - 1] == HUGE_SIZE ? HUGE_SIZE : one_in(2) ? 4 * below(40) : below(160);
    shape[rank - 1] = n;
    *codes = view_in(code[form], rank, shape, 0, !unpack);
    shape[rank - 1] = trn_packed_words(code[form], word[form], n);
    *words = view_in(word[form], rank, shape, 2, unpack);
}

static void fuzz_pack(void)
{
    trn_error error = fresh_error();
    trn_pack_args a;
    memset(&a, 0, sizeof a);
    packed_views(&a.src, &a.dst, false);
    a.pad = one_in(2);
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[2] = { &a.dst, &a.src };
    mutate(view, 2, mutate_pack, &a);
    const trn_status status = trn_pack(&a);
    finish(PACK, status, a.error, &a.dst, NULL);
}

static void fuzz_unpack(void)
{
    trn_error error = fresh_error();
    trn_unpack_args a;
    memset(&a, 0, sizeof a);
    packed_views(&a.dst, &a.src, true);
    a.pad = one_in(2);
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[2] = { &a.dst, &a.src };
    mutate(view, 2, mutate_unpack, &a);
    const trn_status status = trn_unpack(&a);
    finish(UNPACK, status, a.error, &a.dst, NULL);
}

/* ---- Trainium3's layout ---- */

static void mutate_sbuf(void *args)
{
    trn_mx_sbuf_args *a = (trn_mx_sbuf_args *)args;
    switch (below(5)) {
    case 0: a->scale_offset = absurd_int(); break;
    case 1: a->slot_distance = absurd_int(); break;
    case 2: a->words.rank = a->codes.rank = 0; break;
    case 3: a->scales.rank = a->scale_tile.rank = 0; break;
    default: a->isa = (trn_isa)absurd_int(); break;
    }
}

static void fuzz_sbuf(bool to_sbuf)
{
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };
    const trn_format code = format[below(3)];
    const int64_t k = 32 * below(6), m = one_in(20) ? 0 : 1 + below(20);
    const int64_t codes[2] = { k, m }, words[2] = { k / 4, m }, scales[2] = { k / 32, m },
                  tile[2] = { (k + 127) / 128 * 32, m };
    trn_error error = fresh_error();
    trn_mx_sbuf_args a;
    memset(&a, 0, sizeof a);
    a.codes = view_in(code, 2, codes, 0, to_sbuf);
    a.words = view_in(code == TRN_F4_E2M1 ? TRN_U16 : TRN_U32, 2, words, 1, !to_sbuf);
    a.scales = view_in(one_in(2) ? TRN_F8_E8M0 : TRN_U8, 2, scales, 2, to_sbuf);
    a.scale_tile = view_in(TRN_U8, 2, tile, 3, !to_sbuf);
    a.scale_offset = 4 * below(4);
    a.slot_distance = one_in(3) ? 1 << below(4) : 0;
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[4] = { &a.codes, &a.words, &a.scales, &a.scale_tile };
    mutate(view, 4, mutate_sbuf, &a);
    const trn_status status = to_sbuf ? trn_mx_to_sbuf(&a) : trn_mx_from_sbuf(&a);
    finish(to_sbuf ? TO_SBUF : FROM_SBUF, status, a.error, to_sbuf ? &a.words : &a.codes,
           to_sbuf ? &a.scale_tile : &a.scales);
}

static void fuzz_to_sbuf(void) { fuzz_sbuf(true); }
static void fuzz_from_sbuf(void) { fuzz_sbuf(false); }

static void nothing_to_mutate(void *args) { (void)args; }

static void fuzz_fp4(void)
{
    int64_t shape[TRN_MAX_RANK];
    const int rank = 1 + below(TRN_MAX_RANK);
    uint8_t map[16];
    trn_error error = fresh_error();
    trn_mx_fp4_args a;
    for (int i = 0; i < rank; i++) shape[i] = one_in(30) ? 0 : 1 + below(4);
    memset(&a, 0, sizeof a);
    memset(map, 0x5a, sizeof map);
    a.dst = view_in(one_in(2) ? TRN_F8_E4M3FN : TRN_F8_E5M2, rank, shape, 0, false);
    a.src = view_in(TRN_F4_E2M1, rank, shape, 2, true);
    a.map = one_in(2) ? map : NULL;
    a.error = one_in(3) ? NULL : &error;
    trn_tensor *const view[2] = { &a.dst, &a.src };
    mutate(view, 2, nothing_to_mutate, NULL);
    const trn_status status = trn_mx_fp4_to_fp8(&a);
    finish(FP4, status, a.error, &a.dst, NULL);
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_quantize, fuzz_dequantize, fuzz_pack,     fuzz_unpack,
                                          fuzz_to_sbuf,  fuzz_from_sbuf,  fuzz_quantize, fuzz_fp4 };
    const long count = fuzz(argc, argv, turn, 8);
    print_tally(call_name, CALLS, count);
    return 0;
}

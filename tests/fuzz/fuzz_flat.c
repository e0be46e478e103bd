/* fuzz_flat.c - random views, options and texts into the flat functions of examples/python/ext/trnmath_flat.h.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_flat [count] [seed]        default: 20000 rounds, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Plausible calls of every function, up to four mutations each: absurd ranks, sizes and strides, numbers beyond an int,
 * null pointers, overlapping memory, spoilt names. Each call succeeds, or returns a status with one sentence and writes
 * nothing else; after a success only elements of the results may differ, and everything asked must have been legal.
 * Prints how often each status came. With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead, whose
 * bytes are the decisions.
 */
#define _DEFAULT_SOURCE 1

#include <math.h>

#include "fuzz/arena.h"
#include "python/ext/trnmath_flat.c"

enum { OPERANDS = 7, BLOCKS = 64, MOST_RANKS = 1024, TEXT = 700 };

typedef enum call {
    CONVERT,
    MATMUL,
    TOLERANCE,
    ACTIVATION,
    MX_QUANTIZE,
    MX_DEQUANTIZE,
    MX_SBUF,
    MX_FP4_TO_FP8,
    SPARSE_PACK,
    SPARSE_UNPACK,
    SPARSE_MATMUL,
    TABLE,
    PLANS,
    COLLECTIVE_COST,
    COLLECTIVE,
    REDISTRIBUTE_COST,
    CALLS
} call;

/* ---- blocks of their own, so that a sanitizer sees one byte too many ---- */

static void *block[BLOCKS];
static int blocks;

static void *own(const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);
    if (!copy || blocks == BLOCKS) say("the fuzzer has no memory");
    memcpy(copy, bytes, size);
    return block[blocks++] = copy;
}

static void free_blocks(void)
{
    while (blocks) free(block[--blocks]);
}

/* ---- texts ---- */

static const char *spoilt(const char *text)
{
    static const char *const token[] = { "=",    ",",    "(",  ")",  "*",           "None", "sum(",
                                         "%s%n", "\xc3", "\n", "-1", "99999999999", "@",    " " };
    char to[TEXT] = "";
    size_t n = (size_t)snprintf(to, 100, "%s", text);
    const size_t at = n ? (size_t)below((int)n) : 0;
    switch (below(5)) {
    case 0: to[at] = (char)below(256); break;
    case 1: to[at] = 0; break;
    case 2: snprintf(to + at, 100, "%s%s", token[below(14)], text + (at < strlen(text) ? at : 0)); break;
    case 3:
        for (; n + 1 < TEXT; n++) to[n] = n ? to[n - at % n - 1] : 'x';
        break;
    default:
        for (n = 0; n < 12; n++) to[n] = (char)below(256);
    }
    return (const char *)own(to, strlen(to) + 1);
}

static const char *some_text(const char *const *list, int count)
{
    const char *text = list[below(count)];
    if (one_in(40)) return NULL;
    return one_in(25) ? spoilt(text ? text : "") : text;
}
#define SOME(list) some_text(list, (int)(sizeof list / sizeof list[0]))

/* ---- what comes back ---- */

typedef struct answer {
    char *why; /* or null: nobody wants to know */
    int status;
} answer;

static char *some_why(void)
{
    char blank[TRNMATH_WHY];
    memset(blank, '~', sizeof blank);
    return one_in(6) ? NULL : (char *)own(blank, sizeof blank);
}

static void check_why(int status, const char *why)
{
    const size_t length = why ? strnlen(why, TRNMATH_WHY) : 0;
    if (!why) return;
    if (status == TRN_OK) {
        if (why[0] != '~' || length != TRNMATH_WHY) say("why was touched on success");
        return;
    }
    if (length == TRNMATH_WHY) say("why does not end");
    if (length < 8) say("why says nothing");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)why[i] < 32) say("why is not one line");
}

/* ---- operands: a view, what it means, and whether it may be told to anybody ---- */

typedef struct operand {
    trn_tensor t;
    bool optional, lie; /* lie: numbers that only look right once they are cut to an int */
    const trnmath_view *view;
} operand;

static operand operands[OPERANDS];
static int used;

static operand *add(trn_format format, int rank, const int64_t *shape, int part, bool input)
{
    operand *o = &operands[used++];
    memset(o, 0, sizeof *o);
    o->t = plausible_view(format, rank, shape, 0, input);
    o->t.data = arena + part * (ARENA / 4) + below(8);
    return o;
}

static operand *add_2d(trn_format format, int64_t rows, int64_t columns, int part, bool input)
{
    const int64_t shape[2] = { rows, columns };
    return add(format, 2, shape, part, input);
}

/* What is accepted must not take forever: a broadcast may be long without being large. */
static void bound(trn_tensor *t)
{
    long double elements = 1;
    if (claimed(t) <= 0) return;
    for (int i = 0; i < t->rank; i++) elements *= (long double)t->shape[i];
    for (int i = 0; i < t->rank && elements > MOST_WORK; i++)
        if (t->shape[i] > 4) t->shape[i] = 4;
    keep_inside(t);
}

static trnmath_view view_of(const trn_tensor *t, bool lie)
{
    const int64_t beyond = (int64_t)(1 + below(5)) << 32;
    trnmath_view v = { t->data, (int64_t)t->format, t->rank, { 0 }, { 0 } };
    memcpy(v.shape, t->shape, sizeof v.shape);
    memcpy(v.stride, t->stride, sizeof v.stride);
    if (lie) *(one_in(2) ? &v.rank : &v.format) += one_in(2) ? beyond : -beyond;
    return v;
}

static void mutate_operands(void)
{
    for (int i = one_in(2) ? 0 : below(4); i > 0; i--) mutate_view(&operands[below(used)].t, &operands[below(used)].t);
    for (int i = 0; i < used; i++) {
        operand *o = &operands[i];
        bound(&o->t);
        o->lie = one_in(100);
        const trnmath_view v = view_of(&o->t, o->lie);
        o->view = one_in(100) ? NULL : (const trnmath_view *)own(&v, sizeof v);
    }
    memcpy(snapshot, arena, ARENA);
}

static bool legal(const operand *o)
{
    if (o->optional && (!o->view || o->view->rank == 0)) return true;
    return o->view && !o->lie && claimed(&o->t) >= 0 && o->t.format < TRN_CFP8;
}

static void close_operands(void)
{
    const trn_tensor *t[OPERANDS];
    for (int i = 0; i < used; i++) t[i] = &operands[i].t;
    close_arena(t, used);
}

/* The first operands are the results. */
static void finish(call which, const answer *a, int results)
{
    open_arena();
    count_status((int)which, (trn_status)a->status);
    check_why(a->status, a->why);
    for (int i = 0; i < used && a->status == TRN_OK; i++)
        if (!legal(&operands[i])) say("an illegal view was accepted");
    for (int i = 0; i < results && a->status == TRN_OK; i++)
        if (operands[i].view) forgive(&operands[i].t);
    compare_arena((trn_status)a->status);
}

/* ---- options ---- */

static const trnmath_options *some_options(void)
{
    static const char *const numerics[] = { NULL,
                                            NULL,
                                            NULL,
                                            "",
                                            "chains=1",
                                            "chains=4,product=bf16",
                                            "accumulator=exact",
                                            "trn1",
                                            "psum_format=bfloat16",
                                            "flush_inputs=on" };
    static const char *const rounding[] = {
        NULL, NULL, "nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd"
    };
    trnmath_options o = { SOME(numerics), SOME(rounding), cases_next(&rng), cases_next(&rng), below(33), 0,
                          one_in(2),      one_in(2),      one_in(8) };
    int64_t *const number[] = { &o.sr_bits, &o.generation, &o.saturate, &o.accumulate, &o.double_row };
    if (one_in(3)) return NULL;
    if (one_in(4)) o.generation = below(4);
    if (one_in(15)) *number[below(5)] = absurd_size();
    return (const trnmath_options *)own(&o, sizeof o);
}

static void check_options(const trnmath_options *o, int status)
{
    if (status != TRN_OK || !o) return;
    if (o->sr_bits < 0 || o->sr_bits > 32 || o->generation < 0 || o->generation > 3)
        say("an illegal option was accepted");
}

/* ---- arrays ---- */

static int some_rank(int64_t shape[TRN_MAX_RANK])
{
    const int rank = 1 + below(TRN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        shape[i] = one_in(30) ? 0 : rank == 1 ? below(200) : rank == 2 ? below(20) : below(4);
    if (rank >= 3 && one_in(20)) empty_but_huge(&shape[0], &shape[1], &shape[2]);
    return rank;
}

static void fuzz_convert(void)
{
    int64_t shape[TRN_MAX_RANK];
    const int rank = some_rank(shape);
    add((trn_format)(1 + below(TRN_CFP8)), rank, shape, 0, false);
    add((trn_format)(1 + below(TRN_CFP8)), rank, shape, 2, true);
    const trnmath_options *options = some_options();
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_convert(operands[0].view, operands[1].view, options, a.why);
    finish(CONVERT, &a, 1);
    check_options(options, a.status);
}

static void fuzz_activation(void)
{
    static const trn_format format[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_I8 };
    static const float number[] = { 1, 0, -2, 0.125f, HUGE_VALF, 1e-40f };
    int64_t shape[TRN_MAX_RANK];
    const int rank = some_rank(shape);
    const char *f = trn_act_name((trn_act)below(TRN_ACT_COUNT));
    f = some_text(&f, 1);
    const float scale = number[below(6)], bias = number[below(6)];
    add(format[below(5)], rank, shape, 0, false);
    add(format[below(5)], rank, shape, 2, true);
    const trnmath_options *options = some_options();
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_activation(operands[0].view, operands[1].view, f, scale, bias, options, a.why);
    finish(ACTIVATION, &a, 1);
    check_options(options, a.status);
    if (a.status == TRN_OK && (!f || scale == 0)) say("no function, or a scale of 0, was accepted");
}

typedef struct product {
    int64_t m, n, k;
    trn_format a, b, dst;
    bool blocks_of_32;
} product;

static product some_product(void)
{
    static const trn_format operand_format[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_I8 };
    static const trn_format mx[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };
    static const trn_format result[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_I32 };
    const bool blocks_of_32 = one_in(3);
    const trn_format one = operand_format[below(6)];
    product p = { below(14), below(14), blocks_of_32 ? 32 * below(3) : below(40), one, one, TRN_F32, blocks_of_32 };
    if (one_in(40)) empty_but_huge(&p.m, &p.n, &p.k);
    p.dst = result[below(one == TRN_I8 ? 4 : 3)];
    if (blocks_of_32) p.a = mx[below(3)];
    if (blocks_of_32)
        p.b = mx[below(3)];
    else if (one_in(4))
        p.b = operand_format[below(6)];
    return p;
}

static void add_factors(const product *p)
{
    add_2d(p->a, p->m, p->k, 1, true);
    add_2d(p->b, p->k, p->n, 2, true);
    for (int i = 0; i < 2; i++) {
        operand *scale = add_2d(p->blocks_of_32 ? TRN_F8_E8M0 : TRN_FORMAT_UNSET, i ? p->n : p->m, p->k / 32, 3, true);
        scale->optional = true;
        if (!p->blocks_of_32) scale->t.rank = 0;
    }
}

static void fuzz_matmul(void)
{
    const product p = some_product();
    add_2d(p.dst, p.m, p.n, 0, false);
    add_factors(&p);
    const trnmath_options *options = some_options();
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_matmul(operands[0].view, operands[1].view, operands[2].view, operands[3].view, operands[4].view,
                              options, a.why);
    finish(MATMUL, &a, 1);
    check_options(options, a.status);
}

static void fuzz_tolerance(void)
{
    const product p = some_product();
    for (int i = 0; i < 2; i++) {
        operand *out = add_2d(TRN_F32, p.m, p.n, 0, false);
        out->t.data = (char *)out->t.data + i * (ARENA / 8);
        out->optional = true;
        if (one_in(4)) out->t.rank = 0;
    }
    add_2d(p.dst, p.m, p.n, 3, true);
    operands[2].t.data = (char *)operands[2].t.data + ARENA / 8;
    add_factors(&p);
    const trnmath_options *options = some_options();
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_tolerance(operands[0].view, operands[1].view, operands[2].view, operands[3].view,
                                 operands[4].view, operands[5].view, operands[6].view, options, a.why);
    finish(TOLERANCE, &a, 2);
    check_options(options, a.status);
}

/* ---- blocks with scales ---- */

static int mx_shape(int64_t shape[TRN_MAX_RANK], int64_t *axis)
{
    const int rank = 1 + below(TRN_MAX_RANK), at = below(rank);
    for (int i = 0; i < rank; i++) shape[i] = one_in(30) ? 0 : 1 + below(3);
    shape[at] = 32 * (one_in(20) ? 0 : 1 + below(rank < 3 ? 3 : 1));
    *axis = at - rank;
    if (one_in(8)) *axis = one_in(2) ? absurd_size() : *axis + (below(3) - 1) * ((int64_t)1 << 32);
    return rank;
}

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

/* The views of codes, scales and values, in the order in which a call takes them. */
static void add_mx(int64_t shape[TRN_MAX_RANK], int rank, int axis, bool quantize)
{
    if (!quantize) add(some_values(), rank, shape, 0, false);
    add(some_element(), rank, shape, 2, !quantize);
    shape[axis] /= 32;
    add(one_in(2) ? TRN_F8_E8M0 : TRN_U8, rank, shape, 3, !quantize);
    shape[axis] *= 32;
    if (quantize) add(some_values(), rank, shape, 0, true);
}

static int place_of_blocks(const int64_t *shape, int rank)
{
    int at = 0;
    while (at + 1 < rank && (shape[at] == 0 || shape[at] % 32)) at++;
    return at;
}

static void check_axis(int64_t axis, int rank, int status)
{
    if (status == TRN_OK && (axis < -rank || axis >= rank)) say("an axis that does not exist was accepted");
}

static void fuzz_mx_quantize(void)
{
    static const char *const rules[] = { NULL, "neuron", "ocp_floor", "round_up", "even", "ceil" };
    int64_t shape[TRN_MAX_RANK], axis;
    const int rank = mx_shape(shape, &axis);
    add_mx(shape, rank, place_of_blocks(shape, rank), true);
    const char *rule = SOME(rules);
    const trnmath_options *options = some_options();
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_mx_quantize(operands[0].view, operands[1].view, operands[2].view, rule, axis, options, a.why);
    finish(MX_QUANTIZE, &a, 2);
    check_options(options, a.status);
    check_axis(axis, operands[2].t.rank, a.status);
}

static void fuzz_mx_dequantize(void)
{
    int64_t shape[TRN_MAX_RANK], axis;
    const int rank = mx_shape(shape, &axis);
    add_mx(shape, rank, place_of_blocks(shape, rank), false);
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_mx_dequantize(operands[0].view, operands[1].view, operands[2].view, axis, a.why);
    finish(MX_DEQUANTIZE, &a, 1);
    check_axis(axis, operands[0].t.rank, a.status);
}

/* What SBUF holds of codes and scales, or back; the results come first. */
static void fuzz_mx_sbuf(void)
{
    static const int64_t offsets[] = { 0, 4, 8, 12 };
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };
    const int64_t k = one_in(20) ? below(64) : 32 * below(4), columns = below(9);
    const trn_format codes = format[below(3)];
    const int back = one_in(2), word = back ? 2 : 0, code = 2 - word;
    const int64_t rows = (k / 32 + 3) / 4 * 32 + (one_in(4) ? below(20) : 12);
    int64_t offset = offsets[below(4)], distance = below(3);
    for (int pair = 0; pair < 2; pair++) {
        const bool words = pair * 2 == word;
        add_2d(words ? codes == TRN_F4_E2M1 ? TRN_U16 : TRN_U32 : codes, words ? k / 4 : k, columns, 2 * pair,
               pair == 1);
        add_2d(one_in(2) ? TRN_F8_E8M0 : TRN_U8, words ? rows : k / 32, columns, 2 * pair + 1, pair == 1);
    }
    if (one_in(10)) *(one_in(2) ? &offset : &distance) = absurd_size();
    answer a = { some_why(), 0 };
    const int missing = one_in(5) ? below(2) : 2; /* codes, scales, or neither */
    for (int i = 0; i < 4; i++) {
        operands[i].optional = true;
        if (i % 2 == missing) operands[i].t.rank = 0;
    }
    mutate_operands();
    close_operands();
    a.status = trnmath_mx_sbuf(operands[word].view, operands[word + 1].view, operands[code].view,
                               operands[code + 1].view, offset, distance, back ? absurd_size() | 1 : 0, a.why);
    finish(MX_SBUF, &a, 2);
}

static void fuzz_mx_fp4_to_fp8(void)
{
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E4M3 };
    uint8_t map[16];
    int64_t shape[TRN_MAX_RANK];
    const int rank = some_rank(shape);
    for (int i = 0; i < 16; i++) map[i] = (uint8_t)below(256);
    add(format[below(3)], rank, shape, 0, false);
    add(one_in(20) ? TRN_U8 : TRN_F4_E2M1, rank, shape, 2, true);
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_mx_fp4_to_fp8(operands[0].view, operands[1].view,
                                     one_in(2) ? NULL : (const uint8_t *)own(map, sizeof map), a.why);
    finish(MX_FP4_TO_FP8, &a, 1);
}

/* ---- sparse ---- */

/* Packs, unpacks, and multiplies with what was packed, if it was. */
static void fuzz_sparse(void)
{
    static const int64_t known[][2] = { { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 } };
    static const trn_format narrow[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2 };
    const int64_t *const known_one = known[below(7)], rows = below(10), columns = below(10), windows = below(5);
    const trn_format format = narrow[below(5)];
    int64_t m = known_one[0], n = known_one[1];
    const int64_t m_good = m, n_good = n, prune = one_in(10) ? 0 : absurd_size() | 1;
    add_2d(format, rows, windows * m, 0, false);
    add_2d(TRN_U8, rows, windows * m, 1, false);
    add_2d(format, rows, windows * n, 2, true);
    if (one_in(10)) *(one_in(2) ? &m : &n) = one_in(2) ? absurd_size() : m + ((int64_t)1 << 32);
    answer a = { some_why(), 0 };
    mutate_operands();
    close_operands();
    a.status = trnmath_sparse_pack(operands[0].view, operands[1].view, operands[2].view, m, n, prune, a.why);
    finish(SPARSE_PACK, &a, 2);

    const operand values = operands[0], tags = operands[1];
    used = 0;
    add_2d(format, rows, windows * n_good, 2, false);
    operands[used++] = values;
    operands[used++] = tags;
    a.why = some_why();
    mutate_operands();
    close_operands();
    a.status = trnmath_sparse_unpack(operands[0].view, operands[1].view, operands[2].view, m, n, a.why);
    finish(SPARSE_UNPACK, &a, 1);

    used = 0;
    add_2d(one_in(2) ? TRN_F32 : TRN_BF16, rows, columns, 2, false);
    operands[used++] = values;
    operands[used++] = tags;
    add_2d(format, windows * n_good, columns, 3, true);
    if (one_in(10))
        *(one_in(2) ? &m : &n) = absurd_size();
    else if (one_in(2))
        m = m_good, n = n_good;
    const trnmath_options *options = some_options();
    a.why = some_why();
    mutate_operands();
    close_operands();
    a.status = trnmath_sparse_matmul(operands[0].view, operands[1].view, operands[2].view, operands[3].view, m, n,
                                     options, a.why);
    finish(SPARSE_MATMUL, &a, 1);
    check_options(options, a.status);
}

/* ---- many chips ---- */

static const char *const systems[] = { "trn1.2xlarge",   "trn1.32xlarge",    "trn1n.32xlarge",       "trn2.48xlarge",
                                       "trn2u.48xlarge", "trn2-ultraserver", "trn3-gen1-ultraserver" };
static const char *const formats[] = {
    "float32", "bfloat16", "float8_e4m3", "float8_e4m3fn", "F8_E5M2", "int8", "cfp8"
};

static trnmath_collective_ask *some_ask(int most_chips)
{
    const char *op = trn_collective_name((trn_collective)below(TRN_COLLECTIVE_COUNT));
    const char *algorithm = one_in(2) ? NULL : trn_algorithm_name((trn_algorithm)below(TRN_ALGORITHM_COUNT));
    int32_t chips[MOST_RANKS];
    trnmath_collective_ask ask = { SOME(systems), some_text(&op, 1), some_text(&algorithm, 1), NULL, NULL, 0, 0, 0 };
    ask.count = 1 + below(most_chips);
    ask.ranks_per_chip = below(3);
    ask.bytes = one_in(3) ? absurd_size() : below(1 << 20);
    if (one_in(4)) ask.wire = SOME(formats);
    if (one_in(12)) *(one_in(2) ? &ask.count : &ask.ranks_per_chip) = absurd_size();
    const int room = ask.count > 0 && ask.count <= MOST_RANKS ? (int)ask.count : 1;
    for (int i = 0; i < room; i++) chips[i] = one_in(100) ? absurd_int() : i;
    if (one_in(2)) ask.chips = (const int32_t *)own(chips, sizeof chips[0] * (size_t)room);
    return (trnmath_collective_ask *)own(&ask, sizeof ask);
}

static bool sound(double x) { return x >= 0 && x < HUGE_VAL; }

static void check_answer(const trnmath_collective_answer *c, int status)
{
    trnmath_collective_answer untouched;
    memset(&untouched, 0x77, sizeof untouched);
    if (status != TRN_OK) {
        if (memcmp(c, &untouched, sizeof untouched) != 0) say("an answer was written on failure");
        return;
    }
    if (!memchr(c->algorithm, 0, sizeof c->algorithm) || !memchr(c->bottleneck, 0, sizeof c->bottleneck) ||
        !c->algorithm[0] || !c->bottleneck[0])
        say("the algorithm or the bottleneck has no name");
    if (!sound(c->time_s) || !sound(c->lower_bound_s) || !sound(c->latency_s) || !sound(c->bytes_per_s) || c->steps < 0)
        say("a cost is no time");
    if (c->time_s < c->lower_bound_s * (1 - 1e-9)) say("a cost is less than its bound");
}

static void fuzz_collective_cost(void)
{
    trnmath_collective_answer cost;
    memset(&cost, 0x77, sizeof cost);
    const trnmath_collective_ask *ask = one_in(100) ? NULL : some_ask(one_in(10) ? 16 : 6);
    trnmath_collective_answer *to = one_in(100) ? NULL : &cost;
    answer a = { some_why(), 0 };
    a.status = trnmath_collective_cost(ask, to, a.why);
    count_status(COLLECTIVE_COST, (trn_status)a.status);
    check_why(a.status, a.why);
    check_answer(&cost, a.status);
}

typedef struct team {
    trn_tensor t[2 * MOST_RANKS]; /* sources, then destinations */
    const trn_tensor *all[2 * MOST_RANKS];
    trnmath_view *src, *dst;
    int ranks;
} team;

static int64_t elements_of(const trnmath_collective_ask *ask, int64_t n, int ranks, bool output)
{
    const bool share = ask->op && strcmp(ask->op, output ? "reduce_scatter" : "all_gather") == 0;
    return share ? n : n * ranks;
}

static void draw_team(team *t, const trnmath_collective_ask *ask)
{
    trnmath_view view[2 * MOST_RANKS];
    const trn_format format = one_in(2) ? TRN_BF16 : (trn_format)(1 + below(TRN_CFP8));
    const int64_t n = below(4);
    int at = 0;
    for (int i = 0; i < 2 * t->ranks; i++) {
        const int64_t elements = elements_of(ask, n, t->ranks, i >= t->ranks);
        trn_tensor *v = &t->t[i];
        *v = trn_tensor_nd(format, arena, 1, &elements);
        const int64_t bytes = claimed(v);
        if (at + bytes > ARENA) at = 0;
        v->data = arena + at;
        at += (int)bytes;
        if (one_in(20 * t->ranks)) mutate_view(v, &t->t[below(i + 1)]);
        bound(v);
        view[i] = view_of(v, one_in(200 * t->ranks));
        t->all[i] = v;
    }
    t->src = (trnmath_view *)own(view, sizeof view[0] * (size_t)t->ranks);
    t->dst = (trnmath_view *)own(view + t->ranks, sizeof view[0] * (size_t)t->ranks);
}

static void fuzz_collective(void)
{
    static team t;
    const trnmath_collective_ask *ask = some_ask(4);
    const trnmath_options *options = some_options();
    const int64_t each = ask->ranks_per_chip ? ask->ranks_per_chip : 1;
    const bool few = ask->count > 0 && ask->count <= 16 && each > 0 && each <= 16;
    int64_t ranks = few && !one_in(30) ? ask->count * each : absurd_size();
    t.ranks = ranks > 0 && ranks <= MOST_RANKS ? (int)ranks : 1;
    draw_team(&t, ask);
    answer a = { some_why(), 0 };
    memcpy(snapshot, arena, ARENA);
    close_arena(t.all, 2 * t.ranks);
    a.status = trnmath_collective(one_in(100) ? NULL : ask, one_in(100) ? NULL : t.dst, one_in(100) ? NULL : t.src,
                                  ranks, options, a.why);
    open_arena();
    count_status(COLLECTIVE, (trn_status)a.status);
    check_why(a.status, a.why);
    check_options(options, a.status);
    for (int i = t.ranks; i < 2 * t.ranks && a.status == TRN_OK; i++) /* who receives nothing need not have a view */
        if (claimed(&t.t[i]) > 0 && t.t[i].data) forgive(&t.t[i]);
    compare_arena((trn_status)a.status);
}

static void fuzz_redistribute_cost(void)
{
    static const char *const meshes[] = { "data=2,tensor=8", "data=4,tensor=4", "tensor=16", "data=2,tensor=4,pipe=2" };
    static const char *const shardings[] = { "(data, tensor)", "(*, tensor)",
                                             "(tensor, *)",    "(None, (data, tensor))",
                                             "(*, *)",         "(data, *) + sum(tensor)",
                                             "(tensor)" };
    char steps[300];
    double time_s[2] = { -1, -1 };
    int64_t shape[TRN_MAX_RANK];
    for (int i = 0; i < TRN_MAX_RANK; i++) shape[i] = one_in(10) ? absurd_size() : 16 * (1 + below(100));
    const size_t room = (size_t)below(sizeof steps + 1);
    const int64_t rank = one_in(20) ? absurd_size() : 2;
    const char *const system = one_in(2) ? "trn2.48xlarge" : SOME(systems);
    memset(steps, '~', sizeof steps);
    char *text = one_in(8) ? NULL : (char *)own(steps, room);
    const int64_t *sizes = one_in(60) ? NULL : (const int64_t *)own(shape, sizeof shape);
    double *to = one_in(60) ? NULL : time_s;
    answer a = { some_why(), 0 };
    a.status = trnmath_redistribute_cost(system, SOME(meshes), SOME(shardings), SOME(shardings), SOME(formats), sizes,
                                         rank, to, text, room, a.why);
    count_status(REDISTRIBUTE_COST, (trn_status)a.status);
    check_why(a.status, a.why);
    if (a.status == TRN_OK) {
        if (!sound(time_s[0]) || !sound(time_s[1]) || time_s[0] < time_s[1] * (1 - 1e-9)) say("a cost is no time");
        if (text && room && !memchr(text, 0, room)) say("the text of steps does not end");
        return;
    }
    if (time_s[0] != -1 || time_s[1] != -1) say("a time was written on failure");
    if (text && memcmp(text, steps, room) != 0) say("steps were written on failure");
}

/* ---- tables ---- */

/* Lines that end, or untouched room. */
static void check_lines(const char *lines, size_t room, int status)
{
    if (!lines) return;
    if (status == TRN_OK && (!memchr(lines, 0, room) || strlen(lines) < 5 || !strchr(lines, '\n')))
        say("a table has no line");
    for (size_t i = 0; status != TRN_OK && i < room; i++)
        if (lines[i] != '~') say("lines were written on failure");
}

static void fuzz_table(void)
{
    static const char *const names[] = { "formats",      "generations",  "systems",    "rates",       "spec",
                                         "alternatives", "instructions", "rules",      "activations", "presets",
                                         "collectives",  "algorithms",   "roundings",  "engines",     "parts",
                                         "model_fields", "job_fields",   "assumptions" };
    static char blank[1 << 16];
    const size_t room = one_in(4) ? (size_t)below(3000) : sizeof blank;
    memset(blank, '~', sizeof blank);
    char *lines = one_in(60) ? NULL : (char *)own(blank, room);
    answer a = { some_why(), 0 };
    a.status = trnmath_table(SOME(names), SOME(systems), lines, room, a.why);
    count_status(TABLE, (trn_status)a.status);
    check_why(a.status, a.why);
    check_lines(lines, room, a.status);
}

static void fuzz_plans(void)
{
    static const char *const models[] = {
        "layers=2,hidden=64,heads=4,intermediate=128,vocab=100",
        "layers=4,hidden=256,heads=8,kv_heads=2,experts=8,experts_per_token=2,moe_intermediate=64,vocab=1000",
        "tables=2,hidden=16,longest=1,table_rows=9:9,table_lookups=1:3,dense_inputs=4,dense_widths=32:16,over_widths=8",
        "layers=99999999999,hidden=-1,heads=0,vocab=1",
        "bidirectional=1,layers=2,hidden=64,heads=4,intermediate=9,vocab=7"
    };
    static const char *const jobs[] = { "job=train,batch=16,sequence=128,tp=1,dp=1",
                                        "job=decode,batch=4,sequence=256,kv=float8_e4m3,weights_bits=4.5,kv_pool=1",
                                        "job=prefill,batch=1,sequence=64,lnc=1,spread=1.5,precision=fp32",
                                        "batch=4611686018427387904,sequence=1,pp=64,experts_over=3",
                                        "batch=1,sequence=1,max_pp=-5,microbatch=-1,zero=any,recompute=full" };
    static char blank[1 << 16];
    const size_t room = one_in(6) ? (size_t)below(3000) : sizeof blank;
    const int64_t most = one_in(20) ? absurd_size() : 1 + below(10);
    memset(blank, '~', sizeof blank);
    char *lines = one_in(60) ? NULL : (char *)own(blank, room);
    answer a = { some_why(), 0 };
    a.status =
        trnmath_plans(one_in(20) ? SOME(systems) : "trn1.2xlarge", SOME(models), SOME(jobs), most, lines, room, a.why);
    count_status(PLANS, (trn_status)a.status);
    check_why(a.status, a.why);
    check_lines(lines, room, a.status);
}

/* ---- facts ---- */

static void fuzz_facts(void)
{
    const int64_t format = trnmath_format(SOME(formats)), any = one_in(2) ? absurd_size() : below(40);
    char lines[8] = "~~~~~~~";
    answer a = { some_why(), 0 };
    if (format < 0 || format > TRN_CFP8) say("a name is a format that does not exist");
    a.status = trnmath_config(SOME(formats), SOME(systems), below(2), one_in(9) ? NULL : lines, sizeof lines, a.why);
    if (a.status == TRN_OK || strcmp(lines, "~~~~~~~") != 0) say("a configuration was read that is none");
    check_why(a.status, a.why);
    if (!trnmath_format_name(any) || strlen(trnmath_format_name(any)) < 3) say("a format has no name");
    if (trnmath_format_bytes(any) < 0 || trnmath_format_bytes(any) > 4) say("a format is too large");
    if (format && trnmath_format(trnmath_format_name(format)) != format) say("a format's name is another's");
    if (strlen(trnmath_version()) < 5 || strlen(trnmath_isa()) < 3) say("the version or the kernels have no name");
}

/* ---- the loop ---- */

static void (*const turns[])(void) = { fuzz_convert,     fuzz_matmul,
                                       fuzz_tolerance,   fuzz_activation,
                                       fuzz_mx_quantize, fuzz_mx_dequantize,
                                       fuzz_mx_sbuf,     fuzz_mx_fp4_to_fp8,
                                       fuzz_table,       fuzz_plans,
                                       fuzz_sparse,      fuzz_collective_cost,
                                       fuzz_collective,  fuzz_redistribute_cost,
                                       fuzz_facts };
enum { TURNS = sizeof turns / sizeof turns[0] };

static void take_turn(void)
{
    used = 0;
    turns[below(TURNS)]();
    free_blocks();
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!arena) arena = (unsigned char *)guarded(ARENA);
    rng = 1;
    fill_arena();
    decisions = data;
    decisions_left = size;
    while (decisions_left) take_turn();
    return 0;
}

#else

static const char *const call_name[CALLS] = {
    "trnmath_convert",     "trnmath_matmul",          "trnmath_tolerance",     "trnmath_activation",
    "trnmath_mx_quantize", "trnmath_mx_dequantize",   "trnmath_mx_sbuf",       "trnmath_mx_fp4_to_fp8",
    "trnmath_sparse_pack", "trnmath_sparse_unpack",   "trnmath_sparse_matmul", "trnmath_table",
    "trnmath_plans",       "trnmath_collective_cost", "trnmath_collective",    "trnmath_redistribute_cost"
};

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { take_turn };
    print_tally(call_name, CALLS, fuzz(argc, argv, turn, 1));
    return 0;
}

#endif

/* test_tensor_limits.c - what one instruction of the tensor engine refuses: sizes, tiles of the array, fresh PSUM,
 * hints that are not true, scales and views that do not fit; and the largest that it takes.
 * SPDX-License-Identifier: MIT
 *
 * Source of every limit: NKI's pages on nc_matmul and nc_matmul_mx. A refusal is a status and a sentence that names the
 * field; nothing is written, and no flag changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/instruction.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- one call, legal at first ---- */

typedef struct call {
    trn_nc_matmul_args args;
    trn_nc_matmul_mx_args mx;
    trn_matmul_args operation;
    bool written;
    trn_error error;
} call;

static uint32_t zeros[4 * 128 * 8200 / 4], out[8200 * 2];

static void call_start(call *c)
{
    const int64_t s_shape[3] = { 32, 2, 4 }, m_shape[3] = { 32, 6, 4 };
    memset(c, 0, sizeof *c);
    memset(out, 0x5a, sizeof out);
    c->args.generation = TRN_TRAINIUM2;
    c->args.stationary = trn_tensor_2d(TRN_BF16, zeros, 32, 2);
    c->args.moving = trn_tensor_2d(TRN_BF16, zeros, 32, 6);
    c->args.dst = trn_tensor_2d(TRN_F32, out, 2, 6);
    c->args.error = &c->error;
    c->mx.stationary = trn_tensor_nd(TRN_F8_E4M3FN, zeros, 3, s_shape);
    c->mx.moving = trn_tensor_nd(TRN_F8_E5M2, zeros, 3, m_shape);
    c->mx.stationary_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, 4, 2);
    c->mx.moving_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, 4, 6);
    c->mx.dst = trn_tensor_2d(TRN_F32, out, 2, 6);
    c->mx.error = &c->error;
    c->operation.a = trn_tensor_2d(TRN_F8_E5M2, zeros, 2, 64);
    c->operation.b = trn_tensor_2d(TRN_F8_E5M2, zeros, 64, 6);
    c->operation.a_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, 2, 2);
    c->operation.b_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, 6, 2);
    c->operation.dst = trn_tensor_2d(TRN_F32, out, 2, 6);
    c->operation.error = &c->error;
}

typedef enum which { PLAIN, MX, OPERATION } which;

static trn_status call_run(call *c, which w)
{
    if (w == MX) return trn_nc_matmul_mx(&c->mx);
    return w == OPERATION ? trn_matmul(&c->operation) : trn_nc_matmul(&c->args);
}

static void call_refused(call *c, which w, trn_status expected, const char *word, int line)
{
    const bool written = c->written;
    const trn_status status = call_run(c, w);
    if (status != expected || !strstr(c->error.text, word))
        fail_msg("line %d: expected %s with \"%s\", got %s, \"%s\"", line, trn_status_text(expected), word,
                 trn_status_text(status), c->error.text);
    assert_int_equal(expected, c->error.status);
    assert_true(written == c->written);
    for (int i = 0; i < COUNT(out); i++) CASES_EQUAL(0x5a5a5a5au, out[i], "line %d: something was written", line);
    c->args.error = c->mx.error = c->operation.error = NULL;
    assert_int_equal(expected, call_run(c, w));
}

#define REFUSED(which, status, word, ...)                                                                              \
    do {                                                                                                               \
        call c;                                                                                                        \
        call_start(&c);                                                                                                \
        __VA_ARGS__;                                                                                                   \
        call_refused(&c, which, status, word, __LINE__);                                                               \
    } while (0)

#define TAKEN(which, ...)                                                                                              \
    do {                                                                                                               \
        call c;                                                                                                        \
        call_start(&c);                                                                                                \
        __VA_ARGS__;                                                                                                   \
        if (call_run(&c, which) != TRN_OK) fail_msg("line %d: \"%s\"", __LINE__, c.error.text);                        \
        CASES_EQUAL(0, out[0] & 0xffffu, "line %d", __LINE__);                                                         \
    } while (0)

static void the_start_is_legal(void **state)
{
    (void)state;
    TAKEN(PLAIN, (void)0);
    TAKEN(MX, (void)0);
    TAKEN(OPERATION, (void)0);
}

/* ---- sizes ---- */

static void size_plain(call *c, trn_generation generation, trn_format dst, int64_t k, int64_t m, int64_t n)
{
    c->args.generation = generation;
    c->args.stationary = trn_tensor_2d(TRN_BF16, zeros, k, m);
    c->args.moving = trn_tensor_2d(TRN_BF16, zeros, k, n);
    c->args.dst = trn_tensor_2d(dst, out, m, n);
}

static void size_double(call *c, trn_generation generation, trn_format dst, int64_t k, int64_t m, int64_t n)
{
    const int64_t s_shape[3] = { k, 2, m }, m_shape[3] = { k, 2, n };
    c->args.generation = generation;
    c->args.double_row = true;
    c->args.stationary = trn_tensor_nd(TRN_F8_E5M2, zeros, 3, s_shape);
    c->args.moving = trn_tensor_nd(TRN_F8_E4M3, zeros, 3, m_shape);
    c->args.dst = trn_tensor_2d(dst, out, m, n);
}

static void size_mx(call *c, trn_format dst, int64_t k, int64_t m, int64_t n)
{
    const int64_t s_shape[3] = { k, m, 4 }, m_shape[3] = { k, n, 4 };
    c->mx.stationary = trn_tensor_nd(TRN_F8_E5M2, zeros, 3, s_shape);
    c->mx.moving = trn_tensor_nd(TRN_F4_E2M1, zeros, 3, m_shape);
    c->mx.stationary_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, k / 8, m);
    c->mx.moving_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, k / 8, n);
    c->mx.dst = trn_tensor_2d(dst, out, m, n);
}

static void n_limits(void **state)
{
    (void)state;
    TAKEN(PLAIN, size_plain(&c, TRN_TRAINIUM1, TRN_F32, 1, 1, 512));
    TAKEN(PLAIN, size_double(&c, TRN_TRAINIUM2, TRN_F32, 1, 1, 512));
    TAKEN(PLAIN, size_double(&c, TRN_TRAINIUM3, TRN_F32, 1, 1, 4096));
    TAKEN(PLAIN, size_double(&c, TRN_TRAINIUM3, TRN_BF16, 1, 1, 8192));
    TAKEN(MX, size_mx(&c, TRN_F32, 32, 2, 4096));
    TAKEN(MX, size_mx(&c, TRN_BF16, 32, 2, 8192));
    REFUSED(PLAIN, TRN_ELIMIT, "513 exceeds 512", size_plain(&c, TRN_TRAINIUM1, TRN_F32, 1, 1, 513));
    REFUSED(PLAIN, TRN_ELIMIT, "513 exceeds 512", size_double(&c, TRN_TRAINIUM2, TRN_F32, 1, 1, 513));
    REFUSED(PLAIN, TRN_ELIMIT, "4097 exceeds 4096", size_double(&c, TRN_TRAINIUM3, TRN_F32, 1, 1, 4097));
    REFUSED(PLAIN, TRN_ELIMIT, "8193 exceeds 8192", size_double(&c, TRN_TRAINIUM3, TRN_BF16, 1, 1, 8193));
    REFUSED(MX, TRN_ELIMIT, "4097 exceeds 4096", size_mx(&c, TRN_F32, 32, 2, 4097));
    REFUSED(MX, TRN_ELIMIT, "8193 exceeds 8192", size_mx(&c, TRN_BF16, 32, 2, 8193));
}

static void k_and_m_limits(void **state)
{
    (void)state;
    TAKEN(PLAIN, size_double(&c, TRN_TRAINIUM2, TRN_F32, 128, 128, 1));
    TAKEN(MX, size_mx(&c, TRN_F32, 128, 128, 1));
    REFUSED(PLAIN, TRN_ELIMIT, "129 exceeds 128", size_double(&c, TRN_TRAINIUM2, TRN_F32, 129, 2, 1));
    REFUSED(PLAIN, TRN_ELIMIT, "129 exceeds 128", size_double(&c, TRN_TRAINIUM3, TRN_F32, 2, 129, 1));
    REFUSED(MX, TRN_ELIMIT, "160 exceeds 128", size_mx(&c, TRN_F32, 160, 2, 1));
    REFUSED(MX, TRN_ELIMIT, "130 exceeds 128", size_mx(&c, TRN_F32, 32, 130, 1));
    /* Partitions in quadrants of 32, an even free size of the stationary operand. */
    REFUSED(MX, TRN_ESHAPE, "32", size_mx(&c, TRN_F32, 8, 2, 1));
    REFUSED(MX, TRN_ESHAPE, "32", size_mx(&c, TRN_F32, 48, 2, 1));
    REFUSED(MX, TRN_ESHAPE, "even", size_mx(&c, TRN_F32, 32, 3, 1));
}

/* ---- views ---- */

static void shapes(void **state)
{
    (void)state;
    REFUSED(PLAIN, TRN_ESHAPE, "stationary", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6);
            c.args.stationary.rank = 2);
    REFUSED(PLAIN, TRN_ESHAPE, "moving", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6); c.args.moving.rank = 2);
    REFUSED(PLAIN, TRN_ESHAPE, "stationary", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6);
            c.args.stationary.shape[1] = 3);
    REFUSED(PLAIN, TRN_ESHAPE, "moving", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6); c.args.moving.shape[1] = 1);
    REFUSED(PLAIN, TRN_ESHAPE, "K = 5", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6); c.args.moving.shape[0] = 5);
    REFUSED(PLAIN, TRN_ESHAPE, "dst", size_double(&c, TRN_TRAINIUM2, TRN_F32, 4, 2, 6); c.args.dst.shape[0] = 4);
    REFUSED(MX, TRN_ESHAPE, "stationary", c.mx.stationary.shape[2] = 2);
    REFUSED(MX, TRN_ESHAPE, "moving", c.mx.moving.rank = 2);
    REFUSED(MX, TRN_ESHAPE, "moving", c.mx.moving.shape[0] = 64);
    REFUSED(MX, TRN_ESHAPE, "dst", c.mx.dst.shape[1] = 5);
    REFUSED(MX, TRN_ESHAPE, "stationary_scale", c.mx.stationary_scale.shape[0] = 3);
    REFUSED(MX, TRN_ESHAPE, "stationary_scale", c.mx.stationary_scale.shape[1] = 4);
    REFUSED(MX, TRN_ESHAPE, "moving_scale", c.mx.moving_scale.shape[1] = 2);
    REFUSED(MX, TRN_ESHAPE, "moving_scale", c.mx.moving_scale.rank = 1);
    REFUSED(MX, TRN_EFORMAT, "stationary_scale", c.mx.stationary_scale.format = TRN_F8_E4M3);
    REFUSED(MX, TRN_EINVAL, "moving_scale", c.mx.moving_scale.data = NULL);
    REFUSED(MX, TRN_EINVAL, "overlaps stationary_scale", c.mx.stationary_scale.data = out);
    REFUSED(MX, TRN_EINVAL, "overlaps moving_scale", c.mx.moving_scale.data = (char *)out + 40);
    REFUSED(MX, TRN_EINVAL, "overlaps moving", c.mx.moving.data = out);
    assert_int_equal(TRN_EINVAL, trn_nc_matmul_mx(NULL));
}

static void scales_of_operations(void **state)
{
    (void)state;
    trn_numerics n;
    memset(&n, 0, sizeof n);
    REFUSED(OPERATION, TRN_ESHAPE, "a_scale", c.operation.a_scale.shape[1] = 1);
    REFUSED(OPERATION, TRN_ESHAPE, "a_scale", c.operation.a_scale.shape[0] = 3);
    REFUSED(OPERATION, TRN_ESHAPE, "b_scale", c.operation.b_scale.shape[0] = 2);
    REFUSED(OPERATION, TRN_ESHAPE, "b_scale", c.operation.b_scale.rank = 1);
    REFUSED(OPERATION, TRN_ESHAPE, "32", c.operation.a.shape[1] = c.operation.b.shape[0] = 48);
    REFUSED(OPERATION, TRN_EFORMAT, "b_scale", c.operation.b_scale.format = TRN_U8);
    REFUSED(OPERATION, TRN_ESHAPE, "b_scale", c.operation.b_scale.rank = 0);
    REFUSED(OPERATION, TRN_ESHAPE, "a_scale", c.operation.a_scale.rank = 0);
    REFUSED(OPERATION, TRN_EINVAL, "overlaps a_scale", c.operation.a_scale.data = out);
    REFUSED(OPERATION, TRN_EINVAL, "double_row", c.operation.double_row = true);
    REFUSED(OPERATION, TRN_EINVAL, "overflow", c.operation.overflow = (trn_overflow)2);
    REFUSED(OPERATION, TRN_EUNSUPPORTED, "Trainium2", c.operation.generation = TRN_TRAINIUM2);
    TAKEN(OPERATION, c.operation.generation = TRN_TRAINIUM3);
    TAKEN(OPERATION, c.operation.numerics = &n);
}

static void formats_of_dst(void **state)
{
    (void)state;
    REFUSED(PLAIN, TRN_EUNSUPPORTED, "bfloat16", c.args.dst.format = TRN_BF16);
    REFUSED(PLAIN, TRN_EFORMAT, "float16", c.args.dst.format = TRN_F16);
    REFUSED(PLAIN, TRN_EFORMAT, "int32", c.args.dst.format = TRN_I32);
    REFUSED(MX, TRN_EFORMAT, "float16", c.mx.dst.format = TRN_F16);
    REFUSED(MX, TRN_EFORMAT, "float8_e5m2", c.mx.dst.format = TRN_F8_E5M2);
    REFUSED(OPERATION, TRN_EFORMAT, "tfloat32", c.operation.dst.format = TRN_TF32);
    REFUSED(OPERATION, TRN_EFORMAT, "float4_e2m1fn", c.operation.dst.format = TRN_F4_E2M1);
    REFUSED(OPERATION, TRN_EFORMAT, "float8_e8m0fnu", c.operation.dst.format = TRN_F8_E8M0);
    REFUSED(OPERATION, TRN_EFORMAT, "int32", c.operation.dst.format = TRN_I32);
    REFUSED(OPERATION, TRN_EFORMAT, "int8", c.operation.dst.format = TRN_I8);
}

static void integers(void **state)
{
    (void)state;
#define BYTES(generation_)                                                                                             \
    c.args.generation = generation_;                                                                                   \
    c.args.stationary.format = c.args.moving.format = TRN_I8;                                                          \
    c.args.dst.format = TRN_I32
    TAKEN(PLAIN, BYTES(TRN_TRAINIUM1));
    REFUSED(PLAIN, TRN_EUNSUPPORTED, "int8", BYTES(TRN_GENERATION_DEFAULT));
    REFUSED(PLAIN, TRN_EUNSUPPORTED, "Trainium2", BYTES(TRN_TRAINIUM2));
    REFUSED(PLAIN, TRN_EUNSUPPORTED, "Trainium3", BYTES(TRN_TRAINIUM3));
    REFUSED(PLAIN, TRN_EFORMAT, "float32", BYTES(TRN_TRAINIUM1); c.args.dst.format = TRN_F32);
    REFUSED(PLAIN, TRN_EFORMAT, "int8", BYTES(TRN_TRAINIUM1); c.args.moving.format = TRN_F8_E4M3);
    REFUSED(PLAIN, TRN_EFORMAT, "uint8", BYTES(TRN_TRAINIUM1); c.args.moving.format = TRN_U8);
#undef BYTES
}

/* ---- tiles of the array ---- */

#define PLACE(field, position_row, position_column, size_row, size_column)                                             \
    c.field.tile_position.row = position_row;                                                                          \
    c.field.tile_position.column = position_column;                                                                    \
    c.field.tile_size.row = size_row;                                                                                  \
    c.field.tile_size.column = size_column

static void tiles_that_fit(void **state)
{
    (void)state;
    TAKEN(PLAIN, PLACE(args, 0, 0, 128, 128));
    TAKEN(PLAIN, PLACE(args, 96, 0, 32, 128));
    TAKEN(PLAIN, PLACE(args, 64, 0, 64, 128));
    TAKEN(PLAIN, PLACE(args, 0, 96, 128, 32));
    TAKEN(PLAIN, PLACE(args, 32, 64, 32, 32));
    TAKEN(PLAIN, PLACE(args, 64, 32, 64, 32); c.args.generation = TRN_TRAINIUM3);
    TAKEN(PLAIN, PLACE(args, 64, 0, 64, 128); c.args.generation = TRN_TRAINIUM1);
    TAKEN(PLAIN, PLACE(args, 0, 64, 128, 64); c.args.generation = TRN_TRAINIUM1);
    TAKEN(PLAIN, size_double(&c, TRN_TRAINIUM2, TRN_F32, 32, 2, 6); PLACE(args, 96, 0, 32, 128));
    TAKEN(MX, PLACE(mx, 32, 0, 32, 128));
    TAKEN(MX, size_mx(&c, TRN_F32, 64, 2, 6); PLACE(mx, 64, 0, 64, 128));
}

static void tiles_that_do_not(void **state)
{
    (void)state;
    static const trn_status any[3] = { TRN_ELIMIT, TRN_EINVAL, TRN_EUNSUPPORTED };
    static const struct {
        trn_generation generation;
        int row, column, rows, columns, k, m;
    } wrong[] = {
        { TRN_TRAINIUM2, 0, 0, 48, 128, 4, 2 }, /* no such size */
        { TRN_TRAINIUM2, 0, 0, 16, 128, 4, 2 },
        { TRN_TRAINIUM2, 0, 0, 128, 96, 4, 2 },
        { TRN_TRAINIUM2, 0, 0, 256, 128, 4, 2 },
        { TRN_TRAINIUM2, 0, 0, -32, 128, 4, 2 },
        { TRN_TRAINIUM2, 16, 0, 32, 128, 4, 2 }, /* not a multiple of the size */
        { TRN_TRAINIUM2, 32, 0, 64, 128, 4, 2 },
        { TRN_TRAINIUM2, 0, 32, 128, 64, 4, 2 },
        { TRN_TRAINIUM2, 128, 0, 32, 128, 4, 2 }, /* past the edge */
        { TRN_TRAINIUM2, 0, 128, 128, 32, 4, 2 },
        { TRN_TRAINIUM2, -32, 0, 32, 128, 4, 2 },
        { TRN_TRAINIUM2, 0, 0, 32, 128, 33, 2 }, /* too small for K, for M */
        { TRN_TRAINIUM2, 0, 0, 128, 32, 4, 33 },
        { TRN_TRAINIUM1, 0, 0, 32, 128, 4, 2 }, /* Trainium1 has halves only */
        { TRN_TRAINIUM1, 0, 32, 128, 32, 4, 2 },
        { TRN_TRAINIUM3, 0, 0, 64, 128, 65, 2 },
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        call c;
        call_start(&c);
        size_plain(&c, wrong[i].generation, TRN_F32, wrong[i].k, wrong[i].m, 6);
        PLACE(args, wrong[i].row, wrong[i].column, wrong[i].rows, wrong[i].columns);
        const trn_status status = trn_nc_matmul(&c.args);
        if ((status != any[0] && status != any[1] && status != any[2]) || !strstr(c.error.text, "tile"))
            fail_msg("tile %d: %s, \"%s\"", i, trn_status_text(status), c.error.text);
        CASES_EQUAL(0x5a5a5a5au, out[0], "nothing may be written");
    }
    REFUSED(PLAIN, TRN_EINVAL, "double rows", size_double(&c, TRN_TRAINIUM2, TRN_F32, 32, 2, 6);
            PLACE(args, 0, 0, 128, 64));
    REFUSED(MX, TRN_EINVAL, "MX", PLACE(mx, 0, 0, 128, 64));
    REFUSED(MX, TRN_ELIMIT, "tile", size_mx(&c, TRN_F32, 64, 2, 6); PLACE(mx, 0, 0, 32, 128));
}

/* Row r of a row tile is row position.row + r of the array, in whose chains the sums run; but tiles begin where blocks
 * of rows begin, and other tiles' rows are none of this one's: the place changes no bit. */
static void the_place_in_the_array_changes_no_bit(void **state)
{
    (void)state;
    static float a[32 * 3], b[32 * 5], dst[4][15];
    uint64_t rng = 132;
    for (int round = 0; round < 60; round++) {
        trn_numerics n = problem_fast_order(&rng);
        trn_nc_matmul_args args;
        memset(&args, 0, sizeof args);
        for (int i = 0; i < COUNT(a); i++) a[i] = cases_float_of(bridge_value(BRIDGE_CANCEL, &rng));
        for (int i = 0; i < COUNT(b); i++) b[i] = cases_float_of(bridge_value(BRIDGE_NEAR_ONE, &rng));
        args.stationary = trn_tensor_2d(TRN_F32, a, 32, 3);
        args.moving = trn_tensor_2d(TRN_F32, b, 32, 5);
        args.numerics = &n;
        args.tile_size.row = 32;
        args.tile_size.column = 128;
        for (int i = 0; i < 4; i++) {
            args.dst = trn_tensor_2d(TRN_F32, dst[i], 3, 5);
            args.tile_position.row = 32 * i;
            assert_int_equal(TRN_OK, trn_nc_matmul(&args));
            assert_memory_equal(dst[0], dst[i], sizeof dst[0]);
        }
    }
}

/* ---- PSUM that no matmul has written ---- */

static void fresh_psum(void **state)
{
    (void)state;
    for (int w = PLAIN; w <= MX; w++) {
        call c;
        call_start(&c);
        c.args.accumulate = c.mx.accumulate = true;
        c.args.psum_written = c.mx.psum_written = &c.written;
        call_refused(&c, (which)w, TRN_EINVAL, "undefined", __LINE__);
        assert_false(c.written);
        call_start(&c);
        c.args.psum_written = c.mx.psum_written = &c.written;
        assert_int_equal(TRN_OK, call_run(&c, (which)w));
        assert_true(c.written);
        c.args.accumulate = c.mx.accumulate = true;
        assert_int_equal(TRN_OK, call_run(&c, (which)w));
        assert_true(c.written);
        call_start(&c); /* nobody asks: nobody is told */
        memset(out, 0, sizeof out);
        c.args.accumulate = c.mx.accumulate = true;
        assert_int_equal(TRN_OK, call_run(&c, (which)w));
        call_start(&c); /* a refusal writes nothing, here neither */
        c.args.psum_written = c.mx.psum_written = &c.written;
        c.args.dst.shape[0] = c.mx.dst.shape[0] = 5;
        call_refused(&c, (which)w, TRN_ESHAPE, "dst", __LINE__);
        assert_false(c.written);
    }
}

/* ---- operands said to be 0 or 1 ---- */

/* The hint must be true, and changes nothing. */
static void hints(void **state)
{
    (void)state;
    static const int format[] = { TWIN_F32, TWIN_TF32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2 };
    uint64_t rng = 131;
    for (int i = 0; i < cases_rounds(120, 2000); i++) {
        instruction q;
        memset(&q, 0, sizeof q);
        q.generation = TRN_TRAINIUM2;
        q.twin.m = 1 + cases_below(&rng, 9);
        q.twin.n = 1 + cases_below(&rng, 40);
        q.twin.k = 1 + cases_below(&rng, 128);
        q.twin.a_format = format[cases_below(&rng, COUNT(format))];
        do q.twin.b_format = format[cases_below(&rng, COUNT(format))];
        while (!problem_legal(PROBLEM_PLAIN, q.generation, q.twin.a_format, q.twin.b_format));
        q.twin.dst_format = TWIN_F32;
        q.numerics = problem_fast_order(&rng);
        q.numerics.fp32_mode = (trn_fp32_mode)cases_below(&rng, 3);
        instruction_build(&q, (bridge_values)cases_below(&rng, BRIDGE_VALUES), &rng);
        const bool moving = i & 1;
        const array *one = moving ? &q.moving : &q.stationary;
        const int rows = q.twin.k, lanes = moving ? q.twin.n : q.twin.m, f = moving ? q.twin.b_format : q.twin.a_format;
        const twin_number unit = twin_make(false, 1, 0);
        const uint32_t code[2] = { 0, twin_encode(&twin_formats[f], &unit, twin_plain(TWIN_NEAREST_EVEN)) };
        for (int r = 0; r < rows; r++)
            for (int l = 0; l < lanes; l++) array_put(one, r, l, 0, code[cases_below(&rng, 2)]);
        trn_error error;
        bool results = true;
        unsigned char *without = NULL;
        for (int hinted = 0; hinted < 2; hinted++) {
            memcpy(q.dst.memory, q.before, q.dst.bytes);
            trn_nc_matmul_args args = instruction_args(&q, TRN_ISA_AUTO, &error);
            args.is_moving_onezero = hinted && moving;
            args.is_stationary_onezero = hinted && !moving;
            if (trn_nc_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
            if (hinted)
                results = memcmp(without, q.dst.memory, q.dst.bytes) == 0;
            else
                without = bridge_copy(q.dst.memory, q.dst.bytes);
        }
        if (!results) fail_msg("the hint changed the result of %s", twin_formats[f].name);

        array_put(one, rows - 1, lanes - 1, 0,
                  code[1] | (twin_formats[f].bits == 32 ? 0x2000u : 1u)); /* above 1, in TF32 too */
        memcpy(q.dst.memory, q.before, q.dst.bytes);
        trn_nc_matmul_args args = instruction_args(&q, TRN_ISA_AUTO, &error);
        args.is_moving_onezero = moving;
        args.is_stationary_onezero = !moving;
        assert_int_equal(TRN_EINVAL, trn_nc_matmul(&args));
        if (!strstr(error.text, "onezero")) fail_msg("\"%s\"", error.text);
        assert_memory_equal(q.before, q.dst.memory, q.dst.bytes);
        free(without);
        instruction_free(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_is_legal),
        cmocka_unit_test(n_limits),
        cmocka_unit_test(k_and_m_limits),
        cmocka_unit_test(shapes),
        cmocka_unit_test(scales_of_operations),
        cmocka_unit_test(formats_of_dst),
        cmocka_unit_test(integers),
        cmocka_unit_test(tiles_that_fit),
        cmocka_unit_test(tiles_that_do_not),
        cmocka_unit_test(the_place_in_the_array_changes_no_bit),
        cmocka_unit_test(fresh_psum),
        cmocka_unit_test(hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

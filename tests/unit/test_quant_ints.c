/* test_quant_ints.c - integers of AWQ, GPTQ and compressed-tensors in checkpoints: random matrices packed by a twin,
 * every width, zeros at the ends, any order of groups, scales that are no numbers; and what is refused, and how.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON)

#include "io/int4_awq.h"
#include "io/int4_gptq.h"
#include "io/int4_packed.h"
#include "twin/twin_quant.h"
#include "unit/made_tensor.h"

enum { WORDS = TWIN_ROWS * TWIN_COLUMNS };

static st_tensor matrix(const char *name, const char *type, int64_t a, int64_t b, const void *data)
{
    return tensor(name, type, 2, (int64_t[]){ a, b }, data);
}

/* ---- a file of the twin's matrix ---- */

static struct {
    unsigned char words[4 * WORDS], zeros[4 * WORDS], scales[4 * WORDS], order[4 * TWIN_COLUMNS];
} file;

static const char *scale_type(const twin_quant *q)
{
    return q->scale_bytes == 4 ? "F32" : q->scale_mantissa == 10 ? "F16" : "BF16";
}

static void put(unsigned char *at, uint32_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(number >> 8 * i);
}

/* `down`: [groups, rows]. */
static st_tensor scales_of(const twin_quant *q, bool down)
{
    for (int r = 0; r < q->rows; r++)
        for (int g = 0; g < q->groups; g++)
            put(file.scales + q->scale_bytes * (down ? g * q->rows + r : r * q->groups + g), q->scale[r][g],
                q->scale_bytes);
    return matrix("x.scales", scale_type(q), down ? q->groups : q->rows, down ? q->rows : q->groups, file.scales);
}

static st_tensor order_of(const twin_quant *q)
{
    for (int k = 0; k < q->columns; k++) put(file.order + 4 * k, (uint32_t)q->of[k], 4);
    return tensor("x.g_idx", "I32", 1, (int64_t[]){ q->columns }, file.order);
}

static void check_matrix(const int_groups *m, const twin_quant *q)
{
    float row[TWIN_COLUMNS + 1];
    int16_t integer[TWIN_COLUMNS + 1];
    row[q->columns] = 7;
    integer[q->columns] = 7;
    assert_true(m->rows == q->rows && m->columns == q->columns && m->groups == q->groups);
    for (int r = 0; r < q->rows; r++) {
        int_groups_row(m, r, row);
        int_groups_integers(m, r, integer);
        for (int k = 0; k < q->columns; k++) {
            const int g = (int)int_groups_of(m, k);
            assert_int_equal(g, q->of[k]);
            assert_int_equal(bits_of(row[k]), twin_quant_odd(twin_quant_value(q, r, k)));
            assert_int_equal(integer[k], q->code[r][k] - q->zero[r][g]);
            assert_int_equal(bits_of(int_groups_scale(m, r, g)), twin_quant_odd(twin_quant_scale(q, r, g)));
        }
        assert_true(row[q->columns] == 7 && integer[q->columns] == 7); /* not a number further */
    }
}

static void must(bool ok, const char *why)
{
    if (!ok) fail_msg("%s", why);
}

/* ---- random matrices ---- */

static void awq(void **state)
{
    static twin_quant q;
    uint64_t rng = 30;
    char why[IO_WHY] = "";
    (void)state;
    for (int i = 0; i < 100; i++) {
        int_groups m;
        memset(&file, 0, sizeof file);
        q.bits = 4;
        q.rows = 8 + 8 * cases_below(&rng, 4);
        q.columns = 1 + cases_below(&rng, 130);
        q.group = q.columns / (1 + cases_below(&rng, 6)) + 1;
        twin_quant_draw(&rng, &q, 15, false);
        twin_quant_awq(&q, file.words, file.zeros);
        const st_tensor w = matrix("x.qweight", "I32", q.columns, q.rows / 8, file.words);
        const st_tensor z = matrix("x.qzeros", "I32", q.groups, q.rows / 8, file.zeros), s = scales_of(&q, true);
        const int4_awq_config said = { .version = i % 2 ? "GEMM" : NULL,
                                       .bits = i % 3 ? 4 : 0,
                                       .group_size = q.groups == 1 && i % 2 ? -1 : q.group };
        must(int4_awq_open(&w, &z, &s, &said, &m, why), why);
        check_matrix(&m, &q);
    }
}

static void gptq(void **state)
{
    static const int widths[] = { 2, 3, 4, 8 };
    static twin_quant q;
    uint64_t rng = 31;
    char why[IO_WHY] = "";
    (void)state;
    for (int i = 0; i < 200; i++) {
        const bool second = cases_one_in(&rng, 3), ordered = cases_one_in(&rng, 3), plain = cases_one_in(&rng, 2);
        int_groups m;
        memset(&file, 0, sizeof file);
        q.bits = widths[i % 4];
        q.rows = 1 + cases_below(&rng, TWIN_ROWS);
        q.columns = 1 + cases_below(&rng, TWIN_COLUMNS);
        if (plain && !ordered) q.columns = 32 + q.columns / 32 * 32; /* no g_idx tells how many there are */
        if (q.columns > TWIN_COLUMNS) q.columns = 160;
        q.group = q.columns / (1 + cases_below(&rng, 6)) + 1;
        twin_quant_draw(&rng, &q, (1 << q.bits) - second, ordered);
        for (int r = 0; r < q.rows && !second; r++)
            for (int g = 0; g < q.groups; g++) q.zero[r][g] += q.zero[r][g] == 0; /* it cannot be stored less one */
        twin_quant_gptq(&q, !second, file.words, file.zeros);
        const st_tensor w = matrix("x.qweight", "I32", twin_quant_words(q.columns, q.bits), q.rows, file.words);
        const st_tensor z = matrix("x.qzeros", "I32", q.groups, twin_quant_words(q.rows, q.bits), file.zeros);
        const st_tensor s = scales_of(&q, true), g = order_of(&q);
        const int4_gptq_parts part = { &w, &z, &s, plain && !ordered ? NULL : &g };
        const int4_gptq_config said = { .checkpoint_format = second  ? "gptq_v2"
                                                             : i % 2 ? "gptq"
                                                                     : NULL,
                                        .bits = q.bits,
                                        .group_size = part.g_idx && i % 5 == 0 ? 0 : q.group,
                                        .desc_act = ordered ? INT_GROUPS_TRUE : INT_GROUPS_UNSAID };
        must(int4_gptq_open(&part, &said, &m, why), why);
        check_matrix(&m, &q);
        int64_t largest = 0;
        for (int r = 0; r < q.rows; r++)
            for (int k = 0; k < q.groups; k++) largest += q.zero[r][k] == 1 << q.bits;
        assert_int_equal(int4_gptq_largest(&m), largest);
    }
}

static void packed(void **state)
{
    static twin_quant q;
    uint64_t rng = 32;
    char why[IO_WHY] = "";
    (void)state;
    for (int i = 0; i < 210; i++) {
        const bool symmetric = i % 2, ordered = cases_one_in(&rng, 3), narrow = cases_one_in(&rng, 2);
        static const char *const strategy[] = { "group", "tensor_group", NULL };
        unsigned char shape[16] = { 0 };
        signed char bytes[TWIN_ROWS * TWIN_GROUPS];
        int_groups m;
        memset(&file, 0, sizeof file);
        q.bits = 2 + i / 2 % 7;
        q.rows = 1 + cases_below(&rng, TWIN_ROWS);
        q.columns = 1 + cases_below(&rng, TWIN_COLUMNS);
        q.group = q.columns / (1 + cases_below(&rng, 6)) + 1;
        twin_quant_draw(&rng, &q, (1 << q.bits) - 1, ordered);
        for (int r = 0; r < q.rows; r++)
            for (int g = 0; g < q.groups; g++) {
                if (symmetric) q.zero[r][g] = 1 << (q.bits - 1);
                bytes[r * q.groups + g] = (signed char)(q.zero[r][g] - (1 << (q.bits - 1)));
            }
        twin_quant_packed(&q, file.words, file.zeros);
        put(shape, (uint32_t)q.rows, 4);
        put(shape + (narrow ? 4 : 8), (uint32_t)q.columns, 4);
        const st_tensor w = matrix("x.packed", "I32", q.rows, twin_quant_share(q.columns, q.bits), file.words);
        const st_tensor z = matrix("x.zero", "I32", twin_quant_share(q.rows, q.bits), q.groups, file.zeros);
        const st_tensor older = matrix("x.zero", "I8", q.rows, q.groups, bytes);
        const st_tensor s = scales_of(&q, false), g = order_of(&q);
        const st_tensor n = tensor("x.shape", narrow ? "I32" : "I64", 1, (int64_t[]){ 2 }, shape);
        const int4_packed_parts part = { .packed = &w,
                                         .scale = &s,
                                         .shape = &n,
                                         .zero_point = symmetric ? NULL
                                                       : narrow  ? &older
                                                                 : &z,
                                         .g_idx = ordered || i % 3 == 0 ? &g : NULL };
        const int4_packed_config said = { .strategy = q.groups == 1 && i % 2 ? "channel" : strategy[i % 3],
                                          .num_bits = q.bits,
                                          .group_size = q.group,
                                          .symmetric = symmetric ? INT_GROUPS_TRUE : INT_GROUPS_FALSE };
        must(int4_packed_open(&part, &said, &m, why), why);
        check_matrix(&m, &q);
        if (ordered && q.groups > 1) { /* nobody wrote one: groups as they come */
            put(file.order + 4 * (q.columns / 2), UINT32_MAX, 4);
            must(int4_packed_open(&part, &said, &m, why), why);
            for (int k = 0; k < q.columns; k++) assert_int_equal(int_groups_of(&m, k), k / q.group);
        }
    }
}

/* What lies just beside the middle of two numbers of BF16 stays there. */
static void odd_numbers(void **state)
{
    static const struct {
        double v;
        uint32_t bits;
    } row[] = { { 1, 0x3f800000 },
                { 1 + 0x1p-30, 0x3f800001 },
                { 1 - 0x1p-30, 0x3f7fffff },
                { 1 + 0x1p-23 + 0x1p-40, 0x3f800001 },
                { 1 + 0x1p-22 - 0x1p-40, 0x3f800001 },
                { -(1 + 0x1p-8 + 0x1p-45), 0xbf808001 },
                { 0x1p-200, 1 },
                { -0x1p-200, 0x80000001 },
                { 0x1.8p-149, 1 },
                { 0x1p200, 0x7f7fffff },
                { -0x1.ffffffp127, 0xff7fffff },
                { HUGE_VAL, 0x7f800000 },
                { -0.0, 0x80000000 } };
    uint64_t rng = 33;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(io_bits(io_odd(row[i].v)), row[i].bits);
        assert_int_equal(twin_quant_odd(row[i].v), row[i].bits);
    }
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = cases_next(&rng);
        const double v = ldexp((double)(int64_t)bits, cases_below(&rng, 400) - 250);
        assert_int_equal(io_bits(io_odd(v)), twin_quant_odd(v));
    }
}

/* ---- what is refused ---- */

/* A good set of four tensors, in which one thing is spoilt. */
typedef struct good {
    unsigned char words[4 * 64], zeros[64], scales[128], order[4 * 64], shape[16];
    st_tensor weight, zero, scale, g_idx, size;
} good;

static void check_sentence(bool ok, const char *why, const char *what)
{
    if (ok) fail_msg("accepted, but: %s", what);
    if (strncmp(why, "x.w: ", 5) != 0 || !strstr(why, what)) fail_msg("%s\nexpected: %s", why, what);
}

static void awq_refused(void **state)
{
    static const struct {
        const char *weight, *zero, *scale;
        int64_t w[2], z[2], s[2];
        int4_awq_config said;
        const char *what;
    } row[] = {
#define FIT { 64, 2 }, { 2, 2 }, { 2, 16 }
        { "I32", "I32", "F16", FIT, { "gemv", 4, 32 }, "version 'gemv', another layout" },
        { "I32", "I32", "F16", FIT, { "gemv_fast", 4, 32 }, "version 'gemv_fast'" },
        { "I32", "I32", "F16", FIT, { "marlin", 4, 32 }, "version 'marlin'" },
        { "I32", "I32", "F16", FIT, { "exllama", 4, 32 }, "version 'exllama'" },
        { "I32", "I32", "F16", FIT, { "gemm", 8, 32 }, "8 bits" },
        { "I32", "I32", "F16", FIT, { "gemm", 4, 64 }, "2 groups of scales for 64 inputs; group_size 64 makes 1" },
        { "I32", "I32", "F16", FIT, { "gemm", 4, -1 }, "group_size -1 makes 1" },
        { "I32", "I32", "F16", FIT, { "gemm", 4, -2 }, "group_size -2; expected -1 or" },
        { "I16", "I32", "F16", FIT, { "gemm", 4, 32 }, "the type of its qweight is I16; expected I32" },
        { "I32", "U8", "F16", FIT, { "gemm", 4, 32 }, "the type of its qzeros is U8" },
        { "I32", "I32", "F8_E4M3", FIT, { "gemm", 4, 32 }, "scales is F8_E4M3; expected F16 BF16 F32" },
        { "I32",
          "I32",
          "F16",
          { 64, 2 },
          { 2, 3 },
          { 2, 16 },
          { "gemm", 4, 32 },
          "the shape of its qzeros is [2, 3]; expected [2, 2]" },
        { "I32",
          "I32",
          "F16",
          { 64, 2 },
          { 2, 2 },
          { 2, 17 },
          { "gemm", 4, 32 },
          "scales is [2, 17]; expected [.., 16]" },
        { "I32", "I32", "F16", { 64, 2 }, { 3, 2 }, { 3, 16 }, { "gemm", 4, 0 }, "does not say the group_size" },
        { "I32",
          "I32",
          "F16",
          { 0, 2 },
          { 2, 2 },
          { 2, 16 },
          { "gemm", 4, 32 },
          "expected a matrix with axes of 1 to 2^44" },
    };
    static unsigned char zeros[4096];
    char why[IO_WHY];
    int_groups m;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const st_tensor w = matrix("x.w", row[i].weight, row[i].w[0], row[i].w[1], zeros);
        const st_tensor z = matrix("x.z", row[i].zero, row[i].z[0], row[i].z[1], zeros);
        const st_tensor s = matrix("x.s", row[i].scale, row[i].s[0], row[i].s[1], zeros);
        check_sentence(int4_awq_open(&w, &z, &s, &row[i].said, &m, why), why, row[i].what);
    }
    const st_tensor w = matrix("x.w", "I32", 64, 2, zeros), s = matrix("x.s", "F16", 2, 16, zeros);
    const st_tensor cube = tensor("x.w", "I32", 3, (int64_t[]){ 64, 2, 2 }, zeros);
    const st_tensor huge = matrix("x.w", "I32", (INT64_C(1) << 44) + 1, 2, zeros);
    const int4_awq_config said = { "gemm", 4, 32 };
    check_sentence(int4_awq_open(&cube, &w, &s, &said, &m, why), why, "is [64, 2, 2]; expected a matrix with axes");
    check_sentence(int4_awq_open(&huge, &w, &s, &said, &m, why), why, "is [17592186044417, 2]; expected a matrix");
    check_sentence(int4_awq_open(&w, NULL, &s, &said, &m, why), why, "it has no qzeros");
    check_sentence(int4_awq_open(&w, &s, NULL, &said, &m, why), why, "it has no scales");
    assert_false(int4_awq_open(NULL, &w, &s, &said, &m, why));
}

/* [64, 16] of 4 bits, groups of 32. */
static void set_gptq(good *f, bool second)
{
    memset(f, 0, sizeof *f);
    memset(f->zeros, second ? 0x88 : 0x77, sizeof f->zeros);
    for (int k = 0; k < 64; k++) put(f->order + 4 * k, (uint32_t)k / 32, 4);
    f->weight = matrix("x.w", "I32", 8, 16, f->words);
    f->zero = matrix("x.z", "I32", 2, 2, f->zeros);
    f->scale = matrix("x.s", "F16", 2, 16, f->scales);
    f->g_idx = tensor("x.g_idx", "I32", 1, (int64_t[]){ 64 }, f->order);
}

static void gptq_refused(void **state)
{
    static const struct {
        int4_gptq_config said;
        const char *what; /* NULL: accepted */
    } row[] = {
        { { NULL, 4, 32, INT_GROUPS_FALSE, INT_GROUPS_TRUE }, NULL },
        { { "gptq", 4, 32, INT_GROUPS_UNSAID, INT_GROUPS_FALSE }, NULL },
        { { "gptq", 4, 0, INT_GROUPS_UNSAID, INT_GROUPS_FALSE }, NULL },
        { { "gptq_v2", 4, 32, INT_GROUPS_FALSE, INT_GROUPS_FALSE }, NULL },
        { { "gptq_v2", 4, 32, INT_GROUPS_FALSE, INT_GROUPS_TRUE }, "zeros are 8, but 32 of them are not" },
        { { "marlin", 4, 32, 0, 0 }, "checkpoint_format 'marlin'; gptq and gptq_v2 are read" },
        { { "bitblas", 4, 32, 0, 0 }, "checkpoint_format 'bitblas'" },
        { { "gptq_p", 4, 32, 0, 0 }, "checkpoint_format 'gptq_p'" },
        { { "exllama", 4, 32, 0, 0 }, "checkpoint_format 'exllama'" },
        { { "gptq", 5, 32, 0, 0 }, "GPTQ with 5 bits; 2, 3, 4 and 8" },
        { { "gptq", 0, 32, 0, 0 }, "GPTQ with 0 bits" },
        { { "gptq", 8, 32, 0, 0 }, "8 rows of words; 64 inputs of 8 bits take 16" },
        { { "gptq", 4, 64, 0, 0 }, "group_size 64 makes 1" },
        { { "gptq", 4, 16, 0, 0 }, "group_size 16 makes 4" },
    };
    static good f;
    char why[IO_WHY];
    int_groups m;
    (void)state;
    set_gptq(&f, false);
    const int4_gptq_parts part = { &f.weight, &f.zero, &f.scale, &f.g_idx };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const bool ok = int4_gptq_open(&part, &row[i].said, &m, why);
        if (row[i].what)
            check_sentence(ok, why, row[i].what);
        else
            must(ok, why);
        if (ok && row[i].said.group_size) assert_null(m.order); /* it says nothing more, and would cost time */
    }
    const int4_gptq_config said = { "gptq", 4, 32, INT_GROUPS_FALSE, INT_GROUPS_TRUE };
    const int4_gptq_config any = { "gptq", 4, 32, INT_GROUPS_TRUE, INT_GROUPS_FALSE };
    const int4_gptq_parts bare = { &f.weight, NULL, &f.scale, NULL };
    must(int4_gptq_open(&bare, &said, &m, why), why); /* symmetric: the zero is known */
    assert_int_equal(int_groups_zero(&m, 3, 1), 8);
    f.zeros[9] = 0xf7; /* 16, or 0 and one less beside it */
    int4_gptq_config made = { "gptq", 4, 32, INT_GROUPS_FALSE, INT_GROUPS_FALSE };
    must(int4_gptq_open(&part, &made, &m, why), why);
    assert_true(int4_gptq_largest(&m) == 1 && int_groups_zero(&m, 3, 1) == 16 && int_groups_zero(&m, 4, 1) == 8);
    must(int4_gptq_trusted(&f.weight, &m, NULL, why) && int4_gptq_trusted(&f.weight, &m, "autogptq:0.7.1", why), why);
    check_sentence(int4_gptq_trusted(&f.weight, &m, "GPTQModel:1.4.2", why), why, "less one (1 here), which changed");
    made.checkpoint_format = "gptq_v2";
    must(int4_gptq_open(&part, &made, &m, why) && int4_gptq_trusted(&f.weight, &m, "gptqmodel:1.4.2", why), why);
    f.zeros[9] = 0x77;
    const int4_gptq_config open = { "gptq", 4, 32, INT_GROUPS_UNSAID, INT_GROUPS_UNSAID };
    check_sentence(int4_gptq_open(&bare, &open, &m, why), why, "it has no qzeros");
    const int4_gptq_config unsaid = { "gptq", 4, 0, INT_GROUPS_UNSAID, INT_GROUPS_TRUE };
    check_sentence(int4_gptq_open(&bare, &any, &m, why), why, "it has no g_idx");
    check_sentence(int4_gptq_open(&bare, &unsaid, &m, why), why,
                   "no g_idx, and config.json does not say the group_size");
    put(f.order, 1, 4), put(f.order + 4 * 63, 0, 4); /* two change places */
    must(int4_gptq_open(&part, &any, &m, why), why);
    const int4_gptq_config still = { "gptq", 4, 0, INT_GROUPS_FALSE, INT_GROUPS_FALSE };
    check_sentence(int4_gptq_open(&part, &still, &m, why), why, "out of order, and config.json says that");
    check_sentence(int4_gptq_open(&part, &said, &m, why), why,
                   "out of order, and config.json says that desc_act is false");
    put(f.order, 2, 4);
    check_sentence(int4_gptq_open(&part, &any, &m, why), why, "puts input 0 into group 2; there are 2");
    put(f.order, UINT32_MAX, 4);
    check_sentence(int4_gptq_open(&part, &any, &m, why), why, "puts input 0 into group -1");
    put(f.order, 0, 4);
    check_sentence(int4_gptq_open(&part, &any, &m, why), why, "puts more than 32 inputs into group 0");
    f.g_idx.shape[0] = 56;
    check_sentence(int4_gptq_open(&part, &any, &m, why), why, "8 rows of words; 56 inputs");
    f.g_idx.rank = 2, f.g_idx.shape[0] = 64, f.g_idx.shape[1] = 1;
    check_sentence(int4_gptq_open(&part, &any, &m, why), why, "its g_idx is I32 [64, 1]; expected I32 [64]");
    set_gptq(&f, false);
    must(int4_gptq_open(&part, &still, &m, why), why);
    f.g_idx.shape[0] = 63, put(f.order + 4 * 31, 1, 4); /* 31 and 32 of 63, where 32 and 31 would be in order */
    check_sentence(int4_gptq_open(&part, &said, &m, why), why, "out of order");
    must(int4_gptq_open(&part, &still, &m, why), why);
    set_gptq(&f, true);
    must(!int4_gptq_open(&part, &said, &m, why), "zeros of gptq_v2 called gptq were taken for 9");
}

/* One group needs neither g_idx nor a size, whatever is said; of each width the zero of a symmetric one is known. */
static void gptq_single(void **state)
{
    static const int widths[] = { 2, 3, 4, 8 };
    static const int64_t sizes[] = { -1, 0, 64 };
    static unsigned char words[4 * 64 * 8], scales[16];
    char why[IO_WHY];
    int_groups m;
    (void)state;
    for (int i = 0; i < 12; i++) {
        const int bits = widths[i % 4];
        const st_tensor w = matrix("x.w", "I32", 2 * bits, 8, words), s = matrix("x.s", "F16", 1, 8, scales);
        const int4_gptq_parts part = { .qweight = &w, .scales = &s };
        const int4_gptq_config said = {
            .bits = bits, .group_size = sizes[i / 4], .desc_act = INT_GROUPS_TRUE, .sym = INT_GROUPS_TRUE
        };
        must(int4_gptq_open(&part, &said, &m, why), why);
        assert_true(m.columns == 64 && m.group == 64 && int_groups_zero(&m, 7, 0) == 1 << (bits - 1));
    }
}

/* [16, 62] of 4 bits, groups of 31: two of the numbers are padding. */
static void set_packed(good *f)
{
    memset(f, 0, sizeof *f);
    put(f->shape, 16, 4), put(f->shape + 8, 62, 4);
    f->weight = matrix("x.w", "I32", 16, 8, f->words);
    f->zero = matrix("x.z", "I32", 2, 2, f->zeros);
    f->scale = matrix("x.s", "F16", 16, 2, f->scales);
    f->size = tensor("x.n", "I64", 1, (int64_t[]){ 2 }, f->shape);
}

static void packed_refused(void **state)
{
    static const struct {
        int4_packed_config said;
        bool zeros;
        const char *what;
    } row[] = {
        { { "pack-quantized", "int", "group", 4, 31, INT_GROUPS_TRUE }, false, NULL },
        { { NULL, NULL, NULL, 4, 0, INT_GROUPS_UNSAID }, false, NULL },
        { { NULL, NULL, NULL, 4, 0, INT_GROUPS_UNSAID }, true, NULL },
        { { NULL, NULL, NULL, 4, 0, INT_GROUPS_TRUE }, true, "zero points, and config.json says that it is symmetric" },
        { { NULL, NULL, NULL, 4, 0, INT_GROUPS_FALSE }, false, "it has no zero points" },
        { { "marlin-24", NULL, NULL, 4, 31, 0 }, false, "format 'marlin-24' for it; pack-quantized is read" },
        { { "int-quantized", NULL, NULL, 4, 31, 0 }, false, "format 'int-quantized'" },
        { { NULL, "float", NULL, 4, 31, 0 }, false, "type 'float' for it; int is read" },
        { { NULL, NULL, "block", 4, 31, 0 }, false, "strategy 'block'" },
        { { NULL, NULL, "token", 4, 31, 0 }, false, "strategy 'token'" },
        { { NULL, NULL, "channel", 4, 0, 0 }, false, "scales is [16, 2]; expected [16, 1]" },
        { { NULL, NULL, "tensor", 4, 0, 0 }, false, "scales is [16, 2]; expected [16, 1]" },
        { { NULL, NULL, "group", 1, 31, 0 }, false, "num_bits 1; 2 to 8" },
        { { NULL, NULL, "group", 16, 31, 0 }, false, "num_bits 16" },
        { { NULL, NULL, "group", 8, 31, 0 }, false, "weight_shape is [16, 62], which does not fit [16, 8] words of 8" },
        { { NULL, NULL, "group", 4, 16, 0 }, false, "2 groups of scales for 62 inputs; group_size 16 makes 4" },
    };
    static good f;
    char why[IO_WHY];
    int_groups m;
    (void)state;
    set_packed(&f);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const int4_packed_parts part = {
            .packed = &f.weight, .scale = &f.scale, .shape = &f.size, .zero_point = row[i].zeros ? &f.zero : NULL
        };
        const bool ok = int4_packed_open(&part, &row[i].said, &m, why);
        if (row[i].what)
            check_sentence(ok, why, row[i].what);
        else
            must(ok, why);
    }
    const int4_packed_config said = { .num_bits = 4, .group_size = 31 };
    const st_tensor bytes = matrix("x.z", "I8", 16, 2, f.zeros); /* older versions wrote zeros of symmetric ones, too */
    const int4_packed_parts older = { .packed = &f.weight, .scale = &f.scale, .shape = &f.size, .zero_point = &bytes };
    const int4_packed_config symmetric = { .num_bits = 4, .group_size = 31, .symmetric = INT_GROUPS_TRUE };
    f.zeros[5] = 253;
    must(int4_packed_open(&older, &symmetric, &m, why), why);
    assert_true(int_groups_zero(&m, 2, 1) == 8 - 3 && int_groups_zero(&m, 2, 0) == 8);
    f.zeros[5] = 0;
    int4_packed_parts part = { .packed = &f.weight, .scale = &f.scale, .global = &f.zero, .shape = &f.size };
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "the global scale x.z");
    part.global = NULL;
    part.shape = NULL;
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "it has no weight_shape");
    part.shape = &f.scale;
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "weight_shape is F16 [16, 2]");
    part.shape = &f.size;
    put(f.shape, 17, 4);
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "weight_shape is [17, 62]");
    put(f.shape, 16, 4), put(f.shape + 12, 1, 4);
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "which does not fit [16, 8] words of 4 bits");
}

/* One scale for a matrix, of any rank. */
static void packed_single(void **state)
{
    static unsigned char words[4 * 16], one[4 * 16] = { 0, 0x40 }; /* 2 */
    unsigned char shape[8] = { 16, 0, 0, 0, 7 };
    float row[7];
    char why[IO_WHY];
    int_groups m;
    (void)state;
    for (int r = 0; r < 16; r++) put(words + 4 * r, 0x0edcba98u + (uint32_t)r, 4);
    const st_tensor w = matrix("x.w", "I32", 16, 1, words), n = tensor("x.n", "I32", 1, (int64_t[]){ 2 }, shape);
    for (int i = 0; i < 9; i++) {
        static const char *const strategy[] = { NULL, "tensor", "channel" };
        const st_tensor s = tensor("x.s", "F16", i / 3, (int64_t[]){ 1, 1 }, one);
        const int4_packed_parts part = { .packed = &w, .scale = &s, .shape = &n };
        const int4_packed_config said = { .num_bits = 4, .strategy = strategy[i % 3] };
        must(int4_packed_open(&part, &said, &m, why), why);
        for (int r = 0; r < 16; r++) {
            int_groups_row(&m, r, row);
            for (int k = 0; k < 7; k++)
                assert_true(row[k] == 2.0f * (float)((0x0edcba98u + (uint32_t)r) >> 4 * k & 15) - 16);
        }
    }
    const st_tensor s = matrix("x.s", "F16", 16, 1, one);
    const int4_packed_parts part = { .packed = &w, .scale = &s, .shape = &n };
    const int4_packed_config said = { .num_bits = 4, .strategy = "tensor" };
    check_sentence(int4_packed_open(&part, &said, &m, why), why, "says strategy tensor, but its scales are [16, 1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_numbers),    cmocka_unit_test(awq),           cmocka_unit_test(gptq),
        cmocka_unit_test(packed),         cmocka_unit_test(awq_refused),   cmocka_unit_test(gptq_refused),
        cmocka_unit_test(packed_refused), cmocka_unit_test(packed_single), cmocka_unit_test(gptq_single),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

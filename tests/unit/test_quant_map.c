/* test_quant_map.c - which tensors of a checkpoint are one matrix, in which blocks, and what its elements are; which
 * are nobody's, and why a matrix cannot be read.
 * SPDX-License-Identifier: MIT
 *
 * A few made-up tensors each; whole files of every layout are held against a twin by tests/cli/quant.sh.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2)

#include "io/quant/foreign.h"
#include "io/quant/values.h"
#include "unit/made_tensor.h"

/* ---- a checkpoint ---- */

enum { MOST = 8 };

static struct {
    st_tensor tensor[MOST];
    const st_tensor *list[MOST];
    quant_said said;
    quant_asked asked;
    quant_map map;
} now;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const st_tensor *const *)a)->name, (*(const st_tensor *const *)b)->name);
}

#define SURVEY(config, ...)                                                                                            \
    survey(config, (const st_tensor[]){ __VA_ARGS__ }, (int)(sizeof(st_tensor[]){ __VA_ARGS__ } / sizeof(st_tensor)))

/* now.asked holds for it. */
static const quant_map *survey(const char *config, const st_tensor *tensor, int n)
{
    char why[IO_WHY] = "";
    assert_true(n <= MOST);
    if (!quant_said_parse(config, strlen(config), &now.said, why)) fail_msg("%s", why);
    for (int i = 0; i < n; i++) {
        now.tensor[i] = tensor[i];
        now.list[i] = &now.tensor[i];
    }
    qsort(now.list, (size_t)n, sizeof *now.list, by_name);
    now.map = (quant_map){ .tensor = now.list, .tensors = n, .said = &now.said, .asked = &now.asked };
    if (!quant_survey(&now.map, why)) fail_msg("%s", why);
    return &now.map;
}

static void done(void)
{
    quant_map_free(&now.map);
    quant_said_free(&now.said);
    memset(&now, 0, sizeof now);
}

static st_tensor matrix(const char *name, const char *type, int64_t a, int64_t b, const void *data)
{
    return tensor(name, type, 2, (int64_t[]){ a, b }, data);
}

static const quant *matrix_of(const char *name)
{
    const int place = quant_find(&now.map, name);
    assert_true(place >= 0 && now.map.number[place] >= 0);
    return &now.map.quant[now.map.number[place]];
}

static const quant *good(const char *name)
{
    const quant *q = matrix_of(name);
    if (q->wrong) fail_msg("%s", q->wrong);
    return q;
}

static void open_values(const quant *q, quant_values *v)
{
    const st_tensor *part[QUANT_PARTS] = { NULL };
    char why[IO_WHY] = "";
    for (int i = 0; i < QUANT_PARTS; i++)
        if (q->part[i] >= 0) part[i] = now.map.tensor[q->part[i]];
    if (!quant_open(q, part, v, why)) fail_msg("%s", why);
    quant_at(v, part[QUANT_CODES]->data);
}

/* ---- blocks ---- */

static void assert_blocks(const quant *q, int64_t rows, int64_t columns)
{
    assert_int_equal(q->grid.block_rows, rows);
    assert_int_equal(q->grid.block_columns, columns);
}

/* Blocks of 100 would fit as well as those of 128: the configuration says which, on both axes. */
static void blocks_are_what_is_said(void **state)
{
    (void)state;
    static const char *const said[] = { "{\"quantization\":{\"quant_algo\":\"FP8_PB_WO\"}}",
                                        "{\"quantization_config\":{\"quant_method\":\"fp8\","
                                        "\"weight_block_size\":[128,128]}}" };
    for (size_t i = 0; i < 2; i++) {
        SURVEY(said[i], matrix("m.a.weight", "F8_E4M3", 300, 300, NULL), matrix("m.a.weight_scale", "F32", 3, 3, NULL));
        assert_blocks(good("m.a.weight"), 128, 128);
        done();
    }
    now.asked.block[0] = 16, now.asked.block[1] = 32;
    SURVEY("{}", matrix("m.a.weight", "F8_E4M3", 60, 126, NULL), matrix("m.a.weight_scale", "F32", 4, 4, NULL));
    assert_blocks(good("m.a.weight"), 16, 32);
    done();
    SURVEY("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"g\":{\"targets\":["
           "\"Linear\"],\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"channel\"}}}}}",
           matrix("m.a.weight", "F8_E4M3", 64, 64, NULL), matrix("m.a.weight_scale", "F32", 5, 1, NULL));
    assert_string_equal(matrix_of("m.a.weight")->wrong,
                        "m.a.weight: its scale m.a.weight_scale of shape [5, 1] does not have the shape that "
                        "config.json's block_structure [1, -1] gives it");
    done();
}

/* By the sizes that the configuration has: inputs first, or outputs. */
static void experts_in_one_tensor(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t a, b;
        int outputs;
    } row[] = {
        { "m.experts.gate_up_proj", 64, 32, -1 }, { "m.experts.gate_up_proj", 32, 64, -2 },
        { "m.experts.down_proj", 16, 64, -1 },    { "m.experts.down_proj", 64, 16, -2 },
        { "m.experts.w1", 64, 16, -1 },           { "m.experts.w2", 64, 16, -2 },
        { "m.experts.gate_up_proj", 64, 48, 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        SURVEY("{\"hidden_size\":64,\"moe_intermediate_size\":16,\"quantization_config\":{\"quant_method\":\"fp8\"}}",
               tensor(row[i].name, "F8_E4M3", 3, (int64_t[]){ 2, row[i].a, row[i].b }, NULL));
        if (matrix_of(row[i].name)->outputs != row[i].outputs) fail_msg("row %zu", i);
        done();
    }
}

/* ---- whose a tensor is ---- */

static void scales_by_name(void **state)
{
    (void)state;
    now.asked.scale_name[0] = "{base}.s", now.asked.scale_names = 1;
    const quant_map *m = SURVEY("{}", matrix("m.a.bias", "F32", 4, 1, NULL),
                                matrix("m.a.input_scale", "F32", 1, 1, NULL), matrix("m.a.k_scale", "F32", 1, 1, NULL),
                                matrix("m.a.s", "F32", 4, 1, NULL), matrix("m.a.weight", "F8_E4M3", 4, 32, NULL));
    const int scale = quant_find(m, "m.a.s");
    assert_int_equal(good("m.a.weight")->part[QUANT_SCALE], scale);
    assert_int_equal(m->role[scale], QUANT_PART);
    assert_int_equal(m->role[quant_find(m, "m.a.bias")], QUANT_PLAIN);
    assert_int_equal(m->role[quant_find(m, "m.a.input_scale")], QUANT_RUN_SCALE);
    assert_int_equal(m->role[quant_find(m, "m.a.k_scale")], QUANT_CACHE_SCALE);
    done();
    SURVEY("{}", matrix("m.a.scl", "F32", 4, 1, NULL), matrix("m.a.weight", "F8_E4M3", 4, 32, NULL));
    assert_string_equal(matrix_of("m.a.weight")->wrong,
                        "m.a.weight: it has no scale of a name that is known, and m.a.scl could be it: --scale-name "
                        "'{base}.scl' says that it is, and --no-rules takes 1");
    done();
}

static const char awq[] = "{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":64}}";

/* What is part of a matrix is in no foreign format, the first of all tensors, too. */
static void what_is_nobodys(void **state)
{
    (void)state;
    char text[QUANT_FOREIGN];
    int place;
    const st_tensor codes = matrix("a.qweight", "I32", 64, 1, NULL), scales = matrix("a.scales", "F16", 1, 8, NULL);
    const quant_map *m = SURVEY(awq, codes, matrix("a.qzeros", "I32", 1, 1, NULL), scales);
    good("a.qweight");
    if (quant_foreign(m, &place, text)) fail_msg("%s is %s", m->tensor[place]->name, text);
    done();
    m = SURVEY(awq, codes, matrix("a.qzeros", "I32", 1, 1, NULL), scales, matrix("b.qweight", "I64", 64, 1, NULL));
    assert_true(quant_foreign(m, &place, text));
    assert_string_equal(text, "AWQ");
    assert_string_equal(m->tensor[place]->name, "b.qweight");
    done();
}

static void who_made_it(void **state)
{
    (void)state;
    static const struct {
        const char *meta, *maker;
    } row[] = {
        { "{}", NULL },
        { "{\"meta\":{\"quantizer\":\"gptqmodel:1.4.2\"}}", "gptqmodel:1.4.2" },
        { "{\"meta\":{\"quantizer\":[\"other:1\",\"gptqmodel:1.4.2\",\"third:2\"]}}", "gptqmodel:1.4.2" },
        { "{\"meta\":{\"quantizer\":[\"other:1\",\"third:2\"]}}", "other:1" },
        { "{\"meta\":{\"quantizer\":[]}}", NULL },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cJSON *said = cJSON_Parse(row[i].meta);
        const char *maker = quant_gptq_maker(said);
        if (!maker || !row[i].maker)
            assert_ptr_equal(maker, row[i].maker);
        else
            assert_string_equal(maker, row[i].maker);
        cJSON_Delete(said);
    }
}

/* ---- values ---- */

static void a_scale_for_each_row(void **state)
{
    (void)state;
    unsigned char codes[4 * 32];
    const float scale[4] = { 1, 2, 4, 0.5f };
    float x[32];
    quant_values v;
    memset(codes, 0x38, sizeof codes); /* 1 */
    SURVEY("{}", matrix("m.a.weight", "F8_E4M3", 4, 32, codes), matrix("m.a.weight_scale", "F32", 4, 1, scale));
    open_values(good("m.a.weight"), &v);
    assert_int_equal(v.rows, 4);
    assert_int_equal(v.columns, 32);
    for (int64_t r = 0; r < 4; r++) {
        quant_run(&v, r, 0, 32, x, 1);
        for (int i = 0; i < 32; i++) assert_true(x[i] == scale[r]);
    }
    quant_close(&v);
    done();
}

static void codes_of_a_table(void **state)
{
    (void)state;
    static const float table[16] = { -1.0f,        -0.69619280f, -0.52507305f,  -0.39491749f,
                                     -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
                                     0.079580300f, 0.16093020f,  0.24611230f,   0.33791524f,
                                     0.44070983f,  0.56261700f,  0.72295684f,   1.0f };
    static const char text[] = "{\"quant_type\":\"nf4\",\"blocksize\":64,\"dtype\":\"float32\",\"shape\":[2,64]}";
    unsigned char codes[64];
    const float most[2] = { 3, 5 };
    float x[64];
    quant_values v;
    for (int i = 0; i < 64; i++) codes[i] = (unsigned char)(37 * i);
    SURVEY("{}", matrix("m.a.weight", "U8", 64, 1, codes),
           tensor("m.a.weight.absmax", "F32", 1, (int64_t[]){ 2 }, most),
           tensor("m.a.weight.quant_map", "F32", 1, (int64_t[]){ 16 }, table),
           tensor("m.a.weight.quant_state.bitsandbytes__nf4", "U8", 1, (int64_t[]){ sizeof text - 1 }, text));
    const quant *q = good("m.a.weight");
    assert_int_equal(q->kind, QUANT_NF4);
    open_values(q, &v);
    assert_int_equal(v.rows, 2);
    assert_int_equal(v.columns, 64);
    for (int64_t r = 0; r < 2; r++) {
        quant_run(&v, r, 0, 64, x, 1);
        for (int i = 0; i < 64; i++) {
            const int byte = codes[32 * r + i / 2]; /* the first of two is the upper one */
            assert_true(x[i] == table[i % 2 ? byte & 15 : byte >> 4] * most[r]);
        }
    }
    quant_close(&v);
    done();
}

/* Numbers that no second scale can be, and more of them than there is memory for. */
static void second_scales(void **state)
{
    (void)state;
    static const struct {
        float x;
        bool divides;
        const char *sentence;
    } row[] = {
        { NAN, false, "s: it is nan; expected a number that is finite and not negative" },
        { -1, false, "s: it is -1; expected a number that is finite and not negative" },
        { INFINITY, true, "s: it is inf; expected a number that is finite and positive" },
        { 0, true, "s: it is 0; expected a number that is finite and positive" },
        { 0, false, NULL },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const st_tensor s = tensor("s", "F32", 1, (int64_t[]){ 1 }, &row[i].x);
        const quant q = { .kind = QUANT_NVFP4, .divides = row[i].divides };
        quant_values v;
        char why[IO_WHY] = "";
        memset(&v, 0, sizeof v);
        assert_true(quant_read_second(&q, &s, &v, why) == !row[i].sentence);
        if (row[i].sentence) assert_string_equal(why, row[i].sentence);
        quant_close(&v);
    }
#if !defined(__SANITIZE_ADDRESS__) /* which ends a program that asks for so much */
    const float one = 1;
    st_tensor huge = tensor("s", "F32", 1, (int64_t[]){ 1 }, &one);
    const quant q = { .kind = QUANT_NVFP4 };
    quant_values v;
    char why[IO_WHY] = "";
    huge.elements = INT64_MAX / 8 - 1;
    memset(&v, 0, sizeof v);
    assert_false(quant_read_second(&q, &huge, &v, why));
    assert_non_null(strstr(why, "s: there is not enough memory for its scales"));
    quant_close(&v);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_what_is_said),
        cmocka_unit_test(experts_in_one_tensor),
        cmocka_unit_test(scales_by_name),
        cmocka_unit_test(what_is_nobodys),
        cmocka_unit_test(who_made_it),
        cmocka_unit_test(a_scale_for_each_row),
        cmocka_unit_test(codes_of_a_table),
        cmocka_unit_test(second_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON or PCRE2 is not installed: checkpoints are not read\n");
    return 0;
}

#endif

/* test_span.c - partitions as runs of binary32: every layout against plain indexing, every check with its sentence.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_alu.h"
#include "trnmath/trn_convert.h"

enum { ROOM = 1 << 16 };

static uint32_t state = 1;
static uint32_t next(uint32_t below) { return (state = state * 1664525u + 1013904223u) % 65521u % below; }

static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_I8, TRN_U16, TRN_I32, TRN_TF32 };
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* A view of up to three free axes with gaps, in any order of the axes. */
static trn_tensor any_view(trn_format format, void *data, int64_t p, const int64_t free_size[3])
{
    const int64_t shape[4] = { p, free_size[0], free_size[1], free_size[2] };
    trn_tensor t = trn_tensor_nd(format, data, 4, shape);
    int order[4] = { 0, 1, 2, 3 };
    for (int i = 3; i > 0; i--) {
        const int j = (int)next((uint32_t)i + 1), was = order[i];
        if (next(2)) order[i] = order[j], order[j] = was;
    }
    int64_t step = 1;
    for (int i = 3; i >= 0; i--) {
        t.stride[order[i]] = step;
        step *= shape[order[i]] + (next(3) == 0);
    }
    return t;
}

static char *element(const trn_tensor *t, int64_t p, int64_t f)
{
    const int64_t z = f % t->shape[3], y = f / t->shape[3] % t->shape[2], x = f / t->shape[3] / t->shape[2];
    const int64_t at = p * t->stride[0] + x * t->stride[1] + y * t->stride[2] + z * t->stride[3];
    return (char *)t->data + at * (int64_t)trn_format_bytes(t->format);
}

static uint32_t code_at(const trn_tensor *t, int64_t p, int64_t f)
{
    uint32_t code = 0;
    memcpy(&code, element(t, p, f), trn_format_bytes(t->format));
    return code;
}

static void chunks_are_what_indexing_gives(void **unused)
{
    static unsigned char memory[ROOM + 64];
    static float buffer[TRNI_SPAN_CHUNK];
    (void)unused;
    for (int i = 0; i < ROOM; i++) memory[i] = (unsigned char)next(256);
    for (int round = 0; round < 2000; round++) {
        const int64_t size[3] = { 1 + next(4), 1 + next(5), 1 + next(17) }, p = 1 + next(9);
        const trn_format format = formats[next(FORMATS)];
        const trn_tensor t = any_view(format, memory + next(8), p, size); /* not aligned, too */
        trni_span v;
        trni_span_known(&v, &t, next(2) ? TRN_ISA_PORTABLE : trn_isa_default());
        assert_int_equal(v.partitions, p);
        assert_int_equal(v.elements, size[0] * size[1] * size[2]);
        const int64_t at = next((uint32_t)p), f = next((uint32_t)v.elements), n = 1 + next((uint32_t)(v.elements - f));
        const float *value = trni_span_read(&v, at, f, n, buffer);
        for (int64_t i = 0; i < n; i++) {
            const uint32_t code = code_at(&t, at, f + i);
            const float expected = format == TRN_F32 ? trni_float(code) : trn_decode(format, code);
            if (trni_bits(value[i]) != trni_bits(expected))
                fail_msg("%s[%lld, %lld]", trn_format_name(format), (long long)at, (long long)(f + i));
        }
    }
}

/* Written through a span, and by trn_convert from a packed array: the same bits, the random ones included, and not a
 * byte beside them. */
static void writes_are_what_convert_gives(void **unused)
{
    static unsigned char mine[ROOM + 64], other[ROOM + 64];
    static float value[4096], buffer[TRNI_SPAN_CHUNK];
    (void)unused;
    for (int round = 0; round < 2000; round++) {
        const int64_t size[3] = { 1 + next(4), 1 + next(5), 1 + next(17) }, p = 1 + next(9);
        const int64_t elements = size[0] * size[1] * size[2];
        const trn_format format = formats[next(FORMATS)];
        const size_t shift = next(8);
        const trn_tensor t = any_view(format, mine + shift, p, size);
        trn_tensor twin = t;
        twin.data = other + shift;
        memset(mine, 0xa5, sizeof mine);
        memset(other, 0xa5, sizeof other);
        for (int64_t i = 0; i < p * elements; i++) value[i] = (float)((double)next(65521) / 97 - 300);
        const trn_instruction how = { .rounding = next(2) ? TRN_STOCHASTIC : TRN_NEAREST_EVEN, .seed = next(100) };
        trni_view view;
        trni_span v;
        assert_true(trni_view_known(&view, &t));
        trni_span_init(&v, &view, trn_isa_default());
        trni_span_round(&v, &view, &how, 0);
        for (int64_t at = 0; at < p; at++)
            for (int64_t f = 0, n; f < elements; f += n) {
                n = 1 + next((uint32_t)(elements - f));
                float *room = trni_span_buffer(&v, at, f, buffer);
                memcpy(room, value + at * elements + f, (size_t)n * sizeof(float));
                trni_span_write(&v, at, f, n, room);
            }
        const int64_t shape[4] = { p, size[0], size[1], size[2] };
        const trn_convert_args args = {
            .dst = twin, .src = trn_tensor_nd(TRN_F32, value, 4, shape), .rounding = how.rounding, .seed = how.seed
        };
        assert_int_equal(trn_convert(&args), TRN_OK);
        assert_memory_equal(mine, other, sizeof mine);
    }
}

/* Results larger than the caches go past them: the same bytes. */
static void streams_write_the_same(void **unused)
{
    enum { N = TRNI_SPAN_STREAM / 4 + 1000 };
    static float from[TRNI_SPAN_CHUNK], to[N + 3], buffer[TRNI_SPAN_CHUNK];
    (void)unused;
    trn_tensor t = trn_tensor_2d(TRN_F32, to + 1, 2, (N + 1) / 2);
    const trn_instruction how = { .unlimited = true };
    trni_view view;
    trni_span v;
    assert_true(trni_view_known(&view, &t));
    trni_span_init(&v, &view, trn_isa_default());
    trni_span_round(&v, &view, &how, 0);
    for (int64_t p = 0; p < 2; p++)
        for (int64_t f = 0; f < v.elements; f += TRNI_SPAN_CHUNK) {
            const int64_t n = trni_min64(TRNI_SPAN_CHUNK, v.elements - f);
            float *room = trni_span_buffer(&v, p, f, buffer);
            for (int64_t i = 0; i < n; i++) room[i] = (float)(p * 3 + f + i);
            trni_span_write(&v, p, f, n, room);
        }
    trni_stream_end();
    (void)from;
    for (int64_t p = 0; p < 2; p++)
        for (int64_t f = 0; f < v.elements; f++) assert_true(to[1 + p * v.elements + f] == (float)(p * 3 + f));
    assert_true(to[0] == 0 && to[N + 2] == 0);
}

typedef struct wrong {
    trn_instruction how;
    trn_tensor dst, src, column;
    trn_status status;
    const char *words;
} wrong;

static void each_check_has_its_sentence(void **unused)
{
    static float x[64], y[64];
    const trn_tensor good = trn_tensor_2d(TRN_F32, x, 4, 8), src = trn_tensor_2d(TRN_F32, y, 4, 8);
    const trn_tensor column = trn_tensor_2d(TRN_F32, y, 4, 1);
    trn_tensor none = good, tall = good, long_one = good, other = src, meets = src, wide = column;
    trn_tensor fp8 = src, e3m4 = src, f6 = src;
    (void)unused;
    none.rank = 0;
    tall.shape[0] = 129;
    long_one.shape[1] = 192 * 1024 / 4 + 1;
    other.shape[1] = 7;
    meets.data = x + 1;
    wide.shape[1] = 2;
    fp8.format = TRN_F8_E4M3FN;
    e3m4.format = TRN_F8_E3M4;
    f6.format = TRN_F6_E2M3;
    const wrong list[] = {
        { { .generation = (trn_generation)9 }, good, src, column, TRN_EINVAL, "generation is 9" },
        { { .generation = TRN_TRAINIUM1 }, good, src, column, TRN_EUNSUPPORTED, "it is not available on Trainium1" },
        { { .engine = TRN_ENGINE_COUNT }, good, src, column, TRN_EINVAL, "engine is 6" },
        { { .rounding = (trn_rounding)77 }, good, src, column, TRN_EINVAL, "rounding 77" },
        { { .isa = TRN_ISA_COUNT }, good, src, column, TRN_EUNSUPPORTED, "isa" },
        { { 0 }, none, src, column, TRN_ESHAPE, "dst is missing" },
        { { 0 }, tall, src, column, TRN_ELIMIT, "dst has 129 partitions; a tile has at most 128" },
        { { 0 }, good, none, column, TRN_ESHAPE, "src is missing" },
        { { 0 }, good, other, column, TRN_ESHAPE, "src has 4 partitions of 7 elements but dst has 4 of 8" },
        { { 0 }, good, meets, column, TRN_EINVAL, "dst overlaps src" },
        { { 0 }, good, src, wide, TRN_ESHAPE, "column has 4 partitions of 2 elements; it takes one for each of 4" },
        { { 0 }, good, good, column, TRN_OK, "" }, /* in place */
        { { .generation = TRN_TRAINIUM2 },
          good,
          fp8,
          column,
          TRN_EUNSUPPORTED,
          "src is float8_e4m3fn, which Trainium2 does" },
        { { 0 }, good, fp8, column, TRN_OK, "" }, /* selects Trainium3 */
        { { .generation = TRN_TRAINIUM3 },
          good,
          e3m4,
          column,
          TRN_EUNSUPPORTED,
          "src is float8_e3m4, which Trainium3 does" },
        { { 0 }, good, f6, column, TRN_EUNSUPPORTED, "src is float6_e2m3fn, which the engines of no generation hold" },
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        wrong w = list[i];
        trn_error error = { TRN_OK, "" };
        trni_frame f;
        trni_view opened[2];
        w.how.error = &error;
        trni_frame_begin(&f, &w.how, TRN_TRAINIUM2, TRN_TRAINIUM2, "it");
        trni_frame_dst(&f, &w.dst);
        trni_frame_src(&f, &opened[0], &w.src, "src");
        trni_frame_column(&f, &opened[1], &w.column, "column", f.partitions);
        assert_int_equal(f.status, w.status);
        assert_int_equal(error.status, w.status);
        if (!strstr(error.text, w.words)) fail_msg("case %d says '%s', not '%s'", (int)i, error.text, w.words);
    }
    trn_error error = { TRN_OK, "" };
    trni_frame f;
    const trn_instruction how = { .generation = TRN_TRAINIUM1, .error = &error };
    trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "it");
    trni_frame_dst(&f, &long_one);
    assert_int_equal(f.status, TRN_ELIMIT);
    assert_non_null(strstr(error.text, "196608 bytes"));
}

static void operators_have_names(void **unused)
{
    (void)unused;
    for (int i = 0; i < TRN_ALU_COUNT; i++) {
        const trn_alu_info *info = trn_alu_info_of((trn_alu)i);
        assert_int_equal(info->op, i);
        assert_int_equal(trn_alu_from_name(info->name), i);
    }
    assert_null(trn_alu_info_of(TRN_ALU_COUNT));
    assert_int_equal(trn_alu_from_name("divide"), TRN_ALU_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_what_indexing_gives), cmocka_unit_test(writes_are_what_convert_gives),
        cmocka_unit_test(streams_write_the_same),         cmocka_unit_test(each_check_has_its_sentence),
        cmocka_unit_test(operators_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

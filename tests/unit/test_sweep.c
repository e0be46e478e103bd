/* test_sweep.c - every float into every format of 16 bits or fewer and TF32, in every rounding mode, against the twin.
 * SPDX-License-Identifier: MIT
 *
 * Rounding is monotone, so over the positive (or negative) finite floats a code is constant between a few thresholds.
 * The twin finds them by bisection: that costs thousands of its slow answers instead of 2^32. Level 1 asks the library
 * for the floats on both sides of each threshold, level 2 for all 2^32. The library's codec is not assumed to be
 * monotone: at level 2 it, too, answers for every float.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "trnmath/data/cast.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/twin_number.h"

static const struct {
    trn_format format;
    int twin;
} formats[] = {
    { TRN_F8_E4M3, TWIN_E4M3 }, { TRN_F8_E4M3FN, TWIN_E4M3FN }, { TRN_F8_E5M2, TWIN_E5M2 },
    { TRN_F8_E3M4, TWIN_E3M4 }, { TRN_F6_E2M3, TWIN_E2M3 },     { TRN_F6_E3M2, TWIN_E3M2 },
    { TRN_F4_E2M1, TWIN_E2M1 }, { TRN_F8_E8M0, TWIN_E8M0 },     { TRN_I8, TWIN_I8 },
    { TRN_U8, TWIN_U8 },        { TRN_F16, TWIN_F16 },          { TRN_BF16, TWIN_BF16 },
    { TRN_I16, TWIN_I16 },      { TRN_U16, TWIN_U16 },          { TRN_TF32, TWIN_TF32 },
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static const trn_rounding mode_of[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                  TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };

/* mode, random bits, random word, carry to infinity, saturate */
static const twin_way ways[] = {
    { TWIN_NEAREST_EVEN, 32, 0, false, false },
    { TWIN_NEAREST_EVEN, 32, 0, false, true },
    { TWIN_TOWARD_ZERO, 32, 0, false, false },
    { TWIN_TOWARD_POSITIVE, 32, 0, false, false },
    { TWIN_TOWARD_NEGATIVE, 32, 0, false, false },
    { TWIN_TO_ODD, 32, 0, false, false },
    { TWIN_TOWARD_POSITIVE, 32, 0, false, true },
    { TWIN_STOCHASTIC, 32, 0, false, false },
    { TWIN_STOCHASTIC, 32, 0xffffffff, false, false },
    { TWIN_STOCHASTIC, 32, 0x9e3779b9, true, false },
    { TWIN_STOCHASTIC, 32, 0x80000000, true, true },
    { TWIN_STOCHASTIC, 16, 0xfffe, false, false },
    { TWIN_STOCHASTIC, 16, 0x6789, true, false },
    { TWIN_STOCHASTIC, 8, 0x9c, false, true },
    { TWIN_STOCHASTIC, 1, 1, true, false },
    { TWIN_STOCHASTIC, 11, 0x3a7, false, false },
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- the twin's answer for all floats, as runs of one code ---- */

typedef struct run {
    uint32_t first; /* of the floats, by their bits; it lasts until the next run */
    uint32_t code;
} run;

typedef struct runs {
    run *at;
    size_t count, room;
} runs;

static uint32_t answer(const twin_format *f, twin_way way, uint32_t u)
{
    const twin_number x = twin_from_f32(u);
    return twin_encode(f, &x, way);
}

static void push(runs *r, uint32_t first, uint32_t code)
{
    if (r->count && r->at[r->count - 1].code == code) return;
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 1024;
        r->at = (run *)realloc(r->at, r->room * sizeof *r->at);
        assert_non_null(r->at);
    }
    r->at[r->count].first = first;
    r->at[r->count++].code = code;
}

/* Appends the runs of first .. last, between which the twin's answer is monotone. */
static void bisect(runs *r, const twin_format *f, twin_way way, uint32_t first, uint32_t first_code, uint32_t last,
                   uint32_t last_code)
{
    push(r, first, first_code);
    if (first_code == last_code) return;
    if (last - first == 1) {
        push(r, last, last_code);
        return;
    }
    const uint32_t middle = first + (last - first) / 2, code = answer(f, way, middle);
    bisect(r, f, way, first, first_code, middle, code);
    bisect(r, f, way, middle, code, last, last_code);
}

static runs runs_of(const twin_format *f, twin_way way)
{
    static const uint32_t piece[4][2] = {
        { 0, 0 }, { 1, 0x7f7fffff }, { 0x7f800000, 0x7f800000 }, { 0x7f800001, 0x7fffffff }
    };
    runs r = { NULL, 0, 0 };
    for (uint32_t sign = 0;; sign = 0x80000000u) {
        for (int i = 0; i < 4; i++) {
            const uint32_t first = sign | piece[i][0], last = sign | piece[i][1];
            bisect(&r, f, way, first, answer(f, way, first), last, answer(f, way, last));
        }
        if (sign) return r;
    }
}

/* ---- the library's answer ---- */

enum { CHUNK = 1 << 14 };

typedef struct question {
    trni_encoder encoder;
    bool codec; /* ask the codec, element by element, instead of the kernel */
    const trn_format_info *format;
    trni_encoding how;
    size_t bytes;
    uint32_t field[CHUNK];
} question;

static void ask(const question *q, void *code, const uint32_t *x, size_t n)
{
    if (!q->codec) {
        trni_encoder_run(&q->encoder, code, x, q->how.how.rounding == TRN_STOCHASTIC ? q->field : NULL, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t one = trni_encode_row(q->format, x[i], q->how);
        memcpy((char *)code + i * q->bytes, &one, q->bytes);
    }
}

static void question_init(question *q, trn_format format, twin_way way, trn_isa isa, bool codec)
{
    q->codec = codec;
    q->format = trn_format_info_of(format);
    q->bytes = trn_format_bytes(format);
    q->how.how.rounding = mode_of[way.mode];
    q->how.how.random = way.random;
    q->how.how.bits = way.random_bits;
    q->how.overflow = way.saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    q->how.sr_carry_to_inf = way.carry_to_inf;
    for (int i = 0; i < CHUNK; i++) q->field[i] = way.random;
    if (!codec) trni_encoder_init(&q->encoder, q->format, q->how, isa);
}

static void fill(void *code, size_t bytes, uint32_t value, size_t n)
{
    if (bytes == 1)
        memset(code, (int)value, n);
    else
        for (size_t i = 0; i < n; i++) memcpy((char *)code + i * bytes, &value, bytes);
}

static uint32_t code_at(const void *code, size_t bytes, size_t i)
{
    uint32_t value = 0;
    memcpy(&value, (const char *)code + i * bytes, bytes);
    return value;
}

static void compare(const question *q, const uint32_t *x, const void *expected, const void *actual, size_t n,
                    const char *isa, int way)
{
    if (memcmp(expected, actual, n * q->bytes) == 0) return;
    for (size_t i = 0; i < n; i++)
        if (code_at(expected, q->bytes, i) != code_at(actual, q->bytes, i))
            fail_msg("%08x to %s, way %d (%s), %s: expected %x, got %x", (unsigned)x[i], q->format->name, way,
                     trn_round_text(q->how.how.rounding), isa, (unsigned)code_at(expected, q->bytes, i),
                     (unsigned)code_at(actual, q->bytes, i));
}

/* ---- level 1: both sides of every threshold ---- */

static void thresholds_of(const question *q, const runs *r, const char *isa, int way)
{
    static uint32_t x[CHUNK];
    static uint32_t expected[CHUNK], actual[CHUNK];
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const uint32_t side[2] = { r->at[i].first, r->at[i].first - 1 }; /* before +0 comes the last NaN */
        const uint32_t code[2] = { r->at[i].code, r->at[i ? i - 1 : r->count - 1].code };
        for (int k = 0; k < 2; k++, n++) {
            x[n] = side[k];
            memcpy((char *)expected + n * q->bytes, &code[k], q->bytes);
        }
        if (n < CHUNK && i + 1 < r->count) continue;
        ask(q, actual, x, n);
        compare(q, x, expected, actual, n, isa, way);
        n = 0;
    }
}

static void thresholds(void **state)
{
    (void)state;
    static question q;
    for (int f = 0; f < FORMATS; f++)
        for (int w = 0; w < WAYS; w++) {
            const bool wide = trn_format_bits(formats[f].format) > 8;
            if (cases_level() == 1 && wide && w % 4) continue; /* slow to bisect */
            runs r = runs_of(&twin_formats[formats[f].twin], ways[w]);
            for (int i = 0; i < 4; i++) {
                if (!trn_isa_supported(all_isas[i])) continue;
                question_init(&q, formats[f].format, ways[w], all_isas[i], false);
                thresholds_of(&q, &r, trn_isa_text(all_isas[i]), w);
            }
            question_init(&q, formats[f].format, ways[w], TRN_ISA_PORTABLE, true);
            thresholds_of(&q, &r, "codec", w);
            free(r.at);
        }
}

/* ---- level 2: all of them ---- */

static size_t run_at(const runs *r, uint32_t u) /* the run that u is in */
{
    size_t low = 0, high = r->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (r->at[middle].first <= u)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void expect(void *code, size_t bytes, const runs *r, uint32_t base)
{
    size_t i = run_at(r, base);
    for (uint64_t from = base, end = (uint64_t)base + CHUNK; from < end; i++) {
        uint64_t to = i + 1 < r->count ? r->at[i + 1].first : end;
        if (to > end) to = end;
        fill((char *)code + (size_t)(from - base) * bytes, bytes, r->at[i].code, (size_t)(to - from));
        from = to;
    }
}

/* The number of chunks of CHUNK consecutive floats that hold a wrong answer, and the first float of one of them. */
static int64_t wrong_chunks(const question *q, const runs *r, uint32_t *example)
{
    int64_t wrong = 0, last = -1;
    CASES_PRAGMA(omp parallel for schedule(static) reduction(+ : wrong) reduction(max : last))
    for (int64_t chunk = 0; chunk < ((int64_t)1 << 32) / CHUNK; chunk++) {
        uint32_t x[CHUNK], expected[CHUNK], actual[CHUNK];
        const uint32_t base = (uint32_t)(chunk * CHUNK);
        for (uint32_t i = 0; i < CHUNK; i++) x[i] = base + i;
        expect(expected, q->bytes, r, base);
        ask(q, actual, x, CHUNK);
        if (memcmp(expected, actual, CHUNK * q->bytes) == 0) continue;
        wrong++;
        last = chunk;
    }
    *example = (uint32_t)(last * CHUNK);
    return wrong;
}

static void sweep(const runs *r, int f, int w, trn_isa isa, bool codec)
{
    static question q;
    uint32_t example = 0;
    question_init(&q, formats[f].format, ways[w], isa, codec);
    if (!wrong_chunks(&q, r, &example)) return;
    uint32_t x[CHUNK], expected[CHUNK], actual[CHUNK]; /* once more, to name the float */
    for (uint32_t i = 0; i < CHUNK; i++) x[i] = example + i;
    expect(expected, q.bytes, r, example);
    ask(&q, actual, x, CHUNK);
    compare(&q, x, expected, actual, CHUNK, codec ? "codec" : trn_isa_text(isa), w);
}

static void all_floats(void **state)
{
    (void)state;
    if (cases_level() < 2) {
        print_message("the sweep over all 2^32 floats runs at level 2 (TRN_TEST_LEVEL=2)\n");
        skip();
    }
    for (int f = 0; f < FORMATS; f++) {
        for (int w = 0; w < WAYS; w++) {
            runs r = runs_of(&twin_formats[formats[f].twin], ways[w]);
            sweep(&r, f, w, trn_isa_default(), false);
            for (int i = 0; i < 4 && w == 0; i++) /* nearest even: on every instruction set, and by the codec */
                if (trn_isa_supported(all_isas[i]) && all_isas[i] != trn_isa_default())
                    sweep(&r, f, w, all_isas[i], false);
            if (w == 0) sweep(&r, f, w, TRN_ISA_PORTABLE, true);
            free(r.at);
        }
        print_message("%s: all 2^32 floats, %d ways\n", trn_format_name(formats[f].format), (int)WAYS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(thresholds), cmocka_unit_test(all_floats) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_pack.c - packed codes: every form against bits counted one by one, tails, strides, refusals.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_pack.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

typedef struct form {
    trn_format code, word;
    int code_bits, word_bits, codes, words; /* so many codes fill so many words */
} form;

static const form forms[] = {
    { TRN_F4_E2M1, TRN_U8, 4, 8, 2, 1 },     { TRN_F4_E2M1, TRN_U16, 4, 16, 4, 1 },
    { TRN_F6_E2M3, TRN_U8, 6, 8, 4, 3 },     { TRN_F6_E3M2, TRN_U8, 6, 8, 4, 3 },
    { TRN_F8_E4M3FN, TRN_U32, 8, 32, 4, 1 }, { TRN_F8_E5M2, TRN_U32, 8, 32, 4, 1 },
    { TRN_F8_E4M3, TRN_U32, 8, 32, 4, 1 },   { TRN_F8_E3M4, TRN_U32, 8, 32, 4, 1 },
    { TRN_I8, TRN_U32, 8, 32, 4, 1 },
};

static trn_pack_args packing(trn_tensor dst, trn_tensor src)
{
    trn_pack_args a;
    memset(&a, 0, sizeof a);
    a.dst = dst;
    a.src = src;
    return a;
}

static trn_unpack_args unpacking(trn_tensor dst, trn_tensor src)
{
    trn_unpack_args a;
    memset(&a, 0, sizeof a);
    a.dst = dst;
    a.src = src;
    return a;
}

static void must_pack(trn_pack_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_pack(&a) != TRN_OK) fail_msg("trn_pack: %s", error.text);
}

static void must_unpack(trn_unpack_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_unpack(&a) != TRN_OK) fail_msg("trn_unpack: %s", error.text);
}

/* Bit `bit` of the stream in which element i occupies bits i*b … i*b + b - 1, lowest first, of bytes in order. All four
 * forms are this one stream. */
static int stream_bit(const unsigned char *bytes, int64_t bit) { return bytes[bit / 8] >> bit % 8 & 1; }

static void check_stream(const form *f, const unsigned char *bytes, const unsigned char *code, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < f->code_bits; b++)
            if (stream_bit(bytes, i * f->code_bits + b) != (code[i] >> b & 1))
                fail_msg("%s in %s: bit %d of element %lld of %lld is wrong", trn_format_name(f->code),
                         trn_format_name(f->word), b, (long long)i, (long long)n);
}

static void by_hand(void **state)
{
    (void)state;
    const uint8_t four[8] = { 1, 2, 3, 4, 0xf5, 6, 7, 8 }, six[4] = { 0x01, 0x3f, 0x00, 0x2a },
                  eight[4] = { 0x11, 0x22, 0x33, 0x44 };
    uint8_t pair[4], bytes[3];
    uint16_t word16[2];
    uint32_t word32;
    must_pack(packing(trn_tensor_1d(TRN_U8, pair, 4), trn_tensor_1d(TRN_F4_E2M1, (void *)(uintptr_t)four, 8)));
    assert_memory_equal(pair, "\x21\x43\x65\x87", 4); /* safetensors: element 0 in the low nibble */
    must_pack(packing(trn_tensor_1d(TRN_U16, word16, 2), trn_tensor_1d(TRN_F4_E2M1, (void *)(uintptr_t)four, 8)));
    assert_int_equal(word16[0], 0x4321);
    assert_int_equal(word16[1], 0x8765);
    must_pack(packing(trn_tensor_1d(TRN_U8, bytes, 3), trn_tensor_1d(TRN_F6_E3M2, (void *)(uintptr_t)six, 4)));
    assert_memory_equal(bytes, "\xc1\x0f\xa8", 3); /* 101010 000000 111111 000001 */
    must_pack(packing(trn_tensor_1d(TRN_U32, &word32, 1), trn_tensor_1d(TRN_F8_E5M2, (void *)(uintptr_t)eight, 4)));
    assert_int_equal(word32, 0x44332211);
}

/* Every code in every place of runs of every short length and some long ones, there and back, on every instruction set.
 */
static void every_form_there_and_back(void **state)
{
    (void)state;
    enum { MOST = 9000 };
    static unsigned char code[MOST + 8], bytes[MOST + 8], back[MOST + 8];
    uint64_t rng = 80;
    for (int f = 0; f < COUNT(forms); f++)
        for (int i = 0; i < COUNT(all_isas); i++)
            for (int64_t groups = 1; groups < 150; groups++) {
                if (!trn_isa_supported(all_isas[i])) continue;
                int64_t n = groups * forms[f].codes;
                if (groups > 140) n = MOST / 12 * 12 - groups % 3 * forms[f].codes;
                const int64_t words = n / forms[f].codes * forms[f].words, size = words * forms[f].word_bits / 8;
                for (int64_t j = 0; j < n; j++)
                    code[j] = (unsigned char)(groups < 70 ? j + groups : (int64_t)cases_u32(&rng));
                memset(bytes, 0xee, sizeof bytes);
                memset(back, 0xee, sizeof back);
                trn_pack_args p =
                    packing(trn_tensor_1d(forms[f].word, bytes, words), trn_tensor_1d(forms[f].code, code, n));
                p.isa = all_isas[i];
                must_pack(p);
                check_stream(&forms[f], bytes, code, n);
                assert_int_equal(bytes[size], 0xee);
                trn_unpack_args u =
                    unpacking(trn_tensor_1d(forms[f].code, back, n), trn_tensor_1d(forms[f].word, bytes, words));
                u.isa = all_isas[i];
                must_unpack(u);
                for (int64_t j = 0; j < n; j++)
                    CASES_EQUAL(code[j] & ((1u << forms[f].code_bits) - 1), back[j], "%s in %s, element %lld of %lld",
                                trn_format_name(forms[f].code), trn_format_name(forms[f].word), (long long)j,
                                (long long)n);
                assert_int_equal(back[n], 0xee);
            }
}

/* ---- views ---- */

enum { ARENA = 1 << 15 };
static unsigned char codes[ARENA], words[ARENA], expected[ARENA];

static int64_t offset_at(const trn_tensor *t, int64_t row_major)
{
    int64_t offset = 0, rest = row_major;
    bool packed = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] > 1) offset += rest % t->shape[i] * t->stride[i];
        rest /= t->shape[i];
        packed = packed && t->stride[i] == 0;
    }
    return packed ? row_major : offset;
}

static void noise(unsigned char *arena, uint64_t *rng)
{
    for (int i = 0; i < ARENA; i++) arena[i] = (unsigned char)cases_u32(rng);
}

/* Words of rows of codes, written into `expected` bit by bit; the bits of a padded tail are zero. */
static void expect_words(const form *f, const trn_pack_args *a, int64_t rows, int64_t n, int64_t row_words)
{
    const int size = f->word_bits / 8;
    memcpy(expected, words, ARENA);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t w = 0; w < row_words; w++)
            for (int bit = 0; bit < f->word_bits; bit++) {
                const int64_t at = w * f->word_bits + bit, i = at / f->code_bits;
                const int value =
                    i < n ? ((unsigned char *)a->src.data)[offset_at(&a->src, r * n + i)] >> at % f->code_bits & 1 : 0;
                unsigned char *byte = expected + ((unsigned char *)a->dst.data - words) +
                                      offset_at(&a->dst, r * row_words + w) * size + bit / 8;
                *byte = (unsigned char)((*byte & ~(1u << bit % 8)) | (unsigned)value << bit % 8);
            }
}

static void expect_codes(const form *f, const trn_unpack_args *a, int64_t rows, int64_t n, int64_t row_words)
{
    const int size = f->word_bits / 8;
    memcpy(expected, codes, ARENA);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            unsigned code = 0;
            for (int b = 0; b < f->code_bits; b++) {
                const int64_t at = i * f->code_bits + b, w = at / f->word_bits;
                const unsigned char *word = (unsigned char *)a->src.data + offset_at(&a->src, r * row_words + w) * size;
                code |= (unsigned)stream_bit(word, at % f->word_bits) << b;
            }
            expected[(unsigned char *)a->dst.data - codes + offset_at(&a->dst, r * n + i)] = (unsigned char)code;
        }
}

/* Any strides, tails, broadcasts; what is not named stays as it was. */
static void random_views(void **state)
{
    (void)state;
    uint64_t rng = 81;
    const int rounds = cases_rounds(3000, 100000);
    for (int number = 0; number < rounds;) {
        const form *f = &forms[cases_below(&rng, COUNT(forms))];
        const bool unpack = cases_one_in(&rng, 2);
        int64_t shape[TRN_MAX_RANK], rows = 1;
        const int rank = 1 + cases_below(&rng, TRN_MAX_RANK);
        for (int i = 0; i < rank - 1; i++) rows *= shape[i] = 1 + cases_below(&rng, 4);
        int64_t n = 1 + cases_below(&rng, cases_one_in(&rng, 10) ? 9000 : 40);
        if (cases_one_in(&rng, 2)) n = (n + 3) / 4 * 4;
        const int64_t row_words = (n + f->codes - 1) / f->codes * f->words;
        shape[rank - 1] = n;
        trn_tensor c = trn_tensor_nd(f->code, codes + cases_below(&rng, 100), rank, shape);
        shape[rank - 1] = row_words;
        trn_tensor w = trn_tensor_nd(f->word, words + cases_below(&rng, 100), rank, shape);
        const int64_t code_span = random_strides(&c, !unpack, true, &rng);
        const int64_t word_span = random_strides(&w, unpack, true, &rng) * (f->word_bits / 8);
        if (code_span >= ARENA - 100 || word_span >= ARENA - 100) continue;
        if (rows * n > ARENA - 100 || rows * row_words * f->word_bits / 8 > ARENA - 100) continue;
        noise(codes, &rng);
        noise(words, &rng);
        trn_isa isa = all_isas[cases_below(&rng, COUNT(all_isas))];
        if (!trn_isa_supported(isa)) isa = TRN_ISA_AUTO;
        trn_pack_args p = packing(w, c);
        trn_unpack_args u = unpacking(c, w);
        p.isa = u.isa = isa;
        p.pad = u.pad = n % f->codes != 0 || cases_one_in(&rng, 4);
        if (unpack) {
            expect_codes(f, &u, rows, n, row_words);
            must_unpack(u);
        } else {
            expect_words(f, &p, rows, n, row_words);
            must_pack(p);
        }
        for (int i = 0; i < ARENA; i++)
            CASES_EQUAL(expected[i], (unpack ? codes : words)[i], "view %d, %s, rank %d, byte %d, %lld codes", number,
                        unpack ? "unpack" : "pack", rank, i, (long long)n);
        number++;
    }
}

/* Large enough for threads, in one row and in many. */
static void large_arrays(void **state)
{
    (void)state;
    enum { ROWS = 1030, N = 1200 };
    static unsigned char code[ROWS * N], bytes[ROWS * N], back[ROWS * N];
    uint64_t rng = 82;
    for (int i = 0; i < ROWS * N; i++) code[i] = (unsigned char)cases_u32(&rng) & 0x3f;
    for (int gap = 0; gap < 2; gap++) {
        trn_tensor c = trn_tensor_2d(TRN_F6_E2M3, code, ROWS, N - 4 * gap),
                   w = trn_tensor_2d(TRN_U8, bytes, ROWS, (N - 4 * gap) / 4 * 3);
        trn_tensor b = trn_tensor_2d(TRN_F6_E2M3, back, ROWS, N - 4 * gap);
        if (gap) c.stride[0] = b.stride[0] = N, c.stride[1] = b.stride[1] = 1;
        must_pack(packing(w, c));
        check_stream(&forms[2], bytes, code, N - 4);
        memcpy(back, code, sizeof back);
        memset(back + 7 * N, 0, N - 4);
        must_unpack(unpacking(b, w));
        assert_memory_equal(back, code, sizeof code);
    }
}

/* ---- sizes and refusals ---- */

static void sizes(void **state)
{
    (void)state;
    assert_int_equal(trn_packed_words(TRN_F4_E2M1, TRN_U8, 5), 3);
    assert_int_equal(trn_packed_bytes(TRN_F4_E2M1, TRN_U8, 5), 3);
    assert_int_equal(trn_packed_words(TRN_F4_E2M1, TRN_U16, 5), 2);
    assert_int_equal(trn_packed_bytes(TRN_F4_E2M1, TRN_U16, 5), 4);
    assert_int_equal(trn_packed_bytes(TRN_F6_E3M2, TRN_U8, 8), 6);
    assert_int_equal(trn_packed_bytes(TRN_F6_E3M2, TRN_U8, 9), 9);
    assert_int_equal(trn_packed_words(TRN_F8_E4M3FN, TRN_U32, 512), 128);
    assert_int_equal(trn_packed_bytes(TRN_F8_E4M3FN, TRN_U32, 512), 512);
    assert_int_equal(trn_packed_bytes(TRN_F8_E4M3FN, TRN_U32, 0), 0);
    assert_int_equal(trn_packed_words(TRN_F8_E4M3FN, TRN_U8, 8), -1);
    assert_int_equal(trn_packed_words(TRN_BF16, TRN_U32, 8), -1);
    assert_int_equal(trn_packed_words(TRN_F4_E2M1, TRN_U8, -1), -1);
    assert_true(trn_packed_words(TRN_F8_E4M3FN, TRN_U32, INT64_MAX) == ((int64_t)1 << 61));
    assert_int_equal(trn_packed_bytes(TRN_F8_E4M3FN, TRN_U32, INT64_MAX), -1);
}

static unsigned char memory[256];

static void refuse(trn_tensor dst, trn_tensor src, bool unpack, trn_isa isa, trn_status status, const char *text)
{
    trn_error error = { TRN_OK, "" };
    unsigned char before[sizeof memory];
    trn_pack_args p = packing(dst, src);
    trn_unpack_args u = unpacking(dst, src);
    p.error = u.error = &error;
    p.isa = u.isa = isa;
    memcpy(before, memory, sizeof memory);
    const trn_status found = unpack ? trn_unpack(&u) : trn_pack(&p);
    if (found != status || error.status != status || !strstr(error.text, text))
        fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, text, (int)found, error.text);
    p.error = u.error = NULL;
    assert_int_equal(unpack ? trn_unpack(&u) : trn_pack(&p), status);
    assert_memory_equal(before, memory, sizeof memory);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    const trn_tensor code = trn_tensor_1d(TRN_F4_E2M1, memory, 8), word = trn_tensor_1d(TRN_U8, memory + 64, 4);
    trn_tensor c = code, w = word;
    assert_int_equal(trn_pack(NULL), TRN_EINVAL);
    assert_int_equal(trn_unpack(NULL), TRN_EINVAL);
    must_pack(packing(w, c));
    must_unpack(unpacking(c, w));
    w.format = TRN_U32,
    refuse(w, c, false, TRN_ISA_AUTO, TRN_EFORMAT, "src is float4_e2m1fn and dst is uint32; there are");
    refuse(c, w, true, TRN_ISA_AUTO, TRN_EFORMAT, "dst is float4_e2m1fn and src is uint32");
    w = word, c.format = TRN_BF16, refuse(w, c, false, TRN_ISA_AUTO, TRN_EFORMAT, "src is bfloat16");
    c = code, c.shape[0] = 7;
    refuse(w, c, false, TRN_ISA_AUTO, TRN_ESHAPE, "src has 7 codes on its last axis, no multiple of 2; .pad");
    refuse(c, w, true, TRN_ISA_AUTO, TRN_ESHAPE, "dst has 7 codes");
    c.shape[0] = 6,
    refuse(w, c, false, TRN_ISA_AUTO, TRN_ESHAPE, "dst has size 4 on its last axis; 6 codes of float4_e2m1fn take 3");
    c = trn_tensor_2d(TRN_F4_E2M1, memory, 2, 4),
    refuse(w, c, false, TRN_ISA_AUTO, TRN_ESHAPE, "dst has rank 1 but src has rank 2");
    w = trn_tensor_2d(TRN_U8, memory + 64, 3, 2),
    refuse(w, c, false, TRN_ISA_AUTO, TRN_ESHAPE, "dst has size 3 on axis 0 but src has 2");
    c = code, w = word, w.data = memory + 7, refuse(w, c, false, TRN_ISA_AUTO, TRN_EINVAL, "dst overlaps src");
    w = word, w.data = NULL, refuse(w, c, false, TRN_ISA_AUTO, TRN_EINVAL, "dst");
    w = word, refuse(w, c, false, (trn_isa)50, TRN_EUNSUPPORTED, "50");
    w.format = TRN_FORMAT_UNSET, refuse(w, c, false, TRN_ISA_AUTO, TRN_EFORMAT, "dst has no valid format");
    w = word, w.shape[0] = c.shape[0] = 0, w.data = c.data = NULL; /* nothing to do */
    must_pack(packing(w, c));
    must_unpack(unpacking(c, w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),      cmocka_unit_test(every_form_there_and_back),
        cmocka_unit_test(random_views), cmocka_unit_test(large_arrays),
        cmocka_unit_test(sizes),        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}

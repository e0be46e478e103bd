/* test_safetensors.c - files of the official library and of stranger writers, headers that lie, what we write
 * ourselves; checkpoints of many shards.
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

#include "io/checkpoint.h"
#include "scratch.h"

static const st_tensor *tensor_of(const st_file *f, const char *name)
{
    const st_tensor *t = st_find(f, name);
    if (!t) fail_msg("there is no tensor '%s'", name);
    return t;
}

/* ---- the official library's file: every type, every byte ---- */

static void the_official_file(void **state)
{
#define ALL_BYTES NULL
    static const struct {
        const char *name, *type;
        trn_format format;
        int bits, rank;
        int64_t shape[2];
        size_t size;
        const void *bytes;
    } row[] = {
        { "grid.f32", "F32", TRN_F32, 32, 2, { 3, 4 }, 48, ALL_BYTES },
        { "grid.bf16", "BF16", TRN_BF16, 16, 2, { 3, 4 }, 24, ALL_BYTES },
        { "half", "F16", TRN_F16, 16, 1, { 4, 0 }, 8, "\x00\x3c\x00\xc0\x01\x00\xff\x7b" },
        { "double",
          "F64",
          TRN_FORMAT_UNSET,
          64,
          1,
          { 2, 0 },
          16,
          "\x9a\x99\x99\x99\x99\x99\xb9\x3f\x9c\x75\x00\x88\x3c\xe4\x37\xfe" },
        { "signed",
          "I64",
          TRN_FORMAT_UNSET,
          64,
          1,
          { 2, 0 },
          16,
          "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x01\x00\x00" },
        { "unsigned", "U64", TRN_FORMAT_UNSET, 64, 1, { 1, 0 }, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { "i32", "I32", TRN_I32, 32, 2, { 1, 2 }, 8, "\xfb\xff\xff\xff\x07\x00\x00\x00" },
        { "i16", "I16", TRN_I16, 16, 1, { 2, 0 }, 4, "\xfb\xff\x07\x00" },
        { "i8", "I8", TRN_I8, 8, 1, { 2, 0 }, 2, "\xfb\x07" },
        { "u32", "U32", TRN_U32, 32, 1, { 1, 0 }, 4, "\x00\x28\x6b\xee" },
        { "u16", "U16", TRN_U16, 16, 1, { 1, 0 }, 2, "\xff\xff" },
        { "u8", "U8", TRN_U8, 8, 1, { 3, 0 }, 3, "\x00\x80\xff" },
        { "bool", "BOOL", TRN_FORMAT_UNSET, 8, 1, { 3, 0 }, 3, "\x00\x01\x01" },
        { "fp8.e4m3", "F8_E4M3", TRN_F8_E4M3FN, 8, 2, { 16, 16 }, 256, ALL_BYTES },
        { "fp8.e5m2", "F8_E5M2", TRN_F8_E5M2, 8, 2, { 16, 16 }, 256, ALL_BYTES },
        { "fp8.e4m3fnuz", "F8_E4M3FNUZ", TRN_FORMAT_UNSET, 8, 1, { 1, 0 }, 1, "\x80" },
        { "fp8.e5m2fnuz", "F8_E5M2FNUZ", TRN_FORMAT_UNSET, 8, 1, { 1, 0 }, 1, "\x80" },
        { "scale", "F8_E8M0", TRN_F8_E8M0, 8, 1, { 4, 0 }, 4, "\x00\x7e\x7f\xfe" },
        { "fp6.e2m3", "F6_E2M3", TRN_F6_E2M3, 6, 1, { 8, 0 }, 6, "\x40\x20\x0c\x44\x61\x1c" },
        { "fp6.e3m2", "F6_E3M2", TRN_F6_E3M2, 6, 1, { 4, 0 }, 3, "\x40\x20\x0c" },
        { "fp4", "F4", TRN_F4_E2M1, 4, 2, { 2, 8 }, 8, "\x10\x32\x54\x76\x98\xba\xdc\xfe" },
        { "complex", "C64", TRN_FORMAT_UNSET, 64, 1, { 1, 0 }, 8, "\x00\x00\x80\x3f\x00\x00\x00\xc0" },
        { "empty", "F32", TRN_F32, 32, 2, { 0, 5 }, 0, "" },
        { "scalar", "F32", TRN_F32, 32, 0, { 0, 0 }, 4, "\x00\x00\x20\x40" },
        { "gr\xc3\xb6\xc3\x9f"
          "e \"x\"\n\\",
          "U8",
          TRN_U8,
          8,
          1,
          { 1, 0 },
          1,
          "\x2a" },
    };
    st_file f;
    char why[IO_WHY] = "";
    (void)state;
    if (!st_open(data_file("official.safetensors"), &f, why)) fail_msg("%s", why);
    assert_int_equal(f.count, sizeof row / sizeof row[0]);
    for (int r = 0; r < f.count; r++) {
        const st_tensor *t = tensor_of(&f, row[r].name);
        assert_string_equal(t->type, row[r].type);
        assert_int_equal(t->format, row[r].format);
        assert_int_equal(t->bits, row[r].bits);
        assert_int_equal(t->rank, row[r].rank);
        for (int k = 0; k < t->rank; k++) assert_int_equal(t->shape[k], row[r].shape[k]);
        assert_int_equal(st_bytes(t), row[r].size);
        if (row[r].bytes) assert_memory_equal(t->data, row[r].bytes, row[r].size);
    }
    const float *grid = tensor_of(&f, "grid.f32")->data;
    const uint16_t *words = tensor_of(&f, "grid.bf16")->data;
    const uint8_t *codes = tensor_of(&f, "fp8.e4m3")->data;
    for (int i = 0; i < 12; i++) {
        const float a = (float)((7 * (i / 4) + 3 * (i % 4)) % 17 - 8) / 8;
        assert_true(grid[i] == a && trn_bf16_to_f32(words[i]) == a);
    }
    for (int i = 0; i < 256; i++) assert_int_equal(codes[i], i);
    assert_string_equal(st_metadata(&f, "format"), "pt");
    assert_null(st_metadata(&f, "fp8_format"));
    assert_null(st_find(&f, "w"));
    assert_int_equal(f.trailing, 0);
    st_close(&f);
    st_close(&f); /* does nothing */
}

static void files_of_stranger_writers(void **state)
{
    st_file f;
    char why[IO_WHY] = "";
    float w[4];
    (void)state;
    if (!st_open(data_file("trailing.safetensors"), &f, why)) fail_msg("%s", why);
    assert_int_equal(f.trailing, 4);
    assert_int_equal(f.data_size, 8);
    st_close(&f);

    if (!st_open(data_file("unaligned.safetensors"), &f, why)) fail_msg("%s", why);
    assert_string_equal(f.tensor[0].name, "octet"); /* by offset; the header has it last */
    assert_int_equal(f.tensor[0].place, 2);
    memcpy(w, tensor_of(&f, "w")->data, sizeof w);
    assert_true(w[0] == 1 && w[3] == 4);
    assert_int_equal(tensor_of(&f, "nibbles")->elements, 6);
    st_close(&f);
}

/* F8_E4M3 is OCP's, unless the file says that it is Neuron's. */
static void the_mark_of_240(void **state)
{
    st_file f;
    char why[IO_WHY] = "";
    (void)state;
    if (!st_open(data_file("neuron.safetensors"), &f, why)) fail_msg("%s", why);
    assert_int_equal(tensor_of(&f, "w")->format, TRN_F8_E4M3);
    assert_string_equal(tensor_of(&f, "w")->type, "F8_E4M3");
    assert_int_equal(tensor_of(&f, "g")->format, TRN_F8_E5M2);
    st_close(&f);
}

/* ---- headers that lie ---- */

/* A file of a header as text and some bytes of data, in memory that ends where it does. */
static bool parse(const char *header, size_t length, size_t data, st_file *f, char *why)
{
    static unsigned char *file; /* one at a time, freed by the next call */
    free(file);
    file = calloc(8 + length + data, 1);
    assert_non_null(file);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(file + 8, header, length);
    return st_parse(file, 8 + length + data, "X", f, why);
}

#define T(name, rest) "\"" name "\":{" rest "}"
#define F32_2(begin, end) "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" begin "," end "]"
#define SHAPE(shape) "{" T("w", "\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[0,8]") "}"
#define BELOW " of a number below 2^53"
#define OFFSETS(list) "{" T("w", "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" list) "}"

static void headers_that_lie(void **state)
{
    static const struct {
        const char *header;
        int data;
        const char *sentence;
    } row[] = {
        { "", 0, "X: its header is not a JSON object: it does not begin with '{'" },
        { "[]", 0, "X: its header is not a JSON object: it does not begin with '{'" },
        { "\xef\xbb\xbf{}", 0, "X: its header is not a JSON object: it does not begin with '{'" },
        { "{", 0, "X: its header is not a JSON object: it breaks off" },
        { "{\"w\"", 0, "X: its header is not a JSON object: a colon is missing" },
        { "{\"w\":", 0, "X: its header is not a JSON object: it breaks off" },
        { "{\"w\":}", 0, "X: its header is not a JSON object: a value is missing" },
        { "{\"w:{}}", 0, "X: its header is not a JSON object: a text does not end" },
        { "{w:{}}", 0, "X: its header is not a JSON object: a name or a text lacks its quotes" },
        { "{} x", 0, "X: its header is not a JSON object: it goes on after the closing '}'" },
        { "{" T("w", F32_2("0", "8")) T("v", F32_2("8", "16")) "}", 16,
          "X: its header is not a JSON object: a comma is missing" },
        { "{" T("w", F32_2("0", "8")) ",}", 8,
          "X: its header is not a JSON object: a name or a text lacks its quotes" },
        { "{" T("a\\u0000b", F32_2("0", "8")) "}", 8, "X: its header is not a JSON object: a text holds a NUL" },
        { "{" T("a\\ud8", F32_2("0", "8")) "}", 8, "X: its header is not a JSON object: an escape means nothing" },
        { "{" T("a\\ud800", F32_2("0", "8")) "}", 8,
          "X: its header is not a JSON object: a name is not UTF-8, or has an escape that means nothing" },
        { "{" T("a\nb", F32_2("0", "8")) "}", 8,
          "X: its header is not a JSON object: a text holds a control character" },
        { "{" T("\xff", F32_2("0", "8")) "}", 8, "X: its header is not UTF-8" },
        { "{" T("\xed\xa0\x80", F32_2("0", "8")) "}", 8, "X: its header is not UTF-8" },
        { "{" T("\xc0\xaf", F32_2("0", "8")) "}", 8, "X: its header is not UTF-8" },
        { "{" T("w", F32_2("0", "8")) "," T("w", F32_2("8", "16")) "}", 16, "X: it names tensor 'w' twice" },
        { "{" T("w", F32_2("0", "8")) "," T("\\u0077", F32_2("8", "16")) "}", 16, "X: it names tensor 'w' twice" },
        { "{" T("__metadata__", "") "," T("__metadata__", "") "}", 0, "X: it has a second __metadata__" },
        { "{" T("__metadata__", "\"a\":\"b\",\"a\":\"c\"") "}", 0, "X: its __metadata__ names 'a' twice" },
        { "{" T("__metadata__", "\"a\":1") "}", 0, "X: its __metadata__ 'a' is not a text" },
        { "{\"__metadata__\":[]}", 0, "X: its __metadata__ is not a JSON object of texts: it does not begin with '{'" },
        { "{\"w\":[0,8]}", 8, "X: tensor 'w' is not a JSON object: it does not begin with '{'" },
        { "{" T("w", "\"shape\":[2],\"data_offsets\":[0,8]") "}", 8, "X: tensor 'w' has no dtype" },
        { "{" T("w", "\"dtype\":\"F32\",\"data_offsets\":[0,8]") "}", 8, "X: tensor 'w' has no shape" },
        { "{" T("w", "\"dtype\":\"F32\",\"shape\":[2]") "}", 8, "X: tensor 'w' has no data_offsets" },
        { "{" T("w", F32_2("0", "8") ",\"dtype\":\"F16\"") "}", 8, "X: tensor 'w' has a second dtype" },
        { "{" T("w", "\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]") "}", 8,
          "X: tensor 'w' has the unknown dtype 'f32'" },
        { "{" T("w\x1b[31m", F32_2("0", "9")) "}", 9,
          "X: its header is not a JSON object: a text holds a control character" },
        { "{" T("w\\u001b[31m", F32_2("0", "9")) "}", 9,
          "X: tensor 'w\\x1b[31m' needs 8 bytes by shape and dtype, but its data_offsets are [0, 9]" },
        { "{" T("w", "\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]") "}", 8,
          "X: tensor 'w' has a dtype that is not a text" },
        { SHAPE("2"), 8, "X: tensor 'w' has a shape that is not a list" },
        { SHAPE("[2.5]"), 8, "X: tensor 'w' has the size 2.5, which is not plain digits" BELOW },
        { SHAPE("[-2]"), 8, "X: tensor 'w' has the size -2, which is not plain digits" BELOW },
        { SHAPE("[\"2\"]"), 8, "X: tensor 'w' has the size \"2\", which is not plain digits" BELOW },
        { SHAPE("[2.0]"), 8, "X: tensor 'w' has the size 2.0, which is not plain digits" BELOW },
        { SHAPE("[0.2e1]"), 8, "X: tensor 'w' has the size 0.2e1, which is not plain digits" BELOW },
        { SHAPE("[2e0]"), 8, "X: tensor 'w' has the size 2e0, which is not plain digits" BELOW },
        { SHAPE("[-0]"), 8, "X: tensor 'w' has the size -0, which is not plain digits" BELOW },
        { SHAPE("[+2]"), 8, "X: tensor 'w' has the size +2, which is not plain digits" BELOW },
        { SHAPE("[0x2]"), 8, "X: tensor 'w' has the size 0x2, which is not plain digits" BELOW },
        { SHAPE("[2 0]"), 8, "X: tensor 'w' has the size 2 0, which is not plain digits" BELOW },
        { SHAPE("[null]"), 8, "X: tensor 'w' has the size null, which is not plain digits" BELOW },
        { SHAPE("[true]"), 8, "X: tensor 'w' has the size true, which is not plain digits" BELOW },
        { SHAPE("[[2]]"), 8, "X: tensor 'w' has the size [2], which is not plain digits" BELOW },
        { SHAPE("[99999999999999999999999999999999]"), 8,
          "X: tensor 'w' has the size 99999999999999999999999999999999, which is not plain digits" BELOW },
        { SHAPE("[2,]"), 8, "X: tensor 'w' has a list of sizes that is not JSON: a value is missing" },
        { SHAPE("[9007199254740992]"), 8,
          "X: tensor 'w' has the size 9007199254740992, which is not plain digits" BELOW },
        { SHAPE("[1e400]"), 8, "X: tensor 'w' has the size 1e400, which is not plain digits" BELOW },
        { SHAPE("[1e-05]"), 8, "X: tensor 'w' has the size 1e-05, which is not plain digits" BELOW },
        { SHAPE("[-05]"), 8, "X: its header is not a JSON object: a number begins with a zero too many" },
        { SHAPE("[02]"), 8, "X: its header is not a JSON object: a number begins with a zero too many" },
        { SHAPE("[2}"), 8, "X: tensor 'w' has a list of sizes that is not JSON: a comma is missing" },
        { SHAPE("[4294967296,4294967296]"), 8, "X: tensor 'w' describes more than 2^62 bits" },
        { SHAPE("[0,4294967296,4294967296]"), 8, "X: tensor 'w' describes more than 2^62 bits" },
        { SHAPE("[1,1,1,1,1,1,1,1,2]"), 8, "X: tensor 'w' has more than 8 axes" },
        { SHAPE("[3]"), 8, "X: tensor 'w' needs 12 bytes by shape and dtype, but its data_offsets are [0, 8]" },
        { OFFSETS("[0]"), 8, "X: tensor 'w' has data_offsets that are not a list of two" },
        { OFFSETS("[0,8,16]"), 8, "X: tensor 'w' has data_offsets that are not a list of two" },
        { OFFSETS("{}"), 8, "X: tensor 'w' has data_offsets that are not a list of two" },
        { OFFSETS("[8,0]"), 8, "X: tensor 'w' needs 8 bytes by shape and dtype, but its data_offsets are [8, 0]" },
        { OFFSETS("[0,18446744073709551616]"), 8,
          "X: tensor 'w' has the data offset 18446744073709551616, which is not plain digits" BELOW },
        { OFFSETS("[0,9007199254740993]"), 8,
          "X: tensor 'w' has the data offset 9007199254740993, which is not plain digits" BELOW },
        { OFFSETS("[0,8.0]"), 8, "X: tensor 'w' has the data offset 8.0, which is not plain digits" BELOW },
        { OFFSETS("[0,0.8e1]"), 8, "X: tensor 'w' has the data offset 0.8e1, which is not plain digits" BELOW },
        { OFFSETS("[0,1.6e1]"), 8, "X: tensor 'w' has the data offset 1.6e1, which is not plain digits" BELOW },
        { OFFSETS("[-0,8]"), 8, "X: tensor 'w' has the data offset -0, which is not plain digits" BELOW },
        { OFFSETS("[0.0,8]"), 8, "X: tensor 'w' has the data offset 0.0, which is not plain digits" BELOW },
        { OFFSETS("[0,1e400]"), 8, "X: tensor 'w' has the data offset 1e400, which is not plain digits" BELOW },
        { OFFSETS("[0,8E0]"), 8, "X: tensor 'w' has the data offset 8E0, which is not plain digits" BELOW },
        { OFFSETS("[0,\"8\"]"), 8, "X: tensor 'w' has the data offset \"8\", which is not plain digits" BELOW },
        { OFFSETS("[0,8],\"data_offsets\":[0,8]"), 8, "X: tensor 'w' has a second data_offsets" },
        { SHAPE("[2],\"sh\\u0061pe\":[2]"), 8, "X: tensor 'w' has a second shape" },
        { OFFSETS("[0,8]"), 7, "X: tensor 'w' ends at byte 8 of the data, but the file holds only 7" },
        { OFFSETS("[4,12]"), 12, "X: tensor 'w' begins at byte 4 of the data, leaving a gap (at 0)" },
        { "{" T("w", F32_2("0", "8")) "," T("v", F32_2("4", "12")) "}", 12,
          "X: tensor 'v' begins at byte 4 of the data, before the tensor ahead of it ends (at 8)" },
        { "{" T("w", F32_2("0", "8")) "," T("v", F32_2("0", "8")) "}", 8,
          "X: tensor 'v' begins at byte 0 of the data, before the tensor ahead of it ends (at 8)" },
        { "{" T("w", F32_2("0", "8")) "," T("v", F32_2("12", "20")) "}", 20,
          "X: tensor 'v' begins at byte 12 of the data, leaving a gap (at 8)" },
        { "{" T("w", "\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]") "}", 2,
          "X: tensor 'w' does not fill whole bytes" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        st_file f;
        char why[IO_WHY] = "nothing was said";
        if (parse(row[r].header, strlen(row[r].header), (size_t)row[r].data, &f, why))
            fail_msg("accepted: %s", row[r].header);
        assert_string_equal(why, row[r].sentence);
        assert_null(f.tensor);
    }
}

static void headers_that_are_odd_but_true(void **state)
{
    static const struct {
        const char *header;
        int data, count;
    } row[] = {
        { "{}", 0, 0 },
        { " \t\r\n{ } \n\r\t ", 0, 0 },
        { "{" T("__metadata__", "") "}", 0, 0 },
        { "{ \"w\" : { \"shape\" : [ 2 ] , \"data_offsets\" : [ 0 , 8 ] , \"dtype\" : \"F32\" } }", 8, 1 },
        { "{" T("w", F32_2("0", "8") ",\"more\":{\"a\":[1,2,{\"]\":\"}\"}]}") "}", 8, 1 },
        { "{" T("w", F32_2("0", "8")) "}", 11, 1 },
        { "{" T("e", "\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[8,8]") "," T("w", F32_2("0", "8")) "}", 8, 2 },
        { "{" T("e", "\"dtype\":\"I64\",\"shape\":[7,0],\"data_offsets\":[0,0]") "," T("w", F32_2("0", "8")) "}", 8,
          2 },
        { "{" T("", F32_2("0", "8")) "}", 8, 1 },
        { "{" T("\\ud83d\\ude00", F32_2("0", "8")) "}", 8, 1 },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        st_file f;
        char why[IO_WHY] = "";
        if (!parse(row[r].header, strlen(row[r].header), (size_t)row[r].data, &f, why))
            fail_msg("%s: %s", row[r].header, why);
        assert_int_equal(f.count, row[r].count);
        st_close(&f);
    }
}

static void files_that_are_none(void **state)
{
    st_file f;
    char why[IO_WHY], *deep = malloc(200001);
    (void)state;
    assert_false(st_parse("", 0, "X", &f, why));
    assert_string_equal(why, "X: it is not a .safetensors file: it has only 0 bytes");
    assert_false(st_parse("\x93NUMPY\1\0v\0{'descr'", 18, "X", &f, why));
    assert_string_equal(
        why, "X: it is not a .safetensors file, or its header of 379676406402707 bytes is longer than 100 MB");
    assert_false(st_parse("\x01\xe1\xf5\x05\0\0\0\0{}", 10, "X", &f, why));
    assert_string_equal(why,
                        "X: it is not a .safetensors file, or its header of 100000001 bytes is longer than 100 MB");
    assert_false(st_parse("\x03\0\0\0\0\0\0\0{}", 10, "X", &f, why));
    assert_string_equal(why, "X: its header claims 3 bytes but the file ends after 2");
    assert_non_null(deep);
    memcpy(deep, "{\"w\":", 5);
    memset(deep + 5, '[', 199995);
    assert_false(parse(deep, 200000, 0, &f, why));
    assert_string_equal(why, "X: its header is not a JSON object: it is nested too deeply");
    free(deep);
    assert_false(st_open("/nonexistent/X", &f, why));
    assert_string_equal(why, "/nonexistent/X: it cannot be opened (No such file or directory)");
    assert_false(st_open("/", &f, why));
    assert_string_equal(why, "/: it is a directory");
}

/* ---- writing ---- */

static st_tensor described(const char *name, const char *type, int rank, int64_t rows, int64_t columns)
{
    st_tensor t = { .rank = rank, .shape = { rows, columns } };
    t.name = (char *)(uintptr_t)name;
    snprintf(t.type, sizeof t.type, "%s", type);
    return t;
}

/* In pieces that do not follow the tensors, and back. */
static void round_trip(void **state)
{
    const st_tensor tensor[] = { described("a \"b\"\\\n\xe2\x82\xac", "F32", 2, 2, 3), described("", "BF16", 1, 2, 0),
                                 described("none", "F16", 2, 0, 9), described("one", "F8_E4M3", 0, 0, 0),
                                 described("fp4", "F4", 2, 2, 3) };
    const char *const metadata[] = { "format", "pt", "note", "tab\tand \"quotes\"" };
    unsigned char data[32];
    char why[IO_WHY] = "";
    st_writer w;
    st_file f;
    (void)state;
    for (int i = 0; i < 32; i++) data[i] = (unsigned char)(3 * i);
    if (!st_create(scratch("w"), tensor, 5, metadata, 2, &w, why)) fail_msg("%s", why);
    assert_int_equal(access(scratch("w"), F_OK), -1); /* nothing is there before all of it is */
    if (!st_write(&w, data, 5, why) || !st_write(&w, data + 5, 0, why) || !st_write(&w, data + 5, 27, why) ||
        !st_finish(&w, why) || !st_open(scratch("w"), &f, why))
        fail_msg("%s", why);
    assert_int_equal(f.count, 5);
    assert_int_equal(f.data_start % 8, 0);
    assert_int_equal(f.trailing, 0);
    assert_string_equal(st_metadata(&f, "note"), "tab\tand \"quotes\"");
    for (int i = 0; i < 5; i++) {
        const st_tensor *t = tensor_of(&f, tensor[i].name);
        assert_int_equal(t->place, i);
        assert_string_equal(t->type, tensor[i].type);
        assert_memory_equal(t->shape, tensor[i].shape, sizeof t->shape);
        assert_memory_equal(t->data, data + t->begin, st_bytes(t));
    }
    assert_int_equal(tensor_of(&f, "fp4")->begin, 29);
    st_close(&f);
}

static void what_is_not_written(void **state)
{
    const struct {
        st_tensor tensor[2];
        int count;
        const char *sentence;
    } row[] = {
        { { described("w", "F32", 1, 2, 0), described("w", "F32", 1, 2, 0) }, 2, "%s: 'w' would be there twice" },
        { { described("__metadata__", "F32", 1, 2, 0) }, 1, "%s: no tensor may be called __metadata__" },
        { { described("\xff", "F32", 1, 2, 0) }, 1, "%s: the name of tensor '\\xff' is not UTF-8" },
        { { described("w", "F31", 1, 2, 0) }, 1, "%s: tensor 'w' has an unknown type" },
        { { described("w", "F32", 1, -2, 0) }, 1, "%s: tensor 'w' has a negative size" },
        { { described("w", "F32", 9, 2, 0) }, 1, "%s: tensor 'w' has 9 axes; 0 to 8 can be written" },
        { { described("w", "F4", 1, 5, 0) }, 1, "%s: tensor 'w' does not fill whole bytes" },
        { { described("w", "I8", 1, INT64_C(1) << 55, 0) }, 1, "%s: its tensors have more than 2^53 bytes" },
        { { described("w", "U8", 1, 3, 0), described("v", "F32", 1, 2, 0) },
          2,
          "%s: tensor 'v' would begin at byte 3, no multiple of its elements' 4; readers need that (st_arrange)" },
    };
    st_writer w;
    char why[IO_WHY], expected[IO_WHY];
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        assert_false(st_create(scratch("w"), row[r].tensor, row[r].count, NULL, 0, &w, why));
        snprintf(expected, sizeof expected, row[r].sentence, scratch("w"));
        assert_string_equal(why, expected);
        assert_int_equal(access(scratch("w"), F_OK), -1);
        st_abandon(&w); /* does nothing */
    }
    st_tensor both[2] = { described("w", "U8", 1, 3, 0), described("v", "F32", 1, 2, 0) };
    st_arrange(both, 2);
    assert_string_equal(both[0].name, "v");
    assert_true(st_create(scratch("w"), both, 2, NULL, 0, &w, why));
    st_abandon(&w);
}

static void data_that_does_not_fit(void **state)
{
    const st_tensor tensor = described("w", "F32", 1, 2, 0);
    st_writer w;
    char why[IO_WHY];
    (void)state;
    put_file(scratch("w"), "the one before");
    assert_true(st_create(scratch("w"), &tensor, 1, NULL, 0, &w, why) && st_write(&w, "1234567", 7, why));
    assert_false(st_finish(&w, why));
    assert_non_null(strstr(why, "only 7 of the 8 bytes that its header describes were written"));
    assert_true(st_create(scratch("w"), &tensor, 1, NULL, 0, &w, why) && st_write(&w, "1234567", 7, why));
    assert_false(st_write(&w, "89", 2, why));
    assert_non_null(strstr(why, "more than the 8 bytes that its header describes were written"));
    assert_false(st_finish(&w, why));
    assert_true(st_create(scratch("w"), &tensor, 1, NULL, 0, &w, why));
    st_abandon(&w);
    char text[32] = "";
    FILE *f = fopen(scratch("w"), "r");
    assert_true(f && fgets(text, sizeof text, f) && fclose(f) == 0);
    assert_string_equal(text, "the one before");
    assert_int_equal(rmdir(folder), -1);
    unlink(scratch("w"));
    assert_int_equal(rmdir(folder), 0); /* no other file was left behind */
    assert_int_equal(mkdir(folder, 0700), 0);
}

/* ---- checkpoints ---- */

static void a_sharded_checkpoint(void **state)
{
    static const char *const way[] = { "sharded", "sharded/", "sharded/model.safetensors.index.json" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        ckpt c = { 0 };
        st_file f;
        char why[IO_WHY] = "";
        if (!ckpt_open(data_file(way[i]), &c, why)) fail_msg("%s", why);
        assert_int_equal(c.shards, 2);
        assert_int_equal(c.tensors, 3);
        assert_int_equal(c.total_bytes, 16);
        assert_string_equal(c.file[1], "model-00002-of-00002.safetensors");
        assert_int_equal(ckpt_find(&c, "a.bias"), 0);
        assert_int_equal(ckpt_find(&c, "b.weight"), 1);
        assert_int_equal(ckpt_find(&c, "c"), -1);
        if (!ckpt_shard(&c, 1, &f, why)) fail_msg("%s", why);
        assert_non_null(st_find(&f, "b.weight"));
        st_close(&f);
        ckpt_close(&c);
    }
}

/* Two files with one tensor each, called as the arguments say. */
static void put_shards(const char *first, const char *second)
{
    const char *const name[2] = { first, second }, *const file[2] = { "1.safetensors", "2.safetensors" };
    char why[IO_WHY] = "";
    for (int i = 0; i < 2; i++) {
        const st_tensor t = described(name[i], "U8", 1, 4, 0);
        st_writer w;
        if (!st_create(scratch(file[i]), &t, 1, NULL, 0, &w, why) || !st_write(&w, "abcd", 4, why) ||
            !st_finish(&w, why))
            fail_msg("%s", why);
    }
}

static void an_index_of_our_own(void **state)
{
    const ckpt_entry entry[2] = { { "a \"quoted\"", "1.safetensors" }, { "b", "2.safetensors" } };
    ckpt c = { 0 };
    char why[IO_WHY] = "";
    (void)state;
    put_shards("a \"quoted\"", "b");
    if (!ckpt_write_index(scratch("model.safetensors.index.json"), entry, 2, 8, NULL, why) ||
        !ckpt_open(folder, &c, why))
        fail_msg("%s", why);
    assert_int_equal(ckpt_find(&c, "a \"quoted\""), 0);
    assert_int_equal(c.total_bytes, 8);
    ckpt_close(&c);
    /* as Python's json reads it: the last of two counts, after a mark */
    put_file(scratch("model.safetensors.index.json"),
             "\xef\xbb\xbf{\"weight_map\":{},\"metadata\":{\"total_size\":8,\"x\":Infinity},\"weight_map\":{\"b\":\"1."
             "safetensors\","
             "\"a \\\"quoted\\\"\":\"1.safetensors\",\"b\":\"2.safetensors\"}}");
    if (!ckpt_open_all(folder, &c, why)) fail_msg("%s", why);
    assert_int_equal(c.shards, 2);
    assert_string_equal(c.metadata, "\"x\": Infinity");
    ckpt_close(&c);
}

static void indices_that_lie(void **state)
{
    static const struct {
        const char *text, *sentence;
    } row[] = {
        { "", "it is not a JSON object: it does not begin with '{'" },
        { "{\"weight_map\":{\"a\":\"1.safetensors\"}", "it is not a JSON object: it breaks off" },
        { "{}", "it has no weight_map: it is not the index of a checkpoint" },
        { "{\"weight_map\":{}}", "its weight_map is empty" },
        { "{\"weight_map\":7}", "its weight_map is not a JSON object of file names: it does not begin with '{'" },
        { "{\"weight_map\":{\"a\":7}}", "its weight_map gives tensor 'a' no file name" },
        { "{\"weight_map\":{},\"weight_map\":{}}", "its weight_map is empty" },
        { "{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"2.safetensors\",\"b\":\"2.safetensors\"}}",
          "tensor 'a' is not in 2.safetensors, where the weight_map says it is" },
        { "{\"weight_map\":{\"a\":\"../secret\"}}",
          "its weight_map looks for tensor 'a' outside of its directory, in '../secret'" },
        { "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
          "its weight_map looks for tensor 'a' outside of its directory, in '/etc/passwd'" },
        { "{\"weight_map\":{\"a\":\"..\"}}", "its weight_map looks for tensor 'a' outside of its directory, in '..'" },
        { "{\"weight_map\":{\"a\":\"\"}}", "its weight_map looks for tensor 'a' outside of its directory, in ''" },
        { "{\"weight_map\":{\"a\":\"1.safetensors\\u0000\"}}", "it is not a JSON object: a text holds a NUL" },
        { "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\"}}",
          "tensor 'a' is not in 2.safetensors, where the weight_map says it is" },
        { "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\"}}",
          "tensor 'b' is not in 1.safetensors, where the weight_map says it is" },
    };
    const char *name = "model.safetensors.index.json";
    char why[IO_WHY], expected[IO_WHY];
    ckpt c = { 0 };
    (void)state;
    put_shards("a", "b");
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        put_file(scratch(name), row[r].text);
        if (ckpt_open(folder, &c, why)) fail_msg("accepted: %s", row[r].text);
        ckpt_close(&c); /* does nothing then, and may be called */
        snprintf(expected, sizeof expected, "%s: %s", scratch(name), row[r].sentence);
        assert_string_equal(why, expected);
    }
    put_shards("a", "a");
    put_file(scratch(name), "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}");
    assert_false(ckpt_open(folder, &c, why));
    assert_non_null(strstr(why, "tensor 'a' is in both 1.safetensors and 2.safetensors"));
    put_file(scratch(name), "{\"weight_map\":{\"a\":\"3.safetensors\"}}");
    assert_false(ckpt_open(folder, &c, why));
    assert_non_null(strstr(why, "3.safetensors: it cannot be opened (No such file or directory)"));
}

static void what_a_directory_may_hold(void **state)
{
    ckpt c = { 0 };
    char why[IO_WHY] = "";
    (void)state;
    assert_false(ckpt_open(folder, &c, why));
    assert_non_null(strstr(why, "it holds no .safetensors file"));
    put_shards("a", "b");
    assert_false(ckpt_open(folder, &c, why));
    assert_non_null(strstr(why, "it holds 2 .safetensors files and no index; name one of them"));
    assert_int_equal(rename(scratch("2.safetensors"), scratch("model.safetensors")), 0);
    assert_true(ckpt_open(folder, &c, why)); /* the usual name */
    assert_string_equal(c.file[0], "model.safetensors");
    ckpt_close(&c);
    assert_true(ckpt_open(scratch("1.safetensors"), &c, why));
    assert_null(c.index);
    ckpt_close(&c);
    put_file(scratch("x.safetensors.index.json"), "{}");
    put_file(scratch("y.safetensors.index.json"), "{}");
    assert_false(ckpt_open(folder, &c, why));
    assert_non_null(strstr(why, "it holds 2 indices; name one of them"));
    assert_false(ckpt_open("-", &c, why));
    assert_string_equal(why, "-: a checkpoint is read twice, which standard input cannot be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_official_file),
        cmocka_unit_test(files_of_stranger_writers),
        cmocka_unit_test(the_mark_of_240),
        cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(headers_that_are_odd_but_true),
        cmocka_unit_test(files_that_are_none),
        WRITES(round_trip),
        WRITES(what_is_not_written),
        WRITES(data_that_does_not_fit),
        cmocka_unit_test(a_sharded_checkpoint),
        WRITES(an_index_of_our_own),
        WRITES(indices_that_lie),
        WRITES(what_a_directory_may_hold),
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

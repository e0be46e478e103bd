/* test_gguf.c - GGUF: blocks of every type made by a twin from random numbers, the vectors of another implementation, a
 * file with all that a file can have, and what is refused, with its sentence.
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

#include "io/gguf_dense.h"
#include "twin/twin_gguf.h"
#include "unit/made_tensor.h"
#include "unit/scratch.h"

/* ---- blocks ---- */

static void every_type(void **state)
{
    uint64_t rng = 34;
    (void)state;
    for (int t = 0; t < TWIN_BLOCK_TYPES; t++) {
        const twin_block_type *type = &twin_block_types[t];
        assert_string_equal(gguf_type_of(type->number)->name, type->name);
        for (int i = 0; i < cases_rounds(200, 20000); i++) {
            enum { BLOCKS = 3 };
            twin_block k[BLOCKS];
            unsigned char bytes[BLOCKS * 256];
            float row[BLOCKS * 256];
            gguf_matrix m;
            char why[IO_WHY];
            for (int b = 0; b < BLOCKS; b++) {
                twin_block_draw(&rng, type, &k[b], i % 4 == 0);
                twin_block_pack(type, &k[b], bytes + b * type->bytes);
            }
            const gguf_tensor tensor = { .name = (char *)(uintptr_t) "x",
                                         .type = type->number,
                                         .rank = 2,
                                         .shape = { 1, BLOCKS * type->elements },
                                         .elements = BLOCKS * type->elements,
                                         .data = bytes };
            if (!gguf_matrix_open(&tensor, &m, why)) fail_msg("%s", why);
            assert_true(m.rows == 1 && m.columns == BLOCKS * type->elements);
            gguf_row(&m, 0, row);
            for (int e = 0; e < BLOCKS * type->elements; e++) {
                const double v = type->value(&k[e / type->elements], e % type->elements);
                if (bits_of(row[e]) != twin_quant_odd(v))
                    fail_msg("%s %d: %a, not %a", type->name, e, (double)row[e], v);
            }
        }
    }
}

/* `digits` hexadecimal digits of a longer text. */
static uint32_t hexadecimal(const char *text, int digits)
{
    char number[9] = "";
    memcpy(number, text, (size_t)digits);
    return (uint32_t)strtoul(number, NULL, 16);
}

static const gguf_type *type_called(const char *name, uint32_t *number)
{
    for (*number = 0; *number < GGUF_TYPES; ++*number)
        if (strcmp(gguf_type_of(*number)->name, name) == 0) return gguf_type_of(*number);
    fail_msg("%s is no type", name);
    return NULL;
}

static void golden_block(const char *name, const char *block, const char *values)
{
    unsigned char bytes[256];
    double x[256];
    uint32_t number;
    const gguf_type *type = type_called(name, &number);
    assert_true(strlen(block) == 2u * (unsigned)type->bytes && strlen(values) == 8u * (unsigned)type->elements);
    for (int i = 0; i < type->bytes; i++) bytes[i] = (unsigned char)hexadecimal(block + 2 * i, 2);
    gguf_decoder(number)(bytes, x);
    for (int i = 0; i < type->elements; i++) {
        const float want = io_float(hexadecimal(values + 8 * i, 8)), got = (float)x[i];
        const bool zeros = got == 0 && want == 0;
        if (bits_of(got) != bits_of(want) && !zeros) fail_msg("%s %d: %a, not %a", name, i, (double)got, (double)want);
    }
}

/* What ggml makes of its blocks: the nearest of binary32. It has no -0 of MXFP4. */
static void golden_blocks(void **state)
{
    FILE *file = fopen(TRN_GOLDEN_DIR "/gguf_blocks.txt", "r");
    char line[4096], name[32], block[512], values[2100];
    int blocks = 0;
    (void)state;
    if (!file) fail_msg("%s/gguf_blocks.txt cannot be opened", TRN_GOLDEN_DIR);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%31s %511s %2099s", name, block, values), 3);
        golden_block(name, block, values);
        blocks++;
    }
    fclose(file);
    assert_int_equal(blocks, 3 * TWIN_BLOCK_TYPES);
}

/* ---- a file ---- */

static bool read_it(const twin_gguf *f, gguf_file *file, char *why)
{
    unsigned char *copy = malloc(f->size ? f->size : 1);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->size);
    return gguf_read((io_map){ copy, f->size, false }, "x", file, why);
}

/* One of each kind of value; tensors of three kinds, not in the order of their places. */
static void write_all(twin_gguf *f, uint32_t version)
{
    static const int width[13] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    char key[16];
    twin_gguf_start(f, version, 3, 15);
    for (uint32_t type = 0; type < 13; type++) {
        if (type == 9) continue;
        snprintf(key, sizeof key, "k.%u", type);
        if (type == 8) {
            twin_gguf_text(f, key);
            twin_gguf_put(f, 8, 4);
            twin_gguf_text(f, "caf\xc3\xa9");
        } else {
            twin_gguf_key(f, key, type, type == 5 ? UINT64_MAX : 1, width[type]);
        }
    }
    twin_gguf_key(f, "general.alignment", 4, 64, 4);
    twin_gguf_text(f, "words");
    twin_gguf_put(f, 9, 4), twin_gguf_put(f, 8, 4), twin_gguf_put(f, 2, 8);
    twin_gguf_text(f, "a");
    twin_gguf_text(f, "");
    twin_gguf_text(f, "numbers");
    twin_gguf_put(f, 9, 4), twin_gguf_put(f, 3, 4), twin_gguf_put(f, 5, 8);
    for (int i = 0; i < 5; i++) twin_gguf_put(f, (uint64_t)i, 2);
    twin_gguf_tensor(f, "late", 2, (uint64_t[]){ 64, 2 }, 8, 64);
    twin_gguf_tensor(f, "first", 3, (uint64_t[]){ 2, 3, 2 }, 1, 0);
    twin_gguf_tensor(f, "single", 0, NULL, 0, 256);
    twin_gguf_pad(f, 64);
    for (int i = 0; i < 260; i++) twin_gguf_put(f, (uint64_t)(i < 24 && i % 2 ? 0x3c : i & 63), 1);
}

static void whole_file(void **state)
{
    static twin_gguf f;
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_file file;
        gguf_matrix m;
        char why[IO_WHY];
        float row[64];
        uint64_t n = 7;
        const char *text;
        size_t size;
        write_all(&f, version);
        if (!read_it(&f, &file, why)) fail_msg("%s", why);
        assert_true(file.version == version && file.keys == 15 && file.count == 3 && file.alignment == 64);
        assert_true(file.data_start % 64 == 0 && file.data_size == 260);
        for (int type = 0; type < 13; type++) {
            char key[16];
            snprintf(key, sizeof key, "k.%d", type);
            const gguf_value *v = gguf_key(&file, key);
            if (type == 9) assert_null(v);
            const bool whole = (type < 6 && type != 5) || type == 10 || type == 11; /* k.5 is -1 */
            assert_int_equal(gguf_whole(v, &n), whole);
            assert_int_equal(gguf_text(v, &text, &size), type == 8);
        }
        assert_true(gguf_text(gguf_key(&file, "k.8"), &text, &size) && size == 5 &&
                    memcmp(text, "caf\xc3\xa9", 5) == 0);
        assert_false(gguf_whole(gguf_key(&file, "numbers"), &n) || gguf_text(gguf_key(&file, "words"), &text, &size));
        assert_true(gguf_key(&file, "numbers")->count == 5 && gguf_key(&file, "words")->list);
        assert_null(gguf_find(&file, "k.1"));
        const gguf_tensor *first = gguf_find(&file, "first"), *late = gguf_find(&file, "late");
        assert_true(first == &file.tensor[0] && first->rank == 3 && first->shape[0] == 2 && first->shape[1] == 3 &&
                    first->shape[2] == 2 && first->elements == 12);
        assert_true(gguf_matrix_open(first, &m, why) && m.rows == 6 && m.columns == 2);
        gguf_row(&m, 5, row);
        assert_true(row[0] == 1 + 20 / 1024.0f && row[1] == 1 + 22 / 1024.0f); /* the bytes 20 and 22 under 0x3c */
        assert_true(gguf_matrix_open(late, &m, why) && m.rows == 2 && m.columns == 64);
        assert_true(m.data == file.map.bytes + file.data_start + 64);
        gguf_row(&m, 1, row);
        const unsigned char *block = m.data + 3 * 34; /* of row 1 the second */
        assert_true(row[33] == io_odd((signed char)block[3] * (double)trn_decode(TRN_F16, io_little16(block))));
        assert_true(gguf_matrix_open(gguf_find(&file, "single"), &m, why) && m.rows == 1 && m.columns == 1);
        gguf_close(&file);
        gguf_close(&file);
    }
}

/* What ggml's own writer writes (data/README.md). */
static void foreign_file(void **state)
{
    static const uint32_t type[8] = { GGUF_F32,  GGUF_F16,  GGUF_Q4_0,  GGUF_Q8_0,
                                      GGUF_Q4_K, GGUF_Q6_K, GGUF_MXFP4, GGUF_Q2_K };
    static const int64_t shape[3][3] = { { 512 }, { 3, 256 }, { 3, 2, 256 } };
    gguf_file file;
    char why[IO_WHY];
    uint64_t n = 0;
    const char *text;
    size_t size;
    (void)state;
    if (!gguf_open(data_file("ggml.gguf"), &file, why)) fail_msg("%s", why);
    assert_true(file.version == 3 && file.keys == 7 && file.count == 8 && file.alignment == 32);
    assert_true(gguf_text(gguf_key(&file, "general.architecture"), &text, &size) && size == 5);
    assert_true(gguf_whole(gguf_key(&file, "general.alignment"), &n) && n == 32);
    assert_false(gguf_whole(gguf_key(&file, "x.neg"), &n));
    assert_true(gguf_key(&file, "tokenizer.tokens")->list && gguf_key(&file, "tokenizer.tokens")->count == 3);
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%d.weight", i);
        const gguf_tensor *t = gguf_find(&file, name);
        assert_true(t && t->type == type[i] && t->rank == 1 + i % 3);
        assert_memory_equal(t->shape, shape[i % 3], (size_t)t->rank * sizeof t->shape[0]);
        for (uint64_t k = 0; k < t->bytes; k++) assert_int_equal(t->data[k], (37 * k + 11 * (uint64_t)i) % 101);
    }
    gguf_close(&file);
}

/* ---- what is refused ---- */

typedef struct trouble {
    uint32_t version, axes, type;
    uint64_t sizes[2], begin, data;
    const char *key, *name, *second; /* a key of one number; a second tensor of this name */
    uint32_t key_type;
    uint64_t key_value;
    const char *what;
} trouble;

static void write_trouble(twin_gguf *f, const trouble *t)
{
    static const int width[13] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    twin_gguf_start(f, t->version ? t->version : 3, 2, t->key ? 1 : 0);
    if (t->key) twin_gguf_key(f, t->key, t->key_type, t->key_value, t->key_type < 13 ? width[t->key_type] : 4);
    twin_gguf_tensor(f, t->name ? t->name : "w", (int)t->axes, t->sizes, t->type, t->begin);
    twin_gguf_tensor(f, t->second ? t->second : "v", 1, (uint64_t[]){ 16 }, 0, 0);
    twin_gguf_pad(f, 32);
    for (uint64_t i = 0; i < t->data; i++) twin_gguf_put(f, 0, 1);
}

static void refusals(void **state)
{
#define W .axes = 2, .type = 8, .begin = 64, .sizes = { 64, 2 }, .data = 200
    static const trouble row[] = {
        { W },
        { W, .version = 1, .what = "version 1; 2 and 3 are read" },
        { W, .version = 4, .what = "version 4" },
        { W, .version = 0x03000000, .what = "it is a big-endian GGUF file" },
        { W, .key = "split.count", .key_type = 2, .key_value = 3, .what = "one of 3 parts of a model (split.count)" },
        { W, .key = "split.count", .key_type = 2, .key_value = 1 },
        { W, .key = "general.alignment", .key_type = 4, .key_value = 24, .what = "general.alignment is not a power" },
        { W, .key = "split.count", .key_type = 2, .key_value = 2, .what = "one of 2 parts" },
        { W, .key = "split.count", .key_type = 6, .key_value = 1, .what = "split.count is no number" },
        { W, .key = "general.alignment", .key_type = 4, .key_value = 1 << 25, .what = "is not a power of two up to" },
        { .axes = 2,
          .type = 8,
          .begin = 63,
          .sizes = { 64, 2 },
          .data = 200,
          .key = "general.alignment",
          .key_type = 4,
          .key_value = 1,
          .what = "'v' and 'w' overlap" },
        { .axes = 2,
          .type = 8,
          .begin = 64,
          .sizes = { 64, 2 },
          .data = 200,
          .key = "general.alignment",
          .key_type = 4,
          .key_value = 1 },
        { W, .key = "general.alignment", .key_type = 4, .key_value = 0, .what = "general.alignment is not a power" },
        { W, .key = "general.alignment", .key_type = 10, .key_value = 32, .what = "general.alignment is not a power" },
        { W, .key = "b", .key_type = 7, .key_value = 2, .what = "'b' is 2; expected 0 or 1" },
        { W, .key = "b", .key_type = 13, .key_value = 2, .what = "'b' has the type 13, which is none" },
        { W, .second = "w", .what = "two tensors called 'w'" },
        { W, .name = "", .what = "a tensor's name has 0 bytes" },
        { W, .name = "\xff", .what = "a tensor's name is not UTF-8" },
        { .axes = 5, .type = 0, .what = "'w' has 5 axes; expected up to 4" },
        { .axes = 2, .type = 43, .sizes = { 64, 2 }, .data = 200, .what = "'w' has the type 43, which is unknown" },
        { .axes = 2, .type = 4, .sizes = { 64, 2 }, .data = 200, .what = "'w' is Q4_2, which was withdrawn" },
        { .axes = 2, .type = 31, .sizes = { 64, 2 }, .data = 200, .what = "'w' is Q4_0_4_4, which was withdrawn" },
        { .axes = 2,
          .type = 12,
          .sizes = { 64, 2 },
          .data = 200,
          .what = "'w' has rows of 64 elements, and blocks of Q4_K have 256" },
        { .axes = 2, .type = 8, .begin = 65, .sizes = { 64, 2 }, .data = 300, .what = "no multiple of 32" },
        { .axes = 2, .type = 8, .begin = 32, .sizes = { 64, 2 }, .data = 200, .what = "'v' and 'w' overlap" },
        { .axes = 2,
          .type = 8,
          .begin = 64,
          .sizes = { 64, 2 },
          .data = 199,
          .what = "'w' has bytes 64 to 200 of the data, but the file holds only 199" },
        { .axes = 2, .type = 8, .begin = UINT64_MAX - 31, .sizes = { 64, 2 }, .data = 200, .what = "'w' has bytes" },
        { .axes = 2,
          .type = 8,
          .begin = 64,
          .sizes = { UINT64_C(1) << 32, UINT64_C(1) << 31 },
          .data = 200,
          .what = "describes more than 2^62 elements" },
        { .axes = 2,
          .type = 0,
          .begin = 64,
          .sizes = { UINT64_C(1) << 32, UINT64_C(1) << 29 },
          .data = 200,
          .what = "describes more than 2^62 bytes" },
        { .axes = 2,
          .type = 8,
          .begin = 64,
          .sizes = { UINT64_MAX, 0 },
          .data = 200,
          .what = "more than 2^62 elements" },
    };
#undef W
    static twin_gguf f;
    char why[IO_WHY];
    gguf_file file;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        write_trouble(&f, &row[i]);
        const bool ok = read_it(&f, &file, why);
        if (ok != !row[i].what || (!ok && (strncmp(why, "x: ", 3) != 0 || !strstr(why, row[i].what))))
            fail_msg("row %d: %s", (int)i, ok ? "accepted" : why);
        gguf_close(&file);
    }
}

/* A byte of the header, or a name that is too long. */
static void headers(void **state)
{
    static const struct {
        size_t at;
        unsigned char byte;
        const char *what;
    } wound[] = { { 3, 'f', "it does not begin with 'GGUF'" },
                  { 4, 0, "version 0; 2 and 3" },
                  { 33, 0, "a tensor's name is not UTF-8, or holds a NUL" } };
    static char name[GGUF_NAME + 2];
    static twin_gguf f;
    trouble t = { .axes = 2, .type = 8, .begin = 64, .sizes = { 64, 2 }, .data = 200, .name = "abc" };
    char why[IO_WHY];
    gguf_file file;
    (void)state;
    for (size_t i = 0; i < sizeof wound / sizeof wound[0]; i++) {
        write_trouble(&f, &t);
        f.bytes[wound[i].at] = wound[i].byte;
        assert_false(read_it(&f, &file, why));
        if (!strstr(why, wound[i].what)) fail_msg("%s", why);
    }
    memset(name, 'n', sizeof name - 1);
    t.name = name;
    write_trouble(&f, &t);
    assert_false(read_it(&f, &file, why));
    assert_non_null(strstr(why, "a tensor's name has 4097 bytes; expected 1 to 4096"));
}

/* Cut short anywhere, it is refused or, where only padding is lost, the same. */
static void every_length(void **state)
{
    static twin_gguf f;
    char why[IO_WHY];
    (void)state;
    write_all(&f, 3);
    for (const size_t all = f.size; f.size > 0;) {
        gguf_file file;
        f.size--;
        if (read_it(&f, &file, why)) fail_msg("%d of %d bytes were accepted", (int)f.size, (int)all);
    }
}

/* Lists: of lists, and longer than the file. */
static void lists(void **state)
{
    static const struct {
        uint32_t type;
        uint64_t count;
        const char *what;
    } row[] = { { 9, 1, "a list of lists" },    { 10, UINT64_MAX / 8 + 2, "values, but the file ends before" },
                { 0, 1000, "has 1000 values" }, { 0, 9, "has 9 values" },
                { 8, 1000, "breaks off" },      { 77, 1, "has the type 77" } };
    static twin_gguf f;
    char why[IO_WHY];
    gguf_file file;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        twin_gguf_start(&f, 3, 0, 1);
        twin_gguf_text(&f, "list");
        twin_gguf_put(&f, 9, 4), twin_gguf_put(&f, row[i].type, 4), twin_gguf_put(&f, row[i].count, 8);
        twin_gguf_put(&f, 0, 8);
        assert_false(read_it(&f, &file, why));
        if (!strstr(why, row[i].what)) fail_msg("row %d: %s", (int)i, why);
    }
    for (int what = 0; what < 4; what++) { /* counts beyond the file */
        const uint64_t count = what < 2 ? UINT64_C(1) << 40 : 1;
        twin_gguf_start(&f, 3, what % 2 ? count : 0, what % 2 ? 0 : count);
        assert_false(read_it(&f, &file, why));
        assert_non_null(strstr(why, "for which it is too short"));
    }
}

/* Whatever a file has last, a byte less is noticed. */
static void last_bytes(void **state)
{
    static twin_gguf f;
    for (int last = 0; last < 3; last++) {
        static const char *const what[] = { "has 1 values, but the file ends before", "it breaks off at byte",
                                            "it breaks off at byte" };
        char why[IO_WHY];
        gguf_file file;
        uint64_t n = 0;
        (void)state;
        twin_gguf_start(&f, 3, last == 2, last != 2);
        if (last == 0) twin_gguf_key(&f, "last key", 10, UINT64_MAX, 8);
        if (last == 1) twin_gguf_text(&f, "last key"), twin_gguf_put(&f, 8, 4), twin_gguf_text(&f, "text");
        if (last == 2) twin_gguf_tensor(&f, "last tensor", 1, &n, 0, 0);
        if (!read_it(&f, &file, why)) fail_msg("%s", why);
        assert_true(last != 0 || (gguf_whole(gguf_key(&file, "last key"), &n) && n == UINT64_MAX));
        gguf_close(&file);
        f.size--;
        assert_false(read_it(&f, &file, why));
        if (!strstr(why, what[last])) fail_msg("%s", why);
    }
}

/* Wherever the header ends, data begins at the next multiple of the alignment. */
static void every_padding(void **state)
{
    static twin_gguf f;
    int exact = 0;
    (void)state;
    for (int length = 1; length <= 32; length++) {
        gguf_file file;
        gguf_matrix m;
        char name[64] = "", why[IO_WHY];
        float x;
        memset(name, 'n', (size_t)length);
        twin_gguf_start(&f, 3, 1, 0);
        twin_gguf_tensor(&f, name, 1, (uint64_t[]){ 1 }, 0, 0);
        exact += f.size % 32 == 0;
        twin_gguf_pad(&f, 32);
        twin_gguf_put(&f, 0x40490fdb, 4);
        assert_true(read_it(&f, &file, why) && gguf_matrix_open(&file.tensor[0], &m, why));
        gguf_row(&m, 0, &x);
        assert_int_equal(io_bits(x), 0x40490fdb);
        gguf_close(&file);
    }
    assert_int_equal(exact, 1);
}

/* No elements, whichever axis is empty. */
static void empty_tensors(void **state)
{
    static twin_gguf f;
    (void)state;
    for (uint64_t columns = 0; columns <= 32; columns += 32) {
        gguf_file file;
        gguf_matrix m = { .rows = 1 };
        char why[IO_WHY];
        twin_gguf_start(&f, 3, 1, 0);
        twin_gguf_tensor(&f, "empty", 2, (uint64_t[]){ columns, 32 - columns }, 8, 0);
        twin_gguf_pad(&f, 32);
        assert_true(read_it(&f, &file, why) && gguf_matrix_open(&file.tensor[0], &m, why));
        assert_true(m.rows == 0 && file.tensor[0].elements == 0 && file.tensor[0].bytes == 0);
        gguf_close(&file);
    }
}

/* Types whose size is known, but not what they are worth. */
static void types_without_decoder(void **state)
{
    static const uint32_t list[] = { 9, 15, 16, 17, 18, 19, 21, 22, 24, 25, 26, 27, 28, 29, 34, 40, 41, 42 };
    char why[IO_WHY];
    gguf_matrix m;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const gguf_tensor t = { .name = (char *)(uintptr_t) "blk.0.w", .type = list[i], .rank = 1, .shape = { 256 } };
        char expected[64];
        snprintf(expected, sizeof expected, "blk.0.w: it is %s, which is not read", gguf_type_of(list[i])->name);
        assert_false(gguf_matrix_open(&t, &m, why));
        assert_true(strncmp(why, expected, strlen(expected)) == 0);
    }
    assert_false(gguf_matrix_open(NULL, &m, why));
    assert_null(gguf_type_of(43));
    assert_null(gguf_decoder(43));
}

/* ---- without its blocks ---- */

/* Blocks, numbers of 2, 4 and 8 bytes, none at all: in this order in the file. */
static void write_mixed(twin_gguf *f, uint32_t type)
{
    static const unsigned char q8[34] = { 0x01, 0x3c, 127, 3, 253 }; /* of 1 + 2^-10 */
    twin_gguf_start(f, 3, 5, 1);
    twin_gguf_text(f, "general.architecture");
    twin_gguf_put(f, 8, 4);
    twin_gguf_text(f, "llama");
    twin_gguf_tensor(f, "blocks", 3, (uint64_t[]){ 32, 1, 2 }, type, 0);
    twin_gguf_tensor(f, "half", 1, (uint64_t[]){ 3 }, 1, 96);
    twin_gguf_tensor(f, "single", 0, NULL, 0, 128);
    twin_gguf_tensor(f, "long", 1, (uint64_t[]){ 1 }, 27, 160);
    twin_gguf_tensor(f, "empty", 2, (uint64_t[]){ 32, 0 }, 8, 192);
    twin_gguf_pad(f, 32);
    const size_t start = f->size;
    twin_gguf_raw(f, q8, 34), twin_gguf_raw(f, q8, 34);
    twin_gguf_pad(f, 32);
    twin_gguf_put(f, 0x7c01fc003c01, 6);
    twin_gguf_pad(f, 32);
    twin_gguf_put(f, 0x3f800001, 4);
    twin_gguf_pad(f, 32);
    twin_gguf_put(f, UINT64_MAX - 1, 8);
    twin_gguf_pad(f, 32);
    assert_int_equal(f->size - start, 192);
}

static void dense(void **state)
{
    static const struct {
        const char *name, *type;
        int rank;
        size_t bytes;
        unsigned char first[8];
    } row[] = { { "blocks", "BF16", 3, 128, { 0xfe, 0x42, 0x40, 0x40, 0x40, 0xc0, 0, 0 } }, /* 127.12, 3.003, -3.003 */
                { "half", "F16", 1, 6, { 0x01, 0x3c, 0, 0xfc, 0x01, 0x7c } },
                { "single", "F32", 0, 4, { 0x01, 0, 0x80, 0x3f } },
                { "long", "I64", 1, 8, { 0xfe, 255, 255, 255, 255, 255, 255, 255 } },
                { "empty", "BF16", 2, 0, { 0 } } };
    static twin_gguf f;
    gguf_file file;
    st_file out;
    char why[IO_WHY];
    (void)state;
    write_mixed(&f, 8);
    if (!read_it(&f, &file, why) || !gguf_write_dense(&file, scratch("x.safetensors"), why)) fail_msg("%s", why);
    if (!st_open(scratch("x.safetensors"), &out, why)) fail_msg("%s", why);
    assert_int_equal(out.count, 5);
    assert_string_equal(st_metadata(&out, "general.architecture"), "llama");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const st_tensor *t = st_find(&out, row[i].name);
        assert_non_null(t);
        assert_string_equal(t->type, row[i].type);
        assert_true(t->rank == row[i].rank && st_bytes(t) == row[i].bytes);
        assert_memory_equal(t->data, row[i].first, row[i].bytes < 8 ? row[i].bytes : 8);
    }
    const st_tensor *blocks = st_find(&out, "blocks");
    assert_true(blocks->shape[0] == 2 && blocks->shape[1] == 1 && blocks->shape[2] == 32);
    assert_memory_equal((const char *)blocks->data + 64, blocks->data, 64);
    st_close(&out);
    gguf_close(&file);
    write_mixed(&f, 9); /* Q8_1: as many bytes fit, but it is not read */
    if (!read_it(&f, &file, why)) fail_msg("%s", why);
    assert_false(gguf_write_dense(&file, scratch("y.safetensors"), why));
    assert_non_null(strstr(why, "blocks: it is Q8_1, which is not read"));
    assert_false(gguf_write_dense(&file, scratch("no/y.safetensors"), why));
    assert_null(fopen(scratch("y.safetensors"), "r"));
    gguf_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(golden_blocks),
        cmocka_unit_test(whole_file),
        cmocka_unit_test(foreign_file),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_length),
        cmocka_unit_test(lists),
        cmocka_unit_test(headers),
        cmocka_unit_test(last_bytes),
        cmocka_unit_test(every_padding),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(types_without_decoder),
        WRITES(dense),
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

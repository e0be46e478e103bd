/* fuzz_safetensors.c - random bytes as .safetensors files and as index.json: no crash, no read outside the file, one
 * sentence for each refusal, and only tensors that keep their word.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_safetensors [count] [seed]        default: 200000 files, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *     fuzz_safetensors --print count seed    the files themselves, each after its size in four bytes, for other readers
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. On its own it writes good files and indices
 * and spoils them: bytes flipped, ranges copied, cut short, tokens of the header exchanged for others. A file that is
 * accepted is written again, and must come back as it was.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#include "twin/cases.h"

#if defined(HAVE_CJSON)

#include "fuzz/long.h"
#include "io/checkpoint.h"

static volatile unsigned sum;

/* ---- what is accepted must be true ---- */

static void check_tensor(const st_file *f, int i, const unsigned char *copy, size_t size)
{
    const st_tensor *t = &f->tensor[i];
    int64_t elements = 1;
    assert(t->rank >= 0 && t->rank <= IO_MAX_RANK && st_type_of(t->type)->bits == t->bits);
    for (int k = 0; k < t->rank; k++) assert(t->shape[k] >= 0 && (elements *= t->shape[k]) >= 0);
    assert(elements == t->elements && (uint64_t)t->elements * (unsigned)t->bits == 8 * (t->end - t->begin));
    assert(t->begin == (i ? f->tensor[i - 1].end : 0) && t->end <= f->data_size);
    assert((const unsigned char *)t->data == copy + f->data_start + t->begin);
    assert((const unsigned char *)t->data + st_bytes(t) <= copy + size);
    assert(t->format == TRN_FORMAT_UNSET || trn_format_bits(t->format) == t->bits);
    assert(io_utf8(t->name, strlen(t->name)) && st_find(f, t->name) == t);
    for (size_t k = 0; k < st_bytes(t); k++) sum += ((const unsigned char *)t->data)[k];
}

/* Prints its header and reads that: every tensor is there again. */
static void check_round_trip(const st_file *f, const unsigned char *copy)
{
    char *text = NULL, why[IO_WHY];
    size_t length = 0;
    st_file again;
    FILE *memory = open_memstream(&text, &length);
    assert(memory && fwrite("12345678", 1, 8, memory) == 8);
    assert(st_print_header(memory, f->tensor, f->count, (const char *const *)f->metadata, f->metadata_count));
    const size_t header = (size_t)ftell(memory) - 8;
    assert(fwrite(copy + f->data_start, 1, (size_t)f->data_size, memory) == f->data_size && fclose(memory) == 0);
    for (int i = 0; i < 8; i++) text[i] = (char)(header >> 8 * i);
    if (!st_parse(text, length, "again", &again, why)) fprintf(stderr, "%s\n%s\n", why, text + 8), abort();
    assert(again.count == f->count && again.data_size == f->data_size && again.metadata_count == f->metadata_count);
    for (int i = 0; i < f->count; i++)
        assert(strcmp(f->tensor[i].name, again.tensor[i].name) == 0 && f->tensor[i].format == again.tensor[i].format &&
               memcmp(f->tensor[i].shape, again.tensor[i].shape, sizeof f->tensor[i].shape) == 0);
    st_close(&again);
    free(text);
}

/* Sizes and offsets of what was accepted are plain digits, wherever their names are not written with escapes. */
static void check_digits(const unsigned char *header, size_t size)
{
    static const char *const list[] = { "\"shape\":[", "\"data_offsets\":[" };
    for (size_t at = 0; at < size; at++)
        for (int i = 0; i < 2; i++) {
            const size_t name = strlen(list[i]);
            if (size - at < name || memcmp(header + at, list[i], name) != 0 || header[at - 1] == '\\') continue;
            for (const unsigned char *c = header + at + name; *c != ']'; c++) assert(strchr("0123456789, \t\r\n", *c));
        }
}

static void check_sentence(const char *why)
{
    assert(strncmp(why, "fuzz: ", 6) == 0 && strlen(why) > 12);
    for (const char *c = why; *c; c++) assert((unsigned char)*c >= 0x20);
}

static bool try_file(const unsigned char *file, size_t size)
{
    char why[IO_WHY] = "";
    st_file f;
    unsigned char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = st_parse(copy, size, "fuzz", &f, why);
    if (!ok) check_sentence(why);
    for (int i = 0; ok && i < f.count; i++) check_tensor(&f, i, copy, size);
    if (ok) check_digits(copy + 8, (size_t)f.data_start - 8);
    if (ok) check_round_trip(&f, copy);
    st_close(&f);
    free(copy);
    return ok;
}

static bool try_index(const unsigned char *file, size_t size)
{
    char why[IO_WHY] = "";
    ckpt_index index;
    unsigned char *copy = malloc(size ? size : 1);
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = ckpt_index_parse(copy, size, "fuzz", &index, why);
    if (!ok) check_sentence(why);
    for (int i = 0; ok && i < index.count; i++)
        assert(index.link[i].file[0] && !strchr(index.link[i].file, '/') && strcmp(index.link[i].file, "..") != 0);
    ckpt_index_free(&index);
    free(copy);
    return ok;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return (void)(size && data[0] == '{' ? try_index(data, size) : try_file(data, size)), 0;
}

#else

/* ---- files that are mostly good ---- */

enum { ROOM = 4096 };

static const char *const tokens[] = { "{",
                                      "}",
                                      "[",
                                      "]",
                                      ",",
                                      ":",
                                      "\"",
                                      "\\",
                                      "\\u0000",
                                      "\\ud800",
                                      "\\n",
                                      "[0,8]",
                                      "[8,0]",
                                      "[0,0]",
                                      "[2,2]",
                                      "[]",
                                      "-1",
                                      "0",
                                      "1",
                                      "2",
                                      "8",
                                      "9",
                                      "0.5",
                                      "1e3",
                                      "1e400",
                                      "-0",
                                      "00",
                                      "9007199254740992",
                                      "18446744073709551615",
                                      "[99999999999,99999999999]",
                                      "[1,1,1,1,1,1,1,1,1]",
                                      "null",
                                      "true",
                                      "\"F32\"",
                                      "\"BF16\"",
                                      "\"F4\"",
                                      "\"F6_E2M3\"",
                                      "\"BOOL\"",
                                      "\"F128\"",
                                      "\"w0\"",
                                      "\"w1\"",
                                      "\"dtype\"",
                                      "\"shape\"",
                                      "\"data_offsets\"",
                                      "\"__metadata__\"",
                                      "{\"a\":1}",
                                      " ",
                                      "\n",
                                      "\t",
                                      "\xff",
                                      "\xc3\xa9",
                                      "\xed\xa0\x80",
                                      "../",
                                      "..",
                                      "[[[[[[[[" };

#define PICK(rng, list) list[cases_below(rng, (int)(sizeof list / sizeof list[0]))]

static size_t good_header(uint64_t *rng, char *text, size_t *data)
{
    static const char *const types[] = { "F64",     "F32",     "F16", "BF16", "F8_E4M3",
                                         "F8_E5M2", "F8_E8M0", "I8",  "BOOL", "F4" };
    static const char *const shape[] = { "[2,4]", "[8]", "[1,8]", "[2,2,2]" };
    const int count = cases_below(rng, 5);
    int n = sprintf(text, "{");
    const bool metadata = cases_one_in(rng, 3), backwards = cases_one_in(rng, 3);
    size_t bytes[5], begin[6] = { 0 };
    const char *type[5];
    for (int i = 0; i < count; i++) {
        type[i] = PICK(rng, types);
        bytes[i] = (size_t)st_type_of(type[i])->bits;
        begin[i + 1] = begin[i] + bytes[i];
    }
    if (metadata) n += sprintf(text + n, "\"__metadata__\":{\"format\":\"pt\",\"fp8_format\":\"float8_e4m3\"}");
    for (int k = 0; k < count; k++) {
        const int i = backwards ? count - 1 - k : k;
        n += sprintf(text + n, "%s\"w%d\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                     k || metadata ? "," : "", i, type[i], PICK(rng, shape), begin[i], begin[i] + bytes[i]);
    }
    n += sprintf(text + n, "}%*s", cases_below(rng, 9), "");
    *data = begin[count];
    return (size_t)n;
}

static size_t good_file(uint64_t *rng, unsigned char *file)
{
    size_t data;
    const size_t n = good_header(rng, (char *)file + 8, &data);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(n >> 8 * i);
    if (cases_one_in(rng, 8)) data += 4; /* trailing bytes */
    for (size_t i = 0; i < data; i++) file[8 + n + i] = (unsigned char)cases_u32(rng);
    return 8 + n + data;
}

static size_t good_index(uint64_t *rng, unsigned char *file)
{
    int n = sprintf((char *)file, "{\"metadata\":{\"total_size\":%d},\"weight_map\":{", cases_below(rng, 1000));
    const int count = 1 + cases_below(rng, 8);
    for (int i = 0; i < count; i++)
        n += sprintf((char *)file + n, "%s\"w%d\":\"model-%05d.safetensors\"", i ? ",\n" : "", i, cases_below(rng, 3));
    return (size_t)(n + sprintf((char *)file + n, "}}"));
}

/* Exchanges a stretch for a token; the length field of a header follows, or else nothing behind it would be read. */
static size_t exchange(uint64_t *rng, unsigned char *file, size_t size, bool index)
{
    const char *token = PICK(rng, tokens);
    const size_t length = strlen(token), at = (size_t)cases_below(rng, (int)size);
    const size_t out = (size_t)cases_below(rng, 4) * (size_t)cases_below(rng, 6);
    const size_t gone = out < size - at ? out : size - at;
    if (size + length > ROOM) return size;
    memmove(file + at + length, file + at + gone, size - at - gone);
    memcpy(file + at, token, length);
    if (!index && at >= 8) {
        uint64_t header = io_little64(file);
        if (at - 8 < header && header < ROOM) header += length - gone;
        for (int i = 0; i < 8; i++) file[i] = (unsigned char)(header >> 8 * i);
    }
    return size + length - gone;
}

static size_t spoil(uint64_t *rng, unsigned char *file, size_t size, bool index)
{
    const int at = cases_below(rng, (int)size), to = cases_below(rng, (int)size);
    switch (cases_below(rng, 8)) {
    case 0: file[at] ^= (unsigned char)(1u << cases_below(rng, 8)); return size;
    case 1: file[at] = (unsigned char)cases_u32(rng); return size;
    case 2: memmove(file + to, file + at, size - (size_t)(at > to ? at : to)); return size;
    case 3: return (size_t)at + 1;
    default: return exchange(rng, file, size, index);
    }
}

static size_t next_file(uint64_t *rng, unsigned char *file, bool index)
{
    memset(file, 0, ROOM);
    size_t size = index ? good_index(rng, file) : good_file(rng, file);
    for (int wounds = cases_below(rng, 4); wounds > 0; wounds--) size = spoil(rng, file, size, index);
    return size;
}

/* The same numbers, one of them as no writer writes it: that must be refused. */
static size_t respelt_file(uint64_t *rng, unsigned char *file)
{
    size_t size, header, at;
    do {
        memset(file, 0, ROOM);
        size = good_file(rng, file);
        header = (size_t)io_little64(file);
    } while (!strstr((const char *)file + 8, "shape")); /* without tensors there is nothing to spell */
    do at = 8 + (size_t)cases_below(rng, (int)header);
    while (!strchr("[,", file[at]) || !strchr("0123456789", file[at + 1]));
    size_t end = at + 1;
    while (file[end] >= '0' && file[end] <= '9') end++;
    char number[32], text[64];
    snprintf(number, sizeof number, "%.*s", (int)(end - at - 1), (const char *)file + at + 1);
    static const char *const way[] = { "%s.0", "%se0", "%s.00e+0", "-%s", "0%s", "+%s", "\"%s\"", "0x%s", "[%s]" };
    const int length = snprintf(text, sizeof text, PICK(rng, way), number), more = length - (int)(end - at - 1);
    memmove(file + at + 1 + length, file + end, size - end);
    memcpy(file + at + 1, text, (size_t)length);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((header + (size_t)more) >> 8 * i);
    return size + (size_t)more;
}

static int print_files(long count, uint64_t rng)
{
    for (long i = 0; i < count; i++) {
        unsigned char file[ROOM];
        const uint32_t size = (uint32_t)next_file(&rng, file, false);
        if (fwrite(&size, sizeof size, 1, stdout) != 1 || fwrite(file, 1, size, stdout) != size) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "--print") == 0) return print_files(atol(argv[2]), strtoull(argv[3], NULL, 10));
    uint64_t rng = 0;
    long accepted = 0, indices = 0, of = 0;
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        unsigned char file[ROOM];
        accepted += try_file(file, next_file(&rng, file, false));
        if (fuzzing.number % 4 == 1 && try_file(file, respelt_file(&rng, file)))
            return printf("a number was misspelt\n"), 1;
        if (fuzzing.number % 4) continue;
        indices += try_index(file, next_file(&rng, file, true));
        of++;
    }
    const long count = fuzzing_end();
    printf("%ld files, %ld of them accepted; %ld indices, %ld of them accepted\n", count, accepted, of, indices);
    /* A parser that refuses everything, or nothing, is not being tested. */
    if (count < 1000) return 0;
    return accepted > count / 20 && accepted < count / 2 && indices > of / 10 && indices < of / 5 * 4 ? 0 : 1;
}

#endif

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

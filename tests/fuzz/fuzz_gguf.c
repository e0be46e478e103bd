/* fuzz_gguf.c - random files as GGUF: no crash, no read outside the file, one sentence for each refusal, and only
 * tensors that keep their word, each of whose rows can be read.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_gguf [count] [seed]        default: 60000 files, 3000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. On its own it writes good files, which must
 * be accepted, and spoils them: one of the numbers that it wrote becomes another of its kind (a count, a length, a
 * type, a place), two change places, bytes are flipped, ranges copied, the end is cut off.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#include "twin/cases.h"

#if defined(HAVE_CJSON)

#include "fuzz/long.h"
#include "io/gguf_blocks.h"
#include "twin/twin_gguf.h"

static volatile float sum;

/* ---- what is accepted must be true ---- */

static void check_value(const gguf_file *f, const gguf_value *v)
{
    uint64_t n = 0;
    const char *text = NULL;
    size_t size = 0;
    assert(io_utf8(v->key, strlen(v->key)) && gguf_key(f, v->key) == v);
    assert(v->at >= f->map.bytes && v->at <= f->map.bytes + f->map.size);
    if (gguf_whole(v, &n)) assert(!v->list && gguf_value_bytes(v->type) > 0);
    if (!gguf_text(v, &text, &size)) return;
    assert((const unsigned char *)text + size <= f->map.bytes + f->map.size);
    for (size_t i = 0; i < size; i++) sum += (float)text[i];
}

static void check_tensor(const gguf_file *f, int i)
{
    const gguf_tensor *t = &f->tensor[i];
    int64_t elements = 1;
    float row[4096];
    char why[IO_WHY];
    gguf_matrix m;
    for (int k = 0; k < t->rank; k++) elements *= t->shape[k];
    assert(elements == t->elements && gguf_find(f, t->name) == t && t->begin % f->alignment == 0);
    assert(i == 0 || t->begin >= f->tensor[i - 1].begin + f->tensor[i - 1].bytes);
    assert(t->data + t->bytes <= f->map.bytes + f->map.size);
    if (!gguf_matrix_open(t, &m, why)) return;
    assert(m.rows * m.columns == t->elements);
    for (int64_t r = 0; r < m.rows && m.columns <= 4096; r++) {
        gguf_row(&m, r, row);
        for (int64_t k = 0; k < m.columns; k++) sum += row[k];
    }
}

static void check_sentence(const char *why)
{
    assert(strncmp(why, "fuzz: ", 6) == 0 && strlen(why) > 12);
    for (const char *c = why; *c; c++) assert((unsigned char)*c >= 0x20);
}

static bool try_file(const unsigned char *file, size_t size, char *why)
{
    gguf_file f;
    unsigned char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    memcpy(copy, file, size);
    const bool ok = gguf_read((io_map){ copy, size, false }, "fuzz", &f, why);
    if (!ok) check_sentence(why);
    for (int i = 0; ok && i < f.keys; i++) check_value(&f, &f.key[i]);
    for (int i = 0; ok && i < f.count; i++) check_tensor(&f, i);
    gguf_close(&f);
    return ok;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char why[IO_WHY];
    return (void)try_file(data, size, why), 0;
}

#else

/* ---- good files ---- */

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

static void good_values(twin_gguf *f, uint32_t type, int count)
{
    static const char *const text[] = { "", "a", "caf\xc3\xa9", "llama", "\xf0\x9f\x90\xa6" };
    for (int i = 0; i < count; i++) {
        if (type == GGUF_VALUE_TEXT)
            twin_gguf_text(f, text[below(5)]);
        else if (type == GGUF_VALUE_BOOL)
            twin_gguf_put(f, (uint64_t)below(2), 1);
        else
            twin_gguf_put(f, cases_next(&rng), gguf_value_bytes(type));
    }
}

static void any_key(twin_gguf *f, int number)
{
    char key[32];
    uint32_t type;
    snprintf(key, sizeof key, "general.key_%d", number);
    do type = (uint32_t)below(GGUF_VALUES);
    while (type == GGUF_VALUE_LIST);
    const bool list = one_in(3);
    const int count = list ? below(6) : 1;
    twin_gguf_text(f, key);
    if (list) twin_gguf_put(f, GGUF_VALUE_LIST, 4);
    twin_gguf_put(f, type, 4);
    if (list) twin_gguf_put(f, (uint64_t)count, 8);
    good_values(f, type, count);
}

/* The first two keys are those that the reader looks at. */
static void good_key(twin_gguf *f, int number, size_t alignment)
{
    if (number == 0)
        twin_gguf_key(f, "general.alignment", GGUF_VALUE_U32, alignment, 4);
    else if (number == 1)
        twin_gguf_key(f, "split.count", 2, (uint64_t)below(2), 2);
    else
        any_key(f, number);
}

/* Returns the bytes of its data. */
static size_t good_tensor(twin_gguf *f, int number, size_t begin)
{
    uint32_t type;
    do type = (uint32_t)below(GGUF_TYPES);
    while (!gguf_type_of(type)->bytes);
    const gguf_type *t = gguf_type_of(type);
    const int axes = t->elements == 1 ? below(5) : 1 + below(4);
    uint64_t size[4] = { (uint64_t)(t->elements * (t->elements == 256 ? 1 : 1 + below(3))) };
    size_t blocks = axes ? (size_t)size[0] / (size_t)t->elements : 1;
    char name[32];
    for (int i = 1; i < axes; i++) blocks *= (size_t)(size[i] = (uint64_t)(one_in(20) ? 0 : 1 + below(3)));
    snprintf(name, sizeof name, "blk.%d.weight", number);
    twin_gguf_tensor(f, name, axes, size, type, begin);
    return blocks * (size_t)t->bytes;
}

static void good_file(twin_gguf *f)
{
    const size_t alignment = (size_t)1 << below(8);
    const int keys = one_in(5) ? 0 : 1 + below(6), tensors = below(5);
    size_t data = 0;
    twin_gguf_start(f, 2 + (uint32_t)below(2), (uint64_t)tensors, (uint64_t)keys);
    for (int i = 0; i < keys; i++) good_key(f, i, alignment);
    const size_t unit = keys ? alignment : GGUF_ALIGNMENT;
    for (int i = 0; i < tensors; i++) {
        data += (unit - data % unit) % unit;
        data += good_tensor(f, i, data);
    }
    if (tensors) twin_gguf_pad(f, unit);
    for (size_t i = 0; i < data; i++) f->bytes[f->size + i] = (unsigned char)cases_u32(&rng);
    f->size += data;
}

/* ---- spoilt ones ---- */

static void write_number(twin_gguf *f, int which, uint64_t n)
{
    for (int i = 0; i < f->number[which].width; i++)
        f->bytes[f->number[which].at + (size_t)i] = (unsigned char)(n >> 8 * i);
}

static uint64_t read_number(const twin_gguf *f, int which)
{
    return io_little(f->bytes + f->number[which].at, f->number[which].width);
}

/* A number becomes one near it, near a power of two or near what the file has; or that of another place. */
static void spoil_number(twin_gguf *f)
{
    const int which = below(f->numbers), other = below(f->numbers);
    const uint64_t old = read_number(f, which), step = (uint64_t)below(5) - 2;
    switch (below(6)) {
    case 0: write_number(f, which, old + step); break;
    case 1: write_number(f, which, (UINT64_C(1) << below(64)) + step); break;
    case 2: write_number(f, which, f->size / (1u + (unsigned)below(16)) + step); break;
    case 3: write_number(f, which, (uint64_t)below(48)); break;
    case 4: write_number(f, which, old << below(34)); break;
    default: write_number(f, which, read_number(f, other)); write_number(f, other, old);
    }
}

static void spoil(twin_gguf *f)
{
    const size_t at = (size_t)below((int)f->size), to = (size_t)below((int)f->size);
    switch (below(8)) {
    case 0: f->bytes[at] ^= (unsigned char)(1u << below(8)); break;
    case 1: f->bytes[at] = (unsigned char)cases_u32(&rng); break;
    case 2: memmove(f->bytes + to, f->bytes + at, f->size - (at > to ? at : to)); break;
    case 3: f->size = at + 1; break;
    default: spoil_number(f);
    }
}

int main(int argc, char **argv)
{
    static twin_gguf f;
    long accepted = 0, of = 0;
    char why[IO_WHY];
    fuzzing_start(argc, argv, 60000, 3000000);
    while (fuzzing_next(&rng)) {
        good_file(&f);
        if (fuzzing.number % 8 == 0) {
            if (!try_file(f.bytes, f.size, why)) return printf("a good file is refused: %s\n", why), 1;
            continue;
        }
        for (int wounds = 1 + below(3); wounds > 0; wounds--) spoil(&f);
        of++;
        accepted += try_file(f.bytes, f.size, why);
    }
    const long count = fuzzing_end();
    printf("%ld files, of %ld spoilt ones %ld accepted\n", count, of, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > of / 20 && accepted < of / 2) ? 0 : 1;
}

#endif

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

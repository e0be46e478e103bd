/* fuzz_npz.c - random bytes as .npz files: no crash, no read outside the file, one sentence for each refusal, and only
 * arrays that keep their word.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_npz [count] [seed]        default: 200000 files, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. On its own it takes archives that NumPy
 * wrote and one of our own, and spoils them: bytes flipped, ranges copied, cut short, fields exchanged for extremes.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#include "twin/cases.h"

#if defined(HAVE_ZLIB)

#include "fuzz/long.h"
#include "io/npz.h"

static volatile unsigned sum;

static void check_sentence(const char *why)
{
    assert(strncmp(why, "fuzz", 4) == 0 && strlen(why) > 12);
    for (const char *c = why; *c; c++) assert((unsigned char)*c >= 0x20);
}

static bool try_member(const npz_file *z, int i)
{
    char why[IO_WHY] = "";
    npy_array a;
    const npz_member *m = &z->member[i];
    assert(m->at < m->start && m->start <= m->end && m->end <= z->map.size);
    if (m->size > 1 << 24) return false; /* memory is not what is being tested */
    if (!npz_load(z, i, &a, why)) return check_sentence(why), false;
    const size_t bytes = (size_t)a.elements * (size_t)a.item_bytes;
    assert(bytes <= m->size && ((uintptr_t)a.data % NPY_MAX_ITEM == 0 || !bytes));
    for (size_t k = 0; k < bytes; k++) sum += ((const unsigned char *)a.data)[k];
    npy_free(&a);
    return true;
}

/* Returns how many of its arrays could be loaded; 0 for a file that is refused. */
static int try_file(const unsigned char *file, size_t size)
{
    char why[IO_WHY] = "";
    npz_file z;
    io_map map = { NULL, size, false };
    unsigned char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    int loaded = 0;
    assert(copy);
    memcpy(copy, file, size);
    map.bytes = copy;
    if (!npz_read(map, "fuzz", &z, why)) return check_sentence(why), 0;
    for (int i = 0; i < z.count; i++) {
        assert(npz_find(&z, z.member[i].name) == i);
        loaded += try_member(&z, i);
    }
    npz_close(&z);
    return loaded;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return (void)try_file(data, size), 0; }

#else

enum { ROOM = 8192, SEEDS = 5 };

typedef struct seed_file {
    unsigned char bytes[ROOM];
    size_t size;
} seed_file;

static void read_seed(seed_file *seed, const char *path)
{
    FILE *stream = fopen(path, "rb");
    assert(stream);
    seed->size = fread(seed->bytes, 1, ROOM, stream);
    fclose(stream);
    assert(seed->size > 0 && seed->size < ROOM);
}

static void make_seeds(seed_file *seed)
{
    static const char *const name[] = { "stored", "deflated", "streamed", "zip64" };
    char path[512], why[IO_WHY];
    for (int i = 0; i < SEEDS - 1; i++) {
        snprintf(path, sizeof path, "%s/%s.npz", TRN_DATA_DIR, name[i]);
        read_seed(&seed[i], path);
    }
    const int64_t shape[1] = { 4 };
    const npz_entry ours[2] = { { "x", "<f4", 1, shape, "0123456789abcdef" }, { "y", "|u1", 1, shape, "4567" } };
    snprintf(path, sizeof path, "/tmp/trn_fuzz_npz_%ld", (long)getpid());
    if (!npz_write(path, ours, 2, true, why)) fprintf(stderr, "%s\n", why), abort();
    read_seed(&seed[SEEDS - 1], path);
    unlink(path);
}

static const uint64_t extremes[] = {
    0, 1, 8, 20, 22, 28, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0xffffffffffffffff
};

/* Half of the wounds hit records that begin with "PK": between them lie only check sums. */
static size_t place(uint64_t *rng, const unsigned char *file, size_t size)
{
    size_t at = (size_t)cases_below(rng, (int)size);
    if (cases_one_in(rng, 2)) return at;
    for (size_t n = 0; n < size; n++, at = (at + 1) % size)
        if (at + 1 < size && file[at] == 'P' && file[at + 1] == 'K') break;
    at += (size_t)cases_below(rng, 60);
    return at < size ? at : size - 1;
}

static size_t spoil(uint64_t *rng, unsigned char *file, size_t size)
{
    const size_t at = place(rng, file, size), to = place(rng, file, size);
    const uint64_t extreme = extremes[cases_below(rng, (int)(sizeof extremes / sizeof extremes[0]))];
    const size_t width = (size_t)1 << cases_below(rng, 4);
    switch (cases_below(rng, 8)) {
    case 0:
    case 1: file[at] ^= (unsigned char)(1u << cases_below(rng, 8)); return size;
    case 2: file[at] = (unsigned char)cases_u32(rng); return size;
    case 3: memmove(file + to, file + at, size - (at > to ? at : to)); return size;
    case 4: return at + 1;
    case 5: memmove(file, file + at / 8, size - at / 8); return size - at / 8;
    default:
        for (size_t i = 0; i < width && at + i < size; i++) file[at + i] = (unsigned char)(extreme >> 8 * i);
        return size;
    }
}

int main(int argc, char **argv)
{
    static seed_file seed[SEEDS];
    uint64_t rng = 0;
    long accepted = 0, arrays = 0;
    make_seeds(seed);
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        unsigned char file[ROOM];
        const seed_file *from = &seed[cases_below(&rng, SEEDS)];
        size_t size = from->size;
        memcpy(file, from->bytes, size);
        for (int wounds = cases_below(&rng, 4); wounds > 0; wounds--) size = spoil(&rng, file, size);
        const int loaded = try_file(file, size);
        accepted += loaded > 0;
        arrays += loaded;
    }
    const long count = fuzzing_end();
    printf("%ld files, %ld of them with arrays, %ld arrays\n", count, accepted, arrays);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > count / 20 && accepted < count * 3 / 4) ? 0 : 1;
}

#endif

#else

int main(void)
{
    printf("zlib is not installed: archives are not read\n");
    return 0;
}

#endif

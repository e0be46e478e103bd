/* test_npz.c - archives that NumPy and Python wrote, archives that lie, and what we write ourselves.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_ZLIB)

#include "io/npz.h"
#include "scratch.h"

static npy_array load(const npz_file *z, const char *name)
{
    npy_array a;
    char why[IO_WHY] = "";
    const int i = npz_find(z, name);
    if (i < 0) fail_msg("%s has no member '%s'", z->path, name);
    if (!npz_load(z, i, &a, why)) fail_msg("%s", why);
    return a;
}

/* tests/data/README.md defines the arrays. */
static float a_at(int64_t i, int64_t j) { return (float)((7 * i + 3 * j) % 17 - 8) / 8; }

static void archives_written_by_others(void **state)
{
    static const char *const file[] = { "stored.npz", "deflated.npz", "streamed.npz", "zip64.npz" };
    (void)state;
    for (int f = 0; f < 4; f++) {
        npz_file z;
        char why[IO_WHY] = "";
        if (!npz_open(data_file(file[f]), &z, why)) fail_msg("%s", why);
        assert_int_equal(z.count, 6);
        npy_array a = load(&z, "a"), columns = load(&z, "columns"), words = load(&z, "words"), one = load(&z, "one"),
                  none = load(&z, "none"), flags = load(&z, "flags");
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 140; j++) assert_true(((const float *)a.data)[140 * i + j] == a_at(i, j));
        assert_true(columns.fortran_order && columns.stride[0] == 1 && columns.stride[1] == 4);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 6; j++) assert_true(((const float *)columns.data)[i + 4 * j] == a_at(i, j));
        for (int i = 0; i < 5; i++) assert_int_equal(((const int64_t *)words.data)[i], i - 2);
        assert_true(one.rank == 0 && *(const double *)one.data == 0.1);
        assert_true(none.rank == 2 && none.shape[1] == 7 && none.elements == 0);
        assert_string_equal(flags.type, "|b1");
        assert_memory_equal(flags.data, "\1\0\1", 3);
        npy_array *all[] = { &a, &columns, &words, &one, &none, &flags };
        for (int i = 0; i < 6; i++) npy_free(all[i]);
        assert_int_equal(npz_find(&z, "a.npy"), -1);
        npz_close(&z);
        npz_close(&z); /* does nothing */
    }
}

static void what_numpy_never_stores(void **state)
{
    npz_file z;
    npy_array a;
    char why[IO_WHY] = "";
    (void)state;
    if (!npz_open(data_file("foreign.npz"), &z, why)) fail_msg("%s", why);
    assert_int_equal(z.count, 1);
    assert_string_equal(z.member[0].name, "notes.txt");
    assert_false(z.member[0].array);
    assert_false(npz_load(&z, 0, &a, why));
    assert_non_null(strstr(why, "foreign.npz:notes.txt: it is not a .npy file"));
    npz_close(&z);
}

/* ---- archives that lie: a good one with some bytes changed ---- */

typedef struct archive {
    unsigned char bytes[8192];
    size_t size;
} archive;

static archive slurp(const char *path)
{
    archive a;
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    a.size = fread(a.bytes, 1, sizeof a.bytes, f);
    fclose(f);
    return a;
}

/* Where a record of this kind is for the n-th time. */
static size_t record(const archive *a, uint32_t kind, int n)
{
    for (size_t i = 0; i + 4 <= a->size; i++)
        if (io_little32(a->bytes + i) == kind && n-- == 0) return i;
    fail_msg("there is no record %08x", kind);
    return 0;
}

static void put(archive *a, size_t at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) a->bytes[at + (size_t)i] = (unsigned char)(value >> 8 * i);
}

/* Opens it and loads its first member; the sentence, or "" when all is well. */
static const char *sentence_of(const archive *a)
{
    static char why[IO_WHY];
    npz_file z;
    npy_array array;
    io_map map = { NULL, a->size, false };
    unsigned char *copy = malloc(a->size + 1);
    assert_non_null(copy);
    memcpy(copy, a->bytes, a->size);
    map.bytes = copy;
    why[0] = '\0';
    if (!npz_read(map, "X", &z, why)) return why;
    if (z.count && npz_load(&z, 0, &array, why)) npy_free(&array);
    npz_close(&z);
    return why;
}

static void archives_that_lie(void **state)
{
    static const struct {
        const char *file;
        uint32_t kind; /* of the first such record, at an offset, so many bytes become value */
        int offset, bytes;
        uint64_t value;
        const char *sentence;
    } row[] = {
        { "stored.npz", NPZ_END, 0, 4, 0,
          "X: it is not a .npz file, or breaks off: a zip archive's end record is missing" },
        { "stored.npz", NPZ_END, 20, 2, 1,
          "X: it is not a .npz file, or breaks off: a zip archive's end record is missing" },
        { "stored.npz", NPZ_END, 4, 2, 1, "X: it is one part of a zip archive of several" },
        { "stored.npz", NPZ_END, 8, 2, 5, "X: it is one part of a zip archive of several" },
        { "stored.npz", NPZ_END, 8, 4, 0x00070007, "X: its directory breaks off after 6 members" },
        { "stored.npz", NPZ_END, 8, 4, 0xffffffff, "X: its directory of 65535 members does not fit into it" },
        { "stored.npz", NPZ_END, 16, 4, 0xfffffff0, "X: its directory of 6 members does not fit into it" },
        { "stored.npz", NPZ_END, 12, 4, 60, "X: its directory of 6 members does not fit into it" },
        { "stored.npz", NPZ_ENTRY, 0, 4, 0, "X: its directory breaks off after 0 members" },
        { "stored.npz", NPZ_ENTRY, 28, 2, 0xffff, "X: its directory breaks off after 0 members" },
        { "stored.npz", NPZ_ENTRY, 8, 2, 1, "X: member 'a' is encrypted" },
        { "stored.npz", NPZ_ENTRY, 10, 2, 12,
          "X: member 'a' is compressed by method 12; stored and deflated ones are read" },
        { "stored.npz", NPZ_ENTRY, 42, 4, 1, "X: member 'a' is not where the directory says, or does not fit" },
        { "stored.npz", NPZ_ENTRY, 42, 4, 0xfffffffe,
          "X: member 'a' is not where the directory says, or does not fit" },
        { "stored.npz", NPZ_ENTRY, 46, 1, 'b', "X: member 'b' is not where the directory says, or does not fit" },
        { "stored.npz", NPZ_ENTRY, 46, 1, 0, "X: a member's name is not UTF-8, or memory is short" },
        { "stored.npz", NPZ_ENTRY, 46, 1, 0xff, "X: a member's name is not UTF-8, or memory is short" },
        { "stored.npz", NPZ_ENTRY, 24, 4, 7, "X: member 'a' claims 7 bytes but has 1808 to hold them" },
        { "stored.npz", NPZ_ENTRY, 20, 8, 0xfffffff0fffffff0,
          "X: member 'a' is not where the directory says, or does not fit" },
        { "stored.npz", NPZ_ENTRY, 16, 4, 1, "X: member 'a' has a header that disagrees with the directory" },
        { "stored.npz", NPZ_ENTRY, 20, 8, 0x0000071500000715,
          "X: member 'a' has a header that disagrees with the directory" },
        { "stored.npz", NPZ_ENTRY, 20, 4, 0xffffffff, "X: member 'a' has broken zip64 sizes" },
        { "stored.npz", NPZ_ENTRY, 34, 2, 1, "X: it is one part of a zip archive of several" },
        { "stored.npz", NPZ_LOCAL, 8, 2, 8, "X: member 'a' has a header that disagrees with the directory" },
        { "stored.npz", NPZ_LOCAL, 6, 2, 8,
          "X: member 'a' has no descriptor behind its data that agrees with the directory" },
        { "stored.npz", NPZ_END, 8, 4, 0x00050005, "X: its directory goes on after the 5 members that it counts" },
        { "stored.npz", NPZ_LOCAL, 0, 4, 0, "X: member 'a' is not where the directory says, or does not fit" },
        { "stored.npz", NPZ_LOCAL, 26, 2, 4, "X: member 'a' is not where the directory says, or does not fit" },
        { "deflated.npz", NPZ_ENTRY, 24, 4, 0xfffffff0,
          "X: member 'a' claims 4294967280 bytes but has 142 to hold them" },
        { "deflated.npz", NPZ_LOCAL, 64, 4, 0, "X:a: its compressed data is broken" },
        { "zip64.npz", NPZ_LOCATOR, 8, 8, 7, "X: its zip64 end record is missing" },
        { "zip64.npz", NPZ_LOCATOR, 8, 8, 0xfffffffffffffff0, "X: its zip64 end record is missing" },
        { "zip64.npz", NPZ_END64, 32, 8, 0xffffffffffffffff, "X: it is one part of a zip archive of several" },
        { "zip64.npz", NPZ_END64, 48, 8, 0xfffffffffffffff0, "X: its end record and that of zip64 disagree" },
        { "zip64.npz", NPZ_END64, 40, 8, 0xfffffffffffffff0, "X: its end record and that of zip64 disagree" },
        { "zip64.npz", NPZ_END64, 4, 8, 45, "X: its zip64 end record is missing" },
        { "zip64.npz", NPZ_LOCATOR, 16, 4, 2, "X: it is one part of a zip archive of several" },
        { "zip64.npz", NPZ_ENTRY, 46 + 5 + 2, 2, 7, "X: member 'a' has broken zip64 sizes" },
        { "zip64.npz", NPZ_ENTRY, 46 + 5 + 2, 2, 0xffff, "X: member 'a' has broken zip64 sizes" },
        { "zip64.npz", NPZ_ENTRY, 46 + 5 + 4, 8, 0xfffffffffffffff0,
          "X: member 'a' claims 18446744073709551600 bytes but has 1808 to hold them" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        archive a = slurp(data_file(row[r].file));
        put(&a, record(&a, row[r].kind, 0) + (size_t)row[r].offset, row[r].value, row[r].bytes);
        assert_string_equal(sentence_of(&a), row[r].sentence);
    }
}

/* The directory's lie, repeated in the member's header. */
static void archives_that_lie_twice(void **state)
{
    static const struct {
        const char *file;
        int entry, local, bytes; /* at these offsets of the first entry and the first local header */
        uint64_t value;
        const char *sentence;
    } row[] = {
        { "stored.npz", 16, 14, 4, 1, "X:a: its check sum is wrong: the file is damaged" },
        { "stored.npz", 20, 18, 8, 0x0000071500000715, "X: members 'a' and 'columns' overlap" },
        { "deflated.npz", 24, 22, 4, 1807, "X:a: its shape needs 1680 bytes of data but the file holds 1679" },
        { "deflated.npz", 24, 22, 4, 1809, "X:a: its shape needs 1680 bytes of data but the file holds 1681" },
        { "deflated.npz", 24, 22, 4, 140000, "X:a: its shape needs 1680 bytes of data but the file holds 139872" },
        { "deflated.npz", 20, 18, 4, 141, "X:a: its compressed data is broken" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        archive a = slurp(data_file(row[r].file));
        put(&a, record(&a, NPZ_ENTRY, 0) + (size_t)row[r].entry, row[r].value, row[r].bytes);
        put(&a, record(&a, NPZ_LOCAL, 0) + (size_t)row[r].local, row[r].value, row[r].bytes);
        assert_string_equal(sentence_of(&a), row[r].sentence);
    }
}

static void archives_that_break_off(void **state)
{
    const archive whole = slurp(data_file("zip64.npz"));
    (void)state;
    assert_string_equal(sentence_of(&whole), "");
    for (size_t size = 0; size < whole.size; size++) {
        archive a = whole;
        a.size = size;
        assert_string_equal(sentence_of(&a),
                            "X: it is not a .npz file, or breaks off: a zip archive's end record is missing");
    }
}

/* Two entries with one name, of the same length, at different places. */
static void two_of_a_name(void **state)
{
    archive a = slurp(data_file("stored.npz")); /* a, columns, words, one, none, flags: the last are 4, 4 and 5 long */
    (void)state;
    memcpy(a.bytes + record(&a, NPZ_ENTRY, 5) + 46, "words", 5);
    memcpy(a.bytes + record(&a, NPZ_LOCAL, 5) + 30, "words", 5);
    assert_string_equal(sentence_of(&a), "X: it has two members called 'words'");
}

/* ---- writing ---- */

static void round_trips(void **state)
{
    static float x[300][40];
    static const int64_t shape[2] = { 300, 40 }, few[1] = { 3 }, no[2] = { 0, 5 };
    const npz_entry entry[] = { { "x", "<f4", 2, shape, x },
                                { "codes", "|u1", 1, few, "abc" },
                                { "layer.0/w\xc3\xa4", "<f4", 0, NULL, x },
                                { "none", "<i8", 2, no, x } };
    char path[64], why[IO_WHY] = "";
    (void)state;
    snprintf(path, sizeof path, "/tmp/trn_npz_%ld", (long)getpid());
    for (int i = 0; i < 300; i++)
        for (int j = 0; j < 40; j++) x[i][j] = (float)(i * j);
    for (int deflated = 0; deflated < 2; deflated++) {
        npz_file z;
        if (!npz_write(path, entry, 4, deflated, why) || !npz_open(path, &z, why)) fail_msg("%s", why);
        assert_int_equal(z.count, 4);
        assert_true(deflated == (z.map.size < sizeof x));
        for (int i = 0; i < 4; i++) {
            npy_array a = load(&z, entry[i].name);
            assert_string_equal(a.type, entry[i].type);
            assert_int_equal(a.rank, entry[i].rank);
            for (int k = 0; k < a.rank; k++) assert_int_equal(a.shape[k], entry[i].shape[k]);
            assert_memory_equal(a.data, entry[i].data, (size_t)a.elements * (size_t)a.item_bytes);
            npy_free(&a);
        }
        npz_close(&z);
    }
    if (!npz_write(path, NULL, 0, false, why)) fail_msg("%s", why);
    npz_file z;
    assert_true(npz_open(path, &z, why) && z.count == 0);
    npz_close(&z);
    unlink(path);
    assert_false(npz_write("/nonexistent/x.npz", entry, 4, true, why));
    assert_string_equal(why, "/nonexistent/x.npz: it cannot be created (No such file or directory)");
}

/* Other readers are asked where they are installed. */
static void numpy_reads_ours(void **state)
{
    static const int64_t shape[2] = { 2, 3 };
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    const npz_entry entry[] = { { "x", "<f4", 2, shape, x }, { "y/\xc3\xa4", "|u1", 1, shape, "ab" } };
    char path[64], command[512], why[IO_WHY] = "";
    (void)state;
    const char *python = "/usr/bin/python3"; /* the distribution's, which has its NumPy, before another of that name */
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) python = "python3";
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null || python3 -c 'import numpy' 2>/dev/null") != 0) {
        print_message("NumPy is not installed: nobody else reads our archives\n");
        return;
    }
    snprintf(path, sizeof path, "/tmp/trn_npz_%ld.npz", (long)getpid());
    for (int deflated = 0; deflated < 2; deflated++) {
        if (!npz_write(path, entry, 2, deflated, why)) fail_msg("%s", why);
        snprintf(command, sizeof command,
                 "%s -c \"import numpy, zipfile; z = numpy.load('%s'); assert zipfile.ZipFile('%s').testzip() is None; "
                 "assert z['x'].tolist() == [[1, 2, 3], [4, 5, 6]] and bytes(z['y/\xc3\xa4']) == b'ab'\"",
                 python, path, path);
        assert_int_equal(system(command), 0);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_written_by_others),
        cmocka_unit_test(what_numpy_never_stores),
        cmocka_unit_test(archives_that_lie),
        cmocka_unit_test(archives_that_lie_twice),
        cmocka_unit_test(archives_that_break_off),
        cmocka_unit_test(two_of_a_name),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(numpy_reads_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("zlib is not installed: archives are not read\n");
    return 0;
}

#endif

/* test_npy.c - files that NumPy wrote, files that it would not have, and a round trip.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "io/npy.h"
#include "scratch.h"
#include "twin/cases.h"

/* The elements as tests/data/README.md defines them. */
static double a_at(int64_t i, int64_t j) { return (double)((7 * i + 3 * j) % 17 - 8) / 8; }
static double b_at(int64_t i, int64_t j) { return (double)((5 * i + 11 * j) % 13 - 6) / 4; }

static double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent ? 1 + fraction / 1024.0 : fraction / 1024.0;
    for (int e = exponent ? exponent : 1; e < 15; e++) x /= 2;
    for (int e = exponent; e > 15; e--) x *= 2;
    return h & 0x8000 ? -x : x;
}

static double element(const npy_array *a, int64_t i, int64_t j)
{
    const char *at = (const char *)a->data + (i * a->stride[0] + j * a->stride[1]) * a->item_bytes;
    uint16_t half;
    float single;
    double whole;
    memcpy(&half, at, sizeof half);
    if (!strcmp(a->type, "<f2")) return half_value(half);
    if (!strcmp(a->type, "<u2")) return (double)cases_float_of((uint32_t)half << 16);
    memcpy(&single, at, sizeof single);
    if (!strcmp(a->type, "<f4")) return (double)single;
    memcpy(&whole, at, sizeof whole);
    return whole;
}

static void matrices_written_by_numpy(void **state)
{
    static const struct {
        const char *name, *type;
        int rows, columns;
        bool fortran;
        double (*at)(int64_t, int64_t);
    } row[] = {
        { "a_f4.npy", "<f4", 9, 140, false, a_at },         { "b_f4.npy", "<f4", 140, 10, false, b_at },
        { "b_f4_fortran.npy", "<f4", 140, 10, true, b_at }, { "a_f2.npy", "<f2", 9, 140, false, a_at },
        { "b_f2.npy", "<f2", 140, 10, false, b_at },        { "a_bf16.npy", "<u2", 9, 140, false, a_at },
        { "b_bf16.npy", "<u2", 140, 10, false, b_at },      { "a_f8.npy", "<f8", 2, 140, false, a_at },
        { "version_2.npy", "<f4", 3, 140, false, a_at },    { "version_3.npy", "<f4", 3, 140, false, a_at },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        npy_array a;
        char why[NPY_WHY] = "";
        if (!npy_read(data_file(row[r].name), &a, why)) fail_msg("%s", why);
        assert_string_equal(a.type, row[r].type);
        assert_int_equal(a.rank, 2);
        assert_int_equal(a.shape[0], row[r].rows);
        assert_int_equal(a.shape[1], row[r].columns);
        assert_int_equal(a.fortran_order, row[r].fortran);
        for (int i = 0; i < row[r].rows; i++)
            for (int j = 0; j < row[r].columns; j++)
                if (element(&a, i, j) != row[r].at(i, j)) fail_msg("%s [%d, %d]", row[r].name, i, j);
        npy_free(&a);
    }
}

static void other_ranks(void **state)
{
    npy_array a;
    char why[NPY_WHY];
    (void)state;
    assert_true(npy_read(data_file("rank3.npy"), &a, why));
    assert_int_equal(a.rank, 3);
    assert_int_equal(a.stride[0], 12);
    assert_int_equal(a.stride[1], 4);
    assert_int_equal(a.stride[2], 1);
    npy_free(&a);
    assert_true(npy_read(data_file("scalar.npy"), &a, why));
    assert_int_equal(a.rank, 0);
    assert_int_equal(a.elements, 1);
    npy_free(&a);
    assert_true(npy_read(data_file("vector.npy"), &a, why));
    assert_string_equal(a.type, "|u1");
    assert_int_equal(((const uint8_t *)a.data)[4], 4);
    npy_free(&a);
    assert_true(npy_read(data_file("empty.npy"), &a, why));
    assert_int_equal(a.elements, 0);
    assert_int_equal(a.shape[1], 140);
    npy_free(&a);
}

/* ---- bad files: built here, header by header ---- */

static bool parse(int version, const char *dictionary, size_t data_bytes, npy_array *a, char *why)
{
    static unsigned char file[4096];
    const size_t n = strlen(dictionary), start = version > 1 ? 12 : 10;
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)n;
    file[9] = (unsigned char)(n >> 8);
    memcpy(file + start, dictionary, n);
    return npy_parse(file, start + n + data_bytes, "X.npy", a, why);
}

static void bad_headers(void **state)
{
    static const struct {
        const char *dictionary;
        size_t data_bytes;
        const char *sentence;
    } row[] = {
        { "  ", 0, "X.npy: its header does not begin with '{'" },
        { "{}", 0, "X.npy: its header lacks 'descr'" },
        { "{'descr': '<f4'}", 0, "X.npy: its header lacks 'fortran_order'" },
        { "{'descr': '<f4', 'fortran_order': False}", 0, "X.npy: its header lacks 'shape'" },
        { "{'descr': '<f4', 'descr': '<f4'}", 0, "X.npy: its header has a second entry 'descr'" },
        { "{'colour': '<f4'}", 0, "X.npy: its header has an unknown entry 'colour'" },
        { "{'descr': '<f4' 'fortran_order': False}", 0, "X.npy: its header breaks off or lacks a comma" },
        { "{'descr': '<f4', 'fortran_order': Maybe}", 0, "X.npy: its 'fortran_order' is neither True nor False" },
        { "{'descr': [('x', '<f4')]}", 0, "X.npy: its 'descr' is not the name of a plain number type such as '<f4'" },
        { "{'shape': (3), 'descr': '<f4'}", 0, "X.npy: its 'shape' is not a tuple of at most 8 sizes" },
        { "{'shape': (03,), 'descr': '<f4'}", 0, "X.npy: its 'shape' is not a tuple of at most 8 sizes" },
        { "{'shape': (-3,), 'descr': '<f4'}", 0, "X.npy: its 'shape' is not a tuple of at most 8 sizes" },
        { "{'shape': (1,1,1,1,1,1,1,1,1)}", 0, "X.npy: its 'shape' is not a tuple of at most 8 sizes" },
        { "{'shape': (99999999999999999999,)}", 0, "X.npy: its 'shape' is not a tuple of at most 8 sizes" },
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4,
          "X.npy: its type '>f4' is big-endian; store it with .astype('<f4')" },
        { "{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", 20,
          "X.npy: its type '<U5' is not a plain number" },
        { "{'descr': '|V4', 'fortran_order': False, 'shape': (1,)}", 4, "X.npy: its type '|V4' is not a plain number" },
        { "{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", 4, "X.npy: its type '<f' is not a plain number" },
        { "{'descr': '<f99', 'fortran_order': False, 'shape': (1,)}", 4,
          "X.npy: its type '<f99' is not a plain number" },
        { "{'descr': '', 'fortran_order': False, 'shape': (1,)}", 4, "X.npy: its type '' is not a plain number" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7,
          "X.npy: its shape needs 8 bytes of data but the file holds 7" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9,
          "X.npy: its shape needs 8 bytes of data but the file holds 9" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 4,
          "X.npy: its shape describes more than 2^62 bytes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}", 0,
          "X.npy: its shape describes more than 2^62 bytes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4,
          "X.npy: its header goes on after the closing '}'" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++)
        for (int version = 1; version <= 3; version++) {
            npy_array a;
            char why[NPY_WHY] = "nothing was said";
            assert_false(parse(version, row[r].dictionary, row[r].data_bytes, &a, why));
            assert_string_equal(why, row[r].sentence);
        }
}

static void good_headers_of_other_writers(void **state)
{
    npy_array a;
    char why[NPY_WHY];
    (void)state;
    assert_true(parse(1, "{\"shape\":(2L,3L,),\"fortran_order\":True,\"descr\":\"<f4\"}\n", 24, &a, why));
    assert_int_equal(a.stride[0], 1);
    assert_int_equal(a.stride[1], 2);
    assert_true(parse(1, "{ 'descr' : '|i1' , 'fortran_order' : False , 'shape' : ( ) , }   \n", 1, &a, why));
    assert_int_equal(a.elements, 1);
    assert_true(parse(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }\n", 6, &a, why)); /* bfloat16 */
    assert_int_equal(a.item_bytes, 2);
    assert_true(parse(1, "{'descr': '|V1', 'fortran_order': False, 'shape': (3,), }\n", 3, &a, why)); /* float8 */
    assert_int_equal(a.item_bytes, 1);
}

static void files_that_are_none(void **state)
{
    npy_array a;
    char why[NPY_WHY];
    static const unsigned char unknown_version[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 9, 1, 0, 0, 0, 0 };
    static const unsigned char long_header[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0xff };
    static const unsigned char short_file[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 100, 0, '{', '}' };
    (void)state;
    assert_false(npy_parse("PK\3\4 this is a zip", 19, "A.npz", &a, why));
    assert_string_equal(why, "A.npz: it is not a .npy file");
    assert_false(npy_parse("", 0, "A.npy", &a, why));
    assert_false(npy_parse(unknown_version, 8, "A.npy", &a, why));
    assert_string_equal(why, "A.npy: it ends inside the header, after 8 bytes");
    assert_false(npy_parse(unknown_version, sizeof unknown_version, "A.npy", &a, why));
    assert_string_equal(why, "A.npy: its format version 9.1 is unknown (1.0, 2.0 and 3.0 are read)");
    assert_false(npy_parse(long_header, sizeof long_header, "A.npy", &a, why));
    assert_string_equal(why, "A.npy: its header claims 4294967295 bytes, more than 1 MiB");
    assert_false(npy_parse(short_file, sizeof short_file, "A.npy", &a, why));
    assert_string_equal(why, "A.npy: its header claims 100 bytes but the file ends after 2");
    assert_false(npy_read("/nonexistent/A.npy", &a, why));
    assert_string_equal(why, "/nonexistent/A.npy: it cannot be opened (No such file or directory)");
    assert_null(a.block);
}

/* What is written comes back, and its data begins where NumPy puts it. */
static void round_trips(void **state)
{
    char path[] = "/tmp/trn_npy_XXXXXX", why[NPY_WHY] = "";
    const int descriptor = mkstemp(path);
    const int64_t shape[3] = { 2, 3, 5 };
    float x[30];
    (void)state;
    assert_true(descriptor >= 0);
    close(descriptor);
    for (int i = 0; i < 30; i++) x[i] = (float)i / 3;
    for (int rank = 0; rank <= 3; rank++) {
        npy_array a;
        if (!npy_write(path, "<f4", rank, shape + 3 - rank, x, why) || !npy_read(path, &a, why)) fail_msg("%s", why);
        assert_int_equal(a.rank, rank);
        assert_memory_equal(a.data, x, (size_t)a.elements * sizeof x[0]);
        assert_int_equal(((const char *)a.data - (const char *)a.block) % 64, 0);
        npy_free(&a);
    }
    unlink(path);
    assert_false(npy_write("/nonexistent/C.npy", "<f4", 1, shape, x, why));
    assert_string_equal(why, "/nonexistent/C.npy: it cannot be created (No such file or directory)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_written_by_numpy),
        cmocka_unit_test(other_ranks),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(good_headers_of_other_writers),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_io.c - what all readers and writers of examples/tools/common/io share: mapped files, files that appear whole or
 * not at all, and arrays from whatever holds them.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON) && defined(HAVE_ZLIB)

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "io/arrays.h"
#include "io/together.h"
#include "scratch.h"

static volatile unsigned sum;
static void assert_file(const char *path, const char *text)
{
    char found[512] = "";
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is missing", path);
    const size_t n = fread(found, 1, sizeof found - 1, f);
    found[n] = '\0';
    fclose(f);
    assert_string_equal(found, text);
}

static int files_in(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* ---- io.h ---- */

static void sentences(void **state)
{
    char why[IO_WHY], longer[2 * IO_WHY];
    (void)state;
    assert_false(io_fail(why, "a\x1b[2Jb", "it is %s", "x\r\ny\x7f"));
    assert_string_equal(why, "a\\x1b[2Jb: it is x\\r\\ny\\x7f");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_false(io_fail(why, longer, "%s", longer));
    assert_int_equal(strlen(why), IO_WHY - 1);
}

static void sizes_that_multiply(void **state)
{
    uint64_t p;
    (void)state;
    assert_true(io_multiply(0, UINT64_MAX, &p) && p == 0);
    assert_true(io_multiply(UINT64_C(1) << 31, UINT64_C(1) << 31, &p) && p == UINT64_C(1) << 62);
    assert_false(io_multiply((UINT64_C(1) << 31) + 1, UINT64_C(1) << 31, &p));
    assert_false(io_multiply(UINT64_C(1) << 32, UINT64_C(1) << 32, &p));
    assert_false(io_multiply(UINT64_MAX, 2, &p));
}

/* Every character there is, and every pair and triple of bytes against the definition. */
static bool plain_utf8(const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        const unsigned char c = s[i];
        const size_t more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : 9;
        if (more > 3 || i + more >= n) return false;
        uint32_t x = more == 0 ? c : c & (0x3fu >> more);
        for (size_t k = 1; k <= more; k++) {
            if (s[i + k] >> 6 != 2) return false;
            x = x << 6 | (s[i + k] & 0x3f);
        }
        static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
        if (x < least[more] || x > 0x10ffff || (x >= 0xd800 && x <= 0xdfff)) return false;
        i += more + 1;
    }
    return true;
}

static void what_is_utf8(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1u << 24; i++) {
        const unsigned char s[4] = { (unsigned char)(i >> 16), (unsigned char)(i >> 8), (unsigned char)i, 0x90 };
        for (size_t n = i & 0xff ? 3 : 1; n <= 4; n++)
            if (io_utf8(s, n) != plain_utf8(s, n)) fail_msg("%02x %02x %02x, %zu bytes", s[0], s[1], s[2], n);
    }
}

/* ---- mapped.h ---- */

static void mapped_files(void **state)
{
    io_map map;
    char why[IO_WHY] = "";
    (void)state;
    put_file(scratch("x"), "hello");
    if (!io_map_open(scratch("x"), &map, why)) fail_msg("%s", why);
    assert_true(map.mapped && map.size == 5);
    assert_memory_equal(map.bytes, "hello", 5);
    io_map_done(&map, 0, 5);
    assert_memory_equal(map.bytes, "hello", 5); /* the system reads it once more */
    io_map_done(&map, 3, 9);                    /* beyond the end: nothing */
    io_map_close(&map);
    io_map_close(&map);
    put_file(scratch("empty"), "");
    assert_true(io_map_open(scratch("empty"), &map, why) && map.size == 0 && map.bytes);
    io_map_close(&map);
    assert_true(io_map_open("/proc/self/stat", &map, why) && map.size > 10 &&
                !map.mapped); /* its size is said to be 0 */
    io_map_close(&map);
    assert_false(io_map_open(folder, &map, why));
    assert_non_null(strstr(why, "it is a directory"));
    assert_false(io_map_open(scratch("nothing"), &map, why));
}

static void a_pipe(void **state)
{
    io_map map;
    char why[IO_WHY] = "", command[200];
    (void)state;
    assert_int_equal(mkfifo(scratch("p"), 0600), 0);
    snprintf(command, sizeof command, "(head -c 300000 /dev/zero | tr '\\0' x > '%s') &", scratch("p"));
    assert_int_equal(system(command), 0);
    if (!io_map_open(scratch("p"), &map, why)) fail_msg("%s", why);
    assert_int_equal(map.size, 300000);
    assert_int_equal(map.bytes[299999], 'x');
    io_map_close(&map);
}

/* Runs part(argument) in a process of its own; what waitpid tells. Its stderr is in "err". */
static int in_a_child(void (*part)(const char *), const char *argument)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen(scratch("err"), "w", stderr)) _exit(99);
        part(argument);
        _exit(98); /* without what exit() does */
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void read_a_shrinking_file(const char *path)
{
    io_map map;
    io_output out;
    char why[IO_WHY];
    signal(SIGBUS, SIG_DFL); /* a sanitizer's handler would come first */
    if (!io_map_open(path, &map, why) || !io_output_open(scratch("out"), &out, why)) _exit(97);
    if (truncate(path, 10) != 0) _exit(96);
    for (size_t i = 0; i < map.size; i += 512) sum += map.bytes[i];
}

/* Of the largest pages there are, more than one. */
static void put_pages(const char *path)
{
    char zeros[2 * 65536 + 1];
    memset(zeros, '0', sizeof zeros - 1);
    zeros[sizeof zeros - 1] = '\0';
    put_file(path, zeros);
}

static void a_file_that_shrinks(void **state)
{
    char expected[300];
    (void)state;
    put_pages(scratch("x"));
    const int status = in_a_child(read_a_shrinking_file, scratch("x"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    snprintf(expected, sizeof expected, "%s/x: it became shorter while it was being read\n", folder);
    assert_file(scratch("err"), expected);
    assert_int_equal(files_in(folder), 2); /* x and err */
}

static void own_handler(int number)
{
    (void)number;
    _exit(0);
}

static void read_with_a_handler(const char *path)
{
    io_map map;
    char why[IO_WHY];
    signal(SIGBUS, own_handler);
    if (!io_map_open(path, &map, why) || truncate(path, 10) != 0) _exit(97);
    for (size_t i = 0; i < map.size; i += 512) sum += map.bytes[i];
}

/* A program's own handler is left to it. */
static void a_handler_that_is_there_stays(void **state)
{
    (void)state;
    put_pages(scratch("x"));
    const int status = in_a_child(read_with_a_handler, scratch("x"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A gigabyte (of holes) passes through a few megabytes. */
static void read_a_large_file(const char *path)
{
    enum { PIECE = 1 << 20 };
    io_map map;
    char why[IO_WHY];
    struct rusage before, after;
    if (!io_map_open(path, &map, why) || getrusage(RUSAGE_SELF, &before) != 0) _exit(97);
    for (size_t at = 0; at < map.size; at += PIECE) {
        for (size_t i = 0; i < PIECE; i += 512) sum += map.bytes[at + i];
        io_map_done(&map, at, PIECE);
    }
    getrusage(RUSAGE_SELF, &after);
    _exit(after.ru_maxrss - before.ru_maxrss < 16 * 1024 ? 0 : 1);
}

static void constant_memory(void **state)
{
    (void)state;
    put_file(scratch("x"), "");
    assert_int_equal(truncate(scratch("x"), 1 << 28), 0);
    const int status = in_a_child(read_a_large_file, scratch("x"));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- output.h ---- */

static void replaced_when_complete(void **state)
{
    io_output out;
    struct stat s;
    char why[IO_WHY] = "";
    (void)state;
    put_file(scratch("x"), "before");
    assert_int_equal(chmod(scratch("x"), 0640), 0);
    if (!io_output_open(scratch("x"), &out, why) || !io_output_write(&out, "after", 5, why)) fail_msg("%s", why);
    assert_file(scratch("x"), "before");
    assert_int_equal(files_in(folder), 2);
    if (!io_output_commit(&out, why)) fail_msg("%s", why);
    assert_file(scratch("x"), "after");
    assert_true(stat(scratch("x"), &s) == 0 && (s.st_mode & 0777) == 0640);
    assert_int_equal(files_in(folder), 1);
    if (!io_output_open(scratch("x"), &out, why)) fail_msg("%s", why);
    io_output_discard(&out);
    io_output_discard(&out); /* does nothing */
    assert_file(scratch("x"), "after");
    assert_int_equal(files_in(folder), 1);
    assert_false(io_output_write(&out, "x", 1, why));
    assert_false(io_output_commit(&out, why));
}

static void links_and_devices(void **state)
{
    io_output out;
    struct stat s;
    char why[IO_WHY] = "";
    (void)state;
    assert_int_equal(mkdir(scratch("d"), 0700), 0);
    put_file(scratch("d/x"), "before");
    assert_int_equal(symlink("d/y", scratch("link")), 0);
    assert_int_equal(symlink("x", scratch("d/y")), 0);
    if (!io_output_open(scratch("link"), &out, why) || !io_output_write(&out, "after", 5, why) ||
        !io_output_commit(&out, why))
        fail_msg("%s", why);
    assert_true(lstat(scratch("link"), &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat(scratch("d/y"), &s) == 0 && S_ISLNK(s.st_mode));
    assert_file(scratch("d/x"), "after");
    if (!io_output_open("/dev/null", &out, why) || !io_output_write(&out, "x", 1, why) || !io_output_commit(&out, why))
        fail_msg("%s", why);
    assert_true(stat("/dev/null", &s) == 0 && S_ISCHR(s.st_mode));
    assert_false(io_output_open(folder, &out, why));
    assert_non_null(strstr(why, "it cannot be created (Is a directory)"));
    assert_false(io_output_open(scratch("none/x"), &out, why));
    assert_non_null(strstr(why, "none/x: it cannot be created (No such file or directory)"));
    assert_false(io_output_open("", &out, why));
}

static void fill_the_disk(const char *path)
{
    static char block[1 << 16];
    io_output out;
    char why[IO_WHY];
    const struct rlimit limit = { 1 << 18, 1 << 18 };
    signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || !io_output_open(path, &out, why)) _exit(97);
    for (int i = 0; i < 100; i++)
        if (!io_output_write(&out, block, sizeof block, why))
            _exit(strstr(why, "it cannot be written (File too large)") ? 0 : 1);
}

static void a_full_disk(void **state)
{
    io_output out;
    char why[IO_WHY] = "";
    (void)state;
    const int status = in_a_child(fill_the_disk, scratch("x"));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(files_in(folder), 1);               /* err */
    if (!io_output_open("/dev/full", &out, why)) return; /* not a Linux */
    assert_true(io_output_write(&out, "x", 1, why));
    assert_false(io_output_commit(&out, why));
    assert_string_equal(why, "/dev/full: it cannot be written (No space left on device)");
}

/* ---- together.h ---- */

static void open_three(io_output out[3])
{
    static const char *const name[] = { "x", "new", "z" };
    char why[IO_WHY];
    put_file(scratch("x"), "before");
    put_file(scratch("z"), "before");
    for (int i = 0; i < 3; i++)
        if (!io_output_open(scratch(name[i]), &out[i], why) || !io_output_write(&out[i], "after", 5, why))
            fail_msg("%s", why);
}

static void all_appear(void **state)
{
    io_output out[3], *file[] = { &out[0], NULL, &out[1], &out[2] };
    char why[IO_WHY];
    (void)state;
    open_three(out);
    if (!io_show_together(file, 4, NULL, why) || why[0]) fail_msg("%s", why);
    assert_file(scratch("x"), "after");
    assert_file(scratch("new"), "after");
    assert_file(scratch("z"), "after");
    assert_int_equal(files_in(folder), 3);
}

/* The last one cannot: a directory has come into its place. */
static void or_none_does(void **state)
{
    io_output out[3], *file[] = { &out[0], &out[1], &out[2] };
    char why[IO_WHY];
    (void)state;
    open_three(out);
    assert_int_equal(unlink(scratch("z")), 0);
    assert_int_equal(mkdir(scratch("z"), 0700), 0);
    assert_false(io_show_together(file, 3, NULL, why));
    assert_non_null(strstr(why, "/z: it cannot be replaced (Is a directory)"));
    for (int i = 0; i < 3; i++) io_output_discard(&out[i]);
    assert_file(scratch("x"), "before");
    assert_int_not_equal(access(scratch("new"), F_OK), 0);
    assert_int_equal(files_in(folder), 2);
}

static void open_two(void)
{
    static io_output out[2];
    char why[IO_WHY];
    if (!io_output_open(scratch("x"), &out[0], why) || !io_output_open(scratch("y"), &out[1], why) ||
        !io_output_write(&out[0], "half", 4, why) || files_in(folder) != 3)
        _exit(97);
}

static void die_of(const char *signal_number)
{
    open_two();
    raise(atoi(signal_number));
}

static void leave(const char *unused)
{
    (void)unused;
    open_two();
    exit(3);
}

static void ignore_and_live(const char *unused)
{
    (void)unused;
    signal(SIGHUP, SIG_IGN); /* as nohup does */
    open_two();
    raise(SIGHUP);
    if (files_in(folder) == 3) exit(4);
}

static void fork_again(const char *unused)
{
    (void)unused;
    open_two();
    int status;
    const pid_t child = fork();
    if (child == 0) exit(0);
    if (child > 0 && waitpid(child, &status, 0) == child && files_in(folder) == 3)
        exit(5); /* the child left them alone */
}

static void interrupted(void **state)
{
    static const char *const number[] = { "1", "2", "3", "13", "15" }; /* HUP INT QUIT PIPE TERM */
    (void)state;
    for (int i = 0; i < 5; i++) {
        const int status = in_a_child(die_of, number[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == atoi(number[i]));
        assert_int_equal(files_in(folder), 1); /* err */
    }
    static void (*const part[])(const char *) = { leave, ignore_and_live, fork_again };
    for (int i = 0; i < 3; i++) {
        const int status = in_a_child(part[i], "");
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 3 + i);
        assert_int_equal(files_in(folder), 1);
    }
}

static void npy_whole_or_not(void **state)
{
    static const int64_t shape[2] = { 2, 2 };
    const float x[4] = { 1, 2, 3, 4 };
    npy_array a;
    char why[IO_WHY] = "";
    (void)state;
    if (!npy_replace(scratch("x.npy"), "<f4", 2, shape, x, why) || !npy_read(scratch("x.npy"), &a, why))
        fail_msg("%s", why);
    assert_memory_equal(a.data, x, sizeof x);
    npy_free(&a);
    assert_false(npy_replace("/nonexistent/x.npy", "<f4", 2, shape, x, why));
}

/* ---- arrays.h ---- */

static io_arrays opened(const char *name)
{
    char path[512], why[IO_WHY] = "";
    io_arrays a;
    snprintf(path, sizeof path, "%s/%s", name[0] == '/' ? "" : TRN_DATA_DIR, name);
    if (!io_arrays_open(path, &a, why)) fail_msg("%s", why);
    return a;
}

static float a_at(int64_t i, int64_t j) { return (float)((7 * i + 3 * j) % 17 - 8) / 8; }

/* The first three rows of one matrix, from everything that holds it. */
static void one_matrix_in_many_files(void **state)
{
    static const struct {
        const char *file, *array;
        int64_t columns;
        const char *type;
        trn_format as;
    } row[] = {
        { "a_f4.npy", "", 140, "F32", TRN_FORMAT_UNSET },
        { "a_f2.npy", "", 140, "F16", TRN_FORMAT_UNSET },
        { "a_bf16.npy", "", 140, "U16", TRN_BF16 },
        { "version_3.npy", "", 140, "F32", TRN_FORMAT_UNSET },
        { "stored.npz", "a", 140, "F32", TRN_FORMAT_UNSET },
        { "deflated.npz", "columns", 6, "F32", TRN_FORMAT_UNSET },
        { "official.safetensors", "grid.f32", 4, "F32", TRN_FORMAT_UNSET },
        { "official.safetensors", "grid.bf16", 4, "BF16", TRN_FORMAT_UNSET },
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        io_arrays a = opened(row[r].file);
        float value[3 * 140];
        char why[IO_WHY] = "";
        const io_array *found = io_arrays_find(&a, row[r].array);
        assert_non_null(found);
        io_array x = *found;
        assert_string_equal(x.type, row[r].type);
        if (row[r].as && !io_array_as(&x, row[r].as, why)) fail_msg("%s", why);
        if (!io_array_f32(&x, 0, 3 * row[r].columns, value, why)) fail_msg("%s", why);
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < row[r].columns; j++) assert_true(value[i * row[r].columns + j] == a_at(i, j));
        const trn_tensor view = io_array_view(&x);
        float again[3 * 140];
        trn_tensor to = trn_tensor_2d(TRN_F32, again, 3, row[r].columns);
        assert_int_equal(trn_convert(&(trn_convert_args){ .dst = to, .src = trn_tensor_slice(view, 0, 0, 3) }), TRN_OK);
        assert_memory_equal(again, value, (size_t)(3 * row[r].columns) * sizeof again[0]);
        io_arrays_close(&a);
        io_arrays_close(&a); /* does nothing */
    }
}

static void values_of_every_type(void **state)
{
    static const struct {
        const char *name;
        int count;
        float value[16];
    } row[] = {
        { "half", 4, { 1, -2, 0x1p-24f, 65504 } },
        { "double", 2, { 0.1f, -INFINITY } },
        { "signed", 2, { -1, 0x1p40f } },
        { "unsigned", 1, { 0x1p64f } },
        { "i32", 2, { -5, 7 } },
        { "i16", 2, { -5, 7 } },
        { "i8", 2, { -5, 7 } },
        { "u32", 1, { 4e9f } },
        { "u16", 1, { 65535 } },
        { "u8", 3, { 0, 128, 255 } },
        { "bool", 3, { 0, 1, 1 } },
        { "scale", 4, { 0x1p-127f, 0.5f, 1, 0x1p127f } },
        { "fp6.e2m3", 8, { 0, 0.125f, 0.25f, 0.375f, 0.5f, 0.625f, 0.75f, 0.875f } },
        { "fp6.e3m2", 4, { 0, 0.0625f, 0.125f, 0.1875f } },
        { "fp4", 16, { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6 } },
        { "scalar", 1, { 2.5f } },
        { "empty", 0, { 0 } },
    };
    io_arrays a = opened("official.safetensors");
    char why[IO_WHY] = "";
    float value[16];
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        const io_array *x = io_arrays_find(&a, row[r].name);
        assert_non_null(x);
        assert_int_equal(x->elements, row[r].count);
        for (int first = 0; first <= row[r].count; first++) /* from every place to every other */
            for (int n = 0; first + n <= row[r].count; n++) {
                if (!io_array_f32(x, first, n, value, why)) fail_msg("%s", why);
                assert_memory_equal(value, row[r].value + first, (size_t)n * sizeof value[0]);
            }
        assert_false(io_array_f32(x, row[r].count, 1, value, why));
        assert_false(io_array_f32(x, -1, 1, value, why));
        assert_false(io_array_f32(x, 0, INT64_MAX, value, why));
    }
    assert_false(io_array_f32(io_arrays_find(&a, "complex"), 0, 1, value, why));
    assert_non_null(strstr(why, "official.safetensors: array 'complex' holds C64, which has no values here"));
    assert_false(io_array_f32(io_arrays_find(&a, "fp8.e4m3fnuz"), 0, 1, value, why));
    io_arrays_close(&a);
}

/* Long enough for several blocks, rows and columns, from every kind of beginning. */
static void long_arrays(void **state)
{
    enum { ROWS = 61, COLUMNS = 203, ALL = ROWS * COLUMNS };
    static int16_t number[ALL];
    static float value[ALL];
    char why[IO_WHY] = "";
    io_array x = { .name = "x",
                   .path = "X",
                   .type = "I16",
                   .format = TRN_I16,
                   .bits = 16,
                   .rank = 2,
                   .shape = { ROWS, COLUMNS },
                   .elements = ALL,
                   .data = number };
    (void)state;
    for (int fortran = 0; fortran < 2; fortran++) {
        x.stride[0] = fortran ? 1 : COLUMNS;
        x.stride[1] = fortran ? ROWS : 1;
        for (int i = 0; i < ALL; i++) number[fortran ? i / COLUMNS + ROWS * (i % COLUMNS) : i] = (int16_t)(i - 6000);
        for (int first = 0; first < ALL; first += 1237) {
            if (!io_array_f32(&x, first, ALL - first, value, why)) fail_msg("%s", why);
            for (int i = first; i < ALL; i++) assert_true(value[i - first] == (float)(i - 6000));
        }
    }
}

static void what_bytes_mean(void **state)
{
    io_arrays a = opened("vector.npy"); /* u1: 0 1 2 3 4 */
    io_array x = a.item[0];
    char why[IO_WHY] = "";
    float value[5];
    (void)state;
    assert_int_equal(x.format, TRN_U8);
    assert_false(io_array_as(&x, TRN_BF16, why));
    assert_non_null(strstr(why, "vector.npy: it holds U8, elements of 8 bits; those of bfloat16 have 16"));
    assert_false(io_array_as(&x, TRN_FORMAT_UNSET, why));
    assert_true(io_array_as(&x, TRN_F4_E2M1, why)); /* one to the byte */
    assert_true(io_array_f32(&x, 0, 5, value, why) && value[1] == 0.5f && value[4] == 2);
    assert_int_equal(io_array_view(&x).format, TRN_F4_E2M1);
    assert_true(io_array_as(&x, TRN_F8_E4M3, why));
    assert_string_equal(x.type, "float8_e4m3"); /* safetensors has no name for Neuron's */
    io_arrays_close(&a);
    a = opened("neuron.safetensors");
    assert_int_equal(io_arrays_find(&a, "w")->format, TRN_F8_E4M3);
    float all[256];
    assert_true(io_array_f32(io_arrays_find(&a, "w"), 0, 256, all, why));
    assert_true(all[0x77] == 240 && isinf(all[0x78]) && isnan(all[0x79]));
    io_arrays_close(&a);
}

static void views(void **state)
{
    int64_t shape[7] = { 2, 1, 3, 1, 2, 1, 2 };
    static float data[24];
    io_array x = {
        .name = "", .path = "X", .type = "F32", .format = TRN_F32, .bits = 32, .rank = 7, .elements = 24, .data = data
    };
    (void)state;
    memcpy(x.shape, shape, sizeof shape);
    io_array_pack_strides(&x);
    trn_tensor t = io_array_view(&x);
    assert_true(t.rank == 1 && t.shape[0] == 24);
    x.stride[0] = 1;
    x.stride[6] = 12;
    assert_int_equal(io_array_view(&x).rank, 0); /* neither packed nor few axes */
    io_arrays a = opened("scalar.npy");
    t = io_array_view(&a.item[0]);
    assert_true(t.rank == 1 && t.shape[0] == 1 && *(const float *)t.data == 2.5f);
    io_arrays_close(&a);
    a = opened("official.safetensors");
    assert_int_equal(io_array_view(io_arrays_find(&a, "fp4")).rank, 0); /* two to the byte */
    assert_int_equal(io_array_view(io_arrays_find(&a, "double")).rank, 0);
    t = io_array_view(io_arrays_find(&a, "empty"));
    assert_true(t.rank == 2 && trn_tensor_elements(t) == 0);
    io_arrays_close(&a);
    a = opened("unaligned.safetensors");
    t = io_array_view(io_arrays_find(&a, "w"));
    assert_true((uintptr_t)t.data % sizeof(float) == 0 && ((const float *)t.data)[3] == 4);
    io_arrays_close(&a);
}

static void checkpoints_and_others(void **state)
{
    io_arrays a = opened("sharded");
    io_arrays b;
    char path[300], why[IO_WHY] = "";
    float value[2];
    (void)state;
    assert_int_equal(a.count, 3);
    assert_true(io_array_f32(io_arrays_find(&a, "b.weight"), 0, 2, value, why) && value[1] == 2);
    assert_null(io_arrays_find(&a, "c"));
    io_arrays_close(&a);
    a = opened("foreign.npz"); /* notes and no array */
    assert_int_equal(a.count, 0);
    io_arrays_close(&a);
    snprintf(path, sizeof path, "%s/README.md", TRN_DATA_DIR);
    assert_false(io_arrays_open(path, &b, why));
    assert_non_null(strstr(why, "README.md: it is not a .safetensors file, or its header of"));
    assert_false(io_arrays_open("/nonexistent", &b, why));
    assert_string_equal(why, "/nonexistent: it cannot be opened (No such file or directory)");
    snprintf(path, sizeof path, "%s/record.npy", TRN_DATA_DIR);
    assert_false(io_arrays_open(path, &b, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(sizes_that_multiply),
        cmocka_unit_test(what_is_utf8),
        WRITES(mapped_files),
        WRITES(a_pipe),
        WRITES(a_file_that_shrinks),
        WRITES(a_handler_that_is_there_stays),
        WRITES(constant_memory),
        WRITES(replaced_when_complete),
        WRITES(links_and_devices),
        WRITES(a_full_disk),
        WRITES(all_appear),
        WRITES(or_none_does),
        WRITES(interrupted),
        WRITES(npy_whole_or_not),
        cmocka_unit_test(one_matrix_in_many_files),
        cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(long_arrays),
        cmocka_unit_test(what_bytes_mean),
        cmocka_unit_test(views),
        cmocka_unit_test(checkpoints_and_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON or zlib is not installed: files of arrays are not read\n");
    return 0;
}

#endif

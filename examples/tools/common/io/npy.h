/* npy.h - reads and writes NumPy's .npy files: one array of plain numbers per file.
 * SPDX-License-Identifier: MIT
 *
 *     #include "npy.h"
 *     int main(void) {
 *         npy_array a;
 *         char why[NPY_WHY];
 *         if (!npy_read("A.npy", &a, why)) { fprintf(stderr, "%s\n", why); return 2; }
 *         printf("%lld x %lld of %s\n", (long long)a.shape[0], (long long)a.shape[1], a.type);
 *         npy_free(&a);
 *         return 0;
 *     }
 *
 * DOES: format versions 1.0, 2.0 and 3.0; C and Fortran order (as strides in elements); little-endian and single-byte
 *     numbers of 1 to 16 bytes, and the 'V1' and 'V2' that NumPy makes of FP8 and BF16; every failure is one sentence
 *     that names the file and what is wrong with it.
 * DOES NOT: records, strings, objects, big-endian data (it says so), .npz (npz.h), or more than NPY_MAX_RANK axes. It
 *     never guesses what words mean: BF16 arrives as '<u2' or '<V2', FP8 as '|u1' or '|V1', and the caller must know.
 *
 * CONTENTS
 *     npy_array   the array: type, shape, strides, data
 *     npy_parse   a file's bytes in memory; the array's data points into them
 *     npy_read    a file, or standard input when its name is "-"
 *     npy_write   a packed C-order array
 *     npy_print   the same onto a stream that is open
 *     npy_header  what comes before its data
 *     npy_free    the memory that npy_read took
 *
 * KNOWN FROM: NumPy's numpy.lib.format documentation (NEP 1); files written by NumPy 1.24 in tests/data.
 */
#ifndef NPY_H
#define NPY_H

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

enum {
    NPY_MAX_RANK = IO_MAX_RANK,
    NPY_WHY = IO_WHY,             /* bytes of one sentence */
    NPY_MAX_HEADER = 1024 * 1024, /* NumPy itself writes less than a kilobyte */
    NPY_MAX_ITEM = 16,
    NPY_PREAMBLE = 12 /* bytes that say how long the header is */
};

typedef struct npy_array {
    char type[8]; /* NumPy's name: "<f4", "<f2", "<u2", "|u1", ... */
    int item_bytes;
    bool fortran_order;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    int64_t stride[NPY_MAX_RANK]; /* in elements */
    int64_t elements;
    void *data;
    void *block; /* what npy_free gives back; NULL after npy_parse */
} npy_array;

/* ---- the header: a Python dictionary of three entries ---- */

typedef struct npy_text { /* a cursor; `end` is never read */
    const char *at, *end;
} npy_text;

IO_FN void npy_skip_spaces(npy_text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) t->at++;
}

/* Takes the character c, after spaces, if it comes next. */
IO_FN bool npy_take(npy_text *t, char c)
{
    npy_skip_spaces(t);
    if (t->at >= t->end || *t->at != c) return false;
    t->at++;
    return true;
}

IO_FN bool npy_take_word(npy_text *t, const char *word)
{
    const size_t n = strlen(word);
    npy_skip_spaces(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0) return false;
    t->at += n;
    return true;
}

/* 'text' or "text", without escapes. False also when it does not fit in `out`. */
IO_FN bool npy_take_string(npy_text *t, char *out, size_t size)
{
    npy_skip_spaces(t);
    if (t->at >= t->end || (*t->at != '\'' && *t->at != '"')) return false;
    const char quote = *t->at++;
    size_t n = 0;
    while (t->at < t->end && *t->at != quote) {
        if (n + 1 >= size || *t->at == '\\' || !isprint((unsigned char)*t->at)) return false;
        out[n++] = *t->at++;
    }
    out[n] = '\0';
    return npy_take(t, quote);
}

IO_FN bool npy_take_number(npy_text *t, int64_t *number)
{
    int64_t n = 0;
    npy_skip_spaces(t);
    const char *start = t->at;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (n > (INT64_MAX - 9) / 10) return false;
        n = 10 * n + (*t->at - '0');
    }
    if (t->at == start || (n > 0 && *start == '0')) return false; /* Python takes 03 for none, either */
    if (t->at < t->end && *t->at == 'L') t->at++;                 /* Python 2 wrote 3L */
    *number = n;
    return true;
}

IO_FN bool npy_take_shape(npy_text *t, npy_array *a)
{
    if (!npy_take(t, '(')) return false;
    for (a->rank = 0; !npy_take(t, ')'); a->rank++) {
        if (a->rank == NPY_MAX_RANK || !npy_take_number(t, &a->shape[a->rank])) return false;
        if (!npy_take(t, ',')) {
            a->rank++;
            return a->rank > 1 && npy_take(t, ')'); /* (3) is a number, (3,) a tuple */
        }
    }
    return true;
}

/* '<f4' and its like: byte order, kind, bytes. Numbers that NumPy does not know itself arrive as '|V1' and '<V2'. */
IO_FN bool npy_check_type(npy_array *a, const char *name, char *why)
{
    const char *d = a->type;
    char *rest = NULL;
    const long bytes = d[0] && d[1] ? strtol(d + 2, &rest, 10) : 0;
    if (!rest || *rest || !strchr("<>|=", d[0]) || !strchr("biufcV", d[1]) || !isdigit((unsigned char)d[2]) ||
        bytes < 1 || bytes > (d[1] == 'V' ? 2 : NPY_MAX_ITEM))
        return io_fail(why, name, "its type '%s' is not a plain number", d);
    if (d[0] == '>') return io_fail(why, name, "its type '%s' is big-endian; store it with .astype('<%s')", d, d + 1);
    a->item_bytes = (int)bytes;
    return true;
}

enum { NPY_HAS_TYPE = 1, NPY_HAS_ORDER = 2, NPY_HAS_SHAPE = 4, NPY_HAS_ALL = 7 };

IO_FN bool npy_take_entry(npy_text *t, npy_array *a, int *have, const char *name, char *why)
{
    char key[32];
    if (!npy_take_string(t, key, sizeof key) || !npy_take(t, ':'))
        return io_fail(why, name, "its header is not a dictionary of 'descr', 'fortran_order' and 'shape'");
    const int bit = !strcmp(key, "descr")           ? NPY_HAS_TYPE
                    : !strcmp(key, "fortran_order") ? NPY_HAS_ORDER
                    : !strcmp(key, "shape")         ? NPY_HAS_SHAPE
                                                    : 0;
    if (!bit || (*have & bit))
        return io_fail(why, name, "its header has %s entry '%s'", bit ? "a second" : "an unknown", key);
    *have |= bit;
    if (bit == NPY_HAS_TYPE && !npy_take_string(t, a->type, sizeof a->type))
        return io_fail(why, name, "its 'descr' is not the name of a plain number type such as '<f4'");
    if (bit == NPY_HAS_ORDER && !(a->fortran_order = npy_take_word(t, "True")) && !npy_take_word(t, "False"))
        return io_fail(why, name, "its 'fortran_order' is neither True nor False");
    if (bit == NPY_HAS_SHAPE && !npy_take_shape(t, a))
        return io_fail(why, name, "its 'shape' is not a tuple of at most %d sizes", NPY_MAX_RANK);
    return true;
}

IO_FN bool npy_parse_dictionary(npy_text t, npy_array *a, const char *name, char *why)
{
    int have = 0;
    if (!npy_take(&t, '{')) return io_fail(why, name, "its header does not begin with '{'");
    while (!npy_take(&t, '}')) {
        if (!npy_take_entry(&t, a, &have, name, why)) return false;
        if (!npy_take(&t, ',') && (npy_skip_spaces(&t), t.at >= t.end || *t.at != '}'))
            return io_fail(why, name, "its header breaks off or lacks a comma");
    }
    npy_skip_spaces(&t);
    if (t.at != t.end) return io_fail(why, name, "its header goes on after the closing '}'");
    if (have != NPY_HAS_ALL)
        return io_fail(why, name, "its header lacks '%s'",
                       !(have & NPY_HAS_TYPE)    ? "descr"
                       : !(have & NPY_HAS_ORDER) ? "fortran_order"
                                                 : "shape");
    return true;
}

/* Strides in elements and the number of elements; false when the sizes multiply beyond 2^62 bytes. */
IO_FN bool npy_lay_out(npy_array *a)
{
    const int64_t limit = ((int64_t)1 << 62) / a->item_bytes;
    int64_t step = 1;
    a->elements = 1;
    for (int i = 0; i < a->rank; i++) {
        if (a->shape[i] && a->elements > limit / a->shape[i]) return false;
        a->elements *= a->shape[i];
    }
    for (int i = 0; i < a->rank; i++) {
        const int axis = a->fortran_order ? i : a->rank - 1 - i;
        a->stride[axis] = step;
        if (a->shape[axis] && step > limit / a->shape[axis]) return false;
        step *= a->shape[axis] ? a->shape[axis] : 1;
    }
    return true;
}

/* ---- a whole file ---- */

/* Where the dictionary begins and how long it is. */
IO_FN bool npy_parse_preamble(const unsigned char *bytes, size_t size, size_t *start, size_t *length, const char *name,
                              char *why)
{
    if (size < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0) return io_fail(why, name, "it is not a .npy file");
    if (size < NPY_PREAMBLE) return io_fail(why, name, "it ends inside the header, after %zu bytes", size);
    const int major = bytes[6];
    if (major < 1 || major > 3)
        return io_fail(why, name, "its format version %d.%d is unknown (1.0, 2.0 and 3.0 are read)", major, bytes[7]);
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    *start = major > 1 ? 12 : 10;
    if (*length > NPY_MAX_HEADER) return io_fail(why, name, "its header claims %zu bytes, more than 1 MiB", *length);
    if (*length > size - *start)
        return io_fail(why, name, "its header claims %zu bytes but the file ends after %zu", *length, size - *start);
    return true;
}

/* All but the data of a file of `size` bytes, of which at least the header is there; a->data is where data begins. */
IO_FN bool npy_parse_header(const unsigned char *bytes, size_t size, const char *name, npy_array *a, char *why)
{
    size_t start = 0, length = 0;
    memset(a, 0, sizeof *a);
    if (!npy_parse_preamble(bytes, size, &start, &length, name, why)) return false;
    const npy_text text = { (const char *)bytes + start, (const char *)bytes + start + length };
    if (!npy_parse_dictionary(text, a, name, why) || !npy_check_type(a, name, why)) return false;
    if (!npy_lay_out(a)) return io_fail(why, name, "its shape describes more than 2^62 bytes");

    const uint64_t have = size - start - length, need = (uint64_t)a->elements * (uint64_t)a->item_bytes;
    if (have != need)
        return io_fail(why, name, "its shape needs %llu bytes of data but the file holds %llu",
                       (unsigned long long)need, (unsigned long long)have);
    a->data = (unsigned char *)(uintptr_t)(bytes + start + length);
    return true;
}

/* The array of a file that lies in memory. `name` is for the sentence only. */
IO_FN bool npy_parse(const void *file, size_t size, const char *name, npy_array *a, char *why)
{
    return npy_parse_header((const unsigned char *)file, size, name, a, why);
}

IO_FN void npy_free(npy_array *a)
{
    free(a->block);
    memset(a, 0, sizeof *a);
}

/* All bytes of a stream, in memory that doubles as it fills, so that a pipe works like a file. */
IO_FN unsigned char *npy_read_all(FILE *stream, size_t *size)
{
    size_t capacity = 1 << 16, n = 0;
    unsigned char *bytes = (unsigned char *)malloc(capacity);
    while (bytes) {
        n += fread(bytes + n, 1, capacity - n, stream);
        if (n < capacity) break;
        unsigned char *more = capacity > SIZE_MAX / 2 ? NULL : (unsigned char *)realloc(bytes, capacity *= 2);
        if (!more) free(bytes);
        bytes = more;
    }
    *size = n;
    return bytes;
}

/* Makes `bytes`, which npy_parse has read, the array's own. NumPy aligns the data to 64 bytes; whoever else wrote the
 * file may not have. */
IO_FN void npy_settle(npy_array *a, unsigned char *bytes)
{
    const size_t size = (size_t)a->elements * (size_t)a->item_bytes;
    if ((uintptr_t)a->data % NPY_MAX_ITEM && size) {
        memmove(bytes, a->data, size);
        a->data = bytes;
    }
    a->block = bytes;
}

IO_FN bool npy_read(const char *path, npy_array *a, char *why)
{
    const bool standard = strcmp(path, "-") == 0;
    size_t size;
    memset(a, 0, sizeof *a);
    if (!io_reading(path, why)) return false;
    FILE *stream = standard ? stdin : fopen(path, "rb");
    if (!stream) return io_fail(why, path, "it cannot be opened (%s)", strerror(errno));
    errno = 0;
    unsigned char *bytes = npy_read_all(stream, &size);
    const int trouble = ferror(stream) ? errno : 0;
    if (!standard) fclose(stream);
    if (!bytes) return io_fail(why, path, "there is not enough memory to read it");
    if (trouble || !npy_parse(bytes, size, path, a, why)) {
        free(bytes);
        return trouble ? io_fail(why, path, "it cannot be read (%s)", strerror(trouble)) : false;
    }
    npy_settle(a, bytes);
    return true;
}

enum { NPY_HEADER = 10 + 512 };

/* What comes before the data of a packed C-order array; returns its size, a multiple of 64 bytes. */
IO_FN size_t npy_header(char header[NPY_HEADER], const char *type, int rank, const int64_t *shape)
{
    char tuple[NPY_MAX_RANK * 24] = "";
    size_t used = 0;
    for (int i = 0; i < rank && i < NPY_MAX_RANK; i++)
        used += (size_t)snprintf(tuple + used, sizeof tuple - used, i ? ", %lld" : "%lld", (long long)shape[i]);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    const int n = snprintf(header + 10, NPY_HEADER - 10, "{'descr': '%.7s', 'fortran_order': False, 'shape': (%s%s), }",
                           type, tuple, rank == 1 ? "," : "");
    const int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    memset(header + 10 + n, ' ', (size_t)(padded - n));
    header[10 + padded - 1] = '\n';
    header[8] = (char)(padded & 0xff);
    header[9] = (char)(padded >> 8);
    return (size_t)(10 + padded);
}

/* Of a packed array; type such as "<f4", whose digits give the size of an element. */
IO_FN size_t npy_bytes(const char *type, int rank, const int64_t *shape)
{
    size_t bytes = (size_t)strtol(type + 2, NULL, 10);
    for (int i = 0; i < rank; i++) bytes *= (size_t)shape[i];
    return bytes;
}

/* A packed array onto a stream; what goes wrong, the stream's ferror() keeps. */
IO_FN void npy_print(FILE *out, const char *type, int rank, const int64_t *shape, const void *data)
{
    char header[NPY_HEADER];
    fwrite(header, 1, npy_header(header, type, rank, shape), out);
    fwrite(data, 1, npy_bytes(type, rank, shape), out);
}

IO_FN bool npy_write(const char *path, const char *type, int rank, const int64_t *shape, const void *data, char *why)
{
    FILE *stream = fopen(path, "wb");
    if (!stream) return io_fail(why, path, "it cannot be created (%s)", strerror(errno));
    npy_print(stream, type, rank, shape, data);
    bool ok = !ferror(stream);
    ok = fclose(stream) == 0 && ok;
    return ok || io_fail(why, path, "it cannot be written (%s)", strerror(errno));
}

#endif /* NPY_H */

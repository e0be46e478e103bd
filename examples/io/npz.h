/* npz.h - reads and writes NumPy's .npz files: a zip archive of .npy files.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/npz.h"
 *     npz_file z;
 *     npy_array a;
 *     char why[IO_WHY];
 *     if (!npz_open("arrays.npz", &z, why) || !npz_load(&z, 0, &a, why)) return fprintf(stderr, "%s\n", why), 2;
 *     ...
 *     npy_free(&a);
 *     npz_close(&z);
 *
 * DOES: members stored (savez) and deflated (savez_compressed), zip64, sizes told before or after the data; every CRC
 *     is checked. Members that overlap, claim more than their bytes can hold, or that disagree with the archive's
 *     directory are refused. Writing: stored or deflated, sizes as zip64 has them, the same bytes for the same arrays.
 * DOES NOT: other compression, encryption, archives in several parts, or in the middle of a file.
 *
 * CONTENTS
 *     npz_member, npz_file               the directory
 *     npz_read, npz_open, npz_close      an archive that is mapped, or on disk
 *     npz_find, npz_load                 a member by name; its array
 *     npz_entry, npz_write               an archive of packed arrays
 *     npy_replace                        npy_write through output.h: the file is there whole, or not there
 *
 * KNOWN FROM: PKWARE's APPNOTE 6.3 (the record layouts); files written by NumPy 1.24 and Python's zipfile in
 *     tests/data. Needs zlib (zlib1g-dev).
 */
#ifndef IO_NPZ_H
#define IO_NPZ_H

#include <zlib.h>

#include "mapped.h"
#include "npy.h"
#include "output.h"

typedef struct npz_member {
    char *name;          /* without its ".npy" */
    bool array;          /* its name ended in ".npy" */
    uint64_t at;         /* of its local header */
    uint64_t start, end; /* of its data */
    uint64_t size;       /* once inflated */
    uint32_t crc;
    int method; /* 0 stored, 8 deflated */
} npz_member;

typedef struct npz_file {
    io_map map;
    char *path; /* for sentences */
    int count;
    npz_member *member; /* in the order of the directory */
} npz_file;

enum {
    NPZ_END = 0x06054b50,
    NPZ_END_SIZE = 22,
    NPZ_END64 = 0x06064b50,
    NPZ_END64_SIZE = 56,
    NPZ_LOCATOR = 0x07064b50,
    NPZ_LOCATOR_SIZE = 20,
    NPZ_ENTRY = 0x02014b50,
    NPZ_ENTRY_SIZE = 46,
    NPZ_LOCAL = 0x04034b50,
    NPZ_LOCAL_SIZE = 30,
    NPZ_STORED = 0,
    NPZ_DEFLATED = 8,
    NPZ_ENCRYPTED = 1, /* a bit of the flags */
    NPZ_SIZES_IN_EXTRA = 1,
    NPZ_RATIO = 1032, /* deflate cannot do better */
    NPZ_MAX_MEMBERS = 1 << 20
};

typedef struct npz_span { /* of the archive's bytes */
    const unsigned char *bytes;
    uint64_t size;
} npz_span;

/* ---- the end of the archive: where its directory is ---- */

typedef struct npz_directory {
    uint64_t at, size, count;
} npz_directory;

/* The end record is the last one there is: a comment of up to 65535 bytes may follow. NULL when there is none. */
IO_FN const unsigned char *npz_find_end(npz_span z)
{
    if (z.size < NPZ_END_SIZE) return NULL;
    const uint64_t last = z.size - NPZ_END_SIZE, first = last > 65535 ? last - 65535 : 0;
    for (uint64_t at = last + 1; at-- > first;) {
        const unsigned char *end = z.bytes + at;
        if (io_little32(end) == NPZ_END && at + NPZ_END_SIZE + io_little16(end + 20) == z.size) return end;
    }
    return NULL;
}

/* Whether a span lies in the archive before `limit`. */
IO_FN bool npz_within(uint64_t at, uint64_t size, uint64_t limit) { return at <= limit && size <= limit - at; }

/* zip64 keeps the large numbers in a record of its own, found through a locator before the end record. */
IO_FN bool npz_read_end64(npz_span z, uint64_t end, npz_directory *d)
{
    if (end < NPZ_LOCATOR_SIZE || io_little32(z.bytes + end - NPZ_LOCATOR_SIZE) != NPZ_LOCATOR) return true;
    const uint64_t at = io_little64(z.bytes + end - NPZ_LOCATOR_SIZE + 8);
    if (!npz_within(at, NPZ_END64_SIZE, end - NPZ_LOCATOR_SIZE) || io_little32(z.bytes + at) != NPZ_END64) return false;
    d->count = io_little64(z.bytes + at + 32);
    d->size = io_little64(z.bytes + at + 40);
    d->at = io_little64(z.bytes + at + 48);
    return true;
}

IO_FN bool npz_read_end(npz_span z, npz_directory *d, const char *name, char *why)
{
    const unsigned char *end = npz_find_end(z);
    if (!end) return io_fail(why, name, "it is not a .npz file, or breaks off: a zip archive's end record is missing");
    const uint64_t at = (uint64_t)(end - z.bytes);
    d->count = io_little16(end + 10);
    d->size = io_little32(end + 12);
    d->at = io_little32(end + 16);
    if (io_little16(end + 4) != 0 || io_little16(end + 8) != io_little16(end + 10))
        return io_fail(why, name, "it is one part of a zip archive of several");
    if (!npz_read_end64(z, at, d)) return io_fail(why, name, "its zip64 end record is missing");
    if (!npz_within(d->at, d->size, at) || d->count > NPZ_MAX_MEMBERS || d->count > d->size / NPZ_ENTRY_SIZE)
        return io_fail(why, name, "its directory of %llu members does not fit into it", (unsigned long long)d->count);
    return true;
}

/* ---- an entry of the directory, and the local header that it points to ---- */

/* Fields that are all ones have their value in the extra field 1, in the order size, packed size, place. */
IO_FN bool npz_read_extra(const unsigned char *extra, size_t length, uint64_t *field[], int fields)
{
    while (length >= 4) {
        const size_t kind = io_little16(extra), size = io_little16(extra + 2);
        if (size > length - 4) return false;
        const unsigned char *value = extra + 4;
        size_t left = kind == NPZ_SIZES_IN_EXTRA ? size : 0;
        for (int i = 0; i < fields && kind == NPZ_SIZES_IN_EXTRA; i++) {
            if (*field[i] != UINT32_MAX) continue;
            if (left < 8) return false;
            *field[i] = io_little64(value);
            value += 8;
            left -= 8;
        }
        if (kind == NPZ_SIZES_IN_EXTRA) return true;
        extra += 4 + size;
        length -= 4 + size;
    }
    return true; /* a size may be just that */
}

/* NumPy adds ".npy" to the names of arrays. */
IO_FN char *npz_name(const unsigned char *text, size_t length, bool *array)
{
    *array = length >= 4 && memcmp(text + length - 4, ".npy", 4) == 0;
    if (*array) length -= 4;
    char *name = memchr(text, '\0', length) || !io_utf8(text, length) ? NULL : (char *)malloc(length + 1);
    if (!name) return NULL;
    memcpy(name, text, length);
    name[length] = '\0';
    return name;
}

/* The local header repeats the entry; only its name and the place of the data are taken from it. */
IO_FN bool npz_read_local(npz_span z, uint64_t limit, const unsigned char *entry, npz_member *m, uint64_t packed)
{
    const size_t length = io_little16(entry + 28);
    if (!npz_within(m->at, NPZ_LOCAL_SIZE, limit) || io_little32(z.bytes + m->at) != NPZ_LOCAL) return false;
    const unsigned char *local = z.bytes + m->at;
    m->start = m->at + NPZ_LOCAL_SIZE + io_little16(local + 26) + io_little16(local + 28);
    if (!npz_within(m->start, packed, limit) || io_little16(local + 26) != length) return false;
    m->end = m->start + packed;
    return memcmp(local + NPZ_LOCAL_SIZE, entry + NPZ_ENTRY_SIZE, length) == 0;
}

IO_FN bool npz_read_entry(npz_span z, uint64_t limit, const unsigned char *entry, npz_member *m, const char *name,
                          char *why)
{
    const size_t length = io_little16(entry + 28), extra = io_little16(entry + 30);
    uint64_t packed = io_little32(entry + 20);
    m->size = io_little32(entry + 24);
    m->at = io_little32(entry + 42);
    m->crc = io_little32(entry + 16);
    m->method = io_little16(entry + 10);
    m->name = npz_name(entry + NPZ_ENTRY_SIZE, length, &m->array);
    uint64_t *large[] = { &m->size, &packed, &m->at };
    if (!m->name) return io_fail(why, name, "a member's name is not UTF-8, or memory is short");
    if (!npz_read_extra(entry + NPZ_ENTRY_SIZE + length, extra, large, 3))
        return io_fail(why, name, "member '%.128s' has broken zip64 sizes", m->name);
    if (io_little16(entry + 8) & NPZ_ENCRYPTED) return io_fail(why, name, "member '%.128s' is encrypted", m->name);
    if (m->method != NPZ_STORED && m->method != NPZ_DEFLATED)
        return io_fail(why, name, "member '%.128s' is compressed by method %d; stored and deflated ones are read",
                       m->name, m->method);
    if (!npz_read_local(z, limit, entry, m, packed))
        return io_fail(why, name, "member '%.128s' is not where the directory says, or does not fit", m->name);
    if (m->method == NPZ_STORED ? m->size != packed : m->size / NPZ_RATIO > packed)
        return io_fail(why, name, "member '%.128s' claims %llu bytes but has %llu to hold them", m->name,
                       (unsigned long long)m->size, (unsigned long long)packed);
    return true;
}

/* ---- the whole directory ---- */

IO_FN int npz_by_place(const void *left, const void *right)
{
    const npz_member *a = *(const npz_member *const *)left, *b = *(const npz_member *const *)right;
    return a->at < b->at ? -1 : a->at > b->at;
}

IO_FN int npz_by_name(const void *left, const void *right)
{
    const npz_member *a = *(const npz_member *const *)left, *b = *(const npz_member *const *)right;
    return strcmp(a->name, b->name);
}

/* No two members share a byte or a name. */
IO_FN bool npz_check_members(const npz_file *z, const char *name, char *why)
{
    const npz_member **list = (const npz_member **)malloc(((size_t)z->count + 1) * sizeof *list);
    bool ok = list || io_fail(why, name, "there is not enough memory for its directory");
    for (int i = 0; i < z->count && ok; i++) list[i] = &z->member[i];
    if (ok && z->count > 1) qsort(list, (size_t)z->count, sizeof *list, npz_by_place);
    for (int i = 1; i < z->count && ok; i++)
        ok = list[i - 1]->end <= list[i]->at ||
             io_fail(why, name, "members '%.128s' and '%.128s' overlap", list[i - 1]->name, list[i]->name);
    if (ok && z->count > 1) qsort(list, (size_t)z->count, sizeof *list, npz_by_name);
    for (int i = 1; i < z->count && ok; i++)
        ok = strcmp(list[i - 1]->name, list[i]->name) != 0 ||
             io_fail(why, name, "it has two members called '%.128s'", list[i]->name);
    free(list);
    return ok;
}

IO_FN bool npz_read_directory(npz_span z, npz_file *file, const char *name, char *why)
{
    npz_directory d = { 0, 0, 0 };
    if (!npz_read_end(z, &d, name, why)) return false;
    file->member = (npz_member *)calloc((size_t)d.count + 1, sizeof *file->member);
    if (!file->member) return io_fail(why, name, "there is not enough memory for its directory");
    const uint64_t end = d.at + d.size;
    uint64_t at = d.at;
    while ((uint64_t)file->count < d.count) {
        const unsigned char *entry = z.bytes + at;
        if (!npz_within(at, NPZ_ENTRY_SIZE, end) || io_little32(entry) != NPZ_ENTRY)
            return io_fail(why, name, "its directory breaks off after %d members", file->count);
        const uint64_t size =
            (uint64_t)NPZ_ENTRY_SIZE + io_little16(entry + 28) + io_little16(entry + 30) + io_little16(entry + 32);
        if (!npz_within(at, size, end))
            return io_fail(why, name, "its directory breaks off after %d members", file->count);
        if (!npz_read_entry(z, d.at, entry, &file->member[file->count++], name, why)) return false;
        at += size;
    }
    return npz_check_members(file, name, why);
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN void npz_close(npz_file *z)
{
    for (int i = 0; i < z->count; i++) free(z->member[i].name);
    free(z->member);
    free(z->path);
    io_map_close(&z->map);
    memset(z, 0, sizeof *z);
}

/* Takes over the map, also when it fails. */
IO_FN bool npz_read(io_map map, const char *name, npz_file *z, char *why)
{
    const npz_span span = { map.bytes, map.size };
    memset(z, 0, sizeof *z);
    z->map = map;
    z->path = strdup(name);
    const bool ok =
        z->path ? npz_read_directory(span, z, name, why) : io_fail(why, name, "there is not enough memory to read it");
    if (!ok) npz_close(z);
    return ok;
}

IO_FN bool npz_open(const char *path, npz_file *z, char *why)
{
    io_map map;
    memset(z, 0, sizeof *z);
    return io_map_open(path, &map, why) && npz_read(map, path, z, why);
}

/* The number of a member; -1 when there is none of that name. */
IO_FN int npz_find(const npz_file *z, const char *name)
{
    for (int i = 0; i < z->count; i++)
        if (strcmp(z->member[i].name, name) == 0) return i;
    return -1;
}

/* ---- a member ---- */

/* zlib counts in 32 bits: the rest is handed over piece by piece. */
IO_FN uInt npz_piece(uint64_t *left)
{
    const uint64_t piece = *left < (1 << 30) ? *left : 1 << 30;
    *left -= piece;
    return (uInt)piece;
}

IO_FN uint32_t npz_crc(const unsigned char *bytes, uint64_t size)
{
    uLong crc = crc32(0, NULL, 0);
    while (size > 0) {
        const uInt piece = npz_piece(&size);
        crc = crc32(crc, bytes, piece);
        bytes += piece;
    }
    return (uint32_t)crc;
}

/* Exactly m->size bytes, or false. */
IO_FN bool npz_inflate(const npz_file *z, const npz_member *m, unsigned char *out)
{
    z_stream s;
    uint64_t in_left = m->end - m->start, out_left = m->size;
    int state = Z_OK;
    memset(&s, 0, sizeof s);
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK) return false;
    s.next_in = (Bytef *)(uintptr_t)(z->map.bytes + m->start);
    s.next_out = out;
    while (state == Z_OK) {
        if (s.avail_in == 0) s.avail_in = npz_piece(&in_left);
        if (s.avail_out == 0) s.avail_out = npz_piece(&out_left);
        state = inflate(&s, Z_NO_FLUSH);
    }
    const bool whole = state == Z_STREAM_END && s.avail_out == 0 && out_left == 0 && s.avail_in == 0 && in_left == 0;
    inflateEnd(&s);
    return whole;
}

/* The array of a member, in memory of its own: npy_free it. */
IO_FN bool npz_load(const npz_file *z, int index, npy_array *a, char *why)
{
    const npz_member *m = &z->member[index];
    char name[IO_WHY];
    memset(a, 0, sizeof *a);
    snprintf(name, sizeof name, "%.120s:%.79s", z->path, m->name);
    unsigned char *bytes = m->size < SIZE_MAX ? (unsigned char *)malloc((size_t)m->size + 1) : NULL;
    if (!bytes) return io_fail(why, name, "there is not enough memory for its %llu bytes", (unsigned long long)m->size);
    bool ok = true;
    if (m->method == NPZ_STORED)
        memcpy(bytes, z->map.bytes + m->start, (size_t)m->size);
    else
        ok = npz_inflate(z, m, bytes) || io_fail(why, name, "its compressed data is broken");
    if (ok && npz_crc(bytes, m->size) != m->crc) ok = io_fail(why, name, "its check sum is wrong: the file is damaged");
    if (!ok || !npy_parse(bytes, (size_t)m->size, name, a, why)) return free(bytes), memset(a, 0, sizeof *a), false;
    npy_settle(a, bytes);
    return true;
}

/* ---- writing ---- */

typedef struct npz_entry {
    const char *name; /* without ".npy" */
    const char *type; /* as npy_write's */
    int rank;
    const int64_t *shape;
    const void *data;
} npz_entry;

typedef struct npz_writer {
    io_output out;
    uint64_t at;
    bool deflate;
    char *why;
} npz_writer;

typedef struct npz_record { /* what the directory will say of a member */
    uint64_t at, packed, size;
    uint32_t crc;
} npz_record;

IO_FN bool npz_put(npz_writer *w, const void *bytes, size_t size)
{
    w->at += size;
    return io_output_write(&w->out, bytes, size, w->why);
}

IO_FN unsigned char *npz_little(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8) *at++ = (unsigned char)value;
    return at;
}

/* A local header (entry = false) or an entry of the directory. Sizes always stand in the zip64 field, so that local
 * headers have one length and can be written over. 1980-01-01 is the zip epoch: the same arrays make the same file. */
IO_FN bool npz_put_record(npz_writer *w, const npz_entry *e, const npz_record *r, bool entry)
{
    unsigned char record[NPZ_ENTRY_SIZE + 28], *at = record;
    const int extra = entry ? 28 : 20;
    at = npz_little(at, entry ? NPZ_ENTRY : NPZ_LOCAL, 4);
    if (entry) at = npz_little(at, 45, 2); /* made by: version 4.5 */
    at = npz_little(at, 45, 2);            /* needed: version 4.5, zip64 */
    at = npz_little(at, 0x800, 2);         /* the name is UTF-8 */
    at = npz_little(at, w->deflate ? NPZ_DEFLATED : NPZ_STORED, 2);
    at = npz_little(at, 0, 2);
    at = npz_little(at, 0x21, 2);
    at = npz_little(at, r->crc, 4);
    at = npz_little(at, UINT32_MAX, 4);
    at = npz_little(at, UINT32_MAX, 4);
    at = npz_little(at, strlen(e->name) + 4, 2);
    at = npz_little(at, (uint64_t)extra, 2);
    if (entry) at = npz_little(at, 0, 10); /* no comment, disk 0, no attributes */
    if (entry) at = npz_little(at, UINT32_MAX, 4);
    if (!npz_put(w, record, (size_t)(at - record)) || !npz_put(w, e->name, strlen(e->name)) || !npz_put(w, ".npy", 4))
        return false;
    at = npz_little(record, NPZ_SIZES_IN_EXTRA, 2);
    at = npz_little(at, (uint64_t)extra - 4, 2);
    at = npz_little(at, r->size, 8);
    at = npz_little(at, r->packed, 8);
    if (entry) at = npz_little(at, r->at, 8);
    return npz_put(w, record, (size_t)(at - record));
}

IO_FN bool npz_put_deflated(npz_writer *w, z_stream *s, const unsigned char *bytes, uint64_t size, bool last)
{
    unsigned char out[1 << 15];
    s->next_in = (Bytef *)(uintptr_t)bytes;
    do {
        if (s->avail_in == 0) s->avail_in = npz_piece(&size);
        do {
            s->next_out = out;
            s->avail_out = sizeof out;
            deflate(s, last && size == 0 ? Z_FINISH : Z_NO_FLUSH);
            if (!npz_put(w, out, sizeof out - s->avail_out)) return false;
        } while (s->avail_out == 0);
    } while (size > 0);
    return true;
}

/* Header and data of the .npy inside. */
IO_FN bool npz_put_data(npz_writer *w, const char *header, size_t start, const void *data, size_t bytes)
{
    z_stream s;
    if (!w->deflate) return npz_put(w, header, start) && npz_put(w, data, bytes);
    memset(&s, 0, sizeof s);
    if (deflateInit2(&s, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return io_output_fail(&w->out, w->why, "there is not enough memory to compress it");
    const bool ok = npz_put_deflated(w, &s, (const unsigned char *)header, start, false) &&
                    npz_put_deflated(w, &s, (const unsigned char *)data, bytes, true);
    deflateEnd(&s);
    return ok;
}

/* Its compressed size is known afterwards: the local header is written a second time. */
IO_FN bool npz_put_member(npz_writer *w, const npz_entry *e, npz_record *r)
{
    char header[NPY_HEADER];
    const size_t start = npy_header(header, e->type, e->rank, e->shape), bytes = npy_bytes(e->type, e->rank, e->shape);
    memset(r, 0, sizeof *r);
    r->at = w->at;
    r->size = r->packed = start + bytes;
    r->crc = (uint32_t)crc32_combine(npz_crc((const unsigned char *)header, start),
                                     npz_crc((const unsigned char *)e->data, bytes), (z_off_t)bytes);
    if (!npz_put_record(w, e, r, false)) return false;
    const uint64_t from = w->at;
    if (!npz_put_data(w, header, start, e->data, bytes)) return false;
    if (!w->deflate) return true;
    const uint64_t end = w->at;
    r->packed = end - from;
    if (fseeko(w->out.file, (off_t)r->at, SEEK_SET) != 0) return io_output_broke(&w->out, w->why);
    const bool ok = npz_put_record(w, e, r, false);
    w->at = end;
    return ok && (fseeko(w->out.file, (off_t)end, SEEK_SET) == 0 || io_output_broke(&w->out, w->why));
}

IO_FN bool npz_put_end(npz_writer *w, uint64_t from, int count)
{
    unsigned char record[NPZ_END64_SIZE + NPZ_LOCATOR_SIZE + NPZ_END_SIZE], *at = record;
    const uint64_t end = w->at, some = count < UINT16_MAX ? (uint64_t)count : UINT16_MAX;
    at = npz_little(at, NPZ_END64, 4);
    at = npz_little(at, NPZ_END64_SIZE - 12, 8);
    at = npz_little(at, 45, 2);
    at = npz_little(at, 45, 2);
    at = npz_little(at, 0, 8); /* disks */
    at = npz_little(at, (uint64_t)count, 8);
    at = npz_little(at, (uint64_t)count, 8);
    at = npz_little(at, end - from, 8);
    at = npz_little(at, from, 8);
    at = npz_little(at, NPZ_LOCATOR, 4);
    at = npz_little(at, 0, 4);
    at = npz_little(at, end, 8);
    at = npz_little(at, 1, 4);
    at = npz_little(at, NPZ_END, 4);
    at = npz_little(at, 0, 4);
    at = npz_little(at, some, 2);
    at = npz_little(at, some, 2);
    at = npz_little(at, end - from < UINT32_MAX ? end - from : UINT32_MAX, 4);
    at = npz_little(at, from < UINT32_MAX ? from : UINT32_MAX, 4);
    at = npz_little(at, 0, 2);
    return npz_put(w, record, (size_t)(at - record));
}

IO_FN bool npz_put_all(npz_writer *w, const npz_entry *entry, int count, npz_record *record)
{
    for (int i = 0; i < count; i++)
        if (!npz_put_member(w, &entry[i], &record[i])) return false;
    const uint64_t from = w->at;
    for (int i = 0; i < count; i++)
        if (!npz_put_record(w, &entry[i], &record[i], true)) return false;
    return npz_put_end(w, from, count) && io_output_commit(&w->out, w->why);
}

IO_FN bool npz_write(const char *path, const npz_entry *entry, int count, bool deflated, char *why)
{
    npz_writer w = { .deflate = deflated, .why = why };
    npz_record *record = (npz_record *)malloc(((size_t)count + 1) * sizeof *record);
    if (!record) return io_fail(why, path, "there is not enough memory to write it");
    const bool ok = io_output_open(path, &w.out, why) && npz_put_all(&w, entry, count, record);
    free(record);
    return ok;
}

/* npy_write, but the file is there whole or not there. */
IO_FN bool npy_replace(const char *path, const char *type, int rank, const int64_t *shape, const void *data, char *why)
{
    char header[NPY_HEADER];
    io_output out;
    const size_t start = npy_header(header, type, rank, shape), bytes = npy_bytes(type, rank, shape);
    return io_output_open(path, &out, why) && io_output_write(&out, header, start, why) &&
           io_output_write(&out, data, bytes, why) && io_output_commit(&out, why);
}

#endif /* IO_NPZ_H */

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
 * DOES: what npz_directory.h believes; every CRC is checked. Writing: stored or deflated, sizes as zip64 has them, the
 *     same bytes for the same arrays.
 * DOES NOT: take more memory than an array has bytes, and up to 1 MiB for its header, which must describe as many bytes
 *     as the archive claims before they are taken. Deflate makes at most 1032 bytes of one, no two members share any,
 *     and each is inflated once: a file of n bytes costs at most the memory and the time of 1032 n.
 *
 * CONTENTS
 *     npz_load                           the array of a member; npz_directory.h has the members
 *     npz_entry, npz_write               an archive of packed arrays
 *     npy_replace                        npy_write through output.h: the file is there whole, or not there
 *
 * KNOWN FROM: PKWARE's APPNOTE 6.3 (the record layouts); files written by NumPy 1.24 and Python's zipfile in
 *     tests/data. Needs zlib (zlib1g-dev).
 */
#ifndef IO_NPZ_H
#define IO_NPZ_H

#include <zlib.h>

#include "npy.h"
#include "npz_directory.h"
#include "output.h"

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

/* The first `size` bytes; all of them only if the data ends there, too. */
IO_FN bool npz_inflate(const npz_file *z, const npz_member *m, unsigned char *out, uint64_t size)
{
    z_stream s;
    uint64_t in_left = m->end - m->start, out_left = size;
    int state = Z_OK;
    memset(&s, 0, sizeof s);
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK) return false;
    s.next_in = (Bytef *)(uintptr_t)(z->map.bytes + m->start);
    s.next_out = out;
    while (state == Z_OK && (size == m->size || s.avail_out + out_left > 0)) {
        if (s.avail_in == 0) s.avail_in = npz_piece(&in_left);
        if (s.avail_out == 0) s.avail_out = npz_piece(&out_left);
        state = inflate(&s, Z_NO_FLUSH);
    }
    const bool made = s.avail_out == 0 && out_left == 0, ended = state == Z_STREAM_END && s.avail_in + in_left == 0;
    inflateEnd(&s);
    return made && (size < m->size || ended);
}

IO_FN bool npz_first(const npz_file *z, const npz_member *m, unsigned char *out, uint64_t size, const char *name,
                     char *why)
{
    if (m->method == NPZ_DEFLATED)
        return npz_inflate(z, m, out, size) || io_fail(why, name, "its compressed data is broken");
    memcpy(out, z->map.bytes + m->start, (size_t)size);
    return true;
}

/* Before memory is taken: does the .npy inside have the bytes that the archive claims? */
IO_FN bool npz_check_header(const npz_file *z, const npz_member *m, const char *name, char *why)
{
    unsigned char preamble[NPY_PREAMBLE];
    size_t start = 0, length = 0;
    npy_array a;
    const size_t few = m->size < sizeof preamble ? (size_t)m->size : sizeof preamble;
    if (!npz_first(z, m, preamble, few, name, why) ||
        !npy_parse_preamble(preamble, (size_t)m->size, &start, &length, name, why))
        return false;
    unsigned char *header = (unsigned char *)malloc(start + length);
    const bool ok = header ? npz_first(z, m, header, start + length, name, why) &&
                                 npy_parse_header(header, (size_t)m->size, name, &a, why)
                           : io_fail(why, name, "there is not enough memory for its header");
    free(header);
    return ok;
}

/* The array of a member, in memory of its own: npy_free it. */
IO_FN bool npz_load(const npz_file *z, int index, npy_array *a, char *why)
{
    const npz_member *m = &z->member[index];
    char name[IO_WHY];
    memset(a, 0, sizeof *a);
    snprintf(name, sizeof name, "%.120s:%.79s", z->path, m->name);
    if (!npz_check_header(z, m, name, why)) return false;
    unsigned char *bytes = m->size < SIZE_MAX ? (unsigned char *)malloc((size_t)m->size + 1) : NULL;
    if (!bytes) return io_fail(why, name, "there is not enough memory for its %llu bytes", (unsigned long long)m->size);
    bool ok = npz_first(z, m, bytes, m->size, name, why);
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

/* npz_directory.h - the directory of a zip archive, as .npz files are, believed only where everything in it agrees.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/npz_directory.h"
 *     npz_file z;
 *     char why[IO_WHY];
 *     if (!npz_open("arrays.npz", &z, why)) return fprintf(stderr, "%s\n", why), 2;
 *     for (int i = 0; i < z.count; i++) printf("%s\n", z.member[i].name);
 *     npz_close(&z);
 *
 * DOES: members stored and deflated, zip64, sizes told before or after the data, comments. What is told twice must be
 *     the same: counts, sizes and places of the end records, the directory and each member's header and descriptor. No
 *     two members share a byte or a name, none claims more bytes than its data can hold, and names are UTF-8 without
 *     NUL (with "/", if it likes: nothing here makes files of them).
 * DOES NOT: other compression, encryption, archives in several parts or in the middle of a file, or with more than 2^20
 *     members.
 *
 * CONTENTS
 *     npz_member, npz_file               the directory
 *     npz_read, npz_open, npz_close      an archive that is mapped, or on disk
 *     npz_find                           a member by name
 *
 * KNOWN FROM: PKWARE's APPNOTE 6.3 (the record layouts); D. Fifield, "A better zip bomb", WOOT 2019 (members that share
 *     bytes).
 */
#ifndef IO_NPZ_DIRECTORY_H
#define IO_NPZ_DIRECTORY_H

#include "mapped.h"

typedef struct npz_member {
    char *name;          /* without its ".npy" */
    bool array;          /* its name ended in ".npy" */
    uint64_t at;         /* of its local header */
    uint64_t start, end; /* of its data */
    uint64_t after;      /* a descriptor behind the data included */
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
    NPZ_DESCRIPTOR = 0x08074b50,
    NPZ_STORED = 0,
    NPZ_DEFLATED = 8,
    NPZ_ENCRYPTED = 1, /* bits of the flags */
    NPZ_SIZES_FOLLOW = 8,
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
    uint64_t end; /* of the directory: where the end record, or the one of zip64, begins */
} npz_directory;

/* The end record, whose comment of up to 65535 bytes is all that follows. Returns how many there seem to be: a comment
 * that makes a second one is refused, as readers would not agree on which to believe. */
IO_FN int npz_find_end(npz_span z, const unsigned char **end)
{
    int found = 0;
    if (z.size < NPZ_END_SIZE) return 0;
    const uint64_t last = z.size - NPZ_END_SIZE, first = last > 65535 ? last - 65535 : 0;
    for (uint64_t at = last + 1; at-- > first && found < 2;) {
        if (io_little32(z.bytes + at) != NPZ_END || at + NPZ_END_SIZE + io_little16(z.bytes + at + 20) != z.size)
            continue;
        *end = z.bytes + at;
        found++;
    }
    return found;
}

/* Whether a span lies in the archive before `limit`. */
IO_FN bool npz_within(uint64_t at, uint64_t size, uint64_t limit) { return at <= limit && size <= limit - at; }

IO_FN bool npz_parts(const char *name, char *why)
{
    return io_fail(why, name, "it is one part of a zip archive of several");
}

/* A number of the end record is all ones, or the one that the zip64 record has. */
IO_FN bool npz_agrees(uint64_t *number, uint64_t ones, uint64_t large)
{
    const bool agrees = *number == ones || *number == large;
    *number = large;
    return agrees;
}

/* zip64 keeps the large numbers in a record of its own, right before the locator that precedes the end record. */
IO_FN bool npz_read_end64(npz_span z, npz_directory *d, const char *name, char *why)
{
    const uint64_t end = d->end;
    if (end < NPZ_LOCATOR_SIZE || io_little32(z.bytes + end - NPZ_LOCATOR_SIZE) != NPZ_LOCATOR) return true;
    const unsigned char *locator = z.bytes + end - NPZ_LOCATOR_SIZE;
    const uint64_t at = io_little64(locator + 8), before = end - NPZ_LOCATOR_SIZE;
    if (!npz_within(at, NPZ_END64_SIZE, before) || io_little32(z.bytes + at) != NPZ_END64 ||
        io_little64(z.bytes + at + 4) != before - at - 12)
        return io_fail(why, name, "its zip64 end record is missing");
    const unsigned char *large = z.bytes + at;
    if (io_little32(locator + 4) || io_little32(locator + 16) > 1 || io_little32(large + 16) ||
        io_little32(large + 20) || io_little64(large + 24) != io_little64(large + 32))
        return npz_parts(name, why);
    d->end = at;
    const bool count = npz_agrees(&d->count, UINT16_MAX, io_little64(large + 32)),
               size = npz_agrees(&d->size, UINT32_MAX, io_little64(large + 40)),
               place = npz_agrees(&d->at, UINT32_MAX, io_little64(large + 48));
    return (count && size && place) || io_fail(why, name, "its end record and that of zip64 disagree");
}

/* The directory lies right before these records. */
IO_FN bool npz_read_end(npz_span z, npz_directory *d, const char *name, char *why)
{
    const unsigned char *end = z.bytes;
    const int ends = npz_find_end(z, &end);
    if (ends > 1) return io_fail(why, name, "its comment looks like a second end record");
    if (!ends) return io_fail(why, name, "it is not a .npz file, or breaks off: a zip archive's end record is missing");
    d->end = (uint64_t)(end - z.bytes);
    d->count = io_little16(end + 10);
    d->size = io_little32(end + 12);
    d->at = io_little32(end + 16);
    if (io_little32(end + 4) != 0 || io_little16(end + 8) != io_little16(end + 10)) return npz_parts(name, why);
    if (!npz_read_end64(z, d, name, why)) return false;
    if (!npz_within(d->at, d->size, d->end) || d->at + d->size != d->end || d->count > NPZ_MAX_MEMBERS ||
        d->count > d->size / NPZ_ENTRY_SIZE)
        return io_fail(why, name, "its directory of %llu members does not fit into it", (unsigned long long)d->count);
    return true;
}

/* ---- an entry of the directory, and the local header that it points to ---- */

/* Fields that are all ones have their value in the extra field 1, in the order size, packed size, place; there is one
 * such field at most. `unknown`: they may have none, as the value is not known yet. */
IO_FN bool npz_read_extra(const unsigned char *extra, size_t length, uint64_t *field[], int fields, bool unknown)
{
    bool any = false;
    bool ones = false;
    for (int i = 0; i < fields; i++) ones = ones || *field[i] == UINT32_MAX;
    while (length >= 4) {
        const size_t kind = io_little16(extra), size = io_little16(extra + 2);
        if (size > length - 4) return false;
        const unsigned char *value = extra + 4;
        size_t left = size;
        if (kind == NPZ_SIZES_IN_EXTRA && any) return false;
        for (int i = 0; i < fields && kind == NPZ_SIZES_IN_EXTRA; i++) {
            if (*field[i] != UINT32_MAX) continue;
            if (left < 8) return false;
            *field[i] = io_little64(value);
            value += 8;
            left -= 8;
        }
        any = any || kind == NPZ_SIZES_IN_EXTRA;
        extra += 4 + size;
        length -= 4 + size;
    }
    return any || unknown || !ones;
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

/* A number of the local header is the entry's, or, where numbers follow the data, not known yet. */
IO_FN bool npz_repeats(uint64_t number, uint64_t entry, bool follows)
{
    return number == entry || (follows && (number == 0 || number == UINT32_MAX));
}

/* The local header repeats the entry. */
IO_FN bool npz_read_local(npz_span z, uint64_t limit, const unsigned char *entry, npz_member *m, uint64_t packed)
{
    const size_t length = io_little16(entry + 28);
    if (!npz_within(m->at, NPZ_LOCAL_SIZE, limit) || io_little32(z.bytes + m->at) != NPZ_LOCAL) return false;
    const unsigned char *local = z.bytes + m->at;
    const size_t extra = io_little16(local + 28);
    m->start = m->at + NPZ_LOCAL_SIZE + io_little16(local + 26) + extra;
    if (!npz_within(m->start, packed, limit) || io_little16(local + 26) != length) return false;
    m->after = m->end = m->start + packed;
    return memcmp(local + NPZ_LOCAL_SIZE, entry + NPZ_ENTRY_SIZE, length) == 0;
}

/* Sizes, check sum and method, too. */
IO_FN bool npz_check_local(npz_span z, const npz_member *m, uint64_t packed, bool *follows)
{
    const unsigned char *local = z.bytes + m->at;
    const size_t length = io_little16(local + 26), extra = io_little16(local + 28);
    uint64_t local_packed = io_little32(local + 18), local_size = io_little32(local + 22);
    uint64_t *large[] = { &local_size, &local_packed };
    *follows = (io_little16(local + 6) & NPZ_SIZES_FOLLOW) != 0;
    return npz_read_extra(local + NPZ_LOCAL_SIZE + length, extra, large, 2, *follows) &&
           npz_repeats(io_little32(local + 14), m->crc, *follows) && npz_repeats(local_size, m->size, *follows) &&
           npz_repeats(local_packed, packed, *follows) && io_little16(local + 8) == m->method &&
           !(io_little16(local + 6) & NPZ_ENCRYPTED);
}

/* Check sum and sizes behind the data, with or without a signature, in 32 or in 64 bits: one of these must agree. */
IO_FN bool npz_read_descriptor(npz_span z, uint64_t limit, npz_member *m)
{
    for (int way = 0; way < 4; way++) {
        const uint64_t sign = way & 1 ? 4 : 0, wide = way & 2 ? 8 : 4;
        const unsigned char *at = z.bytes + m->end + sign;
        if (!npz_within(m->end, sign + 4 + 2 * wide, limit)) continue;
        if (sign && io_little32(at - sign) != NPZ_DESCRIPTOR) continue;
        if (io_little32(at) != m->crc || io_little(at + 4, (int)wide) != m->end - m->start ||
            io_little(at + 4 + wide, (int)wide) != m->size)
            continue;
        m->after = m->end + sign + 4 + 2 * wide;
        return true;
    }
    return false;
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
    bool follows = false;
    if (!npz_read_extra(entry + NPZ_ENTRY_SIZE + length, extra, large, 3, false))
        return io_fail(why, name, "member '%.128s' has broken zip64 sizes", m->name);
    if (io_little16(entry + 34)) return npz_parts(name, why);
    if (io_little16(entry + 8) & NPZ_ENCRYPTED) return io_fail(why, name, "member '%.128s' is encrypted", m->name);
    if (m->method != NPZ_STORED && m->method != NPZ_DEFLATED)
        return io_fail(why, name, "member '%.128s' is compressed by method %d; stored and deflated ones are read",
                       m->name, m->method);
    if (!npz_read_local(z, limit, entry, m, packed))
        return io_fail(why, name, "member '%.128s' is not where the directory says, or does not fit", m->name);
    if (m->method == NPZ_STORED ? m->size != packed : m->size / NPZ_RATIO > packed)
        return io_fail(why, name, "member '%.128s' claims %llu bytes but has %llu to hold them", m->name,
                       (unsigned long long)m->size, (unsigned long long)packed);
    if (!npz_check_local(z, m, packed, &follows))
        return io_fail(why, name, "member '%.128s' has a header that disagrees with the directory", m->name);
    if (follows && !npz_read_descriptor(z, limit, m))
        return io_fail(why, name, "member '%.128s' has no descriptor behind its data that agrees with the directory",
                       m->name);
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
        ok = list[i - 1]->after <= list[i]->at ||
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
    npz_directory d = { 0, 0, 0, 0 };
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
    if (at != end) return io_fail(why, name, "its directory goes on after the %d members that it counts", file->count);
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

#endif /* IO_NPZ_DIRECTORY_H */

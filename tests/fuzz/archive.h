/* archive.h - builds .npz archives record by record, after APPNOTE: all of their ways that are true.
 * SPDX-License-Identifier: MIT
 *
 * Stored and deflated members, sizes in 32 bits or in zip64's field, in the header or behind the data in each of four
 * descriptors, foreign extra fields, comments (that look like end records, too), and zip64 end records where nothing
 * asks for them. Included before: io/npz.h. Defined before: below, one_in.
 */
#ifndef FUZZ_ARCHIVE_H
#define FUZZ_ARCHIVE_H

#include <assert.h>

enum { ROOM = 1 << 16, MEMBERS = 5, DATA = 4096 };

typedef struct bytes {
    unsigned char at[ROOM];
    size_t size;
} bytes;

static inline void put(bytes *b, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) {
        assert(b->size < ROOM);
        b->at[b->size++] = (unsigned char)(value >> 8 * i);
    }
}

static inline void put_all(bytes *b, const void *from, size_t size)
{
    assert(b->size + size <= ROOM);
    memcpy(b->at + b->size, from, size);
    b->size += size;
}

typedef struct member {
    char name[40];             /* with ".npy" */
    unsigned char array[DATA]; /* the .npy file */
    size_t array_size, packed_size;
    unsigned char packed[DATA + 1024];
    int method, descriptor;               /* 0: none; 1 + (signature) + 2 (64 bits) */
    bool wide_entry, wide_local, foreign; /* zip64's field; another field */
    uint32_t crc;
    uint64_t told_size, told_packed, told_at; /* what the directory says */
    uint32_t told_crc;
    size_t at, header; /* of the local header, and its bytes */
} member;

typedef struct plan {
    int members;
    member member[MEMBERS];
    bool wide_end;
    unsigned char comment[400];
    size_t comment_size;
} plan;

static inline void draw_array(member *m, int number)
{
    static const char *const type[] = { "|u1", "<i2", "<f4", "<f8", "|b1" };
    const char *t = type[below(5)];
    const bool zeros = one_in(3);
    int64_t shape[3];
    const int rank = below(4);
    char header[NPY_HEADER];
    for (int i = 0; i < rank; i++) shape[i] = below(rank == 3 ? 6 : 12);
    const size_t start = npy_header(header, t, rank, shape), data = npy_bytes(t, rank, shape);
    assert(start + data <= DATA);
    memcpy(m->array, header, start);
    for (size_t i = 0; i < data && !zeros; i++) m->array[start + i] = (unsigned char)below(t[1] == 'b' ? 2 : 256);
    m->array_size = start + data;
    m->crc = (uint32_t)crc32(0, m->array, (uInt)m->array_size);
    static const char *const name[] = { "x", "layer.0/w", "\xc3\xa4", "a b", "../x", "UPPER", "x.npy" };
    snprintf(m->name, sizeof m->name, "%s%d.npy", name[below(7)], number);
}

static inline void pack(member *m)
{
    z_stream s;
    memset(&s, 0, sizeof s);
    if (m->method == NPZ_STORED) {
        memcpy(m->packed, m->array, m->packed_size = m->array_size);
        return;
    }
    assert(deflateInit2(&s, one_in(2) ? 9 : below(10), Z_DEFLATED, -MAX_WBITS, 8, below(5)) == Z_OK);
    s.next_in = m->array;
    s.avail_in = (uInt)m->array_size;
    s.next_out = m->packed;
    s.avail_out = sizeof m->packed;
    assert(deflate(&s, Z_FINISH) == Z_STREAM_END);
    m->packed_size = sizeof m->packed - s.avail_out;
    deflateEnd(&s);
}

/* `modest`: without what Python takes for the end of an archive. */
static inline void draw_plan(plan *p, bool modest)
{
    memset(p, 0, sizeof *p);
    p->members = one_in(20) ? 0 : 1 + below(MEMBERS);
    for (int i = 0; i < p->members; i++) {
        member *m = &p->member[i];
        m->method = one_in(2) ? NPZ_DEFLATED : NPZ_STORED;
        m->descriptor = one_in(3) ? 1 + below(4) : 0;
        m->wide_entry = one_in(3);
        m->wide_local = one_in(3);
        m->foreign = one_in(3);
        draw_array(m, i);
        pack(m);
        m->told_size = m->array_size;
        m->told_packed = m->packed_size;
        m->told_crc = m->crc;
    }
    p->wide_end = one_in(3);
    if (!one_in(3)) return;
    p->comment_size = (size_t)below(sizeof p->comment);
    for (size_t i = 0; i < p->comment_size; i++) p->comment[i] = (unsigned char)below(256);
    if (!modest && one_in(2) && p->comment_size >= 40) /* an end record whose comment would not fit */
        memcpy(p->comment + below(18), "PK\5\6\0\0\0\0\1\0\1\0", 12);
}

/* zip64's field, and one that nobody knows. */
static inline void put_extra(bytes *b, const member *m, bool wide, bool with_place)
{
    if (m->foreign) put(b, 0x7075, 2), put(b, 5, 2), put_all(b, "extra", 5);
    if (!wide) return;
    put(b, NPZ_SIZES_IN_EXTRA, 2);
    put(b, with_place ? 24 : 16, 2);
    put(b, with_place ? m->told_size : m->descriptor ? 0 : m->array_size, 8);
    put(b, with_place ? m->told_packed : m->descriptor ? 0 : m->packed_size, 8);
    if (with_place) put(b, m->told_at, 8);
}

static inline size_t extra_size(const member *m, bool wide, bool with_place)
{
    return (m->foreign ? 9u : 0u) + (wide ? with_place ? 28u : 20u : 0u);
}

/* What local header and entry have in common, up to the length of the extra field. */
static inline void put_common(bytes *b, const member *m, bool entry, bool wide)
{
    const bool later = m->descriptor && !entry;
    put(b, 45, 2);
    put(b, 0x800 | (m->descriptor ? NPZ_SIZES_FOLLOW : 0), 2);
    put(b, (uint64_t)m->method, 2);
    put(b, 0, 2);
    put(b, 0x21, 2);
    put(b, entry ? m->told_crc : later ? 0 : m->crc, 4);
    put(b, wide ? UINT32_MAX : entry ? m->told_packed : later ? 0 : m->packed_size, 4);
    put(b, wide ? UINT32_MAX : entry ? m->told_size : later ? 0 : m->array_size, 4);
    put(b, strlen(m->name), 2);
    put(b, extra_size(m, wide, entry), 2);
}

static inline void put_member(bytes *b, member *m)
{
    m->told_at = m->at = b->size;
    put(b, NPZ_LOCAL, 4);
    put_common(b, m, false, m->wide_local);
    put_all(b, m->name, strlen(m->name));
    put_extra(b, m, m->wide_local, false);
    m->header = b->size - m->at;
    put_all(b, m->packed, m->packed_size);
    if (!m->descriptor) return;
    const int way = m->descriptor - 1, width = way & 2 ? 8 : 4;
    if (way & 1) put(b, NPZ_DESCRIPTOR, 4);
    put(b, m->crc, 4);
    put(b, m->packed_size, width);
    put(b, m->array_size, width);
}

static inline void put_entry(bytes *b, const member *m)
{
    const int comment = m->foreign ? 4 : 0;
    put(b, NPZ_ENTRY, 4);
    put(b, 45, 2);
    put_common(b, m, true, m->wide_entry);
    put(b, (uint64_t)comment, 2);
    put(b, 0, 8);
    put(b, m->wide_entry ? UINT32_MAX : m->told_at, 4);
    put_all(b, m->name, strlen(m->name));
    put_extra(b, m, m->wide_entry, true);
    put_all(b, "note", (size_t)comment);
}

/* Where things are, for whoever wants to spoil them. */
typedef struct places {
    size_t directory, end64, locator, end;
} places;

static inline void put_end(bytes *b, const plan *p, places *at)
{
    const size_t size = b->size - at->directory;
    const bool wide = p->wide_end, ones = wide && one_in(2);
    at->end64 = b->size;
    if (wide) {
        put(b, NPZ_END64, 4), put(b, NPZ_END64_SIZE - 12, 8), put(b, 45, 2), put(b, 45, 2), put(b, 0, 8);
        put(b, (uint64_t)p->members, 8), put(b, (uint64_t)p->members, 8), put(b, size, 8), put(b, at->directory, 8);
        at->locator = b->size;
        put(b, NPZ_LOCATOR, 4), put(b, 0, 4), put(b, at->end64, 8), put(b, 1, 4);
    }
    at->end = b->size;
    put(b, NPZ_END, 4), put(b, 0, 4);
    put(b, ones ? UINT16_MAX : (uint64_t)p->members, 2), put(b, ones ? UINT16_MAX : (uint64_t)p->members, 2);
    put(b, ones ? UINT32_MAX : size, 4), put(b, ones ? UINT32_MAX : at->directory, 4);
    put(b, p->comment_size, 2);
    put_all(b, p->comment, p->comment_size);
}

/* The local parts; then whatever is changed about the entries; then those. */
static inline void build_members(bytes *b, plan *p)
{
    b->size = 0;
    for (int i = 0; i < p->members; i++) put_member(b, &p->member[i]);
}

static inline places build_directory(bytes *b, const plan *p)
{
    places at = { b->size, 0, 0, 0 };
    for (int i = 0; i < p->members; i++) put_entry(b, &p->member[i]);
    put_end(b, p, &at);
    return at;
}

#endif /* FUZZ_ARCHIVE_H */

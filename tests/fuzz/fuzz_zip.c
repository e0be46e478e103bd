/* fuzz_zip.c - archives built record by record: what is true is read to the last bit, and each lie is refused.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_zip [count] [seed]                default: 10000 archives, 500000 with TRN_TEST_LEVEL=2; seed 1
 *     fuzz_zip --write FOLDER count seed     true archives as FOLDER/0.npz and so on, and what is in them on stdout
 *
 * archive.h builds them. Then one lie: sizes, sums, places, counts, names, fields or records that disagree, members
 * that share bytes or names, data that breaks off or bursts. A lie that reaches memory must not take more of it than
 * the archive may ask for: malloc is watched.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#include "twin/cases.h"

#if defined(HAVE_ZLIB)

#include "fuzz/long.h"

/* ---- memory that reading takes ---- */

static size_t largest;

static void *watched_malloc(size_t size)
{
    if (size > largest) largest = size;
    return malloc(size);
}
#define malloc(size) watched_malloc(size)
#include "io/npz.h"
#undef malloc

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

#include "fuzz/archive.h"

/* ---- reading ---- */

typedef struct reading {
    npz_file z;
    bool open;
    char why[IO_WHY];
} reading;

static void check_sentence(const char *why)
{
    assert(strncmp(why, "fuzz", 4) == 0 && strlen(why) > 12);
    for (const char *c = why; *c; c++) assert((unsigned char)*c >= 0x20);
}

static void read_archive(reading *r, const bytes *b)
{
    unsigned char *copy = (unsigned char *)malloc(b->size); /* a block that npz_read takes over; its end is watched */
    assert(copy);
    memcpy(copy, b->at, b->size);
    const io_map map = { copy, b->size, false };
    r->why[0] = 0;
    largest = 0;
    r->open = npz_read(map, "fuzz", &r->z, r->why);
    if (!r->open) check_sentence(r->why);
}

/* Memory: an array's bytes, which its header told, or 1 MiB for that header; a directory its entries. */
static bool load(reading *r, int i, npy_array *a)
{
    largest = 0;
    const bool ok = npz_load(&r->z, i, a, r->why);
    if (!ok) check_sentence(r->why);
    const npz_member *m = &r->z.member[i];
    const size_t most = ok ? (size_t)m->size + 1 : (size_t)(m->end - m->start) * NPZ_RATIO + NPY_MAX_HEADER + 1024;
    assert(largest <= (most > NPY_MAX_HEADER + 12 ? most : NPY_MAX_HEADER + 12));
    return ok;
}

/* Is this what the member held before it was spoilt? */
static bool is_true(const npy_array *a, const member *m)
{
    const size_t data = (size_t)a->elements * (size_t)a->item_bytes;
    return data <= m->array_size && memcmp(a->data, m->array + m->array_size - data, data) == 0;
}

static void check_true(const bytes *b, const plan *p)
{
    reading r;
    read_archive(&r, b);
    if (!r.open) fprintf(stderr, "%s\n", r.why), abort();
    assert(r.z.count == p->members);
    for (int i = 0; i < p->members; i++) {
        const member *m = &p->member[i];
        npy_array a;
        assert(strncmp(r.z.member[i].name, m->name, strlen(m->name) - 4) == 0 && r.z.member[i].array);
        if (!load(&r, i, &a)) fprintf(stderr, "%s\n", r.why), abort();
        assert(is_true(&a, m));
        npy_free(&a);
    }
    npz_close(&r.z);
}

/* True when the archive, or member i of it, was refused; or is what it was, where a bit of its deflated data that
 * nobody reads was spoilt. */
static bool refused(const bytes *b, int i, const member *was, bool may_be_true)
{
    reading r;
    npy_array a;
    read_archive(&r, b);
    bool no = !r.open;
    if (r.open && i < r.z.count && !(no = !load(&r, i, &a))) {
        no = may_be_true && is_true(&a, was);
        npy_free(&a);
    }
    npz_close(&r.z);
    return no;
}

/* ---- lies ---- */

static uint64_t other(uint64_t value)
{
    static const uint64_t extreme[] = { 0,
                                        1,
                                        0x7fffffff,
                                        0xfffffffe,
                                        0xffffffff,
                                        0x100000000,
                                        UINT64_C(1) << 62,
                                        UINT64_C(1) << 63,
                                        UINT64_MAX - 1,
                                        UINT64_MAX };
    const uint64_t x = one_in(2) ? value + (uint64_t)below(9) - 4 : extreme[below(10)];
    return x == value ? value + 1 : x;
}

static void poke(bytes *b, size_t at, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) b->at[at + (size_t)i] = (unsigned char)(value >> 8 * i);
}

static uint64_t peek(const bytes *b, size_t at, int width) { return io_little(b->at + at, width); }

/* A field becomes something else; of 32 bits, so do all ones only where they have a meaning of their own. */
static void lie_at(bytes *b, size_t at, int width)
{
    const uint64_t mask = width == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * width) - 1, was = peek(b, at, width);
    uint64_t now = other(was) & mask;
    if (now == was || (now == mask && width < 8)) now = was ^ 1;
    poke(b, at, now, width);
}

/* Deflate at its densest: megabytes of zeros behind a header that tells of few, or of more than there are. */
static void burst(plan *p, member *m)
{
    (void)p;
    enum { MANY = 1 << 20 };
    static unsigned char zeros[MANY];
    const int64_t told[1] = { one_in(2) ? 8 : (int64_t)1 << 40 };
    char header[NPY_HEADER];
    z_stream s;
    const size_t start = npy_header(header, "|u1", 1, told);
    memset(&s, 0, sizeof s);
    memset(zeros, 0, start);
    memcpy(zeros, header, start);
    assert(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    s.next_in = zeros;
    s.avail_in = MANY;
    s.next_out = m->packed;
    s.avail_out = sizeof m->packed;
    assert(deflate(&s, Z_FINISH) == Z_STREAM_END);
    m->method = NPZ_DEFLATED;
    m->packed_size = sizeof m->packed - s.avail_out;
    m->crc = (uint32_t)crc32(0, zeros, MANY);
    m->told_packed = m->packed_size;
    m->told_crc = m->crc;
    m->array_size = m->told_size = one_in(2) ? MANY : start + (size_t)told[0];
    deflateEnd(&s);
}

/* Of the same length, so that nothing but the names is wrong. */
static void repeat_name(plan *p, member *m)
{
    snprintf(m->name, sizeof m->name, "%s", p->members > 1 ? p->member[m == p->member].name : "\xff.npy");
}

static void spoil_data(plan *p, member *m)
{
    (void)p;
    m->packed[below((int)m->packed_size)] ^= (unsigned char)(1 << below(8));
}

/* The entry says something else than is there. Without zip64's field, all ones mean that it is missing. */
static void lie_in_entry(plan *p, member *m)
{
    switch (below(5)) {
    case 0: m->told_size = other(m->told_size); break;
    case 1: m->told_packed = other(m->told_packed); break;
    case 2: m->told_crc ^= 1u << below(32); break;
    case 3: m->told_at = other(m->told_at); break;
    default: /* a quine's way, and Fifield's: where another member lies, or inside of it */
        m->told_at = p->members > 1 ? p->member[m == p->member].at : m->at + 1;
        break;
    }
    if (m->told_size > UINT32_MAX || m->told_packed > UINT32_MAX || m->told_at > UINT32_MAX) m->wide_entry = true;
}

/* Fifield's bomb: a member whose stored data is the next member, header and all. Everything agrees, and both are there:
 * only the bytes are counted twice. */
static size_t member_bytes(const member *m)
{
    const int way = m->descriptor - 1;
    const size_t behind = m->descriptor ? 4 + (way & 1 ? 4u : 0u) + (way & 2 ? 16u : 8u) : 0;
    return NPZ_LOCAL_SIZE + strlen(m->name) + extra_size(m, m->wide_local, false) + m->packed_size + behind;
}

static void quote_next(plan *p, member *m)
{
    char header[NPY_HEADER];
    if (m == &p->member[p->members - 1]) {
        repeat_name(p, m);
        return;
    }
    const int64_t quoted[1] = { (int64_t)member_bytes(m + 1) };
    const size_t start = npy_header(header, "|u1", 1, quoted);
    m->method = NPZ_STORED;
    m->descriptor = 0;
    memcpy(m->packed, header, m->packed_size = start);
    m->array_size = m->told_size = m->told_packed = start + (size_t)quoted[0];
}

/* A whole archive, and where the entry of the member lies that is lied about. */
typedef struct scene {
    bytes *b;
    const plan *p;
    const member *m;
    places at;
    size_t entry;
} scene;

static void break_off(scene *s) { s->b->size -= 1 + (size_t)below(20) + s->p->comment_size; }

static void spoil_local(scene *s)
{
    static const size_t field[] = { 8, 26, 28 }; /* method, lengths of name and extra field */
    lie_at(s->b, s->m->at + field[below(3)], 2);
}

/* Sums and sizes: 0 and all ones are allowed to those that follow the data. */
static void spoil_repeated(scene *s)
{
    if (s->m->descriptor)
        poke(s->b, s->m->at + 14, s->m->crc ^ 0x10101010u, 4);
    else
        lie_at(s->b, s->m->at + 14 + 4 * (size_t)below(s->m->wide_local ? 1 : 3), 4);
}

static void spoil_parts(scene *s) { lie_at(s->b, s->at.end + 4 + 2 * (size_t)below(4), 2); }

static void spoil_directory(scene *s) { lie_at(s->b, s->at.end + (one_in(2) ? 12 : 16), 4); }

static void spoil_end64(scene *s)
{
    static const size_t field[] = { 4, 24, 32, 40, 48 };
    if (s->p->wide_end)
        lie_at(s->b, s->at.end64 + field[below(5)], 8);
    else
        break_off(s);
}

static void spoil_locator(scene *s)
{
    if (!s->p->wide_end)
        poke(s->b, s->at.end, 0, 4);
    else if (one_in(2))
        lie_at(s->b, s->at.locator + 8, 8);
    else
        lie_at(s->b, s->at.end64, 4);
}

/* zip64's field: too short, under another name, or not there. */
static void spoil_field(scene *s)
{
    const size_t field = s->entry + NPZ_ENTRY_SIZE + strlen(s->m->name) + (s->m->foreign ? 9 : 0);
    if (!s->m->wide_entry)
        poke(s->b, s->entry + 24, UINT32_MAX, 4);
    else if (one_in(2))
        poke(s->b, field + 2, (uint64_t)below(24), 2);
    else
        poke(s->b, field, 0x1234, 2);
}

static void spoil_name(scene *s)
{
    const size_t at = s->entry + NPZ_ENTRY_SIZE + (size_t)below((int)strlen(s->m->name));
    s->b->at[at] = one_in(2) ? 0 : 0xff;
}

static void spoil_descriptor(scene *s)
{
    const member *m = s->m;
    if (m->descriptor)
        lie_at(s->b, m->at + m->header + m->packed_size + ((m->descriptor - 1) & 1 ? 4 : 0), 4);
    else
        poke(s->b, m->at + 6, peek(s->b, m->at + 6, 2) | NPZ_SIZES_FOLLOW | NPZ_ENCRYPTED, 2);
}

/* Sizes and sum of what quote_next made, wherever they are told. */
static void quote_sums(scene *s)
{
    const member *m = s->m;
    if (m == &s->p->member[s->p->members - 1]) return;
    const size_t at = m->at + m->header, field = m->at + NPZ_LOCAL_SIZE + strlen(m->name) + (m->foreign ? 9 : 0) + 4;
    const uint32_t crc = (uint32_t)crc32(0, s->b->at + at, (uInt)m->array_size);
    poke(s->b, m->at + 14, crc, 4);
    poke(s->b, s->entry + 16, crc, 4);
    if (m->wide_local)
        poke(s->b, field + 8, m->array_size, 8);
    else
        poke(s->b, m->at + 18, m->array_size, 4);
}

/* Fewer members than the directory has. */
static void hide_last(scene *s)
{
    const uint64_t fewer = (uint64_t)s->p->members - 1;
    poke(s->b, s->at.end + 8, fewer, 2);
    poke(s->b, s->at.end + 10, fewer, 2);
    if (!s->p->wide_end) return;
    poke(s->b, s->at.end64 + 24, fewer, 8);
    poke(s->b, s->at.end64 + 32, fewer, 8);
}

/* Bytes between the directory and its end record. */
static void open_gap(scene *s)
{
    bytes *b = s->b;
    const size_t from = s->at.end64;
    put(b, 0, 4);
    memmove(b->at + from + 4, b->at + from, b->size - from - 4);
    poke(b, from, 0, 4);
    if (s->p->wide_end) poke(b, s->at.locator + 4 + 8, from + 4, 8);
}

/* A comment that is an end record itself, of an archive without members: as good as the first. */
static void second_end(scene *s)
{
    bytes *b = s->b;
    const size_t comment = b->size - s->at.end - NPZ_END_SIZE;
    poke(b, s->at.end + 20, comment + NPZ_END_SIZE, 2);
    const size_t at = b->size;
    put(b, NPZ_END, 4), put(b, 0, 8), put(b, 0, 4), put(b, at, 4), put(b, 0, 2);
}

/* What is wrong before members are built, before the directory is, or with the whole. */
static const struct {
    const char *name;
    void (*drawn)(plan *p, member *m);
    void (*told)(plan *p, member *m);
    void (*built)(scene *s);
    bool may_be_true; /* a bit may be one that nobody reads */
} lies[] = {
    { "burst", burst, NULL, NULL, false },
    { "repeated name", repeat_name, NULL, NULL, false },
    { "spoilt data", spoil_data, NULL, NULL, true },
    { "entry", NULL, lie_in_entry, NULL, false },
    { "broken off", NULL, NULL, break_off, false },
    { "local header", NULL, NULL, spoil_local, false },
    { "repeated sizes", NULL, NULL, spoil_repeated, false },
    { "parts", NULL, NULL, spoil_parts, false },
    { "directory", NULL, NULL, spoil_directory, false },
    { "zip64 end", NULL, NULL, spoil_end64, false },
    { "locator", NULL, NULL, spoil_locator, false },
    { "zip64 field", NULL, NULL, spoil_field, false },
    { "name", NULL, NULL, spoil_name, false },
    { "descriptor", NULL, NULL, spoil_descriptor, false },
    { "second end", NULL, NULL, second_end, false },
    { "quoted member", quote_next, NULL, quote_sums, false },
    { "hidden member", NULL, NULL, hide_last, false },
    { "gap", NULL, NULL, open_gap, false },
};
enum { LIES = sizeof lies / sizeof lies[0] };

static size_t entry_of(const bytes *b, size_t at, int number)
{
    while (number--) at += NPZ_ENTRY_SIZE + peek(b, at + 28, 2) + peek(b, at + 30, 2) + peek(b, at + 32, 2);
    return at;
}

/* Member i must not be read; the whole archive may be refused instead. */
static void build_lie(bytes *b, plan *p, int i, int lie)
{
    scene s = { b, p, &p->member[i], { 0, 0, 0, 0 }, 0 };
    if (lies[lie].drawn) lies[lie].drawn(p, &p->member[i]);
    build_members(b, p);
    if (lies[lie].told) lies[lie].told(p, &p->member[i]);
    s.at = build_directory(b, p);
    s.entry = entry_of(b, s.at.directory, i);
    if (lies[lie].built) lies[lie].built(&s);
}

static long told_lies, told_true;

static void try_case(void)
{
    static bytes b;
    static plan p, spoilt;
    draw_plan(&p, false);
    spoilt = p;
    build_members(&b, &p);
    build_directory(&b, &p);
    check_true(&b, &p);
    told_true++;
    if (!p.members) return;
    const int i = below(p.members), lie = below(LIES);
    build_lie(&b, &spoilt, i, lie);
    told_lies++;
    if (refused(&b, i, &p.member[i], lies[lie].may_be_true)) return;
    fprintf(stderr, "a lie was believed: %s, of member %d of %d\n", lies[lie].name, i, p.members);
    abort();
}

/* For other readers: number, CRC and size of the .npy, name. */
static int write_archives(const char *folder, long count, uint64_t seed)
{
    static bytes b;
    static plan p;
    rng = seed;
    for (long n = 0; n < count; n++) {
        char path[512];
        draw_plan(&p, true);
        build_members(&b, &p);
        build_directory(&b, &p);
        snprintf(path, sizeof path, "%s/%ld.npz", folder, n);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(b.at, 1, b.size, f) != b.size || fclose(f) != 0) return 1;
        for (int i = 0; i < p.members; i++)
            printf("%ld %d %08x %zu %s\n", n, i, (unsigned)p.member[i].crc, p.member[i].array_size, p.member[i].name);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "--write") == 0)
        return write_archives(argv[2], atol(argv[3]), strtoull(argv[4], NULL, 10));
    fuzzing_start(argc, argv, 10000, 500000);
    while (fuzzing_next(&rng)) try_case();
    const long cases = fuzzing_end();
    printf("%ld true archives were read, %ld lies refused\n", told_true, told_lies);
    return cases < 100 || told_lies > cases / 2 ? 0 : 1;
}

#else

int main(void)
{
    printf("zlib is not installed: archives are not read\n");
    return 0;
}

#endif

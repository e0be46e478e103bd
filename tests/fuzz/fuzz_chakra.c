/* fuzz_chakra.c - random files as execution traces of Chakra: no crash, no read outside the file, one sentence for each
 * refusal, and what is accepted has its names, its waits and an order.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_chakra [count] [seed]        default: 20000 files, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Files are written here byte by byte, without protobuf-c. Every eighth is good and must be accepted; the others are
 * spoilt: a number becomes another, lengths lie, ranges are copied, bits flip, the end is cut off.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#if defined(HAVE_PROTOBUFC) && defined(HAVE_ZLIB)

#include "fuzz/long.h"
#include "fuzz/spoil.h"
#include "io/chakra.h"

enum { ROOM = 1 << 15 };
static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

/* ---- good files ---- */

typedef struct bytes {
    unsigned char at[ROOM];
    size_t size;
} bytes;

static void put(bytes *b, const void *from, size_t size)
{
    assert(b->size + size <= ROOM);
    memcpy(b->at + b->size, from, size);
    b->size += size;
}

static void put_number(bytes *b, uint64_t n)
{
    for (;; n >>= 7) {
        const unsigned char c = (unsigned char)((n & 127) | (n > 127 ? 128 : 0));
        put(b, &c, 1);
        if (n < 128) return;
    }
}

static void put_field(bytes *b, int field, uint64_t n)
{
    put_number(b, (uint64_t)field << 3);
    put_number(b, n);
}

static void put_block(bytes *b, int field, const void *from, size_t size)
{
    if (field) put_number(b, (uint64_t)field << 3 | 2);
    put_number(b, size);
    put(b, from, size);
}

static void put_attribute(bytes *node, const char *name, int field, uint64_t n)
{
    static bytes a;
    a.size = 0;
    put_block(&a, 1, name, strlen(name));
    put_field(&a, field, n);
    put_block(node, 10, a.at, a.size);
}

static void put_group(bytes *node, const char *name)
{
    static bytes a;
    a.size = 0;
    put_block(&a, 1, "pg_name", 7);
    put_block(&a, 29, name, strlen(name));
    put_block(node, 10, a.at, a.size);
}

/* Waits, packed or one by one, for nodes before it. */
static void put_waits(bytes *node, int field, int number)
{
    static bytes list;
    list.size = 0;
    const bool packed = one_in(2);
    for (int left = number ? below(4) : 0; left > 0; left--) {
        const uint64_t id = 3 * (uint64_t)below(number) + 1;
        if (packed)
            put_number(&list, id);
        else
            put_field(node, field, id);
    }
    if (list.size) put_block(node, field, list.at, list.size);
}

static void good_node(bytes *node, int number)
{
    static const char *const name[] = { "", "gate, up", "all_reduce", "caf\xc3\xa9" };
    static const int kind[] = { CHAKRA_METADATA, CHAKRA_WORK, CHAKRA_SEND, CHAKRA_RECEIVE, CHAKRA_COLLECTIVE };
    const int type = kind[below(5)];
    const char *text = name[below(4)];
    put_field(node, 1, 3 * (uint64_t)number + 1);
    put_block(node, 2, text, strlen(text));
    put_field(node, 3, (uint64_t)type);
    put_waits(node, 4, number);
    put_waits(node, 5, number);
    put_field(node, 7, (uint64_t)below(1000));
    put_attribute(node, "is_cpu_op", 27, type == CHAKRA_WORK && one_in(3));
    if (type == CHAKRA_WORK && one_in(2)) put_attribute(node, "num_ops", 9, cases_next(&rng) >> 8);
    if (type == CHAKRA_WORK && one_in(2)) put_attribute(node, "tensor_size", 13, cases_next(&rng) >> 8);
    if (type >= CHAKRA_SEND) put_attribute(node, "comm_size", one_in(2) ? 9 : 13, cases_next(&rng) >> below(50) >> 8);
    if (type == CHAKRA_SEND) put_attribute(node, "comm_dst", 7, (uint64_t)below(8));
    if (type == CHAKRA_RECEIVE) put_attribute(node, "comm_src", 11, (uint64_t)below(8));
    if (type == CHAKRA_COLLECTIVE) put_attribute(node, "comm_type", 9, (uint64_t)below(CHAKRA_COLLECTIVES));
    if (type == CHAKRA_COLLECTIVE && one_in(3)) put_group(node, one_in(2) ? "0" : "12");
    if (one_in(4)) put_attribute(node, "rf_id", 9, (uint64_t)below(9));
}

static void good_file(bytes *file)
{
    static bytes part;
    part.size = file->size = 0;
    if (!one_in(4)) put_block(&part, 1, "0.0.4", 5);
    put_block(file, 0, part.at, part.size);
    for (int i = 0, nodes = below(12); i < nodes; i++) {
        part.size = 0;
        good_node(&part, i);
        put_block(file, 0, part.at, part.size);
    }
}

/* ---- what must hold ---- */

static void check_trace(const chakra_trace *t)
{
    bool seen[ROOM] = { false };
    assert(t->count <= ROOM);
    for (int64_t i = 0; i < t->count; i++) {
        const chakra_node *n = &t->node[t->order[i]];
        assert(n->name && n->type > CHAKRA_INVALID && n->type < CHAKRA_TYPES && !seen[t->order[i]]);
        assert(n->type != CHAKRA_COLLECTIVE || n->collective < CHAKRA_COLLECTIVES);
        assert(n->bytes <= CHAKRA_MOST && n->flops <= CHAKRA_MOST && n->comm_bytes <= CHAKRA_MOST);
        for (int64_t k = n->first; k < n->first + n->waits; k++) assert(seen[t->wait[k]]);
        seen[t->order[i]] = true;
    }
}

static bool try_file(const unsigned char *from, size_t size, char *why)
{
    chakra_trace t;
    unsigned char *copy = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(copy);
    if (size) memcpy(copy, from, size);
    errno = 0;
    const bool ok = chakra_parse("fuzz", copy, size, &t, why);
    free(copy);
    if (ok) check_trace(&t);
    if (!ok) assert(strncmp(why, "fuzz: ", 6) == 0 && strlen(why) > 12 && !t.node);
    for (const char *c = why; !ok && *c; c++) assert((unsigned char)*c >= 0x20);
    chakra_free(&t);
    return ok;
}

int main(int argc, char **argv)
{
    static bytes file;
    long accepted = 0, of = 0;
    char why[IO_WHY];
    static const char *const token[] = { "\xff\xff\xff\xff\x0f",
                                         "\x52\x0d\x0a\x09"
                                         "comm_type",
                                         "\x08\x01",
                                         "\x28\x04",
                                         "\x1f\x8b\x08",
                                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" };
    fuzzing_start(argc, argv, 20000, 1000000);
    while (fuzzing_next(&rng)) {
        good_file(&file);
        if (fuzzing.number % 8 == 0) {
            if (!try_file(file.at, file.size, why)) return printf("a good file is refused: %s\n", why), 1;
            continue;
        }
        for (int wounds = 1 + below(3); wounds > 0 && file.size; wounds--)
            file.size = spoil(&rng, (char *)file.at, file.size, token[below(6)]);
        of++;
        accepted += try_file(file.at, file.size, why);
    }
    const long count = fuzzing_end();
    printf("%ld files, of %ld spoilt ones %ld accepted\n", count, of, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > of / 50 && accepted < of / 2) ? 0 : 1;
}

#else

int main(void)
{
    printf("protobuf-c or zlib is not installed: traces are not read\n");
    return 0;
}

#endif

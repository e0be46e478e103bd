/* slabs.h - memory of tiles that wait outside: many blocks of a few sizes, which come and go.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: cuts blocks of one size from slabs of 8 MiB, which pool.h gives in huge pages and takes back when no block of
 *     one is left; each block of malloc would be found and cleared page by page. Larger blocks are the pool's own.
 *     Callers hold the interpreter's lock.
 * DOES NOT: clear memory.
 */
#ifndef TRNPY_SLABS_H
#define TRNPY_SLABS_H

#include "pool.h"

enum { SLAB_STEP = 1 << 12, SLAB_LARGEST = 1 << 20, SLAB_SIZES = SLAB_LARGEST / SLAB_STEP, SLAB_LINE = 64 };
static const size_t SLAB_BYTES = 8 << 20;

typedef struct slab {
    struct slab *next, **link; /* those of this size that have a block left; link: null while it has none */
    void *unused;              /* given back: each begins with the next one */
    size_t size, cut, live;    /* bytes of a block; cut so far, of the slab; blocks that somebody has */
} slab;

static slab *slabs[SLAB_SIZES + 1];

static size_t slab_index(size_t bytes) { return (bytes + SLAB_STEP - 1) / SLAB_STEP; }

static void slab_list(slab *s)
{
    slab **const list = &slabs[slab_index(s->size)];
    s->next = *list;
    s->link = list;
    if (*list) (*list)->link = &s->next;
    *list = s;
}

static void slab_unlist(slab *s)
{
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    s->link = NULL;
}

static slab *slab_new(size_t size)
{
    slab *s = (slab *)pool_take(SLAB_BYTES);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->size = size;
    s->cut = SLAB_LINE;
    slab_list(s);
    return s;
}

/* A block lies a line behind the address of its slab. */
static char *slab_block(slab *s)
{
    char *block = (char *)s->unused;
    if (block) {
        memcpy(&s->unused, block, sizeof s->unused);
    } else {
        block = (char *)s + s->cut + SLAB_LINE;
        s->cut += s->size + SLAB_LINE;
        memcpy(block - SLAB_LINE, &s, sizeof(slab *));
    }
    s->live++;
    if (!s->unused && s->cut + s->size + SLAB_LINE > SLAB_BYTES) slab_unlist(s);
    return block;
}

/* A block of at least so many bytes, with anything in it, or null. */
static void *slab_take(size_t bytes)
{
    const size_t size = slab_index(bytes) * SLAB_STEP;
    if (!size || size > SLAB_LARGEST) return pool_take(bytes);
    slab *s = slabs[slab_index(bytes)];
    if (!s) s = slab_new(size);
    return s ? slab_block(s) : NULL;
}

/* Back, with the bytes that it was taken with. */
static void slab_give(void *block, size_t bytes)
{
    slab *s;
    if (!block || !bytes || slab_index(bytes) > SLAB_SIZES) {
        pool_give(block, bytes);
        return;
    }
    memcpy(&s, (char *)block - SLAB_LINE, sizeof(slab *));
    memcpy(block, &s->unused, sizeof s->unused);
    s->unused = block;
    if (!s->link) slab_list(s);
    if (--s->live) return;
    slab_unlist(s);
    pool_give(s, SLAB_BYTES);
}

#endif /* TRNPY_SLABS_H */

/* pool.h - memory that is used again: a core's, and that of tensors in HBM.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: gives blocks that an earlier run has given back, whose pages the system need not find and clear again; those
 *     that fill huge pages begin at a multiple of 2 MiB and ask for them. Callers hold the interpreter's lock.
 * DOES NOT: clear memory.
 */
#ifndef TRNPY_POOL_H
#define TRNPY_POOL_H

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { POOL_BLOCKS = 32, POOL_STEP = 1 << 16, POOL_HUGE = 2 << 20 };
static const size_t POOL_LARGE = 1 << 19, POOL_MOST = (size_t)1 << 28; /* bytes that go into huge pages; kept at most */

typedef struct pool_block {
    void *data;
    size_t bytes;
} pool_block;

static pool_block pool[POOL_BLOCKS];
static int pool_blocks;
static size_t pool_bytes;

static size_t pool_steps(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

/* Huge pages for what fills them: of others three quarters might be cleared for nobody. */
static bool pool_is_large(size_t bytes)
{
    return bytes >= POOL_LARGE && pool_steps(bytes, POOL_HUGE) - bytes <= bytes / 4;
}

/* What a block of so many bytes takes. */
static size_t pool_size(size_t bytes)
{
    return pool_steps(bytes, pool_is_large(bytes) ? POOL_HUGE : bytes >= POOL_STEP ? POOL_STEP : 64);
}

static void *pool_new(size_t size)
{
    void *data = NULL;
    if (size % POOL_HUGE || !size) return malloc(size ? size : 1);
    if (posix_memalign(&data, POOL_HUGE, size)) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(data, size, MADV_HUGEPAGE); /* a wish */
#endif
    return data;
}

/* A block of at least so many bytes, with anything in it, or null. */
static void *pool_take(size_t bytes)
{
    const size_t size = pool_size(bytes);
    for (int i = pool_blocks - 1; i >= 0; i--) {
        if (pool[i].bytes != size) continue;
        void *data = pool[i].data;
        pool[i] = pool[--pool_blocks];
        pool_bytes -= size;
        return data;
    }
    return pool_new(size);
}

/* Back, with the bytes that it was taken with. Where there are too many the oldest goes. */
static void pool_give(void *data, size_t bytes)
{
    const size_t size = pool_size(bytes);
    if (!data) return;
    if (size < POOL_STEP || size > POOL_MOST) {
        free(data);
        return;
    }
    while (pool_blocks == POOL_BLOCKS || pool_bytes + size > POOL_MOST) {
        pool_bytes -= pool[0].bytes;
        free(pool[0].data);
        memmove(pool, pool + 1, (size_t)--pool_blocks * sizeof *pool);
    }
    pool[pool_blocks].data = data;
    pool[pool_blocks++].bytes = size;
    pool_bytes += size;
}

#endif /* TRNPY_POOL_H */

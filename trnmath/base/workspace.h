/* base/workspace.h - what a call works in, off the stack: a piece of memory for each of its threads.
 * A room of all calls that need more than a small stack has. SPDX-License-Identifier: MIT
 *
 * DOES: one allocation for all threads of a call, in pieces on cache lines, before anything is written.
 * DOES NOT: keep memory from one call to the next.
 *
 * KNOWN FROM: measurements: threads of musl have 128 KiB of stack, and a frame that is larger than what is left may
 *     reach past the guard page.
 */
#ifndef TRNI_BASE_WORKSPACE_H
#define TRNI_BASE_WORKSPACE_H

#include "threads.h"

enum { TRNI_WORKSPACE_ALIGN = 64 };

typedef struct trni_workspace {
    void *memory;
    unsigned char *first;
    size_t bytes; /* of one piece */
} trni_workspace;

TRNI_DRIVER trn_status trni_workspace_open(trni_workspace *w, size_t bytes, int threads, trn_error *error)
{
    const size_t align = TRNI_WORKSPACE_ALIGN;
    w->first = NULL; /* nobody uses it after a failure, but not every compiler sees that */
    w->bytes = (bytes + align - 1) / align * align;
    w->memory = malloc(w->bytes * (size_t)threads + align);
    if (!w->memory)
        return trni_fail(error, TRN_ENOSPC, "could not allocate %zu bytes to work in", w->bytes * (size_t)threads);
    w->first = (unsigned char *)w->memory + (0 - (uintptr_t)w->memory) % align;
    return TRN_OK;
}

/* Thread 0's outside of parallel regions; inside, trni_thread() knows whose. */
TRNI_FN void *trni_workspace_of(const trni_workspace *w, int thread) { return w->first + w->bytes * (size_t)thread; }

TRNI_FN void trni_workspace_close(trni_workspace *w) { free(w->memory); }

#endif /* TRNI_BASE_WORKSPACE_H */

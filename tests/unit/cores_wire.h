/* cores_wire.h - processes that are threads of this one: what they gather is copied, when all have come.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_WIRE_H
#define CORES_WIRE_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { WIRE_MOST = 11 };

typedef struct wire {
    pthread_mutex_t lock;
    pthread_cond_t go;
    int processes, came, left;
    const void *mine[WIRE_MOST];
} wire;

static inline void wire_begin(wire *w, int processes)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->go, NULL);
    w->processes = processes;
}

static inline void wire_end(wire *w)
{
    pthread_cond_destroy(&w->go);
    pthread_mutex_destroy(&w->lock);
}

/* counts: the bytes of each. */
static inline void wire_gather(wire *w, int process, const void *mine, void *all, const int64_t *counts)
{
    char *to = (char *)all;
    pthread_mutex_lock(&w->lock);
    while (w->left) pthread_cond_wait(&w->go, &w->lock);
    w->mine[process] = mine;
    if (++w->came == w->processes) w->left = w->processes;
    pthread_cond_broadcast(&w->go);
    while (!w->left) pthread_cond_wait(&w->go, &w->lock);
    for (int p = 0; p < w->processes; to += counts[p++])
        if (counts[p]) memcpy(to, w->mine[p], (size_t)counts[p]);
    w->came--;
    pthread_cond_broadcast(&w->go);
    while (w->came) pthread_cond_wait(&w->go, &w->lock); /* nobody leaves before all have copied */
    w->left--;
    pthread_cond_broadcast(&w->go);
    pthread_mutex_unlock(&w->lock);
}

#endif /* CORES_WIRE_H */

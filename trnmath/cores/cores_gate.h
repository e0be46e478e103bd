/* cores/cores_gate.h - kernels as threads of the host: so many run at once, each until it waits or ends.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: gives each kernel a thread with a small stack, lets them run in the order of ranks, as many at once as asked,
 *     and tells when none of them runs any more. One rank alone needs no thread: it runs on the caller's.
 * DOES NOT: know what they wait for.
 *
 * KNOWN FROM: POSIX threads. OpenMP keeps its number of threads for each thread of the host: a kernel's own calls work
 *     on one, as the kernels already share the host.
 */
#ifndef TRNI_CORES_CORES_GATE_H
#define TRNI_CORES_CORES_GATE_H

#include "../base/pthreads.h"
#include "../base/threads.h"
#include "cores_types.h"

enum { TRNI_CORES_STACK = 512 << 10 };

/* What a thread does when it may first run, and what all of them wait for. */
typedef void trni_cores_life(trn_cores_rank *self);

#if TRNI_PTHREADS

typedef struct trni_cores_seat {
    pthread_t thread;
    pthread_cond_t go;
    trn_cores_rank *self;
    trni_cores_life *life;
    bool started, may_go;
} trni_cores_seat;

typedef struct trni_cores_gate {
    pthread_mutex_t lock;
    pthread_cond_t done;
    trni_cores_seat *seat; /* [ranks] */
    int running, limit, next; /* next: the first that has not been looked at in this round */
} trni_cores_gate;

/* With the lock: the next ones go, as far as there is room. */
TRNI_FN void trni_gate_admit(trn_cores *cores, trni_cores_gate *gate)
{
    for (; gate->next < cores->ranks && gate->running < gate->limit; gate->next++) {
        trni_cores_seat *seat = &gate->seat[gate->next];
        if (!seat->started || cores->work->post[gate->next].state != TRNI_CORES_READY) continue;
        seat->may_go = true;
        gate->running++;
        pthread_cond_signal(&seat->go);
    }
}

TRNI_FN void trni_gate_leave(trn_cores *cores, trni_cores_gate *gate)
{
    gate->running--;
    trni_gate_admit(cores, gate);
    if (gate->running == 0) pthread_cond_signal(&gate->done);
}

TRNI_FN void trni_gate_sit(trni_cores_gate *gate, trni_cores_seat *seat)
{
    while (!seat->may_go) pthread_cond_wait(&seat->go, &gate->lock);
    seat->may_go = false;
}

/* In a kernel: until the round after. */
TRNI_FN void trni_gate_wait(trn_cores_rank *self)
{
    trn_cores *cores = self->cores;
    trni_cores_gate *gate = cores->work->gate;
    pthread_mutex_lock(&gate->lock);
    self->post->state = TRNI_CORES_WAITS;
    trni_gate_leave(cores, gate);
    trni_gate_sit(gate, &gate->seat[self->rank]);
    pthread_mutex_unlock(&gate->lock);
}

TRNI_FN void *trni_gate_thread(void *user)
{
    trni_cores_seat *seat = (trni_cores_seat *)user;
    trn_cores *cores = seat->self->cores;
    trni_cores_gate *gate = cores->work->gate;
    pthread_mutex_lock(&gate->lock);
    trni_gate_sit(gate, seat);
    pthread_mutex_unlock(&gate->lock);
#if defined(_OPENMP)
    omp_set_num_threads(1);
#endif
    seat->life(seat->self);
    pthread_mutex_lock(&gate->lock);
    seat->self->post->state = TRNI_CORES_ENDED;
    trni_gate_leave(cores, gate);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

/* Around what several kernels may do at once; a kernel alone has no gate. */
TRNI_FN void trni_gate_lock(trn_cores *cores)
{
    if (cores->work->gate) pthread_mutex_lock(&cores->work->gate->lock);
}

TRNI_FN void trni_gate_unlock(trn_cores *cores)
{
    if (cores->work->gate) pthread_mutex_unlock(&cores->work->gate->lock);
}

/* Everybody who is ready runs, until none runs. */
TRNI_FN void trni_gate_round(trn_cores *cores)
{
    trni_cores_gate *gate = cores->work->gate;
    pthread_mutex_lock(&gate->lock);
    gate->next = 0;
    trni_gate_admit(cores, gate);
    while (gate->running > 0) pthread_cond_wait(&gate->done, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

TRNI_FN trni_cores_gate *trni_gate_make(int ranks, int limit)
{
    trni_cores_gate *gate = (trni_cores_gate *)calloc(1, sizeof *gate + (size_t)ranks * sizeof(trni_cores_seat));
    if (!gate) return NULL;
    gate->seat = (trni_cores_seat *)(void *)(gate + 1);
    gate->limit = limit;
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->done, NULL);
    return gate;
}

/* False: this one could not be started. */
TRNI_FN bool trni_gate_start(trni_cores_gate *gate, trn_cores_rank *self, trni_cores_life *life, size_t stack_bytes)
{
    trni_cores_seat *seat = &gate->seat[self->rank];
    pthread_attr_t attributes;
    seat->self = self;
    seat->life = life;
    if (pthread_attr_init(&attributes)) return false;
    pthread_cond_init(&seat->go, NULL);
    seat->started = !pthread_attr_setstacksize(&attributes, stack_bytes) &&
                    !pthread_create(&seat->thread, &attributes, trni_gate_thread, seat);
    if (!seat->started) pthread_cond_destroy(&seat->go);
    pthread_attr_destroy(&attributes);
    return seat->started;
}

/* All threads have run to their ends. */
TRNI_FN void trni_gate_free(trni_cores_gate *gate, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        if (!gate->seat[r].started) continue;
        pthread_join(gate->seat[r].thread, NULL);
        pthread_cond_destroy(&gate->seat[r].go);
    }
    pthread_cond_destroy(&gate->done);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

#else

TRNI_FN void trni_gate_wait(trn_cores_rank *self) { (void)self; }
TRNI_FN void trni_gate_lock(trn_cores *cores) { (void)cores; }
TRNI_FN void trni_gate_unlock(trn_cores *cores) { (void)cores; }

#endif

#endif /* TRNI_CORES_CORES_GATE_H */

/* cores/cores_scheduler.h - kernels as threads of the host: so many run at once, each until it waits or ends.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: gives each kernel a thread with a small stack, lets them run in the order of ranks, as many at once as asked,
 *     and tells when none of them runs any more. One rank alone needs no thread: it runs on the caller's.
 * DOES NOT: know what they wait for.
 *
 * KNOWN FROM: POSIX threads. OpenMP keeps its number of threads for each thread of the host: a kernel's own calls work
 *     on one, as the kernels already share the host.
 */
#ifndef TRNI_CORES_CORES_SCHEDULER_H
#define TRNI_CORES_CORES_SCHEDULER_H

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

typedef struct trni_cores_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t done;
    trni_cores_seat *seat;    /* [ranks] */
    int running, limit, next; /* next: the first that has not been looked at in this round */
} trni_cores_scheduler;

/* With the lock: the next ones go, as far as there is room. */
TRNI_FN void trni_scheduler_admit(trn_cores *cores, trni_cores_scheduler *scheduler)
{
    for (; scheduler->next < cores->ranks && scheduler->running < scheduler->limit; scheduler->next++) {
        trni_cores_seat *seat = &scheduler->seat[scheduler->next];
        if (!seat->started || cores->work->message[scheduler->next].state != TRNI_CORES_READY) continue;
        seat->may_go = true;
        scheduler->running++;
        pthread_cond_signal(&seat->go);
    }
}

TRNI_FN void trni_scheduler_leave(trn_cores *cores, trni_cores_scheduler *scheduler)
{
    scheduler->running--;
    trni_scheduler_admit(cores, scheduler);
    if (scheduler->running == 0) pthread_cond_signal(&scheduler->done);
}

TRNI_FN void trni_scheduler_sit(trni_cores_scheduler *scheduler, trni_cores_seat *seat)
{
    while (!seat->may_go) pthread_cond_wait(&seat->go, &scheduler->lock);
    seat->may_go = false;
}

/* In a kernel: until the round after. */
TRNI_FN void trni_scheduler_wait(trn_cores_rank *self)
{
    trn_cores *cores = self->cores;
    trni_cores_scheduler *scheduler = cores->work->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    self->message->state = TRNI_CORES_WAITS;
    trni_scheduler_leave(cores, scheduler);
    trni_scheduler_sit(scheduler, &scheduler->seat[self->rank]);
    pthread_mutex_unlock(&scheduler->lock);
}

TRNI_FN void *trni_scheduler_thread(void *user)
{
    trni_cores_seat *seat = (trni_cores_seat *)user;
    trn_cores *cores = seat->self->cores;
    trni_cores_scheduler *scheduler = cores->work->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    trni_scheduler_sit(scheduler, seat);
    pthread_mutex_unlock(&scheduler->lock);
#if defined(_OPENMP)
    omp_set_num_threads(1);
#endif
    seat->life(seat->self);
    pthread_mutex_lock(&scheduler->lock);
    seat->self->message->state = TRNI_CORES_ENDED;
    trni_scheduler_leave(cores, scheduler);
    pthread_mutex_unlock(&scheduler->lock);
    return NULL;
}

/* Around what several kernels may do at once; a kernel alone has no scheduler. */
TRNI_FN void trni_scheduler_lock(trn_cores *cores)
{
    if (cores->work->scheduler) pthread_mutex_lock(&cores->work->scheduler->lock);
}

TRNI_FN void trni_scheduler_unlock(trn_cores *cores)
{
    if (cores->work->scheduler) pthread_mutex_unlock(&cores->work->scheduler->lock);
}

/* Everybody who is ready runs, until none runs. */
TRNI_FN void trni_scheduler_round(trn_cores *cores)
{
    trni_cores_scheduler *scheduler = cores->work->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    scheduler->next = 0;
    trni_scheduler_admit(cores, scheduler);
    while (scheduler->running > 0) pthread_cond_wait(&scheduler->done, &scheduler->lock);
    pthread_mutex_unlock(&scheduler->lock);
}

TRNI_FN trni_cores_scheduler *trni_scheduler_make(int ranks, int limit)
{
    trni_cores_scheduler *scheduler =
        (trni_cores_scheduler *)calloc(1, sizeof *scheduler + (size_t)ranks * sizeof(trni_cores_seat));
    if (!scheduler) return NULL;
    scheduler->seat = (trni_cores_seat *)(void *)(scheduler + 1);
    scheduler->limit = limit;
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_cond_init(&scheduler->done, NULL);
    return scheduler;
}

/* False: this one could not be started. */
TRNI_FN bool trni_scheduler_start(trni_cores_scheduler *scheduler, trn_cores_rank *self, trni_cores_life *life,
                                  size_t stack_bytes)
{
    trni_cores_seat *seat = &scheduler->seat[self->rank];
    pthread_attr_t attributes;
    seat->self = self;
    seat->life = life;
    if (pthread_attr_init(&attributes)) return false;
    pthread_cond_init(&seat->go, NULL);
    seat->started = !pthread_attr_setstacksize(&attributes, stack_bytes) &&
                    !pthread_create(&seat->thread, &attributes, trni_scheduler_thread, seat);
    if (!seat->started) pthread_cond_destroy(&seat->go);
    pthread_attr_destroy(&attributes);
    return seat->started;
}

/* All threads have run to their ends. */
TRNI_FN void trni_scheduler_free(trni_cores_scheduler *scheduler, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        if (!scheduler->seat[r].started) continue;
        pthread_join(scheduler->seat[r].thread, NULL);
        pthread_cond_destroy(&scheduler->seat[r].go);
    }
    pthread_cond_destroy(&scheduler->done);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler);
}

#else

TRNI_FN void trni_scheduler_wait(trn_cores_rank *self) { (void)self; }
TRNI_FN void trni_scheduler_lock(trn_cores *cores) { (void)cores; }
TRNI_FN void trni_scheduler_unlock(trn_cores *cores) { (void)cores; }

#endif

#endif /* TRNI_CORES_CORES_SCHEDULER_H */

/* base/threads.h - how work is shared out among threads: how many there are, and the whole numbers of cutting.
 * A room of all that use threads. SPDX-License-Identifier: MIT
 *
 * DOES: asks OpenMP, when compiled with it, how many threads a parallel region may have here: one inside another, and
 *     one in a process that was forked, because OpenMP's threads stay behind (libgomp waits for them for ever). Shares
 *     out loops among them; where these keep each other waiting on a busy machine, says that one does it alone. Keeps
 *     libgomp where it is when a shared object that holds this code is closed: its threads live on, and unmapped code
 *     under them is a crash (LLVM's ends its threads itself).
 * DOES NOT: start threads itself.
 *
 * KNOWN FROM: the OpenMP specification (omp_get_max_threads); POSIX (pthread_atfork); dlopen(3), RTLD_NODELETE.
 */
#ifndef TRNI_BASE_THREADS_H
#define TRNI_BASE_THREADS_H

#include "base.h"

#if defined(_OPENMP)
#include <omp.h>
#if !defined(_WIN32)
#include "pthreads.h"
#endif
#if defined(__GLIBC__)
#include <dlfcn.h>
#endif
#endif

TRNI_FN int64_t trni_min64(int64_t a, int64_t b) { return a < b ? a : b; }
TRNI_FN int64_t trni_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
TRNI_FN int64_t trni_round_up(int64_t a, int64_t to) { return trni_ceil_div(a, to) * to; }

#if defined(_OPENMP)
/* ---- a forked process ---- */

enum { TRNI_FORK_UNWATCHED, TRNI_FORK_WATCHED, TRNI_FORK_CHILD };

TRNI_FN int *trni_fork_state(void)
{
    static int state; /* atomic */
    return &state;
}

TRNI_FN void trni_fork_child(void) { __atomic_store_n(trni_fork_state(), TRNI_FORK_CHILD, __ATOMIC_RELAXED); }

#if defined(__GLIBC__)
/* Weak, because older C libraries have it apart: a program without it closes nothing. */
static __typeof__(dlopen) trni_dlopen __attribute__((weakref("dlopen")));
/* LeakSanitizer does not see what the loader holds. */
static void trni_leaks_off(void) __attribute__((weakref("__lsan_disable")));
static void trni_leaks_on(void) __attribute__((weakref("__lsan_enable")));
#endif

/* For good, which the second handle of a loaded object can ask for. */
TRNI_FN void trni_keep_openmp(void)
{
#if defined(__GLIBC__)
    if (trni_leaks_off) trni_leaks_off();
    if (trni_dlopen) (void)trni_dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (trni_leaks_on) trni_leaks_on();
#endif
}

/* Before the first parallel region there is no thread to miss, so it is early enough to watch for forks then. */
TRNI_FN bool trni_forked(void)
{
    int state = __atomic_load_n(trni_fork_state(), __ATOMIC_RELAXED);
#if !defined(_WIN32)
    if (state == TRNI_FORK_UNWATCHED && __atomic_compare_exchange_n(trni_fork_state(), &state, TRNI_FORK_WATCHED, false,
                                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        pthread_atfork(NULL, NULL, trni_fork_child);
        trni_keep_openmp();
    }
#endif
    return state == TRNI_FORK_CHILD;
}
#endif

/* How many threads a parallel region may have here. */
TRNI_FN int trni_threads(void)
{
#if defined(_OPENMP)
    return omp_in_parallel() || trni_forked() ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

/* This thread's number in the parallel region of ours that it is in. */
TRNI_FN int trni_thread(void)
{
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* ---- sharing out ----
 * What stands before a block or a loop that several threads run, with OpenMP's own clauses, always num_threads among
 * them; without OpenMP, nothing. Each thread has its own modes of floating point, so a region, or a loop's body, begins
 * with TRNI_FLOATS. */

#if defined(_OPENMP)
#define TRNI_PRAGMA(text) _Pragma(#text)
#define TRNI_OMP(...) TRNI_PRAGMA(omp __VA_ARGS__)
#define TRNI_PARALLEL(...) TRNI_OMP(parallel __VA_ARGS__)
#define TRNI_PARALLEL_FOR(...) TRNI_OMP(parallel for __VA_ARGS__)
#define TRNI_FOR(...) TRNI_OMP(for __VA_ARGS__) /* inside a region */
#else
#define TRNI_PARALLEL(...)
#define TRNI_PARALLEL_FOR(...)
#define TRNI_FOR(...)
#endif

/* ---- a busy machine ----
 * A region lasts until its last thread is done, and one whose processor another program has is done a time slice late:
 * two threads were four times slower than one. So regions that come often tell how long their first thread, which has
 * the largest share, worked and then waited. Where that is longer than it alone would have worked, they have one thread
 * for a while, which doubles as long as it is so. Bits do not depend on it. */

typedef struct trni_team {
    int threads;
    int64_t began, worked; /* us */
} trni_team;

#if defined(_OPENMP)
enum { TRNI_ALONE_LATE = 1000, TRNI_ALONE_GOOD = 20000, TRNI_ALONE_LEAST = 10000, TRNI_ALONE_MOST = 640000 }; /* us */

typedef struct trni_alone {
    int64_t until; /* us; atomic */
    bool held;     /* atomic: who holds it changes the others */
    int64_t alone, took, pause;
} trni_alone;

TRNI_FN trni_alone *trni_alone_here(void)
{
    static trni_alone state;
    return &state;
}

TRNI_FN int64_t trni_now_us(void) { return (int64_t)(omp_get_wtime() * 1e6); }
#endif

/* Before a region of so many threads: team.threads are worth it. One is no region: it would take 300 ns and more. */
TRNI_FN trni_team trni_team_begin(int threads)
{
    trni_team team = { threads, 0, 0 };
#if defined(_OPENMP)
    if (threads > 1) team.began = trni_now_us();
    if (threads > 1 && team.began < __atomic_load_n(&trni_alone_here()->until, __ATOMIC_RELAXED)) team.threads = 1;
#endif
    return team;
}

/* In it, by each thread that has done its share. */
TRNI_FN void trni_team_worked(trni_team *team)
{
#if defined(_OPENMP)
    if (trni_thread() == 0) team->worked = trni_now_us();
#else
    (void)team;
#endif
}

/* After it. */
TRNI_FN void trni_team_end(const trni_team *team)
{
#if defined(_OPENMP)
    trni_alone *state = trni_alone_here();
    const int64_t now = trni_now_us();
    if (__atomic_test_and_set(&state->held, __ATOMIC_ACQUIRE)) return;
    state->alone += (team->worked - team->began) * team->threads;
    state->took += now - team->began;
    if (state->took > TRNI_ALONE_LATE && state->took > state->alone - state->alone / 5) {
        state->pause = state->pause ? trni_min64(2 * state->pause, TRNI_ALONE_MOST) : (int64_t)TRNI_ALONE_LEAST;
        __atomic_store_n(&state->until, now + state->pause, __ATOMIC_RELAXED);
        state->alone = state->took = 0;
    } else if (state->took > TRNI_ALONE_GOOD)
        state->alone = state->took = state->pause = 0;
    __atomic_clear(&state->held, __ATOMIC_RELEASE);
#else
    (void)team;
#endif
}

#endif /* TRNI_BASE_THREADS_H */

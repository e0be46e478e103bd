/* long.h - how many cases a fuzzer makes, from which seed, and how a case that failed is made again.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_x [count] [seed]
 *
 *     TRN_FUZZ_SEED=N        the seed when no argument names one, else 1
 *     TRN_FUZZ_SECONDS=S     rounds until S seconds are over, each of `count` cases of the next seed
 *
 * Case number n of a seed depends on nothing but the cases of that seed before it. A failure says its seed and its
 * number, and the command that makes it again. A fuzzer asks as follows:
 *
 *     fuzzing_start(argc, argv, 20000, 1000000);
 *     while (fuzzing_next(&rng)) one_case();
 *     const long cases = fuzzing_end();
 */
#ifndef LONG_H
#define LONG_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/time.h>
#include <unistd.h>

#include "twin/cases.h"

#if defined(__has_feature) && !defined(__SANITIZE_ADDRESS__) /* clang's way of saying it */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

enum { WATCHDOG_S = 60 }; /* of a processor; ten times as long by the clock, where a case waits for something */

static struct {
    const char *program;   /* NULL before the start and after the end */
    uint64_t first, seed;  /* of the first round and of this one */
    volatile long number;  /* of the case, from 0 in each round */
    long count;            /* of cases in a round */
    long cases;            /* of all rounds */
    double started, until; /* seconds; until 0: one round */
} fuzzing;

/* ---- what is asked ---- */

static inline double fuzzing_clock(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void fuzzing_refuse(const char *what, const char *text)
{
    fprintf(stderr, "fuzzer: %s %s is not a number\n", what, text);
    exit(2);
}

static inline uint64_t fuzzing_number(const char *text, const char *what, uint64_t fallback)
{
    if (!text) return fallback;
    char *end;
    errno = 0;
    const uint64_t n = strtoull(text, &end, 0);
    if (errno || *end || *text < '0' || *text > '9') fuzzing_refuse(what, text);
    return n;
}

static inline double fuzzing_seconds(void)
{
    const char *text = getenv("TRN_FUZZ_SECONDS");
    if (!text || !*text) return 0;
    char *end;
    const double seconds = strtod(text, &end);
    if (*end || !(seconds > 0 && seconds < 1e9)) fuzzing_refuse("TRN_FUZZ_SECONDS", text);
    return seconds;
}

/* ---- when something goes wrong ---- */

/* By means that a signal handler may use. */
static inline void fuzzing_print(const char *text)
{
    if (write(2, text, strlen(text)) < 0) _exit(3);
}

static inline void fuzzing_print_number(uint64_t n)
{
    char text[24], *at = text + sizeof text;
    *--at = 0;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    fuzzing_print(at);
}

static inline void fuzzing_last_words(void)
{
    if (!fuzzing.program) return;
    fuzzing_print("seed ");
    fuzzing_print_number(fuzzing.seed);
    fuzzing_print(", case ");
    fuzzing_print_number((uint64_t)fuzzing.number);
    fuzzing_print(" failed; once more: ");
    fuzzing_print(fuzzing.program);
    fuzzing_print(" ");
    fuzzing_print_number((uint64_t)fuzzing.number + 1);
    fuzzing_print(" ");
    fuzzing_print_number(fuzzing.seed);
    fuzzing_print("\n");
    fuzzing.program = NULL; /* said once */
}

/* A failed assertion, a crash, or a case that does not end. */
static inline void fuzzing_on_signal(int number)
{
    if (number == SIGALRM || number == SIGPROF) fuzzing_print("a case does not end\n");
    fuzzing_last_words();
    signal(number, SIG_DFL);
    raise(number);
}

/* Machines may be busy with other things: what counts is the time that this process had. */
static inline void fuzzing_watch(int seconds)
{
    const struct itimerval once = { { 0, 0 }, { seconds, 0 } };
    setitimer(ITIMER_PROF, &once, NULL);
    alarm(10u * (unsigned)seconds);
}

/* ---- the rounds ---- */

static inline void fuzzing_start(int argc, char **argv, long level1, long level2)
{
    const long count = cases_count(level1, level2, 5);
    const char *slash = strrchr(argv[0], '/');
    fuzzing.count = (long)fuzzing_number(argc > 1 ? argv[1] : NULL, "count", (uint64_t)count);
    if (fuzzing.count < 0) fuzzing_refuse("count", argv[1]);
    fuzzing.seed = fuzzing_number(getenv("TRN_FUZZ_SEED"), "TRN_FUZZ_SEED", 1);
    fuzzing.first = fuzzing.seed = fuzzing_number(argc > 2 ? argv[2] : NULL, "seed", fuzzing.seed);
    fuzzing.number = -1;
    fuzzing.cases = 0;
    fuzzing.started = fuzzing_clock();
    fuzzing.until = fuzzing_seconds() > 0 && fuzzing.count > 0 ? fuzzing.started + fuzzing_seconds() : 0;
    fuzzing.program = slash ? slash + 1 : argv[0];
    signal(SIGABRT, fuzzing_on_signal);
    signal(SIGALRM, fuzzing_on_signal);
    signal(SIGPROF, fuzzing_on_signal);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(fuzzing_last_words);
#else
    signal(SIGSEGV, fuzzing_on_signal);
    signal(SIGBUS, fuzzing_on_signal);
    signal(SIGFPE, fuzzing_on_signal);
    signal(SIGILL, fuzzing_on_signal);
#endif
}

/* Whether there is a next case; the first of a round seeds `rng`. */
static inline bool fuzzing_next(uint64_t *rng)
{
    if (fuzzing.until > 0 && fuzzing.cases > 0 && fuzzing_clock() >= fuzzing.until) return false;
    if (fuzzing.number + 1 >= fuzzing.count) {
        if (!(fuzzing.until > 0)) return false;
        fuzzing.seed++;
        fuzzing.number = -1;
    }
    if (++fuzzing.number == 0) *rng = fuzzing.seed;
    if (fuzzing.number % 16 == 0) fuzzing_watch(WATCHDOG_S);
    fuzzing.cases++;
    return true;
}

/* Says how many there were, and returns it. */
static inline long fuzzing_end(void)
{
    fuzzing_watch(0);
    printf("%s: %ld cases, seeds %llu to %llu, %.1f s\n", fuzzing.program, fuzzing.cases,
           (unsigned long long)fuzzing.first, (unsigned long long)fuzzing.seed, fuzzing_clock() - fuzzing.started);
    fflush(stdout);
    fuzzing.program = NULL;
    return fuzzing.cases;
}

#endif /* LONG_H */

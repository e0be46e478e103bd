/* cores/races.c - the rectangles that races are found by, and how many of them are kept; what keeps kernels apart.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/cores/cores_scheduler.h"
#include "trnmath/cores/cores_race.h"
#include "unit/cores/groups.h"

/* Rectangles of any pitch against a map of bytes. */
static void test_rectangles_meet(void **state)
{
    (void)state;
    static const char memory[4096];
    uint32_t seed = 7;
    int met = 0;
    for (int i = 0; i < 200000; i++) {
        trni_touch t[2];
        bool map[4096] = { false }, expected = false;
        memset(t, 0, sizeof t);
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525u + 1013904223u;
            t[k].pitch = 8 + seed % 32;
            t[k].bytes = 1 + (seed >> 8) % (uint32_t)t[k].pitch;
            t[k].rows = 1 + (seed >> 16) % 4;
            t[k].at = memory + (seed >> 20) % 120;
            t[k].write = k == 0;
            for (int64_t row = 0; row < t[k].rows; row++)
                for (int64_t b = 0; b < t[k].bytes; b++) {
                    bool *at = &map[t[k].at - memory + row * t[k].pitch + b];
                    if (k)
                        expected = expected || *at;
                    else
                        *at = true;
                }
        }
        if (trni_race_meet(&t[0], &t[1]) != expected || trni_race_meet(&t[1], &t[0]) != expected)
            fail_msg("case %d: expected %d", i, expected);
        met += expected;
    }
    assert_true(met > 20000 && met < 180000);
}

static void the_oldest_use_is_forgotten(void **state)
{
    (void)state;
    static trni_cores_race race;
    memset(&race, 0, sizeof race);
    const int uses = 2 * TRNI_RACE_KEPT + 5;
    for (int i = 0; i < uses; i++) {
        const trni_touch t = { .instruction = i };
        trni_race_keep(&race, &t, i % 7, (uint64_t)i);
    }
    assert_int_equal(race.count, TRNI_RACE_KEPT);
    for (int k = 0; k < TRNI_RACE_KEPT; k++) {
        const int last = k < 5 ? uses - 5 + k : TRNI_RACE_KEPT + k;
        assert_int_equal(race.kept[k].touch.instruction, last);
        assert_int_equal(race.kept[k].rank, last % 7);
        assert_int_equal(race.kept[k].met, last);
    }
}

/* What kernels ask for at the same time is guarded by the scheduler's lock, where there is a scheduler. */
static void one_at_a_time(void **state)
{
    (void)state;
    static trn_cores cores;
    static trni_cores work;
    cores.work = &work;
    trni_scheduler_lock(&cores);
    trni_scheduler_unlock(&cores);
#if TRNI_PTHREADS
    work.scheduler = trni_scheduler_make(1, 1);
    assert_non_null(work.scheduler);
    trni_scheduler_lock(&cores);
    assert_int_not_equal(pthread_mutex_trylock(&work.scheduler->lock), 0);
    trni_scheduler_unlock(&cores);
    assert_int_equal(pthread_mutex_trylock(&work.scheduler->lock), 0);
    pthread_mutex_unlock(&work.scheduler->lock);
    trni_scheduler_free(work.scheduler, 1);
#endif
}

int cores_races(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rectangles_meet),
        cmocka_unit_test(the_oldest_use_is_forgotten),
        cmocka_unit_test(one_at_a_time),
    };
    return cmocka_run_group_tests_name("cores_races", tests, NULL, NULL);
}

/* How deep calls go: each on a thread whose stack is painted before and read afterwards. A thread of 64 KiB is enough
 * for any, in code that is optimised.
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "twin/every_door.h"

/* Unoptimised code keeps every temporary of every intrinsic apart, and sanitizers widen every frame. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { OPTIMISED = 1 };
#else
enum { OPTIMISED = 0 };
#endif

enum { STACK = 1 << 20, PAINT = 0xa5, ENOUGH = 64 * 1024, PTHREAD = 4096 }; /* what a thread has on it by itself, too */

static door_room room;
static trn_status said;

static void *call_door(void *door)
{
    said = ((const struct every_door *)door)->call(&room);
    return NULL;
}

static void *call_nothing(void *nothing) { return nothing; }

/* Bytes of the stack that a thread has written to. */
static size_t depth_of(void *(*start)(void *), const void *argument)
{
    static unsigned char stack[STACK] __attribute__((aligned(65536)));
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    memset(stack, PAINT, sizeof stack);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, sizeof stack), 0);
    assert_int_equal(pthread_create(&thread, &attributes, start, (void *)(uintptr_t)argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    while (untouched < sizeof stack && stack[untouched] == PAINT) untouched++;
    return sizeof stack - untouched;
}

static void calls_fit_small_stacks(void **state)
{
    (void)state;
    static const trn_isa isas[] = { TRN_ISA_PORTABLE, TRN_ISA_AVX2, TRN_ISA_AVX512, TRN_ISA_NEON };
    const size_t nothing = depth_of(call_nothing, NULL);
    size_t most = 0;
    const char *deepest = "";
    door_inputs();
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (!trn_isa_supported(isas[i])) continue;
        for (int d = 0; d < EVERY_DOOR; d++) {
            door_room_init(&room);
            room.isa = isas[i];
            const size_t depth = depth_of(call_door, &every_door[d]);
            if (said != TRN_OK) fail_msg("%s: %s", every_door[d].name, room.error.text);
            if (getenv("TRN_TEST_TELL")) printf("%-9s %-26s %6zu\n", trn_isa_text(isas[i]), every_door[d].name, depth);
            if (depth > most) most = depth, deepest = every_door[d].name;
            if (OPTIMISED && depth - nothing > ENOUGH - PTHREAD)
                fail_msg("%s goes %zu bytes deep (%s)", every_door[d].name, depth - nothing, trn_isa_text(isas[i]));
        }
    }
    printf("the deepest of %d calls is %s: %zu bytes, of which a thread has %zu by itself\n", EVERY_DOOR, deepest, most,
           nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_fit_small_stacks) };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}

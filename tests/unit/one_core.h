/* one_core.h - a NeuronCore that a test runs instructions on, and what it says.
 * SPDX-License-Identifier: MIT
 *
 * Each source that includes this has a core of its own; its memory lives as long as the program.
 */
#ifndef ONE_CORE_H
#define ONE_CORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_core.h"

static trn_core core;
static void *room;

static inline trn_core_args core_args_of(trn_generation generation)
{
    trn_core_args args;
    memset(&args, 0, sizeof args);
    args.generation = generation;
    args.memory_bytes = trn_core_memory_bytes(generation);
    args.memory = room = realloc(room, args.memory_bytes);
    return args;
}

static inline void begin(trn_generation generation)
{
    const trn_core_args args = core_args_of(generation);
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
}

static inline void expect(const char *sentence)
{
    const char *text;
    if (trn_core_status(&core, &text) == TRN_OK) fail_msg("nothing failed; expected: %s", sentence);
    assert_string_equal(text, sentence);
}

static inline void fine(void)
{
    const char *text;
    if (trn_core_status(&core, &text) != TRN_OK) fail_msg("%s", text);
}

/* It has said so; another one. */
static inline void told(const char *sentence)
{
    expect(sentence);
    begin(core.spec->generation);
}

#endif /* ONE_CORE_H */

/* arena.h - instructions called on memory that is known to the last byte: what they should leave, or that they refuse.
 * SPDX-License-Identifier: MIT
 *
 * Defined before: ROOM, EDGE and ARENAS, and rng. Outputs are views of arena 0; a test writes into `want` what arena 0
 * should become. Everything beside a view is compared too.
 */
#ifndef TWIN_ARENA_H
#define TWIN_ARENA_H

#include "trnmath/trn_instruction.h"
#include "trnmath/trn_tensor.h"
#include "twin/host.h"
#include "twin/views.h"

static unsigned char arena[ARENAS][ROOM], before[ROOM], want[ROOM];

static size_t bytes_of(trn_format f) { return (size_t)trn_format_bits(f) / 8; }

static void scramble(int k)
{
    for (int i = 0; i < ROOM; i += 8) {
        const uint64_t word = cases_next(&rng);
        memcpy(arena[k] + i, &word, sizeof word);
    }
}

/* A view of random numbers in arena `k`, somewhere in it, with any strides. */
static trn_tensor arena_view(int k, trn_format format, int rank, const int64_t *shape, bool input)
{
    trn_tensor t =
        trn_tensor_nd(format, arena[k] + EDGE + (size_t)cases_below(&rng, 3) * bytes_of(format), rank, shape);
    if (trn_tensor_elements(t) && cases_one_in(&rng, 2)) random_strides(&t, input, false, &rng);
    assert_true(view_bytes(&t) + 2 * EDGE < ROOM);
    scramble(k);
    return t;
}

typedef trn_status call(const void *args);

#define CALL(name)                                                                                                     \
    static trn_status call_##name(const void *args) { return trn_##name((const trn_##name##_args *)args); }

typedef union any_args {
    trn_instruction how;
    char bytes[2048];
} any_args;

/* Runs it on every instruction set and generation; from `since` on arena 0 must become `want`. */
static void check(call *function, const void *args, size_t size, trn_generation since)
{
    static const trn_generation generation[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    enum { isas = sizeof all_isas / sizeof all_isas[0], generations = sizeof generation / sizeof generation[0] };
    any_args copy;
    trn_error error;
    assert_true(size <= sizeof copy);
    memcpy(before, arena[0], ROOM);
    for (int i = 0; i < isas * generations; i++) {
        memcpy(&copy, args, size);
        copy.how.isa = all_isas[i / generations];
        copy.how.generation = generation[i % generations];
        copy.how.error = &error;
        if (!trn_isa_supported(copy.how.isa)) continue;
        memcpy(arena[0], before, ROOM);
        const trn_status status = function(&copy);
        if (copy.how.generation && copy.how.generation < since) {
            assert_int_equal(status, TRN_EUNSUPPORTED);
            assert_memory_equal(arena[0], before, ROOM);
            continue;
        }
        if (status) fail_msg("%s", error.text);
        assert_memory_equal(arena[0], want, ROOM);
    }
}

/* It is refused with this sentence, and nothing is written; without room for the sentence, too. */
static void refuse(call *function, void *args, trn_status status, const char *text)
{
    trn_error error;
    ((trn_instruction *)args)->error = &error;
    memcpy(before, arena[0], ROOM);
    const trn_status got = function(args);
    if (got != status || strcmp(error.text, text))
        fail_msg("%d: %s\nnot %d: %s", (int)got, error.text, (int)status, text);
    assert_int_equal(error.status, status);
    assert_memory_equal(arena[0], before, ROOM);
    ((trn_instruction *)args)->error = NULL;
    assert_int_equal(function(args), status);
}

#endif /* TWIN_ARENA_H */

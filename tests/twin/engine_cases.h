/* engine_cases.h - one random instruction after the other: what the tests of the engines' instructions share.
 * SPDX-License-Identifier: MIT
 *
 * A case has a stage (tiles.h), a size, a way of rounding and a Vector engine's state. A test draws args and the twin's
 * answer; engine_check asks trnmath on every instruction set and compares memory and registers.
 */
#ifndef ENGINE_CASES_H
#define ENGINE_CASES_H

#include "trnmath/trn_engine_state.h"
#include "twin/tiles.h"

typedef struct engine_case {
    uint64_t *rng;
    uint64_t seed;
    tiles s;
    int partitions, elements;
    tiles_how how;
    trn_generation generation;
    trn_numerics numerics;
    trn_vector_state state;   /* before the call */
    twin_registers registers; /* after it */
    bool stateful;
    trn_error error;
} engine_case;

#define ENGINE_CALL(name)                                                                                              \
    static trn_status call_##name(const void *args) { return trn_##name((const trn_##name##_args *)args); }

#define ENGINE_ARGS(c, a)                                                                                              \
    do {                                                                                                               \
        memset(&(a), 0, sizeof(a));                                                                                    \
        TILES_HOW(a, (c)->how);                                                                                        \
        (a).generation = (c)->generation;                                                                              \
        (a).error = &(c)->error;                                                                                       \
        (a).numerics = (c)->how.cast.bits == 32 ? NULL : &(c)->numerics;                                               \
    } while (0)

#define ENGINE_TEST(name, level1, level2)                                                                              \
    static void test_##name(void **unused)                                                                             \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        engine_many(one_##name, cases_rounds(level1, level2));                                                         \
    }

static inline trn_alu engine_op(twin_op op)
{
    const trn_alu found = trn_alu_from_name(twin_op_name[op]);
    if (found == TRN_ALU_COUNT) abort();
    return found;
}

/* Some operators came with Trainium3. */
static inline bool engine_late(twin_op op)
{
    return op == TWIN_ABS_MAX || op == TWIN_ABS_MIN || op == TWIN_SQUARE || op == TWIN_RELU;
}

/* One of the first `count` operators on numbers; of those that the formats' generations have. */
static inline twin_op engine_number_op(engine_case *c, int count)
{
    for (;;) {
        const twin_op op = (twin_op)(TWIN_ADD + cases_below(c->rng, count));
        if (tiles_now != TILES_OLD || !engine_late(op)) return op;
    }
}

static inline trn_generation engine_generation(const engine_case *c, twin_op op0, twin_op op1)
{
    return c->generation != TRN_GENERATION_DEFAULT && (engine_late(op0) || engine_late(op1)) ? TRN_TRAINIUM3
                                                                                             : c->generation;
}

static inline bool engine_one_operand(twin_op op)
{
    return op == TWIN_BYPASS || op == TWIN_INVERT || op == TWIN_RSQRT || (op >= TWIN_ABS && op <= TWIN_LOGICAL_NOT);
}

/* ---- formats ---- */

static inline int engine_integer(engine_case *c) { return TWIN_I8 + cases_below(c->rng, 6); }

/* Of the same width, with or without sign. */
static inline int engine_integer_like(engine_case *c, int format)
{
    return TWIN_I8 + (format - TWIN_I8) / 2 * 2 + cases_below(c->rng, 2);
}

/* Shift counts below, at and above the width. */
static inline void engine_small_counts(engine_case *c, twin_op op, const trn_tensor *t)
{
    if (op != TWIN_LEFT_SHIFT && op != TWIN_RIGHT_SHIFT) return;
    for (int p = 0; p < t->shape[0]; p++)
        for (int f = 0; f < tiles_elements(t); f++) tiles_put(&c->s, t, p, f, (uint32_t)cases_below(c->rng, 36));
}

static inline void engine_half_zero(engine_case *c, const trn_tensor *t)
{
    for (int p = 0; p < t->shape[0]; p++)
        for (int f = 0; f < tiles_elements(t); f++)
            if (cases_one_in(c->rng, 2)) tiles_put(&c->s, t, p, f, 0);
}

/* ---- registers ---- */

static inline trn_reduce_cmd engine_command(engine_case *c, twin_command command, twin_command fallback)
{
    static const trn_reduce_cmd name[TWIN_COMMANDS] = { TRN_REDUCE_CMD_IDLE, TRN_REDUCE_CMD_RESET,
                                                        TRN_REDUCE_CMD_REDUCE, TRN_REDUCE_CMD_RESET_REDUCE,
                                                        TRN_REDUCE_CMD_LOAD_REDUCE };
    return command == fallback && cases_one_in(c->rng, 2) ? TRN_REDUCE_CMD_DEFAULT : name[command];
}

/* A command out of a set of bits 1 << command; `reduce` on registers that hold something. */
static inline twin_accumulation engine_accumulation(engine_case *c, twin_op op, unsigned legal)
{
    twin_accumulation a;
    memset(&a, 0, sizeof a);
    do a.command = (twin_command)cases_below(c->rng, TWIN_COMMANDS);
    while (!(legal >> a.command & 1u));
    a.op = op;
    c->stateful = true;
    c->state.accumulator_known = a.command == TWIN_REDUCE || cases_one_in(c->rng, 2);
    for (int p = 0; p < 128; p++) {
        const uint32_t any = cases_one_in(c->rng, 4) ? cases_float(c->rng) : bridge_value(c->s.values, c->rng);
        c->state.accumulator[p] = twin_value(twin_isnan(any) ? TWIN_CANONICAL : any);
        c->registers.bits[p] = twin_bits(c->state.accumulator[p]);
    }
    c->registers.known = c->state.accumulator_known;
    a.registers = &c->registers;
    return a;
}

static inline void engine_check_registers(const engine_case *c, const trn_vector_state *after, const char *what)
{
    if (after->accumulator_known != c->registers.known)
        fail_msg("%s (seed %llu): registers are %sknown", what, (unsigned long long)c->seed,
                 after->accumulator_known ? "" : "not ");
    for (int p = 0; p < 128 && c->registers.known; p++)
        if (twin_bits(after->accumulator[p]) != c->registers.bits[p])
            fail_msg("%s (seed %llu): register %d is %08x, expected %08x", what, (unsigned long long)c->seed, p,
                     (unsigned)twin_bits(after->accumulator[p]), (unsigned)c->registers.bits[p]);
}

/* ---- ask ---- */

/* Every instruction's args begin with a trn_instruction. */
static inline void engine_ask(engine_case *c, trn_status (*call)(const void *), void *args, const trn_tensor *dst,
                              const char *what)
{
    trn_instruction head;
    const trn_vector_state before = c->state;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        memcpy(&head, args, sizeof head);
        head.isa = all_isas[i];
        memcpy(args, &head, sizeof head);
        const trn_status status = call(args);
        if (status != TRN_OK)
            fail_msg("%s (seed %llu): %s: %s", what, (unsigned long long)c->seed, trn_status_text(status),
                     c->error.text);
        tiles_check(&c->s, dst, what, all_isas[i], c->seed);
        if (c->stateful) engine_check_registers(c, &c->state, what);
        c->state = before;
        tiles_restore(&c->s);
    }
}

static inline void engine_check(engine_case *c, trn_status (*call)(const void *), void *args, const trn_tensor *dst,
                                const twin_grid *tile, const char *what)
{
    tiles_want(&c->s, dst, tile);
    engine_ask(c, call, args, dst, what);
}

static inline void engine_free(int n, ...)
{
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++) free(va_arg(list, const twin_grid *)->code);
    va_end(list);
}

static inline void engine_many(void (*one)(engine_case *), int rounds)
{
    static engine_case c;
    static const trn_generation generation[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    const char *only = getenv("TRN_TEST_SEED"); /* one case alone */
    for (int i = 0; i < rounds; i++) {
        uint64_t rng = only ? strtoull(only, NULL, 0) : (uint64_t)i + 1;
        memset(&c, 0, sizeof c);
        c.seed = rng;
        c.rng = &rng;
        c.s = tiles_begin(&rng);
        tiles_sizes(&rng, &c.partitions, &c.elements);
        c.how = tiles_rounding(&rng);
        c.generation = generation[cases_below(&rng, 4)];
        tiles_now = c.generation == TRN_TRAINIUM3            ? TILES_NEW
                    : c.generation == TRN_GENERATION_DEFAULT ? TILES_COMMON
                                                             : TILES_OLD;
        if (cases_one_in(&rng, 4)) { /* fewer random bits */
            c.numerics.sr_bits = c.how.cast.bits = 1 + cases_below(&rng, 31);
        }
        one(&c);
        tiles_end(&c.s);
        if (only) break;
    }
}

#endif /* ENGINE_CASES_H */

/* test_core_clock.c - who waits for whom, against remembering everything; transfers in gaps; costs, by hand.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/core/core_clock.h"
#include "trnmath/trn_cost.h"
#include "published/cycles.h"
#include "twin/cases.h"

/* ---- parts of a tile ---- */

enum { MOST = 4000 };

typedef struct past {
    trni_rect at;
    bool write;
    double end;
} past;

/* Is it one of the rows? */
static bool takes(const trni_rect *x, int64_t p)
{
    return p >= x->p && p < x->p_end && (!x->step || (p - x->p) % x->step < x->rows);
}

static bool meet(const trni_rect *x, const trni_rect *y)
{
    for (int64_t p = x->p; p < x->p_end; p++)
        if (takes(x, p) && takes(y, p))
            for (int64_t b = x->b; b < x->b_end; b++)
                if (b >= y->b && b < y->b_end) return true;
    return false;
}

static double slow_ready(const past *all, int count, const trni_rect *at, bool write)
{
    double ready = 0;
    for (int i = 0; i < count; i++)
        if ((write || all[i].write) && all[i].end > ready && meet(&all[i].at, at)) ready = all[i].end;
    return ready;
}

static trni_rect random_rect(uint64_t *seed, int rows, int bytes, bool stepped)
{
    trni_rect r;
    r.p = cases_below(seed, rows);
    r.p_end = r.p + 1 + cases_below(seed, rows - (int)r.p);
    r.b = cases_below(seed, bytes);
    r.b_end = r.b + 1 + cases_below(seed, bytes - (int)r.b);
    r.step = r.rows = 0;
    if (!stepped || !cases_one_in(seed, 2)) return r;
    r.step = 4; /* and all steps of rows are whole */
    r.rows = 1 + cases_below(seed, 3);
    r.p_end = r.p + 4 * cases_below(seed, 4) + r.rows;
    return r;
}

/* Instructions that wait and take some time: ends only grow where parts meet, as on a machine. */
static void waits_are_those_of_whoever_remembers_everything(void **state)
{
    (void)state;
    static trni_access pool[TRNI_ACCESSES];
    static past all[MOST];
    uint64_t seed = 11;
    for (int round = 0; round < cases_rounds(12, 200); round++) {
        trni_history h;
        trni_allocation tile;
        const int rows = 1 + cases_below(&seed, 8), bytes = 1 + cases_below(&seed, 24);
        memset(&tile, 0, sizeof tile);
        tile.access = -1;
        trni_history_begin(&h, pool);
        for (int i = 0; i < 1000; i++) {
            const trni_rect at = random_rect(&seed, rows, bytes, round % 2);
            const bool write = cases_one_in(&seed, 3);
            const double expected = slow_ready(all, i, &at, write);
            const double ready = trni_history_ready(&h, &tile, &at, write);
            assert_true(round % 2 ? ready >= expected : ready == expected); /* of other steps the rows around count */
            all[i].at = at;
            all[i].write = write;
            all[i].end = ready + 1 + cases_below(&seed, 9);
            trni_history_note(&h, &tile, &at, write, all[i].end);
        }
        double last = 0;
        for (int i = 0; i < 1000; i++) last = fmax(last, all[i].end);
        assert_true(trni_history_end(&h, &tile) == last);
        assert_int_equal(tile.access, -1);
    }
}

/* More parts than there is room for: nobody begins too early, and lists stay short. */
static void too_many_parts_wait_longer_but_never_less(void **state)
{
    (void)state;
    static trni_access pool[TRNI_ACCESSES];
    static trni_allocation tile[64];
    static past all[MOST];
    trni_history h;
    trni_history_begin(&h, pool);
    memset(tile, 0, sizeof tile);
    for (int t = 0; t < 64; t++) tile[t].access = -1;
    for (int t = 0; t < 64; t++)
        for (int i = 0; i < 600; i++) {
            const trni_rect at = { i % 2, i % 2 + 1, i, i + 1, 0, 0 };
            if (t == 0) {
                all[i].at = at;
                all[i].write = true;
                all[i].end = i + 1;
            }
            trni_history_note(&h, &tile[t], &at, true, i + 1);
            assert_true(tile[t].accesses <= TRNI_ACCESSES_EACH);
        }
    assert_true(h.used <= TRNI_ACCESSES);
    for (int t = 0; t < 64; t++)
        for (int i = 0; i < 600; i++)
            assert_true(trni_history_ready(&h, &tile[t], &all[i].at, false) >= slow_ready(all, 600, &all[i].at, false));
}

/* ---- transfers ---- */

static void transfers_take_the_first_gap(void **state)
{
    (void)state;
    static trni_stretch taken[MOST];
    uint64_t seed = 5;
    for (int round = 0; round < cases_rounds(40, 1000); round++) {
        static trni_channel c;
        int count = 0;
        double latest = 0;
        memset(&c, 0, sizeof c);
        for (int i = 0; i < 200; i++) {
            const double ready = fmax(0, latest - 60 + cases_below(&seed, 80)), length = cases_below(&seed, 7);
            double from = ready;
            for (bool moved = length > 0; moved;) { /* past whatever is in the way, until nothing is */
                moved = false;
                for (int k = 0; k < count; k++)
                    if (taken[k].from_s < from + length && from < taken[k].to_s) {
                        from = taken[k].to_s;
                        moved = true;
                    }
            }
            assert_true(trni_channel_place(&c, ready, length) == from);
            if (length > 0) {
                taken[count].from_s = from;
                taken[count++].to_s = from + length;
            }
            latest = fmax(latest, from + length);
        }
        for (int i = 1; i < c.stretches; i++) assert_true(c.taken[i - 1].to_s < c.taken[i].from_s);
    }
}

/* So many gaps that the first are forgotten: later, never at the same time. */
static void forgotten_gaps_are_not_used(void **state)
{
    (void)state;
    static trni_channel c;
    memset(&c, 0, sizeof c);
    for (int i = 0; i < 1000; i++) assert_true(trni_channel_place(&c, 2.0 * i, 1) == 2.0 * i);
    assert_int_equal(c.stretches, TRNI_CHANNEL_STRETCHES);
    const double from = trni_channel_place(&c, 0, 1);
    assert_true(from == c.floor_s || from > 2.0 * (1000 - TRNI_CHANNEL_STRETCHES) - 2);
}

/* ---- costs, by hand ---- */

static double cycles(trn_engine_work work)
{
    trn_engine_cost cost = { -1, -1, NULL };
    assert_int_equal(trn_engine_cycles(&work, &cost), TRN_OK);
    assert_true(cost.seconds > 0 || cost.cycles == 0);
    return cost.cycles;
}

static void cycles_are_the_published_ones(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PUBLISHED_CYCLES; i++)
        if (cycles(published_cycles[i].work) != published_cycles[i].expected)
            fail_msg("row %u: %g cycles, expected %g", i, cycles(published_cycles[i].work),
                     published_cycles[i].expected);
}

static void every_rule_and_fact_has_a_source(void **state)
{
    (void)state;
    trn_engine_cost cost;
    for (int i = 0; i < TRN_RULE_COUNT; i++) {
        const trn_engine_rule *rule = trn_engine_rule_of((trn_rule)i);
        assert_true(strlen(rule->name) > 2 && strlen(rule->where) > 8 && strlen(rule->speeds) > 3);
        assert_true(rule->known == TRN_DOCUMENTED || rule->known == TRN_ASSUMED);
    }
    for (int i = 0; i < TRN_FACT_COUNT; i++) {
        const trn_engine_fact *fact = trn_engine_fact_of((trn_fact)i);
        assert_true(strlen(fact->where) > 8 && fact->value >= 0);
    }
    assert_null(trn_engine_rule_of(TRN_RULE_COUNT));
    assert_null(trn_engine_fact_of(TRN_FACT_COUNT));
    const trn_engine_work none = { .rule = TRN_RULE_COUNT }, endless = { .elements = HUGE_VAL };
    const trn_engine_work nowhere = { .generation = (trn_generation)9 };
    assert_int_equal(trn_engine_cycles(&none, &cost), TRN_EINVAL);
    assert_int_equal(trn_engine_cycles(&endless, &cost), TRN_EINVAL);
    assert_int_equal(trn_engine_cycles(&nowhere, &cost), TRN_EINVAL);
}

static void transfers_take_the_published_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PUBLISHED_TRANSFERS; i++) {
        const struct published_transfer *t = &published_transfers[i];
        trn_dma_cost cost;
        assert_int_equal(trn_dma_seconds(&t->work, &cost), TRN_OK);
        if (cost.descriptors != t->descriptors || fabs(1e9 * cost.transfer_s - t->transfer_ns) > 1e-6)
            fail_msg("row %u: %g descriptors, %g ns", i, cost.descriptors, 1e9 * cost.transfer_s);
        assert_true(cost.latency_s == 1.3e-6 && cost.issue_s == 0 && cost.gpsimd_s == 0);
    }
    const trn_dma_work soft = { .bytes = 4, .run_bytes = 4, .software = true },
                       hard = { .bytes = 4, .run_bytes = 4, .hardware = true };
    trn_dma_cost cost;
    assert_int_equal(trn_dma_seconds(&soft, &cost), TRN_OK);
    assert_true(cost.gpsimd_s == 600e-9 && cost.issue_s == 0);
    assert_int_equal(trn_dma_seconds(&hard, &cost), TRN_OK);
    assert_true(cost.gpsimd_s == 0 && cost.issue_s == 600e-9);
    assert_true(strcmp(cost.rate_known.field, "dma_engine_bytes_per_s") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_those_of_whoever_remembers_everything),
        cmocka_unit_test(too_many_parts_wait_longer_but_never_less),
        cmocka_unit_test(transfers_take_the_first_gap),
        cmocka_unit_test(forgotten_gaps_are_not_used),
        cmocka_unit_test(cycles_are_the_published_ones),
        cmocka_unit_test(every_rule_and_fact_has_a_source),
        cmocka_unit_test(transfers_take_the_published_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_collective_rules.c - replica groups that a system's runtime accepts or not, refusals of the cost, and names.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_collective_cost.h"
#include "twin/cases.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- replica groups: systems.md, section 2.3 ---- */

typedef struct rule_row {
    trn_system system;
    int cores, count, groups;
    int chips[16];
    const char *why; /* part of the sentence; NULL = accepted */
} rule_row;

static const rule_row rules[] = {
    /* Trainium2, two physical cores to a rank: 1, 2, 4, 8, 16, 32, 64 */
    { TRN_TRN2_48XLARGE, 4, 1, 1, { 9 }, NULL },
    { TRN_TRN2_48XLARGE, 4, 2, 2, { 0, 1, 2, 3 }, NULL },
    { TRN_TRN2_48XLARGE, 4, 2, 1, { 0, 4 }, NULL }, /* ranks 0-3 and 16-19 */
    { TRN_TRN2_48XLARGE,
      4,
      3,
      1,
      { 0, 1, 2 },
      "12 ranks; Trainium2 with 4 ranks per chip takes 1, 2, 4, 8, 16, 32, 64" },
    { TRN_TRN2_48XLARGE, 4, 5, 1, { 0, 1, 2, 3, 4 }, "20 ranks" },
    { TRN_TRN2_48XLARGE, 4, 12, 1, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, "48 ranks" },
    { TRN_TRN2_48XLARGE, 4, 4, 4, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, NULL }, /* rows */
    { TRN_TRN2_48XLARGE, 4, 4, 2, { 0, 4, 8, 12, 1, 5, 9, 13 }, NULL },                             /* columns */
    { TRN_TRN2_48XLARGE, 4, 4, 1, { 0, 1, 4, 5 }, "one row of the torus" },
    { TRN_TRN2_48XLARGE, 4, 4, 2, { 0, 1, 2, 3, 4, 5, 8, 9 }, "one row of the torus" }, /* the second group */
    { TRN_TRN2_48XLARGE, 4, 8, 1, { 0, 1, 2, 3, 4, 5, 6, 7 }, "rows {0, 3} or {1, 2}" },
    { TRN_TRN2_48XLARGE, 4, 8, 1, { 8, 9, 10, 11, 12, 13, 14, 15 }, "rows {0, 3} or {1, 2}" },
    { TRN_TRN2_48XLARGE, 4, 8, 1, { 0, 1, 2, 3, 8, 9, 10, 11 }, "rows {0, 3} or {1, 2}" },
    { TRN_TRN2_48XLARGE, 4, 8, 1, { 0, 4, 8, 12, 1, 5, 9, 13 }, "rows {0, 3} or {1, 2}" },
    { TRN_TRN2_48XLARGE, 4, 8, 2, { 0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11 }, NULL },
    { TRN_TRN2_48XLARGE, 4, 8, 1, { 4, 5, 6, 7, 8, 9, 10, 11 }, NULL },
    { TRN_TRN2_48XLARGE, 4, 0, 0, { 0 }, NULL },
    { TRN_TRN2U_48XLARGE, 4, 8, 1, { 0, 1, 2, 3, 4, 5, 6, 7 }, "rows {0, 3} or {1, 2}" },
    /* all eight cores */
    { TRN_TRN2_48XLARGE, 8, 1, 1, { 3 }, NULL },
    { TRN_TRN2_48XLARGE, 8, 8, 1, { 0, 1, 2, 3, 12, 13, 14, 15 }, NULL },
    { TRN_TRN2_48XLARGE, 8, 8, 1, { 0, 1, 2, 3, 4, 5, 6, 7 }, "64 ranks on 8 chips must be rows {0, 3} or {1, 2}" },
    { TRN_TRN2_48XLARGE, 8, 3, 1, { 0, 1, 2 }, "24 ranks" },
    { TRN_TRN2_48XLARGE, 8, 0, 0, { 0 }, NULL },
    /* the UltraServer: instances, one chip of each, rows through all four */
    { TRN_TRN2_ULTRASERVER, 4, 0, 0, { 0 }, NULL },
    { TRN_TRN2_ULTRASERVER, 4, 16, 1, { 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 }, NULL },
    { TRN_TRN2_ULTRASERVER,
      4,
      16,
      1,
      { 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23 },
      "one instance" },
    { TRN_TRN2_ULTRASERVER, 4, 4, 1, { 5, 21, 37, 53 }, NULL },
    { TRN_TRN2_ULTRASERVER, 4, 4, 1, { 14, 15, 16, 17 }, "one row of the torus" },
    { TRN_TRN2_ULTRASERVER, 4, 8, 1, { 0, 1, 2, 3, 16, 17, 18, 19 }, "rows {0, 3} or {1, 2}" },
    { TRN_TRN2_ULTRASERVER, 4, 8, 1, { 16, 17, 18, 19, 28, 29, 30, 31 }, NULL },
    /* Trainium1: 1, 2, 8, 16 or a multiple of 32; consecutive, from a multiple of their number, or a column */
    { TRN_TRN1_32XLARGE, 2, 1, 1, { 11 }, NULL },
    { TRN_TRN1_32XLARGE,
      2,
      2,
      1,
      { 0, 1 },
      "4 ranks; Trainium1 with 2 ranks per chip takes 1, 2, 8, 16 or a multiple of 32" },
    { TRN_TRN1_32XLARGE, 2, 4, 2, { 4, 5, 6, 7, 12, 13, 14, 15 }, NULL },
    { TRN_TRN1_32XLARGE, 2, 4, 1, { 1, 5, 9, 13 }, NULL },
    { TRN_TRN1_32XLARGE, 2, 4, 1, { 2, 3, 4, 5 }, "begin at a multiple of 4" },
    { TRN_TRN1_32XLARGE, 2, 4, 1, { 0, 2, 4, 6 }, "consecutive" },
    { TRN_TRN1_32XLARGE, 2, 8, 1, { 8, 9, 10, 11, 12, 13, 14, 15 }, NULL },
    { TRN_TRN1_32XLARGE, 2, 8, 1, { 4, 5, 6, 7, 8, 9, 10, 11 }, "begin at a multiple of 8" },
    { TRN_TRN1_32XLARGE, 2, 12, 1, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, "24 ranks" },
    { TRN_TRN1_32XLARGE, 2, 0, 0, { 0 }, NULL },
    { TRN_TRN1_2XLARGE, 2, 0, 0, { 0 }, NULL },
    /* without published rules */
    { TRN_TRN2_48XLARGE, 2, 3, 1, { 0, 7, 9 }, NULL },
    { TRN_TRN3_GEN2_ULTRASERVER, 4, 3, 1, { 0, 7, 99 }, NULL },
    { TRN_PROJECT_RAINIER, 4, 0, 0, { 0 }, NULL },
};

static void test_rules(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(rules); i++) {
        const rule_row *r = &rules[i];
        const trn_topology net = trn_topology_of(r->system);
        trn_error why;
        trn_collective_args a;
        trn_cost cost;
        memset(&a, 0, sizeof a);
        memset(&why, 0, sizeof why);
        a.net = &net;
        a.op = TRN_ALL_REDUCE;
        a.ranks_per_chip = r->cores;
        a.chips = r->count ? r->chips : NULL;
        a.count = r->count;
        a.groups = r->groups;
        a.error = &why;
        const trn_status status = trn_replica_group_check(&a);
        if (status != (r->why ? TRN_ELIMIT : TRN_OK) || (r->why && !strstr(why.text, r->why)))
            fail_msg("rule %d: %d: %s\nnot: %s", i, (int)status, why.text, r->why ? r->why : "accepted");
        if (r->why && why.status != status) fail_msg("rule %d: the error's status is %d", i, (int)why.status);
        a.enforce_rules = true;
        assert_int_equal(trn_collective_cost(&a, &cost), status);
        a.enforce_rules = false;
        assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    }
}

/* Whatever the chips of the group, the check of their numbers comes first. */
static void test_rules_after_numbers(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    static const int chips[] = { 0, 1, 2, 16 };
    trn_error why;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = &net;
    a.chips = chips;
    a.count = 4;
    a.ranks_per_chip = 4;
    a.error = &why;
    assert_int_equal(trn_replica_group_check(&a), TRN_EINVAL);
    assert_non_null(strstr(why.text, "chips[3] = 16"));
    a.net = NULL;
    assert_int_equal(trn_replica_group_check(&a), TRN_EINVAL);
}

/* ---- refusals of the cost ---- */

static trn_topology net;
static trn_collective_args base;
static trn_error why;

static void begin(void)
{
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    memset(&base, 0, sizeof base);
    base.net = &net;
    base.op = TRN_ALL_REDUCE;
    base.bytes = 1 << 20;
    base.ranks_per_chip = 4;
    base.error = &why;
}

/* Refused with a sentence that has this in it; the answer is not touched, and there are no candidates. */
static void refuse(trn_status status, const char *text)
{
    trn_cost cost, before;
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    memset(&cost, 0x5a, sizeof cost);
    memset(&before, 0x5a, sizeof before);
    memset(&why, 0, sizeof why);
    const trn_status got = trn_collective_cost(&base, &cost);
    if (got != status || !strstr(why.text, text)) fail_msg("%d: %s\nnot %d: %s", (int)got, why.text, (int)status, text);
    assert_true(why.status == status && strlen(why.text) > 20);
    assert_memory_equal(&cost, &before, sizeof cost);
    base.error = NULL;
    assert_int_equal(trn_collective_cost(&base, &cost), status);
    if (status == TRN_EINVAL && !base.single_step) assert_int_equal(trn_collective_candidates(&base, list), 0);
    begin();
}

#define REFUSE(change, status, text) (change, refuse(status, text))

static void test_refusals(void **state)
{
    (void)state;
    static const int chips[] = { 0, 1, 2, 16 }, twice[] = { 3, 4, 3 }, row[] = { 0, 1, 2, 3, 4, 5, 6 };
    const double nan = strtod("nan", NULL);
    const trn_calibration below = { .mesh = -1 }, none = { .rdh = nan }, huge = { .memory = HUGE_VAL };
    trn_cost cost;
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    begin();
    assert_int_equal(trn_collective_cost(NULL, &cost), TRN_EINVAL);
    assert_int_equal(trn_collective_cost(&base, NULL), TRN_EINVAL);
    assert_non_null(strstr(why.text, "cost is null"));
    assert_int_equal(trn_collective_candidates(NULL, list), 0);
    assert_int_equal(trn_collective_candidates(&base, NULL), 0);
    REFUSE(base.net = NULL, TRN_EINVAL, "net is null");
    REFUSE(net.chips = 15, TRN_EINVAL, "chips is 15");
    REFUSE(net.level[1].bytes_per_s = nan, TRN_EINVAL, "expected 1 to 1e+18");
    REFUSE(net.start_s = -1, TRN_EINVAL, "start_s");
    REFUSE(base.op = TRN_COLLECTIVE_COUNT, TRN_EINVAL, "op = 7");
    REFUSE(base.algorithm = TRN_ALGORITHM_COUNT, TRN_EINVAL, "algorithm = 11");
    REFUSE(base.bytes = INT64_MIN, TRN_EINVAL, "is negative");
    REFUSE(base.ranks_per_chip = 65, TRN_EINVAL, "expected 1 to 64");
    REFUSE(base.count = -1, TRN_EINVAL, "count = -1");
    REFUSE(base.groups = -2, TRN_EINVAL, "groups = -2");
    REFUSE(base.groups = 2, TRN_EINVAL, "chips is null");
    REFUSE(base.count = 15, TRN_EINVAL, "chips is null (all 16 chips, one group)");
    REFUSE(base.chips = chips, TRN_EINVAL, "count = 0");
    REFUSE((base.chips = chips, base.count = 4), TRN_EINVAL, "chips[3] = 16, but trn2.48xlarge has chips 0 to 15");
    REFUSE((base.chips = twice, base.count = 3), TRN_EINVAL, "chip 3 is in the groups twice");
    REFUSE((base.chips = twice, base.count = 1, base.groups = 3), TRN_EINVAL, "chip 3 is in the groups twice");
    REFUSE((base.chips = twice, base.count = 17), TRN_EINVAL, "17 chips in 1 groups");
    REFUSE((base.chips = twice, base.count = INT32_MAX), TRN_ELIMIT, "ranks");
    REFUSE(base.root = 64, TRN_EINVAL, "ranks 0 to 63");
    REFUSE(base.target = -1, TRN_EINVAL, "target = -1");
    REFUSE(base.calibration = &below, TRN_EINVAL, "calibration: mesh = -1");
    REFUSE(base.calibration = &none, TRN_EINVAL, "calibration: rdh");
    REFUSE(base.calibration = &huge, TRN_EINVAL, "calibration: memory = inf");
    REFUSE((base.chips = row, base.count = 7, base.algorithm = TRN_RECURSIVE_DOUBLING), TRN_EUNSUPPORTED,
           "power of two");
    REFUSE((base.ranks_per_chip = 1, base.algorithm = TRN_KANGARING), TRN_EUNSUPPORTED, "ranks_per_chip = 1");
    REFUSE((base.op = TRN_ALL_TO_ALL, base.algorithm = TRN_KANGARING), TRN_EUNSUPPORTED, "not all_to_all");
    REFUSE(base.algorithm = TRN_SWITCH_DIRECT, TRN_EUNSUPPORTED, "trn2.48xlarge has none");
    REFUSE((base.chips = row, base.count = 4, base.algorithm = TRN_HIERARCHICAL), TRN_EUNSUPPORTED, "1 dimension");
    REFUSE(base.algorithm = TRN_POINT_TO_POINT, TRN_EUNSUPPORTED, "point_to_point is not a way of all_reduce");
    REFUSE((base.algorithm = TRN_RING, base.single_step = true), TRN_EINVAL, "single_step");
    REFUSE((base.op = TRN_ALL_GATHER, base.algorithm = TRN_MESH, base.single_step = true), TRN_EINVAL, "single_step");
}

/* One switch: chips behind it, directly or over unwired levels, in every group; a ring above it is none. */
static void test_one_switch(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        int count, groups;
        int chips[8];
        bool joined;
    } row[] = {
        { TRN_TRN3_GEN2_ULTRASERVER, 4, 1, { 0, 1, 2, 3 }, true },
        { TRN_TRN3_GEN2_ULTRASERVER, 4, 1, { 0, 4, 9, 70 }, true },
        { TRN_TRN3_GEN2_ULTRASERVER, 4, 1, { 0, 4, 9, 72 }, false },
        { TRN_TRN3_GEN2_ULTRASERVER, 3, 2, { 0, 1, 2, 4, 90, 12 }, false }, /* the second group */
        { TRN_TRN3_GEN2_ULTRASERVER, 3, 2, { 4, 90, 12, 0, 1, 2 }, false },
        { TRN_TRN3_GEN1_ULTRASERVER, 4, 1, { 0, 2, 4, 6 }, true }, /* trays have no wires of their own */
        { TRN_TRN3_GEN1_ULTRASERVER, 3, 1, { 0, 6, 2 }, true },
        { TRN_TRN3_GEN1_ULTRASERVER, 2, 1, { 0, 1 }, false },
        { TRN_TRN3_GEN1_ULTRASERVER, 4, 1, { 0, 2, 32, 34 }, false },
    };
    for (int i = 0; i < COUNT(row); i++) {
        const trn_topology system = trn_topology_of(row[i].system);
        trn_cost cost;
        begin();
        base.net = &system;
        base.chips = row[i].chips;
        base.count = row[i].count;
        base.groups = row[i].groups;
        base.algorithm = TRN_SWITCH_DIRECT;
        const trn_status status = trn_collective_cost(&base, &cost);
        if (status != (row[i].joined ? TRN_OK : TRN_EUNSUPPORTED)) fail_msg("row %d: %d", i, (int)status);
    }
}

/* ---- names, and what is known of the calibration ---- */

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < TRN_COLLECTIVE_COUNT; i++)
        assert_int_equal(trn_collective_from_name(trn_collective_name((trn_collective)i)), i);
    for (int i = 0; i < TRN_ALGORITHM_COUNT; i++)
        assert_int_equal(trn_algorithm_from_name(trn_algorithm_name((trn_algorithm)i)), i);
    static const char *const bad[] = { "", "unknown", "Ring", "all reduce", "rin", "rings", NULL };
    for (int i = 0; i < COUNT(bad); i++) {
        assert_int_equal(trn_collective_from_name(bad[i]), TRN_COLLECTIVE_COUNT);
        assert_int_equal(trn_algorithm_from_name(bad[i]), TRN_ALGORITHM_COUNT);
    }
    assert_string_equal(trn_collective_name((trn_collective)-1), "unknown");
    assert_string_equal(trn_collective_name(TRN_COLLECTIVE_COUNT), "unknown");
    assert_string_equal(trn_algorithm_name((trn_algorithm)-1), "unknown");
    assert_string_equal(trn_algorithm_name(TRN_ALGORITHM_COUNT), "unknown");
    assert_int_equal(trn_algorithm_from_name("rdh"), TRN_RECURSIVE_DOUBLING);
    assert_int_equal(trn_algorithm_from_name("kangaring"), TRN_KANGARING);
    assert_int_equal(trn_collective_from_name("all_reduce"), TRN_ALL_REDUCE);
}

static void test_calibration(void **state)
{
    (void)state;
    const trn_calibration c = trn_calibration_default();
    double value[sizeof c / sizeof(double)]; /* a struct of doubles, in the order of the list */
    trn_spec_field field;
    int i = 0;
    memcpy(value, &c, sizeof value);
    for (; trn_calibration_field_at(i, &field); i++) {
        assert_true(fabs(field.value - value[i]) < 1e-15 && strlen(field.where) > 10 && strlen(field.field) > 2);
        assert_true(field.known == TRN_FITTED || field.known == TRN_ASSUMED);
    }
    assert_int_equal(i, COUNT(value));
    assert_false(trn_calibration_field_at(-1, &field));
    trn_cost given, unset, calibrated;
    begin();
    base.algorithm = TRN_RECURSIVE_DOUBLING;
    base.bytes = (int64_t)1 << 30;
    assert_int_equal(trn_collective_cost(&base, &unset), TRN_OK);
    base.calibration = &c;
    assert_int_equal(trn_collective_cost(&base, &given), TRN_OK);
    base.uncalibrated = true;
    assert_int_equal(trn_collective_cost(&base, &calibrated), TRN_OK);
    assert_true(fabs(given.time_s - unset.time_s) <= 0 && fabs(given.link_s / calibrated.link_s - 1.4) < 0.05);
    const trn_calibration zero = { .rdh = 0 }; /* the same as one each */
    base.uncalibrated = false;
    base.calibration = &zero;
    assert_int_equal(trn_collective_cost(&base, &given), TRN_OK);
    assert_true(fabs(given.time_s - calibrated.time_s) <= 0);
}

static void test_busbw(void **state)
{
    (void)state;
    static const double of_four[TRN_COLLECTIVE_COUNT] = { 0.75, 0.75, 1.5, 0.75, 1, 1, 1 };
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        assert_true(fabs(trn_collective_busbw_factor((trn_collective)op, 4) - of_four[op]) <= 0);
}

/* ---- hierarchies: which ways of the inner levels and of the outer one make sense, and what they are ---- */

static trn_topology two_rings(int a, int b, trn_wiring inner, int top)
{
    trn_level level[3];
    const int size[3] = { a, b, top };
    memset(level, 0, sizeof level);
    for (int l = 0; l < 3; l++) {
        level[l].name = l == 0 ? "a" : l == 1 ? "b" : "top";
        level[l].wiring = l < 2 ? inner : TRN_WIRING_SWITCH;
        level[l].size = size[l];
        level[l].bytes_per_s = 1e9;
    }
    return trn_topology_hierarchy("rings", 3, level);
}

/* Which of the twelve fit, a bit each: inner ways 0 to 3, for each of three outer ones. */
static unsigned fitting(const trn_topology *net, trn_collective op, int ranks_per_chip)
{
    trni_layout l;
    unsigned bits = 0;
    const trn_collective_args args = { .net = net, .op = op, .ranks_per_chip = ranks_per_chip };
    assert_int_equal(trni_layout_init(&l, &args), TRN_OK);
    for (int v = 0; v < TRNI_INNERS * TRNI_OUTERS; v++) bits |= (unsigned)trni_hierarchy_fits(&l, v) << v;
    return bits;
}

static void test_hierarchies(void **state)
{
    (void)state;
    const trn_topology of_4 = two_rings(4, 4, TRN_WIRING_RING, 4), of_3 = two_rings(4, 4, TRN_WIRING_RING, 3),
                       of_2 = two_rings(4, 4, TRN_WIRING_RING, 2), large = two_rings(8, 4, TRN_WIRING_RING, 4),
                       huge = two_rings(64, 32, TRN_WIRING_RING, 4), hubs = two_rings(8, 8, TRN_WIRING_SWITCH, 4);
    assert_int_equal(fitting(&of_4, TRN_ALL_REDUCE, 1), 0xddd);  /* rings, not pairs of cores */
    assert_int_equal(fitting(&of_4, TRN_ALL_REDUCE, 2), 0xbbb);  /* pairs, not rings */
    assert_int_equal(fitting(&of_4, TRN_ALL_TO_ALL, 2), 0xddd);  /* which sums alone have */
    assert_int_equal(fitting(&of_3, TRN_ALL_REDUCE, 1), 0x0dd);  /* no halving of three, */
    assert_int_equal(fitting(&of_2, TRN_ALL_REDUCE, 1), 0x00d);  /* nor anything but one exchange of two */
    assert_int_equal(fitting(&large, TRN_ALL_REDUCE, 1), 0x555); /* 32 chips on rings do not send directly, */
    assert_int_equal(fitting(&hubs, TRN_ALL_REDUCE, 1), 0xddd);  /* 64 behind switches do; */
    assert_int_equal(fitting(&huge, TRN_ALL_REDUCE, 1), 0x111);  /* 2048 have no ring */
}

static void test_stages_of_a_hierarchy(void **state)
{
    (void)state;
    static const trni_pattern inner[2][4][2] = {
        { { TRNI_BOTH_WAYS, TRNI_BOTH_WAYS },
          { TRNI_BOTH_WAYS, TRNI_BOTH_WAYS },
          { TRNI_RING_UP, TRNI_RING_DOWN },
          { TRNI_DIRECT, TRNI_DIRECT } },
        { { TRNI_BOTH_WAYS, TRNI_BOTH_WAYS },
          { TRNI_PAIRS_UP, TRNI_PAIRS_DOWN },
          { TRNI_RING_UP, TRNI_RING_DOWN },
          { TRNI_DIRECT, TRNI_DIRECT } },
    };
    const trn_topology net = two_rings(4, 4, TRN_WIRING_RING, 4);
    for (int cores = 1; cores <= 2; cores++)
        for (int v = 0; v < TRNI_INNERS * TRNI_OUTERS; v++) {
            trni_layout l;
            trni_schedule s;
            memset(&s, 0, sizeof s);
            const trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .ranks_per_chip = cores };
            assert_int_equal(trni_layout_init(&l, &args), TRN_OK);
            if (!trni_hierarchy_fits(&l, v)) continue;
            assert_int_equal(trni_layout_schedule(&l, TRN_HIERARCHICAL, v, &s), TRN_OK);
            const int way = v % TRNI_INNERS;
            assert_int_equal(s.block, 16 * cores);
            for (int k = 0; k < s.channels; k++) {
                const trni_cc_channel *c = &s.channel[k];
                const trni_cc_stage *last = &c->stage[c->stages - 1];
                if (way) assert_int_equal(c->stage[0].how, inner[cores - 1][way][k % 2]);
                assert_int_equal(last->how, v / TRNI_INNERS == 0 ? TRNI_RING_UP : TRNI_DIRECT);
                assert_int_equal(last->size, v / TRNI_INNERS == 2 ? 2 : 4);
                assert_int_equal(last->stride, 16 * cores * (v / TRNI_INNERS == 2 ? 2 : 1));
            }
            trni_schedule_free(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rules_after_numbers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_switch),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_busbw),
        cmocka_unit_test(test_hierarchies),
        cmocka_unit_test(test_stages_of_a_hierarchy),
    };
    return cmocka_run_group_tests_name("collective rules", tests, NULL, NULL);
}

/* test_spec_physical.c - what the machines are built of, what is printed of their links, what is announced.
 * SPDX-License-Identifier: MIT
 *
 * Facts are held against figures copied from the pages (published/machines.h) and against each other: cards times their
 * rate are a server's EFA, cores times threads its vCPUs, lanes times their rate a chip's NeuronLink.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "published/machines.h"
#include "trnmath/trn_spec.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static bool find(trn_system system, const char *level, const char *field, trn_spec_physical *out)
{
    for (int i = 0; trn_spec_physical_at(trn_system_spec_of(system), i, out); i++)
        if (strcmp(out->number.level, level) == 0 && strcmp(out->number.field, field) == 0) return true;
    return false;
}

/* NaN when there is no such fact. */
static double value(trn_system system, const char *level, const char *field)
{
    trn_spec_physical fact;
    return find(system, level, field, &fact) ? fact.number.value : (double)NAN;
}

static void is(trn_system system, const char *level, const char *field, double wanted)
{
    const double found = value(system, level, field);
    if (!near(found, wanted))
        fail_msg("%s, %s %s: %.12g, expected %.12g", trn_system_name(system), level, field, found, wanted);
}

/* ---- units ---- */

/* A field's name ends in its unit. */
static void unit_fits(const char *owner, const char *field, const char *unit)
{
    static const struct {
        const char *end, *unit;
    } row[] = {
        { "_bytes_per_s", "B/s" },
        { "_bits_per_s", "bit/s" },
        { "_flops_per_s", "flop/s" },
        { "_ops_per_s", "op/s" },
        { "reads_per_s", "1/s" },
        { "writes_per_s", "1/s" },
        { "_bytes", "B" },
        { "_hz", "Hz" },
        { "_s", "s" },
        { "_lanes", "lanes" },
        { "_cards", "cards" },
        { "_drives", "drives" },
        { "_stacks", "stacks" },
        { "_trays", "trays" },
        { "_rack_units", "U" },
        { "_links", "links/chip" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const size_t length = strlen(field), end = strlen(row[i].end);
        if (length < end || strcmp(field + length - end, row[i].end) != 0) continue;
        const size_t n = strlen(row[i].unit);
        if (strncmp(unit, row[i].unit, n) != 0 || (unit[n] && unit[n] != ' '))
            fail_msg("%s, %s: its unit is '%s'", owner, field, unit);
        return;
    }
}

/* What a machine of these years can have of a unit, so that bits for bytes, one for all, or 10^3 too many are seen. */
static void size_fits(const char *owner, const char *field, const char *unit, double x)
{
    static const struct {
        const char *unit;
        double least, most;
    } row[] = {
        { "B", 1e11, 1e13 },          /* a drive; stacks are told apart below */
        { "bit/s", 1e10, 4e11 },      /* one card, or a server's EBS */
        { "B/s one way", 2e9, 1e10 }, /* a lane */
        /* drives' reads and writes; lanes of a card; a rack */
        { "1/s", 1e4, 1e7 },
        { "lanes", 0, 200 },
        { "U", 1, 50 },
    };
    const bool stack = strcmp(field, "hbm_stack_bytes") == 0;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!stack && strcmp(unit, row[i].unit) == 0 && !(x >= row[i].least && x <= row[i].most))
            fail_msg("%s, %s: %g %s", owner, field, x, unit);
    if (stack && !(x >= 0x1p34 && x <= 0x1p36 && fmod(x, 0x1p30) == 0)) fail_msg("%s: a stack of %g bytes", owner, x);
    if (strcmp(field, "nvme_drive_bytes") == 0 && fmod(x, 1e9) != 0) fail_msg("%s: a drive of %g bytes", owner, x);
}

static void units(void **state)
{
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        trn_spec_field field;
        trn_spec_physical fact;
        for (int i = 0; trn_spec_field_at(spec, i, &field); i++) unit_fits(field.owner, field.field, field.unit);
        for (int i = 0; trn_spec_physical_at(spec, i, &fact); i++) {
            unit_fits(fact.number.owner, fact.number.field, fact.number.unit);
            if (!fact.text && strcmp(fact.number.level, "total") != 0)
                size_fits(fact.number.owner, fact.number.field, fact.number.unit, fact.number.value);
        }
    }
}

/* ---- what the machines are built of ---- */

static void instances(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PUBLISHED_INSTANCES; i++) {
        const trn_system at = published_instances[i].system;
        trn_spec_physical processor;
        assert_true(find(at, "server", "processor", &processor));
        assert_string_equal(processor.text, published_instances[i].processor);
        assert_true(isnan(processor.number.value));
        is(at, "server", "cpu_cores", published_instances[i].cpu_cores);
        is(at, "server", "threads_per_core", published_instances[i].threads);
        is(at, "server", "nvme_drives", published_instances[i].drives);
        is(at, "server", "nvme_drive_bytes", published_instances[i].drive_gb * 1e9);
        is(at, "server", "nvme_reads_per_s", published_instances[i].reads);
        is(at, "server", "nvme_writes_per_s", published_instances[i].writes);
        is(at, "server", "network_cards", published_instances[i].cards);
        is(at, "server", "network_card_bits_per_s", published_instances[i].card_gbit_per_s * 1e9);
        is(at, "server", "ebs_bits_per_s", published_instances[i].ebs_gbit_per_s * 1e9);
    }
}

/* Facts multiply to what the tables of trn_spec.h hold, which come from other pages. */
static void products(void **state)
{
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system at = (trn_system)s;
        const trn_system_spec *spec = trn_system_spec_of(at);
        const trn_server_spec *server = spec->server;
        const double cores = value(at, "server", "cpu_cores"), trays = value(at, "server", "trays");
        const double racks = value(at, "total", "racks"), lanes = value(at, "chip", "link_lanes");
        is(at, "chip", "hbm_stack_bytes", server->chip->hbm_bytes / value(at, "chip", "hbm_stacks"));
        is(at, "total", "dies", trn_spec_chips(spec) * value(at, "chip", "dies"));
        if (!isnan(cores)) is(at, "server", "threads_per_core", server->vcpus / cores);
        if (at != TRN_TRN1_2XLARGE) /* one card, and two pages that disagree: see the alternatives */
            is(at, "server", "network_card_bits_per_s", server->efa_bits_per_s / value(at, "server", "network_cards"));
        if (!isnan(trays)) is(at, "server", "chips_per_tray", server->chips / trays);
        if (!isnan(value(at, "server", "rack_units")))
            is(at, "server", "rack_units",
               value(at, "server", "tray_rack_units") * (trays + value(at, "server", "host_trays")));
        if (!isnan(racks)) is(at, "server", "servers_per_rack", spec->servers / racks);
        if (!isnan(lanes) && spec->servers_per_domain > 1)
            is(at, "chip", "link_lane_bytes_per_s",
               trn_spec_totals_of(spec).neuronlink_chip_bytes_per_s / (lanes - value(at, "chip", "link_spare_lanes")));
        if (!isnan(value(at, "server", "nvme_drives")))
            is(at, "total", "nvme_bytes", value(at, "total", "nvme_drives") * value(at, "server", "nvme_drive_bytes"));
    }
}

static void whole_systems(void **state)
{
    (void)state;
    static const double stack_gib[] = { 16, 24, 36 };
    is(TRN_TRN1_32XLARGE, "total", "nvme_bytes", 7.6e12);
    is(TRN_TRN2_ULTRASERVER, "total", "nvme_bytes", 30.4e12);
    is(TRN_TRN2_ULTRASERVER, "total", "racks", 2);
    is(TRN_TRN2_ULTRASERVER, "total", "trays", 32);
    is(TRN_TRN3_GEN1_ULTRASERVER, "total", "racks", 2);
    is(TRN_TRN3_GEN1_ULTRASERVER, "total", "trays", 32);
    is(TRN_TRN3_GEN2_ULTRASERVER, "total", "racks", 2);
    is(TRN_TRN3_GEN2_ULTRASERVER, "total", "trays", 36);
    is(TRN_TRN3_GEN2_ULTRASERVER, "total", "hbm_stacks", 576);
    is(TRN_TRN3_GEN2_ULTRASERVER, "total", "network_cards", 144);
    is(TRN_PROJECT_RAINIER, "total", "racks", 12500);
    is(TRN_TRN1_2XLARGE, "chip", "hbm_stack_bytes", stack_gib[0] * 1073741824);
    is(TRN_TRN2_48XLARGE, "chip", "hbm_stack_bytes", stack_gib[1] * 1073741824);
    is(TRN_TRN3_GEN1_ULTRASERVER, "chip", "hbm_stack_bytes", stack_gib[2] * 1073741824);
    assert_true(isnan(value(TRN_TRN3_GEN2_ULTRASERVER, "server", "nvme_drives"))); /* nobody says */
    assert_true(isnan(value(TRN_TRN3_GEN2_ULTRASERVER, "total", "nvme_bytes")));
}

/* Each has a source, either a number or a text, an owner that the system has, and no twin. */
static void every_fact_has_its_source(void **state)
{
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        trn_spec_physical fact, twin;
        int count = 0;
        for (; trn_spec_physical_at(spec, count, &fact); count++) {
            const trn_spec_field *n = &fact.number;
            const char *owner = strcmp(n->level, "chip") == 0     ? spec->server->chip->name
                                : strcmp(n->level, "server") == 0 ? spec->server->name
                                                                  : spec->name;
            assert_string_equal(n->owner, owner);
            assert_true(strlen(n->field) > 3 && strlen(n->where) > 8 && (unsigned)n->known <= TRN_ASSUMED);
            if (fact.text)
                assert_true(isnan(n->value) && strlen(fact.text) > 2 && !*n->unit);
            else
                assert_true(n->value >= 0 && n->value < 1e30 && *n->unit);
            for (int i = 0; i < count && trn_spec_physical_at(spec, i, &twin); i++)
                assert_false(strcmp(twin.number.level, n->level) == 0 && strcmp(twin.number.field, n->field) == 0);
        }
        assert_true(count >= 8);
        assert_false(trn_spec_physical_at(spec, count, &fact));
        assert_false(trn_spec_physical_at(spec, -1, &fact));
    }
}

/* ---- NeuronLink, reading by reading ---- */

static void link_readings(void **state)
{
    (void)state;
    trn_spec_link_reading r;
    bool found[PUBLISHED_LINKS] = { false };
    int count = 0, of[3] = { 0, 0, 0 }, as_held[3] = { 0, 0, 0 };
    for (; trn_spec_link_reading_at(count, &r); count++) {
        const int g = (int)trn_system_spec_of(r.system)->server->chip->core->generation - (int)TRN_TRAINIUM1;
        of[g]++;
        assert_true(strlen(r.where) > 8 && strlen(r.how) > 8 && (unsigned)r.known <= TRN_ASSUMED);
        assert_true(r.held_bytes_per_s > 1e10 && r.held_bytes_per_s < 2e12);
        assert_true(r.bytes_per_s <= 2.5 * r.held_bytes_per_s && r.bytes_per_s >= r.held_bytes_per_s / 4.5);
        as_held[g] += near(r.bytes_per_s, r.held_bytes_per_s);
        for (unsigned i = 0; i < PUBLISHED_LINKS; i++)
            if (published_links[i].system == r.system && strcmp(published_links[i].of, r.of) == 0 &&
                strcmp(published_links[i].unit, r.unit) == 0 && near(published_links[i].printed, r.printed)) {
                found[i] = true;
                if (!near(r.bytes_per_s, published_links[i].bytes_per_s))
                    fail_msg("%g %s is %.12g B/s one way, not %.12g", r.printed, r.unit, published_links[i].bytes_per_s,
                             r.bytes_per_s);
            }
    }
    for (unsigned i = 0; i < PUBLISHED_LINKS; i++)
        if (!found[i]) fail_msg("%g %s is no reading", published_links[i].printed, published_links[i].unit);
    for (int g = 0; g < 3; g++) assert_true(of[g] >= 7 && as_held[g] >= 2);
    assert_false(trn_spec_link_reading_at(count, &r));
    assert_false(trn_spec_link_reading_at(-1, &r));
}

/* ---- announced ---- */

static void announced(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        double times, value;
    } row[] = {
        { "fp4_flops_per_s", 6, 15102e12 },
        { "fp8_flops_per_s", 3, 7551e12 },
        { "hbm_bytes_per_s", 4, 19.6e12 },
        { "hbm_bytes", 2, 309237645312.0 }, /* 288 GiB */
    };
    trn_spec_announced a;
    int count = 0, met = 0;
    for (; trn_spec_announced_at(count, &a); count++) {
        assert_string_equal(a.name, "Trainium4");
        assert_int_equal(a.known, TRN_THIRD_PARTY);
        assert_true(strlen(a.where) > 8 && strlen(a.field) > 3);
        if (isnan(a.times)) assert_true(isnan(a.value) && *a.text);
        if (!isnan(a.value)) unit_fits(a.name, a.field, a.unit);
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
            if (strcmp(a.field, row[i].field) == 0) {
                assert_true(near(a.times, row[i].times) && near(a.value, row[i].value));
                met++;
            }
    }
    assert_int_equal(met, sizeof row / sizeof row[0]);
    assert_false(trn_spec_announced_at(count, &a));
    assert_false(trn_spec_announced_at(-1, &a));
}

/* What is announced is no system, no generation, and no row of a system. */
static void announced_is_apart(void **state)
{
    (void)state;
    static const char *const names[] = { "Trainium4", "trainium4", "trn4", "trn4-ultraserver" };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(trn_system_from_name(names[i]), TRN_SYSTEM_COUNT);
    assert_int_equal(TRN_SYSTEM_COUNT, 10);
    assert_null(trn_core_spec_of((trn_generation)(TRN_TRAINIUM3 + 1)));
    assert_null(trn_chip_spec_of((trn_generation)(TRN_TRAINIUM3 + 1)));
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        trn_spec_field field;
        trn_spec_physical fact;
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        for (int i = 0; trn_spec_field_at(spec, i, &field); i++) assert_null(strstr(field.owner, "ainium4"));
        for (int i = 0; trn_spec_physical_at(spec, i, &fact); i++) assert_null(strstr(fact.number.owner, "ainium4"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units),
        cmocka_unit_test(instances),
        cmocka_unit_test(products),
        cmocka_unit_test(whole_systems),
        cmocka_unit_test(every_fact_has_its_source),
        cmocka_unit_test(link_readings),
        cmocka_unit_test(announced),
        cmocka_unit_test(announced_is_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

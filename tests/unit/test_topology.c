/* test_topology.c - networks against a twin that walks their links one by one, and against what is published of them.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_topology.h"
#include "published/wiring.h"
#include "twin/cases.h"

enum { MOST_NODES = 600 };

/* ---- the twin: digits by repeated division, wires by their definition, distances by breadth first ---- */

static void digits_of(const trn_topology *net, int chip, int digit[TRN_MAX_LEVELS])
{
    for (int l = 0; l < net->levels; l++) {
        digit[l] = chip % net->level[l].size;
        chip /= net->level[l].size;
    }
}

/* Are two chips joined by one link of this level, and for a switch: by one switch? */
static bool wired(const trn_topology *net, int level, int a, int b)
{
    int p[TRN_MAX_LEVELS], q[TRN_MAX_LEVELS];
    const trn_level *l = &net->level[level];
    digits_of(net, a, p);
    digits_of(net, b, q);
    if (a == b) return false;
    for (int i = 0; i < net->levels; i++) {
        if (i == level || p[i] == q[i]) continue;
        if (i > level || l->wiring != TRN_WIRING_SWITCH) return false;
    }
    const int planes = l->planes > 1 ? l->planes : 1;
    if (l->wiring == TRN_WIRING_SWITCH) return p[0] % planes == q[0] % planes;
    if (l->wiring == TRN_WIRING_FULL) return p[level] != q[level];
    if (l->wiring == TRN_WIRING_NONE) return false;
    return (p[level] + 1) % l->size == q[level] || (q[level] + 1) % l->size == p[level];
}

/* All links of a network, the one that is looked at now. */
static trn_link links[4 * MOST_NODES];
static int link_count;

static void read_links(const trn_topology *net)
{
    link_count = (int)trn_topology_link_count(net);
    assert_in_range(link_count, 0, 4 * MOST_NODES);
    for (int i = 0; i < link_count; i++) {
        assert_true(trn_topology_link(net, i, &links[i]));
        assert_true(links[i].from < MOST_NODES && links[i].to < MOST_NODES);
    }
}

/* Links from chip `from` to all chips and switches, over links of levels `low` .. `high` only; -1 = not reached. */
static void breadth_first(int from, int low, int high, int far[MOST_NODES])
{
    static int queue[MOST_NODES];
    int head = 0, tail = 0;
    for (int i = 0; i < MOST_NODES; i++) far[i] = -1;
    far[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const int at = queue[head++];
        for (const trn_link *l = links; l < links + link_count; l++) {
            if (l->from != at || l->level < low || l->level > high || far[l->to] >= 0) continue;
            far[l->to] = far[at] + 1;
            queue[tail++] = l->to;
        }
    }
}

/* The outermost level that a route between two chips needs: NONE needs the next switch. */
static int needed(const trn_topology *net, int a, int b)
{
    int p[TRN_MAX_LEVELS], q[TRN_MAX_LEVELS], most = -1;
    digits_of(net, a, p);
    digits_of(net, b, q);
    for (int l = 0; l < net->levels; l++) {
        int by = l;
        if (p[l] == q[l]) continue;
        if (net->level[l].wiring == TRN_WIRING_NONE)
            while (net->level[by].wiring != TRN_WIRING_SWITCH) by++;
        if (by > most) most = by;
    }
    return most;
}

/* ---- systems ---- */

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-12 * fabs(wanted))) fail_msg("%.17g is not %.17g", got, wanted);
}

static void systems_have_the_published_distances(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_WIRINGS; i++) {
        const trn_topology net = trn_topology_preset(published_wirings[i].system, published_wirings[i].preset);
        assert_int_equal(trn_topology_check(&net, NULL), TRN_OK);
        assert_int_equal(net.chips, published_wirings[i].chips);
        assert_int_equal(net.system, published_wirings[i].system);
        assert_int_equal(trn_topology_diameter(&net), published_wirings[i].diameter);
        near(trn_topology_mean_hops(&net), published_wirings[i].mean);
        near(trn_topology_bisection_bytes_per_s(&net), 1e9 * published_wirings[i].bisection_gb);
        assert_int_equal(trn_topology_link_count(&net), published_wirings[i].links);
    }
    assert_string_equal(trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER).name, "trn3-gen2-ultraserver");
    assert_string_equal(trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, "doc").name, "trn3-gen2-ultraserver doc");
}

/* The driver's neighbour tables, each row in ascending order. Trainium1's and Trainium2's are the same. */
static void torus_is_the_drivers(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int a = 0; a < 16; a++) {
        int count[5] = { 0 };
        for (int b = 0; b < 16; b++) {
            const int hops = trn_topology_hops(&net, a, b);
            assert_int_equal(hops == 1, published_neighbour(a, b));
            assert_in_range(hops, 0, 4);
            count[hops]++;
            assert_int_equal(published_hypercube_hops(a, b), hops);
        }
        assert_memory_equal(count, published_distances, sizeof count);
    }
}

/* One step to a neighbour, through one switch, over EFA; rates of a chip as the tables of systems have them. */
static void times_and_rates_are_those_of_the_systems(void **state)
{
    static const struct {
        trn_system system;
        int to;
        double step_us;
    } step[] = {
        { TRN_TRN1_32XLARGE, 1, 2.0 },          { TRN_TRN1N_32XLARGE, 4, 2.0 },
        { TRN_TRN2_48XLARGE, 1, 1.5 },          { TRN_TRN2_ULTRASERVER, 16, 1.5 },
        { TRN_TRN3_GEN1_ULTRASERVER, 1, 1 },    { TRN_TRN3_GEN1_ULTRASERVER, 32, 1 },
        { TRN_TRN3_GEN1_ULTRASERVER, 2, 1.15 }, { TRN_TRN3_GEN2_ULTRASERVER, 1, 1.15 },
        { TRN_TRN3_GEN2_ULTRASERVER, 4, 1.15 }, { TRN_TRN3_GEN2_ULTRASERVER, 72, 1 },
        { TRN_TRN1_ULTRACLUSTER, 16, 15 },      { TRN_PROJECT_RAINIER, 64, 15 },
    };
    static const struct {
        trn_system system;
        double dma;
        int ranks;
    } chip[] = { { TRN_TRN1_2XLARGE, 32 * 17e9, 2 },
                 { TRN_TRN2U_48XLARGE, 128 * 23e9, 4 },
                 { TRN_TRN3_GEN1_ULTRASERVER, 128 * 33e9, 4 } };
    (void)state;
    for (unsigned i = 0; i < sizeof step / sizeof step[0]; i++) {
        const trn_topology net = trn_topology_of(step[i].system);
        near(1e6 * (net.start_s + trn_topology_route_latency(&net, 0, step[i].to)), step[i].step_us);
        near(net.local_latency_s, 0.1e-6);
    }
    for (unsigned i = 0; i < sizeof chip / sizeof chip[0]; i++) {
        const trn_topology net = trn_topology_of(chip[i].system);
        near(net.dma_bytes_per_s, chip[i].dma);
        assert_int_equal(net.ranks_per_chip, chip[i].ranks);
        near(net.hbm_bytes_per_s, trn_system_spec_of(chip[i].system)->server->chip->hbm_bytes_per_s);
    }
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_topology net = trn_topology_of((trn_system)i);
        const trn_system_spec *spec = trn_system_spec_of((trn_system)i);
        const trn_spec_totals totals = trn_spec_totals_of(spec);
        const bool network = spec->servers > spec->servers_per_domain;
        const double efa = network ? spec->server->efa_bits_per_s / 8 / spec->server->chips : 0;
        if (totals.neuronlink_chip_bytes_per_s > 0)
            near(trn_topology_injection_bytes_per_s(&net), totals.neuronlink_chip_bytes_per_s + efa);
        assert_non_null(net.start.where);
        assert_non_null(net.local.where);
        assert_non_null(net.hbm.where);
        assert_non_null(net.dma.where);
        assert_non_null(net.reduce.where);
        assert_non_null(net.ranks.where);
    }
    const trn_topology doc = trn_topology_preset(TRN_TRN3_GEN1_ULTRASERVER, "doc");
    near(trn_topology_injection_bytes_per_s(&doc), 704e9);
    near(doc.level[0].bytes_per_s, 256e9);
    near(doc.level[2].bytes_per_s, 320e9);
    near(doc.level[3].bytes_per_s, 128e9);
    const trn_topology spec = trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, "spec");
    near(spec.level[0].bytes_per_s + spec.level[1].bytes_per_s, 1024e9);
}

/* ---- links and routes ---- */

/* Every link of the list joins what its level joins, each pair once each way, and says how its rate is known. */
static void links_are_the_wires(const trn_topology *net)
{
    static uint8_t seen[TRN_MAX_LEVELS][MOST_NODES][MOST_NODES];
    static int chip_of_switch[MOST_NODES], level_of_switch[MOST_NODES];
    trn_link link;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < MOST_NODES; i++) chip_of_switch[i] = -1;
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        assert_true(trn_topology_link(net, i, &link));
        assert_true(link.from >= 0 && link.from < MOST_NODES && link.to >= 0 && link.to < MOST_NODES);
        assert_true(link.bytes_per_s > 0 && link.latency_s >= 0);
        assert_true(link.source.where && link.source.where[0]);
        assert_int_equal(link.wiring, net->level[link.level].wiring);
        assert_int_equal(seen[link.level][link.from][link.to]++, 0);
        const int up = link.from < net->chips, down = link.to < net->chips;
        assert_true(up || down);
        assert_int_equal(up && down, link.wiring != TRN_WIRING_SWITCH);
        if (up && down) {
            assert_true(wired(net, link.level, link.from, link.to));
            continue;
        }
        /* all chips of a switch are joined by one of its level */
        const int chip = up ? link.from : link.to, at = up ? link.to : link.from;
        if (chip_of_switch[at] < 0) chip_of_switch[at] = chip, level_of_switch[at] = link.level;
        assert_int_equal(level_of_switch[at], link.level);
        assert_true(chip == chip_of_switch[at] || wired(net, link.level, chip, chip_of_switch[at]));
    }
    assert_false(trn_topology_link(net, -1, &link));
    assert_false(trn_topology_link(net, trn_topology_link_count(net), &link));
    for (int l = 0; l < net->levels; l++)
        for (int a = 0; a < net->chips; a++)
            for (int b = 0; b < net->chips; b++) {
                if (!wired(net, l, a, b)) continue;
                bool joined = seen[l][a][b];
                for (int s = net->chips; s < MOST_NODES; s++) joined |= seen[l][a][s] && seen[l][s][b];
                assert_true(joined);
            }
}

static void route_is_contiguous(const trn_topology *net, int from, int to)
{
    int64_t link[70];
    double latency_s = 0;
    memset(link, 0x55, sizeof link);
    const int64_t untouched = link[0];
    const int count = trn_topology_route(net, from, to, link, 64);
    int at = from;
    assert_in_range(count, from != to, 64);
    assert_int_equal(count, trn_topology_hops(net, from, to));
    assert_true(link[count] == untouched);
    for (int i = 0; i < count; i++) {
        trn_link l;
        assert_true(trn_topology_link(net, link[i], &l));
        assert_int_equal(l.from, at);
        at = l.to;
        latency_s += l.latency_s;
    }
    assert_int_equal(at, to);
    assert_true(fabs(latency_s - trn_topology_route_latency(net, from, to)) <= 1e-12 * latency_s);
    /* with less room the same links, and the same count */
    int64_t fewer[70];
    memset(fewer, 0x55, sizeof fewer);
    assert_int_equal(trn_topology_route(net, from, to, fewer, count / 2), count);
    assert_memory_equal(fewer, link, (size_t)(count / 2) * sizeof link[0]);
    assert_true(fewer[count / 2] == untouched);
}

/* All pairs. `strict`: no path of any links is shorter; otherwise none within the group that the route stays in, each
 * ring or full level above the outermost switch counting for itself. */
static void routes_are_shortest(const trn_topology *net, bool strict)
{
    static int far[MOST_NODES], part[MOST_NODES];
    int64_t sum = 0;
    int most = 0;
    read_links(net);
    for (int a = 0; a < net->chips; a++) {
        if (strict) breadth_first(a, 0, net->levels - 1, far);
        for (int b = 0; b < net->chips; b++) {
            int p[TRN_MAX_LEVELS], q[TRN_MAX_LEVELS], wanted = 0, lower = b, stride = net->chips;
            const int hops = trn_topology_hops(net, a, b);
            route_is_contiguous(net, a, b);
            sum += hops;
            if (hops > most) most = hops;
            if (strict) {
                assert_int_equal(hops, far[b]);
                continue;
            }
            digits_of(net, a, p);
            digits_of(net, b, q);
            /* from the outside: each level that is no switch by itself, then the rest together */
            for (int l = needed(net, a, b); l >= 0 && net->level[l].wiring != TRN_WIRING_SWITCH;
                 l = needed(net, a, lower)) {
                stride = 1;
                for (int i = 0; i < l; i++) stride *= net->level[i].size;
                breadth_first(a, l, l, part);
                wanted += part[a + (q[l] - p[l]) * stride];
                lower += (p[l] - q[l]) * stride;
            }
            breadth_first(a, 0, needed(net, a, lower), part);
            assert_int_equal(hops, wanted + part[lower]);
        }
    }
    assert_int_equal(most, trn_topology_diameter(net));
    if (net->chips > 1) near(trn_topology_mean_hops(net), (double)sum / net->chips / (net->chips - 1));
}

static void routes_of_systems(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_WIRINGS; i++) {
        const trn_topology net = trn_topology_preset(published_wirings[i].system, published_wirings[i].preset);
        links_are_the_wires(&net);
        routes_are_shortest(&net, true);
    }
}

static void routes_of_one_level(void **state)
{
    (void)state;
    for (int n = 1; n < 12; n++) {
        const trn_topology net[] = { trn_topology_ring(n, 1e9, 1e-6), trn_topology_fully_connected(n, 1e9, 1e-6),
                                     trn_topology_switch(n, 1e9, 1e-6) };
        for (int i = 0; i < 3; i++) {
            assert_int_equal(net[i].chips, n);
            assert_int_equal(trn_topology_check(&net[i], NULL), TRN_OK);
            links_are_the_wires(&net[i]);
            routes_are_shortest(&net[i], true);
        }
        assert_int_equal(trn_topology_link_count(&net[0]), n == 1 ? 0 : n == 2 ? 2 : 2 * n);
        assert_int_equal(trn_topology_link_count(&net[1]), n * (n - 1));
        assert_int_equal(trn_topology_link_count(&net[2]), n == 1 ? 0 : 2 * n);
    }
}

static void routes_of_tori(void **state)
{
    static const int size[][4] = { { 2, 2, 1, 1 }, { 2, 3, 1, 1 }, { 5, 3, 1, 1 }, { 6, 4, 1, 1 }, { 2, 2, 2, 2 },
                                   { 3, 1, 4, 2 }, { 1, 7, 1, 2 }, { 8, 3, 1, 1 }, { 3, 3, 3, 1 }, { 2, 4, 4, 1 } };
    (void)state;
    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
        const trn_topology net = trn_topology_torus(4, size[i], 1e9, 1e-6);
        assert_int_equal(net.chips, size[i][0] * size[i][1] * size[i][2] * size[i][3]);
        links_are_the_wires(&net);
        routes_are_shortest(&net, true);
    }
}

static trn_topology with(trn_wiring inner, int size, trn_wiring outer, int planes)
{
    trn_level level[2];
    memset(level, 0, sizeof level);
    level[0].wiring = inner;
    level[0].size = size;
    level[1].wiring = outer;
    level[1].size = 3;
    level[1].planes = planes;
    level[0].bytes_per_s = level[1].bytes_per_s = 1e9;
    return trn_topology_hierarchy("with", 2, level);
}

/* Planes of one switch: nothing is shorter than to change the plane on the nearest chip first (but for two chips of one
 * long ring, which do not meet in the switch outside it). */
static void routes_through_planes(void **state)
{
    static const trn_wiring inner[] = { TRN_WIRING_RING, TRN_WIRING_FULL, TRN_WIRING_SWITCH };
    static const int size[][2] = { { 2, 2 }, { 4, 2 }, { 4, 4 }, { 6, 3 }, { 8, 4 }, { 8, 8 }, { 6, 6 }, { 9, 3 } };
    (void)state;
    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int w = 0; w < 3; w++) {
            const trn_topology net = with(inner[w], size[i][0], TRN_WIRING_SWITCH, size[i][1]);
            assert_int_equal(net.chips, 3 * size[i][0]);
            links_are_the_wires(&net);
            routes_are_shortest(&net, inner[w] != TRN_WIRING_RING || size[i][0] < 6);
            if (size[i][0] > 4) continue;
            trn_level level[3] = { net.level[0], net.level[1], net.level[1] };
            level[2].size = 2;
            level[2].planes = 1;
            const trn_topology twice = trn_topology_hierarchy("twice", 3, level);
            links_are_the_wires(&twice); /* switches of two levels have numbers of their own */
            routes_are_shortest(&twice, false);
        }
}

/* Any levels, in any order, that make a network. */
static trn_topology any_network(uint64_t *seed)
{
    for (;;) {
        trn_level level[TRN_MAX_LEVELS];
        int chips = 1;
        const int levels = 1 + cases_below(seed, 5);
        memset(level, 0, sizeof level);
        for (int l = 0; l < levels; l++) {
            level[l].wiring = (trn_wiring)cases_below(seed, 4);
            level[l].size = 1 + cases_below(seed, 6);
            level[l].bytes_per_s = 1e9 * (1 + cases_below(seed, 9));
            level[l].latency_s = 1e-7 * cases_below(seed, 9);
            if (level[l].wiring == TRN_WIRING_SWITCH && l > 0) level[l].planes = 1 << cases_below(seed, 3);
            chips *= level[l].size;
        }
        const trn_topology net = trn_topology_hierarchy("any", levels, level);
        if (net.chips > 0 && net.chips <= 60) return net;
        assert_true(net.chips == 0 || net.chips == chips);
    }
}

/* One way from the lower half of a digit to the upper: links that cross, and the fewer ports of each switch. */
static double cut_by_links(const trn_topology *net, int level)
{
    static double low[MOST_NODES], high[MOST_NODES];
    double sum = 0;
    memset(low, 0, sizeof low);
    memset(high, 0, sizeof high);
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        trn_link link;
        int p[TRN_MAX_LEVELS] = { 0 }, q[TRN_MAX_LEVELS] = { 0 };
        trn_topology_link(net, i, &link);
        if (link.from < net->chips) digits_of(net, link.from, p);
        if (link.to < net->chips) digits_of(net, link.to, q);
        const int half = net->level[level].size / 2;
        if (link.to >= net->chips)
            low[link.to] += p[level] < half ? link.bytes_per_s : 0;
        else if (link.from >= net->chips)
            high[link.from] += q[level] >= half ? link.bytes_per_s : 0;
        else if (p[level] < half && q[level] >= half)
            sum += link.bytes_per_s;
    }
    for (int i = 0; i < MOST_NODES; i++) sum += low[i] < high[i] ? low[i] : high[i];
    return sum;
}

static double injection_by_links(const trn_topology *net)
{
    double sum = 0;
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        trn_link link;
        trn_topology_link(net, i, &link);
        if (link.from == net->chips / 2) sum += link.bytes_per_s;
    }
    return sum;
}

static void any_network_is_its_links(void **state)
{
    uint64_t seed = 80;
    (void)state;
    for (int round = 0; round < cases_rounds(60, 600); round++) {
        const trn_topology net = any_network(&seed);
        double least = INFINITY;
        links_are_the_wires(&net);
        routes_are_shortest(&net, false);
        near(trn_topology_injection_bytes_per_s(&net), injection_by_links(&net));
        for (int l = 0; l < net.levels; l++) {
            if (net.level[l].size == 1) continue;
            near(trn_topology_cut_bytes_per_s(&net, l), cut_by_links(&net, l));
            if (cut_by_links(&net, l) < least) least = cut_by_links(&net, l);
        }
        near(trn_topology_bisection_bytes_per_s(&net), net.chips > 1 ? least : 0);
        for (int a = 0; a < net.chips; a++) {
            int digit[TRN_MAX_LEVELS], chip = 0;
            digits_of(&net, a, digit);
            for (int l = 0; l < net.levels; l++) {
                assert_int_equal(trn_topology_digit(&net, a, l), digit[l]);
                chip += digit[l] * trn_topology_stride(&net, l);
            }
            assert_int_equal(chip, a);
        }
    }
}

/* ---- loads: everybody sends to everybody ---- */

static void loads_of(const trn_topology *net, int64_t *least, int64_t *most)
{
    int64_t *load = (int64_t *)calloc((size_t)trn_topology_link_count(net), sizeof *load), route[64], sum = 0;
    assert_non_null(load);
    for (int a = 0; a < net->chips; a++)
        for (int b = 0; b < net->chips; b++) {
            const int hops = trn_topology_route(net, a, b, route, 64);
            for (int i = 0; i < hops; i++) load[route[i]]++;
            sum += hops;
        }
    *least = INT64_MAX;
    *most = 0;
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        if (load[i] < *least) *least = load[i];
        if (load[i] > *most) *most = load[i];
    }
    /* no sharing out of the distances could be more even than all links the same */
    if (*least == *most) assert_true(sum == *most * trn_topology_link_count(net));
    free(load);
}

static void all_to_all_loads_every_link_alike(void **state)
{
    static const struct {
        int dims, size[3];
        bool even;
    } torus[] = { { 2, { 4, 4 }, true }, { 3, { 4, 4, 4 }, true }, { 1, { 8 }, true },    { 2, { 5, 5 }, true },
                  { 1, { 12 }, true },   { 3, { 3, 3, 3 }, true }, { 1, { 6 }, false },   { 2, { 2, 2 }, true },
                  { 1, { 7 }, true },    { 1, { 2 }, true },       { 2, { 8, 8 }, true }, { 1, { 10 }, false } };
    int64_t least, most;
    (void)state;
    for (unsigned i = 0; i < sizeof torus / sizeof torus[0]; i++) {
        const trn_topology net = trn_topology_torus(torus[i].dims, torus[i].size, 1e9, 0);
        loads_of(&net, &least, &most);
        assert_int_equal(least == most, torus[i].even);
    }
    /* 4 x 4: 16 x 32 links over 64; 4 x 4 x 4: 64 x 192 over 384 */
    const trn_topology server = trn_topology_of(TRN_TRN2_48XLARGE), ultra = trn_topology_of(TRN_TRN2_ULTRASERVER);
    loads_of(&server, &least, &most);
    assert_int_equal(least, 8);
    assert_int_equal(most, 8);
    loads_of(&ultra, &least, &most);
    assert_int_equal(least, 32);
    assert_int_equal(most, 32);
}

/* ---- cycles ---- */

static void cycles_hold(const trn_topology *net, int wanted)
{
    const int found = trn_topology_cycles(net, NULL, 0), chips = net->chips;
    assert_int_equal(found, wanted);
    int *order = (int *)malloc((size_t)(found * chips + 1) * sizeof *order);
    bool *seen = (bool *)malloc((size_t)chips);
    bool *used = (bool *)calloc((size_t)chips * (size_t)chips, 1);
    assert_true(order && seen && used);
    order[found * chips] = -77;
    assert_int_equal(trn_topology_cycles(net, order, found), found);
    assert_int_equal(order[found * chips], -77);
    for (int i = 0; i < found; i++) {
        memset(seen, 0, (size_t)chips);
        assert_int_equal(order[i * chips], 0);
        for (int t = 0; t < chips; t++) {
            const int a = order[i * chips + t], b = order[i * chips + (t + 1) % chips];
            bool joined = false;
            assert_in_range(a, 0, chips - 1);
            assert_false(seen[a]);
            seen[a] = true;
            for (int l = 0; l < net->levels; l++) joined |= wired(net, l, a, b);
            assert_true(joined);
            assert_false(used[a * chips + b]);
            used[a * chips + b] = used[b * chips + a] = true;
        }
    }
    if (found > 1) { /* room for one: the same one, and no more */
        int *one = (int *)malloc((size_t)(chips + 1) * sizeof *one);
        assert_non_null(one);
        one[chips] = -77;
        assert_int_equal(trn_topology_cycles(net, one, 1), found);
        assert_memory_equal(one, order, (size_t)chips * sizeof *one);
        assert_int_equal(one[chips], -77);
        free(one);
    }
    free(order);
    free(seen);
    free(used);
}

static void cycles_share_no_link(void **state)
{
    static const struct {
        int dims, size[4], wanted;
    } torus[] = {
        { 2, { 4, 4 }, 2 },       { 2, { 3, 3 }, 2 },       { 2, { 4, 8 }, 2 },       { 2, { 12, 4 }, 2 },
        { 2, { 5, 3 }, 2 },       { 2, { 4, 6 }, 2 },       { 2, { 3, 9 }, 2 },       { 2, { 3, 6 }, 1 },
        { 2, { 2, 4 }, 1 },       { 2, { 2, 2 }, 1 },       { 2, { 3, 2 }, 1 },       { 2, { 5, 4 }, 1 },
        { 3, { 4, 4, 4 }, 3 },    { 3, { 2, 2, 2 }, 1 },    { 3, { 3, 3, 3 }, 0 },    { 3, { 3, 4, 5 }, 1 },
        { 4, { 4, 4, 2, 3 }, 1 }, { 1, { 7 }, 1 },          { 1, { 3 }, 1 },          { 1, { 2 }, 0 },
        { 1, { 1 }, 0 },          { 4, { 1, 4, 1, 4 }, 2 }, { 4, { 4, 1, 4, 4 }, 3 }, { 4, { 2, 1, 1, 1 }, 0 },
        { 2, { 16, 64 }, 2 },     { 2, { 15, 21 }, 2 },     { 4, { 2, 2, 2, 2 }, 1 },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof torus / sizeof torus[0]; i++) {
        const trn_topology net = trn_topology_torus(torus[i].dims, torus[i].size, 1e9, 0);
        cycles_hold(&net, torus[i].wanted);
    }
    for (int i = 0; i < PUBLISHED_WIRINGS; i++) {
        const trn_topology net = trn_topology_preset(published_wirings[i].system, published_wirings[i].preset);
        cycles_hold(&net, net.chips == 16 ? 2 : published_wirings[i].system == TRN_TRN2_ULTRASERVER ? 3 : 0);
    }
    const trn_topology full = trn_topology_fully_connected(5, 1e9, 0), one = trn_topology_switch(5, 1e9, 0);
    cycles_hold(&full, 0);
    cycles_hold(&one, 0);
}

/* ---- clusters: far too many chips to look at all ---- */

static void clusters_answer_at_once(void **state)
{
    static const struct {
        trn_system system;
        int chips, domain, efa_mb, diameter;
        int64_t links;
    } cluster[] = { { TRN_TRN1_ULTRACLUSTER, 30000, 16, 6250, 4, 30000 * 6 },
                    { TRN_PROJECT_RAINIER, 400000, 64, 25000, 6, 400000 * 8 } };
    uint64_t seed = 400000;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const trn_topology net = trn_topology_of(cluster[i].system);
        const trn_topology part = trn_topology_of(i ? TRN_TRN2_ULTRASERVER : TRN_TRN1_32XLARGE);
        const int domain = cluster[i].domain;
        assert_int_equal(net.chips, cluster[i].chips);
        assert_true(trn_topology_link_count(&net) == cluster[i].links);
        assert_int_equal(trn_topology_diameter(&net), cluster[i].diameter);
        near(net.level[net.levels - 1].bytes_per_s, 1e6 * cluster[i].efa_mb);
        near(trn_topology_bisection_bytes_per_s(&net),
             (double)(net.chips / domain / 2) * domain * 1e6 * cluster[i].efa_mb);
        double sum = 0;
        for (int b = 0; b < net.chips; b++) sum += trn_topology_hops(&net, 0, b);
        near(trn_topology_mean_hops(&net), sum / (net.chips - 1));
        for (int round = 0; round < 20000; round++) {
            const int a = cases_below(&seed, net.chips), b = cases_below(&seed, net.chips);
            const int near_by = a / domain * domain + b % domain;
            trn_link link;
            assert_int_equal(trn_topology_hops(&net, a, b),
                             a / domain != b / domain ? 2 : trn_topology_hops(&part, a % domain, b % domain));
            assert_int_equal(trn_topology_hops(&net, a, near_by), trn_topology_hops(&part, a % domain, b % domain));
            route_is_contiguous(&net, a, b);
            route_is_contiguous(&net, a, near_by);
            assert_true(
                trn_topology_link(&net, (int64_t)a * trn_topology_slots(&net) + b % trn_topology_slots(&net), &link));
            assert_true(link.from == a || link.to == a);
            assert_int_equal(trn_topology_digit(&net, a, net.levels - 1), a / domain);
        }
    }
    const trn_topology ring = trn_topology_ring(1 << 27, 1e9, 1e-6);
    assert_int_equal(ring.chips, 1 << 27);
    assert_int_equal(trn_topology_hops(&ring, 0, (1 << 27) - 5), 5);
    assert_int_equal(trn_topology_hops(&ring, 3, 3 + (1 << 26)), 1 << 26);
    int64_t first[3];
    assert_int_equal(trn_topology_route(&ring, 1, 1 + (1 << 26), first, 3), 1 << 26);
    assert_true(first[0] == 3 && first[1] == 1 && first[2] == ((int64_t)2 << 27) - 1); /* down: 1, 0, the last */
}

/* ---- what is no network ---- */

static void refused(trn_topology net, trn_status status, const char *word)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    const trn_status got = trn_topology_check(&net, &error);
    if (got != status || !strstr(error.text, word)) fail_msg("status %d: '%s' lacks '%s'", (int)got, error.text, word);
}

static void bad_arguments_are_refused(void **state)
{
    static const int zero[] = { 4, 0 }, huge[] = { 1 << 20, 1 << 20 }, wraps[] = { 1 << 16, 1 << 16, 2 };
    static const char *const preset[] = { "SA",           "sa ",         "sb",          "sa/",          "doc/planes=",
                                          "doc/planes=0", "sa/planes=3", "sa/planes=8", "sa/planes=22", "/planes=2" };
    (void)state;
    assert_int_equal(trn_topology_check(NULL, NULL), TRN_EINVAL);
    refused(trn_topology_ring(0, 1e9, 0), TRN_EINVAL, "size 0");
    refused(trn_topology_ring(-3, 1e9, 0), TRN_EINVAL, "size -3");
    refused(trn_topology_ring(4, 0, 0), TRN_EINVAL, "bytes_per_s is 0");
    refused(trn_topology_ring(4, NAN, 0), TRN_EINVAL, "expected 1 to 1e+18");
    refused(trn_topology_ring(4, INFINITY, 0), TRN_EINVAL, "expected 1 to 1e+18");
    refused(trn_topology_ring(4, 1e9, -1), TRN_EINVAL, "latency_s is -1");
    refused(trn_topology_switch(4, -1e9, 0), TRN_EINVAL, "expected 1 to 1e+18");
    refused(trn_topology_fully_connected(4, 1e9, NAN), TRN_EINVAL, "expected 0, or 1e-15 to 10000");
    refused(trn_topology_ring(4, 1e-320, 0), TRN_EINVAL, "expected 1 to 1e+18"); /* no time would be finite */
    refused(trn_topology_ring(4, 1e300, 0), TRN_EINVAL, "expected 1 to 1e+18");
    refused(trn_topology_ring(4, 1e9, 5e-324), TRN_EINVAL, "expected 0, or 1e-15 to 10000");
    refused(trn_topology_ring(4, 1e9, 1e30), TRN_EINVAL, "expected 0, or 1e-15 to 10000");
    refused(trn_topology_torus(2, zero, 1e9, 0), TRN_EINVAL, "size 0");
    refused(trn_topology_torus(2, huge, 1e9, 0), TRN_ELIMIT, "more than");
    refused(trn_topology_torus(3, wraps, 1e9, 0), TRN_ELIMIT, "more than");
    refused(trn_topology_torus(0, huge, 1e9, 0), TRN_EINVAL, "levels");
    refused(trn_topology_torus(-1, huge, 1e9, 0), TRN_EINVAL, "levels");
    refused(trn_topology_torus(9, huge, 1e9, 0), TRN_EINVAL, "levels 9");
    refused(trn_topology_torus(2, NULL, 1e9, 0), TRN_EINVAL, "levels");
    refused(trn_topology_hierarchy("x", 3, NULL), TRN_EINVAL, "levels");
    refused(with(TRN_WIRING_NONE, 4, TRN_WIRING_RING, 0), TRN_EINVAL, "no switch");
    refused(with(TRN_WIRING_NONE, 4, TRN_WIRING_SWITCH, 2), TRN_EINVAL, "planes");
    refused(with(TRN_WIRING_RING, 4, TRN_WIRING_SWITCH, 3), TRN_EINVAL, "planes");
    refused(with(TRN_WIRING_RING, 4, TRN_WIRING_FULL, 2), TRN_EINVAL, "planes");
    refused(with(TRN_WIRING_RING, 4, TRN_WIRING_SWITCH, -1), TRN_EINVAL, "planes -1");
    refused(with((trn_wiring)7, 4, TRN_WIRING_SWITCH, 1), TRN_EINVAL, "wiring 7");
    assert_int_equal(with(TRN_WIRING_RING, 4, TRN_WIRING_SWITCH, 2).chips, 12);

    trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    int64_t link;
    assert_int_equal(trn_topology_hops(&net, 0, 16), -1);
    assert_int_equal(trn_topology_hops(&net, -1, 0), -1);
    assert_int_equal(trn_topology_route(&net, 16, 16, &link, 1), -1);
    assert_int_equal(trn_topology_route(&net, 5, 5, &link, 1), 0);
    assert_true(isnan(trn_topology_route_latency(&net, 0, 16)));
    assert_int_equal(trn_topology_digit(&net, 16, 0), -1);
    assert_int_equal(trn_topology_digit(&net, 0, 2), -1);
    assert_true(trn_topology_cut_bytes_per_s(&net, 2) == 0 && trn_topology_cut_bytes_per_s(&net, -1) == 0);
    net.chips = 15;
    refused(net, TRN_EINVAL, "chips is 15");
    net.chips = 16;
    net.ranks_per_chip = 0;
    refused(net, TRN_EINVAL, "ranks_per_chip");
    net.ranks_per_chip = 1;
    net.hbm_bytes_per_s = NAN;
    refused(net, TRN_EINVAL, "hbm_bytes_per_s");

    const trn_topology none = trn_topology_of(TRN_SYSTEM_COUNT);
    assert_int_equal(none.chips, 0);
    assert_int_equal(trn_topology_hops(&none, 0, 0), -1);
    assert_int_equal(trn_topology_cycles(&none, NULL, 0), 0);
    assert_true(trn_topology_link_count(&none) == 0 && trn_topology_mean_hops(&none) == 0);
    assert_int_equal(trn_topology_diameter(&none), 0);
    for (unsigned i = 0; i < sizeof preset / sizeof preset[0]; i++)
        assert_int_equal(trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, preset[i]).chips, 0);
    assert_int_equal(trn_topology_preset(TRN_TRN3_GEN1_ULTRASERVER, "sa/planes=4").chips, 0);
    assert_int_equal(trn_topology_preset(TRN_TRN2_48XLARGE, "sa/planes=2").chips, 0);
    assert_int_equal(trn_topology_preset(TRN_TRN2_48XLARGE, "doc").chips, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems_have_the_published_distances),
        cmocka_unit_test(torus_is_the_drivers),
        cmocka_unit_test(times_and_rates_are_those_of_the_systems),
        cmocka_unit_test(routes_of_systems),
        cmocka_unit_test(routes_of_one_level),
        cmocka_unit_test(routes_of_tori),
        cmocka_unit_test(routes_through_planes),
        cmocka_unit_test(any_network_is_its_links),
        cmocka_unit_test(all_to_all_loads_every_link_alike),
        cmocka_unit_test(cycles_share_no_link),
        cmocka_unit_test(clusters_answer_at_once),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_topology_links.c - graphs of links against a twin (Floyd and Warshall, halvings one by one, loads added up), and
 * by hand: DGX-1, a star, a tree, a cube, Petersen's graph, groups of four and six, rings and all to all spelled out.
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

#include "trnmath/trn_collective.h"
#include "trnmath/trn_collective_cost.h"
#include "trnmath/trn_mesh.h"
#include "trnmath/trn_topology.h"
#include "trnmath/trn_traffic.h"
#include "twin/cases.h"

enum { ROOM = 20000, MOST = 16, FAR = 1000 };

/* ---- texts ---- */

typedef struct text {
    char bytes[ROOM];
    size_t length;
} text;

static void keep(void *user, const char *bytes, size_t length)
{
    text *t = (text *)user;
    assert_true(t->length + length < ROOM);
    memcpy(t->bytes + t->length, bytes, length);
    t->bytes[t->length += length] = 0;
}

static trn_topology of_text(const char *words)
{
    trn_topology net;
    trn_error why;
    if (trn_topology_load(words, strlen(words), &net, &why) != TRN_OK) fail_msg("%s", why.text);
    return net;
}

static trn_topology of_file(const char *name)
{
    static text t;
    char path[512];
    snprintf(path, sizeof path, TRN_SOURCE_DIR "/examples/topologies/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("there is no %s", path);
    t.length = fread(t.bytes, 1, sizeof t.bytes - 1, file);
    fclose(file);
    t.bytes[t.length] = 0;
    return of_text(t.bytes);
}

/* Bit for bit. */
static void comes_back(const trn_topology *net)
{
    static text t;
    trn_topology again;
    trn_error why;
    t.length = 0;
    if (trn_topology_save(net, keep, &t, &why) != TRN_OK) fail_msg("%s", why.text);
    if (trn_topology_load(t.bytes, t.length, &again, &why) != TRN_OK) fail_msg("%s of\n%s", why.text, t.bytes);
    assert_int_equal(again.wires, net->wires);
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *a = &net->wire[i], *b = &again.wire[i];
        assert_true(a->level == b->level && a->from == b->from && a->to == b->to && a->one_way == b->one_way);
        assert_true(a->count == b->count && memcmp(&a->bytes_per_s, &b->bytes_per_s, sizeof(double)) == 0);
        assert_memory_equal(&a->latency_s, &b->latency_s, sizeof(double));
    }
    for (int l = 0; l < net->levels; l++)
        assert_memory_equal(&again.level[l].bytes_per_s, &net->level[l].bytes_per_s, sizeof(double));
}

/* ---- the twin: rates, latencies and distances between all digits of one level ---- */

typedef struct twin {
    int n, hops[MOST][MOST];
    double rate[MOST][MOST], latency[MOST][MOST];
} twin;

static twin twin_of(const trn_topology *net, int level)
{
    twin t;
    memset(&t, 0, sizeof t);
    t.n = net->level[level].size;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        const double rate = w->bytes_per_s * (w->count ? w->count : 1);
        if (w->level != level) continue;
        for (int back = 0; back <= !w->one_way; back++) {
            t.rate[back ? w->to : w->from][back ? w->from : w->to] = rate;
            t.latency[back ? w->to : w->from][back ? w->from : w->to] = w->latency_s;
        }
    }
    for (int a = 0; a < t.n; a++)
        for (int b = 0; b < t.n; b++) t.hops[a][b] = a == b ? 0 : t.rate[a][b] > 0 ? 1 : FAR;
    for (int k = 0; k < t.n; k++)
        for (int a = 0; a < t.n; a++)
            for (int b = 0; b < t.n; b++)
                if (t.hops[a][k] + t.hops[k][b] < t.hops[a][b]) t.hops[a][b] = t.hops[a][k] + t.hops[k][b];
    return t;
}

/* Of the neighbours that are nearer: up from an even digit, down from an odd one, round. */
static int twin_next(const twin *t, int at, int to)
{
    const int step = at % 2 ? t->n - 1 : 1;
    for (int d = (at + step) % t->n; d != at; d = (d + step) % t->n)
        if (t->rate[at][d] > 0 && t->hops[d][to] + 1 == t->hops[at][to]) return d;
    fail_msg("no way from %d to %d", at, to);
    return -1;
}

static double twin_halving(const twin *t, int digit, int chosen, unsigned set)
{
    if (chosen == t->n / 2) {
        double there = 0, back = 0;
        for (int a = 0; a < t->n; a++)
            for (int b = 0; b < t->n; b++) {
                if (set >> a & 1u && !(set >> b & 1u)) there += t->rate[a][b];
                if (!(set >> a & 1u) && set >> b & 1u) back += t->rate[a][b];
            }
        return fmin(there, back);
    }
    if (digit == t->n) return HUGE_VAL;
    return fmin(twin_halving(t, digit + 1, chosen, set), twin_halving(t, digit + 1, chosen + 1, set | 1u << digit));
}

static void near(double is, double should)
{
    if (!(fabs(is - should) <= 1e-12 * fabs(should))) fail_msg("%.17g, expected %.17g", is, should);
}

/* One level: all of its answers. */
static void is_the_twin(const trn_topology *net)
{
    const twin t = twin_of(net, 0);
    int most = 0, sum = 0;
    double least = HUGE_VAL;
    for (int a = 0; a < t.n; a++) {
        double out = 0;
        for (int b = 0; b < t.n; b++) {
            int64_t link[MOST];
            trn_link of;
            double latency = 0;
            const int hops = trn_topology_route(net, a, b, link, MOST);
            assert_int_equal(hops, t.hops[a][b]);
            assert_int_equal(trn_topology_link_between(net, a, b) >= 0, t.rate[a][b] > 0);
            for (int i = 0, at = a; i < hops; i++, at = of.to) {
                assert_true(trn_topology_link(net, link[i], &of));
                assert_int_equal(of.from, at);
                assert_int_equal(of.to, twin_next(&t, at, b));
                assert_true(of.wiring == TRN_WIRING_GRAPH && link[i] == trn_topology_link_between(net, of.from, of.to));
                near(of.bytes_per_s, t.rate[of.from][of.to]);
                latency += t.latency[of.from][of.to];
            }
            near(trn_topology_route_latency(net, a, b), latency);
            if (hops > most) most = hops;
            sum += hops;
            out += t.rate[a][b];
        }
        least = fmin(least, out);
    }
    assert_int_equal(trn_topology_diameter(net), most);
    if (t.n > 1) near(trn_topology_mean_hops(net), (double)sum / (t.n * (t.n - 1)));
    near(trn_topology_injection_bytes_per_s(net), least);
    near(trn_topology_cut_bytes_per_s(net, 0), t.n > 1 ? twin_halving(&t, 0, 0, 0) : 0);
}

/* Everybody sends a part of the whole to everybody, in one step: the fullest link, and the longest way. */
static double twin_direct(const trn_topology *net, double bytes)
{
    const twin t = twin_of(net, 0);
    double load[MOST][MOST], longest = 0, fullest = 0;
    memset(load, 0, sizeof load);
    for (int a = 0; a < t.n; a++)
        for (int b = 0; b < t.n; b++) {
            double latency = 0;
            for (int at = a, next; at != b; at = next) {
                next = twin_next(&t, at, b);
                load[at][next] += bytes / t.n;
                latency += t.latency[at][next];
            }
            longest = fmax(longest, latency);
        }
    for (int a = 0; a < t.n; a++)
        for (int b = 0; b < t.n; b++)
            if (t.rate[a][b] > 0) fullest = fmax(fullest, load[a][b] / t.rate[a][b]);
    return longest + fullest;
}

/* ---- any graph ---- */

static trn_topology any_graph(uint64_t *rng, int most)
{
    for (;;) {
        trn_wire wire[TRN_MAX_WIRES];
        const int n = 1 + cases_below(rng, most), dense = 1 + cases_below(rng, 6);
        const bool alike = cases_one_in(rng, 3);
        int wires = 0;
        memset(wire, 0, sizeof wire);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) {
                const bool one_way = cases_one_in(rng, 5);
                if (a == b || (!one_way && b < a) || !cases_one_in(rng, dense)) continue;
                bool there = false;
                for (int i = 0; i < wires; i++)
                    there = there || (wire[i].from == a && wire[i].to == b) ||
                            (wire[i].from == b && wire[i].to == a && !(one_way && wire[i].one_way));
                if (there) continue;
                trn_wire *w = &wire[wires++];
                w->from = (uint8_t)a;
                w->to = (uint8_t)b;
                w->one_way = one_way;
                w->count = alike ? 1 : 1 + cases_below(rng, 3);
                w->bytes_per_s = 1e9 * (alike ? 3 : 0.1 + cases_below(rng, 9));
                w->latency_s = alike ? 1e-6 : 1e-7 * cases_below(rng, 9);
            }
        const trn_topology net = trn_topology_wired("any graph", n, wires, wire);
        if (net.chips) return net;
    }
}

static trn_collective_args ask(const trn_topology *net, trn_collective op, trn_algorithm algorithm, int64_t bytes)
{
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = net;
    a.op = op;
    a.algorithm = algorithm;
    a.bytes = bytes;
    a.uncalibrated = true;
    return a;
}

static double time_of(const trn_topology *net, trn_collective op, trn_algorithm algorithm, int64_t bytes)
{
    trn_error why;
    trn_cost cost;
    trn_collective_args a = ask(net, op, algorithm, bytes);
    a.error = &why;
    if (trn_collective_cost(&a, &cost) != TRN_OK) fail_msg("%s", why.text);
    if (!(cost.lower_bound_s <= cost.time_s * (1 + 1e-12)))
        fail_msg("%s takes %g, less than the bound of %g", trn_collective_name(op), cost.time_s, cost.lower_bound_s);
    return cost.time_s;
}

static void any_graph_is_its_twin(void **state)
{
    uint64_t rng = 2930;
    (void)state;
    for (int i = 0; i < cases_rounds(150, 3000); i++) {
        const trn_topology net = any_graph(&rng, cases_one_in(&rng, 12) ? 11 : 7);
        is_the_twin(&net);
        comes_back(&net);
        if (net.chips == 1) continue;
        near(time_of(&net, TRN_ALL_GATHER, TRN_MESH, 1 << 20), twin_direct(&net, 1 << 20));
        near(time_of(&net, TRN_ALL_TO_ALL, TRN_MESH, 1 << 12), twin_direct(&net, 1 << 12));
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
            (void)time_of(&net, (trn_collective)op, TRN_ALGORITHM_AUTO, 1 << cases_below(&rng, 28));
    }
}

/* The same, of groups of so many chips that are listed: so no chip stands for others that are not. */
static double time_of_listed(const trn_topology *net, trn_collective op, int count)
{
    int chips[MOST * MOST];
    trn_error why;
    trn_cost cost;
    trn_collective_args a = ask(net, op, TRN_ALGORITHM_AUTO, 1 << 20);
    for (int i = 0; i < net->chips; i++) chips[i] = i;
    a.chips = chips;
    a.count = count;
    a.groups = net->chips / count;
    a.error = &why;
    if (trn_collective_cost(&a, &cost) != TRN_OK) fail_msg("%s", why.text);
    return cost.time_s;
}

/* A graph beside, inside and around levels of other kinds: what it adds is what its twin says. */
static void graphs_go_with_other_levels(void **state)
{
    uint64_t rng = 371;
    (void)state;
    for (int i = 0; i < cases_rounds(60, 600); i++) {
        trn_topology net = any_graph(&rng, 5);
        const trn_wiring with = (trn_wiring)(TRN_WIRING_RING + cases_below(&rng, 3));
        const int at = with == TRN_WIRING_SWITCH ? 0 : cases_below(&rng, 2), n = net.chips,
                  m = 2 + cases_below(&rng, 3);
        const twin t = twin_of(&net, 0);
        const trn_topology alone = net;
        if (at) net.level[1] = net.level[0];
        for (int k = 0; k < net.wires; k++) net.wire[k].level = (uint8_t)at;
        net.level[!at] = trn_topology_ring(3, 1e9, 1e-6).level[0];
        net.level[!at].wiring = with;
        net.level[!at].size = m;
        net.level[!at].name = "other";
        net.levels = 2;
        net.chips = n * m;
        trn_error why;
        if (trn_topology_check(&net, &why) != TRN_OK) fail_msg("%s", why.text);
        comes_back(&net);
        double sum = 0;
        for (int a = 0; a < net.chips; a++)
            for (int b = 0; b < net.chips; b++) {
                const int p = trn_topology_digit(&net, a, at), q = trn_topology_digit(&net, b, at);
                const int x = trn_topology_digit(&net, a, !at), y = trn_topology_digit(&net, b, !at);
                const int up = (y - x + m) % m, ring = up < m - up ? up : m - up;
                const int others = with == TRN_WIRING_RING ? ring : x != y;
                const int hops = with == TRN_WIRING_SWITCH && x != y ? 2 : t.hops[p][q] + others;
                assert_int_equal(trn_topology_hops(&net, a, b), hops);
                assert_true(hops <= trn_topology_diameter(&net));
                sum += hops;
            }
        near(trn_topology_mean_hops(&net), sum / net.chips / (net.chips - 1));
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
            near(time_of_listed(&net, (trn_collective)op, net.chips),
                 time_of(&net, (trn_collective)op, TRN_ALGORITHM_AUTO, 1 << 20));
        if (at == 0) /* as many groups as there are graphs: each is alone on its links */
            near(time_of_listed(&net, TRN_ALL_TO_ALL, n), time_of(&alone, TRN_ALL_TO_ALL, TRN_ALGORITHM_AUTO, 1 << 20));
    }
}

/* ---- spelled out ---- */

static trn_topology spelled(int n, bool full, double rate, double latency)
{
    trn_wire wire[TRN_MAX_WIRES];
    int wires = 0;
    memset(wire, 0, sizeof wire);
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            if (!full && b != a + 1 && !(a == 0 && b == n - 1)) continue;
            wire[wires].from = (uint8_t)a;
            wire[wires].to = (uint8_t)b;
            wire[wires].bytes_per_s = rate;
            wire[wires++].latency_s = latency;
        }
    return trn_topology_wired(full ? "fully connected" : "ring", n, wires, wire);
}

static void same_costs(const trn_topology *graph, const trn_topology *level)
{
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        for (int algorithm = 0; algorithm < TRN_ALGORITHM_COUNT; algorithm++) {
            trn_cost a, b;
            trn_collective_args ours = ask(graph, (trn_collective)op, (trn_algorithm)algorithm, 3000017);
            trn_collective_args theirs = ask(level, (trn_collective)op, (trn_algorithm)algorithm, 3000017);
            const trn_status status = trn_collective_cost(&ours, &a);
            assert_int_equal(status, trn_collective_cost(&theirs, &b));
            if (status != TRN_OK) continue;
            assert_true(a.algorithm == b.algorithm && a.steps == b.steps);
            assert_memory_equal(&a.time_s, &b.time_s, sizeof(double));
            assert_memory_equal(&a.lower_bound_s, &b.lower_bound_s, sizeof(double));
            assert_string_equal(a.bottleneck, b.bottleneck);
        }
}

/* A graph that spells a ring, or all to all, has the very numbers of that wiring. */
static void spelled_out_is_the_same(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++)
        for (int full = 0; full < 2; full++) {
            const trn_topology graph = spelled(n, full, 0.1e9, 0.7e-6);
            const trn_topology level =
                full ? trn_topology_fully_connected(n, 0.1e9, 0.7e-6) : trn_topology_ring(n, 0.1e9, 0.7e-6);
            if (n == 3 && full) continue; /* is a ring */
            is_the_twin(&graph);
            assert_int_equal(trn_topology_diameter(&graph), trn_topology_diameter(&level));
            near(trn_topology_mean_hops(&graph), trn_topology_mean_hops(&level));
            assert_true(trn_topology_injection_bytes_per_s(&graph) >= trn_topology_injection_bytes_per_s(&level) &&
                        trn_topology_injection_bytes_per_s(&graph) <= trn_topology_injection_bytes_per_s(&level));
            near(trn_topology_bisection_bytes_per_s(&graph), trn_topology_bisection_bytes_per_s(&level));
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++) {
                    int64_t there[MOST], here[MOST];
                    trn_link p, q;
                    const int hops = trn_topology_route(&level, a, b, there, MOST);
                    assert_int_equal(trn_topology_route(&graph, a, b, here, MOST), hops);
                    for (int i = 0; i < hops; i++)
                        assert_true(trn_topology_link(&level, there[i], &p) && trn_topology_link(&graph, here[i], &q) &&
                                    p.from == q.from && p.to == q.to);
                }
            same_costs(&graph, &level);
        }
}

/* ---- by hand ---- */

/* Four links of 20 GB/s a GPU: two rings that share none, each in both directions; of the eight parts of the payload a
 * quarter goes by each, 14 steps of a link each. With 6 of 25 GB/s, three rings. */
static void dgx_1_is_its_rings(void **state)
{
    const trn_topology p100 = of_file("dgx-1-p100.txt"), v100 = of_file("dgx-1-v100.txt");
    const double bytes = 1 << 26;
    (void)state;
    is_the_twin(&p100);
    is_the_twin(&v100);
    for (int chip = 0; chip < 8; chip++) {
        int links[2] = { 0, 0 };
        for (int other = 0; other < 8; other++) {
            trn_link link;
            if (!trn_topology_link(&p100, trn_topology_link_between(&p100, chip, other), &link)) continue;
            links[0] += (int)(link.bytes_per_s / 20e9);
            assert_true(trn_topology_link(&v100, trn_topology_link_between(&v100, chip, other), &link));
            links[1] += (int)(link.bytes_per_s / 25e9);
        }
        assert_int_equal(links[0], 4);
        assert_int_equal(links[1], 6);
    }
    near(trn_topology_injection_bytes_per_s(&p100), 80e9);
    near(trn_topology_injection_bytes_per_s(&v100), 150e9);
    assert_int_equal(trn_topology_diameter(&p100), 2);
    near(trn_topology_mean_hops(&p100), (4 * 1 + 3 * 2) / 7.0);
    near(trn_topology_bisection_bytes_per_s(&p100), 4 * 20e9);
    near(trn_topology_bisection_bytes_per_s(&v100), 6 * 25e9);
    near(time_of(&p100, TRN_ALL_REDUCE, TRN_RING, 1 << 26), 14 * (0.7e-6 + bytes / 8 / 20e9));
    near(time_of(&p100, TRN_ALL_REDUCE, TRN_MULTI_RING, 1 << 26), 14 * (0.7e-6 + bytes / 4 / 8 / 20e9));
    near(time_of(&v100, TRN_ALL_REDUCE, TRN_MULTI_RING, 1 << 26), 14 * (0.7e-6 + bytes / 6 / 8 / 25e9));
    near(time_of(&v100, TRN_ALL_REDUCE, TRN_RING, 1 << 26), 14 * (0.7e-6 + bytes / 8 / 50e9));
    assert_int_equal(trn_topology_hops(&p100, 0, 5),
                     2); /* not neighbours: over 4, the first of 1 and 4 going up is 1 */
    int64_t link[2];
    trn_link first;
    assert_true(trn_topology_route(&p100, 0, 5, link, 2) == 2 && trn_topology_link(&p100, link[0], &first));
    assert_int_equal(first.to, 1);
}

/* A star of four, 1 GB/s: each ray carries what its end says to three others, and hears. Without one direction, what is
 * left is no network. */
static void stars_and_trees(void **state)
{
    const trn_topology star = of_text("[level x]\nsize = 4\nwiring = graph\nrate = 1\nlatency = 1\n"
                                      "link = 0-1\nlink = 0-2\nlink = 0-3\n");
    /* 0 is the root of two, each of which has two leaves on slower links; 6 hangs on 5 by 2 GB/s up, 1 GB/s down */
    const trn_topology tree = of_text("[level x]\nsize = 7\nwiring = graph\nrate = 10\nlink = 0-1\nlink = 0-2\n"
                                      "link = 1-3 5\nlink = 1-4 rate 5\nlink = 2-5 rate 4 latency 3\n"
                                      "link = 5->6 rate 1\nlink = 6->5 rate 2 x 2\n");
    (void)state;
    is_the_twin(&star);
    is_the_twin(&tree);
    near(time_of(&star, TRN_ALL_TO_ALL, TRN_MESH, 4000), 2e-6 + 3 * 1000 / 1e9);
    near(trn_topology_injection_bytes_per_s(&tree), 4e9); /* of 6, up */
    near(trn_topology_route_latency(&tree, 3, 6), 3e-6);
    /* all that six others send to 6 comes down its link of 1 GB/s: 6 x 1000 of 7000 bytes */
    near(time_of(&tree, TRN_ALL_TO_ALL, TRN_MESH, 7000), 3e-6 + 6 * 1000 / 1e9);
    assert_int_equal(trn_topology_diameter(&tree), 5);
}

static void graphs_that_have_names(void **state)
{
    const trn_topology petersen = of_text("[level x]\nsize = 10\nwiring = graph\nrate = 1\n"
                                          "link = 0-1\nlink = 1-2\nlink = 2-3\nlink = 3-4\nlink = 4-0\n"
                                          "link = 0-5\nlink = 1-6\nlink = 2-7\nlink = 3-8\nlink = 4-9\n"
                                          "link = 5-7\nlink = 7-9\nlink = 9-6\nlink = 6-8\nlink = 8-5\n");
    const trn_topology cube = of_text("[level x]\nsize = 8\nwiring = graph\nrate = 1\nlink = 0-1\nlink = 0-2\n"
                                      "link = 0-4\nlink = 1-3\nlink = 1-5\nlink = 2-3\nlink = 2-6\nlink = 3-7\n"
                                      "link = 4-5\nlink = 4-6\nlink = 5-7\nlink = 6-7\n");
    const trn_topology groups = of_file("groups-4-6.txt");
    const trn_topology one_way = of_text("[level x]\nsize = 4\nwiring = graph\nrate = 1\nlatency = 1\n"
                                         "link = 0->2\nlink = 2->1\nlink = 1->3\nlink = 3->0\n");
    (void)state;
    is_the_twin(&petersen);
    is_the_twin(&cube);
    is_the_twin(&groups);
    is_the_twin(&one_way);
    assert_int_equal(trn_topology_diameter(&petersen), 2);
    near(trn_topology_mean_hops(&petersen), (3 + 6 * 2) / 9.0);
    near(trn_topology_bisection_bytes_per_s(&petersen), 5e9);
    assert_int_equal(trn_topology_diameter(&cube), 3);
    near(trn_topology_mean_hops(&cube), 12 / 7.0);
    near(trn_topology_bisection_bytes_per_s(&cube), 4e9);
    /* 7 steps of an eighth; its partners of halving are neighbours: a half, a quarter, an eighth each way */
    near(time_of(&cube, TRN_ALL_GATHER, TRN_RING, 8000), 7 * 1000 / 1e9);
    near(time_of(&cube, TRN_REDUCE_SCATTER, TRN_RECURSIVE_DOUBLING, 8000), 7 * 1000 / 1e9);
    /* Petersen's graph has no ring through all: the order of numbers, of which 4 to 5 and 9 to 0 are two links */
    near(time_of(&petersen, TRN_ALL_GATHER, TRN_RING, 10000) * 1e9 / 1000, 18);
    assert_int_equal(trn_topology_hops(&one_way, 0, 3), 3);
    assert_int_equal(trn_topology_hops(&one_way, 3, 0), 1);
    near(time_of(&one_way, TRN_ALL_GATHER, TRN_RING, 4000), 3 * (1e-6 + 1000 / 1e9)); /* round the way it goes */
}

/* ---- what is refused, and with which line ---- */

static void refused(const char *links, const char *sentence)
{
    char words[ROOM];
    trn_topology net;
    trn_error why;
    snprintf(words, sizeof words, "[level x]\nsize = 4\nwiring = graph\nrate = 1\n%s", links);
    if (trn_topology_load(words, strlen(words), &net, &why) == TRN_OK) fail_msg("read:\n%s", words);
    if (strncmp(why.text, sentence, strlen(sentence)) != 0) fail_msg("\"%s\", expected \"%s\"", why.text, sentence);
}

static void mistakes_have_their_line(void **state)
{
    static const char *const wrong[][2] = {
        { "link = 0-1\nlink = 1-2\n", "line 1: level 0 (x): its links leave no way from chip 3 to chip 0" },
        { "link = 0-1\nlink = 1-2\nlink = 2->3\n",
          "line 1: level 0 (x): its links leave no way from chip 3 to chip 0" },
        { "link = 0-1\nlink = 1-2\nlink = 3->2\n",
          "line 1: level 0 (x): its links leave no way from chip 0 to chip 3" },
        { "", "line 1: level 0 (x): its links leave no way from chip 1 to chip 0" },
        { "link = 0-1\nlink = 2-2\n", "line 6: link 2-2 joins 2 of level x to itself" },
        { "link = 0-1\nlink = 3-4\n", "line 6: link 3-4: level x has no 4, only 0 to 3" },
        { "link = 0-1\nlink = 1-0\n", "line 6: link 1-0 of level x is there already" },
        { "link = 0->1\nlink = 0-1\n", "line 6: link 0-1 of level x is there already" },
        { "link = 0-1\nlink = 0->1\n", "line 6: link 0->1 of level x is there already" },
        { "link = 0-300\n", "line 5: link = 0-300: a graph has numbers up to 63" },
        { "link = 0 1\n", "line 5: link = 0 1: expected two numbers" },
        { "link = -1-2\n", "line 5: link = -1-2: expected two numbers" },
        { "link = 0--1\n", "line 5: link = 0--1: expected two numbers" },
        { "link = 0-1x2\n", "line 5: link = 0-1x2: expected two numbers" },
        { "link = a-b\n", "line 5: link = a-b: expected two numbers" },
        { "link =\n", "line 5: link = : expected two numbers" },
        { "link = 0-1 rate\n", "line 5: link = 0-1 rate: expected, each once" },
        { "link = 0-1 rate 0\n", "line 5: link = 0-1 rate 0: expected, each once" },
        { "link = 0-1 1e-320\n", "line 5: link = 0-1 1e-320: expected, each once" },
        { "link = 0-1 rate nan\n", "line 5: link = 0-1 rate nan: expected, each once" },
        { "link = 0-1 rate 1e10\n", "line 5: link = 0-1 rate 1e10: expected, each once" },
        { "link = 0-1 latency 1e11\n", "line 5: link = 0-1 latency 1e11: expected, each once" },
        { "link = 0-1 5 rate 5\n", "line 5: link = 0-1 5 rate 5: expected, each once" },
        { "link = 0-1 rate 5 6\n", "line 5: link = 0-1 rate 5 6: expected, each once" },
        { "link = 0-1 x 0\n", "line 5: link = 0-1 x 0: expected, each once" },
        { "link = 0-1 x 2.5\n", "line 5: link = 0-1 x 2.5: expected, each once" },
        { "link = 0-1 x 1001\n", "line 5: link = 0-1 x 1001: expected, each once" },
        { "link = 0-1 rate 9e8 x 9\n", "line 5: link 0-1 of level x: bytes_per_s is 8.1e+18" },
        { "link = 0-1 width 2\n", "line 5: link = 0-1 width 2: expected, each once" },
        { "duplex = half\nlink = 0->1\nlink = 1->0 rate 2\n",
          "line 6: link 0->1 of level x: the two directions share" },
        { "link = 0-1\nlink = 1-2\nlink = 2-3\ndown = link 0->2\n",
          "line 8: no link goes straight from chip 0 to chip 2" },
        { "link = 0->1\nlink = 1-2\nlink = 2-3\nlink = 3->0\nslow = link 0<->1 0.5\n",
          "line 9: no link goes straight" },
        { "link = 0-1\nlink = 1-2\nlink = 2-3\n[level y]\nsize = 2\nwiring = ring\nrate = 1\nlink = 0-1\n",
          "line 12: links are listed for wiring = graph, and level y is ring" },
        { "link = 0-1\nlink = 1-2\nlink = 2-3\n[level y]\nsize = 2\nwiring = graph\nlink = 0-1\n",
          "line 11: link 0-1 has no rate, and level y gives none" },
        { "link = 0-1\nlink = 1-2\nlink = 2-3\n[level y]\nsize = 3\nwiring = graph\nlink = 0-1 5\n",
          "line 8: level 1 (y): its links leave no way from 2 to 0" },
        { "link = 0-1\nlink = 1-2\nlink = 2-3\n[level y]\nsize = 2\nwiring = switch\nplanes = 2\nrate = 1\n",
          "line 8: level 1 (y): 2 planes over a graph" },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refused(wrong[i][0], wrong[i][1]);
    const trn_topology free_form = of_text("[level x]\nsize = 2\nlink=0 <-> 1  latency 0 x2 rate 1.5\nwiring = graph\n"
                                           "latency = 3\n");
    assert_true(free_form.wire[0].count == 2 && !(free_form.wire[0].latency_s > 0));
    near(trn_topology_injection_bytes_per_s(&free_form), 3e9);
    comes_back(&free_form);
}

/* Filled by hand: the same is refused; and what is more than there is room for. */
static void structures_are_checked(void **state)
{
    trn_topology net = spelled(5, true, 1e9, 0);
    trn_error why;
    (void)state;
    assert_int_equal(net.chips, 5);
    assert_int_equal(trn_topology_wired("none", 65, 0, NULL).chips, 0);
    assert_int_equal(trn_topology_wired("none", 2, 1, NULL).chips, 0);
    assert_int_equal(trn_topology_wired("none", 2, TRN_MAX_WIRES + 1, net.wire).chips, 0);
    assert_int_equal(trn_topology_wired("one", 1, 0, NULL).chips, 1);
    net.wire[3].level = 1;
    assert_int_equal(trn_topology_check(&net, &why), TRN_EINVAL);
    assert_non_null(strstr(why.text, "wire 3: level 1 is not wired as a graph"));
    net.wire[3].level = 0;
    net.wire[3].count = -1;
    assert_int_equal(trn_topology_check(&net, &why), TRN_EINVAL);
    net.wire[3].count = 0;
    net.wire[3].bytes_per_s = (double)NAN;
    assert_int_equal(trn_topology_check(&net, &why), TRN_EINVAL);
    net = spelled(5, false, 1e9, 0);
    net.faults = 1;
    net.fault[0].kind = TRN_FAULT_LINK;
    net.fault[0].at = 1; /* from 0 to 2: there is none */
    assert_int_equal(trn_topology_check(&net, &why), TRN_EINVAL);
    assert_non_null(strstr(why.text, "there is no link 1"));
    net.fault[0].at = 0;
    assert_int_equal(trn_topology_check(&net, &why), TRN_OK);
}

/* As many digits and lines as there may be, and one more. */
static void the_most_there_may_be(void **state)
{
    static text t;
    trn_topology net;
    trn_error why;
    char line[64];
    (void)state;
    for (int size = 64; size <= 65; size++) {
        t.length = (size_t)snprintf(t.bytes, ROOM, "[level x]\nsize = %d\nwiring = graph\nrate = 1\n", size);
        for (int i = 0; i < 63; i++) keep(&t, line, (size_t)snprintf(line, sizeof line, "link = %d-%d\n", i, i + 1));
        if (size == 64) { /* a line of them, whose ends are 63 links apart */
            net = of_text(t.bytes);
            assert_int_equal(trn_topology_diameter(&net), 63);
            near(trn_topology_mean_hops(&net), 65 / 3.0);
            near(trn_topology_bisection_bytes_per_s(&net), 1e9);
            near(time_of(&net, TRN_ALL_GATHER, TRN_RING, 64000),
                 63 * 1000 / 1e9); /* the last step goes back over all */
            continue;
        }
        assert_int_equal(trn_topology_load(t.bytes, t.length, &net, &why), TRN_ELIMIT);
        assert_non_null(strstr(why.text, "line 1: level 0 (x): a graph of 65, and the most is 64"));
    }
    t.length = (size_t)snprintf(t.bytes, ROOM, "[level x]\nsize = 64\nwiring = graph\nrate = 1\n");
    for (int i = 0; i <= TRN_MAX_WIRES; i++)
        keep(&t, line, (size_t)snprintf(line, sizeof line, "link = %d->%d\n", i % 64, (i % 64 + i / 64 + 1) % 64));
    assert_int_equal(trn_topology_load(t.bytes, t.length, &net, &why), TRN_ELIMIT);
    assert_non_null(strstr(why.text, "line 101: more than 96 links"));
    t.bytes[t.length -= strlen(line)] = 0;
    net = of_text(t.bytes);
    assert_int_equal(net.wires, TRN_MAX_WIRES);
    assert_int_equal(trn_topology_diameter(&net), 48);
    comes_back(&net);
}

/* ---- what takes a network takes a graph ---- */

static void faults_and_links_used_in_turns(void **state)
{
    trn_topology net = of_file("dgx-1-p100.txt");
    trn_error why;
    (void)state;
    assert_int_equal(trn_topology_down(&net, "link 0<->4", &why), TRN_OK);
    assert_int_equal(trn_topology_hops(&net, 0, 4), 3); /* 0 1 5 4 */
    assert_int_equal(trn_topology_hops(&net, 0, 3), 1);
    comes_back(&net);
    const double sound = 14 * (0.7e-6 + (1 << 20) / 4.0 / 8 / 20e9);
    assert_true(time_of(&net, TRN_ALL_REDUCE, TRN_MULTI_RING, 1 << 20) > sound);
    net.faults = 0;
    assert_int_equal(trn_topology_slow(&net, "link 0->1 0.5", &why), TRN_OK);
    near(time_of(&net, TRN_ALL_REDUCE, TRN_RING, 1 << 20), 14 * (0.7e-6 + (1 << 20) / 8.0 / 10e9));
    net.faults = 0;
    assert_int_equal(trn_topology_down(&net, "chip 3", &why), TRN_OK);
    assert_int_equal(trn_topology_hops(&net, 0, 7), 2);
    assert_int_equal(trn_topology_hops(&net, 0, 3), -1);
    /* one way only, and a way back: along the links, and against them */
    net = of_text("[level x]\nsize = 4\nwiring = graph\nrate = 1\nlink = 0->1\nlink = 1->2\nlink = 2->3\nlink = 3->0\n"
                  "link = 2->0\ndown = link 3->0\n");
    trn_collective_args a = ask(&net, TRN_ALL_GATHER, TRN_RING, 4000);
    trn_cost cost;
    a.error = &why;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "leaves no way from chip 3 to chip 0"));
    net = of_text("[level x]\nsize = 3\nwiring = graph\nrate = 1\nduplex = half\nlink = 0-1\nlink = 1-2\nlink = 0->2\n"
                  "link = 2->0\n");
    near(time_of(&net, TRN_ALL_TO_ALL, TRN_MESH, 3000), 2 * 1000 / 1e9);
}

/* The values are those of any network, whatever the way. */
static void values_are_the_sums(void **state)
{
    const trn_topology net = of_file("groups-4-6.txt"), dgx = of_file("dgx-1-v100.txt");
    static const trn_algorithm way[] = { TRN_RING, TRN_MULTI_RING, TRN_DIMENSION_WISE, TRN_MESH, TRN_ALGORITHM_AUTO };
    (void)state;
    for (int which = 0; which < 2; which++)
        for (unsigned w = 0; w < sizeof way / sizeof way[0]; w++) {
            float data[10][20], sum[10][20];
            trn_tensor from[10], to[10];
            const int n = which ? dgx.chips : net.chips;
            trn_collective_args a = ask(which ? &dgx : &net, TRN_ALL_REDUCE, way[w], 0);
            for (int r = 0; r < n; r++) {
                for (int i = 0; i < 20; i++) data[r][i] = (float)(r * r + i);
                from[r] = trn_tensor_1d(TRN_F32, data[r], 20);
                to[r] = trn_tensor_1d(TRN_F32, sum[r], 20);
            }
            a.src = from;
            a.dst = to;
            assert_int_equal(trn_collective_run(&a), TRN_OK);
            for (int r = 0; r < n; r++)
                for (int i = 0; i < 20; i++)
                    assert_true(fabsf(sum[r][i] - (float)((n - 1) * n * (2 * n - 1) / 6 + n * i)) < 0.5f);
        }
}

/* A ring alone on its links takes in traffic what it costs; two at once take longer. */
static void traffic_flows_along_links(void **state)
{
    const trn_topology net = of_file("dgx-1-p100.txt");
    trn_collective_args two[2] = { ask(&net, TRN_ALL_GATHER, TRN_RING, 1 << 24),
                                   ask(&net, TRN_ALL_GATHER, TRN_RING, 1 << 24) };
    trn_traffic_args args;
    trn_traffic_time each[2], all;
    (void)state;
    memset(&args, 0, sizeof args);
    memset(&all, 0, sizeof all);
    memset(each, 0, sizeof each);
    args.collective = two;
    args.count = 2;
    assert_int_equal(trn_traffic(&args, each, &all), TRN_OK);
    assert_true(fabs(each[0].alone_s / time_of(&net, TRN_ALL_GATHER, TRN_RING, 1 << 24) - 1) < 1e-9);
    assert_true(fabs((all.mean_s - 7 * 0.7e-6) / (each[0].alone_s - 7 * 0.7e-6) - 2) < 1e-6);
}

static void pictures_and_meshes(void **state)
{
    const trn_topology net = of_file("dgx-1-v100.txt"), groups = of_file("groups-4-6.txt");
    static text picture;
    trn_topology_svg_args args;
    trn_mesh mesh;
    trn_mesh_reach reach;
    int wires = 0;
    (void)state;
    memset(&args, 0, sizeof args);
    args.net = &net;
    args.write = keep;
    args.user = &picture;
    assert_int_equal(trn_topology_svg(&args), TRN_OK);
    for (const char *at = picture.bytes; (at = strstr(at, "<path class=\"wire k0\"")) != NULL; at++) wires++;
    assert_int_equal(wires, 16 + 1); /* and one in the legend */
    assert_non_null(strstr(picture.bytes, "8 chips, 16 links; at most 2 hops"));
    assert_non_null(strstr(picture.bytes, "graph; 25 to 50 GB/s one way per link; 0.7 us"));
    args.net = &groups;
    picture.length = 0;
    assert_int_equal(trn_topology_svg(&args), TRN_OK);
    wires = 0;
    for (const char *at = picture.bytes; (at = strstr(at, "<path class=\"wire k0\"")) != NULL; at++) wires++;
    assert_int_equal(wires, 15 + 1 + 1); /* one goes one way, and has an arrow */
    assert_int_equal(trn_mesh_init(&mesh, &net, "half=2,gpu=4"), TRN_OK);
    assert_true(trn_mesh_axis_contiguous(&mesh, 1, &reach) && reach.ring); /* four are each to each */
    assert_true(trn_mesh_axis_contiguous(&mesh, 0, &reach));               /* and each has a partner */
    assert_int_equal(trn_mesh_init(&mesh, &net, "pair=4,two=2"), TRN_OK);
    assert_false(trn_mesh_axis_contiguous(&mesh, 0, &reach)); /* 0 2 4 6: 2 to 4 is two links */
    assert_int_equal(reach.hops, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_graph_is_its_twin),    cmocka_unit_test(graphs_go_with_other_levels),
        cmocka_unit_test(spelled_out_is_the_same),  cmocka_unit_test(dgx_1_is_its_rings),
        cmocka_unit_test(stars_and_trees),          cmocka_unit_test(graphs_that_have_names),
        cmocka_unit_test(mistakes_have_their_line), cmocka_unit_test(structures_are_checked),
        cmocka_unit_test(the_most_there_may_be),    cmocka_unit_test(faults_and_links_used_in_turns),
        cmocka_unit_test(values_are_the_sums),      cmocka_unit_test(traffic_flows_along_links),
        cmocka_unit_test(pictures_and_meshes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* collective_simgrid.cpp - the times of trn_collective_cost beside those of SimGrid, which simulates flows on links.
 * SPDX-License-Identifier: MIT
 *
 *     collective_simgrid [--csv FILE]        exit status 1: a time differs by more than its limit
 *
 * Nothing of trnmath's schedules is used here. Each algorithm is stated once more, as messages: in every step each rank
 * posts its sends and receives, waits for its own, and goes on, whatever the others do. Each topology is stated once
 * more, as hosts, links that go one way, and routes. SimGrid (CM02 without its corrections for TCP) decides how flows
 * share links and when steps overlap; trnmath adds up the loads of the fullest link step by step. Where every step
 * loads all its links alike the two must agree: ring, halving and doubling, one switch, dimensions of equal size. Where
 * messages of one step have routes of several lengths (mesh on a torus), SimGrid lets short ones finish first, and no
 * limit is set.
 *
 * Built where SimGrid is installed (Debian: libsimgrid-dev); scripts/bench.sh collective --simgrid installs it.
 */
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include <trnmath/trn_collective_cost.h>

namespace sg = simgrid::s4u;

namespace
{

const double RATE = 128e9, LATENCY = 1.5e-6; /* one way, of a link or port; of a link, or from port to port */
const double LIMIT = 0.02;

/* ---- algorithms, as messages ---- */

struct Message {
    int from, to;
    double bytes;
};
typedef std::vector<Message> Step;    /* what is on its way together */
typedef std::vector<Step> Channel;    /* one step after another */
typedef std::vector<Channel> Program; /* side by side */

enum Op { GATHER, SCATTER, REDUCE, EXCHANGE };
const char *const OP_NAME[] = { "all_gather", "reduce_scatter", "all_reduce", "all_to_all" };
const trn_collective OP[] = { TRN_ALL_GATHER, TRN_REDUCE_SCATTER, TRN_ALL_REDUCE, TRN_ALL_TO_ALL };

/* A reduce-scatter is an all-gather backwards: the same messages, the other way, in the opposite order. */
Channel backwards(const Channel &gather)
{
    Channel scatter(gather.rbegin(), gather.rend());
    for (Step &step : scatter)
        for (Message &m : step) std::swap(m.from, m.to);
    return scatter;
}

/* The operation that an all-gather makes possible. */
Channel as_op(const Channel &gather, Op op)
{
    if (op == GATHER || op == EXCHANGE) return gather;
    Channel both = backwards(gather);
    if (op == REDUCE) both.insert(both.end(), gather.begin(), gather.end());
    return both;
}

/* Around a cycle of members, each step a whole block onwards. */
Channel ring_gather(const std::vector<int> &member, double bytes)
{
    const size_t n = member.size();
    Channel c(n - 1);
    for (Step &step : c)
        for (size_t i = 0; i < n; i++) step.push_back({ member[i], member[(i + 1) % n], bytes / (double)n });
    return c;
}

/* Both ways: every block goes half way round in each direction; of an even number the last hop carries half a block
 * from either side. */
Channel ring_both_gather(const std::vector<int> &member, double bytes)
{
    const size_t n = member.size();
    Channel c(n / 2);
    for (size_t s = 0; s < c.size(); s++)
        for (size_t i = 0; i < n; i++) {
            const double block = bytes / (double)n * (n % 2 == 0 && s + 1 == c.size() ? 0.5 : 1);
            c[s].push_back({ member[i], member[(i + 1) % n], block });
            c[s].push_back({ member[i], member[(i + n - 1) % n], block });
        }
    return c;
}

/* Doubling: partners one bit apart, beginning with one block. */
Channel doubling_gather(int n, double bytes)
{
    Channel c;
    for (int bit = 1; bit < n; bit *= 2) {
        Step step;
        for (int r = 0; r < n; r++) step.push_back({ r, r ^ bit, bytes * bit / n });
        c.push_back(step);
    }
    return c;
}

/* Everybody to everybody, a block each. */
Channel direct(int n, double bytes)
{
    Channel c(1);
    for (int r = 0; r < n; r++)
        for (int k = 1; k < n; k++) c[0].push_back({ r, (r + k) % n, bytes / n });
    return c;
}

std::vector<int> in_order(int n)
{
    std::vector<int> member((size_t)n);
    for (int i = 0; i < n; i++) member[(size_t)i] = i;
    return member;
}

/* ---- tori ---- */

int stride_of(const std::vector<int> &size, size_t dim)
{
    int stride = 1;
    for (size_t d = 0; d < dim; d++) stride *= size[d];
    return stride;
}

int chips_of(const std::vector<int> &size) { return stride_of(size, size.size()); }

/* Gather along the dimensions in the given order, each ring of a dimension by itself; what a rank holds grows. */
Channel dimension_gather(const std::vector<int> &size, const std::vector<size_t> &order, double bytes)
{
    Channel all;
    double held = bytes / chips_of(size);
    for (size_t d : order) {
        const int n = size[d], stride = stride_of(size, d);
        held *= n;
        Channel here;
        for (int chip = 0; chip < chips_of(size); chip++) {
            if (chip / stride % n) continue; /* the first of its line speaks for it */
            std::vector<int> line;
            for (int i = 0; i < n; i++) line.push_back(chip + i * stride);
            const Channel one = ring_both_gather(line, held);
            here.resize(one.size());
            for (size_t s = 0; s < one.size(); s++) here[s].insert(here[s].end(), one[s].begin(), one[s].end());
        }
        all.insert(all.end(), here.begin(), here.end());
    }
    return all;
}

/* As many channels as dimensions; each scatters beginning with another one, and gathers back. */
Program rotated(const std::vector<int> &size, double bytes, Op op)
{
    Program p;
    const size_t dims = size.size();
    for (size_t first = 0; first < dims; first++) {
        std::vector<size_t> order;
        for (size_t i = 0; i < dims; i++) order.push_back((first + dims - 1 - i) % dims);
        p.push_back(as_op(dimension_gather(size, order, bytes / (double)dims), op));
    }
    return p;
}

/* Two cycles through all of a 4 x 4 torus that share no link, by trying. */
struct TwoCycles {
    bool used[16][16] = {};
    std::vector<int> cycle[2];
    static int neighbour(int chip, int way)
    {
        const int row = chip / 4, column = chip % 4;
        const int to[] = { row * 4 + (column + 1) % 4, (row + 1) % 4 * 4 + column, row * 4 + (column + 3) % 4,
                           (row + 3) % 4 * 4 + column };
        return to[way];
    }
    bool extend(int which)
    {
        std::vector<int> &path = cycle[which];
        const int at = path.back();
        for (int way = 0; way < 4; way++) {
            const int to = neighbour(at, way);
            const bool closes = path.size() == 16 && to == 0;
            if (used[at][to] || (!closes && std::find(path.begin(), path.end(), to) != path.end())) continue;
            used[at][to] = used[to][at] = true;
            if (!closes) path.push_back(to);
            if (closes ? which == 1 || begin(1) : extend(which)) return true;
            if (!closes) path.pop_back();
            used[at][to] = used[to][at] = false;
        }
        return false;
    }
    bool begin(int which)
    {
        cycle[which] = { 0 };
        return extend(which);
    }
};

/* Both directions of both cycles, a quarter of the payload on each. */
Program four_rings(double bytes, Op op)
{
    Program p;
    TwoCycles two;
    if (!two.begin(0)) return p;
    for (std::vector<int> &cycle : two.cycle)
        for (int way = 0; way < 2; way++) {
            p.push_back(as_op(ring_gather(cycle, bytes / 4), op));
            std::reverse(cycle.begin(), cycle.end());
        }
    return p;
}

/* ---- topologies, as links and routes ---- */

enum Kind { RING, CUBE, TORUS, SWITCH, FULL };

struct Net {
    Kind kind;
    std::string name;
    trn_topology model;
    std::vector<int> size; /* torus: of each dimension */
    std::vector<sg::Host *> host;
};

sg::Link *link_of(sg::NetZone *zone, const std::string &name, double latency)
{
    sg::Link *link = zone->create_link(name, RATE);
    link->set_latency(latency);
    link->seal();
    return link;
}

void route(sg::NetZone *zone, const Net &net, int from, int to, const std::vector<sg::Link *> &links)
{
    std::vector<sg::LinkInRoute> hops;
    for (sg::Link *link : links) hops.push_back(sg::LinkInRoute(link));
    zone->add_route(net.host[(size_t)from]->get_netpoint(), net.host[(size_t)to]->get_netpoint(), nullptr, nullptr,
                    hops, false);
}

sg::NetZone *start_zone(Net &net, sg::NetZone *all)
{
    sg::NetZone *zone = sg::create_full_zone(net.name);
    zone->set_parent(all);
    for (int i = 0; i < net.model.chips; i++)
        net.host.push_back(zone->create_host(net.name + "." + std::to_string(i), 1e9));
    return zone;
}

/* Two links along each dimension from each chip, one up and one down; of size 2 one. Routes: the last dimension last,
 * the short way, and half way round up from even places and down from odd ones. */
Net torus(Kind kind, const std::string &name, const std::vector<int> &size, sg::NetZone *all)
{
    Net net = { kind, name, trn_topology_torus((int)size.size(), size.data(), RATE, LATENCY), size, {} };
    sg::NetZone *zone = start_zone(net, all);
    const int chips = chips_of(size);
    std::vector<sg::Link *> link((size_t)chips * size.size() * 2);
    const auto index = [&](int chip, size_t d, bool up) { return ((size_t)chip * size.size() + d) * 2 + (up ? 1 : 0); };
    for (int chip = 0; chip < chips; chip++)
        for (size_t d = 0; d < size.size(); d++)
            for (int up = 0; up < 2; up++)
                link[index(chip, d, up)] = link_of(
                    zone, name + "." + std::to_string(chip) + "." + std::to_string(d) + (up ? "+" : "-"), LATENCY);
    for (int from = 0; from < chips; from++)
        for (int to = 0; to < chips; to++) {
            std::vector<sg::Link *> path;
            int at = from;
            for (size_t d = 0; d < size.size(); d++) {
                const int n = size[d], stride = stride_of(size, d), here = from / stride % n, there = to / stride % n;
                const int upwards = (there - here + n) % n, downwards = n - upwards;
                const bool up = n == 2 || upwards < downwards || (upwards == downwards && here % 2 == 0);
                for (int place = here; place != there;) {
                    path.push_back(link[index(at, d, up)]);
                    const int next = (place + (up ? 1 : n - 1)) % n;
                    at += (next - place) * stride;
                    place = next;
                }
            }
            if (from != to) route(zone, net, from, to, path);
        }
    zone->seal();
    return net;
}

/* Up and down, half the latency each: a switch that never blocks. */
Net one_switch(const std::string &name, int chips, sg::NetZone *all)
{
    Net net = { SWITCH, name, trn_topology_switch(chips, RATE, LATENCY), {}, {} };
    sg::NetZone *zone = start_zone(net, all);
    std::vector<sg::Link *> up, down;
    for (int i = 0; i < chips; i++) {
        up.push_back(link_of(zone, name + "." + std::to_string(i) + ".up", LATENCY / 2));
        down.push_back(link_of(zone, name + "." + std::to_string(i) + ".down", LATENCY / 2));
    }
    for (int from = 0; from < chips; from++)
        for (int to = 0; to < chips; to++)
            if (from != to) route(zone, net, from, to, { up[(size_t)from], down[(size_t)to] });
    zone->seal();
    return net;
}

Net every_pair(const std::string &name, int chips, sg::NetZone *all)
{
    Net net = { FULL, name, trn_topology_fully_connected(chips, RATE, LATENCY), {}, {} };
    sg::NetZone *zone = start_zone(net, all);
    for (int from = 0; from < chips; from++)
        for (int to = 0; to < chips; to++)
            if (from != to)
                route(zone, net, from, to,
                      { link_of(zone, name + "." + std::to_string(from) + ">" + std::to_string(to), LATENCY) });
    zone->seal();
    return net;
}

/* ---- one program, simulated ---- */

/* What one rank does in one channel. */
struct Rank {
    std::string channel; /* names its mailboxes */
    int rank;
    const Channel *steps;
    void operator()() const
    {
        for (const Step &step : *steps) {
            std::vector<sg::CommPtr> pending;
            static void *received; /* nobody looks at it */
            for (const Message &m : step) {
                if (m.from != rank && m.to != rank) continue;
                sg::Mailbox *box = sg::Mailbox::by_name(channel + std::to_string(m.from) + ">" + std::to_string(m.to));
                if (m.to == rank)
                    pending.push_back(box->get_async<void>(&received));
                else
                    pending.push_back(box->put_async(box, (uint64_t)std::llround(m.bytes)));
            }
            sg::Comm::wait_all(pending);
        }
    }
};

/* Called by an actor. */
double simulated_seconds(const Net &net, const Program &program)
{
    static int number = 0;
    const double start = sg::Engine::get_clock();
    std::vector<sg::ActorPtr> actors;
    for (const Channel &channel : program) {
        const std::string name = std::to_string(number++) + ":";
        for (size_t r = 0; r < net.host.size(); r++)
            actors.push_back(sg::Actor::create(name + std::to_string(r), net.host[r], Rank{ name, (int)r, &channel }));
    }
    for (const sg::ActorPtr &actor : actors) actor->join();
    return sg::Engine::get_clock() - start;
}

double model_seconds(const Net &net, Op op, trn_algorithm algorithm, double bytes)
{
    trn_collective_args args;
    trn_cost cost;
    trn_error error;
    memset(&args, 0, sizeof args);
    args.net = &net.model;
    args.op = OP[op];
    args.algorithm = algorithm;
    args.bytes = (int64_t)bytes;
    args.uncalibrated = true;
    args.error = &error;
    if (trn_collective_cost(&args, &cost) == TRN_OK) return cost.time_s;
    fprintf(stderr, "collective_simgrid: %s\n", error.text);
    return 0;
}

/* ---- the comparison ---- */

struct Comparison {
    FILE *csv = nullptr;
    int rows = 0, wrong = 0;
    double worst = 0; /* of those with a limit */

    void row(const Net &net, Op op, trn_algorithm algorithm, double bytes, const Program &program, bool limited = true)
    {
        const double model = model_seconds(net, op, algorithm, bytes), seen = simulated_seconds(net, program),
                     ratio = model / seen;
        const bool bad = limited && !(std::fabs(ratio - 1) <= LIMIT);
        const char *how = trn_algorithm_name(algorithm);
        rows++;
        wrong += bad;
        if (limited) worst = std::max(worst, std::fabs(ratio - 1));
        printf("  %-14s  %-14s  %-14s  %5d  %8.0f  %12.3f  %12.3f  %8.5f%s\n", net.name.c_str(), OP_NAME[op], how,
               net.model.chips, bytes, 1e6 * model, 1e6 * seen, ratio,
               bad       ? "  WRONG"
               : limited ? ""
                         : "  no limit");
        if (csv)
            fprintf(csv, "%s,%s,%s,%d,%.0f,%.9g,%.9g,%.9g,%s\n", net.name.c_str(), OP_NAME[op], how, net.model.chips,
                    bytes, model, seen, ratio, limited ? "0.02" : "");
    }
};

/* All comparisons on all topologies, one after another in simulated time. */
void compare(Comparison *c, const std::vector<Net> *nets)
{
    for (const Net &net : *nets)
        for (const double bytes : { 1024.0, 1048576.0, 67108864.0 }) {
            const int n = net.model.chips;
            const std::vector<int> all = in_order(n);
            for (const Op op : { GATHER, SCATTER, REDUCE }) switch (net.kind) {
                case RING:
                    c->row(net, op, TRN_RING, bytes, { as_op(ring_gather(all, bytes), op) });
                    c->row(net, op, TRN_BIDIRECTIONAL_RING, bytes, { as_op(ring_both_gather(all, bytes), op) });
                    break;
                case TORUS:
                    c->row(net, op, TRN_DIMENSION_WISE, bytes, rotated(net.size, bytes, op));
                    if (n == 16) c->row(net, op, TRN_MULTI_RING, bytes, four_rings(bytes, op));
                    break;
                case SWITCH:
                    c->row(net, op, TRN_SWITCH_DIRECT, bytes, { as_op(direct(n, bytes), op) });
                    [[fallthrough]];
                case CUBE:
                    c->row(net, op, TRN_RECURSIVE_DOUBLING, bytes, { as_op(doubling_gather(n, bytes), op) });
                    break;
                default: c->row(net, op, TRN_MESH, bytes, { as_op(direct(n, bytes), op) });
                }
            if (net.kind == SWITCH) c->row(net, EXCHANGE, TRN_SWITCH_DIRECT, bytes, { direct(n, bytes) });
            if (net.kind == FULL) c->row(net, EXCHANGE, TRN_MESH, bytes, { direct(n, bytes) });
            if (net.kind == TORUS) c->row(net, EXCHANGE, TRN_MESH, bytes, { direct(n, bytes) }, false);
        }
}

std::vector<Net> all_topologies(sg::NetZone *all)
{
    std::vector<Net> nets;
    for (int n : { 4, 8, 16, 64 }) nets.push_back(torus(RING, "ring-" + std::to_string(n), { n }, all));
    nets.push_back(torus(RING, "ring-9", { 9 }, all));
    for (int dims : { 2, 3, 4, 6 })
        nets.push_back(torus(CUBE, "hypercube-" + std::to_string(1 << dims), std::vector<int>((size_t)dims, 2), all));
    for (int n : { 4, 8, 16, 64 }) nets.push_back(one_switch("switch-" + std::to_string(n), n, all));
    nets.push_back(torus(TORUS, "torus-4x4", { 4, 4 }, all));
    nets.push_back(torus(TORUS, "torus-8x8", { 8, 8 }, all));
    nets.push_back(torus(TORUS, "torus-4x4x4", { 4, 4, 4 }, all));
    nets.push_back(every_pair("full-16", 16, all));
    return nets;
}

/* Flows get what the links have: no factors for TCP, no acknowledgements, no window; time is exact to 1e-14 s. */
char *const OPTIONS[] = { const_cast<char *>("collective_simgrid"),
                          const_cast<char *>("--log=xbt_cfg.threshold:warning"),
                          const_cast<char *>("--cfg=network/model:CM02"),
                          const_cast<char *>("--cfg=network/bandwidth-factor:1.0"),
                          const_cast<char *>("--cfg=network/latency-factor:1.0"),
                          const_cast<char *>("--cfg=network/weight-S:0"),
                          const_cast<char *>("--cfg=network/crosstraffic:0"),
                          const_cast<char *>("--cfg=network/TCP-gamma:1e30"),
                          const_cast<char *>("--cfg=surf/precision:1e-14"),
                          const_cast<char *>("--cfg=maxmin/precision:1e-9") };

int usage(int status)
{
    fputs("usage: collective_simgrid [--csv FILE]\n\n"
          "Times of collectives by trnmath's model, uncalibrated, beside those of SimGrid, a simulator of flows on "
          "links, on the\n"
          "same topologies with the same algorithms, stated independently. Exit status: 0 all limited rows agree to 2 "
          "%,\n"
          "1 one does not, 2 bad usage.\n",
          status ? stderr : stdout);
    return status;
}

} /* namespace */

int main(int argc, char **argv)
{
    Comparison c;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) return usage(0);
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--csv") != 0)) return usage(2);
    if (argc == 3 && !(c.csv = fopen(argv[2], "w"))) return perror(argv[2]), 2;
    std::vector<char *> words(std::begin(OPTIONS), std::end(OPTIONS));
    int count = (int)words.size();
    words.push_back(nullptr);
    sg::Engine engine(&count, words.data());
    sg::NetZone *all = sg::create_full_zone("all");
    sg::NetZone *outside = sg::create_full_zone("outside");
    outside->set_parent(all);
    sg::Host *clock = outside->create_host("clock", 1e9);
    outside->seal();
    const std::vector<Net> nets = all_topologies(all);
    all->seal();
    if (c.csv) fputs("topology,op,algorithm,ranks,bytes,trnmath_s,simgrid_s,ratio,limit\n", c.csv);
    printf("  %-14s  %-14s  %-14s  %5s  %8s  %12s  %12s  %8s\n", "topology", "operation", "algorithm", "ranks", "bytes",
           "trnmath(us)", "SimGrid(us)", "ratio");
    sg::Actor::create("clock", clock, compare, &c, &nets);
    engine.run();
    printf("\n  %d comparisons, links and ports of 128 GB/s and 1.5 us; the worst of those with a limit of 2 %% "
           "differs by %.2g %%.\n",
           c.rows, 100 * c.worst);
    if (c.csv) fclose(c.csv);
    return c.wrong ? 1 : 0;
}

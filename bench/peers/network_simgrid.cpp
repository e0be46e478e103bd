/* network_simgrid.cpp - networks with faults, links used in turns, store and forward, and several collectives at once,
 * beside SimGrid.
 * SPDX-License-Identifier: MIT
 *
 *     network_simgrid [--csv FILE]        exit status 1: a time differs by more than its limit
 *
 * Each network is stated once more, as hosts and links that go one way (or, used in turns, both), and each route as a
 * search over what is not down. Each collective is stated once more, as messages in steps. Fair sharing is SimGrid's:
 * its model CM02 shares a link in inverse proportion to the latencies of the routes, so routes that meet have the same
 * latency here, or none.
 *
 * Built where SimGrid is installed (Debian: libsimgrid-dev); scripts/bench.sh network --simgrid installs it.
 */
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <trnmath/trn_random.h>
#include <trnmath/trn_topology.h>
#include <trnmath/trn_traffic.h>

namespace sg = simgrid::s4u;

namespace
{

const double LIMIT = 0.02;

/* ---- networks: the library's, and the same as hosts and links ---- */

enum Kind { RING, TORUS, SWITCH, FULL };

struct Arc {
    int from, to; /* chips; -1 is the switch */
    bool down;
    double share;
};

struct Net {
    std::string name;
    Kind kind;
    int side; /* chips, or of each side of a torus */
    double rate, latency;
    bool half;
    double background;
    std::vector<std::string> faults; /* as the library reads them */
    std::vector<Arc> arcs;
    trn_topology model;
    std::vector<sg::Host *> host;
    std::vector<std::vector<int>> path; /* [from * chips + to] of arcs */

    int chips() const { return kind == TORUS ? side * side : side; }
};

void list_arcs(Net &net)
{
    const int n = net.chips(), s = net.side;
    const auto both = [&](int a, int b) {
        net.arcs.push_back({ a, b, false, 1 });
        net.arcs.push_back({ b, a, false, 1 });
    };
    for (int i = 0; i < n; i++) {
        if (net.kind == RING) both(i, (i + 1) % n);
        if (net.kind == SWITCH) both(i, -1);
        if (net.kind == TORUS) both(i, i / s * s + (i + 1) % s), both(i, (i + s) % n);
        for (int k = i + 1; net.kind == FULL && k < n; k++) both(i, k);
    }
}

/* "down link 1->2", "slow chip 3 0.5", "slow link 0->switch 0.25" */
void break_arcs(Net &net, const std::string &fault)
{
    int a = -1, b = -1;
    double share = 0;
    const bool chip = sscanf(fault.c_str(), "%*s chip %d %lf", &a, &share) >= 1;
    if (!chip && sscanf(fault.c_str(), "%*s link %d->%d %lf", &a, &b, &share) < 2) {
        if (sscanf(fault.c_str(), "%*s link x->%d %lf", &b, &share) < 1)
            sscanf(fault.c_str(), "%*s link %d->x %lf", &a, &share);
    }
    for (Arc &arc : net.arcs) {
        const bool hit = chip ? arc.from == a || arc.to == a
                              : (arc.from == a && arc.to == b) || (net.half && arc.from == b && arc.to == a);
        if (hit) share > 0 ? arc.share *= share : arc.down = true;
    }
}

/* The usual way is the shortest, along x first; where it is broken, the shortest that is left (all ties here are
 * between ways that are loaded alike). */
std::vector<int> search(const Net &net, int from, int to)
{
    std::map<int, std::vector<int>> ways = { { from, {} } };
    std::vector<int> queue = { from };
    for (size_t at = 0; at < queue.size() && !ways.count(to); at++)
        for (size_t i = 0; i < net.arcs.size(); i++) {
            const Arc &arc = net.arcs[i];
            if (arc.from != queue[at] || arc.down || ways.count(arc.to)) continue;
            ways[arc.to] = ways[arc.from];
            ways[arc.to].push_back((int)i);
            queue.push_back(arc.to);
        }
    return ways.count(to) ? ways[to] : std::vector<int>();
}

int arc_between(const Net &net, int from, int to)
{
    for (size_t i = 0; i < net.arcs.size(); i++)
        if (net.arcs[i].from == from && net.arcs[i].to == to) return (int)i;
    return -1;
}

/* Round a ring of `n` places `stride` apart, the short way; half way, up from even places. */
int along(const Net &net, int at, int to, int n, int stride, std::vector<int> &path)
{
    const int here = at / stride % n, there = to / stride % n, up = (there - here + n) % n, down = n - up;
    const bool upwards = up < down || (up == down && here % 2 == 0);
    for (int place = here; place != there;) {
        const int next = (place + (upwards ? 1 : n - 1)) % n, chip = at + (next - place) * stride;
        path.push_back(arc_between(net, at, chip));
        at = chip;
        place = next;
    }
    return at;
}

std::vector<int> way(const Net &net, int from, int to)
{
    std::vector<int> path;
    if (net.kind == SWITCH) path = { arc_between(net, from, -1), arc_between(net, -1, to) };
    if (net.kind == FULL) path = { arc_between(net, from, to) };
    if (net.kind == RING) along(net, from, to, net.side, 1, path);
    if (net.kind == TORUS) along(net, along(net, from, to, net.side, 1, path), to, net.side, net.side, path);
    for (int arc : path)
        if (net.arcs[(size_t)arc].down) return search(net, from, to);
    return path;
}

void build_model(Net &net)
{
    const int two[2] = { net.side, net.side };
    trn_error why;
    net.model = net.kind == RING     ? trn_topology_ring(net.side, net.rate, net.latency)
                : net.kind == SWITCH ? trn_topology_switch(net.side, net.rate, net.latency)
                : net.kind == FULL   ? trn_topology_fully_connected(net.side, net.rate, net.latency)
                                     : trn_topology_torus(2, two, net.rate, net.latency);
    for (int l = 0; l < net.model.levels; l++) net.model.level[l].half_duplex = net.half;
    for (const std::string &fault : net.faults) {
        const char *what = fault.c_str() + 5;
        const bool slow = fault[0] == 's';
        if ((slow ? trn_topology_slow : trn_topology_down)(&net.model, what, &why) != TRN_OK)
            fprintf(stderr, "network_simgrid: %s: %s\n", fault.c_str(), why.text);
    }
}

void build_hosts(Net &net, sg::NetZone *all)
{
    static int number = 0;
    const std::string prefix = "n" + std::to_string(number++) + ".";
    sg::NetZone *zone = sg::create_full_zone(prefix);
    zone->set_parent(all);
    const int n = net.chips();
    for (int i = 0; i < n; i++) net.host.push_back(zone->create_host(prefix + std::to_string(i), 1e9));
    std::vector<sg::Link *> link(net.arcs.size());
    for (size_t i = 0; i < net.arcs.size(); i++) { /* a link that is used in turns is one link */
        const Arc &arc = net.arcs[i];
        const size_t other = i ^ 1u;
        if (net.half && other < i) {
            link[i] = link[other];
            continue;
        }
        link[i] = zone->create_link(prefix + "link" + std::to_string(i),
                                    net.rate * std::max(arc.share, 1e-6) * (1 - net.background));
        link[i]->set_latency(net.kind == SWITCH ? net.latency / 2 : net.latency);
        link[i]->seal();
    }
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            net.path.push_back(from == to ? std::vector<int>() : way(net, from, to));
            std::vector<sg::LinkInRoute> hops;
            for (int arc : net.path.back()) hops.push_back(sg::LinkInRoute(link[(size_t)arc]));
            if (hops.empty()) continue;
            zone->add_route(net.host[(size_t)from]->get_netpoint(), net.host[(size_t)to]->get_netpoint(), nullptr,
                            nullptr, hops, false);
        }
    zone->seal();
}

Net network(const std::string &name, Kind kind, int side, double latency, const std::vector<std::string> &faults,
            sg::NetZone *all, bool half = false, double background = 0)
{
    Net net = { name, kind, side, 128e9, latency, half, background, faults, {}, {}, {}, {} };
    list_arcs(net);
    for (const std::string &fault : faults) break_arcs(net, fault);
    build_model(net);
    build_hosts(net, all);
    return net;
}

/* ---- collectives, as messages in steps ---- */

struct Message {
    int from, to; /* chips */
    double bytes;
};
typedef std::vector<std::vector<Message>> Program;

enum How { AROUND, BOTH_WAYS, DIRECT };

Program program(const std::vector<int> &chip, How how, trn_collective op, double bytes)
{
    const size_t n = chip.size();
    const double block = bytes / (double)n;
    Program p(how == AROUND ? n - 1 : how == BOTH_WAYS ? n / 2 : 1);
    for (size_t s = 0; s < p.size(); s++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 1; k < (how == DIRECT ? n : 2); k++) {
                const double part = how == BOTH_WAYS && n % 2 == 0 && s + 1 == p.size() ? block / 2 : block;
                p[s].push_back({ chip[i], chip[(i + k) % n], part });
                if (how == BOTH_WAYS) p[s].push_back({ chip[i], chip[(i + n - k) % n], part });
            }
    if (op == TRN_ALL_REDUCE) { /* partial sums go the same way round as the blocks that are gathered */
        const Program gather = p;
        std::reverse(p.begin(), p.end());
        p.insert(p.end(), gather.begin(), gather.end());
    }
    if (op == TRN_REDUCE_SCATTER) std::reverse(p.begin(), p.end());
    return p;
}

/* What one chip does: it comes when it comes, and says when it is done. */
struct Rank {
    std::string name;
    int chip;
    const Program *steps;
    double begins, *end;
    void operator()() const
    {
        static void *received;
        sg::this_actor::sleep_until(begins);
        for (const auto &step : *steps) {
            std::vector<sg::CommPtr> pending;
            for (const Message &m : step) {
                if (m.from != chip && m.to != chip) continue;
                sg::Mailbox *box = sg::Mailbox::by_name(name + std::to_string(m.from) + ">" + std::to_string(m.to));
                if (m.to == chip)
                    pending.push_back(box->get_async<void>(&received));
                else
                    pending.push_back(box->put_async(box, (uint64_t)std::llround(m.bytes)));
            }
            sg::Comm::wait_all(pending);
        }
        *end = std::max(*end, sg::Engine::get_clock());
    }
};

/* Store and forward: one link after the other. */
struct Carrier {
    const Net *net;
    Message message;
    void operator()() const
    {
        for (int arc : net->path[(size_t)(message.from * net->chips() + message.to)])
            sg::Comm::sendto(net->host[(size_t)net->arcs[(size_t)arc].from],
                             net->host[(size_t)net->arcs[(size_t)arc].to], (uint64_t)std::llround(message.bytes));
    }
};

/* ---- what is compared ---- */

struct Job {
    trn_collective op;
    trn_algorithm algorithm;
    How how;
    std::vector<int> chips;
    double bytes, start;
};

struct Comparison {
    FILE *csv = nullptr;
    int rows = 0, wrong = 0;
    double worst = 0;

    void row(const std::string &net, const std::string &what, double model, double seen)
    {
        const double ratio = model / seen;
        const bool bad = !(std::fabs(ratio - 1) <= LIMIT);
        rows++;
        wrong += bad;
        worst = std::max(worst, std::fabs(ratio - 1));
        printf("  %-26s  %-34s  %12.3f  %12.3f  %9.6f%s\n", net.c_str(), what.c_str(), 1e6 * model, 1e6 * seen, ratio,
               bad ? "  WRONG" : "");
        if (csv) fprintf(csv, "%s,%s,%.9g,%.9g,%.9g\n", net.c_str(), what.c_str(), model, seen, ratio);
    }
};

trn_collective_args ask(const Net &net, const Job &job, trn_error *why)
{
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = &net.model;
    a.op = job.op;
    a.algorithm = job.algorithm;
    a.bytes = (int64_t)job.bytes;
    a.chips = job.chips.data();
    a.count = (int)job.chips.size();
    a.uncalibrated = true;
    a.error = why;
    return a;
}

std::vector<double> simulated(const Net &net, const std::vector<Job> &jobs, const std::vector<double> &late)
{
    static int number = 0;
    const double now = sg::Engine::get_clock();
    std::vector<Program> programs;
    std::vector<double> end(jobs.size(), 0);
    std::vector<sg::ActorPtr> actors;
    for (const Job &job : jobs) programs.push_back(program(job.chips, job.how, job.op, job.bytes));
    for (size_t i = 0; i < jobs.size(); i++) {
        const std::string name = std::to_string(number++) + ":";
        for (int chip : jobs[i].chips)
            actors.push_back(
                sg::Actor::create(name + std::to_string(chip), net.host[(size_t)chip],
                                  Rank{ name, chip, &programs[i],
                                        now + jobs[i].start + (late.empty() ? 0 : late[(size_t)chip]), &end[i] }));
    }
    for (const sg::ActorPtr &actor : actors) actor->join();
    for (double &e : end) e -= now;
    return end;
}

void one(Comparison *c, const Net &net, const Job &job)
{
    trn_error why;
    trn_cost cost;
    const trn_collective_args a = ask(net, job, &why);
    const std::string what = std::string(trn_collective_name(job.op)) + " " + trn_algorithm_name(job.algorithm);
    if (trn_collective_cost(&a, &cost) != TRN_OK) {
        fprintf(stderr, "network_simgrid: %s\n", why.text);
        c->wrong++;
        return;
    }
    c->row(net.name, what + ", " + std::to_string((int)job.bytes) + " B", cost.time_s, simulated(net, { job }, {})[0]);
}

/* One step of messages, hop by hop. */
void hop_by_hop(Comparison *c, Net net, trn_collective op, const std::vector<Message> &messages, double bytes)
{
    trn_collective_args a;
    trn_cost cost;
    memset(&a, 0, sizeof a);
    net.model.store_and_forward = true;
    a.net = &net.model;
    a.op = op;
    a.algorithm = op == TRN_ALL_TO_ALL ? TRN_MESH : TRN_ALGORITHM_AUTO;
    a.bytes = (int64_t)bytes;
    a.root = messages[0].from;
    a.target = messages[0].to;
    a.uncalibrated = true;
    const bool ok = trn_collective_cost(&a, &cost) == TRN_OK;
    const double now = sg::Engine::get_clock();
    std::vector<sg::ActorPtr> actors;
    for (const Message &m : messages)
        actors.push_back(sg::Actor::create("carrier", net.host[(size_t)m.from], Carrier{ &net, m }));
    for (const sg::ActorPtr &actor : actors) actor->join();
    c->row(net.name, std::string(trn_collective_name(op)) + ", store and forward", ok ? cost.time_s : 0,
           sg::Engine::get_clock() - now);
}

/* Several at once. late: 0 = nobody, else by this distribution. */
void together(Comparison *c, const Net &net, const std::string &name, const std::vector<Job> &jobs, trn_late late)
{
    std::vector<trn_collective_args> asked;
    std::vector<trn_traffic_time> each(jobs.size());
    std::vector<double> start, delay, background((size_t)net.model.levels, net.background);
    trn_traffic_time all = {};
    trn_traffic_args args;
    trn_error why;
    memset(&args, 0, sizeof args);
    double first = jobs[0].start;
    for (const Job &job : jobs) {
        asked.push_back(ask(net, job, &why));
        start.push_back(job.start);
        first = std::min(first, job.start);
    }
    args.collective = asked.data();
    args.count = (int)asked.size();
    args.start_s = start.data();
    args.background = background.data();
    args.late = late;
    args.late_mean_s = 40e-6;
    args.late_spread_s = 20e-6;
    args.seed = 5;
    args.stream = 7;
    args.error = &why;
    if (trn_traffic(&args, each.data(), &all) != TRN_OK) {
        fprintf(stderr, "network_simgrid: %s: %s\n", name.c_str(), why.text);
        c->wrong++;
        return;
    }
    for (int chip = 0; late != TRN_LATE_NONE && chip < net.chips(); chip++) {
        const double u = (trn_random_u32(5, 7, 128u * (unsigned)chip) + 0.5) / 4294967296.0;
        const double v = (trn_random_u32(5, 7, 128u * (unsigned)chip + 1) + 0.5) / 4294967296.0;
        const double s = late == TRN_LATE_UNIFORM ? 40e-6 + 20e-6 * (2 * u - 1)
                         : late == TRN_LATE_EXPONENTIAL
                             ? -40e-6 * std::log(u)
                             : 40e-6 + 20e-6 * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::acos(-1.0) * v);
        delay.push_back(std::max(s, 0.0));
    }
    const std::vector<double> end = simulated(net, jobs, delay);
    for (size_t i = 0; i < jobs.size(); i++)
        c->row(net.name, name + ", " + std::to_string(i + 1) + " of " + std::to_string(jobs.size()), each[i].mean_s,
               end[i] - jobs[i].start);
    c->row(net.name, name + ", all", all.mean_s, *std::max_element(end.begin(), end.end()) - first);
}

std::vector<int> range(int first, int count, int step = 1)
{
    std::vector<int> chips;
    for (int i = 0; i < count; i++) chips.push_back(first + i * step);
    return chips;
}

void compare_faults(Comparison *c, sg::NetZone *, const std::vector<Net> *nets)
{
    for (const Net &net : *nets)
        for (const double bytes : { 65536.0, 67108864.0 }) {
            const std::vector<int> all = range(0, net.chips());
            for (const trn_collective op : { TRN_ALL_GATHER, TRN_REDUCE_SCATTER, TRN_ALL_REDUCE }) {
                if (net.kind == RING) one(c, net, { op, TRN_RING, AROUND, all, bytes, 0 });
                if (net.kind == RING && net.faults.empty())
                    one(c, net, { op, TRN_BIDIRECTIONAL_RING, BOTH_WAYS, all, bytes, 0 });
                if (net.kind == SWITCH || net.kind == FULL) one(c, net, { op, TRN_MESH, DIRECT, all, bytes, 0 });
            }
            if (net.kind == SWITCH || net.kind == FULL)
                one(c, net, { TRN_ALL_TO_ALL, TRN_MESH, DIRECT, all, bytes, 0 });
        }
}

void compare_hops(Comparison *c, const Net &ring, const Net &cut)
{
    const double bytes = 1 << 20;
    std::vector<Message> all;
    for (int i = 0; i < ring.side; i++)
        for (int k = 1; k < ring.side; k++) all.push_back({ i, (i + k) % ring.side, bytes / ring.side });
    for (int to = 1; to < ring.side; to++) hop_by_hop(c, ring, TRN_SEND_RECV, { { 0, to, bytes } }, bytes);
    hop_by_hop(c, cut, TRN_SEND_RECV, { { 1, 2, bytes } }, bytes);
    hop_by_hop(c, ring, TRN_ALL_TO_ALL, all, bytes);
}

void compare_traffic(Comparison *c, const Net &net)
{
    const int n = net.chips();
    const std::vector<int> all = range(0, n), low = range(0, n / 2), odd = range(1, n / 2, 2);
    const double mib = 1 << 20;
    const std::vector<Job> two = { { TRN_ALL_GATHER, TRN_RING, AROUND, all, 8 * mib, 0 },
                                   { TRN_ALL_TO_ALL, TRN_MESH, DIRECT, all, 8 * mib, 0 } };
    const std::vector<Job> three = { { TRN_ALL_REDUCE, TRN_RING, AROUND, all, 4 * mib, 30e-6 },
                                     { TRN_ALL_TO_ALL, TRN_MESH, DIRECT, low, 16 * mib, 0 },
                                     { TRN_REDUCE_SCATTER, TRN_RING, AROUND, odd, 6 * mib, 75e-6 } };
    if (net.kind == TORUS) { /* a list of chips in this order is no ring of the torus: messages take their routes */
        together(c, net, "two",
                 { { TRN_ALL_TO_ALL, TRN_MESH, DIRECT, all, 8 * mib, 0 },
                   { TRN_ALL_GATHER, TRN_MESH, DIRECT, all, 8 * mib, 20e-6 } },
                 TRN_LATE_NONE);
        return;
    }
    together(c, net, "two", two, TRN_LATE_NONE);
    together(c, net, "three", three, TRN_LATE_NONE);
    together(c, net, "two, uniform", two, TRN_LATE_UNIFORM);
    together(c, net, "three, exponential", three, TRN_LATE_EXPONENTIAL);
    together(c, net, "two, normal", two, TRN_LATE_NORMAL);
}

struct Everything {
    std::vector<Net> faulty, hops, shared;
};

void compare(Comparison *c, const Everything *e)
{
    compare_faults(c, nullptr, &e->faulty);
    compare_hops(c, e->hops[0], e->hops[1]);
    for (const Net &net : e->shared) compare_traffic(c, net);
}

Everything everything(sg::NetZone *all)
{
    const double us = 1e-6;
    Everything e;
    e.faulty = {
        network("ring-8, cut", RING, 8, 1.5 * us, { "down link 1->2" }, all),
        network("ring-9, cut both ways", RING, 9, 1.5 * us, { "down link 4->5", "down link 5->4" }, all),
        network("ring-8, slow link", RING, 8, 1.5 * us, { "slow link 3->4 0.5" }, all),
        network("ring-8, slow chip", RING, 8, 1.5 * us, { "slow chip 5 0.8" }, all),
        network("ring-8, used in turns", RING, 8, 1.5 * us, {}, all, true),
        network("switch-8, slow port", SWITCH, 8, 1.5 * us, { "slow link x->3 0.5" }, all),
        network("switch-8, used in turns", SWITCH, 8, 1.5 * us, {}, all, true),
        network("full-8, cut", FULL, 8, 0, { "down link 3->7" }, all),
        network("full-8, slow chip", FULL, 8, 1.5 * us, { "slow chip 2 0.25" }, all),
    };
    e.hops = { network("ring-9", RING, 9, 1.5 * us, {}, all),
               network("ring-9, cut", RING, 9, 1.5 * us, { "down link 1->2" }, all) };
    e.shared = {
        network("ring-8", RING, 8, 0, {}, all),
        network("ring-8, cut and slow", RING, 8, 0, { "down link 1->2", "slow link 6->7 0.5" }, all),
        network("ring-9, 30 % taken", RING, 9, 0, {}, all, false, 0.3),
        network("switch-8", SWITCH, 8, 1.5 * us, {}, all),
        network("switch-16, slow chip", SWITCH, 16, 1.5 * us, { "slow chip 4 0.5" }, all),
        network("switch-8, used in turns", SWITCH, 8, 1.5 * us, {}, all, true, 0.25),
        network("torus-4x4", TORUS, 4, 0, {}, all),
    };
    return e;
}

/* Flows get what the links have: no factors for TCP, no acknowledgements, no window; time is exact to 1e-14 s. */
char *const OPTIONS[] = { const_cast<char *>("network_simgrid"),
                          const_cast<char *>("--log=xbt_cfg.threshold:warning"),
                          const_cast<char *>("--cfg=network/model:CM02"),
                          const_cast<char *>("--cfg=network/bandwidth-factor:1.0"),
                          const_cast<char *>("--cfg=network/latency-factor:1.0"),
                          const_cast<char *>("--cfg=network/weight-S:0"),
                          const_cast<char *>("--cfg=network/crosstraffic:0"),
                          const_cast<char *>("--cfg=network/TCP-gamma:1e30"),
                          const_cast<char *>("--cfg=surf/precision:1e-14"),
                          const_cast<char *>("--cfg=maxmin/precision:1e-6") };

int usage(int status)
{
    fputs(
        "usage: network_simgrid [--csv FILE]\n\n"
        "Times on networks where something is down, slow, used in turns or stored before it goes on, and of several\n"
        "collectives at once, beside those of SimGrid. Exit status: 0 all agree to 2 %, 1 one does not, 2 bad usage.\n",
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
    const Everything e = everything(all);
    all->seal();
    if (c.csv) fputs("network,what,trnmath_s,simgrid_s,ratio\n", c.csv);
    printf("  %-26s  %-34s  %12s  %12s  %9s\n", "network", "what", "trnmath(us)", "SimGrid(us)", "ratio");
    sg::Actor::create("clock", clock, compare, &c, &e);
    engine.run();
    printf("\n  %d comparisons, links of 128 GB/s; the worst differs by %.2g %%, and the limit is 2 %%.\n", c.rows,
           100 * c.worst);
    if (c.csv) fclose(c.csv);
    return c.wrong ? 1 : 0;
}

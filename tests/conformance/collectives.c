/* collectives.c - bounds, steps, passes through memory, switch-over sizes, bus bandwidths.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/bounds.h"

/* NaN in all of it after a refusal. */
static trn_cost ask(trn_collective_args args)
{
    trn_cost c;
    memset(&c, 0, sizeof c);
    if (trn_collective_cost(&args, &c) != TRN_OK)
        c.time_s = c.lower_bound_s = c.latency_s = c.bytes_per_s = (double)NAN;
    return c;
}

/* ---- bounds: .at the system, .of the operation and the size ---- */

static void bound(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = published_bound_net(v->at);
    (void)o;
    a->got = 1e6 * ask((trn_collective_args){ .net = &net,
                                              .op = published_bound_ops[v->of / PUBLISHED_BOUND_SIZES],
                                              .bytes = published_bound_bytes[v->of % PUBLISHED_BOUND_SIZES] })
                       .lower_bound_s;
}

static void add_bounds(cf_list *list)
{
    static const char *const size[PUBLISHED_BOUND_SIZES] = { "1MiB", "64MiB", "1GiB" };
    for (int i = 0; i < PUBLISHED_BOUNDS; i++)
        for (int k = 0; k < PUBLISHED_BOUND_OPS * PUBLISHED_BOUND_SIZES; k++) {
            const int op = k / PUBLISHED_BOUND_SIZES, s = k % PUBLISHED_BOUND_SIZES;
            const char *system = trn_system_name(published_bounds[i].system);
            const char *name = trn_collective_name(published_bound_ops[op]);
            cf_add(list,
                   (cf_vector){ .id = cf_id(list, "collective.bound.%s.%s.%s", system, name, size[s]),
                                .what = cf_text(list, "%s of %s on %s: no schedule is faster", name, size[s], system),
                                .unit = "us",
                                CF_ABOUT(published_bound_us(i, op, s), published_bound_slack(s)),
                                .kind = CF_CALCULATED,
                                .source = "rates of links as published; injection and bisection",
                                .test = bound,
                                .at = i,
                                .of = k });
        }
}

/* All-to-all across the racks of Trainium3: half of each chip's bytes at 128 GB/s. */
static void bound_between_racks(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of((trn_system)v->of);
    (void)o;
    a->got =
        1e3 * ask((trn_collective_args){ .net = &net, .op = TRN_ALL_TO_ALL, .bytes = (int64_t)1 << 30 }).lower_bound_s;
}

/* ---- steps: .of the algorithm, .at ranks of a ring ---- */

static void steps(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_ring(v->at, 1e9, 1e-6), one = trn_topology_switch(v->at, 1e9, 1e-6);
    const bool switched = v->of == TRN_SWITCH_DIRECT || v->of == TRN_RECURSIVE_DOUBLING;
    const trn_cost c = ask((trn_collective_args){ .net = switched ? &one : &net,
                                                  .op = TRN_ALL_GATHER,
                                                  .algorithm = (trn_algorithm)v->of,
                                                  .bytes = 1 << 20,
                                                  .ranks_per_chip = v->of == TRN_KANGARING ? 2 : 1,
                                                  .uncalibrated = true });
    (void)o;
    a->got = c.latency_s * 1e6;
}

/* Whole trn2.48xlarge, four ranks a chip: .of the algorithm. */
static void steps_of_instance(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    (void)o;
    a->got = ask((trn_collective_args){ .net = &net,
                                        .op = TRN_ALL_REDUCE,
                                        .algorithm = (trn_algorithm)v->of,
                                        .bytes = 1 << 20,
                                        .ranks_per_chip = 4 })
                 .steps;
}

/* HBM touches of two ranks for each chunk that passes them. .of: 1 pairs of ranks (KangaRing); .at: 1 reduces. */
static void touches(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { BYTES = 1 << 20 };
    trn_topology net = trn_topology_ring(256, 1e9, 1e-6);
    net.hbm_bytes_per_s = 1e9;
    (void)o;
    a->got = ask((trn_collective_args){ .net = &net,
                                        .op = v->at ? TRN_REDUCE_SCATTER : TRN_ALL_GATHER,
                                        .algorithm = v->of ? TRN_KANGARING : TRN_MULTI_RING,
                                        .bytes = BYTES,
                                        .ranks_per_chip = 2,
                                        .uncalibrated = true })
                 .hbm_s *
             1e9 / BYTES;
}

/* ---- what AUTO chooses on a whole instance: the size in MB up to which .of is the fastest ---- */

static void switch_over(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static double last[TRN_ALGORITHM_COUNT];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    (void)o;
    if (last[TRN_KANGARING] == 0)
        for (double bytes = 0.5e6; bytes < 100e6; bytes *= 1.02)
            last[ask((trn_collective_args){
                         .net = &net, .op = TRN_ALL_REDUCE, .bytes = (int64_t)bytes, .ranks_per_chip = 4 })
                     .algorithm] = bytes / 1e6;
    a->got = last[v->of];
}

/* ---- latencies: .of the system, from chip 0 to chip .at, nothing to carry ---- */

static void hop(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of((trn_system)v->of);
    (void)o;
    a->got =
        1e6 * ask((trn_collective_args){ .net = &net, .op = TRN_SEND_RECV, .target = v->at, .bytes = 0 }).latency_s;
}

/* ---- nccom-test ---- */

typedef struct printed {
    const char *id, *what;
    trn_collective op;
    int ranks;
    double bytes, us; /* us 0: algbw itself is printed */
    double algbw, busbw, last_digit;
    bool gib; /* what the page calls GB/s is GiB/s here, GB/s there */
} printed;

static const printed prints[] = {
    { "32MiB.r2", "all-reduce, 2 ranks, 33,554,432 B in 768 us (GiB)", TRN_ALL_REDUCE, 2, 33554432, 768, 40.69, 40.69,
      0.01, true },
    { "1MiB.r2", "all-reduce, 2 ranks, 1,048,576 B in 68 us (GiB)", TRN_ALL_REDUCE, 2, 1048576, 68, 14.36, 14.36, 0.01,
      true },
    { "1GiB.r64", "all-reduce, 64 ranks, 1,073,741,824 B in 41,806 us (GiB)", TRN_ALL_REDUCE, 64, 1073741824, 41806,
      23.92, 47.09, 0.01, true },
    { "512MiB.r16", "all-reduce, 16 ranks, 536,870,912 B in 9,689.51 us (GB)", TRN_ALL_REDUCE, 16, 536870912, 9689.51,
      55.41, 103.89, 0.01, false },
    { "512KiB.r32", "JSON: all-gather, 32 ranks, 524,288 B", TRN_ALL_GATHER, 32, 524288, 0, 22.688776793562784,
      21.97975251876395, 1e-13, false },
};
enum { PRINTS = sizeof prints / sizeof prints[0] };

/* Bus bandwidth over algorithm bandwidth, as the library has it. */
static double bus_factor(trn_collective op, int ranks)
{
    const trn_topology net = trn_topology_ring(ranks, 1e9, 1e-6);
    const trn_cost c = ask((trn_collective_args){ .net = &net, .op = op, .bytes = 1 << 20 });
    return c.bus_bytes_per_s / c.bytes_per_s;
}

/* .of: 0 algbw, 1 busbw */
static void bandwidth(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const printed *p = &prints[v->at];
    const double algbw = p->us > 0 ? p->bytes / (1e-6 * p->us) / (p->gib ? 0x1p30 : 1e9) : p->algbw;
    (void)o;
    a->got = v->of ? algbw * bus_factor(p->op, p->ranks) : algbw;
}

static void factor(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = bus_factor((trn_collective)v->of, v->at);
}

/* The trap: the page says that its GB/s are GiB/s. 524,288 B in 23.11 us prints 22.69, which is GB/s. */
static void trap(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = 524288 / 23.11e-6 / (v->of ? 0x1p30 : 1e9);
}

static void add_prints(cf_list *list)
{
    for (int i = 0; i < PRINTS; i++)
        for (int bus = 0; bus < 2; bus++) {
            const printed *p = &prints[i];
            if (!bus && p->us == 0) continue;
            const double figure = bus ? p->busbw : p->algbw;
            /* what is printed of algbw is a rounding of its own: the factor widens it */
            const double slack = 0.5 * p->last_digit * 1.001;
            cf_add(list, (cf_vector){ .id = cf_id(list, "collective.nccom.%s.%s.%s", trn_collective_name(p->op), p->id,
                                                  bus ? "busbw" : "algbw"),
                                      .what = cf_text(list, "%s: %s", p->what, bus ? "busbw" : "algbw"),
                                      .unit = p->gib ? "GiB/s" : "GB/s",
                                      CF_ABOUT(figure, slack),
                                      .kind = CF_DOCUMENTED,
                                      .source = "Neuron, nccom-test: sample outputs",
                                      .test = bandwidth,
                                      .at = i,
                                      .of = bus });
        }
}

/* ---- the vectors ---- */

static const char intranode[] = "Neuron, intranode-collective-comm.rst",
                  textbook[] = "textbook (N ranks, one link each way)",
                  nccom[] = "Neuron, nccom-test; NCCL: 2(N-1)/N, (N-1)/N, 1",
                  fitted[] = "from the documented switch-overs, hop times and link rates";

static const cf_vector vectors[] = {
    { .id = "collective.bound.racks.gen1",
      .what = "all-to-all of 1 GiB between two racks at 128 GB/s a chip, 64 chips",
      .unit = "ms",
      CF_ABOUT(4.194304, 1e-9),
      .kind = CF_CALCULATED,
      .source = "half the bytes cross",
      .test = bound_between_racks,
      .of = TRN_TRN3_GEN1_ULTRASERVER },
    { .id = "collective.bound.racks.gen2",
      .what = "the same, 144 chips",
      .unit = "ms",
      CF_ABOUT(4.194304, 1e-9),
      .kind = CF_CALCULATED,
      .source = "half the bytes cross",
      .test = bound_between_racks,
      .of = TRN_TRN3_GEN2_ULTRASERVER },
    { .id = "collective.steps.ring.16",
      .what = "steps of a ring of 16, all-gather",
      CF_ABOUT(15, 1e-9),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = steps,
      .of = TRN_RING,
      .at = 16 },
    { .id = "collective.steps.bidirectional.16",
      .what = "both ways",
      CF_ABOUT(8, 1e-9),
      .kind = CF_CALCULATED,
      .source = textbook,
      .test = steps,
      .of = TRN_BIDIRECTIONAL_RING,
      .at = 16 },
    { .id = "collective.steps.kangaring.16",
      .what = "KangaRing on 16 chips, 32 ranks: N/2 stops",
      CF_ABOUT(15, 1e-9),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = steps,
      .of = TRN_KANGARING,
      .at = 16 },
    { .id = "collective.steps.doubling.16",
      .what = "recursive doubling of 16",
      CF_ABOUT(4, 1e-9),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = steps,
      .of = TRN_RECURSIVE_DOUBLING,
      .at = 16 },
    { .id = "collective.steps.switch.72",
      .what = "through a switch of 72",
      CF_ABOUT(1, 1e-9),
      .kind = CF_CALCULATED,
      .source = textbook,
      .test = steps,
      .of = TRN_SWITCH_DIRECT,
      .at = 72 },
    { .id = "collective.steps.trn2.kangaring",
      .what = "all-reduce of a whole trn2.48xlarge, KangaRing",
      CF_EXACTLY(62),
      .kind = CF_CALCULATED,
      .source = fitted,
      .test = steps_of_instance,
      .of = TRN_KANGARING },
    { .id = "collective.steps.trn2.doubling",
      .what = "recursive doubling: 4 axes and the chip, both phases",
      CF_EXACTLY(10),
      .kind = CF_CALCULATED,
      .source = fitted,
      .test = steps_of_instance,
      .of = TRN_RECURSIVE_DOUBLING },
    { .id = "collective.steps.trn2.mesh",
      .what = "mesh: two steps, both phases",
      CF_EXACTLY(4),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = steps_of_instance,
      .of = TRN_MESH },
    { .id = "collective.hbm.ring.gather",
      .what = "HBM touches for a chunk and two ranks: ring, all-gather",
      CF_ABOUT(4, 0.04),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = touches },
    { .id = "collective.hbm.ring.reduce",
      .what = "ring, reduce-scatter",
      CF_ABOUT(6, 0.06),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = touches,
      .at = 1 },
    { .id = "collective.hbm.kangaring.gather",
      .what = "KangaRing, all-gather: a quarter fewer",
      CF_ABOUT(3, 0.03),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = touches,
      .of = 1 },
    { .id = "collective.hbm.kangaring.reduce",
      .what = "KangaRing, reduce-scatter: a third fewer",
      CF_ABOUT(4, 0.04),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = touches,
      .of = 1,
      .at = 1 },
    { .id = "collective.switch_over.mesh",
      .what = "mesh is the fastest all-reduce of 64 ranks up to",
      .unit = "MB",
      CF_ABOUT(1, 0.1),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = switch_over,
      .of = TRN_MESH },
    { .id = "collective.switch_over.doubling",
      .what = "then recursive doubling, up to; above it KangaRing",
      .unit = "MB",
      CF_ABOUT(56, 5.6),
      .kind = CF_DOCUMENTED,
      .source = intranode,
      .test = switch_over,
      .of = TRN_RECURSIVE_DOUBLING },
    { .id = "collective.hop.trn2",
      .what = "a step to a neighbour in a trn2.48xlarge",
      .unit = "us",
      CF_WITHIN(1.5, 1, 2),
      .kind = CF_DOCUMENTED,
      .source = "intranode-collective-comm.rst: 1 to 2 us",
      .test = hop,
      .of = TRN_TRN2_48XLARGE,
      .at = 1 },
    { .id = "collective.hop.efa",
      .what = "between UltraServers over EFA, HBM to HBM",
      .unit = "us",
      CF_ABOUT(15, 0.5),
      .kind = CF_MEASURED,
      .source = "internode-collective-comm.rst: an RDMA write test",
      .test = hop,
      .of = TRN_PROJECT_RAINIER,
      .at = 64 },
    { .id = "collective.busbw.all_reduce.16",
      .what = "bus over algorithm bandwidth, all-reduce of 16",
      CF_ABOUT(30.0 / 16, 1e-12),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_ALL_REDUCE,
      .at = 16 },
    { .id = "collective.busbw.all_gather.16",
      .what = "all-gather of 16",
      CF_ABOUT(15.0 / 16, 1e-12),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_ALL_GATHER,
      .at = 16 },
    { .id = "collective.busbw.reduce_scatter.16",
      .what = "reduce-scatter of 16",
      CF_ABOUT(15.0 / 16, 1e-12),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_REDUCE_SCATTER,
      .at = 16 },
    { .id = "collective.busbw.all_to_all.16",
      .what = "all-to-all of 16",
      CF_ABOUT(15.0 / 16, 1e-12),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_ALL_TO_ALL,
      .at = 16 },
    { .id = "collective.busbw.permute.16",
      .what = "permute of 16",
      CF_EXACTLY(1),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_PERMUTE,
      .at = 16 },
    { .id = "collective.busbw.send_recv.16",
      .what = "send-recv",
      CF_EXACTLY(1),
      .kind = CF_DOCUMENTED,
      .source = nccom,
      .test = factor,
      .of = TRN_SEND_RECV,
      .at = 16 },
    { .id = "collective.nccom.trap",
      .what = "524,288 B in 23.11 us: the newer samples print GB/s",
      .unit = "GB/s",
      CF_ABOUT(22.69, 0.005),
      .kind = CF_DOCUMENTED,
      .source = "Neuron, nccom-test: sample outputs",
      .test = trap },
    { .id = "collective.nccom.trap.page",
      .what = "the same as GiB/s, which the page says its GB/s are",
      .unit = "GiB/s",
      CF_ABOUT(22.69, 0.005),
      .kind = CF_DOCUMENTED,
      .source = "Neuron, nccom-test: units",
      .test = trap,
      .of = 1,
      CF_BUT(21.13, 1e-3, "the page's sentence is true of its older samples only; the newer ones are decimal") },
};

void cf_fill_collectives(cf_list *list)
{
    add_bounds(list);
    add_prints(list);
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
    cf_fill_gradients(list);
}

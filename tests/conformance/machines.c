/* machines.c - chips and systems: totals as their pages print them; distances, links and cuts of their networks.
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "conformance.h"
#include "published/machines.h"
#include "published/wiring.h"

/* ---- chips: .at the row, .of the field ---- */

enum { CHIP_FIELDS = 12 };
typedef struct figure {
    const char *name, *unit;
    double published, unit_of_last_digit, ours; /* published < 0, or not a number: not printed */
} figure;

static void chip_figures(int i, figure f[CHIP_FIELDS])
{
    const trn_chip_spec *chip = trn_chip_spec_of(published_chips[i].generation);
    const trn_core_spec *core = chip->core;
    const double engines = chip->cores * core->dma_engines;
    const figure all[CHIP_FIELDS] = {
        { "cores", "", published_chips[i].cores, 0, chip->cores },
        { "dma_engines", "", published_chips[i].dma_engines, 0, engines },
        { "cc_cores", "", published_chips[i].cc_cores, 0, chip->cc_cores },
        { "sbuf", "MiB", published_chips[i].sbuf_mib, 0, chip->cores * trn_core_sbuf_bytes(core) / 1048576 },
        { "hbm", "GiB", published_chips[i].hbm_gib, 0, chip->hbm_bytes / 1073741824 },
        { "hbm_rate", "TB/s", published_chips[i].hbm_tb_per_s, 0, chip->hbm_bytes_per_s / 1e12 },
        { "dma_rate", "TB/s", published_chips[i].dma_tb_per_s, 0.01,
          engines * core->dma_engine_peak_bytes_per_s / 1e12 },
        { "float32", "TFLOPS", published_chips[i].f32, 0, chip->f32_flops_per_s / 1e12 },
        { "bfloat16", "TFLOPS", published_chips[i].bf16, 0, chip->bf16_flops_per_s / 1e12 },
        { "float8", "TFLOPS", fmax(published_chips[i].f8, published_chips[i].mx), 0,
          fmax(chip->f8_flops_per_s, chip->mx_flops_per_s) / 1e12 },
        { "int8", "TOPS", published_chips[i].int8, 0, chip->int8_ops_per_s / 1e12 },
        { "sparse", "TFLOPS", published_chips[i].sparse, 0, chip->sparse_bf16_flops_per_s / 1e12 },
    };
    memcpy(f, all, sizeof all);
}

static void chip(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    figure f[CHIP_FIELDS];
    (void)o;
    chip_figures(v->at, f);
    a->got = f[v->of].ours;
}

/* ---- systems ---- */

enum { SYSTEM_FIELDS = 13 };

static void system_figures(int i, figure f[SYSTEM_FIELDS])
{
    const trn_system_spec *spec = trn_system_spec_of(published_systems[i].system);
    const trn_spec_totals t = trn_spec_totals_of(spec);
#define AS_PRINTED(p) published_systems[i].p.value, published_systems[i].p.unit
    const figure all[SYSTEM_FIELDS] = {
        { "chips", "", published_systems[i].chips, 0, t.chips },
        { "cores", "", published_systems[i].cores, 0, t.cores },
        { "logical_cores", "", published_systems[i].ranks, 0, t.logical_cores },
        { "bfloat16", "PFLOPS", AS_PRINTED(bf16_pf), t.bf16_flops_per_s / 1e15 },
        { "float8", "PFLOPS", AS_PRINTED(f8_pf), fmax(t.f8_flops_per_s, t.mx_flops_per_s) / 1e15 },
        { "float32", "PFLOPS", AS_PRINTED(f32_pf), t.f32_flops_per_s / 1e15 },
        { "sparse", "PFLOPS", AS_PRINTED(sparse_pf), t.sparse_bf16_flops_per_s / 1e15 },
        { "hbm", "GiB", AS_PRINTED(hbm_gib), t.hbm_bytes / 1073741824 },
        { "hbm_rate", "TB/s", AS_PRINTED(hbm_tb_per_s), t.hbm_bytes_per_s / 1e12 },
        { "efa", "Gbit/s", AS_PRINTED(efa_gbit_per_s), t.efa_bits_per_s / 1e9 },
        { "vcpus", "", AS_PRINTED(vcpus), t.vcpus },
        { "host", "GiB", AS_PRINTED(host_gib), t.host_bytes / 1073741824 },
        { "neuronlink_both_ways", "GB/s", published_both_ways_gb_per_s[i], 0, 2 * t.neuronlink_chip_bytes_per_s / 1e9 },
    };
#undef AS_PRINTED
    memcpy(f, all, sizeof all);
}

static void system_(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    figure f[SYSTEM_FIELDS];
    (void)o;
    system_figures(v->at, f);
    a->got = f[v->of].ours;
}

/* Half a unit of the last printed digit, or the last bit of a double. */
static void add_figure(cf_list *list, const char *who, const figure *f, const char *source, cf_vector v)
{
    if (!(f->published >= 0)) return;
    const double slack = fmax(f->unit_of_last_digit / 2, 1e-9 * f->published);
    v.id = cf_id(list, "machine.%s.%s", who, f->name);
    v.what = cf_text(list, "%s: %s", who, f->name);
    v.unit = f->unit;
    v.expected = f->published;
    v.low = f->published - (f->unit_of_last_digit > 0 ? slack * 1.000001 : slack);
    v.high = f->published + (f->unit_of_last_digit > 0 ? slack * 1.000001 : slack);
    v.kind = CF_DOCUMENTED;
    v.source = source;
    cf_add(list, v);
}

/* ---- wiring ---- */

static void wiring(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const published_wiring *w = &published_wirings[v->at];
    const trn_topology net = trn_topology_preset(w->system, w->preset);
    const struct {
        const char *what;
        double ours, published;
    } pair[] = {
        { "chips", net.chips, w->chips },
        { "links", (double)trn_topology_link_count(&net), w->links },
        { "diameter", trn_topology_diameter(&net), w->diameter },
        { "mean distance", trn_topology_mean_hops(&net), w->mean },
        { "bytes/s through the middle", trn_topology_bisection_bytes_per_s(&net), 1e9 * w->bisection_gb },
    };
    (void)o;
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++)
        cf_count(a, fabs(pair[i].ours - pair[i].published) <= 1e-12 * pair[i].published, "%s: %.17g, published %.17g",
                 pair[i].what, pair[i].ours, pair[i].published);
}

static void neighbours(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of((trn_system)v->of);
    (void)o;
    for (int x = 0; x < 16; x++)
        for (int y = 0; y < 16; y++)
            cf_count(a, (trn_topology_hops(&net, x, y) == 1) == published_neighbour(x, y), "chips %d and %d", x, y);
}

/* How many chips are .at links from chip 0. */
static void distance(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of((trn_system)v->of);
    (void)o;
    for (int x = 0; x < net.chips; x++) a->got += trn_topology_hops(&net, 0, x) == v->at;
}

static void hypercube(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    (void)v, (void)o;
    for (int x = 0; x < 16; x++)
        for (int y = 0; y < 16; y++)
            cf_count(a, trn_topology_hops(&net, x, y) == published_hypercube_hops(x, y), "chips %d and %d", x, y);
}

/* Rings through all chips that share no link, each used both ways: the channels of a whole-node group. */
static void channels(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    int order[8 * 16];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    (void)v, (void)o;
    a->got = 2 * trn_topology_cycles(&net, order, 8);
}

static const char driver[] = "aws-neuron-driver, neighbour tables v2 and v3", torus[] = "4x4 torus with wraparound",
                  gen2[] = "SemiAnalysis (2025) and the page of Trn3 Gen2: one plane";

static const cf_vector vectors[] = {
    { .id = "wiring.neighbours.trn1",
      .what = "who is whose neighbour in a trn1.32xlarge",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = driver,
      .test = neighbours,
      .of = TRN_TRN1_32XLARGE },
    { .id = "wiring.neighbours.trn2",
      .what = "who is whose neighbour in a trn2.48xlarge",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = driver,
      .test = neighbours,
      .of = TRN_TRN2_48XLARGE },
    { .id = "wiring.hypercube",
      .what = "the torus is the 4-dimensional hypercube, all distances",
      CF_NONE_WRONG,
      .kind = CF_DOCUMENTED,
      .source = "the page of Trn1 says both",
      .test = hypercube },
    { .id = "wiring.channels",
      .what = "channels of a whole trn2.48xlarge: rings without common links, both ways",
      CF_EXACTLY(4),
      .kind = CF_DOCUMENTED,
      .source = "Neuron runtime, collectives",
      .test = channels },
    { .id = "wiring.distance.trn2.1",
      .what = "chips at one link",
      CF_EXACTLY(4),
      .kind = CF_CALCULATED,
      .source = torus,
      .test = distance,
      .of = TRN_TRN2_48XLARGE,
      .at = 1 },
    { .id = "wiring.distance.trn2.2",
      .what = "chips at two links",
      CF_EXACTLY(6),
      .kind = CF_CALCULATED,
      .source = torus,
      .test = distance,
      .of = TRN_TRN2_48XLARGE,
      .at = 2 },
    { .id = "wiring.distance.trn3_gen2.1",
      .what = "chips at one link: the partner in the other rack",
      CF_EXACTLY(1),
      .kind = CF_DOCUMENTED,
      .source = gen2,
      .test = distance,
      .of = TRN_TRN3_GEN2_ULTRASERVER,
      .at = 1 },
    { .id = "wiring.distance.trn3_gen2.2",
      .what = "chips at two links",
      CF_EXACTLY(71),
      .kind = CF_CALCULATED,
      .source = gen2,
      .test = distance,
      .of = TRN_TRN3_GEN2_ULTRASERVER,
      .at = 2 },
    { .id = "wiring.distance.trn3_gen2.3",
      .what = "chips at three links",
      CF_EXACTLY(71),
      .kind = CF_CALCULATED,
      .source = gen2,
      .test = distance,
      .of = TRN_TRN3_GEN2_ULTRASERVER,
      .at = 3 },
};

void cf_fill_machines(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_CHIPS; i++) {
        figure f[CHIP_FIELDS];
        chip_figures(i, f);
        for (int k = 0; k < CHIP_FIELDS; k++)
            if (f[k].published > 0)
                add_figure(list, trn_generation_name(published_chips[i].generation), &f[k],
                           "chip pages and architecture guides", (cf_vector){ .test = chip, .at = i, .of = k });
    }
    for (int i = 0; i < PUBLISHED_SYSTEMS; i++) {
        figure f[SYSTEM_FIELDS];
        system_figures(i, f);
        for (int k = 0; k < SYSTEM_FIELDS; k++)
            add_figure(list, trn_system_name(published_systems[i].system), &f[k],
                       i < TRN_TRN1_ULTRACLUSTER ? "architecture pages of Trn1, Trn2, Trn3; instance types"
                                                 : "announcements; chips times the chip's page",
                       (cf_vector){ .test = system_, .at = i, .of = k });
    }
    for (int i = 0; i < PUBLISHED_WIRINGS; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "wiring.%s.%s", trn_system_name(published_wirings[i].system),
                                              published_wirings[i].preset),
                                  .what = "chips, links, diameter, mean distance, cut",
                                  CF_NONE_WRONG,
                                  .kind = CF_DOCUMENTED,
                                  .source = "architecture pages; driver; SemiAnalysis",
                                  .test = wiring,
                                  .at = i });
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
}

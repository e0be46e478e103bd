/* network/topology_systems.h - the networks of all systems and of presets, and custom ones from levels or wires.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_TOPOLOGY_SYSTEMS_H
#define TRNI_NETWORK_TOPOLOGY_SYSTEMS_H

#include "topology_graph.h"

/* ---- custom networks ---- */

/* Levels from the innermost, none of them a graph (trn_topology_wired makes one, or a file). Nothing limits their chips
 * but the links: no DMA start, no limit of HBM or DMA, one rank each. When the levels make no network, chips is 0 and
 * trn_topology_check() says why. Names are not copied. */
TRN_API trn_topology trn_topology_hierarchy(const char *name, int levels, const trn_level *level);

/* Rates are one way: of one link, or of the one port of each chip. */
TRN_API trn_topology trn_topology_ring(int chips, double bytes_per_s, double latency_s);

/* A link between every two chips, each way. */
TRN_API trn_topology trn_topology_fully_connected(int chips, double bytes_per_s, double latency_s);

/* latency_s: from port to port. */
TRN_API trn_topology trn_topology_switch(int chips, double bytes_per_s, double latency_s);

/* A graph: wire[] joins chips (of level 0), both ways unless it says one_way. When the wires make no graph, chips is 0
 * and trn_topology_check() says why. */
TRN_API trn_topology trn_topology_wired(const char *name, int chips, int wires, const trn_wire *wire);

/* size[0] is the innermost dimension. */
TRN_API trn_topology trn_topology_torus(int dims, const int *size, double bytes_per_s, double latency_s);

/* ---- systems ---- */

/* NULL or "" is "sa". For a system or preset that does not exist, chips is 0. */
TRN_API trn_topology trn_topology_preset(trn_system system, const char *preset);

/* Trainium3: preset "sa". chips is 0 for a system that does not exist. */
TRN_API trn_topology trn_topology_of(trn_system system);

/* How many cycles this torus has that are known here; the first `room` of them are written, chips entries each,
 * beginning at chip 0. Neighbours in the order, and the last and the first, are joined by a link, which no other of
 * the cycles uses. 0 for anything that is no torus, and for two chips, whose one link is no cycle. */
TRN_API int trn_topology_cycles(const trn_topology *net, int *order, int capacity);

#if TRNI_BODIES

#include "topology_cycles.h"

TRNI_FN trn_source trni_topology_source(const char *field, trn_provenance known, const char *where)
{
    trn_source s;
    s.field = field;
    s.known = known;
    s.where = where;
    return s;
}

TRNI_FN trn_level trni_topology_level(const char *name, trn_wiring wiring, int size, double bytes_per_s,
                                      double latency_s)
{
    trn_level l;
    memset(&l, 0, sizeof l);
    l.name = name;
    l.wiring = wiring;
    l.size = size;
    l.planes = 1;
    l.kind = TRN_LINK_PLAIN;
    l.bytes_per_s = bytes_per_s;
    l.latency_s = latency_s;
    l.rate = trni_topology_source("bytes_per_s", TRN_ASSUMED, "given by the caller");
    l.latency = trni_topology_source("latency_s", TRN_ASSUMED, "given by the caller");
    return l;
}

/* ---- custom networks ---- */

/* (A function of its own: inlined, it leaves a second network on its caller's stack.) */
TRNI_DRIVER trn_topology trni_topology_build(const char *name, int levels, const trn_level *level)
{
    trn_topology net;
    int64_t chips = 1;
    memset(&net, 0, sizeof net);
    trni_copy_text(net.name, sizeof net.name, name ? name : "custom");
    net.system = TRN_SYSTEM_COUNT;
    net.levels = level ? levels : 0;
    net.reduce_pass = 1;
    net.ranks_per_chip = 1;
    net.start = trni_topology_source("start_s", TRN_ASSUMED, "a custom network: none");
    net.local = trni_topology_source("local_latency_s", TRN_ASSUMED, "a custom network: the innermost latency_s");
    net.hbm = trni_topology_source("hbm_bytes_per_s", TRN_ASSUMED, "a custom network: no limit");
    net.dma = trni_topology_source("dma_bytes_per_s", TRN_ASSUMED, "a custom network: no limit");
    net.reduce = trni_topology_source("reduce_pass", TRN_ASSUMED, "a custom network: as Trainium2");
    net.ranks = trni_topology_source("ranks_per_chip", TRN_ASSUMED, "a custom network: one");
    if (net.levels < 1 || net.levels > TRN_MAX_LEVELS) return net;
    for (int l = 0; l < net.levels; l++) {
        net.level[l] = level[l];
        if (!level[l].name && !level[l].label[0]) net.level[l].name = "level";
        if (!level[l].rate.where)
            net.level[l].rate = trni_topology_source("bytes_per_s", TRN_ASSUMED, "given by the caller");
        if (!level[l].latency.where)
            net.level[l].latency = trni_topology_source("latency_s", TRN_ASSUMED, "given by the caller");
        chips = level[l].size < 1 || chips > TRNI_MAX_CHIPS ? 0 : chips * level[l].size;
    }
    net.local_latency_s = net.level[0].latency_s;
    net.chips = chips > TRNI_MAX_CHIPS ? 0 : (int)chips;
    if (trn_topology_check(&net, NULL) != TRN_OK) net.chips = 0;
    return net;
}

TRN_API trn_topology trn_topology_hierarchy(const char *name, int levels, const trn_level *level)
{
    TRNI_FLOATS;
    return trni_topology_build(name, levels, level);
}

TRNI_FN trn_topology trni_topology_one_level(const char *name, trn_wiring wiring, int chips, double bytes_per_s,
                                             double latency_s)
{
    const trn_level level = trni_topology_level("x", wiring, chips, bytes_per_s, latency_s);
    return trni_topology_build(name, 1, &level);
}

TRN_API trn_topology trn_topology_ring(int chips, double bytes_per_s, double latency_s)
{
    return trni_topology_one_level("ring", TRN_WIRING_RING, chips, bytes_per_s, latency_s);
}

TRN_API trn_topology trn_topology_fully_connected(int chips, double bytes_per_s, double latency_s)
{
    return trni_topology_one_level("fully connected", TRN_WIRING_FULL, chips, bytes_per_s, latency_s);
}

TRN_API trn_topology trn_topology_switch(int chips, double bytes_per_s, double latency_s)
{
    return trni_topology_one_level("switch", TRN_WIRING_SWITCH, chips, bytes_per_s, latency_s);
}

TRN_API trn_topology trn_topology_wired(const char *name, int chips, int wires, const trn_wire *wire)
{
    TRNI_FLOATS;
    const trn_level level = trni_topology_level("x", TRN_WIRING_GRAPH, chips, 0, 0);
    trn_topology net = trn_topology_hierarchy(name ? name : "graph", 1, &level);
    net.wires = wire ? wires : 0;
    if (net.wires > 0 && net.wires <= TRN_MAX_WIRES) memcpy(net.wire, wire, (size_t)net.wires * sizeof *wire);
    net.chips = chips > 0 && chips <= TRN_MAX_GRAPH ? chips : 0;
    if (trn_topology_check(&net, NULL) != TRN_OK) net.chips = 0;
    return net;
}

TRN_API trn_topology trn_topology_torus(int dims, const int *size, double bytes_per_s, double latency_s)
{
    static const char *const axis[TRN_MAX_LEVELS] = { "x", "y", "z", "w", "v", "u", "t", "s" };
    trn_level level[TRN_MAX_LEVELS];
    memset(level, 0, sizeof level);
    for (int i = 0; size && dims <= TRN_MAX_LEVELS && i < dims; i++)
        level[i] = trni_topology_level(axis[i], TRN_WIRING_RING, size[i], bytes_per_s, latency_s);
    return trn_topology_hierarchy("torus", dims, size && dims > 0 ? level : NULL);
}

/* ---- times ---- */

#define TRNI_INTRANODE "Neuron SDK, explore/intranode-collective-comm.rst"
#define TRNI_INTERNODE "Neuron SDK, explore/internode-collective-comm.rst"

/* The DMA start: what one step to a neighbour takes, from semaphore to semaphore, less the latency of the link. */
typedef struct trni_link_step {
    double start_s;
    const char *where;
} trni_link_step;

#define TRNI_LINK_S 0.1e-6    /* of one NeuronLink, or inside a chip */
#define TRNI_SWITCH_S 0.25e-6 /* up, through, down: 0.15 us more than a link */
#define TRNI_EFA_STEP_S 15e-6

TRNI_FN trni_link_step trni_link_step_of(trn_generation generation)
{
    static const trni_link_step row[] = {
        { 1.9e-6, "a step of 2.0 us less 0.1 us for the link: the upper end of Trainium2's 1 to 2 us a hop" },
        { 1.4e-6, "a step of 1.5 us less 0.1 us for the link: the middle of 1 to 2 us a hop (" TRNI_INTRANODE ")" },
        { 0.9e-6, "a step of 1.0 us less 0.1 us for the link: the lower end of Trainium2's 1 to 2 us a hop" },
    };
    return row[trni_generation_index(generation)];
}

/* ---- systems ---- */

TRNI_FN void trni_topology_add(trn_topology *net, trn_level level) { net->level[net->levels++] = level; }

/* A level whose rate is a field of the server's row. */
TRNI_FN trn_level trni_system_level(const trn_system_spec *spec, const char *name, trn_wiring wiring, int size,
                                    const char *field)
{
    trn_spec_field rate;
    const bool joined = wiring == TRN_WIRING_SWITCH;
    trn_level l = trni_topology_level(name, wiring, size, 0, 0);
    if (!field) {
        l.rate = trni_topology_source("bytes_per_s", TRN_DERIVED, "no links of its own");
        l.latency = trni_topology_source("latency_s", TRN_DERIVED, "no links of its own");
        return l;
    }
    if (trn_spec_field_named(spec, "server", field, &rate)) {
        l.bytes_per_s = rate.value;
        l.rate = trni_topology_source("bytes_per_s", rate.known, rate.where);
    }
    l.kind = joined ? TRN_LINK_SWITCH : strstr(field, "peer") == field ? TRN_LINK_PEER : TRN_LINK_TORUS;
    l.latency_s = joined ? TRNI_SWITCH_S : TRNI_LINK_S;
    l.latency = trni_topology_source("latency_s", TRN_ASSUMED,
                                     joined ? "a link and 0.15 us for crossing a switch of PCIe's kind"
                                            : "no public number; small against the DMA start");
    return l;
}

/* EFA: one port per chip into a network that does not block. */
TRNI_FN trn_level trni_efa_level(const trn_system_spec *spec, int size, double start_s)
{
    trn_level l = trni_system_level(spec, "efa", TRN_WIRING_SWITCH, size, "efa_bits_per_s");
    l.kind = TRN_LINK_EFA;
    l.bytes_per_s = l.bytes_per_s / 8 / spec->server->chips;
    l.rate = trni_topology_source("bytes_per_s", TRN_DERIVED,
                                  "EFA of the server, shared by its chips (" TRNI_TRN1 ", trn2-arch.rst)");
    l.latency_s = TRNI_EFA_STEP_S - start_s;
    l.latency = trni_topology_source("latency_s", TRN_DERIVED,
                                     "15 us from HBM to HBM on trn2, less the DMA start (" TRNI_INTERNODE ")");
    return l;
}

TRNI_FN void trni_levels_torus(trn_topology *net, const trn_system_spec *spec)
{
    const int side = 4, servers = spec->servers_per_domain;
    if (spec->server->chips == 1) {
        trni_topology_add(net, trni_system_level(spec, "chip", TRN_WIRING_NONE, 1, NULL));
        return;
    }
    trni_topology_add(net, trni_system_level(spec, "x", TRN_WIRING_RING, side, "server_link_bytes_per_s"));
    trni_topology_add(
        net, trni_system_level(spec, "y", TRN_WIRING_RING, spec->server->chips / side, "server_link_bytes_per_s"));
    if (servers > 1)
        trni_topology_add(net, trni_system_level(spec, "z", TRN_WIRING_RING, servers, "peer_link_bytes_per_s"));
    if (spec->servers > servers) trni_topology_add(net, trni_efa_level(spec, spec->servers / servers, net->start_s));
}

TRNI_FN void trni_levels_racks(trn_topology *net, const trn_system_spec *spec, int planes)
{
    const int chips = spec->server->chips, tray = 2, racks = 2, servers = spec->servers / racks;
    if (net->system == TRN_TRN3_GEN1_ULTRASERVER) {
        trni_topology_add(net, trni_system_level(spec, "tray", TRN_WIRING_RING, tray, "server_link_bytes_per_s"));
        trni_topology_add(net, trni_system_level(spec, "slot", TRN_WIRING_NONE, chips / tray, NULL));
    } else {
        trni_topology_add(net, trni_system_level(spec, "chip", TRN_WIRING_SWITCH, chips, "server_link_bytes_per_s"));
    }
    trni_topology_add(net, trni_system_level(spec, "server", TRN_WIRING_SWITCH, servers, "rack_link_bytes_per_s"));
    net->level[net->levels - 1].planes = planes;
    trni_topology_add(net, trni_system_level(spec, "rack", TRN_WIRING_RING, racks, "peer_link_bytes_per_s"));
}

/* What the vendor's documentation says instead of a field of the tables; false when it does not. */
TRNI_FN bool trni_documented_instead(trn_system system, const char *field, trn_spec_alternative *found)
{
    for (int i = 0; trn_spec_alternative_at(i, found); i++)
        if (found->system == system && found->known == TRN_DOCUMENTED && strcmp(found->chosen.field, field) == 0 &&
            (strcmp(found->chosen.level, "server") == 0 || strstr(found->where, "table")))
            return true;
    return false;
}

/* The vendor's rates: of each kind of link ("doc"), or half each of the total inside a rack ("spec"). Both stand in the
 * rows of Gen2, and are all there is for Gen1. */
TRNI_FN void trni_racks_as(trn_topology *net, bool doc)
{
    trn_spec_alternative other;
    for (int l = 0; l < net->levels; l++) {
        trn_level *at = &net->level[l];
        const bool rack = strcmp(at->name, "server") == 0;
        const char *field = rack ? "rack_link_bytes_per_s" : "server_link_bytes_per_s";
        if (at->wiring == TRN_WIRING_NONE || strcmp(at->name, "rack") == 0) continue;
        if (!trni_documented_instead(TRN_TRN3_GEN2_ULTRASERVER, doc ? field : "neuronlink_chip_bytes_per_s", &other))
            continue;
        at->bytes_per_s = doc ? other.value : other.value / TRNI_GIB * 1e9 / 2;
        at->rate = doc ? trni_topology_source("bytes_per_s", other.known, TRNI_TRN3 ", connectivity text")
                       : trni_topology_source("bytes_per_s", TRN_DERIVED,
                                              "half of 2,048 GiB/s both ways, GiB read as GB (" TRNI_TRN3 ", table)");
    }
}

TRNI_FN void trni_topology_chip(trn_topology *net, const trn_system_spec *spec)
{
    const trn_chip_spec *chip = spec->server->chip;
    const trn_core_spec *core = chip->core;
    const bool near_memory = core->generation == TRN_TRAINIUM3;
    const trni_link_step step = trni_link_step_of(core->generation);
    trn_spec_field hbm;
    trn_spec_field_named(spec, "chip", "hbm_bytes_per_s", &hbm);
    net->start_s = step.start_s;
    net->start = trni_topology_source("start_s", TRN_ASSUMED, step.where);
    net->local_latency_s = TRNI_LINK_S;
    net->local = trni_topology_source("local_latency_s", TRN_ASSUMED, "as one link to a neighbour");
    net->hbm_bytes_per_s = hbm.value;
    net->hbm = trni_topology_source("hbm_bytes_per_s", hbm.known, hbm.where);
    net->dma_bytes_per_s = (double)chip->cores * core->dma_engines * core->dma_engine_bytes_per_s;
    net->dma = trni_topology_source("dma_bytes_per_s", TRN_DERIVED,
                                    "cores x engines x what one moves in practice (" TRNI_DMA_REAL ")");
    net->reduce_pass = near_memory ? 0.5 : 1;
    net->reduce = near_memory
                      ? trni_topology_source("reduce_pass", TRN_DERIVED,
                                             "two sources at copy rate: near-memory accumulation into SBUF")
                      : trni_topology_source("reduce_pass", TRN_DERIVED,
                                             "two sources at half of copy rate (Neuron SDK, nki.isa dma_compute)");
    net->ranks_per_chip = chip->cores / chip->cores_per_logical_core;
    net->ranks = trni_topology_source("ranks_per_chip", TRN_DOCUMENTED, TRNI_LNC);
}

/* "sa", "doc" or "spec", then perhaps "/planes=" and a number. False for anything else. */
TRNI_FN bool trni_preset_parse(const char *preset, bool *doc, bool *spec, int *planes)
{
    static const char suffix[] = "/planes=";
    static const char *const name[] = { "sa", "doc", "spec" };
    const char *rest = strchr(preset, '/');
    const size_t length = rest ? (size_t)(rest - preset) : strlen(preset);
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strlen(name[i]) == length && strncmp(preset, name[i], length) == 0) found = i;
    *doc = found == 1;
    *spec = found == 2;
    *planes = 1;
    if (found < 0 || !rest) return found >= 0;
    if (strncmp(rest, suffix, sizeof suffix - 1) != 0) return false;
    rest += sizeof suffix - 1;
    if (rest[0] < '1' || rest[0] > '9' || rest[1]) return false;
    *planes = rest[0] - '0';
    return true;
}

TRN_API trn_topology trn_topology_preset(trn_system system, const char *preset)
{
    TRNI_FLOATS;
    const trn_system_spec *spec = trn_system_spec_of(system);
    trn_topology net = trn_topology_hierarchy(spec ? spec->name : "none", 0, NULL);
    bool doc, table;
    int planes;
    if (!preset || !*preset) preset = "sa";
    if (!spec || !trni_preset_parse(preset, &doc, &table, &planes)) return net;
    const bool racks = spec->server->rack_links > 0;
    if (racks ? planes > 4 || (planes > 1 && planes != 2 && system == TRN_TRN3_GEN1_ULTRASERVER) : planes > 1)
        return net;
    if (racks && strcmp(preset, "sa") != 0) snprintf(net.name, sizeof net.name, "%s %s", spec->name, preset);
    net.system = system;
    trni_topology_chip(&net, spec);
    if (racks)
        trni_levels_racks(&net, spec, planes);
    else
        trni_levels_torus(&net, spec);
    if (racks && (doc || table)) trni_racks_as(&net, doc);
    net.chips = trn_spec_chips(spec);
    if (trn_topology_check(&net, NULL) != TRN_OK) net.chips = 0;
    return net;
}

TRN_API trn_topology trn_topology_of(trn_system system) { return trn_topology_preset(system, NULL); }

TRN_API int trn_topology_cycles(const trn_topology *net, int *order, int capacity)
{
    const trni_torus torus = trni_torus_of(net);
    return trni_torus_cycles(&torus, order, capacity);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_SYSTEMS_H */

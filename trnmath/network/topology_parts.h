/* network/topology_parts.h - what a network is made of: levels of wires, listed links, faults.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology.h>
 *     int main(void) {
 *         const trn_topology net = { .levels = 1, .chips = 3, .ranks_per_chip = 1, .reduce_pass = 1, .wires = 2,
 *             .level = { { .name = "chip", .wiring = TRN_WIRING_GRAPH, .size = 3 } },
 *             .wire = { { .from = 0, .to = 1, .count = 2, .bytes_per_s = 25e9 }, // two links from 0 to 1, and back
 *                       { .from = 1, .to = 2, .bytes_per_s = 12.5e9 } } };
 *         return trn_level_name(&net.level[0])[0] == 'c' ? 0 : 1;
 *     }
 *
 * DOES: the structures of a network. A copy of a trn_topology is a network of its own: nothing in it points into it.
 * DOES NOT: check it, or number its links (network/topology_levels.h).
 *
 * KNOWN FROM: definitions.
 *
 * Wiring. RING: digit d is joined to d + 1 and d - 1 modulo the size, all other digits equal; of size 2 it is ONE link.
 * FULL: every digit to every other, the rest equal. SWITCH at level l joins all chips that agree in the digits above l,
 * so it spans the lower digits too; with p planes, chips whose innermost digits agree modulo p. NONE: the digit counts
 * chips that a switch further out joins. GRAPH: the digits are joined by the links that are listed, one by one: pairs
 * of digits, both ways or one way, each with its own rate, latency and number of parallel links; the rest equal. The
 * links must lead from every digit to every other. Parallel links are one link with the rate of all of them.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_PARTS_H
#define TRNI_NETWORK_TOPOLOGY_PARTS_H

#include "../machine/spec_physical.h"

/* What a level's links are made of, for what the runtime gets out of them (trn_calibration). */
typedef enum trn_link_kind {
    TRN_LINK_PLAIN = 0, /* of a custom network: all of their rate */
    TRN_LINK_TORUS,     /* NeuronLink between chips of a server, or of a tray */
    TRN_LINK_PEER,      /* between servers or racks: the third ring */
    TRN_LINK_SWITCH,    /* through a switch of NeuronLink */
    TRN_LINK_EFA        /* through network cards, between instances */
} trn_link_kind;

/* "plain", "torus", "peer", "switch", "efa"; "unknown" for anything else. */
TRN_API const char *trn_link_kind_name(trn_link_kind kind);

typedef enum trn_wiring {
    TRN_WIRING_NONE = 0,
    TRN_WIRING_RING,
    TRN_WIRING_FULL,
    TRN_WIRING_SWITCH,
    TRN_WIRING_GRAPH
} trn_wiring;

typedef enum trn_fault_kind { TRN_FAULT_CHIP = 0, TRN_FAULT_LINK } trn_fault_kind;

typedef struct trn_fault {
    trn_fault_kind kind;
    int64_t at;   /* a chip, or a directed link as trn_topology_link numbers them */
    double share; /* that is left of its rates; 0 = down */
} trn_fault;

enum {
    TRN_MAX_FAULTS = 32,
    TRN_MAX_LEVELS = 8,
    TRN_MAX_GRAPH = 64, /* digits of a level whose links are listed */
    TRN_MAX_WIRES = 96, /* lists of all such levels together; one that goes both ways counts once */
    TRN_MAX_PARALLEL = 1000,
    TRNI_MAX_CHIPS = 1 << 27 /* with a switch at every level, all have numbers below 2^31 */
};

typedef struct trn_level {
    const char *name;  /* "x", "y", "z", "tray", "server", "rack", "efa", ...: not copied */
    char label[24];    /* not empty: its name, in place of that one */
    trn_wiring wiring; /* how chips that differ in this digit are joined */
    int size;          /* values of the digit */
    int planes;        /* SWITCH: a chip's plane is its innermost digit modulo this; 0 = 1 */
    trn_link_kind kind;
    double bytes_per_s; /* one way, of one link, or of one port of the switch; GRAPH: no effect, wires have their own */
    double latency_s;   /* of one link; SWITCH: from port to port, half of it on the way up, half on the way down */
    bool half_duplex;   /* both directions of a link, or of a port, share bytes_per_s */
    trn_source rate, latency; /* how each is known */
} trn_level;

/* What joins two digits of a level that is wired as a GRAPH. */
typedef struct trn_wire {
    uint8_t level;
    uint8_t from, to;   /* digits of the level */
    bool one_way;       /* false: there and back */
    int count;          /* parallel links; 0 = 1 */
    double bytes_per_s; /* one way, of each of them */
    double latency_s;
} trn_wire;

typedef struct trn_topology {
    char name[64];
    int chips; /* product of the sizes; 0 = the builder's arguments made no topology */
    int levels;
    trn_level level[TRN_MAX_LEVELS]; /* innermost first */
    double start_s;                  /* DMA start, paid once per step of any transfer; 0 in custom topologies */
    double local_latency_s;          /* a step between cores of one chip, beyond start_s */
    double hbm_bytes_per_s;          /* of one chip; 0 = never a limit */
    double dma_bytes_per_s;          /* of one chip, in practice; 0 = never a limit */
    double reduce_pass;              /* DMA passes per source of a sum; a copy is one pass */
    int ranks_per_chip;              /* by default: logical cores */
    bool store_and_forward;          /* a message goes on when all of it has arrived; false: as it comes in */
    int faults;                      /* of which there are so many */
    trn_fault fault[TRN_MAX_FAULTS];
    int wires; /* of which there are so many, for levels that are wired as graphs */
    trn_wire wire[TRN_MAX_WIRES];
    trn_system system;                                /* TRN_SYSTEM_COUNT: a custom one */
    trn_source start, local, hbm, dma, reduce, ranks; /* how those numbers are known */
} trn_topology;

/* Its label, else its name, else "level". */
TRN_API const char *trn_level_name(const trn_level *level);

#if TRNI_BODIES

TRN_API const char *trn_link_kind_name(trn_link_kind kind)
{
    static const char *const name[] = { "plain", "torus", "peer", "switch", "efa" };
    return (unsigned)kind <= TRN_LINK_EFA ? name[(unsigned)kind] : "unknown";
}

TRN_API const char *trn_level_name(const trn_level *level)
{
    return level->label[0] ? level->label : level->name ? level->name : "level";
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_PARTS_H */

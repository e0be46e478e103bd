/* trn_topology.h - the networks of all systems, and custom ones: rings, tori, switches, hierarchies.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
 *         printf("%s: %d chips, %d links, diameter %d, %.0f GB/s from half to half\n", net.name, net.chips,
 *                (int)trn_topology_link_count(&net), trn_topology_diameter(&net),
 *                trn_topology_bisection_bytes_per_s(&net) / 1e9);
 *         const int size[] = { 8, 8 };
 *         trn_topology mine = trn_topology_torus(2, size, 100e9, 1e-6);
 *         return trn_topology_check(&mine, NULL) == TRN_OK && trn_topology_hops(&net, 0, 42) == 6 ? 0 : 1;
 *     }
 *
 * DOES: builds a trn_topology by value from the rows of trn_spec.h, with the source of every rate and time; wiring,
 *     links and routes are in network/topology_graph.h, Hamiltonian cycles in network/topology_cycles.h, both included
 *     here.
 * DOES NOT: hold a rate of its own: what trn_spec.h knows is taken from there. Times are here, for they are nowhere
 *     else, and all but two are assumed.
 *
 * CONTENTS
 *   network/topology_parts.h: what a network is made of: levels of wires, listed links, faults.
 *     trn_link_kind, trn_link_kind_name     what the links of a level are made of
 *     trn_fault_kind, trn_fault             a chip or a link that is down or slow
 *     trn_wiring, trn_level, trn_topology   a network: digits from the innermost to the outermost
 *     trn_wire                              a link, or several parallel ones, of a level whose links are listed
 *     trn_level_name                        what a level is called
 *   network/topology_levels.h: is it a network, its links by number, and what of them is broken.
 *     trn_topology_check                    is it one, and if not, why
 *     trn_topology_digit, trn_topology_stride   between numbers of chips and their digits
 *     trn_link, trn_topology_slots, trn_topology_link_count, trn_topology_link   every directed link by number
 *     trn_topology_link_between             the number of the link from one chip to another
 *     trn_topology_link_share, trn_topology_chip_share   what faults leave of a rate
 *   network/topology_graph.h: who is wired to whom: a chip is a number of mixed radix, each digit is wired in its own
 *                             way.
 *     trn_topology_route, trn_topology_hops, trn_topology_route_latency          from one chip to another
 *     trn_topology_diameter, trn_topology_mean_hops                              over all pairs
 *     trn_topology_injection_bytes_per_s    out of one chip
 *     trn_topology_cut_bytes_per_s, trn_topology_bisection_bytes_per_s           from one half to the other
 *   network/topology_systems.h: the networks of all systems and of presets, and custom ones from levels or wires.
 *     trn_topology_of            the network of a system
 *     trn_topology_preset        the same, as one of several sources has it
 *     trn_topology_ring, trn_topology_torus, trn_topology_switch, trn_topology_fully_connected   one kind of wire
 *     trn_topology_wired         any graph, link by link
 *     trn_topology_hierarchy     any levels
 *     trn_topology_cycles        rings through all chips of a torus that share no link
 *   network/topology_faults.h: chips and links that are down or slow, as people write them.
 *     trn_topology_down          a chip or a link that does not work
 *     trn_topology_slow          one that works at a share of its rate
 *     trn_topology_fault_text    a fault in the same words
 *   network/topology_file.h: a network as a small text file: levels of wires, what the chip adds, what is broken.
 *     trn_topology_load    text -> network
 *     trn_topology_save    network -> text
 *   network/topology_svg.h: a network as a picture: chips, switches, every link, and what each kind of link is.
 *     trn_topology_svg_args, trn_topology_svg   the picture, through the caller's function
 *
 * KNOWN FROM: the Neuron driver (tori, the ring of four servers); trn3-arch.rst and SemiAnalysis on Trainium3 (racks);
 *     explore/intranode- and internode-collective-comm.rst of the Neuron SDK (a hop of 1 to 2 us, 15 us over EFA).
 *
 * Numbers. Trainium1 and 2: chip = 4 row + column, x is the column; UltraServer: 16 server + chip. Trainium3 Gen1: 16
 * server + chip, servers 0 and 1 in one rack, 2 and 3 in the other; chips 2 i and 2 i + 1 share a tray. Gen2: 4 server
 * + chip, 18 servers to a rack.
 *
 * Presets of Trainium3, whose sources disagree (GB/s one way: tray or server, rack, the chip in the other rack):
 *     sa     512, 512, 128   lanes that SemiAnalysis counted; the default
 *     doc    256, 320, 128   the vendor's text on connectivity
 *     spec   512, 512, 128   half each of the 1,024 (2,048 both ways, GiB read as GB) that the vendor's table gives for
 *                            the links inside a rack: the rates of sa by another way
 * and, with a switch of several planes as in the first racks: "sa/planes=2" (Gen1, Gen2), "sa/planes=4" (Gen2), and so
 * for the others. All other systems have one set of links, which every preset gives.
 */
#ifndef TRN_TOPOLOGY_H
#define TRN_TOPOLOGY_H

#include "base/words_begin.h"

#include "network/topology_parts.h"
#include "network/topology_levels.h"
#include "network/topology_graph.h"
#include "network/topology_systems.h"
#include "network/topology_faults.h"
#include "network/topology_file.h"
#include "network/topology_svg.h"

#include "base/words_end.h"

#endif /* TRN_TOPOLOGY_H */

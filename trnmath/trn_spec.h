/* trn_spec.h - every chip, server and system as data: one row each, and the source of every number.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_spec.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_system_spec *spec = trn_system_spec_of(trn_system_from_name("trn2-ultraserver"));
 *         printf("%d chips, %.0f TFLOPS in BF16\n", trn_spec_chips(spec), trn_spec_tflops(spec, TRN_BF16, false));
 *         trn_spec_field field;
 *         for (int i = 0; trn_spec_field_at(spec, i, &field); i++)
 *             printf("%-6s %-28s %14.6g %-14s %s: %s\n", field.level, field.field, field.value, field.unit,
 *                    trn_provenance_text(field.known), field.where);
 *         return trn_core_spec_of(TRN_TRAINIUM2)->max_k == 128 ? 0 : 1;
 *     }
 *
 * DOES: holds three tables, each pointing at the one before, and the first at that of machine/spec_core.h: core ->
 *     chip -> server -> system. What a level repeats is never stated again: the totals of a system are products,
 *     and the tests compare them with the vendor's totals. Where sources contradict each other, the tables hold the
 *     default and trn_spec_alternative_at() the rest. The numbers themselves stand in machine/spec_*_rows.h.
 * DOES NOT: know how chips are wired (which neighbour, how many hops), or the latency of anything but a DMA. What the
 *     machines are built of, drives and racks and dies, is in machine/spec_physical.h.
 *
 * CONTENTS
 *   machine/spec_core.h: NeuronCore-v2, v3 and v4 as data, and how each number is known.
 *     trn_generation                          Trainium1, 2, 3
 *     trn_source                              whose, how known, where
 *     trn_provenance, trn_provenance_text     how a number is known
 *     trn_core_spec, trn_core_spec_of         clocks, widths, tile limits, modes, memories, DMA of one NeuronCore
 *     trn_core_sbuf_bytes, trn_core_psum_bytes   all partitions of one core
 *     trn_core_peak_flops_per_s               what the systolic array can do: PEs x clock x products
 *     trn_matmul_mode, trn_matmul_mode_name   plain, double_row (FP8), MX, sparse, transpose, INT8; zero = the fastest
 *     trn_space, trn_space_name               SBUF, PSUM, HBM
 *   machine/spec_system.h: chips, servers and systems as rows: what is in which, and every level counted for a whole
 *                          system.
 *     trn_generation_name                     "Trainium1", 2, 3
 *     trn_chip_spec, trn_chip_spec_of         cores, HBM, published flop/s of one chip
 *     trn_server_spec                         chips, NeuronLink, EFA, host of one server (one EC2 instance)
 *     trn_system, trn_system_name, trn_system_from_name   the ten systems
 *     trn_system_spec, trn_system_spec_of     how many servers of which kind
 *     trn_spec_chips, trn_spec_tflops         of the whole system
 *     trn_spec_totals, trn_spec_totals_of     everything else of the whole system
 *     trn_spec_field, trn_spec_field_at       every number of a system in turn, with unit and source
 *     trn_spec_field_named                    one of them by its level and name
 *     trn_spec_alternative, trn_spec_alternative_at   every contradiction between sources
 *   machine/spec_physical.h: what the machines are built of, what is said of their links, and what is announced.
 *     trn_spec_physical, trn_spec_physical_at           dies, stacks, lanes, processors, drives, cards, trays, racks
 *     trn_spec_link_reading, trn_spec_link_reading_at   who prints which NeuronLink figure, and what it comes to
 *     trn_spec_announced, trn_spec_announced_at         Trainium4, as the press reports it
 *
 * KNOWN FROM: the Neuron SDK documentation of August 2026 (2.32), the EC2 pages, SemiAnalysis on Trainium2 (December
 *     2024) and Trainium3 (December 2025), the press on Project Rainier (October 2025). Every row names its page.
 *
 * Units are SI and bytes, and stand in the names; GB is 1e9 and GiB 2^30; link rates are one-way (the vendor's
 * NeuronLink figures are sums of both directions). To try another number, copy its row and the rows that point at it.
 *
 * Words that differ and are not contradictions: a 4 x 4 torus with Gray-coded coordinates is the four-dimensional
 * hypercube, so both names of Trainium1's wiring are right; HBM3 and HBM3e are both fitted to Trainium2, at the same
 * rate; a "256 accelerator" cluster of 4 trn2 instances counts logical cores. Chip figures exceed cores x TensorE (667
 * against 8 x 78.6 = 629 TFLOPS on Trainium2): they include something else, which the vendor does not explain.
 */
#ifndef TRN_SPEC_H
#define TRN_SPEC_H

#include "base/words_begin.h"

#include "machine/spec_core.h"
#include "machine/spec_system.h"
#include "machine/spec_physical.h"

#include "base/words_end.h"

#endif /* TRN_SPEC_H */

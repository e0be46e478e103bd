/* instances.c - what is sold beside whole systems: a part of one, or other boards with its chips.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the EC2 documentation of 2026 (accelerators of an instance) and the Neuron SDK, neuron-hardware/
 * inf2-arch.rst and inferentia2.rst: an Inferentia2 has the two NeuronCores-v2 and the memory of a Trainium1, and 192
 * GB/s of NeuronLink both ways, which are two links of 48 GB/s one way in a ring. No instance has a single Trainium3:
 * trn3-chip is one of an UltraServer.
 */
#include "shardplan.h"

#include <string.h>

static const struct {
    const char *name;
    trn_system system; /* whose chips, and whose rates and times of a link, it has */
    int chips;
    bool ring; /* of its own; else the first chips of the system */
    const char *note;
} row[] = {
    { "trn2.3xlarge", TRN_TRN2_48XLARGE, 1, false, "one Trainium2 with 96 GiB" },
    { "trn3-chip", TRN_TRN3_GEN2_ULTRASERVER, 1, false, "one Trainium3 with 144 GiB, which no instance has alone" },
    { "inf2.xlarge", TRN_TRN1_32XLARGE, 1, true, "one Inferentia2, planned as a Trainium1" },
    { "inf2.8xlarge", TRN_TRN1_32XLARGE, 1, true, "one Inferentia2, planned as a Trainium1" },
    { "inf2.24xlarge", TRN_TRN1_32XLARGE, 6, true, "six Inferentia2 in a ring, planned as Trainium1" },
    { "inf2.48xlarge", TRN_TRN1_32XLARGE, 12, true, "twelve Inferentia2 in a ring, planned as Trainium1" },
};
enum { INSTANCES = sizeof row / sizeof row[0] };

int sp_instance_named(const char *name)
{
    for (int i = 0; i < INSTANCES; i++)
        if (strcmp(row[i].name, name) == 0) return i + 1;
    return 0;
}

const char *sp_instance_note(int instance) { return instance ? row[instance - 1].note : NULL; }

/* A ring of them has one link each way to both neighbours, as the rows of the system's torus have. */
trn_topology sp_instance_net(int instance)
{
    const int i = instance - 1;
    trn_topology net = trn_topology_of(row[i].system);
    if (row[i].ring) {
        net.levels = 1;
        net.level[0].size = net.chips = row[i].chips;
    }
    snprintf(net.name, sizeof net.name, "%s", row[i].name);
    return net;
}

int sp_instance_chips(int instance) { return row[instance - 1].chips; }

/* The vendor's rules for groups are those of its own instances; of inf2 none are known. */
bool sp_instance_any_group(int instance) { return instance && row[instance - 1].ring; }

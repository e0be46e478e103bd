/* machine/spec_physical.h - what the machines are built of, what is said of their links, and what is announced.
 * A part of trn_spec.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_spec.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_spec_physical fact;
 *         for (int i = 0; trn_spec_physical_at(trn_system_spec_of(TRN_TRN2_48XLARGE), i, &fact); i++)
 *             if (fact.text) printf("%s: %s\n", fact.number.field, fact.text);
 *             else printf("%s: %g %s\n", fact.number.field, fact.number.value, fact.number.unit);
 *         trn_spec_announced next;
 *         return trn_spec_announced_at(0, &next) && next.known == TRN_THIRD_PARTY ? 0 : 1;
 *     }
 *
 * DOES: lists dies and stacks of the chips, processors, drives and network cards of the servers, trays and racks; every
 *     reading of NeuronLink that is in print, in the unit in which it is printed, beside what the tables hold; and what
 *     is announced of Trainium4. Each with its source.
 * DOES NOT: have a row for what nobody says (the drives of Trn3), nor let an announcement into any other table: nothing
 *     here is a trn_generation or a trn_system that others lack, and no cost is made of it.
 *
 * KNOWN FROM: the EC2 documentation (specifications of accelerated computing instances, 2026), the Neuron SDK
 *     documentation of August 2026 (2.32), SemiAnalysis on Trainium2 (December 2024) and Trainium3 (December 2025),
 *     Latitude Design Systems (2024), the press on re:Invent 2025. Every row names its source.
 *
 * Sizes of drives are decimal, as the vendor prints them; sizes of memories are binary.
 */
#ifndef TRNI_MACHINE_SPEC_PHYSICAL_H
#define TRNI_MACHINE_SPEC_PHYSICAL_H

#include "spec_system.h"
#include "spec_announced_rows.h"
#include "spec_link_rows.h"
#include "spec_physical_rows.h"

/* ---- what the machines are built of ---- */

typedef struct trn_spec_physical {
    trn_spec_field number; /* level "chip", "server" or "total"; its value is NaN where text says it */
    const char *text;      /* such as "Intel Xeon Sapphire Rapids"; NULL where number.value says it */
} trn_spec_physical;

/* Fact number index of a system: its chip's, its server's, then what follows from them for the whole. False when there
 * is no such fact, so that a loop from 0 sees them all. */
TRN_API bool trn_spec_physical_at(const trn_system_spec *spec, int index, trn_spec_physical *out);

/* ---- NeuronLink, reading by reading ---- */

typedef struct trn_spec_link_reading {
    trn_system system;  /* one that has these links */
    const char *of;     /* a chip's links to the "server", "rack" or "peer"; "server and rack"; "chip": all of them; */
    double printed;     /* or one "link" of the server's, one "peer link" */
    const char *unit;   /* of printed, in words: "GiB/s both ways" */
    double bytes_per_s; /* what that comes to, one way */
    double held_bytes_per_s; /* what the tables hold of the same links, one way */
    trn_provenance known;
    const char *where;
    const char *how; /* to read it */
} trn_spec_link_reading;

/* Reading number index, by generation; false when there is no such number. */
TRN_API bool trn_spec_link_reading_at(int index, trn_spec_link_reading *out);

/* ---- announced ---- */

typedef struct trn_spec_announced {
    const char *name;  /* "Trainium4" */
    const char *field; /* "hbm_bytes_per_s" */
    double times;      /* that many times Trainium3's; NaN where text says it all */
    double value;      /* those times what the tables hold of Trainium3, in unit; NaN likewise */
    const char *unit;
    const char *text;     /* perhaps empty */
    trn_provenance known; /* TRN_THIRD_PARTY: nobody has seen one */
    const char *where;
} trn_spec_announced;

/* Announcement number index; false when there is no such number. */
TRN_API bool trn_spec_announced_at(int index, trn_spec_announced *out);

#if TRNI_BODIES

/* ---- what the machines are built of ---- */

typedef struct trni_physical_row {
    const char *level, *owner, *field, *unit;
    double value;
    const char *text;
    trn_provenance known;
    const char *where;
} trni_physical_row;

#define TRNI_X(level, owner, field, unit, value, text, known, where)                                                   \
    { #level, owner, #field, unit, value, text, TRN_##known, where },
TRNI_DATA trni_physical_row trni_physical[] = { TRNI_PHYSICAL_LIST(TRNI_X) };
#undef TRNI_X

typedef enum trni_physical_how {
    TRNI_PHYSICAL_CHIP_BYTES_OVER = 0,
    TRNI_PHYSICAL_TIMES_CHIPS,
    TRNI_PHYSICAL_TIMES_SERVERS,
    TRNI_PHYSICAL_TIMES_DRIVES,
    TRNI_PHYSICAL_SERVERS_OVER,
    TRNI_PHYSICAL_HOWS
} trni_physical_how;

typedef struct trni_physical_sum {
    const char *level, *field, *unit, *from_level, *from;
    trni_physical_how how;
    const char *where;
} trni_physical_sum;

#define TRNI_X(level, field, unit, from_level, from, how, where)                                                       \
    { level, field, unit, from_level, from, TRNI_PHYSICAL_##how, where },
TRNI_DATA trni_physical_sum trni_physical_sums[] = { TRNI_PHYSICAL_SUM_LIST(TRNI_X) };
#undef TRNI_X

enum {
    TRNI_PHYSICAL_ROWS = sizeof trni_physical / sizeof trni_physical[0],
    TRNI_PHYSICAL_SUMS = sizeof trni_physical_sums / sizeof trni_physical_sums[0]
};

/* Whose row it is: the name of the system's chip or server. */
TRNI_FN const char *trni_physical_owner(const trn_system_spec *spec, const char *level)
{
    return strcmp(level, "chip") == 0     ? spec->server->chip->name
           : strcmp(level, "server") == 0 ? spec->server->name
                                          : spec->name;
}

/* The row of a system's chip or server; NULL when it has none. */
TRNI_FN const trni_physical_row *trni_physical_find(const trn_system_spec *spec, const char *level, const char *field)
{
    const char *owner = trni_physical_owner(spec, level);
    for (int i = 0; i < TRNI_PHYSICAL_ROWS; i++)
        if (strcmp(trni_physical[i].field, field) == 0 && strcmp(trni_physical[i].level, level) == 0 &&
            strcmp(trni_physical[i].owner, owner) == 0)
            return &trni_physical[i];
    return NULL;
}

/* Of each trni_physical_how, made of a row's value. */
TRNI_FN double trni_physical_value(const trn_system_spec *spec, trni_physical_how how, double value)
{
    const trni_physical_row *drives = trni_physical_find(spec, "server", "nvme_drives");
    const double servers = spec->servers;
    const double all[TRNI_PHYSICAL_HOWS] = { spec->server->chip->hbm_bytes / value, value * trn_spec_chips(spec),
                                             value * servers, drives ? value * drives->value * servers : TRNI_NAN,
                                             servers / value };
    return all[how];
}

TRN_API bool trn_spec_physical_at(const trn_system_spec *spec, int index, trn_spec_physical *out)
{
    TRNI_FLOATS;
    int at = 0;
    for (int i = 0; i < TRNI_PHYSICAL_ROWS; i++) {
        const trni_physical_row *row = &trni_physical[i];
        if (strcmp(row->owner, trni_physical_owner(spec, row->level)) != 0 || at++ != index) continue;
        out->number.level = row->level;
        out->number.owner = row->owner;
        out->number.field = row->field;
        out->number.unit = row->unit;
        out->number.value = row->value;
        out->number.known = row->known;
        out->number.where = row->where;
        out->text = row->text;
        return true;
    }
    for (int i = 0; i < TRNI_PHYSICAL_SUMS; i++) {
        const trni_physical_sum *sum = &trni_physical_sums[i];
        const trni_physical_row *row = trni_physical_find(spec, sum->from_level, sum->from);
        if (!row || at++ != index) continue;
        out->number.level = sum->level;
        out->number.owner = trni_physical_owner(spec, sum->level);
        out->number.field = sum->field;
        out->number.unit = sum->unit;
        out->number.value = trni_physical_value(spec, sum->how, row->value);
        out->number.known = TRN_DERIVED;
        out->number.where = sum->where;
        out->text = NULL;
        return true;
    }
    return false;
}

/* ---- NeuronLink, reading by reading ---- */

typedef enum trni_link_of {
    TRNI_LINK_OF_CHIP = 0,
    TRNI_LINK_OF_SERVER,
    TRNI_LINK_OF_RACK,
    TRNI_LINK_OF_RACK_ALL,
    TRNI_LINK_OF_PEER,
    TRNI_LINK_OF_LINK,
    TRNI_LINK_OF_PEER_LINK,
    TRNI_LINK_OFS
} trni_link_of;

typedef enum trni_link_unit {
#define TRNI_X(unit, name, bytes_per_s) TRNI_LINK_IN_##unit,
    TRNI_LINK_UNIT_LIST(TRNI_X)
#undef TRNI_X
        TRNI_LINK_UNITS
} trni_link_unit;

typedef struct trni_link_reading {
    trn_system system;
    trni_link_of of;
    double printed;
    trni_link_unit unit;
    trn_provenance known;
    const char *where, *how;
} trni_link_reading;

#define TRNI_X(system, of, printed, unit, known, where, how)                                                           \
    { system, TRNI_LINK_OF_##of, printed, TRNI_LINK_IN_##unit, TRN_##known, where, how },
TRNI_DATA trni_link_reading trni_link_readings[] = { TRNI_LINK_READING_LIST(TRNI_X) };
#undef TRNI_X

/* What the tables hold of these links of a chip. */
TRNI_FN double trni_link_held(const trn_system_spec *spec, trni_link_of of)
{
    const trn_server_spec *s = spec->server;
    const double server = s->server_links * s->server_link_bytes_per_s;
    const double rack = s->rack_links * s->rack_link_bytes_per_s, peer = s->peer_links * s->peer_link_bytes_per_s;
    const double all[TRNI_LINK_OFS] = { trn_spec_totals_of(spec).neuronlink_chip_bytes_per_s,
                                        server,
                                        rack,
                                        server + rack,
                                        peer,
                                        s->server_link_bytes_per_s,
                                        s->peer_link_bytes_per_s };
    return all[of];
}

TRN_API bool trn_spec_link_reading_at(int index, trn_spec_link_reading *out)
{
    static const char *const of[TRNI_LINK_OFS] = { "chip", "server", "rack",     "server and rack",
                                                   "peer", "link",   "peer link" };
    static const struct {
        const char *name;
        double bytes_per_s;
    } unit[TRNI_LINK_UNITS] = {
#define TRNI_X(unit, name, bytes_per_s) { name, bytes_per_s },
        TRNI_LINK_UNIT_LIST(TRNI_X)
#undef TRNI_X
    };
    TRNI_FLOATS;
    if (index < 0 || index >= (int)(sizeof trni_link_readings / sizeof trni_link_readings[0])) return false;
    const trni_link_reading *row = &trni_link_readings[index];
    out->system = row->system;
    out->of = of[row->of];
    out->printed = row->printed;
    out->unit = unit[row->unit].name;
    out->bytes_per_s = row->printed * unit[row->unit].bytes_per_s;
    out->held_bytes_per_s = trni_link_held(trn_system_spec_of(row->system), row->of);
    out->known = row->known;
    out->where = row->where;
    out->how = row->how;
    return true;
}

/* ---- announced ---- */

TRN_API bool trn_spec_announced_at(int index, trn_spec_announced *out)
{
    static const struct {
        const char *name, *field, *unit;
        double times;
        const char *base; /* of Trainium3's chip; NULL where text says it all */
        const char *text, *where;
    } row[] = {
#define TRNI_X(name, field, unit, times, base, text, where) { name, field, unit, times, base, text, where },
        TRNI_ANNOUNCED_LIST(TRNI_X)
#undef TRNI_X
    };
    trn_spec_field base;
    TRNI_FLOATS;
    if (index < 0 || index >= (int)(sizeof row / sizeof row[0])) return false;
    out->name = row[index].name;
    out->field = row[index].field;
    out->times = row[index].times;
    out->value = TRNI_NAN;
    out->unit = row[index].unit;
    out->text = row[index].text;
    out->known = TRN_THIRD_PARTY;
    out->where = row[index].where;
    if (row[index].base &&
        trn_spec_field_named(trn_system_spec_of(TRN_TRN3_GEN2_ULTRASERVER), "chip", row[index].base, &base))
        out->value = row[index].times * base.value;
    return true;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_SPEC_PHYSICAL_H */

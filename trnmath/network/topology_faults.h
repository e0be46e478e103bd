/* network/topology_faults.h - chips and links that are down or slow, as people write them.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_collective_cost.h>
 *     #include <trnmath/trn_topology.h>
 *     int main(void) {
 *         trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_error why;
 *         if (trn_topology_down(&net, "link 3->7", &why) != TRN_OK) return 1;
 *         if (trn_topology_slow(&net, "chip 5 0.8", &why) != TRN_OK) return 1;
 *         trn_cost cost;
 *         trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .bytes = 1 << 20, .error = &why };
 *         return trn_topology_hops(&net, 3, 7) == 3 && trn_collective_cost(&args, &cost) == TRN_OK ? 0 : 1;
 *     }
 *
 * DOES: adds faults to a network, which then carries them wherever it is copied: routes go round what is down
 *     (network/topology_graph.h), times count detours and what is left of rates (trn_collective_cost.h), and a
 *     collective that cannot be says why. "link 3->7" is one direction, "link 3<->7" both; a port of a
 *     switch is "link 3->rack" and "link rack->3", with the name of the switch's level.
 * DOES NOT: change values: the bits of an algorithm do not depend on the rates of links.
 *
 * KNOWN FROM: definitions; how the fabric itself goes round a fault is not published.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_FAULTS_H
#define TRNI_NETWORK_TOPOLOGY_FAULTS_H

#include "topology_systems.h"

/* what: "chip 17", "link 3->7", "link 3<->7". net is written only when TRN_OK is returned. */
TRN_API trn_status trn_topology_down(trn_topology *net, const char *what, trn_error *error);

/* what: the same and a share above 0 and up to 1: "link 3->7 0.5". A slow chip's links, HBM and DMA are slow. */
TRN_API trn_status trn_topology_slow(trn_topology *net, const char *what, trn_error *error);

/* "down = link 3->7" or "slow = chip 5 0.8": a line of a file (network/topology_file.h). False when there is no such
 * fault.
 */
TRN_API bool trn_topology_fault_text(const trn_topology *net, int fault, char *text, size_t capacity);

#if TRNI_BODIES

#include "topology_text.h"

/* A link's end: a chip, or a switch by the name of its level. */
typedef struct trni_fault_end {
    int chip, level; /* one of them is -1 */
} trni_fault_end;

TRNI_FN trn_status trni_fault_read_chip(const trn_topology *net, trni_phrase p, int *chip, trn_error *error)
{
    char shown[TRNI_SHOWN];
    if (!trni_phrase_whole(p, chip))
        return trni_fail(error, TRN_EINVAL, "\"%s\" is not the number of a chip", trni_phrase_show(p, shown));
    if (*chip >= net->chips)
        return trni_fail(error, TRN_EINVAL, "there is no chip %d: %s has chips 0 to %d", *chip, net->name,
                         net->chips - 1);
    return TRN_OK;
}

TRNI_FN trn_status trni_fault_read_end(const trn_topology *net, trni_phrase p, trni_fault_end *end, trn_error *error)
{
    char shown[TRNI_SHOWN];
    end->chip = end->level = -1;
    if (!p.length || !trni_plain_letter(p.at[0])) return trni_fault_read_chip(net, p, &end->chip, error);
    for (int l = 0; l < net->levels && end->level < 0; l++)
        if (net->level[l].wiring == TRN_WIRING_SWITCH && trni_phrase_is(p, trn_level_name(&net->level[l])))
            end->level = l;
    return end->level >= 0 ? TRN_OK
                           : trni_fail(error, TRN_EINVAL, "\"%s\" is neither a chip nor a level of switches",
                                       trni_phrase_show(p, shown));
}

/* The number of the link between two ends, or why there is none. */
TRNI_FN trn_status trni_fault_link(const trn_topology *net, trni_fault_end from, trni_fault_end to, int64_t *link,
                                   trn_error *error)
{
    const int level = from.level >= 0 ? from.level : to.level, chip = from.level >= 0 ? to.chip : from.chip;
    if (from.level >= 0 && to.level >= 0)
        return trni_fail(error, TRN_EINVAL, "no link joins two switches: one end is a chip");
    if (level >= 0) {
        if (trni_level_slots(net, level) == 0)
            return trni_fail(error, TRN_EINVAL, "the switch of level %s joins one chip, and has no ports",
                             trn_level_name(&net->level[level]));
        *link = (int64_t)chip * trn_topology_slots(net) + trni_slot_base(net, level) + (from.level >= 0 ? 1 : 0);
        return TRN_OK;
    }
    *link = trn_topology_link_between(net, from.chip, to.chip);
    if (*link >= 0) return TRN_OK;
    if (from.chip == to.chip) return trni_fail(error, TRN_EINVAL, "chip %d has no link to itself", from.chip);
    return trni_fail(error, TRN_EINVAL, "no link goes straight from chip %d to chip %d of %s", from.chip, to.chip,
                     net->name);
}

TRNI_FN trn_status trni_fault_add(trn_topology *net, trn_fault_kind kind, int64_t at, double share, trn_error *error)
{
    if (net->faults >= TRN_MAX_FAULTS) return trni_fail(error, TRN_ELIMIT, "more than %d faults", (int)TRN_MAX_FAULTS);
    trn_fault *f = &net->fault[net->faults++];
    memset(f, 0, sizeof *f);
    f->kind = kind;
    f->at = at;
    f->share = share;
    return TRN_OK;
}

/* "3->7" or "3<->7" */
TRNI_FN trn_status trni_fault_add_links(trn_topology *net, trni_phrase p, double share, trn_error *error)
{
    trni_fault_end from, to;
    int64_t link = -1, back = -1;
    size_t dash = 0;
    while (dash + 1 < p.length && memcmp(p.at + dash, "->", 2) != 0) dash++;
    if (dash + 1 >= p.length)
        return trni_fail(error, TRN_EINVAL, "a link is written as 3->7, or 3<->7 for both directions");
    const bool both = dash > 0 && p.at[dash - 1] == '<';
    const trni_phrase left = trni_phrase_trim(trni_phrase_of(p.at, both ? dash - 1 : dash)),
                      right = trni_phrase_trim(trni_phrase_of(p.at + dash + 2, p.length - dash - 2));
    trn_status status = trni_fault_read_end(net, left, &from, error);
    if (status == TRN_OK) status = trni_fault_read_end(net, right, &to, error);
    if (status == TRN_OK) status = trni_fault_link(net, from, to, &link, error);
    if (status == TRN_OK && both) status = trni_fault_link(net, to, from, &back, error);
    if (status == TRN_OK) status = trni_fault_add(net, TRN_FAULT_LINK, link, share, error);
    if (status == TRN_OK && both) status = trni_fault_add(net, TRN_FAULT_LINK, back, share, error);
    return status;
}

/* net may be half written when this fails. */
TRNI_FN trn_status trni_fault_read(trn_topology *net, trni_phrase p, bool slow, trn_error *error)
{
    char shown[TRNI_SHOWN];
    trni_phrase rest = trni_phrase_trim(p), last;
    double share = 0;
    int chip = -1;
    if (slow && (!trni_phrase_last(rest, &rest, &last) || !trni_phrase_decimal(last, 0, &share) || !(share > 0) ||
                 !trni_amount_is(TRNI_SHARE, share)))
        return trni_fail(error, TRN_EINVAL,
                         "\"%s\" does not end with the share that is left, from 0.000001 to 1, such as 0.5",
                         trni_phrase_show(trni_phrase_trim(p), shown));
    const bool of_chip = rest.length > 5 && memcmp(rest.at, "chip", 4) == 0 && trni_blank(rest.at[4]);
    const bool of_link = rest.length > 5 && memcmp(rest.at, "link", 4) == 0 && trni_blank(rest.at[4]);
    const trni_phrase what = trni_phrase_trim(trni_phrase_of(rest.at + 4, rest.length > 4 ? rest.length - 4 : 0));
    if (of_link) return trni_fault_add_links(net, what, share, error);
    if (!of_chip)
        return trni_fail(error, TRN_EINVAL, "\"%s\" is neither a chip nor a link, such as chip 17%s or link 3->7%s",
                         trni_phrase_show(trni_phrase_trim(p), shown), slow ? " 0.5" : "", slow ? " 0.5" : "");
    const trn_status status = trni_fault_read_chip(net, what, &chip, error);
    return status == TRN_OK ? trni_fault_add(net, TRN_FAULT_CHIP, chip, share, error) : status;
}

TRNI_FN trn_status trni_fault_apply(trn_topology *net, const char *what, bool slow, trn_error *error)
{
    trn_status status = trn_topology_check(net, error);
    if (status != TRN_OK) return status;
    if (!what) return trni_fail(error, TRN_EINVAL, "what is NULL: a fault is a chip or a link");
    trn_topology copy = *net;
    status = trni_fault_read(&copy, trni_phrase_of(what, strlen(what)), slow, error);
    if (status == TRN_OK) *net = copy;
    return status;
}

TRN_API trn_status trn_topology_down(trn_topology *net, const char *what, trn_error *error)
{
    TRNI_FLOATS;
    return trni_fault_apply(net, what, false, error);
}

TRN_API trn_status trn_topology_slow(trn_topology *net, const char *what, trn_error *error)
{
    TRNI_FLOATS;
    return trni_fault_apply(net, what, true, error);
}

TRN_API bool trn_topology_fault_text(const trn_topology *net, int fault, char *text, size_t capacity)
{
    TRNI_FLOATS;
    char share[TRNI_DECIMAL] = "", from[32], to[32];
    trn_link link;
    if (fault < 0 || fault >= net->faults) return false;
    const trn_fault *f = &net->fault[fault];
    const char *key = f->share > 0 ? "slow" : "down", *space = f->share > 0 ? " " : "";
    if (f->share > 0) trni_decimal_print(f->share, 0, share);
    if (f->kind == TRN_FAULT_CHIP) {
        snprintf(text, capacity, "%s = chip %d%s%s", key, (int)f->at, space, share);
        return true;
    }
    if (!trn_topology_link(net, f->at, &link)) return false;
    snprintf(from, sizeof from, "%d", link.from);
    snprintf(to, sizeof to, "%d", link.to);
    if (link.from >= net->chips) trni_copy_text(from, sizeof from, trn_level_name(&net->level[link.level]));
    if (link.to >= net->chips) trni_copy_text(to, sizeof to, trn_level_name(&net->level[link.level]));
    snprintf(text, capacity, "%s = link %s->%s%s%s", key, from, to, space, share);
    return true;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_FAULTS_H */

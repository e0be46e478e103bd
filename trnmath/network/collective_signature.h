/* network/collective_signature.h - the fields of a collective that all processes must have been given alike.
 * Behind trn_mpi.h. SPDX-License-Identifier: MIT
 *
 * DOES: one row for each field of trn_collective_args and of what it points to. Words are what a field stands for, not
 *     how it was written: zero and the default that it means are the same, a list is its content.
 * DOES NOT: look at what was refused: the arguments have been checked.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_SIGNATURE_H
#define TRNI_NETWORK_COLLECTIVE_SIGNATURE_H

#include "signature.h"
#include "collective.h"

/* ---- networks ---- */

/* Of every level, in one word for each field. */
#define TRNI_SIGNATURE_LEVEL(X, ARRAY)                                                                                 \
    X(name, HERE, "for people")                                                                                        \
    ARRAY(label, HERE, "for people")                                                                                   \
    X(wiring, EACH, (uint64_t)level->wiring)                                                                           \
    X(size, EACH, (uint64_t)level->size)                                                                               \
    X(planes, EACH, (uint64_t)(level->planes ? level->planes : 1))                                                     \
    X(kind, EACH, (uint64_t)level->kind)                                                                               \
    X(bytes_per_s, EACH, trni_real_word(level->bytes_per_s))                                                           \
    X(latency_s, EACH, trni_real_word(level->latency_s))                                                               \
    X(half_duplex, EACH, (uint64_t)level->half_duplex)                                                                 \
    X(rate, HERE, "for people")                                                                                        \
    X(latency, HERE, "for people")

TRNI_FN uint64_t trni_hash_faults(const trn_topology *net)
{
    uint64_t hash = 0;
    for (int i = 0; i < net->faults; i++) {
        hash = trni_hash(hash, (uint64_t)net->fault[i].kind);
        hash = trni_hash(hash, (uint64_t)net->fault[i].at);
        hash = trni_hash(hash, trni_real_word(net->fault[i].share));
    }
    return hash;
}

TRNI_FN uint64_t trni_hash_wires(const trn_topology *net)
{
    uint64_t hash = 0;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        hash = trni_hash(hash, (uint64_t)w->level);
        hash = trni_hash(hash, (uint64_t)w->from);
        hash = trni_hash(hash, (uint64_t)w->to);
        hash = trni_hash(hash, (uint64_t)w->one_way);
        hash = trni_hash(hash, (uint64_t)(w->count ? w->count : 1));
        hash = trni_hash(hash, trni_real_word(w->bytes_per_s));
        hash = trni_hash(hash, trni_real_word(w->latency_s));
    }
    return hash;
}

#define TRNI_SIGNATURE_TOPOLOGY(X, ARRAY)                                                                              \
    ARRAY(name, HERE, "for people")                                                                                    \
    X(chips, INTEGER, net->chips)                                                                                      \
    X(levels, INTEGER, net->levels)                                                                                    \
    ARRAY(level, INSIDE, trni_signature_levels(b, level, net))                                                         \
    X(start_s, REAL, net->start_s)                                                                                     \
    X(local_latency_s, REAL, net->local_latency_s)                                                                     \
    X(hbm_bytes_per_s, REAL, net->hbm_bytes_per_s)                                                                     \
    X(dma_bytes_per_s, REAL, net->dma_bytes_per_s)                                                                     \
    X(reduce_pass, REAL, net->reduce_pass)                                                                             \
    X(ranks_per_chip, INTEGER, net->ranks_per_chip)                                                                    \
    X(store_and_forward, INTEGER, net->store_and_forward)                                                              \
    X(faults, INTEGER, net->faults)                                                                                    \
    ARRAY(fault, HASH, trni_hash_faults(net))                                                                          \
    X(wires, INTEGER, net->wires)                                                                                      \
    ARRAY(wire, HASH, trni_hash_wires(net))                                                                            \
    X(system, INTEGER, net->system)                                                                                    \
    X(start, HERE, "for people")                                                                                       \
    X(local, HERE, "for people")                                                                                       \
    X(hbm, HERE, "for people")                                                                                         \
    X(dma, HERE, "for people")                                                                                         \
    X(reduce, HERE, "for people")                                                                                      \
    X(ranks, HERE, "for people")

TRNI_COVERS(trn_level, TRNI_SIGNATURE_LEVEL)
TRNI_COVERS(trn_topology, TRNI_SIGNATURE_TOPOLOGY)

#define TRNI_PUT_EACH(field, of)                                                                                       \
    hash = 0;                                                                                                          \
    for (int l = 0; l < net->levels; l++) {                                                                            \
        const trn_level *level = &net->level[l];                                                                       \
        hash = trni_hash(hash, of);                                                                                    \
    }                                                                                                                  \
    trni_signature_put(b, owner, #field, TRNI_SHOW_HASH, hash);

TRNI_FN void trni_signature_levels(trni_signature *b, const char *owner, const trn_topology *net)
{
    uint64_t hash;
    TRNI_SIGNATURE_LEVEL(TRNI_PUT, TRNI_PUT)
}

TRNI_FN void trni_signature_topology(trni_signature *b, const char *owner, const char *level, const trn_topology *net)
{
    TRNI_SIGNATURE_TOPOLOGY(TRNI_PUT, TRNI_PUT)
}

/* ---- calibrations ---- */

#define TRNI_SIGNATURE_FACTOR(field, newer, older, unit, known, where) TRNI_PUT(field, REAL, c->field)

/* c: as trni_calibration_of resolves it. */
TRNI_FN void trni_signature_calibration(trni_signature *b, const char *owner,
                                        const trn_calibration *c){ TRNI_CALIBRATION_LIST(TRNI_SIGNATURE_FACTOR) }

/* ---- lists ---- */

TRNI_FN uint64_t trni_hash_chips(const trn_collective_args *a)
{
    const int each = trni_ranks_per_chip(a);
    uint64_t hash = 0;
    for (int g = 0; g < trni_group_count(a); g++)
        for (int r = 0; r < trn_collective_ranks(a); r += each)
            hash = trni_hash(hash, (uint64_t)trni_chip_of_rank(a, g, r));
    return hash;
}

/* Of a permutation; other collectives do not look at it. */
TRNI_FN uint64_t trni_hash_targets(const trn_collective_args *a)
{
    uint64_t hash = 0;
    for (int r = 0; a->op == TRN_PERMUTE && r < trn_collective_ranks(a); r++)
        hash = trni_hash(hash, (uint64_t)(int64_t)trni_target_of(a, r));
    return hash;
}

/* Of an all-to-all. */
TRNI_FN uint64_t trni_hash_counts(const trn_collective_args *a)
{
    const int64_t ranks = trn_collective_ranks(a);
    uint64_t hash = a->counts != NULL;
    if (a->op != TRN_ALL_TO_ALL || !a->counts) return 0;
    for (int64_t i = 0; i < ranks * ranks; i++) hash = trni_hash(hash, (uint64_t)a->counts[i]);
    return hash;
}

/* ---- collectives ---- */

#define TRNI_SIGNATURE_COLLECTIVE(X, ARRAY)                                                                            \
    X(net, INSIDE, trni_signature_topology(b, "net.", "net.level.", a->net))                                           \
    X(op, COLLECTIVE, a->op)                                                                                           \
    X(algorithm, ALGORITHM, a->algorithm)                                                                              \
    X(bytes, HERE, "a run does not look at it")                                                                        \
    X(chips, HASH, trni_hash_chips(a))                                                                                 \
    X(count, INTEGER, trni_group_chips(a))                                                                             \
    X(groups, INTEGER, trni_group_count(a))                                                                            \
    X(ranks_per_chip, INTEGER, trni_ranks_per_chip(a))                                                                 \
    X(wire, FORMAT, a->wire || !v->idle ? (int64_t)v->wire : -1)                                                       \
    X(accumulate, FORMAT, a->accumulate ? a->accumulate : TRN_F32)                                                     \
    X(rounding, INTEGER, a->rounding)                                                                                  \
    X(overflow, INTEGER, a->overflow)                                                                                  \
    X(seed, WORD, a->seed)                                                                                             \
    X(stream, WORD, a->stream)                                                                                         \
    X(sr_bits, INTEGER, a->sr_bits ? a->sr_bits : 32)                                                                  \
    X(uncalibrated, INTEGER, a->uncalibrated)                                                                          \
    X(calibration, INSIDE, trni_signature_calibration(b, "calibration.", calibration))                                 \
    X(single_step, INTEGER, a->single_step)                                                                            \
    X(enforce_rules, INTEGER, a->enforce_rules)                                                                        \
    X(root, INTEGER, a->root)                                                                                          \
    X(target, INTEGER, a->target)                                                                                      \
    X(targets, HASH, trni_hash_targets(a))                                                                             \
    X(counts, HASH, trni_hash_counts(a))                                                                               \
    X(granule, INTEGER, a->granule > 1 ? a->granule : 1)                                                               \
    X(src, HERE, "views of a process' own ranks: what travels is in wire, and how much in views.elements")             \
    X(dst, HERE, "as src; what others round to its format they round to their own")                                    \
    X(isa, HERE, "all instruction sets give the same bits")                                                            \
    X(error, HERE, "where a process wants its sentence")                                                               \
    X(in_graph, HERE, "it moves what is expected, and nothing that is chosen")

TRNI_COVERS(trn_collective_args, TRNI_SIGNATURE_COLLECTIVE)

TRNI_FN void trni_signature_collective(trni_signature *b, const trni_views *v, const trn_calibration *calibration)
{
    const trn_collective_args *a = v->a;
    const char *owner = "";
    TRNI_SIGNATURE_COLLECTIVE(TRNI_PUT, TRNI_PUT)
}

/* What follows from the fields and the views; a process without views abstains. */
TRNI_FN void trni_signature_choice(trni_signature *b, const trni_views *v, const trni_pick *choice)
{
    const int64_t elements = v->a->op == TRN_ALL_TO_ALL && v->a->counts ? 0 : v->elements;
    const char *owner = "views.";
    b->derived = b->words;
    TRNI_PUT(elements, COUNT, v->idle ? -1 : elements)
    owner = "chosen.";
    TRNI_PUT(algorithm, ALGORITHM, v->idle ? -1 : (int64_t)choice->algorithm)
    TRNI_PUT(variant, COUNT, v->idle ? -1 : (int64_t)choice->variant)
}

#endif /* TRNI_NETWORK_COLLECTIVE_SIGNATURE_H */

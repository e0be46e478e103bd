/* cores/cores_match.h - which calls belong together, and why nothing goes on when none do.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: looks at the messages alone, so that every process that has them comes to the same; in the order of ranks.
 * DOES NOT: look at data.
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_MATCH_H
#define TRNI_CORES_CORES_MATCH_H

#include "cores_types.h"

TRNI_FN const char *trni_cores_name(int op)
{
#define TRNI_X(name, ...) #name,
    static const char *const name[TRNI_CORES_OPS] = { "core_barrier", "sendrecv", TRNI_CORES_COLLECTIVES(TRNI_X) };
#undef TRNI_X
    return (unsigned)op < TRNI_CORES_OPS ? name[op] : "nothing";
}

/* Is `other` in the call that `mine` is in? Of a sendrecv: are the two each other's ends? */
TRNI_FN bool trni_cores_meets(const trn_cores *cores, int mine, int other)
{
    const trni_cores_message *a = &cores->work->message[mine], *b = &cores->work->message[other];
    if (b->state != TRNI_CORES_WAITS || a->terms.op != b->terms.op) return false;
    if (a->terms.op == TRNI_CORES_SENDRECV)
        return a->pipe == b->pipe && (a->to != other || b->from == mine) && (a->from != other || b->to == mine);
    return a->members == b->members && !memcmp(a->member, b->member, (size_t)a->members * sizeof *a->member);
}

/* The first rank that the call of `rank` lacks; -1 = none. A sendrecv is followed from each core to the one that it
 * sends to, until it comes back. */
TRNI_FN int trni_cores_lacks(const trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    for (int i = 0; message->terms.op != TRNI_CORES_SENDRECV && i < message->members; i++)
        if (message->member[i] != rank && !trni_cores_meets(cores, rank, message->member[i])) return message->member[i];
    if (message->terms.op != TRNI_CORES_SENDRECV) return -1;
    if (!trni_cores_meets(cores, rank, message->from)) return message->from;
    for (int at = rank, steps = 0; steps < cores->lnc; steps++) {
        const int next = cores->work->message[at].to;
        if (!trni_cores_meets(cores, at, next)) return next;
        if (next == rank) return -1;
        at = next;
    }
    return -1;
}

/* All of a call are marked; those of a sendrecv in turn. */
TRNI_FN void trni_cores_mark(trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    bool *matched = cores->work->matched;
    for (int i = 0; i < message->members; i++) matched[message->member[i]] = true;
    if (message->terms.op == TRNI_CORES_SENDRECV)
        for (int at = rank; !matched[at]; at = cores->work->message[at].to) matched[at] = true;
}

/* ---- do they say the same? ---- */

TRNI_FN int trni_cores_shape_text(char *text, size_t capacity, const trni_cores_terms *t, int i)
{
    int used = snprintf(text, capacity, "%s [", trn_format_name((trn_format)t->format[i]));
    for (int k = 0; k < t->rank[i] && used < (int)capacity; k++)
        used += snprintf(text + used, capacity - (size_t)used, "%s%lld", k ? ", " : "", (long long)t->shape[i][k]);
    if (used < (int)capacity) used += snprintf(text + used, capacity - (size_t)used, "]");
    return used;
}

typedef struct trni_cores_term {
    const char *name;
    size_t offset;
} trni_cores_term;

TRNI_FN trn_status trni_cores_alike_numbers(const trni_cores_message *a, int first, const trni_cores_message *b,
                                            int other, trn_error *error)
{
#define TRNI_TERM(field)                                                                                               \
    {                                                                                                                  \
#field, offsetof(trni_cores_terms, field)                                                                      \
    }
    static const trni_cores_term row[] = {
        TRNI_TERM(tensors),     TRNI_TERM(dim),        TRNI_TERM(alu),        TRNI_TERM(algorithm),
        TRNI_TERM(accumulate),  TRNI_TERM(rounding),   TRNI_TERM(sr_bits),    TRNI_TERM(recv_counts_known),
        TRNI_TERM(has_rdispls), TRNI_TERM(channel[0]), TRNI_TERM(channel[1]), TRNI_TERM(channel[2]),
        TRNI_TERM(channel[3])
    };
#undef TRNI_TERM
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        int x, y;
        memcpy(&x, (const char *)&a->terms + row[i].offset, sizeof x);
        memcpy(&y, (const char *)&b->terms + row[i].offset, sizeof y);
        if (x != y)
            return trni_fail(error, TRN_EINVAL,
                             "%s: rank %d (instruction %lld) has %s %d, rank %d (instruction %lld) %d",
                             trni_cores_name(a->terms.op), first, (long long)a->instruction, row[i].name, x, other,
                             (long long)b->instruction, y);
    }
    if (a->terms.seed != b->terms.seed || a->terms.stream != b->terms.stream || a->list != b->list)
        return trni_fail(error, TRN_EINVAL, "%s: ranks %d and %d differ in seed, stream, or the place of their list",
                         trni_cores_name(a->terms.op), first, other);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_cores_alike(const trni_cores_message *a, int first, const trni_cores_message *b, int other,
                                        trn_error *error)
{
    trn_status status = trni_cores_alike_numbers(a, first, b, other, error);
    for (int i = 0; i < a->terms.tensors && !status; i++) {
        char x[64], y[64];
        if (a->terms.format[i] == b->terms.format[i] && a->terms.rank[i] == b->terms.rank[i] &&
            !memcmp(a->terms.shape[i], b->terms.shape[i], sizeof a->terms.shape[i]))
            continue;
        trni_cores_shape_text(x, sizeof x, &a->terms, i);
        trni_cores_shape_text(y, sizeof y, &b->terms, i);
        status = trni_fail(
            error, TRN_ESHAPE, "%s: rank %d (instruction %lld) gives src %s, rank %d (instruction %lld) %s",
            trni_cores_name(a->terms.op), first, (long long)a->instruction, x, other, (long long)b->instruction, y);
    }
    return status;
}

/* The call of `rank`, which lacks nobody. */
TRNI_FN trn_status trni_cores_all_alike(const trn_cores *cores, int rank, trn_error *error)
{
    const trni_cores_message *all = cores->work->message, *message = &all[rank];
    trn_status status = TRN_OK;
    for (int i = 0; i < message->members && !status; i++)
        status = trni_cores_alike(message, rank, &all[message->member[i]], message->member[i], error);
    if (message->terms.op != TRNI_CORES_SENDRECV) return status;
    for (int at = message->to; at != rank && !status; at = all[at].to)
        status = trni_cores_alike(message, rank, &all[at], at, error);
    return status;
}

/* ---- nothing goes on ---- */

/* "waits at instruction 3, sendrecv of pipe 0" */
TRNI_FN void trni_cores_where(char *text, size_t capacity, const trni_cores_message *p)
{
    char pipe[24] = "";
    if (p->terms.op == TRNI_CORES_SENDRECV) snprintf(pipe, sizeof pipe, " of pipe %d", p->pipe);
    if (p->state == TRNI_CORES_ENDED)
        snprintf(text, capacity, "has ended after %lld instructions", (long long)p->instruction);
    else
        snprintf(text, capacity, "waits at instruction %lld, %s%s", (long long)p->instruction,
                 trni_cores_name(p->terms.op), pipe);
}

TRNI_FN trn_status trni_cores_stuck(const trn_cores *cores, trn_error *error)
{
    const trni_cores_message *all = cores->work->message;
    char here[80], there[80], more[40] = "";
    int rank = 0;
    while (all[rank].state != TRNI_CORES_WAITS) rank++;
    const int other = trni_cores_lacks(cores, rank);
    trni_cores_where(here, sizeof here, &all[rank]);
    trni_cores_where(there, sizeof there, &all[other]);
    if (all[other].state == TRNI_CORES_WAITS)
        snprintf(more, sizeof more, ", for rank %d", trni_cores_lacks(cores, other));
    return trni_fail(error, TRN_EINVAL, "nothing goes on: rank %d %s, for rank %d, which %s%s", rank, here, other,
                     there, more);
}

#endif /* TRNI_CORES_CORES_MATCH_H */

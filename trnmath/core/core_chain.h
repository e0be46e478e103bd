/* core/core_chain.h - which instructions brought an element that nothing has written, in one sentence.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: tells the chain from the core's journal, the last of which come first; refuses an operand that holds such
 *     elements where it may not.
 * DOES NOT: say where it may (core_poison.h), or write the journal (the same).
 *
 * KNOWN FROM: a choice of this library.
 */
#ifndef TRNI_CORE_CORE_CHAIN_H
#define TRNI_CORE_CORE_CHAIN_H

#include "core_operand.h"

TRNI_FN const trni_poison_entry *trni_poison_entry_of(const trn_core *core, int64_t number)
{
    if (number <= 0 || number <= core->journalled - TRNI_JOURNAL) return NULL;
    return &core->journal[(number - 1) % TRNI_JOURNAL];
}

enum { TRNI_CHAIN = 192, TRNI_CHAIN_LINK = 112 }; /* characters */

/* The last link: who left the first tile incomplete; or that this is forgotten. */
TRNI_FN void trni_poison_origin(char link[TRNI_CHAIN_LINK], const trni_poison_entry *oldest)
{
    if (oldest->before)
        snprintf(link, TRNI_CHAIN_LINK, "what came before is forgotten");
    else if (!oldest->wrote_name)
        snprintf(link, TRNI_CHAIN_LINK, "no instruction wrote to '%s'", oldest->from);
    else
        snprintf(link, TRNI_CHAIN_LINK, "%lld, %s, left %d of %d partitions of '%s' incomplete",
                 (long long)oldest->wrote, oldest->wrote_name, oldest->incomplete, oldest->partitions, oldest->from);
}

/* " (instruction 11, nc_transpose, carried it from 't'; 7, tensor_copy, from 'y'; 4, activation, left ...)" in at most
 * `room` characters: links in the middle are left out where they do not fit. Empty where nothing was carried. */
TRNI_DRIVER void trni_poison_chain(const trn_core *core, const trni_allocation *allocation, size_t room,
                                   char chain[TRNI_CHAIN])
{
    char link[TRNI_CHAIN_LINK], origin[TRNI_CHAIN_LINK];
    const trni_poison_entry *e = trni_poison_entry_of(core, allocation->brought), *oldest = e, *next;
    chain[0] = 0;
    if (!e) return;
    while ((next = trni_poison_entry_of(core, oldest->before)) != NULL) oldest = next;
    trni_poison_origin(origin, oldest);
    if (room > TRNI_CHAIN) room = TRNI_CHAIN;
    size_t used = (size_t)snprintf(chain, TRNI_CHAIN, " (instruction %lld, %s, carried it from '%s'",
                                   (long long)e->instruction, e->name, e->from);
    while (used < TRNI_CHAIN && (e = trni_poison_entry_of(core, e->before)) != NULL) {
        const size_t more =
            (size_t)snprintf(link, sizeof link, "; %lld, %s, from '%s'", (long long)e->instruction, e->name, e->from);
        const bool fits = used + more + strlen(origin) + 9 < room;
        used += (size_t)snprintf(chain + used, TRNI_CHAIN - used, "%s", fits ? link : "; ...");
        if (!fits) break;
    }
    if (used < TRNI_CHAIN) snprintf(chain + used, TRNI_CHAIN - used, "; %s)", origin);
}

/* The tile that the unwritten elements of this one come from, as far as is remembered and it is still there. */
TRNI_FN const trni_allocation *trni_poison_source_of(const trn_core *core, const trni_allocation *allocation)
{
    const trni_allocation *found = allocation;
    for (const trni_poison_entry *e = trni_poison_entry_of(core, allocation->brought); e;
         e = trni_poison_entry_of(core, e->before))
        if (e->allocation->live && e->allocation->serial == e->serial) found = e->allocation;
    return found;
}

/* An operand, of which nothing has written the byte b of partition p, where it has to be written. */
TRNI_DRIVER trn_status trni_poison_refuse(trn_core *core, const trni_core_operand *s, int64_t p, int64_t b)
{
    char chain[TRNI_CHAIN];
    core->culprit = trni_poison_source_of(core, s->allocation);
    enum { WORDS = 78 }; /* of the sentence without names */
    const size_t main = WORDS + strlen(s->name) + strlen(s->allocation->name);
    trni_poison_chain(core, s->allocation, main < 200 ? 200 - main : 0, chain);
    char rest[TRNI_CHAIN + 32];
    snprintf(rest, sizeof rest, "which nothing has written%s", chain);
    return trni_core_operand_unwritten(core, s, p, b, "reads", rest);
}

/* The first byte of the operand that nothing has written. */
TRNI_FN bool trni_poison_found(trn_core *core, const trni_core_operand *s, int64_t *p, int64_t *b)
{
    trni_cells_of(core->cells, s->memory, s->view, &s->at);
    return trni_cells_missing(core->cells, s->memory, s->memory->written, p, b);
}

/* Of an operand that decides where something lies every element has to be written. */
TRNI_DRIVER trn_status trni_poison_decides(trn_core *core, const trni_core_operand *s)
{
    int64_t p, b;
    return trni_core_operand_unsure(s) && trni_poison_found(core, s, &p, &b) ? trni_poison_refuse(core, s, p, b)
                                                                             : TRN_OK;
}

#endif /* TRNI_CORE_CORE_CHAIN_H */

/* core/core_clock.h - when an instruction may begin: engines with clocks of their own, and what waits for what.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: keeps for every tile which rectangles of it are read and written until when, and answers: a read waits for the
 *     writes that it meets, a write for reads and writes. Keeps for every engine when it is free; for DMA, whose queues
 *     do not wait for each other, which stretches of time are taken; for ports that engines share, the same.
 * DOES NOT: know what instructions cost (machine/engine_cycles.h) or are (core/core_run.h). A view with gaps counts as
 *     the rectangle around it, so that even and odd elements of a tile depend on each other.
 *
 * KNOWN FROM: engines run in parallel, each in its own order, and wait for each other through semaphores (documented,
 *     NKI's architecture guides); what a semaphore costs is not published.
 */
#ifndef TRNI_CORE_CORE_CLOCK_H
#define TRNI_CORE_CORE_CLOCK_H

#include "core_memory.h"

/* ---- parts of tiles ---- */

enum { TRNI_ACCESSES = 1 << 14, TRNI_ACCESSES_EACH = 512 };

TRNI_FN void trni_history_begin(trni_history *h, trni_access *buffer)
{
    h->access = buffer;
    h->used = 0;
    h->unused = -1;
}

/* When everything is done that a read or a write of `at` has to wait for. */
TRNI_FN double trni_history_ready(const trni_history *h, const trni_allocation *t, const trni_rect *at, bool write)
{
    double ready_s = t->ready_s;
    for (int i = t->access; i >= 0; i = h->access[i].next) {
        const trni_access *a = &h->access[i];
        if ((write || a->write) && a->end_s > ready_s && trni_rect_meet(&a->at, at)) ready_s = a->end_s;
    }
    return ready_s;
}

/* Forgets all; returns when the last of it is done. */
TRNI_FN double trni_history_end(trni_history *h, trni_allocation *t)
{
    double end_s = t->ready_s;
    for (int i = t->access, next; i >= 0; i = next) {
        trni_access *a = &h->access[i];
        next = a->next;
        end_s = a->end_s > end_s ? a->end_s : end_s;
        a->next = h->unused;
        h->unused = i;
    }
    t->access = -1;
    t->accesses = 0;
    return end_s;
}

/* What lies inside of a new write, or reads inside of a new read, need not be remembered: whoever has to wait for them
 * has to wait for the new one, which does not end earlier. */
TRNI_FN void trni_history_replace(trni_history *h, trni_allocation *t, const trni_rect *at, bool write, double end_s)
{
    for (int *link = &t->access; *link >= 0;) {
        const int i = *link;
        trni_access *a = &h->access[i];
        if (a->end_s > end_s || (a->write && !write) || !trni_rect_holds(at, &a->at)) {
            link = &a->next;
            continue;
        }
        *link = a->next;
        a->next = h->unused;
        h->unused = i;
        t->accesses--;
    }
}

/* Where there are too many parts, the tile as a whole is ready when all of them are: the careful answer. */
TRNI_FN void trni_history_note(trni_history *h, trni_allocation *t, const trni_rect *at, bool write, double end_s)
{
    trni_history_replace(h, t, at, write, end_s);
    if (t->accesses >= TRNI_ACCESSES_EACH || (h->unused < 0 && h->used >= TRNI_ACCESSES))
        t->ready_s = trni_history_end(h, t);
    if (h->unused < 0 && h->used >= TRNI_ACCESSES) {
        t->ready_s = end_s > t->ready_s ? end_s : t->ready_s;
        return;
    }
    const int i = h->unused >= 0 ? h->unused : h->used++;
    trni_access *a = &h->access[i];
    if (i == h->unused) h->unused = a->next;
    a->at = *at;
    a->end_s = end_s;
    a->write = write;
    a->next = t->access;
    t->access = i;
    t->accesses++;
}

/* ---- engines ---- */

TRNI_FN void trni_lane_wrote(trni_lane *lane, const trni_allocation *t, const trni_rect *at)
{
    if (lane->writes >= TRNI_LANE_WRITES) return;
    lane->written[lane->writes] = t;
    lane->at[lane->writes++] = *at;
}

/* Is this what the last instruction of the engine wrote? */
TRNI_FN bool trni_lane_follows(const trni_lane *lane, const trni_allocation *t, const trni_rect *at)
{
    for (int i = 0; i < lane->writes; i++)
        if (lane->written[i] == t && trni_rect_meet(&lane->at[i], at)) return true;
    return false;
}

/* Nothing of this engine begins before. */
TRNI_FN void trni_lane_until(trni_lane *lane, double end_s)
{
    if (end_s > lane->free_s) lane->free_s = end_s;
    if (end_s > lane->order.floor_s) lane->order.floor_s = end_s;
}

/* ---- DMA ---- */

TRNI_FN void trni_channel_insert(trni_channel *c, int i, double from_s, double to_s)
{
    trni_stretch *t = c->taken;
    const bool before = i > 0 && t[i - 1].to_s == from_s, after = i < c->stretches && t[i].from_s == to_s;
    if (before && after) {
        t[i - 1].to_s = t[i].to_s;
        memmove(t + i, t + i + 1, (size_t)(--c->stretches - i) * sizeof *t);
    } else if (before) {
        t[i - 1].to_s = to_s;
    } else if (after) {
        t[i].from_s = from_s;
    } else {
        memmove(t + i + 1, t + i, (size_t)(c->stretches++ - i) * sizeof *t);
        t[i].from_s = from_s;
        t[i].to_s = to_s;
    }
    if (c->stretches <= TRNI_CHANNEL_STRETCHES) return;
    c->floor_s = t[0].to_s;
    memmove(t, t + 1, (size_t)--c->stretches * sizeof *t);
}

/* When a transfer begins that could from ready_s on, and takes that long. */
TRNI_FN double trni_channel_place(trni_channel *c, double ready_s, double duration_s)
{
    double from_s = ready_s > c->floor_s ? ready_s : c->floor_s;
    int i = c->stretches;
    if (duration_s <= 0) return from_s;
    while (i > 0 && c->taken[i - 1].to_s > from_s) i--;
    for (; i < c->stretches && c->taken[i].from_s < from_s + duration_s; i++) from_s = c->taken[i].to_s;
    trni_channel_insert(c, i, from_s, from_s + duration_s);
    return from_s;
}

/* The same in pieces, as transfers in several queues share the engines: takes the first stretch that is free from
 * ready_s on, at most so long; returns how long it is. */
TRNI_FN double trni_channel_piece(trni_channel *c, double ready_s, double most_s, double *from_s)
{
    int i = c->stretches;
    *from_s = ready_s > c->floor_s ? ready_s : c->floor_s;
    while (i > 0 && c->taken[i - 1].to_s > *from_s) i--;
    for (; i < c->stretches && c->taken[i].from_s <= *from_s; i++) *from_s = c->taken[i].to_s;
    double piece_s = most_s;
    if (i < c->stretches && c->taken[i].from_s < *from_s + most_s) piece_s = c->taken[i].from_s - *from_s;
    trni_channel_insert(c, i, *from_s, *from_s + piece_s);
    return piece_s;
}

#endif /* TRNI_CORE_CORE_CLOCK_H */

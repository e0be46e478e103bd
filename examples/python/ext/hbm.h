/* hbm.h - tensors in HBM that several programs share: what was written of them, and who used what unordered.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: keeps for a tensor which of its bytes were written (core/core_hbm.h looks), and for each two programs which
 *     bytes the one has used that nothing orders before what the other does; refuses a use that meets such bytes where
 *     one of the two writes. Programs that leave the same bytes are no trouble: whoever comes last, the same is there,
 *     and kernels in public do so.
 * DOES NOT: look at one program alone, or at what collectives do, for which all programs of a logical core meet.
 */
#ifndef TRNPY_HBM_H
#define TRNPY_HBM_H

#include "places.h"
#include "pool.h"

#include <trnmath/trn_core.h>

enum { HBM_PROGRAMS = 8, HBM_USES = 4096, HBM_READ = 0, HBM_WRITE = 1 };

typedef struct hbm_use {
    int program;
    bool write;
    trn_tensor view;
    place at;
} hbm_use;

/* One for all programs of a launch. Programs that run one after the other and never meet: `mine` of the running one is
 * number 0, those before it are number 1. */
typedef struct hbm_state {
    int refs, programs; /* 1: nobody asks who uses what */
    bool apart;         /* programs run one after the other */
    int running;        /* apart: which one */
    trn_hbm_written written;
    void *room;
    size_t room_bytes, words;
    const char *base;
    uint64_t *used[HBM_PROGRAMS][HBM_PROGRAMS][2]; /* [of][before whom it is not][read, write], lazily */
    hbm_use *use;
    int uses;
    char *snapshot; /* of what a write overwrites where others have been */
    place made;     /* where it was declared */
} hbm_state;

static hbm_state *hbm_state_new(const trn_tensor *whole, bool written)
{
    hbm_state *s = (hbm_state *)calloc(1, sizeof *s);
    if (!s) return NULL;
    s->refs = 1;
    s->programs = 1;
    s->base = (const char *)whole->data;
    s->room_bytes = trn_hbm_written_bytes(*whole);
    s->words = s->room_bytes / sizeof(uint64_t);
    if (written || !s->room_bytes) return s;
    s->room = pool_take(s->room_bytes);
    if (s->room) trn_hbm_written_begin(&s->written, *whole, s->room);
    return s;
}

static void hbm_state_drop(hbm_state *s)
{
    if (!s || --s->refs) return;
    pool_give(s->room, s->room_bytes);
    for (int i = 0; i < HBM_PROGRAMS * HBM_PROGRAMS * 2; i++)
        free(s->used[i / 2 / HBM_PROGRAMS][i / 2 % HBM_PROGRAMS][i % 2]);
    free(s->use);
    free(s->snapshot);
    free(s);
}

/* ---- bits of a view ---- */

static void hbm_bits_set(uint64_t *bits, const trn_tensor *view, const char *base)
{
    trni_hbm_runs r;
    trni_hbm_runs_begin(&r, view, base);
    do trni_bits_fill(bits, r.at, r.at + r.run, true);
    while (trni_hbm_runs_next(&r));
}

/* The first byte of the view that is in bits and not in `but` (null: none); -1: there is none. */
static int64_t hbm_bits_meet(const uint64_t *bits, const uint64_t *but, const trn_tensor *view, const char *base)
{
    trni_hbm_runs r;
    trni_hbm_runs_begin(&r, view, base);
    do
        for (int64_t w = r.at / 64; w * 64 < r.at + r.run; w++) {
            const uint64_t both = bits[w] & ~(but ? but[w] : 0) & trni_word_mask(w, r.at, r.at + r.run);
            if (both) return 64 * w + __builtin_ctzll(both);
        }
    while (trni_hbm_runs_next(&r));
    return -1;
}

static uint64_t *hbm_used(hbm_state *s, int of, int before, int kind)
{
    uint64_t **bits = &s->used[of][before][kind];
    if (!*bits) *bits = (uint64_t *)calloc(s->words, sizeof **bits);
    return *bits;
}

/* ---- a use ---- */

static int hbm_columns(const hbm_state *s) { return s->apart ? 2 : s->programs; }
static int hbm_me(const hbm_state *s, int program) { return s->apart ? 0 : program; }

static bool hbm_remember(hbm_state *s, const trn_tensor *view, int program, bool write, const place *at)
{
    const int me = hbm_me(s, program);
    for (int other = 0; other < hbm_columns(s); other++) {
        if (other == me) continue;
        uint64_t *bits = hbm_used(s, me, other, write);
        if (!bits) return false;
        hbm_bits_set(bits, view, s->base);
    }
    if (!s->use) s->use = (hbm_use *)malloc(HBM_USES * sizeof *s->use);
    if (!s->use || s->uses == HBM_USES) return true; /* its line is not remembered */
    hbm_use *u = &s->use[s->uses++];
    u->program = program;
    u->write = write;
    u->view = *view;
    u->at = *at;
    return true;
}

/* Who used this byte: of the kind that was asked for, the last one that is not `program`. */
static const hbm_use *hbm_whose(const hbm_state *s, int64_t byte, int program, bool write)
{
    for (int i = s->uses - 1; i >= 0; i--) {
        const hbm_use *u = &s->use[i];
        if (u->program == program || u->write != write) continue;
        trni_hbm_runs r;
        trni_hbm_runs_begin(&r, &u->view, s->base);
        do
            if (byte >= r.at && byte < r.at + r.run) return u;
        while (trni_hbm_runs_next(&r));
    }
    return NULL;
}

static trn_status hbm_refuse(trn_core *core, const trni_hbm *h, const hbm_state *s, const trn_tensor *view,
                             int64_t byte, int program, bool write, bool other_writes)
{
    const hbm_use *u = hbm_whose(s, byte, program, other_writes);
    char who[96] = "another program";
    if (u) snprintf(who, sizeof who, "program %d (%s, line %d)", u->program, u->at.file, u->at.line);
    core->culprit = &h->tensor;
    return trni_fail(&core->failure, TRN_EINVAL,
                     "program %d %s row %lld, element %lld of '%s', which %s %s%s, and no core_barrier orders them",
                     program, write ? "writes" : "reads", (long long)(byte / h->pitch),
                     (long long)(byte % h->pitch / (int64_t)trn_format_bytes(view->format)), h->tensor.name, who,
                     other_writes ? "writes" : "reads", write && other_writes ? " with other bytes" : "");
}

/* The bytes of the view, packed, into the state's room. */
static bool hbm_snapshot(hbm_state *s, const trn_tensor *view)
{
    trni_hbm_runs r;
    size_t at = 0;
    char *room =
        (char *)realloc(s->snapshot, (size_t)(trn_tensor_elements(*view) + 1) * trn_format_bytes(view->format));
    if (!room) return false;
    s->snapshot = room;
    trni_hbm_runs_begin(&r, view, s->base);
    do {
        memcpy(room + at, s->base + r.at, (size_t)r.run);
        at += (size_t)r.run;
    } while (trni_hbm_runs_next(&r));
    return true;
}

/* The first byte that is in bits, and is another now than in the snapshot. */
static int64_t hbm_changed(const hbm_state *s, const uint64_t *bits, const trn_tensor *view)
{
    trni_hbm_runs r;
    const char *was = s->snapshot;
    trni_hbm_runs_begin(&r, view, s->base);
    do
        for (int64_t i = r.at; i < r.at + r.run; i++, was++)
            if ((bits[i / 64] >> (i % 64) & 1) && s->base[i] != *was) return i;
    while (trni_hbm_runs_next(&r));
    return -1;
}

/* A read meets writes of others, but for what this program has written itself, with the same bytes. */
static trn_status hbm_read(trn_core *core, const trni_hbm *h, hbm_state *s, const trn_tensor *view, int program)
{
    const int me = hbm_me(s, program);
    for (int other = 0; other < hbm_columns(s); other++) {
        const uint64_t *bits = s->used[other][me][HBM_WRITE];
        if (other == me || !bits) continue;
        const int64_t at = hbm_bits_meet(bits, s->used[me][other][HBM_WRITE], view, s->base);
        if (at >= 0) return hbm_refuse(core, h, s, view, at, program, false, true);
    }
    return TRN_OK;
}

/* Before a write: is somebody else there? After it: has it changed what they read or wrote? */
static trn_status hbm_write(trn_core *core, const trni_hbm *h, hbm_state *s, const trn_tensor *view, int program,
                            bool after)
{
    const int me = hbm_me(s, program);
    bool meets = false;
    for (int other = 0; other < hbm_columns(s); other++)
        for (int kind = HBM_WRITE; kind >= HBM_READ && other != me; kind--) {
            const uint64_t *bits = s->used[other][me][kind];
            if (!bits || hbm_bits_meet(bits, NULL, view, s->base) < 0) continue;
            meets = true;
            const int64_t at = after ? hbm_changed(s, bits, view) : -1;
            if (at >= 0) return hbm_refuse(core, h, s, view, at, program, true, kind == HBM_WRITE);
        }
    if (!after && meets && !hbm_snapshot(s, view))
        return trni_fail(&core->failure, TRN_ENOSPC, "no memory to compare what two programs write");
    return TRN_OK;
}

/* ---- programs meet ---- */

/* What a member knows to be done, all of them know. members: a bit for each program. */
static void hbm_met(hbm_state *s, uint64_t members)
{
    for (int of = 0; of < s->programs; of++)
        for (int kind = 0; kind < 2; kind++) {
            uint64_t *bits[HBM_PROGRAMS];
            int count = 0;
            bool known = (members >> of & 1) != 0;
            for (int m = 0; m < s->programs; m++) {
                if (m == of || !(members >> m & 1)) continue;
                if (s->used[of][m][kind])
                    bits[count++] = s->used[of][m][kind];
                else
                    known = true; /* it has nothing to wait for */
            }
            for (size_t w = 0; count && w < s->words; w++) {
                uint64_t left = known ? 0 : ~(uint64_t)0;
                for (int i = 0; i < count; i++) left &= bits[i][w];
                for (int i = 0; i < count; i++) bits[i][w] = left;
            }
        }
}

/* Programs that run one after the other: the next one begins. */
static void hbm_next(hbm_state *s, int program)
{
    if (program == s->running) return;
    s->running = program;
    for (int kind = 0; kind < 2; kind++) {
        uint64_t *mine = s->used[0][1][kind];
        uint64_t *theirs = mine ? hbm_used(s, 1, 0, kind) : NULL;
        for (size_t w = 0; theirs && w < s->words; w++) {
            theirs[w] |= mine[w];
            mine[w] = 0;
        }
    }
}

/* ---- what a core asks ---- */

/* Of each tensor in HBM that a core knows, by its number there. */
typedef struct watched {
    hbm_state *state;
    struct core_object *core;
    place made;
} watched;

#endif /* TRNPY_HBM_H */

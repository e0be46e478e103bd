/* cores/cores_race.h - two cores of a chip, the same bytes of HBM, one of them writes, and nothing orders them.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: keeps what each core has used of HBM, and which others have met it since (a barrier with data: for these data
 *     alone); tells a use of it by a core that has not.
 * DOES NOT: see rows that data choose, views with gaps, more than so many rectangles between two calls, or cores of
 *     different chips. What it tells is a race; what it does not tell may be one.
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_RACE_H
#define TRNI_CORES_CORES_RACE_H

#include "cores_match.h"

enum { TRNI_RACE_KEPT = 2048 };

typedef struct trni_kept {
    trni_touch touch;
    int rank;
    uint64_t met; /* cores of the chip that come after it */
} trni_kept;

/* One for each chip. */
typedef struct trni_cores_race {
    int count, next; /* next: which is forgotten when there are too many */
    trni_kept kept[TRNI_RACE_KEPT];
} trni_cores_race;

TRNI_FN uint64_t trni_race_bit(const trn_cores *cores, int rank) { return (uint64_t)1 << rank % cores->cores_per_chip; }

/* Do bytes [at, at + bytes) of one row meet a row of t? */
TRNI_FN bool trni_race_row(intptr_t at, int64_t bytes, const trni_touch *t)
{
    const intptr_t from = at - (intptr_t)t->at;
    if (from + bytes <= 0) return false;
    if (from < 0) return true;
    const int64_t row = from / t->pitch;
    if (row >= t->rows) return false;
    const int64_t rest = from - row * t->pitch;
    return rest < t->bytes || (row + 1 < t->rows && rest + bytes > t->pitch);
}

TRNI_FN bool trni_race_meet(const trni_touch *x, const trni_touch *y)
{
    if (!x->write && !y->write) return false;
    const uintptr_t a = (uintptr_t)x->at, b = (uintptr_t)y->at;
    if (a + (uintptr_t)((x->rows - 1) * x->pitch + x->bytes) <= b) return false;
    if (b + (uintptr_t)((y->rows - 1) * y->pitch + y->bytes) <= a) return false;
    for (int64_t row = 0; row < x->rows; row++)
        if (trni_race_row((intptr_t)x->at + (intptr_t)(row * x->pitch), x->bytes, y)) return true;
    return false;
}

TRNI_FN trn_status trni_race_tell(const trni_kept *kept, const trni_touch *t, int rank, trn_error *error)
{
    const bool both = kept->touch.write && t->write;
    return trni_fail(error, TRN_EINVAL,
                     "rank %d %s '%s' (instruction %lld), which rank %d %s (instruction %lld), and "
                     "nothing orders them",
                     rank, t->write ? "writes" : "reads", t->name, (long long)t->instruction, kept->rank,
                     both       ? "writes too"
                     : t->write ? "reads"
                                : "writes",
                     (long long)kept->touch.instruction);
}

TRNI_FN void trni_race_keep(trni_cores_race *race, const trni_touch *t, int rank, uint64_t met)
{
    trni_kept *k = &race->kept[race->count < TRNI_RACE_KEPT ? race->count++ : race->next++ % TRNI_RACE_KEPT];
    if (race->next >= TRNI_RACE_KEPT) race->next = 0;
    k->touch = *t;
    k->rank = rank;
    k->met = met;
}

/* What the cores did in this round, in the order of ranks, against what others did that they have not met since. */
TRNI_FN trn_status trni_race_round(trn_cores *cores)
{
    trn_status status = TRN_OK;
    for (int r = 0; r < cores->ranks && !status; r++) {
        trni_touches *touches = cores->rank[r].core.touches;
        if (!touches) continue;
        trni_cores_race *race = &cores->work->race[r / cores->cores_per_chip];
        const uint64_t me = trni_race_bit(cores, r);
        for (int i = 0; i < touches->count && !status; i++) {
            for (int k = 0; k < race->count && !status; k++)
                if (!(race->kept[k].met & me) && trni_race_meet(&race->kept[k].touch, &touches->touch[i]))
                    status = trni_race_tell(&race->kept[k], &touches->touch[i], r, &cores->failure);
            if (!status) trni_race_keep(race, &touches->touch[i], r, me);
        }
        touches->count = 0;
    }
    return status;
}

TRNI_FN bool trni_race_within(const trni_touch *t, const trn_tensor *data)
{
    size_t bytes = 0;
    if (!data->rank) return true;
    trni_extent(data, &bytes);
    const uintptr_t at = (uintptr_t)t->at, from = (uintptr_t)data->data;
    return at >= from && at + (uintptr_t)((t->rows - 1) * t->pitch + t->bytes) <= from + bytes;
}

/* The members of a call have met: what any of them comes after, all of them do. */
TRNI_FN void trni_race_met(trn_cores *cores, const int *member, int members, const trn_tensor *data)
{
    const trn_cores_args *a = &cores->args;
    if (a->met) a->met(a->met_user, trni_cores_name(cores->work->message[member[0]].terms.op), member, members, data);
    if (!cores->work->race) return;
    for (int i = 0; i < members; i++) {
        const int chip = member[i] / cores->cores_per_chip;
        trni_cores_race *race = &cores->work->race[chip];
        uint64_t all = 0;
        bool first = true;
        for (int k = 0; k < members; k++) {
            if (member[k] / cores->cores_per_chip != chip) continue;
            all |= trni_race_bit(cores, member[k]);
            first = first && k >= i;
        }
        for (int k = 0; k < race->count && first; k++)
            if ((race->kept[k].met & all) && trni_race_within(&race->kept[k].touch, data)) race->kept[k].met |= all;
    }
}

#endif /* TRNI_CORES_CORES_RACE_H */

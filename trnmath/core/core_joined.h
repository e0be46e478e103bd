/* core/core_joined.h - tiles that a compiler joins: whose columns continue those of the tile before.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: tells of a transfer whether its rows continue those of the transfer before, in the same tensor of HBM; of a
 *     tile which columns stand before its own, from the load that fills it through the instructions that compute of
 *     it; of an instruction of VectorE or ScalarE whether it is one with that of the tile before, which has paid for
 *     the start.
 * DOES NOT: join what is longer than TRN_FACT_JOINED together, what TensorE has made, reductions, or anything at the
 *     documented pace.
 *
 * KNOWN FROM: TRN_FACT_JOINED (measured). That instructions are joined as transfers are: the same record, which has the
 *     shares at work of both engines in tiles of 128 and 256 columns as in tiles of 512.
 */
#ifndef TRNI_CORE_CORE_JOINED_H
#define TRNI_CORE_CORE_JOINED_H

#include "../machine/engine_cycles.h"
#include "core_operand.h"

/* Bytes of a row of HBM that the transfers before brought, which this one continues. */
TRNI_FN int64_t trni_joined_bytes(trni_hbm *h, const trni_rect *at)
{
    const int64_t bytes = at->b_end - at->b;
    const bool on = at->p == h->last.p && at->p_end == h->last.p_end && at->b == h->last.b_end &&
                    (double)(h->brought + bytes) <= trni_fact(TRN_FACT_JOINED);
    const int64_t before = on ? h->brought : 0;
    h->last = *at;
    h->brought = before + bytes;
    return before;
}

/* Columns that stand before those of dst: as many as before those of each input that has as many; 0: none, or it is
 * none of these instructions. Numbers of a partition go with all columns. */
TRNI_FN int64_t trni_joined_columns(const trni_core_operand *operand, int count)
{
    const trni_core_operand *const dst = operand;
    int64_t columns = INT64_MAX;
    if (!count || !(dst->role & TRNI_ROLE_WRITE) || !dst->memory) return 0;
    for (int i = 0; i < count; i++) {
        const trni_core_operand *s = &operand[i];
        if (!(s->role & TRNI_ROLE_READ) || (s->memory && s->elements < 2)) continue;
        if (!s->memory || !s->allocation || s->elements < dst->elements || s->elements > dst->elements) return 0;
        columns = s->allocation->joined < columns ? s->allocation->joined : columns;
    }
    const double bytes = ((double)columns + dst->elements) * (double)trn_format_bytes(dst->view->format);
    return columns < INT64_MAX && bytes <= trni_fact(TRN_FACT_JOINED) ? columns : 0;
}

/* What was written to a tile has so many columns before it; of a tile that is written in parts the fewest count. */
TRNI_FN void trni_joined_wrote(const trni_core_operand *operand, int count, int64_t columns)
{
    for (int i = 0; i < count; i++) {
        const trni_core_operand *s = &operand[i];
        trni_allocation *t = s->allocation;
        if (!(s->role & TRNI_ROLE_WRITE) || !s->memory || !t) continue;
        const bool whole = !memcmp(&s->at, &t->at, sizeof t->at);
        if (whole || !t->joins || columns < t->joined) t->joined = columns;
        t->joins = true;
    }
}

#endif /* TRNI_CORE_CORE_JOINED_H */

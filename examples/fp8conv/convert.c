/* convert.c - codes to codes, numbers to codes.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

/* ---- codes to codes ---- */

static void convert_codes(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const fc_item *item = w->item;
    const fc_options *o = w->catalogue->options;
    const fc_judge judge = { fc_values(fc_format_of(item->side)), fc_values(fc_format_of(o->to)),
                             fc_values(fc_format_of(item->side == FC_OCP ? FC_NEURON : FC_OCP)),
                             w->table ? fc_factor_of(o->mode, o->to) : (fc_factor){ 0, 0 } };
    const unsigned char *in = w->bytes + p->first;
    fc_table own;
    fc_ledger ledger = { .tally = tally, .judge = &judge };
    uint64_t count[FC_MAGNITUDES];
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        const float in_scale = fc_scale_at(item->in_scale, t.in), out_scale = item->out_scale[t.out];
        if (!w->table) {
            fc_ledger_settle(&ledger);
            fc_table_of_scales(item->side, o->to, in_scale, out_scale, &own);
            ledger.table = NULL;
        }
        fc_count(in + t.first, p->columns, t.rows, t.columns, count);
        fc_ledger_add(&ledger, count, w->table ? w->table : &own, (double)in_scale, (double)out_scale);
        for (int64_t r = 0; r < t.rows && !w->table; r++)
            fc_convert_codes(&own, out + t.first + r * p->columns, in + t.first + r * p->columns, (size_t)t.columns);
    }
    fc_ledger_settle(&ledger);
    if (w->table) fc_convert_codes(w->table, out, in, (size_t)(p->rows * p->columns));
}

/* ---- numbers to codes ---- */

static void quantise(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const trn_format format = fc_format_of(w->catalogue->options->to);
    const int64_t n = p->rows * p->columns;
    float *x = fc_numbers(w, p, (size_t)n), *y = x + n;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            const float scale = w->item->out_scale[t.out];
            for (int64_t i = at; i < at + t.columns; i++) y[i] = x[i] / scale;
        }
    trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(format, out, n), .src = trn_tensor_1d(TRN_F32, y, n),
                                     .overflow = TRN_SATURATE });
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);)
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t at = t.first + r * p->columns;
            fc_tally_numbers(tally, x + at, out + at, fc_values(format), w->item->out_scale[t.out], t.columns);
        }
    free(x);
}

bool fc_convert(fc_catalogue *c, int item, const fc_sink *sink, char *why)
{
    const fc_options *o = c->options;
    fc_work work = { .item = &c->item[item], .sink = sink };
    fc_table table;
    if (!fc_plan(c, item, why)) return false;
    memset(&work.item->tally, 0, sizeof work.item->tally);
    work.run = work.item->role == FC_NUMBERS ? quantise : convert_codes;
    if (o->mode != FC_REQUANT) {
        fc_table_of_mode(o->mode, work.item->side, o->to, &table);
        work.table = &table;
    }
    const bool ok = fc_run_pieces(c, &work, why);
    fc_plan_release(c, item);
    return ok;
}

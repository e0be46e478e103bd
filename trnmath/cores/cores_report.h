/* cores/cores_report.h - what many cores have done, in numbers and one sentence.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: adds up the reports of all cores (trn_core_report_of) and what their calls have noted.
 * DOES NOT: ask anything of other processes: it is about the ranks that are here.
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_REPORT_H
#define TRNI_CORES_CORES_REPORT_H

#include "cores_types.h"

TRNI_FN void trni_cores_report_rank(const trn_cores *cores, int r, trn_cores_report *out, int *where, double *most)
{
    static const char *const name[TRN_ENGINE_COUNT] = { "", "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA" };
    const trn_core *core = &cores->rank[r].core;
    const trni_cores_call *call = &cores->work->call[r];
    const double each = cores->time_s > 0 ? 1 / cores->time_s : 0;
    out->instructions += core->instructions;
    out->dma_bytes += core->dma_bytes;
    for (int e = 1; e < TRN_ENGINE_COUNT; e++) {
        const double share = core->lane[e].busy_s * each;
        out->share[e] += share / cores->here;
        out->most[e] = fmax(out->most[e], share);
        if (share <= *most) continue;
        *most = share;
        *where = r;
        snprintf(out->bound_text, sizeof out->bound_text, "%s", name[e]);
    }
    out->collective_share += call->lane.busy_s * each / cores->here;
    out->waited_s += call->waited_s / cores->here;
    if (call->late_s > out->late_s) {
        out->late_s = call->late_s;
        out->late_rank = r;
    }
    for (int i = 0; i < 2; i++) {
        int64_t *high = i == TRN_SPACE_SBUF ? &out->sbuf_high_water : &out->psum_high_water;
        if (core->memory[i].high_total > *high) *high = core->memory[i].high_total;
    }
}

TRNI_FN void trni_cores_report(const trn_cores *cores, trn_cores_report *out)
{
    char engine[16];
    int where = 0;
    double most = 0;
    out->time_s = cores->time_s;
    out->rounds = cores->rounds;
    for (int r = cores->first; r < cores->first + cores->here; r++)
        trni_cores_report_rank(cores, r, out, &where, &most);
    trni_copy_text(engine, sizeof engine, out->bound_text);
    if (most <= 0)
        snprintf(out->bound_text, sizeof out->bound_text, "nothing has run");
    else
        trni_print(out->bound_text, sizeof out->bound_text,
                   "%s is busy %.0f %% of %.1f us on rank %d; collectives run %.0f %% of it", engine, 100 * most,
                   1e6 * out->time_s, where, 100 * out->collective_share);
}

#endif /* TRNI_CORES_CORES_REPORT_H */

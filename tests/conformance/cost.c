/* cost.c - clocks and cycles: peaks by clock beside those printed, instructions by the documented formulas, transfers.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/cycles.h"
#include "published/peaks.h"
#include "trnmath/trn_spec.h"

/* A longest full instruction with its load hidden; NaN after a refusal. */
static double tflops_by_clock(trn_tensor_instruction i)
{
    trn_tensor_cost cost;
    i.m = 128;
    i.n = trn_core_spec_of(i.generation)->max_n;
    i.before_cycles = i.n;
    return trn_tensor_instruction_cost(&i, &cost) == TRN_OK ? cost.tflops : (double)NAN;
}

static void core_peak(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = tflops_by_clock(core_peaks[v->at].i);
}

static void chip_peak(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = chip_peaks[v->at].cores * tflops_by_clock((trn_tensor_instruction){
                                           .generation = chip_peaks[v->at].generation,
                                           .k = chip_peaks[v->at].k,
                                           .stationary_format = chip_peaks[v->at].format,
                                       });
}

static void tensor_instruction(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    trn_tensor_cost cost;
    (void)o;
    if (trn_tensor_instruction_cost(&tensor_cycles[v->at].i, &cost) != TRN_OK)
        cf_fail(a, "the instruction is refused");
    else
        a->got = v->of ? cost.load_cycles : cost.multiply_cycles;
}

static void engine_instruction(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    trn_engine_cost cost;
    (void)o;
    if (trn_engine_cycles(&published_cycles[v->at].work, &cost) != TRN_OK)
        cf_fail(a, "the instruction is refused");
    else
        a->got = cost.cycles;
}

/* .of: 0 the time, 1 the descriptors. */
static void transfer(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    trn_dma_cost cost;
    (void)o;
    if (trn_dma_seconds(&published_transfers[v->at].work, &cost) != TRN_OK)
        cf_fail(a, "the transfer is refused");
    else
        a->got = v->of ? cost.descriptors : 1e9 * cost.transfer_s;
}

/* 32 KiB on one engine of Trainium2, as a profile shows it; and what a transfer costs before its first byte, .of: 1 for
 * descriptors by hardware. */
static void one_engine(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    a->got = 1e9 * 32768 / trn_core_spec_of(TRN_TRAINIUM2)->dma_engine_bytes_per_s;
}

static void overhead(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const trn_dma_work work = { .bytes = 4, .run_bytes = 4, .hardware = v->of };
    trn_dma_cost cost;
    (void)o;
    if (trn_dma_seconds(&work, &cost) != TRN_OK)
        cf_fail(a, "the transfer is refused");
    else
        a->got = 1e9 * (v->of ? cost.issue_s : cost.latency_s);
}

/* ---- the vectors ---- */

/* Printed in whole TFLOPS, and not all alike (315 and 316): half a unit, or half a per cent. */
static void add_peaks(cf_list *list)
{
    for (int i = 0; i < CORE_PEAKS; i++) {
        const char *generation = trn_generation_name(core_peaks[i].i.generation);
        cf_add(list,
               (cf_vector){ .id = cf_id(list, "cost.core.%s.%s", generation, core_peaks[i].name),
                            .what = cf_text(list, "%s core, %s: by clock and cycles", generation, core_peaks[i].name),
                            .unit = "TFLOPS",
                            .kind = CF_DOCUMENTED,
                            .source = core_peaks[i].source,
                            CF_ABOUT(core_peaks[i].published, fmax(0.5, 0.005 * core_peaks[i].published)),
                            .test = core_peak,
                            .at = i });
    }
    for (int i = 0; i < CHIP_PEAKS; i++) {
        const char *format = trn_format_name(chip_peaks[i].format);
        const char *name = trn_generation_name(chip_peaks[i].generation);
        const double printed = chip_peaks[i].chip_tflops;
        cf_add(list,
               (cf_vector){ .id = cf_id(list, "cost.chip.%s.%s", name, format),
                            .what = cf_text(list, "%s chip, %s: its cores by clock and cycles", name, format),
                            .unit = "TFLOPS",
                            .kind = CF_DOCUMENTED,
                            .source = "chip pages, trainium.rst, trainium2.rst, trainium3.rst",
                            CF_ABOUT(printed, 0.005 * printed),
                            .test = chip_peak,
                            .at = i,
                            CF_BUT(printed / chip_peaks[i].above, 1e-3,
                                   "the chip's page prints more than its cores' clocks give, and does not say from "
                                   "what; trn_spec.h has the page's figure, the cost model the clock's") });
    }
}

static void add_tensor_cycles(cf_list *list)
{
    for (int i = 0; i < TENSOR_CYCLES; i++) {
        const trn_tensor_instruction *t = &tensor_cycles[i].i;
        if (tensor_cycles[i].known != TRN_DOCUMENTED) continue;
        char id[160], more[60];
        snprintf(more, sizeof more, "%s%s%s%s", tensor_cycles[i].mode == TRN_MODE_TRANSPOSE ? ".transpose" : "",
                 t->sparse_m ? ".sparse" : "", t->is_moving_onezero ? ".moving_onezero" : "",
                 t->is_stationary_onezero ? ".stationary_onezero" : "");
        snprintf(id, sizeof id, "%s.%s%s%s.k%d.m%d.n%d%s", trn_generation_name(t->generation),
                 trn_format_name(t->stationary_format), t->moving_format ? "x" : "",
                 t->moving_format ? trn_format_name(t->moving_format) : "", (int)t->k, (int)t->m, (int)t->n, more);
        for (int load = 0; load < 2; load++)
            cf_add(list, (cf_vector){ .id = cf_id(list, "cost.%s.%s", load ? "load" : "multiply", id),
                                      .what = load ? "loading the stationary tile" : "multiplying the moving tile",
                                      .unit = "cycles",
                                      .kind = CF_DOCUMENTED,
                                      CF_EXACTLY(load ? tensor_cycles[i].load : tensor_cycles[i].multiply),
                                      .source = "architecture guides for NKI: nc_matmul, transposes, data types",
                                      .test = tensor_instruction,
                                      .at = i,
                                      .of = load });
    }
}

static void add_engine_cycles(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_CYCLES; i++) {
        const trn_engine_work *w = &published_cycles[i].work;
        const trn_engine_rule *rule = trn_engine_rule_of(w->rule);
        if (rule->known != TRN_DOCUMENTED) continue;
        const char *id = cf_id(list, "cost.cycles.%s.%.0f%s%s%s%s%s%s%s%s%s%s%s", rule->name, w->elements,
                               w->generation == TRN_TRAINIUM1 ? ".trainium1" : "",
                               w->generation == TRN_TRAINIUM3 ? ".trainium3" : "", w->all_16bit ? ".16bit" : "",
                               w->all_bf16 ? ".bf16" : "", w->all_fast ? ".fp8" : "", w->scattered ? ".scattered" : "",
                               w->psum_inputs ? ".psum" : "", w->registers ? ".registers" : "", w->zero ? ".zero" : "",
                               w->far_stride ? ".far_stride" : "", w->dependent ? ".dependent" : "");
        cf_add(list, (cf_vector){ .id = id,
                                  .what = cf_text(list, "%s on the %s engine", rule->name, rule->engine),
                                  .unit = "cycles",
                                  .kind = CF_DOCUMENTED,
                                  CF_EXACTLY(published_cycles[i].expected),
                                  .source = rule->where,
                                  .test = engine_instruction,
                                  .at = i });
    }
}

static void add_transfers(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_TRANSFERS; i++) {
        const trn_dma_work *w = &published_transfers[i].work;
        if (w->wire != 0) continue; /* compression: nobody has published a rate */
        const char *id =
            cf_id(list, "cost.dma.%s.%.0f.run%.0f%s%s%s", trn_generation_name(w->generation), w->bytes, w->run_bytes,
                  w->transpose ? ".transpose" : "", w->from_sbuf ? ".sbuf" : "", w->compute ? ".compute" : "");
        const struct published_transfer *t = &published_transfers[i];
        const char *source = "NKI, DMA bandwidth guide: 17, 23, 33 B/ns an engine, 16 engines, 512 B at least";
        cf_add(list, (cf_vector){ .id = cf_id(list, "%s.time", id),
                                  .what = "a transfer, without its start",
                                  .unit = "ns",
                                  CF_ABOUT(t->transfer_ns, 1e-6),
                                  .kind = CF_DOCUMENTED,
                                  .source = source,
                                  .test = transfer,
                                  .at = i });
        cf_add(list, (cf_vector){ .id = cf_id(list, "%s.descriptors", id),
                                  .what = "its descriptors",
                                  CF_EXACTLY(t->descriptors),
                                  .kind = CF_DOCUMENTED,
                                  .source = source,
                                  .test = transfer,
                                  .at = i,
                                  .of = 1 });
    }
}

static const cf_vector dma[] = {
    { .id = "cost.dma.profile.32kib",
      .what = "32 KiB, HBM to SBUF, on one engine of Trainium2",
      .unit = "ns",
      CF_ABOUT(1416, 14.2),
      .kind = CF_MEASURED,
      .source = "NKI, DMA overview: a profile",
      .test = one_engine },
    { .id = "cost.dma.start",
      .what = "from the semaphore to the first byte",
      .unit = "ns",
      CF_ABOUT(1300, 1e-6),
      .kind = CF_DOCUMENTED,
      .source = "NKI, DMA overview",
      .test = overhead },
    { .id = "cost.dma.hardware_dge",
      .what = "descriptors made by hardware, an instruction",
      .unit = "ns",
      CF_ABOUT(600, 1e-6),
      .kind = CF_DOCUMENTED,
      .source = "Trainium2 guide for NKI",
      .test = overhead,
      .of = 1 },
};

void cf_fill_cost(cf_list *list)
{
    add_peaks(list);
    add_tensor_cycles(list);
    add_engine_cycles(list);
    add_transfers(list);
    cf_add_all(list, dma, sizeof dma / sizeof dma[0]);
}

/* makers.c - who converts: trnmath, and its peers where they are there.
 * SPDX-License-Identifier: MIT
 *
 * Peers without threads of their own get equal shares of the array on the same OpenMP team that trnmath uses.
 */
#include "convert.h"

#include <stdlib.h>
#include <string.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <trnmath/trn_convert.h>
#include <trnmath/trn_mx.h>

#include "bench/peers/convert_peer.h"
#include "bench/peers/peers.h"

#if defined(HAVE_LIBXSMM) && HAVE_LIBXSMM + 0
#include <libxsmm.h>
#endif

/* One thread does without OpenMP: opening a team of one costs a tenth of a call in the second cache. */
void tb_split(size_t n, int threads, void (*part)(void *context, size_t first, size_t count), void *context)
{
    const size_t grains = (n + TB_STREAM_GRAIN - 1) / TB_STREAM_GRAIN;
    if (threads == 1) {
        part(context, 0, n);
        return;
    }
#if defined(_OPENMP)
#pragma omp parallel for schedule(static) num_threads(threads)
#endif
    for (int t = 0; t < threads; t++) {
        const size_t first = grains * (size_t)t / (size_t)threads * TB_STREAM_GRAIN;
        const size_t end = grains * ((size_t)t + 1) / (size_t)threads * TB_STREAM_GRAIN, last = end < n ? end : n;
        if (last > first) part(context, first, last - first);
    }
}

/* ---- trnmath ---- */

typedef struct ours {
    trn_xorwow_vector generator; /* goes on from call to call; aligned, because it is twice as fast then */
    trn_status (*run)(const struct ours *job);
    trn_convert_args convert;
    trn_mx_quantize_args quantize;
    trn_mx_dequantize_args dequantize;
    trn_error error;
    int threads;
} ours;

static void set_threads(int n)
{
#if defined(_OPENMP)
    omp_set_num_threads(n);
#else
    (void)n;
#endif
}

static trn_status run_convert(const ours *job) { return trn_convert(&job->convert); }

static void *writable(const void *data) { return (void *)(uintptr_t)data; }

static void prepare_convert(ours *job, const tb_conversion *c, const tb_arrays *a)
{
    job->run = run_convert;
    job->convert = (trn_convert_args){ .dst = trn_tensor_1d(c->to->format, a->dst, (int64_t)a->n),
                                       .src = trn_tensor_1d(c->from->format, writable(a->src), (int64_t)a->n),
                                       .rounding = c->rounding,
                                       .overflow = c->overflow,
                                       .sr_bits = c->sr_bits,
                                       .seed = a->seed,
                                       .isa = a->isa,
                                       .error = &job->error };
    if (!c->xorwow) return;
    trn_xorwow_vector_seed(&job->generator, a->seed);
    job->convert.xorwow = &job->generator;
}

static trn_status run_quantize(const ours *job) { return trn_mx_quantize(&job->quantize); }
static trn_status run_dequantize(const ours *job) { return trn_mx_dequantize(&job->dequantize); }

/* Rows of 4096 where that comes out even, as layers of a model have them. */
static trn_tensor in_rows(trn_format format, const void *data, size_t n, size_t per_block)
{
    const size_t row = n % TB_STREAM_GRAIN == 0 ? TB_STREAM_GRAIN : n;
    return trn_tensor_2d(format, writable(data), (int64_t)(n / row), (int64_t)(row / per_block));
}

static void prepare_blocks(ours *job, const tb_conversion *c, const tb_arrays *a)
{
    const trn_tensor dst = in_rows(c->to->format, a->dst, a->n, 1), src = in_rows(c->from->format, a->src, a->n, 1);
    job->run = c->to->mx ? run_quantize : run_dequantize;
    if (c->to->mx)
        job->quantize = (trn_mx_quantize_args){ .dst = dst,
                                                .dst_scale = in_rows(TRN_F8_E8M0, a->dst_scale, a->n, TB_MX_BLOCK),
                                                .src = src,
                                                .scale = TRN_MX_SCALE_OCP_FLOOR,
                                                .rounding = c->rounding,
                                                .isa = a->isa,
                                                .error = &job->error };
    else
        job->dequantize = (trn_mx_dequantize_args){ .dst = dst,
                                                    .src = src,
                                                    .src_scale = in_rows(TRN_F8_E8M0, a->src_scale, a->n, TB_MX_BLOCK),
                                                    .isa = a->isa,
                                                    .error = &job->error };
}

static void *ours_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    const size_t line = 64;
    ours *job = aligned_alloc(line, (sizeof *job + line - 1) / line * line);
    (void)id;
    if (!job) exit(app_complain(APP_USAGE, "there is not enough memory for a conversion"));
    memset(job, 0, sizeof *job);
    job->threads = a->threads;
    if (c->from->mx || c->to->mx)
        prepare_blocks(job, c, a);
    else
        prepare_convert(job, c, a);
    return job;
}

static void ours_run(void *prepared)
{
    const ours *job = prepared;
    set_threads(job->threads);
    const trn_status status = job->run(job);
    if (status != TRN_OK) exit(app_complain(app_refused(status), "a conversion was refused: %s", job->error.text));
}

/* As trn_random_field cuts words into fields, from Philox or from the generator. */
void tb_trnmath_fields(const tb_conversion *c, uint64_t seed, uint32_t *field, size_t n)
{
    trn_xorwow_vector generator;
    uint32_t word = 0;
    trn_xorwow_vector_seed(&generator, seed);
    for (size_t i = 0; i < n; i++) {
        const bool half = c->sr_bits == 16, second = half && i % 2;
        if (c->xorwow && !second) trn_xorwow_vector_words(&generator, &word, 1, TRN_ISA_PORTABLE);
        if (!c->xorwow)
            field[i] = trn_random_field(seed, 0, i, c->sr_bits);
        else
            field[i] = half ? word >> (second ? 16 : 0) & 0xffffu : word >> (32 - c->sr_bits);
    }
}

/* ---- loops of others, one thread each ---- */

typedef struct shared {
    convert_peer_loop loop;
    convert_peer_part whole;
    size_t read, written; /* bytes per element */
    int threads;
} shared;

static void run_part(void *context, size_t first, size_t count)
{
    const shared *s = context;
    convert_peer_part part = s->whole;
    part.dst = (char *)part.dst + first * s->written;
    part.src = (const char *)part.src + first * s->read;
    if (part.dst_scale) part.dst_scale += first / TB_MX_BLOCK;
    if (part.src_scale) part.src_scale += first / TB_MX_BLOCK;
    part.n = count;
    part.seed += first;
    s->loop.run(&part, s->loop.with);
}

static void shared_run(void *prepared)
{
    shared *s = prepared;
    tb_split(s->whole.n, s->threads, run_part, s);
}

static void *share(convert_peer_loop loop, const tb_conversion *c, const tb_arrays *a, bool values)
{
    shared *s = loop.run ? app_memory(1, sizeof *s) : NULL;
    if (!s) return NULL;
    s->loop = loop;
    s->whole = (convert_peer_part){ a->dst, a->dst_scale, a->src, a->src_scale, a->n, a->seed };
    s->read = trn_format_bytes(c->from->format);
    s->written = values ? sizeof(float) : trn_format_bytes(c->to->format);
    s->threads = a->threads;
    return s;
}

static const convert_peer *const loops[TB_MAKERS] = {
    [TB_TRNMATH] = NULL,
#if defined(HAVE_PEER_PLAIN) && HAVE_PEER_PLAIN + 0
    [TB_PLAIN_C] = &convert_peer_plain,
#endif
#if defined(HAVE_PEER_ML_DTYPES) && HAVE_PEER_ML_DTYPES + 0
    [TB_ML_DTYPES] = &convert_peer_ml_dtypes,
#endif
#if defined(HAVE_PEER_CPFLOAT) && HAVE_PEER_CPFLOAT + 0
    [TB_CPFLOAT] = &convert_peer_cpfloat,
#endif
};

static const char *peer_version(tb_maker_id id) { return loops[id] ? loops[id]->version : NULL; }

static void *peer_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    const convert_peer_what what = { c->from->name, c->to->name, (convert_peer_rounding)c->rounding,
                                     c->overflow == TRN_SATURATE, c->sr_bits };
    if (!loops[id] || c->xorwow) return NULL; /* once per conversion is enough */
    return share(loops[id]->find(&what), c, a, loops[id]->gives_values != 0);
}

/* ---- libxsmm 1.17: two functions ---- */

#if defined(HAVE_LIBXSMM) && HAVE_LIBXSMM + 0

static void xsmm_f32_bf16(const convert_peer_part *p, const void *with)
{
    (void)with;
    libxsmm_rne_convert_fp32_bf16(p->src, p->dst, (unsigned)p->n);
}

static void xsmm_bf16_f32(const convert_peer_part *p, const void *with)
{
    (void)with;
    libxsmm_convert_bf16_f32(p->src, p->dst, (unsigned)p->n);
}

static const char *xsmm_version(tb_maker_id id) { return (void)id, "libxsmm " LIBXSMM_VERSION; }

static void *xsmm_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    convert_peer_loop loop = { NULL, NULL };
    (void)id;
    if (c->rounding != TRN_NEAREST_EVEN || c->overflow != TRN_OVERFLOW_DEFAULT || c->from->mx || c->to->mx) return NULL;
    if (c->from->format == TRN_F32 && c->to->format == TRN_BF16) loop.run = xsmm_f32_bf16;
    if (c->from->format == TRN_BF16 && c->to->format == TRN_F32) loop.run = xsmm_bf16_f32;
    return share(loop, c, a, false);
}

#else
static const char *xsmm_version(tb_maker_id id) { return (void)id, NULL; }
static void *xsmm_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    return (void)id, (void)c, (void)a, NULL;
}
#endif

/* ---- oneDNN 2 ---- */

static const char *reorder_version(tb_maker_id id) { return (void)id, tb_onednn_version(); }

static void *reorder_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    (void)id;
    if (c->rounding != TRN_NEAREST_EVEN || c->overflow != TRN_OVERFLOW_DEFAULT || c->from->mx || c->to->mx) return NULL;
    return tb_reorder_prepare(
        &(tb_reorder_job){ c->from->format, c->to->format, a->dst, a->src, (int64_t)a->n, a->threads });
}

/* ---- the table ---- */

static const char *ours_version(tb_maker_id id) { return (void)id, "trnmath " TRN_VERSION; }

static const struct maker {
    const char *name;
    const char *(*version)(tb_maker_id id);
    void *(*prepare)(tb_maker_id id, const tb_conversion *c, const tb_arrays *arrays);
    void (*run)(void *prepared);
    void (*release)(void *prepared);
} makers[TB_MAKERS] = {
    [TB_TRNMATH] = { "trnmath", ours_version, ours_prepare, ours_run, free },
    [TB_PLAIN_C] = { "plain C", peer_version, peer_prepare, shared_run, free },
    [TB_ML_DTYPES] = { "ml_dtypes", peer_version, peer_prepare, shared_run, free },
    [TB_CPFLOAT] = { "CPFloat", peer_version, peer_prepare, shared_run, free },
    [TB_ONEDNN] = { "oneDNN", reorder_version, reorder_prepare, tb_reorder_run, tb_reorder_release },
    [TB_LIBXSMM] = { "libxsmm", xsmm_version, xsmm_prepare, shared_run, free },
};

void tb_makers_load(void) { tb_onednn_load(); }
const char *tb_maker_name(tb_maker_id id) { return makers[id].name; }
const char *tb_maker_version(tb_maker_id id) { return makers[id].version(id); }
bool tb_maker_gives_values(tb_maker_id id) { return loops[id] && loops[id]->gives_values; }
void *tb_maker_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *a)
{
    return makers[id].prepare(id, c, a);
}
void tb_maker_run(tb_maker_id id, void *prepared) { makers[id].run(prepared); }
void tb_maker_release(tb_maker_id id, void *prepared) { makers[id].release(prepared); }

/* run.c - the products of subcommand matmul on this host: measured once each, checked, and complained of.
 * SPDX-License-Identifier: MIT
 */
#include "matmul.h"

#include <stdlib.h>
#include <string.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

void tb_start_host(tb_job *job)
{
    tb_host_options *h = &job->host;
    bool onednn = false;
#if defined(_OPENMP)
    if (!h->threads) h->threads = omp_get_max_threads();
    omp_set_num_threads(h->threads);
#else
    h->threads = 1;
#endif
    for (int i = TB_ONEDNN_F32; i < TB_PEERS; i++) onednn = onednn || h->peer[i];
    const trn_isa isa = tb_isa(h->isa);
    if (!job->run_host || !h->peer[TB_OPENBLAS]) return;
    tb_peers_load(isa, onednn);
    if (!tb_peer_version(TB_OPENBLAS))
        app_complain(APP_OK, "OpenBLAS is not installed (libopenblas.so.0); there is nothing to compare with");
    if (onednn && !tb_peer_version(TB_ONEDNN_F32))
        app_complain(APP_OK, "oneDNN 2 is not installed (libdnnl.so.2), or was not when this program was built");
}

static trn_tensor file_view(const npy_array *x)
{
    const trn_format format = !strcmp(x->type, "<f4") ? TRN_F32 : !strcmp(x->type, "<f2") ? TRN_F16 : TRN_BF16;
    trn_tensor t = trn_tensor_2d(format, x->data, x->shape[0], x->shape[1]);
    t.stride[0] = x->stride[0];
    t.stride[1] = x->stride[1];
    return t;
}

static trn_tensor corner(trn_tensor t, int64_t rows, int64_t columns)
{
    t.shape[0] = rows;
    t.shape[1] = columns;
    return t;
}

/* The operands of one product, from files or drawn: [m, k] and [k, n] of the slice. */
typedef struct operands {
    trn_tensor a, b;
    float *drawn_a, *drawn_b;
} operands;

static bool draw(float **x, trn_tensor *t, int64_t rows, int64_t columns, bool wide, uint64_t seed, uint64_t stream)
{
    *x = malloc(sizeof **x * (size_t)rows * (size_t)columns);
    if (*x) (wide ? tb_fill_wide : tb_fill_random)(*x, rows * columns, seed, stream);
    *t = trn_tensor_2d(TRN_F32, *x, rows, columns);
    return *x != NULL;
}

static bool find_operands(const tb_job *job, const tb_work *w, const tb_format *format, tb_slice s, operands *x)
{
    memset(x, 0, sizeof *x);
    if (w->a.data) {
        x->a = corner(file_view(&w->a), s.m, s.k);
        x->b = corner(file_view(&w->b), s.k, s.n);
        return true;
    }
    const bool wide = trn_format_bits(format->b) <= 8 && format->mode != TRN_MODE_INT8;
    return draw(&x->drawn_a, &x->a, s.m, s.k, wide, job->host.seed, 1) &&
           draw(&x->drawn_b, &x->b, s.k, s.n, wide, job->host.seed, 2);
}

static void release_operands(operands *x)
{
    free(x->drawn_a);
    free(x->drawn_b);
}

static void write_product(FILE *out, const trn_tensor *dst)
{
    if (out) npy_print(out, dst->format == TRN_I32 ? "<i4" : "<f4", 2, dst->shape, dst->data);
}

/* The whole product of two files, where only a part of it was timed, or where it is wanted as a file. */
static void whole_product(const tb_job *job, const tb_work *w, const tb_format *format, tb_host *h)
{
    const tb_product *p = &w->product[0];
    const trn_tensor a = file_view(&w->a), b = file_view(&w->b);
    tb_operands x;
    trn_numerics numerics;
    float *c = app_memory((size_t)p->m * (size_t)p->n, sizeof *c);
    h->ran = tb_operands_make(format, &a, &b, &x, &h->error);
    if (h->ran) {
        trn_matmul_args args = tb_operands_product(format, &x, c, &numerics);
        args.isa = job->host.isa;
        args.error = &h->error;
        h->ran = tb_format_numerics(format, job->host.numerics, &numerics) == TRN_OK && trn_matmul(&args) == TRN_OK;
        if (h->ran) {
            h->check = tb_check_product(&args, job->host.seed, TB_SAMPLES);
            h->digest = tb_digest(&args.dst);
            write_product(job->out, &args.dst);
        }
        tb_operands_free(&x);
    }
    free(c);
}

static tb_host *measure(const operands *x, const tb_format *format, const tb_host_options *options)
{
    tb_host *h = calloc(1, sizeof *h);
    if (h) tb_host_measure(&x->a, &x->b, format, options, h);
    return h;
}

/* Shapes repeat: q_proj is o_proj, the logits of prefill are those of decode. One measurement serves all. */
static const tb_item *same_measurement(const tb_job *job, const tb_item *item)
{
    const tb_product *p = &job->work[item->work].product[item->product];
    for (const tb_item *other = job->item; other < item; other++) {
        const tb_product *q = &job->work[other->work].product[other->product];
        if (other->format == item->format && q->m == p->m && q->n == p->n && q->k == p->k &&
            !job->work[other->work].a.data && !job->work[item->work].a.data &&
            (job->work[other->work].model != NULL) == (job->work[item->work].model != NULL))
            return other;
    }
    return NULL;
}

static double pilot_rate(const tb_job *job, const tb_format *format)
{
    static double known[TB_MAX_FORMATS]; /* 0: not yet asked */
    double *const rate = &known[tb_format_index(format)];
    if (*rate == 0) *rate = tb_host_pilot(format, &job->host);
    return *rate;
}

static bool bf16_is_asked_too(const tb_job *job, const tb_format *format)
{
    bool asked = false;
    for (int i = 0; i < job->formats; i++) asked = asked || strcmp(job->format[i]->name, "bf16") == 0;
    return asked && strcmp(format->name, "bf16") != 0;
}

static void measure_item(const tb_job *job, tb_item *item)
{
    const tb_work *w = &job->work[item->work];
    const tb_product *p = &w->product[item->product];
    const tb_slice s = tb_host_slice(p->m, p->n, p->k, tb_host_flops(pilot_rate(job, item->format), w->model != NULL));
    const bool part = s.m != p->m || s.n != p->n;
    tb_host_options host = job->host;
    char label[320];
    operands x;
    snprintf(label, sizeof label, "%s %s %s %s, product %d of %d", w->name, w->phase, w->model ? p->layer : "",
             item->format->name, (int)(item - job->item) + 1, job->items);
    host.label = label;
    host.beside_bf16 = bf16_is_asked_too(job, item->format);
    tb_step("%s", label);
    tb_host *h = find_operands(job, w, item->format, s, &x) ? measure(&x, item->format, &host) : NULL;
    if (h && h->ran && w->a.data && (part || job->out)) whole_product(job, w, item->format, h);
    release_operands(&x);
    item->host = h;
}

static int complain_of_host(const tb_job *job, const tb_item *item)
{
    const tb_work *w = &job->work[item->work];
    const tb_host *h = item->host;
    const char *layer = w->model ? w->product[item->product].layer : w->name, *format = item->format->name;
    if (!h) return app_complain(APP_USAGE, "%s in %s: there is not enough memory to run it here", layer, format);
    if (!h->ran &&
        (h->error.status == TRN_EFORMAT || h->error.status == TRN_EUNSUPPORTED || h->error.status == TRN_ESHAPE))
        return app_complain(APP_OK, "%s is modelled but not run here: %s", format, h->error.text);
    if (!h->ran && h->error.status == TRN_EIO) return APP_USAGE; /* has been said */
    if (!h->ran)
        return app_complain(app_refused(h->error.status), "%s in %s was not run: %s", layer, format, h->error.text);
    if (!h->check.defined)
        return app_complain(APP_OK,
                            "%s in %s: these numerics are not covered by the slow definition; no output was checked",
                            layer, format);
    if (h->check.wrong == 0) return APP_OK;
    return app_complain(
        APP_FAILED,
        "%s in %s: %lld of %lld outputs differ from the definition; [%lld, %lld] is %08x and should be %08x", layer,
        format, (long long)h->check.wrong, (long long)h->check.compared, (long long)h->check.row,
        (long long)h->check.column, (unsigned)h->check.got, (unsigned)h->check.expected);
}

/* Stages: one for each work. */
static void tell(const tb_job *job, const tb_item *item)
{
    const tb_work *w = &job->work[item->work];
    if (item > job->item && item[-1].work == item->work) return;
    char formats[48];
    snprintf(formats, sizeof formats, "%d formats", job->formats);
    tb_stage(item->work + 1, job->works, "%s%s%s, %d product%s in %s", w->name, w->model ? " " : "", w->phase,
             w->products, w->products == 1 ? "" : "s", job->formats == 1 ? job->format[0]->name : formats);
}

int tb_run_host(const tb_job *job)
{
    int status = APP_OK;
    for (int i = 0; i < job->items; i++) {
        tb_item *item = &job->item[i];
        const tb_item *same = same_measurement(job, item);
        tell(job, item);
        if (same) {
            item->host = same->host;
            item->repeated = same->work == item->work;
            continue;
        }
        measure_item(job, item);
        const int worse = complain_of_host(job, item);
        status = worse > status ? worse : status;
    }
    app_progress_done();
    if (tb_attention(job) < TB_BUSY)
        app_complain(APP_OK,
                     "other programs had the processors for %.0f %% of the time; this host can do more than that",
                     100 * (1 - tb_attention(job)));
    return status;
}

/* peers.c - OpenBLAS and oneDNN, loaded while the program runs.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "peers.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_format.h>

#include "app/app.h"

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#endif
#endif
#if defined(DNNL_VERSION_MAJOR) && DNNL_VERSION_MAJOR == 2
#define HAVE_ONEDNN 1
#else
#define HAVE_ONEDNN 0 /* its interface changed in version 3 */
#endif

/* ISO C has no cast from an object pointer to a function pointer; POSIX says the bits are the same. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* ---- OpenBLAS ---- */

static struct {
    bool there;
    char version[128];
    void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_threads)(int threads);
    char *(*core)(void);
    char *(*config)(void);
} openblas;

/* The kernels of the instruction set that trnmath itself runs. */
static const char *openblas_core_for(trn_isa isa)
{
    return isa == TRN_ISA_AVX512 ? "SkylakeX" : isa == TRN_ISA_AVX2 ? "Haswell" : NULL;
}

static void load_openblas(trn_isa isa)
{
    const char *core = openblas_core_for(isa);
    if (core) setenv("OPENBLAS_CORETYPE", core, 0);
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0); /* its threads spin 2^20 cycles after a product, not 2^26 */
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    openblas.there = find(library, "cblas_sgemm", &openblas.sgemm) &&
                     find(library, "openblas_set_num_threads", &openblas.set_threads) &&
                     find(library, "openblas_get_corename", &openblas.core) &&
                     find(library, "openblas_get_config", &openblas.config);
    if (!openblas.there) return;
    const char *config = openblas.config(); /* "OpenBLAS 0.3.21 ..." */
    const int words = (int)(strcspn(config, " ") + 1 + strcspn(config + strcspn(config, " ") + 1, " "));
    snprintf(openblas.version, sizeof openblas.version, "%.*s (%s)", words, config, openblas.core());
}

static const char *openblas_version(void) { return openblas.there ? openblas.version : NULL; }

static void *openblas_prepare(const tb_peer_job *job)
{
    if (!openblas.there || job->m > INT_MAX || job->n > INT_MAX || job->k > INT_MAX) return NULL;
    tb_peer_job *copy = app_memory(1, sizeof *copy);
    *copy = *job;
    openblas.set_threads(job->threads);
    return copy;
}

static void openblas_run(void *prepared)
{
    enum { ROW_MAJOR = 101, PLAIN = 111 };
    const tb_peer_job *j = prepared;
    openblas.sgemm(ROW_MAJOR, PLAIN, PLAIN, (int)j->m, (int)j->n, (int)j->k, 1.0f, j->a, (int)j->k, j->b, (int)j->n,
                   0.0f, j->c, (int)j->n);
}

/* ---- oneDNN, version 2 ---- */

#if HAVE_ONEDNN

#define ONEDNN_FUNCTIONS(X)                                                                                            \
    X(dnnl_version)                                                                                                    \
    X(dnnl_engine_create)                                                                                              \
    X(dnnl_stream_create)                                                                                              \
    X(dnnl_memory_desc_init_by_tag)                                                                                    \
    X(dnnl_matmul_desc_init)                                                                                           \
    X(dnnl_primitive_desc_create)                                                                                      \
    X(dnnl_primitive_desc_query_md)                                                                                    \
    X(dnnl_primitive_create)                                                                                           \
    X(dnnl_memory_create)                                                                                              \
    X(dnnl_reorder_primitive_desc_create)                                                                              \
    X(dnnl_primitive_execute)                                                                                          \
    X(dnnl_stream_wait)                                                                                                \
    X(dnnl_memory_destroy)                                                                                             \
    X(dnnl_primitive_destroy)                                                                                          \
    X(dnnl_primitive_desc_destroy)

static struct {
    bool there;
    char version[64];
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    void (*set_threads)(int threads);
#define DECLARE(name) __typeof__(&name) name;
    ONEDNN_FUNCTIONS(DECLARE)
#undef DECLARE
} onednn;

static void load_onednn(void)
{
    if (onednn.there) return;
    void *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    onednn.there = find(library, "omp_set_num_threads", &onednn.set_threads);
#define FIND(name) onednn.there = onednn.there && find(library, #name, &onednn.name);
    ONEDNN_FUNCTIONS(FIND)
#undef FIND
    onednn.there = onednn.there && onednn.dnnl_engine_create(&onednn.engine, dnnl_cpu, 0) == dnnl_success &&
                   onednn.dnnl_stream_create(&onednn.stream, onednn.engine, dnnl_stream_default_flags) == dnnl_success;
    if (!onednn.there) return;
    const dnnl_version_t *v = onednn.dnnl_version();
    snprintf(onednn.version, sizeof onednn.version, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

static const char *onednn_version(void) { return onednn.there ? onednn.version : NULL; }

typedef struct onednn_product {
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c;
    uint16_t *a_codes, *b_codes; /* bf16 only */
    int threads;
} onednn_product;

static void onednn_release(void *prepared)
{
    onednn_product *p = prepared;
    if (!p) return;
    if (p->a) onednn.dnnl_memory_destroy(p->a);
    if (p->b) onednn.dnnl_memory_destroy(p->b);
    if (p->c) onednn.dnnl_memory_destroy(p->c);
    if (p->primitive) onednn.dnnl_primitive_destroy(p->primitive);
    if (p->description) onednn.dnnl_primitive_desc_destroy(p->description);
    free(p->a_codes);
    free(p->b_codes);
    free(p);
}

static dnnl_memory_desc_t onednn_view(int64_t rows, int64_t cols, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    const dnnl_dims_t dims = { rows, cols };
    dnnl_memory_desc_t view;
    memset(&view, 0, sizeof view);
    onednn.dnnl_memory_desc_init_by_tag(&view, 2, dims, type, tag);
    return view;
}

static uint16_t *bf16_copy(const float *x, int64_t n)
{
    uint16_t *codes = malloc(sizeof *codes * (size_t)(n ? n : 1));
    for (int64_t i = 0; codes && i < n; i++) codes[i] = trn_bf16_from_f32(x[i]);
    return codes;
}

/* Puts the weights into the layout that the library likes best. */
static bool onednn_pack(onednn_product *p, const dnnl_memory_desc_t *plain, void *weights)
{
    const dnnl_memory_desc_t *best = onednn.dnnl_primitive_desc_query_md(p->description, dnnl_query_weights_md, 0);
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t reorder = NULL;
    bool ok = onednn.dnnl_memory_create(&from, plain, onednn.engine, weights) == dnnl_success &&
              onednn.dnnl_memory_create(&p->b, best, onednn.engine, DNNL_MEMORY_ALLOCATE) == dnnl_success &&
              onednn.dnnl_reorder_primitive_desc_create(&description, plain, onednn.engine, best, onednn.engine,
                                                        NULL) == dnnl_success &&
              onednn.dnnl_primitive_create(&reorder, description) == dnnl_success;
    if (ok) {
        const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, p->b } };
        ok = onednn.dnnl_primitive_execute(reorder, onednn.stream, 2, args) == dnnl_success;
        onednn.dnnl_stream_wait(onednn.stream);
    }
    if (from) onednn.dnnl_memory_destroy(from);
    if (reorder) onednn.dnnl_primitive_destroy(reorder);
    if (description) onednn.dnnl_primitive_desc_destroy(description);
    return ok;
}

static void *onednn_prepare(const tb_peer_job *j, dnnl_data_type_t type, bool packed)
{
    if (!onednn.there) return NULL;
    onednn_product *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->threads = j->threads;
    onednn.set_threads(j->threads);
    void *a = (void *)(uintptr_t)j->a, *b = (void *)(uintptr_t)j->b;
    if (type == dnnl_bf16) {
        a = p->a_codes = bf16_copy(j->a, j->m * j->k);
        b = p->b_codes = bf16_copy(j->b, j->k * j->n);
    }
    const dnnl_memory_desc_t va = onednn_view(j->m, j->k, type, dnnl_ab), vb = onednn_view(j->k, j->n, type, dnnl_ab);
    const dnnl_memory_desc_t vc = onednn_view(j->m, j->n, dnnl_f32, dnnl_ab);
    const dnnl_memory_desc_t weights = packed ? onednn_view(j->k, j->n, type, dnnl_format_tag_any) : vb;
    dnnl_matmul_desc_t matmul;
    const bool ok =
        a && b && onednn.dnnl_matmul_desc_init(&matmul, &va, &weights, NULL, &vc) == dnnl_success &&
        onednn.dnnl_primitive_desc_create(&p->description, &matmul, NULL, onednn.engine, NULL) == dnnl_success &&
        onednn.dnnl_primitive_create(&p->primitive, p->description) == dnnl_success &&
        onednn.dnnl_memory_create(&p->a, &va, onednn.engine, a) == dnnl_success &&
        onednn.dnnl_memory_create(&p->c, &vc, onednn.engine, j->c) == dnnl_success &&
        (packed ? onednn_pack(p, &vb, b) : onednn.dnnl_memory_create(&p->b, &vb, onednn.engine, b) == dnnl_success);
    if (ok) return p;
    onednn_release(p);
    return NULL;
}

static void *onednn_prepare_f32(const tb_peer_job *job) { return onednn_prepare(job, dnnl_f32, false); }
static void *onednn_prepare_packed(const tb_peer_job *job) { return onednn_prepare(job, dnnl_f32, true); }
static void *onednn_prepare_bf16(const tb_peer_job *job) { return onednn_prepare(job, dnnl_bf16, false); }

static void onednn_run(void *prepared)
{
    const onednn_product *p = prepared;
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, p->a }, { DNNL_ARG_WEIGHTS, p->b }, { DNNL_ARG_DST, p->c } };
    onednn.set_threads(p->threads);
    onednn.dnnl_primitive_execute(p->primitive, onednn.stream, 3, args);
    onednn.dnnl_stream_wait(onednn.stream);
}

/* ---- its conversions ---- */

static bool onednn_type(trn_format format, dnnl_data_type_t *type)
{
    static const struct {
        trn_format format;
        dnnl_data_type_t type;
    } row[] = { { TRN_F32, dnnl_f32 }, { TRN_BF16, dnnl_bf16 }, { TRN_F16, dnnl_f16 },
                { TRN_I8, dnnl_s8 },   { TRN_U8, dnnl_u8 },     { TRN_I32, dnnl_s32 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        *type = row[i].type;
        if (row[i].format == format) return true;
    }
    return false;
}

/* onednn_product with a for what is read and c for what is written */
void *tb_reorder_prepare(const tb_reorder_job *j)
{
    const dnnl_dims_t dims = { j->n };
    dnnl_memory_desc_t from, to;
    dnnl_data_type_t from_type, to_type;
    if (!onednn.there || !onednn_type(j->from, &from_type) || !onednn_type(j->to, &to_type)) return NULL;
    onednn_product *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    memset(&from, 0, sizeof from);
    memset(&to, 0, sizeof to);
    p->threads = j->threads;
    onednn.set_threads(j->threads);
    const bool ok = onednn.dnnl_memory_desc_init_by_tag(&from, 1, dims, from_type, dnnl_a) == dnnl_success &&
                    onednn.dnnl_memory_desc_init_by_tag(&to, 1, dims, to_type, dnnl_a) == dnnl_success &&
                    onednn.dnnl_reorder_primitive_desc_create(&p->description, &from, onednn.engine, &to, onednn.engine,
                                                              NULL) == dnnl_success &&
                    onednn.dnnl_primitive_create(&p->primitive, p->description) == dnnl_success &&
                    onednn.dnnl_memory_create(&p->a, &from, onednn.engine, (void *)(uintptr_t)j->src) == dnnl_success &&
                    onednn.dnnl_memory_create(&p->c, &to, onednn.engine, j->dst) == dnnl_success;
    if (ok) return p;
    onednn_release(p);
    return NULL;
}

void tb_reorder_run(void *prepared)
{
    const onednn_product *p = prepared;
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, p->a }, { DNNL_ARG_TO, p->c } };
    onednn.set_threads(p->threads);
    onednn.dnnl_primitive_execute(p->primitive, onednn.stream, 2, args);
    onednn.dnnl_stream_wait(onednn.stream);
}

#else

void *tb_reorder_prepare(const tb_reorder_job *job) { return (void)job, NULL; }
void tb_reorder_run(void *prepared) { (void)prepared; }
static void load_onednn(void) {}
static const char *onednn_version(void) { return NULL; }
static void *absent(const tb_peer_job *job) { return (void)job, NULL; }
static void onednn_run(void *prepared) { (void)prepared; }
static void onednn_release(void *prepared) { (void)prepared; }
#define onednn_prepare_f32 absent
#define onednn_prepare_packed absent
#define onednn_prepare_bf16 absent

#endif

/* ---- the table ---- */

static const struct {
    const char *name;
    const char *(*version)(void);
    void *(*prepare)(const tb_peer_job *job);
    void (*run)(void *prepared);
    void (*release)(void *prepared);
} peers[TB_PEERS] = {
    { "openblas", openblas_version, openblas_prepare, openblas_run, free },
    { "onednn_f32", onednn_version, onednn_prepare_f32, onednn_run, onednn_release },
    { "onednn_f32_packed", onednn_version, onednn_prepare_packed, onednn_run, onednn_release },
    { "onednn_bf16", onednn_version, onednn_prepare_bf16, onednn_run, onednn_release },
};

void tb_peers_load(trn_isa isa, bool with_onednn)
{
    load_openblas(isa);
    if (with_onednn) load_onednn();
}

void tb_onednn_load(void) { load_onednn(); }
const char *tb_onednn_version(void) { return onednn_version(); }
void tb_reorder_release(void *prepared) { onednn_release(prepared); }

const char *tb_peer_name(tb_peer_id id) { return peers[id].name; }
const char *tb_peer_version(tb_peer_id id) { return peers[id].version(); }
void *tb_peer_prepare(tb_peer_id id, const tb_peer_job *job) { return peers[id].prepare(job); }
void tb_peer_run(tb_peer_id id, void *prepared) { peers[id].run(prepared); }
void tb_peer_release(tb_peer_id id, void *prepared) { peers[id].release(prepared); }

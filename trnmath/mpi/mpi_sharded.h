/* mpi/mpi_sharded.h - a product of sharded matrices across processes: each multiplies for its own chips.
 * A part of trn_mpi.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mpi.h> // cc -DTRN_USE_MPI $(pkg-config --cflags --libs ompi-c) ... -lm
 *     int main(int argc, char **argv) { // K over four chips, which 1, 2 or 4 processes share
 *         MPI_Init(&argc, &argv);
 *         const trn_topology net = trn_topology_ring(4, 128e9, 1e-6);
 *         const trn_mpi mpi = trn_mpi_world();
 *         static float a[4][8 * 2], b[4][2 * 8], c[4][8 * 8];
 *         trn_tensor part[3][4];
 *         trn_mesh mesh;
 *         trn_sharded_matmul_args args = { .mesh = &mesh, .m = 8, .n = 8, .k = 8 };
 *         for (int i = 0; i < 4; i++) {
 *             for (int k = 0; k < 16; k++) a[i][k] = b[i][k] = 1;
 *             part[0][i] = trn_tensor_2d(TRN_F32, a[i], 8, 2);
 *             part[1][i] = trn_tensor_2d(TRN_F32, b[i], 2, 8);
 *             part[2][i] = trn_tensor_2d(TRN_F32, c[i], 8, 8);
 *         }
 *         args.a = part[0], args.b = part[1], args.dst = part[2]; // of the chips of others nothing is looked at
 *         int wrong = trn_mesh_init(&mesh, &net, "tensor=4") != TRN_OK;
 *         trn_pspec_parse(&args.a_spec, &mesh, "(*, tensor)");
 *         trn_pspec_parse(&args.b_spec, &mesh, "(tensor, *)");
 *         wrong = wrong || trn_mpi_sharded_matmul(&mpi, &args) || c[trn_mpi_first_chip(&mpi, &net)][63] != 8;
 *         MPI_Finalize();
 *         return wrong;
 *     }
 *
 * DOES: trn_sharded_matmul, step by step: operands move to where they are multiplied, each device's product is one
 *     trn_matmul on what it holds, sums are trn_mpi_collective_run's. The bits are those of one process. Memory for the
 *     parts of others is reserved but not touched. A process that is late, gone or was asked something else, in any
 *     field but the views, ends the call everywhere; no part of dst has been written then.
 * DOES NOT: take MX scales or int8 operands.
 *
 * KNOWN FROM: sharded/sharded_matmul.h, trn_mpi.h.
 */
#ifndef TRNI_MPI_MPI_SHARDED_H
#define TRNI_MPI_MPI_SHARDED_H

#include "mpi_collective.h"
#include "../sharded/reshard.h"
#include "../sharded/sharded_matmul.h"

#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0

/* ---- the call ---- */

/* Collective. A process without a device gives the formats in .matmul.a, .b and .dst. TRN_EINVAL: processes were asked
 * different things; TRN_EIO: one is late or gone; see trn_mpi_collective_run. */
TRN_API trn_status trn_mpi_sharded_matmul(const trn_mpi *mpi, const trn_sharded_matmul_args *args);

#if TRNI_BODIES

#include "../sharded/sharded_signature.h"

typedef struct trni_mpi_product {
    const trn_mpi *mpi;
    trn_sharded_matmul_args args; /* the caller's, with parts of our own for the devices of others */
    trni_sharded s;
    trni_mail mail;
    trni_signature signature;
    int taken;
    trni_own_parts a, b, dst;       /* as the caller has them */
    trni_own_parts a_at, b_at;      /* where they are multiplied */
    trni_own_parts product, result; /* as multiplied; as dst wants it */
} trni_mpi_product;

TRNI_FN int trni_mpi_device_process(const trni_mpi_product *p, int device)
{
    return trni_mpi_owner(p->mpi, p->mail.processes, p->args.mesh->net, trn_mesh_chip(p->args.mesh, device));
}

TRNI_FN bool trni_mpi_device_here(const trni_mpi_product *p, int device)
{
    return trni_mpi_device_process(p, device) == p->mail.me;
}

/* ---- moves ---- */

/* First pass: what is here is copied at once, what has to travel is sent or awaited. */
TRNI_FN trn_status trni_mpi_piece_post(void *user, int from, int to, trn_tensor dst, trn_tensor src)
{
    trni_mpi_product *p = (trni_mpi_product *)user;
    const int here = trni_mpi_device_process(p, from), there = trni_mpi_device_process(p, to), me = p->mail.me;
    const int64_t bytes = trn_tensor_elements(src) * (int64_t)trn_format_bytes(src.format);
    trn_shard_args plain;
    memset(&plain, 0, sizeof plain);
    if ((here != me && there != me) || bytes == 0) return TRN_OK;
    if (here == there) {
        trni_shard_copy(&plain, dst, src);
        return TRN_OK;
    }
    char *message = (char *)malloc((size_t)bytes);
    if (!message)
        return trni_fail(p->mail.error, TRN_ENOSPC, "%s: no memory for a message of %lld bytes", p->mail.what,
                         (long long)bytes);
    trn_tensor packed = trn_tensor_nd(src.format, message, src.rank, src.shape);
    packed.cfp8 = src.cfp8;
    if (here == me) trni_shard_copy(&plain, packed, src);
    const trn_status status = trni_mail_post(&p->mail, here == me, here == me ? there : here, message, bytes, true);
    if (status != TRN_OK) free(message);
    return status;
}

/* Second pass, in the same order: what came is unpacked. */
TRNI_FN trn_status trni_mpi_piece_take(void *user, int from, int to, trn_tensor dst, trn_tensor src)
{
    trni_mpi_product *p = (trni_mpi_product *)user;
    const int here = trni_mpi_device_process(p, from), there = trni_mpi_device_process(p, to), me = p->mail.me;
    trn_shard_args plain;
    memset(&plain, 0, sizeof plain);
    if ((here != me && there != me) || here == there || trn_tensor_elements(src) == 0) return TRN_OK;
    char *message = p->mail.buffer[p->taken++];
    trn_tensor packed = trn_tensor_nd(src.format, message, src.rank, src.shape);
    packed.cfp8 = src.cfp8;
    if (there == me) trni_shard_copy(&plain, dst, packed);
    return TRN_OK;
}

TRNI_FN trn_status trni_mpi_relay(void *user, const trni_relay *relay)
{
    trni_mpi_product *p = (trni_mpi_product *)user;
    trni_relay both = *relay;
    trn_status status = TRN_OK;
    both.user = user;
    both.piece = trni_mpi_piece_post;
    p->taken = 0;
    for (int i = 0; i < relay->mesh->devices && status == TRN_OK; i++) status = trni_relay_device(&both, i);
    if (status == TRN_OK) status = trni_mail_wait(&p->mail, "moving operands");
    both.piece = trni_mpi_piece_take;
    for (int i = 0; i < relay->mesh->devices && status == TRN_OK; i++) status = trni_relay_device(&both, i);
    trni_mail_clear(&p->mail, status == TRN_OK);
    return status;
}

TRNI_FN trn_status trni_mpi_way_run(void *user, const trn_collective_args *args)
{
    const trni_mpi_product *p = (const trni_mpi_product *)user;
    return trn_mpi_collective_run(p->mpi, args);
}

/* ---- the parts of others ---- */

/* Views for all devices: the caller's own for those that are here, memory that nobody touches for the rest. */
TRNI_FN trn_status trni_mpi_parts(const trni_mpi_product *p, trni_own_parts *own, const char *name,
                                  const trn_pspec *spec, int64_t rows, int64_t columns, const trn_tensor *views,
                                  trn_format *format)
{
    const trn_mesh *mesh = p->args.mesh;
    int first = 0;
    if (!views) return trni_fail(p->mail.error, TRN_EINVAL, "%s is null", name);
    while (first < mesh->devices && !trni_mpi_device_here(p, first)) first++;
    if (first < mesh->devices) *format = views[first].format;
    if (!trni_format_valid(*format) || *format == TRN_CFP8 || *format == TRN_I8)
        return trni_fail(p->mail.error, TRN_EUNSUPPORTED, "%s is %s, which products across processes do not take", name,
                         trn_format_name(*format));
    const trn_tensor whole = trn_tensor_2d(*format, NULL, rows, columns);
    const trn_status status = trni_own_parts_make(own, mesh, spec, &whole, p->mail.error);
    for (int i = 0; status == TRN_OK && i < mesh->devices; i++)
        if (trni_mpi_device_here(p, i)) own->view[i] = views[i];
    return status;
}

TRNI_FN trn_status trni_mpi_product_owners(const trni_mpi_product *p, const trn_sharded_matmul_args *args,
                                           uint64_t *owners)
{
    trn_status status = TRN_OK;
    if (!args->mesh || !args->mesh->net) return trni_fail(args->error, TRN_EINVAL, "mesh is null");
    for (int i = 0; i < args->mesh->devices && status == TRN_OK; i++)
        status = trni_mpi_owner_check(&p->mail, args->mesh->net, trn_mesh_chip(args->mesh, i), owners);
    return status;
}

TRNI_FN trn_status trni_mpi_product_resolve(trni_mpi_product *p, const trn_sharded_matmul_args *args)
{
    trn_format a = args->matmul.a.format, b = args->matmul.b.format, dst = args->matmul.dst.format;
    p->args = *args;
    p->args.cost_only = false;
    if (args->a_scale || args->b_scale)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "products across processes take no MX scales");
    if (args->m < 0 || args->n < 0 || args->k < 0)
        return trni_fail(args->error, TRN_ESHAPE, "m = %lld, n = %lld, k = %lld: one is negative", (long long)args->m,
                         (long long)args->n, (long long)args->k);
    trn_status status = trni_mpi_parts(p, &p->a, "a", &args->a_spec, args->m, args->k, args->a, &a);
    if (status == TRN_OK) status = trni_mpi_parts(p, &p->b, "b", &args->b_spec, args->k, args->n, args->b, &b);
    if (status == TRN_OK)
        status = trni_mpi_parts(p, &p->dst, "dst", &args->dst_spec, args->m, args->n, args->dst, &dst);
    if (status != TRN_OK) return status;
    p->args.a = p->a.view;
    p->args.b = p->b.view;
    p->args.dst = p->dst.view;
    status = trni_sharded_resolve(&p->s, &p->args);
    if (status == TRN_OK) status = trni_sharded_check_modes(&p->s);
    if (status == TRN_OK) status = trni_sharded_time(&p->s);
    return status == TRN_OK ? trni_sharded_check_views(&p->s) : status;
}

/* ---- one product ---- */

/* Parts as multiplied: F32 where they are still to be summed, else dst's format. */
TRNI_FN trn_status trni_mpi_product_capacity(trni_mpi_product *p)
{
    const trni_sharded *s = &p->s;
    trn_tensor product = s->product, result = s->product;
    product.format = TRN_F32;
    result.format = s->plan.product.sum ? TRN_F32 : s->dst;
    trn_status status = trni_own_parts_make(&p->a_at, s->mesh, &s->plan.a_at, &s->a_whole, p->mail.error);
    if (status == TRN_OK) status = trni_own_parts_make(&p->b_at, s->mesh, &s->plan.b_at, &s->b_whole, p->mail.error);
    if (status == TRN_OK) status = trni_own_parts_make(&p->product, s->mesh, &s->plan.product, &product, p->mail.error);
    return status == TRN_OK ? trni_own_parts_make(&p->result, s->mesh, &s->dst_spec, &result, p->mail.error) : status;
}

TRNI_FN trn_status trni_mpi_multiply(const trni_mpi_product *p)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < p->args.mesh->devices && status == TRN_OK; i++) {
        trn_matmul_args m = p->args.matmul;
        if (!trni_mpi_device_here(p, i)) continue;
        m.a = p->a_at.view[i];
        m.b = p->b_at.view[i];
        m.dst = p->product.view[i];
        m.a_scale = m.b_scale = trni_no_tensor();
        m.accumulate = false;
        m.rounding = TRN_NEAREST_EVEN; /* nothing is rounded yet */
        m.scratch = NULL;
        m.packed = NULL; /* it holds another b */
        m.error = p->mail.error;
        status = trn_matmul(&m);
    }
    return status;
}

/* One rounding to dst's format, of a part that is nobody's summand: each element draws the word of its place in the
 * whole, as trn_matmul of the wholes would. */
TRNI_FN trn_status trni_mpi_round_part(const trni_mpi_product *p, int device, trn_tensor dst, trn_tensor src)
{
    const trni_sharded *s = &p->s;
    const trn_box box = trn_shard_box(s->mesh, &s->plan.product, &s->product, device);
    trn_status status = TRN_OK;
    for (int64_t r = 0; r < box.count[0] && status == TRN_OK; r++) {
        trn_convert_args c;
        memset(&c, 0, sizeof c);
        c.dst = trn_tensor_slice(dst, 0, r, 1);
        c.src = trn_tensor_slice(src, 0, r, 1);
        c.rounding = p->args.matmul.rounding;
        c.overflow = p->args.matmul.overflow;
        c.seed = p->args.matmul.seed;
        c.stream = p->args.matmul.stream;
        c.index = (uint64_t)((box.first[0] + r) * s->ask->n + box.first[1]);
        c.isa = p->args.matmul.isa;
        c.error = p->mail.error;
        status = trn_convert(&c);
    }
    return status;
}

/* From where it was multiplied to where dst wants it, summed on the way if K was cut. */
TRNI_FN trn_status trni_mpi_arrange(trni_mpi_product *p)
{
    const trni_sharded *s = &p->s;
    const trni_transport by = { trni_mpi_relay, trni_mpi_way_run, p };
    trni_own_parts rounded = { NULL, NULL };
    trn_tensor whole = s->product;
    trn_status status = TRN_OK;
    whole.format = s->plan.product.sum ? TRN_F32 : s->dst;
    if (!s->plan.product.sum) {
        status = trni_own_parts_make(&rounded, s->mesh, &s->plan.product, &whole, p->mail.error);
        for (int i = 0; i < s->mesh->devices && status == TRN_OK; i++)
            if (trni_mpi_device_here(p, i)) status = trni_mpi_round_part(p, i, rounded.view[i], p->product.view[i]);
    }
    trn_redistribute_args ask = trni_sharded_redistribution(s, &s->plan.product, &s->dst_spec, &whole);
    ask.src = rounded.view ? rounded.view : p->product.view;
    ask.dst = p->result.view;
    ask.error = p->mail.error;
    trni_way way;
    memset(&way, 0, sizeof way);
    way.ask = &ask;
    way.by = &by;
    way.plan = s->plan.result;
    if (status == TRN_OK) status = trni_way_run(&way);
    trni_own_parts_free(&way.mine);
    trni_own_parts_free(&rounded);
    return status;
}

TRNI_FN trn_status trni_mpi_product_steps(trni_mpi_product *p)
{
    const trni_sharded *s = &p->s;
    trn_status status = trni_mpi_product_capacity(p);
    const trni_relay a = { s->mesh,      &s->a_spec,         &s->plan.a_at, &s->a_whole, p->a.view,
                           p->a_at.view, p->args.matmul.isa, NULL,          NULL };
    const trni_relay b = { s->mesh,      &s->b_spec,         &s->plan.b_at, &s->b_whole, p->b.view,
                           p->b_at.view, p->args.matmul.isa, NULL,          NULL };
    if (status == TRN_OK) status = trni_mpi_relay(p, &a);
    if (status == TRN_OK) status = trni_mpi_relay(p, &b);
    if (status == TRN_OK) status = trni_mpi_multiply(p);
    return status == TRN_OK ? trni_mpi_arrange(p) : status;
}

/* ---- the call ---- */

TRNI_FN void trni_mpi_product_write(const trni_mpi_product *p)
{
    trn_shard_args plain;
    memset(&plain, 0, sizeof plain);
    for (int i = 0; i < p->args.mesh->devices; i++) {
        if (!trni_mpi_device_here(p, i)) continue;
        if (p->s.plan.product.sum)
            trni_sharded_round(&p->s, p->dst.view[i], p->result.view[i]);
        else
            trni_shard_copy(&plain, p->dst.view[i], p->result.view[i]);
    }
}

/* What one process can find wrong by itself, and its signature. */
TRNI_FN trn_status trni_mpi_product_prepare(trni_mpi_product *p, const trn_sharded_matmul_args *args)
{
    uint64_t owners = 0;
    trn_status status = trni_mpi_product_owners(p, args, &owners);
    if (status == TRN_OK) status = trni_mpi_product_resolve(p, args);
    if (status != TRN_OK) return status;
    trni_signature_product(&p->signature, &p->s);
    trni_mpi_signature(&p->signature, owners);
    trni_signature_close(&p->signature);
    return TRN_OK;
}

TRNI_FN trn_status trni_mpi_product_run(trni_mpi_product *p, const trn_sharded_matmul_args *args)
{
    trni_signature_begin(&p->signature, TRNI_CALL_PRODUCT);
    trn_status status = trni_mpi_agree(&p->mail, &p->signature, TRNI_CALL_BEGINS, trni_mpi_product_prepare(p, args));
    if (status == TRN_OK) status = trni_mpi_agree(&p->mail, &p->signature, TRNI_CALL_ENDS, trni_mpi_product_steps(p));
    if (status == TRN_OK) trni_mpi_product_write(p);
    if (status == TRN_OK) trni_sharded_tell(&p->s);
    return status;
}

TRN_API trn_status trn_mpi_sharded_matmul(const trn_mpi *mpi, const trn_sharded_matmul_args *args)
{
    TRNI_ENTER(args);
    if (!mpi) return trni_fail(args->error, TRN_EINVAL, "mpi is null");
    trni_mpi_product *p = (trni_mpi_product *)calloc(1, sizeof *p);
    if (!p) return trni_fail(args->error, TRN_ENOSPC, "no memory for a job");
    trni_mpi_call call;
    trni_mpi_enter(&call, &p->mail, mpi, "sharded_matmul", args->error);
    p->mpi = mpi;
    const trn_status status = trni_mpi_product_run(p, args);
    trni_mpi_leave(&call, &p->mail);
    if (!p->mail.abandoned && status != TRN_EIO) { /* else messages may still arrive in these */
        trni_own_parts *const all[] = { &p->a, &p->b, &p->dst, &p->a_at, &p->b_at, &p->product, &p->result };
        for (int i = 0; i < 7; i++) trni_own_parts_free(all[i]);
        free(p);
    }
    return status;
}

#endif /* TRNI_BODIES */
#endif /* TRN_USE_MPI */

#endif /* TRNI_MPI_MPI_SHARDED_H */

/* cores/cores.h - calls between the NeuronCores that run one kernel.
 * A part of trn_cores.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_CORES_CORES_H
#define TRNI_CORES_CORES_H

#include "cores_args.h"

/* ---- begin, run, end ---- */

/* TRN_EINVAL, TRN_ELIMIT, TRN_ENOSPC, with cores->failure.text: nothing is to be ended. */
TRN_API trn_status trn_cores_begin(trn_cores *cores, const trn_cores_args *args);

/* The kernel on every core, until all have ended. May be called again, with this kernel or another: cores keep their
 * tiles and their time. TRN_OK, or the first failure, by round and rank: after it nothing more happens, calls in
 * kernels return it at once, and so does the next run. TRN_EUNSUPPORTED: more than one rank on a host without
 * threads. */
TRN_API trn_status trn_cores_run(trn_cores *cores, trn_cores_kernel *kernel, void *user);

/* What all of them have done so far; between runs. */
TRN_API void trn_cores_report_of(const trn_cores *cores, trn_cores_report *out);

/* Gives all memory back. */
TRN_API void trn_cores_end(trn_cores *cores);

/* ---- cores of a logical core ---- */

/* Nobody goes on before all have come: what they have done to `data` before is done, what is done to it after waits.
 * Takes a step inside the chip (assumed), or for .all what an all-reduce of no bytes takes. From Trainium2 on. */
TRN_API trn_status trn_cores_barrier(trn_cores_rank *self, const trn_cores_barrier_args *args);

/* src goes to the dst of send_to_rank, while dst gets the src of recv_from_rank. Bits move. From Trainium2 on; lnc of 2
 * and more. */
TRN_API trn_status trn_cores_sendrecv(trn_cores_rank *self, const trn_cores_sendrecv_args *args);

/* A tensor in HBM that the cores of a logical core share: whoever asks first makes it, full of zeros, and the others
 * get the same memory by the same name. It lives until trn_cores_end. A tensor of rank 0 after a failure, or when there
 * is no memory for it. */
TRN_API trn_tensor trn_cores_hbm(trn_cores_rank *self, const char *name, trn_format format, int rank,
                                 const int64_t *shape);

/* ---- collectives ---- */

/* The lists along axes of a mesh whose chips have ranks here, as trn_mesh_groups orders them. all_cores: all ranks of a
 * chip are in a list, one after the other; else each of a chip's ranks has a list of its own. rank: room for rank_ids,
 * to which out->rank points. TRN_EINVAL: an axis does not exist, or a chip has no rank. */
TRN_API trn_status trn_cores_mesh_group(const trn_cores *cores, const trn_mesh *mesh, const int *axis, int axes,
                                        bool all_cores, int *rank, trn_replica_group *out);

/* Views lie in HBM or, one with two axes, in SBUF; those of one call all in the same memory. All have the same format.
 *     all_reduce       dst = the sum (maximum, minimum) of all src, in the shape of src
 *     all_gather       dst = all src, joined along collective_dim in the order of the list: 0, in SBUF also 1
 *     reduce_scatter   dst = of the sum (maximum, minimum) the share of this rank along axis 0
 *     all_to_all       share i of dst = of the src of member i the share of this rank, along axis 0; HBM only
 * Sums are those of trn_collective_run for the same list; of several tensors at once, by the algorithm for all their
 * bytes. */
TRN_API trn_status trn_cores_all_reduce(trn_cores_rank *self, const trn_cores_collective_args *args);
TRN_API trn_status trn_cores_all_gather(trn_cores_rank *self, const trn_cores_collective_args *args);
TRN_API trn_status trn_cores_reduce_scatter(trn_cores_rank *self, const trn_cores_collective_args *args);
TRN_API trn_status trn_cores_all_to_all(trn_cores_rank *self, const trn_cores_collective_args *args);

/* src and dst, in HBM, are runs of elements. all_to_all_v: member j gets metadata[0, j] elements of src from
 * metadata[1, j] on. all_gather_v: everybody gets the same metadata[0, 0] elements from metadata[1, 0] on. What comes
 * from member i goes into slot i of dst (documented for all_gather_v, assumed for all_to_all_v), or to metadata[3, i];
 * other elements of dst stay. Takes what an even one takes in which everybody has as much as the one with the most,
 * after one of 4 bytes a rank that tells how much there will be (assumed). */
TRN_API trn_status trn_cores_all_gather_v(trn_cores_rank *self, const trn_cores_collective_args *args);
TRN_API trn_status trn_cores_all_to_all_v(trn_cores_rank *self, const trn_cores_collective_args *args);

/* dst = the src of whoever sends to this rank. HBM only. Who is in no pair goes on at once; of who only sends, dst is
 * not touched, of who only receives, src. */
TRN_API trn_status trn_cores_collective_permute(trn_cores_rank *self, const trn_cores_collective_args *args);

/* dst = the src of the neighbour in a ring: on even channels of the one before in the list, on odd channels of the one
 * after (assumed: NKI leaves it to the runtime). In HBM or SBUF, up to 4 channels in one call. _reduce sends src +
 * src1, added as trn_dma_compute adds. */
TRN_API trn_status trn_cores_collective_permute_implicit(trn_cores_rank *self, const trn_cores_collective_args *args);
TRN_API trn_status trn_cores_collective_permute_implicit_reduce(trn_cores_rank *self,
                                                                const trn_cores_collective_args *args);

/* The rank_id whose data a rank has after so many implicit permutes; -1 when it is in no list. */
TRN_API int trn_cores_current_processing_rank_id(const trn_cores_rank *self, int iteration_id,
                                                 const trn_replica_group *replica_group, int channel_id);

#if TRNI_BODIES

#include "cores_report.h"
#include "cores_run.h"

/* ---- begin, run, end ---- */

TRN_API trn_status trn_cores_begin(trn_cores *cores, const trn_cores_args *args)
{
    TRNI_FLOATS;
    memset(cores, 0, sizeof *cores);
    cores->args = *args;
    trn_status status = trni_cores_check_net(cores);
    if (!status) status = trni_cores_check_counts(cores);
    if (!status) status = trni_cores_allocate(cores);
    for (int r = 0; r < cores->ranks && !status; r++) status = trni_cores_begin_rank(cores, r);
    if (status) {
        trni_cores_free(cores);
        if (args->error) *args->error = cores->failure;
    }
    return status;
}

TRN_API trn_status trn_cores_run(trn_cores *cores, trn_cores_kernel *kernel, void *user)
{
    TRNI_FLOATS;
    if (cores->failure.status) return cores->failure.status;
    if (!cores->work || !kernel)
        return trni_fail(cores->args.error, TRN_EINVAL, kernel ? "these cores have ended" : "kernel is null");
    cores->work->kernel = kernel;
    cores->work->user = user;
    for (int r = 0; r < cores->ranks; r++) cores->work->message[r].state = TRNI_CORES_READY;
    cores->work->over = false;
    const bool alone = cores->ranks == 1 && !cores->args.exchange;
    const trn_status status = alone ? trni_cores_run_alone(cores) : trni_cores_run_threads(cores);
    if (status) trni_cores_fail(cores);
    trni_cores_drain(cores);
    for (int r = 0; r < cores->ranks; r++) cores->time_s = fmax(cores->time_s, cores->rank[r].core.time_s);
    return status;
}

TRN_API void trn_cores_report_of(const trn_cores *cores, trn_cores_report *out)
{
    TRNI_FLOATS;
    memset(out, 0, sizeof *out);
    if (cores->work) trni_cores_report(cores, out);
}

TRN_API void trn_cores_end(trn_cores *cores) { trni_cores_free(cores); }

/* ---- in a kernel ---- */

TRN_API trn_status trn_cores_barrier(trn_cores_rank *self, const trn_cores_barrier_args *args)
{
    TRNI_FLOATS;
    trni_cores_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.barrier = *args;
    return trni_cores_call_run(self, TRNI_CORES_BARRIER, &ask, args->error);
}

TRN_API trn_status trn_cores_sendrecv(trn_cores_rank *self, const trn_cores_sendrecv_args *args)
{
    TRNI_FLOATS;
    trni_cores_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.sendrecv = *args;
    return trni_cores_call_run(self, TRNI_CORES_SENDRECV, &ask, args->error);
}

#define TRNI_CORES_COLLECTIVE(name, op, ...)                                                                           \
    TRN_API trn_status trn_cores_##name(trn_cores_rank *self, const trn_cores_collective_args *args)                   \
    {                                                                                                                  \
        TRNI_FLOATS;                                                                                                   \
        trni_cores_ask ask;                                                                                            \
        memset(&ask, 0, sizeof ask);                                                                                   \
        ask.collective = *args;                                                                                        \
        return trni_cores_call_run(self, TRNI_CORES_##op, &ask, args->error);                                          \
    }

TRN_API trn_status trn_cores_mesh_group(const trn_cores *cores, const trn_mesh *mesh, const int *axis, int axes,
                                        bool all_cores, int *rank, trn_replica_group *out)
{
    const int each = cores->cores_per_chip / cores->lnc, chips = cores->ranks / cores->cores_per_chip;
    const int groups = mesh->devices <= chips ? trn_mesh_groups(mesh, axis, axes, NULL) : 0;
    if (groups < 1) return TRN_EINVAL;
    int *chip = rank + (size_t)mesh->devices * (size_t)(each - 1); /* at the end, where they are read before written */
    trn_mesh_groups(mesh, axis, axes, chip);
    const int size = mesh->devices / groups;
    out->rank = rank;
    out->count = all_cores ? size * each : size;
    out->groups = all_cores ? groups : groups * each;
    for (int i = 0; i < mesh->devices; i++) {
        int at = 0;
        while (at < chips && trni_cores_chip(cores, at * cores->cores_per_chip) != chip[i]) at++;
        if (at == chips) return TRN_EINVAL;
        chip[i] = at * each;
    }
    trni_cores_lists(rank, chip, groups, size, each, all_cores);
    return TRN_OK;
}

TRN_API int trn_cores_current_processing_rank_id(const trn_cores_rank *self, int iteration_id,
                                                 const trn_replica_group *replica_group, int channel_id)
{
    const trn_replica_group *g = replica_group;
    const int count = g->rank ? g->count : self->rank_ids, groups = g->rank && g->groups ? g->groups : 1;
    for (int64_t i = 0; count > 0 && i < (int64_t)count * groups; i++) {
        if ((g->rank ? g->rank[i] : (int)i) != self->rank_id) continue;
        const int64_t list = i / count * count, at = trni_ring_source(i % count, iteration_id, count, channel_id);
        return g->rank ? g->rank[list + at] : (int)at;
    }
    return -1;
}

TRN_API trn_tensor trn_cores_hbm(trn_cores_rank *self, const char *name, trn_format format, int rank,
                                 const int64_t *shape)
{
    return trni_cores_hbm(self, name ? name : "", format, rank, shape);
}

TRNI_CORES_COLLECTIVES(TRNI_CORES_COLLECTIVE)

#endif /* TRNI_BODIES */

#endif /* TRNI_CORES_CORES_H */

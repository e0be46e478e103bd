/* cores/cores_exchange.h - the messages and the data of calls, from process to process.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: after each round tells the other processes what this one's ranks wait for, and whether something failed here;
 *     then what calls across processes send. All of them then come to the same answers by themselves.
 * DOES NOT: know how messages travel: trn_cores_exchange says (mpi/mpi_cores.h has MPI's).
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_EXCHANGE_H
#define TRNI_CORES_CORES_EXCHANGE_H

#include "cores_match.h"

TRNI_FN int trni_cores_processes(const trn_cores *cores)
{
    return cores->args.exchange ? cores->args.exchange->processes : 1;
}

/* Ranks [first, end) of a process: whole chips. */
TRNI_FN void trni_cores_share_of(const trn_cores *cores, int process, int *first, int *end)
{
    const int64_t chips = cores->ranks / cores->cores_per_chip, processes = trni_cores_processes(cores);
    *first = (int)(trni_ceil_div(chips * process, processes) * cores->cores_per_chip);
    *end = (int)(trni_ceil_div(chips * (process + 1), processes) * cores->cores_per_chip);
}

TRNI_FN bool trni_cores_here(const trn_cores *cores, int rank)
{
    return rank >= cores->first && rank < cores->first + cores->here;
}

/* What each process says first. */
typedef struct trni_cores_head {
    int64_t bytes; /* of its messages */
    int ranks, lnc, cores_per_chip, generation;
    int kind; /* of its failure: the lowest is told; 0 = from the last round */
    trn_error failure;
} trni_cores_head;

enum { TRNI_CORES_FINE = 99 };

TRNI_FN trn_status trni_cores_gather(trn_cores *cores, const void *mine, void *all, const int64_t *counts)
{
    const trn_cores_exchange *x = cores->args.exchange;
    trn_error why;
    memset(&why, 0, sizeof why);
    const trn_status status = x->gather(x->user, mine, counts[x->process], all, counts, &why);
    if (!status) return TRN_OK;
    return trni_fail(&cores->failure, status, "process %d: %.200s", x->process,
                     why.text[0] ? why.text : "its messages do not go through");
}

/* ---- messages as bytes ---- */

TRNI_FN bool trni_cores_counts(const trni_cores_message *message)
{
    return message->state == TRNI_CORES_WAITS &&
           (message->terms.op == TRNI_CORES_ALL_GATHER_V || message->terms.op == TRNI_CORES_ALL_TO_ALL_V);
}

TRNI_FN int64_t trni_cores_message_bytes(const trni_cores_message *message)
{
    const int64_t n = message->members;
    return (int64_t)sizeof *message + n * (int64_t)sizeof(int) +
           (trni_cores_counts(message) ? 4 * n * (int64_t)sizeof(uint32_t) : 0);
}

TRNI_FN void trni_cores_write_messages(const trn_cores *cores, char *at)
{
    for (int r = cores->first; r < cores->first + cores->here; r++) {
        const trni_cores_message *message = &cores->work->message[r];
        const size_t n = (size_t)message->members;
        memcpy(at, message, sizeof *message);
        memcpy(at + sizeof *message, message->member, n * sizeof(int));
        if (trni_cores_counts(message))
            memcpy(at + sizeof *message + n * sizeof(int), message->table, 4 * n * sizeof(uint32_t));
        at += trni_cores_message_bytes(message);
    }
}

TRNI_FN trn_status trni_cores_read_messages(trn_cores *cores, const char *at, const char *end, int first, int last)
{
    for (int r = first; r < last; r++) {
        trni_cores_message *message = &cores->work->message[r], got;
        if (end - at < (int64_t)sizeof got) return TRN_EIO;
        memcpy(&got, at, sizeof got);
        if (got.members < 0 || got.members > cores->ranks || end - at < trni_cores_message_bytes(&got)) return TRN_EIO;
        got.member = message->member;
        got.table = message->table;
        const size_t n = (size_t)got.members;
        memcpy(got.member, at + sizeof got, n * sizeof(int));
        if (trni_cores_counts(&got)) memcpy(got.table, at + sizeof got + n * sizeof(int), 4 * n * sizeof(uint32_t));
        at += trni_cores_message_bytes(&got);
        if (!trni_cores_here(cores, r)) *message = got;
    }
    return TRN_OK;
}

/* ---- the end of a round ---- */

/* Everybody's first words: the first failure of all is everybody's. */
TRNI_DRIVER trn_status trni_cores_agree(trn_cores *cores, const trni_cores_head *head, int64_t *counts)
{
    const int processes = trni_cores_processes(cores), me = cores->args.exchange->process;
    int worst = -1;
    for (int p = 0; p < processes; p++) {
        const trni_cores_head *h = &head[p];
        counts[p] = h->bytes;
        if (h->ranks != head[me].ranks || h->lnc != head[me].lnc || h->cores_per_chip != head[me].cores_per_chip ||
            h->generation != head[me].generation)
            return trni_fail(&cores->failure, TRN_EINVAL,
                             "process %d has %d ranks (%d to a chip, lnc %d, generation "
                             "%d), process %d %d (%d, %d, %d)",
                             me, head[me].ranks, head[me].cores_per_chip, head[me].lnc, head[me].generation, p,
                             h->ranks, h->cores_per_chip, h->lnc, h->generation);
        if (h->failure.status && (worst < 0 || h->kind < head[worst].kind)) worst = p;
    }
    if (worst >= 0) cores->failure = head[worst].failure;
    return cores->failure.status;
}

/* kind: of the failure that this process has. Afterwards all messages are here, or the failure is everybody's. */
TRNI_FN trn_status trni_cores_tell(trn_cores *cores, int kind)
{
    const int processes = trni_cores_processes(cores), me = cores->args.exchange->process;
    trni_cores_head mine, *head = (trni_cores_head *)calloc((size_t)processes, sizeof *head);
    int64_t *counts = (int64_t *)calloc((size_t)processes, sizeof *counts), all = 0;
    char *out = NULL, *in = NULL;
    trn_status status = TRN_OK;
    memset(&mine, 0, sizeof mine);
    for (int r = cores->first; r < cores->first + cores->here; r++)
        mine.bytes += trni_cores_message_bytes(&cores->work->message[r]);
    mine.ranks = cores->ranks;
    mine.lnc = cores->lnc;
    mine.cores_per_chip = cores->cores_per_chip;
    mine.generation = (int)cores->args.core.generation;
    mine.kind = cores->failure.status ? kind : TRNI_CORES_FINE;
    mine.failure = cores->failure;
    if (!head || !counts) status = trni_fail(&cores->failure, TRN_ENOSPC, "could not allocate %d heads", processes);
    for (int p = 0; p < processes && !status; p++) counts[p] = (int64_t)sizeof mine;
    if (!status) status = trni_cores_gather(cores, &mine, head, counts);
    if (!status) status = trni_cores_agree(cores, head, counts);
    for (int p = 0; p < processes && !status; p++) all += counts[p];
    out = status ? NULL : (char *)malloc((size_t)mine.bytes + 1);
    in = status ? NULL : (char *)malloc((size_t)all + 1);
    if (!status && (!out || !in))
        status = trni_fail(&cores->failure, TRN_ENOSPC, "could not allocate %lld bytes of messages", (long long)all);
    if (!status) {
        trni_cores_write_messages(cores, out);
        status = trni_cores_gather(cores, out, in, counts);
    }
    const char *at = in;
    for (int p = 0; p < processes && !status; p++) {
        int first, end;
        trni_cores_share_of(cores, p, &first, &end);
        if (trni_cores_read_messages(cores, at, at + counts[p], first, end))
            status = trni_fail(&cores->failure, TRN_EIO, "process %d: what process %d tells of its ranks is cut short",
                               me, p);
        at += counts[p];
    }
    free(head);
    free(counts);
    free(out);
    free(in);
    return status;
}

/* ---- data ---- */

/* Does the call of this rank reach ranks of more than one process? */
TRNI_FN bool trni_cores_crosses(const trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    const int op = message->terms.op;
    if (op == TRNI_CORES_BARRIER || op == TRNI_CORES_SENDRECV || !message->members) return false;
    int first = 0, end = 0;
    for (int p = 0; p < trni_cores_processes(cores) && message->member[0] >= end; p++)
        trni_cores_share_of(cores, p, &first, &end);
    for (int i = 0; i < message->members; i++)
        if (message->member[i] < first || message->member[i] >= end) return true;
    return false;
}

TRNI_FN int64_t trni_cores_tensor_bytes(const trni_cores_terms *t, const trni_cores_message *message, int i)
{
    int64_t n = (int64_t)trn_format_bytes((trn_format)t->format[i]);
    if (trni_cores_counts(message)) return n * message->elements;
    for (int k = 0; k < t->rank[i]; k++) n *= t->shape[i][k];
    return n;
}

/* Do others than its own process have to know what a rank sends, be it nothing? */
TRNI_FN bool trni_cores_travels(const trn_cores *cores, int rank)
{
    return cores->work->matched[rank] && trni_cores_crosses(cores, rank);
}

/* What a rank sends in its call, both operands of a sum among it. */
TRNI_FN int64_t trni_cores_rank_bytes(const trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    int64_t bytes = 0;
    if (!trni_cores_travels(cores, rank)) return 0;
    for (int i = 0; i < message->terms.tensors; i++) bytes += trni_cores_tensor_bytes(&message->terms, message, i);
    return message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE ? 2 * bytes : bytes;
}

TRNI_FN trn_tensor trni_cores_packed(const trni_cores_message *message, int i, char *at)
{
    const trni_cores_terms *t = &message->terms;
    if (trni_cores_counts(message)) return trn_tensor_1d((trn_format)t->format[i], at, message->elements);
    return trn_tensor_nd((trn_format)t->format[i], at, t->rank[i], t->shape[i]);
}

TRNI_FN trn_status trni_cores_pack(const trni_cores_message *message, const trn_tensor *src, int i, char **at)
{
    trn_dma_copy_args copy;
    memset(&copy, 0, sizeof copy);
    copy.src = *src;
    copy.dst = trni_cores_packed(message, i, *at);
    *at += trni_cores_tensor_bytes(&message->terms, message, i);
    return trn_dma_copy(&copy);
}

/* Elements of dst, where src has so many: of a call of `members`. */
TRNI_FN trn_tensor trni_cores_answer(const trni_cores_message *message, int i, char *at)
{
    trn_tensor t = trni_cores_packed(message, i, at);
    if (message->terms.op == TRNI_CORES_ALL_GATHER) t.shape[0] *= message->members;
    if (message->terms.op == TRNI_CORES_REDUCE_SCATTER) t.shape[0] /= message->members;
    if (trni_cores_counts(message)) t.shape[0] = message->room;
    return t;
}

/* The calls of ranks elsewhere get views: of what they sent, and of room for what they would get. */
TRNI_FN void trni_cores_unpack(trn_cores *cores, char *data, char *room)
{
    for (int r = 0; r < cores->ranks; r++) {
        const trni_cores_message *message = &cores->work->message[r];
        trni_cores_call *call = &cores->work->call[r];
        char *at = data;
        data += trni_cores_rank_bytes(cores, r);
        if (!trni_cores_travels(cores, r) || trni_cores_here(cores, r)) continue;
        for (int i = 0; i < message->terms.tensors; i++) {
            const int64_t bytes = trni_cores_tensor_bytes(&message->terms, message, i);
            call->src[i] = trni_cores_packed(message, i, at);
            call->src1[i] = trni_cores_packed(message, i, at + bytes); /* of a sum; else not looked at */
            at += message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE ? 2 * bytes : bytes;
            call->dst[i] = trni_cores_answer(message, i, room);
            room += trn_tensor_elements(call->dst[i]) * (int64_t)trn_format_bytes(call->dst[i].format);
        }
    }
}

TRNI_FN int64_t trni_cores_room(const trn_cores *cores)
{
    int64_t room = 0;
    for (int r = 0; r < cores->ranks; r++) {
        const trni_cores_message *message = &cores->work->message[r];
        if (trni_cores_here(cores, r) || !trni_cores_travels(cores, r)) continue;
        for (int i = 0; i < message->terms.tensors; i++) {
            const trn_tensor t = trni_cores_answer(message, i, NULL);
            room += trn_tensor_elements(t) * (int64_t)trn_format_bytes(t.format);
        }
    }
    return room;
}

/* What this process sends: of ranks that only receive in a permute, nothing that counts. */
TRNI_FN trn_status trni_cores_pack_all(trn_cores *cores, char *at)
{
    trn_status status = TRN_OK;
    for (int r = cores->first; r < cores->first + cores->here && !status; r++) {
        const trni_cores_message *message = &cores->work->message[r];
        const trni_cores_call *call = &cores->work->call[r];
        if (!trni_cores_travels(cores, r)) continue;
        for (int i = 0; i < message->terms.tensors && !status; i++) {
            status = trni_cores_pack(message, &call->src[i], i, &at);
            if (!status && message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE)
                status = trni_cores_pack(message, &call->src1[i], i, &at);
        }
    }
    return status;
}

/* Calls have been matched: what those across processes send goes to all. */
TRNI_FN trn_status trni_cores_send_data(trn_cores *cores)
{
    const int processes = trni_cores_processes(cores), me = cores->args.exchange->process;
    int64_t *counts = (int64_t *)calloc((size_t)processes, sizeof *counts), all = 0;
    trn_status status = TRN_OK;
    for (int p = 0; p < processes && counts; p++) {
        int first, end;
        trni_cores_share_of(cores, p, &first, &end);
        for (int r = first; r < end; r++) counts[p] += trni_cores_rank_bytes(cores, r);
        all += counts[p];
    }
    const int64_t room = trni_cores_room(cores);
    char *out = counts ? (char *)malloc((size_t)counts[me] + 1) : NULL;
    char *in = out ? (char *)malloc((size_t)all + (size_t)room + 1) : NULL;
    if (!in)
        status =
            trni_fail(&cores->failure, TRN_ENOSPC, "could not allocate %lld bytes of data", (long long)(all + room));
    if (!status && all) status = trni_cores_pack_all(cores, out);
    if (!status && all) status = trni_cores_gather(cores, out, in, counts);
    if (!status) trni_cores_unpack(cores, in, in + all);
    free(counts);
    free(out);
    free(cores->work->data);
    cores->work->data = in;
    return status;
}

#endif /* TRNI_CORES_CORES_EXCHANGE_H */

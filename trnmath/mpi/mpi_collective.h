/* mpi/mpi_collective.h - a collective whose ranks are in several processes: messages, agreement, and the same bits.
 * A part of trn_mpi.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MPI_MPI_COLLECTIVE_H
#define TRNI_MPI_MPI_COLLECTIVE_H

#include "../network/collective.h"

#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0

#include <mpi.h>
#if !defined(_WIN32)
#include <sys/select.h>
#endif

#if TRNI_BODIES
#include "../network/collective_signature.h"
#endif

typedef struct trn_mpi {
    MPI_Comm comm;
    const int *owner; /* [chips] process of each chip; NULL = equal shares of consecutive chips */
    double timeout_s; /* for all messages of one step, the last fifth of it for finding out whose fault it is that one
                         does not come; 0 = 60. Processes may differ in it */
} trn_mpi;

/* MPI_COMM_WORLD, equal shares of chips, the default timeout. MPI must be initialised before it is used. */
TRN_API trn_mpi trn_mpi_world(void);

/* The process (rank in the communicator) that a chip belongs to. */
TRN_API int trn_mpi_owner(const trn_mpi *mpi, const trn_topology *net, int chip);

/* The first chip of the calling process; net->chips when it has none. */
TRN_API int trn_mpi_first_chip(const trn_mpi *mpi, const trn_topology *net);

/* ---- the call ---- */

/* Collective: every process of the communicator calls it with the same arguments but for the views, of which only
 * those of its own chips' ranks are looked at; .bytes, .isa and .error are its own, too. A process without chips in
 * the groups has to give the rest like the others. What is refused is refused everywhere. TRN_EINVAL: a field differs,
 * and everybody is told which, whose it is and what the others have; what one process finds wrong by itself the others
 * are told in its words. TRN_EIO: a process is late or gone, the caller's destinations are untouched, and the
 * communicator is of no more use, as its messages may come any time. Of a process that is lost while it says that all
 * is done, some may have heard and others not: those who have return TRN_OK, with results. (No number of messages
 * closes that gap.) */
TRN_API trn_status trn_mpi_collective_run(const trn_mpi *mpi, const trn_collective_args *args);

#if TRNI_BODIES

TRN_API trn_mpi trn_mpi_world(void)
{
    trn_mpi m;
    m.comm = MPI_COMM_WORLD;
    m.owner = NULL;
    m.timeout_s = 0;
    return m;
}

/* Among so many processes, which the loops below ask for once. */
TRNI_FN int trni_mpi_owner(const trn_mpi *mpi, int processes, const trn_topology *net, int chip)
{
    return mpi->owner ? mpi->owner[chip] : (int)((int64_t)chip * processes / net->chips);
}

TRN_API int trn_mpi_owner(const trn_mpi *mpi, const trn_topology *net, int chip)
{
    int processes = 1;
    MPI_Comm_size(mpi->comm, &processes);
    return trni_mpi_owner(mpi, processes, net, chip);
}

TRN_API int trn_mpi_first_chip(const trn_mpi *mpi, const trn_topology *net)
{
    int me = 0, chip = 0;
    MPI_Comm_rank(mpi->comm, &me);
    while (chip < net->chips && trn_mpi_owner(mpi, net, chip) != me) chip++;
    return chip;
}

/* Below the least upper bound that the standard grants. Signatures keep theirs in all versions. */
enum { TRNI_MPI_SIGNATURE = 0x74726e & 0x7fff, TRNI_MPI_MOVE = TRNI_MPI_SIGNATURE + 1 };

/* ---- messages, with a deadline ---- */

typedef struct trni_mail {
    const trn_mpi *mpi;
    trn_error *error;
    const char *what; /* for sentences */
    char where[40];   /* waited last, for sentences */
    int me, processes, tag;
    bool abandoned; /* messages are still under way: what they read and write must stay */
    MPI_Request *request;
    char **buffer; /* of each request, freed with it; NULL = somebody else's */
    int *peer;     /* of each request */
    int count, capacity;
} trni_mail;

TRNI_FN bool trni_mail_grow(trni_mail *m)
{
    if (m->count < m->capacity) return true;
    const int capacity = m->capacity ? 2 * m->capacity : 64;
    MPI_Request *request = (MPI_Request *)realloc(m->request, sizeof(MPI_Request) * (size_t)capacity);
    if (request) m->request = request;
    char **buffer = (char **)realloc(m->buffer, sizeof(char *) * (size_t)capacity);
    if (buffer) m->buffer = buffer;
    int *peer = (int *)realloc(m->peer, sizeof(int) * (size_t)capacity);
    if (peer) m->peer = peer;
    if (request && buffer && peer) m->capacity = capacity;
    return request && buffer && peer;
}

/* Sends or receives `bytes` at buffer, which is freed when `own` and the step is over. Messages larger than MPI's int
 * counts are refused (2 GiB from one rank to another in one step). */
TRNI_FN trn_status trni_mail_post(trni_mail *m, bool send, int peer, char *buffer, int64_t bytes, bool own)
{
    if (bytes > INT_MAX)
        return trni_fail(m->error, TRN_ELIMIT, "%s: a message of %lld bytes; MPI counts to %d", m->what,
                         (long long)bytes, INT_MAX);
    if (!trni_mail_grow(m))
        return trni_fail(m->error, TRN_ENOSPC, "%s: no memory for %d messages", m->what, m->count + 1);
    MPI_Request *r = &m->request[m->count];
    const int failed = send ? MPI_Isend(buffer, (int)bytes, MPI_BYTE, peer, m->tag, m->mpi->comm, r)
                            : MPI_Irecv(buffer, (int)bytes, MPI_BYTE, peer, m->tag, m->mpi->comm, r);
    if (failed != MPI_SUCCESS)
        return trni_fail(m->error, TRN_EIO, "%s: MPI refuses a message %s process %d", m->what, send ? "to" : "from",
                         peer);
    m->peer[m->count] = peer;
    m->buffer[m->count++] = own ? buffer : NULL;
    return TRN_OK;
}

TRNI_FN double trni_mail_patience(const trni_mail *m) { return m->mpi->timeout_s > 0 ? m->mpi->timeout_s : 60; }

/* One look in vain is over: who has waited for a while sleeps before the next. Where there are more processes than
 * processors, the one that is waited for needs the processor. */
TRNI_FN void trni_mail_rest(double since)
{
#if !defined(_WIN32)
    struct timeval pause = { 0, 50 };
    if (MPI_Wtime() - since > 50e-6) select(0, NULL, NULL, NULL, &pause);
#else
    (void)since;
#endif
}

/* Waits for everything that was posted, until a time of MPI_Wtime. Returns the first message that failed (*failed) or
 * is late; `count` when there is none. */
TRNI_FN int trni_mail_await(trni_mail *m, double until, bool *failed)
{
    double since = MPI_Wtime();
    *failed = false;
    for (int i = 0; i < m->count;) {
        int done = 0;
        *failed = MPI_Test(&m->request[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        if (*failed || (!done && MPI_Wtime() >= until)) return i;
        if (done)
            since = MPI_Wtime();
        else
            trni_mail_rest(since);
        i += done;
    }
    return m->count;
}

/* The same with a sentence, which names the process. A fifth of the time is left for finding out whose fault it is:
 * trni_mpi_blame. */
TRNI_FN trn_status trni_mail_wait(trni_mail *m, const char *where)
{
    const double wait_s = trni_mail_patience(m);
    bool failed;
    trni_copy_text(m->where, sizeof m->where, where);
    const int i = trni_mail_await(m, MPI_Wtime() + 0.8 * wait_s, &failed);
    if (failed)
        return trni_fail(m->error, TRN_EIO, "%s, %s: the message with process %d failed; nothing is written", m->what,
                         where, m->peer[i]);
    if (i < m->count)
        return trni_fail(m->error, TRN_EIO, "%s, %s: process %d has not answered for %g s; nothing is written", m->what,
                         where, m->peer[i], wait_s);
    return TRN_OK;
}

/* Waits a while for what still comes; the least number of a process whose message does not, or `processes`. */
TRNI_FN int trni_mail_linger(trni_mail *m, double wait_s)
{
    const double since = MPI_Wtime();
    for (;;) {
        int silent = m->processes;
        for (int i = 0; i < m->count; i++) {
            int done = 0;
            const bool failed = MPI_Test(&m->request[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
            if ((failed || !done) && m->peer[i] < silent) silent = m->peer[i];
        }
        if (silent == m->processes || MPI_Wtime() >= since + wait_s) return silent;
        trni_mail_rest(since);
    }
}

/* What is still on its way is given up; its memory stays, as MPI may write to it at any time. */
TRNI_FN void trni_mail_clear(trni_mail *m, bool finished)
{
    for (int i = 0; i < m->count; i++) {
        if (finished)
            free(m->buffer[i]);
        else if (m->request[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&m->request[i]);
    }
    m->abandoned = m->abandoned || !finished;
    m->count = 0;
}

/* ---- a call ---- */

typedef struct trni_mpi_call {
    MPI_Errhandler handler; /* the caller's: errors come back as values while a call runs */
} trni_mpi_call;

TRNI_FN void trni_mpi_enter(trni_mpi_call *call, trni_mail *m, const trn_mpi *mpi, const char *what, trn_error *error)
{
    memset(m, 0, sizeof *m);
    MPI_Comm_get_errhandler(mpi->comm, &call->handler);
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(mpi->comm, &m->processes);
    MPI_Comm_rank(mpi->comm, &m->me);
    m->mpi = mpi;
    m->error = error;
    m->what = what;
    m->tag = TRNI_MPI_MOVE;
}

TRNI_FN void trni_mpi_leave(const trni_mpi_call *call, trni_mail *m)
{
    MPI_Comm_set_errhandler(m->mpi->comm, call->handler);
    free(m->request);
    free(m->buffer);
    free(m->peer);
}

/* ---- agreement ---- */

/* The fields of trn_mpi, as network/signature.h has them. */
#define TRNI_SIGNATURE_MPI(X, ARRAY)                                                                                   \
    X(comm, HERE, "what the processes have in common")                                                                 \
    X(owner, HASH, owners)                                                                                             \
    X(timeout_s, HERE, "each process is as patient as it likes")

TRNI_COVERS(trn_mpi, TRNI_SIGNATURE_MPI)

/* owners: a hash of the processes of all chips that take part. */
TRNI_FN void trni_mpi_signature(trni_signature *b, uint64_t owners)
{
    const char *owner = "mpi.";
    TRNI_SIGNATURE_MPI(TRNI_PUT, TRNI_PUT)
}

/* The process of one more chip, into the hash; TRN_EINVAL when there is no such process. */
TRNI_FN trn_status trni_mpi_owner_check(const trni_mail *m, const trn_topology *net, int chip, uint64_t *owners)
{
    const int owner = trni_mpi_owner(m->mpi, m->processes, net, chip);
    *owners = trni_hash(*owners, (uint64_t)(int64_t)owner);
    if (owner >= 0 && owner < m->processes) return TRN_OK;
    return trni_fail(m->error, TRN_EINVAL, "%s: owner[%d] = %d, but the processes are 0 to %d", m->what, chip, owner,
                     m->processes - 1);
}

/* Everybody tells everybody: the signature to all, one from each into word[p]. */
TRNI_FN trn_status trni_mpi_exchange_signatures(trni_mail *m, const trni_signature *mine, uint64_t *word)
{
    trn_status status = TRN_OK;
    uint64_t *own = word + (size_t)m->me * TRNI_SIGNATURE_WORDS;
    memcpy(own, mine->word, (size_t)trni_signature_bytes(mine));
    m->tag = TRNI_MPI_SIGNATURE;
    for (int p = 0; p < m->processes && status == TRN_OK; p++) {
        if (p == m->me) continue;
        char *theirs = (char *)(word + (size_t)p * TRNI_SIGNATURE_WORDS);
        memset(theirs, 0, TRNI_SIGNATURE_BODY * sizeof *word); /* of another version it may be short */
        status = trni_mail_post(m, false, p, theirs, (int64_t)sizeof mine->word, false);
        if (status == TRN_OK) status = trni_mail_post(m, true, p, (char *)own, trni_signature_bytes(mine), false);
    }
    m->tag = TRNI_MPI_MOVE;
    return status;
}

/* A message did not come: whose fault is it? Not that of a process which waits, too, and says so, but of one that says
 * nothing, or what it failed at. */
TRNI_FN trn_status trni_mpi_blame(trni_mail *m, const trni_signatures *all)
{
    const double wait_s = trni_mail_patience(m);
    const int silent = trni_mail_linger(m, 0.2 * wait_s);
    if (silent < m->processes)
        return trni_fail(m->error, TRN_EIO, "%s, %s: process %d has not answered for %g s; nothing is written", m->what,
                         m->where, silent, wait_s);
    for (int p = 0; p < m->processes; p++)
        if (trni_signatures_word(all, p, TRNI_SIGNATURE_STATUS) != TRN_EIO) trni_signatures_well(all, p);
    return TRN_EIO;
}

/* TRN_OK when all are well and were asked the same. A status of one's own comes first. */
TRNI_FN trn_status trni_mpi_agree(trni_mail *m, trni_signature *mine, trni_signature_stage stage, trn_status own)
{
    static const char *const where[] = { "", "agreeing on what to do", "agreeing that all is done" };
    trn_error said;
    said.text[0] = 0;
    if (own != TRN_OK && m->error) said = *m->error;
    uint64_t *word = (uint64_t *)malloc((size_t)m->processes * sizeof mine->word);
    if (!word) return trni_fail(m->error, TRN_ENOSPC, "%s: no memory for %d answers", m->what, m->processes);
    const trni_signatures all = { mine, word, m->processes, m->what, m->error };
    trni_signature_fared(mine, stage, own, &said);
    trn_status status = trni_mpi_exchange_signatures(m, mine, word);
    if (status == TRN_OK) {
        status = own == TRN_EIO ? own : trni_mail_wait(m, where[stage]);
        if (status == TRN_EIO) status = trni_mpi_blame(m, &all);
    }
    const bool finished = status == TRN_OK;
    if (finished) status = trni_signatures_read(&all);
    trni_mail_clear(m, finished);
    if (finished) free(word);
    if (own == TRN_OK || own == TRN_EIO) return status;
    if (m->error) *m->error = said;
    return own;
}

/* ---- a job ---- */

typedef struct trni_mpi_job {
    trni_collective_job job;
    trni_mail mail;
    trni_signature signature;
    uint8_t *away; /* [groups * ranks] */
    char **work;   /* [groups * ranks] buffers of the ranks that are here; each has all elements */
    char *memory;
    trni_fold fold;
    int group;       /* of the present move */
    char **arrived;  /* [ranks] what came for the present move, by the rank it is from; NULL = it is here */
    int64_t *offset; /* of the present range in what came: see trni_mpi_fold_load */
    int taken;       /* requests of this step that the second pass has seen */
} trni_mpi_job;

TRNI_FN int trni_mpi_process(const trni_mpi_job *j, int group, int rank)
{
    return trni_mpi_owner(j->mail.mpi, j->mail.processes, j->job.a->net, trni_chip_of_rank(j->job.a, group, rank));
}

/* ---- what a sub-block is ---- */

/* The elements of one chunk that a move carries. */
typedef struct trni_mpi_range {
    int64_t first, count;
} trni_mpi_range;

/* Chunk number `nth` of those that position `base`'s sub-block v of a stage stands for: owners that agree with it in
 * the stages up to this one and have any digits in the later ones. */
TRNI_FN trni_mpi_range trni_mpi_range_of(const trni_mpi_job *j, int channel, int stage, int owner, int part,
                                         int64_t nth)
{
    const trni_schedule *s = &j->job.schedule;
    const trni_cc_channel *c = &s->channel[channel];
    int position = owner;
    for (int i = stage + 1; i < c->stages; i++) {
        const trni_cc_stage *later = &c->stage[i];
        position += ((int)(nth % later->size) - trni_stage_digit(later, owner)) * later->stride;
        nth /= later->size;
    }
    int64_t first, end;
    trni_part_range(s, j->job.views.elements, j->job.a->granule, trni_rank_at(s, c, position), channel, part, &first,
                    &end);
    const trni_mpi_range r = { first, end - first };
    return r;
}

TRNI_FN int64_t trni_mpi_ranges(const trni_cc_channel *c, int stage)
{
    int64_t n = 1;
    for (int i = stage + 1; i < c->stages; i++) n *= c->stage[i].size;
    return n;
}

/* One move of the schedule, as the processes see it. */
typedef struct trni_mpi_move {
    int group, channel, stage, owner; /* owner: the position whose sub-block it is */
    int step;                         /* of the phase */
    trni_hop hop;
    int base;
} trni_mpi_move;

TRNI_FN int trni_mpi_rank(const trni_mpi_job *j, const trni_mpi_move *m, int member)
{
    const trni_cc_channel *c = &j->job.schedule.channel[m->channel];
    return trni_rank_at(&j->job.schedule, c, m->base + member * c->stage[m->stage].stride);
}

TRNI_FN int64_t trni_mpi_bytes(const trni_mpi_job *j, const trni_mpi_move *m)
{
    const trni_cc_channel *c = &j->job.schedule.channel[m->channel];
    int64_t n = 0;
    for (int64_t i = 0; i < trni_mpi_ranges(c, m->stage); i++)
        n += trni_mpi_range_of(j, m->channel, m->stage, m->owner, m->hop.part, i).count;
    return n * j->job.code_bytes;
}

/* Copies a move's elements between a rank's buffer and a packed message. */
TRNI_FN void trni_mpi_pack(const trni_mpi_job *j, const trni_mpi_move *m, char *work, char *message, bool out)
{
    const trni_cc_channel *c = &j->job.schedule.channel[m->channel];
    const int64_t size = j->job.code_bytes;
    for (int64_t i = 0; i < trni_mpi_ranges(c, m->stage); i++) {
        const trni_mpi_range r = trni_mpi_range_of(j, m->channel, m->stage, m->owner, m->hop.part, i);
        if (r.count > 0)
            memcpy(out ? message : work + r.first * size, out ? work + r.first * size : message,
                   (size_t)(r.count * size));
        message += r.count * size;
    }
}

/* ---- first pass over a step: messages ---- */

/* One source of a move: sent if it is here and the receiver is not, awaited the other way round. */
TRNI_FN trn_status trni_mpi_source(trni_mpi_job *j, const trni_mpi_move *m, int from, int to)
{
    const int here = trni_mpi_process(j, m->group, from), there = trni_mpi_process(j, m->group, to), me = j->mail.me;
    if (here == there || (here != me && there != me)) return TRN_OK;
    const int64_t bytes = trni_mpi_bytes(j, m);
    char *message = (char *)malloc((size_t)bytes + 1);
    if (!message)
        return trni_fail(j->mail.error, TRN_ENOSPC, "%s: no memory for a message of %lld bytes", j->mail.what,
                         (long long)bytes);
    if (here == me) trni_mpi_pack(j, m, j->work[trni_view_index(&j->job.views, m->group, from)], message, true);
    const trn_status status = trni_mail_post(&j->mail, here == me, here == me ? there : here, message, bytes, true);
    if (status != TRN_OK) free(message);
    return status;
}

/* Calls one of the two passes for every pair (source, receiver) of a move, in an order that all processes share. */
typedef trn_status trni_mpi_pair(trni_mpi_job *j, const trni_mpi_move *m, int from, int to);

TRNI_FN trn_status trni_mpi_pairs(trni_mpi_job *j, const trni_mpi_move *m, trni_mpi_pair *each)
{
    const int n = j->job.schedule.channel[m->channel].stage[m->stage].size;
    trn_status status = TRN_OK;
    if (m->hop.sources == TRNI_ALL_MEMBERS || m->hop.to == TRNI_NOBODY) {
        const bool sums = m->hop.sources == TRNI_ALL_MEMBERS;
        const int me = sums ? m->hop.to : m->hop.from[0];
        for (int i = 0; i < n && status == TRN_OK; i++)
            if (i != me) status = each(j, m, trni_mpi_rank(j, m, sums ? i : me), trni_mpi_rank(j, m, sums ? me : i));
        return status;
    }
    const int to = trni_mpi_rank(j, m, m->hop.to);
    for (int i = 0; i < m->hop.sources && status == TRN_OK; i++)
        if (trni_mpi_rank(j, m, m->hop.from[i]) != to) status = each(j, m, trni_mpi_rank(j, m, m->hop.from[i]), to);
    if (status == TRN_OK && m->hop.also != TRNI_NOBODY)
        status = each(j, m, trni_mpi_rank(j, m, m->hop.from[0]), trni_mpi_rank(j, m, m->hop.also));
    return status;
}

TRNI_FN trn_status trni_mpi_send_pass(trni_mpi_job *j, const trni_mpi_move *m)
{
    return trni_mpi_pairs(j, m, trni_mpi_source);
}

/* ---- second pass: what came is put to use ---- */

/* The next message of this step that came from the source, in the order of posting; NULL when the source is here. */
TRNI_FN trn_status trni_mpi_take(trni_mpi_job *j, const trni_mpi_move *m, int from, int to)
{
    const int here = trni_mpi_process(j, m->group, from), there = trni_mpi_process(j, m->group, to), me = j->mail.me;
    if (here == there || (here != me && there != me)) return TRN_OK;
    char *message = j->mail.buffer[j->taken++];
    if (there != me) return TRN_OK;
    if (m->hop.sources == 1)
        trni_mpi_pack(j, m, j->work[trni_view_index(&j->job.views, m->group, to)], message, false);
    else
        j->arrived[from] = message;
    return TRN_OK;
}

/* A copy from a rank that is here to another that is here. */
TRNI_FN trn_status trni_mpi_local(trni_mpi_job *j, const trni_mpi_move *m, int from, int to)
{
    const trni_cc_channel *c = &j->job.schedule.channel[m->channel];
    const int64_t size = j->job.code_bytes;
    if (trni_mpi_process(j, m->group, from) != j->mail.me || trni_mpi_process(j, m->group, to) != j->mail.me)
        return TRN_OK;
    const char *source = j->work[trni_view_index(&j->job.views, m->group, from)];
    char *target = j->work[trni_view_index(&j->job.views, m->group, to)];
    for (int64_t i = 0; i < trni_mpi_ranges(c, m->stage); i++) {
        const trni_mpi_range r = trni_mpi_range_of(j, m->channel, m->stage, m->owner, m->hop.part, i);
        if (r.count > 0) memcpy(target + r.first * size, source + r.first * size, (size_t)(r.count * size));
    }
    return TRN_OK;
}

/* What the fold reads of a rank: its buffer here, or what came of it; offset[0] is where the present range begins in a
 * message, offset[1] its first element. */
TRNI_FN void trni_mpi_fold_load(void *user, int rank, int64_t first, int64_t n, float *value)
{
    const trni_mpi_job *j = (const trni_mpi_job *)user;
    const int64_t size = j->job.code_bytes;
    const char *from = j->arrived[rank];
    from = from ? from + (j->offset[0] + first - j->offset[1]) * size
                : j->work[trni_view_index(&j->job.views, j->group, rank)] + first * size;
    trni_decoder_run(&j->job.arith.wire.decoder, value, from, (size_t)n);
}

TRNI_FN void trni_mpi_fold(trni_mpi_job *j, const trni_mpi_move *m)
{
    const trni_schedule *s = &j->job.schedule;
    const trni_cc_channel *c = &s->channel[m->channel];
    const trni_cc_sum sum = trni_cc_sum_from(s, c, &c->stage[m->stage], m->base, m->step, &m->hop);
    char *work = j->work[trni_view_index(&j->job.views, m->group, sum.to)];
    int64_t offset[2] = { 0, 0 };
    uint32_t code[TRNI_FOLD_TILE];
    j->offset = offset;
    j->group = m->group;
    j->fold.channel = m->channel;
    j->job.arith.stream = trni_group_stream(j->job.a, m->group);
    for (int64_t i = 0; i < trni_mpi_ranges(c, m->stage); i++) {
        const trni_mpi_range r = trni_mpi_range_of(j, m->channel, m->stage, m->owner, m->hop.part, i);
        offset[1] = r.first;
        for (int64_t at = r.first; at < r.first + r.count; at += TRNI_FOLD_TILE) {
            const int64_t n = trni_min64(TRNI_FOLD_TILE, r.first + r.count - at);
            trni_fold_forget(&j->fold);
            trni_encoder_run(&j->job.arith.exact.encoder, code, trni_fold_one(&j->fold, &sum, at, n), NULL, (size_t)n);
            memcpy(work + at * j->job.code_bytes, code, (size_t)(n * j->job.code_bytes));
        }
        offset[0] += r.count;
    }
}

TRNI_FN trn_status trni_mpi_use_pass(trni_mpi_job *j, const trni_mpi_move *m)
{
    const bool sums = m->hop.sources != 1;
    memset(j->arrived, 0, sizeof(char *) * (size_t)j->job.schedule.ranks);
    trni_mpi_pairs(j, m, trni_mpi_take);
    if (!sums) return trni_mpi_pairs(j, m, trni_mpi_local);
    if (trni_mpi_process(j, m->group, trni_mpi_rank(j, m, m->hop.to)) == j->mail.me) trni_mpi_fold(j, m);
    return TRN_OK;
}

/* ---- the schedule ---- */

typedef trn_status trni_mpi_pass(trni_mpi_job *j, const trni_mpi_move *m);

/* Every move of one step, in the same order everywhere. */
TRNI_FN trn_status trni_mpi_moves(trni_mpi_job *j, trni_phase phase, int step, trni_mpi_pass *pass)
{
    const trni_schedule *s = &j->job.schedule;
    trn_status status = TRN_OK;
    trni_mpi_move m;
    memset(&m, 0, sizeof m);
    m.step = step;
    for (m.group = 0; m.group < j->job.views.groups; m.group++)
        for (m.channel = 0; m.channel < s->channels; m.channel++) {
            const trni_cc_channel *c = &s->channel[m.channel];
            const trni_place place = trni_place_of(c, phase, step);
            if (place.stage < 0) continue;
            m.stage = place.stage;
            for (m.owner = 0; m.owner < s->ranks; m.owner++) {
                const trni_cc_stage *st = &c->stage[m.stage];
                trni_hop hop[TRNI_HOPS];
                const int v = trni_stage_digit(st, m.owner), hops = trni_phase_moves(phase, st, place.step, v, hop);
                m.base = m.owner - v * st->stride;
                for (int i = 0; i < hops && status == TRN_OK; i++) {
                    m.hop = hop[i];
                    status = pass(j, &m);
                }
            }
        }
    return status;
}

TRNI_FN trn_status trni_mpi_phase(trni_mpi_job *j, trni_phase phase)
{
    trn_status status = TRN_OK;
    const int steps = trni_schedule_steps(&j->job.schedule);
    for (int step = 0; step < steps && status == TRN_OK; step++) {
        char where[40];
        snprintf(where, sizeof where, "step %d of %d", step + 1, steps);
        j->taken = 0;
        status = trni_mpi_moves(j, phase, step, trni_mpi_send_pass);
        if (status == TRN_OK) status = trni_mail_wait(&j->mail, where);
        if (status == TRN_OK) status = trni_mpi_moves(j, phase, step, trni_mpi_use_pass);
        trni_mail_clear(&j->mail, status == TRN_OK);
    }
    return status;
}

/* ---- an all-reduce in a single step: everybody has everything ---- */

TRNI_FN bool trni_mpi_takes_part(const trni_mpi_job *j, int group, int process)
{
    for (int r = 0; r < j->job.schedule.ranks; r++)
        if (trni_mpi_process(j, group, r) == process) return true;
    return false;
}

TRNI_FN trn_status trni_mpi_share(trni_mpi_job *j, int group)
{
    const int64_t bytes = j->job.views.elements * j->job.code_bytes;
    trn_status status = TRN_OK;
    memset(j->arrived, 0, sizeof(char *) * (size_t)j->job.schedule.ranks);
    for (int r = 0; r < j->job.schedule.ranks; r++) {
        const int here = trni_mpi_process(j, group, r);
        for (int p = 0; p < j->mail.processes && status == TRN_OK; p++) {
            if (p == here || (p != j->mail.me && here != j->mail.me) || !trni_mpi_takes_part(j, group, p)) continue;
            const bool send = here == j->mail.me;
            char *buffer = send ? j->work[trni_view_index(&j->job.views, group, r)] : (char *)malloc((size_t)bytes + 1);
            if (!buffer)
                return trni_fail(j->mail.error, TRN_ENOSPC, "%s: no memory for %lld bytes", j->mail.what,
                                 (long long)bytes);
            if (!send) j->arrived[r] = buffer;
            status = trni_mail_post(&j->mail, send, send ? p : here, buffer, bytes, !send);
        }
    }
    return status == TRN_OK ? trni_mail_wait(&j->mail, "the single step") : status;
}

/* One sum, which all ranks that are here get. */
TRNI_FN void trni_mpi_sum_to_all(trni_mpi_job *j, const trni_cc_sum *sum, int64_t first, int64_t n)
{
    uint32_t code[TRNI_FOLD_TILE];
    trni_fold_forget(&j->fold);
    trni_encoder_run(&j->job.arith.exact.encoder, code, trni_fold_one(&j->fold, sum, first, n), NULL, (size_t)n);
    for (int r = 0; r < j->job.schedule.ranks; r++)
        if (trni_mpi_process(j, j->group, r) == j->mail.me)
            memcpy(j->work[trni_view_index(&j->job.views, j->group, r)] + first * j->job.code_bytes, code,
                   (size_t)(n * j->job.code_bytes));
}

TRNI_FN trn_status trni_mpi_single_step(trni_mpi_job *j)
{
    trn_status status = TRN_OK;
    for (int g = 0; g < j->job.views.groups && status == TRN_OK; g++) {
        int64_t offset[2] = { 0, 0 };
        if (!trni_mpi_takes_part(j, g, j->mail.me)) continue;
        status = trni_mpi_share(j, g);
        j->offset = offset;
        j->group = g;
        j->fold.channel = 0;
        j->job.arith.stream = trni_group_stream(j->job.a, g);
        for (int owner = 0; owner < j->job.schedule.ranks && status == TRN_OK; owner++) {
            int64_t first, count;
            trni_cc_sum sum;
            trni_fold_program(&j->job.schedule, 0, owner, &sum);
            trn_collective_chunk(j->job.views.elements, j->job.a->granule, j->job.schedule.ranks, owner, &first,
                                 &count);
            for (int64_t at = first; at < first + count; at += TRNI_FOLD_TILE)
                trni_mpi_sum_to_all(j, &sum, at, trni_min64(TRNI_FOLD_TILE, first + count - at));
        }
        trni_mail_clear(&j->mail, status == TRN_OK);
    }
    return status;
}

/* ---- messages that are no part of a schedule of stages: all-to-all, broadcast, pairs ---- */

TRNI_FN bool trni_mpi_block(const trni_mpi_job *j, int from, int to, int64_t *in, int64_t *out, int64_t *count)
{
    *in = *out = 0;
    *count = j->job.views.elements;
    if (j->job.a->op == TRN_ALL_TO_ALL)
        trni_block_of(&j->job, from, to, in, out, count);
    else if (j->job.a->op == TRN_BROADCAST)
        return from == j->job.a->root;
    else
        return trni_target_of(j->job.a, from) == to;
    return true;
}

TRNI_FN trn_status trni_mpi_deliver(trni_mpi_job *j, int group, int from, int to)
{
    const int here = trni_mpi_process(j, group, from), there = trni_mpi_process(j, group, to), me = j->mail.me;
    const int64_t size = j->job.code_bytes;
    int64_t in, out, count;
    if ((here != me && there != me) || !trni_mpi_block(j, from, to, &in, &out, &count) || count < 1) return TRN_OK;
    char *target = there == me ? j->work[trni_view_index(&j->job.views, group, to)] + out * size : NULL;
    char *source = here == me ? j->job.views.in[trni_view_index(&j->job.views, group, from)] + in * size : NULL;
    if (here == there) {
        memcpy(target, source, (size_t)(count * size));
        return TRN_OK;
    }
    const int other = here == me ? there : here;
    return trni_mail_post(&j->mail, here == me, other, here == me ? source : target, count * size, false);
}

TRNI_FN trn_status trni_mpi_deliveries(trni_mpi_job *j)
{
    trn_status status = TRN_OK;
    for (int g = 0; g < j->job.views.groups; g++)
        for (int from = 0; from < j->job.views.ranks; from++)
            for (int to = 0; to < j->job.views.ranks && status == TRN_OK; to++)
                status = trni_mpi_deliver(j, g, from, to);
    if (status == TRN_OK) status = trni_mail_wait(&j->mail, "delivering");
    trni_mail_clear(&j->mail, status == TRN_OK);
    return status;
}

/* ---- the call ---- */

/* Elements that the work buffer of a rank that is here holds. */
TRNI_FN int64_t trni_mpi_capacity(const trni_mpi_job *j, int64_t i)
{
    const int64_t out = trni_view_size(&j->job.views, i, true), all = j->job.views.elements;
    return j->job.a->op == TRN_ALL_TO_ALL && out > 0 ? out : all;
}

/* Buffers of the ranks that are here, and room for the sums. */
TRNI_FN trn_status trni_mpi_buffers(trni_mpi_job *j)
{
    const int64_t views = (int64_t)j->job.views.groups * j->job.views.ranks, size = j->job.code_bytes;
    const int ranks = j->job.views.ranks;
    int64_t bytes = 0;
    for (int64_t i = 0; i < views; i++) bytes += j->away[i] ? 0 : trni_round_up(trni_mpi_capacity(j, i) * size, 64);
    j->memory = (char *)malloc((size_t)bytes + sizeof(char *) * (size_t)(views + ranks) + trni_fold_bytes(ranks) + 128);
    if (!j->memory)
        return trni_fail(j->mail.error, TRN_ENOSPC, "%s: no memory for %lld bytes of buffers", j->mail.what,
                         (long long)bytes);
    j->work = (char **)(void *)j->memory;
    j->arrived = j->work + views;
    char *at = (char *)(j->arrived + ranks);
    at += (64 - (uintptr_t)at % 64) % 64;
    trni_fold_init(&j->fold, &j->job.schedule, &j->job.arith, at);
    j->fold.load = trni_mpi_fold_load;
    j->fold.user = j;
    at += (trni_fold_bytes(ranks) + 63) / 64 * 64;
    for (int64_t i = 0; i < views; i++) {
        j->work[i] = j->away[i] ? NULL : at;
        at += j->away[i] ? 0 : trni_round_up(trni_mpi_capacity(j, i) * size, 64);
    }
    return TRN_OK;
}

/* What each rank begins with: all of its buffer, or its chunk of a gather in its place. */
TRNI_FN void trni_mpi_begin(trni_mpi_job *j)
{
    const trni_views *v = &j->job.views;
    for (int64_t i = 0; i < (int64_t)v->groups * v->ranks; i++) {
        int64_t first = 0, count = trni_view_size(v, i, false);
        if (count < 1 || j->job.a->op >= TRN_ALL_TO_ALL) continue;
        if (j->job.a->op == TRN_ALL_GATHER)
            trn_collective_chunk(v->elements, j->job.a->granule, v->ranks, (int)(i % v->ranks), &first, &count);
        memcpy(j->work[i] + first * j->job.code_bytes, v->in[i], (size_t)(count * j->job.code_bytes));
    }
}

TRNI_FN trn_status trni_mpi_steps(trni_mpi_job *j)
{
    const trn_collective op = j->job.a->op;
    trn_status status = TRN_OK;
    trni_mpi_begin(j);
    if (op >= TRN_ALL_TO_ALL) return trni_mpi_deliveries(j);
    if (j->job.schedule.single_step) return trni_mpi_single_step(j);
    if (op != TRN_ALL_GATHER) status = trni_mpi_phase(j, TRNI_REDUCE);
    if (op != TRN_REDUCE_SCATTER && status == TRN_OK) status = trni_mpi_phase(j, TRNI_GATHER);
    return status;
}

/* The results, once everybody has theirs. */
TRNI_FN trn_status trni_mpi_end(trni_mpi_job *j)
{
    const trni_views *v = &j->job.views;
    for (int64_t i = 0; i < (int64_t)v->groups * v->ranks; i++) {
        int64_t first = 0, chunk;
        const int64_t count = trni_view_size(v, i, true);
        if (count < 1) continue;
        if (j->job.a->op == TRN_REDUCE_SCATTER)
            trn_collective_chunk(v->elements, j->job.a->granule, v->ranks, (int)(i % v->ranks), &first, &chunk);
        memcpy(v->out[i], j->work[i] + first * j->job.code_bytes, (size_t)(count * j->job.code_bytes));
    }
    return trni_stage_out(v);
}

/* Which views are away, and does every chip belong to somebody? */
TRNI_FN trn_status trni_mpi_whereabouts(trni_mpi_job *j, uint64_t *owners)
{
    const trn_collective_args *a = j->job.a;
    const int ranks = trn_collective_ranks(a);
    const int64_t views = (int64_t)trni_group_count(a) * ranks;
    trn_status status = TRN_OK;
    j->away = (uint8_t *)malloc((size_t)views);
    if (!j->away)
        return trni_fail(a->error, TRN_ENOSPC, "%s: no memory for %lld views", j->mail.what, (long long)views);
    for (int64_t i = 0; i < views && status == TRN_OK; i++) {
        const int group = (int)(i / ranks), rank = (int)(i % ranks);
        status = trni_mpi_owner_check(&j->mail, a->net, trni_chip_of_rank(a, group, rank), owners);
        j->away[i] = trni_mpi_process(j, group, rank) != j->mail.me;
    }
    j->job.views.away = j->away;
    return status;
}

/* Everything that one process can find wrong by itself. */
TRNI_FN trn_status trni_mpi_prepare(trni_mpi_job *j)
{
    const trn_collective_args *a = j->job.a;
    uint64_t owners = 0;
    trni_pick choice;
    trn_status status = trni_layout_init(&j->job.layout, a);
    if (status == TRN_OK && a->enforce_rules) status = trn_replica_group_check(a);
    if (status == TRN_OK) status = trni_mpi_whereabouts(j, &owners);
    if (status == TRN_OK) status = trni_views_check(&j->job.views, a);
    if (status != TRN_OK) return status;
    status = trni_job_resolve(&j->job, a->op < TRN_ALL_TO_ALL, &choice);
    trni_arith_init(&j->job.arith, a, j->job.views.wire, j->job.views.isa);
    trni_signature_collective(&j->signature, &j->job.views, &j->job.layout.calibration);
    trni_mpi_signature(&j->signature, owners);
    trni_signature_choice(&j->signature, &j->job.views, &choice);
    trni_signature_close(&j->signature);
    if (status == TRN_OK) status = trni_stage_in(&j->job.views);
    return status == TRN_OK ? trni_mpi_buffers(j) : status;
}

/* Agreement, the steps, agreement, and only then results. */
TRNI_FN trn_status trni_mpi_run(trni_mpi_job *j)
{
    trni_signature_begin(&j->signature, TRNI_CALL_COLLECTIVE);
    trn_status status = trni_mpi_agree(&j->mail, &j->signature, TRNI_CALL_BEGINS, trni_mpi_prepare(j));
    if (status == TRN_OK) status = trni_mpi_agree(&j->mail, &j->signature, TRNI_CALL_ENDS, trni_mpi_steps(j));
    return status == TRN_OK ? trni_mpi_end(j) : status;
}

TRN_API trn_status trn_mpi_collective_run(const trn_mpi *mpi, const trn_collective_args *args)
{
    trni_mpi_job *j;
    TRNI_ENTER(args);
    if (!mpi) return trni_fail(args->error, TRN_EINVAL, "mpi is null");
    j = (trni_mpi_job *)calloc(1, sizeof *j);
    if (!j) return trni_fail(args->error, TRN_ENOSPC, "no memory for a job");
    trni_mpi_call call;
    trni_mpi_enter(&call, &j->mail, mpi, trn_collective_name(args->op), args->error);
    j->job.a = args;
    const trn_status status = trni_mpi_run(j);
    trni_mpi_leave(&call, &j->mail);
    if (!j->mail.abandoned) { /* else messages may still arrive in these */
        free(j->job.views.memory);
        free(j->memory);
    }
    free(j->away);
    trni_schedule_free(&j->job.schedule);
    free(j);
    return status;
}

#endif /* TRNI_BODIES */
#endif /* TRN_USE_MPI */

#endif /* TRNI_MPI_MPI_COLLECTIVE_H */

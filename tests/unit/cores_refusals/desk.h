/* cores_refusals/desk.h - a rank with everything at hand that a call between cores may take, one thing of it wrong.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_REFUSALS_DESK_H
#define CORES_REFUSALS_DESK_H

#include "unit/many_cores.h"

enum { SIDE = 16 };

typedef struct desk {
    trn_cores_rank *self;
    trn_tensor tile[2], narrow, coded; /* SBUF [16, 16], [16, 8], and the same in bfloat16 */
    trn_tensor far[3], flat;           /* HBM [16, 16], and [256] */
    trn_tensor table;                  /* HBM U32 [5, 2]: sends nothing */
    trn_tensor many[9];                /* HBM [2, 2] */
    trn_cores_collective_args a;       /* tiles */
    trn_cores_collective_args h;       /* HBM */
    trn_cores_sendrecv_args s;
    trn_cores_barrier_args b;
} desk;

typedef struct plot {
    void (*act)(desk *d);
    int odd; /* the rank that does: -1 = all of them; others do as `a` says */
} plot;

static float memory[8][4][SIDE * SIDE];
static uint32_t tables[8][10];

static trn_tensor zeros(trn_core *core, const char *name, trn_format format, int64_t columns)
{
    const trn_tensor t = trn_core_sbuf(core, name, format, SIDE, columns);
    for (int64_t p = 0; p < SIDE; p++)
        memset((char *)t.data + p * t.stride[0] * (int64_t)trn_format_bytes(format), 0,
               (size_t)columns * trn_format_bytes(format));
    trn_core_written(core, t);
    return t;
}

static void furnish(desk *d, trn_cores_rank *self)
{
    trn_core *core = &self->core;
    float(*mine)[SIDE * SIDE] = memory[self->rank];
    memset(d, 0, sizeof *d);
    memset(tables[self->rank], 0, sizeof tables[0]);
    d->self = self;
    d->tile[0] = zeros(core, "x", TRN_F32, SIDE), d->tile[1] = zeros(core, "y", TRN_F32, SIDE);
    d->narrow = zeros(core, "narrow", TRN_F32, SIDE / 2), d->coded = zeros(core, "coded", TRN_BF16, SIDE);
    for (int i = 0; i < 3; i++) d->far[i] = trn_core_hbm(core, "far", trn_tensor_2d(TRN_F32, mine[i], SIDE, SIDE));
    const trn_tensor rest = trn_core_hbm(core, "rest", trn_tensor_2d(TRN_F32, mine[3], 18, 2));
    for (int i = 0; i < 9; i++) d->many[i] = trn_tensor_slice(rest, 0, 2 * i, 2);
    d->flat = trn_tensor_merge(d->far[0], 0);
    d->table = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, tables[self->rank], 5, 2));
    d->a.dst = d->a.src = d->tile[0];
    d->h.dst = d->far[1], d->h.src = d->far[0];
    d->h.metadata = trn_tensor_slice(d->table, 0, 0, 4);
    d->s.dst = d->tile[1], d->s.src = d->tile[0];
    d->s.send_to_rank = d->s.recv_from_rank = 1 - self->program_id;
}

static trn_status kernel(trn_cores_rank *self, void *user)
{
    const plot *p = (const plot *)user;
    desk d;
    furnish(&d, self);
    if (p->odd < 0 || p->odd == self->rank)
        p->act(&d);
    else
        trn_cores_all_reduce(self, &d.a);
    return TRN_OK;
}

static trn_cores_args system_of(trn_generation generation, int ranks, int lnc)
{
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = generation;
    args.ranks = ranks;
    args.lnc = lnc;
    args.threads = 1;
    return args;
}

/* `sentence`: without "rank 0: instruction 0, " where it begins with a space; null = nothing is refused. */
static void act(trn_cores_args args, void (*what)(desk *d), int odd, const char *sentence)
{
    char text[256];
    plot p = { what, odd };
    assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
    const trn_status status = trn_cores_run(&cores, kernel, &p);
    if (!sentence && status) fail_msg("%s", cores.failure.text);
    if (sentence && !status) fail_msg("nothing failed; expected: %s", sentence);
    if (sentence) {
        snprintf(text, sizeof text, "%s%s", sentence[0] == ' ' ? "rank 0: instruction 0," : "", sentence);
        assert_string_equal(cores.failure.text, text);
    }
    trn_cores_end(&cores);
}

typedef struct wrong_call {
    void (*what)(desk *d);
    const char *sentence;
} wrong_call;

static void each(int lnc, const wrong_call *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++) act(system_of(TRN_TRAINIUM2, 2, lnc), row[i].what, -1, row[i].sentence);
}

#define EACH(lnc, row) each(lnc, row, sizeof row / sizeof row[0])

/* CALL(name, collective, args, changes): a function `name` that changes d->args and calls. */
#define CALL(name, collective, args, ...)                                                                              \
    static void name(desk *d)                                                                                          \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        trn_cores_##collective(d->self, &d->args);                                                                     \
    }

static const int ring_pairs[][2] = { { 0, 1 }, { 1, 0 } }, both[] = { 0, 0 }, three[] = { 0, 1, 2 };

CALL(good_barrier, barrier, b, (void)0)
CALL(good_swap, sendrecv, s, (void)0)

#endif /* CORES_REFUSALS_DESK_H */

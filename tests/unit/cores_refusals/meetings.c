/* cores_refusals/meetings.c - ranks that do not come to the same call, and systems of cores that there are not.
 * SPDX-License-Identifier: MIT
 */
#include "unit/cores_refusals/groups.h"
#include "unit/many_cores.h"

/* ---- what is refused ---- */

enum {
    LEAVES,
    OTHER_CALL,
    OTHER_SHAPE,
    OTHER_ALGORITHM,
    OTHER_PIPE,
    BROKEN,
    RETURNS,
    NO_LIST,
    TWICE,
    UNWRITTEN,
    MEETS,
    LNC_1,
    AXIS,
    BAD_TARGET,
    MIXED_MEMORY,
    SELF_MISSING
};

static trn_status wrong(trn_cores_rank *self, void *user)
{
    const int what = *(const int *)user, odd = self->rank == 1;
    trn_core *core = &self->core;
    const trn_tensor x = filled(core, "x", TRN_F32, 16, 16, 1), y = filled(core, "y", TRN_F32, 16, 16, 2);
    const trn_tensor raw = trn_core_sbuf(core, "raw", TRN_F32, 16, 16);
    const int list[] = { 0, 1, 1, 0 }, just_0[] = { 0 };
    static float memory[2][256];
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = x;
    trn_cores_sendrecv_args s;
    memset(&s, 0, sizeof s);
    s.dst = y;
    s.src = x;
    s.send_to_rank = s.recv_from_rank = 1 - self->program_id;
    trn_cores_barrier_args b;
    memset(&b, 0, sizeof b);
    switch (what) {
    case LEAVES:
        if (odd) return TRN_OK;
        break;
    case OTHER_CALL:
        if (odd) return trn_cores_barrier(self, &b);
        break;
    case OTHER_SHAPE:
        if (odd) a.dst = a.src = trn_tensor_slice(x, 1, 0, 8);
        break;
    case OTHER_ALGORITHM:
        if (odd) a.algorithm = TRN_RING;
        break;
    case OTHER_PIPE: s.pipe_id = odd; return trn_cores_sendrecv(self, &s);
    case BROKEN:
        if (odd) trn_core_free(core, trn_tensor_slice(x, 0, 1, 1));
        break;
    case RETURNS: return odd ? TRN_EIO : TRN_OK;
    case NO_LIST:
        a.replica_group.rank = just_0;
        a.replica_group.count = 1;
        break;
    case TWICE:
        a.replica_group.rank = list;
        a.replica_group.count = 2;
        a.replica_group.groups = 2;
        break;
    case UNWRITTEN: a.src = raw; break;
    case MEETS:
        s.dst = trn_tensor_slice(x, 1, 0, 8);
        s.src = trn_tensor_slice(x, 1, 4, 8);
        return trn_cores_sendrecv(self, &s);
    case LNC_1: return trn_cores_sendrecv(self, &s);
    case AXIS: a.collective_dim = 2; break;
    case BAD_TARGET: s.send_to_rank = 2; return trn_cores_sendrecv(self, &s);
    case MIXED_MEMORY: a.dst = trn_core_hbm(core, "m", trn_tensor_2d(TRN_F32, memory[self->rank], 16, 16)); break;
    case SELF_MISSING:
        b.cores = just_0;
        b.count = 1;
        return trn_cores_barrier(self, &b);
    default: break;
    }
    trn_cores_all_reduce(self, &a);
    return TRN_OK;
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        int what, lnc;
        const char *sentence;
    } row[] = {
        { LEAVES, 1,
          "nothing goes on: rank 0 waits at instruction 0, all_reduce, for rank 1, which has ended after 0 "
          "instructions" },
        { OTHER_CALL, 1, "" },
        { OTHER_SHAPE, 1,
          "all_reduce: rank 0 (instruction 0) gives src float32 [16, 16], rank 1 (instruction 0) float32 "
          "[16, 8]" },
        { OTHER_ALGORITHM, 1, "all_reduce: rank 0 (instruction 0) has algorithm 0, rank 1 (instruction 0) 1" },
        { OTHER_PIPE, 2,
          "nothing goes on: rank 0 waits at instruction 0, sendrecv of pipe 0, for rank 1, which waits at "
          "instruction 0, sendrecv of pipe 1, for rank 0" },
        { BROKEN, 1, "rank 1: trn_core_free: this is not a tile" },
        { RETURNS, 1, "rank 1: its kernel returned: a file or message could not be read or written" },
        { NO_LIST, 1, "rank 1: instruction 0, all_reduce: replica_group has no list with rank 1, which calls" },
        { TWICE, 1, "rank 0: instruction 0, all_reduce: replica_group has 2 lists of 2 ranks; there are 2" },
        { UNWRITTEN, 1,
          "rank 0: instruction 0, all_reduce: src reads partition 0, element 0 of 'raw', which nothing has "
          "written" },
        { MEETS, 2, "rank 0: instruction 0, sendrecv: dst meets src" },
        { LNC_1, 1, "rank 0: instruction 0, sendrecv: lnc is 1; cores of a logical core send to each other" },
        { AXIS, 1, "rank 0: instruction 0, all_reduce: collective_dim is 2; in SBUF it is 0" },
        { BAD_TARGET, 2, "rank 0: instruction 0, sendrecv: send_to_rank is 2; a logical core has cores 0 to 1" },
        { MIXED_MEMORY, 1,
          "rank 0: instruction 0, all_reduce: dst lies in HBM and src in SBUF; all lie in the same "
          "memory" },
        { SELF_MISSING, 2,
          "rank 1: instruction 0, core_barrier: cores has 1 of 2 cores; core 1, which calls, is to be "
          "there" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int threads = 1; threads < 3; threads++) {
            trn_cores_args args = chip_of(2, row[i].lnc);
            args.threads = threads;
            int what = row[i].what;
            if (row[i].sentence[0]) refuse(&args, wrong, &what, row[i].sentence);
        }
    /* a barrier of one core alone goes on at once, then it has ended */
    trn_cores_args args = chip_of(2, 1);
    int what = OTHER_CALL;
    refuse(
        &args, wrong, &what,
        "nothing goes on: rank 0 waits at instruction 0, all_reduce, for rank 1, which has ended after 1 instructions");
    args.lnc = 2;
    refuse(&args, wrong, &what,
           "nothing goes on: rank 1 waits at instruction 0, core_barrier, for rank 0, which has ended "
           "after 1 instructions");
}

/* Three send to each other in turn, then rank 0 alone once more. */
static trn_status once_too_often(trn_cores_rank *self, void *user)
{
    (void)user;
    trn_cores_sendrecv_args s;
    memset(&s, 0, sizeof s);
    s.src = filled(&self->core, "x", TRN_F32, 16, 16, 1);
    s.dst = filled(&self->core, "y", TRN_F32, 16, 16, 2);
    s.send_to_rank = (self->program_id + 1) % 3;
    s.recv_from_rank = (self->program_id + 2) % 3;
    const trn_status status = trn_cores_sendrecv(self, &s);
    return status || self->rank ? status : trn_cores_sendrecv(self, &s);
}

/* Both of its ends are missing: the one that it would receive from is told. */
static void test_who_is_missing_in_a_ring(void **state)
{
    (void)state;
    const trn_cores_args args = chip_of(3, 3);
    refuse(&args, once_too_often, NULL,
           "nothing goes on: rank 0 waits at instruction 1, sendrecv of pipe 0, for rank 2, which has ended after 1 "
           "instructions");
}

static void test_which_cores_are_refused(void **state)
{
    (void)state;
    trn_cores_args args = chip_of(12, 1);
    refuse(&args, wrong, NULL, "12 ranks, 8 to a chip, 1 to a logical core: they do not come out even");
    args = chip_of(-1, 1);
    refuse(&args, wrong, NULL, "ranks, cores_per_chip, lnc and threads are -1, 0, 1, 0; none is negative");
    args = chip_of(8, 3);
    refuse(&args, wrong, NULL, "8 ranks, 8 to a chip, 3 to a logical core: they do not come out even");
    args = chip_of(16, 1);
    args.cores_per_chip = 16;
    refuse(&args, wrong, NULL, "cores_per_chip is 16; a chip of trn2.48xlarge has 8");
    const int chips[] = { 3, 3 };
    args.cores_per_chip = 8;
    args.chips = chips;
    refuse(&args, wrong, NULL, "chips[1] is 3; each of 0 to 15 may be there once");
    args = chip_of(1 << 23, 1);
    refuse(&args, wrong, NULL, "no system of Trainium2 has 8388608 cores");
    args = chip_of(1 << 13, 1);
    refuse(&args, wrong, NULL,
           "8192 ranks; project-rainier has 400000 chips, of which 8 cores each take part (at most "
           "4096)");
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    args = chip_of(8, 1);
    args.net = &net;
    args.core.generation = TRN_TRAINIUM3;
    refuse(&args, wrong, NULL, "generation is Trainium3, but trn2.48xlarge is made of Trainium2");
}

int cores_refusals_meetings(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_who_is_missing_in_a_ring),
        cmocka_unit_test(test_which_cores_are_refused),
    };
    return cmocka_run_group_tests_name("cores_refusals_meetings", tests, NULL, NULL);
}

/* cores_refusals/strangers.c - another process, made up here: what it says first, and of its ranks.
 * SPDX-License-Identifier: MIT
 */
#include "unit/cores_refusals/groups.h"
#include "unit/many_cores.h"

/* What each process says first: trni_cores_head of cores/cores_exchange.h, written down a second time. */
typedef struct greeting {
    int64_t bytes; /* that it sends of its ranks */
    int ranks, lnc, cores_per_chip, generation, kind;
    trn_error failure;
} greeting;

typedef struct stranger {
    greeting says; /* of itself; 0 in .ranks: the same as we */
    int64_t bytes; /* that it sends of its ranks; negative: as many as we, and that many fewer plus one */
    int gathers;
} stranger;

static trn_status speaks(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error)
{
    stranger *s = (stranger *)user;
    char *theirs = (char *)all + counts[0];
    (void)error;
    memcpy(all, mine, (size_t)bytes);
    if (s->gathers++ % 2) { /* posts */
        memcpy(theirs, mine, (size_t)(counts[1] < bytes ? counts[1] : bytes));
        return TRN_OK;
    }
    greeting head;
    assert_int_equal(bytes, sizeof head);
    memcpy(&head, mine, sizeof head);
    const int64_t ours = head.bytes;
    if (s->says.ranks) head = s->says;
    head.bytes = s->bytes < 0 ? ours + 1 + s->bytes : s->bytes;
    memcpy(theirs, &head, sizeof head);
    return TRN_OK;
}

static trn_status leaves(trn_cores_rank *self, void *user)
{
    (void)self, (void)user;
    return TRN_OK;
}

/* Process 0 of two, each with a chip of one core. */
static const char *beside(stranger *s)
{
    const trn_cores_exchange exchange = { 0, 2, speaks, s };
    trn_cores_args args = chip_of(2, 1);
    args.cores_per_chip = 1;
    args.threads = 1;
    args.exchange = &exchange;
    assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
    const trn_status status = trn_cores_run(&cores, leaves, NULL);
    static char text[256];
    snprintf(text, sizeof text, "%s", status ? cores.failure.text : "");
    trn_cores_end(&cores);
    return text;
}

static void processes_have_to_be_alike(void **state)
{
    (void)state;
    const greeting good = { .ranks = 2, .lnc = 1, .cores_per_chip = 1, .generation = TRN_TRAINIUM2, .kind = 99 };
    static const struct {
        int ranks, lnc, cores, generation;
    } odd[] = {
        { 3, 1, 1, TRN_TRAINIUM2 },
        { 2, 2, 1, TRN_TRAINIUM2 },
        { 2, 1, 2, TRN_TRAINIUM2 },
        { 2, 1, 1, TRN_TRAINIUM3 },
    };
    stranger same = { .bytes = -1 };
    assert_string_equal(beside(&same), "");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        stranger s = { .says = good, .bytes = 8 };
        char text[160];
        s.says.ranks = odd[i].ranks, s.says.lnc = odd[i].lnc, s.says.cores_per_chip = odd[i].cores;
        s.says.generation = odd[i].generation;
        snprintf(text, sizeof text,
                 "process 0 has 2 ranks (1 to a chip, lnc 1, generation %d), process 1 %d (%d, %d, %d)", TRN_TRAINIUM2,
                 odd[i].ranks, odd[i].cores, odd[i].lnc, odd[i].generation);
        assert_string_equal(beside(&s), text);
    }
    stranger broken = { .says = good, .bytes = 8 }; /* its failure is everybody's */
    broken.says.failure.status = TRN_EIO;
    snprintf(broken.says.failure.text, sizeof broken.says.failure.text, "its disk is gone");
    assert_string_equal(beside(&broken), "its disk is gone");
    stranger brief = { .says = good, .bytes = -2 };
    assert_string_equal(beside(&brief), "process 0: what process 1 tells of its ranks is cut short");
    brief.bytes = 0, brief.gathers = 0;
    assert_string_equal(beside(&brief), "process 0: what process 1 tells of its ranks is cut short");
}

int cores_refusals_strangers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_have_to_be_alike),
    };
    return cmocka_run_group_tests_name("cores_refusals_strangers", tests, NULL, NULL);
}

/* fuzz_replica.c - random replica groups into trn_replica_group_check, against the published rules written again.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_replica [count] [seed]        default: 100000 groups, 3000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Rows, columns, servers and near misses of them on every system, in one group or several, chips that repeat or do not
 * exist, numbers of ranks per chip in and out of range. A refusal has a sentence; the cost with the rules enforced says
 * the same; a group that passes is one that the slower reading finds allowed, and the other way round.
 */
#include <stdio.h>

#include "fuzz/long.h"
#include "trnmath/trn_collective_cost.h"
#include "twin/cases.h"

enum { MOST = 64, ROWS = 4, SERVER = 16 };

static uint64_t rng;
static long tally[3]; /* accepted, refused by the rules, refused before */

static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

static void say(const char *what)
{
    fprintf(stderr, "%s\n", what);
    fuzzing_last_words();
    exit(1);
}

/* ---- the rules, as systems.md section 2.3 lists them ---- */

static bool in_list(int n, const int *list)
{
    while (*list && *list != n) list++;
    return *list != 0;
}

static bool size_allowed(trn_generation generation, int cores, int ranks)
{
    static const int first[] = { 1, 2, 8, 16, 0 }, four[] = { 1, 2, 4, 8, 16, 32, 0 },
                     eight[] = { 4, 8, 16, 32, 64, 0 };
    if (generation == TRN_TRAINIUM1) return in_list(ranks, first) || ranks % 32 == 0;
    return cores == 4 ? in_list(ranks, four) || ranks % 64 == 0 : in_list(ranks, eight) || ranks % 128 == 0;
}

/* n chips from `first` on, `step` apart. */
static bool steps(const int *chip, int n, int step)
{
    for (int i = 1; i < n; i++)
        if (chip[i] != chip[i - 1] + step) return false;
    return true;
}

/* Four rows or columns, or one chip of each server of an UltraServer, in order. */
static bool is_line(const int *chip, bool ultra)
{
    if (steps(chip, 4, 1)) return chip[0] % 4 == 0;
    if (steps(chip, 4, 4)) return chip[0] % SERVER < 4;
    return ultra && steps(chip, 4, SERVER) && chip[0] % (4 * SERVER) < SERVER;
}

/* Which rows of one server the chips fill, as bits; 0 when they fill none, or do more. */
static int rows_of(const int *chip, int n)
{
    int rows = 0, found = 0;
    for (int i = 0; i < n; i++)
        if (chip[i] / SERVER != chip[0] / SERVER) return 0;
    for (int row = 0; row < ROWS; row++) {
        int in_row = 0;
        for (int i = 0; i < n; i++) in_row += chip[i] % SERVER / 4 == row;
        if (in_row == 4) rows |= 1 << row;
        found += in_row == 4 ? 4 : 0;
    }
    return found == n ? rows : 0;
}

/* Four lines of four, each one step of the next kind from the other: a plane of the torus. */
static bool is_plane(const int *chip, bool ultra)
{
    const int step = chip[4] - chip[0];
    for (int i = 0; i < 16; i += 4)
        if (!is_line(chip + i, ultra)) return false;
    for (int i = 0; i < 12; i++)
        if (chip[i + 4] != chip[i] + step) return false;
    const int column[] = { chip[0], chip[4], chip[8], chip[12] };
    return step > chip[1] - chip[0] && is_line(column, ultra);
}

static bool shape_allowed(trn_generation generation, const int *chip, int n, bool ultra)
{
    const int rows = rows_of(chip, n);
    if (generation == TRN_TRAINIUM1)
        return n == 1 || (n == 4 && steps(chip, 4, 4) && chip[0] % SERVER < 4) ||
               (steps(chip, n, 1) && chip[0] % n == 0);
    if (n == 4) return is_line(chip, ultra);
    if (n == 8) return rows == 0x9 || rows == 0x6;
    return n != 16 || rows == 0xf || is_plane(chip, ultra);
}

/* ---- groups ---- */

typedef struct group {
    trn_topology net;
    trn_system system;
    trn_collective_args a;
    int chips[4 * MOST];
} group;

static int cores_with_rules(trn_system system)
{
    if (system <= TRN_TRN1N_32XLARGE) return 2;
    return one_in(2) ? 4 : 8;
}

/* Something that follows a pattern, from anywhere, and then perhaps not quite. */
static void draw_chips(group *g)
{
    static const int step[] = { 1, 1, 1, 4, 4, 16, 2, 3 }, count[] = { 1, 2, 3, 4, 4, 4, 8, 8, 8, 12, 16, 16, 32 };
    const int chips = g->net.chips, n = count[below(13)], inner = step[below(8)],
              outer = one_in(2) ? inner * 4 : step[below(8)];
    const int start = one_in(2) ? below(chips) : 4 * below(chips / 4 + 1);
    g->a.chips = g->chips;
    g->a.count = n;
    g->a.groups = 1 + below(2);
    for (int i = 0; i < n * g->a.groups; i++)
        g->chips[i] = (start + i % n % 4 * inner + i % n / 4 * outer + i / n * step[below(8)]) % chips;
    if (n == 8 && one_in(2))
        for (int i = 0; i < 8; i++) g->chips[i] = (start / SERVER * SERVER + (i < 4 ? i : 8 + i)) % chips;
    if (one_in(6)) { /* another order */
        const int i = below(n), k = below(n), chip = g->chips[i];
        g->chips[i] = g->chips[k];
        g->chips[k] = chip;
    }
    if (one_in(12)) g->chips[below(n)] = below(chips + 4) - 2;
}

static void draw(group *g)
{
    memset(g, 0, sizeof *g);
    g->system = (trn_system)below(one_in(20) ? TRN_SYSTEM_COUNT : TRN_TRN1_ULTRACLUSTER);
    g->net = trn_topology_of(g->system);
    g->a.net = &g->net;
    g->a.op = (trn_collective)below(TRN_PERMUTE);
    g->a.algorithm = TRN_MULTI_RING;
    g->a.ranks_per_chip = one_in(4) ? below(70) - 2 : cores_with_rules(g->system);
    if (one_in(20))
        g->a.count = below(200) - 5;
    else if (!one_in(10))
        draw_chips(g);
}

/* ---- one of them ---- */

/* Are there rules, and does every group keep them? */
static bool allowed(const group *g)
{
    const trn_generation generation = trn_system_spec_of(g->system)->server->chip->core->generation;
    const int cores = g->a.ranks_per_chip ? g->a.ranks_per_chip : 1, groups = g->a.groups ? g->a.groups : 1;
    const int n = g->a.chips ? g->a.count : g->net.chips;
    const bool ultra = g->system == TRN_TRN2_ULTRASERVER || g->system == TRN_PROJECT_RAINIER;
    if (n * cores > 1 << 24) return false; /* that is the library's own limit */
    if (generation == TRN_TRAINIUM3 || (generation == TRN_TRAINIUM1 ? cores != 2 : cores != 4 && cores != 8))
        return true;
    if (!size_allowed(generation, cores, n * cores)) return false;
    for (int k = 0; k < groups && g->a.chips; k++)
        if (!shape_allowed(generation, g->chips + k * n, n, ultra)) return false;
    return true;
}

static void check(group *g)
{
    trn_error error;
    trn_cost cost;
    memset(&error, 0, sizeof error);
    g->a.error = &error;
    const trn_status status = trn_replica_group_check(&g->a);
    if (status != TRN_OK &&
        (error.status != status || strlen(error.text) < 20 || !memchr(error.text, 0, sizeof error.text)))
        say("a refusal without a sentence");
    if (status != TRN_OK && status != TRN_EINVAL && status != TRN_ELIMIT) say("a status that nobody expects");
    tally[status == TRN_OK ? 0 : status == TRN_ELIMIT ? 1 : 2]++;
    if (status != TRN_EINVAL && (status == TRN_OK) != allowed(g))
        say(status == TRN_OK ? "accepted against the rules" : error.text);
    if (g->net.chips > 200 && !g->a.chips) return; /* long */
    g->a.enforce_rules = true;
    g->a.error = NULL;
    if (trn_collective_cost(&g->a, &cost) != status) say("the cost says something else");
}

int main(int argc, char **argv)
{
    static group g;
    fuzzing_start(argc, argv, 30000, 3000000);
    while (fuzzing_next(&rng)) {
        draw(&g);
        check(&g);
    }
    const long count = fuzzing_end();
    printf("%ld groups: %ld accepted, %ld against the rules, %ld impossible\n", count, tally[0], tally[1], tally[2]);
    if (count >= 20000 && (tally[0] < count / 20 || tally[1] < count / 20 || tally[2] < count / 100))
        say("a kind of answer hardly came");
    return 0;
}

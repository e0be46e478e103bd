/* rows.c - what collectives cost on the systems that were asked for, row by row.
 * SPDX-License-Identifier: MIT
 */
#include "collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

static const app_column decimal_columns[] = {
    { "system", APP_TEXT, "", "name of the system, or of the file's network" },
    { "preset", APP_TEXT, "", "which source the rates of Trainium3's links are from, or file" },
    { "op", APP_TEXT, "", "collective operation" },
    { "faults", APP_TEXT, "", "chips and links that are down or slow" },
    { "chips", APP_TEXT, "", "of each group: a list as --groups takes it, or all" },
    { "groups", APP_INTEGER, "", "that work at the same time" },
    { "ranks_per_chip", APP_INTEGER, "", "ranks on each chip" },
    { "ranks", APP_INTEGER, "", "of one group" },
    { "size_b", APP_INTEGER, "B", "buffer of a rank; of all_gather: the gathered result" },
    { "count", APP_INTEGER, "", "the same in elements" },
    { "type", APP_TEXT, "", "what travels, and what sums are rounded to" },
    { "time_us", APP_REAL, "us", "ideal: the schedule at the documented rates, without software" },
    { "expected_us", APP_REAL, "us", "with what software adds, at the rates that are reached (spec --links)" },
    { "expected_low_us", APP_REAL, "us", "four of five published times lie between this" },
    { "expected_high_us", APP_REAL, "us", "and this" },
    { "algbw_gb_per_s", APP_REAL, "GB/s", "size over time; 1 GB = 1e9 bytes" },
    { "busbw_gb_per_s", APP_REAL, "GB/s", "traffic of a rank over time, as nccom-test defines it" },
    { "expected_busbw_gb_per_s", APP_REAL, "GB/s", "the same over the expected time" },
    { "algorithm", APP_TEXT, "", "how it is done" },
    { "auto", APP_INTEGER, "", "1: the library's own choice for this size" },
    { "single_step", APP_INTEGER, "", "1: a mesh's all_reduce in one step" },
    { "steps", APP_INTEGER, "", "that cost latency" },
    { "latency_us", APP_REAL, "us", "what no bytes at all would take" },
    { "link_us", APP_REAL, "us", "the fullest links, summed over the steps" },
    { "hbm_us", APP_REAL, "us", "HBM of the busiest chip" },
    { "dma_us", APP_REAL, "us", "DMA engines of the busiest chip" },
    { "launch_us", APP_REAL, "us", "expected before the first byte moves, hosts included" },
    { "expected_latency_us", APP_REAL, "us", "what no bytes at all are expected to take, launch and steps" },
    { "expected_link_us", APP_REAL, "us", "the fullest links at the rates that are reached" },
    { "expected_memory_us", APP_REAL, "us", "HBM or DMA, the longer of the two, likewise" },
    { "bound_us", APP_REAL, "us", "no schedule is faster: injection, cuts, distance" },
    { "bound_by", APP_TEXT, "", "what takes longest" },
    { "calibrated", APP_INTEGER, "", "1: with the factors that the vendor's switch-over sizes imply" },
    { "source", APP_TEXT, "", "how the times are known: model" },
    { "checked", APP_INTEGER, "", "elements whose values were compared (--check)" },
    { "wrong", APP_INTEGER, "", "of these" },
    { "note", APP_TEXT, "", "why there are no numbers" },
};
enum { COLUMNS = sizeof decimal_columns / sizeof decimal_columns[0] };

void tb_cc_start(app_table *table, bool gib)
{
    static app_column binary[COLUMNS];
    memcpy(binary, decimal_columns, sizeof binary);
    for (int i = 0; i < COLUMNS; i++) {
        if (strcmp(binary[i].unit, "GB/s") != 0) continue;
        const bool algbw = binary[i].name[0] == 'a';
        binary[i].name = algbw                      ? "algbw_gib_per_s"
                         : binary[i].name[0] == 'b' ? "busbw_gib_per_s"
                                                    : "expected_busbw_gib_per_s";
        binary[i].unit = "GiB/s";
        binary[i].meaning = algbw ? "size over time; 1 GiB = 2^30 bytes" : binary[i].meaning;
    }
    app_table_start(table, gib ? binary : decimal_columns, COLUMNS);
}

/* ---- a group on a system ---- */

typedef struct job {
    const tb_cc_options *o;
    trn_topology net;
    const char *name; /* of the system or the network */
    char faults[128];
    trn_collective_args args;
    int *chip; /* malloc'd, or NULL */
    char chips[64];
    trn_error error;
    int rows;          /* with numbers, so far */
    char refusal[256]; /* the first reason for a row without */
    int status;
} job;

static void release(job *j)
{
    free(j->chip);
    j->chip = NULL;
}

static bool refuse(job *j, const char *format, int a, int b, int c)
{
    char text[sizeof j->error.text];
    snprintf(text, sizeof text, format, j->name, a, b, c);
    memcpy(j->error.text, text, sizeof text);
    return false;
}

/* The first chips, so many that they hold `ranks`; a part of a chip when those are fewer than it has. */
static bool first_chips(job *j, int ranks)
{
    const int cores = j->args.ranks_per_chip;
    if (ranks < cores) j->args.ranks_per_chip = ranks;
    const int count = ranks < cores ? 1 : ranks / cores;
    if (ranks > cores && ranks % cores)
        return refuse(j, "%s has %d ranks on each chip, and %d is no multiple of that (--ranks-per-chip changes it)",
                      cores, ranks, 0);
    if (count > j->net.chips)
        return refuse(j, "%s has %d chips of %d ranks, which are fewer than %d", j->net.chips, cores, ranks);
    if (count == j->net.chips) return true;
    j->chip = app_memory((size_t)count, sizeof *j->chip);
    for (int i = 0; i < count; i++) j->chip[i] = i;
    j->args.chips = j->chip;
    j->args.count = count;
    return true;
}

/* A system's network, or (TRN_SYSTEM_COUNT) the file's, and what the command line says of it. */
static bool start_network(job *j, trn_system system)
{
    const tb_cc_options *o = j->o;
    char why[APP_WHY];
    j->net = o->network.loaded ? o->network.net : trn_topology_preset(system, o->preset);
    j->name = o->network.loaded ? o->network.net.name : trn_system_name(system);
    j->faults[0] = 0;
    if (!j->net.chips) return refuse(j, "%s has no such preset", 0, 0, 0);
    if (!app_network_break(&o->network, &j->net, why)) {
        snprintf(j->error.text, sizeof j->error.text, "%.*s", (int)sizeof j->error.text - 1, why);
        return false;
    }
    app_network_faults(&j->net, j->faults, sizeof j->faults);
    return true;
}

static bool start(job *j, trn_system system)
{
    const tb_cc_options *o = j->o;
    const bool found = start_network(j, system);
    memset(&j->args, 0, sizeof j->args);
    j->args.net = &j->net;
    j->args.ranks_per_chip = o->ranks_per_chip ? o->ranks_per_chip : j->net.ranks_per_chip;
    j->args.wire = o->wire;
    j->args.uncalibrated = o->uncalibrated;
    j->args.calibration = &o->calibration.now;
    j->args.error = &j->error;
    snprintf(j->chips, sizeof j->chips, "all");
    if (!found) return false;
    if (o->ranks && !first_chips(j, o->ranks)) return false;
    if (o->groups.groups) {
        j->args.chips = o->groups.chip;
        j->args.count = o->groups.count;
        j->args.groups = o->groups.groups;
    }
    if (j->args.chips) {
        const tb_groups g = { o->groups.groups ? o->groups.groups : 1, j->args.count,
                              o->groups.groups ? o->groups.chip : j->chip };
        if (tb_groups_text(&g, j->chips, sizeof j->chips) >= sizeof j->chips)
            memcpy(j->chips + sizeof j->chips - 4, "...", 4);
    }
    trn_collective_args smallest = j->args; /* of the first operation: groups and ranks are checked alike */
    trn_cost cost;
    while (smallest.op < TRN_COLLECTIVE_COUNT - 1 && !o->op[smallest.op])
        smallest.op = (trn_collective)((int)smallest.op + 1);
    smallest.bytes = (int64_t)trn_format_bytes(o->wire);
    return trn_collective_cost(&smallest, &cost) == TRN_OK;
}

/* ---- rows ---- */

static void row_head(app_table *table, const job *j)
{
    app_row(table);
    app_text(table, "%s", j->name);
    app_text(table, "%s", j->o->network.loaded ? "file" : j->o->preset);
    app_text(table, "%s", trn_collective_name(j->args.op));
    app_text(table, "%s", j->faults);
    app_text(table, "%s", j->chips);
    app_integer(table, j->args.groups ? j->args.groups : 1);
    app_integer(table, j->args.ranks_per_chip);
}

static void row_of_refusal(app_table *table, job *j)
{
    static const char *const known[] = { "type", "algorithm", "source", "note" };
    if (!j->refusal[0]) memcpy(j->refusal, j->error.text, sizeof j->refusal);
    row_head(table, j);
    while (table->filled < table->columns) {
        const char *name = table->column[table->filled].name;
        int i = 0;
        while (i < 4 && strcmp(name, known[i]) != 0) i++;
        if (i == 0)
            app_text(table, "%s", trn_format_name(j->o->wire));
        else if (i == 1)
            app_text(table, "%s", trn_algorithm_name(j->args.algorithm));
        else if (i == 2)
            app_text(table, "model");
        else if (i == 3)
            app_text(table, "%s", j->error.text);
        else
            app_missing(table);
    }
}

static void row_of_cost(app_table *table, const job *j, const trn_cost *c, bool automatic, const tb_cc_check *check)
{
    const double unit = j->o->gib ? 0x1p30 : 1e9;
    row_head(table, j);
    app_integer(table, trn_collective_ranks(&j->args));
    app_integer(table, j->args.bytes);
    app_integer(table, j->args.bytes / (int64_t)trn_format_bytes(j->o->wire));
    app_text(table, "%s", trn_format_name(j->o->wire));
    const double times[] = { c->time_s, c->expected_s, c->expected_low_s, c->expected_high_s };
    for (int i = 0; i < 4; i++) app_real(table, 1e6 * times[i]);
    const double slower = c->time_s / c->expected_s; /* NaN for what takes no time */
    const double rates[] = { c->bytes_per_s, c->bus_bytes_per_s, c->bus_bytes_per_s * slower };
    for (int i = 0; i < 3; i++) app_real(table, c->time_s > 0 ? rates[i] / unit : (double)NAN);
    app_text(table, "%s", trn_algorithm_name(c->algorithm));
    app_integer(table, automatic);
    app_integer(table, c->single_step);
    app_integer(table, c->steps);
    const double seconds[] = { c->latency_s,       c->link_s,
                               c->hbm_s,           c->dma_s,
                               c->launch_s,        c->expected_latency_s,
                               c->expected_link_s, c->expected_memory_s,
                               c->lower_bound_s };
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) app_real(table, 1e6 * seconds[i]);
    app_text(table, "%s", c->bottleneck);
    app_integer(table, !j->o->uncalibrated);
    app_text(table, "model");
    if (check)
        app_integer(table, check->compared), app_integer(table, check->wrong);
    else
        app_missing(table), app_missing(table);
    app_text(table, "%s", "");
}

/* ---- values ---- */

/* Of a machine that is too large: the first units of its outermost level, as many as are not. NULL when the group is
 * the caller's and too large, or the buffers are. */
static const trn_collective_args *checkable(const job *j, trn_collective_args *args, int **chip)
{
    const int cores = j->args.ranks_per_chip;
    int64_t ranks = trn_collective_ranks(&j->args);
    *args = j->args;
    *chip = NULL;
    if (ranks > TB_CC_CHECK_RANKS) {
        const int unit = j->net.chips / j->net.level[j->net.levels - 1].size, most = TB_CC_CHECK_RANKS / cores;
        const int count = most / unit * unit;
        if (j->o->groups.groups || count < 1) return NULL;
        *chip = app_memory((size_t)count, sizeof **chip);
        for (int i = 0; i < count; i++) (*chip)[i] = i;
        args->chips = *chip;
        args->count = count;
        ranks = (int64_t)count * cores;
    }
    const int64_t groups = args->groups ? args->groups : 1;
    return groups * ranks * (args->bytes / (int64_t)trn_format_bytes(j->o->wire)) <= TB_CC_CHECK_ELEMENTS ? args : NULL;
}

/* NULL when nothing was compared. */
static const tb_cc_check *check_values(job *j, tb_cc_check *check)
{
    trn_collective_args args;
    int *chip;
    if (!j->o->check) return NULL;
    const trn_collective_args *ask = checkable(j, &args, &chip);
    const bool ran = ask && app_worked(tb_cc_check_values(ask, j->o->seed, check), &j->error);
    free(chip);
    if (!ran) return NULL;
    if (check->wrong)
        j->status =
            app_complain(APP_FAILED, "%s: %s by %s of %lld bytes: %lld of %lld values are wrong; %s", j->name,
                         trn_collective_name(args.op), trn_algorithm_name(args.algorithm), (long long)args.bytes,
                         (long long)check->wrong, (long long)check->compared, check->first);
    return check;
}

/* ---- the sweep ---- */

/* All sizes by one algorithm. */
static void sweep(app_table *table, job *j)
{
    const tb_cc_options *o = j->o;
    const int64_t element = (int64_t)trn_format_bytes(o->wire);
    for (int64_t size = o->from; size <= o->to && j->status != APP_USAGE; size *= o->factor) {
        trn_cost cost, best;
        tb_cc_check check;
        bool automatic = j->args.algorithm == TRN_ALGORITHM_AUTO;
        j->args.bytes = (size + element - 1) / element * element;
        tb_step("%s %s %lld B", j->name, trn_collective_name(j->args.op), (long long)size);
        if (!app_worked(trn_collective_cost(&j->args, &cost), &j->error)) {
            row_of_refusal(table, j);
            return;
        }
        if (o->every_algorithm) {
            trn_collective_args any = j->args;
            any.algorithm = TRN_ALGORITHM_AUTO;
            automatic = app_worked(trn_collective_cost(&any, &best), &j->error) && best.algorithm == cost.algorithm;
        }
        row_of_cost(table, j, &cost, automatic, check_values(j, &check));
        j->rows++;
    }
}

static void every_algorithm(app_table *table, job *j)
{
    const bool pairs = j->args.op == TRN_PERMUTE || j->args.op == TRN_SEND_RECV;
    for (int a = TRN_ALGORITHM_AUTO + 1; a < TRN_POINT_TO_POINT; a++) {
        j->args.algorithm = pairs ? TRN_ALGORITHM_AUTO : (trn_algorithm)a;
        sweep(table, j);
        if (pairs) return;
    }
}

/* False when --rules refuses the group. */
static bool system_rows(app_table *table, job *j, trn_system system)
{
    const bool ready = start(j, system);
    if (ready && j->o->rules && !app_worked(trn_replica_group_check(&j->args), &j->error)) return false;
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++) {
        if (!j->o->op[op]) continue;
        j->args.op = (trn_collective)op;
        j->args.algorithm = j->o->algorithm;
        if (!ready)
            row_of_refusal(table, j);
        else if (j->o->every_algorithm)
            every_algorithm(table, j);
        else
            sweep(table, j);
    }
    return true;
}

int tb_cc_rows(app_table *table, const tb_cc_options *o)
{
    job j;
    memset(&j, 0, sizeof j);
    j.o = o;
    for (int s = 0; s <= TRN_SYSTEM_COUNT; s++) {
        if (s < TRN_SYSTEM_COUNT ? !o->system[s] : !o->network.loaded) continue;
        const bool ok = system_rows(table, &j, (trn_system)s);
        release(&j);
        if (!ok) return app_complain(APP_USAGE, "%s: %s", j.name, j.error.text);
    }
    app_progress_done();
    return j.rows ? j.status : app_complain(APP_USAGE, "%s", j.refusal);
}

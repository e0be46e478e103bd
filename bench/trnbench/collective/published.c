/* published.c - times of collectives that somebody printed after a run, beside bound, ideal and expectation,
 * and what a fit without each row predicts for it.
 * SPDX-License-Identifier: MIT
 */
#include "collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_calibration_fit.h>

#include "published/collectives.h"

static const app_column columns[] = {
    { "system", APP_TEXT, "", "that the row is taken to be of" },
    { "op", APP_TEXT, "", "collective operation" },
    { "ranks", APP_INTEGER, "", "of the group" },
    { "release", APP_TEXT, "", "which software its floor belongs to" },
    { "size_b", APP_INTEGER, "B", "buffer of a rank; of all_gather: the gathered result" },
    { "bound_us", APP_REAL, "us", "no schedule is faster" },
    { "time_us", APP_REAL, "us", "ideal: the schedule at the documented rates" },
    { "expected_us", APP_REAL, "us", "by the calibration of that release" },
    { "expected_low_us", APP_REAL, "us", "four of five lie between this" },
    { "expected_high_us", APP_REAL, "us", "and this" },
    { "published_us", APP_REAL, "us", "printed after a run" },
    { "ratio", APP_REAL, "", "expected over published" },
    { "left_out_us", APP_REAL, "us", "expected by a fit to the other rows of the release" },
    { "left_out_ratio", APP_REAL, "", "that over published" },
    { "algorithm", APP_TEXT, "", "how the model does it" },
    { "source", APP_TEXT, "", "who printed it" },
    { "note", APP_TEXT, "", "why the row is not fitted" },
};

/* ---- rows as samples ---- */

typedef struct rows {
    trn_topology net[PUBLISHED_COLLECTIVES];
    int chip[PUBLISHED_COLLECTIVES][PUBLISHED_CHIPS];
    trn_collective_args ask[PUBLISHED_COLLECTIVES];
    trn_cost cost[PUBLISHED_COLLECTIVES];
    double left_out_s[PUBLISHED_COLLECTIVES]; /* 0: not fitted */
    trn_calibration calibration[TRN_RELEASE_COUNT];
    trn_error error;
} rows;

static bool fitted(const published_collective *row, trn_release release)
{
    return row->release == release && !row->outside && !row->graph;
}

/* Rows of one kind of network share it, so that the fit sees that only their sizes differ. */
static void ask_rows(rows *all)
{
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) {
        const published_collective *row = &published_collectives[i], *last = i ? row - 1 : NULL;
        const bool same = last && last->system == row->system && last->chips == row->chips &&
                          last->ranks_per_chip == row->ranks_per_chip && last->apart == row->apart;
        all->net[i] = published_net(row);
        all->ask[i] = published_ask(row, &all->net[i], all->chip[i]);
        if (same) {
            all->ask[i].net = all->ask[i - 1].net;
            all->ask[i].chips = all->ask[i - 1].chips;
        }
        all->ask[i].error = &all->error;
        all->ask[i].calibration = &all->calibration[row->release];
    }
}

/* What each row comes to by a fit that has not seen it. */
static trn_status leave_out(rows *all, trn_release release)
{
    static const char *const fields[] = { "launch_s hbm", "launch_s instance_s step_s efa hbm" };
    trn_calibration_sample sample[PUBLISHED_COLLECTIVES];
    int at[PUBLISHED_COLLECTIVES], samples = 0;
    trn_status status = TRN_OK;
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) {
        if (!fitted(&published_collectives[i], release)) continue;
        sample[samples].ask = all->ask[i];
        sample[samples].measured_s = 1e-6 * published_collectives[i].us;
        at[samples++] = i;
    }
    for (int k = 0; k < samples && status == TRN_OK; k++) {
        trn_calibration_fit_args fit = { sample, samples,    &all->calibration[release], fields[release], 1 + k,
                                         true,   &all->error };
        trn_calibration found;
        trn_collective_args ask = sample[k].ask;
        trn_cost cost;
        tb_step("%s without row %d of %d", trn_release_name(release), k + 1, samples);
        status = trn_calibration_fit(&fit, &found);
        ask.calibration = &found;
        if (status == TRN_OK) status = trn_collective_cost(&ask, &cost);
        if (status == TRN_OK) all->left_out_s[at[k]] = cost.expected_s;
    }
    return status;
}

static trn_status fill(rows *all)
{
    trn_status status = TRN_OK;
    for (int r = 0; r < TRN_RELEASE_COUNT; r++) all->calibration[r] = trn_calibration_of_release((trn_release)r);
    ask_rows(all);
    for (int i = 0; i < PUBLISHED_COLLECTIVES && status == TRN_OK; i++)
        status = published_cost(&published_collectives[i], &all->ask[i], &all->cost[i]);
    for (int r = 0; r < TRN_RELEASE_COUNT && status == TRN_OK; r++) status = leave_out(all, (trn_release)r);
    app_progress_done();
    return status;
}

static void add_row(app_table *table, const rows *all, int i)
{
    const published_collective *row = &published_collectives[i];
    const trn_cost *c = &all->cost[i];
    const double seconds[] = { c->lower_bound_s, c->time_s, c->expected_s, c->expected_low_s, c->expected_high_s };
    const double left_out_us = all->left_out_s[i] > 0 ? 1e6 * all->left_out_s[i] : (double)NAN;
    app_row(table);
    app_text(table, "%s", trn_system_name(row->system));
    app_text(table, "%s", trn_collective_name(row->op));
    app_integer(table, row->chips * row->ranks_per_chip);
    app_text(table, "%s", trn_release_name(row->release));
    app_integer(table, row->bytes);
    for (int k = 0; k < 5; k++) app_real(table, 1e6 * seconds[k]);
    app_real(table, row->us);
    app_real(table, 1e6 * c->expected_s / row->us);
    app_real(table, left_out_us);
    app_real(table, left_out_us / row->us);
    app_text(table, "%s", trn_algorithm_name(c->algorithm));
    app_text(table, "%s", row->source);
    app_text(table, "%s", row->outside ? row->outside : "");
}

int tb_cc_published(app_table *table)
{
    rows *all = app_memory(1, sizeof *all);
    app_table_start(table, columns, sizeof columns / sizeof columns[0]);
    const trn_status status = fill(all);
    for (int i = 0; i < PUBLISHED_COLLECTIVES && status == TRN_OK; i++) add_row(table, all, i);
    if (status != TRN_OK) app_complain(APP_USAGE, "published rows: %s", all->error.text);
    free(all);
    return status == TRN_OK ? APP_OK : APP_USAGE;
}

/* ---- for people ---- */

/* How many of the rows from (or below) 1 MiB lie within `most` of the published time, as "15 of 17". */
static void count_within(const app_table *table, bool large, double most, const char *column)
{
    int within = 0, all = 0;
    for (int r = 0; r < table->rows; r++) {
        const double ratio = app_at(table, r, column)->real;
        if (app_at(table, r, column)->missing || (app_at(table, r, "size_b")->integer >= 1 << 20) != large) continue;
        all++;
        within += ratio <= most && ratio >= 1 / most;
    }
    printf("%d of %d within %.1f times", within, all, most);
}

void tb_cc_print_published(const app_table *table)
{
    static const int from[] = { 0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 13, 15 };
    enum { SHOWN = sizeof from / sizeof from[0] };
    app_column column[SHOWN];
    app_table shown;
    for (int c = 0; c < SHOWN; c++) column[c] = columns[from[c]];
    app_table_start(&shown, column, SHOWN);
    for (int r = 0; r < table->rows; r++) {
        app_row(&shown);
        for (int c = 0; c < SHOWN; c++) {
            const app_value *v = &table->cell[r * table->columns + from[c]];
            const char *mark =
                c == SHOWN - 1 && !app_at(table, r, "note")->missing && app_at(table, r, "note")->text[0] ? " *" : "";
            if (v->missing)
                app_missing(&shown);
            else if (column[c].kind == APP_TEXT)
                app_text(&shown, "%s%s", v->text, mark);
            else if (column[c].kind == APP_REAL)
                app_real(&shown, v->real);
            else
                app_integer(&shown, v->integer);
        }
    }
    app_print_table(stdout, &shown);
    app_table_free(&shown);
    printf("\n  from 1 MiB: ");
    count_within(table, true, 1.5, "ratio");
    printf("; left out of the fit: ");
    count_within(table, true, 1.5, "left_out_ratio");
    printf("\n  smaller:    ");
    count_within(table, false, 2.5, "ratio");
    printf("; left out of the fit: ");
    count_within(table, false, 2.5, "left_out_ratio");
    putchar('\n');
    const char *told = "";
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) { /* one sentence for each reason */
        const char *why = published_collectives[i].outside;
        if (why && strcmp(why, told) != 0) app_say(stdout, "  * not fitted: %s\n", told = why);
    }
}

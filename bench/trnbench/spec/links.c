/* links.c - how the chips of each system are wired: every rate, time and factor with its source, by preset.
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include <string.h>

#include <trnmath/trn_collective_cost.h>

static const app_column columns[] = {
    { "system", APP_TEXT, "", "name, as --system takes it" },
    { "preset", APP_TEXT, "",
      "whose figures: sa (the default), doc, spec, perhaps /planes=n; \"also said\" and reading: of no preset" },
    { "of", APP_TEXT, "",
      "a level of the network from the innermost; step, chip, or all: the whole network; of a reading: which links" },
    { "wiring", APP_TEXT, "", "how its chips are joined: ring, all to all, switch" },
    { "size", APP_INTEGER, "", "values of the level's digit" },
    { "field", APP_TEXT, "", "rates are one way: of one link, or of the port of a chip" },
    { "value", APP_REAL, "see unit", "of the field" },
    { "unit", APP_TEXT, "", "unit of value" },
    { "known", APP_TEXT, "", "documented, measured, third party, derived, fitted or assumed" },
    { "source", APP_TEXT, "", "where it stands, what it was derived from, or why it was assumed" },
};

/* What a row says of one number; wiring and size only for a level. */
static void row(app_table *table, const trn_topology *net, const char *preset, const char *of, const trn_level *level,
                const char *field, double value, const char *unit, trn_source source)
{
    static const char *const wiring[] = { "none", "ring", "all to all", "switch", "graph" };
    app_row(table);
    app_text(table, "%s", net ? trn_system_name(net->system) : "all systems");
    app_text(table, "%s", preset);
    app_text(table, "%s", of);
    if (level) {
        app_text(table, "%s", wiring[level->wiring]);
        app_integer(table, level->size);
    } else {
        app_missing(table);
        app_missing(table);
    }
    app_text(table, "%s", field);
    app_real(table, value);
    app_text(table, "%s", unit);
    app_text(table, "%s", trn_provenance_text(source.known));
    app_text(table, "%s", source.where);
}

/* All of it for the default preset; for another one what differs from that. */
static void level_rows(app_table *table, const trn_topology *net, const char *preset, const trn_topology *base)
{
    static const trn_source planes = { "planes", TRN_THIRD_PARTY,
                                       "SemiAnalysis on Trainium3, 2025-12 (the first racks; later ones have one)" };
    for (int l = 0; l < net->levels; l++) {
        const trn_level *at = &net->level[l];
        if (at->wiring == TRN_WIRING_NONE) continue;
        if (!base || strcmp(at->rate.where, base->level[l].rate.where) != 0)
            row(table, net, preset, at->name, at, "bytes_per_s", at->bytes_per_s, "B/s one way", at->rate);
        if (!base) row(table, net, preset, at->name, at, "latency_s", at->latency_s, "s", at->latency);
        if (at->planes > 1) row(table, net, preset, at->name, at, "planes", at->planes, "planes", planes);
    }
}

/* What links, distances and halves add up to. */
static void sum_rows(app_table *table, const trn_topology *net, const char *preset)
{
    static const trn_source links = { "", TRN_DERIVED, "the links above, added up" };
    static const trn_source routes = { "", TRN_DERIVED, "routes between all pairs; a switch is two links" };
    static const trn_source halves = { "", TRN_DERIVED, "links between the halves that have fewest" };
    if (net->chips == 1) return;
    row(table, net, preset, "all", NULL, "injection_bytes_per_s", trn_topology_injection_bytes_per_s(net),
        "B/s one way", links);
    row(table, net, preset, "all", NULL, "bisection_bytes_per_s", trn_topology_bisection_bytes_per_s(net),
        "B/s one way", halves);
    row(table, net, preset, "all", NULL, "diameter", trn_topology_diameter(net), "links", routes);
    row(table, net, preset, "all", NULL, "mean_hops", trn_topology_mean_hops(net), "links", routes);
}

static void chip_rows(app_table *table, const trn_topology *net, const char *preset)
{
    row(table, net, preset, "step", NULL, "start_s", net->start_s, "s", net->start);
    row(table, net, preset, "step", NULL, "local_latency_s", net->local_latency_s, "s", net->local);
    row(table, net, preset, "chip", NULL, "hbm_bytes_per_s", net->hbm_bytes_per_s, "B/s", net->hbm);
    row(table, net, preset, "chip", NULL, "dma_bytes_per_s", net->dma_bytes_per_s, "B/s", net->dma);
    row(table, net, preset, "chip", NULL, "reduce_pass", net->reduce_pass, "passes/source", net->reduce);
    row(table, net, preset, "chip", NULL, "ranks_per_chip", net->ranks_per_chip, "ranks", net->ranks);
}

/* Rates of links that another source gives and no preset has, and why. */
static void said_rows(app_table *table, const trn_topology *net)
{
    trn_spec_alternative a;
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        const char *field = a.chosen.field;
        if (a.system != net->system || (!strstr(field, "link") && !strstr(field, "efa"))) continue;
        char why[400];
        snprintf(why, sizeof why, "%s; %s", a.where, a.why);
        const trn_source source = { field, a.known, why };
        row(table, net, "also said", a.chosen.level, NULL, field, a.value, a.chosen.unit, source);
    }
}

/* What every source prints of NeuronLink, those that agree included. */
static void reading_rows(app_table *table, const bool *wanted)
{
    trn_spec_link_reading r;
    char why[400];
    for (int i = 0; tb_reading_at(i, wanted, &r, why, sizeof why); i++) {
        const trn_topology net = trn_topology_of(r.system);
        const trn_source source = { "bytes_per_s", r.known, why };
        if (*why) row(table, &net, "reading", r.of, NULL, "bytes_per_s", r.bytes_per_s, "B/s one way", source);
    }
}

/* The factors by which the costs of collectives are calibrated, of no one system. */
static void calibration_rows(app_table *table)
{
    trn_spec_field factor;
    for (int i = 0; trn_calibration_field_at(i, &factor); i++) {
        const trn_source source = { factor.field, factor.known, factor.where };
        row(table, NULL, "-", factor.level, NULL, factor.field, factor.value, factor.unit, source);
    }
}

void tb_link_rows(app_table *table, const bool *wanted)
{
    static const char *const other[] = { "doc", "spec", "sa/planes=2", "sa/planes=4" };
    app_table_start(table, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_topology net = trn_topology_of((trn_system)i);
        if (!wanted[i]) continue;
        level_rows(table, &net, "sa", NULL);
        chip_rows(table, &net, "sa");
        sum_rows(table, &net, "sa");
        for (unsigned k = 0; k < sizeof other / sizeof other[0]; k++) {
            const trn_topology same = trn_topology_preset((trn_system)i, other[k]);
            if (!same.chips || !strcmp(same.name, net.name)) continue; /* not there, or no other network */
            level_rows(table, &same, other[k], &net);
            sum_rows(table, &same, other[k]);
        }
        said_rows(table, &net);
    }
    reading_rows(table, wanted);
    calibration_rows(table);
}

/* ---- the same for people ---- */

static const char *text_at(const app_table *table, int at, const char *column)
{
    const app_value *value = app_at(table, at, column);
    return value->missing ? "-" : value->text;
}

void tb_print_links(const app_table *links, const char *system)
{
    static const app_column column[] = { { "preset", APP_TEXT, "", "" }, { "of", APP_TEXT, "", "" },
                                         { "wiring", APP_TEXT, "", "" }, { "field", APP_TEXT, "", "" },
                                         { "value", APP_TEXT, "", "" },  { "known", APP_TEXT, "", "" },
                                         { "source", APP_TEXT, "", "" } };
    app_table table;
    app_table_start(&table, column, 7);
    for (int i = 0; i < links->rows; i++) {
        if (strcmp(text_at(links, i, "system"), system) != 0) continue;
        if (strcmp(text_at(links, i, "preset"), "reading") == 0) continue; /* tb_print_readings has them all */
        const app_value *size = app_at(links, i, "size");
        app_row(&table);
        app_text(&table, "%s", text_at(links, i, "preset"));
        app_text(&table, "%s", text_at(links, i, "of"));
        if (size->missing)
            app_missing(&table);
        else
            app_text(&table, "%s of %d", text_at(links, i, "wiring"), (int)size->integer);
        app_text(&table, "%s", text_at(links, i, "field"));
        tb_quantity(&table, app_at(links, i, "value")->real, text_at(links, i, "unit"));
        app_text(&table, "%s", text_at(links, i, "known"));
        app_text(&table, "%s", text_at(links, i, "source"));
    }
    printf("%s\n", system);
    app_print_table(stdout, &table);
    putchar('\n');
    app_table_free(&table);
}

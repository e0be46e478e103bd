/* physical.c - what the machines are built of, and what is announced: every fact with its source.
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_spec.h>

/* ---- dies, stacks, hosts, drives, cards, trays, racks ---- */

static const app_column physical_columns[] = {
    { "system", APP_TEXT, "", "name, as --system takes it" },
    { "level", APP_TEXT, "", "system, server, chip, or total: the whole system multiplied out" },
    { "owner", APP_TEXT, "", "name of that server or chip" },
    { "field", APP_TEXT, "", "what is counted; sizes are bytes, rates bits or bytes per second" },
    { "value", APP_REAL, "see unit", "empty where text says it" },
    { "unit", APP_TEXT, "", "unit of value" },
    { "text", APP_TEXT, "", "a name, such as the processor's" },
    { "known", APP_TEXT, "", "documented, measured, third party, derived, fitted or assumed" },
    { "source", APP_TEXT, "", "where it stands, or what it was derived from" },
};

/* What belongs in this picture, and has its place in trn_spec.h. */
static const struct {
    const char *level, *field;
} from_spec[] = {
    { "system", "servers" },       { "system", "servers_per_domain" },
    { "chip", "cores" },           { "chip", "hbm_bytes" },
    { "server", "chips" },         { "server", "vcpus" },
    { "server", "host_bytes" },    { "server", "efa_bits_per_s" },
    { "total", "chips" },          { "total", "hbm_bytes" },
    { "total", "vcpus" },          { "total", "host_bytes" },
    { "total", "efa_bits_per_s" },
};

static void physical_row(app_table *table, const char *system, const trn_spec_field *fact, const char *text)
{
    app_row(table);
    app_text(table, "%s", system);
    app_text(table, "%s", fact->level);
    app_text(table, "%s", fact->owner);
    app_text(table, "%s", fact->field);
    app_real(table, text ? (double)NAN : fact->value);
    app_text(table, "%s", fact->unit);
    if (text)
        app_text(table, "%s", text);
    else
        app_missing(table);
    app_text(table, "%s", trn_provenance_text(fact->known));
    app_text(table, "%s", fact->where);
}

/* From the system inward to the chip, then the whole. */
static void system_rows(app_table *table, const trn_system_spec *spec)
{
    static const char *const levels[] = { "system", "server", "chip", "total" };
    for (unsigned l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        trn_spec_field field;
        trn_spec_physical fact;
        for (unsigned i = 0; i < sizeof from_spec / sizeof from_spec[0]; i++)
            if (strcmp(from_spec[i].level, levels[l]) == 0 &&
                trn_spec_field_named(spec, levels[l], from_spec[i].field, &field))
                physical_row(table, spec->name, &field, NULL);
        for (int i = 0; trn_spec_physical_at(spec, i, &fact); i++)
            if (strcmp(fact.number.level, levels[l]) == 0) physical_row(table, spec->name, &fact.number, fact.text);
    }
}

void tb_physical_rows(app_table *table, const bool *wanted)
{
    app_table_start(table, physical_columns, (int)(sizeof physical_columns / sizeof physical_columns[0]));
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (wanted[i]) system_rows(table, trn_system_spec_of((trn_system)i));
}

void tb_print_physical(const app_table *physical, const char *system)
{
    static const app_column column[] = { { "of", APP_TEXT, "", "" },
                                         { "field", APP_TEXT, "", "" },
                                         { "value", APP_TEXT, "", "" },
                                         { "known", APP_TEXT, "", "" },
                                         { "source", APP_TEXT, "", "" } };
    app_table table;
    app_table_start(&table, column, 5);
    for (int i = 0; i < physical->rows; i++) {
        if (strcmp(app_at(physical, i, "system")->text, system) != 0) continue;
        const app_value *text = app_at(physical, i, "text");
        const bool total = strcmp(app_at(physical, i, "level")->text, "total") == 0;
        app_row(&table);
        app_text(&table, "%s", total ? "all of it" : app_at(physical, i, "owner")->text);
        app_text(&table, "%s", app_at(physical, i, "field")->text);
        if (!text->missing)
            app_text(&table, "%s", text->text);
        else
            tb_quantity(&table, app_at(physical, i, "value")->real, app_at(physical, i, "unit")->text);
        app_text(&table, "%s", app_at(physical, i, "known")->text);
        app_text(&table, "%s", app_at(physical, i, "source")->text);
    }
    printf("%s\n", system);
    app_print_table(stdout, &table);
    putchar('\n');
    app_table_free(&table);
}

/* ---- announced ---- */

static const app_column announced_columns[] = {
    { "chip", APP_TEXT, "", "that nobody has yet" },
    { "field", APP_TEXT, "", "what is announced" },
    { "times", APP_REAL, "", "as many times Trainium3's" },
    { "value", APP_REAL, "see unit", "that many times what this library holds of Trainium3" },
    { "unit", APP_TEXT, "", "unit of value" },
    { "text", APP_TEXT, "", "in words" },
    { "known", APP_TEXT, "", "third party, all of it" },
    { "source", APP_TEXT, "", "who reports it" },
};

void tb_announced_rows(app_table *table)
{
    trn_spec_announced a;
    app_table_start(table, announced_columns, (int)(sizeof announced_columns / sizeof announced_columns[0]));
    for (int i = 0; trn_spec_announced_at(i, &a); i++) {
        app_row(table);
        app_text(table, "%s", a.name);
        app_text(table, "%s", a.field);
        app_real(table, a.times);
        app_real(table, a.value);
        app_text(table, "%s", a.unit);
        app_text(table, "%s", a.text);
        app_text(table, "%s", trn_provenance_text(a.known));
        app_text(table, "%s", a.where);
    }
}

void tb_print_announced(const app_table *announced)
{
    static const app_column column[] = { { "chip", APP_TEXT, "", "" },  { "field", APP_TEXT, "", "" },
                                         { "said", APP_TEXT, "", "" },  { "which would be", APP_TEXT, "", "" },
                                         { "known", APP_TEXT, "", "" }, { "source", APP_TEXT, "", "" } };
    app_table table;
    app_table_start(&table, column, 6);
    for (int i = 0; i < announced->rows; i++) {
        const app_value *times = app_at(announced, i, "times");
        const char *text = app_at(announced, i, "text")->text;
        app_row(&table);
        app_text(&table, "%s", app_at(announced, i, "chip")->text);
        app_text(&table, "%s", app_at(announced, i, "field")->text);
        if (times->missing) {
            app_text(&table, "%s", text);
            app_missing(&table);
        } else {
            app_text(&table, "%g x Trainium3%s%s", times->real, *text ? ", " : "", text);
            tb_quantity(&table, app_at(announced, i, "value")->real, app_at(announced, i, "unit")->text);
        }
        app_text(&table, "%s", app_at(announced, i, "known")->text);
        app_text(&table, "%s", app_at(announced, i, "source")->text);
    }
    app_print_table(stdout, &table);
    puts("\n  Announced, and not delivered: no other table and no cost has any of it.");
    app_table_free(&table);
}

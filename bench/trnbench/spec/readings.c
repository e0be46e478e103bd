/* readings.c - NeuronLink, reading by reading: what each source prints, and what it comes to.
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include <stdio.h>

#include <trnmath/trn_spec.h>

/* Is a system wanted that has this generation of chips? */
static bool of_wanted(trn_system system, const bool *wanted)
{
    const trn_chip_spec *chip = trn_system_spec_of(system)->server->chip;
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (wanted[i] && trn_system_spec_of((trn_system)i)->server->chip == chip) return true;
    return false;
}

void tb_print_readings(const bool *wanted)
{
    static const app_column column[] = {
        { "chip", APP_TEXT, "", "" },    { "links of a", APP_TEXT, "", "" },    { "as printed", APP_TEXT, "", "" },
        { "one way", APP_TEXT, "", "" }, { "in the tables", APP_TEXT, "", "" }, { "known", APP_TEXT, "", "" },
        { "by", APP_TEXT, "", "" },      { "to be read as", APP_TEXT, "", "" }
    };
    app_table table;
    trn_spec_link_reading r;
    app_table_start(&table, column, 8);
    for (int i = 0; trn_spec_link_reading_at(i, &r); i++) {
        if (!of_wanted(r.system, wanted)) continue;
        app_row(&table);
        app_text(&table, "%s (%s)", trn_system_spec_of(r.system)->server->chip->name, trn_system_name(r.system));
        app_text(&table, "%s", r.of);
        app_text(&table, "%.10g %s", r.printed, r.unit);
        tb_quantity(&table, r.bytes_per_s, "B/s");
        tb_quantity(&table, r.held_bytes_per_s, "B/s");
        app_text(&table, "%s", trn_provenance_text(r.known));
        app_text(&table, "%s", r.where);
        app_text(&table, "%s", r.how);
    }
    puts("NeuronLink, reading by reading");
    app_print_table(stdout, &table);
    putchar('\n');
    app_table_free(&table);
}

bool tb_reading_at(int index, const bool *wanted, trn_spec_link_reading *r, char *why, size_t size)
{
    if (!trn_spec_link_reading_at(index, r)) return false;
    why[0] = '\0';
    if (of_wanted(r->system, wanted))
        snprintf(why, size, "%s; printed: %.10g %s; %s", r->where, r->printed, r->unit, r->how);
    return true;
}

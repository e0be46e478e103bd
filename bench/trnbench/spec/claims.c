/* claims.c - what is said of the machines, with who says it and when, and where it stands here.
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include "claim_rows.h"

static const app_column columns[] = {
    { "of", APP_TEXT, "", "a chip, a server or a system" },
    { "what", APP_TEXT, "", "rows of one fact stand together" },
    { "said", APP_TEXT, "", "in the source's own numbers" },
    { "known", APP_TEXT, "", "documented or third party" },
    { "source", APP_TEXT, "", "who says it, and when" },
    { "here", APP_TEXT, "", "held, or not, and why" },
};

static const claim row[] = {
#define X(of, what, said, known, where, here) { of, what, said, known, where, here },
    CLAIM_LIST(X)
#undef X
};

void tb_claim_rows(app_table *table)
{
    app_table_start(table, columns, (int)(sizeof columns / sizeof columns[0]));
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const char *const text[] = { row[i].of,    row[i].what, row[i].said, trn_provenance_text(row[i].known),
                                     row[i].where, row[i].here };
        app_row(table);
        for (unsigned k = 0; k < sizeof text / sizeof text[0]; k++) app_text(table, "%s", text[k]);
    }
}

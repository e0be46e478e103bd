/* certify_html.c - the certificate as a page: what depends on what, the pairs that show it, and the cures.
 * SPDX-License-Identifier: MIT
 */
#include "certify.h"

#include <math.h>

#include "app/page.h"

static void verdicts(FILE *out, const mr_certificate *c)
{
    static const app_column head[] = {
        { "operation", APP_TEXT, "", "" },
        { "batch", APP_TEXT, "", "how many sequences are run together" },
        { "chunks", APP_TEXT, "", "where the prompt is cut" },
        { "cores", APP_TEXT, "", "how many share a layer" },
        { "why", APP_TEXT, "", "of batch and chunks, or of cores" },
    };
    app_table t;
    app_table_start(&t, head, (int)(sizeof head / sizeof head[0]));
    for (int k = 0; k < MR_KINDS; k++) {
        if (!c->searched.saw[k]) continue;
        const mr_verdict *v = mr_main_verdict(c, (mr_kind)k);
        app_row(&t);
        app_text(&t, "%s", mr_kind_name((mr_kind)k));
        for (int d = 0; d < MR_DIMS; d++) app_text(&t, "%s", mr_found_name(c, (mr_dim)d, (mr_kind)k));
        app_text(&t, "%s", v->why ? v->why : "");
    }
    app_html_table(out, &t);
    app_table_free(&t);
}

static void pairs(FILE *out, const mr_certificate *c)
{
    static const app_column head[] = { { "operation", APP_TEXT, "", "" },
                                       { "of", APP_TEXT, "", "" },
                                       { "cause", APP_TEXT, "", "" },
                                       { "differ", APP_INTEGER, "", "numbers" },
                                       { "of so many", APP_INTEGER, "", "numbers" },
                                       { "smallest pair", APP_TEXT, "", "" } };
    char text[320];
    app_table t;
    app_table_start(&t, head, (int)(sizeof head / sizeof head[0]));
    for (int k = 0; k < MR_KINDS; k++)
        for (int d = 0; d < MR_DIMS; d++) {
            const mr_tally *tally = &c->searched.tally[d][k];
            const mr_verdict *v = &c->verdict[d][k];
            if (v->says != MR_SAYS_DEPENDS && !tally->differ) continue;
            mr_pair_text(c, &tally->pair, text, sizeof text);
            app_row(&t);
            app_text(&t, "%s", mr_kind_name((mr_kind)k));
            app_text(&t, "%s", mr_dim_name((mr_dim)d));
            app_text(&t, "%s", v->cause ? v->cause->name : "none: the rule is wrong");
            app_integer(&t, tally->differ);
            app_integer(&t, tally->compared);
            app_text(&t, "%s", tally->differ ? text : "dependent by rule; none was found");
        }
    if (t.rows) app_html_table(out, &t);
    app_table_free(&t);
}

static void cures(FILE *out, const mr_certificate *c)
{
    static const app_column head[] = { { "cause", APP_TEXT, "", "" },
                                       { "cure", APP_TEXT, "", "" },
                                       { "differ", APP_INTEGER, "", "numbers" },
                                       { "of so many", APP_INTEGER, "", "numbers" },
                                       { "before", APP_TEXT, "s", "modelled" },
                                       { "after", APP_TEXT, "s", "modelled" },
                                       { "of", APP_TEXT, "", "" } };
    app_table t;
    char text[40];
    app_table_start(&t, head, (int)(sizeof head / sizeof head[0]));
    for (int i = 0; i < c->cures; i++) {
        const mr_cured *q = &c->cured[i];
        app_row(&t);
        app_text(&t, "%s", q->cause->name);
        app_text(&t, "%s", q->words);
        app_integer(&t, q->differ);
        app_integer(&t, q->compared);
        app_text(&t, "%s", isnan(q->time.before_s) ? "" : app_si(text, sizeof text, q->time.before_s, "s"));
        app_text(&t, "%s", isnan(q->time.before_s) ? "" : app_si(text, sizeof text, q->time.after_s, "s"));
        app_text(&t, "%s", q->ran ? q->time.of : q->why_not);
    }
    if (t.rows) app_html_table(out, &t);
    app_table_free(&t);
}

void mr_certified_html(FILE *out, const void *certified)
{
    const mr_certified *all = certified;
    app_page_open(out, "modelrun: what a token's bits depend on");
    fputs("<h1>What a token's bits depend on</h1>\n<p>The model ", out);
    app_escape(out, all->folder);
    fputs(" (", out);
    app_escape(out, all->family);
    fprintf(out, ") on %lld tokens of ", (long long)all->tokens);
    app_escape(out, all->text);
    fprintf(out,
            ". same: by rule, and no number differs; differs: by rule, and shown; not found: by rule, but not shown. "
            "Times are modelled, on %s.</p>\n",
            trn_system_name(all->system));
    for (int i = 0; i < all->count; i++) {
        fputs("<h2>", out);
        app_escape(out, all->of[i].setting.name);
        fputs("</h2><div class=card>\n", out);
        verdicts(out, &all->of[i]);
        pairs(out, &all->of[i]);
        cures(out, &all->of[i]);
        fputs("</div>\n", out);
    }
    fprintf(out, "<footer><p>modelrun %s of trnmath.</p></footer>\n", TRN_VERSION);
    app_page_close(out);
}

/* certify_report.c - the certificate as text, CSV and JSON.
 * SPDX-License-Identifier: MIT
 */
#include "certify.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_format.h>

/* ---- one verdict ---- */

const char *mr_found_name(const mr_certificate *c, mr_dim dim, mr_kind kind)
{
    const bool differs = c->searched.tally[dim][kind].differ > 0, tried = c->searched.tally[dim][kind].compared > 0;
    switch (c->verdict[dim][kind].says) {
    case MR_SAYS_DEPENDS: return differs ? "differs" : "not found";
    case MR_SAYS_SAME: return differs ? "WRONG" : tried ? "same" : "untried";
    default: return differs ? "WRONG" : "-";
    }
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static bool holds(trn_format format, float x)
{
    const uint32_t code = trn_encode(format, x, TRN_NEAREST_EVEN, TRN_SATURATE, 0);
    return bits_of(trn_decode(format, code)) == bits_of(x);
}

void mr_pair_codes(const mr_certificate *c, const mr_pair *p, char *a, char *b, size_t size)
{
    const trn_format act = c->setting.act;
    const bool half = act != TRN_F32 && holds(act, p->a) && holds(act, p->b);
    const float x[2] = { p->a, p->b };
    char *const text[2] = { a, b };
    for (int i = 0; i < 2; i++)
        if (half)
            snprintf(text[i], size, "0x%04x", (unsigned)trn_encode(act, x[i], TRN_NEAREST_EVEN, TRN_SATURATE, 0));
        else
            snprintf(text[i], size, "0x%08x", (unsigned)bits_of(x[i]));
}

void mr_pair_text(const mr_certificate *c, const mr_pair *p, char *text, size_t size)
{
    char a[16], b[16], layer[40] = "outside of the layers";
    mr_pair_codes(c, p, a, b, sizeof a);
    if (p->layer >= 0) snprintf(layer, sizeof layer, "layer %lld", (long long)p->layer);
    snprintf(text, size, "%s, token %lld, number %lld: %s (%s), %s (%s)%s", layer, (long long)p->token,
             (long long)p->element, a, p->first, b, p->second,
             p->numbers == MR_NUMBERS_RANDOM ? "; of random numbers" : "");
}

static const char *numbers_name(mr_numbers n)
{
    static const char *const name[] = {
        [MR_NUMBERS_MODEL] = "model's", [MR_NUMBERS_RANDOM] = "random", [MR_NUMBERS_FREE] = "whole model's"
    };
    return name[n];
}

/* ---- rows ---- */

static const app_column column[] = {
    { "setting", APP_TEXT, "", "as it was asked for" },
    { "operation", APP_TEXT, "", "a kind of operation, all layers together" },
    { "of", APP_TEXT, "", "batch: sequences together; chunks: where the prompt is cut; cores: tp" },
    { "rule", APP_TEXT, "", "same or depends, as the library defines the operation" },
    { "found", APP_TEXT, "",
      "same; differs; not found: it depends, and no trial shows it; untried: same by rule alone; WRONG: the rule says "
      "same, and numbers differ" },
    { "cause", APP_TEXT, "", "of what depends; missing: none" },
    { "why", APP_TEXT, "", "the reason, either way" },
    { "arrangements", APP_INTEGER, "", "that were tried" },
    { "numbers", APP_INTEGER, "", "that were compared" },
    { "differ", APP_INTEGER, "", "of those" },
    { "layer", APP_INTEGER, "", "of the smallest pair; missing: there is none, or it is in no layer" },
    { "token", APP_INTEGER, "", "of the pair" },
    { "number", APP_INTEGER, "", "of the pair, in the token's results" },
    { "a", APP_TEXT, "", "its code in the plain arrangement" },
    { "b", APP_TEXT, "", "its code in the other" },
    { "plain", APP_TEXT, "", "the plain arrangement" },
    { "other", APP_TEXT, "", "the first arrangement that differs" },
    { "with", APP_TEXT, "", "numbers that operations were given: model's, random, whole model's" },
};

static const app_column cure_column[] = {
    { "setting", APP_TEXT, "", "as it was asked for" },
    { "cause", APP_TEXT, "", "what is cured" },
    { "cure", APP_TEXT, "", "words that are added to the setting" },
    { "cured", APP_TEXT, "", "yes; by rule, where nothing was compared; NO; or why it was not tried" },
    { "numbers", APP_INTEGER, "", "that were compared in the operations of the cause" },
    { "differ", APP_INTEGER, "", "of those" },
    { "before", APP_REAL, "s", "modelled time; missing: not modelled" },
    { "after", APP_REAL, "s", "modelled time with the cure" },
    { "time of", APP_TEXT, "", "what takes it" },
};

enum {
    COLUMNS = sizeof column / sizeof column[0],
    CURE_COLUMNS = sizeof cure_column / sizeof cure_column[0],
    PAIR_COLUMNS = 8
};

static void fill_pair(app_table *t, const mr_certificate *c, const mr_pair *p)
{
    char a[16], b[16];
    if (!p->found) {
        for (int i = 0; i < PAIR_COLUMNS; i++) app_missing(t);
        return;
    }
    mr_pair_codes(c, p, a, b, sizeof a);
    if (p->layer < 0)
        app_missing(t);
    else
        app_integer(t, p->layer);
    app_integer(t, p->token);
    app_integer(t, p->element);
    app_text(t, "%s", a);
    app_text(t, "%s", b);
    app_text(t, "%s", p->first);
    app_text(t, "%s", p->second);
    app_text(t, "%s", numbers_name(p->numbers));
}

static void fill_row(app_table *t, const mr_certificate *c, mr_dim d, mr_kind k)
{
    const mr_verdict *v = &c->verdict[d][k];
    const mr_tally *tally = &c->searched.tally[d][k];
    app_row(t);
    app_text(t, "%s", c->setting.name);
    app_text(t, "%s", mr_kind_name(k));
    app_text(t, "%s", mr_dim_name(d));
    app_text(t, "%s", v->says == MR_SAYS_DEPENDS ? "depends" : "same");
    app_text(t, "%s", mr_found_name(c, d, k));
    if (v->cause)
        app_text(t, "%s", v->cause->name);
    else
        app_missing(t);
    app_text(t, "%s", v->why ? v->why : "");
    app_integer(t, c->searched.arrangements[d]);
    app_integer(t, tally->compared);
    app_integer(t, tally->differ);
    fill_pair(t, c, &tally->pair);
}

static void fill(app_table *t, const mr_certified *all)
{
    app_table_start(t, column, COLUMNS);
    for (int i = 0; i < all->count; i++)
        for (int k = 0; k < MR_KINDS; k++)
            for (int d = 0; d < MR_DIMS; d++) {
                const mr_certificate *c = &all->of[i];
                const bool is = c->verdict[d][k].says != MR_SAYS_NOTHING || c->searched.tally[d][k].differ;
                if (is) fill_row(t, c, (mr_dim)d, (mr_kind)k);
            }
}

static void fill_cures(app_table *t, const mr_certified *all)
{
    app_table_start(t, cure_column, CURE_COLUMNS);
    for (int i = 0; i < all->count; i++)
        for (int n = 0; n < all->of[i].cures; n++) {
            const mr_cured *q = &all->of[i].cured[n];
            app_row(t);
            app_text(t, "%s", all->of[i].setting.name);
            app_text(t, "%s", q->cause->name);
            app_text(t, "%s", q->words);
            app_text(t, "%s", !q->ran ? q->why_not : !q->by_rule || q->differ ? "NO" : q->compared ? "yes" : "by rule");
            app_integer(t, q->compared);
            app_integer(t, q->differ);
            app_real(t, q->ran ? q->time.before_s : NAN);
            app_real(t, q->ran ? q->time.after_s : NAN);
            app_text(t, "%s", q->ran ? q->time.of : "");
        }
}

/* ---- text ---- */

/* Of batch or of chunks, whichever depends; else of cores. */
const mr_verdict *mr_main_verdict(const mr_certificate *c, mr_kind k)
{
    const mr_dim first = c->verdict[MR_DIM_BATCH][k].says == MR_SAYS_DEPENDS ? MR_DIM_BATCH : MR_DIM_CHUNKS;
    return &c->verdict[c->verdict[first][k].says == MR_SAYS_NOTHING ? MR_DIM_CORES : first][k];
}

static void print_verdicts(FILE *out, const mr_certificate *c)
{
    static const app_column head[] = { { "operation", APP_TEXT, "", "" },  { "batch", APP_TEXT, "", "" },
                                       { "chunks", APP_TEXT, "", "" },     { "cores", APP_TEXT, "", "" },
                                       { "numbers", APP_INTEGER, "", "" }, { "why", APP_TEXT, "", "" } };
    app_table t;
    app_table_start(&t, head, (int)(sizeof head / sizeof head[0]));
    for (int k = 0; k < MR_KINDS; k++) {
        const mr_verdict *v = mr_main_verdict(c, (mr_kind)k);
        int64_t compared = 0;
        if (!c->searched.saw[k]) continue;
        app_row(&t);
        app_text(&t, "%s", mr_kind_name((mr_kind)k));
        for (int d = 0; d < MR_DIMS; d++) {
            app_text(&t, "%s", mr_found_name(c, (mr_dim)d, (mr_kind)k));
            compared += c->searched.tally[d][k].compared;
        }
        app_integer(&t, compared);
        app_text(&t, v->cause ? "[%s]" : "%s", v->cause ? v->cause->name : v->why ? v->why : "");
    }
    app_print_table(out, &t);
    app_table_free(&t);
}

/* Is there an operation before that depends on the same cause? Then its reason was told. */
static bool is_told(const mr_certificate *c, int kind, int dim)
{
    for (int k = 0; k <= kind; k++)
        for (int d = 0; d < (k < kind ? (int)MR_DIMS : dim); d++)
            if (c->verdict[d][k].says == MR_SAYS_DEPENDS && c->verdict[d][k].cause == c->verdict[dim][kind].cause)
                return true;
    return false;
}

static void print_pairs(FILE *out, const mr_certificate *c)
{
    char text[320];
    for (int k = 0; k < MR_KINDS; k++)
        for (int d = 0; d < MR_DIMS; d++) {
            const mr_tally *t = &c->searched.tally[d][k];
            const mr_verdict *v = &c->verdict[d][k];
            if (v->says != MR_SAYS_DEPENDS && !t->differ) continue;
            fprintf(out, "\n%s, %s: ", mr_kind_name((mr_kind)k), mr_dim_name((mr_dim)d));
            if (t->differ) {
                mr_pair_text(c, &t->pair, text, sizeof text);
                fprintf(out, "%lld of %lld numbers differ; %s", (long long)t->differ, (long long)t->compared, text);
            } else
                fprintf(out, "dependent by rule; no difference in %lld numbers of %d arrangements",
                        (long long)t->compared, c->searched.arrangements[d]);
            fprintf(out, " [%s]", v->cause ? v->cause->name : "THE RULE SAYS THAT NONE DIFFERS");
            if (v->cause && !is_told(c, k, d)) fprintf(out, "\n  why: %s", v->why);
        }
}

static const char *seconds(char *text, size_t size, double s)
{
    if (isnan(s)) return "?";
    if (s < 1e-3)
        snprintf(text, size, "%.3g us", 1e6 * s);
    else
        snprintf(text, size, "%.3g ms", 1e3 * s);
    return text;
}

static void print_cures(FILE *out, const mr_certified *all, const mr_certificate *c)
{
    char a[40], b[40];
    for (int i = 0; i < c->cures; i++) {
        const mr_cured *q = &c->cured[i];
        app_say(out, "\n%s against [%s]: ", q->words, q->cause->name);
        if (!q->ran) {
            app_say(out, "%s", q->why_not);
            continue;
        }
        fprintf(out, "%lld of %lld numbers differ%s", (long long)q->differ, (long long)q->compared,
                q->by_rule ? "" : " (AND THE RULE SAYS THAT SOME MAY)");
        if (isnan(q->time.before_s))
            fprintf(out, "; %s", q->time.of);
        else
            fprintf(out, "; %s, then %s: %s (modelled, %s)", seconds(a, sizeof a, q->time.before_s),
                    seconds(b, sizeof b, q->time.after_s), q->time.of, trn_system_name(all->system));
    }
    if (c->cures) fputc('\n', out);
}

void mr_certified_text(FILE *out, const void *certified)
{
    const mr_certified *all = certified;
    app_say(out, "%s: %s, %lld layers; %s: %lld tokens\n", all->folder, all->family, (long long)all->layers, all->text,
            (long long)all->tokens);
    for (int i = 0; i < all->count; i++) {
        const mr_certificate *c = &all->of[i];
        app_say(out, "\n%s: %d batches, %d ways to cut the prompt, %d numbers of cores; %.3g s\n\n", c->setting.name,
                c->searched.arrangements[MR_DIM_BATCH], c->searched.arrangements[MR_DIM_CHUNKS],
                c->searched.arrangements[MR_DIM_CORES], c->seconds);
        print_verdicts(out, c);
        print_pairs(out, c);
        if (c->cures) fputc('\n', out);
        print_cures(out, all, c);
        if (c->wrong) fprintf(out, "\nTHE RULES ARE WRONG in %d places.\n", c->wrong);
    }
    fputs("\nsame: by rule, and no number differs; differs: by rule, and shown; not found: by rule, but not shown; "
          "untried: same by rule alone; -: there is no such thing\n",
          out);
}

/* ---- CSV, JSON ---- */

void mr_certified_csv(FILE *out, const void *certified)
{
    app_table t;
    fill(&t, certified);
    app_print_csv(out, &t);
    app_table_free(&t);
}

void mr_certified_json(FILE *out, const void *certified)
{
    const mr_certified *all = certified;
    app_table t;
    int wrong = 0;
    for (int i = 0; i < all->count; i++) wrong += all->of[i].wrong;
    fputs("{\n", out);
    app_print_json_pair(out, "model", all->folder);
    app_print_json_pair(out, "family", all->family);
    app_print_json_pair(out, "system", trn_system_name(all->system));
    fprintf(out,
            "  \"layers\": %lld,\n  \"tokens\": %lld,\n  \"wrong\": %d,\n  \"operations\": ", (long long)all->layers,
            (long long)all->tokens, wrong);
    fill(&t, all);
    app_print_json_rows(out, &t, 2);
    app_table_free(&t);
    fputs(",\n  \"cures\": ", out);
    fill_cures(&t, all);
    app_print_json_rows(out, &t, 2);
    app_table_free(&t);
    fputs("\n}\n", out);
}

void mr_certified_schema(void)
{
    app_table t;
    app_table_start(&t, column, COLUMNS);
    app_print_schema(stdout, "modelrun --certify", &t);
    app_table_free(&t);
}

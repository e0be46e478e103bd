/* verdict.c - the same, rounding, or a bug and which: what is tried, what is accepted, and how it is told.
 * SPDX-License-Identifier: MIT
 *
 * An explanation is accepted when what it leaves may be rounding, everywhere, and 2 % of the error's energy at most,
 * and when it fits at most half as many numbers as there are. Of those, the one that takes least to say is told, with
 * all that take as little: ties.
 */
#include "bug.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void bug_say(bug_finding *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    io_say_list(f->text, sizeof f->text, sizeof f->text, format, list);
    va_end(list);
}

/* ---- the table ---- */

/* Old output that was added to: what B has more than A stands in A, elsewhere. */
static void accumulated(bug_search *s)
{
    const bug_case *c = s->c;
    if (c->before.rms < 0.1) return;
    bug_case more = *c;
    bug_search inner = { .name = s->name, .c = &more };
    more.b = app_memory((size_t)(c->m * c->n), sizeof *more.b);
    for (int64_t i = 0; i < c->m * c->n; i++) more.b[i] = c->b[i] - c->a[i];
    more.before = bug_measure(&more, NULL, NULL, 0);
    more.sampled = bug_measure(&more, NULL, NULL, BUG_SAMPLE);
    bug_rows(&inner);
    bug_columns(&inner);
    bug_layout(&inner);
    for (int i = 0; i < inner.count; i++) {
        bug_finding *f = bug_add(s, inner.found[i].cost + 1, false);
        if (!f) break;
        f->left = inner.found[i].left;
        bug_say(f, "old output was added to: what B has more than A is A again, of which %.200s", inner.found[i].text);
    }
    free(more.b);
}

typedef enum bug_when { FACTS, ROUNDING, VALUES, PLACES } bug_when;

static const struct {
    const char *name;
    bug_test *test;
    bug_when when;
} rows[] = {
    { "mask", bug_mask, FACTS },
    { "no numbers", bug_no_numbers, FACTS },
    { "rounded", bug_rounded, ROUNDING },
    { "rounded operands", bug_casts, ROUNDING },
    { "constant", bug_constant, VALUES },
    { "factor", bug_factor, VALUES },
    { "bias", bug_bias, VALUES },
    { "saturated", bug_saturated, VALUES },
    { "function", bug_function, VALUES },
    { "function of the operand", bug_other_function, VALUES },
    { "layout", bug_layout, VALUES },
    { "rows", bug_rows, VALUES },
    { "columns", bug_columns, VALUES },
    { "operands", bug_operands, VALUES },
    { "part of K", bug_k_parts, VALUES },
    { "factor per row", bug_row_factors, VALUES },
    { "factor per column", bug_column_factors, VALUES },
    { "bias per row", bug_row_bias, VALUES },
    { "bias per column", bug_column_bias, VALUES },
    { "biases", bug_both_biases, VALUES },
    { "epsilon", bug_norm, VALUES },
    { "factor per block", bug_tile_factors, VALUES },
    { "softmax", bug_softmax, VALUES },
    { "accumulated", accumulated, VALUES },
    { "places", bug_regions, PLACES },
};

static void run(bug_search *s, bug_when when)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].when != when) continue;
        s->name = rows[i].name;
        rows[i].test(s);
    }
}

void bug_run_families(bug_search *s)
{
    const char *name = s->name;
    run(s, VALUES);
    s->name = name;
}

static int explained(const bug_search *s)
{
    int n = 0;
    for (int i = 0; i < s->count; i++) n += !s->found[i].fact;
    return n;
}

/* ---- which one is told ---- */

static const bug_finding *plainest(const bug_search *s)
{
    const bug_finding *best = NULL;
    for (int i = 0; i < s->count; i++) {
        const bug_finding *f = &s->found[i];
        if (f->fact) continue;
        if (!best || f->cost < best->cost || (f->cost == best->cost && f->left.rms < best->left.rms)) best = f;
    }
    return best;
}

static bool ties(const bug_finding *f, const bug_finding *best)
{
    return f != best && !f->fact && f->cost == best->cost && f->left.rms <= 4 * best->left.rms + 1e-9 &&
           strcmp(f->text, best->text) != 0;
}

static void tell(ud_verdict *v, const char *format, const char *text)
{
    if (v->lines == UD_VERDICT_LINES) return;
    snprintf(v->line[v->lines++], sizeof v->line[0], format, text);
}

static void tell_bug(ud_verdict *v, const bug_search *s, const bug_finding *best)
{
    v->kind = UD_BUG;
    for (int i = 0; i < s->count; i++)
        if (s->found[i].fact) tell(v, "%s", s->found[i].text);
    if (best) tell(v, "%s", best->text);
    v->ties = v->lines;
    for (int i = 0; i < s->count && best; i++)
        if (ties(&s->found[i], best)) tell(v, "%s", s->found[i].text);
}

static void tell_rounding(ud_verdict *v, const bug_case *c, const bug_finding *best, const char *exact)
{
    char text[200];
    v->kind = UD_ROUNDING;
    if (exact)
        tell(v, "B is explained by %s", exact);
    else if (best)
        tell(v, "%s", best->text);
    else {
        const double bits = -log2(c->before.rms > 0 ? c->before.rms * 1.7320508 : 1);
        snprintf(text, sizeof text,
                 "no structure, and everywhere alike: about %.1f bits of what each element was made of are right (rms "
                 "%.2g, at most %.2g of it)",
                 bits, c->before.rms, c->before.worst);
        tell(v, "%s", text);
    }
    v->ties = v->lines;
}

/* ---- the verdict ---- */

static void search(bug_search *s, const bug_case *c)
{
    const bool clean = bug_clean(c, &c->before);
    memset(s, 0, sizeof *s);
    s->c = c;
    run(s, FACTS);
    run(s, ROUNDING);
    if (!explained(s) && c->before.differ) run(s, VALUES);
    if (!explained(s) && c->before.differ && !clean) run(s, PLACES);
}

static void judge(bug_case *c, ud_verdict *v, const char *exact)
{
    bug_search *s = app_memory(1, sizeof *s);
    search(s, c);
    const bug_finding *best = plainest(s);
    const bool clean = bug_clean(c, &c->before);
    if (!best && !clean && bug_other_side(c)) {
        tell(v, "%s",
             "it is A that is wrong, and B is the product of the operands; of what follows, read A as B, B as A");
        bug_turn(c);
        search(s, c);
        best = plainest(s);
    }
    const bool facts = s->count > explained(s);
    if (!facts && !v->lines && (best ? best->cost == 0 : clean))
        tell_rounding(v, c, best, exact);
    else
        tell_bug(v, s, best);
    if (v->kind == UD_BUG && !best && c->before.differ && !clean) {
        char hint[BUG_TEXT];
        bug_hint(c, hint, sizeof hint);
        tell(v, "%s", hint);
        v->ties = v->lines;
    }
    free(s);
}

void ud_judge(ud_pair *p, const ud_product *product, const char *exact)
{
    ud_verdict *v = &p->verdict;
    bug_case c;
    memset(v, 0, sizeof *v);
    if (p->sums.first < 0 || !bug_case_open(p, product, &c)) return;
    if (c.before.differ || p->sums.mismatches)
        judge(&c, v, exact);
    else {
        v->kind = UD_ROUNDING;
        tell(v, "%s", "only subnormal numbers differ: they are flushed to 0");
        v->ties = v->lines;
    }
    bug_case_close(&c);
}

/* ---- telling ---- */

const char *ud_verdict_name(const ud_verdict *v)
{
    static const char *const name[] = { "same", "rounding", "bug" };
    return name[v->kind];
}

/* All that is told, in one line for a cell or a message. */
const char *ud_verdict_text(const ud_verdict *v, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < v->lines && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i == 0 ? "" : i < v->ties ? "; " : "; or: ", v->line[i]);
    return text;
}

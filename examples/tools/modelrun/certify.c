/* certify.c - the certificate: what the rules say of each setting, what the search finds, and whether cures cure.
 * SPDX-License-Identifier: MIT
 */
#include "certify.h"

#include <stdlib.h>

enum { ALL_DIMS = (1 << MR_DIMS) - 1 };

/* ---- cures ---- */

/* The words of a setting, where its name is a row's. */
static const char *words_of(const mr_setting *s)
{
    const char *name, *text;
    for (int i = 0; (name = mr_setting_row(i, &text, NULL)) != NULL; i++)
        if (strcmp(name, s->name) == 0) return text;
    return s->name;
}

static bool applies(const mr_certificate *c, const mr_judged *j, const mr_cause *cause)
{
    uint32_t there = 0;
    bool tried = false;
    for (int k = 0; k < MR_KINDS; k++) there |= (uint32_t)c->searched.saw[k] << k;
    for (int d = 0; d < MR_DIMS; d++) tried |= cause->dims >> d & 1 && c->searched.arrangements[d];
    return cause->kinds & there && tried && cause->applies(j);
}

/* The cure's words, and those against every other cause of the same operations. */
static void all_words(const mr_certificate *c, const mr_judged *j, const mr_cause *cause, const char *cure, char *words,
                      size_t size)
{
    const mr_cause *other;
    snprintf(words, size, "%s", cure);
    for (int i = 0; (other = mr_cause_at(i)) != NULL; i++)
        if (other != cause && other->cure[0].words && other->kinds & cause->kinds && other->dims & cause->dims &&
            applies(c, j, other) && !strstr(words, other->cure[0].words) &&
            strlen(words) + strlen(other->cure[0].words) + 2 < size)
            strcat(strcat(words, ","), other->cure[0].words);
}

static void try_cure(mr_certificate *c, const mr_judged *j, mr_cured *cured, const mr_setting *after, mr_model *model,
                     const mr_text *text)
{
    static mr_searched found;
    const mr_judged then = { j->config, after, j->tokens };
    char why[IO_WHY] = "";
    cured->by_rule = true;
    cured->ran = mr_search(model, after, text, j->tokens, cured->cause->dims, &found, why);
    snprintf(cured->why_not, sizeof cured->why_not, "%.150s", why);
    for (int d = 0; d < MR_DIMS && cured->ran; d++)
        for (int k = 0; k < MR_KINDS; k++) {
            const bool same = mr_verdict_of(&then, (mr_kind)k, (mr_dim)d).says != MR_SAYS_DEPENDS;
            const bool counts = cured->cause->kinds >> k & 1 || (k == MR_KIND_MODEL && same);
            if (!(cured->cause->dims >> d & 1) || !counts || !c->searched.saw[k]) continue;
            cured->by_rule &= same;
            cured->compared += found.tally[d][k].compared;
            cured->differ += found.tally[d][k].differ;
        }
}

static void cure(mr_certificate *c, const mr_judged *j, const mr_cause *cause, int index, mr_model *model,
                 const mr_text *text, trn_system system)
{
    char name[384], why[IO_WHY] = "";
    mr_setting after;
    if (c->cures == MR_CUREDS) return;
    mr_cured *cured = &c->cured[c->cures++];
    *cured = (mr_cured){ .cause = cause };
    all_words(c, j, cause, cause->cure[index].words, cured->words, sizeof cured->words);
    snprintf(name, sizeof name, "%s,%s", words_of(&c->setting), cured->words);
    if (mr_setting_parse(name, &after, why))
        try_cure(c, j, cured, &after, model, text);
    else
        snprintf(cured->why_not, sizeof cured->why_not, "%.150s", why);
    if (cured->ran) mr_price_of(j->config, &c->setting, &after, cause->cure[index].price, system, &cured->time);
}

/* Two causes of one name have one cure. */
static bool is_cured(const mr_certificate *c, const mr_cause *cause)
{
    bool is = false;
    for (int i = 0; i < c->cures; i++) is |= strcmp(c->cured[i].cause->name, cause->name) == 0;
    return is;
}

static void try_cures(mr_certificate *c, const mr_judged *j, mr_model *model, const mr_text *text, trn_system system)
{
    const mr_cause *cause;
    for (int i = 0; (cause = mr_cause_at(i)) != NULL; i++) {
        if (!applies(c, j, cause) || is_cured(c, cause)) continue;
        if (!cause->cure[0].words && c->cures < MR_CUREDS)
            c->cured[c->cures++] = (mr_cured){ .cause = cause, .words = "nothing", .why_not = "no setting cures it" };
        for (int n = 0; n < MR_CURES && cause->cure[n].words; n++) cure(c, j, cause, n, model, text, system);
    }
}

/* ---- one setting ---- */

static void judge(mr_certificate *c, const mr_judged *j)
{
    for (int d = 0; d < MR_DIMS; d++)
        for (int k = 0; k < MR_KINDS; k++) {
            const mr_verdict v = mr_verdict_of(j, (mr_kind)k, (mr_dim)d);
            const bool there = c->searched.saw[k] && c->searched.arrangements[d];
            c->verdict[d][k] = there ? v : (mr_verdict){ .says = MR_SAYS_NOTHING };
            c->wrong += c->verdict[d][k].says != MR_SAYS_DEPENDS && c->searched.tally[d][k].differ > 0;
        }
    for (int i = 0; i < c->cures; i++) c->wrong += c->cured[i].ran && (!c->cured[i].by_rule || c->cured[i].differ);
}

static bool certify(mr_certificate *c, mr_model *model, const mr_text *text, int64_t tokens, trn_system system,
                    char *why)
{
    const mr_judged j = { &model->config, &c->setting, tokens };
    const double start = app_now();
    if (!mr_search(model, &c->setting, text, tokens, ALL_DIMS, &c->searched, why)) return false;
    try_cures(c, &j, model, text, system);
    judge(c, &j);
    c->seconds = app_now() - start;
    return true;
}

/* ---- all settings ---- */

static bool certify_all(mr_certified *all, mr_model *model, const mr_options *o, const mr_text *text, char *why)
{
    bool ok = true;
    all->of = app_memory((size_t)o->settings + 1, sizeof *all->of);
    for (int i = 0; i < o->settings && ok; i++) {
        if (o->setting[i].reference) continue;
        mr_certificate *c = &all->of[all->count++];
        c->setting = o->setting[i];
        ok = certify(c, model, text, all->tokens, all->system, why);
    }
    return ok;
}

int mr_certify(mr_model *model, const mr_options *o, const mr_text *text)
{
    char why[IO_WHY] = "";
    mr_certified all = { .folder = o->folder,
                         .text = o->text ? o->text : o->tokens,
                         .family = model->config.type,
                         .layers = model->config.layers,
                         .system = o->system };
    app_output output[] = { { .flag = "--csv", .path = o->csv, .write = mr_certified_csv },
                            { .flag = "--html", .path = o->html, .write = mr_certified_html },
                            { .flag = "--json", .path = o->json, .write = mr_certified_json } };
    enum { outputs = sizeof output / sizeof output[0] };
    all.tokens = mr_search_tokens(model, o, text);
    if (app_open_outputs(output, outputs) != APP_OK) return APP_USAGE;
    int status = certify_all(&all, model, o, text, why) ? APP_OK : APP_USAGE;
    if (status != APP_OK) app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = app_answer(output, outputs, &all, mr_certified_text);
    app_discard_outputs(output, outputs);
    for (int i = 0; i < all.count && status == APP_OK; i++)
        if (all.of[i].wrong) status = APP_FAILED;
    free(all.of);
    return status;
}

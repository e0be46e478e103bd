/* list.c - vectors in a list, the verdict on an answer, and how many there are of each.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"

#include <stdarg.h>
#include <stdlib.h>

const char *const cf_kind_names[CF_KINDS] = { "documented", "measured", "paper", "calculated" };
const char *const cf_status_names[CF_STATUSES] = { "pass", "FAIL", "known difference", "skipped" };

/* Which kernels there can be at all; whether this host has them is another matter. */
static bool of_this_architecture(trn_isa isa)
{
#if defined(__x86_64__)
    return isa != TRN_ISA_NEON;
#else
    return isa == TRN_ISA_AUTO || isa == TRN_ISA_PORTABLE || isa == TRN_ISA_NEON;
#endif
}

void cf_add(cf_list *list, cf_vector v)
{
    if (!of_this_architecture(v.isa)) return;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 256;
        list->vector = app_resize(list->vector, (size_t)list->room, sizeof *list->vector);
    }
    v.chapter = list->chapter;
    if (!v.unit) v.unit = "";
    list->vector[list->count++] = v;
}

void cf_add_all(cf_list *list, const cf_vector *v, size_t count)
{
    for (size_t i = 0; i < count; i++) cf_add(list, v[i]);
}

static char *text_of(cf_list *list, const char *format, va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (list->texts == list->text_room) {
        list->text_room = list->text_room ? 2 * list->text_room : 256;
        list->text = app_resize(list->text, (size_t)list->text_room, sizeof *list->text);
    }
    char *copy = app_memory(strlen(text) + 1, 1);
    list->text[list->texts++] = copy;
    return strcpy(copy, text);
}

const char *cf_text(cf_list *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = text_of(list, format, arguments);
    va_end(arguments);
    return text;
}

const char *cf_id(cf_list *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_of(list, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + ('a' - 'A'));
        else if (strchr(" :/=", *c))
            *c = '_';
    }
    return text;
}

void cf_list_free(cf_list *list)
{
    for (int i = 0; i < list->texts; i++) free(list->text[i]);
    free(list->text);
    free(list->vector);
}

/* ---- answers ---- */

void cf_count(cf_answer *a, bool right, const char *format, ...)
{
    va_list arguments;
    a->cases++;
    if (right) return;
    a->got += 1;
    if (a->note[0]) return;
    va_start(arguments, format);
    vsnprintf(a->note, sizeof a->note, format, arguments);
    va_end(arguments);
}

void cf_fail(cf_answer *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->note, sizeof a->note, format, arguments);
    va_end(arguments);
    a->got = (double)NAN;
}

void cf_skip(cf_answer *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->note, sizeof a->note, format, arguments);
    va_end(arguments);
    a->skipped = true;
    a->got = (double)NAN;
}

/* A known difference has to stay what it is: neither the published figure nor ours is a failure, too. */
cf_status cf_judge(const cf_vector *v, const cf_answer *a)
{
    if (a->skipped) return CF_SKIPPED;
    if (a->got >= v->low && a->got <= v->high) return CF_PASS;
    if (v->known && fabs(a->got - v->ours) <= v->slack * fabs(v->ours)) return CF_KNOWN;
    return CF_FAIL;
}

cf_tally cf_tally_of(const cf_report *report, int chapter)
{
    cf_tally t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < report->count; i++) {
        const cf_result *r = &report->result[i];
        if (chapter >= 0 && r->vector->chapter != chapter) continue;
        t.vectors++;
        t.status[r->status]++;
        t.cases += r->answer.cases ? r->answer.cases : 1;
        t.seconds += r->seconds;
    }
    return t;
}

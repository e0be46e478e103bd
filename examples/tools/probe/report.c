/* report.c - what was found, for people and as JSON.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

enum { TEXT = 1024 };

/* ---- how well a field is known ---- */

typedef enum standing {
    FOUND,        /* every matching setting has this value */
    AMBIGUOUS,    /* matching settings differ */
    UNOBSERVABLE, /* given the other fields no input can show it */
    UNSEEN        /* no tile that was run depends on it */
} standing;

static const char *const standing_name[] = { "found", "ambiguous", "unobservable", "unseen" };

typedef struct field_report {
    standing what;
    uint64_t values; /* of the matching settings; a bit each */
    const char *reason;
} field_report;

static const probe_group *group_of(const probe_verdict *v, int field)
{
    for (int i = 0; i < v->groups; i++)
        if (v->group[i].fields & PROBE_BIT(field)) return &v->group[i];
    return NULL;
}

static field_report report_of(const probe_verdict *v, int field)
{
    const probe_group *g = group_of(v, field);
    field_report r = { UNSEEN, 0, NULL };
    bool always = true;
    if (!g) return r;
    for (int i = 0; i < g->kept; i++) {
        const int value = g->found[i].value[field];
        const probe_rule *rule = probe_rule_for(&g->found[i], field, value);
        r.values |= UINT64_C(1) << value;
        always = always && rule;
        if (rule) r.reason = rule->reason;
    }
    r.what = r.values & (r.values - 1) ? AMBIGUOUS : always ? UNOBSERVABLE : FOUND;
    if (r.what == FOUND || r.what == AMBIGUOUS) r.reason = NULL;
    return r;
}

/* Consecutive numbers are told as a range. */
static void print_values(FILE *out, int field, uint64_t values)
{
    char number[16];
    const bool ranges = !probe_hypotheses[field].value;
    const char *between = "";
    for (int v = 0; v < probe_values(field); v++) {
        if (!(values >> v & 1u)) continue;
        int last = v;
        while (ranges && last + 1 < probe_values(field) && (values >> (last + 1) & 1u)) last++;
        fprintf(out, "%s%s", between, probe_value_name(field, v, number));
        if (last > v) fprintf(out, " to %s", probe_value_name(field, last, number));
        between = ", ";
        v = last;
    }
}

/* The first tile that was not run and depends on the field; NULL when all were. */
static const probe_tile *tile_for(const probe_verdict *v, int field)
{
    for (int i = 0; i < probe_tile_count; i++)
        if ((probe_tiles[i].scope & PROBE_BIT(field)) && !(v->tiles >> i & 1u)) return &probe_tiles[i];
    return NULL;
}

static const char *generations_of(const probe_tile *t)
{
    return t->generations == PROBE_ANY    ? "every generation"
           : t->generations == PROBE_TRN1 ? "trn1"
           : t->generations == PROBE_TRN3 ? "trn3"
                                          : "trn2 and trn3";
}

static void print_field(FILE *out, const probe_verdict *v, int field)
{
    const field_report r = report_of(v, field);
    const probe_tile *t = tile_for(v, field);
    fprintf(out, "  %-17s ", probe_hypotheses[field].name);
    if (r.what == UNSEEN) {
        fprintf(out, "not seen: tile %s (%s) was not run\n", t->name, generations_of(t));
        return;
    }
    if (r.what == UNOBSERVABLE && r.values == UINT64_C(1) << probe_hypotheses[field].standard) {
        fprintf(out, "any: %s\n", r.reason);
        return;
    }
    print_values(out, field, r.values);
    if (r.what == AMBIGUOUS && t)
        fprintf(out, "   (open; tile %s, %s, was not run)", t->name, generations_of(t));
    else if (r.what == AMBIGUOUS)
        fputs("   (open: these outputs do not tell which)", out);
    if (r.what == UNOBSERVABLE) fprintf(out, "   (%s)", r.reason);
    fputc('\n', out);
}

/* Settings of a group that are not told apart, when more than one field varies. */
static void print_group(FILE *out, const probe_group *g)
{
    char text[TEXT];
    uint32_t vary = 0;
    int fields = 0;
    for (int f = 0; f < PROBE_FIELDS; f++)
        for (int i = 1; i < g->kept; i++)
            if (g->found[i].value[f] != g->found[0].value[f]) vary |= PROBE_BIT(f);
    for (int f = 0; f < PROBE_FIELDS; f++) fields += vary & PROBE_BIT(f) ? 1 : 0;
    if (fields < 2) return;
    fprintf(out, "\n%ld settings fit alike:\n", g->count);
    for (int i = 0; i < g->kept && i < 16; i++) {
        probe_text(&g->found[i], g->fields, text, sizeof text);
        fprintf(out, "  %s\n", *text ? text : "(the defaults)");
    }
    if (g->count > 16) fputs("  ...\n", out);
}

/* ---- contradictions ---- */

static void print_contradiction(FILE *out, const probe_seen *seen, int tile, const probe_setting *s)
{
    const probe_tile *t = &probe_tiles[tile];
    int first = 0;
    const int wrong = probe_contradictions(seen, tile, s, &first);
    if (!wrong) return;
    const double *expected = probe_prediction(tile, s);
    fprintf(out, "  %-22s [%d, %d] is %a, expected %a; %d of %d outputs differ (%s)\n", t->name, first / t->n,
            first % t->n, seen->out[tile][first], expected[first], wrong, probe_outputs(t), t->question);
}

static void print_settings(FILE *out, const probe_verdict *v, const char *what)
{
    char text[TEXT];
    const probe_setting s = probe_best(v);
    probe_text(&s, v->seen_fields, text, sizeof text);
    fprintf(out, "%s: %s\n", what, *text ? text : "the defaults");
}

/* What each path through the array says when it is asked alone. */
static void print_by_kind(FILE *out, const probe_seen *seen)
{
    uint64_t done = 0;
    fputs("\neach path through the array by itself:\n", out);
    for (int i = 0; i < probe_tile_count; i++) {
        uint64_t same = 0;
        if (!seen->out[i] || (done >> i & 1u)) continue;
        for (int j = i; j < probe_tile_count; j++)
            if (strcmp(probe_tiles[i].kind, probe_tiles[j].kind) == 0) same |= UINT64_C(1) << j;
        done |= same;
        probe_verdict v = probe_identify(seen, same);
        char text[TEXT];
        const probe_setting s = probe_best(&v);
        long count = 1;
        for (int g = 0; g < v.groups; g++) count *= v.group[g].count;
        probe_text(&s, v.seen_fields, text, sizeof text);
        fprintf(out, "  %-17s %s%s", probe_tiles[i].kind, v.wrong ? "no setting; nearest: " : "",
                *text ? text : "the defaults");
        fprintf(out, count > 1 ? " (or one of %ld more)\n" : "\n", count - 1);
        probe_verdict_free(&v);
    }
}

/* ---- the whole ---- */

static int tiles_in(uint64_t tiles)
{
    int n = 0;
    for (; tiles; tiles >>= 1) n += (int)(tiles & 1u);
    return n;
}

void probe_print_text(FILE *out, const probe_report *report)
{
    const probe_seen *seen = report->seen;
    const probe_verdict *v = &report->verdict;
    const char *no_colour = getenv("NO_COLOR");
    const bool colour = !(no_colour && *no_colour) && isatty(fileno(out));
    fprintf(out, "%d tiles of %s\n", tiles_in(v->tiles), probe_generation_name(seen->generation));
    if (colour) fputs(v->wrong ? "\033[31m" : "\033[32m", out);
    print_settings(out, v, v->wrong ? "no setting predicts these outputs; the nearest" : "match");
    if (colour) fputs("\033[0m", out);
    fputc('\n', out);
    for (int f = 0; f < PROBE_FIELDS; f++) print_field(out, v, f);
    for (int i = 0; i < v->groups; i++) print_group(out, &v->group[i]);
    if (v->wrong) {
        const probe_setting s = probe_best(v);
        fputs("\ncontradicted by:\n", out);
        for (int i = 0; i < probe_tile_count; i++)
            if (v->tiles >> i & 1u) print_contradiction(out, seen, i, &s);
        print_by_kind(out, seen);
    }
}

static void json_values(FILE *out, int field, uint64_t values)
{
    char number[16];
    const char *between = "";
    for (int v = 0; v < probe_values(field); v++)
        if (values >> v & 1u) {
            fprintf(out, "%s\"%s\"", between, probe_value_name(field, v, number));
            between = ", ";
        }
}

static void json_fields(FILE *out, const probe_verdict *v)
{
    for (int f = 0; f < PROBE_FIELDS; f++) {
        const field_report r = report_of(v, f);
        fprintf(out, "    {\"name\": \"%s\", \"standing\": \"%s\", \"values\": [", probe_hypotheses[f].name,
                standing_name[r.what]);
        json_values(out, f, r.values);
        fprintf(out, "]%s%s%s}%s\n", r.reason ? ", \"reason\": \"" : "", r.reason ? r.reason : "", r.reason ? "\"" : "",
                f + 1 < PROBE_FIELDS ? "," : "");
    }
}

static void json_tiles(FILE *out, const probe_seen *seen, const probe_verdict *v)
{
    const probe_setting s = probe_best(v);
    const char *between = "";
    for (int i = 0; i < probe_tile_count; i++) {
        int first = 0;
        if (!(v->tiles >> i & 1u)) continue;
        const int wrong = probe_contradictions(seen, i, &s, &first), n = probe_tiles[i].n;
        fprintf(out, "%s    {\"name\": \"%s\", \"outputs\": %d, \"contradictions\": %d", between, probe_tiles[i].name,
                probe_outputs(&probe_tiles[i]), wrong);
        if (wrong) /* as text: infinities and NaN are no JSON numbers */
            fprintf(out, ", \"element\": [%d, %d], \"seen\": \"%a\", \"expected\": \"%a\"", first / n, first % n,
                    seen->out[i][first], probe_prediction(i, &s)[first]);
        fputc('}', out);
        between = ",\n";
    }
    fputc('\n', out);
}

void probe_print_json(FILE *out, const void *context)
{
    const probe_seen *seen = ((const probe_report *)context)->seen;
    const probe_verdict *v = &((const probe_report *)context)->verdict;
    char text[TEXT];
    const probe_setting s = probe_best(v);
    fprintf(out, "{\n  \"generation\": \"%s\",\n  \"match\": %s,\n  \"numerics\": \"%s\",\n  \"fields\": [\n",
            probe_generation_name(seen->generation), v->wrong ? "false" : "true",
            probe_text(&s, v->seen_fields, text, sizeof text));
    json_fields(out, v);
    fputs("  ],\n  \"tiles\": [\n", out);
    json_tiles(out, seen, v);
    fputs("  ]\n}\n", out);
}

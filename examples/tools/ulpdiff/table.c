/* table.c - the columns of a comparison; CSV and JSON.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>

static const app_column columns[] = {
    { "tensor", APP_TEXT, "", "its name, empty for .npy" },
    { "type_a", APP_TEXT, "", "of A, as safetensors spells it" },
    { "type_b", APP_TEXT, "", "of B" },
    { "shape", APP_TEXT, "", "of both" },
    { "ulp_format", APP_TEXT, "", "whose ulps are counted" },
    { "ulp_kind", APP_TEXT, "", "codes: steps along the codes; places: units in the last place of A" },
    { "elements", APP_INTEGER, "", "pairs" },
    { "numbers", APP_INTEGER, "", "pairs of which both are finite" },
    { "ulp_0", APP_INTEGER, "", "of these: no distance" },
    { "ulp_1", APP_INTEGER, "", "above 0, up to 1 ulp" },
    { "ulp_2", APP_INTEGER, "", "up to 2" },
    { "ulp_3_10", APP_INTEGER, "", "up to 10" },
    { "ulp_11_100", APP_INTEGER, "", "up to 100" },
    { "ulp_over_100", APP_INTEGER, "", "more" },
    { "ulp_max", APP_REAL, "ulp",
      "largest distance of two numbers; empty where a number stands against NaN or infinity" },
    { "ulp_mean", APP_REAL, "ulp", "over all pairs of numbers" },
    { "abs_max", APP_REAL, "", "largest |b - a|" },
    { "abs_mean", APP_REAL, "", "" },
    { "rel_max", APP_REAL, "", "largest |b - a| / |a| where a is not 0" },
    { "rel_mean", APP_REAL, "", "" },
    { "sqnr_db", APP_REAL, "dB", "energy of a over energy of b - a; empty without errors" },
    { "cosine", APP_REAL, "", "" },
    { "pcc", APP_REAL, "", "Pearson's correlation: blind to factors and biases" },
    { "nan_a", APP_INTEGER, "", "NaN in A" },
    { "nan_b", APP_INTEGER, "", "NaN in B" },
    { "inf_a", APP_INTEGER, "", "infinities in A" },
    { "inf_b", APP_INTEGER, "", "infinities in B" },
    { "mismatches", APP_INTEGER, "", "NaN or infinity against something else" },
    { "zero_signs", APP_INTEGER, "", "+0 against -0" },
    { "bytes", APP_TEXT, "", "equal or differ" },
    { "factor", APP_REAL, "", "B = factor A + bias by least squares, the simplest of its kind" },
    { "bias", APP_REAL, "", "" },
    { "explained", APP_REAL, "", "its share of the error's energy" },
    { "first", APP_INTEGER, "", "row-major number of the first element that differs" },
    { "worst", APP_INTEGER, "", "and of the one that differs most" },
    { "verdict", APP_TEXT, "", "same, rounding or bug" },
    { "finding", APP_TEXT, "", "which; what these data cannot tell from it follows after \"or\"" },
};

static void fill_sums(app_table *t, const ud_pair *p)
{
    const ud_sums *s = &p->sums;
    const double n = (double)s->numbers;
    app_integer(t, s->pairs);
    app_integer(t, s->numbers);
    for (int i = 0; i < UD_BUCKETS; i++) app_integer(t, s->bucket[i]);
    app_real(t, s->ulp_max);
    app_real(t, s->ulp_sum / n);
    app_real(t, s->abs_max);
    app_real(t, s->abs_sum / n);
    app_real(t, s->rel_max);
    app_real(t, s->relatives ? s->rel_sum / (double)s->relatives : NAN);
    app_real(t, ud_sqnr(s));
    app_real(t, ud_cosine(s));
    app_real(t, ud_pcc(s));
    app_integer(t, s->nan[0]);
    app_integer(t, s->nan[1]);
    app_integer(t, s->infinite[0]);
    app_integer(t, s->infinite[1]);
    app_integer(t, s->mismatches);
    app_integer(t, s->zero_signs);
}

static void fill_place(app_table *t, int64_t i)
{
    if (i < 0)
        app_missing(t);
    else
        app_integer(t, i);
}

void ud_fill_table(ud_job *job)
{
    app_table *t = &job->table;
    app_table_start(t, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < job->pairs; i++) {
        const ud_pair *p = &job->pair[i];
        const ud_suspicion found = ud_suspect(p);
        char shape[128], finding[UD_VERDICT_LINES * 330];
        app_row(t);
        app_text(t, "%s", p->name);
        app_text(t, "%s", p->a.type);
        app_text(t, "%s", p->b.type);
        app_text(t, "%s", ud_shape(&p->a, shape, sizeof shape));
        app_text(t, "%s", ud_unit_name(&p->unit));
        app_text(t, p->unit.places ? "places" : "codes");
        fill_sums(t, p);
        app_text(t, p->bytes_equal ? "equal" : "differ");
        app_real(t, found.factor);
        app_real(t, found.bias);
        app_real(t, found.explained);
        fill_place(t, p->sums.first);
        fill_place(t, p->sums.worst);
        app_text(t, "%s", ud_verdict_name(&p->verdict));
        app_text(t, "%s", ud_verdict_text(&p->verdict, finding, sizeof finding));
    }
}

void ud_print_csv(FILE *out, const void *job) { app_print_csv(out, &((const ud_job *)job)->table); }

/* ---- JSON ---- */

static void print_histogram(FILE *out, const ud_pair *p)
{
    fputs("\"ulps\": [", out);
    for (int i = 0, some = 0; i < UD_FINE; i++) {
        if (!p->sums.fine[i]) continue;
        fprintf(out, "%s{\"up_to\": ", some++ ? ", " : "");
        app_print_json_number(out, ud_fine_limit(i));
        fprintf(out, ", \"count\": %" PRId64 "}", p->sums.fine[i]);
    }
    fputs("],\n     \"octaves\": [", out);
    for (int i = 0, some = 0; i < UD_OCTAVES; i++) {
        if (!p->sums.octave[0][i] && !p->sums.octave[1][i]) continue;
        fprintf(out, "%s{\"from\": ", some++ ? ", " : "");
        app_print_json_number(out, i ? ldexp(1, i - 1023) : 0);
        fprintf(out, ", \"a\": %" PRId64 ", \"b\": %" PRId64 "}", p->sums.octave[0][i], p->sums.octave[1][i]);
    }
    fputs("]", out);
}

static void print_suspicions(FILE *out, const ud_pair *p)
{
    const ud_suspicion found = ud_suspect(p);
    fputs("\"suspicions\": [", out);
    for (int i = 0; i < found.count; i++) {
        fputs(i ? ", " : "", out);
        app_print_json_string(out, found.text[i]);
    }
    fputs("]", out);
}

static void print_lines(FILE *out, const ud_verdict *v, int from, int end)
{
    fputs("[", out);
    for (int i = from; i < end; i++) {
        fputs(i > from ? ", " : "", out);
        app_print_json_string(out, v->line[i]);
    }
    fputs("]", out);
}

static void print_verdict(FILE *out, const ud_verdict *v)
{
    fputs("\"verdict\": {\"kind\": ", out);
    app_print_json_string(out, ud_verdict_name(v));
    fputs(", \"findings\": ", out);
    print_lines(out, v, 0, v->ties);
    fputs(", \"ties\": ", out);
    print_lines(out, v, v->ties, v->lines);
    fputs("}", out);
}

static void print_details(FILE *out, const ud_job *job)
{
    fputs("  \"details\": [", out);
    for (int i = 0; i < job->pairs; i++) {
        fprintf(out, "%s\n    {\"tensor\": ", i ? "," : "");
        app_print_json_string(out, job->pair[i].name);
        fputs(", ", out);
        print_verdict(out, &job->pair[i].verdict);
        fputs(",\n     ", out);
        print_suspicions(out, &job->pair[i]);
        fputs(",\n     ", out);
        print_histogram(out, &job->pair[i]);
        fputs("}", out);
    }
    fputs("\n  ]", out);
}

static void print_score(FILE *out, const char *side, const ud_score *s)
{
    fprintf(out, "\"equal_%s\": %" PRId64 ", \"outputs_%s\": %" PRId64 ", \"ulp_max_%s\": ", side, s->equal, side,
            s->outputs, side);
    app_print_json_number(out, s->worst);
    fprintf(out, ", \"ulp_mean_%s\": ", side);
    app_print_json_number(out, s->mean);
}

static void print_hypotheses(FILE *out, const ud_explanation *e)
{
    fprintf(out, ",\n  \"refused\": %d,\n  \"inputs\": ", e->refused);
    app_print_json_string(out, e->source.inputs);
    fputs(",\n  \"hypotheses\": [", out);
    for (int i = 0; i < e->count; i++) {
        fprintf(out, "%s\n    {\"hypothesis\": ", i ? "," : "");
        app_print_json_string(out, e->list[i].text);
        fputs(", ", out);
        print_score(out, "a", &e->list[i].score[0]);
        fputs(", ", out);
        print_score(out, "b", &e->list[i].score[1]);
        fputs("}", out);
    }
    fputs("\n  ]", out);
}

void ud_print_json(FILE *out, const void *context)
{
    const ud_job *job = context;
    fputs("{\n", out);
    app_print_json_pair(out, "program", "ulpdiff");
    app_print_json_pair(out, "version", TRN_VERSION);
    app_print_json_pair(out, "a", job->options.a);
    app_print_json_pair(out, "b", job->options.b);
    app_print_json_pair(out, "failed", job->failed[0] ? job->failed : NULL);
    fputs("  \"unmatched\": [", out);
    for (int i = 0; i < job->unmatched; i++) {
        fputs(i ? ", " : "", out);
        app_print_json_string(out, job->missing[i]);
    }
    fputs("],\n  \"tensors\": ", out);
    app_print_json_rows(out, &job->table, 2);
    fputs(",\n", out);
    print_details(out, job);
    if (job->explained) print_hypotheses(out, &job->explanation);
    fputs("\n}\n", out);
}

/* text.c - the answer on a terminal.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- a map of where the differences lie ---- */

enum { LEVELS = UD_BUCKETS + 1 }; /* the buckets, and mismatches */

static const struct {
    char mark;
    int colour; /* of the 256 */
} level[LEVELS] = { { '.', 236 }, { '1', 24 }, { '2', 37 }, { '+', 150 }, { '#', 221 }, { '@', 202 }, { '!', 199 } };

static const char *name_of(int i) { return i < UD_BUCKETS ? ud_bucket_name[i] : "NaN, inf"; }

static int level_of(double u) { return isinf(u) ? UD_BUCKETS : ud_bucket(u); }

static int level_at(const ud_pair *p, int row, int column)
{
    return row < p->heat_rows ? level_of(p->sums.heat[row * UD_HEAT_COLUMNS + column]) : -1;
}

/* Two rows of cells in one line of text: the upper half is foreground, the lower one background.
 * Only changes of colour are written. */
static void print_blocks(FILE *out, const ud_pair *p)
{
    for (int row = 0; row < p->heat_rows; row += 2) {
        int upper = -1, lower = -1;
        fputs("  ", out);
        for (int c = 0; c < p->heat_columns; c++) {
            const int high = level_at(p, row, c), low = level_at(p, row + 1, c);
            if (high != upper) fprintf(out, "\033[38;5;%dm", level[high].colour);
            if (low != lower) fprintf(out, "\033[48;5;%dm", level[low].colour);
            upper = high;
            lower = low;
            fputs("\xe2\x96\x80", out);
        }
        fputs("\033[0m\n", out);
    }
}

static void print_marks(FILE *out, const ud_pair *p)
{
    for (int row = 0; row < p->heat_rows; row++) {
        fputs("  ", out);
        for (int c = 0; c < p->heat_columns; c++) fputc(level[level_at(p, row, c)].mark, out);
        fputc('\n', out);
    }
}

/* How many levels there are. */
static int count_levels(const ud_pair *p, bool seen[LEVELS])
{
    int levels = 0;
    for (int row = 0; row < p->heat_rows; row++)
        for (int c = 0; c < p->heat_columns; c++) seen[level_at(p, row, c)] = true;
    for (int i = 0; i < LEVELS; i++) levels += seen[i];
    return levels;
}

static void print_legend(FILE *out, const bool seen[LEVELS], bool colour)
{
    fputs("  ", out);
    for (int i = 0; i < LEVELS; i++) {
        if (!seen[i]) continue;
        if (colour)
            fprintf(out, "\033[48;5;%dm  \033[0m %s   ", level[i].colour, name_of(i));
        else
            fprintf(out, "%c %s   ", level[i].mark, name_of(i));
    }
    fputc('\n', out);
}

static void print_map(FILE *out, const ud_pair *p, bool colour)
{
    bool seen[LEVELS] = { false };
    if (count_levels(p, seen) < 2) {
        fprintf(out, "\n  they lie everywhere: a map of %d x %d parts shows one level\n", p->heat_rows,
                p->heat_columns);
        return;
    }
    fprintf(out, "\n  the most ulps in each part of %lld rows x %lld columns\n", (long long)p->a.rows,
            (long long)p->a.columns);
    (colour ? print_blocks : print_marks)(out, p);
    print_legend(out, seen, colour);
}

/* ---- the answer ---- */

enum { BAR = 40, SMALL = 64 }; /* SMALL: elements that need no map */

static bool fancy(FILE *out, const ud_job *job) { return job->options.colour || app_colour(out); }

static const char *count(int64_t n)
{
    static char text[8][32];
    static int next;
    next = (next + 1) % 8;
    return app_count(text[next], sizeof text[0], n);
}

static const char *percent(int64_t part, int64_t whole, char *text, size_t size)
{
    const double p = 100 * ud_share(part, whole);
    snprintf(text, size, p > 99.99 && part < whole ? ">99.99 %%" : p < 0.01 && part ? "<0.01 %%" : "%.2f %%", p);
    return text;
}

/* ---- one pair ---- */

static void print_head(FILE *out, const ud_pair *p)
{
    const ud_array *side[] = { &p->a, &p->b };
    char shape[128];
    for (int k = 0; k < 2; k++) {
        const ud_array *x = side[k];
        const char name = "AB"[k];
        const bool coded = x->kind == UD_CODES || x->kind == UD_SUB_BYTE;
        app_say(out, "  %c  %s  %s %s\n", name, x->name, coded ? trn_format_name(x->format) : x->type,
                ud_shape(x, shape, sizeof shape));
    }
    fprintf(out, "\n  %s pairs: %s equal, %s differ; bytes %s", count(p->sums.pairs),
            count(p->sums.pairs - p->sums.mismatches - (p->sums.numbers - p->sums.bucket[0])),
            count(p->sums.mismatches + p->sums.numbers - p->sums.bucket[0]), p->bytes_equal ? "equal" : "differ");
    if (p->sums.zero_signs) fprintf(out, "; %s zeros of other sign", count(p->sums.zero_signs));
    fputc('\n', out);
}

static void print_bar(FILE *out, double share, bool colour)
{
    static const char *const eighth[] = { "",
                                          "\xe2\x96\x8f",
                                          "\xe2\x96\x8e",
                                          "\xe2\x96\x8d",
                                          "\xe2\x96\x8c",
                                          "\xe2\x96\x8b",
                                          "\xe2\x96\x8a",
                                          "\xe2\x96\x89" };
    const int parts = (int)ceil(share * BAR * 8);
    for (int i = 0; i < parts / 8; i++) fputs(colour ? "\xe2\x96\x88" : "#", out);
    if (colour)
        fputs(eighth[parts % 8], out);
    else if (parts % 8)
        fputc('#', out);
}

static void print_histogram(FILE *out, const ud_pair *p, bool colour)
{
    const ud_sums *s = &p->sums;
    fprintf(out, "\n  ulps of %s (%s)\n", ud_unit_name(&p->unit),
            p->unit.places ? "units in the last place of A" : "steps along the codes");
    int last = UD_BUCKETS - 1;
    while (last > 0 && !s->bucket[last]) last--;
    for (int i = 0; i <= last; i++) {
        char share[32];
        fprintf(out, "  %7s  %15s  %9s%s", ud_bucket_name[i], count(s->bucket[i]),
                percent(s->bucket[i], s->numbers, share, sizeof share), s->bucket[i] ? "  " : "");
        print_bar(out, ud_share(s->bucket[i], s->numbers), colour);
        fputc('\n', out);
    }
}

static void print_error(FILE *out, const char *name, double max, double mean)
{
    fprintf(out, "  %-10s  max %-12.6g mean %.6g\n", name, max, mean);
}

static void print_decibels(FILE *out, double db)
{
    if (isinf(db))
        fputs("infinite", out);
    else
        fprintf(out, "%.2f dB", db);
}

static void print_measures(FILE *out, const ud_pair *p)
{
    const ud_sums *s = &p->sums;
    const double n = s->numbers ? (double)s->numbers : 1;
    fputc('\n', out);
    print_error(out, "ulps", s->ulp_max, s->ulp_sum / n);
    print_error(out, "absolute", s->abs_max, s->abs_sum / n);
    const double rms = sqrt(s->aa / n + s->mean_a * s->mean_a); /* ulps of sums that cancel are many, and mean little */
    if (s->abs_max > 0 && rms > 0)
        fprintf(out, "  %-10s  max %-12.6g ulps of A's root mean square, %.6g\n", "",
                s->abs_max / ud_last_place(&p->unit, rms), rms);
    print_error(out, "relative", s->rel_max, s->relatives ? s->rel_sum / (double)s->relatives : 0);
    fputs("  SQNR ", out);
    print_decibels(out, ud_sqnr(s));
    fprintf(out, "   cosine %.9g", ud_cosine(s));
    if (isnan(ud_pcc(s)))
        fputs("   PCC undefined: a side is constant\n", out);
    else
        fprintf(out, "   PCC %.9g (blind to factors and biases)\n", ud_pcc(s));
    if (s->nan[0] || s->nan[1] || s->infinite[0] || s->infinite[1])
        fprintf(out, "  NaN: %s in A, %s in B; infinite: %s in A, %s in B\n", count(s->nan[0]), count(s->nan[1]),
                count(s->infinite[0]), count(s->infinite[1]));
}

/* ---- around an element: A, B and the distances side by side ---- */

enum { AROUND_ROWS = 2, AROUND_COLUMNS = 1, ZOOM = 2 * AROUND_COLUMNS + 1 };

static void print_cells(FILE *out, const ud_pair *p, int64_t row, int64_t low, int64_t high, int what)
{
    for (int64_t c = low; c <= high; c++) {
        const int64_t i = row * p->a.columns + c;
        double x[2], u;
        if (i >= p->a.elements) {
            fprintf(out, "%*s", what == 2 ? 9 : 13, "");
            continue;
        }
        u = ud_distance(p, i, &x[0], &x[1]);
        if (what < 2)
            fprintf(out, " %12.6g", x[what]);
        else if (u == floor(u) && u < 1e6)
            fprintf(out, " %8.0f", u);
        else
            fprintf(out, " %8.3g", u);
    }
}

static void print_around(FILE *out, const ud_pair *p, const char *name, int64_t i)
{
    const int64_t row = i / p->a.columns, column = i % p->a.columns;
    const int64_t low = column > AROUND_COLUMNS ? column - AROUND_COLUMNS : 0;
    const int64_t high = low + ZOOM > p->a.columns ? p->a.columns - 1 : low + ZOOM - 1;
    const int64_t top = row > AROUND_ROWS ? row - AROUND_ROWS : 0;
    char index[128];
    const int width = (int)(high - low + 1);
    fprintf(out, "\n  %s: %s\n", name, ud_index(&p->a, i, index, sizeof index));
    fprintf(out, "  %10s %*s |%*s |%*s\n", "row", 13 * width - 1, "A", 13 * width, "B", 9 * width, "ulps");
    for (int64_t r = top; r <= row + AROUND_ROWS && r < p->a.rows; r++) {
        fprintf(out, "%c %10" PRId64, r == row ? '>' : ' ', r);
        for (int what = 0; what < 3; what++) {
            fputs(what ? " |" : "", out);
            print_cells(out, p, r, low, high, what);
        }
        fputc('\n', out);
    }
    fprintf(out, "  %10s columns %" PRId64 " to %" PRId64 "\n", "", low, high);
}

/* Where most differ, the first difference tells nothing. */
static void print_places(FILE *out, const ud_pair *p)
{
    const bool most = p->sums.numbers - p->sums.bucket[0] > p->sums.numbers / 2, one = p->sums.worst == p->sums.first;
    if (!one && !most) print_around(out, p, "the first difference", p->sums.first);
    print_around(out, p, one ? "the first and worst difference" : "the worst difference", p->sums.worst);
}

/* The verdict, what it is, and what these data cannot tell from it. */
static void print_verdict(FILE *out, const ud_verdict *v)
{
    fprintf(out, "\n  verdict: %s%s", ud_verdict_name(v), v->lines ? ": " : "\n");
    for (int i = 0; i < v->lines; i++) {
        if (i == v->ties) fputs("     these data cannot tell it from:\n", out);
        fprintf(out, "%s%s\n", i == 0 ? "" : i < v->ties ? "     and: " : "       ", v->line[i]);
    }
}

static void print_pair(FILE *out, const ud_job *job, const ud_pair *p)
{
    const bool colour = fancy(out, job);
    const ud_suspicion found = ud_suspect(p);
    print_head(out, p);
    if (!p->a.elements) return;
    print_verdict(out, &p->verdict);
    print_histogram(out, p, colour);
    print_measures(out, p);
    for (int i = 0; i < found.count; i++) fprintf(out, "  ! %s\n", found.text[i]);
    if (p->sums.first < 0) return;
    if (!job->options.no_map && p->a.elements > SMALL) print_map(out, p, colour);
    print_places(out, p);
}

/* ---- many ---- */

static const app_column short_columns[] = {
    { "tensor", APP_TEXT, "", "" },  { "type", APP_TEXT, "", "" },      { "elements", APP_INTEGER, "", "" },
    { "equal", APP_TEXT, "", "" },   { "1", APP_INTEGER, "", "" },      { "2", APP_INTEGER, "", "" },
    { "3-10", APP_INTEGER, "", "" }, { "11-100", APP_INTEGER, "", "" }, { ">100", APP_INTEGER, "", "" },
    { "max ulp", APP_REAL, "", "" }, { "max rel", APP_REAL, "", "" },   { "SQNR dB", APP_REAL, "", "" },
    { "bytes", APP_TEXT, "", "" },
};

static void print_list(FILE *out, const ud_job *job)
{
    app_table t;
    app_table_start(&t, short_columns, sizeof short_columns / sizeof short_columns[0]);
    for (int i = 0; i < job->pairs; i++) {
        const ud_pair *p = &job->pair[i];
        char share[32];
        app_row(&t);
        app_text(&t, "%s", p->name);
        app_text(&t, strcmp(p->a.type, p->b.type) == 0 ? "%s" : "%s, %s", p->a.type, p->b.type);
        app_integer(&t, p->sums.pairs);
        app_text(&t, "%s", percent(p->sums.bucket[0], p->sums.numbers, share, sizeof share));
        for (int k = 1; k < UD_BUCKETS; k++) app_integer(&t, p->sums.bucket[k]);
        app_real(&t, p->sums.ulp_max);
        app_real(&t, p->sums.rel_max);
        app_real(&t, ud_sqnr(&p->sums));
        app_text(&t, p->bytes_equal ? "equal" : "differ");
    }
    app_print_table(out, &t);
    app_table_free(&t);
}

static void print_many(FILE *out, const ud_job *job)
{
    const ud_pair *worst = ud_worst_pair(job);
    int equal = 0;
    print_list(out, job);
    for (int i = 0; i < job->pairs; i++) equal += job->pair[i].sums.first < 0;
    fprintf(out, "\n  %d tensors: %d without a difference, %d with\n", job->pairs, equal, job->pairs - equal);
    for (int i = 0; i < job->pairs; i++) {
        if (!job->options.all && (&job->pair[i] != worst || worst->sums.first < 0)) continue;
        fputc('\n', out);
        print_pair(out, job, &job->pair[i]);
    }
}

void ud_print_text(FILE *out, const ud_job *job)
{
    if (job->pairs == 1)
        print_pair(out, job, &job->pair[0]);
    else if (job->pairs)
        print_many(out, job);
    if (job->explained) ud_print_explanation(out, job);
}

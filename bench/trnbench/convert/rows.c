/* rows.c - what subcommand convert prints: tables for people, one tidy row per tuple for programs.
 * SPDX-License-Identifier: MIT
 */
#include "convert.h"

#include <math.h>
#include <string.h>

#include "bench/common/host.h"

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

static const char *short_size(char *text, size_t size, size_t n)
{
    static const char *const unit[] = { "", "Ki", "Mi", "Gi" };
    int u = 0;
    for (; u < 3 && n % 1024 == 0; u++) n /= 1024;
    snprintf(text, size, "%zu %s", n, unit[u]);
    return text;
}

/* Where an array and its result lie, for the usual five bytes per element. */
static const char *memory_of(const tb_convert_job *job, int size)
{
    return tb_memory_name(5.0 * (double)job->size[size]);
}

/* The heading of a size: its memory, unless two sizes share one. */
static const char *size_name(const tb_convert_job *job, int size, char *text, size_t room)
{
    for (int s = 0; s < job->sizes; s++)
        if (s != size && strcmp(memory_of(job, s), memory_of(job, size)) == 0)
            return short_size(text, room, job->size[size]);
    snprintf(text, room, "%s", memory_of(job, size));
    return text;
}

static const char *random_of(const tb_conversion *c)
{
    return c->rounding != TRN_STOCHASTIC ? "" : c->xorwow ? "xorwow" : "philox";
}

static bool anyone(const tb_convert_item *item, tb_maker_id id)
{
    bool there = item->answers[id].cases > 0;
    for (int t = 0; t < TB_CONVERT_THREADS; t++)
        for (int s = 0; s < TB_CONVERT_SIZES; s++) there = there || item->speed[t][s].maker[id].rate > 0;
    return there;
}

/* ---- for programs ---- */

static const app_column tidy_columns[] = {
    { "conversion", APP_TEXT, "", "as the table names it" },
    { "from", APP_TEXT, "", "format of the source" },
    { "to", APP_TEXT, "", "format of the result; mx...: codes and E8M0 scales" },
    { "rounding", APP_TEXT, "", "nearest_even, stochastic, ..." },
    { "overflow", APP_TEXT, "", "default or saturate" },
    { "sr_bits", APP_INTEGER, "", "random bits per element; stochastic only" },
    { "random", APP_TEXT, "", "trnmath's generator: philox or xorwow; stochastic only" },
    { "threads", APP_INTEGER, "", "on this host" },
    { "elements", APP_INTEGER, "", "of the array" },
    { "memory", APP_TEXT, "", "the smallest that holds array and result, at five bytes per element" },
    { "who", APP_TEXT, "",
      "trnmath, a peer, memcpy of as many bytes, or stream: the fastest loop that only moves them" },
    { "gelem_per_s", APP_REAL, "1e9/s", "elements, best round" },
    { "gb_per_s", APP_REAL, "1e9 B/s", "bytes read and written, best round" },
    { "percent_of_stream", APP_REAL, "%", "of the stream's elements per second, median of the ratios within a round" },
    { "trnmath_ratio", APP_REAL, "", "trnmath's speed over this one's, median of the ratios within a round" },
    { "cases", APP_INTEGER, "", "reference vectors that were compared" },
    { "wrong", APP_INTEGER, "", "answers that differ from them" },
    { "first_wrong", APP_TEXT, "", "the first of those" },
    { "detail", APP_TEXT, "", "of a stream: which stores" },
};

void tb_convert_columns(app_table *table) { app_table_start(table, COLUMNS(tidy_columns)); }

static void conversion_cells(app_table *t, const tb_conversion *c)
{
    app_text(t, "%s", c->name);
    app_text(t, "%s", c->from->name);
    app_text(t, "%s", c->to->name);
    app_text(t, "%s", trn_round_text(c->rounding));
    app_text(t, "%s", c->overflow == TRN_SATURATE ? "saturate" : "default");
    if (c->rounding == TRN_STOCHASTIC)
        app_integer(t, c->sr_bits);
    else
        app_missing(t);
    app_text(t, "%s", random_of(c));
}

static double or_nothing(double value) { return value > 0 ? value : NAN; }

static void speed_cells(app_table *t, const tb_speed *s, double bytes)
{
    app_real(t, or_nothing(s->rate / 1e9));
    app_real(t, or_nothing(s->rate * bytes / 1e9));
    app_real(t, or_nothing(100 * s->stream));
    app_real(t, or_nothing(s->ratio));
}

static void answer_cells(app_table *t, const tb_answers *a)
{
    if (!a || a->cases == 0) {
        app_missing(t), app_missing(t), app_text(t, "%s", "");
        return;
    }
    app_integer(t, a->cases);
    app_integer(t, a->wrong);
    app_text(t, "%s", a->first);
}

typedef struct place {
    const tb_convert_job *job;
    const tb_convert_item *item;
    int threads, size;
} place;

static void tidy_row(app_table *t, const place *p, const char *who, const tb_speed *s, double bytes,
                     const tb_answers *answers, const char *detail)
{
    app_row(t);
    conversion_cells(t, p->item->conversion);
    app_integer(t, p->job->threads[p->threads]);
    app_integer(t, (int64_t)p->job->size[p->size]);
    app_text(t, "%s", memory_of(p->job, p->size));
    app_text(t, "%s", who);
    speed_cells(t, s, bytes);
    answer_cells(t, answers);
    app_text(t, "%s", detail ? detail : "");
}

static void tidy_place(app_table *t, const place *p)
{
    const tb_conversion *c = p->item->conversion;
    const tb_measured *m = &p->item->speed[p->threads][p->size];
    const double read = tb_bytes_read(c), bytes = read + tb_bytes_written(c);
    for (int i = 0; i < TB_MAKERS; i++)
        if (anyone(p->item, (tb_maker_id)i))
            tidy_row(t, p, tb_maker_name((tb_maker_id)i), &m->maker[i],
                     tb_maker_gives_values((tb_maker_id)i) ? read + sizeof(float) : bytes, &p->item->answers[i], NULL);
    if (!p->job->timed) return;
    tidy_row(t, p, "memcpy", &m->copy, bytes, NULL, NULL);
    tidy_row(t, p, "stream", &m->stream, bytes, NULL, m->stream_name);
}

void tb_convert_rows(app_table *t, const tb_convert_job *job)
{
    for (int i = 0; i < job->items; i++)
        for (int n = 0; n < job->thread_counts; n++)
            for (int s = 0; s < job->sizes; s++) tidy_place(t, &(place){ job, &job->item[i], n, s });
}

void tb_print_convert_csv(FILE *out, const void *job)
{
    app_table rows;
    tb_convert_columns(&rows);
    tb_convert_rows(&rows, job);
    app_print_csv(out, &rows);
    app_table_free(&rows);
}

void tb_print_convert_json(FILE *out, const void *context)
{
    const tb_convert_job *job = context;
    app_table rows, makers;
    tb_convert_columns(&rows);
    tb_convert_rows(&rows, job);
    tb_convert_makers(&makers, job);
    fputs("{\n  \"schema\": \"trnbench.convert\",\n  \"schema_version\": \"1.0.0\",\n  \"context\": {\n", out);
    app_print_json_pair(out, "version", TRN_VERSION);
    app_print_json_pair(out, "compiler", TB_COMPILER);
    app_print_json_pair(out, "processor", tb_host_processor());
    app_print_json_pair(out, "isa", app_isa_used(job->measure.isa));
    fprintf(out, "    \"rounds\": %d\n  },\n  \"results\": ", job->timed ? job->measure.rounds : 0);
    app_print_json_rows(out, &rows, 2);
    fputs(",\n  \"makers\": ", out);
    app_print_json_rows(out, &makers, 2);
    fputs("\n}\n", out);
    app_table_free(&rows);
    app_table_free(&makers);
}

/* ---- for people ---- */

/* Columns whose names depend on the sizes; the table keeps pointers to them. */
typedef struct headings {
    app_column column[8 + 6 * TB_CONVERT_SIZES];
    char name[6 * TB_CONVERT_SIZES][32];
    int columns, names;
} headings;

static void head(headings *h, app_kind kind, const char *name)
{
    h->column[h->columns++] = (app_column){ name, kind, "", "" };
}

static void head_size(headings *h, app_kind kind, const tb_convert_job *job, int size, const char *what)
{
    char text[16], *name = h->name[h->names++];
    snprintf(name, sizeof h->name[0], "%s %s", size_name(job, size, text, sizeof text), what);
    head(h, kind, name);
}

static int fastest_peer(const tb_measured *m)
{
    int best = 0;
    for (int i = 1; i < TB_MAKERS; i++)
        if (m->maker[i].rate > 0 && (best == 0 || m->maker[i].rate > m->maker[best].rate)) best = i;
    return best;
}

static void wrong_cell(app_table *t, const tb_answers *a)
{
    char wrong[32], cases[32];
    if (a->cases == 0)
        app_missing(t);
    else
        app_text(t, "%s of %s", app_count(wrong, sizeof wrong, a->wrong), app_count(cases, sizeof cases, a->cases));
}

static void overview_row(app_table *t, const tb_convert_job *job, const tb_convert_item *item, int threads)
{
    const tb_conversion *c = item->conversion;
    char text[32];
    app_row(t);
    app_text(t, "%s", c->name);
    app_integer(t, job->threads[threads]);
    for (int s = 0; s < job->sizes; s++) {
        const tb_measured *m = &item->speed[threads][s];
        app_real(t, or_nothing(m->maker[TB_TRNMATH].rate / 1e9));
        app_real(t, or_nothing(m->maker[TB_TRNMATH].rate * (tb_bytes_read(c) + tb_bytes_written(c)) / 1e9));
        app_real(t, or_nothing(100 * m->maker[TB_TRNMATH].stream));
        app_real(t, or_nothing(100 * m->copy.ratio));
    }
    wrong_cell(t, &item->answers[TB_TRNMATH]);
    for (int s = 0; s < job->sizes; s++) {
        const tb_measured *m = &item->speed[threads][s];
        const int peer = fastest_peer(m);
        if (peer == 0)
            app_missing(t);
        else
            app_text(t, "%s x %s", app_human(text, sizeof text, m->maker[peer].ratio),
                     tb_maker_name((tb_maker_id)peer));
    }
}

/* trnmath: one row per conversion and number of threads. */
void tb_convert_overview(app_table *t, const tb_convert_job *job)
{
    static headings h;
    memset(&h, 0, sizeof h);
    head(&h, APP_TEXT, "conversion");
    head(&h, APP_INTEGER, "threads");
    for (int s = 0; s < job->sizes; s++) {
        head_size(&h, APP_REAL, job, s, "Gelem/s");
        head(&h, APP_REAL, "GB/s");
        head(&h, APP_REAL, "% of stream");
        head(&h, APP_REAL, "% of memcpy");
    }
    head(&h, APP_TEXT, "wrong answers");
    for (int s = 0; s < job->sizes; s++) head_size(&h, APP_TEXT, job, s, "fastest peer");
    app_table_start(t, h.column, h.columns);
    for (int i = 0; i < job->items; i++)
        for (int n = 0; n < job->thread_counts; n++) overview_row(t, job, &job->item[i], n);
}

static void peer_row(app_table *t, const tb_convert_job *job, const tb_convert_item *item, int threads, tb_maker_id id)
{
    app_row(t);
    app_text(t, "%s", item->conversion->name);
    app_integer(t, job->threads[threads]);
    app_text(t, "%s", tb_maker_name(id));
    for (int s = 0; s < job->sizes; s++) {
        const tb_speed *speed = &item->speed[threads][s].maker[id];
        app_real(t, or_nothing(speed->rate / 1e9));
        app_real(t, or_nothing(speed->ratio));
    }
    wrong_cell(t, &item->answers[id]);
    app_text(t, "%s", item->answers[id].first);
}

static void print_peers(const tb_convert_job *job)
{
    static headings h;
    app_table t;
    memset(&h, 0, sizeof h);
    head(&h, APP_TEXT, "conversion");
    head(&h, APP_INTEGER, "threads");
    head(&h, APP_TEXT, "peer");
    for (int s = 0; s < job->sizes; s++) {
        head_size(&h, APP_REAL, job, s, "Gelem/s");
        head(&h, APP_REAL, "trnmath x");
    }
    head(&h, APP_TEXT, "wrong answers");
    head(&h, APP_TEXT, "the first of them");
    app_table_start(&t, h.column, h.columns);
    for (int i = 0; i < job->items; i++)
        for (int n = 0; n < job->thread_counts; n++)
            for (int id = 1; id < TB_MAKERS; id++)
                if (anyone(&job->item[i], (tb_maker_id)id)) peer_row(&t, job, &job->item[i], n, (tb_maker_id)id);
    if (t.rows) putchar('\n'), app_print_table(stdout, &t);
    app_table_free(&t);
}

static double mean_ratio(const tb_convert_job *job, int size, tb_maker_id id)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < job->items; i++) {
        const double ratio = job->item[i].speed[0][size].maker[id].ratio;
        if (ratio > 0) sum += log(ratio), n++;
    }
    return n ? exp(sum / n) : NAN;
}

/* One row per conversion, one column per maker. */
static void print_answers(const tb_convert_job *job)
{
    static headings h;
    app_table t;
    bool there[TB_MAKERS] = { false };
    memset(&h, 0, sizeof h);
    head(&h, APP_TEXT, "wrong answers");
    for (int id = 0; id < TB_MAKERS; id++) {
        for (int i = 0; i < job->items; i++) there[id] = there[id] || job->item[i].answers[id].cases > 0;
        if (there[id]) head(&h, APP_TEXT, tb_maker_name((tb_maker_id)id));
    }
    app_table_start(&t, h.column, h.columns);
    for (int i = 0; i < job->items; i++) {
        app_row(&t);
        app_text(&t, "%s", job->item[i].conversion->name);
        for (int id = 0; id < TB_MAKERS; id++)
            if (there[id]) wrong_cell(&t, &job->item[i].answers[id]);
    }
    app_print_table(stdout, &t);
    app_table_free(&t);
}

/* One row per maker: everything about it in one line. */
void tb_convert_makers(app_table *t, const tb_convert_job *job)
{
    static headings h;
    memset(&h, 0, sizeof h);
    head(&h, APP_TEXT, "who");
    head(&h, APP_INTEGER, "conversions");
    head(&h, APP_INTEGER, "cases");
    head(&h, APP_INTEGER, "wrong");
    head(&h, APP_INTEGER, "wrong in");
    for (int s = 0; s < job->sizes && job->timed; s++) head_size(&h, APP_REAL, job, s, "trnmath x");
    head(&h, APP_TEXT, "version");
    app_table_start(t, h.column, h.columns);
    for (int id = 0; id < TB_MAKERS; id++) {
        int64_t conversions = 0, cases = 0, wrong = 0, wrong_in = 0;
        for (int i = 0; i < job->items; i++) {
            const tb_answers *a = &job->item[i].answers[id];
            conversions += anyone(&job->item[i], (tb_maker_id)id);
            cases += a->cases, wrong += a->wrong, wrong_in += a->wrong > 0;
        }
        if (conversions == 0) continue;
        app_row(t);
        app_text(t, "%s", tb_maker_name((tb_maker_id)id));
        app_integer(t, conversions);
        app_integer(t, cases);
        app_integer(t, wrong);
        app_integer(t, wrong_in);
        for (int s = 0; s < job->sizes && job->timed; s++) app_real(t, id ? mean_ratio(job, s, (tb_maker_id)id) : NAN);
        app_text(t, "%s", tb_maker_version((tb_maker_id)id));
    }
}

static bool any_part(const tb_convert_job *job)
{
    bool part = false;
    for (int i = 0; i < job->items; i++)
        for (int n = 0; n < job->thread_counts; n++)
            for (int s = 0; s < job->sizes; s++) part = part || job->item[i].speed[n][s].part;
    return part;
}

void tb_convert_notes(FILE *out, const tb_convert_job *job)
{
    char text[32];
    fprintf(out, "%s, %s kernels, compiled by %s.", tb_host_processor(), app_isa_used(job->measure.isa), TB_COMPILER);
    for (int s = 0; s < job->sizes && job->timed; s++)
        fprintf(out, "%s %s: %s elements", s ? "," : " Arrays:", memory_of(job, s),
                short_size(text, sizeof text, job->size[s]));
    if (job->timed)
        fprintf(out,
                ". %d rounds, all candidates in turn in each; rates are the best round, ratios medians over rounds; "
                "a thread alone by its own processor time; several threads share the larger arrays and have smaller "
                "ones each.\n"
                "Stream: the fastest of four loops that only read and write as many bytes (memcpy copies half of "
                "their sum).%s\n",
                job->measure.rounds, any_part(job) ? " Who is slow gets a part of the array." : "");
    else
        fputc('\n', out);
    if (job->golden_there)
        fprintf(out,
                "Wrong answers: of the reference vectors; stochastic rounding %d times each, trnmath's to the "
                "bit, the others' by neighbours and frequency.\n",
                job->draws);
    else
        fputs("Wrong answers: not counted, the reference vectors are not there (--golden DIR tells where they are).\n",
              out);
    fputs("A peer's NaN may be any NaN; where a format has none, and where an infinity saturates, peers do as they "
          "like. Block scales are by OCP's rule. XORWOW has one state, so one thread draws from it.\n",
          out);
    if (job->timed && job->attention < 0.85)
        fprintf(out, "Other programs had the processor for %.0f %% of the time.\n", 100 * (1 - job->attention));
}

void tb_print_convert_text(const tb_convert_job *job)
{
    app_table t;
    if (job->timed) {
        tb_convert_overview(&t, job);
        app_print_table(stdout, &t);
        app_table_free(&t);
        print_peers(job);
    } else {
        print_answers(job);
    }
    putchar('\n');
    tb_convert_makers(&t, job);
    app_print_table(stdout, &t);
    app_table_free(&t);
    putchar('\n');
    tb_convert_notes(stdout, job);
}

/* page.c - the page that a sceptic reads first: what was published, what came out, and who says so.
 * SPDX-License-Identifier: MIT
 */
#include "app/page.h"
#include "conformance.h"

static const char style[] =
    "<style>"
    "td{white-space:normal;vertical-align:top}"
    "td.id{font-family:ui-monospace,monospace;font-size:12px;min-width:180px}"
    "td.n{text-align:right;min-width:105px}"
    "td.w{min-width:230px}"
    "td.s,td.src{color:var(--soft);font-size:12px}"
    ".pass{color:var(--good)}.fail{color:var(--card);background:var(--bad);padding:1px 7px;border-radius:6px}"
    ".known{color:var(--warn)}.skipped{color:var(--faint)}"
    "summary b{color:var(--ink);font-weight:600}"
    "details[open] summary{margin-bottom:6px}"
    "</style>";

static const char *const class_of[CF_STATUSES] = { "pass", "fail", "known", "skipped" };

static void cell(FILE *out, const char *class, const char *text)
{
    fprintf(out, "<td class=%s>", class);
    app_escape(out, text);
    fputs("</td>", out);
}

/* A name may be broken after its dots. */
static void name_cell(FILE *out, const char *id)
{
    fputs("<td class=id>", out);
    for (; *id; id++) {
        fputc(*id, out);
        if (*id == '.') fputs("<wbr>", out);
    }
    fputs("</td>", out);
}

static void row(FILE *out, const cf_result *r)
{
    char expected[120], got[120];
    cf_expected(expected, sizeof expected, r->vector);
    cf_got(got, sizeof got, r);
    fprintf(out, "<tr id=\"%s\">", r->vector->id);
    name_cell(out, r->vector->id);
    cell(out, "w", r->vector->what);
    cell(out, "n", expected);
    cell(out, "n", got);
    fprintf(out, "<td><span class=%s>%s</span></td>", class_of[r->status], cf_status_names[r->status]);
    cell(out, "s", cf_kind_names[r->vector->kind]);
    cell(out, "src", r->vector->source);
    fputs("</tr>\n", out);
}

static const char heading[] = "<table><tr><th>vector<th>what<th class=r>published<th class=r>ours<th>status<th>kind"
                              "<th>source</tr>\n";

static void chapter(FILE *out, const cf_report *report, int number)
{
    const cf_tally t = cf_tally_of(report, number);
    const long long vectors = t.vectors, failed = t.status[CF_FAIL];
    if (!vectors) return;
    fprintf(
        out, "<h2>%s</h2>\n<p>%s</p>\n<div class=card><details%s><summary><b>%lld vectors</b>, %lld failed</summary>\n",
        cf_chapters[number].title, cf_chapters[number].about, failed || vectors <= 40 ? " open" : "", vectors, failed);
    app_scroll_open(out, cf_chapters[number].title);
    fputs(heading, out);
    for (int i = 0; i < report->count; i++)
        if (report->result[i].vector->chapter == number) row(out, &report->result[i]);
    fputs("</table>", out);
    app_scroll_close(out);
    fputs("</details></div>\n", out);
}

static void open_reasons(FILE *out, const char *title, const char *about)
{
    fprintf(out, "<h2>%s</h2>\n<p>%s</p>\n<div class=card>", title, about);
    app_scroll_open(out, title);
    fputs("<table><tr><th>vector<th class=r>published<th class=r>ours<th>why<th>source</tr>\n", out);
}

static void reasons(FILE *out, const cf_report *report, cf_status status, const char *title, const char *about)
{
    bool any = false;
    for (int i = 0; i < report->count; i++) {
        const cf_result *r = &report->result[i];
        char expected[120], got[120];
        if (r->status != status) continue;
        if (!any) open_reasons(out, title, about);
        any = true;
        cf_expected(expected, sizeof expected, r->vector);
        cf_got(got, sizeof got, r);
        fputs("<tr>", out);
        name_cell(out, r->vector->id);
        cell(out, "n", expected);
        cell(out, "n", got);
        cell(out, "w", status == CF_KNOWN ? r->vector->known : r->answer.note);
        cell(out, "src", r->vector->source);
        fputs("</tr>\n", out);
    }
    if (!any) return;
    fputs("</table>", out);
    app_scroll_close(out);
    fputs("</div>\n", out);
}

static void facts(FILE *out, const cf_report *report)
{
    const cf_tally all = cf_tally_of(report, -1);
    char text[40];
    fputs("<div class=facts>", out);
    app_fact(out, app_count(text, sizeof text, all.status[CF_PASS]), "published figures come out");
    app_fact(out, app_count(text, sizeof text, all.status[CF_FAIL]), "fail");
    app_fact(out, app_count(text, sizeof text, all.status[CF_KNOWN]), "known differences, each with its reason");
    if (all.status[CF_SKIPPED])
        app_fact(out, app_count(text, sizeof text, all.status[CF_SKIPPED]), "skipped: this host cannot run them");
    app_fact(out, app_count(text, sizeof text, all.cases), "cases behind them");
    snprintf(text, sizeof text, "%.1f s", report->seconds);
    app_fact(out, text, "on one thread");
    fputs("</div>\n", out);
}

void cf_write_page(FILE *out, const cf_report *report)
{
    app_page_open(out, "trnmath: conformance");
    fputs(style, out);
    fputs("<h1>Conformance</h1>\n<p class=lead>Every published figure that we know of, beside what trnmath computes: "
          "from "
          "the vendor's pages, from runs on devices that somebody printed, from papers, and from definitions.</p>\n",
          out);
    fprintf(out,
            "<p>trnmath %s, kernels for %s. A figure passes when ours is as near as the figure was rounded, or as a "
            "statistic wanders. Run it yourself: <code>scripts/conformance.sh --html page.html</code>.</p>\n",
            TRN_VERSION, trn_isa_name());
    facts(out, report);
    reasons(out, report, CF_FAIL, "Failures", "These figures do not come out.");
    reasons(
        out, report, CF_KNOWN, "Known differences",
        "Published figures that we do not meet, and why. Ours is held to its present value, so that it cannot drift.");
    for (int c = 0; c < CF_COUNT_OF_CHAPTERS; c++) chapter(out, report, c);
    fputs("<footer><p>Every figure for a chip is a model's, never a measurement of a device; where a device is named, "
          "its "
          "owner's print is the published side.</p></footer>\n",
          out);
    app_page_close(out);
}

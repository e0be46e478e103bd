/* page.c - the shell of an HTML report: its style, its text, its tables.
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include <stddef.h>
#include <string.h>

#include "chart_draw.h"
#include "colours.h"
#include "io/shown.h"

/* ---- text ---- */

/* What XML cannot hold, and what nobody sees, is shown as io/shown.h has it; lines stay lines. */
void app_escape(FILE *out, const char *text)
{
    static const struct {
        char c;
        const char *entity;
    } row[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" } };
    for (size_t size = strlen(text), n; size; text += n, size -= n) {
        char one[IO_SHOWN_ONE];
        const char *put = one;
        n = io_shown_next(text, size, one);
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
            if (*text == row[i].c) put = row[i].entity;
        fputs(*text == '\n' ? "\n" : put, out);
    }
}

/* 1.07e13 -> "10.7 P" with unit "flop/s" -> "10.7 Pflop/s" */
const char *app_si(char *text, size_t size, double value, const char *unit)
{
    static const struct {
        double size;
        const char *prefix;
    } row[] = { { 1e21, "Z" }, { 1e18, "E" }, { 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (value >= 0.9995 * row[i].size) {
            snprintf(text, size, "%.3g %s%s", value / row[i].size, row[i].prefix, unit);
            return text;
        }
    snprintf(text, size, "%.3g %s", value, unit);
    return text;
}

const char *app_percent(char *text, size_t size, double share)
{
    const double p = 100 * share;
    snprintf(text, size, p >= 99.95 ? "%.0f %%" : p >= 0.095 ? "%.1f %%" : p >= 0.0095 ? "%.2f %%" : "%.0e %%", p);
    return text;
}

/* ---- the page ---- */

static const char style[] =
    "*{box-sizing:border-box}"
    "html{-webkit-text-size-adjust:100%;text-size-adjust:100%}"
    "body{margin:0;background:var(--bg);color:var(--ink);font-variant-numeric:tabular-nums;"
    "font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica "
    "Neue',Arial,sans-serif;overflow-wrap:break-word}"
    "main{max-width:1180px;margin:0 auto;padding:44px 28px 64px}"
    "h1{font-size:30px;line-height:1.2;letter-spacing:-.02em;margin:0 0 8px;font-weight:650}"
    "h2{font-size:20px;line-height:1.3;letter-spacing:-.01em;margin:52px 0 4px;font-weight:620}"
    "h3{margin:0 0 2px;font-size:15px;font-weight:620}"
    "p{margin:0 0 14px;color:var(--soft);max-width:88ch}"
    ".card>*+p{margin-top:12px}.card>p:last-child{margin-bottom:0}"
    ".lead{font-size:17px}"
    ".sub{color:var(--soft);font-size:13px;margin:0 0 10px}"
    ".fact,.card,.panel{background:var(--card);border:1px solid var(--line);border-radius:14px}"
    ".card{padding:18px 20px;margin:16px 0}"
    ".panel{padding:14px 14px 10px;min-width:0}"
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));gap:14px;margin:16px 0}"
    ".grid:has(>:nth-child(3n+1):last-child){grid-template-columns:repeat(auto-fill,minmax(min(100%,500px),1fr))}"
    ".grid.half>:last-child:nth-child(odd){grid-column:1/-1}"
    ".grid.half{grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr))}"
    ".legend{display:flex;flex-wrap:wrap;gap:6px 18px;font-size:13px;color:var(--soft);margin:10px 0}"
    ".legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px;vertical-align:-1px}"
    ".legend i.o{border-radius:50%}"
    ".legend i.ring{border-radius:50%;border:2px solid var(--soft)}"
    "svg{display:block;width:100%;height:auto;overflow:visible}"
    "svg text{font-family:inherit;fill:var(--soft);font-size:12px}"
    "svg .name{fill:var(--ink);font-weight:560}"
    "svg .num{fill:var(--ink)}"
    "svg .tick{fill:var(--faint)}"
    "svg .halo{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}"
    "details summary{cursor:pointer;color:var(--soft);font-size:14px}"
    "table{border-collapse:collapse;font-size:13px;width:100%;margin-top:10px}"
    "th{text-align:left;color:var(--soft);font-weight:560}"
    "th,td{padding:5px 14px 5px 0;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th:last-child,td:last-child{padding-right:2px}"
    ".r{text-align:right}"
    ".wrap{white-space:normal;min-width:32ch}"
    "footer{margin-top:48px;padding-top:18px;border-top:1px solid var(--line)}"
    "footer p{font-size:13px}";

static const char style_of_places[] =
    /* what is wider than its place scrolls, and a shadow at each side says that there is more */
    ".scroll{overflow-x:auto;scrollbar-width:thin;scrollbar-color:var(--faint) transparent;background:"
    "linear-gradient(to right,var(--card) 40%,transparent) left/48px 100% local,"
    "linear-gradient(to left,var(--card) 40%,transparent) right/48px 100% local,"
    "linear-gradient(to right,var(--shadow),transparent) left/18px 100%,"
    "linear-gradient(to left,var(--shadow),transparent) right/18px 100%;background-repeat:no-repeat}"
    ".scroll:focus-visible,summary:focus-visible{outline:2px solid var(--tensor);outline-offset:3px;border-radius:4px}"

    /* tiles: as many in a row as leave none alone in the last one; they fill their row */
    ".facts{--n:4;display:flex;flex-wrap:wrap;gap:12px;margin:24px 0 0}"
    ".fact{padding:14px 18px;min-width:0;flex:1 1 calc((100% - 12px*(var(--n) - 1))/var(--n) - 1px)}"
    ".fact b{display:block;font-size:24px;font-weight:640;letter-spacing:-.02em;line-height:1.25}"
    ".fact span{display:block;color:var(--soft);font-size:13px;line-height:1.45;margin-top:2px}"
    ".facts:has(>:nth-child(5):last-child,>:nth-child(9):last-child,>:nth-child(10):last-child){--n:5}"
    ".facts:has(>:nth-child(3):last-child,>:nth-child(6):last-child){--n:3}"
    ".fact:only-child{max-width:560px}"
    "@media(max-width:980px){.facts.facts{--n:3}"
    ".facts.facts:has(>:nth-child(4):last-child,>:nth-child(10):last-child){--n:2}"
    ".fact:first-child:nth-last-child(7){flex-basis:100%}}"
    "@media(max-width:620px){.facts.facts.facts,.facts.facts:has(*){--n:2}"
    ".fact:first-child:nth-last-child(n){flex-basis:calc(50% - 7px)}"
    ".fact:first-child:nth-last-child(odd){flex-basis:100%}"
    "main{padding:24px 16px 40px}h1{font-size:25px}h2{margin-top:40px}.lead{font-size:16px}"
    ".card{padding:14px 14px}.fact{padding:12px 14px}.fact b{font-size:21px}}"

    "@media(prefers-reduced-motion:reduce){*{animation:none!important;transition:none!important;"
    "scroll-behavior:auto!important}}"
    "@page{size:A4 landscape;margin:12mm}"
    "@media print{:root{color-scheme:light}body{background:none;font-size:11pt;"
    "-webkit-print-color-adjust:exact;print-color-adjust:exact}"
    "main{max-width:none;padding:0}h2,h3{break-after:avoid}.fact,.panel,svg,tr{break-inside:avoid}"
    ".scroll{overflow:visible;background:none}.scroll svg,.scroll object{width:100%!important;height:auto}"
    "table{font-size:10px}th,td{padding:3px 9px 3px 0;white-space:normal}td.r,td:first-child{white-space:nowrap}"
    "th{overflow-wrap:anywhere}"
    ".wrap,td{min-width:0!important}"
    "details::details-content{content-visibility:visible;height:auto}summary{display:none}}";

void app_page_open(FILE *out, const char *title)
{
    fputs("<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
          "content='width=device-width,initial-scale=1'><title>",
          out);
    app_escape(out, title);
    fputs("</title><style>", out);
    app_colours_print(out);
    fputs(style, out);
    fputs(style_of_places, out);
    chart_page_style(out);
    fputs("</style></head><body><main>\n", out);
}

void app_scroll_open(FILE *out, const char *label)
{
    fputs("<div class=scroll tabindex=0 role=region aria-label=\"", out);
    app_escape(out, label);
    fputs("\">", out);
}

void app_scroll_close(FILE *out) { fputs("</div>\n", out); }

void app_picture_open(FILE *out, double width, double height, const char *title, const char *about)
{
    app_scroll_open(out, title);
    fprintf(out, "<svg role=img viewBox='0 0 %.0f %.0f' style='width:%.0fpx'><title>", width, height, width);
    app_escape(out, title);
    fputs("</title><desc>", out);
    app_escape(out, about);
    fputs("</desc>\n", out);
}

void app_picture_close(FILE *out)
{
    fputs("</svg>", out);
    app_scroll_close(out);
}

void app_page_close(FILE *out) { fputs("</main></body></html>\n", out); }

void app_fact(FILE *out, const char *number, const char *text)
{
    fputs("<div class=fact><b>", out);
    app_escape(out, number);
    fputs("</b><span>", out);
    app_escape(out, text);
    fputs("</span></div>", out);
}

void app_html_table(FILE *out, const app_table *t)
{
    char text[64];
    snprintf(text, sizeof text, "table of %d rows and %d columns", t->rows, t->columns);
    app_scroll_open(out, text);
    fputs("<table><tr>", out);
    for (int c = 0; c < t->columns; c++) {
        fputs(t->column[c].kind == APP_TEXT ? "<th scope=col>" : "<th scope=col class=r>", out);
        app_escape(out, t->column[c].name);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int r = 0; r < t->rows; r++) {
        fputs("<tr>", out);
        for (int c = 0; c < t->columns; c++) {
            fputs(t->column[c].kind == APP_TEXT ? "<td>" : "<td class=r>", out);
            app_escape(out, app_cell_text(t, r, c, text, sizeof text));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>", out);
    app_scroll_close(out);
}

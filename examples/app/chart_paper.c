/* chart_paper.c - the sheet that a picture is drawn on: its colours, its title, its text.
 * SPDX-License-Identifier: MIT
 */
#include "chart_paper.h"

#include <string.h>

#include "page.h"

/* ---- colours ---- */

/* One rule each: a page says what its variables are, a file of its own has them written out, because not every reader
 * of SVG knows variables. */
static const struct {
    const char *selector, *property, *colour;
} rule[] = {
    { "text", "fill", "soft" },   { ".name", "fill", "ink" },    { ".title", "fill", "ink" },
    { ".tick", "fill", "faint" }, { ".grid", "stroke", "line" }, { ".axis", "stroke", "faint" },
    { ".paper", "fill", "card" }, { ".track", "fill", "track" }, { ".dot", "stroke", "card" },
    { ".k0", "fill", "f0" },      { ".k1", "fill", "f1" },       { ".k2", "fill", "f2" },
    { ".k3", "fill", "f3" },      { ".k4", "fill", "f4" },       { ".k5", "fill", "f5" },
    { ".s0", "stroke", "f0" },    { ".s1", "stroke", "f1" },     { ".s2", "stroke", "f2" },
    { ".s3", "stroke", "f3" },    { ".s4", "stroke", "f4" },     { ".s5", "stroke", "f5" },
};

static const char shapes[] =
    "svg.chart text{font-size:12px}svg.chart .title{font-size:15px;font-weight:600}svg.chart .tick{font-size:11px}"
    "svg.chart .name{font-weight:400}svg.chart .cell{shape-rendering:crispEdges}"
    "svg.chart .axis,svg.chart .grid{stroke-width:1;shape-rendering:crispEdges}"
    "svg.chart .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    "svg.chart .dash{stroke-dasharray:6 6}svg.chart .dot{stroke-width:1}";

static void colour_rules(FILE *out, bool alone, bool dark)
{
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
        const app_colour_pair *c = app_colour_named(rule[i].colour);
        fprintf(out, "svg.chart %s{%s:", rule[i].selector, rule[i].property);
        if (alone)
            fprintf(out, "%s}", dark ? c->dark : c->light);
        else
            fprintf(out, "var(--%s)}", c->name);
    }
}

static void styles(FILE *out, bool alone)
{
    fputs("<style>", out);
    colour_rules(out, alone, false);
    if (alone) {
        fputs("@media(prefers-color-scheme:dark){", out);
        colour_rules(out, true, true);
        fputs("}svg.chart text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',"
              "Arial,sans-serif;font-variant-numeric:tabular-nums}",
              out);
    } else {
        fprintf(out, "svg.chart{max-width:%dpx}", PAPER_WIDTH);
    }
    fprintf(out, "%s</style>\n", shapes);
}

int paper_colour(int colour) { return (colour % PAPER_COLOURS + PAPER_COLOURS) % PAPER_COLOURS; }

/* ---- the sheet ---- */

void paper_open(FILE *out, const char *title, int height, bool alone)
{
    fprintf(out, "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", PAPER_WIDTH,
            height);
    if (alone) fprintf(out, " width=\"%d\" height=\"%d\"", PAPER_WIDTH, height);
    fputs(" role=\"img\"><title>", out);
    app_escape(out, title ? title : "");
    fputs("</title>\n", out);
    styles(out, alone);
    if (alone) fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", PAPER_WIDTH, height);
    if (title) paper_text(out, "title", PAPER_MARGIN, 30, PAPER_START, (PAPER_WIDTH - 2 * PAPER_MARGIN) / 1.3, title);
}

void paper_close(FILE *out) { fputs("</svg>\n", out); }

/* ---- text ---- */

#define CHARACTER 7.1 /* pixels of a character at 12 px, on average and on the safe side */

static int characters(const char *text)
{
    int n = 0;
    for (int bytes; *text; text += bytes ? bytes : 1, n++) bytes = app_utf8(text);
    return n;
}

double paper_text_width(const char *text) { return CHARACTER * characters(text); }

/* The first `most` characters, the last of which is an ellipsis where there are more. */
static void cut_text(char *part, size_t size, const char *text, int most)
{
    const bool all = characters(text) <= most;
    size_t used = 0;
    for (int n = 0, bytes; *text && (all || n + 1 < most); n++) {
        bytes = app_utf8(text) > 0 ? app_utf8(text) : 1;
        if (used + (size_t)bytes + 4 > size) break;
        memcpy(part + used, text, (size_t)bytes);
        used += (size_t)bytes;
        text += bytes;
    }
    strcpy(part + used, *text ? "\xe2\x80\xa6" : "");
}

void paper_text(FILE *out, const char *style, double x, double y, paper_anchor anchor, double room, const char *text)
{
    static const char *const how[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
    char part[512];
    cut_text(part, sizeof part, text, room > 3 * CHARACTER ? (int)(room / CHARACTER) : 3);
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s>", style, x, y, how[anchor]);
    app_escape(out, part);
    fputs("</text>\n", out);
}

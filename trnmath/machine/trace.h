/* machine/trace.h - events of a simulated machine, and the timelines that they are written to.
 * A part of trn_trace.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_TRACE_H
#define TRNI_MACHINE_TRACE_H

#include "../base/base.h"

enum { TRN_TRACE_TRACKS = 16, TRN_TRACE_NAME = 32, TRN_TRACE_TEXT = 88, TRN_TRACE_WHERE = 64 };

typedef struct trn_trace_event {
    int track;
    char name[TRN_TRACE_NAME];
    char text[TRN_TRACE_TEXT];   /* whatever else there is to say */
    char where[TRN_TRACE_WHERE]; /* in the caller's program; empty: he did not say */
    double start_s, duration_s;
} trn_trace_event;

typedef struct trn_trace {
    trn_trace_event *event; /* [capacity], the caller's */
    int64_t capacity, count;
    int64_t lost;                        /* events that had no room */
    const char *track[TRN_TRACE_TRACKS]; /* names, from the top */
    int tracks;
    const char *const *names; /* [tracks], in place of track: for more tracks than that has */
    const char *title;        /* optional */
    const char *where;        /* optional: "kernel.py:12", of the events that come */
} trn_trace;

/* Names and texts are copied, and cut to length. */
TRN_API void trn_trace_add(trn_trace *trace, int track, const char *name, double start_s, double duration_s,
                           const char *text);

/* Takes the next piece of the text. */
typedef void trn_trace_write(void *user, const char *text, size_t bytes);

/* ---- the order of time ---- */

/* By start, then track. In place, without memory of its own. */
TRN_API void trn_trace_sort(trn_trace *trace);

/* ---- JSON ---- */

/* Sorts the trace. Times are microseconds, as the format has it, to the picosecond. */
TRN_API void trn_trace_json(trn_trace *trace, trn_trace_write *write, void *user);

/* ---- the picture ---- */

typedef struct trn_trace_svg_args {
    trn_trace *trace;
    trn_trace_write *write;
    void *user;
    double start_s, end_s; /* what is shown; 0, 0 = all */
    int width;             /* pixels; 0 = 1200 */
} trn_trace_svg_args;

/* Sorts the trace. A file for light and dark backgrounds, whose bars tell what they are under the mouse. */
TRN_API void trn_trace_svg(const trn_trace_svg_args *args);

#if TRNI_BODIES

TRN_API void trn_trace_add(trn_trace *trace, int track, const char *name, double start_s, double duration_s,
                           const char *text)
{
    if (trace->count >= trace->capacity) {
        trace->lost++;
        return;
    }
    trn_trace_event *e = &trace->event[trace->count++];
    e->track = track;
    trni_copy_text(e->name, sizeof e->name, name);
    trni_copy_text(e->text, sizeof e->text, text);
    trni_copy_text(e->where, sizeof e->where, trace->where ? trace->where : "");
    e->start_s = start_s;
    e->duration_s = duration_s;
}

TRNI_FN const char *trni_trace_name(const trn_trace *trace, int track)
{
    return trace->names ? trace->names[track] : trace->track[track];
}

/* ---- text, in pieces ---- */

typedef struct trni_text {
    trn_trace_write *write;
    void *user;
    size_t used;
    char buffer[4096];
} trni_text;

TRNI_FN void trni_text_flush(trni_text *t)
{
    if (t->used) t->write(t->user, t->buffer, t->used);
    t->used = 0;
}

/* Up to 1 KiB at a time. */
__attribute__((unused, format(TRNI_PRINTF, 2, 3))) static void trni_text_put(trni_text *t, const char *format, ...)
{
    va_list list;
    if (sizeof t->buffer - t->used < 1024) trni_text_flush(t);
    va_start(list, format);
    const int n = trni_vprint(t->buffer + t->used, sizeof t->buffer - t->used, format, list);
    va_end(list);
    if (n > 0) t->used += (size_t)n < sizeof t->buffer - t->used ? (size_t)n : sizeof t->buffer - t->used - 1;
}

/* The bytes of one character of UTF-8 at s, which *code becomes; 0 when it is none (RFC 3629), or U+FFFE or U+FFFF,
 * which XML has not. */
TRNI_FN int trni_utf8(const unsigned char *s, unsigned *code)
{
    static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const int n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    unsigned c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    *code = c;
    return c >= least[n] && c <= 0x10ffff && c >> 11 != 0x1b && c >> 1 != 0x7fff ? n : 0;
}

/* Characters that are not seen but change what is: controls, directions of writing, separators, those without width. */
TRNI_FN bool trni_unseen(unsigned c)
{
    static const unsigned range[][2] = { { 0, 0x1f },        { 0x7f, 0x9f },      { 0xad, 0xad },
                                         { 0x61c, 0x61c },   { 0x180e, 0x180e },  { 0x200b, 0x200f },
                                         { 0x2028, 0x202e }, { 0x2060, 0x206f },  { 0xfeff, 0xfeff },
                                         { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff } };
    for (unsigned i = 0; i < sizeof range / sizeof range[0]; i++)
        if (c >= range[i][0] && c <= range[i][1]) return true;
    return false;
}

/* JSON's own escape, which XML's reader sees as it stands. */
TRNI_FN void trni_text_unseen(trni_text *t, unsigned c, bool xml)
{
    if (c <= 0xffff)
        trni_text_put(t, "\\u%04x", c);
    else if (xml)
        trni_text_put(t, "\\U%06x", c);
    else
        trni_text_put(t, "\\u%04x\\u%04x", 0xd800u + ((c - 0x10000u) >> 10), 0xdc00u + (c & 0x3ffu));
}

/* Characters that a reader of XML sees of the one at s, which has *bytes. */
TRNI_FN size_t trni_text_wide(const unsigned char *s, int *bytes)
{
    unsigned code = 0;
    const int n = trni_utf8(s, &code);
    *bytes = n ? n : 1;
    if (!n || !trni_unseen(code)) return 1;
    return code <= 0xffff ? sizeof "\\u0000" - 1 : sizeof "\\U000000" - 1;
}

/* A string inside quotes of JSON, or as text of XML. What is no UTF-8 (a name cut short) becomes '?'. */
TRNI_FN void trni_text_escaped(trni_text *t, const char *text, bool xml)
{
    static const struct {
        char c;
        const char *json, *xml;
    } row[] = {
        { '"', "\\\"", "&quot;" }, { '\\', "\\\\", "\\" }, { '&', "&", "&amp;" },
        { '<', "<", "&lt;" },      { '>', ">", "&gt;" },
    };
    const unsigned char *s = (const unsigned char *)text;
    for (int n; *s; s += n ? n : 1) {
        const char *as = NULL;
        unsigned code = 0;
        n = trni_utf8(s, &code);
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
            if (*s == (unsigned char)row[i].c) as = xml ? row[i].xml : row[i].json;
        if (as)
            trni_text_put(t, "%s", as);
        else if (n && trni_unseen(code))
            trni_text_unseen(t, code, xml);
        else if (n)
            trni_text_put(t, "%.*s", n, (const char *)s);
        else
            trni_text_put(t, "?");
    }
}

/* ---- the order of time ---- */

TRNI_FN bool trni_event_before(const trn_trace_event *a, const trn_trace_event *b)
{
    if (a->start_s < b->start_s || b->start_s < a->start_s) return a->start_s < b->start_s;
    if (a->track != b->track) return a->track < b->track;
    return a->duration_s < b->duration_s;
}

TRNI_FN void trni_event_sift(trn_trace_event *e, int64_t root, int64_t count)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && trni_event_before(&e[child], &e[child + 1])) child++;
        if (!trni_event_before(&e[root], &e[child])) return;
        const trn_trace_event swap = e[root];
        e[root] = e[child];
        e[child] = swap;
    }
}

TRN_API void trn_trace_sort(trn_trace *trace)
{
    TRNI_FLOATS;
    trn_trace_event *e = trace->event;
    bool sorted = true;
    for (int64_t i = 1; i < trace->count && sorted; i++) sorted = !trni_event_before(&e[i], &e[i - 1]);
    if (sorted) return;
    for (int64_t i = trace->count / 2; i-- > 0;) trni_event_sift(e, i, trace->count);
    for (int64_t n = trace->count - 1; n > 0; n--) {
        const trn_trace_event swap = e[0];
        e[0] = e[n];
        e[n] = swap;
        trni_event_sift(e, 0, n);
    }
}

/* ---- JSON ---- */

/* Both ends are rounded, and the duration is what lies between: events that follow each other do not overlap in text.
 */
TRNI_FN double trni_picoseconds(double seconds) { return (double)(int64_t)(1e12 * seconds + 0.5); }

TRN_API void trn_trace_json(trn_trace *trace, trn_trace_write *write, void *user)
{
    TRNI_FLOATS;
    trni_text t;
    t.write = write;
    t.user = user;
    t.used = 0;
    trn_trace_sort(trace);
    trni_text_put(&t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"");
    trni_text_escaped(&t, trace->title ? trace->title : "NeuronCore", false);
    trni_text_put(&t, "\"}}");
    for (int i = 0; i < trace->tracks; i++) {
        trni_text_put(&t, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"",
                      i + 1);
        trni_text_escaped(&t, trni_trace_name(trace, i), false);
        trni_text_put(
            &t,
            "\"}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":1,\"tid\":%d,\"args\":{\"sort_index\":%d}}",
            i + 1, i + 1);
    }
    for (int64_t i = 0; i < trace->count; i++) {
        const trn_trace_event *e = &trace->event[i];
        const double start_us = trni_picoseconds(e->start_s) / 1e6,
                     end_us = trni_picoseconds(e->start_s + e->duration_s) / 1e6;
        trni_text_put(&t, ",\n{\"ph\":\"X\",\"name\":\"");
        trni_text_escaped(&t, e->name, false);
        trni_text_put(&t, "\",\"pid\":1,\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,\"args\":{\"text\":\"", e->track + 1,
                      start_us, end_us - start_us);
        trni_text_escaped(&t, e->text, false);
        if (e->where[0]) trni_text_put(&t, "\",\"where\":\"");
        trni_text_escaped(&t, e->where, false);
        trni_text_put(&t, "\"}}");
    }
    trni_text_put(&t, "\n]}\n");
    trni_text_flush(&t);
}

/* ---- the picture ---- */

enum {
    TRNI_SVG_LEFT = 150,
    TRNI_SVG_RIGHT = 24,
    TRNI_SVG_TOP = 64,
    TRNI_SVG_LANE = 40,
    TRNI_SVG_BAR = 28,
    TRNI_SVG_COLOURS = 10,
    TRNI_SVG_KINDS = 32 /* names with a colour of their own in the legend; the others share the last */
};

typedef struct trni_picture {
    trni_text text;
    const trn_trace *trace;
    double start_s, end_s, scale; /* pixels per second */
    int width, height;
    int kinds;
    const char *kind[TRNI_SVG_KINDS];
    double kind_s[TRNI_SVG_KINDS];
    int tracks; /* that are drawn */
} trni_picture;

TRNI_FN int trni_picture_kind(trni_picture *p, const char *name)
{
    int i = 0;
    while (i < p->kinds && strcmp(p->kind[i], name) != 0) i++;
    if (i < p->kinds) return i;
    if (p->kinds == TRNI_SVG_KINDS) return TRNI_SVG_KINDS - 1;
    p->kind[p->kinds] = name;
    return p->kinds++;
}

/* The part of an event that is shown; false when there is none. */
TRNI_FN bool trni_picture_part(const trni_picture *p, const trn_trace_event *e, double *from_s, double *to_s)
{
    *from_s = e->start_s > p->start_s ? e->start_s : p->start_s;
    *to_s = e->start_s + e->duration_s < p->end_s ? e->start_s + e->duration_s : p->end_s;
    return e->track >= 0 && e->track<p->tracks && * to_s> * from_s;
}

/* Of the legend: a name and its time need 210 pixels. */
TRNI_FN int trni_picture_columns(const trni_picture *p) { return p->width < 452 ? 1 : (p->width - 32) / 210; }

TRNI_FN void trni_picture_measure(trni_picture *p, const trn_trace_svg_args *args)
{
    memset(p, 0, sizeof *p);
    p->trace = args->trace;
    p->tracks = args->trace->tracks;
    if (!args->trace->names && p->tracks > TRN_TRACE_TRACKS) p->tracks = TRN_TRACE_TRACKS;
    p->text.write = args->write;
    p->text.user = args->user;
    p->width = args->width > 400 ? args->width : args->width ? 400 : 1200;
    p->start_s = args->start_s;
    p->end_s = args->end_s;
    for (int64_t i = 0; args->end_s <= args->start_s && i < p->trace->count; i++) {
        const trn_trace_event *e = &p->trace->event[i];
        if (i == 0 || e->start_s + e->duration_s > p->end_s) p->end_s = e->start_s + e->duration_s;
    }
    if (!(p->end_s > p->start_s)) p->end_s = p->start_s + 1e-6;
    p->scale = (p->width - TRNI_SVG_LEFT - TRNI_SVG_RIGHT) / (p->end_s - p->start_s);
    for (int64_t i = 0; i < p->trace->count; i++) {
        const trn_trace_event *e = &p->trace->event[i];
        double from_s, to_s;
        if (!trni_picture_part(p, e, &from_s, &to_s)) continue;
        p->kind_s[trni_picture_kind(p, e->name)] += to_s - from_s;
    }
    const int columns = trni_picture_columns(p), legend_rows = (p->kinds + columns - 1) / columns;
    p->height = TRNI_SVG_TOP + p->trace->tracks * TRNI_SVG_LANE + 50 + 22 * legend_rows;
}

TRNI_FN double trni_picture_x(const trni_picture *p, double s)
{
    return (int)TRNI_SVG_LEFT + (s - p->start_s) * p->scale;
}
TRNI_FN double trni_picture_y(int track) { return TRNI_SVG_TOP + TRNI_SVG_LANE * track; }

/* Colours on which white text can be read, and black text in the dark; the first six differ for colour-blind eyes. */
TRNI_FN void trni_picture_head(trni_picture *p)
{
    static const char *const colour[2][TRNI_SVG_COLOURS] = {
        { "#10408c", "#a06200", "#2c5a12", "#c22f63", "#007a70", "#7565d2", "#55606f", "#7a4a2b", "#8c2fa0",
          "#b5471b" },
        { "#9cc0ff", "#e8ad2b", "#b5e3a2", "#f86f9d", "#1bdfd0", "#857bd6", "#98a2b3", "#c99a75", "#d68be6", "#f28a5b" }
    };
    trni_text *t = &p->text;
    trni_text_put(t,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                  "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>",
                  p->width, p->height, p->width, p->height);
    trni_text_escaped(t, p->trace->title ? p->trace->title : "NeuronCore", true);
    trni_text_put(
        t,
        "</title>\n<desc>a row for each engine or queue, time to the right; each bar is named when it is pointed at"
        "</desc>\n<style>\n.paper { fill: #ffffff } .lane { fill: #f2f4f7 } .ink { fill: #1f2933 } .faint { fill: "
        "#5f6b7a }\n.grid { stroke: #d5dae1; stroke-width: 1 }\n@media (prefers-color-scheme: dark) {\n.paper { fill: "
        "#14181d } .lane { fill: #1e242b } .ink { fill: #e6e9ed } .faint { fill: #9aa5b1 }\n.grid { stroke: #343c46 "
        "}\n}\n.on { fill: #ffffff; font-size: 11px; pointer-events: none }\n.again { stroke: #1f2933; "
        "stroke-width: 1.5 }\n.third { stroke-dasharray: 3 2 }\n");
    for (int i = 0; i < TRNI_SVG_COLOURS; i++) trni_text_put(t, ".c%d { fill: %s }\n", i, colour[0][i]);
    trni_text_put(t, "@media (prefers-color-scheme: dark) {\n.on { fill: #14181d }\n.again { stroke: #e6e9ed }\n");
    for (int i = 0; i < TRNI_SVG_COLOURS; i++) trni_text_put(t, ".c%d { fill: %s }\n", i, colour[1][i]);
    trni_text_put(
        t,
        "}\n</style>\n"
        "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n<text class=\"ink\" x=\"16\" y=\"26\" font-size=\"16\" "
        "font-weight=\"600\">",
        p->width, p->height);
    trni_text_escaped(t, p->trace->title ? p->trace->title : "NeuronCore", true);
    trni_text_put(t, "</text>\n");
}

/* The attribute of a bar's colour: the tenth kind and those after it have the first colours again, with an outline, and
 * those after the twentieth with a dashed one. */
TRNI_FN void trni_picture_class(trni_picture *p, int kind)
{
    static const char *const again[] = { "", " again", " again third", " again third" };
    trni_text_put(&p->text, "class=\"c%d%s\"", kind % TRNI_SVG_COLOURS, again[kind / TRNI_SVG_COLOURS]);
}

/* A step of 1, 2 or 5 times a power of ten that leaves at least 80 pixels between ticks. */
TRNI_FN double trni_picture_step(const trni_picture *p)
{
    static const double mantissa[] = { 1, 2, 5 };
    for (double power = 1e-12; power < 1e6; power *= 10)
        for (int i = 0; i < 3; i++)
            if (mantissa[i] * power * p->scale >= 80) return mantissa[i] * power;
    return p->end_s - p->start_s;
}

TRNI_FN void trni_picture_axis(trni_picture *p)
{
    static const struct {
        double from_s, unit_s;
        const char *name;
    } unit[] = {
        { 1, 1, "s" },
        { 1e-3, 1e-3, "ms" },
        { 1e-6, 1e-6, "us" },
        { 0, 1e-9, "ns" },
    };
    const double step = trni_picture_step(p), bottom = trni_picture_y(p->trace->tracks);
    int u = 0;
    while (u < 3 && p->end_s - p->start_s < unit[u].from_s) u++;
    const double first = (double)(int64_t)(p->start_s / step);
    for (int i = 0; i < 200; i++) {
        const double s = (first + i) * step;
        if (s > p->end_s + step * 1e-6) break;
        if (s < p->start_s - step * 1e-6) continue;
        trni_text_put(&p->text,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/>"
                      "<text class=\"faint\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g %s</text>\n",
                      trni_picture_x(p, s), trni_picture_x(p, s), TRNI_SVG_TOP - 6, bottom, trni_picture_x(p, s),
                      bottom + 16, s / unit[u].unit_s, unit[u].name);
    }
}

TRNI_FN double trni_picture_busy(const trni_picture *p, int track)
{
    double busy_s = 0, from_s, to_s;
    for (int64_t i = 0; i < p->trace->count; i++) {
        const trn_trace_event *e = &p->trace->event[i];
        if (e->track == track && trni_picture_part(p, e, &from_s, &to_s)) busy_s += to_s - from_s;
    }
    return busy_s;
}

TRNI_FN void trni_picture_lanes(trni_picture *p)
{
    const double all = p->end_s - p->start_s;
    for (int i = 0; i < p->tracks; i++) {
        const double y = trni_picture_y(i), busy_s = trni_picture_busy(p, i);
        trni_text_put(&p->text,
                      "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"3\"/>\n"
                      "<text class=\"ink\" x=\"16\" y=\"%.1f\" font-weight=\"600\">",
                      TRNI_SVG_LEFT, y, p->width - TRNI_SVG_LEFT - TRNI_SVG_RIGHT, TRNI_SVG_BAR, y + 18);
        trni_text_escaped(&p->text, trni_trace_name(p->trace, i), true);
        trni_text_put(&p->text, "</text><text class=\"faint\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n",
                      TRNI_SVG_LEFT - 12, y + 18, 100 * busy_s / all);
    }
}

/* One bar; its words when there is room for them. count > 1: so many events that are narrower than a pixel. */
TRNI_FN void trni_picture_bar(trni_picture *p, const trn_trace_event *e, double from_s, double to_s, int64_t count)
{
    const double x = trni_picture_x(p, from_s), y = trni_picture_y(e->track);
    const double wide = (to_s - from_s) * p->scale, drawn = wide < 0.7 ? 0.7 : wide;
    trni_text_put(&p->text, "<rect ");
    trni_picture_class(p, trni_picture_kind(p, e->name));
    trni_text_put(&p->text, " x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"%s><title>", x, y,
                  drawn > 3 ? drawn - 0.4 : drawn, TRNI_SVG_BAR, wide > 6 ? " rx=\"2\"" : "");
    if (count > 1) trni_text_put(&p->text, "%lld instructions, ", (long long)count);
    trni_text_escaped(&p->text, e->name, true);
    trni_text_put(&p->text, ", %.0f ns from %.0f ns", 1e9 * (to_s - from_s), 1e9 * from_s);
    if (count == 1 && e->text[0]) {
        trni_text_put(&p->text, "; ");
        trni_text_escaped(&p->text, e->text, true);
    }
    trni_text_put(&p->text, "</title></rect>");
    if (wide > 6.9 * (double)strlen(e->name) + 8 && count == 1) {
        trni_text_put(&p->text, "<text class=\"on\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x + wide / 2,
                      y + 18);
        trni_text_escaped(&p->text, e->name, true);
        trni_text_put(&p->text, "</text>");
    }
    trni_text_put(&p->text, "\n");
}

/* Events of a track in the order of time: what falls into the pixel of the one before joins it. */
TRNI_FN void trni_picture_track(trni_picture *p, int track)
{
    const trn_trace_event *open = NULL; /* the longest of those that share a pixel */
    double open_from = 0, open_to = 0, from_s, to_s, pixel_s = 1 / p->scale;
    int64_t joined = 0;
    for (int64_t i = 0; i < p->trace->count; i++) {
        const trn_trace_event *e = &p->trace->event[i];
        if (e->track != track || !trni_picture_part(p, e, &from_s, &to_s)) continue;
        if (open && to_s - open_from <= pixel_s) {
            joined++;
            if (e->duration_s > open->duration_s) open = e;
            open_to = to_s;
            continue;
        }
        if (open) trni_picture_bar(p, open, open_from, open_to, joined);
        open = e;
        open_from = from_s;
        open_to = to_s;
        joined = 1;
    }
    if (open) trni_picture_bar(p, open, open_from, open_to, joined);
}

TRNI_FN void trni_picture_legend(trni_picture *p)
{
    const int columns = trni_picture_columns(p);
    const double top = trni_picture_y(p->trace->tracks) + 44, column = (p->width - 32) / (double)columns;
    for (int i = 0; i < p->kinds; i++) {
        const double x = 16 + column * (i % columns), y = top + 22 * (i / columns);
        trni_text_put(&p->text, "<rect ");
        trni_picture_class(p, i);
        trni_text_put(&p->text,
                      " x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\"/><text class=\"ink\" x=\"%.1f\" "
                      "y=\"%.1f\">",
                      x, y - 10, x + 18, y);
        trni_text_escaped(&p->text, i == TRNI_SVG_KINDS - 1 ? "others" : p->kind[i], true);
        trni_text_put(&p->text, " <tspan class=\"faint\">%.2f us</tspan></text>\n", 1e6 * p->kind_s[i]);
    }
}

TRN_API void trn_trace_svg(const trn_trace_svg_args *args)
{
    TRNI_FLOATS;
    trni_picture p;
    trn_trace_sort(args->trace);
    trni_picture_measure(&p, args);
    trni_picture_head(&p);
    trni_text_put(&p.text, "<text class=\"faint\" x=\"16\" y=\"46\">%.2f us, %lld instructions%s</text>\n",
                  1e6 * (p.end_s - p.start_s), (long long)p.trace->count,
                  p.trace->lost ? " (and more than the trace held)" : "");
    trni_picture_lanes(&p);
    trni_picture_axis(&p);
    for (int i = 0; i < p.trace->tracks; i++) trni_picture_track(&p, i);
    trni_picture_legend(&p);
    trni_text_put(&p.text, "</svg>\n");
    trni_text_flush(&p.text);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_TRACE_H */

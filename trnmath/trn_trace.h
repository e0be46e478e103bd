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
 *   machine/trace.h: events of a simulated machine, and the timelines that they are written to.
 *     trn_trace_event                what happened, where, when, how long
 *     trn_trace, trn_trace_add       the events, and one more of them
 *     trn_trace_write                where text goes
 *     trn_trace_sort                 in place, by time
 *     trn_trace_json                 ui.perfetto.dev and chrome://tracing open it
 *     trn_trace_svg_args, trn_trace_svg   a picture; events narrower than a pixel become one
 *
 * KNOWN FROM: the Trace Event Format document of the Chromium project; SVG 1.1.
 */
#ifndef TRN_TRACE_H
#define TRN_TRACE_H

#include "base/words_begin.h"

#include "machine/trace.h"

#include "base/words_end.h"

#endif /* TRN_TRACE_H */

/* network/calibration_file.h - a calibration as a small text file, which programs write after a fit and all can load.
 * A part of trn_calibration_fit.h. SPDX-License-Identifier: MIT
 *
 *     #include <string.h>
 *     #include <trnmath/trn_calibration_fit.h>
 *     int main(void) {
 *         const char text[] = "release = older\nlaunch_s = 40e-6 # seconds\nhbm = 0.4\n";
 *         trn_calibration c;
 *         trn_error why;
 *         if (trn_calibration_load(text, strlen(text), &c, &why) != TRN_OK) return 1;
 *         return c.hbm > 0.39 && c.step_s > trn_calibration_default().step_s ? 0 : 1;
 *     }
 *
 * DOES: reads and writes the text; what is written reads back as the same numbers, bit for bit. A sentence about a file
 *     names its line.
 * DOES NOT: open files: programs do, and hand over the bytes.
 *
 * KNOWN FROM: definitions.
 *
 * The file. Lines of "field = number", in seconds or as shares and factors, as trn_calibration has them; # begins a
 * comment; empty lines do not count. A line "release = newer" or "release = older" may come first: it sets all fields
 * that the file does not name. Without it they are those of newer software. Times are 0 or from 1e-15 to 1e4 s, shares
 * 0 (all) or from 1e-6 to 1, factors 0 (none) or from 1e-6 to 1e6. "plan.kernel_s = 12e-6" and its like are numbers of
 * the planner (trn_plan_assumptions), at least 0: shardplan uses them, and here they are looked at and left.
 */
#ifndef TRNI_NETWORK_CALIBRATION_FILE_H
#define TRNI_NETWORK_CALIBRATION_FILE_H

#include <float.h>

#include "../machine/calibration.h"
#include "../machine/trace.h"

/* The text need not end with a zero. calibration is written only when TRN_OK is returned. */
TRN_API trn_status trn_calibration_load(const char *text, size_t length, trn_calibration *calibration,
                                        trn_error *error);

/* Line by line to write(user, text, bytes), each with its unit. */
TRN_API trn_status trn_calibration_save(const trn_calibration *calibration, trn_trace_write *write, void *user,
                                        trn_error *error);

#if TRNI_BODIES

#include "topology_text.h"

typedef struct trni_calibration_key {
    const char *name, *unit;
    size_t offset;
} trni_calibration_key;

/* Number index of the fields; false when there is none. */
TRNI_FN bool trni_calibration_key_at(int index, trni_calibration_key *key)
{
#define TRNI_X(field, newer, older, unit, known, where) { #field, unit, offsetof(trn_calibration, field) },
    static const trni_calibration_key all[] = { TRNI_CALIBRATION_LIST(TRNI_X) };
#undef TRNI_X
    if (index < 0 || index >= (int)(sizeof all / sizeof all[0])) return false;
    *key = all[index];
    return true;
}

typedef struct trni_calibration_reader {
    trn_calibration c;
    int line;
    unsigned seen; /* fields, as bits */
    trn_error *error;
} trni_calibration_reader;

TRNI_FN trn_status trni_calibration_release(trni_calibration_reader *r, trni_phrase value)
{
    char shown[TRNI_SHOWN];
    for (int i = 0; i < TRN_RELEASE_COUNT; i++) {
        if (!trni_phrase_is(value, trn_release_name((trn_release)i))) continue;
        if (r->seen)
            return trni_fail(r->error, TRN_EINVAL, "line %d: release stands before all fields, and once", r->line);
        r->c = trn_calibration_of_release((trn_release)i);
        return TRN_OK;
    }
    return trni_fail(r->error, TRN_EINVAL, "line %d: release = %s: expected newer or older", r->line,
                     trni_phrase_show(value, shown));
}

TRNI_FN trn_status trni_calibration_pair(trni_calibration_reader *r, trni_phrase name, trni_phrase value)
{
    trni_calibration_key key;
    char shown[TRNI_SHOWN], range[48];
    int i = 0;
    double x;
    if (trni_phrase_is(name, "release")) return trni_calibration_release(r, value);
    if (name.length >= 5 && memcmp(name.at, "plan.", 5) == 0) {
        if (name.length > 5 && trni_phrase_decimal(value, 0, &x) && x >= 0) return TRN_OK;
        return trni_fail(r->error, TRN_EINVAL, "line %d: %s: expected a number, 0 or more", r->line,
                         trni_phrase_show(name, shown));
    }
    while (trni_calibration_key_at(i, &key) && !trni_phrase_is(name, key.name)) i++;
    if (!trni_calibration_key_at(i, &key))
        return trni_fail(r->error, TRN_EINVAL, "line %d: \"%s\" is no field of a calibration", r->line,
                         trni_phrase_show(name, shown));
    if (r->seen & 1u << i) return trni_fail(r->error, TRN_EINVAL, "line %d: %s is given twice", r->line, key.name);
    r->seen |= 1u << i;
    if (!trni_phrase_decimal(value, 0, &x) || !trni_calibration_can_be(key.unit, x))
        return trni_fail(r->error, TRN_EINVAL, "line %d: %s = %s: expected %s", r->line, key.name,
                         trni_phrase_show(value, shown), trni_legal_text(trni_calibration_unit(key.unit), 0, range));
    memcpy((char *)&r->c + key.offset, &x, sizeof x);
    return TRN_OK;
}

TRNI_FN trn_status trni_calibration_line(trni_calibration_reader *r, trni_phrase line)
{
    size_t end = 0, equals = 0;
    while (end < line.length && line.at[end] != '#') end++;
    if (end && line.at[end - 1] == '\r') end--;
    line = trni_phrase_trim(trni_phrase_of(line.at, end));
    if (line.length == 0) return TRN_OK;
    while (equals < line.length && line.at[equals] != '=') equals++;
    if (equals == line.length) return trni_fail(r->error, TRN_EINVAL, "line %d: expected field = number", r->line);
    return trni_calibration_pair(r, trni_phrase_trim(trni_phrase_of(line.at, equals)),
                                 trni_phrase_trim(trni_phrase_of(line.at + equals + 1, line.length - equals - 1)));
}

TRN_API trn_status trn_calibration_load(const char *text, size_t length, trn_calibration *calibration, trn_error *error)
{
    TRNI_FLOATS;
    trni_calibration_reader r;
    trn_status status = TRN_OK;
    if (!calibration || (!text && length))
        return trni_fail(error, TRN_EINVAL, "%s is NULL", calibration ? "text" : "calibration");
    memset(&r, 0, sizeof r);
    r.c = trn_calibration_default();
    r.error = error;
    for (size_t at = 0, end; at < length && status == TRN_OK; at = end + 1) {
        const char *newline = (const char *)memchr(text + at, '\n', length - at);
        end = newline ? (size_t)(newline - text) : length;
        r.line++;
        status = trni_calibration_line(&r, trni_phrase_of(text + at, end - at));
    }
    if (status == TRN_OK) *calibration = r.c;
    return status;
}

TRN_API trn_status trn_calibration_save(const trn_calibration *calibration, trn_trace_write *write, void *user,
                                        trn_error *error)
{
    TRNI_FLOATS;
    trni_calibration_key key;
    if (!calibration || !write)
        return trni_fail(error, TRN_EINVAL, "%s is NULL", calibration ? "write" : "calibration");
    for (int i = 0; trni_calibration_key_at(i, &key); i++) {
        char line[160], number[TRNI_DECIMAL];
        double x;
        memcpy(&x, (const char *)calibration + key.offset, sizeof x);
        if (!(x >= 0 && x <= DBL_MAX)) return trni_fail(error, TRN_EINVAL, "%s is %g", key.name, x);
        trni_decimal_print(x, 0, number);
        snprintf(line, sizeof line, "%-10s = %-22s # %s\n", key.name, number, key.unit);
        write(user, line, strlen(line));
    }
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_CALIBRATION_FILE_H */

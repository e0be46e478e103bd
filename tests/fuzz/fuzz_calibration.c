/* fuzz_calibration.c - files of calibrations, whole and spoilt: what is accepted comes back from its own text with the
 * same bits, and with it collectives are expected to take some time, never less than the ideal; what is refused names
 * its line, and leaves everything alone.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_calibration [count] [seed]        default: 20000 texts, 500000 with TRN_TEST_LEVEL=2; seed 1
 */
#include "fuzz/fail.h"

#include "trnmath/trn_calibration_fit.h"
#include "trnmath/trn_collective_cost.h"

enum { ROOM = 2000 };

#include "fuzz/line.h"

/* ---- texts ---- */

static void put_number(line *l)
{
    static const char *const odd[] = { "0", "-1", "1e400", "1e-400", ".", "1.", "00.10", "inf", "nan", "1e", "0x1",
                                       "1,5", "1e6", "1e7", "1.1", "1000001", "",
                                       /* more digits than a number holds */
                                       "4503599627370497.5", "12345678901234567890123456789012345678901" };
    char text[32];
    snprintf(text, sizeof text, one_in(3) ? "%de-%d" : "0.%d%d", 1 + below(99), below(12));
    put(l, one_in(20) ? odd[below((int)(sizeof odd / sizeof odd[0]))] : text);
}

static void put_text(line *l)
{
    trn_spec_field f;
    if (one_in(2)) put(l, one_in(20) ? "release = latest\n" : one_in(2) ? "release = older\n" : "release=newer\r\n");
    for (int i = 0; trn_calibration_field_at(i, &f); i++) {
        if (one_in(2)) continue;
        put(l, one_in(60) ? "expected" : f.field);
        put(l, one_in(60) ? " " : one_in(5) ? "=" : "   = ");
        put_number(l);
        put(l, one_in(4) ? " # seconds\n" : one_in(60) ? "\nrelease = newer\n" : "\n");
        if (one_in(200)) i--; /* twice */
    }
}

static void spoil(line *l)
{
    const size_t at = l->length ? (size_t)below((int)l->length) : 0;
    const int way = below(3);
    if (!l->length) return;
    if (way == 0) l->text[l->length = at] = 0;
    if (way == 1) l->text[at] = (char)(1 + below(255));
    if (way == 2) memmove(l->text + at, l->text + at + 1, l->length-- - at);
}

/* ---- what must hold ---- */

static void keep(void *user, const char *text, size_t bytes)
{
    line *l = (line *)user;
    if (l->length + bytes > ROOM) fail_msg("a calibration's text is longer than %d bytes", (int)ROOM);
    memcpy(l->text + l->length, text, bytes);
    l->length += bytes;
    l->text[l->length] = 0;
}

static trn_status load(const line *l, trn_calibration *c, trn_error *why)
{
    char *exact = (char *)malloc(l->length ? l->length : 1); /* one byte too many is seen by a sanitizer */
    if (!exact) abort();
    memcpy(exact, l->text, l->length);
    const trn_status status = trn_calibration_load(exact, l->length, c, why);
    free(exact);
    return status;
}

static void check_refused(const line *l, const trn_calibration *c, const trn_error *why, trn_status status)
{
    trn_calibration before;
    int number = 0, lines = 1;
    memset(&before, 0x5a, sizeof before);
    if (memcmp(c, &before, sizeof before) != 0) fail_msg("refused, and the calibration was written:\n%s", l->text);
    if (why->status != status) fail_msg("status %d and %d", (int)status, (int)why->status);
    for (size_t i = 0; i + 1 < l->length; i++) lines += l->text[i] == '\n';
    if (sscanf(why->text, "line %d: ", &number) != 1 || number < 1 || number > lines)
        fail_msg("\"%s\" names no line of\n%s", why->text, l->text);
}

static void check_round_trip(const trn_calibration *c)
{
    static line text;
    trn_calibration copy;
    trn_error why;
    text.length = 0;
    why.text[0] = 0;
    if (trn_calibration_save(c, keep, &text, &why) != TRN_OK) fail_msg("a loaded one has no text: %s", why.text);
    if (load(&text, &copy, &why) != TRN_OK) fail_msg("%s, of its own text\n%s", why.text, text.text);
    if (memcmp(&copy, c, sizeof copy) != 0) fail_msg("other numbers come back from\n%s", text.text);
}

static void check_times(const trn_calibration *c)
{
    static trn_topology net[3];
    trn_collective_args args;
    trn_cost cost;
    trn_error why;
    if (!net[0].chips) {
        net[0] = trn_topology_of(TRN_TRN1_32XLARGE);
        net[1] = trn_topology_of(TRN_TRN2_ULTRASERVER);
        net[2] = trn_topology_of(TRN_TRN3_GEN1_ULTRASERVER);
    }
    memset(&args, 0, sizeof args);
    args.net = &net[below(3)];
    args.op = (trn_collective)below(TRN_COLLECTIVE_COUNT);
    args.bytes = 1 << below(28);
    args.calibration = c;
    args.error = &why;
    if (trn_collective_cost(&args, &cost) != TRN_OK) fail_msg("%s", why.text);
    if (!(cost.expected_s >= cost.time_s && cost.expected_s < 1e30))
        fail_msg("%s takes %g, expected %g", trn_collective_name(args.op), cost.time_s, cost.expected_s);
    if (!(cost.expected_low_s <= cost.expected_s && cost.expected_s <= cost.expected_high_s))
        fail_msg("%g is not within %g to %g", cost.expected_s, cost.expected_low_s, cost.expected_high_s);
}

int main(int argc, char **argv)
{
    long accepted = 0, refused = 0;
    fuzzing_start(argc, argv, 20000, 500000);
    while (fuzzing_next(&rng)) {
        static line l;
        trn_calibration c;
        trn_error why;
        l.text[l.length = 0] = 0;
        put_text(&l);
        if (one_in(4)) spoil(&l);
        memset(&c, 0x5a, sizeof c);
        memset(&why, 0, sizeof why);
        const trn_status status = load(&l, &c, &why);
        refused += status != TRN_OK;
        accepted += status == TRN_OK;
        if (status != TRN_OK) {
            check_refused(&l, &c, &why, status);
            continue;
        }
        check_round_trip(&c);
        check_times(&c);
    }
    const long count = fuzzing_end();
    printf("%ld texts refused, %ld accepted\n", refused, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (refused > count / 20 && accepted > count / 20) ? 0 : 1;
}

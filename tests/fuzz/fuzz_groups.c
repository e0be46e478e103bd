/* fuzz_groups.c - random and spoilt texts of replica groups and sizes: no crash, no read beyond the text, a sentence
 * for each refusal; and what is accepted is what a slower reading finds, and comes back from its own text.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_groups [count] [seed]        default: 200000 texts, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#include <assert.h>
#include <stdio.h>

#include "bench/trnbench/collective/groups.c"
#include "twin/cases.h"

/* The one thing of cli.c that a refusal needs. */
bool app_refuse(char *why, const char *text) { return snprintf(why, APP_WHY, "%s", text), false; }

/* A text in a block of its own, so that a sanitizer sees one byte too many. */
static char *own(const char *text, size_t length)
{
    char *copy = (char *)malloc(length + 1);
    assert(copy);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

static void check_refusal(const char *why) { assert(memchr(why, 0, APP_WHY) && strlen(why) > 12); }

/* The number of chips in a text that has been accepted, counted another way: every item by itself, with sscanf. */
static int64_t count_chips(const char *text)
{
    int64_t chips = 0;
    while (*text) {
        int first, last, step = 1, read = 0;
        if (sscanf(text, "%d%n", &first, &read) != 1) return -1;
        last = first;
        text += read;
        if (sscanf(text, " -%d%n", &last, &read) == 1) text += read;
        if (sscanf(text, " :%d%n", &step, &read) == 1) text += read;
        chips += (last > first ? last - first : first - last) / step + 1;
        text += strspn(text, " \t,;");
    }
    return chips;
}

static bool try_groups(const char *bytes, size_t length)
{
    tb_groups groups = { 7, 7, NULL }, back;
    char why[APP_WHY] = "", small[9];
    char *text = own(bytes, length);
    if (!tb_groups_parse(&groups, text, why)) {
        check_refusal(why);
        assert(groups.groups == 7 && groups.count == 7 && !groups.chip);
        free(text);
        return false;
    }
    const int64_t chips = (int64_t)groups.groups * groups.count;
    assert(groups.groups >= 1 && groups.count >= 1 && chips <= TB_GROUPS_CHIPS && chips == count_chips(text));
    for (int64_t i = 0; i < chips; i++) assert(groups.chip[i] >= 0 && groups.chip[i] <= MOST_NUMBER);
    const size_t size = tb_groups_text(&groups, NULL, 0);
    char *written = (char *)malloc(size + 1);
    assert(written && tb_groups_text(&groups, written, size + 1) == size && strlen(written) == size);
    assert(tb_groups_text(&groups, small, sizeof small) == size);
    assert(strlen(small) == (size < 8 ? size : 8) && strncmp(small, written, 8) == 0);
    assert(tb_groups_parse(&back, written, why) && back.groups == groups.groups && back.count == groups.count);
    assert(memcmp(back.chip, groups.chip, sizeof(int) * (size_t)chips) == 0);
    free(written);
    free(text);
    tb_groups_free(&groups);
    tb_groups_free(&back);
    return true;
}

static bool try_size(const char *bytes, size_t length)
{
    char why[APP_WHY] = "";
    int64_t size = -7;
    char *text = own(bytes, length);
    const bool ok = tb_size_parse(text, &size, why);
    if (ok) {
        const int64_t number = atoll(text); /* the rest of the text is powers of 1024 */
        assert(size >= 1 && size <= (int64_t)1 << 50 && number >= 1 && size % number == 0);
        int64_t unit = size / number;
        while (unit > 1) {
            assert(unit % 1024 == 0);
            unit /= 1024;
        }
    } else {
        assert(size == -7);
        check_refusal(why);
    }
    free(text);
    return ok;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    try_groups((const char *)data, size);
    try_size((const char *)data, size);
    return 0;
}

#else

enum { ROOM = 120 };

#include "fuzz/line.h"

static void put_number(line *l, int below_this)
{
    char number[16];
    snprintf(number, sizeof number, "%s%d", one_in(20) ? "0" : "", below(below_this));
    put(l, number);
}

static void blank(line *l)
{
    static const char *const some[] = { "", "", "", "", " ", "\t" };
    put(l, some[below(6)]);
}

static void random_item(line *l)
{
    const int most = one_in(3000) ? 2000000 : one_in(9) ? 1000 : 20;
    blank(l), put_number(l, most), blank(l);
    if (one_in(2)) return;
    put(l, "-"), blank(l), put_number(l, most), blank(l);
    if (one_in(2)) return;
    put(l, ":"), blank(l), put_number(l, 7), blank(l);
}

/* Groups of equal size, mostly: single chips, or the same item shape in each. */
static void random_groups(line *l)
{
    const int groups = 1 + below(3), items = 1 + below(4);
    const bool single = groups > 1 && !one_in(4);
    for (int g = 0; g < groups; g++)
        for (int i = 0; i < items; i++) {
            put(l, i ? "," : g ? ";" : "");
            if (single)
                blank(l), put_number(l, 64), blank(l);
            else
                random_item(l);
        }
}

static void random_size(line *l)
{
    static const char *const unit[] = { "",   "K",   "kb", "KiB", "M", "MB", "mib", "G",
                                        "GB", "Gib", "T",  "TiB", "b", "Ki", "B" };
    put_number(l, one_in(4) ? 1 << 30 : 2000);
    put(l, unit[below(15)]);
}

static void spoil(line *l)
{
    static const char *const token[] = {
        ",", ";", "-", ":", "0", "9999999999", "\x80", " ", "K", "-1", "i", "::", "a"
    };
    const size_t at = l->length ? (size_t)below((int)l->length) : 0;
    line rest = *l;
    switch (below(4)) {
    case 0: l->length = at, put(l, token[below(13)]), put(l, rest.text + at); break;
    case 1: l->text[l->length = at] = 0; break;
    case 2: l->length = at, put(l, rest.text + at + (at < rest.length)); break;
    default:
        if (l->length) l->text[at] = (char)(1 + below(255));
    }
}

int main(int argc, char **argv)
{
    long accepted[2] = { 0, 0 };
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        const long i = fuzzing.number;
        line l = { "", 0 };
        (i % 2 ? random_size : random_groups)(&l);
        for (int wounds = one_in(2) ? below(3) : 0; wounds > 0; wounds--) spoil(&l);
        accepted[i % 2] += i % 2 ? try_size(l.text, l.length) : try_groups(l.text, l.length);
    }
    const long count = fuzzing_end();
    printf("%ld texts, accepted: %ld groups, %ld sizes\n", count, accepted[0], accepted[1]);
    /* A parser that refuses everything, or nothing, is not being tested. */
    for (int i = 0; i < 2; i++)
        if (count >= 1000 && (accepted[i] < count / 20 || accepted[i] > count / 2 * 19 / 20)) return 1;
    return 0;
}

#endif

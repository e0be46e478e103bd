/* fuzz_pattern.c - random patterns and wildcards: no crash, no read beyond the text, a phrase for each that is none;
 * and what matches follows from its parts: an alternative matches when one of its sides does, looking ahead for nothing
 * when the pattern does not, a wildcard when the regular expression does that says the same.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_pattern [count] [seed]      default: 20000 pairs, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead: the pattern, a NUL, the text.
 */
#include <assert.h>
#include <stdio.h>

#if defined(HAVE_PCRE2)

#include "io/pattern.h"
#include "twin/cases.h"

static int match(const char *pattern, const char *text)
{
    const char *wrong = "";
    const int found = pattern_match(pattern, text, &wrong);
    assert(found >= -1 && found <= 1);
    assert(found < 0 ? wrong && strlen(wrong) > 8 : !wrong);
    return found;
}

/* Two patterns together may be longer than any may be. */
static void expect(const char *pattern, const char *text, int found)
{
    const int is = match(pattern, text);
    assert(is < 0 || is == found);
}

/* What must hold of two patterns and a text, whatever they are. */
static bool try_patterns(const char *a, const char *b, const char *text)
{
    char both[512];
    const int first = match(a, text), second = match(b, text);
    if (first < 0 || second < 0 || strstr(a, "(?i)") || strstr(b, "(?i)")) return false;
    if (strchr(a, '\\') && a[strlen(a) - 1] == '\\') return false;
    snprintf(both, sizeof both, "(?:%s|%s)", a, b);
    expect(both, text, first || second);
    snprintf(both, sizeof both, "(?=%s)(?=%s)", a, b);
    expect(both, text, first && second);
    snprintf(both, sizeof both, "(?!%s)", a);
    expect(both, text, !first);
    snprintf(both, sizeof both, "(?:%s){0,2}\\Z", a); /* what matches once may match twice */
    snprintf(both + 300, sizeof both - 300, "(?:%s)\\Z", a);
    const int twice = match(both, text), once = match(both + 300, text);
    assert(twice < 0 || twice >= once);
    return true;
}

static void try_glob(const char *glob, const char *name)
{
    char regex[512];
    size_t n = 0;
    for (const char *at = glob; *at && n < sizeof regex - 8; at++) {
        const bool letter = re_is_word(*at);
        n += (size_t)snprintf(regex + n, sizeof regex - n,
                              *at == '*'   ? "[\\d\\D]*"
                              : *at == '?' ? "[\\d\\D]"
                              : letter     ? "%c"
                                           : "\\%c",
                              *at);
    }
    snprintf(regex + n, sizeof regex - n, "\\Z");
    assert(match(regex, name) == pattern_glob(glob, name));
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *copy = (char *)calloc(size + 2, 1);
    assert(copy);
    memcpy(copy, data, size);
    if (strlen(copy) < 200) try_patterns(copy, "a", copy + strlen(copy) + 1);
    free(copy);
    return 0;
}

#else

enum { ROOM = 120 };

#include "fuzz/line.h"

static void random_pattern(line *l)
{
    static const char *const piece[] = { "a", "b",    ".",   "\\d", "\\w",  "[ab]",   "[^a]",  "0",    "\\.",
                                         "(", ")",    "|",   "*",   "+",    "?",      "{2}",   "{1,}", "{,2}",
                                         "^", "$",    "\\b", "(?:", "(?=",  "(?!",    "layer", "_",    "\\D",
                                         "1", "(?i)", "[",   "]",   "(?<=", "{1000}", "\\Z",   "-",    "\xc3" };
    for (int i = 0, n = below(10); i < n; i++) put(l, piece[one_in(3) ? below(36) : below(9)]);
}

static void random_text(line *l)
{
    static const char *const piece[] = { "a", "b", "ab", "0", "1", ".", "layer", "_", "\n", "\xc3\xa9" };
    for (int i = 0, n = below(8); i < n; i++) put(l, piece[below(10)]);
}

static void random_glob(line *l)
{
    static const char *const piece[] = { "*", "?", "a", "b", "0", ".", "layer", "_" };
    for (int i = 0, n = below(7); i < n; i++) put(l, piece[below(8)]);
}

int main(int argc, char **argv)
{
    long good = 0;
    fuzzing_start(argc, argv, 20000, 1000000);
    while (fuzzing_next(&rng)) {
        line a = { "", 0 }, b = { "", 0 }, text = { "", 0 }, glob = { "", 0 };
        random_pattern(&a), random_pattern(&b), random_text(&text), random_glob(&glob);
        good += try_patterns(a.text, b.text, text.text);
        if (!strchr(text.text, '\n')) try_glob(glob.text, text.text);
    }
    const long count = fuzzing_end();
    printf("%ld pairs, %ld of two that are patterns\n", count, good);
    return count >= 1000 && good < count / 20;
}

#endif

#else

int main(void)
{
    printf("PCRE2 is not installed: patterns are not read\n");
    return 0;
}

#endif

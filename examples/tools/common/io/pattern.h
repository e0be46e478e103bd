/* pattern.h - names that a configuration chooses: regular expressions as Python's re.match takes them, and wildcards.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/pattern.h"
 *     #include <stdio.h>
 *     int main(void) {
 *         static const char pattern[] = "model\\.layers\\.(?!0\\.)\\d+\\.mlp\\..*";
 *         const char *wrong;
 *         printf("%d\n", pattern_match(pattern, "model.layers.12.mlp.up_proj", &wrong)); // 1
 *         printf("%d\n", pattern_match(pattern, "model.layers.0.mlp.up_proj", &wrong));  // 0
 *         printf("%d\n", pattern_match("(?<=a)b", "ab", &wrong));                        // -1
 *         puts(wrong);                                                                   // a group of this kind
 *         return 0;
 *     }
 *
 * DOES: re.match: anchored where the text begins, not where it ends. Characters, '.', classes, \d \w \s \b and their
 *     opposites, \A \Z, groups (also named or without a number), '|', * + ? {m,n} and their lazy forms, ^ and $,
 *     looking ahead, (?i) at the start. Bytes, not characters. Every way to match is followed at once (PCRE2's DFA), so
 *     that no pattern tries one after another for ever.
 * DOES NOT: say where groups matched, look behind, refer back, or take possessive quantifiers: they are refused.
 *
 * CONTENTS
 *     pattern_match    1 it matches, 0 it does not, -1 with a phrase: no such pattern
 *     pattern_glob     '*' is any text and '?' any character, over the whole name
 *
 * KNOWN FROM: Python's documentation of re; tests/unit/test_pattern.c.
 */
#ifndef IO_PATTERN_H
#define IO_PATTERN_H

#include "regex.h"

enum { PATTERN_TEXT = 4096, PATTERN_STATES = 1 << 16 };

/* 1, 0; -1: memory. */
IO_FN int pattern_reach(const pcre2_code *code, const char *text, size_t size)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    int *states = (int *)malloc(PATTERN_STATES * sizeof *states);
    const int found = match && states
                          ? pcre2_dfa_match(code, (PCRE2_SPTR)text, size, 0, PCRE2_ANCHORED | PCRE2_DFA_SHORTEST, match,
                                            NULL, states, PATTERN_STATES)
                          : PCRE2_ERROR_NOMEMORY;
    free(states);
    pcre2_match_data_free(match);
    return found >= 0 ? 1 : found == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

/* Does the text begin with what the pattern describes? 1, 0; -1 with a phrase when the pattern is none that is known
 * here; errno is ENOMEM when there was not enough memory, or a text or pattern is longer than is tried here. */
IO_FN int pattern_match(const char *regex, const char *text, const char **wrong)
{
    const size_t size = strlen(text);
    re_wrong why;
    pcre2_code *code = re_compile(regex, RE_PYTHON, &why);
    const int found = code && size <= PATTERN_TEXT ? pattern_reach(code, text, size) : -1;
    *wrong = found >= 0 ? NULL : code ? re_no_memory : why.phrase;
    if (*wrong == re_no_memory) errno = ENOMEM;
    pcre2_code_free(code);
    return found;
}

/* '*' is any text, '?' any character; over the whole name. */
IO_FN bool pattern_glob(const char *glob, const char *name)
{
    const char *star = NULL, *back = NULL;
    while (*name) {
        if (*glob == '*')
            star = glob++, back = name;
        else if (*glob == '?' || *glob == *name)
            glob++, name++;
        else if (star)
            glob = star + 1, name = ++back;
        else
            return false;
    }
    while (*glob == '*') glob++;
    return *glob == '\0';
}

#endif /* IO_PATTERN_H */

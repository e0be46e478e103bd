/* cut.h - the regular expressions by which tokenizers cut texts.
 * SPDX-License-Identifier: MIT
 *
 *     cut_pattern p;
 *     char wrong[CUT_WRONG];
 *     if (!cut_compile(" ?\\p{L}+|\\s+", &p, wrong)) ...;
 *     const size_t end = cut_match(&p, text, size, at, &steps);   at: there is no match here
 *     cut_free(&p);
 *
 * DOES: characters, [sets] and their complements, \s \S, \p{..} and \P{..} of L, Lu, Ll, Lt, Lm, Lo, M, N, P, S, Z, C,
 *     . * + ? {m,n} and their lazy and possessive forms, alternatives in order, (...), (?:...), (?i:...), (?=...) and
 *     (?!...); the first alternative that matches wins, as in Perl.
 * DOES NOT: other constructs, which are refused by name; search (try one place after another); text that is not UTF-8.
 *     Steps are counted down, and at 0 nothing matches any more: no pattern can run for ever.
 */
#ifndef CUT_H
#define CUT_H

#include "regex.h"

enum { CUT_WRONG = 128, CUT_MOST = 4096, CUT_FIRST = 64, CUT_MORE = 4 };

typedef struct cut_pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *how;
} cut_pattern;

IO_FN void cut_free(cut_pattern *p)
{
    pcre2_code_free(p->code);
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->how);
    memset(p, 0, sizeof *p);
}

/* wrong [CUT_WRONG]: the construct that is not known; false without memory, too. */
IO_FN bool cut_compile(const char *text, cut_pattern *p, char *wrong)
{
    re_wrong why = { "so long a pattern", NULL, 0 };
    memset(p, 0, sizeof *p);
    if (strlen(text) <= CUT_MOST) p->code = re_compile(text, RE_TOKENIZER, &why);
    if (why.piece)
        io_say_in(wrong, CUT_WRONG, 40, "'%.*s' is not known here", why.size, why.piece);
    else
        snprintf(wrong, CUT_WRONG, "%s", why.phrase);
    if (!p->code) return false;
    p->match = pcre2_match_data_create(1, NULL);
    p->how = pcre2_match_context_create(NULL);
    if (p->match && p->how) return true;
    snprintf(wrong, CUT_WRONG, "%s", re_no_memory);
    return cut_free(p), false;
}

/* As many of the bytes as are whole characters. */
IO_FN size_t cut_whole(const unsigned char *text, size_t size, size_t bytes)
{
    while (bytes < size && (text[bytes] & 0xc0) == 0x80) bytes++;
    return bytes < size ? bytes : size;
}

/* Where the match that begins at `at` ends; `at` when there is none. *steps counts down; at 0 there are no more, and
 * errno is ENOMEM where it was memory.
 *
 * PCRE2 counts decisions, but not the characters that it runs over: so it sees a piece of the text first, and more
 * where the piece did not tell. A try costs what it may read or decide, whichever is more. */
IO_FN size_t cut_match(const cut_pattern *p, const void *text, size_t size, size_t at, uint64_t *steps)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint64_t reads = CUT_FIRST, decides = CUT_FIRST;
    int found = PCRE2_ERROR_MATCHLIMIT;
    while (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_PARTIAL) {
        const uint64_t cost = reads > decides ? reads : decides;
        if (*steps == 0) return at;
        if (decides > *steps) decides = *steps;
        *steps -= cost < *steps ? cost : *steps;
        const size_t seen = cut_whole(bytes, size, at + (reads < size - at ? (size_t)reads : size - at));
        pcre2_set_match_limit(p->how, decides < UINT32_MAX ? (uint32_t)decides : UINT32_MAX);
        found =
            pcre2_match(p->code, bytes, seen, at,
                        PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK | (seen < size ? PCRE2_PARTIAL_HARD : 0), p->match, p->how);
        if (found == PCRE2_ERROR_PARTIAL)
            reads *= CUT_MORE;
        else
            decides *= CUT_MORE;
    }
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) *steps = 0, errno = ENOMEM;
    return found < 0 ? at : pcre2_get_ovector_pointer(p->match)[1];
}

#endif /* CUT_H */

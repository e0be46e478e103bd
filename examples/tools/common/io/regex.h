/* regex.h - other people's regular expressions for PCRE2: Python's re, and those by which tokenizers cut texts.
 * SPDX-License-Identifier: MIT
 *
 *     re_wrong wrong;
 *     pcre2_code *code = re_compile("a{,3}\\Z", RE_PYTHON, &wrong);     a{0,3}\z for PCRE2
 *     pcre2_code_free(code);
 *
 * DOES: lets through what means the same in PCRE2, spells otherwise what PCRE2 has by another name, and refuses the
 *     rest: an escape or a group that is not in a list here never reaches PCRE2, which may know it otherwise.
 *     RE_PYTHON: bytes. RE_TOKENIZER: characters of UTF-8, with the classes of PCRE2's Unicode.
 *
 * CONTENTS
 *     re_compile    NULL: wrong has a phrase, and the piece of the pattern that is refused, if it is a piece
 *
 * KNOWN FROM: Python's documentation of re; Oniguruma's RE; pcre2pattern(3). Needs PCRE2 (libpcre2-dev).
 */
#ifndef IO_REGEX_H
#define IO_REGEX_H

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "io.h"

typedef enum re_dialect { RE_PYTHON, RE_TOKENIZER, RE_DIALECTS } re_dialect;

typedef struct re_wrong {
    const char *phrase;
    const char *piece; /* of the pattern; NULL: all of it */
    int size;          /* of the piece */
} re_wrong;

enum { RE_NUMBER = 65535, RE_NO_END = -1, RE_DEPTH = 32, RE_GROWS = 8 /* times, at most, and as much again */ };

/* What the next quantifier would repeat. */
typedef enum re_before { RE_NOTHING, RE_ITEM, RE_REPEATED } re_before;

typedef struct re_reader {
    const char *at, *end;
    char *to;
    re_dialect dialect;
    re_before before;
    re_wrong *wrong;
} re_reader;

static const char re_no_memory[] = "it needs more memory than there is";
static const char re_too_many[] = "more repetitions than are counted here";
static const char re_no_escape[] = "an escape that is not known here";
static const char re_falls[] = "a range that does not go upwards";

/* At the reader's place; a piece does not end inside of a character. */
IO_FN bool re_refuse(const re_reader *r, const char *phrase, int size)
{
    const int left = (int)(r->end - r->at);
    while (size < left && ((unsigned char)r->at[size] & 0xc0) == 0x80) size++;
    *r->wrong = (re_wrong){ phrase, r->at, size < left ? size : left };
    return false;
}

IO_FN bool re_says(const re_reader *r, const char *text)
{
    return (size_t)(r->end - r->at) >= strlen(text) && memcmp(r->at, text, strlen(text)) == 0;
}

IO_FN bool re_takes(re_reader *r, const char *text)
{
    const bool there = re_says(r, text);
    if (there) r->at += strlen(text);
    return there;
}

IO_FN void re_put(re_reader *r, const char *text)
{
    const size_t n = strlen(text);
    memcpy(r->to, text, n);
    r->to += n;
}

IO_FN void re_copy(re_reader *r, int bytes)
{
    while (bytes-- > 0) *r->to++ = *r->at++;
}

/* ---- escapes ---- */

IO_FN bool re_is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* \p{..} and \P{..} */
IO_FN bool re_property(re_reader *r)
{
    static const char *const name[] = { "{L}", "{Lu}", "{Ll}", "{Lt}", "{Lm}", "{Lo}",
                                        "{M}", "{N}",  "{P}",  "{S}",  "{Z}",  "{C}" };
    const char *start = r->at;
    r->at += 2;
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (re_says(r, name[i])) {
            r->at = start;
            return re_copy(r, 2 + (int)strlen(name[i])), true;
        }
    const char *close = (const char *)memchr(r->at, '}', (size_t)(r->end - r->at));
    r->at = start;
    return re_refuse(r, re_no_escape, close ? (int)(close + 1 - start) : 2);
}

/* *single: one character, which a range may begin with. */
IO_FN bool re_escape(re_reader *r, bool in_set, bool *single)
{
    static const struct {
        char letter;
        bool single;
        const char *as[RE_DIALECTS], *python_in_set; /* NULL: not known */
    } row[] = {
        { 's', false, { "\\s", "\\p{wspace}" }, "\\s" },
        { 'S', false, { "\\S", "\\P{wspace}" }, "\\S" },
        { 'd', false, { "\\d", NULL }, "\\d" },
        { 'D', false, { "\\D", NULL }, "\\D" },
        { 'w', false, { "\\w", NULL }, "\\w" },
        { 'W', false, { "\\W", NULL }, "\\W" },
        { 'r', true, { "\\r", "\\r" }, "\\r" },
        { 'n', true, { "\\n", "\\n" }, "\\n" },
        { 't', true, { "\\t", "\\t" }, "\\t" },
        { 'f', true, { "\\f", "\\f" }, "\\f" },
        { 'v', true, { "\\x0b", "\\x0b" }, "\\x0b" },
        { 'b', true, { "\\b", NULL }, "\\x08" },
        { 'B', true, { "\\B", NULL }, NULL },
        { 'A', true, { "\\A", NULL }, NULL },
        { 'Z', true, { "\\z", NULL }, NULL },
    };
    const char c = r->end - r->at < 2 ? '\0' : r->at[1];
    const bool python = r->dialect == RE_PYTHON;
    if (!c) return re_refuse(r, "a backslash at its end", 1);
    r->before = RE_ITEM;
    *single = false;
    if (!python && (c == 'p' || c == 'P')) return re_property(r);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const char *as = python && in_set ? row[i].python_in_set : row[i].as[r->dialect];
        if (row[i].letter != c || !as) continue;
        *single = row[i].single;
        if (strchr("bBAZ", c)) r->before = RE_NOTHING; /* a place, which nobody repeats */
        r->at += 2;
        return re_put(r, as), true;
    }
    if (re_is_word(c) || (!python && (c <= ' ' ? c != ' ' : c > '~'))) return re_refuse(r, re_no_escape, 2);
    *single = true;
    return re_copy(r, 2), true;
}

/* ---- sets ---- */

/* One character or class of a set. */
IO_FN bool re_member(re_reader *r, bool *single)
{
    *single = true;
    if (re_says(r, "\\")) return re_escape(r, true, single);
    if (re_says(r, "[")) *r->to++ = '\\'; /* or PCRE2 would read [: and [= and [. */
    return re_copy(r, 1), true;
}

IO_FN bool re_set(re_reader *r)
{
    const bool python = r->dialect == RE_PYTHON;
    bool single = false;
    re_copy(r, 1);
    if (re_says(r, "^")) re_copy(r, 1);
    if (python && re_takes(r, "]"))
        re_put(r, "\\]");
    else if (re_says(r, "]"))
        return re_refuse(r, "an empty set", 1);
    while (r->at < r->end && !re_says(r, "]")) {
        if (!python && (re_says(r, "[") || re_says(r, "&&"))) return re_refuse(r, "a set in a set", 2);
        if (!re_member(r, &single)) return false;
        if (!re_says(r, "-")) continue;
        if (single || python)
            re_copy(r, 1); /* a range, or a sign before the end */
        else
            r->at++, re_put(r, "\\-");
        if (single && r->at < r->end && !re_says(r, "]") && !re_member(r, &single)) return false;
    }
    re_copy(r, r->at < r->end);
    r->before = RE_ITEM;
    return true;
}

/* ---- groups ---- */

/* What begins a group, as it is written and as PCRE2 has it. */
IO_FN bool re_group(re_reader *r)
{
    static const struct {
        const char *text;
        bool known[RE_DIALECTS];
    } row[] = {
        { "(?:", { true, true } }, { "(?=", { true, true } }, { "(?!", { true, true } }, { "(?i:", { false, true } }
    };
    r->before = RE_NOTHING;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].known[r->dialect] && re_says(r, row[i].text)) return re_copy(r, (int)strlen(row[i].text)), true;
    if (!re_says(r, "(?")) return re_put(r, "(?:"), r->at++, true; /* where groups matched, nobody asks */
    if (r->dialect != RE_PYTHON || !re_says(r, "(?P<")) return re_refuse(r, "a group of this kind", 4);
    const char *close = (const char *)memchr(r->at, '>', (size_t)(r->end - r->at));
    if (!close) return re_refuse(r, "a group's name that does not end", 4);
    r->at = close + 1;
    return re_put(r, "(?:"), true;
}

/* ---- repetitions ---- */

typedef struct re_braces {
    int least, most; /* RE_NO_END: as often as it may */
    const char *after;
} re_braces;

IO_FN int re_number(const char **at, const char *end)
{
    int n = RE_NO_END;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (n <= RE_NUMBER) n = 10 * (n < 0 ? 0 : n) + (**at - '0');
    return n;
}

/* {m}, {m,}, {m,n}, and in Python {,n} and {,}; false: these braces are none. */
IO_FN bool re_read_braces(const re_reader *r, re_braces *b)
{
    const char *at = r->at + 1;
    b->least = b->most = re_number(&at, r->end);
    const bool comma = at < r->end && *at == ',', begun = b->least != RE_NO_END;
    if (comma) at++, b->most = re_number(&at, r->end);
    if (at >= r->end || *at != '}') return false;
    b->after = at + 1;
    if (!begun) b->least = 0;
    return r->dialect == RE_PYTHON ? begun || comma : begun && b->most != 0;
}

IO_FN bool re_put_braces(re_reader *r, const re_braces *b)
{
    char text[32];
    if (b->most != RE_NO_END && b->most < b->least) return re_refuse(r, re_falls, 2);
    if (b->least > RE_NUMBER || b->most > RE_NUMBER) return re_refuse(r, re_too_many, (int)(b->after - r->at));
    if (b->most == RE_NO_END)
        snprintf(text, sizeof text, "{%d,}", b->least);
    else
        snprintf(text, sizeof text, "{%d,%d}", b->least, b->most);
    r->at = b->after;
    return re_put(r, text), true;
}

IO_FN bool re_repeat(re_reader *r)
{
    const bool python = r->dialect == RE_PYTHON, braces = re_says(r, "{");
    re_braces b = { 0, 0, NULL };
    if (braces && python && !re_read_braces(r, &b)) {
        r->at++;
        r->before = RE_ITEM;
        return re_put(r, "\\{"), true;
    }
    if (r->before == RE_REPEATED) return r->at--, re_refuse(r, "a repetition of a repetition", 2);
    if (r->before == RE_NOTHING || (braces && !python && !re_read_braces(r, &b)))
        return re_refuse(r, "nothing that could be repeated", 1);
    if (!braces)
        re_copy(r, 1);
    else if (!re_put_braces(r, &b))
        return false;
    r->before = RE_REPEATED;
    if (python && re_says(r, "+")) return re_refuse(r, "a possessive quantifier", 1);
    if (re_says(r, "?") || re_says(r, "+")) re_copy(r, 1);
    return true;
}

/* ---- the whole ---- */

IO_FN bool re_plain(re_reader *r)
{
    const char c = *r->at;
    if (r->dialect == RE_TOKENIZER && strchr("^$]}", c)) return re_refuse(r, "an anchor or a bracket", 1);
    r->before = strchr("^$|", c) ? RE_NOTHING : RE_ITEM;
    return re_copy(r, 1), true;
}

IO_FN bool re_translate(re_reader *r)
{
    bool single;
    if (r->dialect == RE_PYTHON && re_says(r, "(?i)")) re_copy(r, 4);
    while (r->at < r->end) {
        const char c = *r->at;
        const bool ok = c == '\\'           ? re_escape(r, false, &single)
                        : c == '['          ? re_set(r)
                        : c == '('          ? re_group(r)
                        : strchr("*+?{", c) ? re_repeat(r)
                                            : re_plain(r);
        if (!ok) return false;
    }
    *r->to = '\0';
    return true;
}

/* What PCRE2 finds wrong. */
IO_FN const char *re_phrase(int error)
{
    static const struct {
        int error;
        const char *phrase;
    } row[] = {
        { PCRE2_ERROR_MISSING_SQUARE_BRACKET, "a bracket that does not close" },
        { PCRE2_ERROR_CLASS_RANGE_ORDER, re_falls },
        { PCRE2_ERROR_CLASS_INVALID_RANGE, re_falls },
        { PCRE2_ERROR_MISSING_CLOSING_PARENTHESIS, "a group that does not close" },
        { PCRE2_ERROR_UNMATCHED_CLOSING_PARENTHESIS, "a parenthesis that closes nothing" },
        { PCRE2_ERROR_PARENTHESES_NEST_TOO_DEEP, "groups nested too deeply" },
        { PCRE2_ERROR_HEAP_FAILED, re_no_memory },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].error == error) return row[i].phrase;
    return re_too_many;
}

IO_FN pcre2_code *re_hand_over(const char *text, size_t size, re_dialect dialect, re_wrong *wrong)
{
    /* Two short cuts of PCRE2 10.42 go wrong: it takes \P{L}*\P{M} for \P{L}*+\P{M}, which never matches "--", and
     * looks for the last b of (?=b) *b after the first. */
    const uint32_t plain = PCRE2_NO_AUTO_POSSESS | PCRE2_NO_START_OPTIMIZE;
    const uint32_t characters = dialect == RE_TOKENIZER ? PCRE2_UTF | PCRE2_UCP : 0;
    pcre2_compile_context *how = pcre2_compile_context_create(NULL);
    pcre2_code *code = NULL;
    int error = PCRE2_ERROR_HEAP_FAILED;
    PCRE2_SIZE at;
    if (how) {
        pcre2_set_newline(how, PCRE2_NEWLINE_LF);
        pcre2_set_parens_nest_limit(how, RE_DEPTH);
        code = pcre2_compile((PCRE2_SPTR)text, size, plain | characters, &error, &at, how);
    }
    pcre2_compile_context_free(how);
    if (!code) *wrong = (re_wrong){ re_phrase(error), NULL, 0 };
    return code;
}

IO_FN pcre2_code *re_compile(const char *text, re_dialect dialect, re_wrong *wrong)
{
    const size_t size = strlen(text);
    char *to = (char *)malloc(RE_GROWS * (size + 1));
    re_reader r = { text, text + size, to, dialect, RE_NOTHING, wrong };
    pcre2_code *code = NULL;
    *wrong = (re_wrong){ re_no_memory, NULL, 0 };
    if (to && re_translate(&r)) code = re_hand_over(to, (size_t)(r.to - to), dialect, wrong);
    free(to);
    return code;
}

#endif /* IO_REGEX_H */

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
 *     looking ahead, (?i) at the start. Bytes, not characters. No pattern takes more time than its length times the
 *     text's.
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

#include <stdlib.h>

#include "io.h"

enum { PATTERN_STEPS = 4096, PATTERN_DEPTH = 32, PATTERN_TEXT = 4096, PATTERN_NO_END = -1 };

typedef enum pattern_kind {
    PATTERN_SET,   /* one byte of a set */
    PATTERN_SPLIT, /* one of two */
    PATTERN_BEGIN, /* nothing before */
    PATTERN_END,   /* nothing after, but for one line feed */
    PATTERN_VERY_END,
    PATTERN_EDGE,  /* a word's edge; x: none */
    PATTERN_AHEAD, /* what begins at y must match, x: must not */
    PATTERN_DONE
} pattern_kind;

typedef struct pattern_step {
    pattern_kind kind;
    int next, x, y; /* SPLIT: next or x */
    unsigned char set[32];
} pattern_step;

typedef struct pattern {
    pattern_step *step;
    int steps;
    const char *at, *end;
    int depth;
    bool any_case;
    const char *wrong;
} pattern;

/* ---- from text to steps ----
 * A piece of a pattern is a range of steps; where it ends, it points to the number after its last one, which the next
 * piece gets. */

IO_FN int pattern_stop(pattern *p, const char *wrong)
{
    if (!p->wrong) p->wrong = wrong;
    return -1;
}

IO_FN int pattern_add(pattern *p, pattern_kind kind)
{
    if (p->wrong) return -1;
    if (p->steps == PATTERN_STEPS) return pattern_stop(p, "more repetitions than are counted here");
    memset(&p->step[p->steps], 0, sizeof *p->step);
    p->step[p->steps].kind = kind;
    p->step[p->steps].next = p->steps + 1;
    return p->steps++;
}

/* Room for `by` steps at `from`: what is there moves up, with all that points to it. */
IO_FN bool pattern_open(pattern *p, int from, int by)
{
    if (p->wrong || p->steps + by > PATTERN_STEPS)
        return pattern_stop(p, "more repetitions than are counted here"), false;
    memmove(p->step + from + by, p->step + from, (size_t)(p->steps - from) * sizeof *p->step);
    p->steps += by;
    for (int i = from + by; i < p->steps; i++) {
        p->step[i].next += by;
        if (p->step[i].kind == PATTERN_SPLIT) p->step[i].x += by;
        if (p->step[i].kind == PATTERN_AHEAD) p->step[i].y += by;
    }
    memset(p->step + from, 0, (size_t)by * sizeof *p->step);
    return true;
}

/* The steps first .. last - 1 once more, at the end. */
IO_FN bool pattern_again(pattern *p, const pattern_step *piece, int count, int first)
{
    const int by = p->steps - first;
    if (p->wrong || p->steps + count > PATTERN_STEPS)
        return pattern_stop(p, "more repetitions than are counted here"), false;
    for (int i = 0; i < count; i++) {
        pattern_step s = piece[i];
        s.next += by;
        if (s.kind == PATTERN_SPLIT) s.x += by;
        if (s.kind == PATTERN_AHEAD) s.y += by;
        p->step[p->steps++] = s;
    }
    return true;
}

IO_FN void pattern_put(unsigned char set[32], int byte)
{
    set[byte / 8] = (unsigned char)(set[byte / 8] | 1 << byte % 8);
}

IO_FN bool pattern_has(const unsigned char set[32], int byte) { return set[byte / 8] >> byte % 8 & 1; }
IO_FN bool pattern_word(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* \d \w \s and their opposites; false: it is none of them. */
IO_FN bool pattern_put_class(unsigned char set[32], char letter)
{
    const char low = (char)(letter | 32);
    if (low != 'd' && low != 'w' && low != 's') return false;
    for (int c = 0; c < 256; c++) {
        const bool blank = c == ' ' || (c >= 9 && c <= 13);
        const bool in = low == 'd' ? c >= '0' && c <= '9' : low == 'w' ? pattern_word(c) : blank;
        if (in != (letter != low)) pattern_put(set, c);
    }
    return true;
}

/* What stands behind a backslash as one byte; -1: it means something else, or nothing. */
IO_FN int pattern_escaped(pattern *p, char c)
{
    static const char from[] = "nrtfv", to[] = "\n\r\t\f\v";
    const char *known = strchr(from, c);
    if (c && known) return (unsigned char)to[known - from];
    if (pattern_word((unsigned char)c)) return pattern_stop(p, "an escape that is not known here");
    return (unsigned char)c;
}

IO_FN void pattern_fold(const pattern *p, unsigned char set[32])
{
    for (int c = 'a'; c <= 'z' && p->any_case; c++) {
        if (pattern_has(set, c)) pattern_put(set, c - 32);
        else if (pattern_has(set, c - 32)) pattern_put(set, c);
    }
}

/* One end of a range in brackets; -1: a class, which is in the set already, or an error. */
IO_FN int pattern_bracket_byte(pattern *p, unsigned char set[32])
{
    if (*p->at != '\\') return (unsigned char)*p->at++;
    if (p->end - p->at < 2) return pattern_stop(p, "a backslash at its end");
    const char c = p->at[1];
    p->at += 2;
    return pattern_put_class(set, c) ? -1 : c == 'b' ? 8 : pattern_escaped(p, c);
}

IO_FN bool pattern_bracket(pattern *p)
{
    unsigned char set[32] = { 0 };
    const bool not = p->at < p->end && *p->at == '^';
    p->at += not;
    for (const char *first = p->at; p->at < p->end && (*p->at != ']' || p->at == first) && !p->wrong;) {
        const int from = pattern_bracket_byte(p, set);
        int to = from;
        if (p->end - p->at >= 2 && *p->at == '-' && p->at[1] != ']') {
            p->at++;
            to = pattern_bracket_byte(p, set);
            if (from < 0 || to < from) return pattern_stop(p, "a range that does not go upwards"), false;
        }
        for (int c = from; c >= 0 && c <= to; c++) pattern_put(set, c);
    }
    if (p->at >= p->end) return pattern_stop(p, "a bracket that does not close"), false;
    p->at++;
    pattern_fold(p, set);
    for (int i = 0; i < 32 && not; i++) set[i] = (unsigned char)~set[i];
    const int s = pattern_add(p, PATTERN_SET);
    if (s >= 0) memcpy(p->step[s].set, set, sizeof set);
    return s >= 0;
}

IO_FN bool pattern_escape(pattern *p)
{
    if (p->at >= p->end) return pattern_stop(p, "a backslash at its end"), false;
    const char c = *p->at++;
    if (c == 'A') return pattern_add(p, PATTERN_BEGIN) >= 0;
    if (c == 'Z') return pattern_add(p, PATTERN_VERY_END) >= 0;
    if (c == 'b' || c == 'B') {
        const int s = pattern_add(p, PATTERN_EDGE);
        if (s >= 0) p->step[s].x = c == 'B';
        return s >= 0;
    }
    const int s = pattern_add(p, PATTERN_SET);
    if (s < 0) return false;
    if (pattern_put_class(p->step[s].set, c)) return true;
    const int byte = pattern_escaped(p, c);
    if (byte >= 0) pattern_put(p->step[s].set, byte);
    pattern_fold(p, p->step[s].set);
    return byte >= 0;
}

IO_FN bool pattern_byte(pattern *p, char c)
{
    const int s = c == '^' ? pattern_add(p, PATTERN_BEGIN) : c == '$' ? pattern_add(p, PATTERN_END)
                                                                      : pattern_add(p, PATTERN_SET);
    if (s < 0) return false;
    if (p->step[s].kind != PATTERN_SET) return true;
    for (int i = 0; i < 256 && c == '.'; i++)
        if (i != '\n') pattern_put(p->step[s].set, i);
    if (c != '.') pattern_put(p->step[s].set, (unsigned char)c);
    pattern_fold(p, p->step[s].set);
    return true;
}

/* ---- groups, alternatives, repetitions: these call each other, as deep as PATTERN_DEPTH ---- */

static bool pattern_either(pattern *p);

/* What the parenthesis begins with: 0 a plain group, '=' or '!' looking ahead; -1 an error. */
IO_FN int pattern_group_kind(pattern *p)
{
    if (p->end - p->at < 2 || *p->at != '?') return 0;
    const char c = p->at[1];
    p->at += 2;
    if (c == ':') return 0;
    if (c == '=' || c == '!') return c;
    if (c != 'P' || p->at >= p->end || *p->at != '<') return pattern_stop(p, "a group of this kind");
    while (p->at < p->end && *p->at != '>') p->at++;
    return p->at++ < p->end ? 0 : pattern_stop(p, "a group's name that does not end");
}

IO_FN bool pattern_group(pattern *p)
{
    const int kind = pattern_group_kind(p), ahead = kind > 0 ? pattern_add(p, PATTERN_AHEAD) : 0;
    if (kind < 0 || ahead < 0) return false;
    if (++p->depth > PATTERN_DEPTH) return pattern_stop(p, "groups nested too deeply"), false;
    if (!pattern_either(p)) return false;
    p->depth--;
    if (p->at >= p->end) return pattern_stop(p, "a group that does not close"), false;
    p->at++;
    if (kind == 0) return true;
    if (pattern_add(p, PATTERN_DONE) < 0) return false;
    p->step[ahead].x = kind == '!';
    p->step[ahead].y = ahead + 1;
    p->step[ahead].next = p->steps;
    return true;
}

/* {m}, {m,}, {,n}, {m,n}; false: these braces are nothing but themselves. */
IO_FN bool pattern_braces(pattern *p, int *least, int *most)
{
    const char *at = p->at + 1;
    int number[2] = { 0, PATTERN_NO_END }, digits = 0;
    for (int i = 0; i < 2; i++) {
        int n = 0, here = 0;
        for (; at < p->end && *at >= '0' && *at <= '9'; at++, here++) n = n > 9999 ? n : 10 * n + (*at - '0');
        if (here) number[i] = n;
        digits += here;
        if (i == 0 && (at >= p->end || *at != ',')) {
            number[1] = number[0];
            break;
        }
        at += i == 0;
    }
    if (at >= p->end || *at != '}' || (digits == 0 && at[-1] != ',')) return false;
    p->at = at + 1;
    *least = number[0];
    *most = number[1];
    return true;
}

/* Which quantifier stands here; false: none. */
IO_FN bool pattern_quantifier(pattern *p, int *least, int *most)
{
    const char c = p->at < p->end ? *p->at : '\0';
    *least = c == '+';
    *most = c == '?' ? 1 : PATTERN_NO_END;
    if (c == '{') return pattern_braces(p, least, most);
    if (c == '\0' || !strchr("*+?", c)) return false;
    p->at++;
    return true;
}

/* x?: a step ahead that goes in or past; x*: one more that goes back. */
IO_FN bool pattern_optional(pattern *p, int first, bool again)
{
    if (!pattern_open(p, first, 1)) return false;
    p->step[first] = (pattern_step){ .kind = PATTERN_SPLIT, .next = first + 1, .x = p->steps + again };
    if (!again) return true;
    const int back = pattern_add(p, PATTERN_SPLIT);
    if (back < 0) return false;
    p->step[back].next = p->step[back].x = first;
    return true;
}

IO_FN bool pattern_repeat(pattern *p, int first, int least, int most)
{
    const int count = p->steps - first;
    pattern_step *piece = (pattern_step *)malloc(((size_t)count + 1) * sizeof *piece);
    if (!piece) return pattern_stop(p, "it needs more memory than there is"), false;
    memcpy(piece, p->step + first, (size_t)count * sizeof *piece);
    if (least == 0) p->steps = first;
    bool ok = true;
    for (int i = 1; i < least && ok; i++) ok = pattern_again(p, piece, count, first);
    if (most == PATTERN_NO_END && ok) {
        const int start = p->steps;
        ok = pattern_again(p, piece, count, first) && pattern_optional(p, start, true);
    }
    for (int i = least; i < most && ok; i++) { /* (x(x)?)? and x?x? match the same */
        const int start = p->steps;
        ok = pattern_again(p, piece, count, first) && pattern_optional(p, start, false);
    }
    free(piece);
    return ok;
}

IO_FN bool pattern_quantify(pattern *p, int first, bool fixed)
{
    int least, most;
    if (!pattern_quantifier(p, &least, &most)) return !p->wrong;
    if (fixed) return pattern_stop(p, "nothing that could be repeated"), false;
    if (most != PATTERN_NO_END && most < least) return pattern_stop(p, "a range that does not go upwards"), false;
    if (p->at < p->end && *p->at == '+') return pattern_stop(p, "a possessive quantifier"), false;
    if (p->at < p->end && *p->at == '?') p->at++; /* lazy: the same texts match */
    const char *here = p->at;
    int unused[2];
    if (!pattern_repeat(p, first, least, most)) return false;
    if (pattern_quantifier(p, &unused[0], &unused[1])) return pattern_stop(p, "a repetition of a repetition"), false;
    p->at = here;
    return true;
}

IO_FN bool pattern_sequence(pattern *p)
{
    while (p->at < p->end && *p->at != '|' && *p->at != ')') {
        const int first = p->steps;
        const char c = *p->at++;
        const bool quantifier = strchr("*+?", c) != NULL;
        if (quantifier) return pattern_stop(p, "nothing that could be repeated"), false;
        const bool ok = c == '(' ? pattern_group(p) : c == '[' ? pattern_bracket(p) : c == '\\' ? pattern_escape(p)
                                                                                                : pattern_byte(p, c);
        if (!ok || !pattern_quantify(p, first, c == '^')) return false;
    }
    return !p->wrong;
}

static bool pattern_either(pattern *p)
{
    const int first = p->steps;
    if (!pattern_sequence(p)) return false;
    if (p->at >= p->end || *p->at != '|') return true;
    p->at++;
    if (!pattern_open(p, first, 1)) return false;
    const int out = pattern_add(p, PATTERN_SPLIT);
    if (out < 0) return false;
    p->step[first] = (pattern_step){ .kind = PATTERN_SPLIT, .next = first + 1, .x = p->steps };
    if (++p->depth > PATTERN_DEPTH * 8) return pattern_stop(p, "more alternatives than are counted here"), false;
    const bool ok = pattern_either(p);
    p->depth--;
    p->step[out].next = p->step[out].x = p->steps;
    return ok;
}

/* ---- matching: which steps can be reached with how much of the text read; each such state is looked at once ---- */

typedef struct pattern_search {
    const pattern *p;
    const char *text;
    size_t size; /* of the text */
    unsigned char *seen;
    uint32_t *waiting; /* states */
    size_t count;
} pattern_search;

enum { PATTERN_STATES = 1 << 22 };

static int pattern_reach(const pattern *p, int start, const char *text, size_t size, size_t from, int depth);

IO_FN void pattern_visit(pattern_search *s, int step, size_t at)
{
    const size_t state = (size_t)step * (s->size + 1) + at;
    if (s->seen[state]) return;
    s->seen[state] = 1;
    s->waiting[s->count++] = (uint32_t)state;
}

/* Is the step passed without reading? 1, 0; -1: memory. */
IO_FN int pattern_holds(const pattern_search *s, const pattern_step *step, size_t at, int depth)
{
    const char *text = s->text;
    const bool before = at > 0 && pattern_word((unsigned char)text[at - 1]);
    const bool after = at < s->size && pattern_word((unsigned char)text[at]);
    if (step->kind == PATTERN_BEGIN) return at == 0;
    if (step->kind == PATTERN_END) return at == s->size || (at + 1 == s->size && text[at] == '\n');
    if (step->kind == PATTERN_VERY_END) return at == s->size;
    if (step->kind == PATTERN_EDGE) return (before != after) != (step->x != 0);
    if (step->kind == PATTERN_SPLIT) return 1;
    const int found = pattern_reach(s->p, step->y, text, s->size, at, depth + 1);
    return found < 0 ? found : found != (step->x != 0);
}

/* 1: one that is done, 0: not yet, -1: memory. */
IO_FN int pattern_look(pattern_search *s, size_t state, int depth)
{
    const size_t at = state % (s->size + 1);
    const pattern_step *step = &s->p->step[state / (s->size + 1)];
    if (step->kind == PATTERN_DONE) return 1;
    if (step->kind == PATTERN_SET) {
        if (at < s->size && pattern_has(step->set, (unsigned char)s->text[at])) pattern_visit(s, step->next, at + 1);
        return 0;
    }
    const int holds = pattern_holds(s, step, at, depth);
    if (holds <= 0) return holds;
    pattern_visit(s, step->next, at);
    if (step->kind == PATTERN_SPLIT) pattern_visit(s, step->x, at);
    return 0;
}

static int pattern_reach(const pattern *p, int start, const char *text, size_t size, size_t from, int depth)
{
    const size_t states = (size_t)p->steps * (size + 1);
    pattern_search s = { .p = p, .text = text, .size = size };
    if (states > PATTERN_STATES || depth > PATTERN_DEPTH) return errno = ENOMEM, -1;
    s.seen = (unsigned char *)calloc(states, 1);
    s.waiting = (uint32_t *)malloc(states * sizeof *s.waiting);
    int found = s.seen && s.waiting ? 0 : -1;
    if (found == 0) pattern_visit(&s, start, from);
    while (found == 0 && s.count > 0) found = pattern_look(&s, s.waiting[--s.count], depth);
    free(s.seen);
    free(s.waiting);
    return found;
}

/* Does the text begin with what the pattern describes? 1, 0; -1 with a phrase when the pattern is none that is known
 * here; errno is ENOMEM when there was not enough memory, or a text or pattern is longer than is tried here. */
IO_FN int pattern_match(const char *regex, const char *text, const char **wrong)
{
    pattern p = { .at = regex, .end = regex + strlen(regex) };
    const size_t size = strlen(text);
    int found = -1;
    p.step = (pattern_step *)malloc(PATTERN_STEPS * sizeof *p.step);
    if (size > PATTERN_TEXT) errno = ENOMEM;
    if (!p.step || size > PATTERN_TEXT) pattern_stop(&p, "it needs more memory than there is");
    if (strncmp(p.at, "(?i)", 4) == 0) p.any_case = true, p.at += 4;
    if (!p.wrong && pattern_either(&p) && p.at < p.end) pattern_stop(&p, "a parenthesis that closes nothing");
    if (!p.wrong) pattern_add(&p, PATTERN_DONE);
    if (!p.wrong) {
        found = pattern_reach(&p, 0, text, size, 0, 0);
        if (found < 0) pattern_stop(&p, "it needs more memory than there is");
    }
    free(p.step);
    *wrong = p.wrong;
    return p.wrong ? -1 : found;
}

/* '*' is any text, '?' any character; over the whole name. */
IO_FN bool pattern_glob(const char *glob, const char *name)
{
    const char *star = NULL, *back = NULL;
    while (*name) {
        if (*glob == '*') star = glob++, back = name;
        else if (*glob == '?' || *glob == *name) glob++, name++;
        else if (star) glob = star + 1, name = ++back;
        else return false;
    }
    while (*glob == '*') glob++;
    return *glob == '\0';
}

#endif /* IO_PATTERN_H */

/* pattern.h - the regular expressions by which tokenizers cut texts: a small engine for what they are made of.
 * SPDX-License-Identifier: MIT
 *
 *     pattern p;
 *     char wrong[PATTERN_WRONG];
 *     if (!pattern_compile(" ?\\p{L}+|\\s+", &p, wrong)) ...;
 *     const size_t end = pattern_match(&p, text, size, at, &steps);   at: there is no match here
 *     pattern_free(&p);
 *
 * DOES: characters, [sets] and their complements, \s \S, \p{..} and \P{..} of L, Lu, Ll, Lt, Lm, Lo, M, N, P, S, Z, C,
 *     . * + ? {m,n} and their possessive forms, alternatives in order, (...), (?:...), (?i:...), a group with ? after it,
 *     (?=...) and (?!...); the first alternative that matches wins, as in Perl.
 * DOES NOT: other constructs, which are refused by name; search (try one place after another); text that is not UTF-8.
 *     Steps are counted down, and at 0 nothing matches any more: no pattern can run for ever.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include "unicode.h"

enum { PATTERN_WRONG = 128, PATTERN_DEPTH = 32, PATTERN_MOST = 4096, PATTERN_NODES = 2048, PATTERN_RANGES = 64 };

typedef struct pattern_set {
    uint32_t low[PATTERN_RANGES], high[PATTERN_RANGES];
    int ranges;
    unsigned classes;         /* bits 1 << UC_LU ... */
    bool space, not_space, negated, fold;
    bool ascii[128];          /* the answers for these, made beforehand */
} pattern_set;

typedef enum pattern_kind { PATTERN_SET, PATTERN_GROUP, PATTERN_LOOK, PATTERN_BRANCH } pattern_kind;

typedef struct pattern_node {
    pattern_kind kind;
    int follow;               /* in its sequence; of a branch: the next branch; -1: none */
    int next;                 /* what must match after it; -1: that is all */
    int first;                /* group, look: the first branch; branch: its first node */
    int set;
    size_t least, most;       /* how often; a group: 0 or 1, and 1 */
    bool possessive, negative;
} pattern_node;

typedef struct pattern {
    pattern_node *node;
    pattern_set *set;
    int nodes, sets, top;     /* top: the first branch */
} pattern;

IO_FN void pattern_free(pattern *p)
{
    free(p->node);
    free(p->set);
    memset(p, 0, sizeof *p);
}

/* ---- sets ---- */

IO_FN bool pattern_plain(const pattern_set *s, uint32_t code)
{
    for (int i = 0; i < s->ranges; i++)
        if (code >= s->low[i] && code <= s->high[i]) return true;
    if (s->classes && s->classes >> uc_class_of(code) & 1) return true;
    return (s->space && uc_is_space(code)) || (s->not_space && !uc_is_space(code));
}

/* Either case matches; the long s and the Kelvin sign are an s and a k (Unicode's simple case folding). */
IO_FN bool pattern_folded(const pattern_set *s, uint32_t code)
{
    const uint32_t lower = code >= 'A' && code <= 'Z' ? code + 32 : code == 0x17f ? 's' : code == 0x212a ? 'k' : code;
    if (pattern_plain(s, code) || pattern_plain(s, lower)) return true;
    if (lower < 'a' || lower > 'z') return false;
    return pattern_plain(s, lower - 32) || (lower == 's' && pattern_plain(s, 0x17f)) ||
           (lower == 'k' && pattern_plain(s, 0x212a));
}

IO_FN bool pattern_decide(const pattern_set *s, uint32_t code)
{
    return (s->fold ? pattern_folded(s, code) : pattern_plain(s, code)) != s->negated;
}

IO_FN bool pattern_has(const pattern_set *s, uint32_t code)
{
    return code < 128 ? s->ascii[code] : pattern_decide(s, code);
}

/* ---- reading ---- */

typedef struct pattern_reader {
    const unsigned char *at, *end;
    pattern *p;
    bool fold;
    int depth;
    char *wrong; /* empty: nothing yet */
} pattern_reader;

IO_FN bool pattern_refuse(pattern_reader *r, const char *what, size_t size)
{
    if (!r->wrong[0]) snprintf(r->wrong, PATTERN_WRONG, "'%.*s' is not known here", (int)(size < 40 ? size : 40), what);
    io_tame(r->wrong);
    return false;
}

IO_FN bool pattern_says(const pattern_reader *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

IO_FN bool pattern_takes(pattern_reader *r, const char *text)
{
    const bool there = pattern_says(r, text);
    if (there) r->at += strlen(text);
    return there;
}

IO_FN bool pattern_refuse_here(pattern_reader *r, size_t most)
{
    const size_t left = (size_t)(r->end - r->at);
    if (left == 0 && !r->wrong[0]) snprintf(r->wrong, PATTERN_WRONG, "it breaks off");
    return pattern_refuse(r, (const char *)r->at, left < most ? left : most);
}

IO_FN int pattern_node_new(pattern_reader *r, pattern_kind kind)
{
    pattern *p = r->p;
    if (p->nodes == PATTERN_NODES) return pattern_refuse(r, "so long a pattern", 17), -1;
    pattern_node *more = (pattern_node *)realloc(p->node, (size_t)(p->nodes + 1) * sizeof *more);
    if (!more) return pattern_refuse(r, "more memory", 11), -1;
    p->node = more;
    memset(&more[p->nodes], 0, sizeof *more);
    more[p->nodes].kind = kind;
    more[p->nodes].follow = more[p->nodes].next = more[p->nodes].first = -1;
    more[p->nodes].least = more[p->nodes].most = 1;
    return p->nodes++;
}

IO_FN bool pattern_add_range(pattern_reader *r, pattern_set *s, uint32_t low, uint32_t high)
{
    if (s->ranges == PATTERN_RANGES) return pattern_refuse(r, "so large a set", 14);
    if (low > high) return pattern_refuse(r, "a range that runs backwards", 27);
    s->low[s->ranges] = low;
    s->high[s->ranges++] = high;
    return true;
}

/* After \p or \P. */
IO_FN bool pattern_property(pattern_reader *r, pattern_set *s, bool complement)
{
    static const struct {
        const char *name;
        unsigned classes;
    } row[] = {
        { "{L}", 1u << UC_LU | 1u << UC_LL | 1u << UC_LT | 1u << UC_LM | 1u << UC_LO },
        { "{Lu}", 1u << UC_LU }, { "{Ll}", 1u << UC_LL }, { "{Lt}", 1u << UC_LT }, { "{Lm}", 1u << UC_LM },
        { "{Lo}", 1u << UC_LO }, { "{M}", 1u << UC_M },   { "{N}", 1u << UC_N },   { "{P}", 1u << UC_P },
        { "{S}", 1u << UC_S },   { "{Z}", 1u << UC_Z },   { "{C}", 1u << UC_C },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (pattern_takes(r, row[i].name)) {
            s->classes |= complement ? ((1u << UC_PAIRS) - 1) & ~row[i].classes : row[i].classes;
            return true;
        }
    const unsigned char *close = (const unsigned char *)memchr(r->at, '}', (size_t)(r->end - r->at));
    r->at -= 2;
    return pattern_refuse_here(r, close ? (size_t)(close + 1 - r->at) : 2);
}

/* After a backslash: a class, which goes into the set, or a character, which *code becomes; *single says which. */
IO_FN bool pattern_escape(pattern_reader *r, pattern_set *s, uint32_t *code, bool *single)
{
    static const char letters[] = "rntfv", values[] = "\r\n\t\f\v";
    const char c = r->at < r->end ? (char)*r->at : '\0';
    const char *letter = c ? strchr(letters, c) : NULL;
    *single = false;
    if (c == 's') s->space = true;
    else if (c == 'S') s->not_space = true;
    else if (c == 'p' || c == 'P') return r->at++, pattern_property(r, s, c == 'P');
    else if (letter) *code = (uint32_t)values[letter - letters], *single = true;
    else if (c && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c)) *code = (uint32_t)c, *single = true;
    else return r->at--, pattern_refuse_here(r, 2);
    r->at++;
    return true;
}

/* One character or class of a [set], or a character outside of one. */
IO_FN bool pattern_item(pattern_reader *r, pattern_set *s, uint32_t *code, bool *single)
{
    if (r->at == r->end) return pattern_refuse_here(r, 1);
    if (pattern_takes(r, "\\")) return pattern_escape(r, s, code, single);
    r->at += uc_character(r->at, (size_t)(r->end - r->at), code);
    return *single = true;
}

IO_FN bool pattern_read_set(pattern_reader *r, pattern_set *s)
{
    s->negated = pattern_takes(r, "^");
    while (!pattern_takes(r, "]")) {
        uint32_t low = 0, high = 0;
        bool single = false;
        if (pattern_says(r, "[") || pattern_says(r, "&&")) return pattern_refuse_here(r, 2);
        if (!pattern_item(r, s, &low, &single)) return false;
        high = low;
        const bool range = single && pattern_says(r, "-") && r->end - r->at > 1 && r->at[1] != ']';
        if (range) r->at++;
        if (range && (!pattern_item(r, s, &high, &single) || !single)) return pattern_refuse_here(r, 2);
        if (single && !pattern_add_range(r, s, low, high)) return false;
    }
    return true;
}

IO_FN bool pattern_read_number(pattern_reader *r, size_t *number)
{
    const unsigned char *from = r->at;
    for (*number = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - from < 6; r->at++)
        *number = 10 * *number + (size_t)(*r->at - '0');
    return r->at > from;
}

IO_FN bool pattern_read_braces(pattern_reader *r, size_t *least, size_t *most)
{
    if (!pattern_read_number(r, least)) return pattern_refuse(r, "{", 1);
    *most = *least;
    if (pattern_takes(r, ",") && !pattern_read_number(r, most)) *most = SIZE_MAX;
    if (!pattern_takes(r, "}") || *most < *least || *most == 0) return pattern_refuse_here(r, 2);
    return true;
}

IO_FN bool pattern_quantify(pattern_reader *r, int at)
{
    size_t least = 1, most = 1;
    if (pattern_takes(r, "?")) least = 0;
    else if (pattern_takes(r, "*")) least = 0, most = SIZE_MAX;
    else if (pattern_takes(r, "+")) most = SIZE_MAX;
    else if (pattern_takes(r, "{")) {
        if (!pattern_read_braces(r, &least, &most)) return false;
    } else return true;
    pattern_node *n = &r->p->node[at];
    if (n->kind == PATTERN_LOOK || (n->kind == PATTERN_GROUP && most != 1))
        return r->at--, pattern_refuse(r, n->kind == PATTERN_LOOK ? "(?!...)+" : "(...)+", 8);
    n->possessive = pattern_says(r, "+");
    if (n->possessive && n->kind == PATTERN_GROUP) return pattern_refuse(r, "(...)?+", 7);
    if (n->possessive) r->at++;
    if (pattern_says(r, "?") || pattern_says(r, "*") || pattern_says(r, "+") || pattern_says(r, "{"))
        return r->at--, pattern_refuse_here(r, 2);
    n->least = least;
    n->most = most;
    return true;
}

IO_FN int pattern_read_branches(pattern_reader *r);

IO_FN int pattern_read_group(pattern_reader *r)
{
    const bool fold = r->fold, negative = pattern_takes(r, "?!"), look = negative || pattern_takes(r, "?=");
    if (!look && pattern_takes(r, "?i:")) r->fold = true;
    else if (!look && !pattern_takes(r, "?:") && pattern_says(r, "?"))
        return r->at--, pattern_refuse_here(r, 4), -1;
    const int at = pattern_node_new(r, look ? PATTERN_LOOK : PATTERN_GROUP);
    if (at < 0) return -1;
    if (r->depth++ == PATTERN_DEPTH) return pattern_refuse(r, "so deep a nest of groups", 24), -1;
    const int first = pattern_read_branches(r);
    r->depth--;
    r->fold = fold;
    if (first < 0) return -1;
    if (!pattern_takes(r, ")")) return pattern_refuse_here(r, 1), -1;
    r->p->node[at].first = first;
    r->p->node[at].negative = negative;
    return at;
}

IO_FN int pattern_add_set(pattern_reader *r, pattern_set *s)
{
    const int at = pattern_node_new(r, PATTERN_SET);
    pattern_set *more = at < 0 ? NULL : (pattern_set *)realloc(r->p->set, (size_t)(r->p->sets + 1) * sizeof *more);
    if (!more) return pattern_refuse(r, "more memory", 11), -1;
    s->fold = r->fold;
    for (uint32_t c = 0; c < 128; c++) s->ascii[c] = pattern_decide(s, c);
    r->p->set = more;
    more[r->p->sets] = *s;
    r->p->node[at].set = r->p->sets++;
    return at;
}

IO_FN int pattern_read_atom(pattern_reader *r)
{
    pattern_set s;
    uint32_t code = 0;
    bool single = false;
    memset(&s, 0, sizeof s);
    if (pattern_takes(r, "(")) return pattern_read_group(r);
    if (*r->at && strchr("^$*+?{}]", (char)*r->at)) return pattern_refuse_here(r, 1), -1;
    if (pattern_takes(r, "[")) {
        if (!pattern_read_set(r, &s)) return -1;
    } else if (pattern_takes(r, ".")) {
        s.negated = true;
        pattern_add_range(r, &s, '\n', '\n');
    } else if (!pattern_item(r, &s, &code, &single) || (single && !pattern_add_range(r, &s, code, code))) return -1;
    return pattern_add_set(r, &s);
}

IO_FN bool pattern_read_sequence(pattern_reader *r, int branch)
{
    for (int last = -1; r->at < r->end && *r->at != '|' && *r->at != ')';) {
        const int at = pattern_read_atom(r);
        if (at < 0 || !pattern_quantify(r, at)) return false;
        if (last < 0) r->p->node[branch].first = at;
        else r->p->node[last].follow = at;
        last = at;
    }
    return true;
}

IO_FN int pattern_read_branches(pattern_reader *r)
{
    int first = -1, last = -1;
    do {
        const int branch = pattern_node_new(r, PATTERN_BRANCH);
        if (branch < 0 || !pattern_read_sequence(r, branch)) return -1;
        if (last < 0) first = branch;
        else r->p->node[last].follow = branch;
        last = branch;
    } while (pattern_takes(r, "|"));
    return first;
}

/* What must match after each node: its follower, or what comes after its group. */
IO_FN void pattern_link(pattern *p, int branch, int after)
{
    for (; branch >= 0; branch = p->node[branch].follow) {
        p->node[branch].next = after; /* of an empty branch */
        for (int i = p->node[branch].first; i >= 0; i = p->node[i].follow) {
            pattern_node *n = &p->node[i];
            n->next = n->follow >= 0 ? n->follow : after;
            if (n->kind != PATTERN_SET) pattern_link(p, n->first, n->kind == PATTERN_LOOK ? -1 : n->next);
        }
    }
}

/* wrong [PATTERN_WRONG]: the construct that is not known; false without memory, too. */
IO_FN bool pattern_compile(const char *text, pattern *p, char *wrong)
{
    const size_t size = strlen(text);
    pattern_reader r = { (const unsigned char *)text, (const unsigned char *)text + size, p, false, 0, wrong };
    memset(p, 0, sizeof *p);
    wrong[0] = '\0';
    if (size > PATTERN_MOST) pattern_refuse(&r, "so long a pattern", 17);
    else p->top = pattern_read_branches(&r);
    if (!wrong[0] && r.at < r.end) pattern_refuse_here(&r, 1);
    if (wrong[0]) return pattern_free(p), false;
    pattern_link(p, p->top, -1);
    return true;
}

/* ---- matching: recursion is as deep as the pattern is long, never as the text ---- */

typedef struct pattern_text {
    const pattern *p;
    const unsigned char *text;
    size_t size;
    uint64_t *steps; /* that are left */
} pattern_text;

enum { PATTERN_NO = -1 };

IO_FN int64_t pattern_try(const pattern_text *t, int node, size_t at);

IO_FN int64_t pattern_try_set(const pattern_text *t, const pattern_node *n, size_t at)
{
    const pattern_set *s = &t->p->set[n->set];
    size_t end = at, count = 0;
    uint32_t code;
    while (count < n->most && end < t->size && *t->steps > 0) {
        const size_t bytes = uc_character(t->text + end, t->size - end, &code);
        if (!pattern_has(s, code)) break;
        end += bytes;
        count++;
        --*t->steps;
    }
    for (; count >= n->least; count--) {
        const int64_t found = pattern_try(t, n->next, end);
        if (found != PATTERN_NO || n->possessive || count == 0 || *t->steps == 0) return found;
        do end--;
        while (end > at && (t->text[end] & 0xc0) == 0x80);
    }
    return PATTERN_NO;
}

IO_FN int64_t pattern_try_branches(const pattern_text *t, int branch, size_t at)
{
    for (; branch >= 0; branch = t->p->node[branch].follow) {
        const pattern_node *b = &t->p->node[branch];
        const int64_t found = pattern_try(t, b->first >= 0 ? b->first : b->next, at);
        if (found != PATTERN_NO) return found;
    }
    return PATTERN_NO;
}

/* Where the rest of the pattern from this node on ends. */
IO_FN int64_t pattern_try(const pattern_text *t, int node, size_t at)
{
    if (node < 0) return (int64_t)at;
    if (*t->steps == 0) return PATTERN_NO;
    --*t->steps;
    const pattern_node *n = &t->p->node[node];
    if (n->kind == PATTERN_SET) return pattern_try_set(t, n, at);
    const int64_t found = pattern_try_branches(t, n->first, at);
    if (n->kind == PATTERN_LOOK)
        return (found != PATTERN_NO) != n->negative ? pattern_try(t, n->next, at) : PATTERN_NO;
    return found == PATTERN_NO && n->least == 0 ? pattern_try(t, n->next, at) : found;
}

/* Where the match that begins at `at` ends; `at` when there is none. *steps counts down; at 0 there are no more. */
IO_FN size_t pattern_match(const pattern *p, const void *text, size_t size, size_t at, uint64_t *steps)
{
    const pattern_text t = { p, (const unsigned char *)text, size, steps };
    const int64_t end = pattern_try_branches(&t, p->top, at);
    return end == PATTERN_NO ? at : (size_t)end;
}

#endif /* PATTERN_H */

/* cut.h - the regular expressions by which tokenizers cut texts: a small engine for what they are made of.
 * SPDX-License-Identifier: MIT
 *
 *     cut_pattern p;
 *     char wrong[CUT_WRONG];
 *     if (!cut_compile(" ?\\p{L}+|\\s+", &p, wrong)) ...;
 *     const size_t end = cut_match(&p, text, size, at, &steps);   at: there is no match here
 *     cut_free(&p);
 *
 * DOES: characters, [sets] and their complements, \s \S, \p{..} and \P{..} of L, Lu, Ll, Lt, Lm, Lo, M, N, P, S, Z, C,
 *     . * + ? {m,n} and their possessive forms, alternatives in order, (...), (?:...), (?i:...), optional groups,
 *     (?=...) and (?!...); the first alternative that matches wins, as in Perl.
 * DOES NOT: other constructs, which are refused by name; search (try one place after another); text that is not UTF-8.
 *     Steps are counted down, and at 0 nothing matches any more: no pattern can run for ever.
 */
#ifndef CUT_H
#define CUT_H

#include "unicode.h"

enum { CUT_WRONG = 128, CUT_DEPTH = 32, CUT_MOST = 4096, CUT_NODES = 2048, CUT_RANGES = 64 };

typedef struct cut_set {
    uint32_t low[CUT_RANGES], high[CUT_RANGES];
    int ranges;
    unsigned classes;         /* bits 1 << UC_LU ... */
    bool space, not_space, negated, fold;
    bool ascii[128];          /* the answers for these, made beforehand */
} cut_set;

typedef enum cut_kind { CUT_SET, CUT_GROUP, CUT_LOOK, CUT_BRANCH } cut_kind;

typedef struct cut_node {
    cut_kind kind;
    int follow;               /* in its sequence; of a branch: the next branch; -1: none */
    int next;                 /* what must match after it; -1: that is all */
    int first;                /* group, look: the first branch; branch: its first node */
    int set;
    size_t least, most;       /* how often; a group: 0 or 1, and 1 */
    bool possessive, negative;
} cut_node;

typedef struct cut_pattern {
    cut_node *node;
    cut_set *set;
    int nodes, sets, top;     /* top: the first branch */
} cut_pattern;

IO_FN void cut_free(cut_pattern *p)
{
    free(p->node);
    free(p->set);
    memset(p, 0, sizeof *p);
}

/* ---- sets ---- */

IO_FN bool cut_plain(const cut_set *s, uint32_t code)
{
    for (int i = 0; i < s->ranges; i++)
        if (code >= s->low[i] && code <= s->high[i]) return true;
    if (s->classes && s->classes >> uc_class_of(code) & 1) return true;
    return (s->space && uc_is_space(code)) || (s->not_space && !uc_is_space(code));
}

/* Either case matches; the long s and the Kelvin sign are an s and a k (Unicode's simple case folding). */
IO_FN bool cut_folded(const cut_set *s, uint32_t code)
{
    const uint32_t lower = code >= 'A' && code <= 'Z' ? code + 32 : code == 0x17f ? 's' : code == 0x212a ? 'k' : code;
    if (cut_plain(s, code) || cut_plain(s, lower)) return true;
    if (lower < 'a' || lower > 'z') return false;
    return cut_plain(s, lower - 32) || (lower == 's' && cut_plain(s, 0x17f)) ||
           (lower == 'k' && cut_plain(s, 0x212a));
}

IO_FN bool cut_decide(const cut_set *s, uint32_t code)
{
    return (s->fold ? cut_folded(s, code) : cut_plain(s, code)) != s->negated;
}

IO_FN bool cut_has(const cut_set *s, uint32_t code)
{
    return code < 128 ? s->ascii[code] : cut_decide(s, code);
}

/* ---- reading ---- */

typedef struct cut_reader {
    const unsigned char *at, *end;
    cut_pattern *p;
    bool fold;
    int depth;
    char *wrong; /* empty: nothing yet */
} cut_reader;

IO_FN bool cut_refuse(cut_reader *r, const char *what, size_t size)
{
    if (!r->wrong[0]) io_say_in(r->wrong, CUT_WRONG, 40, "'%.*s' is not known here", (int)size, what);
    return false;
}

IO_FN bool cut_says(const cut_reader *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

IO_FN bool cut_takes(cut_reader *r, const char *text)
{
    const bool there = cut_says(r, text);
    if (there) r->at += strlen(text);
    return there;
}

IO_FN bool cut_refuse_here(cut_reader *r, size_t most)
{
    const size_t left = (size_t)(r->end - r->at);
    while (most < left && (r->at[most] & 0xc0) == 0x80) most++; /* not inside a character */
    if (left == 0 && !r->wrong[0]) snprintf(r->wrong, CUT_WRONG, "it breaks off");
    return cut_refuse(r, (const char *)r->at, left < most ? left : most);
}

IO_FN int cut_node_new(cut_reader *r, cut_kind kind)
{
    cut_pattern *p = r->p;
    if (p->nodes == CUT_NODES) return cut_refuse(r, "so long a pattern", 17), -1;
    cut_node *more = (cut_node *)realloc(p->node, (size_t)(p->nodes + 1) * sizeof *more);
    if (!more) return cut_refuse(r, "more memory", 11), -1;
    p->node = more;
    memset(&more[p->nodes], 0, sizeof *more);
    more[p->nodes].kind = kind;
    more[p->nodes].follow = more[p->nodes].next = more[p->nodes].first = -1;
    more[p->nodes].least = more[p->nodes].most = 1;
    return p->nodes++;
}

IO_FN bool cut_add_range(cut_reader *r, cut_set *s, uint32_t low, uint32_t high)
{
    if (s->ranges == CUT_RANGES) return cut_refuse(r, "so large a set", 14);
    if (low > high) return cut_refuse(r, "a range that runs backwards", 27);
    s->low[s->ranges] = low;
    s->high[s->ranges++] = high;
    return true;
}

/* After \p or \P. */
IO_FN bool cut_property(cut_reader *r, cut_set *s, bool complement)
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
        if (cut_takes(r, row[i].name)) {
            s->classes |= complement ? ((1u << UC_PAIRS) - 1) & ~row[i].classes : row[i].classes;
            return true;
        }
    const unsigned char *close = (const unsigned char *)memchr(r->at, '}', (size_t)(r->end - r->at));
    r->at -= 2;
    return cut_refuse_here(r, close ? (size_t)(close + 1 - r->at) : 2);
}

/* After a backslash: a class, which goes into the set, or a character, which *code becomes; *single says which. */
IO_FN bool cut_escape(cut_reader *r, cut_set *s, uint32_t *code, bool *single)
{
    static const char letters[] = "rntfv", values[] = "\r\n\t\f\v";
    const char c = r->at < r->end ? (char)*r->at : '\0';
    const char *letter = c ? strchr(letters, c) : NULL;
    *single = false;
    if (c == 's') s->space = true;
    else if (c == 'S') s->not_space = true;
    else if (c == 'p' || c == 'P') return r->at++, cut_property(r, s, c == 'P');
    else if (letter) *code = (uint32_t)values[letter - letters], *single = true;
    else if (c && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c)) *code = (uint32_t)c, *single = true;
    else return r->at--, cut_refuse_here(r, 2);
    r->at++;
    return true;
}

/* One character or class of a [set], or a character outside of one. */
IO_FN bool cut_item(cut_reader *r, cut_set *s, uint32_t *code, bool *single)
{
    if (r->at == r->end) return cut_refuse_here(r, 1);
    if (cut_takes(r, "\\")) return cut_escape(r, s, code, single);
    r->at += uc_character(r->at, (size_t)(r->end - r->at), code);
    return *single = true;
}

IO_FN bool cut_read_set(cut_reader *r, cut_set *s)
{
    s->negated = cut_takes(r, "^");
    while (!cut_takes(r, "]")) {
        uint32_t low = 0, high = 0;
        bool single = false;
        if (cut_says(r, "[") || cut_says(r, "&&")) return cut_refuse_here(r, 2);
        if (!cut_item(r, s, &low, &single)) return false;
        high = low;
        const bool range = single && cut_says(r, "-") && r->end - r->at > 1 && r->at[1] != ']';
        if (range) r->at++;
        if (range && (!cut_item(r, s, &high, &single) || !single)) return cut_refuse_here(r, 2);
        if (single && !cut_add_range(r, s, low, high)) return false;
    }
    return true;
}

IO_FN bool cut_read_number(cut_reader *r, size_t *number)
{
    const unsigned char *from = r->at;
    for (*number = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - from < 6; r->at++)
        *number = 10 * *number + (size_t)(*r->at - '0');
    return r->at > from;
}

IO_FN bool cut_read_braces(cut_reader *r, size_t *least, size_t *most)
{
    if (!cut_read_number(r, least)) return cut_refuse(r, "{", 1);
    *most = *least;
    if (cut_takes(r, ",") && !cut_read_number(r, most)) *most = SIZE_MAX;
    if (!cut_takes(r, "}") || *most < *least || *most == 0) return cut_refuse_here(r, 2);
    return true;
}

IO_FN bool cut_quantify(cut_reader *r, int at)
{
    size_t least = 1, most = 1;
    if (cut_takes(r, "?")) least = 0;
    else if (cut_takes(r, "*")) least = 0, most = SIZE_MAX;
    else if (cut_takes(r, "+")) most = SIZE_MAX;
    else if (cut_takes(r, "{")) {
        if (!cut_read_braces(r, &least, &most)) return false;
    } else return true;
    cut_node *n = &r->p->node[at];
    if (n->kind == CUT_LOOK || (n->kind == CUT_GROUP && most != 1))
        return r->at--, cut_refuse(r, n->kind == CUT_LOOK ? "(?!...)+" : "(...)+", 8);
    n->possessive = cut_says(r, "+");
    if (n->possessive && n->kind == CUT_GROUP) return cut_refuse(r, "(...)?+", 7);
    if (n->possessive) r->at++;
    if (cut_says(r, "?") || cut_says(r, "*") || cut_says(r, "+") || cut_says(r, "{"))
        return r->at--, cut_refuse_here(r, 2);
    n->least = least;
    n->most = most;
    return true;
}

IO_FN int cut_read_branches(cut_reader *r);

IO_FN int cut_read_group(cut_reader *r)
{
    const bool fold = r->fold, negative = cut_takes(r, "?!"), look = negative || cut_takes(r, "?=");
    if (!look && cut_takes(r, "?i:")) r->fold = true;
    else if (!look && !cut_takes(r, "?:") && cut_says(r, "?"))
        return r->at--, cut_refuse_here(r, 4), -1;
    const int at = cut_node_new(r, look ? CUT_LOOK : CUT_GROUP);
    if (at < 0) return -1;
    if (r->depth++ == CUT_DEPTH) return cut_refuse(r, "so deep a nest of groups", 24), -1;
    const int first = cut_read_branches(r);
    r->depth--;
    r->fold = fold;
    if (first < 0) return -1;
    if (!cut_takes(r, ")")) return cut_refuse_here(r, 1), -1;
    r->p->node[at].first = first;
    r->p->node[at].negative = negative;
    return at;
}

IO_FN int cut_add_set(cut_reader *r, cut_set *s)
{
    const int at = cut_node_new(r, CUT_SET);
    cut_set *more = at < 0 ? NULL : (cut_set *)realloc(r->p->set, (size_t)(r->p->sets + 1) * sizeof *more);
    if (!more) return cut_refuse(r, "more memory", 11), -1;
    s->fold = r->fold;
    for (uint32_t c = 0; c < 128; c++) s->ascii[c] = cut_decide(s, c);
    r->p->set = more;
    more[r->p->sets] = *s;
    r->p->node[at].set = r->p->sets++;
    return at;
}

IO_FN int cut_read_atom(cut_reader *r)
{
    cut_set s;
    uint32_t code = 0;
    bool single = false;
    memset(&s, 0, sizeof s);
    if (cut_takes(r, "(")) return cut_read_group(r);
    if (*r->at && strchr("^$*+?{}]", (char)*r->at)) return cut_refuse_here(r, 1), -1;
    if (cut_takes(r, "[")) {
        if (!cut_read_set(r, &s)) return -1;
    } else if (cut_takes(r, ".")) {
        s.negated = true;
        cut_add_range(r, &s, '\n', '\n');
    } else if (!cut_item(r, &s, &code, &single) || (single && !cut_add_range(r, &s, code, code))) return -1;
    return cut_add_set(r, &s);
}

IO_FN bool cut_read_sequence(cut_reader *r, int branch)
{
    for (int last = -1; r->at < r->end && *r->at != '|' && *r->at != ')';) {
        const int at = cut_read_atom(r);
        if (at < 0 || !cut_quantify(r, at)) return false;
        if (last < 0) r->p->node[branch].first = at;
        else r->p->node[last].follow = at;
        last = at;
    }
    return true;
}

IO_FN int cut_read_branches(cut_reader *r)
{
    int first = -1, last = -1;
    do {
        const int branch = cut_node_new(r, CUT_BRANCH);
        if (branch < 0 || !cut_read_sequence(r, branch)) return -1;
        if (last < 0) first = branch;
        else r->p->node[last].follow = branch;
        last = branch;
    } while (cut_takes(r, "|"));
    return first;
}

/* What must match after each node: its follower, or what comes after its group. */
IO_FN void cut_link(cut_pattern *p, int branch, int after)
{
    for (; branch >= 0; branch = p->node[branch].follow) {
        p->node[branch].next = after; /* of an empty branch */
        for (int i = p->node[branch].first; i >= 0; i = p->node[i].follow) {
            cut_node *n = &p->node[i];
            n->next = n->follow >= 0 ? n->follow : after;
            if (n->kind != CUT_SET) cut_link(p, n->first, n->kind == CUT_LOOK ? -1 : n->next);
        }
    }
}

/* wrong [CUT_WRONG]: the construct that is not known; false without memory, too. */
IO_FN bool cut_compile(const char *text, cut_pattern *p, char *wrong)
{
    const size_t size = strlen(text);
    cut_reader r = { (const unsigned char *)text, (const unsigned char *)text + size, p, false, 0, wrong };
    memset(p, 0, sizeof *p);
    wrong[0] = '\0';
    if (size > CUT_MOST) cut_refuse(&r, "so long a pattern", 17);
    else p->top = cut_read_branches(&r);
    if (!wrong[0] && r.at < r.end) cut_refuse_here(&r, 1);
    if (wrong[0]) return cut_free(p), false;
    cut_link(p, p->top, -1);
    return true;
}

/* ---- matching: recursion is as deep as the pattern is long, never as the text ---- */

typedef struct cut_text {
    const cut_pattern *p;
    const unsigned char *text;
    size_t size;
    uint64_t *steps; /* that are left */
} cut_text;

enum { CUT_NO = -1 };

IO_FN int64_t cut_try(const cut_text *t, int node, size_t at);

IO_FN int64_t cut_try_set(const cut_text *t, const cut_node *n, size_t at)
{
    const cut_set *s = &t->p->set[n->set];
    size_t end = at, count = 0;
    uint32_t code;
    while (count < n->most && end < t->size && *t->steps > 0) {
        const size_t bytes = uc_character(t->text + end, t->size - end, &code);
        if (!cut_has(s, code)) break;
        end += bytes;
        count++;
        --*t->steps;
    }
    for (; count >= n->least; count--) {
        const int64_t found = cut_try(t, n->next, end);
        if (found != CUT_NO || n->possessive || count == 0 || *t->steps == 0) return found;
        do end--;
        while (end > at && (t->text[end] & 0xc0) == 0x80);
    }
    return CUT_NO;
}

IO_FN int64_t cut_try_branches(const cut_text *t, int branch, size_t at)
{
    for (; branch >= 0; branch = t->p->node[branch].follow) {
        const cut_node *b = &t->p->node[branch];
        const int64_t found = cut_try(t, b->first >= 0 ? b->first : b->next, at);
        if (found != CUT_NO) return found;
    }
    return CUT_NO;
}

/* Where the rest of the pattern from this node on ends. */
IO_FN int64_t cut_try(const cut_text *t, int node, size_t at)
{
    if (node < 0) return (int64_t)at;
    if (*t->steps == 0) return CUT_NO;
    --*t->steps;
    const cut_node *n = &t->p->node[node];
    if (n->kind == CUT_SET) return cut_try_set(t, n, at);
    const int64_t found = cut_try_branches(t, n->first, at);
    if (n->kind == CUT_LOOK)
        return (found != CUT_NO) != n->negative ? cut_try(t, n->next, at) : CUT_NO;
    return found == CUT_NO && n->least == 0 ? cut_try(t, n->next, at) : found;
}

/* Where the match that begins at `at` ends; `at` when there is none. *steps counts down; at 0 there are no more. */
IO_FN size_t cut_match(const cut_pattern *p, const void *text, size_t size, size_t at, uint64_t *steps)
{
    const cut_text t = { p, (const unsigned char *)text, size, steps };
    const int64_t end = cut_try_branches(&t, p->top, at);
    return end == CUT_NO ? at : (size_t)end;
}

#endif /* CUT_H */

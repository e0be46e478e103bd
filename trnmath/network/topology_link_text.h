/* network/topology_link_text.h - one link of a graph as a line of a file has it: "0-1", "3->4 12.5", "0-2 rate 25 x 2".
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: reads the two ends, the direction, and the link's own numbers in any order; writes them so that they are read
 *     back as the same doubles. What a line leaves out is the level's.
 * DOES NOT: judge whether the links make a graph (network/topology_links.h).
 */
#ifndef TRNI_NETWORK_TOPOLOGY_LINK_TEXT_H
#define TRNI_NETWORK_TOPOLOGY_LINK_TEXT_H

#include "topology_links.h"
#include "topology_text.h"

#define TRNI_LINK_OPEN (-1.0) /* a latency that the line does not give; of rates it is 0 */

/* ---- reading ---- */

/* The first word, which is taken off; of length 0 at the end. */
TRNI_FN trni_phrase trni_phrase_take(trni_phrase *p)
{
    size_t n = 0;
    *p = trni_phrase_trim(*p);
    while (n < p->length && !trni_blank(p->at[n])) n++;
    const trni_phrase word = trni_phrase_of(p->at, n);
    *p = trni_phrase_trim(trni_phrase_of(p->at + n, p->length - n));
    return word;
}

/* The digits at the beginning, which are taken off. */
TRNI_FN bool trni_phrase_take_whole(trni_phrase *p, int *value)
{
    size_t n = 0;
    *p = trni_phrase_trim(*p);
    while (n < p->length && trni_is_digit(p->at[n])) n++;
    const trni_phrase digits = trni_phrase_of(p->at, n);
    *p = trni_phrase_trim(trni_phrase_of(p->at + n, p->length - n));
    return trni_phrase_whole(digits, value);
}

/* "0-1" and "0<->1" go both ways, "0->1" one. */
TRNI_FN bool trni_link_read_ends(trni_phrase *p, int *from, int *to, bool *one_way)
{
    static const char *const arrow[] = { "<->", "->", "-" };
    if (!trni_phrase_take_whole(p, from)) return false;
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(arrow[i]);
        if (p->length < n || memcmp(p->at, arrow[i], n) != 0) continue;
        *p = trni_phrase_of(p->at + n, p->length - n);
        *one_way = i == 1;
        const bool read = trni_phrase_take_whole(p, to);
        return read && (p->length == 0 || trni_blank(p->at[-1]));
    }
    return false;
}

/* What a number of a link is called, and what it may be. */
typedef struct trni_link_key {
    const char *name;
    int power;
    trni_measure unit;
} trni_link_key;

TRNI_FN const trni_link_key *trni_link_keys(void)
{
    static const trni_link_key key[] = { { "rate", 9, TRNI_RATE }, { "latency", -6, TRNI_TIME } };
    return key;
}

/* One of its numbers: "rate 25", "latency 0.7", "x 2" or "x2"; the first may be a rate alone. */
TRNI_FN bool trni_link_read_number(trni_phrase *rest, bool first, trn_wire *w, unsigned *seen)
{
    const trni_link_key *key = trni_link_keys();
    trni_phrase word = trni_phrase_take(rest);
    double *const value[] = { &w->bytes_per_s, &w->latency_s };
    for (int i = 0; i < 2; i++) {
        const bool named = trni_phrase_is(word, key[i].name);
        if (!named && !(i == 0 && first && trni_is_digit(word.at[0]))) continue;
        const trni_phrase number = named ? trni_phrase_take(rest) : word;
        const bool once = !(*seen >> i & 1u);
        *seen |= 1u << i;
        return once && trni_phrase_decimal(number, key[i].power, value[i]) && trni_amount_is(key[i].unit, *value[i]);
    }
    if (word.at[0] != 'x' || *seen >> 2 & 1u) return false;
    *seen |= 1u << 2;
    word = word.length > 1 ? trni_phrase_of(word.at + 1, word.length - 1) : trni_phrase_take(rest);
    return trni_phrase_whole(word, &w->count) && w->count >= 1 && w->count <= TRN_MAX_PARALLEL;
}

/* A whole line's value. The sentence does not name the line: the caller does. */
TRNI_FN trn_status trni_link_read(trni_phrase line, int level, trn_wire *w, trn_error *error)
{
    char shown[TRNI_SHOWN], rate[48], time[48];
    trni_phrase rest = line;
    int from = 0, to = 0;
    unsigned seen = 0;
    memset(w, 0, sizeof *w);
    w->level = (uint8_t)level;
    w->count = 1;
    w->latency_s = TRNI_LINK_OPEN;
    if (!trni_link_read_ends(&rest, &from, &to, &w->one_way))
        return trni_fail(error, TRN_EINVAL,
                         "link = %s: expected two numbers of the level, such as 0-1, or 0->1 for one direction",
                         trni_phrase_show(line, shown));
    if (from >= TRN_MAX_GRAPH || to >= TRN_MAX_GRAPH)
        return trni_fail(error, TRN_EINVAL, "link = %s: a graph has numbers up to %d", trni_phrase_show(line, shown),
                         (int)TRN_MAX_GRAPH - 1);
    w->from = (uint8_t)from;
    w->to = (uint8_t)to;
    for (bool first = true; rest.length; first = false)
        if (!trni_link_read_number(&rest, first, w, &seen))
            return trni_fail(error, TRN_EINVAL,
                             "link = %s: expected, each once, rate and GB/s (%s), latency and us (%s), x and 1 to %d "
                             "parallel links, such as rate 25 latency 0.7 x 2",
                             trni_phrase_show(line, shown), trni_legal_text(TRNI_RATE, 9, rate),
                             trni_legal_text(TRNI_TIME, -6, time), (int)TRN_MAX_PARALLEL);
    return TRN_OK;
}

/* What the line left out. False: nobody gives its rate. */
TRNI_FN bool trni_link_complete(trn_wire *w, const trn_level *level)
{
    if (!(w->bytes_per_s > 0)) w->bytes_per_s = level->bytes_per_s;
    if (w->latency_s < 0) w->latency_s = level->latency_s;
    return w->bytes_per_s > 0;
}

/* ---- writing ---- */

/* "link = 0-1 rate 25 latency 0.7 x 2", without what is the level's. */
TRNI_FN void trni_link_print(const trn_wire *w, const trn_level *level, char line[160])
{
    char ends[16], number[TRNI_DECIMAL];
    const double value[] = { w->bytes_per_s, w->latency_s }, own[] = { level->bytes_per_s, level->latency_s };
    int used = snprintf(line, 160, "link = %s", trni_wire_text(w, ends));
    for (int i = 0; i < 2; i++) {
        const trni_link_key *key = &trni_link_keys()[i];
        if (value[i] >= own[i] && value[i] <= own[i]) continue;
        trni_decimal_print(value[i], key->power, number);
        used += snprintf(line + used, 160 - (size_t)used, " %s %s", key->name, number);
    }
    if (w->count > 1) used += snprintf(line + used, 160 - (size_t)used, " x %d", w->count);
    snprintf(line + used, 160 - (size_t)used, "\n");
}

#endif /* TRNI_NETWORK_TOPOLOGY_LINK_TEXT_H */

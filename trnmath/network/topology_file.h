/* network/topology_file.h - a network as a small text file: levels of wires, what the chip adds, what is broken.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <string.h>
 *     #include <trnmath/trn_topology.h>
 *     int main(void) {
 *         const char text[] = "name = two trays\n[level tray]\nsize = 4\nwiring = ring\nrate = 128 # GB/s one way\n"
 *                             "[level rack]\nsize = 2\nwiring = switch\nrate = 25\nlatency = 0.25 # us\n";
 *         trn_topology net;
 *         trn_error why;
 *         return trn_topology_load(text, strlen(text), &net, &why) == TRN_OK && net.chips == 8 ? 0 : 1;
 *     }
 *
 * DOES: reads and writes the text; what is written reads back as the same network, bit for bit. A sentence about a
 *     file names its line.
 * DOES NOT: open files: programs do, and hand over the bytes. Sources of numbers are not in the file: all is "given by
 *     a file".
 *
 * KNOWN FROM: definitions. examples/topologies/ holds every preset in this form, and graphs such as NVIDIA's DGX-1.
 *
 * The file. Lines of "key = value"; # begins a comment; empty lines do not count. First what belongs to the whole:
 *     name = NAME                the network's own, to 63 bytes; default custom
 *     system = trn2.48xlarge     whose runtime's rules and chips these are (trnbench spec lists them); default none
 *     mode = cut-through         or store-and-forward: a message goes on when all of it has arrived
 *     start = 1.4                us, DMA start of every step; default 0
 *     local = 0.1                us, a step between cores of one chip beyond start; default: latency of the first level
 *     hbm = 2900, dma = 2944     GB/s of a chip; default 0: never a limit
 *     reduce_pass = 1            DMA passes for each source of a sum; default 1
 *     ranks_per_chip = 4         default 1
 * then the levels, the innermost first (network/topology_parts.h says what the wirings are):
 *     [level x]                  the name: letters, digits, "_", "-" and ".", beginning with a letter, to 23 bytes
 *     size = 4                   values of the digit
 *     wiring = ring              full, switch, none, graph
 *     planes = 2                 of a switch; default 1
 *     rate = 128                 GB/s (1e9) one way of a link or of a switch's port
 *     latency = 0.1              us; of a switch from port to port; default 0
 *     kind = torus               peer, switch, efa, plain; default plain
 *     duplex = full              half: both directions of a link share the rate
 *     link = 0-1                 of a graph, as often as needed: both ways; 0->1 one way
 *     link = 0-1 rate 25 latency 0.7 x 2     its own rate (or 25 alone) and latency, else the level's; 2 parallel links
 * A graph has at most 64 chips (or whatever its level counts) and all graphs together 96 lines of links; the links
 * lead from every chip to every other. A pair stands once: two lines for it would be a mistake or "x 2".
 * Rates are from 1e-9 to 1e9 GB/s, times 0 or from 1e-9 to 1e10 us, passes 0 or from 1e-6 to 1e6 (machine/amounts.h).
 * And anywhere, as often as needed (network/topology_faults.h):
 *     down = chip 17             down = link 3->7, down = link 3<->7, down = link 3->rack
 *     slow = link 3->7 0.5       slow = chip 5 0.8: the share that is left
 */
#ifndef TRNI_NETWORK_TOPOLOGY_FILE_H
#define TRNI_NETWORK_TOPOLOGY_FILE_H

#include "topology_faults.h"
#include "../machine/trace.h"

/* The text need not end with a zero. net is written only when TRN_OK is returned, and keeps nothing of the text. */
TRN_API trn_status trn_topology_load(const char *text, size_t length, trn_topology *net, trn_error *error);

/* Line by line to write(user, text, bytes). TRN_EUNSUPPORTED, and nothing is written, for names that no line can hold.
 */
TRN_API trn_status trn_topology_save(const trn_topology *net, trn_trace_write *write, void *user, trn_error *error);

#if TRNI_BODIES

#include "topology_link_text.h"

/* ---- what may stand in a file ---- */

typedef enum trni_key_kind {
    TRNI_KEY_NAME,
    TRNI_KEY_SYSTEM,
    TRNI_KEY_REAL,
    TRNI_KEY_WHOLE,
    TRNI_KEY_WORD,
    TRNI_KEY_FLAG,
    TRNI_KEY_DOWN,
    TRNI_KEY_SLOW,
    TRNI_KEY_LINK
} trni_key_kind;

/* offset: of the field in trn_topology or trn_level. */
typedef struct trni_file_key {
    const char *name;
    trni_key_kind kind;
    size_t offset;
    int power;           /* REAL: of ten, of its unit; WHOLE: of two, of the most it may be */
    trni_measure unit;   /* REAL */
    const char *word[6]; /* WORD, FLAG: of the values 0, 1, ... */
    const char *expected;
} trni_file_key;

enum { TRNI_NET_KEYS = 11, TRNI_LEVEL_KEYS = 8 };

TRNI_FN const trni_file_key *trni_net_keys(void)
{
#define TRNI_AT(field) offsetof(trn_topology, field)
    static const trni_file_key key[TRNI_NET_KEYS] = {
        { "name", TRNI_KEY_NAME, TRNI_AT(name), 0, TRNI_RATE, { NULL }, "a name of 1 to 63 bytes" },
        { "system", TRNI_KEY_SYSTEM, TRNI_AT(system), 0, TRNI_RATE, { NULL }, "a system, such as trn2.48xlarge" },
        { "mode",
          TRNI_KEY_FLAG,
          TRNI_AT(store_and_forward),
          0,
          TRNI_RATE,
          { "cut-through", "store-and-forward", NULL },
          "cut-through or store-and-forward" },
        { "start", TRNI_KEY_REAL, TRNI_AT(start_s), -6, TRNI_TIME, { NULL }, "a time in us, such as 1.4" },
        { "local", TRNI_KEY_REAL, TRNI_AT(local_latency_s), -6, TRNI_TIME, { NULL }, "a time in us, such as 0.1" },
        { "hbm", TRNI_KEY_REAL, TRNI_AT(hbm_bytes_per_s), 9, TRNI_LIMIT, { NULL }, "a rate in GB/s, such as 2900" },
        { "dma", TRNI_KEY_REAL, TRNI_AT(dma_bytes_per_s), 9, TRNI_LIMIT, { NULL }, "a rate in GB/s, such as 2944" },
        { "reduce_pass",
          TRNI_KEY_REAL,
          TRNI_AT(reduce_pass),
          0,
          TRNI_PASSES,
          { NULL },
          "a number of passes, such as 0.5" },
        { "ranks_per_chip",
          TRNI_KEY_WHOLE,
          TRNI_AT(ranks_per_chip),
          16,
          TRNI_RATE,
          { NULL },
          "a whole number from 1 to 65536" },
        { "down", TRNI_KEY_DOWN, 0, 0, TRNI_RATE, { NULL }, "" },
        { "slow", TRNI_KEY_SLOW, 0, 0, TRNI_RATE, { NULL }, "" },
    };
#undef TRNI_AT
    return key;
}

TRNI_FN const trni_file_key *trni_level_keys(void)
{
#define TRNI_AT(field) offsetof(trn_level, field)
    static const trni_file_key key[TRNI_LEVEL_KEYS] = {
        { "size", TRNI_KEY_WHOLE, TRNI_AT(size), 27, TRNI_RATE, { NULL }, "a whole number from 1 to 134217728" },
        { "wiring",
          TRNI_KEY_WORD,
          TRNI_AT(wiring),
          0,
          TRNI_RATE,
          { "none", "ring", "full", "switch", "graph", NULL },
          "ring, full, switch, graph or none" },
        { "planes", TRNI_KEY_WHOLE, TRNI_AT(planes), 27, TRNI_RATE, { NULL }, "a whole number from 1 to 134217728" },
        { "rate", TRNI_KEY_REAL, TRNI_AT(bytes_per_s), 9, TRNI_LIMIT, { NULL }, "a rate in GB/s, such as 128" },
        { "latency", TRNI_KEY_REAL, TRNI_AT(latency_s), -6, TRNI_TIME, { NULL }, "a time in us, such as 0.1" },
        { "kind",
          TRNI_KEY_WORD,
          TRNI_AT(kind),
          0,
          TRNI_RATE,
          { "plain", "torus", "peer", "switch", "efa", NULL },
          "plain, torus, peer, switch or efa" },
        { "duplex", TRNI_KEY_FLAG, TRNI_AT(half_duplex), 0, TRNI_RATE, { "full", "half", NULL }, "full or half" },
        { "link", TRNI_KEY_LINK, 0, 0, TRNI_RATE, { NULL }, "" },
    };
#undef TRNI_AT
    return key;
}

/* ---- reading ---- */

typedef struct trni_net_file {
    trn_topology net;
    int line, level; /* -1: before the first level */
    int level_line[TRN_MAX_LEVELS], wire_line[TRN_MAX_WIRES];
    unsigned seen, seen_here; /* keys, as bits: of the whole, and of this level */
    trni_phrase fault[TRN_MAX_FAULTS];
    int fault_line[TRN_MAX_FAULTS], faults;
    bool fault_slow[TRN_MAX_FAULTS];
    trn_error *error;
} trni_net_file;

TRNI_FN trn_status trni_file_expected(const trni_net_file *f, const trni_file_key *key, trni_phrase value)
{
    char shown[TRNI_SHOWN], range[48] = "";
    const bool real = key->kind == TRNI_KEY_REAL;
    if (real) trni_legal_text(key->unit, key->power, range);
    return trni_fail(f->error, TRN_EINVAL, "line %d: %s = %s: expected %s%s%s%s", f->line, key->name,
                     trni_phrase_show(value, shown), key->expected, real ? " (" : "", range, real ? ")" : "");
}

TRNI_FN bool trni_name_holds(trni_phrase p)
{
    for (size_t i = 0; i < p.length; i++)
        if ((unsigned char)p.at[i] < 0x20 || p.at[i] == 0x7f || p.at[i] == '#') return false;
    return p.length > 0;
}

TRNI_FN bool trni_level_name_holds(trni_phrase p)
{
    for (size_t i = 0; i < p.length; i++)
        if (!trni_plain_letter(p.at[i]) && (i == 0 || (!trni_is_digit(p.at[i]) && !strchr("_-.", p.at[i]))))
            return false;
    return p.length > 0 && p.length < sizeof(((trn_level *)0)->label);
}

TRNI_FN bool trni_file_system(trni_phrase value, trn_system *system)
{
    char name[64];
    if (value.length >= sizeof name) return false;
    memcpy(name, value.at, value.length);
    name[value.length] = 0;
    *system = trn_system_from_name(name);
    return *system < TRN_SYSTEM_COUNT;
}

TRNI_FN int trni_file_word(const trni_file_key *key, trni_phrase value)
{
    int i = 0;
    while (key->word[i] && !trni_phrase_is(value, key->word[i])) i++;
    return key->word[i] ? i : -1;
}

/* The value of one key, put where it belongs. False: it is not what was expected. */
TRNI_FN bool trni_file_value(const trni_file_key *key, trni_phrase value, void *owner)
{
    unsigned char *field = (unsigned char *)owner + key->offset;
    double real;
    const int word = trni_file_word(key, value);
    int whole = word;
    bool flag = word == 1;
    switch (key->kind) {
    case TRNI_KEY_NAME:
        if (!trni_name_holds(value) || value.length >= sizeof(((trn_topology *)0)->name)) return false;
        memset(field, 0, sizeof(((trn_topology *)0)->name));
        memcpy(field, value.at, value.length);
        return true;
    case TRNI_KEY_SYSTEM: return trni_file_system(value, (trn_system *)(void *)field);
    case TRNI_KEY_REAL:
        if (!trni_phrase_decimal(value, key->power, &real) || !trni_amount_is(key->unit, real)) return false;
        memcpy(field, &real, sizeof real);
        return true;
    case TRNI_KEY_WHOLE:
        if (!trni_phrase_whole(value, &whole) || whole < 1 || whole > 1 << key->power) return false;
        memcpy(field, &whole, sizeof whole);
        return true;
    case TRNI_KEY_FLAG:
        if (word >= 0) memcpy(field, &flag, sizeof flag);
        return word >= 0;
    default:
        if (word >= 0) memcpy(field, &whole, sizeof whole); /* enumerations are ints (trn_base.h) */
        return word >= 0;
    }
}

TRNI_FN trn_status trni_file_fault(trni_net_file *f, trni_phrase value, bool slow)
{
    if (f->faults == TRN_MAX_FAULTS)
        return trni_fail(f->error, TRN_ELIMIT, "line %d: more than %d faults", f->line, (int)TRN_MAX_FAULTS);
    f->fault[f->faults] = value; /* the network has to be known first */
    f->fault_slow[f->faults] = slow;
    f->fault_line[f->faults++] = f->line;
    return TRN_OK;
}

TRNI_FN trn_status trni_file_link(trni_net_file *f, trni_phrase value)
{
    trn_error why;
    if (f->net.wires == TRN_MAX_WIRES)
        return trni_fail(f->error, TRN_ELIMIT, "line %d: more than %d links in all graphs together", f->line,
                         (int)TRN_MAX_WIRES);
    const trn_status status = trni_link_read(value, f->level, &f->net.wire[f->net.wires], &why);
    if (status != TRN_OK) return trni_fail(f->error, status, "line %d: %.230s", f->line, why.text);
    f->wire_line[f->net.wires++] = f->line;
    return TRN_OK;
}

/* The links of the level at hand: the level's numbers where they have none, and are they a graph? */
TRNI_FN trn_status trni_file_graph(trni_net_file *f)
{
    const trn_level *l = &f->net.level[f->level];
    const bool graph = l->wiring == TRN_WIRING_GRAPH;
    trn_error why;
    char ends[16];
    int wire;
    for (int i = 0; i < f->net.wires; i++) {
        trn_wire *w = &f->net.wire[i];
        if (w->level != f->level) continue;
        if (!graph)
            return trni_fail(f->error, TRN_EINVAL, "line %d: links are listed for wiring = graph, and level %s is %s",
                             f->wire_line[i], l->label, trni_level_keys()[1].word[l->wiring]);
        if (!trni_link_complete(w, l))
            return trni_fail(f->error, TRN_EINVAL, "line %d: link %s has no rate, and level %s gives none",
                             f->wire_line[i], trni_wire_text(w, ends), l->label);
    }
    const trn_status status = graph ? trni_graph_check(&f->net, f->level, &wire, &why) : TRN_OK;
    if (status == TRN_OK) return TRN_OK;
    return trni_fail(f->error, status, "line %d: %.230s", wire < 0 ? f->level_line[f->level] : f->wire_line[wire],
                     why.text);
}

/* Its number in a table; -1: it is not there. */
TRNI_FN int trni_file_find(const trni_file_key *key, int keys, trni_phrase name)
{
    int i = 0;
    while (i < keys && !trni_phrase_is(name, key[i].name)) i++;
    return i < keys ? i : -1;
}

TRNI_FN trn_status trni_file_set(trni_net_file *f, const trni_file_key *key, unsigned *seen, unsigned bit, void *owner,
                                 trni_phrase value)
{
    if (*seen & bit) return trni_fail(f->error, TRN_EINVAL, "line %d: %s is given twice", f->line, key->name);
    *seen |= bit;
    return trni_file_value(key, value, owner) ? TRN_OK : trni_file_expected(f, key, value);
}

TRNI_FN trn_status trni_file_pair(trni_net_file *f, trni_phrase name, trni_phrase value)
{
    const trni_file_key *of_net = trni_net_keys(), *of_level = trni_level_keys();
    const int n = trni_file_find(of_net, TRNI_NET_KEYS, name), l = trni_file_find(of_level, TRNI_LEVEL_KEYS, name);
    char shown[TRNI_SHOWN];
    if (n < 0 && l < 0)
        return trni_fail(f->error, TRN_EINVAL, "line %d: \"%s\" is no key of a network", f->line,
                         trni_phrase_show(name, shown));
    if (n >= 0 && of_net[n].kind >= TRNI_KEY_DOWN) return trni_file_fault(f, value, of_net[n].kind == TRNI_KEY_SLOW);
    if (n >= 0 && f->level >= 0)
        return trni_fail(f->error, TRN_EINVAL,
                         "line %d: %s belongs to the whole network, before the first [level NAME]", f->line,
                         of_net[n].name);
    if (n >= 0) return trni_file_set(f, &of_net[n], &f->seen, 1u << n, &f->net, value);
    if (f->level < 0)
        return trni_fail(f->error, TRN_EINVAL, "line %d: %s belongs to a level, and no [level NAME] stands before it",
                         f->line, of_level[l].name);
    if (of_level[l].kind == TRNI_KEY_LINK) return trni_file_link(f, value);
    return trni_file_set(f, &of_level[l], &f->seen_here, 1u << l, &f->net.level[f->level], value);
}

/* Is the level at hand all there? */
TRNI_FN trn_status trni_file_end_level(trni_net_file *f)
{
    enum { SIZE = 1u << 0, WIRING = 1u << 1, RATE = 1u << 3 };
    if (f->level < 0) return TRN_OK;
    const trn_level *l = &f->net.level[f->level];
    const char *lacks = !(f->seen_here & SIZE)     ? "size"
                        : !(f->seen_here & WIRING) ? "wiring"
                        : l->wiring != TRN_WIRING_NONE && l->wiring != TRN_WIRING_GRAPH && !(f->seen_here & RATE)
                            ? "rate"
                            : NULL;
    if (!lacks) return trni_file_graph(f);
    return trni_fail(f->error, TRN_EINVAL, "line %d: level %s has no %s", f->level_line[f->level], l->label, lacks);
}

/* "[level NAME]" */
TRNI_FN trn_status trni_file_level(trni_net_file *f, trni_phrase line)
{
    const trn_status status = trni_file_end_level(f);
    if (status != TRN_OK) return status;
    const bool whole = line.length > 8 && line.at[line.length - 1] == ']' && memcmp(line.at, "[level", 6) == 0 &&
                       trni_blank(line.at[6]);
    const trni_phrase name = trni_phrase_trim(trni_phrase_of(line.at + 6, whole ? line.length - 7 : 0));
    if (!whole || !trni_level_name_holds(name))
        return trni_fail(f->error, TRN_EINVAL,
                         "line %d: expected [level NAME], a name of up to 23 letters, digits, _, - and ., beginning "
                         "with a letter",
                         f->line);
    if (f->level + 1 == TRN_MAX_LEVELS)
        return trni_fail(f->error, TRN_ELIMIT, "line %d: more than %d levels", f->line, (int)TRN_MAX_LEVELS);
    for (int i = 0; i <= f->level; i++)
        if (trni_phrase_is(name, f->net.level[i].label))
            return trni_fail(f->error, TRN_EINVAL, "line %d: level %s is there already, in line %d", f->line,
                             f->net.level[i].label, f->level_line[i]);
    trn_level *l = &f->net.level[++f->level];
    *l = trni_topology_level("level", TRN_WIRING_NONE, 1, 0, 0);
    l->rate.where = l->latency.where = "given by a file";
    memcpy(l->label, name.at, name.length);
    f->level_line[f->level] = f->line;
    f->seen_here = 0;
    return TRN_OK;
}

TRNI_FN trn_status trni_file_line(trni_net_file *f, trni_phrase line)
{
    size_t end = 0, equals = 0;
    for (; end < line.length && line.at[end] != '#'; end++)
        if ((unsigned char)line.at[end] < 0x20 && line.at[end] != '\t' &&
            !(line.at[end] == '\r' && end + 1 == line.length))
            return trni_fail(f->error, TRN_EINVAL, "line %d: a byte of value %d is no text", f->line,
                             (int)(unsigned char)line.at[end]);
    if (end && line.at[end - 1] == '\r') end--;
    line = trni_phrase_trim(trni_phrase_of(line.at, end));
    if (line.length == 0) return TRN_OK;
    if (line.at[0] == '[') return trni_file_level(f, line);
    while (equals < line.length && line.at[equals] != '=') equals++;
    if (equals == line.length)
        return trni_fail(f->error, TRN_EINVAL, "line %d: expected key = value, or [level NAME]", f->line);
    return trni_file_pair(f, trni_phrase_trim(trni_phrase_of(line.at, equals)),
                          trni_phrase_trim(trni_phrase_of(line.at + equals + 1, line.length - equals - 1)));
}

/* ---- is it a network ---- */

TRNI_FN trn_status trni_file_chips(trni_net_file *f)
{
    int64_t chips = 1;
    if (f->level < 0)
        return trni_fail(f->error, TRN_EINVAL, "line %d: the file ends without a [level NAME]", f->line ? f->line : 1);
    f->net.levels = f->level + 1;
    for (int l = 0; l < f->net.levels; l++) {
        chips *= f->net.level[l].size;
        if (chips > TRNI_MAX_CHIPS)
            return trni_fail(f->error, TRN_ELIMIT, "line %d: with level %s the levels multiply to more than %d chips",
                             f->level_line[l], f->net.level[l].label, (int)TRNI_MAX_CHIPS);
    }
    f->net.chips = (int)chips;
    return TRN_OK;
}

TRNI_FN trn_status trni_file_end(trni_net_file *f)
{
    enum { LOCAL = 1u << 4 };
    trn_error why;
    trn_status status = trni_file_end_level(f);
    if (status == TRN_OK) status = trni_file_chips(f);
    for (int l = 0; l < f->net.levels && status == TRN_OK; l++)
        if ((status = trni_level_check(&f->net, l, &why)) != TRN_OK)
            return trni_fail(f->error, status, "line %d: %.200s", f->level_line[l], why.text);
    if (status == TRN_OK && !(f->seen & LOCAL)) f->net.local_latency_s = f->net.level[0].latency_s;
    if (status == TRN_OK) status = trn_topology_check(&f->net, f->error);
    for (int i = 0; i < f->faults && status == TRN_OK; i++)
        if ((status = trni_fault_read(&f->net, f->fault[i], f->fault_slow[i], &why)) != TRN_OK)
            return trni_fail(f->error, status, "line %d: %.200s", f->fault_line[i], why.text);
    return status;
}

TRNI_FN void trni_file_begin(trni_net_file *f, trn_error *error)
{
    memset(f, 0, sizeof *f);
    f->net = trn_topology_hierarchy(NULL, 0, NULL);
    trn_source *const known[] = {
        &f->net.start, &f->net.local, &f->net.hbm, &f->net.dma, &f->net.reduce, &f->net.ranks
    };
    for (int i = 0; i < 6; i++) known[i]->where = "given by a file";
    f->level = -1;
    f->error = error;
}

TRN_API trn_status trn_topology_load(const char *text, size_t length, trn_topology *net, trn_error *error)
{
    TRNI_FLOATS;
    trni_net_file f;
    trn_status status = TRN_OK;
    if (!net || (!text && length)) return trni_fail(error, TRN_EINVAL, "%s is NULL", net ? "text" : "net");
    trni_file_begin(&f, error);
    for (size_t at = 0, end; at < length && status == TRN_OK; at = end + 1) {
        const char *newline = (const char *)memchr(text + at, '\n', length - at);
        end = newline ? (size_t)(newline - text) : length;
        f.line++;
        status = trni_file_line(&f, trni_phrase_of(text + at, end - at));
    }
    if (status == TRN_OK) status = trni_file_end(&f);
    if (status == TRN_OK) *net = f.net;
    return status;
}

/* ---- writing ---- */

typedef struct trni_net_writer {
    trn_trace_write *write;
    void *user;
} trni_net_writer;

TRNI_FN void trni_file_put(const trni_net_writer *w, const char *key, const char *value)
{
    char line[160];
    snprintf(line, sizeof line, "%s = %s\n", key, value);
    w->write(w->user, line, strlen(line));
}

/* A key and its value; flags and systems only where there is something to say. */
TRNI_FN void trni_file_put_key(const trni_net_writer *w, const trni_file_key *key, const void *owner)
{
    const unsigned char *field = (const unsigned char *)owner + key->offset;
    char text[TRNI_DECIMAL];
    double real;
    int whole = 0;
    bool flag;
    if (key->kind == TRNI_KEY_NAME) {
        trni_file_put(w, key->name, (const char *)field);
    } else if (key->kind == TRNI_KEY_SYSTEM) {
        memcpy(&whole, field, sizeof whole);
        if (whole < TRN_SYSTEM_COUNT) trni_file_put(w, key->name, trn_system_name((trn_system)whole));
    } else if (key->kind == TRNI_KEY_REAL) {
        memcpy(&real, field, sizeof real);
        trni_decimal_print(real, key->power, text);
        trni_file_put(w, key->name, text);
    } else if (key->kind == TRNI_KEY_FLAG) {
        memcpy(&flag, field, sizeof flag);
        if (flag) trni_file_put(w, key->name, key->word[1]);
    } else if (key->kind <= TRNI_KEY_WORD) {
        memcpy(&whole, field, sizeof whole);
        snprintf(text, sizeof text, "%d", whole);
        trni_file_put(w, key->name, key->kind == TRNI_KEY_WORD ? key->word[whole] : text);
    }
}

TRNI_FN void trni_file_put_level(const trni_net_writer *w, const trn_topology *net, int at)
{
    enum { PLANES = 2, RATE = 3, LATENCY = 4, KIND = 5 };
    const trn_level *level = &net->level[at];
    const trni_file_key *key = trni_level_keys();
    char head[48], line[160];
    snprintf(head, sizeof head, "\n[level %s]\n", trn_level_name(level));
    w->write(w->user, head, strlen(head));
    for (int i = 0; i < TRNI_LEVEL_KEYS; i++) {
        if (i == PLANES && level->planes < 2) continue;
        if ((i == RATE || i == LATENCY) && (level->wiring == TRN_WIRING_NONE || level->wiring == TRN_WIRING_GRAPH) &&
            !(level->bytes_per_s > 0) && !(level->latency_s > 0))
            continue;
        if (i == KIND && level->kind == TRN_LINK_PLAIN) continue;
        trni_file_put_key(w, &key[i], level);
    }
    for (int i = 0; i < net->wires; i++) {
        if (net->wire[i].level != at) continue;
        trni_link_print(&net->wire[i], level, line);
        w->write(w->user, line, strlen(line));
    }
}

/* Can a line hold each name, and does each name one level? */
TRNI_FN trn_status trni_file_names(const trn_topology *net, trn_error *error)
{
    const size_t length = strlen(net->name);
    if (!trni_name_holds(trni_phrase_of(net->name, length)) || trni_blank(net->name[0]) ||
        trni_blank(net->name[length - 1]))
        return trni_fail(error, TRN_EUNSUPPORTED, "no line of a file can hold the network's name");
    for (int l = 0; l < net->levels; l++) {
        const char *name = trn_level_name(&net->level[l]);
        if (!trni_level_name_holds(trni_phrase_of(name, strlen(name))))
            return trni_fail(error, TRN_EUNSUPPORTED, "no line of a file can hold the name of level %d", l);
        for (int i = 0; i < l; i++)
            if (strcmp(name, trn_level_name(&net->level[i])) == 0)
                return trni_fail(error, TRN_EUNSUPPORTED, "levels %d and %d are both called %s", i, l, name);
    }
    return TRN_OK;
}

TRN_API trn_status trn_topology_save(const trn_topology *net, trn_trace_write *write, void *user, trn_error *error)
{
    TRNI_FLOATS;
    trni_net_writer w;
    char line[160];
    trn_status status = trn_topology_check(net, error);
    if (status == TRN_OK) status = trni_file_names(net, error);
    if (status != TRN_OK) return status;
    if (!write) return trni_fail(error, TRN_EINVAL, "write is NULL: the text has nowhere to go");
    w.write = write;
    w.user = user;
    for (int i = 0; i < TRNI_NET_KEYS; i++) trni_file_put_key(&w, &trni_net_keys()[i], net);
    for (int l = 0; l < net->levels; l++) trni_file_put_level(&w, net, l);
    if (net->faults) write(user, "\n", 1);
    for (int i = 0; i < net->faults && trn_topology_fault_text(net, i, line, sizeof line - 1); i++) {
        trni_copy_text(line + strlen(line), 2, "\n");
        write(user, line, strlen(line));
    }
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_FILE_H */

/* fuzz_topology.c - files of networks, whole and spoilt: what is accepted is a network that comes back from its own
 * text and on which collectives have a time; what is refused names its line, and leaves everything alone.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_topology [count] [seed]        default: 20000 texts, 500000 with TRN_TEST_LEVEL=2; seed 1
 */
#include "fuzz/fail.h"

#include "trnmath/trn_collective_cost.h"
#include "trnmath/trn_topology.h"

enum { ROOM = 4000 };

#include "fuzz/line.h"

/* ---- texts ---- */

static void put_number(line *l)
{
    static const char *const odd[] = { "0",
                                       "-1",
                                       "1e400",
                                       "1e-400",
                                       "1e-320",
                                       "4e-324",
                                       "1e300",
                                       "1e18",
                                       ".",
                                       "1.",
                                       "00.10",
                                       "inf",
                                       "nan",
                                       "1e",
                                       "9999999999",
                                       "0x1",
                                       "1,5",
                                       "4503599627370497.5",
                                       "12345678901234567890123456789012345678901" };
    char text[32];
    if (one_in(60)) {
        put(l, odd[below((int)(sizeof odd / sizeof odd[0]))]);
        return;
    }
    snprintf(text, sizeof text, one_in(3) ? "%d.%d" : one_in(6) ? "%de%d" : "%d", 1 + below(5), below(12));
    put(l, text);
}

static void put_chip(line *l)
{
    char text[16];
    snprintf(text, sizeof text, "%d", below(one_in(30) ? 200 : 4));
    put(l, one_in(20) ? "y" : text);
}

static void put_fault(line *l)
{
    const bool slow = one_in(2), link = one_in(2);
    put(l, slow ? "slow = " : "down = ");
    put(l, link ? "link " : "chip ");
    put_chip(l);
    if (link) put(l, one_in(3) ? "<->" : "->"), put_chip(l);
    if (slow) put(l, one_in(10) ? " 0" : " 0.5");
    put(l, "\n");
}

static void put_pair(line *l, const char *key, const char *const *word, int words)
{
    put(l, key);
    put(l, " = ");
    if (words)
        put(l, word[below(words)]);
    else
        put_number(l);
    put(l, one_in(10) ? " # so it is\n" : "\n");
}

/* A tree of all chips, as a rule, and a few links more; now and then one that cannot be. */
static void put_links(line *l, int size)
{
    static const char *const arrow[] = { "-", "<->", "->", " - ", "" };
    const int links = size - 1 + below(2);
    for (int i = 1; i <= links && i < 40; i++) {
        char text[48];
        const bool tree = i < size;
        const int from = tree ? i : below(size), to = tree ? below(i) : below(one_in(20) ? 70 : size);
        snprintf(text, sizeof text, "link = %d%s%d", from,
                 arrow[one_in(20) ? below(5)
                       : tree     ? below(2)
                                  : below(3)],
                 to);
        if (from == to && !one_in(20)) continue;
        put(l, text);
        if (one_in(3)) put(l, one_in(2) ? " " : " rate "), put_number(l);
        if (one_in(4)) put(l, " latency "), put_number(l);
        if (one_in(5)) put(l, one_in(2) ? " x 2" : " x3");
        put(l, one_in(10) ? " # so it is\n" : "\n");
    }
}

static void put_level(line *l, int number)
{
    static const char *const wiring[] = { "ring", "full", "switch", "none", "graph" };
    static const char *const kind[] = { "plain", "torus", "peer", "switch", "efa" };
    static const char *const duplex[] = { "full", "half" };
    static const char *const name[] = { "[level x]\n", "[level y]\n", "[level rack-1]\n", "[level z.a]\n",
                                        "[level _]\n" };
    put(l, name[one_in(30) ? 4 : number % 4]);
    put(l, "size = ");
    char size[16];
    const int chips = one_in(20) ? below(100000) : 1 + below(5);
    const bool graph = one_in(3);
    snprintf(size, sizeof size, "%d\n", chips);
    put(l, size);
    if (!one_in(40)) put_pair(l, "wiring", graph ? wiring + 4 : wiring, graph ? 1 : 4);
    if ((graph && !one_in(20)) || one_in(40)) put_links(l, chips ? chips : 1);
    if (!one_in(20)) put_pair(l, "rate", NULL, 0);
    if (one_in(2)) put_pair(l, "latency", NULL, 0);
    if (one_in(3)) put_pair(l, "kind", kind, 5);
    if (one_in(4)) put_pair(l, "duplex", duplex, 2);
    if (one_in(12)) put(l, "planes = 2\n");
    if (one_in(8)) put_fault(l);
}

static void put_text(line *l)
{
    static const char *const mode[] = { "cut-through", "store-and-forward" };
    static const char *const system[] = { "trn1.32xlarge", "trn2.48xlarge", "trn3-gen2-ultraserver" };
    static const char *const real[] = { "start", "local", "hbm", "dma", "reduce_pass" };
    if (one_in(2)) put(l, "name = a network\n");
    if (one_in(3)) put_pair(l, "mode", mode, 2);
    if (one_in(3)) put_pair(l, "system", system, 3);
    for (int i = 0; i < 5; i++)
        if (one_in(3)) put_pair(l, real[i], NULL, 0);
    if (one_in(3)) put(l, "ranks_per_chip = 2\n");
    for (int levels = 1 + below(3), i = 0; i < levels; i++) put_level(l, i);
    while (one_in(3)) put_fault(l);
}

static void spoil(line *l)
{
    static const char *const piece[] = { "\n", "=",    "#", "[level q]", "down = chip 0\n", "\r", " ",
                                         "->", "\x01", "]", "\xff",      "size = 2\n" };
    const size_t at = l->length ? (size_t)below((int)l->length) : 0;
    line rest = { "", 0 };
    put(&rest, l->text + at);
    l->text[l->length = at] = 0;
    const int way = below(5);
    if (way == 0) put(l, piece[below((int)(sizeof piece / sizeof piece[0]))]);
    if (way == 3) put(l, rest.text);
    if (way == 4 && rest.length) rest.text[0] = (char)(rest.text[0] ^ 1 << below(7));
    if (way == 4 && rest.length && !rest.text[0]) rest.text[0] = '~';
    if (way != 1) put(l, rest.text + (way == 2 && rest.length));
}

/* ---- what must hold ---- */

static void keep(void *user, const char *text, size_t bytes)
{
    line *l = (line *)user;
    if (l->length + bytes > ROOM) fail_msg("a network's text is longer than %d bytes", (int)ROOM);
    memcpy(l->text + l->length, text, bytes);
    l->length += bytes;
    l->text[l->length] = 0;
}

static trn_status load(const line *l, trn_topology *net, trn_error *why)
{
    char *exact = (char *)malloc(l->length ? l->length : 1); /* one byte too many is seen by a sanitizer */
    if (!exact) abort();
    memcpy(exact, l->text, l->length);
    const trn_status status = trn_topology_load(exact, l->length, net, why);
    free(exact);
    return status;
}

static int lines(const line *l)
{
    int count = 1;
    for (size_t i = 0; i + 1 < l->length; i++) count += l->text[i] == '\n';
    return count;
}

static void check_refused(const line *l, const trn_topology *net, const trn_error *why, trn_status status)
{
    trn_topology before;
    int number = 0, used = 0;
    memset(&before, 0x5a, sizeof before);
    if (memcmp(net, &before, sizeof before) != 0) fail_msg("refused, and the network was written:\n%s", l->text);
    if (why->status != status) fail_msg("status %d and %d", (int)status, (int)why->status);
    const bool named = sscanf(why->text, "line %d: %n", &number, &used) == 1 && used > 0;
    if (named && number >= 1 && number <= lines(l)) return;
    for (const char *field = "start_s local_latency_s hbm_bytes_per_s dma_bytes_per_s reduce_pass"; field && *field;) {
        const size_t n = strcspn(field, " "); /* amounts that are checked for the whole */
        if (strncmp(why->text, field, n) == 0) return;
        field += n + (field[n] == ' ');
    }
    fail_msg("\"%s\" names no line of\n%s", why->text, l->text);
}

static void check_round_trip(const trn_topology *net)
{
    static line text, again;
    trn_topology copy;
    trn_error why;
    text.length = again.length = 0;
    why.text[0] = 0;
    if (trn_topology_save(net, keep, &text, &why) != TRN_OK) fail_msg("a loaded network has no text: %s", why.text);
    if (load(&text, &copy, &why) != TRN_OK) fail_msg("%s, of its own text\n%s", why.text, text.text);
    if (trn_topology_save(&copy, keep, &again, &why) != TRN_OK || strcmp(text.text, again.text) != 0)
        fail_msg("a network's text is\n%s\nand comes back as\n%s", text.text, again.text);
}

static void check_times(const trn_topology *net, long *impossible)
{
    trn_collective_args args;
    trn_cost cost;
    trn_error why;
    memset(&args, 0, sizeof args);
    args.net = net;
    args.op = (trn_collective)below(TRN_COLLECTIVE_COUNT);
    args.bytes = 1 << below(24);
    args.uncalibrated = one_in(2);
    args.error = &why;
    if (net->chips > 64) return;
    if (trn_collective_cost(&args, &cost) != TRN_OK) {
        if (!strstr(why.text, "impossible")) fail_msg("%s", why.text);
        ++*impossible;
        return;
    }
    if (!(cost.time_s >= 0 && cost.time_s < 1e30 && cost.expected_s >= cost.time_s && cost.expected_s < 1e30))
        fail_msg("%s takes %g, expected %g: no time", trn_collective_name(args.op), cost.time_s, cost.expected_s);
    if (!(cost.time_s >= cost.lower_bound_s * (1 - 1e-9)))
        fail_msg("%s takes %g, less than the bound of %g", trn_collective_name(args.op), cost.time_s,
                 cost.lower_bound_s);
}

int main(int argc, char **argv)
{
    long accepted = 0, refused = 0, impossible = 0;
    fuzzing_start(argc, argv, 20000, 500000);
    while (fuzzing_next(&rng)) {
        static line l;
        trn_topology net;
        trn_error why;
        l.text[l.length = 0] = 0;
        put_text(&l);
        for (int wounds = one_in(3) ? 1 + below(2) : 0; wounds > 0; wounds--) spoil(&l);
        memset(&net, 0x5a, sizeof net);
        memset(&why, 0, sizeof why);
        const trn_status status = load(&l, &net, &why);
        refused += status != TRN_OK;
        accepted += status == TRN_OK;
        if (status != TRN_OK) {
            check_refused(&l, &net, &why, status);
            continue;
        }
        check_round_trip(&net);
        check_times(&net, &impossible);
    }
    const long count = fuzzing_end();
    printf("%ld texts refused, %ld accepted, on %ld of which a collective is impossible\n", refused, accepted,
           impossible);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (refused > count / 20 && accepted > count / 20) ? 0 : 1;
}

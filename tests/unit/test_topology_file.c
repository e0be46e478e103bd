/* test_topology_file.c - networks as text: every preset, every sentence, any network there and back.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_topology.h"
#include "twin/cases.h"

/* ---- texts ---- */

typedef struct text {
    char bytes[16384];
    size_t length;
} text;

static void keep(void *user, const char *bytes, size_t n)
{
    text *t = (text *)user;
    assert_true(t->length + n < sizeof t->bytes);
    memcpy(t->bytes + t->length, bytes, n);
    t->length += n;
    t->bytes[t->length] = 0;
}

static void save(const trn_topology *net, text *t)
{
    trn_error why;
    t->length = 0;
    why.text[0] = 0;
    if (trn_topology_save(net, keep, t, &why) != TRN_OK) fail_msg("%s", why.text);
}

/* From memory that ends where the text ends. */
static trn_status load(const char *bytes, size_t length, trn_topology *net, trn_error *why)
{
    char *exact = (char *)malloc(length ? length : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, length);
    const trn_status status = trn_topology_load(exact, length, net, why);
    memset(exact, '!', length);
    free(exact);
    return status;
}

/* ---- field by field; numbers by their bits ---- */

static bool alike(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static const char *level_differs(const trn_level *a, const trn_level *b)
{
    return strcmp(trn_level_name(a), trn_level_name(b)) != 0 ? "name"
           : a->wiring != b->wiring                          ? "wiring"
           : a->size != b->size                              ? "size"
           : (a->planes > 1 ? a->planes : 1) != b->planes    ? "planes"
           : a->kind != b->kind                              ? "kind"
           : !alike(a->bytes_per_s, b->bytes_per_s)          ? "bytes_per_s"
           : !alike(a->latency_s, b->latency_s)              ? "latency_s"
           : a->half_duplex != b->half_duplex                ? "half_duplex"
                                                             : NULL;
}

/* The first field of b, a file's, that is not that of a. */
static const char *differs(const trn_topology *a, const trn_topology *b)
{
    const char *field = strcmp(a->name, b->name) != 0                    ? "name"
                        : a->chips != b->chips                           ? "chips"
                        : a->levels != b->levels                         ? "levels"
                        : !alike(a->start_s, b->start_s)                 ? "start_s"
                        : !alike(a->local_latency_s, b->local_latency_s) ? "local_latency_s"
                        : !alike(a->hbm_bytes_per_s, b->hbm_bytes_per_s) ? "hbm_bytes_per_s"
                        : !alike(a->dma_bytes_per_s, b->dma_bytes_per_s) ? "dma_bytes_per_s"
                        : !alike(a->reduce_pass, b->reduce_pass)         ? "reduce_pass"
                        : a->ranks_per_chip != b->ranks_per_chip         ? "ranks_per_chip"
                        : a->store_and_forward != b->store_and_forward   ? "store_and_forward"
                        : a->system != b->system                         ? "system"
                        : a->faults != b->faults                         ? "faults"
                                                                         : NULL;
    for (int l = 0; l < a->levels && !field; l++) field = level_differs(&a->level[l], &b->level[l]);
    for (int i = 0; i < a->faults && !field; i++)
        if (a->fault[i].kind != b->fault[i].kind || a->fault[i].at != b->fault[i].at ||
            !alike(a->fault[i].share, b->fault[i].share))
            field = "fault";
    return field;
}

/* ---- presets ---- */

static bool read_example(const char *name, text *t)
{
    char path[512];
    snprintf(path, sizeof path, TRN_SOURCE_DIR "/examples/topologies/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    t->length = fread(t->bytes, 1, sizeof t->bytes, file);
    fclose(file);
    return true;
}

enum { GRAPHS = 3 }; /* files that are of no system: test_topology_links.c reads them */

static int examples(void)
{
    DIR *folder = opendir(TRN_SOURCE_DIR "/examples/topologies");
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *d; (d = readdir(folder)) != NULL;) count += strstr(d->d_name, ".txt") != NULL;
    closedir(folder);
    return count;
}

static void every_preset_is_a_file(void **state)
{
    static const char *const preset[] = { "sa", "doc", "spec" };
    static text t;
    int found = 0;
    (void)state;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++)
        for (int i = 0; i < 3 * 9; i++) {
            char words[32], name[128];
            const int p = i / 9, planes = i % 9 + 1;
            const bool racks = strncmp(trn_system_name((trn_system)s), "trn3", 4) == 0;
            snprintf(words, sizeof words, planes > 1 ? "%s/planes=%d" : "%s", preset[p], planes);
            const trn_topology net = trn_topology_preset((trn_system)s, words);
            if (!net.chips || (!racks && p > 0)) continue;
            snprintf(name, sizeof name, planes > 1 ? "%s%s%s-planes-%d.txt" : "%s%s%s.txt",
                     trn_system_name((trn_system)s), p ? "-" : "", p ? preset[p] : "", planes);
            trn_topology mine;
            trn_error why;
            if (!read_example(name, &t)) fail_msg("there is no examples/topologies/%s", name);
            if (load(t.bytes, t.length, &mine, &why) != TRN_OK) fail_msg("%s: %s", name, why.text);
            if (differs(&net, &mine)) fail_msg("%s: %s is not that of the preset", name, differs(&net, &mine));
            found++;
        }
    assert_int_equal(found + GRAPHS, examples()); /* and no file is of another network, but those of graphs */
}

/* ---- any network ---- */

static double any_number(uint64_t *rng, double most)
{
    const int digits = cases_below(rng, 17);
    double x = (double)(cases_next(rng) >> 11) * 0x1p-53 * most;
    char words[40];
    if (cases_one_in(rng, 8)) return 0;
    if (cases_one_in(rng, 2)) snprintf(words, sizeof words, "%.*e", digits, x), x = strtod(words, NULL);
    return x;
}

static trn_topology any_network(uint64_t *rng)
{
    static const char *const name[] = { "x", "y", "z", "rack", "a.b-c_9", "A", "abcdefghijklmnopqrstuvw", "q" };
    trn_topology net;
    trn_level level[TRN_MAX_LEVELS];
    do {
        const int levels = 1 + cases_below(rng, 5), first = cases_below(rng, 3);
        memset(level, 0, sizeof level);
        for (int l = 0; l < levels; l++) {
            level[l].name = name[first + l];
            level[l].wiring = (trn_wiring)cases_below(rng, 4);
            level[l].size = 1 + cases_below(rng, 5);
            level[l].kind = (trn_link_kind)cases_below(rng, 5);
            level[l].bytes_per_s = any_number(rng, 1e15);
            level[l].latency_s = any_number(rng, 1e-3);
            level[l].half_duplex = cases_one_in(rng, 3);
            if (level[l].wiring == TRN_WIRING_SWITCH && l) level[l].planes = 1 << cases_below(rng, 2);
        }
        net = trn_topology_hierarchy("any network, of 2 or more", levels, level);
    } while (!net.chips);
    net.start_s = any_number(rng, 1e-5);
    net.local_latency_s = any_number(rng, 1e-5);
    net.hbm_bytes_per_s = any_number(rng, 1e13);
    net.dma_bytes_per_s = any_number(rng, 1e13);
    net.reduce_pass = any_number(rng, 4);
    net.ranks_per_chip = 1 + cases_below(rng, 64);
    net.store_and_forward = cases_one_in(rng, 3);
    net.system = (trn_system)cases_below(rng, TRN_SYSTEM_COUNT + 1);
    for (int i = cases_below(rng, 5); i > 0; i--) {
        trn_fault *f = &net.fault[net.faults];
        f->kind = trn_topology_link_count(&net) && cases_one_in(rng, 2) ? TRN_FAULT_LINK : TRN_FAULT_CHIP;
        f->at = cases_below(rng, f->kind == TRN_FAULT_CHIP ? net.chips : (int)trn_topology_link_count(&net));
        f->share = cases_one_in(rng, 2) ? 0 : any_number(rng, 1);
        net.faults++;
    }
    return net;
}

static void there_and_back(void **state)
{
    static text t, again;
    uint64_t rng = 1;
    (void)state;
    for (int i = 0; i < cases_rounds(3000, 300000); i++) {
        const trn_topology net = any_network(&rng);
        trn_topology copy, other;
        trn_error why;
        save(&net, &t);
        if (load(t.bytes, t.length, &other, &why) != TRN_OK) fail_msg("%s, of\n%s", why.text, t.bytes);
        copy = other; /* nothing in it is the text's, or the first one's */
        memset(&other, 0x5a, sizeof other);
        if (differs(&net, &copy)) fail_msg("%s differs after\n%s", differs(&net, &copy), t.bytes);
        save(&copy, &again);
        assert_string_equal(t.bytes, again.bytes);
    }
}

/* ---- sentences ---- */

#define RING "[level x]\nsize = 4\nwiring = ring\nrate = 1\n"

static void sentences(void **state)
{
    static const char *const row[][2] = {
        { "", "line 1: the file ends without a [level NAME]" },
        { "# nothing\n\n", "line 2: the file ends without a [level NAME]" },
        { "hello", "line 1: expected key = value, or [level NAME]" },
        { "\n\ncolour = red\n", "line 3: \"colour\" is no key of a network" },
        { "name = \n", "line 1: name = : expected a name of 1 to 63 bytes" },
        { "name = a\nname = b\n", "line 2: name is given twice" },
        { "size = 4\n", "line 1: size belongs to a level, and no [level NAME] stands before it" },
        { RING "start = 1\n", "line 5: start belongs to the whole network, before the first [level NAME]" },
        { "start = -1\n", "line 1: start = -1: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = 1,4\n", "line 1: start = 1,4: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = inf\n", "line 1: start = inf: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = 0x10\n", "line 1: start = 0x10: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = 1e999\n", "line 1: start = 1e999: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = .\n", "line 1: start = .: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "start = 1e-320\n", "line 1: start = 1e-320: expected a time in us, such as 1.4 (0, or 1e-09 to 1e+10)" },
        { "local = 1e11\n", "line 1: local = 1e11: expected a time in us, such as 0.1 (0, or 1e-09 to 1e+10)" },
        { "hbm = 1e-300\n", "line 1: hbm = 1e-300: expected a rate in GB/s, such as 2900 (0, or 1e-09 to 1e+09)" },
        { "dma = nan\n", "line 1: dma = nan: expected a rate in GB/s, such as 2944 (0, or 1e-09 to 1e+09)" },
        { "reduce_pass = 1e7\n",
          "line 1: reduce_pass = 1e7: expected a number of passes, such as 0.5 (0, or 1e-06 to 1e+06)" },
        { "ranks_per_chip = 70000\n", "line 1: ranks_per_chip = 70000: expected a whole number from 1 to 65536" },
        { "[level x]\nsize = 4\nwiring = ring\nrate = 1e-310\n",
          "line 4: rate = 1e-310: expected a rate in GB/s, such as 128 (0, or 1e-09 to 1e+09)" },
        { "[level x]\nsize = 4\nwiring = ring\nrate = 1e10\n",
          "line 4: rate = 1e10: expected a rate in GB/s, such as 128 (0, or 1e-09 to 1e+09)" },
        { RING "latency = 5e-324\n",
          "line 5: latency = 5e-324: expected a time in us, such as 0.1 (0, or 1e-09 to 1e+10)" },
        { RING "slow = chip 3 1e-300\n", "line 5: \"chip 3 1e-300\" does not end with the share that is left, from "
                                         "0.000001 to 1, such as 0.5" },
        { "system = trn9\n", "line 1: system = trn9: expected a system, such as trn2.48xlarge" },
        { "mode = fast\n", "line 1: mode = fast: expected cut-through or store-and-forward" },
        { "ranks_per_chip = 0\n", "line 1: ranks_per_chip = 0: expected a whole number from 1 to 65536" },
        { "[level 3d]\n",
          "line 1: expected [level NAME], a name of up to 23 letters, digits, _, - and ., beginning with "
          "a letter" },
        { "[rack]\n", "line 1: expected [level NAME], a name of up to 23 letters, digits, _, - and ., beginning with a "
                      "letter" },
        { "[level x]\n[level y]\n", "line 1: level x has no size" },
        { "[level x]\nsize = 4\n", "line 1: level x has no wiring" },
        { "[level x]\nsize = 4\nwiring = ring\n", "line 1: level x has no rate" },
        { RING RING, "line 5: level x is there already, in line 1" },
        { RING "size = 4\n", "line 5: size is given twice" },
        { "[level x]\nsize = 4.5\n", "line 2: size = 4.5: expected a whole number from 1 to 134217728" },
        { "[level x]\nwiring = mesh\n", "line 2: wiring = mesh: expected ring, full, switch, graph or none" },
        { RING "kind = nvlink\n", "line 5: kind = nvlink: expected plain, torus, peer, switch or efa" },
        { RING "duplex = both\n", "line 5: duplex = both: expected full or half" },
        { RING "planes = 2\n", "line 1: level 0 (x): 2 planes need a switch outside level 0 and divide the 4 chips of "
                               "level 0" },
        { "[level x]\nsize = 4\nwiring = none\n", "line 1: level 0 (x): its 4 chips are not wired, and no switch joins "
                                                  "them" },
        { "[level x]\nsize = 4\nwiring = ring\nrate = 0\n",
          "line 1: level 0 (x): bytes_per_s is 0, expected 1 to 1e+18" },
        { "[level x]\nsize = 999999999\nwiring = ring\nrate = 1\n",
          "line 2: size = 999999999: expected a whole number from 1 to 134217728" },
        { "down = chip 4\n" RING, "line 1: there is no chip 4: custom has chips 0 to 3" },
        { RING "down = link 0->2\n", "line 5: no link goes straight from chip 0 to chip 2 of custom" },
        { RING "down = link 0->0\n", "line 5: chip 0 has no link to itself" },
        { RING "down = link 0-1\n", "line 5: a link is written as 3->7, or 3<->7 for both directions" },
        { RING "down = link 0->x\n", "line 5: \"x\" is neither a chip nor a level of switches" },
        { RING "down = cable 3\n", "line 5: \"cable 3\" is neither a chip nor a link, such as chip 17 or link 3->7" },
        { RING "slow = chip 3\n", "line 5: \"chip 3\" does not end with the share that is left, from 0.000001 to 1, "
                                  "such as 0.5" },
        { RING "slow = chip 3 0\n", "line 5: \"chip 3 0\" does not end with the share that is left, from 0.000001 to "
                                    "1, such as 0.5" },
        { RING "slow = chip 3 1.5\n", "line 5: \"chip 3 1.5\" does not end with the share that is left, from 0.000001 "
                                      "to 1, such as 0.5" },
        { "name = a\x01z\n", "line 1: a byte of value 1 is no text" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_topology net, before;
        trn_error why;
        memset(&net, 0x5a, sizeof net);
        before = net;
        why.text[0] = 0;
        const trn_status status = load(row[i][0], strlen(row[i][0]), &net, &why);
        if (status == TRN_OK) fail_msg("accepted: %s", row[i][0]);
        assert_string_equal(why.text, row[i][1]);
        assert_int_equal(why.status, status);
        assert_memory_equal(&net, &before, sizeof net);
        assert_int_equal(load(row[i][0], strlen(row[i][0]), &net, NULL), status);
    }
}

/* Blanks, comments, line ends and orders that mean nothing. */
static void other_spellings(void **state)
{
    static const char *const row[] = {
        "[level x]\nsize = 4\nwiring = ring\nrate = 128\nlatency = 0.1\ndown = link 0->1\n",
        "\n# a ring\r\n[level x]\r\nsize=4\r\nwiring=ring\r\nrate=128\r\nlatency=0.1\r\ndown=link 0->1",
        "  down =   link  0 -> 1 # broken\n\t[level   x ]\nrate = 1.28e2\nlatency = 100e-3\nwiring = ring\nsize = 04",
        "down = link 0->1\nmode = cut-through\nranks_per_chip = 1\nlocal = 0.1\n[level x]\nplanes = 1\nrate = "
        "00128.000\n"
        "duplex = full\nkind = plain\nsize = 4\nwiring = ring\nlatency = 0.1",
    };
    trn_topology first, net;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_error why;
        if (load(row[i], strlen(row[i]), &net, &why) != TRN_OK) fail_msg("%s", why.text);
        if (i == 0) first = net;
        if (differs(&first, &net)) fail_msg("%s differs in text %d", differs(&first, &net), (int)i);
    }
    assert_true(alike(first.level[0].latency_s, 1e-7));
    assert_true(alike(first.level[0].bytes_per_s, 128e9));
    assert_int_equal(first.fault[0].at, trn_topology_link_between(&first, 0, 1));
}

static void names_that_no_line_holds(void **state)
{
    static const char *const name[] = { "", " a", "a ", "a # b", "two\nlines" };
    text t = { "", 0 };
    trn_error why;
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        trn_topology net = trn_topology_ring(4, 1e9, 0);
        strcpy(net.name, name[i]);
        assert_int_equal(trn_topology_save(&net, keep, &t, &why), TRN_EUNSUPPORTED);
        assert_string_equal(why.text, "no line of a file can hold the network's name");
    }
    trn_topology net = trn_topology_ring(4, 1e9, 0);
    net.level[0].name = "a ring";
    assert_int_equal(trn_topology_save(&net, keep, &t, &why), TRN_EUNSUPPORTED);
    assert_string_equal(why.text, "no line of a file can hold the name of level 0");
    const int size[] = { 2, 2 };
    net = trn_topology_torus(2, size, 1e9, 0);
    net.level[1].name = "x";
    assert_int_equal(trn_topology_save(&net, keep, &t, &why), TRN_EUNSUPPORTED);
    assert_string_equal(why.text, "levels 0 and 1 are both called x");
    assert_int_equal(trn_topology_save(&net, NULL, NULL, &why), TRN_EUNSUPPORTED);
    net.level[1].name = "y";
    assert_int_equal(trn_topology_save(&net, NULL, NULL, &why), TRN_EINVAL);
    assert_int_equal(trn_topology_load(NULL, 3, &net, &why), TRN_EINVAL);
    assert_int_equal(trn_topology_load("", 0, NULL, &why), TRN_EINVAL);
    assert_int_equal(t.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_a_file),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(sentences),
        cmocka_unit_test(other_spellings),
        cmocka_unit_test(names_that_no_line_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

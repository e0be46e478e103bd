/* chakra_read.c - all ranks' traces, their process groups, and which nodes of which ranks are one operation.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "traces.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"

enum { RANKS = 1 << 16, PATH = 4096 };

/* ---- files ---- */

/* The rank that "name.RANK.et" says; -1: it is another file. */
static int rank_of(const char *file, const char *name)
{
    const size_t n = strlen(name);
    char *end = NULL;
    if (strncmp(file, name, n) != 0 || file[n] != '.' || !isdigit((unsigned char)file[n + 1])) return -1;
    if (file[n + 1] == '0' && file[n + 2] != '.') return -1;
    errno = 0;
    const unsigned long long rank = strtoull(file + n + 1, &end, 10);
    return errno || strcmp(end, ".et") != 0 ? -1 : rank > RANKS ? RANKS + 1 : (int)rank;
}

/* One more than the highest rank beside the prefix. */
static bool count_ranks(const char *prefix, int *ranks, char *why)
{
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    char folder[PATH];
    if (strlen(prefix) >= sizeof folder - 32) return app_refuse(why, "--chakra-in: its name is too long");
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - prefix) + 1 : 1, slash ? prefix : ".");
    DIR *list = opendir(folder);
    if (!list) return io_fail(why, folder, "it cannot be opened (%s)", strerror(errno));
    *ranks = 0;
    for (const struct dirent *e; (e = readdir(list)) != NULL;) {
        const int rank = rank_of(e->d_name, name);
        if (rank >= *ranks) *ranks = rank + 1;
    }
    closedir(list);
    if (*ranks > RANKS) return io_fail(why, prefix, "there are more than %d ranks", (int)RANKS);
    return *ranks || io_fail(why, prefix, "there is no %.200s.0.et", name);
}

static bool load_ranks(const char *prefix, sp_traces *t, char *why)
{
    int ranks = 0;
    char path[PATH];
    if (!count_ranks(prefix, &ranks, why)) return false;
    t->rank = app_memory((size_t)ranks, sizeof *t->rank);
    t->operation_of = app_memory((size_t)ranks, sizeof *t->operation_of);
    for (; t->ranks < ranks; t->ranks++) {
        chakra_trace *r = &t->rank[t->ranks];
        snprintf(path, sizeof path, "%s.%d.et", prefix, t->ranks);
        if (access(path, F_OK) != 0)
            return io_fail(why, prefix, "rank %d is missing, but rank %d is there", t->ranks, ranks - 1);
        if (!chakra_load(path, r, why)) return false;
        t->operation_of[t->ranks] = app_memory((size_t)r->count + 1, sizeof **t->operation_of);
        for (int64_t i = 0; i < r->count; i++) t->operation_of[t->ranks][i] = -1;
    }
    return true;
}

/* ---- process groups ---- */

static sp_group *new_group(sp_traces *t, char *name)
{
    t->group = app_resize(t->group, (size_t)t->groups + 1, sizeof *t->group);
    t->group[t->groups] = (sp_group){ name, app_memory((size_t)t->ranks, sizeof(int)), 0 };
    return &t->group[t->groups++];
}

static int group_named(const sp_traces *t, const char *name)
{
    for (int i = 0; i < t->groups; i++)
        if (strcmp(t->group[i].name, name) == 0) return i;
    return -1;
}

static bool has_rank(const sp_group *g, int rank)
{
    for (int i = 0; i < g->count; i++)
        if (g->rank[i] == rank) return true;
    return false;
}

static bool take_group(const char *file, sp_traces *t, const io_json *member, sp_group *g, char *why)
{
    io_json list = io_json_list(member);
    while (io_json_next(&list)) {
        uint64_t rank = 0;
        if (!io_json_whole(&list, &rank) || rank >= (uint64_t)t->ranks)
            return io_fail(why, file, "group '%.60s': %s is no rank from 0 to %d", g->name, io_json_show(&list).text,
                           t->ranks - 1);
        if (has_rank(g, (int)rank))
            return io_fail(why, file, "group '%.60s': rank %d stands twice", g->name, (int)rank);
        g->rank[g->count++] = (int)rank;
    }
    if (list.wrong) return io_fail(why, file, "group '%.60s' is no list of ranks: %s", g->name, list.wrong);
    return g->count || io_fail(why, file, "group '%.60s' is empty", g->name);
}

static bool parse_groups(const char *file, const io_map *map, sp_traces *t, char *why)
{
    io_json all = io_json_file((const char *)map->bytes, map->size);
    while (io_json_next(&all)) {
        char *name = io_json_name(&all);
        if (!name) break;
        const bool twice = group_named(t, name) >= 0;
        sp_group *g = new_group(t, name);
        if (twice) return io_fail(why, file, "group '%.60s' stands twice", name);
        if (!take_group(file, t, &all, g, why)) return false;
    }
    return !all.wrong || io_fail(why, file, "it is no JSON object of process groups: %s", all.wrong);
}

static bool load_groups(const char *file, sp_traces *t, char *why)
{
    io_map map;
    char *none = app_memory(1, 1);
    sp_group *all = new_group(t, none);
    for (int i = 0; i < t->ranks; i++) all->rank[all->count++] = i;
    if (!file) return true;
    if (!io_map_open(file, &map, why)) return false;
    const bool ok = parse_groups(file, &map, t, why);
    io_map_close(&map);
    return ok;
}

/* ---- which nodes are one operation ---- */

static int64_t add(sp_traces *t, sp_operation o)
{
    if (t->operations == t->capacity) {
        t->capacity = 2 * t->capacity + 256;
        t->operation = app_resize(t->operation, (size_t)t->capacity, sizeof *t->operation);
    }
    t->operation[t->operations] = o;
    return t->operations++;
}

/* Nodes of one rank in the order of its file, from `from` on, that are a collective of this group; the end: none. */
static int64_t next_of(const sp_traces *t, int rank, int group, int64_t from)
{
    const chakra_trace *r = &t->rank[rank];
    for (; from < r->count; from++) {
        const chakra_node *n = &r->node[from];
        if (n->type == CHAKRA_COLLECTIVE && strcmp(n->group ? n->group : "", t->group[group].name) == 0) break;
    }
    return from;
}

static const char *collective_name(uint64_t collective)
{
    static const char *const name[CHAKRA_COLLECTIVES] = { "all_reduce",     "reduce",    "all_gather", "gather",
                                                          "scatter",        "broadcast", "all_to_all", "reduce_scatter",
                                                          "reduce_scatter", "barrier" };
    return name[collective];
}

/* The next collective of a group, which all of its ranks must agree on; *done: there is none any more. */
static bool join_next(const char *prefix, sp_traces *t, int group, int64_t *at, bool *done, char *why)
{
    const sp_group *g = &t->group[group];
    int64_t operation = -1;
    const chakra_node *first = NULL;
    for (int i = 0; i < g->count; i++) {
        const int rank = g->rank[i];
        const chakra_trace *r = &t->rank[rank];
        at[i] = next_of(t, rank, group, at[i]);
        const chakra_node *n = at[i] < r->count ? &r->node[at[i]] : NULL;
        if (i == 0) *done = !n, first = n;
        if (!n != !first)
            return io_fail(why, prefix, "rank %d has one collective more than rank %d in %s%s%s: node %llu '%.60s'",
                           n ? rank : g->rank[0], n ? g->rank[0] : rank, group ? "group '" : "the group of all ranks",
                           g->name, group ? "'" : "", (unsigned long long)(n ? n : first)->id, (n ? n : first)->name);
        if (!n) continue;
        if (n->collective != first->collective || n->comm_bytes != first->comm_bytes)
            return io_fail(why, prefix, "rank %d, node %llu '%.60s' is %s of %llu bytes, but rank %d's is %s of %llu",
                           rank, (unsigned long long)n->id, n->name, collective_name(n->collective),
                           (unsigned long long)n->comm_bytes, g->rank[0], collective_name(first->collective),
                           (unsigned long long)first->comm_bytes);
        if (i == 0)
            operation = add(t, (sp_operation){ .type = CHAKRA_COLLECTIVE,
                                               .collective = (chakra_collective)n->collective,
                                               .rank = rank,
                                               .group = group,
                                               .node = at[i],
                                               .bytes = n->comm_bytes,
                                               .before = -1 });
        t->operation_of[rank][at[i]++] = operation;
    }
    return true;
}

static bool join_group(const char *prefix, sp_traces *t, int group, char *why)
{
    int64_t *at = app_memory((size_t)t->group[group].count, sizeof *at);
    bool ok = true;
    for (bool done = false; ok && !done;) ok = join_next(prefix, t, group, at, &done, why);
    free(at);
    return ok;
}

static bool refuse_node(const char *prefix, int rank, const chakra_node *n, const char *what, char *why)
{
    return io_fail(why, prefix, "rank %d, node %llu '%.60s' %s", rank, (unsigned long long)n->id, n->name, what);
}

/* Groups are known, and have the rank in them. */
static bool check_groups(const char *prefix, const sp_traces *t, char *why)
{
    for (int r = 0; r < t->ranks; r++)
        for (int64_t i = 0; i < t->rank[r].count; i++) {
            const chakra_node *n = &t->rank[r].node[i];
            if (n->type != CHAKRA_COLLECTIVE || !n->group) continue;
            const int g = group_named(t, n->group);
            if (g < 0)
                return refuse_node(prefix, r, n, "is of a process group that --chakra-groups does not name", why);
            if (!has_rank(&t->group[g], r)) return refuse_node(prefix, r, n, "is of a group without this rank", why);
        }
    return true;
}

/* ---- from one rank to another ---- */

typedef struct letter {
    uint64_t from, to, tag;
    int64_t number; /* in the order of the file */
    int rank;
    int64_t node;
} letter;

static int by_way(const void *left, const void *right)
{
    const letter *a = left, *b = right;
    const uint64_t x[] = { a->from, a->to, a->tag, (uint64_t)a->number },
                   y[] = { b->from, b->to, b->tag, (uint64_t)b->number };
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool letters_of(const char *prefix, const sp_traces *t, chakra_type type, letter **list, int64_t *count,
                       char *why)
{
    int64_t capacity = 0;
    for (int r = 0; r < t->ranks; r++)
        for (int64_t i = 0; i < t->rank[r].count; i++) {
            const chakra_node *n = &t->rank[r].node[i];
            const uint64_t own = (uint64_t)r, ranks = (uint64_t)t->ranks;
            if (n->type != type) continue;
            const bool sends = type == CHAKRA_SEND;
            const uint64_t here = sends ? n->source : n->target, there = sends ? n->target : n->source;
            if (chakra_has(n, sends ? CHAKRA_COMM_SRC : CHAKRA_COMM_DST) && here != own)
                return refuse_node(prefix, r, n, "is of another rank than the file", why);
            if (there >= ranks || there == own)
                return refuse_node(prefix, r, n, "is not with another rank of the trace", why);
            if (*count == capacity)
                capacity = 2 * capacity + 64, *list = app_resize(*list, (size_t)capacity, sizeof **list);
            (*list)[*count] = (letter){ sends ? own : there, sends ? there : own, n->tag, *count, r, i };
            ++*count;
        }
    if (*count) qsort(*list, (size_t)*count, sizeof **list, by_way);
    return true;
}

static bool same_way(const letter *a, const letter *b)
{
    return a->from == b->from && a->to == b->to && a->tag == b->tag;
}

static bool join_pair(const char *prefix, sp_traces *t, const letter *s, const letter *r, char *why)
{
    const chakra_node *sent = &t->rank[s->rank].node[s->node], *got = &t->rank[r->rank].node[r->node];
    if (sent->comm_bytes != got->comm_bytes)
        return refuse_node(prefix, r->rank, got, "receives another number of bytes than are sent", why);
    const int64_t way = add(t, (sp_operation){ .type = CHAKRA_SEND,
                                               .rank = s->rank,
                                               .peer = r->rank,
                                               .node = s->node,
                                               .bytes = sent->comm_bytes,
                                               .before = -1 });
    t->operation_of[s->rank][s->node] = way;
    t->operation_of[r->rank][r->node] = add(
        t, (sp_operation){ .type = CHAKRA_RECEIVE, .rank = r->rank, .peer = s->rank, .node = r->node, .before = way });
    return true;
}

static bool join_pairs(const char *prefix, sp_traces *t, char *why)
{
    letter *sent = NULL, *got = NULL;
    int64_t sends = 0, gets = 0;
    bool ok = letters_of(prefix, t, CHAKRA_SEND, &sent, &sends, why) &&
              letters_of(prefix, t, CHAKRA_RECEIVE, &got, &gets, why);
    for (int64_t i = 0; ok && (i < sends || i < gets); i++) {
        const letter *s = i < sends ? &sent[i] : NULL, *r = i < gets ? &got[i] : NULL;
        if (s && r && same_way(s, r))
            ok = join_pair(prefix, t, s, r, why);
        else if (s && (!r || by_way(s, r) < 0))
            ok = refuse_node(prefix, s->rank, &t->rank[s->rank].node[s->node], "sends what nobody receives", why);
        else
            ok = refuse_node(prefix, r->rank, &t->rank[r->rank].node[r->node], "receives what nobody sends", why);
    }
    free(sent);
    free(got);
    return ok;
}

/* ---- all of it ---- */

static void add_own(sp_traces *t)
{
    for (int r = 0; r < t->ranks; r++)
        for (int64_t i = 0; i < t->rank[r].count; i++) {
            const chakra_node *n = &t->rank[r].node[i];
            if (t->operation_of[r][i] < 0)
                t->operation_of[r][i] =
                    add(t, (sp_operation){ .type = n->type, .rank = r, .node = i, .before = -1, .host = n->host });
        }
}

bool sp_traces_read(const sp_chakra_ask *ask, sp_traces *t, char *why)
{
    memset(t, 0, sizeof *t);
    bool ok = load_ranks(ask->in, t, why) && load_groups(ask->groups, t, why) && check_groups(ask->in, t, why);
    for (int g = 0; ok && g < t->groups; g++) ok = join_group(ask->in, t, g, why);
    ok = ok && join_pairs(ask->in, t, why);
    if (ok) add_own(t);
    return ok && (t->operations || io_fail(why, ask->in, "there is no operation in these traces"));
}

void sp_traces_free(sp_traces *t)
{
    for (int r = 0; r < t->ranks; r++) {
        chakra_free(&t->rank[r]);
        free(t->operation_of[r]);
    }
    for (int g = 0; g < t->groups; g++) {
        free(t->group[g].name);
        free(t->group[g].rank);
    }
    free(t->rank);
    free(t->operation_of);
    free(t->group);
    free(t->operation);
    free(t->takes);
    memset(t, 0, sizeof *t);
}

const char *sp_operation_name(const sp_traces *t, int64_t operation)
{
    const sp_operation *o = &t->operation[operation];
    switch (o->type) {
    case CHAKRA_COLLECTIVE: return collective_name(o->collective);
    case CHAKRA_SEND: return "send";
    case CHAKRA_RECEIVE: return "receive";
    case CHAKRA_WORK: return o->host ? "host" : "work";
    default: return "nothing";
    }
}

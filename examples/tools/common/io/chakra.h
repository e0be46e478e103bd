/* chakra.h - one rank's execution trace of MLCommons Chakra, as ASTRA-sim reads it: operations and what waits for what.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/chakra.h"
 *     chakra_trace t;
 *     char why[IO_WHY];
 *     if (!chakra_load("all_reduce.0.et", &t, why)) return fprintf(stderr, "%s\n", why), 2;
 *     for (int64_t i = 0; i < t.count; i++) use(&t.node[t.order[i]]);    what waits comes after what it waits for
 *     chakra_free(&t);
 *
 * DOES: reads a file whole, gzip or not, and believes nothing of it: lengths, numbers of nodes, what they wait for. An
 *     attribute that is not known is refused by name, because it may change a size or a time.
 * DOES NOT: price anything, or look at other ranks' files.
 *
 * CONTENTS
 *     chakra_node, chakra_trace                one operation; one rank's
 *     chakra_load, chakra_parse, chakra_free   of a file, of bytes
 *     chakra_type_name                         as the format calls a kind of node
 *
 * Two generations of files are read, whose nodes are alike: those with the version in the metadata's own field
 * ("0.0.4"), and those of converters, with an attribute "schema" that ends in it.
 *
 * KNOWN FROM: the numbers of fields and the names of attributes in MLCommons Chakra (et_def.proto, the feeder) and in
 *     ASTRA-sim (its workload layer and its examples). Needs protobuf-c (libprotobuf-c-dev, protobuf-c-compiler) and
 *     zlib.
 */
#ifndef IO_CHAKRA_H
#define IO_CHAKRA_H

#include <stdlib.h>
#include <zlib.h>

#include "chakra.pb-c.h"
#include "mapped.h"

typedef enum chakra_type {
    CHAKRA_INVALID = 0,
    CHAKRA_METADATA,
    CHAKRA_LOAD,
    CHAKRA_STORE,
    CHAKRA_WORK,
    CHAKRA_SEND,
    CHAKRA_RECEIVE,
    CHAKRA_COLLECTIVE,
    CHAKRA_TYPES
} chakra_type;

/* Collectives by the format's numbers. */
typedef enum chakra_collective {
    CHAKRA_ALL_REDUCE = 0,
    CHAKRA_REDUCE,
    CHAKRA_ALL_GATHER,
    CHAKRA_GATHER,
    CHAKRA_SCATTER,
    CHAKRA_BROADCAST,
    CHAKRA_ALL_TO_ALL,
    CHAKRA_REDUCE_SCATTER,
    CHAKRA_REDUCE_SCATTER_BLOCK,
    CHAKRA_BARRIER,
    CHAKRA_COLLECTIVES
} chakra_collective;

typedef struct chakra_node {
    uint64_t id;
    char *name;  /* its own memory */
    char *group; /* the process group's name; NULL: all ranks */
    chakra_type type;
    bool host;                       /* work of the host's processor */
    uint64_t given;                  /* a bit for each row of chakra_attributes that it has */
    uint64_t micros;                 /* recorded; 0: none */
    uint64_t flops, bytes;           /* work: operations, bytes of its tensors */
    uint64_t collective, comm_bytes; /* all_gather: of one rank's part; else of a rank's whole buffer */
    uint64_t source, target, tag;    /* send and receive: ranks */
    double ideal_s, expected_s;      /* what shardplan wrote of its own model; negative: nothing */
    int64_t first, waits;            /* for: places in chakra_trace.wait */
} chakra_node;

typedef struct chakra_trace {
    chakra_node *node;
    int64_t count, capacity;
    int64_t *wait; /* numbers of nodes */
    int64_t waits, wait_capacity;
    int64_t *order;  /* [count] numbers of nodes: each after all that it waits for */
    uint64_t *asked; /* ids as the file has them, in the place of wait, while it is read */
} chakra_trace;

enum { CHAKRA_MESSAGE = 1 << 28 };         /* bytes of one message */
#define CHAKRA_MOST (UINT64_C(1) << 60)    /* bytes, operations, ids of ranks and tags */
#define CHAKRA_LONGEST (UINT64_C(1) << 50) /* microseconds */
#define CHAKRA_FILE (UINT64_C(1) << 31)    /* bytes of an unpacked file */
#define CHAKRA_VERSION "0.0.4"

IO_FN const char *chakra_type_name(chakra_type type)
{
    static const char *const name[CHAKRA_TYPES] = { "INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                    "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                    "COMM_RECV_NODE", "COMM_COLL_NODE" };
    return name[type];
}

/* ---- attributes ---- */

typedef enum chakra_taken {
    CHAKRA_NO_MATTER, /* says where an operation came from, not what it takes */
    CHAKRA_FLAG,
    CHAKRA_WHOLE,
    CHAKRA_SECONDS,
    CHAKRA_GROUP,
    CHAKRA_NONE, /* 0 is the only value that is understood */
    CHAKRA_ALL   /* a list of flags, all of which are set */
} chakra_taken;

typedef struct chakra_attribute {
    const char *name;
    chakra_taken taken;
    size_t at; /* in chakra_node */
} chakra_attribute;

enum { CHAKRA_NUM_OPS, CHAKRA_TENSOR_SIZE, CHAKRA_COMM_TYPE, CHAKRA_COMM_SIZE, CHAKRA_COMM_SRC, CHAKRA_COMM_DST };

IO_FN const chakra_attribute *chakra_attributes(int *count)
{
    static const chakra_attribute row[] = {
        { "num_ops", CHAKRA_WHOLE, offsetof(chakra_node, flops) },
        { "tensor_size", CHAKRA_WHOLE, offsetof(chakra_node, bytes) },
        { "comm_type", CHAKRA_WHOLE, offsetof(chakra_node, collective) },
        { "comm_size", CHAKRA_WHOLE, offsetof(chakra_node, comm_bytes) },
        { "comm_src", CHAKRA_WHOLE, offsetof(chakra_node, source) },
        { "comm_dst", CHAKRA_WHOLE, offsetof(chakra_node, target) },
        { "comm_tag", CHAKRA_WHOLE, offsetof(chakra_node, tag) },
        { "is_cpu_op", CHAKRA_FLAG, offsetof(chakra_node, host) },
        { "pg_name", CHAKRA_GROUP, 0 },
        { "comm_priority", CHAKRA_NONE, 0 },
        { "involved_dim", CHAKRA_ALL, 0 },
        { "model_ideal_s", CHAKRA_SECONDS, offsetof(chakra_node, ideal_s) },
        { "model_expected_s", CHAKRA_SECONDS, offsetof(chakra_node, expected_s) },
        { "rf_id", CHAKRA_NO_MATTER, 0 },
        { "fw_parent", CHAKRA_NO_MATTER, 0 },
        { "seq_id", CHAKRA_NO_MATTER, 0 },
        { "scope", CHAKRA_NO_MATTER, 0 },
        { "tid", CHAKRA_NO_MATTER, 0 },
        { "fw_tid", CHAKRA_NO_MATTER, 0 },
        { "op_schema", CHAKRA_NO_MATTER, 0 },
        { "stream", CHAKRA_NO_MATTER, 0 },
        { "pg_desc", CHAKRA_NO_MATTER, 0 },
    };
    *count = sizeof row / sizeof row[0];
    return row;
}

IO_FN bool chakra_has(const chakra_node *n, int attribute) { return n->given >> attribute & 1; }

/* "file: node 7 'name': ..." */
__attribute__((unused, format(printf, 4, 5))) static bool chakra_fail(char *why, const char *file, const chakra_node *n,
                                                                      const char *format, ...)
{
    char text[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(text, sizeof text, IO_SAID, format, list);
    va_end(list);
    return io_fail(why, file, "node %llu '%.80s': %.300s", (unsigned long long)n->id, n->name ? n->name : "", text);
}

/* Any of the kinds of whole numbers; false: another kind, or below 0. */
IO_FN bool chakra_whole(const Chakra__Attribute *a, uint64_t *value)
{
    int64_t x = -1;
    switch (a->value_case) {
    case CHAKRA__ATTRIBUTE__VALUE_INT32: x = a->int32; break;
    case CHAKRA__ATTRIBUTE__VALUE_INT64: x = a->int64; break;
    case CHAKRA__ATTRIBUTE__VALUE_UINT32: x = a->uint32; break;
    case CHAKRA__ATTRIBUTE__VALUE_UINT64: return *value = a->uint64, true;
    default: return false;
    }
    *value = (uint64_t)x;
    return x >= 0;
}

IO_FN bool chakra_all_set(const Chakra__Attribute *a)
{
    if (a->value_case != CHAKRA__ATTRIBUTE__VALUE_FLAGS) return false;
    for (size_t i = 0; i < a->flags->n_values; i++)
        if (!a->flags->values[i]) return false;
    return true;
}

IO_FN bool chakra_take_value(const char *file, chakra_node *n, const chakra_attribute *row, const Chakra__Attribute *a,
                             char *why)
{
    void *const field = (char *)n + row->at;
    uint64_t whole = 0;
    const bool is_whole = chakra_whole(a, &whole) && whole <= CHAKRA_MOST;
    switch (row->taken) {
    case CHAKRA_FLAG:
        if (a->value_case != CHAKRA__ATTRIBUTE__VALUE_FLAG)
            return chakra_fail(why, file, n, "its '%s' is neither true nor false", row->name);
        return *(bool *)field = a->flag, true;
    case CHAKRA_WHOLE:
        if (!is_whole) return chakra_fail(why, file, n, "its '%s' is no whole number from 0 to 2^60", row->name);
        return *(uint64_t *)field = whole, true;
    case CHAKRA_SECONDS:
        if (a->value_case != CHAKRA__ATTRIBUTE__VALUE_REAL || !(a->real >= 0 && a->real <= 1e9))
            return chakra_fail(why, file, n, "its '%s' is no time from 0 to 1e9 s", row->name);
        return *(double *)field = a->real, true;
    case CHAKRA_GROUP:
        if (a->value_case != CHAKRA__ATTRIBUTE__VALUE_TEXT)
            return chakra_fail(why, file, n, "its '%s' is no text", row->name);
        n->group = a->text[0] && strcmp(a->text, "0") != 0 ? strdup(a->text) : NULL;
        return !a->text[0] || strcmp(a->text, "0") == 0 || n->group ||
               io_fail(why, file, "there is not enough memory for its nodes");
    case CHAKRA_NONE:
        return (is_whole && whole == 0) ||
               chakra_fail(why, file, n, "its '%s' is not 0, which is not understood", row->name);
    case CHAKRA_ALL:
        return chakra_all_set(a) ||
               chakra_fail(why, file, n,
                           "its '%s' leaves out dimensions of another simulator's network: a process group (pg_name) "
                           "says which ranks are meant",
                           row->name);
    default: return true;
    }
}

IO_FN bool chakra_take(const char *file, chakra_node *n, const Chakra__Attribute *a, char *why)
{
    int rows = 0;
    const chakra_attribute *row = chakra_attributes(&rows);
    for (int i = 0; i < rows; i++) {
        if (strcmp(row[i].name, a->name) != 0) continue;
        if (chakra_has(n, i)) return chakra_fail(why, file, n, "its '%s' stands twice", row[i].name);
        n->given |= UINT64_C(1) << i;
        return chakra_take_value(file, n, &row[i], a, why);
    }
    return chakra_fail(why, file, n, "its attribute '%.60s' is not known, and may change a size or a time", a->name);
}

/* ---- nodes ---- */

/* What each kind must have, and what nobody here can price. */
IO_FN bool chakra_check(const char *file, const chakra_node *n, const Chakra__Node *from, char *why)
{
    const bool pair = n->type == CHAKRA_SEND || n->type == CHAKRA_RECEIVE;
    const int peer = n->type == CHAKRA_SEND ? CHAKRA_COMM_DST : CHAKRA_COMM_SRC;
    if (n->type == CHAKRA_INVALID || n->type == CHAKRA_LOAD || n->type == CHAKRA_STORE)
        return chakra_fail(why, file, n, "it is a %s, which has no time here", chakra_type_name(n->type));
    if (n->type == CHAKRA_METADATA && from->inputs && from->inputs->values[0])
        return chakra_fail(why, file, n, "it is a METADATA_NODE that says something, and that is not read");
    if ((pair || n->type == CHAKRA_COLLECTIVE) && !chakra_has(n, CHAKRA_COMM_SIZE))
        return chakra_fail(why, file, n, "it has no 'comm_size'");
    if (pair && !chakra_has(n, peer))
        return chakra_fail(why, file, n, "it has no '%s'", n->type == CHAKRA_SEND ? "comm_dst" : "comm_src");
    if (n->type == CHAKRA_COLLECTIVE && !chakra_has(n, CHAKRA_COMM_TYPE))
        return chakra_fail(why, file, n, "it has no 'comm_type'");
    if (n->type == CHAKRA_COLLECTIVE && n->collective >= CHAKRA_COLLECTIVES)
        return chakra_fail(why, file, n, "its 'comm_type' %llu is no collective", (unsigned long long)n->collective);
    if ((pair || n->type == CHAKRA_COLLECTIVE) && n->host)
        return chakra_fail(why, file, n, "it is communication of the host's processor");
    return n->micros <= CHAKRA_LONGEST || chakra_fail(why, file, n, "it takes more than 2^50 microseconds");
}

IO_FN bool chakra_grow(void **memory, int64_t *capacity, int64_t needed, size_t size)
{
    if (needed <= *capacity) return true;
    const int64_t more = *capacity * 2 > needed ? *capacity * 2 : needed + 64;
    void *bigger = realloc(*memory, (size_t)more * size);
    if (!bigger) return false;
    *memory = bigger;
    *capacity = more;
    return true;
}

/* The ids that a node waits for, each once, however often it is named. */
IO_FN bool chakra_take_waits(chakra_trace *t, chakra_node *n, const Chakra__Node *from)
{
    const uint64_t *const list[] = { from->ctrl_deps, from->data_deps };
    const size_t count[] = { from->n_ctrl_deps, from->n_data_deps };
    n->first = t->waits;
    for (int k = 0; k < 2; k++) {
        void *memory = t->asked;
        if (!chakra_grow(&memory, &t->wait_capacity, t->waits + (int64_t)count[k], sizeof *t->asked)) return false;
        t->asked = memory;
        if (count[k]) memcpy(t->asked + t->waits, list[k], count[k] * sizeof *t->asked);
        t->waits += (int64_t)count[k];
    }
    n->waits = t->waits - n->first;
    return true;
}

IO_FN bool chakra_add(const char *file, chakra_trace *t, const Chakra__Node *from, char *why)
{
    void *memory = t->node;
    if (!chakra_grow(&memory, &t->capacity, t->count + 1, sizeof *t->node))
        return io_fail(why, file, "there is not enough memory for its nodes");
    t->node = memory;
    chakra_node *n = &t->node[t->count++];
    memset(n, 0, sizeof *n);
    n->id = from->id;
    n->ideal_s = n->expected_s = -1;
    n->micros = from->duration_micros;
    n->name = strdup(from->name);
    if (!n->name || !chakra_take_waits(t, n, from))
        return io_fail(why, file, "there is not enough memory for its nodes");
    if (from->type < 0 || from->type >= CHAKRA_TYPES)
        return chakra_fail(why, file, n, "its type %d is not known", (int)from->type);
    n->type = (chakra_type)from->type;
    for (size_t i = 0; i < from->n_attr; i++)
        if (!chakra_take(file, n, from->attr[i], why)) return false;
    return chakra_check(file, n, from, why);
}

/* ---- what waits for what ---- */

typedef struct chakra_place {
    uint64_t id;
    int64_t number;
} chakra_place;

IO_FN int chakra_by_id(const void *left, const void *right)
{
    const chakra_place *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id ? 1 : a->number < b->number ? -1 : a->number > b->number;
}

/* The number of the node with this id; -1: there is none. */
IO_FN int64_t chakra_find(const chakra_place *place, int64_t count, uint64_t id)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (place[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && place[low].id == id ? place[low].number : -1;
}

/* Ids become numbers of nodes. */
IO_FN bool chakra_number(const char *file, chakra_trace *t, chakra_place *place, char *why)
{
    for (int64_t i = 0; i < t->count; i++) place[i] = (chakra_place){ t->node[i].id, i };
    qsort(place, (size_t)t->count, sizeof *place, chakra_by_id);
    for (int64_t i = 1; i < t->count; i++)
        if (place[i].id == place[i - 1].id)
            return chakra_fail(why, file, &t->node[place[i].number], "its id stands twice");
    for (int64_t i = 0; i < t->count; i++) {
        const chakra_node *n = &t->node[i];
        for (int64_t k = n->first; k < n->first + n->waits; k++) {
            t->wait[k] = chakra_find(place, t->count, t->asked[k]);
            if (t->wait[k] < 0)
                return chakra_fail(why, file, n, "it waits for node %llu, which is not there",
                                   (unsigned long long)t->asked[k]);
        }
    }
    return true;
}

/* Who waits for whom, the other way round: next[start[i] .. start[i + 1]) wait for i. */
typedef struct chakra_turn {
    int64_t *start, *next, *left;
} chakra_turn;

IO_FN void chakra_turn_round(const chakra_trace *t, chakra_turn *u)
{
    for (int64_t k = 0; k < t->waits; k++) u->start[t->wait[k] + 1]++;
    for (int64_t i = 0; i < t->count; i++) u->start[i + 1] += u->start[i];
    for (int64_t i = 0; i < t->count; i++) u->left[i] = u->start[i];
    for (int64_t i = 0; i < t->count; i++)
        for (int64_t k = 0; k < t->node[i].waits; k++) u->next[u->left[t->wait[t->node[i].first + k]]++] = i;
    for (int64_t i = 0; i < t->count; i++) u->left[i] = t->node[i].waits;
}

IO_FN bool chakra_sort(const char *file, chakra_trace *t, chakra_turn *u, char *why)
{
    int64_t done = 0, known = 0;
    chakra_turn_round(t, u);
    for (int64_t i = 0; i < t->count; i++)
        if (!u->left[i]) t->order[known++] = i;
    for (; done < known; done++)
        for (int64_t k = u->start[t->order[done]]; k < u->start[t->order[done] + 1]; k++)
            if (--u->left[u->next[k]] == 0) t->order[known++] = u->next[k];
    for (int64_t i = 0; i < t->count; i++)
        if (u->left[i] > 0) return chakra_fail(why, file, &t->node[i], "it waits for itself, by way of others");
    return true;
}

IO_FN bool chakra_join(const char *file, chakra_trace *t, char *why)
{
    const size_t nodes = (size_t)t->count + 1, waits = (size_t)t->waits + 1;
    chakra_place *place = malloc(nodes * sizeof *place);
    chakra_turn u = { calloc(nodes, sizeof *u.start), malloc(waits * sizeof *u.next), malloc(nodes * sizeof *u.left) };
    t->wait = malloc(waits * sizeof *t->wait);
    t->order = malloc(nodes * sizeof *t->order);
    const bool room = place && u.start && u.next && u.left && t->wait && t->order;
    const bool ok = room ? chakra_number(file, t, place, why) && chakra_sort(file, t, &u, why)
                         : io_fail(why, file, "there is not enough memory for its nodes");
    free(place);
    free(u.start);
    free(u.next);
    free(u.left);
    free(t->asked);
    t->asked = NULL;
    return ok;
}

/* ---- files ---- */

IO_FN void chakra_free(chakra_trace *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        free(t->node[i].name);
        free(t->node[i].group);
    }
    free(t->node);
    free(t->wait);
    free(t->order);
    free(t->asked);
    memset(t, 0, sizeof *t);
}

/* The next message of a file: its length, then its bytes. */
IO_FN bool chakra_message(const char *file, const unsigned char *bytes, size_t size, size_t *at, size_t *length,
                          char *why)
{
    const size_t start = *at;
    uint64_t n = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (*at == size) return io_fail(why, file, "it ends inside of a message at byte %zu", start);
        const unsigned char c = bytes[(*at)++];
        n |= (uint64_t)(c & 127) << shift;
        if (c & 128) continue;
        if (n > CHAKRA_MESSAGE)
            return io_fail(why, file, "the message at byte %zu has %llu bytes; 2^28 are the most", start,
                           (unsigned long long)n);
        if (n > size - *at) return io_fail(why, file, "it ends inside of the message at byte %zu", start);
        return *length = (size_t)n, true;
    }
    return io_fail(why, file, "the message at byte %zu has no length", start);
}

IO_FN bool chakra_ends_in_version(const char *text)
{
    const size_t n = strlen(text), most = strlen(CHAKRA_VERSION);
    return n >= most && strcmp(text + n - most, CHAKRA_VERSION) == 0;
}

IO_FN bool chakra_check_version(const char *file, const Chakra__Metadata *m, char *why)
{
    const char *version = m->version;
    for (size_t i = 0; i < m->n_attr; i++)
        if (strcmp(m->attr[i]->name, "schema") == 0 && m->attr[i]->value_case == CHAKRA__ATTRIBUTE__VALUE_TEXT)
            version = m->attr[i]->text;
    return !version[0] || chakra_ends_in_version(version) ||
           io_fail(why, file, "its version is '%.60s'; %s is read", version, CHAKRA_VERSION);
}

IO_FN bool chakra_read(const char *file, const unsigned char *bytes, size_t size, chakra_trace *t, char *why)
{
    size_t at = 0, length = 0;
    if (!size) return io_fail(why, file, "it is empty");
    if (!chakra_message(file, bytes, size, &at, &length, why)) return false;
    Chakra__Metadata *m = chakra__metadata__unpack(NULL, length, bytes + at);
    if (!m) return io_fail(why, file, "it does not begin with the metadata of a Chakra trace");
    bool ok = chakra_check_version(file, m, why);
    chakra__metadata__free_unpacked(m, NULL);
    for (at += length; ok && at < size; at += length) {
        const size_t start = at;
        if (!chakra_message(file, bytes, size, &at, &length, why)) return false;
        Chakra__Node *n = chakra__node__unpack(NULL, length, bytes + at);
        if (!n) return io_fail(why, file, "the message at byte %zu is no node", start);
        ok = chakra_add(file, t, n, why);
        chakra__node__free_unpacked(n, NULL);
    }
    return ok && chakra_join(file, t, why);
}

/* All of a gzip file; NULL after a sentence. */
IO_FN unsigned char *chakra_unzip(const char *file, const unsigned char *bytes, size_t size, size_t *unpacked,
                                  char *why)
{
    z_stream s;
    size_t capacity = 1 << 16, left = size;
    unsigned char *out = malloc(capacity);
    int state = Z_OK;
    memset(&s, 0, sizeof s);
    *unpacked = 0;
    if (!out || inflateInit2(&s, 16 + MAX_WBITS) != Z_OK)
        return free(out), io_fail(why, file, "there is not enough memory for it"), NULL;
    s.next_in = (Bytef *)(uintptr_t)bytes;
    while (state == Z_OK) {
        if (*unpacked == capacity) {
            unsigned char *more = capacity < CHAKRA_FILE ? realloc(out, capacity *= 2) : NULL;
            if (!more) break;
            out = more;
        }
        if (s.avail_in == 0) s.avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left, left -= s.avail_in;
        const uInt room = capacity - *unpacked > 1u << 30 ? 1u << 30 : (uInt)(capacity - *unpacked);
        s.next_out = out + *unpacked;
        s.avail_out = room;
        state = inflate(&s, Z_NO_FLUSH);
        *unpacked += room - s.avail_out;
    }
    const bool whole = state == Z_STREAM_END && s.avail_in + left == 0;
    inflateEnd(&s);
    if (whole) return out;
    free(out);
    io_fail(why, file,
            state == Z_OK ? "it is larger than 2^31 bytes when it is unpacked, or than there is memory for"
                          : "its compressed data is broken");
    return NULL;
}

/* After a failure t is empty. */
IO_FN bool chakra_parse(const char *file, const unsigned char *bytes, size_t size, chakra_trace *t, char *why)
{
    unsigned char *out = NULL;
    memset(t, 0, sizeof *t);
    if (size > 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        out = chakra_unzip(file, bytes, size, &size, why);
        if (!out) return false;
    }
    const bool ok = chakra_read(file, out ? out : bytes, size, t, why);
    free(out);
    if (!ok) chakra_free(t);
    return ok;
}

IO_FN bool chakra_load(const char *path, chakra_trace *t, char *why)
{
    io_map map;
    memset(t, 0, sizeof *t);
    if (!io_map_open(path, &map, why)) return false;
    const bool ok = chakra_parse(path, map.bytes, map.size, t, why);
    io_map_close(&map);
    return ok;
}

#endif /* IO_CHAKRA_H */

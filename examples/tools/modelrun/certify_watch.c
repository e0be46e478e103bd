/* certify_watch.c - compares what each operation makes of the same tokens in two arrangements, bit by bit.
 * SPDX-License-Identifier: MIT
 *
 * In the plain arrangement the probe's results are recorded. In every other one they are compared, and then the
 * recorded ones are put back, so that the next operation has the same numbers to begin with in both: a difference is
 * that of the operation, never of one before it. Or both get random numbers in their place, which are harder on sums
 * than what a model has: signs, zeros and exponents of all kinds. The whole model runs without either.
 */
#include "certify.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_format.h>

/* ---- places ---- */

typedef struct place {
    mr_kind kind;
    int64_t layer;
    uint64_t number; /* one of its own for each operation, in every run */
} place;

typedef struct entry { /* one operation's recorded results */
    uint64_t number;
    int64_t columns;
    float *value; /* [tokens, columns] */
    bool *there;  /* [tokens] */
} entry;

struct mr_watcher {
    mr_model *model;
    int64_t tokens;
    entry *entry; /* open addressing; number 0: free */
    int64_t room, used;
    bool recording, recut, saw[MR_KINDS];
    mr_numbers numbers;
    char plain[64], name[80];
    mr_tally *tally;
    const int64_t *token; /* of each row of the step */
    int64_t rows;
    int64_t arrangement;
};

static const mr_kind kind_of_matrix[MR_WEIGHTS] = {
    [MR_Q] = MR_KIND_QKV,
    [MR_K] = MR_KIND_QKV,
    [MR_V] = MR_KIND_QKV,
    [MR_Q_DOWN] = MR_KIND_QKV,
    [MR_KV_DOWN] = MR_KIND_QKV,
    [MR_KV_UP] = MR_KIND_QKV,
    [MR_STATE_IN] = MR_KIND_STATE_IN,
    [MR_STATE_RATES] = MR_KIND_STATE_IN,
    [MR_O] = MR_KIND_O,
    [MR_GATE] = MR_KIND_UP,
    [MR_UP] = MR_KIND_UP,
    [MR_DOWN] = MR_KIND_DOWN,
    [MR_ROUTER] = MR_KIND_ROUTER,
    [MR_SHARED_GATE] = MR_KIND_UP,
    [MR_SHARED_UP] = MR_KIND_UP,
    [MR_SHARED_DOWN] = MR_KIND_DOWN,
    [MR_SHARED_SWITCH] = MR_KIND_ROUTER,
};

_Static_assert(MR_WEIGHTS == 32, "each matrix of a layer has its kind above");

static const mr_kind kind_of_op[] = {
    [MR_OP_EMBED] = MR_KIND_EMBED, [MR_OP_NORM] = MR_KIND_NORM,         [MR_OP_TURN] = MR_KIND_TURN,
    [MR_OP_STORE] = MR_KIND_STORE, [MR_OP_SCORES] = MR_KIND_SCORES,     [MR_OP_SOFTMAX] = MR_KIND_SOFTMAX,
    [MR_OP_MIX] = MR_KIND_MIX,     [MR_OP_FUNCTION] = MR_KIND_FUNCTION, [MR_OP_ADD] = MR_KIND_ADD,
    [MR_OP_STATE] = MR_KIND_STATE, [MR_OP_CHOICE] = MR_KIND_CHOICE,     [MR_OP_MIXTURE] = MR_KIND_MIXTURE,
};

/* Byte `at` of an array of `count` things of `size` bytes? The number of the thing. */
static bool inside(const void *of, const void *array, size_t size, int64_t count, int64_t *number)
{
    const uintptr_t at = (uintptr_t)of, from = (uintptr_t)array;
    if (!array || at < from || at >= from + size * (size_t)count) return false;
    *number = (int64_t)((at - from) / size);
    return true;
}

/* The layer of a weight, and its number among those of the layer. */
static int64_t layer_of(const mr_model *m, const mr_weight *w, int64_t *number, bool *expert)
{
    int64_t layer;
    *expert = false;
    if (inside(w, m->layer, sizeof *m->layer, m->config.layers, &layer)) {
        *number = (int64_t)(((uintptr_t)w - (uintptr_t)&m->layer[layer]) / sizeof *w);
        return layer;
    }
    *expert = true;
    for (layer = 0; layer < m->config.layers; layer++)
        if (inside(w, m->layer[layer].expert, sizeof *w, 3 * m->config.experts, number)) return layer;
    *expert = false;
    *number = w == &m->head ? 1 : 0;
    return -1;
}

/* A product whose depth is cut is known by its sum, where there is one or cores are the question. */
static mr_kind kind_of_product(const mr_watcher *w, const mr_made *made, bool expert, int64_t number)
{
    static const mr_kind sum_of[] = {
        [MR_KIND_O] = MR_KIND_O_SUM, [MR_KIND_DOWN] = MR_KIND_DOWN_SUM, [MR_KIND_EXPERT_DOWN] = MR_KIND_EXPERT_SUM
    };
    const mr_weight *weight = made->of;
    int64_t matrix = 0;
    mr_kind kind = MR_KIND_HEAD;
    if (expert)
        kind = number % 3 == 2 ? MR_KIND_EXPERT_DOWN : MR_KIND_EXPERT_UP;
    else if (weight != &w->model->head &&
             inside(weight, w->model->layer, sizeof *w->model->layer, w->model->config.layers, &number) &&
             inside(weight, w->model->layer[number].w, sizeof *weight, MR_WEIGHTS, &matrix) && kind_of_matrix[matrix])
        kind = kind_of_matrix[matrix];
    else if (weight != &w->model->head)
        exit(app_complain(APP_USAGE, "--certify: this model has a product that no rule is known for"));
    const bool cut = kind == MR_KIND_O || kind == MR_KIND_DOWN || kind == MR_KIND_EXPERT_DOWN;
    return cut && made->op == MR_OP_PRODUCT && (made->reduced || w->recut) ? sum_of[kind] : kind;
}

static place place_of(const mr_watcher *w, const mr_made *made)
{
    bool expert;
    int64_t number = 0;
    place p = { .layer = -1 };
    if (made->of) p.layer = layer_of(w->model, made->of, &number, &expert);
    const bool product = made->op == MR_OP_PRODUCT || made->op == MR_OP_PART;
    p.kind = product ? kind_of_product(w, made, made->of && expert, number) : kind_of_op[made->op];
    const uint64_t weight = (uint64_t)(2 * number + (made->of && expert));
    p.number = 1 + (uint64_t)made->op + 16 * ((uint64_t)made->core + 64 * (weight + ((uint64_t)(p.layer + 1) << 20)));
    return p;
}

/* ---- records ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static entry *slot_of(entry *all, int64_t room, uint64_t number)
{
    int64_t at = (int64_t)(mixed(number) & (uint64_t)(room - 1));
    while (all[at].number && all[at].number != number) at = (at + 1) & (room - 1);
    return &all[at];
}

static void grow(mr_watcher *w)
{
    const int64_t room = w->room ? 2 * w->room : 256;
    entry *all = app_memory((size_t)room, sizeof *all);
    for (int64_t i = 0; i < w->room; i++)
        if (w->entry[i].number) *slot_of(all, room, w->entry[i].number) = w->entry[i];
    free(w->entry);
    w->entry = all;
    w->room = room;
}

/* NULL: it was not recorded. */
static entry *entry_of(mr_watcher *w, uint64_t number, int64_t columns)
{
    if (w->recording && 2 * w->used >= w->room) grow(w);
    entry *e = w->room ? slot_of(w->entry, w->room, number) : NULL;
    if (!e || (!e->number && !w->recording)) return NULL;
    if (!e->number) {
        w->used++;
        *e = (entry){ .number = number, .columns = columns };
        e->value = app_memory((size_t)(w->tokens * columns), sizeof *e->value);
        e->there = app_memory((size_t)w->tokens, sizeof *e->there);
    }
    return e;
}

static void forget(mr_watcher *w)
{
    for (int64_t i = 0; i < w->room; i++) {
        free(w->entry[i].value);
        free(w->entry[i].there);
    }
    free(w->entry);
    w->entry = NULL;
    w->room = w->used = 0;
}

mr_watcher *mr_watcher_new(mr_model *model, int64_t tokens)
{
    mr_watcher *w = app_memory(1, sizeof *w);
    w->model = model;
    w->tokens = tokens;
    return w;
}

void mr_watcher_free(mr_watcher *w)
{
    forget(w);
    free(w);
}

void mr_watcher_record(mr_watcher *w, mr_numbers numbers, const char *name, bool recut)
{
    forget(w);
    w->recording = true;
    w->recut = recut;
    w->numbers = numbers;
    snprintf(w->plain, sizeof w->plain, "%s", name);
}

void mr_watcher_compare(mr_watcher *w, mr_tally *tally, const char *name)
{
    w->recording = false;
    w->arrangement++;
    w->tally = tally;
    snprintf(w->name, sizeof w->name, "%s", name);
}

void mr_watcher_rows(mr_watcher *w, const int64_t *token, int64_t rows)
{
    w->token = token;
    w->rows = rows;
}

bool mr_watcher_saw(const mr_watcher *w, mr_kind kind) { return w->saw[kind]; }

/* ---- random numbers ---- */

/* Signs, a zero now and then, and exponents up to `wide` either way; eight significant bits, as BF16 has, or 24. */
static float random_of(uint64_t word, int wide, bool full)
{
    const uint64_t x = mixed(word);
    const uint32_t exponent = (uint32_t)((int)((x >> 8 & 0xffff) % (uint64_t)(2 * wide + 1)) - wide + 127);
    const uint32_t fraction = (uint32_t)(x >> 40) & (full ? 0x7fffffu : 0x7f0000u);
    const uint32_t bits = ((x >> 1) % 32 ? exponent << 23 | fraction : 0) | (uint32_t)(x & 1) << 31;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Large powers of two, which cancel, and small numbers, of which those are left that were added after they did. */
static float hard_of(uint64_t word)
{
    const uint64_t x = mixed(word);
    const float small = random_of(x, 1, false) / (1 << 18);
    return x & 2 ? small : x & 1 ? -64.0f : 64.0f;
}

/* What takes the place of the number: probabilities stay below 1, scores such that more than one key counts. */
static float random_for(const place *p, mr_op op, int64_t token, int64_t element)
{
    const uint64_t word = mixed(p->number * 1000003 + (uint64_t)token) + (uint64_t)element;
    if (token < 0) return 8 * random_of(word, 6, false); /* others are larger: what they share with the probe shows */
    if (op == MR_OP_SCORES) return random_of(word, 2, true);
    const bool hard = mixed((uint64_t)(op == MR_OP_STORE ? element : token)) & 4; /* all that one sum adds */
    const float x = hard ? hard_of(word) : random_of(word, 6, op == MR_OP_PART || op == MR_OP_SOFTMAX);
    return op == MR_OP_SOFTMAX ? fabsf(x) / 256 : x;
}

/* ---- one token's numbers ---- */

static void note(mr_watcher *w, const place *p, int64_t token, int64_t element, float a, float b)
{
    mr_tally *t = &w->tally[p->kind];
    mr_pair *pair = &t->pair;
    t->differ++;
    if (pair->found && pair->arrangement != w->arrangement) return;
    if (pair->found && (pair->layer < p->layer || (pair->layer == p->layer && pair->token < token) ||
                        (pair->layer == p->layer && pair->token == token && pair->element <= element)))
        return;
    *pair = (mr_pair){ true, w->numbers, w->arrangement, p->layer, token, element, a, b, "", "" };
    memcpy(pair->first, w->plain, sizeof pair->first);
    memcpy(pair->second, w->name, sizeof pair->second);
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static bool same_bits(float a, float b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

/* x [n]: elements [first, first + n) of an operation that has `columns`; token < 0: it is not the probe's. */
static void visit(mr_watcher *w, const place *p, mr_op op, int64_t token, int64_t columns, int64_t first, float *x,
                  int64_t n)
{
    entry *e = token < 0 ? NULL : entry_of(w, p->number, columns);
    float *value = e ? e->value + token * e->columns + first : NULL;
    const bool known = e && e->there[token];
    w->saw[p->kind] = true;
    if (e && w->recording) memcpy(value, x, sizeof *x * (size_t)n);
    if (known && !w->recording) {
        w->tally[p->kind].compared += n;
        for (int64_t i = 0; i < n; i++)
            if (!same_bits(value[i], x[i])) note(w, p, token, first + i, value[i], x[i]);
    }
    if (w->numbers == MR_NUMBERS_RANDOM && op != MR_OP_CHOICE)
        for (int64_t i = 0; i < n; i++) x[i] = random_for(p, op, token, first + i);
    else if (known && !w->recording && w->numbers != MR_NUMBERS_FREE)
        memcpy(x, value, sizeof *x * (size_t)n);
}

/* All of one token's numbers are recorded when the last head is: a token is there from then on. */
static void arrive(mr_watcher *w, const place *p, int64_t token, int64_t columns)
{
    if (!w->recording || token < 0) return;
    entry *e = entry_of(w, p->number, columns);
    if (e) e->there[token] = true;
}

/* ---- an operation ---- */

/* Rows that are tokens, or, of norms of heads, whole parts of them. */
static void see_rows(mr_watcher *w, const place *p, const mr_made *made)
{
    const int64_t rows = made->op == MR_OP_NORM ? w->rows : made->rows, columns = made->rows * made->columns / rows;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = made->who ? made->who[made->row + i] : made->row + i;
        visit(w, p, made->op, w->token[row], columns, 0, made->x + i * columns, columns);
        arrive(w, p, w->token[row], columns);
    }
}

/* One head of keys, and its queries' heads. Scores and probabilities count where a key is seen: nowhere else are they
 * other than -infinity and 0. */
static void see_heads(mr_watcher *w, const place *p, const mr_made *made)
{
    const mr_config *c = &w->model->config;
    const int64_t count = made->rows / made->group;
    const bool keyed = made->op != MR_OP_MIX;
    const int64_t each = keyed ? w->tokens : made->columns;
    for (int64_t r = 0; r < made->rows; r++) {
        const int64_t token = w->token[made->row + r % count], head = made->head * made->group + r / count;
        float *x = made->x + r * made->columns;
        if (token < 0) continue;
        const int64_t from = keyed ? mr_first_seen(c, p->layer, token) : 0;
        const int64_t n = keyed ? token + 1 - from : made->columns;
        visit(w, p, made->op, token, c->heads * each, head * each + from, keyed ? x + (from - made->first) : x, n);
        arrive(w, p, token, c->heads * each);
    }
}

void mr_watch(void *watcher, const mr_made *made)
{
    mr_watcher *w = watcher;
    if (w->numbers == MR_NUMBERS_FREE && made->of != &w->model->head) return;
    if (w->recut && made->op == MR_OP_PART) return;
#ifdef _OPENMP
#pragma omp critical(mr_watch)
#endif
    {
        place p = place_of(w, made);
        if (w->numbers == MR_NUMBERS_FREE) p.kind = MR_KIND_MODEL;
        if (made->op == MR_OP_SCORES || made->op == MR_OP_SOFTMAX || made->op == MR_OP_MIX)
            see_heads(w, &p, made);
        else
            see_rows(w, &p, made);
    }
}

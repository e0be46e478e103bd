/* bpe.h - byte pair encoding: tokens as bytes, and the merging of a piece's bytes by rank.
 * SPDX-License-Identifier: MIT
 *
 * DOES: a token's bytes, a token of some bytes, merges by pair of tokens; a piece of any length in n log n steps, the
 *     lowest rank first, of equal ranks the leftmost.
 * DOES NOT: read files, or cut text into pieces: tokenizer.h does.
 *
 * CONTENTS
 *     bpe, bpe_free                the vocabulary and the merges
 *     bpe_set, bpe_bytes           a token's bytes
 *     bpe_index, bpe_find          a token of these bytes
 *     bpe_merge_add                two tokens become one
 *     bpe_ids, bpe_work            a list of tokens that grows; memory that merging uses again
 *     bpe_encode                   a piece -> tokens
 */
#ifndef BPE_H
#define BPE_H

#include <stdlib.h>

#include "io.h"

enum { BPE_NONE = -1, BPE_MOST = 1 << 21 /* tokens, eight times the largest vocabulary that is published */ };

typedef struct bpe_token {
    size_t at;
    uint32_t size;
    bool there;
} bpe_token;

typedef struct bpe_pair {
    int32_t left, right, whole, rank; /* whole: BPE_NONE where the table is empty */
} bpe_pair;

typedef struct bpe {
    bpe_token *token;          /* [tokens] */
    int32_t tokens, byte[256]; /* byte: the token of one byte, or BPE_NONE */
    unsigned char *bytes;      /* of all tokens */
    size_t used, capacity;
    int32_t *find; /* [find_size], by bytes */
    size_t find_size, found;
    bpe_pair *pair; /* [pair_size] */
    size_t pair_size, pairs;
    bool ignore_merges; /* a piece that is a token is one, however it would merge */
} bpe;

IO_FN void bpe_start(bpe *b)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < 256; i++) b->byte[i] = BPE_NONE;
}

IO_FN void bpe_free(bpe *b)
{
    free(b->token);
    free(b->bytes);
    free(b->find);
    free(b->pair);
    bpe_start(b);
}

/* ---- tokens ---- */

IO_FN bool bpe_reserve(bpe *b, int32_t token)
{
    if (token < b->tokens) return true;
    int32_t room = b->tokens < 1024 ? 1024 : b->tokens;
    while (room <= token) room *= 2;
    bpe_token *more = (bpe_token *)realloc(b->token, (size_t)room * sizeof *more);
    if (!more) return false;
    memset(more + b->tokens, 0, (size_t)(room - b->tokens) * sizeof *more);
    b->token = more;
    b->tokens = room;
    return true;
}

/* A token's bytes, instead of what it had; token below BPE_MOST. False: no memory. */
IO_FN bool bpe_set(bpe *b, int32_t token, const void *bytes, size_t size)
{
    if (!bpe_reserve(b, token)) return false;
    if (b->capacity - b->used < size) {
        const size_t room = 2 * b->capacity + size + 4096;
        unsigned char *more = (unsigned char *)realloc(b->bytes, room);
        if (!more) return false;
        b->bytes = more;
        b->capacity = room;
    }
    if (size) memcpy(b->bytes + b->used, bytes, size);
    const bpe_token t = { b->used, (uint32_t)size, true };
    b->token[token] = t;
    b->used += size;
    return true;
}

/* NULL: there is no such token. */
IO_FN const unsigned char *bpe_bytes(const bpe *b, int64_t token, size_t *size)
{
    if (token < 0 || token >= b->tokens || !b->token[token].there) return NULL;
    *size = b->token[token].size;
    return b->bytes + b->token[token].at;
}

/* ---- tables: open addresses, at most half full ---- */

IO_FN uint64_t bpe_mix(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

IO_FN uint64_t bpe_hash(const unsigned char *bytes, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return bpe_mix(h);
}

/* Where these bytes are in the table, or would be. */
IO_FN size_t bpe_slot(const bpe *b, const void *bytes, size_t size)
{
    size_t i = (size_t)bpe_hash((const unsigned char *)bytes, size) & (b->find_size - 1);
    for (; b->find[i] != BPE_NONE; i = (i + 1) & (b->find_size - 1)) {
        const bpe_token *t = &b->token[b->find[i]];
        if (t->size == size && memcmp(b->bytes + t->at, bytes, size) == 0) break;
    }
    return i;
}

IO_FN int32_t bpe_find(const bpe *b, const void *bytes, size_t size)
{
    return b->find_size ? b->find[bpe_slot(b, bytes, size)] : BPE_NONE;
}

IO_FN bool bpe_grow_find(bpe *b)
{
    const size_t old = b->find_size, room = old ? 2 * old : 1024;
    int32_t *was = b->find, *table = (int32_t *)malloc(room * sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < room; i++) table[i] = BPE_NONE;
    b->find = table;
    b->find_size = room;
    for (size_t i = 0; i < old; i++)
        if (was[i] != BPE_NONE) b->find[bpe_slot(b, b->bytes + b->token[was[i]].at, b->token[was[i]].size)] = was[i];
    free(was);
    return true;
}

/* From now on bpe_find knows it. *twice: another token has these bytes. False: no memory. */
IO_FN bool bpe_index(bpe *b, int32_t token, bool *twice)
{
    const bpe_token *t = &b->token[token];
    if (2 * (b->found + 1) > b->find_size && !bpe_grow_find(b)) return false;
    const size_t i = bpe_slot(b, b->bytes + t->at, t->size);
    *twice = b->find[i] != BPE_NONE;
    if (*twice) return true;
    b->find[i] = token;
    b->found++;
    if (t->size == 1) b->byte[b->bytes[t->at]] = token;
    return true;
}

IO_FN size_t bpe_pair_slot(const bpe *b, int32_t left, int32_t right)
{
    size_t i = (size_t)bpe_mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right) & (b->pair_size - 1);
    while (b->pair[i].whole != BPE_NONE && (b->pair[i].left != left || b->pair[i].right != right))
        i = (i + 1) & (b->pair_size - 1);
    return i;
}

IO_FN bool bpe_grow_pairs(bpe *b)
{
    const size_t old = b->pair_size, room = old ? 2 * old : 1024;
    bpe_pair *was = b->pair, *table = (bpe_pair *)malloc(room * sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < room; i++) table[i].whole = BPE_NONE;
    b->pair = table;
    b->pair_size = room;
    for (size_t i = 0; i < old; i++)
        if (was[i].whole != BPE_NONE) b->pair[bpe_pair_slot(b, was[i].left, was[i].right)] = was[i];
    free(was);
    return true;
}

/* The later of two equal pairs counts, as in a dictionary that is filled. False: no memory. */
IO_FN bool bpe_merge_add(bpe *b, bpe_pair pair)
{
    if (2 * (b->pairs + 1) > b->pair_size && !bpe_grow_pairs(b)) return false;
    bpe_pair *slot = &b->pair[bpe_pair_slot(b, pair.left, pair.right)];
    b->pairs += slot->whole == BPE_NONE;
    *slot = pair;
    return true;
}

/* ---- merging ---- */

typedef struct bpe_ids {
    int32_t *id;
    size_t count, capacity;
} bpe_ids;

IO_FN void bpe_ids_free(bpe_ids *ids)
{
    free(ids->id);
    memset(ids, 0, sizeof *ids);
}

IO_FN bool bpe_ids_add(bpe_ids *ids, int32_t id)
{
    if (ids->count == ids->capacity) {
        const size_t room = 2 * ids->capacity + 256;
        int32_t *more = (int32_t *)realloc(ids->id, room * sizeof *more);
        if (!more) return false;
        ids->id = more;
        ids->capacity = room;
    }
    ids->id[ids->count++] = id;
    return true;
}

typedef struct bpe_symbol {
    int32_t id;            /* BPE_NONE: merged away */
    int64_t before, after; /* -1: none */
} bpe_symbol;

typedef struct bpe_step { /* a merge that may still be due */
    int32_t rank, whole, left_id, right_id;
    int64_t left;
} bpe_step;

typedef struct bpe_work {
    bpe_symbol *symbol;
    bpe_step *heap;         /* the least at [0] */
    size_t capacity, steps; /* symbols; steps in the heap, at most three a symbol */
} bpe_work;

IO_FN void bpe_work_free(bpe_work *w)
{
    free(w->symbol);
    free(w->heap);
    memset(w, 0, sizeof *w);
}

IO_FN bool bpe_work_reserve(bpe_work *w, size_t symbols)
{
    if (symbols <= w->capacity) return true;
    const size_t room = 2 * symbols;
    bpe_symbol *symbol = (bpe_symbol *)realloc(w->symbol, room * sizeof *symbol);
    if (symbol) w->symbol = symbol;
    bpe_step *heap = symbol ? (bpe_step *)realloc(w->heap, 3 * room * sizeof *heap) : NULL;
    if (!heap) return false;
    w->heap = heap;
    w->capacity = room;
    return true;
}

IO_FN bool bpe_sooner(const bpe_step *a, const bpe_step *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

IO_FN void bpe_heap_add(bpe_work *w, bpe_step step)
{
    size_t i = w->steps++;
    for (; i > 0 && bpe_sooner(&step, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = step;
}

IO_FN bpe_step bpe_heap_take(bpe_work *w)
{
    const bpe_step least = w->heap[0], last = w->heap[--w->steps];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->steps; i = child) {
        if (child + 1 < w->steps && bpe_sooner(&w->heap[child + 1], &w->heap[child])) child++;
        if (!bpe_sooner(&w->heap[child], &last)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return least;
}

/* The pair that begins at this symbol, if it is one. */
IO_FN void bpe_look(const bpe *b, bpe_work *w, int64_t left)
{
    const int64_t right = left < 0 ? -1 : w->symbol[left].after;
    if (right < 0 || !b->pair_size) return;
    const bpe_pair *p = &b->pair[bpe_pair_slot(b, w->symbol[left].id, w->symbol[right].id)];
    const bpe_step step = { p->rank, p->whole, p->left, p->right, left };
    if (p->whole != BPE_NONE) bpe_heap_add(w, step);
}

IO_FN void bpe_do(const bpe *b, bpe_work *w, const bpe_step *step)
{
    bpe_symbol *left = &w->symbol[step->left];
    const int64_t right = left->id == step->left_id ? left->after : -1;
    if (right < 0 || w->symbol[right].id != step->right_id) return; /* one of the two is no more what it was */
    left->id = step->whole;
    left->after = w->symbol[right].after;
    w->symbol[right].id = BPE_NONE;
    if (left->after >= 0) w->symbol[left->after].before = step->left;
    bpe_look(b, w, left->before);
    bpe_look(b, w, step->left);
}

/* A piece, whose bytes all have tokens, -> ids. False: no memory. */
IO_FN bool bpe_encode(const bpe *b, bpe_work *w, const unsigned char *piece, size_t size, bpe_ids *ids)
{
    const int32_t whole = b->ignore_merges ? bpe_find(b, piece, size) : BPE_NONE;
    if (whole != BPE_NONE) return bpe_ids_add(ids, whole);
    if (!bpe_work_reserve(w, size)) return false;
    w->steps = 0;
    for (size_t i = 0; i < size; i++) {
        const bpe_symbol s = { b->byte[piece[i]], (int64_t)i - 1, i + 1 < size ? (int64_t)i + 1 : -1 };
        w->symbol[i] = s;
    }
    for (size_t i = 0; i + 1 < size; i++) bpe_look(b, w, (int64_t)i);
    while (w->steps > 0) {
        const bpe_step step = bpe_heap_take(w);
        bpe_do(b, w, &step);
    }
    for (int64_t i = size ? 0 : -1; i >= 0; i = w->symbol[i].after)
        if (!bpe_ids_add(ids, w->symbol[i].id)) return false;
    return true;
}

#endif /* BPE_H */

/* quant.h - one reader of quantised checkpoints: which tensors are a matrix's codes and which its scales, and how they
 * belong together, whatever wrote them.
 * SPDX-License-Identifier: MIT
 *
 *     quant_map m = { .tensor = list, .tensors = count, .said = &said, .asked = &asked };
 *     if (!quant_survey(&m, why)) return puts(why), 2;
 *     for (int i = 0; i < m.quants; i++) {
 *         const quant *q = &m.quant[i];
 *         if (q->wrong) return puts(q->wrong), 2;      // or leave it alone, where nobody needs it
 *         ... q->view.shape, q->part[QUANT_CODES], quant_open(...), quant_run(...)  (values.h)
 *     }
 *     quant_map_free(&m);
 *
 * | kind  | codes                                 | scales                                                           |
 * |-------|---------------------------------------|-------------------------------------------------------------------|
 * | FP8   | F8_E4M3, F8_E5M2                      | F32, BF16, F16, F8_E8M0, U8 (which is E8M0): names.h, grid.h      |
 * | INT8  | I8 [.., N, K]                         | F32, BF16, F16, in the same way; zero points of the same shape    |
 * | MXFP4 | x_blocks U8 [.., G, 16] (gpt-oss)     | x_scales U8 [.., G]                                               |
 * |       | U8 [.., N, K/2], F4 [.., N, K]        | U8, F8_E8M0 [.., N, K/32] (compressed-tensors, Quark)             |
 * |       | I8 [.., N, K/2], expert_dtype fp4     | F8_E8M0 [.., N, K/32] (DeepSeek-V4)                               |
 * | NVFP4 | U8 [.., N, K/2], F4 [.., N, K]        | F8_E4M3 [.., N, K/16], times weight_scale_2 (ModelOpt) or over    |
 * |       |                                       | weight_global_scale (compressed-tensors)                          |
 * | INT4  | qweight, weight_packed, I32           | AWQ, GPTQ, compressed-tensors: int4.h                             |
 * | NF4   | U8 [N K / 2, 1]                       | absmax, and a table (bitsandbytes): nf4.h                         |
 *
 * The code with the smaller index is in the low half of a byte in all of them.
 *
 * DOES: what is wrong with one matrix is its own sentence: the rest can be used. Codes whose scale is not known, while
 *     something stands beside them that could be it, are wrong; where nothing does, the scale is 1: `alone` says so.
 * DOES NOT: look at numbers, or guess.
 *
 * CONTENTS
 *     quant, quant_kind, quant_kind_text     a matrix of codes
 *     quant_map, quant_survey                all of a checkpoint; quant_map_free it
 *     quant_asked, quant_ask_scale, _block   what the user said
 *     quant_find                             a tensor by its name
 *     quant_outputs                          which axis of experts in one tensor counts outputs
 */
#ifndef IO_QUANT_H
#define IO_QUANT_H

#include "../int4_awq.h"
#include "../int4_gptq.h"
#include "../int4_packed.h"
#include "../mxfp4.h"
#include "../nf4.h"
#include "grid.h"
#include "names.h"

enum { NVFP4_BLOCK = 16, QUANT_ASKED = 32 };

typedef enum quant_kind {
    QUANT_FP8,
    QUANT_INT8,
    QUANT_INT4,
    QUANT_NF4,
    QUANT_MXFP4,
    QUANT_NVFP4,
    QUANT_KINDS
} quant_kind;

typedef enum quant_parts_of {
    QUANT_CODES,
    QUANT_SCALE,
    QUANT_SECOND,
    QUANT_ZERO,
    QUANT_ORDER, /* g_idx */
    QUANT_SHAPE, /* weight_shape, quant_state */
    QUANT_TABLE, /* quant_map; then those of absmax */
    QUANT_NESTED,
    QUANT_NESTED_TABLE,
    QUANT_PARTS
} quant_parts_of;

typedef enum quant_layout { QUANT_OWN, QUANT_AWQ, QUANT_GPTQ, QUANT_PACKED } quant_layout;

typedef struct quant {
    quant_kind kind;
    quant_layout layout;   /* INT4 */
    const quant_said *said;
    int part[QUANT_PARTS]; /* numbers of tensors; -1: none */
    st_tensor codes;       /* FP4: as bytes, whatever its type says */
    st_tensor view;        /* its elements as they stand: shape and count; type and name are nothing */
    quant_grid grid;       /* FP8, INT8: of its scale */
    int outputs;           /* which of the last two axes counts outputs, -2 or -1; 0: it is not known */
    bool divides;          /* NVFP4: by its second scale */
    bool ordered;          /* INT4: its inputs' groups are in an order of their own */
    int bits;              /* INT4: of a code */
    bool powers;           /* FP8: the scale's bytes are powers of two, though their type may not say so */
    bool alone;            /* no scale is there, and 1 is taken */
    char *wrong;           /* a sentence: it cannot be read. NULL: it can */
} quant;

typedef struct quant_asked {
    const char *scale_name[QUANT_ASKED];
    int scale_names;
    int64_t block[2]; /* 0: nothing was asked for */
    bool take_for_1;  /* where a scale is missing */
} quant_asked;

/* Options of programs. false with a phrase. */
IO_FN bool quant_ask_scale(quant_asked *a, const char *pattern, char *why)
{
    const char *wrong = NULL;
    if (!strstr(pattern, "{name}") && !strstr(pattern, "{base}"))
        wrong = "expected a pattern with {name} or {base}, such as {name}_scale";
    else if (a->scale_names == QUANT_ASKED) wrong = "there are more than 32 of these already";
    if (wrong) return snprintf(why, IO_WHY, "%s", wrong), false;
    a->scale_name[a->scale_names++] = pattern;
    return true;
}

IO_FN bool quant_ask_block(quant_asked *a, const char *value, char *why)
{
    long long rows, columns;
    char rest;
    const bool pair = sscanf(value, "%lldx%lld%c", &rows, &columns, &rest) == 2;
    if (!pair || rows < 1 || columns < 1 || rows > 1 << 20 || columns > 1 << 20)
        return snprintf(why, IO_WHY, "expected ROWSxCOLUMNS, such as 128x128"), false;
    a->block[0] = rows;
    a->block[1] = columns;
    return true;
}

typedef struct quant_map {
    const st_tensor *const *tensor; /* in the order of names */
    int tensors;
    const quant_said *said;
    const quant_asked *asked;
    quant_role *role; /* of each tensor */
    int *owner;       /* of a part: the number of its codes; -1 */
    int *number;      /* of codes: which quant; -1 */
    quant *quant;
    int quants, capacity;
} quant_map;

IO_FN const char *quant_kind_text(quant_kind kind)
{
    static const char *const text[QUANT_KINDS] = { "FP8", "INT8", "INT4", "NF4", "MXFP4", "NVFP4" };
    return text[kind];
}

/* ---- names ---- */

IO_FN const char *quant_name_at(const void *map, int place) { return ((const quant_map *)map)->tensor[place]->name; }

IO_FN int quant_find(const quant_map *m, const char *name) { return io_find(m, m->tensors, quant_name_at, name); }

/* The tensor that a pattern makes of a name; -1. */
IO_FN int quant_find_by(const quant_map *m, const char *pattern, const char *name)
{
    char text[QUANT_NAME];
    const int found = quant_fill(pattern, name, text, sizeof text) ? quant_find(m, text) : -1;
    return found >= 0 && strcmp(text, name) != 0 ? found : -1;
}

IO_FN int quant_find_any(const quant_map *m, const char *const *pattern, size_t patterns, const char *name)
{
    int found = -1;
    for (size_t i = 0; i < patterns && found < 0; i++) found = quant_find_by(m, pattern[i], name);
    return found;
}

/* ---- types ---- */

IO_FN bool quant_is(const st_tensor *t, const char *type) { return strcmp(t->type, type) == 0; }

IO_FN bool quant_is_fp8(const st_tensor *t)
{
    return t->format == TRN_F8_E4M3FN || t->format == TRN_F8_E4M3 || t->format == TRN_F8_E5M2;
}

IO_FN bool quant_is_number(const st_tensor *t)
{
    return t->format == TRN_F32 || t->format == TRN_BF16 || t->format == TRN_F16;
}

IO_FN bool quant_is_power(const st_tensor *t) { return t->format == TRN_F8_E8M0 || quant_is(t, "U8"); }

IO_FN void quant_set_shape(st_tensor *t, int axis, int64_t size)
{
    uint64_t bytes;
    const char *wrong;
    t->shape[axis] = size;
    st_measure(t, &bytes, &wrong);
}

/* Bytes of two codes each, as the tensor has them: F4 counts codes. */
IO_FN st_tensor quant_as_bytes(const st_tensor *t)
{
    st_tensor b = *t;
    const bool four = quant_is(t, "F4") && t->rank >= 1;
    snprintf(b.type, sizeof b.type, "U8");
    if (four && t->shape[t->rank - 1] % 2) return *t;
    quant_set_shape(&b, b.rank ? b.rank - 1 : 0, b.rank ? b.shape[b.rank - 1] / (four ? 2 : 1) : 0);
    return b;
}

/* ---- experts in one tensor: [E, inputs, outputs] or [E, outputs, inputs] ---- */

/* By the sizes that the configuration has; 0: they do not tell. */
IO_FN int quant_outputs_by_size(const quant_said *s, const st_tensor *t)
{
    const bool down = strstr(t->name, "down") != NULL || strstr(t->name, "w2") != NULL;
    const int64_t a = t->shape[1], b = t->shape[2], hidden = s->hidden, inner = s->intermediate;
    if (hidden <= 0 || inner <= 0) return 0;
    for (int parts = 1; parts <= 2; parts++) {
        const int64_t in = down ? inner : hidden, out = down ? hidden : parts * inner;
        if (in == out || (down && parts == 2)) continue;
        if (a == in && b == out) return -1;
        if (a == out && b == in) return -2;
    }
    return 0;
}

IO_FN int quant_outputs_by_model(const quant_said *s)
{
    static const struct {
        const char *type;
        int outputs;
    } row[] = { { "gpt_oss", -1 },           { "llama4", -1 },      { "llama4_text", -1 },     { "qwen3_vl_moe", -1 },
                { "qwen3_vl_moe_text", -1 }, { "qwen3_5_moe", -2 }, { "qwen3_5_moe_text", -2 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(s->model_type, row[i].type) == 0) return row[i].outputs;
    return 0;
}

/* Which of the last two axes counts outputs; 0: nothing tells. What is called .weight is a layer's, outputs first. */
IO_FN int quant_outputs(const quant_said *s, const st_tensor *t)
{
    const char *end;
    quant_module(t->name, &end);
    if (t->rank < 3 || *end) return -2;
    const int by_size = t->rank == 3 ? quant_outputs_by_size(s, t) : 0;
    return by_size ? by_size : quant_outputs_by_model(s);
}

/* ---- one matrix ---- */

typedef struct quant_hand { /* the matrix under work */
    quant_map *map;
    quant *q;
    const st_tensor *t;
    int place;
} quant_hand;

/* Its first sentence stands. false. */
__attribute__((unused, format(printf, 2, 3))) static bool quant_wrong(quant *q, const char *format, ...)
{
    char why[IO_WHY], sentence[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(sentence, sizeof sentence, IO_SAID, format, list);
    va_end(list);
    io_fail(why, q->codes.name, "%s", sentence);
    if (!q->wrong) q->wrong = strdup(why);
    return false;
}

IO_FN bool quant_take_why(quant *q, const char *why)
{
    if (!q->wrong) q->wrong = strdup(why);
    return false;
}

/* Makes the tensor a part of this matrix; false: it is of another one, and that is wrong. */
IO_FN bool quant_claim(const quant_hand *h, quant_parts_of part, int place)
{
    quant_map *m = h->map;
    if (place < 0) return true;
    if (m->owner[place] >= 0 || m->number[place] >= 0)
        return quant_wrong(h->q, "its scale %.200s has another use", m->tensor[place]->name);
    m->role[place] = QUANT_PART;
    m->owner[place] = h->place;
    h->q->part[part] = place;
    return true;
}

/* A new matrix. The memory of its list may move: no other quant is held meanwhile. NULL without memory. */
IO_FN quant *quant_add(quant_map *m, int place, quant_kind kind)
{
    if (!st_grow((void **)&m->quant, sizeof *m->quant, m->quants, &m->capacity)) return NULL;
    quant *q = &m->quant[m->quants];
    memset(q, 0, sizeof *q);
    for (int i = 0; i < QUANT_PARTS; i++) q->part[i] = -1;
    q->kind = kind;
    q->said = m->said;
    q->part[QUANT_CODES] = place;
    q->codes = q->view = *m->tensor[place];
    q->outputs = quant_outputs(m->said, m->tensor[place]);
    m->role[place] = QUANT_WEIGHT;
    m->number[place] = m->quants++;
    return q;
}

/* ---- which tensor is its scale ---- */

/* Names that the user gave, then those that are known. Two of different names: which one is not told. */
IO_FN int quant_find_scale(const quant_map *m, const char *name, int *other)
{
    const quant_asked *a = m->asked;
    const char *pattern;
    int found = -1;
    *other = -1;
    for (int i = 0; i < a->scale_names && found < 0; i++) found = quant_find_by(m, a->scale_name[i], name);
    if (found >= 0) return found;
    for (int i = 0; (pattern = quant_scale_pattern(i)) != NULL; i++) {
        const int one = quant_find_by(m, pattern, name);
        if (one < 0 || one == found || m->number[one] >= 0) continue;
        if (found < 0)
            found = one;
        else if (m->owner[one] < 0)
            *other = one;
    }
    return found;
}

IO_FN void quant_shape_text(const st_tensor *t, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, i ? ", %lld" : "%lld", (long long)t->shape[i]);
    if (n < size) snprintf(text + n, size - n, "]");
}

/* Two lengths, or two axes: the sentence says what would decide. */
IO_FN bool quant_tell_open(quant *q, const st_tensor *scale, const quant_doubt *doubt)
{
    char shape[96];
    quant_shape_text(scale, shape, sizeof shape);
    if (!doubt->axis)
        return quant_wrong(q,
                           "its scale %.120s of shape %s fits its rows and its columns, and nothing says which are "
                           "outputs (hidden_size and moe_intermediate_size of config.json would)",
                           scale->name, shape);
    return quant_wrong(
        q, "its scale %.120s of shape %s fits blocks of %lld and of %lld %s: say which, --block %s%lld%s", scale->name,
        shape, (long long)doubt->a, (long long)doubt->b, doubt->axis == -2 ? "rows" : "columns",
        doubt->axis == -2 ? "" : "1x", (long long)doubt->a, doubt->axis == -2 ? "xCOLUMNS" : "");
}

IO_FN bool quant_fit_scale(const quant_hand *h, const st_tensor *s)
{
    const char *end;
    char module[QUANT_NAME], shape[96];
    quant *q = h->q;
    snprintf(module, sizeof module, "%.*s", (int)quant_module(h->t->name, &end), h->t->name);
    const quant_facts f = quant_facts_of(h->map->said, module);
    const quant_asked *a = h->map->asked;
    const bool inverse = ckpt_ends(s->name, "_scale_inv");
    const quant_cut cut = { { a->block[0], a->block[1] }, { f.block[0], f.block[1] }, f.group, q->outputs, inverse };
    quant_doubt doubt = { 0, 0, 0 };
    const quant_fit fit = quant_grid_fit(h->t, s, &cut, &q->grid, &doubt);
    if (fit == QUANT_FITS) return true;
    if (fit == QUANT_OPEN) return quant_tell_open(q, s, &doubt);
    quant_shape_text(s, shape, sizeof shape);
    if (fit == QUANT_CONTRARY)
        return quant_wrong(q, "its scale %.120s of shape %s does not have the shape that %s's %s [%lld, %lld] gives it",
                           s->name, shape, h->map->said->file,
                           h->map->said->block[0] ? "weight_block_size" : "block_structure", (long long)f.block[0],
                           (long long)f.block[1]);
    return quant_wrong(q,
                       "the shape %s of its scale %.200s does not fit: it is neither of one number, nor of one for "
                       "each row, nor of blocks",
                       shape, s->name);
}

/* ---- FP8 and INT8 ---- */

IO_FN bool quant_take_scale(const quant_hand *h, int scale)
{
    const st_tensor *s = h->map->tensor[scale];
    quant *q = h->q;
    q->powers = q->kind == QUANT_FP8 && quant_is_power(s);
    if (!quant_is_number(s) && !q->powers)
        return quant_wrong(q, "its scale %.200s is %s; expected F32, BF16, F16%s", s->name, s->type,
                           q->kind == QUANT_FP8 ? " or F8_E8M0" : "");
    return quant_claim(h, QUANT_SCALE, scale) && quant_fit_scale(h, s);
}

IO_FN bool quant_scaled(const quant_hand *h)
{
    int other;
    const int scale = quant_find_scale(h->map, h->t->name, &other);
    if (scale < 0) {
        h->q->alone = true;
        h->q->grid = quant_grid_whole(h->t);
        return true;
    }
    if (other >= 0)
        return quant_wrong(h->q, "both %.150s and %.150s could be its scale: --scale-name says which",
                           h->map->tensor[scale]->name, h->map->tensor[other]->name);
    return quant_take_scale(h, scale);
}

/* A zero point for each scale. */
IO_FN bool quant_take_zero(const quant_hand *h)
{
    static const char *const pattern[] = { "{name}_zero_point", "{base}.weight_zero_point", "{base}._weight_zero_point",
                                           "{base}.zero_point", "{base}.weight_zp",         "{base}.zeros",
                                           "{base}.zero" };
    const int zero = quant_find_any(h->map, pattern, sizeof pattern / sizeof pattern[0], h->t->name);
    if (zero < 0) return true;
    const st_tensor *z = h->map->tensor[zero];
    const st_tensor *s = h->q->part[QUANT_SCALE] >= 0 ? h->map->tensor[h->q->part[QUANT_SCALE]] : NULL;
    const bool known = quant_is(z, "I8") || quant_is(z, "U8") || quant_is(z, "I32") || quant_is_number(z);
    if (!known || !s || z->elements != s->elements)
        return quant_wrong(h->q, "its zero point %.200s is %s of another count than its scale", z->name, z->type);
    return quant_claim(h, QUANT_ZERO, zero);
}

/* ---- FP4 ---- */

/* [.., N, K/2] and [.., N, K/block]. */
IO_FN bool quant_packed_fits(const st_tensor *t, const st_tensor *scale, int block)
{
    const int r = t->rank;
    if (r < 2 || scale->rank != r || !mxfp4_same(t, scale, r - 1)) return false;
    return t->shape[r - 1] % (block / 2) == 0 && t->shape[r - 1] / (block / 2) == scale->shape[r - 1];
}

IO_FN bool quant_take_mxfp4(const quant_hand *h, int scale)
{
    char why[IO_WHY];
    mxfp4 m;
    quant *q = h->q;
    const st_tensor *s = scale >= 0 ? h->map->tensor[scale] : NULL;
    if (!mxfp4_open(&q->codes, s, &m, why)) return quant_take_why(q, why);
    if (!quant_claim(h, QUANT_SCALE, scale)) return false;
    if (s->rank < 2) return quant_wrong(q, "it has no rows");
    q->view = *s;
    snprintf(q->view.type, sizeof q->view.type, "U8");
    quant_set_shape(&q->view, s->rank - 1, m.columns);
    return true;
}

IO_FN bool quant_take_nvfp4(const quant_hand *h, int scale)
{
    static const char *const times[] = { "{base}.weight_scale_2", "{name}_scale_2", "{base}.weight_scale_2" },
                             *const over[] = { "{base}.weight_global_scale" };
    quant *q = h->q;
    const st_tensor *t = &q->codes, *s = h->map->tensor[scale];
    const bool packed = ckpt_ends(h->t->name, ".weight_packed");
    const int factor = quant_find_any(h->map, times, 2, h->t->name),
              divisor = quant_find_any(h->map, over, 1, h->t->name);
    const int second = packed ? divisor : factor;
    if (second < 0)
        return quant_wrong(q, "it is NVFP4, and its second scale %s is missing",
                           packed ? "weight_global_scale" : "weight_scale_2");
    const st_tensor *g = h->map->tensor[second];
    if (!quant_packed_fits(t, s, NVFP4_BLOCK))
        return quant_wrong(q,
                           "its shape and that of its scale %.150s do not fit: in NVFP4 a scale is for 16 codes, 8 "
                           "bytes",
                           s->name);
    quant_set_shape(&q->view, t->rank - 1, 2 * t->shape[t->rank - 1]);
    const int64_t rows = t->shape[t->rank - 2], columns = q->view.shape[t->rank - 1];
    const int64_t matrices = rows && columns ? q->view.elements / rows / columns : 0;
    if (!quant_is(g, "F32") || (g->elements != 1 && g->elements != matrices))
        return quant_wrong(q, "its second scale %.150s is not one F32, or one for each matrix", g->name);
    q->kind = QUANT_NVFP4;
    q->divides = packed;
    return quant_claim(h, QUANT_SCALE, scale) && quant_claim(h, QUANT_SECOND, second);
}

/* Two codes a byte under x_scale: by the scale's type it is the one or the other. */
IO_FN bool quant_take_fp4(const quant_hand *h, int scale)
{
    const st_tensor *s = h->map->tensor[scale];
    if (s->format == TRN_F8_E4M3FN || s->format == TRN_F8_E4M3) return quant_take_nvfp4(h, scale);
    if (mxfp4_bytes(s, true)) return quant_take_mxfp4(h, scale);
    return quant_wrong(h->q, "its scale %.150s is %s; NVFP4 has F8_E4M3 and MXFP4 U8", s->name, s->type);
}

/* ---- integers in words, and NF4: rooms of their own, which are told what config.json says ---- */

IO_FN int_groups_said quant_said_bool(const cJSON *object, const char *key)
{
    const cJSON *item = quant_member(object, key);
    return !cJSON_IsBool(item) ? INT_GROUPS_UNSAID : cJSON_IsTrue(item) ? INT_GROUPS_TRUE : INT_GROUPS_FALSE;
}

IO_FN bool quant_open_awq(const quant *q, const quant_facts *f, const st_tensor *const part[QUANT_PARTS], int_groups *m,
                          char *why)
{
    const int4_awq_config said = { cJSON_GetStringValue(quant_member(q->said->object, "version")), f->bits, f->group };
    return int4_awq_open(part[QUANT_CODES], part[QUANT_ZERO], part[QUANT_SCALE], &said, m, why);
}

/* "quantizer" of "meta", a text or a list of them: GPTQModel's, where one is its, else any; NULL: it is not said. */
IO_FN const char *quant_gptq_maker(const cJSON *object)
{
    const cJSON *said = quant_member(quant_member(object, "meta"), "quantizer"), *item;
    const char *maker = cJSON_GetStringValue(said);
    cJSON_ArrayForEach(item, said)
    {
        const char *one = cJSON_GetStringValue(item);
        if (one && (!maker || strncasecmp(one, "gptqmodel", 9) == 0)) maker = one;
    }
    return maker;
}

IO_FN bool quant_open_gptq(const quant *q, const quant_facts *f, const st_tensor *const part[QUANT_PARTS],
                           int_groups *m, char *why)
{
    const cJSON *o = q->said->object;
    const int4_gptq_parts parts = { part[QUANT_CODES], part[QUANT_ZERO], part[QUANT_SCALE], part[QUANT_ORDER] };
    const int4_gptq_config said = { cJSON_GetStringValue(quant_member(o, "checkpoint_format")), f->bits, f->group,
                                    quant_said_bool(o, "desc_act"),
                                    f->symmetric != INT_GROUPS_UNSAID ? f->symmetric : quant_said_bool(o, "sym") };
    return int4_gptq_open(&parts, &said, m, why) && int4_gptq_trusted(part[QUANT_CODES], m, quant_gptq_maker(o), why);
}

IO_FN bool quant_open_packed(const quant *q, const quant_facts *f, const st_tensor *const part[QUANT_PARTS],
                             int_groups *m, char *why)
{
    const int4_packed_parts parts = { part[QUANT_CODES], part[QUANT_SCALE], part[QUANT_SHAPE],
                                      part[QUANT_ZERO],  part[QUANT_ORDER], part[QUANT_SECOND] };
    const int4_packed_config said = { f->format[0] ? f->format : NULL, f->type[0] ? f->type : NULL,
                                      f->strategy[0] ? f->strategy : NULL, f->bits, f->group, f->symmetric };
    (void)q;
    return int4_packed_open(&parts, &said, m, why);
}

/* Parts with as much data as there is. */
IO_FN bool quant_open_groups(const quant *q, const st_tensor *const part[QUANT_PARTS], int_groups *m, char *why)
{
    static bool (*const open[])(const quant *, const quant_facts *, const st_tensor *const[QUANT_PARTS], int_groups *,
                                char *) = { NULL, quant_open_awq, quant_open_gptq, quant_open_packed };
    const char *end;
    char module[QUANT_NAME];
    snprintf(module, sizeof module, "%.*s", (int)quant_module(q->codes.name, &end), q->codes.name);
    const quant_facts f = quant_facts_of(q->said, module);
    return open[q->layout](q, &f, part, m, why);
}

IO_FN bool quant_open_nf4(const quant *q, const st_tensor *const part[QUANT_PARTS], nf4 *m, char *why)
{
    const nf4_parts parts = { part[QUANT_CODES], part[QUANT_SCALE],  part[QUANT_SHAPE],
                              part[QUANT_TABLE], part[QUANT_NESTED], part[QUANT_NESTED_TABLE] };
    (void)q;
    return nf4_open(&parts, m, why);
}

/* The tensors that belong to one of these: which part each name is. */
typedef struct quant_belonging {
    quant_parts_of part;
    const char *pattern;
} quant_belonging;

IO_FN bool quant_claim_all(const quant_hand *h, const quant_belonging *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        const int place = quant_find_by(h->map, row[i].pattern, h->t->name);
        if (place >= 0 && h->q->part[row[i].part] < 0 && !quant_claim(h, row[i].part, place)) return false;
    }
    return true;
}

IO_FN void quant_gather(const quant_hand *h, const st_tensor *part[QUANT_PARTS])
{
    for (int i = 0; i < QUANT_PARTS; i++) part[i] = h->q->part[i] < 0 ? NULL : h->map->tensor[h->q->part[i]];
}

IO_FN void quant_set_matrix(st_tensor *view, int rank, const int64_t *shape)
{
    uint64_t bytes;
    const char *wrong;
    view->rank = rank;
    for (int i = 0; i < rank; i++) view->shape[i] = shape[i];
    snprintf(view->type, sizeof view->type, "U8");
    st_measure(view, &bytes, &wrong);
}

IO_FN bool quant_take_groups(const quant_hand *h)
{
    static const quant_belonging row[] = { { QUANT_SCALE, "{base}.scales" },
                                           { QUANT_ZERO, "{base}.qzeros" },
                                           { QUANT_ORDER, "{base}.g_idx" },
                                           { QUANT_SCALE, "{base}.weight_scale" },
                                           { QUANT_SHAPE, "{base}.weight_shape" },
                                           { QUANT_ZERO, "{base}.weight_zero_point" },
                                           { QUANT_ORDER, "{base}.weight_g_idx" },
                                           { QUANT_SECOND, "{base}.weight_global_scale" } };
    const st_tensor *part[QUANT_PARTS];
    char why[IO_WHY];
    int_groups m;
    if (!quant_claim_all(h, row, sizeof row / sizeof row[0])) return false;
    quant_gather(h, part);
    if (!quant_open_groups(h->q, part, &m, why)) return quant_take_why(h->q, why);
    const int64_t shape[2] = { m.rows, m.columns };
    quant_set_matrix(&h->q->view, 2, shape);
    h->q->grid = quant_grid_matrices(&h->q->view);
    quant_grid_cut(&h->q->grid, 1, 1, m.group);
    const st_tensor *order = part[QUANT_ORDER];
    h->q->ordered = (order && !order->data) || (m.order && !int_groups_plain(&m));
    h->q->bits = m.code.bits;
    return true;
}

IO_FN bool quant_take_nf4(const quant_hand *h)
{
    static const quant_belonging row[] = { { QUANT_SCALE, "{name}.absmax" },
                                           { QUANT_SHAPE, "{name}.quant_state.bitsandbytes__nf4" },
                                           { QUANT_SHAPE, "{name}.quant_state.bitsandbytes__fp4" },
                                           { QUANT_TABLE, "{name}.quant_map" },
                                           { QUANT_NESTED, "{name}.nested_absmax" },
                                           { QUANT_NESTED_TABLE, "{name}.nested_quant_map" } };
    const st_tensor *part[QUANT_PARTS];
    char why[IO_WHY];
    nf4 m;
    if (!quant_claim_all(h, row, sizeof row / sizeof row[0])) return false;
    quant_gather(h, part);
    if (!quant_open_nf4(h->q, part, &m, why)) return quant_take_why(h->q, why);
    quant_set_matrix(&h->q->view, m.rank, m.shape);
    return true;
}

/* ---- each in its turn ---- */

/* quant_survey tries these for each tensor that is no one's yet. false: it is something else. */
typedef struct quant_try {
    quant_map *map;
    const st_tensor *t;
    int place;
    bool memory; /* ran out */
} quant_try;

IO_FN quant_hand quant_begin(quant_try *y, quant_kind kind)
{
    quant_hand h = { y->map, quant_add(y->map, y->place, kind), y->t, y->place };
    y->memory = h.q == NULL;
    return h;
}

/* Words of integers, where config.json says whose. */
IO_FN bool quant_try_words(quant_try *y)
{
    static const struct {
        const char *end, *method;
        quant_layout layout;
    } row[] = { { ".qweight", "awq", QUANT_AWQ },
                { ".qweight", "gptq", QUANT_GPTQ },
                { ".weight_packed", "compressed-tensors", QUANT_PACKED } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (!quant_is(y->t, "I32") || !ckpt_ends(y->t->name, row[i].end)) continue;
        if (strcmp(y->map->said->method, row[i].method) != 0) continue;
        const quant_hand h = quant_begin(y, QUANT_INT4);
        if (!h.q) return false;
        h.q->layout = row[i].layout;
        quant_take_groups(&h);
        return true;
    }
    return false;
}

IO_FN bool quant_try_nf4(quant_try *y)
{
    static const char *const state[] = { "{name}.quant_state.bitsandbytes__nf4",
                                         "{name}.quant_state.bitsandbytes__fp4" };
    if (quant_find_any(y->map, state, 2, y->t->name) < 0) return false;
    const quant_hand h = quant_begin(y, QUANT_NF4);
    return h.q && (quant_take_nf4(&h), true);
}

/* x_blocks with x_scales. */
IO_FN bool quant_try_blocks(quant_try *y)
{
    char scales[MXFP4_NAME], base[MXFP4_NAME];
    if (!mxfp4_scales_name(y->t->name, scales, base)) return false;
    const int scale = quant_find(y->map, scales);
    if (scale < 0 && !quant_is(y->t, "U8")) return false;
    const quant_hand h = quant_begin(y, QUANT_MXFP4);
    return h.q && (quant_take_mxfp4(&h, scale), true);
}

/* x.weight_packed or x.weight, of bytes or F4. */
IO_FN bool quant_try_bytes(quant_try *y)
{
    const st_tensor *t = y->t;
    const char *end;
    const bool four = quant_is(t, "F4"), packed = ckpt_ends(t->name, ".weight_packed");
    quant_module(t->name, &end);
    if ((!quant_is(t, "U8") && !four) || t->rank < 2 || (!four && !packed && !ckpt_ends(t->name, ".weight")))
        return false;
    int other;
    const int named = quant_find_by(y->map, "{base}.weight_scale", t->name);
    const int scale = named >= 0 ? named : quant_find_scale(y->map, t->name, &other);
    const bool powers = scale >= 0 && quant_is_power(y->map->tensor[scale]);
    if (scale < 0 && !packed && !four) return false; /* of another format */
    if (named < 0 && !packed && !four && !powers) return false;
    const quant_hand h = quant_begin(y, QUANT_MXFP4);
    if (!h.q) return false;
    h.q->codes = quant_as_bytes(t);
    h.q->view = h.q->codes;
    if (scale < 0)
        quant_wrong(h.q, "its weight_scale is missing");
    else if (!quant_is(&h.q->codes, "U8"))
        quant_wrong(h.q, "it has an odd number of columns of four bits");
    else
        quant_take_fp4(&h, scale);
    return true;
}

/* Bytes in an order of their own, whatever else their names look like, by the method or by the name alone (EETQ's
 * qweight, inputs first, for its kernels): foreign.h refuses them. */
IO_FN bool quant_own_order(const quant_said *s, const st_tensor *t)
{
    static const char *const method[] = {
        "eetq", "hqq",   "aqlm",   "quip",       "quip_sharp",      "vptq", "exl2", "exl3",
        "spqr", "higgs", "bitnet", "auto-round", "intel/auto-round"
    };
    bool own = ckpt_ends(t->name, ".qweight");
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++) own = own || strcasecmp(s->method, method[i]) == 0;
    return own;
}

/* I8: of eight bits, or, where the configuration says so, two of four. */
IO_FN bool quant_try_i8(quant_try *y)
{
    const st_tensor *t = y->t;
    int other;
    if (!quant_is(t, "I8") || t->rank < 2 || quant_own_order(y->map->said, t)) return false;
    const int scale = quant_find_scale(y->map, t->name, &other);
    if (scale < 0) return false;
    const st_tensor *s = y->map->tensor[scale];
    const bool two = quant_is_power(s) && quant_packed_fits(t, s, MXFP4_BLOCK);
    const quant_hand h = quant_begin(y, two ? QUANT_MXFP4 : QUANT_INT8);
    if (!h.q) return false;
    if (two && strcmp(y->map->said->expert_dtype, "fp4") != 0)
        return quant_wrong(h.q, "it is I8 with a power of two for 16 bytes, as DeepSeek-V4 keeps FP4, and config.json "
                                "does not say expert_dtype fp4"),
               true;
    if (two) {
        snprintf(h.q->codes.type, sizeof h.q->codes.type, "U8");
        h.q->codes.format = trn_format_from_name("U8");
        quant_take_mxfp4(&h, scale);
    } else if (quant_scaled(&h)) {
        quant_take_zero(&h);
    }
    return true;
}

IO_FN bool quant_try_fp8(quant_try *y)
{
    if (!quant_is_fp8(y->t)) return false;
    const quant_hand h = quant_begin(y, QUANT_FP8);
    return h.q && (quant_scaled(&h), true);
}

/* ---- codes without a scale, and what stands beside them ---- */

/* Could these numbers divide that matrix? */
IO_FN bool quant_could_be(const quant *q, const st_tensor *s)
{
    static const char *const never[] = { "I64", "U64", "I16", "U16", "BOOL", "C64" };
    const quant_cut cut = { { 0, 0 }, { 0, 0 }, 0, 0, false };
    quant_grid grid;
    quant_doubt doubt;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (quant_is(s, never[i])) return false;
    if (s->elements == 0) return false;
    if (quant_grid_fit(&q->view, s, &cut, &grid, &doubt) != QUANT_MISFIT) return true;
    return quant_sounds_like_scale(s->name) && s->elements <= q->view.elements / 2;
}

/* Names of one module stand together in the order of names; what only holds its name may stand anywhere. */
IO_FN int quant_find_near(const quant_map *m, const quant *q)
{
    int best = -1;
    for (int i = 0; i < m->tensors; i++) {
        const st_tensor *s = m->tensor[i];
        const bool free = m->owner[i] < 0 && m->number[i] < 0 && m->role[i] != QUANT_MARK;
        if (!free || !quant_near(q->codes.name, s->name) || !quant_could_be(q, s)) continue;
        const char *end;
        const size_t n = quant_module(q->codes.name, &end);
        const bool own = strncmp(s->name, q->codes.name, n) == 0 && s->name[n] == '_' && *end != '\0';
        if (m->role[i] != QUANT_PLAIN && !own) continue;
        best = i;
        break;
    }
    return best;
}

/* How one would have to call it. */
IO_FN void quant_hint(const quant *q, const char *scale, char *text, size_t size)
{
    const char *end;
    const size_t n = quant_module(q->codes.name, &end), whole = strlen(q->codes.name);
    if (strncmp(scale, q->codes.name, whole) == 0)
        io_say_in(text, size, IO_SAID, " '{name}%.100s'", scale + whole);
    else if (strncmp(scale, q->codes.name, n) == 0)
        io_say_in(text, size, IO_SAID, " '{base}%.100s'", scale + n);
    else
        text[0] = '\0';
}

IO_FN void quant_check_alone(const quant_map *m, quant *q)
{
    char hint[128];
    if (!q->alone || q->wrong || m->asked->take_for_1) return;
    const int near = quant_find_near(m, q);
    if (near < 0 && m->said->object && q->codes.rank >= 2)
        quant_wrong(q, "its scale is missing, and %s says that the model is quantised (--no-rules takes it for 1)",
                    m->said->file);
    if (near < 0) return;
    quant_hint(q, m->tensor[near]->name, hint, sizeof hint);
    quant_wrong(q,
                "it has no scale of a name that is known, and %.140s could be it: --scale-name%s says that it is, and "
                "--no-rules takes 1",
                m->tensor[near]->name, hint);
}

/* ---- all ---- */

IO_FN void quant_map_free(quant_map *m)
{
    for (int i = 0; i < m->quants; i++) free(m->quant[i].wrong);
    free(m->role);
    free(m->owner);
    free(m->number);
    free(m->quant);
    m->role = NULL;
    m->owner = m->number = NULL;
    m->quant = NULL;
    m->quants = m->capacity = 0;
}

IO_FN bool quant_walk(quant_map *m, bool (*const *attempt)(quant_try *y), int attempts, char *why)
{
    for (int i = 0; i < m->tensors; i++) {
        quant_try y = { m, m->tensor[i], i, false };
        bool is = m->owner[i] >= 0 || m->number[i] >= 0 || m->role[i] != QUANT_PLAIN;
        for (int k = 0; k < attempts && !is; k++) is = attempt[k](&y);
        if (y.memory) return io_fail(why, m->tensor[i]->name, "there is not enough memory for what it is");
    }
    return true;
}

/* false for want of memory, or a name without end. quant_map_free it in any case. */
IO_FN bool quant_survey(quant_map *m, char *why)
{
    static bool (*const packed[])(quant_try *) = { quant_try_words, quant_try_nf4, quant_try_blocks, quant_try_bytes,
                                                       quant_try_i8 },
                                            (*const plain[])(quant_try *) = { quant_try_fp8 };
    const size_t n = (size_t)m->tensors + 1;
    m->role = (quant_role *)calloc(n, sizeof *m->role);
    m->owner = (int *)malloc(n * sizeof *m->owner);
    m->number = (int *)malloc(n * sizeof *m->number);
    m->quant = NULL;
    m->quants = m->capacity = 0;
    if (!m->role || !m->owner || !m->number)
        return io_fail(why, "checkpoint", "there is not enough memory for its names");
    for (int i = 0; i < m->tensors; i++) {
        const size_t length = strlen(m->tensor[i]->name);
        if (length > QUANT_LONGEST)
            return io_fail(why, m->tensor[i]->name, "its name has %zu bytes; up to %d are read", length, QUANT_LONGEST);
        m->owner[i] = m->number[i] = -1;
        m->role[i] = quant_is_mark(m->tensor[i]) ? QUANT_MARK : quant_run_role(m->tensor[i]->name);
    }
    if (!quant_walk(m, packed, 5, why) || !quant_walk(m, plain, 1, why)) return false;
    for (int i = 0; i < m->quants; i++) quant_check_alone(m, &m->quant[i]);
    return true;
}

#endif /* IO_QUANT_H */

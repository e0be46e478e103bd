/* map.h - all tensors of a checkpoint, and what each of them is for: codes of a matrix, part of one, or neither.
 * SPDX-License-Identifier: MIT
 *
 * Who reads a checkpoint includes quant.h, which fills the map, or values.h.
 *
 * CONTENTS
 *     quant, quant_kind, quant_kind_text     a matrix of codes
 *     quant_parts_of, quant_layout           the tensors that it is made of; whose words of integers they are
 *     quant_asked, quant_ask_scale, _block   what the user said
 *     quant_map                              all of a checkpoint
 *     quant_find, _find_by, _find_any        a tensor by its name, or by what a pattern makes of another's
 *     quant_is, quant_is_fp8, _number, _power    by its type
 *     quant_as_bytes                         codes of four bits as the bytes that hold two
 *     quant_outputs                          which axis of experts in one tensor counts outputs
 */
#ifndef IO_QUANT_MAP_H
#define IO_QUANT_MAP_H

#include "../safetensors.h"
#include "grid.h"
#include "names.h"

enum { QUANT_ASKED = 32 };

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
    quant_layout layout; /* INT4 */
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
    else if (a->scale_names == QUANT_ASKED)
        wrong = "there are more than 32 of these already";
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

#endif /* IO_QUANT_MAP_H */

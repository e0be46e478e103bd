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
 * | INT4  | qweight, weight_packed, I32           | AWQ, GPTQ, compressed-tensors: parts.h                            |
 * | NF4   | U8 [N K / 2, 1]                       | absmax, and a table (bitsandbytes): nf4.h                         |
 *
 * The code with the smaller index is in the low half of a byte in all of them.
 *
 * DOES: what is wrong with one matrix is its own sentence: the rest can be used. Codes whose scale is not known, while
 *     something stands beside them that could be it, are wrong; where nothing does, the scale is 1: `alone` says so.
 * DOES NOT: look at numbers, or guess.
 *
 * CONTENTS
 *     quant_survey      fills a quant_map (map.h) with all matrices, each with its parts (parts.h)
 *     quant_map_free    what it holds
 */
#ifndef IO_QUANT_H
#define IO_QUANT_H

#include "parts.h"

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

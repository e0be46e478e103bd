/* parts.h - the tensors that one matrix is made of: its scale, its zero points, what else its format has, and whether
 * they fit.
 * SPDX-License-Identifier: MIT
 *
 *     const quant_hand h = { map, quant_add(map, place, QUANT_FP8), map->tensor[place], place };
 *     if (h.q) quant_scaled(&h);      // what is wrong stands in h.q->wrong
 *
 * CONTENTS
 *     quant_hand, quant_add, quant_claim    a matrix under work; a tensor becomes its part, and nobody else's
 *     quant_wrong, quant_take_why           its sentence
 *     quant_find_scale                      by the user's names, then by those that are known
 *     quant_scaled, quant_take_zero         FP8 and INT8
 *     quant_packed_fits                     do so many scales go with so many bytes of FP4?
 *     quant_take_mxfp4, _fp4                FP4: which kind, and its scales
 *     quant_take_groups, quant_open_groups  INT4 in words, which int4_awq.h, int4_gptq.h and int4_packed.h read
 *     quant_take_nf4, quant_open_nf4        NF4, which nf4.h reads
 */
#ifndef IO_QUANT_PARTS_H
#define IO_QUANT_PARTS_H

#include "../int4_awq.h"
#include "../int4_gptq.h"
#include "../int4_packed.h"
#include "../mxfp4.h"
#include "../nf4.h"
#include "map.h"

enum { NVFP4_BLOCK = 16 };

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
    cJSON_ArrayForEach(item, said) {
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
    const int4_packed_config said = { f->format[0] ? f->format : NULL,
                                      f->type[0] ? f->type : NULL,
                                      f->strategy[0] ? f->strategy : NULL,
                                      f->bits,
                                      f->group,
                                      f->symmetric };
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
    static const quant_belonging row[] = {
        { QUANT_SCALE, "{base}.scales" },       { QUANT_ZERO, "{base}.qzeros" },
        { QUANT_ORDER, "{base}.g_idx" },        { QUANT_SCALE, "{base}.weight_scale" },
        { QUANT_SHAPE, "{base}.weight_shape" }, { QUANT_ZERO, "{base}.weight_zero_point" },
        { QUANT_ORDER, "{base}.weight_g_idx" }, { QUANT_SECOND, "{base}.weight_global_scale" }
    };
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

#endif /* IO_QUANT_PARTS_H */

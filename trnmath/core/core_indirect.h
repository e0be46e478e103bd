/* core/core_indirect.h - views whose elements an index tile chooses: which instructions follow them, and how.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: makes such views; finds them among an instruction's operands and puts the tile in their place, for legality
 *     and time, and the index beside it; brings the elements that the index names together before the instruction
 *     runs, and back afterwards, so that the instruction itself sees packed rows.
 * DOES NOT: carry elements that nothing has written: with an indirect operand an instruction is strict. Of the tile
 *     only what the index names has to be written; in time the whole tile counts as read or written.
 *
 * KNOWN FROM: NKI, NkiTensor.indirect: offsets down the partitions of a group, then along; groups of 16 and 32; and
 *     the instruction pages: which operands, engines, start partitions (documented). That partition p reads the
 *     rows of its own group, that index formats are U16, U32 and I32, that an index past the data is an error, and that
 *     the formats of nc_matmul concern its inputs: assumed.
 */
#ifndef TRNI_CORE_CORE_INDIRECT_H
#define TRNI_CORE_CORE_INDIRECT_H

#include "core_poison.h"

/* ---- a view ---- */

/* The tag: a stride that no axis of the view has. */
enum { TRNI_INDIRECT_TAG = TRN_MAX_RANK - 1, TRNI_INDIRECT_GROUP = 16, TRNI_INDIRECT_TENSOR_GROUP = 32 };

TRNI_FN bool trni_indirect_format(trn_format f) { return f == TRN_U16 || f == TRN_U32 || f == TRN_I32; }

TRNI_DRIVER trn_status trni_indirect_refuse(trn_core *core, const trn_indirect_args *a, int64_t count, int64_t inner)
{
    trn_error *const error = &core->failure;
    const trn_tensor *const data = &a->data, *const index = &a->index;
    if (!core->indirect)
        return trni_fail(error, TRN_EINVAL, "trn_core_indirect: %s has no indirect views; Trainium3 does",
                         trn_generation_name(core->spec->generation));
    trn_status status = trn_tensor_check(data, "trn_core_indirect: data", TRNI_INPUT, 0, error);
    if (!status) status = trn_tensor_check(index, "trn_core_indirect: index", TRNI_INPUT, 2, error);
    if (status) return status;
    if (trni_indirect_owns(core, data) || trni_indirect_owns(core, index))
        return trni_fail(error, TRN_EINVAL, "trn_core_indirect: %s is an indirect view itself",
                         trni_indirect_owns(core, data) ? "data" : "index");
    if (!trni_indirect_format(index->format))
        return trni_fail(error, TRN_EFORMAT, "trn_core_indirect: index is %s; it is uint16, uint32 or int32",
                         trn_format_name(index->format));
    if (inner < 1 || inner > 4 || data->rank < (inner > 1 ? 3 : 2) ||
        (inner > 1 && data->shape[data->rank - 1] != inner))
        return trni_fail(error, TRN_ESHAPE,
                         "trn_core_indirect: data is [P, F ...], or [P, F ..., inner] with an inner "
                         "of 2 to 4; inner is %lld",
                         (long long)inner);
    if (data->shape[0] > index->shape[0] || data->shape[0] < 1)
        return trni_fail(error, TRN_ESHAPE, "trn_core_indirect: data has %lld partitions, index %lld",
                         (long long)data->shape[0], (long long)index->shape[0]);
    if (count < 1 || (count - 1) / TRNI_INDIRECT_TENSOR_GROUP >= index->shape[1])
        return trni_fail(error, TRN_ESHAPE, "trn_core_indirect: count is %lld; an index of %lld columns has 1 to %lld",
                         (long long)count, (long long)index->shape[1],
                         (long long)index->shape[1] * TRNI_INDIRECT_TENSOR_GROUP);
    const int64_t bytes = data->shape[0] * inner * (int64_t)trn_format_bytes(data->format);
    if (bytes > TRNI_INDIRECT_ROOM || count > TRNI_INDIRECT_ROOM / bytes)
        return trni_fail(error, TRN_ELIMIT,
                         "trn_core_indirect: %lld elements of %lld partitions; there is room for "
                         "%d bytes",
                         (long long)count, (long long)data->shape[0], TRNI_INDIRECT_ROOM);
    return TRN_OK;
}

/* Packed rows in the core's room, which instructions without a core may read and write, but say nothing. */
TRNI_FN trn_tensor trni_indirect_rows(const trn_tensor *data, void *room, int64_t count, int64_t inner)
{
    const int64_t shape[3] = { data->shape[0], count, inner };
    trn_tensor t = trn_tensor_nd(data->format, room, inner > 1 ? 3 : 2, shape);
    t.cfp8 = data->cfp8;
    return t;
}

/* Where the room holds it; after a failure too. */
TRNI_FN trn_tensor trni_indirect_dummy(const trn_core *core, const trn_indirect_args *a, int64_t count, int64_t inner)
{
    trn_tensor t = trni_indirect_rows(&a->data, core->indirect ? core->indirect->room : NULL, count, inner);
    const int64_t most = TRNI_INDIRECT_ROOM / 8;
    const bool fits = core->indirect && core->memory[0].base && a->data.rank > 0 && t.shape[0] >= 0 && count >= 0 &&
                      inner > 0 && inner <= 4 && t.shape[0] <= most && count <= most &&
                      t.shape[0] * count <= most / inner;
    if (!fits) t.rank = 0;
    return t;
}

/* ---- which instructions, which operands ---- */

/* The operand of a row whose place decides where dst's index begins: the first input that may be an indirect view. */
TRNI_FN const char *trni_indirect_source(const trni_order *order)
{
    int i = 0;
    while (!(order->part[i].role & TRNI_ROLE_INDIRECT) || (order->part[i].role & TRNI_ROLE_WRITE)) i++;
    return order->part[i].name;
}

/* All engines that an instruction has, but GpSimdE not for copies (documented). */
TRNI_FN bool trni_indirect_follows(const trni_issue *issue)
{
    if (issue->order == trni_order_of(TRNI_ORDER_tensor_copy) && issue->engine == TRN_ENGINE_GPSIMD) return false;
    return issue->engine == TRN_ENGINE_TENSOR || trni_issue_rule(issue) != TRN_RULE_NONE;
}

/* ---- among the operands of an instruction ---- */

TRNI_FN int trni_indirect_operands(const trni_issue *issue)
{
    return issue->core->indirect ? issue->core->indirect->operands : 0;
}

/* The indirect view that operand i is; null: an ordinary one. */
TRNI_FN const trni_indirect_operand *trni_indirect_of(const trni_issue *issue, int i)
{
    for (int k = 0; k < trni_indirect_operands(issue); k++)
        if (issue->core->indirect->operand[k].operand == i) return &issue->core->indirect->operand[k];
    return NULL;
}

/* The view behind an operand, if it is as trn_core_indirect returned it. */
TRNI_FN const trni_indirect_view *trni_indirect_view_of(trni_issue *issue, const trni_core_operand *s)
{
    const trni_indirect *const in = issue->core->indirect;
    trn_error *const error = &issue->core->failure;
    const trn_tensor *const t = s->view;
    const int64_t number = t->stride[TRNI_INDIRECT_TAG];
    const trni_indirect_view *const view = &in->view[number >= 0 ? number % TRNI_INDIRECT_VIEWS : 0];
    if (number > 0 && number <= in->made - TRNI_INDIRECT_VIEWS) {
        trni_fail(error, TRN_EINVAL, "%s is an indirect view that is forgotten: %d others were made since", s->name,
                  TRNI_INDIRECT_VIEWS);
        return NULL;
    }
    bool same = number > 0 && number <= in->made && t->data == in->room && t->rank == (view->inner > 1 ? 3 : 2);
    if (same) same = t->format == view->data.format && t->shape[0] == view->data.shape[0] && t->shape[1] == view->count;
    for (int i = 0; i < t->rank && same; i++) same = !t->stride[i] && (i < 2 || t->shape[i] == view->inner);
    if (!same) trni_fail(error, TRN_EINVAL, "%s is cut from an indirect view; such a view is taken as it is", s->name);
    return same ? view : NULL;
}

TRNI_FN bool trni_indirect_is_scale(const trni_core_operand *s) { return strstr(s->name, "_scale") != NULL; }

/* Puts tiles in the places of indirect views. */
TRNI_DRIVER void trni_indirect_find(trni_issue *issue)
{
    trni_indirect *const in = issue->core->indirect;
    in->operands = 0;
    for (int i = 0; i < issue->count && !issue->core->failure.status; i++) {
        trni_core_operand *const s = &issue->operand[i];
        if (!trni_indirect_owns(issue->core, s->view)) continue;
        const trni_indirect_view *const view = trni_indirect_view_of(issue, s);
        if (!view) return;
        if (!(s->role & TRNI_ROLE_INDIRECT)) {
            trni_fail(&issue->core->failure, TRN_EINVAL, "%s is an indirect view, which this operand cannot be",
                      s->name);
            return;
        }
        trni_indirect_operand *const o = &in->operand[in->operands++];
        o->view = view;
        o->argument = (trn_tensor *)(uintptr_t)s->view;
        o->operand = i;
        o->index = -1;
        s->view = &view->data;
        s->role |= s->role & TRNI_ROLE_WRITE ? (unsigned)TRNI_ROLE_SCATTERED : (unsigned)TRNI_ROLE_GATHERED;
        if (trni_indirect_is_scale(s)) s->before = view->index.shape[0] - view->data.shape[0]; /* its offset */
    }
}

/* ---- legality ---- */

TRNI_FN const trni_core_operand *trni_indirect_named(const trni_issue *issue, const char *name)
{
    for (int i = 0; i < issue->count; i++)
        if (!strcmp(issue->operand[i].name, name)) return &issue->operand[i];
    return NULL;
}

/* The index as an operand of its own. */
TRNI_DRIVER trn_status trni_indirect_index(trni_issue *issue, trni_indirect_operand *o)
{
    trn_core *const core = issue->core;
    const trni_indirect_view *const view = o->view;
    const int64_t group = issue->engine == TRN_ENGINE_TENSOR ? TRNI_INDIRECT_TENSOR_GROUP : TRNI_INDIRECT_GROUP;
    trni_core_operand *const s = &issue->operand[o->operand];
    if ((view->count - 1) / group >= view->index.shape[1])
        return trni_fail(&core->failure, TRN_ESHAPE, "%s takes %lld elements; an index of %lld columns has %lld on %s",
                         s->name, (long long)view->count, (long long)view->index.shape[1],
                         (long long)(view->index.shape[1] * group), trn_engine_name(issue->engine));
    o->index = issue->count;
    trni_issue_add(issue, "index", &view->index, TRNI_ROLE_READ | TRNI_ROLE_COLUMN | TRNI_ROLE_SBUF);
    if (issue->count == o->index) return trni_fail(&core->failure, TRN_EINVAL, "%s is one operand too many", s->name);
    s->elements = (double)(view->count * view->inner);
    s->step = (int64_t)trn_format_bytes(view->data.format);
    return trni_core_operand_locate(core, &issue->operand[o->index], true);
}

/* Start partitions, as NKI has them for tiles that are placed by hand. */
TRNI_DRIVER trn_status trni_indirect_place(const trni_issue *issue, const trni_indirect_operand *o)
{
    trn_error *const error = &issue->core->failure;
    const trni_core_operand *const s = &issue->operand[o->operand], *const index = &issue->operand[o->index];
    const trni_core_operand *const source = trni_indirect_named(issue, trni_indirect_source(issue->order));
    const char *whose = s->name;
    int64_t start = s->at.p - (trni_indirect_is_scale(s) ? s->at.p % TRNI_QUADRANT : 0);
    if (index->at.p % TRNI_QUADRANT)
        return trni_fail(error, TRN_ELIMIT, "the index of %s begins at partition %lld; it begins at 0, 32, 64 or 96",
                         s->name, (long long)index->at.p);
    if (s->role & TRNI_ROLE_WRITE) {
        const trni_indirect_operand *from = source ? trni_indirect_of(issue, (int)(source - issue->operand)) : NULL;
        if (!source || !source->allocation || (source->space == TRN_SPACE_PSUM && !from)) return TRN_OK;
        whose = source->name;
        start = source->space == TRN_SPACE_PSUM ? issue->operand[from->index].at.p : source->at.p;
    }
    if (index->at.p == start) return TRN_OK;
    return trni_fail(error, TRN_ELIMIT, "the index of %s begins at partition %lld; it begins where %s does, at %lld",
                     s->name, (long long)index->at.p, whose, (long long)start);
}

TRNI_FN bool trni_indirect_float(trn_format f)
{
    return f == TRN_F16 || f == TRN_BF16 || f == TRN_F8_E4M3 || f == TRN_F8_E4M3FN || f == TRN_F8_E5M2;
}

TRNI_DRIVER trn_status trni_indirect_matmul(const trni_issue *issue)
{
    const trn_nc_matmul_args *const a = (const trn_nc_matmul_args *)issue->args;
    trn_error *const error = &issue->core->failure;
    if (a->tile_position.row || a->tile_position.column)
        return trni_fail(error, TRN_EINVAL, "tile_position is %d, %d; with an indirect view it is 0, 0",
                         a->tile_position.row, a->tile_position.column);
    for (int i = 0; i < trni_indirect_operands(issue); i++) {
        const trni_indirect_operand *const o = &issue->core->indirect->operand[i];
        if (o->argument == &a->moving && a->is_transpose)
            return trni_fail(error, TRN_EINVAL, "moving is an indirect view; with is_transpose it cannot be");
        if (o->argument != &a->dst && !trni_indirect_float(o->view->data.format))
            return trni_fail(error, TRN_EFORMAT,
                             "%s is an indirect view of %s; through one TensorE takes float16, "
                             "bfloat16, float8_e4m3, float8_e4m3fn and float8_e5m2",
                             issue->operand[o->operand].name, trn_format_name(o->view->data.format));
    }
    return TRN_OK;
}

/* Data and scale are one tensor: both by the same index, or neither; the scale in a tile as NKI has it. */
TRNI_DRIVER trn_status trni_indirect_pair(const trni_issue *issue, const char *data, const char *scale)
{
    const trni_core_operand *const s[2] = { trni_indirect_named(issue, data), trni_indirect_named(issue, scale) };
    const trni_indirect_operand *o[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++)
        if (s[i]) o[i] = trni_indirect_of(issue, (int)(s[i] - issue->operand));
    if (!o[0] && !o[1]) return TRN_OK;
    const trn_tensor *const x = o[0] ? &o[0]->view->index : NULL, *const y = o[1] ? &o[1]->view->index : NULL;
    if (!x || !y || x->data != y->data || x->shape[1] != y->shape[1] || x->format != y->format)
        return trni_fail(&issue->core->failure, TRN_EINVAL,
                         "%s and %s are one tensor: both are indirect views by the same index, or neither is", data,
                         scale);
    if (o[0]->view->inner != 4)
        return trni_fail(&issue->core->failure, TRN_ESHAPE, "%s: an indirect view of it has an inner of 4", data);
    if (!trni_mx_is_tile(o[1]->view->data.shape[0], o[0]->view->data.shape[0]))
        return trni_fail(&issue->core->failure, TRN_ESHAPE,
                         "%s has %lld partitions; as an indirect view it is a scale tile, with its data's %lld", scale,
                         (long long)o[1]->view->data.shape[0], (long long)o[0]->view->data.shape[0]);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_indirect_special(const trni_issue *issue)
{
    if (issue->order == trni_order_of(TRNI_ORDER_nc_matmul)) return trni_indirect_matmul(issue);
    if (issue->order == trni_order_of(TRNI_ORDER_nc_matmul_mx)) {
        const trn_nc_matmul_mx_args *const a = (const trn_nc_matmul_mx_args *)issue->args;
        if (a->tile_position.row || a->tile_position.column)
            return trni_fail(&issue->core->failure, TRN_EINVAL,
                             "tile_position is %d, %d; with an indirect view it is "
                             "0, 0",
                             a->tile_position.row, a->tile_position.column);
        const trn_status status = trni_indirect_pair(issue, "stationary", "stationary_scale");
        return status ? status : trni_indirect_pair(issue, "moving", "moving_scale");
    }
    if (issue->order == trni_order_of(TRNI_ORDER_tensor_scalar)) {
        const trn_tensor_scalar_args *const a = (const trn_tensor_scalar_args *)issue->args;
        if (trni_is_word(a->data.format) && trni_is_word(a->dst.format))
            return trni_fail(&issue->core->failure, TRN_EINVAL,
                             "data and dst are 32-bit integers, and one of them is "
                             "an indirect view: addresses are not computed through one");
    }
    return TRN_OK;
}

/* After the engine is known, before anything runs. */
TRNI_DRIVER trn_status trni_indirect_check(trni_issue *issue)
{
    trni_indirect *const in = issue->core->indirect;
    trn_error *const error = &issue->core->failure;
    trn_status status = TRN_OK;
    if (!trni_indirect_follows(issue))
        return trni_fail(error, TRN_EINVAL, "%s is an indirect view, which engine %s does not follow here",
                         issue->operand[in->operand[0].operand].name, trn_engine_name(issue->engine));
    for (int i = 0; i < in->operands && !status; i++) status = trni_indirect_index(issue, &in->operand[i]);
    for (int i = 0; i < in->operands && !status; i++) {
        const trni_core_operand *const s = &issue->operand[in->operand[i].operand];
        if (!s->allocation || !issue->operand[in->operand[i].index].allocation) continue;
        status = trni_indirect_place(issue, &in->operand[i]);
        if (!status && issue->engine == TRN_ENGINE_SCALAR && s->role & TRNI_ROLE_WRITE && s->space == TRN_SPACE_PSUM)
            status =
                trni_fail(error, TRN_ELIMIT, "%s is an indirect view of PSUM, where ScalarE cannot scatter", s->name);
    }
    return status ? status : trni_indirect_special(issue);
}

/* ---- elements ---- */

/* Element i of each partition of the view's rows [row, row_end), which share a group. */
typedef struct trni_indirect_walk {
    int64_t row, row_end; /* of the view */
    int64_t i;
    char *data, *packed;         /* row's */
    int64_t pitch, packed_pitch; /* bytes from a row to the next */
    int64_t step;                /* bytes between the elements of inner */
} trni_indirect_walk;

TRNI_FN int64_t trni_indirect_offset(const trni_indirect_view *view, int64_t row, int64_t column)
{
    int64_t stride[TRN_MAX_RANK];
    trni_strides(&view->index, stride);
    const char *const at = (const char *)view->index.data +
                           (row * stride[0] + column * stride[1]) * (int64_t)trn_format_bytes(view->index.format);
    return trni_integer_at(view->index.format, at);
}

/* Bytes from the start of a row to free element `offset`; -1 where there is none. */
TRNI_FN int64_t trni_indirect_free(const trni_indirect_view *view, const int64_t stride[TRN_MAX_RANK], int64_t offset)
{
    int64_t at = 0;
    const int last = view->data.rank - (view->inner > 1 ? 2 : 1);
    for (int axis = last; axis > 0; axis--) {
        at += offset % view->data.shape[axis] * stride[axis];
        offset /= view->data.shape[axis];
    }
    return offset ? -1 : at * (int64_t)trn_format_bytes(view->data.format);
}

/* Calls each(issue, o, walk) for every offset of every group; stops at a failure. */
TRNI_DRIVER trn_status trni_indirect_each(const trni_issue *issue, const trni_indirect_operand *o,
                                          trn_status (*each)(const trni_issue *issue, const trni_indirect_operand *o,
                                                             const trni_indirect_walk *walk))
{
    const trni_indirect_view *const view = o->view;
    const trni_core_operand *const s = &issue->operand[o->operand];
    const int64_t group = issue->engine == TRN_ENGINE_TENSOR ? TRNI_INDIRECT_TENSOR_GROUP : TRNI_INDIRECT_GROUP;
    const int64_t bytes = (int64_t)trn_format_bytes(view->data.format), rows = view->data.shape[0];
    const int64_t before = trni_indirect_is_scale(s) ? s->at.p % TRNI_QUADRANT : 0; /* rows of index before data's */
    int64_t stride[TRN_MAX_RANK];
    trn_status status = TRN_OK;
    trni_indirect_walk w;
    trni_strides(&view->data, stride);
    w.pitch = stride[0] * bytes;
    w.packed_pitch = view->count * view->inner * bytes;
    w.step = view->inner > 1 ? stride[view->data.rank - 1] * bytes : 0;
    for (w.row = 0; w.row < rows && !status; w.row = w.row_end) {
        const int64_t first = (w.row + before) / group * group;
        w.row_end = trni_min64(first + group - before, rows);
        for (w.i = 0; w.i < view->count && !status; w.i++) {
            const int64_t row = first + w.i % group;
            if (row >= view->index.shape[0])
                return trni_fail(&issue->core->failure, TRN_ESHAPE,
                                 "%s takes offset %lld from partition %lld of an "
                                 "index of %lld partitions",
                                 s->name, (long long)w.i, (long long)row, (long long)view->index.shape[0]);
            const int64_t offset = trni_indirect_offset(view, row, w.i / group);
            const int64_t at = offset < 0 ? -1 : trni_indirect_free(view, stride, offset);
            if (at < 0)
                return trni_fail(&issue->core->failure, TRN_EINVAL,
                                 "index [%lld, %lld] of %s is %lld, beyond its %lld elements", (long long)row,
                                 (long long)(w.i / group), s->name, (long long)offset,
                                 (long long)(trn_tensor_elements(view->data) / rows / view->inner));
            w.data = (char *)view->data.data + w.row * w.pitch + at;
            w.packed = (char *)o->argument->data + w.row * w.packed_pitch + w.i * view->inner * bytes;
            status = each(issue, o, &w);
        }
    }
    return status;
}

TRNI_FN trn_status trni_indirect_read(const trni_issue *issue, const trni_indirect_operand *o,
                                      const trni_indirect_walk *w)
{
    const trni_core_operand *const s = &issue->operand[o->operand];
    const int64_t bytes = (int64_t)trn_format_bytes(o->view->data.format);
    const bool unsure = s->role & TRNI_ROLE_READ && trni_core_operand_unsure(s);
    for (int64_t r = 0; r < w->row_end - w->row; r++)
        for (int64_t k = 0; k < o->view->inner; k++) {
            const char *const from = w->data + r * w->pitch + k * w->step;
            const int64_t at = from - s->memory->base;
            const bool holds = !trni_indirect_is_scale(s) || (w->row + r) % TRNI_MX_QUADRANT < TRNI_MX_QUADRANT_SCALES;
            if (unsure && holds && !trni_poison_written(s->memory, at, bytes))
                return trni_poison_refuse(issue->core, s, at / s->memory->pitch, at % s->memory->pitch);
            memcpy(w->packed + r * w->packed_pitch + k * bytes, from, (size_t)bytes);
        }
    return TRN_OK;
}

/* Where a predicate chooses, the others stay as they are. */
TRNI_FN bool trni_indirect_chosen(const trni_issue *issue, int64_t row, int64_t i)
{
    float buffer[1];
    trni_span predicate;
    if (issue->order != trni_order_of(TRNI_ORDER_tensor_copy_predicated)) return true;
    const trn_tensor_copy_predicated_args *const a = (const trn_tensor_copy_predicated_args *)issue->args;
    trni_span_known(&predicate, &a->predicate, TRN_ISA_PORTABLE);
    return (trni_span_read(&predicate, row, i, 1, buffer)[0] != 0.0f) != a->reverse_pred;
}

TRNI_FN trn_status trni_indirect_write(const trni_issue *issue, const trni_indirect_operand *o,
                                       const trni_indirect_walk *w)
{
    const trni_core_operand *const s = &issue->operand[o->operand];
    const int64_t bytes = (int64_t)trn_format_bytes(o->view->data.format);
    for (int64_t r = 0; r < w->row_end - w->row; r++) {
        if (!trni_indirect_chosen(issue, w->row + r, w->i)) continue;
        for (int64_t k = 0; k < o->view->inner; k++) {
            char *const to = w->data + r * w->pitch + k * w->step;
            memcpy(to, w->packed + r * w->packed_pitch + k * bytes, (size_t)bytes);
            if (s->allocation->unwritten > 0) trni_core_operand_write_bytes(s, to - s->memory->base, bytes);
        }
    }
    return TRN_OK;
}

/* Everything is legal: the args get packed rows with what the views name, dst's old elements too. */
TRNI_DRIVER trn_status trni_indirect_gather(trni_issue *issue)
{
    trni_indirect *const in = issue->core->indirect;
    int64_t used = 0;
    trn_status status = TRN_OK;
    for (int i = 0; i < in->operands && !status; i++) {
        trni_indirect_operand *const o = &in->operand[i];
        const trni_indirect_view *const view = o->view;
        const int64_t bytes =
            view->data.shape[0] * view->count * view->inner * (int64_t)trn_format_bytes(view->data.format);
        if (bytes > TRNI_INDIRECT_ROOM - used)
            return trni_fail(&issue->core->failure, TRN_ELIMIT,
                             "%s: the indirect views of one instruction have room for %d bytes",
                             issue->operand[o->operand].name, TRNI_INDIRECT_ROOM);
        *o->argument = trni_indirect_rows(&view->data, in->room + used, view->count, view->inner);
        used += trni_align_up(bytes, TRNI_TILE_ALIGN);
        if (!issue->operand[o->operand].allocation) continue;
        status = trni_indirect_each(issue, o, trni_indirect_read);
    }
    return status;
}

/* The instruction has run: what it wrote goes where the index says. */
TRNI_DRIVER void trni_indirect_scatter(const trni_issue *issue)
{
    const trni_indirect *const in = issue->core->indirect;
    for (int i = 0; i < in->operands; i++) {
        const trni_core_operand *const s = &issue->operand[in->operand[i].operand];
        if (!(s->role & TRNI_ROLE_WRITE) || !s->allocation) continue;
        if (s->allocation->unwritten > 0) trni_poison_wrote(issue, s);
        trni_indirect_each(issue, &in->operand[i], trni_indirect_write);
    }
}

#endif /* TRNI_CORE_CORE_INDIRECT_H */

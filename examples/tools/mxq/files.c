/* files.c - which arrays of a file are tensors, and which are the scales of others.
 * SPDX-License-Identifier: MIT
 *
 * What a checkpoint keeps as codes with scales is one tensor, of the values that they stand for (io/quant). Its scales,
 * and those of activations, are none.
 */
#define _POSIX_C_SOURCE 200809L

#include "mxq.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "io/arrays.h"
#include "io/quant/foreign.h"
#include "io/quant/values.h"

typedef struct mxq_file {
    io_arrays arrays;
    quant_said said;
    const st_tensor **list; /* of safetensors: all, by name; NULL: it is another file */
    int *place;             /* of each array in that list */
    quant_map map;
    quant_values *values; /* [map.quants] */
} mxq_file;

/* ---- what each array is ---- */

static void list_tensors(mxq_file *f)
{
    const st_tensor **of = app_memory((size_t)f->arrays.count + 1, sizeof *of);
    int n = 0;
    for (int s = 0; s < f->arrays.shards; s++)
        for (int i = 0; i < f->arrays.shard[s].count; i++) of[n++] = &f->arrays.shard[s].tensor[i];
    f->list = app_memory((size_t)n + 1, sizeof *f->list);
    f->place = app_memory((size_t)n + 1, sizeof *f->place);
    for (int i = 0; i < n; i++) {
        f->list[i] = of[f->arrays.by_name[i]];
        f->place[f->arrays.by_name[i]] = i;
    }
    free(of);
}

static bool survey(mxq_file *f, const char *path, const quant_asked *asked, char *why)
{
    if (!f->arrays.shards) return true;
    list_tensors(f);
    f->map = (quant_map){ .tensor = f->list, .tensors = f->arrays.count, .said = &f->said, .asked = asked };
    if (!quant_said_read(path, &f->said, why) || !quant_survey(&f->map, why)) return false;
    f->values = app_memory((size_t)f->map.quants + 1, sizeof *f->values);
    return true;
}

/* Whole numbers and truth values in a checkpoint are indices and masks: nobody quantises them. */
static bool is_quantised(const io_array *a)
{
    static const char *const floats[] = { "F64", "F32", "F16", "BF16" };
    if (!a->name[0] || a->blocks) return true;
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (!strcmp(a->type, floats[i])) return true;
    return trn_format_info_of(a->format)->exponent_bits > 0 && a->format != TRN_F8_E8M0;
}

static bool is_bytes(const io_array *a)
{
    return a->type[0] == 'V' || !strcmp(a->type, "U8") || !strcmp(a->type, "U16");
}

/* Which quantised matrix's codes this array is; NULL: none. */
static const quant *codes_of(const mxq_file *f, int i)
{
    const int number = f->list ? f->map.number[f->place[i]] : -1;
    return number < 0 ? NULL : &f->map.quant[number];
}

static bool is_taken(const mxq_file *f, int i, const char *pattern)
{
    const io_array *a = &f->arrays.item[i];
    if (pattern) return fnmatch(pattern, a->name, 0) == 0;
    if (codes_of(f, i)) return true;
    return is_quantised(a) && (!f->list || f->map.role[f->place[i]] == QUANT_PLAIN);
}

/* ---- tensors ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static mxq_source *add_array(mxq_sources *s, mxq_file *f, const io_array *a, const char *path)
{
    mxq_source *t = mxq_new_source(s);
    t->columns = a->rank ? a->shape[a->rank - 1] : 1;
    t->rows = a->elements && t->columns ? a->elements / t->columns : 0;
    t->array = a;
    t->file = &f->arrays;
    t->name = a->name[0] ? a->name : base_of(path);
    snprintf(t->type, sizeof t->type, "%s", a->format != TRN_FORMAT_UNSET ? trn_format_name(a->format) : a->type);
    return t;
}

static bool add_codes(mxq_sources *s, mxq_file *f, int i, const char *path, char *why)
{
    const quant *q = codes_of(f, i);
    const st_tensor *part[QUANT_PARTS] = { NULL };
    quant_values *v = &f->values[q - f->map.quant];
    if (q->wrong) return snprintf(why, APP_WHY, "%.500s", q->wrong), false;
    for (int p = 0; p < QUANT_PARTS; p++)
        if (q->part[p] >= 0) part[p] = f->list[q->part[p]];
    if (!quant_open(q, part, v, why)) return false;
    mxq_source *t = add_array(s, f, &f->arrays.item[i], path);
    t->codes = v;
    t->columns = v->columns;
    t->rows = v->rows;
    t->alone = q->alone;
    if (q->alone)
        snprintf(t->type, sizeof t->type, "%s, no scale: taken for 1", trn_format_name(q->codes.format));
    else
        snprintf(t->type, sizeof t->type, "%s with scales", quant_kind_text(q->kind));
    return true;
}

static bool add_arrays(mxq_sources *s, mxq_file *f, const char *path, trn_format format, const char *tensor, char *why)
{
    for (int i = 0; i < f->arrays.count; i++) {
        io_array *a = &f->arrays.item[i];
        const bool as = format != TRN_FORMAT_UNSET && is_bytes(a);
        if (!is_taken(f, i, tensor) && !(as && !tensor && !a->name[0])) continue;
        if (!as && codes_of(f, i)) {
            if (!add_codes(s, f, i, path, why)) return false;
            continue;
        }
        if (as && !io_array_as(a, format, why)) return false;
        add_array(s, f, a, path);
    }
    return true;
}

/* Where all is asked for, what cannot be read is told. */
static bool refuse_foreign(const mxq_file *f, const char *path, char *why)
{
    char format[QUANT_FOREIGN];
    int place;
    if (!f->list || !quant_foreign(&f->map, &place, format)) return true;
    return io_fail(why, path, "its weights are %s (%.200s is there), which is not read; --tensor names others", format,
                   f->list[place]->name);
}

static void close_file(mxq_file *f)
{
    for (int i = 0; f->values && i < f->map.quants; i++) quant_close(&f->values[i]);
    quant_map_free(&f->map);
    quant_said_free(&f->said);
    free(f->values);
    free(f->list);
    free(f->place);
    io_arrays_close(&f->arrays);
    free(f);
}

bool mxq_add_file(mxq_sources *s, const char *path, trn_format format, const char *tensor, char *why)
{
    static const quant_asked nothing = { .scale_names = 0 };
    mxq_file *f = app_memory(1, sizeof *f), **grown = app_resize(s->file, (size_t)s->files + 1, sizeof *grown);
    s->file = grown;
    if (!io_arrays_open(path, &f->arrays, why)) return free(f), false;
    grown[s->files++] = f;
    const int before = s->count;
    if (!survey(f, path, s->asked ? s->asked : &nothing, why)) return false;
    if (!add_arrays(s, f, path, format, tensor, why)) return false;
    if (!tensor && format == TRN_FORMAT_UNSET && !refuse_foreign(f, path, why)) return false;
    if (s->count > before) return true;
    return io_fail(why, path,
                   tensor ? "none of its %d arrays is called %s"
                          : "none of its %d arrays holds floating-point numbers%s",
                   f->arrays.count, tensor ? tensor : "");
}

void mxq_close_files(mxq_sources *s)
{
    mxq_file **file = s->file;
    for (int i = 0; i < s->files; i++) close_file(file[i]);
    free(file);
}

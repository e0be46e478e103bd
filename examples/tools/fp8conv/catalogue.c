/* catalogue.c - all tensors of all shards, and where their bytes are: headers stay in memory, data does not.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

int fc_add(fc_catalogue *c, const fc_item *item)
{
    if (c->items == c->capacity) {
        const int capacity = c->capacity ? 2 * c->capacity : 256;
        fc_item *more = realloc(c->item, (size_t)capacity * sizeof *more);
        if (!more) return -1;
        c->item = more;
        c->capacity = capacity;
    }
    c->item[c->items] = *item;
    return c->items++;
}

/* ---- names ---- */

static bool sort_names(fc_catalogue *c, char *why)
{
    st_name *list = malloc(((size_t)c->items + 1) * sizeof *list);
    c->by_name = malloc(((size_t)c->items + 1) * sizeof *c->by_name);
    if (!list || !c->by_name) {
        free(list);
        return io_fail(why, c->options->in, "there is not enough memory for its names");
    }
    for (int i = 0; i < c->items; i++) list[i] = (st_name){ c->item[i].tensor.name, i };
    const char *twice = st_repeated(list, c->items);
    for (int i = 0; i < c->items; i++) c->by_name[i] = list[i].number;
    c->named = c->items;
    free(list);
    return !twice || io_fail(why, c->options->in, "two of its shards have a tensor '%.128s'", twice);
}

static const char *name_at(const void *catalogue, int place)
{
    const fc_catalogue *c = catalogue;
    return c->item[c->by_name[place]].tensor.name;
}

int fc_find(const fc_catalogue *c, const char *name)
{
    const int place = io_find(c, c->named, name_at, name);
    return place < 0 ? -1 : c->by_name[place];
}

/* ---- shards: a few are open at a time ---- */

const st_file *fc_shard(fc_catalogue *c, int shard, char *why)
{
    int oldest = 0;
    for (int i = 0; i < FC_OPEN; i++) {
        if (c->open[i].shard == shard) return c->open[i].used = ++c->clock, &c->open[i].file;
        if (c->open[i].used < c->open[oldest].used) oldest = i;
    }
    if (c->open[oldest].shard >= 0) st_close(&c->open[oldest].file);
    c->open[oldest].shard = -1;
    if (!ckpt_shard(&c->input, shard, &c->open[oldest].file, why)) return NULL;
    c->open[oldest].shard = shard;
    c->open[oldest].used = ++c->clock;
    return &c->open[oldest].file;
}

static const st_tensor *tensor_of(fc_catalogue *c, const fc_item *item, char *why)
{
    const st_file *file = fc_shard(c, item->shard, why);
    if (!file) return NULL;
    const st_tensor *t = item->index < file->count ? &file->tensor[item->index] : NULL;
    if (t && strcmp(t->name, item->tensor.name) == 0 && t->end - t->begin == fc_size(&item->tensor)) return t;
    io_fail(why, c->input.path[item->shard], "it changed while it was being read");
    return NULL;
}

const unsigned char *fc_bytes(fc_catalogue *c, const fc_item *item, char *why)
{
    const st_tensor *t = tensor_of(c, item, why);
    return t ? (const unsigned char *)t->data : NULL;
}

void fc_done(fc_catalogue *c, const fc_item *item, uint64_t from, uint64_t bytes)
{
    for (int i = 0; i < FC_OPEN; i++) {
        st_file *file = &c->open[i].file;
        if (c->open[i].shard != item->shard || item->index >= file->count) continue;
        io_map_done(&file->map, (size_t)(file->data_start + file->tensor[item->index].begin + from), (size_t)bytes);
    }
}

static fc_side side_of(const fc_catalogue *c, const st_file *file)
{
    const char *mark = st_metadata(file, "fp8_format");
    if (c->options->from != FC_BY_MARK) return c->options->from;
    if (!mark) return fc_marked(&c->rules) ? FC_NEURON : FC_OCP; /* who saved it again may have lost the mark */
    return trn_format_from_name(mark) == TRN_F8_E4M3 ? FC_NEURON : FC_OCP;
}

/* Small tensors that say how others are to be read are looked at before anything is converted. */
static bool keep_said(const st_tensor *t, fc_item *item)
{
    static const char *const end[] = { ".weight_shape", "g_idx", "bitsandbytes__nf4", "bitsandbytes__fp4" };
    bool says = false;
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) says = says || ckpt_ends(t->name, end[i]);
    if (!says) return true;
    item->said = malloc(st_bytes(t) + 1);
    if (item->said) memcpy(item->said, t->data, st_bytes(t));
    return item->said != NULL;
}

static bool add_shard(fc_catalogue *c, int shard, char *why)
{
    const st_file *file = fc_shard(c, shard, why);
    for (int i = 0; file && i < file->count; i++) {
        fc_item item = { .tensor = file->tensor[i], .shard = shard, .index = i, .old_scale = -1, .scale = -1 };
        item.side = side_of(c, file);
        item.tensor.data = NULL;
        item.tensor.name = strdup(file->tensor[i].name);
        item.view = item.result = item.tensor;
        if (item.tensor.name && keep_said(&file->tensor[i], &item) && fc_add(c, &item) >= 0) continue;
        free(item.said);
        free(item.tensor.name);
        return io_fail(why, c->options->in, "there is not enough memory for its tensors");
    }
    return file != NULL;
}

bool fc_catalogue_open(const fc_options *o, fc_catalogue *c, char *why)
{
    memset(c, 0, sizeof *c);
    c->options = o;
    for (int i = 0; i < FC_OPEN; i++) c->open[i].shard = -1;
    if (!fc_refuse_file(o->in, why) || !ckpt_open_all(o->in, &c->input, why)) return false;
    if (!fc_rules_read(o->in, &c->rules, why)) return false;
    for (int i = 0; i < c->input.shards; i++)
        if (!add_shard(c, i, why)) return false;
    return sort_names(c, why);
}

void fc_catalogue_close(fc_catalogue *c)
{
    for (int i = 0; i < FC_OPEN; i++)
        if (c->open[i].shard >= 0) st_close(&c->open[i].file);
    for (int i = 0; i < c->items; i++) {
        if (c->item[i].result.name != c->item[i].tensor.name) free(c->item[i].result.name);
        free(c->item[i].tensor.name);
        fc_source_close(&c->item[i]);
        free(c->item[i].said);
        free(c->item[i].out_scale);
        free(c->item[i].mx_scale);
    }
    free(c->item);
    free(c->by_name);
    quant_map_free(&c->map);
    free(c->seen);
    free(c->list);
    fc_forget_files(c);
    fc_rules_free(&c->rules);
    ckpt_close(&c->input);
}

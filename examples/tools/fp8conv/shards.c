/* shards.c - the files that are written, beside OUT: the shards and the index. files.c has the rest.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE = 8 << 20 };

/* ---- where to ---- */

bool fc_into_folder(const fc_catalogue *c)
{
    const char *out = c->options->out;
    return c->input.index || ckpt_folder(c->options->in) || (ckpt_ends(out, "/") && !ckpt_folder(out));
}

/* Where a shard is written, which is not yet where it will be; the stage's memory. */
static const char *shard_path(fc_catalogue *c, int shard)
{
    return io_stage_path(&c->stage, fc_into_folder(c) ? c->input.file[shard] : NULL);
}

const char *fc_written(fc_catalogue *c)
{
    if (ckpt_folder(c->options->in)) return c->stage.fresh;
    return c->input.index ? io_stage_path(&c->stage, ckpt_plain_name(c->input.index)) : shard_path(c, 0);
}

/* Only a checkpoint is replaced: a slip of the fingers must not cost a home directory. A directory in it is one that
 * the input has, too. */
static bool is_checkpoint(const char *path, const void *input, char *why)
{
    bool weights = false, folders = false, known = true;
    DIR *folder = opendir(path);
    if (!folder) return io_fail(why, path, "it cannot be read (%s)", strerror(errno));
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *inside = ckpt_inside(path, e->d_name), *same = ckpt_inside(input, e->d_name);
        known = known && inside && same;
        folders = folders || (inside && same && ckpt_folder(inside) && !ckpt_folder(same));
        weights = weights || ckpt_ends(e->d_name, ".safetensors");
        free(inside);
        free(same);
    }
    closedir(folder);
    if (!known) return io_fail(why, path, "there is not enough memory to look into it");
    if (folders)
        return io_fail(why, path, "it has directories in it that the input lacks; --force replaces checkpoints only");
    return weights || io_fail(why, path, "it has no .safetensors in it; --force replaces checkpoints only");
}

char *fc_place(const fc_catalogue *c)
{
    const char *out = c->options->out;
    if (!fc_into_folder(c) && ckpt_folder(out)) return ckpt_inside(out, c->input.file[0]);
    return strdup(out);
}

bool fc_open_out(fc_catalogue *c, char *why)
{
    const fc_options *o = c->options;
    if (c->input.index && ckpt_ends(o->out, ".json"))
        return io_fail(why, o->out, "an index and its shards appear together, as a directory; name that");
    char *path = fc_place(c);
    const io_stage_args args = { path, fc_into_folder(c), o->force, is_checkpoint, o->in, NULL };
    const bool ok = path ? io_stage_open(&args, &c->stage, why) : io_fail(why, o->out, "there is not enough memory");
    if (ok && c->stage.swept) app_complain(0, "%s: what a killed run had left there is removed", c->stage.part);
    free(path);
    return ok;
}

/* ---- one shard ---- */

typedef struct order {
    int item, bits, place;
} order;

/* Wide numbers first, as the official writer has it: so everything is aligned. */
static int compare_order(const void *a, const void *b)
{
    const order *x = a, *y = b;
    return x->bits != y->bits ? y->bits - x->bits : x->place - y->place;
}

static order *order_of_shard(const fc_catalogue *c, int shard, int *count)
{
    order *list = malloc(((size_t)c->items + 1) * sizeof *list);
    *count = 0;
    for (int i = 0; list && i < c->items; i++) {
        const fc_item *item = &c->item[i];
        if (item->shard != shard || item->role == FC_DROPPED) continue;
        list[*count] = (order){ i, item->result.bits, *count };
        ++*count;
    }
    if (list) qsort(list, (size_t)*count, sizeof *list, compare_order);
    return list;
}

static bool write_codes(void *writer, const void *bytes, size_t size, char *why)
{
    return st_write(writer, bytes, size, why);
}

static bool write_copy(fc_catalogue *c, const fc_item *item, st_writer *w, char *why)
{
    const uint64_t size = fc_size(&item->tensor);
    const unsigned char *bytes = fc_bytes(c, item, why);
    for (uint64_t at = 0; bytes && at < size; at += SLICE) {
        const uint64_t n = size - at < SLICE ? size - at : SLICE;
        if (!st_write(w, bytes + at, (size_t)n, why)) return false;
        fc_done(c, item, at, n);
        fc_progress(c, n);
    }
    return bytes != NULL;
}

static bool write_scale(fc_catalogue *c, int item, st_writer *w, char *why)
{
    const size_t size = (size_t)fc_size(&c->item[item].result);
    void *bytes = malloc(size + 1);
    bool ok = bytes || io_fail(why, c->item[item].tensor.name, "there is not enough memory for its scales");
    ok = ok && fc_scale_bytes(c, item, bytes, why) && st_write(w, bytes, size, why);
    free(bytes);
    return ok;
}

static bool write_item(fc_catalogue *c, int i, st_writer *w, char *why)
{
    const fc_item *item = &c->item[i];
    const fc_sink sink = { write_codes, w };
    if (fc_is_weight(item)) return fc_convert(c, i, &sink, why);
    return item->role == FC_COPIED ? write_copy(c, item, w, why) : write_scale(c, i, w, why);
}

/* Is there anything of Trainium's range? */
static bool is_marked(const fc_catalogue *c)
{
    return c->options->to == FC_NEURON && (fc_has_fp8(c) || c->run_scales > 0 || c->run_kept > 0);
}

/* The file's own texts, and the mark of what its F8_E4M3 and its scales now mean; `pair` has room for one more. */
static int metadata_of(const fc_catalogue *c, const st_file *file, const char **pair)
{
    int n = 0;
    for (int i = 0; i < file->metadata_count; i++) {
        if (strcmp(file->metadata[2 * i], "fp8_format") == 0) continue;
        pair[2 * n] = file->metadata[2 * i];
        pair[2 * n++ + 1] = file->metadata[2 * i + 1];
    }
    if (is_marked(c)) {
        pair[2 * n] = "fp8_format";
        pair[2 * n++ + 1] = trn_format_name(fc_format_of(FC_NEURON));
    }
    return n;
}

static bool create_shard(fc_catalogue *c, int shard, const char *path, const order *list, int count, st_writer *w,
                         char *why)
{
    const st_file *file = fc_shard(c, shard, why);
    const char **pair = file ? malloc(2 * ((size_t)file->metadata_count + 1) * sizeof *pair) : NULL;
    st_tensor *tensor = malloc(((size_t)count + 1) * sizeof *tensor);
    bool ok = file && ((tensor && pair) || io_fail(why, path, "there is not enough memory for its header"));
    for (int i = 0; ok && i < count; i++) tensor[i] = c->item[list[i].item].result;
    ok = ok && st_create(path, tensor, count, pair, metadata_of(c, file, pair), w, why);
    free(pair);
    free(tensor);
    return ok;
}

static bool finite_so_far(const fc_catalogue *c)
{
    for (int i = 0; i < c->items; i++)
        if (c->item[i].tally.not_finite) return false;
    return true;
}

static bool write_shard(fc_catalogue *c, int shard, const char *path, char *why)
{
    st_writer w;
    int count;
    order *list = order_of_shard(c, shard, &count);
    bool ok = list || io_fail(why, path, "there is not enough memory to write it");
    if (ok && create_shard(c, shard, path, list, count, &w, why)) {
        for (int i = 0; ok && i < count; i++) ok = write_item(c, list[i].item, &w, why);
        if (ok && !finite_so_far(c)) why[0] = '\0', ok = false;
        if (ok)
            ok = st_finish(&w, why);
        else
            st_abandon(&w);
    } else {
        ok = false;
    }
    free(list);
    return ok;
}

/* ---- the index ---- */

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const ckpt_entry *)a)->tensor, ((const ckpt_entry *)b)->tensor);
}

/* What the old one does not know, files outside of it, the new one does not know either: loaders take such by name. */
static bool write_index(fc_catalogue *c, char *why)
{
    ckpt_entry *entry = malloc(((size_t)c->items + 1) * sizeof *entry);
    const char *path = io_stage_path(&c->stage, ckpt_plain_name(c->input.index));
    int64_t n = 0;
    uint64_t total = 0;
    bool ok = (entry && path) || io_fail(why, c->options->out, "there is not enough memory for its index");
    for (int i = 0; ok && i < c->items; i++) {
        const fc_item *item = &c->item[i];
        if (item->role == FC_DROPPED || item->shard >= c->input.named) continue;
        entry[n++] = (ckpt_entry){ item->result.name, c->input.file[item->shard] };
        total += fc_size(&item->result);
    }
    if (ok) qsort(entry, (size_t)n, sizeof *entry, compare_entries);
    ok = ok && ckpt_write_index(path, entry, n, total, c->input.metadata, why);
    free(entry);
    return ok;
}

/* ---- all ---- */

bool fc_write_all(fc_catalogue *c, char *why)
{
    bool ok = true;
    for (int i = 0; ok && i < c->input.shards; i++) {
        const char *path = shard_path(c, i);
        ok = path ? write_shard(c, i, path, why) : io_fail(why, c->options->out, "there is not enough memory");
    }
    if (ok && c->input.index) ok = write_index(c, why);
    return ok && fc_copy_files(c, why) && io_stage_sync(&c->stage, why);
}

bool fc_tally_all(fc_catalogue *c, char *why)
{
    bool ok = true;
    for (int i = 0; ok && i < c->items; i++)
        if (fc_is_weight(&c->item[i])) ok = fc_convert(c, i, NULL, why);
    return ok;
}

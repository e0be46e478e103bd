/* checkpoint.h - a model's weights, in one .safetensors file or in many shards with an index.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/checkpoint.h"
 *     ckpt c;
 *     st_file shard;
 *     char why[IO_WHY];
 *     if (!ckpt_open("Llama-3-8B", &c, why)) return fprintf(stderr, "%s\n", why), 2;
 *     for (int i = 0; i < c.shards; i++) {
 *         if (!ckpt_shard(&c, i, &shard, why)) return fprintf(stderr, "%s\n", why), 2;
 *         ...
 *         st_close(&shard);
 *     }
 *     ckpt_close(&c);
 *
 * DOES: a .safetensors file, a model.safetensors.index.json, or a directory that holds either. All headers are read and
 *     compared when it is opened, so that what is wrong with the last shard is known before the first one is converted:
 *     every tensor of the index is in its shard, no name is in two shards. Data is mapped one shard at a time.
 *     An index is read as Python's json reads it: a tensor that stands twice is where the last line says.
 *     ckpt_open_all takes in, behind these, the other .safetensors of the directory, whose tensors are nowhere else
 *     (heads that predict further tokens); what holds the same tensors once more, or the same model under other names,
 *     is listed and not opened; a file that holds both is refused.
 * DOES NOT: leave the index's directory: shards are plain file names.
 *
 * CONTENTS
 *     ckpt, ckpt_tensor               the shards; every tensor's name and shard
 *     ckpt_open, ckpt_close
 *     ckpt_open_all                   with what lies beside them
 *     ckpt_shard                      one shard, opened: st_close it
 *     ckpt_find                       which shard holds a tensor
 *     ckpt_write_index                a new index
 *     ckpt_path, ckpt_inside          a file beside another; a file in a directory
 *     ckpt_folder, ckpt_plain_name    is it a directory? a path without its directory
 *
 * KNOWN FROM: the index that Hugging Face's libraries write: weight_map, and metadata with total_size.
 */
#ifndef IO_CHECKPOINT_H
#define IO_CHECKPOINT_H

#include <dirent.h>

#include "safetensors.h"

typedef struct ckpt_tensor {
    char *name;
    int shard;
} ckpt_tensor;

typedef struct ckpt_spare { /* a file that is not opened, and why: a phrase */
    char *file;
    const char *because;
} ckpt_spare;

typedef struct ckpt {
    int shards;
    int named;            /* the first so many are what the index, or the name, asks for */
    char **path;          /* of each, as it is opened */
    char **file;          /* of each, without its directory: as the index names it */
    uint64_t total_bytes; /* of all tensors' data */
    int tensors;
    ckpt_tensor *tensor; /* in the order of names */
    char *index;         /* path of the index.json; NULL for a single file */
    char *metadata;      /* what it says beside total_size, as it stands: "a": 1, "b": 2; NULL: nothing */
    ckpt_spare *spare;
    int spares, capacity, spare_capacity;
} ckpt;

enum { CKPT_MAX_INDEX = 1 << 30 };

/* ---- paths ---- */

/* `file` in the directory of `beside` ("a/b.json" and "c" make "a/c"); memory of its own. */
IO_FN char *ckpt_path(const char *beside, const char *file)
{
    const char *slash = strrchr(beside, '/');
    const size_t folder = slash ? (size_t)(slash - beside) + 1 : 0;
    char *path = (char *)malloc(folder + strlen(file) + 1);
    if (!path) return NULL;
    memcpy(path, beside, folder);
    strcpy(path + folder, file);
    return path;
}

IO_FN bool ckpt_ends(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* "a" and "c", or "a/" and "c", make "a/c"; memory of its own. */
IO_FN char *ckpt_inside(const char *folder, const char *file)
{
    char *path = (char *)malloc(strlen(folder) + strlen(file) + 2);
    if (path) sprintf(path, "%s%s%s", folder, ckpt_ends(folder, "/") ? "" : "/", file);
    return path;
}

IO_FN bool ckpt_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

IO_FN const char *ckpt_plain_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* An index names files, never places: what could lead out of its directory is refused. */
IO_FN bool ckpt_plain(const char *file)
{
    return file[0] && !strchr(file, '/') && !strchr(file, '\\') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

/* ---- the index ---- */

typedef struct ckpt_link { /* a line of the weight_map */
    char *tensor, *file;
    int number;
} ckpt_link;

typedef struct ckpt_index {
    ckpt_link *link;
    int count, capacity;
} ckpt_index;

IO_FN void ckpt_index_free(ckpt_index *index)
{
    for (int i = 0; i < index->count; i++) {
        free(index->link[i].tensor);
        free(index->link[i].file);
    }
    free(index->link);
    memset(index, 0, sizeof *index);
}

IO_FN bool ckpt_index_links(const io_json *map, ckpt_index *index, const char *name, char *why)
{
    io_json j = io_json_members(map);
    while (io_json_next(&j)) {
        if (!st_grow((void **)&index->link, sizeof *index->link, index->count, &index->capacity))
            return io_fail(why, name, "there is not enough memory for its weight_map");
        ckpt_link *l = &index->link[index->count];
        l->number = index->count++;
        l->tensor = io_json_name(&j);
        l->file = io_json_text(&j);
        if (!l->tensor) break;
        if (!l->file) return io_fail(why, name, "its weight_map gives tensor '%.128s' no file name", l->tensor);
        if (!ckpt_plain(l->file))
            return io_fail(why, name, "its weight_map looks for tensor '%.128s' outside of its directory, in '%.128s'",
                           l->tensor, l->file);
    }
    return !j.wrong || io_fail(why, name, "its weight_map is not a JSON object of file names: %s", j.wrong);
}

IO_FN int ckpt_by_tensor(const void *left, const void *right)
{
    const ckpt_link *a = (const ckpt_link *)left, *b = (const ckpt_link *)right;
    const int by_name = strcmp(a->tensor, b->tensor);
    return by_name ? by_name : a->number - b->number;
}

/* In the order of tensors; of lines for the same one the last stays. */
IO_FN void ckpt_index_sort(ckpt_index *index)
{
    int n = 0;
    qsort(index->link, (size_t)index->count, sizeof *index->link, ckpt_by_tensor);
    for (int i = 0; i < index->count; i++) {
        const bool again = n > 0 && strcmp(index->link[n - 1].tensor, index->link[i].tensor) == 0;
        if (again) {
            n--;
            free(index->link[n].tensor);
            free(index->link[n].file);
        }
        index->link[n++] = index->link[i];
    }
    index->count = n;
}

/* What is in an index.json that lies in memory, sorted by tensor: ckpt_index_free it, also after a failure. */
IO_FN bool ckpt_index_parse(const void *text, size_t size, const char *name, ckpt_index *index, char *why)
{
    io_json j = io_json_file((const char *)text, size);
    bool found = false;
    memset(index, 0, sizeof *index);
    if (size > CKPT_MAX_INDEX || !io_utf8(text, size)) return io_fail(why, name, "it is not an index in UTF-8");
    while (io_json_next(&j)) {
        char *key = io_json_name(&j);
        const bool map = key && strcmp(key, "weight_map") == 0;
        free(key);
        if (!map) continue;
        if (found) ckpt_index_free(index);
        found = true;
        if (!ckpt_index_links(&j, index, name, why)) return false;
    }
    if (j.wrong) return io_fail(why, name, "it is not a JSON object: %s", j.wrong);
    if (!found) return io_fail(why, name, "it has no weight_map: it is not the index of a checkpoint");
    if (index->count == 0) return io_fail(why, name, "its weight_map is empty");
    ckpt_index_sort(index);
    return true;
}

/* The members of its metadata but for total_size, with their commas; memory of its own, NULL where there are none. */
IO_FN char *ckpt_metadata_of(const char *text, size_t size)
{
    io_json member, j;
    char *more = NULL;
    size_t length = 0;
    if (!io_json_last(io_json_file(text, size), "metadata", &member) || *member.value != '{') return NULL;
    FILE *memory = open_memstream(&more, &length);
    for (j = io_json_members(&member); memory && io_json_next(&j);)
        if (!io_json_is(&j, "total_size"))
            fprintf(memory, "%s%.*s: %.*s", ftell(memory) ? ",\n    " : "", (int)j.key_size, j.key, (int)j.value_size,
                    j.value);
    const bool any = memory && fclose(memory) == 0 && length > 0;
    if (!any) free(more), more = NULL;
    return more;
}

/* ---- the shards and what is in them ---- */

IO_FN void ckpt_close(ckpt *c)
{
    for (int i = 0; i < c->shards; i++) {
        free(c->path[i]);
        free(c->file[i]);
    }
    for (int i = 0; i < c->tensors; i++) free(c->tensor[i].name);
    for (int i = 0; i < c->spares; i++) free(c->spare[i].file);
    free(c->spare);
    free(c->path);
    free(c->file);
    free(c->tensor);
    free(c->index);
    free(c->metadata);
    memset(c, 0, sizeof *c);
}

IO_FN int ckpt_by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The different files of an index, in the order of their names. */
IO_FN bool ckpt_list_shards(ckpt *c, const ckpt_index *index, const char *path, char *why)
{
    const char **file = (const char **)malloc((size_t)index->count * sizeof *file);
    c->path = (char **)calloc((size_t)index->count, sizeof *c->path);
    c->file = (char **)calloc((size_t)index->count, sizeof *c->file);
    bool ok = file && c->path && c->file;
    for (int i = 0; i < index->count && ok; i++) file[i] = index->link[i].file;
    if (ok) qsort(file, (size_t)index->count, sizeof *file, ckpt_by_text);
    for (int i = 0; i < index->count && ok; i++) {
        if (i && strcmp(file[i - 1], file[i]) == 0) continue;
        c->file[c->shards] = strdup(file[i]);
        c->path[c->shards] = ckpt_path(path, file[i]);
        ok = c->file[c->shards] && c->path[c->shards];
        c->shards++;
    }
    free(file);
    return ok || io_fail(why, path, "there is not enough memory for its list of shards");
}

IO_FN bool ckpt_one_shard(ckpt *c, const char *path, char *why)
{
    c->path = (char **)calloc(1, sizeof *c->path);
    c->file = (char **)calloc(1, sizeof *c->file);
    if (c->path && c->file) {
        c->shards = 1;
        c->path[0] = strdup(path);
        c->file[0] = strdup(ckpt_plain_name(path));
        if (c->path[0] && c->file[0]) return true;
    }
    return io_fail(why, path, "there is not enough memory to read it");
}

IO_FN int ckpt_by_name(const void *left, const void *right)
{
    const ckpt_tensor *a = (const ckpt_tensor *)left, *b = (const ckpt_tensor *)right;
    const int by_name = strcmp(a->name, b->name);
    return by_name ? by_name : a->shard - b->shard;
}

/* Names of a shard's tensors, from its header, behind those that are known. */
IO_FN bool ckpt_survey_shard(ckpt *c, int s, char *why)
{
    st_file f;
    bool ok = true;
    if (!st_open(c->path[s], &f, why)) return false;
    for (int i = 0; i < f.count && ok; i++) {
        char *name = f.tensor[i].name;
        ok = st_grow((void **)&c->tensor, sizeof *c->tensor, c->tensors, &c->capacity) ||
             io_fail(why, c->path[s], "there is not enough memory for its names");
        if (!ok) break;
        c->tensor[c->tensors++] = (ckpt_tensor){ name, s };
        f.tensor[i].name = NULL; /* it is ours now */
    }
    c->total_bytes += f.data_size;
    st_close(&f);
    return ok;
}

IO_FN void ckpt_sort(ckpt *c)
{
    if (c->tensors > 1) qsort(c->tensor, (size_t)c->tensors, sizeof *c->tensor, ckpt_by_name);
}

/* Names of all tensors, from all headers. */
IO_FN bool ckpt_survey(ckpt *c, char *why)
{
    c->named = c->shards;
    for (int s = 0; s < c->shards; s++)
        if (!ckpt_survey_shard(c, s, why)) return false;
    ckpt_sort(c);
    for (int i = 1; i < c->tensors; i++)
        if (strcmp(c->tensor[i - 1].name, c->tensor[i].name) == 0)
            return io_fail(why, c->index ? c->index : c->path[0], "tensor '%.128s' is in both %.100s and %.100s",
                           c->tensor[i].name, c->file[c->tensor[i - 1].shard], c->file[c->tensor[i].shard]);
    return true;
}

IO_FN const char *ckpt_name_at(const void *tensor, int place) { return ((const ckpt_tensor *)tensor)[place].name; }

/* The shard that holds a tensor; -1 when none does. */
IO_FN int ckpt_find(const ckpt *c, const char *name)
{
    const int place = io_find(c->tensor, c->tensors, ckpt_name_at, name);
    return place < 0 ? -1 : c->tensor[place].shard;
}

/* Tensors that the index forgets are tolerated, as everywhere; those that it promises must be there. */
IO_FN bool ckpt_check_index(const ckpt *c, const ckpt_index *index, char *why)
{
    for (int i = 0; i < index->count; i++) {
        const ckpt_link *l = &index->link[i];
        const int shard = ckpt_find(c, l->tensor);
        if (shard < 0 || strcmp(c->file[shard], l->file) != 0)
            return io_fail(why, c->index, "tensor '%.128s' is not in %.100s, where the weight_map says it is",
                           l->tensor, l->file);
    }
    return true;
}

IO_FN bool ckpt_open_index(ckpt *c, const char *path, char *why)
{
    io_map map;
    ckpt_index index;
    if (!io_map_open(path, &map, why)) return false;
    bool ok = ckpt_index_parse(map.bytes, map.size, path, &index, why);
    if (ok) c->metadata = ckpt_metadata_of((const char *)map.bytes, map.size);
    io_map_close(&map);
    c->index = strdup(path);
    if (ok && !c->index) ok = io_fail(why, path, "there is not enough memory to read it");
    ok = ok && ckpt_list_shards(c, &index, path, why) && ckpt_survey(c, why) && ckpt_check_index(c, &index, why);
    ckpt_index_free(&index);
    return ok;
}

/* ---- opening ---- */

/* Which of a directory's files is meant: an index before a single file, the usual name before others. */
IO_FN int ckpt_rank(const char *file)
{
    if (strcmp(file, "model.safetensors.index.json") == 0) return 4;
    if (ckpt_ends(file, ".safetensors.index.json")) return 3;
    if (strcmp(file, "model.safetensors") == 0) return 2;
    return ckpt_ends(file, ".safetensors") ? 1 : 0;
}

/* What to open in a directory. Memory of its own; NULL with a sentence. */
IO_FN char *ckpt_look(const char *path, char *why)
{
    char found[256] = "";
    int best = 0, ties = 0;
    if (!io_reading(path, why)) return NULL;
    DIR *folder = opendir(path);
    if (!folder) return io_fail(why, path, "it cannot be opened (%s)", strerror(errno)), NULL;
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        const int rank = ckpt_rank(e->d_name);
        ties = rank > best ? 1 : ties + (rank == best && rank);
        if (rank > best) snprintf(found, sizeof found, "%s", e->d_name);
        if (rank > best) best = rank;
    }
    closedir(folder);
    if (!best) return io_fail(why, path, "it holds no .safetensors file"), NULL;
    if (ties > 1)
        return io_fail(why, path,
                       best == 3 ? "it holds %d indices; name one of them"
                                 : "it holds %d .safetensors files and no index; name one of them",
                       ties),
               NULL;
    char *inside = ckpt_inside(path, found);
    if (!inside) io_fail(why, path, "there is not enough memory to read it");
    return inside;
}

IO_FN bool ckpt_open_file(const char *path, ckpt *c, char *why)
{
    const bool ok =
        ckpt_ends(path, ".json") ? ckpt_open_index(c, path, why) : ckpt_one_shard(c, path, why) && ckpt_survey(c, why);
    if (!ok) ckpt_close(c);
    return ok;
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN bool ckpt_open(const char *path, ckpt *c, char *why)
{
    memset(c, 0, sizeof *c);
    if (strcmp(path, "-") == 0) return io_fail(why, path, "a checkpoint is read twice, which standard input cannot be");
    if (!ckpt_folder(path)) return ckpt_open_file(path, c, why);
    char *inside = ckpt_look(path, why);
    const bool ok = inside && ckpt_open_file(inside, c, why);
    free(inside);
    return ok;
}

/* ---- what lies beside them ---- */

/* Takes over the name, also without memory. */
IO_FN bool ckpt_set_aside(ckpt *c, char *file, const char *because, char *why)
{
    const bool ok = st_grow((void **)&c->spare, sizeof *c->spare, c->spares, &c->spare_capacity);
    if (ok)
        c->spare[c->spares++] = (ckpt_spare){ file, because };
    else
        free(file);
    return ok || io_fail(why, c->path[0], "there is not enough memory for what lies beside it");
}

/* One more shard; takes over both texts, also when it fails. */
IO_FN bool ckpt_take_in(ckpt *c, char *path, char *file, char *why)
{
    char **const paths = (char **)realloc(c->path, ((size_t)c->shards + 1) * sizeof *paths);
    if (paths) c->path = paths;
    char **const files = (char **)realloc(c->file, ((size_t)c->shards + 1) * sizeof *files);
    if (files) c->file = files;
    if (!paths || !files) {
        free(path);
        free(file);
        return io_fail(why, c->path[0], "there is not enough memory for what lies beside it");
    }
    c->path[c->shards] = path;
    c->file[c->shards++] = file;
    if (!ckpt_survey_shard(c, c->shards - 1, why)) return false;
    ckpt_sort(c);
    return true;
}

/* How many of a file's tensors the others have; -1 with a sentence. *none: one that they lack, to be freed. */
IO_FN int ckpt_shared(const ckpt *c, const char *path, int *count, char **none, char *why)
{
    st_file f;
    int shared = 0;
    *none = NULL;
    if (!st_open(path, &f, why)) return -1;
    for (int i = 0; i < f.count; i++) {
        const bool there = ckpt_find(c, f.tensor[i].name) >= 0;
        shared += there;
        if (!there && !*none) *none = strdup(f.tensor[i].name);
    }
    *count = f.count;
    st_close(&f);
    return shared;
}

IO_FN bool ckpt_is_mistral(const char *file) { return strncmp(file, "consolidated", 12) == 0; }

/* Takes over the name. */
IO_FN bool ckpt_look_beside(ckpt *c, char *file, char *why)
{
    static const char *const model_again = "it holds the model once more, under Mistral's names; convert it by itself";
    static const char *const same_again = "its tensors are in the other files too";
    char *none = NULL, *path = NULL;
    int count = 0;
    if (ckpt_is_mistral(file) && !ckpt_is_mistral(c->file[0])) return ckpt_set_aside(c, file, model_again, why);
    path = ckpt_path(c->path[0], file);
    const int shared = path ? ckpt_shared(c, path, &count, &none, why) : -1;
    bool ok = shared >= 0;
    if (!path) io_fail(why, file, "there is not enough memory to read it");
    if (ok && shared > 0 && shared < count)
        ok = io_fail(why, path,
                     "%d of its %d tensors are in the other files too, and '%.128s' is not; move it away, and "
                     "convert it by itself",
                     shared, count, none ? none : "?");
    const bool take = ok && shared == 0 && count > 0;
    free(none);
    if (take) return ckpt_take_in(c, path, file, why);
    free(path);
    if (ok) return ckpt_set_aside(c, file, count ? same_again : "it holds no tensors", why);
    free(file);
    return false;
}

/* A directory's .safetensors that are none of the shards, in the order of their names; -1 with a sentence. */
IO_FN int ckpt_others(const ckpt *c, const char *path, char ***others, char *why)
{
    DIR *folder = opendir(path);
    int n = 0, capacity = 0;
    bool ok = folder != NULL;
    *others = NULL;
    for (const struct dirent *e; ok && (e = readdir(folder)) != NULL;) {
        bool known = !ckpt_ends(e->d_name, ".safetensors") || e->d_name[0] == '.';
        for (int s = 0; s < c->shards && !known; s++) known = strcmp(c->file[s], e->d_name) == 0;
        if (known) continue;
        ok = st_grow((void **)others, sizeof **others, n, &capacity) && ((*others)[n] = strdup(e->d_name)) != NULL;
        n += ok;
    }
    if (folder) closedir(folder);
    if (n > 1) qsort(*others, (size_t)n, sizeof **others, ckpt_by_text);
    if (ok) return n;
    for (int i = 0; i < n; i++) free((*others)[i]);
    free(*others);
    return io_fail(why, path, folder ? "there is not enough memory to look into it" : "it cannot be opened"), -1;
}

/* As ckpt_open; of a directory, what lies beside the shards, too. Where an index was named, that is only listed. */
IO_FN bool ckpt_open_all(const char *path, ckpt *c, char *why)
{
    char **others = NULL;
    if (!ckpt_open(path, c, why)) return false;
    const bool all = ckpt_folder(path);
    if (!all && !c->index) return true;
    char *folder = io_folder_of(c->path[0]);
    const int n = folder ? ckpt_others(c, folder, &others, why) : -1;
    bool ok = n >= 0 || (!folder && io_fail(why, path, "there is not enough memory to look into it"));
    for (int i = 0; i < n; i++) {
        if (!ok)
            free(others[i]);
        else if (all)
            ok = ckpt_look_beside(c, others[i], why);
        else
            ok = ckpt_set_aside(c, others[i], "the index that was named does not name it", why);
    }
    if (n >= 0) free(others);
    free(folder);
    if (!ok) ckpt_close(c);
    return ok;
}

IO_FN bool ckpt_shard(const ckpt *c, int index, st_file *file, char *why) { return st_open(c->path[index], file, why); }

/* ---- writing an index ---- */

typedef struct ckpt_entry {
    const char *tensor, *file;
} ckpt_entry;

/* weight_map in the order given, which is by name where Hugging Face writes it; total_size is the bytes of all data;
 * `more` metadata as ckpt has it, or NULL. */
IO_FN bool ckpt_write_index(const char *path, const ckpt_entry *entry, int64_t count, uint64_t total_size,
                            const char *more, char *why)
{
    io_output out;
    if (!io_output_open(path, &out, why)) return false;
    fprintf(out.file, "{\n  \"metadata\": {\n    %s%s\"total_size\": %llu\n  },\n  \"weight_map\": {", more ? more : "",
            more ? ",\n    " : "", (unsigned long long)total_size);
    bool ok = true;
    for (int64_t i = 0; i < count && ok; i++) {
        fputs(i ? ",\n    " : "\n    ", out.file);
        ok = io_json_quote(out.file, entry[i].tensor) && fputs(": ", out.file) >= 0 &&
             io_json_quote(out.file, entry[i].file);
    }
    if (!ok) return io_output_fail(&out, why, "it cannot be written: a name is not UTF-8, or the disk is full");
    fputs("\n  }\n}\n", out.file);
    return io_output_commit(&out, why);
}

#endif /* IO_CHECKPOINT_H */

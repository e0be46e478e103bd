/* files.c - what lies beside the weights, and what becomes of each: nothing vanishes without a word.
 * SPDX-License-Identifier: MIT
 *
 * Whoever loads the result needs the tokenizer, the code and the configurations, in directories as well (1_Pooling).
 * They are copied, and links are followed: in a cache of downloads every file is one. What stays behind is listed with
 * the reason: weights in other formats, weights in directories, the model once more, hidden files.
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8 };

/* Takes over the name, also without memory. */
static bool list_file(fc_catalogue *c, char *name, fc_deed deed, const char *because, char *why)
{
    const bool ok = name && st_grow((void **)&c->file, sizeof *c->file, c->files, &c->file_capacity);
    if (ok)
        c->file[c->files++] = (fc_file){ name, deed, because };
    else
        free(name);
    return ok || io_fail(why, c->options->in, "there is not enough memory for what lies beside its weights");
}

static bool ends_so(const char *file, const char *const *end, size_t ends)
{
    for (size_t i = 0; i < ends; i++)
        if (ckpt_ends(file, end[i])) return true;
    return false;
}

static bool is_config(const char *file)
{
    return strcmp(file, "config.json") == 0 || strcmp(file, "hf_quant_config.json") == 0;
}

/* Why a file stays behind, in words; NULL: it does not. */
static const char *why_left(const fc_catalogue *c, const char *name, const struct stat *s)
{
    static const char *const other[] = { ".bin",     ".bin.index.json", ".pt",   ".pth", ".h5",
                                         ".msgpack", ".gguf",           ".onnx", ".ckpt" };
    static const char *const index[] = { ".safetensors.index.json" };
    static const char *const own[] = { ".safetensors" };
    static const char *const told[] = { "hf_quant_config.json", "recipe.yaml", "quantize_config.json",
                                        "quant_config.json", "quantization_config.json" };
    const bool plain = ckpt_plain_name(name) == name;
    if (!S_ISREG(s->st_mode)) return "it is no plain file";
    if (ckpt_ends(name, ".part")) return "a run that was killed left it";
    if (ends_so(name, other, sizeof other / sizeof other[0])) return "weights in another format";
    if (ends_so(name, index, 1)) return "an index of other weights";
    if (ends_so(name, own, 1)) return "weights in a directory of their own; convert them by themselves";
    for (size_t i = 0; i < sizeof told / sizeof told[0] && plain && !fc_keeps_layout(c); i++)
        if (strcmp(name, told[i]) == 0) return "it has no words for what the weights are now; config.json has";
    return NULL;
}

/* The shards and their index are no files beside the weights; what ckpt_open_all set aside is listed already. */
static bool is_weights(const fc_catalogue *c, const char *name)
{
    const ckpt *in = &c->input;
    if (in->index && strcmp(name, ckpt_plain_name(in->index)) == 0) return true;
    for (int i = 0; i < in->shards; i++)
        if (strcmp(in->file[i], name) == 0) return true;
    for (int i = 0; i < in->spares; i++)
        if (strcmp(in->spare[i].file, name) == 0) return true;
    return false;
}

static bool list_folder(fc_catalogue *c, const char *below, int depth, char *why);

/* One entry of IN, by its name from there on; takes over the name. */
static bool list_entry(fc_catalogue *c, char *name, int depth, char *why)
{
    char *path = name ? ckpt_inside(c->options->in, name) : NULL;
    struct stat s, link;
    bool ok;
    if (!path) return free(name), list_file(c, NULL, FC_LEFT, NULL, why);
    const bool there = stat(path, &s) == 0, is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    free(path);
    if (ckpt_plain_name(name)[0] == '.') return list_file(c, name, FC_LEFT, "it is hidden", why);
    if (!there) return list_file(c, name, FC_LEFT, "it is a link that leads nowhere", why);
    if (S_ISDIR(s.st_mode)) {
        if (is_link) return list_file(c, name, FC_LEFT, "it is a link to a directory", why);
        if (depth == DEPTH) return list_file(c, name, FC_LEFT, "it lies too deep", why);
        const int at = c->files;
        ok = list_file(c, name, FC_FOLDER, NULL, why) && list_folder(c, name, depth + 1, why);
        bool copied = false;
        for (int i = at + 1; ok && i < c->files; i++) copied = copied || c->file[i].deed != FC_LEFT;
        if (ok && !copied) c->file[at].deed = FC_EMPTY;
        return ok;
    }
    const char *because = why_left(c, name, &s);
    return list_file(c, name, because ? FC_LEFT : is_config(name) ? FC_CHANGED : FC_COPIED_FILE, because, why);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* In the order of names. `below` "": IN itself. */
static bool list_folder(fc_catalogue *c, const char *below, int depth, char *why)
{
    char *path = ckpt_inside(c->options->in, below), **list = NULL;
    DIR *folder = path ? opendir(path) : NULL;
    int n = 0, capacity = 0;
    bool ok = folder || io_fail(why, path ? path : below, "it cannot be opened (%s)", strerror(errno));
    for (const struct dirent *e; ok && (e = readdir(folder)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (!*below && is_weights(c, e->d_name)) continue;
        ok = st_grow((void **)&list, sizeof *list, n, &capacity) || io_fail(why, path, "there is not enough memory");
        if (ok) list[n++] = *below ? ckpt_inside(below, e->d_name) : strdup(e->d_name);
    }
    if (folder) closedir(folder);
    for (int i = 0; i < n; i++) ok = ok && (list[i] || io_fail(why, path, "there is not enough memory"));
    if (ok && n > 1) qsort(list, (size_t)n, sizeof *list, by_name);
    for (int i = 0; i < n; i++) {
        if (ok)
            ok = list_entry(c, list[i], depth, why);
        else
            free(list[i]);
    }
    free(list);
    free(path);
    return ok;
}

bool fc_list_files(fc_catalogue *c, char *why)
{
    const ckpt *in = &c->input;
    bool ok = true;
    for (int i = in->named; ok && i < in->shards; i++)
        ok = list_file(c, strdup(in->file[i]), FC_CONVERTED, "weights beside those that are named", why);
    for (int i = 0; ok && i < in->spares; i++)
        ok = list_file(c, strdup(in->spare[i].file), FC_LEFT, in->spare[i].because, why);
    return ok && (!ckpt_folder(c->options->in) || list_folder(c, "", 0, why));
}

void fc_forget_files(fc_catalogue *c)
{
    for (int i = 0; i < c->files; i++) free(c->file[i].name);
    free(c->file);
}

/* ---- copying ---- */

static bool copy_file(const char *from, const char *to, char *why)
{
    io_map map;
    io_output out;
    if (!io_map_open(from, &map, why)) return false;
    const bool ok =
        io_output_open(to, &out, why) && io_output_write(&out, map.bytes, map.size, why) && io_output_commit(&out, why);
    io_map_close(&map);
    return ok;
}

bool fc_copy_files(fc_catalogue *c, char *why)
{
    bool ok = true;
    for (int i = 0; ok && i < c->files; i++) {
        const fc_file *f = &c->file[i];
        if (f->deed == FC_FOLDER) ok = io_stage_folder(&c->stage, f->name, why);
        if (f->deed != FC_CHANGED && f->deed != FC_COPIED_FILE) continue;
        char *from = ckpt_inside(c->options->in, f->name);
        const char *to = io_stage_path(&c->stage, f->name);
        ok = (from && to) || io_fail(why, f->name, "there is not enough memory to copy it");
        ok = ok && (f->deed == FC_CHANGED ? fc_write_config(c, from, to, why) : copy_file(from, to, why));
        free(from);
    }
    return ok;
}

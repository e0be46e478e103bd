/* files.c - all files that a command reads and writes.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/together.h"

/* ---- where a path leads ---- */

typedef struct file_id {
    dev_t device;
    ino_t number;
} file_id;

typedef struct place {
    char *path;       /* as the user named it */
    const char *flag; /* of outputs */
    bool there;       /* .file is it */
    file_id file;
    char *name; /* in .folder, links followed; NULL: the directory is not there, or it is a stream */
    file_id folder;
} place;

static bool same_id(file_id a, file_id b) { return a.device == b.device && a.number == b.number; }

static bool id_of(const char *path, file_id *id)
{
    struct stat s;
    if (stat(path, &s) != 0) return false;
    *id = (file_id){ s.st_dev, s.st_ino };
    return true;
}

/* Without memory nobody would know what is read, and what must not be written over: that ends the program. */
static void must_know(bool known)
{
    if (!known) exit(app_complain(APP_USAGE, "there is not enough memory to tell inputs from outputs"));
}

static char *known(char *path)
{
    must_know(path != NULL);
    return path;
}

static char *copy(const char *text) { return strcpy(app_memory(strlen(text) + 1, 1), text); }

static void place_free(place *p)
{
    free(p->path);
    free(p->name);
}

/* Of "a/b/": "a/b". */
static char *without_slashes(const char *path)
{
    char *plain = copy(path);
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--) plain[n - 1] = '\0';
    return plain;
}

static place place_of(const char *path)
{
    place p = { .path = copy(path) };
    char *plain = without_slashes(path), *target = known(io_output_follow(plain));
    char *folder = known(io_folder_of(target));
    const char *slash = strrchr(target, '/');
    p.there = id_of(path, &p.file);
    if (id_of(folder, &p.folder)) p.name = copy(slash ? slash + 1 : target);
    free(folder);
    free(target);
    free(plain);
    return p;
}

static bool same_place(const place *a, const place *b)
{
    if (a->there && b->there) return same_id(a->file, b->file);
    return a->name && b->name && same_id(a->folder, b->folder) && strcmp(a->name, b->name) == 0;
}

/* Terminals, /dev/null: nothing there is lost. */
static bool holds_nothing(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISCHR(s.st_mode);
}

/* Is the path, links followed, somewhere below this directory? Up by ".." from the first directory that is there. */
static bool lies_in(const char *path, const place *folder)
{
    char *plain = without_slashes(path), *at = known(io_output_follow(plain));
    file_id id, above;
    bool inside = false;
    free(plain);
    for (bool there = false; !inside && !there;) {
        char *parent = known(io_folder_of(at));
        there = strcmp(parent, at) == 0 || id_of(parent, &id);
        place p = place_of(parent);
        inside = same_place(&p, folder);
        place_free(&p);
        free(at);
        at = parent;
    }
    while (!inside && id_of(at, &id)) {
        char *up = app_memory(strlen(at) + 4, 1);
        strcat(strcpy(up, at), "/..");
        free(at);
        at = up;
        if (!id_of(up, &above) || same_id(id, above)) break; /* the root is its own parent */
        inside = folder->there && same_id(above, folder->file);
    }
    free(at);
    return inside;
}

/* ---- what the command reads and writes: one list each ---- */

typedef struct places {
    place *at;
    int count, capacity;
} places;

static places inputs, input_folders, outputs;

static void add(places *list, place p)
{
    for (int i = 0; i < list->count; i++)
        if (same_place(&list->at[i], &p)) {
            place_free(&p);
            return;
        }
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->at = app_resize(list->at, (size_t)list->capacity, sizeof *list->at);
    }
    list->at[list->count++] = p;
}

static place standard_place(int descriptor)
{
    place p = { .path = copy("-"), .flag = "standard output" };
    struct stat s;
    p.there = fstat(descriptor, &s) == 0 && S_ISREG(s.st_mode);
    if (p.there) p.file = (file_id){ s.st_dev, s.st_ino };
    return p;
}

/* Its files one by one, too: they may have other names elsewhere. */
void app_reads_folder(const char *path)
{
    errno = 0;
    DIR *list = opendir(path);
    must_know(list || errno != ENOMEM);
    for (const struct dirent *e; list && (e = readdir(list)) != NULL;) {
        char *file = app_memory(strlen(path) + strlen(e->d_name) + 2, 1);
        struct stat s;
        sprintf(file, "%s/%s", path, e->d_name);
        if (stat(file, &s) == 0 && S_ISREG(s.st_mode)) add(&inputs, place_of(file));
        free(file);
    }
    if (list) closedir(list);
    add(&input_folders, place_of(path));
}

bool app_reads(const char *path, char *why)
{
    static bool registered;
    if (!registered) add(&outputs, standard_place(STDOUT_FILENO));
    registered = true;
    struct stat s;
    const bool standard = strcmp(path, "-") == 0;
    if (holds_nothing(path)) return true;
    if (!standard && stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return app_reads_folder(path), true;
    place p = standard ? standard_place(STDIN_FILENO) : place_of(path);
    for (int i = 0; i < outputs.count; i++)
        if (same_place(&p, &outputs.at[i])) {
            place_free(&p);
            return app_fail(why, "%.200s: it is read, and %s would replace it", path, outputs.at[i].flag);
        }
    add(&inputs, p);
    return true;
}

/* "--json a.npy: WHAT NAME"; the name is left out where that is how the user named the output. True. */
static bool collides(const place *p, char *why, const char *what, const char *name)
{
    const char *after = strcmp(name, p->path) == 0 || strcmp(name, "-") == 0 ? "" : name;
    app_fail(why, "%s%s%.150s: %s%s%.150s", p->flag, *p->flag ? " " : "", p->path, what, *after ? " " : "", after);
    return true;
}

static bool replaces_input(const place *p, char *why)
{
    for (int i = 0; i < inputs.count; i++) {
        const place *in = &inputs.at[i];
        if (same_place(p, in)) return collides(p, why, "it would replace the input", in->path);
        if (p->name && in->name && lies_in(in->path, p)) return collides(p, why, "there is an input in it:", in->path);
    }
    return false;
}

/* A new file may be put into a directory that is read; what is there is the input's. */
static bool replaces_input_of_folder(const place *p, char *why)
{
    struct stat s;
    const bool file = p->there && stat(p->path, &s) == 0 && S_ISREG(s.st_mode);
    for (int i = 0; i < input_folders.count; i++) {
        const place *in = &input_folders.at[i];
        if (same_place(p, in)) return collides(p, why, "it would replace the input", in->path);
        if (file && lies_in(p->path, in)) return collides(p, why, "it would replace a file of the input", in->path);
        if (p->name && lies_in(in->path, p)) return collides(p, why, "there is an input in it:", in->path);
    }
    return false;
}

static bool meets_output(const place *p, char *why)
{
    for (int i = 0; i < outputs.count; i++) {
        const place *out = &outputs.at[i];
        if (same_place(p, out))
            return collides(p, why, "it is also written by", *out->flag ? out->flag : "the command itself");
        if (out->name && lies_in(p->path, out)) return collides(p, why, "it lies in", out->path);
        if (p->name && out->name && lies_in(out->path, p)) return collides(p, why, "in it lies", out->path);
    }
    return false;
}

bool app_writes(const char *flag, const char *path, char *why)
{
    if (holds_nothing(path)) return true;
    place p = place_of(path);
    p.flag = flag;
    if (replaces_input(&p, why) || replaces_input_of_folder(&p, why) || meets_output(&p, why)) {
        place_free(&p);
        return false;
    }
    add(&outputs, p);
    return true;
}

/* ---- outputs ---- */

bool app_output_taken(const app_output *output, int count)
{
    for (int i = 0; i < count; i++)
        if (output[i].path && strcmp(output[i].path, "-") == 0) return true;
    return false;
}

FILE *app_output_stream(const app_output *output) { return output->file ? output->file->file : NULL; }

void app_discard_outputs(app_output *output, int count)
{
    for (int i = 0; i < count; i++) {
        if (output[i].file) io_output_discard(output[i].file);
        free(output[i].file);
        output[i].file = NULL;
    }
}

static int output_failed(app_output *output, int count, const char *why)
{
    app_discard_outputs(output, count);
    return app_complain(APP_USAGE, "%s", why);
}

/* None of them is opened unless all may be. */
static bool outputs_may(const app_output *output, int count, char *why)
{
    for (int i = 0; i < count; i++) {
        if (!output[i].path) continue;
        if (strcmp(output[i].path, "-") != 0) {
            if (!app_writes(output[i].flag, output[i].path, why)) return false;
        } else if (app_output_taken(output, i)) {
            return app_fail(why, "%s -: standard output takes one of them", output[i].flag);
        }
    }
    return true;
}

int app_open_outputs(app_output *output, int count)
{
    char why[IO_WHY], sentence[APP_WHY];
    if (!outputs_may(output, count, sentence)) return output_failed(output, count, sentence);
    for (int i = 0; i < count; i++) {
        if (!output[i].path) continue;
        output[i].file = app_memory(1, sizeof *output[i].file);
        if (io_output_open(output[i].path, output[i].file, why)) {
            if (output[i].file->swept)
                app_complain(APP_OK,
                             "%s %s: what a killed run had left of it is removed; what else that run wrote may "
                             "be of another time",
                             output[i].flag, output[i].path);
            continue;
        }
        app_fail(sentence, "%s %s", output[i].flag, why);
        return output_failed(output, count, sentence);
    }
    return APP_OK;
}

static int each_output(app_output *output, int count, bool (*step)(io_output *out, char *why))
{
    char why[IO_WHY], sentence[APP_WHY];
    for (int i = 0; i < count; i++) {
        if (!output[i].file || step(output[i].file, why)) continue;
        app_fail(sentence, "%s %s", output[i].flag, why);
        return output_failed(output, count, sentence);
    }
    return APP_OK;
}

int app_finish_outputs(app_output *output, int count, const void *context)
{
    for (int i = 0; i < count; i++)
        if (output[i].file && output[i].write)
            output[i].write(output[i].file->file, output[i].context ? output[i].context : context);
    return each_output(output, count, io_output_finish);
}

int app_show_staged(io_stage *stage, app_output *output, int count)
{
    io_output **file = app_memory((size_t)count, sizeof *file);
    char why[IO_WHY];
    for (int i = 0; i < count; i++) file[i] = output[i].file;
    const bool ok = io_show_together(file, count, stage, why);
    free(file);
    app_discard_outputs(output, count);
    return why[0] ? app_complain(APP_USAGE, "%s", why) : ok ? APP_OK : APP_USAGE;
}

int app_show_outputs(app_output *output, int count) { return app_show_staged(NULL, output, count); }

int app_answer(app_output *output, int count, const void *context, void (*print)(FILE *out, const void *context))
{
    return app_answer_staged(NULL, output, count, context, print);
}

int app_answer_staged(struct io_stage *stage, app_output *output, int count, const void *context,
                      void (*print)(FILE *out, const void *context))
{
    const bool taken = app_output_taken(output, count);
    int status = app_finish_outputs(output, count, context);
    if (status == APP_OK && print && !taken) print(stdout, context);
    status = app_flush(status);
    return status == APP_OK ? app_show_staged(stage, output, count) : status;
}

int app_write_outputs(app_output *output, int count, const void *context)
{
    return app_answer(output, count, context, NULL);
}

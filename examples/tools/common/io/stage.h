/* stage.h - a directory of files, or one large file, that is either the old or the new: made beside its place, then
 * moved there in one step.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/stage.h"
 *     io_stage s;
 *     char why[IO_WHY];
 *     const io_stage_args args = { .path = "OUT", .folder = true };
 *     if (!io_stage_open(&args, &s, why)) return fprintf(stderr, "%s\n", why), 2;
 *     const char *path = io_stage_path(&s, "model.safetensors");   ... write it with output.h ...
 *     if (!io_stage_commit(&s, why)) return fprintf(stderr, "%s\n", why), 2;
 *
 * DOES: everything is written to OUT.part/new, each file synced (output.h does), then the directories; then one rename
 *     makes it OUT, or, where OUT is there and .force is given, one exchange of the two names, and the old one is
 *     removed. An empty directory is as good as none. OUT.part/lock is held as long as its owner lives: a second run
 *     into the same OUT is refused, and what a killed run left is known by it, and removed. A link to OUT stays a link.
 *     On exit() and on the signals that people and shells send nothing stays.
 * DOES NOT: touch an OUT.part that is not its own; replace what .may_replace does not know, a mount point, "." or "..";
 *     exchange directories where the system cannot: that is found out before the work, where it can be.
 *
 * CONTENTS
 *     io_stage, io_stage_args   the staging area; what to make
 *     io_stage_open             refuses what cannot become OUT, before any work
 *     io_stage_path             where to write a file of it
 *     io_stage_folder           a directory in it
 *     io_stage_sync             all of it is on the disk: what follows can hardly fail
 *     io_stage_commit           OUT is the new one
 *     io_stage_discard          as if it had never been opened
 */
#ifndef IO_STAGE_H
#define IO_STAGE_H

#include "output.h"
#if defined(__linux__)
#include <sys/syscall.h>
#endif

typedef struct io_stage_args {
    const char *path;
    bool folder, force;
    /* May this directory, which is not empty, be replaced? NULL: no question. The sentence names what is wrong. */
    bool (*may_replace)(const char *path, const void *user, char *why);
    const void *user;
    const char *instead; /* what the sentence advises where OUT is there; NULL: "--force replaces it" */
} io_stage_args;

typedef struct io_staged { /* a file or a directory that was asked for */
    struct io_staged *next;
    const char *path; /* behind it, in the same memory */
} io_staged;

typedef struct io_stage {
    char *path;                  /* as the user named it, for sentences */
    char *target;                /* where links lead */
    char *part, *fresh, *lock;   /* target.part; target.part/new; target.part/lock */
    io_staged *volatile made;    /* the youngest first */
    int held;                    /* descriptor of the lock */
    bool open, folder, replaces; /* replaces: something is there */
    bool swept;                  /* a killed run had left something, which is gone now */
} io_stage;

enum { IO_STAGES = 4, IO_STAGE_DEPTH = 32 };

/* ---- trees ---- */

IO_FN bool io_remove_entry(int folder, const char *name, int depth);

/* Everything in a directory, whose descriptor is closed. */
IO_FN bool io_remove_entries(int descriptor, int depth)
{
    DIR *list = fdopendir(descriptor);
    bool ok = list != NULL;
    if (!list) close(descriptor);
    for (const struct dirent *e; list && (e = readdir(list)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = io_remove_entry(dirfd(list), e->d_name, depth) && ok;
    if (list) closedir(list);
    return ok;
}

/* A file, or a directory with all that is in it; never where a link leads. */
IO_FN bool io_remove_entry(int folder, const char *name, int depth)
{
    struct stat s;
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    if (!S_ISDIR(s.st_mode)) return unlinkat(folder, name, 0) == 0;
    const int descriptor =
        depth ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : (errno = ELOOP, -1);
    if (descriptor < 0 || !io_remove_entries(descriptor, depth - 1)) return false;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

/* Entries of a directory, at most 2; -1 with errno. */
IO_FN int io_entries(const char *path)
{
    int n = 0;
    DIR *list = opendir(path);
    if (!list) return -1;
    for (const struct dirent *e; n < 2 && (e = readdir(list)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(list);
    return n;
}

/* ---- renaming: 0, or -1 with errno ---- */

#if defined(__linux__) && defined(SYS_renameat2)
#if !defined(__cplusplus) /* hidden by strict POSIX; not all C libraries have a function of renameat2's name */
extern long syscall(long number, ...);
#endif
IO_FN int io_rename_flagged(const char *from, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}
#else
IO_FN int io_rename_flagged(const char *from, const char *to, unsigned flags)
{
    (void)from, (void)to, (void)flags;
    return errno = ENOSYS, -1;
}
#endif

enum { IO_RENAME_NOREPLACE = 1, IO_RENAME_EXCHANGE = 2 };

IO_FN bool io_rename_lacks_flags(int trouble) { return trouble == ENOSYS || trouble == EINVAL || trouble == ENOTSUP; }

IO_FN int io_exchange(const char *a, const char *b) { return io_rename_flagged(a, b, IO_RENAME_EXCHANGE); }

/* Onto a name that is free; where the system cannot promise that, we look once more. */
IO_FN int io_rename_new(const char *from, const char *to)
{
    struct stat s;
    if (io_rename_flagged(from, to, IO_RENAME_NOREPLACE) == 0) return 0;
    if (!io_rename_lacks_flags(errno)) return -1;
    return lstat(to, &s) == 0 ? (errno = EEXIST, -1) : rename(from, to);
}

/* ---- what must not be left behind: one list for the whole program ---- */

__attribute__((weak)) io_stage *volatile io_stages[IO_STAGES];

/* Only what a signal may do: names that were asked for are known, nothing is searched. The lock goes last. */
IO_FN bool io_stage_remove(const io_stage *s)
{
    for (const io_staged *f = s->made; f; f = f->next)
        if (unlink(f->path) != 0) rmdir(f->path);
    if (unlink(s->fresh) != 0 && rmdir(s->fresh) != 0 && errno != ENOENT) return false; /* the next run sees to it */
    return unlink(s->lock) == 0 && rmdir(s->part) == 0;
}

IO_FN void io_stage_remove_all(void)
{
    for (int i = 0; i < IO_STAGES; i++)
        if (io_stages[i]) io_stage_remove(io_stages[i]);
}

/* "OUT.part/new/config.json" is called OUT/config.json in sentences. */
IO_FN const char *io_stage_named(const char *name, char *room, size_t size)
{
    for (int i = 0; i < IO_STAGES && io_unfinished_owner == getpid(); i++) {
        const io_stage *s = io_stages[i];
        const size_t n = s ? strlen(s->fresh) : 0;
        if (!s || strncmp(name, s->fresh, n) != 0 || (name[n] && name[n] != '/')) continue;
        snprintf(room, size, "%s%s", s->path, name + n);
        return room;
    }
    return name;
}

IO_FN bool io_stage_register(io_stage *s)
{
    const bool known = io_unfinished_owner == getpid();
    io_output_guard();
    for (int i = 0; i < IO_STAGES && !known; i++) io_stages[i] = NULL; /* a parent's are its own */
    io_after_unfinished = io_stage_remove_all;
    io_named = io_stage_named;
    for (int i = 0; i < IO_STAGES; i++)
        if (!io_stages[i]) return io_stages[i] = s, true;
    return false;
}

IO_FN void io_stage_forget(io_stage *s)
{
    for (int i = 0; i < IO_STAGES; i++)
        if (io_stages[i] == s) io_stages[i] = NULL;
    if (s->held >= 0) close(s->held);
    while (s->made) {
        io_staged *next = s->made->next;
        free(s->made);
        s->made = next;
    }
    free(s->path);
    free(s->target);
    free(s->part);
    free(s->fresh);
    free(s->lock);
    memset(s, 0, sizeof *s);
    s->held = -1;
}

/* All of OUT.part but the lock. */
IO_FN bool io_stage_clear(const io_stage *s)
{
    DIR *list = opendir(s->part);
    bool ok = list != NULL;
    for (const struct dirent *e; list && (e = readdir(list)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, "lock") != 0)
            ok = io_remove_entry(dirfd(list), e->d_name, IO_STAGE_DEPTH) && ok;
    if (list) closedir(list);
    return ok;
}

/* The lock is ours; it goes last, so that what is there is known for what it is. Without the memory to look around,
 * what was asked for goes. */
IO_FN bool io_stage_clean(const io_stage *s)
{
    if (io_stage_clear(s)) return unlink(s->lock) == 0 && rmdir(s->part) == 0;
    const int trouble = errno;
    const bool ok = io_stage_remove(s);
    errno = trouble;
    return ok;
}

/* As if it had never been opened. For one that is not open, nothing. */
IO_FN void io_stage_discard(io_stage *s)
{
    if (!s->open) return;
    io_stage_clean(s);
    io_stage_forget(s);
}

__attribute__((unused, format(printf, 3, 4))) static bool io_stage_fail(io_stage *s, char *why, const char *format, ...)
{
    char sentence[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(sentence, sizeof sentence, IO_SAID, format, list);
    va_end(list);
    io_fail(why, s->path ? s->path : "output", "%s", sentence);
    if (s->open)
        io_stage_discard(s);
    else
        io_stage_forget(s);
    return false;
}

/* ---- opening: can this become OUT? ---- */

IO_FN char *io_text_of(const char *a, const char *b)
{
    char *text = (char *)malloc(strlen(a) + strlen(b) + 1);
    if (text) strcat(strcpy(text, a), b);
    return text;
}

/* OUT.part, or what of it fits into a name. */
IO_FN char *io_part_of(const char *target)
{
    const char *slash = strrchr(target, '/');
    const int folder = slash ? (int)(slash + 1 - target) : 0;
    char *stem = io_name_stem(target + folder, sizeof ".part" - 1);
    char *part = stem ? (char *)malloc((size_t)folder + strlen(stem) + sizeof ".part") : NULL;
    if (part) sprintf(part, "%.*s%s.part", folder, target, stem);
    free(stem);
    return part;
}

/* "OUT/" is OUT. */
IO_FN bool io_stage_names(io_stage *s, const char *path)
{
    char *plain = strdup(path);
    for (size_t n = plain ? strlen(plain) : 0; n > 1 && plain[n - 1] == '/'; n--) plain[n - 1] = '\0';
    s->path = strdup(path);
    s->target = plain ? io_output_follow(plain) : NULL;
    free(plain);
    for (size_t n = s->target ? strlen(s->target) : 0; n > 1 && s->target[n - 1] == '/'; n--) s->target[n - 1] = '\0';
    s->part = s->target ? io_part_of(s->target) : NULL;
    s->fresh = s->part ? io_text_of(s->part, "/new") : NULL;
    s->lock = s->part ? io_text_of(s->part, "/lock") : NULL;
    return s->path && s->fresh && s->lock;
}

IO_FN bool io_stage_mounted(const io_stage *s, const struct stat *target)
{
    struct stat parent;
    char *folder = io_folder_of(s->target);
    const bool other = folder && stat(folder, &parent) == 0 && parent.st_dev != target->st_dev;
    free(folder);
    return other;
}

/* What is there: is it of the right kind, and may it be replaced? */
IO_FN bool io_stage_check(io_stage *s, const io_stage_args *a, char *why)
{
    const char *slash = strrchr(s->target, '/'), *name = slash ? slash + 1 : s->target;
    struct stat there;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return io_fail(why, s->path, "it has no name of its own that could be replaced");
    if (stat(s->target, &there) != 0)
        return errno == ENOENT || io_fail(why, s->path, "it cannot be created (%s)", strerror(errno));
    if (a->folder && !S_ISDIR(there.st_mode)) return io_fail(why, s->path, "it is there already, and no directory");
    if (!a->folder && !S_ISREG(there.st_mode)) return io_fail(why, s->path, "it is there already, and no plain file");
    const int entries = a->folder ? io_entries(s->target) : 1;
    if (entries && !a->force)
        return io_fail(why, s->path, "it is there already; %s", a->instead ? a->instead : "--force replaces it");
    if (entries < 0 || access(s->target, W_OK) != 0)
        return io_fail(why, s->path, "it cannot be replaced (%s)", strerror(errno));
    if (a->folder && io_stage_mounted(s, &there))
        return io_fail(why, s->path, "a file system is mounted there, and stays; name a directory in it");
    s->replaces = entries != 0;
    return !a->folder || !entries || !a->may_replace || a->may_replace(s->path, a->user, why);
}

/* ---- opening: the lock ---- */

/* The descriptor of a lock that is ours; -1 after a sentence, -2: it vanished, try again. */
IO_FN int io_stage_try_lock(io_stage *s, char *why)
{
    struct stat there;
    const bool made = mkdir(s->part, 0777) == 0;
    if (!made && errno != EEXIST) return io_stage_fail(s, why, "it cannot be created (%s)", strerror(errno)), -1;
    const bool had = lstat(s->lock, &there) == 0;
    if (!made && !had && (lstat(s->part, &there) != 0 || !S_ISDIR(there.st_mode) || io_entries(s->part) != 0))
        return io_stage_fail(s, why, "%s is in the way, and not what a run left; remove it", s->part), -1;
    const int descriptor = open(s->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        const int trouble = errno;
        if (trouble == ENOENT) return -2;
        if (made) rmdir(s->part);
        return io_stage_fail(s, why, "it cannot be created (%s)", strerror(trouble)), -1;
    }
    const bool locked = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (!locked && (errno == EWOULDBLOCK || had)) { /* without locks, who comes first has it */
        const bool busy = errno == EWOULDBLOCK;
        close(descriptor);
        if (busy) return io_stage_fail(s, why, "another run is writing it (%s)", s->part), -1;
        return io_stage_fail(s, why, "another run is writing it, or was killed; then remove %s", s->part), -1;
    }
    static const char text[] = "A run is writing what lies beside this, or was killed; the next one removes this.\n";
    if (io_still_there(descriptor, s->lock) && (had || write(descriptor, text, sizeof text - 1) != 0))
        return s->swept = had, descriptor;
    close(descriptor);
    return -2;
}

IO_FN bool io_stage_take(io_stage *s, char *why)
{
    for (int i = 0; i < 1000; i++) {
        s->held = io_stage_try_lock(s, why);
        if (s->held >= 0) return true;
        if (s->held == -1) return false;
    }
    return io_stage_fail(s, why, "other runs come and go too fast");
}

/* ---- opening: an empty staging area ---- */

/* What a killed run left beside an OUT that will not be replaced: it may have been killed after its last step. */
IO_FN void io_stage_sweep(io_stage *s)
{
    struct stat there;
    char why[IO_WHY];
    if (lstat(s->lock, &there) != 0)
        rmdir(s->part); /* it was killed before its very last call */
    else if (io_stage_take(s, why))
        io_stage_clean(s);
}

/* Would the system exchange two directories here? */
IO_FN bool io_stage_can_exchange(const io_stage *s)
{
    char *other = io_text_of(s->part, "/other");
    const bool ok = other && mkdir(other, 0777) == 0 && io_exchange(s->fresh, other) == 0;
    const int trouble = errno;
    if (other) rmdir(other);
    free(other);
    errno = trouble;
    return ok;
}

IO_FN bool io_stage_prepare(io_stage *s, char *why)
{
    struct stat there;
    s->open = true;
    if (!io_stage_clear(s)) return io_stage_fail(s, why, "%s cannot be removed (%s)", s->part, strerror(errno));
    if (!s->folder) return true;
    if (mkdir(s->fresh, 0777) != 0) return io_stage_fail(s, why, "it cannot be created (%s)", strerror(errno));
    const bool there_is = stat(s->target, &there) == 0;
    if (there_is && chmod(s->fresh, (there.st_mode & 0777) | 0700) != 0) errno = 0; /* then with our own */
    if (!s->replaces || io_stage_can_exchange(s)) return true;
    if (io_rename_lacks_flags(errno))
        return io_stage_fail(s, why, "this file system cannot exchange directories; remove it first, or name another");
    return io_stage_fail(s, why, "it cannot be replaced (%s)", strerror(errno));
}

/* Nothing is left open, or behind, when this fails; what was there is as it was. */
IO_FN bool io_stage_open(const io_stage_args *args, io_stage *s, char *why)
{
    sigset_t all, before;
    memset(s, 0, sizeof *s);
    s->held = -1;
    s->folder = args->folder;
    if (!io_stage_names(s, args->path)) {
        io_stage_forget(s);
        return io_fail(why, args->path, "there is not enough memory to write it");
    }
    if (!io_stage_check(s, args, why)) {
        io_stage_sweep(s);
        io_stage_forget(s);
        return false;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool ok = io_stage_take(s, why);
    if (ok && !io_stage_register(s)) s->open = true, ok = io_stage_fail(s, why, "too many of these are open");
    ok = ok && io_stage_prepare(s, why);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}

/* ---- writing ---- */

/* Where to write a file of the directory, or, with NULL, the file itself; NULL without memory. It stays the stage's. */
IO_FN const char *io_stage_path(io_stage *s, const char *file)
{
    if (!file) return s->fresh;
    io_staged *f = (io_staged *)malloc(sizeof *f + strlen(s->fresh) + strlen(file) + 2);
    if (!f) return NULL;
    sprintf((char *)(f + 1), "%s/%s", s->fresh, file);
    f->path = (const char *)(f + 1);
    f->next = s->made;
    s->made = f;
    return f->path;
}

IO_FN bool io_stage_folder(io_stage *s, const char *name, char *why)
{
    const char *path = io_stage_path(s, name);
    return (path && mkdir(path, 0777) == 0) || io_fail(why, s->path, "it cannot be written (%s)", strerror(errno));
}

/* ---- the one step ---- */

IO_FN bool io_stage_sync(io_stage *s, char *why)
{
    bool ok = !s->folder || io_sync_folder(s->fresh);
    struct stat there;
    for (const io_staged *f = s->made; ok && f; f = f->next)
        if (lstat(f->path, &there) == 0 && S_ISDIR(there.st_mode)) ok = io_sync_folder(f->path);
    return (ok && io_sync_folder(s->part)) || io_stage_fail(s, why, "it cannot be written (%s)", strerror(errno));
}

IO_FN int io_stage_move(const io_stage *s)
{
    struct stat there;
    if (s->replaces) return s->folder ? io_exchange(s->fresh, s->target) : rename(s->fresh, s->target);
    if (s->folder && lstat(s->target, &there) == 0) return rename(s->fresh, s->target); /* it is empty, or this fails */
    return io_rename_new(s->fresh, s->target);
}

/* After the one step: it stays, and nothing is left beside it; or `why` says what could not be done. */
IO_FN void io_stage_settle(io_stage *s, char *why)
{
    char *parent = io_folder_of(s->target);
    if (!parent || !io_sync_folder(parent))
        io_fail(why, s->path, "it is complete, but may not survive a loss of power (%s)", strerror(errno));
    free(parent);
    if (!io_stage_clean(s))
        io_fail(why, s->path, "it is complete, but %s cannot be removed (%s)", s->part, strerror(errno));
    io_stage_forget(s);
}

/* After a failure nothing is open, nothing is left behind, and what was there is there. True with a sentence in `why`:
 * OUT is the new one, whole, but what the sentence says could not be done; else `why` is empty. */
IO_FN bool io_stage_commit(io_stage *s, char *why)
{
    sigset_t all, before;
    why[0] = '\0';
    if (!s->open) return io_fail(why, s->path ? s->path : "output", "it is not open");
    if (!io_stage_sync(s, why)) return false;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const bool ok = io_stage_move(s) == 0;
    if (ok)
        io_stage_settle(s, why);
    else
        io_stage_fail(s, why, "it cannot be %s (%s)", s->replaces ? "replaced" : "created", strerror(errno));
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}

#endif /* IO_STAGE_H */

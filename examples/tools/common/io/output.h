/* output.h - a file that is either all there or not there: written beside its target, renamed when it is complete.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/output.h"
 *     io_output out;
 *     char why[IO_WHY];
 *     if (!io_output_open("C.npy", &out, why) || !io_output_write(&out, bytes, size, why) ||
 *         !io_output_commit(&out, why))
 *         return fprintf(stderr, "%s\n", why), 2;
 *
 * DOES: the temporary file has its target's name, ".", the process, "-", a number and ".part" (of a name that would be
 *     too long then, as much as fits and a number made of all of it); it is removed when a write fails, on exit(), and
 *     on the signals that people and shells send. What a killed process left is removed by the next one that writes the
 *     same target: the living hold a lock on theirs. Two that write one target at the same time both succeed, and the
 *     one that commits last has it. The target keeps its permissions, and a link its place. Pipes, devices and "-"
 *     (standard output) are written as they are. A limit on the size of files (ulimit -f) makes a write fail as a full
 *     disk does.
 * DOES NOT: more than IO_OUTPUTS unfinished files at a time. Where a file system has no locks, what a killed process
 *     left stays.
 *
 * CONTENTS
 *     io_output                             the file; .file may be written with stdio as well
 *     io_output_open, io_output_write       after a failure nothing is open, and nothing is left behind
 *     io_output_finish                      all is written, flush and fsync: what follows can hardly fail
 *     io_output_commit                      the same, and rename
 *     io_output_discard                     as if it had never been opened
 *     io_output_follow                      where a chain of links leads
 *     io_name_stem                          as much of a name as leaves room behind it
 *     io_folder_of, io_sync_folder          the directory that a path is in; a directory's names reach the disk
 */
#ifndef IO_OUTPUT_H
#define IO_OUTPUT_H

#include <dirent.h>
#include <sys/file.h>

#include "mapped.h"

enum { IO_OUTPUTS = 64 };

typedef struct io_output {
    FILE *file;      /* NULL: not open */
    char *path;      /* as the user named it, for sentences */
    char *target;    /* where links lead */
    char *temporary; /* NULL: written as it is */
    bool standard, finished;
    bool swept; /* a killed run had left a part of it, which is gone now */
} io_output;

/* ---- what must not be left behind: one list for the whole program ---- */

__attribute__((weak)) char *volatile io_unfinished[IO_OUTPUTS];
__attribute__((weak)) volatile pid_t io_unfinished_owner; /* a forked child has no business here */
__attribute__((weak)) void (*io_after_unfinished)(void);  /* removes the directories around them: stage.h */

IO_FN void io_remove_unfinished(void)
{
    if (io_unfinished_owner != getpid()) return;
    for (int i = 0; i < IO_OUTPUTS; i++)
        if (io_unfinished[i]) unlink(io_unfinished[i]);
    if (io_after_unfinished) io_after_unfinished();
}

/* Dies of the signal, as whoever started us expects. */
IO_FN void io_output_signal(int number)
{
    io_remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

IO_FN void io_output_guard(void)
{
    static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGABRT };
    if (io_unfinished_owner == getpid()) return;
    if (!io_before_death) atexit(io_remove_unfinished);
    io_before_death = io_remove_unfinished;
    for (int i = 0; i < IO_OUTPUTS; i++) io_unfinished[i] = NULL; /* a parent's are its own */
    io_unfinished_owner = getpid();
    struct sigaction larger;
    if (sigaction(SIGXFSZ, NULL, &larger) == 0 && larger.sa_handler == SIG_DFL)
        signal(SIGXFSZ, SIG_IGN); /* then EFBIG */
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        struct sigaction now, ours;
        if (sigaction(fatal[i], NULL, &now) != 0 || now.sa_handler != SIG_DFL) continue; /* nohup's wish is kept */
        memset(&ours, 0, sizeof ours);
        ours.sa_handler = io_output_signal;
        sigfillset(&ours.sa_mask);
        sigaction(fatal[i], &ours, NULL);
    }
}

IO_FN bool io_unfinished_add(char *path)
{
    for (int i = 0; i < IO_OUTPUTS; i++)
        if (!io_unfinished[i]) return io_unfinished[i] = path, true;
    return false;
}

IO_FN void io_unfinished_drop(const char *path)
{
    for (int i = 0; i < IO_OUTPUTS; i++)
        if (io_unfinished[i] == path) io_unfinished[i] = NULL;
}

IO_FN void io_output_forget(io_output *out)
{
    if (out->temporary) io_unfinished_drop(out->temporary);
    free(out->temporary);
    free(out->target);
    free(out->path);
    memset(out, 0, sizeof *out);
}

/* As if it had never been opened. For one that is not open, nothing. */
IO_FN void io_output_discard(io_output *out)
{
    if (out->file && !out->standard) fclose(out->file);
    if (out->temporary) unlink(out->temporary);
    io_output_forget(out);
}

__attribute__((unused, format(printf, 3, 4))) static bool io_output_fail(io_output *out, char *why, const char *format,
                                                                         ...)
{
    char sentence[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(sentence, sizeof sentence, IO_SAID, format, list);
    va_end(list);
    io_fail(why, out->path ? out->path : "output", "%s", sentence);
    io_output_discard(out);
    return false;
}

/* ---- what killed processes left ---- */

/* The directory that a path is in, as a path of its own; memory of its own. */
IO_FN char *io_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = (char *)malloc(n + 2);
    if (!folder) return NULL;
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return folder;
}

/* The names in a directory reach the disk; true also where the system has no such thing. */
IO_FN bool io_sync_folder(const char *folder)
{
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES; /* it may be written and not be read */
    const bool ok = fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
    const int trouble = errno;
    close(descriptor);
    errno = trouble;
    return ok;
}

/* Is the file still there under this name? */
IO_FN bool io_still_there(int descriptor, const char *path)
{
    struct stat a, b;
    return fstat(descriptor, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

enum { IO_NAME_BYTES = 255, IO_PART_BYTES = 40 }; /* a file system's longest name; what a temporary one has behind it */

/* The name, or, where `room` bytes behind it would make it too long, its beginning, cut at a character, and a number
 * made of all of it (FNV-1a); memory of its own. */
IO_FN char *io_name_stem(const char *name, size_t room)
{
    const size_t n = strlen(name), most = IO_NAME_BYTES - room - 17;
    uint64_t number = UINT64_C(0xcbf29ce484222325);
    size_t cut = n < most ? n : most;
    char *stem = (char *)malloc((n > IO_NAME_BYTES ? n : IO_NAME_BYTES) + 1);
    if (!stem || n + room <= IO_NAME_BYTES) return stem ? strcpy(stem, name) : NULL;
    for (size_t i = 0; i < n; i++) number = (number ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    while (cut > 0 && ((unsigned char)name[cut] & 0xc0) == 0x80) cut--;
    sprintf(stem, "%.*s~%016llx", (int)cut, name, (unsigned long long)number);
    return stem;
}

/* "name.PROCESS-NUMBER.part" of this stem? */
IO_FN bool io_output_leftover(const char *file, const char *name)
{
    const size_t n = strlen(name);
    if (strncmp(file, name, n) != 0 || file[n] != '.') return false;
    const char *at = file + n + 1;
    const size_t process = strspn(at, "0123456789");
    if (process == 0 || at[process] != '-') return false;
    at += process + 1;
    const size_t number = strspn(at, "0123456789");
    return number > 0 && strcmp(at + number, ".part") == 0;
}

/* The living hold a lock. */
IO_FN bool io_output_remove_dead(const char *path)
{
    const int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat s;
    if (descriptor < 0) return false;
    const bool dead = fstat(descriptor, &s) == 0 && S_ISREG(s.st_mode) && flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                      io_still_there(descriptor, path);
    const bool gone = dead && unlink(path) == 0;
    close(descriptor);
    return gone;
}

/* Was there anything? */
IO_FN bool io_output_sweep(const char *target)
{
    bool found = false;
    const char *slash = strrchr(target, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - target) : 0;
    char *parent = io_folder_of(target), *name = io_name_stem(target + folder, IO_PART_BYTES);
    DIR *list = parent && name ? opendir(parent) : NULL;
    for (const struct dirent *e; list && (e = readdir(list)) != NULL;) {
        if (!io_output_leftover(e->d_name, name)) continue;
        char *path = (char *)malloc(folder + strlen(e->d_name) + 1);
        if (!path) break;
        memcpy(path, target, folder);
        strcpy(path + folder, e->d_name);
        found = io_output_remove_dead(path) || found;
        free(path);
    }
    if (list) closedir(list);
    free(name);
    free(parent);
    return found;
}

/* Ours, until it is closed: false when somebody took it for dead before there was a lock. */
IO_FN bool io_output_hold(int descriptor, const char *path)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return io_still_there(descriptor, path);
}

/* ---- opening ---- */

/* A new file that nobody has, registered before a signal can come between. Descriptor, or -1 with errno. */
IO_FN int io_output_create(io_output *out)
{
    const char *slash = strrchr(out->target, '/');
    const int folder = slash ? (int)(slash + 1 - out->target) : 0;
    const size_t size = (size_t)folder + IO_NAME_BYTES + strlen(out->target + folder) + 48;
    int descriptor = -1;
    sigset_t all, before;
    char *stem = io_name_stem(out->target + folder, IO_PART_BYTES);
    out->temporary = stem ? (char *)malloc(size) : NULL;
    if (!out->temporary) return free(stem), errno = ENOMEM, -1;
    out->swept = io_output_sweep(out->target);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < 1000 && descriptor < 0; i++) {
        snprintf(out->temporary, size, "%.*s%s.%ld-%d.part", folder, out->target, stem, (long)getpid(), i);
        descriptor = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST) break;
        if (descriptor < 0 || io_output_hold(descriptor, out->temporary)) continue;
        close(descriptor);
        descriptor = -1;
        errno = EBUSY;
    }
    if (descriptor >= 0 && !io_unfinished_add(out->temporary)) {
        close(descriptor);
        unlink(out->temporary);
        descriptor = -1;
        errno = EMFILE;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(stem);
    if (descriptor < 0) {
        free(out->temporary);
        out->temporary = NULL;
    }
    return descriptor;
}

/* Where a chain of links leads; memory of its own, NULL without any. */
IO_FN char *io_output_follow(const char *path)
{
    char link[4096], *target = strdup(path);
    for (int i = 0; target && i < 40; i++) {
        const ssize_t n = readlink(target, link, sizeof link);
        if (n < 0 || (size_t)n == sizeof link) break;
        const char *slash = link[0] == '/' ? NULL : strrchr(target, '/');
        const size_t folder = slash ? (size_t)(slash - target) + 1 : 0;
        char *next = (char *)malloc(folder + (size_t)n + 1);
        if (next) {
            memcpy(next, target, folder);
            memcpy(next + folder, link, (size_t)n);
            next[folder + (size_t)n] = '\0';
        }
        free(target);
        target = next;
    }
    return target;
}

/* A regular file's new contents go beside it; anything else that exists is written as it is. */
IO_FN int io_output_descriptor(io_output *out)
{
    struct stat s;
    const bool exists = stat(out->target, &s) == 0;
    if (!*out->target) return errno = ENOENT, -1;
    if (exists && S_ISDIR(s.st_mode)) return errno = EISDIR, -1;
    if (exists && !S_ISREG(s.st_mode)) return open(out->target, O_WRONLY | O_CLOEXEC);
    if (exists && access(out->target, W_OK) != 0) return -1; /* a file that is read-only is meant to stay */
    const int descriptor = io_output_create(out);
    if (descriptor >= 0 && exists && fchmod(descriptor, s.st_mode & 0777) != 0) errno = 0; /* then with our own */
    return descriptor;
}

/* Nothing is left open, or behind, when this fails. */
IO_FN bool io_output_open(const char *path, io_output *out, char *why)
{
    memset(out, 0, sizeof *out);
    out->path = strdup(path);
    if (!out->path) return io_fail(why, path, "there is not enough memory to write it");
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return out->standard = true;
    }
    io_output_guard();
    out->target = io_output_follow(path); /* a link stays a link */
    const int descriptor = out->target ? io_output_descriptor(out) : -1;
    if (descriptor < 0) return io_output_fail(out, why, "it cannot be created (%s)", strerror(errno));
    out->file = fdopen(descriptor, "wb");
    if (out->file) return true;
    close(descriptor);
    return io_output_fail(out, why, "it cannot be created (%s)", strerror(errno));
}

/* ---- writing ---- */

IO_FN bool io_output_broke(io_output *out, char *why)
{
    return io_output_fail(out, why, "it cannot be written (%s)", strerror(errno ? errno : EIO));
}

IO_FN bool io_output_write(io_output *out, const void *bytes, size_t size, char *why)
{
    if (!out->file) return io_fail(why, out->path ? out->path : "output", "it is not open");
    errno = 0;
    if (size == 0 || fwrite(bytes, 1, size, out->file) == size) return true;
    return io_output_broke(out, why);
}

/* All is written; several outputs are finished before the first of them is committed. */
IO_FN bool io_output_finish(io_output *out, char *why)
{
    if (!out->file) return io_fail(why, out->path ? out->path : "output", "it is not open");
    if (out->finished) return true;
    errno = 0;
    bool ok = fflush(out->file) == 0 && !ferror(out->file);
    if (ok && out->temporary) ok = fsync(fileno(out->file)) == 0;
    if (!ok) return io_output_broke(out, why);
    return out->finished = true;
}

/* It has its name, or never had another: closed and forgotten. What stands under the temporary one is the old one. */
IO_FN void io_output_settle(io_output *out)
{
    char *parent = out->temporary ? io_folder_of(out->target) : NULL;
    if (parent) io_sync_folder(parent); /* should the power fail first, it is the old one */
    free(parent);
    if (out->temporary) unlink(out->temporary);
    if (out->file && !out->standard) fclose(out->file);
    io_output_forget(out);
}

/* Renamed before it is closed: until then the lock keeps others from taking it for dead. */
IO_FN bool io_output_commit(io_output *out, char *why)
{
    if (!io_output_finish(out, why)) return false;
    if (out->temporary && rename(out->temporary, out->target) != 0)
        return io_output_fail(out, why, "it cannot be replaced (%s)", strerror(errno));
    const bool plain = !out->temporary && !out->standard;
    if (plain && fclose(out->file) != 0) return out->file = NULL, io_output_broke(out, why);
    if (plain) out->file = NULL;
    io_output_settle(out);
    return true;
}

#endif /* IO_OUTPUT_H */

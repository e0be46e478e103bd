/* mapped.h - the bytes of a file, in the address space instead of in memory.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/mapped.h"
 *     io_map map;
 *     char why[IO_WHY];
 *     if (!io_map_open("model.safetensors", &map, why)) { fprintf(stderr, "%s\n", why); return 2; }
 *     use(map.bytes, map.size);
 *     io_map_close(&map);
 *
 * DOES: files of any size in constant memory, when io_map_done says what will not be needed again; "-", pipes and
 *     whatever else cannot be mapped are read whole.
 * DOES NOT: write, or follow a file that changes. One that becomes shorter while it is read ends the program with a
 *     sentence and status 2, unless the program has a SIGBUS handler of its own.
 *
 * CONTENTS
 *     io_map                      the bytes
 *     io_map_open, io_map_close   a file, or standard input when its name is "-"
 *     io_map_done                 these bytes will not be needed again
 *     io_map_text                 the bytes as text, behind the mark of UTF-8 that editors and spreadsheets put first
 */
#ifndef IO_MAPPED_H
#define IO_MAPPED_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#if defined(__linux__) && !defined(MADV_DONTNEED) /* hidden by strict POSIX, whose own advice does nothing in glibc */
#define MADV_DONTNEED 4
extern int madvise(void *, size_t, int);
#endif

typedef struct io_map {
    const unsigned char *bytes;
    size_t size;
    bool mapped;
} io_map;

/* ---- a mapped file that becomes shorter: the system kills whoever reads on ---- */

enum { IO_MAPS = 64, IO_MAP_NAME = 256 };

typedef struct io_map_range {
    const unsigned char *begin, *end; /* NULL: free */
    char name[IO_MAP_NAME];
} io_map_range;

/* One for the whole program, whichever of its files include this. */
__attribute__((weak)) io_map_range io_maps[IO_MAPS];
__attribute__((weak)) void (*io_before_death)(void); /* removes unfinished outputs, where there are any */

IO_FN void io_map_died(int number, siginfo_t *info, void *context)
{
    static const char what[] = ": it became shorter while it was being read\n";
    const char *name = "a file";
    (void)context;
    for (int i = 0; i < IO_MAPS; i++)
        if ((const unsigned char *)info->si_addr >= io_maps[i].begin &&
            (const unsigned char *)info->si_addr < io_maps[i].end)
            name = io_maps[i].name;
    if (write(STDERR_FILENO, name, strlen(name)) < 0 || write(STDERR_FILENO, what, sizeof what - 1) < 0) number = 0;
    if (io_before_death) io_before_death();
    _exit(number ? 2 : 3);
}

IO_FN void io_map_guard(const unsigned char *bytes, size_t size, const char *name)
{
    struct sigaction now, ours;
    for (int i = 0; i < IO_MAPS; i++) {
        if (io_maps[i].begin) continue;
        io_show_in(name, strlen(name), io_maps[i].name, IO_MAP_NAME);
        io_maps[i].end = bytes + size;
        io_maps[i].begin = bytes;
        break;
    }
    if (sigaction(SIGBUS, NULL, &now) != 0 || now.sa_handler != SIG_DFL) return;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = io_map_died;
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &ours, NULL);
}

IO_FN void io_map_unguard(const unsigned char *bytes)
{
    for (int i = 0; i < IO_MAPS; i++)
        if (io_maps[i].begin == bytes) io_maps[i].begin = io_maps[i].end = NULL;
}

/* ---- opening ---- */

/* All bytes of a descriptor, in memory that doubles as it fills; NULL with errno when that fails. */
IO_FN unsigned char *io_map_read(int descriptor, size_t *size)
{
    size_t capacity = 1 << 16, n = 0;
    unsigned char *bytes = (unsigned char *)malloc(capacity);
    while (bytes) {
        const ssize_t got = read(descriptor, bytes + n, capacity - n);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return free(bytes), NULL;
        n += (size_t)got;
        if (n < capacity) continue;
        unsigned char *more = capacity > SIZE_MAX / 4 ? NULL : (unsigned char *)realloc(bytes, capacity *= 2);
        if (!more) return free(bytes), errno = ENOMEM, NULL;
        bytes = more;
    }
    *size = n;
    return bytes;
}

IO_FN bool io_map_take(int descriptor, const char *name, io_map *map, char *why)
{
    struct stat s;
    if (fstat(descriptor, &s) != 0) return io_fail(why, name, "it cannot be read (%s)", strerror(errno));
    if (S_ISDIR(s.st_mode)) return io_fail(why, name, "it is a directory");
    if (S_ISREG(s.st_mode) && s.st_size > 0 && (uintmax_t)s.st_size <= SIZE_MAX) {
        void *bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes != MAP_FAILED) {
            posix_madvise(bytes, (size_t)s.st_size, POSIX_MADV_SEQUENTIAL);
            io_map_guard((const unsigned char *)bytes, (size_t)s.st_size, name);
            map->bytes = (const unsigned char *)bytes;
            map->size = (size_t)s.st_size;
            map->mapped = true;
            return true;
        }
    }
    errno = 0;
    map->bytes = io_map_read(descriptor, &map->size);
    return map->bytes || io_fail(why, name, "it cannot be read (%s)", strerror(errno));
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN bool io_map_open(const char *path, io_map *map, char *why)
{
    memset(map, 0, sizeof *map);
    if (!io_reading(path, why)) return false;
    if (strcmp(path, "-") == 0) return io_map_take(STDIN_FILENO, path, map, why);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return io_fail(why, path, "it cannot be opened (%s)", strerror(errno));
    const bool ok = io_map_take(descriptor, path, map, why);
    close(descriptor);
    return ok;
}

IO_FN void io_map_close(io_map *map)
{
    void *bytes = (void *)(uintptr_t)map->bytes;
    if (map->mapped) io_map_unguard(map->bytes);
    if (map->mapped)
        munmap(bytes, map->size);
    else
        free(bytes);
    memset(map, 0, sizeof *map);
}

/* Bytes [from, from + bytes) and the rest of their first page give their memory back. Should they be asked for after
 * all, the system reads them once more. */
IO_FN void io_map_done(io_map *map, size_t from, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!map->mapped || from > map->size || bytes > map->size - from) return;
    const size_t first = from / page * page, end = from + bytes == map->size ? map->size : (from + bytes) / page * page;
#if defined(MADV_DONTNEED)
    if (end > first) madvise((void *)(uintptr_t)(map->bytes + first), end - first, MADV_DONTNEED);
#endif
}

IO_FN const char *io_map_text(const io_map *map, size_t *size)
{
    const size_t mark = map->size >= 3 && memcmp(map->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *size = map->size - mark;
    return (const char *)map->bytes + mark;
}

#endif /* IO_MAPPED_H */

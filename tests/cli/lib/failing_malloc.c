/* failing_malloc.c - memory that runs out: an allocator for LD_PRELOAD.
 * SPDX-License-Identifier: MIT
 *
 * TRN_FAIL_AT      the number of the allocation that fails, from 1; unset: none does
 * TRN_FAIL_ON      set: and all after it
 * TRN_FAIL_LIST    a file that gets, one a line, the number of each allocation
 * TRN_FAIL_EACH    of a loop's, whose allocations the same calls led to, only so many; unset: all
 *
 * Counted are those of the program and of the C library and of what it asks to read files; what loads the program,
 * OpenMP and other libraries that end a program themselves are left in peace.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned)(size_t, size_t);
static int (*next_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);

enum { PLACES = 1 << 14 };
static unsigned long allocations, fails_at;
static bool fails_on;
static int list = -1, of_each;
static struct {
    unsigned long calls; /* what led to it, as a number; 0: free */
    int times;
} place[PLACES];
static char early[1 << 14]; /* for dlsym, which allocates before it has told who allocates */
static size_t early_used;

static bool is_early(const void *p) { return (const char *)p >= early && (const char *)p < early + sizeof early; }

static void *early_memory(size_t size)
{
    size = (size + 63) / 64 * 64;
    if (size > sizeof early - early_used) return NULL;
    void *p = early + early_used;
    early_used += size;
    return p;
}

static void find(void *into, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(into, &found, sizeof found);
}

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    find(&next_free, "free");
    find(&next_realloc, "realloc");
    find(&next_aligned, "aligned_alloc");
    find(&next_memalign, "posix_memalign");
    find(&next_calloc, "calloc");
    find(&next_malloc, "malloc");
    const char *at = getenv("TRN_FAIL_AT");
    fails_at = at ? strtoul(at, NULL, 10) : 0;
    fails_on = getenv("TRN_FAIL_ON") != NULL;
    const char *each = getenv("TRN_FAIL_EACH");
    of_each = each ? atoi(each) : 0;
    const char *path = getenv("TRN_FAIL_LIST");
    if (path) list = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* Is this caller one whose sentence we could not ask for? */
static bool in_peace(void *caller)
{
    static const char *const names[] = { "ld-linux", "libgomp", "libomp",    "libmpfr", "libgmp",
                                         "libgcc",   "liblsan", "libstdc++", "libdl" };
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) return true;
    const char *slash = strrchr(info.dli_fname, '/'), *file = slash ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static _Unwind_Reason_Code one_call(struct _Unwind_Context *context, void *calls)
{
    unsigned long *const c = calls;
    *c = (*c ^ (unsigned long)_Unwind_GetIP(context)) * 0x9e3779b97f4a7c15 >> 7 | 1;
    return _URC_NO_REASON;
}

/* Have the same calls led here as often as is asked for? */
static bool is_old_place(void)
{
    unsigned long calls = 1;
    _Unwind_Backtrace(one_call, &calls);
    size_t at = calls / 2 % PLACES;
    for (int tried = 0; tried < PLACES && place[at].calls && place[at].calls != calls; tried++) at = (at + 1) % PLACES;
    place[at].calls = calls;
    return place[at].times++ >= of_each;
}

static void enlist(unsigned long number)
{
    char text[32];
    if (of_each && is_old_place()) return;
    const int length = snprintf(text, sizeof text, "%lu\n", number);
    if (write(list, text, (size_t)length) != length) _exit(99);
}

static bool fails(void *caller)
{
    if (in_peace(caller)) return false;
    const unsigned long number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    if (list >= 0) enlist(number);
    if (!fails_at || number < fails_at || (number > fails_at && !fails_on)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    begin();
    if (!next_malloc) return early_memory(size);
    return fails(__builtin_return_address(0)) ? NULL : next_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    begin();
    if (!next_malloc) return early_memory(count * size);
    return fails(__builtin_return_address(0)) ? NULL : next_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    begin();
    if (!next_malloc || is_early(p)) return NULL; /* dlsym does not ask */
    return fails(__builtin_return_address(0)) ? NULL : next_realloc(p, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    begin();
    return fails(__builtin_return_address(0)) ? NULL : next_aligned(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    begin();
    return fails(__builtin_return_address(0)) ? ENOMEM : next_memalign(p, alignment, size);
}

void free(void *p)
{
    if (p && !is_early(p)) next_free(p);
}

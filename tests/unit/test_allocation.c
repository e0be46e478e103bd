/* What calls do when there is no memory: of each call, the first allocation fails, then the second, and so on until it
 * needs no more. It ends with TRN_ENOSPC and a sentence, has written nothing, and has given everything back. Every line
 * of the library that allocates takes part.
 * SPDX-License-Identifier: MIT
 */
#define _DEFAULT_SOURCE
#undef TRN_SPLIT /* the bodies are compiled here, with these in place of the C library's: */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct site {
    const char *file;
    int line;
} site;

enum { SITES = 100 };
static site seen[SITES], failed;
static int sites, fails_at, asked; /* the allocation that fails, counted from 1; none: 0 */
static long alive;

static bool site_is(const site *s, const char *file, int line)
{
    const size_t a = strlen(s->file), b = strlen(file);
    return s->line == line && a >= b && strcmp(s->file + a - b, file) == 0;
}

static bool granted(const char *file, int line)
{
    int i = 0;
    while (i < sites && !site_is(&seen[i], file, line)) i++;
    if (i == sites && sites < SITES) seen[sites++] = (site){ file, line };
    if (++asked != fails_at) return true;
    failed = (site){ file, line };
    return false;
}

static void *counted(void *memory)
{
    alive += memory != NULL;
    return memory;
}

static void *test_malloc_at(size_t bytes, const char *file, int line)
{
    return granted(file, line) ? counted(malloc(bytes)) : NULL;
}

static void *test_calloc_at(size_t n, size_t size, const char *file, int line)
{
    return granted(file, line) ? counted(calloc(n, size)) : NULL;
}

static void *test_realloc_at(void *old, size_t bytes, const char *file, int line)
{
    if (!granted(file, line)) return NULL;
    void *memory = realloc(old, bytes);
    alive += memory && !old;
    return memory;
}

static void test_free_of(void *memory)
{
    alive -= memory != NULL;
    free(memory);
}

#undef malloc
#undef calloc
#undef realloc
#undef free
#define malloc(bytes) test_malloc_at(bytes, __FILE__, __LINE__)
#define calloc(n, size) test_calloc_at(n, size, __FILE__, __LINE__)
#define realloc(old, bytes) test_realloc_at(old, bytes, __FILE__, __LINE__)
#define free(memory) test_free_of(memory)
#include "twin/every_door.h"
#undef malloc
#undef calloc
#undef realloc
#undef free

/* ---- calls that need memory for other reasons than every_door's ---- */

DOOR(activation_table)
{
    return DOOR_CALL(activation, .dst = door_y(r, TRN_BF16, DOOR_P, DOOR_F), .op = TRN_ACT_GELU,
                     .src = door_x(TRN_F8_E4M3, DOOR_P, DOOR_F));
}

static trn_status door_ring(trn_mesh *mesh, trn_topology *net, const char *axes)
{
    *net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    return trn_mesh_init(mesh, net, axes);
}

/* Sums are finished, which takes a collective of each group, and then cut another way. */
DOOR(redistribute_sums)
{
    trn_topology net;
    trn_tensor src[DOOR_RANKS], dst[DOOR_RANKS];
    trn_mesh mesh;
    trn_redistribute_args a = { .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, NULL, 64, 64), .error = &r->error };
    if (door_ring(&mesh, &net, "data=2,tensor=2")) return TRN_EINVAL;
    for (int i = 0; i < DOOR_RANKS; i++) {
        src[i] = trn_tensor_2d(TRN_F32, door_in[0] + i * DOOR_F, 32, 64);
        dst[i] = trn_tensor_2d(TRN_F32, r->part[i], 64, 32);
    }
    a.src = src, a.dst = dst;
    if (trn_pspec_parse(&a.from, &mesh, "(data, *) + sum(tensor)") || trn_pspec_parse(&a.to, &mesh, "(*, data)"))
        return TRN_EINVAL;
    return trn_redistribute(&a);
}

DOOR(plan_trace)
{
    static trn_trace_event event[1000];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_model model = {
        .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .intermediate = 14336, .vocab = 128256
    };
    const trn_plan_args a = { .model = &model, .net = &net, .batch = 16, .sequence = 4096, .error = &r->error };
    trn_plan plan = { .tp = 4, .cp = 1, .ep = 1, .dp = 1, .pp = 4 };
    trn_trace trace = { .event = event, .capacity = 1000, .title = "one step" };
    const trn_status status = trn_plan_evaluate(&a, &plan);
    return status ? status : trn_plan_trace_step(&a, &plan, &trace);
}

DOOR(collective_loads)
{
    const trn_topology net = trn_topology_ring(DOOR_RANKS, 128e9, 1e-6);
    trn_collective_args a = { .net = &net, .op = TRN_ALL_GATHER, .algorithm = TRN_RING, .error = &r->error };
    double bytes[64];
    a.bytes = 1 << 20;
    return trn_topology_link_count(&net) <= 64 ? trn_collective_loads(&a, bytes) : TRN_EINVAL;
}

static const struct every_door more_doors[] = {
    { DOOR_ROW(activation_table) },
    { DOOR_ROW(redistribute_sums) },
    { DOOR_ROW(plan_trace) },
    { DOOR_ROW(collective_loads) },
};
enum { MORE_DOORS = sizeof more_doors / sizeof more_doors[0] };

/* ---- the tests ---- */

static door_room *room, *before;

/* How many allocations the call makes. */
static int each_allocation_fails(const struct every_door *door)
{
    int n = 1;
    for (;; n++) {
        door_room_init(room);
        memcpy(before, room, sizeof *room);
        const long had = alive;
        asked = 0;
        fails_at = n;
        const trn_status status = door->call(room);
        fails_at = 0;
        if (alive != had)
            fail_msg("%s: %ld allocations are not given back, number %d failing", door->name, alive - had, n);
        if (asked < n) {
            if (status != TRN_OK) fail_msg("%s: %s", door->name, room->error.text);
            return n - 1;
        }
        if (status == TRN_OK) continue; /* it went another way */
        if (status != TRN_ENOSPC || room->error.status != status || strlen(room->error.text) < 10)
            fail_msg("%s, allocation %d fails (%s:%d): status %d, \"%s\"", door->name, n, failed.file, failed.line,
                     (int)status, room->error.text);
        if (memcmp(before, room, offsetof(door_room, error)) != 0)
            fail_msg("%s, allocation %d fails (%s:%d): something was written", door->name, n, failed.file, failed.line);
    }
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    int all = 0;
    room = malloc(sizeof *room);
    before = malloc(sizeof *before);
    assert_true(room && before);
    door_inputs();
    for (int i = 0; i < EVERY_DOOR; i++) all += each_allocation_fails(&every_door[i]);
    for (int i = 0; i < MORE_DOORS; i++) all += each_allocation_fails(&more_doors[i]);
    printf("%d allocations of %d calls failed, at %d places\n", all, (int)EVERY_DOOR + MORE_DOORS, sites);
    free(room);
    free(before);
}

/* Lines of the library that allocate, and that no call above comes by, with the reason. Processes: tests/mpi. */
static const char *const elsewhere[] = { "mpi_collective.h", "mpi_sharded.h", "mpi_cores.h", "cores_exchange.h" };

static bool is_elsewhere(const char *file)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (strstr(file, elsewhere[i])) return true;
    return false;
}

/* "base/workspace.h" */
static const char *room_of(const char *path)
{
    const char *last = path;
    for (const char *at; (at = strstr(last, "trnmath/")) != NULL;) last = at + strlen("trnmath/");
    return last;
}

static int unseen_lines(const char *path)
{
    char line[512], *text;
    int number = 0, unseen = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        number++;
        for (text = line; *text == ' '; text++) {}
        const bool allocates = strstr(text, "malloc(") || strstr(text, "calloc(") || strstr(text, "realloc(");
        if (!allocates || *text == '*' || strncmp(text, "/*", 2) == 0) continue;
        bool known = false;
        const int last = number + !strchr(text, ';'); /* a call of two lines: gcc counts the first, clang the second */
        for (int i = 0; i < sites; i++)
            known = known || site_is(&seen[i], room_of(path), number) || site_is(&seen[i], room_of(path), last);
        if (!known) printf("no call allocates at %s:%d: %s", path, number, text);
        unseen += !known;
    }
    fclose(file);
    return unseen;
}

static void every_place_was_asked(void **state)
{
    (void)state;
    char path[512];
    int unseen = 0, files = 0;
    static const char command[] =
        "grep -lE '(m|c|re)alloc\\(' " TRN_SOURCE_DIR "/trnmath/*.h " TRN_SOURCE_DIR "/trnmath/*/*.h";
    FILE *list = popen(command, "r");
    assert_non_null(list);
    while (fgets(path, sizeof path, list)) {
        path[strcspn(path, "\n")] = 0;
        files++;
        if (!is_elsewhere(path)) unseen += unseen_lines(path);
    }
    pclose(list);
    assert_true(files > 10);
    assert_int_equal(unseen, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(every_place_was_asked),
    };
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}

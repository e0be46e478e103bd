/* test_core_memory.c - tiles against a map of bytes: first fit, banks, quadrants, owners, and which were written.
 * SPDX-License-Identifier: MIT
 *
 * The slow side keeps one number per byte of every quadrant and visits every element of every view.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/core/core_memory.h"
#include "twin/cases.h"

static void *room;
static trn_error failure;

static trni_memory fresh(trn_generation generation, trn_space space)
{
    const trn_core_spec *spec = trn_core_spec_of(generation);
    trni_memory m;
    free(room);
    room = malloc(trni_memory_bytes(spec, space));
    assert_non_null(room);
    trni_memory_begin(&m, spec, space, room, true);
    return m;
}

static int take(trni_memory *m, const char *name, int start, int partitions, int64_t bytes)
{
    const trni_memory_request ask = { name, start, partitions, bytes, false };
    int tile = -1;
    if (trni_memory_take(m, &ask, &tile, &failure)) fail_msg("%s", failure.text);
    return tile;
}

/* ---- sizes ---- */

static void memories_are_as_large_as_published(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        int64_t sbuf;
    } row[] = {
        { TRN_TRAINIUM1, 192 * 1024 },
        { TRN_TRAINIUM2, 224 * 1024 },
        { TRN_TRAINIUM3, 256 * 1024 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trni_memory m = fresh(row[i].generation, TRN_SPACE_SBUF);
        assert_int_equal(m.partition_bytes, row[i].sbuf);
        assert_true((char *)room + trni_memory_bytes(trn_core_spec_of(row[i].generation), TRN_SPACE_SBUF) >=
                    (char *)(m.segment[3] + TRNI_SEGMENTS));
        take(&m, "all", 0, 128, row[i].sbuf); /* all of it is there */
        assert_int_equal(m.high_total, 128 * row[i].sbuf);
        m = fresh(row[i].generation, TRN_SPACE_PSUM);
        assert_int_equal(m.partition_bytes, 16 * 1024);
        assert_int_equal(m.bank_bytes, 2 * 1024);
        take(&m, "all", 0, 128, 16 * 1024);
    }
}

/* ---- placing, against a map ---- */

enum { MOST_TILES = 120, UNIT = 64, UNITS = 256 * 1024 / UNIT };

typedef struct owner_map {
    int16_t owner[4][UNITS]; /* 0 = free, tile + 1 = taken, negative = freed by tile -owner - 1 */
    double ready[4][UNITS];
    int64_t units, bank;
} owner_map;

static bool is_free(const owner_map *map, int q, int q_end, int64_t at, int64_t units)
{
    for (int i = q; i < q_end; i++)
        for (int64_t u = at; u < at + units; u++)
            if (map->owner[i][u] > 0) return false;
    return true;
}

/* The lowest place, by trying all; -1 when there is none. */
static int64_t lowest(const owner_map *map, int q, int q_end, int64_t units)
{
    for (int64_t at = 0; at + units <= map->units; at++) {
        const bool whole = map->bank == 0 ||
                           (units > map->bank ? at % map->bank == 0 : at / map->bank == (at + units - 1) / map->bank);
        if (whole && is_free(map, q, q_end, at, units)) return at;
    }
    return -1;
}

static void compare_owners(const trni_memory *m, const owner_map *map, uint64_t *seed)
{
    for (int i = 0; i < 40; i++) {
        const int p = cases_below(seed, 128);
        const int64_t b = cases_below(seed, (int)m->partition_bytes);
        const trni_segment *s = trni_memory_find(m, p, b);
        const int owner = map->owner[p / 32][b / UNIT];
        if (owner > 0) {
            assert_non_null(s);
            assert_int_equal(s->tile, owner - 1);
        } else if (owner < 0) {
            assert_non_null(s);
            assert_int_equal(s->tile, -1);
            assert_true(s->ready_s >= map->ready[p / 32][b / UNIT]);
        } else {
            assert_null(s);
        }
    }
}

static void place_some(trn_generation generation, trn_space space, uint64_t seed, int rounds)
{
    static owner_map map;
    trni_memory m = fresh(generation, space);
    int live[MOST_TILES], lives = 0;
    double now = 0;
    memset(&map, 0, sizeof map);
    map.units = m.partition_bytes / UNIT;
    map.bank = m.bank_bytes / UNIT;
    int64_t high = 0;
    for (int i = 0; i < rounds; i++) {
        now += 1;
        if (lives == MOST_TILES || (lives && cases_one_in(&seed, 3))) {
            const int k = cases_below(&seed, lives), tile = live[k];
            const trni_rect at = m.tile[tile].at;
            trni_memory_give(&m, tile, now);
            for (int64_t q = at.p / 32; q * 32 < at.p_end; q++)
                for (int64_t u = at.b / UNIT; u * UNIT < at.b_end; u++) {
                    map.owner[q][u] = (int16_t)(-tile - 1);
                    map.ready[q][u] = now;
                }
            live[k] = live[--lives];
            continue;
        }
        static const struct {
            int start, most;
        } part[] = { { 0, 128 }, { 64, 64 }, { 32, 32 }, { 96, 32 }, { 0, 32 } };
        const int kind = cases_below(&seed, 5), most = part[kind].most;
        const int partitions = cases_one_in(&seed, 3) ? 1 + cases_below(&seed, most) : most;
        const int64_t bytes = 1 + cases_below(&seed, (int)m.partition_bytes / (1 << cases_below(&seed, 8)));
        const int q = part[kind].start / 32, q_end = (part[kind].start + partitions - 1) / 32 + 1;
        const int64_t units = (bytes + UNIT - 1) / UNIT, expected = lowest(&map, q, q_end, units);
        const trni_memory_request ask = { "tile", part[kind].start, partitions, bytes, false };
        int tile = -1;
        const trn_status status = trni_memory_take(&m, &ask, &tile, &failure);
        assert_int_equal(status, expected < 0 ? TRN_ELIMIT : TRN_OK);
        if (expected < 0) continue;
        assert_int_equal(m.tile[tile].at.b, expected * UNIT);
        double ready = 0;
        for (int a = q; a < q_end; a++)
            for (int64_t u = expected; u < expected + units; u++) {
                if (map.owner[a][u] < 0 && map.ready[a][u] > ready) ready = map.ready[a][u];
                map.owner[a][u] = (int16_t)(tile + 1);
            }
        assert_true(m.tile[tile].ready_s == ready);
        live[lives++] = tile;
        int64_t used = 0;
        for (int a = 0; a < 4; a++)
            for (int64_t u = 0; u < map.units; u++) used += map.owner[a][u] > 0;
        high = used > high ? used : high;
        assert_int_equal(m.high_total, high * UNIT * 32);
        if (i % 16 == 0) compare_owners(&m, &map, &seed);
    }
}

static void tiles_go_to_the_first_place_that_fits(void **state)
{
    (void)state;
    place_some(TRN_TRAINIUM2, TRN_SPACE_PSUM, 1, cases_rounds(3000, 60000));
    place_some(TRN_TRAINIUM1, TRN_SPACE_SBUF, 2, cases_rounds(150, 6000));
    place_some(TRN_TRAINIUM3, TRN_SPACE_SBUF, 3, cases_rounds(150, 6000));
}

/* Freed pieces that nobody takes again are joined when they become too many; live ones stay what they are. */
static void countless_freed_pieces_are_joined(void **state)
{
    (void)state;
    trni_memory m = fresh(TRN_TRAINIUM3, TRN_SPACE_SBUF);
    static int tile[TRNI_TILES];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TRNI_TILES; i++) tile[i] = take(&m, "x", 0, 1, 1 + 64 * (round == 1 && i % 2));
        trni_memory_request one_more = { "y", 32, 1, 1, false };
        int none = -1;
        assert_int_equal(trni_memory_take(&m, &one_more, &none, &failure), TRN_ELIMIT);
        assert_string_equal(failure.text, "'y' would be tile number 2049 of SBUF");
        for (int i = 0; i < TRNI_TILES; i++) {
            assert_int_equal(trni_memory_find(&m, 0, m.tile[tile[i]].at.b)->tile, tile[i]);
            trni_memory_give(&m, tile[i], round);
        }
        assert_true(m.segments[0] <= TRNI_SEGMENTS);
    }
}

/* Tiles of one byte, placed by hand, leave more freed pieces than there is room for: the first two neighbours become
 * one, which is ready when both are, and nothing else changes. */
static void too_many_freed_pieces_of_a_byte(void **state)
{
    (void)state;
    enum { LIVE = 2048, END = 4200 };
    static double ready[END];
    trni_memory m = fresh(TRN_TRAINIUM3, TRN_SPACE_SBUF);
    int live[2] = { -1, -1 };
    for (int b = 0; b < END; b++) {
        char name[8];
        m.place = b + 1;
        snprintf(name, sizeof name, "%d", b);
        const int tile = take(&m, name, 0, 32, 1);
        ready[b] = b % 7;
        if (b == 0 || b == LIVE)
            live[b / LIVE] = tile;
        else
            trni_memory_give(&m, tile, ready[b]);
    }
    assert_int_equal(m.segments[0], TRNI_SEGMENTS - 2);
    int pieces = 0;
    double joined = 0;
    const trni_segment *before = NULL;
    for (int b = 0; b < END; b++) {
        const trni_segment *s = trni_memory_find(&m, 3, b);
        assert_non_null(s);
        assert_int_equal(s->tile, b == 0 || b == LIVE ? live[b / LIVE] : -1);
        if (s != before) joined = 0, pieces++;
        joined = ready[b] > joined && s->tile < 0 ? ready[b] : joined;
        if (s->tile < 0 && b + 1 == s->b_end) assert_true(s->ready_s == joined);
        before = s;
    }
    assert_int_equal(pieces, TRNI_SEGMENTS - 2);
    assert_string_equal(trni_memory_find(&m, 0, 3)->name, "1"); /* the first one's name */
    assert_int_equal(trni_memory_find(&m, 0, 1)->b_end - 1, END - pieces + 1);
}

/* ---- no room: the sentence ---- */

static void a_full_memory_says_what_is_free_and_who_is_large(void **state)
{
    (void)state;
    trni_memory m = fresh(TRN_TRAINIUM1, TRN_SPACE_SBUF);
    take(&m, "weights", 0, 128, 98304);
    const int middle = take(&m, "hole", 0, 128, 20480);
    take(&m, "x", 0, 64, 32768);
    take(&m, "y", 0, 128, 16384);
    trni_memory_give(&m, middle, 0);
    const trni_memory_request ask = { "scores", 0, 128, 65536, false };
    int tile = -1;
    assert_int_equal(trni_memory_take(&m, &ask, &tile, &failure), TRN_ELIMIT);
    assert_string_equal(failure.text,
                        "SBUF has no room for 'scores', 65536 bytes per partition: 49152 of 196608 are free, "
                        "28672 in a row; the largest tiles are 'weights' 98304, 'x' 32768, 'y' 16384");
    assert_int_equal(tile, -1);
    m = fresh(TRN_TRAINIUM1, TRN_SPACE_PSUM);
    for (int i = 0; i < 8; i++) take(&m, "bank", 0, 128, 1088);
    const trni_memory_request more = { "s", 0, 128, 1024, false };
    assert_int_equal(trni_memory_take(&m, &more, &tile, &failure), TRN_ELIMIT);
    assert_string_equal(failure.text,
                        "PSUM has no room for 's', 1024 bytes per partition: 7680 of 16384 are free, 960 in a row "
                        "(a tile stays in its bank); the largest tiles are 'bank' 1088, 'bank' 1088, 'bank' 1088");
}

/* ---- written bytes, against visiting every element ---- */

static trn_tensor random_view(const trni_memory *m, const trni_rect *at, uint64_t *seed)
{
    static const trn_format format[] = { TRN_F32, TRN_BF16, TRN_U8 };
    const int64_t bytes = (int64_t)1 << (2 - cases_below(seed, 3)), all = (at->b_end - at->b) / bytes;
    trn_tensor t;
    memset(&t, 0, sizeof t);
    t.format = format[bytes == 4 ? 0 : bytes == 2 ? 1 : 2];
    t.rank = 1 + cases_below(seed, 4);
    const int64_t p = cases_below(seed, (int)(at->p_end - at->p));
    t.shape[0] = 1 + cases_below(seed, (int)(at->p_end - at->p - p));
    t.stride[0] = m->pitch / bytes;
    int64_t left = all - 1, first = cases_below(seed, (int)all);
    left -= first;
    for (int i = t.rank - 1; i > 0; i--) {
        t.shape[i] = 1 + cases_below(seed, 5);
        t.stride[i] = 1 + cases_below(seed, 9);
        if (cases_one_in(seed, 6)) t.stride[i] = 0; /* broadcast */
        if ((t.shape[i] - 1) * t.stride[i] > left) t.shape[i] = 1;
        left -= (t.shape[i] - 1) * t.stride[i];
    }
    t.data = m->base + (at->p + p) * m->pitch + at->b + first * bytes;
    return t;
}

enum { LOOK = -1 };

/* Every byte of a view, by an odometer; -1 for one of the partition row's gap never happens. set: a value or LOOK. */
static void visit(const trni_memory *m, const trn_tensor *t, unsigned char *map, int64_t *lost_p, int64_t *lost_b,
                  int set)
{
    int64_t index[TRN_MAX_RANK] = { 0 };
    const int64_t bytes = (int64_t)trn_format_bytes(t->format);
    *lost_p = *lost_b = -1;
    for (;;) {
        int64_t at = (int64_t)((char *)t->data - m->base);
        for (int i = 0; i < t->rank; i++) at += index[i] * t->stride[i] * bytes;
        for (int64_t k = at; k < at + bytes; k++) {
            const int64_t p = k / m->pitch, b = k % m->pitch;
            if (set != LOOK)
                map[k] = (unsigned char)set;
            else if (!map[k] && (*lost_p < 0 || p < *lost_p || (p == *lost_p && b < *lost_b)))
                *lost_p = p, *lost_b = b;
        }
        int i = t->rank - 1;
        for (; i >= 0 && ++index[i] == t->shape[i]; i--) index[i] = 0;
        if (i < 0) return;
    }
}

static trni_rect around(const trni_memory *m, const trn_tensor *t)
{
    const int64_t bytes = (int64_t)trn_format_bytes(t->format), at = (int64_t)((char *)t->data - m->base);
    trni_rect r = { at / m->pitch, at / m->pitch + t->shape[0], at % m->pitch, at % m->pitch + bytes, 0, 0 };
    for (int i = 1; i < t->rank; i++) r.b_end += (t->shape[i] - 1) * t->stride[i] * bytes;
    return r;
}

static void written_bytes_are_those_that_were_visited(void **state)
{
    (void)state;
    uint64_t seed = 7;
    static trni_cells cells;
    trni_memory m = fresh(TRN_TRAINIUM2, TRN_SPACE_PSUM);
    unsigned char *map = (unsigned char *)malloc((size_t)(128 * m.pitch));
    unsigned char *by_matmul = (unsigned char *)calloc((size_t)(128 * m.pitch), 1);
    assert_non_null(map);
    assert_non_null(by_matmul);
    memset(m.by_matmul, 0, (size_t)(128 * m.pitch / 8));
    for (int round = 0; round < cases_rounds(60, 2000); round++) {
        const int tile = take(&m, "x", 32, 1 + cases_below(&seed, 32), 1 + cases_below(&seed, 700));
        trni_allocation *t = &m.tile[tile];
        memset(map, 0, (size_t)(128 * m.pitch));
        for (int64_t p = t->at.p; p < t->at.p_end; p++) {
            for (int64_t b = t->at.b; b < t->at.b_end; b++)
                assert_int_equal((unsigned char)m.base[p * m.pitch + b], 0xff);
            memset(by_matmul + p * m.pitch + t->at.b, 0, (size_t)(t->at.b_end - t->at.b));
        }
        for (int i = 0; i < 20; i++) {
            if (t->at.b_end - t->at.b < 4) break;
            const trn_tensor view = random_view(&m, &t->at, &seed);
            const trni_rect at = around(&m, &view);
            int64_t p = -1, b = -1, lost_p, lost_b;
            trni_cells_of(&cells, &m, &view, &at);
            visit(&m, &view, map, &lost_p, &lost_b, LOOK);
            assert_int_equal(trni_cells_missing(&cells, &m, m.written, &p, &b), lost_p >= 0);
            if (lost_p >= 0) {
                assert_int_equal(p, lost_p);
                assert_int_equal(b, lost_b);
            }
            if (cases_one_in(&seed, 3)) continue;
            trni_cells_write(&cells, &m, t);
            visit(&m, &view, map, &lost_p, &lost_b, 1);
            trni_cells_mark(&cells, &m, m.by_matmul, i % 3 > 0);
            visit(&m, &view, by_matmul, &lost_p, &lost_b, i % 3 > 0);
            int64_t unwritten = (t->at.p_end - t->at.p) * (t->at.b_end - t->at.b);
            for (int64_t k = 0; k < 128 * m.pitch; k++) unwritten -= map[k];
            assert_int_equal(t->unwritten, unwritten);
        }
        trni_memory_give(&m, tile, 0);
    }
    for (int64_t k = 0; k < 128 * m.pitch; k++)
        if ((m.by_matmul[k / 64] >> (k % 64) & 1) != by_matmul[k]) fail_msg("byte %lld", (long long)k);
    free(map);
    free(by_matmul);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memories_are_as_large_as_published),
        cmocka_unit_test(tiles_go_to_the_first_place_that_fits),
        cmocka_unit_test(countless_freed_pieces_are_joined),
        cmocka_unit_test(too_many_freed_pieces_of_a_byte),
        cmocka_unit_test(a_full_memory_says_what_is_free_and_who_is_large),
        cmocka_unit_test(written_bytes_are_those_that_were_visited),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(room);
    return failed;
}

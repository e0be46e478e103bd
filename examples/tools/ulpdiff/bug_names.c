/* bug_names.c - sets of rows, orders of rows, and factors, in words.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ---- */

enum { LISTED = 8 };

static bool is_run(const int64_t *index, int64_t count, int64_t stride)
{
    for (int64_t i = 1; i < count; i++)
        if (index[i] - index[i - 1] != stride) return false;
    return true;
}

/* Those of which i mod period lies in low .. high, all of them? */
static bool is_periodic(const int64_t *index, int64_t count, int64_t total, int64_t *period, int64_t *low,
                        int64_t *high)
{
    int64_t length = 1;
    while (length < count && index[length] == index[0] + length) length++;
    if (length == count) return false;
    *period = index[length] - index[0];
    *low = index[0];
    *high = index[0] + length - 1;
    if (*high >= *period) return false;
    int64_t at = 0;
    for (int64_t i = 0; i < total; i++)
        if (i % *period >= *low && i % *period <= *high && (at == count || index[at++] != i)) return false;
    return at == count;
}

static void list_some(const int64_t *index, int64_t count, const char *noun, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%ss ", noun);
    for (int64_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64,
                               i == 0           ? ""
                               : i + 1 == count ? " and "
                                                : ", ",
                               index[i]);
}

const char *bug_name_set(const int64_t *index, int64_t count, int64_t total, const char *noun, char *text, size_t size)
{
    int64_t period, low, high;
    if (count == total && total > 1)
        snprintf(text, size, "all %ss", noun);
    else if (count == 1)
        snprintf(text, size, "%s %" PRId64, noun, index[0]);
    else if (is_run(index, count, 1))
        snprintf(text, size, "%ss %" PRId64 " to %" PRId64, noun, index[0], index[count - 1]);
    else if (count > 2 && is_periodic(index, count, total, &period, &low, &high)) {
        if (low == high && period == 2)
            snprintf(text, size, "every other %s, from %s %" PRId64 " on", noun, noun, low);
        else if (low == high)
            snprintf(text, size, "every %s i with i mod %" PRId64 " = %" PRId64, noun, period, low);
        else
            snprintf(text, size, "every %s i with i mod %" PRId64 " in %" PRId64 " to %" PRId64, noun, period, low,
                     high);
    } else if (count <= LISTED)
        list_some(index, count, noun, text, size);
    else
        snprintf(text, size, "%" PRId64 " %ss between %" PRId64 " and %" PRId64, count, noun, index[0],
                 index[count - 1]);
    return text;
}

/* ---- orders: maps inside blocks of t places ---- */

static int64_t map_roll(int64_t at, int64_t t, int64_t s) { return ((at - s) % t + t) % t; }
static int64_t map_reverse(int64_t at, int64_t t, int64_t s) { return (void)s, t - 1 - at; }
/* [s, t / s] written as [t / s, s] */
static int64_t map_turn(int64_t at, int64_t t, int64_t s) { return at % s * (t / s) + at / s; }
static int64_t map_first(int64_t at, int64_t t, int64_t s) { return (void)t, at / s * s; }
static int64_t map_stretch(int64_t at, int64_t t, int64_t s) { return (void)t, at / s; }
static int64_t map_clamp(int64_t at, int64_t t, int64_t s)
{
    const int64_t from = at - s;
    return from < 0 ? 0 : from < t ? from : t - 1;
}

typedef struct bug_map {
    int64_t (*map)(int64_t at, int64_t t, int64_t s);
    bool divides, small; /* s: divides t; is a shift of up to so many */
} bug_map;

enum { ROLL, REVERSE, TURN, FIRST, STRETCH, CLAMP, MAPS };
static const bug_map maps[MAPS] = { { map_roll, false, false },   { map_reverse, false, false },
                                    { map_turn, true, false },    { map_first, true, false },
                                    { map_stretch, true, false }, { map_clamp, false, true } };

static void say_roll(const char *noun, int64_t n, int64_t t, int64_t s, char *text, size_t size)
{
    char inside[64] = "";
    if (t < n) snprintf(inside, sizeof inside, " in each block of %" PRId64, t);
    if (t == 2)
        snprintf(text, size, "%ss 2i and 2i+1 are swapped", noun);
    else if (2 * s == t && t == n)
        snprintf(text, size, "the two halves of the %ss are interchanged (%ss rolled by %" PRId64 ")", noun, noun, s);
    else if (2 * s == t)
        snprintf(text, size,
                 "neighbouring blocks of %" PRId64 " %ss are interchanged (%s i comes from i xor %" PRId64 ")", s, noun,
                 noun, s);
    else if (s <= t / 2)
        snprintf(text, size, "%ss are rolled by %" PRId64 "%s: %s i of B is %s i-%" PRId64 " of A", noun, s, inside,
                 noun, noun, s);
    else
        snprintf(text, size, "%ss are rolled by -%" PRId64 "%s: %s i of B is %s i+%" PRId64 " of A", noun, t - s,
                 inside, noun, noun, t - s);
}

static void say_map(int map, const char *noun, int64_t n, int64_t t, int64_t s, char *text, size_t size)
{
    char inside[64] = "";
    if (t < n) snprintf(inside, sizeof inside, " in each block of %" PRId64, t);
    if (map == ROLL)
        say_roll(noun, n, t, s, text, size);
    else if (map == REVERSE)
        snprintf(text, size, "%ss are reversed%s", noun, inside);
    else if (map == TURN && s == 2)
        snprintf(text, size,
                 "the halves of the %ss are interleaved%s (A has them one after the other, as rope layouts "
                 "differ)",
                 noun, inside);
    else if (map == TURN && 2 * s == t)
        snprintf(text, size, "even and odd %ss are taken apart%s (A has them interleaved, as rope layouts differ)",
                 noun, inside);
    else if (map == TURN)
        snprintf(text, size,
                 "%ss are permuted%s: [%" PRId64 ", %" PRId64 "] was written as [%" PRId64 ", %" PRId64
                 "], its axes interchanged",
                 noun, inside, s, t / s, t / s, s);
    else if (map == FIRST)
        snprintf(text, size, "each block of %" PRId64 " %ss repeats its first", s, noun);
    else if (map == STRETCH)
        snprintf(text, size, "each %s of the first of %" PRId64 " parts stands %" PRId64 " times", noun, s, s);
    else
        snprintf(text, size, "%ss are shifted by %" PRId64 ", and the %s at the edge is repeated", noun, s, noun);
}

static bool map_fits(int map, int64_t t, int64_t s, const int64_t *at, const int64_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (from[i] >= 0 && at[i] / t * t + maps[map].map(at[i] % t, t, s) != from[i]) return false;
    return true;
}

/* The only s that a roll or a shift could have; others are tried. */
static bool name_map(int map, int64_t t, const int64_t *at, const int64_t *from, int64_t count, int64_t n,
                     const char *noun, char *text, size_t size)
{
    int64_t k = 0;
    while (k < count && (from[k] < 0 || from[k] == at[k])) k++;
    if (k == count) return false;
    const int64_t shift = map == CLAMP ? at[count / 2] - from[count / 2] : ((at[k] - from[k]) % t + t) % t;
    for (int64_t s = maps[map].divides ? 2 : shift; maps[map].divides ? s <= t / 2 : s == shift; s++) {
        if (maps[map].divides && t % s) continue;
        if (!map_fits(map, t, s, at, from, count)) continue;
        say_map(map, noun, n, t, s, text, size);
        return true;
    }
    return false;
}

static bool name_in_blocks(const int64_t *at, const int64_t *from, int64_t count, int64_t n, const char *noun,
                           char *text, size_t size)
{
    for (int64_t blocks = 1; blocks <= n / 2; blocks++)
        for (int map = 0; map < MAPS && n % blocks == 0; map++)
            if ((map != CLAMP || blocks == 1) && name_map(map, n / blocks, at, from, count, n, noun, text, size))
                return true;
    return false;
}

/* Blocks in another order: the largest that stay whole. */
static bool name_blocks(const int64_t *from, int64_t n, const char *noun, char *text, size_t size)
{
    int64_t block = n / 2, moved[3], some = 0;
    for (; block > 0; block--) {
        bool whole = n % block == 0;
        for (int64_t i = 0; i < n && whole; i++)
            whole = from[i] >= 0 && from[i] % block == i % block && from[i] / block == from[i / block * block] / block;
        if (whole) break;
    }
    if (block < 1) return false;
    for (int64_t b = 0; b < n / block; b++)
        if (from[b * block] != b * block && some++ < 3) moved[some - 1] = b;
    const bool two =
        some == 2 && from[moved[0] * block] == moved[1] * block && from[moved[1] * block] == moved[0] * block;
    if (two && block == 1)
        snprintf(text, size, "%ss %" PRId64 " and %" PRId64 " are swapped", noun, moved[0], moved[1]);
    else if (two)
        snprintf(text, size,
                 "%ss %" PRId64 " to %" PRId64 " and %" PRId64 " to %" PRId64 " are interchanged (blocks of %" PRId64
                 ")",
                 noun, moved[0] * block, moved[0] * block + block - 1, moved[1] * block, moved[1] * block + block - 1,
                 block);
    else if (block > 1) {
        size_t used = (size_t)snprintf(text, size, "blocks of %" PRId64 " %ss are permuted: B has A's", block, noun);
        for (int64_t b = 0; b < n / block && b < 12 && used < size; b++)
            used += (size_t)snprintf(text + used, size - used, " %" PRId64, from[b * block] / block);
        if (n / block > 12 && used < size) snprintf(text + used, size - used, " ...");
    } else
        return false;
    return true;
}

/* A run that comes from elsewhere. */
static bool name_run(const int64_t *at, const int64_t *from, int64_t count, int64_t n, const char *noun, char *text,
                     size_t size)
{
    char here[96], there[96];
    bool same = true, shift = true;
    if (count == 0 || from[0] < 0) return false;
    for (int64_t i = 0; i < count; i++) {
        same &= from[i] == from[0];
        shift &= from[i] - at[i] == from[0] - at[0];
    }
    bug_name_set(at, count, n, noun, here, sizeof here);
    if (same)
        snprintf(text, size, "%s %s %s %" PRId64 " of A", here, count == 1 ? "repeats" : "all repeat", noun, from[0]);
    else if (shift && count < n)
        snprintf(text, size, "%s repeat %s of A", here, bug_name_set(from, count, n, noun, there, sizeof there));
    else
        return false;
    return true;
}

/* Those between the first and the last that moved, as an order of their own. */
static bool name_inside(const int64_t *at, const int64_t *from, int64_t count, const char *noun, char *text,
                        size_t size)
{
    int64_t low = 0, high = count - 1;
    while (low < count && (from[low] < 0 || from[low] == at[low])) low++;
    while (high > low && (from[high] < 0 || from[high] == at[high])) high--;
    const int64_t n = high - low + 1;
    if (n < 4 || n == count) return false;
    int64_t *to = app_memory((size_t)n, sizeof *to), *source = app_memory((size_t)n, sizeof *source);
    bool closed = true;
    for (int64_t i = 0; i < n; i++) {
        to[i] = i;
        source[i] = from[low + i] < 0 ? -1 : from[low + i] - low;
        closed &= source[i] < n && (from[low + i] < 0 || source[i] >= 0);
    }
    char inside[200];
    const bool named = closed && name_in_blocks(to, source, n, n, noun, inside, sizeof inside);
    if (named)
        snprintf(text, size, "from %s %lld to %lld, %s (counted from there)", noun, (long long)low, (long long)high,
                 inside);
    free(to);
    free(source);
    return named;
}

/* The same of those that moved, where the others did not. */
static bool name_moved_run(const int64_t *at, const int64_t *from, int64_t count, const char *noun, char *text,
                           size_t size)
{
    int64_t *to = app_memory((size_t)count, sizeof *to), *source = app_memory((size_t)count, sizeof *source), moved = 0;
    for (int64_t i = 0; i < count; i++) {
        if (from[i] < 0 || from[i] == at[i]) continue;
        to[moved] = at[i];
        source[moved++] = from[i];
    }
    const bool named = moved < count && name_run(to, source, moved, count, noun, text, size);
    free(to);
    free(source);
    return named;
}

bool bug_name_order(const int64_t *at, const int64_t *from, int64_t count, int64_t total, const char *noun, char *text,
                    size_t size)
{
    if (name_run(at, from, count, total, noun, text, size)) return true;
    if (name_in_blocks(at, from, count, total, noun, text, size)) return true;
    if (count == total && name_moved_run(at, from, count, noun, text, size)) return true;
    if (count == total && name_inside(at, from, count, noun, text, size)) return true;
    return count == total && name_blocks(from, total, noun, text, size);
}

/* ---- orders that are tried one after the other: all maps in all blocks, with every s that is usual ---- */

bool bug_known_order(int which, int64_t n, int64_t *from, char *text, size_t size, const char *noun)
{
    for (int64_t t = n; t > 1; t--) {
        if (n % t) continue;
        for (int map = 0; map <= TURN; map++)
            for (int64_t s = 1; s < t; s++) {
                const bool usual = map == ROLL ? s <= 4 || t - s <= 4 || 2 * s == t || (s & (s - 1)) == 0 || s % 32 == 0
                                   : map == REVERSE ? s == 1
                                                    : s > 1 && t % s == 0;
                if (!usual || which-- > 0) continue;
                for (int64_t i = 0; i < n; i++) from[i] = i / t * t + maps[map].map(i % t, t, s);
                say_map(map, noun, n, t, s, text, size);
                return true;
            }
    }
    return false;
}

/* ---- factors ---- */

static bool near_to(double x, double y, double off) { return fabs(x - y) <= off * fabs(y); }

static bool root_or_power(double f, double off, char *text, size_t size)
{
    const double g = f < 1 ? 1 / f : f, square = g * g;
    const char *over = f < 1 && nearbyint(g) > 1 ? "1/" : "";
    if (near_to(g, nearbyint(g), off) && g < 1e6)
        snprintf(text, size, "%s%.0f", over, nearbyint(g));
    else if (near_to(g, 448.0 / 240, off))
        snprintf(text, size, f < 1 ? "240/448" : "448/240");
    else if (square < 70000 && near_to(g, sqrt(nearbyint(square)), off) &&
             off * square < (fmod(nearbyint(square), 8) == 0 ? 0.1 : 0.01))
        snprintf(text, size, "%ssqrt(%.0f)", f < 1 ? "1/" : "", nearbyint(square));
    else
        return false;
    return true;
}

const char *bug_name_factor(double factor, double off, char *text, size_t size)
{
    static const struct {
        double value;
        const char *name;
    } known[] = { { 1.4426950408889634, "1/ln 2" }, { 0.6931471805599453, "ln 2" }, { 3.141592653589793, "pi" } };
    char plain[48];
    const double f = fabs(factor);
    if (off < 2e-5) off = 2e-5;
    bool found = root_or_power(f, off, plain, sizeof plain);
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !found; i++)
        if (near_to(f, known[i].value, off)) found = snprintf(plain, sizeof plain, "%s", known[i].name) > 0;
    if (!found) snprintf(plain, sizeof plain, off > 1e-4 ? "%.4g" : "%.7g", f);
    snprintf(text, size, "%s%s%s", factor < 0 ? "-" : "", plain,
             strcmp(plain, "1") == 0 && factor < 0 ? " (the sign)" : "");
    return text;
}

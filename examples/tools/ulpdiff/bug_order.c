/* bug_order.c - rows and columns that stand elsewhere, and matrices that were laid out in another way.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLED = 64,
    PROBES = 24,
    SHORT = 8,
    EXAMPLES = 4
};                 /* places of a row that are compared; rows that are looked up first */
#define ALIKE 0.03 /* of the energy: what rounding may leave between a row and its source */
enum { MOST_ORDERS = 600 };
#define MOST_WORK 6e9

/* ---- rows as short vectors ---- */

typedef struct bug_prints { /* of the rows (or columns) of B in the case, and of A in the whole */
    float *at, *from;       /* [count, length], [pool, length] */
    double *at_energy, *from_energy;
    int64_t count, pool, length;
} bug_prints;

static const bug_case *pool_of(const bug_case *c) { return c->whole ? c->whole : c; }

/* The element of the case's line `line` (a row, or a column) at its place `place`. */
static double at_line(const bug_case *c, const double *x, bool rows, int64_t line, int64_t place)
{
    return rows ? x[line * c->n + place] : x[place * c->n + line];
}

/* The same of A's line in the whole; places are the case's. */
static double from_line(const bug_case *c, bool rows, int64_t line, int64_t place)
{
    const bug_case *w = pool_of(c);
    if (!c->whole) return at_line(w, w->a, rows, line, place);
    return at_line(w, w->a, rows, line, rows ? c->column[place] : c->row[place]);
}

static double *take_prints(float *to, int64_t lines, int64_t length)
{
    double *energy = app_memory((size_t)lines, sizeof *energy);
    for (int64_t i = 0; i < lines; i++)
        for (int64_t k = 0; k < length; k++) energy[i] += (double)to[i * length + k] * (double)to[i * length + k];
    return energy;
}

static void open_prints(const bug_case *c, bool rows, bug_prints *p)
{
    const int64_t places = rows ? c->n : c->m;
    const double *size = rows ? c->column_size : c->row_size;
    p->count = rows ? c->m : c->n;
    p->pool = rows ? pool_of(c)->m : pool_of(c)->n;
    p->length = places < SAMPLED ? places : SAMPLED;
    p->at = app_memory((size_t)(p->count * p->length), sizeof *p->at);
    p->from = app_memory((size_t)(p->pool * p->length), sizeof *p->from);
    int64_t *place = ud_spread(places, p->length);
    double all = 0;
    for (int64_t k = 0; k < places; k++) all += size[k] / (double)places;
    for (int64_t k = 0; k < p->length; k++) {
        const double scale = size[place[k]] > 0 && all > 0 ? all / size[place[k]] : 1;
        for (int64_t i = 0; i < p->count; i++)
            p->at[i * p->length + k] = (float)(at_line(c, c->b, rows, i, place[k]) * scale);
        for (int64_t i = 0; i < p->pool; i++)
            p->from[i * p->length + k] = (float)(from_line(c, rows, i, place[k]) * scale);
    }
    free(place);
    p->at_energy = take_prints(p->at, p->count, p->length);
    p->from_energy = take_prints(p->from, p->pool, p->length);
}

static void close_prints(bug_prints *p)
{
    free(p->at);
    free(p->from);
    free(p->at_energy);
    free(p->from_energy);
}

static double distance(const bug_prints *p, int64_t at, int64_t from)
{
    const float *x = p->at + at * p->length, *y = p->from + from * p->length;
    double sum = 0;
    for (int64_t k = 0; k < p->length; k++) {
        const double d = (double)x[k] - (double)y[k];
        sum += d * d;
    }
    const double energy = fmax(p->at_energy[at], p->from_energy[from]);
    return energy > 0 ? sum / energy : 0;
}

/* By energies and a product: fast, and good to 1e-6. */
static double rough_distance(const bug_prints *p, int64_t at, int64_t from)
{
    const float *x = p->at + at * p->length, *y = p->from + from * p->length;
    float part[8] = { 0 };
    int64_t k = 0;
    for (; k + 8 <= p->length; k += 8)
        for (int i = 0; i < 8; i++) part[i] += x[k + i] * y[k + i];
    for (; k < p->length; k++) part[0] += x[k] * y[k];
    const double dot = (double)part[0] + (double)part[1] + (double)part[2] + (double)part[3] + (double)part[4] +
                       (double)part[5] + (double)part[6] + (double)part[7];
    const double energy = fmax(p->at_energy[at], p->from_energy[from]);
    return energy > 0 ? (p->at_energy[at] + p->from_energy[from] - 2 * dot) / energy : 0;
}

/* Where line `at` of B comes from: from its own place if that does, then from where its neighbour's source suggests,
 * else from the nearest. -1: from nowhere. */
static int64_t source_of(const bug_prints *p, int64_t at, int64_t own, int64_t suggested)
{
    int64_t best = own;
    double least = distance(p, at, own);
    if (suggested >= 0 && suggested < p->pool && distance(p, at, suggested) < 0.25 * least)
        least = distance(p, at, best = suggested);
    if (least <= 1e-9) return best;
    for (int64_t k = 0; k < p->pool; k++) {
        if (!(rough_distance(p, at, k) < least + 1e-5)) continue;
        const double exact = distance(p, at, k);
        if (exact >= (best == own ? 0.25 : 1) * least) continue;
        least = exact;
        best = k;
    }
    return least <= ALIKE ? best : -1;
}

/* ---- lines that moved ---- */

typedef struct bug_moved {
    const int64_t *from; /* of each line of the case, in the whole; -1: nowhere */
    bool rows;
} bug_moved;

static double predict_moved(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_moved *p = what;
    const bug_case *w = pool_of(c);
    const int64_t from = p->from[p->rows ? i : j];
    if (from < 0) {
        *size = 1;
        return c->b[i * c->n + j];
    }
    const int64_t row = p->rows    ? from
                        : c->whole ? c->row[i]
                                   : i,
                  column = p->rows ? c->whole ? c->column[j] : j : from;
    *size = bug_size(w, row, column);
    return w->a[row * w->n + column];
}

static const char *rest_of(const bug_case *c, bool rows, const int64_t *from, int64_t count, char *text, size_t size)
{
    int64_t *lost = app_memory((size_t)count, sizeof *lost), n = 0;
    bool zero = true;
    for (int64_t i = 0; i < count; i++) {
        if (from[i] >= 0) continue;
        lost[n++] = rows ? c->row[i] : c->column[i];
        for (int64_t k = 0; k < (rows ? c->n : c->m); k++) zero &= at_line(c, c->b, rows, i, k) == 0;
    }
    char set[128];
    text[0] = '\0';
    if (n)
        snprintf(text, size, "; %s hold%s %s", bug_name_set(lost, n, count, c->noun[!rows], set, sizeof set),
                 n == 1 ? "s" : "", zero ? "zeros" : "something else");
    free(lost);
    return text;
}

/* In a word, or by its first examples. */
static bool name_moved(const bug_case *c, bool rows, const int64_t *from, int64_t count, int64_t moved, char *text,
                       size_t size)
{
    const int64_t *at = rows ? c->row : c->column, total = rows ? pool_of(c)->m : pool_of(c)->n;
    const char *noun = c->noun[!rows];
    if (bug_name_order(at, from, count, total, noun, text, size)) return true;
    size_t used = (size_t)snprintf(text, size, "%ss are permuted, %" PRId64 " of %" PRId64 " stand elsewhere:", noun,
                                   moved, count);
    int some = 0;
    for (int64_t i = 0; i < count && some < EXAMPLES && used < size; i++)
        if (from[i] >= 0 && from[i] != at[i])
            used += (size_t)snprintf(text + used, size - used, "%s %s %" PRId64 " of B is %" PRId64 " of A",
                                     some++ ? "," : "", noun, at[i], from[i]);
    if (moved > EXAMPLES && used < size) snprintf(text + used, size - used, ", ...");
    return false;
}

static void moved_lines(bug_search *s, bool rows, const bug_prints *p)
{
    const bug_case *c = s->c;
    const int64_t *own = rows ? c->row : c->column;
    int64_t *from = app_memory((size_t)p->count, sizeof *from), moved = 0, lost = 0;
    for (int64_t i = 0; i < p->count; i++) {
        from[i] = source_of(p, i, own[i], i && from[i - 1] >= 0 ? from[i - 1] + 1 : -1);
        lost += from[i] < 0;
        moved += from[i] >= 0 && from[i] != own[i];
    }
    const int64_t length = rows ? c->n : c->m;
    const bug_moved what = { from, rows };
    const bool some = moved > 0 && lost < moved && lost * 4 <= p->count + 3;
    char text[BUG_TEXT - 100], rest[100];
    if (some) {
        const bool named = name_moved(c, rows, from, p->count, moved, text, sizeof text);
        bug_finding *f = bug_try(s, predict_moved, &what, named ? 1 : 4, (named ? 1 : moved) + lost * length, 0);
        if (f) bug_say(f, "%s%s", text, rest_of(c, rows, from, p->count, rest, sizeof rest));
    }
    free(from);
}

/* Do some lines of B stand elsewhere in A? */
static bool worth_it(const bug_case *c, bool rows, const bug_prints *p)
{
    const int64_t *own = rows ? c->row : c->column, probes = p->count < PROBES ? p->count : PROBES;
    int64_t found = 0, *line = ud_spread(p->count, probes);
    for (int64_t i = 0; i < probes; i++) found += source_of(p, line[i], own[line[i]], -1) >= 0;
    free(line);
    return 4 * found >= probes && (double)p->count * (double)p->pool * (double)p->length < MOST_WORK;
}

/* Short rows look alike: the orders that have a name are tried instead. */
static bool known_orders(bug_search *s, bool rows)
{
    const bug_case *c = s->c;
    const int64_t n = rows ? c->m : c->n;
    int64_t *from = app_memory((size_t)n, sizeof *from);
    const bug_moved what = { from, rows };
    char text[BUG_TEXT];
    bug_finding *f = NULL;
    for (int which = 0; !f && which < MOST_ORDERS && bug_known_order(which, n, from, text, sizeof text, c->noun[!rows]);
         which++)
        if ((f = bug_try(s, predict_moved, &what, 1, 1, 0)) != NULL) bug_say(f, "%s", text);
    free(from);
    return f != NULL;
}

static void lines(bug_search *s, bool rows)
{
    const bug_case *c = s->c;
    if ((rows ? c->m : c->n) < 1 || (rows ? pool_of(c)->m : pool_of(c)->n) < 2) return;
    if ((rows ? c->n : c->m) < SHORT && !c->whole && known_orders(s, rows)) return;
    bug_prints p;
    open_prints(c, rows, &p);
    if (worth_it(c, rows, &p)) moved_lines(s, rows, &p);
    close_prints(&p);
}

void bug_rows(bug_search *s) { lines(s, true); }
void bug_columns(bug_search *s) { lines(s, false); }

/* ---- layouts: where element [i, j] of B stands in A, by number ---- */

typedef struct bug_shape {
    int64_t m, n, t;
} bug_shape;

static int64_t lay_turned(const bug_shape *s, int64_t i, int64_t j) { return j * s->n + i; } /* squares */
static int64_t lay_by_columns(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t at = i * s->n + j; /* at of [n, m] written row by row */
    return at % s->m * s->n + at / s->m;
}
static int64_t lay_by_rows(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t at = j * s->m + i;
    return at;
}
static int64_t lay_half_turn(const bug_shape *s, int64_t i, int64_t j) { return (s->m - 1 - i) * s->n + s->n - 1 - j; }
static int64_t lay_other_diagonal(const bug_shape *s, int64_t i, int64_t j)
{
    return (s->n - 1 - j) * s->n + s->n - 1 - i;
}
static int64_t lay_right_turn(const bug_shape *s, int64_t i, int64_t j) { return (s->n - 1 - j) * s->n + i; }
static int64_t lay_left_turn(const bug_shape *s, int64_t i, int64_t j) { return j * s->n + s->n - 1 - i; }
static int64_t lay_tiles_turned(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t t = s->t;
    return (i / t * t + j % t) * s->n + j / t * t + i % t;
}
static int64_t lay_grid_turned(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t t = s->t;
    return (j / t * t + i % t) * s->n + i / t * t + j % t;
}
/* [m, n / t, t] written as [n / t, m, t], and back: heads before or after rows */
static int64_t lay_heads_first(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t at = i * s->n + j, d = at % s->t, row = at / s->t % s->m, head = at / s->t / s->m;
    return row * s->n + head * s->t + d;
}
static int64_t lay_heads_last(const bug_shape *s, int64_t i, int64_t j)
{
    return (j / s->t * s->m + i) * s->t + j % s->t;
}
static int64_t lay_next(const bug_shape *s, int64_t i, int64_t j)
{
    const int64_t all = s->m * s->n;
    return ((i * s->n + j - s->t) % all + all) % all;
}

enum { SQUARE = 1, OBLONG, TILES, SQUARE_TILES, HEADS, STEPS, WIDE };
static const struct {
    int64_t (*at)(const bug_shape *s, int64_t i, int64_t j);
    int needs;
    const char *text;
} layouts[] = {
    { lay_turned, SQUARE, "B is A transposed: the output is transposed" },
    { lay_by_columns, OBLONG, "B is A transposed, written in A's shape: column by column, to be read row by row" },
    { lay_by_rows, OBLONG, "B is A read column by column: the output is transposed, in A's shape" },
    { lay_half_turn, WIDE, "rows and columns are both reversed: B is A turned by 180 degrees" },
    { lay_other_diagonal, SQUARE, "B is A transposed about its other diagonal" },
    { lay_right_turn, SQUARE, "B is A turned by 90 degrees, to the right" },
    { lay_left_turn, SQUARE, "B is A turned by 90 degrees, to the left" },
    { lay_tiles_turned, TILES, "each tile of %lld x %lld is transposed in its place" },
    { lay_grid_turned, SQUARE_TILES, "tiles of %lld x %lld stand where the transposed grid has them, each as it was" },
    { lay_heads_first, HEADS,
      "the output is [row, head, %lld] written as [head, row, %lld]: its axes are interchanged" },
    { lay_heads_last, HEADS,
      "the output is [head, row, %lld] written as [row, head, %lld]: its axes are interchanged" },
    { lay_next, STEPS, "every element is off by %lld in memory, across the ends of rows" },
};

typedef struct bug_laid {
    int layout;
    bug_shape shape;
} bug_laid;

static double predict_laid(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_laid *l = what;
    const int64_t at = layouts[l->layout].at(&l->shape, i, j);
    *size = bug_size(c, at / c->n, at % c->n);
    return c->a[at];
}

static bool layout_fits(int needs, const bug_shape *s)
{
    const bool square = s->m == s->n, tiles = s->m % s->t == 0 && s->n % s->t == 0;
    switch (needs) {
    case SQUARE: return square && s->t == 1;
    case OBLONG: return !square && s->m > 1 && s->n > 1 && s->t == 1;
    case TILES: return tiles && s->t > 1 && (s->m > s->t || s->n > s->t);
    case SQUARE_TILES: return square && tiles && s->t > 1 && s->n > s->t;
    case HEADS: return s->n % s->t == 0 && s->t > 1 && s->t < s->n && s->m > 1;
    case STEPS: return s->m > 1 && s->t < s->n;
    default: return s->m > 1 && s->n > 1 && s->t == 1;
    }
}

static void try_layout(bug_search *s, int layout, int64_t t)
{
    const bug_case *c = s->c;
    const bug_laid what = { layout, { c->m, c->n, t } };
    if (!layout_fits(layouts[layout].needs, &what.shape)) return;
    bug_laid back = what;
    for (int sign = 1; sign >= -1; sign -= 2) {
        back.shape.t = t * sign;
        bug_finding *f = bug_try(s, predict_laid, &back, 1, 1, 0);
        char text[BUG_TEXT];
        if (f) {
            snprintf(text, sizeof text, layouts[layout].text, (long long)back.shape.t, (long long)back.shape.t);
            bug_say(f, "%s", text);
            return;
        }
        if (layouts[layout].needs != STEPS) return;
    }
}

void bug_layout(bug_search *s)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 8, 16, 32, 64, 80, 96, 128, 256, 512 };
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) try_layout(s, (int)l, sizes[i]);
}

/* bug_places.c - what is wrong in one place alone: NaN and infinity, masks, rows and tiles that hold something else.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines of the view that a set of elements touches ---- */

typedef struct bug_box {
    int64_t *row, *column, rows, columns, elements;
} bug_box;

static void open_box(const bug_case *c, const unsigned char *in, bug_box *x)
{
    unsigned char *row = app_memory((size_t)c->m, 1), *column = app_memory((size_t)c->n, 1);
    memset(x, 0, sizeof *x);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++)
            if (in[i * c->n + j]) {
                row[i] = column[j] = 1;
                x->elements++;
            }
    x->row = app_memory((size_t)c->m, sizeof *x->row);
    x->column = app_memory((size_t)c->n, sizeof *x->column);
    for (int64_t i = 0; i < c->m; i++)
        if (row[i]) x->row[x->rows++] = i;
    for (int64_t j = 0; j < c->n; j++)
        if (column[j]) x->column[x->columns++] = j;
    free(row);
    free(column);
}

static void close_box(bug_box *x)
{
    free(x->row);
    free(x->column);
}

static const char *name_box(const bug_case *c, const bug_box *x, char *text, size_t size)
{
    char rows[128], columns[128];
    bug_name_set(x->row, x->rows, c->m, c->noun[0], rows, sizeof rows);
    bug_name_set(x->column, x->columns, c->n, c->noun[1], columns, sizeof columns);
    if (c->m == 1 || (x->rows == c->m && x->columns < c->n))
        snprintf(text, size, "%s", columns);
    else if (x->columns == c->n)
        snprintf(text, size, "%s", rows);
    else
        snprintf(text, size, "%s, %s", rows, columns);
    return text;
}

/* ---- NaN and infinity ---- */

static int kind_of(double x) { return isnan(x) ? 1 : isinf(x) ? x > 0 ? 2 : 3 : 0; }

/* Where kinds differ; and whether it is where |A| is large, from where on. */
static double mark_kind(const bug_case *c, int kind, bool in_b, unsigned char *in)
{
    double from = INFINITY, below = 0, x[2][UD_BLOCK];
    for (int64_t at = 0; at < c->m * c->n; at += UD_BLOCK) {
        const int n = c->m * c->n - at < UD_BLOCK ? (int)(c->m * c->n - at) : UD_BLOCK;
        ud_values(&c->pair->a, at, n, x[0]);
        ud_values(&c->pair->b, at, n, x[1]);
        for (int i = 0; i < n; i++) {
            const double size = fabs(x[!in_b][i]);
            const bool here = kind_of(x[in_b][i]) == kind && kind_of(x[!in_b][i]) != kind;
            in[at + i] = here;
            if (here)
                from = fmin(from, isfinite(size) ? size : 0);
            else if (isfinite(size))
                below = fmax(below, size);
        }
    }
    return below > 0 && from > below && from < INFINITY ? from : 0;
}

static bool has_mask(const bug_search *s)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->found[i].name, "mask") == 0) return true;
    return false;
}

void bug_no_numbers(bug_search *s)
{
    static const char *const name[] = { "", "NaN", "+infinity", "-infinity" };
    const bug_case *c = s->c;
    if (!c->pair->sums.mismatches || has_mask(s)) return;
    unsigned char *in = app_memory((size_t)(c->m * c->n), 1);
    for (int q = 0; q < 6; q++) {
        const int kind = 1 + q / 2, in_b = q % 2 == 0;
        const double from = mark_kind(c, kind, in_b, in);
        bug_box x;
        char where[280];
        open_box(c, in, &x);
        bug_finding *f = x.elements ? bug_add(s, 1, true) : NULL;
        name_box(c, &x, where, sizeof where);
        const bool full = x.elements == x.rows * x.columns;
        if (f && from > 0)
            bug_say(f,
                    "%s stands in %s where the other's size is %.6g or more, %" PRId64 " times: the format overflows",
                    name[kind], in_b ? "B" : "A", from, x.elements);
        else if (f)
            bug_say(f, "%s in %s alone: %s%s%" PRId64 " element%s", name[kind], in_b ? "B" : "A", where,
                    full ? ", all of them, " : "; ", x.elements, x.elements == 1 ? "" : "s");
        close_box(&x);
    }
    free(in);
}

/* ---- masks: where rows are hidden, and how that moved ---- */

typedef struct bug_edges {
    int64_t *low, *high; /* of each row: what is seen; low > high: nothing */
    int64_t hidden;
} bug_edges;

/* A value that hides: zero, or whatever is least. */
static void find_edges(const ud_array *x, int64_t m, int64_t n, bool zero, bug_edges *e)
{
    double *row = app_memory((size_t)n, sizeof *row), least = 0;
    e->low = app_memory((size_t)m, sizeof *e->low);
    e->high = app_memory((size_t)m, sizeof *e->high);
    e->hidden = 0;
    for (int pass = zero; pass < 2; pass++)
        for (int64_t i = 0; i < m; i++) {
            for (int64_t at = 0; at < n; at += UD_BLOCK)
                ud_values(x, i * n + at, n - at < UD_BLOCK ? (int)(n - at) : UD_BLOCK, row + at);
            int64_t low = 0, high = n - 1;
            for (int64_t j = 0; j < n && !pass; j++) least = fmin(least, row[j]);
            while (low < n && row[low] == (zero ? 0 : least)) low++;
            while (high >= low && row[high] == (zero ? 0 : least)) high--;
            e->low[i] = low;
            e->high[i] = high;
            e->hidden += pass ? n - (high - low + 1) : 0;
        }
    free(row);
}

static void close_edges(bug_edges *e)
{
    free(e->low);
    free(e->high);
}

/* How far an edge moved, where it moved by the same in nine rows of ten that could show it. */
static bool shift_of(const int64_t *a, const int64_t *b, int64_t m, int64_t n, bool high, int64_t *shift)
{
    int64_t same = 0, seen = 0, first = 0;
    for (int64_t i = 0; i < m; i++) {
        const bool whole = high ? a[i] >= n - 1 && b[i] >= n - 1 : a[i] <= 0 && b[i] <= 0;
        const bool cut = high ? a[i] >= n - 1 || b[i] >= n - 1 || a[i] < 0 || b[i] < 0 : a[i] <= 0 || b[i] <= 0;
        if (whole || cut || a[i] >= n || b[i] >= n) continue;
        if (!seen++) first = b[i] - a[i];
        same += b[i] - a[i] == first;
    }
    *shift = first;
    return seen == 0 || 10 * same >= 9 * seen;
}

static bool nothing_hidden(const bug_edges *e) { return e->hidden == 0; }

static void say_mask(bug_search *s, const bug_edges *a, const bug_edges *b, const bug_case *c, const char *what)
{
    int64_t low, high;
    if (nothing_hidden(a) != nothing_hidden(b)) {
        bug_finding *f = bug_add(s, 1, true);
        if (f)
            bug_say(f, "the mask (%s) is left out in %s: it hides %" PRId64 " elements of the other", what,
                    a->hidden ? "B" : "A", a->hidden + b->hidden);
        return;
    }
    const bool steady =
        shift_of(a->low, b->low, c->m, c->n, false, &low) && shift_of(a->high, b->high, c->m, c->n, true, &high);
    if (!steady || (low == 0 && high == 0)) return;
    const int64_t by = high ? high : low;
    bug_finding *f = bug_add(s, 1, true);
    if (f)
        bug_say(
            f, "the mask (%s) is off by %" PRId64 "%s: in B what is seen of a row %s %" PRId64 " column%s %s than in A",
            what, by < 0 ? -by : by, by == 1 || by == -1 ? " (one)" : "", high ? "ends" : "begins", by < 0 ? -by : by,
            by == 1 || by == -1 ? "" : "s", by < 0 ? "earlier" : "later");
}

/* Is it a mask at all: does a tenth stand hidden, and do edges differ between rows, or stand still in all? */
static bool is_mask(const bug_edges *e, int64_t m, int64_t n)
{
    int64_t turns = 0, steps = 0;
    for (int64_t i = 1; i < m; i++) {
        const int64_t up = e->high[i] - e->high[i - 1], down = e->low[i] - e->low[i - 1];
        steps += (up == 0 || up == 1) && (down == 0 || down == 1);
        turns++;
    }
    return 50 * e->hidden >= m * n && e->hidden < m * n && 10 * steps >= 8 * turns;
}

void bug_mask(bug_search *s)
{
    static const char *const what[] = { "the least value", "zeros" };
    const bug_case *c = s->c;
    if (c->pair->a.rank < 2 || c->n < 4 || c->m < 4) return;
    for (int zero = 1; zero >= 0; zero--) {
        bug_edges a, b;
        find_edges(&c->pair->a, c->m, c->n, zero, &a);
        find_edges(&c->pair->b, c->m, c->n, zero, &b);
        const int before = s->count;
        const bool left_out = b.hidden <= c->m && is_mask(&a, c->m, c->n) && !is_mask(&b, c->m, c->n);
        if (left_out) b.hidden = 0;
        if (is_mask(&a, c->m, c->n) && (left_out || is_mask(&b, c->m, c->n))) say_mask(s, &a, &b, c, what[zero]);
        close_edges(&a);
        close_edges(&b);
        if (s->count > before) return;
    }
}

/* ---- a part that differs: what it holds ---- */

static int by_size(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* A distance that the better part of the elements stay below by far. */
static double limit_of(const bug_case *c)
{
    enum { SOME = 8192 };
    const int64_t n = c->m * c->n, some = n < SOME ? n : SOME;
    double *z = app_memory((size_t)some, sizeof *z);
    int64_t *index = ud_spread(n, some);
    for (int64_t k = 0; k < some; k++) {
        const int64_t at = index[k];
        const double size = bug_size(c, at / c->n, at % c->n);
        z[k] = size > 0 ? fabs(c->b[at] - c->a[at]) / size : 0;
    }
    qsort(z, (size_t)some, sizeof *z, by_size);
    const double quarter = z[some / 4];
    free(index);
    free(z);
    return fmax(16 * quarter, fmin(1.5 * c->grain, 0.1));
}

static void mark_far(const bug_case *c, double limit, unsigned char *in)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++)
            in[i * c->n + j] = fabs(c->b[i * c->n + j] - c->a[i * c->n + j]) > limit * bug_size(c, i, j);
}

static bool say_constant(bug_search *s, const bug_case *part, const char *where)
{
    const double first = part->b[0];
    for (int64_t i = 0; i < part->m * part->n; i++)
        if (part->b[i] != first) return false;
    if (part->m * part->n < 2 && first != 0) return false;
    bug_finding *f = bug_add(s, 2, false);
    if (f && first == 0)
        bug_say(f, "%s hold%s zeros: left out, or not written", where, part->m * part->n == 1 ? "s" : "");
    else if (f)
        bug_say(f, "%s all hold %.7g", where, first * part->unit);
    return true;
}

void bug_constant(bug_search *s)
{
    const bug_case *c = s->c;
    bool varies = false;
    for (int64_t i = 0; i < c->m * c->n; i++) {
        if (c->b[i] != c->b[0]) return;
        varies |= c->a[i] != c->a[0];
    }
    if (c->m * c->n < 2 || (!varies && c->b[0] != 0)) return;
    bug_finding *f = bug_add(s, 1, false);
    if (f && c->b[0] == 0)
        bug_say(f, "B is all zeros: nothing was written, or all of it is masked");
    else if (f)
        bug_say(f, "B is %.7g everywhere", c->b[0] * c->unit);
}

/* A tile of A that stands here, wherever it comes from. */
static bool tile_at(const bug_case *w, const bug_case *part, int64_t row, int64_t column)
{
    const int64_t n = part->n < 8 ? part->n : 8;
    for (int64_t j = 0; j < n; j++)
        if (fabs(w->a[row * w->n + column + j] - part->b[j]) > 0.05 * bug_size(w, row, column + j)) return false;
    double off = 0, all = 0;
    for (int64_t i = 0; i < part->m; i++)
        for (int64_t j = 0; j < part->n; j++) {
            const double a = w->a[(row + i) * w->n + column + j], d = a - part->b[i * part->n + j];
            off += d * d;
            all += a * a;
        }
    return all > 0 && off < 0.02 * all;
}

static bool say_stale_tile(bug_search *s, const bug_case *part, const char *where)
{
    const bug_case *w = part->whole;
    if (part->n < 2 || part->m * part->n < 4) return false;
    if (part->row[part->m - 1] - part->row[0] != part->m - 1) return false;
    if (part->column[part->n - 1] - part->column[0] != part->n - 1) return false;
    for (int64_t i = 0; i + part->m <= w->m; i++)
        for (int64_t j = 0; j + part->n <= w->n; j++) {
            if ((i == part->row[0] && j == part->column[0]) || !tile_at(w, part, i, j)) continue;
            bug_finding *f = bug_add(s, 2, false);
            if (f)
                bug_say(f,
                        "%s: a stale tile, it holds A's rows %" PRId64 " to %" PRId64 ", columns %" PRId64
                        " to %" PRId64,
                        where, i, i + part->m - 1, j, j + part->n - 1);
            return f != NULL;
        }
    return false;
}

/* The part as a case of its own; what is found there is told with its place. */
static void look_inside(bug_search *s, const bug_box *x, const char *where)
{
    bug_case part;
    bug_search inner = { .name = s->name };
    bug_case_part(s->c, x->row, x->rows, x->column, x->columns, &part);
    inner.c = &part;
    if (!say_constant(s, &part, where) && !say_stale_tile(s, &part, where)) bug_run_families(&inner);
    for (int i = 0; i < inner.count; i++) {
        bug_finding *f = bug_add(s, inner.found[i].cost + 1, false);
        if (!f) break;
        f->name = inner.found[i].name;
        f->left = inner.found[i].left;
        bug_say(f, "%s: %.180s", where, inner.found[i].text);
    }
    bug_case_close(&part);
}

/* Tiles that differ, if these are few and full. */
static bool look_at_tiles(bug_search *s, const unsigned char *in)
{
    const bug_case *c = s->c;
    for (int64_t t = 512; t >= 8; t /= 2) {
        const int64_t down = (c->m + t - 1) / t, across = (c->n + t - 1) / t;
        if (down * across < 4) continue;
        int64_t touched = 0, full = 0, *of = app_memory((size_t)(down * across), sizeof *of);
        for (int64_t i = 0; i < c->m; i++)
            for (int64_t j = 0; j < c->n; j++) of[i / t * across + j / t] += in[i * c->n + j];
        bug_box x = { app_memory((size_t)c->m, sizeof(int64_t)), app_memory((size_t)c->n, sizeof(int64_t)), 0, 0, 0 };
        char list[120] = "", where[200];
        for (int64_t q = 0; q < down * across; q++) {
            if (!of[q]) continue;
            const int64_t i = q / across * t, j = q % across * t;
            const int64_t h = c->m - i < t ? c->m - i : t, w = c->n - j < t ? c->n - j : t;
            full += 2 * of[q] > h * w;
            if (touched++ < 4)
                snprintf(list + strlen(list), sizeof list - strlen(list), " (%" PRId64 ", %" PRId64 ")", i, j);
            if (touched > 1) continue;
            for (int64_t k = 0; k < h; k++) x.row[x.rows++] = i + k;
            for (int64_t k = 0; k < w; k++) x.column[x.columns++] = j + k;
        }
        const bool good = touched && full == touched && 2 * touched <= down * across;
        snprintf(where, sizeof where, "%" PRId64 " tile%s of %" PRId64 " x %" PRId64 ", at%s%s", touched,
                 touched == 1 ? "" : "s", t, t, list, touched > 4 ? " ..." : "");
        const int before = s->count;
        if (good) look_inside(s, &x, where);
        if (good && s->count == before) {
            bug_finding *f = bug_add(s, 6, false);
            if (f) bug_say(f, "%s hold something else", where);
        }
        close_box(&x);
        free(of);
        if (good) return true;
    }
    return false;
}

void bug_regions(bug_search *s)
{
    const bug_case *c = s->c;
    if (c->before.differ == 0 || c->m * c->n < 2) return;
    unsigned char *in = app_memory((size_t)(c->m * c->n), 1);
    bug_box x;
    char where[280];
    mark_far(c, limit_of(c), in);
    open_box(c, in, &x);
    name_box(c, &x, where, sizeof where);
    const double area = (double)x.rows * (double)x.columns;
    const bool dense = (double)x.elements > 0.4 * area, small = area < 0.95 * (double)c->m * (double)c->n;
    const int before = s->count;
    if (x.elements && dense && small) look_inside(s, &x, where);
    if (x.elements && !(dense && small)) (void)look_at_tiles(s, in);
    const bool told = dense || (double)x.elements < 0.01 * (double)c->m * (double)c->n;
    if (x.elements && small && told && s->count == before) {
        bug_finding *f = bug_add(s, 6, false);
        if (f && x.elements == 1)
            bug_say(f, "one element differs by more than rounding: %s, by %.4g of its size", where, c->before.worst);
        else if (f)
            bug_say(f, "%s%s hold%s something else", where, dense ? "" : " (some of their elements)",
                    x.rows * x.columns == 1 ? "s" : "");
    }
    close_box(&x);
    free(in);
}

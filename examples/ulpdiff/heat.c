/* heat.c - where the differences lie, as a map in a terminal.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <math.h>

enum { LEVELS = UD_BUCKETS + 1 }; /* the buckets, and mismatches */

static const struct {
    char mark;
    int colour; /* of the 256 */
} level[LEVELS] = { { '.', 236 }, { '1', 24 }, { '2', 37 }, { '+', 150 }, { '#', 221 }, { '@', 202 }, { '!', 199 } };

static const char *name_of(int i) { return i < UD_BUCKETS ? ud_bucket_name[i] : "NaN, inf"; }

static int level_of(double u) { return isinf(u) ? UD_BUCKETS : ud_bucket(u); }

static int level_at(const ud_pair *p, int row, int column)
{
    return row < p->heat_rows ? level_of(p->sums.heat[row * UD_HEAT_COLUMNS + column]) : -1;
}

/* Two rows of cells in one line of text: the upper half is ink, the lower one paper. Only what changes is said. */
static void print_blocks(FILE *out, const ud_pair *p)
{
    for (int row = 0; row < p->heat_rows; row += 2) {
        int ink = -1, paper = -1;
        fputs("  ", out);
        for (int c = 0; c < p->heat_columns; c++) {
            const int high = level_at(p, row, c), low = level_at(p, row + 1, c);
            if (high != ink) fprintf(out, "\033[38;5;%dm", level[high].colour);
            if (low != paper) fprintf(out, "\033[48;5;%dm", level[low].colour);
            ink = high;
            paper = low;
            fputs("\xe2\x96\x80", out);
        }
        fputs("\033[0m\n", out);
    }
}

static void print_marks(FILE *out, const ud_pair *p)
{
    for (int row = 0; row < p->heat_rows; row++) {
        fputs("  ", out);
        for (int c = 0; c < p->heat_columns; c++) fputc(level[level_at(p, row, c)].mark, out);
        fputc('\n', out);
    }
}

/* How many levels there are. */
static int look(const ud_pair *p, bool seen[LEVELS])
{
    int levels = 0;
    for (int row = 0; row < p->heat_rows; row++)
        for (int c = 0; c < p->heat_columns; c++) seen[level_at(p, row, c)] = true;
    for (int i = 0; i < LEVELS; i++) levels += seen[i];
    return levels;
}

static void print_legend(FILE *out, const bool seen[LEVELS], bool colour)
{
    fputs("  ", out);
    for (int i = 0; i < LEVELS; i++) {
        if (!seen[i]) continue;
        if (colour)
            fprintf(out, "\033[48;5;%dm  \033[0m %s   ", level[i].colour, name_of(i));
        else
            fprintf(out, "%c %s   ", level[i].mark, name_of(i));
    }
    fputc('\n', out);
}

void ud_print_heat(FILE *out, const ud_pair *p, bool colour)
{
    bool seen[LEVELS] = { false };
    if (look(p, seen) < 2) {
        fprintf(out, "\n  they lie everywhere: a map of %d x %d parts shows one level\n", p->heat_rows,
                p->heat_columns);
        return;
    }
    fprintf(out, "\n  the most ulps in each part of %lld rows x %lld columns\n", (long long)p->a.rows,
            (long long)p->a.columns);
    (colour ? print_blocks : print_marks)(out, p);
    print_legend(out, seen, colour);
}

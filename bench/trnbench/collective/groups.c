/* groups.c - replica groups and sizes as people write them.
 * SPDX-License-Identifier: MIT
 */
#include "groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBER = 999999999 };

typedef struct reader {
    const char *text, *at;
    char *why;
    int *chip;
    int chips, room;
} reader;

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t') r->at++;
}

static bool taken(reader *r, char sign)
{
    skip_blanks(r);
    if (*r->at != sign) return false;
    r->at++;
    return true;
}

static bool unexpected(const reader *r, const char *what)
{
    const int position = (int)(r->at - r->text) + 1;
    if (!*r->at)
        snprintf(r->why, APP_WHY, "expected %s, such as 0-3,12-15, but the text ends", what);
    else if (isprint((unsigned char)*r->at))
        snprintf(r->why, APP_WHY, "expected %s, such as 0-3,12-15, but character %d is '%c'", what, position, *r->at);
    else
        snprintf(r->why, APP_WHY, "expected %s, such as 0-3,12-15, but character %d is no letter", what, position);
    return false;
}

static bool read_number(reader *r, int *number)
{
    skip_blanks(r);
    if (!isdigit((unsigned char)*r->at)) return unexpected(r, "the number of a chip");
    int64_t n = 0;
    for (; isdigit((unsigned char)*r->at); r->at++)
        if ((n = 10 * n + (*r->at - '0')) > MOST_NUMBER)
            return snprintf(r->why, APP_WHY, "a number is larger than %d", (int)MOST_NUMBER), false;
    *number = (int)n;
    return true;
}

static bool add(reader *r, int chip)
{
    if (r->chips == TB_GROUPS_CHIPS)
        return snprintf(r->why, APP_WHY, "more than %d chips", (int)TB_GROUPS_CHIPS), false;
    if (r->chips == r->room) {
        const int room = r->room ? 2 * r->room : 64;
        int *more = realloc(r->chip, sizeof *more * (size_t)room);
        if (!more) return app_refuse(r->why, "not enough memory for the groups");
        r->chip = more;
        r->room = room;
    }
    r->chip[r->chips++] = chip;
    return true;
}

/* 7, 0-3, 3-0 or 0-12:4 */
static bool read_item(reader *r)
{
    int first, last, step = 1;
    if (!read_number(r, &first)) return false;
    if (!taken(r, '-')) return add(r, first);
    if (!read_number(r, &last)) return false;
    if (taken(r, ':') && (!read_number(r, &step) || step < 1))
        return step < 1 ? app_refuse(r->why, "a step must be 1 or more") : false;
    const int way = last < first ? -1 : 1, count = (last - first) * way / step + 1;
    for (int i = 0; i < count; i++)
        if (!add(r, first + i * way * step)) return false;
    return true;
}

static bool read_groups(reader *r, tb_groups *found)
{
    do {
        const int before = r->chips;
        do
            if (!read_item(r)) return false;
        while (taken(r, ','));
        const int count = r->chips - before;
        if (found->groups++ == 0) found->count = count;
        if (count != found->count)
            return snprintf(r->why, APP_WHY, "group %d has %d chip%s and group 0 has %d: all must be of the same size",
                            found->groups - 1, count, count == 1 ? "" : "s", found->count),
                   false;
    } while (taken(r, ';'));
    skip_blanks(r);
    return *r->at ? unexpected(r, "',' or ';' or '-'") : true;
}

bool tb_groups_parse(tb_groups *groups, const char *text, char *why)
{
    reader r = { text, text, why, NULL, 0, 0 };
    tb_groups found = { 0, 0, NULL };
    if (!read_groups(&r, &found)) return free(r.chip), false;
    found.chip = r.chip;
    *groups = found;
    return true;
}

void tb_groups_free(tb_groups *groups)
{
    free(groups->chip);
    memset(groups, 0, sizeof *groups);
}

/* Chips of a row that follow each other with one step, from `at` on; step 0: there is one only. */
static int run_length(const int *chip, int left, int *step)
{
    int n = 1;
    *step = left > 1 ? chip[1] - chip[0] : 0;
    while (*step && n < left && chip[n] - chip[n - 1] == *step) n++;
    const bool worth = n > 2 || (n == 2 && (*step == 1 || *step == -1));
    if (!worth) *step = 0;
    return worth ? n : 1;
}

size_t tb_groups_text(const tb_groups *groups, char *text, size_t size)
{
    size_t written = 0;
    char item[64];
    if (size) text[0] = '\0';
    for (int g = 0; g < groups->groups; g++)
        for (int i = 0, n; i < groups->count; i += n) {
            const int *chip = groups->chip + (int64_t)g * groups->count + i;
            const char *before = i ? "," : g ? ";" : "";
            int step, length;
            n = run_length(chip, groups->count - i, &step);
            if (!step)
                length = snprintf(item, sizeof item, "%s%d", before, chip[0]);
            else if (step == 1 || step == -1)
                length = snprintf(item, sizeof item, "%s%d-%d", before, chip[0], chip[n - 1]);
            else
                length =
                    snprintf(item, sizeof item, "%s%d-%d:%d", before, chip[0], chip[n - 1], step < 0 ? -step : step);
            for (int c = 0; c <= length; c++)
                if (written + (size_t)c < size) text[written + (size_t)c] = item[c];
            written += (size_t)length;
        }
    if (size) text[size - 1] = '\0';
    return written;
}

bool tb_size_parse(const char *text, int64_t *bytes, char *why)
{
    static const char letters[] = "kmgt";
    static const char wrong[] =
        "expected bytes, such as 64, 8KB, 8KiB or 1M, from 1 to 1PiB; K, M, G and T are powers of 1024";
    const int64_t most = (int64_t)1 << 50;
    int64_t n = 0;
    int shift = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++)
        if ((n = 10 * n + (*at - '0')) > most) return app_refuse(why, wrong);
    const char *letter = *at ? strchr(letters, tolower((unsigned char)*at)) : NULL;
    if (at == text) return app_refuse(why, wrong);
    if (letter) {
        shift = 10 * (int)(letter - letters + 1);
        at++;
        if (*at == 'i' || *at == 'I') at++;
    }
    if (*at == 'b' || *at == 'B') at++;
    if (*at || n < 1 || n > most >> shift) return app_refuse(why, wrong);
    *bytes = n << shift;
    return true;
}

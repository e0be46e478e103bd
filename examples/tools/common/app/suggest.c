/* suggest.c - which of the known names did somebody mean? The one that is fewest letters away.
 * SPDX-License-Identifier: MIT
 */
#include "app.h"

#include <string.h>

enum { LONGEST = 48, FAR = 2 };

static int least(int a, int b) { return a < b ? a : b; }

/* Letters to insert, delete, replace, or exchange with their neighbour; LONGEST for what is too long to be meant. */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1]; /* of the letters of a: two back, one back, now */
    const int m = (int)strlen(a), n = (int)strlen(b);
    if (m > LONGEST || n > LONGEST) return LONGEST;
    for (int j = 0; j <= n; j++) row[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *now = row[i % 3], *before = row[(i - 1) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return row[m % 3][n];
}

void app_near(app_nearest *nearest, const char *name)
{
    const int letters = (int)(strlen(name) - strspn(name, "-"));
    const int d = distance(nearest->word, name);
    if (d > FAR || 2 * d >= letters || (nearest->name && d >= nearest->distance)) return;
    nearest->name = name;
    nearest->distance = d;
}

/* main.c - prints the version and the results' number when both halves of this program agree about them.
 * SPDX-License-Identifier: MIT
 */
#include "work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *narrow = "", *wide = "";
    const uint64_t first = work_narrow(&narrow), second = work_wide(&wide);
    printf("%s %016" PRIx64 "\n", narrow, first);
    return first > 15 && first == second && strcmp(narrow, wide) == 0 ? 0 : 1;
}

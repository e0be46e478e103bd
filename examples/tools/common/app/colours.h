/* colours.h - the one table of colours of all pages and pictures, for light and dark backgrounds.
 * SPDX-License-Identifier: MIT
 *
 * Text reaches a contrast of 4.5:1 on every background of its theme, marks reach 3:1, and --f0 ... --f5 stay apart
 * for people who see no red, no green or no blue: tests/cli/lib/check_colours.py computes all three from this table.
 */
#ifndef APP_COLOURS_H
#define APP_COLOURS_H

#include <stdio.h>

typedef struct app_colour_pair {
    const char *name, *light, *dark;
} app_colour_pair;

const app_colour_pair *app_colour_named(const char *name); /* without the dashes */
void app_colours_print(FILE *out);                         /* as variables of CSS, both themes */

#endif /* APP_COLOURS_H */

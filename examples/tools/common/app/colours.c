/* colours.c - the table of colours.
 * SPDX-License-Identifier: MIT
 */
#include "colours.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const app_colour_pair colour[] = {
    /* backgrounds: the page, what lies on it, the empty part of a bar, rules */
    { "bg", "#fbfbfa", "#111317" },
    { "card", "#ffffff", "#181b21" },
    { "track", "#eceef2", "#262a33" },
    { "line", "#e3e4e8", "#2a2e37" },
    { "shadow", "#1b1d2238", "#000000b0" },
    /* text */
    { "ink", "#1b1d22", "#eceef2" },
    { "soft", "#545b69", "#a7aebb" },
    { "faint", "#656c79", "#949cab" },
    /* words that judge */
    { "good", "#2f6b12", "#8fd05a" },
    { "warn", "#8a5a00", "#e8b13f" },
    { "bad", "#b3261e", "#ff8d84" },
    /* what limits a product; what others do */
    { "tensor", "#1855b3", "#7ca8fd" },
    { "hbm", "#c9650a", "#f5a04a" },
    { "dma", "#a03fb5", "#d68be6" },
    { "startup", "#6f7988", "#8f98a8" },
    { "peer", "#868d9a", "#7d8594" },
    /* one of several */
    { "f0", "#008b80", "#1bdfd0" },
    { "f1", "#bf841d", "#e8ad2b" },
    { "f2", "#1855b3", "#7ca8fd" },
    { "f3", "#c53e6f", "#f86f9d" },
    { "f4", "#7b70da", "#7d75c8" },
    { "f5", "#4c6f18", "#a4d68f" },
};

const app_colour_pair *app_colour_named(const char *name)
{
    for (size_t i = 0; i < sizeof colour / sizeof colour[0]; i++)
        if (!strcmp(colour[i].name, name)) return &colour[i];
    return &colour[0];
}

static void print_theme(FILE *out, bool dark)
{
    for (size_t i = 0; i < sizeof colour / sizeof colour[0]; i++)
        fprintf(out, "%s--%s:%s", i ? ";" : "", colour[i].name, dark ? colour[i].dark : colour[i].light);
}

void app_colours_print(FILE *out)
{
    fputs(":root{color-scheme:light dark;", out);
    print_theme(out, false);
    fputs("}@media screen and (prefers-color-scheme:dark){:root{", out);
    print_theme(out, true);
    fputs("}}", out);
}

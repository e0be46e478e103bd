/* progress.c - what is being measured, told on standard error while it is.
 * SPDX-License-Identifier: MIT
 */
#include "progress.h"

#include <stdarg.h>

#include "app/app.h"

void tb_stage(int number, int of, const char *format, ...)
{
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (app_colour(stderr))
        app_progress("%s, %d of %d", text, number, of);
    else
        fprintf(stderr, "%s: measuring %s, %d of %d\n", app_name, text, number, of);
}

void tb_step(const char *format, ...)
{
    char text[APP_WHY];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (app_colour(stderr)) app_progress("%s", text);
}

/* page.h - what the HTML reports share: one self-contained page that follows the reader's colour scheme.
 * SPDX-License-Identifier: MIT
 *
 * Colours are CSS variables (--ink, --soft, --faint, --line, --track, --peer, --f0 ... --f5, ...: colours.h) for pages
 * and inline SVG alike. Nothing is loaded from anywhere.
 */
#ifndef APP_PAGE_H
#define APP_PAGE_H

#include "app.h"

void app_page_open(FILE *out, const char *title); /* up to and with <main> */
void app_page_close(FILE *out);
void app_escape(FILE *out, const char *text);                   /* any text as text of HTML or SVG */
void app_fact(FILE *out, const char *number, const char *text); /* a tile; they stand in <div class=facts> */
void app_html_table(FILE *out, const app_table *table);

const char *app_si(char *text, size_t size, double value, const char *unit); /* 1.07e13, "flop/s": "10.7 Tflop/s" */
const char *app_percent(char *text, size_t size, double share);              /* 0.123: "12.3 %" */

#endif /* APP_PAGE_H */

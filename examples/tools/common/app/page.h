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
void app_html_table(FILE *out, const app_table *table);         /* it scrolls by itself */
/* What may be wider than a telephone stands between them: a region that scrolls, with a name, that keys reach. */
void app_scroll_open(FILE *out, const char *label);
void app_scroll_close(FILE *out);
/* The same around an SVG element of that many pixels, which is never scaled: its text stays as large as it is. */
void app_picture_open(FILE *out, double width, double height, const char *title, const char *about);
void app_picture_close(FILE *out);

const char *app_si(char *text, size_t size, double value, const char *unit); /* 1.07e13, "flop/s": "10.7 Tflop/s" */
const char *app_percent(char *text, size_t size, double share);              /* 0.123: "12.3 %" */

#endif /* APP_PAGE_H */

/* paper.h - keeps what a picture or a timeline writes. Include after cmocka.h.
 * SPDX-License-Identifier: MIT
 */
#ifndef TWIN_PAPER_H
#define TWIN_PAPER_H

#include <stdlib.h>
#include <string.h>

typedef struct paper {
    char *text;
    size_t used, room;
} paper;

static void keep(void *user, const char *text, size_t bytes)
{
    paper *p = (paper *)user;
    assert_true(bytes > 0);
    if (p->used + bytes + 1 > p->room) {
        p->room = 2 * (p->used + bytes) + 1;
        p->text = (char *)realloc(p->text, p->room);
        assert_non_null(p->text);
    }
    memcpy(p->text + p->used, text, bytes);
    p->used += bytes;
    p->text[p->used] = 0;
}

#endif /* TWIN_PAPER_H */

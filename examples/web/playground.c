/* playground.c - one question as a line of text in, one answer as a line of JSON out; for a page, and as a program.
 * SPDX-License-Identifier: MIT
 *
 *     echo 'numbers?x=0.1' | playground
 *
 * The page asks playground(), compiled to WebAssembly; the program reads questions from its standard input, one a line,
 * and prints what the page gets. So a test holds one against the other, text for text. A question that cannot be
 * answered gets {"error":"one sentence"}. All numbers come from trnmath.
 */
#include "ask.h"
#include "chance.h"
#include "choices.h"
#include "collective.h"
#include "numbers.h"
#include "plan.h"
#include "product.h"

typedef struct tool {
    const char *name;
    bool (*run)(const ask *q, answer *a, trn_error *why);
} tool;

static const tool tools[] = { { "lists", lists },           { "numbers", numbers }, { "product", multiply_in_steps },
                              { "collective", collective }, { "chance", chance },   { "plan", plans } };
enum { TOOLS = sizeof tools / sizeof tools[0] };

static bool run(const char *text, ask *q, answer *a, trn_error *why)
{
    if (!ask_read(q, text, why)) return false;
    for (int i = 0; i < TOOLS; i++)
        if (strcmp(q->tool, tools[i].name) == 0) return tools[i].run(q, a, why);
    return refuse(why, "there is no tool '%.40s'; there are lists, numbers, product, collective, chance and plan",
                  q->tool);
}

/* The answer to a question, valid until the next one. */
const char *playground(const char *question);

#if defined(__wasm__)
__attribute__((export_name("playground")))
#endif
const char *
playground(const char *question)
{
    static answer a;
    static ask q;
    trn_error why = { TRN_OK, "" };
    a.used = 0;
    a.lost = false;
    put_open(&a, NULL, '{');
    const bool ok = run(question, &q, &a, &why);
    if (!ok) {
        a.used = 0;
        put_open(&a, NULL, '{');
        put_text(&a, "error", why.text);
    }
    put_close(&a, '}');
    return a.lost ? "{\"error\":\"there is not enough memory for the answer\"}" : a.text;
}

#if defined(__wasm__)
/* Room for a question of so many bytes, its end included; NULL when there is none. Valid until the next. */
__attribute__((export_name("question_room"))) char *question_room(size_t bytes)
{
    static char *room;
    char *more = (char *)realloc(room, bytes);
    if (more) room = more;
    return more;
}
#else
/* The next line, cut where it is longer than any question; false at the end. */
static bool next_line(char *line, size_t size)
{
    if (!fgets(line, (int)size, stdin)) return false;
    if (!strchr(line, '\n'))
        for (int c = getchar(); c != '\n' && c != EOF;) c = getchar();
    line[strcspn(line, "\r\n")] = 0;
    return true;
}

int main(void)
{
    static char line[ASK_BYTES + 2];
    while (next_line(line, sizeof line)) {
        puts(playground(line));
        fflush(stdout);
    }
    return ferror(stdin) || ferror(stdout) ? 2 : 0;
}
#endif

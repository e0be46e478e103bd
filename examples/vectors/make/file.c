/* file.c - a file of vectors: its lines are kept until it is complete.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *folder_of_all = ".";

void vec_folder(const char *folder) { folder_of_all = folder; }

void vec_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("vectors: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void append(vec_text *t, const char *text, size_t size)
{
    if (t->size + size + 1 > t->room) {
        t->room = 2 * (t->size + size) + 4096;
        t->at = (char *)realloc(t->at, t->room);
        if (!t->at) vec_fail("there is no memory for a file of vectors");
    }
    memcpy(t->at + t->size, text, size);
    t->size += size;
    t->at[t->size] = '\0';
}

/* ---- the head ---- */

void vec_head(vec_file *f, const char *key, const char *format, ...)
{
    char line[1024];
    int size = snprintf(line, sizeof line, "# %s: ", key);
    va_list args;
    va_start(args, format);
    size += vsnprintf(line + size, sizeof line - (size_t)size, format, args);
    va_end(args);
    if (size < 0 || size >= (int)sizeof line) vec_fail("%s: the line of %s is too long", f->name, key);
    append(&f->head, line, (size_t)size);
    append(&f->head, "\n", 1);
}

vec_file vec_open(const char *operation, const char *format, ...)
{
    vec_file f;
    memset(&f, 0, sizeof f);
    va_list args;
    va_start(args, format);
    vsnprintf(f.name, sizeof f.name, format, args);
    va_end(args);
    append(&f.head, "# trnmath-vectors 1\n", 20);
    vec_head(&f, "by", "trnmath %s", TRN_VERSION);
    vec_head(&f, "name", "%s", f.name);
    vec_head(&f, "operation", "%s", operation);
    return f;
}

void vec_columns(vec_file *f, const char *in, const char *out)
{
    vec_head(f, "in", "%s", in);
    vec_head(f, "out", "%s", out);
}

void vec_known(vec_file *f, const char *provenance, const char *source)
{
    vec_head(f, "provenance", "%s", provenance);
    vec_head(f, "source", "%s", source);
}

void vec_close(vec_file *f)
{
    char path[4096];
    vec_head(f, "vectors", "%ld", f->vectors);
    if (snprintf(path, sizeof path, "%s/%s.txt", folder_of_all, f->name) >= (int)sizeof path)
        vec_fail("the folder's name is too long");
    FILE *file = fopen(path, "wb");
    if (!file) vec_fail("%s: it cannot be created (%s)", path, strerror(errno));
    const size_t head = fwrite(f->head.at, 1, f->head.size, file);
    const size_t body = fwrite(f->body.at, 1, f->body.size, file);
    if (fclose(file) != 0 || head != f->head.size || body != f->body.size)
        vec_fail("%s: it cannot be written (%s)", path, strerror(errno));
    free(f->head.at);
    free(f->body.at);
}

/* ---- vectors ---- */

void vec_begin(vec_file *f, const char *kind)
{
    if (!f->kind || strcmp(f->kind, kind) != 0) {
        append(&f->body, "# case: ", 8);
        append(&f->body, kind, strlen(kind));
        append(&f->body, "\n", 1);
        f->kind = kind;
    }
    f->begun = false;
}

void vec_word(vec_file *f, int digits, uint64_t word)
{
    char text[24];
    const int size = snprintf(text, sizeof text, "%s%0*llx", f->begun ? " " : "", digits, (unsigned long long)word);
    append(&f->body, text, (size_t)size);
    f->begun = true;
}

void vec_words(vec_file *f, int digits, const uint32_t *word, int count)
{
    for (int i = 0; i < count; i++) vec_word(f, digits, word[i]);
}

void vec_arrow(vec_file *f) { append(&f->body, " ->", 3); }

void vec_end(vec_file *f)
{
    append(&f->body, "\n", 1);
    f->vectors++;
}

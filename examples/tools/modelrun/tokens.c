/* tokens.c - the text as tokens: a file of numbers, or words that the model's tokenizer.json cuts.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <stdlib.h>

#include "io/tokenizer.h"

/* ---- numbers between blanks or commas; an empty line begins another sequence ---- */

enum { MOST_TOKENS = 1 << 26 };

typedef struct scan {
    const char *at, *end, *name;
    int64_t vocab, line;
    mr_text *text;
    char *why;
} scan;

static bool add_sequence(mr_text *t)
{
    const int64_t last = t->sequences ? t->first[t->sequences] : 0;
    if (t->tokens == last) return true; /* nothing since */
    t->first = app_resize(t->first, (size_t)t->sequences + 2, sizeof *t->first);
    t->first[0] = 0;
    t->first[++t->sequences] = t->tokens;
    return true;
}

static bool take_number(scan *s)
{
    int64_t value = 0;
    const char *from = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && value < s->vocab; s->at++)
        value = value * 10 + (*s->at - '0');
    if (s->at == from)
        return io_fail(s->why, s->name, "line %lld has something that is no number of a token", (long long)s->line);
    if (value >= s->vocab)
        return io_fail(s->why, s->name, "line %lld has a token of %lld or more, and the vocabulary has %lld",
                       (long long)s->line, (long long)value, (long long)s->vocab);
    if (s->text->tokens == MOST_TOKENS) return io_fail(s->why, s->name, "it has more than 2^26 tokens");
    if (s->text->tokens % 4096 == 0)
        s->text->token = app_resize(s->text->token, (size_t)s->text->tokens + 4096, sizeof *s->text->token);
    s->text->token[s->text->tokens++] = (int32_t)value;
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ','; }

bool mr_tokens_parse(const char *bytes, size_t size, const char *name, int64_t vocab, mr_text *text, char *why)
{
    scan s = { bytes, bytes + size, name, vocab, 1, text, why };
    bool empty = true; /* the line, so far */
    memset(text, 0, sizeof *text);
    while (s.at < s.end) {
        if (*s.at == '\n') {
            if (empty) add_sequence(text);
            empty = true;
            s.line++;
            s.at++;
        } else if (is_blank(*s.at))
            s.at++;
        else if (!take_number(&s))
            return mr_text_free(text), false;
        else
            empty = false;
    }
    add_sequence(text);
    return text->tokens > 0 || io_fail(why, name, "it has no tokens");
}

/* ---- words ---- */

static bool take_words(const mr_options *o, const io_map *map, int64_t vocab, mr_text *text, char *why)
{
    bpe_ids ids = { NULL, 0, 0 };
    if (!tok_encode(text->tokenizer, map->bytes, map->size, true, &ids, why)) return bpe_ids_free(&ids), false;
    bool ok = ids.count > 0 || io_fail(why, o->text, "it has no tokens");
    if (ok && ids.count > MOST_TOKENS) ok = io_fail(why, o->text, "it has more than 2^26 tokens");
    for (size_t i = 0; i < (size_t)ids.count && ok; i++)
        if (ids.id[i] < 0 || ids.id[i] >= vocab)
            ok = io_fail(why, o->text, "its tokenizer makes token %lld, and the vocabulary has %lld",
                         (long long)ids.id[i], (long long)vocab);
    if (ok) {
        text->tokens = (int64_t)ids.count;
        text->token = app_memory((size_t)ids.count, sizeof *text->token);
        for (size_t i = 0; i < (size_t)ids.count; i++) text->token[i] = (int32_t)ids.id[i];
        add_sequence(text);
    }
    bpe_ids_free(&ids);
    return ok;
}

static bool read_words(const mr_options *o, int64_t vocab, mr_text *text, char *why)
{
    char *path = ckpt_inside(o->folder, "tokenizer.json");
    io_map map;
    if (!path) return io_fail(why, o->folder, "there is not enough memory to read it");
    memset(text, 0, sizeof *text);
    tok *t = app_memory(1, sizeof *t);
    bool ok = tok_open(path, t, why);
    free(path);
    if (!ok)
        free(t);
    else
        text->tokenizer = t;
    ok = ok && io_map_open(o->text, &map, why);
    if (!ok) return mr_text_free(text), false;
    ok = take_words(o, &map, vocab, text, why);
    io_map_close(&map);
    if (!ok) mr_text_free(text);
    return ok;
}

/* ---- any text ---- */

static void cut(mr_text *text, int64_t limit)
{
    if (!limit || text->tokens <= limit) return;
    text->tokens = limit;
    while (text->sequences > 1 && text->first[text->sequences - 1] >= limit) text->sequences--;
    text->first[text->sequences] = limit;
}

bool mr_text_read(const mr_options *o, int64_t vocab, mr_text *text, char *why)
{
    io_map map;
    bool ok;
    if (o->text)
        ok = read_words(o, vocab, text, why);
    else if (!io_map_open(o->tokens, &map, why))
        return false;
    else {
        ok = mr_tokens_parse((const char *)map.bytes, map.size, o->tokens, vocab, text, why);
        io_map_close(&map);
    }
    if (ok) cut(text, o->limit);
    return ok;
}

void mr_text_free(mr_text *text)
{
    if (text->tokenizer) tok_close(text->tokenizer);
    free(text->tokenizer);
    free(text->token);
    free(text->first);
    memset(text, 0, sizeof *text);
}

void mr_text_print(FILE *out, const mr_text *text, const int32_t *token, int64_t count)
{
    char why[IO_WHY];
    size_t size = 0;
    char *words = text->tokenizer ? tok_decode(text->tokenizer, token, (size_t)count, &size, why) : NULL;
    for (int64_t i = 0; i < count && !words; i++) fprintf(out, i ? " %d" : "%d", (int)token[i]);
    for (size_t at = 0, n; at < size; at += n) { /* lines and tabs stay; what else steers a terminal is shown */
        char one[IO_SHOWN_ONE];
        n = io_shown_next(words + at, size - at, one);
        if (words[at] == '\n' || words[at] == '\t')
            fputc(words[at], out);
        else
            fputs(one, out);
    }
    fputc('\n', out);
    free(words);
}

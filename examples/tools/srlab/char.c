/* char.c - a text, and the model that learns to spell from it.
 * SPDX-License-Identifier: MIT
 */
#include "transformer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/io.h"
#include "srlab.h"

/* ---- the text: a word list, or any file, as symbols ---- */

static const char word_list[] = "/usr/share/dict/words";

enum { MOST = 64 << 20 }; /* bytes that are read */

static unsigned char *read_bytes(FILE *in, int64_t *size)
{
    size_t capacity = 1 << 16, got = 0;
    unsigned char *bytes = NULL, *more;
    for (;;) {
        if (!(more = realloc(bytes, capacity))) return free(bytes), NULL;
        bytes = more;
        got += fread(bytes + got, 1, capacity - got, in);
        if (got < capacity || got >= MOST) break;
        capacity *= 2;
    }
    *size = (int64_t)got;
    return bytes;
}

static unsigned char *read_all(const char *path, int64_t *size, char *why)
{
    if (!io_reading(path, why)) return NULL;
    FILE *in = fopen(path, "rb");
    unsigned char *bytes = NULL;
    if (in) {
        bytes = read_bytes(in, size);
        if (ferror(in))
            free(bytes), bytes = NULL;
        else
            errno = bytes ? 0 : ENOMEM;
    }
    if (!bytes) snprintf(why, APP_WHY, "%s: it cannot be read (%s)", path, strerror(errno));
    if (in) fclose(in);
    return bytes;
}

/* ---- the word list: words of a to z, shuffled ---- */

static bool is_word(const unsigned char *at, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        if (at[i] < 'a' || at[i] > 'z') return false;
    return length > 1;
}

static int64_t find_words(const unsigned char *bytes, int64_t size, int64_t *start)
{
    int64_t words = 0, from = 0;
    for (int64_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') continue;
        if (is_word(bytes + from, i - from)) start[words++] = from;
        from = i + 1;
    }
    return words;
}

static int64_t shuffle_words(unsigned char *bytes, int64_t size)
{
    unsigned char *copy = app_memory((size_t)size, 1);
    int64_t *start = app_memory((size_t)size / 3 + 1, sizeof *start), at = 0;
    const int64_t words = find_words(bytes, size, start);
    for (int64_t i = words - 1; i > 0; i--) {
        const int64_t j = (int64_t)(trn_random_u32(1, 0, (uint64_t)i) % (uint64_t)(i + 1)), keep = start[i];
        start[i] = start[j];
        start[j] = keep;
    }
    for (int64_t i = 0; i < words; i++) {
        const int64_t length =
            (const unsigned char *)memchr(bytes + start[i], '\n', (size_t)(size - start[i])) - (bytes + start[i]) + 1;
        memcpy(copy + at, bytes + start[i], (size_t)length);
        at += length;
    }
    memcpy(bytes, copy, (size_t)at);
    free(copy);
    free(start);
    return at;
}

/* ---- symbols ---- */

static void number_symbols(sr_text *t)
{
    int code[256];
    for (int c = 0; c < 256; c++) {
        code[c] = memchr(t->symbol, c, (size_t)t->count) ? t->symbols : -1;
        if (code[c] >= 0) t->letter[t->symbols++] = (unsigned char)c;
    }
    for (int64_t i = 0; i < t->count; i++) t->symbol[i] = (uint8_t)code[t->symbol[i]];
}

bool sr_text_read(const char *path, sr_text *t, char *why)
{
    memset(t, 0, sizeof *t);
    t->symbol = read_all(path ? path : word_list, &t->count, why);
    if (!t->symbol && !path)
        snprintf(why, APP_WHY, "%s: there is no word list; install wamerican, or give --text FILE", word_list);
    if (!t->symbol) return false;
    if (!path) t->count = shuffle_words(t->symbol, t->count);
    t->train = t->count - t->count / 20;
    if (t->count) number_symbols(t);
    return true;
}

void sr_text_free(sr_text *t) { free(t->symbol); }

/* ---- the model: windows of text, held-out text, and words of its own ---- */

enum { WINDOWS = 128 }; /* of held-out text, at most */

static const void *read_data(const sr_settings *s, char *why)
{
    sr_text *text = app_memory(1, sizeof *text);
    const char *path = s->text ? s->text : "the word list";
    if (!sr_text_read(s->text, text, why)) return free(text), NULL;
    if (text->count - text->train > s->context) return text;
    snprintf(why, APP_WHY, "%s: %lld characters are too few; a context of %d needs %d", path, (long long)text->count,
             s->context, 20 * (s->context + 1));
    sr_text_free(text);
    return free(text), NULL;
}

static void free_data(const void *data)
{
    sr_text *text = (sr_text *)(uintptr_t)data;
    sr_text_free(text);
    free(text);
}

static sr_model *make(const sr_settings *s, const sr_arm *arm, uint64_t seed, const void *data)
{
    return tf_make(s, arm, seed, data);
}

static sr_weights *weights(sr_model *m) { return &m->weights; }
static sr_workspace *workspace(sr_model *m, int shard) { return &m->shard[shard].s.workspace; }

/* ---- training ---- */

static void take_window(const sr_model *m, tf_shard *h, int sequence, int64_t from)
{
    const int t = m->shape.context;
    for (int i = 0; i < t; i++) {
        h->symbol[sequence * t + i] = m->text->symbol[from + i];
        h->target[sequence * t + i] = m->text->symbol[from + i + 1];
    }
}

static sr_score step(sr_model *m, int shard, int64_t number)
{
    tf_shard *h = &m->shard[shard];
    const int sequences = m->shape.sequences;
    for (int i = 0; i < sequences; i++) {
        const uint64_t index = ((uint64_t)number * SR_SHARDS + (uint64_t)shard) * (uint64_t)sequences + (uint64_t)i;
        const uint64_t word = trn_random_u32(m->weights.seed, SR_STREAM(SR_BATCH), index);
        take_window(m, h, i, (int64_t)(word * (uint64_t)(m->text->train - m->shape.context) >> 32));
    }
    tf_forward(m, h, sequences);
    const sr_score score =
        sr_loss(h->logits, h->target, m->shape.tokens, m->shape.symbols, SR_SHARDS * m->shape.tokens, true);
    tf_backward(m, h, sequences);
    return score;
}

/* ---- validation ---- */

static int windows(const sr_model *m)
{
    const int64_t most = (m->text->count - m->text->train - 1) / m->shape.context;
    return most < WINDOWS ? (int)most : WINDOWS;
}

static int groups(const sr_model *m) { return (windows(m) + m->shape.sequences - 1) / m->shape.sequences; }

static sr_score validate(sr_model *m, int shard, int group)
{
    tf_shard *h = &m->shard[shard];
    const int first = group * m->shape.sequences, left = windows(m) - first;
    const int sequences = left < m->shape.sequences ? left : m->shape.sequences;
    for (int i = 0; i < sequences; i++) take_window(m, h, i, m->text->train + (int64_t)(first + i) * m->shape.context);
    tf_forward(m, h, sequences);
    const int64_t tokens = (int64_t)sequences * m->shape.context;
    return sr_loss(h->logits, h->target, tokens, m->shape.symbols, tokens, false);
}

/* ---- words ---- */

static int draw_symbol(const sr_model *m, float *logits, uint32_t word)
{
    float sums[2], sum = 0;
    const float at = (float)(word >> 8) * 0x1p-24f;
    sr_softmax(logits, 1, m->shape.symbols, 1, sums);
    for (int i = 0; i < m->shape.symbols; i++)
        if ((sum += logits[i]) > at) return i;
    return m->shape.symbols - 1;
}

static int next_symbol(sr_model *m, const int *written, int count, int index)
{
    tf_shard *h = &m->shard[0];
    const int t = m->shape.context, known = count < t ? count : t;
    memset(h->symbol, 0, (size_t)t * sizeof *h->symbol);
    memcpy(h->symbol, written + count - known, (size_t)known * sizeof *written);
    tf_forward(m, h, 1);
    return draw_symbol(m, h->logits + (known - 1) * m->shape.symbols,
                       trn_random_u32(m->weights.seed, SR_STREAM(SR_SAMPLE), (uint64_t)index));
}

/* Words (or lines of another text) that follow the first held-out characters; newlines become spaces. */
static char *sample(sr_model *m, int words)
{
    const int most = 16 * words, prompt = m->shape.context < 8 ? m->shape.context : 8;
    int *written = app_memory((size_t)(most + prompt), sizeof *written), count = prompt, lines = 0;
    char *said = app_memory((size_t)most + 1, 1);
    bool begun = !memchr(m->text->letter, '\n', (size_t)m->shape.symbols); /* else after the prompt's last word */
    for (int i = 0; i < prompt; i++) written[i] = m->text->symbol[m->text->train + i];
    for (int i = 0, out = 0; i < most && lines < words; i++, count++) {
        written[count] = next_symbol(m, written, count, i);
        const unsigned char letter = m->text->letter[written[count]];
        if (begun) said[out++] = letter < 32 ? ' ' : letter > 126 ? '?' : (char)letter;
        lines += begun && letter == '\n';
        begun = begun || letter == '\n';
    }
    free(written);
    return said;
}

const sr_kind sr_char = { "char",
                          "A character-level transformer",
                          "nats per character",
                          read_data,
                          free_data,
                          make,
                          tf_free,
                          weights,
                          workspace,
                          step,
                          groups,
                          validate,
                          sample,
                          sr_export_model };

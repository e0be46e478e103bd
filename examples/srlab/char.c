/* char.c - the transformer as a kind of model: windows of text, held-out text, and words of its own.
 * SPDX-License-Identifier: MIT
 */
#include "transformer.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 128 }; /* of held-out text, at most */

static const void *read_data(const sr_settings *s, char *why)
{
    sr_text *text = sr_room(1, sizeof *text);
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
static sr_bench *bench(sr_model *m, int shard) { return &m->shard[shard].s.bench; }

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

static sr_score judge(sr_model *m, int shard, int group)
{
    tf_shard *h = &m->shard[shard];
    const int first = group * m->shape.sequences, left = windows(m) - first;
    const int sequences = left < m->shape.sequences ? left : m->shape.sequences;
    for (int i = 0; i < sequences; i++)
        take_window(m, h, i, m->text->train + (int64_t)(first + i) * m->shape.context);
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
    int *written = sr_room((size_t)(most + prompt), sizeof *written), count = prompt, lines = 0;
    char *said = sr_room((size_t)most + 1, 1);
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

const sr_kind sr_char = { "char",  "A character-level transformer", "nats per character", read_data, free_data, make,
                          tf_free, weights, bench, step, groups, judge, sample };

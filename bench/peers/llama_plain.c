/* llama_plain.c - a Llama in plain loops, a peer of modelrun: compiled with -Ofast for this very machine.
 * SPDX-License-Identifier: MIT
 */
#include "llama_plain.h"

#include <math.h>
#include <string.h>

static inline float number(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

long llama_plain_scratch(const llama_plain *m)
{
    return 3L * m->hidden + 2L * m->heads * m->head_dim + 2L * m->intermediate + (long)m->heads * m->capacity;
}

long llama_plain_cache(const llama_plain *m) { return 2L * m->layers * m->kv_heads * m->capacity * m->head_dim; }

static void matmul(float *restrict y, const float *restrict x, const uint16_t *restrict w, int n, int rows)
{
    int i;
#pragma omp parallel for private(i)
    for (i = 0; i < rows; i++) {
        float sum = 0;
        for (int j = 0; j < n; j++) sum += number(w[(long)i * n + j]) * x[j];
        y[i] = sum;
    }
}

static void rms_norm(float *y, const float *x, const uint16_t *w, int n, float eps)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    const float scale = 1 / sqrtf(sum / (float)n + eps);
    for (int i = 0; i < n; i++) y[i] = x[i] * scale * number(w[i]);
}

static void rotate(float *x, int heads, int n, int position, float theta)
{
    for (int i = 0; i < n / 2; i++) {
        const float angle = (float)position * powf(theta, -2 * (float)i / (float)n), c = cosf(angle), s = sinf(angle);
        for (int h = 0; h < heads; h++) {
            float *low = x + h * n + i, *high = low + n / 2;
            const float a = *low, b = *high;
            *low = a * c - b * s;
            *high = b * c + a * s;
        }
    }
}

/* keys, values: [position, kv_heads, head_dim]. */
static void attend(const llama_plain *m, const float *q, const float *keys, const float *values, int position,
                   float *scores, float *out)
{
    const int n = m->head_dim, group = m->heads / m->kv_heads, step = m->kv_heads * n;
    int h;
#pragma omp parallel for private(h)
    for (h = 0; h < m->heads; h++) {
        float *s = scores + (long)h * m->capacity, *y = out + h * n, most = -INFINITY, sum = 0;
        for (int t = 0; t <= position; t++) {
            float dot = 0;
            for (int i = 0; i < n; i++) dot += q[h * n + i] * keys[(long)t * step + h / group * n + i];
            s[t] = dot / sqrtf((float)n);
            most = s[t] > most ? s[t] : most;
        }
        for (int t = 0; t <= position; t++) sum += s[t] = expf(s[t] - most);
        memset(y, 0, sizeof *y * (unsigned)n);
        for (int t = 0; t <= position; t++)
            for (int i = 0; i < n; i++) y[i] += s[t] / sum * values[(long)t * step + h / group * n + i];
    }
}

void llama_plain_step(const llama_plain *m, float *cache, int token, int position, float *logits)
{
    const int hidden = m->hidden, wide = m->heads * m->head_dim, narrow = m->kv_heads * m->head_dim;
    float *h = m->scratch, *x = h + hidden, *y = x + hidden, *q = y + hidden, *out = q + wide, *gate = out + wide;
    float *up = gate + m->intermediate, *scores = up + m->intermediate;
    for (int i = 0; i < hidden; i++) h[i] = number(m->embed[(long)token * hidden + i]);
    for (int l = 0; l < m->layers; l++) {
        const llama_plain_layer *w = &m->layer[l];
        float *keys = cache + 2L * l * m->capacity * narrow, *values = keys + (long)m->capacity * narrow;
        rms_norm(x, h, w->norm[0], hidden, m->eps);
        matmul(q, x, w->q, hidden, wide);
        matmul(keys + (long)position * narrow, x, w->k, hidden, narrow);
        matmul(values + (long)position * narrow, x, w->v, hidden, narrow);
        rotate(q, m->heads, m->head_dim, position, m->theta);
        rotate(keys + (long)position * narrow, m->kv_heads, m->head_dim, position, m->theta);
        attend(m, q, keys, values, position, scores, out);
        matmul(y, out, w->o, wide, hidden);
        for (int i = 0; i < hidden; i++) h[i] += y[i];
        rms_norm(x, h, w->norm[1], hidden, m->eps);
        matmul(gate, x, w->gate, hidden, m->intermediate);
        matmul(up, x, w->up, hidden, m->intermediate);
        for (int i = 0; i < m->intermediate; i++) gate[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
        matmul(y, gate, w->down, m->intermediate, hidden);
        for (int i = 0; i < hidden; i++) h[i] += y[i];
    }
    rms_norm(x, h, m->norm, hidden, m->eps);
    matmul(logits, x, m->head, hidden, m->vocab);
}

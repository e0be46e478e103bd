/* rope.c - the angles of positions, scaled as the configuration says.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: "RoFormer" (arXiv 2104.09864), "YaRN" (arXiv 2309.00071), "LongRoPE" (arXiv 2402.13753), and what
 * transformers makes of them: frequencies in binary32, angles as binary32 products of position and frequency.
 */
#include "engine.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double plain(const mr_rope_rule *r, int64_t i, int64_t n) { return pow(r->theta, -2.0 * (double)i / (double)n); }

/* A divisor for each pair. */
static double frequency_long(const mr_rope_rule *r, int64_t i, int64_t n)
{
    return plain(r, i, n) / (double)r->divide[i];
}

static double frequency_linear(const mr_rope_rule *r, int64_t i, int64_t n) { return plain(r, i, n) / r->factor; }

/* Long waves are stretched, short ones are not, and those between, if there are any, by parts. */
static double frequency_llama3(const mr_rope_rule *r, int64_t i, int64_t n)
{
    const double f = plain(r, i, n), turns = r->original * f / (2 * pi);
    if (turns < r->low_freq) return f / r->factor;
    if (turns >= r->high_freq) return f;
    const double share = (turns - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - share) * f / r->factor + share * f;
}

/* The dimension whose wave turns so often within the original length. */
static double yarn_dimension(const mr_rope_rule *r, double turns, int64_t n)
{
    return (double)n * log(r->original / (turns * 2 * pi)) / (2 * log(r->theta));
}

static double frequency_yarn(const mr_rope_rule *r, int64_t i, int64_t n)
{
    double low = yarn_dimension(r, r->beta_fast, n), high = yarn_dimension(r, r->beta_slow, n);
    if (r->truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0);
    high = fmin(high, (double)n - 1);
    if (low == high) high += 0.001;
    const double stretched = fmin(fmax(((double)i - low) / (high - low), 0), 1), f = plain(r, i, n);
    return stretched * f / r->factor + (1 - stretched) * f;
}

void mr_rope_tables(const mr_rope_rule *rule, int64_t n, int64_t positions, float *cosine, float *sine)
{
    static double (*const frequency[])(const mr_rope_rule *, int64_t, int64_t) = {
        [MR_ROPE_DEFAULT] = plain,       [MR_ROPE_LINEAR] = frequency_linear, [MR_ROPE_LLAMA3] = frequency_llama3,
        [MR_ROPE_YARN] = frequency_yarn, [MR_ROPE_LONG] = frequency_long,
    };
    for (int64_t i = 0; i < n / 2; i++) {
        const float f = (float)frequency[rule->kind](rule, i, n);
        for (int64_t t = 0; t < positions; t++) {
            const float angle = (float)t * f;
            cosine[t * (n / 2) + i] = (float)(cos((double)angle) * rule->attention);
            sine[t * (n / 2) + i] = (float)(sin((double)angle) * rule->attention);
        }
    }
}

/* read.c - how fast this host reads memory in a plain loop: the bound of a product with a single row.
 * SPDX-License-Identifier: MIT
 */
#include "host.h"

#include "app/app.h"
#include "kernels.h"

/* Adds nothing up that matters: the loads are the point. */
TB_BODY void xor_words_body(uint64_t *result, const uint64_t *words, size_t n)
{
    uint64_t s[64] = { 0 };
    for (size_t i = 0; i + 64 <= n; i += 64)
        for (int j = 0; j < 64; j++) s[j] ^= words[i + (size_t)j];
    for (int j = 0; j < 64; j++) *result ^= s[j];
}
TB_KERNELS(xor_words, (uint64_t * result, const uint64_t *words, size_t n), (result, words, n))

double tb_read_rate(const void *data, size_t bytes, int threads, trn_isa isa)
{
    static volatile uint64_t sink;
    const size_t words = bytes / sizeof(uint64_t) / (size_t)threads;
    const double start = app_now();
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads)
#endif
    for (int t = 0; t < threads; t++) {
        uint64_t result = 0;
        xor_words_for(isa)(&result, (const uint64_t *)data + words * (size_t)t, words);
        sink = result;
    }
    (void)sink;
    return (double)bytes / (app_now() - start);
}

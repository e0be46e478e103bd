/* fuzz_unit.c - products around the edge of what a matrix unit may do, against loops of fmaf.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_unit [count] [seed]
 *
 * Tiles and pairs emulated in plain C take part on every host, those of the processor where it has them. At the end it
 * says what the units did: a fuzzer none of whose sums was exact, or all of them, would prove nothing.
 */
#include "fuzz/fail.h"

#include "twin/unit_cases.h"

static uint64_t rng;

int main(int argc, char **argv)
{
    trn_matmul_units counts[UNIT_ISAS];
    memset(counts, 0, sizeof counts);
    fuzzing_start(argc, argv, 120, 3000);
    while (fuzzing_next(&rng)) {
        problem p;
        const bool large = cases_one_in(&rng, 20);
        unit_problem(&p, large ? 230 : 80, large ? 100 : 60, large ? 700 : 300, &rng);
        unit_ask(&p, counts, &rng);
        problem_free(&p);
    }
    const long cases = fuzzing_end();
    printf("%ld products\n", cases);
    for (int i = 0; i < UNIT_ISAS; i++)
        printf("  %-14s blocks: %lld vectors, %lld half, %lld chains, %lld whole, %lld pairs\n",
               trn_isa_text(unit_isas[i]), (long long)counts[i].vectors, (long long)counts[i].half,
               (long long)counts[i].chains, (long long)counts[i].whole, (long long)counts[i].pairs);
    /* Too few cases need not have every way. */
    if (cases < 100) return 0;
    return counts[0].half && counts[0].chains && counts[0].whole && counts[0].vectors && counts[1].pairs &&
                   counts[1].vectors
               ? 0
               : 1;
}

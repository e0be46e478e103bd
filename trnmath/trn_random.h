/* trn_random.h - random words: Philox4x32-10 as a pure function, and models of the chip's own generators.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_random.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         uint32_t word[4];
 *         trn_random_fill(word, 4, 1, 0, 40, TRN_ISA_AUTO);            // seed 1, stream 0, words 40 to 43
 *         printf("%08x\n", (unsigned)word[2]);
 *         if (word[2] != trn_random_u32(1, 0, 42)) return 1;
 *
 *         trn_xorwow_vector g;                                         // Trainium3's Vector engine
 *         trn_xorwow_vector_seed(&g, 1);
 *         trn_xorwow_vector_words(&g, word, 4, TRN_ISA_AUTO);          // one word from each state of lane 0
 *         printf("%08x\n", (unsigned)word[0]);
 *         return 0;
 *     }
 *
 * DOES: counter-based random words. Element i of a tensor always sees the same word, whatever the thread count, the
 *     chunking or the instruction set. Key = seed (low, high); counter = {index / 4 low, high, stream low, high};
 *     the result is word index mod 4 of the block. And the engines' own generators, as states that the caller owns:
 *     XORWOW (GpSimd, and the Vector engine of Trainium3), and a stand-in for the older Vector engines' LFSR.
 * DOES NOT: draw floats, or keep a state of its own. The generators with states are for one thread each.
 *
 * CONTENTS
 *   number/random.h: Philox4x32-10, and the generators of the chip.
 *     trn_philox4x32_10   one block of four words
 *     trn_random_u32      one word
 *     trn_random_field    n random bits for element i, as stochastic rounding takes them
 *     trn_random_fill     many consecutive words
 *     trn_random_fields   many consecutive fields, one per word
 *     trn_xorwow          one XORWOW generator, six words: a partition of GpSimd
 *     trn_xorwow_next, trn_xorwow_seed, trn_xorwow_set_state
 *     trn_xorwow_vector   the 128 lanes x 4 states of Trainium3's Vector engine
 *     trn_xorwow_vector_words, trn_xorwow_vector_seed, trn_xorwow_vector_get_state, trn_xorwow_vector_set_state
 *     trn_lfsr            one linear feedback shift register of 128 bits
 *     trn_lfsr_next, trn_lfsr_seed, trn_lfsr_set_state
 *     trn_lfsr_vector     128 of them, the lanes of Trainium1's and Trainium2's Vector engine
 *     trn_lfsr_vector_words, trn_lfsr_vector_seed, trn_lfsr_vector_get_state, trn_lfsr_vector_set_state
 *
 * KNOWN FROM: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, and the known-answer
 *     vectors of Random123. XORWOW: Marsaglia, "Xorshift RNGs", J. Stat. Software 8(14), 2003; that the engines use it,
 *     and the shapes of their states ([P, 6] on GpSimd, [128, 24] on Trainium3's Vector engine): documented by NKI
 *     (rand_set_state, rand_get_state); its constants, the order of the words and how a seed becomes states: assumed.
 *     That the older Vector engines have an LFSR: documented; everything else about it: assumed.
 */
#ifndef TRN_RANDOM_H
#define TRN_RANDOM_H

#include "base/words_begin.h"

#include "number/random.h"

#include "base/words_end.h"

#endif /* TRN_RANDOM_H */

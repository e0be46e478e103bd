/* trn_systolic_feed_avx2.h - lines of F16 for trn_systolic_feed.h in AVX2 with F16C.
 * SPDX-License-Identifier: MIT
 *
 * A guest: same bits as the plain C bodies. Included by trn_systolic_feed.h only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_SYSTOLIC_FEED_H
#include "../trn_systolic_feed.h" /* which includes this file where it belongs */
#elif !defined(TRN_SYSTOLIC_FEED_AVX2_H)
#define TRN_SYSTOLIC_FEED_AVX2_H

#include "trn_vector_avx2.h"
#define TRNI_V_FEED 1
#include "trn_systolic_feed_vector.h"
#endif /* TRN_SYSTOLIC_FEED_AVX2_H */

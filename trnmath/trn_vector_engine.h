/* trn_vector_engine.h - the Vector engine, whole: its rooms, and which instruction lives in which.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) { return trn_max8(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: includes every room of the engine.
 * DOES NOT: define anything.
 *
 * CONTENTS
 *     trn_vector_*    in these rooms: trn_vector_statistics.h trn_vector_search.h trn_vector_move.h trn_vector_random.h
 *
 * KNOWN FROM: each room's own lines.
 */
#ifndef TRN_VECTOR_ENGINE_H
#define TRN_VECTOR_ENGINE_H

#include "trn_vector_move.h"
#include "trn_vector_random.h"
#include "trn_vector_search.h"
#include "trn_vector_statistics.h"

#endif /* TRN_VECTOR_ENGINE_H */

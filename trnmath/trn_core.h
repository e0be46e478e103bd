/* trn_core.h - one whole NeuronCore: memory with its limits, every instruction, a clock per engine.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core.h>
 *     int main(void) { return trn_core_memory_bytes(TRN_TRAINIUM2) > 0 ? 0 : 1; }
 *
 * DOES: includes the core's rooms: trn_core_memory.h (tiles), trn_core_run.h (instructions), and trn_tensor_cost.h.
 * DOES NOT: define anything.
 *
 * CONTENTS
 *     trn_core, trn_core_args and trn_core_<instruction>   in trn_core_run.h
 *
 * KNOWN FROM: each room's own lines.
 */
#ifndef TRN_CORE_H
#define TRN_CORE_H

#include "trn_core_memory.h"
#include "trn_core_run.h"
#include "trn_tensor_cost.h"

#endif /* TRN_CORE_H */

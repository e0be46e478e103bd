/* trn_instruction.h - what the instructions of all engines share: who executes, and the fields that args begin with.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_instruction.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         for (int e = 1; e < TRN_ENGINE_COUNT; e++) printf("%s\n", trn_engine_name((trn_engine)e));
 *         return 0;
 *     }
 *
 * DOES: names the engines, and what an instruction does with its engine's accumulator registers.
 * DOES NOT: execute; the engines' own headers do.
 *
 * CONTENTS
 *   engine/instruction.h: what the arguments of all instructions begin with.
 *     trn_engine, trn_engine_name        who executes
 *     trn_reduce_cmd                     what an instruction does with its engine's accumulator registers
 *     TRN_INSTRUCTION_FIELDS             the fields that the args of every instruction begin with
 *     trn_instruction                    a struct of these alone
 *     trn_dma_offset                     where a view begins, when a tile holds the number
 *
 * KNOWN FROM: NKI's instruction pages (documented).
 */
#ifndef TRN_INSTRUCTION_H
#define TRN_INSTRUCTION_H

#include "base/words_begin.h"

#include "engine/instruction.h"

#include "base/words_end.h"

#endif /* TRN_INSTRUCTION_H */

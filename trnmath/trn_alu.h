/* trn_alu.h - the operators of the engines' arithmetic units: what they are called, and what each one computes.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_alu.h>
 *     #include <string.h>
 *     int main(void) { return strcmp(trn_alu_name(TRN_ALU_ABS_MAX), "abs_max") == 0 ? 0 : 1; }
 *
 * DOES: names the operators of NKI's table and says of each whether it works on numbers or on bits, takes one operand
 *     or two, and may reduce.
 * DOES NOT: know instructions.
 *
 * CONTENTS
 *   engine/alu.h: the operators of the engines' arithmetic units.
 *     trn_alu                            the operators
 *     trn_alu_kind                       numbers or bits
 *     trn_alu_info, trn_alu_info_of      name, kind, operands, identity
 *     trn_alu_name, trn_alu_from_name    NKI's spelling
 *
 * KNOWN FROM: NKI, "Supported Math Operators for NKI ISA" (documented: the list, legal reductions, bits or numbers).
 */
#ifndef TRN_ALU_H
#define TRN_ALU_H

#include "base/words_begin.h"

#include "engine/alu.h"

#include "base/words_end.h"

#endif /* TRN_ALU_H */

/* trn_cpu.h - which instruction set the kernels use, and how one C body becomes a kernel for each of them.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cpu.h>
 *     #include <stdio.h>
 *     int main(void) { printf("kernels run as %s\n", trn_isa_name()); return 0; }
 *
 * DOES: asks the processor once (cpuid and xgetbv on x86-64; NEON is the baseline of aarch64), obeys the environment
 *     variable TRN_ISA and the .isa argument of a call, and compiles kernels for each instruction set.
 * DOES NOT: change results. Every instruction set returns the same bits; only time differs.
 *
 * CONTENTS
 *   base/cpu.h: the instruction sets of this machine, and a kernel for each from one body.
 *     trn_isa             the instruction sets; TRN_ISA_AUTO = the best one of this host
 *     trn_isa_text        the name of one
 *     trn_isa_from_name   the other way round
 *     trn_isa_supported   can this host run it?
 *     trn_isa_default     what kernels run now
 *     trn_isa_name        its name
 *     trn_isa_unit        the matrix unit that products use beside it
 *
 * Forcing: TRN_ISA=portable|avx2|avx512|neon|avx512-bf16|amx|amx-emulated|pairs-emulated in the environment decides for
 * every call that leaves .isa at 0. A name that is unknown or that this host lacks makes those calls fail with
 * TRN_EUNSUPPORTED: it is never quietly ignored. The last four name a matrix unit beside the vectors: products use the
 * host's by themselves where nothing is forced, and none where vectors are.
 *
 * KNOWN FROM: Intel SDM volume 1 §14 and §18 and volume 2 (CPUID, XGETBV, TDPBF16PS); Linux, Documentation/arch/x86/
 *     xstate.rst (tiles are asked for once per process); Arm ARM (AdvSIMD is mandatory on aarch64 Linux).
 */
#ifndef TRN_CPU_H
#define TRN_CPU_H

#include "base/words_begin.h"

#include "base/cpu.h"

#include "base/words_end.h"

#endif /* TRN_CPU_H */

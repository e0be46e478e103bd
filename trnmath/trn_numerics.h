/* trn_numerics.h - the registry of every behaviour that the public record leaves open, with its default and its source.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_numerics.h>
 *     #include <stdio.h>
 *     static void line(void *user, const char *text) { fprintf((FILE *)user, "%s\n", text); }
 *     int main(void) {
 *         trn_numerics n;
 *         if (trn_numerics_parse(&n, "chains=1,product=bf16") != TRN_OK) return 1;
 *         trn_numerics_explain(&n, line, stdout);
 *         return 0;
 *     }
 *
 * DOES: names each assumption, so that a user who doubts one changes a field and not the code. A zero in any field
 *     means its default: `trn_numerics n = { .chains = 1 }` is complete.
 * DOES NOT: compute. The engines read it; an engine that has no use for a field ignores it.
 *
 * CONTENTS
 *   machine/numerics.h: every behaviour that the public record leaves open: fields, defaults, sources.
 *     trn_numerics            the fields
 *     trn_chain_layout, trn_merge, trn_product, trn_group, trn_accumulator, trn_fp32_mode, trn_tf32_input   values
 *     trn_int32_overflow, trn_mx_scale, trn_sr_where, trn_reduce_order   values, too
 *     trn_numerics_default    the defaults of a generation
 *     trn_numerics_parse      from text: "chains=1,product=bf16", or a preset's name
 *     trn_numerics_read       the same, with a sentence for what is refused
 *     trn_numerics_format     to the shortest text that parses back to the same
 *     trn_numerics_explain    every field: value, default, source, alternatives
 *     trn_numerics_check      are all values legal?
 *     trn_numerics_preset     the presets: name, settings, source
 *
 * Presets: trn1 trn2 trn3 (the defaults), single_chain, bf16_products, exact; and other makers' matrix units, whose
 * results have been published, to hold the machinery against answers of hardware: nv_volta nv_turing nv_ampere nv_ada
 * nv_ada_fp8 nv_hopper nv_hopper_fp8 nv_blackwell amd_cdna2 amd_cdna3 amd_cdna3_fp8.
 *
 * KNOWN FROM: each row of the table below says it: `documented`, `measured` (by whom) or `assumed` (why).
 */
#ifndef TRN_NUMERICS_H
#define TRN_NUMERICS_H

#include "base/words_begin.h"

#include "machine/numerics.h"

#include "base/words_end.h"

#endif /* TRN_NUMERICS_H */

/* trn_tensor.h - views of the caller's memory: shape, strides, format. Nothing is owned, nothing is copied.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_tensor.h>
 *     int main(void) {
 *         static uint16_t weights[64 * 32];
 *         trn_tensor w = trn_tensor_2d(TRN_BF16, weights, 64, 32);
 *         trn_tensor t = trn_tensor_transposed(w);                 // [32, 64], same memory
 *         return t.shape[0] == 32 && trn_tensor_elements(t) == 2048 ? 0 : 1;
 *     }
 *
 * DOES: describes up to six axes with strides in elements. Strides all zero mean packed rows. Otherwise every stride
 *     is >= 1, except that an input may broadcast an axis with stride 0. Transposes cost nothing.
 * DOES NOT: accept negative strides (TRN_ESHAPE), own memory, or hold sub-byte packings. No view names more than 2^60
 *     elements or spans more than 2^60 bytes, and neither do the tensors, buffers and parts that plans and costs only
 *     speak of: eight times that still fits 64 bits, so no count of bits or bytes ever has to be cut.
 *
 * CONTENTS
 *   data/tensor.h: views of memory: shape, strides, format.
 *     trn_tensor                the view
 *     trn_tensor_1d, trn_tensor_2d, trn_tensor_nd   packed views
 *     trn_tensor_transposed, trn_tensor_permuted   last two axes swapped, all axes in another order
 *     trn_tensor_slice          a range of one axis
 *     trn_tensor_split, trn_tensor_merge   one axis as two, two as one
 *     trn_tensor_broadcast      an axis of size 1 as many
 *     trn_tensor_pattern        NKI's access patterns: steps and counts from an offset on
 *     trn_tensor_elements       product of the shape
 *     trn_tensor_format_info    the row of its format, a configurable FP8 included
 *     trn_tensor_check          is this view usable as an input, or as an output?
 *     trn_tensor_overlap        do two views share a byte? (exact for ordinary layouts, else it says yes)
 *
 * KNOWN FROM: BLAS and NumPy conventions; the bounded search of trn_tensor_overlap answers the question that NumPy's
 *     may_share_memory documents.
 */
#ifndef TRN_TENSOR_H
#define TRN_TENSOR_H

#include "base/words_begin.h"

#include "data/tensor.h"

#include "base/words_end.h"

#endif /* TRN_TENSOR_H */

/* simd/vector_end.h - undefines what simd/vector_avx2.h and simd/vector_avx512.h define.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 */
#include "../base/cpu.h"
#undef TRNI_V
#undef TRNI_V_LANES
#undef TRNI_V_TARGET
#undef TRNI_V_ROWS
#undef TRNI_V_LOADED
#undef TRNI_V_NAME
#undef TRNI_V_OP
#undef TRNI_V_F16
#undef TRNI_V_INLINE
#undef TRNI_V_KERNEL

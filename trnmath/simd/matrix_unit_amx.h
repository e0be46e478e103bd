/* simd/matrix_unit_amx.h - array/matrix_unit.h's blocks on AMX.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels, in the assembler's words, which every compiler takes whatever it was told of the processor. Tiles 0
 * and 1 are the two halves of 32 columns (the width of AVX-512's panels), 2 is a's, 3 and 4 are b's; all are 16 rows
 * of 64 bytes. Included by array/matrix_unit.h only, and not at all under TRN_NO_INTRINSICS. Nobody comes here whose
 * processor and system have not said that they have tiles, and nobody's results are used before array/matrix_unit.h's
 * test.
 *
 * KNOWN FROM: Intel SDM volume 1 §18.
 */
#if defined(TRNI_ARRAY_MATRIX_UNIT_H) && !defined(TRNI_SIMD_MATRIX_UNIT_AMX_H)
#define TRNI_SIMD_MATRIX_UNIT_AMX_H

#if TRNI_UNIT_AMX

/* Palette 1; the bytes of a row and the rows of each tile. */
TRNI_KERNEL static void trni_simd_tiles_begin(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape;
    memset(&shape, 0, sizeof shape);
    shape.palette = 1;
    for (int i = 0; i < 5; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}

TRNI_KERNEL static void trni_simd_tiles_end(void) { __asm__ volatile("tilerelease" : : : "memory"); }

/* The registers of tiles are nobody else's here: compilers that were not told of AMX do not know their names. */
#define TRNI_AMX_BLOCKS(product)                                                                                       \
    const intptr_t a_step = 64, b_step = 128;                                                                          \
    (void)width;                                                                                                       \
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1" : : : "memory");                                             \
    for (; blocks > 0; blocks--, a += TRNI_UNIT_TILE, b += 2 * TRNI_UNIT_TILE)                                         \
        __asm__ volatile("tileloadd (%0,%2,1), %%tmm2\n\t"                                                             \
                         "tileloadd (%1,%3,1), %%tmm3\n\t" product " %%tmm3, %%tmm2, %%tmm0\n\t"                       \
                         "tileloadd 64(%1,%3,1), %%tmm4\n\t" product " %%tmm4, %%tmm2, %%tmm1"                         \
                         :                                                                                             \
                         : "r"(a), "r"(b), "r"(a_step), "r"(b_step)                                                    \
                         : "memory");                                                                                  \
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)\n\ttilestored %%tmm1, 64(%0,%1,1)"                                  \
                     :                                                                                                 \
                     : "r"(out), "r"(b_step)                                                                           \
                     : "memory")

TRNI_KERNEL static void trni_simd_tiles_bf16(TRNI_UNIT_PARAMS(float)) { TRNI_AMX_BLOCKS("tdpbf16ps"); }
TRNI_KERNEL static void trni_simd_tiles_int8(TRNI_UNIT_PARAMS(int32_t)) { TRNI_AMX_BLOCKS("tdpbsud"); }
#undef TRNI_AMX_BLOCKS

#endif /* TRNI_UNIT_AMX */
#endif /* TRNI_SIMD_MATRIX_UNIT_AMX_H */

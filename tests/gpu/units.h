/* units.h - the instructions that are asked, the presets that they are held against, and their kernels as PTX text.
 * SPDX-License-Identifier: MIT
 *
 * A unit is one instruction of NVIDIA's matrix units with its types: mma.sync of one warp, or wgmma.mma_async of four.
 * Its kernel loads registers, executes the instruction once, and stores registers; which element lies in which register
 * of which lane is the host's business (fragments.h). The text is all that a driver needs: no CUDA toolkit takes part.
 *
 * KNOWN FROM: NVIDIA's PTX ISA 9.0, sections on mma, wgmma.mma_async and block scaling (documented).
 */
#ifndef GPU_UNITS_H
#define GPU_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "trnmath/trn_format.h"

typedef enum gpu_layout {
    GPU_QUADS, /* m8n8k4: four products, each of eight lanes */
    GPU_WARP,  /* mma.sync of one product */
    GPU_GROUP, /* wgmma: four warps, b in shared memory */
} gpu_layout;

/* How the library says what the unit does. */
typedef enum gpu_how {
    GPU_PRODUCT,    /* one product onto C, with the preset */
    GPU_BLOCKS,     /* F16 results: one product a block of the preset, so that each is rounded to F16 */
    GPU_HALF_FIRST, /* FP8 by F16's unit: a product of F16 onto zero, then C is added in binary32 */
} gpu_how;

typedef struct gpu_unit {
    const char *name; /* "mma.f16.m16n8k16" */
    gpu_layout layout;
    int m, n, k;
    trn_format a, b, result;
    int bits;            /* of an operand's element */
    int scale;           /* elements under one E8M0; 0: none */
    const char *target;  /* "sm_80"; with an 'a' it runs there only */
    const char *version; /* of PTX: the first that knows the instruction */
    const char *instruction;
    int low, high; /* compute capabilities, 10 * major + minor, that it is asked on */
} gpu_unit;

enum { GPU_MOST_M = 64, GPU_MOST_N = 8, GPU_MOST_ROW = 32 }; /* rows, columns, bytes of a row along K */

/* The table; null beyond the last. */
const gpu_unit *gpu_unit_at(int index);

/* What a unit is held against on a chip. `claimed`: the preset's source says so of this instruction, or of one with the
 * same adder; else a difference is news of the chip and no failure of the preset. */
typedef struct gpu_claim {
    const char *preset;
    gpu_how how;
    bool claimed;
    const char *source; /* who measured it */
} gpu_claim;

/* False: there is none, or the unit is not asked on that chip. */
bool gpu_claim_of(const gpu_unit *u, int capability, gpu_claim *claim);

/* ---- registers of one lane, and sizes ---- */

int gpu_products(const gpu_unit *u);    /* of one execution: 4 for GPU_QUADS */
int gpu_lanes(const gpu_unit *u);       /* that execute it together: 32 or 128 */
int gpu_row_bytes(const gpu_unit *u);   /* K elements */
int gpu_a_registers(const gpu_unit *u); /* of 32 bits, in each lane */
int gpu_b_words(const gpu_unit *u);     /* of 32 bits, for all lanes together: registers, or shared memory */
int gpu_c_registers(const gpu_unit *u);

/* ---- the kernel ---- */

enum { GPU_PTX = 8192, GPU_THREADS = 128 }; /* characters of a kernel; threads of a block */

/* The whole module, with one entry: unit(a, b, c, scales, d, threads). */
void gpu_ptx(const gpu_unit *u, char text[GPU_PTX]);

#endif /* GPU_UNITS_H */

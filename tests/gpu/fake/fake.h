/* fake.h - a stand-in for libcuda.so.1 and a GPU behind it: the kernels' text is executed, instruction by instruction.
 * SPDX-License-Identifier: MIT
 *
 *     cuda.c      the driver's calls: devices, memory with bounds, modules, launches; any call can be made to fail
 *     machine.c   reads PTX and executes it, thread by thread; knows what the kernels of units.c use
 *     matrix.c    one mma or wgmma: the fragments by the tables of the PTX ISA, the sums by tests/twin/
 *
 * Nothing is shared with what it tests: neither units.c, fragments.c nor the library.
 *
 * FAKE_CUDA_CAPABILITY   of the device: 90 unless set
 * FAKE_CUDA_FAIL         "cuMemAlloc_v2" or "cuMemAlloc_v2:3": that call fails, or the third one of it
 * FAKE_CUDA_ERROR        with which number: 999 unless set
 * FAKE_CUDA_DEVICES      how many: 1 unless set
 * FAKE_CUDA_FAULT        what the device does otherwise than its chip: a word of the table in matrix.c
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_ILLEGAL_ADDRESS = 700, FAKE_ILLEGAL_INSTRUCTION = 715, FAKE_INVALID_PTX = 218, FAKE_NO_BINARY = 209 };

int fake_capability(void);

/* So many bytes of global memory at a device's address; null: not all of them are allocated. */
unsigned char *fake_memory(uint64_t address, size_t bytes);

/* ---- machine.c ---- */

enum { FAKE_THREADS = 128, FAKE_OPERANDS = 10, FAKE_MOST_OPS = 128, FAKE_LABELS = 8, FAKE_WORD = 96 };

typedef struct fake_op {
    bool guarded; /* by %p */
    char code[FAKE_WORD], operand[FAKE_OPERANDS][FAKE_WORD];
    int operands;
} fake_op;

typedef struct fake_module {
    fake_op op[FAKE_MOST_OPS];
    int ops;
    struct {
        char name[FAKE_WORD];
        int at;
    } label[FAKE_LABELS];
    int labels;
    char entry[FAKE_WORD];
} fake_module;

/* 0, or a CUDA error and what is wrong. */
int fake_assemble(fake_module *m, const char *text, char *log, size_t size);
int fake_execute(const fake_module *m, unsigned blocks, void **parameter);

/* ---- matrix.c ---- */

enum { FAKE_SHARED = 4096 };

/* Registers of the lanes of one warp (or of four). */
typedef struct fake_fragments {
    int lanes;
    uint32_t a[FAKE_THREADS][4], b[FAKE_THREADS][4], c[FAKE_THREADS][8], scale[FAKE_THREADS][2];
    const unsigned char *shared; /* and, for wgmma, where b lies in it */
    uint64_t descriptor;
} fake_fragments;

/* Executes the instruction of this name; the results are in c. 0, or a CUDA error. */
int fake_matrix(const char *code, fake_fragments *f);

#endif /* FAKE_H */

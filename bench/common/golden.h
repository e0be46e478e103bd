/* golden.h - reads the reference vectors (tests/golden/README.md): hexadecimal words, one case a line.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COMMON_GOLDEN_H
#define BENCH_COMMON_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

#include "app/app.h"

typedef struct tb_golden {
    uint32_t *cell; /* [rows, columns] */
    size_t rows;
    int columns;
} tb_golden;

bool tb_golden_there(const char *directory, const char *file);
/* False when the file is not there or is not `columns` words of at most eight digits a line; why says which line. */
bool tb_golden_read(const char *directory, const char *file, int columns, tb_golden *golden, char *why);
void tb_golden_free(tb_golden *golden);

typedef struct tb_golden_block {
    uint8_t scale, code[32];
} tb_golden_block;

/* Lines of a scale and 32 codes without spaces, each of `digits` digits. Returns how many; *block is malloc'd. */
size_t tb_golden_blocks(const char *directory, const char *file, int digits, tb_golden_block **block);

#endif /* BENCH_COMMON_GOLDEN_H */

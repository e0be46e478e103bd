/* golden.c - reads the reference vectors (tests/golden/README.md).
 * SPDX-License-Identifier: MIT
 */
#include "golden.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/io.h"

enum { LINE = 512, PATH = 1024 };

static FILE *open_in(const char *directory, const char *file, char *why)
{
    char path[PATH];
    FILE *in = NULL;
    errno = ENAMETOOLONG;
    const bool fits = snprintf(path, sizeof path, "%s/%s", directory, file) < PATH;
    if (fits && !io_reading(path, why)) return NULL;
    if (fits) in = app_open(path);
    if (!in) snprintf(why, APP_WHY, "%s: it cannot be opened (%s)", file, strerror(errno));
    return in;
}

bool tb_golden_there(const char *directory, const char *file)
{
    char why[APP_WHY];
    FILE *in = open_in(directory, file, why);
    if (in) fclose(in);
    return in != NULL;
}

/* The value of a digit, or -1. */
static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* One word of at most eight digits, which a space or the end of the line closes. */
static const char *word(const char *text, uint32_t *value)
{
    int digits = 0;
    *value = 0;
    for (; digit(*text) >= 0 && digits < 9; text++, digits++) *value = *value << 4 | (uint32_t)digit(*text);
    if (digits < 1 || digits > 8 || (*text != ' ' && *text != '\n' && *text != '\0')) return NULL;
    return *text == ' ' ? text + 1 : text;
}

static bool parse_line(const char *line, uint32_t *cell, int columns)
{
    for (int c = 0; c < columns && line; c++) line = word(line, &cell[c]);
    return line && line[-1] != ' ' && (*line == '\n' || *line == '\0');
}

bool tb_golden_read(const char *directory, const char *file, int columns, tb_golden *golden, char *why)
{
    char line[LINE];
    size_t room = 0;
    memset(golden, 0, sizeof *golden);
    golden->columns = columns;
    FILE *in = open_in(directory, file, why);
    bool good = in != NULL;
    while (good && fgets(line, sizeof line, in)) {
        if (golden->rows == room) {
            room = room ? 2 * room : 1024;
            golden->cell = app_resize(golden->cell, room, (size_t)columns * sizeof *golden->cell);
        }
        good = parse_line(line, golden->cell + golden->rows * (size_t)columns, columns);
        if (!good) snprintf(why, APP_WHY, "%s: line %zu is not %d hexadecimal words", file, golden->rows + 1, columns);
        golden->rows++;
    }
    if (in) fclose(in);
    if (!good) tb_golden_free(golden);
    return good;
}

void tb_golden_free(tb_golden *golden)
{
    free(golden->cell);
    memset(golden, 0, sizeof *golden);
}

static bool parse_block(const char *line, int digits, tb_golden_block *block)
{
    uint32_t scale;
    line = word(line, &scale);
    if (!line || scale > 0xff) return false;
    block->scale = (uint8_t)scale;
    for (int i = 0; i < 32; i++) {
        int code = 0;
        for (int d = 0; d < digits; d++, line++) {
            if (digit(*line) < 0) return false;
            code = 16 * code + digit(*line);
        }
        block->code[i] = (uint8_t)code;
    }
    return *line == '\n' || *line == '\0';
}

size_t tb_golden_blocks(const char *directory, const char *file, int digits, tb_golden_block **block)
{
    char line[LINE], why[APP_WHY];
    size_t count = 0, room = 0;
    FILE *in = open_in(directory, file, why);
    *block = NULL;
    while (in && fgets(line, sizeof line, in)) {
        tb_golden_block one;
        if (!parse_block(line, digits, &one)) break;
        if (count == room) {
            room = room ? 2 * room : 256;
            *block = app_resize(*block, room, sizeof **block);
        }
        (*block)[count++] = one;
    }
    if (in) fclose(in);
    return count;
}

/* test_quant_golden.c - quantised matrices beside what AutoAWQ, GPTQModel, compressed-tensors and bitsandbytes make of
 * them (golden/quant_matrices.txt), every bit.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON)

#include "io/int4_awq.h"
#include "io/int4_gptq.h"
#include "io/int4_packed.h"
#include "io/nf4.h"
#include "unit/made_tensor.h"

enum { LINE = 1 << 15, PARTS = 8 };

typedef struct golden {
    char line[LINE];
    const char *format;
    long bits, group;
    int parts;
    st_tensor part[PARTS];
    const unsigned char *dense;
    size_t elements;
} golden;

/* Digits become bytes, in place. */
static size_t bytes_of(char *text)
{
    size_t n = 0;
    for (; text[2 * n]; n++) text[n] = (char)strtoul((char[]){ text[2 * n], text[2 * n + 1], 0 }, NULL, 16);
    return n;
}

/* name:type:axbxc:digits */
static st_tensor read_tensor(char *text)
{
    char *rest, *name = strtok_r(text, ":", &rest), *type = strtok_r(NULL, ":", &rest);
    char *shape = strtok_r(NULL, ":", &rest), *digits = strtok_r(NULL, ":", &rest);
    int64_t size[4] = { 0 };
    int rank = 0;
    for (char *at = shape; *at; rank++) size[rank] = strtoll(at, &at, 10), at += *at == 'x';
    const st_tensor t = tensor(name, type, rank, size, digits);
    assert_int_equal(bytes_of(digits), st_bytes(&t));
    return t;
}

static bool read_golden(FILE *file, golden *g)
{
    char *rest;
    do
        if (!fgets(g->line, LINE, file)) return false;
    while (g->line[0] == '#');
    g->format = strtok_r(g->line, " \n", &rest);
    g->parts = 0;
    g->bits = g->group = 0;
    for (char *word; (word = strtok_r(NULL, " \n", &rest)) && strcmp(word, "=") != 0;) {
        if (sscanf(word, "bits=%ld", &g->bits) == 1 || sscanf(word, "group=%ld", &g->group) == 1) continue;
        g->part[g->parts++] = read_tensor(word);
    }
    char *dense = strtok_r(NULL, " \n", &rest);
    g->elements = bytes_of(dense) / 4;
    g->dense = (const unsigned char *)dense;
    return true;
}

static const st_tensor *part_of(const golden *g, const char *name)
{
    for (int i = 0; i < g->parts; i++)
        if (strcmp(g->part[i].name, name) == 0) return &g->part[i];
    return NULL;
}

/* ---- the formats ---- */

static bool open_groups(const golden *g, int_groups *m, char *why)
{
    const st_tensor *qweight = part_of(g, "qweight"), *qzeros = part_of(g, "qzeros"), *scales = part_of(g, "scales");
    if (strcmp(g->format, "awq") == 0)
        return int4_awq_open(qweight, qzeros, scales, &(int4_awq_config){ .group_size = g->group }, m, why);
    if (strcmp(g->format, "gptq_v2") == 0)
        return int4_gptq_open(
            &(int4_gptq_parts){ qweight, qzeros, scales, part_of(g, "g_idx") },
            &(int4_gptq_config){
                .checkpoint_format = g->format, .bits = g->bits, .group_size = g->group, .desc_act = INT_GROUPS_TRUE },
            m, why);
    return int4_packed_open(&(int4_packed_parts){ .packed = part_of(g, "weight_packed"),
                                                  .scale = part_of(g, "weight_scale"),
                                                  .shape = part_of(g, "weight_shape"),
                                                  .zero_point = part_of(g, "weight_zero_point") },
                            &(int4_packed_config){ .num_bits = g->bits, .group_size = g->group }, m, why);
}

static bool open_nf4(const golden *g, nf4 *m, char *why)
{
    const nf4_parts part = { part_of(g, "weight"),    part_of(g, "absmax"),        part_of(g, "quant_state"),
                             part_of(g, "quant_map"), part_of(g, "nested_absmax"), part_of(g, "nested_quant_map") };
    return nf4_open(&part, m, why);
}

static void check_row(const golden *g, int64_t row, const float *x, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        const float want = io_float(io_little32(g->dense + 4 * (row * columns + c)));
        if (bits_of(x[c]) != bits_of(want))
            fail_msg("%s [%d, %d]: %a, not %a", g->format, (int)row, (int)c, (double)x[c], (double)want);
    }
}

static void every_matrix(void **state)
{
    static golden g;
    FILE *file = fopen(TRN_GOLDEN_DIR "/quant_matrices.txt", "r");
    int matrices = 0;
    (void)state;
    if (!file) fail_msg("%s/quant_matrices.txt cannot be opened", TRN_GOLDEN_DIR);
    for (; read_golden(file, &g); matrices++) {
        const bool four = strcmp(g.format, "bnb") == 0;
        int_groups m;
        nf4 n;
        char why[IO_WHY];
        float row[256];
        if (!(four ? open_nf4(&g, &n, why) : open_groups(&g, &m, why))) fail_msg("%s: %s", g.format, why);
        const int64_t rows = four ? n.rows : m.rows, columns = four ? n.columns : m.columns;
        assert_true(columns <= 256 && (size_t)(rows * columns) == g.elements);
        for (int64_t r = 0; r < rows; r++) {
            if (four)
                nf4_row(&n, r, row);
            else
                int_groups_row(&m, r, row);
            check_row(&g, r, row, columns);
        }
    }
    fclose(file);
    assert_int_equal(matrices, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_matrix) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

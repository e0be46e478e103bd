/* test_nf4.c - NF4 and FP4 of bitsandbytes: random matrices with plain and with nested magnitudes against arithmetic in
 * binary32 step by step, blocks over the ends of rows, and what is refused, with its sentence.
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

#include "io/nf4.h"
#include "twin/cases.h"
#include "unit/made_tensor.h"

enum { ELEMENTS = 4000 };

typedef struct made {
    unsigned char codes[ELEMENTS], absmax[4 * ELEMENTS];
    float nested[ELEMENTS], map[256], table[16];
    char state[1024];
    st_tensor weight, magnitude, said, quant_map, nested_absmax, nested_map;
} made;

static st_tensor list(const char *name, const char *type, int64_t n, const void *data)
{
    return tensor(name, type, 1, &n, data);
}

static void say(made *f, const char *text)
{
    snprintf(f->state, sizeof f->state, "%s", text);
    f->said = list("x.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(f->state), f->state);
}

static nf4_parts parts_of(const made *f, bool nested)
{
    return (nf4_parts){ .weight = &f->weight,
                        .absmax = &f->magnitude,
                        .state = &f->said,
                        .quant_map = &f->quant_map,
                        .nested_absmax = nested ? &f->nested_absmax : NULL,
                        .nested_quant_map = nested ? &f->nested_map : NULL };
}

/* The tables in their units: NF4's as published, FP4's in sixteenths of twelve. */
static double table_value(bool fp4, int code)
{
    static const double normal[16] = { -1.0,
                                       -0.6961928009986877,
                                       -0.5250730514526367,
                                       -0.39491748809814453,
                                       -0.28444138169288635,
                                       -0.18477343022823334,
                                       -0.09105003625154495,
                                       0.0,
                                       0.07958029955625534,
                                       0.16093020141124725,
                                       0.24611230194568634,
                                       0.33791524171829224,
                                       0.44070982933044434,
                                       0.5626170039176941,
                                       0.7229568362236023,
                                       1.0 };
    static const double sixteenths[8] = { 0, 1, 128, 192, 64, 96, 32, 48 };
    return fp4 ? (code & 8 ? -1 : 1) * sixteenths[code & 7] / 192 : normal[code];
}

/* Step by step, each in binary32. */
static float magnitude_of(const made *f, bool nested, int64_t block, int64_t group, float offset)
{
    volatile float product, sum;
    float plain;
    memcpy(&plain, f->absmax + 4 * block, sizeof plain);
    if (!nested) return plain;
    product = f->map[f->absmax[block]] * f->nested[block / group];
    sum = product + offset;
    return sum;
}

static float any_float(uint64_t *rng)
{
    if (cases_one_in(rng, 20)) return cases_float_of(cases_u32(rng));
    return (float)(cases_below(rng, 2000001) - 1000000) * 0x1p-20f;
}

static void random_matrices(void **state)
{
    static made f;
    uint64_t rng = 35;
    (void)state;
    for (int i = 0; i < 150; i++) {
        static const char *const storage[] = { "U8", "BF16", "F32" };
        const bool nested = i % 2, fp4 = i / 2 % 2;
        const int64_t rows = 1 + cases_below(&rng, 12), columns = 1 + cases_below(&rng, 300), n = rows * columns;
        const int64_t block = 1 << cases_below(&rng, 9), group = 1 << cases_below(&rng, 6);
        const int64_t blocks = (n + block - 1) / block, groups = (blocks + group - 1) / group, bytes = (n + 1) / 2;
        const double offset = cases_below(&rng, 1000) / 7e4;
        const char *type = storage[bytes % 4 ? 0 : i % 3];
        char text[512];
        nf4 m;
        float row[300];
        char why[IO_WHY];
        for (int64_t k = 0; k < bytes; k++) f.codes[k] = (unsigned char)cases_u32(&rng);
        for (int k = 0; k < 256; k++) f.map[k] = any_float(&rng);
        for (int64_t k = 0; k < groups; k++) f.nested[k] = any_float(&rng);
        for (int64_t k = 0; k < blocks; k++) {
            const float plain = any_float(&rng);
            memcpy(f.absmax + 4 * k, &plain, sizeof plain);
        }
        for (int k = 0; k < 16; k++) f.table[k] = (float)table_value(fp4, k);
        snprintf(text, sizeof text,
                 "{\"quant_type\": \"%s\", \"blocksize\": %lld, \"dtype\": \"bfloat16\", \"shape\": [%lld, %lld]%s",
                 fp4 ? "fp4" : "nf4", (long long)block, (long long)rows, (long long)columns, nested ? "" : "}");
        if (nested)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     ", \"nested_blocksize\": %lld, \"nested_dtype\": \"float32\", \"nested_offset\": %.17g}",
                     (long long)group, offset);
        say(&f, text);
        const int64_t held = bytes * 8 / st_type_of(type)->bits;
        f.weight = tensor("x.weight", type, 2, (int64_t[]){ held, 1 }, f.codes);
        f.magnitude = list("x.weight.absmax", nested ? "U8" : "F32", blocks, f.absmax);
        f.quant_map = list("x.weight.quant_map", "F32", 16, f.table);
        f.nested_absmax = list("x.weight.nested_absmax", "F32", groups, f.nested);
        f.nested_map = list("x.weight.nested_quant_map", "F32", 256, f.map);
        nf4_parts part = parts_of(&f, nested);
        if (i % 5 == 0) part.quant_map = NULL;
        if (!nf4_open(&part, &m, why)) fail_msg("%s", why);
        assert_true(m.rows == rows && m.columns == columns && m.blocks == blocks && m.rank == 2);
        for (int64_t r = 0; r < rows; r++) {
            nf4_row(&m, r, row);
            for (int64_t c = 0; c < columns; c++) {
                const int64_t at = r * columns + c;
                const int code = at % 2 ? f.codes[at / 2] % 16 : f.codes[at / 2] / 16;
                volatile float value = (float)table_value(fp4, code);
                value = value * magnitude_of(&f, nested, at / block, group, (float)offset);
                assert_int_equal(nf4_code(&m, r, c), code);
                if (bits_of(row[c]) != bits_of(value)) fail_msg("%a, not %a", (double)row[c], (double)value);
            }
        }
    }
}

/* [3, 50] in blocks of 64, nested in groups of 2. */
static void set_good(made *f, bool nested)
{
    memset(f, 0, sizeof *f);
    for (int k = 0; k < 16; k++) f->table[k] = (float)table_value(false, k);
    f->weight = tensor("x.weight", "U8", 2, (int64_t[]){ 75, 1 }, f->codes);
    f->magnitude = list("x.weight.absmax", nested ? "U8" : "F32", 3, f->absmax);
    f->quant_map = list("x.weight.quant_map", "F32", 16, f->table);
    f->nested_absmax = list("x.weight.nested_absmax", "F32", 2, f->nested);
    f->nested_map = list("x.weight.nested_quant_map", "F32", 256, f->map);
}

static void states_refused(void **state)
{
#define TYPE "\"quant_type\":\"nf4\","
#define SHAPE "\"shape\":[3,50]"
#define SIZE "\"blocksize\":64,"
#define DTYPE "\"dtype\":\"float16\","
#define NEST ",\"nested_blocksize\":2,\"nested_dtype\":\"float32\""
    static const struct {
        const char *text, *what;
    } row[] = {
        { "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":-1e-2}", NULL },
        { "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}", NULL },
        { "{" SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}", "does not say quant_type" },
        { "{" TYPE DTYPE SHAPE NEST ",\"nested_offset\":0}", "does not say blocksize" },
        { "{" TYPE SIZE SHAPE NEST ",\"nested_offset\":0}", "does not say dtype" },
        { "{" TYPE SIZE DTYPE "\"x\":1" NEST ",\"nested_offset\":0}", "does not say shape" },
        { "{" TYPE SIZE DTYPE SHAPE NEST "}", "does not say nested_offset" },
        { "{" TYPE SIZE DTYPE SHAPE ",\"nested_dtype\":\"float32\",\"nested_offset\":0}", "say nested_blocksize" },
        { "{" TYPE TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}", "has a second quant_type" },
        { "{\"quant_type\":\"int8\"," SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}", "says quant_type \"int8\"" },
        { "{\"quant_type\":4," SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}", "says quant_type 4" },
        { "{" TYPE SIZE "\"dtype\":\"int8\"," SHAPE NEST ",\"nested_offset\":0}", "says dtype \"int8\"" },
        { "{" TYPE DTYPE "\"blocksize\":0," SHAPE NEST ",\"nested_offset\":0}", "blocksize 0; expected 1 to" },
        { "{" TYPE DTYPE "\"blocksize\":1048577," SHAPE NEST ",\"nested_offset\":0}", "blocksize 1048577" },
        { "{" TYPE SIZE DTYPE "\"shape\":[3,50,]" NEST ",\"nested_offset\":0}", "says shape [3,50,]" },
        { "{" TYPE DTYPE "\"blocksize\":6.4e1," SHAPE NEST ",\"nested_offset\":0}", "blocksize 6.4e1" },
        { "{" TYPE SIZE DTYPE "\"shape\":null" NEST ",\"nested_offset\":0}", "says shape null" },
        { "{" TYPE SIZE DTYPE "\"shape\":[]" NEST ",\"nested_offset\":0}", "says shape []" },
        { "{" TYPE SIZE DTYPE "\"shape\":[3,0]" NEST ",\"nested_offset\":0}", "says shape [3,0]" },
        { "{" TYPE SIZE DTYPE "\"shape\":[3,-50]" NEST ",\"nested_offset\":0}", "says shape [3,-50]" },
        { "{" TYPE SIZE DTYPE "\"shape\":[3,50" NEST ",\"nested_offset\":0}", "shape" },
        { "{" TYPE SIZE DTYPE "\"shape\":[3,51]" NEST ",\"nested_offset\":0}", "holds 75 bytes; two codes to a byte" },
        { "{" TYPE SIZE DTYPE "\"shape\":[9007199254740991,9007199254740991]" NEST ",\"nested_offset\":0}", "shape" },
        { "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":\"0\"}", "says nested_offset \"0\"" },
        { "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":1e999}", "says nested_offset 1e999" },
        { "{" TYPE SIZE DTYPE SHAPE ",\"nested_blocksize\":2,\"nested_dtype\":\"float16\",\"nested_offset\":0}",
          "says nested_dtype \"float16\"" },
        { "", "does not say quant_type" },
    };
    static made f;
    char why[IO_WHY];
    nf4 m;
    (void)state;
    set_good(&f, true);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        say(&f, row[i].text);
        const nf4_parts part = parts_of(&f, true);
        const bool ok = nf4_open(&part, &m, why);
        if (ok != !row[i].what || (!ok && (strncmp(why, "x.weight: ", 10) != 0 || !strstr(why, row[i].what))))
            fail_msg("row %d: %s", (int)i, ok ? "accepted" : why);
    }
}

static void check_refused(const nf4_parts *part, const char *what)
{
    char why[IO_WHY] = "accepted";
    nf4 m;
    if (nf4_open(part, &m, why) || !strstr(why, what)) fail_msg("%s\nexpected: %s", why, what);
}

static void tensors_refused(void **state)
{
    static made f;
    nf4_parts part;
    (void)state;
    set_good(&f, false);
    say(&f, "{" TYPE SIZE DTYPE SHAPE "}");
    char why[IO_WHY];
    nf4 m;
    part = parts_of(&f, false);
    if (!nf4_open(&part, &m, why)) fail_msg("%s", why);
    part.state = NULL, check_refused(&part, "x.weight: it has no quant_state");
    part = parts_of(&f, false), part.absmax = NULL, check_refused(&part, "x.weight: it has no absmax");
    part = parts_of(&f, false), part.weight = NULL, check_refused(&part, "its weight is missing");
    part = parts_of(&f, true), check_refused(&part, "its absmax is F32, and it has a nested_absmax");
    part = parts_of(&f, false);
    f.table[5] += 0.01f;
    check_refused(&part, "its quant_map has -0.174773 for code 5; the format's table has -0.184773");
    f.table[5] = NAN;
    check_refused(&part, "its quant_map has nan for code 5");
    f.table[5] = (float)table_value(false, 5);
    f.quant_map.elements = 15, check_refused(&part, "its quant_map has 15 elements of F32; expected 16 of F32");
    f.quant_map.elements = 16;
    const st_tensor halves = list("x.weight.quant_map", "F16", 16, f.table);
    part.quant_map = &halves, check_refused(&part, "its quant_map has 16 elements of F16; expected 16 of F32");
    part.quant_map = &f.quant_map;
    f.magnitude.elements = 4, check_refused(&part, "its absmax has 4 elements of F32; expected 3 of F32");
    f.magnitude.elements = 3;
    f.said.data = NULL, check_refused(&part, "its quant_state cannot be read: the file is not open");
    say(&f, "{" TYPE SIZE DTYPE SHAPE "}");
    f.weight = tensor("x.weight", "U8", 2, (int64_t[]){ 1, 75 }, f.codes);
    check_refused(&part, "it is [1, 75], which is transposed");
    set_good(&f, true);
    say(&f, "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}");
    part = parts_of(&f, false), check_refused(&part, "its absmax is U8, and it has no nested_absmax");
    part = parts_of(&f, true), part.nested_quant_map = NULL, check_refused(&part, "it has no nested_quant_map");
    part = parts_of(&f, true);
    f.nested_absmax.elements = 3, check_refused(&part, "its nested_absmax has 3 elements of F32; expected 2 of F32");
    set_good(&f, true);
    say(&f, "{" TYPE SIZE DTYPE SHAPE NEST ",\"nested_offset\":0}");
    f.nested_map.elements = 16, check_refused(&part, "its nested_quant_map has 16 elements of F32; expected 256");
    f.said.rank = 2, check_refused(&part, "its quant_state is U8 of 2 axes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_matrices),
        cmocka_unit_test(states_refused),
        cmocka_unit_test(tensors_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

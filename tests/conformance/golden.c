/* golden.c - the reference vectors of the codecs (tests/golden), each file on each instruction set.
 * SPDX-License-Identifier: MIT
 *
 * All of it goes through the array calls. What decides in a bracket file: directed modes between the two codes, and
 * stochastic rounding with the element's own random field.
 */
#define _POSIX_C_SOURCE 200809L

#include "conformance.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "bench/common/golden.h"
#include "trnmath/trn_convert.h"
#include "trnmath/trn_mx.h"
#include "twin/host.h"

static const char provenance[] = "tests/golden/README.md: MPFR 4.2, ml_dtypes, gfloat; all agree";

typedef enum golden_kind { DECODE, ENCODE, ENCODE_SAT, BRACKET, KINDS } golden_kind;

static const struct {
    const char *name, *what;
} kinds[KINDS] = {
    { "decode", "the value of each code" },
    { "encode", "nearest even" },
    { "encode_sat", "nearest even, stopping at the maximum" },
    { "bracket", "directed modes, to odd, and stochastic with 32 bits" },
};

typedef struct codec {
    const char *name; /* in the files' names */
    trn_format format;
} codec;

static const codec codecs[] = {
    { "bfloat16", TRN_BF16 },
    { "float16", TRN_F16 },
    { "tf32", TRN_TF32 },
    { "float8_e4m3", TRN_F8_E4M3 },
    { "float8_e4m3fn", TRN_F8_E4M3FN },
    { "float8_e5m2", TRN_F8_E5M2 },
    { "float8_e3m4", TRN_F8_E3M4 },
    { "float8_e8m0fnu", TRN_F8_E8M0 },
    { "float6_e2m3fn", TRN_F6_E2M3 },
    { "float6_e3m2fn", TRN_F6_E3M2 },
    { "float4_e2m1fn", TRN_F4_E2M1 },
};
enum { CODECS = sizeof codecs / sizeof codecs[0], ISAS = sizeof all_isas / sizeof all_isas[0] };

/* Brackets say nothing of E8M0, whose rounding is a policy. */
static bool exists(golden_kind kind, trn_format format) { return kind != BRACKET || format != TRN_F8_E8M0; }

/* ---- codes in arrays ---- */

static uint32_t code_of(trn_format format, uint32_t in_file) { return format == TRN_TF32 ? in_file << 13 : in_file; }

static void put(void *array, size_t i, size_t bytes, uint32_t code) { memcpy((char *)array + i * bytes, &code, bytes); }

static uint32_t get(const void *array, size_t i, size_t bytes)
{
    uint32_t code = 0;
    memcpy(&code, (const char *)array + i * bytes, bytes); /* little endian */
    return code;
}

typedef struct arrays {
    tb_golden file;
    uint32_t *in, *out, *expected; /* memory for elements of any size */
    size_t count;
} arrays;

static void release(arrays *a)
{
    tb_golden_free(&a->file);
    free(a->in);
    free(a->out);
    free(a->expected);
}

static bool prepare(arrays *a, const cf_vector *v, const cf_options *o, cf_answer *answer, size_t signs)
{
    char name[64], why[APP_WHY];
    const codec *c = v->about;
    memset(a, 0, sizeof *a);
    snprintf(name, sizeof name, "%s_%s.txt", kinds[v->of].name, c->name);
    if (!tb_golden_read(o->golden, name, v->of == BRACKET ? 4 : 2, &a->file, why))
        return cf_fail(answer, "%s", why), false;
    a->count = a->file.rows * signs;
    a->in = app_memory(a->count + 1, sizeof *a->in);
    a->out = app_memory(a->count + 1, sizeof *a->out);
    a->expected = app_memory(a->count + 1, sizeof *a->expected);
    return true;
}

static bool convert(arrays *a, const cf_vector *v, trn_format to, trn_format from, trn_rounding rounding,
                    trn_overflow overflow, cf_answer *answer)
{
    trn_error error = { TRN_OK, "" };
    const trn_convert_args args = { .dst = trn_tensor_1d(to, a->out, (int64_t)a->count),
                                    .src = trn_tensor_1d(from, a->in, (int64_t)a->count),
                                    .rounding = rounding,
                                    .overflow = overflow,
                                    .seed = 1,
                                    .isa = v->isa,
                                    .error = &error };
    if (trn_convert(&args) == TRN_OK) return true;
    return cf_fail(answer, "trn_convert: %s", error.text), false;
}

static void compare(const arrays *a, trn_format from, trn_format to, const char *how, cf_answer *answer)
{
    const size_t in_bytes = trn_format_bytes(from), out_bytes = trn_format_bytes(to);
    for (size_t i = 0; i < a->count; i++) {
        const uint32_t got = get(a->out, i, out_bytes);
        cf_count(answer, got == a->expected[i], "%s%0*x gives %0*x, expected %0*x", how, (int)(2 * in_bytes),
                 (unsigned)get(a->in, i, in_bytes), (int)(2 * out_bytes), (unsigned)got, (int)(2 * out_bytes),
                 (unsigned)a->expected[i]);
    }
}

/* ---- one file ---- */

static void check_codes(const cf_vector *v, const cf_options *o, cf_answer *answer)
{
    arrays a;
    const trn_format format = ((const codec *)v->about)->format;
    const bool decode = v->of == DECODE;
    const trn_format from = decode ? format : TRN_F32, to = decode ? TRN_F32 : format;
    if (!prepare(&a, v, o, answer, 1)) return;
    for (size_t i = 0; i < a.count; i++) {
        const uint32_t first = a.file.cell[2 * i], second = a.file.cell[2 * i + 1];
        put(a.in, i, trn_format_bytes(from), decode ? code_of(format, first) : first);
        a.expected[i] = decode ? second : code_of(format, second);
    }
    if (convert(&a, v, to, from, TRN_NEAREST_EVEN, v->of == ENCODE_SAT ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT, answer))
        compare(&a, from, to, "", answer);
    release(&a);
}

/* Which of the two codes a mode takes. Outside the range there is only infinity, or NaN, to go to. */
static bool goes_away(trn_rounding rounding, const uint32_t row[4], bool negative, uint32_t random, uint32_t max)
{
    switch (rounding) {
    case TRN_TOWARD_POSITIVE: return !negative;
    case TRN_TOWARD_NEGATIVE: return negative;
    case TRN_TO_ODD: return !(row[1] & 1) && row[1] != max;
    case TRN_STOCHASTIC: return ((uint64_t)row[3] + random) >> 32 && row[2] <= max;
    default: return false;
    }
}

static void check_brackets(const cf_vector *v, const cf_options *o, cf_answer *answer)
{
    static const trn_rounding modes[] = { TRN_TOWARD_ZERO, TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD,
                                          TRN_STOCHASTIC };
    arrays a;
    const trn_format format = ((const codec *)v->about)->format;
    const trn_format_info *info = trn_format_info_of(format);
    const uint32_t sign = 1u << (info->exponent_bits + info->mantissa_bits);
    if (!prepare(&a, v, o, answer, 2)) return;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        char how[40];
        for (size_t i = 0; i < a.count; i++) {
            const uint32_t *row = &a.file.cell[4 * (i / 2)];
            const bool negative = i % 2;
            const bool away = goes_away(modes[m], row, negative, trn_random_u32(1, 0, i), info->max_code);
            a.in[i] = row[0] | (negative ? 0x80000000u : 0);
            a.expected[i] = code_of(format, (away ? row[2] : row[1]) | (negative ? sign : 0));
        }
        snprintf(how, sizeof how, "%s: ", trn_round_text(modes[m]));
        if (convert(&a, v, format, TRN_F32, modes[m], TRN_OVERFLOW_DEFAULT, answer))
            compare(&a, TRN_F32, format, how, answer);
    }
    release(&a);
}

static void check_file(const cf_vector *v, const cf_options *o, cf_answer *answer)
{
    if (v->of == BRACKET)
        check_brackets(v, o, answer);
    else
        check_codes(v, o, answer);
}

/* ---- blocks ---- */

static const codec blocks[] = { { "e4m3fn", TRN_F8_E4M3FN }, { "e5m2", TRN_F8_E5M2 }, { "e2m1fn", TRN_F4_E2M1 } };

static void check_block(const cf_vector *v, const uint32_t *input, const tb_golden_block *block, cf_answer *answer)
{
    uint8_t code[TRN_MX_BLOCK], scale = 0;
    uint32_t bits[TRN_MX_BLOCK];
    memcpy(bits, input, sizeof bits);
    const trn_mx_quantize_args args = { .dst = trn_tensor_1d(((const codec *)v->about)->format, code, TRN_MX_BLOCK),
                                        .dst_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1),
                                        .src = trn_tensor_1d(TRN_F32, bits, TRN_MX_BLOCK),
                                        .scale = TRN_MX_SCALE_OCP_FLOOR,
                                        .isa = v->isa };
    const bool right =
        trn_mx_quantize(&args) == TRN_OK && scale == block->scale && memcmp(code, block->code, sizeof code) == 0;
    cf_count(answer, right, "the block that begins with %08x: scale %02x, expected %02x", (unsigned)input[0], scale,
             block->scale);
}

static void check_blocks(const cf_vector *v, const cf_options *o, cf_answer *answer)
{
    char name[64], why[APP_WHY];
    tb_golden inputs;
    tb_golden_block *block = NULL;
    const codec *c = v->about;
    if (!tb_golden_read(o->golden, "mx_inputs.txt", TRN_MX_BLOCK, &inputs, why)) {
        cf_fail(answer, "%s", why);
        return;
    }
    snprintf(name, sizeof name, "mx_%s_ocp.txt", c->name);
    const size_t count = tb_golden_blocks(o->golden, name, c->format == TRN_F4_E2M1 ? 1 : 2, &block);
    if (count != inputs.rows)
        cf_fail(answer, "%s: %zu blocks, expected %zu", name, count, inputs.rows);
    else
        for (size_t i = 0; i < count; i++) check_block(v, &inputs.cell[TRN_MX_BLOCK * i], &block[i], answer);
    free(block);
    tb_golden_free(&inputs);
}

/* ---- the whole directory ---- */

/* Is there a vector for it? */
static bool is_read(const char *name)
{
    char known[80];
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < CODECS; c++) {
            snprintf(known, sizeof known, "%s_%s.txt", kinds[k].name, codecs[c].name);
            if (exists((golden_kind)k, codecs[c].format) && strcmp(name, known) == 0) return true;
        }
    /* Quantised checkpoints are no numbers of an engine: unit tests read their files. */
    static const char *const begins[] = { "mx_", "tensor_core_", "gguf_", "quant_" };
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

static void check_directory(const cf_vector *v, const cf_options *o, cf_answer *answer)
{
    (void)v;
    errno = 0;
    DIR *directory = opendir(o->golden);
    if (!directory && errno == ENOMEM)
        exit(app_complain(APP_USAGE, "there is not enough memory to open %s", o->golden));
    if (!directory) {
        cf_fail(answer, "%s: it cannot be opened", o->golden);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".txt") == 0)
            cf_count(answer, is_read(entry->d_name), "%s: no vector of this kit reads it", entry->d_name);
    }
    closedir(directory);
}

/* ---- the vectors ---- */

void cf_fill_golden(cf_list *list)
{
    for (int c = 0; c < CODECS; c++)
        for (int k = 0; k < KINDS; k++)
            for (int i = 0; i < ISAS; i++) {
                if (!exists((golden_kind)k, codecs[c].format)) continue;
                cf_add(list, (cf_vector){ .id = cf_id(list, "format.%s.%s.%s", kinds[k].name, codecs[c].name,
                                                      trn_isa_text(all_isas[i])),
                                          .what = cf_text(list, "%s: %s, %s kernels", codecs[c].name, kinds[k].what,
                                                          trn_isa_text(all_isas[i])),
                                          .source = provenance,
                                          .kind = CF_CALCULATED,
                                          CF_NONE_WRONG,
                                          .test = check_file,
                                          .about = &codecs[c],
                                          .of = k,
                                          .isa = all_isas[i] });
            }
    cf_add(list, (cf_vector){ .id = "format.golden.files",
                              .what = "files of reference vectors that this kit does not read",
                              .source = provenance,
                              .kind = CF_CALCULATED,
                              CF_NONE_WRONG,
                              .test = check_directory });
}

void cf_fill_golden_blocks(cf_list *list)
{
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < ISAS; i++)
            cf_add(list, (cf_vector){ .id = cf_id(list, "mx.blocks.%s.%s", blocks[c].name, trn_isa_text(all_isas[i])),
                                      .what = cf_text(list, "blocks of 32 as %s: scale and codes, %s kernels",
                                                      blocks[c].name, trn_isa_text(all_isas[i])),
                                      .source = "tests/golden/README.md: ml_dtypes, microxcaling, gfloat; all agree",
                                      .kind = CF_CALCULATED,
                                      CF_NONE_WRONG,
                                      .test = check_blocks,
                                      .about = &blocks[c],
                                      .isa = all_isas[i] });
}

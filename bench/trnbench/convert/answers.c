/* answers.c - wrong answers: a maker's conversions beside the reference vectors of tests/golden.
 * SPDX-License-Identifier: MIT
 *
 * What the vectors say about a conversion becomes a list of cases: a code that goes in, and the code that must come
 * out, or the two between which stochastic rounding chooses. trnmath has to match to the last bit, the random choice
 * included. Its peers are judged by what they promise: any NaN is a NaN, their random numbers are their own, and what
 * is policy and not arithmetic (a NaN for a format without one, an infinity that saturates) is not asked.
 */
#include "convert.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/golden.h"

#define F32_SIGN 0x80000000u
#define F32_INFINITY 0x7f800000u

typedef struct one_case {
    uint32_t in, out;
    uint32_t away;     /* stochastic: the code on the other side of `out`, which is nearer to zero */
    uint32_t fraction; /* the position between the two, times 2^32 */
} one_case;

typedef struct cases {
    one_case *list;
    size_t count, room;
} cases;

static void add(cases *c, one_case one)
{
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 4096;
        c->list = app_resize(c->list, c->room, sizeof *c->list);
    }
    c->list[c->count++] = one;
}

/* ---- what the files say ---- */

/* What the files call a format. */
static const char *file_name(trn_format format)
{
    if (format == TRN_CFP8) return trn_format_name(TRN_F8_E4M3); /* its bare form: the same codes */
    return format == TRN_TF32 ? "tf32" : trn_format_name(format);
}

/* They hold TF32 without the zeros below it. */
static uint32_t code_of(trn_format format, uint32_t in_file) { return format == TRN_TF32 ? in_file << 13 : in_file; }

/* The code of a binary32 value in a format that holds it exactly. */
static bool exact_code(trn_format format, uint32_t f32, uint32_t *code)
{
    float x;
    memcpy(&x, &f32, sizeof x);
    *code = trn_encode(format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    const float back = trn_decode(format, *code);
    return memcmp(&back, &f32, sizeof back) == 0;
}

static bool load(const char *directory, const char *kind, trn_format format, int columns, tb_golden *g)
{
    char file[64], why[APP_WHY];
    snprintf(file, sizeof file, "%s_%s.txt", kind, file_name(format));
    return tb_golden_read(directory, file, columns, g, why);
}

/* Nearest even into c->to: every line whose value c->from holds. */
static void add_encode(cases *list, const tb_conversion *c, const char *directory, const char *kind, bool finite_only)
{
    const trn_format_info *info = trn_format_info_of(c->to->format);
    const uint32_t magnitude_bits =
        c->to->format == TRN_F8_E8M0 ? 0xffu : (1u << (info->bits - info->low_zeros - 1)) - 1;
    tb_golden g;
    if (!load(directory, kind, c->to->format, 2, &g)) return;
    for (size_t i = 0; i < g.rows; i++) {
        one_case one = { 0, code_of(c->to->format, g.cell[2 * i + 1]), 0, 0 };
        if (finite_only && (g.cell[2 * i + 1] & magnitude_bits) > info->max_code) continue;
        if (exact_code(c->from->format, g.cell[2 * i], &one.in)) add(list, one);
    }
    tb_golden_free(&g);
}

/* Values of c->from that c->to holds as well. */
static void add_exact(cases *list, const tb_conversion *c, const char *directory)
{
    tb_golden g;
    if (!load(directory, "decode", c->from->format, 2, &g)) return;
    for (size_t i = 0; i < g.rows; i++) {
        one_case one = { code_of(c->from->format, g.cell[2 * i]), 0, 0, 0 };
        if (exact_code(c->to->format, g.cell[2 * i + 1], &one.out)) add(list, one);
    }
    tb_golden_free(&g);
}

/* A directed mode between the two neighbours of a positive value, or of its negative. */
static uint32_t directed(const tb_conversion *c, const uint32_t row[4], bool negative)
{
    const uint32_t toward_zero = row[1], away = row[2], max = trn_format_info_of(c->to->format)->max_code;
    switch (c->rounding) {
    case TRN_TOWARD_POSITIVE: return negative ? toward_zero : away;
    case TRN_TOWARD_NEGATIVE: return negative ? away : toward_zero;
    case TRN_TO_ODD: return (toward_zero & 1) || toward_zero == max ? toward_zero : away;
    default: return toward_zero;
    }
}

static void add_bracket(cases *list, const tb_conversion *c, const char *directory)
{
    const trn_format_info *info = trn_format_info_of(c->to->format);
    const bool stochastic = c->rounding == TRN_STOCHASTIC;
    tb_golden g;
    if (!load(directory, "bracket", c->to->format, 4, &g)) return;
    for (size_t i = 0; i < 2 * g.rows; i++) {
        const uint32_t *row = &g.cell[4 * (i / 2)], sign = 1u << (info->exponent_bits + info->mantissa_bits);
        const bool negative = i % 2;
        one_case one = { 0, stochastic ? row[1] : directed(c, row, negative), row[2], row[3] };
        if (negative) one.out |= sign, one.away |= sign;
        one.out = code_of(c->to->format, one.out), one.away = code_of(c->to->format, one.away);
        if (exact_code(c->from->format, row[0] | (negative ? F32_SIGN : 0), &one.in)) add(list, one);
    }
    tb_golden_free(&g);
}

static cases find_cases(const tb_conversion *c, const char *directory)
{
    cases list = { NULL, 0, 0 };
    const bool from_float = !tb_is_integer(c->from->format);
    if (c->rounding != TRN_NEAREST_EVEN) {
        add_bracket(&list, c, directory);
    } else if (c->to->format == TRN_F32) {
        if (from_float) add_exact(&list, c, directory);
    } else {
        const bool saturate = c->overflow == TRN_SATURATE;
        if (saturate) add_encode(&list, c, directory, "encode_sat", false);
        add_encode(&list, c, directory, "encode", saturate);
        if (c->from->format != TRN_F32 && from_float) add_exact(&list, c, directory);
    }
    return list;
}

/* ---- codes in arrays ---- */

static void put(void *array, size_t i, size_t bytes, uint32_t code) { memcpy((char *)array + i * bytes, &code, bytes); }

static uint32_t get(const void *array, size_t i, size_t bytes)
{
    uint32_t code = 0;
    memcpy(&code, (const char *)array + i * bytes, bytes); /* little endian */
    return code;
}

static uint32_t bits_of_value(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t bits_of(trn_format format, uint32_t code) { return bits_of_value(trn_decode(format, code)); }

static bool is_nan(uint32_t f32) { return (f32 & ~F32_SIGN) > F32_INFINITY; }

/* Is `got`, a code or the binary32 value itself, what `expected` says? */
static bool same(tb_maker_id id, trn_format to, uint32_t got, uint32_t expected)
{
    if (id == TB_TRNMATH) return got == expected;
    const uint32_t value = tb_maker_gives_values(id) ? got : bits_of(to, got), wanted = bits_of(to, expected);
    return value == wanted || (is_nan(value) && is_nan(wanted));
}

/* What a peer is free to do as it likes. */
static bool is_policy(const tb_conversion *c, uint32_t in)
{
    const trn_format_info *info = trn_format_info_of(c->to->format);
    const uint32_t f32 = bits_of(c->from->format, in);
    return (is_nan(f32) && info->overflow_code == info->max_code) ||
           (c->overflow == TRN_SATURATE && (f32 & ~F32_SIGN) == F32_INFINITY);
}

/* ---- running them ---- */

typedef struct bench {
    const tb_conversion *c;
    tb_maker_id id;
    trn_isa isa;
    size_t in_bytes, out_bytes;
    char *src, *dst;
    uint32_t *field;
    tb_answers *answers;
} bench;

static bool convert(const bench *b, size_t n, uint64_t seed)
{
    const tb_arrays arrays = { b->dst, NULL, b->src, NULL, n, 1, b->isa, seed };
    void *job = tb_maker_prepare(b->id, b->c, &arrays);
    if (!job) return false;
    tb_maker_run(b->id, job);
    tb_maker_release(b->id, job);
    return true;
}

/* One more answer; the first wrong one is told. */
static __attribute__((format(printf, 3, 4))) void count(const bench *b, bool right, const char *format, ...)
{
    tb_answers *a = b->answers;
    va_list list;
    a->cases++;
    if (right || a->wrong++) return;
    va_start(list, format);
    vsnprintf(a->first, sizeof a->first, format, list);
    va_end(list);
}

static const char *hex(char text[9], uint32_t code, size_t bytes)
{
    snprintf(text, 9, "%0*x", (int)(2 * bytes), (unsigned)code);
    return text;
}

static void count_code(const bench *b, bool right, uint32_t in, uint32_t got, uint32_t expected)
{
    char text[3][9];
    count(b, right, "%s gives %s and should give %s", hex(text[0], in, b->in_bytes), hex(text[1], got, b->out_bytes),
          hex(text[2], expected, trn_format_bytes(b->c->to->format)));
}

static void check_codes(const bench *b, const cases *list)
{
    for (size_t i = 0; i < list->count; i++) put(b->src, i, b->in_bytes, list->list[i].in);
    if (!convert(b, list->count, 1)) return;
    for (size_t i = 0; i < list->count; i++) {
        const one_case *one = &list->list[i];
        const uint32_t got = get(b->dst, i, b->out_bytes);
        if (b->id != TB_TRNMATH && is_policy(b->c, one->in)) continue;
        count_code(b, same(b->id, b->c->to->format, got, one->out), one->in, got, one->out);
    }
}

/* Between the maximum and the next step, where there are only infinity or NaN to go to. */
static bool leaves_range(const bench *b, const one_case *one)
{
    const trn_format_info *info = trn_format_info_of(b->c->to->format);
    return (one->away >> info->low_zeros & ((1u << (info->exponent_bits + info->mantissa_bits)) - 1)) > info->max_code;
}

/* trnmath's choice follows from the random field of the element; it never leaves the range. */
static void check_choice(const bench *b, const one_case *one, int draws, size_t at)
{
    uint32_t got = 0, expected = 0;
    for (int d = 0; d < draws && got == expected; d++) {
        const uint64_t position = one->fraction >> (32 - b->c->sr_bits), field = b->field[at + (size_t)d];
        const bool up = (position + field) >> b->c->sr_bits && !leaves_range(b, one);
        got = get(b->dst, at + (size_t)d, b->out_bytes);
        expected = up ? one->away : one->out;
    }
    count_code(b, got == expected, one->in, got, expected);
}

/* A peer's choices are neighbours, and as many of them are up as the position says, within six standard deviations
 * (what it does at the end of the range is policy). */
static void check_fairness(const bench *b, const one_case *one, int draws, size_t at)
{
    const trn_format to = b->c->to->format;
    const double p = (double)one->fraction * 0x1p-32, up_expected = draws * p;
    int up = 0;
    char text[4][9];
    for (int d = 0; d < draws; d++) {
        const uint32_t got = get(b->dst, at + (size_t)d, b->out_bytes);
        const bool away = one->away != one->out && same(b->id, to, got, one->away);
        if (!away && !same(b->id, to, got, one->out)) {
            count(b, false, "%s gives %s, neither %s nor %s", hex(text[0], one->in, b->in_bytes),
                  hex(text[1], got, b->out_bytes), hex(text[2], one->out, trn_format_bytes(to)),
                  hex(text[3], one->away, trn_format_bytes(to)));
            return;
        }
        up += away;
    }
    const bool fair = fabs(up - up_expected) <= 6 * sqrt(up_expected * (1 - p)) + 3 || leaves_range(b, one);
    count(b, fair, "%s goes away from zero %d times of %d; expected %.0f", hex(text[0], one->in, b->in_bytes), up,
          draws, up_expected);
}

enum { CHUNK = 64 }; /* cases at a time */

static void check_choices(const bench *b, const cases *list, int draws)
{
    for (size_t first = 0; first < list->count; first += CHUNK) {
        const size_t left = list->count - first, n = left < CHUNK ? left : CHUNK;
        const uint64_t seed = 1 + first;
        for (size_t i = 0; i < n * (size_t)draws; i++)
            put(b->src, i, b->in_bytes, list->list[first + i / (size_t)draws].in);
        if (!convert(b, n * (size_t)draws, seed)) return;
        if (b->id == TB_TRNMATH) tb_trnmath_fields(b->c, seed, b->field, n * (size_t)draws);
        for (size_t i = 0; i < n; i++) {
            const one_case *one = &list->list[first + i];
            (b->id == TB_TRNMATH ? check_choice : check_fairness)(b, one, draws, i * (size_t)draws);
        }
    }
}

static void check_numbers(const tb_conversion *c, tb_maker_id id, trn_isa isa, const char *directory, int draws,
                          tb_answers *answers)
{
    cases list = find_cases(c, directory);
    const bool stochastic = c->rounding == TRN_STOCHASTIC;
    const size_t room = stochastic ? CHUNK * (size_t)draws : list.count;
    bench b = { c,    id,   isa,    trn_format_bytes(c->from->format), trn_format_bytes(c->to->format), NULL,
                NULL, NULL, answers };
    if (tb_maker_gives_values(id)) b.out_bytes = sizeof(float);
    b.src = app_memory(room * b.in_bytes + 1, 1);
    b.dst = app_memory(room * b.out_bytes + 1, 1);
    b.field = app_memory(room + 1, sizeof *b.field);
    const bool ready = list.count > 0;
    if (ready && stochastic) check_choices(&b, &list, draws);
    if (ready && !stochastic) check_codes(&b, &list);
    free(list.list);
    free(b.src);
    free(b.dst);
    free(b.field);
}

/* ---- blocks ---- */

/* Scales by OCP's rule, from binary32 or whatever of it the source holds; and what the codes mean, the way back. */
static void check_block(const tb_conversion *c, tb_maker_id id, trn_isa isa, const uint32_t *input,
                        const tb_golden_block *block, tb_answers *answers)
{
    const bool quantize = c->to->mx;
    const trn_format element = quantize ? c->to->format : c->from->format;
    uint32_t src[TB_MX_BLOCK] = { 0 }, dst[TB_MX_BLOCK] = { 0 };
    uint8_t scale = 0;
    const tb_arrays arrays = { dst, &scale, src, &block->scale, TB_MX_BLOCK, 1, isa, 1 };
    const size_t in_bytes = trn_format_bytes(c->from->format), out_bytes = trn_format_bytes(c->to->format);
    for (size_t i = 0; i < TB_MX_BLOCK; i++) {
        uint32_t code = block->code[i];
        if (quantize && !exact_code(c->from->format, input[i], &code)) return;
        put(src, i, in_bytes, code);
    }
    void *job = tb_maker_prepare(id, c, &arrays);
    if (!job) return;
    tb_maker_run(id, job);
    tb_maker_release(id, job);
    bool right = !quantize || scale == block->scale;
    size_t at = 0;
    for (size_t i = 0; i < TB_MX_BLOCK && right; at = i++) {
        uint32_t expected = block->code[i];
        const float value =
            ldexpf(trn_decode(element, expected), block->scale - 127); /* exact, or the block is left out */
        if (!quantize && !exact_code(c->to->format, bits_of_value(value), &expected)) continue;
        right = get(dst, i, out_bytes) == expected;
    }
    answers->cases++;
    if (right || answers->wrong++) return;
    snprintf(answers->first, sizeof answers->first,
             "in the block that begins with %08x, element %d is %x and its scale is %02x", (unsigned)input[0], (int)at,
             (unsigned)get(dst, at, out_bytes), (unsigned)scale);
}

static void check_blocks(const tb_conversion *c, tb_maker_id id, trn_isa isa, const char *directory,
                         tb_answers *answers)
{
    const trn_format element = c->to->mx ? c->to->format : c->from->format;
    char file[64], why[APP_WHY];
    tb_golden inputs;
    tb_golden_block *block = NULL;
    const char *name = trn_format_name(element), *plain = strchr(name, '_');
    snprintf(file, sizeof file, "mx_%s_ocp.txt", plain ? plain + 1 : name); /* "float8_e5m2" is mx_e5m2_ocp.txt */
    if (!tb_golden_read(directory, "mx_inputs.txt", TB_MX_BLOCK, &inputs, why)) return;
    const size_t blocks = tb_golden_blocks(directory, file, trn_format_bits(element) <= 4 ? 1 : 2, &block);
    for (size_t i = 0; i < blocks && i < inputs.rows; i++)
        check_block(c, id, isa, &inputs.cell[TB_MX_BLOCK * i], &block[i], answers);
    free(block);
    tb_golden_free(&inputs);
}

tb_answers tb_check_conversion(const tb_conversion *c, tb_maker_id id, trn_isa isa, const char *directory, int draws)
{
    tb_answers answers = { 0, 0, "" };
    if (c->from->mx || c->to->mx)
        check_blocks(c, id, isa, directory, &answers);
    else
        check_numbers(c, id, isa, directory, draws, &answers);
    return answers;
}

/* ---- are they there? ---- */

int tb_find_golden(const char *directory, char *why)
{
    static const struct {
        const char *kind;
        int columns;
    } kinds[] = { { "decode", 2 }, { "encode", 2 }, { "encode_sat", 2 }, { "bracket", 4 } };
    int files = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int format = 1; trn_format_bits((trn_format)format) > 0; format++) {
            char name[64];
            tb_golden g;
            snprintf(name, sizeof name, "%s_%s.txt", kinds[k].kind, file_name((trn_format)format));
            if (!tb_golden_there(directory, name)) continue;
            if (!tb_golden_read(directory, name, kinds[k].columns, &g, why)) return 0;
            tb_golden_free(&g);
            files++;
        }
    return files;
}

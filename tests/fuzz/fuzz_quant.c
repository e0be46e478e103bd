/* fuzz_quant.c - random tensors as matrices of AWQ, GPTQ, compressed-tensors and bitsandbytes: no crash, no read
 * outside a tensor, one sentence for each refusal; good ones are accepted, and are worth what their twin is.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_quant [count] [seed]        default: 20000 matrices, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * A twin packs a matrix. Then, but for one in four, something is spoilt: a size, a type, the number of axes, a byte of
 * the data, a tensor that is missing or stands in another's place, what the configuration says.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#include "twin/cases.h"

#if defined(HAVE_CJSON)

#include "fuzz/long.h"
#include "io/int4_awq.h"
#include "io/int4_gptq.h"
#include "io/int4_packed.h"
#include "io/nf4.h"
#include "twin/twin_quant.h"

enum { PARTS = 6, LARGEST = 1 << 18 };

static uint64_t rng;
static int below(int n) { return cases_below(&rng, n); }
static bool one_in(int n) { return cases_one_in(&rng, n); }

static volatile float sum;

/* ---- tensors with blocks of memory of their own, so that a sanitizer sees one byte too many ---- */

typedef struct attempt {
    st_tensor tensor[PARTS];
    bool there[PARTS];
    bool spoilt;
} attempt;

static const st_tensor *part_of(const attempt *a, int part) { return a->there[part] ? &a->tensor[part] : NULL; }

static unsigned char *bytes_of(st_tensor *t) { return (unsigned char *)(uintptr_t)t->data; }

/* Its type, axes and sizes are set: measures it, and gives it memory. false: no file has such a tensor here. */
static bool measure(st_tensor *t)
{
    uint64_t bytes = 0;
    const char *wrong;
    if (!st_measure(t, &bytes, &wrong) || bytes > LARGEST) return false;
    t->end = bytes;
    t->data = calloc((size_t)bytes + (bytes == 0), 1);
    assert(t->data);
    return true;
}

static unsigned char *put_tensor(attempt *a, int part, const char *type, int rank, int64_t first, int64_t second)
{
    st_tensor *t = &a->tensor[part];
    memset(t, 0, sizeof *t);
    t->name = (char *)(uintptr_t) "fuzz";
    snprintf(t->type, sizeof t->type, "%s", type);
    t->rank = rank;
    t->shape[0] = first;
    t->shape[1] = second;
    a->there[part] = measure(t);
    assert(a->there[part]);
    return bytes_of(t);
}

static void put_number(unsigned char *at, uint32_t n, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(n >> 8 * i);
}

/* ---- spoiling ---- */

/* Another type, size or rank; the data is kept as far as it goes. */
static void spoil_shape(st_tensor *t)
{
    static const char *const types[] = { "I32", "I64", "U8", "I8", "F16", "BF16", "F32", "F8_E4M3", "F4", "BOOL" };
    st_tensor now = *t;
    const int axis = below(3);
    switch (below(5)) {
    case 0: snprintf(now.type, sizeof now.type, "%s", types[below(10)]); break;
    case 1: now.rank = below(4); break;
    case 2: now.shape[axis] = below(4) * below(40); break;
    case 3: now.shape[axis] = (int64_t)(cases_next(&rng) >> 10 >> below(53)); break;
    default: now.shape[axis] += below(5) - 2;
    }
    if (!measure(&now)) return;
    memcpy(bytes_of(&now), t->data, now.end < t->end ? (size_t)now.end : (size_t)t->end);
    free(bytes_of(t));
    *t = now;
}

static void spoil_bytes(st_tensor *t)
{
    static const char *const tokens[] = {
        "{", "}", "[", "]", ",", ":", "\"", "0", "9", "-1", "e9", "null", "nf4", "\\u"
    };
    if (t->end == 0) return;
    const size_t at = (size_t)below((int)t->end);
    const char *token = tokens[below(14)];
    if (one_in(2))
        bytes_of(t)[at] = (unsigned char)cases_u32(&rng);
    else if (t->end - at >= strlen(token))
        memcpy(bytes_of(t) + at, token, strlen(token));
}

static void spoil(attempt *a)
{
    const int part = below(PARTS), other = below(PARTS);
    if (!a->there[part]) return;
    switch (below(6)) {
    case 0:
        free(bytes_of(&a->tensor[part]));
        a->there[part] = false;
        break;
    case 1:
        if (a->there[other]) {
            const st_tensor keep = a->tensor[part];
            a->tensor[part] = a->tensor[other];
            a->tensor[other] = keep;
        }
        break;
    case 2:
    case 3: spoil_bytes(&a->tensor[part]); break;
    default: spoil_shape(&a->tensor[part]);
    }
}

static void maybe_spoil(attempt *a)
{
    a->spoilt = !one_in(4);
    for (int wounds = a->spoilt ? 1 + below(3) : 0; wounds > 0; wounds--) spoil(a);
}

static void release(attempt *a)
{
    for (int i = 0; i < PARTS; i++)
        if (a->there[i]) free(bytes_of(&a->tensor[i]));
}

/* A number of the configuration: as it is, or another. */
static int64_t said(const attempt *a, int64_t n)
{
    static const int64_t other[] = { -2, -1, 0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 64, 128, INT64_MAX, INT64_MIN };
    return a->spoilt && one_in(5) ? other[below(16)] : n;
}

/* A text: as it is, not said, or one of these. */
static const char *said_text(const attempt *a, const char *text)
{
    static const char *const other[] = { NULL,    "gemm",    "gptq", "gptq_v2", "marlin", "pack-quantized",
                                         "group", "channel", "int",  "tensor",  "",       "GEMM" };
    return a->spoilt && one_in(8) ? other[below(12)] : text;
}

static int_groups_said said_bool(const attempt *a, int_groups_said b)
{
    return a->spoilt && one_in(5) ? (int_groups_said)(below(3) - 1) : b;
}

/* ---- what comes of it ---- */

static bool check_sentence(const char *why)
{
    const char *colon = strstr(why, ": ");
    assert(colon && colon > why && strlen(colon) > 4);
    for (const char *c = why; *c; c++) assert((unsigned char)*c >= 0x20);
    return false;
}

static uint32_t bits_of(float x) { return x != x ? 0x7fc00000u : io_bits(x); }

/* Every row; beside the twin's where nothing was spoilt. */
static bool check_groups(const attempt *a, const int_groups *m, const twin_quant *q)
{
    float *row = calloc((size_t)m->columns, sizeof *row);
    int16_t *integer = calloc((size_t)m->columns, sizeof *integer);
    assert(row && integer);
    for (int64_t r = 0; r < m->rows; r++) {
        int_groups_row(m, r, row);
        int_groups_integers(m, r, integer);
        for (int64_t c = 0; c < m->columns; c++) {
            assert(integer[c] >= -256 && integer[c] <= 256);
            sum += row[c];
            if (!a->spoilt) assert(bits_of(row[c]) == twin_quant_odd(twin_quant_value(q, (int)r, (int)c)));
        }
    }
    free(row);
    free(integer);
    return true;
}

/* ---- the formats: each makes one matrix; false: it was refused ---- */

static const char *scale_type(const twin_quant *q)
{
    return q->scale_bytes == 4 ? "F32" : q->scale_mantissa == 10 ? "F16" : "BF16";
}

/* Scales of [groups, rows], or of [rows, groups]. */
static void put_scales(attempt *a, int part, const twin_quant *q, bool down)
{
    unsigned char *at = put_tensor(a, part, scale_type(q), 2, down ? q->groups : q->rows, down ? q->rows : q->groups);
    for (int r = 0; r < q->rows; r++)
        for (int g = 0; g < q->groups; g++)
            put_number(at + q->scale_bytes * (down ? g * q->rows + r : r * q->groups + g), q->scale[r][g],
                       q->scale_bytes);
}

static void put_order(attempt *a, int part, const twin_quant *q)
{
    unsigned char *at = put_tensor(a, part, "I32", 1, q->columns, 0);
    for (int k = 0; k < q->columns; k++) put_number(at + 4 * k, (uint32_t)q->of[k], 4);
}

static void draw(twin_quant *q, int bits, int rows, int largest, bool ordered)
{
    q->bits = bits;
    q->rows = rows;
    q->columns = 1 + below(80);
    q->group = q->columns / (1 + below(6)) + 1;
    twin_quant_draw(&rng, q, largest, ordered);
}

static bool try_awq(attempt *a, twin_quant *q)
{
    char why[IO_WHY];
    int_groups m;
    draw(q, 4, 8 + 8 * below(4), 15, false);
    unsigned char *words = put_tensor(a, 0, "I32", 2, q->columns, q->rows / 8);
    twin_quant_awq(q, words, put_tensor(a, 1, "I32", 2, q->groups, q->rows / 8));
    put_scales(a, 2, q, true);
    maybe_spoil(a);
    const int4_awq_config config = { said_text(a, "gemm"), said(a, 4), said(a, q->group) };
    if (!int4_awq_open(part_of(a, 0), part_of(a, 1), part_of(a, 2), &config, &m, why)) return check_sentence(why);
    return check_groups(a, &m, q);
}

static bool try_gptq(attempt *a, twin_quant *q)
{
    static const int widths[] = { 2, 3, 4, 8 };
    const bool second = one_in(2), ordered = one_in(2);
    char why[IO_WHY];
    int_groups m;
    draw(q, widths[below(4)], 1 + below(TWIN_ROWS), 3, ordered);
    for (int r = 0; r < q->rows && !second; r++)
        for (int g = 0; g < q->groups; g++) q->zero[r][g] += q->zero[r][g] == 0;
    unsigned char *words = put_tensor(a, 0, "I32", 2, twin_quant_words(q->columns, q->bits), q->rows);
    twin_quant_gptq(q, !second, words, put_tensor(a, 1, "I32", 2, q->groups, twin_quant_words(q->rows, q->bits)));
    put_scales(a, 2, q, true);
    put_order(a, 3, q);
    maybe_spoil(a);
    const int4_gptq_parts part = { part_of(a, 0), part_of(a, 1), part_of(a, 2), part_of(a, 3) };
    const int4_gptq_config config = { said_text(a, second ? "gptq_v2" : "gptq"), said(a, q->bits), said(a, q->group),
                                      said_bool(a, ordered ? INT_GROUPS_TRUE : INT_GROUPS_UNSAID),
                                      said_bool(a, INT_GROUPS_FALSE) };
    if (!int4_gptq_open(&part, &config, &m, why)) return check_sentence(why);
    assert(int4_gptq_trusted(part.qweight, &m, "gptqmodel:2", why) == (int4_gptq_largest(&m) == 0));
    return check_groups(a, &m, q);
}

static bool try_packed(attempt *a, twin_quant *q)
{
    const bool symmetric = one_in(2), ordered = one_in(2);
    char why[IO_WHY];
    int_groups m;
    draw(q, 2 + below(7), 1 + below(TWIN_ROWS), 3, ordered);
    for (int r = 0; r < q->rows && symmetric; r++)
        for (int g = 0; g < q->groups; g++) q->zero[r][g] = 1 << (q->bits - 1);
    unsigned char *words = put_tensor(a, 0, "I32", 2, q->rows, twin_quant_share(q->columns, q->bits));
    twin_quant_packed(q, words, put_tensor(a, 3, "I32", 2, twin_quant_share(q->rows, q->bits), q->groups));
    put_scales(a, 1, q, false);
    unsigned char *shape = put_tensor(a, 2, "I64", 1, 2, 0);
    put_number(shape, (uint32_t)q->rows, 4);
    put_number(shape + 8, (uint32_t)q->columns, 4);
    if (ordered) put_order(a, 4, q);
    maybe_spoil(a);
    const int4_packed_parts part = { .packed = part_of(a, 0),
                                     .scale = part_of(a, 1),
                                     .shape = part_of(a, 2),
                                     .zero_point = symmetric ? NULL : part_of(a, 3),
                                     .g_idx = part_of(a, 4) };
    const int4_packed_config config = { said_text(a, "pack-quantized"),
                                        said_text(a, "int"),
                                        said_text(a, "group"),
                                        said(a, q->bits),
                                        said(a, q->group),
                                        said_bool(a, symmetric ? INT_GROUPS_TRUE : INT_GROUPS_FALSE) };
    return int4_packed_open(&part, &config, &m, why) ? check_groups(a, &m, q) : check_sentence(why);
}

static void any_bytes(unsigned char *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) at[i] = (unsigned char)cases_u32(&rng);
}

/* Random bytes throughout, but for the state. */
static void draw_nf4(attempt *a, bool nested)
{
    const int64_t rows = 1 + below(9), columns = 1 + below(90), n = rows * columns;
    const int64_t block = 1 << below(8), group = 1 << below(5);
    const int64_t blocks = (n + block - 1) / block, groups = (blocks + group - 1) / group;
    char text[512];
    int size = snprintf(text, sizeof text,
                        "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"float16\", \"shape\": [%d, %d]",
                        one_in(2) ? "nf4" : "fp4", (int)block, (int)rows, (int)columns);
    if (nested)
        size += snprintf(text + size, sizeof text - (size_t)size,
                         ", \"nested_blocksize\": %d, \"nested_dtype\": \"float32\", \"nested_offset\": 0.0%d",
                         (int)group, below(9999));
    size += snprintf(text + size, sizeof text - (size_t)size, "}");
    any_bytes(put_tensor(a, 0, "U8", 2, (n + 1) / 2, 1), (n + 1) / 2);
    any_bytes(put_tensor(a, 1, nested ? "U8" : "F32", 1, blocks, 0), nested ? blocks : 4 * blocks);
    memcpy(put_tensor(a, 2, "U8", 1, size, 0), text, (size_t)size);
    if (!nested) return;
    any_bytes(put_tensor(a, 4, "F32", 1, groups, 0), 4 * groups);
    any_bytes(put_tensor(a, 5, "F32", 1, NF4_BYTES, 0), 4 * NF4_BYTES);
}

static bool try_nf4(attempt *a, twin_quant *q)
{
    char why[IO_WHY];
    nf4 m;
    (void)q;
    draw_nf4(a, one_in(2));
    maybe_spoil(a);
    const nf4_parts part = { part_of(a, 0), part_of(a, 1), part_of(a, 2), part_of(a, 3), part_of(a, 4), part_of(a, 5) };
    if (!nf4_open(&part, &m, why)) return check_sentence(why);
    float *row = calloc((size_t)m.columns, sizeof *row);
    assert(row);
    for (int64_t r = 0; r < m.rows; r++) {
        nf4_row(&m, r, row);
        for (int64_t c = 0; c < m.columns; c++) sum += row[c];
    }
    free(row);
    return true;
}

int main(int argc, char **argv)
{
    static bool (*const format[])(attempt *, twin_quant *) = { try_awq, try_gptq, try_packed, try_nf4 };
    static const char *const name[] = { "AWQ", "GPTQ", "compressed-tensors", "bitsandbytes" };
    static twin_quant q;
    long accepted[4] = { 0 }, of[4] = { 0 };
    fuzzing_start(argc, argv, 20000, 1000000);
    while (fuzzing_next(&rng)) {
        attempt a;
        memset(&a, 0, sizeof a);
        const int which = (int)(fuzzing.number % 4);
        const bool ok = format[which](&a, &q);
        if (!a.spoilt && !ok) return printf("a good matrix of %s is refused\n", name[which]), 1;
        of[which] += a.spoilt;
        accepted[which] += a.spoilt && ok;
        release(&a);
    }
    bool sound = true;
    const long count = fuzzing_end();
    for (int i = 0; i < 4; i++) {
        printf("%s: of %ld spoilt ones %ld accepted\n", name[i], of[i], accepted[i]);
        sound = sound && accepted[i] > of[i] / 20 && accepted[i] < of[i] * 3 / 4;
    }
    /* Who refuses everything, or nothing, is not being tested. */
    return count < 1000 || sound ? 0 : 1;
}

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif

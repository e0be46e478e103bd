/* matrix.c - one instruction of a matrix unit: fragments by the tables of the PTX ISA, sums by the twin.
 * SPDX-License-Identifier: MIT
 *
 * Which element a lane holds is written as the PTX ISA writes it: for element i of lane 4 g + t (group g, thread t of
 * it), its row and its column. The chips' adders are a table of their own, from the papers and not from trn_numerics.
 *
 * KNOWN FROM: the PTX ISA's fragment tables (documented); the adders: as in trn_numerics.h (measured). What FP8 becomes
 *     on sm_90 and sm_100 was read in ptxas' machine code: two F16 instructions, then four additions.
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twin/twin_aligned.h"

enum { MOST_M = 64, MOST_N = 8, MOST_K = 64 };

/* ---- the instruction's name ---- */

typedef struct instruction {
    int m, n, k, a, b, d; /* formats, in the twin's numbering */
    int lanes, scales;    /* scales: of a row; 0: none */
    bool group;
} instruction;

static int format_of(const char *name)
{
    static const struct {
        const char *name;
        int format;
    } row[] = { { "f32", TWIN_F32 },   { "tf32", TWIN_TF32 },   { "bf16", TWIN_BF16 },
                { "f16", TWIN_F16 },   { "e4m3", TWIN_E4M3FN }, { "e5m2", TWIN_E5M2 },
                { "e2m1", TWIN_E2M1 }, { "s8", TWIN_I8 },       { "s32", TWIN_I32 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].name, name) == 0) return row[i].format;
    return -1;
}

/* "….m16n8k16.row.col.f32.f16.f16.f32", "….m64n8k16.f32.f16.f16" */
static bool understand(const char *code, instruction *in)
{
    char d[16] = "", a[16] = "", b[16] = "";
    const char *shape = strstr(code, ".m16n8k");
    if (!shape) shape = strstr(code, ".m64n8k");
    if (!shape) shape = strstr(code, ".m8n8k");
    if (!shape || sscanf(shape, ".m%dn%dk%d", &in->m, &in->n, &in->k) != 3) return false;
    const char *types = strstr(shape, ".row.col.");
    in->group = !types;
    types = types ? types + 9 : strchr(shape + 1, '.') + 1;
    if (sscanf(types, "%15[^.].%15[^.].%15[^.]", d, a, b) != 3) return false;
    in->d = format_of(d), in->a = format_of(a), in->b = format_of(b);
    in->scales = strstr(code, "::2X") ? 2 : strstr(code, "::1X") ? 1 : 0;
    return in->d >= 0 && in->a >= 0 && in->b >= 0;
}

/* ---- faults ---- */

static bool fault(const char *word)
{
    const char *wanted = getenv("FAKE_CUDA_FAULT");
    return wanted && strcmp(wanted, word) == 0;
}

/* ---- fragments ---- */

typedef struct spot {
    int row, column; /* of a: row and k; of b: k and column */
} spot;

static spot a16k8(int g, int t, int i) { return (spot){ i < 2 ? g : g + 8, t * 2 + (i & 1) }; }
static spot a16k16(int g, int t, int i)
{
    return (spot){ i < 2 || (4 <= i && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0) };
}
static spot a32k4(int g, int t, int i) { return (spot){ i == 0 ? g : g + 8, t }; }
static spot a32k8(int g, int t, int i) { return (spot){ i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4 }; }
static spot a8k16(int g, int t, int i) { return (spot){ g, t * 4 + i }; }
static spot a8k32(int g, int t, int i)
{
    return (spot){ i < 4 || (8 <= i && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0) };
}
static spot a4k64(int g, int t, int i)
{
    return (spot){ i < 8 || (16 <= i && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0) };
}
static spot b16k8(int g, int t, int i) { return (spot){ t * 2 + i, g }; }
static spot b16k16(int g, int t, int i) { return (spot){ t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g }; }
static spot b32k4(int g, int t, int i) { return (spot){ t + i, g }; }
static spot b32k8(int g, int t, int i) { return (spot){ i == 0 ? t : t + 4, g }; }
static spot b8k16(int g, int t, int i) { return (spot){ t * 4 + i, g }; }
static spot b8k32(int g, int t, int i) { return (spot){ t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g }; }
static spot b4k64(int g, int t, int i) { return (spot){ t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g }; }

static const struct fragment {
    int bits, k, of_a, of_b; /* elements of a lane */
    spot (*a)(int g, int t, int i);
    spot (*b)(int g, int t, int i);
} fragment[] = {
    { 16, 8, 4, 2, a16k8, b16k8 },   { 16, 16, 8, 4, a16k16, b16k16 }, { 32, 4, 2, 1, a32k4, b32k4 },
    { 32, 8, 4, 2, a32k8, b32k8 },   { 8, 16, 4, 4, a8k16, b8k16 },    { 8, 32, 16, 8, a8k32, b8k32 },
    { 4, 64, 32, 16, a4k64, b4k64 },
};

static int bits_of(int format) { return twin_formats[format].bits; }

static const struct fragment *fragment_of(const instruction *in)
{
    for (size_t i = 0; i < sizeof fragment / sizeof fragment[0]; i++)
        if (fragment[i].bits == bits_of(in->a) && fragment[i].k == in->k) return &fragment[i];
    return NULL;
}

/* Element i of the registers: the first lies in the lowest bits. */
static uint32_t element(const uint32_t *word, int i, int bits)
{
    return bits == 32 ? word[i] : word[i * bits / 32] >> i * bits % 32 & ((1u << bits) - 1);
}

static void set_element(uint32_t *word, int i, int bits, uint32_t value)
{
    if (bits == 32) {
        word[i] = value;
        return;
    }
    const int shift = i * bits % 32;
    const uint32_t mask = ((1u << bits) - 1) << shift;
    word[i * bits / 32] = (word[i * bits / 32] & ~mask) | (value << shift & mask);
}

typedef struct matrices {
    uint32_t a[MOST_M * MOST_K], b[MOST_K * MOST_N], d[MOST_M * MOST_N]; /* d: C before */
    uint32_t a_scale[MOST_M * 2], b_scale[MOST_N * 2];
} matrices;

/* b of a wgmma lies in shared memory, without swizzle: cores of 8 columns of 16 bytes; the descriptor says where, and
 * how far one core is from the next along K. */
static bool gather_shared(const instruction *in, const fake_fragments *f, matrices *x)
{
    const size_t start = (size_t)(f->descriptor & 0x3fff) << 4, stride = (size_t)(f->descriptor >> 16 & 0x3fff) << 4;
    const int bytes = bits_of(in->b) / 8;
    if (f->descriptor >> 62 != 0) return false;
    for (int k = 0; k < in->k; k++)
        for (int column = 0; column < in->n; column++) {
            const size_t along = (size_t)(k * bytes);
            const size_t at = start + along / 16 * stride + (size_t)column * 16 + along % 16;
            uint32_t code = 0;
            if (at + (size_t)bytes > FAKE_SHARED) return false;
            memcpy(&code, f->shared + at, (size_t)bytes);
            x->b[k * in->n + column] = code;
        }
    return true;
}

static bool gather(const instruction *in, const fake_fragments *f, matrices *x)
{
    const struct fragment *of = fragment_of(in);
    if (!of) return false;
    for (int lane = 0; lane < f->lanes; lane++) {
        const int from = fault("lanes_a") && lane < 2 ? 1 - lane : lane, g = lane % 32 / 4, t = lane % 4;
        for (int i = 0; i < of->of_a; i++) {
            const spot s = of->a(g, t, i);
            x->a[(lane / 32 * 16 + s.row) * in->k + s.column] = element(f->a[from], i, of->bits);
        }
        for (int i = 0; i < of->of_b && !in->group; i++) {
            const spot s = of->b(g, t, i);
            x->b[s.row * in->n + s.column] = element(f->b[lane], fault("registers_b") ? i ^ 1 : i, of->bits);
        }
        if (!in->scales) continue;
        for (int j = 0; j < in->scales; j++) { /* selectors {0, 0}: the lower two threads for a, the first for b */
            if (t < 2) x->a_scale[(g + 8 * t) * in->scales + j] = f->scale[lane][0] >> 8 * j & 0xffu;
            if (t == 0) x->b_scale[g * in->scales + j] = f->scale[lane][1] >> 8 * j & 0xffu;
        }
    }
    return !in->group || gather_shared(in, f, x);
}

/* Accumulators: element i of a lane. */
static int spot_d(const instruction *in, int lane, int i)
{
    const int g = lane % 32 / 4, t = lane % 4;
    return (lane / 32 * 16 + (i < 2 ? g : g + 8)) * in->n + t * 2 + (i & 1);
}

/* ---- the adders ---- */

static twin_blocks adder_of(const instruction *in, bool *halves)
{
    static const struct chip {
        int low, high;
        twin_blocks wide, narrow; /* narrow: FP8 */
    } chip[] = {
        { 70, 72, { TWIN_ALIGNED, 8, 23, 24, 126, true }, { TWIN_ALIGNED, 8, 23, 24, 126, true } },
        { 75, 75, { TWIN_ALIGNED, 16, 24, 24, 126, true }, { TWIN_ALIGNED, 16, 24, 24, 126, true } },
        { 80, 89, { TWIN_ALIGNED, 16, 24, 24, 132, true }, { TWIN_ALIGNED, 16, 13, 14, 132, true } },
        { 90, 90, { TWIN_ALIGNED, 32, 25, 24, 133, true }, { TWIN_ALIGNED, 32, 13, 14, 133, true } },
        { 100, 121, { TWIN_ALIGNED, 32, 25, 24, 133, true }, { TWIN_ALIGNED, 32, 25, 24, 133, true } },
    };
    const int capability = fake_capability();
    const bool eight = in->a == TWIN_E4M3FN || in->a == TWIN_E5M2;
    *halves = eight && !in->group && !in->scales && capability >= 90 && capability < 120;
    twin_blocks b = chip[0].wide;
    for (size_t i = 0; i < sizeof chip / sizeof chip[0]; i++)
        if (capability >= chip[i].low && capability <= chip[i].high)
            b = eight && !*halves ? chip[i].narrow : chip[i].wide;
    b.bits += fault("bit_more") - fault("bit_less");
    b.result_bits -= fault("result_less");
    b.toward_zero = b.toward_zero && !fault("nearest");
    if (fault("floor")) b.floor = b.floor == 126 ? 132 : 126;
    if (fault("block_half")) b.bytes /= 2;
    if (fault("block_double")) b.bytes *= 2;
    return b;
}

/* Elements k0 .. k0 + depth - 1 of K onto d. */
static void add(const instruction *in, matrices *x, int k0, int depth, const twin_blocks *b)
{
    static uint32_t part[MOST_M * MOST_K];
    twin_problem p;
    memset(&p, 0, sizeof p);
    p.m = in->m, p.n = in->n, p.k = depth;
    p.a_format = in->a, p.b_format = in->b, p.dst_format = in->d;
    for (int row = 0; row < in->m; row++)
        memcpy(part + row * depth, x->a + row * in->k + k0, (size_t)depth * sizeof part[0]);
    p.a = part;
    p.b = x->b + k0 * in->n;
    p.dst = x->d;
    p.accumulate = true;
    p.numerics = twin_numerics_default();
    p.numerics.tf32_truncate = !fault("tf32_rounded");
    p.numerics.flush_inputs = fault("flush");
    if (in->scales) {
        p.group = 4;
        p.a_scale = x->a_scale;
        p.b_scale = x->b_scale;
    }
    if (in->d == TWIN_I32)
        twin_matmul(&p);
    else
        twin_aligned_matmul(&p, b);
}

/* FP8 becomes F16; two products of 16 from zero; then C is added in binary32. */
static void by_halves(instruction in, matrices *x, const twin_blocks *b)
{
    static uint32_t c[MOST_M * MOST_N];
    const twin_format *half = &twin_formats[TWIN_F16], *single = &twin_formats[TWIN_F32];
    const twin_way nearest = twin_plain(TWIN_NEAREST_EVEN);
    for (int i = 0; i < in.m * in.k; i++) {
        const twin_number value = twin_decode(&twin_formats[in.a], x->a[i]);
        x->a[i] = twin_encode(half, &value, nearest);
    }
    for (int i = 0; i < in.k * in.n; i++) {
        const twin_number value = twin_decode(&twin_formats[in.b], x->b[i]);
        x->b[i] = twin_encode(half, &value, nearest);
    }
    memcpy(c, x->d, sizeof c);
    memset(x->d, 0, sizeof x->d);
    in.a = in.b = TWIN_F16;
    add(&in, x, 0, in.k / 2, b);
    add(&in, x, in.k / 2, in.k / 2, b);
    for (int i = 0; i < in.m * in.n; i++) {
        const twin_number sum = twin_decode(single, x->d[i]), own = twin_decode(single, c[i]);
        const twin_number all = twin_add(&sum, &own);
        x->d[i] = twin_encode(single, &all, nearest);
    }
}

/* A device's NaN. */
static void finish(const instruction *in, matrices *x)
{
    for (int i = 0; i < in->m * in->n && in->d != TWIN_I32; i++)
        if (twin_decode(&twin_formats[in->d], x->d[i]).kind == TWIN_NAN)
            x->d[i] = in->d == TWIN_F16 ? 0x7fffu : 0x7fffffffu;
}

static void compute(const instruction *in, matrices *x)
{
    bool halves;
    const twin_blocks b = adder_of(in, &halves);
    const int each = b.bytes * 8 / (bits_of(in->a) < 8 ? 8 : bits_of(in->a));
    const int depth = in->d == TWIN_F16 && each < in->k ? each : in->k; /* F16 results: rounded after every block */
    if (halves)
        by_halves(*in, x, &b);
    else
        for (int k0 = 0; k0 < in->k; k0 += depth) add(in, x, k0, depth, &b);
    finish(in, x);
}

/* ---- m8n8k4: four products at once ---- */

static int quads(const instruction *in, fake_fragments *f)
{
    static matrices x;
    const bool narrow = in->d == TWIN_F16;
    for (int q = 0; q < 4; q++) {
        memset(&x, 0, sizeof x);
        for (int pass = 0; pass < 2; pass++) {
            for (int lane = 0; lane < 32; lane++) {
                if (lane % 16 / 4 != q) continue;
                const int row = lane < 16 ? lane % 4 : lane % 4 + 4;
                for (int i = 0; i < 4 && pass == 0; i++) {
                    x.a[row * 4 + i] = element(f->a[fault("lanes_a") && lane < 2 ? 1 - lane : lane], i, 16);
                    x.b[i * 8 + row] = element(f->b[lane], fault("registers_b") ? i ^ 1 : i, 16);
                }
                for (int i = 0; i < 8; i++) {
                    const int high = (lane & 1) + (i & 2), r = narrow ? row : lane < 16 ? high : high + 4;
                    const int plain = narrow ? i : (i & 4) + (lane & 2) + (i & 1);
                    const int column = pass && fault("lanes_d") ? plain ^ 2 : plain;
                    if (pass == 0)
                        x.d[r * 8 + column] = element(f->c[lane], i, narrow ? 16 : 32);
                    else
                        set_element(f->c[lane], i, narrow ? 16 : 32, x.d[r * 8 + column]);
                }
            }
            if (pass == 0) compute(in, &x);
        }
    }
    return 0;
}

int fake_matrix(const char *code, fake_fragments *f)
{
    static matrices x;
    instruction in;
    memset(&in, 0, sizeof in);
    if (!understand(code, &in)) return FAKE_ILLEGAL_INSTRUCTION;
    if (in.m == 8 && in.k == 4) return quads(&in, f);
    memset(&x, 0, sizeof x);
    if (!gather(&in, f, &x)) return FAKE_ILLEGAL_INSTRUCTION;
    const int elements = in.m * in.n / f->lanes, bits = in.d == TWIN_F16 ? 16 : 32;
    for (int i = 0; i < f->lanes * elements; i++)
        x.d[spot_d(&in, i / elements, i % elements)] = element(f->c[i / elements], i % elements, bits);
    compute(&in, &x);
    for (int i = 0; i < f->lanes * elements; i++) {
        const int lane = fault("lanes_d") && i / elements < 8 ? i / elements ^ 4 : i / elements;
        set_element(f->c[i / elements], i % elements, bits, x.d[spot_d(&in, lane, i % elements)]);
    }
    return 0;
}

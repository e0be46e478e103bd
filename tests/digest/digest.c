/* digest.c - one 64-bit number over the results of everything that computes, to be the same wherever it is compiled.
 * SPDX-License-Identifier: MIT
 *
 *     digest                 prints "section <name> <hash>" for each section, then "digest <hash>", then what ran
 *     digest EXPECTED-FILE   the same, and exits with 1, naming the sections, when the file says otherwise
 *
 * Inputs are integers turned into codes: this file does no floating-point arithmetic of its own, so that contraction
 * and the like can only show through the library. It is C11 and C++17. matrix.sh builds and runs it in every way.
 */
#include <trnmath/trnmath.h>

/* ---- the hash: FNV-1a ---- */

static uint64_t hash;

static void hash_start(void) { hash = 0xcbf29ce484222325u; }

static void hash_bytes(const void *data, size_t size)
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
}

static void hash_int(int64_t value) { hash_bytes(&value, sizeof value); }

/* ---- inputs: xorshift64* ---- */

static uint64_t generator;

static uint32_t next(void)
{
    generator ^= generator >> 12;
    generator ^= generator << 25;
    generator ^= generator >> 27;
    return (uint32_t)(generator * 0x2545F4914F6CDD1Du >> 32);
}

static int below(int n) { return (int)(next() % (uint32_t)n); }

/* What numbers look like. All are built as binary32 bits: sign, exponent, 23 random mantissa bits. */
typedef enum flavour {
    ORDINARY, /* 2^-8 .. 2^8 */
    CANCEL,   /* one exponent, both signs: sums keep losing their leading bits */
    TINY,     /* products around 2^-126 and below: subnormal results, and products that fused and separate round apart */
    HUGE_,    /* sums that overflow */
    SPECIAL,  /* ordinary, with zeros, subnormals, infinities and NaN among them */
    WILD,     /* any bits at all */
    FLAVOURS
} flavour;

static uint32_t number(flavour kind)
{
    static const uint32_t special[] = { 0,          0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x00400000u, 0x00800000u, 0x7f800000u,
                                        0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f800001u, 0x7f7fffffu, 0xff7fffffu, 0x33800000u, 0x3f800000u };
    const uint32_t bits = next(), sign_and_mantissa = bits & 0x807fffffu;
    switch (kind) {
    case ORDINARY: return sign_and_mantissa | (uint32_t)(119 + below(17)) << 23;
    case CANCEL: return sign_and_mantissa | 127u << 23;
    case TINY: return sign_and_mantissa | (uint32_t)(52 + below(16)) << 23;
    case HUGE_: return sign_and_mantissa | (uint32_t)(184 + below(9)) << 23;
    case SPECIAL: return below(60) ? sign_and_mantissa | (uint32_t)(119 + below(17)) << 23 : special[below(16)];
    case WILD:
    case FLAVOURS:
    default: return bits;
    }
}

/* The code of such a number: cut, not rounded, so that nothing is tested with itself. */
static uint32_t code_of(trn_format format, flavour kind)
{
    const uint32_t bits = number(kind);
    if (format == TRN_BF16) return bits >> 16;
    if (format == TRN_TF32) return bits & 0xffffe000u;
    if (format != TRN_F16) return bits;
    if (kind == TINY) return next() & 0x87ffu;  /* f16 has no such exponents: its subnormals and its smallest numbers */
    if (kind == HUGE_) return (next() & 0x83ffu) | (uint32_t)(28 + below(3)) << 10;
    if (kind == SPECIAL || kind == WILD) return next() & (below(60) ? 0xbfffu : 0xffffu);
    return (bits >> 16 & 0x8000u) | (uint32_t)(kind == CANCEL ? 15 : 12 + below(7)) << 10 | (bits & 0x3ffu);
}

static void fill(trn_format format, void *data, size_t count, flavour kind)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = code_of(format, kind);
        memcpy((char *)data + i * trn_format_bytes(format), &code, trn_format_bytes(format));
    }
}

/* ---- sections ---- */

static const trn_rounding all_modes[] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                          TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };
static const trn_format wide[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16 };

static void codecs(void)
{
    for (int f = TRN_F32; f <= TRN_U32; f++) {
        const trn_format format = (trn_format)f;
        const int bits = trn_format_bits(format);
        for (uint32_t i = 0; i < 1024; i++) { /* all codes of narrow formats, some of wide ones */
            const uint32_t code = bits <= 8 ? i : next();
            const float value = trn_decode(format, code);
            hash_bytes(&value, sizeof value);
        }
        for (int i = 0; i < 4000; i++) {
            const uint32_t x = number((flavour)(i % FLAVOURS)), random = next();
            float value;
            memcpy(&value, &x, sizeof value);
            hash_int(trn_encode(format, value, all_modes[i % 6], i & 8 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT, random));
        }
    }
}

enum { ROWS = 37, COLUMNS = 53, PITCH = 64 }; /* a view with gaps, and lengths that no vector width divides */

static void one_conversion(trn_format from, trn_format to, trn_rounding rounding, int variant)
{
    static uint32_t source[PITCH * PITCH], target[PITCH * PITCH];
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    memset(target, 0x5a, sizeof target);
    fill(from, source, PITCH * PITCH, (flavour)(variant % FLAVOURS));
    args.src = trn_tensor_2d(from, source, ROWS, COLUMNS);
    args.dst = trn_tensor_2d(to, target, ROWS, COLUMNS);
    args.rounding = rounding;
    args.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    args.seed = 7 + (uint64_t)variant;
    args.stream = 11;
    args.sr_bits = variant == 3 ? 8 : variant == 4 ? 16 : variant == 5 ? 13 : 0;
    args.sr_carry_to_inf = variant == 2;
    if (variant == 1) { /* columns of the target are contiguous */
        args.dst.stride[0] = 1;
        args.dst.stride[1] = PITCH;
    } else if (variant == 2) { /* gaps between the rows of both */
        args.src.stride[0] = args.dst.stride[0] = PITCH;
        args.src.stride[1] = args.dst.stride[1] = 1;
    } else if (variant == 3) { /* one row for all */
        args.src.stride[0] = 0;
        args.src.stride[1] = 1;
    }
    hash_int(trn_convert(&args));
    hash_bytes(target, sizeof target); /* what lies between must be untouched, and is part of the sum */
}

static void conversions(void)
{
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            for (int mode = 0; mode < 6; mode++)
                for (int variant = 0; variant < (mode < 2 ? 6 : 2); variant++)
                    one_conversion(wide[from], wide[to], all_modes[mode], variant);

    /* Long enough for several threads. */
    enum { LONG = 150001 };
    static float x[LONG];
    static uint16_t y[LONG];
    fill(TRN_F32, x, LONG, WILD);
    for (int mode = 0; mode < 2; mode++) {
        trn_convert_args args;
        memset(&args, 0, sizeof args);
        args.src = trn_tensor_1d(TRN_F32, x, LONG);
        args.dst = trn_tensor_1d(mode ? TRN_BF16 : TRN_F16, y, LONG);
        args.rounding = all_modes[mode];
        hash_int(trn_convert(&args));
        hash_bytes(y, sizeof y);
    }
}

/* ---- matmul ---- */

typedef struct shape {
    int m, n, k;
} shape;

typedef enum layout {
    PACKED,
    A_TRANSPOSED, /* a is a view of [K, M] */
    B_TRANSPOSED, /* b is a view of [N, K] */
    STRIDED,      /* every row of all three is followed by a gap */
    BROADCAST,    /* all rows of b are one row */
    LAYOUTS
} layout;

typedef struct product {
    trn_format a, b, dst;
    shape size;
    flavour kind;
    layout shape_of_memory;
    const char *numerics;
    trn_generation generation;
    trn_rounding rounding;
    bool accumulate, instruction; /* instruction: trn_nc_matmul instead of trn_matmul */
} product;

enum { GAP = 5, MOST = 1 << 21 };

static trn_tensor view(trn_format format, void *data, int rows, int columns, bool transposed, bool gaps)
{
    trn_tensor t = transposed ? trn_tensor_2d(format, data, columns, rows) : trn_tensor_2d(format, data, rows, columns);
    if (gaps) {
        t.stride[0] = t.shape[1] + GAP;
        t.stride[1] = 1;
    }
    return transposed ? trn_tensor_transposed(t) : t;
}

static bool multiply(const product *p)
{
    static uint32_t a[MOST], b[MOST], dst[MOST];
    const shape s = p->size;
    const bool gaps = p->shape_of_memory == STRIDED;
    const size_t a_count = (size_t)(s.m + GAP) * (size_t)(s.k + GAP), b_count = (size_t)(s.k + GAP) * (size_t)(s.n + GAP);
    const size_t dst_count = (size_t)(s.m + GAP) * (size_t)(s.n + GAP);
    trn_numerics numerics;
    if (a_count > MOST || b_count > MOST || dst_count > MOST || trn_numerics_parse(&numerics, p->numerics) != TRN_OK) {
        fprintf(stderr, "digest: a product of this table is too large, or its numerics \"%s\" are unknown\n", p->numerics);
        return false;
    }
    fill(p->a, a, a_count, p->kind);
    fill(p->b, b, b_count, p->kind);
    fill(p->dst, dst, dst_count, ORDINARY);

    trn_tensor b_view = view(p->b, b, s.k, s.n, p->shape_of_memory == B_TRANSPOSED, gaps);
    if (p->shape_of_memory == BROADCAST) {
        b_view.stride[0] = 0;
        b_view.stride[1] = 1;
    }
    trn_error error;
    trn_status status;
    memset(&error, 0, sizeof error);
    if (p->instruction) { /* stationary is [K, M]: a, looked at from the other side */
        trn_nc_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->generation;
        args.dst = view(p->dst, dst, s.m, s.n, false, gaps);
        args.stationary = trn_tensor_transposed(view(p->a, a, s.m, s.k, p->shape_of_memory == A_TRANSPOSED, gaps));
        args.moving = b_view;
        args.accumulate = p->accumulate;
        args.rounding = p->rounding;
        args.seed = 99;
        args.stream = 3;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_nc_matmul(&args);
    } else {
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->generation;
        args.dst = view(p->dst, dst, s.m, s.n, false, gaps);
        args.a = view(p->a, a, s.m, s.k, p->shape_of_memory == A_TRANSPOSED, gaps);
        args.b = b_view;
        args.accumulate = p->accumulate;
        args.rounding = p->rounding;
        args.seed = 99;
        args.stream = 3;
        args.numerics = &numerics;
        args.error = &error;
        status = trn_matmul(&args);
    }
    if (status != TRN_OK) {
        fprintf(stderr, "digest: %s %s x %s -> %s, %dx%dx%d, \"%s\": %s\n", p->instruction ? "trn_nc_matmul" : "trn_matmul",
                trn_format_name(p->a), trn_format_name(p->b), trn_format_name(p->dst), s.m, s.n, s.k, p->numerics, error.text);
        return false;
    }
    hash_bytes(dst, dst_count * trn_format_bytes(p->dst));
    return true;
}

static product plain(trn_format a, trn_format b, trn_format dst)
{
    product p;
    memset(&p, 0, sizeof p);
    p.a = a;
    p.b = b;
    p.dst = dst;
    p.size.m = 19;
    p.size.n = 45;
    p.size.k = 150;
    p.numerics = "";
    return p;
}

static const trn_format pairs[][2] = { { TRN_BF16, TRN_BF16 }, { TRN_F16, TRN_F16 },   { TRN_BF16, TRN_F16 }, { TRN_F16, TRN_BF16 },
                                       { TRN_F32, TRN_F32 },   { TRN_TF32, TRN_TF32 }, { TRN_F32, TRN_TF32 }, { TRN_TF32, TRN_F32 } };
static const trn_format outputs[] = { TRN_F32, TRN_BF16, TRN_F16 };
enum { PAIRS = 8 };

/* Every pair of formats with every flavour of numbers, in every layout, into every output. */
static bool matmul_formats(void)
{
    for (int pair = 0; pair < PAIRS; pair++)
        for (int kind = 0; kind < FLAVOURS; kind++)
            for (int where = 0; where < LAYOUTS; where++) {
                product p = plain(pairs[pair][0], pairs[pair][1], outputs[(kind + where) % 3]);
                p.kind = (flavour)kind;
                p.shape_of_memory = (layout)where;
                p.accumulate = (kind + where) % 2 == 1;
                if (!multiply(&p)) return false;
            }
    return true;
}

/* Tails of every kind: below, at and above the sizes that kernels, panels, tiles and slabs are made of. */
static bool matmul_shapes(void)
{
    static const shape sizes[] = { { 1, 1, 1 },    { 1, 1, 128 },   { 1, 300, 129 }, { 300, 1, 127 }, { 2, 3, 5 },     { 7, 17, 33 },
                                   { 16, 64, 64 }, { 17, 65, 255 }, { 31, 33, 257 }, { 48, 96, 256 }, { 65, 127, 130 }, { 13, 49, 1000 },
                                   { 0, 5, 5 },    { 5, 0, 5 },     { 5, 7, 0 },     { 200, 24, 131 } };
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int pair = 0; pair < PAIRS; pair += 1 + (i % 2 ? 3 : 0)) {
            product p = plain(pairs[pair][0], pairs[pair][1], outputs[i % 3]);
            p.size = sizes[i];
            p.accumulate = i % 4 == 2;
            if (!multiply(&p)) return false;
        }
    return true;
}

/* Large enough to be cut among seven threads, or into several slabs of rows, columns or depth: the results must not
 * show it. */
static bool matmul_threads(void)
{
    static const shape sizes[] = { { 150, 210, 140 }, { 33, 500, 260 },  { 333, 47, 260 }, { 1, 2600, 700 },
                                   { 16, 600, 200 },  { 3, 1100, 530 }, { 400, 20, 600 } };
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        product p = plain(pairs[4 * (i % 2)][0], pairs[4 * (i % 2)][1], outputs[i % 3]);
        p.size = sizes[i];
        p.kind = i % 2 == 1 ? SPECIAL : ORDINARY;
        p.rounding = i % 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        p.accumulate = i > 4;
        if (!multiply(&p)) return false;
    }
    return true;
}

/* Every order of sums that trn_numerics knows. */
static bool matmul_numerics(void)
{
    static const char *const settings[] = {
        "chains=1", "chains=2", "chains=8", "chains=16", "chain_layout=blocked", "chains=8,chain_layout=blocked,merge=pairwise",
        "merge=pairwise", "chains=16,merge=pairwise", "k_tile=1", "k_tile=64", "k_tile=100,chains=8",
        "product=bf16", "accumulator=toward_zero", "accumulator=exact", "accumulator_bits=26", "accumulator_bits=53", "fp32_mode=split",
        "tf32_input=truncate", "flush_inputs=on", "flush_products=on", "flush_sums=on",
    };
    enum { SLOW_FROM = 11 };
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++)
        for (int pair = 0; pair < PAIRS; pair += 4)
            for (int kind = 0; kind < 3; kind++) {
                static const flavour kinds[] = { ORDINARY, TINY, SPECIAL };
                product p = plain(pairs[pair][0], pairs[pair][1], TRN_F32);
                p.size.m = i < SLOW_FROM ? 5 : 2; /* what no kernel does is done one element at a time */
                p.size.n = i < SLOW_FROM ? 35 : 5;
                p.numerics = settings[i];
                p.kind = kinds[kind];
                p.accumulate = kind == 2;
                if (!multiply(&p)) return false;
            }
    product p = plain(TRN_BF16, TRN_BF16, TRN_BF16);
    p.size.k = 400;
    p.generation = TRN_TRAINIUM3;
    p.numerics = "psum_format=bfloat16";
    if (!multiply(&p)) return false;
    p.numerics = "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8";
    return multiply(&p);
}

/* Every rounding of the output. */
static bool matmul_outputs(void)
{
    for (int mode = 0; mode < 6; mode++)
        for (int out = 0; out < 3; out++)
            for (int kind = 0; kind < 2; kind++) {
                product p = plain(kind ? TRN_F32 : TRN_BF16, kind ? TRN_F32 : TRN_BF16, outputs[out]);
                p.kind = kind ? HUGE_ : CANCEL;
                p.rounding = all_modes[mode];
                if (!multiply(&p)) return false;
            }
    return true;
}

static bool instructions(void)
{
    static const shape sizes[] = { { 128, 512, 128 }, { 128, 33, 128 }, { 1, 512, 1 }, { 37, 65, 127 } };
    for (int pair = 0; pair < PAIRS; pair++)
        for (unsigned i = pair ? 1 : 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            product p = plain(pairs[pair][0], pairs[pair][1], TRN_F32);
            p.instruction = true;
            p.size = sizes[i];
            p.kind = (flavour)((pair + (int)i) % FLAVOURS);
            p.shape_of_memory = (layout)((pair + (int)i) % LAYOUTS);
            p.accumulate = i % 2 == 1;
            p.generation = i % 2 ? TRN_TRAINIUM1 : TRN_TRAINIUM2;
            if (!multiply(&p)) return false;
        }
    for (int mode = 0; mode < 2; mode++) {
        product p = plain(TRN_BF16, TRN_BF16, TRN_BF16);
        p.instruction = p.accumulate = true;
        p.generation = TRN_TRAINIUM3;
        p.size.k = 128;
        p.rounding = all_modes[mode];
        if (!multiply(&p)) return false;
    }
    return true;
}

static bool codecs_section(void) { codecs(); return true; }
static bool conversions_section(void) { conversions(); return true; }

typedef struct section {
    const char *name;
    bool (*run)(void);
} section;

static const section sections[] = {
    { "codecs", codecs_section },     { "conversions", conversions_section }, { "matmul-formats", matmul_formats },
    { "matmul-shapes", matmul_shapes }, { "matmul-threads", matmul_threads },   { "matmul-numerics", matmul_numerics },
    { "matmul-outputs", matmul_outputs }, { "instructions", instructions },
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

/* The line of `file` that starts with `prefix`, or "". Lines that start with # are comments. */
static const char *line_of(FILE *file, const char *prefix)
{
    static char line[256];
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, prefix, strlen(prefix)) == 0) return line;
    }
    return "";
}

static bool told(FILE *expected, const char *line)
{
    char prefix[64];
    puts(line);
    if (!expected) return true;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(strrchr(line, ' ') - line + 1), line);
    const char *want = line_of(expected, prefix);
    if (strcmp(line, want) == 0) return true;
    fprintf(stderr, "digest: got \"%s\", expected \"%s\"\n", line, want);
    return false;
}

int main(int argc, char **argv)
{
    FILE *expected = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (argc > 1 && !expected) {
        fprintf(stderr, "digest: cannot read %s\n", argv[1]);
        return 2;
    }
    uint64_t total[SECTIONS];
    bool same = true;
    char line[128];
    for (int i = 0; i < SECTIONS; i++) {
        hash_start();
        generator = 0x9e3779b97f4a7c15u + (uint64_t)i;
        if (!sections[i].run()) return 2;
        total[i] = hash;
        snprintf(line, sizeof line, "section %s %016llx", sections[i].name, (unsigned long long)hash);
        same = told(expected, line) && same;
    }
    hash_start();
    hash_bytes(total, sizeof total);
    snprintf(line, sizeof line, "digest %016llx", (unsigned long long)hash);
    same = told(expected, line) && same;

#if defined(_OPENMP)
    printf("ran %s threads %d\n", trn_isa_name(), omp_get_max_threads());
#else
    printf("ran %s threads 0\n", trn_isa_name());
#endif
    if (expected) fclose(expected);
    return same ? 0 : 1;
}

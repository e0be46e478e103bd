/* trnmath.c - trnmath itself as what check.c checks: every operation, from nothing but a file's head and its words.
 * SPDX-License-Identifier: MIT
 *
 *     cc -std=c11 -O2 -I../.. -DCHECK_WITH='"with/trnmath.c"' check.c -o check -lm && ./check FOLDER
 */
#include <stdbool.h>

#include <trnmath/trn_collective.h>
#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_mx.h>
#include <trnmath/trn_random.h>
#include <trnmath/trn_scalar_engine.h>
#include <trnmath/trn_vector_engine.h>

enum { MOST = 1024 };

static float float_of(uint64_t word)
{
    const uint32_t bits = (uint32_t)word;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- formats ---- */

typedef struct with_format {
    trn_format format;
    trn_cfp8 cfp8;
} with_format;

static long number_below(const check_file *file, const char *key, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", key, what);
    return check_number(file, name, -1);
}

static bool format_of(const check_file *file, const char *key, with_format *f)
{
    const char *name = check_value(file, key);
    memset(f, 0, sizeof *f);
    if (strncmp(name, "cfp8", 4) == 0) {
        f->format = TRN_CFP8;
        f->cfp8.exponent_bits = (int)number_below(file, key, "exponent_bits");
        f->cfp8.bias = (int)number_below(file, key, "bias");
        f->cfp8.no_infinity = strstr(name, "fn") != NULL;
        return trn_cfp8_valid(f->cfp8);
    }
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, ","), name); /* "int8, a code counts 64ths" */
    f->format = trn_format_from_name(word);
    return f->format != TRN_FORMAT_UNSET;
}

static trn_tensor row(with_format f, void *data, int64_t n)
{
    trn_tensor t = trn_tensor_1d(f.format, data, n);
    t.cfp8 = f.cfp8;
    return t;
}

/* Codes as the arrays that a view is of, and back (hosts are little-endian). */
static void pack(with_format f, const uint64_t *word, int64_t n, void *data)
{
    const size_t size = trn_format_bytes(f.format);
    for (int64_t i = 0; i < n; i++) memcpy((char *)data + (size_t)i * size, &word[i], size);
}

static void unpack(with_format f, const void *data, int64_t n, uint64_t *word)
{
    const size_t size = trn_format_bytes(f.format);
    for (int64_t i = 0; i < n; i++) {
        word[i] = 0;
        memcpy(&word[i], (const char *)data + (size_t)i * size, size);
    }
}

/* ---- casts ---- */

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    with_format to;
    const trn_rounding rounding = trn_round_from_text(check_value(file, "rounding"));
    const trn_overflow overflow = check_is(file, "overflow", "saturate") ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    const uint32_t random = rounding == TRN_STOCHASTIC ? (uint32_t)in[1] : 0;
    if (!format_of(file, "to", &to)) return CHECK_NOT_MINE;
    out[0] = to.format == TRN_CFP8 ? trn_cfp8_encode(to.cfp8, float_of(in[0]), rounding, overflow, random)
                                   : trn_encode(to.format, float_of(in[0]), rounding, overflow, random);
    return CHECK_DONE;
}

static int decode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    with_format from;
    if (!format_of(file, "from", &from)) return CHECK_NOT_MINE;
    out[0] = bits_of(from.format == TRN_CFP8 ? trn_cfp8_decode(from.cfp8, (uint32_t)in[0])
                                             : trn_decode(from.format, (uint32_t)in[0]));
    return CHECK_DONE;
}

static int stochastic_stream(const check_file *file, const uint64_t *in, uint64_t *out)
{
    with_format to;
    float x = float_of(in[3]);
    if (!format_of(file, "to", &to)) return CHECK_NOT_MINE;
    trn_convert_args args = { .dst = row(to, out, 1), .src = trn_tensor_1d(TRN_F32, &x, 1) };
    args.rounding = TRN_STOCHASTIC;
    args.seed = in[0];
    args.stream = in[1];
    args.index = in[2];
    args.sr_bits = (int)check_number(file, "bits", 0);
    return trn_convert(&args) == TRN_OK ? CHECK_DONE : CHECK_NOT_MINE;
}

/* ---- block scaling ---- */

static int mx_quantize(const check_file *file, const uint64_t *in, uint64_t *out)
{
    with_format to;
    float x[TRN_MX_BLOCK];
    uint8_t code[TRN_MX_BLOCK], scale;
    if (!format_of(file, "to", &to)) return CHECK_NOT_MINE;
    for (int i = 0; i < TRN_MX_BLOCK; i++) x[i] = float_of(in[i]);
    trn_mx_quantize_args args = { .dst = row(to, code, TRN_MX_BLOCK), .src = trn_tensor_1d(TRN_F32, x, TRN_MX_BLOCK) };
    args.dst_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
    args.scale = check_is(file, "scale_rule", "ocp_floor") ? TRN_MX_SCALE_OCP_FLOOR : TRN_MX_SCALE_NEURON;
    if (trn_mx_quantize(&args) != TRN_OK) return CHECK_NOT_MINE;
    out[0] = scale;
    for (int i = 0; i < TRN_MX_BLOCK; i++) out[1 + i] = code[i];
    return CHECK_DONE;
}

static int mx_dequantize(const check_file *file, const uint64_t *in, uint64_t *out)
{
    with_format from;
    float x[TRN_MX_BLOCK];
    uint8_t code[TRN_MX_BLOCK], scale = (uint8_t)in[0];
    if (!format_of(file, "from", &from)) return CHECK_NOT_MINE;
    for (int i = 0; i < TRN_MX_BLOCK; i++) code[i] = (uint8_t)in[1 + i];
    trn_mx_dequantize_args args = { .dst = trn_tensor_1d(TRN_F32, x, TRN_MX_BLOCK) };
    args.src = row(from, code, TRN_MX_BLOCK);
    args.src_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
    if (trn_mx_dequantize(&args) != TRN_OK) return CHECK_NOT_MINE;
    for (int i = 0; i < TRN_MX_BLOCK; i++) out[i] = bits_of(x[i]);
    return CHECK_DONE;
}

/* ---- products ---- */

static trn_tensor matrix(with_format f, void *data, int64_t rows, int64_t columns)
{
    trn_tensor t = trn_tensor_2d(f.format, data, rows, columns);
    t.cfp8 = f.cfp8;
    return t;
}

static int dot(const check_file *file, const uint64_t *in, uint64_t *out)
{
    static uint32_t a[MOST], b[MOST];
    static uint8_t a_scale[MOST / 32], b_scale[MOST / 32];
    const int64_t k = check_number(file, "k", 0), scales = check_number(file, "group", 1) == 4 ? k / 32 : 0;
    with_format format_a, format_b;
    if (k < 1 || k > MOST || !format_of(file, "a", &format_a) || !format_of(file, "b", &format_b))
        return CHECK_NOT_MINE;
    const uint64_t *scale = in + 2 * k;
    const bool bf16 = check_is(file, "psum", "bfloat16"), cfp8 = format_a.format == TRN_CFP8;
    float c = float_of(scale[2 * scales]);
    pack(format_a, in, k, a);
    pack(format_b, in + k, k, b);
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, &c, 1, 1), .a = matrix(format_a, a, 1, k) };
    args.b = matrix(format_b, b, k, 1);
    args.generation = cfp8 ? TRN_TRAINIUM1 : scales || bf16 ? TRN_TRAINIUM3 : TRN_TRAINIUM2;
    args.accumulate = check_is(file, "accumulate", "yes");
    args.double_row = check_number(file, "group", 1) == 2;
    for (int64_t i = 0; i < scales; i++) {
        a_scale[i] = (uint8_t)scale[i];
        b_scale[i] = (uint8_t)scale[scales + i];
    }
    if (scales) args.a_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, 1, scales);
    if (scales) args.b_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, 1, scales);
    trn_numerics n = trn_numerics_default(args.generation);
    if (bf16) n.psum_format = TRN_BF16;
    args.numerics = &n;
    if (trn_matmul(&args) != TRN_OK) return CHECK_NOT_MINE;
    out[0] = bits_of(c);
    return CHECK_DONE;
}

/* ---- random words ---- */

static int philox(const check_file *file, const uint64_t *in, uint64_t *out)
{
    uint32_t word[6], block[4];
    (void)file;
    for (int i = 0; i < 6; i++) word[i] = (uint32_t)in[i];
    trn_philox4x32_10(word, word + 4, block);
    for (int i = 0; i < 4; i++) out[i] = block[i];
    return CHECK_DONE;
}

static int random_field(const check_file *file, const uint64_t *in, uint64_t *out)
{
    out[0] = trn_random_field(in[0], in[1], in[2], (int)check_number(file, "bits", 32));
    return CHECK_DONE;
}

static int xorwow(const check_file *file, const uint64_t *in, uint64_t *out)
{
    trn_xorwow g;
    (void)file;
    for (int i = 0; i < 6; i++) g.state[i] = (uint32_t)in[i];
    out[0] = trn_xorwow_next(&g);
    for (int i = 0; i < 6; i++) out[1 + i] = g.state[i];
    return CHECK_DONE;
}

static int lfsr(const check_file *file, const uint64_t *in, uint64_t *out)
{
    trn_lfsr g;
    (void)file;
    for (int i = 0; i < 4; i++) g.state[i] = (uint32_t)in[i];
    out[0] = trn_lfsr_next(&g);
    for (int i = 0; i < 4; i++) out[1 + i] = g.state[i];
    return CHECK_DONE;
}

/* ---- engines ---- */

static int activation(const check_file *file, const uint64_t *in, uint64_t *out)
{
    float x = float_of(in[0]), y = 0.0f;
    trn_activation_args args = { .dst = trn_tensor_2d(TRN_F32, &y, 1, 1) };
    args.src = trn_tensor_2d(TRN_F32, &x, 1, 1);
    args.op = trn_act_from_name(check_value(file, "function"));
    args.param = float_of(strtoull(check_value(file, "param"), NULL, 16));
    if (trn_activation(&args) != TRN_OK) return CHECK_NOT_MINE;
    out[0] = bits_of(y);
    return CHECK_DONE;
}

/* The lower end of a bucket, counted from zero outwards; of a scaled function from 1 on. */
static uint32_t low_of(const trn_act_table *t, int bucket, uint32_t *width)
{
    int exponent = t->scaling ? 0 : t->lowest_exponent, octave = 0;
    if (!t->scaling && bucket-- == 0) return *width = 0;
    while (bucket >= 1 << t->log2_buckets[octave]) bucket -= 1 << t->log2_buckets[octave++];
    *width = (uint32_t)1 << (23 - t->log2_buckets[octave]);
    return ((uint32_t)(exponent + octave + 127) << 23) + (uint32_t)bucket * *width;
}

static int activation_bucket(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const trn_act_table t = trn_act_table_of(trn_act_from_name(check_value(file, "function")));
    const trn_act_side *side = in[0] ? &t.negative : &t.positive;
    const int bucket = (int)in[1];
    uint32_t width;
    if (!t.buckets) return CHECK_NOT_MINE;
    const bool shared = !t.scaling && side->joint && bucket >= side->joint;
    const float *c = t.bucket[shared ? side->at + bucket - side->joint : side->first + bucket].c;
    out[0] = low_of(&t, bucket, &width);
    out[1] = out[0] + width / 2;
    for (int i = 0; i < 4; i++) out[2 + i] = bits_of(c[i]);
    return CHECK_DONE;
}

static int alu(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const trn_format format = check_is(file, "numbers", "uint32") ? TRN_U32 : TRN_F32;
    const trn_alu op = trn_alu_from_name(check_value(file, "operator"));
    uint32_t a = (uint32_t)in[0], b = (uint32_t)in[1], r = 0;
    trn_status status;
    if (file->in.words == 2) {
        trn_tensor_tensor_args args = { .dst = trn_tensor_2d(format, &r, 1, 1), .op = op };
        args.data1 = trn_tensor_2d(format, &a, 1, 1);
        args.data2 = trn_tensor_2d(format, &b, 1, 1);
        status = trn_tensor_tensor(&args);
    } else {
        trn_tensor_scalar_args args = { .dst = trn_tensor_2d(format, &r, 1, 1), .op0 = op };
        args.data = trn_tensor_2d(format, &a, 1, 1);
        status = trn_tensor_scalar(&args);
    }
    out[0] = r;
    return status == TRN_OK ? CHECK_DONE : CHECK_NOT_MINE;
}

/* As many elements as ranks, all of them the one that is asked of: each rank owns one. */
static int all_reduce(const check_file *file, const uint64_t *in, uint64_t *out)
{
    static uint32_t data[64][64];
    static uint64_t same[64];
    trn_tensor view[64];
    with_format wire;
    const int ranks = (int)check_number(file, "ranks", 0);
    if (ranks < 2 || ranks > 64 || !check_is(file, "algorithm", "ring") || !format_of(file, "wire", &wire))
        return CHECK_NOT_MINE;
    const trn_topology net = trn_topology_ring(ranks, 100e9, 1e-6);
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < ranks; i++) same[i] = in[1 + r];
        pack(wire, same, ranks, data[r]);
        view[r] = row(wire, data[r], ranks);
    }
    trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING };
    args.src = args.dst = view;
    if (trn_collective_run(&args) != TRN_OK) return CHECK_NOT_MINE;
    unpack(wire, data[0], ranks, same);
    out[0] = same[in[0]];
    return CHECK_DONE;
}

static const check_operation check_table[] = {
    { "encode", encode },
    { "decode", decode },
    { "stochastic_stream", stochastic_stream },
    { "mx_quantize", mx_quantize },
    { "mx_dequantize", mx_dequantize },
    { "dot", dot },
    { "philox4x32_10", philox },
    { "random_field", random_field },
    { "xorwow", xorwow },
    { "lfsr", lfsr },
    { "activation", activation },
    { "activation_bucket", activation_bucket },
    { "alu", alu },
    { "all_reduce", all_reduce },
    { NULL, NULL },
};

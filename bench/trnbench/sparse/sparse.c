/* sparse.c - subcommand sparse: structured sparsity on this host beside its dense product, and on chips.
 * SPDX-License-Identifier: MIT
 *
 * Each row is one pattern, format and shape. Random matrices are pruned and packed; a sample of the outputs is compared
 * bit for bit with the definition (tb_define, on the rows of b that a row of a meets); then the sparse and the dense
 * product of the same M, N and K take turns, round by round. The chips' columns are one core, by trn_cost.h.
 */
#include "sparse.h"

#include "bench/common/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_cost.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_sparse.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

enum { MAX_SHAPES = 32, MAX_FORMATS = 8, MAX_ROUNDS = 1000, PATTERNS = 7 };

static const trn_sparse_pattern patterns[PATTERNS] = { { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 },
                                                       { 2, 4 },  { 1, 4 },  { 1, 2 } };

typedef struct options {
    bool wanted[PATTERNS], any, check_only, schema;
    tb_slice shape[MAX_SHAPES];
    int shapes, formats, rounds, threads;
    trn_format format[MAX_FORMATS];
    trn_isa isa;
    uint64_t seed;
    tb_files files;
} options;

/* ---- options ---- */

static bool take_pattern(void *options_, const char *value, char *why)
{
    options *o = options_;
    for (int i = 0; i < PATTERNS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d:%d", patterns[i].m, patterns[i].n);
        if (strcmp(value, name) == 0) return o->wanted[i] = o->any = true;
    }
    return app_refuse(why, "no such pattern; there are 4:16, 4:12, 4:8, 2:8, 2:4, 1:4 and 1:2");
}

static bool take_shape(void *options_, const char *value, char *why)
{
    options *o = options_;
    long long m, n, k;
    char rest;
    if (sscanf(value, "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 1 || m > 65536 ||
        n > 65536 || k > 65536)
        return app_refuse(why, "expected MxNxK, three whole numbers from 1 to 65536, such as 512x512x4096");
    if (o->shapes == MAX_SHAPES) return app_refuse(why, "more than 32 shapes");
    o->shape[o->shapes++] = (tb_slice){ m, n, k };
    return true;
}

static bool take_format(void *options_, const char *value, char *why)
{
    static const struct {
        const char *name;
        trn_format format;
    } known[] = { { "bf16", TRN_BF16 }, { "f16", TRN_F16 },      { "tf32", TRN_TF32 },
                  { "f32", TRN_F32 },   { "e4m3", TRN_F8_E4M3 }, { "e5m2", TRN_F8_E5M2 } };
    options *o = options_;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(value, known[i].name) == 0 && o->formats < MAX_FORMATS)
            return o->format[o->formats++] = known[i].format, true;
    return app_refuse(why, "expected bf16, f16, tf32, f32, e4m3 or e5m2, at most eight times");
}

static bool take_rounds(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, MAX_ROUNDS, &((options *)o)->rounds, why);
}

static bool take_threads(void *o, const char *value, char *why)
{
    return tb_parse_threads(value, &((options *)o)->threads, why);
}

static bool take_seed(void *o, const char *value, char *why)
{
    return tb_parse_seed(value, &((options *)o)->seed, why);
}

static bool take_isa(void *o, const char *value, char *why) { return app_parse_isa(value, &((options *)o)->isa, why); }

static const app_option sparse_options[] = {
    { "--pattern", "M:N", "only this one (repeatable; default: all seven)", .apply = take_pattern },
    { "--shape", "MxNxK", "of the dense product (repeatable; default: 512x512x4096, 2048x512x4096)",
      .apply = take_shape },
    { "--format", "NAME", "of both operands: bf16, f16, tf32, f32, e4m3, e5m2 (repeatable; default: bf16)",
      .apply = take_format },
    { "--check", NULL, "compare with the definition, and measure nothing", APP_SETS(options, check_only) },
    { "--threads", "N", "threads on this host (default: all)", .apply = take_threads },
    { "--rounds", "N", "rounds of measurement (default: 7)", .apply = take_rounds },
    { "--isa", "NAME", "kernels by a name of TRN_ISA (default: the best this host has)", .apply = take_isa },
    { "--seed", "N", "of the random matrices and of the outputs that are checked (default: 1)", .apply = take_seed },
    { "--json", "FILE", "everything as JSON (- for standard output, without the table)",
      APP_TAKES_TEXT(options, files.json) },
    { "--csv", "FILE", "one row per pattern x format x shape, one header row (- as above)",
      APP_TAKES_TEXT(options, files.csv) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(options, schema) },
};

static const app_command sparse_command = {
    "trnbench sparse",
    "usage: trnbench sparse [options]",
    "Products with structured sparsity: checked bit for bit with the definition, timed here beside trnmath's own "
    "dense\n"
    "product of the same M, N and K, and what one core of Trainium2 and Trainium3 would make of them.",
    sparse_options,
    sizeof sparse_options / sizeof sparse_options[0],
    "K is rounded up to a multiple of 48, which suits every pattern. Speed-ups are medians over the rounds of ratios\n"
    "within a round; rates are those of the best round. Exit status: 0 ok, 1 an output differs from the definition.",
    NULL,
};

/* ---- one product ---- */

static const app_column columns[] = {
    { "pattern", APP_TEXT, "", "m of n elements of a along K are stored" },
    { "format", APP_TEXT, "", "of a and b; results are float32" },
    { "m", APP_INTEGER, "", "rows of a" },
    { "n", APP_INTEGER, "", "columns of b" },
    { "k", APP_INTEGER, "", "depth, a multiple of 48" },
    { "stored", APP_REAL, "GFLOP/s", "on this host, only products of stored elements counted" },
    { "equivalent", APP_REAL, "GFLOP/s", "the same, counted as the dense product" },
    { "dense", APP_REAL, "GFLOP/s", "trnmath's dense product" },
    { "speed_up", APP_REAL, "", "of sparse over dense on this host" },
    { "checked", APP_INTEGER, "", "outputs compared with the definition" },
    { "wrong", APP_INTEGER, "", "of these" },
    { "trn2_us", APP_REAL, "us", "one core of Trainium2, sparse" },
    { "trn2_speed_up", APP_REAL, "", "over its dense product" },
    { "trn3_us", APP_REAL, "us", "one core of Trainium3, sparse" },
    { "trn3_speed_up", APP_REAL, "", "over its dense product" },
};

typedef struct bench {
    const options *o;
    trn_sparse_pattern pattern;
    tb_slice s;
    int64_t stored;
    trn_tensor a, b, values, tags, dst;
    trn_matmul_args dense;
    trn_sparse_matmul_args sparse;
    trn_error error;
    double dense_rate[MAX_ROUNDS], sparse_rate[MAX_ROUNDS]; /* of the dense count */
} bench;

static trn_tensor room(trn_format format, int64_t rows, int64_t columns_)
{
    return trn_tensor_2d(format, malloc((size_t)rows * (size_t)columns_ * trn_format_bytes(format) + 64), rows,
                         columns_);
}

static trn_tensor random_matrix(trn_format format, int64_t rows, int64_t columns_, uint64_t seed, uint64_t stream)
{
    trn_tensor f = room(TRN_F32, rows, columns_);
    trn_tensor t = f;
    if (!f.data) return f;
    tb_fill_random(f.data, rows * columns_, seed, stream);
    if (format != TRN_F32) {
        t = tb_cast(&f, format);
        free(f.data);
    }
    return t;
}

static void release(bench *b)
{
    trn_tensor *const all[] = { &b->a, &b->b, &b->values, &b->tags, &b->dst };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->data);
}

static bool prepare(bench *b, trn_format format)
{
    const options *o = b->o;
    b->stored = trn_sparse_stored(b->pattern, b->s.k);
    b->a = random_matrix(format, b->s.m, b->s.k, o->seed, 0);
    b->b = random_matrix(format, b->s.k, b->s.n, o->seed, 1);
    b->values = room(format, b->s.m, b->stored);
    b->tags = room(TRN_U8, b->s.m, b->stored);
    b->dst = room(TRN_F32, b->s.m, b->s.n);
    if (!b->a.data || !b->b.data || !b->values.data || !b->tags.data || !b->dst.data)
        return snprintf(b->error.text, sizeof b->error.text, "not enough memory for the matrices"), false;
    trn_sparse_pack_args pack;
    memset(&pack, 0, sizeof pack);
    pack.src = b->a;
    pack.values = b->values;
    pack.tags = b->tags;
    pack.pattern = b->pattern;
    pack.prune = true;
    pack.error = &b->error;
    b->sparse.dst = b->dense.dst = b->dst;
    b->sparse.values = b->values;
    b->sparse.tags = b->tags;
    b->sparse.pattern = b->pattern;
    b->sparse.b = b->dense.b = b->b;
    b->dense.a = b->a;
    b->sparse.isa = b->dense.isa = o->isa;
    b->sparse.error = b->dense.error = &b->error;
    return trn_sparse_pack(&pack) == TRN_OK && trn_sparse_matmul(&b->sparse) == TRN_OK;
}

/* Output [i, j] by the dense definition: the stored elements are all of K, and each meets its own row of b. */
static bool define(const bench *b, int64_t i, int64_t j, unsigned char *column, uint32_t *bits)
{
    const size_t bytes = trn_format_bytes(b->b.format);
    const unsigned char *tag = (const unsigned char *)b->tags.data + i * b->stored;
    for (int64_t s = 0; s < b->stored; s++) {
        const int64_t k = s / b->pattern.m * b->pattern.n + tag[s];
        memcpy(column + (size_t)s * bytes, (const unsigned char *)b->b.data + (size_t)(k * b->s.n + j) * bytes, bytes);
    }
    trn_matmul_args one;
    memset(&one, 0, sizeof one);
    one.dst = trn_tensor_2d(TRN_F32, b->dst.data, 1, 1);
    one.a = trn_tensor_2d(b->values.format, (unsigned char *)b->values.data + (size_t)(i * b->stored) * bytes, 1,
                          b->stored);
    one.b = trn_tensor_2d(b->b.format, column, b->stored, 1);
    return tb_define(&one, 0, 0, bits);
}

static tb_check check(const bench *b)
{
    tb_check c = { true, 0, 0, 0, 0, 0, 0 };
    unsigned char *column = app_memory((size_t)b->stored * trn_format_bytes(b->b.format) + 1, 1);
    const uint64_t stream = 0x636865636b; /* "check" */
    for (int s = 0; s < TB_SAMPLES; s++) {
        const int64_t i = s == 0 ? 0
                          : s == 1
                              ? b->s.m - 1
                              : (int64_t)(trn_random_u32(b->o->seed, stream, (uint64_t)(2 * s)) % (uint64_t)b->s.m);
        const int64_t j = s == 0 ? 0
                          : s == 1
                              ? b->s.n - 1
                              : (int64_t)(trn_random_u32(b->o->seed, stream, (uint64_t)(2 * s + 1)) % (uint64_t)b->s.n);
        uint32_t expected, got;
        c.defined = define(b, i, j, column, &expected);
        memcpy(&got, (const float *)b->dst.data + i * b->s.n + j, sizeof got);
        c.compared += c.defined;
        if (!c.defined || expected == got) continue;
        if (c.wrong++ == 0) c.row = i, c.column = j, c.got = got, c.expected = expected;
    }
    free(column);
    return c;
}

/* Seconds for one call of one of the two, of as many as fill 20 ms or of one. */
static double time_of(bench *b, bool sparse, int *calls)
{
    const double start = app_now();
    for (int i = 0; i < *calls; i++) (void)(sparse ? trn_sparse_matmul(&b->sparse) : trn_matmul(&b->dense));
    const double once = (app_now() - start) / *calls;
    if (*calls == 1 && once < 0.01) *calls = (int)(0.02 / (once > 1e-7 ? once : 1e-7)) + 1;
    return once;
}

static void measure(bench *b)
{
    const double flops = 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k;
    int calls[2] = { 1, 1 };
    for (int warm = 0; warm < 2; warm++) time_of(b, false, &calls[0]), time_of(b, true, &calls[1]);
    for (int r = 0; r < b->o->rounds; r++) {
        b->dense_rate[r] = flops / time_of(b, false, &calls[0]);
        b->sparse_rate[r] = flops / time_of(b, true, &calls[1]);
    }
}

/* ---- the chips ---- */

static double core_seconds(const bench *b, trn_generation generation, bool sparse)
{
    trn_matmul_cost_args args;
    trn_core_cost cost;
    memset(&args, 0, sizeof args);
    args.generation = generation;
    args.m = b->s.m, args.n = b->s.n, args.k = b->s.k;
    args.a_format = args.b_format = b->a.format;
    args.dst_format = TRN_F32;
    args.mode = sparse ? TRN_MODE_SPARSE : TRN_MODE_PLAIN;
    if (sparse) args.sparse_m = b->pattern.m, args.sparse_n = b->pattern.n;
    return trn_matmul_cost(&args, &cost) == TRN_OK ? cost.time_s : (double)NAN;
}

static void chip_cells(app_table *table, const bench *b)
{
    static const trn_generation generation[] = { TRN_TRAINIUM2, TRN_TRAINIUM3 };
    for (int g = 0; g < 2; g++) {
        const double seconds = core_seconds(b, generation[g], true);
        app_real(table, 1e6 * seconds);
        app_real(table, core_seconds(b, generation[g], false) / seconds);
    }
}

/* ---- rows and output ---- */

static void row(app_table *table, const bench *b, const tb_check *c)
{
    const bool timed = !b->o->check_only;
    const double equivalent = timed ? tb_best(b->sparse_rate, b->o->rounds) : (double)NAN;
    app_row(table);
    app_text(table, "%d:%d", b->pattern.m, b->pattern.n);
    app_text(table, "%s", trn_format_name(b->a.format));
    app_integer(table, b->s.m);
    app_integer(table, b->s.n);
    app_integer(table, b->s.k);
    app_real(table, 1e-9 * equivalent * b->pattern.m / b->pattern.n);
    app_real(table, 1e-9 * equivalent);
    app_real(table, timed ? 1e-9 * tb_best(b->dense_rate, b->o->rounds) : (double)NAN);
    app_real(table, timed ? tb_median_ratio(b->sparse_rate, b->dense_rate, b->o->rounds) : (double)NAN);
    app_integer(table, c->compared);
    app_integer(table, c->wrong);
    chip_cells(table, b);
}

static int run(app_table *table, const options *o, trn_sparse_pattern pattern, trn_format format, tb_slice shape)
{
    static bench b;
    int status = APP_OK;
    memset(&b, 0, sizeof b);
    b.o = o;
    b.pattern = pattern;
    b.s = shape;
    b.s.k = (shape.k + 47) / 48 * 48;
    if (!prepare(&b, format)) {
        release(&b);
        return app_complain(APP_USAGE, "%s", b.error.text);
    }
    const tb_check c = check(&b);
    if (!o->check_only) measure(&b);
    row(table, &b, &c);
    if (c.wrong)
        status = app_complain(APP_FAILED,
                              "%d:%d %s: %lld of %lld outputs are wrong; [%lld, %lld] is %08x and should be %08x",
                              pattern.m, pattern.n, trn_format_name(format), (long long)c.wrong, (long long)c.compared,
                              (long long)c.row, (long long)c.column, (unsigned)c.got, (unsigned)c.expected);
    release(&b);
    return status;
}

static void write_csv(FILE *out, const void *context) { app_print_csv(out, context); }

static void write_json(FILE *out, const void *context)
{
    fprintf(out,
            "{\n  \"schema\": \"trnbench.sparse\",\n  \"schema_version\": \"1.0.0\",\n  \"version\": \"%s\",\n  "
            "\"processor\": ",
            TRN_VERSION);
    app_print_json_string(out, tb_host_processor());
    fputs(",\n  \"results\": ", out);
    app_print_json_rows(out, context, 2);
    fputs("\n}\n", out);
}

static void defaults(options *o)
{
    memset(o, 0, sizeof *o);
    o->rounds = 7;
    o->seed = 1;
}

static void fill_defaults(options *o)
{
    if (!o->shapes)
        o->shape[o->shapes++] = (tb_slice){ 512, 512, 4096 }, o->shape[o->shapes++] = (tb_slice){ 2048, 512, 4096 };
    if (!o->formats) o->format[o->formats++] = TRN_BF16;
    for (int i = 0; i < PATTERNS; i++) o->wanted[i] = o->wanted[i] || !o->any;
#if defined(_OPENMP)
    if (o->threads) omp_set_num_threads(o->threads);
#endif
}

static int run_all(app_table *table, const options *o)
{
    int status = APP_OK, number = 0, of = 0;
    for (int p = 0; p < PATTERNS; p++) of += o->wanted[p] ? o->formats * o->shapes : 0;
    for (int p = 0; p < PATTERNS; p++)
        for (int f = 0; f < o->formats; f++)
            for (int s = 0; s < o->shapes; s++) {
                if (!o->wanted[p]) continue;
                const tb_slice size = o->shape[s];
                tb_stage(++number, of, "%d:%d %s %lldx%lldx%lld", patterns[p].m, patterns[p].n,
                         trn_format_name(o->format[f]), (long long)size.m, (long long)size.n, (long long)size.k);
                const int one = run(table, o, patterns[p], o->format[f], size);
                if (one == APP_USAGE) return one;
                if (one != APP_OK) status = one;
            }
    app_progress_done();
    return status;
}

int tb_main_sparse(int argc, char **argv)
{
    options o;
    app_table table;
    defaults(&o);
    int status = app_parse_options(&sparse_command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (tb_refuse_isa() != APP_OK) return APP_USAGE;
    if (tb_open_files(&o.files) != APP_OK) return APP_USAGE;
    fill_defaults(&o);
    app_table_start(&table, columns, (int)(sizeof columns / sizeof columns[0]));
    if (!o.schema) status = run_all(&table, &o);
    if (o.schema)
        app_print_schema(stdout, "trnbench.sparse", &table);
    else if (status != APP_USAGE && !tb_stdout_taken(&o.files))
        app_print_table(stdout, &table);
    const bool writes = !o.schema && status != APP_USAGE;
    if (writes && tb_write_files(&o.files, write_csv, write_json, NULL, &table) != APP_OK) status = APP_USAGE;
    tb_discard_files(&o.files);
    app_table_free(&table);
    return status;
}

/* trnmath_flat.h - trnmath as a shared object: few functions with C linkage, for all languages that call C.
 * SPDX-License-Identifier: MIT
 *
 *     cc -O2 -fPIC -shared -fvisibility=hidden -fopenmp -I../../.. trnmath_flat.c -o libtrnmath_flat.so -lm
 *
 * Every function that may fail returns 0 or a trn_status, and then puts one sentence into `why` (of TRNMATH_WHY bytes,
 * or null). Nothing is copied: views are of the caller's memory. Names are texts as trnmath spells them ("float8_e4m3",
 * "trn2-ultraserver", "all_reduce"). All functions may be called from many threads at once.
 */
#ifndef TRNMATH_FLAT_H
#define TRNMATH_FLAT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif
#define TRNMATH_API __attribute__((visibility("default")))

enum { TRNMATH_WHY = 256 };

typedef struct trnmath_view {
    void *data;
    int64_t format;    /* of trnmath_format */
    int64_t rank;      /* 1 to 6; 0 = no view, where one may be missing */
    int64_t shape[6];  /* outermost first */
    int64_t stride[6]; /* in elements; all 0 = packed rows; 0 = a broadcast, of inputs only */
} trnmath_view;

/* Null pointers and zeros are the defaults; each function uses what concerns it. */
typedef struct trnmath_options {
    const char *numerics; /* "chains=1,product=bf16", a preset; null = the generation's */
    const char
        *rounding; /* "nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd" */
    uint64_t seed, stream; /* of stochastic rounding */
    int64_t sr_bits;       /* random bits per element; 0 = 32 */
    int64_t generation;    /* 1, 2, 3: Trainium1, 2, 3; 0 = what the operands need */
    int64_t saturate;      /* overflow stops at the largest number */
    int64_t accumulate;    /* matmul: dst += a @ b */
    int64_t double_row;    /* matmul: two FP8 rows at a time */
} trnmath_options;

TRNMATH_API const char *trnmath_version(void);        /* "MAJOR.MINOR.PATCH" */
TRNMATH_API const char *trnmath_isa(void);            /* what kernels run: "avx2" */
TRNMATH_API int64_t trnmath_format(const char *name); /* NKI's, ml_dtypes' or safetensors' spelling; 0 = unknown */
TRNMATH_API const char *trnmath_format_name(int64_t format);
TRNMATH_API int64_t trnmath_format_bytes(int64_t format); /* of an element in an array */

TRNMATH_API int trnmath_convert(const trnmath_view *dst, const trnmath_view *src, const trnmath_options *options,
                                char *why);
/* dst [M, N] = a [M, K] @ b [K, N]; scales (of MX: [M, K/32] and [N, K/32]) may be null */
TRNMATH_API int trnmath_matmul(const trnmath_view *dst, const trnmath_view *a, const trnmath_view *b,
                               const trnmath_view *a_scale, const trnmath_view *b_scale, const trnmath_options *options,
                               char *why);
/* How far each element of that product may be from the exact one, and how far it usually is: float32 [M, N], either may
 * be null. dst is read under accumulate only. */
TRNMATH_API int trnmath_tolerance(const trnmath_view *worst, const trnmath_view *sigma, const trnmath_view *dst,
                                  const trnmath_view *a, const trnmath_view *b, const trnmath_view *a_scale,
                                  const trnmath_view *b_scale, const trnmath_options *options, char *why);
/* dst = f(scale * src + bias), f by NKI's name: "exp", "gelu_apprx_tanh"; a scale of 0 is refused */
TRNMATH_API int trnmath_activation(const trnmath_view *dst, const trnmath_view *src, const char *f, float scale,
                                   float bias, const trnmath_options *options, char *why);
/* Blocks of 32 along `axis`, counted from the back: -1 = the last. rule: "neuron" (or null), "ocp_floor", "round_up",
 * "even", "ceil" */
TRNMATH_API int trnmath_mx_quantize(const trnmath_view *dst, const trnmath_view *dst_scale, const trnmath_view *src,
                                    const char *rule, int64_t axis, const trnmath_options *options, char *why);
TRNMATH_API int trnmath_mx_dequantize(const trnmath_view *dst, const trnmath_view *src, const trnmath_view *src_scale,
                                      int64_t axis, char *why);
/* MXFP codes [K, M] and scales [K/32, M] as Trainium3's SBUF holds them: words [K/4, M], uint32 (of FP4 uint16), and
 * scale_tile [rows, M] with its scales in rows scale_offset (0, 4, 8, 12) and so on of each quadrant; slot_distance:
 * how far apart in k the four slots of a word are, 0 = 1. from: the other way. Either pair may be null. */
TRNMATH_API int trnmath_mx_sbuf(const trnmath_view *words, const trnmath_view *scale_tile, const trnmath_view *codes,
                                const trnmath_view *scales, int64_t scale_offset, int64_t slot_distance, int64_t from,
                                char *why);
/* dst[i] = map[src[i]]: FP4 codes as the FP8 codes that the multiplier sees; map: 16 codes, null = the same values */
TRNMATH_API int trnmath_mx_fp4_to_fp8(const trnmath_view *dst, const trnmath_view *src, const uint8_t *map, char *why);
/* m of n: values [M, K m/n] and tags (uint8) of src [M, K]; prune: keep the largest instead of refusing more than m */
TRNMATH_API int trnmath_sparse_pack(const trnmath_view *values, const trnmath_view *tags, const trnmath_view *src,
                                    int64_t m, int64_t n, int64_t prune, char *why);
/* The inverse: dst [M, K]; what was not stored is +0. */
TRNMATH_API int trnmath_sparse_unpack(const trnmath_view *dst, const trnmath_view *values, const trnmath_view *tags,
                                      int64_t m, int64_t n, char *why);
TRNMATH_API int trnmath_sparse_matmul(const trnmath_view *dst, const trnmath_view *values, const trnmath_view *tags,
                                      const trnmath_view *b, int64_t m, int64_t n, const trnmath_options *options,
                                      char *why);

/* A line of text for every field of the numerics ("" or null: the defaults): value, default, alternatives, source. */
TRNMATH_API int trnmath_explain(const char *numerics, char *lines, size_t lines_room, char *why);

/* What there is, as lines of cells with tabs between. The first line names the columns: "name:text", ":integer",
 * ":number" or ":flag" (1 or 0); then comes a line for each row. An empty cell: there is no such number. Tables:
 *     formats, generations, systems, alternatives, instructions, rules, activations, presets, collectives, algorithms,
 *     roundings, engines, parts, model_fields, job_fields, assumptions
 *     rates, spec     of a system, `of`
 * Units stand in the names of the columns, or in one of their own. TRN_ENOSPC: lines_room is too small (256 KiB is
 * enough for each). On failure nothing is written. */
TRNMATH_API int trnmath_table(const char *table, const char *of, char *lines, size_t lines_room, char *why);

/* The config.json of a model, as Hugging Face ships it, as such a table of one row: the fields of trn_model, and
 * formats/... for what quantization_config says of weights. `name` is for the sentence; decodes: the job is decoding.
 * TRN_EUNSUPPORTED where the library was built without cJSON. */
TRNMATH_API int trnmath_config(const char *text, const char *name, int64_t decodes, char *lines, size_t lines_room,
                               char *why);

/* How to spread a transformer over the chips of a system: the best `most` (1 to 20000) ways in such a table, those that
 * cannot be, with the reason, last. model: "layers=32,hidden=4096,heads=32,...", the fields of trn_model (table
 * model_fields). job: "job=train,batch=64,sequence=8192,tp=16,weights=float8_e4m3": job_fields and assumptions; a
 * degree that is given is not searched. Lines of about 2 KiB each. */
TRNMATH_API int trnmath_plans(const char *system, const char *model, const char *job, int64_t most, char *lines,
                              size_t lines_room, char *why);

/* A collective: who takes part, and how. Rank r is on chips[r / ranks_per_chip]. */
typedef struct trnmath_collective_ask {
    const char *system;     /* "trn2-ultraserver" */
    const char *op;         /* "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", ... */
    const char *algorithm;  /* "ring", ...; null = the cheapest */
    const char *wire;       /* what sums are rounded to; null = the sources' format */
    const int32_t *chips;   /* null = chips 0, 1, 2, ... */
    int64_t count;          /* chips of the group; 0 = all */
    int64_t ranks_per_chip; /* 0 = 1 */
    int64_t bytes;          /* per rank, for the cost: the full buffer, or the gathered result */
} trnmath_collective_ask;

typedef struct trnmath_collective_answer {
    double time_s, lower_bound_s, latency_s;
    double bytes_per_s, bus_bytes_per_s; /* "algbw", "busbw" */
    int64_t steps;
    char algorithm[32], bottleneck[64];
} trnmath_collective_answer;

TRNMATH_API int trnmath_collective_cost(const trnmath_collective_ask *ask, trnmath_collective_answer *answer,
                                        char *why);
/* The values: dst and src are one view per rank. */
TRNMATH_API int trnmath_collective(const trnmath_collective_ask *ask, const trnmath_view *dst, const trnmath_view *src,
                                   int64_t ranks, const trnmath_options *options, char *why);
/* From one sharding of a tensor to another on a mesh ("data=4,tensor=4"): seconds and their lower bound in time_s[2],
 * and in `steps` a line of text per move. */
TRNMATH_API int trnmath_redistribute_cost(const char *system, const char *mesh, const char *from, const char *to,
                                          const char *format, const int64_t *shape, int64_t rank, double time_s[2],
                                          char *steps, size_t steps_room, char *why);

#if defined(__cplusplus)
}
#endif
#endif /* TRNMATH_FLAT_H */

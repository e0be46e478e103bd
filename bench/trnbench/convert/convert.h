/* convert.h - what subcommand convert is made of: conversions, who does them, how fast, and how often wrong.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_CONVERT_CONVERT_H
#define BENCH_CONVERT_CONVERT_H

#include <trnmath/trn_cpu.h>
#include <trnmath/trn_format.h>

#include "app/app.h"
#include "bench/common/measure.h"

/* ---- list.c: the conversions ---- */

/* What --from and --to name: a format, or one of OCP MX's, whose elements come in blocks of 32 with a scale each. */
typedef struct tb_number {
    const char *name;  /* "e4m3" */
    trn_format format; /* of an element */
    bool mx;
} tb_number;

enum { TB_MX_BLOCK = 32 };

typedef struct tb_conversion {
    const tb_number *from, *to;
    trn_rounding rounding;
    trn_overflow overflow;
    int sr_bits;   /* stochastic only */
    bool xorwow;   /* stochastic: words from the generator of Trainium3's Vector engine, not from Philox */
    char name[64]; /* "f32->e4m3 SR16" */
} tb_conversion;

/* What the command line asks for; a set that is empty asks for nothing in particular. Bits: numbers by their place in
 * the table, roundings and overflows by their value. */
typedef struct tb_conversion_filter {
    bool all; /* not only the usual ones */
    uint32_t from, to, rounding, overflow;
} tb_conversion_filter;

const tb_number *tb_number_at(int i);              /* NULL behind the last */
const tb_number *tb_number_find(const char *name); /* our own names, and those of trn_format_from_name */
uint32_t tb_number_bit(const tb_number *number);
/* All that the filter lets through, malloc'd: of the usual ones, and if that is none, of all. NULL: no memory. */
tb_conversion *tb_conversions(const tb_conversion_filter *filter, int *count);
bool tb_is_integer(trn_format format);
double tb_bytes_read(const tb_conversion *c); /* per element, scales included */
double tb_bytes_written(const tb_conversion *c);

/* ---- makers.c: trnmath and its peers ---- */

/* One job for a maker. Codes lie one per element of trn_format_bytes; scales one byte per block. */
typedef struct tb_arrays {
    void *dst;
    uint8_t *dst_scale;
    const void *src;
    const uint8_t *src_scale;
    size_t n; /* a multiple of TB_MX_BLOCK where a side has blocks */
    int threads;
    trn_isa isa;   /* trnmath's kernels */
    uint64_t seed; /* stochastic rounding */
} tb_arrays;

typedef enum tb_maker_id {
    TB_TRNMATH = 0,
    TB_PLAIN_C,
    TB_ML_DTYPES,
    TB_CPFLOAT,
    TB_ONEDNN,
    TB_LIBXSMM,
    TB_MAKERS
} tb_maker_id;

void tb_makers_load(void);
const char *tb_maker_name(tb_maker_id id);
const char *tb_maker_version(tb_maker_id id); /* NULL: not there */
/* Some makers answer with binary32 values instead of codes: dst then needs four bytes per element. */
bool tb_maker_gives_values(tb_maker_id id);
/* NULL: this maker has no such conversion, or no memory. */
void *tb_maker_prepare(tb_maker_id id, const tb_conversion *c, const tb_arrays *arrays);
void tb_maker_run(tb_maker_id id, void *prepared);
void tb_maker_release(tb_maker_id id, void *prepared);
/* The random field of element i that trnmath's stochastic rounding has used. */
void tb_trnmath_fields(const tb_conversion *c, uint64_t seed, uint32_t *field, size_t n);
/* Runs part(context, first, count) over equal shares of n elements, whole thousands each, on OpenMP's threads. */
void tb_split(size_t n, int threads, void (*part)(void *context, size_t first, size_t count), void *context);

/* ---- streams.c: what memory can do ---- */

enum { TB_STREAMS = 4, TB_STREAM_GRAIN = 4096 };
typedef struct tb_stream {
    const char *name; /* "ordinary stores", "stores past the caches", ... */
    void (*run)(char *dst, const char *src, size_t blocks);
    size_t read, written; /* bytes per block */
} tb_stream;

/* Variant 0 .. TB_STREAMS - 1 that reads and writes in that ratio; run NULL: this host has no such stores. */
tb_stream tb_stream_for(size_t bytes_read, size_t bytes_written, int variant);

/* ---- answers.c: wrong answers ---- */

typedef struct tb_answers {
    int64_t cases, wrong; /* no cases: nothing is known */
    char first[160];      /* the first wrong one, in words */
} tb_answers;

/* How many files of reference vectors are in `directory`; *why says what is wrong with one that cannot be read. */
int tb_find_golden(const char *directory, char *why);
/* Runs one maker over the reference vectors in `directory`; stochastic: `draws` times each. */
tb_answers tb_check_conversion(const tb_conversion *c, tb_maker_id id, trn_isa isa, const char *directory, int draws);

/* ---- measure.c: speed ---- */

enum { TB_CONVERT_SIZES = 4, TB_CONVERT_THREADS = 8, TB_CONVERT_ROUNDS = 101 };

typedef struct tb_speed {
    double rate;   /* elements per second, best round; 0: not there */
    double ratio;  /* median over the rounds of (trnmath's rate / this one's) */
    double stream; /* median over the rounds of (this one's rate / the best stream's) */
} tb_speed;

typedef struct tb_measured {
    tb_speed maker[TB_MAKERS], stream, copy; /* copy: memcpy of as many bytes */
    const char *stream_name;                 /* the best one's */
    bool part;                               /* somebody was so slow that he got a part of the array only */
} tb_measured;

typedef struct tb_measure_options {
    trn_isa isa;
    bool maker[TB_MAKERS];
    int rounds;
    double call_s; /* a measurement takes at least so long, or one call */
    double most_s; /* a call may take so long; else it gets a part of the array */
} tb_measure_options;

typedef struct tb_buffers {
    char *src, *dst;
    uint8_t *src_scale, *dst_scale;
    size_t room; /* elements of four bytes */
    double busy_s,
        wall_s; /* of the measurements on one thread: the time they had the processor, and the time it took */
} tb_buffers;

bool tb_buffers_get(tb_buffers *b, size_t elements);
void tb_buffers_free(tb_buffers *b);
/* Numbers of both signs around one, as the conversion's source holds them. */
bool tb_fill_source(tb_buffers *b, const tb_number *from);
void tb_measure(const tb_conversion *c, tb_buffers *b, size_t n, int threads, const tb_measure_options *options,
                tb_measured *result);
/* How many elements the buffers need for that. */
size_t tb_measure_room(size_t n, int threads);
/* The smallest memory that holds so many bytes: "L1", "L2", "L3" or "DRAM". */
const char *tb_memory_name(double bytes);

/* ---- convert.c ---- */

int tb_main_convert(int argc, char **argv);

typedef struct tb_convert_item {
    const tb_conversion *conversion;
    tb_answers answers[TB_MAKERS];
    tb_measured speed[TB_CONVERT_THREADS][TB_CONVERT_SIZES];
} tb_convert_item;

typedef struct tb_convert_job {
    tb_conversion *conversion;
    tb_convert_item *item;
    int items;
    size_t size[TB_CONVERT_SIZES];
    int sizes;
    int threads[TB_CONVERT_THREADS];
    int thread_counts;
    tb_measure_options measure;
    const char *golden;
    bool golden_there, timed;
    int draws;
    double attention; /* the part of the time this program had its processor */
} tb_convert_job;

/* ---- rows.c ---- */

void tb_convert_columns(app_table *table); /* an empty tidy table */
void tb_convert_rows(app_table *table, const tb_convert_job *job);
void tb_convert_overview(app_table *table, const tb_convert_job *job);
void tb_convert_makers(app_table *table, const tb_convert_job *job);
void tb_convert_notes(FILE *out, const tb_convert_job *job);
void tb_print_convert_text(const tb_convert_job *job);
void tb_print_convert_csv(FILE *out, const void *job);
void tb_print_convert_json(FILE *out, const void *job);

/* ---- report.c ---- */

void tb_print_convert_report(FILE *out, const void *job);

#endif /* BENCH_CONVERT_CONVERT_H */

/* vectors.h - what the makers of vectors share: a file of the folder, and the numbers that are hard.
 * SPDX-License-Identifier: MIT
 *
 * A file begins with lines "# key: value"; then "# case: NAME" says what kind of vectors follow, and a vector is a
 * line: hexadecimal words, " -> " between what goes in and what comes out.
 */
#ifndef VECTORS_H
#define VECTORS_H

#include <trnmath/trn_format.h>

typedef struct vec_text {
    char *at;
    size_t size, room;
} vec_text;

typedef struct vec_file {
    char name[96]; /* "cast/bfloat16.nearest_even": the file below the folder, without ".txt" */
    vec_text head, body;
    const char *kind; /* the case of the last vector */
    long vectors;
    bool after_arrow, begun;
} vec_file;

/* Where all files go. Anything that fails ends the program with one sentence and status 2. */
void vec_folder(const char *folder);
_Noreturn void vec_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A file named FOLDER/NAME.txt; it is written by vec_close. */
vec_file vec_open(const char *operation, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vec_head(vec_file *f, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The two columns' lines: NAME/DIGITS or NAME[COUNT]/DIGITS, with a space between. */
void vec_columns(vec_file *f, const char *in, const char *out);
/* How it is known: "documented", "measured" or "assumed", and where from. */
void vec_known(vec_file *f, const char *provenance, const char *source);
void vec_close(vec_file *f);

/* One vector: what kind it is, words, the arrow, words, the end. */
void vec_begin(vec_file *f, const char *kind);
void vec_word(vec_file *f, int digits, uint64_t word);
void vec_words(vec_file *f, int digits, const uint32_t *word, int count);
void vec_arrow(vec_file *f);
void vec_end(vec_file *f);

/* ---- formats ---- */

/* A number format as the files name it: one of the library's, or a cFP8. */
typedef struct vec_format {
    const char *name; /* "float8_e4m3"; cFP8s have their own: "cfp8_e5b20" */
    trn_format format;
    trn_cfp8 cfp8;
    trn_format_info info;
    const char *provenance, *source;
} vec_format;

enum { VEC_FORMATS = 16 };
const vec_format *vec_format_at(int i);               /* in the order of the files; NULL beyond the last */
const vec_format *vec_format_named(const char *name); /* one of them, or "float32" */
int vec_digits(const vec_format *f);                  /* of a code in hexadecimal */
uint32_t vec_encode(const vec_format *f, uint32_t x, trn_rounding rounding, trn_overflow overflow, uint32_t random);
uint32_t vec_decode(const vec_format *f, uint32_t code); /* binary32 bits */
/* The lines that say what codes mean, with `prefix` before their keys: "to" gives "to", "to.exponent_bits", ... */
void vec_head_format(vec_file *f, const char *prefix, const vec_format *format);
/* Which codes of the results are NaN. */
void vec_head_nan(vec_file *f, const vec_format *format);

/* ---- numbers ---- */

/* Not two draws in one expression: C leaves open which of two calls comes first. */
typedef struct vec_random {
    uint64_t seed, stream, index;
} vec_random;
uint32_t vec_draw(vec_random *r);
uint32_t vec_below(vec_random *r, uint32_t n); /* 0 to n - 1 */
float vec_normal(vec_random *r);               /* roughly: the sum of twelve */

float vec_float(uint32_t bits);
uint32_t vec_bits(float x);

/* Binary32 numbers that are hard for a format, each once, ascending as bits. */
typedef struct vec_inputs {
    uint32_t *x;
    unsigned char *kind; /* of each: vec_kind_at */
    size_t count, room;
} vec_inputs;
vec_inputs vec_hard(const vec_format *f, vec_random *r, bool limits_only);
void vec_inputs_free(vec_inputs *inputs);

/* Numbers that every operation of binary32 should be asked: zeros, limits, subnormals, infinities, NaN. */
int vec_edges(const uint32_t **edges);

/* What kind of input a number is for a format: "tie", "overflow", "NaN" and so on. */
int vec_kinds(void); /* how many there are, and each by number, in the order of the files */
const char *vec_kind_at(int i);
/* The position of a finite x between its neighbours of the format, 0 to 1: what stochastic rounding goes by. */
double vec_position(const vec_format *f, uint32_t x);

/* ---- the makers ---- */

void vec_make_casts(void);
void vec_make_decodes(void);
void vec_make_integers(void);
void vec_make_blocks(void);
void vec_make_dots(void);
void vec_make_random(void);
void vec_make_functions(void);
void vec_make_operators(void);
void vec_make_collectives(void);

#endif /* VECTORS_H */

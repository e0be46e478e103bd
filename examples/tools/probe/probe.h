/* probe.h - what the files of the program share: hypotheses, tiles, and how outputs decide between them.
 * SPDX-License-Identifier: MIT
 *
 * The program in one picture:
 *
 *     main.c         options
 *     hypotheses.c   the fields of trn_numerics that a matmul can show, their values, and what no matmul can show
 *     tiles.c        the inputs: one designed tile per question, each with the fields that its output depends on
 *     chip.c         runs a tile on this library, in place of a chip; remembers what each hypothesis predicts
 *     identify.c     elimination: which settings predict every output that was seen
 *     report.c       what was found, for people and as JSON
 *     files.c        the directory: inputs, outputs, and which generation they are for
 *     kernel.c       the NKI kernel and the README of that directory
 *     self_test.c    random settings recovered; every setting told from every other
 *
 * Why elimination over the whole product of hypotheses is cheap: a tile's `scope` names the few fields that its output
 * depends on, so a tile is computed once per combination of those, and fields that share no tile are decided apart.
 * The self-test holds each scope against settings that are random in all other fields.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <app/app.h>
#include <trnmath/trn_numerics.h>

/* ---- hypotheses ---- */

/* In the order of decision: what a later one is worth depends on earlier ones. */
typedef enum probe_field {
    PROBE_ACCUMULATOR,
    PROBE_BITS,
    PROBE_CHAINS,
    PROBE_LAYOUT,
    PROBE_MERGE,
    PROBE_PRODUCT,
    PROBE_FLUSH_INPUTS,
    PROBE_FLUSH_PRODUCTS,
    PROBE_FLUSH_SUMS,
    PROBE_GROUP,
    PROBE_TF32,
    PROBE_FP32,
    PROBE_BIAS,
    PROBE_PSUM,
    PROBE_PSUM_ROUNDING,
    PROBE_SR_BITS,
    PROBE_INT32,
    PROBE_FIELDS
} probe_field;

typedef struct probe_hypothesis {
    const char *name;         /* the field's name in trn_numerics */
    const char *const *value; /* the names of its values, closed by NULL; NULL: the numbers low..high */
    int low, high;
    int standard;            /* which value is the default, counted from 0 */
    const char *const *text; /* how trn_numerics spells each value; NULL: name=value */
} probe_hypothesis;

/* One value (counted from 0) per field; -1: not decided, which stands for the default. */
typedef struct probe_setting {
    int8_t value[PROBE_FIELDS];
} probe_setting;

/* In principle: where `when` has one of `when_values`, the values of `field` in `merged` are one and the same. */
typedef struct probe_rule {
    probe_field field;
    uint64_t merged;
    int becomes; /* the value that stands for all of them */
    probe_field when;
    uint64_t when_values;
    const char *reason;
} probe_rule;

extern const probe_hypothesis probe_hypotheses[PROBE_FIELDS];
extern const probe_rule probe_rules[];
extern const int probe_rule_count;
extern const char *const probe_not_probed[][2]; /* other fields, and why; closed by NULL */

int probe_values(int field);
const char *probe_value_name(int field, int value, char text[16]);
probe_setting probe_standard(void);
probe_setting probe_undecided(void);
/* The rule that makes this field's value one with another, given the fields decided before it; NULL when none does. */
const probe_rule *probe_rule_for(const probe_setting *s, int field, int value);
probe_setting probe_canonical(probe_setting s);
/* "chains=1,merge=pairwise": what differs from the defaults, of the fields in `fields`; "" when nothing does. */
const char *probe_text(const probe_setting *s, uint32_t fields, char *text, size_t size);
bool probe_numerics(const probe_setting *s, trn_numerics *n);

/* ---- tiles ---- */

typedef enum probe_mode {
    PROBE_PLAIN,      /* one nc_matmul */
    PROBE_ROWS,       /* `repeat` times: one nc_matmul per `step` rows of K, all into the same PSUM tile */
    PROBE_DOUBLE_ROW, /* one nc_matmul of pairs */
    PROBE_MX,         /* one nc_matmul_mx */
    PROBE_PSUM_BF16   /* one nc_matmul per row of K into a PSUM tile that is declared bfloat16 */
} probe_mode;

enum { PROBE_TRN1 = 1, PROBE_TRN2 = 2, PROBE_TRN3 = 4, PROBE_ANY = 7, PROBE_CAPACITY = 8192, PROBE_MAX_TILES = 64 };

typedef struct probe_inputs {
    float a[PROBE_CAPACITY], b[PROBE_CAPACITY]; /* [K, slots, lanes] */
} probe_inputs;

typedef struct probe_tile {
    const char *name;
    const char *kind; /* the path through the array that it takes */
    trn_format format;
    probe_mode mode;
    int k, m, n, step, repeat;
    int generations;
    uint32_t scope; /* a bit for each field that the output may depend on; at least one */
    void (*fill)(const struct probe_tile *tile, probe_inputs *in);
    const char *question;
} probe_tile;

#define PROBE_BIT(field) (UINT32_C(1) << (field))

extern const probe_tile probe_tiles[];
extern const int probe_tile_count;

int probe_slots(const probe_tile *tile);
int probe_generation_bit(trn_generation generation);
bool probe_generation_from_name(const char *name, trn_generation *generation);
const char *probe_generation_name(trn_generation generation);
int probe_outputs(const probe_tile *tile); /* m * n */
/* The operand in the bytes of its file: [K, lanes], [K, 2, lanes] or [K, lanes, 4]. Returns the number of bytes. */
size_t probe_operand(const probe_tile *tile, bool moving, unsigned char *bytes);

/* ---- a chip, or this library in its place ---- */

/* Outputs are doubles: they hold float32 and int32 alike. False with a sentence when the library refuses. */
bool probe_run_tile(const probe_tile *tile, trn_generation generation, const trn_numerics *n, uint64_t seed,
                    double *out, char *why);
/* What setting s predicts for the tile: computed once for each combination of the tile's scope. */
const double *probe_prediction(int tile, const probe_setting *s);
bool probe_same(double x, double y); /* bit for bit; any NaN is NaN */

/* ---- what was seen, and what it says ---- */

typedef struct probe_seen {
    trn_generation generation;
    const double *out[PROBE_MAX_TILES]; /* NULL: that tile was not run */
} probe_seen;

/* How many outputs of the tile contradict s; *first is one of them. */
int probe_contradictions(const probe_seen *seen, int tile, const probe_setting *s, int *first);

enum { PROBE_MAX_FOUND = 1024 };

/* One group of fields that share tiles: every setting of it that fits best. */
typedef struct probe_group {
    uint32_t fields; /* masks of both */
    uint64_t tiles;
    int wrong;  /* how many tiles the best settings contradict; 0: they match */
    long count; /* how many settings fit equally well */
    int kept;   /* how many of those are in found */
    probe_setting found[PROBE_MAX_FOUND];
} probe_group;

typedef struct probe_verdict {
    uint64_t tiles; /* those looked at */
    uint32_t seen_fields;
    int groups, wrong;
    probe_group *group;
} probe_verdict;

/* Looks at the tiles in `tiles` that were run. */
probe_verdict probe_identify(const probe_seen *seen, uint64_t tiles);
void probe_verdict_free(probe_verdict *v);
/* Of the settings found in each group the one nearest to the defaults, put together. */
probe_setting probe_best(const probe_verdict *v);

typedef struct probe_report {
    const probe_seen *seen;
    probe_verdict verdict;
} probe_report;

void probe_print_text(FILE *out, const probe_report *report);
void probe_print_json(FILE *out, const void *report);

/* ---- the directory ---- */

bool probe_write_directory(const char *directory, trn_generation generation, bool force, char *why);
bool probe_run_directory(const char *directory, const trn_numerics *n, uint64_t seed, bool force, char *why);
void probe_claim_directory(const char *directory); /* all that is in it is read: app/files.h */
bool probe_read_directory(const char *directory, probe_seen *seen, char *why);
void probe_seen_free(probe_seen *seen);
void probe_kernel_text(FILE *out, trn_generation generation);
void probe_readme_text(FILE *out, trn_generation generation);

bool probe_self_test(long settings, uint64_t seed);

#endif /* PROBE_H */

/* fp8conv.h - one checkpoint, two FP8 formats: what is converted, how, and what it cost.
 * SPDX-License-Identifier: MIT
 *
 * OCP's E4M3 ends at 448 and has no infinity (safetensors' F8_E4M3, TRN_F8_E4M3FN); Trainium's ends at 240 and has one
 * (TRN_F8_E4M3). A weight is code times scale, and what must survive is the product.
 *
 * Everything that is reported about FP8 follows from how often each of the 128 magnitudes stands under each scale: they
 * are counted, tables of 256 entries convert them, and sums of 128 terms are the errors, exactly and without sampling.
 *
 *     main.c       the command line
 *     run.c        from one checkpoint to the other: what is opened, done and shown, in which order
 *     catalogue.c  all tensors of all shards, and where their bytes are
 *     rules.c      what config.json and its like say of modules that stay as they are
 *     recipe.c     the same of recipe.yaml
 *     gguf.c       a GGUF file becomes BF16
 *     packed.c     what becomes of weights of four and eight bits: names, shapes, new scales
 *     names.c      what each tensor is to the conversion; which tensors are quantised
 *     codes.c      values, the tables that convert codes, and --codes
 *     plan.c       groups of elements that share a scale; the scales that go in and come out
 *     convert.c    codes to codes, numbers to codes, in pieces
 *     values.c     what packed and scaled codes are worth; BF16 and MX made from them
 *     tally.c      counts of codes, and the errors that follow from them
 *     shards.c     the files that are written
 *     files.c      what lies beside the weights, and what becomes of it
 *     config.c     config.json as it is true of them
 *     verify.c     what was written, read back and compared with the definition
 *     report.c     the table
 *     advise.c     --advise: the ways there are, and what each costs
 */
#ifndef FP8CONV_H
#define FP8CONV_H

#define _POSIX_C_SOURCE 200809L /* so this comes first in every file */

#include <stdbool.h>
#include <stdint.h>

#include <trnmath/trn_format.h>

#include "app/files.h"
#include "io/checkpoint.h"
#include "io/quant/foreign.h"
#include "io/quant/values.h"
#include "io/stage.h"
#include "rules.h"

/* ---- options ---- */

typedef enum fc_side { FC_OCP, FC_NEURON, FC_BY_MARK } fc_side;
typedef enum fc_mode { FC_HALVE, FC_RATIO, FC_REQUANT, FC_RELABEL, FC_MODES } fc_mode;
typedef enum fc_grain { FC_GRAIN_KEPT, FC_PER_TENSOR, FC_PER_CHANNEL, FC_PER_BLOCK } fc_grain;

/* What quantised weights are in the input, and what becomes of them. */
typedef enum fc_kind {
    FC_IS_NUMBERS,
    FC_IS_FP8,
    FC_IS_INT8,
    FC_IS_INT4,
    FC_IS_NF4,
    FC_IS_MXFP4,
    FC_IS_NVFP4,
    FC_KINDS
} fc_kind;
typedef enum fc_form { FC_UNASKED, FC_AS_FP8, FC_AS_BF16, FC_AS_MX, FC_FORMS } fc_form;

enum { FC_GLOBS = 32 };

typedef struct fc_globs {
    const char *glob[FC_GLOBS];
    int count;
} fc_globs;

typedef struct fc_options {
    const char *in, *out;
    fc_side from, to;
    fc_mode mode;
    fc_grain grain;
    int64_t block[2];
    fc_form form[FC_KINDS]; /* of each kind of weights */
    bool power_of_two, quantise, no_new_scales, keep_run_scales, check, verify, each, about, schema, force;
    bool no_rules, advise, gguf;
    int threads, generation; /* 0: all */
    fc_globs include, exclude, run_scales;
    quant_asked asked; /* of scales */
    const char *json, *csv;
} fc_options;

trn_format fc_format_of(fc_side side);
const char *fc_side_text(fc_side side);
const char *fc_mode_text(fc_mode mode);
const char *fc_kind_text(fc_kind kind); /* "MXFP4" */
const char *fc_kind_flag(fc_kind kind); /* "--mxfp4" */

/* ---- groups of elements that share a scale ---- */

typedef quant_grid fc_grid;

fc_grid fc_grid_of_grain(const st_tensor *tensor, fc_grain grain, const int64_t block[2]);
/* ---- codes ---- */

typedef struct fc_table {
    uint16_t to[256]; /* the code that each code becomes */
} fc_table;

const float *fc_values(trn_format format); /* of its 256 codes */
float fc_limit(fc_side side);              /* 448 or 240 */
/* What a code's value is divided by and its scale multiplied by: up / down, as whole numbers. */
typedef struct fc_factor {
    int up, down;
} fc_factor;
fc_factor fc_factor_of(fc_mode mode, fc_side to);
void fc_table_of_mode(fc_mode mode, fc_side from, fc_side to, fc_table *table);
/* The code, without its sign, whose product with `scale` is nearest to `target`, which has at most 28 bits; of two that
 * are as near the even one; the largest where it is beyond. */
uint32_t fc_nearest(fc_side to, double target, double scale);
void fc_table_of_scales(fc_side from, fc_side to, float in_scale, float out_scale, fc_table *table);
void fc_convert_codes(const fc_table *table, void *out, const void *in, size_t n);
int fc_about(const fc_options *o); /* --codes */

/* ---- what it cost ---- */

enum { FC_MAGNITUDES = 128 }; /* a code without its sign, on which no error depends */

typedef struct fc_tally {
    int64_t elements;
    int64_t over_240;       /* finite, beyond Trainium's range */
    int64_t to_inf, to_nan; /* finite codes that would mean infinity or NaN under the other format */
    int64_t was_not_finite;
    int64_t not_finite; /* finite once, and infinity or NaN in the output */
    int64_t inexact, inexact_large;
    double worst, worst_large; /* relative error; large: codes of 2^-5 and more */
    double signal, noise;      /* sums of squares, in units of the weights */
} fc_tally;

typedef struct fc_judge {  /* how codes that were converted are judged */
    const float *in, *out; /* values of codes */
    const float *other;    /* values of the same codes in the other format */
    fc_factor factor;      /* exact: out * up == in * down; up = 0: exact when the products with the scales are equal */
} fc_judge;

void fc_count(const unsigned char *codes, int64_t stride, int64_t rows, int64_t columns, uint64_t count[FC_MAGNITUDES]);
/* Counts of one tile after the other: what does not depend on the scale is reckoned once for all that convert alike. */
typedef struct fc_ledger {
    fc_tally *tally;
    const fc_judge *judge;
    const fc_table *table; /* NULL: another one comes */
    double in_scale, out_scale, ratio;
    uint64_t count[FC_MAGNITUDES];
    double signal[FC_MAGNITUDES], noise[FC_MAGNITUDES];
} fc_ledger;
void fc_ledger_add(fc_ledger *ledger, const uint64_t count[FC_MAGNITUDES], const fc_table *table, double in_scale,
                   double out_scale);
void fc_ledger_flush(fc_ledger *ledger); /* before the table changes, and at the end */
void fc_tally_numbers(fc_tally *tally, const float *x, const unsigned char *code, const float *value, float scale,
                      int64_t n);
/* What was and what is, without scales; all counts as large. */
void fc_tally_pairs(fc_tally *tally, const float *before, const float *after, int64_t n);
void fc_tally_add(fc_tally *sum, const fc_tally *part);
double fc_sqnr_db(const fc_tally *tally); /* infinity when nothing was lost */

/* ---- the catalogue ---- */

typedef enum fc_role {
    FC_COPIED,
    FC_CODES,   /* FP8 to FP8 */
    FC_NUMBERS, /* numbers, or codes that become other than FP8 of the same scales: read as numbers */
    FC_WEIGHT_SCALE,
    FC_RUN_SCALE, /* of activations or a KV cache */
    FC_NEW_SCALE,
    FC_DROPPED /* a scale that another one replaces */
} fc_role;

typedef struct fc_item {
    st_tensor tensor; /* as it is read; .data only while its shard is open: use fc_bytes */
    st_tensor result; /* as it is written: name, type, shape */
    int shard, index; /* where it is read; index < 0: it is new */
    fc_side side;     /* of the FP8 in its file */
    fc_role role;
    fc_kind kind;
    fc_form form;
    unsigned char *said;  /* the bytes of a part that says something; NULL */
    st_tensor view;       /* its elements as they are written: shape, elements; name and type are nothing */
    bool transposed;      /* view is [.., columns, rows] of what is stored */
    bool mx_fp4;          /* FC_AS_MX: codes of four bits, as they were; else of eight */
    const quant *quant;   /* of codes: what they are; NULL: numbers */
    int old_scale, scale; /* of a weight: the one that is read, the one that is written; -1: none */
    int weight;           /* of a scale */
    fc_grid in, out;      /* of codes and numbers */
    quant_values values;  /* the scales that go in; there while the plan is needed, or `opened` */
    bool opened;
    unsigned char *mx_scale; /* FC_AS_MX: what is written */
    float *out_scale;
    int uses; /* how often the plan will still be asked for */
    bool planned;
    fc_tally tally;
    double scale_error; /* largest relative error of a stored scale against what the mode asks for */
} fc_item;

/* Codes of four bits that become FP8 of the same numbers, with a scale for as few of them. */
static inline bool fc_keeps_codes(const fc_item *item, const fc_options *o)
{
    const bool fp4 = item->kind == FC_IS_MXFP4 || item->kind == FC_IS_NVFP4;
    const bool int4 = item->kind == FC_IS_INT4 && item->quant->bits <= 4 && !item->quant->ordered;
    return (fp4 || int4) && item->form == FC_AS_FP8 && o->grain == FC_GRAIN_KEPT;
}

static inline bool fc_is_weight(const fc_item *item) { return item->role == FC_CODES || item->role == FC_NUMBERS; }

/* What becomes of what lies beside the weights. An empty directory is one of which nothing is copied. */
typedef enum fc_deed { FC_CONVERTED, FC_CHANGED, FC_COPIED_FILE, FC_FOLDER, FC_EMPTY, FC_LEFT } fc_deed;

typedef struct fc_file {
    char *name; /* from IN on */
    fc_deed deed;
    const char *because; /* it was converted, or left: a phrase */
} fc_file;

enum { FC_OPEN = 3 };

typedef struct fc_catalogue {
    const fc_options *options;
    ckpt input;
    fc_rules rules;
    quant_asked asked;
    st_tensor *seen; /* copies of the first `named` items' tensors, in the order of names, and where they are */
    const st_tensor **list;
    quant_map map;  /* what each of them is */
    int left_alone; /* matrices that the rules leave as they are */
    int run_scales,
        run_kept;     /* scales of activations and caches: converted; as they are, of the side that is written */
    int cache_scales; /* those of both that are a cache's */
    io_stage stage;   /* what is written, until it appears */
    fc_file *file;    /* of a directory: what lies beside the weights */
    int files, file_capacity;
    fc_item *item; /* in the order of shards and files; new ones at the end */
    int items, capacity;
    int *by_name, named; /* the first `named` items, sorted */
    struct {
        int shard;
        uint64_t used;
        st_file file;
    } open[FC_OPEN];
    uint64_t clock;
    uint64_t work, worked; /* bytes, for the progress bar */
    double started;
} fc_catalogue;

bool fc_catalogue_open(const fc_options *o, fc_catalogue *c, char *why);
void fc_catalogue_close(fc_catalogue *c);
int fc_find(const fc_catalogue *c, const char *name); /* as it is read; -1: there is none */
int fc_add(fc_catalogue *c, const fc_item *item);     /* its number */
const st_file *fc_shard(fc_catalogue *c, int shard, char *why);
const unsigned char *fc_bytes(fc_catalogue *c, const fc_item *item, char *why);
void fc_done(fc_catalogue *c, const fc_item *item, uint64_t from, uint64_t bytes); /* these will not be read again */
/* Bytes; also of a tensor that is to be written, which has no place yet. */
static inline uint64_t fc_size(const st_tensor *t) { return (uint64_t)t->elements * (uint64_t)t->bits / 8; }

/* Roles, partners, results: everything but values. */
bool fc_assign(fc_catalogue *c, char *why);
bool fc_refuse_file(const char *path, char *why);                /* formats that are not read, before it is opened */
bool fc_assign_packed(fc_catalogue *c, int *weights, char *why); /* all but FP8 */
void fc_drop_inputs(fc_catalogue *c, int weight);                /* scales of activations beside it */
bool fc_refuse_leftovers(const fc_catalogue *c, char *why);      /* scales that are no one's */
/* `w` becomes its form: names, shapes, new scales. */
bool fc_assign_form(fc_catalogue *c, int weight, const char *name, char *why);
bool fc_add_scale(fc_catalogue *c, int weight, char *why);
void fc_set_type(st_tensor *t, const char *type); /* after its shape is known: format, bits and elements follow */
st_tensor fc_matrix(const st_tensor *t, int64_t rows, int64_t columns); /* its last two axes changed */

/* ---- work ---- */

bool fc_plan(fc_catalogue *c, int item, char *why);                   /* its scales; nothing when they are there */
void fc_plan_release(fc_catalogue *c, int item);                      /* one use less */
bool fc_scale_bytes(fc_catalogue *c, int item, void *out, char *why); /* of a scale that is written */
bool fc_scale_read(fc_catalogue *c, const fc_item *scale, float **values, char *why);

typedef struct fc_sink { /* where codes go, in order */
    bool (*write)(void *user, const void *bytes, size_t size, char *why);
    void *user;
} fc_sink;

typedef struct fc_piece { /* whole rows, or a part of one */
    int64_t row, rows, column, columns;
    int64_t first; /* element */
} fc_piece;
struct fc_work;
/* One piece; `out` holds a byte per element. Pieces run side by side. */
typedef void fc_run(const struct fc_work *work, const fc_piece *piece, unsigned char *out, fc_tally *tally);
typedef struct fc_work {
    fc_catalogue *catalogue;
    fc_item *item;
    const unsigned char *bytes;
    const fc_sink *sink; /* NULL: nothing is written */
    void *user;
    fc_run *run;
    const fc_table *table; /* of codes, when it is the same everywhere; or NULL */
    int out_bits;          /* of an element that is written */
    int64_t elements, rows, columns, piece_rows, piece_columns, pieces;
} fc_work;
typedef struct fc_tile { /* elements of a piece that share both scales */
    int64_t row, rows, column, columns;
    int64_t first;   /* element, from the piece's first */
    int64_t in, out; /* groups */
} fc_tile;
bool fc_next_tile(const fc_work *work, const fc_piece *piece, fc_tile *tile); /* begin with all zeros */
/* A piece of numbers as binary32, with so many more behind them, in memory of its own. A product of code and scale that
 * binary32 does not hold is cut off, and its last bit set: rounded once more, to less, it is what the product itself is
 * rounded to. */
float *fc_numbers(const fc_work *work, const fc_piece *piece, size_t extra);
void fc_decode(const fc_work *work, const fc_piece *piece, float *x);
quant_values fc_source_of(const fc_work *work); /* its codes and scales, to be read where they stand */
/* An element of the view before it is cut to binary32: to binary64, exact but for NVFP4's quotient, which is odd. */
double fc_exact_at(const quant_values *source, bool transposed, int64_t row, int64_t column);
void fc_decode_codes(const fc_work *work, const fc_piece *piece, float *x); /* what they are without their scales */
void fc_write_bf16(const fc_work *work, const fc_piece *piece, unsigned char *out, fc_tally *tally);
void fc_write_mx(const fc_work *work, const fc_piece *piece, unsigned char *out, fc_tally *tally);
bool fc_source_open(fc_catalogue *c, fc_item *w, char *why); /* the scales that go in */
void fc_source_close(fc_item *w);
bool fc_scales_of_source(fc_item *w, char *why); /* those that go out, where they are the same */
static inline float fc_scale_at(const float *scale, int64_t group) { return scale ? scale[group] : 1; }
/* The item of the tensor number `place` in the order of names; -1: of none. */
static inline int fc_item_at(const fc_catalogue *c, int place) { return place < 0 ? -1 : c->by_name[place]; }
bool fc_run_pieces(fc_catalogue *c, fc_work *work, char *why); /* tallies are added to the item's, in order */
bool fc_convert(fc_catalogue *c, int item, const fc_sink *sink, char *why);
/* The largest finite magnitude of each group, over the limit of what is written. */
bool fc_find_amax(fc_catalogue *c, int item, float *share, char *why);

char *fc_place(const fc_catalogue *c); /* what appears: a file in a directory has its name there; memory of its own */
/* Refuses an OUT that is there already, or that has an input in it; before any work. */
bool fc_open_out(fc_catalogue *c, char *why);
/* All is written, beside OUT. false with an empty sentence: a finite number would have become infinity or NaN. */
bool fc_write_all(fc_catalogue *c, char *why);
bool fc_tally_all(fc_catalogue *c, char *why); /* without writing */
/* A directory or an index with its shards goes to a directory; a file to a file, or into a directory. */
bool fc_into_folder(const fc_catalogue *c);
bool fc_list_files(fc_catalogue *c, char *why); /* what lies beside the weights, after fc_assign */
bool fc_copy_files(fc_catalogue *c, char *why);
void fc_forget_files(fc_catalogue *c);
bool fc_keeps_layout(const fc_catalogue *c); /* FP8 has the scales it had, but for their values */
bool fc_has_fp8(const fc_catalogue *c);      /* the result */
bool fc_write_config(const fc_catalogue *c, const char *from, const char *to, char *why);
bool fc_cache_of_integers(const fc_rules *rules); /* a cache that is not FP8 */
bool fc_only_cache(const fc_rules *rules);        /* what is described has FP8 in its cache and nowhere else */
bool fc_marked(const fc_rules *rules);            /* what is described is Trainium's */
/* Does nobody read the result, as far as is known? Why: a clause. */
bool fc_no_loader(const fc_catalogue *c, char *because, size_t size);
int fc_advise(const fc_options *o);
const char *fc_written(fc_catalogue *c);    /* what fc_write_all made: a file, or an index */
bool fc_verify(fc_catalogue *c, char *why); /* what fc_write_all made, before it is OUT */
int fc_convert_checkpoint(const fc_options *o);
int fc_convert_gguf(const fc_options *o);
void fc_progress(fc_catalogue *c, uint64_t more);

/* ---- the report ---- */

fc_tally fc_total(const fc_catalogue *c);
enum { FC_REPORTS = 2 };
typedef struct fc_report { /* --csv and --json, and what they are made of */
    const fc_catalogue *catalogue;
    app_table table;
    app_output output[FC_REPORTS];
} fc_report;
void fc_report_files(const fc_options *o, app_output output[FC_REPORTS]); /* which they are */
/* They are written, and the text is printed; none appears yet. APP_OK, or APP_USAGE after a sentence. */
int fc_report_write(fc_report *r);
void fc_report_schema(void);

#endif /* FP8CONV_H */

/* gguf.c - a GGUF file becomes BF16: blocks rounded once, all else as it is; counted, written, read back.
 * SPDX-License-Identifier: MIT
 *
 * A road of its own: nothing of it is FP8, and its names and the order of its rows are llama.cpp's. What is written is
 * a checkpoint like any other, which a second run quantises.
 */
#include "fp8conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/gguf_dense.h"

typedef struct job {
    const fc_options *options;
    gguf_file file;
    io_stage stage;
} job;

typedef struct tally {
    int64_t tensors, elements, exact, not_finite, lost; /* lost: finite in a block, infinite in BF16 */
} tally;

/* ---- what is asked ---- */

typedef struct given {
    bool is;
    const char *flag;
} given;

/* The first option that says something of FP8, of other formats or of the report's file; NULL: none does. */
static const char *unfit(const fc_options *o)
{
    const given row[] = { { o->advise, "--advise" },
                          { o->to != FC_NEURON, "--to" },
                          { o->from != FC_BY_MARK, "--from" },
                          { o->mode != FC_HALVE, "--mode" },
                          { o->grain != FC_GRAIN_KEPT, "--scales" },
                          { o->asked.block[0] != 0, "--block" },
                          { o->power_of_two, "--power-of-two" },
                          { o->quantise, "--quantize" },
                          { o->include.count > 0, "--include" },
                          { o->exclude.count > 0, "--exclude" },
                          { o->no_rules, "--no-rules" },
                          { o->asked.scale_names > 0, "--scale-name" },
                          { o->run_scales.count > 0, "--run-scale" },
                          { o->keep_run_scales, "--keep-run-scales" },
                          { o->no_new_scales, "--no-new-scales" },
                          { o->each, "--each" },
                          { o->csv != NULL, "--csv" },
                          { o->json != NULL, "--json" } };
    for (int k = FC_IS_FP8; k < FC_KINDS; k++)
        if (o->form[k] != FC_UNASKED) return fc_kind_flag((fc_kind)k);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].is) return row[i].flag;
    return NULL;
}

static bool may_run(const fc_options *o, char *why)
{
    const char *flag = unfit(o);
    if (!o->gguf)
        return io_fail(why, o->in, "it is GGUF: --gguf bf16 makes a .safetensors of it, which a second run quantises");
    if (flag)
        return io_fail(why, o->in, "it is GGUF, which becomes BF16 first; %s is for a second run, of what is written",
                       flag);
    if (o->out && ckpt_folder(o->out)) return io_fail(why, o->out, "it is a directory: name the .safetensors");
    return true;
}

/* ---- elements: what a block is worth, and its BF16 ---- */

/* Of a code without its sign; what follows the largest is as far as one more step. */
static double magnitude(uint32_t code) { return code >= 0x7f80 ? 0x1p128 : (double)trn_bf16_to_f32((uint16_t)code); }

/* By the middles to both neighbours, which binary64 holds: nothing is rounded on the way to this answer. */
static bool is_nearest(double x, uint16_t stored)
{
    const uint32_t code = stored & 0x7fffu;
    const bool even = code % 2 == 0;
    const double size = fabs(x), here = magnitude(code);
    if (isnan(x)) return code > 0x7f80;
    if (code > 0x7f80 || (signbit(x) != 0) != (stored >> 15 != 0)) return false;
    const double low = code ? (magnitude(code - 1) + here) / 2 : -1;
    const double high = code >= 0x7f80 ? INFINITY : (here + magnitude(code + 1)) / 2;
    return even ? low <= size && size <= high : low < size && size < high;
}

/* An infinity of MXFP4, whose scales have none, was a number beyond binary32. */
static void count_block(const double *x, int n, bool mxfp4, tally *sum)
{
    for (int i = 0; i < n; i++) {
        const double kept = (double)trn_bf16_to_f32(trn_bf16_from_f32(io_odd(x[i])));
        sum->exact += kept == x[i] || isnan(x[i]);
        sum->not_finite += !isfinite(x[i]);
        sum->lost += isinf(kept) && (isfinite(x[i]) || mxfp4);
    }
}

/* All blocks of a tensor, counted, or where `stored` is there compared: the first element that is wrong, or -1. */
static int64_t walk(const gguf_tensor *t, const unsigned char *stored, tally *sum)
{
    double x[GGUF_LARGE];
    const gguf_type *type = gguf_type_of(t->type);
    void (*const decode)(const unsigned char *, double *) = gguf_decoder(t->type);
    const unsigned char *block = t->data;
    for (int64_t first = 0; first < t->elements; first += type->elements, block += type->bytes) {
        decode(block, x);
        if (!stored) count_block(x, type->elements, t->type == GGUF_MXFP4, sum);
        for (int i = 0; stored && i < type->elements; i++)
            if (!is_nearest(x[i], io_little16(stored + 2 * (first + i)))) return first + i;
    }
    return -1;
}

static bool in_blocks(const gguf_tensor *t) { return gguf_type_of(t->type)->elements > 1; }

/* Of each type of tensors; a type that is not read is refused before anything is counted. */
static bool count(const job *j, tally sum[GGUF_TYPES], char *why)
{
    for (int i = 0; i < j->file.count; i++) {
        gguf_matrix m;
        const gguf_tensor *t = &j->file.tensor[i];
        if (!gguf_dense_type(t)) return gguf_matrix_open(t, &m, why);
    }
    for (int i = 0; i < j->file.count; i++) {
        const gguf_tensor *t = &j->file.tensor[i];
        sum[t->type].tensors++;
        sum[t->type].elements += t->elements;
        if (in_blocks(t))
            walk(t, NULL, &sum[t->type]);
        else
            sum[t->type].exact += t->elements;
    }
    return true;
}

/* ---- --verify ---- */

static bool same_tensor(const job *j, const st_file *written, const gguf_tensor *t, char *why)
{
    const st_tensor *s = st_find(written, t->name);
    bool same = s && s->rank == t->rank && strcmp(s->type, gguf_dense_type(t)) == 0;
    for (int k = 0; same && k < t->rank; k++) same = s->shape[k] == t->shape[k];
    if (!same)
        return io_fail(why, j->options->out, "tensor '%.128s' is missing, or has another shape or type", t->name);
    if (!in_blocks(t))
        return memcmp(s->data, t->data, (size_t)t->bytes) == 0 ||
               io_fail(why, j->options->out, "tensor '%.128s' has other bytes than in %.200s", t->name, j->options->in);
    const int64_t wrong = walk(t, s->data, NULL);
    return wrong < 0 ||
           io_fail(why, j->options->out, "tensor '%.128s': element %lld is not the BF16 nearest to what its block says",
                   t->name, (long long)wrong);
}

static bool verify(job *j, char *why)
{
    st_file written;
    if (!st_open(io_stage_path(&j->stage, NULL), &written, why)) return false;
    bool ok = written.count == j->file.count || io_fail(why, j->options->out, "it has %d tensors, and %.200s has %d",
                                                        written.count, j->options->in, j->file.count);
    for (int i = 0; ok && i < j->file.count; i++) ok = same_tensor(j, &written, &j->file.tensor[i], why);
    st_close(&written);
    return ok;
}

/* ---- the report ---- */

static void print_types(const tally sum[GGUF_TYPES])
{
    char n[32], e[32], x[32];
    printf("  %-8s %-8s %9s %16s %16s\n", "type", "becomes", "tensors", "elements", "exact");
    for (uint32_t k = 0; k < GGUF_TYPES; k++)
        if (sum[k].tensors)
            printf("  %-8s %-8s %9s %16s %16s\n", gguf_type_of(k)->name,
                   gguf_type_of(k)->elements > 1 ? "BF16" : gguf_type_of(k)->name,
                   app_count(n, sizeof n, sum[k].tensors), app_count(e, sizeof e, sum[k].elements),
                   app_count(x, sizeof x, sum[k].exact));
}

static void report(const job *j, const tally sum[GGUF_TYPES], const tally *all)
{
    char a[32], b[32];
    const int kept = gguf_key(&j->file, "general.architecture") != NULL;
    app_say(stdout, "%s: GGUF to BF16\n\n", j->options->in);
    print_types(sum);
    printf("\n%s elements: %s as they were, the others rounded once, to the nearest BF16.\n",
           app_count(a, sizeof a, all->elements), app_count(b, sizeof b, all->exact));
    if (all->not_finite)
        printf("Of blocks, %s are NaN or infinite in the file already.\n", app_count(a, sizeof a, all->not_finite));
    printf(
        "Names and the order of rows are still llama.cpp's: it exchanges rows of attn_q and attn_k of LLaMA and its\n"
        "like, so to give these tensors Hugging Face's names is not enough.\n");
    printf("Left behind: %d of its %d keys of metadata (sizes, tokenizer); no config.json is written.\n",
           j->file.keys - kept, j->file.keys);
    if (j->options->verify && !j->options->check)
        printf("Verified, read back: each element of a block is the BF16 nearest to what the block says, in binary64; "
               "all\n"
               "else is the same bytes. What a block says, the same code read both times.\n");
}

/* ---- from one file to the other ---- */

static bool claim(const fc_options *o, char *why)
{
    return app_reads(o->in, why) && (o->check || app_writes("", o->out, why));
}

static int write_all(job *j)
{
    char why[IO_WHY] = "";
    const fc_options *o = j->options;
    const io_stage_args args = { o->out, false, o->force, NULL, NULL, NULL };
    if (!io_stage_open(&args, &j->stage, why)) return app_complain(APP_USAGE, "%s", why);
    if (!gguf_write_dense(&j->file, io_stage_path(&j->stage, NULL), why)) return app_complain(APP_USAGE, "%s", why);
    if (!o->verify || verify(j, why)) return APP_OK;
    return app_complain(io_memory_ran_out() ? APP_USAGE : APP_FAILED, "--verify: %s", why);
}

static int run(job *j)
{
    char why[IO_WHY] = "";
    tally sum[GGUF_TYPES] = { { .tensors = 0 } }, all = { .tensors = 0 };
    const fc_options *o = j->options;
    if (!count(j, sum, why)) return app_complain(APP_USAGE, "%s", why);
    for (int k = 0; k < GGUF_TYPES; k++) {
        all.elements += sum[k].elements;
        all.exact += sum[k].exact;
        all.not_finite += sum[k].not_finite;
        all.lost += sum[k].lost;
    }
    if (all.lost)
        return app_complain(APP_FAILED, "%s: %lld finite numbers would become infinity%s", o->in, (long long)all.lost,
                            o->check ? "" : "; nothing was written");
    int status = o->check ? APP_OK : write_all(j);
    if (status != APP_OK) return status;
    report(j, sum, &all);
    status = app_flush(APP_OK);
    if (status == APP_OK && !o->check && !io_stage_commit(&j->stage, why)) return app_complain(APP_USAGE, "%s", why);
    return status;
}

int fc_convert_gguf(const fc_options *o)
{
    static job j;
    char why[IO_WHY] = "";
    j.options = o;
    if (!may_run(o, why) || !claim(o, why) || !gguf_open(o->in, &j.file, why))
        return app_complain(APP_USAGE, "%s", why);
    const int status = run(&j);
    io_stage_discard(&j.stage);
    gguf_close(&j.file);
    return status;
}

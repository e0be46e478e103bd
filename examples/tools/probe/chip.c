/* chip.c - runs a tile on this library in place of a chip, and remembers what each hypothesis predicts.
 * SPDX-License-Identifier: MIT
 */
#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_matmul.h>
#include <trnmath/trn_tensor_engine.h>

bool probe_same(double x, double y) { return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0; }

/* ---- one tile ---- */

enum { OPERAND_BYTES = PROBE_CAPACITY * 4, MAX_OUTPUTS = 4096 };

typedef struct chip_run {
    const probe_tile *tile;
    trn_generation generation;
    const trn_numerics *numerics;
    uint64_t seed;
    const unsigned char *a, *b;
    trn_tensor dst;
    trn_error *error;
} chip_run;

static trn_tensor operand_view(const chip_run *r, bool moving, int first_row, int rows)
{
    const probe_tile *t = r->tile;
    const int lanes = moving ? t->n : t->m, slots = probe_slots(t);
    const unsigned char *bytes = (moving ? r->b : r->a) + first_row * slots * lanes * (trn_format_bits(t->format) / 8);
    trn_tensor view = trn_tensor_2d(t->format, (void *)(uintptr_t)bytes, rows, lanes);
    if (slots == 1) return view;
    view.rank = 3;
    view.shape[1] = t->mode == PROBE_MX ? lanes : slots;
    view.shape[2] = t->mode == PROBE_MX ? slots : lanes;
    return view;
}

static trn_status run_plain(const chip_run *r, int first_row, int rows, bool accumulate)
{
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = r->generation;
    args.dst = r->dst;
    args.stationary = operand_view(r, false, first_row, rows);
    args.moving = operand_view(r, true, first_row, rows);
    args.accumulate = accumulate;
    args.double_row = r->tile->mode == PROBE_DOUBLE_ROW;
    args.numerics = r->numerics;
    args.error = r->error;
    return trn_nc_matmul(&args);
}

static trn_status run_rows(const chip_run *r)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < r->tile->repeat; i++)
        for (int k = 0; k < r->tile->k && status == TRN_OK; k += r->tile->step)
            status = run_plain(r, k, r->tile->step, i > 0 || k > 0);
    return status;
}

static trn_status run_mx(const chip_run *r)
{
    unsigned char scale[16 * 16];
    trn_nc_matmul_mx_args args;
    memset(scale, 127, sizeof scale); /* 2^0 */
    memset(&args, 0, sizeof args);
    args.generation = r->generation;
    args.dst = r->dst;
    args.stationary = operand_view(r, false, 0, r->tile->k);
    args.moving = operand_view(r, true, 0, r->tile->k);
    args.stationary_scale = trn_tensor_2d(TRN_F8_E8M0, scale, r->tile->k / 8, r->tile->m);
    args.moving_scale = trn_tensor_2d(TRN_F8_E8M0, scale, r->tile->k / 8, r->tile->n);
    args.numerics = r->numerics;
    args.error = r->error;
    return trn_nc_matmul_mx(&args);
}

/* A row of K is a tile of its own, and PSUM is what psum_format says, whatever the tile was declared. */
static trn_status run_psum_bf16(const chip_run *r)
{
    trn_numerics n = *r->numerics;
    trn_matmul_args args;
    n.k_tile = 1;
    memset(&args, 0, sizeof args);
    args.generation = r->generation;
    args.dst = r->dst;
    args.a = trn_tensor_transposed(operand_view(r, false, 0, r->tile->k));
    args.b = operand_view(r, true, 0, r->tile->k);
    args.seed = r->seed;
    args.numerics = &n;
    args.error = r->error;
    return trn_matmul(&args);
}

static void outputs_of(const chip_run *r, double *out)
{
    for (int i = 0; i < probe_outputs(r->tile); i++) switch (r->dst.format) {
        case TRN_BF16: out[i] = (double)trn_bf16_to_f32(((const uint16_t *)r->dst.data)[i]); break;
        case TRN_I32: out[i] = (double)((const int32_t *)r->dst.data)[i]; break;
        default: out[i] = (double)((const float *)r->dst.data)[i];
        }
}

bool probe_run_tile(const probe_tile *tile, trn_generation generation, const trn_numerics *n, uint64_t seed,
                    double *out, char *why)
{
    static uint32_t psum[MAX_OUTPUTS];
    static unsigned char a[OPERAND_BYTES], b[OPERAND_BYTES];
    trn_error error;
    chip_run r = { tile, generation, n, seed, a, b, { 0 }, &error };
    const trn_format format = tile->format == TRN_I8 ? TRN_I32 : tile->mode == PROBE_PSUM_BF16 ? TRN_BF16 : TRN_F32;
    r.dst = trn_tensor_2d(format, psum, tile->m, tile->n);
    probe_operand(tile, false, a);
    probe_operand(tile, true, b);
    const trn_status status = tile->mode == PROBE_MX          ? run_mx(&r)
                              : tile->mode == PROBE_ROWS      ? run_rows(&r)
                              : tile->mode == PROBE_PSUM_BF16 ? run_psum_bf16(&r)
                                                              : run_plain(&r, 0, tile->k, false);
    if (!app_worked(status, &error)) return app_fail(why, "%s: %s", tile->name, error.text);
    outputs_of(&r, out);
    return true;
}

/* ---- predictions ---- */

/* A hash table with open addressing. The key is the tile and its scope's values in mixed radix, so keys never clash. */
typedef struct entry {
    uint64_t key; /* 0: empty */
    double *out;
} entry;

static struct {
    entry *slot;
    size_t slots, used;
} memory;

static uint64_t key_of(int tile, const probe_setting *s)
{
    uint64_t key = 1;
    for (int f = 0; f < PROBE_FIELDS; f++)
        if (probe_tiles[tile].scope & PROBE_BIT(f)) {
            const int value = s->value[f] < 0 ? probe_hypotheses[f].standard : s->value[f];
            key = key * (uint64_t)probe_values(f) + (uint64_t)value;
        }
    return key * PROBE_MAX_TILES + (uint64_t)tile;
}

static entry *slot_of(uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (memory.slots - 1);
    while (memory.slot[i].key && memory.slot[i].key != key) i = (i + 1) & (memory.slots - 1);
    return &memory.slot[i];
}

static void grow(void)
{
    entry *old = memory.slot;
    const size_t slots = memory.slots;
    if (memory.used * 2 < slots) return;
    memory.slots = slots ? slots * 2 : 1 << 12;
    memory.slot = (entry *)app_memory(memory.slots, sizeof *memory.slot);
    for (size_t i = 0; i < slots; i++)
        if (old[i].key) *slot_of(old[i].key) = old[i];
    free(old);
}

/* The scope's values alone; every other field at its default. */
static probe_setting within(const probe_setting *s, uint32_t scope)
{
    probe_setting only = probe_undecided();
    for (int f = 0; f < PROBE_FIELDS; f++)
        if (scope & PROBE_BIT(f)) only.value[f] = s->value[f];
    return only;
}

static trn_generation generation_for(const probe_tile *t)
{
    return t->generations & PROBE_TRN3 ? TRN_TRAINIUM3 : t->generations & PROBE_TRN2 ? TRN_TRAINIUM2 : TRN_TRAINIUM1;
}

const double *probe_prediction(int tile, const probe_setting *s)
{
    grow();
    entry *e = slot_of(key_of(tile, s));
    if (e->key) return e->out;
    char why[APP_WHY] = "trn_numerics_parse refused its own text";
    trn_numerics n;
    const probe_setting only = within(s, probe_tiles[tile].scope);
    e->key = key_of(tile, s);
    e->out = (double *)app_memory((size_t)probe_outputs(&probe_tiles[tile]), sizeof(double));
    memory.used++;
    if (!probe_numerics(&only, &n) ||
        !probe_run_tile(&probe_tiles[tile], generation_for(&probe_tiles[tile]), &n, 0, e->out, why))
        exit(app_complain(APP_USAGE, "%s", why));
    return e->out;
}

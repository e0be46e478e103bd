/* machine/cost.h - the time of a matrix product, on one NeuronCore and on a system.
 * A part of trn_cost.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_COST_H
#define TRNI_MACHINE_COST_H

#include "tensor_cost.h"
#include "engine_cycles.h"
#include "spec_physical.h"

typedef enum trn_operand { TRN_OPERAND_CHEAPER = 0, TRN_OPERAND_A, TRN_OPERAND_B } trn_operand;

typedef enum trn_limit {
    TRN_LIMIT_NONE = 0, /* nothing to do */
    TRN_LIMIT_TENSOR,
    TRN_LIMIT_HBM,
    TRN_LIMIT_DMA,
    TRN_LIMIT_STARTUP
} trn_limit;

typedef enum trn_split {
    TRN_SPLIT_EVENLY = 0, /* m, n, k are the whole product's; cores share M and N, never K */
    TRN_SPLIT_PER_CORE    /* every core has its own product of m, n, k */
} trn_split;

/* "the cheaper one", "a" or "b"; "unknown" for anything else. */
TRN_API const char *trn_operand_name(trn_operand operand);

/* What sets the time, as text, such as "HBM"; "unknown" for anything else. */
TRN_API const char *trn_limit_name(trn_limit limit);

typedef struct trn_matmul_cost_args {
    trn_generation generation;     /* default: Trainium2; Trainium3 for MX, E4M3FN and E2M1 */
    const trn_system_spec *system; /* trn_matmul_system_cost: needed; trn_matmul_cost: NULL, or its chip is used */
    int64_t m, n, k;               /* dst [m, n] = a [m, k] b [k, n]; any may be 0 */
    trn_split split;               /* trn_matmul_system_cost only */
    trn_format a_format;
    trn_format b_format;    /* unset = a_format */
    trn_format dst_format;  /* unset = F32 for F32 and TF32 operands, I32 for INT8, a's for transposes, else BF16 */
    trn_format psum_format; /* unset = F32; BF16 on Trainium3: half of PSUM's bytes, longer instructions */
    trn_matmul_mode mode;
    trn_operand stationary;
    int sparse_m, sparse_n;          /* m of n elements of a along K are stored, such as 4 and 16; 0, 0 = all */
    bool fp32r;                      /* F32 operands are read as TF32, in one pass */
    bool is_a_onezero, is_b_onezero; /* known to hold zeros and ones: half the cost of F32 */
    bool pack_tiles;                 /* row and column tiling where K or the stationary operand is short */
    bool throttle;                   /* TensorE begins cold */
    bool accumulate;                 /* dst is read before it is written */
    bool operands_in_sbuf;           /* a, b and dst stay in SBUF: no traffic, no start-up; they must fit */
    trn_error *error;
} trn_matmul_cost_args;

typedef struct trn_core_cost {
    trn_matmul_mode mode;   /* what FASTEST came to */
    trn_operand stationary; /* what CHEAPER came to; a when both cost the same */
    trn_limit limit;
    const char *limit_name;
    char text[192]; /* the limit, the stationary operand and its rival, the blocking */

    double instructions;  /* matrix instructions issued */
    double tensor_cycles; /* of all MultiplyMoving */
    double rival_cycles;  /* tensor_cycles, had the other operand been stationary */
    double tensor_s;
    double load_stationary_s; /* exposed */
    double throttle_s;        /* lost while TensorE warms up; 0 unless asked for */
    int tiles_at_once;        /* that share the array; 1 unless asked for */
    double a_reads, b_reads;  /* how often each operand comes from HBM */
    double bytes;             /* moved between HBM and SBUF, both ways */
    double dma_s, hbm_s, startup_s;
    double time_s;

    double flops;              /* 2 m n k, skipped products included; 0 for transposes */
    double tflops;             /* achieved; 0 when there is nothing to do */
    double spec_tflops;        /* this core's share of the published figure of its chip; NaN when there is none */
    double fraction_of_spec;   /* tflops over that; NaN when there is none */
    double tensor_peak_tflops; /* what the array does in this mode when no tile is short */
    double fraction_of_peak;
    double utilisation; /* of the array during tensor_cycles: what short tiles leave of it */
    trn_source speed;   /* how the speed of this mode with these formats is known */
    bool fits_hbm;      /* a, b and dst in this core's share of its chip's HBM */
} trn_core_cost;

typedef struct trn_system_cost {
    trn_core_cost core;             /* the core with the largest slice */
    double cores;                   /* of the system */
    double cores_m, cores_n;        /* how they share M and N */
    double cores_busy;              /* have anything to do */
    int64_t core_m, core_n, core_k; /* the largest slice */
    double time_s;
    double flops;
    double tflops;
    double spec_tflops; /* published, whole system; NaN when there is none */
    double fraction_of_spec;
} trn_system_cost;

/* ---- the sum ---- */

/* The cost on one core. Nothing is written on failure: TRN_ESHAPE for a negative size, TRN_EFORMAT for formats that
 * cannot meet, TRN_EUNSUPPORTED for what the generation lacks, TRN_ELIMIT when operands_in_sbuf do not fit. */
TRN_API trn_status trn_matmul_cost(const trn_matmul_cost_args *args, trn_core_cost *cost);

/* ---- a system ---- */

/* The cost on every core of args->system at once, the operands already where they are needed. PER_CORE: each core has
 * its own product of m, n, k. EVENLY: the cores form a grid, cores_m by cores_n; core (i, j) already holds rows
 * [i m/cores_m, ...) of a and columns [j n/cores_n, ...) of b in its share of HBM and keeps its block of dst, so that
 * nothing is communicated. Sizes that do not divide are rounded up, and the core with the largest block sets the time.
 * Of all grids whose sides multiply to the number of cores, the fastest is taken. */
TRN_API trn_status trn_matmul_system_cost(const trn_matmul_cost_args *args, trn_system_cost *cost);

#if TRNI_BODIES

#include "tensor_cycles.h"

TRN_API const char *trn_operand_name(trn_operand operand)
{
    static const char *const name[] = { "the cheaper one", "a", "b" };
    return (unsigned)operand < sizeof name / sizeof name[0] ? name[(unsigned)operand] : "unknown";
}

TRN_API const char *trn_limit_name(trn_limit limit)
{
    static const char *const name[] = { "nothing to do", "tensor engine", "HBM", "DMA", "start-up" };
    return (unsigned)limit < sizeof name / sizeof name[0] ? name[(unsigned)limit] : "unknown";
}

/* ---- what the formats and the mode mean ---- */

/* The question, settled: every default replaced. */
typedef struct trni_cost {
    const trn_chip_spec *chip;
    const trn_core_spec *core;
    trni_speed speed;
    double m, n, k;
    double tile_k;                      /* rows of K in one instruction */
    double longest;                     /* moving columns of one instruction */
    double psum_columns;                /* of one partition */
    double a_bytes, b_bytes, dst_bytes; /* of one element, MX scales included */
    double spec_flops_per_s;            /* of one core; 0 = not published */
    trn_operand stationary;
    bool accumulate, in_sbuf, pack, throttle;
} trni_cost;

/* The published rate of the slower operand, for one core; 0 when none is. */
TRNI_FN double trni_cost_spec(const trn_chip_spec *chip, const trni_speed *speed, trn_format a, trn_format b)
{
    const double a_peak = trn_core_peak_flops_per_s(chip->core, a, false);
    const double b_peak = trn_core_peak_flops_per_s(chip->core, b, false);
    const double rate = trni_chip_flops_per_s(chip, b_peak < a_peak ? b : a, speed->mode == TRN_MODE_SPARSE);
    return speed->published ? rate / chip->cores : 0;
}

TRNI_FN trn_status trni_cost_sizes(const trn_matmul_cost_args *args)
{
    const int64_t size[3] = { args->m, args->n, args->k };
    for (int i = 0; i < 3; i++)
        if (size[i] < 0)
            return trni_fail(args->error, TRN_ESHAPE, "%c is %lld; a size cannot be negative", "mnk"[i],
                             (long long)size[i]);
    if (args->mode == TRN_MODE_TRANSPOSE && args->n && args->n != args->k)
        return trni_fail(args->error, TRN_ESHAPE, "n is %lld, but a transpose turns k = %lld rows into as many columns",
                         (long long)args->n, (long long)args->k);
    return TRN_OK;
}

/* The chip that is meant: the system's, else the generation's. As in trn_matmul, the default generation is Trainium2
 * unless MX, or a format that only MX knows, asks for Trainium3. */
TRNI_FN const trn_chip_spec *trni_cost_chip(const trn_matmul_cost_args *args)
{
    const trn_format a = args->a_format, b = args->b_format;
    const bool newest = args->mode == TRN_MODE_MX || trni_multiplies_newly(a) || trni_multiplies_newly(b);
    if (args->system) return args->system->server->chip;
    return trn_chip_spec_of(args->generation == TRN_GENERATION_DEFAULT && newest ? TRN_TRAINIUM3 : args->generation);
}

/* Formats with every default replaced. */
typedef struct trni_cost_formats {
    trn_format a, b, dst, psum;
} trni_cost_formats;

TRNI_FN trni_cost_formats trni_cost_formats_of(const trn_matmul_cost_args *args)
{
    const bool transpose = args->mode == TRN_MODE_TRANSPOSE;
    const trn_format a = args->a_format, b = args->b_format && !transpose ? args->b_format : a;
    const trn_format narrow = a == TRN_I8 ? TRN_I32 : TRN_BF16, wide = transpose ? a : TRN_F32;
    const trni_cost_formats f = { a, b,
                                  args->dst_format                        ? args->dst_format
                                  : trn_format_bits(a) == 32              ? wide
                                  : transpose && trn_format_bits(a) == 16 ? a
                                                                          : narrow,
                                  args->psum_format ? args->psum_format : TRN_F32 };
    return f;
}

TRNI_DRIVER trn_status trni_cost_check(const trn_matmul_cost_args *args, const trn_chip_spec *chip,
                                       const trni_cost_formats *f)
{
    if (!chip) return trni_fail(args->error, TRN_EINVAL, "generation is %d, not a generation", (int)args->generation);
    if (args->system && args->generation && chip->core->generation != args->generation)
        return trni_fail(args->error, TRN_EINVAL, "generation is %s, but %s is made of %s",
                         trn_generation_name(args->generation), args->system->name, chip->name);
    if ((unsigned)args->stationary > TRN_OPERAND_B)
        return trni_fail(args->error, TRN_EINVAL, "stationary is %d, not an operand", (int)args->stationary);
    if (args->stationary == TRN_OPERAND_B && (args->sparse_n || args->mode == TRN_MODE_TRANSPOSE))
        return trni_fail(args->error, TRN_EINVAL, "stationary is b, but the sparse operand, or the data, is a");
    if (args->accumulate && args->mode == TRN_MODE_TRANSPOSE)
        return trni_fail(args->error, TRN_EINVAL, "accumulate: a transpose overwrites dst");
    if (!trni_format_valid(f->dst))
        return trni_fail(args->error, TRN_EFORMAT, "dst_format is not a format (%d)", (int)f->dst);
    if (f->psum != TRN_F32 && f->psum != TRN_BF16)
        return trni_fail(args->error, TRN_EFORMAT, "psum_format is %s, not %s or %s", trn_format_name(f->psum),
                         trn_format_name(TRN_F32), trn_format_name(TRN_BF16));
    if (f->psum == TRN_BF16 && !chip->core->bf16_psum)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "psum_format: PSUM of %s does not hold %s", chip->name,
                         trn_format_name(TRN_BF16));
    return trni_cost_sizes(args);
}

/* Bytes of one element as it lies in HBM: with its share of a block's scale, or its tag if it is stored at all. */
TRNI_FN double trni_cost_bytes(const trn_matmul_cost_args *args, trn_matmul_mode mode, trn_format format, bool sparse)
{
    const double bits = trn_format_bits(format);           /* FP4 travels packed */
    if (mode == TRN_MODE_MX) return (bits + 8.0 / 32) / 8; /* one E8M0 byte for 32 elements */
    return mode == TRN_MODE_SPARSE && sparse ? (bits + 4) * args->sparse_m / args->sparse_n / 8 : bits / 8;
}

TRNI_FN trn_status trni_cost_resolve(const trn_matmul_cost_args *args, trni_cost *c)
{
    const trn_chip_spec *chip = trni_cost_chip(args);
    const trni_cost_formats f = trni_cost_formats_of(args);
    trn_status status = trni_cost_check(args, chip, &f);
    if (status != TRN_OK) return status;
    const trn_core_spec *core = chip->core;
    const trni_speed_args speed = { core,
                                    args->mode,
                                    { f.a, f.b },
                                    { "a_format", "b_format" },
                                    { args->is_a_onezero, args->is_b_onezero },
                                    args->fp32r,
                                    args->sparse_m,
                                    args->sparse_n,
                                    args->error };
    if ((status = trni_speed_resolve(&speed, &c->speed)) != TRN_OK) return status;

    c->chip = chip;
    c->core = core;
    c->m = (double)args->m;
    c->n = args->mode == TRN_MODE_TRANSPOSE ? (double)args->k : (double)args->n;
    c->k = (double)args->k;
    c->tile_k = core->pe_rows * c->speed.products;
    c->longest = f.psum == TRN_BF16 ? core->max_n_bf16 : core->max_n;
    c->psum_columns = core->psum_partition_bytes / (double)trn_format_bytes(f.psum);
    c->a_bytes = trni_cost_bytes(args, c->speed.mode, f.a, true);
    c->b_bytes = trni_cost_bytes(args, c->speed.mode, f.b, false);
    c->dst_bytes = (double)trn_format_bits(f.dst) / 8;
    c->spec_flops_per_s = trni_cost_spec(chip, &c->speed, f.a, f.b);
    const bool a_is_held = c->speed.mode == TRN_MODE_SPARSE || c->speed.mode == TRN_MODE_TRANSPOSE;
    c->stationary = a_is_held ? TRN_OPERAND_A : args->stationary;
    c->accumulate = args->accumulate;
    c->in_sbuf = args->operands_in_sbuf;
    c->pack = args->pack_tiles;
    c->throttle = args->throttle;
    return TRN_OK;
}

/* ---- the three resources ---- */

/* The stationary operand has `held` columns, the moving one `moved`. */
TRNI_FN double trni_tensor_tiles(const trni_cost *c, double held)
{
    return ceil(c->k / c->tile_k) * ceil(held / c->core->pe_columns);
}

/* One operand held, the other moved past it. */
typedef struct trni_sweeps {
    double cycles, instructions, tiles, load; /* load: cycles of one LoadStationary */
    int at_once;                              /* tiles that share the array */
} trni_sweeps;

/* How many tiles fit beside each other: along rows when K is short, along columns when the held operand is. */
TRNI_FN int trni_tiles_at_once(const trni_cost *c, double held)
{
    const trn_core_spec *core = c->core;
    const trn_matmul_mode mode = c->speed.mode;
    if (!c->pack || mode == TRN_MODE_SPARSE || mode == TRN_MODE_TRANSPOSE) return 1;
    const int rows = trni_parts(core->pe_rows, core->row_tile_min, ceil(c->k / c->speed.products));
    const int columns = trni_parts(core->pe_columns, core->column_tile_min, held);
    return mode == TRN_MODE_MX || mode == TRN_MODE_DOUBLE_ROW ? rows : rows * columns;
}

/* The moving operand may be cut into pieces so that all places of the array have something to do: as many as finish
 * first. */
TRNI_FN trni_sweeps trni_cost_sweeps(const trni_cost *c, double held, double moved)
{
    trni_sweeps best = { 0, 0, trni_tensor_tiles(c, held), 0, trni_tiles_at_once(c, held) };
    best.load = trni_load_cycles(&c->speed, fmin(held, c->core->pe_columns));
    for (int cuts = 1; cuts <= best.at_once; cuts++) {
        const double piece = ceil(moved / cuts);
        const double cycles = ceil(best.tiles * cuts / best.at_once) * trni_multiply_cycles(&c->speed, piece);
        if (cuts > 1 && cycles >= best.cycles) continue;
        best.cycles = cycles;
        best.instructions = best.tiles * cuts * ceil(piece / c->longest);
    }
    return best;
}

/* Tiles of [128 rows of K, 128 columns], smaller at the edges. */
TRNI_FN trni_sweeps trni_cost_transposes(const trni_cost *c)
{
    const double side = c->core->pe_rows, rows = floor(c->k / side), columns = floor(c->m / side);
    const double last_row = c->k - rows * side, last_column = c->m - columns * side;
    trni_sweeps out = { 0, 0, trni_tensor_tiles(c, c->m), 0, 1 };
    out.cycles = rows * columns * trni_transpose_cycles(&c->speed, side, side) +
                 rows * trni_transpose_cycles(&c->speed, side, last_column) +
                 columns * trni_transpose_cycles(&c->speed, last_row, side) +
                 trni_transpose_cycles(&c->speed, last_row, last_column);
    out.instructions = out.tiles;
    out.load = trni_load_cycles(&c->speed, fmin(c->m, side));
    return out;
}

/* The first load has nothing to hide behind; the others hide behind a sweep. */
TRNI_FN double trni_exposed_loads(const trni_sweeps *s)
{
    const double turns = ceil(s->tiles / s->at_once);
    return s->cycles > 0 ? s->load + (turns - 1) * trni_exposed_cycles(s->load, s->cycles / turns) : 0;
}

TRNI_FN void trni_cost_tensor(const trni_cost *c, trn_core_cost *out)
{
    const bool transpose = c->speed.mode == TRN_MODE_TRANSPOSE;
    const trni_sweeps a = transpose ? trni_cost_transposes(c) : trni_cost_sweeps(c, c->m, c->n);
    const trni_sweeps b = transpose ? a : trni_cost_sweeps(c, c->n, c->m);
    out->stationary = c->stationary ? c->stationary : b.cycles < a.cycles ? TRN_OPERAND_B : TRN_OPERAND_A;
    const bool a_first = out->stationary == TRN_OPERAND_A;
    const trni_sweeps *const s = a_first ? &a : &b;

    out->tensor_cycles = s->cycles;
    out->rival_cycles = a_first ? b.cycles : a.cycles;
    out->instructions = s->instructions;
    out->tiles_at_once = s->at_once;
    out->tensor_s = out->tensor_cycles / c->core->tensor_clock_hz;
    out->load_stationary_s = trni_exposed_loads(s) / c->core->tensor_clock_hz;
    if (c->throttle) out->throttle_s = trni_warm_time(c->core, out->tensor_s) - out->tensor_s;
}

#define TRNI_RESIDENT_SHARE 0.75

/* How many panels of an operand with `rows` rows of row_bytes fill the resident share of SBUF one after the other. */
TRNI_FN double trni_panels(const trn_core_spec *core, double rows, double row_bytes)
{
    double fit = floor(trn_core_sbuf_bytes(core) * TRNI_RESIDENT_SHARE / row_bytes);
    if (fit >= rows) return 1;
    fit = floor(fit / core->pe_rows) * core->pe_rows;
    return fit > 0 ? ceil(rows / fit) : HUGE_VAL;
}

typedef struct trni_blocking {
    double a_reads, b_reads;
    const char *name;
} trni_blocking;

TRNI_FN double trni_read_bytes(const trni_cost *c, trni_blocking way)
{
    return way.a_reads * c->m * c->k * c->a_bytes + way.b_reads * c->k * c->n * c->b_bytes;
}

TRNI_FN void trni_take_cheaper(const trni_cost *c, trni_blocking *best, double a_reads, double b_reads,
                               const char *name)
{
    const trni_blocking way = { a_reads, b_reads, name };
    if (trni_read_bytes(c, way) < trni_read_bytes(c, *best)) *best = way;
}

TRNI_FN trni_blocking trni_cost_blocking(const trni_cost *c)
{
    const trni_blocking nothing = { 0, 0, "nothing is read" }, once = { 1, 0, "each element once" };
    if (c->m * c->n * c->k <= 0) return nothing;
    if (c->speed.mode == TRN_MODE_TRANSPOSE) return once;
    trni_blocking best = { 1, trni_panels(c->core, c->m, c->k * c->a_bytes), "a in SBUF" };
    trni_take_cheaper(c, &best, trni_panels(c->core, c->n, c->k * c->b_bytes), 1, "b in SBUF");
    const double half = c->psum_columns / 2; /* the other half drains */
    for (double t = 1; half / t >= c->core->pe_columns; t *= 2)
        trni_take_cheaper(c, &best, ceil(c->n / (half / t)), ceil(c->m / (t * c->core->pe_columns)), "PSUM blocks");
    return best;
}

/* a, b and dst; the identity of a transpose is nothing. */
TRNI_FN double trni_stored_bytes(const trni_cost *c)
{
    const double b = c->speed.mode == TRN_MODE_TRANSPOSE ? 0 : c->k * c->n * c->b_bytes;
    return c->m * c->k * c->a_bytes + b + c->m * c->n * c->dst_bytes;
}

TRNI_FN void trni_cost_memory(const trni_cost *c, trn_core_cost *out, const char **blocking)
{
    const trni_blocking way = trni_cost_blocking(c);
    const bool unchanged = c->accumulate && c->k <= 0; /* dst + 0 products: nothing to write */
    const double dst = c->m * c->n * c->dst_bytes;
    const double dst_traffic = unchanged ? 0 : c->accumulate ? 2 * dst : dst;
    const double stored = trni_stored_bytes(c);
    out->fits_hbm = stored <= c->chip->hbm_bytes / c->chip->cores;
    *blocking = c->in_sbuf ? "all in SBUF" : way.name;
    if (c->in_sbuf) return;
    out->a_reads = way.a_reads;
    out->b_reads = way.b_reads;
    out->bytes = trni_read_bytes(c, way) + dst_traffic;
    out->dma_s = out->bytes / (c->core->dma_engines * c->core->dma_engine_bytes_per_s);
    out->hbm_s = out->bytes / (c->chip->hbm_bytes_per_s / c->chip->cores);
    out->startup_s = out->bytes > 0 ? c->core->dma_latency_s : 0;
}

/* ---- the sum ---- */

TRNI_FN trn_limit trni_cost_limit(const trn_core_cost *cost)
{
    const double tensor = cost->tensor_s + cost->load_stationary_s + cost->throttle_s;
    const double slowest = fmax(tensor, fmax(cost->hbm_s, cost->dma_s));
    if (cost->time_s <= 0) return TRN_LIMIT_NONE;
    if (cost->startup_s > slowest) return TRN_LIMIT_STARTUP;
    if (tensor >= slowest) return TRN_LIMIT_TENSOR;
    return cost->hbm_s >= cost->dma_s ? TRN_LIMIT_HBM : TRN_LIMIT_DMA;
}

TRNI_FN void trni_cost_text(const trni_cost *c, const char *blocking, trn_core_cost *out)
{
    const char *const held = trn_operand_name(out->stationary);
    const char *const rival = trn_operand_name(out->stationary == TRN_OPERAND_A ? TRN_OPERAND_B : TRN_OPERAND_A);
    int used = snprintf(out->text, sizeof out->text, "%s", out->limit_name);
    if (out->tensor_cycles > 0)
        used += trni_print(out->text + used, sizeof out->text - (size_t)used,
                           "; %s is stationary in %.0f cycles (%s would be in %.0f); %s", held, out->tensor_cycles,
                           rival, out->rival_cycles, blocking);
    if (out->tensor_cycles > 0 && !c->in_sbuf)
        trni_print(out->text + used, sizeof out->text - (size_t)used, ", a read %.0f and b %.0f times", out->a_reads,
                   out->b_reads);
}

TRNI_FN void trni_cost_core(const trni_cost *c, trn_core_cost *out)
{
    const char *blocking;
    memset(out, 0, sizeof *out);
    out->mode = c->speed.mode;
    out->speed = c->speed.source;
    trni_cost_tensor(c, out);
    trni_cost_memory(c, out, &blocking);
    const double tensor = out->tensor_s + out->load_stationary_s + out->throttle_s;
    out->time_s = fmax(tensor, fmax(out->dma_s, out->hbm_s)) + out->startup_s;
    out->limit = trni_cost_limit(out);
    out->limit_name = trn_limit_name(out->limit);

    const bool transpose = c->speed.mode == TRN_MODE_TRANSPOSE;
    const double pe = (double)c->core->pe_rows * c->core->pe_columns;
    const double peak_cycle = 2 * pe * c->speed.products / c->speed.passes;               /* flops */
    const double useful = transpose ? c->m * c->k * c->speed.passes / c->core->pe_columns /* cycles of full tiles */
                                    : 2 * c->m * c->n * c->k / peak_cycle;
    out->flops = transpose ? 0 : 2 * c->m * c->n * c->k;
    out->tflops = out->time_s > 0 ? out->flops / out->time_s / 1e12 : 0;
    out->tensor_peak_tflops = transpose ? 0 : peak_cycle * c->core->tensor_clock_hz / 1e12;
    out->utilisation = out->tensor_cycles > 0 ? useful / out->tensor_cycles : 0;
    out->fraction_of_peak = out->time_s > 0 ? useful / c->core->tensor_clock_hz / out->time_s : 0;
    out->spec_tflops = c->spec_flops_per_s > 0 ? c->spec_flops_per_s / 1e12 : TRNI_NAN;
    out->fraction_of_spec = out->tflops / out->spec_tflops;
    trni_cost_text(c, blocking, out);
}

/* Do a, b and dst fit, when they are said to stay in SBUF? */
TRNI_FN trn_status trni_cost_fits(const trni_cost *c, trn_error *error)
{
    const double bytes = trni_stored_bytes(c);
    if (c->in_sbuf && bytes > trn_core_sbuf_bytes(c->core))
        return trni_fail(error, TRN_ELIMIT, "operands_in_sbuf: a, b and dst take %.0f bytes, SBUF of %s has %.0f",
                         bytes, c->core->name, trn_core_sbuf_bytes(c->core));
    return TRN_OK;
}

TRN_API trn_status trn_matmul_cost(const trn_matmul_cost_args *args, trn_core_cost *cost)
{
    trni_cost c;
    memset(&c, 0, sizeof c); /* for gcc, which does not see that only a success is read */
    TRNI_ENTER(args);
    if (!cost) return trni_fail(args->error, TRN_EINVAL, "cost is null");
    trn_status status = trni_cost_resolve(args, &c);
    if (status == TRN_OK) status = trni_cost_fits(&c, args->error);
    if (status == TRN_OK) trni_cost_core(&c, cost);
    return status;
}

/* ---- a system ---- */

TRNI_FN int64_t trni_slice(int64_t size, int64_t cores) { return size / cores + (size % cores != 0); }

/* The product of m and n shared by a grid of cores, when that is faster than what is in *out (or as fast, with less
 * traffic). */
TRNI_FN void trni_cost_grid(const trn_matmul_cost_args *args, trni_cost c, int64_t cores_m, int64_t cores_n,
                            trn_system_cost *out)
{
    trn_core_cost core;
    const int64_t m = trni_slice(args->m, cores_m), n = trni_slice(args->n, cores_n);
    c.m = (double)m;
    c.n = (double)n;
    if (c.speed.mode == TRN_MODE_TRANSPOSE) c.k = c.n;
    if (trni_cost_fits(&c, NULL) != TRN_OK) return;
    trni_cost_core(&c, &core);
    if (out->cores_m > 0 &&
        (core.time_s > out->core.time_s || (core.time_s >= out->core.time_s && core.bytes >= out->core.bytes)))
        return;
    out->core = core;
    out->cores_m = (double)cores_m;
    out->cores_n = (double)cores_n;
    out->core_m = m;
    out->core_n = n;
    out->cores_busy = m && n ? (double)trni_slice(args->m, m) * (double)trni_slice(args->n, n) : 0;
}

TRNI_FN trn_status trni_cost_evenly(const trn_matmul_cost_args *args, const trni_cost *c, int64_t cores,
                                    trn_system_cost *out)
{
    for (int64_t d = 1; d * d <= cores; d++) {
        if (cores % d) continue;
        trni_cost_grid(args, *c, d, cores / d, out);
        trni_cost_grid(args, *c, cores / d, d, out);
    }
    if (out->cores_m > 0) return TRN_OK;
    return trni_fail(args->error, TRN_ELIMIT, "operands_in_sbuf: no even split over %lld cores fits in SBUF",
                     (long long)cores);
}

TRN_API trn_status trn_matmul_system_cost(const trn_matmul_cost_args *args, trn_system_cost *cost)
{
    trni_cost c;
    trn_matmul_cost_args own;
    memset(&c, 0, sizeof c); /* for gcc, which does not see that only a success is read */
    TRNI_ENTER(args);
    if (!cost) return trni_fail(args->error, TRN_EINVAL, "cost is null");
    if (!args->system) return trni_fail(args->error, TRN_EINVAL, "system is null; trn_system_spec_of() gives one");
    if ((unsigned)args->split > TRN_SPLIT_PER_CORE)
        return trni_fail(args->error, TRN_EINVAL, "split is %d, not a split", (int)args->split);
    trn_status status = trni_cost_resolve(args, &c);
    if (status != TRN_OK) return status;

    own = *args;
    if (c.speed.mode == TRN_MODE_TRANSPOSE) own.n = own.k;
    args = &own;
    trn_system_cost out;
    memset(&out, 0, sizeof out);
    const int64_t cores = (int64_t)trn_spec_chips(args->system) * c.chip->cores;
    if (args->split == TRN_SPLIT_EVENLY) {
        status = trni_cost_evenly(args, &c, cores, &out);
        out.flops = c.speed.mode == TRN_MODE_TRANSPOSE ? 0 : 2 * c.m * c.n * c.k;
    } else if ((status = trni_cost_fits(&c, args->error)) == TRN_OK) {
        trni_cost_core(&c, &out.core);
        out.core_m = args->m;
        out.core_n = args->n;
        out.cores_m = (double)cores; /* independent products, as if stacked along M */
        out.cores_n = 1;
        out.cores_busy = args->m && args->n ? (double)cores : 0;
        out.flops = out.core.flops * (double)cores;
    }
    if (status != TRN_OK) return status;
    out.core_k = c.speed.mode == TRN_MODE_TRANSPOSE ? out.core_n : args->k;
    out.cores = (double)cores;
    out.time_s = out.core.time_s;
    out.tflops = out.time_s > 0 ? out.flops / out.time_s / 1e12 : 0;
    out.spec_tflops = out.core.spec_tflops * (double)cores;
    out.fraction_of_spec = out.tflops / out.spec_tflops;
    *cost = out;
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_COST_H */

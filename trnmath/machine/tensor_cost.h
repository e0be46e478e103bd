/* machine/tensor_cost.h - what each instruction of the Tensor engine costs, alone and in a sequence.
 * A part of trn_cost.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cost.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_tensor_instruction step[8];
 *         for (int i = 0; i < 8; i++)
 *             step[i] = (trn_tensor_instruction){ .generation = TRN_TRAINIUM2, .stationary_format = TRN_F8_E4M3,
 *                                                 .k = 256, .m = 128, .n = 512 };
 *         trn_tensor_sequence_args all = { .instruction = step, .count = 8, .throttle = true };
 *         trn_tensor_sequence_total total;
 *         if (trn_tensor_sequence_cost(&all, &total) != TRN_OK) return 1;
 *         printf("%.0f cycles, %.2f us, %.1f TFLOPS\n", total.cycles, 1e6 * total.seconds, total.tflops);
 *         return total.multiply_cycles == 8 * 512 && total.exposed_cycles == 32 ? 0 : 1;
 *     }
 *
 * DOES: says for one instruction of any mode, or several that share the array, how many cycles LoadStationary and
 *     MultiplyMoving take, what of the load is exposed, how full the PEs are, and how each number is known; and adds a
 *     sequence up, loads hidden behind the multiplication before, on an engine that may begin cold.
 * DOES NOT: know memory or the other engines (trn_core.h does), but for the transposes of VectorE. Products of any size
 *     on cores, chips and systems, with HBM and DMA, are in trn_cost.h.
 *
 * KNOWN FROM: machine/tensor_cycles.h, which holds the arithmetic and its assumptions; trn_cost.h asks the same header,
 *     so that a product costs what its instructions do. Limits: NKI's nc_matmul and nc_matmul_mx pages (documented).
 */
#ifndef TRNI_MACHINE_TENSOR_COST_H
#define TRNI_MACHINE_TENSOR_COST_H

#include "spec_physical.h"

/* ---- one instruction ---- */

/* psum[M, N] (+)= stationary[K, M]^T moving[K, N]. k counts all rows of K that the instruction covers: up to 128, with
 * double_row 256, with MX 512, with a pattern m:n 128 n/m. A transpose turns data [k, m], which is stationary, into
 * [m, k]; n is k, or 0 for it. */
typedef struct trn_tensor_instruction {
    trn_generation generation; /* default: Trainium2; Trainium3 for MX, E4M3FN and E2M1 */
    trn_matmul_mode mode;      /* default: the fastest that the formats allow */
    int k, m, n;
    trn_format stationary_format;
    trn_format moving_format;                      /* unset = stationary_format */
    bool bf16_psum;                                /* Trainium3: up to 8192 moving columns instead of 4096 */
    bool is_stationary_onezero, is_moving_onezero; /* known to hold zeros and ones: half the cost of F32 */
    bool fp32r;                                    /* F32 operands are read as TF32, in one pass */
    int sparse_m, sparse_n;      /* m of n stationary elements along K are stored, such as 4 and 16; 0, 0 = all */
    int tile_rows, tile_columns; /* the part of the array that it takes: 32 (not on Trainium1), 64, 128; 0 = 128 */
    int pack;                    /* so many of them, each in a part of its own, then in turn; 0 = 1 */
    double before_cycles;        /* of the MultiplyMoving before, behind which the load hides; 0 = none */
    bool throttle;               /* the engine is cold */
    trn_error *error;
} trn_tensor_instruction;

typedef struct trn_tensor_cost {
    trn_matmul_mode mode;   /* what FASTEST came to */
    double load_cycles;     /* LoadStationary */
    double multiply_cycles; /* MultiplyMoving */
    double exposed_cycles;  /* of all loads: not hidden behind a multiplication */
    int at_once;            /* how many share the array */
    double turns;           /* of the pack: pack / at_once, rounded up */
    double cycles;          /* turns x multiply_cycles + exposed_cycles */
    double seconds;         /* the same, by the clock of TensorE; with the time a cold engine loses */
    double flops;           /* 2 k m n for each of the pack, those that sparsity skips included; 0 for transposes */
    double tflops;          /* flops over seconds */
    double peak_tflops;     /* what the array does in this mode when it is full; 0 for transposes */
    double utilisation;     /* share of the PEs at work while multiplying */
    double rows_at_work;    /* share of the array's rows, which is what keeps the engine warm */
    trn_source load_known, multiply_known, exposed_known, at_once_known;
} trn_tensor_cost;

/* ---- the sum ---- */

/* Nothing is written on failure: TRN_ESHAPE for a size below 1, TRN_ELIMIT for one that the instruction does not take,
 * TRN_EFORMAT for formats that cannot meet, TRN_EUNSUPPORTED for what the generation lacks, TRN_EINVAL for the rest. */
TRN_API trn_status trn_tensor_instruction_cost(const trn_tensor_instruction *instruction, trn_tensor_cost *cost);

/* ---- a sequence ---- */

/* Instructions of one core after each other. Their own before_cycles, throttle and error do not matter here. */
typedef struct trn_tensor_sequence_args {
    const trn_tensor_instruction *instruction; /* [count] */
    int64_t count;
    const double *wait_s; /* [count]: the engine waits so long before each, for moving data; NULL = it never waits */
    bool throttle;        /* it begins cold, and cools while it waits */
    trn_error *error;
} trn_tensor_sequence_args;

typedef struct trn_tensor_sequence_total {
    double instructions; /* packs counted as what they hold */
    double load_cycles;  /* of all loads, hidden or not */
    double multiply_cycles;
    double exposed_cycles;
    double cycles; /* multiply_cycles + exposed_cycles, at full speed */
    double waited_s;
    double throttled_s; /* lost while the engine was not warm */
    double colder;      /* how often it became cold again */
    double seconds;     /* all of it */
    double flops, tflops;
    double utilisation; /* of the PEs, over all of seconds; 1 is a full array at the rate of its mode */
} trn_tensor_sequence_total;

/* Nothing is written on failure, which names the instruction. */
TRN_API trn_status trn_tensor_sequence_cost(const trn_tensor_sequence_args *args, trn_tensor_sequence_total *total);

/* ---- VectorE ---- */

/* Blocks of 32 x 32 on VectorE, n elements in each of up to 128 partitions: cycles of its own clock, the field
 * vector_clock_hz. Documented in an older release: max(64, n). */
TRN_API double trn_vector_transpose_cycles(const trn_core_spec *core, double n);

#if TRNI_BODIES

#include "tensor_cycles.h"

/* ---- the limits ---- */

TRNI_FN const trn_core_spec *trni_instruction_core(const trn_tensor_instruction *i)
{
    const trn_format a = i->stationary_format, b = i->moving_format;
    const bool newest = i->mode == TRN_MODE_MX || trni_multiplies_newly(a) || trni_multiplies_newly(b);
    return trn_core_spec_of(i->generation == TRN_GENERATION_DEFAULT && newest ? TRN_TRAINIUM3 : i->generation);
}

TRNI_DRIVER trn_status trni_instruction_check_size(const trn_tensor_instruction *i, const char *name, int size,
                                                   double most)
{
    if (size < 1 || size > most)
        return trni_fail(i->error, size < 1 ? TRN_ESHAPE : TRN_ELIMIT, "%s is %d; this instruction takes 1 to %.0f",
                         name, size, most);
    return TRN_OK;
}

/* tile_rows or tile_columns: a power of two from the smallest that the generation has to the whole array. */
TRNI_DRIVER trn_status trni_instruction_check_tile(const trn_tensor_instruction *i, const char *name, int size,
                                                   int smallest, int all)
{
    bool known = size == 0;
    for (int s = smallest; s <= all; s *= 2) known = known || size == s;
    if (!known) return trni_fail(i->error, TRN_ELIMIT, "%s is %d; parts have %d to %d", name, size, smallest, all);
    return TRN_OK;
}

/* The question, settled. */
typedef struct trni_instruction {
    trni_speed speed;
    int rows, columns; /* of its part of the array */
    double k, m, n;
} trni_instruction;

TRNI_DRIVER trn_status trni_instruction_check_sizes(const trn_tensor_instruction *i, const trni_instruction *s)
{
    const trn_core_spec *core = s->speed.core;
    const int longest = i->bf16_psum ? core->max_n_bf16 : core->max_n;
    trn_status status = trni_instruction_check_size(i, "k", i->k, s->rows * s->speed.products);
    if (status == TRN_OK) status = trni_instruction_check_size(i, "m", i->m, s->columns);
    if (s->speed.mode == TRN_MODE_TRANSPOSE && status == TRN_OK && i->n != 0 && i->n != i->k)
        return trni_fail(i->error, TRN_ESHAPE, "n is %d, but a transpose turns k = %d rows into as many columns", i->n,
                         i->k);
    if (status == TRN_OK && s->speed.mode != TRN_MODE_TRANSPOSE)
        status = trni_instruction_check_size(i, "n", i->n, longest);
    return status;
}

/* Which modes may take a part of the array only: MX, double_row and transposes along rows, sparse products not. */
TRNI_DRIVER trn_status trni_instruction_check_tiling(const trn_tensor_instruction *i, const trni_instruction *s)
{
    const trn_matmul_mode mode = s->speed.mode;
    const trn_core_spec *core = s->speed.core;
    const bool by_rows = mode != TRN_MODE_SPARSE;
    const bool by_columns = mode == TRN_MODE_PLAIN || mode == TRN_MODE_INT8;
    if (i->pack < 0) return trni_fail(i->error, TRN_EINVAL, "pack is %d", i->pack);
    if ((s->rows < core->pe_rows && !by_rows) || (s->columns < core->pe_columns && !by_columns))
        return trni_fail(i->error, TRN_EUNSUPPORTED, "mode %s does not go with tile_rows %d and tile_columns %d",
                         trn_matmul_mode_name(mode), s->rows, s->columns);
    return TRN_OK;
}

TRNI_FN trn_status trni_instruction_resolve(const trn_tensor_instruction *i, trni_instruction *out)
{
    const trn_core_spec *core = trni_instruction_core(i);
    if (!core) return trni_fail(i->error, TRN_EINVAL, "generation is %d, not a generation", (int)i->generation);
    const bool transpose = i->mode == TRN_MODE_TRANSPOSE;
    const trn_format moving = i->moving_format && !transpose ? i->moving_format : i->stationary_format;
    const trni_speed_args speed = { core,
                                    i->mode,
                                    { i->stationary_format, moving },
                                    { "stationary_format", "moving_format" },
                                    { i->is_stationary_onezero, i->is_moving_onezero },
                                    i->fp32r,
                                    i->sparse_m,
                                    i->sparse_n,
                                    i->error };
    trn_status status = trni_speed_resolve(&speed, &out->speed);
    if (status == TRN_OK && i->bf16_psum && !core->bf16_psum)
        return trni_fail(i->error, TRN_EUNSUPPORTED, "bf16_psum: PSUM of %s does not hold bfloat16",
                         trn_generation_name(core->generation));
    if (status == TRN_OK)
        status = trni_instruction_check_tile(i, "tile_rows", i->tile_rows, core->row_tile_min, core->pe_rows);
    if (status == TRN_OK)
        status =
            trni_instruction_check_tile(i, "tile_columns", i->tile_columns, core->column_tile_min, core->pe_columns);
    if (status != TRN_OK) return status;
    out->rows = i->tile_rows ? i->tile_rows : core->pe_rows;
    out->columns = i->tile_columns ? i->tile_columns : core->pe_columns;
    out->k = i->k;
    out->m = i->m;
    out->n = transpose ? i->k : i->n;
    status = trni_instruction_check_tiling(i, out);
    return status == TRN_OK ? trni_instruction_check_sizes(i, out) : status;
}

/* ---- the sum ---- */

TRNI_FN void trni_instruction_sources(const trni_instruction *s, trn_tensor_cost *out)
{
    static const trn_source at_same_time = { "at_once", TRN_DOCUMENTED, TRNI_ISA " (row and column tiling)" };
    static const trn_source alone = { "at_once", TRN_DOCUMENTED, TRNI_ISA };
    static const trn_source wide_load = { "load_cycles", TRN_ASSUMED, "F32 loads take the passes that products take" };
    static const trn_source old = { "multiply_cycles", TRN_DOCUMENTED, TRNI_OLD ", nc_transpose" };
    const trn_core_spec *core = s->speed.core;
    out->load_known = s->speed.load_passes > 1 ? wide_load : trni_core_source_of(core, "load_speedup");
    out->multiply_known = s->speed.mode == TRN_MODE_TRANSPOSE && s->speed.passes <= 1 ? old : s->speed.source;
    out->exposed_known = trni_core_source_of(core, "load_speedup"); /* "in the background": the same page */
    out->at_once_known = out->at_once > 1 ? at_same_time : alone;
    out->load_known.field = "load_cycles";
    out->multiply_known.field = "multiply_cycles";
    out->exposed_known.field = "exposed_cycles";
}

TRNI_FN void trni_instruction_flops(const trni_instruction *s, double pack, trn_tensor_cost *out)
{
    const trn_core_spec *core = s->speed.core;
    const double pe = (double)core->pe_rows * core->pe_columns;
    const double peak_cycle = 2 * pe * s->speed.products / s->speed.passes;
    const bool transpose = s->speed.mode == TRN_MODE_TRANSPOSE;
    const double useful = transpose ? s->k * s->m * s->speed.passes / core->pe_columns /* cycles of full tiles */
                                    : 2 * s->k * s->m * s->n / peak_cycle;
    out->flops = transpose ? 0 : 2 * s->k * s->m * s->n * pack;
    out->peak_tflops = transpose ? 0 : peak_cycle * core->tensor_clock_hz / 1e12;
    out->utilisation = useful * pack / (out->turns * out->multiply_cycles);
    out->rows_at_work =
        fmin(1, s->k * fmin(pack, (double)core->pe_rows / s->rows) / (core->pe_rows * s->speed.products));
}

TRNI_FN void trni_instruction_sum(const trn_tensor_instruction *i, const trni_instruction *s, double before,
                                  trn_tensor_cost *out)
{
    const trn_core_spec *core = s->speed.core;
    const double pack = i->pack ? i->pack : 1;
    memset(out, 0, sizeof *out);
    out->mode = s->speed.mode;
    out->load_cycles = trni_load_cycles(&s->speed, s->m);
    out->multiply_cycles = s->speed.mode == TRN_MODE_TRANSPOSE ? trni_transpose_cycles(&s->speed, s->k, s->m)
                                                               : trni_multiply_cycles(&s->speed, s->n);
    out->at_once = core->pe_rows / s->rows * (core->pe_columns / s->columns);
    out->turns = ceil(pack / out->at_once);
    out->exposed_cycles = trni_exposed_cycles(out->load_cycles, before) +
                          (out->turns - 1) * trni_exposed_cycles(out->load_cycles, out->multiply_cycles);
    out->cycles = out->turns * out->multiply_cycles + out->exposed_cycles;
    out->seconds = out->cycles / core->tensor_clock_hz;
    trni_instruction_flops(s, pack, out);
    if (i->throttle) out->seconds = trni_cold_time(core, out->seconds, out->rows_at_work);
    out->tflops = out->flops / out->seconds / 1e12;
    trni_instruction_sources(s, out);
}

TRN_API trn_status trn_tensor_instruction_cost(const trn_tensor_instruction *instruction, trn_tensor_cost *cost)
{
    trni_instruction s;
    memset(&s, 0, sizeof s);
    TRNI_ENTER(instruction);
    if (!cost) return trni_fail(instruction->error, TRN_EINVAL, "cost is null");
    if (!(instruction->before_cycles >= 0))
        return trni_fail(instruction->error, TRN_EINVAL, "before_cycles is %g", instruction->before_cycles);
    const trn_status status = trni_instruction_resolve(instruction, &s);
    if (status == TRN_OK) trni_instruction_sum(instruction, &s, instruction->before_cycles, cost);
    return status;
}

/* ---- a sequence ---- */

/* The load hides behind the multiplication before it, and behind a wait for moving data (assumed). */
TRNI_FN void trni_sequence_add(const trn_core_spec *core, const trn_tensor_cost *c, double pack, double wait_s,
                               trni_throttle *t, trn_tensor_sequence_total *out)
{
    const double seconds = c->cycles / core->tensor_clock_hz, before = trni_throttle_s(t);
    trni_throttle_wait(core, t, wait_s);
    trni_throttle_work(core, t, seconds, c->rows_at_work);
    out->throttled_s += trni_throttle_s(t) - before - wait_s - seconds;
    out->instructions += pack;
    out->load_cycles += c->turns * c->load_cycles;
    out->multiply_cycles += c->turns * c->multiply_cycles;
    out->exposed_cycles += c->exposed_cycles;
    out->cycles += c->cycles;
    out->waited_s += wait_s;
    out->flops += c->flops;
    out->utilisation += c->utilisation * c->turns * c->multiply_cycles; /* cycles of a full array; divided at the end */
}

TRNI_FN trn_status trni_sequence_step(const trn_tensor_sequence_args *args, int64_t at, const trn_core_spec **core,
                                      double *before, trni_throttle *t, trn_tensor_sequence_total *out)
{
    trn_tensor_instruction i = args->instruction[at];
    const double wait_s = args->wait_s ? args->wait_s[at] : 0;
    trn_error why = { TRN_OK, "" };
    trni_instruction s;
    trn_tensor_cost c;
    memset(&s, 0, sizeof s);
    i.error = &why;
    i.throttle = false;
    const trn_status status = trni_instruction_resolve(&i, &s);
    if (status != TRN_OK) return trni_fail(args->error, status, "instruction %lld: %.200s", (long long)at, why.text);
    if (!(wait_s >= 0 && wait_s < HUGE_VAL))
        return trni_fail(args->error, TRN_EINVAL, "wait_s[%lld] is %g", (long long)at, wait_s);
    if (*core && *core != s.speed.core)
        return trni_fail(args->error, TRN_EINVAL, "instruction %lld is for %s, those before it for %s", (long long)at,
                         trn_generation_name(s.speed.core->generation), trn_generation_name((*core)->generation));
    *core = s.speed.core;
    trni_instruction_sum(&i, &s, *before + wait_s * (*core)->tensor_clock_hz, &c);
    *before = c.multiply_cycles;
    trni_sequence_add(*core, &c, i.pack ? i.pack : 1, wait_s, t, out);
    return TRN_OK;
}

TRN_API trn_status trn_tensor_sequence_cost(const trn_tensor_sequence_args *args, trn_tensor_sequence_total *total)
{
    const trn_core_spec *core = NULL;
    trn_tensor_sequence_total out;
    trni_throttle t;
    double before = 0;
    memset(&out, 0, sizeof out);
    memset(&t, 0, sizeof t);
    TRNI_ENTER(args);
    if (!total) return trni_fail(args->error, TRN_EINVAL, "total is null");
    if (args->count < 0 || (args->count > 0 && !args->instruction))
        return trni_fail(args->error, TRN_EINVAL, "count is %lld and instruction is %s", (long long)args->count,
                         args->instruction ? "given" : "null");
    for (int64_t i = 0; i < args->count; i++) {
        const trn_status status = trni_sequence_step(args, i, &core, &before, &t, &out);
        if (status != TRN_OK) return status;
    }
    const double hz = core ? core->tensor_clock_hz : 1;
    out.colder = args->throttle ? t.colder : 0;
    out.throttled_s = args->throttle ? fmax(out.throttled_s, 0) : 0;
    out.seconds = out.cycles / hz + out.waited_s + out.throttled_s;
    out.tflops = out.seconds > 0 ? out.flops / out.seconds / 1e12 : 0;
    out.utilisation = out.seconds > 0 ? out.utilisation / hz / out.seconds : 0;
    *total = out;
    return TRN_OK;
}

/* ---- VectorE ---- */

TRN_API double trn_vector_transpose_cycles(const trn_core_spec *core, double n)
{
    TRNI_FLOATS;
    return n > 0 ? fmax(core->vector_min_cycles, n) : 0;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_TENSOR_COST_H */

/* machine/tensor_cycles.h - how fast the Tensor engine is in each of its modes: the arithmetic that all costs share.
 * Behind trn_cost.h. SPDX-License-Identifier: MIT
 *
 * DOES: settles what a mode and two formats come to (cycles for a column, products of a PE), and turns them into cycles
 *     of MultiplyMoving, LoadStationary and transposes, into instructions that share the array, and into seconds of an
 *     engine that starts cold. Every number is a field of trn_spec.h, where its source stands.
 * DOES NOT: know sizes of whole products, or memory. trn_cost.h asks it for products of any size, machine/tensor_cost.h
 *     for single instructions, so that neither writes a number down a second time. It lies down here, beside the facts,
 *     because a cost needs nothing else: whoever plans can ask without an engine, and without values.
 *
 * KNOWN FROM: MultiplyMoving takes max(columns, 64) cycles, LoadStationary is up to four times faster and runs in the
 *     background (documented). A transpose of [P, F] takes max(P, min(64, F)) cycles (documented in an older release;
 *     the shortest instruction of 64 cycles does not hold for it there). Rates: the fields f32_passes,
 *     f32_onezero_passes, fp32r_passes, f32_transpose_passes, f8_products, mx_products, sparse_products and
 *     int8_products. Assumed: F32 loads take as many passes as F32 multiplications, all other loads one; the sparse
 *     rate, published for 4:16, is n/m for the other patterns m:n, none of which is above it; INT8 halves the cycles of
 *     a column, not those of the shortest instruction; tiles that share the array are loaded at the same time; a cold
 *     engine warms up linearly with the time it is at work, and looks back on windows that follow each other. What
 *     counts in them is the share of the array's rows that are at work times the rate (the page says utilisation;
 *     measured: device.md). So two thirds of the rows warm a cold engine, and half of them keep a warm one warm as long
 *     as there is no pause; a broadcast, which is a product of one row, does neither.
 */
#ifndef TRNI_MACHINE_TENSOR_CYCLES_H
#define TRNI_MACHINE_TENSOR_CYCLES_H

#include "spec_physical.h"

#include <math.h>

/* ---- modes ---- */

/* Two operands: [0] a, or the stationary one; [1] b, or the moving one. */
typedef struct trni_speed_args {
    const trn_core_spec *core;
    trn_matmul_mode mode;
    trn_format format[2];
    const char *name[2];    /* of the two format fields, for messages */
    bool onezero[2];        /* known to hold zeros and ones: matters for F32 only */
    bool fp32r;             /* F32 operands are read as TF32 */
    int sparse_m, sparse_n; /* m of n elements of operand 0 are stored; 0, 0 = all */
    trn_error *error;
} trni_speed_args;

typedef struct trni_speed {
    const trn_core_spec *core;
    trn_matmul_mode mode; /* never FASTEST */
    double passes;        /* cycles of MultiplyMoving for a moving column */
    double load_passes;   /* of LoadStationary, over those of BF16 */
    double products;      /* rows of K that one row of PEs takes at once; those that sparsity skips count */
    bool published;       /* is there a published rate for exactly this? */
    trn_source source;    /* of what makes the mode as fast as it is */
} trni_speed;

/* The source of one field of a core. */
TRNI_FN trn_source trni_core_source_of(const trn_core_spec *core, const char *field)
{
    const trn_source none = { field, TRN_ASSUMED, "no such field" };
    for (int i = 0; i < TRNI_CORE_FIELD_COUNT; i++)
        if (strcmp(core->source[i].field, field) == 0) return core->source[i];
    return none;
}

/* ---- may these two meet, in this mode? ---- */

TRNI_FN bool trni_is_f8_operand(trn_generation generation, trn_format format)
{
    const trni_rate rate = trni_rate_of(generation, format);
    return trn_format_bits(format) == 8 && (rate == TRNI_RATE_F8 || rate == TRNI_RATE_MX);
}

TRNI_DRIVER trn_status trni_speed_check_pair(const trni_speed_args *args)
{
    const trn_generation g = args->core->generation;
    const trn_format a = args->format[0], b = args->format[1];
    for (int i = 0; i < 2; i++) {
        if (!trni_format_valid(args->format[i]))
            return trni_fail(args->error, TRN_EFORMAT, "%s is not a format (%d)", args->name[i], (int)args->format[i]);
        if (!trni_multiplies(g, args->format[i]))
            return trni_fail(args->error, TRN_EUNSUPPORTED, "%s: the matrix instructions of %s do not take %s",
                             args->name[i], trn_generation_name(g), trn_format_name(args->format[i]));
    }
    if (!trni_may_meet(a, b))
        return trni_fail(args->error, TRN_EFORMAT, "%s %s and %s %s cannot meet in one matmul", args->name[0],
                         trn_format_name(a), args->name[1], trn_format_name(b));
    return TRN_OK;
}

/* The one of two that is an operand under block scales only; TRN_FORMAT_UNSET: none. */
TRNI_FN trn_format trni_tiny_of(trn_format a, trn_format b)
{
    if (trni_operand_kind_of(a) == TRNI_OPERAND_TINY) return a;
    return trni_operand_kind_of(b) == TRNI_OPERAND_TINY ? b : TRN_FORMAT_UNSET;
}

/* What speaks for each mode: the engine has it, and these formats can use it. */
typedef struct trni_mode_facts {
    bool there[TRNI_MODE_COUNT], takes[TRNI_MODE_COUNT];
} trni_mode_facts;

TRNI_FN trni_mode_facts trni_mode_facts_of(const trni_speed_args *args)
{
    const trn_core_spec *core = args->core;
    const trn_generation g = core->generation;
    const trn_format a = args->format[0], b = args->format[1];
    const bool int8 = a == TRN_I8, tiny = trni_tiny_of(a, b) != TRN_FORMAT_UNSET, f32 = a == TRN_F32 || b == TRN_F32;
    const bool mx = trni_rate_of(g, a) == TRNI_RATE_MX && trni_rate_of(g, b) == TRNI_RATE_MX;
    const bool f8 = trni_is_f8_operand(g, a) && trni_is_f8_operand(g, b);
    const trni_mode_facts facts = {
        { true, true, core->double_row, core->mx, core->sparse, true, core->int8_products > 0 },
        { true, !int8, f8, mx, !int8 && !f32 && !tiny, !int8 && !tiny, int8 },
    };
    return facts;
}

TRNI_DRIVER trn_status trni_speed_check_pattern(const trni_speed_args *args, trn_matmul_mode mode)
{
    static const int pattern[][2] = { { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 } };
    bool known = false;
    for (unsigned i = 0; i < sizeof pattern / sizeof pattern[0]; i++)
        known = known || (args->sparse_m == pattern[i][0] && args->sparse_n == pattern[i][1]);
    if (mode == TRN_MODE_SPARSE && !known)
        return trni_fail(args->error, TRN_EINVAL, "sparse pattern %d:%d is not 4:16, 4:12, 4:8, 2:8, 2:4, 1:4 or 1:2",
                         args->sparse_m, args->sparse_n);
    if (mode != TRN_MODE_SPARSE && (args->sparse_m || args->sparse_n))
        return trni_fail(args->error, TRN_EINVAL, "a sparse pattern (%d:%d) does not go with mode %s", args->sparse_m,
                         args->sparse_n, trn_matmul_mode_name(mode));
    return TRN_OK;
}

TRNI_FN trn_matmul_mode trni_fastest_mode(const trni_speed_args *args, const trni_mode_facts *facts)
{
    static const trn_matmul_mode best_first[] = { TRN_MODE_INT8, TRN_MODE_MX, TRN_MODE_DOUBLE_ROW };
    if (args->sparse_m || args->sparse_n) return TRN_MODE_SPARSE;
    for (unsigned i = 0; i < sizeof best_first / sizeof best_first[0]; i++)
        if (facts->there[best_first[i]] && facts->takes[best_first[i]]) return best_first[i];
    return TRN_MODE_PLAIN;
}

TRNI_DRIVER trn_status trni_speed_check_mode(const trni_speed_args *args, trn_matmul_mode *mode)
{
    const trn_format a = args->format[0], b = args->format[1];
    const trni_mode_facts facts = trni_mode_facts_of(args);
    *mode = args->mode;
    if ((unsigned)*mode >= TRNI_MODE_COUNT)
        return trni_fail(args->error, TRN_EINVAL, "mode is %d, not a mode", (int)*mode);
    if (*mode == TRN_MODE_FASTEST) *mode = trni_fastest_mode(args, &facts);
    if (!facts.there[*mode])
        return trni_fail(args->error, TRN_EUNSUPPORTED, "mode %s is not available on %s", trn_matmul_mode_name(*mode),
                         trn_generation_name(args->core->generation));
    if (*mode != TRN_MODE_MX && trni_tiny_of(a, b))
        return trni_fail(args->error, TRN_EFORMAT, "%s is an operand of MX only: %s %s, %s %s, mode %s",
                         trn_format_name(trni_tiny_of(a, b)), args->name[0], trn_format_name(a), args->name[1],
                         trn_format_name(b), trn_matmul_mode_name(*mode));
    if (!facts.takes[*mode])
        return trni_fail(args->error, TRN_EFORMAT, "mode %s does not take %s %s with %s %s",
                         trn_matmul_mode_name(*mode), args->name[0], trn_format_name(a), args->name[1],
                         trn_format_name(b));
    return trni_speed_check_pattern(args, *mode);
}

/* ---- how fast that is ---- */

/* Which field of the core says how many passes F32 takes; NULL without F32 operands. */
TRNI_FN const char *trni_f32_field(const trni_speed_args *args, trn_matmul_mode mode)
{
    const bool a = args->format[0] == TRN_F32, b = args->format[1] == TRN_F32;
    if (!a && !b) return NULL;
    if (mode == TRN_MODE_TRANSPOSE && args->core->transpose_mode) return "f32_transpose_passes";
    if (args->fp32r) return "fp32r_passes";
    return (a && args->onezero[0]) || (b && args->onezero[1]) ? "f32_onezero_passes" : "f32_passes";
}

TRNI_FN double trni_f32_passes(const trn_core_spec *core, const char *field)
{
    const struct {
        const char *field;
        int passes;
    } row[] = { { "f32_passes", core->f32_passes },
                { "f32_onezero_passes", core->f32_onezero_passes },
                { "f32_transpose_passes", core->f32_transpose_passes },
                { "fp32r_passes", core->fp32r_passes } };
    for (unsigned i = 0; field && i < sizeof row / sizeof row[0]; i++)
        if (strcmp(field, row[i].field) == 0) return row[i].passes;
    return 1;
}

TRNI_FN void trni_speed_of_mode(const trni_speed_args *args, trni_speed *out)
{
    static const trn_source other_patterns = { "sparse_products", TRN_ASSUMED,
                                               "the rate is published for 4:16; n/m for the other patterns" };
    const trn_core_spec *core = args->core;
    const double ratio = args->sparse_m ? (double)args->sparse_n / args->sparse_m : 1;
    const double f8 = core->f8_products, mx = core->mx_products;
    const struct {
        double products;
        const char *field;
    } row[TRNI_MODE_COUNT] = {
        { 1, "moving_min_cycles" },
        { 1, "moving_min_cycles" },
        { f8, "f8_products" },
        { mx, "mx_products" },
        { fmin(ratio, core->sparse_products), "sparse_products" },
        { 1, "transpose_mode" },
        { 1, "int8_products" },
    };
    const char *const f32 = trni_f32_field(args, out->mode);
    const bool of_4_16 = args->sparse_m == 4 && args->sparse_n == 16;
    out->passes = out->mode == TRN_MODE_INT8 ? 1.0 / core->int8_products : trni_f32_passes(core, f32);
    out->load_passes = fmax(out->passes, 1);
    out->products = row[out->mode].products;
    out->source = trni_core_source_of(core, f32 ? f32 : row[out->mode].field);
    out->published = f32 ? strcmp(f32, "f32_passes") == 0 : true;
    if (out->mode == TRN_MODE_TRANSPOSE) out->published = false;
    if (out->mode == TRN_MODE_SPARSE && !of_4_16) {
        out->published = false;
        out->source = other_patterns;
    }
}

/* Nothing is written on failure: TRN_EFORMAT for formats that cannot meet, TRN_EUNSUPPORTED for what the generation
 * lacks, TRN_EINVAL for a mode or a pattern that does not exist. */
TRNI_FN trn_status trni_speed_resolve(const trni_speed_args *args, trni_speed *speed)
{
    trni_speed out;
    memset(&out, 0, sizeof out);
    out.core = args->core;
    trn_status status = trni_speed_check_pair(args);
    if (status == TRN_OK) status = trni_speed_check_mode(args, &out.mode);
    if (status != TRN_OK) return status;
    trni_speed_of_mode(args, &out);
    *speed = out;
    return TRN_OK;
}

/* ---- cycles of one instruction ---- */

/* n moving columns; 0 for none. */
TRNI_FN double trni_multiply_cycles(const trni_speed *s, double n)
{
    const double shortest = s->core->moving_min_cycles;
    return n > 0 ? fmax(fmax(n, shortest) * s->passes, shortest) : 0;
}

/* m stationary columns. */
TRNI_FN double trni_load_cycles(const trni_speed *s, double m)
{
    return fmax(m / s->core->load_speedup, s->core->load_min_cycles) * s->load_passes;
}

/* Data of p partitions and f columns becomes f partitions of p columns. */
TRNI_FN double trni_transpose_cycles(const trni_speed *s, double p, double f)
{
    return p > 0 && f > 0 ? fmax(p, fmin(s->core->moving_min_cycles, f)) * s->passes : 0;
}

TRNI_FN double trni_exposed_cycles(double load, double multiply_before) { return fmax(load - multiply_before, 0); }

/* ---- tiles that share the array ---- */

/* How many tiles that need `used` of `all` rows (or columns) fit side by side: 4 of 32, 2 of 64, or 1; none is smaller
 * than the generation allows. */
TRNI_FN int trni_parts(int all, int smallest, double used)
{
    int size = all;
    while (size / 2 >= smallest && used <= size / 2) size /= 2;
    return all / size;
}

/* ---- an engine that warms up ---- */

TRNI_FN double trni_throttle_s(const trni_throttle *t) { return t->elapsed_s + t->now_s; }

/* Seconds of work at full speed that a cold engine has done after t seconds: its rate grows from tensor_cold_rate to 1.
 */
TRNI_FN double trni_warm_work(const trn_core_spec *core, double t)
{
    const double r = core->tensor_cold_rate, ramp = core->tensor_warm_up_s;
    const double within = fmin(t, ramp);
    return t - (1 - r) * (within - (ramp > 0 ? within * within / (2 * ramp) : 0));
}

/* The inverse: when is so much done? */
TRNI_FN double trni_warm_time(const trn_core_spec *core, double work)
{
    const double r = core->tensor_cold_rate, ramp = core->tensor_warm_up_s, lost = (1 - r) * ramp / 2;
    if (work >= ramp - lost || r >= 1) return work + lost;
    return ramp * (sqrt(r * r + 2 * (1 - r) * work / ramp) - r) / (1 - r);
}

/* Does an instruction that has this share of the rows at work warm a cold engine? At the cold rate, half of them count
 * for less than half. */
TRNI_FN bool trni_warms(const trn_core_spec *core, double rows) { return rows > core->tensor_busy_share * (1 + 1e-9); }

/* Seconds of a cold engine for `work` seconds at full speed. */
TRNI_FN double trni_cold_time(const trn_core_spec *core, double work, double rows)
{
    return trni_warms(core, rows) ? trni_warm_time(core, work) : work / core->tensor_cold_rate;
}

/* The window is full: an engine that had too few of its rows at work is cold. */
TRNI_FN void trni_throttle_turn(const trn_core_spec *core, trni_throttle *t)
{
    if (t->busy_s < core->tensor_busy_share * core->tensor_warm_up_s * (1 - 1e-9)) {
        t->colder += t->warm_s > 0;
        t->warm_s = 0;
    }
    t->elapsed_s += core->tensor_warm_up_s;
    t->now_s = t->busy_s = 0;
}

/* A cold engine that waits stays cold: its next window begins with its next work. */
TRNI_FN void trni_throttle_wait(const trn_core_spec *core, trni_throttle *t, double seconds)
{
    const double window = core->tensor_warm_up_s;
    while (t->warm_s > 0 && seconds > 0) {
        const double left = window - t->now_s;
        t->now_s += fmin(seconds, left);
        if (seconds < left) return;
        seconds -= left;
        trni_throttle_turn(core, t);
    }
    t->elapsed_s += seconds;
}

/* Windows full of work change nothing for a warm engine and are passed at once, so that an hour takes no longer than a
 * second. */
TRNI_FN double trni_throttle_skip(const trn_core_spec *core, trni_throttle *t, double work)
{
    const double windows = floor(work / core->tensor_warm_up_s);
    t->elapsed_s += windows * core->tensor_warm_up_s;
    return work - windows * core->tensor_warm_up_s;
}

/* `work` of an instruction that leaves the engine as warm as it is, up to the window's end. Returns the rest of it. */
TRNI_FN double trni_throttle_idle(const trn_core_spec *core, trni_throttle *t, double work, double rows)
{
    const double r = core->tensor_cold_rate, window = core->tensor_warm_up_s;
    const double rate = r + (1 - r) * t->warm_s / window, left = window - t->now_s, need = work / rate;
    if (t->warm_s <= 0) { /* its windows change nothing */
        t->elapsed_s += need;
        return 0;
    }
    const double step = fmin(need, left);
    t->now_s += step;
    t->busy_s += step * rate * rows;
    if (need < left) return 0;
    trni_throttle_turn(core, t);
    return work - step * rate;
}

/* `work`: seconds at full speed. rows: share of them that are at work. */
TRNI_FN void trni_throttle_work(const trn_core_spec *core, trni_throttle *t, double work, double rows)
{
    const double window = core->tensor_warm_up_s;
    if (window <= 0) t->elapsed_s += work;
    while (window > 0 && work > 0 && !trni_warms(core, rows)) work = trni_throttle_idle(core, t, work, rows);
    while (window > 0 && work > 0) {
        const double done = trni_warm_work(core, t->warm_s), left = window - t->now_s;
        const double need = trni_warm_time(core, done + work) - t->warm_s, step = fmin(need, left);
        const double worked = trni_warm_work(core, t->warm_s + step) - done;
        work = need <= left ? 0 : work - worked;
        t->warm_s = fmin(t->warm_s + step, window);
        t->now_s += step;
        t->busy_s += worked * rows;
        if (need < left) return;
        trni_throttle_turn(core, t);
        if (t->warm_s >= window) work = trni_throttle_skip(core, t, work);
    }
}

#endif /* TRNI_MACHINE_TENSOR_CYCLES_H */

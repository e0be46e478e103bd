/* core/core_register.h - registers of a core's sequencers: loops and addresses that depend on numbers in tiles.
 * A part of trn_core.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_core core;
 *         const trn_core_args args = { .generation = TRN_TRAINIUM2 };
 *         if (trn_core_begin(&core, &args)) return 1;
 *         trn_tensor rounds = trn_core_sbuf(&core, "rounds", TRN_I32, 1, 1);
 *         trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 128, 8);
 *         trn_core_memset(&core, &(trn_memset_args){ .dst = rounds, .value = 3 });
 *         trn_core_memset(&core, &(trn_memset_args){ .dst = x, .value = 1 });
 *         trn_register n = { 0 };
 *         trn_core_register_load(&core, &(trn_register_load_args){ .dst = &n, .src = rounds });
 *         const int32_t most = trn_core_register_read(&core, &(trn_register_read_args){ .src = &n });
 *         for (int32_t i = 0; i < most; i++)
 *             trn_core_tensor_scalar(&core, &(trn_tensor_scalar_args){ .dst = x, .data = x, .op0 = TRN_ALU_ADD,
 *                                                                      .operand0 = 1 });
 *         const float result = *(float *)x.data;
 *         printf("%d rounds, x is %g\n", (int)most, (double)result);
 *         trn_core_end(&core);
 *         return result == 4 ? 0 : 1;
 *     }
 *
 * DOES: loads a number of one element from SBUF or HBM into a register, moves it to another, stores it, and lets the
 *     program read it: a loop's bound, a condition, where a view begins. Whoever's instructions depend on it begin
 *     when it is known: a load waits for whoever writes its tile, a branch for the load. A register is the caller's own
 *     variable, and zeroed one that holds nothing.
 * DOES NOT: compute with registers: read, compute in C, move. Nor count them: a sequencer has 64, which compilers share
 *     out among as many as a kernel names.
 *
 * KNOWN FROM: NKI, register_alloc, _move, _load, _store, dynamic_range (documented: 64 registers of 32 bits for each
 *     engine's sequencer, which branch by them). What they cost: TRN_FACT_REGISTER, TRN_FACT_BRANCH (assumed); from and
 *     to HBM a transfer's latency (assumed).
 */
#ifndef TRNI_CORE_CORE_REGISTER_H
#define TRNI_CORE_CORE_REGISTER_H

#include "core_instructions.h"

typedef struct trn_register {
    int32_t value;
    bool known;     /* false: it holds nothing, and using it is refused */
    double ready_s; /* on the core's clock */
} trn_register;

typedef struct trn_register_move_args {
    trn_register *dst;
    const trn_register *src; /* null: value */
    int32_t value;
    trn_error *error;
} trn_register_move_args;

/* Takes no time of an engine. TRN_EINVAL: src holds nothing. */
TRN_API trn_status trn_core_register_move(trn_core *core, const trn_register_move_args *args);

typedef struct trn_register_load_args {
    trn_register *dst;
    trn_tensor src; /* one element, in SBUF or HBM: an integer of 8, 16 or 32 bits; those of U32 are kept as they are */
    trn_error *error;
} trn_register_load_args;

/* TRN_ESHAPE, TRN_EFORMAT, TRN_EINVAL: more elements, another format, nothing has written it. */
TRN_API trn_status trn_core_register_load(trn_core *core, const trn_register_load_args *args);

typedef struct trn_register_store_args {
    trn_tensor dst; /* one element, as of a load; the low bits */
    const trn_register *src;
    trn_error *error;
} trn_register_store_args;

TRN_API trn_status trn_core_register_store(trn_core *core, const trn_register_store_args *args);

typedef struct trn_register_read_args {
    const trn_register *src;
    trn_engine engine; /* whose instructions depend on it: of an address; 0 = all, as in a loop or a condition;
                        * SYNC = DMA */
    trn_error *error;
} trn_register_read_args;

/* The number, for the program that runs the kernel: later instructions begin when it is known. 0 after a failure. */
TRN_API int32_t trn_core_register_read(trn_core *core, const trn_register_read_args *args);

#if TRNI_BODIES

/* ---- as an instruction ---- */

/* One with an operand in memory, at most: no engine's, so that its place in time is found here. */
typedef struct trni_register_use {
    trn_core *core;
    trni_order order;
    trni_issue issue;
} trni_register_use;

TRNI_FN void trni_register_begin(trni_register_use *use, trn_core *core, const char *name)
{
    memset(&use->order, 0, sizeof use->order);
    use->core = core;
    use->order.name = name;
    use->order.engine = TRN_ENGINE_DMA; /* operands may lie in HBM */
    use->issue.core = core;
    use->issue.order = &use->order;
    use->issue.args = NULL;
    use->issue.engine = TRN_ENGINE_DMA;
    use->issue.count = use->issue.parts = 0;
    use->issue.poisoned = false;
    use->issue.start_s = use->issue.end_s = use->issue.cycles = use->issue.seconds = 0;
}

/* Where the one element is, whether it may be there, and, of a load, whether something has written it. */
TRNI_DRIVER trn_status trni_register_operand(trni_register_use *use, const char *name, const trn_tensor *view,
                                             unsigned role)
{
    trn_error *const error = &use->core->failure;
    trn_status status = trn_tensor_check(view, name, TRNI_INPUT, 0, error);
    if (!status && trn_tensor_elements(*view) != 1)
        return trni_fail(error, TRN_ESHAPE, "%s has %lld elements; a register holds one", name,
                         (long long)trn_tensor_elements(*view));
    if (!status && !trn_format_is_integer(view->format))
        return trni_fail(error, TRN_EFORMAT, "%s is %s; registers hold integers of up to 32 bits", name,
                         trn_format_name(view->format));
    if (status) return status;
    trni_issue_add(&use->issue, name, view, role);
    status = trni_issue_gather(&use->issue);
    if (!status && use->issue.operand[0].space == TRN_SPACE_PSUM)
        return trni_fail(error, TRN_ELIMIT, "%s '%s' lies in PSUM; registers reach SBUF and HBM", name,
                         use->issue.operand[0].allocation->name);
    return status ? status : trni_issue_check(&use->issue);
}

/* Seconds from a register to an element, or back. */
TRNI_FN double trni_register_seconds(const trni_register_use *use)
{
    const trn_core_spec *spec = use->core->spec;
    if (!use->issue.operand[0].memory) return spec->dma_latency_s;
    return trni_fact(TRN_FACT_REGISTER) / spec->vector_clock_hz;
}

TRNI_FN trn_status trni_register_known(trn_core *core, const char *name, const trn_register *r)
{
    if (!r) return trni_fail(&core->failure, TRN_EINVAL, "%s is null; it is a register", name);
    return r->known ? TRN_OK : trni_fail(&core->failure, TRN_EINVAL, "%s holds nothing yet", name);
}

/* ---- the doors ---- */

TRN_API trn_status trn_core_register_move(trn_core *core, const trn_register_move_args *args)
{
    TRNI_FLOATS;
    trni_register_use use;
    if (core->failure.status) return core->failure.status;
    trni_register_begin(&use, core, "register_move");
    trn_status status = TRN_OK;
    if (!args->dst)
        status = trni_fail(&core->failure, TRN_EINVAL, "dst is null; it is a register");
    else if (args->src)
        status = trni_register_known(core, "src", args->src);
    if (status) return trni_issue_failed(&use.issue, status, args->error);
    const trn_register constant = { args->value, true, 0 };
    *args->dst = args->src ? *args->src : constant;
    core->instructions++;
    return TRN_OK;
}

TRN_API trn_status trn_core_register_load(trn_core *core, const trn_register_load_args *args)
{
    TRNI_FLOATS;
    trni_register_use use;
    if (core->failure.status) return core->failure.status;
    trni_register_begin(&use, core, "register_load");
    trn_status status = TRN_OK;
    if (!args->dst) status = trni_fail(&core->failure, TRN_EINVAL, "dst is null; it is a register");
    if (!status) status = trni_register_operand(&use, "src", &args->src, TRNI_ROLE_READ);
    if (status) return trni_issue_failed(&use.issue, status, args->error);
    args->dst->value = (int32_t)trni_integer_at(args->src.format, args->src.data);
    args->dst->known = true;
    use.issue.end_s = args->dst->ready_s = trni_issue_ready(&use.issue) + trni_register_seconds(&use);
    trni_issue_note(&use.issue);
    core->instructions++;
    return TRN_OK;
}

TRN_API trn_status trn_core_register_store(trn_core *core, const trn_register_store_args *args)
{
    TRNI_FLOATS;
    trni_register_use use;
    if (core->failure.status) return core->failure.status;
    trni_register_begin(&use, core, "register_store");
    trn_status status = trni_register_known(core, "src", args->src);
    if (!status) status = trni_register_operand(&use, "dst", &args->dst, TRNI_ROLE_WRITE);
    if (status) return trni_issue_failed(&use.issue, status, args->error);
    memcpy(args->dst.data, &args->src->value, trn_format_bytes(args->dst.format));
    trni_issue_wrote(&use.issue);
    use.issue.end_s = fmax(trni_issue_ready(&use.issue), args->src->ready_s) + trni_register_seconds(&use);
    trni_issue_note(&use.issue);
    core->instructions++;
    return TRN_OK;
}

TRN_API int32_t trn_core_register_read(trn_core *core, const trn_register_read_args *args)
{
    TRNI_FLOATS;
    trni_register_use use;
    if (core->failure.status) return 0;
    trni_register_begin(&use, core, "register_read");
    trn_status status = trni_register_known(core, "src", args->src);
    const trn_engine engine = args->engine == TRN_ENGINE_SYNC ? TRN_ENGINE_DMA : args->engine;
    if (!status && (unsigned)engine >= TRN_ENGINE_COUNT)
        status = trni_fail(&core->failure, TRN_EINVAL, "engine is %d, not an engine", (int)args->engine);
    if (status) {
        trni_issue_failed(&use.issue, status, args->error);
        return 0;
    }
    const double branch_s = trni_fact(TRN_FACT_BRANCH) / core->spec->vector_clock_hz;
    for (int e = 1; e < TRN_ENGINE_COUNT; e++)
        if (engine == TRN_ENGINE_UNKNOWN || (int)engine == e)
            core->flow_s[e] = fmax(core->flow_s[e], args->src->ready_s + branch_s);
    return args->src->value;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_CORE_CORE_REGISTER_H */

/* plan/plan_args.h - what the planner is asked, what it assumes, and what a plan is.
 * A part of trn_plan.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_spec_field field; // every coefficient that no page gives
 *         for (int i = 0; trn_plan_assumption_at(i, &field); i++)
 *             printf("%-18s %-8g %-6s %s\n", field.field, field.value, field.unit, field.where);
 *         return 0;
 *     }
 *
 * DOES: names the jobs, the choices, the answer's parts; holds the defaults of formats and of everything assumed.
 * DOES NOT: compute anything (trn_plan.h does).
 *
 * KNOWN FROM: Megatron-LM (Shoeybi 2019, Narayanan 2021, Korthikanti 2022), ZeRO (Rajbhandari 2020), ring attention
 *     (Liu 2023) for what each axis does. What is assumed is marked so, and a field.
 *
 * Degrees are counted in chips, and their product is the number of chips of the topology:
 *     tp   matrices are cut by columns, then by rows; heads, KV heads and the vocabulary with them
 *     cp   sequences are cut; weights are repeated; keys and values go round (decode: partial results are combined)
 *     ep   experts, or a recommender's tables, are spread; for everything else it is data parallelism
 *     dp   the batch is cut; weights are repeated, or shared out by trn_zero
 *     pp   layers are cut into stages
 * sp is no axis: it is tp whose norms and residuals are cut along the sequence (all_reduce becomes reduce_scatter and
 * all_gather). The batch is cut by dp x ep. Inside a chip its cores share each product and its HBM; with
 * ranks_per_chip > 1 the logical cores are ranks of tp themselves, as the Neuron runtime counts them.
 *
 * With lnc, tp is counted as the vendor's pages count it, in logical cores of 1 or 2 cores: tp 64 of Trainium2 with
 * lnc 2 is 16 chips. A tp of fewer logical cores than a chip has leaves room for more replicas on the chip: dp counts
 * all of them, and the product of the degrees, tp in logical cores, is the number of logical cores.
 */
#ifndef TRNI_PLAN_PLAN_ARGS_H
#define TRNI_PLAN_PLAN_ARGS_H

#include "../machine/calibration.h"
#include "plan_model.h"
#include "../network/schedule.h"
#include "../network/topology_file.h"
#include "../network/topology_svg.h"

typedef enum trn_job { TRN_JOB_TRAIN = 0, TRN_JOB_PREFILL, TRN_JOB_DECODE, TRN_JOB_COUNT } trn_job;

/* "unknown" when it is none; so do the other names of this header. */
TRN_API const char *trn_job_name(trn_job job);

/* TRN_JOB_COUNT when unknown. */
TRN_API trn_job trn_job_from_name(const char *name);

typedef enum trn_recompute {
    TRN_RECOMPUTE_AUTO = 0, /* the least that fits */
    TRN_RECOMPUTE_NONE,
    TRN_RECOMPUTE_SELECTIVE, /* norms, rotations, activation functions, attention: all but products with weights */
    TRN_RECOMPUTE_FULL,      /* every layer from its input, tp's collectives included */
    TRN_RECOMPUTE_COUNT
} trn_recompute;

TRN_API const char *trn_recompute_name(trn_recompute recompute);

typedef enum trn_zero {
    TRN_ZERO_AUTO = 0,  /* optimizer: what the vendor's stack means by ZeRO-1, and does by default */
    TRN_ZERO_NONE,      /* gradients are all_reduced */
    TRN_ZERO_OPTIMIZER, /* ZeRO-1: gradients are reduce_scattered, new weights all_gathered */
    TRN_ZERO_GRADIENTS, /* ZeRO-2: after every microbatch */
    TRN_ZERO_WEIGHTS,   /* ZeRO-3, FSDP: weights are gathered layer by layer, forward and backward */
    TRN_ZERO_ANY,       /* a question only: the faster of optimizer and weights that fits */
    TRN_ZERO_COUNT
} trn_zero;

TRN_API const char *trn_zero_name(trn_zero zero);

typedef enum trn_plan_axis {
    TRN_AXIS_TP = 0,
    TRN_AXIS_CP,
    TRN_AXIS_EP,
    TRN_AXIS_DP,
    TRN_AXIS_PP,
    TRN_AXIS_COUNT
} trn_plan_axis;

TRN_API const char *trn_plan_axis_name(trn_plan_axis axis);

/* From the innermost level of the topology outward: tp, cp, ep, then these. */
typedef enum trn_plan_order { TRN_ORDER_DP_PP = 0, TRN_ORDER_PP_DP } trn_plan_order;

/* ---- what is stored how ---- */

/* What formats are when nothing else is said. AUTOCAST is what the vendor's stack trains with: products, weights and
 * activations in BF16, gradients summed up in F32, and an optimizer in F32 with a copy of the weights in F32. */
typedef enum trn_precision {
    TRN_PRECISION_AUTOCAST = 0,
    TRN_PRECISION_BF16, /* gradients and optimizer, too, and no copy */
    TRN_PRECISION_FP32, /* everything F32 */
    TRN_PRECISION_COUNT
} trn_precision;

TRN_API const char *trn_precision_name(trn_precision precision);

/* Weights may have any format. Where the matrix instructions do not take it beside the compute format (int8 beside
 * BF16), they are converted on their way into SBUF: HBM keeps and moves what they are stored in, products run at the
 * rate of the compute format (assumed; what the conversion takes beside: trn_plan_assumptions.convert_passes). */
typedef struct trn_plan_formats {
    trn_format weights;     /* unset = BF16 */
    trn_format activations; /* unset = BF16 */
    trn_format gradients;   /* unset = F32: where microbatches are summed up */
    trn_format optimizer;   /* unset = F32: two moments, and the weights once more if theirs is narrower */
    trn_format kv;          /* unset = activations */
    trn_format wire;        /* of all collectives; unset = the format of what travels */
    trn_format compute;     /* operands of products beside the weights; unset = activations */
    trn_format attention;   /* inference: of attention's matrices; unset = weights, and so the next two */
    trn_format experts;     /* inference: of routed experts */
    trn_format head;        /* inference: of embeddings and the head */
    double weights_bits;   /* inference: of an element with its part of block scales, of what is excluded, and so on; */
    double attention_bits; /* 0 = those of the format, or of the weights where that is unset */
    double experts_bits;
    double head_bits;
    double kv_bits;
} trn_plan_formats;

/* Which of these formats a matrix has. */
typedef enum trni_plan_kept {
    TRNI_PLAN_OF_WEIGHTS = 0,
    TRNI_PLAN_OF_ATTENTION,
    TRNI_PLAN_OF_EXPERTS,
    TRNI_PLAN_OF_HEAD,
    TRNI_PLAN_KEPTS
} trni_plan_kept;

/* Every unset format replaced, but for wire. */
TRN_API trn_plan_formats trn_plan_formats_default(const trn_plan_formats *asked, trn_precision precision);

/* ---- what nobody publishes ---- */

/* field, value, unit, why. Zero in a caller's struct means this value; a negative number means zero. */
#define TRNI_PLAN_ASSUMPTIONS(X)                                                                                       \
    X(contention, 0.1, "share", "of the shorter of work and communication when both run: they share DMA and HBM")      \
    X(expert_imbalance, 1, "ratio", "tokens of the busiest expert rank over the mean; 1 = perfect routing")            \
    X(hidden_passes, 8, "passes", "of [tokens, hidden] over HBM in a layer: two norms fused with residual sums")       \
    X(inner_passes, 3, "passes", "of [tokens, intermediate] over HBM: gate and up read, their product written")        \
    X(scalar_passes, 1, "passes", "of ScalarE over every attention score: the exponential")                            \
    X(vector_passes, 1, "passes", "of VectorE over every attention score: maxima and sums")                            \
    X(reserve_bytes, 1073741824.0, "B", "HBM of a chip that runtime, instructions and DMA rings take")                 \
    X(bucket_bytes, 160e6, "B", "that one collective of dp takes: 40 million F32 gradients, as Megatron-LM has")       \
    X(bucket_rank_bytes, 4e6, "B", "or, if that is more, so many a rank: a million gradients, as Megatron-LM has")     \
    X(product_start_s, 0, "s", "per product with weights: 0 = DMA of the next begins during the last")                 \
    X(optimizer_states, 2, "states", "per parameter: Adam's two moments")                                              \
    X(tensor_share, 0.46, "share", "expected of TensorE's cycles in products: ten published training runs on trn1")    \
    X(hbm_share, 0.8, "share", "expected of HBM's rate reading weights and caches: published times of a token")        \
    X(kernel_s, 15e-6, "s", "expected floor of an operation of a layer: published times of a token, 32 to 126 layers") \
    X(layer_kernels, 2, "kernels", "expected in a layer beside products and attention: norms, rotation, activation")   \
    X(spread, 1.2, "times", "the range of a dense token, four of five; other classes of evidence move with it")        \
    X(bucket_tokens, 128, "tokens",                                                                                    \
      "least prompt that graphs are compiled for; twice, 4 times, ... as many are others")                             \
    X(first_s, 5e-3, "s", "expected of a first token beside its pass: the host, the sampling of a prompt")             \
    X(score_passes, 0, "passes", "of F32 scores over HBM in a prompt's attention; 0 = fused, as since SDK 2.19")       \
    X(convert_passes, 0, "passes", "of VectorE over weights that products do not take as stored; 0 = DMA converts them")

typedef struct trn_plan_assumptions {
#define TRNI_X(field, value, unit, why) double field;
    TRNI_PLAN_ASSUMPTIONS(TRNI_X)
#undef TRNI_X
} trn_plan_assumptions;

/* Every zero replaced by what is assumed. */
TRN_API trn_plan_assumptions trn_plan_assumptions_default(const trn_plan_assumptions *asked);

/* Assumption number index; false when there is none, so that a loop from 0 sees them all. */
TRN_API bool trn_plan_assumption_at(int index, trn_spec_field *out);

/* ---- why not ---- */

#define TRNI_PLAN_REASONS(X)                                                                                           \
    X(TRN_PLAN_LEGAL, "legal")                                                                                         \
    X(TRN_PLAN_HEADS, "heads by tp")                                                                                   \
    X(TRN_PLAN_KV_HEADS, "KV heads by tp")                                                                             \
    X(TRN_PLAN_WIDTH, "width by tp")                                                                                   \
    X(TRN_PLAN_EXPERTS, "experts by ep")                                                                               \
    X(TRN_PLAN_LAYERS, "layers by pp")                                                                                 \
    X(TRN_PLAN_SEQUENCE, "sequence by cp or sp")                                                                       \
    X(TRN_PLAN_BATCH, "batch by dp x ep")                                                                              \
    X(TRN_PLAN_MICROBATCH, "batch by microbatch")                                                                      \
    X(TRN_PLAN_DOMAIN, "beyond NeuronLink")                                                                            \
    X(TRN_PLAN_GROUP, "replica group")                                                                                 \
    X(TRN_PLAN_HBM, "HBM")

typedef enum trn_plan_reason {
#define TRNI_X(name, text) name,
    TRNI_PLAN_REASONS(TRNI_X)
#undef TRNI_X
        TRN_PLAN_REASON_COUNT
} trn_plan_reason;

/* Why a plan is not possible, in a few words. */
TRN_API const char *trn_plan_reason_name(trn_plan_reason reason);

/* ---- the answer ---- */

/* Bytes on the fullest chip. */
typedef struct trn_plan_memory {
    double weights, gradients, optimizer, activations, kv, buffers;
    double total, capacity;
    double kv_elsewhere; /* kv_pool: of the cache that this chip reads, in the memory of tp's other chips; not in kv */
} trn_plan_memory;

#define TRNI_PLAN_PARTS(X)                                                                                             \
    X(PRODUCTS, products_s, "products, TensorE") /* with weights, where TensorE sets the time */                       \
    X(READS, reads_s, "products, HBM")           /* with weights, where HBM or DMA does */                             \
    X(ATTENTION, attention_s, "attention")       /* scores, softmax, values; KV reads */                               \
    X(ELEMENTWISE, elementwise_s, "elementwise") /* norms, residuals, activation functions */                          \
    X(UPDATE, update_s, "optimizer")                                                                                   \
    X(TP, tp_s, "tp collectives")                                                                                      \
    X(CP, cp_s, "cp collectives")                                                                                      \
    X(EP, ep_s, "ep all_to_all")                                                                                       \
    X(DP, dp_s, "dp collectives")                                                                                      \
    X(PP, pp_s, "pp transfers")                                                                                        \
    X(BUBBLE, bubble_s, "pipeline bubble")                                                                             \
    X(LOOKUPS, lookups_s, "embedding lookups") /* a recommender's: rows over HBM */

typedef enum trn_plan_part {
#define TRNI_X(name, field, text) TRN_PART_##name,
    TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
        TRN_PART_COUNT
} trn_plan_part;

/* As the list above has it, such as "tp collectives". */
TRN_API const char *trn_plan_part_name(trn_plan_part part);

/* Seconds of a step on a chip of the stage that sets the pace. The parts, less what runs at the same time and plus
 * contention, are the step: sum of parts - hidden_s + contention_s = time_s. */
typedef struct trn_plan_time {
#define TRNI_X(name, field, text) double field;
    TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
    double hidden_s;              /* communication beside computation */
    double contention_s;          /* what that costs */
    double recompute_s;           /* of the parts above: forward work done again */
    double forward_s, backward_s; /* of one microbatch on one stage */
} trn_plan_time;

/* Seconds of one part of a step. */
TRN_API double trn_plan_part_s(const trn_plan_time *t, trn_plan_part part);

typedef struct trn_plan {
    int tp, cp, ep, dp, pp; /* product = chips of the topology, or times the replicas that share a chip */
    int tp_cores;           /* with lnc: logical cores of tp, and tp is their chips, at least 1; 0 without lnc */
    bool sp;                /* training and prefill, wherever tp divides the tokens of a microbatch */
    trn_plan_order order;
    trn_zero zero;           /* training: what AUTO came to */
    trn_recompute recompute; /* training: what AUTO came to */
    int64_t microbatch;      /* sequences that one replica works on at once */
    int64_t microbatches;    /* in a step */

    bool legal;
    trn_plan_reason reason;
    char why[200];          /* of an illegal plan: one sentence */
    trn_plan_memory memory; /* 0 where the plan fell before it was counted */
    trn_plan_time time;
    double bound_s;      /* no plan is faster: arrays and HBM of all chips, nothing twice */
    double time_s;       /* ideal: of a training step, a batch of prompts, or one token of every sequence */
    double ttft_s;       /* inference: one prompt in each replica; ideal */
    double tokens_per_s; /* ideal */
    double flops;        /* of the model in a step, nothing twice */
    double mfu;          /* flops over time x chips x published rate; NaN when there is none; ideal */
    double expected_s;   /* as time_s, at what is expected to be reached: what plans are ranked by */
    double expected_low_s, expected_high_s; /* four of five published times lie within such a range */
    double expected_ttft_s, expected_tokens_per_s, expected_mfu;
    trn_plan_time expected;                   /* the parts of expected_s */
    trn_plan_part bottleneck;                 /* the largest part of the expected time */
    trn_algorithm tp_algorithm, dp_algorithm; /* of the largest collective; AUTO when there is none */
    double expected_ttft_low_s, expected_ttft_high_s;
    trn_evidence_class evidence, ttft_evidence; /* what the ranges are from */
} trn_plan;

/* ---- the question ---- */

typedef struct trn_plan_args {
    const trn_model *model;
    const trn_topology *net;       /* the chips; any part of a system is a topology, too */
    const trn_system_spec *system; /* whose chips they are; NULL = net->system */
    trn_job job;
    int64_t batch;           /* sequences in a step of the whole machine */
    int64_t sequence;        /* tokens of each: decode: that the cache holds */
    int64_t prompt;          /* decode: tokens of a prompt, for the time to the first token; 0 = sequence */
    trn_precision precision; /* what an unset format is */
    trn_plan_formats formats;
    trn_plan_assumptions assumptions;
    const trn_calibration *calibration; /* of collectives; NULL = trn_calibration_default() */
    trn_recompute recompute;
    trn_zero zero;
    int ranks_per_chip;     /* 0 = 1: chips are the ranks of tp; 4 on Trainium2: logical cores are */
    int lnc;                /* cores of a logical core, 1 or 2: degree[TRN_AXIS_TP] counts logical cores; 0: chips */
    bool no_replicate_kv;   /* KV heads are not copied where tp is a multiple of them */
    bool replicate_kv;      /* of no effect: they are copied by default */
    bool uneven_stages;     /* layers need not divide by pp: the last stage has fewer */
    bool across_domains;    /* tp, cp and ep may leave the chips that NeuronLink joins */
    bool ignore_groups;     /* do not ask trn_replica_group_check */
    bool overlap_dependent; /* tp and ep run beside products, too (collective matmul) */
    int degree[TRN_AXIS_COUNT]; /* by trn_plan_axis: only plans with this degree; 0 = search */
    int64_t microbatch;         /* only this; 0 = search powers of two up to 16 */
    int max_pp;                 /* 0 = 64 */
    bool no_sp;                 /* no sequence parallelism; by default every plan has it whose tokens tp divides */
    trn_error *error;
    bool kv_pool;     /* decode: KV caches that do not fit may lie once in the memory of all of tp's chips */
    bool pad_heads;   /* where tp does not divide the heads, zeros make more of them */
    int experts_over; /* of tp's ranks: so many hold other experts each, whose width the rest of tp cuts; 0 = 1: every
                         rank has a slice of every expert. The runtime's moe_ep inside of tp, which needs no all_to_all:
                         every rank has all tokens, and the sum after the block is there anyway */
    int64_t prompts;  /* decode, prefill: of one replica that a pass to the first token takes together; 0 = 1 */
} trn_plan_args;

#if TRNI_BODIES

TRN_API const char *trn_job_name(trn_job job)
{
    static const char *const name[] = { "train", "prefill", "decode" };
    return (unsigned)job < TRN_JOB_COUNT ? name[(unsigned)job] : "unknown";
}

TRN_API trn_job trn_job_from_name(const char *name)
{
    int i = 0;
    while (i < TRN_JOB_COUNT && (!name || strcmp(name, trn_job_name((trn_job)i)) != 0)) i++;
    return (trn_job)i;
}

TRN_API const char *trn_recompute_name(trn_recompute recompute)
{
    static const char *const name[] = { "auto", "none", "selective", "full" };
    return (unsigned)recompute < TRN_RECOMPUTE_COUNT ? name[(unsigned)recompute] : "unknown";
}

TRN_API const char *trn_zero_name(trn_zero zero)
{
    static const char *const name[] = { "auto", "none", "optimizer", "gradients", "weights", "any" };
    return (unsigned)zero < TRN_ZERO_COUNT ? name[(unsigned)zero] : "unknown";
}

TRN_API const char *trn_plan_axis_name(trn_plan_axis axis)
{
    static const char *const name[] = { "tp", "cp", "ep", "dp", "pp" };
    return (unsigned)axis < TRN_AXIS_COUNT ? name[(unsigned)axis] : "unknown";
}

/* ---- what is stored how ---- */

TRN_API const char *trn_precision_name(trn_precision precision)
{
    static const char *const name[] = { "autocast", "bf16", "fp32" };
    return (unsigned)precision < TRN_PRECISION_COUNT ? name[(unsigned)precision] : "unknown";
}

TRNI_FN trn_format trni_plan_format_or(trn_format asked, trn_format usual) { return asked ? asked : usual; }

/* One kind of matrix, where nothing is said of it as the weights are. */
TRNI_FN void trni_plan_format_as_weights(const trn_plan_formats *f, trn_format *format, double *bits)
{
    if (*bits <= 0) *bits = *format ? trn_format_bits(*format) : f->weights_bits;
    *format = trni_plan_format_or(*format, f->weights);
}

TRN_API trn_plan_formats trn_plan_formats_default(const trn_plan_formats *asked, trn_precision precision)
{
    static const struct {
        trn_format work, sum;
    } row[] = {
        { TRN_BF16, TRN_F32 },
        { TRN_BF16, TRN_BF16 },
        { TRN_F32, TRN_F32 },
    };
    const unsigned which = (unsigned)precision < TRN_PRECISION_COUNT ? (unsigned)precision : 0;
    trn_plan_formats f;
    memset(&f, 0, sizeof f);
    if (asked) f = *asked;
    f.weights = trni_plan_format_or(f.weights, row[which].work);
    f.activations = trni_plan_format_or(f.activations, row[which].work);
    f.gradients = trni_plan_format_or(f.gradients, row[which].sum);
    f.optimizer = trni_plan_format_or(f.optimizer, row[which].sum);
    f.kv = trni_plan_format_or(f.kv, f.activations);
    f.compute = trni_plan_format_or(f.compute, f.activations);
    if (f.weights_bits <= 0) f.weights_bits = trn_format_bits(f.weights);
    if (f.kv_bits <= 0) f.kv_bits = trn_format_bits(f.kv);
    trni_plan_format_as_weights(&f, &f.attention, &f.attention_bits);
    trni_plan_format_as_weights(&f, &f.experts, &f.experts_bits);
    trni_plan_format_as_weights(&f, &f.head, &f.head_bits);
    return f;
}

/* ---- what nobody publishes ---- */

TRNI_FN double trni_plan_assumed(double asked, double usual) { return asked < 0 ? 0 : asked > 0 ? asked : usual; }

TRN_API trn_plan_assumptions trn_plan_assumptions_default(const trn_plan_assumptions *asked)
{
    TRNI_FLOATS;
    trn_plan_assumptions a;
    memset(&a, 0, sizeof a);
    if (asked) a = *asked;
#define TRNI_X(field, value, unit, why) a.field = trni_plan_assumed(a.field, value);
    TRNI_PLAN_ASSUMPTIONS(TRNI_X)
#undef TRNI_X
    return a;
}

TRN_API bool trn_plan_assumption_at(int index, trn_spec_field *out)
{
    static const struct {
        const char *field;
        double value;
        const char *unit, *why;
    } row[] = {
#define TRNI_X(field, value, unit, why) { #field, value, unit, why },
        TRNI_PLAN_ASSUMPTIONS(TRNI_X)
#undef TRNI_X
    };
    if (index < 0 || index >= (int)(sizeof row / sizeof row[0])) return false;
    out->level = "plan";
    out->owner = "planner";
    out->field = row[index].field;
    out->unit = row[index].unit;
    out->value = row[index].value;
    out->known = TRN_ASSUMED;
    out->where = row[index].why;
    return true;
}

/* ---- why not ---- */

TRN_API const char *trn_plan_reason_name(trn_plan_reason reason)
{
    static const char *const text[] = {
#define TRNI_X(name, phrase) phrase,
        TRNI_PLAN_REASONS(TRNI_X)
#undef TRNI_X
    };
    return (unsigned)reason < TRN_PLAN_REASON_COUNT ? text[(unsigned)reason] : "unknown";
}

/* ---- the answer ---- */

TRN_API const char *trn_plan_part_name(trn_plan_part part)
{
    static const char *const name[] = {
#define TRNI_X(id, field, text) text,
        TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
    };
    return (unsigned)part < TRN_PART_COUNT ? name[(unsigned)part] : "unknown";
}

TRN_API double trn_plan_part_s(const trn_plan_time *t, trn_plan_part part)
{
    TRNI_FLOATS;
    const double value[] = {
#define TRNI_X(name, field, text) t->field,
        TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
    };
    return value[(unsigned)part];
}

#endif /* TRNI_BODIES */

#endif /* TRNI_PLAN_PLAN_ARGS_H */

/* trn_plan.h - how to spread a transformer over the chips of a machine: every way, which are legal, which is fastest.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         const trn_model model = { .name = "llama-3-8b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
 *                                   .intermediate = 14336, .vocab = 128256 };
 *         const trn_plan_args args = { .model = &model, .net = &net, .batch = 64, .sequence = 8192 };
 *         static trn_plan plan[200];
 *         trn_plan_list list;
 *         if (trn_plan_search(&args, plan, 200, &list) != TRN_OK) return 1;
 *         for (int64_t i = 0; i < list.kept; i++)
 *             printf("tp %2d cp %2d dp %2d pp %2d %7.0f ms %s\n", plan[i].tp, plan[i].cp, plan[i].dp, plan[i].pp,
 *                    1e3 * plan[i].expected_s, plan[i].legal ? trn_plan_part_name(plan[i].bottleneck) : plan[i].why);
 *         return list.legal > 0 && plan[0].legal ? 0 : 1;
 *     }
 *
 * DOES: enumerates all degrees of tensor, context, expert, data and pipeline parallelism whose product is the number
 *     of chips; refuses those that cannot be, with one sentence each; finds for each of the others the microbatch and
 *     recomputation that fit and are expected to be fastest; ranks them by the expected time of a step, beside which
 *     stand the ideal time and a bound. The rest is what the vendor's stack does, unless the arguments say otherwise:
 *     KV heads are copied where tp is a multiple of them, sequence parallelism wherever it can be, ZeRO-1.
 * DOES NOT: measure. Every time is a result of the model in plan/plan_time.h; what that assumes is a field of the
 *     arguments. It does not decode speculatively: a pass makes one token of each sequence. It does not search unequal
 *     stages, groups of different kinds, or orders of axes other than two.
 *
 * CONTENTS
 *   plan/plan_args.h: what the planner is asked, what it assumes, and what a plan is.
 *     trn_job, trn_job_name, trn_job_from_name   training, prefill, decode
 *     trn_recompute, trn_recompute_name          what the backward pass computes again
 *     trn_zero, trn_zero_name                    what data parallelism shares out
 *     trn_plan_axis, trn_plan_axis_name          the five kinds of parallelism
 *     trn_plan_order                             which axes lie inside which
 *     trn_precision, trn_precision_name          what mixed precision is meant
 *     trn_plan_formats, trn_plan_formats_default how each class of numbers is stored
 *     trn_plan_assumptions, trn_plan_assumptions_default, trn_plan_assumption_at
 *     trn_plan_args                              the question
 *     trn_plan_reason, trn_plan_reason_name      why a plan is illegal
 *     trn_plan_part, trn_plan_part_name, trn_plan_part_s   where the time goes
 *     trn_plan_memory, trn_plan_time, trn_plan   one answer
 *   plan/plan_model.h: a transformer as numbers: its parameters, its flops, what it remembers of each token.
 *     trn_model                      the configuration; zero is the usual value
 *     trn_model_check                is it one? the sentence names the field
 *     trn_model_settle               every default replaced
 *     trn_model_size, trn_model_size_of   parameters by part, those at work on one token, elements of KV cache
 *     trn_model_forward_flops        of tokens that each look back at so many positions
 *     trn_model_context              positions that a token of a causal sequence sees, on average
 *   plan/plan_search.h: all plans of a job, the best first; one plan, checked and timed; its collectives.
 *     trn_plan_search, trn_plan_list   all plans, ranked; how many there were, and why not
 *     trn_plan_evaluate                one plan
 *     trn_plan_collective              what a collective over some axes of a plan takes, with all other groups at work
 *     trn_plan_level_text              which axes of a plan lie on a level of the topology
 *   plan/plan_trace.h: a plan as timelines: the pipeline of one step, and one layer of one microbatch.
 *     trn_plan_trace_step    one step: microbatches in the stages, then gradients and the optimizer
 *     trn_plan_trace_layer   one layer of one microbatch on one chip, forward and, in training, backward
 *   plan/plan_operations.h: a plan as operations: what a chip computes and what it tells others, one after the other.
 *     trn_plan_phase                a layer forward, backward, the model's ends, what dp does, the optimizer
 *     trn_plan_operation            one of it: its size and its times
 *     trn_plan_operations           of a phase
 *     trn_plan_groups               which chips are one group
 *
 * KNOWN FROM: plan/plan_args.h, plan/plan_place.h, plan/plan_memory.h, plan/plan_time.h, each with its sources.
 *
 * Why a plan is refused, in this order: heads, KV heads, widths by tp (the vocabulary is padded instead); experts by
 * ep; layers by pp; the sequence by cp; the batch by dp x ep; tp, cp or ep beyond the chips that NeuronLink joins; a tp
 * group that the vendor's runtime does not take (asked with the ranks per chip that the system has); no microbatch
 * divides; HBM, by how much. The first that holds is told. Recommenders have ep and dp alone: tables are spread over
 * ep, MLPs repeated (plan/plan_tables.h).
 */
#ifndef TRN_PLAN_H
#define TRN_PLAN_H

#include "base/words_begin.h"

#include "plan/plan_args.h"
#include "plan/plan_model.h"
#include "plan/plan_search.h"
#include "plan/plan_trace.h"
#include "plan/plan_operations.h"

#include "base/words_end.h"

#endif /* TRN_PLAN_H */

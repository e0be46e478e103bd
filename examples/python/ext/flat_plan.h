/* flat_plan.h - a model and a job as texts, and the planner's answers as rows.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * DOES: the fields of trn_model, trn_plan_args, trn_plan_formats and trn_plan_assumptions by name; a row for each plan,
 *     in the words of shardplan's --csv.
 * DOES NOT: read a config.json (flat_config.h).
 */
#ifndef TRNMATH_FLAT_PLAN_H
#define TRNMATH_FLAT_PLAN_H

#include "flat_fields.h"

enum { PLANS_MOST = 20000 }; /* no system has more */

/* ---- the model ---- */

#define LONG(name) FIELD(trn_model, name, FIELD_LONG)
#define FLAG(name) FIELD(trn_model, name, FIELD_FLAG)
#define LISTED(name, n) FIELD_MANY(trn_model, name, n)
static const field model_field[] = { LONG(layers),
                                     LONG(hidden),
                                     LONG(heads),
                                     LONG(kv_heads),
                                     LONG(head_dim),
                                     LONG(intermediate),
                                     LONG(vocab),
                                     LONG(experts),
                                     LONG(experts_per_token),
                                     LONG(moe_intermediate),
                                     LONG(shared_intermediate),
                                     LONG(dense_layers),
                                     LONG(kv_rank),
                                     LONG(q_rank),
                                     LONG(rope_dim),
                                     LONG(v_dim),
                                     LONG(window),
                                     LONG(window_layers),
                                     LONG(positions),
                                     LONG(norms),
                                     LONG(linear_layers),
                                     LONG(linear_heads),
                                     LONG(linear_value_dim),
                                     LONG(linear_key_heads),
                                     LONG(linear_key_dim),
                                     LONG(linear_kernel),
                                     FLAG(state_space),
                                     FLAG(tied_embeddings),
                                     FLAG(plain_mlp),
                                     FLAG(qkv_bias),
                                     FLAG(o_bias),
                                     FLAG(mlp_bias),
                                     FLAG(router_bias),
                                     FLAG(norm_bias),
                                     FLAG(qk_norm),
                                     FLAG(gated_attention),
                                     FLAG(sinks),
                                     FLAG(shared_gate),
                                     FLAG(head_bias),
                                     FLAG(embedding_norm),
                                     FLAG(wide_qk_norm),
                                     LONG(index_heads),
                                     LONG(index_dim),
                                     LONG(index_most),
                                     LONG(cross),
                                     LONG(condition),
                                     FLAG(bidirectional),
                                     FLAG(pooler),
                                     FLAG(masked_head),
                                     LONG(classes),
                                     LONG(token_types),
                                     LONG(longest),
                                     LONG(patch_inputs),
                                     FLAG(no_class_token),
                                     FLAG(no_patch_bias),
                                     LONG(tables),
                                     LISTED(table_rows, TRN_MODEL_TABLES),
                                     LISTED(table_lookups, TRN_MODEL_TABLES),
                                     LONG(dense_inputs),
                                     LISTED(dense_widths, TRN_MODEL_WIDTHS),
                                     LISTED(over_widths, TRN_MODEL_WIDTHS),
                                     LONG(cross_layers),
                                     LONG(cross_rank) };
#undef LONG
#undef FLAG
#undef LISTED
enum { MODEL_FIELDS = sizeof model_field / sizeof model_field[0] };

/* ---- the job ---- */

#define NAMED(type)                                                                                                    \
    static const char *type##_at(int i) { return trn_##type##_name((trn_##type)i); }
NAMED(job)
NAMED(recompute)
NAMED(zero)
NAMED(precision)
#undef NAMED

#define LONG(name) FIELD(trn_plan_args, name, FIELD_LONG)
#define INT(name) FIELD(trn_plan_args, name, FIELD_INT)
#define FLAG(name) FIELD(trn_plan_args, name, FIELD_FLAG)
#define CHOICE(name, count)                                                                                            \
    {                                                                                                                  \
#name, FIELD_CHOICE, offsetof(trn_plan_args, name), count, name##_at                                           \
    }
#define DEGREE(name, axis)                                                                                             \
    {                                                                                                                  \
#name, FIELD_INT, offsetof(trn_plan_args, degree) + axis * sizeof(int), 0, NULL                                \
    }
#define FORMAT(name)                                                                                                   \
    {                                                                                                                  \
#name, FIELD_FORMAT, offsetof(trn_plan_args, formats) + offsetof(trn_plan_formats, name), 0, NULL              \
    }
#define BITS(name)                                                                                                     \
    {                                                                                                                  \
#name, FIELD_REAL, offsetof(trn_plan_args, formats) + offsetof(trn_plan_formats, name), 0, NULL                \
    }
static const field job_field[] = { CHOICE(job, TRN_JOB_COUNT),
                                   LONG(batch),
                                   LONG(sequence),
                                   LONG(prompt),
                                   LONG(prompts),
                                   DEGREE(tp, TRN_AXIS_TP),
                                   DEGREE(cp, TRN_AXIS_CP),
                                   DEGREE(ep, TRN_AXIS_EP),
                                   DEGREE(dp, TRN_AXIS_DP),
                                   DEGREE(pp, TRN_AXIS_PP),
                                   LONG(microbatch),
                                   CHOICE(precision, TRN_PRECISION_COUNT),
                                   CHOICE(recompute, TRN_RECOMPUTE_COUNT),
                                   CHOICE(zero, TRN_ZERO_COUNT),
                                   INT(ranks_per_chip),
                                   INT(lnc),
                                   INT(max_pp),
                                   INT(experts_over),
                                   FLAG(no_replicate_kv),
                                   FLAG(uneven_stages),
                                   FLAG(across_domains),
                                   FLAG(ignore_groups),
                                   FLAG(overlap_dependent),
                                   FLAG(no_sp),
                                   FLAG(kv_pool),
                                   FLAG(pad_heads),
                                   FORMAT(weights),
                                   FORMAT(activations),
                                   FORMAT(gradients),
                                   FORMAT(optimizer),
                                   FORMAT(kv),
                                   FORMAT(wire),
                                   FORMAT(compute),
                                   FORMAT(attention),
                                   FORMAT(experts),
                                   FORMAT(head),
                                   BITS(weights_bits),
                                   BITS(attention_bits),
                                   BITS(experts_bits),
                                   BITS(head_bits),
                                   BITS(kv_bits) };
#undef LONG
#undef INT
#undef FLAG
#undef CHOICE
#undef DEGREE
#undef FORMAT
#undef BITS
enum { JOB_FIELDS = sizeof job_field / sizeof job_field[0] };

/* All that is assumed is doubles, in the order in which they are told. */
enum { ASSUMPTIONS = sizeof(trn_plan_assumptions) / sizeof(double) };

static trn_status read_job(const char *text, trn_plan_args *args, trn_error *error)
{
    field assumption[ASSUMPTIONS];
    trn_spec_field f;
    int count = 0;
    for (; count < ASSUMPTIONS && trn_plan_assumption_at(count, &f); count++)
        assumption[count] = (field){ f.field, FIELD_REAL, (size_t)count * sizeof(double), 0, NULL };
    const field_set set[] = { { job_field, JOB_FIELDS, args }, { assumption, count, &args->assumptions } };
    return read_fields(text, set, 2, "the job", error);
}

/* ---- what may be asked ---- */

static trn_status write_model_fields(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "kind:text");
    write_fields(s, model_field, MODEL_FIELDS);
    return TRN_OK;
}

static trn_status write_job_fields(sheet *s, const char *of, trn_error *error)
{
    (void)of, (void)error;
    COLUMNS("name:text", "kind:text");
    write_fields(s, job_field, JOB_FIELDS);
    return TRN_OK;
}

static trn_status write_assumptions(sheet *s, const char *of, trn_error *error)
{
    trn_spec_field f;
    (void)of, (void)error;
    COLUMNS("name:text", "value:number", "unit:text", "why:text");
    for (int i = 0; trn_plan_assumption_at(i, &f); i++) {
        cell(s, f.field);
        cell_number(s, f.value);
        cell(s, f.unit);
        cell(s, f.where);
        end_row(s);
    }
    return TRN_OK;
}

/* ---- rows: a name with a stroke is a part of what stands before it ---- */

#define REAL(column, field)                                                                                            \
    {                                                                                                                  \
        column ":number", offsetof(trn_plan, field)                                                                    \
    }
static const struct {
    const char *column;
    size_t offset;
} plan_real[] = { REAL("bound_s", bound_s),
                  REAL("time_s", time_s),
                  REAL("expected_s", expected_s),
                  REAL("expected_low_s", expected_low_s),
                  REAL("expected_high_s", expected_high_s),
                  REAL("tokens_per_s", tokens_per_s),
                  REAL("expected_tokens_per_s", expected_tokens_per_s),
                  REAL("flops", flops),
                  REAL("mfu", mfu),
                  REAL("expected_mfu", expected_mfu),
                  REAL("expected/hidden", expected.hidden_s),
                  REAL("expected/contention", expected.contention_s),
                  REAL("time/hidden", time.hidden_s),
                  REAL("time/contention", time.contention_s) },
  first_real[] = { REAL("ttft_s", ttft_s), REAL("expected_ttft_s", expected_ttft_s),
                   REAL("expected_ttft_low_s", expected_ttft_low_s),
                   REAL("expected_ttft_high_s", expected_ttft_high_s) },
  memory_real[] = { REAL("memory/weights", memory.weights),
                    REAL("memory/gradients", memory.gradients),
                    REAL("memory/optimizer", memory.optimizer),
                    REAL("memory/activations", memory.activations),
                    REAL("memory/kv", memory.kv),
                    REAL("memory/buffers", memory.buffers),
                    REAL("memory/kv_elsewhere", memory.kv_elsewhere),
                    REAL("memory_bytes", memory.total),
                    REAL("memory_capacity_bytes", memory.capacity) };
#undef REAL

static void plan_head(sheet *s)
{
    static const char *const column[] = {
        "tp:integer",       "cp:integer",        "ep:integer",        "dp:integer",         "pp:integer",
        "tp_cores:integer", "outermost:text",    "sp:flag",           "microbatch:integer", "microbatches:integer",
        "zero:text",        "recompute:text",    "legal:flag",        "reason:text",        "why:text",
        "bottleneck:text",  "tp_algorithm:text", "dp_algorithm:text", "evidence:text"
    };
    char name[80];
    for (size_t i = 0; i < COUNT(column); i++) cell(s, column[i]);
    for (size_t i = 0; i < COUNT(plan_real); i++) cell(s, plan_real[i].column);
    for (size_t i = 0; i < COUNT(first_real); i++) cell(s, first_real[i].column);
    for (size_t i = 0; i < COUNT(memory_real); i++) cell(s, memory_real[i].column);
    for (int i = 0; i < 2 * TRN_PART_COUNT; i++) {
        const char *part = trn_plan_part_name((trn_plan_part)(i % TRN_PART_COUNT));
        snprintf(name, sizeof name, "%s/%s:number", i < TRN_PART_COUNT ? "time" : "expected", part);
        cell(s, name);
    }
    end_row(s);
}

/* A number that a plan has only when `there`. */
static void cell_real(sheet *s, const trn_plan *p, size_t offset, bool there)
{
    double value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    cell_number(s, there ? value : (double)NAN);
}

static const char *algorithm_text(const trn_plan *p, trn_algorithm a)
{
    return p->legal && a != TRN_ALGORITHM_AUTO ? trn_algorithm_name(a) : "";
}

static void plan_words(sheet *s, const trn_plan *p, bool train)
{
    const int degree[] = { p->tp, p->cp, p->ep, p->dp, p->pp, p->tp_cores };
    for (size_t i = 0; i < COUNT(degree); i++) cell_integer(s, degree[i]);
    cell(s, p->order == TRN_ORDER_DP_PP ? "pp" : "dp");
    cell_flag(s, p->sp);
    cell_integer(s, p->microbatch);
    cell_integer(s, p->microbatches);
    cell(s, train && p->legal ? trn_zero_name(p->zero) : "");
    cell(s, train && p->legal ? trn_recompute_name(p->recompute) : "");
    cell_flag(s, p->legal);
    cell(s, p->legal ? "" : trn_plan_reason_name(p->reason));
    cell(s, p->why);
    cell(s, p->legal ? trn_plan_part_name(p->bottleneck) : "");
    cell(s, algorithm_text(p, p->tp_algorithm));
    cell(s, algorithm_text(p, p->dp_algorithm));
    cell(s, p->legal ? trn_evidence_of(p->evidence).name : "");
}

static void plan_row(sheet *s, const trn_plan *p, bool train)
{
    plan_words(s, p, train);
    for (size_t i = 0; i < COUNT(plan_real); i++) cell_real(s, p, plan_real[i].offset, p->legal);
    for (size_t i = 0; i < COUNT(first_real); i++) cell_real(s, p, first_real[i].offset, p->legal && !train);
    for (size_t i = 0; i < COUNT(memory_real); i++) cell_real(s, p, memory_real[i].offset, p->memory.capacity > 0);
    for (int i = 0; i < 2 * TRN_PART_COUNT; i++) {
        const trn_plan_time *t = i < TRN_PART_COUNT ? &p->time : &p->expected;
        cell_number(s, p->legal ? trn_plan_part_s(t, (trn_plan_part)(i % TRN_PART_COUNT)) : (double)NAN);
    }
    end_row(s);
}

/* The best of all plans, the illegal ones last. */
static trn_status write_plans(sheet *s, trn_plan_args *args, int64_t most, trn_error *error)
{
    trn_plan_list list;
    trn_plan *plan = (trn_plan *)malloc(sizeof *plan * (size_t)most);
    if (!plan) return failed(error, TRN_ENOSPC, "no memory for %lld plans", (long long)most);
    const trn_status status = trn_plan_search(args, plan, most, &list);
    if (status == TRN_OK) plan_head(s);
    for (int64_t i = 0; status == TRN_OK && i < list.kept; i++) plan_row(s, &plan[i], args->job == TRN_JOB_TRAIN);
    free(plan);
    return status;
}

#endif /* TRNMATH_FLAT_PLAN_H */

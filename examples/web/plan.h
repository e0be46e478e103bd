/* plan.h - the tool "plan": the ways to spread a model over a system, the fastest first.
 * SPDX-License-Identifier: MIT
 *
 *     plan?model=llama-3-8b&system=trn2.48xlarge&job=decode&batch=64&sequence=8192&shown=8
 *
 * layers, hidden, heads, kv_heads, intermediate and vocab, where they are given, replace those of the model.
 */
#ifndef WEB_PLAN_H
#define WEB_PLAN_H

#include <trnmath/trn_plan.h>

#include "choices.h"

enum { PLAN_SHOWN = 20 };

typedef struct plan_size {
    const char *name;
    size_t offset;
} plan_size;

#define PLAN_SIZE(field)                                                                                               \
    {                                                                                                                  \
#field, offsetof(trn_model, field)                                                                             \
    }
static const plan_size plan_sizes[] = { PLAN_SIZE(layers),   PLAN_SIZE(hidden),       PLAN_SIZE(heads),
                                        PLAN_SIZE(kv_heads), PLAN_SIZE(intermediate), PLAN_SIZE(vocab) };
enum { PLAN_SIZES = sizeof plan_sizes / sizeof plan_sizes[0] };

typedef struct plan_ask {
    trn_model model;
    trn_topology net;
    trn_plan_args args;
    int64_t shown;
} plan_ask;

static int64_t *size_in(trn_model *m, int i) { return (int64_t *)(void *)((char *)m + plan_sizes[i].offset); }

static bool read_model(const ask *q, trn_model *m, trn_error *why)
{
    int model;
    if (!ask_choice(q, "model", "llama-3-8b", &models, &model, why)) return false;
    memcpy(m, &web_model[model].is.model, sizeof *m);
    for (int i = 0; i < PLAN_SIZES; i++) {
        int64_t *size = size_in(m, i);
        if (!ask_whole(q, plan_sizes[i].name, *size, 0, INT64_C(1) << 40, size, why)) return false;
    }
    return trn_model_check(m, why) == TRN_OK;
}

static bool read_plan(const ask *q, plan_ask *p, trn_error *why)
{
    int system, job;
    if (!ask_knows(q, "model system job batch sequence shown layers hidden heads kv_heads intermediate vocab", why) ||
        !read_model(q, &p->model, why) || !ask_choice(q, "system", "trn2.48xlarge", &systems, &system, why) ||
        !ask_choice(q, "job", "decode", &jobs, &job, why) ||
        !ask_whole(q, "batch", 64, 1, 1 << 24, &p->args.batch, why) ||
        !ask_whole(q, "sequence", 8192, 1, 1 << 24, &p->args.sequence, why) ||
        !ask_whole(q, "shown", 8, 1, PLAN_SHOWN, &p->shown, why))
        return false;
    p->net = trn_topology_of((trn_system)system);
    p->args.model = &p->model;
    p->args.net = &p->net;
    p->args.job = (trn_job)job;
    p->args.error = why;
    return true;
}

/* ---- the answer ---- */

static void put_parts(answer *a, const trn_plan *p)
{
    put_open(a, "parts", '[');
    for (int i = 0; i < TRN_PART_COUNT; i++) {
        const double s = trn_plan_part_s(&p->expected, (trn_plan_part)i);
        if (!(s > 0)) continue;
        put_open(a, NULL, '{');
        put_text(a, "part", trn_plan_part_name((trn_plan_part)i));
        put_number(a, "s", s);
        put_close(a, '}');
    }
    put_close(a, ']');
}

static void put_plan(answer *a, const trn_plan *p)
{
    const struct {
        const char *name;
        double value;
    } number[] = {
        { "bound_s", p->bound_s },        { "ideal_s", p->time_s },
        { "expected_s", p->expected_s },  { "low_s", p->expected_low_s },
        { "high_s", p->expected_high_s }, { "tokens_per_s", p->expected_tokens_per_s },
        { "ttft_s", p->expected_ttft_s }, { "memory_bytes", p->memory.total },
        { "mfu", p->expected_mfu },
    };
    put_open(a, NULL, '{');
    for (int i = 0; i < TRN_AXIS_COUNT; i++) {
        const int degree[TRN_AXIS_COUNT] = { p->tp, p->cp, p->ep, p->dp, p->pp };
        put_whole(a, trn_plan_axis_name((trn_plan_axis)i), degree[i]);
    }
    if (p->dp > 1 && p->pp > 1) put_text(a, "order", p->order == TRN_ORDER_DP_PP ? "dp inside pp" : "pp inside dp");
    put_flag(a, "legal", p->legal);
    if (p->legal) {
        for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) put_number(a, number[i].name, number[i].value);
        put_whole(a, "microbatch", p->microbatch);
        put_text(a, "bottleneck", trn_plan_part_name(p->bottleneck));
        put_parts(a, p);
    } else
        put_text(a, "why", p->why);
    put_close(a, '}');
}

static void put_reasons(answer *a, const trn_plan_list *list)
{
    put_open(a, "reasons", '[');
    for (int i = TRN_PLAN_LEGAL + 1; i < TRN_PLAN_REASON_COUNT; i++) {
        if (!list->reason[i]) continue;
        put_open(a, NULL, '{');
        put_text(a, "reason", trn_plan_reason_name((trn_plan_reason)i));
        put_whole(a, "count", list->reason[i]);
        put_close(a, '}');
    }
    put_close(a, ']');
}

static bool put_plans(answer *a, const plan_ask *p, trn_plan *plan, trn_error *why)
{
    trn_plan_list list;
    trn_model_size size;
    if (trn_model_size_of(&p->model, &size, why) != TRN_OK) return false;
    if (trn_plan_search(&p->args, plan, p->shown, &list) != TRN_OK) return false;
    put_text(a, "model", p->model.name);
    put_shown(a, "parameters", size.total);
    for (int i = 0; i < PLAN_SIZES; i++)
        put_whole(a, plan_sizes[i].name, *size_in((trn_model *)(uintptr_t)&p->model, i));
    put_text(a, "system", trn_system_name(p->net.system));
    put_whole(a, "chips", p->net.chips);
    put_text(a, "job", trn_job_name(p->args.job));
    put_number(a, "hbm_bytes", trn_system_spec_of(p->net.system)->server->chip->hbm_bytes);
    put_whole(a, "found", list.found);
    put_whole(a, "legal", list.legal);
    put_reasons(a, &list);
    put_open(a, "plans", '[');
    for (int64_t i = 0; i < list.kept; i++) put_plan(a, &plan[i]);
    put_close(a, ']');
    return true;
}

static bool plans(const ask *q, answer *a, trn_error *why)
{
    plan_ask *p = (plan_ask *)calloc(1, sizeof *p);
    trn_plan *plan = (trn_plan *)calloc(PLAN_SHOWN, sizeof *plan);
    bool ok = p && plan ? read_plan(q, p, why) : refuse(why, "there is not enough memory for plans");
    ok = ok && put_plans(a, p, plan, why);
    free(plan);
    free(p);
    return ok;
}

#endif /* WEB_PLAN_H */

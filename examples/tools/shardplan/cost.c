/* cost.c - what a step takes in money and energy: the expected time, at a price an hour and at watts a chip.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>

#include "app/page.h"

const app_column sp_cost_column[SP_COST_COLUMNS] = {
    { "step_usd", APP_REAL, "USD", "--price-hour: of a step, prompts, or a token of every sequence; expected" },
    { "million_tokens_usd", APP_REAL, "USD", "--price-hour: of a million tokens, expected" },
    { "step_kwh", APP_REAL, "kWh", "--watts: of a step, all chips, expected" },
    { "token_j", APP_REAL, "J", "--watts: of a token, all chips, expected" },
};

sp_cost sp_cost_of(const sp_job *job, const trn_plan *p, int chips)
{
    const sp_price *price = &job->options.price;
    sp_cost c = { (double)NAN, (double)NAN, (double)NAN, (double)NAN };
    if (!p->legal) return c;
    if (price->priced) {
        const double second = price->hour_usd * chips / job->net.chips / 3600;
        c.step_usd = second * p->expected_s;
        c.mtoken_usd = 1e6 * second / p->expected_tokens_per_s;
    }
    if (price->powered) {
        const double watts = price->watts * chips;
        c.step_kwh = watts * p->expected_s / 3.6e6;
        c.token_j = watts / p->expected_tokens_per_s;
    }
    return c;
}

void sp_cost_add(app_table *t, const sp_cost *c)
{
    const double value[SP_COST_COLUMNS] = { c->step_usd, c->mtoken_usd, c->step_kwh, c->token_j };
    for (int i = 0; i < SP_COST_COLUMNS; i++) app_real(t, value[i]);
}

/* Of which one pays for at once. */
static const char *work_of(const sp_job *job)
{
    return job->args.job == TRN_JOB_DECODE ? "token of every sequence" : sp_unit_of_work(job);
}

void sp_cost_print(FILE *out, const sp_job *job)
{
    const sp_price *price = &job->options.price;
    const sp_cost c = sp_cost_of(job, &job->plan[0], job->net.chips);
    const char *work = work_of(job);
    if (price->priced)
        fprintf(out, "  at %.6g USD an hour for all %s chips: %.4g USD a %s, %.4g USD a million tokens\n",
                price->hour_usd, sp_count(job->net.chips).text, c.step_usd, work, c.mtoken_usd);
    if (price->powered)
        fprintf(out, "  at %.6g W a chip: %.4g kWh a %s, %.4g J a token\n", price->watts, c.step_kwh, work, c.token_j);
}

void sp_cost_facts(FILE *out, const sp_job *job)
{
    const sp_price *price = &job->options.price;
    const sp_cost c = sp_cost_of(job, &job->plan[0], job->net.chips);
    char number[64], text[160];
    if (price->priced) {
        snprintf(number, sizeof number, "%.4g USD", c.mtoken_usd);
        snprintf(text, sizeof text, "a million tokens expected, at %.6g USD an hour for all chips; %.4g USD a %s",
                 price->hour_usd, c.step_usd, work_of(job));
        app_fact(out, number, text);
    }
    if (price->powered) {
        snprintf(number, sizeof number, "%.4g J", c.token_j);
        snprintf(text, sizeof text, "a token expected, at %.6g W a chip; %.4g kWh a %s", price->watts, c.step_kwh,
                 work_of(job));
        app_fact(out, number, text);
    }
}

/* choices.h - the names that the playground offers, each list from the library, which has it once.
 * SPDX-License-Identifier: MIT
 */
#ifndef WEB_CHOICES_H
#define WEB_CHOICES_H

#include <trnmath/trn_collective.h>
#include <trnmath/trn_numerics.h>
#include <trnmath/trn_plan.h>

#include "answer.h"
#include "ask.h"
#include "models.h" /* made by models.c */

static const char *name_of_format(int i) { return trn_format_name((trn_format)(i + 1)); }
static const char *name_of_rounding(int i) { return trn_round_text((trn_rounding)i); }
static const char *name_of_overflow(int i) { return i ? "saturate" : "default"; }
static const char *name_of_system(int i) { return trn_system_name((trn_system)i); }
static const char *name_of_collective(int i) { return trn_collective_name((trn_collective)i); }
static const char *name_of_algorithm(int i) { return trn_algorithm_name((trn_algorithm)i); }
static const char *name_of_job(int i) { return trn_job_name((trn_job)i); }
static const char *name_of_model(int i) { return web_model[i].name; }

static const char *name_of_generation(int i)
{
    return i ? trn_generation_name((trn_generation)(TRN_TRAINIUM1 + i - 1)) : "default";
}

static const char *name_of_preset(int i) { return trn_numerics_preset(i, NULL, NULL); }

static int presets(void)
{
    int n = 0;
    while (trn_numerics_preset(n, NULL, NULL)) n++;
    return n;
}

static const choice formats = { "formats", name_of_format, TRN_FORMAT_COUNT - 1 };
static const choice roundings = { "roundings", name_of_rounding, TRN_ROUNDING_COUNT };
static const choice overflows = { "overflows", name_of_overflow, 2 };
static const choice systems = { "systems", name_of_system, TRN_SYSTEM_COUNT };
static const choice collectives = { "collectives", name_of_collective, TRN_COLLECTIVE_COUNT };
static const choice algorithms = { "algorithms", name_of_algorithm, TRN_ALGORITHM_COUNT };
static const choice jobs = { "jobs", name_of_job, TRN_JOB_COUNT };
static const choice models = { "models", name_of_model, WEB_MODELS };
static const choice generations = { "generations", name_of_generation, 1 + TRN_TRAINIUM3 - TRN_TRAINIUM1 + 1 };

/* ---- the tool "lists" ---- */

static void put_choice(answer *a, const choice *of)
{
    put_open(a, of->list, '[');
    for (int i = 0; i < of->count; i++) put_text(a, NULL, of->name(i));
    put_close(a, ']');
}

static bool lists(const ask *q, answer *a, trn_error *why)
{
    const choice numerics = { "numerics", name_of_preset, presets() };
    const choice *const all[] = { &formats,    &roundings, &overflows, &systems,     &collectives,
                                  &algorithms, &jobs,      &models,    &generations, &numerics };
    if (!ask_knows(q, "", why)) return false;
    put_text(a, "version", trn_version());
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) put_choice(a, all[i]);
    return true;
}

#endif /* WEB_CHOICES_H */

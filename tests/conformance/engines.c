/* engines.c - the Vector, Scalar, GpSimd and DMA engines: what pages say, and errors measured on devices.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/activation.h"
#include "published/engines.h"

static void check_page(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const engine_vector *e = v->about;
    engine_tally t = { 0, 0 };
    (void)o;
    e->check(&t);
    a->got = t.wrong;
    a->cases = t.checked;
    if (t.wrong) snprintf(a->note, sizeof a->note, "%d of %d values are not the page's", t.wrong, t.checked);
}

/* ---- the Scalar engine; .at is the step of a sweep ---- */

static void exp_error(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = published_exp_error((uint32_t)v->at);
    a->cases = (0x42800000 / v->at) + 1;
}

static void reciprocal_error(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = published_reciprocal_error((uint32_t)v->at);
    a->cases = 0x01000000 / v->at + 1;
}

static void exp_bias_error(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = published_exp_bias_error(v->at);
    a->cases = v->at;
}

/* One function at one point; .of the function. */
static void at_point(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    float x = *(const float *)v->about, y;
    (void)o;
    engine_activate((trn_act)v->of, &y, &x, 1);
    a->got = (double)y;
}

/* exp of nothing positive is never above 1. */
static void exp_above_one(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { BLOCK = 1 << 12 };
    static float x[BLOCK], y[BLOCK];
    const uint32_t step = (uint32_t)v->at;
    (void)o;
    for (uint64_t first = 0x80000000u; first <= 0xff800000u; first += (uint64_t)step * BLOCK) {
        int n = 0;
        for (uint64_t u = first; n < BLOCK && u <= 0xff800000u; u += step) x[n++] = cases_float_of((uint32_t)u);
        engine_activate(TRN_ACT_EXP, y, x, n);
        for (int i = 0; i < n; i++) cf_count(a, y[i] <= 1.0f, "exp(%g) is %.9g", (double)x[i], (double)y[i]);
    }
}

static const float minus_infinity = -INFINITY, zero = 0.0f, nine = 9.0f;
static const char trn2[] = "a third party on Trainium2, every binary32 number",
                  nearer[] =
                      "the table model's last ulp: cubics about bucket centres with binary32 coefficients err 0.15 % "
                      "more than the device at their worst argument",
                  at_edge[] = "NKI, range_select: what masked softmax relies on";

static const cf_vector vectors[] = {
    { .id = "scalar.exp.error",
      .what = "exp on [-64, 0]: largest relative error, one number of 257 and the worst bucket",
      CF_ABOUT(1.1348e-5, 0.5e-9),
      .kind = CF_MEASURED,
      .source = trn2,
      .test = exp_error,
      .at = 257 },
    { .id = "scalar.exp.error.long",
      .what = "the same, every number",
      CF_ABOUT(1.1348e-5, 0.5e-9),
      .kind = CF_MEASURED,
      .source = trn2,
      .test = exp_error,
      .at = 1,
      .slow = true },
    { .id = "scalar.exp_bias.error",
      .what = "exp(x + bias), x in U(-85, 85): largest relative error",
      CF_ABOUT(1.5e-5, 0.05e-5),
      .kind = CF_MEASURED,
      .source = "a third party on Trainium1",
      .test = exp_bias_error,
      .at = 200000 },
    { .id = "scalar.reciprocal.error",
      .what = "reciprocal on [1, 4]: largest relative error, one number of 3",
      CF_ABOUT(1.1984e-5, 0.5e-9),
      .kind = CF_MEASURED,
      .source = trn2,
      .test = reciprocal_error,
      .at = 3,
      CF_BUT(1.2000e-5, 5e-4, nearer) },
    { .id = "scalar.reciprocal.error.long",
      .what = "the same, every number",
      CF_ABOUT(1.1984e-5, 0.5e-9),
      .kind = CF_MEASURED,
      .source = trn2,
      .test = reciprocal_error,
      .at = 1,
      .slow = true,
      CF_BUT(1.2004e-5, 5e-4, nearer) },
    { .id = "scalar.sin.9",
      .what = "sin(9.0), outside the table: the last bucket's cubic",
      CF_ABOUT(27.65, 0.005),
      .kind = CF_DOCUMENTED,
      .source = "NKI, activation: valid ranges",
      .test = at_point,
      .about = &nine,
      .of = TRN_ACT_SIN },
    { .id = "scalar.exp.minus_infinity",
      .what = "exp(-inf)",
      CF_EXACTLY(0),
      .kind = CF_DOCUMENTED,
      .source = at_edge,
      .test = at_point,
      .about = &minus_infinity,
      .of = TRN_ACT_EXP },
    { .id = "scalar.exp.zero",
      .what = "exp(0)",
      CF_EXACTLY(1),
      .kind = CF_DOCUMENTED,
      .source = at_edge,
      .test = at_point,
      .about = &zero,
      .of = TRN_ACT_EXP },
    { .id = "scalar.exp.never_above_one",
      .what = "exp(x), x <= 0, one number of 9,973: above 1",
      CF_NONE_WRONG,
      .kind = CF_MEASURED,
      .source = "a third party on Trainium2",
      .test = exp_above_one,
      .at = 9973 },
    { .id = "scalar.exp.never_above_one.long",
      .what = "the same, one number of 13",
      CF_NONE_WRONG,
      .kind = CF_MEASURED,
      .source = "a third party on Trainium2",
      .test = exp_above_one,
      .at = 13,
      .slow = true },
};

void cf_fill_engines(cf_list *list)
{
    for (int i = 0; i < ENGINE_VECTORS; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "page.%s", engine_vectors[i].id),
                                  .what = engine_vectors[i].what,
                                  CF_NONE_WRONG,
                                  .kind = CF_DOCUMENTED,
                                  .source = engine_vectors[i].source,
                                  .test = check_page,
                                  .about = &engine_vectors[i] });
    cf_add_all(list, vectors, sizeof vectors / sizeof vectors[0]);
}

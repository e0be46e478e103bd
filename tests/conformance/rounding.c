/* rounding.c - sums that stagnate under nearest even, sums that stochastic rounding saves, generators.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"
#include "published/engines.h"
#include "published/random.h"
#include "published/sums.h"
#include "trnmath/trn_convert.h"

/* ---- generators ---- */

static void philox(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    uint32_t word[4];
    trn_philox4x32_10(philox_known[v->of].counter, philox_known[v->of].key, word);
    for (int i = 0; i < 4; i++)
        cf_count(a, word[i] == philox_known[v->of].answer[i], "word %d is %08x", i, (unsigned)word[i]);
}

static void xorwow(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    trn_xorwow g;
    memcpy(g.state, xorwow_start, sizeof g.state);
    for (int i = 0; i < 10; i++) {
        const uint32_t word = trn_xorwow_next(&g);
        cf_count(a, word == xorwow_known[i], "word %d is %u", i, (unsigned)word);
    }
}

/* ---- harmonic sums: .of is the format, .at 0 the sum, 1 the term that changes nothing ---- */

static void harmonic(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static harmonic_sum last; /* both vectors of a format ask for the same */
    (void)o;
    if (last.format != (trn_format)v->of) last = harmonic_of((trn_format)v->of, false);
    a->got = v->at ? (double)last.term : last.sum;
    a->cases = last.term;
}

/* ---- 1024 + 2048 times 0.5: .of is the format ---- */

enum { SEEDS = 400, MANY_SEEDS = 20000 };

static void halves_nearest(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = (double)halves_of((trn_format)v->of, TRN_NEAREST_EVEN, 0);
}

typedef enum halves_part { MEAN, DEVIATION, LEAST, MOST, THE_DEVICE } halves_part;

static spread spread_over(trn_format f, int seeds)
{
    static float sum[MANY_SEEDS];
    static struct {
        trn_format format;
        int seeds;
        spread s;
    } last;
    if (last.format == f && last.seeds == seeds) return last.s;
    for (int i = 0; i < seeds; i++) sum[i] = halves_of(f, TRN_STOCHASTIC, (uint64_t)i);
    last.format = f;
    last.seeds = seeds;
    return last.s = spread_of(sum, seeds);
}

static void halves_stochastic(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    const int seeds = v->slow ? MANY_SEEDS : SEEDS;
    const spread s = spread_over((trn_format)v->of, seeds);
    const double part[] = { s.mean, s.deviation, s.least, s.most, (2056 - s.mean) / s.deviation };
    a->cases = seeds;
    a->got = part[v->at];
}

/* The same loop on whole engines: 1024 lanes of the Vector engine. */
static void halves_on_vector(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    enum { LANES = 1024 };
    static uint16_t x[LANES];
    double sum = 0;
    (void)o;
    if (!engine_halves(v->of, x, LANES)) {
        cf_fail(a, "tensor_scalar is refused");
        return;
    }
    for (int i = 0; i < LANES; i++) sum += (double)trn_f16_to_f32(x[i]);
    a->got = sum / LANES;
    a->cases = LANES;
}

/* ---- the battery: what everybody asks of stochastic rounding; .of is the format ---- */

enum { BATTERY = 1 << 14 };

typedef struct battery {
    float x[BATTERY];
    uint32_t out[2][BATTERY];
} battery;

static bool draw(battery *b, trn_format f, int which, uint64_t seed, cf_answer *a)
{
    const trn_convert_args args = { .dst = trn_tensor_1d(f, b->out[which], BATTERY),
                                    .src = trn_tensor_1d(TRN_F32, b->x, BATTERY),
                                    .rounding = TRN_STOCHASTIC,
                                    .seed = seed };
    if (trn_convert(&args) == TRN_OK) return true;
    return cf_fail(a, "trn_convert is refused"), false;
}

static uint32_t code_at(const battery *b, trn_format f, int which, int i)
{
    const size_t bytes = trn_format_bytes(f);
    uint32_t code = 0;
    memcpy(&code, (const char *)b->out[which] + (size_t)i * bytes, bytes);
    return code;
}

static uint32_t directed(trn_format f, float x, trn_rounding r) { return trn_encode(f, x, r, TRN_OVERFLOW_DEFAULT, 0); }

/* Codes of every kind as numbers of the format. */
static float some_value(trn_format f, uint32_t i)
{
    const uint32_t word = trn_random_u32(5, (uint64_t)f, i);
    return trn_decode(f, f == TRN_TF32 ? word & ~0x1fffu : word & (uint32_t)((1ull << trn_format_bits(f)) - 1));
}

static void exact_values_stay(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static battery b;
    const trn_format f = (trn_format)v->of;
    (void)o;
    for (uint32_t i = 0; i < BATTERY; i++) b.x[i] = some_value(f, i);
    if (!draw(&b, f, 0, 1, a)) return;
    for (int i = 0; i < BATTERY; i++) {
        const uint32_t code = code_at(&b, f, 0, i), nearest = directed(f, b.x[i], TRN_NEAREST_EVEN);
        cf_count(a, code == nearest, "%g becomes %x, not %x", (double)b.x[i], (unsigned)code, (unsigned)nearest);
    }
}

static void only_neighbours(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static battery b;
    const trn_format f = (trn_format)v->of;
    const double top = trn_format_limits_of(f).max;
    (void)o;
    for (uint32_t i = 0; i < BATTERY; i++)
        b.x[i] =
            (float)(ldexp(1 + trn_random_u32(6, 0, i) * 0x1p-32, (int)(i % 12) - 6) * (i % 2 ? 1 : -1) * top / 64 / 64);
    if (!draw(&b, f, 0, 2, a)) return;
    for (int i = 0; i < BATTERY; i++) {
        const uint32_t code = code_at(&b, f, 0, i), below = directed(f, b.x[i], TRN_TOWARD_NEGATIVE),
                       above = directed(f, b.x[i], TRN_TOWARD_POSITIVE);
        cf_count(a, code == below || code == above, "%g becomes %x, neither %x nor %x", (double)b.x[i], (unsigned)code,
                 (unsigned)below, (unsigned)above);
    }
}

/* How often a value at a quarter of its step goes up, over all draws: 0.25. */
static void as_often_as_it_should(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static battery b;
    const trn_format f = (trn_format)v->of;
    (void)o;
    for (int i = 0; i < BATTERY; i++) b.x[i] = (float)(1 + trn_format_limits_of(f).epsilon / 4);
    if (!draw(&b, f, 0, 3, a)) return;
    for (int i = 0; i < BATTERY; i++) a->got += (trn_decode(f, code_at(&b, f, 0, i)) > 1) / (double)BATTERY;
    a->cases = BATTERY;
}

static void specials_pass(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static battery b;
    const trn_format f = (trn_format)v->of;
    (void)o;
    for (int i = 0; i < BATTERY; i++) b.x[i] = i % 3 == 0 ? (float)NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    if (!draw(&b, f, 0, 4, a)) return;
    for (int i = 0; i < BATTERY; i++) {
        const uint32_t code = code_at(&b, f, 0, i), nearest = directed(f, b.x[i], TRN_NEAREST_EVEN);
        cf_count(a, code == nearest, "%g becomes %x, not %x", (double)b.x[i], (unsigned)code, (unsigned)nearest);
    }
}

/* .at: 0 the same seed twice, where no code may differ; 1 another seed, where about half do. */
static void seeds(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    static battery b;
    const trn_format f = (trn_format)v->of;
    int differ = 0;
    (void)o;
    for (int i = 0; i < BATTERY; i++) b.x[i] = (float)(1 + trn_format_limits_of(f).epsilon / 2);
    if (!draw(&b, f, 0, 5, a) || !draw(&b, f, 1, v->at ? 6 : 5, a)) return;
    for (int i = 0; i < BATTERY; i++) differ += code_at(&b, f, 0, i) != code_at(&b, f, 1, i);
    a->got = v->at ? differ / (double)BATTERY : differ;
    a->cases = BATTERY;
}

/* ---- the vectors ---- */

static const char higham[] = "N. J. Higham's blog, quoted by M. Kloewer (2019)", rule[] = "by definition",
                  page[] = "Neuron, rounding modes", others[] = "test lists of torchcomms PR 821 and FlyDSL PR 907",
                  coins[] = "fair coins of 1 up to 2048, then of 2 by 1/4; 20,000 seeds";

static void add_harmonic(cf_list *list)
{
    for (int i = 0; i < HARMONIC_KNOWN; i++) {
        const harmonic_sum *h = &harmonic_known[i];
        const char *name = trn_format_name(h->format);
        const bool known = h->format == TRN_F16 || h->format == TRN_BF16 || h->format == TRN_F32;
        const double last_digit = h->format == TRN_F32 ? 5e-7 : 0;
        cf_vector v = { .source = known ? higham : rule,
                        .kind = known ? CF_PAPER : CF_CALCULATED,
                        .test = harmonic,
                        .of = (int)h->format,
                        CF_ABOUT(h->sum, last_digit) };
        v.id = cf_id(list, "sr.harmonic.%s.sum", name);
        v.what = cf_text(list, "1 + 1/2 + 1/3 + ... in %s, nearest even: where it stops", name);
        cf_add(list, v);
        v.expected = v.low = v.high = h->term;
        v.at = 1;
        v.id = cf_id(list, "sr.harmonic.%s.term", name);
        v.what = cf_text(list, "the first term that changes nothing in %s", name);
        cf_add(list, v);
    }
}

static const cf_vector loops[] = {
    { .id = "sr.loop.float16.nearest",
      .what = "1024 + 2048 times 0.5 in FP16, nearest even",
      CF_EXACTLY(1024),
      .kind = CF_MEASURED,
      .source = page,
      .test = halves_nearest,
      .of = TRN_F16 },
    { .id = "sr.loop.bfloat16.nearest",
      .what = "the same in BF16",
      CF_EXACTLY(1024),
      .kind = CF_CALCULATED,
      .source = rule,
      .test = halves_nearest,
      .of = TRN_BF16 },
    { .id = "sr.loop.float16.mean",
      .what = "the same in FP16, stochastic: mean over 400 seeds",
      CF_ABOUT(2048, 5),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = MEAN },
    { .id = "sr.loop.float16.deviation",
      .what = "standard deviation of one run",
      CF_ABOUT(22.9, 2.5),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = DEVIATION },
    { .id = "sr.loop.float16.least",
      .what = "least of 400 runs: within 2048 - 115",
      CF_WITHIN(2048, 1933, 2048),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = LEAST },
    { .id = "sr.loop.float16.most",
      .what = "largest of 400 runs: within 2048 + 115",
      CF_WITHIN(2048, 2048, 2163),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = MOST },
    { .id = "sr.loop.float16.device",
      .what = "2056, which a device printed, in standard deviations from the mean",
      CF_WITHIN(0.35, -1, 1),
      .kind = CF_MEASURED,
      .source = page,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = THE_DEVICE },
    { .id = "sr.loop.bfloat16.mean",
      .what = "in BF16, stochastic: mean over 400 seeds",
      CF_ABOUT(2047.8, 20),
      .kind = CF_CALCULATED,
      .source = rule,
      .test = halves_stochastic,
      .of = TRN_BF16,
      .at = MEAN },
    { .id = "sr.loop.bfloat16.deviation",
      .what = "standard deviation of one run",
      CF_ABOUT(88.7, 10),
      .kind = CF_CALCULATED,
      .source = rule,
      .test = halves_stochastic,
      .of = TRN_BF16,
      .at = DEVIATION },
    { .id = "sr.loop.float16.mean.long",
      .what = "in FP16: mean over 20,000 seeds",
      CF_ABOUT(2048.05, 0.6),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = MEAN,
      .slow = true },
    { .id = "sr.loop.float16.deviation.long",
      .what = "standard deviation of one run, over 20,000",
      CF_ABOUT(22.9, 0.4),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_stochastic,
      .of = TRN_F16,
      .at = DEVIATION,
      .slow = true },
    { .id = "sr.loop.bfloat16.mean.long",
      .what = "in BF16: mean over 20,000 seeds",
      CF_ABOUT(2047.8, 2.5),
      .kind = CF_CALCULATED,
      .source = rule,
      .test = halves_stochastic,
      .of = TRN_BF16,
      .at = MEAN,
      .slow = true },
    { .id = "sr.loop.bfloat16.deviation.long",
      .what = "standard deviation of one run, over 20,000",
      CF_ABOUT(88.7, 1.5),
      .kind = CF_CALCULATED,
      .source = rule,
      .test = halves_stochastic,
      .of = TRN_BF16,
      .at = DEVIATION,
      .slow = true },
    { .id = "sr.loop.vector.nearest",
      .what = "the loop on the Vector engine, nearest even",
      CF_EXACTLY(1024),
      .kind = CF_MEASURED,
      .source = page,
      .test = halves_on_vector },
    { .id = "sr.loop.vector.mean",
      .what = "the loop on the Vector engine, stochastic: mean of 1,024 lanes",
      CF_ABOUT(2048, 3),
      .kind = CF_CALCULATED,
      .source = coins,
      .test = halves_on_vector,
      .of = 1 },
};

static const struct {
    const char *id, *what;
    cf_test *test;
    double expected, slack;
    int at;
    bool counts;
} tests[] = {
    { "exact", "values of the format never move", exact_values_stay, 0, 0, 0, true },
    { "neighbours", "only the two neighbours come out", only_neighbours, 0, 0, 0, true },
    { "fraction", "a value at a quarter goes up a quarter of the time", as_often_as_it_should, 0.25, 0.015, 0, false },
    { "specials", "NaN and infinities pass", specials_pass, 0, 0, 0, true },
    { "same_seed", "codes that differ with the same seed", seeds, 0, 0, 0, false },
    { "other_seed", "share of ties that another seed decides otherwise", seeds, 0.5, 0.02, 1, false },
};

static void add_battery(cf_list *list)
{
    static const trn_format format[] = { TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4 };
    for (size_t t = 0; t < sizeof tests / sizeof tests[0]; t++)
        for (size_t f = 0; f < sizeof format / sizeof format[0]; f++)
            cf_add(list,
                   (cf_vector){ .id = cf_id(list, "sr.battery.%s.%s", tests[t].id, trn_format_name(format[f])),
                                .what = cf_text(list, "%s, stochastic: %s", trn_format_name(format[f]), tests[t].what),
                                CF_ABOUT(tests[t].expected, tests[t].slack),
                                .kind = CF_CALCULATED,
                                .source = others,
                                .unit = tests[t].counts ? "wrong" : "",
                                .test = tests[t].test,
                                .of = (int)format[f],
                                .at = tests[t].at });
}

void cf_fill_rounding(cf_list *list)
{
    for (int i = 0; i < 3; i++)
        cf_add(list, (cf_vector){ .id = cf_id(list, "random.philox4x32_10.%d", i + 1),
                                  .what = cf_text(list, "Philox4x32-10, known answer %d of 3", i + 1),
                                  CF_NONE_WRONG,
                                  .kind = CF_PAPER,
                                  .source = "Salmon et al., SC 2011; Random123 kat_vectors",
                                  .test = philox,
                                  .of = i });
    cf_add(list, (cf_vector){ .id = "random.xorwow",
                              .what = "XORWOW from its author's starting values, ten words",
                              CF_NONE_WRONG,
                              .kind = CF_PAPER,
                              .source = "G. Marsaglia, Xorshift RNGs (2003)",
                              .test = xorwow });
    add_harmonic(list);
    cf_add_all(list, loops, sizeof loops / sizeof loops[0]);
    add_battery(list);
}

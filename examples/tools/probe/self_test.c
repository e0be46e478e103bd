/* self_test.c - random settings recovered; every setting of the array told from every other.
 * SPDX-License-Identifier: MIT
 *
 * Recovery, for each random setting s: the library runs all tiles of a generation as s in all fields. Then
 *     1. each output is what s predicts within the tile's scope alone: the tile depends on no other field;
 *     2. the setting that the rules put for s gives the same bits on every tile, and on random matrices, too;
 *     3. elimination finds exactly that setting; where it finds more (random bits beyond what a sample can show), it is
 *        among them.
 * Brute force, without scopes or elimination: of all neighbours of a setting in seven fields, those have its outputs
 * that the rules call one with it, and no others.
 * Separation, without chance: all settings of the array that the rules leave differ from each other on some tile.
 */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_random.h>
#include <trnmath/trn_tensor_engine.h>

static const trn_generation generations[] = { TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };

/* ---- recovery ---- */

/* Two in three add in chains, where most of the fields matter. */
static probe_setting random_setting(uint64_t seed, uint64_t index)
{
    probe_setting s;
    for (int f = 0; f < PROBE_FIELDS; f++) {
        const int values = f == PROBE_ACCUMULATOR && index % 3 ? 2 : probe_values(f);
        s.value[f] = (int8_t)(trn_random_u32(seed, index, (uint64_t)f) % (uint32_t)values);
    }
    return s;
}

static bool is_stochastic(const probe_tile *t, const probe_setting *s)
{
    return t->mode == PROBE_PSUM_BF16 && s->value[PROBE_PSUM] == 1 && s->value[PROBE_PSUM_ROUNDING] == 1;
}

static bool run_all(const probe_setting *s, trn_generation generation, uint64_t seed, probe_seen *seen, double *out,
                    char *why)
{
    trn_numerics n;
    memset(seen, 0, sizeof *seen);
    seen->generation = generation;
    if (!probe_numerics(s, &n)) return app_refuse(why, "trn_numerics_parse refused its own text");
    for (int i = 0; i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        if (!(t->generations & probe_generation_bit(generation))) continue;
        if (!probe_run_tile(t, generation, &n, seed, out, why)) return false;
        seen->out[i] = out;
        out += probe_outputs(t);
    }
    return true;
}

static bool same_outputs(const probe_seen *x, const double *y, int tile)
{
    for (int i = 0; i < probe_outputs(&probe_tiles[tile]); i++)
        if (!probe_same(x->out[tile][i], y[i])) return false;
    return true;
}

/* A tile depends on its scope alone. */
static bool scopes_hold(const probe_seen *seen, const probe_setting *s, char *why)
{
    for (int i = 0; i < probe_tile_count; i++) {
        if (!seen->out[i] || is_stochastic(&probe_tiles[i], s) || same_outputs(seen, probe_prediction(i, s), i))
            continue;
        return app_fail(why, "tile %s depends on a field outside its scope", probe_tiles[i].name);
    }
    return true;
}

/* One random product: all exponents near 0, or near the bottom where flushing matters. */
static bool random_product(const probe_setting *s, trn_format format, uint64_t seed, uint64_t index, float out[16],
                           char *why)
{
    enum { K = 128, LANES = 4 };
    static uint32_t a[K * LANES], b[K * LANES];
    trn_nc_matmul_args args;
    trn_numerics n;
    trn_error error;
    const int bits = trn_format_bits(format);
    const uint32_t sign = UINT32_C(1) << (bits - 1), low = sign / 2 - sign / 64;
    for (int i = 0; i < K * LANES; i++) /* finite codes */
        for (int which = 0; which < 2; which++) {
            const uint32_t r = trn_random_u32(seed, index, (uint64_t)(2 * i + which));
            const uint32_t code = format == TRN_F32
                                      ? (r & UINT32_C(0x807fffff)) | ((index & 1 ? 57 : 120) + (r >> 23 & 7u)) << 23
                                      : (r & sign) | (low + r % (sign / 32));
            unsigned char *at = (unsigned char *)(which ? b : a) + i * (bits / 8);
            memcpy(at, &code, (size_t)(bits / 8));
        }
    memset(&args, 0, sizeof args);
    if (!probe_numerics(s, &n)) return false;
    args.dst = trn_tensor_2d(TRN_F32, out, LANES, LANES);
    args.stationary = trn_tensor_2d(format, a, K, LANES);
    args.moving = trn_tensor_2d(format, b, K, LANES);
    args.numerics = &n;
    args.error = &error;
    return app_worked(trn_nc_matmul(&args), &error) || app_refuse(why, error.text);
}

/* What the rules call the same is the same. */
static bool rules_hold(const probe_seen *seen, const probe_setting *s, uint64_t seed, uint64_t index, double *out,
                       char *why)
{
    static const trn_format format[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E5M2 };
    const probe_setting c = probe_canonical(*s);
    probe_seen other;
    if (!run_all(&c, seen->generation, seed, &other, out, why)) return false;
    for (int i = 0; i < probe_tile_count; i++)
        if (seen->out[i] && !is_stochastic(&probe_tiles[i], s) && !same_outputs(seen, other.out[i], i))
            return app_fail(why, "tile %s tells apart what a rule calls one and the same", probe_tiles[i].name);
    for (int i = 0; i < 4; i++) {
        float x[16], y[16];
        if (!random_product(s, format[i], seed, index, x, why) || !random_product(&c, format[i], seed, index, y, why))
            return false;
        if (memcmp(x, y, sizeof x) == 0) continue;
        return app_fail(why, "a random %s product tells apart what a rule calls one and the same",
                        trn_format_name(format[i]));
    }
    return true;
}

/* Is the setting, as the rules put it, among those found in each group? */
static bool is_found(const probe_verdict *v, const probe_setting *s)
{
    const probe_setting c = probe_canonical(*s);
    for (int i = 0; i < v->groups; i++) {
        const probe_group *g = &v->group[i];
        bool found = false;
        for (int k = 0; k < g->kept && !found; k++) {
            found = true;
            for (int f = 0; f < PROBE_FIELDS; f++)
                if ((g->fields & PROBE_BIT(f)) && g->found[k].value[f] != c.value[f]) found = false;
        }
        if (!found) return false;
    }
    return v->wrong == 0;
}

/* Nothing was found beside it but other numbers of random bits, which a sample cannot always show. */
static bool is_narrow(const probe_verdict *v, const probe_setting *s)
{
    for (int i = 0; i < v->groups; i++)
        for (int k = 1; k < v->group[i].kept; k++)
            for (int f = 0; f < PROBE_FIELDS; f++)
                if (v->group[i].found[k].value[f] != v->group[i].found[0].value[f] &&
                    (f != PROBE_SR_BITS || s->value[PROBE_PSUM] != 1 || s->value[PROBE_PSUM_ROUNDING] != 1))
                    return false;
    return true;
}

typedef struct tally {
    long recovered, alone;
} tally;

static bool recover(const probe_setting *s, trn_generation generation, uint64_t seed, uint64_t index, tally *t,
                    char *why)
{
    static double out[2][PROBE_MAX_TILES * 256];
    probe_seen seen;
    if (!run_all(s, generation, seed + index, &seen, out[0], why)) return false;
    if (!scopes_hold(&seen, s, why) || !rules_hold(&seen, s, seed + index, index, out[1], why)) return false;
    probe_verdict v = probe_identify(&seen, UINT64_MAX);
    const bool found = is_found(&v, s), narrow = is_narrow(&v, s);
    bool alone = true;
    for (int i = 0; i < v.groups; i++) alone = alone && v.group[i].count == 1;
    if (!found)
        app_refuse(why, "it is not among the settings found");
    else if (!narrow)
        app_refuse(why, "settings were found beside it that differ in more than sr_bits");
    t->recovered += found && narrow;
    t->alone += found && alone;
    probe_verdict_free(&v);
    return found && narrow;
}

static long recover_all(long settings, uint64_t seed, tally *t)
{
    long failed = 0;
    for (long i = 0; i < settings; i++) {
        char text[1024], why[APP_WHY] = "";
        const probe_setting s = random_setting(seed, (uint64_t)i);
        if (recover(&s, generations[i / 3 % 3], seed, (uint64_t)i, t, why)) continue;
        failed++;
        printf("not recovered on %s: %s: %s\n", probe_generation_name(generations[i / 3 % 3]),
               probe_text(&s, UINT32_MAX, text, sizeof text), why);
    }
    return failed;
}

/* ---- brute force ---- */

static bool agree(const probe_seen *x, const probe_seen *y)
{
    for (int i = 0; i < probe_tile_count; i++)
        if (x->out[i] && !same_outputs(x, y->out[i], i)) return false;
    return true;
}

/* Tries the neighbours of s in the fields from f to fp32_mode, flushing apart; returns how many the rules get wrong. */
static long brute(const probe_setting *s, const probe_seen *seen, probe_setting *other, int f, double *out, long *tried)
{
    long wrong = 0;
    while (f >= PROBE_FLUSH_INPUTS && f <= PROBE_FLUSH_SUMS) f++;
    if (f <= PROBE_FP32) {
        for (int v = 0; v < probe_values(f); v++) {
            other->value[f] = (int8_t)v;
            wrong += brute(s, seen, other, f + 1, out, tried);
        }
        return wrong;
    }
    char why[APP_WHY];
    probe_seen outputs;
    const probe_setting x = probe_canonical(*s), y = probe_canonical(*other);
    const bool same = memcmp(&x, &y, sizeof x) == 0;
    ++*tried;
    if (!run_all(other, seen->generation, 0, &outputs, out, why)) return printf("%s\n", why), 1;
    if (agree(seen, &outputs) == same) return 0;
    char text[1024];
    printf("%s: %s\n", same ? "told apart, against the rules" : "not told apart",
           probe_text(other, UINT32_MAX, text, sizeof text));
    return 1;
}

static long brute_force(uint64_t seed, long *tried)
{
    static double out[2][PROBE_MAX_TILES * 256];
    char why[APP_WHY];
    long wrong = 0;
    for (uint64_t i = 0; i < 4; i++) { /* one chain, two, four; and an exact sum */
        probe_setting s = random_setting(seed, i), other;
        probe_seen seen;
        s.value[PROBE_ACCUMULATOR] = (int8_t)(i < 3 ? i % 2 : 2);
        s.value[PROBE_CHAINS] = (int8_t)(i % 3);
        s.value[PROBE_PSUM] = 0; /* nothing random */
        if (!run_all(&s, TRN_TRAINIUM3, 0, &seen, out[0], why)) return printf("%s\n", why), 1;
        other = s;
        wrong += brute(&s, &seen, &other, PROBE_CHAINS, out[1], tried);
    }
    return wrong;
}

/* ---- all fields ---- */

static void missing_field(void *missing, const char *line)
{
    const size_t length = strcspn(line, " ");
    for (int f = 0; f < PROBE_FIELDS; f++)
        if (strlen(probe_hypotheses[f].name) == length && memcmp(probe_hypotheses[f].name, line, length) == 0) return;
    for (int i = 0; probe_not_probed[i][0]; i++)
        if (strlen(probe_not_probed[i][0]) == length && memcmp(probe_not_probed[i][0], line, length) == 0) return;
    printf("a field of trn_numerics that the probe does not know: %s\n", line);
    ++*(long *)missing;
}

/* ---- separation ---- */

/* The fields of the array itself. FP8 and the order of MX rows are left out: what the others tell apart, all do. */
static const uint32_t array_fields = PROBE_BIT(PROBE_BIAS) - 1;

static bool separates(const probe_tile *t)
{
    const bool order_of_mx = t->mode == PROBE_MX && (t->scope & PROBE_BIT(PROBE_CHAINS));
    return (t->scope & array_fields) && !(t->scope & ~array_fields) && !order_of_mx;
}

static uint64_t hash_of(const double *out, int n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < n; i++) {
        uint64_t u;
        memcpy(&u, &out[i], sizeof u);
        h = (h ^ u) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

typedef struct signature {
    uint64_t hash[2];
    probe_setting s;
} signature;

typedef struct signatures {
    signature *list;
    long count, capacity;
} signatures;

static void add_signature(signatures *all, const probe_setting *s)
{
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 1 << 16;
        all->list = (signature *)app_resize(all->list, (size_t)all->capacity, sizeof *all->list);
    }
    signature *new = &all->list[all->count++];
    new->s = *s;
    new->hash[0] = new->hash[1] = 0;
    for (int i = 0; i < probe_tile_count; i++) {
        if (!separates(&probe_tiles[i])) continue;
        const uint64_t h = hash_of(probe_prediction(i, s), probe_outputs(&probe_tiles[i]));
        new->hash[0] = (new->hash[0] ^ h) * UINT64_C(0xd6e8feb86659fd93) + (uint64_t)i;
        new->hash[1] = (new->hash[1] + (h >> 7 | h << 57)) * UINT64_C(0xa0761d6478bd642f);
    }
}

static void every_setting(signatures *all, probe_setting *s, int f)
{
    if (f == PROBE_BIAS) {
        add_signature(all, s);
        return;
    }
    for (int v = 0; v < probe_values(f); v++) {
        const probe_rule *r = probe_rule_for(s, f, v);
        if (r && r->becomes != v) continue;
        s->value[f] = (int8_t)v;
        every_setting(all, s, f + 1);
    }
    s->value[f] = -1;
}

static int by_hash(const void *x, const void *y) { return memcmp(x, y, sizeof((signature *)0)->hash); }

/* How many settings share their outputs with another. */
static long separate(long *settings)
{
    signatures all = { NULL, 0, 0 };
    probe_setting s = probe_undecided();
    long same = 0;
    every_setting(&all, &s, 0);
    qsort(all.list, (size_t)all.count, sizeof *all.list, by_hash);
    for (long i = 1; i < all.count; i++) {
        char x[1024], y[1024];
        if (memcmp(all.list[i].hash, all.list[i - 1].hash, sizeof all.list[i].hash) != 0) continue;
        if (same++ < 10)
            printf("not told apart: %s | %s\n", probe_text(&all.list[i - 1].s, UINT32_MAX, x, sizeof x),
                   probe_text(&all.list[i].s, UINT32_MAX, y, sizeof y));
    }
    *settings = all.count;
    free(all.list);
    return same;
}

bool probe_self_test(long settings, uint64_t seed)
{
    tally t = { 0, 0 };
    long all = 0, tried = 0, missing = 0;
    trn_numerics_explain(NULL, missing_field, &missing);
    const long failed = recover_all(settings, seed, &t), wrong = brute_force(seed, &tried), same = separate(&all);
    printf("recovered %ld of %ld random settings, %ld of them as the only match\n", t.recovered, settings, t.alone);
    printf("brute force agrees on %ld of %ld neighbours\n", tried - wrong, tried);
    printf("told apart %ld of %ld settings of the array\n", all - same, all);
    return !failed && !wrong && !same && !missing;
}

/* fuzz_numerics.c - random and spoilt texts of numerics: what is accepted is what a slower reading finds, comes back
 * from its own text, and is what products then compute, bit for bit as the twin does.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_numerics [count] [seed]        default: 4000 texts, 200000 with TRN_TEST_LEVEL=2; seed 1
 *
 * The slower reading has a table of its own, from the public header and architecture.md. A refused text leaves the
 * struct alone; a struct with one illegal field is refused by name by all that take one, and nothing is written. Each
 * accepted text is asked of trn_matmul or of an instruction, any mode and formats, on every instruction set.
 */
#include "fuzz/fail.h"
#include "twin/instruction.h"
#include "twin/twin_aligned.h"

enum { ROOM = 600 };

#include "fuzz/line.h"

/* ---- what is legal ---- */

/* `words` are the values by name, 0, 1, … unless `value` says others; without words, any number from low to high. */
typedef struct rule {
    const char *name;
    size_t offset;
    const char *words[8];
    int value[8];
    int low, high, fallback;
} rule;

#define AT(f) #f, offsetof(trn_numerics, f)
static const rule rules[] = {
    { AT(chains), { "1", "2", "4", "8", "16" }, { 1, 2, 4, 8, 16 }, 0, 0, 4 },
    { AT(k_tile), { NULL }, { 0 }, 1, 128, 128 },
    { AT(chain_layout), { "interleaved", "blocked" }, { 0, 1 }, 0, 0, 0 },
    { AT(merge), { "ascending", "pairwise" }, { 0, 1 }, 0, 0, 0 },
    { AT(product), { "exact", "bf16" }, { 0, 1 }, 0, 0, 0 },
    { AT(group), { "sequential", "exact" }, { 0, 1 }, 0, 0, 0 },
    { AT(accumulator),
      { "nearest_even", "toward_zero", "exact", "aligned", "aligned_late", "aligned_halves", "pairwise" },
      { 0, 1, 2, 3, 4, 5, 6 },
      0,
      0,
      0 },
    { AT(accumulator_bits), { NULL }, { 0 }, 24, 53, 24 },
    { AT(aligned_bytes), { "4", "8", "16", "32", "64" }, { 4, 8, 16, 32, 64 }, 0, 0, 16 },
    { AT(aligned_bits), { NULL }, { 0 }, 10, 40, 24 },
    { AT(aligned_result_bits), { NULL }, { 0 }, 8, 24, 24 },
    { AT(aligned_floor), { NULL }, { 0 }, 1, 300, 126 },
    { AT(aligned_rounding), { "nearest_even", "toward_zero" }, { TRN_NEAREST_EVEN, TRN_TOWARD_ZERO }, 0, 0, 0 },
    { AT(fp32_mode), { "native", "split", "fp32r" }, { 0, 1, 2 }, 0, 0, 0 },
    { AT(tf32_input), { "nearest_even", "truncate" }, { 0, 1 }, 0, 0, 0 },
    { AT(int32_overflow), { "wrap", "saturate" }, { 0, 1 }, 0, 0, 0 },
    { AT(flush_inputs), { "off", "on" }, { 0, 1 }, 0, 0, 0 },
    { AT(flush_products), { "off", "on" }, { 0, 1 }, 0, 0, 0 },
    { AT(flush_sums), { "off", "on" }, { 0, 1 }, 0, 0, 0 },
    { AT(psum_format), { "float32", "bfloat16" }, { TRN_F32, TRN_BF16 }, 0, 0, TRN_F32 },
    { AT(psum_rounding), { "nearest_even", "stochastic" }, { TRN_NEAREST_EVEN, TRN_STOCHASTIC }, 0, 0, 0 },
    { AT(mx_scale_rule), { "neuron", "ocp_floor", "round_up", "even", "ceil" }, { 0, 1, 2, 3, 4 }, 0, 0, 0 },
    { AT(fp8_bias), { NULL }, { 0 }, 1, 30, 0 },
    { AT(sr_bits), { NULL }, { 0 }, 1, 32, 32 },
    { AT(sr_where), { "engine_writes", "all_writes" }, { 0, 1 }, 0, 0, 0 },
    { AT(activation_fused), { "off", "on" }, { 0, 1 }, 0, 0, 0 },
    { AT(reduce_order), { "sequential", "pairwise" }, { 0, 1 }, 0, 0, 0 },
    { AT(rsqrt_buckets), { "4", "8" }, { 4, 8 }, 0, 0, 4 },
};
enum { RULES = sizeof rules / sizeof rules[0] };

static bool is_flag(const rule *r) { return r->words[0] && strcmp(r->words[0], "off") == 0; }

static int get(const trn_numerics *n, const rule *r)
{
    int value = 0;
    memcpy(&value, (const char *)n + r->offset, is_flag(r) ? sizeof(bool) : sizeof value); /* little-endian */
    return value;
}

static void set(trn_numerics *n, const rule *r, int value)
{
    memcpy((char *)n + r->offset, &value, is_flag(r) ? sizeof(bool) : sizeof value);
}

static bool legal(const rule *r, int value)
{
    if (value == 0) return true; /* the default, whichever */
    if (!r->words[0]) return value >= r->low && value <= r->high;
    for (int i = 0; r->words[i]; i++)
        if (r->value[i] == value) return true;
    return false;
}

static void start_over(int *value)
{
    for (int i = 0; i < RULES; i++) value[i] = rules[i].fallback;
}

/* ---- the slower reading ---- */

static bool read_value(const rule *r, const char *text, int *value)
{
    for (int i = 0; r->words[0] && r->words[i]; i++)
        if (strcmp(r->words[i], text) == 0) {
            *value = r->value[i];
            return true;
        }
    const size_t length = strlen(text);
    if (r->words[0] || length < 1 || length > 3 || strspn(text, "0123456789") != length) return false;
    *value = atoi(text);
    return (*value >= r->low && *value <= r->high) || *value == r->fallback; /* fp8_bias=0: the format's own */
}

static bool read_text(int *value, const char *text, bool presets);

static bool read_item(int *value, const char *item, bool presets)
{
    const char *name, *setting, *equals = strchr(item, '=');
    for (int i = 0; presets && (name = trn_numerics_preset(i, &setting, NULL)) != NULL; i++)
        if (strcmp(name, item) == 0) {
            start_over(value);
            return read_text(value, setting, false);
        }
    for (int i = 0; equals && i < RULES; i++)
        if (strlen(rules[i].name) == (size_t)(equals - item) &&
            memcmp(rules[i].name, item, (size_t)(equals - item)) == 0)
            return read_value(&rules[i], equals + 1, &value[i]);
    return false;
}

/* Items with one comma between; no text at all is legal, too. */
static bool read_text(int *value, const char *text, bool presets)
{
    char item[ROOM + 1];
    if (!*text) return true;
    for (;;) {
        const size_t length = strcspn(text, ",");
        memcpy(item, text, length);
        item[length] = 0;
        if (!read_item(value, item, presets)) return false;
        if (!text[length]) return true;
        text += length + 1;
    }
}

/* ---- texts ---- */

static void put_item(line *l)
{
    char text[80];
    int presets = 0;
    while (trn_numerics_preset(presets, NULL, NULL)) presets++;
    if (one_in(6)) {
        put(l, trn_numerics_preset(below(presets), NULL, NULL));
        return;
    }
    const rule *r = &rules[below(RULES)];
    int words = 0;
    while (r->words[0] && r->words[words]) words++;
    if (words)
        snprintf(text, sizeof text, "%s=%s", r->name, r->words[below(words)]);
    else
        snprintf(text, sizeof text, one_in(20) ? "%s=%03d" : "%s=%d", r->name, r->low + below(r->high - r->low + 1));
    put(l, text);
}

static void put_text(line *l)
{
    for (int items = one_in(20) ? 0 : 1 + below(one_in(4) ? 14 : 5); items > 0; items--) {
        put_item(l);
        if (items > 1) put(l, ",");
    }
}

static void spoil(line *l)
{
    static const char *const piece[] = {
        ",", "=", "0", "-1", " ", "999", "chains", "exact", "=on", ",,", "trn2", "\xff"
    };
    const size_t at = l->length ? (size_t)below((int)l->length) : 0;
    line rest = { "", 0 };
    put(&rest, l->text + at);
    l->text[l->length = at] = 0;
    const int kind = below(5);
    if (kind == 0) put(l, piece[below((int)(sizeof piece / sizeof piece[0]))]);
    if (kind == 3) put(l, rest.text); /* a range twice */
    if (kind == 4 && rest.length) rest.text[0] = (char)(rest.text[0] ^ 1 << below(7));
    if (kind == 4 && rest.length && !rest.text[0]) rest.text[0] = '~';
    if (kind != 1) put(l, rest.text + (kind == 2 && rest.length)); /* 1: cut short; 2: one character less */
}

/* ---- a text ---- */

static trn_numerics untouched(void)
{
    trn_numerics n;
    memset(&n, 0x5a, sizeof n);
    return n;
}

/* In a block of its own, so that a sanitizer sees one byte too many. */
static trn_status parse(trn_numerics *n, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = (char *)malloc(size);
    if (!copy) abort();
    memcpy(copy, text, size);
    const trn_status status = trn_numerics_parse(n, copy);
    free(copy);
    return status;
}

static void check_round_trip(const trn_numerics *n, const char *text)
{
    char out[TRN_NUMERICS_TEXT], exact[TRN_NUMERICS_TEXT];
    trn_numerics again = untouched();
    if (trn_numerics_format(n, out, sizeof out) != TRN_OK) fail_msg("\"%s\" has no text", text);
    const size_t length = strlen(out);
    if (*text && length > strlen(text)) fail_msg("\"%s\" is written as \"%s\", which is longer", text, out);
    if (parse(&again, out) != TRN_OK || memcmp(&again, n, sizeof again) != 0)
        fail_msg("\"%s\" is written as \"%s\", which is something else", text, out);
    memset(exact, 0x5a, sizeof exact);
    const size_t short_by = (size_t)below((int)length + 1);
    if (trn_numerics_format(n, exact, short_by) != TRN_ENOSPC || exact[0] != 0x5a) fail_msg("\"%s\" fits", out);
    if (trn_numerics_format(n, exact, length + 1) != TRN_OK || strcmp(exact, out) != 0)
        fail_msg("\"%s\" does not", out);
}

/* Whether it was accepted; then *n is what it says. */
static bool check_text(const char *text, trn_numerics *n)
{
    int value[RULES];
    const trn_numerics before = untouched();
    *n = before;
    start_over(value);
    const bool good = read_text(value, text, true);
    const trn_status status = parse(n, text);
    if (status != (good ? TRN_OK : TRN_EINVAL)) fail_msg("\"%s\": status %d", text, (int)status);
    if (!good && memcmp(n, &before, sizeof before) != 0)
        fail_msg("\"%s\" is refused, and the struct was written", text);
    for (int i = 0; good && i < RULES; i++)
        if (get(n, &rules[i]) != value[i])
            fail_msg("\"%s\": %s = %d, expected %d", text, rules[i].name, get(n, &rules[i]), value[i]);
    if (good && trn_numerics_check(n, NULL) != TRN_OK) fail_msg("\"%s\" is parsed, and then illegal", text);
    if (good) check_round_trip(n, text);
    return good;
}

/* ---- products ---- */

static twin_blocks blocks;
static void reference(const twin_problem *p)
{
    if (blocks.bytes && p->dst_format != TWIN_I32)
        twin_aligned_matmul(p, &blocks);
    else
        twin_matmul(p);
}

/* What the accumulators without chains read; zeros for the others. */
static twin_blocks blocks_of(const trn_numerics *n)
{
    twin_blocks b = { TWIN_ALIGNED, 0, 0, 0, 0, false };
    if (n->accumulator < TRN_ACCUMULATOR_ALIGNED) return b;
    b.kind = (twin_blocks_kind)((int)n->accumulator - (int)TRN_ACCUMULATOR_ALIGNED);
    b.bytes = n->aligned_bytes;
    b.bits = n->aligned_bits;
    b.result_bits = n->aligned_result_bits;
    b.floor = n->aligned_floor;
    b.toward_zero = n->aligned_rounding == TRN_TOWARD_ZERO;
    return b;
}

static void random_result(twin_problem *t, trn_generation generation)
{
    static const int dst[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2 };
    (void)generation;
    t->dst_format = t->a_format == TWIN_I8 ? TWIN_I32 : dst[below(6)];
    t->accumulate = one_in(2);
    t->rounding = one_in(2) ? TWIN_NEAREST_EVEN : (twin_mode)below(TWIN_MODES);
    t->saturate = one_in(4);
    t->seed = cases_next(&rng);
    t->stream = one_in(2) ? 0 : cases_next(&rng);
}

static bool psum_of_trainium3(const trn_numerics *n, trn_generation generation)
{
    return n->psum_format == TRN_BF16 && generation != TRN_TRAINIUM3;
}

/* Refused with a sentence that has `word` in it; dst is as it was. */
static void check_refused(problem *p, const trn_numerics *n, trn_status expected, const char *word)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    p->args.error = &error;
    p->args.numerics = n;
    const trn_status status = trn_matmul(&p->args);
    if (status != expected || error.status != expected || !strstr(error.text, word))
        fail_msg("status %d for %s: \"%s\"", (int)status, word, error.text);
    if (memcmp(p->dst.memory, p->before, p->dst.bytes) != 0) fail_msg("refused for %s, and dst was written", word);
    p->args.error = NULL;
    p->args.numerics = &p->numerics;
}

/* One field, whichever, at a value that it does not have. */
static void check_illegal(problem *p)
{
    static const int absurd[] = { -1, 3, 5, 7, 17, 65, 129, 301, 1 << 20, INT32_MAX, INT32_MIN };
    trn_error error;
    char text[TRN_NUMERICS_TEXT] = "~";
    trn_numerics n = p->numerics;
    const rule *r = &rules[below(RULES)];
    const int value = is_flag(r) ? 2 + below(254) : one_in(2) ? (int)cases_u32(&rng) : absurd[below(11)];
    if (legal(r, value)) return;
    set(&n, r, value);
    memset(&error, 0, sizeof error);
    if (trn_numerics_check(&n, &error) != TRN_EINVAL || !strstr(error.text, r->name))
        fail_msg("%s = %d is legal: \"%s\"", r->name, value, error.text);
    if (trn_numerics_format(&n, text, sizeof text) != TRN_EINVAL || strcmp(text, "~") != 0)
        fail_msg("%s = %d has a text", r->name, value);
    check_refused(p, &n, TRN_EINVAL, r->name);
}

static void check_product(const trn_numerics *n, problem_mode mode, trn_generation generation, int a, int b)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.twin.a_format = a;
    p.twin.b_format = b;
    p.twin.m = 1 + below(4);
    p.twin.n = 1 + below(one_in(4) ? 20 : 4);
    p.twin.k = mode == PROBLEM_MX ? 32 * (1 + below(6)) : one_in(6) ? 129 + below(160) : 1 + below(70);
    p.twin.group = instruction_group(mode);
    random_result(&p.twin, generation);
    p.numerics = *n;
    const bridge_layout layout[3] = { (bridge_layout)below(BRIDGE_LAYOUTS), (bridge_layout)below(BRIDGE_LAYOUTS),
                                      (bridge_layout)below(BRIDGE_OUTPUTS) };
    problem_build(&p, layout, (bridge_values)below(BRIDGE_VALUES), &rng);
    p.args.generation = generation;
    check_illegal(&p);
    if (psum_of_trainium3(n, generation)) {
        check_refused(&p, n, TRN_EUNSUPPORTED, "psum_format");
    } else {
        problem_expect(&p, reference);
        for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++)
            if (isa == TRN_ISA_AUTO || trn_isa_supported((trn_isa)isa)) problem_ask(&p, (trn_isa)isa);
    }
    problem_free(&p);
}

static void check_instruction(const trn_numerics *n, problem_mode mode, trn_generation generation, int a, int b)
{
    instruction q;
    memset(&q, 0, sizeof q);
    q.mode = mode;
    q.generation = generation;
    q.twin.a_format = a;
    q.twin.b_format = b;
    q.twin.m = mode == PROBLEM_MX ? 2 : 1 + below(3);
    q.twin.n = 1 + below(3);
    q.twin.k = mode == PROBLEM_MX ? 128 * (1 + below(2)) : (1 + below(60)) * instruction_group(mode);
    random_result(&q.twin, generation);
    q.twin.saturate = false;
    q.twin.rounding = one_in(2) ? TWIN_STOCHASTIC : TWIN_NEAREST_EVEN;
    if (a != TWIN_I8) q.twin.dst_format = generation == TRN_TRAINIUM3 && one_in(2) ? TWIN_BF16 : TWIN_F32;
    q.numerics = *n;
    instruction_build(&q, (bridge_values)below(BRIDGE_VALUES), &rng);
    instruction_expect(&q, reference);
    instruction_ask_all(&q);
    instruction_free(&q);
}

int main(int argc, char **argv)
{
    long accepted = 0, refused = 0, blocked = 0;
    problem_threads(1); /* tiny products: teams of threads would cost more than the work */
    fuzzing_start(argc, argv, 4000, 200000);
    while (fuzzing_next(&rng)) {
        line l = { "", 0 };
        trn_numerics n;
        problem_mode mode;
        trn_generation generation;
        int a, b;
        put_text(&l);
        for (int wounds = one_in(3) ? below(3) : 0; wounds > 0; wounds--) spoil(&l);
        const bool good = check_text(l.text, &n);
        refused += !good;
        accepted += good;
        if (!good) continue;
        blocks = blocks_of(&n);
        blocked += blocks.bytes > 0;
        problem_legal_case(&mode, &generation, &a, &b, &rng);
        (one_in(3) ? check_instruction : check_product)(&n, mode, generation, a, b);
    }
    const long count = fuzzing_end();
    printf("%ld texts refused, %ld accepted and multiplied with, %ld of them without chains\n", refused, accepted,
           blocked);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (refused > count / 20 && accepted > count / 2 && blocked > count / 20) ? 0 : 1;
}

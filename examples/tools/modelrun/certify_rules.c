/* certify_rules.c - every kind of operation, and every cause for which its bits may depend on what it is run with.
 * SPDX-License-Identifier: MIT
 *
 * The premise of all rules: numbers are finite. (0 times a value that is infinite is no number, and a key that a token
 * does not see is multiplied by 0.)
 *
 * KNOWN FROM: trn_matmul.h and array/systolic.h (the order of a sum: tiles of K ascending, chains that begin with +0);
 *     trn_schedule.h (a ring's partial for member v begins at v + 1; a single step adds all members ascending);
 *     trn_collective_chunk (which member has an element); trn_numerics.h (the words of PSUM's stochastic rounding);
 *     trn_scalar_engine.h (sums of an activation run along the free axis, ascending).
 */
#include "certify.h"

#define KIND(k) (UINT32_C(1) << MR_KIND_##k)

enum { BATCH = 1 << MR_DIM_BATCH, CHUNKS = 1 << MR_DIM_CHUNKS, CORES = 1 << MR_DIM_CORES };

static const uint32_t scaled =
    KIND(QKV) | KIND(STATE_IN) | KIND(O) | KIND(UP) | KIND(DOWN) | KIND(EXPERT_UP) | KIND(EXPERT_DOWN);
static const uint32_t sums = KIND(O_SUM) | KIND(DOWN_SUM) | KIND(EXPERT_SUM);

const char *mr_dim_name(mr_dim dim)
{
    static const char *const name[] = {
        [MR_DIM_BATCH] = "batch", [MR_DIM_CHUNKS] = "chunks", [MR_DIM_CORES] = "cores"
    };
    return name[dim];
}

/* ---- kinds: why nothing depends on rows, and why not on cores ---- */

#define ORDER_OF_K "a sum's order is that of K, in tiles and chains; rows have no part in it"
#define WHOLE_OUTPUTS "a core has whole outputs: no sum is cut"
#define ALL_HAVE_IT "every core has the whole token"
#define EACH_ALONE "each number by itself"
#define WHOLE_HEADS "a core has whole heads"

static const struct {
    const char *name, *rows, *cores;
} kinds[MR_KINDS] = {
    [MR_KIND_EMBED] = { "embedding", EACH_ALONE, ALL_HAVE_IT },
    [MR_KIND_NORM] = { "norms", "a token's own numbers, one after the other", ALL_HAVE_IT },
    [MR_KIND_QKV] = { "queries, keys, values", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_TURN] = { "rotation", "each pair of numbers by itself, at the token's own position", WHOLE_HEADS },
    [MR_KIND_STORE] = { "cache", EACH_ALONE, WHOLE_HEADS },
    [MR_KIND_SCORES] = { "scores", "a sum runs along one head; other tokens and keys have no part in it", WHOLE_HEADS },
    [MR_KIND_SOFTMAX] = { "softmax", "sums run from key to key, and keys that are not seen add 0", WHOLE_HEADS },
    [MR_KIND_MIX] = { "values times softmax",
                      "a key's place in tiles and chains is that in the cache, and keys that are not seen add 0",
                      WHOLE_HEADS },
    [MR_KIND_STATE_IN] = { "what states take in", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_STATE] = { "states", "one token after the other, from the state that those before it left", WHOLE_HEADS },
    [MR_KIND_O] = { "attention's output", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_O_SUM] = { "attention's all-reduce", NULL, NULL },
    [MR_KIND_UP] = { "gate, up", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_FUNCTION] = { "activation", EACH_ALONE, WHOLE_OUTPUTS },
    [MR_KIND_DOWN] = { "down", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_DOWN_SUM] = { "down's all-reduce", NULL, NULL },
    [MR_KIND_ROUTER] = { "router", ORDER_OF_K, ALL_HAVE_IT },
    [MR_KIND_CHOICE] = { "choice of experts", "a token's own logits; no expert has a capacity, so no token is dropped",
                         ALL_HAVE_IT },
    [MR_KIND_EXPERT_UP] = { "experts' gate, up", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_EXPERT_DOWN] = { "experts' down", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_EXPERT_SUM] = { "experts' all-reduce", NULL, NULL },
    [MR_KIND_MIXTURE] = { "experts' sum", "a token's experts are added in the order of their numbers", ALL_HAVE_IT },
    [MR_KIND_ADD] = { "residual", EACH_ALONE, ALL_HAVE_IT },
    [MR_KIND_HEAD] = { "logits", ORDER_OF_K, WHOLE_OUTPUTS },
    [MR_KIND_MODEL] = { "the whole model", "none of its operations depends on it",
                        "none of its operations depends on it" },
};

const char *mr_kind_name(mr_kind kind) { return kinds[kind].name; }

/* ---- causes ---- */

static bool is_cut(const mr_judged *j) { return j->setting->tp > 1 && !j->setting->split_outputs; }

/* Two summands have one sum, whichever comes first. */
static bool by_ring(const mr_judged *j)
{
    return is_cut(j) && j->setting->tp > 2 && j->setting->reduce == MR_REDUCE_RING;
}

static bool by_depth(const mr_judged *j) { return !j->setting->split_outputs; }

static bool by_scale(const mr_judged *j)
{
    return j->setting->codes == MR_CODES_FP8 && !j->setting->weights_only && j->setting->scale_tensor;
}

static bool draws(const mr_judged *j)
{
    const trn_numerics *n = &j->setting->numerics;
    return n->psum_format == TRN_BF16 && n->psum_rounding == TRN_STOCHASTIC;
}

/* Parts that travel token by token are computed so: each is row 0. */
static bool draws_parts(const mr_judged *j)
{
    return draws(j) && !(is_cut(j) && j->setting->reduce == MR_REDUCE_TOKEN);
}

static int64_t tile_of(const mr_judged *j) { return j->setting->numerics.k_tile ? j->setting->numerics.k_tile : 128; }

/* A single chain in a single tile: keys that are not seen add 0 before it as after it. */
static bool is_one_chain(const mr_judged *j)
{
    const trn_numerics *n = &j->setting->numerics;
    const bool chained =
        n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN || n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    const bool one = n->accumulator == TRN_ACCUMULATOR_EXACT || (chained && n->chains == 1);
    return one && j->tokens <= tile_of(j);
}

static bool by_window(const mr_judged *j)
{
    bool any = false;
    for (int64_t i = 0; i < j->config->layers; i++)
        any |= j->config->window[i] && !(j->config->chunked && j->config->window[i] % mr_key_tile(j->setting) == 0);
    return any && !j->setting->keys_aligned && !is_one_chain(j);
}

/* A block of zeros cuts PSUM where it keeps fewer bits than a result has. */
static bool by_cut(const mr_judged *j)
{
    const trn_numerics *n = &j->setting->numerics;
    const int kept = n->aligned_bits ? n->aligned_bits : 24;
    const int has = n->aligned_result_bits ? n->aligned_result_bits : 24;
    const bool aligned = n->accumulator == TRN_ACCUMULATOR_ALIGNED || n->accumulator == TRN_ACCUMULATOR_ALIGNED_LATE ||
                         n->accumulator == TRN_ACCUMULATOR_ALIGNED_HALVES;
    return aligned && kept < has - 1;
}

static bool by_flush(const mr_judged *j) { return j->setting->numerics.flush_sums; }

/* Between tiles alone: a sum that is rounded to -0 becomes +0 when the next tile adds 0. */
static bool by_psum(const mr_judged *j)
{
    return j->setting->numerics.psum_format == TRN_BF16 && j->tokens > tile_of(j);
}

#define RANDOM_ROWS "the random word of a sum is that of its row among the tokens that are multiplied together"

/* longrope. */
static bool by_length(const mr_judged *j)
{
    const mr_rope_rule *rope = j->config->rope;
    return rope[MR_ROPE_BEYOND].kind != MR_ROPE_NONE && (double)j->tokens > rope[MR_ROPE_ALL].original;
}

static const mr_cause causes[] = {
    { "ring",
      KIND(O_SUM) | KIND(DOWN_SUM) | KIND(EXPERT_SUM),
      BATCH | CHUNKS,
      by_ring,
      "a ring adds the cores' sums in an order that a number's place in the message selects, and tokens that are "
      "computed together share a message",
      { { "reduce=token", MR_PRICE_MESSAGES }, { "reduce=ordered", MR_PRICE_MESSAGES } } },
    { "depth",
      KIND(O_SUM) | KIND(DOWN_SUM) | KIND(EXPERT_SUM),
      CORES,
      by_depth,
      "each core sums its part of the depth, and rounds that to the wire's format: other cores, other parts",
      { { "split=outputs", MR_PRICE_GATHER } } },
    { "tensor scale",
      KIND(QKV) | KIND(STATE_IN) | KIND(O) | KIND(UP) | KIND(DOWN) | KIND(EXPERT_UP) | KIND(EXPERT_DOWN),
      BATCH | CHUNKS,
      by_scale,
      "the largest number of all tokens that are multiplied together sets the scale of each",
      { { "scale=token", MR_PRICE_NONE } } },
    { "stochastic PSUM",
      KIND(QKV) | KIND(STATE_IN) | KIND(UP) | KIND(ROUTER) | KIND(EXPERT_UP) | KIND(HEAD),
      BATCH | CHUNKS,
      draws,
      RANDOM_ROWS,
      { { "psum_rounding=nearest_even", MR_PRICE_NONE } } },
    { "stochastic PSUM",
      KIND(O) | KIND(DOWN) | KIND(EXPERT_DOWN),
      BATCH | CHUNKS,
      draws_parts,
      RANDOM_ROWS,
      { { "psum_rounding=nearest_even", MR_PRICE_NONE } } },
    { "stochastic PSUM of a block",
      KIND(SCORES) | KIND(MIX),
      CHUNKS,
      draws,
      "the random word of a sum is that of its row and column in a block of queries and keys",
      { { "psum_rounding=nearest_even", MR_PRICE_NONE } } },
    { "length",
      KIND(TURN),
      CHUNKS,
      by_length,
      "positions turn by other angles in a text that is longer than original_max_position_embeddings, and a piece does "
      "not know how long the text becomes",
      { { NULL, MR_PRICE_NONE } } },
    { "window",
      KIND(MIX),
      CHUNKS,
      by_window,
      "a block's keys begin with the first that its first token sees: where a prompt is cut moves keys to other "
      "chains and tiles",
      { { "keys=aligned", MR_PRICE_KEYS } } },
    { "aligned sums",
      KIND(MIX),
      CHUNKS,
      by_cut,
      "keys that are not seen are a block of zeros, and each block cuts PSUM to aligned_bits",
      { { "accumulator=nearest_even", MR_PRICE_NONE } } },
    { "flushed sums",
      KIND(MIX),
      CHUNKS,
      by_flush,
      "a sum that is flushed to -0 becomes +0 when a key that is not seen adds 0",
      { { "flush_sums=off", MR_PRICE_NONE } } },
    { "PSUM in BF16",
      KIND(MIX),
      CHUNKS,
      by_psum,
      "a sum that is rounded to -0 becomes +0 when the next tile, of keys that are not seen, adds 0",
      { { "psum_format=float32", MR_PRICE_NONE } } },
};

enum { CAUSES = sizeof causes / sizeof causes[0] };

const mr_cause *mr_cause_at(int index) { return index >= 0 && index < CAUSES ? &causes[index] : NULL; }

/* ---- verdicts ---- */

static const mr_cause *first_cause(const mr_judged *j, uint32_t of_kinds, mr_dim dim)
{
    for (int i = 0; i < CAUSES; i++)
        if (causes[i].kinds & of_kinds && causes[i].dims >> dim & 1 && causes[i].applies(j)) return &causes[i];
    return NULL;
}

/* Why an all-reduce depends on nothing; NULL: there is none. */
static const char *why_sum(const mr_judged *j, mr_dim dim)
{
    if (j->setting->split_outputs) return dim == MR_DIM_CORES ? "cores share outputs: no sum is cut" : NULL;
    if (!is_cut(j)) return NULL;
    if (j->setting->reduce == MR_REDUCE_TOKEN) return "a message is one token: a number's place in it never changes";
    if (j->setting->reduce == MR_REDUCE_ORDERED) return "cores are added in the order of their numbers, everywhere";
    return "two cores' sums have one sum, whichever comes first";
}

/* Of products whose activations have scales. */
static const char *why_scaled(const mr_judged *j, mr_kind kind)
{
    static const char *const why[] = { [MR_CODES_FP8] = ORDER_OF_K "; a token has a scale of its own",
                                       [MR_CODES_MX] = ORDER_OF_K "; blocks with a scale are of one token" };
    const bool is = scaled >> kind & 1 && j->setting->codes != MR_CODES_AS_ACT && !j->setting->weights_only;
    return is ? why[j->setting->codes] : kinds[kind].rows;
}

/* What cores hold of the depth cannot be compared: only what their sums add up to. */
static bool is_part(mr_kind kind) { return kind == MR_KIND_O || kind == MR_KIND_DOWN || kind == MR_KIND_EXPERT_DOWN; }

static const char *why_not(const mr_judged *j, mr_kind kind, mr_dim dim)
{
    if (sums >> kind & 1) return why_sum(j, dim);
    return dim == MR_DIM_CORES ? kinds[kind].cores : why_scaled(j, kind);
}

mr_verdict mr_verdict_of(const mr_judged *j, mr_kind kind, mr_dim dim)
{
    const uint32_t of = kind == MR_KIND_MODEL ? UINT32_MAX : UINT32_C(1) << kind;
    const mr_cause *cause = first_cause(j, of, dim);
    mr_verdict v = { cause ? MR_SAYS_DEPENDS : MR_SAYS_SAME, cause, cause ? cause->why : why_not(j, kind, dim) };
    if (!v.why || (dim == MR_DIM_CORES && is_part(kind))) v = (mr_verdict){ .says = MR_SAYS_NOTHING };
    return v;
}

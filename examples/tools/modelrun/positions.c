/* positions.c - of a config.json: how positions turn heads, in which layers, and how queries grow with them.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: transformers 4.45 to 5.0, modeling_rope_utils.py and the configuration classes.
 */
#include "reading.h"

#include <math.h>

/* ---- kinds of scaling ---- */

static void read_llama3(hf_reader *r, mr_config *c, mr_rope_rule *rope)
{
    (void)c;
    rope->low_freq = mr_real(r, "low_freq_factor", 1e-6, 1e6, 1);
    rope->high_freq = mr_real(r, "high_freq_factor", 1e-6, 1e6, 4);
    if (rope->high_freq < rope->low_freq) /* Llama 4 Scout's are equal */
        hf_fail(r, "its 'high_freq_factor' %.6g is below its 'low_freq_factor' %.6g", rope->high_freq, rope->low_freq);
}

/* 0.1 m ln(factor) + 1, what YaRN multiplies attention by. */
static double yarn_scale(double factor, double m) { return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1; }

static void read_yarn(hf_reader *r, mr_config *c, mr_rope_rule *rope)
{
    rope->beta_fast = mr_real(r, "beta_fast", 0, 1e6, 32);
    rope->beta_slow = mr_real(r, "beta_slow", 0, 1e6, 1);
    if (rope->beta_fast == 0) rope->beta_fast = 32;
    if (rope->beta_slow == 0) rope->beta_slow = 1;
    rope->truncate = hf_flag(r, "truncate", true);
    if (rope->factor == 0) rope->factor = fmax(1, (double)c->positions / rope->original);
    const double m = mr_real(r, "mscale", 0, 1e6, 0), all = mr_real(r, "mscale_all_dim", 0, 1e6, 0);
    const double usual =
        m > 0 && all > 0 ? yarn_scale(rope->factor, m) / yarn_scale(rope->factor, all) : yarn_scale(rope->factor, 1);
    rope->attention = mr_real(r, "attention_factor", 1e-6, 1e6, usual);
}

static void read_linear(hf_reader *r, mr_config *c, mr_rope_rule *rope)
{
    (void)c;
    if (rope->factor == 0) hf_fail(r, "its scaling of positions has no 'factor'");
}

static void read_divisors(hf_reader *r, const char *field, int64_t pairs, float *divide)
{
    const cJSON *list = mr_list(r, field), *item;
    int64_t n = 0;
    if (r->why[0]) return;
    if (!list || cJSON_GetArraySize(list) != pairs || pairs > MR_PAIRS) {
        hf_fail(r, "its '%s' is not a list of %lld numbers, one for each pair that turns%s", field, (long long)pairs,
                pairs > MR_PAIRS ? "; 256 are supported" : "");
        return;
    }
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1e-6 && item->valuedouble <= 1e9)) {
            hf_fail(r, "its '%s' has something that is no number from 1e-06 to 1e+09", field);
            return;
        }
        divide[n++] = (float)item->valuedouble;
    }
}

/* Two lists: one of texts up to the original length, one of longer texts, which becomes a rule of its own. */
static void read_longrope(hf_reader *r, mr_config *c, mr_rope_rule *rope)
{
    mr_rope_rule *beyond = &c->rope[MR_ROPE_BEYOND];
    if (rope->factor == 0) rope->factor = (double)c->positions / rope->original;
    const double usual = rope->factor <= 1 ? 1 : sqrt(1 + log(rope->factor) / log(rope->original));
    rope->attention = mr_real(r, "attention_factor", 1e-6, 1e6, usual);
    *beyond = *rope;
    read_divisors(r, "short_factor", c->rope_dim / 2, rope->divide);
    read_divisors(r, "long_factor", c->rope_dim / 2, beyond->divide);
    if (rope->original <= 1) hf_fail(r, "its 'original_max_position_embeddings' is not above 1");
}

/* Up to max_position_embeddings, and no text goes beyond, "dynamic" changes nothing. */
static const struct {
    const char *name;
    mr_rope kind;
    void (*read)(hf_reader *r, mr_config *c, mr_rope_rule *rope);
} rope_kind[] = {
    { "default", MR_ROPE_DEFAULT, NULL },      { "dynamic", MR_ROPE_DEFAULT, NULL },
    { "linear", MR_ROPE_LINEAR, read_linear }, { "llama3", MR_ROPE_LLAMA3, read_llama3 },
    { "yarn", MR_ROPE_YARN, read_yarn },       { "longrope", MR_ROPE_LONG, read_longrope },
};

static const char *kind_named(hf_reader *r, const mr_config *c)
{
    const char *type = mr_word(r, "rope_type", mr_word(r, "type", "default"));
    const bool old = mr_is(c, MR_SU) && (strcmp(type, "su") == 0 || strcmp(type, "yarn") == 0);
    return old ? "longrope" : type;
}

/* ---- one rule ---- */

/* The length of texts before scaling: beside the object it comes first, as in Phi-3's files. */
static double read_original(hf_reader *file, hf_reader *r, const mr_config *c)
{
    const double inner = mr_real(r, "original_max_position_embeddings", 1, 1e9, (double)c->positions);
    return mr_real(file, "original_max_position_embeddings", 1, 1e9, mr_is(c, MR_SU) ? 4096 : inner);
}

static void read_growth(hf_reader *r, mr_config *c, const mr_rope_rule *rope)
{
    const double beta = mr_real(r, "llama_4_scaling_beta", 0, 1e6, -1);
    if (beta > 0 && !mr_is(c, MR_GROWING))
        hf_fail(r, "its 'llama_4_scaling_beta' is %.6g, which is not supported for %s", beta, c->type);
    if (!mr_is(c, MR_GROWING)) return;
    if (beta < 0) hf_fail(r, "its positions have no 'llama_4_scaling_beta'");
    c->query = (mr_query_rule){ .beta = beta, .length = rope->original };
}

static void refuse_turned(hf_reader *r, const mr_config *c)
{
    if (c->family->turned == 0 && mr_real(r, "partial_rotary_factor", 0, 1, 1) != 1)
        hf_fail(r, "its 'partial_rotary_factor' is not 1, and heads that turn in part are not supported");
}

static void read_rule(hf_reader *file, hf_reader *r, mr_config *c, mr_rope_rule *rope)
{
    enum { kinds = sizeof rope_kind / sizeof rope_kind[0] };
    const char *type = kind_named(r, c);
    int i = 0;
    while (i < kinds && strcmp(rope_kind[i].name, type) != 0) i++;
    if (i == kinds) {
        hf_fail(r, "its scaling of positions is '%.64s'; known are default, dynamic, linear, llama3, yarn and longrope",
                type);
        return;
    }
    rope->kind = rope_kind[i].kind;
    rope->theta = mr_real(r, "rope_theta", 1, 1e12, rope->theta);
    rope->factor = mr_real(r, "factor", 1e-6, 1e6, 0);
    rope->original = read_original(file, r, c);
    if (rope_kind[i].read) rope_kind[i].read(r, c, rope);
    if (rope->factor == 0) rope->factor = 1;
    const double all = mr_real(r, "mscale_all_dim", 0, 1e6, 0), m = yarn_scale(rope->factor, all);
    if (mr_is(c, MR_LATENT) && rope->kind != MR_ROPE_DEFAULT && all > 0) c->attention_scale *= m * m;
    read_growth(r, c, rope);
    refuse_turned(r, c);
}

/* ---- how much of a head turns ---- */

/* A share, in the file or in the object of positions, or a number of dimensions in a field of the family's. */
static void read_turned(hf_reader *file, hf_reader *object, mr_config *c)
{
    const mr_family *f = c->family;
    const double missing = -1, inner = object ? mr_real(object, "partial_rotary_factor", 0, 1, missing) : missing;
    double share = mr_real(file, "partial_rotary_factor", 0, 1, inner);
    if (share == missing) share = f->turned > 0 ? f->turned : 1;
    if (inner != missing && inner != share)
        hf_fail(file, "its 'partial_rotary_factor' is %.6g, and %.6g in another place", share, inner);
    c->rope_dim = (int64_t)((double)c->head_dim * share);
    if (f->turned_field) c->rope_dim = hf_number(file, f->turned_field, 2, c->head_dim, c->rope_dim);
    if (!file->why[0] && (c->rope_dim < 2 || c->rope_dim % 2))
        hf_fail(file, "%lld of its %lld dimensions of a head turn, which are no pairs", (long long)c->rope_dim,
                (long long)c->head_dim);
}

/* ---- all rules ---- */

static mr_rope_rule usual_rule(hf_reader *r, const char *field, double theta)
{
    return (mr_rope_rule){
        .kind = MR_ROPE_DEFAULT, .theta = mr_real(r, field, 1, 1e12, theta), .factor = 1, .attention = 1
    };
}

/* Gemma 3: layers with a window turn faster; only the others are scaled. */
static void read_two_rules(hf_reader *r, mr_config *c)
{
    hf_reader object, nested;
    c->rope[MR_ROPE_ALL] = usual_rule(r, "rope_theta", c->family->theta);
    c->rope[MR_ROPE_WINDOW] = usual_rule(r, "rope_local_base_freq", 10000);
    const bool both = mr_inside(r, "rope_parameters", &object), scaled = mr_inside(r, "rope_scaling", &nested);
    if (both && scaled) {
        hf_fail(r, "it has 'rope_parameters' and 'rope_scaling', and one alone is supported");
        return;
    }
    if (scaled) read_rule(r, &nested, c, &c->rope[MR_ROPE_ALL]);
    if (both && !cJSON_GetObjectItemCaseSensitive(object.root, "full_attention"))
        hf_fail(r, "its 'rope_parameters' have no 'full_attention'");
    if (both && mr_inside(&object, "full_attention", &nested)) read_rule(r, &nested, c, &c->rope[MR_ROPE_ALL]);
    if (both && mr_inside(&object, "sliding_attention", &nested)) read_rule(r, &nested, c, &c->rope[MR_ROPE_WINDOW]);
    for (int i = 0; i < MR_ROPES; i++)
        if (c->rope[i].kind == MR_ROPE_LONG)
            hf_fail(r, "its scaling of positions is longrope, which is not supported for %s", c->type);
}

/* Of rope_parameters (transformers 5) or rope_theta and rope_scaling. */
static void read_one_rule(hf_reader *r, mr_config *c)
{
    hf_reader object, nested;
    mr_rope_rule *rope = &c->rope[MR_ROPE_ALL];
    const bool named = mr_inside(r, "rope_parameters", &object) || mr_inside(r, "rope_scaling", &object);
    if (c->family->turned > 0) read_turned(r, named ? &object : NULL, c);
    *rope = usual_rule(r, "rope_theta", c->family->theta);
    if (named && (mr_inside(&object, "full_attention", &nested) || mr_inside(&object, "sliding_attention", &nested)))
        hf_fail(r, "its 'rope_parameters' differ by the kind of layer, which is not supported");
    if (named)
        read_rule(r, &object, c, rope);
    else if (c->family->rope) { /* the class's own default */
        const double theta = rope->theta;
        *rope = *c->family->rope;
        if (rope->theta == 0) rope->theta = theta;
        if (c->family->beta > 0) c->query = (mr_query_rule){ .beta = c->family->beta, .length = rope->original };
    }
}

/* Llama 4: 1 for a layer that turns, 0 for one that does not; else every fourth does not. */
static void read_unturned(hf_reader *r, mr_config *c)
{
    const cJSON *list = mr_list(r, "no_rope_layers"), *item = list ? list->child : NULL;
    const int64_t step = hf_number(r, "no_rope_layer_interval", 1, 1 << 20, 4);
    const bool named = item != NULL;
    if (named && cJSON_GetArraySize(list) < c->layers) {
        hf_fail(r, "its 'no_rope_layers' is not a list of %lld numbers", (long long)c->layers);
        return;
    }
    for (int64_t i = 0; i < c->layers; i++, item = item ? item->next : NULL) {
        if (named && (!cJSON_IsNumber(item) || (item->valuedouble != 0 && item->valuedouble != 1)))
            hf_fail(r, "its 'no_rope_layers' has something that is neither 0 nor 1");
        const bool turns = named ? item->valuedouble != 0 : (i + 1) % step != 0;
        c->turn[i] = turns ? MR_ROPE_ALL : -1;
    }
    if (!mr_truth(r, "attn_temperature_tuning", true)) return;
    c->query = (mr_query_rule){ .beta = mr_real(r, "attn_scale", 0, 1e6, 0.1),
                                .length = mr_real(r, "floor_scale", 1, 1e12, 8192),
                                .offset = 1,
                                .unturned = true };
}

void mr_read_positions(hf_reader *r, mr_config *c)
{
    if (mr_is(c, MR_GPT2 | MR_PLACES | MR_NEMOTRON)) return; /* nothing turns */
    refuse_turned(r, c);
    if (mr_is(c, MR_WINDOW_PATTERN))
        read_two_rules(r, c);
    else
        read_one_rule(r, c);
    if (mr_is(c, MR_CHUNKS)) read_unturned(r, c);
}

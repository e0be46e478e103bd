/* setting.c - the settings, one row each, and their text: words between commas, read from left to right.
 * SPDX-License-Identifier: MIT
 */
#include "engine.h"

#include <stdlib.h>

/* ---- words that change one thing ---- */

typedef bool take(mr_setting *s, int value, char *why);

static bool take_act(mr_setting *s, int value, char *why)
{
    (void)why;
    s->reference = false;
    s->act = (trn_format)value;
    return true;
}

static bool take_fp8(mr_setting *s, int value, char *why)
{
    (void)why;
    s->reference = false;
    s->codes = MR_CODES_FP8;
    s->way = (mr_way)value;
    return true;
}

static bool take_mx(mr_setting *s, int value, char *why)
{
    (void)why;
    s->reference = false;
    s->codes = MR_CODES_MX;
    s->weight_codes = (trn_format)value;
    return true;
}

static bool take_weights_only(mr_setting *s, int value, char *why)
{
    (void)value;
    if (s->codes == MR_CODES_AS_ACT) return app_refuse(why, "it follows fp8=... or mxfp8 or mxfp4");
    return s->weights_only = true;
}

static bool take_kv(mr_setting *s, int value, char *why)
{
    if (s->reference) return app_refuse(why, "the reference keeps keys and values as they are; begin with bf16");
    s->kv_fp8 = value != 0;
    return true;
}

static bool take_wire(mr_setting *s, int value, char *why)
{
    (void)why;
    s->wire = (trn_format)value;
    return true;
}

static bool take_reduce(mr_setting *s, int value, char *why)
{
    if (s->reference) return app_refuse(why, "the reference has one core; begin with bf16");
    if (s->split_outputs && value != MR_REDUCE_RING)
        return app_refuse(why, "there is no all-reduce where cores share outputs (split=outputs)");
    s->reduce = (mr_reduce)value;
    return true;
}

/* What was said of the all-reduce before goes with it. */
static bool take_split(mr_setting *s, int value, char *why)
{
    if (s->reference) return app_refuse(why, "the reference has one core; begin with bf16");
    s->split_outputs = value != 0;
    if (value) s->reduce = MR_REDUCE_RING;
    return true;
}

static bool take_scale(mr_setting *s, int value, char *why)
{
    if (s->codes != MR_CODES_FP8) return app_refuse(why, "it follows fp8=...: only FP8 activations have such scales");
    s->scale_tensor = value != 0;
    return true;
}

static bool take_keys(mr_setting *s, int value, char *why)
{
    if (s->reference) return app_refuse(why, "the reference has no tiles; begin with bf16");
    s->keys_aligned = value != 0;
    return true;
}

static bool take_ideal(mr_setting *s, int value, char *why)
{
    (void)why;
    s->ideal = value != 0;
    return true;
}

static bool take_generation(mr_setting *s, int value, char *why)
{
    (void)why;
    s->reference = false;
    s->generation = (trn_generation)value;
    return true;
}

static bool take_reference(mr_setting *s, int value, char *why)
{
    (void)value;
    (void)why;
    s->reference = true;
    return true;
}

static const struct {
    const char *word;
    take *apply;
    int value;
    const char *about;
} words[] = {
    { "f32", take_reference, 0, "the reference: binary32, sums in binary64, functions of the C library" },
    { "bf16", take_act, TRN_BF16, "BF16 weights and results, products summed in binary32, the engine's functions" },
    { "f16", take_act, TRN_F16, "the same in F16" },
    { "fp32", take_act, TRN_F32, "the same in F32 on the engines: only order of sums and functions differ" },
    { "fp8=halve", take_fp8, MR_HALVE, "FP8 of 448, codes halved to 240; activations in FP8, a scale for each token" },
    { "fp8=ratio", take_fp8, MR_RATIO, "FP8 of 448, codes divided by 448/240: the vendor's recipe" },
    { "fp8=requant", take_fp8, MR_REQUANT, "FP8 of 448, dequantised and quantised again with scales for 240" },
    { "mxfp8", take_mx, TRN_F8_E4M3FN, "MXFP8 weights and activations (Trainium3)" },
    { "mxfp4", take_mx, TRN_F4_E2M1, "MXFP4 weights, MXFP8 activations (Trainium3)" },
    { "weights-only", take_weights_only, 0, "after fp8=... or mx...: activations stay, and weights are dequantised" },
    { "kv=fp8", take_kv, 1, "keys and values rounded to FP8 of 240, without a scale" },
    { "kv=act", take_kv, 0, "keys and values as all results" },
    { "wire=bf16", take_wire, TRN_BF16, "of all-reduces (the default)" },
    { "wire=f32", take_wire, TRN_F32, "of all-reduces" },
    { "wire=f16", take_wire, TRN_F16, "of all-reduces" },
    { "reduce=ring", take_reduce, MR_REDUCE_RING, "all-reduces: a ring, messages of up to 64 tokens (the default)" },
    { "reduce=token", take_reduce, MR_REDUCE_TOKEN, "a ring, but a message for each token" },
    { "reduce=ordered", take_reduce, MR_REDUCE_ORDERED,
      "each core sends its sums to all, and adds them in their order" },
    { "split=depth", take_split, 0, "tp=N: cores share the depth of those products, and sums meet (the default)" },
    { "split=outputs", take_split, 1, "tp=N: cores share outputs: activations travel, sums do not" },
    { "scale=token", take_scale, 0, "after fp8=...: a scale for each token's activations (the default)" },
    { "scale=tensor", take_scale, 1, "after fp8=...: one scale for all tokens that are multiplied together" },
    { "keys=first", take_keys, 0, "windows: keys begin with the first that is seen (the default)" },
    { "keys=aligned", take_keys, 1, "windows: keys begin with the tile of the first that is seen" },
    { "act=table", take_ideal, 0, "the Scalar engine's tables of cubics (the default)" },
    { "act=ideal", take_ideal, 1, "functions of the C library, rounded to binary32, in place of the tables" },
    { "trn1", take_generation, TRN_TRAINIUM1, "the first generation's defaults" },
    { "trn2", take_generation, TRN_TRAINIUM2, "the second's" },
    { "trn3", take_generation, TRN_TRAINIUM3, "the third's" },
};

/* ---- what is run unless something is asked for; names that --setting takes whole ---- */

static const struct {
    const char *name, *text, *about;
} rows[] = {
    { "f32", "f32", "the reference: binary32, sums in binary64, functions of the C library" },
    { "bf16", "bf16", "BF16 weights and results, products summed in binary32, the engine's functions" },
    { "fp8-halve", "bf16,fp8=halve", "FP8 of 448, codes halved to 240" },
    { "fp8-ratio", "bf16,fp8=ratio", "FP8 of 448, codes divided by 448/240" },
    { "fp8-requant", "bf16,fp8=requant", "FP8 of 448, quantised again for 240" },
    { "mxfp8", "bf16,mxfp8", "MXFP8 weights and activations" },
    { "mxfp4", "bf16,mxfp4", "MXFP4 weights, MXFP8 activations" },
    { "kv-fp8", "bf16,kv=fp8", "BF16 with keys and values in FP8" },
    { "tp8", "bf16,tp=8", "BF16, all-reduces of 8 cores" },
    { "tp16", "bf16,tp=16", "BF16, all-reduces of 16 cores" },
    { "tp64", "bf16,tp=64", "BF16, all-reduces of 64 cores" },
    { "trn1", "bf16,trn1", "BF16 on the first generation" },
    { "trn2", "bf16,trn2", "BF16 on the second" },
    { "trn3", "bf16,trn3", "BF16 on the third" },
    { "chains-1", "bf16,chains=1", "BF16, one chain of partial sums" },
};

enum { WORDS = sizeof words / sizeof words[0], ROWS = sizeof rows / sizeof rows[0] };

const char *mr_setting_row(int index, const char **text, const char **about)
{
    if (index < 0 || index >= ROWS) return NULL;
    if (text) *text = rows[index].text;
    if (about) *about = rows[index].about;
    return rows[index].name;
}

const char *mr_setting_word(int index, const char **about)
{
    if (index < 0 || index >= WORDS) return NULL;
    if (about) *about = words[index].about;
    return words[index].word;
}

/* ---- reading ---- */

typedef struct reading {
    mr_setting *s;
    char numerics[TRN_NUMERICS_TEXT]; /* what is left for trn_numerics_parse */
} reading;

static bool take_item(void *into, const char *item, char *why)
{
    reading *r = into;
    for (int i = 0; i < WORDS; i++)
        if (strcmp(words[i].word, item) == 0) return words[i].apply(r->s, words[i].value, why);
    if (strncmp(item, "tp=", 3) == 0) {
        int64_t tp;
        if (!app_parse_int(item + 3, 1, 64, &tp, why)) return false;
        r->s->tp = (int)tp;
        return true;
    }
    const size_t used = strlen(r->numerics);
    if (used + strlen(item) + 2 > sizeof r->numerics) return app_refuse(why, "it is too long");
    sprintf(r->numerics + used, "%s%s", used ? "," : "", item);
    return true;
}

static bool check(const reading *r, char *why)
{
    const mr_setting *s = r->s;
    if (s->reference && (r->numerics[0] || s->tp > 1 || s->codes))
        return app_refuse(why, "f32 is the reference and takes nothing else; fp32 is the engines' binary32");
    const trn_generation g = s->generation;
    if (s->codes == MR_CODES_MX && g && g != TRN_TRAINIUM3) return app_refuse(why, "only trn3 multiplies MX");
    if (s->codes == MR_CODES_FP8 && g == TRN_TRAINIUM1)
        return app_refuse(why, "trn1 has no FP8 of 240 codes that is scaled like this; take trn2 or trn3");
    if (s->codes && s->act == TRN_F32 && s->weights_only)
        return app_refuse(why, "weights-only needs activations of 16 bits");
    return true;
}

static int64_t common(int64_t a, int64_t b) { return b ? common(b, a % b) : a; }

/* Keys after which tiles, chains and blocks of products begin again: 64 is a multiple of all but tiles. */
int64_t mr_key_tile(const mr_setting *s)
{
    const int64_t tile = s->numerics.k_tile ? s->numerics.k_tile : 128;
    return tile / common(tile, 64) * 64;
}

/* A row's name, or words; numerics are those of trn_numerics_parse. */
bool mr_setting_parse(const char *text, mr_setting *s, char *why)
{
    reading r = { .s = s };
    memset(s, 0, sizeof *s);
    s->act = TRN_BF16;
    s->wire = TRN_BF16;
    s->tp = 1;
    s->about = "";
    if (strlen(text) >= sizeof s->name) return app_refuse(why, "it is too long");
    strcpy(s->name, text);
    if (!*text) return app_refuse(why, "it is empty");
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, text) == 0) {
            s->about = rows[i].about;
            text = rows[i].text;
            break;
        }
    if (!app_parse_list(text, take_item, &r, why) || !check(&r, why)) return false;
    if (!r.numerics[0])
        s->numerics = trn_numerics_default(s->generation);
    else if (!app_parse_numerics(r.numerics, &s->numerics, why))
        return strchr(r.numerics, '=') ? false
                                       : app_fail(why,
                                                  "'%.100s' is neither a setting, nor a word of one, nor numerics; "
                                                  "--list shows them",
                                                  r.numerics);
    return true;
}

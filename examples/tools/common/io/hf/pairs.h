/* hf/pairs.h - models that are two: an encoder and its decoder, a tower of texts and one of images; and images that a
 * condition steers.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 *
 * One of the two is read, and told of by r->part. KNOWN FROM: T5Config, WhisperConfig, CLIPConfig of transformers 4.57,
 * DiTTransformer2DModel of diffusers 0.35, and the modelling code beside them. Counted a little wrong, all of it below
 * 0.1 % of the parameters: T5's 32 biases of distances a head, the bias of keys that whisper does not have, the second
 * norm at the end of CLIP's images and the biases that its projections do not have.
 */
#ifndef HF_PAIRS_H
#define HF_PAIRS_H

#include "encoders.h"

/* Is one of the family's two parts meant? */
HF_FN bool hf_check_part(hf_reader *r)
{
    const bool halves = hf_has(r, HF_HALVES), towers = hf_has(r, HF_TOWERS);
    if (halves && r->decodes && r->part == HF_WHOLE) r->part = HF_DECODER_PART;
    const bool one = (halves && (r->part == HF_ENCODER_PART || r->part == HF_DECODER_PART)) ||
                     (towers && (r->part == HF_TEXT_PART || r->part == HF_IMAGE_PART));
    if (one || (!halves && !towers && r->part == HF_WHOLE)) return true;
    if (!halves && !towers)
        return hf_fail(r, "%s is one model: it has no part '%s'", r->family->type, hf_part_name(r->part));
    return hf_fail(r, "%s is two models, %s and %s, each of which has a plan of its own (part)", r->family->type,
                   halves ? "encoder" : "text", halves ? "decoder" : "image");
}

/* Each token of an encoder is met once, and what it becomes is not projected to a vocabulary. */
HF_FN void hf_read_t5(hf_reader *r, trn_model *m)
{
    const bool decoder = r->part == HF_DECODER_PART, multilingual = hf_is(r, "mt5");
    const char *said = hf_text(r, "feed_forward_proj"), *kind = said ? said : multilingual ? "gated-gelu" : "relu";
    const int64_t layers = hf_number(r, "num_layers", 1, 4096, HF_NEEDED);
    const int64_t decoding = hf_number(r, "num_decoder_layers", 1, 4096, layers);
    m->layers = decoder ? decoding : layers;
    m->hidden = hf_number(r, "d_model", 1, 1 << 20, HF_NEEDED);
    m->heads = hf_number(r, "num_heads", 1, 1 << 14, HF_NEEDED);
    m->head_dim = hf_number(r, "d_kv", 1, 1 << 14, HF_NEEDED);
    m->intermediate = hf_number(r, "d_ff", 1, 1 << 22, HF_NEEDED);
    m->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
    m->plain_mlp = strncmp(kind, "gated-", 6) != 0;
    m->tied_embeddings = hf_flag(r, "tie_word_embeddings", !multilingual);
    m->bidirectional = !decoder;
    m->norms = decoder ? 3 : 2;
    if (decoder) m->cross = r->positions ? r->positions : hf_number(r, "n_positions", 1, 1 << 24, 512);
    if (decoder) hf_note(r, "the decoder looks at %lld positions of the encoder in every layer", (long long)m->cross);
}

/* Two convolutions make a vector of every other frame: the second is a patch of three vectors, the first is counted
 * once for each of two frames. */
HF_FN void hf_read_whisper(hf_reader *r, trn_model *m)
{
    const bool decoder = r->part == HF_DECODER_PART;
    const int64_t bins = hf_number(r, "num_mel_bins", 1, 1 << 10, 80);
    const int64_t frames = hf_number(r, "max_source_positions", 1, 1 << 24, 1500);
    const int64_t tokens = hf_number(r, "max_target_positions", 1, 1 << 24, 448);
    m->layers = hf_number(r, decoder ? "decoder_layers" : "encoder_layers", 1, 4096, HF_NEEDED);
    m->heads = hf_number(r, decoder ? "decoder_attention_heads" : "encoder_attention_heads", 1, 1 << 14, HF_NEEDED);
    m->intermediate = hf_number(r, decoder ? "decoder_ffn_dim" : "encoder_ffn_dim", 1, 1 << 22, HF_NEEDED);
    m->hidden = hf_number(r, "d_model", 1, 1 << 20, HF_NEEDED);
    m->positions = m->longest = decoder ? tokens : frames;
    m->norms = decoder ? 3 : 2;
    m->bidirectional = !decoder;
    if (decoder) {
        m->vocab = hf_number(r, "vocab_size", 1, 1 << 24, HF_NEEDED);
        m->cross = r->positions ? r->positions : frames;
        m->tied_embeddings = true;
        hf_note(r, "the decoder looks at %lld positions of the encoder in every layer", (long long)m->cross);
    } else {
        m->patch_inputs = 3 * m->hidden + 2 * 3 * bins;
        m->no_class_token = true;
    }
}

/* The object of one tower takes the place of the file. */
HF_FN bool hf_enter(hf_reader *r, const char *field)
{
    io_json text;
    const cJSON *inner = hf_field(r, field, &text);
    if (!cJSON_IsObject(inner)) return hf_fail(r, "it has no '%s', which %s needs", field, r->family->type);
    r->root = inner;
    r->text = io_json_members(&text);
    if (r->seen) memset(r->seen, 0, HF_KEYS * sizeof *r->seen);
    return true;
}

HF_FN void hf_read_clip(hf_reader *r, trn_model *m)
{
    const bool images = r->part == HF_IMAGE_PART;
    const int64_t projected = hf_number(r, "projection_dim", 1, 1 << 20, 512);
    if (!hf_enter(r, images ? "vision_config" : "text_config")) return;
    hf_mark_seen(r, "projection_dim"); /* each tower repeats it */
    m->layers = hf_number(r, "num_hidden_layers", 1, 4096, 12);
    m->hidden = hf_number(r, "hidden_size", 1, 1 << 20, images ? 768 : 512);
    m->heads = hf_number(r, "num_attention_heads", 1, 1 << 14, images ? 12 : 8);
    m->intermediate = hf_number(r, "intermediate_size", 1, 1 << 22, images ? 3072 : 2048);
    m->classes = projected;
    m->norms = 2;
    m->bidirectional = true;
    if (images) {
        const int64_t image = hf_number(r, "image_size", 1, 1 << 16, 224),
                      patch = hf_number(r, "patch_size", 1, 1 << 12, 32);
        m->patch_inputs = patch * patch * hf_number(r, "num_channels", 1, 1 << 10, 3);
        m->no_patch_bias = true;
        m->positions = m->longest = image / patch * (image / patch) + 1;
        return;
    }
    m->vocab = hf_number(r, "vocab_size", 1, 1 << 24, 49408);
    m->positions = m->longest = hf_number(r, "max_position_embeddings", 1, 1 << 24, 77);
    hf_note(r, "texts: the masked half of the scores is counted, too");
}

/* Every block makes six vectors of the condition (adaLN-Zero), and, as diffusers has it, the condition itself: of 256
 * numbers of the time, and of a row of num_embeds_ada_norm. Its norms have no weights. */
HF_FN void hf_read_dit(hf_reader *r, trn_model *m)
{
    const int64_t size = hf_number(r, "sample_size", 1, 1 << 16, 32), patch = hf_number(r, "patch_size", 1, 1 << 12, 2);
    const int64_t in = hf_number(r, "in_channels", 1, 1 << 10, 4), out = hf_number(r, "out_channels", 1, 1 << 10, in);
    const int64_t classes = hf_number(r, "num_embeds_ada_norm", 1, 1 << 24, 1000);
    const char *norm = hf_text(r, "norm_type");
    if (norm && strcmp(norm, "ada_norm_zero") != 0)
        hf_fail(r, "its 'norm_type' is '%.40s', and only 'ada_norm_zero' is planned", norm);
    m->layers = hf_number(r, "num_layers", 1, 4096, 28);
    m->heads = hf_number(r, "num_attention_heads", 1, 1 << 14, 16);
    m->head_dim = hf_number(r, "attention_head_dim", 1, 1 << 14, 72);
    m->hidden = m->heads * m->head_dim;
    m->intermediate = 4 * m->hidden;
    m->patch_inputs = patch * patch * in;
    m->no_class_token = true;
    m->longest = size / patch * (size / patch);
    m->bidirectional = true;
    m->classes = patch * patch * out;
    m->norms = 1;
    m->condition = 6 * m->hidden + 256 + m->hidden + classes + 1 + 2 * m->hidden / m->layers;
    if (size % patch) hf_fail(r, "its 'sample_size' does not divide by its 'patch_size'");
    hf_note(r, "a pass is one step of denoising; the autoencoder is not planned");
}

/* What the other half of a model asks for. */
HF_FN void hf_mark_halves(hf_reader *r)
{
    static const char *const name[] = { "num_layers",
                                        "num_decoder_layers",
                                        "num_hidden_layers",
                                        "encoder_layers",
                                        "encoder_attention_heads",
                                        "encoder_ffn_dim",
                                        "decoder_layers",
                                        "decoder_attention_heads",
                                        "decoder_ffn_dim",
                                        "num_mel_bins",
                                        "max_source_positions",
                                        "max_target_positions",
                                        "vocab_size",
                                        "dropout_rate" };
    for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) hf_mark_seen(r, name[i]);
}

HF_FN void hf_read_pair(hf_reader *r, trn_model *m)
{
    const struct {
        const char *type;
        void (*read)(hf_reader *, trn_model *);
    } row[] = { { "t5", hf_read_t5 },
                { "mt5", hf_read_t5 },
                { "whisper", hf_read_whisper },
                { "clip", hf_read_clip },
                { "DiTTransformer2DModel", hf_read_dit } };
    hf_read_biases(r, m);
    if (hf_has(r, HF_HALVES)) hf_mark_halves(r);
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (hf_is(r, row[i].type)) row[i].read(r, m);
}

#endif /* HF_PAIRS_H */

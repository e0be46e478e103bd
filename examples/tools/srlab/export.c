/* export.c - a trained transformer as a Hugging Face folder: config.json, model.safetensors, tokenizer.json.
 * SPDX-License-Identifier: MIT
 *
 * No published family has RMS norms, learned positions and a plain MLP, so the model_type is our own, srlab_char; the
 * fields and the tensors have Llama's names, and every matrix is [out, in]:
 *
 *     x = model.embed_tokens[token] + model.embed_positions[place]
 *     for each layer i, of model.layers.i:
 *         x += self_attn.o_proj(attention(q_proj, k_proj, v_proj of input_layernorm(x))), no bias, no rotation
 *         x += mlp.down_proj(gelu(mlp.up_proj(post_attention_layernorm(x)))), the GELU of erf
 *     logits = lm_head(model.norm(x))
 *
 * Norms divide by sqrt(mean(x^2) + rms_norm_eps). Weights are F32 or BF16, as the arm has them: no bit is lost.
 */
#define _POSIX_C_SOURCE 200809L

#include "transformer.h"

#include <stdlib.h>
#include <string.h>

#if defined(HAVE_CJSON)

#include "io/alphabet.h"
#include "io/safetensors.h"
#include "io/stage.h"

static struct {
    io_stage stage;
    char why[IO_WHY]; /* empty: nothing is wrong */
} folder;

bool sr_export_open(const sr_settings *s, char *why)
{
    const io_stage_args args = { .path = s->export_to, .folder = true, .instead = "name another" };
    if (!s->export_to) return true;
    return io_stage_open(&args, &folder.stage, why);
}

bool sr_export_ready(struct io_stage **stage, char *why)
{
    *stage = folder.stage.open ? &folder.stage : NULL;
    return !folder.why[0] || app_refuse(why, folder.why);
}

void sr_export_close(void) { io_stage_discard(&folder.stage); }

/* ---- config.json ---- */

static bool bf16(const sr_model *m) { return m->weights.arm->weights == TRN_BF16; }

static void print_config(FILE *out, const sr_model *m)
{
    const tf_shape *p = &m->shape;
    fprintf(out,
            "{\n  \"architectures\": [\"SrlabCharForCausalLM\"],\n  \"model_type\": \"srlab_char\",\n"
            "  \"vocab_size\": %d,\n  \"hidden_size\": %d,\n  \"intermediate_size\": %d,\n"
            "  \"num_hidden_layers\": %d,\n  \"num_attention_heads\": %d,\n  \"max_position_embeddings\": %d,\n",
            p->symbols, p->width, 4 * p->width, p->layers, p->heads, p->context);
    fprintf(out,
            "  \"hidden_act\": \"gelu\",\n  \"rms_norm_eps\": 1e-06,\n  \"tie_word_embeddings\": false,\n"
            "  \"torch_dtype\": \"%s\"\n}\n",
            bf16(m) ? "bfloat16" : "float32");
}

/* ---- tokenizer.json: a token for each symbol, no merges ---- */

static void print_letter(FILE *out, unsigned char letter)
{
    unsigned char text[4];
    const size_t n = tok_put(text, letter);
    fprintf(out, letter == '"' || letter == '\\' ? "\"\\%.*s\"" : "\"%.*s\"", (int)n, (const char *)text);
}

static void print_tokenizer(FILE *out, const sr_model *m)
{
    fputs("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [],\n"
          "  \"normalizer\": null,\n  \"pre_tokenizer\": { \"type\": \"ByteLevel\", \"add_prefix_space\": false, "
          "\"trim_offsets\": true, \"use_regex\": false },\n  \"post_processor\": null,\n"
          "  \"decoder\": { \"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
          "\"use_regex\": false },\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
          "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
          "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"vocab\": {",
          out);
    for (int i = 0; i < m->shape.symbols; i++) {
        fputs(i ? ",\n      " : "\n      ", out);
        print_letter(out, m->text->letter[i]);
        fprintf(out, ": %d", i);
    }
    fputs("\n    },\n    \"merges\": []\n  }\n}\n", out);
}

static bool write_text(const char *name, void (*print)(FILE *out, const sr_model *m), const sr_model *m)
{
    io_output out;
    const char *path = io_stage_path(&folder.stage, name);
    if (!path) return io_fail(folder.why, folder.stage.path, "there is not enough memory for a name");
    if (!io_output_open(path, &out, folder.why)) return false;
    print(out.file, m);
    return io_output_commit(&out, folder.why);
}

/* ---- model.safetensors ---- */

/* Columns [column, column + columns) of a tensor of ours, [in, out], which the file has transposed. */
typedef struct part {
    char name[80];
    const sr_tensor *from;
    int64_t column, columns;
    bool transposed;
} part;

typedef struct parts {
    const sr_model *m;
    part *part;
    int count;
} parts;

static void add(parts *all, const char *name, int layer, int tensor, int piece, int pieces)
{
    part *p = &all->part[all->count++];
    const sr_tensor *t = &all->m->weights.tensor[tensor];
    const int at = layer < 0 ? 0 : snprintf(p->name, sizeof p->name, "model.layers.%d.", layer);
    snprintf(p->name + at, sizeof p->name - (size_t)at, "%s", name);
    p->from = t;
    p->columns = t->columns / pieces;
    p->column = piece * p->columns;
    p->transposed = t->use == SR_MATRIX || t->use == SR_LINEAR;
}

static void add_all(parts *all)
{
    const sr_model *m = all->m;
    add(all, "model.embed_tokens.weight", -1, m->table, 0, 1);
    add(all, "model.embed_positions.weight", -1, m->place, 0, 1);
    for (int i = 0; i < m->shape.layers; i++) {
        const tf_block *b = &m->block[i];
        add(all, "input_layernorm.weight", i, b->norm1, 0, 1);
        add(all, "self_attn.q_proj.weight", i, b->qkv, 0, 3);
        add(all, "self_attn.k_proj.weight", i, b->qkv, 1, 3);
        add(all, "self_attn.v_proj.weight", i, b->qkv, 2, 3);
        add(all, "self_attn.o_proj.weight", i, b->out, 0, 1);
        add(all, "post_attention_layernorm.weight", i, b->norm2, 0, 1);
        add(all, "mlp.up_proj.weight", i, b->up, 0, 1);
        add(all, "mlp.down_proj.weight", i, b->down, 0, 1);
    }
    add(all, "model.norm.weight", -1, m->norm, 0, 1);
    add(all, "lm_head.weight", -1, m->head, 0, 1);
}

static void describe(const part *p, bool narrow, st_tensor *t)
{
    memset(t, 0, sizeof *t);
    t->name = (char *)(uintptr_t)p->name;
    strcpy(t->type, narrow ? "BF16" : "F32");
    t->rank = p->from->use == SR_VECTOR ? 1 : 2;
    t->shape[0] = p->transposed || t->rank == 1 ? p->columns : p->from->rows;
    t->shape[1] = p->transposed ? p->from->rows : p->columns;
}

/* Little-endian, as the file is. */
static size_t put_number(unsigned char *to, float x, bool narrow)
{
    const uint32_t bits = narrow ? trn_bf16_from_f32(x) : io_bits(x);
    const size_t bytes = narrow ? 2 : 4;
    for (size_t i = 0; i < bytes; i++) to[i] = (unsigned char)(bits >> 8 * i);
    return bytes;
}

static bool write_part(const sr_model *m, const part *p, st_writer *w)
{
    const int64_t rows = p->from->rows, count = rows * p->columns;
    const float *value = m->weights.value + p->from->first + p->column;
    unsigned char *bytes = app_memory((size_t)count, 4);
    size_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = p->transposed ? i % rows : i / p->columns;
        const int64_t column = p->transposed ? i / rows : i % p->columns;
        size += put_number(bytes + size, value[row * p->from->columns + column], bf16(m));
    }
    const bool ok = st_write(w, bytes, size, folder.why);
    free(bytes);
    return ok;
}

static bool write_weights(const parts *all)
{
    static const char *const metadata[] = { "format", "pt" };
    const char *path = io_stage_path(&folder.stage, "model.safetensors");
    st_tensor *tensor = app_memory((size_t)all->count, sizeof *tensor);
    st_writer w;
    for (int i = 0; i < all->count; i++) describe(&all->part[i], bf16(all->m), &tensor[i]);
    bool ok = path ? st_create(path, tensor, all->count, metadata, 1, &w, folder.why)
                   : io_fail(folder.why, folder.stage.path, "there is not enough memory for a name");
    const bool open = ok;
    for (int i = 0; ok && i < all->count; i++) ok = write_part(all->m, &all->part[i], &w);
    if (open && ok) ok = st_finish(&w, folder.why);
    free(tensor);
    return ok;
}

void sr_export_model(const sr_model *m)
{
    parts all = { m, app_memory((size_t)(4 + 8 * m->shape.layers), sizeof *all.part), 0 };
    add_all(&all);
    if (write_text("config.json", print_config, m) && write_text("tokenizer.json", print_tokenizer, m))
        write_weights(&all);
    free(all.part);
}

#else

bool sr_export_open(const sr_settings *s, char *why)
{
    return !s->export_to || app_fail(why, "--export: this program was built without cJSON");
}

void sr_export_model(const sr_model *m) { (void)m; }
bool sr_export_ready(struct io_stage **stage, char *why) { return (void)why, *stage = NULL, true; }
void sr_export_close(void) {}

#endif

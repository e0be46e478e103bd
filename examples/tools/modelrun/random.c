/* random.c - a checkpoint of random weights: any configuration at its real size, for speed and memory.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <trnmath/trn_random.h>

#include "io/stage.h"

enum { NAME = 128, PIECE = 1 << 16 };

/* ---- which tensors there are ---- */

typedef struct list {
    st_tensor *tensor;
    int count, capacity;
} list;

static void add(list *l, int rank, int64_t rows, int64_t columns, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void add(list *l, int rank, int64_t rows, int64_t columns, const char *format, ...)
{
    char name[NAME];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 64;
        l->tensor = app_resize(l->tensor, (size_t)l->capacity, sizeof *l->tensor);
    }
    st_tensor *t = &l->tensor[l->count++];
    uint64_t bytes;
    const char *wrong;
    memset(t, 0, sizeof *t);
    t->name = strcpy(app_memory(strlen(name) + 1, 1), name);
    strcpy(t->type, "BF16");
    t->rank = rank;
    t->shape[0] = rows;
    t->shape[1] = columns;
    st_measure(t, &bytes, &wrong);
}

static void add_linear(list *l, const char *base, const char *name, int64_t rows, int64_t columns, bool bias)
{
    add(l, 2, rows, columns, "%s%s.weight", base, name);
    if (bias) add(l, 1, rows, 0, "%s%s.bias", base, name);
}

static void add_gpt2_layer(list *l, const mr_config *c, const char *base)
{
    const struct {
        const char *name;
        int64_t in, out;
    } w[] = { { "attn.c_attn", c->hidden, 3 * c->hidden },
              { "attn.c_proj", c->hidden, c->hidden },
              { "mlp.c_fc", c->hidden, c->intermediate },
              { "mlp.c_proj", c->intermediate, c->hidden } };
    for (int i = 0; i < 4; i++) {
        add(l, 2, w[i].in, w[i].out, "%s%s.weight", base, w[i].name);
        add(l, 1, w[i].out, 0, "%s%s.bias", base, w[i].name);
    }
    for (int i = 1; i <= 2; i++) {
        add(l, 1, c->hidden, 0, "%sln_%d.weight", base, i);
        add(l, 1, c->hidden, 0, "%sln_%d.bias", base, i);
    }
}

/* gpt-oss in BF16: [experts, in, out]. */
static void add_joint(list *l, const mr_config *c, const char *base)
{
    const struct {
        const char *name;
        int64_t in, out;
    } w[] = { { "gate_up_proj", c->hidden, 2 * c->moe_intermediate }, { "down_proj", c->moe_intermediate, c->hidden } };
    add_linear(l, base, "mlp.router", c->experts, c->hidden, true);
    for (int i = 0; i < 2; i++) {
        uint64_t bytes;
        const char *wrong;
        add(l, 3, c->experts, w[i].in, "%smlp.experts.%s", base, w[i].name);
        l->tensor[l->count - 1].shape[2] = w[i].out;
        st_measure(&l->tensor[l->count - 1], &bytes, &wrong);
        add(l, 2, c->experts, w[i].out, "%smlp.experts.%s_bias", base, w[i].name);
    }
}

static void add_gated(list *l, const char *base, const char *home, int64_t wide, int64_t hidden, bool bias)
{
    char name[2 * NAME];
    static const char *const part[] = { "gate_proj", "up_proj", "down_proj" };
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%s", home, part[i]);
        add_linear(l, base, name, i == 2 ? hidden : wide, i == 2 ? wide : hidden, bias);
    }
}

static void add_experts(list *l, const mr_config *c, const char *base)
{
    char home[NAME];
    if (c->family->flags & MR_GPT_OSS) {
        add_joint(l, c, base);
        return;
    }
    add_linear(l, base, "mlp.gate", c->experts, c->hidden, false);
    for (int64_t e = 0; e < c->experts; e++) {
        snprintf(home, sizeof home, "mlp.experts.%lld", (long long)e);
        add_gated(l, base, home, c->moe_intermediate, c->hidden, false);
    }
    if (!c->shared_intermediate) return;
    add_gated(l, base, "mlp.shared_expert", c->shared_intermediate, c->hidden, false);
    add_linear(l, base, "mlp.shared_expert_gate", 1, c->hidden, false);
}

static void add_layer(list *l, const mr_config *c, const char *base, bool sparse)
{
    const int64_t wide = c->heads * c->head_dim, narrow = c->kv_heads * c->head_dim;
    add(l, 1, c->hidden, 0, "%sinput_layernorm.weight", base);
    add(l, 1, c->hidden, 0, "%spost_attention_layernorm.weight", base);
    add_linear(l, base, "self_attn.q_proj", wide, c->hidden, c->qkv_bias);
    add_linear(l, base, "self_attn.k_proj", narrow, c->hidden, c->qkv_bias);
    add_linear(l, base, "self_attn.v_proj", narrow, c->hidden, c->qkv_bias);
    add_linear(l, base, "self_attn.o_proj", c->hidden, wide, c->o_bias);
    if (c->family->flags & MR_SINKS) add(l, 1, c->heads, 0, "%sself_attn.sinks", base);
    if (c->family->flags & MR_QK_NORM) {
        add(l, 1, c->head_dim, 0, "%sself_attn.q_norm.weight", base);
        add(l, 1, c->head_dim, 0, "%sself_attn.k_norm.weight", base);
    }
    if (sparse)
        add_experts(l, c, base);
    else if (c->family->flags & MR_PLACES) {
        add(l, 2, c->intermediate, c->hidden, "%smlp.up_proj.weight", base);
        add(l, 2, c->hidden, c->intermediate, "%smlp.down_proj.weight", base);
    } else
        add_gated(l, base, "mlp", c->intermediate, c->hidden, c->mlp_bias);
}

static void add_all(list *l, const mr_config *c)
{
    const bool gpt2 = c->family->flags & MR_GPT2;
    const char *prefix = gpt2 ? "transformer." : "model.";
    char base[NAME];
    add(l, 2, c->vocab, c->hidden, "%s%s.weight", prefix, gpt2 ? "wte" : "embed_tokens");
    if (gpt2) add(l, 2, c->positions, c->hidden, "%swpe.weight", prefix);
    if (c->family->flags & MR_PLACES) add(l, 2, c->positions, c->hidden, "%sembed_positions.weight", prefix);
    for (int64_t i = 0; i < c->layers; i++) {
        snprintf(base, sizeof base, "%s%s.%lld.", prefix, gpt2 ? "h" : "layers", (long long)i);
        if (gpt2)
            add_gpt2_layer(l, c, base);
        else
            add_layer(l, c, base, c->sparse[i]);
    }
    add(l, 1, c->hidden, 0, "%s%s.weight", prefix, gpt2 ? "ln_f" : "norm");
    if (gpt2) add(l, 1, c->hidden, 0, "%sln_f.bias", prefix);
    if (!c->tied) add(l, 2, c->vocab, c->hidden, "lm_head.weight");
}

/* ---- numbers ---- */

/* Norms are one; biases and sinks small; matrices of standard deviation 1 / sqrt(in), uniform. */
static float width_of(const st_tensor *t)
{
    const int64_t in = t->rank == 1 ? 10000 : t->shape[t->rank == 3 ? 1 : t->rank - 1];
    return sqrtf(3.0f / (float)in);
}

static bool write_numbers(st_writer *w, const st_tensor *t, uint64_t stream, char *why)
{
    const bool one = strstr(t->name, "norm") || strstr(t->name, "ln_");
    const float base = one && !ckpt_ends(t->name, ".bias") ? 1 : 0, width = base == 1 ? 0.1f : width_of(t);
    uint16_t *code = app_memory(PIECE, sizeof *code);
    uint32_t *word = app_memory(PIECE, sizeof *word);
    bool ok = true;
    for (int64_t i = 0; i < t->elements && ok; i += PIECE) {
        const int64_t count = t->elements - i < PIECE ? t->elements - i : PIECE;
        trn_random_fill(word, (size_t)count, 1, stream, (uint64_t)i, TRN_ISA_AUTO);
        for (int64_t j = 0; j < count; j++)
            code[j] = trn_bf16_from_f32(base + width * ((float)(word[j] >> 8) * 0x1p-23f - 1));
        ok = st_write(w, code, sizeof *code * (size_t)count, why);
    }
    free(code);
    free(word);
    return ok;
}

static bool write_tensors(const list *l, const char *path, char *why)
{
    static const char *const metadata[] = { "format", "pt" };
    st_writer w;
    if (!st_create(path, l->tensor, l->count, metadata, 1, &w, why)) return false;
    for (int i = 0; i < l->count; i++) {
        app_progress("%s: %d of %d tensors", path, i, l->count);
        if (!write_numbers(&w, &l->tensor[i], (uint64_t)i, why)) return st_abandon(&w), false;
    }
    app_progress_done();
    return st_finish(&w, why);
}

/* ---- the folder ---- */

static bool copy_config(const char *from, const char *to, char *why)
{
    io_map map;
    io_output out;
    if (!io_map_open(from, &map, why)) return false;
    bool ok = io_output_open(to, &out, why);
    if (ok) ok = io_output_write(&out, map.bytes, map.size, why) && io_output_commit(&out, why);
    io_map_close(&map);
    return ok;
}

/* The folder appears when all is in it: a killed run leaves nothing in the way of the next one. */
bool mr_write_random(const char *config, const char *folder, char *why)
{
    const io_stage_args args = { .path = folder, .folder = true, .instead = "name another" };
    mr_config *c = app_memory(1, sizeof *c);
    io_stage stage;
    list l = { .tensor = NULL };
    bool ok = mr_config_read(config, c, why);
    ok = ok && io_stage_open(&args, &stage, why);
    if (ok) {
        const char *weights = io_stage_path(&stage, "model.safetensors"), *copy = io_stage_path(&stage, "config.json");
        add_all(&l, c);
        ok = weights && copy ? write_tensors(&l, weights, why) && copy_config(config, copy, why)
                             : io_fail(why, folder, "there is not enough memory");
        if (ok)
            ok = io_stage_commit(&stage, why);
        else
            io_stage_discard(&stage);
    }
    for (int i = 0; i < l.count; i++) free(l.tensor[i].name);
    free(l.tensor);
    free(c);
    return ok;
}

bool mr_temporary_random(const char *config, char *path, size_t size, char *why)
{
    const char *home = getenv("TMPDIR");
    char outer[512];
    snprintf(outer, sizeof outer, "%.400s/modelrun-XXXXXX", home && *home ? home : "/tmp");
    if (!mkdtemp(outer)) return io_fail(why, outer, "it cannot be made (%s)", strerror(errno));
    snprintf(path, size, "%s/random", outer);
    if (mr_write_random(config, path, why)) return true;
    mr_remove_random(path);
    return false;
}

void mr_remove_random(const char *path)
{
    static const char *const file[] = { "model.safetensors", "config.json" };
    for (int i = 0; i < 2; i++) {
        char *inside = ckpt_inside(path, file[i]);
        if (inside) unlink(inside);
        free(inside);
    }
    rmdir(path);
    char outer[512];
    snprintf(outer, sizeof outer, "%.500s", path);
    char *slash = strrchr(outer, '/');
    if (slash) *slash = '\0';
    rmdir(outer);
}

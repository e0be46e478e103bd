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

/* [experts, in, out]: of gpt-oss in BF16, with biases, and Llama 4. */
static void add_joint(list *l, const mr_config *c, const char *home)
{
    const struct {
        const char *name;
        int64_t in, out;
    } w[] = { { "gate_up_proj", c->hidden, 2 * c->moe_intermediate }, { "down_proj", c->moe_intermediate, c->hidden } };
    for (int i = 0; i < 2; i++) {
        uint64_t bytes;
        const char *wrong;
        add(l, 3, c->experts, w[i].in, "%s.experts.%s", home, w[i].name);
        l->tensor[l->count - 1].shape[2] = w[i].out;
        st_measure(&l->tensor[l->count - 1], &bytes, &wrong);
        if (c->family->names->joint == MR_TURNS) add(l, 2, c->experts, w[i].out, "%s.experts.%s_bias", home, w[i].name);
    }
}

static void add_experts(list *l, const mr_config *c, const char *home)
{
    if (c->family->names->joint != MR_ONE_BY_ONE) {
        add_joint(l, c, home);
        return;
    }
    for (int64_t e = 0; e < c->experts; e++)
        for (int i = c->family->names->expert[0] ? 0 : 1; i < 3; i++)
            add(l, 2, i == 2 ? c->hidden : c->moe_intermediate, i == 2 ? c->moe_intermediate : c->hidden,
                "%s.experts.%lld.%s.weight", home, (long long)e, c->family->names->expert[i]);
}

static void add_parts(list *l, const mr_config *c, const mr_part *part, const char *base, const char *home)
{
    while (part->name) {
        int64_t rows;
        const int parts = mr_parts_together(c, part, &rows);
        const int64_t columns = mr_size_of(c, part->columns);
        const bool turned = columns && c->family->names->turned;
        const char *end = part->end ? part->end : ".weight", *before = part->name[0] == '.' ? home : base;
        if (rows && part->columns == MR_STATE_WIDTH) {
            uint64_t bytes;
            const char *wrong;
            add(l, 3, rows, 1, "%s%s%s", before, part->name, end);
            l->tensor[l->count - 1].shape[2] = columns;
            st_measure(&l->tensor[l->count - 1], &bytes, &wrong);
        } else if (rows)
            add(l, columns ? 2 : 1, turned ? columns : rows, turned ? rows : columns, "%s%s%s", before, part->name,
                end);
        if (rows && mr_has_bias(c, part)) add(l, 1, rows, 0, "%s%s.bias", before, part->name);
        part += parts;
    }
}

static void add_layer(list *l, const mr_config *c, const char *base, int64_t i)
{
    const bool sparse = c->sparse[i];
    const mr_names *names = c->family->names;
    char home[NAME];
    snprintf(home, sizeof home, "%s%s", base, names->home);
    if (c->mixer[i] != MR_NO_MIXER)
        add_parts(l, c, c->mixer[i] == MR_RECURS ? names->recurrent : names->attention, base, home);
    if (c->bare[i]) return;
    add_parts(l, c, sparse ? names->sparse : names->dense, base, home);
    if (sparse) add_experts(l, c, home);
}

static void add_all(list *l, const mr_config *c)
{
    const mr_names *names = c->family->names;
    const char *prefix = names->prefix[0];
    char base[NAME];
    add(l, 2, c->vocab, c->hidden, "%s%s.weight", prefix, names->embed);
    if (c->family->flags & (MR_GPT2 | MR_PLACES))
        add(l, 2, c->positions, c->hidden, "%s%s.weight", prefix, names->places);
    for (int64_t i = 0; i < c->layers; i++) {
        snprintf(base, sizeof base, "%s%s.%lld.", prefix, names->layers, (long long)i);
        add_layer(l, c, base, i);
    }
    add(l, 1, c->hidden, 0, "%s%s.weight", prefix, names->norm);
    if (names->norm_bias) add(l, 1, c->hidden, 0, "%s%s.bias", prefix, names->norm);
    if (!c->tied) add(l, 2, c->vocab, c->hidden, "lm_head.weight");
}

/* ---- numbers ---- */

/* Norms multiply by about one; biases and sinks are small; matrices of standard deviation 1 / sqrt(in), uniform. */
static float width_of(const st_tensor *t)
{
    const bool matrices = t->rank == 3 && t->shape[1] > 1; /* [experts, in, out]; else [channels, 1, width] */
    const int64_t in = t->rank == 1 ? 10000 : t->shape[matrices ? 1 : t->rank - 1];
    return sqrtf(3.0f / (float)in);
}

static bool is_norm(const st_tensor *t)
{
    return (strstr(t->name, "norm") || strstr(t->name, "ln_")) && !ckpt_ends(t->name, ".bias");
}

/* plus: norms multiply by that and their weight; but for those of states, which do without. */
static bool write_numbers(st_writer *w, const st_tensor *t, uint64_t stream, float plus, char *why)
{
    const bool norm = is_norm(t);
    const float base = norm ? 1 - (strstr(t->name, "linear_attn.norm") ? 0 : plus) : 0;
    const float width = norm ? 0.1f : width_of(t);
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

static bool write_tensors(const list *l, const char *path, float plus, char *why)
{
    static const char *const metadata[] = { "format", "pt" };
    st_writer w;
    if (!st_create(path, l->tensor, l->count, metadata, 1, &w, why)) return false;
    for (int i = 0; i < l->count; i++) {
        app_progress("%s: %d of %d tensors", path, i, l->count);
        if (!write_numbers(&w, &l->tensor[i], (uint64_t)i, plus, why)) return st_abandon(&w), false;
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
        const float plus = c->family->flags & MR_ONE_MORE ? 1.0f : 0.0f;
        add_all(&l, c);
        ok = weights && copy ? write_tensors(&l, weights, plus, why) && copy_config(config, copy, why)
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

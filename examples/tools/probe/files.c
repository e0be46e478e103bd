/* files.c - the directory: inputs, outputs, and which generation they are for.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <app/files.h>
#include <io/npy.h>
#include <io/stage.h>

enum { PATH = 512, OPERAND_BYTES = PROBE_CAPACITY * 4 };

static const struct {
    const char *name;
    trn_generation generation;
} generations[] = { { "trn1", TRN_TRAINIUM1 }, { "trn2", TRN_TRAINIUM2 }, { "trn3", TRN_TRAINIUM3 } };

bool probe_generation_from_name(const char *name, trn_generation *generation)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(generations[i].name, name) == 0) {
            *generation = generations[i].generation;
            return true;
        }
    return false;
}

const char *probe_generation_name(trn_generation generation)
{
    for (int i = 0; i < 3; i++)
        if (generations[i].generation == generation) return generations[i].name;
    return "trn2";
}

static bool is_for(const probe_tile *t, trn_generation generation)
{
    return t->generations & probe_generation_bit(generation);
}

/* ---- writing ---- */

static bool write_text(io_stage *s, const char *name, trn_generation generation,
                       void (*text)(FILE *out, trn_generation generation), char *why)
{
    io_output out;
    const char *path = io_stage_path(s, name);
    if (!path) return io_fail(why, name, "there is not enough memory to write it");
    if (!io_output_open(path, &out, why)) return false;
    text(out.file, generation);
    return io_output_commit(&out, why);
}

static bool write_array(io_stage *s, const char *name, const char *type, int rank, const int64_t *shape,
                        const void *data, char *why)
{
    io_output out;
    const char *path = io_stage_path(s, name);
    if (!path) return io_fail(why, name, "there is not enough memory to write it");
    if (!io_output_open(path, &out, why)) return false;
    npy_print(out.file, type, rank, shape, data);
    return io_output_commit(&out, why);
}

static void generation_text(FILE *out, trn_generation generation)
{
    fprintf(out, "%s\n", probe_generation_name(generation));
}

static const char *npy_type(const probe_tile *t)
{
    const int bits = trn_format_bits(t->format);
    if (t->format == TRN_F32 || t->format == TRN_TF32) return "<f4";
    if (t->format == TRN_F16) return "<f2";
    return bits == 16 ? "<u2" : t->format == TRN_I8 ? "|i1" : "|u1";
}

/* [K, lanes], [K, 2, lanes] or [K, lanes, 4]; returns the rank. */
static int operand_shape(const probe_tile *t, bool moving, int64_t shape[3])
{
    const int lanes = moving ? t->n : t->m, slots = probe_slots(t);
    shape[0] = t->k;
    shape[1] = t->mode == PROBE_DOUBLE_ROW ? slots : lanes;
    shape[2] = t->mode == PROBE_DOUBLE_ROW ? lanes : slots;
    return slots == 1 ? 2 : 3;
}

static void input_path(char *path, const char *directory, const probe_tile *t, const char *what)
{
    snprintf(path, PATH, "%s/in/%s_%s.npy", directory, t->name, what);
}

static void output_path(char *path, const char *directory, const probe_tile *t)
{
    snprintf(path, PATH, "%s/out/%s.npy", directory, t->name);
}

static bool write_operand(io_stage *s, const probe_tile *t, bool moving, char *why)
{
    static unsigned char bytes[OPERAND_BYTES];
    char name[PATH];
    int64_t shape[3];
    const int rank = operand_shape(t, moving, shape);
    probe_operand(t, moving, bytes);
    snprintf(name, sizeof name, "in/%s_%s.npy", t->name, moving ? "moving" : "stationary");
    if (!write_array(s, name, npy_type(t), rank, shape, bytes, why)) return false;
    if (t->mode != PROBE_MX) return true;
    memset(bytes, 127, sizeof bytes); /* all scales are 2^0 */
    shape[0] = t->k / 8;
    snprintf(name, sizeof name, "in/%s_%s_scale.npy", t->name, moving ? "moving" : "stationary");
    return write_array(s, name, "|u1", 2, shape, bytes, why);
}

/* Only what this program made is replaced. */
static bool is_ours(const char *directory, const void *unused, char *why)
{
    (void)unused;
    char path[PATH];
    struct stat status;
    snprintf(path, sizeof path, "%s/generation.txt", directory);
    return stat(path, &status) == 0 ||
           app_fail(why, "%.200s: it is not what probe --write makes, and --force replaces nothing else", directory);
}

static bool only_outputs(const char *directory, const void *unused, char *why)
{
    (void)unused;
    DIR *list = opendir(directory);
    bool ok = true;
    if (!list) return app_fail(why, "%.200s: it cannot be read (%s)", directory, strerror(errno));
    for (const struct dirent *e; (e = readdir(list)) != NULL;) {
        const size_t n = strlen(e->d_name);
        ok = ok && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    (n > 4 && strcmp(e->d_name + n - 4, ".npy") == 0));
    }
    closedir(list);
    return ok || app_fail(why, "%.200s: it has more in it than outputs, and --force replaces nothing else", directory);
}

static bool open_stage(const io_stage_args *args, io_stage *s, char *why)
{
    if (!io_stage_open(args, s, why)) return false;
    if (s->swept) app_complain(APP_OK, "%s: what a killed run had left there is removed", s->part);
    return true;
}

/* The directory appears when it is complete; after a failure what was there is there. */
static bool close_stage(io_stage *s, bool complete, char *why)
{
    const bool ok = complete && io_stage_commit(s, why) && !why[0];
    io_stage_discard(s);
    return ok;
}

bool probe_write_directory(const char *directory, trn_generation generation, bool force, char *why)
{
    const io_stage_args args = { directory, true, force, is_ours, NULL, NULL };
    io_stage s;
    if (!open_stage(&args, &s, why)) return false;
    bool ok = io_stage_folder(&s, "in", why) && io_stage_folder(&s, "out", why);
    for (int i = 0; ok && i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        if (is_for(t, generation)) ok = write_operand(&s, t, false, why) && write_operand(&s, t, true, why);
    }
    ok = ok && write_text(&s, "generation.txt", generation, generation_text, why) &&
         write_text(&s, "probe_kernel.py", generation, probe_kernel_text, why) &&
         write_text(&s, "README.md", generation, probe_readme_text, why);
    return close_stage(&s, ok, why);
}

/* ---- reading ---- */

static bool read_generation(const char *directory, trn_generation *generation, char *why)
{
    char path[PATH], word[16] = "";
    snprintf(path, sizeof path, "%s/generation.txt", directory);
    if (!io_reading(path, why)) return false;
    FILE *in = fopen(path, "r");
    if (!in)
        return app_fail(why, "%s: it cannot be opened (%s); probe --write makes such a directory", path,
                        strerror(errno));
    const bool read = fscanf(in, "%15s", word) == 1 && probe_generation_from_name(word, generation);
    fclose(in);
    return read || app_fail(why, "%s: expected trn1, trn2 or trn3", path);
}

/* Outputs say something of a hypothesis only if the inputs were these. */
static bool input_is_ours(const char *directory, const probe_tile *t, bool moving, char *why)
{
    static unsigned char bytes[OPERAND_BYTES];
    char path[PATH];
    npy_array a;
    input_path(path, directory, t, moving ? "moving" : "stationary");
    if (!npy_read(path, &a, why)) return false;
    const size_t size = probe_operand(t, moving, bytes);
    const bool same = (size_t)a.elements * (size_t)a.item_bytes == size && memcmp(a.data, bytes, size) == 0;
    npy_free(&a);
    return same || app_fail(why, "%s: it is not the input that this version of probe writes", path);
}

/* *out stays NULL where the file does not exist. */
static bool read_output(const char *directory, const probe_tile *t, const double **out, char *why)
{
    char path[PATH];
    npy_array a;
    struct stat status;
    output_path(path, directory, t);
    *out = NULL;
    if (stat(path, &status) != 0 && errno == ENOENT) return true;
    if (!input_is_ours(directory, t, false, why) || !input_is_ours(directory, t, true, why)) return false;
    if (!npy_read(path, &a, why)) return false;
    const char *type = t->format == TRN_I8 ? "<i4" : "<f4";
    const bool fits = strcmp(a.type, type) == 0 && a.rank == 2 && a.shape[0] == t->m && a.shape[1] == t->n;
    double *values = fits ? (double *)app_memory((size_t)a.elements, sizeof *values) : NULL;
    for (int m = 0; values && m < t->m; m++)
        for (int n = 0; n < t->n; n++) {
            const int64_t at = m * a.stride[0] + n * a.stride[1];
            values[m * t->n + n] =
                t->format == TRN_I8 ? (double)((const int32_t *)a.data)[at] : (double)((const float *)a.data)[at];
        }
    npy_free(&a);
    *out = values;
    return fits || app_fail(why, "%s: expected %d x %d numbers of type %s", path, t->m, t->n, type);
}

void probe_claim_directory(const char *directory)
{
    static const char *const folder[] = { "", "/in", "/out" };
    char path[PATH];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", directory, folder[i]);
        app_reads_folder(path);
    }
}

bool probe_read_directory(const char *directory, probe_seen *seen, char *why)
{
    int have = 0;
    memset(seen, 0, sizeof *seen);
    if (!read_generation(directory, &seen->generation, why)) return false;
    for (int i = 0; i < probe_tile_count; i++) {
        if (!is_for(&probe_tiles[i], seen->generation)) continue;
        if (!read_output(directory, &probe_tiles[i], &seen->out[i], why)) return false;
        have += seen->out[i] != NULL;
    }
    return have > 0 ||
           app_fail(why, "%s/out: it holds no outputs; run probe_kernel.py on a chip, or probe --run", directory);
}

void probe_seen_free(probe_seen *seen)
{
    for (int i = 0; i < probe_tile_count; i++) free((void *)(uintptr_t)seen->out[i]);
    memset(seen, 0, sizeof *seen);
}

/* ---- this library in place of a chip ---- */

static bool write_output(io_stage *s, const probe_tile *t, const double *out, char *why)
{
    static float numbers[PROBE_CAPACITY];
    static int32_t integers[PROBE_CAPACITY];
    const bool integer = t->format == TRN_I8;
    const int64_t shape[2] = { t->m, t->n };
    char name[PATH];
    for (int i = 0; i < probe_outputs(t); i++) {
        if (integer)
            integers[i] = (int32_t)out[i];
        else
            numbers[i] = (float)out[i];
    }
    snprintf(name, sizeof name, "%s.npy", t->name);
    return write_array(s, name, integer ? "<i4" : "<f4", 2, shape,
                       integer ? (const void *)integers : (const void *)numbers, why);
}

bool probe_run_directory(const char *directory, const trn_numerics *n, uint64_t seed, bool force, char *why)
{
    static double out[PROBE_CAPACITY];
    char path[PATH];
    const io_stage_args args = { path, true, force, only_outputs, NULL, NULL };
    trn_generation generation;
    io_stage s;
    snprintf(path, sizeof path, "%s/out", directory);
    if (!read_generation(directory, &generation, why) || !open_stage(&args, &s, why)) return false;
    bool ok = true;
    for (int i = 0; ok && i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        if (!is_for(t, generation)) continue;
        ok = probe_run_tile(t, generation, n, seed, out, why) && write_output(&s, t, out, why);
    }
    if (!close_stage(&s, ok, why)) return false;
    app_complain(APP_OK, "%s/out holds the outputs of this library as %s", directory,
                 probe_generation_name(generation));
    return true;
}

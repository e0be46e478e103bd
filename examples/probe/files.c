/* files.c - the directory: inputs, outputs, and which generation they are for.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <io/npy.h>

enum { PATH = 512, OPERAND_BYTES = PROBE_ROOM * 4 };

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

static bool make_directory(const char *directory, const char *name)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    probe_complain(PROBE_USAGE, "%s: it cannot be created (%s)", path, strerror(errno));
    return false;
}

static bool write_text(const char *directory, const char *name, trn_generation generation,
                       void (*text)(FILE *out, trn_generation generation))
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *out = fopen(path, "w");
    if (!out) return probe_complain(0, "%s: it cannot be created (%s)", path, strerror(errno)), false;
    text(out, generation);
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return true;
    return probe_complain(0, "%s: it cannot be written", path), false;
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

static bool write_operand(const char *directory, const probe_tile *t, bool moving)
{
    static unsigned char bytes[OPERAND_BYTES];
    char path[PATH], why[NPY_WHY];
    int64_t shape[3];
    const int rank = operand_shape(t, moving, shape);
    probe_operand(t, moving, bytes);
    input_path(path, directory, t, moving ? "moving" : "stationary");
    if (!npy_write(path, npy_type(t), rank, shape, bytes, why)) return probe_complain(0, "%s", why), false;
    if (t->mode != PROBE_MX) return true;
    memset(bytes, 127, sizeof bytes); /* all scales are 2^0 */
    shape[0] = t->k / 8;
    input_path(path, directory, t, moving ? "moving_scale" : "stationary_scale");
    return npy_write(path, "|u1", 2, shape, bytes, why) || (probe_complain(0, "%s", why), false);
}

int probe_write_directory(const char *directory, trn_generation generation)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return probe_complain(PROBE_USAGE, "%s: it cannot be created (%s)", directory, strerror(errno));
    if (!make_directory(directory, "in") || !make_directory(directory, "out")) return PROBE_USAGE;
    for (int i = 0; i < probe_tile_count; i++)
        if (is_for(&probe_tiles[i], generation) &&
            (!write_operand(directory, &probe_tiles[i], false) || !write_operand(directory, &probe_tiles[i], true)))
            return PROBE_USAGE;
    return write_text(directory, "generation.txt", generation, generation_text) &&
                   write_text(directory, "probe_kernel.py", generation, probe_kernel_text) &&
                   write_text(directory, "README.md", generation, probe_readme_text)
               ? PROBE_OK
               : PROBE_USAGE;
}

/* ---- reading ---- */

static bool read_generation(const char *directory, trn_generation *generation, char *why)
{
    char path[PATH], word[16] = "";
    snprintf(path, sizeof path, "%s/generation.txt", directory);
    FILE *in = fopen(path, "r");
    if (!in) {
        snprintf(why, PROBE_WHY, "%s: it cannot be opened (%s); probe --write makes such a directory", path,
                 strerror(errno));
        return false;
    }
    const bool read = fscanf(in, "%15s", word) == 1 && probe_generation_from_name(word, generation);
    fclose(in);
    if (!read) snprintf(why, PROBE_WHY, "%s: expected trn1, trn2 or trn3", path);
    return read;
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
    if (!same) snprintf(why, PROBE_WHY, "%s: it is not the input that this version of probe writes", path);
    return same;
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
    double *values = fits ? (double *)malloc((size_t)a.elements * sizeof *values) : NULL;
    for (int m = 0; values && m < t->m; m++)
        for (int n = 0; n < t->n; n++) {
            const int64_t at = m * a.stride[0] + n * a.stride[1];
            values[m * t->n + n] =
                t->format == TRN_I8 ? (double)((const int32_t *)a.data)[at] : (double)((const float *)a.data)[at];
        }
    npy_free(&a);
    if (!fits)
        snprintf(why, PROBE_WHY, "%s: expected %d x %d numbers of type %s", path, t->m, t->n, type);
    else if (!values)
        snprintf(why, PROBE_WHY, "%s: there is not enough memory to read it", path);
    *out = values;
    return values != NULL;
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
    if (!have)
        snprintf(why, PROBE_WHY, "%s/out: it holds no outputs; run probe_kernel.py on a chip, or probe --run",
                 directory);
    return have > 0;
}

void probe_seen_free(probe_seen *seen)
{
    for (int i = 0; i < probe_tile_count; i++) free((void *)(uintptr_t)seen->out[i]);
    memset(seen, 0, sizeof *seen);
}

/* ---- this library in place of a chip ---- */

static bool write_output(const char *directory, const probe_tile *t, const double *out)
{
    static float numbers[PROBE_ROOM];
    static int32_t integers[PROBE_ROOM];
    const bool integer = t->format == TRN_I8;
    const int64_t shape[2] = { t->m, t->n };
    char path[PATH], why[NPY_WHY];
    for (int i = 0; i < probe_outputs(t); i++) {
        if (integer)
            integers[i] = (int32_t)out[i];
        else
            numbers[i] = (float)out[i];
    }
    output_path(path, directory, t);
    if (npy_write(path, integer ? "<i4" : "<f4", 2, shape, integer ? (const void *)integers : (const void *)numbers,
                  why))
        return true;
    return probe_complain(0, "%s", why), false;
}

int probe_run_directory(const char *directory, const trn_numerics *n, uint64_t seed)
{
    static double out[PROBE_ROOM];
    trn_generation generation;
    char why[PROBE_WHY];
    int tiles = 0;
    if (!read_generation(directory, &generation, why)) return probe_complain(PROBE_USAGE, "%s", why);
    if (!make_directory(directory, "out")) return PROBE_USAGE;
    for (int i = 0; i < probe_tile_count; i++, tiles++) {
        const probe_tile *t = &probe_tiles[i];
        if (!is_for(t, generation)) continue;
        if (!probe_run_tile(t, generation, n, seed, out, why)) return probe_complain(PROBE_USAGE, "%s", why);
        if (!write_output(directory, t, out)) return PROBE_USAGE;
    }
    fprintf(stderr, "probe: %s/out holds the outputs of this library as %s\n", directory,
            probe_generation_name(generation));
    return PROBE_OK;
}

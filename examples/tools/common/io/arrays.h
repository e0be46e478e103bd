/* arrays.h - whatever holds arrays, opened alike: .npy, .npz, .safetensors, .gguf, an index of shards, a directory.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/arrays.h"
 *     int main(int argc, char **argv) {
 *         io_arrays a;
 *         char why[IO_WHY];
 *         if (argc < 2 || !io_arrays_open(argv[1], &a, why)) return fprintf(stderr, "%s\n", why), 2;
 *         for (int i = 0; i < a.count; i++) printf("%s %s\n", a.item[i].type, a.item[i].name);
 *         io_arrays_close(&a);
 *         return 0;
 *     }
 *
 * DOES: what a file is, its first bytes tell, whatever its name. Arrays of .npy and .safetensors stay in the file,
 *     mapped; those of .npz are unpacked into memory; blocks of GGUF have values alone. Values of every numeric type
 *     arrive as binary32.
 * DOES NOT: guess: .npy never tells FP8 and BF16 from bytes and words, io_array_as is for who knows.
 *
 * CONTENTS
 *     io_array, io_arrays              the arrays
 *     io_arrays_open, io_arrays_close  a file or a directory; "-" is standard input
 *     io_arrays_find                   by name
 *     io_array_as                      these bytes are numbers of that format
 *     io_array_view                    a trn_tensor of it
 *     io_array_f32                     some of its values, in row-major order
 *     io_array_packed                  whether its elements lie one after the other in that order
 *     io_array_done                    some of them will not be read again: memory stays constant
 */
#ifndef IO_ARRAYS_H
#define IO_ARRAYS_H

#include <trnmath/trn_convert.h>
#include <trnmath/trn_pack.h>

#include "checkpoint.h"
#include "gguf_blocks.h"
#include "npz.h"

typedef struct io_array {
    const char *name; /* "" for .npy */
    const char *path; /* of its file, for sentences */
    char type[16];    /* safetensors' spelling: F32 BF16 F8_E4M3 I8 F64 BOOL ...; "V1" and "V2" are bytes without one */
    trn_format format; /* UNSET: F64 I64 U64 BOOL C64 ... */
    int bits;          /* of an element as it is stored: 4 means two to the byte */
    int rank;
    int64_t shape[IO_MAX_RANK], stride[IO_MAX_RANK]; /* in elements */
    int64_t elements;
    const void *data;
    const gguf_tensor *blocks; /* NULL: an element has bytes of its own */
} io_array;

typedef struct io_arrays {
    int count;
    io_array *item;
    int *by_name; /* their numbers in the order of names */
    char *path;
    /* what they live in */
    st_file *shard;
    int shards;
    io_map map;
    gguf_file gguf;
    npz_file npz;
    npy_array *loaded;
    void **copy; /* of what lay askew in its file */
    int copies;
} io_arrays;

/* "file: array 'name' sentence", or "file: it sentence" where the array has no name. */
__attribute__((unused, format(printf, 3, 4))) static bool io_array_fail(const io_array *a, char *why,
                                                                        const char *format, ...)
{
    char sentence[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(sentence, sizeof sentence, IO_SAID, format, list);
    va_end(list);
    return a->name[0] ? io_fail(why, a->path, "array '%.128s' %s", a->name, sentence)
                      : io_fail(why, a->path, "it %s", sentence);
}

/* ---- what the arrays of each kind of file are ---- */

/* NumPy's type names and safetensors'. */
IO_FN const char *io_type_of_npy(const char *npy)
{
    static const char *const row[][2] = {
        { "f8", "F64" }, { "f4", "F32" },  { "f2", "F16" }, { "i8", "I64" }, { "i4", "I32" },
        { "i2", "I16" }, { "i1", "I8" },   { "u8", "U64" }, { "u4", "U32" }, { "u2", "U16" },
        { "u1", "U8" },  { "b1", "BOOL" }, { "c8", "C64" }, { "V1", "V1" },  { "V2", "V2" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(npy + 1, row[i][0]) == 0) return row[i][1];
    return NULL;
}

IO_FN void io_array_pack_strides(io_array *a)
{
    int64_t step = 1;
    for (int i = a->rank - 1; i >= 0; i--) {
        a->stride[i] = step;
        if (a->shape[i] > 1) step *= a->shape[i];
    }
}

IO_FN bool io_array_of_npy(const npy_array *npy, const char *name, const char *path, io_array *a, char *why)
{
    const char *type = io_type_of_npy(npy->type);
    memset(a, 0, sizeof *a);
    a->name = name;
    a->path = path;
    if (!type) return io_array_fail(a, why, "has the type '%s', which is not read here", npy->type);
    snprintf(a->type, sizeof a->type, "%s", type);
    a->format = trn_format_from_name(type);
    a->bits = 8 * npy->item_bytes;
    a->rank = npy->rank;
    memcpy(a->shape, npy->shape, sizeof a->shape);
    memcpy(a->stride, npy->stride, sizeof a->stride);
    a->elements = npy->elements;
    a->data = npy->data;
    return true;
}

IO_FN void io_array_of_st(const st_tensor *t, const char *path, io_array *a)
{
    memset(a, 0, sizeof *a);
    snprintf(a->type, sizeof a->type, "%s", t->type);
    a->name = t->name;
    a->path = path;
    a->format = t->format;
    a->bits = t->bits;
    a->rank = t->rank;
    memcpy(a->shape, t->shape, sizeof a->shape);
    a->elements = t->elements;
    a->data = t->data;
    io_array_pack_strides(a);
}

/* Blocks of a type that is not read are an array without values. */
IO_FN void io_array_of_gguf(const gguf_tensor *t, const char *path, io_array *a)
{
    const gguf_type *type = gguf_type_of(t->type);
    memset(a, 0, sizeof *a);
    snprintf(a->type, sizeof a->type, "%s", type->name);
    a->name = t->name;
    a->path = path;
    a->blocks = type->elements > 1 ? t : NULL;
    a->format = a->blocks ? TRN_FORMAT_UNSET : trn_format_from_name(type->name);
    a->bits = a->blocks ? 0 : 8 * type->bytes;
    a->rank = t->rank;
    memcpy(a->shape, t->shape, sizeof t->shape);
    a->elements = t->elements;
    a->data = t->data;
    io_array_pack_strides(a);
}

/* ---- opening ---- */

IO_FN void io_arrays_close(io_arrays *a)
{
    for (int i = 0; i < a->shards; i++) st_close(&a->shard[i]);
    for (int i = 0; i < a->count && a->loaded; i++) npy_free(&a->loaded[i]);
    for (int i = 0; i < a->copies; i++) free(a->copy[i]);
    free(a->shard);
    free(a->loaded);
    free(a->copy);
    free(a->item);
    free(a->by_name);
    free(a->path);
    gguf_close(&a->gguf);
    npz_close(&a->npz);
    io_map_close(&a->map);
    memset(a, 0, sizeof *a);
}

IO_FN bool io_arrays_room(io_arrays *a, int count, char *why)
{
    a->item = (io_array *)calloc((size_t)count + 1, sizeof *a->item);
    a->copy = (void **)calloc((size_t)count + 1, sizeof *a->copy);
    return (a->item && a->copy) || io_fail(why, a->path, "there is not enough memory for its arrays");
}

/* Numbers must lie at multiples of their size; a writer that did not care costs a copy. */
IO_FN bool io_arrays_align(io_arrays *a, io_array *array, char *why)
{
    const size_t item = (size_t)array->bits / 8, size = (size_t)array->elements * item;
    if (item < 2 || size == 0 || (uintptr_t)array->data % item == 0) return true;
    void *copy = malloc(size);
    if (!copy) return io_array_fail(array, why, "is not aligned, and there is not enough memory for a copy");
    memcpy(copy, array->data, size);
    a->copy[a->copies++] = copy;
    array->data = copy;
    return true;
}

IO_FN bool io_arrays_of_npy(io_arrays *a, char *why)
{
    npy_array npy;
    if (!npy_parse(a->map.bytes, a->map.size, a->path, &npy, why) || !io_arrays_room(a, 1, why)) return false;
    a->count = 1;
    return io_array_of_npy(&npy, "", a->path, &a->item[0], why) && io_arrays_align(a, &a->item[0], why);
}

IO_FN bool io_arrays_of_npz(io_arrays *a, char *why)
{
    const io_map map = a->map;
    memset(&a->map, 0, sizeof a->map);
    if (!npz_read(map, a->path, &a->npz, why) || !io_arrays_room(a, a->npz.count, why)) return false;
    a->loaded = (npy_array *)calloc((size_t)a->npz.count + 1, sizeof *a->loaded);
    if (!a->loaded) return io_fail(why, a->path, "there is not enough memory for its arrays");
    for (int i = 0; i < a->npz.count; i++) {
        if (!a->npz.member[i].array) continue; /* a note or a picture, which NumPy would show as bytes */
        const int n = a->count;
        if (!npz_load(&a->npz, i, &a->loaded[n], why)) return false;
        a->count++;
        if (!io_array_of_npy(&a->loaded[n], a->npz.member[i].name, a->path, &a->item[n], why)) return false;
    }
    return true;
}

IO_FN bool io_arrays_of_shards(io_arrays *a, char *why)
{
    int count = 0;
    for (int s = 0; s < a->shards; s++) count += a->shard[s].count;
    if (!io_arrays_room(a, count, why)) return false;
    for (int s = 0; s < a->shards; s++)
        for (int i = 0; i < a->shard[s].count; i++) {
            io_array_of_st(&a->shard[s].tensor[i], a->path, &a->item[a->count]);
            if (!io_arrays_align(a, &a->item[a->count++], why)) return false;
        }
    return true;
}

IO_FN bool io_arrays_of_st(io_arrays *a, char *why)
{
    const io_map map = a->map;
    memset(&a->map, 0, sizeof a->map);
    a->shard = (st_file *)calloc(1, sizeof *a->shard);
    if (!a->shard) return io_fail(why, a->path, "there is not enough memory for its arrays");
    a->shards = 1;
    return st_read(map, a->path, a->shard, why) && io_arrays_of_shards(a, why);
}

IO_FN bool io_arrays_of_gguf(io_arrays *a, char *why)
{
    const io_map map = a->map;
    memset(&a->map, 0, sizeof a->map);
    if (!gguf_read(map, a->path, &a->gguf, why) || !io_arrays_room(a, a->gguf.count, why)) return false;
    for (int i = 0; i < a->gguf.count; i++) {
        io_array_of_gguf(&a->gguf.tensor[i], a->path, &a->item[a->count]);
        if (!io_arrays_align(a, &a->item[a->count++], why)) return false;
    }
    return true;
}

IO_FN bool io_arrays_of_checkpoint(io_arrays *a, const ckpt *c, char *why)
{
    a->shard = (st_file *)calloc((size_t)c->shards + 1, sizeof *a->shard);
    if (!a->shard) return io_fail(why, a->path, "there is not enough memory for its arrays");
    for (int s = 0; s < c->shards; s++) {
        if (!ckpt_shard(c, s, &a->shard[s], why)) return false;
        a->shards++;
    }
    return io_arrays_of_shards(a, why);
}

IO_FN bool io_arrays_many(io_arrays *a, char *why)
{
    ckpt c;
    if (!ckpt_open(a->path, &c, why)) return false;
    const bool ok = io_arrays_of_checkpoint(a, &c, why);
    ckpt_close(&c);
    return ok;
}

IO_FN bool io_arrays_take(io_arrays *a, char *why)
{
    if (ckpt_ends(a->path, ".json") || ckpt_folder(a->path)) return io_arrays_many(a, why);
    if (!io_map_open(a->path, &a->map, why)) return false;
    if (a->map.size >= 6 && memcmp(a->map.bytes, "\x93NUMPY", 6) == 0) return io_arrays_of_npy(a, why);
    if (a->map.size >= 4 && (memcmp(a->map.bytes, "PK\3\4", 4) == 0 || memcmp(a->map.bytes, "PK\5\6", 4) == 0))
        return io_arrays_of_npz(a, why);
    if (a->map.size >= 4 && memcmp(a->map.bytes, "GGUF", 4) == 0) return io_arrays_of_gguf(a, why);
    return io_arrays_of_st(a, why);
}

IO_FN bool io_arrays_sort(io_arrays *a, char *why)
{
    st_name *list = (st_name *)malloc(((size_t)a->count + 1) * sizeof *list);
    a->by_name = (int *)malloc(((size_t)a->count + 1) * sizeof *a->by_name);
    const bool ok = list && a->by_name;
    for (int i = 0; i < a->count && ok; i++) list[i] = (st_name){ a->item[i].name, i };
    if (ok) st_repeated(list, a->count);
    for (int i = 0; i < a->count && ok; i++) a->by_name[i] = list[i].number;
    free(list);
    return ok || io_fail(why, a->path, "there is not enough memory for its names");
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN bool io_arrays_open(const char *path, io_arrays *a, char *why)
{
    memset(a, 0, sizeof *a);
    a->path = strdup(path);
    const bool ok = a->path ? io_arrays_take(a, why) && io_arrays_sort(a, why)
                            : io_fail(why, path, "there is not enough memory to read it");
    if (!ok) io_arrays_close(a);
    return ok;
}

IO_FN const char *io_arrays_name_at(const void *arrays, int place)
{
    const io_arrays *a = (const io_arrays *)arrays;
    return a->item[a->by_name[place]].name;
}

/* NULL when there is none of that name. */
IO_FN const io_array *io_arrays_find(const io_arrays *a, const char *name)
{
    const int place = io_find(a, a->count, io_arrays_name_at, name);
    return place < 0 ? NULL : &a->item[a->by_name[place]];
}

/* ---- what its bytes mean ---- */

/* Takes its elements for codes of `format`, one to an element of the same size: FP8 that .npy holds as u1 or V1, BF16
 * as u2 or V2, FP4 and FP6 one to the byte. */
IO_FN bool io_array_as(io_array *a, trn_format format, char *why)
{
    const int bits = 8 * (int)trn_format_bytes(format);
    if (format == TRN_FORMAT_UNSET) return io_array_fail(a, why, "cannot have a format that does not exist");
    if (a->bits != bits)
        return io_array_fail(a, why, "holds %s, elements of %d bits; those of %s have %d", a->type, a->bits,
                             trn_format_name(format), bits);
    a->format = format;
    const char *type = trn_format_info_of(format)->safetensors;
    snprintf(a->type, sizeof a->type, "%s", *type ? type : trn_format_name(format));
    return true;
}

IO_FN bool io_array_packed(const io_array *a)
{
    int64_t step = 1;
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->shape[i] > 1 && a->stride[i] != step) return false;
        if (a->shape[i] > 1) step *= a->shape[i];
    }
    return true;
}

/* Elements first .. end - 1 of a packed array will not be read again; an array that was copied is left as it is. */
IO_FN void io_array_done(io_arrays *all, const io_array *a, int64_t first, int64_t end)
{
    if (!io_array_packed(a)) return;
    const int64_t from = first * a->bits / 8, to = end * a->bits / 8;
    const uintptr_t at = (uintptr_t)a->data + (uintptr_t)from;
    for (int i = 0; i <= all->shards; i++) {
        io_map *map = i < all->shards ? &all->shard[i].map : &all->map;
        const uintptr_t begin = (uintptr_t)map->bytes;
        if (map->bytes && at >= begin && at - begin < map->size) io_map_done(map, at - begin, (size_t)(to - from));
    }
}

/* No copy. Rank 0, no tensor, where there is no view: no format, elements that share bytes, or more than TRN_MAX_RANK
 * axes that are not packed; packed ones are one long axis then. A scalar is an axis of one. */
IO_FN trn_tensor io_array_view(const io_array *a)
{
    trn_tensor t;
    memset(&t, 0, sizeof t);
    if (a->format == TRN_FORMAT_UNSET || a->bits != 8 * (int)trn_format_bytes(a->format)) return t;
    if (a->rank == 0 || (a->rank > TRN_MAX_RANK && io_array_packed(a)))
        return trn_tensor_1d(a->format, (void *)(uintptr_t)a->data, a->elements);
    if (a->rank > TRN_MAX_RANK) return t;
    t = trn_tensor_nd(a->format, (void *)(uintptr_t)a->data, a->rank, a->shape);
    for (int i = 0; i < a->rank; i++) t.stride[i] = a->stride[i];
    return t;
}

/* ---- values ---- */

enum { IO_BLOCK = 4096 };

IO_FN float io_f64_value(uint64_t word)
{
    double number;
    memcpy(&number, &word, sizeof number);
    return (float)number;
}

IO_FN float io_i64_value(uint64_t word) { return (float)(int64_t)word; }
IO_FN float io_u64_value(uint64_t word) { return (float)word; }
IO_FN float io_bool_value(uint64_t word) { return word != 0; }

/* Types that trnmath does not compute with: one C conversion, to nearest. */
IO_FN bool io_wide_f32(const char *type, const void *data, int64_t count, float *out)
{
    static const struct {
        const char *type;
        int bytes;
        float (*value)(uint64_t word);
    } row[] = {
        { "F64", 8, io_f64_value }, { "I64", 8, io_i64_value }, { "U64", 8, io_u64_value }, { "BOOL", 1, io_bool_value }
    };
    const unsigned char *at = (const unsigned char *)data;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        if (strcmp(type, row[r].type) != 0) continue;
        for (int64_t i = 0; i < count; i++) out[i] = row[r].value(io_little(at + i * row[r].bytes, row[r].bytes));
        return true;
    }
    return false;
}

/* Up to IO_BLOCK elements that follow each other, from the beginning of a byte on. */
IO_FN bool io_codes_f32(const io_array *a, const void *data, int64_t count, float *out, char *why)
{
    uint8_t code[IO_BLOCK];
    trn_error error;
    trn_convert_args convert = { .dst = trn_tensor_1d(TRN_F32, out, count), .error = &error };
    if (a->format == TRN_FORMAT_UNSET)
        return io_wide_f32(a->type, data, count, out) ||
               io_array_fail(a, why, "holds %s, which has no values here", a->type);
    if (a->bits < 8) {
        const int64_t bytes = trn_packed_bytes(a->format, TRN_U8, count);
        const trn_unpack_args unpack = { .dst = trn_tensor_1d(a->format, code, count),
                                         .src = trn_tensor_1d(TRN_U8, (void *)(uintptr_t)data, bytes),
                                         .pad = true,
                                         .error = &error };
        if (trn_unpack(&unpack)) return io_array_fail(a, why, "cannot be unpacked: %s", error.text);
        data = code;
    }
    convert.src = trn_tensor_1d(a->format, (void *)(uintptr_t)data, count);
    return trn_convert(&convert) == TRN_OK || io_array_fail(a, why, "cannot be converted: %s", error.text);
}

/* Of an array in blocks. */
IO_FN bool io_blocks_f32(const io_array *a, int64_t first, int64_t count, float *out, char *why)
{
    double x[GGUF_LARGE];
    gguf_matrix m;
    if (!gguf_matrix_open(a->blocks, &m, why)) return false;
    const int n = m.type->elements;
    for (int at = (int)(first % n); count > 0; at = 0) {
        m.decode(m.data + first / n * m.type->bytes, x);
        for (; at < n && count > 0; at++, first++, count--) *out++ = io_odd(x[at]);
    }
    return true;
}

/* Element number i in row-major order, counted from the first. */
IO_FN int64_t io_array_place(const io_array *a, int64_t i)
{
    int64_t place = 0;
    for (int k = a->rank - 1; k >= 0; k--) {
        place += i % a->shape[k] * a->stride[k];
        i /= a->shape[k];
    }
    return place;
}

/* Elements first .. first + count of the row-major order, as binary32: one rounding for those that are wider. */
IO_FN bool io_array_f32(const io_array *a, int64_t first, int64_t count, float *out, char *why)
{
    const bool packed = io_array_packed(a);
    const int64_t item = a->bits / 8, lead = a->bits < 8 ? first % 4 : 0; /* codes before `first` in its bytes */
    if (first < 0 || count < 0 || first > a->elements - count)
        return io_array_fail(a, why, "has %lld elements; %lld from number %lld on were asked for",
                             (long long)a->elements, (long long)count, (long long)first);
    if (a->blocks) return io_blocks_f32(a, first, count, out, why);
    if (lead) { /* from the byte's beginning on */
        float head[4];
        const int64_t whole = lead + count < 4 ? lead + count : 4;
        if (!io_codes_f32(a, (const char *)a->data + (first - lead) * a->bits / 8, whole, head, why)) return false;
        memcpy(out, head + lead, (size_t)(whole - lead) * sizeof *out);
        first += whole - lead;
        out += whole - lead;
        count -= whole - lead;
    }
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        char gathered[IO_BLOCK * 2];
        part = packed ? IO_BLOCK : (int64_t)sizeof gathered / 8;
        if (part > count) part = count;
        const char *data = (const char *)a->data + first * a->bits / 8;
        for (int64_t i = 0; i < part && !packed; i++)
            memcpy(gathered + i * item, (const char *)a->data + io_array_place(a, first + i) * item, (size_t)item);
        if (!io_codes_f32(a, packed ? data : gathered, part, out, why)) return false;
    }
    return true;
}

#endif /* IO_ARRAYS_H */

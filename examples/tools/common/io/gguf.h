/* gguf.h - the container of llama.cpp's models: metadata, and named tensors in blocks. Read, not written.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/gguf.h"
 *     gguf_file f;
 *     char why[IO_WHY];
 *     if (!gguf_open("model.gguf", &f, why)) return fprintf(stderr, "%s\n", why), 2;
 *     for (int i = 0; i < f.count; i++) printf("%s %s\n", gguf_type_of(f.tensor[i].type)->name, f.tensor[i].name);
 *     gguf_close(&f);
 *
 *     | "GGUF", version, number of tensors, of keys | keys | tensors | padding | data, each tensor aligned |
 *
 * | part   | what                                                                                                  |
 * |--------|-------------------------------------------------------------------------------------------------------|
 * | key    | text, U32 type, value; a list is U32 type, U64 count, values                                          |
 * | tensor | text, U32 axes, U64 sizes (the one that runs fastest first), U32 type, U64 place in the data           |
 * | text   | U64 bytes, UTF-8 without NUL                                                                          |
 *
 * shape[] here has the axis that runs fastest last, as everywhere: [.., rows, columns]. Blocks lie along columns.
 *
 * TRAP: names and order of rows are llama.cpp's. It renames every tensor, and exchanges rows of attn_q and attn_k of
 *     LLaMA and its like (halves of a rotation that follow each other there alternate here).
 *
 * DOES: versions 2 and 3 of files of any size, mapped; every count, length and place is held against what the file has
 *     before it is used. Names and keys differ, tensors share no byte, are aligned, and end within the file.
 * DOES NOT: version 1, big-endian files, parts of a model that was split, lists of lists, types that were withdrawn:
 *     refused by name. Data of integers' or floats' blocks: gguf_blocks.h.
 *
 * CONTENTS
 *     gguf_type, gguf_type_of            of a tensor: its name, elements and bytes of a block
 *     gguf_value, gguf_tensor, gguf_file what is in a file
 *     gguf_read, gguf_open, gguf_close   a file that is mapped, or on disk
 *     gguf_find                          a tensor by name
 *     gguf_key, gguf_whole, gguf_text    a value by its key; as a number that is not negative, or as a text
 *
 * KNOWN FROM: ggml's description of the format (docs/gguf.md) and its reader (what it refuses: axes, alignment, equal
 *     names, types withdrawn); ggml-common.h (sizes of blocks); gguf-split (keys of parts).
 */
#ifndef IO_GGUF_H
#define IO_GGUF_H

#include <stdlib.h>

#include "mapped.h"

enum { GGUF_AXES = 4, GGUF_ALIGNMENT = 32, GGUF_LARGEST_ALIGNMENT = 1 << 24, GGUF_NAME = 4096 };

/* ---- types of tensors ---- */

/* Those of which something else than the size is asked. */
enum {
    GGUF_F32 = 0,
    GGUF_F16 = 1,
    GGUF_Q4_0 = 2,
    GGUF_Q4_1 = 3,
    GGUF_Q5_0 = 6,
    GGUF_Q5_1 = 7,
    GGUF_Q8_0 = 8,
    GGUF_Q2_K = 10,
    GGUF_Q3_K = 11,
    GGUF_Q4_K = 12,
    GGUF_Q5_K = 13,
    GGUF_Q6_K = 14,
    GGUF_IQ4_NL = 20,
    GGUF_IQ4_XS = 23,
    GGUF_BF16 = 30,
    GGUF_TQ2_0 = 35,
    GGUF_MXFP4 = 39,
    GGUF_TYPES = 43
};

typedef struct gguf_type {
    const char *name;
    int elements, bytes; /* of a block; 0 bytes: withdrawn from the format */
} gguf_type;

/* NULL for a number that is none. */
IO_FN const gguf_type *gguf_type_of(uint32_t number)
{
    static const gguf_type row[GGUF_TYPES] = {
        { "F32", 1, 4 },        { "F16", 1, 2 },        { "Q4_0", 32, 18 },     { "Q4_1", 32, 20 },
        { "Q4_2", 0, 0 },       { "Q4_3", 0, 0 },       { "Q5_0", 32, 22 },     { "Q5_1", 32, 24 },
        { "Q8_0", 32, 34 },     { "Q8_1", 32, 36 },     { "Q2_K", 256, 84 },    { "Q3_K", 256, 110 },
        { "Q4_K", 256, 144 },   { "Q5_K", 256, 176 },   { "Q6_K", 256, 210 },   { "Q8_K", 256, 292 },
        { "IQ2_XXS", 256, 66 }, { "IQ2_XS", 256, 74 },  { "IQ3_XXS", 256, 98 }, { "IQ1_S", 256, 50 },
        { "IQ4_NL", 32, 18 },   { "IQ3_S", 256, 110 },  { "IQ2_S", 256, 82 },   { "IQ4_XS", 256, 136 },
        { "I8", 1, 1 },         { "I16", 1, 2 },        { "I32", 1, 4 },        { "I64", 1, 8 },
        { "F64", 1, 8 },        { "IQ1_M", 256, 56 },   { "BF16", 1, 2 },       { "Q4_0_4_4", 0, 0 },
        { "Q4_0_4_8", 0, 0 },   { "Q4_0_8_8", 0, 0 },   { "TQ1_0", 256, 54 },   { "TQ2_0", 256, 66 },
        { "IQ4_NL_4_4", 0, 0 }, { "IQ4_NL_4_8", 0, 0 }, { "IQ4_NL_8_8", 0, 0 }, { "MXFP4", 32, 17 },
        { "NVFP4", 64, 36 },    { "Q1_0", 128, 18 },    { "Q2_0", 64, 18 },
    };
    return number < GGUF_TYPES ? &row[number] : NULL;
}

/* ---- what is in a file ---- */

enum { GGUF_VALUE_U32 = 4, GGUF_VALUE_BOOL = 7, GGUF_VALUE_TEXT = 8, GGUF_VALUE_LIST = 9, GGUF_VALUES = 13 };

typedef struct gguf_value {
    char *key;
    uint32_t type; /* of the value, or of each in a list */
    bool list;
    uint64_t count;          /* 1, or of the list */
    const unsigned char *at; /* in the file: little-endian, texts after their lengths */
} gguf_value;

typedef struct gguf_tensor {
    char *name;
    uint32_t type;
    int rank;
    int64_t shape[GGUF_AXES];
    int64_t elements;
    uint64_t begin, bytes; /* in the data */
    const unsigned char *data;
} gguf_tensor;

typedef struct gguf_file {
    io_map map;
    uint32_t version;
    int keys, count;
    gguf_value *key;     /* in the order of the file */
    gguf_tensor *tensor; /* by begin */
    int *key_by_name, *by_name;
    uint64_t alignment, data_start, data_size;
} gguf_file;

/* ---- numbers and texts, as far as the file goes ---- */

typedef struct gguf_reader {
    gguf_file *file;
    uint64_t at;
    const char *name;
    char *why;
} gguf_reader;

#define gguf_refuse(r, ...) io_fail((r)->why, (r)->name, __VA_ARGS__)

IO_FN uint64_t gguf_left(const gguf_reader *r) { return r->file->map.size - r->at; }

/* The next bytes; NULL with a sentence where the file has not so many. */
IO_FN const unsigned char *gguf_take(gguf_reader *r, uint64_t bytes, const char *what)
{
    if (bytes > gguf_left(r)) {
        gguf_refuse(r, "it breaks off at byte %llu, in %s of %llu bytes", (unsigned long long)r->file->map.size, what,
                    (unsigned long long)bytes);
        return NULL;
    }
    r->at += bytes;
    return r->file->map.bytes + r->at - bytes;
}

IO_FN bool gguf_number(gguf_reader *r, int bytes, uint64_t *number, const char *what)
{
    const unsigned char *at = gguf_take(r, (uint64_t)bytes, what);
    if (at) *number = io_little(at, bytes);
    return at != NULL;
}

IO_FN bool gguf_number32(gguf_reader *r, uint32_t *number, const char *what)
{
    uint64_t wide = 0;
    const bool ok = gguf_number(r, 4, &wide, what);
    *number = (uint32_t)wide;
    return ok;
}

/* A text in memory of its own. */
IO_FN bool gguf_name(gguf_reader *r, char **name, const char *what)
{
    uint64_t size;
    if (!gguf_number(r, 8, &size, what)) return false;
    if (size == 0 || size > GGUF_NAME)
        return gguf_refuse(r, "%s has %llu bytes; expected 1 to %d", what, (unsigned long long)size, GGUF_NAME);
    const unsigned char *text = gguf_take(r, size, what);
    if (!text) return false;
    if (memchr(text, '\0', (size_t)size) || !io_utf8(text, (size_t)size))
        return gguf_refuse(r, "%s is not UTF-8, or holds a NUL", what);
    *name = (char *)malloc((size_t)size + 1);
    if (!*name) return gguf_refuse(r, "there is not enough memory for its names");
    memcpy(*name, text, (size_t)size);
    (*name)[size] = '\0';
    return true;
}

/* ---- metadata ---- */

/* Bytes of a value of each type; 0: of a text or a list. */
IO_FN int gguf_value_bytes(uint32_t type)
{
    static const int row[GGUF_VALUES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return type < GGUF_VALUES ? row[type] : 0;
}

IO_FN bool gguf_skip_texts(gguf_reader *r, const gguf_value *v)
{
    for (uint64_t i = 0, size = 0; i < v->count; i++)
        if (!gguf_number(r, 8, &size, v->key) || !gguf_take(r, size, v->key)) return false;
    return true;
}

IO_FN bool gguf_skip_value(gguf_reader *r, gguf_value *v)
{
    const int width = gguf_value_bytes(v->type);
    v->at = r->file->map.bytes + r->at;
    if (v->type == GGUF_VALUE_TEXT) return gguf_skip_texts(r, v);
    if (v->type == GGUF_VALUE_LIST) return gguf_refuse(r, "'%.128s' is a list of lists, which is not read", v->key);
    if (width == 0) return gguf_refuse(r, "'%.128s' has the type %u, which is none", v->key, (unsigned)v->type);
    if (v->count > gguf_left(r) / (unsigned)width)
        return gguf_refuse(r, "'%.128s' has %llu values, but the file ends before", v->key,
                           (unsigned long long)v->count);
    r->at += v->count * (unsigned)width;
    for (uint64_t i = 0; v->type == GGUF_VALUE_BOOL && i < v->count; i++)
        if (v->at[i] > 1) return gguf_refuse(r, "'%.128s' is %d; expected 0 or 1", v->key, v->at[i]);
    return true;
}

IO_FN bool gguf_read_key(gguf_reader *r, gguf_value *v)
{
    if (!gguf_name(r, &v->key, "a key") || !gguf_number32(r, &v->type, v->key)) return false;
    v->count = 1;
    v->list = v->type == GGUF_VALUE_LIST;
    if (v->list && (!gguf_number32(r, &v->type, v->key) || !gguf_number(r, 8, &v->count, v->key))) return false;
    return gguf_skip_value(r, v);
}

/* ---- tensors ---- */

IO_FN bool gguf_read_shape(gguf_reader *r, gguf_tensor *t)
{
    uint32_t axes;
    uint64_t elements = 1;
    if (!gguf_number32(r, &axes, t->name)) return false;
    if (axes > GGUF_AXES)
        return gguf_refuse(r, "tensor '%.128s' has %u axes; expected up to %d", t->name, axes, GGUF_AXES);
    t->rank = (int)axes;
    bool fits = true, empty = false;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t size;
        if (!gguf_number(r, 8, &size, t->name)) return false;
        fits = fits && io_multiply(elements, size ? size : 1, &elements);
        empty = empty || size == 0;
        t->shape[i] = fits ? (int64_t)size : 0;
    }
    t->elements = empty ? 0 : (int64_t)elements;
    return fits || gguf_refuse(r, "tensor '%.128s' describes more than 2^62 elements", t->name);
}

IO_FN bool gguf_read_type(gguf_reader *r, gguf_tensor *t)
{
    if (!gguf_number32(r, &t->type, t->name)) return false;
    const gguf_type *type = gguf_type_of(t->type);
    if (!type) return gguf_refuse(r, "tensor '%.128s' has the type %u, which is unknown", t->name, (unsigned)t->type);
    if (!type->bytes)
        return gguf_refuse(r, "tensor '%.128s' is %s, which was withdrawn from the format", t->name, type->name);
    const int64_t columns = t->rank ? t->shape[t->rank - 1] : 1;
    if (columns % type->elements)
        return gguf_refuse(r, "tensor '%.128s' has rows of %lld elements, and blocks of %s have %d", t->name,
                           (long long)columns, type->name, type->elements);
    return io_multiply((uint64_t)(t->elements / type->elements), (uint64_t)type->bytes, &t->bytes) ||
           gguf_refuse(r, "tensor '%.128s' describes more than 2^62 bytes", t->name);
}

IO_FN bool gguf_read_tensor(gguf_reader *r, gguf_tensor *t)
{
    if (!gguf_name(r, &t->name, "a tensor's name") || !gguf_read_shape(r, t) || !gguf_read_type(r, t) ||
        !gguf_number(r, 8, &t->begin, t->name))
        return false;
    return t->begin % r->file->alignment == 0 ||
           gguf_refuse(r, "tensor '%.128s' begins at byte %llu of the data, which is no multiple of %llu", t->name,
                       (unsigned long long)t->begin, (unsigned long long)r->file->alignment);
}

/* ---- names in order ---- */

IO_FN const char *gguf_key_at(const void *file, int place)
{
    const gguf_file *f = (const gguf_file *)file;
    return f->key[f->key_by_name[place]].key;
}

IO_FN const char *gguf_name_at(const void *file, int place)
{
    const gguf_file *f = (const gguf_file *)file;
    return f->tensor[f->by_name[place]].name;
}

typedef struct gguf_entry {
    const char *name;
    int place;
} gguf_entry;

IO_FN int gguf_by_name(const void *left, const void *right)
{
    return strcmp(((const gguf_entry *)left)->name, ((const gguf_entry *)right)->name);
}

/* The numbers of `count` names, names[i] being `step` bytes after names[i - 1], in the order of strcmp. */
IO_FN int *gguf_order(const gguf_reader *r, const void *names, size_t step, int count, const char *what)
{
    gguf_entry *list = (gguf_entry *)malloc(((size_t)count + 1) * sizeof *list);
    int *order = (int *)malloc(((size_t)count + 1) * sizeof *order);
    bool ok = (list && order) || gguf_refuse(r, "there is not enough memory for its names");
    for (int i = 0; i < count && ok; i++) {
        memcpy(&list[i].name, (const char *)names + (size_t)i * step, sizeof list[i].name);
        list[i].place = i;
    }
    if (ok && count > 1) qsort(list, (size_t)count, sizeof *list, gguf_by_name);
    for (int i = 0; i < count && ok; i++) {
        order[i] = list[i].place;
        if (i > 0 && strcmp(list[i - 1].name, list[i].name) == 0)
            ok = gguf_refuse(r, "it has two %s called '%.128s'", what, list[i].name);
    }
    free(list);
    if (!ok) free(order);
    return ok ? order : NULL;
}

/* ---- values ---- */

/* NULL when there is no such key. */
IO_FN const gguf_value *gguf_key(const gguf_file *f, const char *key)
{
    const int place = io_find(f, f->keys, gguf_key_at, key);
    return place < 0 ? NULL : &f->key[f->key_by_name[place]];
}

/* A single integer that is not negative, of any width. */
IO_FN bool gguf_whole(const gguf_value *v, uint64_t *number)
{
    static const signed char kind[GGUF_VALUES] = { 1, -1, 1, -1, 1, -1, 0, 0, 0, 0, 1, -1, 0 }; /* -1: it has a sign */
    if (!v || v->list || v->type >= GGUF_VALUES || !kind[v->type]) return false;
    const int bytes = gguf_value_bytes(v->type);
    *number = io_little(v->at, bytes);
    return kind[v->type] > 0 || !(*number >> (8 * bytes - 1));
}

/* A single text: its bytes, without a NUL at the end. */
IO_FN bool gguf_text(const gguf_value *v, const char **text, size_t *size)
{
    if (!v || v->list || v->type != GGUF_VALUE_TEXT) return false;
    *size = (size_t)io_little64(v->at);
    *text = (const char *)v->at + 8;
    return true;
}

/* NULL when there is no such tensor. */
IO_FN const gguf_tensor *gguf_find(const gguf_file *f, const char *name)
{
    const int place = io_find(f, f->count, gguf_name_at, name);
    return place < 0 ? NULL : &f->tensor[f->by_name[place]];
}

/* ---- the whole file ---- */

IO_FN bool gguf_read_header(gguf_reader *r)
{
    gguf_file *f = r->file;
    const unsigned char *magic = gguf_take(r, 4, "its magic number");
    if (!magic) return false;
    if (memcmp(magic, "GGUF", 4) != 0) return gguf_refuse(r, "it is no GGUF file: it does not begin with 'GGUF'");
    if (!gguf_number32(r, &f->version, "its version")) return false;
    if (f->version != 0 && (f->version & 0xffff) == 0)
        return gguf_refuse(r, "it is a big-endian GGUF file; convert it (gguf-py's gguf_convert_endian.py)");
    if (f->version < 2 || f->version > 3)
        return gguf_refuse(r, "it is a GGUF file of version %u; 2 and 3 are read", (unsigned)f->version);
    uint64_t tensors, keys;
    if (!gguf_number(r, 8, &tensors, "its number of tensors") || !gguf_number(r, 8, &keys, "its number of keys"))
        return false;
    if (keys > gguf_left(r) / 14 || keys > INT32_MAX / 4) /* a length, a letter, a type and a byte */
        return gguf_refuse(r, "it counts %llu keys, for which it is too short", (unsigned long long)keys);
    if (tensors > gguf_left(r) / 25 || tensors > INT32_MAX / 4)
        return gguf_refuse(r, "it counts %llu tensors, for which it is too short", (unsigned long long)tensors);
    f->key = (gguf_value *)calloc((size_t)keys + 1, sizeof *f->key);
    f->tensor = (gguf_tensor *)calloc((size_t)tensors + 1, sizeof *f->tensor);
    f->keys = f->key ? (int)keys : 0;
    f->count = f->tensor ? (int)tensors : 0;
    return (f->key && f->tensor) || gguf_refuse(r, "there is not enough memory for its header");
}

/* What the metadata says about the file itself. */
IO_FN bool gguf_read_keys(gguf_reader *r)
{
    gguf_file *f = r->file;
    for (int i = 0; i < f->keys; i++)
        if (!gguf_read_key(r, &f->key[i])) return false;
    f->key_by_name = gguf_order(r, &f->key[0].key, sizeof *f->key, f->keys, "keys");
    if (!f->key_by_name) return false;
    const gguf_value *alignment = gguf_key(f, "general.alignment"), *parts = gguf_key(f, "split.count");
    uint64_t number = GGUF_ALIGNMENT;
    if (alignment && (alignment->type != GGUF_VALUE_U32 || !gguf_whole(alignment, &number) || number == 0 ||
                      (number & (number - 1)) != 0 || number > GGUF_LARGEST_ALIGNMENT))
        return gguf_refuse(r, "its general.alignment is not a power of two up to 2^24, of type U32");
    f->alignment = number;
    if (parts && !gguf_whole(parts, &number)) return gguf_refuse(r, "its split.count is no number");
    return !parts || number <= 1 ||
           gguf_refuse(r,
                       "it is one of %llu parts of a model (split.count): merge them first (llama-gguf-split --merge)",
                       (unsigned long long)number);
}

IO_FN int gguf_by_begin(const void *left, const void *right)
{
    const gguf_tensor *a = (const gguf_tensor *)left, *b = (const gguf_tensor *)right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Tensors lie one after the other, none beyond the file. */
IO_FN bool gguf_check_places(gguf_reader *r)
{
    gguf_file *f = r->file;
    uint64_t end = 0;
    if (f->count > 1) qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, gguf_by_begin);
    for (int i = 0; i < f->count; i++) {
        gguf_tensor *t = &f->tensor[i];
        if (t->begin < end)
            return gguf_refuse(r, "tensors '%.128s' and '%.128s' overlap", f->tensor[i - 1].name, t->name);
        if (t->begin > f->data_size || t->bytes > f->data_size - t->begin)
            return gguf_refuse(r, "tensor '%.128s' has bytes %llu to %llu of the data, but the file holds only %llu",
                               t->name, (unsigned long long)t->begin, (unsigned long long)t->begin + t->bytes,
                               (unsigned long long)f->data_size);
        end = t->begin + t->bytes;
        t->data = f->map.bytes + f->data_start + t->begin;
    }
    f->by_name = gguf_order(r, &f->tensor[0].name, sizeof *f->tensor, f->count, "tensors");
    return f->by_name != NULL;
}

IO_FN bool gguf_read_tensors(gguf_reader *r)
{
    gguf_file *f = r->file;
    for (int i = 0; i < f->count; i++)
        if (!gguf_read_tensor(r, &f->tensor[i])) return false;
    const uint64_t over = r->at % f->alignment, start = over ? r->at + f->alignment - over : r->at;
    f->data_start = start < f->map.size ? start : f->map.size;
    f->data_size = f->map.size - f->data_start;
    return gguf_check_places(r);
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN void gguf_close(gguf_file *f)
{
    for (int i = 0; i < f->keys; i++) free(f->key[i].key);
    for (int i = 0; i < f->count; i++) free(f->tensor[i].name);
    free(f->key);
    free(f->tensor);
    free(f->key_by_name);
    free(f->by_name);
    io_map_close(&f->map);
    memset(f, 0, sizeof *f);
}

/* Takes over the map, also when it fails. */
IO_FN bool gguf_read(io_map map, const char *name, gguf_file *f, char *why)
{
    memset(f, 0, sizeof *f);
    f->map = map;
    gguf_reader r = { f, 0, name, why };
    const bool ok = gguf_read_header(&r) && gguf_read_keys(&r) && gguf_read_tensors(&r);
    if (!ok) gguf_close(f);
    return ok;
}

IO_FN bool gguf_open(const char *path, gguf_file *f, char *why)
{
    io_map map;
    memset(f, 0, sizeof *f);
    return io_map_open(path, &map, why) && gguf_read(map, path, f, why);
}

#endif /* IO_GGUF_H */

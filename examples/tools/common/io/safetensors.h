/* safetensors.h - reads and writes .safetensors: named arrays behind a JSON header.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/safetensors.h"
 *     int main(int argc, char **argv) {
 *         st_file file;
 *         char why[IO_WHY];
 *         if (argc < 2 || !st_open(argv[1], &file, why)) return fprintf(stderr, "%s\n", why), 2;
 *         for (int i = 0; i < file.count; i++) printf("%s %s\n", file.tensor[i].type, file.tensor[i].name);
 *         st_close(&file);
 *         return 0;
 *     }
 *
 *     | N: 8 bytes, little-endian | N bytes of JSON | the data area: tensors without gaps | (trailing bytes) |
 *
 * DOES: files of any size, mapped, header read member by member; all types of the format; F4 and F6 packed, their
 *     shapes counting elements. Sizes and offsets are plain digits below 2^53, as every writer has them: 16.0 is none.
 *     A header is believed only when names are different, every shape fits its bytes, and the tensors fill the data
 *     area from 0 on without gap or overlap. Writing: header first, then the data as a stream.
 * DOES NOT: load pickles, or repair. Trailing bytes after the last tensor, which the official reader refuses, are
 *     tolerated: they occur.
 *
 * TRAP: the type F8_E4M3 is OCP's, which ends at 448. A file that says {"fp8_format": "float8_e4m3"} in __metadata__
 *     holds Neuron's in its place, which ends at 240: that is the agreement here, and other readers do not know it.
 *
 * CONTENTS
 *     st_type, st_type_of               the types: name, bits, trn_format
 *     st_tensor, st_file                what is in a file
 *     st_parse, st_open, st_close       a file in memory, or on disk
 *     st_find, st_metadata              a tensor by name; a text of __metadata__
 *     st_bytes                          of a tensor
 *     st_writer, st_create, st_write, st_finish, st_abandon   writing
 *     st_arrange                        an order for writing in which all tensors are aligned
 *
 * KNOWN FROM: the format's description and reader (huggingface/safetensors): its limit of 100 MB, order by offsets,
 *     whole bytes, padding with spaces; files made by other writers in tests/data. Needs cJSON (libcjson-dev).
 */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <trnmath/trn_format.h>

#include "json.h"
#include "mapped.h"
#include "output.h"

enum { ST_MAX_HEADER = 100000000, ST_MAX_VALUE = 65536 };

typedef struct st_tensor {
    char *name;
    char type[16];
    trn_format format; /* UNSET for F64 I64 U64 BOOL C64 and the FNUZ formats */
    int bits;          /* of an element */
    int rank;
    int64_t shape[IO_MAX_RANK];
    int64_t elements;
    uint64_t begin, end; /* in the data area */
    const void *data;    /* at any address: a writer need not align */
    int place;           /* in the header */
} st_tensor;

typedef struct st_file {
    io_map map;
    int count;
    st_tensor *tensor; /* by begin */
    int *by_name;      /* their numbers in the order of names */
    int metadata_count;
    char **metadata;     /* key, value, key, value */
    uint64_t data_start; /* of the data area in the file */
    uint64_t data_size, trailing;
    int capacity, metadata_capacity;
} st_file;

/* ---- types ---- */

typedef struct st_type {
    const char *name;
    int bits;
} st_type;

/* NULL for a name that is none. */
IO_FN const st_type *st_type_of(const char *name)
{
    static const st_type row[] = {
        { "F64", 64 },        { "F32", 32 },        { "F16", 16 },    { "BF16", 16 },   { "F8_E4M3", 8 },
        { "F8_E5M2", 8 },     { "F8_E8M0", 8 },     { "F6_E2M3", 6 }, { "F6_E3M2", 6 }, { "F4", 4 },
        { "I64", 64 },        { "I32", 32 },        { "I16", 16 },    { "I8", 8 },      { "U64", 64 },
        { "U32", 32 },        { "U16", 16 },        { "U8", 8 },      { "BOOL", 8 },    { "C64", 64 },
        { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(name, row[i].name) == 0) return &row[i];
    return NULL;
}

/* The elements of a tensor and what they take; false with a phrase when its shape and type allow neither. */
IO_FN bool st_measure(st_tensor *t, uint64_t *bytes, const char **wrong)
{
    const st_type *type = st_type_of(t->type);
    uint64_t n = 1, bits;
    if (!type) return *wrong = "has an unknown type", false;
    t->bits = type->bits;
    t->format = trn_format_from_name(type->name);
    bool fits = true, empty = false;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0) return *wrong = "has a negative size", false;
        fits = fits && io_multiply(n, (uint64_t)t->shape[i] ? (uint64_t)t->shape[i] : 1, &n);
        empty = empty || t->shape[i] == 0;
    }
    if (!fits || !io_multiply(n, (uint64_t)t->bits, &bits)) return *wrong = "describes more than 2^62 bits", false;
    if (empty) n = bits = 0;
    if (bits % 8) return *wrong = "does not fill whole bytes", false;
    t->elements = (int64_t)n;
    *bytes = bits / 8;
    return true;
}

IO_FN size_t st_bytes(const st_tensor *t) { return (size_t)(t->end - t->begin); }

/* ---- reading the header ---- */

typedef struct st_reader {
    st_file *file;
    const char *name;
    char *why;
} st_reader;

/* The file's first sentence stands; what follows an error says nothing more. */
#define st_refuse(r, ...) io_fail((r)->why, (r)->name, __VA_ARGS__)

IO_FN bool st_memory(const st_reader *r) { return st_refuse(r, "there is not enough memory for its header"); }

/* Room for one more in a list that doubles; false without memory. */
IO_FN bool st_grow(void **list, size_t item, int count, int *capacity)
{
    if (count < *capacity) return true;
    const int more = *capacity ? *capacity * 2 : 64;
    void *larger = *capacity > INT32_MAX / 4 ? NULL : realloc(*list, (size_t)more * item);
    if (!larger) return false;
    *list = larger;
    *capacity = more;
    return true;
}

IO_FN bool st_read_metadata(const st_reader *r, const io_json *member)
{
    st_file *f = r->file;
    io_json j = io_json_members(member);
    while (io_json_next(&j)) {
        if (!st_grow((void **)&f->metadata, 2 * sizeof *f->metadata, f->metadata_count, &f->metadata_capacity))
            return st_memory(r);
        char *key = io_json_name(&j), *value = io_json_text(&j);
        f->metadata[2 * f->metadata_count] = key;
        f->metadata[2 * f->metadata_count + 1] = value;
        f->metadata_count++;
        if (key && !value) return st_refuse(r, "its __metadata__ '%.64s' is not a text", key);
    }
    return !j.wrong || st_refuse(r, "its __metadata__ is not a JSON object of texts: %s", j.wrong);
}

enum { ST_HAS_TYPE = 1, ST_HAS_SHAPE = 2, ST_HAS_OFFSETS = 4, ST_HAS_ALL = 7 };

/* The integers of a list; -1 with a sentence when it is none, most + 1 when there are more. */
IO_FN int st_read_integers(const st_reader *r, const st_tensor *t, const char *what, const io_json *value, int most,
                           uint64_t *number)
{
    io_json j = io_json_list(value);
    int count = 0;
    for (; io_json_next(&j); count++) {
        if (count == most) return most + 1;
        if (!io_json_whole(&j, &number[count]))
            return st_refuse(r, "tensor '%.128s' has the %s %s, which is not plain digits of a number below 2^53",
                             t->name, what, io_json_show(&j).text),
                   -1;
    }
    if (!j.wrong) return count;
    return st_refuse(r, "tensor '%.128s' has a list of %ss that is not JSON: %s", t->name, what, j.wrong), -1;
}

IO_FN bool st_read_shape(const st_reader *r, st_tensor *t, const io_json *value)
{
    uint64_t size[IO_MAX_RANK];
    if (value->value[0] != '[') return st_refuse(r, "tensor '%.128s' has a shape that is not a list", t->name);
    const int rank = st_read_integers(r, t, "size", value, IO_MAX_RANK, size);
    if (rank > IO_MAX_RANK) return st_refuse(r, "tensor '%.128s' has more than %d axes", t->name, IO_MAX_RANK);
    for (t->rank = 0; t->rank < rank; t->rank++) t->shape[t->rank] = (int64_t)size[t->rank];
    return rank >= 0;
}

IO_FN bool st_read_offsets(const st_reader *r, st_tensor *t, const io_json *value)
{
    uint64_t offset[2];
    const int count = value->value[0] == '[' ? st_read_integers(r, t, "data offset", value, 2, offset) : 0;
    if (count < 0) return false;
    if (count != 2) return st_refuse(r, "tensor '%.128s' has data_offsets that are not a list of two", t->name);
    t->begin = offset[0];
    t->end = offset[1];
    return true;
}

IO_FN bool st_read_type(const st_reader *r, st_tensor *t, const io_json *value)
{
    char *text = io_json_text(value);
    const st_type *type = text ? st_type_of(text) : NULL;
    if (type)
        snprintf(t->type, sizeof t->type, "%s", type->name);
    else if (text)
        st_refuse(r, "tensor '%.128s' has the unknown dtype '%.32s'", t->name, text);
    else
        st_refuse(r, "tensor '%.128s' has a dtype that is not a text", t->name);
    free(text);
    return type != NULL;
}

/* What is nothing to us must still be JSON. */
IO_FN bool st_read_other(const st_reader *r, const st_tensor *t, const char *key, const io_json *value)
{
    cJSON *item = io_json_value(value, ST_MAX_VALUE);
    const bool ok = item || st_refuse(r, "tensor '%.128s' has a '%.32s' that is not JSON of at most %d bytes", t->name,
                                      key, ST_MAX_VALUE);
    cJSON_Delete(item);
    return ok;
}

/* One of dtype, shape and data_offsets, or another. */
IO_FN bool st_read_field(const st_reader *r, st_tensor *t, const char *key, const io_json *value, int *have)
{
    static const struct {
        const char *key;
        int bit;
        bool (*read)(const st_reader *, st_tensor *, const io_json *);
    } field[] = { { "dtype", ST_HAS_TYPE, st_read_type },
                  { "shape", ST_HAS_SHAPE, st_read_shape },
                  { "data_offsets", ST_HAS_OFFSETS, st_read_offsets } };
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
        if (strcmp(key, field[i].key) != 0) continue;
        if (*have & field[i].bit) return st_refuse(r, "tensor '%.128s' has a second %s", t->name, key);
        *have |= field[i].bit;
        return field[i].read(r, t, value);
    }
    return st_read_other(r, t, key, value);
}

IO_FN bool st_read_fields(const st_reader *r, st_tensor *t, const io_json *member, int *have)
{
    io_json j = io_json_members(member);
    while (io_json_next(&j)) {
        char *key = io_json_name(&j);
        if (!key) break;
        const bool ok = st_read_field(r, t, key, &j, have);
        free(key);
        if (!ok) return false;
    }
    return !j.wrong || st_refuse(r, "tensor '%.128s' is not a JSON object: %s", t->name, j.wrong);
}

IO_FN bool st_read_tensor(const st_reader *r, char *name, const io_json *member)
{
    st_file *f = r->file;
    int have = 0;
    uint64_t bytes;
    const char *wrong = NULL;
    if (!st_grow((void **)&f->tensor, sizeof *f->tensor, f->count, &f->capacity)) return free(name), st_memory(r);
    st_tensor *t = &f->tensor[f->count];
    memset(t, 0, sizeof *t);
    t->name = name;
    t->place = f->count++;
    if (!st_read_fields(r, t, member, &have)) return false;
    if (have != ST_HAS_ALL)
        return st_refuse(r, "tensor '%.128s' has no %s", name,
                         !(have & ST_HAS_TYPE)    ? "dtype"
                         : !(have & ST_HAS_SHAPE) ? "shape"
                                                  : "data_offsets");
    if (!st_measure(t, &bytes, &wrong)) return st_refuse(r, "tensor '%.128s' %s", name, wrong);
    if (t->end < t->begin || t->end - t->begin != bytes)
        return st_refuse(r,
                         "tensor '%.128s' needs %llu bytes by shape and dtype, but its data_offsets are [%llu, %llu]",
                         name, (unsigned long long)bytes, (unsigned long long)t->begin, (unsigned long long)t->end);
    return true;
}

IO_FN bool st_read_members(const st_reader *r, const char *text, size_t size)
{
    bool metadata = false;
    io_json j = io_json_start(text, size);
    while (io_json_next(&j)) {
        char *name = io_json_name(&j);
        if (!name) break;
        const bool special = strcmp(name, "__metadata__") == 0;
        if (special) free(name);
        if (special && metadata) return st_refuse(r, "it has a second __metadata__");
        if (special ? !st_read_metadata(r, &j) : !st_read_tensor(r, name, &j)) return false;
        metadata = metadata || special;
    }
    return !j.wrong || st_refuse(r, "its header is not a JSON object: %s", j.wrong);
}

/* ---- what the header as a whole must keep ---- */

IO_FN int st_order(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

IO_FN int st_by_offset(const void *left, const void *right)
{
    const st_tensor *a = (const st_tensor *)left, *b = (const st_tensor *)right;
    const int by_begin = st_order(a->begin, b->begin), by_end = st_order(a->end, b->end);
    return by_begin ? by_begin : by_end ? by_end : st_order((uint64_t)a->place, (uint64_t)b->place);
}

/* Tensors one after the other from 0 on, none beyond the file. */
IO_FN bool st_check_places(const st_reader *r)
{
    st_file *f = r->file;
    uint64_t at = 0;
    if (f->count > 1) qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, st_by_offset);
    for (int i = 0; i < f->count; i++) {
        st_tensor *t = &f->tensor[i];
        if (t->begin != at)
            return st_refuse(r, "tensor '%.128s' begins at byte %llu of the data, %s (at %llu)", t->name,
                             (unsigned long long)t->begin,
                             t->begin < at ? "before the tensor ahead of it ends" : "leaving a gap",
                             (unsigned long long)at);
        at = t->end;
        if (at > f->data_size)
            return st_refuse(r, "tensor '%.128s' ends at byte %llu of the data, but the file holds only %llu", t->name,
                             (unsigned long long)at, (unsigned long long)f->data_size);
        t->data = f->map.bytes + f->data_start + t->begin;
    }
    f->trailing = f->data_size - at;
    f->data_size = at;
    return true;
}

typedef struct st_name {
    const char *name;
    int number;
} st_name;

IO_FN int st_compare_names(const void *left, const void *right)
{
    return strcmp(((const st_name *)left)->name, ((const st_name *)right)->name);
}

/* Sorts; the first name that is there twice, or NULL. */
IO_FN const char *st_repeated(st_name *name, int count)
{
    if (count > 1) qsort(name, (size_t)count, sizeof *name, st_compare_names);
    for (int i = 1; i < count; i++)
        if (strcmp(name[i - 1].name, name[i].name) == 0) return name[i].name;
    return NULL;
}

IO_FN bool st_check_names(const st_reader *r)
{
    st_file *f = r->file;
    const size_t n = (size_t)(f->count > f->metadata_count ? f->count : f->metadata_count);
    st_name *list = (st_name *)malloc((n + 1) * sizeof *list);
    f->by_name = (int *)malloc(((size_t)f->count + 1) * sizeof *f->by_name);
    if (!list || !f->by_name) return free(list), st_memory(r);
    for (int i = 0; i < f->metadata_count; i++) list[i] = (st_name){ f->metadata[2 * i], i };
    const char *twice = st_repeated(list, f->metadata_count);
    if (twice) st_refuse(r, "its __metadata__ names '%.128s' twice", twice);
    for (int i = 0; i < f->count && !twice; i++) list[i] = (st_name){ f->tensor[i].name, i };
    if (!twice && (twice = st_repeated(list, f->count)) != NULL) st_refuse(r, "it names tensor '%.128s' twice", twice);
    for (int i = 0; i < f->count && !twice; i++) f->by_name[i] = list[i].number;
    free(list);
    return !twice;
}

/* ---- a whole file ---- */

/* The text of a key of __metadata__; NULL when there is none. */
IO_FN const char *st_metadata(const st_file *file, const char *key)
{
    for (int i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[2 * i], key) == 0) return file->metadata[2 * i + 1];
    return NULL;
}

IO_FN const char *st_name_at(const void *file, int place)
{
    const st_file *f = (const st_file *)file;
    return f->tensor[f->by_name[place]].name;
}

IO_FN const st_tensor *st_find(const st_file *file, const char *name)
{
    const int place = io_find(file, file->count, st_name_at, name);
    return place < 0 ? NULL : &file->tensor[file->by_name[place]];
}

/* Neuron's 240 in place of OCP's 448, where the file says so. */
IO_FN void st_heed_mark(st_file *file)
{
    const char *mark = st_metadata(file, "fp8_format");
    if (!mark || strcmp(mark, trn_format_name(TRN_F8_E4M3)) != 0) return;
    for (int i = 0; i < file->count; i++)
        if (file->tensor[i].format == TRN_F8_E4M3FN) file->tensor[i].format = TRN_F8_E4M3;
}

/* After a failure there is nothing to close, and closing does nothing. */
IO_FN void st_close(st_file *file)
{
    for (int i = 0; i < file->count; i++) free(file->tensor[i].name);
    for (int i = 0; i < 2 * file->metadata_count; i++) free(file->metadata[i]);
    free(file->tensor);
    free(file->by_name);
    free(file->metadata);
    io_map_close(&file->map);
    memset(file, 0, sizeof *file);
}

IO_FN bool st_read_header(const st_reader *r)
{
    const unsigned char *bytes = r->file->map.bytes;
    const size_t size = r->file->map.size;
    if (size < 8) return st_refuse(r, "it is not a .safetensors file: it has only %zu bytes", size);
    const uint64_t header = io_little64(bytes);
    if (header > ST_MAX_HEADER)
        return st_refuse(r, "it is not a .safetensors file, or its header of %llu bytes is longer than 100 MB",
                         (unsigned long long)header);
    if (header > size - 8)
        return st_refuse(r, "its header claims %llu bytes but the file ends after %zu", (unsigned long long)header,
                         size - 8);
    if (!io_utf8(bytes + 8, (size_t)header)) return st_refuse(r, "its header is not UTF-8");
    r->file->data_start = 8 + header;
    r->file->data_size = size - 8 - header;
    return st_read_members(r, (const char *)bytes + 8, (size_t)header) && st_check_places(r) && st_check_names(r);
}

IO_FN bool st_take(io_map map, const char *name, st_file *file, char *why)
{
    const st_reader r = { file, name, why };
    memset(file, 0, sizeof *file);
    file->map = map;
    if (!st_read_header(&r)) return false;
    st_heed_mark(file);
    return true;
}

/* Takes over the map, also when it fails. */
IO_FN bool st_read(io_map map, const char *name, st_file *file, char *why)
{
    return st_take(map, name, file, why) || (st_close(file), false);
}

/* A file that lies in memory, which the tensors point into. `name` is for the sentence. */
IO_FN bool st_parse(const void *bytes, size_t size, const char *name, st_file *file, char *why)
{
    const io_map theirs = { (const unsigned char *)bytes, size, false };
    const bool ok = st_take(theirs, name, file, why);
    memset(&file->map, 0, sizeof file->map); /* nothing of ours to give back */
    if (!ok) st_close(file);
    return ok;
}

IO_FN bool st_open(const char *path, st_file *file, char *why)
{
    io_map map;
    memset(file, 0, sizeof *file);
    return io_map_open(path, &map, why) && st_read(map, path, file, why);
}

/* ---- writing ---- */

typedef struct st_writer {
    io_output out;
    uint64_t size, written; /* of the data area */
} st_writer;

IO_FN int st_by_alignment(const void *left, const void *right)
{
    const st_tensor *a = (const st_tensor *)left, *b = (const st_tensor *)right;
    const st_type *x = st_type_of(a->type), *y = st_type_of(b->type);
    const int bits = (y ? y->bits : 0) - (x ? x->bits : 0);
    return bits ? bits : strcmp(a->name, b->name);
}

/* The order in which every tensor begins at a multiple of its elements' size, which PyTorch's reader needs: widest
 * elements first, then by name. */
IO_FN void st_arrange(st_tensor *tensor, int count)
{
    if (count > 1) qsort(tensor, (size_t)count, sizeof *tensor, st_by_alignment);
}

/* The header as text; its length is what follows the 8 bytes. Metadata is pairs of texts. */
IO_FN bool st_print_header(FILE *out, const st_tensor *tensor, int count, const char *const *metadata, int pairs)
{
    uint64_t at = 0, bytes;
    bool ok = fputc('{', out) != EOF;
    if (pairs) fputs("\"__metadata__\":{", out);
    for (int i = 0; i < pairs; i++) {
        if (i) fputc(',', out);
        ok = ok && io_json_quote(out, metadata[2 * i]) && fputc(':', out) != EOF &&
             io_json_quote(out, metadata[2 * i + 1]);
    }
    if (pairs) fputs("}", out);
    for (int i = 0; i < count; i++) {
        st_tensor t = tensor[i];
        const char *wrong;
        if (i || pairs) fputc(',', out);
        ok = ok && io_json_quote(out, t.name) && st_measure(&t, &bytes, &wrong);
        if (!ok) break;
        fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", t.type);
        for (int k = 0; k < t.rank; k++) fprintf(out, k ? ",%lld" : "%lld", (long long)t.shape[k]);
        fprintf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)(at + bytes));
        at += bytes;
    }
    fputc('}', out);
    for (long size = ftell(out); size % 8; size++) fputc(' ', out); /* the data begins on a multiple of 8 */
    return ok && !ferror(out);
}

IO_FN bool st_check_tensor(const char *path, const st_tensor *tensor, uint64_t *size, char *why)
{
    st_tensor t = *tensor;
    const char *wrong = NULL;
    uint64_t bytes;
    if (strcmp(t.name, "__metadata__") == 0) return io_fail(why, path, "no tensor may be called __metadata__");
    if (!io_utf8(t.name, strlen(t.name))) return io_fail(why, path, "the name of tensor '%.128s' is not UTF-8", t.name);
    if (t.rank < 0 || t.rank > IO_MAX_RANK)
        return io_fail(why, path, "tensor '%.128s' has %d axes; 0 to %d can be written", t.name, t.rank, IO_MAX_RANK);
    if (!st_measure(&t, &bytes, &wrong)) return io_fail(why, path, "tensor '%.128s' %s", t.name, wrong);
    if (t.bits >= 8 && *size % (unsigned)(t.bits / 8))
        return io_fail(why, path,
                       "tensor '%.128s' would begin at byte %llu, no multiple of its elements' %d; readers "
                       "need that (st_arrange)",
                       t.name, (unsigned long long)*size, t.bits / 8);
    *size += bytes;
    return *size < UINT64_C(1) << 53 || io_fail(why, path, "its tensors have more than 2^53 bytes");
}

/* Everything that could be wrong with a header is found before a file exists. */
IO_FN bool st_check_tensors(const char *path, const st_tensor *tensor, int count, const char *const *metadata,
                            int pairs, uint64_t *size, char *why)
{
    st_name *list = (st_name *)malloc(((size_t)count + (size_t)pairs + 1) * sizeof *list);
    if (!list) return io_fail(why, path, "there is not enough memory for its header");
    for (int i = 0; i < pairs; i++) list[i] = (st_name){ metadata[2 * i], i };
    const char *twice = st_repeated(list, pairs);
    for (int i = 0; i < count && !twice; i++) list[i] = (st_name){ tensor[i].name, i };
    if (!twice) twice = st_repeated(list, count);
    if (twice) io_fail(why, path, "'%.128s' would be there twice", twice);
    free(list);
    *size = 0;
    for (int i = 0; i < count && !twice; i++)
        if (!st_check_tensor(path, &tensor[i], size, why)) return false;
    return !twice;
}

IO_FN bool st_write_header(st_writer *w, char *text, size_t length, char *why)
{
    unsigned char size[8];
    for (int i = 0; i < 8; i++) size[i] = (unsigned char)((uint64_t)length >> 8 * i);
    if (length > ST_MAX_HEADER) return io_output_fail(&w->out, why, "its header would be longer than 100 MB");
    return io_output_write(&w->out, size, sizeof size, why) && io_output_write(&w->out, text, length, why);
}

/* Opens the file and writes its header: name, type, rank and shape of each tensor are asked for, in the order of the
 * data. Every tensor must begin at a multiple of its elements' size: st_arrange sees to that. */
IO_FN bool st_create(const char *path, const st_tensor *tensor, int count, const char *const *metadata, int pairs,
                     st_writer *w, char *why)
{
    char *text = NULL;
    size_t length = 0;
    memset(w, 0, sizeof *w);
    if (!st_check_tensors(path, tensor, count, metadata, pairs, &w->size, why)) return false;
    FILE *memory = open_memstream(&text, &length);
    bool ok = memory && st_print_header(memory, tensor, count, metadata, pairs);
    if ((memory && fclose(memory) != 0) || !text) ok = false; /* without memory fclose may return 0 and give no text */
    if (!ok)
        io_fail(why, path, "its header cannot be written: a text of __metadata__ is not UTF-8, or memory is short");
    ok = ok && io_output_open(path, &w->out, why) && st_write_header(w, text, length, why);
    free(text);
    return ok;
}

IO_FN void st_abandon(st_writer *w) { io_output_discard(&w->out); }

/* The data of all tensors in their order, in pieces of any size. After a failure the file is gone. */
IO_FN bool st_write(st_writer *w, const void *bytes, size_t size, char *why)
{
    if (size > w->size - w->written)
        return io_output_fail(&w->out, why, "more than the %llu bytes that its header describes were written",
                              (unsigned long long)w->size);
    w->written += size;
    return io_output_write(&w->out, bytes, size, why);
}

IO_FN bool st_finish(st_writer *w, char *why)
{
    if (w->out.file && w->written != w->size)
        return io_output_fail(&w->out, why, "only %llu of the %llu bytes that its header describes were written",
                              (unsigned long long)w->written, (unsigned long long)w->size);
    return io_output_commit(&w->out, why);
}

#endif /* IO_SAFETENSORS_H */
